"""The compiled distance, and scans over all pairs of people that use it.

People are columns here (`X[feature, person]`, `outputs[k, person]`), so that one person is compared with a run of
others in vector instructions. Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

import numpy as np

from likewise._numba import njit
from likewise._parallel import run_in_threads
from likewise._typing import FloatArray, IntArray
from likewise.kernel.distance import CODE, NULLABLE
from likewise.pairs.points import Columns

BLOCK = 512
_N_SHARES = 64  # of the people, for threads: early people have long rows and late ones short rows


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
    """Distance between person i and the persons from `start` to `stop`, where it is below the difference of outputs."""
    fill_distances_from(X[:, i], X, kinds, scales, p, start, stop, differences, out)


@njit(cache=True, error_model="numpy")
def fill_distances_from(person, X, kinds, scales, p, start, stop, limits, out, caps=None):
    """`likewise.kernel.distance.column_distances` from a person to those from `start` to `stop`, to the last bit.

    Above the limit, the result is a lower bound of the distance for powers other than 1, 2 and infinity. Only numbers
    that may be missing have caps.
    """
    n = stop - start
    for j in range(n):
        out[j] = 0.0
    for f in range(X.shape[0]):
        own, scale, others = person[f], scales[f], X[f, start:stop]
        if kinds[f] == CODE or own != own:  # codes come last; a missing number adds nothing
            continue
        cap = None if caps is None else caps[f]
        if p == 1.0 and kinds[f] == NULLABLE:
            for j in range(len(others)):
                out[j] += _term(own, others[j], scale, cap)
        elif p == 1.0:
            for j in range(len(others)):
                out[j] += scale * abs(own - others[j])
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
            if 0.0 < out[j] < limits[j]:
                total = 0.0
                for f in range(X.shape[0]):
                    if kinds[f] != CODE:
                        z = _term(person[f], X[f, start + j], scales[f], None if caps is None else caps[f])
                        total += (z / out[j]) ** p
                out[j] = out[j] * total ** (1.0 / p)
    for f in range(X.shape[0]):
        if kinds[f] == CODE:
            own, scale, others = person[f], scales[f], X[f, start:stop]
            for j in range(len(others)):
                out[j] += scale if own != others[j] else 0.0


@njit(cache=True, error_model="numpy", inline="always")
def _term(own, other, scale, cap):
    """Term of one number; 0 where it is missing (NaN fails every comparison)."""
    z = scale * abs(own - other)
    if cap is not None:
        z = cap if z > cap else z
    return z if z == z else 0.0


def worst_partners(columns: Columns, outputs: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """For each person, the later person with whom they exceed the distance most.

    Parameters
    ----------
    columns : Columns
    outputs : ndarray of shape (n_outputs, n_people)

    Returns
    -------
    partner : ndarray of shape (2, n_people)
        With the largest excess, and with the smallest ``D / difference``; -1 if no pair exceeds.
    excess, ratio : ndarray of shape (n_people,)
        These two extremes; 0 and 1 if no pair exceeds.
    """
    n = columns.X.shape[1]
    found = np.full((2, n), -1, dtype=np.int64), np.zeros(n), np.ones(n)
    run_in_threads(lambda share: _fill_worst(columns, outputs, share, *found), range(_N_SHARES), None)
    return found


@njit(cache=True, error_model="numpy", nogil=True)
def _fill_worst(columns, outputs, share, partner, excess, ratio):
    X, kinds, scales, p = columns
    n = X.shape[1]
    differences, distances = np.empty(BLOCK), np.empty(BLOCK)
    for i in range(share, n, _N_SHARES):
        for start in range(i + 1, n, BLOCK):
            stop = min(n, start + BLOCK)
            fill_differences(outputs, i, start, stop, differences)
            fill_distances(X, kinds, scales, p, i, start, stop, differences, distances)
            for j in range(stop - start):
                if distances[j] < differences[j]:
                    if differences[j] - distances[j] > excess[i]:
                        excess[i] = differences[j] - distances[j]
                        partner[0, i] = start + j
                    if distances[j] / differences[j] < ratio[i]:
                        ratio[i] = distances[j] / differences[j]
                        partner[1, i] = start + j


@njit(cache=True, error_model="numpy", nogil=True)
def within_groups(columns, outputs, m, differences, distances):
    """Fill the results of `likewise.pairs.scans.within_groups`."""
    X, kinds, scales, p = columns
    every = np.full(m, np.inf)  # full distances, never a bound
    for g in range(len(differences)):
        k = 0
        for i in range(g * m, (g + 1) * m - 1):
            stop = (g + 1) * m
            here = slice(k, k + stop - i - 1)
            fill_differences(outputs, i, i + 1, stop, differences[g, here])
            fill_distances(X, kinds, scales, p, i, i + 1, stop, every, distances[g, here])
            k += stop - i - 1
