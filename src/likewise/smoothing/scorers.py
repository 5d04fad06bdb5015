"""Scorers that average a model over noise, and the choice of the fastest sound one: `choose_scorer`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from likewise._parallel import single_threaded_blas
from likewise._progress import progress_bar
from likewise._subsample import distinct_rows, evenly_spaced
from likewise._typing import FloatArray
from likewise.base import BLOCK, PlainScorer
from likewise.exceptions import InvalidInputError
from likewise.inspection.batch_invariance import (
    BATCH_SIZES,
    N_PROBES,
    Changes,
    in_fixed_batches,
    is_rowwise,
    measure_changes,
    row_by_row,
)
from likewise.inspection.mlp import Network, is_torch
from likewise.inspection.prediction import Vote, clipped_predictions, hard_votes, scores_behind, soft_votes, tree_votes
from likewise.kernel import rules
from likewise.kernel.certificate import Estimate
from likewise.kernel.concentration import FixedDraws, Schedule, clopper_pearson, hoeffding
from likewise.kernel.guarantee import Guarantee
from likewise.kernel.links import from_unit_range, to_unit_range
from likewise.kernel.schema import Encoder, People
from likewise.smoothing.formulas import Formula, LeafVotes, LinearVotes
from likewise.smoothing.mlp_forward import NetworkVotes
from likewise.smoothing.sampling import (
    Advance,
    CalledVotes,
    Perturbation,
    SharedDraws,
    VoteSums,
    adaptive_votes,
    mean_votes,
)


@dataclass(frozen=True, eq=False)
class VoteSpec:
    """How the inner model votes.

    Attributes
    ----------
    vote : {"hard", "soft", "trees", "value"}
        A class, class probabilities, a share of trees, or a prediction.
    classes : ndarray, or None for regression
    limits : tuple of float
        Range of a vote.
    encoder : Encoder, optional
        Decodes perturbed rows to the table that the model takes; None if it takes arrays.
    """

    vote: str
    classes: npt.NDArray[Any] | None = None
    limits: tuple[float, float] = (0.0, 1.0)
    encoder: Encoder | None = None

    @property
    def n_outputs(self) -> int:
        """Numbers per vote."""
        return 1 if self.classes is None else len(self.classes)

    @property
    def _decode(self) -> Callable[[FloatArray], Any] | None:
        return None if self.encoder is None else self.encoder.decode

    def schedule(self, epsilon: float, delta: float) -> Schedule:
        """Stopping rule of adaptive sampling."""
        return Schedule(epsilon, delta, self.n_outputs, self.vote == "hard")

    def network(self, model: Any) -> Network | None:
        """The model as a network, if it is one that takes arrays."""
        if self.vote == "trees" or self.encoder is not None:
            return None
        return Network.from_model(model, kind=self.vote, n_outputs=self.n_outputs, limits=self.limits)

    def function(self, model: Any) -> Vote:
        """The model's votes as a function of rows, in units of the output."""
        network = self.network(model) if is_torch(model) else None
        if network is not None:
            return network.vote
        if self.classes is None:
            return clipped_predictions(model, self.limits, self._decode)
        if self.vote == "trees":
            return tree_votes(model, self.classes)
        return (hard_votes if self.vote == "hard" else soft_votes)(model, self.classes, self._decode)

    def unit_function(self, model: Any) -> Vote:
        """The model's votes as a function of rows, scaled to [0, 1]."""
        vote = self.function(model)
        return vote if self.limits == (0.0, 1.0) else lambda rows: to_unit_range(vote(rows), self.limits)

    def detailed_function(self, model: Any) -> Vote:
        """The votes, with the scores behind them where the model has any: labels hide small changes."""
        vote = self.unit_function(model)
        scores = None if is_torch(model) else scores_behind(model, self._decode)
        return vote if scores is None else lambda rows: np.hstack([vote(rows), scores(rows)])


Batch = bool | Literal["auto"]

_ROUNDING = 1e-5  # rounding of float32 sums; a dependence on other rows is far above it


