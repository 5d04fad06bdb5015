"""An exact search for pairs whose outputs differ by more than their distance, which does not look at every pair.

People are put in a tree of boxes, each with the range of its features and of its outputs. For two boxes, the largest
possible difference of outputs and the smallest possible distance say whether any pair between them can exceed; if
not, none is looked at. If the bounds say that all of them exceed, they are counted, and looked at only where they might
be among the worst. Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numba import njit

from likewise._typing import FloatArray, IntArray
from likewise.pairs.boxes import (
    MARGIN,
    build,
    least_difference,
    least_gaps,
    most_difference,
    most_excess,
    most_gaps,
    norm,
    ranges,
)
from likewise.pairs.points import CODE, GAPPY, NUMBER, Kinds
from likewise.pairs.scans import all_numbers, fill_differences, fill_distances

LEAF = 32
_LANES = 64  # fixed, so that results do not depend on the number of threads


@dataclass(frozen=True, eq=False)
class Found:
    """Result of `search`; pairs are positions among the people given, worst first.

    Worst means the largest excess; among equals, the smallest positions.
    """

    n_violations: int
    max_ratio: float
    n_compared: int
    pairs: IntArray
    differences: FloatArray
    distances: FloatArray


def search(
    X: FloatArray,
    outputs: FloatArray,
    count: IntArray,
    scales: FloatArray,
    p: float,
    tolerance: float,
    n_worst: int,
    *,
    kinds: Kinds | None = None,
    prune: bool = True,
) -> Found:
    """Find all pairs with ``difference - D > tolerance``.

    Parameters
    ----------
    X : ndarray of shape (n_people, n_features)
    outputs : ndarray of shape (n_people, n_outputs)
        The difference of two people is the sum of their absolute differences.
    count : ndarray of shape (n_people,)
        How many equal people each one stands for.
    n_worst : int
        How many pairs to return.
    kinds : ndarray of shape (n_features,), optional
        As in `likewise.pairs.scans.points`; numbers if not given.
    prune : bool
        False looks at every pair: what the search is tested and measured against.
    """
    matters = scales > 0
    if not matters.any():  # one column that separates nobody keeps the kernels simple
        matters = np.arange(len(scales)) == 0
    used = np.flatnonzero(matters)
    if kinds is not None:  # the tree wants codes last
        used = used[np.argsort(kinds[used] == CODE, kind="stable")]
    scales = np.ascontiguousarray(scales[used])
    kinds = all_numbers(scales) if kinds is None else kinds[used]
    n_numbers = int((kinds != CODE).sum())
    columns = np.ascontiguousarray(X[:, used].T)
    answers = np.ascontiguousarray(outputs.T)
    order, start, stop, child = build(_without_gaps(columns), answers, n_numbers, scales, LEAF)
    columns, answers, weight = columns.take(order, axis=1), answers.take(order, axis=1), count[order]
    centred = _without_gaps(columns)
    box = _boxes(columns, centred, kinds, start, stop, child)
    centred -= centred.mean(axis=1, keepdims=True)
    slopes, steepness = _slopes(centred, answers, kinds, scales, p)
    rest = np.ascontiguousarray(answers[:1] - slopes @ centred)
    # Rounding of the rests, and of distances up to the diameter: absolute, where MARGIN is relative.
    widest = np.abs(centred).max(axis=1)
    slack = 64 * np.finfo(float).eps * (1 + float(scales @ np.where(kinds == CODE, 1.0, widest)))
    total = np.concatenate([[0], np.cumsum(weight)])
    floor, ratio = _first_guess(columns, answers, kinds, scales, p, tolerance, n_worst)
    arguments = (
        *(columns, answers, rest, weight, order, kinds, n_numbers, scales, p, tolerance, slopes, steepness, slack),
        *(start, stop, child, total[stop] - total[start]),
        *(box, ranges(answers, start, stop, child), ranges(rest, start, stop, child)),
        4 * (_depth(child) + 1),
    )
    tasks = _tasks(child)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        lanes = list(
            pool.map(
                lambda lane: _run(*arguments, tasks[lane::_LANES].copy(), n_worst, floor, ratio, prune), range(_LANES)
            )
        )
    found, looked, ratios, excesses, pairs, values = zip(*lanes, strict=True)
    pair, value = np.concatenate(pairs), np.concatenate(values)
    worst = np.lexsort((pair[:, 1], pair[:, 0], -np.concatenate(excesses)))[:n_worst]
    return Found(
        n_violations=sum(found),
        max_ratio=max(ratios) if any(found) else np.nan,
        n_compared=sum(looked),
        pairs=pair[worst],
        differences=value[worst, 0],
        distances=value[worst, 1],
    )


def _without_gaps(columns: FloatArray) -> FloatArray:
    """A copy with 0 in place of what is missing."""
    return np.where(np.isnan(columns), 0.0, columns)


def _boxes(
    columns: FloatArray, filled: FloatArray, kinds: Kinds, start: IntArray, stop: IntArray, child: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Ranges of the features; without limits where someone in the box misses a number, whose gap to all others is 0."""
    low, high = ranges(filled, start, stop, child)
    gappy = np.flatnonzero(kinds == GAPPY)
    if len(gappy):
        absent = ranges(np.isnan(columns[gappy]).astype(np.float64), start, stop, child)[1] > 0
        low[:, gappy] = np.where(absent, -np.inf, low[:, gappy])
        high[:, gappy] = np.where(absent, np.inf, high[:, gappy])
    return low, high


