"""The closest values within a metric, against closed forms and another solver."""

import numpy as np
import pytest
from scipy.optimize import minimize

from likewise import WeightedLp
from likewise.projection.least_squares import closest_values
from likewise.projection.mcshane_whitney import make_envelope
from likewise.projection.scorer import simplex_least_squares


def solve(rows, targets, weights=None, metric=None):
    metric = metric or WeightedLp(np.ones(np.shape(rows)[1]))
    people = metric.encode_rows(rows)
    weights = np.ones(len(people)) if weights is None else np.asarray(weights, dtype=float)
    return closest_values(
        np.asarray(targets, dtype=float), weights, make_envelope(metric.bind(people.encoder), people).at_anchors(people)
    )


def test_two_people_meet_in_the_middle():
    np.testing.assert_allclose(solve([[0.0], [0.2]], [0.1, 0.9]), [0.4, 0.6], atol=1e-9)


def test_two_people_meet_where_their_weights_balance():
    np.testing.assert_allclose(solve([[0.0], [0.2]], [0.1, 0.9], [3, 1]), [0.25, 0.45], atol=1e-9)


def test_equal_people_get_the_mean():
    np.testing.assert_allclose(solve([[1.0], [1.0], [1.0]], [0.0, 0.1, 0.8]), 0.3, atol=1e-9)


def test_scores_within_the_metric_stay_what_they_are():
    rows = np.linspace(0, 1, 50)[:, None]
    scores = 0.2 + 0.5 * rows[:, 0]
    assert (solve(rows, scores) == scores).all()


def test_a_step_becomes_a_ramp():
    """On the line with D = |x - x'| and scores 0 below 1/2 and 1 above, the closest values are the ramp of slope 1."""
    rows = np.arange(0.005, 1, 0.01)[:, None]
    np.testing.assert_allclose(solve(rows, rows[:, 0] > 0.5), rows[:, 0], atol=0.01)


@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_they_are_those_of_a_general_solver(p):
    rng = np.random.default_rng(4)
    rows, targets, weights = rng.random((12, 2)), rng.random(12), rng.random(12) + 0.1
    metric = WeightedLp([0.4, 0.6], p)
    distances = metric.pairwise(rows)
    ours = solve(rows, targets, weights, metric)
    limits = [
        {"type": "ineq", "fun": lambda v, i=i, j=j: distances[i, j] - v[i] + v[j]}
        for i in range(12)
        for j in range(12)
        if i != j
    ]
    theirs = minimize(
        lambda v: weights @ (v - targets) ** 2,
        np.full(12, 0.5),
        constraints=limits,
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(ours, theirs.x, atol=1e-5)


def test_they_are_within_the_metric_to_the_last_digit():
    rng = np.random.default_rng(5)
    rows, targets = rng.random((300, 3)), rng.integers(0, 2, 300)
    metric = WeightedLp([0.3, 0.2, 0.1])
    values = solve(rows, targets, metric=metric)
    assert (np.abs(values[:, None] - values) - metric.pairwise(rows)).max() <= 1e-15
    # Control: scores as they are exceed it.
    assert (np.abs(targets[:, None] - targets) - metric.pairwise(rows)).max() > 0.5


def test_the_order_of_people_does_not_matter():
    rng = np.random.default_rng(6)
    rows, targets, turned = rng.random((200, 2)), rng.integers(0, 2, 200), rng.permutation(200)
    np.testing.assert_allclose(solve(rows[turned], targets[turned]), solve(rows, targets)[turned], atol=1e-7)


def test_shares_are_the_least_squares_among_averages():
    rng = np.random.default_rng(7)
    parts, outcomes, weights = rng.random((60, 3)), rng.random(60), rng.random(60)
    ours = simplex_least_squares(parts, outcomes, weights)
    tried = rng.dirichlet([0.5] * 3, 20_000)
    losses = (weights * (tried @ parts.T - outcomes) ** 2).sum(axis=1)
    assert ours.sum() == pytest.approx(1)
    assert (ours >= 0).all()
    assert weights @ (parts @ ours - outcomes) ** 2 <= losses.min()
