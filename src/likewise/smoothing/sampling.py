"""Votes averaged over draws: a fixed number of them, or as many as each person needs."""

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
from likewise.guarantees.bounds import Bound
from likewise.guarantees.certificate import Estimate
from likewise.guarantees.sample_size import clopper_pearson, empirical_bernstein, subset_margin
from likewise.inspection.prediction import Vote
from likewise.smoothing.noise import Noise

Seen = npt.NDArray[np.float64] | npt.NDArray[np.int64]
"""What the draws see of people, one row each."""


class Draws(Protocol):
    """Some draws of a perturbation, the same for everyone."""

    def __len__(self) -> int: ...

    def apply(self, person: Seen) -> FloatArray:
        """Perturb one person, a row of `Perturbation.corners`; shape (n_draws, n_features)."""
        ...


class Perturbation(Frozen, ABC):
    """A kind of noise, ready for use: all its draws follow from what `fit` has stored."""

    noise: Noise | None
    """On the numbers, if any of them matters."""

    @property
    @abstractmethod
    def curve(self) -> Bound:
        """How far the laws of two perturbed people can be apart."""

    @property
    def n_fixed(self) -> int | None:
        """How many draws there are, if nothing is random; else None."""
        return None

    @abstractmethod
    def prepare(self, rows: FloatArray) -> FloatArray:
        """Reduce people to what the draws may see of them: two people with equal rows here get equal votes."""

    def corners(self, seen: FloatArray) -> tuple[Seen, IntArray, FloatArray]:
        """Rows to score, whose they are, and in which shares; one each, unless someone is between points of a grid.

        Returns
        -------
        rows : ndarray of shape (n_rows, n_seen)
        owner : ndarray of shape (n_rows,)
            Positions among the people, ascending.
        share : ndarray of shape (n_rows,)
            Adding up to 1 for each person.
        """
        return seen, np.arange(len(seen)), np.ones(len(seen))

    @abstractmethod
    def parts(self, edges: list[int]) -> Iterator[tuple[int, Draws]]:
        """Yield the draws up to ``edges[-1]`` in order, cut at every edge; each with the number of its last draw."""

    def landmarks(self, n_columns: int) -> list[FloatArray]:
        """Numbers, per column of coded people, at which a cell ends, as far as there are any."""
        return [np.empty(0)] * n_columns

    @abstractmethod
    def perturb(self, rows: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Perturb each person once, by a draw of their own; shape (n_samples, n_features)."""


@dataclass(frozen=True, eq=False)
class Shift:
    """Draws of the form ``x * keep + t``: noise on what is kept, other people's values in place of what is not.

    Attributes
    ----------
    keep : ndarray of bool, shape (n_features,) or (n_draws, n_features)
        Whether the person's own value stays. Where it does not, it never reaches the model.
    t : ndarray of shape (n_draws, n_features)
        What is added.
    """

    keep: BoolArray
    t: FloatArray

    def __len__(self) -> int:
        return len(self.t)

    def apply(self, person: Seen) -> FloatArray:
        """Perturb one person."""
        return np.where(self.keep, person, 0.0) + self.t


# Draws come in chunks of this size, each from its own seed. It bounds memory, and it is part of the definition
# of the bank: a prediction must not depend on how the work was cut.
CHUNK = 4096


@dataclass(frozen=True, eq=False)
class SharedDraws(Perturbation):
    """Perturbations of people: noise on the features that matter, other people's values on those that must not.

    A person x becomes ``x * noise.visible + t`` for each row t of the bank. For a feature of weight 0, t holds
    values of the training data's column, drawn independently of x, so the model cannot see the person's own.
    Several such columns are drawn together, from one row, so that their combinations are real ones.

    Attributes
    ----------
    noise : Noise
    background : ndarray of shape (n_rows, n_hidden)
        Training values of the columns with weight 0.
    seed : int
        All draws follow from it; the bank itself is never stored.
    """

    noise: Noise
    background: FloatArray
    seed: int

    @property
    def curve(self) -> Noise:
        """That of the noise."""
        return self.noise

    @classmethod
    def from_training_data(cls, noise: Noise, X: FloatArray, seed: int) -> SharedDraws:
        """Make a bank whose background are the columns of `X` that must not matter."""
        return cls(noise, X[:, ~noise.visible].copy(), seed)

    def fresh(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` perturbations with `rng`; shape (n, n_features)."""
        t = self.noise.sample(n, rng)
        hidden = ~self.noise.visible
        if hidden.any():
            t[:, hidden] = self.background[rng.integers(len(self.background), size=n)]
        return t

    def chunks(self, n_draws: int) -> Iterator[FloatArray]:
        """Yield the first `n_draws` draws of the bank, a chunk at a time."""
        for i, start in enumerate(range(0, n_draws, CHUNK)):
            rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(i,)))
            yield self.fresh(CHUNK, rng)[: n_draws - start]

    def parts(self, edges: list[int]) -> Iterator[tuple[int, Draws]]:
        """Yield the draws up to ``edges[-1]`` in order, cut at every edge and at every chunk."""
        for i, chunk in enumerate(self.chunks(edges[-1])):
            start, stop = i * CHUNK, i * CHUNK + len(chunk)
            cuts = [start, *(edge for edge in edges if start < edge < stop), stop]
            for a, b in pairwise(cuts):
                yield b, Shift(self.noise.visible, chunk[a - start : b - start])

    def prepare(self, rows: FloatArray) -> FloatArray:
        """People with 0 in the columns that must not matter, ready for adding perturbations."""
        return rows if self.noise.visible.all() else np.where(self.noise.visible, rows, 0.0)

    def perturb(self, rows: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Perturb each person once, by a fresh draw of their own."""
        return self.prepare(rows) + self.fresh(len(rows), rng)


_ROWS_PER_CALL, _CELLS_PER_CALL = 65_536, 2**20


class VoteSums(Protocol):
    """Sums votes over draws. What a person gets depends on the person and the draws, on nothing else."""

    def sums(self, draws: Draws, people: npt.NDArray[np.generic]) -> tuple[FloatArray, FloatArray]:
        """Sums of votes, and of squared votes, over `draws` per person; each (n_people, n_outputs)."""
        ...


@dataclass(frozen=True)
class CalledVotes:
    """Calls the model: works for every model.

    Attributes
    ----------
    vote : Vote
    shared : bool
        Whether a row's votes have the same bits wherever the row stands (`likewise.smoothing.scorers`). Then
        `vote` is asked about many people at once; otherwise about one person, so that nobody's votes depend on who
        else is asked about.
    """

    vote: Vote
    shared: bool

    def sums(self, draws: Draws, people: npt.NDArray[np.generic]) -> tuple[FloatArray, FloatArray]:
        """Sums of votes, and of squared votes, over `draws` per person."""
        most = min(_ROWS_PER_CALL, _CELLS_PER_CALL // max(1, people.shape[1]))
        per_call = max(1, most // len(draws)) if self.shared else 1
        totals, squares = [], []
        for start in range(0, len(people), per_call):
            rows = [draws.apply(person) for person in people[start : start + per_call]]
            # One person at a time, and row after row in memory: the order of a sum must not depend on how many people
            # share the call, nor on how the model lays out its answer.
            votes = np.ascontiguousarray(self.vote(np.concatenate(rows) if len(rows) > 1 else rows[0]))
            for first in range(0, len(votes), len(draws)):
                own = votes[first : first + len(draws)]
                totals.append(own.sum(axis=0))
                squares.append((own * own).sum(axis=0))
        return np.array(totals), np.array(squares)


Advance = Callable[[int], None]

_N_LOOKS = 16
_ROUND_TO = 256  # looks come at multiples of it, which suits the tiles of `likewise.smoothing.mlp_forward`


def mean_votes(
    votes: VoteSums, people: npt.NDArray[np.generic], perturbation: Perturbation, n_draws: int, *, advance: Advance
) -> FloatArray:
    """Average the votes for each (prepared) person over the first `n_draws` draws."""
    total: FloatArray | float = 0.0
    for _, draws in perturbation.parts([n_draws]):
        total = total + votes.sums(draws, people)[0]
        advance(len(draws) * len(people))
    return np.asarray(total / n_draws)


@dataclass(frozen=True)
class Schedule:
    """When to look whether a person's votes suffice, and how much of delta each look may spend.

    Looks come at ``edges[0] < edges[1] < ...`` draws. At each, an interval is wrong with probability at most its
    share of ``delta / 2``, so all intervals of all looks hold at once with probability ``1 - delta / 2``, whatever
    makes a person stop (`docs/theory.md` §5). The last look spends half; there Hoeffding's inequality alone gives
    an error of ``epsilon / 2``, so everyone stops.

    Attributes
    ----------
    epsilon, delta : float
        Promise per pair. Per person the error in total variation is ``epsilon / 2``, except with ``delta / 2``.
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
    def edges(self) -> list[int]:
        """Numbers of draws at which to look; the last is the most that anyone needs."""
        log_sets = float(np.log(2.0**self.n_outputs - 2)) if self.n_outputs > 1 else float(np.log(2))
        last = (log_sets - np.log(self.delta / 4)) / (2 * (self.epsilon / 2) ** 2)
        # The first look at which votes that all agree suffice.
        share = self._early_share / max(1, self.n_outputs if self.n_outputs > 2 else 1)
        first = (np.log(2 / share) if self.hard else 7 / 3 * np.log(4 / share) + 1) / (self.epsilon / 2)
        steps = np.geomspace(min(first, last), last, _N_LOOKS)
        return sorted({int(np.ceil(n / _ROUND_TO * (1 + 1e-12))) * _ROUND_TO for n in steps})

    @property
    def _early_share(self) -> float:
        return self.delta / 4 / (_N_LOOKS - 1)

    def interval(self, mean: FloatArray, squares: FloatArray, n: int, *, last: bool) -> tuple[FloatArray, FloatArray]:
        """Interval for each person and output at a look after `n` draws; `mean` and `squares` are means in [0, 1]."""
        if last:
            margin = subset_margin(n, self.delta / 4, max(2, self.n_outputs))
            return np.clip(mean - margin, 0, 1), np.clip(mean + margin, 0, 1)
        # Two classes have one free probability; otherwise the intervals share (union bound).
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
    """Average the votes for each (prepared) person over as many draws as the schedule asks for.

    Votes must lie in [0, 1]. When a person stops depends on that person's votes alone, so the result is the same
    in any batch.
    """
    edges, m = schedule.edges, schedule.n_outputs
    total, squares = np.zeros((len(people), m)), np.zeros((len(people), m))
    empty = np.empty((3, len(people), m))
    out = Estimate(empty[0], empty[1], empty[2], np.zeros(len(people), dtype=np.int64))
    active = np.arange(len(people))
    for n, draws in perturbation.parts(edges):
        sums, sums_of_squares = votes.sums(draws, people[active])
        total[active] += sums
        squares[active] += sums_of_squares
        advance(len(draws) * len(active))
        if n not in edges:
            continue
        mean = np.clip(total[active] / n, 0.0, 1.0)
        lower, upper = schedule.interval(mean, squares[active] / n, n, last=n == edges[-1])
        done = schedule.suffices(mean, lower, upper) | (n == edges[-1])
        stopped = active[done]
        out.mean[stopped], out.lower[stopped], out.upper[stopped] = mean[done], lower[done], upper[done]
        out.n_draws[stopped] = n
        advance((edges[-1] - n) * len(stopped))
        active = active[~done]
        if not len(active):
            break
    return out
