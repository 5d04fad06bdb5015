"""A metric is bound once: nobody else makes one, files bind again, and the export says everything about D."""

import json
import pickle
from itertools import product

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression

import likewise as lw
from likewise import FunctionMetric, MahalanobisMetric, TableMetric, WeightedLp
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.kernel.metric import BoundMetric, bind

PEOPLE = pd.DataFrame(
    {
        "score": [620.0, 700.0, np.nan, 810.0],
        "grade": pd.Categorical(["low", "high", "middle", "low"], categories=["low", "middle", "high"], ordered=True),
        "job": ["clerk", "teacher", "farmer", "clerk"],
        "region": ["north", "south", "south", "north"],
    }
)
GROUPS = {"job": {"within": 0.3, "groups": [["clerk", "teacher"], ["farmer"]]}}
METRIC = TableMetric(
    {"score": 0.002, "grade": 0.1},
    {"job": 0.5, "region": 0.2},
    missing={"score": 0.4, "grade": 0.3},
    special={"score": {810: 0.25}},
    groups=GROUPS,
)


def exported_distance(export, a, b):
    """D from the export alone, in the plainest code."""
    total = 0.0
    for column, x, y in zip(export["columns"], a, b, strict=True):
        if column["kind"] == "categorical":
            shares = column.get("distances")
            total += column["weight"] * (shares[int(x)][int(y)] if shares else x != y)
            continue
        costs = {code["value"]: code["weight"] for code in column.get("special", ())}
        here = [column["missing"] if np.isnan(value) else costs.get(value, 0) for value in (x, y)]
        if any(here):
            total += max(here) * (str(x) != str(y))
        else:
            total += column["weight"] * abs(x - y)
    return total


def test_the_export_has_all_that_the_distance_needs():
    bound = METRIC.bind(METRIC.encoder(PEOPLE))
    export = json.loads(json.dumps(bound.to_dict()))
    rows = bound.read(PEOPLE).rows
    expected = METRIC.pairwise(PEOPLE)
    for i, j in product(range(4), repeat=2):
        assert exported_distance(export, rows[i], rows[j]) == pytest.approx(expected[i, j], rel=1e-12)


def test_control_an_export_with_another_table_has_other_distances():
    bound = METRIC.bind(METRIC.encoder(PEOPLE))
    export, rows = bound.to_dict(), bound.read(PEOPLE).rows
    export["columns"][2]["distances"] = None
    assert exported_distance(export, rows[0], rows[1]) > METRIC(PEOPLE[:1], PEOPLE[1:2]) + 0.1


def test_nobody_makes_one_but_bind():
    bound = METRIC.bind(METRIC.encoder(PEOPLE))
    parts = (bound.schema, METRIC, bound.weights, bound.missing, 1.0, {}, {}, None)
    with pytest.raises(TypeError, match="made by metric"):
        BoundMetric(*parts, object())
    with pytest.raises(TypeError):
        BoundMetric(*parts)


@pytest.mark.parametrize(
    ("weights", "missing", "tables", "words"),
    [
        ([-0.1, 0.2], None, {}, "none negative"),
        ([0.1], None, {}, "2 finite numbers"),
        ([np.inf, 0.2], None, {}, "finite"),
        ([0.1, 0.2], [-0.1, np.nan], {}, "none negative"),
        ([0.1, 0.2], None, {1: [[0, 0.2, 1], [0.3, 0, 1], [1, 1, 0]]}, "symmetric"),
        ([0.1, 0.2], None, {1: [[0, -0.2, 1], [-0.2, 0, 1], [1, 1, 0]]}, "symmetric"),
        ([0.1, 0.2], None, {1: [[0.1, 0.2, 1], [0.2, 0, 1], [1, 1, 0]]}, "diagonal"),
        ([0.1, 0.2], None, {1: [[0, np.nan, 1], [np.nan, 0, 1], [1, 1, 0]]}, "symmetric"),
    ],
)
def test_parts_that_are_no_distance_are_refused(weights, missing, tables, words):
    schema = METRIC.encoder(PEOPLE)
    two = type(schema)(schema.columns[:1] + schema.columns[3:])
    tables = {i: np.array(table) for i, table in tables.items()}
    with pytest.raises(InvalidInputError, match=words):
        bind(METRIC, two, np.array(weights), p=1.0, missing=missing and np.array(missing), tables=tables)


@pytest.mark.parametrize(
    "metric", [METRIC, WeightedLp([0.1, 0.2], p=2), MahalanobisMetric([[1.0, 0.5]])], ids=["table", "lp", "linear map"]
)
def test_a_file_holds_the_description_and_the_schema_and_is_bound_again(metric):
    X = PEOPLE if metric is METRIC else np.array([[0.0, 1.0], [2.0, -1.0]])
    bound = metric.bind(metric.encoder(X))
    state = bound.__getstate__()
    assert {*state} == {"description", "schema"}
    data = skops.io.dumps(bound)
    unpickled = pickle.loads(pickle.dumps(bound))
    loaded = skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))
    for again in (unpickled, loaded):
        rows = bound.read(X).rows
        assert again.pairwise(rows, rows).tolist() == bound.pairwise(rows, rows).tolist()
        assert again.is_of(metric)
        assert again.description == bound.description


