"""Polytopes of weights, against closed forms and brute force."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from likewise.design.judgements_polytope import Polytope, find_conflicts


def random_polytope(rng, n=8, d=3):
    hidden = rng.uniform(1, 5, size=d)
    rows = rng.uniform(0, 2, size=(n, d)) * np.where(rng.random((n, 1)) < 0.5, -1, 1)
    return Polytope(rows, rows @ hidden + rng.uniform(0, 2, size=n), np.full(d, 20.0)), hidden


def vertices(rows, limits, upper):
    """All corners, by brute force over sets of conditions that hold with equality."""
    d = rows.shape[1]
    A = np.concatenate([rows, -np.eye(d), np.eye(d)])
    b = np.concatenate([limits, np.zeros(d), upper])
    for chosen in map(list, combinations(range(len(b)), d)):
        if abs(np.linalg.det(A[chosen])) > 1e-9:
            corner = np.linalg.solve(A[chosen], b[chosen])
            if (A @ corner <= b + 1e-9).all():
                yield corner


@pytest.mark.parametrize("seed", range(10))
def test_extent_is_that_of_the_corners(seed):
    polytope, _ = random_polytope(np.random.default_rng(seed))
    corners = np.array(list(vertices(polytope.rows, polytope.limits, polytope.upper)))
    assert polytope.agrees
    low, high = polytope.bounds()
    np.testing.assert_allclose(low, corners.min(axis=0), atol=1e-6)
    np.testing.assert_allclose(high, corners.max(axis=0), atol=1e-6)
    feature = np.array([1.0, 0.5, 2.0])
    np.testing.assert_allclose(polytope.extent(feature), [(corners @ feature).min(), (corners @ feature).max()])


@pytest.mark.parametrize("seed", range(10))
def test_the_nearest_point_is_that_of_a_general_solver(seed):
    polytope, _ = random_polytope(np.random.default_rng(seed))
    target = np.random.default_rng(100 + seed).uniform(0.5, 9, size=3)
    found = polytope.nearest(target)

    def change(u):
        return (((u - target) / target) ** 2).sum()

    other = minimize(
        change,
        found,
        jac=lambda u: 2 * (u - target) / target**2,
        bounds=[(0, 20)] * 3,
        constraints={"type": "ineq", "fun": lambda u: polytope.limits - polytope.rows @ u},
        method="SLSQP",
        options={"ftol": 1e-12},
    )
    assert (polytope.rows @ found <= polytope.limits + 1e-6).all()
    assert change(found) <= change(other.x) + 1e-5


def test_a_target_inside_stays_and_a_given_sum_is_kept():
    polytope, hidden = random_polytope(np.random.default_rng(0))
    np.testing.assert_allclose(polytope.nearest(hidden), hidden, rtol=1e-9)
    fixed = Polytope(np.empty((0, 2)), np.empty(0), np.full(2, np.inf), total=(np.array([1.0, 2.0]), 6.0))
    assert fixed.nearest(np.array([4.0, 4.0])) @ [1, 2] == pytest.approx(6)
    np.testing.assert_allclose(fixed.bounds(), [[0, 0], [6, 3]], atol=1e-9)


def test_what_no_answer_limits_reaches_to_infinity():
    polytope = Polytope(np.array([[1.0, 0.0]]), np.array([5.0]), np.array([np.inf, np.inf]))
    np.testing.assert_array_equal(polytope.bounds(), [[0, 0], [5, np.inf]])


def test_an_unbounded_weight_that_the_solver_calls_infeasible():
    """Presolve of HiGHS reports this feasible program, unbounded in the second weight, as infeasible."""
    rows = [
        [0.2596, -1.8261, 0, -3.5328, 2.625],
        [-2.3767, -1.8261, 1.5, 0, 0],
        [-0.7038, -1.8261, 0, 0, 0],
        [-0.1795, -1.8261, 0, -3.3925, 2.625],
        [-2.2513, 1.8261, -1.5, -1.118, 0],
        [-1.654, 0, 0, 0, -2.625],
        [-0.0352, 0, -1.5, -0.0157, 0],
        [0.0352, 0, -1.5, -0.0157, 0],
        [0.7556, -1.8261, 0, 0.3646, 0],
    ]
    limits = np.array([0.0, 0, 0, 0, 0, -1, -1, 0, 0])
    polytope = Polytope(np.array(rows), limits, np.array([np.inf, np.inf, 66.7, np.inf, 38.1]))
    np.testing.assert_array_equal(polytope.bounds()[1], [np.inf, np.inf, 66.7, np.inf, 38.1])


def test_an_interval_that_excludes_itself_is_split_by_the_start():
    """At most 5 against at least 8: every value between has the same total slack, and the closest is taken."""
    polytope = Polytope(np.array([[1.0], [-1.0]]), np.array([5.0, -8.0]), np.array([np.inf]))
    assert not polytope.agrees
    assert polytope.slack.sum() == pytest.approx(3)
    for start, nearest in ((6.0, 6.0), (1.0, 5.0), (20.0, 8.0)):
        assert polytope.nearest(np.array([start]))[0] == pytest.approx(nearest, abs=1e-4)


@pytest.mark.parametrize("seed", range(10))
def test_conflicts_are_minimal_and_leave_agreement(seed):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0, 2, size=(9, 2)) * np.where(np.arange(9) % 2, -1, 1)[:, None]
    limits = rows @ [2.0, 2.0] + rng.normal(scale=1.0, size=9)
    polytope = Polytope(rows, limits, np.full(2, np.inf))
    groups = list(find_conflicts(polytope))
    assert polytope.agrees == (not groups)
    for group in groups:
        assert not Polytope(rows[group], limits[group], polytope.upper).agrees
        for k in range(len(group)):
            fewer = np.delete(group, k)
            assert Polytope(rows[fewer], limits[fewer], polytope.upper).agrees
    rest = np.setdiff1d(np.arange(9), np.concatenate([*groups, np.empty(0, dtype=int)]))
    assert Polytope(rows[rest], limits[rest], polytope.upper).agrees


def test_control_some_of_these_conflict():
    counts = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        rows = rng.uniform(0, 2, size=(9, 2)) * np.where(np.arange(9) % 2, -1, 1)[:, None]
        limits = rows @ [2.0, 2.0] + rng.normal(scale=1.0, size=9)
        counts.append(len(list(find_conflicts(Polytope(rows, limits, np.full(2, np.inf))))))
    assert min(counts) == 0 or max(counts) > 1
    assert max(counts) >= 1
