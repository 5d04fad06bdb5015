"""The guarantee of a model for all pairs of people, and warnings if it says little."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._html import grid, panel, words
from likewise._subsample import some_pairs
from likewise._typing import FloatArray
from likewise._validation import check_numbers, short_repr
from likewise.exceptions import InvalidInputError
from likewise.guarantees.bounds import Bound
from likewise.metrics.base import Metric
from likewise.metrics.encoders import People

Level = Literal["exact", "deterministic", "sampled"]


class VacuousGuaranteeWarning(UserWarning):
    """A guarantee that holds but allows any difference between most people.

    Attributes
    ----------
    command_text : str or None
        The message for the command line.
    """

    command_text: str | None = None


class IneffectiveWeightWarning(UserWarning):
    """A column of positive weight that no model within the metric can use."""


@dataclass(frozen=True, repr=False)
class Guarantee:
    """A bound on the outputs of a model for all pairs of people.

    For two people at distance D, the outputs differ by at most ``bound(D) = curve.bound(D) + slack``, with certainty
    at the levels "exact" and "deterministic", else with probability at least ``1 - delta`` over the draws made in
    `fit`. Outputs are class probabilities, compared by total variation, or predictions, compared by absolute
    difference.

    Attributes
    ----------
    metric : Metric
        The distance between people.
    curve : Bound
        Bound on the model's own outputs, and on the distribution of `decide`, before sampling error.
    level : {"exact", "deterministic", "sampled"}
    basis : str
        Why it holds: a formula, a grid, draws, or the construction of the model.
    slack : float
        Sampling error of the outputs; 0 if they are computed.
    delta : float
        Probability, per pair, of a larger sampling error.
    n_draws : int
        Maximum number of evaluations of an inner model per person; 0 if there is none.
    output_range : tuple of float, or None
        Limits of the predictions of a regressor.
    """

    metric: Metric
    curve: Bound
    level: Level
    basis: str
    slack: float = 0.0
    delta: float = 0.0
    n_draws: int = 0
    output_range: tuple[float, float] | None = None

    @property
    def epsilon(self) -> float:
        """Largest excess of the bound over the distance, as a fraction of the output range."""
        return self.curve.excess + self.slack

    def bound(self, distance: npt.ArrayLike) -> FloatArray:
        """Largest difference of outputs for two people at `distance`.

        Total variation (at most 1) for class probabilities; in units of the output for regression.
        """
        share = np.minimum(1.0, self.curve.bound(distance) + self.slack)
        low, high = self.output_range or (0.0, 1.0)
        return share * (high - low)

    def odds_ratio(self, distance: npt.ArrayLike) -> FloatArray:
        """Largest ratio of the odds of any set of classes for two people at `distance`, rounded upwards.

        ``exp(4 D)`` where log-odds change by at most 4 D; infinite where the guarantee does not limit odds, and for a
        regression.

        Examples
        --------
        >>> from likewise._links import Tanh
        >>> from likewise.metrics.weighted_lp import WeightedLp
        >>> guarantee = Guarantee(WeightedLp([1.0]), Tanh(), "exact", "")
        >>> guarantee.odds_ratio([0, 0.05]).round(3)
        array([1.   , 1.221])
        >>> guarantee.range_at(0.03, 0.05).round(4)
        array([0.0247, 0.0364])
        """
        ratio = self.curve.odds_ratio(distance)
        return ratio if self._limits_odds else np.full_like(ratio, np.inf)

    def range_at(self, score: npt.ArrayLike, distance: npt.ArrayLike) -> FloatArray:
        """Lowest and highest output at `distance` from a person whose output is `score`; rounded outwards.

        Sampling error is included: at the level "sampled" it holds for each pair except with probability `delta`.

        Parameters
        ----------
        score : array-like
            Probabilities of a class, or of a set of classes; predictions for a regression.
        distance : array-like
            Broadcast against `score`.

        Returns
        -------
        ndarray of shape (..., 2)
        """
        lowest, highest = self.output_range or (0.0, 1.0)
        scores = check_numbers("score", score)
        if not ((scores >= lowest) & (scores <= highest)).all():
            raise InvalidInputError(f"score must be between {lowest:g} and {highest:g}; got {short_repr(score)}.")
        if self.output_range is None and not self.slack:
            self.curve.bound(distance)  # validates
            # A score of 1 may be one below it, rounded: its odds are not infinite.
            room = 4 * np.finfo(np.float64).eps
            low, high = np.maximum(0.0, scores - room), np.minimum(1.0, scores + room)
            ends = self.curve.lowest(low, distance), self.curve.highest(high, distance)
        else:
            size = self.bound(distance)
            margin = 4 * np.finfo(np.float64).eps * (np.abs(scores) + size)
            ends = np.maximum(scores - size - margin, lowest), np.minimum(scores + size + margin, highest)
        return np.stack(np.broadcast_arrays(*ends), axis=-1)

    @property
    def _limits_odds(self) -> bool:
        return self.output_range is None and not self.epsilon and np.isfinite(self.curve.log_odds_slope)

    @property
    def odds_statement(self) -> str:
        """What holds for odds, with an example for a rare outcome; empty if odds are not limited."""
        if not self._limits_odds:
            return ""
        gain = float(self.range_at(0.03, 0.05)[1]) - 0.03
        return (
            f"The odds of any outcome differ by a factor of at most exp({self.curve.log_odds_slope:g} D(x, x')): at a "
            f"chance of 3%, five points of distance are at most {round_upwards(100 * gain)} points of chance."
        )

    def __repr__(self) -> str:
        return f"<Guarantee: {self.level}, at most {self._size} under {self.metric!r}>"

    def _repr_html_(self) -> str:
        distances = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0]
        rows = [(f"{D:g}", round_upwards(bound, 4)) for D, bound in zip(distances, self.bound(distances), strict=True)]
        return panel(
            f"Outputs of two people differ by at most {self._size}. Level: {self.level}",
            grid(["people at distance D", "outputs differ by at most"], rows, left=0),
            words(self.statement, quiet=True),
            self.metric._repr_html_(),
        )

    @property
    def _size(self) -> str:
        return f"D(x, x') + {round_upwards(self.epsilon, 3)}" if self.epsilon else "D(x, x')"

    @property
    def statement(self) -> str:
        """What holds (for odds too, where they are limited), at which level and why, and what is not covered."""
        if self.output_range is None:
            outputs, unit = "the class probabilities", "in total variation"
            covered = "predict_proba and decide" + " (independent draws without sampling error)" * bool(self.slack)
            not_covered = "predict (it jumps where classes tie), "
        else:
            low, high = self.output_range
            outputs, unit = "the predictions", f"times {high - low:g}, the width of the output range"
            covered, not_covered = "predict", ""
        odds = f" {self.odds_statement}" if self.odds_statement else ""
        return (
            f"For any two people x and x', {outputs} differ by at most {self._size} {unit}.{odds}\n"
            f"Level: {self.level}. {self.basis}\n"
            f"Covered: {covered}. Not covered: {not_covered}what the features leave out, differences between "
            "groups, accuracy, and whether the metric is the right one."
        )

    def describe(self) -> str:
        """The statement, with the table of the metric's weights, and what distances mean at some chances."""
        weights = self.metric.describe().to_string(index=False)
        return f"{self.statement}\n\nD, in full:\n{weights}\n{self.metric.notes()}{self._chances()}"

    def _chances(self) -> str:
        """Where odds are limited: the highest chance at some distances from some chances."""
        if not self._limits_odds:
            return ""
        chances, distances = np.array([0.01, 0.03, 0.1, 0.5]), np.array([0.01, 0.05, 0.1])
        highest = self.range_at(chances[:, None], distances)[..., 1]
        rows = [
            [f"{chance:.0%}", *(f"{round_upwards(100 * x, 3)}%" for x in row)]
            for chance, row in zip(chances, highest, strict=True)
        ]
        names = ["chance", *(f"D = {distance:g}" for distance in distances)]
        return f"\n\nThe highest chance at a distance D:\n{pd.DataFrame(rows, columns=names).to_string(index=False)}"


