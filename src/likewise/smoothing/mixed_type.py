"""Perturbed rows of a table: noise on numeric columns, keep-or-resample on all others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.exceptions import InvalidInputError
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import Encoder
from likewise.metrics.weighted_lp import WeightedLp
from likewise.smoothing.noise import Noise, Splitting
from likewise.smoothing.sampling import CHUNK, Draws, Perturbation, PreparedRow, SharedDraws
from likewise.smoothing.splitting import MIN_DRAWS, ShiftedGrids, permutation


@dataclass(frozen=True, eq=False)
class MixedTypeNoise(Perturbation):
    """Perturbations of an encoded table (`likewise.kernel.schema.TableEncoder`).

    - A number of positive weight gets noise. A missing one stays missing.
    - Any other value is kept with probability equal to its weight (0 for a column that must not matter), and otherwise
      replaced by that of a training row; one row serves all columns of a draw, so that combinations are real. Unseen
      categories are always replaced: the model never meets them.
    - A number whose missingness has a weight below 1 gets noise and is then kept or replaced in the same way.

    ``TV <= noise.curve.bound(D_numeric) + sum of mismatch weights`` (`docs/theory.md` §9).

    Attributes
    ----------
    metric : BoundMetric
    deterministic : bool
        Whether all K draws of a splitting are used.
    numbers : SharedDraws, ShiftedGrids or None
        Noise on the visible numeric columns, if there are any.
    visible, categorical, replaceable : ndarray of bool, shape (n_columns,)
        Numbers of positive weight; categories; columns that are kept or replaced.
    keep : ndarray of shape (n_replaceable,)
        Probability of keeping the person's own value.
    background : ndarray of shape (n_rows, n_replaceable)
        Training values of these columns.
    fill : ndarray of shape (n_visible,)
        A training value that stands in for a missing number while noise is added.
    n_draws : int
        K of a splitting; not used otherwise.
    seed : int
    """

    metric: BoundMetric
    deterministic: bool
    numbers: SharedDraws | ShiftedGrids | None
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
        kind: type[Noise],
        rows: FloatArray,
        encoder: Encoder,
        weights: BoundMetric,
        seed: int,
        *,
        n_draws: int | None = None,
        epsilon: float = 0.01,
    ) -> MixedTypeNoise:
        """Fit to encoded rows; `n_draws` and `epsilon` are for splitting, as in `ShiftedGrids`."""
        if not weights.matters.any():
            raise InvalidInputError(
                "weights are all 0: only a constant model satisfies this metric. Give at least one column a positive "
                "weight."
            )
        visible = weights.is_number & weights.matters
        keep = np.where(
            visible, np.nan_to_num(weights.missing, nan=1.0), np.where(weights.is_number, 0.0, weights.scales)
        )
        replaceable = ~weights.is_number | (keep < 1)
        fill = np.array([_lower_median(column) for column in rows[:, visible].T])
        numbers: SharedDraws | ShiftedGrids | None = None
        if visible.any():
            names = [name for name, used in zip(encoder.names, visible, strict=True) if used]
            noise = kind.for_metric(WeightedLp(weights.weights[visible], weights.p, feature_names=names))
            filled = np.where(np.isnan(rows[:, visible]), fill, rows[:, visible])
            numbers = numeric_perturbation(noise, filled, seed, n_draws=n_draws, epsilon=epsilon)
        K = numbers.n_draws if isinstance(numbers, ShiftedGrids) else n_draws or MIN_DRAWS
        background = rows[:, replaceable].copy()
        return cls(
            weights, issubclass(kind, Splitting), numbers, visible, ~weights.is_number, replaceable,
            keep[replaceable], background, fill, K, seed,
        )  # fmt: skip

    @property
    def noise(self) -> Noise | None:  # type: ignore[override]
        """Noise on the numeric columns; None if all of them have weight 0."""
        return None if self.numbers is None else self.numbers.noise

    @property
    def kept(self) -> FloatArray:
        """1 for numbers with noise that are not replaced as well."""
        out = np.ones(len(self.visible))
        out[self.replaceable] = self.keep
        return out

    @property
    def n_fixed(self) -> int | None:
        """K of a splitting."""
        return self.n_draws if self.deterministic else None

    def prepare(self, rows: FloatArray) -> FloatArray:
        """Prepared numbers, indicators of missing ones, and codes of the categories; 0 for those of weight 0."""
        numbers = rows[:, self.visible]
        missing = np.isnan(numbers)
        hidden = self.keep[self.categorical[self.replaceable]] == 0
        parts = [missing.astype(np.float64), np.where(hidden, 0.0, rows[:, self.categorical])]
        if self.numbers is not None:
            parts.insert(0, self.numbers.prepare(np.where(missing, self.fill, numbers)))
        return np.hstack(parts)

    def corners(self, prepared: FloatArray) -> tuple[PreparedRow, IntArray, FloatArray]:
        """Corners of the numbers, next to the rest of each row."""
        if self.numbers is None:
            return super().corners(prepared)
        n = prepared.shape[1] - len(self.fill) - int(self.categorical.sum())
        corners, owner, share = self.numbers.corners(prepared[:, :n])
        rest = prepared[owner, n:].astype(corners.dtype)
        return np.hstack([corners, rest]), owner, share  # type: ignore[return-value]

    def iter_draws(self, stops: list[int]) -> Iterator[tuple[int, Draws]]:
        """Yield the draws up to ``stops[-1]`` in order, cut at every stop."""
        for start, stop, draws in self._iter_numeric_draws(stops):
            keep, background = self._replacements(np.arange(start, stop))
            yield stop, MixedTypeDraws(self, draws, keep, background)

    def breakpoints(self, n_columns: int) -> list[FloatArray]:
        """Landmarks of the visible numbers."""
        breakpoints, columns = super().breakpoints(n_columns), np.flatnonzero(self.visible)
        if self.numbers is not None:
            for column, values in zip(columns, self.numbers.breakpoints(len(columns)), strict=True):
                breakpoints[column] = values
        return breakpoints

    def perturb(self, rows: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Perturb each person once, by a draw of their own."""
        n, rows = len(rows), rows.copy()
        missing = np.isnan(rows[:, self.visible])
        if self.deterministic:
            chosen = rng.integers(self.n_draws, size=n)
            keep, background = self._replacements(chosen)
        else:
            keep = rng.random((n, len(self.keep))) < self.keep
            background = self.background[rng.integers(len(self.background), size=n)]
        if self.numbers is not None:
            filled = np.where(missing, self.fill, rows[:, self.visible])
            noisy = (
                self.numbers.perturb_by(filled, chosen, rng)
                if isinstance(self.numbers, ShiftedGrids)
                else self.numbers.perturb(filled, rng)
            )
            rows[:, self.visible] = np.where(missing, np.nan, noisy)
        own = rows[:, self.replaceable]
        unseen = self.categorical[self.replaceable] & (own < 0)
        rows[:, self.replaceable] = np.where(keep & ~unseen, own, background)
        return rows

    def _iter_numeric_draws(self, stops: list[int]) -> Iterator[tuple[int, int, Draws | None]]:
        if self.numbers is not None:
            for stop, draws in self.numbers.iter_draws(stops):
                yield stop - len(draws), stop, draws
        else:
            for start, stop in pairwise(sorted({0, *stops, *range(0, stops[-1], CHUNK)})):
                yield start, stop, None

    @cached_property
    def _fixed_replacements(self) -> tuple[BoolArray, IntArray]:
        """Which values each of the K draws of a splitting keeps, and the training row that replaces the others."""
        K, n = self.n_draws, len(self.keep)
        keep = np.empty((K, n), dtype=bool)
        for c, weight in enumerate(self.keep):
            # Kept in floor(K w) of the K draws, so two different values differ in at most a share w of them.
            keep[:, c] = permutation(K, 10_000 + c) < int(Fraction(float(weight)) * K)
        return keep, permutation(K, -2) * len(self.background) // K

    def _replacements(self, draws: npt.NDArray[np.int64]) -> tuple[BoolArray, FloatArray]:
        """Which values each of these draws keeps, and what replaces the others."""
        if self.deterministic:
            keep, rows = self._fixed_replacements
            return keep[draws], self.background[rows[draws]]
        # Random draws come in chunks, each from its own seed; these draws never cross a chunk.
        chunk = int(draws[0]) // CHUNK
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(chunk, 1)))
        keep = rng.random((CHUNK, len(self.keep))) < self.keep
        rows = rng.integers(len(self.background), size=CHUNK)
        within = draws - chunk * CHUNK
        return keep[within], self.background[rows[within]]


