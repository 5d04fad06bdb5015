"""The guarantee of a model for all pairs of people, which only a rule can make."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._html import grid, panel, words
from likewise._typing import FloatArray
from likewise._validation import check_numbers, short_repr
from likewise.exceptions import InvalidInputError, UnprovableError
from likewise.kernel.bounds import Bound
from likewise.kernel.metric import BoundMetric

Level = Literal["exact", "deterministic", "sampled"]

SEAL = object()  # of the rules: what has another one was made without evidence


@dataclass(frozen=True, repr=False)
class Guarantee:
    """A bound on the outputs of a model for all pairs of people.

    For two people at distance D, the outputs differ by at most ``bound(D) = curve.bound(D) + slack``, with certainty
    at the levels "exact" and "deterministic", else with probability at least ``1 - delta`` over the draws made in
    `fit`. Outputs are class probabilities, compared by total variation, or predictions, compared by absolute
    difference.

    Attributes
    ----------
    bound_metric : BoundMetric
        The distance between people, bound to the columns of the evidence.
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

    bound_metric: BoundMetric
    curve: Bound
    level: Level
    basis: str
    slack: float = 0.0
    delta: float = 0.0
    n_draws: int = 0
    output_range: tuple[float, float] | None = None
    seal: InitVar[object] = None

    def __post_init__(self, seal: object) -> None:
        if seal is not SEAL:
            raise UnprovableError(
                "A guarantee comes out of a rule (likewise.kernel.rules), from evidence; none is made by hand. Fit a "
                "model, or load one."
            )

    @property
    def metric(self) -> Any:
        """The distance between people, as it was described."""
        return self.bound_metric.description

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
        >>> from likewise import AdditiveClassifier, WeightedLp
        >>> guarantee = AdditiveClassifier(WeightedLp([1.0])).fit([[0], [1]] * 9, [0, 1] * 9).guarantee_
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
