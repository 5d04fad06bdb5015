"""A sampled model behind a calibrator: its intervals, its delta and its epsilon."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.frozen import FrozenEstimator

from likewise import AdditiveClassifier, RecalibratedClassifier, SmoothedClassifier, WeightedLp
from likewise.calibration.calibrators import IsotonicCalibrator, PlattCalibrator, below_slope_one
from likewise.calibration.estimators import RecalibratedScorer, scale_of
from likewise.kernel.bounds import Bound, LoosenedBound, Tanh
from likewise.kernel.certificate import Estimate
from likewise.kernel.schema import ArrayEncoder, People
from promised import Promised
from promised import promise as promised_guarantee

METRIC = WeightedLp([1.0])
SAMPLED = promised_guarantee(METRIC, Bound(), "sampled", "By draws.", slack=0.02, delta=0.001, n_draws=700)
CODING = ArrayEncoder(1)
ANYONE = People(np.zeros((2, 1)), CODING, np.zeros((2, 1)))


@dataclass(frozen=True, eq=False, repr=False)
class Sampled(Promised):
    """Says what it is told to say."""

    found: Estimate

    def estimate(self, people, *, verbose=False):
        return self.found

    def visible(self, people):
        return people.rows


def mapped(found, calibrator):
    return RecalibratedScorer(Sampled(SAMPLED, found), CODING, calibrator).estimate(ANYONE)


def test_the_ends_of_an_interval_of_two_classes_are_mapped_like_the_probability():
    """A calibrator with slope 1/2 around 1/2."""
    mean, lower, upper = np.array([0.25, 0.75]), np.array([0.125, 0.5]), np.array([0.5, 1.0])
    found = Estimate(*(np.column_stack([1 - b, a]) for a, b in ((mean, mean), (lower, upper), (upper, lower))), [7, 7])
    out = mapped(found, IsotonicCalibrator(np.array([-0.5, 0.5]), np.array([0.25, 0.75])))
    half = 0.25 + 0.5 * np.array([mean, lower, upper])
    np.testing.assert_allclose(out.mean, np.column_stack([1 - half[0], half[0]]), rtol=1e-12)
    np.testing.assert_allclose(out.lower, np.column_stack([1 - half[2], half[1]]), rtol=1e-12)
    np.testing.assert_allclose(out.upper, np.column_stack([1 - half[1], half[2]]), rtol=1e-12)
    assert out.n_draws == [7, 7]


def test_the_interval_of_several_classes_is_the_range_over_all_corners():
    """A score is 2 h where probabilities are sampled."""
    mean = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    found = Estimate(mean, mean - 0.05, mean + 0.1, np.array([9, 9]))
    calibrator = PlattCalibrator(0.5, np.array([0.0, 0.3, -0.2]))
    out = mapped(found, calibrator)
    corners = np.array([*itertools.product([-0.05, 0.1], repeat=3)])
    values = softmax(0.5 * 2 * (mean[:, None] + corners) + calibrator.shifts, axis=2)
    np.testing.assert_allclose(out.lower, values.min(axis=1), rtol=1e-12)
    np.testing.assert_allclose(out.upper, values.max(axis=1), rtol=1e-12)


def test_delta_draws_level_and_epsilon_are_those_of_the_model_inside():
    inner = Promised(promised_guarantee(METRIC, LoosenedBound(0.03), "sampled", "", 0.02, 0.001, 700))
    promise = RecalibratedScorer(inner, CODING, IsotonicCalibrator(np.array([0.0]), np.array([0.5]))).guarantee
    assert (promise.delta, promise.n_draws, promise.level) == (0.001, 700, "sampled")
    assert promise.epsilon == pytest.approx(0.03 + 0.02)
    # decide draws from the sampled probabilities, so their error belongs to its curve.
    assert promise.curve.bound(0.1) == pytest.approx(0.1 + 0.03 + 0.02)
    assert promise.slack == 0.0


def test_sampled_log_odds_are_not_within_the_metric():
    """A sampled probability may be 0, whatever its logarithm should be."""
    assert scale_of(promised_guarantee(METRIC, Tanh(), "sampled", "", 0.02)).has_log_odds is False
    assert scale_of(promised_guarantee(METRIC, Tanh())).has_log_odds is True


def test_a_certificate_says_with_which_probability_it_holds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1))
    inner = SmoothedClassifier(
        lambda rows: (rows[:, 0] > 0).astype(int), metric=METRIC, noise="laplace", n_draws=300, delta=0.007
    )
    model = RecalibratedClassifier(inner, cv=2, random_state=0).fit(X, (X[:, 0] > 0).astype(int))
    assert model.certify(X[:3]).delta == model.guarantee_.delta == 0.007
    assert model.guarantee_.n_draws == 300


def test_weights_of_people_count_in_the_calibrator_too():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 1))
    y = (rng.random(200) < 0.5 + 0.4 * X[:, 0]).astype(int)
    frozen = RecalibratedClassifier(AdditiveClassifier(METRIC, penalty=0.1), method="sigmoid", cv=2, random_state=0)
    weights = np.where(y == 1, 3.0, 1.0)
    heavy, plain = (frozen.fit(X, y, sample_weight=w).predict_proba(X)[:, 1].mean() for w in (weights, None))
    share = weights[y == 1].sum() / weights.sum()
    assert heavy == pytest.approx(share, abs=0.08)
    assert plain == pytest.approx(y.mean(), abs=0.08)
    assert heavy > plain + 0.1


def test_a_rising_map_goes_through_the_weighted_means_of_equal_scores():
    """Scores of -0.25 and 0.25 with outcomes whose weighted means are 1/4 and 3/4: a slope of 1 is allowed."""
    z = np.array([-0.25, -0.25, 0.25, 0.25])
    scores = np.column_stack([-2 * z, 2 * z])
    found = IsotonicCalibrator.fit(scores, np.array([0, 1, 0, 1]), np.array([3.0, 1.0, 1.0, 3.0]))
    np.testing.assert_allclose(found.knots, [-0.25, 0.25])
    np.testing.assert_allclose(found.values, [0.25, 0.75])
    np.testing.assert_allclose(found(scores)[:, 1], [0.25, 0.25, 0.75, 0.75])
    np.testing.assert_allclose(found(np.array([[2.0, -2.0], [-2.0, 2.0]]))[:, 1], [0.25, 0.75])  # beyond its knots


def test_no_stored_rise_is_above_its_gap_nor_below_nothing():
    values = below_slope_one(np.array([0.0, 0.1, 0.2, 0.3]), np.array([0.2, 0.5, 0.4, 0.45]))
    np.testing.assert_allclose(values, [0.2, 0.3, 0.3, 0.35])
    assert below_slope_one(np.array([0.0, 2.0]), np.array([0.5, 2.0])).tolist() == [0.5, 1.0]


def test_where_a_rising_map_is_held_back_the_lighter_score_gives_method():
    """Scores 0.2 apart with means 0 and 1: the ends are 0.2 apart too, and three times as close to the heavier one."""
    z = np.array([-0.1, 0.1])
    found = IsotonicCalibrator.fit(np.column_stack([-2 * z, 2 * z]), np.array([0, 1]), np.array([3.0, 1.0]))
    np.testing.assert_allclose(found.values, [0.2, 0.4])


def test_a_sigmoid_that_may_be_no_steeper_has_the_best_shift_for_the_slope_it_has():
    """Outcomes call for a slope of 3. With the best shift, the mean probability is the share of outcomes."""
    rng = np.random.default_rng(0)
    z = rng.normal(1.0, 0.5, 400)
    codes = (rng.random(400) < 1 / (1 + np.exp(-3 * (2 * z - 1.5)))).astype(int)
    weights = rng.integers(1, 4, 400).astype(float)
    found = PlattCalibrator.fit(np.column_stack([-z, z]), codes, weights)
    assert found.slope == 1.0
    p = found(np.column_stack([-z, z]))[:, 1]
    assert np.average(p, weights=weights) == pytest.approx(np.average(codes, weights=weights), abs=1e-6)


@pytest.mark.parametrize("method", ["isotonic", "sigmoid"])
def test_who_has_no_weight_is_as_good_as_absent_in_the_calibrator(method):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (120, 1))
    y = (rng.random(120) < 0.5 + 0.4 * X[:, 0]).astype(int)
    inner = FrozenEstimator(AdditiveClassifier(METRIC, penalty=0.1).fit(X, y))
    weights = np.where(np.arange(120) % 3 == 0, 0.0, 1.0)
    weighted = RecalibratedClassifier(inner, method=method).fit(X, y, sample_weight=weights)
    absent = RecalibratedClassifier(inner, method=method).fit(X[weights > 0], y[weights > 0])
    np.testing.assert_allclose(weighted.predict_proba(X), absent.predict_proba(X), rtol=0, atol=1e-9)


def test_weights_place_the_knots_of_many_scores_as_repetitions_would():
    """700 scores are more than there are knots for."""
    rng = np.random.default_rng(0)
    z, times = np.sort(rng.uniform(-0.5, 0.5, 700)), rng.integers(1, 5, 700)
    codes = (rng.random(700) < 0.5 + z).astype(int)
    scores = np.column_stack([-2 * z, 2 * z])
    weighted = IsotonicCalibrator.fit(scores, codes, times.astype(float))
    repeated = IsotonicCalibrator.fit(np.repeat(scores, times, axis=0), np.repeat(codes, times), np.ones(times.sum()))
    np.testing.assert_allclose(weighted.knots, repeated.knots, rtol=0, atol=1e-12)
    np.testing.assert_allclose(weighted.values, repeated.values, rtol=0, atol=1e-9)
    assert 300 < len(weighted.knots) <= 500


def test_a_calibrator_is_fitted_to_the_estimates_and_not_to_the_ends_of_their_intervals():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 1))
    inner = SmoothedClassifier(
        lambda rows: (rows[:, 0] > 0).astype(int), metric=METRIC, noise="laplace", n_draws=200, random_state=0
    ).fit(X, (X[:, 0] > 0).astype(int))
    model = RecalibratedClassifier(FrozenEstimator(inner)).fit(X, (X[:, 0] > 0).astype(int))
    estimates = np.unique(inner.predict_proba(X)[:, 1]) - 0.5
    np.testing.assert_allclose(model.map_.knots, estimates, rtol=0, atol=1e-9)
