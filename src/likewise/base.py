"""What everything that enforces a metric shares: the skeleton of `fit`, and answers from what was fitted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from likewise._frozen import Frozen
from likewise._optional import is_dask
from likewise._typing import FloatArray
from likewise._validation import LIMITS, NOTHING, Rule, check_labels, check_random, check_rules, check_size, checking
from likewise.exceptions import InvalidInputError, InvalidTypeError, LikewiseError
from likewise.guarantees.certificate import Certificate, Estimate, certify
from likewise.guarantees.guarantee import Guarantee, warn_if_ineffective, warn_if_vacuous
from likewise.metrics.base import Metric
from likewise.metrics.encoders import ArrayEncoder, People, as_frame, labels_of
from likewise.metrics.weighted_lp import WeightedLp
from likewise.reveal.regression import linear_weights

METRIC = NOTHING | Rule(
    "a Metric, such as WeightedLp or TableMetric",
    lambda value: isinstance(value, Metric),
    "Wrap a function of people in FunctionMetric.",
    InvalidTypeError,
)

BLOCK = 16_384  # people at a time: of their intervals, no more is held


@dataclass(frozen=True, eq=False, repr=False)
class Scorer(Frozen, ABC):
    """What was fitted: it answers for people, and nothing that is changed later reaches it.

    Everything is abstract, so that a scorer around another one cannot forget to pass something on. One that stands
    alone is a `PlainScorer`, which has the usual answers.

    Attributes
    ----------
    guarantee : Guarantee
        What is promised about its answers.
    """

    guarantee: Guarantee

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.guarantee.level}, epsilon {self.guarantee.epsilon:.3g}>"

    @abstractmethod
    def estimate(self, people: People, *, verbose: bool = False) -> Estimate:
        """Outputs with intervals, each of shape (n_samples, n_outputs); they depend on the person alone."""

    @abstractmethod
    def visible(self, people: People) -> FloatArray:
        """What the outputs depend on: two people with equal rows here have equal outputs."""

    @property
    @abstractmethod
    def reads_tables(self) -> bool:
        """Whether outputs need people as a table, beside their numbers."""

    @abstractmethod
    def landmarks(self, n_columns: int) -> list[FloatArray]:
        """Numbers, per column of coded people, at which the outputs may turn, as far as known."""

    @abstractmethod
    def draw(self, people: People, rng: np.random.Generator) -> FloatArray:
        """One vote per person, shape (n_samples, n_outputs), whose mean over `rng` is the output."""

    @abstractmethod
    def distance_to_tie(self, people: People) -> FloatArray | None:
        """Distance within which the most likely class stays the same, by the score behind it; rounded down.

        Of shape (n_samples,). None where there is no such score, and for regression: probabilities then say how far.
        """


@dataclass(frozen=True, eq=False, repr=False)
class PlainScorer(Scorer):
    """A scorer that stands alone: numbers and codes are all it reads, and its outputs are computed."""

    @property
    def reads_tables(self) -> bool:
        """Not."""
        return False

    def landmarks(self, n_columns: int) -> list[FloatArray]:
        """None are known."""
        return [np.empty(0)] * n_columns

    def draw(self, people: People, rng: np.random.Generator) -> FloatArray:
        """The outputs themselves."""
        return self.estimate(people).mean

    def distance_to_tie(self, people: People) -> FloatArray | None:
        """None: probabilities say it."""
        return None


class ConstrainedEstimator(BaseEstimator, ABC):
    """An estimator within a metric; a subclass says in `learn` how it becomes one."""

    metric: Metric | None

    rules: ClassVar[dict[str, Rule]] = {}
    """What the parameters may be, by name."""

    scorer_: Scorer
    encoder_: Any  # a Coding
    n_features_in_: int
    feature_names_in_: npt.NDArray[Any]

    @abstractmethod
    def learn(self, people: People, y: npt.NDArray[Any], weights: FloatArray | None, metric: Metric) -> Scorer:
        """Learn from people with known outcomes; return what was learned, with its promise."""

    @abstractmethod
    def _check_target(self, y: npt.NDArray[Any]) -> None:
        """Set what is known of the outputs before learning."""

    _classify: bool

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from people with known outcomes, all or nothing.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            With a metric of tables, a table with named columns (pandas, polars or pyarrow).
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            What each person counts in learning; the promise is the same for all.
        """
        with all_or_nothing(self):
            check_rules(self.rules, self)
            asked = self._asked_metric()
            with checking():
                people, y = self._read(X, y, asked)
                weights = _check_sample_weight(sample_weight, len(people))
                self._check_target(y)
            metric = asked
            if metric is None:
                found = linear_weights(people.rows, y, classify=self._classify, sample_weight=weights)
                metric = WeightedLp(found, feature_names=people.encoder.labels)
            metric.check_people(people)
            self.scorer_ = self.learn(people, y, weights, metric)
            self.encoder_ = people.encoder
            warn_if_vacuous(self.guarantee_, people)
            warn_if_ineffective(metric, people)
        return self

    @property
    def guarantee_(self) -> Guarantee:
        """What is promised, at which level, and why."""
        check_fitted(self)
        return self.scorer_.guarantee

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as in scikit-learn.

        A metric never changes: ``metric__p=2`` puts another one in its place, which differs in `p` alone.
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
        if isinstance(self.metric, Metric) and self.metric.takes_tables:
            kinds = tags.input_tags
            kinds.two_d_array, kinds.allow_nan = False, self.metric.allows_missing
            kinds.categorical = kinds.string = self.metric.has_categories
        return tags

    def with_metric(self, metric: Metric) -> Self:
        """Return an unfitted estimator like this one, for another metric."""
        return clone(self).set_params(metric=metric)  # type: ignore[no-any-return]

    @property
    def required_features_(self) -> list[Any]:
        """Names of the columns that a table must have at prediction; those of weight 0 need not be there."""
        hidden = getattr(self.encoder_, "optional", ())
        return [name for name in self.feature_names_in_ if name not in hidden]

    def visible_rows(self, X: Any) -> FloatArray:
        """What the scores of people depend on: two people with equal rows here have equal scores.

        Rows of equal numbers have equal bytes: there is no negative zero, and one NaN.

        Returns
        -------
        ndarray of shape (n_samples, n_visible)
        """
        rows = self.scorer_.visible(self._people(X))
        return np.where(np.isnan(rows), np.nan, rows + 0.0)

    def _draws(self, X: Any, random_state: Any) -> tuple[FloatArray, np.random.Generator]:
        """One vote per person, of shape (n_samples, n_outputs), and what further draws come from."""
        people, rng = self._people(X), np.random.default_rng(seed_from(random_state))
        return self.scorer_.draw(people, rng), rng

    def _asked_metric(self) -> Metric | None:
        return self.metric

    def _read(self, X: Any, y: Any, metric: Metric | None) -> tuple[People, npt.NDArray[Any]]:
        """People and outcomes of `fit`, checked."""
        X = self._as_frozen(X)
        if metric is None or not metric.takes_tables:
            options = {"dtype": np.float64, "y_numeric": not self._classify, "ensure_min_samples": 2}
            labels = labels_of(X)
            X, y = validate_data(self, X, y, **options)
            encoder = ArrayEncoder(X.shape[1], labels)
            check_size(X, encoder.names)
            return People(X, encoder, X), y
        frame = as_frame(X)
        if len(frame) < 2:
            raise InvalidInputError(f"X must hold at least two people; got {len(frame)} rows.")
        y = check_outcomes(y, numeric=not self._classify)
        check_consistent_length(frame, y)
        self.n_features_in_, self.feature_names_in_ = frame.shape[1], np.array(frame.columns, dtype=object)
        return People.read(frame, metric.encoder(frame)), y

    def _as_frozen(self, X: Any) -> Any:
        """A table with its columns in the order of the frozen model inside, which is asked by position later on."""
        inner, given = getattr(self, "estimator", None), labels_of(X)
        known = getattr(inner, "feature_names_in_", None) if isinstance(inner, FrozenEstimator) else None
        if known is None or given is None or given == tuple(known) or {*given} != {*known}:
            return X
        return as_frame(X)[list(known)]

    def _people(self, X: Any) -> People:
        """People in `predict` and its like, checked."""
        metric = self.guarantee_.metric
        if not metric.takes_tables:
            given = self.encoder_.arranged(X)
            with checking():
                rows = validate_data(self, given, dtype=np.float64, order="C", reset=False)
            check_size(rows, self.encoder_.names)
            return People(rows, self.encoder_, rows)
        people = metric.people(X, self.encoder_)
        if not len(people):
            raise InvalidInputError("X must hold at least one person; got a table without rows.")
        return people

    def _by_partition(self, method: Callable[[Any], Any], X: Any, nobody: Any) -> Any:
        """Answers for each partition of a Dask DataFrame; `nobody` is an answer for no rows."""
        from likewise.distributed.frames import DaskTable, map_partitions

        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            DaskTable(X).check_columns(self.required_features_, "which the model needs")
        return map_partitions(method, X, names, nobody)

    def _means(self, X: Any) -> FloatArray:
        people, verbose = self._people(X), bool(getattr(self, "verbose", False))
        if verbose or len(people) <= BLOCK:  # one bar for all
            return self.scorer_.estimate(people, verbose=verbose).mean
        blocks = (people.take(slice(i, i + BLOCK)) for i in range(0, len(people), BLOCK))
        return np.concatenate([self.scorer_.estimate(block).mean for block in blocks])

    def _estimate(self, X: Any) -> Estimate:
        return self._estimate_of(self._people(X))

    def _estimate_of(self, people: People) -> Estimate:
        return self.scorer_.estimate(people, verbose=bool(getattr(self, "verbose", False)))


