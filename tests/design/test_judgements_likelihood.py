"""Noisy comparisons: the maximum against a general solver, ranges against brute force, and their coverage."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import log_expit
from scipy.stats import chi2

from chance import too_few
from likewise import WeightedLp, learn_metric
from likewise.design.judgements_likelihood import ComparisonLikelihood
from likewise.design.judgements_polytope import Polytope
from likewise.design.judgements_table import WeightSpace
from simulated_judges import comparisons, distances

N_PANELS, N_COMPARISONS, NOISE = 100, 150, 4.0
HIDDEN = np.array([0.02, 0.05, 0.03])
DROP = chi2.ppf(0.95, 1) / 2


def small(seed, n=60):
    """Two weights, whose mean distance is given, so that one number and the noise are unknown."""
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(n, 2)) * 3
    G *= np.where(G @ [2.0, 1.0] + 3 * rng.logistic(size=n) > 0, 1, -1)[:, None]
    polytope = Polytope(np.empty((0, 2)), np.empty(0), np.full(2, np.inf), total=(np.ones(2), 3.0))
    return G, ComparisonLikelihood(G, polytope, np.array([1.5, 1.5]))


@pytest.mark.parametrize("seed", range(5))
def test_the_maximum_is_that_of_a_general_solver(seed):
    G, fitted = small(seed)
    found = minimize(
        lambda v: -log_expit(G @ v).sum(),
        [0.5, 0.5],
        bounds=[(0, None)] * 2,
        method="L-BFGS-B",
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(fitted.weights, 3 * found.x / found.x.sum(), atol=1e-3)
    assert fitted.noise == pytest.approx(3 / found.x.sum(), rel=1e-3)
    assert fitted.log_likelihood == pytest.approx(-found.fun, abs=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_ranges_are_those_of_the_profile_likelihood(seed):
    """Brute force: the likelihood on a grid of directions, at its best noise."""
    G, fitted = small(seed)
    shares = np.linspace(0, 3, 601)
    noises = np.geomspace(0.2, 200, 400)
    profile = [log_expit((G @ [u, 3 - u])[:, None] / noises).sum(axis=0).max() for u in shares]
    inside = shares[np.array(profile) >= fitted.log_likelihood - DROP]
    low, high = fitted.bounds(0.95)
    assert low[0] == pytest.approx(inside.min(), abs=0.01)
    assert high[0] == pytest.approx(inside.max(), abs=0.01)
    np.testing.assert_allclose(low + high[::-1], 3, atol=1e-3)


def test_ranges_of_comparisons_without_an_error_contain_the_exact_ones():
    """If judges never err, the likelihood only excludes weights that contradict an answer clearly."""
    rng = np.random.default_rng(0)
    G = rng.normal(size=(400, 2)) * 3
    G *= np.sign(G @ [2.0, 1.0])[:, None]
    total = (np.ones(2), 3.0)
    fitted = ComparisonLikelihood(
        G, Polytope(np.empty((0, 2)), np.empty(0), np.full(2, np.inf), total=total), np.ones(2)
    )
    exact = Polytope(-G, np.zeros(400), np.full(2, np.inf), total=total).bounds()
    low, high = fitted.bounds(0.95)
    assert (low <= exact[0] + 1e-5).all()
    assert (high >= exact[1] - 1e-5).all()
    assert (high - low).max() < 0.2


@cache
def panels():
    """Estimates, ranges and strict weights of simulated panels, all with the same hidden weights."""
    found = []
    for seed in range(N_PANELS):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(80, 3))
        means = WeightSpace.of(X, WeightedLp(HIDDEN), None).means
        start = WeightedLp(np.full(3, means @ HIDDEN / means.sum()))  # knows the mean distance only
        result = learn_metric(comparisons(X, HIDDEN, N_COMPARISONS, rng, NOISE), X, start, comparisons="logistic")
        found.append([*(result.ranges[name] for name in ("weight", "low", "high")), result.strict().weights])
    return np.array(found).transpose(1, 0, 2)


def uncovered(low, high):
    """Whether ranges of 95% miss the hidden weight of some column too often.

    Of 100 panels, 95 are expected to cover, with a standard deviation of 2.2. A check has a false-alarm rate of 1e-9,
    which 77 panels or fewer reach.
    """
    covering = ((low <= HIDDEN) & (high >= HIDDEN)).sum(axis=0)
    return [too_few(int(n), N_PANELS, 0.95) for n in covering]


def test_ranges_cover_at_the_stated_rate():
    _, low, high, _ = panels()
    assert not any(uncovered(low, high))


def test_control_ranges_half_as_wide_are_found_out():
    weights, low, high, _ = panels()
    assert all(uncovered((weights + low) / 2, (weights + high) / 2))


def test_all_strict_weights_hold_at_once_at_the_stated_rate():
    _, _, _, strict = panels()
    assert not too_few(int((strict <= HIDDEN).all(axis=1).sum()), N_PANELS, 0.95)


def test_control_estimates_are_not_strict():
    weights, *_ = panels()
    assert too_few(int((weights <= HIDDEN).all(axis=1).sum()), N_PANELS, 0.95)


def test_answers_in_points_fix_the_scale_of_noisy_comparisons():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 3))
    answers = comparisons(X, HIDDEN, 400, rng, NOISE)
    D = distances(X, HIDDEN, [0], [1])[0]
    scale = pd.DataFrame({"judge": "Ann", "kind": ["at_least", "at_most"], "a": 0, "b": 1, "points": [D, D]})
    result = learn_metric(pd.concat([answers, scale], ignore_index=True), X, comparisons="logistic")
    assert 100 * result.metric(X[0], X[1]) == pytest.approx(D, abs=1e-3)
    assert (result.ranges["low"] <= HIDDEN).all()
    assert (result.ranges["high"] >= HIDDEN).all()
    np.testing.assert_allclose(result.metric.weights, HIDDEN, rtol=0.4)
    assert result.noise == pytest.approx(NOISE, rel=0.4)


@pytest.mark.parametrize("seed", range(3))
def test_strict_weights_are_lower_ends_of_one_sided_tests_at_a_share_of_the_error(seed):
    """With two weights, a one-sided test at 5% / 2 has the lower end of the two-sided range of 95%."""
    _, fitted = small(seed)
    np.testing.assert_allclose(fitted.lower_bounds(0.95), fitted.bounds(0.95)[0], atol=1e-4)
