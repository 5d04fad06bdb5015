"""The skeleton of every estimator that enforces a metric, and the scorer that `fit` leaves behind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone

from likewise._fit_validation import (
    TrainingData,
    check_classes,
    check_fitted,
    check_sample_weight,
    range_of_outcomes,
    read_for_predict,
    read_training_array,
    restore_on_error,
    seed_from,
)
from likewise._frozen import Frozen
from likewise._guarantee_warnings import warn_if_ineffective, warn_if_vacuous
from likewise._optional import is_dask
from likewise._shared_draw import SharedDraw, probability_decided_differently
from likewise._typing import FloatArray
from likewise._validation import LIMITS, NONE, Rule, check_rules, checking
from likewise.exceptions import InvalidInputError
from likewise.kernel import rules
from likewise.kernel.certificate import Certificate, Estimate, certify
from likewise.kernel.guarantee import Guarantee
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import Encoder, People
from likewise.metrics.base import METRIC as A_METRIC
from likewise.metrics.base import Metric
from likewise.metrics.weighted_lp import WeightedLp
from likewise.reveal.regression import linear_weights

METRIC = NONE | A_METRIC


def ranges_of(people: People, metric: BoundMetric) -> FloatArray:
    """Smallest and largest number of each column, shape (n_columns, 2); NaN for categories and where there is none."""
    rows = np.where(metric.schema.is_number, metric.numbers(people.rows), np.nan)
    return np.array([np.fmin.reduce(rows, initial=np.nan), np.fmax.reduce(rows, initial=np.nan)]).T


BLOCK = 16_384  # people scored at a time, which bounds the memory for their intervals


@dataclass(frozen=True, eq=False, repr=False)
class Scorer(Frozen, ABC):
    """The immutable result of `fit`: computes the outputs.

    Its fields are evidence: the numbers of the model, and with them the metric that they were made for. The guarantee
    follows from them by a rule of the kernel, after `fit` as after loading: it is never stored.

    Every method is abstract, so that a wrapper around another scorer cannot forget to delegate one. `PlainScorer` has
    defaults for a scorer that wraps no other.
    """

    @cached_property
    def guarantee(self) -> Guarantee:
        """What follows from the evidence; `UnprovableError` if nothing does."""
        return self.prove()

    @abstractmethod
    def prove(self) -> Guarantee:
        """Apply the rule (`likewise.kernel.rules`) to the evidence."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.guarantee.level}, epsilon {self.guarantee.epsilon:.3g}>"

    @abstractmethod
    def estimate(self, people: People, *, verbose: bool = False) -> Estimate:
        """Outputs with intervals, each of shape (n_samples, n_outputs); a row's output depends on that row alone."""

    @abstractmethod
    def visible(self, people: People) -> FloatArray:
        """The values the outputs depend on: people with equal rows here have equal outputs."""

    @property
    @abstractmethod
    def reads_tables(self) -> bool:
        """Whether `estimate` reads `People.table` as well as `People.rows`."""

    @abstractmethod
    def breakpoints(self, n_columns: int) -> list[FloatArray]:
        """Per encoded column, the known values at which outputs may change slope."""

    @abstractmethod
    def draw(self, people: People, rng: np.random.Generator) -> FloatArray:
        """One random draw per person, shape (n_samples, n_outputs); its mean over `rng` is the output."""

    @abstractmethod
    def distance_to_tie(self, people: People) -> FloatArray | None:
        """Distance within which the most likely class cannot change, from the raw scores, rounded down.

        Shape (n_samples,). None for regression, or if the distance has to be derived from the probabilities.
        """


@dataclass(frozen=True, eq=False, repr=False)
class PlainScorer(Scorer):
    """A scorer that reads encoded rows only and computes its outputs without sampling."""

    @property
    def reads_tables(self) -> bool:
        """False."""
        return False

    def breakpoints(self, n_columns: int) -> list[FloatArray]:
        """No values are known."""
        return [np.empty(0)] * n_columns

    def draw(self, people: People, rng: np.random.Generator) -> FloatArray:
        """The outputs themselves."""
        return self.estimate(people).mean

    def distance_to_tie(self, people: People) -> FloatArray | None:
        """None: derived from the probabilities."""
        return None