class ConstrainedClassifier(ClassifierMixin, ConstrainedEstimator):
    """Classes: the promise is about their probabilities."""

    _classify = True

    classes_: npt.NDArray[Any]

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities; the guarantee is about these.

        They depend on the row alone, not on the batch it comes in.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            For a Dask DataFrame, a Dask DataFrame with a column per class.
        """
        if is_dask(X):
            check_fitted(self)
            nobody = pd.DataFrame(np.empty((0, len(self.classes_))), columns=self.classes_)
            return self._by_partition(self.predict_proba, X, nobody)  # type: ignore[no-any-return]
        return self._means(X)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most likely class. **Not covered by the guarantee**: it jumps where classes tie; see `decide`."""
        if is_dask(X):
            check_fitted(self)
            return self._by_partition(self.predict, X, pd.Series(self.classes_[:0], name="prediction"))  # type: ignore[no-any-return]
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def certify(self, X: Any) -> Certificate:
        """Per person: probabilities, an interval, and the distance at which the most likely class may change.

        Each person's certificate holds with probability ``1 - delta`` over the draws made in `fit`; with certainty
        where nothing is sampled, and there the intervals have width 0.
        """
        people = self._people(X)
        distance = self.scorer_.distance_to_tie(people)
        return certify(self._estimate_of(people), self.guarantee_, self.classes_, distance)

    def decide(self, X: Any, random_state: Any = None) -> npt.NDArray[Any]:
        """Draw one outcome per person from the model's probabilities.

        Covered, without error of sampling: between two people at distance D the probability of any set of outcomes
        differs by at most ``guarantee_.curve.bound(D)``. The chances are close, not the outcomes: every person has a
        draw of their own. Of two people with the same probability of 60%, one gets an outcome that the other does not
        get 48% of the time. Each call draws again, so whoever can ask again, or with a slightly different row, gets
        another chance: decide once per person, and keep the outcome.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        random_state : int, RandomState instance or None, default=None
            None draws afresh on each call. With a fixed seed the draw depends on the person's position in `X`. Do not
            let applicants choose or learn a seed. `likewise score --decide` draws by a secret key and the row instead.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        votes, rng = self._draws(X, random_state)
        # Hard votes put all the mass on one class; others are probabilities to draw from.
        return self.outcomes_at(votes, rng.random(len(votes)))

    def _known_classes(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.unique(y)

    def _check_target(self, y: npt.NDArray[Any]) -> None:
        check_labels(y)
        known, classes = np.unique(y), self._known_classes(y)
        if len(classes) < 2:
            raise InvalidInputError(f"y must hold at least two classes; got only one class, {classes[0]!r}.")
        if not np.isin(known, classes).all():
            raise InvalidInputError(f"y must hold classes of the fitted estimator, {list(classes)}; got {list(known)}.")
        self.classes_ = classes

    def outcomes_at(self, probabilities: FloatArray, uniform: FloatArray) -> npt.NDArray[Any]:
        """The class that a number from 0 to below 1 stands for, per person: uniform numbers give the probabilities.

        Probabilities that add up to a little less than 1, by rounding, leave the rest to the last class that has any.
        """
        beaten = probabilities.cumsum(axis=1)[:, :-1] <= uniform[:, None]
        last = probabilities.shape[1] - 1 - (probabilities[:, ::-1] > 0).argmax(axis=1)
        return np.asarray(self.classes_[np.minimum(beaten.sum(axis=1), last)])


class ConstrainedRegressor(RegressorMixin, ConstrainedEstimator):
    """Numbers within a range: the promise is about predictions."""

    _classify = False

    rules: ClassVar[dict[str, Rule]] = {"output_range": NOTHING | LIMITS}

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
        return certify(self._estimate(X), self.guarantee_)

    def decide(self, X: Any, random_state: Any = None) -> FloatArray:
        """One number per person, whose mean over draws is the prediction.

        A smoothed model gives what the inner model predicts under a single draw of the noise: between two people at
        distance D the probability of any set of numbers differs by at most ``guarantee_.curve.bound(D)``. Models that
        compute their predictions (additive models, 1-Lipschitz networks, projections) draw nothing. There it is
        `predict`, whose difference is at most ``guarantee_.bound(D)``; the probabilities of sets of numbers are 0 or 1,
        and may differ by 1 however close two people are.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        random_state : int, RandomState instance or None, default=None
            None draws afresh on each call.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._draws(X, random_state)[0][:, 0]

    def _check_target(self, y: npt.NDArray[Any]) -> None:
        if self.output_range is not None:
            low, high = self.output_range
            self.output_range_ = float(low), float(high)
            return
        low, high = float(y.min()), float(y.max())
        if low == high:
            raise InvalidInputError(
                f"y is constant ({low:g}), so output_range cannot be taken from it. Give output_range."
            )
        self.output_range_ = low, high


