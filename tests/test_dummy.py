import numpy as np
import pytest

from likewise import WeightedLp
from likewise.dummy import ConstantClassifier, ConstantRegressor
from likewise.io import load_model, save_model

X = [[0.0], [1.0], [2.0], [3.0]]
METRIC = WeightedLp([0.5])


def test_everybody_gets_the_share_of_each_class_by_weight():
    model = ConstantClassifier(METRIC).fit(X, ["a", "b", "b", "b"])
    np.testing.assert_array_equal(model.predict_proba([[9.0], [-9.0]]), [[0.25, 0.75]] * 2)
    weighted = ConstantClassifier(METRIC).fit(X, ["a", "b", "b", "b"], sample_weight=[3, 1, 0, 0])
    np.testing.assert_array_equal(weighted.predict_proba([[9.0]]), [[0.75, 0.25]])


def test_everybody_gets_the_mean_within_the_range():
    assert ConstantRegressor(METRIC).fit(X, [0.0, 1, 2, 9]).predict([[7.0]]) == [3.0]
    assert ConstantRegressor(METRIC, output_range=(0, 2)).fit(X, [0.0, 1, 2, 9]).predict([[7.0]]) == [2.0]


@pytest.mark.parametrize("model", [ConstantClassifier(METRIC), ConstantRegressor(METRIC)])
def test_it_promises_every_metric_and_sees_nothing(model, tmp_path):
    model.fit(X, [0, 0, 1, 1])
    assert (model.guarantee_.level, model.guarantee_.epsilon) == ("exact", 0.0)
    assert model.visible_rows(X).shape == (4, 0)
    save_model(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(load_model(tmp_path / "model.skops").predict(X), model.predict(X))


def test_everybody_gets_the_mean_by_weight_cut_to_the_range():
    rows, y, weights = [[0.0], [1.0], [2.0]], [2.0, 6.0, 10.0], [1.0, 1.0, 2.0]
    model = ConstantRegressor(WeightedLp([1.0])).fit(rows, y, sample_weight=weights)
    assert model.predict([[5.0], [9.0]]).tolist() == [7.0, 7.0]
    narrow = ConstantRegressor(WeightedLp([1.0]), output_range=(8.0, 9.0)).fit(rows, y)
    assert narrow.predict([[5.0]]).tolist() == [8.0]
