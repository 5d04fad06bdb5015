import numpy as np
import pandas as pd
import pytest

from likewise import TableMetric

PEOPLE = pd.DataFrame(
    {
        "age": [30.0, 40.0, 30.0],
        "hours": [40.0, 38.0, 40.0],
        "job": ["nurse", "clerk", "nurse"],
        "town": ["A", None, np.nan],
        "unused": ["x", "y", "z"],
    }
)
METRIC = TableMetric({"age": 0.01, "hours": 0.04}, {"job": 0.2, "town": 0.5}, p=2)


def test_distance_is_lp_of_numbers_plus_mismatches():
    numbers = np.sqrt(0.01 * 10**2 + 0.04 * 2**2)
    expected = [[0, numbers + 0.7, 0.5], [numbers + 0.7, 0, numbers + 0.2], [0.5, numbers + 0.2, 0]]
    np.testing.assert_allclose(METRIC.pairwise(PEOPLE), expected)
    np.testing.assert_allclose(METRIC.pairwise(PEOPLE, PEOPLE[:1]), np.array(expected)[:, :1])
    np.testing.assert_allclose(METRIC(PEOPLE[:2], PEOPLE[1:]), [expected[0][1], expected[1][2]])


def test_missing_values_are_one_category():
    assert METRIC(PEOPLE[1:2], PEOPLE[2:3])[0] < METRIC(PEOPLE[1:2], PEOPLE[0:1])[0]


def test_columns_of_one_kind_are_enough():
    assert TableMetric({}, {"job": 0.2}).pairwise(PEOPLE)[0].tolist() == [0, 0.2, 0]
    assert TableMetric({"age": 0.1}, {}).pairwise(PEOPLE)[0].tolist() == [0, 1, 0]


def test_equal_metrics_are_equal():
    same = TableMetric({"age": 0.01, "hours": 0.04}, {"job": 0.2, "town": 0.5}, p=2)
    assert same == METRIC
    assert hash(same) == hash(METRIC)
    assert TableMetric({"age": 0.01, "hours": 0.04}, {"job": 0.2, "town": 0.6}, p=2) != METRIC
    assert METRIC != "metric"
    assert repr(METRIC) == "TableMetric(age=0.01, hours=0.04, job=0.2 [mismatch], town=0.5 [mismatch], p=2)"


@pytest.mark.parametrize(
    ("numeric", "categorical", "message"),
    [
        ({}, {}, "must not both be empty"),
        ({"age": -1.0}, {}, "weights must be non-negative and finite; got -1 for 'age'"),
        ({}, {"job": np.inf}, "weights must be non-negative and finite; got inf for 'job'"),
        ({"age": 1.0}, {"age": 1.0}, "must not share columns; got 'age'"),
    ],
)
def test_bad_weights_give_one_clear_error(numeric, categorical, message):
    with pytest.raises(ValueError, match=message):
        TableMetric(numeric, categorical)


def test_bad_tables_give_one_clear_error():
    with pytest.raises(TypeError, match="A must be a DataFrame"):
        METRIC.pairwise([[1, 2]])
    with pytest.raises(ValueError, match=r"\['job'\] are missing"):
        METRIC.pairwise(PEOPLE.drop(columns="job"))
    with pytest.raises(ValueError, match="as many rows as each other; got 2 and 3"):
        METRIC(PEOPLE[:2], PEOPLE)
    with pytest.raises(ValueError, match="A must be finite"):
        METRIC.pairwise(PEOPLE.assign(age=np.nan))
    with pytest.raises(ValueError, match="A must hold numbers in the numeric columns"):
        METRIC.pairwise(PEOPLE.assign(age="old"))