def _depth(child: IntArray) -> int:
    """How many times people are split, at most: what the stack of a search must hold."""
    depth = np.zeros(len(child), dtype=np.int64)
    for node in np.flatnonzero(child >= 0):  # children come after their parents
        depth[child[node] : child[node] + 2] = depth[node] + 1
    return int(depth.max())


def _slopes(
    centred: FloatArray, answers: FloatArray, kinds: Kinds, scales: FloatArray, p: float
) -> tuple[FloatArray, FloatArray]:
    """Slopes to take out of the outputs, none steeper than the metric, and their dual norms.

    Any choice is sound that is 0 for codes and gappy numbers; multiples of the least-squares slope follow smooth
    scores well. The first is 0.
    """
    some = np.linspace(0, centred.shape[1] - 1, min(centred.shape[1], 5000)).astype(int)
    X, y = centred[:, some].T * np.where(kinds == NUMBER, scales, 0.0), answers[0, some]
    fit = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(), rcond=None)[0] * (kinds == NUMBER)
    steps = np.array([0.0, 0.5, 1.0, 1.5, 2.0])[:, None] * fit
    if p == 1:
        return np.clip(steps, -1.0, 1.0) * scales, np.abs(steps).max(axis=1)
    conjugate = 1.0 if np.isinf(p) else p / (p - 1)
    steepness = np.linalg.norm(steps, ord=conjugate, axis=1) * (1 + MARGIN)
    shrink = np.maximum(steepness, 1.0)
    return steps / shrink[:, None] * scales, steepness / shrink


