"""The distance of a guarantee is that of its model, whatever the names and the order of columns."""

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from likewise import (
    AdditiveClassifier,
    ProjectedClassifier,
    ProjectedRegressor,
    RecalibratedClassifier,
    SmoothedClassifier,
    TableMetric,
    ThresholdDecision,
    WeightedLp,
    attack,
)
from likewise.exceptions import InvalidInputError

NAMES = ["a", "b", "c"]
# In another order than the columns: "a" must not matter.
METRIC = WeightedLp({"c": 0.4, "b": 1.0, "a": 0.0})


def people(n=200, seed=0):
    X = pd.DataFrame(np.random.default_rng(seed).random((n, 3)).round(2), columns=NAMES)
    return X, (X["a"] + X["b"] > 1).astype(int)


def card(metric=METRIC):
    return AdditiveClassifier(metric, penalty=1e-3)


MODELS = {
    "additive": card(),
    "smoothed": SmoothedClassifier(LogisticRegression(), metric=METRIC),
    "projected": ProjectedClassifier(DecisionTreeClassifier(random_state=0), metric=METRIC, random_state=0),
    "projected, base": ProjectedClassifier(LogisticRegression(), metric=METRIC, base=card(), random_state=0),
    "projected regressor": ProjectedRegressor(LinearRegression(), metric=METRIC, output_range=(0, 1), random_state=0),
    "recalibrated": RecalibratedClassifier(card(), random_state=0),
    "recalibrated projection": RecalibratedClassifier(
        ProjectedClassifier(DecisionTreeClassifier(random_state=0), metric=METRIC, random_state=0), random_state=0
    ),
    "threshold": ThresholdDecision(card(), width=0.5),
}


def outputs(model, X):
    return model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X)


def largest_excess(model, X, metric):
    given = outputs(model, X)
    return float((np.abs(given[:, None] - given) - model.guarantee_.bound(metric.pairwise(X))).max())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_a_named_metric_in_another_order_than_the_columns(name):
    X, y = people()
    model = MODELS[name].fit(X, y)
    metric = METRIC.scaled(2) if name == "threshold" else METRIC  # divided by the width
    new = people(80, 1)[0]
    assert largest_excess(model, new, metric) <= 1e-9
    assert np.ptp(outputs(model, new)) > 0.1  # the control: the model says something
    np.testing.assert_allclose(outputs(model, new.assign(a=0.5)), outputs(model, new), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(outputs(model, new[["b", "c", "a"]]), outputs(model, new))
    assert model.guarantee_.metric.feature_names == ("a", "b", "c")


@pytest.mark.filterwarnings("ignore")
def test_a_frozen_base_in_another_order_is_refused():
    X, y = people()
    base = FrozenEstimator(card().fit(X[["b", "a", "c"]], y))
    with pytest.raises(InvalidInputError, match=r"base must have the columns of X, .*, in this order"):
        ProjectedClassifier(LogisticRegression(), metric=METRIC, base=base).fit(X, y)


@pytest.mark.filterwarnings("ignore")
def test_a_guarantee_is_about_the_metric_that_was_given():
    X, y = people()
    for metric in (METRIC, WeightedLp([0.0, 1.0, 0.4]), TableMetric({"a": 0.0, "b": 1.0, "c": 0.4})):
        model = card(metric).fit(X, y)
        assert model.guarantee_.bound_metric.is_of(metric)
        assert attack(model, metric, X, n_pairs=1000).guarantee is not None
        assert not model.guarantee_.bound_metric.is_of(metric.scaled(1.1))
        assert not model.guarantee_.bound_metric.is_of(WeightedLp({"a": 1.0, "b": 0.0, "c": 0.4}))
    ordered = TableMetric({"grade": 0.1}, order={"grade": ["low", "high"]})
    bound = ordered.bind(ordered.encoder(pd.DataFrame({"grade": ["low", "high"]})))
    assert bound.is_of(TableMetric({"grade": 0.1}))
    assert not bound.is_of(TableMetric({"grade": 0.1}, order={"grade": ["high", "low"]}))
