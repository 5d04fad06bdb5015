"""Draws of a perturbation, and votes averaged over them: a fixed number, or as many as each person needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from likewise._frozen import Frozen
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.inspection.prediction import Vote
from likewise.kernel.bounds import Bound
from likewise.kernel.certificate import Estimate
from likewise.kernel.concentration import clopper_pearson, empirical_bernstein, subset_margin
from likewise.smoothing.noise import Noise

PreparedRow = npt.NDArray[np.float64] | npt.NDArray[np.int64]
"""A row, or rows, of `Perturbation.corners`."""


class Draws(Protocol):
    """Some draws of a perturbation, the same for everyone."""

    def __len__(self) -> int: ...

    def apply(self, person: PreparedRow) -> FloatArray:
        """Perturb one person; shape (n_draws, n_features)."""
        ...


class Perturbation(Frozen, ABC):
    """Noise fitted to training data; all its draws follow from what `fit` has stored."""

    noise: Noise | None
    """Noise on the numeric columns; None if all of them have weight 0."""

    @property
    @abstractmethod
    def curve(self) -> Bound:
        """Bound on the total variation between two perturbed people."""

    @property
    def n_fixed(self) -> int | None:
        """Number of draws of a deterministic perturbation; None if draws are random."""
        return None

    @abstractmethod
    def prepare(self, rows: FloatArray) -> FloatArray:
        """Reduce people to what the draws depend on: equal rows here get equal votes."""

    def corners(self, prepared: FloatArray) -> tuple[PreparedRow, IntArray, FloatArray]:
        """Rows to score, the person each belongs to (ascending), and its share in that person's average.

        One row per person, except for values between two points of a grid.
        """
        return prepared, np.arange(len(prepared)), np.ones(len(prepared))

    @abstractmethod
    def iter_draws(self, stops: list[int]) -> Iterator[tuple[int, Draws]]:
        """Yield the draws up to ``stops[-1]`` in order, cut at every stop; each with the number of its last draw."""

    def breakpoints(self, n_columns: int) -> list[FloatArray]:
        """Cell borders per column of encoded people, where there are any."""
        return [np.empty(0)] * n_columns

    @abstractmethod
    def perturb(self, rows: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Perturb each person once, by a draw of their own; shape (n_samples, n_features)."""


@dataclass(frozen=True, eq=False)
class Shift:
    """Draws ``x * keep + t``, with `keep` of shape (n_features,) and `t` of shape (n_draws, n_features)."""

    keep: BoolArray
    t: FloatArray

    def __len__(self) -> int:
        return len(self.t)

    def apply(self, person: PreparedRow) -> FloatArray:
        """Perturb one person."""
        return np.where(self.keep, person, 0.0) + self.t


# Draws come in chunks of this size, each from its own seed. It bounds memory, and it is part of the definition of the
# draws: a prediction must not depend on how the work is divided.
CHUNK = 4096