class ConstrainedEstimator(BaseEstimator, ABC):
    """An estimator whose outputs are within a metric; subclasses implement `learn`."""

    metric: Metric | None

    rules: ClassVar[dict[str, Rule]] = {}
    """Validation rules by parameter name."""

    scorer_: Scorer
    encoder_: Encoder
    ranges_: FloatArray
    """Smallest and largest number of each column that `fit` saw; NaN for categories."""
    n_features_in_: int
    feature_names_in_: npt.NDArray[Any]

    @abstractmethod
    def learn(self, data: TrainingData, metric: BoundMetric) -> Scorer:
        """Fit to validated data, within a metric bound to these people's columns; return a scorer."""

    @abstractmethod
    def _check_target(self, y: npt.NDArray[Any]) -> None:
        """Validate the outcomes and set `classes_` or `output_range_`."""

    _classify: bool

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model. If it fails, the estimator stays as it was.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            For a `TableMetric`, a table with named columns (pandas, polars or pyarrow).
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Weights in the loss. The guarantee does not depend on them.
        """
        with restore_on_error(self):
            check_rules(self.rules, self)
            asked = self._metric_to_enforce()
            with checking():
                people, y = self._read(X, y, asked)
                data = TrainingData(people, y, check_sample_weight(sample_weight, len(people)))
                self._check_target(y)
            metric = asked
            if metric is None:
                found = linear_weights(people.rows, y, classify=self._classify, sample_weight=data.weights)
                metric = WeightedLp(found, feature_names=people.encoder.labels)
            bound = metric.bind(people.encoder)  # the only place: what is below takes it as it is
            bound.check_people(people)
            self.scorer_ = self.learn(data, bound)
            self.encoder_ = people.encoder
            self.ranges_ = ranges_of(people, bound)
            warn_if_vacuous(self.guarantee_, people)
            warn_if_ineffective(bound, people)
        return self

    @property
    def guarantee_(self) -> Guarantee:
        """The guarantee: its bound, level and basis."""
        check_fitted(self)
        found, given = self.scorer_.guarantee, self.encoder_.raw_labels
        known = found.bound_metric.schema.raw_labels
        if given is None or known is None or given == known or {*given} != {*known}:
            return found
        return rules.reread(found, self.encoder_)  # a frozen model may have its columns in another order

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as in scikit-learn.

        Metrics are immutable: ``metric__p=2`` replaces the metric by a copy with another `p`.
        """
        nested = {name: params.pop(name) for name in list(params) if name.startswith("metric__")}
        super().set_params(**params)
        if nested:
            if not isinstance(self.metric, Metric):
                raise InvalidInputError(f"{next(iter(nested))} needs a metric; metric is {self.metric!r}. Give one.")
            changes = {name.removeprefix("metric__"): value for name, value in nested.items()}
            super().set_params(metric=self.metric.with_params(**changes))
        return self

    def __sklearn_tags__(self) -> Any:
        tags: Any = super().__sklearn_tags__()
        if isinstance(self.metric, Metric):
            tags.input_tags = replace(tags.input_tags, **self.metric.input_tags)
        return tags

    def with_metric(self, metric: Metric) -> Self:
        """Return an unfitted copy with another metric."""
        return clone(self).set_params(metric=metric)  # type: ignore[no-any-return]

    @property
    def required_features_(self) -> list[Any]:
        """Columns that a table must have at prediction; columns of weight 0 are optional."""
        return [name for name in self.feature_names_in_ if name not in self.encoder_.optional]

    def visible_rows(self, X: Any) -> FloatArray:
        """The values that scores depend on: people with equal rows here have equal scores.

        Equal rows have equal bytes: no negative zeros, and one kind of NaN.

        Returns
        -------
        ndarray of shape (n_samples, n_visible)
        """
        rows = self.scorer_.visible(self._people(X))
        return np.where(np.isnan(rows), np.nan, rows + 0.0)

    def _metric_to_enforce(self) -> Metric | None:
        return self.metric

    def _read(self, X: Any, y: Any, metric: Metric | None) -> tuple[People, npt.NDArray[Any]]:
        """Validated training data; sets `n_features_in_` and `feature_names_in_`."""
        read = read_training_array if metric is None else metric.read_training
        return read(X, y, self, numeric=not self._classify)

    def _people(self, X: Any) -> People:
        """Validated people at prediction."""
        metric = self.guarantee_.bound_metric
        people = read_for_predict(X, self, self.encoder_)
        if np.isnan(people.rows).any():  # the columns themselves were checked in `fit`
            metric.rebound(people.encoder).check_people(people)
        return people

    def _by_partition(self, method: Callable[[Any], Any], X: Any, empty: Any) -> Any:
        from likewise.distributed.scoring import predict_partitions

        return predict_partitions(self, method, X, empty)

    def _means(self, X: Any) -> FloatArray:
        people, verbose = self._people(X), bool(getattr(self, "verbose", False))
        if verbose or len(people) <= BLOCK:  # a single progress bar
            return self.scorer_.estimate(people, verbose=verbose).mean
        blocks = (people.take(slice(i, i + BLOCK)) for i in range(0, len(people), BLOCK))
        return np.concatenate([self.scorer_.estimate(block).mean for block in blocks])

    def _estimate(self, people: People) -> Estimate:
        return self.scorer_.estimate(people, verbose=bool(getattr(self, "verbose", False)))


