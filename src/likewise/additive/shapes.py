"""Sums of shapes of single columns, on a grid of numbers so that they are exact, and within the metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from likewise._frozen import Frozen
from likewise._typing import FloatArray
from likewise.exceptions import UnsolvedError
from likewise.kernel.distance import dual, lp_norm
from likewise.kernel.metric import BoundMetric
from likewise.metrics.categories import closure

_LARGEST = 16.0  # distances: larger parts only add rounding errors
_ROOM = 2.0**-40  # of what is allowed, left for the rounding of checks
_UP = 1 + 2.0**-45  # more than the rounding errors of a handful of operations
_BITS = 52  # of a sum
_TINIEST = 2.0**-1000  # products below it have lost digits


@dataclass(frozen=True, eq=False)
class Shape(Frozen):
    """What one column adds to the scores.

    Attributes
    ----------
    column : int
        Position among the people's columns.
    knots : ndarray of shape (n_knots,), or None
        The shape is linear between knots and constant outside; None for categories.
    values : ndarray of shape (n_functions, n_knots or n_levels)
        At the knots, or for each category.
    other : ndarray of shape (n_functions,), or None
        For a missing number, or a category that was not seen; None where a number may not be missing.
    shares : ndarray of shape (n_knots or n_levels,), or None
        Share of the training data at each knot or category; None if it is not known.
    """

    column: int
    knots: FloatArray | None
    values: FloatArray
    other: FloatArray | None
    shares: FloatArray | None = None

    @property
    def all_values(self) -> FloatArray:
        """All values at knots, categories and for `other`; the rest lie between them."""
        return self.values if self.other is None else np.column_stack([self.values, self.other])


@dataclass(frozen=True, eq=False)
class SumOfShapes(Frozen):
    """Scores that are sums of shapes: ``a_k(x) = intercept_k + sum_i f_ik(x_i)``.

    All values are multiples of ``2^-bits``, and so small that sums of them are exact in any order.

    Attributes
    ----------
    intercepts : ndarray of shape (n_functions,)
    shapes : tuple of Shape
    bits : int
    """

    intercepts: FloatArray
    shapes: tuple[Shape, ...]
    bits: int

    def used(self, weights: BoundMetric, unit: float) -> FloatArray:
        """Share of what the metric allows that each function uses, rounded upwards.

        If it is at most 1, the score moves by at most ``unit * D`` between any two people: the largest slopes, each
        divided by ``unit`` times the column's scale, have a q-norm of at most 1 (``1/p + 1/q = 1``); the range of
        a category's levels is at most ``unit`` times its weight, or, with a table of distances, no two levels differ by
        more than ``unit`` times theirs; and no number's value is further from that of a missing one than ``unit`` times
        the weight of absence.
        """
        ranges = [np.zeros(len(self.intercepts))]
        for shape in self.shapes:
            if shape.knots is None:
                ranges.append(_used_between_categories(shape, weights, unit))
            elif shape.other is not None:
                apart = np.abs(shape.values - shape.other[:, None]).max(axis=1)
                ranges.append(_ratio(apart, unit * weights.missing[shape.column]))
        return np.asarray(np.maximum(self.steepness(weights, unit), np.max(ranges, axis=0)))

    def steepness(self, weights: BoundMetric, unit: float) -> FloatArray:
        """The q-norm of the largest slopes of each function, in units of what each column may do alone."""
        steep = [np.zeros((len(self.intercepts), 0))]
        for shape in self.shapes:
            if shape.knots is None:
                continue
            scale = unit * weights.scales[shape.column]
            # Divided twice, as the product of a scale and a gap may underflow.
            slopes = _ratio(_ratio(np.abs(np.diff(shape.values, axis=1)), np.diff(shape.knots)), scale)
            steep.append(slopes.max(axis=1, initial=0.0)[:, None])
        return np.asarray(lp_norm(np.concatenate(steep, axis=1), dual(weights.p)) * _UP)

    def within(self, weights: BoundMetric, unit: float) -> SumOfShapes:
        """Bring the sums within the metric, in one pass over whole steps of the grid.

        Every limit is rounded down to whole steps, ``floor((1 - 2^-40) limit / step)``, and every change is towards it:

        1. Rises, distances from a missing number, and ranges of categories are cut to their limits, column by column;
           levels with a table of distances are cut to their envelope (`lowered`).
        2. Where the slopes of several columns are too steep together, the numbers of that function are multiplied by
           ``(1 - 2^-40) / norm``, with rises rounded towards 0.
        3. Rises that are rounded may add up to more than before (+1, +1, -3 steps become 0, 0, -2), so values are cut
           once more to what is allowed from a missing number. Cutting makes no rise larger.

        `used` is then at most 1, since the room of 2^-40 exceeds all roundings of its computation; `docs/theory.md`
        §11 has the proof.
        """
        step = 2.0**-self.bits
        cut = replace(self, shapes=tuple(_clipped(shape, weights, unit, step) for shape in self.shapes))
        steep = cut.steepness(weights, unit)
        if (steep <= 1).all():
            return cut
        factors = np.where(steep > 1, (1 - _ROOM) / np.maximum(steep, 1.0), 1.0)
        return replace(
            cut,
            shapes=tuple(
                shape
                if shape.knots is None
                else _clipped_around_missing(_scaled(shape, factors, step), weights, unit, step)
                for shape in cut.shapes
            ),
        )


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
    found = on_grid(intercepts, [_clipped(shape, weights, unit) for shape in shapes]).within(weights, unit)
    if not (found.used(weights, unit) <= 1).all():  # excluded by docs/theory.md §11; checked anyway
        raise UnsolvedError("The shapes could not be brought within the metric. Please report this.")
    return found


def on_grid(intercepts: FloatArray, shapes: Sequence[Shape]) -> SumOfShapes:
    """Round to multiples of a power of two: rises and ranges towards 0, so that none becomes larger."""
    largest = np.abs(intercepts).max() + sum(np.abs(shape.all_values).max() for shape in shapes)
    bits = int(_BITS - 2 - np.ceil(np.log2(max(1e-200, float(largest)))))
    step = 2.0**-bits
    return SumOfShapes(np.rint(intercepts / step) * step, tuple(_rounded(shape, step) for shape in shapes), bits)


def _clipped(shape: Shape, weights: BoundMetric, unit: float, step: float | None = None) -> Shape:
    """Cut each column to its own limits: slopes, ranges, and distances from a missing number.

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
    if other is None:
        return shape if step is not None else _clipped_around(shape, shape.values.mean(axis=1), _LARGEST * unit)
    return _clipped_around_missing(shape, weights, unit, step)


