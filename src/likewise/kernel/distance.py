"""The distance between people, from the parts of a bound metric: the one formula in Python.

``D(a, b) = || s_i |a_i - b_i| ||_p  +  sum of m_i(a_i, b_i)  +  sum of t_c(a_c, b_c)``

The norm is over the numbers that both have, the first sum over columns in which one has none (blanks and special codes,
`likewise.kernel.metric.States`), and the second over the columns of codes. `likewise.pairs.kernels` has the same
operations compiled, in the same order: same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from likewise._typing import FloatArray, IntArray

if TYPE_CHECKING:
    from likewise.kernel.metric import BoundMetric

_CELLS_AT_ONCE = 2**22  # bounds the memory of `pairwise`

Kinds = npt.NDArray[np.int8]

NUMBER, NULLABLE, CODE = 0, 1, 2
"""Kinds of columns: numbers; numbers that may be missing (NaN); codes of categories."""


def distances(metric: BoundMetric, a: FloatArray, b: FloatArray, caps: FloatArray | None = None) -> FloatArray:
    """Distances between rows of the schema along the last axis, with broadcasting.

    `caps` are the largest terms of single columns of numbers, in the order of the columns.
    """
    own, others = np.moveaxis(metric.numbers(a), -1, 0), np.moveaxis(metric.numbers(b), -1, 0)
    kinds, scales = np.where(metric.is_number, NULLABLE, CODE).astype(np.int8), metric.scales.copy()
    scales[list(metric.tables)] = 0.0
    everything = np.full(np.broadcast_shapes(own.shape[1:], others.shape[1:]), np.inf)
    out = column_distances(own, others, kinds, scales, metric.p, everything, caps)
    for i in np.flatnonzero(metric.is_number & (metric.missing > 0)).tolist():
        if i not in metric.special:
            out += metric.missing[i] * (np.isnan(own[i]) != np.isnan(others[i]))
    for i in metric.special:
        out += state_gaps(metric, i, a[..., i], b[..., i])
    for i in metric.tables:
        out += metric.scales[i] * category_gaps(metric, i, own[i], others[i])
    return out


def column_distances(
    own: FloatArray,
    others: FloatArray,
    kinds: Kinds,
    scales: FloatArray,
    p: float,
    limits: FloatArray,
    caps: FloatArray | None = None,
) -> FloatArray:
    """The norm of the gaps of numbers, 0 where one is missing, plus the scales of codes that differ.

    The first axis is over columns; the others are broadcast to the shape of `limits`. Powers other than 1, 2 and
    infinity are slow, so they are taken only where the largest term, a lower bound of the distance, is below the limit;
    elsewhere the lower bound is returned. No term of a number is above its cap.
    """
    out, term = np.zeros(limits.shape), np.empty(limits.shape)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for f in np.flatnonzero((kinds != CODE) & (scales > 0)):
            _fill_term(own[f], others[f], kinds[f], scales[f], None if caps is None else caps[f], term)
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
            some = np.flatnonzero((out > 0.0) & (out < limits))
            out.flat[some] = _raised(own, others, kinds, scales, p, caps, some, out)
    for f in np.flatnonzero((kinds == CODE) & (scales > 0)):
        out += np.where(own[f] != others[f], scales[f], 0.0)
    return out


def _fill_term(own: FloatArray, others: FloatArray, kind: Any, scale: Any, cap: Any, out: FloatArray) -> None:
    """Terms of one column of numbers; 0 where one is missing."""
    np.subtract(own, others, out=out)
    np.abs(out, out=out)
    out *= scale
    if cap is not None:
        np.minimum(out, cap, out=out)
    if kind == NULLABLE:
        out[np.isnan(out)] = 0.0


def _raised(
    own: FloatArray, others: FloatArray, kinds: Kinds, scales: FloatArray, p: float, caps: FloatArray | None,
    some: IntArray, largest: FloatArray,
) -> FloatArray:  # fmt: skip
    """Distances of some pairs for any p. NumPy's powers round differently from Python's, which are those of C."""
    most: FloatArray = largest.ravel()[some]
    total, term = np.zeros(len(some)), np.empty(len(some))
    for f in np.flatnonzero((kinds != CODE) & (scales > 0)):
        a, b = (np.broadcast_to(each[f], largest.shape).ravel()[some] for each in (own, others))
        _fill_term(a, b, kinds[f], scales[f], None if caps is None else caps[f], term)
        total += [share**p for share in (term / most).tolist()]
    return np.asarray(most * np.array([each ** (1.0 / p) for each in total.tolist()]))


def terms(metric: BoundMetric, a: FloatArray, b: FloatArray) -> FloatArray:
    """What each column adds, shape (..., n_columns): numbers that both have inside the norm, all else beside it."""
    out = np.abs(metric.numbers(a) - metric.numbers(b))
    for i in np.flatnonzero(~metric.is_number):
        out[..., i] = category_gaps(metric, int(i), a[..., i], b[..., i])
    out *= metric.scales
    unknown = np.isnan(out)
    if unknown.any():
        blanks = (np.isnan(a) != np.isnan(b)) * np.nan_to_num(metric.missing)
        for column in metric.special:
            blanks[..., column] = state_gaps(metric, column, a[..., column], b[..., column])
        out = np.where(unknown, blanks, out)
    return out


def pairwise(metric: BoundMetric, a: FloatArray, b: FloatArray) -> FloatArray:
    """Distances between every row of `a` and every row of `b`."""
    out = np.empty((len(a), len(b)))
    at_once = max(1, _CELLS_AT_ONCE // max(1, b.size))
    for start in range(0, len(a), at_once):
        out[start : start + at_once] = distances(metric, a[start : start + at_once, None], b[None])
    return out


def category_gaps(metric: BoundMetric, column: int, a: FloatArray, b: FloatArray) -> FloatArray:
    """Share of the weight between codes of a categorical column; 0 where they are equal."""
    if column not in metric.tables:
        return np.asarray(a != b, dtype=np.float64)
    # `UNSEEN` is -1, the last entry.
    return np.asarray(metric.tables[column][a.astype(np.int64), b.astype(np.int64)])


def state_gaps(metric: BoundMetric, column: int, a: FloatArray, b: FloatArray) -> FloatArray:
    """Distance between the states of a column with special codes; 0 between two numbers."""
    states = metric.states[column]
    return np.asarray(states.table[states.of(a), states.of(b)])


def root(weights: FloatArray, p: float) -> FloatArray:
    """Scales ``w^(1/p)`` of weights inside the power; ``w`` for ``p = inf``."""
    with np.errstate(under="ignore"):
        return weights if np.isinf(p) else np.asarray(weights ** (1 / p))


def dual(p: float) -> float:
    """Exponent q with ``1/p + 1/q = 1``."""
    return 1.0 if np.isinf(p) else np.inf if p == 1 else p / (p - 1)


def lp_norm(z: FloatArray, p: float) -> FloatArray:
    """Lp norm along the last axis, without overflow or underflow in the powers; 0 for an empty axis."""
    z = np.abs(z)
    if p == 1 or not z.shape[-1]:
        return np.asarray(z.sum(axis=-1))
    largest = z.max(axis=-1)
    if np.isinf(p):
        return np.asarray(largest)
    divisor = np.where(largest > 0, largest, 1.0)
    with np.errstate(under="ignore"):
        return np.asarray(largest * ((z / divisor[..., None]) ** p).sum(axis=-1) ** (1 / p))