class ConstrainedClassifier(ClassifierMixin, ConstrainedEstimator):
    """Base of classifiers; the guarantee is about class probabilities."""

    _classify = True

    classes_: npt.NDArray[Any]

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities; the guarantee is about these.

        The result for a row does not depend on the other rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            For a Dask DataFrame, a Dask DataFrame with a column per class.
        """
        if is_dask(X):
            check_fitted(self)
            empty = pd.DataFrame(np.empty((0, len(self.classes_))), columns=self.classes_)
            return self._by_partition(self.predict_proba, X, empty)  # type: ignore[no-any-return]
        return self._means(X)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most likely class. **Not covered by the guarantee**, since it jumps where classes tie; see `decide`."""
        if is_dask(X):
            check_fitted(self)
            return self._by_partition(self.predict, X, pd.Series(self.classes_[:0], name="prediction"))  # type: ignore[no-any-return]
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def certify(self, X: Any) -> Certificate:
        """Per person: probabilities, an interval, and the distance at which the most likely class may change.

        Each person's certificate holds with probability ``1 - delta`` over the draws made in `fit`. Where nothing is
        sampled, it holds with certainty and the intervals have width 0.
        """
        people = self._people(X)
        distance = self.scorer_.distance_to_tie(people)
        return certify(self._estimate(people), self.guarantee_, self.classes_, distance)

    def decide(
        self, X: Any, random_state: Any = None, *, round: str | None = None, key: bytes | None = None
    ) -> npt.NDArray[Any]:
        """Draw one outcome per person from the model's probabilities.

        With `round` and `key`, everybody in the round shares one draw, so that similar people get the same outcome: two
        people at distance D are decided differently with probability at most ``decision_bound(D)``. For two classes the
        order of scores is kept, and a small change of a row changes the outcome with a small probability only. The draw
        follows from key and round; `likewise decide` writes what is needed to check it afterwards.

        Without, each person gets an independent draw: the probability of any set of outcomes differs by at most
        ``guarantee_.curve.bound(D)``, but two people who both have a probability of 60% get different outcomes 48% of
        the time. Every call draws again, and anyone who can call it repeatedly gets more chances: decide once per
        person and store the outcome.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        random_state : int, RandomState instance or None, default=None
            For independent draws. None draws afresh on each call. With a fixed seed the draw depends on the person's
            position in `X`; do not let applicants choose or learn the seed.
        round : str, optional
            Name of the round, such as a date. Outcomes of the same round and key are the same in every call.
        key : bytes, optional
            Secret of 16 bytes or more: whoever has it can foresee the outcomes.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if round is not None or key is not None:
            if random_state is not None:
                raise InvalidInputError("random_state is for independent draws. Leave it out with round and key.")
            return self._decide_together(X, SharedDraw.from_key(key, round))
        people, rng = self._people(X), np.random.default_rng(seed_from(random_state))
        votes = self.scorer_.draw(people, rng)
        # A hard vote has probability 1 for one class; a soft vote is a distribution to draw from.
        return self.outcomes_at(votes, rng.random(len(votes)))

    def decision_bound(self, distance: npt.ArrayLike) -> FloatArray:
        """Largest probability that two people of a round at `distance` are decided differently (`decide` with a key).

        ``v = guarantee_.bound(distance)`` for two classes, ``2 v / (1 + v)`` for several. For a sampled model it holds
        for each pair except with probability ``guarantee_.delta`` over the draws made in `fit`.
        """
        return probability_decided_differently(self.guarantee_.bound(distance), len(self.classes_))

    def _decide_together(self, X: Any, draw: SharedDraw) -> npt.NDArray[Any]:
        return draw.decide(self.predict_proba(X), self.classes_)

    def _known_classes(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.unique(y)

    def _check_target(self, y: npt.NDArray[Any]) -> None:
        self.classes_ = check_classes(y, self._known_classes)

    def outcomes_at(self, probabilities: FloatArray, uniform: FloatArray) -> npt.NDArray[Any]:
        """Sample classes by inversion: the class at the quantile `uniform`, in [0, 1), of each row of `probabilities`.

        If rounding makes a row sum to less than 1, the rest goes to its last class of positive probability.
        """
        beaten = probabilities.cumsum(axis=1)[:, :-1] <= uniform[:, None]
        last = probabilities.shape[1] - 1 - (probabilities[:, ::-1] > 0).argmax(axis=1)
        return np.asarray(self.classes_[np.minimum(beaten.sum(axis=1), last)])


class ConstrainedRegressor(RegressorMixin, ConstrainedEstimator):
    """Base of regressors; the guarantee is about predictions, which lie in `output_range_`."""

    _classify = False

    rules: ClassVar[dict[str, Rule]] = {"output_range": NONE | LIMITS}

    output_range: tuple[float, float] | None
    output_range_: tuple[float, float]

    def predict(self, X: Any) -> FloatArray:
        """Predictions; the guarantee is about these.

        Returns
        -------
        ndarray of shape (n_samples,)
            For a Dask DataFrame, a Dask Series.
        """
        if is_dask(X):
            check_fitted(self)
            return self._by_partition(self.predict, X, pd.Series(np.empty(0), name="prediction"))  # type: ignore[no-any-return]
        return self._means(X)[:, 0]

    def certify(self, X: Any) -> Certificate:
        """Per person: prediction, an interval, and (`Certificate.range_at`) the range at a distance."""
        return certify(self._estimate(self._people(X)), self.guarantee_)

    def _check_target(self, y: npt.NDArray[Any]) -> None:
        self.output_range_ = range_of_outcomes(y, self.output_range)
