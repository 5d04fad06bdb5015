"""`ProjectedClassifier` and `ProjectedRegressor`: any model, moved into a metric as little as possible."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.multiclass import type_of_target

from likewise._fit_validation import TrainingData, seed_from
from likewise._inner_estimator import (
    WrapsEstimator,
    as_given,
    is_trained_here,
    out_of_fold_scores,
    scores_of,
    seed_inner,
)
from likewise._typing import FloatArray, IntArray
from likewise._validation import BOOL, FOLDS, SEED, Rule, check_random, integer, one_of
from likewise.additive.fit import effective_n_samples
from likewise.base import METRIC, ConstrainedClassifier, ConstrainedRegressor
from likewise.exceptions import InvalidInputError
from likewise.kernel.links import from_unit_range, to_unit_range
from likewise.kernel.metric import BoundMetric
from likewise.metrics.base import Metric
from likewise.projection.least_squares import Anchors, closest_values
from likewise.projection.mcshane_whitney import make_envelope
from likewise.projection.scorer import (
    BlendWeights,
    ProjectedScorer,
    base_scores,
    check_base_classes,
    default_base,
    fit_base,
    fit_blend,
)


class _Projected(WrapsEstimator):
    """Shared by the classifier and the regressor: anchors, the closest values on them, and their extension."""

    rules: ClassVar[dict[str, Rule]] = {
        "metric": METRIC,
        "n_anchors": one_of("auto") | integer(1, "'auto' takes all distinct people, up to 5,000."),
        "cv": FOLDS,
        "random_state": SEED,
        "verbose": BOOL,
    }

    n_anchors: int | Literal["auto"]
    base: Any
    cv: Any
    random_state: Any
    verbose: bool

    scorer_: ProjectedScorer
    scores_: FloatArray
    n_anchors_: int

    @property
    def values_(self) -> FloatArray:
        """Values of the anchors: the closest to `scores_` within the metric."""
        return from_unit_range(self.scorer_.values, self._limits)

    def learn(self, data: TrainingData, metric: BoundMetric) -> ProjectedScorer:
        """Score people out of fold, project the scores of the anchors, and extend them to everybody."""
        state = check_random(self.random_state)
        rng = np.random.default_rng(seed_from(state))
        metric.description.check_axioms(data.people)
        anchors = Anchors.choose(data, metric, self.n_anchors, rng)
        scores = anchors.mean(self._scores(data, anchors, state), data)
        anchor_rows = data.people.take(anchors.first)
        envelope = make_envelope(metric, anchor_rows)
        bounds = envelope.at_anchors(anchor_rows)
        values = np.clip(closest_values(scores, anchors.weights, bounds, verbose=bool(self.verbose)), 0.0, 1.0)
        if self.base is None:
            base, blend = self._fit_default_base(data, metric, anchors, values)
        else:
            base = fit_base(self.base, data, metric, self._limits)
            check_base_classes(base, self._classes)
            blend = BlendWeights(1.0, 0.0, 0.0)
        self.scores_, self.n_anchors_ = from_unit_range(scores, self._limits), len(anchors)
        return ProjectedScorer(envelope, values, blend, base, self._classes, getattr(self, "output_range_", None))

    def _scores(self, data: TrainingData, anchors: Anchors, state: np.random.RandomState) -> FloatArray:
        """Scores of the rows of the anchors, between 0 and 1."""
        estimator, rows = self.estimator, anchors.rows
        if not is_trained_here(estimator):
            return scores_of(estimator, as_given(estimator, data.people).take(rows), self._classes, self._limits)
        if self.random_state is not None:
            estimator = clone(estimator)
            seed_inner(estimator, state)
        scores = out_of_fold_scores(
            estimator,
            self._inner_data(data),
            self._classes,
            self._limits,
            cv=self.cv,
            seed=int(state.randint(2**31)),
            verbose=bool(self.verbose),
        )
        return scores[rows]

    def _fit_default_base(
        self, data: TrainingData, metric: BoundMetric, anchors: Anchors, values: FloatArray
    ) -> tuple[Any, BlendWeights]:
        """An additive model as base if that reduces the error on held-out anchors, and the blend weights."""
        anchor_rows = data.people.take(anchors.first)
        n_people = effective_n_samples(len(data), data.weights)
        unfitted, coarse = default_base(metric, n_people, classify=self._classify)
        targets = self._unit_outcomes(data.y)
        base: Any = None
        if unfitted is not None and np.ptp(targets):
            base = fit_base(unfitted, data, metric, self._limits)
            coarse.set_params(penalty=base.penalty_)  # chosen once, not in every fold

        def held_out_scores(held_out: IntArray) -> FloatArray:
            train = np.flatnonzero(~np.isin(anchors.of_row, held_out))
            used = train[data.counts[train] > 0]
            if not np.ptp(targets[used]):  # nothing to learn from
                return np.full(len(held_out), targets[used].mean())
            model = fit_base(coarse, data.take(train), metric, self._limits)
            return base_scores(model, anchor_rows.take(held_out), self._classes, self._limits)

        outcomes = anchors.mean(targets[anchors.rows], data)
        held_out = None if base is None else held_out_scores
        blend = fit_blend(metric, anchor_rows, values, outcomes, anchors.weights, held_out)
        return (base if blend.base else None), blend

    @property
    def _limits(self) -> tuple[float, float]:
        return getattr(self, "output_range_", (0.0, 1.0))

    @property
    def _classes(self) -> npt.NDArray[Any] | None:
        return getattr(self, "classes_", None)

    def _unit_outcomes(self, y: npt.NDArray[Any]) -> FloatArray:
        """Outcomes between 0 and 1."""
        classes = self._classes
        return to_unit_range(y, self._limits) if classes is None else np.asarray(y == classes[1], dtype=np.float64)


class ProjectedClassifier(_Projected, ConstrainedClassifier):
    """Any classifier of two classes, moved as little as possible until its probabilities are within a metric.

    Training people are *anchors* ``a_i``, with values ``v_i`` that are as close as possible to the model's out-of-fold
    scores, in least squares under ``|v_i - v_j| <= D(a_i, a_j)``. Every score lies between

    ``L(x) = max_i (v_i - D(x, a_i))``  and  ``U(x) = min_i (v_i + D(x, a_i))``.

    For all x and x', ``TV(h(x), h(x')) <= D(x, x')``: exactly, without draws, under any metric (`docs/theory.md` §13).

    Parameters
    ----------
    estimator : classifier or callable
        Any scikit-learn classifier; clones of it are fitted in `fit`, each without the people it scores. A fitted one
        in `sklearn.frozen.FrozenEstimator`, or a plain function of rows, is not refitted: fit it on other people than
        `X`. A function returns probabilities of the second class, one column per class, or labels.
    metric : Metric, optional
        Distance between people: `WeightedLp`, `TableMetric`, or your own function as a `FunctionMetric`. None
        derives `linear_metric` from the training data.
    n_anchors : int or "auto", default="auto"
        Number of distinct people used as anchors. "auto" takes all, up to 5,000 (2,000 for a `FunctionMetric`), drawn
        at random.
    base : estimator, float or None, default=None
        Score where the envelopes leave room: ``h = median(base, L, U)``. A number, or an estimator that is itself
        within the metric by construction; it is fitted for the same metric, or wrapped in a `FrozenEstimator`. None
        takes an average, with fixed weights, of L, U and (for p = 1) the median for an `AdditiveClassifier`: the one
        with the smallest squared error on anchors that are left out in turn.
    cv : int, cross-validation generator, iterable or None, default=None
        Folds for the out-of-fold scores; None takes 5, shuffled.
    random_state : int, RandomState instance or None, default=None
        Seeds the choice of anchors, the folds, and the estimator where it has a `random_state` of None.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    guarantee_ : Guarantee
    n_anchors_ : int
    scores_, values_ : ndarray of shape (n_anchors,)
        Out-of-fold probabilities of the second class at the anchors, and the closest ones within the metric.
    classes_ : ndarray of shape (2,)
    n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    The guarantee covers `predict_proba` and `decide`, for every inner model. It does not cover `predict`, which jumps
    where classes tie, and says nothing about omitted features, groups or accuracy (`docs/limitations.md`). It needs a
    `FunctionMetric` that satisfies the triangle inequality for all people, which is tested on training people only.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = make_classification(random_state=0)
    >>> model = ProjectedClassifier(DecisionTreeClassifier(max_depth=3), random_state=0).fit(X, y)
    >>> model.predict_proba(X[:2]).shape
    (2, 2)
    >>> model.guarantee_.level, model.guarantee_.epsilon
    ('exact', 0.0)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        metric: Metric | None = None,
        n_anchors: int | Literal["auto"] = "auto",
        base: Any = None,
        cv: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.metric = metric
        self.n_anchors = n_anchors
        self.base = base
        self.cv = cv
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags: Any = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _check_target(self, y: npt.NDArray[Any]) -> None:
        super()._check_target(y)
        if len(self.classes_) > 2:
            # The first sentence is required by scikit-learn's estimator checks.
            raise InvalidInputError(
                f"Only binary classification is supported. The type of the target is {type_of_target(y)}. Project one "
                f"class against the others, or use another method for {len(self.classes_)} classes: SmoothedClassifier."
            )


class ProjectedRegressor(_Projected, ConstrainedRegressor):
    """Any regressor, moved as little as possible until its predictions are within a metric.

    As `ProjectedClassifier`, in units of `output_range` ``(a, b)``, to which predictions are clipped. For all people x
    and x', ``|h(x) - h(x')| <= (b - a) D(x, x')``: exactly, without draws, under any metric.

    Parameters
    ----------
    estimator : regressor or callable
        As for `ProjectedClassifier`; a plain function returns one number per row.
    metric, n_anchors, base, cv, random_state, verbose
        As for `ProjectedClassifier`; a number as `base` is in units of the output.
    output_range : tuple of float, optional
        Limits ``(a, b)`` to which predictions are clipped. None takes the range of `y` in `fit`.

    Attributes
    ----------
    output_range_ : tuple of float
    guarantee_, n_anchors_, scores_, values_, n_features_in_, feature_names_in_ : as for `ProjectedClassifier`

    Notes
    -----
    The guarantee covers `predict`, for every inner model. It says nothing about omitted features, groups or accuracy
    (`docs/limitations.md`).

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = make_regression(100, 5, random_state=0)
    >>> model = ProjectedRegressor(LinearRegression(), output_range=(-400, 400), random_state=0).fit(X, y)
    >>> model.predict(X[:3]).shape
    (3,)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        metric: Metric | None = None,
        output_range: tuple[float, float] | None = None,
        n_anchors: int | Literal["auto"] = "auto",
        base: Any = None,
        cv: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.metric = metric
        self.output_range = output_range
        self.n_anchors = n_anchors
        self.base = base
        self.cv = cv
        self.random_state = random_state
        self.verbose = verbose

    rules = _Projected.rules | ConstrainedRegressor.rules
