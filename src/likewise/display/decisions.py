"""A plot of `decision_costs`: how much lottery a guarantee about decisions needs."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from likewise.decisions.costs import DecisionCosts
from likewise.display.base import BLUE, GREY, INK, ORANGE, ResultDisplay


class DecisionDisplay(ResultDisplay[DecisionCosts]):
    """What soft thresholds of several widths guarantee, and what they cost, in percent.

    The guarantee is the largest probability that any two people at distance `near` are decided differently. Below it
    is the largest found among near pairs. The cost is the share of decisions that contradict the plain threshold, and
    with outcomes the accuracy that is lost.

    Parameters
    ----------
    result : DecisionCosts

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after `plot`

    Examples
    --------
    >>> import matplotlib
    >>> from likewise import AdditiveClassifier, WeightedLp, decision_costs
    >>> matplotlib.use("Agg")
    >>> X = np.linspace(-1, 1, 100)[:, None]
    >>> card = AdditiveClassifier(WeightedLp([0.4]), penalty=0.01).fit(X, X[:, 0] > 0)
    >>> DecisionDisplay.from_costs(decision_costs(card, X)).ax_.get_xlabel()
    'Width of the band around the threshold 0.5'
    """

    @classmethod
    def from_costs(cls, result: DecisionCosts, *, ax: Any = None) -> Self:
        """Plot the result of `decision_costs`."""
        return cls._from_result(result, DecisionCosts, "decision_costs", ax)

    def _draw(self, ax: Any) -> None:
        table = self.result.table.sort_index()
        places = np.arange(len(table))  # widths span two orders of magnitude, and 0
        near = f"distance {self.result.near:g}"
        curves: list[tuple[Any, str, dict[str, Any]]] = [
            (table["near_largest"], f"largest found among near pairs ({near})", {"color": BLUE, "ls": "--"}),
            (table["against_threshold"], "decisions against the plain threshold", {"color": ORANGE}),
        ]
        if "guarantee" in table:
            curves.insert(0, (table["guarantee"], f"guaranteed for any two people at {near}", {"color": BLUE}))
        if "accuracy" in table:
            lost = table["accuracy"].iloc[0] - table["accuracy"]
            curves.append((lost, f"accuracy lost against width {table.index[0]:g}", {"color": GREY}))
        for values, label, look in curves:
            ax.plot(places, 100 * values, marker="o", ms=5, lw=2, label=label, **look)
        ax.set_xticks(places, [f"{width:g}" for width in table.index])
        ax.set_xlabel(f"Width of the band around the threshold {self.result.threshold:g}")
        ax.set_ylabel("Percent: decided differently, or lost")
        ax.axhline(0, color=GREY, lw=0.8)
        ax.legend(frameon=False, fontsize=9, labelcolor=INK)