def round_upwards(value: float, digits: int = 2) -> str:
    """A positive number rounded up to `digits` significant digits.

    Examples
    --------
    >>> round_upwards(0.6401), round_upwards(12.0, 3)
    ('0.65', '12')
    """
    unit = 10.0 ** (digits - 1 - math.floor(math.log10(value)))
    return f"{math.ceil(value * unit * (1 - 1e-12)) / unit:g}"


_MAX_EPSILON = 0.5
_MAX_FAR = 0.99  # fraction of pairs
_PAIRS = 2000
_MIN_REACH = 0.01  # fraction of a column's range


def warn_if_vacuous(guarantee: Guarantee, people: People) -> None:
    """Warn if the guarantee allows nearly any difference, by its epsilon or between nearly all pairs of `people`."""
    if guarantee.epsilon >= _MAX_EPSILON:
        problem = (
            f"The guarantee says little: outputs may differ by D + {guarantee.epsilon:.3g}, and 1 is the largest "
            f"possible difference. Take more draws than {guarantee.n_draws:,}"
        )
        warn_vacuous(
            f"{problem} (n_draws='auto' takes as many as epsilon needs), or use a metric with fewer columns.",
            f"{problem} (without --draws it takes as many as --epsilon needs), or use a metric with fewer columns.",
        )
    distances = _some_distances(guarantee, people)
    far = float((distances >= 1).mean())
    if far >= _MAX_FAR:
        factor = float(f"{0.5 / np.median(distances):.1g}")
        problem = f"The guarantee says nothing about {far:.1%} of the pairs of people"
        rule = "they are at a distance D >= 1, where outputs may differ by any amount. Use smaller weights"
        gain = "half of these pairs are closer than about 0.5."
        warn_vacuous(
            f"{problem} in X: {rule}: under metric.scaled({factor:g}), {gain}",
            f"{problem}: {rule}: with all of them times {factor:g}, {gain}",
        )


