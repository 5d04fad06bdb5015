"""The compiled distance, and scans over all pairs of people that use it.

People are columns here (`X[feature, person]`, `outputs[k, person]`), so that one person is compared with a run of
others in vector instructions. Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

import numpy as np

from likewise._numba import njit
from likewise.pairs.points import CODE, NULLABLE

BLOCK = 512


@njit(cache=True, error_model="numpy")
def fill_differences(outputs, i, start, stop, out):
    """Difference of outputs between person i and the persons from `start` to `stop`."""
    for k in range(outputs.shape[0]):
        own, others = outputs[k, i], outputs[k, start:stop]  # a slice: its positions need no check, so loops vectorise
        if k == 0:
            for j in range(len(others)):
                out[j] = abs(own - others[j])
        else:
            for j in range(len(others)):
                out[j] += abs(own - others[j])


@njit(cache=True, error_model="numpy")
def fill_distances(X, kinds, scales, p, i, start, stop, differences, out):
    """Distance between person i and the persons from `start` to `stop`.

    Powers other than 1, 2 and infinity are slow, so they are taken only where the largest coordinate, a lower
    bound of the distance, does not already exceed the difference of outputs; elsewhere the lower bound is stored.
    """
    n = stop - start
    for j in range(n):
        out[j] = 0.0
    for f in range(X.shape[0]):
        own, scale, others = X[f, i], scales[f], X[f, start:stop]
        if kinds[f] == CODE or own != own:  # codes come last; a missing number adds nothing
            continue
        if kinds[f] == NULLABLE:
            for j in range(len(others)):
                z = scale * abs(own - others[j])
                z = z if z == z else 0.0
                if p == 1.0:
                    out[j] += z
                elif p == 2.0:
                    out[j] += z * z
                else:
                    out[j] = z if z > out[j] else out[j]
        elif p == 1.0:
            for j in range(len(others)):
                out[j] += scale * abs(own - others[j])
        elif p == 2.0:
            for j in range(len(others)):
                z = scale * abs(own - others[j])
                out[j] += z * z
        else:
            for j in range(len(others)):
                z = scale * abs(own - others[j])
                out[j] = z if z > out[j] else out[j]
    if p == 2.0:
        for j in range(n):
            out[j] = np.sqrt(out[j])
    elif p != 1.0 and p != np.inf:
        for j in range(n):
            if 0.0 < out[j] < differences[j]:
                out[j] = _raised(X, kinds, scales, p, i, start + j, out[j])
    for f in range(X.shape[0]):
        if kinds[f] == CODE:
            own, scale, others = X[f, i], scales[f], X[f, start:stop]
            for j in range(len(others)):
                out[j] += scale if own != others[j] else 0.0


@njit(cache=True, error_model="numpy")
def _raised(X, kinds, scales, p, i, j, largest):
    """Distance between the numbers of two people, for any p; `largest` is the largest of their scaled gaps."""
    total = 0.0
    for f in range(X.shape[0]):
        z = scales[f] * abs(X[f, i] - X[f, j]) / largest
        if kinds[f] != CODE and z == z:
            total += z**p
    return largest * total ** (1.0 / p)


@njit(cache=True, error_model="numpy", nogil=True)
def worst_partners(X, outputs, kinds, scales, p, tolerance, first, step, partner, excess, ratio):
    """Fill the results of `likewise.pairs.scans.worst_partners` for the persons ``first, first + step, ...``."""
    n = X.shape[1]
    differences, distances = np.empty(BLOCK), np.empty(BLOCK)
    for i in range(first, n, step):
        for start in range(i + 1, n, BLOCK):
            stop = min(n, start + BLOCK)
            fill_differences(outputs, i, start, stop, differences)
            fill_distances(X, kinds, scales, p, i, start, stop, differences, distances)
            for j in range(stop - start):
                needed = differences[j] - tolerance
                if distances[j] < needed:
                    if needed - distances[j] > excess[i]:
                        excess[i] = needed - distances[j]
                        partner[0, i] = start + j
                    if distances[j] / needed < ratio[i]:
                        ratio[i] = distances[j] / needed
                        partner[1, i] = start + j


@njit(cache=True, error_model="numpy", nogil=True)
def within_groups(X, outputs, kinds, scales, p, m, differences, distances):
    """Fill the results of `likewise.pairs.scans.within_groups`."""
    every = np.full(m, np.inf)  # full distances, never a bound
    for g in range(len(differences)):
        k = 0
        for i in range(g * m, (g + 1) * m - 1):
            stop = (g + 1) * m
            here = slice(k, k + stop - i - 1)
            fill_differences(outputs, i, i + 1, stop, differences[g, here])
            fill_distances(X, kinds, scales, p, i, i + 1, stop, every, distances[g, here])
            k += stop - i - 1
