"""Intervals for the mean of votes between 0 and 1."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from likewise._typing import FloatArray


def hoeffding(mean: FloatArray, n_draws: int, delta: float) -> tuple[FloatArray, FloatArray]:
    """Interval for the mean of votes in [0, 1]: mean +- sqrt(log(2 / delta) / (2 n))."""
    margin = np.sqrt(np.log(2 / delta) / (2 * n_draws))
    return np.clip(mean - margin, 0, 1), np.clip(mean + margin, 0, 1)


def clopper_pearson(share: FloatArray, n_draws: int, delta: float) -> tuple[FloatArray, FloatArray]:
    """Interval for a probability, from the share of `n_draws` votes in {0, 1}; exact for every n."""
    counts, where = np.unique(np.rint(share * n_draws), return_inverse=True)
    with np.errstate(invalid="ignore"):
        lower = np.where(counts > 0, beta.ppf(delta / 2, counts, n_draws - counts + 1), 0.0)
        upper = np.where(counts < n_draws, beta.ppf(1 - delta / 2, counts + 1, n_draws - counts), 1.0)
    return lower[where].reshape(share.shape), upper[where].reshape(share.shape)


def empirical_bernstein(
    mean: FloatArray, mean_of_squares: FloatArray, n_draws: int, delta: float
) -> tuple[FloatArray, FloatArray]:
    """Interval for the mean of votes in [0, 1] that is short where they vary little.

    ``mean +- (sqrt(2 V L / n) + 7 L / (3 (n - 1)))``, ``L = log(4 / delta)``, with the sample variance V
    (Maurer & Pontil 2009, Theorem 4, on both sides). Needs ``n >= 2``.
    """
    variance = np.maximum(mean_of_squares - mean**2, 0.0) * (n_draws / (n_draws - 1))
    # The difference of two means of n numbers <= 1 is off by less than n units in the last place; more is added.
    variance = variance + 4 * n_draws * np.finfo(np.float64).eps
    log = np.log(4 / delta)
    margin = np.sqrt(2 * variance * log / n_draws) + 7 * log / (3 * (n_draws - 1))
    return np.clip(mean - margin, 0, 1), np.clip(mean + margin, 0, 1)


def subset_margin(n_draws: int | npt.NDArray[np.int64], delta: float, n_classes: int) -> FloatArray:
    """Total variation between sampled and true probabilities, at most, except with `delta`.

    ``sqrt(log((2^m - 2) / delta) / (2 n))``: Hoeffding's inequality for each non-trivial set of the m classes.
    """
    log_sets = n_classes * np.log(2) + np.log1p(-(2.0 ** (1 - n_classes)))
    return np.asarray(np.sqrt((log_sets - np.log(delta)) / (2 * np.asarray(n_draws, dtype=np.float64))))
