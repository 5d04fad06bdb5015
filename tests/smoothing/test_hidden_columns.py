"""A tree that looks at a hidden column alone says of everybody what it says of the training people on average."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from likewise import SmoothedClassifier, SmoothedRegressor, WeightedLp

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=80), RNG.normal(50, 10, 80)])
METRIC = WeightedLp([0.5, 0.0])


@pytest.mark.parametrize("scaler", [None, StandardScaler(), MinMaxScaler((3, 5))])
def test_hidden_columns_are_averaged_over_the_training_people_behind_any_scaler(scaler):
    labels = (X[:, 1] > 53).astype(int)
    tree = DecisionTreeClassifier(max_depth=1)
    inner = tree if scaler is None else make_pipeline(scaler, tree)
    model = SmoothedClassifier(inner, metric=METRIC, noise="uniform").fit(X, labels)
    assert model.guarantee_.level == "exact"
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], labels.mean(), rtol=1e-12)
    numbers = np.where(X[:, 1] > 53, 7.0, 3.0)
    tree = DecisionTreeRegressor(max_depth=1)
    inner = tree if scaler is None else make_pipeline(scaler, tree)
    model = SmoothedRegressor(inner, metric=METRIC, noise="uniform", output_range=(0, 10)).fit(X, numbers)
    np.testing.assert_allclose(model.predict(X[:9]), numbers.mean(), rtol=1e-12)
