"""Finished weights, and the slope that follows from them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from likewise._frozen import Frozen
from likewise._parallel import run_in_threads
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.exceptions import UnsolvedError
from likewise.metrics.base import ColumnWeights, lp_norm
from likewise.metrics.columns import UNSEEN

NUMBER, GAPPY, CATEGORY = 0, 1, 2
_FARTHEST = 1e100  # numbers beyond it would have squares that overflow
_LONGEST = 2.0**20  # columns that reach further, in units of the metric, would cost digits of every sum


@dataclass(frozen=True, eq=False)
class Inputs(Frozen):
    """Columns that matter, and the rows of the first layer that belong to each.

    A number x enters as ``u = scale * (clip(x, low, high) - centre)``, so that a change of u by 1 is a distance of 1;
    it has one row of weights, and, where it may be missing, one of values in its place. A category has a row of values
    for each level, the last one for levels that were not seen. Columns of weight 0 are not among them.

    Attributes
    ----------
    columns : ndarray of int, shape (n_columns,)
        Positions among the people's columns.
    kinds : ndarray of int, shape (n_columns,)
        `NUMBER`, `GAPPY` (a number that may be missing) or `CATEGORY`.
    starts : ndarray of int, shape (n_columns + 1,)
        First row of each column in the first layer.
    low, high, centre, scale : ndarray of shape (n_columns,)
        Of numbers; 0 for categories. Outside the range of the training data the network is constant.
    reach : ndarray of shape (n_columns,)
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
    reach: FloatArray
    p: float

    @property
    def is_number(self) -> BoolArray:
        """Which columns hold numbers."""
        return np.asarray(self.kinds != CATEGORY)

    @property
    def q(self) -> float:
        """Exponent of the norm for weights of numbers, ``1/p + 1/q = 1``."""
        return 1.0 if np.isinf(self.p) else np.inf if self.p == 1 else self.p / (self.p - 1)

    def slots(self, column: int) -> slice:
        """Rows of a column in the first layer."""
        return slice(int(self.starts[column]), int(self.starts[column + 1]))

    def in_units(self, seen: FloatArray) -> FloatArray:
        """Numbers in units of the metric, NaN where missing, and codes of categories, `UNSEEN` where not known.

        Parameters
        ----------
        seen : ndarray of shape (n_samples, n_columns)
            Coded people, of whom only the columns that matter.
        """
        numbers, out = self.is_number, np.empty_like(seen)
        cut = np.clip(seen[:, numbers], self.low[numbers], self.high[numbers])
        # A missing number is one NaN, whatever its bits were, and no zero is negative: equal people have equal bytes.
        out[:, numbers] = np.where(np.isnan(cut), np.nan, (cut - self.centre[numbers]) * self.scale[numbers] + 0.0)
        codes = seen[:, ~numbers]
        known = (codes >= 0) & (codes < np.diff(self.starts)[~numbers] - 1)
        out[:, ~numbers] = np.where(known, codes, UNSEEN)
        return out


@dataclass(frozen=True, eq=False)
class Entries:
    """Distinct people with distinct outcomes, in a fixed order, and how much each counts.

    So what is learned depends neither on the order of people nor on whether someone is there twice or has a weight
    of 2; people of weight 0 are not there.

    Attributes
    ----------
    rows : ndarray of shape (n_entries, n_columns)
    outcomes : ndarray of shape (n_entries,)
    weights : ndarray of shape (n_entries,)
        They add up to 1.
    """

    rows: FloatArray
    outcomes: FloatArray
    weights: FloatArray

    @classmethod
    def collect(cls, rows: FloatArray, outcomes: FloatArray, weights: FloatArray | None) -> Entries:
        """Collect people as coded rows of the columns that matter, with outcomes as numbers."""
        counts = np.ones(len(rows)) if weights is None else weights
        kept = counts > 0
        table = np.column_stack([rows, outcomes])[kept] + 0.0
        table[np.isnan(table)] = np.nan
        keys: npt.NDArray[np.void] = table.view(np.dtype((np.void, table.itemsize * table.shape[1]))).ravel()
        _, first, where = np.unique(keys, return_index=True, return_inverse=True)
        total = np.bincount(where, counts[kept])
        return cls(table[first, :-1], table[first, -1], total / total.sum())


