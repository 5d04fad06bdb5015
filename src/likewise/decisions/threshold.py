"""Soft thresholds: a cut-off that everybody in a round shares, drawn from a band.

Let h(x) be the probability of the favourable class and C uniform on ``[t - W/2, t + W/2]``, one draw per round. A person
is accepted if ``h(x) >= C``. Outside the band the decision is certain; inside it two people are decided differently with
probability ``|h(x) - h(x')| / W``. So decisions are within ``bound(D) / W``, where ``bound`` is that of the scores
(docs/theory.md §16). W = 1 lets the whole score be the chance; W = 0 is a plain threshold, which guarantees nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.frozen import FrozenEstimator

from likewise._inner_estimator import WrapsEstimator, fit_weighted
from likewise._typing import FloatArray
from likewise._validation import Rule, in_a_line, positive
from likewise.base import METRIC, ConstrainedClassifier, Scorer, check_fitted
from likewise.calibration.estimators import RecalibratedScorer, _within
from likewise.decisions.shared_draw import SharedDraw
from likewise.exceptions import InvalidInputError
from likewise.guarantees.bounds import Bound, round_down
from likewise.guarantees.certificate import Estimate
from likewise.guarantees.guarantee import Guarantee, said_once
from likewise.metrics.base import Metric
from likewise.metrics.encoders import People


@dataclass(frozen=True)
class BandBound(Bound):
    """``bound(D / W) = (inner.bound(D) + slack) / W``: of decisions by a cut-off from a band of width W.

    Distances are those of the metric divided by W, so that the bound is at most the distance plus `excess`.
    """

    inner: Bound
    width: float
    slack: float = 0.0

    @property
    def excess(self) -> float:  # type: ignore[override]
        """What the bound may exceed the distance by."""
        return (self.inner.excess + self.slack) / self.width

    def _curve(self, distance: FloatArray) -> FloatArray:
        return np.minimum(1.0, (self.inner.bound(distance * self.width) + self.slack) / self.width)

    def _inverse_curve(self, variation: FloatArray) -> FloatArray:
        variation = np.maximum(0.0, variation * self.width - self.slack)
        return np.asarray(self.inner._inverse_curve(variation)) / self.width


@dataclass(frozen=True, eq=False, repr=False)
class ThresholdScorer(RecalibratedScorer):
    """Chances of each decision over the draw of a round.

    Attributes
    ----------
    column : int
        Of the favourable class among the inner model's outputs.
    thresholds : ndarray of shape (n_thresholds,)
    width : float
    """

    column: int = 1
    thresholds: FloatArray = None  # type: ignore[assignment]
    width: float = 1.0

    def estimate(self, people: People, *, verbose: bool = False) -> Estimate:
        """Chances with intervals."""
        found = self.scorer.estimate(self._read(people), verbose=verbose)
        mean, lower, upper = (self._chances(part[:, self.column]) for part in (found.mean, found.lower, found.upper))
        if found.lower is found.mean:  # nothing is sampled
            return Estimate(mean, mean, mean, found.n_draws)
        # A grade is reached more often by a higher score and left more often, so either end may be the smaller one.
        at_least = [self.at_least(part[:, self.column]) for part in (found.lower, found.upper)]
        ones, zeros = np.ones((len(mean), 1)), np.zeros((len(mean), 1))
        low, high = (np.hstack([ones, part, zeros]) for part in at_least)
        return Estimate(
            mean, np.maximum(0.0, low[:, :-1] - high[:, 1:]), np.minimum(1.0, high[:, :-1] - low[:, 1:]), found.n_draws
        )

    def at_least(self, score: FloatArray) -> FloatArray:
        """Probability of reaching each grade, shape (n_samples, n_thresholds)."""
        return np.clip((score[:, None] - self.thresholds) / self.width + 0.5, 0.0, 1.0)

    def scores(self, people: People) -> FloatArray:
        """The inner model's probability of the favourable class."""
        return self.scorer.estimate(self._read(people)).mean[:, self.column]

    def _chances(self, score: FloatArray) -> FloatArray:
        reached = np.hstack([np.ones((len(score), 1)), self.at_least(score), np.zeros((len(score), 1))])
        chances = reached[:, :-1] - reached[:, 1:]
        return chances if self.column else chances[:, ::-1] if chances.shape[1] == 2 else chances


class ThresholdDecision(WrapsEstimator, ConstrainedClassifier):
    """Decisions by a threshold that guarantee something: a cut-off drawn once per round from a band.

    Everybody in a round is compared with one cut-off, drawn from ``[threshold - width / 2, threshold + width / 2]``.
    Outside the band decisions are certain. Two people are decided differently with probability at most
    ``model.guarantee_.bound(D) / width``: enforce a metric at ``width * D``, and decisions are within D.

    Parameters
    ----------
    estimator : classifier of likewise
        Two classes. It is fitted by `fit`; one that is fitted already comes in `sklearn.frozen.FrozenEstimator`, or
        through `from_model`, which needs no data.
    threshold : float or increasing sequence of float, default=0.5
        Probability of the favourable class at the middle of the band. Several thresholds give grades, with a band at
        each; bands must not overlap.
    width : float, default=0.1
        Of each band. 1 is a lottery by the score itself.
    favourable : class label, default=None
        Whose probability is compared; None takes the last class.
    grades : sequence, default=None
        Names of the grades, lowest first; needed for several thresholds.

    Attributes
    ----------
    guarantee_ : Guarantee
        Under the metric divided by `width`.
    estimator_ : the fitted inner model
    classes_ : ndarray of shape (n_classes,)

    Notes
    -----
    Covered: `decide` with a round and a key, and `predict_proba`, which gives the chance of each decision over the draw
    of a round. Not covered: `predict`, the more likely decision, which is a plain threshold again.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from likewise import AdditiveClassifier
    >>> X, y = make_classification(random_state=0)
    >>> card = AdditiveClassifier(penalty=0.01).fit(X, y)
    >>> decision = ThresholdDecision.from_model(card, threshold=0.6, width=0.2)
    >>> outcomes = decision.decide(X, round="2026-11-17", key=b"a secret of 21 bytes.")
    >>> decision.guarantee_.level
    'exact'
    """

    rules: ClassVar[dict[str, Rule]] = {"width": positive("Use 1 for a lottery by the score itself.", below=1 + 1e-12)}

    scorer_: ThresholdScorer
    estimator_: ConstrainedClassifier

    def __init__(
        self,
        estimator: Any,
        *,
        threshold: Any = 0.5,
        width: float = 0.1,
        favourable: Any = None,
        grades: Sequence[Any] | None = None,
    ) -> None:
        self.estimator = estimator
        self.threshold = threshold
        self.width = width
        self.favourable = favourable
        self.grades = grades
