"""An attack on numbers measures in shares of their range, as the guarantee does."""

import numpy as np
import pytest

from likewise import AdditiveClassifier, AdditiveRegressor, WeightedLp, attack

METRIC = WeightedLp({"x": 0.01})
PEOPLE = np.linspace(0, 100, 21)[:, None]
N = 2000


@pytest.fixture(scope="module")
def steepest():
    """From 100 to 300 over a distance of 1: all that is allowed."""
    model = AdditiveRegressor(WeightedLp([0.01]), penalty=1e-6, output_range=(100, 300))
    return model.fit(PEOPLE, 100 + 2 * PEOPLE[:, 0])


def test_a_regressor_that_uses_all_of_its_guarantee_uses_all_of_it(steepest):
    found = attack(steepest, WeightedLp([0.01]), n_pairs=N, random_state=0)
    assert found.largest_share == pytest.approx(1.0, abs=1e-5)
    assert found.n_violations == 0
    assert found.bound == pytest.approx(min(1.0, found.distance))
    assert found.tolerance == pytest.approx(1e-9)


def test_against_half_the_metric_it_exceeds_by_half_of_the_range(steepest):
    """Not the metric of its guarantee: the distance itself is the limit, half of what the outputs differ by."""
    found = attack(steepest, WeightedLp([0.005]), PEOPLE, n_pairs=N, random_state=0)
    assert found.guarantee is None
    assert found.bound == found.distance
    assert 0.8 < found.difference <= 1.0
    assert 0.4 < found.excess <= 0.5
    assert found.largest_share == pytest.approx(2.0, rel=1e-3)
    assert found.n_violations > 0


@pytest.mark.parametrize(("limits", "share"), [((0, 400), 0.5), ((100, 300), 1.0), (None, 200.0)])
def test_a_function_is_measured_in_the_range_that_is_given(limits, share):
    found = attack(
        lambda rows: 100 + 2 * rows[:, 0].clip(0, 100), METRIC, PEOPLE, n_pairs=N, output_range=limits, random_state=0
    )
    assert found.largest_share == pytest.approx(share, rel=1e-3)


def test_without_a_range_rounding_is_in_proportion_to_the_outputs():
    def million(rows):
        return 1e6 * rows[:, 0].clip(0, 100) / 100

    found = attack(million, METRIC, PEOPLE, n_pairs=N, random_state=0)
    assert found.tolerance == pytest.approx(1e-9 * 1e6, rel=0.1)
    assert attack(million, METRIC, PEOPLE, n_pairs=N, output_range=(0, 1e6), random_state=0).tolerance == 1e-9


class Nearly:
    """Probabilities between 0.5 and 0.51."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X):
        p = 0.5 + 0.01 * np.clip(np.asarray(X)[:, 0], 0, 100) / 100
        return np.column_stack([1 - p, p])


def test_rounding_of_probabilities_is_of_1_however_little_they_differ():
    found = attack(Nearly(), METRIC, PEOPLE, n_pairs=N, random_state=0)
    assert found.tolerance == 1e-9
    assert found.largest_share == pytest.approx(0.01, rel=1e-3)


def test_excess_is_over_the_distance_and_excess_over_bound_over_the_guarantee():
    """A probability behind a sigmoid may move by tanh(D), which is less than D."""
    metric = WeightedLp([0.01])
    model = AdditiveClassifier(metric, penalty=1e-6).fit(PEOPLE, (PEOPLE[:, 0] > 50).astype(int))
    found = attack(model, metric, n_pairs=N, random_state=0)
    assert found.bound == pytest.approx(np.tanh(found.distance), rel=1e-9)
    assert found.excess == found.difference - found.distance
    assert found.excess_over_bound == found.difference - found.bound
    assert found.n_pairs == sum(found.tried.values()) >= 0.9 * N