@dataclass(frozen=True, eq=False)
class MixedTypeDraws:
    """Some draws of a `MixedTypeNoise` perturbation."""

    mixed: MixedTypeNoise
    numbers: Draws | None
    keep: BoolArray
    background: FloatArray

    def __len__(self) -> int:
        return len(self.keep)

    def apply(self, person: PreparedRow) -> FloatArray:
        """Perturb one person; shape (n_draws, n_columns)."""
        mixed = self.mixed
        n = int(mixed.visible.sum())
        numbers, missing, codes = person[:n], person[n : 2 * n], person[2 * n :]
        rows = np.zeros((len(self), len(mixed.visible)))
        if self.numbers is not None:
            noisy = self.numbers.apply(numbers)
            noisy[:, missing > 0] = np.nan
            rows[:, mixed.visible] = noisy
        rows[:, mixed.categorical] = codes
        known = np.ones(len(mixed.visible), dtype=bool)
        known[mixed.categorical] = codes >= 0
        own = rows[:, mixed.replaceable]
        rows[:, mixed.replaceable] = np.where(self.keep & known[mixed.replaceable], own, self.background)
        return rows


def numeric_perturbation(
    noise: Noise, rows: FloatArray, seed: int, *, n_draws: int | None, epsilon: float
) -> SharedDraws | ShiftedGrids:
    """Perturbations of rows of numbers; `n_draws` and `epsilon` are for splitting, the seed for random draws."""
    if isinstance(noise, Splitting):
        return ShiftedGrids.from_training_data(noise, rows, n_draws=n_draws, epsilon=epsilon)
    return SharedDraws.from_training_data(noise, rows, seed)


def _lower_median(column: FloatArray) -> float:
    """A number that occurs in the column, near its median; 0 if it has none."""
    present = column[~np.isnan(column)]
    return float(np.quantile(present, 0.5, method="lower")) if len(present) else 0.0
