"""Compiled: Hildreth's method, and the envelopes of anchors by a search in a box tree.

Anchors are columns here (`anchors[feature, anchor]`), in the order of a box tree (`likewise.pairs.box_tree`), so that
one person is compared with a run of them in vector instructions. Importing this module imports numba; callers do so
inside functions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from likewise._numba import njit
from likewise._typing import FloatArray, IntArray
from likewise.kernel.distance import CODE
from likewise.pairs.box_bounds import MARGIN
from likewise.pairs.kernels import fill_distances_from
from likewise.pairs.points import Columns


@njit(cache=True, nogil=True, error_model="numpy")
def hildreth(values, weights, first, second, distances, duals, tolerance, max_sweeps):
    """Solve weighted least squares under ``values[first] - values[second] <= distances``, in place.

    Constraint by constraint, the two values are moved onto it, or as far back as its dual variable allows. `values` and
    `duals` must match: the targets and 0 at the start, and the results of the previous call afterwards. Returns whether
    the last sweep moved no value by more than the tolerance.
    """
    inverse = 1.0 / weights
    for _ in range(max_sweeps):
        largest = 0.0
        for k in range(len(first)):
            i, j = first[k], second[k]
            violation = values[i] - values[j] - distances[k]
            if violation <= 0.0 and duals[k] == 0.0:
                continue
            step = max(violation / (inverse[i] + inverse[j]), -duals[k])
            duals[k] += step
            values[i] -= step * inverse[i]
            values[j] += step * inverse[j]
            largest = max(largest, abs(step) * max(inverse[i], inverse[j]))
        if largest <= tolerance:
            return True
    return False


LEAF_SIZE = 64
_STACK_SIZE = 128  # at most one pending box per level of the tree


class Anchors(NamedTuple):
    """Anchors in the order of a box tree.

    Attributes
    ----------
    columns : Columns
    caps : ndarray of shape (n_columns,)
        Largest term of each number.
    values, names : ndarray of shape (n_anchors,)
    start, stop, child : ndarray of shape (n_boxes,)
    low, high : ndarray of shape (n_boxes, n_columns)
        Ranges of columns, over those who have the number; unlimited if nobody has.
    reach : ndarray of shape (n_boxes, n_columns)
        Gap that makes the largest term; half of it if somebody misses the number, who is half a cap away outside the
        norm, which is at least half a cap inside it.
    least, greatest : ndarray of shape (n_boxes,)
        Ranges of values.
    """

    columns: Columns
    caps: FloatArray
    values: FloatArray
    names: IntArray
    start: IntArray
    stop: IntArray
    child: IntArray
    low: FloatArray
    high: FloatArray
    reach: FloatArray
    least: FloatArray
    greatest: FloatArray


@njit(cache=True, nogil=True, error_model="numpy")
def tighten(people, anchors, bounds):
    """Raise lower bounds to the greatest ``values - D`` over all anchors, and lower upper ones to the least sum.

    The result is that of `likewise.projection.plain.tighten`, to the last bit: a minimum does not depend on the order,
    the first of equal anchors attains it, and a box is skipped only where its bounds, rounded outwards, can change
    neither.

    Parameters
    ----------
    people : ndarray of shape (n_people, n_columns)
        As points.
    anchors : Anchors
    bounds : lower, upper, and the anchors that attain them, by their names: -1 at the start. Changed in place.

    Returns
    -------
    int
        Number of distances computed.
    """
    columns, caps, values, names, start, stop, child, low, high, reach, least, greatest = anchors
    X, kinds, scales, p = columns
    lower, upper, lower_anchor, upper_anchor = bounds
    stack, nearest = np.empty(_STACK_SIZE, np.int64), np.empty(_STACK_SIZE)
    out, limits = np.empty(LEAF_SIZE), np.empty(LEAF_SIZE)
    n_distances, n_numbers = 0, (kinds != CODE).sum()
    for i in range(len(people)):
        person, below, above = people[i], lower[i], upper[i]
        stack[0], nearest[0], n_stack = 0, 0.0, 1
        while n_stack:
            n_stack -= 1
            node, bound = stack[n_stack], nearest[n_stack]
            # A box may hold an anchor that ties and comes first, unless the bounds are still the initial ones.
            too_high = least[node] + bound >= above and (upper_anchor[i] < 0 or least[node] + bound > above)
            too_low = greatest[node] - bound <= below and (lower_anchor[i] < 0 or greatest[node] - bound < below)
            if too_high and too_low:
                continue
            if child[node] < 0:
                a, b = start[node], stop[node]
                # Anchors further away than this can change neither bound.
                limits[:] = max(above - least[node], greatest[node] - below) + 2 * MARGIN
                fill_distances_from(person, X, kinds, scales, p, a, b, limits, out, caps)
                n_distances += b - a
                for j in range(b - a):
                    highest, lowest = values[a + j] + out[j], values[a + j] - out[j]
                    if highest <= above and (highest < above or names[a + j] < upper_anchor[i]):
                        above, upper_anchor[i] = highest, names[a + j]
                    if lowest >= below and (lowest > below or names[a + j] < lower_anchor[i]):
                        below, lower_anchor[i] = lowest, names[a + j]
                continue
            near, far = child[node], child[node] + 1
            to_near = least_distance(person, low[near], high[near], reach[near], n_numbers, scales, p)
            to_far = least_distance(person, low[far], high[far], reach[far], n_numbers, scales, p)
            if to_far < to_near:
                near, far, to_near, to_far = far, near, to_far, to_near
            # The nearer box on top: it is searched first, and often makes the other one unnecessary.
            stack[n_stack], nearest[n_stack] = far, to_far
            stack[n_stack + 1], nearest[n_stack + 1] = near, to_near
            n_stack += 2
        lower[i], upper[i] = below, above
    return n_distances


@njit(cache=True, nogil=True, error_model="numpy")
def least_distance(person, low, high, reach, n_numbers, scales, p):
    """Lower bound of the distance between a person and the anchors in a box."""
    total, largest, beside = 0.0, 0.0, 0.0
    for f in range(n_numbers):
        own = person[f]
        z = max(low[f] - own, own - high[f])
        z = scales[f] * min(z, reach[f]) if z > 0.0 else 0.0
        if p == 1.0:
            total += z
        elif p == 2.0:
            total += z * z
        else:
            largest = max(largest, z)
    if p == 2.0:
        total = np.sqrt(total)
    elif p != 1.0:
        total = largest
    for f in range(n_numbers, len(scales)):
        if person[f] < low[f] or person[f] > high[f]:
            beside += scales[f]
    return (total + beside) * (1 - MARGIN)
