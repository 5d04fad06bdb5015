"""The least loss at each mean distance: a metric and its scorecard, designed together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.optimize import nnls
from sklearn.utils.multiclass import type_of_target

from likewise._fit_validation import check_outcomes
from likewise._frozen import Frozen
from likewise._guarantee_warnings import warn_vacuous
from likewise._parallel import run_in_threads, single_threaded_blas
from likewise._progress import progress_bar
from likewise._typing import FloatArray
from likewise._validation import BOOL, LIMITS, NONE, THREADS, check_count, check_names, one_of, short_repr
from likewise.additive.estimators import AdditiveClassifier, AdditiveRegressor
from likewise.design.joint import Solution
from likewise.design.problem import DesignProblem, read_bounds, widest_metric
from likewise.design.references import CONSTANT, Reference, measure_references
from likewise.exceptions import InvalidInputError
from likewise.inspection.baselines import Task
from likewise.metrics.base import Metric
from likewise.reveal.empirical import read_people

_FIRST, _LAST = 0.6, 3e-5  # of the price at which all free weights are 0
_TOLERANCE = 1e-9  # of the objective of everybody
_HELD_OUT_TOLERANCE = 1e-5  # of the mean loss, far below its standard error
_PAIRS = 20_000  # whose distances say what share of pairs a metric binds
_LEAST_BOUND = 0.1  # share of pairs below which a metric says next to nothing


_MIXED = ("mean_distance", "loss", "standard_error", "training_objective", "price")  # between two points, on the line


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
    kept : float
        Share of the best skill of the frontier that this metric keeps. The skill is ``1 - loss / loss of a constant``,
        and losses are smoothed along the frontier. NaN if no metric has any.
    kept_error : float
        Standard error of `kept`, over the people held out; the models are taken as given.
    bound_share : float
        Share of pairs of people at a distance below 1: of others, a guarantee says nothing.
    training_objective : float
        Loss that is minimised (log loss, or squared error in units of the range) and roughness, on everybody.
    price : float
        Gain in the training objective per unit of mean distance, equal for all weights not at a limit.
    """

    metric: Metric
    mean_distance: float
    loss: float
    standard_error: float
    kept: float
    kept_error: float
    bound_share: float
    training_objective: float
    price: float
    _fit: Callable[[Metric], Any] = field(repr=False)
    _pair_distances: FloatArray = field(repr=False)

    @cached_property
    def card(self) -> Any:
        """`AdditiveClassifier` or `AdditiveRegressor` within `metric`, fitted to everybody on first access."""
        return self._fit(self.metric)

    @property
    def binds_little(self) -> bool:
        """Whether fewer than one pair of people in ten is closer than 1."""
        return self.bound_share < _LEAST_BOUND

    def __repr__(self) -> str:
        return f"<FrontierPoint: mean distance {self.mean_distance:.3g}, loss {self.loss:.4g}>"


