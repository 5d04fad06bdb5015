"""The fastest sound way to smooth a given model under a given noise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from likewise._progress import progress_bar
from likewise._threads import single_threaded_blas
from likewise._typing import FloatArray
from likewise.enforce.smoothing.bank import Bank
from likewise.enforce.smoothing.calls import CallScorer, Scorer
from likewise.enforce.smoothing.cells import Cells
from likewise.enforce.smoothing.draws import Perturbation
from likewise.enforce.smoothing.forward import Network, NetworkScorer, is_torch
from likewise.enforce.smoothing.leaves import BOOSTED, FORESTS, SINGLE_TREES, TreeVotes
from likewise.enforce.smoothing.margins import LINEAR_CLASSIFIERS, LinearVotes
from likewise.enforce.smoothing.mixed import Mixed
from likewise.enforce.smoothing.noises import Gaussian, Noise, Splitting, Uniform
from likewise.enforce.smoothing.schedule import Advance, Schedule, adaptive_votes, mean_votes
from likewise.guarantees.certificate import Estimate
from likewise.guarantees.draw_counts import error_margin
from likewise.guarantees.intervals import clopper_pearson, hoeffding
from likewise.guarantees.promise import Level
from likewise.models.rowwise import is_rowwise
from likewise.models.unwrapping import last_step
from likewise.models.votes import Decode, Vote, clipped_predictions, hard_votes, soft_votes, tree_votes

_BLOCK = 16_384  # people at a time: memory does not grow with their number


@dataclass(frozen=True)
class Ballot:
    """What is voted on, and how.

    Attributes
    ----------
    vote : {"hard", "soft", "trees", "value"}
        A class, class probabilities, a share of trees, or a prediction.
    classes : ndarray, or None for regression
    limits : tuple of float
        Range of a vote.
    decode : callable, optional
        Turns perturbed rows into what the model takes.
    """

    vote: str
    classes: npt.NDArray[Any] | None = None
    limits: tuple[float, float] = (0.0, 1.0)
    decode: Decode | None = None

    @property
    def n_outputs(self) -> int:
        """Numbers per vote."""
        return 1 if self.classes is None else len(self.classes)

    def schedule(self, epsilon: float, delta: float) -> Schedule:
        """When to stop drawing."""
        return Schedule(epsilon, delta, self.n_outputs, self.vote == "hard")

    def of(self, model: Any) -> Vote:
        """The model's votes for rows, in units of the output."""
        network = _network(model, self) if is_torch(model) else None
        if network is not None:
            return network.vote
        if self.classes is None:
            return clipped_predictions(model, self.limits, self.decode)
        if self.vote == "trees":
            return tree_votes(model, self.classes)
        return (hard_votes if self.vote == "hard" else soft_votes)(model, self.classes, self.decode)


@dataclass(frozen=True, eq=False)
class Voter(ABC):
    """Computes the smoothed model for people.

    Attributes
    ----------
    level : {"exact", "deterministic", "sampled"}
    epsilon, delta : float
        What the way of computing adds to the noise's promise.
    n_draws : int
        Evaluations of the model per person, at most.
    """

    level: Level
    epsilon: float
    delta: float
    n_draws: int

    @abstractmethod
    def estimate(self, X: FloatArray, *, verbose: bool = False) -> Estimate:
        """Smoothed votes per person, with an interval for each."""


@dataclass(frozen=True, eq=False)
class Exact(Voter):
    """From a formula: nothing is drawn."""

    votes: LinearVotes | TreeVotes
    limits: tuple[float, float]
    n_jobs: int | None

    def estimate(self, X: FloatArray, *, verbose: bool = False) -> Estimate:
        """Exact averages; the intervals have width 0."""
        if isinstance(self.votes, LinearVotes):
            mean = self.votes.mean_votes(X)
        else:
            mean = self.votes.mean_votes(X, self.n_jobs)
            np.clip(mean, *self.limits, out=mean)
        return Estimate(mean, mean, mean, np.zeros(len(X), dtype=np.int64))


@dataclass(frozen=True, eq=False)
class _Drawn(Voter):
    """What the ways that evaluate the model share."""

    scorer: Scorer
    perturbation: Perturbation
    ballot: Ballot

    def estimate(self, X: FloatArray, *, verbose: bool = False) -> Estimate:
        """Averages over draws."""
        shape = (len(X), self.ballot.n_outputs)
        out = Estimate(np.empty(shape), np.empty(shape), np.empty(shape), np.empty(len(X), dtype=np.int64))
        low, high = self.ballot.limits
        with progress_bar("Smoothing", len(X) * self.n_draws, show=verbose) as advance, single_threaded_blas():
            for start in range(0, len(X), _BLOCK):
                block = slice(start, start + _BLOCK)
                people, where = _distinct(self.perturbation.prepare(X[block]))
                advance((len(where) - len(people)) * self.n_draws)
                found = self._of_people(people, advance)
                out.mean[block] = low + (high - low) * found.mean[where]
                out.lower[block] = low + (high - low) * found.lower[where]
                out.upper[block] = low + (high - low) * found.upper[where]
                out.n_draws[block] = found.n_draws[where]
        return out

    @abstractmethod
    def _of_people(self, people: npt.NDArray[np.generic], advance: Advance) -> Estimate: ...


