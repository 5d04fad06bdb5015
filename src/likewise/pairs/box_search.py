"""An exact search for pairs whose outputs differ by more than their distance, without comparing every pair.

People are put in a tree of boxes, each with the range of its features and of its outputs. For two boxes, the largest
possible difference of outputs and the smallest possible distance say whether any pair between them can exceed; if
not, none is compared. If the bounds say that all of them exceed, they are counted, and compared only where they might
be among the worst. Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from likewise._numba import njit
from likewise._typing import FloatArray, IntArray
from likewise.kernel.distance import column_distances
from likewise.pairs.box_tree import (
    LEAF_SIZE,
    BoxTree,
    concatenate_trees,
    fill_run,
    map_chunks,
    node_pairs,
    parts_of,
    tasks_between,
    tasks_within,
)
from likewise.pairs.plain import differences
from likewise.pairs.scans import SearchResult, merge

_BELOW_ONE = 1 - 1e-12  # a product may round up although the ratio is not larger


@dataclass(frozen=True)
class SearchGoal:
    """The goal of a search.

    Attributes
    ----------
    tolerance : float
        Pairs with a larger excess are counted.
    n_worst : int
        How many pairs to return.
    floor : float
        Excess that at least `n_worst` pairs reach: pairs below it are only counted.
    ratio : float
        A ratio that some pair reaches.
    """

    tolerance: float
    n_worst: int
    floor: float
    ratio: float


def search_tree(tree: BoxTree, tolerance: float, n_worst: int) -> SearchResult:
    """Find all pairs with ``difference - D > tolerance``, and return the `n_worst` worst of them."""
    return search_within(tree, goal_from([sampled_excesses(tree, tolerance, n_worst)], tolerance, n_worst))


def sampled_excesses(tree: BoxTree, tolerance: float, n_worst: int) -> tuple[FloatArray, float]:
    """The largest excesses, and the largest ratio, of a sample of pairs."""
    (columns, outputs), (kinds, _, scales, p, *_) = parts_of(tree), tree.space
    n, parts, ratio = columns.shape[1], [np.empty(0)], 0.0
    for o in {each for each in (1, 2, 3, n // 16, n // 8, n // 4, n // 3, n // 2) if 0 < each < n}:
        difference = differences(outputs[:, :-o], outputs[:, o:])
        distance = column_distances(columns[:, :-o], columns[:, o:], kinds, scales, p, difference)
        excess = difference - distance
        some = excess > tolerance
        with np.errstate(divide="ignore"):
            ratio = max(ratio, float((difference[some] / distance[some]).max(initial=0.0)))
        parts.append(excess)
    excess = np.concatenate(parts)
    return np.partition(excess, len(excess) - n_worst)[-n_worst:] if len(excess) > n_worst else excess, ratio


def goal_from(samples: list[tuple[FloatArray, float]], tolerance: float, n_worst: int) -> SearchGoal:
    """The goal of a first search, from what `sampled_excesses` gave for each tree."""
    excess, ratio = np.sort(np.concatenate([part for part, _ in samples])), max(ratio for _, ratio in samples)
    floor = max(tolerance, float(excess[-n_worst])) if len(excess) >= n_worst else tolerance
    return SearchGoal(tolerance, n_worst, floor, ratio)


def count_above(
    thresholds: Sequence[float], result: SearchResult, search_again: Callable[[SearchGoal], SearchResult]
) -> list[int]:
    """How many pairs exceed by more than each threshold, after a first search with a smaller tolerance."""

    def count(threshold: float) -> int:
        if result.max_excess <= threshold:
            return 0
        # Pairs up to the largest excess and ratio need only be counted.
        return search_again(SearchGoal(threshold, 1, result.max_excess, result.max_ratio)).n_violations

    return [count(threshold) for threshold in thresholds]


def search_within(tree: BoxTree, goal: SearchGoal, *, n_jobs: int | None = None) -> SearchResult:
    """Search the pairs of people of one tree."""
    return _search(tree, tasks_within(tree.child), goal, n_jobs)


def search_between(one: BoxTree, other: BoxTree, goal: SearchGoal, *, n_jobs: int | None = None) -> SearchResult:
    """Search the pairs of a person of one tree and a person of another, with the same parameters."""
    both = concatenate_trees(one, other)
    return _search(both, tasks_between(both.child, len(one.child)), goal, n_jobs)


def people_per_node(tree: BoxTree) -> IntArray:
    """How many people each node holds, equal ones counted apart."""
    total = np.concatenate([[0], np.cumsum(tree.counts)])
    return np.asarray(total[tree.stop] - total[tree.start])


def _search(tree: BoxTree, tasks: IntArray, goal: SearchGoal, n_jobs: int | None) -> SearchResult:
    given = goal.tolerance, goal.n_worst, goal.floor, goal.ratio
    node_count = people_per_node(tree)
    parts = map_chunks(lambda chunk: _run(tree, node_count, chunk, *given), tasks, n_jobs)
    n_violations, n_compared, ratios, pairs, values = zip(*parts, strict=True)
    pair, value = np.concatenate(pairs), np.concatenate(values)
    part = SearchResult(
        sum(n_violations), max(ratios), sum(n_compared), pair[:, :2], pair[:, 2], value[:, 0], value[:, 1]
    )
    return merge([part], goal.n_worst)


@njit(cache=True, error_model="numpy")
def _put_worst_first(pairs, values, n_worst):
    """Move the pairs with the largest excess to the front, ties by position; return the smallest excess of these."""
    order = np.arange(len(pairs))
    for key in (1.0 * pairs[:, 1], 1.0 * pairs[:, 0], values[:, 1] - values[:, 0]):
        order = order[np.argsort(key[order], kind="mergesort")]
    worst = order[:n_worst]
    pairs[:n_worst], values[:n_worst] = pairs[worst], values[worst]
    return values[n_worst - 1, 0] - values[n_worst - 1, 1]


@njit(cache=True, error_model="numpy", nogil=True)
def _run(tree, node_count, tasks, tolerance, n_worst, floor, ratio):
    room = 2 * n_worst + LEAF_SIZE  # sorted when full
    pairs, values = np.empty((room, 3), np.int64), np.empty((room, 2))
    differences, distances = np.empty(LEAF_SIZE), np.empty(LEAF_SIZE)
    goal = np.array([tolerance, floor, ratio])
    (columns, outputs), order, counts, start, stop = parts_of(tree), tree.order, tree.counts, tree.start, tree.stop
    n_violations, n_compared, kept = 0, 0, 0
    for a, b, whole in node_pairs(tree, tasks, goal):
        if whole:
            n_violations += node_count[a] * node_count[b]
            continue
        for i in range(start[a], stop[a]):
            first, last = i + 1 if a == b else start[b], stop[b]
            fill_run(columns, outputs, tree.space, i, first, last, differences, distances)
            n_compared += last - first
            for j in range(last - first):
                excess = differences[j] - distances[j]
                if excess > tolerance:
                    times = counts[i] * counts[first + j]
                    n_violations += times
                    if differences[j] >= _BELOW_ONE * goal[2] * distances[j]:
                        goal[2] = max(goal[2], differences[j] / distances[j] if distances[j] > 0 else np.inf)
                    if excess >= goal[1]:
                        if kept == room:
                            goal[1] = max(goal[1], _put_worst_first(pairs, values, n_worst))
                            kept = n_worst
                        m, o = order[i], order[first + j]
                        pairs[kept, 0], pairs[kept, 1], pairs[kept, 2] = min(m, o), max(m, o), times
                        values[kept, 0], values[kept, 1] = differences[j], distances[j]
                        kept += 1
    return n_violations, n_compared, goal[2], pairs[:kept], values[:kept]
