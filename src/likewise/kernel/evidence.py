"""Evidence: the numbers of a model with the metric they were made for, and how far its scores move per distance.

Classes here are data. What they claim is checked by `likewise.kernel.rules`; all shares and slopes are rounded upwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from likewise._frozen import Frozen
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.kernel.columns import UNSEEN
from likewise.kernel.distance import dual, lp_norm
from likewise.kernel.metric import BoundMetric

_UP = 1 + 2.0**-45  # more than the rounding errors of a handful of operations
_UP_LAYER = 1 + 2.0**-40  # more than those of a sum over some thousand weights


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
    special : ndarray of shape (n_functions, n_codes), or None
        For the special codes of the column, in the order of `BoundMetric.states`; None if it has none.
    """

    column: int
    knots: FloatArray | None
    values: FloatArray
    other: FloatArray | None
    shares: FloatArray | None = None
    special: FloatArray | None = None

    @property
    def states(self) -> FloatArray:
        """What is no number at a knot, nor a known category: `other`, then `special`; (n_functions, n_states)."""
        blank = [] if self.other is None else [self.other]
        return np.column_stack([self.values[:, :0], *blank, *([] if self.special is None else [self.special])])

    @property
    def all_values(self) -> FloatArray:
        """All values at knots, of categories, and of states; the rest lie between them."""
        return np.column_stack([self.values, self.states])

    def with_values(self, values: FloatArray, states: FloatArray) -> Shape:
        """The same with other values."""
        split = 0 if self.other is None else 1
        other, special = states[:, 0] if split else None, None if self.special is None else states[:, split:]
        return replace(self, values=values, other=other, special=special)


@dataclass(frozen=True, eq=False)
class SumOfShapes(Frozen):
    """Scores that are sums of shapes: ``a_k(x) = intercept_k + sum_i f_ik(x_i)``.

    All values are multiples of ``2^-bits``, and so small that sums of them are exact in any order.

    Attributes
    ----------
    metric : BoundMetric
        What they were fitted for.
    intercepts : ndarray of shape (n_functions,)
    shapes : tuple of Shape
    bits : int
    """

    metric: BoundMetric
    intercepts: FloatArray
    shapes: tuple[Shape, ...]
    bits: int

    def used(self, unit: float) -> FloatArray:
        """Share of what the metric allows that each function uses, rounded upwards.

        If it is at most 1, the score moves by at most ``unit * D`` between any two people (p = 1): no slope exceeds
        ``unit`` times the column's scale; the range of a category's levels is at most ``unit`` times its weight, or,
        with a table of distances, no two levels differ by more than ``unit`` times theirs; and no number's value is
        further from that of a blank or a special code, and no two of these are further apart, than ``unit`` times
        their distance.
        """
        used = [np.zeros(len(self.intercepts))]
        for shape in self.shapes:
            if shape.knots is None:
                used.append(_used_between_categories(shape, self.metric, unit))
                continue
            scale = unit * self.metric.scales[shape.column]
            # Divided twice, as the product of a scale and a gap may underflow.
            slopes = _ratio(_ratio(np.abs(np.diff(shape.values, axis=1)), np.diff(shape.knots)), scale)
            used.append(slopes.max(axis=1, initial=0.0) * _UP)
            if (states := shape.states).size:
                table = unit * self.metric.states[shape.column].table
                apart = np.abs(shape.values[:, :, None] - states[:, None, :]).max(axis=1)
                used.append(_ratio(apart, table[0, 1:]).max(axis=1))
                between = np.abs(states[:, :, None] - states[:, None, :])
                used.append(_ratio(between, table[1:, 1:]).max(axis=(1, 2)))
        return np.asarray(np.max(used, axis=0))


def _used_between_categories(shape: Shape, metric: BoundMetric, unit: float) -> FloatArray:
    """Largest share of the allowed difference that two levels have, for each function."""
    scale = unit * metric.scales[shape.column]
    if shape.column not in metric.tables:
        return _ratio(np.ptp(shape.all_values, axis=1), scale)
    table, values = metric.tables[shape.column], shape.all_values
    differences = np.abs(values[:, :, None] - values[:, None, :])
    return np.asarray(_ratio(differences, scale * table).max(axis=(1, 2)))


def _ratio(size: FloatArray, limit: FloatArray | float) -> FloatArray:
    """``size / limit``, rounded upwards; 0 where there is nothing to limit."""
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        return np.where(size > 0, size / np.where(size > 0, limit, 1.0) * _UP, 0.0)


NUMBER, NULLABLE, CATEGORY = 0, 1, 2


