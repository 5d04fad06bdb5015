"""The distance of `likewise.pairs.kernels` in NumPy, and scans with it: the same operations in the same order.

Results are the same to the last bit. People are columns, as there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.pairs.points import CODE, NULLABLE, Kinds

_CELLS = 2**17  # pairs at a time, which fit into the cache of a core


def differences(own: FloatArray, others: FloatArray) -> FloatArray:
    """Sums of absolute differences of outputs; the first axis is over outputs, and the others are broadcast."""
    total: FloatArray = np.abs(own[0] - others[0])
    for k in range(1, len(own)):
        total += np.abs(own[k] - others[k])
    return total


def distances(
    own: FloatArray, others: FloatArray, kinds: Kinds, scales: FloatArray, p: float, limits: FloatArray
) -> FloatArray:
    """Distances between people; the first axis is over columns, and the others are broadcast to the shape of `limits`.

    Powers other than 1, 2 and infinity are slow, so they are taken only where the largest coordinate, a lower bound of
    the distance, is below the limit; elsewhere the lower bound is returned.
    """
    out, term = np.zeros(limits.shape), np.empty(limits.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        for f in np.flatnonzero((kinds != CODE) & (scales > 0)):
            _gaps(own[f], others[f], kinds[f], scales[f], term)
            if p == 1.0:
                out += term
            elif p == 2.0:
                term *= term
                out += term
            else:
                np.maximum(out, term, out=out)
        if p == 2.0:
            np.sqrt(out, out=out)
        elif p not in (1.0, np.inf):
            some = np.flatnonzero((out > 0.0) & (out < limits))
            out.flat[some] = _raised(own, others, kinds, scales, p, some, out)
    for f in np.flatnonzero((kinds == CODE) & (scales > 0)):
        out += np.where(own[f] != others[f], scales[f], 0.0)
    return out


def _gaps(own: FloatArray, others: FloatArray, kind: Any, scale: Any, out: FloatArray) -> None:
    """Scaled gaps of one column of numbers; 0 where one is missing."""
    np.subtract(own, others, out=out)
    np.abs(out, out=out)
    out *= scale
    if kind == NULLABLE:
        out[np.isnan(out)] = 0.0


def _raised(
    own: FloatArray, others: FloatArray, kinds: Kinds, scales: FloatArray, p: float, some: IntArray, largest: FloatArray
) -> FloatArray:
    """Distances of some pairs for any p. NumPy's powers round differently from Python's, which are those of C."""
    most: FloatArray = largest.ravel()[some]
    total = np.zeros(len(some))
    for f in np.flatnonzero((kinds != CODE) & (scales > 0)):
        a, b = (np.broadcast_to(each[f], largest.shape).ravel()[some] for each in (own, others))
        gap = scales[f] * np.abs(a - b) / most
        total += [0.0 if z != z else z**p for z in gap.tolist()]
    return np.asarray(most * np.array([each ** (1.0 / p) for each in total.tolist()]))


def blocks_after(
    X: FloatArray, outputs: FloatArray, kinds: Kinds, scales: FloatArray, p: float
) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """All pairs in blocks: the first person, and differences and distances between a run of people and all later ones.

    Row r is person ``first + r`` and column c is person ``first + 1 + c``. If that person is not later, the
    difference is -1. Distances above the difference may be lower bounds.
    """
    n, first = X.shape[1], 0
    while first < n - 1:
        last = min(n - 1, first + max(1, _CELLS // (n - first)))
        gaps = differences(outputs[:, first:last, None], outputs[:, None, first + 1 :])
        for r in range(1, last - first):
            gaps[r, :r] = -1.0
        yield first, gaps, distances(X[:, first:last, None], X[:, None, first + 1 :], kinds, scales, p, gaps)
        first = last


def worst_partners(
    X: FloatArray, outputs: FloatArray, kinds: Kinds, scales: FloatArray, p: float, tolerance: float
) -> tuple[IntArray, FloatArray, FloatArray]:
    """As `likewise.pairs.scans.worst_partners`."""
    n = X.shape[1]
    partner, excess, ratio = np.full((2, n), -1, dtype=np.int64), np.zeros(n), np.ones(n)
    for first, gaps, found in blocks_after(X, outputs, kinds, scales, p):
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


def within_groups(
    X: FloatArray, outputs: FloatArray, kinds: Kinds, scales: FloatArray, p: float, m: int
) -> tuple[FloatArray, FloatArray]:
    """As `likewise.pairs.scans.within_groups`."""
    first, second = np.triu_indices(m, 1)
    people, answers = X.reshape(len(X), -1, m), outputs.reshape(len(outputs), -1, m)
    gaps = differences(answers[:, :, first], answers[:, :, second])
    every = np.full(gaps.shape, np.inf)  # full distances, never a bound
    return gaps, distances(people[:, :, first], people[:, :, second], kinds, scales, p, every)


def fill_guess(
    both: FloatArray, mass: FloatArray, h: FloatArray, kinds: Kinds, scales: FloatArray, p: float,
    first: int, last: int, out: FloatArray,
) -> None:  # fmt: skip
    """As in `likewise.pairs.transport`."""
    m = len(h)
    far = _between(both, slice(m + first, m + last), slice(0, m), kinds, scales, p)
    most = (h + far)[:, mass < 0].min(axis=1, initial=1.0)
    least = (h - far)[:, mass >= 0].max(axis=1, initial=0.0)
    out[first:last] = (most + least) / 2


def fill_near(
    columns: FloatArray, h: FloatArray, kinds: Kinds, scales: FloatArray, p: float, n_sources: int, n_near: int,
    first: int, last: int, pairs: IntArray, costs: FloatArray, kept: BoolArray,
) -> None:  # fmt: skip
    """As in `likewise.pairs.transport`."""
    n = columns.shape[1]
    for start, stop, others, sign in (
        (first, min(last, n_sources), slice(n_sources, n), 1.0),
        (max(first, n_sources), last, slice(0, n_sources), -1.0),
    ):
        if start < stop:
            far = _between(columns, slice(start, stop), others, kinds, scales, p)
            left, few = far + sign * h[others], min(n_near, far.shape[1])
            limit = np.partition(left, few - 1, axis=1)[:, few - 1 : few]
            _write_pairs(left <= limit, far, start, others.start, n_near, few, pairs, costs, kept)


def fill_violated(
    columns: FloatArray, h: FloatArray, kinds: Kinds, scales: FloatArray, p: float, n_sources: int, most: int,
    tolerance: float, first: int, last: int, pairs: IntArray, costs: FloatArray, kept: BoolArray,
) -> None:  # fmt: skip
    """As in `likewise.pairs.transport`."""
    needed = h[first:last, None] - h[n_sources:]
    far = _between(columns, slice(first, last), slice(n_sources, columns.shape[1]), kinds, scales, p, needed)
    _write_pairs(needed - far > tolerance, far, first, n_sources, most, most, pairs, costs, kept)


def _between(
    X: FloatArray, some: slice, others: slice, kinds: Kinds, scales: FloatArray, p: float, limits: Any = None
) -> FloatArray:
    """Distances between two runs of people."""
    if limits is None:
        limits = np.full((some.stop - some.start, others.stop - others.start), np.inf)
    return distances(X[:, some, None], X[:, None, others], kinds, scales, p, limits)


def _write_pairs(
    chosen: BoolArray, far: FloatArray, first: int, start: int, room: int, most: int,
    pairs: IntArray, costs: FloatArray, kept: BoolArray,
) -> None:  # fmt: skip
    """Write the first `most` chosen pairs of each person, who has `room` for them."""
    rank = np.cumsum(chosen, axis=1)
    i, k = np.nonzero(chosen & (rank <= most))
    place = (first + i) * room + rank[i, k] - 1
    one, other = first + i, start + k
    pairs[place] = np.column_stack([np.minimum(one, other), np.maximum(one, other)])
    costs[place], kept[place] = far[i, k], True


def build(
    columns: FloatArray, outputs: FloatArray, n_numbers: int, scales: FloatArray, leaf: int
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """As in `likewise.pairs.box_tree`, except for which of several equal people come first."""
    rows, place = np.concatenate([columns, outputs]), np.arange(len(columns) + len(outputs))
    is_code = (place >= n_numbers) & (place < len(columns))
    factors = np.concatenate([scales, np.ones(len(outputs))])
    order, start, stop, child = np.arange(rows.shape[1]), [0], [rows.shape[1]], [-1]
    node = 0
    while node < len(start):
        a, b = start[node], stop[node]
        if b - a > leaf:
            here = rows[:, order[a:b]]
            widths = np.ptp(here, axis=1)
            widths = factors * np.where(is_code, np.minimum(widths, 1.0), widths)
            axis = int(widths.argmax())
            by_key = np.argsort(here[axis], kind="stable")
            order[a:b], key, half = order[a:b][by_key], here[axis][by_key], (b - a) // 2
            if is_code[axis] and widths[axis] > 0:  # between two codes
                below, above = np.searchsorted(key, key[half]), np.searchsorted(key, key[half], side="right")
                half = int(below if below > 0 and (above == b - a or half - below <= above - half) else above)
            child[node] = len(start)
            start += [a, a + half]
            stop += [a + half, b]
            child += [-1, -1]
        node += 1
    return order, np.array(start), np.array(stop), np.array(child)


def ranges(rows: FloatArray, start: IntArray, stop: IntArray, child: IntArray) -> tuple[FloatArray, FloatArray]:
    """As in `likewise.pairs.box_tree`."""
    low, high = np.empty((len(start), len(rows))), np.empty((len(start), len(rows)))
    for node in range(len(start)):
        here = rows[:, start[node] : stop[node]]
        low[node], high[node] = here.min(axis=1), here.max(axis=1)
    return low, high
