"""Anchors, and the values they get, worked out by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from likewise import TableMetric, WeightedLp
from likewise._fit_validation import TrainingData
from likewise.projection.least_squares import Anchors, closest_values
from likewise.projection.mcshane_whitney import make_envelope

METRIC = WeightedLp([1.0, 0.0])  # the second column must not matter
ROWS = np.array([[2.0, 9.0], [0.0, 1.0], [2.0, 3.0], [1.0, 4.0], [0.0, 5.0], [3.0, 0.0]])
WEIGHTS = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 0.0])
VALUES = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])


def choose(weights=None, n_anchors="auto"):
    bound, _ = METRIC.read(ROWS)
    return Anchors.choose(people(weights), bound, n_anchors, np.random.default_rng(0))


def people(weights=None):
    return TrainingData(METRIC.encode_rows(ROWS), VALUES, weights)


def test_each_anchor_stands_for_all_that_are_equal_in_what_matters():
    """In the order of their values: 0, 1, 2 and 3; each is the first of those that are equal."""
    found = choose()
    assert ROWS[found.first, 0].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert found.first.tolist() == [1, 3, 0, 5]
    assert found.of_row.tolist() == [2, 0, 2, 1, 0, 3]
    assert found.weights.tolist() == [2.0, 1.0, 2.0, 1.0]
    assert found.mean(VALUES, people()).tolist() == pytest.approx([(0.2 + 0.5) / 2, 0.4, (0.1 + 0.3) / 2, 0.6])


def test_who_has_no_weight_is_no_anchor_and_others_count_by_theirs():
    found = choose(WEIGHTS)
    assert ROWS[found.first, 0].tolist() == [0.0, 1.0, 2.0]
    assert found.of_row.tolist() == [2, 0, 2, 1, 0, -1]
    assert found.weights.tolist() == [18.0, 8.0, 5.0]
    assert found.rows.tolist() == [0, 1, 2, 3, 4]
    expected = [(2 * 0.2 + 16 * 0.5) / 18, 0.4, (0.1 + 4 * 0.3) / 5]
    assert found.mean(VALUES[found.rows], people(WEIGHTS)).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("n_anchors", [1, 2, 3])
def test_who_is_equal_to_no_anchor_stands_behind_none(n_anchors):
    found = choose(n_anchors=n_anchors)
    kept = ROWS[found.first, 0]
    assert len(found) == n_anchors
    assert (np.diff(kept) > 0).all()
    for row, anchor in zip(ROWS[:, 0], found.of_row, strict=True):
        assert anchor == (kept.tolist().index(row) if row in kept else -1)
    assert found.weights.tolist() == [(ROWS[:, 0] == value).sum() for value in kept]
    expected = [VALUES[ROWS[:, 0] == value].mean() for value in kept]
    assert found.mean(VALUES[found.rows], people()).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
def test_the_closest_values_are_those_of_a_general_solver(seed):
    """Weights that differ by a lot: the heavier moves less."""
    rng = np.random.default_rng(seed)
    metric = WeightedLp([0.1])
    people = metric.encode_rows(rng.uniform(0, 4, (6, 1)))
    targets, weights = rng.random(6), 10.0 ** rng.uniform(-1, 1, 6)
    found = closest_values(targets, weights, make_envelope(metric.bind(people.encoder), people).at_anchors(people))
    D = metric.pairwise(people.rows)
    limits = [
        {"type": "ineq", "fun": lambda v, i=i, j=j: D[i, j] - v[i] + v[j]} for i in range(6) for j in range(6) if i != j
    ]
    best = minimize(lambda v: (weights * (v - targets) ** 2).sum(), np.full(6, 0.5), constraints=limits, tol=1e-12)
    np.testing.assert_allclose(found, best.x, rtol=0, atol=1e-5)


def test_two_people_move_towards_each_other_in_proportion_to_the_others_weight():
    metric = WeightedLp([0.1])
    people = metric.encode_rows(np.array([[0.0], [2.0]]))
    found = closest_values(
        np.array([0.0, 1.0]),
        np.array([3.0, 1.0]),
        make_envelope(metric.bind(people.encoder), people).at_anchors(people),
    )
    assert found.tolist() == pytest.approx([0.2, 0.4], abs=1e-8)


def test_who_misses_a_number_is_no_anchor_of_those_who_have_it():
    metric = TableMetric({"x": 0.1}, missing={"x": 0.2})
    found = metric.encode_rows(pd.DataFrame({"x": [0.0, np.nan, 0.0, np.nan, 1.0]}))
    found = Anchors.choose(
        TrainingData(found, np.zeros(5)), metric.bind(found.encoder), "auto", np.random.default_rng(0)
    )
    assert len(found) == 3
    assert found.of_row[0] == found.of_row[2] != found.of_row[1] == found.of_row[3]
    assert sorted(found.weights) == [1.0, 2.0, 2.0]
