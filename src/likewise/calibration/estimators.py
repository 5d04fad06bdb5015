"""The estimator: a model within a metric, calibrated without leaving it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from likewise._inner_estimator import WrapsEstimator, fit_weighted, folds_for, seed_inner
from likewise._typing import FloatArray
from likewise._validation import FOLDS, SEED, Rule, check_random, one_of
from likewise.base import METRIC, ConstrainedClassifier, ConstrainedEstimator, Scorer
from likewise.calibration.bounded_isotonic import MAPS, Calibrator
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.guarantees.bounds import Bound, LoosenedBound
from likewise.guarantees.certificate import Estimate
from likewise.guarantees.guarantee import Guarantee, said_once
from likewise.metrics.base import Metric
from likewise.metrics.encoders import Encoder, People


@dataclass(frozen=True, eq=False, repr=False)
class RecalibratedScorer(Scorer):
    """A scorer behind a map that is nowhere too steep.

    Attributes
    ----------
    guarantee : Guarantee
    scorer : Scorer
        Of the inner model.
    coding : Coding
        How the inner model reads people.
    map : GentleMap
    """

    scorer: Scorer
    encoder: Encoder
    map: Calibrator

    def estimate(self, people: People, *, verbose: bool = False) -> Estimate:
        """The inner model's probabilities and intervals, mapped."""
        found = self.scorer.estimate(self._read(people), verbose=verbose)
        mean = self._mapped(found.mean)
        if found.lower is found.mean:  # nothing is sampled
            return Estimate(mean, mean, mean, found.n_draws)
        lower, upper = np.empty_like(mean), np.empty_like(mean)
        for k in range(mean.shape[1]):
            # A probability is smallest where its own score is lowest and all the others' are highest.
            lower[:, k] = self._mapped(_with_column(found.upper, k, found.lower))[:, k]
            upper[:, k] = self._mapped(_with_column(found.lower, k, found.upper))[:, k]
        return Estimate(mean, lower, upper, found.n_draws)

    def visible(self, people: People) -> FloatArray:
        """What the inner model sees."""
        return self.scorer.visible(self._read(people))

    @property
    def reads_tables(self) -> bool:
        """A table is read again, in the coding of the inner model."""
        return self.guarantee.metric.takes_tables

    def landmarks(self, n_columns: int) -> list[FloatArray]:
        """Those of the inner model, unless it was fitted without a column that must not matter."""
        return self.scorer.landmarks(n_columns) if len(self.encoder.names) == n_columns else [np.empty(0)] * n_columns

    def draw(self, people: People, rng: np.random.Generator) -> FloatArray:
        """The mapped probabilities, from which an outcome is drawn: a map of single votes would have another mean."""
        return self.estimate(people).mean

    def distance_to_tie(self, people: People) -> FloatArray | None:
        """None: the map moves the tie away from that of the inner score."""
        return None

    def _mapped(self, probabilities: FloatArray) -> FloatArray:
        return self.map(scale_of(self.scorer.guarantee).scores(probabilities))

    def _read(self, people: People) -> People:
        if not self.guarantee.metric.takes_tables:
            return People(people.rows, self.encoder, people.rows)
        return People.read(people.table, self.encoder)


