"""The estimators: additive models within a metric."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.frozen import FrozenEstimator

from likewise._fit_validation import TrainingData
from likewise._inner_estimator import as_given
from likewise._optional import is_partitioned
from likewise._typing import FloatArray
from likewise._validation import BOOL, THREADS, Rule, check_numbers, integer, one_of, positive
from likewise.additive.fit import Penalty, Plan
from likewise.additive.objective import LogLoss, Loss, ProbitLoss, SoftmaxLoss, SquaredLoss
from likewise.additive.scorecard_mixin import ScorecardMixin
from likewise.additive.scorer import AdditiveScorer
from likewise.ask import answers, is_plain_function
from likewise.base import METRIC, ConstrainedClassifier, ConstrainedEstimator, ConstrainedRegressor
from likewise.exceptions import InvalidInputError
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import People
from likewise.metrics.base import Metric

_SURE = 1e-6


def class_targets(y: npt.NDArray[Any], classes: npt.NDArray[Any], teacher: Any, people: People) -> FloatArray:
    """Target probabilities, shape (n_classes, n_samples)."""
    if teacher is None:
        return np.asarray((classes[:, None] == y[None]).astype(np.float64))
    scores = _scores(teacher, people, "predict_proba")
    if scores.ndim == 1 and len(classes) == 2:
        scores = np.column_stack([1 - scores, scores])
    if scores.shape != (len(people), len(classes)):
        raise InvalidInputError(
            f"teacher must give one probability per class ({len(classes)}) and person ({len(people)}); got an array of "
            f"shape {scores.shape}. y must hold the teacher's classes."
        )
    known = getattr(teacher, "classes_", None)
    if known is not None and list(known) != classes.tolist():
        raise InvalidInputError(f"teacher must have the classes of y, {classes.tolist()}; it has {list(known)}.")
    total = scores.sum(axis=1, keepdims=True)
    if not ((scores >= 0).all() and (np.abs(total - 1) < 1e-3).all()):
        raise InvalidInputError("teacher must give probabilities: between 0 and 1, and adding up to 1 for each person.")
    # The log-odds of 0 and 1 are infinite.
    return np.asarray(np.clip(scores / total, _SURE, 1 - _SURE).T)


def regression_targets(
    y: npt.NDArray[Any], output_range: tuple[float, float], teacher: Any, people: People
) -> FloatArray:
    """Targets, as shares of the range around its middle, shape (1, n_samples)."""
    if teacher is not None:
        y = _scores(teacher, people, "predict").reshape(-1)
        if len(y) != len(people):
            raise InvalidInputError(f"teacher must give one number per person ({len(people)}); got {len(y)}.")
    low, high = output_range
    return np.asarray((np.clip(y, low, high) - low)[None] / (high - low) - 0.5)


def _scores(teacher: Any, people: People, method: str) -> FloatArray:
    plain = is_plain_function("teacher", teacher, (method,))  # raises if it is not a model
    given = as_given(teacher if plain else FrozenEstimator(teacher), people)
    scores = check_numbers("The teacher's answers", answers(teacher, given.table, method))
    if not np.isfinite(scores).all():
        raise InvalidInputError("teacher must give finite scores; got NaN or infinity.")
    return scores


_LOSSES: dict[str, type[Loss]] = {"logistic": LogLoss, "probit": ProbitLoss, "clip": SquaredLoss}

_PENALTIES = Rule(
    "a mapping from column to a positive finite number",
    lambda value: isinstance(value, Mapping) and all(positive().holds(penalty) for penalty in value.values()),
)

_KNOTS = Rule(
    "a mapping from column to such a number",
    lambda value: isinstance(value, Mapping) and all(integer(2).holds(most) for most in value.values()),
    "2 makes straight lines.",
)


class _Additive(ScorecardMixin, ConstrainedEstimator):
    """Shared by the classifier and the regressor: the fit, in memory or of a Dask DataFrame."""

    rules: ClassVar[dict[str, Rule]] = {
        "metric": METRIC,
        "max_knots": integer(2) | _KNOTS,
        "penalty": one_of("auto") | _PENALTIES | positive("'auto' chooses one per column."),
        "n_jobs": THREADS,
        "verbose": BOOL,
    }

    scorer_: AdditiveScorer
    penalty_: Penalty

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model; on error it is unchanged.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            With a metric of tables, a table with named columns (pandas, polars or pyarrow). Or a Dask DataFrame, or the
            path of a Parquet file or of a directory of them, which Dask reads (`docs/scale.md`): columns that the
            metric does not name are not read, and the model is that of the table in memory, to the last bit.
        y : array-like of shape (n_samples,)
            With a Dask DataFrame or a path, a Dask Series, or the name of a column of `X`.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of rows in the loss; the guarantee is the same for all. Multiples of the smallest count as
            copies of a row, others by their ratios. Not for a Dask DataFrame.
        """
        if is_partitioned(X):
            from likewise.distributed.additive import fit

            fit(self, X, y, sample_weight)
            return self
        return super().fit(X, y, sample_weight)

    def learn(self, data: TrainingData, metric: BoundMetric) -> AdditiveScorer:
        """Fit the shapes, bring them within the metric, and read the guarantee off them."""
        plan = Plan.of(self, metric)
        scorer, self.penalty_ = plan.fit(plan.objective(data))
        return scorer

    @abstractmethod
    def loss_of(self, y: npt.NDArray[Any], people: People) -> Loss:
        """The loss to minimise; needs `classes_` or `output_range_`."""

    @property
    @abstractmethod
    def link_name(self) -> str:
        """Name of the link, "softmax" for several classes."""


