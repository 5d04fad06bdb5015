"""The next question: against brute force, and how fast adaptive questions find hidden weights."""

import numpy as np
import pandas as pd
import pytest

from likewise import InvalidInputError, TableMetric, learn_metric, next_question
from likewise.design.judgements import settled_polytope
from likewise.design.judgements_table import WeightSpace, read_answers
from simulated_judges import answers_in_points

WEIGHTS = {"age": 0.004, "income": 0.002, "region": 0.1}
HIDDEN = TableMetric({"age": 0.004, "income": 0.002}, {"region": 0.1})


def population(seed=0, n=40):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 26, n).astype(float),
            "income": rng.choice([10.0, 20, 30], n),
            "region": rng.choice(list("nsw"), n),
        },
        index=[f"p{i}" for i in range(n)],
    )


def answer(people, question):
    """Two answers, to the whole point."""
    D = 100 * HIDDEN(people.loc[[question.a]], people.loc[[question.b]])[0]
    ends = [("at_least", np.floor(D)), ("at_most", np.ceil(D))]
    return [{"judge": "Ann", "kind": k, "a": question.a, "b": question.b, "points": float(t)} for k, t in ends]


@pytest.mark.parametrize("seed", range(3))
def test_the_question_is_about_the_least_determined_pair(seed):
    people = population(seed, n=12)
    space = WeightSpace.of(people, None, None)
    i, j = np.triu_indices(12, k=1)
    rng = np.random.default_rng(seed)
    rows = []
    for k in rng.choice(len(i), size=4, replace=False):
        D = 100 * HIDDEN(people.iloc[[i[k]]], people.iloc[[j[k]]])[0]
        pair = {"a": people.index[i[k]], "b": people.index[j[k]]}
        rows += [{"kind": "at_most", "points": np.ceil(D), **pair}, {"kind": "at_least", "points": np.floor(D), **pair}]
    answers = pd.DataFrame(rows)
    polytope = settled_polytope(read_answers(answers, space), space)
    widths = {}
    for a, b, feature in zip(i, j, space.features(i, j) / space.sizes, strict=True):
        low, high = np.minimum(polytope.extent(feature), 100)
        if frozenset((people.index[a], people.index[b])) not in {frozenset((r["a"], r["b"])) for r in rows}:
            widths[people.index[a], people.index[b]] = high - low
    question = next_question(answers, people)
    assert widths[question.a, question.b] == pytest.approx(max(widths.values()), abs=1e-5)
    assert question.high - question.low == pytest.approx(max(widths.values()), abs=1e-5)


def test_three_weights_are_found_with_ten_questions():
    """Each weight to 15%, from answers to the whole point, and faster than by random pairs."""
    people, rows = population(), []
    for _ in range(10):
        question = next_question(pd.DataFrame(rows) if rows else None, people, precision=0.1)
        if question is None:
            break
        rows += answer(people, question)
    result = learn_metric(pd.DataFrame(rows), people)
    assert result.conflicts.empty
    for _, row in result.ranges.iterrows():
        assert row["low"] <= WEIGHTS[row["column"]] + 1e-9
        assert row["high"] >= WEIGHTS[row["column"]] - 1e-9
        assert row["weight"] == pytest.approx(WEIGHTS[row["column"]], rel=0.15)


def test_no_pair_is_asked_about_twice_and_questions_end():
    people, rows, seen = population(n=8), [], set()
    for _ in range(40):
        question = next_question(pd.DataFrame(rows) if rows else None, people)
        if question is None:
            break
        pair = frozenset((question.a, question.b))
        assert pair not in seen
        seen.add(pair)
        rows.append({"judge": "Ann", "kind": "skip", "a": question.a, "b": question.b})
    assert question is None
    assert len(seen) <= 28


def test_a_pair_that_was_compared_with_another_was_not_asked_about():
    people = population(n=8)
    first = next_question(None, people)
    others = [name for name in people.index if name not in (first.a, first.b)]
    compared = {"kind": "closer", "a": first.a, "b": first.b, "c": others[0], "d": others[1]}
    again = next_question(pd.DataFrame([compared]), people)
    assert (again.a, again.b) == (first.a, first.b)


def test_only_what_differs_is_shown_and_protected_columns_are_not():
    people = population()
    metric = TableMetric({"age": 0.01, "income": 0.01}, {"region": 0})
    question = next_question(None, people, metric)
    shown = question.differences
    assert len(shown) == 1
    assert "region" not in set(shown["column"])
    for _, row in shown.iterrows():
        assert people.loc[question.a, row["column"]] == row["a"] != row["b"] == people.loc[question.b, row["column"]]


def test_people_who_differ_everywhere_are_asked_about_too():
    X = np.random.default_rng(0).normal(size=(500, 5))
    question = next_question(None, X)
    assert len(question.differences) == 5
    answers = answers_in_points(X, np.full(5, 0.02), 200, np.random.default_rng(1), width=0.5)
    assert next_question(answers, X, precision=5.0) is None


def test_parameters_are_checked():
    for options in ({"max_columns": 0}, {"precision": 0.0}):
        with pytest.raises(InvalidInputError, match=f"{next(iter(options))} must be"):
            next_question(None, population(), **options)
