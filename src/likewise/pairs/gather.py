"""All pairs of people who exceed a metric, gathered without comparing every pair.

Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

import numpy as np

from likewise._numba import njit
from likewise._typing import FloatArray, IntArray
from likewise.kernel.distance import Kinds
from likewise.pairs.box_search import search_tree
from likewise.pairs.box_tree import (
    LEAF_SIZE,
    BoxTree,
    box_tree_of,
    concatenate_trees,
    fill_run,
    map_chunks,
    node_pairs,
    parts_of,
    tasks_between,
    tasks_within,
)
from likewise.pairs.scans import N_WORST, NO_PAIRS, Gathered


def gather(
    X: FloatArray,
    outputs: FloatArray,
    scales: FloatArray,
    p: float,
    *,
    tolerance: float,
    max_pairs: int,
    n_worst: int = N_WORST,
    kinds: Kinds,
) -> Gathered:
    """Gather pairs with ``difference - D > tolerance``, or the `n_worst` worst if there are more than `max_pairs`.

    Other arguments as in `likewise.pairs.box_tree.box_tree_of`.
    """
    tree = box_tree_of(X, outputs, scales, p, kinds)
    pairs = gather_within(tree, tolerance, max_pairs)
    if pairs is not None:
        return Gathered(pairs, True)
    n_worst = min(max_pairs, n_worst)
    return Gathered(search_tree(tree, tolerance, n_worst).pairs if n_worst else NO_PAIRS, False)


def gather_within(tree: BoxTree, tolerance: float, max_pairs: int, n_jobs: int | None = None) -> IntArray | None:
    """Pairs of people of one tree, as `order` names them, shape (n, 2); None if there are more than `max_pairs`."""
    return _run(tree, tasks_within(tree.child), tolerance, max_pairs, n_jobs)


def gather_between(
    one: BoxTree, other: BoxTree, tolerance: float, max_pairs: int, n_jobs: int | None = None
) -> IntArray | None:
    """The same for pairs of a person of one tree and a person of another, with the same parameters."""
    both = concatenate_trees(one, other)
    return _run(both, tasks_between(both.child, len(one.child)), tolerance, max_pairs, n_jobs)


def _run(tree: BoxTree, tasks: IntArray, tolerance: float, max_pairs: int, n_jobs: int | None) -> IntArray | None:
    # Shared by all threads, which may lose each other's additions: it is never too high.
    n_gathered = np.zeros(1, dtype=np.int64)
    parts = map_chunks(lambda chunk: _gather(tree, tolerance, chunk, max_pairs, n_gathered), tasks, n_jobs)
    return np.concatenate(parts) if sum(map(len, parts)) <= max_pairs else None


@njit(cache=True, error_model="numpy", nogil=True)
def _gather(tree, tolerance, tasks, max_pairs, n_gathered):
    (columns, outputs), order, start, stop = parts_of(tree), tree.order, tree.start, tree.stop
    pairs, size = np.empty((LEAF_SIZE**2, 2), np.int64), 0
    differences, distances = np.empty(LEAF_SIZE), np.empty(LEAF_SIZE)
    every = np.array([tolerance, -np.inf, 0.0])  # no pair is only counted
    for a, b, _ in node_pairs(tree, tasks, every):
        before = size
        if size + LEAF_SIZE**2 > len(pairs):
            more = np.empty((2 * len(pairs), 2), np.int64)
            more[:size] = pairs[:size]
            pairs = more
        for i in range(start[a], stop[a]):
            first, last = i + 1 if a == b else start[b], stop[b]
            fill_run(columns, outputs, tree.space, i, first, last, differences, distances)
            for j in range(last - first):
                if differences[j] - distances[j] > tolerance:
                    m, o = order[i], order[first + j]
                    pairs[size, 0], pairs[size, 1] = min(m, o), max(m, o)
                    size += 1
        n_gathered[0] += size - before
        if n_gathered[0] > max_pairs:
            break
    return pairs[:size].copy()
