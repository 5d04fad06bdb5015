"""The fastest sound way to smooth a given model under a given noise, frozen."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from likewise._parallel import single_threaded_blas
from likewise._progress import progress_bar
from likewise._typing import FloatArray
from likewise.base import BLOCK, PlainScorer
from likewise.exceptions import InvalidInputError
from likewise.guarantees.certificate import Estimate
from likewise.guarantees.guarantee import Guarantee
from likewise.guarantees.sample_size import clopper_pearson, error_margin, hoeffding
from likewise.inspection.batch_invariance import N_PROBES, TILES, Changes, in_tiles, is_rowwise, row_by_row, try_out
from likewise.inspection.mlp import Network, is_torch
from likewise.inspection.prediction import Vote, clipped_predictions, hard_votes, scores_behind, soft_votes, tree_votes
from likewise.metrics.base import Metric
from likewise.metrics.encoders import Encoder, People, spread
from likewise.smoothing.formulas import LeafVotes, LinearVotes
from likewise.smoothing.mlp_forward import NetworkVotes
from likewise.smoothing.sampling import (
    Advance,
    CalledVotes,
    Perturbation,
    Schedule,
    SharedDraws,
    VoteSums,
    adaptive_votes,
    mean_votes,
)


@dataclass(frozen=True, eq=False)
class VoteSpec:
    """What is voted on, and how.

    Attributes
    ----------
    vote : {"hard", "soft", "trees", "value"}
        A class, class probabilities, a share of trees, or a prediction.
    classes : ndarray, or None for regression
    limits : tuple of float
        Range of a vote.
    coding : Coding, optional
        Turns perturbed rows into the table that the model takes; None if it takes them as they are.
    """

    vote: str
    classes: npt.NDArray[Any] | None = None
    limits: tuple[float, float] = (0.0, 1.0)
    encoder: Encoder | None = None

    @property
    def n_outputs(self) -> int:
        """Numbers per vote."""
        return 1 if self.classes is None else len(self.classes)

    def schedule(self, epsilon: float, delta: float) -> Schedule:
        """When to stop drawing."""
        return Schedule(epsilon, delta, self.n_outputs, self.vote == "hard")

    def network(self, model: Any) -> Network | None:
        """The model as a network, if it is one that takes rows as they are."""
        if self.vote == "trees" or self.encoder is not None:
            return None
        return Network.from_model(model, kind=self.vote, n_outputs=self.n_outputs, limits=self.limits)

    def of(self, model: Any) -> Vote:
        """The model's votes for rows, in units of the output."""
        network = self.network(model) if is_torch(model) else None
        if network is not None:
            return network.vote
        decode = None if self.encoder is None else self.encoder.decode
        if self.classes is None:
            return clipped_predictions(model, self.limits, decode)
        if self.vote == "trees":
            return tree_votes(model, self.classes)
        return (hard_votes if self.vote == "hard" else soft_votes)(model, self.classes, decode)

    def unit_votes(self, model: Any) -> Vote:
        """The model's votes in units of their range."""
        vote, (low, high) = self.of(model), self.limits
        if self.limits == (0.0, 1.0):
            return vote
        return lambda rows: np.clip((vote(rows) - low) / (high - low), 0.0, 1.0)

    def in_detail(self, model: Any) -> Vote:
        """The model's votes, with the scores behind them where it shows any: labels hide small changes."""
        vote, decode = self.unit_votes(model), None if self.encoder is None else self.encoder.decode
        scores = None if is_torch(model) else scores_behind(model, decode)
        return vote if scores is None else lambda rows: np.hstack([vote(rows), scores(rows)])

    def in_range(self, share: FloatArray) -> FloatArray:
        """From units of the range to units of the output."""
        low, high = self.limits
        return low + (high - low) * share


Batch = bool | Literal["auto"]

_ROUNDING = 1e-5  # of float32 sums; what looks at other rows is above it by far


