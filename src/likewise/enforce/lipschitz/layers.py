"""Finished weights, and the slope that follows from them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from likewise._frozen import Frozen
from likewise._threads import run_in_threads
from likewise._typing import FloatArray, IntArray
from likewise.enforce.lipschitz.inputs import CATEGORY, GAPPY, Inputs
from likewise.errors import UnsolvedError
from likewise.metrics.distance import lp_norm

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
        from likewise.enforce.lipschitz.propagation import scores

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
