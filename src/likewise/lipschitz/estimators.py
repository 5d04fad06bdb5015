"""`LipschitzClassifier` and `LipschitzRegressor`: networks whose weights keep them within a metric."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from likewise import _onnx
from likewise._fit_validation import TrainingData, seed_from
from likewise._progress import progress_bar
from likewise._typing import FloatArray
from likewise._validation import BOOL, SEED, Rule, integer, one_of
from likewise.base import (
    METRIC,
    ConstrainedClassifier,
    ConstrainedEstimator,
    ConstrainedRegressor,
    PlainScorer,
)
from likewise.exceptions import InvalidInputError
from likewise.kernel import rules
from likewise.kernel.certificate import Estimate
from likewise.kernel.evidence import Layers
from likewise.kernel.guarantee import Guarantee
from likewise.kernel.links import LINKS, from_unit_range, to_unit_range
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import People
from likewise.lipschitz.export import onnx_model
from likewise.lipschitz.network import WeightedSamples, enforce_slope, network_scores, read_columns
from likewise.lipschitz.training import LossFunction, classification_loss, squared_loss, train
from likewise.metrics.base import Metric


@dataclass(frozen=True, eq=False, repr=False)
class LipschitzScorer(PlainScorer):
    """A network followed by a link.

    Attributes
    ----------
    layers : Layers
    link : str
        A key of `LINKS`.
    output_range : tuple of float, or None for classes
    """

    layers: Layers
    link: str
    output_range: tuple[float, float] | None = None

    def prove(self) -> Guarantee:
        """The weights let the score move by at most the distance."""
        return rules.layers(self.layers, self.link, self.output_range)

    def estimate(self, people: People, *, verbose: bool = False) -> Estimate:
        """Outputs; nothing is drawn, so the intervals have width 0."""
        link, scores = LINKS[self.link], network_scores(self.layers, people.rows)
        if self.output_range:
            return Estimate.certain(from_unit_range(np.clip(0.5 + scores, 0.0, 1.0), self.output_range))
        return Estimate.certain(link.outputs(link.unit * scores))

    def visible(self, people: People) -> FloatArray:
        """Numbers in units of the metric, clipped to the training range, and codes of known categories."""
        inputs = self.layers.inputs
        return inputs.to_metric_units(people.rows[:, inputs.columns])

    def breakpoints(self, n_columns: int) -> list[FloatArray]:
        """Ends of the training ranges, outside which the network is constant."""
        inputs, breakpoints = self.layers.inputs, super().breakpoints(n_columns)
        for i in np.flatnonzero(inputs.is_number):
            breakpoints[inputs.columns[i]] = np.array([inputs.low[i], inputs.high[i]])
        return breakpoints


class _Lipschitz(ConstrainedEstimator):
    """Shared by the classifier and the regressor: training, and the guarantee computed from the weights."""

    rules: ClassVar[dict[str, Rule]] = {
        "metric": METRIC,
        "hidden_layer_sizes": Rule(
            "a tuple of one or more sizes of layers, each a whole number >= 1",
            lambda value: (
                isinstance(value, (tuple, list)) and len(value) > 0 and all(integer(1).holds(width) for width in value)
            ),
            "Use (128, 128), for example.",
        ),
        "n_steps": integer(1),
        "random_state": SEED,
        "verbose": BOOL,
    }

    hidden_layer_sizes: tuple[int, ...]
    n_steps: int
    random_state: Any
    verbose: bool

    scorer_: LipschitzScorer

    def to_onnx(self, path: str | Path | None = None) -> Any:
        """The network as an ONNX graph in double precision; also written to `path` if given. Needs the extra ``onnx``.

        Inputs, outputs and metadata are those of `AdditiveClassifier.to_onnx`. The bound in the metadata follows from
        the weights (`docs/theory.md` §19).

        Returns
        -------
        onnx.ModelProto
        """
        _ = self.guarantee_  # raises if not fitted
        model = onnx_model(self.scorer_, self.encoder_)
        _onnx.write(model, path)
        return model

    @abstractmethod
    def _problem(self, y: npt.NDArray[Any]) -> tuple[FloatArray, LossFunction, str, int]:
        """Targets, loss, name of the link, and number of scores."""

    def learn(self, data: TrainingData, metric: BoundMetric) -> LipschitzScorer:
        """Train the network, scale it into the metric, and compute the guarantee from its weights."""
        targets, loss, link, n_outputs = self._problem(data.y)
        metric.refuse_tables("a network")
        used = np.flatnonzero(metric.matters)
        samples = WeightedSamples.from_data(data.people.rows[:, used], targets, data.weights)
        inputs, widths = read_columns(samples, used, metric), (*self.hidden_layer_sizes, n_outputs)
        rng, n_steps = np.random.default_rng(seed_from(self.random_state)), int(self.n_steps)
        with progress_bar("Training", n_steps, show=bool(self.verbose)) as advance:
            layers = enforce_slope(train(samples, inputs, widths, loss, n_steps=n_steps, rng=rng, advance=advance))
        return LipschitzScorer(layers, link, getattr(self, "output_range_", None))


class LipschitzClassifier(_Lipschitz, ConstrainedClassifier):
    """A network whose probabilities are close for people who are close, by its weights.

    ``h(x) = g(z(x))`` with a network z of layers ``z -> W sort(z) + b``, where sort orders pairs of units (MaxMin). The
    weights of each unit have a norm of at most 1: in the first layer the dual of the metric's, in later ones L1. So
    ``|z(x) - z(x')| <= D(x, x')``, and with the logistic link ``TV(h(x), h(x')) <= tanh(D(x, x')) <= D(x, x')`` for all
    x and x' (`docs/theory.md` §12). It is for signals, interactions and every p; for a table under p = 1, try an
    additive model first.

    Parameters
    ----------
    metric : Metric, optional
        Distance between people: a `WeightedLp` for arrays, a `TableMetric` for tables. Columns of weight 0 are never
        read. None derives `linear_metric` from the training data.
    hidden_layer_sizes : tuple of int, default=(128, 128)
        Units of each hidden layer.
    link : {"logistic", "probit", "clip"}, default="logistic"
        From the score to a probability. The bound is ``tanh(D)`` with "logistic", ``erf(sqrt(pi) D / 2)`` with
        "probit" and ``min(1, D)`` with "clip". Several classes need "logistic".
    loss : {"log", "hinge"}, default="log"
        "log" gives calibrated probabilities, "hinge" confident ones. "clip" needs "hinge", as it reaches 0.
    n_steps : int, default=4000
        Training steps, at most, with 256 rows each; training stops early when the validation loss does not improve.
    random_state : int, RandomState instance or None, default=None
        Seeds the initial weights, the batches and the validation split. The same seed gives the same model.
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
    The guarantee covers `predict_proba` and `decide`, for all people, with certainty. It does not cover `predict`,
    which jumps where classes tie, and says nothing about omitted features, groups or accuracy (`docs/limitations.md`).

    Training needs PyTorch (``pip install 'likewise[torch]'``); scoring does not.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from likewise import WeightedLp
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> model = LipschitzClassifier(metric=WeightedLp([2, 2], p=2), n_steps=500, random_state=0)
    >>> model.fit(X, y).score(X, y) > 0.95
    True
    >>> model.guarantee_.level, model.guarantee_.epsilon
    ('exact', 0.0)
    """

    rules = _Lipschitz.rules | {"link": one_of("logistic", "probit", "clip"), "loss": one_of("log", "hinge")}

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

    def _problem(self, y: npt.NDArray[Any]) -> tuple[FloatArray, LossFunction, str, int]:
        if self.link == "clip" and self.loss == "log":
            raise InvalidInputError("loss must be 'hinge' for link='clip', which reaches 0; got 'log'.")
        n_classes = len(self.classes_)
        if n_classes > 2 and self.link != "logistic":
            raise InvalidInputError(f"link must be 'logistic' for more than two classes; got {self.link!r}.")
        link, n_outputs = (self.link, 1) if n_classes == 2 else ("softmax", n_classes)
        codes = np.searchsorted(self.classes_, y).astype(np.float64)
        return codes, classification_loss(self.loss, link), link, n_outputs


class LipschitzRegressor(_Lipschitz, ConstrainedRegressor):
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
    The guarantee covers `predict`, for all people, with certainty. It says nothing about omitted features, groups or
    accuracy (`docs/limitations.md`).

    Examples
    --------
    >>> from likewise import WeightedLp
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> model = LipschitzRegressor(WeightedLp([0.5]), n_steps=300, random_state=0)
    >>> model.fit(X, X[:, 0]).predict([[0.0], [1.0]]).round(2)
    array([0.25, 0.75])
    """

    rules = _Lipschitz.rules | ConstrainedRegressor.rules

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

    def _problem(self, y: npt.NDArray[Any]) -> tuple[FloatArray, LossFunction, str, int]:
        return to_unit_range(y, self.output_range_), squared_loss, "clip", 1
