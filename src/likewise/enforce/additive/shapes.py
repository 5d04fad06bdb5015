"""The finished functions of single columns, on a grid of numbers so that sums of them are exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from likewise._frozen import Frozen
from likewise._typing import FloatArray
from likewise.metrics.distance import ColumnWeights, lp_norm

_LARGEST = 16.0  # distances: a part that moves the score further adds nothing but rounding errors
_ROOM = 2.0**-40  # of what is allowed, left for the rounding of checks
_UP = 1 + 2.0**-45  # more than the rounding errors of a handful of operations
_BITS = 52  # of a sum


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
    """

    column: int
    knots: FloatArray | None
    values: FloatArray
    other: FloatArray | None

    @property
    def all_values(self) -> FloatArray:
        """All values that it can take, or that lie between others."""
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

    def used(self, weights: ColumnWeights, unit: float) -> FloatArray:
        """Share of what the metric allows that each function uses, rounded upwards.

        At most 1 if and only if the score moves by at most ``unit * D`` between any two people: the largest slopes,
        each divided by ``unit`` times the column's scale, have a q-norm of at most 1 (``1/p + 1/q = 1``); the range of
        a category's levels is at most ``unit`` times its weight; and no number's value is further from that of a
        missing one than ``unit`` times the weight of absence.
        """
        steep = [np.zeros((len(self.intercepts), 0))]
        ranges = [np.zeros(len(self.intercepts))]
        for shape in self.shapes:
            scale = unit * weights.scales[shape.column]
            if shape.knots is None:
                ranges.append(_ratio(np.ptp(shape.all_values, axis=1), scale))
                continue
            # Divided twice, as the product of a scale and a gap may be too small to hold.
            slopes = _ratio(_ratio(np.abs(np.diff(shape.values, axis=1)), np.diff(shape.knots)), scale)
            steep.append(slopes.max(axis=1, initial=0.0)[:, None])
            if shape.other is not None:
                apart = np.abs(shape.values - shape.other[:, None]).max(axis=1)
                ranges.append(_ratio(apart, unit * weights.missing[shape.column]))
        norms = lp_norm(np.concatenate(steep, axis=1), dual(weights.p)) * _UP
        return np.asarray(np.maximum(norms, np.max(ranges, axis=0)))

    def scaled(self, factors: FloatArray) -> SumOfShapes:
        """Return the sums with each function's shapes multiplied by a factor of at most 1."""
        return on_grid(
            self.intercepts,
            [
                replace(
                    shape,
                    values=shape.values * factors[:, None],
                    other=None if shape.other is None else shape.other * factors,
                )
                for shape in self.shapes
            ],
        )


def finish(intercepts: FloatArray, shapes: Sequence[Shape], weights: ColumnWeights, unit: float) -> SumOfShapes:
    """Put shapes on the grid and within the metric, whatever an optimiser made of them.

    Parameters
    ----------
    intercepts : ndarray of shape (n_functions,)
    shapes : sequence of Shape
    weights : ColumnWeights
    unit : float
        What the scores may move at distance 1.
    """
    found = on_grid(intercepts, [_tamed(shape, weights, unit) for shape in shapes])
    while True:
        used = found.used(weights, unit)
        if (used <= 1).all():
            return found
        # Rounding to the grid may cost a step, so the room grows until it is enough.
        found = found.scaled(np.where(used > 1, (1 - _ROOM) / used, 1.0))


def on_grid(intercepts: FloatArray, shapes: Sequence[Shape]) -> SumOfShapes:
    """Round to multiples of a power of two: rises and ranges towards 0, so that none becomes larger."""
    largest = np.abs(intercepts).max() + sum(np.abs(shape.all_values).max() for shape in shapes)
    bits = int(_BITS - 2 - np.ceil(np.log2(max(1e-200, float(largest)))))
    step = 2.0**-bits
    return SumOfShapes(np.rint(intercepts / step) * step, tuple(_rounded(shape, step) for shape in shapes), bits)


def dual(p: float) -> float:
    """Exponent q with ``1/p + 1/q = 1``."""
    return 1.0 if np.isinf(p) else np.inf if p == 1 else p / (p - 1)


def _tamed(shape: Shape, weights: ColumnWeights, unit: float) -> Shape:
    """Cut what no column may do alone: too steep a gap, too wide a range, too far from a missing number."""
    values, other = shape.values, shape.other
    scale = unit * weights.scales[shape.column] * (1 - _ROOM)
    if shape.knots is None:
        assert other is not None
        middle = (values.max(axis=1) + values.min(axis=1)) / 2
        half = min(scale / 2, _LARGEST * unit)
        values = np.clip(values, (middle - half)[:, None], (middle + half)[:, None])
        return replace(shape, values=values, other=np.clip(other, values.min(axis=1), values.max(axis=1)))
    with np.errstate(over="ignore", under="ignore"):
        allowed = np.minimum(scale * np.diff(shape.knots), _LARGEST * unit)
    rises = np.clip(np.diff(values, axis=1), -allowed, allowed)
    values = values[:, :1] + np.concatenate([np.zeros((len(values), 1)), np.cumsum(rises, axis=1)], axis=1)
    if other is None:
        centre, half = values.mean(axis=1), _LARGEST * unit
    else:
        centre, half = other, min(unit * float(weights.missing[shape.column]) * (1 - _ROOM), _LARGEST * unit)
    return replace(shape, values=np.clip(values, (centre - half)[:, None], (centre + half)[:, None]))


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
    first = np.rint(values[:, :1] / step) * step
    values = first + np.concatenate([np.zeros_like(first), np.cumsum(rises, axis=1)], axis=1)
    return replace(shape, values=values, other=None if other is None else np.rint(other / step) * step)


def _ratio(size: FloatArray, limit: FloatArray | float) -> FloatArray:
    """``size / limit``, rounded upwards; 0 where there is nothing to limit."""
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        return np.where(size > 0, size / np.where(size > 0, limit, 1.0) * _UP, 0.0)
