"""Functions of `likewise.projection.kernels` in NumPy, equal to the last bit: the same operations.

Envelopes are those of a scan of all anchors, which are columns, as there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.kernel.distance import column_distances
from likewise.pairs.points import Columns

_CELLS = 2**17  # pairs at a time, which fit into the cache of a core
_MARGIN = 1e-12  # far above the rounding of a lower bound


def hildreth(
    values: FloatArray, weights: FloatArray, first: IntArray, second: IntArray, distances: FloatArray,
    duals: FloatArray, tolerance: float, max_sweeps: int,
) -> bool:  # fmt: skip
    """Solve weighted least squares under ``values[first] - values[second] <= distances``, in place."""
    inverse, v, dual = (1.0 / weights).tolist(), values.tolist(), duals.tolist()
    constraints = list(zip(range(len(first)), first.tolist(), second.tolist(), distances.tolist(), strict=True))
    done = False
    for _ in range(max_sweeps):
        largest = 0.0
        for k, i, j, distance in constraints:
            violation = v[i] - v[j] - distance
            if violation <= 0.0 and dual[k] == 0.0:
                continue
            step = max(violation / (inverse[i] + inverse[j]), -dual[k])
            dual[k] += step
            v[i] -= step * inverse[i]
            v[j] += step * inverse[j]
            largest = max(largest, abs(step) * max(inverse[i], inverse[j]))
        done = largest <= tolerance
        if done:
            break
    values[:], duals[:] = v, dual
    return done


def tighten(people: FloatArray, columns: Columns, caps: FloatArray, values: FloatArray, bounds: Any) -> int:
    """As in `likewise.projection.kernels`, with anchors named by their places; returns the number of distances."""
    X, kinds, scales, p = columns
    lower, upper, lower_anchor, upper_anchor = bounds
    step = max(1, _CELLS // len(values))
    for start in range(0, len(people), step):
        here = slice(start, start + step)
        limits = np.maximum(upper[here, None] - values, values - lower[here, None]) + 2 * _MARGIN
        far = column_distances(people[here].T[:, :, None], X[:, None, :], kinds, scales, p, limits, caps)
        rows = np.arange(len(far))
        for ends, best, attained, bound in (
            (values - far, np.argmax, lower_anchor, lower),
            (values + far, np.argmin, upper_anchor, upper),
        ):
            at = best(ends, axis=1)
            found = ends[rows, at]
            changed = found > bound[here] if bound is lower else found < bound[here]
            bound[here] = np.where(changed, found, bound[here])
            attained[here] = np.where(changed, at, attained[here])
    return len(people) * len(values)
