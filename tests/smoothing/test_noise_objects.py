"""Noise objects: the widths and the guarantee come from one metric, whatever the order of the columns."""

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from likewise import (
    Gaussian,
    Laplace,
    SmoothedClassifier,
    Splitting,
    Uniform,
    WeightedLp,
)
from likewise.exceptions import UnprovableError
from likewise.smoothing.noise import Noise

WEIGHTS = {"a": 0.3, "b": 0.0, "c": 0.02}
KINDS = [Gaussian, Laplace, Uniform, Splitting]
INNER = DecisionTreeClassifier(max_depth=4)


def people(columns, n=300):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.normal(size=n) * scale for name, scale in zip("abc", (2, 2, 20), strict=True)})
    y = (X["b"] + X["c"] / 20 + 0.3 * X["a"] > 0).astype(int)
    return X[list(columns)], y


def excess(model, X):
    """Largest difference of outputs over the bound, with D from the weights by name (p = 1)."""
    few = X.iloc[:60]
    D = sum(w * np.abs(few[name].to_numpy()[:, None] - few[name].to_numpy()) for name, w in WEIGHTS.items())
    h = model.predict_proba(few)[:, 1]
    return float((np.abs(h[:, None] - h) - model.guarantee_.bound(D)).max())


@pytest.mark.parametrize("kind", KINDS)
def test_control_a_noise_that_keeps_positions_is_refused(kind, monkeypatch):
    monkeypatch.setattr(Noise, "bound_to", lambda self, metric: self)
    monkeypatch.setattr(Splitting, "bound_to", lambda self, metric: self)
    with pytest.raises(UnprovableError, match="position"):
        SmoothedClassifier(INNER, noise=kind.for_metric(WeightedLp(WEIGHTS)), random_state=0).fit(*people("bca"))


def test_declared_steps_follow_their_columns():
    X, y = people("bca")
    X = X.assign(a=X["a"].round())
    noise = Splitting.for_metric(WeightedLp(WEIGHTS), steps={"a": 1})
    model = SmoothedClassifier(INNER, noise=noise, random_state=0).fit(X, y)
    assert model.noise_.steps == (0.0, 0.0, 1.0)
    assert excess(model, X) <= 1e-9
    moved = model.with_metric(WeightedLp({"c": 0.02, "a": 0.3, "b": 0.1}))
    assert moved.noise.steps == (0.0, 1.0, 0.0)
