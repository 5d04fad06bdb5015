"""Comparators of each person: those who exceed a metric, and those who are close and no better qualified.

Trees of boxes decide most pairs without comparing them, and memory grows with people, not with pairs. Importing this
module imports numba; callers do so inside functions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likewise._numba import njit
from likewise._typing import FloatArray, IntArray
from likewise.kernel.distance import CODE, Kinds
from likewise.pairs.box_bounds import MARGIN, all_exceed, excess_bound, min_gaps, norm
from likewise.pairs.box_tree import LEAF_SIZE, BoxTree, build, feature_ranges, push_children, ranges, tasks_within
from likewise.pairs.kernels import fill_differences, fill_distances, fill_distances_from
from likewise.pairs.points import Columns


def count_exceeding(tree: BoxTree, tolerance: float) -> tuple[IntArray, IntArray]:
    """How many people exceed the distance to each one by more than the tolerance: with a lower, and a higher output.

    For trees of one output. Positions are those of the people whom the tree was built from.
    """
    total = np.concatenate([[0], np.cumsum(tree.counts)])
    below, above = _count(tree, total[tree.stop] - total[tree.start], tolerance, tasks_within(tree.child))
    found = np.empty((2, len(below)), dtype=np.int64)
    found[:, tree.order] = below, above
    return found[0], found[1]


@njit(cache=True, error_model="numpy", nogil=True)
def _count(tree, node_count, tolerance, tasks):
    (
        columns, outputs, _, _, counts, kinds, n_numbers, scales, p, slopes, steepness, slack, start, stop,
        child, low, high, output_low, output_high, residual_low, residual_high, stack_size,
    ) = tree  # fmt: skip
    n = columns.shape[1]
    below, above = np.zeros(n, np.int64), np.zeros(n, np.int64)
    node_below, node_above = np.zeros(len(child), np.int64), np.zeros(len(child), np.int64)
    stack = np.empty((stack_size, 2), np.int64)
    gap = np.empty(len(scales))
    differences, distances = np.empty(LEAF_SIZE), np.empty(LEAF_SIZE)
    for task in range(len(tasks)):
        top = 1
        stack[0] = tasks[task]
        while top > 0:
            top -= 1
            a, b = stack[top]
            if a != b:
                most = excess_bound(
                    low[a], high[a], low[b], high[b], output_low[a], output_high[a], output_low[b], output_high[b],
                    residual_low[a], residual_high[a], residual_low[b], residual_high[b],
                    n_numbers, scales, p, slopes, steepness, gap,
                )  # fmt: skip
                if most + slack <= tolerance:
                    continue
                if all_exceed(
                    low[a], high[a], low[b], high[b], output_low[a], output_high[a], output_low[b], output_high[b],
                    n_numbers, scales, p, tolerance + slack, np.inf, gap,
                ):  # fmt: skip
                    # All outputs of one box are then above all those of the other.
                    lower, higher = (a, b) if output_high[a, 0] < output_low[b, 0] else (b, a)
                    node_above[lower] += node_count[higher]
                    node_below[higher] += node_count[lower]
                    continue
            if child[a] >= 0 or child[b] >= 0:
                top = push_children(stack, top, a, b, start, stop, child)
                continue
            for i in range(start[a], stop[a]):
                first = i + 1 if a == b else start[b]
                fill_differences(outputs, i, first, stop[b], differences)
                fill_distances(columns, kinds, scales, p, i, first, stop[b], differences, distances)
                for j in range(stop[b] - first):
                    if differences[j] - distances[j] > tolerance:
                        lower, higher = (i, first + j) if outputs[0, i] < outputs[0, first + j] else (first + j, i)
                        above[lower] += counts[higher]
                        below[higher] += counts[lower]
    for node in range(len(child)):
        for i in range(start[node], stop[node]):
            below[i] += node_below[node]
            above[i] += node_above[node]
    return below, above


class Qualifications(NamedTuple):
    """Criteria of a comparison: points under a metric, numbers that must not be higher, codes that must be equal.

    Attributes
    ----------
    points : ndarray of shape (n_people, n_columns)
        As in `likewise.pairs.points.Points`; codes last, none of scale 0, no columns without a metric.
    numbers : ndarray of shape (n_people, n_numbers)
    codes : ndarray of shape (n_people, n_codes)
    """

    points: FloatArray
    numbers: FloatArray
    codes: FloatArray

    def take(self, rows: IntArray) -> Qualifications:
        """Some of the people."""
        return Qualifications(self.points[rows], self.numbers[rows], self.codes[rows])


def find_comparators(
    people: Qualifications,
    candidates: Qualifications,
    kinds: Kinds,
    scales: FloatArray,
    p: float,
    threshold: float,
    n_nearest: int,
) -> tuple[IntArray, IntArray, FloatArray]:
    """Find the candidates within a distance of each person who are no higher in any number and have the same codes.

    Parameters
    ----------
    people, candidates : Qualifications
        At least one each, without missing `numbers` or `codes`.
    kinds, scales, p
        Of the points, as in `likewise.pairs.box_tree.box_tree_of`.
    threshold : float
        Largest distance; infinity for any.
    n_nearest : int
        How many to return.

    Returns
    -------
    counts : ndarray of shape (n_people,)
    nearest : ndarray of shape (n_people, n_nearest)
        Positions among the candidates, closest first and then by position; -1 where there are fewer.
    distances : ndarray of shape (n_people, n_nearest)
        Theirs; infinite where there are fewer.
    """
    is_code = kinds == CODE
    n_numbers = int((~is_code).sum())
    numbers, codes = candidates.points[:, ~is_code], candidates.points[:, is_code]
    rows = np.column_stack([numbers, candidates.numbers, codes, candidates.codes])
    filled = np.ascontiguousarray(np.nan_to_num(rows).T)
    spreads = np.ptp(candidates.numbers, axis=0)
    width = np.concatenate(
        [scales[~is_code], 1 / np.where(spreads > 0, spreads, 1.0), scales[is_code], np.ones(candidates.codes.shape[1])]
    )
    nothing = np.zeros((1, len(rows)))
    order, start, stop, child = build(filled, nothing, n_numbers + candidates.numbers.shape[1], width, LEAF_SIZE)
    columns = Columns(np.ascontiguousarray(candidates.points[order].T), kinds, scales, float(p))
    ordered = candidates.take(order)
    limits = np.ascontiguousarray(np.column_stack([ordered.numbers, ordered.codes]).T)
    first = ranges(order[None].astype(np.float64), start, stop, child)[0][:, 0].astype(np.int64)
    features = feature_ranges(columns.X, np.nan_to_num(columns.X), kinds, start, stop, child)
    boxes = _Boxes(order, first, start, stop, child, *features, *ranges(limits, start, stop, child))
    ends = np.nan_to_num(np.abs(candidates.points)).max(axis=0, initial=0.0) if len(kinds) else np.empty(0)
    slack = 64 * np.finfo(float).eps * (1 + float(scales @ np.where(is_code, 1.0, 2 * ends)))
    qualities, n_ordered = np.column_stack([people.numbers, people.codes]), candidates.numbers.shape[1]
    found: tuple[IntArray, IntArray, FloatArray] = _find(
        people.points, qualities, n_ordered, columns, limits, boxes, float(threshold), slack, n_nearest
    )
    return found


class _Boxes(NamedTuple):
    """Candidates in boxes: their order, the first of each box, its people and children, and ranges per box."""

    order: IntArray
    first: IntArray
    start: IntArray
    stop: IntArray
    child: IntArray
    low: FloatArray
    high: FloatArray
    limit_low: FloatArray
    limit_high: FloatArray


@njit(cache=True, error_model="numpy", nogil=True)
def _find(points, qualities, n_ordered, columns, limits, boxes, threshold, slack, n_nearest):
    X, kinds, scales, p = columns
    order, first, start, stop, child, low, high, limit_low, limit_high = boxes
    n, n_numbers = len(qualities), (kinds != CODE).sum()
    counts = np.zeros(n, np.int64)
    nearest, distances = np.full((n, n_nearest), -1), np.full((n, n_nearest), np.inf)
    stack = np.empty(len(child) + 2, np.int64)
    gap, wide = np.empty(len(scales)), np.empty(len(scales))
    found, unlimited = np.empty(LEAF_SIZE), np.full(LEAF_SIZE, np.inf)
    for i in range(n):
        kept, top = 0, 1
        stack[0] = 0
        while top > 0:
            top -= 1
            node = stack[top]
            possible, certain = True, True
            for f in range(len(limits)):
                if limit_low[node, f] > qualities[i, f] or (f >= n_ordered and limit_high[node, f] < qualities[i, f]):
                    possible = False
                    break
                if limit_high[node, f] > qualities[i, f] or (f >= n_ordered and limit_low[node, f] < qualities[i, f]):
                    certain = False
            if not possible:
                continue
            least = 0.0
            if len(scales):
                min_gaps(points[i], points[i], low[node], high[node], n_numbers, gap)
                least = norm(gap, n_numbers, scales, p) * (1 - MARGIN) - slack
                if least > threshold:
                    continue
                for f in range(len(scales)):
                    wide[f] = max(high[node, f] - points[i, f], points[i, f] - low[node, f])
                    if wide[f] != wide[f]:  # a missing number is at distance 0, but for its mark
                        wide[f] = 0.0
                    elif f >= n_numbers:
                        wide[f] = min(wide[f], 1.0)
                if norm(wide, n_numbers, scales, p) * (1 + MARGIN) + slack > threshold:
                    certain = False
            full = kept == n_nearest
            if certain and full:
                worst, position = distances[i, kept - 1], nearest[i, kept - 1]
                if least > worst or (worst == 0.0 and first[node] > position):
                    counts[i] += stop[node] - start[node]
                    continue
            if child[node] >= 0:
                stack[top], stack[top + 1] = child[node] + 1, child[node]
                top += 2
                continue
            size = stop[node] - start[node]
            fill_distances_from(points[i], X, kinds, scales, p, start[node], stop[node], unlimited, found)
            for j in range(size):
                person = start[node] + j
                fine = found[j] <= threshold
                for f in range(len(limits)):
                    same = limits[f, person] == qualities[i, f]
                    if not (same or (f < n_ordered and limits[f, person] < qualities[i, f])):
                        fine = False
                        break
                if not fine:
                    continue
                counts[i] += 1
                place = kept
                while place > 0 and (
                    distances[i, place - 1] > found[j]
                    or (distances[i, place - 1] == found[j] and nearest[i, place - 1] > order[person])
                ):
                    place -= 1
                if place < n_nearest:
                    kept = min(n_nearest, kept + 1)
                    for k in range(kept - 1, place, -1):
                        distances[i, k], nearest[i, k] = distances[i, k - 1], nearest[i, k - 1]
                    distances[i, place], nearest[i, place] = found[j], order[person]
    return counts, nearest, distances
