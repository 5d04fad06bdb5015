"""What is promised, and at which level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from likewise._typing import FloatArray
from likewise.guarantees.curves import Curve
from likewise.metrics.lp import WeightedLp
from likewise.metrics.tabular import TableMetric

Level = Literal["exact", "deterministic", "sampled"]


@dataclass(frozen=True)
class Guarantee:
    """What is promised about a smoothed model.

    For two people at distance D, the outputs differ by at most ``bound(D)``, ``= noise.bound(D) + epsilon``,
    with probability at least ``1 - delta`` over the draws made in `fit`; at the levels "exact" (a formula) and
    "deterministic" (a `Splitting`) with certainty. Outputs are class probabilities,
    compared by total variation, or predictions, compared by absolute difference in units of `output_range`.

    Attributes
    ----------
    noise : Noise or TableNoise
        Its curve is the promise before the error of sampling.
    epsilon, delta : float
        Error of drawing, and the probability that a pair exceeds it. Both 0 for "exact". For "deterministic", delta
        is 0 and epsilon is the number of features without a grid, divided by `n_draws`.
    level : {"exact", "deterministic", "sampled"}
    n_draws : int
        Evaluations of the inner model per person, at most; 0 for "exact".
    output_range : tuple of float, or None
        For regression: predictions lie in it.
    """

    noise: Curve
    epsilon: float
    delta: float
    level: Level
    n_draws: int
    output_range: tuple[float, float] | None = None

    @property
    def metric(self) -> WeightedLp | TableMetric:
        """The distance between people that the promise refers to."""
        metric: WeightedLp | TableMetric = self.noise.metric
        return metric

    def bound(self, distance: npt.ArrayLike) -> FloatArray:
        """Largest difference of outputs promised for two people at `distance`.

        For class probabilities: total variation, at most 1. For regression: in units of the output.
        """
        share = np.minimum(1.0, self.noise.bound(distance) + self.epsilon)
        low, high = self.output_range or (0.0, 1.0)
        return share * (high - low)

    @property
    def statement(self) -> str:
        """The promise in plain language, with what is not covered."""
        if self.output_range is None:
            what, unit, covered = "class probabilities", "in total variation", "predict_proba"
            argmax = "predict (the most likely class jumps where two classes tie), "
        else:
            low, high = self.output_range
            what, unit, covered = (
                "predictions",
                f"times {high - low:g}, the width of the output range",
                "predict",
            )
            argmax = ""
        size, odds = self._size_and_odds()
        return (
            f"For two people x and x', the {what} differ by at most {size} {unit}, "
            f"where D is {self.metric!r}; guarantee_.bound has the sharper curve of the noise. {odds}\n"
            f"Covered: {covered}; and decide, whose outcome has exactly the smoothed law (no sampling error). "
            f"Level: {self.level}.\n"
            f"Not covered: {argmax}information that is not among the features, differences between groups, "
            "the accuracy of the model, and whether the metric is the right one."
        )

    def _size_and_odds(self) -> tuple[str, str]:
        """How large a difference may be, and how sure that is."""
        if self.level == "sampled":
            return f"D(x, x') + {self.epsilon:.3g}", (
                f"This holds for each pair with probability at least {1 - self.delta:.6g} over the "
                f"{self.n_draws:,} random draws made in fit, for pairs chosen without knowledge of the draws."
            )
        if self.level == "exact":
            return "D(x, x')", "This holds for all pairs, with certainty: outputs come from a formula."
        n_loose = round(self.epsilon * self.n_draws)
        if n_loose == 0:
            return "D(x, x')", (
                f"This holds for all pairs, with certainty: outputs are averages over {self.n_draws:,} fixed shifts "
                "of a grid that holds every feature's values; values off the grid are refused."
            )
        return f"D(x, x') + n/{self.n_draws:,}", (
            f"Here n counts the features in which x and x' differ, among the {n_loose} whose values are not on a grid, "
            f"so n/{self.n_draws:,} is at most {self.epsilon:.3g}. This holds for all pairs, with certainty: outputs "
            f"are averages over {self.n_draws:,} fixed shifts of a grid, not over random draws."
        )