def warn_vacuous(text: str, command_text: str) -> None:
    """Warn that a guarantee says little; the command line has its own advice."""
    warning = VacuousGuaranteeWarning(text)
    warning.command_text = command_text
    warnings.warn(warning, stacklevel=_frames_to_caller())


def warn_if_ineffective(metric: Metric, people: People) -> None:
    """Warn of numeric columns of positive weight whose missing weight leaves (almost) no effect.

    A person without the number is at distance m from everyone who has it, so by the triangle inequality two people who
    have it may differ by at most ``2 m`` because of it, whatever the column's own weight.
    """
    weights = metric.known_weights(people.encoder)
    if weights is None:
        return
    for i in np.flatnonzero(weights.is_number & weights.matters & ~np.isnan(weights.missing)).tolist():
        known = people.rows[:, i][~np.isnan(people.rows[:, i])]
        scale, missing, name = float(weights.scales[i]), float(weights.missing[i]), people.encoder.names[i]
        if len(known) and 2 * missing < _MIN_REACH * scale * float(np.ptp(known)):
            effect = (
                f"two people may differ by at most {2 * missing:.3g} because of it, less than {_MIN_REACH:.0%} of "
                "what its weight allows over its range"
                if missing
                else "no model within the metric can use the column"
            )
            warnings.warn(
                f"The metric gives {name!r} the weight {scale:.3g}, but a missing {name!r} only {missing:.3g}. "
                f"By the triangle inequality, {effect}. "
                f"Raise the missing weight of {name!r} to at least half of weight times range ({scale / 2:.3g} times "
                "the range of the column), or set the weight to 0.",
                IneffectiveWeightWarning,
                stacklevel=_frames_to_caller(),
            )


@contextmanager
def suppress_guarantee_warnings() -> Iterator[None]:
    """Suppress these warnings in auxiliary fits: the final fit repeats them."""
    with warnings.catch_warnings():
        for kind in (VacuousGuaranteeWarning, IneffectiveWeightWarning):
            warnings.simplefilter("ignore", kind)
        yield


def _frames_to_caller() -> int:
    """Number of frames up to the first one outside likewise."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("likewise."):
        frame, level = frame.f_back, level + 1
    return level


def _some_distances(guarantee: Guarantee, people: People) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Distances of a fixed sample of up to `_PAIRS` pairs."""
    a, b = some_pairs(len(people), _PAIRS)
    return guarantee.metric.between(people.take(a), people.take(b))
