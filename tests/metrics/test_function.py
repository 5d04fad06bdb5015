"""Distances that are functions of one's own, and those that are none."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics.pairwise import manhattan_distances

from likewise import FunctionMetric, SmoothedClassifier, WeightedLp, ceiling
from likewise.exceptions import InvalidInputError


def l1(A, B):
    return np.abs(np.asarray(A) - np.asarray(B)).sum(axis=1)


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(120, 2))


@pytest.mark.parametrize(
    "metric", [FunctionMetric(l1, scale=0.3), FunctionMetric(manhattan_distances, pairwise=True, scale=0.3)]
)
def test_distances_are_those_of_the_function(rows, metric):
    expected = WeightedLp([0.3, 0.3])
    np.testing.assert_allclose(metric(rows[:60], rows[60:]), expected(rows[:60], rows[60:]), atol=1e-15)
    np.testing.assert_allclose(metric.pairwise(rows[:5], rows), expected.pairwise(rows[:5], rows), atol=1e-15)
    metric.check_axioms(metric.encode_rows(rows))


def test_tables_are_compared_row_by_row_whatever_their_index():
    def function(A, B):
        return (A["job"] != B["job"]) * 0.5 + (A["age"] - B["age"]).abs() / 100

    metric = FunctionMetric(function, takes_tables=True)
    A = pd.DataFrame({"age": [30, 40], "job": ["x", "y"]}, index=[7, 8])
    B = pd.DataFrame({"age": [40, 40], "job": ["x", "x"]}, index=[8, 7])
    np.testing.assert_allclose(metric(A, B), [0.1, 0.5])
    np.testing.assert_allclose(metric.pairwise(A, B), [[0.1, 0.1], [0.5, 0.5]])


def test_scaling_and_equality():
    metric = FunctionMetric(l1)
    assert metric.scaled(2) == FunctionMetric(l1, scale=2) != metric
    assert hash(metric.scaled(2)) == hash(FunctionMetric(l1, scale=2))
    assert repr(metric.scaled(2)) == "FunctionMetric(2 * l1)"
    assert metric.describe()["one point"].tolist() == ["0.01"]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda A, B: l1(A, B) * np.where(A[:, 0] > 1, np.nan, 1), r"between 0 and 1e.100; got nan between \["),
        (lambda A, B: l1(A, B) - 1, r"between 0 and 1e.100; got -1 between \["),
        (lambda A, B: l1(A, B) + 1, r"0 between a person and the same person; got 1 for row 0"),
        (lambda A, B: np.maximum(A - B, 0).sum(axis=1), r"same in both directions; got .* from row \d+ to row \d+"),
        (
            lambda A, B: ((A - B) ** 2).sum(axis=1),
            r"triangle inequality; got .* between row \d+ and row \d+, but .* row \d+",
        ),
        (lambda A, B: l1(A, B) / max(1, len(A) - 1), "depend on the two people alone"),
        (lambda A, B: l1(A, B)[:, None] + l1(A, B), "shape .* Set pairwise=True"),
        (lambda A, B: ["far"] * len(A), "return numbers"),
    ],
)
def test_what_is_no_distance_is_refused_with_the_people(rows, function, words):
    metric = FunctionMetric(function)
    with pytest.raises(InvalidInputError, match=words):
        metric.check_axioms(metric.encode_rows(rows))


def test_a_slight_breach_of_the_triangle_inequality_is_found(rows):
    """Twice as far is a little more than twice: by 2e-4 of the product of the two ways."""
    metric = FunctionMetric(lambda A, B: l1(A, B) * (1 + 1e-4 * l1(A, B)))
    with pytest.raises(InvalidInputError, match="triangle inequality"):
        metric.check_axioms(metric.encode_rows(rows))
    slower = FunctionMetric(lambda A, B: l1(A, B) / (1 + 1e-4 * l1(A, B)))  # the control: this one obeys it
    slower.check_axioms(slower.encode_rows(rows))


def test_a_distance_that_separates_nobody_is_one(rows):
    metric = FunctionMetric(lambda A, B: np.zeros(len(A)))
    metric.check_axioms(metric.encode_rows(rows))


def test_what_needs_weights_says_so(rows):
    metric = FunctionMetric(l1)
    with pytest.raises(TypeError, match=r"weight for each column.*ProjectedClassifier"):
        SmoothedClassifier(lambda X: X[:, 0] > 0, metric=metric).fit(rows, rows[:, 0] > 0)
    with pytest.raises(TypeError, match="weight for each column"):
        ceiling(rows, rows[:, 0] > 0, metric)


@pytest.mark.parametrize(
    ("wrong", "words"), [({"function": "l1"}, "function must be"), ({"function": l1, "scale": 0}, "scale must be")]
)
def test_bad_parameters(wrong, words):
    with pytest.raises((TypeError, ValueError), match=words):
        FunctionMetric(**wrong)