def test_what_a_metric_is_bound_to_tells_it_from_others():
    bound = WeightedLp([0.1, 0.2]).bind(WeightedLp({"a": 0.1, "b": 0.2}).encoder())
    assert bound.description == WeightedLp({"a": 0.1, "b": 0.2})
    assert bound.is_of(WeightedLp([0.1, 0.2]))
    assert bound.is_of(WeightedLp({"b": 0.2, "a": 0.1}))
    assert not bound.is_of(WeightedLp({"a": 0.2, "b": 0.1}))
    assert not bound.is_of(WeightedLp({"a": 0.1, "c": 0.2}))
    assert not bound.is_of(MahalanobisMetric([[0.1, 0.0], [0.0, 0.2]], p=1))
    assert not bound.is_of(WeightedLp([0.1, 0.2], p=2))
    unnamed = WeightedLp([0.1, 0.2]).bind(WeightedLp([0.1, 0.2]).encoder())
    assert unnamed.is_of(WeightedLp({"a": 0.1, "b": 0.2}))  # by position, since nothing else is known


def test_a_function_has_no_parts():
    metric = FunctionMetric(lambda a, b: np.abs(a - b).sum(axis=1))
    X = np.array([[0.0], [1.0], [4.0]])
    bound = metric.bind(metric.encoder(X))
    people = bound.read(X)
    assert not bound.has_parts
    assert bound.between(people.take([0]), people).tolist() == [0.0, 1.0, 4.0]
    assert bound.between(people, people.take([2, 1, 0])).tolist() == [4.0, 0.0, 4.0]
    for part in ("weights", "scales", "matters", "allows_missing"):
        with pytest.raises(InvalidTypeError, match="is a function of whole people"):
            getattr(bound, part)


CODES = TableMetric(
    {"score": 0.001, "debt": 0},
    {"job": 0.05},
    missing={"score": 0.15},
    special={"score": {-99: 0.3, -98: 0.1, 500: 0.2}, "debt": {-1: 0.4}},
)


def test_special_codes_are_states_beside_numbers():
    people = pd.DataFrame({"score": [700, 720, -99, -98, np.nan, 500, 501], "debt": [1, -1, 2, 3, 4, 5, 6], "job": "a"})
    expected = [
        [0, 0.02, 0.3, 0.1, 0.15, 0.2, 0.199],
        [0.02, 0, 0.3, 0.1, 0.15, 0.2, 0.219],
        [0.3, 0.3, 0, 0.3, 0.3, 0.3, 0.3],
        [0.1, 0.1, 0.3, 0, 0.15, 0.2, 0.1],
        [0.15, 0.15, 0.3, 0.15, 0, 0.2, 0.15],
        [0.2, 0.2, 0.3, 0.2, 0.2, 0, 0.2],
        [0.199, 0.219, 0.3, 0.1, 0.15, 0.2, 0],
    ]
    assert CODES.pairwise(people) == pytest.approx(np.array(expected))
    bound, read = CODES.read(people)
    assert bound.terms(read.rows[:, None], read.rows[None]).sum(axis=-1) == pytest.approx(np.array(expected))
    assert CODES.scaled(4).pairwise(people)[0, 2:] == pytest.approx([1, 0.4, 0.6, 0.8, 0.796])
    scores = np.random.default_rng(0).random(7)
    audit = lw.audit(None, people, CODES, predictions=scores, output_range=(0, 1), tolerance=0.0)
    above = np.triu(np.abs(scores[:, None] - scores) - np.array(expected) > 1e-12, 1)
    assert audit.n_violations == above.sum() > 0


@pytest.mark.parametrize(
    ("special", "why"),
    [
        ({"job": {-99: 0.1}}, "special must name columns"),
        ({"score": {-99: 0}}, "above 0"),
        ({"score": {-99: 1.2}}, "between 0 and 1"),
        ({"score": {"no file": 0.2}}, "must be numbers"),
        ({"score": {np.nan: 0.2}}, "must be numbers"),
        ({"score": -99}, "must be a mapping"),
    ],
)
def test_special_codes_that_are_none_are_refused(special, why):
    with pytest.raises((TypeError, ValueError), match=why):
        TableMetric({"score": 0.001}, {"job": 0.05}, special=special)


@pytest.mark.parametrize(
    "use",
    [
        lambda X, y: lw.SmoothedClassifier(LogisticRegression(), metric=CODES).fit(X, y),
        lambda X, y: lw.LipschitzClassifier(CODES).fit(X, y),
    ],
)
def test_what_cannot_take_special_codes_says_so(use):
    pytest.importorskip("torch")
    X = pd.DataFrame({"score": [500.0, 600, -99, 700] * 20, "debt": 1.0, "job": ["a", "b"] * 40})
    with pytest.raises(ValueError, match=r"(no|without) special codes.*score"):
        use(X, np.arange(80) % 3 == 0)
