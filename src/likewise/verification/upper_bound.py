"""Upper bounds on the effect of columns and on ``TV - D``, by the method that fits the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from likewise._typing import FloatArray
from likewise._validation import counted
from likewise.base import ConstrainedEstimator
from likewise.exceptions import UnprovableError
from likewise.inspection.linear import is_linear
from likewise.inspection.preprocessing import unwrap
from likewise.inspection.tree_ensembles import looks_like_trees
from likewise.kernel.metric import BoundMetric
from likewise.verification.additive_bounds import (
    AdditiveModel,
    finite_problem,
    largest_change,
    largest_excess,
    largest_softmax,
    softmax_problem,
)
from likewise.verification.base import InputSpace, Limits, Proof
from likewise.verification.domain import NumericDomain
from likewise.verification.interaction_bounds import InteractionModel, prove_interactions
from likewise.verification.network_bounds import prove_network
from likewise.verification.network_model import NetworkModel
from likewise.verification.softmax_bounds import bound_softmax
from likewise.verification.tree_bounds import TreeBound, bound_trees, interval_bound
from likewise.verification.tree_model import TreeModel
from likewise.verification.tree_problem import Variables

_MOST_CLASSES = 6  # of a forest, as all sets of classes are bounded


def upper_bound(
    space: InputSpace,
    columns: Sequence[int],
    limits: Limits,
    starts: tuple[FloatArray, FloatArray],
) -> Proof:
    """The upper bound by whatever method fits the model."""
    try:
        kind = kind_of(space.model)
        if kind == "trees":
            return prove_trees(TreeModel.read(space), columns, limits, starts)
        if kind == "network":
            lowest = float(space.differences(*starts).max()) if len(starts[0]) else 0.0
            return prove_network(NetworkModel.read(space), columns, limits, lowest)
        return prove_sum(space, columns, limits)
    except UnprovableError as error:
        return Proof(None, str(error), [])


def kind_of(model: Any) -> str:
    """Which method bounds a model: "trees", "network" or "additive"."""
    if isinstance(model, ConstrainedEstimator):
        return "additive"
    last = unwrap(model)[1]
    if looks_like_trees(last):
        return "trees"
    if type(last).__name__ in ("MLPClassifier", "MLPRegressor"):
        return "network"
    return "additive"


def prove_sum(space: InputSpace, columns: Sequence[int], limits: Limits) -> Proof:
    """The bound of a sum of functions of single columns or, for a linear model behind products, of few columns."""
    try:
        model = AdditiveModel.read(space)
    except UnprovableError:
        if not is_linear(unwrap(space.model)[1]):
            raise
        return prove_interactions(InteractionModel.read(space), columns, limits)
    return prove_additive(model, columns, limits)


def prove_additive(model: AdditiveModel, columns: Sequence[int], limits: Limits) -> Proof:
    """The closed form and, if it is not attained and the domain is finite, a search over boxes."""
    space = model.space
    if model.curve is None:
        return _prove_softmax(model, columns, limits)
    proven, a, b = largest_change(model, columns)
    how = "closed form, as the score is a sum of functions of single columns"
    fine = bool((space.holds(a[None]) & space.holds(b[None])).all())
    if fine and proven - float(space.differences(a[None], b[None])[0]) <= limits.tolerance:
        return Proof(proven, how, [(a, b)])
    finite = finite_problem(model, columns)
    if finite is None:
        ignored = "; the rules of the domain were not used" if space.rules else ""
        return Proof(proven, how + ignored, [(a, b)])
    problem, values = finite
    result = bound_trees(
        problem,
        tolerance=limits.tolerance / 2,
        max_boxes=limits.max_boxes,
        max_seconds=limits.max_seconds,
        tell=limits.tell,
    )
    pair = [
        np.array([each[k] for each, k in zip(values, cells, strict=True)]) for cells in (result.cells_a, result.cells_b)
    ]
    how += f", and {result.n_boxes:,} boxes of the domain"
    # Outputs are rounded as well.
    return Proof(
        min(proven, max(0.0, result.proven) + 2.0**-48),
        how,
        [(a, b), (pair[0], pair[1])],
        result.n_boxes,
        stopped=result.stopped,
    )


def _prove_softmax(model: AdditiveModel, columns: Sequence[int], limits: Limits) -> Proof:
    """The closed form for any scores, and a search over the scores that the other columns can give."""
    proven, a, b = largest_softmax(model, columns)
    how = "closed form, as the scores are sums of functions of single columns"
    ignored = "; the rules of the domain were not used" if model.space.rules else ""
    problem = softmax_problem(model, columns)
    if problem is None:
        return Proof(proven, how + ignored, [(a, b)])
    exact = problem.by_enumeration()
    if exact is not None:
        return Proof(
            min(proven, exact), "all people of the domain were tried, by the parts of the scores" + ignored, []
        )
    found, n_boxes, stopped = bound_softmax(problem, limits)
    how += f", and {counted(n_boxes, 'box', 'boxes')} of their differences bounded"
    return Proof(min(proven, found), how + ignored, [(a, b)], n_boxes, stopped=stopped)


def prove_trees(
    model: TreeModel,
    columns: Sequence[int],
    limits: Limits,
    starts: tuple[FloatArray, FloatArray],
) -> Proof:
    """Bound the scalar problems that a multiclass link decomposes into, one by one."""
    ensemble, space = model.ensemble, model.space
    n_scores = len(ensemble.baseline)
    problems: list[tuple[FloatArray, str]]
    low, high = space.output_range or (0.0, 1.0)
    share = 1.0
    if ensemble.link == "logistic":
        problems = [(np.ones(1), "logistic")]
    elif n_scores == 1:
        problems, share = [(np.ones(1), "identity")], high - low
    elif ensemble.link == "identity":
        if n_scores > _MOST_CLASSES:
            raise UnprovableError(f"a forest of {n_scores} classes has too many sets of classes")
        # TV is the largest difference of the probabilities of a set of classes; exchanging a and b gives the others.
        sets = [each for size in range(1, n_scores // 2 + 1) for each in combinations(range(n_scores), size)]
        problems = [(np.isin(np.arange(n_scores), each).astype(np.float64), "identity") for each in sets]
    else:
        # The odds of any set of classes move by the largest difference of two logits at most.
        pairs = [(k, m) for k in range(n_scores) for m in range(n_scores) if k < m]
        problems = [(np.eye(n_scores)[k] - np.eye(n_scores)[m], "tanh") for k, m in pairs]
    variables = Variables.of(model.cells, columns)
    points = []
    if len(starts[0]):
        cells = [model.find(rows) for rows in starts]
        for first, second in (cells, cells[::-1]):
            points += [
                np.where(variables.side == 1, q[variables.column], p[variables.column])
                for p, q in zip(first, second, strict=True)
            ]

    def in_all(bound: float) -> float:
        # Outputs are rounded as well; those in single precision by more.
        proven = max(0.0, bound / share) + 8 * ensemble.unit * max(1.0, abs(bound / share))
        return min(1.0, proven) if ensemble.link != "identity" or hasattr(space.model, "classes_") else proven

    part, results = limits.shared(len(problems)), []
    try:
        for weights, link in problems:
            results.append(
                bound_trees(
                    model.problem(columns, weights, link),
                    starts=points,
                    tolerance=limits.tolerance * share / 2,
                    max_boxes=part.max_boxes,
                    max_seconds=part.max_seconds,
                    tell=lambda found, proven: limits.tell(found / share, proven / share),
                )
            )
    except UnprovableError as error:
        whole = max(interval_bound(model.problem(columns, weights, link)) for weights, link in problems)
        return Proof(in_all(whole), f"by the smallest and largest leaf of each tree, as {error}", [])
    proven = in_all(max(result.proven for result in results))
    worst = max(results, key=lambda result: result.found)
    pairs_found = [_people_of(model, result, columns) for result in results if np.isfinite(result.found)]
    n_boxes = sum(result.n_boxes for result in results)
    how = f"{counted(n_boxes, 'box', 'boxes')} of people bounded; trees that do not read the column cancel"
    return Proof(
        proven,
        how,
        pairs_found,
        n_boxes,
        tuple((n, found / share, bound / share) for n, found, bound in worst.history),
        any(result.stopped for result in results),
    )


def _people_of(model: TreeModel, result: TreeBound, columns: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """A witness pair in the cells that were found, as close as possible to a row of X."""
    space = model.space
    a, b = model.values(result.cells_a[None])[0], model.values(result.cells_b[None])[0]
    if not len(space.rows):
        return a, b
    sample = space.rows[:: max(1, len(space.rows) // 5000)]
    cells = model.find(sample)
    shared = np.setdiff1d(np.arange(len(a)), list(columns))
    alike = cells[:, shared] == result.cells_a[shared]
    nearest = int(alike.sum(axis=1).argmax())
    keep = shared[alike[nearest]]
    p, q = a.copy(), b.copy()
    p[keep] = q[keep] = sample[nearest, keep]
    if not (space.holds(p[None]) & space.holds(q[None])).all():
        p, q = a, b
    if not (space.keeps_rules(p[None]) & space.keeps_rules(q[None])).all():
        p, q = _within_rules(model, result, columns)
    return p, q


def _within_rules(model: TreeModel, result: TreeBound, columns: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """Two people in given cells who keep the rules, by linear programming over the numbers of the cells."""
    from scipy.optimize import linprog

    space = model.space
    variables = Variables.of(model.cells, columns)
    cells = np.where(variables.side == 1, result.cells_b[variables.column], result.cells_a[variables.column])
    low = np.array([model.cells[i].low[k] for i, k in zip(variables.column, cells, strict=True)])
    high = np.array([model.cells[i].high[k] for i, k in zip(variables.column, cells, strict=True)])
    fixed = np.isnan(low)
    matrix, bounds = [], []
    values = np.array([model.cells[i].values[k] for i, k in zip(variables.column, cells, strict=True)])
    for rule in space.rules:
        for side in (0, 1):
            row, left = np.zeros(len(cells)), rule.limit
            for i in rule.terms:
                v = variables.find(i, side)
                if fixed[v]:
                    left -= float(rule.added(i, values[v : v + 1])[0])
                else:
                    row[v] = np.diff(rule.added(i, np.array([0.0, 1.0])))[0]
            if not np.isnan(left):
                matrix.append(row)
                bounds.append(left)
    if matrix:
        solved = linprog(
            np.sum(matrix, axis=0),
            A_ub=np.array(matrix),
            b_ub=np.array(bounds),
            bounds=[(0, 0) if f else (lo, hi) for f, lo, hi in zip(fixed, low, high, strict=True)],
        )
        if solved.x is not None and solved.status == 0:
            values = np.where(fixed, values, np.clip(solved.x, low, high))
    for v, i in enumerate(variables.column):
        held = space.held[i]
        if not fixed[v] and isinstance(held, NumericDomain) and held.step is not None:
            place = int(np.clip(np.rint(values[v] / held.step), held.first, held.last))
            values[v] = min(max(float(held.at(place)), low[v]), high[v])
    a = np.array([values[variables.find(i, 0)] for i in range(len(space.names))])
    b = np.array([values[variables.find(i, 1)] for i in range(len(space.names))])
    return a, b


def prove_excess(space: InputSpace, weights: BoundMetric, limits: Limits) -> Proof:
    """The upper bound by whatever method fits the model and the metric."""
    try:
        encoder = weights.schema
        if not weights.has_parts:
            raise UnprovableError("the metric is a function, whose values are known only at given rows")
        if encoder.labels is not None and list(encoder.labels) != list(space.encoder.names):
            raise UnprovableError("the columns of the metric are not those of X, in this order")
        for column in space.encoder.columns:
            own = encoder.columns[list(space.encoder.names).index(column.name)]
            if getattr(own, "categories", None) not in (None, getattr(column, "categories", None)):
                raise UnprovableError(f"the metric orders {column.name!r} otherwise than the table does")
        n_numbers = max(1, int((weights.is_number & weights.matters).sum()))
        # ||z||_p >= n^(1/p - 1) ||z||_1 over n numbers.
        shrink = 1.0 if weights.p == 1 else n_numbers ** (-1.0 if np.isinf(weights.p) else 1 / weights.p - 1)
        shrink *= 1 - 2.0**-40

        def apart(i: int, a: FloatArray, b: FloatArray) -> FloatArray:
            """The least that two encoded values add to the distance."""
            if len(space.places[i]) > 1:  # two 0/1 columns differ
                each = [of_column(place, np.array([0.0]), np.array([1.0]))[0] for place in space.places[i]]
                return np.where(a == b, 0.0, sum(sorted(each)[:2]))
            return of_column(space.places[i][0], a, b)

        def of_column(place: int, a: FloatArray, b: FloatArray) -> FloatArray:
            scale = float(weights.scales[place])
            if not weights.is_number[place]:
                return np.where(a == b, 0.0, weights.nearest_categories(place))
            blank = float(np.nan_to_num(weights.missing[place]))
            one = np.isnan(a) != np.isnan(b)
            return np.where(one, blank, np.nan_to_num(shrink * scale * np.abs(a - b)))

        kind = kind_of(space.model)
        if kind == "additive":
            proven = largest_excess(AdditiveModel.read(space), apart)
            return Proof(proven, "Lagrange bound, as the score is a sum of functions of single columns", [])
        if kind != "trees":
            raise UnprovableError("the excess over a metric is not bounded for networks")
        model = TreeModel.read(space)
        if len(model.ensemble.baseline) > 1:
            raise UnprovableError("the excess over a metric is bounded for two classes and for regression only")
        is_number = [len(places) == 1 and bool(weights.is_number[places[0]]) for places in space.places]
        return _prove_tree_excess(model, apart, is_number, limits)
    except UnprovableError as error:
        return Proof(None, str(error), [])


def _prove_tree_excess(model: TreeModel, apart: Any, is_number: Any, limits: Limits) -> Proof:
    space, ensemble = model.space, model.ensemble
    everything = list(range(len(space.names)))
    low, high = space.output_range or (0.0, 1.0)
    share = 1.0 if ensemble.link == "logistic" else high - low
    distances: dict[int, FloatArray] = {}
    for i, cells in enumerate(model.cells):
        if cells.ordered and is_number[i]:
            # The nearest numbers of two cells; 0 within one.
            a = np.where(cells.low[:, None] > cells.high[None, :], cells.low[:, None], np.inf)
            below = np.where(np.isfinite(a), cells.high[None, :], np.nan)
            above = np.where(cells.high[:, None] < cells.low[None, :], cells.low[None, :], np.nan)
            nearest = np.where(
                ~np.isnan(below),
                apart(i, cells.low[:, None], below),
                np.where(~np.isnan(above), apart(i, cells.high[:, None], above), 0.0),
            )
            blank = np.isnan(cells.values)
            one = blank[:, None] != blank[None, :]
            if one.any():
                nearest = np.where(one, apart(i, np.array([0.0]), np.array([np.nan])), nearest)
            distances[i] = share * nearest
        else:
            each = np.arange(len(cells))
            different = each[:, None] != each[None, :]
            values = cells.values
            least = apart(i, values[:, None], values[None, :])
            if is_number[i]:  # ordered categories that get the same answers share a cell: the nearest of two cells
                codes = space.codes(i)
                within = (cells.answers[:, :, None] == model.tests[i].answers(codes)[:, None, :]).all(axis=0)
                least = np.array([[apart(i, codes[a][:, None], codes[b]).min() for b in within] for a in within])
            distances[i] = share * np.where(different, least, 0.0)
    link = "logistic" if ensemble.link == "logistic" else "identity"
    problem = replace(model.problem(everything, np.ones(1), link), distances=distances)
    result = bound_trees(
        problem,
        tolerance=limits.tolerance * share,
        max_boxes=limits.max_boxes,
        max_seconds=limits.max_seconds,
        tell=lambda found, proven: limits.tell(found / share, proven / share),
    )
    proven = max(0.0, result.proven / share) + 8 * ensemble.unit * max(1.0, abs(result.proven / share))
    pair = (model.values(result.cells_a[None])[0], model.values(result.cells_b[None])[0])
    how = f"{counted(result.n_boxes, 'box', 'boxes')} of pairs of people bounded"
    return Proof(proven, how, [pair], result.n_boxes)
