"""Perturbed rows of a table: noise on numbers, keep-or-resample on everything else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from likewise._typing import BoolArray, FloatArray
from likewise.enforce.smoothing.bank import CHUNK, Bank
from likewise.enforce.smoothing.cells import LEAST_DRAWS, Cells, permutation
from likewise.enforce.smoothing.draws import Draws
from likewise.enforce.smoothing.noises import Splitting
from likewise.enforce.smoothing.table_noise import TableNoise
from likewise.metrics.coding import TableCoding


@dataclass(frozen=True, eq=False)
class Mixed:
    """Perturbations of a coded table (`likewise.metrics.coding.TableCoding`).

    - A number of positive weight gets noise. A missing one stays missing.
    - Any other value is kept with probability equal to its weight (never, for a column that must not matter), and
      otherwise replaced by that of a training row, the same row for all columns of a draw, so that
      combinations are real. An unseen category is always replaced: the model never meets it.
    - A number whose absence has a weight below 1 gets noise and is then kept or replaced in the same way.

    Two people who share the draws get different rows only where the noise tells their numbers apart or a column in
    which they mismatch is kept: ``TV <= noise.bound(D_numeric) + sum of mismatch weights`` (`docs/theory.md` §9).

    Attributes
    ----------
    noise : TableNoise
    numbers : Bank, Cells or None
        Noise on the visible numeric columns, if there are any.
    visible, categorical, replaceable : ndarray of bool, shape (n_columns,)
        Numbers of positive weight; categories; whatever is kept or replaced.
    keep : ndarray of shape (n_replaceable,)
        Probability that the person's own value stays.
    background : ndarray of shape (n_rows, n_replaceable)
        Training values of these columns.
    fill : ndarray of shape (n_visible,)
        A training value that stands in for a missing number while noise is added.
    n_draws : int
        K of a splitting; not used otherwise.
    seed : int
    """

    noise: TableNoise
    numbers: Bank | Cells | None
    visible: BoolArray
    categorical: BoolArray
    replaceable: BoolArray
    keep: FloatArray
    background: FloatArray
    fill: FloatArray
    n_draws: int
    seed: int

    @classmethod
    def from_training_data(
        cls,
        noise: TableNoise,
        X: FloatArray,
        coding: TableCoding,
        seed: int,
        *,
        n_draws: int | None = None,
        epsilon: float = 0.01,
    ) -> Mixed:
        """Learn from a coded table; `n_draws` and `epsilon` are for splitting, as in `Cells`."""
        metric, names = noise.metric, coding.names
        visible = np.array([metric.numeric.get(name, 0.0) > 0 for name in names])
        weights = np.array([metric.numeric.get(n, metric.categorical.get(n, 0.0)) for n in names])
        missing = np.array([metric.missing.get(name, 1.0) for name in names])
        keep = np.where(coding.is_numeric, np.where(visible, missing, 0.0), weights)
        replaceable = ~coding.is_numeric | (keep < 1)
        fill = np.array([_middle(column) for column in X[:, visible].T])
        shown = np.where(np.isnan(X[:, visible]), fill, X[:, visible]) if visible.any() else X[:, visible]
        numbers: Bank | Cells | None = None
        if isinstance(noise.numbers, Splitting):
            numbers = Cells.from_training_data(noise.numbers, shown, n_draws=n_draws, epsilon=epsilon)
        elif noise.numbers is not None:
            numbers = Bank.from_training_data(noise.numbers, shown, seed)
        K = numbers.n_draws if isinstance(numbers, Cells) else n_draws or LEAST_DRAWS
        background = X[:, replaceable].copy()
        return cls(
            noise, numbers, visible, ~coding.is_numeric, replaceable, keep[replaceable], background, fill, K, seed
        )

    @property
    def is_deterministic(self) -> bool:
        """Whether nothing is random: all K draws of a splitting are used."""
        return self.noise.is_splitting

    @property
    def epsilon(self) -> float:
        """What a splitting of the numbers adds to the distance; mismatches add nothing."""
        return self.numbers.epsilon if isinstance(self.numbers, Cells) else 0.0

    def prepare(self, X: FloatArray) -> FloatArray:
        """People as the draws see them: numbers, codes of the categories that may be seen, what is missing."""
        numbers = X[:, self.visible]
        absent = np.isnan(numbers)
        codes = X[:, self.categorical]
        hidden = self.keep[self.categorical[self.replaceable]] == 0
        parts = [np.where(hidden, 0.0, codes), absent.astype(np.float64)]
        if self.numbers is not None:
            parts.insert(0, self.numbers.prepare(np.where(absent, self.fill, numbers)).astype(np.float64))
        return np.ascontiguousarray(np.hstack(parts))

    def parts(self, edges: list[int]) -> Iterator[tuple[int, Draws]]:
        """Yield the draws up to ``edges[-1]`` in order, cut at every edge."""
        for start, stop, draws in self._numbers_parts(edges):
            keep, background = self._replacements(np.arange(start, stop))
            yield stop, MixedDraws(self, draws, keep, background)

    def perturb(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Perturb each person once, by a draw of their own."""
        n = len(X)
        rows = X.copy()
        absent = np.isnan(X[:, self.visible])
        if self.is_deterministic:
            chosen = rng.integers(self.n_draws, size=n)
            keep, background = self._replacements(chosen)
        else:
            keep = rng.random((n, len(self.keep))) < self.keep
            background = self.background[rng.integers(len(self.background), size=n)]
        if self.numbers is not None:
            filled = np.where(absent, self.fill, X[:, self.visible])
            noisy = (
                self.numbers.perturb_by(filled, chosen)
                if isinstance(self.numbers, Cells)
                else self.numbers.perturb(filled, rng)
            )
            rows[:, self.visible] = np.where(absent, np.nan, noisy)
        own = rows[:, self.replaceable]
        unseen = self.categorical[self.replaceable] & (own < 0)
        rows[:, self.replaceable] = np.where(keep & ~unseen, own, background)
        return rows

    def _numbers_parts(self, edges: list[int]) -> Iterator[tuple[int, int, Draws | None]]:
        if self.numbers is not None:
            for stop, draws in self.numbers.parts(edges):
                yield stop - len(draws), stop, draws
        else:
            cuts = sorted({0, *edges, *range(0, edges[-1], CHUNK)})
            yield from ((a, b, None) for a, b in pairwise(cuts))

    def _replacements(self, draws: npt.NDArray[np.int64]) -> tuple[BoolArray, FloatArray]:
        """What each of these draws keeps, and what it puts in place of the rest."""
        if self.is_deterministic:
            K = self.n_draws
            # Kept in floor(K w) of the K draws, so two different values are told apart in at most a share w of them.
            counts = [int(Fraction(float(w)) * K) for w in self.keep]
            orders = [permutation(K, 10_000 + c)[draws] for c in range(len(counts))]
            keep = np.stack([order < n for order, n in zip(orders, counts, strict=True)], axis=1) if counts else None
            rows = permutation(K, -2)[draws] * len(self.background) // K
            return np.zeros((len(draws), 0), dtype=bool) if keep is None else keep, self.background[rows]
        # Random draws come in chunks, each from its own seed; a part never crosses a chunk.
        chunk = int(draws[0]) // CHUNK
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(chunk, 1)))
        keep = rng.random((CHUNK, len(self.keep))) < self.keep
        rows = rng.integers(len(self.background), size=CHUNK)
        within = draws - chunk * CHUNK
        return keep[within], self.background[rows[within]]