@dataclass(frozen=True, eq=False)
class InputColumns(Frozen):
    """Columns of positive weight, and their rows in the first layer.

    A number x becomes ``u = scale * (clip(x, low, high) - centre)``, so that a change of u by 1 is a distance of 1. It
    has one row of weights and, where it may be missing, a second one of values for that. A category has a row of values
    for each level, and a last one for unseen levels.

    Attributes
    ----------
    metric : BoundMetric
    columns : ndarray of int, shape (n_columns,)
        Positions among all columns.
    starts : ndarray of int, shape (n_columns + 1,)
        First row of each column in the first layer.
    low, high, centre : ndarray of shape (n_columns,)
        For numbers; 0 for categories. The network is constant outside the training range.
    """

    metric: BoundMetric
    columns: IntArray
    starts: IntArray
    low: FloatArray
    high: FloatArray
    centre: FloatArray

    @cached_property
    def kinds(self) -> IntArray:
        """`NUMBER`, `NULLABLE` (a number that may be missing) or `CATEGORY`, shape (n_columns,)."""
        missing = np.isnan(self.metric.missing[self.columns])
        return np.where(self.metric.is_number[self.columns], np.where(missing, NUMBER, NULLABLE), CATEGORY)

    @cached_property
    def scale(self) -> FloatArray:
        """Distance per unit of a number; 0 for categories."""
        return np.where(self.is_number, self.metric.scales[self.columns], 0.0)

    @cached_property
    def mismatch(self) -> FloatArray:
        """Distance between a number and a missing one, or between two categories."""
        missing = np.nan_to_num(self.metric.missing[self.columns])
        return np.where(self.is_number, missing, self.metric.scales[self.columns])

    @property
    def is_number(self) -> BoolArray:
        """Which columns hold numbers."""
        return np.asarray(self.kinds != CATEGORY)

    @property
    def q(self) -> float:
        """Exponent of the norm of the weights of numbers, ``1/p + 1/q = 1``."""
        return dual(self.metric.p)

    def rows_of(self, column: int) -> slice:
        """Rows of a column in the first layer."""
        return slice(int(self.starts[column]), int(self.starts[column + 1]))

    def to_metric_units(self, rows: FloatArray) -> FloatArray:
        """Numbers in units of the metric, NaN where missing, and codes of categories, `UNSEEN` where unknown.

        Takes and returns rows of these columns only, shape (n_samples, n_columns).
        """
        numbers, out = self.is_number, np.empty_like(rows)
        clipped = np.clip(rows[:, numbers], self.low[numbers], self.high[numbers])
        # One NaN and no negative zero, so that equal rows have equal bytes.
        scaled = (clipped - self.centre[numbers]) * self.scale[numbers] + 0.0
        out[:, numbers] = np.where(np.isnan(clipped), np.nan, scaled)
        codes = rows[:, ~numbers]
        known = (codes >= 0) & (codes < np.diff(self.starts)[~numbers] - 1)
        out[:, ~numbers] = np.where(known, codes, UNSEEN)
        return out


@dataclass(frozen=True, eq=False)
class Layers(Frozen):
    """A network with sorted pairs (MaxMin) between its layers.

    Attributes
    ----------
    inputs : InputColumns
    first : ndarray of shape (n_input_rows, n_units)
        Weights of the first layer; `InputColumns` describes its rows.
    weights : tuple of ndarray, each of shape (n_units, n_units of the next layer)
        Weights of the later layers.
    biases : tuple of ndarray
        Biases of all layers.
    """

    inputs: InputColumns
    first: FloatArray
    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]

    def slope(self) -> float:
        """Upper bound of the Lipschitz constant of the scores, rounded upwards (`docs/theory.md` §12).

        Unit by unit. First layer: the largest of the q-norm of the weights of numbers, the range of each category
        divided by its weight, and 1 if a number may be missing. A sorted pair: the larger of both. Later layers:
        ``slopes @ |W|``.
        """
        slopes = self._first_slopes()
        for W in self.weights:
            half = len(slopes) // 2
            pairs = np.maximum(slopes[:half], slopes[half : 2 * half])
            slopes = np.concatenate([pairs, pairs, slopes[2 * half :]]) @ np.abs(W) * _UP_LAYER
        return float(slopes.max())

    def _first_slopes(self) -> FloatArray:
        inputs = self.inputs
        slopes = lp_norm(self.first[inputs.starts[:-1][inputs.is_number]].T, inputs.q) * _UP_LAYER
        for i in np.flatnonzero(inputs.kinds == CATEGORY).tolist():
            slopes = np.maximum(slopes, np.ptp(self.first[inputs.rows_of(i)], axis=0) / inputs.mismatch[i] * _UP_LAYER)
        # The kernel clips the term of a number that may be missing to its weight.
        return np.maximum(slopes, 1.0) if (inputs.kinds == NULLABLE).any() else slopes


class Noise(Protocol):
    """Noise on numbers; its kind is the name of its class."""

    @property
    def widths(self) -> FloatArray:
        """Factor on the standard noise, per column."""

    @property
    def visible(self) -> BoolArray:
        """Columns with noise; the model does not see the others."""


class Numbers(Protocol):
    """Noise on numbers, as it is drawn."""

    @property
    def noise(self) -> Noise:
        """Its kind and widths."""

    @property
    def n_fixed(self) -> int | None:
        """K of a splitting; None for random draws."""

    @property
    def steps(self) -> FloatArray | None:
        """Of a splitting: the step of each column's grid (0: none)."""


class Perturbed(Protocol):
    """Perturbations of people: noise on numbers, and other values kept with a probability, or replaced."""

    @property
    def metric(self) -> BoundMetric:
        """What they were made for."""

    @property
    def numbers(self) -> Numbers | None:
        """Noise on the visible numbers, in their order."""

    @property
    def visible(self) -> BoolArray:
        """Columns that get noise."""

    @property
    def kept(self) -> FloatArray:
        """Probability per column that the own value, with noise or not, is kept."""

    @property
    def n_fixed(self) -> int | None:
        """K of a splitting; None for random draws."""


class Anchors(Protocol):
    """People between whose values scores are taken."""

    @property
    def metric(self) -> BoundMetric:
        """By which their envelopes rise and fall."""
