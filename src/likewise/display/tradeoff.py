"""A plot of a trade-off: the proper score under stricter and looser metrics."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from likewise.display.style import BLUE, GREY, INK, ORANGE, axes, tidy
from likewise.exceptions import InvalidTypeError
from likewise.selection.cross_validation import SCORES
from likewise.selection.tradeoff import Tradeoff


class TradeoffDisplay:
    """Proper score against the scale of the metric, between a constant and the model without a promise.

    Bands and bars are one standard error.

    Parameters
    ----------
    result : Tradeoff

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after `plot`

    Examples
    --------
    >>> import matplotlib
    >>> import numpy as np
    >>> from likewise import SmoothedClassifier, WeightedLp, tradeoff
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> matplotlib.use("Agg")
    >>> X, y = np.linspace(0, 1, 60)[:, None], np.arange(60) // 30
    >>> method = ("smoothed tree", SmoothedClassifier(DecisionTreeClassifier(max_depth=1), random_state=0))
    >>> result = tradeoff(X, y, WeightedLp([0.8]), [0.5, 1], method=method, cv=3)
    >>> TradeoffDisplay.from_tradeoff(result).ax_.get_ylabel()
    'Brier score of people held out (lower is better)'
    """

    ax_: Any
    figure_: Any

    def __init__(self, result: Tradeoff) -> None:
        self.result = result

    @classmethod
    def from_tradeoff(cls, result: Tradeoff, *, ax: Any = None) -> Self:
        """Plot the result of `tradeoff`."""
        if not isinstance(result, Tradeoff):
            raise InvalidTypeError(f"result must be what tradeoff returned; got {type(result).__name__}.")
        return cls(result).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the curve on `ax`, or on a new figure."""
        result, ax = self.result, axes(ax, (6.8, 4.2))
        measure = SCORES[result.task][0]
        table, name = result.table, measure.name
        scales = np.array(table.index, dtype=np.float64)
        for showing, colour, words, above in (
            (result.constant, GREY, "a constant", True),
            (result.reference, ORANGE, f"{result.reference.row['title']}, no promise", False),
        ):
            value, error = showing.row[name], showing.row[f"{name}_se"]
            ax.axhspan(value - error, value + error, color=colour, alpha=0.14, lw=0)
            ax.axhline(value, color=colour, lw=1.4, ls=(0, (4, 3)))
            ax.annotate(
                words,
                (0.99, value),
                xycoords=("axes fraction", "data"),
                xytext=(0, 4 if above else -4),
                textcoords="offset points",
                ha="right",
                va="bottom" if above else "top",
                fontsize=9,
                color=INK,
            )
        ax.set_xscale("log", base=2)
        ax.errorbar(
            scales,
            table[name],
            yerr=table[f"{name}_se"],
            color=BLUE,
            marker="o",
            ms=6,
            lw=2,
            elinewidth=1.4,
            capsize=3,
            zorder=3,
        )
        ax.annotate(
            f"{result.title}, within the metric",
            (scales[0], table[name].iloc[0]),
            xytext=(9, 7),
            textcoords="offset points",
            fontsize=9,
            fontweight="bold",
            color=BLUE,
        )
        if result.meets is not None and result.meets > scales[0]:
            level = result.showings[result.meets].row[name]
            ax.plot(result.meets, level, "o", ms=12, mfc="none", mec=INK, mew=1.4, zorder=4)
            ax.annotate(
                f"as good at x {result.meets:g}",
                (result.meets, level),
                xytext=(10, 12),
                textcoords="offset points",
                fontsize=9,
                color=INK,
            )
        ax.set_xticks(scales, [f"x {scale:g}" for scale in scales])
        ax.minorticks_off()
        ax.set_xlabel("Scale of the metric: stricter to the left, looser to the right")
        ax.set_ylabel(f"{measure.title} of people held out (lower is better)")
        ax.margins(y=0.12)
        tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
