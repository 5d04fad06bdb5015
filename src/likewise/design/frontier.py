"""The least loss at each mean distance: a metric and its scorecard, designed together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.utils.multiclass import type_of_target

from likewise._fit_validation import check_outcomes
from likewise._frozen import Frozen
from likewise._guarantee_warnings import warn_vacuous
from likewise._parallel import run_in_threads, single_threaded_blas
from likewise._progress import progress_bar
from likewise._validation import BOOL, LIMITS, NONE, THREADS, check_count, check_names, one_of
from likewise.additive.estimators import AdditiveClassifier, AdditiveRegressor
from likewise.design.joint import Solution
from likewise.design.problem import DesignProblem, read_bounds, widest_metric
from likewise.design.references import Reference, measure_references
from likewise.exceptions import InvalidInputError
from likewise.inspection.baselines import Task
from likewise.metrics.base import Metric
from likewise.reveal.empirical import read_people

_FIRST, _LAST = 0.6, 3e-5  # of the price at which all free weights are 0
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
        Gain in the training objective per unit of mean distance, equal for all weights not at a limit.
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
        """`AdditiveClassifier` or `AdditiveRegressor` within `metric`, fitted to everybody on first access."""
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
        rows = [
            point.metric.by_column | {f"missing {name}": weight for name, weight in point.metric.missing.items()}
            for point in self.points
        ]
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
                "distance of 1 on, a guarantee allows any difference. "
            )
            warn_vacuous(
                f"{problem}Choose a stricter point: at(mean_distance=0.5).", f"{problem}Give --mean-distance 0.5."
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
            raise InvalidInputError("at needs exactly one of mean_distance and loss.")
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
        names = ("loss", "standard_error", "training_objective", "price")
        numbers = {name: float((1 - share) * getattr(low, name) + share * getattr(high, name)) for name in names}
        return FrontierPoint(metric, float(mean_distance), **numbers, _fit=low._fit)

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
    protected : sequence of column names
        Columns that must not matter: their weight is 0 in every metric. Columns of an array are called
        ``"feature 0"`` and so on.
    fixed : mapping from column to weight, optional
        Weights that people have agreed on.
    lower, upper : mapping from column to weight, optional
        Limits of weights. Those of categories are capped at 1.
    output_range : tuple of float, optional
        Limits of predictions, for regression; None takes the range of `y`.
    categorical : sequence of column names, optional
        Columns of a table that are categories; None decides by their types. Ordered categories (of pandas) are numbers,
        with one weight per step.
    groups, distances : mapping from column of categories, optional
        Which categories are near, as in `TableMetric`; the weight of the two furthest apart is designed.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" takes continuous outcomes, and any with an `output_range`, as regression.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each person in the loss and in the mean distance.
    n_points : int, default=10
    cv : int, default=5
        Number of folds, assigned by the content of rows: equal people share one.
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
    model = _estimator(widest_metric(people, bounds, hidden, shapes), y, task, output_range, max_knots, n_jobs)
    problem = DesignProblem.read(model, people, y, sample_weight, bounds, cv)
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


def _between(a: Metric, b: Metric, share: float) -> Metric:
    """Weights on the line between those of two metrics."""

    def mixed(one: Mapping[Any, float], other: Mapping[Any, float]) -> dict[Any, float]:
        return {name: (1 - share) * one.get(name, 0.0) + share * other.get(name, 0.0) for name in {**one, **other}}

    return a.reweighted(mixed(a.by_column, b.by_column), mixed(a.missing, b.missing))


def _path(
    problem: DesignProblem, n_points: int, n_folds: int, hidden: list[Any], *, references: bool, verbose: bool
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
        counted, names = np.isin(problem.folds, folds), problem.people.encoder.names
        of_parts = zip(whole.layout.parts, whole.objective.penalties.tolist(), strict=True)
        penalties = {names[part.column]: penalty for part, penalty in of_parts if part.column >= 0}
        fit, points = partial(problem.fit, penalties=penalties), []
        for price, optimum, losses in zip(prices.tolist(), optima, held_out, strict=True):
            metric = problem.metric(whole.weights(optimum.v))
            if not metric.bind(problem.people.encoder).matters.any():
                continue
            loss, error = problem.summary(losses, counted)
            distance = problem.mean_distance(metric)
            points.append(FrontierPoint(metric, distance, loss, error, optimum.value, price, fit))
    if not points:
        raise InvalidInputError("y does not vary with any column that may matter, so no metric can be designed.")
    beside = measure_references(problem, folds, counted, hidden) if references else {}
    kind: Task = "classification" if problem.model._classify else "regression"
    return MetricFrontier(tuple(points), beside, kind, tuple(hidden), len(problem.y), n_folds, penalties)
