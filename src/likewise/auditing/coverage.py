"""The share of pairs that a metric constrains: beyond a distance of 1 it allows any difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise._subsample import evenly_spaced, some_pairs
from likewise.metrics.base import Metric

_PAIRS = 20_000
_TYPICAL, _OTHERS = 200, 5000
_MIN_SHARE = 0.1


@dataclass(frozen=True)
class Coverage:
    """How close people are under a metric.

    Attributes
    ----------
    bound_share : float
        Share of pairs at a distance D < 1, which the metric constrains.
    nearest : float
        Distance to the nearest other person, for the median person.
    median : float
        Distance of the median pair.
    """

    bound_share: float
    nearest: float
    median: float

    @property
    def is_little(self) -> bool:
        """Whether the metric constrains less than a tenth of the pairs."""
        return self.bound_share < _MIN_SHARE

    @property
    def statement(self) -> str:
        """The coverage in words."""
        return (
            f"The metric binds {_percent(self.bound_share)} of the pairs of these people (D < 1). A typical person's "
            f"nearest neighbour is at D = {self.nearest:.2g}."
        )


def measure_coverage(metric: Metric, X: Any) -> Coverage:
    """Measure how close the people in `X` are, on up to 20,000 pairs and the neighbours of 200 people.

    Examples
    --------
    >>> from likewise import WeightedLp
    >>> measure_coverage(WeightedLp([0.1]), [[0], [2], [5], [20]])
    Coverage(bound_share=0.5, nearest=0.25, median=1.0)
    """
    bound, people = metric.read(X)
    rows, n = people.rows, len(people)
    a, b = some_pairs(n, _PAIRS)
    distances = bound.distances(rows[a], rows[b])
    some, others = evenly_spaced(n, _TYPICAL), evenly_spaced(n, _OTHERS)
    near = bound.pairwise(rows[some], rows[others])
    near[some[:, None] == others] = np.inf
    return Coverage(float((distances < 1).mean()), float(np.median(near.min(axis=1))), float(np.median(distances)))


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 or share == 0 else f"{share:.2%}"
