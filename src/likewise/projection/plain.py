"""Functions of `likewise.projection.kernels` in NumPy, equal to the last bit: the same operations.

Envelopes are those of a scan of all anchors, which are columns, as there.
"""

from __future__ import annotations

import numpy as np

from likewise._typing import FloatArray, IntArray

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


def tighten(
    people: FloatArray, anchors: FloatArray, values: FloatArray, n_numbers: int, scales: FloatArray, caps: FloatArray,
    p: float, lower: FloatArray, upper: FloatArray, lower_anchor: IntArray, upper_anchor: IntArray,
) -> int:  # fmt: skip
    """Raise `lower` to the greatest ``values - D``, and lower `upper` to the least ``values + D``, in place.

    The first anchor that attains a bound goes to `lower_anchor` and `upper_anchor`, where the bound is changed. Returns
    the number of distances computed.
    """
    step = max(1, _CELLS // len(values))
    for start in range(0, len(people), step):
        here = slice(start, start + step)
        limits = np.maximum(upper[here, None] - values, values - lower[here, None])
        far = distances(people[here], anchors, n_numbers, scales, caps, p, limits)
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


def distances(
    people: FloatArray, anchors: FloatArray, n_numbers: int, scales: FloatArray, caps: FloatArray, p: float,
    limits: FloatArray,
) -> FloatArray:  # fmt: skip
    """Distances between people and anchors, by the operations of the compiled ones in the same order.

    Powers other than 1, 2 and infinity are slow: beyond the limits, the result is a lower bound of the distance.
    """
    own = [column[:, None] for column in people.T]
    out = np.zeros((len(people), anchors.shape[1]))
    for f in range(n_numbers):
        term = _term(own[f], anchors[f], scales[f], caps[f])
        if p == 1.0:
            out += term
        elif p == 2.0:
            term *= term
            out += term
        else:
            np.maximum(out, term, out=out)
    if p == 2.0:
        np.sqrt(out, out=out)
    elif p not in (1.0, np.inf):
        _raise(out, own, anchors, n_numbers, scales, caps, p, limits)
    for f in range(n_numbers):
        if caps[f] < np.inf:
            out += np.where(np.isnan(own[f]) != np.isnan(anchors[f]), 0.5 * caps[f], 0.0)
    for f in range(n_numbers, len(scales)):
        out += np.where(own[f] != anchors[f], scales[f], 0.0)
    return out


def _term(own: FloatArray, others: FloatArray, scale: float, cap: float) -> FloatArray:
    """Terms of one column of numbers; 0 where one is missing."""
    out: FloatArray = np.subtract(own, others)
    np.abs(out, out=out)
    out *= scale
    if cap < np.inf:
        np.minimum(out, cap, out=out)
        out[np.isnan(out)] = 0.0
    return out


def _raise(
    out: FloatArray, own: list[FloatArray], anchors: FloatArray, n_numbers: int, scales: FloatArray, caps: FloatArray,
    p: float, limits: FloatArray,
) -> None:  # fmt: skip
    """Turn the largest terms into distances. NumPy's powers round differently from Python's, which are those of C."""
    some = np.nonzero((out > 0.0) & (out <= limits + _MARGIN))
    most, total = out[some], np.zeros(len(some[0]))
    for f in range(n_numbers):
        shares = _term(own[f][some[0], 0], anchors[f][some[1]], scales[f], caps[f]) / most
        total += [share**p for share in shares.tolist()]
    out[some] = most * np.array([each ** (1.0 / p) for each in total.tolist()])