class Deterministic(_Drawn):
    """All K draws of a splitting: h is this average, so the intervals have width 0."""

    def _of_people(self, people: npt.NDArray[np.generic], advance: Advance) -> Estimate:
        mean = mean_votes(self.scorer, people, self.perturbation, self.n_draws, advance=advance)
        return Estimate(mean, mean, mean, np.full(len(people), self.n_draws))


class Fixed(_Drawn):
    """A fixed number of random draws."""

    def _of_people(self, people: npt.NDArray[np.generic], advance: Advance) -> Estimate:
        mean = mean_votes(self.scorer, people, self.perturbation, self.n_draws, advance=advance)
        # Two classes have one free probability; otherwise the intervals share delta (union bound).
        share = self.delta if self.ballot.n_outputs <= 2 else self.delta / self.ballot.n_outputs
        interval = clopper_pearson if self.ballot.vote == "hard" else hoeffding
        return Estimate(mean, *interval(mean, self.n_draws, share), np.full(len(people), self.n_draws))


class Adaptive(_Drawn):
    """As many random draws as each person needs for the promise; `n_draws` is the most that anyone does."""

    def _of_people(self, people: npt.NDArray[np.generic], advance: Advance) -> Estimate:
        schedule = self.ballot.schedule(self.epsilon, self.delta)
        return adaptive_votes(self.scorer, people, self.perturbation, schedule, advance=advance)


def choose_voter(
    model: Any,
    perturbation: Bank | Cells | Mixed,
    ballot: Ballot,
    *,
    epsilon: float,
    delta: float,
    n_draws: int | None = None,
    n_jobs: int | None = None,
) -> Voter:
    """Pick the fastest sound way: a formula, the K draws of a splitting, or random draws.

    A number of draws asks for drawing; without one, a model with a formula needs none, and others take as many
    random draws per person as `epsilon` and `delta` need.
    """
    if isinstance(perturbation, Bank) and n_draws is None:
        formula = _formula(model, perturbation, ballot)
        if formula is not None:
            return Exact("exact", 0.0, 0.0, 0, formula, ballot.limits, n_jobs)
    drawn = _scorer(model, ballot, n_jobs), perturbation, ballot
    if isinstance(perturbation, Cells) or (isinstance(perturbation, Mixed) and perturbation.is_deterministic):
        return Deterministic("deterministic", perturbation.epsilon, 0.0, perturbation.n_draws, *drawn)
    if n_draws is not None:
        # An output in [0, 1] deviates like the probability of one class of two.
        margin = error_margin(n_draws, delta, max(2, ballot.n_outputs))
        return Fixed("sampled", margin, delta, n_draws, *drawn)
    return Adaptive("sampled", epsilon, delta, ballot.schedule(epsilon, delta).edges[-1], *drawn)


def candidate_noise(model: Any, ballot: Ballot, p: float, *, formula: bool) -> type[Noise]:
    """The kind of noise to try first for "auto", by the type of the model (fitted or not).

    One that may have a formula for it, if `formula` is asked for; else the least noise for the metric's p.
    """
    kind, without = type(last_step(model)), without_formula(p)
    if not formula:
        return without
    if kind in LINEAR_CLASSIFIERS and ballot.vote == "hard" and ballot.n_outputs == 2:
        return Gaussian
    has_leaves = kind in SINGLE_TREES or kind in BOOSTED or (kind in FORESTS and ballot.vote != "hard")
    return Uniform if has_leaves and p == 1 else without


def without_formula(p: float) -> type[Noise]:
    """The kind of noise for "auto" where the model has to be evaluated."""
    return Splitting if p == 1 else Gaussian


def has_formula(model: Any, bank: Bank, ballot: Ballot) -> bool:
    """Whether the fitted model's smoothed votes have a formula under this noise."""
    return _formula(model, bank, ballot) is not None


def _formula(model: Any, bank: Bank, ballot: Ballot) -> LinearVotes | TreeVotes | None:
    if ballot.vote == "hard":
        linear = LinearVotes.from_model(model, bank)
        if linear is not None:
            return linear
    return TreeVotes.from_model(model, bank, vote=ballot.vote, limits=ballot.limits if ballot.vote == "value" else None)


def _scorer(model: Any, ballot: Ballot, n_jobs: int | None) -> Scorer:
    network = None if ballot.vote == "trees" or ballot.decode is not None else _network(model, ballot)
    if network is not None and len(network.weights) > 1:
        return NetworkScorer(network, n_jobs)
    return CallScorer(_unit_votes(ballot.of(model), ballot.limits), is_rowwise(model))


def _network(model: Any, ballot: Ballot) -> Network | None:
    return Network.from_model(model, kind=ballot.vote, n_outputs=ballot.n_outputs, limits=ballot.limits)


def _unit_votes(vote: Vote, limits: tuple[float, float]) -> Vote:
    """Votes in units of their range."""
    low, high = limits
    if limits == (0.0, 1.0):
        return vote
    return lambda rows: np.clip((vote(rows) - low) / (high - low), 0.0, 1.0)


def _distinct(people: npt.NDArray[np.generic]) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.intp]]:
    """Distinct rows, and for each row its number among them: equal people are scored once."""
    rows = np.ascontiguousarray(people)
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, where = np.unique(keys, return_index=True, return_inverse=True)
    return rows[first], where
