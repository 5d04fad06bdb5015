"""1-Lipschitz networks as arrays: their inputs, their scores, and the slope that is the guarantee."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from likewise._engine import kernel
from likewise._frozen import Frozen
from likewise._parallel import run_in_threads
from likewise._subsample import distinct_rows
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.exceptions import UnsolvedError
from likewise.kernel.columns import UNSEEN
from likewise.kernel.distance import dual, lp_norm
from likewise.kernel.metric import BoundMetric

NUMBER, NULLABLE, CATEGORY = 0, 1, 2
_MAX_NUMBER = 1e100  # squares of larger numbers may overflow
_MAX_RANGE = 2.0**20  # wider columns, in units of the metric, would cost digits of every sum


@dataclass(frozen=True, eq=False)
class InputColumns(Frozen):
    """Columns of positive weight, and their rows in the first layer.

    A number x becomes ``u = scale * (clip(x, low, high) - centre)``, so that a change of u by 1 is a distance of 1. It
    has one row of weights and, where it may be missing, a second one of values for that. A category has a row of values
    for each level, and a last one for unseen levels.

    Attributes
    ----------
    columns : ndarray of int, shape (n_columns,)
        Positions among all columns.
    kinds : ndarray of int, shape (n_columns,)
        `NUMBER`, `NULLABLE` (a number that may be missing) or `CATEGORY`.
    starts : ndarray of int, shape (n_columns + 1,)
        First row of each column in the first layer.
    low, high, centre, scale : ndarray of shape (n_columns,)
        For numbers; 0 for categories. The network is constant outside the training range.
    mismatch : ndarray of shape (n_columns,)
        Distance between a number and a missing one, or between two categories.
    p : float
        Exponent over the numbers.
    """

    columns: IntArray
    kinds: IntArray
    starts: IntArray
    low: FloatArray
    high: FloatArray
    centre: FloatArray
    scale: FloatArray
    mismatch: FloatArray
    p: float

    @property
    def is_number(self) -> BoolArray:
        """Which columns hold numbers."""
        return np.asarray(self.kinds != CATEGORY)

    @property
    def q(self) -> float:
        """Exponent of the norm of the weights of numbers, ``1/p + 1/q = 1``."""
        return dual(self.p)

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
class WeightedSamples:
    """Distinct rows with distinct targets, in a fixed order, and their weights, which add up to 1.

    So training depends neither on the order of rows nor on whether a row is duplicated or has a weight of 2.
    """

    rows: FloatArray
    targets: FloatArray
    weights: FloatArray

    @classmethod
    def from_data(cls, rows: FloatArray, targets: FloatArray, weights: FloatArray | None) -> WeightedSamples:
        """Merge duplicates, and drop rows of weight 0."""
        counts = np.ones(len(rows)) if weights is None else weights
        used = counts > 0
        table = np.column_stack([rows, targets])[used] + 0.0
        table[np.isnan(table)] = np.nan
        first, inverse = distinct_rows(table)
        total = np.bincount(inverse, counts[used])
        return cls(table[first, :-1], table[first, -1], total / total.sum())


def read_columns(samples: WeightedSamples, used: IntArray, metric: BoundMetric) -> InputColumns:
    """Find the ranges and levels of the columns `used`, all of positive weight."""
    may_miss = ~np.isnan(metric.missing[used])
    kinds = np.where(~metric.is_number[used], CATEGORY, np.where(may_miss, NULLABLE, NUMBER))
    low, high, centre, scale = np.zeros((4, len(used)))
    sizes = np.where(kinds == NULLABLE, 2, 1)
    for i, kind in enumerate(kinds):
        known = ~np.isnan(samples.rows[:, i])
        values = samples.rows[known, i]
        if kind == CATEGORY:
            sizes[i] = int(values.max(initial=UNSEEN)) + 2
            continue
        scale[i] = metric.scales[used[i]]
        if len(values):
            values = np.clip(values, -_MAX_NUMBER, _MAX_NUMBER)
            centre[i] = np.average(values, weights=samples.weights[known])
            with np.errstate(over="ignore"):
                room = _MAX_RANGE / scale[i]
            low[i], high[i] = max(values.min(), centre[i] - room), min(values.max(), centre[i] + room)
    mismatch = np.where(kinds == CATEGORY, metric.scales[used], np.where(kinds == NULLABLE, metric.missing[used], 0.0))
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return InputColumns(used, kinds.astype(np.int64), starts, low, high, centre, scale, mismatch, metric.p)


_UP = 1 + 2.0**-40  # more than the rounding errors of a sum over some thousand weights
_BLOCK = 1024  # rows at a time


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

    def scores(self, rows: FloatArray) -> FloatArray:
        """Scores of encoded rows, shape (n_samples, n_outputs): the same bits in any batch."""
        inputs, (sizes, weights, biases) = self.inputs, self._packed()
        scores = kernel("lipschitz", "scores", len(rows) * (self.first.size + len(weights)))
        out = np.empty((len(rows), int(sizes[-1])))

        def work(start: int) -> None:
            block = slice(start, start + _BLOCK)
            units = inputs.to_metric_units(rows[block, inputs.columns])
            scores(units, inputs.kinds, inputs.starts, inputs.mismatch, self.first, sizes, weights, biases, out[block])

        run_in_threads(work, range(0, len(rows), _BLOCK), None)
        return out

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
            slopes = np.concatenate([pairs, pairs, slopes[2 * half :]]) @ np.abs(W) * _UP
        return float(slopes.max())

    def _first_slopes(self) -> FloatArray:
        inputs = self.inputs
        slopes = lp_norm(self.first[inputs.starts[:-1][inputs.is_number]].T, inputs.q) * _UP
        for i in np.flatnonzero(inputs.kinds == CATEGORY).tolist():
            slopes = np.maximum(slopes, np.ptp(self.first[inputs.rows_of(i)], axis=0) / inputs.mismatch[i] * _UP)
        # The kernel clips the term of a number that may be missing to its weight.
        return np.maximum(slopes, 1.0) if (inputs.kinds == NULLABLE).any() else slopes

    def _packed(self) -> tuple[IntArray, FloatArray, FloatArray]:
        sizes = np.array([len(bias) for bias in self.biases], dtype=np.int64)
        return sizes, np.concatenate([W.ravel() for W in self.weights]), np.concatenate(self.biases)


def enforce_slope(layers: Layers) -> Layers:
    """Scale every unit, and then the whole network, to a slope of at most 1."""
    inputs, first = layers.inputs, layers.first.copy()
    numbers = inputs.starts[:-1][inputs.is_number]
    first[numbers] /= np.maximum(1.0, lp_norm(first[numbers].T, inputs.q) * _UP)
    for i in np.flatnonzero(inputs.kinds == CATEGORY).tolist():
        first[inputs.rows_of(i)] /= np.maximum(1.0, np.ptp(first[inputs.rows_of(i)], axis=0) / inputs.mismatch[i] * _UP)
    weights = tuple(W / np.maximum(1.0, np.abs(W).sum(axis=0) * _UP) for W in layers.weights)
    found = replace(layers, first=first, weights=weights)
    if (slope := found.slope()) > 1:
        # The slope is proportional to the last weights, so one division is enough.
        divided = [part[-1] / (slope * _UP) for part in (found.weights, found.biases)]
        found = replace(found, weights=(*found.weights[:-1], divided[0]), biases=(*found.biases[:-1], divided[1]))
    if not found.slope() <= 1:
        raise UnsolvedError(
            "Training did not end in finite weights. Rescale columns whose values are extremely large, or train for "
            "fewer steps."
        )
    return found