@dataclass(frozen=True)
class BatchPlan:
    """How the inner model is called.

    Attributes
    ----------
    kind : {"any", "tiles", "person", "row"}
        Rows of many people share calls of any size or of fixed sizes, or a call sees one person's rows, or a single
        row.
    words : str
        What that rests on, for the guarantee.
    """

    kind: Literal["any", "tiles", "person", "row"]
    words: str

    def of(self, vote: Vote) -> Vote:
        """Votes, asked for in such calls."""
        ways: dict[str, Callable[[Vote], Vote]] = {"tiles": in_tiles, "row": row_by_row}
        return ways[self.kind](vote) if self.kind in ways else vote

    def sums(self, vote: Vote) -> CalledVotes:
        """Sums of votes over draws; nobody's depend on who else is asked about."""
        return CalledVotes(self.of(vote), shared=self.kind != "person")


def plan_batches(model: Any, ballot: VoteSpec, some_rows: Callable[[], FloatArray], batch: Batch) -> BatchPlan:
    """How to call a model: as `batch` says, as is known of its type, or as trials on `some_rows` show.

    Raises
    ------
    InvalidInputError
        If the model looks at other rows, or answers at random: then no promise would hold.
    """
    if batch is True:
        return BatchPlan("tiles", f"{_PREMISE}, which was not tested: batch=True says so.")
    if batch is False:
        return BatchPlan("row", "The model is called with one row at a time (batch=False).")
    # Trees vote with whole numbers, whose sums are exact.
    known = True if ballot.vote == "trees" else is_rowwise(model)
    if known is not None:
        return BatchPlan("any", "The model is of a kind that answers for each row by itself.") if known else _UNSTEADY
    rows = some_rows()
    with single_threaded_blas():
        found = try_out(ballot.in_detail(model), rows)
    _check(found)
    asked = f"asked about {min(len(rows), N_PROBES)} perturbed people alone, shuffled, and in calls of up to"
    if found.within:
        return BatchPlan(
            "person",
            f"{_PREMISE}, up to rounding, which was tested, not proven: {asked} {TILES[-1]:,} rows, its answers "
            f"changed by up to {found.within:.1g}, so a call holds the draws of one person.",
        )
    sizes = f" ({found.beyond:.1g} apart in sizes in which it is not called)" if found.beyond else ""
    return BatchPlan(
        "tiles",
        f"{_PREMISE}, which was tested, not proven: {asked} {TILES[-1]:,} rows, it gave the same answers to the last "
        f"bit{sizes}.",
    )


_PREMISE = "It rests on a model that answers for each row by itself"
_UNSTEADY = BatchPlan(
    "person",
    "The model adds up its parts in any order, so its answers may change by rounding from call to call; a call holds "
    "the draws of one person.",
)


def _check(found: Changes) -> None:
    if found.again > _ROUNDING:
        raise InvalidInputError(
            "estimator must give the same answers to the same rows; asked twice, an answer changed by "
            f"{found.again:.2g}. Fix its random_state, or switch off what is random when it predicts."
        )
    change = max(found.within, found.beyond)
    if change > _ROUNDING:
        raise InvalidInputError(
            f"estimator must answer for each row by itself; an answer changed by {change:.2g} with the other rows of "
            "the call, so no promise about people would hold. Use batch=False to ask it for one row at a time."
        )