@dataclass(frozen=True, eq=False)
class SkillCurve(Frozen):
    """What the points of a frontier gain over a constant on held-out people, smoothed, and the share of it they keep.

    Smoothed gains rise with the mean distance, ever more slowly, from 0 where it is 0: those are fitted to the measured
    ones by least squares. All losses are of the same people, and what they have in common drops out of errors.

    Attributes
    ----------
    gains : ndarray of shape (n_points,)
        Smoothed.
    covariance : ndarray of shape (n_points, n_points)
        Of these gains, over the people.
    """

    gains: FloatArray
    covariance: FloatArray

    @classmethod
    def of(cls, distances: FloatArray, losses: FloatArray, shares: FloatArray) -> SkillCurve:
        """From mean distances, losses of each person (of a constant first), and what people count, in shares."""
        each = losses[0] - losses[1:]
        gains = each @ shares
        bends: FloatArray = np.minimum(distances[:, None], distances) / distances  # sums of these are all such curves
        active = bends[:, nnls(bends, gains)[0] > 0]
        smoother = active @ np.linalg.pinv(active)
        centred = (each - gains[:, None]) * shares
        return cls(smoother @ gains, smoother @ (centred @ centred.T) @ smoother.T)

    @property
    def gain(self) -> tuple[float, float]:
        """The largest gain, and its standard error."""
        return float(self.gains[-1]), float(np.sqrt(self.covariance[-1, -1]))

    def kept(self, place: float) -> tuple[float, float]:
        """The share of the skill kept at a place (1.5 is between the second point and the third), and its error."""
        best = float(self.gains[-1])
        if best <= 0:
            return float("nan"), float("nan")
        low = int(place)
        here = np.zeros(len(self.gains))
        here[low] = 1 - (place - low)
        if place > low:
            here[low + 1] = place - low
        share = float(here @ self.gains / best)
        here[-1] -= share  # the first-order change of the ratio
        return share, max(0.0, float(here @ self.covariance @ here)) ** 0.5 / best

    def strictest(self, keep: float) -> float:
        """The first place that keeps a share of the skill."""
        wanted = min(keep, 1 - 1e-9) * self.gains[-1]  # flat ends are equal up to rounding
        after = int((self.gains >= wanted).argmax())
        if after == 0:
            return 0.0
        low, high = self.gains[after - 1 : after + 1].tolist()
        return float(after - 1 + (wanted - low) / (high - low))


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
        A constant; with `references`, also the linear model with and without its own metric, and boosting. All are
        fitted in each fold.
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
    _curve: SkillCurve = field(repr=False)

    @property
    def loss_name(self) -> str:
        """What `loss` is."""
        return "Brier score" if self.task == "classification" else "squared error"

    @property
    def table(self) -> pd.DataFrame:
        """One row per point."""
        names = ["mean_distance", "bound_share", "loss", "standard_error", "kept", "kept_error"]
        names += ["training_objective", "price"]
        return pd.DataFrame([[getattr(point, name) for name in names] for point in self.points], columns=names)

    @property
    def weights(self) -> pd.DataFrame:
        """Weights of all columns, one row per point; those of blanks are called ``missing`` and the column."""
        rows = [
            point.metric.by_column | {f"missing {name}": weight for name, weight in point.metric.missing.items()}
            for point in self.points
        ]
        return pd.DataFrame(rows, index=[point.mean_distance for point in self.points]).rename_axis("mean distance")

    @property
    def gain(self) -> tuple[float, float]:
        """What the best metric gains over a constant, in the loss of held-out people, and its standard error."""
        return self._curve.gain

    @property
    def has_skill(self) -> bool:
        """Whether some metric is better than a constant on held-out people, by two standard errors."""
        gain, error = self.gain
        return gain > 2 * error

    def best(self, *, keep: float = 0.95) -> FrontierPoint:
        """The strictest metric that keeps a share of the best skill, on held-out people.

        The skill is ``1 - loss / loss of a constant``. A metric that binds fewer than one pair of people in ten comes
        with a `VacuousGuaranteeWarning`.

        Parameters
        ----------
        keep : float, default=0.95
            Above 0, at most 1.
        """
        point = self.at(keep=keep)
        if point.binds_little:
            problem = (
                f"The strictest metric that keeps {keep:.0%} of the skill binds {point.bound_share:.2%} of the pairs "
                "of people; from a distance of 1 on, a guarantee allows any difference"
            )
            warn_vacuous(
                f"{problem}. Choose a stricter point: at(bind=0.5).", f"{problem}. Give --bind 0.5 or less --keep."
            )
        return point

    def at(
        self,
        *,
        mean_distance: float | None = None,
        loss: float | None = None,
        keep: float | None = None,
        bind: float | None = None,
    ) -> FrontierPoint:
        """The point with a given mean distance, loss, share of the skill, or share of pairs that it binds.

        Between two points, weights are interpolated, and the card is fitted within them. The average of the two cards
        is within that metric as well, so on the training people the card is at least as good as the line between the
        points; its `loss` is that of the line.

        Parameters
        ----------
        mean_distance : float, optional
        loss : float, optional
            The strictest of the points with at most this loss.
        keep : float, optional
            The strictest metric that keeps this share of the best skill.
        bind : float, optional
            The loosest metric under which this share of the pairs of people are closer than 1.
        """
        given = {"mean_distance": mean_distance, "loss": loss, "keep": keep, "bind": bind}
        wanted = {name: value for name, value in given.items() if value is not None}
        if len(wanted) != 1:
            raise InvalidInputError("at needs exactly one of mean_distance, loss, keep and bind.")
        if loss is not None:
            good = [point for point in self.points if point.loss <= loss]
            if not good:
                least = min(point.loss for point in self.points)
                raise InvalidInputError(
                    f"loss must be at least {least:.4g}, the smallest on the frontier; got {loss:g}."
                )
            return good[0]
        if keep is not None:
            return self._between(self._place_keeping(keep))
        if bind is not None:
            return self._between(self._place_binding(bind))
        assert mean_distance is not None
        distances = [point.mean_distance for point in self.points]
        if not distances[0] <= mean_distance <= distances[-1]:
            raise InvalidInputError(
                f"mean_distance must be between {distances[0]:.4g} and {distances[-1]:.4g}, the ends of the frontier; "
                f"got {mean_distance:g}."
            )
        return self._between(float(np.interp(mean_distance, distances, np.arange(len(distances)))))

    def _place_keeping(self, keep: float) -> float:
        if not 0 < keep <= 1:
            raise InvalidInputError(
                f"keep must be a share of the skill, above 0 and at most 1; got {short_repr(keep)}."
            )
        gain, error = self.gain
        if gain <= 0:
            raise InvalidInputError(
                f"keep needs a metric that is better than a constant on held-out people, and none is: the best gains "
                f"{gain:.2g} ± {error:.2g} of the {self.loss_name}. y varies with no column that may matter."
            )
        return self._curve.strictest(keep)

    def _place_binding(self, bind: float) -> float:
        if not 0 < bind <= 1:
            raise InvalidInputError(f"bind must be a share, above 0 and at most 1; got {short_repr(bind)}.")
        shares = [point.bound_share for point in self.points]
        if shares[0] < bind:
            raise InvalidInputError(
                f"bind must be at most {shares[0]:.4g}, the share of pairs that the strictest metric binds; got "
                f"{bind:g}."
            )
        low = max(k for k, share in enumerate(shares) if share >= bind)
        if low == len(shares) - 1:
            return float(low)
        near, far = (point._pair_distances for point in self.points[low : low + 2])
        steps = np.linspace(0, 1, 1001)
        enough = [((1 - step) * near + step * far < 1).mean() >= bind for step in steps.tolist()]
        return low + float(steps[max(np.flatnonzero(enough))])

    def _between(self, place: float) -> FrontierPoint:
        """The point at a place: 0 is the first of `points`, and 1.5 is between the next two."""
        low = min(int(place), len(self.points) - 1)
        share, near = place - low, self.points[low]
        if share == 0:
            return near
        far = self.points[low + 1]

        def mixed(name: str) -> Any:
            return (1 - share) * getattr(near, name) + share * getattr(far, name)

        kept, error = self._curve.kept(place)
        pairs = mixed("_pair_distances")
        changed: dict[str, Any] = {name: float(mixed(name)) for name in _MIXED}
        changed |= {"kept": kept, "kept_error": error, "bound_share": float((pairs < 1).mean())}
        metric = _mixture(near.metric, far.metric, share)
        return replace(near, metric=metric, _pair_distances=pairs, **changed)

    def __repr__(self) -> str:
        ends = f"mean distance {self.points[0].mean_distance:.3g} to {self.points[-1].mean_distance:.3g}"
        return f"<MetricFrontier: {len(self.points)} points, {ends}>"

    def __str__(self) -> str:
        lines = [f"{'mean distance':>13}  {self.loss_name:>13}  standard error  pairs bound  skill kept"]
        for point in self.points:
            kept = f"{point.bound_share:11.0%}  {point.kept:6.0%} ± {100 * point.kept_error:.0f}"
            lines.append(f"{point.mean_distance:13.3f}  {point.loss:13.4g}  {point.standard_error:14.2g}  {kept}")
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
    monotone: Mapping[Any, int] | None = None,
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
    monotone : mapping from column to -1 or +1, optional
        Columns with which the score may only fall or rise, as for `AdditiveClassifier`.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" takes continuous outcomes, and any with an `output_range`, as regression.
    sample_weight : array-like of shape (n_samples,), optional
        Weight of each person in the loss and in the mean distance.
    n_points : int, default=10
    cv : int, default=5
        Number of folds, assigned by the content of rows: equal people share one, and it does not depend on `protected`.
    max_knots : int, default=128
        As for `AdditiveClassifier`. Columns get fewer where the data determine little of their shape.
    references : bool, default=True
        Whether to measure, besides a constant, the linear model with and without its own metric, and boosting.
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
    model = _estimator(widest_metric(people, bounds, hidden, shapes), y, task, output_range)
    model.set_params(max_knots=max_knots, monotone=monotone, n_jobs=n_jobs)
    problem = DesignProblem.read(model, people, y, sample_weight, bounds, cv)
    return _path(problem, n_points, cv, hidden, references=bool(references), verbose=bool(verbose))


