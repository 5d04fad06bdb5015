"""Maps that are nowhere too steep: against brute force, and over a million pairs."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.isotonic import isotonic_regression

from likewise.calibration.calibrators import (
    IsotonicCalibrator,
    PlattCalibrator,
    below_slope_one,
    bounded_isotonic_fit,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("seed", range(6))
def test_rises_are_the_closest_by_a_general_solver(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    targets, weights, most = rng.random(n), rng.uniform(0.2, 3, n), rng.uniform(0.01, 0.4, n - 1)
    found = bounded_isotonic_fit(targets, weights, most)
    limits = {"type": "ineq", "fun": lambda c: np.concatenate([np.diff(c), most - np.diff(c)])}
    cost = {"fun": lambda c: weights @ (c - targets) ** 2, "jac": lambda c: 2 * weights * (c - targets)}
    general = minimize(**cost, x0=np.full(n, 0.5), method="SLSQP", constraints=limits, options={"ftol": 1e-14})
    np.testing.assert_allclose(found, general.x, atol=1e-5)
    assert weights @ (found - targets) ** 2 <= weights @ (general.x - targets) ** 2 + 1e-7
    assert (np.diff(found) >= -1e-15).all()
    assert (np.diff(found) <= most + 1e-15).all()


def test_without_a_limit_it_is_isotonic_regression():
    targets, weights = RNG.random(300), RNG.uniform(0.1, 2, 300)
    expected = isotonic_regression(targets, sample_weight=weights)
    np.testing.assert_allclose(bounded_isotonic_fit(targets, weights, np.full(299, 10.0)), expected, atol=1e-12)


def logits(z):
    return np.column_stack([-2 * z, 2 * z])


def people(n, seed, slope=1.0, shift=0.0):
    """Scores z, and outcomes whose log-odds are ``slope * 4 z + shift``."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 0.5, n)
    return z, (rng.random(n) < expit(slope * 4 * z + shift)).astype(int)


@pytest.mark.parametrize("slope", [0.3, 3.0])
def test_platt_finds_what_it_may_and_stops_at_one(slope):
    z, y = people(20_000, 1, slope, shift=0.7)
    found = PlattCalibrator.fit(logits(z), y, np.ones(len(y)))
    assert found(logits(z))[:, 1].mean() == pytest.approx(y.mean(), abs=1e-6)  # the best shift, at a slope of 1 too
    if slope < 1:
        assert found.slope == pytest.approx(slope, abs=0.03)
        assert found.shifts[1] == pytest.approx(0.7, abs=0.06)
    else:
        assert found.slope == 1.0


def worst_ratio(function, z):
    """Largest change of a probability per change of z, over a million pairs, most of them very close."""
    rng = np.random.default_rng(7)
    a = rng.choice(z, 1_000_000)
    b = a + rng.choice([-1, 1], len(a)) * 10.0 ** rng.uniform(-6, 0, len(a))
    gaps = np.abs(a - b)
    return float((np.abs(function(logits(a))[:, 1] - function(logits(b))[:, 1]) / gaps).max())


@pytest.mark.parametrize("kind", [PlattCalibrator, IsotonicCalibrator])
def test_no_pair_of_a_million_exceeds_the_distance_even_where_the_data_ask_for_more(kind):
    z, y = people(5000, 2, slope=5.0)
    found = kind.fit(logits(z), y, np.ones(len(y)))
    assert 0.99 < worst_ratio(found, z) <= 1 + 1e-9  # rounding of a difference of 1e-6


def test_control_a_slope_of_one_percent_more_is_found():
    z, y = people(5000, 2, slope=5.0)
    platt = PlattCalibrator.fit(logits(z), y, np.ones(len(y)))
    assert worst_ratio(PlattCalibrator(1.01 * platt.slope, platt.shifts), z) > 1.005
    rising = IsotonicCalibrator.fit(logits(z), y, np.ones(len(y)))
    steeper = IsotonicCalibrator(rising.knots, 0.5 + 1.01 * (rising.values - 0.5))
    assert worst_ratio(steeper, z) > 1.005


def test_several_classes_stay_within_tanh_over_a_million_pairs_and_a_control_does_not():
    rng = np.random.default_rng(3)
    D = rng.uniform(0, 1, 1_000_000)
    u = rng.normal(0, 1, (len(D), 3))
    moved = u + 2 * D[:, None] * rng.choice([-1, 1], u.shape)  # differences move by up to 4 D
    codes = np.array([rng.choice(3, p=row) for row in np.exp(3 * u[:3000]) / np.exp(3 * u[:3000]).sum(1)[:, None]])
    found = PlattCalibrator.fit(u[:3000], codes, np.ones(3000))
    assert found.slope == 1.0  # the data ask for 3
    variation = 0.5 * np.abs(found(u) - found(moved)).sum(axis=1)
    assert (variation <= np.tanh(D) + 1e-12).all()
    control = PlattCalibrator(1.01, found.shifts)
    assert (0.5 * np.abs(control(u) - control(moved)).sum(axis=1) > np.tanh(D) + 1e-12).any()


def test_a_rising_map_may_be_steeper_in_probability_where_log_odds_allow_it():
    """The limit is on the score: near 0 and 1 a probability moves slowly with it, and may be stretched there."""
    z, y = people(50_000, 4, slope=1.0, shift=2.0)
    found = IsotonicCalibrator.fit(logits(z), y, np.ones(len(y)))
    inner = np.linspace(0.02, 0.12, 50)
    outer = found(logits(logit(inner) / 4))[:, 1]
    assert np.diff(outer).mean() > 2 * np.diff(inner).mean()
    np.testing.assert_allclose(outer, expit(logit(inner) + 2), atol=0.06)


def test_what_is_too_steep_is_flattened_whoever_found_it():
    knots = np.array([0.0, 0.1, 0.1 + 1e-8, 0.5])
    values = below_slope_one(knots, np.array([0.0, 0.1 + 1e-16, 0.3, 0.2]))
    assert (np.diff(values) >= 0).all()
    assert (np.diff(values) <= np.diff(knots) + 1e-16).all()


def test_many_scores_are_grouped_and_few_are_kept():
    z, y = people(30_000, 5)
    assert len(IsotonicCalibrator.fit(logits(z), y, np.ones(len(y))).knots) <= 500
    few = IsotonicCalibrator.fit(logits(z[:40]), y[:40], np.ones(40))
    assert len(few.knots) == 40


@pytest.mark.parametrize("n", [60, 1500])
def test_weights_count_as_repetitions_do(n):
    """Also of so many people that some share a knot, which is at their mean score."""
    z, y = people(n, 6)
    counts = np.random.default_rng(0).integers(1, 4, n)
    for kind in (PlattCalibrator, IsotonicCalibrator):
        weighted = kind.fit(logits(z), y, counts.astype(float))(logits(z))
        repeated = kind.fit(logits(z.repeat(counts)), y.repeat(counts), np.ones(counts.sum()))(logits(z))
        np.testing.assert_allclose(weighted, repeated, atol=1e-6)