class AdditiveClassifier(_Additive, ConstrainedClassifier):
    """A scorecard whose probabilities are close for people who are close, by construction.

    ``h(x) = sigma(b + sum_i f_i(x_i))`` with piecewise linear ``f_i`` of numbers and a level for each category. If no
    slope of ``f_i`` exceeds ``4 w_i`` and no two levels of a category are further apart than ``4 w_c`` (for p = 1;
    `docs/theory.md` §11 has every p), then ``TV(h(x), h(x')) <= tanh(D(x, x')) <= D(x, x')`` for all people. Among
    such models, `fit` finds the one that minimises the penalised log-loss (the squared error for the link "clip").

    Parameters
    ----------
    metric : Metric, optional
        Distance between people: a `WeightedLp` for arrays, a `TableMetric` for tables. Columns of weight 0 are never
        read. None derives `linear_metric` from the training data.
    monotone : mapping from column to -1 or +1, optional
        Columns of numbers whose shape may only rise (+1: more never lowers the probability of ``classes_[1]``) or only
        fall (-1). For two classes.
    max_knots : int, or mapping from column to int, default=128
        Knots per column, at most, and no more than ``4 n^(1/3)`` for n people. They stand at quantiles of people and of
        distinct values; beyond 262,144 people at those of a fixed sample. A column that a mapping does not name gets
        the largest number in it.
    penalty : float, mapping from column to float, or "auto", default="auto"
        Weight of the roughness of each column's shape relative to the mean loss: for numbers, the integral of the
        squared slope times the standard deviation; for categories, the squared differences of levels from their mean.
        "auto" chooses one per column by restricted maximum likelihood. A column that a mapping does not name gets the
        largest one in it.
    link : {"logistic", "probit", "clip"}, default="logistic"
        From the score to a probability. With "probit" the bound is ``erf(sqrt(pi) D / 2)``, with "clip" (fitted by
        squared loss) ``min(1, D)``. Several classes need "logistic".
    teacher : fitted classifier or callable, optional
        A model whose probabilities replace the labels as targets: the result is the scorecard closest to it in mean
        log loss, plus the penalty. A callable takes `X` and returns one probability per row, or one per class.
    n_jobs : int, optional
        Threads; None and -1 use every core. Results do not depend on it.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    guarantee_ : Guarantee
    penalty_ : float or dict
        The penalty given, or the one chosen for each column.
    classes_ : ndarray of shape (n_classes,)
    scorer_ : AdditiveScorer
    n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    The guarantee covers `predict_proba` and `decide`, for all people, with nothing left to chance. It does not cover
    `predict`: the most likely class changes abruptly. It says nothing about what the columns leave out, about groups,
    or about accuracy. See ``guarantee_.statement`` and `docs/limitations.md`.

    Examples
    --------
    >>> import pandas as pd
    >>> from likewise import TableMetric
    >>> people = pd.DataFrame({"income": [20, 35, 50, 80, 95, 40], "region": list("nsnsns"), "race": list("xyxyxy")})
    >>> metric = TableMetric({"income": 0.01}, {"region": 0.1, "race": 0})
    >>> model = AdditiveClassifier(metric, monotone={"income": +1}, penalty=1e-3).fit(people, [0, 0, 0, 1, 1, 1])
    >>> model.predict_proba(people.drop(columns="race"))[:, 1].round(2)
    array([0.19, 0.39, 0.41, 0.77, 0.81, 0.43])
    >>> model.guarantee_.level, model.guarantee_.epsilon
    ('exact', 0.0)
    """

    rules = _Additive.rules | {"link": one_of("logistic", "probit", "clip")}

    def __init__(
        self,
        metric: Metric | None = None,
        *,
        monotone: Mapping[Any, int] | None = None,
        max_knots: int | Mapping[Any, int] = 128,
        penalty: float | Mapping[Any, float] | Literal["auto"] = "auto",
        link: Literal["logistic", "probit", "clip"] = "logistic",
        teacher: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.metric = metric
        self.monotone = monotone
        self.max_knots = max_knots
        self.penalty = penalty
        self.link = link
        self.teacher = teacher
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.link == "logistic"
        return tags

    def learn(self, data: TrainingData, metric: BoundMetric) -> AdditiveScorer:
        """As for every additive model; the score of a class without weight would be unbounded."""
        for label in np.unique(data.y):
            if not data.counts[data.y == label].any():
                raise InvalidInputError(
                    f"sample_weight must be positive for at least one row per class; it is 0 for all of {label!r}."
                )
        return super().learn(data, metric)

    @property
    def link_name(self) -> str:
        """Name of the link, "softmax" for several classes."""
        return "softmax" if len(self.classes_) > 2 else self.link

    def loss_of(self, y: npt.NDArray[Any], people: People) -> Loss:
        """The loss to minimise; needs `classes_`."""
        several = len(self.classes_) > 2
        if several and self.link != "logistic":
            raise InvalidInputError(
                "Only binary classification is supported. The type of the target is multiclass. (This is so for the "
                f"link {self.link!r}; link must be 'logistic' for more than two classes.)"
            )
        if several and self.monotone:
            raise InvalidInputError("monotone must be None for more than two classes: raising one class lowers others.")
        targets = class_targets(y, self.classes_, self.teacher, people)
        if self.link == "clip":
            targets = targets - 0.5
        return SoftmaxLoss(targets) if several else _LOSSES[self.link](targets[1:])


class AdditiveRegressor(_Additive, ConstrainedRegressor):
    """A scorecard whose predictions are close for people who are close, by construction.

    ``h(x) = b + sum_i f_i(x_i)``, cut to `output_range` ``(lo, hi)``, with piecewise linear ``f_i`` of numbers and a
    level for each category, whose slopes and ranges are within ``hi - lo`` times the metric's weights (for p = 1;
    `docs/theory.md` §11 has every p). Then ``|h(x) - h(x')| <= (hi - lo) min(1, D(x, x'))`` for all people.
    Among such models, `fit` finds the one that minimises the penalised squared error before the cut.

    Parameters
    ----------
    metric, monotone, max_knots, penalty, n_jobs, verbose
        As for `AdditiveClassifier`.
    output_range : tuple of float, optional
        Limits ``(lo, hi)`` of predictions. None takes the range of `y` in `fit`.
    teacher : fitted regressor or callable, optional
        A model whose predictions are the targets in place of `y`.

    Attributes
    ----------
    output_range_ : tuple of float
    guarantee_, penalty_, scorer_, n_features_in_, feature_names_in_ : as for `AdditiveClassifier`

    Notes
    -----
    The guarantee covers `predict`, for all people, with nothing left to chance. It says nothing about what the columns
    leave out, about groups, or about accuracy. See ``guarantee_.statement`` and `docs/limitations.md`.

    Examples
    --------
    >>> from likewise import WeightedLp
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> model = AdditiveRegressor(WeightedLp([0.5]), penalty=1e-6).fit(X, 10 * X[:, 0])
    >>> model.predict([[0.0], [1.0]]).round(2)  # half the slope of the data: all that the metric allows
    array([2.5, 7.5])
    """

    rules = _Additive.rules | ConstrainedRegressor.rules

    def __init__(
        self,
        metric: Metric | None = None,
        *,
        monotone: Mapping[Any, int] | None = None,
        max_knots: int | Mapping[Any, int] = 128,
        penalty: float | Mapping[Any, float] | Literal["auto"] = "auto",
        output_range: tuple[float, float] | None = None,
        teacher: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.metric = metric
        self.monotone = monotone
        self.max_knots = max_knots
        self.penalty = penalty
        self.output_range = output_range
        self.teacher = teacher
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def link_name(self) -> str:
        """Name of the link."""
        return "clip"

    def loss_of(self, y: npt.NDArray[Any], people: People) -> Loss:
        """The loss to minimise; needs `output_range_`."""
        numbers = np.asarray(y, dtype=np.float64)
        return SquaredLoss(regression_targets(numbers, self.output_range_, self.teacher, people))
