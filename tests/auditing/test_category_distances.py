"""Audits under groups and matrices of categories, against brute force over all pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from likewise import TableMetric, audit, audit_groups, ceiling, group_gaps, review_files
from likewise.auditing import file_review, group_audit
from likewise.exceptions import InvalidInputError
from likewise.pairs.points import Points

NAMES = list("abcdef")
GROUPS = {"groups": {"c": {"within": 0.25, "groups": [["a", "b"], ["c", "d", "e"], ["f"]]}}}
NESTED = {
    "distances": {
        "c": {
            x: {y: 0 if x == y else 1 if {x, y} <= {*"ab"} else 3 if {x, y} <= {*"abc"} else 4 for y in NAMES}
            for x in NAMES
        }
    }
}
LINE = {"distances": {"c": {x: {y: abs(i - j) for j, y in enumerate(NAMES)} for i, x in enumerate(NAMES)}}}


def some_people(n, seed):
    rng = np.random.default_rng(seed)
    age = np.where(rng.random(n) < 0.1, np.nan, rng.integers(20, 60, n))
    table = pd.DataFrame({"age": age, "c": rng.choice([*NAMES, "other", None], n), "d": rng.choice(["x", "y"], n)})
    return table, rng.random(n)


@pytest.mark.parametrize("shape", [GROUPS, NESTED, LINE])
@pytest.mark.parametrize("seed", range(4))
def test_an_audit_counts_what_brute_force_counts(shape, seed):
    table, scores = some_people(200, seed)
    metric = TableMetric({"age": 0.01}, {"c": 0.5, "d": 0.1}, missing={"age": 0.2}, **shape)
    result = audit(None, table, metric, predictions=scores)
    i, j = np.triu_indices(200, 1)
    excess = np.abs(scores[i] - scores[j]) - metric.pairwise(table)[i, j]
    assert result.n_violations == (excess > 1e-9).sum() > 0
    assert result.max_excess == pytest.approx(excess.max())
    worst = result.violations.iloc[0]
    assert worst["distance"] == pytest.approx(metric.pairwise(table)[worst["row_a"], worst["row_b"]])


@pytest.mark.parametrize("shape", [GROUPS, NESTED, LINE])
def test_the_points_of_a_search_have_the_distances_of_the_metric(shape):
    table, _ = some_people(60, 0)
    metric = TableMetric({"age": 0.01}, {"c": 0.5, "d": 0.1}, missing={"age": 0.2}, **shape)
    people = metric.encode_rows(table)
    weights = metric.bind(people.encoder)
    points = Points.of(people, weights)
    a, b = np.triu_indices(60, 1)
    np.testing.assert_allclose(points.gaps(a, b) @ points.scales, metric.pairwise(table)[a, b], atol=1e-12)


def test_boxes_and_a_scan_of_the_same_groups_agree():
    table, scores = some_people(300, 1)
    boxes = audit(None, table, TableMetric({"age": 0}, {"c": 0.5, "d": 0.1}, **GROUPS), predictions=scores)
    groups = table["c"].map(dict(zip(NAMES, "112223", strict=True))).fillna(table["c"])
    derived = table.assign(g=groups)
    codes = audit(None, derived, TableMetric({"age": 0}, {"c": 0.125, "g": 0.375, "d": 0.1}), predictions=scores)
    assert boxes.n_violations == codes.n_violations > 0
    assert boxes.max_excess == pytest.approx(codes.max_excess)


def test_a_ceiling_is_that_of_the_derived_codes():
    table, scores = some_people(60, 2)
    y = scores > 0.5
    derived = table.assign(g=table["c"].map(dict(zip(NAMES, "112223", strict=True))).fillna(table["c"]))
    ours = ceiling(table, y, TableMetric({"age": 0}, {"c": 0.5, "d": 0.1}, **GROUPS)).value
    assert ours == pytest.approx(ceiling(derived, y, TableMetric({"age": 0}, {"c": 0.125, "g": 0.375, "d": 0.1})).value)
    plain = ceiling(table, y, TableMetric({"age": 0}, {"c": 0.5, "d": 0.1})).value
    assert ours < plain


# Distances of the graph K(2, 3), the smallest that are no sum of mismatches.
K23 = {"distances": {"c": {x: {y: 2 if (x in "ab") == (y in "ab") else 1 for y in "abcde" if y != x} for x in "abcde"}}}
SHAPES = {"groups": GROUPS, "nested": NESTED, "line": LINE, "K23": K23}


def pair_program(distances, y):
    """The best mean of h[y] over probabilities of two or more classes, with all pairs in one program."""
    classes, codes = np.unique(y, return_inverse=True)
    n, m = len(y), len(classes)
    rows, limits = [], []
    for i, j in zip(*np.triu_indices(n, 1), strict=True):
        for subset in range(1, 2**m - 1):
            row = np.zeros((n, m))
            row[i], row[j] = np.array([[1], [-1]]) * [subset >> k & 1 for k in range(m)]
            rows.append(row.ravel())
            limits.append(distances[i, j])
    value = np.zeros((n, m))
    value[np.arange(n), codes] = 1
    total = np.kron(np.eye(n), np.ones(m))
    solved = linprog(-value.ravel(), np.array(rows), limits, total, np.ones(n), bounds=(0, 1))
    return -solved.fun / n


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_ceiling_is_that_of_the_program_with_all_pairs(shape, n_classes):
    table, scores = some_people(24, 3)
    table = table.assign(age=table["age"].fillna(40))
    metric = TableMetric({"age": 0.005}, {"c": 0.5, "d": 0.1}, **SHAPES[shape])
    y = np.floor(scores * n_classes)
    found = ceiling(table, y, metric)
    assert found.value == pytest.approx(pair_program(metric.pairwise(table), y), abs=1e-6)
    plain = TableMetric(metric.numeric, metric.categorical)
    assert found.value < pair_program(plain.pairwise(table), y) - 1e-3  # control: the shape counts


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_the_gap_that_is_allowed_is_the_transport_distance(shape, seed):
    table, scores = some_people(40, seed)
    table = table.assign(age=table["age"].fillna(40))
    metric = TableMetric({"age": 0.005}, {"c": 0.5, "d": 0}, **SHAPES[shape])
    inside = (table["d"] == "x").to_numpy()
    n, m = inside.sum(), (~inside).sum()
    rows = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
    sums = np.append(np.full(n, 1 / n), np.full(m, 1 / m))
    truth, plain = (
        linprog(each.pairwise(table[inside], table[~inside]).ravel(), A_eq=rows, b_eq=sums).fun
        for each in (metric, TableMetric(metric.numeric, metric.categorical))
    )
    found = group_gaps(None, table, metric, "d", predictions=scores).gaps
    np.testing.assert_allclose(found["allowed"], truth, atol=2e-6)
    assert (found["allowed"] >= truth - 1e-12).all()
    assert truth < plain - 1e-4 or seed == 2  # control: the shape counts


@pytest.mark.parametrize("shape", SHAPES)
def test_comparators_are_those_of_all_pairs_whatever_the_search(shape, monkeypatch):
    table, scores = some_people(150, 4)
    metric = TableMetric({"age": 0.01}, {"c": 0.5, "d": 0}, missing={"age": 0.2}, **SHAPES[shape])
    few = audit_groups(None, table, metric, predictions=scores, n_permutations=10)
    outcome = np.where(scores > 0.5, "yes", "no")
    close = review_files(table, outcome, metric=metric, threshold=0.2037, approved="yes", n_comparators=150)
    monkeypatch.setattr(group_audit, "_AT_ONCE", 1)
    monkeypatch.setattr(file_review, "_AT_ONCE", 1)
    many = audit_groups(None, table, metric, predictions=scores, n_permutations=10)
    pd.testing.assert_frame_equal(many.people, few.people)
    assert many.n_violations == few.n_violations == audit(None, table, metric, predictions=scores).n_violations
    again = review_files(table, outcome, metric=metric, threshold=0.2037, approved="yes", n_comparators=150)
    found = [{*zip(each.pairs["row"], each.pairs["comparator"], strict=True)} for each in (again, close)]
    assert found[0] == found[1] != set()
    plain = TableMetric(metric.numeric, metric.categorical, missing=metric.missing)
    assert audit(None, table, plain, predictions=scores).n_violations < few.n_violations  # control: the shape counts


def test_too_many_people_for_a_scan_are_one_clear_error(monkeypatch):
    monkeypatch.setattr("likewise.auditing.ceiling._MOST_SCANNED", 10)
    table, scores = some_people(60, 2)
    table = table.assign(age=table["age"].fillna(40))
    metric = TableMetric({"age": 0.01}, {"c": 0.5, "d": 0}, **K23)
    for ask in (
        lambda: ceiling(table, scores > 0.5, metric),
        lambda: group_gaps(None, table, metric, "d", predictions=scores),
    ):
        with pytest.raises(InvalidInputError, match=r"at most 10 distinct people .* or use groups") as error:
            ask()
        assert "\n" not in str(error.value)
