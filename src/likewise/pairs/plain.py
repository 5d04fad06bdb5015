"""The scans of `likewise.pairs.kernels` in NumPy, with the same results to the last bit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from likewise._typing import FloatArray
from likewise.kernel.distance import column_distances
from likewise.pairs.points import Columns

_CELLS = 2**17  # pairs at a time, which fit into the cache of a core


def differences(own: FloatArray, others: FloatArray) -> FloatArray:
    """Sums of absolute differences of outputs; the first axis is over outputs, and the others are broadcast."""
    total: FloatArray = np.abs(own[0] - others[0])
    for k in range(1, len(own)):
        total += np.abs(own[k] - others[k])
    return total


def blocks_after(columns: Columns, outputs: FloatArray) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """All pairs in blocks: the first person, and differences and distances between a run of people and all later ones.

    Row r is person ``first + r`` and column c is person ``first + 1 + c``. If that person is not later, the
    difference is -1. Distances above the difference may be lower bounds.
    """
    n, first = columns.X.shape[1], 0
    while first < n - 1:
        last = min(n - 1, first + max(1, _CELLS // (n - first)))
        gaps = differences(outputs[:, first:last, None], outputs[:, None, first + 1 :])
        for r in range(1, last - first):
            gaps[r, :r] = -1.0
        X, kinds, scales, p = columns
        own, others = X[:, first:last, None], X[:, None, first + 1 :]
        yield first, gaps, column_distances(own, others, kinds, scales, p, gaps)
        first = last


def within_groups(columns: Columns, outputs: FloatArray, m: int) -> tuple[FloatArray, FloatArray]:
    """As `likewise.pairs.scans.within_groups`."""
    first, second = np.triu_indices(m, 1)
    X, kinds, scales, p = columns
    people, answers = X.reshape(len(X), -1, m), outputs.reshape(len(outputs), -1, m)
    gaps = differences(answers[:, :, first], answers[:, :, second])
    every = np.full(gaps.shape, np.inf)  # full distances, never a bound
    return gaps, column_distances(people[:, :, first], people[:, :, second], kinds, scales, p, every)