def _first_guess(
    columns: FloatArray,
    answers: FloatArray,
    kinds: Kinds,
    scales: FloatArray,
    p: float,
    tolerance: float,
    n_worst: int,
) -> tuple[float, float]:
    """Excess that at least `n_worst` pairs reach, and a ratio that some pair reaches: the search need not go below."""
    n = columns.shape[1]
    offsets = np.unique([o for o in (1, 2, 3, n // 16, n // 8, n // 4, n // 3, n // 2) if 0 < o < n])
    excess, ratio = _sampled(columns, answers, kinds, scales, p, tolerance, offsets)
    if len(excess) < n_worst:
        return tolerance, ratio
    return max(tolerance, float(np.partition(excess, len(excess) - n_worst)[len(excess) - n_worst])), ratio


def _tasks(child: IntArray) -> IntArray:
    """Pairs of nodes that cover all pairs of people once, enough of them to share out; shape (n_tasks, 2)."""
    frontier = [0]
    while len(frontier) < _LANES:
        split = [
            part for node in frontier for part in ((child[node], child[node] + 1) if child[node] >= 0 else (node,))
        ]
        if len(split) == len(frontier):
            break
        frontier = split
    a, b = np.triu_indices(len(frontier))
    nodes = np.array(frontier, dtype=np.int64)
    return np.stack([nodes[a], nodes[b]], axis=1)


@njit(cache=True, error_model="numpy")
def _sampled(columns, answers, kinds, scales, p, tolerance, offsets):
    n = columns.shape[1]
    excess = np.empty(n * len(offsets))
    difference, distance = np.empty(1), np.empty(1)
    ratio, size = 0.0, 0
    for o in offsets:
        for i in range(n - o):
            fill_differences(answers, i, i + o, i + o + 1, difference)
            fill_distances(columns, kinds, scales, p, i, i + o, i + o + 1, difference, distance)
            excess[size] = difference[0] - distance[0]
            if excess[size] > tolerance:
                ratio = max(ratio, difference[0] / distance[0] if distance[0] > 0 else np.inf)
            size += 1
    return excess[:size], ratio


@njit(cache=True, error_model="numpy")
def _better(excess, i, j, other, k, m):
    """Whether the pair (i, j) comes before the pair (k, m) in the table of the worst."""
    if excess != other:
        return excess > other
    return i < k if i != k else j < m


@njit(cache=True, error_model="numpy")
def _keep(heap, pairs, values, size, excess, i, j, difference, distance):
    """Put a pair in the heap, whose root is the least bad pair kept; return the new size."""
    n = len(heap)
    if size < n:
        hole = size
        size += 1
        while hole > 0:
            up = (hole - 1) // 2
            if not _better(heap[up], pairs[up, 0], pairs[up, 1], excess, i, j):
                break
            heap[hole], pairs[hole], values[hole] = heap[up], pairs[up], values[up]
            hole = up
    else:
        if not _better(excess, i, j, heap[0], pairs[0, 0], pairs[0, 1]):
            return size
        hole = 0
        while 2 * hole + 1 < n:
            down = 2 * hole + 1
            right = down + 1
            if right < n and _better(
                heap[down], pairs[down, 0], pairs[down, 1], heap[right], pairs[right, 0], pairs[right, 1]
            ):
                down = right
            if not _better(excess, i, j, heap[down], pairs[down, 0], pairs[down, 1]):
                break
            heap[hole], pairs[hole], values[hole] = heap[down], pairs[down], values[down]
            hole = down
    heap[hole] = excess
    pairs[hole, 0], pairs[hole, 1] = i, j
    values[hole, 0], values[hole, 1] = difference, distance
    return size


@njit(cache=True, error_model="numpy", nogil=True)
def _run(
    columns, answers, rest, weight, order, kinds, n_numbers, scales, p, tolerance, slopes, steepness, slack,
    start, stop, child, node_weight, box, answer_box, rest_box, stack_size,
    tasks, n_worst, floor, ratio, prune,
):  # fmt: skip
    d, k = columns.shape[0], answers.shape[0]
    low, high = box
    answer_low, answer_high = answer_box
    rest_low, rest_high = rest_box
    heap, pairs, values = np.empty(n_worst), np.empty((n_worst, 2), np.int64), np.empty((n_worst, 2))
    stack = np.empty((stack_size, 2), np.int64)
    gap, person, answer, remainder = np.empty(d), np.empty(d), np.empty(k), np.empty(len(slopes))
    differences, distances = np.empty(LEAF), np.empty(LEAF)
    least, largest = floor, ratio
    found, looked, kept = 0, 0, 0
    for task in range(len(tasks)):
        top = 1
        stack[0] = tasks[task]
        while top > 0:
            top -= 1
            a, b = stack[top]
            if prune and a != b:
                most = _bound(
                    low[a], high[a], low[b], high[b], answer_low[a], answer_high[a], answer_low[b], answer_high[b],
                    rest_low[a], rest_high[a], rest_low[b], rest_high[b], n_numbers, scales, p, slopes, steepness, gap,
                ) + slack  # fmt: skip
                if most <= tolerance:
                    continue
                if most < least and _all_exceed(
                    low[a], high[a], low[b], high[b], answer_low[a], answer_high[a], answer_low[b], answer_high[b],
                    n_numbers, scales, p, tolerance + slack, largest, gap,
                ):  # fmt: skip
                    found += node_weight[a] * node_weight[b]
                    continue
            if child[a] >= 0 or child[b] >= 0:
                top = _push_parts(stack, top, a, b, start, stop, child)
                continue
            for i in range(start[a], stop[a]):
                if prune and a != b:
                    person[:], answer[:], remainder[:] = columns[:, i], answers[:, i], rest[:, i]
                    most = _bound(
                        person, person, low[b], high[b], answer, answer, answer_low[b], answer_high[b],
                        remainder, remainder, rest_low[b], rest_high[b], n_numbers, scales, p, slopes, steepness, gap,
                    )  # fmt: skip
                    if most + slack <= tolerance:
                        continue
                first = i + 1 if a == b else start[b]
                fill_differences(answers, i, first, stop[b], differences)
                fill_distances(columns, kinds, scales, p, i, first, stop[b], differences, distances)
                looked += stop[b] - first
                for j in range(stop[b] - first):
                    excess = differences[j] - distances[j]
                    if excess > tolerance:
                        found += weight[i] * weight[first + j]
                        if differences[j] > largest * distances[j]:
                            largest = differences[j] / distances[j] if distances[j] > 0 else np.inf
                        if excess >= least:
                            m, o = order[i], order[first + j]
                            kept = _keep(
                                heap, pairs, values, kept,
                                excess, min(m, o), max(m, o), differences[j], distances[j],
                            )  # fmt: skip
                            if kept == n_worst:
                                least = max(least, heap[0])
    return found, looked, largest, heap[:kept], pairs[:kept], values[:kept]


@njit(cache=True, error_model="numpy")
def _bound(
    low_a, high_a, low_b, high_b, answer_low_a, answer_high_a, answer_low_b, answer_high_b,
    rest_low_a, rest_high_a, rest_low_b, rest_high_b, n_numbers, scales, p, slopes, steepness, gap,
):  # fmt: skip
    """Upper bound of the excess between two boxes."""
    if len(answer_low_a) == 1:
        return most_excess(
            low_a, high_a, low_b, high_b, rest_low_a, rest_high_a, rest_low_b, rest_high_b,
            n_numbers, scales, p, slopes, steepness, gap,
        )  # fmt: skip
    least_gaps(low_a, high_a, low_b, high_b, n_numbers, gap)
    most = most_difference(answer_low_a, answer_high_a, answer_low_b, answer_high_b)
    return most - norm(gap, n_numbers, scales, p) * (1 - MARGIN)


@njit(cache=True, error_model="numpy")
def _all_exceed(
    low_a, high_a, low_b, high_b, answer_low_a, answer_high_a, answer_low_b, answer_high_b,
    n_numbers, scales, p, tolerance, largest, gap,
):  # fmt: skip
    """Whether all pairs between two boxes exceed, with ratios below `largest`: then it is enough to count them."""
    if largest < np.inf:
        least_gaps(low_a, high_a, low_b, high_b, n_numbers, gap)
        most = most_difference(answer_low_a, answer_high_a, answer_low_b, answer_high_b)
        if most >= largest * norm(gap, n_numbers, scales, p) * (1 - MARGIN):
            return False
    most_gaps(low_a, high_a, low_b, high_b, n_numbers, gap)
    least = least_difference(answer_low_a, answer_high_a, answer_low_b, answer_high_b)
    return least * (1 - MARGIN) - norm(gap, n_numbers, scales, p) * (1 + MARGIN) > tolerance


@njit(cache=True, error_model="numpy")
def _push_parts(stack, top, a, b, start, stop, child):
    """Replace a pair of nodes by the pairs of its parts, splitting the larger node; return the new top."""
    if a == b:
        one = child[a]
        stack[top, 0], stack[top, 1] = one, one
        stack[top + 1, 0], stack[top + 1, 1] = one, one + 1
        stack[top + 2, 0], stack[top + 2, 1] = one + 1, one + 1
        return top + 3
    if child[a] < 0 or (child[b] >= 0 and stop[b] - start[b] > stop[a] - start[a]):
        a, b = b, a
    stack[top, 0], stack[top, 1] = child[a], b
    stack[top + 1, 0], stack[top + 1, 1] = child[a] + 1, b
    return top + 2
