"""Audits under groups and matrices of categories, against brute force over all pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from likewise import TableMetric, audit, ceiling
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
@pytest.mark.parametrize("p", [1, 2, 3])
def test_an_audit_counts_what_brute_force_counts(shape, seed, p):
    table, scores = some_people(200, seed)
    metric = TableMetric({"age": 0.01**p}, {"c": 0.5, "d": 0.1}, p, missing={"age": 0.2}, **shape)
    result = audit(None, table, metric, predictions=scores)
    i, j = np.triu_indices(200, 1)
    excess = np.abs(scores[i] - scores[j]) - metric.pairwise(table)[i, j]
    assert result.n_violations == (excess > 1e-9).sum() > 0
    assert result.max_excess == pytest.approx(excess.max())
    worst = result.violations.iloc[0]
    assert worst["distance"] == pytest.approx(metric.pairwise(table)[worst["row_a"], worst["row_b"]])


@pytest.mark.parametrize("shape", [GROUPS, NESTED])
def test_the_points_of_a_search_have_the_distances_of_the_metric(shape):
    table, _ = some_people(60, 0)
    metric = TableMetric({"age": 0.01}, {"c": 0.5, "d": 0.1}, missing={"age": 0.2}, **shape)
    people = metric.encode_rows(table)
    weights = metric.weights_of(people.encoder)
    points = Points.of(people, weights)
    a, b = np.triu_indices(60, 1)
    np.testing.assert_allclose(points.gaps(a, b) @ points.scales(weights), metric.pairwise(table)[a, b], atol=1e-12)


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


def test_what_needs_boxes_refuses_a_matrix_that_is_no_nesting():
    table, scores = some_people(60, 2)
    with pytest.raises(InvalidInputError, match="groups in place of distances between the categories of 'c'") as error:
        ceiling(table, scores > 0.5, TableMetric({"age": 0}, {"c": 0.5, "d": 0.1}, **LINE))
    assert "\n" not in str(error.value)