@dataclass(frozen=True)
class BatchPlan:
    """How the inner model is called.

    Attributes
    ----------
    kind : {"any", "fixed", "person", "row"}
        A call holds rows of many people, in any number or in fixed numbers; rows of one person; or a single row.
    basis : str
        The reason, for the guarantee's statement.
    """

    kind: Literal["any", "fixed", "person", "row"]
    basis: str

    def wrap(self, vote: Vote) -> Vote:
        """The vote function, called in this way."""
        if self.kind == "fixed":
            return in_fixed_batches(vote)
        return row_by_row(vote) if self.kind == "row" else vote

    def sums(self, vote: Vote) -> CalledVotes:
        """Sums of votes over draws, independent of the other people scored."""
        return CalledVotes(self.wrap(vote), shared=self.kind != "person")


_PREMISE = "It assumes that the model predicts each row independently"
_UNSTEADY = BatchPlan(
    "person",
    "The model sums its components in an unspecified order, so its predictions may change by rounding from call to "
    "call; a call holds the draws of one person.",
)


def plan_batches(model: Any, votes: VoteSpec, make_rows: Callable[[], FloatArray], batch: Batch) -> BatchPlan:
    """Choose how to call a model: as `batch` says, by its type, or by trials on the rows of `make_rows`.

    Raises
    ------
    InvalidInputError
        If the output for a row depends on other rows, or is random: then no guarantee would hold.
    """
    if batch is True:
        return BatchPlan("fixed", f"{_PREMISE}, which was not tested: batch=True says so.")
    if batch is False:
        return BatchPlan("row", "The model is called with one row at a time (batch=False).")
    # Trees vote with whole numbers, whose sums are exact.
    known = True if votes.vote == "trees" else is_rowwise(model)
    if known is not None:
        return BatchPlan("any", "Models of this type predict each row independently.") if known else _UNSTEADY
    rows = make_rows()
    with single_threaded_blas():
        changes = measure_changes(votes.detailed_function(model), rows)
    _check_changes(changes)
    trials = f"called with {min(len(rows), N_PROBES)} perturbed rows alone, shuffled, and in batches of up to"
    if changes.within:
        return BatchPlan(
            "person",
            f"{_PREMISE}, up to rounding, which was tested, not proven: {trials} {BATCH_SIZES[-1]:,}, its predictions "
            f"changed by up to {changes.within:.1g}, so a call holds the draws of one person.",
        )
    sizes = f" ({changes.beyond:.1g} apart in batch sizes that are not used)" if changes.beyond else ""
    return BatchPlan(
        "fixed",
        f"{_PREMISE}, which was tested, not proven: {trials} {BATCH_SIZES[-1]:,}, it gave the same "
        f"predictions to the last bit{sizes}.",
    )


def _check_changes(changes: Changes) -> None:
    if changes.again > _ROUNDING:
        raise InvalidInputError(
            "estimator must give the same predictions for the same rows; called twice, a prediction changed by "
            f"{changes.again:.2g}. Fix its random_state, or disable randomness at prediction time."
        )
    change = max(changes.within, changes.beyond)
    if change > _ROUNDING:
        raise InvalidInputError(
            f"estimator must predict each row independently; a prediction changed by {change:.2g} with the rest of the "
            "batch, so no guarantee would hold. Use batch=False to call it with one row at a time."
        )


