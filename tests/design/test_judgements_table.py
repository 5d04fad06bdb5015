"""Tables of judgements: bad input is refused in one line that names the row."""

import numpy as np
import pandas as pd
import pytest

from likewise import FunctionMetric, InvalidInputError, TableMetric, WeightedLp, learn_metric
from likewise.design.judgements_table import WeightSpace, read_answers

PEOPLE = pd.DataFrame(
    {"age": [30.0, 40, np.nan, 50], "job": ["x", "y", "x", None], "race": list("uvuv")}, index=["p", "q", "r", "7"]
)


def table(*rows):
    return pd.DataFrame([dict(zip(("judge", "kind", "a", "b", "points", "c", "d"), row, strict=False)) for row in rows])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("Ann", "near", "p", "q", 3)], "kind of row 0 must be at_most, at_least, closer or skip; got 'near'"),
        ([("Ann", "at_most", "p", "z", 3)], "b of row 0 is the person 'z', who is not in X"),
        ([("Ann", "at_most", "p", None, 3)], "b of row 0 must name a person; got None"),
        ([("Ann", "at_most", "p", "p", 3)], "row 0 must be about two people"),
        ([("Ann", "closer", "p", "q", None, "r", "r")], "row 0 must be about two people"),
        ([("Ann", "closer", "p", "q", None, "r")], "d of row 0 must name a person"),
        ([("Ann", "at_most", "p", "q", 3, "r", "p")], "c of row 0 must be empty, as only comparisons"),
        ([("Ann", "at_most", "p", "q", 101)], "points of row 0 must be a number from 0 to 100; got 101"),
        ([("Ann", "at_most", "p", "q", -1)], "points of row 0 must be a number from 0 to 100"),
        ([("Ann", "at_most", "p", "q", "few")], "points of row 0 must be a number from 0 to 100; got 'few'"),
        ([("Ann", "at_least", "p", "q", None)], "points of row 0 must be a number from 0 to 100"),
        ([("Ann", "closer", "p", "q", 3, "r", "p")], "points of row 0 must be empty"),
        ([("Ann", "skip", "p", "q")], "judgements must hold at least one answer"),
        (
            [("Ann", "at_most", "p", "q", 3), ("Bob", "at_most", "p", "q", 9), ("Ann", "at_least", "q", "p", 5)],
            "judge 'Ann' contradicts themselves in rows 0 and 2: p and q are at most 3 points apart, and q and p are "
            "at least 5 points apart",
        ),
        (
            [("Ann", "closer", "p", "q", None, "r", "7"), ("Ann", "closer", "7", "r", None, "p", "q")],
            "judge 'Ann' contradicts themselves in rows 0 and 1",
        ),
        ([("Ann", "closer", "p", "q", None, "r", "7")], "must hold an answer in points"),
    ],
)
def test_bad_answers_are_refused_in_one_line(rows, message):
    with pytest.raises(InvalidInputError) as caught:
        learn_metric(table(*rows), PEOPLE)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_judges_may_differ_and_noisy_comparisons_may_repeat():
    differ = table(("Ann", "at_most", "p", "q", 3), ("Bob", "at_least", "p", "q", 5))
    assert learn_metric(differ, PEOPLE).conflicts["judge"].tolist() == ["Ann", "Bob"]
    both = table(
        ("Ann", "closer", "p", "q", None, "r", "7"),
        ("Ann", "closer", "r", "7", None, "p", "q"),
        ("Ann", "at_most", "p", "q", 9),
    )
    assert learn_metric(both, PEOPLE, comparisons="logistic").noise > 0


def test_a_table_without_its_columns_and_people_named_twice_are_refused():
    with pytest.raises(InvalidInputError, match="judgements must have the column 'a'; it has"):
        learn_metric(pd.DataFrame({"kind": ["at_most"]}), PEOPLE)
    twice = PEOPLE.set_axis(["p", "q", "q", "s"])
    with pytest.raises(InvalidInputError, match="'q', who occurs more than once in X"):
        learn_metric(table(("Ann", "at_most", "p", "q", 3)), twice)
    assert len(read_answers(table(("Ann", "at_most", "p", "s", 3)), WeightSpace.of(twice, None, None))) == 1


def test_only_weighted_metrics_with_p_1_can_be_a_start():
    answers = table((None, "at_most", 0, 1, 3))
    with pytest.raises(InvalidInputError, match=r"start must have p = 1, .* it has p = 2"):
        learn_metric(answers, [[0.0], [1.0]], WeightedLp([1.0], p=2))
    with pytest.raises(InvalidInputError, match=r"start must have"):
        learn_metric(answers, [[0.0], [1.0]], FunctionMetric(lambda a, b: np.abs(a - b).sum(axis=-1)))
    with pytest.raises(InvalidInputError, match="must have a column in which people differ"):
        learn_metric(answers, [[0.0], [1.0]], WeightedLp([0.0]))
    with pytest.raises(InvalidInputError, match="X must hold at least two people"):
        learn_metric(answers, [[0.0]])


def test_features_times_weights_are_distances():
    metric = TableMetric({"age": 0.002}, {"job": 0.3, "race": 0}, missing={"age": 0.1})
    space = WeightSpace.of(PEOPLE, metric, None)
    assert list(zip(space.names, space.kinds, strict=True)) == [
        ("age", "numeric"),
        ("age", "missing"),
        ("job", "categorical"),
    ]
    i, j = np.triu_indices(4)
    np.testing.assert_allclose(space.features(i, j) @ space.start, metric(PEOPLE.iloc[i], PEOPLE.iloc[j]), rtol=1e-12)
    assert space.metric(space.start) == metric


def test_people_are_found_whether_their_names_are_numbers_or_text():
    X = pd.DataFrame({"x": [0.0, 1.0]}, index=[10, 11])
    for names in ([10, 11], ["10", "11"], [10.0, 11.0]):
        answers = pd.DataFrame({"kind": "at_most", "a": names[:1], "b": names[1:], "points": "4"})
        assert learn_metric(answers, X).ranges["high"].tolist() == [pytest.approx(0.04)]
