"""The estimators: any model, turned into one with an individual-fairness guarantee."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from likewise._checks import check_count, check_positive, check_probability
from likewise.certificate import Certificate, certify_classes, certify_predictions
from likewise.coding import TableCoding, as_frame
from likewise.guarantee import Guarantee
from likewise.metrics import FloatArray, WeightedLp
from likewise.minimal import linear_weights
from likewise.noise import Gaussian, Laplace, Noise, Splitting, Uniform
from likewise.table_noise import TableNoise
from likewise.tables import TableMetric
from likewise.training import fit_on_noisy_copies
from likewise.voting import (
    Ballot,
    Bank,
    Cells,
    Decode,
    Estimate,
    Mixed,
    Voter,
    candidate_noise,
    choose_voter,
    has_formula,
    single_votes,
    without_formula,
)

_NOISES: dict[str, type[Noise]] = {"gaussian": Gaussian, "laplace": Laplace, "uniform": Uniform, "splitting": Splitting}


def _all_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Leave the estimator as it was if `fit` fails."""

    @functools.wraps(fit)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = self.__dict__.copy()
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return wrapped


@dataclass(frozen=True)
class _Drawing:
    """What `fit` was told about draws; later changes of parameters must not touch a promise already made."""

    epsilon: float
    delta: float
    n_draws: int | None