def read_columns(entries: Entries, used: IntArray, metric: ColumnWeights) -> Inputs:
    """Find ranges and levels of columns.

    Parameters
    ----------
    entries : Entries
    used : ndarray of int
        Which columns of the people these are; all have a positive weight.
    metric : ColumnWeights
    """
    may_miss = ~np.isnan(metric.missing[used])
    kinds = np.where(~metric.is_number[used], CATEGORY, np.where(may_miss, GAPPY, NUMBER))
    low, high, centre, scale = np.zeros((4, len(used)))
    sizes = np.where(kinds == GAPPY, 2, 1)
    for i, kind in enumerate(kinds):
        known = ~np.isnan(entries.rows[:, i])
        values = entries.rows[known, i]
        if kind == CATEGORY:
            sizes[i] = int(values.max(initial=UNSEEN)) + 2
            continue
        scale[i] = metric.scales[used[i]]
        if len(values):
            values = np.clip(values, -_FARTHEST, _FARTHEST)
            centre[i] = np.average(values, weights=entries.weights[known])
            with np.errstate(over="ignore"):
                room = _LONGEST / scale[i]
            low[i], high[i] = max(values.min(), centre[i] - room), min(values.max(), centre[i] + room)
    reach = np.where(kinds == CATEGORY, metric.scales[used], np.where(kinds == GAPPY, metric.missing[used], 0.0))
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Inputs(used, kinds.astype(np.int64), starts, low, high, centre, scale, reach, metric.p)


_UP = 1 + 2.0**-40  # more than the rounding errors of a sum over some thousand weights
_BLOCK = 1024  # people at a time


@dataclass(frozen=True, eq=False)
class Layers(Frozen):
    """A network with sorted pairs (MaxMin) between its layers.

    Attributes
    ----------
    inputs : Inputs
    first : ndarray of shape (n_slots, n_units)
        The first layer; its rows are described in `Inputs`.
    weights : tuple of ndarray, each of shape (n_units, n_units of the next layer)
        The layers after it.
    biases : tuple of ndarray
        Of all layers.
    """

    inputs: Inputs
    first: FloatArray
    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]

    def scores(self, rows: FloatArray) -> FloatArray:
        """Scores of coded people, shape (n_samples, n_outputs): the same bits in any batch."""
        from likewise.lipschitz.kernels import scores

        inputs, (sizes, weights, biases) = self.inputs, self._packed()
        out = np.empty((len(rows), int(sizes[-1])))

        def work(start: int) -> None:
            block = slice(start, start + _BLOCK)
            seen = inputs.in_units(rows[block, inputs.columns])
            scores(seen, inputs.kinds, inputs.starts, inputs.reach, self.first, sizes, weights, biases, out[block])

        run_in_threads(work, range(0, len(rows), _BLOCK), None)
        return out

    def slope(self) -> float:
        """Most that a score can move per unit of distance, rounded upwards; `docs/theory.md` §12 has the proof.

        Unit by unit: the first layer moves by at most the q-norm of its weights of numbers, the range of each category
        in units of its weight, and 1 where a number may be missing; a sorted pair by no more than the larger of its
        two; later units by the sum of absolute weights, each times what its input may move.
        """
        moves = self._first_slopes()
        for W in self.weights:
            half = len(moves) // 2
            pairs = np.maximum(moves[:half], moves[half : 2 * half])
            moves = np.concatenate([pairs, pairs, moves[2 * half :]]) @ np.abs(W) * _UP
        return float(moves.max())

    def _first_slopes(self) -> FloatArray:
        inputs = self.inputs
        slopes = lp_norm(self.first[inputs.starts[:-1][inputs.is_number]].T, inputs.q) * _UP
        for i in np.flatnonzero(inputs.kinds == CATEGORY).tolist():
            slopes = np.maximum(slopes, np.ptp(self.first[inputs.slots(i)], axis=0) / inputs.reach[i] * _UP)
        # What a number adds is cut, wherever it is used, to what the metric allows from a missing one.
        return np.maximum(slopes, 1.0) if (inputs.kinds == GAPPY).any() else slopes

    def _packed(self) -> tuple[IntArray, FloatArray, FloatArray]:
        sizes = np.array([len(bias) for bias in self.biases], dtype=np.int64)
        return sizes, np.concatenate([W.ravel() for W in self.weights]), np.concatenate(self.biases)


def finish(layers: Layers) -> Layers:
    """Bring every unit, and then the whole, within the metric, whatever training made of them."""
    inputs, first = layers.inputs, layers.first.copy()
    numbers = inputs.starts[:-1][inputs.is_number]
    first[numbers] /= np.maximum(1.0, lp_norm(first[numbers].T, inputs.q) * _UP)
    for i in np.flatnonzero(inputs.kinds == CATEGORY).tolist():
        first[inputs.slots(i)] /= np.maximum(1.0, np.ptp(first[inputs.slots(i)], axis=0) / inputs.reach[i] * _UP)
    weights = tuple(W / np.maximum(1.0, np.abs(W).sum(axis=0) * _UP) for W in layers.weights)
    found = replace(layers, first=first, weights=weights)
    if (slope := found.slope()) > 1:
        # The slope is proportional to the last weights: one division by a little more than it is enough.
        divided = [part[-1] / (slope * _UP) for part in (found.weights, found.biases)]
        found = replace(found, weights=(*found.weights[:-1], divided[0]), biases=(*found.biases[:-1], divided[1]))
    if not found.slope() <= 1:
        raise UnsolvedError(
            "Training did not end in finite weights. Rescale columns whose values are extremely large, or train for "
            "fewer steps."
        )
    return found
