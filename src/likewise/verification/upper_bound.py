"""Upper bounds on the effect of columns and on ``TV - D``, by the method that fits the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from likewise._typing import FloatArray
from likewise._validation import counted
from likewise.ask import is_plain_function
from likewise.base import ConstrainedEstimator
from likewise.exceptions import UnprovableError
from likewise.inspection.additive_scores import is_boosted_steps, is_scorecard
from likewise.inspection.linear import is_linear
from likewise.inspection.preprocessing import unwrap
from likewise.inspection.tree_ensembles import looks_like_trees
from likewise.kernel.metric import BoundMetric
from likewise.kernel.proof import Proof, at_most, by_boxes, by_formula, noted, unproven
from likewise.verification.additive_bounds import (
    AdditiveModel,
    as_tables,
    largest_change,
    largest_excess,
    largest_softmax,
    softmax_problem,
)
from likewise.verification.base import InputSpace
from likewise.verification.domain import NumericDomain
from likewise.verification.interaction_bounds import InteractionModel, prove_interactions, search_corners
from likewise.verification.network_bounds import prove_network
from likewise.verification.network_model import NetworkModel
from likewise.verification.search import Limits
from likewise.verification.softmax_bounds import bound_softmax
from likewise.verification.tree_bounds import TreeBound, bound_trees, interval_bound
from likewise.verification.tree_model import TreeModel
from likewise.verification.tree_problem import Variables


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
            found = float(space.differences(*starts).max()) if len(starts[0]) else 0.0
            return prove_network(NetworkModel.read(space), columns, limits, found)
        return prove_sum(space, columns, limits)
    except UnprovableError as error:
        return unproven(str(error))


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
    last = unwrap(space.model)[1]
    if not (is_linear(last) or is_scorecard(last) or is_boosted_steps(last)):
        if is_plain_function("model", last, ("predict_proba", "predict")):
            raise UnprovableError("it is only asked, not read (a function, a server or an ONNX file)")
        raise UnprovableError(
            f"{type(last).__name__} is none of those that are read: linear and additive models, trees, ReLU networks"
        )
    try:
        model = AdditiveModel.read(space)
    except UnprovableError:
        if not is_linear(last):
            raise
        return prove_interactions(InteractionModel.read(space), columns, limits)
    return prove_additive(model, columns, limits)


def prove_additive(model: AdditiveModel, columns: Sequence[int], limits: Limits) -> Proof:
    """The closed form and, if it is not attained, a search: over scores for several classes, else over people."""
    space, claim, several = model.space, model.space.claim(columns), model.curve is None
    size, a, b = (largest_softmax if several else largest_change)(model, columns)
    how = f"closed form, as the {'scores are sums' if several else 'score is a sum'} of functions of single columns"
    pairs = space.possible([(a, b)])
    proof = by_formula(claim, size, how, pairs)
    if pairs and size - float(space.differences(a[None], b[None])[0]) <= limits.gap:
        return proof
    tables = as_tables(model, columns) if space.rules or not several else None
    if several:
        limits = limits.half if tables else limits
        proof = _prove_softmax(model, columns, limits, proof)
    try:
        searched, more = search_corners(tables, columns, limits) if tables else (None, [])
    except UnprovableError:  # too many combinations of values
        searched = None
    if searched is None:
        return noted(proof, "; the rules of the domain were not used") if space.rules else proof
    how += f", and {counted(searched.n_boxes, 'box', 'boxes')} of the domain"
    return by_boxes(claim, at_most(searched, proof.proven), how, [*pairs, *more])


def _prove_softmax(model: AdditiveModel, columns: Sequence[int], limits: Limits, closed: Proof) -> Proof:
    """The closed form or, if closer: all people of the domain, or a search over the scores of the other columns."""
    claim, problem = model.space.claim(columns), softmax_problem(model, columns)
    exact = None if problem is None else problem.by_enumeration()
    if problem is None or closed.proven is None:
        return closed
    if exact is not None:
        how = "all people of the domain were tried, by the parts of the scores"
        return by_formula(claim, min(closed.proven, exact), how)
    searched = bound_softmax(problem, limits)
    how = f"{closed.how}, and {counted(searched.n_boxes, 'box', 'boxes')} of their differences bounded"
    return by_boxes(claim, at_most(searched, closed.proven), how, closed.pairs)


def prove_trees(
    model: TreeModel,
    columns: Sequence[int],
    limits: Limits,
    starts: tuple[FloatArray, FloatArray],
) -> Proof:
    """A search over boxes of cells, from the cells of some pairs of people."""
    problem = model.problem(columns)
    claim = model.space.claim(columns, model.ensemble.unit)
    variables, points = Variables.of(model.cells, columns), []
    if len(starts[0]):
        cells = [model.find(rows) for rows in starts]
        for first, second in (cells, cells[::-1]):
            points += [variables.joined(p, q) for p, q in zip(first, second, strict=True)]
    try:
        result = bound_trees(problem, limits, points)
    except UnprovableError as error:
        return by_formula(claim, interval_bound(problem), f"by the smallest and largest leaf of each tree, as {error}")
    searched = result.searched
    pairs = model.space.possible([_people_of(model, result, columns)] if np.isfinite(searched.found) else [])
    n_boxes = counted(searched.n_boxes, "box", "boxes")
    return by_boxes(claim, searched, f"{n_boxes} of people bounded; trees that do not read the column cancel", pairs)


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
    cells = variables.joined(result.cells_a, result.cells_b)
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
    a, b = variables.split(values)
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
        if weights.special:
            raise UnprovableError("the excess over a metric is not bounded where it has special codes")
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

        claim, kind = space.claim(range(len(space.names))), kind_of(space.model)
        if kind == "additive":
            size = largest_excess(AdditiveModel.read(space), apart)
            return by_formula(claim, size, "Lagrange bound, as the score is a sum of functions of single columns")
        if kind != "trees":
            raise UnprovableError("the excess over a metric is not bounded for networks")
        model = TreeModel.read(space)
        is_number = [len(places) == 1 and bool(weights.is_number[places[0]]) for places in space.places]
        return _prove_tree_excess(model, apart, is_number, limits)
    except UnprovableError as error:
        return unproven(str(error))


def _prove_tree_excess(model: TreeModel, apart: Any, is_number: Any, limits: Limits) -> Proof:
    space = model.space
    everything = list(range(len(space.names)))
    distances: dict[int, FloatArray] = {}
    for i, cells in enumerate(model.cells):
        if cells.ordered and is_number[i]:
            # Between the nearest numbers of two cells, which depends on their difference alone; NaN is a blank.
            blank = np.isnan(cells.values)
            gaps = np.maximum(cells.low[:, None] - cells.high, cells.low - cells.high[:, None])
            gaps = np.where(blank, np.nan, np.maximum(np.nan_to_num(gaps), 0.0))
            distances[i] = apart(i, np.where(blank, np.nan, 0.0)[:, None], gaps)
        else:
            each = np.arange(len(cells))
            different = each[:, None] != each[None, :]
            values = cells.values
            least = apart(i, values[:, None], values[None, :])
            if is_number[i]:  # ordered categories that get the same answers share a cell: the nearest of two cells
                codes = space.codes(i)
                within = (cells.answers[:, :, None] == model.tests[i].answers(codes)[:, None, :]).all(axis=0)
                least = np.array([[apart(i, codes[a][:, None], codes[b]).min() for b in within] for a in within])
            distances[i] = np.where(different, least, 0.0)
    result = bound_trees(replace(model.problem(everything), distances=distances), limits)
    pair = (model.values(result.cells_a[None])[0], model.values(result.cells_b[None])[0])
    how = f"{counted(result.searched.n_boxes, 'box', 'boxes')} of pairs of people bounded"
    return by_boxes(space.claim(everything, model.ensemble.unit), result.searched, how, space.possible([pair]))
