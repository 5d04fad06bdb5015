"""Distances, codes and exchange rates that can be worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from likewise import TableMetric, WeightedLp
from likewise.kernel.columns import UNSEEN
from likewise.kernel.schema import TableEncoder
from likewise.metrics.units import Unit, number

NOTHING = np.nan


def test_each_number_that_one_of_two_people_lacks_counts_its_own_weight():
    metric = TableMetric({"a": 0.1, "b": 0.2}, {"job": 0.03}, missing={"a": 0.3, "b": 0.05})
    both = pd.DataFrame({"a": [1.0], "b": [2.0], "job": ["x"]})
    for expected, other in (
        (0.3 + 0.05, {"a": [NOTHING], "b": [NOTHING], "job": ["x"]}),
        (0.3 + 0.05 + 0.03, {"a": [NOTHING], "b": [NOTHING], "job": ["y"]}),
        (0.3, {"a": [NOTHING], "b": [2.0], "job": ["x"]}),
    ):
        assert metric(both, pd.DataFrame(other))[0] == pytest.approx(expected)
        assert metric.pairwise(both, pd.DataFrame(other))[0, 0] == pytest.approx(expected)
    crossed = [pd.DataFrame({"a": [x], "b": [y], "job": ["x"]}) for x, y in ((NOTHING, 2.0), (1.0, NOTHING))]
    assert metric(*crossed)[0] == pytest.approx(0.3 + 0.05)
    assert metric(crossed[0], crossed[0])[0] == 0


@pytest.mark.parametrize(("p", "weight"), [(1, 0.02), (2, 0.02**2), (3, 0.02**3), (np.inf, 0.02)])
def test_a_point_is_worth_the_same_difference_whatever_the_exponent(p, weight):
    """0.02 per unit of distance: half a unit is 0.01. The weight is inside the power."""
    assert WeightedLp([weight, 0], p).describe()["one point"].tolist() == ["0.5", "must not matter"]


def test_a_point_of_a_table_is_worth_what_its_weight_says():
    of_table = TableMetric({"x": 0.02, "share": 0.02}, {"c": 0.25}, units={"x": "$1000", "share": "ratio"})
    worth = of_table.describe().set_index("column")["one point"].to_dict()
    assert worth == {"x": "$500", "share": "50 percentage points", "c": "mismatch = 25 points"}
    assert of_table.describe()["weight"].tolist() == [0.02, 0.02, 0.25]


@pytest.mark.parametrize("p", [1, 2, 3, np.inf])
def test_a_scaled_metric_has_the_distances_times_the_factor(p):
    metric = TableMetric({"a": 0.2, "b": 0.1}, {"job": 0.25}, missing={"a": 0.125})
    people = pd.DataFrame({"a": [0.0, 3.0, NOTHING], "b": [1.0, -1.0, 1.0], "job": ["x", "y", "x"]})
    for factor in (0.5, 2.0, 4.0):
        np.testing.assert_allclose(metric.scaled(factor).pairwise(people), factor * metric.pairwise(people))
        rows = people.dropna()[["a", "b"]].to_numpy()
        lp = WeightedLp([0.2, 0.1], p)
        np.testing.assert_allclose(lp.scaled(factor).pairwise(rows), factor * lp.pairwise(rows))
    assert metric.scaled(100).categorical["job"] == metric.scaled(100).missing["a"] == 1.0


PEOPLE = pd.DataFrame(
    {
        "job": ["cook", None, "nurse", "cook"],
        "land": ["x", "y", "x", "y"],
        "size": pd.Categorical(["s", "l", None, "m"], ["s", "m", "l"], ordered=True),
    }
)
CODING = TableEncoder.learn(PEOPLE, ["size"], ["job", "land"])


def test_a_person_alone_has_the_codes_that_he_has_among_others():
    """cook, nurse, missing; x, y; s, m, l."""
    expected = np.array([[0, 0, 0], [2, 1, 2], [1, 0, NOTHING], [0, 1, 1]])
    np.testing.assert_array_equal(CODING.encode(PEOPLE), expected)
    for i in range(len(PEOPLE)):
        np.testing.assert_array_equal(CODING.encode(PEOPLE.iloc[[i]]), expected[[i]])


@pytest.mark.parametrize("others", [0, 1])
def test_what_was_not_there_at_first_has_no_code_alone_or_among_others(others):
    """A job that is missing was there before, a land that is missing was not."""
    strange = pd.DataFrame({"job": ["pilot", None], "land": [None, "z"], "size": PEOPLE["size"][:2]})
    rows = [strange.iloc[[0, 1]]] if others else [strange.iloc[[0]], strange.iloc[[1]]]
    found = np.concatenate([CODING.encode(row) for row in rows])
    np.testing.assert_array_equal(found[:, :2], [[UNSEEN, UNSEEN], [2, UNSEEN]])


def test_positions_of_ordered_categories_become_the_nearest_one_and_never_one_beyond():
    size = CODING.columns[2]
    assert list(size.decode(np.array([-3.0, 0.4, 0.6, 1.4, 1.6, 9.0]))) == ["s", "s", "m", "m", "l", "l"]
    assert pd.isna(size.decode(np.array([NOTHING]))[0])


@pytest.mark.parametrize(
    ("unit", "value", "words"),
    [
        ("$", 1234.5, "$1,234"),
        ("$", 999.5, "$999.5"),
        ("$1000", 0.4, "$400"),
        ("$1000", 42.5, "$42,500"),
        ("€ per month", 12.0, "€12 per month"),
        ("ratio", 0.12345, "12.35%"),
        ("% of income", 31.0, "31% of income"),
        ("years", 9999.0, "9999 years"),
        ("", 10_000.0, "10,000"),
        ("", -10_000.0, "-10,000"),
        ("$", -1000.0, "-$1,000"),
        ("$1000 per year", -0.5, "-$500 per year"),
        ("years", -1.0, "-1 years"),
    ],
)
def test_amounts_are_written_in_their_unit(unit, value, words):
    assert Unit.of(unit).written(value) == words


def test_numbers_have_separators_from_ten_thousand_on():
    assert [number(x) for x in (9999.4, 10_000.6, -9999.0, -12345.0)] == ["9999.4", "10,001", "-9999", "-12,345"]
    assert number(0.123456, 3) == "0.123"


def test_only_a_number_that_matters_and_may_be_missing_breaks_the_triangle_inequality():
    """Its absence is at one distance from all of its values; that of a number that must not matter is at none."""
    assert TableMetric({"a": 0.1, "b": 0.0}, {"c": 0.5}).obeys_triangle
    assert TableMetric({"a": 0.1, "b": 0.0}, missing={"b": 0.3}).obeys_triangle
    broken = TableMetric({"a": 0.1}, missing={"a": 0.05})
    assert not broken.obeys_triangle
    low, gone, high = (pd.DataFrame({"a": [x]}) for x in (0.0, NOTHING, 9.0))
    assert broken(low, high)[0] > broken(low, gone)[0] + broken(gone, high)[0]


@pytest.mark.parametrize("n", [6, 7])
def test_distances_of_many_people_are_those_of_pairs_in_every_block(n, monkeypatch):
    """Three people at a time: the last block is full for 6 people, and has one for 7."""
    monkeypatch.setattr("likewise.kernel.distance._CELLS_AT_ONCE", 3 * n)
    places = np.arange(float(n)) ** 2
    np.testing.assert_array_equal(WeightedLp([0.5]).pairwise(places[:, None]), 0.5 * np.abs(places[:, None] - places))
