"""A promise that says nothing says so, with the cure; a promise that says something is silent."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from likewise import (
    AdditiveClassifier,
    IneffectiveWeightWarning,
    ProjectedClassifier,
    SmoothedClassifier,
    Splitting,
    TableMetric,
    VacuousGuaranteeWarning,
    WeightedLp,
)

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


def people_with_blanks():
    X = pd.DataFrame({"savings": np.linspace(0, 50, 200), "age": np.linspace(20, 60, 200)[::-1]})
    X.loc[::50, "savings"] = np.nan
    return X


def ineffective(metric, model=None):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = AdditiveClassifier(metric, penalty=1e-2) if model is None else model
        model.fit(people_with_blanks(), (np.arange(200) > 120).astype(int))
    return [str(w.message) for w in caught if issubclass(w.category, IneffectiveWeightWarning)], model


def test_a_weight_that_no_model_may_use_is_named_with_a_cure_that_works():
    numeric = {"savings": 0.01, "age": 0.01}
    (message,), model = ineffective(TableMetric(numeric, missing={"savings": 0.0}))
    assert message.startswith("The metric gives 'savings' the weight 0.01, but a missing 'savings' only 0.")
    assert "By the triangle inequality, no model within the metric can use the column" in message
    points = model.explain(people_with_blanks())["savings"]
    assert np.ptp(points) == 0  # what it warns of
    half = float(re.search(r"\(([\d.e-]+) times the range of the column\)", message)[1])
    messages, cured = ineffective(TableMetric(numeric, missing={"savings": 50 * half}))
    assert messages == []
    assert np.ptp(cured.explain(people_with_blanks())["savings"]) > 0.5


def test_a_weight_that_is_all_but_useless_is_named_too():
    numeric = {"savings": 0.01, "age": 0.01}
    (message,), _ = ineffective(TableMetric(numeric, missing={"savings": 1e-9}))
    assert "may differ by at most 2e-09 because of it, less than 1% of what its weight allows" in message
    assert ineffective(TableMetric(numeric, missing={"savings": 0.05}))[0] == []  # a fifth is left: the card shows it


@pytest.mark.parametrize(
    "metric",
    [
        TableMetric({"savings": 0.0, "age": 0.01}, missing={"savings": 0.0}),
        TableMetric({"savings": 0.01, "age": 0.01}, missing={"savings": 1.0}),
        TableMetric({"savings": 0.01, "age": 0.01}, missing="category"),
    ],
)
def test_weights_that_can_be_used_and_weights_of_0_are_silent(metric):
    assert ineffective(metric)[0] == []


def test_every_method_to_enforce_a_metric_says_it():
    metric = TableMetric({"savings": 0.01, "age": 0.01}, missing={"savings": 0.0})
    model = ProjectedClassifier(lambda people: (people["age"] > 40).astype(float), metric=metric)
    assert len(ineffective(metric, model)[0]) == 1
