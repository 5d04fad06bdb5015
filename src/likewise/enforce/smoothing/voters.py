"""The fastest sound way to smooth a given model under a given noise, frozen."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from likewise._progress import progress_bar
from likewise._threads import single_threaded_blas
from likewise._typing import FloatArray
from likewise.enforce.base import BLOCK, PlainScorer
from likewise.enforce.smoothing.ballot import Ballot
from likewise.enforce.smoothing.bank import Bank
from likewise.enforce.smoothing.calls import VoteSums
from likewise.enforce.smoothing.draws import Perturbation
from likewise.enforce.smoothing.forward import NetworkVotes
from likewise.enforce.smoothing.leaves import LeafVotes
from likewise.enforce.smoothing.margins import LinearVotes
from likewise.enforce.smoothing.schedule import Advance, adaptive_votes, mean_votes
from likewise.enforce.smoothing.sharing import Batch, CallPlan, find_sharing
from likewise.guarantees.certificate import Estimate
from likewise.guarantees.draw_counts import error_margin
from likewise.guarantees.intervals import clopper_pearson, hoeffding
from likewise.guarantees.promise import Guarantee
from likewise.metrics.abstract import Metric
from likewise.metrics.people import People, spread
from likewise.models.company import N_PROBES


@dataclass(frozen=True, eq=False, repr=False)
class Voter(PlainScorer):
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
    ballot: Ballot
    n_jobs: int | None
    sharing: CallPlan | None

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
class FormulaVoter(Voter):
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
class DrawnVoter(Voter):
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


class SplittingVoter(DrawnVoter):
    """All K draws of a splitting: h is this average, so the intervals have width 0."""

    def _of_people(self, people: npt.NDArray[np.generic], advance: Advance) -> Estimate:
        n_draws = self.guarantee.n_draws
        return Estimate.certain(mean_votes(self.sums, people, self.perturbation, n_draws, advance=advance), n_draws)


class FixedVoter(DrawnVoter):
    """A fixed number of random draws."""

    def _of_people(self, people: npt.NDArray[np.generic], advance: Advance) -> Estimate:
        n_draws, delta, n_outputs = self.guarantee.n_draws, self.guarantee.delta, self.ballot.n_outputs
        mean = mean_votes(self.sums, people, self.perturbation, n_draws, advance=advance)
        # Two classes have one free probability; otherwise the intervals share delta (union bound).
        share = delta if n_outputs <= 2 else delta / n_outputs
        interval = clopper_pearson if self.ballot.vote == "hard" else hoeffding
        return Estimate(mean, *interval(mean, n_draws, share), np.full(len(people), n_draws))


class AdaptiveVoter(DrawnVoter):
    """As many random draws as each person needs for the promise; `n_draws` is the most that anyone does."""

    def _of_people(self, people: npt.NDArray[np.generic], advance: Advance) -> Estimate:
        schedule = self.ballot.schedule(self.guarantee.slack, self.guarantee.delta)
        return adaptive_votes(self.sums, people, self.perturbation, schedule, advance=advance)


def choose_voter(
    model: Any,
    perturbation: Perturbation,
    ballot: Ballot,
    metric: Metric,
    rows: FloatArray,
    *,
    epsilon: float,
    delta: float,
    n_draws: int | None = None,
    n_jobs: int | None = None,
    batch: Batch = "auto",
) -> Voter:
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
        return FormulaVoter(
            Guarantee(metric, perturbation.curve, "exact", basis, output_range=output_range), *parts, None, formula
        )
    sharing = None
    if not _has_forward_pass(model, ballot):
        some = rows[spread(len(rows), N_PROBES)]
        sharing = find_sharing(model, ballot, lambda: perturbation.perturb(some, np.random.default_rng(0)), batch)
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
        return SplittingVoter(
            Guarantee(metric, perturbation.curve, "deterministic", basis, n_draws=K, output_range=output_range),
            *parts,
            sharing,
        )
    if n_draws is None:
        kind: type[DrawnVoter] = AdaptiveVoter
        most = ballot.schedule(epsilon, delta).edges[-1]
    else:
        # An output in [0, 1] deviates like the probability of one class of two.
        kind, most, epsilon = FixedVoter, n_draws, error_margin(n_draws, delta, max(2, ballot.n_outputs))
    basis = (
        f"This holds for each pair with probability at least {1 - delta:.6g} over the {most:,} random draws made in "
        f"fit, for pairs chosen without knowledge of the draws.{called}"
    )
    promise = Guarantee(metric, perturbation.curve, "sampled", basis, epsilon, delta, most, output_range)
    return kind(promise, *parts, sharing)


def _has_forward_pass(model: Any, ballot: Ballot) -> bool:
    """Whether the model is a network of which `NetworkVotes` takes over the work."""
    network = ballot.network(model)
    return network is not None and len(network.weights) > 1


def find_formula(model: Any, perturbation: Perturbation, ballot: Ballot) -> LinearVotes | LeafVotes | None:
    """The formula of the smoothed votes of a fitted model, if there is one under this noise."""
    if not isinstance(perturbation, Bank) or np.isnan(perturbation.background).any():
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