@dataclass(frozen=True, eq=False)
class SharedDraws(Perturbation):
    """Random draws shared by all people: noise on features of positive weight, training values for the others.

    A row x becomes ``x * noise.visible + t`` for each draw t. For a feature of weight 0, t holds a training value drawn
    independently of x, so the model cannot see the person's own; all such features of a draw come from one training
    row, so that their combinations are real.

    Attributes
    ----------
    noise : Noise
    background : ndarray of shape (n_rows, n_hidden)
        Training values of the columns with weight 0.
    seed : int
        Determines all draws, which are never stored.
    """

    noise: Noise
    background: FloatArray
    seed: int

    @property
    def curve(self) -> Bound:
        """The bound of the noise."""
        return self.noise.curve

    @classmethod
    def from_training_data(cls, noise: Noise, X: FloatArray, seed: int) -> SharedDraws:
        """Take the background from the columns of `X` with weight 0."""
        return cls(noise, X[:, ~noise.visible].copy(), seed)

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` perturbations; shape (n, n_features)."""
        t = self.noise.sample(n, rng)
        hidden = ~self.noise.visible
        if hidden.any():
            t[:, hidden] = self.background[rng.integers(len(self.background), size=n)]
        return t

    def iter_draws(self, stops: list[int]) -> Iterator[tuple[int, Draws]]:
        """Yield the draws up to ``stops[-1]`` in order, cut at every stop and at every chunk."""
        for i, start in enumerate(range(0, stops[-1], CHUNK)):
            rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(i,)))
            chunk = self.sample(CHUNK, rng)
            end = min(start + CHUNK, stops[-1])
            for a, b in pairwise([start, *(stop for stop in stops if start < stop < end), end]):
                yield b, Shift(self.noise.visible, chunk[a - start : b - start])

    def prepare(self, rows: FloatArray) -> FloatArray:
        """Rows with 0 in the columns of weight 0."""
        return rows if self.noise.visible.all() else np.where(self.noise.visible, rows, 0.0)

    def perturb(self, rows: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Perturb each person once, by a draw of their own."""
        return self.prepare(rows) + self.sample(len(rows), rng)


_MAX_ROWS_PER_CALL, _MAX_VALUES_PER_CALL = 65_536, 2**20


class VoteSums(Protocol):
    """Sums of votes over draws, which depend on the person and the draws alone."""

    def sums(self, draws: Draws, people: npt.NDArray[np.generic]) -> tuple[FloatArray, FloatArray]:
        """Sums of votes, and of squared votes, over `draws` per person; each (n_people, n_outputs)."""
        ...


@dataclass(frozen=True)
class CalledVotes:
    """Votes of any model, by calling it.

    Attributes
    ----------
    vote : Vote
    shared : bool
        Whether a call may hold rows of several people: only if a row's votes have the same bits at any position
        (`likewise.smoothing.scorers.BatchPlan`).
    """

    vote: Vote
    shared: bool

    def sums(self, draws: Draws, people: npt.NDArray[np.generic]) -> tuple[FloatArray, FloatArray]:
        """Sums of votes, and of squared votes, over `draws` per person."""
        max_rows = min(_MAX_ROWS_PER_CALL, _MAX_VALUES_PER_CALL // max(1, people.shape[1]))
        per_call = max(1, max_rows // len(draws)) if self.shared else 1
        totals, squares = [], []
        for start in range(0, len(people), per_call):
            rows = [draws.apply(person) for person in people[start : start + per_call]]
            # One person at a time, in C order: the order of a sum must not depend on how many people share the call,
            # nor on the memory layout of the model's output.
            votes = np.ascontiguousarray(self.vote(np.concatenate(rows) if len(rows) > 1 else rows[0]))
            for first in range(0, len(votes), len(draws)):
                own = votes[first : first + len(draws)]
                totals.append(own.sum(axis=0))
                squares.append((own * own).sum(axis=0))
        return np.array(totals), np.array(squares)


Advance = Callable[[int], None]

_N_LOOKS = 16
_ROUND_TO = 256  # looks are at multiples of it, which suits the tiles of `likewise.smoothing.mlp_forward`


def mean_votes(
    votes: VoteSums, people: npt.NDArray[np.generic], perturbation: Perturbation, n_draws: int, *, advance: Advance
) -> FloatArray:
    """Average the votes for each (prepared) person over the first `n_draws` draws."""
    total: FloatArray | float = 0.0
    for _, draws in perturbation.iter_draws([n_draws]):
        total = total + votes.sums(draws, people)[0]
        advance(len(draws) * len(people))
    return np.asarray(total / n_draws)


@dataclass(frozen=True)
class Schedule:
    """A group-sequential stopping rule: interim looks after ``looks[0] < looks[1] < ...`` draws.

    At each look an interval fails with probability at most its share of ``delta / 2``, so all intervals of all looks
    hold at once with probability ``1 - delta / 2``, whatever makes a person stop (`docs/theory.md` §5). The last look
    spends half; there Hoeffding's inequality alone gives an error of ``epsilon / 2``, so everyone stops.

    Attributes
    ----------
    epsilon, delta : float
        Guarantee per pair. Per person the error in total variation is ``epsilon / 2``, except with ``delta / 2``.
    n_outputs : int
        Classes, or 1 for regression.
    hard : bool
        Whether votes are 0 or 1 (Clopper-Pearson intervals) or in between (empirical Bernstein).
    """

    epsilon: float
    delta: float
    n_outputs: int
    hard: bool

    @property
    def looks(self) -> list[int]:
        """Numbers of draws at the looks; the last is the most that anyone needs."""
        log_sets = float(np.log(2.0**self.n_outputs - 2)) if self.n_outputs > 1 else float(np.log(2))
        last = (log_sets - np.log(self.delta / 4)) / (2 * (self.epsilon / 2) ** 2)
        # The first look at which unanimous votes suffice.
        share = self._early_share / max(1, self.n_outputs if self.n_outputs > 2 else 1)
        first = (np.log(2 / share) if self.hard else 7 / 3 * np.log(4 / share) + 1) / (self.epsilon / 2)
        steps = np.geomspace(min(first, last), last, _N_LOOKS)
        return sorted({int(np.ceil(n / _ROUND_TO * (1 + 1e-12))) * _ROUND_TO for n in steps})

    @property
    def _early_share(self) -> float:
        return self.delta / 4 / (_N_LOOKS - 1)

    def interval(self, mean: FloatArray, squares: FloatArray, n: int, *, last: bool) -> tuple[FloatArray, FloatArray]:
        """Interval per person and output after `n` draws, from the means of votes and of squared votes."""
        if last:
            margin = subset_margin(n, self.delta / 4, max(2, self.n_outputs))
            return np.clip(mean - margin, 0, 1), np.clip(mean + margin, 0, 1)
        # Two classes have one free probability; otherwise a union bound over the classes.
        share = self._early_share / (self.n_outputs if self.n_outputs > 2 else 1)
        if self.hard:
            return clopper_pearson(mean, n, share)
        return empirical_bernstein(mean, squares, n, share)

    def suffices(self, mean: FloatArray, lower: FloatArray, upper: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether the total variation between the sampled and the true probabilities is at most epsilon / 2."""
        error = np.maximum(upper - mean, mean - lower)
        variation = error[:, 0] if self.n_outputs == 1 else error.sum(axis=1) / 2
        return np.asarray(variation <= self.epsilon / 2)


def adaptive_votes(
    votes: VoteSums,
    people: npt.NDArray[np.generic],
    perturbation: Perturbation,
    schedule: Schedule,
    *,
    advance: Advance,
) -> Estimate:
    """Average votes in [0, 1] for each (prepared) person, over as many draws as the schedule asks for.

    When a person stops depends on that person's votes alone, so results do not depend on the batch.
    """
    looks, m = schedule.looks, schedule.n_outputs
    total, squares = np.zeros((len(people), m)), np.zeros((len(people), m))
    empty = np.empty((3, len(people), m))
    out = Estimate(empty[0], empty[1], empty[2], np.zeros(len(people), dtype=np.int64))
    active = np.arange(len(people))
    for n, draws in perturbation.iter_draws(looks):
        sums, sums_of_squares = votes.sums(draws, people[active])
        total[active] += sums
        squares[active] += sums_of_squares
        advance(len(draws) * len(active))
        if n not in looks:
            continue
        mean = np.clip(total[active] / n, 0.0, 1.0)
        lower, upper = schedule.interval(mean, squares[active] / n, n, last=n == looks[-1])
        done = schedule.suffices(mean, lower, upper) | (n == looks[-1])
        stopped = active[done]
        out.mean[stopped], out.lower[stopped], out.upper[stopped] = mean[done], lower[done], upper[done]
        out.n_draws[stopped] = n
        advance((looks[-1] - n) * len(stopped))
        active = active[~done]
        if not len(active):
            break
    return out
