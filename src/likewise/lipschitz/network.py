"""1-Lipschitz networks as arrays: their inputs, their scores, and the slope that is the guarantee."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from likewise._engine import kernel
from likewise._parallel import run_in_threads
from likewise._subsample import distinct_rows
from likewise._typing import FloatArray, IntArray
from likewise.exceptions import UnsolvedError
from likewise.kernel.columns import UNSEEN
from likewise.kernel.distance import lp_norm
from likewise.kernel.evidence import CATEGORY, InputColumns, Layers
from likewise.kernel.metric import BoundMetric

_MAX_NUMBER = 1e100  # squares of larger numbers may overflow
_MAX_RANGE = 2.0**20  # wider columns, in units of the metric, would cost digits of every sum


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
    low, high, centre = np.zeros((3, len(used)))
    sizes = np.where(np.isnan(metric.missing[used]), 1, 2)
    for i, column in enumerate(used.tolist()):
        known = ~np.isnan(samples.rows[:, i])
        values = samples.rows[known, i]
        if not metric.is_number[column]:
            sizes[i] = int(values.max(initial=UNSEEN)) + 2
        elif len(values):
            values = np.clip(values, -_MAX_NUMBER, _MAX_NUMBER)
            centre[i] = np.average(values, weights=samples.weights[known])
            with np.errstate(over="ignore"):
                room = _MAX_RANGE / metric.scales[column]
            low[i], high[i] = max(values.min(), centre[i] - room), min(values.max(), centre[i] + room)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return InputColumns(metric, used, starts, low, high, centre)


_UP = 1 + 2.0**-40  # more than the rounding errors of a sum over some thousand weights
_BLOCK = 1024  # rows at a time


def network_scores(layers: Layers, rows: FloatArray) -> FloatArray:
    """Scores of encoded rows, shape (n_samples, n_outputs): the same bits in any batch."""
    inputs, (sizes, weights, biases) = layers.inputs, _packed(layers)
    scores = kernel("lipschitz", "scores", len(rows) * (layers.first.size + len(weights)))
    out = np.empty((len(rows), int(sizes[-1])))

    def work(start: int) -> None:
        block = slice(start, start + _BLOCK)
        units = inputs.to_metric_units(rows[block, inputs.columns])
        scores(units, inputs.kinds, inputs.starts, inputs.mismatch, layers.first, sizes, weights, biases, out[block])

    run_in_threads(work, range(0, len(rows), _BLOCK), None)
    return out


def _packed(layers: Layers) -> tuple[IntArray, FloatArray, FloatArray]:
    sizes = np.array([len(bias) for bias in layers.biases], dtype=np.int64)
    return sizes, np.concatenate([W.ravel() for W in layers.weights]), np.concatenate(layers.biases)


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