def _estimator(metric: Metric, y: Any, task: str, output_range: Any) -> Any:
    """The estimator whose metric is designed."""
    if task == "auto":
        regression = output_range is not None or type_of_target(check_outcomes(y, numeric=False)) == "continuous"
        task = "regression" if regression else "classification"
    if task == "regression":
        (NONE | LIMITS).check("output_range", output_range)
        return AdditiveRegressor(metric, output_range=output_range)
    if output_range is not None:
        raise InvalidInputError("output_range must be None for classification: probabilities have the range (0, 1).")
    return AdditiveClassifier(metric)


def _mixture(a: Metric, b: Metric, share: float) -> Metric:
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
        held_out = np.zeros((1 + n_points, len(problem.y)))  # of a constant, and of each price
        optima: list[Solution] = []

        def work(fold: int | None) -> None:
            joint = whole if fold is None else problem.without(fold)
            advance(1)
            found, out = None, problem.folds == fold
            if fold is not None:
                scores = np.tile(joint.objective.best_constants()[:, None], (1, len(problem.y)))
                held_out[0, out] = problem.losses(scores)[out]
            for k, price in enumerate(prices.tolist(), 1):
                found = joint.solve(price, found, _HELD_OUT_TOLERANCE if fold is not None else _TOLERANCE)
                if fold is None:
                    optima.append(found)
                else:
                    held_out[k, out] = problem.losses(joint.objective.scores(found.x))[out]
                advance(1)

        run_in_threads(work, [None, *folds], problem.model.n_jobs)
        counted, names = np.isin(problem.folds, folds), problem.people.encoder.names
        of_parts = zip(whole.layout.parts, whole.objective.penalties.tolist(), strict=True)
        penalties = {names[part.column]: penalty for part, penalty in of_parts if part.column >= 0}
        metrics = [problem.metric(whole.weights(optimum.v)) for optimum in optima]
        used = [k for k, metric in enumerate(metrics) if metric.bind(problem.people.encoder).matters.any()]
    if not used:
        raise InvalidInputError("y does not vary with any column that may matter, so no metric can be designed.")
    shares = np.where(counted, whole.objective.weights, 0.0)
    distances = np.array([problem.mean_distance(metrics[k]) for k in used])
    curve = SkillCurve.of(distances, held_out[[0, *(1 + k for k in used)]], shares / shares.sum())
    fit, points = partial(problem.fit, penalties=penalties), []
    for place, k in enumerate(used):
        pairs = problem.pair_distances(metrics[k], _PAIRS)
        point = FrontierPoint(
            metrics[k],
            float(distances[place]),
            *problem.summary(held_out[1 + k], counted),
            *curve.kept(place),
            float((pairs < 1).mean()),
            optima[k].value,
            float(prices[k]),
            fit,
            pairs,
        )
        points.append(point)
    beside = {CONSTANT: Reference(*problem.summary(held_out[0], counted), 0.0)}
    if references:
        beside |= measure_references(problem, folds, counted, hidden)
    kind: Task = "classification" if problem.model._classify else "regression"
    return MetricFrontier(tuple(points), beside, kind, tuple(hidden), len(problem.y), n_folds, penalties, curve)
