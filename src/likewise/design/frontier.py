"""The least loss at each mean distance: a metric and its scorecard, designed together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import expit, softmax
from sklearn.utils.multiclass import type_of_target

from likewise._fit_validation import check_outcomes, check_sample_weight
from likewise._frozen import Frozen
from likewise._links import LINKS
from likewise._parallel import run_in_threads, single_threaded_blas
from likewise._progress import progress_bar
from likewise._typing import FloatArray, IntArray
from likewise._validation import BOOL, LIMITS, NONE, THREADS, check_count, check_names, checking, one_of, short_repr
from likewise.additive.binning import bin_columns, knots_for
from likewise.additive.design_matrix import Layout
from likewise.additive.estimators import AdditiveClassifier, AdditiveRegressor
from likewise.additive.fit import effective_n_samples
from likewise.additive.penalties import choose_penalties
from likewise.additive.solver import Objective
from likewise.design.bounds import read_bounds
from likewise.design.joint import Costs, JointProblem, Solution, WeightBounds, Weights
from likewise.exceptions import InvalidInputError
from likewise.guarantees.guarantee import VacuousGuaranteeWarning, warn_vacuous
from likewise.inspection.baselines import Task
from likewise.metrics.base import Metric
from likewise.metrics.encoders import People
from likewise.metrics.table import BLANKS_ONLY, TableMetric
from likewise.metrics.weighted_lp import WeightedLp
from likewise.pairs.points import row_hashes
from likewise.reveal.empirical import read_people
from likewise.reveal.linear import least_missing_weight

_FIRST, _LAST = 0.6, 3e-5  # of the price from which on nothing is worth its distance
_MOST_VARIABLES = 1000  # of one quadratic program
_KNOTS_EACH, _FEWEST_KNOTS = 8, 16  # for each variable that the data determine, and in a column
_UNSEEN = 1e-3  # a weight that makes less distance than this between any two people is 0
_TOLERANCE = 1e-9  # of the objective of everybody
_HELD_OUT_TOLERANCE = 1e-5  # of the mean loss, far below its standard error


@dataclass(frozen=True, eq=False, repr=False)
class FrontierPoint(Frozen):
    """A metric, the scorecard within it, and what they are worth.

    Attributes
    ----------
    metric : TableMetric or WeightedLp
    mean_distance : float
        Of two people drawn at random.
    loss : float
        Of people held out: Brier score, or squared error.
    standard_error : float
        Of the loss.
    training_objective : float
        Loss that is minimised (log loss, or squared error in units of the range) and roughness, on everybody.
    price : float
        Gain in the training objective per unit of mean distance, equal for all weights that nothing holds.
    """

    metric: Metric
    mean_distance: float
    loss: float
    standard_error: float
    training_objective: float
    price: float
    _fit: Callable[[Metric], Any] = field(repr=False)

    @cached_property
    def card(self) -> Any:
        """`AdditiveClassifier` or `AdditiveRegressor` within `metric`, fitted to everybody when first asked for."""
        return self._fit(self.metric)

    def __repr__(self) -> str:
        return f"<FrontierPoint: mean distance {self.mean_distance:.3g}, loss {self.loss:.4g}>"


@dataclass(frozen=True, eq=False, repr=False)
class MetricFrontier(Frozen):
    """Metrics from strict to loose, each with the best scorecard within it.

    The guarantee of each card holds for its metric. Nothing here says which metric is right: a metric chosen because a
    model does well under it is a description of that model until people have agreed to it.

    Attributes
    ----------
    points : tuple of FrontierPoint
        The strictest first.
    references : dict from title to Reference
        A constant, the linear model's own metric, and boosting without a guarantee.
    task : {"classification", "regression"}
    protected : tuple
        Columns with the weight 0 in every metric.
    n_people, n_folds : int
    penalties : dict
        Of the shapes, by column.
    """

    points: tuple[FrontierPoint, ...]
    references: dict[str, Reference]
    task: Task
    protected: tuple[Any, ...]
    n_people: int
    n_folds: int
    penalties: dict[Any, float]

    @property
    def loss_name(self) -> str:
        """What `loss` is."""
        return "Brier score" if self.task == "classification" else "squared error"

    @property
    def table(self) -> pd.DataFrame:
        """One row per point."""
        names = ["mean_distance", "loss", "standard_error", "training_objective", "price"]
        return pd.DataFrame([[getattr(point, name) for name in names] for point in self.points], columns=names)

    @property
    def weights(self) -> pd.DataFrame:
        """Weights of all columns, one row per point; those of blanks are called ``missing`` and the column."""
        rows = []
        for point in self.points:
            metric: Any = point.metric
            if isinstance(metric, TableMetric):
                blanks = {f"missing {name}": weight for name, weight in metric.missing.items()}
                rows.append({**metric.numeric, **metric.categorical, **blanks})
            else:
                rows.append(dict(zip(self._names, metric.weights.tolist(), strict=True)))
        return pd.DataFrame(rows, index=[point.mean_distance for point in self.points]).rename_axis("mean distance")

    def best(self) -> FrontierPoint:
        """The strictest point whose loss is within one standard error of the smallest.

        With many people the standard error is small, and this point may be so loose that its guarantee allows any
        difference between most people. A `VacuousGuaranteeWarning` says so.
        """
        least = min(self.points, key=lambda point: point.loss)
        best = next(point for point in self.points if point.loss <= least.loss + least.standard_error)
        if best.mean_distance >= 1:
            problem = (
                f"The metric that is as good as the best has a mean distance of {best.mean_distance:.3g}; from a "
                "distance of 1 on, a guarantee allows any difference"
            )
            warn_vacuous(
                f"{problem}. Choose a stricter point: at(mean_distance=0.5).", f"{problem}. Give --mean-distance 0.5."
            )
        return best

    def at(self, *, mean_distance: float | None = None, loss: float | None = None) -> FrontierPoint:
        """The point with a given mean distance, or the strictest one with at most a given loss.

        Between two points, weights are interpolated, and the card is fitted within them. The average of the two cards
        is within that metric as well, so on the training people the card is at least as good as the line between the
        points; its `loss` is that of the line.

        Parameters
        ----------
        mean_distance : float, optional
        loss : float, optional
        """
        if (mean_distance is None) == (loss is None):
            raise InvalidInputError("at must be given mean_distance or loss, one of the two.")
        if loss is not None:
            good = [point for point in self.points if point.loss <= loss]
            if not good:
                least = min(point.loss for point in self.points)
                raise InvalidInputError(
                    f"loss must be at least {least:.4g}, the smallest on the frontier; got {loss:g}."
                )
            return good[0]
        assert mean_distance is not None
        first, last = self.points[0].mean_distance, self.points[-1].mean_distance
        if not first <= mean_distance <= last:
            raise InvalidInputError(
                f"mean_distance must be between {first:.4g} and {last:.4g}, the ends of the frontier; got "
                f"{mean_distance:g}."
            )
        after = next(k for k, point in enumerate(self.points) if point.mean_distance >= mean_distance)
        high = self.points[after]
        if high.mean_distance == mean_distance:
            return high
        low = self.points[after - 1]
        share = (mean_distance - low.mean_distance) / (high.mean_distance - low.mean_distance)
        metric = _between(low.metric, high.metric, share)

        def mixed(name: str) -> float:
            return float((1 - share) * getattr(low, name) + share * getattr(high, name))

        numbers = {name: mixed(name) for name in ("loss", "standard_error", "training_objective", "price")}
        return FrontierPoint(metric, float(mean_distance), **numbers, _fit=low._fit)

    @property
    def _names(self) -> list[Any]:
        return list(self.points[0].card.encoder_.names)

    def __repr__(self) -> str:
        ends = f"mean distance {self.points[0].mean_distance:.3g} to {self.points[-1].mean_distance:.3g}"
        return f"<MetricFrontier: {len(self.points)} points, {ends}>"

    def __str__(self) -> str:
        best = self.best()
        lines = [f"{'mean distance':>13}  {self.loss_name:>13}  standard error"]
        for point in self.points:
            mark = "  best within one standard error" if point is best else ""
            lines.append(f"{point.mean_distance:13.3f}  {point.loss:13.4g}  {point.standard_error:14.2g}{mark}")
        for title, reference in self.references.items():
            distance = "" if reference.mean_distance is None else f"{reference.mean_distance:.3f}"
            lines.append(f"{distance:>13}  {reference.loss:13.4g}  {reference.standard_error:14.2g}  {title}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Reference:
    """What something else is worth on the same people: its loss, and the mean distance of its metric if it has one."""

    loss: float
    standard_error: float
    mean_distance: float | None = None


def design_metric(
    X: Any,
    y: Any,
    *,
    protected: Sequence[Any] = (),
    fixed: Mapping[Any, float] | None = None,
    lower: Mapping[Any, float] | None = None,
    upper: Mapping[Any, float] | None = None,
    output_range: tuple[float, float] | None = None,
    categorical: Sequence[Any] | None = None,
    groups: Mapping[Any, Any] | None = None,
    distances: Mapping[Any, Any] | None = None,
    task: Literal["auto", "classification", "regression"] = "auto",
    sample_weight: Any = None,
    n_points: int = 10,
    cv: int = 5,
    max_knots: int = 128,
    references: bool = True,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> MetricFrontier:
    """Design a metric together with the scorecard within it, from strict to loose.

    For a price of distance from high to low, one convex problem has the smallest loss plus the price times the mean
    distance of two people, over all shapes of a scorecard and all weights of a metric (p = 1) that contains it. Its
    optima are the frontier: no metric with a smaller mean distance contains a scorecard with a smaller loss
    (`docs/theory.md` §11). The loss is measured on people held out.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        An array of numbers, or a table (pandas, polars or pyarrow). Blanks in columns of numbers of a table get a
        weight of their own.
    y : array-like of shape (n_samples,)
    protected : sequence of names
        Columns that must not matter: their weight is 0 in every metric. Columns of an array are called
        ``"feature 0"`` and so on.
    fixed : mapping from column to weight, optional
        Weights that people have agreed on.
    lower, upper : mapping from column to weight, optional
        Limits of weights. Those of categories end at 1.
    output_range : tuple of float, optional
        Limits of predictions, for regression; None takes the range of `y`.
    categorical : sequence of names, optional
        Columns of a table that are categories; None decides by their types. Ordered categories (of pandas) are numbers,
        with one weight per step.
    groups, distances : mapping from column of categories, optional
        Which categories are near, as in `TableMetric`; the weight of the two furthest apart is designed.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" takes continuous outcomes, and any with an `output_range`, as regression.
    sample_weight : array-like of shape (n_samples,), optional
        What each person counts, in the loss and in the mean distance.
    n_points : int, default=10
    cv : int, default=5
        Folds. They go by the content of rows: equal people share one.
    max_knots : int, default=128
        As for `AdditiveClassifier`. Columns get fewer where the data determine little of their shape.
    references : bool, default=True
        Whether to measure a constant, the linear model's own metric and boosting on the same folds.
    n_jobs : int, optional
        Threads; None and -1 use every core. Results do not depend on it, nor on the order of rows.
    verbose : bool, default=False
        Show a progress bar.

    Returns
    -------
    MetricFrontier

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"income": rng.normal(50, 10, 400), "noise": rng.normal(size=400)})
    >>> X["race"] = rng.choice(list("ab"), 400)
    >>> y = (X["income"] + 10 * rng.normal(size=400) > 50).astype(int)
    >>> frontier = design_metric(X, y, protected=["race"], n_points=4, references=False)
    >>> best = frontier.best()
    >>> best.metric.numeric["noise"], best.metric.categorical["race"]
    (0.0, 0.0)
    >>> best.card.guarantee_.level
    'exact'
    """
    one_of("auto", "classification", "regression").check("task", task)
    n_points, cv = check_count("n_points", n_points, min_value=2), check_count("cv", cv, min_value=2)
    max_knots = check_count("max_knots", max_knots, min_value=2)
    THREADS.check("n_jobs", n_jobs)
    BOOL.check("references", references)
    BOOL.check("verbose", verbose)
    people = read_people(X, categorical)
    if not len(people):
        raise InvalidInputError("X must hold at least one person; got an empty table.")
    names = people.encoder.names
    hidden = check_names("protected", protected, names)
    bounds = read_bounds(names, people.encoder.is_number, hidden, fixed, lower, upper)
    shapes = {"groups": groups, "distances": distances}
    model = _estimator(_widest(people, bounds, hidden, shapes), y, task, output_range, max_knots, n_jobs)
    problem = _Problem.read(model, people, y, sample_weight, bounds, cv)
    return _path(problem, n_points, cv, hidden, references=bool(references), verbose=bool(verbose))


def _estimator(metric: Metric, y: Any, task: str, output_range: Any, max_knots: int, n_jobs: int | None) -> Any:
    """The estimator whose metric is designed."""
    if task == "auto":
        regression = output_range is not None or type_of_target(check_outcomes(y, numeric=False)) == "continuous"
        task = "regression" if regression else "classification"
    if task == "regression":
        (NONE | LIMITS).check("output_range", output_range)
        return AdditiveRegressor(metric, output_range=output_range, max_knots=max_knots, n_jobs=n_jobs)
    if output_range is not None:
        raise InvalidInputError("output_range must be None for classification: probabilities have the range (0, 1).")
    return AdditiveClassifier(metric, max_knots=max_knots, n_jobs=n_jobs)


def _widest(people: People, bounds: WeightBounds, hidden: list[Any], shapes: dict[str, Any]) -> Metric:
    """A metric that holds no shape back, in which the columns count that may."""
    free = bounds.upper > 0
    if not free.any():
        raise InvalidInputError(
            "protected must leave a column that may matter: with all of them protected or fixed at 0, only a constant "
            "satisfies the metric."
        )
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without any number
        ranges = np.nanmax(people.rows, axis=0) - np.nanmin(people.rows, axis=0)
    wide = np.where(people.encoder.is_number, 1e6 / np.where(ranges > 0, ranges, 1.0), 1.0)
    missing = np.where(np.isnan(people.rows).any(axis=0), 1.0, np.nan)
    weights = Weights(np.where(free, wide, 0.0), missing)
    if not isinstance(people.table, pd.DataFrame):
        if any(each is not None for each in shapes.values()):
            raise InvalidInputError("groups and distances must name columns of categories, which an array has not.")
        return _metric_of(people, weights, WeightedLp([1.0], p=1))
    kinds = dict(zip(people.encoder.names, people.encoder.is_number, strict=True))
    numeric, categorical = ({name: 0 for name, number in kinds.items() if number == kind} for kind in (True, False))
    reasons = dict.fromkeys(hidden, "protected")
    return _metric_of(people, weights, TableMetric(numeric, categorical, zero_reasons=reasons, **shapes))


def _metric_of(people: People, weights: Weights, like: Metric) -> Metric:
    """Weights as a metric for people like these; all else is as in `like`."""
    encoder, columns = people.encoder, weights.columns.tolist()
    if isinstance(like, TableMetric):
        named = list(zip(encoder.names, encoder.is_number, columns, weights.missing.tolist(), strict=True))
        missing = {name: min(1.0, blank) for name, number, _, blank in named if number and blank == blank}
        zeros = {name: "not_used" for name, *_, weight, _ in named if not weight}
        return like.with_params(
            numeric={name: weight for name, number, weight, _ in named if number},
            categorical={name: min(1.0, weight) for name, number, weight, _ in named if not number},
            missing=missing or "refuse",
            zero_reasons={**zeros, **{name: each for name, each in like.zero_reasons.items() if each == "protected"}},
        )
    return WeightedLp(columns, p=1, feature_names=encoder.labels)


def _between(a: Metric, b: Metric, share: float) -> Metric:
    """Weights on the line between those of two metrics."""

    def mixed(one: Mapping[Any, float], other: Mapping[Any, float]) -> dict[Any, float]:
        return {name: (1 - share) * one.get(name, 0.0) + share * other.get(name, 0.0) for name in {**one, **other}}

    if isinstance(a, TableMetric) and isinstance(b, TableMetric):
        missing, reasons = mixed(a.missing, b.missing), {**a.zero_reasons, **b.zero_reasons}
        numeric, categorical = mixed(a.numeric, b.numeric), mixed(a.categorical, b.categorical)
        return a.with_params(
            numeric=numeric, categorical=categorical, missing=missing or "refuse", zero_reasons=reasons
        )
    assert isinstance(a, WeightedLp)
    assert isinstance(b, WeightedLp)
    return WeightedLp((1 - share) * a.weights + share * b.weights, p=1, feature_names=a.feature_names)


@dataclass(frozen=True, eq=False)
class _Problem:
    """What is designed: people in an order that depends on their content alone, and the convex problem."""

    model: Any
    people: People
    y: npt.NDArray[Any]
    weights: FloatArray | None
    folds: IntArray
    joint: JointProblem

    @classmethod
    def read(
        cls, model: Any, people: People, y: Any, sample_weight: Any, bounds: WeightBounds, n_folds: int
    ) -> _Problem:
        """Check, sort and bin."""
        metric: Metric = model.metric
        with checking():
            people, y = model._read(people.table, y, metric)
            weights = check_sample_weight(sample_weight, len(people))
            model._check_target(y)
        if model._classify and len(model.classes_) < 2:
            raise InvalidInputError(f"y must hold at least two classes; got only {short_repr(model.classes_[0])}.")
        if model._classify and weights is not None and len(np.unique(y[weights > 0])) < 2:
            raise InvalidInputError("sample_weight must leave people of two classes; all but one have the weight 0.")
        metric.check_people(people)
        columns = metric.weights_of(people.encoder)
        target = model.loss_of(y, people).target
        counts = np.ones(len(people)) if weights is None else weights
        seen = people.rows[:, columns.matters]
        order = np.lexsort((counts, *target, *seen.T))
        people, y, counts = people.take(order), y[order], counts[order]
        loss, shares = model.loss_of(y, people), counts / counts.sum()
        folds = (row_hashes((*seen[order].T, *loss.target)) % np.uint64(n_folds)).astype(np.int64)
        n_effective = effective_n_samples(len(people), None if weights is None else counts)
        knots, unit = knots_for(n_effective, model.max_knots), LINKS[model.link_name].unit

        def objective_with(knots: int | IntArray) -> Objective:
            parts = bin_columns(people.rows, shares, columns, knots, model.n_jobs)
            layout = Layout(parts, columns, unit, {}, np.ones(len(columns.scales)))
            return Objective(layout, loss, shares, np.zeros(len(parts)), n_effective, n_jobs=model.n_jobs)

        objective = objective_with(knots)
        enough = _enough_knots(objective, knots, labels=model._classify)
        objective = objective_with(enough)
        model.set_params(max_knots=dict(zip(people.encoder.names, enough.tolist(), strict=True)))
        joint = JointProblem(objective, Costs.of(people.rows, shares, columns.is_number, columns.tables), bounds)
        return cls(model, people, y, None if weights is None else counts, folds, joint)

    def without(self, fold: int | None) -> JointProblem:
        """The problem of everybody, or of those outside a fold, with penalties chosen by them."""
        objective = self.joint.objective
        if fold is not None:
            kept = np.where(self.folds == fold, 0.0, objective.weights)
            left = float(kept.sum())
            objective = replace(objective, weights=kept / left, n_people=left * objective.n_people, n_jobs=1)
        penalties = choose_penalties(objective, labels=self.model._classify).penalties
        return replace(self.joint, objective=replace(objective, penalties=penalties))

    def usable_folds(self, n_folds: int) -> list[int]:
        """Folds with people in them, outside of which every class is left."""
        shares, out = self.joint.objective.weights, []
        for fold in range(n_folds):
            kept = np.where(self.folds == fold, 0.0, shares)
            means = self.joint.objective.loss.target @ kept
            enough = kept.sum() > 0 and (not self.model._classify or ((means > 0) & (means < kept.sum())).all())
            if enough and shares[self.folds == fold].sum() > 0:
                out.append(fold)
        if not out:
            raise InvalidInputError(
                f"cv must leave every class outside of each fold; {n_folds} folds of {len(self.y):,} people do not. "
                "Give more people, or fewer folds."
            )
        return out

    def losses(self, scores: FloatArray) -> FloatArray:
        """Brier score or squared error of each person, from scores of shape (n_functions, n_samples)."""
        if not self.model._classify:
            low, high = self.model.output_range_
            return np.asarray((low + (high - low) * np.clip(0.5 + scores[0], 0, 1) - self.y) ** 2)
        if len(scores) == 1:
            return np.asarray((expit(scores[0]) - (self.y == self.model.classes_[1])) ** 2)
        return np.asarray(((softmax(scores, axis=0) - (self.model.classes_[:, None] == self.y)) ** 2).sum(axis=0) / 2)

    def summary(self, losses: FloatArray, counted: npt.NDArray[np.bool_]) -> tuple[float, float]:
        """Mean of held-out losses, and its standard error."""
        shares = np.where(counted, self.joint.objective.weights, 0.0)
        shares = shares / shares.sum()
        mean = float(shares @ losses)
        return mean, float(np.sqrt(shares**2 @ (losses - mean) ** 2))

    def metric(self, weights: Weights) -> Metric:
        """Designed weights as a metric, those that make no difference at 0.

        In a table with blanks, a column in which nobody has one gets the least weight of a blank that does not cut it.
        """
        columns, missing = weights.columns.copy(), weights.missing.copy()
        rows, bounds = self.people.rows, self.joint.bounds
        gaps = bool(np.isnan(rows).any())
        for i, number in enumerate(self.people.encoder.is_number):
            there = rows[~np.isnan(rows[:, i]), i] if number else np.array([0.0, 1.0])
            ends = (float(there.min()), float(there.max())) if len(there) else (0.0, 0.0)
            if columns[i] * (ends[1] - ends[0]) < _UNSEEN:
                columns[i] = 0.0
            columns[i] = np.clip(columns[i], bounds.lower[i], bounds.upper[i])
            if columns[i] == 0 and missing[i] >= _UNSEEN:
                columns[i] = BLANKS_ONLY
            elif columns[i] == 0 and not np.isnan(missing[i]):
                missing[i] = 0.0
            elif number and gaps and np.isnan(missing[i]):
                missing[i] = least_missing_weight(float(columns[i]), *ends)
        return _metric_of(self.people, Weights(columns, missing), self.model.metric)

    def mean_distance(self, metric: Metric) -> float:
        """Of two people drawn at random."""
        columns = metric.weights_of(self.people.encoder)
        costs = Costs.of(self.people.rows, self.joint.objective.weights, columns.is_number, columns.tables)
        return costs.mean_distance(columns)

    def fit(self, metric: Metric, penalties: Mapping[Any, float]) -> Any:
        """The card within a metric."""
        card = self.model.with_metric(metric).set_params(penalty=dict(penalties))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VacuousGuaranteeWarning)  # a frontier shows loose metrics as well
            return card.fit(self.people.table, self.y, self.weights)


def _enough_knots(problem: Objective, most: int, *, labels: bool) -> IntArray:
    """Knots of each column: several for each variable that the data determine, and few enough for one matrix."""
    layout, n_functions = problem.layout, problem.loss.n_functions
    found = np.full(len(layout.weights.scales), most)
    for part, count in zip(layout.parts, choose_penalties(problem, labels=labels).counts.tolist(), strict=True):
        if part.knots is not None:
            found[part.column] = min(most, max(_FEWEST_KNOTS, int(np.ceil(_KNOTS_EACH * count / n_functions))))
    sizes = np.array([part.n_slots for part in layout.parts if part.knots is None])
    room = _MOST_VARIABLES // n_functions - int(sizes.sum())
    numbers = [part.column for part in layout.parts if part.knots is not None]
    while found[numbers].sum() > room and (found[numbers] > 2).any():
        found[numbers] = np.maximum(2, (0.8 * found[numbers]).astype(int))
    return found


def _path(
    problem: _Problem, n_points: int, n_folds: int, hidden: list[Any], *, references: bool, verbose: bool
) -> MetricFrontier:
    """Optima of everybody from a high price to a low one, and the losses of those held out along it."""
    folds = problem.usable_folds(n_folds)
    total = (n_points + 1) * (len(folds) + 1)
    with progress_bar("Designing", total, show=verbose) as advance, single_threaded_blas():
        whole = problem.without(None)
        prices = whole.largest_price() * np.geomspace(_FIRST, _LAST, n_points)
        held_out = np.zeros((n_points, len(problem.y)))
        optima: list[Solution] = []

        def work(fold: int | None) -> None:
            joint = whole if fold is None else problem.without(fold)
            advance(1)
            found = None
            for k, price in enumerate(prices.tolist()):
                found = joint.solve(price, found, _HELD_OUT_TOLERANCE if fold is not None else _TOLERANCE)
                if fold is None:
                    optima.append(found)
                else:
                    out = problem.folds == fold
                    held_out[k, out] = problem.losses(joint.objective.scores(found.x))[out]
                advance(1)

        run_in_threads(work, [None, *folds], problem.model.n_jobs)
        counted = np.isin(problem.folds, folds)
        parts = whole.layout.parts
        names = problem.people.encoder.names
        penalties = {
            names[part.column]: float(penalty)
            for part, penalty in zip(parts, whole.objective.penalties, strict=True)
            if part.column >= 0
        }
        fit, points = partial(problem.fit, penalties=penalties), []
        for price, optimum, losses in zip(prices.tolist(), optima, held_out, strict=True):
            metric = problem.metric(whole.weights(optimum.v))
            if not metric.weights_of(problem.people.encoder).matters.any():
                continue
            loss, error = problem.summary(losses, counted)
            distance = problem.mean_distance(metric)
            points.append(FrontierPoint(metric, distance, loss, error, optimum.value, price, fit))
    if not points:
        raise InvalidInputError("y does not vary with any column that may matter, so no metric can be designed.")
    beside = _references(problem, folds, counted, hidden) if references else {}
    kind: Task = "classification" if problem.model._classify else "regression"
    return MetricFrontier(tuple(points), beside, kind, tuple(hidden), len(problem.y), n_folds, penalties)


def _references(problem: _Problem, folds: list[int], counted: Any, hidden: list[Any]) -> dict[str, Reference]:
    """A constant, the linear model's own metric and boosting, on the same folds."""
    from likewise.design.references import measure

    return measure(problem, folds, counted, hidden)
