"""A promise that says nothing says so, with the cure; a promise that says something is silent."""

import re
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from likewise import SmoothedClassifier, Splitting, VacuousGuaranteeWarning, WeightedLp

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(200, 3)), np.arange(200) % 2


def warned(model, X=X):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, Y[: len(X)])
    return [str(w.message) for w in caught if issubclass(w.category, VacuousGuaranteeWarning)]


def test_a_promise_that_binds_many_pairs_is_silent():
    assert warned(SmoothedClassifier(LogisticRegression(), metric=WeightedLp([0.1, 0.1, 0.1]))) == []


def test_a_metric_under_which_nearly_all_pairs_are_far_apart_is_named_with_a_cure_that_works():
    metric = WeightedLp([100.0, 100.0, 100.0])
    (message,) = warned(SmoothedClassifier(LogisticRegression(), metric=metric))
    assert "of the pairs of people in X: they are at a distance D >= 1" in message
    factor = float(re.search(r"metric\.scaled\(([\d.e-]+)\)", message)[1])
    scaled = metric.scaled(factor)
    assert np.median(scaled.pairwise(X)) < 0.8
    assert warned(SmoothedClassifier(LogisticRegression(), metric=scaled)) == []


@pytest.mark.parametrize("few", [2, 30])
def test_few_people_are_compared_pair_by_pair(few):
    (message,) = warned(SmoothedClassifier(lambda rows: rows[:, 0] > 0, metric=WeightedLp([1e4] * 3)), X[:few])
    assert "100.0%" in message


def test_at_a_distance_of_exactly_1_every_difference_is_allowed():
    model = SmoothedClassifier(lambda rows: rows[:, 0] > 0, metric=WeightedLp([0.5]))
    (message,) = warned(model, np.array([[0.0], [2.0]]))
    assert "100.0%" in message
    assert warned(model, np.array([[0.0], [1.99]])) == []


def test_an_epsilon_that_allows_nearly_everything_is_named_with_a_cure():
    wide = RNG.normal(size=(50, 300))
    noise = Splitting.for_metric(WeightedLp(np.full(300, 1e-3)), steps=None)
    model = SmoothedClassifier(lambda rows: rows[:, 0] > 0, noise=noise, n_draws=100)
    (message,) = warned(model, wide)
    assert "D + 3" in message
    assert "more draws than 100" in message
    model.set_params(n_draws="auto")
    assert warned(model, wide) == []