def lowered(shape: Shape, limits: FloatArray) -> Shape:
    """Lower the levels until no two differ by more than their limit: ``v_a = min_b (v_b + c_ab)``.

    c are the shortest paths of the limits, which are at most the limits themselves, so ``v_a <= v_b + c_ab``. With
    limits and levels in whole steps, all sums are exact.
    """
    lowered = (shape.all_values[:, None, :] + closure(limits)).min(axis=2)
    return replace(shape, values=lowered[:, :-1], other=lowered[:, -1])


def _used_between_categories(shape: Shape, weights: BoundMetric, unit: float) -> FloatArray:
    """Largest share of the allowed difference that two levels have, for each function."""
    scale = unit * weights.scales[shape.column]
    if shape.column not in weights.tables:
        return _ratio(np.ptp(shape.all_values, axis=1), scale)
    table, values = weights.tables[shape.column], shape.all_values
    differences = np.abs(values[:, :, None] - values[:, None, :])
    return np.asarray(_ratio(differences, scale * table).max(axis=(1, 2)))


def _clipped_around_missing(shape: Shape, weights: BoundMetric, unit: float, step: float | None) -> Shape:
    """Cut the values of numbers to what is allowed from a missing one."""
    if shape.other is None:
        return shape
    return _clipped_around(
        shape, shape.other, _floor_limit(min(unit * float(weights.missing[shape.column]), _LARGEST * unit), step)
    )


def _clipped_around(shape: Shape, centre: FloatArray, half: FloatArray | float) -> Shape:
    return replace(shape, values=np.clip(shape.values, (centre - half)[:, None], (centre + half)[:, None]))


def _scaled(shape: Shape, factors: FloatArray, step: float) -> Shape:
    """Multiply a shape of numbers by factors of at most 1, rises rounded towards 0."""
    first = np.rint(shape.values[:, :1] * factors[:, None] / step) * step
    rises = np.trunc(np.diff(shape.values, axis=1) * factors[:, None] / step) * step
    other = None if shape.other is None else np.rint(shape.other * factors / step) * step
    return replace(shape, values=_cumulated(first, rises), other=other)


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
    return replace(shape, values=values, other=None if other is None else np.rint(other / step) * step)


def _ratio(size: FloatArray, limit: FloatArray | float) -> FloatArray:
    """``size / limit``, rounded upwards; 0 where there is nothing to limit."""
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        return np.where(size > 0, size / np.where(size > 0, limit, 1.0) * _UP, 0.0)
