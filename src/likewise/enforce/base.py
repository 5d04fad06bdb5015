"""What the smoothed estimators share: a metric, a noise, draws, and an inner model."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from likewise._checks import check_count, check_positive, check_probability
from likewise._typing import FloatArray
from likewise.enforce.smoothing.augmenting import fit_on_noisy_copies
from likewise.enforce.smoothing.bank import Bank
from likewise.enforce.smoothing.cells import Cells
from likewise.enforce.smoothing.mixed import Mixed
from likewise.enforce.smoothing.noises import Gaussian, Laplace, Noise, Splitting, Uniform
from likewise.enforce.smoothing.schedule import single_votes
from likewise.enforce.smoothing.table_noise import TableNoise
from likewise.enforce.smoothing.voters import Ballot, Voter, candidate_noise, choose_voter, has_formula, without_formula
from likewise.guarantees.certificate import Estimate
from likewise.guarantees.promise import Guarantee
from likewise.metrics.coding import TableCoding, as_frame
from likewise.metrics.lp import WeightedLp
from likewise.metrics.tabular import TableMetric
from likewise.models.votes import Decode
from likewise.reveal.exact import linear_weights

_BLOCK = 16_384  # people at a time

_NOISES: dict[str, type[Noise]] = {"gaussian": Gaussian, "laplace": Laplace, "uniform": Uniform, "splitting": Splitting}


def all_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
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
class Drawing:
    """What `fit` was told about draws; later changes of parameters must not touch a promise already made."""

    epsilon: float
    delta: float
    n_draws: int | None


class Smoothed(MetaEstimatorMixin, BaseEstimator):
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
    drawing_: Drawing
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
        self.drawing_ = Drawing(epsilon, float(self.delta), self._fixed_draws)
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
        if not len(codes):
            raise ValueError("X must hold at least one person; got a table without rows.")
        # Where there is no `Mixed`, only columns that must not matter may be missing, and nobody looks at those.
        return codes if isinstance(self.perturbation_, Mixed) else np.nan_to_num(codes)

    def _means(self, X: Any) -> FloatArray:
        """Smoothed votes alone: of the intervals, no more than a block is held at a time."""
        check_is_fitted(self)
        rows, voter = self._check_rows(X), self._voter()
        if self.verbose:  # one bar for all
            return voter.estimate(rows, verbose=True).mean
        return np.concatenate([voter.estimate(rows[i : i + _BLOCK]).mean for i in range(0, len(rows), _BLOCK)])

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


def is_frozen(estimator: Any) -> bool:
    """Whether the estimator is fitted and must stay as it is."""
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
