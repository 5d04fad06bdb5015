"""The optimum of shapes and weights together, against CVXPY, for every kind of column and outcome."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from likewise.additive.binning import bin_columns
from likewise.additive.design_matrix import Layout
from likewise.additive.objective import LogLoss, Objective, SoftmaxLoss, SquaredLoss
from likewise.design.joint import Costs, JointProblem, WeightBounds
from parts import of_parts


@pytest.fixture(scope="module")
def rows():
    """A column of numbers, one with blanks, one of counts, and one of categories."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    X[:, 2] = rng.poisson(0.7, 150)
    X[:, 3] = rng.integers(0, 3, 150)
    X[::6, 1] = np.nan
    return X


def score(rows):
    return 1.5 * rows[:, 0] + np.nan_to_num(rows[:, 1], nan=2.0) + (rows[:, 3] == 1)


OUTCOMES = {
    "two classes": lambda rng, rows: LogLoss((rng.random(150) < expit(score(rows)))[None].astype(float)),
    "three classes": lambda rng, rows: SoftmaxLoss(
        np.eye(3)[np.digitize(score(rows) + rng.normal(size=150), [-1, 1])].T
    ),
    "regression": lambda rng, rows: SquaredLoss((expit(score(rows) + 0.3 * rng.normal(size=150)) - 0.5)[None]),
}
UNITS = {"two classes": 4.0, "three classes": 2.0, "regression": 1.0}


NEAR = {3: np.array([[0, 0.1, 1, 1], [0.1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]])}  # two of the categories are near


def joint(rows, outcome, lower=None, upper=None, penalty=1e-3, tables=None):
    loss, n = OUTCOMES[outcome](np.random.default_rng(1), rows), len(rows)
    is_number, missing = np.array([True, True, True, False]), np.array([np.nan, 1.0, np.nan, np.nan])
    columns = of_parts(np.array([1e3, 1e3, 1e3, 1.0]), is_number, missing, 1.0, tables or {})
    shares = np.full(n, 1 / n)
    parts = bin_columns(rows, shares, columns, 5)
    layout = Layout(parts, columns, UNITS[outcome], {})
    objective = Objective(layout, loss, shares, np.full(len(parts), penalty), n)
    bounds = WeightBounds(
        np.zeros(4) if lower is None else lower, np.array([np.inf] * 3 + [1]) if upper is None else upper
    )
    return JointProblem(objective, Costs.of(rows, shares, is_number, tables), bounds)


def basis(problem):
    """One row per person and one column per variable of the shapes."""
    layout, n = problem.layout, len(problem.objective.weights)
    slots = np.zeros((n, layout.to_slots.shape[0]))
    for part, start in zip(layout.parts, layout.slot_starts, strict=False):
        fraction = np.zeros(n) if part.fraction is None else part.fraction
        slots[np.arange(n), start + part.index.astype(int)] += 1 - fraction
        inner = fraction > 0
        slots[inner, start + part.index[inner].astype(int) + 1] += fraction[inner]
    return slots @ layout.to_slots.toarray()


