"""All pairs of people that a metric does not explain, gathered without looking at every pair.

Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise._compiling import njit
from likewise._typing import FloatArray, IntArray
from likewise.pairs.arranged import LEAF, arrange, bound, own_bearings, push_parts, share_out, tasks_within
from likewise.pairs.points import Kinds
from likewise.pairs.scans import fill_differences, fill_distances


@dataclass(frozen=True, eq=False)
class Gathered:
    """Result of `gather`: pairs as positions among the people given, in no special order.

    Attributes
    ----------
    pairs : ndarray of shape (n, 2)
    complete : bool
        Whether these are all; otherwise there was no more room, and they are some.
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
    shortfall: float,
    most: int,
    kinds: Kinds | None = None,
) -> Gathered:
    """Gather pairs with ``D < (1 - shortfall) (difference - tolerance)``.

    Parameters
    ----------
    X : ndarray of shape (n_people, n_features)
    outputs : ndarray of shape (n_people, n_outputs)
        The difference of two people is the sum of their absolute differences.
    most : int
        Room for pairs. Which ones are given if there are more does not depend on the number of threads.
    kinds : ndarray of shape (n_features,), optional
        As in `likewise.pairs.points`; numbers if not given.
    """
    tree = arrange(X, outputs, own_bearings(X, outputs, scales, p, kinds))
    each = -(-most // 8)  # pairs are often near each other, and so in few of the lanes
    lanes = share_out(tasks_within(tree.child), lambda tasks: _gather(tree, tolerance, 1 - shortfall, tasks, each))
    pairs = np.concatenate([pairs for pairs, _ in lanes])
    complete = len(pairs) <= most and all(complete for _, complete in lanes)
    return Gathered(pairs[:: -(-len(pairs) // most)] if len(pairs) else pairs, complete)


@njit(cache=True, error_model="numpy", nogil=True)
def _gather(tree, tolerance, share, tasks, most):
    (
        columns, answers, rest, order, kinds, n_numbers, scales, p, slopes, steepness, slack, start, stop, child,
        low, high, answer_low, answer_high, rest_low, rest_high, stack_size,
    ) = tree  # fmt: skip
    pairs = np.empty((min(most, 256), 2), np.int64)
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
                for j in range(stop[b] - first):
                    if distances[j] < share * (differences[j] - tolerance):
                        if size == len(pairs):
                            if size == most:
                                return pairs, False
                            more = np.empty((min(most, 2 * size), 2), np.int64)
                            more[:size] = pairs
                            pairs = more
                        m, o = order[i], order[first + j]
                        pairs[size, 0], pairs[size, 1] = min(m, o), max(m, o)
                        size += 1
    return pairs[:size].copy(), True