class _Smoothed(MetaEstimatorMixin, BaseEstimator):
    """What the two estimators share: preparing a metric, a noise, a bank and an inner model."""

    estimator: Any
    metric: WeightedLp | TableMetric | None
    noise: str | Noise
    epsilon: float
    delta: float
    n_draws: int | str
    augment: int
    random_state: Any
    n_jobs: int | None
    verbose: bool

    estimator_: Any
    noise_: Noise | TableNoise
    perturbation_: Bank | Cells | Mixed
    coding_: TableCoding
    drawing_: _Drawing
    n_draws_: int
    guarantee_: Guarantee

    def decide(self, X: Any, random_state: Any = None) -> npt.NDArray[Any]:
        """Draw one outcome per person from the smoothed model, at the cost of one evaluation each.

        Covered, without sampling error: the outcome's law is exactly the smoothed model, so between two people
        at distance D the probability of any set of outcomes differs by at most ``guarantee_.noise.bound(D)``.
        It is random by design: equal people have equal chances, not always equal outcomes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        random_state : int, RandomState instance or None, default=None
            None draws afresh on each call. Do not let applicants choose or learn a fixed seed.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        rng = np.random.default_rng(_seed(random_state))
        votes = single_votes(
            self._ballot.of(self.estimator_), self._check_rows(X), self.perturbation_, self._ballot.n_outputs, rng
        )
        return self._outcomes(votes, rng)

    def visible_rows(self, X: Any) -> npt.NDArray[np.generic]:
        """What the draws may see of people: two people with equal rows here have equal scores.

        Returns
        -------
        ndarray of shape (n_samples, n_visible)
        """
        check_is_fitted(self)
        return self.perturbation_.prepare(self._check_rows(X))

    def _check_data(self, X: Any, y: Any, *, numeric: bool) -> tuple[FloatArray, npt.NDArray[Any], Any]:
        """Return people as numbers, the target, and the people as the inner model takes them."""
        if not isinstance(self.metric, TableMetric):
            self.__dict__.pop("coding_", None)  # of an earlier fit
            X, y = _numbers(
                lambda: validate_data(self, X, y, dtype=np.float64, y_numeric=numeric, ensure_min_samples=2)
            )
            return X, y, X
        frame = as_frame(X)
        if len(frame) < 2:
            raise ValueError(f"X must hold at least two people; got {len(frame)} rows.")
        y = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64 if numeric else None, input_name="y"))
        check_consistent_length(frame, y)
        self.coding_ = self.metric.coding(frame)
        self.n_features_in_, self.feature_names_in_ = frame.shape[1], np.array(frame.columns, dtype=object)
        return self.metric.encode(frame, self.coding_), y, frame

    def _prepare(self, X: FloatArray, y: npt.NDArray[Any], rows: Any, *, classes: npt.NDArray[Any] | None) -> None:
        """Set everything that `fit` learns, for checked data."""
        check_probability("delta", self.delta)
        epsilon = check_positive("epsilon", self.epsilon, cure="No finite number of draws gives 0.")
        if epsilon >= 1:
            raise ValueError(f"epsilon must be below 1, the largest possible difference; got {self.epsilon!r}.")
        n_copies = check_count("augment", self.augment, least=0, cure="0 trains on the data as they are.")
        if self.n_draws != "auto":
            check_count("n_draws", self.n_draws, cure="'auto' takes what epsilon and delta need.")
        if self.n_jobs is not None:
            check_count("n_jobs", self.n_jobs, cure="None uses every core.")

        metric = self._choose_metric(X, y, classify=classes is not None)
        working = metric
        if isinstance(metric, TableMetric) and self.coding_.is_plain and not metric.allows_missing:
            # A table of numbers is an array: formulas and fast networks work there.
            working, X = metric.as_weighted(self.coding_.names), np.nan_to_num(X)
        self.drawing_ = _Drawing(epsilon, float(self.delta), self._fixed_draws)
        state = check_random_state(self.random_state)
        seed = _seed(state)
        noise = self._first_noise(working)
        self.perturbation_ = self._perturbation(noise, X, seed)
        self.estimator_ = self._fit_inner(X, y, rows, classes, n_copies, state)
        if self.noise == "auto" and isinstance(self.perturbation_, Bank):
            # Whether there is a formula is only known now. Else: the noise that needs the fewest evaluations.
            other = without_formula(self.perturbation_.noise.metric.p)
            if type(noise) is not other and not has_formula(self.estimator_, self.perturbation_, self._ballot):
                self.perturbation_ = self._perturbation(other.for_metric(self.perturbation_.noise.metric), X, seed)
        self.noise_ = self.perturbation_.noise
        if isinstance(metric, TableMetric) and isinstance(self.noise_, Noise):
            self.noise_ = TableNoise(metric, self.noise_, isinstance(self.noise_, Splitting))
        voter = self._voter()
        self.n_draws_ = voter.n_draws
        self.guarantee_ = Guarantee(
            self.noise_, voter.epsilon, voter.delta, voter.level, voter.n_draws, self._output_range
        )

    def _perturbation(self, noise: Noise | TableNoise, X: FloatArray, seed: int) -> Bank | Cells | Mixed:
        n_draws, epsilon = self._fixed_draws, float(self.epsilon)
        if isinstance(noise, TableNoise):
            return Mixed.from_training_data(noise, X, self.coding_, seed, n_draws=n_draws, epsilon=epsilon)
        if isinstance(noise, Splitting):
            return Cells.from_training_data(noise, X, n_draws=n_draws, epsilon=epsilon)
        return Bank.from_training_data(noise, X, seed)

    @property
    def _fixed_draws(self) -> int | None:
        return None if self.n_draws == "auto" else int(self.n_draws)

    def _first_noise(self, metric: WeightedLp | TableMetric) -> Noise | TableNoise:
        if isinstance(self.noise, Noise):
            return self.noise
        if isinstance(metric, TableMetric):
            kind = without_formula(metric.p) if self.noise == "auto" else _NOISES[self.noise]
            return TableNoise.for_metric(metric, kind)
        if self.noise == "auto":
            formula = self._fixed_draws is None
            return candidate_noise(self.estimator, self._ballot, metric.p, formula=formula).for_metric(metric)
        return _NOISES[self.noise].for_metric(metric)

    def _voter(self) -> Voter:
        return choose_voter(
            self.estimator_,
            self.perturbation_,
            self._ballot,
            epsilon=self.drawing_.epsilon,
            delta=self.drawing_.delta,
            n_draws=self.drawing_.n_draws,
            n_jobs=self.n_jobs,
        )

    def _choose_metric(self, X: FloatArray, y: npt.NDArray[Any], *, classify: bool) -> WeightedLp | TableMetric:
        metric, noise, n_features = self.metric, self.noise, X.shape[1]
        if isinstance(noise, Noise):
            if isinstance(metric, TableMetric):
                raise ValueError(f"noise must be given by name for a TableMetric; got {noise!r}.")
            if metric is not None and metric != noise.metric:
                raise ValueError(
                    f"noise and metric must fit: noise was made for {noise.metric!r}, metric is {metric!r}. "
                    "Leave metric out, or give the noise by name."
                )
            metric = noise.metric
        elif noise != "auto" and noise not in _NOISES:
            raise ValueError(
                f"noise must be 'auto', {', '.join(map(repr, _NOISES))} or a noise made with for_metric; got {noise!r}."
            )
        if metric is None:
            metric = WeightedLp(linear_weights(X, y, classify=classify), p=1).normalized()
        if isinstance(metric, TableMetric):
            return metric
        if not isinstance(metric, WeightedLp):
            raise TypeError(f"metric must be a WeightedLp, a TableMetric or None; got {type(metric).__name__}.")
        if metric.n_features != n_features:
            raise ValueError(
                f"metric must have one weight per feature of X ({n_features}); it has {metric.n_features}: {metric!r}."
            )
        names = getattr(self, "feature_names_in_", None)
        if names is not None and metric.feature_names not in (None, tuple(names)):
            raise ValueError(
                f"metric must have the columns of X in their order, {list(names)}; it has {list(metric.feature_names)}."
            )
        return metric

    def _fit_inner(
        self,
        X: FloatArray,
        y: npt.NDArray[Any],
        rows: Any,
        classes: npt.NDArray[Any] | None,
        n_copies: int,
        state: Any,
    ) -> Any:
        given = self.estimator
        if isinstance(given, type):
            raise TypeError(f"estimator must be an instance, not a class; use {given.__name__}().")
        if not hasattr(given, "predict"):
            if not callable(given) or hasattr(given, "fit"):
                raise TypeError(
                    f"estimator must have a predict method or be a function of rows; got {type(given).__name__}."
                )
            if n_copies:
                raise ValueError(f"augment must be 0 for a plain function, which cannot be trained; got {n_copies}.")
            return given
        estimator = clone(given)
        if n_copies and isinstance(estimator, FrozenEstimator):
            raise ValueError(f"augment must be 0 for a FrozenEstimator, which cannot be trained; got {n_copies}.")
        if self.random_state is not None:
            _seed_inner(estimator, state)
        if not n_copies:
            return estimator.fit(rows, y)
        rng = np.random.default_rng(_seed(state))
        options = {"decode": self.coding_.decode} if self._of_tables else {}
        return fit_on_noisy_copies(
            estimator, X, y, self.perturbation_, n_copies, rng, classes=classes, verbose=bool(self.verbose), **options
        )

    @property
    def _of_tables(self) -> bool:
        return hasattr(self, "coding_")

    @property
    def _decode(self) -> Decode | None:
        """How votes get from perturbed rows to the model; None if it takes rows of numbers."""
        if not self._of_tables:
            return None
        perturbation, estimator = getattr(self, "perturbation_", None), getattr(self, "estimator_", None)
        takes_numbers = not isinstance(perturbation, Mixed) and hasattr(estimator, "feature_names_in_")
        return None if takes_numbers else self.coding_.decode

    def _check_rows(self, X: Any) -> FloatArray:
        """People as numbers, in `predict` and its like."""
        if not self._of_tables:
            return np.asarray(_numbers(lambda: validate_data(self, X, dtype=np.float64, order="C", reset=False)))
        metric: Any = self.noise_.metric
        codes: FloatArray = metric.encode(as_frame(X), self.coding_)
        # Where there is no `Mixed`, only columns that must not matter may be missing, and nobody looks at those.
        return codes if isinstance(self.perturbation_, Mixed) else np.nan_to_num(codes)

    def _estimate(self, X: Any) -> Estimate:
        check_is_fitted(self)
        return self._voter().estimate(self._check_rows(X), verbose=bool(self.verbose))

    @property
    def _output_range(self) -> tuple[float, float] | None:
        return None

    @property
    @abstractmethod
    def _ballot(self) -> Ballot: ...

    @abstractmethod
    def _outcomes(self, votes: FloatArray, rng: np.random.Generator) -> npt.NDArray[Any]: ...


class SmoothedClassifier(ClassifierMixin, _Smoothed):
    """A classifier whose probabilities are close for people who are close.

    ``h(x)[y] = E_t[1{f(x + t) = y}]``, the share of votes of the inner model f under noise t calibrated to a
    metric D. For all people x and x', ``TV(h(x), h(x')) <= noise.bound(D(x, x')) <= D(x, x')``; where h has no formula,
    averaging over finitely many draws adds `epsilon`, except with probability `delta` per pair.

    Covers / does not cover
    -----------------------
    The promise is about `predict_proba` and `decide`, for every inner model. It is not about `predict`: the most
    likely class jumps somewhere. It says nothing about what the features leave out, about groups, or about
    accuracy. See ``guarantee_.statement`` and `docs/limitations.md`.

    Parameters
    ----------
    estimator : classifier or callable
        Any scikit-learn classifier; it is cloned and fitted in `fit`. Wrap a fitted one in
        `sklearn.frozen.FrozenEstimator`. A plain function of rows returns labels, or one column of scores per
        class in sorted order.
    metric : WeightedLp or TableMetric, optional
        Distance between people. With a `TableMetric`, people are rows of a table (pandas, polars or pyarrow), noise
        is added in natural units, and the estimator is one that takes such a table, such as a Pipeline. None
        derives `linear_metric` from the training data.
    noise : {"auto", "gaussian", "laplace", "uniform", "splitting"} or Noise, default="auto"
        "auto" takes a noise under which f has a formula (two-class linear models with hard votes; trees, and
        forests with soft votes or votes of trees), else `Splitting` for p = 1 and Gaussian noise for other p.
    vote : {"hard", "soft", "trees"}, default="hard"
        Whether f votes with its predicted class, with its class probabilities, or, for forests, each tree with
        its predicted class.
    epsilon, delta : float, default=0.01 and 0.001
        Error of drawing, and the probability per pair that it is larger. Formulas have neither, `Splitting` has no
        delta; see ``guarantee_``.
    n_draws : int or "auto", default="auto"
        Evaluations of f per person. "auto" takes none where there is a formula, and else what `epsilon` and `delta`
        need (of random draws: as many as each person needs). A number overrides `epsilon`, and
        ``guarantee_.epsilon`` says what it gives.
    augment : int, default=0
        Train f on that many noisy copies of each person, with fresh noise in each epoch if f has `partial_fit`.
        0 trains on the data as they are. Noisy copies usually keep more accuracy after smoothing.
    random_state : int, RandomState instance or None, default=None
        Seeds the draws, and f where it has a `random_state` of None. Keep it secret: who knows the draws can look
        for people for whom they err.
    n_jobs : int, optional
        Threads for formulas and networks; None uses every core. Results do not depend on it.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    guarantee_ : Guarantee
    estimator_ : the fitted inner model
    noise_ : Noise
    n_draws_ : int
    classes_ : ndarray of shape (n_classes,)
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = make_classification(random_state=0)
    >>> model = SmoothedClassifier(DecisionTreeClassifier(), random_state=0).fit(X, y)
    >>> model.predict_proba(X[:2]).shape
    (2, 2)
    >>> model.guarantee_.level, model.guarantee_.epsilon
    ('exact', 0.0)
    """

    classes_: npt.NDArray[Any]

    def __init__(
        self,
        estimator: Any,
        *,
        metric: WeightedLp | TableMetric | None = None,
        noise: str | Noise = "auto",
        vote: Literal["hard", "soft", "trees"] = "hard",
        epsilon: float = 0.01,
        delta: float = 1e-3,
        n_draws: int | str = "auto",
        augment: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.metric = metric
        self.noise = noise
        self.vote = vote
        self.epsilon = epsilon
        self.delta = delta
        self.n_draws = n_draws
        self.augment = augment
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Choose the noise, draw the seed of the bank, and fit the inner model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        """
        if self.vote not in ("hard", "soft", "trees"):
            raise ValueError(f"vote must be 'hard', 'soft' or 'trees'; got {self.vote!r}.")
        if self.vote == "soft" and hasattr(self.estimator, "predict") and not hasattr(self.estimator, "predict_proba"):
            raise TypeError(
                f"estimator must have predict_proba for vote='soft'; {type(self.estimator).__name__} has not. "
                "Use vote='hard'."
            )
        X, y, rows = self._check_data(X, y, numeric=False)
        check_classification_targets(y)
        known = np.unique(y)
        classes = np.asarray(getattr(self.estimator, "classes_", known) if _is_frozen(self.estimator) else known)
        if len(classes) < 2:
            raise ValueError(f"y must hold at least two classes; got only one class, {classes[0]!r}.")
        if not np.isin(known, classes).all():
            raise ValueError(f"y must hold classes of the fitted estimator, {list(classes)}; got {list(known)}.")
        self.classes_ = classes
        self._prepare(X, y, rows, classes=classes)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities of the smoothed model; the guarantee is about these.

        They depend on the row alone, not on the batch it comes in.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._estimate(X).mean

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Most likely class. **Not covered by the guarantee**: it jumps where classes tie; see `decide`."""
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def certify(self, X: Any) -> Certificate:
        """Per person: probabilities, an interval, and the distance at which the most likely class may change.

        Each person's certificate holds with probability ``1 - delta`` over the draws made in `fit`; with certainty
        where nothing is sampled, and there the intervals have width 0.
        """
        return certify_classes(self._estimate(X), self.guarantee_, self.classes_)

    @property
    def _ballot(self) -> Ballot:
        return Ballot(self.vote, self.classes_, decode=self._decode)

    def _outcomes(self, votes: FloatArray, rng: np.random.Generator) -> npt.NDArray[Any]:
        # Hard votes put all the mass on one class; soft votes are a law to draw from.
        beaten = votes.cumsum(axis=1)[:, :-1] <= rng.random(len(votes))[:, None]
        return np.asarray(self.classes_[beaten.sum(axis=1)])


class SmoothedRegressor(RegressorMixin, _Smoothed):
    """A regressor whose predictions are close for people who are close.

    ``h(x) = E_t[f(x + t)]`` with f clipped to `output_range` ``(a, b)`` and noise t calibrated to a metric D. For all
    people x and x', ``|h(x) - h(x')| <= (b - a) noise.bound(D(x, x')) <= (b - a) D(x, x')``; averaging over
    finitely many draws adds ``(b - a) epsilon``, except with probability `delta` per pair.

    Covers / does not cover
    -----------------------
    The promise is about `predict` and `decide`, for every inner model. It says nothing about what the features
    leave out, about groups, or about accuracy. See ``guarantee_.statement`` and `docs/limitations.md`.

    Parameters
    ----------
    estimator : regressor or callable
        As for `SmoothedClassifier`; a plain function returns one number per row.
    metric, noise, epsilon, delta, n_draws, augment, random_state, n_jobs, verbose
        As for `SmoothedClassifier`; `epsilon` is in units of ``b - a``.
    output_range : tuple of float, optional
        Limits ``(a, b)`` to which the predictions of f are clipped. None takes the range of `y` in `fit`.

    Attributes
    ----------
    output_range_ : tuple of float
    guarantee_, estimator_, noise_, n_draws_, n_features_in_, feature_names_in_ : as for `SmoothedClassifier`

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = make_regression(random_state=0)
    >>> model = SmoothedRegressor(LinearRegression(), n_draws=500, output_range=(-400, 400)).fit(X, y)
    >>> model.predict(X[:3]).shape
    (3,)
    """

    output_range_: tuple[float, float]

    def __init__(
        self,
        estimator: Any,
        *,
        metric: WeightedLp | TableMetric | None = None,
        output_range: tuple[float, float] | None = None,
        noise: str | Noise = "auto",
        epsilon: float = 0.01,
        delta: float = 1e-3,
        n_draws: int | str = "auto",
        augment: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.metric = metric
        self.output_range = output_range
        self.noise = noise
        self.epsilon = epsilon
        self.delta = delta
        self.n_draws = n_draws
        self.augment = augment
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_all_or_nothing
    def fit(self, X: Any, y: Any) -> Self:
        """Choose the noise, draw the seed of the bank, and fit the inner model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        """
        X, y, rows = self._check_data(X, y, numeric=True)
        self.output_range_ = _check_range(self.output_range, y)
        self._prepare(X, y, rows, classes=None)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predictions of the smoothed model; the guarantee is about these.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._estimate(X).mean[:, 0]

    def certify(self, X: Any) -> Certificate:
        """Per person: prediction, an interval, and (`Certificate.range_at`) the range at a distance."""
        return certify_predictions(self._estimate(X), self.guarantee_)

    @property
    def _ballot(self) -> Ballot:
        return Ballot("value", None, self.output_range_, self._decode)

    @property
    def _output_range(self) -> tuple[float, float]:
        return self.output_range_

    def _outcomes(self, votes: FloatArray, rng: np.random.Generator) -> npt.NDArray[Any]:
        return votes[:, 0]


def _is_frozen(estimator: Any) -> bool:
    return isinstance(estimator, FrozenEstimator)


def _seed(random_state: Any) -> int:
    """128 random bits: too many to be found by trying."""
    words = check_random_state(random_state).randint(0, 2**32, size=4, dtype=np.uint32)
    return int.from_bytes(words.astype("<u4").tobytes(), "little")


def _seed_inner(estimator: Any, state: Any) -> None:
    """Give every `random_state` inside the estimator that is None a fixed value."""
    params = estimator.get_params(deep=True)
    unset = sorted(name for name in params if name.split("__")[-1] == "random_state" and params[name] is None)
    estimator.set_params(**{name: int(state.randint(2**31)) for name in unset})


def _check_range(given: Any, y: FloatArray) -> tuple[float, float]:
    if given is None:
        low, high = float(y.min()), float(y.max())
        if low == high:
            raise ValueError(f"y is constant ({low:g}), so output_range cannot be taken from it. Give output_range.")
        return low, high
    try:
        low, high = (float(limit) for limit in given)
    except (TypeError, ValueError):
        raise ValueError(f"output_range must be two numbers (lowest, highest); got {given!r}.") from None
    if not (np.isfinite([low, high]).all() and low < high):
        raise ValueError(f"output_range must be finite, the lowest first; got {given!r}.")
    return low, high


def _numbers(validate: Callable[[], Any]) -> Any:
    """Run a validation of scikit-learn, with a clearer word on text."""
    try:
        return validate()
    except ValueError as error:
        if "could not convert string to float" in str(error):
            raise ValueError(
                f"X must hold numbers only ({error}). Encode text columns first, or give a table with a TableMetric."
            ) from None
        raise
