"""Splitting in integer arithmetic: K shifted grids.

Feature i of a row becomes an integer *position* ``N_i``; K consecutive positions form a cell. Draw j shifts the borders
of feature i by ``a_ij`` positions, where ``a_i0, ..., a_i(K-1)`` is a permutation of ``0, ..., K - 1``. So the cells of
two rows differ in exactly ``min(K, |N_i - N'_i|)`` of the K draws. `docs/theory.md` §6 shows, in floating point, that
``|N_i - N'_i| <= K s_i |x_i - x'_i| + 1``, and without the 1 on a grid.
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

from likewise._engine import kernel
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.exceptions import InvalidInputError
from likewise.pairs.points import GOLDEN, splitmix64
from likewise.smoothing import plain
from likewise.smoothing.noise import Splitting
from likewise.smoothing.sampling import CHUNK, Draws, NumberNoise, PreparedRow

# Values within this fraction of a fractional step count as on the grid: standardised whole numbers and decimals are
# rounded. `_positions_per_step` accounts for it, so the guarantee stays sound.
TOLERANCE = 2.0**-20
_MAX_FRACTIONAL_STEPS = 2.0**28  # beyond that many fractional steps, rounding uses up the tolerance
_MAX_STEPS_BETWEEN = 2.0**20  # beyond that many steps, values between two grid points lose digits
_CALL = 10_000  # least work of a plain call, in values
_MAX_STEPS_IN_DATA = 2**20  # a finer step over the range of the data is not taken for a grid


def find_step(values: FloatArray) -> float:
    """Step of the grid that a column lies on; 0 if there is none.

    1 for whole numbers. Otherwise at most half of the values may be distinct, so that a few arbitrary numbers are not
    taken for a grid, and the step is the greatest common divisor of the gaps between them.

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
        step = _common_divisor(step, gap, span / _MAX_STEPS_IN_DATA)
        if step == 0.0:
            return 0.0
    # The divisor has the rounding error of one gap; dividing the span spreads that error over many steps.
    step = span / np.rint(span / step)
    return float(step) if on_grid(distinct, float(distinct[0]), step).all() else 0.0


def on_grid(values: FloatArray, origin: float, step: float) -> BoolArray:
    """Which values are at whole steps from `origin`: exactly for a whole step, within `TOLERANCE` otherwise."""
    if is_whole(origin, step):
        return np.asarray(np.fmod(values, step) == np.fmod(origin, step))
    with np.errstate(over="ignore", invalid="ignore"):
        offset = (values - origin) / step
        return np.asarray((np.abs(offset - np.rint(offset)) <= TOLERANCE) & (np.abs(offset) <= _MAX_FRACTIONAL_STEPS))


def locate(values: FloatArray, origin: float, step: float) -> tuple[FloatArray, FloatArray]:
    """Whole steps from `origin` to each value, rounded down, and the remaining fraction of a step; 0 on the grid.

    On a fractional grid, values within `TOLERANCE` of a point are on it, and the fractions between are stretched to
    fill [0, 1], with slope ``1 / (1 - 2 TOLERANCE)``.

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


MIN_DRAWS = 1000  # keeps the accuracy of uniform noise where the guarantee alone would need fewer
_MAX_POSITION = 2**38  # positions are clipped here, which increases no distance
_N_BREAKPOINTS = 20  # positions, and cells, on each side of the origin whose borders are breakpoints
_SLACK = 2.0**-12  # cells are wider by this fraction, which covers the rounding of positions up to _MAX_POSITION


@dataclass(frozen=True, eq=False)
class ShiftedGrids(NumberNoise):
    """The shifted grids of a `Splitting`, for one training set and one number of draws.

    Attributes
    ----------
    noise : Splitting
        With its excess, ``n / K``, where n counts the visible features without a grid.
    n_draws : int
        K, the number of shifts: evaluations of the model per person.
    origins, steps : ndarray of shape (n_visible,)
        Position 0 of each feature, near its median, and the step of its grid (0: none).
    background : ndarray of shape (n_draws, n_hidden)
        Training values that replace the columns of weight 0 in each draw.
    declared : bool
        Whether the grids were declared, so that values off them raise, or found in the training data.
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
        K = MIN_DRAWS if n_draws is None else n_draws
        ungridded = _positions_per_step(noise, K, origins, steps) == 0
        if n_draws is None:
            K = max(MIN_DRAWS, ceil(Fraction(int(ungridded.sum())) / Fraction(epsilon)))
            ungridded = _positions_per_step(noise, K, origins, steps) == 0
        steps = np.where(ungridded, 0.0, steps)
        origins = np.where(ungridded, np.median(visible, axis=0), origins)
        # One training row per draw, spread evenly over all of them.
        rows = (permutation(K, -1) * len(X)) // K
        noise = replace(noise, excess=float(ungridded.sum()) / K)
        grids = cls(noise, K, origins, steps, X[:, ~noise.visible][rows], not isinstance(noise.steps, str))
        grids.prepare(X)  # raises for values off a declared grid
        return grids

    @property
    def n_fixed(self) -> int:
        """K."""
        return self.n_draws

    @cached_property
    def per_step(self) -> FloatArray:
        """Positions per step of a feature's grid; 0 without a grid."""
        return _positions_per_step(self.noise, self.n_draws, self.origins, self.steps)

    @cached_property
    def shifts(self) -> npt.NDArray[np.int32]:
        """Shift of the borders, in positions, per draw and feature."""
        return np.stack([permutation(self.n_draws, i) for i in range(len(self.steps))], axis=1).astype(np.int32)

    def prepare(self, rows: FloatArray) -> FloatArray:
        """Whole and fractional steps from the origins, shape (n_samples, 2 n_visible).

        Without a grid, the whole steps are positions. Fractions are 0 except between two points of a found grid.
        """
        X = rows[:, self.noise.visible]
        per_unit = self.n_draws / self._widths * (1 - _SLACK)
        with np.errstate(over="ignore", under="ignore"):
            place = np.clip((X - self.origins) * per_unit, -_MAX_POSITION, _MAX_POSITION)
        # Differences of subnormal numbers are a distance of 0 in floating point, so they must not cross a border.
        whole = np.floor(np.where(np.abs(place) < 1e-250, 0.0, place))
        fraction = np.zeros_like(whole)
        for i in np.flatnonzero(self.steps > 0).tolist():
            whole[:, i], fraction[:, i] = locate(X[:, i], self.origins[i], self.steps[i])
            if self.declared and fraction[:, i].any():
                self._raise_off_grid(i, X[fraction[:, i] > 0, i][0])
            limit = np.floor(_MAX_POSITION / self.per_step[i])
            limit = limit if self.declared else min(limit, _MAX_STEPS_BETWEEN)
            # A value just above -limit is between two points; only what is beyond a limit is cut to it.
            fraction[(whole[:, i] >= limit) | (whole[:, i] < -limit), i] = 0.0
            whole[:, i] = np.clip(whole[:, i], -limit, limit)
        return np.hstack([whole, fraction]) + 0.0

    def corners(self, prepared: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Positions, with rows between grid points split over the corners around them.

        Rounding up where the fraction exceeds u, uniform in [0, 1) and common to all features, preserves the mean of
        every ``|N_i - N'_i|``, and gives one corner for each interval of u between two fractions.
        """
        fraction = prepared[:, len(self.steps) :]
        counts = np.ones(len(prepared), dtype=np.int64)
        thresholds = {int(k): np.unique(np.append(fraction[k], 0.0)) for k in np.flatnonzero(fraction.any(axis=1))}
        for k, own in thresholds.items():
            counts[k] = len(own)
        owner = np.repeat(np.arange(len(prepared)), counts)
        threshold, share = np.zeros(len(owner)), np.ones(len(owner))
        starts = np.cumsum(counts) - counts
        for k, own in thresholds.items():
            here = slice(starts[k], starts[k] + len(own))
            threshold[here], share[here] = own, np.diff(np.append(own, 1.0))
        return self._positions(prepared[owner], threshold), owner, share

    def iter_draws(self, stops: list[int]) -> Iterator[tuple[int, Draws]]:
        """Yield all K draws, cut at every stop and into chunks that bound memory."""
        for a, b in pairwise(sorted({0, *stops, *range(0, stops[-1], CHUNK)})):
            yield b, self._draws(self.shifts[a:b], self.background[a:b])

    def perturb(self, rows: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Perturb each person once, by one of the K draws chosen at random."""
        return self.perturb_by(rows, rng.integers(self.n_draws, size=len(rows)), rng)

    def perturb_by(self, rows: FloatArray, chosen: IntArray, rng: np.random.Generator) -> FloatArray:
        """Perturb each person once, by the draw with the given number."""
        draws = self._draws(self.shifts[chosen], self.background[chosen])
        return draws.apply(self._positions(self.prepare(rows), rng.random(len(rows))))

    def breakpoints(self, n_columns: int) -> list[FloatArray]:
        """Borders between positions near the origin, and between cells further away."""
        breakpoints, near = super().breakpoints(n_columns), np.arange(-_N_BREAKPOINTS, _N_BREAKPOINTS + 1)
        positions = np.unique([near, near * self.n_draws])
        for i, column in enumerate(np.flatnonzero(self.noise.visible)):
            breakpoints[column] = self.origins[i] + positions * self._unit[i]
        return breakpoints

    @property
    def _widths(self) -> FloatArray:
        return self.noise.widths[self.noise.visible]

    def _positions(self, prepared: FloatArray, threshold: FloatArray) -> IntArray:
        """Integer positions, rounding up where the fraction exceeds the threshold."""
        down, fraction = np.hsplit(prepared, 2)
        whole = down + (fraction > threshold[:, None])
        return (whole * np.where(self.steps > 0, self.per_step, 1.0)).astype(np.int64)

    def _draws(self, shifts: npt.NDArray[np.int32], background: FloatArray) -> GridDraws:
        K = self.n_draws
        # The middle of K consecutive positions; without a grid, a position is an interval of length 1.
        middle = np.where(self.steps > 0, (K - 1) / 2, K / 2)
        return GridDraws(K, shifts, middle, self._unit, self.origins, self.noise.visible, background)

    @property
    def _unit(self) -> FloatArray:
        """Length of a position."""
        ungridded = self._widths / (self.n_draws * (1 - _SLACK))
        return np.where(self.steps > 0, self.steps / np.maximum(self.per_step, 1), ungridded)

    def _raise_off_grid(self, i: int, value: float) -> None:
        column = int(np.flatnonzero(self.noise.visible)[i])
        names = self.noise.names
        raise InvalidInputError(
            f"X must hold values on the declared grid of step {self.steps[i]:g} in "
            f"{f'column {column}' if names is None else repr(names[column])}; got {value!r}. Round it, or declare "
            "another step (0: no grid)."
        )


@dataclass(frozen=True, eq=False)
class GridDraws:
    """Some of the K shifts: integer positions become the centres of their cells."""

    n_positions: int
    shifts: npt.NDArray[np.int32]
    middle: FloatArray
    unit: FloatArray
    origins: FloatArray
    visible: BoolArray
    background: FloatArray

    def __len__(self) -> int:
        return len(self.shifts)

    def apply(self, person: PreparedRow) -> FloatArray:
        """Perturb one person by all draws, or one person by each."""
        rows, shifts = np.empty((len(self), len(self.visible))), self.shifts
        rows[:, ~self.visible] = self.background
        each, columns = person.ndim > 1, np.flatnonzero(self.visible)
        cell_centres = plain.cell_centres if each else kernel("smoothing", "cell_centres", _CALL + 8 * shifts.size)
        cell_centres(shifts, person, self.n_positions, self.middle, self.unit, self.origins, columns, rows)
        return rows


def _grids(noise: Splitting, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Steps and origins of the visible features; a step of 0 where there is no grid."""
    if noise.steps is None:
        return np.zeros(X.shape[1]), np.median(X, axis=0)
    found = isinstance(noise.steps, str)
    steps = np.array([find_step(column) for column in X.T]) if found else np.asarray(noise.steps)[noise.visible]
    # A grid point near the median: a value that occurs, or a multiple of a declared step.
    origins = np.quantile(X, 0.5, axis=0, method="lower")
    if not found:
        steps_or_1 = np.where(steps > 0, steps, 1.0)
        origins = np.rint(origins / steps_or_1) * steps_or_1
    for i in np.flatnonzero(steps if found else []):
        if not on_grid(X[:, i], origins[i], steps[i]).all():
            steps[i] = 0.0
    return steps, origins


def _positions_per_step(noise: Splitting, K: int, origins: FloatArray, steps: FloatArray) -> FloatArray:
    """Largest integer g with ``g <= K s_i step``: positions per step of a feature's grid, or 0."""
    conversion = 1.0 if noise.metric.p == 1 else 1 - 2.0**-40  # the conversion between norms is rounded
    counts = []
    for width, scale, origin, step in zip(
        noise.widths[noise.visible], noise.metric.scales[noise.visible], origins, steps, strict=True
    ):
        # Values off a fractional grid by TOLERANCE are closer than their whole steps by 2 TOLERANCE at most.
        shrink = Fraction(1) if is_whole(origin, step) else Fraction(1 - 4 * TOLERANCE)
        per_unit = Fraction(float(scale)) if noise.metric.p == 1 else Fraction(conversion) / Fraction(float(width))
        counts.append(float(min(int(K * per_unit * Fraction(float(step)) * shrink), _MAX_POSITION)))
    return np.array(counts)


def permutation(K: int, column: int) -> IntArray:
    """A fixed arbitrary order of 0, ..., K - 1 per column (by splitmix64, so that it is the same everywhere)."""
    with np.errstate(over="ignore"):
        z = np.arange(K, dtype=np.uint64) + np.uint64((column + 2) * int(GOLDEN) % 2**64)
        z = splitmix64(z * GOLDEN - GOLDEN)
    return np.argsort(z, kind="stable")
