"""What a scorecard shows, of shapes written down by hand."""

import json

import numpy as np
import pandas as pd
import pytest

from likewise import AdditiveClassifier, AdditiveRegressor, TableMetric
from likewise.additive.scorer import AdditiveScorer
from likewise.kernel.evidence import Shape, SumOfShapes
from likewise.kernel.links import LINKS
from promised import unchecked

PEOPLE = pd.DataFrame(
    {
        "income": [0.0, 10.0, 20.0, 30.0],
        "debt": [1.0, np.nan, 3.0, 2.0],
        "region": ["north", "south", None, "north"],
    },
    index=[*"abcd"],
)
UNITS = {"income": "$1000"}


METRIC = TableMetric({"income": 0.01, "debt": 0.02}, {"region": 0.1}, missing={"debt": 0.2}, units=UNITS)


def written(model, values, intercepts, *, link, output_range=None):
    """A fitted model with these shapes: rows of `values` are functions, its blocks the columns with what is other."""
    income, debt, region = (np.array([row[k] for row in values], dtype=float) for k in range(3))
    shapes = (
        Shape(0, np.array([0.0, 10.0, 30.0]), income, None),
        Shape(1, np.array([1.0, 3.0]), debt[:, :-1], debt[:, -1]),
        Shape(2, None, region[:, :-1], region[:, -1]),
    )
    n = len(values)
    outcomes = np.arange(4) % max(2, n) if output_range is None else np.array([*output_range, *output_range])
    model.set_params(metric=METRIC, penalty=0.1).fit(PEOPLE, outcomes)
    sums = SumOfShapes(METRIC.bind(model.encoder_), np.array(intercepts, dtype=float), shapes, 40)
    model.scorer_ = unchecked(
        AdditiveScorer(sums, link, output_range), METRIC, curve=LINKS[link].curve, output_range=output_range
    )
    return model


VALUES = [  # per function: income at its knots; debt at its knots, and missing; north, south, missing, any other
    [[-0.25, 0.125, 0.125], [0.0625, -0.0625, 0.75], [0.25, -0.125, 0.125, 0.0625]],
    [[0.5, 0.75, 1.0], [0.0, 0.0625, -0.25], [0.0, 0.125, 0.25, -0.5]],
    [[0.0, 0.0, 0.0], [0.25, 0.25, 0.125], [-0.125, -0.25, 0.5, 0.375]],
]


@pytest.fixture
def two():
    return written(AdditiveClassifier(), VALUES[:1], [0.5], link="logistic")


@pytest.fixture
def three():
    return written(AdditiveClassifier(), VALUES, [0.5, -0.25, 1.5], link="softmax")


@pytest.fixture
def numbers():
    values = [[[-5.0, 15.0, 15.0], [0.5, -0.5, 30.0], [2.0, -18.0, 0.0, 1.0]]]
    return written(AdditiveRegressor(output_range=(100, 300)), values, [200.0], link="clip", output_range=(100, 300))


def test_allowed_is_the_unit_of_the_score_times_the_distance(two, three, numbers):
    """Distances: 0.1 and 0.2 of income, 0.04 of debt, 0.2 of a missing debt, 0.1 between regions."""
    distances = [0.1, 0.2, 0.04, 0.2, *[0.1] * 4]
    for model, outcome, unit in ((two, 0, 4.0), (three, 0, 2.0), (numbers, None, 200.0)):
        np.testing.assert_allclose(model.scorecard(outcome)["allowed"], unit * np.array(distances), rtol=1e-12)


def test_two_numbers_are_allowed_twice_the_distance_of_the_nearest_special_code():
    X = pd.DataFrame({"pay": [*range(100), *[-9.0] * 9, *[-8.0] * 9]})
    metric = TableMetric({"pay": 0.02}, special={"pay": {-9: 0.05, -8: 0.3}})
    card = AdditiveClassifier(metric, max_knots=2, penalty=1e-4).fit(X, X["pay"] > 50).scorecard()
    np.testing.assert_allclose(card["allowed"], 4 * np.array([2 * 0.05, 0.05, 0.3]), rtol=1e-12)