class UnfittedError(LikewiseError, NotFittedError):
    """An estimator that is asked before `fit`: scikit-learn's own error, and one of ours."""


def check_fitted(estimator: Any) -> None:
    """Raise if an estimator has not been fitted."""
    try:
        check_is_fitted(estimator)
    except NotFittedError as error:
        raise UnfittedError(str(error)) from None


def seed_from(random_state: Any) -> int:
    """128 random bits: too many to be found by trying."""
    words = check_random(random_state).randint(0, 2**32, size=4, dtype=np.uint32)
    return int.from_bytes(words.astype("<u4").tobytes(), "little")


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Leave the estimator as it was if something fails."""
    before = estimator.__dict__.copy()
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def check_outcomes(y: Any, *, numeric: bool) -> npt.NDArray[Any]:
    """Outcomes as an array; raise if one is missing, or not what it should be."""
    if y is None or pd.isna(np.asarray(y, dtype=object)).any():
        raise InvalidInputError(
            "y must hold one outcome per person, none of them missing; got None or NaN. Drop these rows."
        )
    try:
        kind = np.float64 if numeric else None
        return column_or_1d(check_array(y, ensure_2d=False, dtype=kind, input_name="y"))  # type: ignore[no-any-return]
    except ValueError as error:
        what, words = "number" if numeric else "label", " ".join(str(error).split())
        raise InvalidInputError(f"y must hold one {what} per person ({words}).") from None


def _check_sample_weight(given: Any, n_samples: int) -> FloatArray | None:
    if given is None:
        return None
    weights: FloatArray = column_or_1d(
        check_array(given, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    )
    if len(weights) != n_samples:
        raise InvalidInputError(f"sample_weight must have one weight per row of X ({n_samples}); got {len(weights)}.")
    if (weights < 0).any() or not weights.any():
        raise InvalidInputError(
            f"sample_weight must not be negative, nor zero for all; got {weights.min():g}. Use 0 for who must not "
            "count."
        )
    return weights
