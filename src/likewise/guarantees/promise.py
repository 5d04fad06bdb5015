"""What is promised, at which level, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from likewise._html import folded, grid, panel, words
from likewise._typing import FloatArray
from likewise.guarantees.curves import Curve
from likewise.metrics.abstract import Metric

Level = Literal["exact", "deterministic", "sampled"]


class VacuousGuaranteeWarning(UserWarning):
    """A promise that holds, and says nothing about most people; the message has the cure.

    Attributes
    ----------
    command_text : str or None
        The same for people at the command line.
    """

    command_text: str | None = None


class IneffectiveWeightWarning(UserWarning):
    """A column with a positive weight that no model within the metric may use; the message has the cure."""


@dataclass(frozen=True, repr=False)
class Guarantee:
    """What is promised about a model.

    For two people at distance D, the outputs differ by at most ``bound(D)``, ``= curve.bound(D) + slack``, with
    probability at least ``1 - delta`` over the draws made in `fit`; at the levels "exact" and "deterministic" with
    certainty. Outputs are class probabilities, compared by total variation, or predictions, compared by absolute
    difference in units of `output_range`.

    Attributes
    ----------
    metric : Metric
        The distance between people.
    curve : Curve
        From a distance to the largest difference of the model's own outputs. `decide` follows it, without slack.
    level : {"exact", "deterministic", "sampled"}
    basis : str
        Why it holds, in words: a formula, a grid, draws, or the construction of the model.
    slack : float
        Error of sampling the outputs; 0 where they are computed.
    delta : float
        Probability, per pair, that the error of sampling is larger.
    n_draws : int
        Evaluations of an inner model per person, at most; 0 where there are none to count.
    output_range : tuple of float, or None
        For regression: predictions lie in it.
    """

    metric: Metric
    curve: Curve
    level: Level
    basis: str
    slack: float = 0.0
    delta: float = 0.0
    n_draws: int = 0
    output_range: tuple[float, float] | None = None

    @property
    def epsilon(self) -> float:
        """What the outputs of two people may differ by beyond their distance, in units of the range."""
        return self.curve.excess + self.slack

    def bound(self, distance: npt.ArrayLike) -> FloatArray:
        """Largest difference of outputs promised for two people at `distance`.

        For class probabilities: total variation, at most 1. For regression: in units of the output.
        """
        share = np.minimum(1.0, self.curve.bound(distance) + self.slack)
        low, high = self.output_range or (0.0, 1.0)
        return share * (high - low)

    def __repr__(self) -> str:
        return f"<Guarantee: {self.level}, at most {self._size} under {self.metric!r}>"

    def _repr_html_(self) -> str:
        people, outputs = ([0.01, 0.05, 0.1, 0.25, 0.5, 1.0], "outputs differ by at most")
        rows = [(f"{D:g}", f"{bound:.4g}") for D, bound in zip(people, self.bound(people), strict=True)]
        first, *rest = self.statement.splitlines()
        return panel(
            f"Outputs of two people differ by at most {self._size}. Level: {self.level}",
            grid(["people at distance D", outputs], rows, left=0),
            words("\n".join(rest), quiet=True),
            folded("The whole promise", first),
            self.metric._repr_html_(),
        )

    @property
    def _size(self) -> str:
        return f"D(x, x') + {self.epsilon:.3g}" if self.epsilon else "D(x, x')"

    @property
    def statement(self) -> str:
        """The promise in plain language, with what is not covered."""
        if self.output_range is None:
            what, unit = "class probabilities", "in total variation"
            covered = "predict_proba; and decide, which draws outcomes from the model's probabilities"
            argmax = "predict (the most likely class jumps where two classes tie), "
        else:
            low, high = self.output_range
            what, covered, argmax = "predictions", "predict; and the mean of what decide gives", ""
            unit = f"times {high - low:g}, the width of the output range"
        return (
            f"For two people x and x', the {what} differ by at most {self._size} {unit}, "
            f"where D is {self.metric.definition}; guarantee_.bound has the sharper curve. {self.basis}\n"
            f"Covered: {covered}{', without error of sampling' if self.slack else ''}. Level: {self.level}.\n"
            f"Not covered: {argmax}information that is not among the features, differences between groups, "
            "the accuracy of the model, and whether the metric is the right one."
        )