def test_the_metric_binds_where_all_that_is_allowed_is_used(numbers):
    """20 over the first 10 of income, and between north and south; what is missing is 30.5 from a debt of 3, of 40."""
    card = numbers.scorecard()
    assert card["range"].tolist() == [
        "0 to 10",
        "10 to 30",
        "1 to 3",
        "missing",
        "north",
        "south",
        "missing",
        "any other",
    ]
    assert card["binds"].tolist() == [True, False, False, False, True, True, False, False]
    numbers.scorer_.model.shapes[1].other[:] = 39.5  # 39 from one end and 40 from the other
    assert numbers.scorecard()["binds"].tolist() == [True, False, False, True, True, True, False, False]


def points(k, sign=1.0):
    """Points of the rows of a card, at both ends, for function k of the fixture `three`."""
    income, debt, region = VALUES[k]
    start = [income[0], income[1], debt[0], debt[2], *region]
    end = [income[1], income[2], debt[1], debt[2], *region]
    return sign * np.array(start), sign * np.array(end)


@pytest.mark.parametrize(("outcome", "sign"), [(None, 1.0), (1, 1.0), (0, -1.0)])
def test_of_two_outcomes_the_points_of_one_are_the_negatives_of_the_other(two, outcome, sign, tmp_path):
    start, end = points(0, sign)
    card = two.scorecard(outcome)
    np.testing.assert_array_equal(card["points"], start)
    np.testing.assert_array_equal(card["points at end"], end)
    two.to_csv(tmp_path / "card.csv", outcome)
    np.testing.assert_array_equal(pd.read_csv(tmp_path / "card.csv")["points"], start)
    table = two.explain(PEOPLE, outcome)
    np.testing.assert_array_equal(table["intercept"], sign * 0.5)
    np.testing.assert_array_equal(table["region"], sign * np.array([0.25, -0.125, 0.125, 0.25]))
    np.testing.assert_array_equal(table["debt"], sign * np.array([0.0625, 0.75, -0.0625, 0.0]))
    np.testing.assert_array_equal(table["log-odds"], sign * np.array([0.5625, 1.25, 0.6875, 0.875]))


@pytest.mark.parametrize("outcome", [0, 1, 2])
def test_of_several_outcomes_each_has_its_own_points(three, outcome):
    start, end = points(outcome)
    card = three.scorecard(outcome)
    if outcome == 2:  # income does nothing to it: one row
        start, end = np.delete(start, 1), np.delete(end, 0)
    np.testing.assert_array_equal(card["points"], start)
    np.testing.assert_array_equal(card["points at end"], end)
    table = three.explain(PEOPLE, outcome)
    assert table["intercept"].tolist() == [[0.5, -0.25, 1.5][outcome]] * 4
    np.testing.assert_array_equal(table.drop(columns="logit").sum(axis=1), table["logit"])


@pytest.mark.parametrize(("kind", "outcome"), [("two", 0), ("two", 1), ("three", 0), ("three", 1), ("three", 2)])
def test_json_is_about_the_outcome_that_it_names(kind, outcome, request):
    model = request.getfixturevalue(kind)
    sign, k = (2.0 * outcome - 1, 0) if kind == "two" else (1.0, outcome)
    income, debt, region = (sign * np.array(part) for part in VALUES[k])
    card = json.loads(model.to_json(outcome=outcome))
    assert card["outcome"] == outcome
    assert card["intercept"] == sign * [0.5, -0.25, 1.5][k]
    first, second, third = card["columns"]
    assert first == {"column": "income", "knots": [0.0, 10.0, 30.0], "points": income.tolist(), "missing": None}
    assert (second["points"], second["missing"]) == (debt[:2].tolist(), debt[2])
    assert [level["points"] for level in third["categories"]] == region[:3].tolist()
    assert third["unseen"] == region[3]