class RecalibratedClassifier(WrapsEstimator, ConstrainedClassifier):
    """A model within a metric whose probabilities are calibrated, as far as the metric allows.

    ``c(h(x))`` with h the inner model and c a calibrator that is nowhere steeper than the promise. Scores z of h with
    ``|z(x) - z(x')| <= D(x, x')`` are its log-odds divided by 4 where h moves those by at most 4 D (additive models and
    1-Lipschitz networks with a logistic link), and its probability otherwise; c rises with z with slopes of at most 1.
    So ``TV(c(h(x)), c(h(x'))) <= D(x, x')`` for all people, plus what the promise of h adds to D. Among such c, `fit`
    finds the one with the smallest error on people whom the model has not learned from.

    Parameters
    ----------
    estimator : classifier of likewise
        A classifier that enforces a metric, such as `AdditiveClassifier`: clones are fitted without the people they
        score, and a last one on everybody. A fitted one in `sklearn.frozen.FrozenEstimator` is taken as it is: give
        `fit` people it has not learned from.
    method : {"isotonic", "sigmoid"}, default="isotonic"
        "isotonic": any rising c, found by least squares; for two classes. "sigmoid" (Platt): ``sigma(a logit(h) + b)``
        with ``0 <= a <= 1``, found by maximum likelihood; for a model whose log-odds are within the metric, and any
        number of classes, which share a and have a b each.
    cv : int, cross-validation generator, iterable or None, default=None
        Folds for the out-of-fold scores; None takes 5, shuffled.
    random_state : int, RandomState instance or None, default=None
        Seeds the folds, and the estimator where it has a `random_state` of None.

    Attributes
    ----------
    guarantee_ : Guarantee
    estimator_ : the fitted inner model
    map_ : the calibrator
    classes_ : ndarray of shape (n_classes,)
    n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    Covered: `predict_proba` and `decide`, which draws from the very probabilities that `predict_proba` gives. Not
    covered: `predict` (the most likely class jumps somewhere), what the features leave out, groups, and accuracy. A
    model that is too timid stays so: making it bolder needs a slope above 1. `docs/keeping.md` shows what calibration
    within the promise buys, and how an ordinary calibrator voids it.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from likewise import AdditiveClassifier
    >>> X, y = make_classification(random_state=0)
    >>> model = RecalibratedClassifier(AdditiveClassifier(penalty=0.01), method="sigmoid", random_state=0).fit(X, y)
    >>> model.guarantee_.level, model.guarantee_.epsilon
    ('exact', 0.0)
    >>> bool(0 <= model.map_.slope <= 1)
    True
    """

    rules: ClassVar[dict[str, Rule]] = {
        "method": one_of("isotonic", "sigmoid"),
        "cv": FOLDS,
        "random_state": SEED,
    }

    scorer_: RecalibratedScorer
    estimator_: ConstrainedClassifier

    def __init__(
        self,
        estimator: Any,
        *,
        method: Literal["isotonic", "sigmoid"] = "isotonic",
        cv: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.random_state = random_state

    @property
    def metric(self) -> Metric | None:  # type: ignore[override]
        """That of the inner estimator."""
        frozen = isinstance(self.estimator, FrozenEstimator)
        inner = self.estimator.estimator if frozen else self.estimator
        return inner.guarantee_.metric if frozen and hasattr(inner, "scorer_") else getattr(inner, "metric", None)

    def _asked_metric(self) -> Metric | None:
        inner = _within(self.estimator)
        METRIC.check("metric of the estimator", inner.metric)
        return inner.guarantee_.metric if isinstance(self.estimator, FrozenEstimator) else inner.metric

    @property
    def map_(self) -> Calibrator:
        """The calibrator, from scores to probabilities."""
        _ = self.guarantee_  # raises if not fitted
        return self.scorer_.map

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.method == "sigmoid"
        return tags

    def with_metric(self, metric: Metric) -> Self:
        """Return an unfitted estimator like this one, for another metric."""
        return clone(self).set_params(estimator=_within(self.estimator).with_metric(metric))  # type: ignore[no-any-return]

    def learn(
        self, people: People, y: npt.NDArray[Any], weights: FloatArray | None, metric: Metric
    ) -> RecalibratedScorer:
        """Score people out of fold, fit the calibrator to them, and put it behind a model of everybody."""
        if len(self.classes_) > 2 and self.method == "isotonic":
            raise InvalidInputError(  # the first sentences are the ones that scikit-learn asks for
                "Only binary classification is supported. The type of the target is multiclass. (This is so for "
                "method='isotonic'; method must be 'sigmoid' for more than two classes.)"
            )
        with said_once():
            inner, scores = self._scored(people, y, weights, metric)
        codes = np.searchsorted(self.classes_, y)
        counts = np.ones(len(y)) if weights is None else weights
        found = MAPS[self.method].fit(scores[counts > 0], codes[counts > 0], counts[counts > 0])
        self.estimator_ = inner
        return RecalibratedScorer(_promise(inner.guarantee_, found), inner.scorer_, inner.encoder_, found)

    def _scored(
        self, people: People, y: npt.NDArray[Any], weights: FloatArray | None, metric: Metric
    ) -> tuple[ConstrainedClassifier, FloatArray]:
        """The model, and scores of people by models that have not learned from them."""
        frozen, inner = isinstance(self.estimator, FrozenEstimator), _within(self.estimator)
        if frozen:
            labels, known = people.encoder.labels, inner.encoder_.labels
            if labels is not None and known is not None and labels != known and not metric.takes_tables:
                raise InvalidInputError(f"X must have the columns of the estimator, {list(known)}; got {list(labels)}.")
            return inner, self._scores(inner, people)
        state = check_random(self.random_state)
        inner = inner.with_metric(metric)
        if self.random_state is not None:
            seed_inner(inner, state)
        given = self._inner_weights(weights)
        scores = np.full((len(people), len(self.classes_)), np.nan)
        for train, test in folds_for(people, y, self.classes_, self.cv, int(state.randint(2**31))):
            model = fit_weighted(inner, people.take(train).table, y[train], None if given is None else given[train])
            if len(model.classes_) < len(self.classes_):
                raise InvalidInputError(f"cv must leave every class in training; a fold has only {model.classes_}.")
            scores[test] = self._scores(model, people.take(test))
        if np.isnan(scores).any():
            raise InvalidInputError(
                f"cv must hold out every person once; row {int(np.isnan(scores).any(axis=1).argmax())} never is."
            )
        return fit_weighted(inner, people.table, y, given), scores

    def _scores(self, model: ConstrainedClassifier, people: People) -> FloatArray:
        scale = scale_of(model.guarantee_)
        if self.method == "sigmoid" and not scale.has_log_odds:
            raise InvalidInputError(
                "method must be 'isotonic' for a model whose log-odds are not within the metric; got 'sigmoid' for "
                f"{type(model).__name__}. On the scale of probabilities a sigmoid can only flatten. 'sigmoid' is for "
                "AdditiveClassifier and LipschitzClassifier."
            )
        table = model.guarantee_.metric.takes_tables
        own = People.read(people.table, model.encoder_) if table else People(people.rows, model.encoder_, people.rows)
        return scale.scores(model.scorer_.estimate(own).mean)

    def _known_classes(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        frozen = isinstance(self.estimator, FrozenEstimator)
        return np.asarray(_within(self.estimator).classes_ if frozen else np.unique(y))


def scale_of(promise: Guarantee) -> Bound:
    """The scale on which the outputs themselves move by at most 4 (D + epsilon): sampled ones are probabilities."""
    return promise.curve if not promise.slack else Bound()


def _promise(inner: Guarantee, found: Calibrator) -> Guarantee:
    # The map is of the sampled probabilities, so `decide` has their error, too: it belongs to the curve.
    curve = LoosenedBound(inner.epsilon) if inner.epsilon else found.curve
    basis = f"The calibrator is nowhere steeper than the promise of the model behind it. {inner.basis}"
    return Guarantee(inner.metric, curve, inner.level, basis, delta=inner.delta, n_draws=inner.n_draws)


def _with_column(matrix: FloatArray, k: int, other: FloatArray) -> FloatArray:
    mixed = matrix.copy()
    mixed[:, k] = other[:, k]
    return mixed


def _within(estimator: Any) -> ConstrainedClassifier:
    """The inner classifier, unpacked if it is frozen; others are refused."""
    inner = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    if isinstance(inner, type) or not isinstance(inner, ConstrainedClassifier):
        given = inner.__name__ if isinstance(inner, type) else type(inner).__name__
        kind = "numbers" if isinstance(inner, ConstrainedEstimator) else "no metric"
        raise InvalidTypeError(
            f"estimator must be a classifier that enforces a metric, such as AdditiveClassifier(); got {given}, which "
            f"promises {kind}. Enforce a metric first: a calibrator cannot make a promise, only keep one."
        )
    return inner
