"""Estimated weights of three people, worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from likewise import estimate_minimal_metric, linear_metric

PEOPLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize("p", [1, 2, 4, 8, 20])
@pytest.mark.parametrize("unit", [1.0, 1000.0])
def test_each_weight_is_the_power_of_the_difference_that_forces_it(p, unit):
    """Outputs differ by 0.5 over the first column and by 0.01 over the second, in units of any size."""
    outputs = unit * np.array([0.2, 0.7, 0.21])
    found = estimate_minimal_metric(lambda rows: outputs, PEOPLE, p=p, exchange=False)
    np.testing.assert_allclose(found.metric.weights, (unit * np.array([0.5, 0.01])) ** p, rtol=1e-6)
    pairs = found.active_pairs.set_index(["row_a", "row_b"])
    assert set(pairs.index) == {(0, 1), (0, 2)}
    np.testing.assert_allclose(pairs.loc[(0, 1), ["difference", "distance"]].astype(float), 0.5 * unit, rtol=1e-6)
    np.testing.assert_allclose(pairs.loc[(0, 2), ["difference", "distance"]].astype(float), 0.01 * unit, rtol=1e-6)
    assert pairs["forces"].tolist() == ["feature 0", "feature 1"]
    assert found.n_pairs == 3


def test_within_a_range_weights_are_shares_of_its_width():
    found = estimate_minimal_metric(None, PEOPLE, predictions=[150, 300, 152], output_range=(100, 300))
    np.testing.assert_allclose(found.metric.weights, [0.75, 0.01], rtol=1e-6)


def test_limits_of_weights_are_in_the_unit_of_the_outputs():
    """Of two columns that say the same, the one may weigh no more than 30: the other takes the rest."""
    people = np.array([[0.0, 0.0], [1.0, 1.0]])
    outputs = np.array([0.0, 100.0])
    for limits in ({"upper": {0: 30.0}}, {"fixed": {0: 30.0}}):
        weights = estimate_minimal_metric(lambda rows: outputs, people, exchange=False, **limits).metric.weights
        assert weights[0] <= 30.0 * (1 + 1e-6)
        assert weights.sum() == pytest.approx(100.0, rel=1e-6)
    assert weights.tolist() == pytest.approx([30.0, 70.0], rel=1e-6)


@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_a_linear_metric_is_the_same_for_columns_in_other_units(p):
    """A column in units a thousand times as small has a scale a thousand times as large; distances stay."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    for y in (np.digitize(X[:, 0] + 0.5 * X[:, 1], [-0.3, 0.3]), X @ [1.0, -2.0, 0.0] + 0.1 * rng.normal(size=60)):
        metric, other = (linear_metric(X * units, y, p) for units in (np.ones(3), np.array([1e-3, 1.0, 10.0])))
        np.testing.assert_allclose(other.scales * np.array([1e-3, 1.0, 10.0]), metric.scales, rtol=1e-3)
        power = 1 if np.isinf(p) else p
        assert np.mean(metric.weights * X.std(axis=0) ** power) == pytest.approx(1.0)


def test_a_linear_metric_of_several_classes_goes_by_the_widest_spread_of_their_coefficients():
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 3)) * [1, 5, 0.2]
    y = np.digitize(X[:, 0] + X[:, 1], [-3, 2])
    coef = LogisticRegression(max_iter=10_000).fit(StandardScaler().fit_transform(X), y).coef_
    expected = np.ptp(coef, axis=0) / X.std(axis=0)
    found = linear_metric(X, y).weights
    np.testing.assert_allclose(found / found[0], expected / expected[0], rtol=1e-6)


class Three:
    """Probabilities of three classes that go by a column which distances are not about."""

    classes_ = np.array([0, 1, 2])
    feature_names_in_ = np.array(["x", "z"], dtype=object)

    def predict_proba(self, table):
        z = table["z"].to_numpy()
        return np.column_stack([0.5 - 0.25 * z, 0.25 + 0.125 * z, 0.25 + 0.125 * z])


def test_equal_people_with_other_outputs_are_named_with_the_total_variation_between_them(tmp_path):
    people = pd.DataFrame({"x": [1.0, 2.0, 1.0], "z": [0.0, 0.0, 1.0]})
    people.to_parquet(tmp_path / "people.parquet")
    with pytest.raises(ValueError, match=r"0\.25"):
        estimate_minimal_metric(Three(), tmp_path / "people.parquet", columns=["x"])


@pytest.mark.parametrize("p", [1, 2, 3])
def test_limits_that_just_suffice_are_possible_and_smaller_ones_are_not(p):
    """Two people 2 apart whose outputs differ by 0.5: a weight of (0.5 / 2)^p is needed, and no less."""
    people, outputs = np.array([[0.0], [2.0]]), np.array([0.25, 0.75])
    found = estimate_minimal_metric(None, people, p=p, predictions=outputs, upper={0: 1.0001 * 0.25**p})
    assert found.metric.weights[0] == pytest.approx(0.25**p, rel=1e-6)
    with pytest.raises(ValueError, match="whose weights are too small"):
        estimate_minimal_metric(None, people, p=p, predictions=outputs, upper={0: 0.99 * 0.25**p})
