"""From values of some people to scores of everybody, within a metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from likewise._progress import progress_bar
from likewise._typing import FloatArray
from likewise.enforce.base import PlainScorer
from likewise.enforce.projection.envelopes import Envelope
from likewise.enforce.projection.outoffold import scores_of
from likewise.guarantees.certificate import Estimate
from likewise.metrics.people import People

_BLOCK = 16_384  # people at a time: memory does not grow with their number


@dataclass(frozen=True)
class Shares:
    """What the base, the lower and the upper envelope count in the scores; non-negative, with sum 1."""

    base: float
    lower: float
    upper: float

    def blend(self, base: FloatArray | None, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """``base_share * min(max(base, L), U) + lower_share * L + upper_share * U``.

        If base, L and U move by at most D between two people, so do minima, maxima and averages of them.
        """
        scores = self.lower * lower + self.upper * upper
        if base is not None:
            scores = scores + self.base * np.minimum(np.maximum(base, lower), upper)
        return np.clip(scores, 0.0, 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class Extension(PlainScorer):
    """Scores between the envelopes of values on anchors.

    Attributes
    ----------
    guarantee : Guarantee
    envelope : Envelope
        The anchors.
    values : ndarray of shape (n_anchors,)
        Between 0 and 1: probabilities of the second class, or shares of the output range. The promise holds for any.
    shares : Shares
    base : fitted estimator, float or None
        Itself within the metric, such as a constant (between 0 and 1).
    classes : ndarray, or None for regression
    """

    envelope: Envelope
    values: FloatArray
    shares: Shares
    base: Any
    classes: npt.NDArray[Any] | None

    def estimate(self, people: People, *, verbose: bool = False) -> Estimate:
        """Exact scores; the intervals have width 0."""
        with progress_bar("Scoring", len(people), show=verbose) as advance:
            parts = []
            for start in range(0, len(people), _BLOCK):
                block = people.take(slice(start, start + _BLOCK))
                parts.append(self._scores(block))
                advance(len(block))
        scores = np.concatenate(parts)
        if self.guarantee.output_range is None:
            return Estimate.certain(np.column_stack([1 - scores, scores]))
        low, high = self.guarantee.output_range
        return Estimate.certain(np.clip(low + (high - low) * scores, low, high)[:, None])

    def visible(self, people: People) -> FloatArray:
        """The columns that matter; what is missing is infinite."""
        rows = people.rows
        if self.guarantee.metric.has_weights:
            rows = rows[:, self.guarantee.metric.weights_of(people.coding).matters]
        return np.where(np.isnan(rows), np.inf, rows)

    @property
    def reads_tables(self) -> bool:
        """A base, and a function of people, do."""
        return True

    def landmarks(self, n_columns: int) -> list[FloatArray]:
        """The numbers of the anchors."""
        found = super().landmarks(n_columns)
        for column, values in self.envelope.numbers():
            found[column] = np.unique(values[~np.isnan(values)])
        return found

    def _scores(self, people: People) -> FloatArray:
        n = len(people)
        found = self.envelope.narrow(people, self.values, np.zeros(n), np.ones(n))
        base = None
        if self.base is not None:
            base = base_scores(self.base, people, self.classes, self.guarantee.output_range or (0.0, 1.0))
        return self.shares.blend(base, found.lower, found.upper)


def base_scores(base: Any, people: People, classes: npt.NDArray[Any] | None, limits: tuple[float, float]) -> FloatArray:
    """What a base says of people, between 0 and 1."""
    return np.full(len(people), base) if isinstance(base, float) else scores_of(base, people, classes, limits)
