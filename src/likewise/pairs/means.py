"""Means over all pairs of people, without looking at pairs."""

from __future__ import annotations

from math import comb

import numpy as np

from likewise._typing import FloatArray
from likewise.pairs.points import CODE, Kinds

_MOST = 16  # larger powers follow from this one


def mean_powers(X: FloatArray, p: float, kinds: Kinds) -> FloatArray:
    """Mean over all pairs of ``gap_i^p`` per column, in O(n log n); `X` has shape (n_columns, n_people).

    Exact for codes and for whole p up to 16. Between whole numbers the logarithm of the mean is interpolated, and
    beyond 16 the norm ``mean(gap^16)^(1/16)`` stands for that of p. The result is positive where a column varies.
    """
    n = X.shape[1]
    return np.array([_of_codes(x) if kind == CODE else _of_numbers(x, p, n) for x, kind in zip(X, kinds, strict=True)])


def _of_codes(x: FloatArray) -> float:
    """Pairs that differ: all, without those inside a category."""
    n = len(x)
    count = np.unique(x, return_counts=True)[1].astype(np.float64)
    return float(1 - (count * (count - 1)).sum() / (n * (n - 1)))


def _of_numbers(x: FloatArray, p: float, n: int) -> float:
    """Gaps are 0 where a number is missing."""
    x = np.sort(x[~np.isnan(x)])
    if not len(x) or x[0] == x[-1]:
        return 0.0
    x = x - x.mean()
    size = np.abs(x).max()
    below = min(int(p), _MOST)
    mean = _whole_power(x / size, below, n)
    if p > _MOST:  # by logarithms: powers of a large p leave the floating point
        return float(np.exp(np.clip(p * (np.log(mean) / _MOST + np.log(size)), -690, 690)))
    if p > below:
        mean = mean ** (below + 1 - p) * _whole_power(x / size, below + 1, n) ** (p - below)
    with np.errstate(over="ignore"):
        return float(min(mean * size**p, 1e300))


def _whole_power(x: FloatArray, k: int, n: int) -> float:
    """Sum over pairs of sorted numbers of ``(x_j - x_i)^k``, by the binomial theorem and running sums over i < j."""
    total = np.zeros(len(x))
    for m in range(k + 1):
        before = np.cumsum(x**m) - x**m
        total += comb(k, m) * (-1) ** m * x ** (k - m) * before
    return float(total.sum() / (n * (n - 1) / 2))
