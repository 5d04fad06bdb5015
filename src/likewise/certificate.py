"""What is known about single people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import beta

from likewise.metrics import FloatArray
from likewise.noise import Noise


@dataclass(frozen=True, eq=False)
class Certificate:
    """Per person: estimate, interval, and how far away the outcome may differ.

    With probability at least ``1 - delta`` for each person, over the draws made in `fit`, all of the
    following hold at once for the smoothed model h (the limit of infinitely many draws).

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
        which class is the most likely.
    delta : float
    """

    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    outcome: npt.NDArray[Any] | None
    distance: FloatArray | None
    delta: float
    noise: Noise
    columns: tuple[str, ...]
    output_range: tuple[float, float] = (0.0, 1.0)

    def range_at(self, distance: float) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest output of h for anyone at that distance; two arrays of shape (n_samples, n_outputs)."""
        low, high = self.output_range
        width = high - low
        lowest = 1 - self.noise.highest(np.clip(1 - (self.lower - low) / width, 0, 1), distance)
        highest = self.noise.highest(np.clip((self.upper - low) / width, 0, 1), distance)
        return low + width * lowest, low + width * highest

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


def certify_classes(
    probabilities: FloatArray,
    noise: Noise,
    classes: npt.NDArray[Any],
    *,
    n_draws: int,
    delta: float,
    hard: bool,
) -> Certificate:
    """Certificate for sampled class probabilities, from hard or soft votes."""
    n_classes = probabilities.shape[1]
    # Two classes have one free probability; otherwise the intervals share delta (union bound).
    share = delta if n_classes == 2 else delta / n_classes
    interval = clopper_pearson if hard else hoeffding
    lower, upper = interval(probabilities, n_draws, share)
    order = np.argsort(-probabilities, axis=1, kind="stable")
    people = np.arange(len(probabilities))
    top = order[:, 0]
    others = upper.copy()
    others[people, top] = -np.inf
    runner_up = np.minimum(others.max(axis=1), 1 - lower[people, top])
    return Certificate(
        estimate=probabilities,
        lower=lower,
        upper=upper,
        outcome=classes[top],
        distance=noise.distance_to_tie(lower[people, top], runner_up),
        delta=delta,
        noise=noise,
        columns=tuple(str(c) for c in classes),
    )


def certify_predictions(
    predictions: FloatArray, noise: Noise, output_range: tuple[float, float], *, n_draws: int, delta: float
) -> Certificate:
    """Certificate for sampled predictions within a range; `predictions` has shape (n_samples,)."""
    low, high = output_range
    estimate = predictions[:, None]
    lower, upper = hoeffding((estimate - low) / (high - low), n_draws, delta)
    return Certificate(
        estimate=estimate,
        lower=low + (high - low) * lower,
        upper=low + (high - low) * upper,
        outcome=None,
        distance=None,
        delta=delta,
        noise=noise,
        columns=("prediction",),
        output_range=output_range,
    )


def hoeffding(mean: FloatArray, n_draws: int, delta: float) -> tuple[FloatArray, FloatArray]:
    """Interval for the mean of votes in [0, 1]: mean +- sqrt(log(2 / delta) / (2 n))."""
    margin = np.sqrt(np.log(2 / delta) / (2 * n_draws))
    return np.clip(mean - margin, 0, 1), np.clip(mean + margin, 0, 1)


def clopper_pearson(share: FloatArray, n_draws: int, delta: float) -> tuple[FloatArray, FloatArray]:
    """Interval for a probability, from the share of `n_draws` votes in {0, 1}; exact for every n."""
    count = np.rint(share * n_draws)
    with np.errstate(invalid="ignore"):
        lower = np.where(count > 0, beta.ppf(delta / 2, count, n_draws - count + 1), 0.0)
        upper = np.where(count < n_draws, beta.ppf(1 - delta / 2, count + 1, n_draws - count), 1.0)
    return lower, upper
