"""Distances by a function, in every form that can be asked for."""

import numpy as np
import pandas as pd
import pytest

from likewise import FunctionMetric

ROWS = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])


def euclid(A, B):
    return np.sqrt(((np.asarray(A) - np.asarray(B)) ** 2).sum(axis=1))


def euclid_of_all(A, B):
    return np.sqrt(((np.asarray(A)[:, None] - np.asarray(B)[None]) ** 2).sum(axis=2))


METRICS = [FunctionMetric(euclid), FunctionMetric(euclid_of_all, pairwise=True)]
EXPECTED = np.array([[0.0, 5.0, 10.0], [5.0, 0.0, 5.0], [10.0, 5.0, 0.0]])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("factor", [1.0, 0.5, 3.0])
def test_all_forms_agree_and_scale(metric, factor):
    scaled = metric.scaled(factor)
    people = scaled.encode_rows(ROWS)
    np.testing.assert_allclose(scaled.pairwise(ROWS), factor * EXPECTED)
    np.testing.assert_allclose(scaled.pairwise(ROWS[:1], ROWS[1:]), factor * EXPECTED[:1, 1:])
    np.testing.assert_allclose(scaled(ROWS[:2], ROWS[1:]), factor * np.array([5.0, 5.0]))
    np.testing.assert_allclose(
        scaled.bind(people.encoder).between(people.take([0, 2]), people.take([1, 1])), factor * np.array([5.0, 5.0])
    )
    np.testing.assert_allclose(scaled.bind(people.encoder).between(people.take([2]), people), factor * EXPECTED[2])
    assert scaled.describe()["weight"].tolist() == [factor]
    assert scaled.describe()["one point"].tolist() == [f"{0.01 / factor:.3g}"]
    assert scaled.scaled(2.0).scale == 2 * factor


def test_tables_are_compared_row_by_row_whatever_their_labels():
    metric = FunctionMetric(lambda A, B: (A["x"] - B["x"]).abs().to_numpy(), takes_tables=True)
    table = pd.DataFrame({"x": [1.0, 4.0], "job": ["a", "b"]}, index=[7, 9])
    assert metric(table, table.iloc[::-1]).tolist() == [3.0, 3.0]
    np.testing.assert_array_equal(metric.pairwise(table), [[0.0, 3.0], [3.0, 0.0]])


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda A, B: np.ones(len(A)), "be 0 between a person and the same person"),
        (lambda A, B: np.maximum(A[:, 0] - B[:, 0], 0), "be the same in both directions"),
        (lambda A, B: (A[:, 0] - B[:, 0]) ** 2, "obey the triangle inequality"),
        (lambda A, B: np.abs(A[:, 0] - B[:, 0]) / len(A), "depend on the two people alone"),
        (lambda A, B: np.abs(A[:, 0] - B[:, 0]) * len(A), "depend on the two people alone"),
    ],
)
def test_what_is_no_distance_is_refused(function, words):
    metric = FunctionMetric(function)
    with pytest.raises(ValueError, match=words):
        metric.check_axioms(metric.encode_rows(ROWS))
    METRICS[0].check_axioms(METRICS[0].encode_rows(ROWS))  # the control
