"""Finding the grid that a feature's values lie on."""

from __future__ import annotations

import numpy as np

from likewise._typing import FloatArray

# Values count as on a grid of a fractional step if they are within this share of it: standardised whole numbers
# and decimals are rounded. `Cells` pays for it, so the promise stays sound.
TOLERANCE = 2.0**-20
_FARTHEST = 2.0**28  # beyond that many fractional steps, rounding uses up the tolerance
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
        return np.asarray((np.abs(offset - np.rint(offset)) <= TOLERANCE) & (np.abs(offset) <= _FARTHEST))


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
