"""Compiled: least squares under limits on pairs.

Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

from likewise._compiling import njit


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
