"""What is promised, at which level, and how many draws it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from likewise._checks import check_count, check_positive, check_probability
from likewise.metrics import FloatArray, WeightedLp
from likewise.noise import Curve
from likewise.tables import TableMetric

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


def draws_needed(
    epsilon: float,
    delta: float,
    n_classes: int = 2,
    shared: bool = True,
    *,
    n_people: int = 2,
    method: Literal["sharpest", "paper"] = "sharpest",
) -> int:
    """Draws after which sampled probabilities are within `epsilon` of the promise, except with `delta`.

    The smallest n with ``failure_probability(n, epsilon, ...) <= delta``.

    Parameters
    ----------
    epsilon : float
        Excess over the noise's bound, in total variation, that is tolerated.
    delta : float
        Probability, over the draws, that some pair has a larger excess.
    n_classes : int, default=2
        Use 2 for regression.
    shared : bool, default=True
        Whether one set of draws serves all people (as in the estimators) or each has their own.
    n_people : int, default=2
        The promise covers all pairs among that many people at once; 2 is one pair.
    method : {"sharpest", "paper"}, default="sharpest"
        "paper": the union bound over classes of Theorem 7 of the paper.

    Examples
    --------
    >>> draws_needed(0.01, 1.8e-4, shared=False, method="paper")
    100089
    >>> draws_needed(0.01, 1.8e-4, shared=False)
    93158
    >>> draws_needed(0.01, 1.8e-4)
    186315
    """
    check_positive("epsilon", epsilon, cure="No finite number of draws gives 0.")
    delta = check_probability("delta", delta)
    needed = min(
        (log_factor - np.log(delta)) / (rate * epsilon**2)
        for log_factor, rate in _bounds(n_classes, shared, n_people, method)
    )
    return max(1, int(np.ceil(needed * (1 + 1e-12))))


def failure_probability(
    n_draws: int,
    epsilon: float,
    n_classes: int = 2,
    shared: bool = True,
    *,
    n_people: int = 2,
    method: Literal["sharpest", "paper"] = "sharpest",
) -> float:
    """Probability that `n_draws` leave some pair more than `epsilon` above the promise, at most.

    Parameters are those of `draws_needed`.

    Examples
    --------
    >>> f"{failure_probability(100_000, 0.01, shared=False, method='paper'):.2g}"  # the paper's number
    '0.00018'
    """
    n_draws = check_count("n_draws", n_draws)
    check_positive("epsilon", epsilon)
    return min(
        1.0,
        *(
            float(np.exp(min(0.0, log_factor - n_draws * rate * epsilon**2)))
            for log_factor, rate in _bounds(n_classes, shared, n_people, method)
        ),
    )


def error_margin(n_draws: int, delta: float, n_classes: int = 2, shared: bool = True, *, n_people: int = 2) -> float:
    """Smallest epsilon that `n_draws` support at `delta`; at most 1. The inverse of `draws_needed`.

    Examples
    --------
    >>> round(error_margin(186_315, 1.8e-4), 4)
    0.01
    """
    n_draws = check_count("n_draws", n_draws)
    delta = check_probability("delta", delta)
    return min(
        1.0,
        *(
            float(np.sqrt((log_factor - np.log(delta)) / (rate * n_draws)))
            for log_factor, rate in _bounds(n_classes, shared, n_people, "sharpest")
        ),
    )


def _bounds(n_classes: Any, shared: bool, n_people: Any, method: str) -> list[tuple[float, float]]:
    """Valid pairs (log_factor, rate): the failure probability is at most exp(log_factor - n rate epsilon^2).

    Proofs: `docs/theory.md` §5.
    """
    m = check_count("n_classes", n_classes, least=2)
    n = check_count("n_people", n_people, least=2)
    if method not in ("sharpest", "paper"):
        raise ValueError(f"method must be 'sharpest' or 'paper'; got {method!r}.")
    # One pair, by Hoeffding's inequality: with own draws an event is a sum of 2n independent terms of range
    # 1/n (rate 1); with shared draws, of n differences of range 2/n (rate 1/2).
    rate = 0.5 if shared else 1.0
    log_pairs = float(np.log(n) + np.log(n - 1) - np.log(2))
    per_class = (float(np.log(2 * m)) + log_pairs, rate * 4 / m**2)  # cf. Thm 7 of the paper
    if method == "paper":
        return [per_class]
    # Total variation is a maximum over the 2^m - 2 non-trivial sets of classes, one Hoeffding bound each.
    log_sets = float(m * np.log(2) + np.log1p(-(2.0 ** (1 - m))))
    per_set = (log_sets + log_pairs, rate)
    # Or each person's own error is at most epsilon / 2, and the triangle inequality does the rest.
    per_person = (log_sets + float(np.log(n)), 0.5)
    return [per_class, per_set, per_person]
