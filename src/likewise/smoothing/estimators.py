"""`SmoothedClassifier` and `SmoothedRegressor`: any model, averaged over noise calibrated to a metric."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.frozen import FrozenEstimator

from likewise._fit_validation import TrainingData, check_fitted, seed_from
from likewise._inner_estimator import KeptEstimator, WrapsEstimator, in_order_of, is_trained_here
from likewise._typing import FloatArray
from likewise._validation import BOOL, SEED, THREADS, Rule, check_random, integer, one_of, positive
from likewise.ask import Ask
from likewise.base import METRIC, ConstrainedClassifier, ConstrainedRegressor
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.inspection.preprocessing import last_step
from likewise.inspection.trees import BOOSTED, FORESTS, SINGLE_TREES
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import Encoder, People, TableEncoder
from likewise.metrics.base import Metric
from likewise.smoothing.augmentation import fit_inner
from likewise.smoothing.formulas import LINEAR_CLASSIFIERS
from likewise.smoothing.mixed_type import MixedTypeNoise, numeric_perturbation
from likewise.smoothing.noise import NOISES, Gaussian, Noise, Splitting, Uniform
from likewise.smoothing.sampling import Perturbation
from likewise.smoothing.scorers import Batch, SmoothedScorer, VoteSpec, choose_scorer, find_formula

_MAX_COPIES = 10  # per person, on average

NoiseName = Literal["auto", "gaussian", "laplace", "uniform", "splitting"]


def noise_with_formula(model: Any, votes: VoteSpec, p: float) -> type[Noise]:
    """Noise under which a model of this type (fitted or not) may have a formula; otherwise `noise_for_sampling`."""
    kind = type(last_step(model))
    if kind in LINEAR_CLASSIFIERS and votes.vote == "hard" and votes.n_outputs == 2:
        return Gaussian
    has_leaves = kind in SINGLE_TREES or kind in BOOSTED or (kind in FORESTS and votes.vote != "hard")
    return Uniform if has_leaves and p == 1 else noise_for_sampling(p)


def noise_for_sampling(p: float) -> type[Noise]:
    """Noise of "auto" where the model has to be evaluated: the one that needs the fewest evaluations."""
    return Splitting if p == 1 else Gaussian


def is_numeric(people: People, weights: BoundMetric) -> bool:
    """Whether rows are numbers without missing values, as formulas and the fast forward pass need them."""
    return people.encoder.is_plain and not weights.allows_missing


def repeat_by_weight(people: People, weights: FloatArray | None) -> People:
    """Repeat rows by their sample weights, so that medians and backgrounds are weighted.

    Small integer weights are the numbers of copies; with others, as many rows as there are, spread evenly over the
    cumulative weights.
    """
    if weights is None:
        return people
    n, total = len(people), float(weights.sum())
    if (weights == np.rint(weights)).all() and total <= _MAX_COPIES * n:
        return people.take(np.repeat(np.arange(n), weights.astype(np.int64)))
    return people.take(np.searchsorted(np.cumsum(weights), (np.arange(n) + 0.5) / n * total))


def perturbation_for(
    noise: Noise | type[Noise],
    people: People,
    weights: BoundMetric,
    seed: int,
    *,
    n_draws: int | None = None,
    epsilon: float = 0.01,
) -> Perturbation:
    """Fit noise for a metric to training data; `n_draws` and `epsilon` are for splitting.

    The widths come from `weights`, as the guarantee does; a noise object contributes its kind, and declared steps.
    """
    weights.refuse_tables("smoothing")
    if not is_numeric(people, weights):
        kind = type(noise) if isinstance(noise, Noise) else noise
        return MixedTypeNoise.from_training_data(
            kind, people.rows, people.encoder, weights, seed, n_draws=n_draws, epsilon=epsilon
        )
    noise = noise.bound_to(weights) if isinstance(noise, Noise) else noise.for_metric(weights)
    return numeric_perturbation(noise, people.rows, seed, n_draws=n_draws, epsilon=epsilon)


class _Smoothed(WrapsEstimator):
    """Shared by the classifier and the regressor: noise for the metric, the inner model, and its votes."""

    rules: ClassVar[dict[str, Rule]] = {
        "metric": METRIC,
        "noise": one_of("auto", *NOISES) | Rule("a noise made with for_metric", lambda value: isinstance(value, Noise)),
        "epsilon": positive("No finite number of draws gives 0, and 1 is the largest possible difference.", below=1),
        "delta": positive("It is a probability.", below=1),
        "n_draws": one_of("auto") | integer(1, "'auto' takes what epsilon and delta need."),
        "augment": integer(0, "0 trains on the data as they are."),
        "batch": one_of("auto") | Rule("True or False", lambda value: isinstance(value, bool)),
        "random_state": SEED,
        "n_jobs": THREADS,
        "verbose": BOOL,
    }

    noise: NoiseName | Noise
    epsilon: float
    delta: float
    n_draws: int | Literal["auto"]
    augment: int
    batch: Batch
    random_state: Any
    n_jobs: int | None
    verbose: bool
    scorer_: SmoothedScorer

    @property
    def estimator_(self) -> Any:
        """The fitted inner model."""
        check_fitted(self)
        return self.scorer_.model

    @property
    def noise_(self) -> Noise | None:
        """Noise on the numeric columns; None if all of them have weight 0."""
        check_fitted(self)
        return self.scorer_.perturbation.noise

    def with_metric(self, metric: Metric) -> Self:
        """Return an unfitted estimator like this one, for another metric; a fitted inner model is kept."""
        other = super().with_metric(metric)
        if isinstance(self.noise, Noise):
            other.set_params(noise=self.noise.bound_to(metric))  # type: ignore[arg-type]
        if hasattr(self, "scorer_") and is_trained_here(self.estimator):
            other.set_params(estimator=KeptEstimator(self.estimator_, self.encoder_.raw_labels), augment=0)
        return other

    def learn(self, data: TrainingData, metric: BoundMetric) -> SmoothedScorer:
        """Choose the noise, fit the inner model, and choose how to average its votes."""
        given, people = data.people, in_order_of(self.estimator, data.people)
        n_draws = None if self.n_draws == "auto" else int(self.n_draws)
        epsilon, delta = float(self.epsilon), float(self.delta)
        state = check_random(self.random_state)
        seed, columns, votes = seed_from(state), metric.rebound(people.encoder), self._vote_spec()
        weighted, numeric = repeat_by_weight(people, data.weights), is_numeric(people, columns)

        def fit_noise(noise: Noise | type[Noise]) -> Perturbation:
            return perturbation_for(noise, weighted, columns, seed, n_draws=n_draws, epsilon=epsilon)

        noise: Any = NOISES.get(self.noise, self.noise)  # type: ignore[arg-type]
        if isinstance(noise, Noise) and not noise.names:
            noise = noise.bound_to(metric)  # the names of X as it was given
        sampling_noise = noise_for_sampling(metric.p)
        if self.noise == "auto":
            may_have_formula = n_draws is None and numeric
            noise = noise_with_formula(self.estimator, votes, metric.p) if may_have_formula else sampling_noise
        perturbation = fit_noise(noise)
        model = fit_inner(
            self.estimator,
            self._inner_data(replace(data, people=people)),
            perturbation,
            n_copies=self.augment,
            state=None if self.random_state is None else state,
            classes=votes.classes,
            verbose=bool(self.verbose),
        )
        # A model fitted on a table is called with tables; a frozen model without feature names was fitted on arrays.
        takes_arrays = hasattr(model, "feature_names_in_") or isinstance(model, FrozenEstimator)
        is_decoded = not numeric or (not isinstance(people.table, np.ndarray) and not takes_arrays)
        asked = self._asked_as_given(model, people) if is_decoded or takes_arrays else None
        if is_decoded:
            votes = self._vote_spec(people.encoder if asked is None else asked.encoder)
        # Only a fitted model shows whether it has a formula.
        if self.noise == "auto" and noise is not sampling_noise and find_formula(model, perturbation, votes) is None:
            perturbation = fit_noise(sampling_noise)
        scorer = choose_scorer(
            model,
            perturbation,
            votes,
            people.rows,
            epsilon=epsilon,
            delta=delta,
            n_draws=n_draws,
            n_jobs=self.n_jobs,
            batch=self.batch,
        )
        votes.function(model)  # raises for a model that cannot give such votes
        if asked is not None:  # after what raises for a model whose answers are random
            asked.check(asked.encoder.decode)
        if people is given:
            return scorer
        names, known = given.encoder.names, people.encoder.names
        order = None if names == known else [names.index(name) for name in known]
        return replace(scorer, order=order, given=given.encoder)

    def _asked_as_given(self, model: Any, people: People) -> Ask | None:
        """A model that is not fitted here, with the people of a table as they were given; None for other models."""
        is_read = isinstance(self.estimator, KeptEstimator) or is_trained_here(self.estimator)
        if is_read or people.given is None or not isinstance(people.encoder, TableEncoder):
            return None
        return Ask.of(model, people.given, people.encoder.spelled_as(people.given))

    @abstractmethod
    def _vote_spec(self, encoder: Encoder | None = None) -> VoteSpec: ...

    def _metric_to_enforce(self) -> Metric | None:
        noise, metric = self.noise, super()._metric_to_enforce()
        if isinstance(noise, Noise):
            if metric is not None and metric != noise.described:
                raise InvalidInputError(
                    f"noise and metric must match: noise was made for {noise.described!r}, metric is {metric!r}. "
                    "Leave metric out, or give the noise by name."
                )
            return noise.described  # type: ignore[no-any-return]
        return metric


class SmoothedClassifier(_Smoothed, ConstrainedClassifier):
    """A classifier whose probabilities are close for people who are close.

    ``h(x)[y] = E_t[1{f(x + t) = y}]``, the share of votes of the inner model f under noise t calibrated to a
    metric D. For all x and x', ``TV(h(x), h(x')) <= curve.bound(D(x, x')) <= D(x, x')`` (`docs/theory.md` §3); where h
    has no formula, averaging over finitely many draws adds `epsilon`, except with probability `delta` per pair.

    Parameters
    ----------
    estimator : classifier or callable
        Any scikit-learn classifier; it is cloned and fitted in `fit`. Wrap a fitted one in
        `sklearn.frozen.FrozenEstimator`. A plain function of rows returns labels, or one column of scores per
        class in sorted order.
    metric : WeightedLp or TableMetric, optional
        Distance between people. With a `TableMetric`, `X` is a table (pandas, polars or pyarrow) and the estimator one
        that takes tables, such as a Pipeline. None derives `linear_metric` from the training data.
    noise : {"auto", "gaussian", "laplace", "uniform", "splitting"} or Noise, default="auto"
        "auto" takes a noise under which f has a formula (two-class linear models with hard votes; trees, and
        forests with soft votes or votes of trees), else `Splitting` for p = 1 and Gaussian noise for other p.
    vote : {"hard", "soft", "trees"}, default="hard"
        Whether f votes with its predicted class, with its class probabilities, or, for forests, each tree with
        its predicted class.
    epsilon, delta : float, default=0.01 and 0.001
        Sampling error, and the probability per pair that it is larger. Formulas have neither, `Splitting` has no
        delta; see ``guarantee_``.
    n_draws : int or "auto", default="auto"
        Evaluations of f per person. "auto" takes none where there is a formula, and else what `epsilon` and `delta`
        need (of random draws: as many as each person needs). A number overrides `epsilon`; ``guarantee_.epsilon``
        has the resulting one.
    augment : int, default=0
        Train f on that many noisy copies of each person, with new noise in each epoch if f has `partial_fit`.
        0 trains on the data as they are. Noisy copies usually keep more accuracy after smoothing.
    batch : {"auto", True, False}, default="auto"
        Whether rows of several people may share a call of f. The guarantee needs an f whose output for a row does not
        depend on the other rows. "auto" tests an unknown f in `fit`, in calls with about 45,000 rows in all, and
        records the result in ``guarantee_``; an f that depends on other rows raises an error. True skips the test.
        False calls f with one row at a time: slow, and sound for every deterministic f.
    random_state : int, RandomState instance or None, default=None
        Seeds the draws, and f where it has a `random_state` of None. Keep it secret: whoever knows the draws can
        search for people for whom they err.
    n_jobs : int, optional
        Threads for formulas and networks; None and -1 use every core. Results do not depend on it.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    guarantee_ : Guarantee
    estimator_ : the fitted inner model
    noise_ : Noise
    classes_ : ndarray of shape (n_classes,)
    n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    The guarantee covers `predict_proba` and `decide`, for every inner model. It does not cover `predict`, which jumps
    where classes tie, and says nothing about omitted features, groups or accuracy (`docs/limitations.md`).

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

    def __init__(
        self,
        estimator: Any,
        *,
        metric: Metric | None = None,
        noise: NoiseName | Noise = "auto",
        vote: Literal["hard", "soft", "trees"] = "hard",
        epsilon: float = 0.01,
        delta: float = 1e-3,
        n_draws: int | Literal["auto"] = "auto",
        augment: int = 0,
        batch: Batch = "auto",
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
        self.batch = batch
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    rules = _Smoothed.rules | {"vote": one_of("hard", "soft", "trees")}

    def _metric_to_enforce(self) -> Metric | None:
        if self.vote == "soft" and hasattr(self.estimator, "predict") and not hasattr(self.estimator, "predict_proba"):
            raise InvalidTypeError(
                f"estimator must have predict_proba for vote='soft'; {type(self.estimator).__name__} has none. "
                "Use vote='hard'."
            )
        return super()._metric_to_enforce()

    def _vote_spec(self, encoder: Encoder | None = None) -> VoteSpec:
        return VoteSpec(self.vote, self.classes_, encoder=encoder)


class SmoothedRegressor(_Smoothed, ConstrainedRegressor):
    """A regressor whose predictions are close for people who are close.

    ``h(x) = E_t[f(x + t)]`` with f clipped to `output_range` ``(a, b)`` and noise t calibrated to a metric D. For all
    x and x', ``|h(x) - h(x')| <= (b - a) curve.bound(D(x, x')) <= (b - a) D(x, x')``; averaging over finitely many
    draws adds ``(b - a) epsilon``, except with probability `delta` per pair.

    Parameters
    ----------
    estimator : regressor or callable
        As for `SmoothedClassifier`; a plain function returns one number per row.
    metric, noise, epsilon, delta, n_draws, augment, batch, random_state, n_jobs, verbose
        As for `SmoothedClassifier`; `epsilon` is in units of ``b - a``.
    output_range : tuple of float, optional
        Limits ``(a, b)`` to which the predictions of f are clipped. None takes the range of `y` in `fit`.

    Attributes
    ----------
    output_range_ : tuple of float
    guarantee_, estimator_, noise_, n_features_in_, feature_names_in_ : as for `SmoothedClassifier`

    Notes
    -----
    The guarantee covers `predict`, for every inner model. It says nothing about omitted features, groups or
    accuracy (`docs/limitations.md`).

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = make_regression(random_state=0)
    >>> model = SmoothedRegressor(LinearRegression(), n_draws=500, output_range=(-400, 400)).fit(X, y)
    >>> model.predict(X[:3]).shape
    (3,)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        metric: Metric | None = None,
        output_range: tuple[float, float] | None = None,
        noise: NoiseName | Noise = "auto",
        epsilon: float = 0.01,
        delta: float = 1e-3,
        n_draws: int | Literal["auto"] = "auto",
        augment: int = 0,
        batch: Batch = "auto",
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
        self.batch = batch
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    rules = _Smoothed.rules | ConstrainedRegressor.rules

    def _vote_spec(self, encoder: Encoder | None = None) -> VoteSpec:
        return VoteSpec("value", None, self.output_range_, encoder)
