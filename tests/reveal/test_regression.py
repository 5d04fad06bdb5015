import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from likewise import linear_metric
from likewise.reveal.regression import linear_weights

RNG = np.random.default_rng(0)
Z = StandardScaler().fit_transform(RNG.normal(size=(400, 3)))
SCALE = np.array([1.0, 40_000.0, 0.01])  # years, dollars, a share
Y = Z @ [1.0, -2.0, 0.5] + RNG.logistic(size=400) > 0


def test_standardised_features_have_the_absolute_coefficients_with_mean_one():
    coef = np.abs(LogisticRegression().fit(Z, Y).coef_[0])
    np.testing.assert_allclose(linear_metric(Z, Y).weights, coef / coef.mean(), rtol=1e-3)
    np.testing.assert_allclose(linear_metric(Z, Y, p=2).weights, coef / coef.mean(), rtol=1e-3)


@pytest.mark.parametrize("p", [1, 1.5, 2, np.inf])
def test_distances_do_not_depend_on_the_units(p):
    X = Z * SCALE + [40, 50_000, 0.2]
    distances = linear_metric(Z, Y, p).pairwise(Z)
    np.testing.assert_allclose(linear_metric(X, Y, p).pairwise(X), distances, rtol=1e-6)
    # The control: with a mean of 1 per raw unit, they would.
    raw = linear_metric(X, Y, p)
    raw = raw.with_params(weights=raw.weights / raw.weights.mean())
    assert not np.allclose(raw.pairwise(X), distances, rtol=0.5)


def test_a_feature_that_never_varies_gets_nothing():
    X = np.column_stack([Z, np.full(400, 7.0)])
    weights = linear_metric(X, Y).weights
    assert weights[3] == 0
    assert weights.mean() == pytest.approx(1)
    np.testing.assert_allclose(weights, linear_weights(X, Y, classify=True))


def test_several_classes_have_the_largest_difference_of_coefficients():
    classes = np.digitize(Z[:, 0] + RNG.logistic(size=400), [-1, 1])
    coef = np.ptp(LogisticRegression(max_iter=10_000).fit(Z, classes).coef_, axis=0)
    frame = pd.DataFrame(Z, columns=["a", "b", "c"])
    metric = linear_metric(frame, classes)
    assert metric.feature_names == ("a", "b", "c")
    np.testing.assert_allclose(metric.weights, coef / coef.mean(), rtol=1e-3)


def test_continuous_targets_are_regressed():
    np.testing.assert_allclose(linear_metric(Z, Z @ [3.0, 0.0, -1.0]).weights, [2.25, 0, 0.75], atol=0.05)


def test_what_cannot_be_derived_is_refused():
    with pytest.raises(ValueError, match="does not vary with any feature"):
        linear_metric(np.ones((4, 2)), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="p must be a number >= 1"):
        linear_metric(Z, Y, p="two")
