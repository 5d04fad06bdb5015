"""Compiled: Hildreth's method, and the envelopes of anchors by a search in a box tree.

Anchors are columns here (`anchors[feature, anchor]`), in the order of a box tree (`likewise.pairs.box_tree`), so that
one person is compared with a run of them in vector instructions. The first `n_numbers` features are numbers, NaN where
missing; the others are category codes. Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

import numpy as np

from likewise._numba import njit
from likewise.pairs.box_bounds import MARGIN


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


@njit(cache=True, nogil=True, error_model="numpy")
def tighten(people, anchors, values, names, tree, boxes, scales, caps, p, lower, upper, lower_anchor, upper_anchor):
    """Raise `lower` to the greatest ``values - D`` over all anchors, and lower `upper` to the least ``values + D``.

    The result is that of `likewise.projection.plain.tighten`, to the last bit: a minimum does not depend on the order,
    the first of equal anchors attains it, and a box is skipped only where its bounds, rounded outwards, can change
    neither.

    Parameters
    ----------
    people : ndarray of shape (n_people, n_features)
    anchors : ndarray of shape (n_features, n_anchors)
    values, names : ndarray of shape (n_anchors,)
    tree : start, stop, child of the boxes
    boxes : least and greatest number per box and feature; 0 if none of the box misses it, 1 some, 2 all; least and
        greatest value per box; n_numbers
    scales, caps : ndarray of shape (n_features,)
        Distance per unit, and the largest term of a number; half of it where exactly one is missing.
    lower, upper : ndarray of shape (n_people,)
        Initial bounds, changed in place.
    lower_anchor, upper_anchor : ndarray of shape (n_people,)
        The anchors that attain the bounds, by their `names`; -1 at the start, changed where the bounds are.

    Returns
    -------
    int
        Number of distances computed.
    """
    start, stop, child = tree
    box_low, box_high, gaps, least, greatest, n_numbers = boxes
    stack, bounds = np.empty(_STACK_SIZE, np.int64), np.empty(_STACK_SIZE)
    out = np.empty(LEAF_SIZE)
    n_distances = 0
    for i in range(len(people)):
        person, below, above = people[i], lower[i], upper[i]
        stack[0], bounds[0], n_stack = 0, 0.0, 1
        while n_stack:
            n_stack -= 1
            node, bound = stack[n_stack], bounds[n_stack]
            # A box may hold an anchor that ties and comes first, unless the bounds are still the initial ones.
            too_high = least[node] + bound >= above and (upper_anchor[i] < 0 or least[node] + bound > above)
            too_low = greatest[node] - bound <= below and (lower_anchor[i] < 0 or greatest[node] - bound < below)
            if too_high and too_low:
                continue
            if child[node] < 0:
                a, b = start[node], stop[node]
                # Anchors further away than this can change neither bound.
                limit = max(above - least[node], greatest[node] - below)
                _distances(person, anchors, a, b, scales, caps, n_numbers, p, limit, out)
                n_distances += b - a
                for j in range(b - a):
                    high, low = values[a + j] + out[j], values[a + j] - out[j]
                    if high <= above and (high < above or names[a + j] < upper_anchor[i]):
                        above, upper_anchor[i] = high, names[a + j]
                    if low >= below and (low > below or names[a + j] < lower_anchor[i]):
                        below, lower_anchor[i] = low, names[a + j]
                continue
            near, far = child[node], child[node] + 1
            to_near = _least_distance(person, box_low[near], box_high[near], gaps[near], scales, caps, n_numbers, p)
            to_far = _least_distance(person, box_low[far], box_high[far], gaps[far], scales, caps, n_numbers, p)
            if to_far < to_near:
                near, far, to_near, to_far = far, near, to_far, to_near
            # The nearer box on top: it is searched first, and often makes the other one unnecessary.
            stack[n_stack], bounds[n_stack] = far, to_far
            stack[n_stack + 1], bounds[n_stack + 1] = near, to_near
            n_stack += 2
        lower[i], upper[i] = below, above
    return n_distances


@njit(cache=True, nogil=True, error_model="numpy")
def _distances(person, anchors, a, b, scales, caps, n_numbers, p, limit, out):
    """Distances between a person and the anchors from a to b, by the same operations in the same order for all.

    Powers other than 1, 2 and infinity are slow: they are taken only where the largest coordinate, a lower bound of the
    distance, is below `limit`; elsewhere the result is that bound.
    """
    n = b - a
    for j in range(n):
        out[j] = 0.0
    for f in range(n_numbers):
        own, scale, cap, others = person[f], scales[f], caps[f], anchors[f, a:b]  # a slice: loops over it vectorise
        if own != own:
            continue
        if p == 1.0 and cap == np.inf:
            for j in range(len(others)):
                out[j] += scale * abs(own - others[j])
        elif p == 1.0:
            for j in range(len(others)):
                out[j] += _term(own, others[j], scale, cap)
        elif p == 2.0:
            for j in range(len(others)):
                z = _term(own, others[j], scale, cap)
                out[j] += z * z
        else:
            for j in range(len(others)):
                z = _term(own, others[j], scale, cap)
                out[j] = z if z > out[j] else out[j]
    if p == 2.0:
        for j in range(n):
            out[j] = np.sqrt(out[j])
    elif p != 1.0 and p != np.inf:
        for j in range(n):
            if 0.0 < out[j] <= limit + MARGIN:
                total = 0.0
                for f in range(n_numbers):
                    if person[f] == person[f]:
                        total += (_term(person[f], anchors[f, a + j], scales[f], caps[f]) / out[j]) ** p
                out[j] *= total ** (1.0 / p)
    for f in range(n_numbers):
        own, half, others = person[f], 0.5 * caps[f], anchors[f, a:b]
        if half < np.inf:
            if own != own:
                for j in range(len(others)):
                    out[j] += half if others[j] == others[j] else 0.0
            else:
                for j in range(len(others)):
                    out[j] += half if others[j] != others[j] else 0.0
    for f in range(n_numbers, len(scales)):
        own, scale, others = person[f], scales[f], anchors[f, a:b]
        for j in range(len(others)):
            out[j] += scale if own != others[j] else 0.0


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _term(own, other, scale, cap):
    """Term of one number; 0 where it is missing (NaN fails every comparison)."""
    z = scale * abs(own - other)
    z = cap if z > cap else z
    return z if z == z else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _least_distance(person, low, high, gaps, scales, caps, n_numbers, p):
    """Lower bound of the distance between a person and the anchors in a box."""
    # An anchor that may miss the number has half a cap outside the norm, which is at least half a cap inside it.
    total, largest, beside = 0.0, 0.0, 0.0
    for f in range(n_numbers):
        own, half = person[f], 0.5 * caps[f]
        if own != own:
            beside += half if gaps[f] == 0 else 0.0
            continue
        if gaps[f] == 2:
            beside += half
            continue
        z = scales[f] * max(low[f] - own, own - high[f])
        z = min(max(z, 0.0), caps[f] if gaps[f] == 0 else half)
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
