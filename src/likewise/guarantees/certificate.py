"""What is known about single people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._typing import FloatArray
from likewise.guarantees.bounds import Bound, round_down
from likewise.guarantees.guarantee import Guarantee

# Outputs are sums of up to some thousand terms, each rounded to 2^-53 of the largest: they are off by less than this.
# So a probability that is stored as 1 may be smaller by this much, and certifies no more.
_ROUNDING = 2.0**-40


@dataclass(frozen=True, eq=False)
class Estimate:
    """Means of votes with intervals, each of shape (n_people, n_outputs), and the draws that each person took."""

    mean: FloatArray
    lower: FloatArray
    upper: FloatArray
    n_draws: npt.NDArray[np.int64]

    @classmethod
    def certain(cls, mean: FloatArray, n_draws: int = 0) -> Estimate:
        """Means that are exact: the intervals have width 0."""
        return cls(mean, mean, mean, np.full(len(mean), n_draws))


@dataclass(frozen=True, eq=False)
class Certificate:
    """Per person: estimate, interval, and how far away the outcome may differ.

    With probability at least ``1 - delta`` for each person, over the draws made in `fit`, all of the
    following hold at once for the smoothed model h: the limit of infinitely many draws, or, at the level
    "deterministic", the average over all K draws of the splitting. ``delta`` is 0 where nothing is sampled, and the
    intervals then have width 0.

    Attributes
    ----------
    estimate : ndarray of shape (n_samples, n_outputs)
        What `predict_proba` (or `predict` of a regressor) returns.
    lower, upper : ndarray of shape (n_samples, n_outputs)
        Interval that contains h(x).
    outcome : ndarray of shape (n_samples,), or None for regression
        The most likely class.
    distance : ndarray of shape (n_samples,), or None for regression
        Everyone closer than this has the same most likely class under h. 0 where the draws do not settle
        which class is the most likely. Rounded down: from the score behind the probabilities where there is one
        (additive models; linear models under Gaussian noise), else from probabilities that are known to 2^-40, so that
        one of 1 certifies what these digits support, and never an infinite distance.
    delta : float
    curve : Curve
        How far h can move with the distance.
    """

    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    outcome: npt.NDArray[Any] | None
    distance: FloatArray | None
    delta: float
    curve: Bound
    columns: tuple[str, ...]
    output_range: tuple[float, float] = (0.0, 1.0)

    def range_at(self, distance: float) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest output of h for anyone at that distance; two arrays of shape (n_samples, n_outputs).

        Rounded outwards: outputs are known to 2^-40, for regression of the largest in their range.
        """
        low, high = self.output_range
        width = high - low
        size = max(width, abs(low), abs(high))
        error, unit = _ROUNDING * size / width, 2 * np.finfo(np.float64).eps * size
        lowest = 1 - self.curve.highest(np.clip(1 - (self.lower - low) / width + error, 0, 1), distance)
        highest = self.curve.highest(np.clip((self.upper - low) / width + error, 0, 1), distance)
        smallest = low + width * round_down(lowest) - unit
        largest = low + width * highest + unit
        return np.clip(smallest, low, high), np.clip(largest, low, high)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per person."""
        parts: dict[str, Any] = {}
        for j, name in enumerate(self.columns):
            parts[name] = self.estimate[:, j]
            parts[f"{name} lower"] = self.lower[:, j]
            parts[f"{name} upper"] = self.upper[:, j]
        if self.outcome is not None:
            parts |= {"outcome": self.outcome, "distance": self.distance}
        return pd.DataFrame(parts)


def certify(
    found: Estimate,
    guarantee: Guarantee,
    classes: npt.NDArray[Any] | None = None,
    distance: FloatArray | None = None,
) -> Certificate:
    """Certificate for class probabilities, or (without classes) for predictions within a range.

    `distance` is that to a tie, per person, where a score behind the probabilities says it (`distance_to_tie` of a
    scorer).
    """
    outcome = None
    if classes is not None:
        people, top = np.arange(len(found.mean)), found.mean.argmax(axis=1)
        outcome = classes[top]
        if distance is None:
            surely = found.lower[people, top] - _ROUNDING
            others = found.upper + _ROUNDING
            others[people, top] = -np.inf
            distance = guarantee.curve.distance_to_tie(surely, np.minimum(others.max(axis=1), 1 - surely))
    return Certificate(
        estimate=found.mean,
        lower=found.lower,
        upper=found.upper,
        outcome=outcome,
        distance=None if classes is None else distance,
        delta=guarantee.delta,
        curve=guarantee.curve,
        columns=("prediction",) if classes is None else tuple(str(c) for c in classes),
        output_range=guarantee.output_range or (0.0, 1.0),
    )
