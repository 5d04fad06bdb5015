"""Splitting, made concrete: K shifted grids, in whole numbers.

Feature i of a person becomes a whole number, the *position* ``N_i``, of which ``K`` make up one cell. Draw j shifts
the borders of feature i by ``a_ij`` positions, where ``a_i0, ..., a_i(K-1)`` is a permutation of ``0, ..., K - 1``.
So the cells of two people differ for exactly ``min(K, |N_i - N'_i|)`` of the K draws, and all that is left to show
is ``|N_i - N'_i| <= K s_i |x_i - x'_i| + 1`` (or without the 1, on a grid): `docs/theory.md` §6 does, in floating
point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil

import numpy as np
import numpy.typing as npt

from likewise._typing import FloatArray, IntArray
from likewise.exceptions import InvalidInputError
from likewise.smoothing.noise import Splitting
from likewise.smoothing.sampling import CHUNK, Draws, Perturbation, Seen

# Values count as on a grid of a fractional step if they are within this share of it: standardised whole numbers
# and decimals are rounded. `ShiftedGrids` pays for it, so the promise stays sound.
TOLERANCE = 2.0**-20
_FARTHEST_STEP = 2.0**28  # beyond that many fractional steps, rounding uses up the tolerance
FARTHEST_BETWEEN = 2.0**20  # steps; beyond them, the rounding of a place between two points might be felt
_MOST_STEPS = 2**20  # a real grid is not finer than that over the range of the data


def find_step(values: FloatArray) -> float:
    """Step of the grid that a column lies on; 0 if there is none.

    1 for whole numbers. Otherwise the values must repeat (at most half of them distinct, so that a few arbitrary
    numbers are not taken for a grid), and the step is the greatest common divisor of the gaps between them.

    Examples
    --------
    >>> find_step(np.array([3.0, 10.0, 4.0]))
    1.0
    >>> find_step(np.array([0.25, 1.0, 0.25, 1.75, 1.0, 0.25]))
    0.75
    >>> find_step(np.array([0.1, 0.3, 1.7]))
    0.0
    """
    if (values == np.rint(values)).all():
        return 1.0
    distinct = np.unique(values)
    if len(distinct) < 2 or 2 * len(distinct) > len(values):
        return 0.0
    span = float(distinct[-1] - distinct[0])
    step = span
    for gap in np.diff(distinct).tolist():
        step = _common_divisor(step, gap, span / _MOST_STEPS)
        if step == 0.0:
            return 0.0
    # The divisor has the rounding of one gap; the whole span has as little, over many steps.
    step = span / np.rint(span / step)
    return float(step) if on_grid(distinct, float(distinct[0]), step).all() else 0.0


def on_grid(values: FloatArray, origin: float, step: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which values are at whole steps from `origin`: exactly for a whole step, within `TOLERANCE` otherwise."""
    if is_whole(origin, step):
        return np.asarray(np.fmod(values, step) == np.fmod(origin, step))
    with np.errstate(over="ignore", invalid="ignore"):
        offset = (values - origin) / step
        return np.asarray((np.abs(offset - np.rint(offset)) <= TOLERANCE) & (np.abs(offset) <= _FARTHEST_STEP))


def locate(values: FloatArray, origin: float, step: float) -> tuple[FloatArray, FloatArray]:
    """Whole steps from `origin` down to each value, and the fraction of a step that is left; 0 on the grid.

    On a fractional grid, values within `TOLERANCE` of a point are on it, and the fractions between are stretched to
    meet them: a slope of ``1 / (1 - 2 TOLERANCE)``, which is paid for with the tolerance.

    Examples
    --------
    >>> locate(np.array([3.0, 3.25, -0.5]), 1.0, 1.0)
    (array([ 2.,  2., -2.]), array([0.  , 0.25, 0.5 ]))
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if is_whole(origin, step):
            rest = np.mod(values, step)  # exact, so that the fraction keeps the digits of the value
            return np.rint((values - rest - origin) / step), rest / step
        offset = (values - origin) / step
        on, down = on_grid(values, origin, step), np.floor(offset)
        between = np.clip((offset - down - TOLERANCE) / (1 - 2 * TOLERANCE), 0.0, 1.0)
        return np.where(on, np.rint(offset), down), np.where(on, 0.0, between)


def is_whole(origin: float, step: float) -> bool:
    """Whether the grid's arithmetic is exact."""
    return float(origin).is_integer() and float(step).is_integer()


