"""How much columns can matter: for the people of a table, for the worst pair of a domain, and at most."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from likewise._html import grid, panel, words
from likewise._parallel import single_threaded_blas
from likewise._typing import FloatArray
from likewise._validation import check_count
from likewise.auditing.additive_bounds import AdditiveModel
from likewise.auditing.domains import Domain, NumericDomain
from likewise.auditing.exchange import Exchange, PairSearch, in_domain, keeps_rules, mean_interval
from likewise.auditing.people_space import PeopleSpace
from likewise.auditing.tree_bounds import TreeBound, Variables, bound_trees
from likewise.auditing.tree_effect import TreeModel
from likewise.base import ConstrainedEstimator, seed_from
from likewise.exceptions import InvalidInputError, UnprovableError
from likewise.inspection.preprocessing import unwrap
from likewise.metrics.base import Metric, check_metric
from likewise.metrics.encoders import People

_STARTS = 12  # people from whom a search starts
_MOST_CLASSES = 6  # of a forest: all sets of classes are bounded
_CLOSE = 1e-12


@dataclass(frozen=True, eq=False)
class Proof:
    """An upper bound, and the pair that came closest to it.

    Attributes
    ----------
    proven : float or None
        None if there is no proof.
    how : str
        How it was proven, or why it was not.
    pairs : list of (ndarray, ndarray)
        Coded people a and b, to be tried.
    n_boxes : int
    history : list of (int, float, float)
        Boxes, found and proven as the search went on.
    """

    proven: float | None
    how: str
    pairs: list[tuple[FloatArray, FloatArray]]
    n_boxes: int = 0
    history: tuple[tuple[int, float, float], ...] = ()


@dataclass(frozen=True, eq=False)
class Excess:
    """The smallest e with ``TV <= D + e`` for all people of a domain, between two numbers.

    Attributes
    ----------
    found : float
        ``difference - distance`` of `pair`; at least 0, as everybody is at distance 0 from themselves.
    pair : DataFrame of two rows
    difference, distance : float
        Of the pair.
    proven : float or None
        ``TV <= D + proven`` for all people of the domain; None if there is no proof.
    how : str
    """

    found: float
    pair: pd.DataFrame
    difference: float
    distance: float
    proven: float | None
    how: str


@dataclass(frozen=True, eq=False, repr=False)
class Effect:
    """How much columns can matter.

    Differences are total variations of class probabilities, or absolute differences of numbers (as shares of the output
    range, if there is one).

    Attributes
    ----------
    columns : list
        The columns that are exchanged.
    on_people : DataFrame
        One row per person of X: ``score``, the ``lowest`` and the ``highest`` score with other values in the columns,
        what these values are (``lowest if``, ``highest if``), and ``effect``, the largest difference.
    mean, mean_interval : float and tuple of float
        Mean of ``effect``, and its 95% confidence interval for the population that X was drawn from.
    directions : DataFrame
        For every two values: which is ``favoured`` ``over`` which on average, by how much (``mean``), for what ``share``
        of people, both with 95% confidence intervals, and by how much at most.
    groups : DataFrame
        Mean and largest effect for people by their own value.
    found : float
        The largest difference that was found between two people of the domain who differ in the columns alone.
    pair : DataFrame of two rows
        These two people, with their scores.
    proven : float or None
        No two such people of the domain differ by more. None if there is no proof.
    how : str
        How it was proven, or why it was not.
    tolerance : float
    domain : Domain
    excess : Excess or None
        With a metric, the smallest e with ``TV <= D + e`` for all people of the domain.
    seconds : float
        Processor time.
    n_boxes : int
        Boxes of people that were bounded.
    history : tuple of (int, float, float)
        Boxes, found and proven as the search went on.
    """

    columns: list[Any]
    on_people: pd.DataFrame
    mean: float
    mean_interval: tuple[float, float]
    directions: pd.DataFrame
    groups: pd.DataFrame
    found: float
    pair: pd.DataFrame
    proven: float | None
    how: str
    tolerance: float
    domain: Domain
    excess: Excess | None
    seconds: float
    n_boxes: int
    history: tuple[tuple[int, float, float], ...]

    @property
    def meets(self) -> bool:
        """Whether found and proven are within the tolerance of each other: the worst case is then known."""
        return self.proven is not None and self.proven - self.found <= self.tolerance

    @property
    def headline(self) -> str:
        """What was found and proven, in a line."""
        names = " and ".join(map(str, self.columns))
        largest = float(self.on_people["effect"].max())
        if self.meets:
            limit = "and by no more for anybody in the domain"
        elif self.proven is None:
            limit = "and no upper bound is proven"
        else:
            limit = f"and by no more than {self.proven:.4g} for anybody in the domain"
        return (
            f"exchanging {names} alone changes outputs by up to {largest:.4g} for these {len(self.on_people):,} people, "
            f"by {self.found:.4g} for the worst pair found, {limit}"
        )

    @property
    def coverage(self) -> str:
        """What was compared, what is proven and how, and what is not covered."""
        text = self.headline[0].upper() + self.headline[1:] + ". "
        text += f"Proof: {self.how}. " if self.proven is not None else f"No proof: {self.how}. "
        text += (
            "The domain is what was learned from these people or given, see `domain`: nothing is said of people outside "
            "it. Two people who differ in the column alone is what is compared: other columns may stand in for it."
        )
        return text

    def __repr__(self) -> str:
        return f"<Effect: {self.headline}>"

    def _repr_html_(self) -> str:
        rows = [[str(name), *map(str, self.pair[name].tolist())] for name in self.pair]
        text = self.headline[0].upper() + self.headline[1:]
        return panel(text, grid(["column", "one", "the other"], rows, left=3), words(self.coverage, quiet=True))


def effect(
    model: Any,
    X: Any,
    column: Any,
    metric: Metric | None = None,
    *,
    domain: Domain | None = None,
    output_range: tuple[float, float] | None = None,
    max_seconds: float | None = 60.0,
    max_boxes: int | None = None,
    tolerance: float = 1e-4,
    n_queries: int = 100_000,
    random_state: Any = 0,
) -> Effect:
    """How much a column can matter: for given people, for the worst pair there can be, and at most.

    Three answers to one question, from evidence to proof: what exchanging the column does to the people of `X`; the
    worst pair of the domain, two people who differ in the column alone; and an upper bound for all such pairs.

    Covers / does not cover
    -----------------------
    The bound holds for all people of the domain, seen or not, and for the model as it computes, rounding included. It
    is in closed form for linear and additive models (this package's scorecards, EBM without interactions); by a search
    over boxes of people for trees, forests and boosting of scikit-learn, XGBoost, LightGBM and CatBoost; by bounds of
    the difference of two copies for ReLU networks. Other models have no bound, only the worst pair found. People
    outside the domain, and columns that stand in for this one, are not covered.

    Parameters
    ----------
    model : object with predict_proba or predict, or callable
    X : table or array of shape (n_samples, n_features)
        People with the columns that the model takes.
    column : column name, or list of them
        Two people may differ in these alone. The columns of an array are called ``"feature 0"`` and so on.
    metric : Metric, optional
        Also find the smallest e with ``TV <= D + e`` for all people of the domain, see ``Effect.excess``.
    domain : Domain, optional
        What each column can hold; learned from `X` if it is not given.
    output_range : tuple of float, optional
        Limits ``(a, b)`` of predicted numbers. Differences are then shares of ``b - a``.
    max_seconds : float or None, default=60
        Processor time for the proof, where it takes a search. None for no limit.
    max_boxes : int, optional
        Boxes to bound at most. With a limit on boxes and none on time the result is the same on every machine.
    tolerance : float, default=1e-4
        The search ends when found and proven are this close: 0.01 percentage points.
    n_queries : int, default=100_000
        Pairs that a search for the worst one may ask the model about, where nothing better is known.
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    Effect

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> people = pd.DataFrame({"age": [20, 30, 40, 50], "sex": [0, 1, 0, 1]})
    >>> model = DecisionTreeClassifier().fit(people, [0, 0, 0, 1])
    >>> found = effect(model, people, "sex")
    >>> found.on_people["effect"].tolist(), found.found, found.proven <= 1 + 1e-9, found.meets
    ([0.0, 0.0, 0.0, 0.0], 0.0, True, True)
    """
    begun = time.process_time()
    if metric is not None:
        check_metric(metric)
    if not 0 < tolerance < 1:
        raise InvalidInputError(f"tolerance must be between 0 and 1; got {tolerance!r}.")
    n_queries = check_count("n_queries", n_queries)
    names = list(column) if isinstance(column, (list, tuple)) else [column]
    rng = np.random.default_rng(seed_from(random_state))
    limits = _Limits(max_seconds, None if max_boxes is None else check_count("max_boxes", max_boxes), tolerance)
    with single_threaded_blas():
        space = PeopleSpace.of(model, X, metric, domain, output_range)
        columns = [space.position(name) for name in names]
        exchange = Exchange.of(space, columns)
        unit = 1.0 if exchange.probable or space.output_range is not None else float(np.ptp(exchange.outputs)) or 1.0
        a, b, effects = exchange.pairs()
        inside = in_domain(space, a) & in_domain(space, b)
        order = np.argsort(-np.where(inside, effects, -np.inf), kind="stable")[:_STARTS]
        order = order[inside[order]]
        proof = _prove(space, columns, limits, (a[order], b[order]), unit)
        found, first, second = _worst(space, columns, proof, (a[order], b[order]), n_queries, rng, limits, unit)
        proven, how = proof.proven, proof.how
        if proven is not None and found > proven:
            # The model contradicts what was read off it: nothing is proven.
            proven, how = None, "the model's own answers exceed what follows from its parts; please report this"
        excess = None if metric is None else _excess(space, metric, limits, n_queries, rng, unit)
    sizes = exchange.effects
    return Effect(
        columns=names,
        on_people=exchange.table(),
        mean=float(sizes.mean()),
        mean_interval=mean_interval(sizes),
        directions=exchange.directions(),
        groups=exchange.groups(),
        found=found,
        pair=_shown(space, first, second, probable=exchange.probable),
        proven=proven,
        how=how,
        tolerance=tolerance * unit,
        domain=space.domain,
        excess=excess,
        seconds=time.process_time() - begun,
        n_boxes=proof.n_boxes,
        history=proof.history,
    )


@dataclass(frozen=True)
class _Limits:
    max_seconds: float | None
    max_boxes: int | None
    tolerance: float


def _shown(space: PeopleSpace, a: FloatArray, b: FloatArray, *, probable: bool) -> pd.DataFrame:
    """Two coded people with their scores."""
    outputs = space.outputs(np.stack([a, b]))
    scores = space.labels(probable=probable).pairs(outputs[:1], outputs[1:])
    table = space.people(np.stack([a, b]))
    table["score"] = [float(scores["score_a"].iloc[0]), float(scores["score_b"].iloc[0])]
    return table


def _difference(space: PeopleSpace, a: FloatArray, b: FloatArray) -> FloatArray:
    outputs = space.outputs(np.concatenate([a, b]))
    return np.asarray(np.abs(outputs[: len(a)] - outputs[len(a) :]).sum(axis=1))


def _worst(
    space: PeopleSpace,
    columns: Sequence[int],
    proof: Proof,
    starts: tuple[FloatArray, FloatArray],
    n_queries: int,
    rng: np.random.Generator,
    limits: _Limits,
    unit: float,
) -> tuple[float, FloatArray, FloatArray]:
    """The worst pair: by the proof if it has one that reaches the bound, and by search otherwise."""
    a, b = (np.concatenate([part, *(pair[i : i + 1] for pair in map(np.stack, proof.pairs))]) for i, part in enumerate(starts))
    if len(a):
        fine = in_domain(space, a) & in_domain(space, b)
        a, b = a[fine], b[fine]
    best, first, second = -1.0, np.empty(0), np.empty(0)
    if len(a):
        values = _difference(space, a, b)
        i = int(values.argmax())
        best, first, second = float(values[i]), a[i], b[i]
    if proof.proven is None or proof.proven - best > limits.tolerance * unit:
        more_a, more_b = _random_pairs(space, columns, rng, 4 * _STARTS)
        a = more_a if not len(a) else np.concatenate([a, more_a])
        b = more_b if not len(b) else np.concatenate([b, more_b])
        search = PairSearch(space, list(columns), lambda p, q: _difference(space, p, q), n_queries, rng, {})
        value, p, q = search.run(a, b)
        if value > best:
            best, first, second = value, p, q
    if not len(first):
        raise InvalidInputError("domain must hold somebody; no person of it was found. Check its ranges and rules.")
    return best, first, second


def _random_pairs(
    space: PeopleSpace, columns: Sequence[int], rng: np.random.Generator, n: int
) -> tuple[FloatArray, FloatArray]:
    """Pairs put together from the values of several people, different in some columns."""
    a = np.column_stack([space.rows[rng.integers(len(space.rows), size=n), i] for i in range(space.rows.shape[1])])
    b = a.copy()
    for column in columns:
        b[:, column] = space.rows[rng.integers(len(space.rows), size=n), column]
    fine = in_domain(space, a) & in_domain(space, b)
    return a[fine], b[fine]


# -- proofs ----------------------------------------------------------------------------------------------------------


def _prove(
    space: PeopleSpace,
    columns: Sequence[int],
    limits: _Limits,
    starts: tuple[FloatArray, FloatArray],
    unit: float,
) -> Proof:
    """The upper bound by whatever method fits the model."""
    try:
        kind = kind_of(space.model)
        if kind == "trees":
            return prove_trees(TreeModel.read(space), columns, limits, starts, unit)
        if kind == "network":
            from likewise.auditing.network_bounds import NetworkModel, prove_network

            return prove_network(NetworkModel.read(space), columns, limits, starts)
        model = AdditiveModel.read(space)
        proven, a, b = model.largest(columns)
        how = "closed form, as the score is a sum of functions of single columns"
        if space.domain.rules:
            how += "; the rules of the domain were not used, so that the bound may be too large"
        return Proof(proven, how, [(a, b)])
    except UnprovableError as error:
        return Proof(None, str(error), [])


def kind_of(model: Any) -> str:
    """Which method bounds a model: "trees", "network" or "additive"."""
    if isinstance(model, ConstrainedEstimator):
        return "additive"
    last = unwrap(model)[1]
    name, package = type(last).__name__, type(last).__module__.partition(".")[0]
    if package in ("xgboost", "lightgbm", "catboost") or any(
        part in name for part in ("DecisionTree", "ExtraTree", "RandomForest", "GradientBoosting")
    ):
        return "trees"
    if name in ("MLPClassifier", "MLPRegressor"):
        return "network"
    return "additive"


def prove_trees(
    model: TreeModel,
    columns: Sequence[int],
    limits: _Limits,
    starts: tuple[FloatArray, FloatArray],
    unit: float,
) -> Proof:
    """Bound the problems into which the links of several classes fall apart, one after the other."""
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
    results: list[TreeBound] = []
    for i, (weights, link) in enumerate(problems):
        left = None if limits.max_seconds is None else limits.max_seconds / len(problems)
        boxes = None if limits.max_boxes is None else max(1, limits.max_boxes // len(problems))
        room = limits.tolerance * unit * share / 2
        results.append(
            bound_trees(
                model.problem(columns, weights, link), starts=points, tolerance=room, max_boxes=boxes, max_seconds=left
            )
        )
    proven = max(result.proven for result in results) / share
    # Outputs are rounded as well; those in single precision by more.
    proven = max(0.0, proven) + 8 * ensemble.unit * max(1.0, abs(proven))
    if ensemble.link != "identity" or hasattr(space.model, "classes_"):
        proven = min(1.0, proven)
    worst = max(results, key=lambda result: result.found)
    pairs_found = [_people_of(model, result, columns) for result in results if np.isfinite(result.found)]
    how = (
        f"{sum(result.n_boxes for result in results):,} boxes of people were bounded, over which trees that do not read "
        "the column cancel"
    )
    return Proof(
        proven,
        how,
        pairs_found,
        sum(result.n_boxes for result in results),
        tuple((n, found / share, bound / share) for n, found, bound in worst.history),
    )


def _people_of(model: TreeModel, result: TreeBound, columns: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """Two people in the cells that were found, as like as can be to somebody who is there."""
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
    if not (in_domain(space, p[None]) & in_domain(space, q[None])).all():
        p, q = a, b
    if not (keeps_rules(space, p[None]) & keeps_rules(space, q[None])).all():
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
    for rule in space.domain.rules:
        for side in (0, 1):
            row = np.zeros(len(cells))
            for name, coefficient in rule.coefficients.items():
                row[variables.find(space.names.index(name), side)] = coefficient
            if not fixed[row != 0].any():
                matrix.append(row)
                bounds.append(rule.bound)
    values = np.array([model.cells[i].values[k] for i, k in zip(variables.column, cells, strict=True)])
    if matrix:
        solved = linprog(
            np.sum(matrix, axis=0),
            A_ub=np.array(matrix),
            b_ub=np.array(bounds),
            bounds=[(0, 0) if f else (lo, hi) for f, lo, hi in zip(fixed, low, high, strict=True)],
        )
        if solved.status == 0:
            values = np.where(fixed, values, np.clip(solved.x, low, high))
    for v, i in enumerate(variables.column):
        held = space.domain.columns[space.names[i]]
        if not fixed[v] and isinstance(held, NumericDomain) and held.step is not None:
            place = int(np.clip(np.rint(values[v] / held.step), held.first, held.last))
            values[v] = min(max(float(held.at(place)), low[v]), high[v])
    a = np.array([values[variables.find(i, 0)] for i in range(len(space.names))])
    b = np.array([values[variables.find(i, 1)] for i in range(len(space.names))])
    return a, b


# -- with a metric ---------------------------------------------------------------------------------------------------


def _excess(
    space: PeopleSpace, metric: Metric, limits: _Limits, n_queries: int, rng: np.random.Generator, unit: float
) -> Excess:
    """The smallest e with ``TV <= D + e`` for all people of the domain."""
    everything = list(range(len(space.names)))
    encoder = metric.encoder(space.table)

    def distance(a: FloatArray, b: FloatArray) -> FloatArray:
        coded = [encoder.encode(space.encoder.decode(rows)) for rows in (a, b)]
        tables = [space.encoder.decode(rows) for rows in (a, b)]
        people = [People(rows, encoder, table) for rows, table in zip(coded, tables, strict=True)]
        return metric.between(*people)

    def objective(a: FloatArray, b: FloatArray) -> FloatArray:
        return _difference(space, a, b) - distance(a, b)

    proof = _prove_excess(space, metric, limits, unit)
    a, b = _random_pairs(space, everything, rng, 4 * _STARTS)
    for p, q in proof.pairs:
        if (in_domain(space, p[None]) & in_domain(space, q[None])).all():
            a, b = np.vstack([p, a]), np.vstack([q, b])
    value, p, q = PairSearch(space, everything, objective, n_queries, rng, {}).run(a, b)
    if not value > 0:
        inside = np.flatnonzero(in_domain(space, space.rows))
        p = q = space.rows[inside[0] if len(inside) else 0]
    found = float(objective(p[None], q[None])[0])
    proven, how = proof.proven, proof.how
    if proven is not None and found > proven:
        proven, how = None, "the model's own answers exceed what follows from its parts; please report this"
    shown = _shown(space, p, q, probable=hasattr(space.model, "predict_proba"))
    gap, away = float(_difference(space, p[None], q[None])[0]), float(distance(p[None], q[None])[0])
    return Excess(max(0.0, found), shown, gap, away, proven, how)


def _prove_excess(space: PeopleSpace, metric: Metric, limits: _Limits, unit: float) -> Proof:
    try:
        if not metric.has_weights:
            raise UnprovableError("the metric is a function, of which nothing is known between people")
        encoder = metric.encoder(space.table)
        if list(encoder.names) != space.names:
            raise UnprovableError("the model takes other columns than the metric has")
        weights = metric.weights_of(encoder)
        n_numbers = max(1, int((weights.is_number & weights.matters).sum()))
        # ||z||_p >= n^(1/p - 1) ||z||_1 over n numbers.
        shrink = 1.0 if weights.p == 1 else n_numbers ** (-1.0 if np.isinf(weights.p) else 1 / weights.p - 1)
        shrink *= 1 - 2.0**-40

        def apart(i: int, a: FloatArray, b: FloatArray) -> FloatArray:
            """The least that two coded values add to the distance."""
            scale = float(weights.scales[i])
            if not weights.is_number[i]:
                return np.where(a == b, 0.0, scale)
            blank = float(np.nan_to_num(weights.missing[i]))
            one = np.isnan(a) != np.isnan(b)
            return np.where(one, blank, np.nan_to_num(shrink * scale * np.abs(a - b)))

        kind = kind_of(space.model)
        if kind == "additive":
            proven = AdditiveModel.read(space).largest_excess(apart)
            return Proof(proven, "Lagrange bound, as the score is a sum of functions of single columns", [])
        if kind != "trees":
            raise UnprovableError("the excess over a metric is not bounded for networks")
        model = TreeModel.read(space)
        if len(model.ensemble.baseline) > 1:
            raise UnprovableError("the excess over a metric is bounded for two classes and for regression only")
        return _prove_tree_excess(model, apart, weights.is_number, limits, unit)
    except UnprovableError as error:
        return Proof(None, str(error), [])


def _prove_tree_excess(model: TreeModel, apart: Any, is_number: Any, limits: _Limits, unit: float) -> Proof:
    from dataclasses import replace

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
            distances[i] = share * np.where(different, apart(i, values[:, None], values[None, :]), 0.0)
    link = "logistic" if ensemble.link == "logistic" else "identity"
    problem = replace(model.problem(everything, np.ones(1), link), distances=distances)
    result = bound_trees(
        problem,
        tolerance=limits.tolerance * unit * share,
        max_boxes=limits.max_boxes,
        max_seconds=limits.max_seconds,
    )
    proven = max(0.0, result.proven / share) + 8 * ensemble.unit * max(1.0, abs(result.proven / share))
    pair = (model.values(result.cells_a[None])[0], model.values(result.cells_b[None])[0])
    return Proof(proven, f"{result.n_boxes:,} boxes of pairs of people were bounded", [pair], result.n_boxes)
