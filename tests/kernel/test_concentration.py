"""Intervals in closed form: the probability of each tail is what was asked for, no more and no less."""

import numpy as np
import pytest
from scipy import stats

from likewise.kernel.concentration import clopper_pearson, empirical_bernstein, hoeffding, subset_margin


@pytest.mark.parametrize("n", [1, 10, 400])
@pytest.mark.parametrize("delta", [0.2, 1e-3, 1e-9])
def test_clopper_pearson_gives_each_tail_half_of_delta(n, delta):
    counts = np.arange(n + 1)
    lower, upper = clopper_pearson(counts / n, n, delta)
    # At the lower end, as many votes or more have probability delta / 2; at the upper end, as many or fewer.
    np.testing.assert_allclose(stats.binom.sf(counts[1:] - 1, n, lower[1:]), delta / 2, rtol=1e-6)
    np.testing.assert_allclose(stats.binom.cdf(counts[:-1], n, upper[:-1]), delta / 2, rtol=1e-6)
    assert (lower[0], upper[-1]) == (0, 1)


@pytest.mark.parametrize("delta", [0.2, 1e-3, 1e-9])
def test_hoeffding_gives_both_tails_together_delta(delta):
    lower, upper = hoeffding(np.array([0.5]), 10_000, delta)
    for margin in (0.5 - lower[0], upper[0] - 0.5):
        assert 2 * np.exp(-2 * 10_000 * margin**2) == pytest.approx(delta)
    assert hoeffding(np.array([0.0, 1.0]), 3, 0.1) == (
        pytest.approx([0, 0.29], abs=0.01),
        pytest.approx([0.71, 1], abs=0.01),
    )


@pytest.mark.parametrize("n", [20, 500])
@pytest.mark.parametrize("delta", [0.2, 1e-3])
def test_empirical_bernstein_is_that_of_maurer_and_pontil_on_both_sides(n, delta):
    votes = np.random.default_rng(0).beta(20, 20, size=n)
    # Theorem 4 at delta / 2 on either side: sqrt(2 V ln(2 / (delta / 2)) / n) + 7 ln(2 / (delta / 2)) / (3 (n - 1)).
    log = np.log(2 / (delta / 2))
    margin = np.sqrt(2 * votes.var(ddof=1) * log / n) + 7 * log / (3 * (n - 1))
    mean = votes.mean(keepdims=True)
    lower, upper = empirical_bernstein(mean, (votes**2).mean(keepdims=True), n, delta)
    assert lower[0] == pytest.approx(max(0.0, mean[0] - margin), rel=1e-9)
    assert upper[0] == pytest.approx(min(1.0, mean[0] + margin), rel=1e-9)
    assert margin < 0.5 or n == 20  # otherwise nothing was compared


@pytest.mark.parametrize("m", [2, 3, 10, 60])
def test_every_set_of_classes_has_its_share_of_delta(m):
    margin = float(subset_margin(5000, 1e-3, m))
    assert (2.0**m - 2) * np.exp(-2 * 5000 * margin**2) == pytest.approx(1e-3)