def _common_divisor(a: float, b: float, least: float) -> float:
    """Euclid's algorithm, up to rounding; 0 if the divisor is below `least`."""
    tolerance = 1e-3 * least
    while b > tolerance:
        if b < least:
            return 0.0
        rest = a % b
        a, b = b, (0.0 if b - rest <= tolerance else rest)
    return a


LEAST_DRAWS = 1000  # keeps the utility of uniform noise where the promise alone would need fewer
_FARTHEST = 2**38  # positions beyond it are moved there, which brings nobody further apart
_NEXT = 20  # positions, and cells, in each direction whose borders are named
_SLACK = 2.0**-12  # cells are wider by this share, which pays for the rounding of positions up to _FARTHEST


@dataclass(frozen=True, eq=False)
class ShiftedGrids(Perturbation):
    """The shifted grids of a `Splitting`, for one training set and one number of draws.

    Attributes
    ----------
    noise : Splitting
        With its excess, ``n / K``, where n counts the visible features without a grid.
    n_draws : int
        K, the number of shifts: evaluations of the model per person.
    origins, steps : ndarray of shape (n_visible,)
        Where positions are counted from (near the training data's median), and the step of the feature's grid
        (0: none).
    background : ndarray of shape (n_draws, n_hidden)
        What replaces the columns of weight 0 in each draw: training rows, whoever the person is.
    declared : bool
        Whether the grids were declared, so that other values are refused, or found in the training data.
    """

    noise: Splitting
    n_draws: int
    origins: FloatArray
    steps: FloatArray
    background: FloatArray
    declared: bool

    @classmethod
    def from_training_data(
        cls, noise: Splitting, X: FloatArray, *, n_draws: int | None = None, epsilon: float = 0.01
    ) -> ShiftedGrids:
        """Find the features' grids in `X`; without `n_draws`, take what `epsilon` needs."""
        visible = X[:, noise.visible]
        steps, origins = _grids(noise, visible)
        K = LEAST_DRAWS if n_draws is None else n_draws
        loose = _positions_per_step(noise, K, origins, steps) == 0
        if n_draws is None:
            K = max(LEAST_DRAWS, ceil(Fraction(int(loose.sum())) / Fraction(epsilon)))
            loose = _positions_per_step(noise, K, origins, steps) == 0
        steps = np.where(loose, 0.0, steps)
        origins = np.where(loose, np.median(visible, axis=0), origins)
        # One training row per draw, spread evenly over all of them.
        rows = (permutation(K, -1) * len(X)) // K
        noise = replace(noise, excess=float(loose.sum()) / K)
        cells = cls(noise, K, origins, steps, X[:, ~noise.visible][rows], not isinstance(noise.steps, str))
        cells.prepare(X)  # refuses what is not on a declared grid
        return cells

    @property
    def curve(self) -> Splitting:
        """That of the noise, with what features without a grid add."""
        return self.noise

    @property
    def n_fixed(self) -> int:
        """All K draws are used."""
        return self.n_draws

    @cached_property
    def per_step(self) -> FloatArray:
        """Positions that one step of a feature's grid counts; 0 without a grid."""
        return _positions_per_step(self.noise, self.n_draws, self.origins, self.steps)

    @cached_property
    def shifts(self) -> npt.NDArray[np.int32]:
        """Of the borders, per draw and feature."""
        return np.stack([permutation(self.n_draws, i) for i in range(len(self.steps))], axis=1).astype(np.int32)

    def prepare(self, rows: FloatArray) -> FloatArray:
        """Where people are, shape (n_samples, 2 n_visible).

        Whole steps of a grid from its origin, or positions without one; then fractions of a step beyond, 0 but for
        values between two points of a grid that was found in the training data.
        """
        X, gridded = rows[:, self.noise.visible], self.steps > 0
        per_unit = self.n_draws / self._widths * (1 - _SLACK)
        with np.errstate(over="ignore"):
            whole = np.floor(np.clip((X - self.origins) * per_unit, -_FARTHEST, _FARTHEST))
        fraction = np.zeros_like(whole)
        for i in np.flatnonzero(gridded).tolist():
            whole[:, i], fraction[:, i] = locate(X[:, i], self.origins[i], self.steps[i])
            if self.declared and fraction[:, i].any():
                self._refuse(i, X[fraction[:, i] > 0, i][0])
            farthest = np.floor(_FARTHEST / self.per_step[i])
            farthest = farthest if self.declared else min(farthest, FARTHEST_BETWEEN)
            fraction[np.abs(whole[:, i]) >= farthest, i] = 0.0
            whole[:, i] = np.clip(whole[:, i], -farthest, farthest)
        return np.hstack([whole, fraction]) + 0.0

    def corners(self, seen: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Whole places; a person between points of grids is on their corners, as a common threshold rounds them.

        Rounding up where the fraction exceeds u, uniform in [0, 1) and the same for all features, keeps every mean
        ``|N_i - N'_i|`` what it is, and leaves one corner for each interval of u between the fractions.
        """
        fraction = seen[:, len(self.steps) :]
        counts = np.ones(len(seen), dtype=np.int64)
        cuts = {int(k): np.unique(np.append(fraction[k], 0.0)) for k in np.flatnonzero(fraction.any(axis=1))}
        for k, own in cuts.items():
            counts[k] = len(own)
        owner = np.repeat(np.arange(len(seen)), counts)
        threshold, share = np.zeros(len(owner)), np.ones(len(owner))
        starts = np.cumsum(counts) - counts
        for k, own in cuts.items():
            here = slice(starts[k], starts[k] + len(own))
            threshold[here], share[here] = own, np.diff(np.append(own, 1.0))
        return self._rounded(seen[owner], threshold), owner, share

    def parts(self, edges: list[int]) -> Iterator[tuple[int, Draws]]:
        """Yield all K draws, cut at every edge and into chunks that bound memory."""
        cuts = sorted({0, *edges, *range(0, edges[-1], CHUNK)})
        for a, b in pairwise(cuts):
            yield b, self._draws(self.shifts[a:b], self.background[a:b])

    def perturb(self, rows: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Perturb each person once, by one of the K draws chosen at random."""
        return self.perturb_by(rows, rng.integers(self.n_draws, size=len(rows)), rng)

    def perturb_by(self, rows: FloatArray, chosen: IntArray, rng: np.random.Generator) -> FloatArray:
        """Perturb each person once, by the draw of the given number."""
        draws = self._draws(self.shifts[chosen], self.background[chosen])
        people = self._rounded(self.prepare(rows), rng.random(len(rows)))
        return np.concatenate(
            [draws.one(j, person) for j, person in enumerate(people)] or [np.empty((0, rows.shape[1]))]
        )

    def landmarks(self, n_columns: int) -> list[FloatArray]:
        """Borders between positions next to the origin, and between the cells further away."""
        found, near = super().landmarks(n_columns), np.arange(-_NEXT, _NEXT + 1)
        places = np.unique([near, near * self.n_draws])
        for i, column in enumerate(np.flatnonzero(self.noise.visible)):
            found[column] = self.origins[i] + places * self._unit[i]
        return found

    @property
    def _widths(self) -> FloatArray:
        return self.noise.widths[self.noise.visible]

    def _rounded(self, seen: FloatArray, threshold: FloatArray) -> IntArray:
        """Positions in whole numbers."""
        down, fraction = np.hsplit(seen, 2)
        whole = down + (fraction > threshold[:, None])
        return (whole * np.where(self.steps > 0, self.per_step, 1.0)).astype(np.int64)

    def _draws(self, shifts: npt.NDArray[np.int32], background: FloatArray) -> GridDraws:
        K = self.n_draws
        # The middle of K consecutive positions; a position without a grid stands for an interval of length 1.
        middle = np.where(self.steps > 0, (K - 1) / 2, K / 2)
        return GridDraws(K, shifts, middle, self._unit, self.origins, self.noise.visible, background)

    @property
    def _unit(self) -> FloatArray:
        """Length of a position."""
        without = self._widths / (self.n_draws * (1 - _SLACK))
        return np.where(self.steps > 0, self.steps / np.maximum(self.per_step, 1), without)

    def _refuse(self, i: int, value: float) -> None:
        column = int(np.flatnonzero(self.noise.visible)[i])
        names = self.noise.metric.feature_names
        raise InvalidInputError(
            f"X must hold values on the declared grid of step {self.steps[i]:g} in "
            f"{f'column {column}' if names is None else repr(names[column])}; got {value!r}. Round it, or declare "
            "another step (0: no grid)."
        )


@dataclass(frozen=True, eq=False)
class GridDraws:
    """Some of the K shifts: a person, given by positions, becomes the centres of their cells."""

    n_positions: int
    shifts: npt.NDArray[np.int32]
    middle: FloatArray
    unit: FloatArray
    origins: FloatArray
    visible: npt.NDArray[np.bool_]
    background: FloatArray

    def __len__(self) -> int:
        return len(self.shifts)

    def apply(self, person: Seen) -> FloatArray:
        """Perturb one person."""
        return self._rows(person, self.shifts, self.background)

    def one(self, j: int, person: Seen) -> FloatArray:
        """Perturb one person by the j-th of these draws; shape (1, n_features)."""
        return self._rows(person, self.shifts[j : j + 1], self.background[j : j + 1])

    def _rows(self, person: Seen, shifts: npt.NDArray[np.int32], background: FloatArray) -> FloatArray:
        from likewise.smoothing.kernels import cell_centres

        rows = np.empty((len(shifts), len(self.visible)))
        rows[:, ~self.visible] = background
        columns = np.flatnonzero(self.visible)
        cell_centres(shifts, person, self.n_positions, self.middle, self.unit, self.origins, columns, rows)
        return rows


def _grids(noise: Splitting, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Steps and origins of the visible features; a step of 0 where there is no grid."""
    if noise.steps is None:
        return np.zeros(X.shape[1]), np.median(X, axis=0)
    found = isinstance(noise.steps, str)
    steps = np.array([find_step(column) for column in X.T]) if found else np.asarray(noise.steps)[noise.visible]
    # A point of the grid near the median: a value that occurs, or a multiple of a declared step.
    origins = np.quantile(X, 0.5, axis=0, method="lower")
    if not found:
        steps_or_1 = np.where(steps > 0, steps, 1.0)
        origins = np.rint(origins / steps_or_1) * steps_or_1
    for i in np.flatnonzero(steps if found else []):
        if not on_grid(X[:, i], origins[i], steps[i]).all():
            steps[i] = 0.0
    return steps, origins


def _positions_per_step(noise: Splitting, K: int, origins: FloatArray, steps: FloatArray) -> FloatArray:
    """Largest whole number g with ``g <= K s_i step``: what one step of a feature's grid may count; else 0."""
    conversion = 1.0 if noise.metric.p == 1 else 1 - 2.0**-40  # the conversion between norms is rounded
    counts = []
    for width, scale, origin, step in zip(
        noise.widths[noise.visible], noise.metric.scales[noise.visible], origins, steps, strict=True
    ):
        exact = is_whole(origin, step)
        # Values off a fractional grid by TOLERANCE are closer than their steps say by 2 TOLERANCE at most.
        shrink = Fraction(1) if exact else Fraction(1 - 4 * TOLERANCE)
        per_unit = Fraction(float(scale)) if noise.metric.p == 1 else Fraction(conversion) / Fraction(float(width))
        counts.append(float(min(int(K * per_unit * Fraction(float(step)) * shrink), _FARTHEST)))
    return np.array(counts)


def permutation(K: int, column: int) -> IntArray:
    """A fixed arbitrary order of 0, ..., K - 1 per column (by splitmix64, so that it is the same everywhere)."""
    with np.errstate(over="ignore"):
        z = np.arange(K, dtype=np.uint64) + np.uint64((column + 2) * 0x9E3779B97F4A7C15 % 2**64)
        z = z * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return np.argsort(z, kind="stable")
