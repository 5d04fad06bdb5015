"""The optimum against general solvers on a dense formulation, and the same bits for any number of threads."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, lsq_linear, minimize
from scipy.sparse import csr_array
from scipy.special import expit

from likewise.additive import solver as blocks
from likewise.additive.binning import bin_columns, choose_knots
from likewise.additive.design_matrix import Layout, constant
from likewise.additive.objective import LogLoss, Objective, ProbitLoss, SoftmaxLoss, SquaredLoss
from likewise.additive.qp import Limits
from likewise.additive.solver import solve, solve_in_blocks
from parts import of_parts


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    X[:, 3] = rng.integers(0, 3, 200)
    return X


@pytest.fixture(scope="module")
def labels(rows):
    rng = np.random.default_rng(1)
    score = 2 * np.sin(2 * rows[:, 0]) - rows[:, 1] + (rows[:, 3] == 1)
    return (rng.random(200) < expit(score)).astype(float)


def columns(p=1.0, missing=np.nan):
    is_number = np.array([True, True, True, False])
    return of_parts(np.array([0.3, 0.1, 0.2, 0.15]), is_number, np.array([missing, np.nan, np.nan, np.nan]), p)


def problem_of(rows, weights, loss, *, penalty=1e-3, signs=None, unit=4.0):
    n = len(rows)
    parts = bin_columns(rows, np.full(n, 1 / n), weights, 6)
    layout = Layout(parts, weights, unit, signs or {})
    return Objective(layout, loss, np.full(n, 1 / n), np.full(len(parts), penalty), n)


def best(problem):
    x = solve(problem, constant(problem.layout, np.zeros(problem.loss.n_functions)))
    return x, problem.value(x, problem.scores(x))


def dense(problem):
    """Value and gradient of all variables at once, from a matrix with one row per person."""
    n = len(problem.weights)
    basis = np.zeros((n, problem.layout.to_slots.shape[0]))
    for part, start in zip(problem.layout.parts, problem.layout.slot_starts, strict=False):
        people = np.arange(n)
        fraction = np.zeros(n) if part.fraction is None else part.fraction
        basis[people, start + part.index.astype(int)] += 1 - fraction
        inner = fraction > 0
        basis[people[inner], start + part.index[inner].astype(int) + 1] += fraction[inner]
    design, R = basis @ problem.layout.to_slots.toarray(), problem.roughness
    k, size = problem.loss.n_functions, problem.layout.n_variables

    def value(flat):
        x = flat.reshape(k, size)
        scores = x @ design.T
        shift = x[:, 0].sum() if k > 1 else 0.0
        total = problem.weights @ problem.loss.values(scores) + np.sum((x @ R) * x) + shift**2
        slope = (problem.loss.derivative(scores) * problem.weights) @ design + 2 * x @ R
        slope[:, 0] += 2 * shift
        return total, slope.ravel()

    return value, design


def reference(problem, start):
    """The optimum by SciPy, with the limits written out."""
    value, _ = dense(problem)
    limits = problem.layout.limits(problem.loss.n_functions)
    constraints = [LinearConstraint(limits.rows.toarray(), -np.inf, limits.highest)]
    return minimize(
        value, start.ravel(), jac=True, method="SLSQP", constraints=constraints,
        options={"maxiter": 2000, "ftol": 1e-14},
    ).fun  # fmt: skip


def inside(problem):
    return constant(problem.layout, np.zeros(problem.loss.n_functions))


@pytest.mark.parametrize("kind", [LogLoss, ProbitLoss, SquaredLoss])
def test_boxes_against_a_quasi_newton_method_with_bounds(rows, labels, kind):
    """p = 1: limits on single variables."""
    problem = problem_of(rows, columns(), kind(labels[None]))
    x, found = best(problem)
    limits, value = problem.layout.limits(1), dense(problem)[0]
    high = np.full(x.size, np.inf)
    for row, limit in zip(limits.rows.toarray(), limits.highest, strict=True):
        high[np.flatnonzero(row)] = limit
    options = {"maxiter": 100_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-10}
    other = minimize(value, np.zeros(x.size), jac=True, method="L-BFGS-B", bounds=Bounds(-high, high), options=options)
    assert found == pytest.approx(other.fun, abs=1e-6)
    assert found <= other.fun + 1e-9


def test_squared_loss_against_bounded_least_squares(rows, labels):
    problem = problem_of(rows, columns(), SquaredLoss(labels[None] - 0.5), unit=1.0)
    x, found = best(problem)
    _, design = dense(problem)
    n, limits = len(rows), problem.layout.limits(1)
    high = np.full(x.size, np.inf)
    for row, limit in zip(limits.rows.toarray(), limits.highest, strict=True):
        high[np.flatnonzero(row)] = limit
    values, vectors = np.linalg.eigh(problem.roughness)
    root = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
    A = np.concatenate([design / np.sqrt(n), root])
    b = np.concatenate([(labels - 0.5) / np.sqrt(n), np.zeros(len(root))])
    other = lsq_linear(A, b, (-high, high), tol=1e-14)
    assert found == pytest.approx(2 * other.cost, abs=1e-9)


def test_signs_and_missing_numbers(rows, labels):
    rows = rows.copy()
    rows[::7, 0] = np.nan
    problem = problem_of(rows, columns(missing=0.1), LogLoss(labels[None]), signs={0: 1, 1: -1}, penalty=1e-4)
    x, found = best(problem)
    assert found == pytest.approx(reference(problem, inside(problem)), abs=1e-6)
    slots = problem.layout.to_slots @ x[0]
    first = slots[1 : 1 + problem.layout.parts[1].n_slots]
    assert (np.diff(first[:-1]) >= 0).all()
    assert np.abs(first[:-1] - first[-1]).max() <= 0.4


def test_several_classes(rows):
    rng = np.random.default_rng(2)
    kinds = rng.integers(0, 3, len(rows)) * (rows[:, 0] > -0.5)
    problem = problem_of(rows, columns(), SoftmaxLoss(np.eye(3)[kinds].T), unit=2.0, penalty=1e-2)
    _, found = best(problem)
    assert found == pytest.approx(reference(problem, inside(problem)), abs=1e-6)


@pytest.mark.parametrize(
    ("several", "most", "n_blocks"),
    [(False, 8, 4), (True, 20, 4), (True, 8, 8)],  # a column at a time; of all classes; of one class
)
def test_block_after_block_reaches_the_same_optimum(rows, labels, several, most, n_blocks, monkeypatch):
    loss = SoftmaxLoss(np.stack([labels, 1 - labels])) if several else LogLoss(labels[None])
    problem = problem_of(rows, columns(), loss, penalty=1e-2)
    _, expected = best(problem)
    monkeypatch.setattr(blocks, "_MOST_VARIABLES", most)
    assert len(blocks._blocks(problem.layout, problem.loss.n_functions)) == n_blocks
    x = solve_in_blocks(problem, inside(problem))
    assert problem.value(x, problem.scores(x)) == pytest.approx(expected, abs=1e-5)


def test_shapes_of_few_knots_are_the_same_with_more_knots_and_within_the_limits(rows, labels):
    missing = rows.copy()
    missing[::9, 0] = np.nan
    problem = problem_of(missing, columns(missing=0.05), LogLoss(labels[None]))
    coarse = problem.coarser(3)
    x, _ = best(coarse)
    fine = problem.layout.refined(coarse.layout, x)
    assert fine.size > x.size
    np.testing.assert_allclose(problem.scores(fine), coarse.scores(x), atol=1e-12)
    limits = problem.layout.limits(1)
    assert limits.values(fine.ravel()).max() <= 1e-12
    assert limits.values(1.5 * fine.ravel()).max() > 1e-3  # the control: they are used up


def test_rounds_are_extrapolated_to_where_they_would_end_within_the_limits():
    box = Limits(csr_array([[1.0, 0.0], [0.0, 1.0]]), np.array([5.0, 5.0]), np.zeros(2))
    before, x = np.array([[0.0, 4.0]]), np.array([[1.0, 3.0]])
    # 1 + 1/2 + 1/4 + ... = 2, of which the first step is made.
    assert blocks._extrapolated(box, before, x, 0.5).tolist() == [[2.0, 2.0]]
    # With steps that shrink by 0.9 it would be 9 further; the first limit is 4 away.
    assert blocks._extrapolated(box, before, x, 0.9) == pytest.approx(np.array([[4.96, -0.96]]))
    assert blocks._extrapolated(box, x, x, 0.9).tolist() == x.tolist()


def test_the_same_bits_for_any_number_of_threads():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40_000, 4))
    X[:, 3] = rng.integers(0, 3, 40_000)
    y = (rng.random(40_000) < expit(X[:, 0])).astype(float)
    found = [best(replace(problem_of(X, columns(), LogLoss(y[None])), n_jobs=n))[0] for n in (1, 2, 3)]
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()


def test_weights_place_knots_as_repetitions_would():
    rng = np.random.default_rng(4)
    values, counts = rng.normal(size=500), rng.integers(0, 4, 500)
    kept = counts > 0
    repeated = choose_knots(values.repeat(counts), np.ones(counts.sum()), 20)
    assert choose_knots(values[kept], counts[kept] / counts.sum(), 20).tolist() == repeated.tolist()
