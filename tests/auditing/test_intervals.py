"""Intervals for the population: how often they hold, counted, also where few people carry what is measured."""

import numpy as np
import pytest
from scipy import stats

from chance import too_few
from likewise.auditing.intervals import mean_interval, pair_rate_interval, share_interval

REPEATS = 400


def student(values):
    """The control: the interval for large samples."""
    width = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return values.mean() - width, values.mean() + width


def rare(rng, n, share=0.005, size=0.4):
    return size * (rng.random(n) < share)


def skewed(rng, n):
    return np.minimum(rng.lognormal(-6, 2, n), 1.0)


SKEWED = np.minimum(np.exp(stats.norm(-6, 2).ppf((np.arange(10**6) + 0.5) / 10**6)), 1.0).mean()
MEANS = {
    "rare": (rare, 0.005 * 0.4, 200),
    "rarer": (lambda rng, n: rare(rng, n, 0.002, 1.0), 0.002, 100),
    "nearly all": (lambda rng, n: 1 - rare(rng, n), 1 - 0.002, 200),
    "skewed": (skewed, SKEWED, 60),
    "coins": (lambda rng, n: 1.0 * rng.integers(0, 2, n), 0.5, 30),
    "even": (lambda rng, n: rng.random(n), 0.5, 30),
}


@pytest.mark.parametrize("kind", MEANS)
def test_intervals_of_means_hold(kind):
    draw, truth, n = MEANS[kind]
    rng, held, by_student = np.random.default_rng(0), 0, 0
    for _ in range(REPEATS):
        values = draw(rng, n)
        low, high = mean_interval(values)
        assert 0 <= low <= values.mean() <= high <= 1
        held += low <= truth <= high
        low, high = student(values)
        by_student += low <= truth <= high
    assert not too_few(held, REPEATS, 0.95)
    assert too_few(by_student, REPEATS, 0.95) == (kind not in ("coins", "even"))  # the control


def test_intervals_of_means_are_short_if_the_variance_is_small():
    values = np.random.default_rng(0).normal(0.3, 0.02, 2000)
    low, high = mean_interval(values)
    assert high - low < 2.5 * np.diff(student(values))[0]
    assert high - low < 0.2 * (np.subtract(*share_interval(600, 2000)[::-1]))


def test_intervals_of_means_do_not_depend_on_the_order_and_keep_their_units():
    values = np.random.default_rng(0).beta(0.3, 3, 500)
    low, high = mean_interval(values)
    assert mean_interval(np.sort(values)) == pytest.approx((low, high), rel=1e-9)
    assert mean_interval(20 * values - 5, -5, 15) == pytest.approx((20 * low - 5, 20 * high - 5))
    assert mean_interval(-values, -1, 0) == pytest.approx((-high, -low))


def test_nobody_of_n_leaves_room_for_some():
    """The upper end is at least what 97.5% would see nobody of, and not much more."""
    for n in (1, 20, 1000):
        exact = 1 - 0.025 ** (1 / n)
        low, high = mean_interval(np.zeros(n))
        assert (low, share_interval(0, n)) == (0, pytest.approx((0, exact)))
        assert exact <= high <= 1.75 * exact
        assert pair_rate_interval(0.0, 2 * n) == pytest.approx((0, exact))  # n disjoint pairs
        assert pair_rate_interval(1.0, 2 * n) == pytest.approx((1 - exact, 1))


def test_the_limit_of_a_pair_rate_is_the_least_ratio_of_means():
    """By summing over all counts of disjoint pairs, and thresholds between whole numbers too."""
    k, rate = 30, 0.13
    high = pair_rate_interval(rate, 2 * k + 1)[1]
    counts = np.arange(k + 1)
    chances = stats.binom.pmf(counts, k, high)
    limits = np.linspace(k * rate + 0.01, k, 3000)
    ratios = np.maximum(limits[:, None] - counts, 0) @ chances / (limits - k * rate)
    assert ratios.min() == pytest.approx(0.025, rel=1e-3)
    low = pair_rate_interval(rate, 2 * k)[0]
    assert low == pytest.approx(1 - pair_rate_interval(1 - rate, 2 * k)[1])


def pairs_of(kind, rng, n):
    """The share of violating pairs of n people, and of each person's pairs; and the truth."""
    if kind == "carried by few":  # whoever meets one of 1% of the people
        few = rng.random(n) < 0.01
        others = n - 1 - few.sum() + few
        shares = np.where(few, 1.0, (n - 1 - others + few) / (n - 1))
        return shares, 1 - 0.99**2
    group = rng.random(n) < 0.3  # pairs across two groups
    shares = np.where(group, (~group).sum(), group.sum()) / (n - 1)
    return shares, 2 * 0.3 * 0.7


@pytest.mark.parametrize("n", [40, 150])
@pytest.mark.parametrize("kind", ["carried by few", "across groups"])
def test_intervals_of_pair_rates_hold(kind, n):
    rng, held, by_student = np.random.default_rng(0), 0, 0
    for _ in range(REPEATS):
        shares, truth = pairs_of(kind, rng, n)
        low, high = pair_rate_interval(shares.mean(), n)
        assert 0 <= low <= shares.mean() <= high <= 1
        held += low <= truth <= high
        width = stats.t.ppf(0.975, n - 1) * 2 * stats.sem(shares)
        by_student += abs(shares.mean() - truth) <= width
    assert not too_few(held, REPEATS, 0.95)
    assert too_few(by_student, REPEATS, 0.95) == (kind == "carried by few")  # the control
