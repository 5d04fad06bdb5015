"""Constant models: within every metric, and the baseline to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from likewise._fit_validation import TrainingData
from likewise._typing import FloatArray
from likewise._validation import Rule
from likewise.base import METRIC, ConstrainedClassifier, ConstrainedRegressor, PlainScorer
from likewise.kernel import rules
from likewise.kernel.certificate import Estimate
from likewise.kernel.guarantee import Guarantee
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import People
from likewise.metrics.base import Metric


@dataclass(frozen=True, eq=False, repr=False)
class ConstantScorer(PlainScorer):
    """The same output for everyone.

    Attributes
    ----------
    metric : BoundMetric
    output : ndarray of shape (n_outputs,)
    output_range : tuple of float, or None for classes
    """

    metric: BoundMetric
    output: FloatArray
    output_range: tuple[float, float] | None = None

    def prove(self) -> Guarantee:
        """Everybody has the same output."""
        return rules.constant(self.metric, self.output, self.output_range)

    def estimate(self, people: People, *, verbose: bool = False) -> Estimate:
        """The output, once per person."""
        return Estimate.certain(np.tile(self.output, (len(people), 1)))

    def visible(self, people: People) -> FloatArray:
        """Nothing."""
        return np.empty((len(people), 0))


class ConstantClassifier(ConstrainedClassifier):
    """Predicts the class frequencies of the training data for everyone. It is within every metric.

    Parameters
    ----------
    metric : Metric, optional
        None derives `linear_metric` from the training data.

    Examples
    --------
    >>> from likewise import WeightedLp
    >>> model = ConstantClassifier(WeightedLp([1.0])).fit([[0], [1], [2], [3]], ["no", "yes", "yes", "yes"])
    >>> model.predict_proba([[7]])
    array([[0.25, 0.75]])
    """

    rules: ClassVar[dict[str, Rule]] = {"metric": METRIC}

    def __init__(self, metric: Metric | None = None) -> None:
        self.metric = metric

    def learn(self, data: TrainingData, metric: BoundMetric) -> ConstantScorer:
        """Compute the class frequencies."""
        shares = np.average(data.y[:, None] == self.classes_, axis=0, weights=data.weights)
        return ConstantScorer(metric, shares)


class ConstantRegressor(ConstrainedRegressor):
    """Predicts the mean of the training data for everyone. It is within every metric.

    Parameters
    ----------
    metric : Metric, optional
        None derives `linear_metric` from the training data.
    output_range : tuple of float, optional
        Limits of predictions. None takes the range of `y` in `fit`.

    Examples
    --------
    >>> from likewise import WeightedLp
    >>> ConstantRegressor(WeightedLp([1.0])).fit([[0], [1]], [2.0, 6.0]).predict([[7]])
    array([4.])
    """

    rules = {"metric": METRIC} | ConstrainedRegressor.rules

    def __init__(self, metric: Metric | None = None, *, output_range: tuple[float, float] | None = None) -> None:
        self.metric = metric
        self.output_range = output_range

    def learn(self, data: TrainingData, metric: BoundMetric) -> ConstantScorer:
        """Compute the mean."""
        mean = np.clip(np.average(data.y, weights=data.weights), *self.output_range_)
        return ConstantScorer(metric, np.array([mean]), self.output_range_)
