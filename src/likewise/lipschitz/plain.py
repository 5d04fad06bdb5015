"""The functions of `likewise.lipschitz.kernels` in NumPy, to the last bit: the same operations in the same order."""

from __future__ import annotations

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.kernel.evidence import CATEGORY, NULLABLE


def scores(
    rows: FloatArray,
    kinds: IntArray,
    starts: IntArray,
    mismatch: FloatArray,
    first: FloatArray,
    sizes: IntArray,
    weights: FloatArray,
    biases: FloatArray,
    out: FloatArray,
) -> None:
    """Scores of rows from `InputColumns.to_metric_units`."""
    n_units = int(sizes[0])
    h = np.tile(biases[:n_units], (len(rows), 1))
    for j, kind in enumerate(kinds.tolist()):
        x, s = rows[:, j], int(starts[j])
        if kind == CATEGORY:
            h += first[np.where(x < 0.0, starts[j + 1] - 1, s + x.astype(np.int64))]
        elif kind == NULLABLE:
            absent = first[s + 1]
            present = np.minimum(np.maximum(x[:, None] * first[s], absent - mismatch[j]), absent + mismatch[j])
            h += np.where(np.isnan(x)[:, None], absent, present)
        else:
            h += x[:, None] * first[s]
    at, bias = 0, n_units
    for layer in range(1, len(sizes)):
        n_in, n_out = int(sizes[layer - 1]), int(sizes[layer])
        half = n_in // 2
        a, b = h[:, :half].copy(), h[:, half : 2 * half].copy()
        h[:, :half], h[:, half : 2 * half] = np.maximum(a, b), np.minimum(a, b)
        other = np.tile(biases[bias : bias + n_out], (len(rows), 1))
        for i in range(n_in):
            other += h[:, i : i + 1] * weights[at + i * n_out : at + (i + 1) * n_out]
        h = other
        at += n_in * n_out
        bias += n_out
    out[:] = h