@dataclass(frozen=True, eq=False, repr=False)
class SmoothedScorer(PlainScorer):
    """A model averaged over a perturbation.

    Attributes
    ----------
    guarantee : Guarantee
    model : object
        The fitted inner model.
    perturbation : Perturbation
    ballot : Ballot
    n_jobs : int or None
    sharing : CallPlan or None
        How the model is called; None if it is not, since what it does is known.
    """

    model: Any
    perturbation: Perturbation
    ballot: VoteSpec
    n_jobs: int | None
    sharing: BatchPlan | None

    def visible(self, people: People) -> FloatArray:
        """What the draws may see of people."""
        return self.perturbation.prepare(people.rows)

    def landmarks(self, n_columns: int) -> list[FloatArray]:
        """Borders of cells."""
        return self.perturbation.landmarks(n_columns)

    def draw(self, people: People, rng: np.random.Generator) -> FloatArray:
        """One vote per person, each under a draw of its own."""
        rows, vote = people.rows, self.ballot.of(self.model)
        if self.sharing is not None:
            vote = self.sharing.of(vote)
        blocks = [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
        return np.concatenate([vote(self.perturbation.perturb(block, rng)) for block in blocks])


@dataclass(frozen=True, eq=False, repr=False)
class FormulaScorer(SmoothedScorer):
    """From a formula: nothing is drawn."""

    formula: LinearVotes | LeafVotes

    def estimate(self, people: People, *, verbose: bool = False) -> Estimate:
        """Exact averages; the intervals have width 0."""
        mean = np.clip(self.formula.mean_votes(people.rows, self.n_jobs), *self.ballot.limits)
        return Estimate.certain(mean)

    def distance_to_tie(self, people: People) -> FloatArray | None:
        """By the margin of a linear model."""
        return self.formula.distance_to_tie(people.rows) if isinstance(self.formula, LinearVotes) else None

    def landmarks(self, n_columns: int) -> list[FloatArray]:
        """Where noise from there reaches a threshold of a tree."""
        found = super().landmarks(n_columns)
        if isinstance(self.formula, LeafVotes):
            for column in np.unique(self.formula.features):
                here = self.formula.thresholds[self.formula.features == column]
                found[column] = np.unique(here[:, None] + self.formula.noise.widths[column] * np.array([-0.5, 0, 0.5]))
        return found


@dataclass(frozen=True, eq=False, repr=False)
class SampledScorer(SmoothedScorer):
    """What the ways that evaluate the model share."""

    @cached_property
    def sums(self) -> VoteSums:
        """Sums of the model's votes, in the fastest way that it allows."""
        if self.sharing is not None:
            return self.sharing.sums(self.ballot.unit_votes(self.model))
        network = self.ballot.network(self.model)
        assert network is not None
        return NetworkVotes(network, self.n_jobs)

    def estimate(self, people: People, *, verbose: bool = False) -> Estimate:
        """Averages over draws."""
        rows, n_draws = people.rows, self.guarantee.n_draws
        parts: list[Estimate] = []
        with progress_bar("Smoothing", len(rows) * n_draws, show=verbose) as advance, single_threaded_blas():
            for start in range(0, len(rows), BLOCK):
                seen = self.perturbation.prepare(rows[start : start + BLOCK])
                corners, owner, share = self.perturbation.corners(seen)
                distinct, where = _distinct(corners)
                found = self._of_people(distinct, advance)
                advance((len(seen) - len(distinct)) * n_draws)
                # Each person's corners, weighed by their shares: for nearly everyone, one of them. Several occur under
                # a splitting only, where intervals have width 0.
                starts = np.flatnonzero(np.diff(owner, prepend=-1))
                mean, lower, upper = (
                    np.add.reduceat(share[:, None] * values[where], starts)
                    for values in (found.mean, found.lower, found.upper)
                )
                parts.append(Estimate(mean, lower, upper, np.add.reduceat(found.n_draws[where], starts)))
        mean, lower, upper = (
            self.ballot.in_range(np.concatenate([getattr(part, name) for part in parts]))
            for name in ("mean", "lower", "upper")
        )
        return Estimate(mean, lower, upper, np.concatenate([part.n_draws for part in parts]))

    @abstractmethod
    def _of_people(self, people: npt.NDArray[np.generic], advance: Advance) -> Estimate: ...


class SplittingScorer(SampledScorer):
    """All K draws of a splitting: h is this average, so the intervals have width 0."""

    def _of_people(self, people: npt.NDArray[np.generic], advance: Advance) -> Estimate:
        n_draws = self.guarantee.n_draws
        return Estimate.certain(mean_votes(self.sums, people, self.perturbation, n_draws, advance=advance), n_draws)


class FixedSampleScorer(SampledScorer):
    """A fixed number of random draws."""

    def _of_people(self, people: npt.NDArray[np.generic], advance: Advance) -> Estimate:
        n_draws, delta, n_outputs = self.guarantee.n_draws, self.guarantee.delta, self.ballot.n_outputs
        mean = mean_votes(self.sums, people, self.perturbation, n_draws, advance=advance)
        # Two classes have one free probability; otherwise the intervals share delta (union bound).
        share = delta if n_outputs <= 2 else delta / n_outputs
        interval = clopper_pearson if self.ballot.vote == "hard" else hoeffding
        return Estimate(mean, *interval(mean, n_draws, share), np.full(len(people), n_draws))


class AdaptiveSampleScorer(SampledScorer):
    """As many random draws as each person needs for the promise; `n_draws` is the most that anyone does."""

    def _of_people(self, people: npt.NDArray[np.generic], advance: Advance) -> Estimate:
        schedule = self.ballot.schedule(self.guarantee.slack, self.guarantee.delta)
        return adaptive_votes(self.sums, people, self.perturbation, schedule, advance=advance)


def choose_scorer(
    model: Any,
    perturbation: Perturbation,
    ballot: VoteSpec,
    metric: Metric,
    rows: FloatArray,
    *,
    epsilon: float,
    delta: float,
    n_draws: int | None = None,
    n_jobs: int | None = None,
    batch: Batch = "auto",
) -> SmoothedScorer:
    """Pick the fastest sound way: a formula, the K draws of a splitting, or random draws.

    A number of draws asks for drawing; without one, a model with a formula needs none, and others take as many
    random draws per person as `epsilon` and `delta` need. Where the model must be called, `batch` says how, or what
    is found on some of the training `rows`, perturbed.
    """
    output_range = ballot.limits if ballot.classes is None else None
    parts = (model, perturbation, ballot, n_jobs)
    formula = find_formula(model, perturbation, ballot) if n_draws is None else None
    if formula is not None:
        basis = "This holds for all pairs, with certainty: outputs come from a formula."
        return FormulaScorer(
            Guarantee(metric, perturbation.curve, "exact", basis, output_range=output_range), *parts, None, formula
        )
    sharing = None
    if not _has_forward_pass(model, ballot):
        some = rows[spread(len(rows), N_PROBES)]
        sharing = plan_batches(model, ballot, lambda: perturbation.perturb(some, np.random.default_rng(0)), batch)
    called = "" if sharing is None else f" {sharing.words}"
    if perturbation.n_fixed is not None:
        K, excess = perturbation.n_fixed, perturbation.curve.excess
        basis = (
            f"This holds for all pairs, with certainty: outputs are averages over {K:,} fixed shifts of a grid, not "
            "over random draws."
        )
        if excess:
            basis += (
                f" The {excess:.3g} is n/{K:,} for the n = {round(excess * K)} features whose values are not on a "
                "grid; it is less for two people who differ in fewer of these."
            )
        basis += called
        return SplittingScorer(
            Guarantee(metric, perturbation.curve, "deterministic", basis, n_draws=K, output_range=output_range),
            *parts,
            sharing,
        )
    if n_draws is None:
        kind: type[SampledScorer] = AdaptiveSampleScorer
        most = ballot.schedule(epsilon, delta).edges[-1]
    else:
        # An output in [0, 1] deviates like the probability of one class of two.
        kind, most, epsilon = FixedSampleScorer, n_draws, error_margin(n_draws, delta, max(2, ballot.n_outputs))
    basis = (
        f"This holds for each pair with probability at least {1 - delta:.6g} over the {most:,} random draws made in "
        f"fit, for pairs chosen without knowledge of the draws.{called}"
    )
    promise = Guarantee(metric, perturbation.curve, "sampled", basis, epsilon, delta, most, output_range)
    return kind(promise, *parts, sharing)


def _has_forward_pass(model: Any, ballot: VoteSpec) -> bool:
    """Whether the model is a network of which `NetworkVotes` takes over the work."""
    network = ballot.network(model)
    return network is not None and len(network.weights) > 1


def find_formula(model: Any, perturbation: Perturbation, ballot: VoteSpec) -> LinearVotes | LeafVotes | None:
    """The formula of the smoothed votes of a fitted model, if there is one under this noise."""
    if not isinstance(perturbation, SharedDraws) or np.isnan(perturbation.background).any():
        return None
    if ballot.vote == "hard":
        linear = LinearVotes.from_model(model, perturbation)
        if linear is not None:
            return linear
    limits = ballot.limits if ballot.vote == "value" else None
    return LeafVotes.from_model(model, perturbation, vote=ballot.vote, limits=limits)


def _distinct(people: npt.NDArray[np.generic]) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.intp]]:
    """Distinct rows, and for each row its number among them: equal people are scored once."""
    rows = np.ascontiguousarray(people)
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, where = np.unique(keys, return_index=True, return_inverse=True)
    return rows[first], where
