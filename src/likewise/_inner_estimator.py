"""Estimators around another one: metadata routing, seeds, folds, and out-of-fold scores of the inner model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from likewise._fit_validation import TrainingData
from likewise._parallel import threads_for
from likewise._progress import progress_bar
from likewise._typing import FloatArray, IntArray
from likewise._validation import FOLDS, short_repr
from likewise.ask import Ask, answers, is_plain_function
from likewise.base import METRIC, ConstrainedClassifier, ConstrainedEstimator, Scorer
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.inspection.prediction import clipped_predictions, hard_votes, soft_votes
from likewise.kernel.links import to_unit_range
from likewise.kernel.schema import Encoder, People
from likewise.metrics.base import Metric


class WrapsEstimator(MetaEstimatorMixin, ConstrainedEstimator):
    """A meta-estimator that passes `sample_weight` to its inner estimator.

    With metadata routing (``sklearn.set_config(enable_metadata_routing=True)``) weights are routed only if requested
    (``set_fit_request(sample_weight=True)``); without, they are always passed on.
    """

    estimator: Any

    def get_metadata_routing(self) -> Any:
        """Routing of metadata to this estimator and to the inner one's `fit`."""
        router = MetadataRouter(owner=self).add_self_request(self)
        if hasattr(self.estimator, "get_metadata_routing"):
            router.add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        return router

    def _inner_data(self, data: TrainingData) -> TrainingData:
        """The data, with weights if the inner estimator requests them."""
        if data.weights is None or not get_config()["enable_metadata_routing"]:
            return data
        routed = process_routing(self, "fit", sample_weight=data.weights)
        return replace(data, weights=routed["estimator"].fit.get("sample_weight")) if "estimator" in routed else data

    def _known_classes(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Classes of a frozen inner estimator, or those in `y`."""
        known = getattr(self.estimator, "classes_", None) if isinstance(self.estimator, FrozenEstimator) else None
        return np.asarray(np.unique(y) if known is None else known)


class KeptEstimator(FrozenEstimator):
    """An inner model that was fitted here, to people as they are read, and is kept for another metric.

    Parameters
    ----------
    estimator : fitted estimator
    columns : tuple or None
        Names of the columns that it was fitted to; arrays do not show their order.
    """

    def __init__(self, estimator: Any, columns: tuple[Any, ...] | None = None) -> None:
        super().__init__(estimator)
        self.columns = columns


def in_order_of(estimator: Any, people: People) -> People:
    """People with their columns in the order of a frozen estimator, which is called by position.

    The metric is about the columns of `X` as they were given, so it is bound to these before.
    """
    if not isinstance(estimator, FrozenEstimator):
        return people
    known = estimator.columns if isinstance(estimator, KeptEstimator) else None
    if known is None:
        known = getattr(estimator, "feature_names_in_", None)
    if known is None:  # of likewise, and fitted to columns whose names are no text
        known = getattr(getattr(estimator, "encoder_", None), "raw_labels", None)
    given = people.encoder.raw_labels
    if known is None or given is None or {*known} == {*given}:
        return people.arranged(None if known is None else tuple(known))
    if isinstance(people.table, np.ndarray) and len(known) == len(given):
        raise InvalidInputError(
            f"estimator must be fitted to the columns of X, {list(given)}; it was fitted to {list(known)}."
        )
    return people


def as_given(estimator: Any, people: People) -> People:
    """People for a model that is not fitted here: as they were given to `fit`, in the columns of the model."""
    people = in_order_of(estimator, people)
    given = people.table if people.given is None or isinstance(estimator, KeptEstimator) else people.given
    return replace(people, table=Ask.of(estimator, given, people.encoder).given)


def seed_inner(estimator: Any, state: np.random.RandomState) -> None:
    """Set every `random_state` inside the estimator that is None."""
    params = estimator.get_params(deep=True)
    unset = sorted(name for name in params if name.split("__")[-1] == "random_state" and params[name] is None)
    estimator.set_params(**{name: int(state.randint(2**31)) for name in unset})


@dataclass(frozen=True, eq=False, repr=False)
class WrappedScorer(Scorer):
    """A scorer whose outputs are a function of another scorer's outputs.

    Attributes
    ----------
    scorer : Scorer
        Of the inner model.
    encoder : Encoder
        Of the inner model.
    """

    scorer: Scorer
    encoder: Encoder

    def visible(self, people: People) -> FloatArray:
        """What the inner model sees."""
        return self.scorer.visible(self.encoder.recode(people))

    @property
    def reads_tables(self) -> bool:
        """True: the inner model's encoder may read the table again."""
        return True

    def breakpoints(self, n_columns: int) -> list[FloatArray]:
        """Those of the inner model, unless it was fitted without a column of weight 0."""
        return self.scorer.breakpoints(n_columns) if len(self.encoder.names) == n_columns else [np.empty(0)] * n_columns

    def draw(self, people: People, rng: np.random.Generator) -> FloatArray:
        """The outputs themselves: a function of single draws would have another mean."""
        return self.estimate(people).mean

    def distance_to_tie(self, people: People) -> FloatArray | None:
        """None: the function moves the tie away from that of the inner score."""
        return None


def inner_classifier(estimator: Any) -> ConstrainedClassifier:
    """The inner classifier, unpacked if it is frozen; raise if it does not enforce a metric."""
    inner = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    if isinstance(inner, type) or not isinstance(inner, ConstrainedClassifier):
        given = inner.__name__ if isinstance(inner, type) else type(inner).__name__
        kind = "is a regressor" if isinstance(inner, ConstrainedEstimator) else "has no guarantee"
        raise InvalidTypeError(
            f"estimator must be a classifier that enforces a metric, such as AdditiveClassifier(); got {given}, which "
            f"{kind}. Enforce a metric first: what comes after a model can keep a guarantee and cannot make one."
        )
    return inner


def inner_for(estimator: Any, metric: Metric) -> ConstrainedClassifier:
    """The inner classifier for another metric, to be fitted; only a frozen one keeps what it has learned."""
    inner = inner_classifier(estimator)
    return (inner if isinstance(estimator, FrozenEstimator) else clone(inner)).with_metric(metric)


def metric_of(estimator: Any) -> Metric | None:
    """The metric of an inner estimator: the learned one if it is frozen, else its own, or that of its noise object."""
    frozen = isinstance(estimator, FrozenEstimator)
    inner = estimator.estimator if frozen else estimator
    if frozen and hasattr(inner, "scorer_"):
        return inner.guarantee_.metric  # type: ignore[no-any-return]
    metric = getattr(inner, "metric", None)
    return getattr(getattr(inner, "noise", None), "described", None) if metric is None else metric


class WrapsClassifier(WrapsEstimator, ConstrainedClassifier):
    """A classifier around one that enforces a metric, which is kept."""

    estimator_: ConstrainedClassifier

    @property
    def metric(self) -> Metric | None:  # type: ignore[override]
        """The inner estimator's metric."""
        return metric_of(self.estimator)

    def with_metric(self, metric: Metric) -> Self:
        """Return an unfitted copy around a model within another metric."""
        return clone(self).set_params(estimator=inner_for(self.estimator, metric))  # type: ignore[no-any-return]

    def _metric_to_enforce(self) -> Metric | None:
        inner = inner_classifier(self.estimator)
        METRIC.check("metric of the estimator", inner.metric)
        return inner.guarantee_.metric if isinstance(self.estimator, FrozenEstimator) else inner._metric_to_enforce()


_find_fit: ContextVar[Callable[[Any, Any, npt.NDArray[Any]], Any] | None] = ContextVar("find_fit", default=None)


@contextmanager
def reuse_fits(find: Callable[[Any, Any, npt.NDArray[Any]], Any]) -> Iterator[None]:
    """Let `fit_weighted` take models from `find`, which returns a fitted one for an unfitted one, X and y, or None."""
    token = _find_fit.set(find)
    try:
        yield
    finally:
        _find_fit.reset(token)


def fit_weighted(estimator: Any, table: Any, y: npt.NDArray[Any], weights: FloatArray | None) -> Any:
    """Fit a clone, with weights if given; raise if its `fit` does not take them."""
    model, find, routed = clone(estimator), _find_fit.get(), {}
    if weights is None:
        found = None if find is None else find(model, table, y)
        if found is not None:
            return found
    elif get_config()["enable_metadata_routing"]:  # a pipeline routes them itself
        routed = {"sample_weight": weights}
    else:
        last = model.steps[-1] if isinstance(model, Pipeline) else ("", model)
        check_takes_weights(last[1])
        routed = {f"{last[0]}__sample_weight" if isinstance(model, Pipeline) else "sample_weight": weights}
    with threads_for(table.size):
        return model.fit(table, y, **routed)


def check_takes_weights(estimator: Any, method: str = "fit") -> None:
    """Raise if an inner estimator does not support `sample_weight`."""
    if "sample_weight" not in signature(getattr(estimator, method)).parameters:
        raise InvalidTypeError(
            f"sample_weight needs an estimator whose {method} takes it; {type(estimator).__name__} does not. Leave it "
            "out."
        )


def positions_by(cv: Any, rows: Any, y: npt.NDArray[Any], *, classify: bool) -> list[tuple[IntArray, IntArray]]:
    """Train and test indices for each fold of `cv`."""
    FOLDS.check("cv", cv)
    try:
        pairs = check_cv(cv, y, classifier=classify).split(rows, y)
        folds = [(np.arange(len(y))[train], np.arange(len(y))[test]) for train, test in pairs]
    except (TypeError, ValueError, IndexError) as error:
        raise InvalidInputError(f"cv must be {FOLDS.words} of these people ({error}).") from None
    if not all(len(train) and len(test) for train, test in folds):
        raise InvalidInputError(f"cv must leave people on both sides of each fold; got {short_repr(cv)}.")
    return folds


_FOLDS = 5


def scores_of(
    model: Any, people: People, classes: npt.NDArray[Any] | None, limits: tuple[float, float] = (0.0, 1.0)
) -> FloatArray:
    """Scores of a fitted model or function, in [0, 1].

    The probability of the second of two classes (0 or 1 if the model predicts labels only), or a prediction as a
    fraction of its limits.
    """
    if classes is None:
        return to_unit_range(clipped_predictions(model, limits)(people.table)[:, 0], limits)
    if hasattr(model, "predict_proba"):
        return soft_votes(model, classes)(people.table)[:, 1]
    if hasattr(model, "predict"):
        return hard_votes(model, classes)(people.table)[:, 1]
    answer = answers(model, people.table)
    if answer.ndim == 1 and answer.dtype.kind not in "biuf":
        return hard_votes(lambda _: answer, classes)(people.table)[:, 1]
    # One column is the probability of the second class.
    return soft_votes(lambda _: answer[:, None] if answer.ndim == 1 else answer, classes)(people.table)[:, 1]


def out_of_fold_scores(
    estimator: Any,
    data: TrainingData,
    classes: npt.NDArray[Any] | None,
    limits: tuple[float, float],
    *,
    cv: Any,
    seed: int,
    verbose: bool = False,
) -> FloatArray:
    """Scores of each person by a model fitted without that person."""
    scores = np.full(len(data), np.nan)
    folds = folds_for(data, classes, cv, seed)
    with progress_bar("Fitting", len(folds), show=verbose) as advance:
        for train, test in folds:
            known = data.take(train)
            model = fit_weighted(estimator, known.people.table, known.y, known.weights)
            scores[test] = scores_of(model, data.people.take(test), classes, limits)
            advance(1)
    if np.isnan(scores).any():
        raise InvalidInputError(f"cv must hold out every person once; row {int(np.isnan(scores).argmax())} never is.")
    return scores


def is_trained_here(estimator: Any) -> bool:
    """Whether the estimator is to be fitted: not if it is frozen, nor a plain function."""
    return not is_plain_function("estimator", estimator) and not isinstance(estimator, FrozenEstimator)


def folds_for(
    data: TrainingData, classes: npt.NDArray[Any] | None, cv: Any, seed: int
) -> list[tuple[IntArray, IntArray]]:
    """Train and test indices; without `cv`, of five shuffled folds."""
    y = data.y
    if cv is None:
        least = len(y) if classes is None else int(np.unique(y, return_counts=True)[1].min())
        if least < 2:
            raise InvalidInputError("y must hold each class at least twice, for cross-validation.")
        cv = (KFold if classes is None else StratifiedKFold)(min(_FOLDS, least), shuffle=True, random_state=seed)
    return positions_by(cv, data.people.rows, y, classify=classes is not None)
