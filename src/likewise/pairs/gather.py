"""All pairs of people who exceed a metric, gathered without comparing every pair.

Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

import numpy as np

from likewise._numba import njit
from likewise._typing import FloatArray, IntArray
from likewise.kernel.distance import Kinds
from likewise.pairs.box_bounds import excess_bound
from likewise.pairs.box_search import search_tree
from likewise.pairs.box_tree import (
    LEAF_SIZE,
    BoxTree,
    box_tree_of,
    concatenate_trees,
    map_chunks,
    push_children,
    tasks_between,
    tasks_within,
)
from likewise.pairs.kernels import fill_differences, fill_distances
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
    kinds: Kinds | None = None,
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
    (
        columns, outputs, residuals, order, _, kinds, n_numbers, scales, p, slopes, steepness, slack, start, stop,
        child, low, high, output_low, output_high, residual_low, residual_high, stack_size,
    ) = tree  # fmt: skip
    pairs = np.empty((256, 2), np.int64)
    stack = np.empty((stack_size, 2), np.int64)
    gap, person = np.empty(len(scales)), np.empty(len(scales))
    output, residual = np.empty(len(outputs)), np.empty(len(slopes))
    differences, distances = np.empty(LEAF_SIZE), np.empty(LEAF_SIZE)
    size = 0
    for task in range(len(tasks)):
        top = 1
        stack[0] = tasks[task]
        while top > 0:
            top -= 1
            a, b = stack[top]
            if a != b and excess_bound(
                low[a], high[a], low[b], high[b], output_low[a], output_high[a], output_low[b], output_high[b],
                residual_low[a], residual_high[a], residual_low[b], residual_high[b],
                n_numbers, scales, p, slopes, steepness, gap,
            ) + slack <= tolerance:  # fmt: skip
                continue
            if child[a] >= 0 or child[b] >= 0:
                top = push_children(stack, top, a, b, start, stop, child)
                continue
            for i in range(start[a], stop[a]):
                if a != b:
                    person[:], output[:], residual[:] = columns[:, i], outputs[:, i], residuals[:, i]
                    if excess_bound(
                        person, person, low[b], high[b], output, output, output_low[b], output_high[b],
                        residual, residual, residual_low[b], residual_high[b],
                        n_numbers, scales, p, slopes, steepness, gap,
                    ) + slack <= tolerance:  # fmt: skip
                        continue
                first = i + 1 if a == b else start[b]
                fill_differences(outputs, i, first, stop[b], differences)
                fill_distances(columns, kinds, scales, p, i, first, stop[b], differences, distances)
                before = size
                for j in range(stop[b] - first):
                    if differences[j] - distances[j] > tolerance:
                        if size == len(pairs):
                            more = np.empty((2 * size, 2), np.int64)
                            more[:size] = pairs
                            pairs = more
                        m, o = order[i], order[first + j]
                        pairs[size, 0], pairs[size, 1] = min(m, o), max(m, o)
                        size += 1
                n_gathered[0] += size - before
                if n_gathered[0] > max_pairs:
                    return pairs[:size].copy()
    return pairs[:size].copy()
