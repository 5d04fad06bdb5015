"""Draws of a perturbation, and votes averaged over them: a fixed number, or as many as each person needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from likewise._frozen import Frozen
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.exceptions import UnprovableError
from likewise.inspection.prediction import Vote
from likewise.kernel.certificate import Estimate
from likewise.kernel.concentration import Schedule
from likewise.kernel.evidence import Numbers
from likewise.kernel.metric import BoundMetric
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

    metric: BoundMetric
    """What it was made for."""

    noise: Noise | None
    """Noise on the numeric columns; None if all of them have weight 0."""

    numbers: Numbers | None
    """The same, as it is drawn."""

    visible: BoolArray
    """Columns of numbers that get noise."""

    @property
    def kept(self) -> FloatArray:
        """Probability per column that the person's own value, with noise or not, is kept."""
        return self.visible.astype(np.float64)

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


class NumberNoise(Perturbation):
    """Noise on rows of numbers alone."""

    noise: Noise
    steps: FloatArray | None
    """Of the grids of a splitting (0: none)."""

    @property
    def metric(self) -> BoundMetric:  # type: ignore[override]
        """That of the noise."""
        if not isinstance(self.noise.metric, BoundMetric):
            raise UnprovableError(f"{self.noise!r} is about columns by their position, and not bound to those of X.")
        return self.noise.metric

    @property
    def numbers(self) -> Self:  # type: ignore[override]
        """Itself."""
        return self

    @property
    def visible(self) -> BoolArray:  # type: ignore[override]
        """Those of positive weight."""
        return self.noise.visible


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
class SharedDraws(NumberNoise):
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

    steps: ClassVar[None] = None  # type: ignore[misc]

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


def mean_votes(
    votes: VoteSums, people: npt.NDArray[np.generic], perturbation: Perturbation, n_draws: int, *, advance: Advance
) -> FloatArray:
    """Average the votes for each (prepared) person over the first `n_draws` draws."""
    total: FloatArray | float = 0.0
    for _, draws in perturbation.iter_draws([n_draws]):
        total = total + votes.sums(draws, people)[0]
        advance(len(draws) * len(people))
    return np.asarray(total / n_draws)


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
