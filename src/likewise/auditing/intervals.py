"""Confidence intervals for the population that people were drawn from, valid for every sample size.

People are independent draws from the population. None of the intervals is an approximation for large samples: where
nobody of n people is affected, about 4 / n of the population may be, and an interval has to say so.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from likewise._typing import FloatArray
from likewise.kernel.concentration import clopper_pearson

DELTA = 0.05  # probability that an interval is wrong, each for itself


def share_interval(count: int, n: int) -> tuple[float, float]:
    """Interval of a probability, from `count` of `n` (Clopper and Pearson).

    Examples
    --------
    >>> [round(end, 3) for end in share_interval(0, 100)]
    [0.0, 0.036]
    """
    low, high = clopper_pearson(np.array([count / n]), n, DELTA)
    return float(low[0]), float(high[0])


def mean_interval(values: FloatArray, low: float = 0.0, high: float = 1.0) -> tuple[float, float]:
    """Interval of the mean of numbers that are always within [low, high]; short if their variance is small.

    By betting against each mean (Waudby-Smith and Ramdas 2024). For numbers in [0, 1] with mean m, a bet of a share c
    of one's money, ``prod(1 + c (x / m - 1))``, has expectation 1, and so has the average over several c. By Markov's
    inequality it reaches 2 / DELTA with a probability of at most DELTA / 2: means for which it does are too low. It
    falls in m, so that they end at a root; those that are too high are found from 1 - x. The shares are fixed, so that
    the order of people does not matter.

    Examples
    --------
    >>> [round(end, 3) for end in mean_interval(np.zeros(100))]
    [0.0, 0.052]
    """
    shares = np.clip((np.asarray(values, dtype=np.float64) - low) / (high - low), 0.0, 1.0)
    below, above = _least_mean(shares), 1.0 - _least_mean(1.0 - shares)
    return low + (high - low) * below, low + (high - low) * above


def _least_mean(values: FloatArray) -> float:
    """Lower end of the interval of a mean of numbers in [0, 1], wrong with probability DELTA / 2."""
    values = np.where(values < 1e-12, 0.0, values)  # lower numbers have a lower end; these could overflow
    mean = float(values.mean())
    if mean == 0:
        return 0.0
    # The best share falls from about 1 to 1 / n as fewer people have what there is of it.
    bets = 2.0 ** -np.arange(2 + int(0.75 * np.log2(len(values))))

    def log_gain(m: float) -> float:
        with np.errstate(divide="ignore"):  # a bet of everything is lost at 0
            sums = [float(np.log1p(bet * (values / m - 1.0)).sum()) for bet in bets]
        return float(np.logaddexp.reduce(sums) - np.log(len(bets)) - np.log(2 / DELTA))

    start = mean  # where every bet gains nothing, by Jensen's inequality
    while log_gain(start) < 0:
        start /= 2
    return float(_root(log_gain, start, 2 * start)) * (1 - 1e-9)


def pair_rate_interval(rate: float, n_people: int) -> tuple[float, float]:
    """Interval of the probability that a pair of people does something, from the share of all pairs of `n_people`.

    Pairs share people: a few people may carry all of them, and then it is these few that are counted. The share is the
    average, over all ways to split the people into disjoint pairs, of the share among k = n // 2 independent pairs
    (Hoeffding 1963). So for every convex f its ``E f`` is at most that of ``B / k``, with B from Binomial(k, rate), and
    by Markov's inequality ``P(share <= s) <= min_t E max(t - B, 0) / (t - k s)``, the minimum over whole t > k s. This
    holds however violations are spread, and is sharp where few people carry them: n people without a pair leave room
    for 3.7 / n carriers, as many as any valid interval must. If they are spread evenly it is longer than need be.

    Examples
    --------
    >>> [round(end, 3) for rate in (0, 0.2) for end in pair_rate_interval(rate, 1000)]
    [0.0, 0.007, 0.161, 0.244]
    """
    k = n_people // 2
    return 1.0 - _largest_rate(1.0 - rate, k), _largest_rate(rate, k)


def _largest_rate(rate: float, k: int) -> float:
    """Upper end of the interval, wrong with probability DELTA / 2."""
    knots = np.arange(int(np.floor(k * rate * (1 + 1e-12))) + 1, k + 1)
    if not len(knots):
        return 1.0

    def log_ratio(chance: float) -> float:
        # E max(t - B, 0) is the sum of P(B <= i) over i < t.
        sums = np.cumsum(binom.cdf(np.arange(k), k, chance))[knots - 1]
        return float(np.log(max((sums / (knots - k * rate)).min(), 1e-300) / (DELTA / 2)))

    return min(1.0, float(_root(log_ratio, rate, 1.0)) * (1 + 1e-9))


def _root(f: Callable[[float], float], a: float, b: float) -> float:
    return float(brentq(f, a, b, xtol=1e-14, rtol=1e-10))
