"""People in a tree of boxes under one metric, with what bounds the pairs between boxes.

Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from likewise._compiling import njit
from likewise._threads import n_threads
from likewise._typing import FloatArray, IntArray
from likewise.pairs.boxes import MARGIN, build, least_gaps, most_difference, most_excess, norm, ranges
from likewise.pairs.points import CODE, GAPPY, NUMBER, Kinds
from likewise.pairs.scans import all_numbers

LEAF = 32
_LANES = 64  # fixed, so that results do not depend on the number of threads


class Arranged(NamedTuple):
    """A tree of boxes as compiled searches take it; they unpack it first, which makes them a quarter faster.

    People stand in the order of the tree, `order` says which ones they are; a node holds those from `start` to `stop`,
    and its parts are the nodes `child` and ``child + 1`` (-1 for a leaf). Ranges are of columns, of outputs
    (`answer_`) and of what `slopes` leave of these (`rest_`). `slack` is above the rounding of every bound.
    """

    columns: FloatArray
    answers: FloatArray
    rest: FloatArray
    order: IntArray
    kinds: Kinds
    n_numbers: int
    scales: FloatArray
    p: float
    slopes: FloatArray
    steepness: FloatArray
    slack: float
    start: IntArray
    stop: IntArray
    child: IntArray
    low: FloatArray
    high: FloatArray
    answer_low: FloatArray
    answer_high: FloatArray
    rest_low: FloatArray
    rest_high: FloatArray
    stack_size: int


def arrange(X: FloatArray, outputs: FloatArray, scales: FloatArray, p: float, kinds: Kinds | None = None) -> Arranged:
    """Put people in boxes; arguments as in `likewise.pairs.search.search`."""
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
    columns, answers = columns.take(order, axis=1), answers.take(order, axis=1)
    centred = _without_gaps(columns)
    low, high = _boxes(columns, centred, kinds, start, stop, child)
    centred -= centred.mean(axis=1, keepdims=True)
    slopes, steepness = _slopes(centred, answers, kinds, scales, p)
    rest = np.ascontiguousarray(answers[:1] - slopes @ centred)
    # Rounding of the rests, and of distances up to the diameter: absolute, where MARGIN is relative.
    widest = np.abs(centred).max(axis=1)
    slack = 64 * np.finfo(float).eps * (1 + float(scales @ np.where(kinds == CODE, 1.0, widest)))
    answer_low, answer_high = ranges(answers, start, stop, child)
    rest_low, rest_high = ranges(rest, start, stop, child)
    return Arranged(
        columns=columns,
        answers=answers,
        rest=rest,
        order=order,
        kinds=kinds,
        n_numbers=n_numbers,
        scales=scales,
        p=float(p),
        slopes=slopes,
        steepness=steepness,
        slack=slack,
        start=start,
        stop=stop,
        child=child,
        low=low,
        high=high,
        answer_low=answer_low,
        answer_high=answer_high,
        rest_low=rest_low,
        rest_high=rest_high,
        stack_size=4 * (_depth(child) + 1),
    )


def share_out(child: IntArray, search: Callable[[IntArray], Any]) -> list[Any]:
    """Run a compiled search in threads, on pairs of nodes that cover all pairs of people once; results in order."""
    tasks = _tasks(child)
    with ThreadPoolExecutor(n_threads(None)) as pool:
        return list(pool.map(lambda lane: search(tasks[lane::_LANES].copy()), range(_LANES)))


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


@njit(cache=True, error_model="numpy")
def bound(
    low_a, high_a, low_b, high_b, answer_low_a, answer_high_a, answer_low_b, answer_high_b,
    rest_low_a, rest_high_a, rest_low_b, rest_high_b, n_numbers, scales, p, slopes, steepness, gap,
):  # fmt: skip
    """Upper bound of the excess between two boxes, or people; `gap` is room to work in."""
    if len(answer_low_a) == 1:
        return most_excess(
            low_a, high_a, low_b, high_b, rest_low_a, rest_high_a, rest_low_b, rest_high_b,
            n_numbers, scales, p, slopes, steepness, gap,
        )  # fmt: skip
    least_gaps(low_a, high_a, low_b, high_b, n_numbers, gap)
    most = most_difference(answer_low_a, answer_high_a, answer_low_b, answer_high_b)
    return most - norm(gap, n_numbers, scales, p) * (1 - MARGIN)


@njit(cache=True, error_model="numpy")
def push_parts(stack, top, a, b, start, stop, child):
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