@dataclass(frozen=True, eq=False, repr=False)
class SmoothedScorer(PlainScorer):
    """A model averaged over a perturbation.

    Attributes
    ----------
    model : object
        The fitted inner model.
    perturbation : Perturbation
    votes : VoteSpec
    n_jobs : int or None
    batch_plan : BatchPlan or None
        How the model is called; None if a formula or likewise's own forward pass replaces it.
    order : list of int, or None
        Positions of the model's columns among those of people, if they are in another order. The perturbation is in the
        model's order.
    given : Encoder or None
        Of people as they were given, if the model takes their columns in another order.
    """

    model: Any
    perturbation: Perturbation
    votes: VoteSpec
    n_jobs: int | None
    batch_plan: BatchPlan | None
    order: list[int] | None = field(default=None, kw_only=True)
    given: Encoder | None = field(default=None, kw_only=True)

    def rows_of(self, people: People) -> FloatArray:
        """Encoded people, with columns in the order of the model."""
        return people.rows if self.order is None else np.ascontiguousarray(people.rows[:, self.order])

    def prove(self) -> Guarantee:
        """The rule that fits, for people whose columns are in their own order."""
        found = self._prove()
        return found if self.given is None else rules.reread(found, self.given)

    @abstractmethod
    def _prove(self) -> Guarantee:
        """For people whose columns are in the order of the model."""

    @property
    def _output_range(self) -> tuple[float, float] | None:
        return self.votes.limits if self.votes.classes is None else None

    @property
    def _premise(self) -> str:
        return "" if self.batch_plan is None else self.batch_plan.basis

    def visible(self, people: People) -> FloatArray:
        """What the draws depend on."""
        return self.perturbation.prepare(self.rows_of(people))

    def breakpoints(self, n_columns: int) -> list[FloatArray]:
        """Where outputs may change slope, by column of people."""
        found = self._model_breakpoints(n_columns)
        return found if self.order is None else [found[self.order.index(i)] for i in range(n_columns)]

    def _model_breakpoints(self, n_columns: int) -> list[FloatArray]:
        """Borders of the cells of a splitting, by column of the model."""
        return self.perturbation.breakpoints(n_columns)

    def draw(self, people: People, rng: np.random.Generator) -> FloatArray:
        """One vote per person, each under a draw of its own."""
        rows, vote = self.rows_of(people), self._vote_of_rows()
        blocks = [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
        return np.concatenate([vote(self.perturbation.perturb(block, rng)) for block in blocks])

    def _vote_of_rows(self) -> Vote:
        vote = self.votes.function(self.model)
        return vote if self.batch_plan is None else self.batch_plan.wrap(vote)


@dataclass(frozen=True, eq=False, repr=False)
class FormulaScorer(SmoothedScorer):
    """Averages from a formula: nothing is drawn."""

    formula: Formula

    def _prove(self) -> Guarantee:
        return rules.exact_noise(self.perturbation, self._output_range)

    def estimate(self, people: People, *, verbose: bool = False) -> Estimate:
        """Exact averages; the intervals have width 0."""
        return Estimate.certain(np.clip(self.formula.mean_votes(self.rows_of(people), self.n_jobs), *self.votes.limits))

    def distance_to_tie(self, people: People) -> FloatArray | None:
        """By the formula, if it has one."""
        return self.formula.distance_to_tie(self.rows_of(people))

    def _model_breakpoints(self, n_columns: int) -> list[FloatArray]:
        """Kinks of the formula."""
        breakpoints = super()._model_breakpoints(n_columns)
        for column, values in self.formula.breakpoints():
            breakpoints[column] = values
        return breakpoints


@dataclass(frozen=True, eq=False, repr=False)
class SampledScorer(SmoothedScorer):
    """Averages over draws; a subclass says over how many."""

    @cached_property
    def sums(self) -> VoteSums:
        """Sums of the model's votes: by calling it, or by a faster forward pass."""
        if self.batch_plan is not None:
            return self.batch_plan.sums(self.votes.unit_function(self.model))
        return self._network_votes()

    def _network_votes(self) -> NetworkVotes:
        network = self.votes.network(self.model)
        assert network is not None
        return NetworkVotes(network, self.n_jobs)

    def _vote_of_rows(self) -> Vote:
        if self.batch_plan is not None:
            return super()._vote_of_rows()
        # The average is over the network in float32: a decision is drawn from the same one.
        vote = self._network_votes().vote
        return lambda rows: from_unit_range(vote(rows), self.votes.limits)

    def estimate(self, people: People, *, verbose: bool = False) -> Estimate:
        """Averages over draws."""
        rows, n_draws = self.rows_of(people), self.guarantee.n_draws
        parts: list[Estimate] = []
        with progress_bar("Smoothing", len(rows) * n_draws, show=verbose) as advance, single_threaded_blas():
            for start in range(0, len(rows), BLOCK):
                prepared = self.perturbation.prepare(rows[start : start + BLOCK])
                corners, owner, share = self.perturbation.corners(prepared)
                first, inverse = distinct_rows(corners)
                estimate = self._estimate_prepared(corners[first], advance)
                advance((len(prepared) - len(first)) * n_draws)
                # Average each person's corners. Several occur under a splitting only, where intervals have width 0.
                starts = np.flatnonzero(np.diff(owner, prepend=-1))
                mean, lower, upper = (
                    from_unit_range(np.add.reduceat(share[:, None] * values[inverse], starts), self.votes.limits)
                    for values in (estimate.mean, estimate.lower, estimate.upper)
                )
                parts.append(Estimate(mean, lower, upper, np.add.reduceat(estimate.n_draws[inverse], starts)))
        fields = ("mean", "lower", "upper", "n_draws")
        return Estimate(*(np.concatenate([getattr(part, name) for part in parts]) for name in fields))

    @abstractmethod
    def _estimate_prepared(self, people: npt.NDArray[np.generic], advance: Advance) -> Estimate:
        """Averages for prepared rows, between 0 and 1."""


class SplittingScorer(SampledScorer):
    """Averages over all K draws of a splitting: h is this average, so the intervals have width 0."""

    def _prove(self) -> Guarantee:
        return rules.splitting(self.perturbation, self._output_range, self._premise)

    def _estimate_prepared(self, people: npt.NDArray[np.generic], advance: Advance) -> Estimate:
        n_draws = self.guarantee.n_draws
        return Estimate.certain(mean_votes(self.sums, people, self.perturbation, n_draws, advance=advance), n_draws)


@dataclass(frozen=True, eq=False, repr=False)
class RandomScorer(SampledScorer):
    """Averages over random draws: a fixed number, or as many as each person needs for the guarantee."""

    draws: FixedDraws | Schedule

    def _prove(self) -> Guarantee:
        return rules.sampled_noise(self.perturbation, self.draws, self._output_range, self._premise)

    def _estimate_prepared(self, people: npt.NDArray[np.generic], advance: Advance) -> Estimate:
        if isinstance(self.draws, Schedule):
            return adaptive_votes(self.sums, people, self.perturbation, self.draws, advance=advance)
        n_draws, delta, n_outputs = self.draws.n_draws, self.draws.delta, self.votes.n_outputs
        mean = mean_votes(self.sums, people, self.perturbation, n_draws, advance=advance)
        # Two classes have one free probability; otherwise a union bound over the classes.
        share = delta if n_outputs <= 2 else delta / n_outputs
        interval = clopper_pearson if self.votes.vote == "hard" else hoeffding
        return Estimate(mean, *interval(mean, n_draws, share), np.full(len(people), n_draws))


def choose_scorer(
    model: Any,
    perturbation: Perturbation,
    votes: VoteSpec,
    rows: FloatArray,
    *,
    epsilon: float,
    delta: float,
    n_draws: int | None = None,
    n_jobs: int | None = None,
    batch: Batch = "auto",
) -> SmoothedScorer:
    """Choose the fastest sound scorer: a formula, the K draws of a splitting, or random draws.

    `n_draws` excludes a formula and fixes the number of draws; without it, each person gets as many as `epsilon` and
    `delta` need. `rows` of the training data, perturbed, show how the model may be called (`plan_batches`).
    """
    parts = (model, perturbation, votes, n_jobs)
    formula = find_formula(model, perturbation, votes) if n_draws is None else None
    if formula is not None:
        return FormulaScorer(*parts, None, formula)
    plan = None
    if not _has_forward_pass(model, votes):
        some = rows[evenly_spaced(len(rows), N_PROBES)]
        plan = plan_batches(model, votes, lambda: perturbation.perturb(some, np.random.default_rng(0)), batch)
    if perturbation.n_fixed is not None:
        return SplittingScorer(*parts, plan)
    draws = votes.schedule(epsilon, delta) if n_draws is None else FixedDraws(n_draws, delta, votes.n_outputs)
    return RandomScorer(*parts, plan, draws)


def _has_forward_pass(model: Any, votes: VoteSpec) -> bool:
    """Whether the model is a network that `NetworkVotes` can evaluate."""
    network = votes.network(model)
    return network is not None and len(network.weights) > 1


def find_formula(model: Any, perturbation: Perturbation, votes: VoteSpec) -> Formula | None:
    """The formula of a fitted model's smoothed votes, if there is one under this noise."""
    if not isinstance(perturbation, SharedDraws) or np.isnan(perturbation.background).any():
        return None
    if votes.vote == "hard":
        linear = LinearVotes.from_model(model, perturbation)
        if linear is not None:
            return linear
    limits = votes.limits if votes.vote == "value" else None
    return LeafVotes.from_model(model, perturbation, vote=votes.vote, limits=limits)
