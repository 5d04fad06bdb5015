"""An exact search for pairs whose outputs differ by more than their distance, which does not look at every pair.

People are put in a tree of boxes, each with the range of its features and of its outputs. For two boxes, the largest
possible difference of outputs and the smallest possible distance say whether any pair between them can exceed; if
not, none is looked at. If the bounds say that all of them exceed, they are counted, and looked at only where they might
be among the worst. Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from likewise._numba import njit
from likewise._typing import FloatArray, IntArray
from likewise.pairs.box_tree import (
    LEAF,
    MARGIN,
    BoxTree,
    bound,
    build_box_tree,
    default_search_parameters,
    least_difference,
    least_gaps,
    most_difference,
    most_gaps,
    norm,
    push_parts,
    share_out,
    side_by_side,
    tasks_between,
    tasks_within,
)
from likewise.pairs.kernels import fill_differences, fill_distances
from likewise.pairs.points import Kinds


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Result of `search`; pairs are positions among the people given, worst first.

    Worst means the largest excess; among equals, the smallest positions. `times` says how many pairs of equal people
    each pair stands for.
    """

    n_violations: int
    max_ratio: float
    n_compared: int
    pairs: IntArray
    times: IntArray
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
) -> SearchResult:
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
        As in `likewise.pairs.points.Points`; numbers if not given.
    prune : bool
        False looks at every pair: what the search is tested and measured against.
    """
    return search_box(box_of(X, outputs, count, scales, p, kinds), tolerance, n_worst, prune=prune)


def search_every_pair(
    distances_after: Callable[[int], FloatArray],
    outputs: FloatArray,
    count: IntArray,
    tolerance: float,
    n_worst: int,
    thresholds: Sequence[float] = (),
) -> tuple[SearchResult, list[int]]:
    """The same for any distance, by looking at every pair: nothing is known that would decide some without looking.

    Parameters
    ----------
    distances_after : callable
        ``distances_after(i)`` gives the distances from person i to all after them, ``i + 1, i + 2, ...``.
    outputs, count, tolerance, n_worst
        As for `search`.
    thresholds : sequence of float
        At least `tolerance` each: the pairs whose excess is above them are counted too.
    """
    n, counts = len(outputs), [0] * len(thresholds)
    found = SearchResult(0, np.nan, 0, np.empty((0, 2), np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))
    for i in range(n - 1):
        differences, distances = np.abs(outputs[i + 1 :] - outputs[i]).sum(axis=1), distances_after(i)
        here = np.flatnonzero(differences - distances > tolerance)
        differences, distances, times = differences[here], distances[here], count[i] * count[i + 1 + here]
        counts = [
            n_above + int(times[differences - distances > threshold].sum())
            for n_above, threshold in zip(counts, thresholds, strict=True)
        ]
        with np.errstate(divide="ignore", over="ignore"):
            ratio = float((differences / distances).max(initial=0.0))
        pairs = np.column_stack([np.full(len(here), i), i + 1 + here]).astype(np.int64)
        part = SearchResult(int(times.sum()), ratio, n - 1 - i, pairs, times, differences, distances)
        found = merge([found, part], n_worst)
    return found, counts


@dataclass(frozen=True, eq=False)
class Box:
    """People in a tree, and how many equal people each one stands for."""

    tree: BoxTree
    weight: IntArray


@dataclass(frozen=True)
class SearchGoal:
    """What is looked for.

    Attributes
    ----------
    tolerance : float
    n_worst : int
    floor : float
        Excess that at least `n_worst` pairs reach: pairs below it are only counted.
    ratio : float
        A ratio that some pair reaches.
    """

    tolerance: float
    n_worst: int
    floor: float
    ratio: float


def box_of(
    X: FloatArray, outputs: FloatArray, count: IntArray, scales: FloatArray, p: float, kinds: Kinds | None = None
) -> Box:
    """Put people in a tree of boxes; arguments as in `search`."""
    tree = build_box_tree(X, outputs, default_search_parameters(X, outputs, scales, p, kinds))
    return Box(tree, count[tree.order])


def search_box(box: Box, tolerance: float, n_worst: int, *, prune: bool = True) -> SearchResult:
    """As `search`, of people who are in a tree already."""
    guess = first_guess(box, tolerance, n_worst)
    return merge(
        [search_within(box, SearchGoal(tolerance, n_worst, *settle([guess], tolerance, n_worst)), prune=prune)], n_worst
    )


def aim_above(found: SearchResult, threshold: float) -> SearchGoal | None:
    """What to look for to count the pairs with an excess above a threshold, given the search that found some.

    None if no pair is above it. Pairs up to the largest excess and ratio need only be counted.
    """
    if not found.n_violations or found.differences[0] - found.distances[0] <= threshold:
        return None
    return SearchGoal(threshold, 1, float(found.differences[0] - found.distances[0]), found.max_ratio)


def first_guess(box: Box, tolerance: float, n_worst: int) -> tuple[FloatArray, float]:
    """The largest excesses, and the largest ratio, of some pairs."""
    tree = box.tree
    n = tree.columns.shape[1]
    offsets = np.unique([o for o in (1, 2, 3, n // 16, n // 8, n // 4, n // 3, n // 2) if 0 < o < n]).astype(np.int64)
    excess, ratio = _sampled(tree.columns, tree.answers, tree.kinds, tree.scales, tree.p, tolerance, offsets)
    return np.partition(excess, len(excess) - n_worst)[-n_worst:] if len(excess) > n_worst else excess, ratio


def settle(guesses: list[tuple[FloatArray, float]], tolerance: float, n_worst: int) -> tuple[float, float]:
    """Excess that at least `n_worst` pairs reach, and a ratio that some pair reaches: the search need not go below."""
    excess, ratio = np.sort(np.concatenate([part for part, _ in guesses])), max(ratio for _, ratio in guesses)
    return (max(tolerance, float(excess[-n_worst])) if len(excess) >= n_worst else tolerance), ratio


def search_within(box: Box, aim: SearchGoal, *, n_jobs: int | None = None, prune: bool = True) -> SearchResult:
    """Search the pairs of people of one tree."""
    return _search(box, tasks_within(box.tree.child), aim, n_jobs, prune)


def search_between(one: Box, other: Box, aim: SearchGoal, *, n_jobs: int | None = None) -> SearchResult:
    """Search the pairs of a person of one tree and a person of another, with the same bearings."""
    both = Box(side_by_side(one.tree, other.tree), np.append(one.weight, other.weight))
    return _search(both, tasks_between(both.tree.child, len(one.tree.child)), aim, n_jobs, True)


def merge(parts: list[SearchResult], n_worst: int) -> SearchResult:
    """What was found in all the parts of a search."""
    pairs, times, differences, distances = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("pairs", "times", "differences", "distances")
    )
    worst = np.lexsort((pairs[:, 1], pairs[:, 0], -(differences - distances)))[:n_worst]
    ratios = [part.max_ratio for part in parts if part.n_violations]
    return SearchResult(
        n_violations=sum(part.n_violations for part in parts),
        max_ratio=max(ratios) if ratios else np.nan,
        n_compared=sum(part.n_compared for part in parts),
        pairs=pairs[worst],
        times=times[worst],
        differences=differences[worst],
        distances=distances[worst],
    )


def _search(box: Box, tasks: IntArray, aim: SearchGoal, n_jobs: int | None, prune: bool) -> SearchResult:
    tree, weight = box.tree, box.weight
    total = np.concatenate([[0], np.cumsum(weight)])
    node_weight = total[tree.stop] - total[tree.start]
    lanes = share_out(
        tasks,
        lambda some: _run(tree, weight, node_weight, aim.tolerance, some, aim.n_worst, aim.floor, aim.ratio, prune),
        n_jobs,
    )
    found, looked, ratios, pairs, values = zip(*lanes, strict=True)
    pair, value = np.concatenate(pairs), np.concatenate(values)
    part = SearchResult(sum(found), max(ratios), sum(looked), pair[:, :2], pair[:, 2], value[:, 0], value[:, 1])
    return merge([part], aim.n_worst)


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
def _keep(heap, pairs, values, size, excess, i, j, times, difference, distance):
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
    pairs[hole, 0], pairs[hole, 1], pairs[hole, 2] = i, j, times
    values[hole, 0], values[hole, 1] = difference, distance
    return size


@njit(cache=True, error_model="numpy", nogil=True)
def _run(tree, weight, node_weight, tolerance, tasks, n_worst, floor, ratio, prune):
    (
        columns, answers, rest, order, kinds, n_numbers, scales, p, slopes, steepness, slack, start, stop, child,
        low, high, answer_low, answer_high, rest_low, rest_high, stack_size,
    ) = tree  # fmt: skip
    heap, pairs, values = np.empty(n_worst), np.empty((n_worst, 3), np.int64), np.empty((n_worst, 2))
    stack = np.empty((stack_size, 2), np.int64)
    gap, person = np.empty(len(scales)), np.empty(len(scales))
    answer, remainder = np.empty(len(answers)), np.empty(len(slopes))
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
                most = bound(
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
                top = push_parts(stack, top, a, b, start, stop, child)
                continue
            for i in range(start[a], stop[a]):
                if prune and a != b:
                    person[:], answer[:], remainder[:] = columns[:, i], answers[:, i], rest[:, i]
                    most = bound(
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
                        times = weight[i] * weight[first + j]
                        found += times
                        if differences[j] > largest * distances[j]:
                            largest = differences[j] / distances[j] if distances[j] > 0 else np.inf
                        if excess >= least:
                            m, o = order[i], order[first + j]
                            kept = _keep(
                                heap, pairs, values, kept,
                                excess, min(m, o), max(m, o), times, differences[j], distances[j],
                            )  # fmt: skip
                            if kept == n_worst:
                                least = max(least, heap[0])
    return found, looked, largest, pairs[:kept], values[:kept]


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
