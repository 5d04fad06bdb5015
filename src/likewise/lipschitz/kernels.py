"""The compiled forward pass, row by row. Imported inside functions, as it imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise._numba import njit
from likewise.kernel.evidence import CATEGORY, NULLABLE

# No fastmath: each sum is computed in the order written, so that a score has the same bits in any batch, with any
# number of threads, and with or without vector instructions.
_compiled: Any = njit(nogil=True, cache=True, error_model="numpy")


@_compiled
def _add_layer(h, weights, start, n_in, n_out, out):  # type: ignore[no-untyped-def]
    """``out += h @ weights``, four rows of weights at a time, which saves loads and stores of `out`."""
    i = 0
    while i + 4 <= n_in:
        a, b, c, d = h[i], h[i + 1], h[i + 2], h[i + 3]
        at = start + i * n_out
        first, second = weights[at : at + n_out], weights[at + n_out : at + 2 * n_out]
        third, fourth = weights[at + 2 * n_out : at + 3 * n_out], weights[at + 3 * n_out : at + 4 * n_out]
        for k in range(n_out):
            out[k] = (((out[k] + a * first[k]) + b * second[k]) + c * third[k]) + d * fourth[k]
        i += 4
    while i < n_in:
        for k in range(n_out):
            out[k] += h[i] * weights[start + i * n_out + k]
        i += 1


@_compiled
def _sort_pairs(h, n):  # type: ignore[no-untyped-def]
    """MaxMin: the larger of units j and ``j + n // 2`` comes first; the last of an odd number stays as it is."""
    half = n // 2
    for j in range(half):
        a, b = h[j], h[j + half]
        h[j], h[j + half] = max(a, b), min(a, b)


@_compiled
def scores(rows, kinds, starts, mismatch, first, sizes, weights, biases, out):  # type: ignore[no-untyped-def]
    """Scores of rows from `InputColumns.to_metric_units`.

    `sizes` are the widths of all layers; `weights` those of the layers after the first, concatenated; `biases` of all.
    """
    widest = sizes.max()
    h, other = np.empty(widest), np.empty(widest)
    n_units = sizes[0]
    for r in range(len(rows)):
        h[:n_units] = biases[:n_units]
        for j in range(len(kinds)):
            x, s = rows[r, j], starts[j]
            if kinds[j] == CATEGORY:
                s = starts[j + 1] - 1 if x < 0.0 else s + int(x)
                for k in range(n_units):
                    h[k] += first[s, k]
            elif kinds[j] == NULLABLE:
                if x != x:
                    for k in range(n_units):
                        h[k] += first[s + 1, k]
                else:
                    for k in range(n_units):
                        absent = first[s + 1, k]
                        h[k] += min(max(x * first[s, k], absent - mismatch[j]), absent + mismatch[j])
            else:
                for k in range(n_units):
                    h[k] += x * first[s, k]
        at, bias = 0, n_units
        for layer in range(1, len(sizes)):
            n_in, n_out = sizes[layer - 1], sizes[layer]
            _sort_pairs(h, n_in)
            other[:n_out] = biases[bias : bias + n_out]
            _add_layer(h, weights, at, n_in, n_out, other)
            h, other = other, h
            at += n_in * n_out
            bias += n_out
        out[r] = h[: sizes[-1]]