def reference(problem, price):
    """The same problem written down in CVXPY from its definition, and not from our limits."""
    cp = pytest.importorskip("cvxpy")
    layout, loss, weights = problem.layout, problem.objective.loss, problem.objective.weights
    k, unit = loss.n_functions, layout.unit
    x = cp.Variable((k, layout.n_variables))
    w, m = cp.Variable(4, nonneg=True), cp.Variable(4, nonneg=True)
    design = basis(problem)
    scores = x @ design.T
    if isinstance(loss, LogLoss):
        values = cp.logistic(scores[0]) - cp.multiply(loss.target[0], scores[0])
    elif isinstance(loss, SoftmaxLoss):
        values = cp.log_sum_exp(scores, axis=0) - cp.sum(cp.multiply(loss.target, scores), axis=0)
    else:
        values = cp.square(scores[0] - loss.target[0])
    total = weights @ values
    held = [w >= problem.bounds.lower, w[3] <= 1, m <= 1]
    held += [w[i] <= high for i, high in enumerate(problem.bounds.upper) if np.isfinite(high)]
    for j, part in enumerate(layout.parts):
        here = slice(int(layout.starts[j]), int(layout.starts[j + 1]))
        if part.column < 0:
            continue
        root = np.linalg.cholesky(layout.roughness[j] + 1e-14 * np.eye(here.stop - here.start)).T
        values = layout.to_slots[int(layout.slot_starts[j]) : int(layout.slot_starts[j + 1]), here].toarray()
        for f in range(k):
            total = total + problem.objective.penalties[j] * cp.sum_squares(root @ x[f, here])
            shape = values @ x[f, here]
            if part.knots is None:
                shares = layout.weights.tables.get(part.column, 1 - np.eye(part.n_slots))
                for a, b in zip(*np.triu_indices(part.n_slots, 1), strict=True):
                    held.append(cp.abs(shape[a] - shape[b]) <= unit * w[part.column] * shares[a, b])
                continue
            knots = part.n_knots
            held.append(cp.abs(cp.diff(shape[:knots])) <= unit * w[part.column] * np.diff(part.knots))
            if part.has_missing:
                held.append(cp.abs(shape[:knots] - shape[knots]) <= unit * m[part.column])
    if k > 1:
        total = total + cp.square(cp.sum(x[:, 0]))
    spent = problem.costs.weights @ w + problem.costs.missing @ m
    solved = cp.Problem(cp.Minimize(total + price * spent), held)
    solved.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return solved.value, w.value, m.value


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("share", [0.5, 0.05, 1e-3])
def test_the_optimum_is_that_of_a_reference_solver(rows, outcome, share):
    problem = joint(rows, outcome)
    price = share * problem.largest_price()
    found = problem.solve(price)
    value, w, m = reference(problem, price)
    assert found.value + price * found.v.sum() == pytest.approx(value, abs=1e-6)
    weights = problem.weights(found.v)
    spent = problem.costs.weights @ weights.columns + problem.costs.missing @ np.nan_to_num(weights.missing)
    assert spent == pytest.approx(problem.costs.weights @ w + problem.costs.missing @ m, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("share", [0.3, 1e-3])
def test_near_categories_stay_near_at_the_optimum(rows, outcome, share):
    problem = joint(rows, outcome, tables=NEAR)
    price = share * problem.largest_price()
    found = problem.solve(price)
    assert found.value + price * found.v.sum() == pytest.approx(reference(problem, price)[0], abs=1e-6)
    plain = joint(rows, outcome)
    assert reference(problem, 1e-3)[0] > reference(plain, 1e-3)[0] + 1e-4  # control: the shape costs something


def test_bounds_are_obeyed_and_optimal(rows):
    lower, upper = np.array([0.0, 0.05, 0.2, 0.1]), np.array([0.1, 0.2, 0.2, 1.0])  # the third is fixed
    problem = joint(rows, "two classes", lower, upper)
    price = 0.01
    found = problem.solve(price)
    weights = problem.weights(found.v).columns
    assert (weights >= lower - 1e-6).all()
    assert (weights <= upper + 1e-6).all()
    assert weights[2] == pytest.approx(0.2, abs=1e-5)
    assert found.value + price * found.v.sum() == pytest.approx(reference(problem, price)[0], abs=1e-5)


def test_nothing_is_worth_more_than_the_largest_price(rows):
    for outcome in OUTCOMES:
        problem = joint(rows, outcome)
        most = problem.largest_price()
        assert problem.solve(1.001 * most).v.sum() < 1e-4
    assert joint(rows, "regression").solve(0.5 * most).v.sum() > 1e-3  # control


def test_costs_are_those_of_all_pairs(rows):
    shares = np.random.default_rng(3).random(len(rows))
    shares /= shares.sum()
    costs = Costs.of(rows, shares, np.array([True, True, True, False]))
    pairs = shares[:, None] * shares[None]
    for i in range(4):
        gaps = np.abs(rows[:, None, i] - rows[None, :, i])
        expected = (pairs * (gaps > 0)).sum() if i == 3 else np.nansum(pairs * gaps)
        assert costs.weights[i] == pytest.approx(expected, rel=1e-12)
        if i == 3:
            codes = rows[:, i].astype(int)
            near = Costs.of(rows, shares, np.array([True, True, True, False]), NEAR).weights[i]
            assert near == pytest.approx((pairs * NEAR[i][codes][:, codes]).sum(), rel=1e-12)
            assert near < expected
        absent = np.isnan(rows[:, i])
        assert costs.missing[i] == pytest.approx((pairs * (absent[:, None] != absent[None])).sum(), abs=1e-12)


def test_the_path_is_monotone_and_convex(rows):
    """Of the training objective against the mean distance: slopes are the prices, which fall."""
    problem, found, optima = joint(rows, "two classes"), None, []
    for price in problem.largest_price() * np.geomspace(0.5, 1e-3, 12):
        found = problem.solve(price, found)
        optima.append((found.v.sum(), found.value, price))
    spent, value, price = np.array(optima).T
    assert (np.diff(spent) > 0).all()
    assert (np.diff(value) < 0).all()
    slopes = -np.diff(value) / np.diff(spent)
    assert (np.diff(slopes) < 1e-9).all()
    assert (slopes <= price[:-1] + 1e-7).all()
    assert (slopes >= price[1:] - 1e-7).all()


def test_no_column_has_a_more_expensive_point_than_another(rows):
    """Moving any weight by a little changes the objective by the price times the distance that it makes."""
    problem = joint(rows, "two classes")
    price = 0.05 * problem.largest_price()
    weights = problem.weights(problem.solve(price).v).columns
    for i in np.flatnonzero(weights > 1e-3):
        step = 1e-3 * weights[i]
        values = []
        for sign in (-1, 1):
            moved = weights.copy()
            moved[i] += sign * step
            held = replace(problem, bounds=WeightBounds(moved, moved))
            found = held.solve(price)
            blanks = problem.costs.missing @ np.nan_to_num(problem.weights(found.v).missing)  # they are not held
            values.append(found.value + price * blanks)
        assert (values[0] - values[1]) / (2 * step * problem.costs.weights[i]) == pytest.approx(price, rel=0.02)
