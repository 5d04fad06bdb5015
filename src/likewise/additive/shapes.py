"""Sums of shapes of single columns, on a grid of numbers so that they are exact, and within the metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from likewise._typing import FloatArray
from likewise.exceptions import UnsolvedError
from likewise.kernel.evidence import Shape, SumOfShapes
from likewise.kernel.metric import BoundMetric
from likewise.metrics.categories import closure

_LARGEST = 16.0  # distances: larger parts only add rounding errors
_ROOM = 2.0**-40  # of what is allowed, left for the rounding of checks
_BITS = 52  # of a sum
_TINIEST = 2.0**-1000  # products below it have lost digits


def within(sums: SumOfShapes, unit: float) -> SumOfShapes:
    """Bring the sums within the metric, in one pass over whole steps of the grid.

    Every limit is rounded down to whole steps, ``floor((1 - 2^-40) limit / step)``. Rises, distances from blanks and
    special codes, and ranges of categories are cut to their limits, column by column; levels with a table of distances
    are cut to their envelope (`lowered`). `SumOfShapes.used` is then at most 1, since the room of 2^-40 exceeds all
    roundings of its computation (proof: `docs/theory.md` §11).
    """
    step = 2.0**-sums.bits
    return replace(sums, shapes=tuple(_clipped(shape, sums.metric, unit, step) for shape in sums.shapes))


def constrain(intercepts: FloatArray, shapes: Sequence[Shape], weights: BoundMetric, unit: float) -> SumOfShapes:
    """Put shapes on the grid and within the metric, whatever the optimiser returned.

    Parameters
    ----------
    intercepts : ndarray of shape (n_functions,)
    shapes : sequence of Shape
    weights : BoundMetric
    unit : float
        Largest change of the scores at distance 1.
    """
    if not all(np.isfinite(numbers).all() for numbers in (intercepts, *(shape.all_values for shape in shapes))):
        raise UnsolvedError(
            "The fit did not end in finite numbers. Rescale columns whose values are extremely large, or take a larger "
            "penalty."
        )
    found = within(on_grid(weights, intercepts, [_clipped(shape, weights, unit) for shape in shapes]), unit)
    if not (found.used(unit) <= 1).all():  # excluded by docs/theory.md §11; checked anyway
        raise UnsolvedError("The shapes could not be brought within the metric. Please report this.")
    return found


def on_grid(metric: BoundMetric, intercepts: FloatArray, shapes: Sequence[Shape]) -> SumOfShapes:
    """Round to multiples of a power of two: rises and ranges towards 0, so that none becomes larger."""
    largest = np.abs(intercepts).max() + sum(np.abs(shape.all_values).max() for shape in shapes)
    bits = int(_BITS - 2 - np.ceil(np.log2(max(1e-200, float(largest)))))
    step = 2.0**-bits
    return SumOfShapes(
        metric, np.rint(intercepts / step) * step, tuple(_rounded(shape, step) for shape in shapes), bits
    )


def _clipped(shape: Shape, weights: BoundMetric, unit: float, step: float | None = None) -> Shape:
    """Cut each column to its own limits: slopes, ranges, and distances from and between blanks and special codes.

    With a step, values are multiples of it before and after.
    """
    values, other = shape.values, shape.other
    scale = unit * float(weights.scales[shape.column])
    if shape.knots is None:
        assert other is not None
        if shape.column in weights.tables:
            return lowered(shape, _floor_limit(scale * weights.tables[shape.column], step))
        most = _floor_limit(min(scale, 2 * _LARGEST * unit), step)
        low, high = shape.all_values.min(axis=1), shape.all_values.max(axis=1)
        low = low + _ceil(np.maximum(0.0, high - low - most) / 2, step)
        values = np.clip(values, low[:, None], (low + most)[:, None])
        return replace(shape, values=values, other=np.clip(other, values.min(axis=1), values.max(axis=1)))
    with np.errstate(over="ignore", under="ignore"):
        allowed = (scale if scale > _TINIEST else 0.0) * np.diff(shape.knots)
    most = _floor_limit(np.minimum(allowed, _LARGEST * unit), step)
    shape = replace(shape, values=_cumulated(values[:, :1], np.clip(np.diff(values, axis=1), -most, most)))
    if not shape.states.size:
        return shape if step is not None else _clipped_around(shape, shape.values.mean(axis=1), _LARGEST * unit)
    limits = np.minimum(unit * weights.states[shape.column].table, _LARGEST * unit)
    return around_states(shape, _floor_limit(limits, step))


def around_states(shape: Shape, limits: FloatArray) -> Shape:
    """Lower the states until no two differ by more than their limit, and cut the numbers to what all of them allow.

    With ``|s - s'| <= c(s, s') <= c(s, x) + c(x, s')``, as in `lowered`, the largest ``s - c(s, x)`` is at most the
    smallest ``s' + c(x, s')``. Cutting to an interval makes no slope steeper.
    """
    near = closure(limits)
    states = (shape.states[:, None, :] + near[1:, 1:]).min(axis=2)
    low, high = (states - near[0, 1:]).max(axis=1), (states + near[0, 1:]).min(axis=1)
    return shape.with_values(np.clip(shape.values, low[:, None], high[:, None]), states)


def lowered(shape: Shape, limits: FloatArray) -> Shape:
    """Lower the levels until no two differ by more than their limit: ``v_a = min_b (v_b + c_ab)``.

    c are the shortest paths of the limits, which are at most the limits themselves, so ``v_a <= v_b + c_ab``. With
    limits and levels in whole steps, all sums are exact.
    """
    lowered = (shape.all_values[:, None, :] + closure(limits)).min(axis=2)
    return replace(shape, values=lowered[:, :-1], other=lowered[:, -1])


def _clipped_around(shape: Shape, centre: FloatArray, half: FloatArray | float) -> Shape:
    return replace(shape, values=np.clip(shape.values, (centre - half)[:, None], (centre + half)[:, None]))


def _floor_limit(limit: FloatArray | float, step: float | None) -> FloatArray:
    """A limit with room for the rounding of checks, rounded down to whole steps; 0 if it underflows."""
    room = np.where(np.asarray(limit) > _TINIEST, limit, 0.0) * (1 - _ROOM)
    return np.asarray(room if step is None else np.floor(room / step) * step)


def _ceil(size: FloatArray, step: float | None) -> FloatArray:
    """Rounded up to whole steps."""
    return size if step is None else np.ceil(size / step) * step


def _cumulated(first: FloatArray, rises: FloatArray) -> FloatArray:
    """Values from the first one and the rises; exact for multiples of a step."""
    return np.asarray(first + np.concatenate([np.zeros_like(first), np.cumsum(rises, axis=1)], axis=1))


def _rounded(shape: Shape, step: float) -> Shape:
    values, other = shape.values, shape.other
    if shape.knots is None:
        assert other is not None
        # From the smallest level upwards: the range becomes no larger.
        low = values.min(axis=1, keepdims=True)
        base = np.rint(low / step) * step
        values = base + np.trunc((values - low) / step) * step
        other = base[:, 0] + np.trunc((other - low[:, 0]) / step) * step
        return replace(shape, values=values, other=np.clip(other, values.min(axis=1), values.max(axis=1)))
    rises = np.trunc(np.diff(values, axis=1) / step) * step
    values = _cumulated(np.rint(values[:, :1] / step) * step, rises)
    return shape.with_values(values, np.rint(shape.states / step) * step)
