"""All pairs of people who exceed a metric, gathered without looking at every pair.

Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise._numba import njit
from likewise._typing import FloatArray, IntArray
from likewise.pairs.box_tree import (
    LEAF,
    BoxTree,
    bound,
    build_box_tree,
    default_search_parameters,
    push_parts,
    share_out,
    side_by_side,
    tasks_between,
    tasks_within,
)
from likewise.pairs.kernels import fill_differences, fill_distances
from likewise.pairs.points import Kinds
from likewise.pairs.search import search

WORST = 2**14
"""How many pairs are given if there is no room for all."""


@dataclass(frozen=True, eq=False)
class Gathered:
    """Result of `gather`: pairs as positions among the people given, in no special order.

    Attributes
    ----------
    pairs : ndarray of shape (n, 2)
    complete : bool
        Whether these are all; otherwise there was no room for them, and they are the worst.
    """

    pairs: IntArray
    complete: bool


def gather(
    X: FloatArray,
    outputs: FloatArray,
    scales: FloatArray,
    p: float,
    *,
    tolerance: float,
    most: int,
    kinds: Kinds | None = None,
) -> Gathered:
    """Gather pairs with ``difference - D > tolerance``.

    Parameters
    ----------
    X : ndarray of shape (n_people, n_features)
    outputs : ndarray of shape (n_people, n_outputs)
        The difference of two people is the sum of their absolute differences.
    most : int
        Room for pairs.
    kinds : ndarray of shape (n_features,), optional
        As in `likewise.pairs.points`; numbers if not given.
    """
    tree = build_box_tree(X, outputs, default_search_parameters(X, outputs, scales, p, kinds))
    pairs = gather_within(tree, tolerance, most)
    if pairs is not None:
        return Gathered(pairs, True)
    count = np.ones(len(X), dtype=np.int64)
    return Gathered(search(X, outputs, count, scales, p, tolerance, min(most, WORST), kinds=kinds).pairs, False)


def gather_within(tree: BoxTree, tolerance: float, most: int, n_jobs: int | None = None) -> IntArray | None:
    """Pairs of people of one tree, as `order` names them, shape (n, 2); None if there are more than `most`."""
    return _run(tree, tasks_within(tree.child), tolerance, most, n_jobs)


def gather_between(
    one: BoxTree, other: BoxTree, tolerance: float, most: int, n_jobs: int | None = None
) -> IntArray | None:
    """The same for pairs of a person of one tree and a person of another, with the same bearings."""
    both = side_by_side(one, other)
    return _run(both, tasks_between(both.child, len(one.child)), tolerance, most, n_jobs)


def _run(tree: BoxTree, tasks: IntArray, tolerance: float, most: int, n_jobs: int | None) -> IntArray | None:
    count = np.zeros(
        1, dtype=np.int64
    )  # of all lanes: threads may lose each other's additions, so it is never too high
    lanes = share_out(tasks, lambda some: _gather(tree, tolerance, some, most, count), n_jobs)
    return np.concatenate(lanes) if sum(map(len, lanes)) <= most else None


@njit(cache=True, error_model="numpy", nogil=True)
def _gather(tree, tolerance, tasks, most, count):
    (
        columns, answers, rest, order, kinds, n_numbers, scales, p, slopes, steepness, slack, start, stop, child,
        low, high, answer_low, answer_high, rest_low, rest_high, stack_size,
    ) = tree  # fmt: skip
    pairs = np.empty((256, 2), np.int64)
    stack = np.empty((stack_size, 2), np.int64)
    gap, person = np.empty(len(scales)), np.empty(len(scales))
    answer, remainder = np.empty(len(answers)), np.empty(len(slopes))
    differences, distances = np.empty(LEAF), np.empty(LEAF)
    size = 0
    for task in range(len(tasks)):
        top = 1
        stack[0] = tasks[task]
        while top > 0:
            top -= 1
            a, b = stack[top]
            if a != b and bound(
                low[a], high[a], low[b], high[b], answer_low[a], answer_high[a], answer_low[b], answer_high[b],
                rest_low[a], rest_high[a], rest_low[b], rest_high[b], n_numbers, scales, p, slopes, steepness, gap,
            ) + slack <= tolerance:  # fmt: skip
                continue
            if child[a] >= 0 or child[b] >= 0:
                top = push_parts(stack, top, a, b, start, stop, child)
                continue
            for i in range(start[a], stop[a]):
                if a != b:
                    person[:], answer[:], remainder[:] = columns[:, i], answers[:, i], rest[:, i]
                    if bound(
                        person, person, low[b], high[b], answer, answer, answer_low[b], answer_high[b],
                        remainder, remainder, rest_low[b], rest_high[b], n_numbers, scales, p, slopes, steepness, gap,
                    ) + slack <= tolerance:  # fmt: skip
                        continue
                first = i + 1 if a == b else start[b]
                fill_differences(answers, i, first, stop[b], differences)
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
                count[0] += size - before
                if count[0] > most:
                    return pairs[:size].copy()
    return pairs[:size].copy()
