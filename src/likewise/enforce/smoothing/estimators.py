"""The estimators: any model, turned into one with an individual-fairness guarantee."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from likewise._checks import check_output_range
from likewise._typing import FloatArray
from likewise.enforce.base import Smoothed, all_or_nothing, is_frozen
from likewise.enforce.smoothing.noises import Noise
from likewise.enforce.smoothing.voters import Ballot
from likewise.guarantees.certificate import Certificate, certify_classes, certify_predictions
from likewise.metrics.lp import WeightedLp
from likewise.metrics.tabular import TableMetric


class SmoothedClassifier(ClassifierMixin, Smoothed):
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

    @all_or_nothing
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
        classes = np.asarray(getattr(self.estimator, "classes_", known) if is_frozen(self.estimator) else known)
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
        return self._means(X)

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


class SmoothedRegressor(RegressorMixin, Smoothed):
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

    @all_or_nothing
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
        return self._means(X)[:, 0]

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


def _check_range(given: Any, y: FloatArray) -> tuple[float, float]:
    if given is not None:
        return check_output_range(given)
    low, high = float(y.min()), float(y.max())
    if low == high:
        raise ValueError(f"y is constant ({low:g}), so output_range cannot be taken from it. Give output_range.")
    return low, high
