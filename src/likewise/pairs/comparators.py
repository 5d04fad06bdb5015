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
from likewise.pairs.box_bounds import Space, largest_distance, least_distance
from likewise.pairs.box_search import people_per_node
from likewise.pairs.box_tree import (
    LEAF_SIZE,
    BoxTree,
    build,
    feature_ranges,
    fill_run,
    node_pairs,
    parts_of,
    ranges,
    tasks_within,
)
from likewise.pairs.kernels import fill_distances_from


def count_exceeding(tree: BoxTree, tolerance: float) -> tuple[IntArray, IntArray]:
    """How many people exceed the distance to each one by more than the tolerance: with a lower, and a higher output.

    For trees of one output. Positions are those of the people whom the tree was built from.
    """
    below, above = _count(tree, people_per_node(tree), tolerance, tasks_within(tree.child))
    found = np.empty((2, len(below)), dtype=np.int64)
    found[:, tree.order] = below, above
    return found[0], found[1]


@njit(cache=True, error_model="numpy", nogil=True)
def _count(tree, node_count, tolerance, tasks):
    (columns, outputs), counts, start, stop = parts_of(tree), tree.counts, tree.start, tree.stop
    output = outputs[0]
    below, above = np.zeros(len(output), np.int64), np.zeros(len(output), np.int64)
    node_below, node_above = np.zeros(len(start), np.int64), np.zeros(len(start), np.int64)
    differences, distances = np.empty(LEAF_SIZE), np.empty(LEAF_SIZE)
    every = np.array([tolerance, np.inf, np.inf])  # pairs of boxes that exceed are always counted together
    for a, b, whole in node_pairs(tree, tasks, every):
        if whole:
            # All outputs of one box are then above all those of the other.
            lower, higher = (a, b) if output[start[a]] < output[start[b]] else (b, a)
            node_above[lower] += node_count[higher]
            node_below[higher] += node_count[lower]
            continue
        for i in range(start[a], stop[a]):
            first, last = i + 1 if a == b else start[b], stop[b]
            fill_run(columns, outputs, tree.space, i, first, last, differences, distances)
            for j in range(last - first):
                if differences[j] - distances[j] > tolerance:
                    lower, higher = (i, first + j) if output[i] < output[first + j] else (first + j, i)
                    above[lower] += counts[higher]
                    below[higher] += counts[lower]
    for node in range(len(start)):
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
    ordered = candidates.take(order)
    columns = np.ascontiguousarray(ordered.points.T)
    limits = np.ascontiguousarray(np.column_stack([ordered.numbers, ordered.codes]).T)
    first = ranges(order[None].astype(np.float64), start, stop, child)[0][:, 0].astype(np.int64)
    features = feature_ranges(columns, np.nan_to_num(columns), kinds, start, stop, child)
    boxes = _Boxes(order, first, start, stop, child, *features, *ranges(limits, start, stop, child))
    ends = np.nan_to_num(np.abs(candidates.points)).max(axis=0, initial=0.0) if len(kinds) else np.empty(0)
    slack = 64 * np.finfo(float).eps * (1 + float(scales @ np.where(is_code, 1.0, 2 * ends)))
    space = Space(kinds, n_numbers, scales, float(p), np.empty((0, len(scales))), np.empty(0), slack)
    qualities, n_ordered = np.column_stack([people.numbers, people.codes]), candidates.numbers.shape[1]
    found: tuple[IntArray, IntArray, FloatArray] = _find(
        people.points, qualities, n_ordered, columns, space, limits, boxes, float(threshold), n_nearest
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
def _find(points, qualities, n_ordered, columns, space, limits, boxes, threshold, n_nearest):
    kinds, _, scales, p, _, _, slack = space
    order, first, start, stop, child, low, high, limit_low, limit_high = boxes
    n = len(qualities)
    counts = np.zeros(n, np.int64)
    nearest, distances = np.full((n, n_nearest), -1), np.full((n, n_nearest), np.inf)
    stack = np.empty(len(child) + 2, np.int64)
    gap = np.empty(len(scales))
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
                own = points[i]
                least = least_distance(own, own, low[node], high[node], space, gap) - slack
                if least > threshold:
                    continue
                if largest_distance(own, own, low[node], high[node], space, gap) + slack > threshold:
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
            fill_distances_from(points[i], columns, kinds, scales, p, start[node], stop[node], unlimited, found)
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
