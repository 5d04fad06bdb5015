"""Recalibration of a model within a metric, which stays within it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.frozen import FrozenEstimator

from likewise._fit_validation import TrainingData
from likewise._guarantee_warnings import suppress_guarantee_warnings
from likewise._inner_estimator import (
    WrappedScorer,
    WrapsClassifier,
    fit_weighted,
    folds_for,
    inner_classifier,
    inner_for,
    seed_inner,
)
from likewise._typing import FloatArray
from likewise._validation import FOLDS, SEED, Rule, check_random, one_of
from likewise.base import ConstrainedClassifier
from likewise.calibration.calibrators import MAPS, Calibrator
from likewise.exceptions import InvalidInputError
from likewise.kernel import rules
from likewise.kernel.bounds import Bound
from likewise.kernel.certificate import Estimate
from likewise.kernel.guarantee import Guarantee
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import People
from likewise.metrics.base import Metric


@dataclass(frozen=True, eq=False, repr=False)
class RecalibratedScorer(WrappedScorer):
    """A scorer followed by a calibrator of bounded slope.

    Attributes
    ----------
    map : Calibrator
    """

    map: Calibrator

    def prove(self) -> Guarantee:
        """The calibrator is not too steep for the scores of the inner model."""
        return rules.calibrated(self.scorer.guarantee, self.map.kind, self.map.numbers)

    def estimate(self, people: People, *, verbose: bool = False) -> Estimate:
        """The inner model's probabilities and intervals, calibrated."""
        found = self.scorer.estimate(self.encoder.recode(people), verbose=verbose)
        mean = self._mapped(found.mean)
        if found.lower is found.mean:  # nothing is sampled
            return Estimate(mean, mean, mean, found.n_draws)
        lower, upper = np.empty_like(mean), np.empty_like(mean)
        for k in range(mean.shape[1]):
            # A probability is smallest if its own score is lowest and all other scores are highest.
            lower[:, k] = self._mapped(_with_column(found.upper, k, found.lower))[:, k]
            upper[:, k] = self._mapped(_with_column(found.lower, k, found.upper))[:, k]
        return Estimate(mean, lower, upper, found.n_draws)

    def _mapped(self, probabilities: FloatArray) -> FloatArray:
        return self.map(scale_of(self.scorer.guarantee).scores(probabilities))


