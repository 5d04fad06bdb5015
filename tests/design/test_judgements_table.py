"""Tables of judgements: bad input is refused in one line that names the row."""

import itertools
import random
import re

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from likewise import FunctionMetric, InvalidInputError, TableMetric, WeightedLp, learn_metric
from likewise.design.judgements_table import WeightSpace, read_answers
from oracle import Described

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
        ([("Ann", "closer", "p", "q", None, "r", "7")], "must hold an answer in points"),
    ],
)
def test_bad_answers_are_refused_in_one_line(rows, message):
    with pytest.raises(InvalidInputError) as caught:
        learn_metric(table(*rows), PEOPLE)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def exclude_each_other(one, other):
    """Whether two answers of one judge cannot both hold, whatever the people are like."""
    pairs = [(frozenset(row[2:4]), frozenset(row[5:7])) for row in (one, other)]
    if one[0] != other[0]:
        return False
    if one[1] == other[1] == "closer":
        return pairs[0] == pairs[1][::-1]
    points = {row[1]: row[4] for row in (one, other)}
    return pairs[0][0] == pairs[1][0] and points.get("at_most", 100) < points.get("at_least", 0)


@pytest.mark.parametrize("repeated", [False, True])
def test_exactly_the_answers_that_exclude_each_other_are_refused(repeated):
    """Sets of four answers at random, about few pairs and points: with many repetitions, and many that just agree."""
    rng, space, n_refused = random.Random(0), WeightSpace.of(PEOPLE, None, None), 0
    for _ in range(400):
        rows = []
        for _ in range(4):
            judge, kind = rng.choice(["Ann", "Ann", "Bob"]), rng.choice(["at_most", "at_least", "closer"])
            first, second = rng.sample([("p", "q"), ("r", "7")], 2)
            first, second = (tuple(rng.sample(pair, 2)) for pair in (first, second))
            more = (None, *second) if kind == "closer" else (rng.choice([3, 4, 5]),)
            rows.append((judge, kind, *first, *more))
        bad = [
            (j, i)
            for i, j in itertools.product(range(4), repeat=2)
            if j < i and exclude_each_other(rows[j], rows[i]) and not (repeated and rows[i][1] == "closer")
        ]
        if not bad:
            assert len(read_answers(table(*rows), space, repeated=repeated)) == 4
            continue
        n_refused += 1
        with pytest.raises(InvalidInputError, match="contradicts themselves in rows") as caught:
            read_answers(table(*rows), space, repeated=repeated)
        named = tuple(map(int, re.search(r"rows (\d) and (\d)", str(caught.value)).groups()))
        assert named in bad
    assert 30 < n_refused < 300


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


SHAPES = {
    "order": {"grade": ["low", "mid", "high"]},
    "groups": {"job": {"within": 0.25, "groups": [["x", "y"], ["z"]]}},
}


@pytest.mark.parametrize("seed", range(4))
def test_ranges_are_those_of_a_general_program_on_the_definition(seed):
    """Features are distances under a weight of 1 in one place; the program is in plain weights."""
    rng = np.random.default_rng(seed)
    people = pd.DataFrame(
        {
            "age": rng.choice([20.0, 30.0, 55.0, np.nan], 30),
            "grade": rng.choice(["low", "mid", "high"], 30),
            "job": rng.choice(np.array(["x", "y", "z", None], dtype=object), 30),
        }
    )
    start = TableMetric({"age": 0.004, "grade": 0.05}, {"job": 0.1}, missing={"age": 0.2}, **SHAPES)
    kinds = [("age", "numeric"), ("age", "missing"), ("grade", "numeric"), ("job", "categorical")]
    records = people.to_dict("records")

    def distance(i, j, weights):
        given = {"numeric": {}, "categorical": {}, "missing": {}}
        for (name, kind), weight in zip(kinds, weights, strict=True):
            given[kind][name] = weight
        return float(Described(start.with_params(**given), list(people)).distance(records[i], records[j]))

    def features(i, j):
        # Distances are linear in the weights, but at 0: there, not even blanks count.
        middle = np.full(4, 0.25)
        return np.array([2 * (distance(i, j, middle + one / 2) - distance(i, j, middle)) for one in np.eye(4)])

    truth = np.array([0.005, 0.15, 0.04, 0.08])
    rows, A, b = [], [], []
    for k in range(14):
        i, j, m, n = rng.choice(30, 4, replace=False).tolist()
        apart = 100 * features(i, j) @ truth
        if k % 3 < 2:
            kind, points = (("at_most", np.ceil(apart)), ("at_least", np.floor(apart)))[k % 2]
            sign = 1 if kind == "at_most" else -1
            rows.append({"kind": kind, "a": i, "b": j, "points": points})
            A.append(sign * features(i, j))
            b.append(sign * points / 100)
        else:
            if apart > 100 * features(m, n) @ truth:
                i, j, m, n = m, n, i, j
            rows.append({"kind": "closer", "a": i, "b": j, "c": m, "d": n})
            A.append(features(i, j) - features(m, n))
            b.append(0.0)
    A = np.array(A)
    found = learn_metric(pd.DataFrame(rows), people, start).ranges
    assert [*zip(found["column"], found["kind"], strict=True)] == kinds
    bounds = [(0, None if kind == "numeric" else 1) for _, kind in kinds]
    for k, one in enumerate(np.eye(4)):
        ends = [linprog(sign * one, A, b, bounds=bounds) for sign in (1, -1)]
        low, high = ends[0].fun, np.inf if ends[1].status == 3 else -ends[1].fun
        assert (found["low"][k], found["high"][k]) == pytest.approx((low, high), rel=1e-4, abs=1e-7)
        assert low - 1e-9 <= truth[k] <= high + 1e-9
    assert found["n_answers"].tolist() == (A != 0).sum(axis=0).tolist()
    assert (A @ found["weight"].to_numpy() <= np.array(b) + 1e-6).all()


def test_what_has_no_upper_end_stays_at_its_lower_one():
    """x is at least 4 points, x and y together 10: y, of which nothing is known, takes none of the rest."""
    X = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])
    answers = pd.DataFrame({"kind": "at_least", "a": 0, "b": [1, 2], "points": [4, 10]})
    found = learn_metric(answers, X).ranges
    assert found["low"].tolist() == pytest.approx([0.04, 0], abs=1e-9)
    assert np.isinf(found["high"]).all()
    assert found["weight"].tolist() == pytest.approx([0.1, 0], abs=1e-4)


def test_people_are_found_whether_their_names_are_numbers_or_text():
    X = pd.DataFrame({"x": [0.0, 1.0]}, index=[10, 11])
    for names in ([10, 11], ["10", "11"], [10.0, 11.0]):
        answers = pd.DataFrame({"kind": "at_most", "a": names[:1], "b": names[1:], "points": "4"})
        assert learn_metric(answers, X).ranges["high"].tolist() == [pytest.approx(0.04)]
