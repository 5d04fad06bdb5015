"""The estimators: any model, moved as little as possible until it is within a metric."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags
from sklearn.utils.multiclass import type_of_target

from likewise._inner_estimator import WrapsEstimator, is_trained_here, out_of_fold_scores, seed_inner
from likewise._typing import FloatArray, IntArray
from likewise._validation import FOLDS, SEED, TRUTH, Rule, check_random, one_of, whole
from likewise.base import METRIC, ConstrainedClassifier, ConstrainedRegressor, seed_from
from likewise.exceptions import InvalidInputError
from likewise.guarantees.bounds import Bound
from likewise.guarantees.guarantee import Guarantee
from likewise.metrics.base import Metric
from likewise.metrics.encoders import People
from likewise.projection.least_squares import closest_values
from likewise.projection.mcshane_whitney import envelope_of
from likewise.projection.scorer import Anchors, Extension, Shares, base_scores, default_base, fitted_base, judged_shares


class Projecting(WrapsEstimator):
    """What the two estimators share: anchors, the closest values on them, and their extension to everybody."""

    rules: ClassVar[dict[str, Rule]] = {
        "metric": METRIC,
        "n_anchors": one_of("auto") | whole(1, "'auto' takes all distinct people, up to 5,000."),
        "cv": FOLDS,
        "random_state": SEED,
        "verbose": TRUTH,
    }

    estimator: Any
    metric: Metric | None
    n_anchors: int | Literal["auto"]
    base: Any
    cv: Any
    random_state: Any
    verbose: bool

    scorer_: Extension
    scores_: FloatArray
    n_anchors_: int

    @property
    def values_(self) -> FloatArray:
        """What is said of the anchors: the closest to `scores_` that is within the metric."""
        return self._in_range(self.scorer_.values)

    def learn(self, people: People, y: npt.NDArray[Any], weights: FloatArray | None, metric: Metric) -> Extension:
        """Score people out of fold, move the scores of the anchors into the metric, and extend them to everybody."""
        state = check_random(self.random_state)
        rng = np.random.default_rng(seed_from(state))
        metric.check_axioms(people)
        anchors = Anchors.choose(people, weights, metric, self.n_anchors, rng)
        scores = anchors.mean(self._scores(people, y, weights, anchors, state), weights)
        there = people.take(anchors.first)
        envelope = envelope_of(metric, there)
        values = np.clip(
            closest_values(scores, anchors.weights, envelope.among(there), verbose=bool(self.verbose)), 0.0, 1.0
        )
        if self.base is None:
            base, shares = self._judged(people, y, weights, metric, anchors, values)
        else:
            base = fitted_base(self.base, people, y, weights, metric, self._limits)
            shares = Shares(1.0, 0.0, 0.0)
        self.scores_, self.n_anchors_ = self._in_range(scores), len(anchors)
        classes = self.classes_ if isinstance(self, ConstrainedClassifier) else None
        return Extension(self._promise(metric, len(anchors)), envelope, values, shares, base, classes)

    def _scores(
        self, people: People, y: npt.NDArray[Any], weights: FloatArray | None, anchors: Anchors, state: Any
    ) -> FloatArray:
        """What the model says of those for whom the anchors stand, between 0 and 1."""
        classes = self.classes_ if isinstance(self, ConstrainedClassifier) else None
        estimator, rows = self.estimator, anchors.rows
        if not is_trained_here(estimator):
            people, y = people.take(rows), y[rows]
            return out_of_fold_scores(estimator, people, y, None, classes, self._limits, cv=None, seed=0)
        if self.random_state is not None:
            estimator = clone(estimator)
            seed_inner(estimator, state)
        scores = out_of_fold_scores(
            estimator,
            people,
            y,
            self._inner_weights(weights),
            classes,
            self._limits,
            cv=self.cv,
            seed=int(state.randint(2**31)),
            verbose=bool(self.verbose),
        )
        return scores[rows]

    def _judged(
        self,
        people: People,
        y: npt.NDArray[Any],
        weights: FloatArray | None,
        metric: Metric,
        anchors: Anchors,
        values: FloatArray,
    ) -> tuple[Any, Shares]:
        """An additive model as base if that comes closer to the outcomes, and the shares of base and envelopes."""
        given, there = default_base(metric, people.rows.shape[1], classify=self._classify), people.take(anchors.first)
        shares_of_y = self._outcome_shares(y)
        classes = self.classes_ if isinstance(self, ConstrainedClassifier) else None
        base: Any = None
        if given is not None and np.ptp(shares_of_y):
            base = fitted_base(given, people, y, weights, metric, self._limits)
            given.set_params(penalty=base.penalty_)  # searched for once, not in every fold

        def without(out: IntArray) -> FloatArray:
            kept = np.flatnonzero(~np.isin(anchors.of_row, out))
            counted = kept if weights is None else kept[weights[kept] > 0]
            if not np.ptp(shares_of_y[counted]):  # nothing to learn from
                return np.full(len(out), shares_of_y[counted].mean())
            some = None if weights is None else weights[kept]
            model = fitted_base(given, people.take(kept), y[kept], some, metric, self._limits)
            return base_scores(model, there.take(out), classes, self._limits)

        outcomes = anchors.mean(shares_of_y[anchors.rows], weights)
        shares = judged_shares(metric, there, values, outcomes, anchors.weights, None if base is None else without)
        return (base if shares.base else None), shares

    def _promise(self, metric: Metric, n_anchors: int) -> Guarantee:
        basis = f"It holds by construction: scores lie between the envelopes of {n_anchors:,} anchors."
        if not metric.has_weights:
            basis += (
                " It rests on the triangle inequality and the symmetry of the function, which was tried on a sample of "
                "the people in fit."
            )
        limits = None if isinstance(self, ConstrainedClassifier) else self._limits
        return Guarantee(metric, Bound(), "exact", basis, output_range=limits)

    @property
    def _limits(self) -> tuple[float, float]:
        return 0.0, 1.0

    @abstractmethod
    def _outcome_shares(self, y: npt.NDArray[Any]) -> FloatArray:
        """Outcomes between 0 and 1."""

    def _in_range(self, shares: FloatArray) -> FloatArray:
        low, high = self._limits
        return np.asarray(low + (high - low) * shares)


class ProjectedClassifier(Projecting, ConstrainedClassifier):
    """Any classifier of two classes, moved as little as possible until its probabilities are within a metric.

    Training people are *anchors* ``a_i``, with values ``v_i`` that are as close as possible to the model's out-of-fold
    scores under ``|v_i - v_j| <= D(a_i, a_j)``, in least squares. For everybody else, the score lies between

    ``L(x) = max_i (v_i - D(x, a_i))``  and  ``U(x) = min_i (v_i + D(x, a_i))``.

    For all people x and x', ``TV(h(x), h(x')) <= D(x, x')``: exactly, without draws, under any metric.

    Parameters
    ----------
    estimator : classifier or callable
        Any scikit-learn classifier; clones of it are fitted in `fit`, each without the people it scores. A fitted one
        in `sklearn.frozen.FrozenEstimator`, or a plain function of rows, scores the anchors as it is: give it people it
        has not learned from. A function returns probabilities of the second class, one column per class, or labels.
    metric : Metric, optional
        Distance between people: `WeightedLp`, `TableMetric`, or a function of one's own as `FunctionMetric`. None
        derives `linear_metric` from the training data.
    n_anchors : int or "auto", default="auto"
        Distinct people who hold the model in place. "auto" takes all of them, up to 5,000 (2,000 for a
        `FunctionMetric`), drawn at random.
    base : estimator, float or None, default=None
        What is said where the envelopes leave room: ``h = median(base, L, U)``. A number, or an estimator that is
        itself within the metric by its construction: it is fitted for the same metric, or taken as it is from a
        `FrozenEstimator`. None takes an average, with fixed shares, of L, U and the median for an `AdditiveClassifier`:
        the one that is closest to the outcomes of anchors that are left out in turn.
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
        What the model said of the anchors, and what is said now: probabilities of the second class.
    classes_ : ndarray of shape (2,)
    n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    The promise is about `predict_proba` and `decide`, for every model and any values. It is not about `predict`: the
    most likely class jumps somewhere. It says nothing about what the features leave out, about groups, or about
    accuracy. A `FunctionMetric` must obey the triangle inequality for everybody; it is tried on training people only.
    See ``guarantee_.statement`` and `docs/limitations.md`.

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

    def _known_classes(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        frozen = isinstance(self.estimator, FrozenEstimator)
        return np.asarray(getattr(self.estimator, "classes_", np.unique(y)) if frozen else np.unique(y))

    def _check_target(self, y: npt.NDArray[Any]) -> None:
        super()._check_target(y)
        if len(self.classes_) > 2:
            # The first sentence is the one that scikit-learn asks for.
            raise InvalidInputError(
                f"Only binary classification is supported. The type of the target is {type_of_target(y)}. Project one "
                f"class against the others, or use another method for {len(self.classes_)} classes: SmoothedClassifier."
            )

    def _outcome_shares(self, y: npt.NDArray[Any]) -> FloatArray:
        return np.asarray(y == self.classes_[1], dtype=np.float64)


class ProjectedRegressor(Projecting, ConstrainedRegressor):
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
    The promise is about `predict`, for every model and any values. It says nothing about what the features leave out,
    about groups, or about accuracy. See ``guarantee_.statement`` and `docs/limitations.md`.

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

    rules = Projecting.rules | ConstrainedRegressor.rules

    @property
    def _limits(self) -> tuple[float, float]:
        return self.output_range_

    def _outcome_shares(self, y: npt.NDArray[Any]) -> FloatArray:
        low, high = self._limits
        return np.clip((np.asarray(y, dtype=np.float64) - low) / (high - low), 0.0, 1.0)
