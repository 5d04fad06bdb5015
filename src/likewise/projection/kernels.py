"""Compiled: the least ``value + distance`` and the greatest ``value - distance`` over anchors, not all looked at.

Anchors are columns here (`anchors[feature, anchor]`), in the order of a box tree (`likewise.pairs.box_tree`), so that
one person is compared with a run of them in vector instructions. The first `n_numbers` features are numbers, NaN where
missing; the others are codes. Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

import numpy as np

from likewise._numba import njit
from likewise.pairs.box_bounds import MARGIN


@njit(cache=True, nogil=True, error_model="numpy")
def settle(values, weights, first, second, distances, forces, tolerance, most):
    """Move `values` to the weighted least squares under ``values[first] - values[second] <= distances``, in place.

    Hildreth's method: limit by limit, the two values are moved onto it, or as far back as its force (the dual variable)
    allows. `values` and `forces` must fit together, as they do at the start (the targets, and 0) and afterwards.
    """
    shares = 1.0 / weights
    for _ in range(most):
        largest = 0.0
        for k in range(len(first)):
            i, j = first[k], second[k]
            beyond = values[i] - values[j] - distances[k]
            if beyond <= 0.0 and forces[k] == 0.0:
                continue
            step = max(beyond / (shares[i] + shares[j]), -forces[k])
            forces[k] += step
            values[i] -= step * shares[i]
            values[j] += step * shares[j]
            largest = max(largest, abs(step) * max(shares[i], shares[j]))
        if largest <= tolerance:
            return


LEAF = 64
_DEEPEST = 128  # boxes waiting for their turn: at most one per level of the tree


@njit(cache=True, nogil=True, error_model="numpy")
def narrow(people, anchors, values, tree, boxes, scales, caps, p, lower, upper, below, above):
    """Raise `lower` to the greatest ``values - D``, and lower `upper` to the least ``values + D``, over all anchors.

    The result is that of looking at every anchor, to the last bit: a minimum does not depend on the order, and a box
    is left out only where its bounds, rounded outwards, can change neither.

    Parameters
    ----------
    people : ndarray of shape (n_people, n_features)
    anchors : ndarray of shape (n_features, n_anchors)
    values : ndarray of shape (n_anchors,)
    tree : start, stop, child of the boxes
    boxes : least and greatest number of those that have it; 0 where nobody in the box misses it, 1 some, 2 all; least
        and greatest value; and n_numbers
    scales, caps : ndarray of shape (n_features,)
        Distance per unit, and the most that a number can count; half of it where exactly one is missing.
    lower, upper : ndarray of shape (n_people,)
        Where to start, changed in place.
    below, above : ndarray of shape (n_people,)
        The anchors that decided; changed where there are such.

    Returns
    -------
    int
        How many distances were computed.
    """
    start, stop, child = tree
    low, high, gaps, least, greatest, n_numbers = boxes
    waiting, bounds = np.empty(_DEEPEST, np.int64), np.empty(_DEEPEST)
    out = np.empty(LEAF)
    looks = 0
    for i in range(len(people)):
        person, floor, roof = people[i], lower[i], upper[i]
        waiting[0], bounds[0], n_waiting = 0, 0.0, 1
        while n_waiting:
            n_waiting -= 1
            node, bound = waiting[n_waiting], bounds[n_waiting]
            if least[node] + bound >= roof and greatest[node] - bound <= floor:
                continue
            if child[node] < 0:
                a, b = start[node], stop[node]
                # A sum that is not below the roof, and a difference that is not above the floor, are of no interest.
                _fill(
                    person,
                    anchors,
                    a,
                    b,
                    scales,
                    caps,
                    n_numbers,
                    p,
                    max(roof - least[node], greatest[node] - floor),
                    out,
                )
                looks += b - a
                for j in range(b - a):
                    if values[a + j] + out[j] < roof:
                        roof, above[i] = values[a + j] + out[j], a + j
                    if values[a + j] - out[j] > floor:
                        floor, below[i] = values[a + j] - out[j], a + j
                continue
            near, far = child[node], child[node] + 1
            to_near = _least_distance(person, low[near], high[near], gaps[near], scales, caps, n_numbers, p)
            to_far = _least_distance(person, low[far], high[far], gaps[far], scales, caps, n_numbers, p)
            if to_far < to_near:
                near, far, to_near, to_far = far, near, to_far, to_near
            # The nearer one on top: it is looked at first, and often spares the other.
            waiting[n_waiting], bounds[n_waiting] = far, to_far
            waiting[n_waiting + 1], bounds[n_waiting + 1] = near, to_near
            n_waiting += 2
        lower[i], upper[i] = floor, roof
    return looks


@njit(cache=True, nogil=True, error_model="numpy")
def _fill(person, anchors, a, b, scales, caps, n_numbers, p, most, out):
    """Distances between a person and the anchors from a to b, by the same operations in the same order for all.

    Powers other than 1, 2 and infinity are slow: they are taken only where the largest coordinate, a lower bound of the
    distance, is below `most`; elsewhere the bound is put.
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
                out[j] += _part(own, others[j], scale, cap)
        elif p == 2.0:
            for j in range(len(others)):
                z = _part(own, others[j], scale, cap)
                out[j] += z * z
        else:
            for j in range(len(others)):
                z = _part(own, others[j], scale, cap)
                out[j] = z if z > out[j] else out[j]
    if p == 2.0:
        for j in range(n):
            out[j] = np.sqrt(out[j])
    elif p != 1.0 and p != np.inf:
        for j in range(n):
            if 0.0 < out[j] <= most + MARGIN:
                total = 0.0
                for f in range(n_numbers):
                    if person[f] == person[f]:
                        total += (_part(person[f], anchors[f, a + j], scales[f], caps[f]) / out[j]) ** p
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
def _part(own, other, scale, cap):
    """What one number adds; nothing where it is missing (NaN fails every comparison)."""
    z = scale * abs(own - other)
    z = cap if z > cap else z
    return z if z == z else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _least_distance(person, low, high, gaps, scales, caps, n_numbers, p):
    """Lower bound of the distance between a person and the anchors in a box."""
    # Half a cap inside the norm, for an anchor that may miss the number, is at most half a cap beside it.
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