def test_reasons_are_about_the_outcome_that_is_asked_for(two):
    """c has income 0.125, debt -0.0625 and no region 0.125: one column speaks for 0, and two for 1."""
    person = PEOPLE.loc[["c"]]
    (one, *for_one), (zero, *for_zero) = (two.reasons(person, n=3, outcome=k).loc["c"].tolist() for k in (1, 0))
    assert (one, zero) == (1, 0)
    assert [words.split(":")[0] for words in for_zero] == ["debt is 3", "", ""]
    assert [words.split(":")[0] for words in for_one] == ["income is $20,000", "region is not known", ""]
    assert "+0.06 log-odds" in for_zero[0]
    assert "+0.12 log-odds" in for_one[0]


def test_reasons_name_the_first_category_the_missing_one_and_one_that_was_not_seen(two):
    two.scorer_.model.shapes[2].values[:] = -1.0
    two.scorer_.model.shapes[2].other[:] = -1.0
    for region, words in (("north", "north"), (None, "not known"), ("west", "a category that the model has not seen")):
        person = PEOPLE.loc[["a"]].assign(region=[region])
        reason = two.reasons(person, n=1, outcome=0).iloc[0]["reason 1"]
        assert reason.startswith(f"region is {words}: +1.00 log-odds")


def test_an_end_between_knots_is_on_the_line_and_beyond_the_last_it_stays(numbers):
    people = pd.DataFrame({"income": [-5.0, 5.0, 20.0, 99.0], "debt": 1.0, "region": "north"})
    assert numbers.predict(people).tolist() == [197.5, 207.5, 217.5, 217.5]
    assert numbers.explain(people)["prediction"].tolist() == [197.5, 207.5, 217.5, 217.5]


def test_what_adds_nothing_is_no_reason(two):
    """d has 0.125 for income, 0 for a debt of 2 and 0.25 for the north: nothing speaks for 0, and two for 1."""
    person = PEOPLE.loc[["d"]]
    assert two.reasons(person, n=3, outcome=0).loc["d"].tolist() == [0, "", "", ""]
    outcome, *reasons = two.reasons(person, n=3, outcome=1).loc["d"]
    assert outcome == 1
    assert [words.split(":")[0] for words in reasons] == ["region is north", "income is $30,000", ""]


def test_a_shape_that_falls_is_held_back_like_one_that_rises(numbers):
    """20 are allowed over the first 10 of income, and 40 over the next 20."""
    numbers.scorer_.model.shapes[0].values[:] = [[15.0, -5.0, -45.0]]
    card = numbers.scorecard()
    assert card["range"].tolist()[0] == "0 to 30"  # both gaps are held back, so they are one row
    assert (card["points"][0], card["points at end"][0], card["allowed"][0]) == (15.0, -45.0, 60.0)
    assert card["binds"].tolist()[0]
    numbers.scorer_.model.shapes[0].values[:] = [[15.0, -5.0, 35.0]]  # down and up again: two rows
    assert numbers.scorecard()["range"].tolist()[:2] == ["0 to 10", "10 to 30"]


def test_categories_are_held_back_only_if_their_whole_range_is_used(numbers):
    numbers.scorer_.model.shapes[2].values[:] = [[2.0, -8.0, 0.0]]  # 10 of 20
    assert not any(numbers.scorecard()["binds"].tolist()[4:])


def test_nearly_flat_ranges_are_one_row(numbers):
    """Less than a millionth of what is allowed, which is 20 and 40."""
    numbers.scorer_.model.shapes[0].values[:] = [[0.0, 1e-6, 0.0]]
    assert numbers.scorecard()["range"].tolist()[0] == "0 to 30"
    numbers.scorer_.model.shapes[0].values[:] = [[0.0, 1e-3, 0.0]]
    assert numbers.scorecard()["range"].tolist()[:2] == ["0 to 10", "10 to 30"]