@dataclass(frozen=True, eq=False)
class MixedDraws:
    """Some draws of a `Mixed` perturbation."""

    mixed: Mixed
    numbers: Draws | None
    keep: BoolArray
    background: FloatArray

    def __len__(self) -> int:
        return len(self.keep)

    def apply(self, person: npt.NDArray[np.generic]) -> FloatArray:
        """Perturb one person; shape (n_draws, n_columns)."""
        mixed = self.mixed
        n_visible, n_codes = int(mixed.visible.sum()), int(mixed.categorical.sum())
        own_numbers, codes, absent = np.split(
            np.asarray(person), [len(person) - n_visible - n_codes, len(person) - n_visible]
        )
        rows = np.zeros((len(self), len(mixed.visible)))
        if self.numbers is not None:
            if isinstance(mixed.numbers, Cells):
                own_numbers = own_numbers.astype(np.int64)
            noisy = self.numbers.apply(own_numbers)
            noisy[:, absent > 0] = np.nan
            rows[:, mixed.visible] = noisy
        rows[:, mixed.categorical] = codes
        known = np.ones(len(mixed.visible), dtype=bool)
        known[mixed.categorical] = codes >= 0
        own = rows[:, mixed.replaceable]
        rows[:, mixed.replaceable] = np.where(self.keep & known[mixed.replaceable], own, self.background)
        return rows


def _middle(column: FloatArray) -> float:
    """A number that occurs in the column, near its median; 0 if it has none."""
    present = column[~np.isnan(column)]
    return float(np.quantile(present, 0.5, method="lower")) if len(present) else 0.0
