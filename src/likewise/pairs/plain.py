"""The scans of `likewise.pairs.kernels` in NumPy, with the same results to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.kernel.distance import column_distances
from likewise.pairs.points import Columns

_CELLS = 2**17  # pairs at a time, which fit into the cache of a core


class FoundPairs(NamedTuple):
    """Room for pairs and their distances, and which of it is used."""

    pairs: IntArray
    costs: FloatArray
    kept: BoolArray

    @classmethod
    def none_of(cls, room: int) -> FoundPairs:
        """Without a pair yet."""
        return cls(np.empty((room, 2), np.int64), np.empty(room), np.zeros(room, np.bool_))

    def used(self) -> tuple[IntArray, FloatArray]:
        """Pairs and their distances."""
        return self.pairs[self.kept], self.costs[self.kept]


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
        yield first, gaps, _between(columns, slice(first, last), slice(first + 1, n), gaps)
        first = last


def worst_partners(columns: Columns, outputs: FloatArray, tolerance: float) -> tuple[IntArray, FloatArray, FloatArray]:
    """As `likewise.pairs.scans.worst_partners`."""
    n = columns.X.shape[1]
    partner, excess, ratio = np.full((2, n), -1, dtype=np.int64), np.zeros(n), np.ones(n)
    for first, gaps, found in blocks_after(columns, outputs):
        needed = gaps - tolerance
        exceeds = found < needed
        rows = np.arange(len(gaps))
        for k, (values, worst) in enumerate(
            (
                (np.where(exceeds, needed - found, 0.0), np.argmax),
                (np.divide(found, needed, out=np.ones(found.shape), where=exceeds), np.argmin),
            )
        ):
            at = worst(values, axis=1)
            here = rows[exceeds[rows, at]]
            partner[k, first + here] = first + 1 + at[here]
            (excess, ratio)[k][first + here] = values[here, at[here]]
    return partner, excess, ratio


def within_groups(columns: Columns, outputs: FloatArray, m: int) -> tuple[FloatArray, FloatArray]:
    """As `likewise.pairs.scans.within_groups`."""
    first, second = np.triu_indices(m, 1)
    X, kinds, scales, p = columns
    people, answers = X.reshape(len(X), -1, m), outputs.reshape(len(outputs), -1, m)
    gaps = differences(answers[:, :, first], answers[:, :, second])
    every = np.full(gaps.shape, np.inf)  # full distances, never a bound
    return gaps, column_distances(people[:, :, first], people[:, :, second], kinds, scales, p, every)


def fill_guess(both: Columns, mass: FloatArray, h: FloatArray, first: int, last: int, out: FloatArray) -> None:
    """As in `likewise.pairs.transport`."""
    m = len(h)
    far = _between(both, slice(m + first, m + last), slice(0, m))
    most = (h + far)[:, mass < 0].min(axis=1, initial=1.0)
    least = (h - far)[:, mass >= 0].max(axis=1, initial=0.0)
    out[first:last] = (most + least) / 2


def fill_near(
    columns: Columns, h: FloatArray, n_sources: int, n_near: int, first: int, last: int, found: FoundPairs
) -> None:
    """As in `likewise.pairs.transport`."""
    n = columns.X.shape[1]
    for start, stop, others, sign in (
        (first, min(last, n_sources), slice(n_sources, n), 1.0),
        (max(first, n_sources), last, slice(0, n_sources), -1.0),
    ):
        if start < stop:
            far = _between(columns, slice(start, stop), others)
            left, few = far + sign * h[others], min(n_near, far.shape[1])
            limit = np.partition(left, few - 1, axis=1)[:, few - 1 : few]
            _write_pairs(left <= limit, far, start, others.start, n_near, few, found)


def fill_violated(
    columns: Columns, h: FloatArray, n_sources: int, most: int, tolerance: float, first: int, last: int,
    found: FoundPairs,
) -> None:  # fmt: skip
    """As in `likewise.pairs.transport`."""
    needed = h[first:last, None] - h[n_sources:]
    far = _between(columns, slice(first, last), slice(n_sources, columns.X.shape[1]), needed)
    _write_pairs(needed - far > tolerance, far, first, n_sources, most, most, found)


def _between(columns: Columns, some: slice, others: slice, limits: Any = None) -> FloatArray:
    """Distances between two runs of people."""
    X, kinds, scales, p = columns
    if limits is None:
        limits = np.full((some.stop - some.start, others.stop - others.start), np.inf)
    return column_distances(X[:, some, None], X[:, None, others], kinds, scales, p, limits)


def _write_pairs(
    chosen: BoolArray, far: FloatArray, first: int, start: int, room: int, most: int, found: FoundPairs
) -> None:
    """Write the first `most` chosen pairs of each person, who has `room` for them."""
    rank = np.cumsum(chosen, axis=1)
    i, k = np.nonzero(chosen & (rank <= most))
    place = (first + i) * room + rank[i, k] - 1
    one, other = first + i, start + k
    found.pairs[place] = np.column_stack([np.minimum(one, other), np.maximum(one, other)])
    found.costs[place], found.kept[place] = far[i, k], True
