"""Certificates for single people: intervals, and the distance within which the outcome is the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._typing import FloatArray
from likewise.kernel.bounds import ROUNDING, Bound, round_down
from likewise.kernel.guarantee import Guarantee


@dataclass(frozen=True, eq=False)
class Estimate:
    """Mean outputs with intervals, each of shape (n_samples, n_outputs), and the number of draws per person."""

    mean: FloatArray
    lower: FloatArray
    upper: FloatArray
    n_draws: npt.NDArray[np.int64]

    @classmethod
    def certain(cls, mean: FloatArray, n_draws: int = 0) -> Estimate:
        """Exact outputs, with intervals of width 0."""
        return cls(mean, mean, mean, np.full(len(mean), n_draws))


@dataclass(frozen=True, eq=False)
class Certificate:
    """Per person: estimate, interval, and the distance within which the outcome is the same.

    For each person, with probability at least ``1 - delta`` over the draws made in `fit`, everything below holds at
    once for the model h: the limit of infinitely many draws or, at the level "deterministic", the average over all
    draws of the splitting. Where nothing is sampled, ``delta`` is 0 and the intervals have width 0.

    Attributes
    ----------
    estimate : ndarray of shape (n_samples, n_outputs)
        What `predict_proba` (or `predict` of a regressor) returns.
    lower, upper : ndarray of shape (n_samples, n_outputs)
        Interval that contains h(x).
    outcome : ndarray of shape (n_samples,), or None for regression
        The most likely class.
    distance : ndarray of shape (n_samples,), or None for regression
        Everyone closer than this has the same most likely class under h; 0 if the draws do not settle which class that
        is. Rounded down. Derived from raw scores where there are any (additive models; linear models under Gaussian
        noise), else from probabilities with an error of 2^-40, so that it is finite even for a probability of 1.
    delta : float
    curve : Bound
        Bound on the difference of h at a distance.
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

        Rounded outwards, for an error of the outputs of 2^-40 (for regression, relative to the largest in the range).
        """
        low, high = self.output_range
        width = high - low
        size = max(width, abs(low), abs(high))
        error, unit = ROUNDING * size / width, 2 * np.finfo(np.float64).eps * size
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
    """Certificate for class probabilities, or for predictions if `classes` is None.

    `distance` is the scorer's `distance_to_tie`, if it has one.
    """
    outcome = None
    if classes is not None:
        people, top = np.arange(len(found.mean)), found.mean.argmax(axis=1)
        outcome = classes[top]
        if distance is None:
            surely = found.lower[people, top] - ROUNDING
            others = found.upper + ROUNDING
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
