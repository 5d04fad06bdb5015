"""Compiled inner loops. Imported inside functions, so that `import likewise` does not import numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise._numba import njit

_compiled: Any = njit(nogil=True, cache=True)


@_compiled
def cell_centres(shifts, position, n_positions, middle, unit, origins, columns, rows):  # type: ignore[no-untyped-def]
    """Centres of the cells that a position falls into, for each draw (row of `shifts`), written to `rows`.

    They are computed from the cell's integer number, so that equal cells give equal bits.
    """
    n_draws, n_visible = shifts.shape
    rest = np.empty(n_visible, np.int64)
    base = np.empty(n_visible, np.int64)
    for i in range(n_visible):
        rest[i] = position[i] % n_positions
        base[i] = position[i] - rest[i]
    for j in range(n_draws):
        for i in range(n_visible):
            shift = np.int64(shifts[j, i])
            first = base[i] + shift - (n_positions if shift > rest[i] else 0)
            rows[j, columns[i]] = (first + middle[i]) * unit[i] + origins[i]


@_compiled
def leaf_average(table, split, low, high, left, right, goes_left, values, roots, out):  # type: ignore[no-untyped-def]
    """Add to `out` the values of the leaves, weighted by their probabilities.

    `table[k]` holds F at every split for row k; see `likewise.smoothing.formulas`.
    """
    n_nodes, n_outputs = values.shape
    probability = np.empty(n_nodes)
    for k in range(len(table)):
        F = table[k]
        for root in roots:
            probability[root] = 1.0
        for node in range(n_nodes):
            here = probability[node]
            s = split[node]
            if s == -1:
                if here > 0.0:
                    for c in range(n_outputs):
                        out[k, c] += here * values[node, c]
                continue
            if here <= 0.0:
                probability[left[node]] = 0.0
                probability[right[node]] = 0.0
                continue
            if s == -2:
                p = goes_left[node]
            else:
                below = F[low[node]]
                inside = F[high[node]] - below
                p = min(1.0, max(0.0, (F[s] - below) / inside)) if inside > 0.0 else 0.0
            probability[left[node]] = here * p
            probability[right[node]] = here * (1.0 - p)


RELU, TANH, LOGISTIC, IDENTITY = 0, 1, 2, 3
HARD, SOFT, VALUE = 0, 1, 2
_TINY, _HUGE = np.float32(2.0**-100), np.float32(2.0**100)  # no subnormal numbers, which are slow, and no overflow


@_compiled
def _relu(z):  # type: ignore[no-untyped-def]
    return min(z, _HUGE) if z > _TINY else np.float32(0.0)


@_compiled
def _activate(z, activation):  # type: ignore[no-untyped-def]
    if activation == RELU:
        return _relu(z)
    if activation == TANH:
        return np.float32(np.tanh(z))
    if activation == LOGISTIC:
        return np.float32(1.0 / (1.0 + np.exp(-z)))
    return min(max(z, -_HUGE), _HUGE)


@_compiled
def shifted_layer(z, shift, activation, out):  # type: ignore[no-untyped-def]
    """``out = activation(float32(z + shift))``: the sum is in float64, the rest in float32."""
    n, width = z.shape
    if activation == RELU:
        for j in range(n):
            for i in range(width):
                out[j, i] = _relu(np.float32(z[j, i] + shift[i]))
    else:
        for j in range(n):
            for i in range(width):
                out[j, i] = _activate(np.float32(z[j, i] + shift[i]), activation)


# Sums may be reordered for vector instructions: the order is fixed when this is compiled.
@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def output_votes(z, bias, activation, weights, last_bias, kind, low, width, total, squares):  # type: ignore[no-untyped-def]
    """Votes of the last layer, summed over rows into `total` and `squares`.

    `z` is the last hidden layer before bias and activation; it is overwritten. `weights` is (n_units, width).
    One unit for two classes is the log-odds of the second.
    """
    n, n_hidden = z.shape
    n_units = len(weights)
    score = np.empty(n_units, np.float32)
    for j in range(n):
        if activation == RELU:
            for i in range(n_hidden):
                z[j, i] = _relu(z[j, i] + bias[i])
        else:
            for i in range(n_hidden):
                z[j, i] = _activate(z[j, i] + bias[i], activation)
        for c in range(n_units):
            dot = np.float32(0.0)
            for i in range(n_hidden):
                dot += z[j, i] * weights[c, i]
            score[c] = dot + last_bias[c]
        if kind == VALUE:
            v = (min(max(np.float64(score[0]), low), low + width) - low) / width
            v = min(max(v, 0.0), 1.0)
            total[0] += v
            squares[0] += v * v
        elif kind == HARD:
            best = 0
            if n_units == 1:
                best = 1 if score[0] > 0 else 0
            else:
                for c in range(1, n_units):
                    if score[c] > score[best]:
                        best = c
            total[best] += 1.0
            squares[best] += 1.0
        elif n_units == 1:
            p = 1.0 / (1.0 + np.exp(-np.float64(score[0])))
            total[0] += 1.0 - p
            total[1] += p
            squares[0] += (1.0 - p) * (1.0 - p)
            squares[1] += p * p
        else:
            top = score.max()
            norm = 0.0
            for c in range(n_units):
                norm += np.exp(np.float64(score[c] - top))
            for c in range(n_units):
                p = np.exp(np.float64(score[c] - top)) / norm
                total[c] += p
                squares[c] += p * p


@_compiled
def network_votes(z, shifts, activation, weights, biases, last, kind, low, width, raw, active, total, squares):  # type: ignore[no-untyped-def]
    """Votes of a network for one tile of draws and several people, without returning to Python in between.

    `z` is the first layer's product for the draws, `shifts[k]` what person k adds to it; `weights` are the layers
    between the first and the `last`, `raw` and `active` buffers for each hidden layer.
    """
    n = len(z)
    for k in range(len(shifts)):
        shifted_layer(z, shifts[k], activation, active[0][:n])
        for layer in range(len(weights)):
            np.dot(active[layer][:n], weights[layer], raw[layer + 1][:n])
            if layer + 1 < len(weights):
                shifted_layer(raw[layer + 1][:n], biases[layer], activation, active[layer + 1][:n])
        output_votes(
            raw[len(weights)][:n], biases[len(weights) - 1], activation, last, biases[len(weights)], kind, low, width,
            total[k], squares[k],
        )  # fmt: skip
