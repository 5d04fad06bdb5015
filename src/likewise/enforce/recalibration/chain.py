"""The rising values closest to given ones, under a limit on each rise."""

from __future__ import annotations

import numpy as np

from likewise._typing import FloatArray


def closest_rises(targets: FloatArray, weights: FloatArray, most: FloatArray) -> FloatArray:
    """``min sum_i w_i (c_i - t_i)^2`` under ``0 <= c_(i+1) - c_i <= most_i``; exact, by dynamic programming.

    Let ``f_i(c)`` be the least cost of the first i values if the i-th is c. Its derivative is piecewise linear and
    rising. Letting the next value be up to ``most_i`` larger puts a flat piece of that length where the derivative is
    0, and moves everything above it up; then the next term's derivative is added. Where the derivative is 0 is the
    best last value, and going back, each value is the best one that is cut to the limits from its successor.

    Parameters
    ----------
    targets, weights : ndarray of shape (n,)
        Weights are positive.
    most : ndarray of shape (n - 1,)
        Positive.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> closest_rises(np.array([0.0, 1.0, 0.0]), np.ones(3), np.array([0.3, 5.0]))
    array([0.13333333, 0.43333333, 0.43333333])
    """
    places, slopes = np.array([targets[0]]), np.array([0.0])  # the derivative at its bends
    outer = 2 * weights[0]  # its slope beyond them
    best = np.empty(len(targets))
    best[0] = targets[0]
    for i in range(1, len(targets)):
        low = int(np.searchsorted(slopes, 0.0))
        places = np.concatenate([places[:low], [best[i - 1], best[i - 1] + most[i - 1]], places[low:] + most[i - 1]])
        slopes = np.concatenate([slopes[:low], [0.0, 0.0], slopes[low:]])
        slopes = slopes + 2 * weights[i] * (places - targets[i])
        outer += 2 * weights[i]
        best[i] = _root(places, slopes, outer)
    values = best.copy()
    for i in range(len(targets) - 2, -1, -1):
        values[i] = min(max(best[i], values[i + 1] - most[i]), values[i + 1])
    return values


def _root(places: FloatArray, slopes: FloatArray, outer: float) -> float:
    """Where a rising piecewise linear function is 0."""
    k = int(np.searchsorted(slopes, 0.0))
    if k == 0:
        return float(places[0] - slopes[0] / outer)
    if k == len(places):
        return float(places[-1] - slopes[-1] / outer)
    share = slopes[k] / (slopes[k] - slopes[k - 1])
    return float(places[k] - share * (places[k] - places[k - 1]))