class RecalibratedClassifier(WrapsClassifier):
    """A model within a metric whose probabilities are calibrated, as far as the metric allows.

    ``c(h(x))`` with the inner model h and an increasing calibrator c of slope at most 1 in the score z, for which
    ``|z(x) - z(x')| <= D(x, x')``: the log-odds of h divided by 4 if they change by at most 4 D (additive models and
    1-Lipschitz networks with a logistic link), else its probability. So ``TV(c(h(x)), c(h(x'))) <= D(x, x')`` for all
    people, plus the epsilon of h. `fit` finds the best such c on people that h was not trained on.

    Parameters
    ----------
    estimator : classifier of likewise
        A classifier that enforces a metric, such as `AdditiveClassifier`. Clones are fitted for out-of-fold scores, and
        one on all people, even if it is fitted already. Only a model in `sklearn.frozen.FrozenEstimator` is not fitted
        again: give `fit` people that it was not trained on.
    method : {"isotonic", "sigmoid"}, default="isotonic"
        "isotonic": any increasing c, by least squares; for two classes. "sigmoid" (Platt): ``sigma(a logit(h) + b)``
        with ``0 <= a <= 1``, by maximum likelihood; for models whose log-odds are within the metric, and any number of
        classes, with a common a and one b per class.
    cv : int, cross-validation generator, iterable or None, default=None
        Folds for out-of-fold scores; None is 5, shuffled.
    random_state : int, RandomState instance or None, default=None
        Seeds the folds, and the estimator if its `random_state` is None.

    Attributes
    ----------
    guarantee_ : Guarantee
    estimator_ : the fitted inner model
    map_ : the calibrator
    classes_ : ndarray of shape (n_classes,)
    n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    Covered: `predict_proba`, and `decide`, which draws from those probabilities. Not covered: `predict` (it jumps where
    classes tie), what the features leave out, groups, and accuracy. An underconfident model stays underconfident, since
    the cure needs a slope above 1. `docs/keeping.md` shows what calibration within the guarantee gains, and how an
    ordinary calibrator breaks it.

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
        "method": one_of(*MAPS),
        "cv": FOLDS,
        "random_state": SEED,
    }

    scorer_: RecalibratedScorer

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
    def map_(self) -> Calibrator:
        """The calibrator, from scores to probabilities."""
        _ = self.guarantee_  # raises if not fitted
        return self.scorer_.map

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.method == "sigmoid"
        return tags

    def learn(self, data: TrainingData, metric: BoundMetric) -> RecalibratedScorer:
        """Fit the calibrator to out-of-fold scores, and the inner model to all people."""
        if len(self.classes_) > 2 and self.method == "isotonic":
            raise InvalidInputError(  # scikit-learn's checks expect the first two sentences
                "Only binary classification is supported. The type of the target is multiclass. (This is so for "
                "method='isotonic'; method must be 'sigmoid' for more than two classes.)"
            )
        with suppress_guarantee_warnings():
            inner, scores = self._scored(data, metric.description)
        codes, counts = np.searchsorted(self.classes_, data.y), data.counts
        found = MAPS[self.method].fit(scores[counts > 0], codes[counts > 0], counts[counts > 0])
        self.estimator_ = inner
        return RecalibratedScorer(inner.scorer_, inner.encoder_, found)

    def _scored(self, data: TrainingData, metric: Metric) -> tuple[ConstrainedClassifier, FloatArray]:
        """The inner model, and out-of-fold scores."""
        if isinstance(self.estimator, FrozenEstimator):
            inner = inner_classifier(self.estimator)
            return inner, self._scores(inner, data.people)
        state, inner = check_random(self.random_state), inner_for(self.estimator, metric)
        if self.random_state is not None:
            seed_inner(inner, state)
        data, table = self._inner_data(data), data.people.named_table()
        scores = np.full((len(data), len(self.classes_)), np.nan)
        for train, test in folds_for(data, self.classes_, self.cv, int(state.randint(2**31))):
            some, known = table.iloc[train] if hasattr(table, "iloc") else table[train], data.take(train)
            model = fit_weighted(inner, some, known.y, known.weights)
            if len(model.classes_) < len(self.classes_):
                raise InvalidInputError(f"cv must leave every class in training; a fold has only {model.classes_}.")
            scores[test] = self._scores(model, data.people.take(test))
        if np.isnan(scores).any():
            raise InvalidInputError(
                f"cv must hold out every person once; row {int(np.isnan(scores).any(axis=1).argmax())} never is."
            )
        return fit_weighted(inner, table, data.y, data.weights), scores

    def _scores(self, model: ConstrainedClassifier, people: People) -> FloatArray:
        scale = scale_of(model.guarantee_)
        if self.method == "sigmoid" and not scale.has_log_odds:
            raise InvalidInputError(
                "method must be 'isotonic' for a model whose log-odds are not within the metric; got 'sigmoid' for "
                f"{type(model).__name__}. 'sigmoid' is for AdditiveClassifier and LipschitzClassifier."
            )
        return scale.scores(model.scorer_.estimate(model.encoder_.recode(people)).mean)


def scale_of(guarantee: Guarantee) -> Bound:
    """The bound whose `scores` apply to the outputs; sampled outputs only have the scale of probabilities."""
    return guarantee.curve if not guarantee.slack else Bound()


def _with_column(matrix: FloatArray, k: int, other: FloatArray) -> FloatArray:
    mixed = matrix.copy()
    mixed[:, k] = other[:, k]
    return mixed
