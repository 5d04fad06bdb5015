"""The estimators: networks within a metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from likewise._fit_validation import seed_from
from likewise._links import LINKS
from likewise._progress import progress_bar
from likewise._typing import FloatArray
from likewise._validation import SEED, TRUTH, Rule, one_of, whole
from likewise.base import (
    METRIC,
    ConstrainedClassifier,
    ConstrainedEstimator,
    ConstrainedRegressor,
    PlainScorer,
)
from likewise.exceptions import InvalidInputError
from likewise.guarantees.certificate import Estimate
from likewise.guarantees.guarantee import Guarantee
from likewise.lipschitz.network import Entries, Layers, finish, read_columns
from likewise.lipschitz.training import Objective, classification, squared, train
from likewise.metrics.base import Metric
from likewise.metrics.encoders import People


@dataclass(frozen=True, eq=False, repr=False)
class LipschitzScorer(PlainScorer):
    """A finished network behind a link.

    Attributes
    ----------
    guarantee : Guarantee
    layers : Layers
    link : str
        A key of `LINKS`.
    """

    layers: Layers
    link: str

    def estimate(self, people: People, *, verbose: bool = False) -> Estimate:
        """Outputs; nothing is drawn, so the intervals have width 0."""
        from likewise.additive import kernels as evaluation

        scores = LINKS[self.link].unit * self.layers.scores(people.rows)
        limits = self.guarantee.output_range
        mean = np.empty((len(people), 1 if limits else max(2, scores.shape[1])))
        getattr(evaluation, self.link)(scores, mean)
        if limits:
            mean = np.clip(limits[0] + (limits[1] - limits[0]) * mean, *limits)
        return Estimate.certain(mean)

    def visible(self, people: People) -> FloatArray:
        """Numbers in units of the metric, cut to the range of the training data, and known categories."""
        inputs = self.layers.inputs
        return inputs.in_units(people.rows[:, inputs.columns])

    def landmarks(self, n_columns: int) -> list[FloatArray]:
        """The ends of the ranges outside which it is constant."""
        inputs, found = self.layers.inputs, super().landmarks(n_columns)
        for i in np.flatnonzero(inputs.is_number):
            found[inputs.columns[i]] = np.array([inputs.low[i], inputs.high[i]])
        return found


class Lipschitz(ConstrainedEstimator):
    """What the two estimators share: training, and reading the promise off the finished weights."""

    rules: ClassVar[dict[str, Rule]] = {
        "metric": METRIC,
        "hidden_layer_sizes": Rule(
            "a tuple of one or more sizes of layers, each a whole number >= 1",
            lambda value: (
                isinstance(value, (tuple, list)) and len(value) > 0 and all(whole(1).holds(width) for width in value)
            ),
            "Use (128, 128), say.",
        ),
        "n_steps": whole(1),
        "random_state": SEED,
        "verbose": TRUTH,
    }

    metric: Metric | None
    hidden_layer_sizes: tuple[int, ...]
    n_steps: int
    random_state: Any
    verbose: bool

    scorer_: LipschitzScorer

    def _network(
        self,
        people: People,
        outcomes: FloatArray,
        weights: FloatArray | None,
        metric: Metric,
        *,
        objective: Objective,
        link: str,
        n_outputs: int = 1,
        output_range: tuple[float, float] | None = None,
    ) -> LipschitzScorer:
        columns = metric.weights_of(people.encoder)
        used = np.flatnonzero(columns.matters)
        entries = Entries.collect(people.rows[:, used], outcomes, weights)
        n_steps = int(self.n_steps)
        with progress_bar("Training", n_steps, show=bool(self.verbose)) as advance:
            trained = train(
                entries,
                read_columns(entries, used, columns),
                (*self.hidden_layer_sizes, n_outputs),
                objective,
                n_steps=n_steps,
                rng=np.random.default_rng(seed_from(self.random_state)),
                advance=advance,
            )
        layers = finish(trained)
        basis = (
            "It holds by construction, for all people, seen or not: the weights of the network let its score move by "
            f"at most {layers.slope():.4g} times the distance (at most 1; read off the finished weights and rounded "
            f"upwards, however they were found); {LINKS[link].why}."
        )
        promise = Guarantee(metric, LINKS[link].curve, "exact", basis, output_range=output_range)
        return LipschitzScorer(promise, layers, link)


class LipschitzClassifier(Lipschitz, ConstrainedClassifier):
    """A network whose probabilities are close for people who are close, by its weights.

    ``h(x) = g(z(x))`` with a network z of layers ``z -> W sort(z) + b``, where sort puts pairs of units in order
    (MaxMin). The weights of each unit have a norm of at most 1: the first layer's the one dual to the metric's, later
    ones' the sum of absolute values. So ``|z(x) - z(x')| <= D(x, x')``, and with the logistic link
    ``TV(h(x), h(x')) <= tanh(D(x, x')) <= D(x, x')`` for all people. It takes signals, interactions and every p; for a
    table under p = 1, try an additive model first.

    Parameters
    ----------
    metric : Metric, optional
        Distance between people: a `WeightedLp` for arrays, a `TableMetric` for tables. Columns of weight 0 are never
        read. None derives `linear_metric` from the training data.
    hidden_layer_sizes : tuple of int, default=(128, 128)
        Units of each hidden layer.
    link : {"logistic", "probit", "clip"}, default="logistic"
        From the score to a probability. With "probit" the promise is ``erf(sqrt(pi) D / 2)``, with "clip", the
        sharpest, ``min(1, D)``. Several classes need "logistic".
    loss : {"log", "hinge"}, default="log"
        "log" gives calibrated probabilities, "hinge" confident ones. "clip" needs "hinge": it reaches 0, of which there
        is no logarithm.
    n_steps : int, default=4000
        Steps of training, at most, with 256 people each; it stops earlier when people held out do not gain.
    random_state : int, RandomState instance or None, default=None
        Seeds the start, the batches and the choice of the people held out. The same seed gives the same model.
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    guarantee_ : Guarantee
    classes_ : ndarray of shape (n_classes,)
    scorer_ : LipschitzScorer
    n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    The promise is about `predict_proba` and `decide`, for all people, with nothing left to chance. It is not about
    `predict`: the most likely class jumps somewhere. It says nothing about what the columns leave out, about groups, or
    about accuracy. See ``guarantee_.statement`` and `docs/limitations.md`.

    Training needs PyTorch (``pip install 'likewise[torch]'``); scoring does not.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from likewise import WeightedLp
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> model = LipschitzClassifier(metric=WeightedLp([2, 2], p=2), n_steps=500, random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.95  # doctest: +SKIP
    True
    >>> model.guarantee_.level, model.guarantee_.epsilon  # doctest: +SKIP
    ('exact', 0.0)
    """

    rules = Lipschitz.rules | {"link": one_of("logistic", "probit", "clip"), "loss": one_of("log", "hinge")}

    def __init__(
        self,
        metric: Metric | None = None,
        *,
        hidden_layer_sizes: tuple[int, ...] = (128, 128),
        link: Literal["logistic", "probit", "clip"] = "logistic",
        loss: Literal["log", "hinge"] = "log",
        n_steps: int = 4000,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.metric = metric
        self.hidden_layer_sizes = hidden_layer_sizes
        self.link = link
        self.loss = loss
        self.n_steps = n_steps
        self.random_state = random_state
        self.verbose = verbose

    def learn(self, people: People, y: npt.NDArray[Any], weights: FloatArray | None, metric: Metric) -> LipschitzScorer:
        """Train the network, bring it within the metric, and read the promise off its weights."""
        if self.link == "clip" and self.loss == "log":
            raise InvalidInputError("loss must be 'hinge' for link='clip', which reaches 0; got 'log'.")
        n_classes = len(self.classes_)
        if n_classes > 2 and self.link != "logistic":
            raise InvalidInputError(f"link must be 'logistic' for more than two classes; got {self.link!r}.")
        link = self.link if n_classes == 2 else "softmax"
        codes = np.searchsorted(self.classes_, y).astype(np.float64)
        return self._network(
            people,
            codes,
            weights,
            metric,
            objective=classification(self.loss, link),
            link=link,
            n_outputs=1 if n_classes == 2 else n_classes,
        )


class LipschitzRegressor(Lipschitz, ConstrainedRegressor):
    """A network whose predictions are close for people who are close, by its weights.

    ``h(x) = a + (b - a) clip(1/2 + z(x))``, with `output_range` ``(a, b)`` and a network z as in `LipschitzClassifier`,
    so that ``|h(x) - h(x')| <= (b - a) min(1, D(x, x'))`` for all people. It is trained on squared errors.

    Parameters
    ----------
    metric, hidden_layer_sizes, n_steps, random_state, verbose
        As for `LipschitzClassifier`.
    output_range : tuple of float, optional
        Limits ``(a, b)`` of predictions. None takes the range of `y` in `fit`.

    Attributes
    ----------
    output_range_ : tuple of float
    guarantee_, scorer_, n_features_in_, feature_names_in_ : as for `LipschitzClassifier`

    Notes
    -----
    The promise is about `predict`, for all people, with nothing left to chance. It says nothing about what the columns
    leave out, about groups, or about accuracy. See ``guarantee_.statement`` and `docs/limitations.md`.

    Examples
    --------
    >>> from likewise import WeightedLp
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> model = LipschitzRegressor(WeightedLp([0.5]), n_steps=300, random_state=0)
    >>> model.fit(X, X[:, 0]).predict([[0.0], [1.0]]).round(2)  # doctest: +SKIP
    array([0.25, 0.75])
    """

    rules = Lipschitz.rules | ConstrainedRegressor.rules

    def __init__(
        self,
        metric: Metric | None = None,
        *,
        hidden_layer_sizes: tuple[int, ...] = (128, 128),
        output_range: tuple[float, float] | None = None,
        n_steps: int = 4000,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.metric = metric
        self.hidden_layer_sizes = hidden_layer_sizes
        self.output_range = output_range
        self.n_steps = n_steps
        self.random_state = random_state
        self.verbose = verbose

    def learn(self, people: People, y: npt.NDArray[Any], weights: FloatArray | None, metric: Metric) -> LipschitzScorer:
        """Train the network, bring it within the metric, and read the promise off its weights."""
        low, high = self.output_range_
        shares = (np.clip(np.asarray(y, dtype=np.float64), low, high) - low) / (high - low)
        return self._network(
            people, shares, weights, metric, objective=squared, link="clip", output_range=self.output_range_
        )
