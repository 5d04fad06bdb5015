"""The distance between people, from the parts of a bound metric: the one formula in Python.

``D(a, b) = || s_i |a_i - b_i| ||_p  +  sum of m_i  +  sum of t_c(a_c, b_c)``

The norm is over the numbers that both have, the first sum over the numbers that exactly one of them has, and the second
over the columns of codes. The compiled formula is in `likewise.pairs.kernels`, with the same parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from likewise._typing import FloatArray

if TYPE_CHECKING:
    from likewise.kernel.metric import BoundMetric

_CELLS_AT_ONCE = 2**22  # bounds the memory of `pairwise`


def distances(metric: BoundMetric, a: FloatArray, b: FloatArray, caps: FloatArray | None = None) -> FloatArray:
    """Distances between rows of the schema along the last axis, with broadcasting.

    `caps` are the largest terms of single columns of numbers, in the order of the columns.
    """
    numbers, each = metric.is_number, terms(metric, a, b)
    apart = np.isnan(a[..., numbers]) != np.isnan(b[..., numbers])
    inside = np.where(apart, 0.0, each[..., numbers])
    total = lp_norm(inside if caps is None else np.minimum(inside, caps[numbers]), metric.p)
    if apart.any():
        total = total + (apart * each[..., numbers]).sum(axis=-1)
    return np.asarray(total + each[..., ~numbers].sum(axis=-1))


def terms(metric: BoundMetric, a: FloatArray, b: FloatArray) -> FloatArray:
    """What each column adds, shape (..., n_columns): numbers that both have inside the norm, all else beside it."""
    out = np.abs(a - b)
    for i in np.flatnonzero(~metric.is_number):
        out[..., i] = category_gaps(metric, int(i), a[..., i], b[..., i])
    out *= metric.scales
    unknown = np.isnan(out)
    if unknown.any():
        blanks = (np.isnan(a) != np.isnan(b)) * np.nan_to_num(metric.missing)
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
