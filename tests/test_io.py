"""Models and metrics in files, by the names that everybody imports."""

import pytest
from sklearn.linear_model import LogisticRegression

import likewise
from likewise import AdditiveClassifier, TableMetric, WeightedLp

X, Y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]


def test_a_model_is_what_it_was_after_saving_and_loading(tmp_path):
    model = AdditiveClassifier(WeightedLp([0.2]), penalty=0.1).fit(X, Y)
    likewise.save_model(model, tmp_path / "model.skops")
    again = likewise.load_model(tmp_path / "model.skops")
    assert again.predict_proba(X).tolist() == model.predict_proba(X).tolist()
    assert again.guarantee_.statement == model.guarantee_.statement


def test_a_metric_is_what_it_was_after_writing_and_reading(tmp_path):
    metric = TableMetric({"age": 0.01}, {"region": 0.1})
    likewise.write_metric(metric, tmp_path / "metric.toml")
    assert likewise.read_metric(tmp_path / "metric.toml") == metric


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda path: likewise.save_model(3, path), "model must be a fitted estimator; got 3"),
        (lambda path: likewise.save_model(LogisticRegression(), path), "not fitted yet"),
        (lambda path: likewise.save_model(LogisticRegression().fit(X, Y), 3), "path must be the name of a file"),
        (lambda path: likewise.load_model(3), "path must be the name of a file"),
        (lambda path: likewise.load_model(path), "There is no model file"),
        (lambda path: likewise.read_metric(None), "path must be the name of a file"),
        (lambda path: likewise.read_metric(path), "There is no file"),
        (lambda path: likewise.write_metric(WeightedLp([1.0]), path), "metric must be a TableMetric"),
        (lambda path: likewise.write_metric(TableMetric({"age": 0.01}), 3), "path must be the name of a file"),
    ],
)
def test_what_cannot_be_saved_or_read_gets_one_clear_error_and_leaves_nothing(call, words, tmp_path):
    with pytest.raises(likewise.LikewiseError, match=words):
        call(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []
