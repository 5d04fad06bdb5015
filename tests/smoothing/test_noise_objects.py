"""Noise objects: the widths and the guarantee come from one metric, whatever the order of the columns."""

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from likewise import (
    Gaussian,
    Laplace,
    RecalibratedClassifier,
    SmoothedClassifier,
    SmoothedRegressor,
    Splitting,
    ThresholdDecision,
    Uniform,
    WeightedLp,
    load_model,
    save_model,
)
from likewise.exceptions import UnprovableError
from likewise.smoothing.noise import Noise

WEIGHTS = {"a": 0.3, "b": 0.0, "c": 0.02}
KINDS = [Gaussian, Laplace, Uniform, Splitting]
INNER = [LogisticRegression(C=1e6), DecisionTreeClassifier(max_depth=4)]


def people(columns, n=300):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.normal(size=n) * scale for name, scale in zip("abc", (2, 2, 20), strict=True)})
    y = (X["b"] + X["c"] / 20 + 0.3 * X["a"] > 0).astype(int)
    return X[list(columns)], y


def excess(model, X):
    """Largest difference of outputs over the bound, with D from the weights by name (p = 1)."""
    few = X.iloc[:60]
    D = sum(w * np.abs(few[name].to_numpy()[:, None] - few[name].to_numpy()) for name, w in WEIGHTS.items())
    h = model.predict_proba(few)[:, 1] if hasattr(model, "predict_proba") else model.predict(few)
    return float((np.abs(h[:, None] - h) - model.guarantee_.bound(D)).max())


def smoothed(kind, inner, columns, **options):
    X, y = people(columns)
    metric = WeightedLp(WEIGHTS)
    return SmoothedClassifier(inner, noise=kind.for_metric(metric), random_state=0, epsilon=0.05, **options).fit(X, y)


@pytest.mark.parametrize("columns", ["abc", "bca", "cba"])
@pytest.mark.parametrize("inner", INNER, ids=lambda inner: type(inner).__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_a_noise_made_for_names_goes_by_names(kind, inner, columns, tmp_path):
    model, (X, _) = smoothed(kind, inner, columns), people(columns)
    assert excess(model, X) <= 1e-9
    np.testing.assert_array_equal(model.noise_.visible, [WEIGHTS[name] > 0 for name in columns])
    save_model(model, tmp_path / "model.skops")
    assert excess(load_model(tmp_path / "model.skops"), X[list("cab")]) <= 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_control_a_noise_that_keeps_positions_is_refused(kind, monkeypatch):
    monkeypatch.setattr(Noise, "bound_to", lambda self, metric: self)
    monkeypatch.setattr(Splitting, "bound_to", lambda self, metric: self)
    with pytest.raises(UnprovableError, match="position"):
        smoothed(kind, INNER[1], "bca")


@pytest.mark.parametrize("kind", KINDS)
def test_a_regressor_and_a_metric_without_names_too(kind):
    X, y = people("bca")
    by_name = SmoothedRegressor(DecisionTreeRegressor(max_depth=4), noise=kind.for_metric(WeightedLp(WEIGHTS)))
    assert excess(by_name.set_params(random_state=0, epsilon=0.05).fit(X, y), X) <= 1e-9
    by_place = WeightedLp([WEIGHTS[name] for name in "bca"])
    model = SmoothedClassifier(INNER[1], noise=kind.for_metric(by_place), random_state=0, epsilon=0.05).fit(X, y)
    assert model.guarantee_.metric.feature_names == ("b", "c", "a")
    assert excess(model, X) <= 1e-9


@pytest.mark.parametrize("kind", [Gaussian, Splitting])
def test_with_another_metric_the_noise_is_for_that_one(kind):
    X, y = people("bca")
    start = WeightedLp({"b": 1.0, "a": 1.0, "c": 1.0})
    model = SmoothedClassifier(INNER[1], noise=kind.for_metric(start), random_state=0, epsilon=0.05).fit(X, y)
    assert excess(model.with_metric(WeightedLp(WEIGHTS)).fit(X, y), X) <= 1e-9


def test_declared_steps_follow_their_columns():
    X, y = people("bca")
    X = X.assign(a=X["a"].round())
    noise = Splitting.for_metric(WeightedLp(WEIGHTS), steps={"a": 1})
    model = SmoothedClassifier(INNER[1], noise=noise, random_state=0).fit(X, y)
    assert model.noise_.steps == (0.0, 0.0, 1.0)
    assert excess(model, X) <= 1e-9
    moved = model.with_metric(WeightedLp({"c": 0.02, "a": 0.3, "b": 0.1}))
    assert moved.noise.steps == (0.0, 1.0, 0.0)


@pytest.mark.parametrize("wrap", ["recalibrated", "threshold", "frozen"])
def test_what_stands_around_it_enforces_the_metric_of_the_noise(wrap):
    X, y = people("bca")
    inner = SmoothedClassifier(INNER[1], noise=Gaussian.for_metric(WeightedLp(WEIGHTS)), random_state=0)
    model = {
        "recalibrated": lambda: RecalibratedClassifier(inner, random_state=0),
        "threshold": lambda: ThresholdDecision(inner, width=1.0),
        "frozen": lambda: RecalibratedClassifier(FrozenEstimator(inner.fit(X, y))),
    }[wrap]()
    model = model.with_metric(model.metric).fit(X, y) if wrap != "frozen" else model.fit(X, y)
    assert dict(zip(model.guarantee_.metric.columns, model.guarantee_.metric.weights, strict=True)) == WEIGHTS
    assert excess(model, X) <= 1e-9
