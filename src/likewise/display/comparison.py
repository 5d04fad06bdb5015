"""A plot of a comparison: the proper score of each way, and the constant that it must beat."""

from __future__ import annotations

from typing import Any, Self

from likewise.display.style import BLUE, GREY, INK, RED, axes, tidy
from likewise.exceptions import InvalidTypeError
from likewise.selection.compare import Comparison
from likewise.selection.cross_validation import SCORES
from likewise.selection.methods import CONSTANT


class ComparisonDisplay:
    """Proper scores of all methods with their standard errors, the simplest method on top.

    A filled point keeps the promise; a hollow one promises nothing, or breaks what it promises. The shaded region is
    worse than a constant. The ring is the recommended method.

    Parameters
    ----------
    result : Comparison

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after `plot`

    Examples
    --------
    >>> import matplotlib
    >>> import numpy as np
    >>> from likewise import WeightedLp, compare
    >>> matplotlib.use("Agg")
    >>> result = compare(np.linspace(0, 1, 60)[:, None], np.arange(60) // 30, WeightedLp([0.8]), ["linear"], cv=3)
    >>> ComparisonDisplay.from_comparison(result).ax_.get_xlabel()
    'Brier score of people held out (lower is better)'
    """

    ax_: Any
    figure_: Any

    def __init__(self, result: Comparison) -> None:
        self.result = result

    @classmethod
    def from_comparison(cls, result: Comparison, *, ax: Any = None) -> Self:
        """Plot the result of `compare`."""
        if not isinstance(result, Comparison):
            raise InvalidTypeError(f"result must be what compare returned; got {type(result).__name__}.")
        return cls(result).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the points on `ax`, or on a new figure."""
        measure = SCORES[self.result.task][0]
        table, best = self.result.table, self.result.best()
        gone = table[table["evaluations"].notna()]
        scores, errors = gone[measure.name], gone[f"{measure.name}_se"]
        ax = axes(ax, (7.6, 1.3 + 0.42 * len(gone)))
        constant = float(scores[CONSTANT])
        low, high = float((scores - errors).min()), float((scores + errors).max())
        margin = 0.06 * (high - low or 1.0)
        ax.set_xlim(low - margin, high + margin)
        ax.set_ylim(len(gone) - 0.4, -0.6)
        ax.axvspan(constant, high + margin, color=GREY, alpha=0.13, lw=0)
        ax.axvline(constant, color=GREY, lw=1.2, ls=(0, (4, 3)))
        for place, (name, row) in enumerate(gone.iterrows()):
            kept = self.result.showings[str(name)].keeps_promise
            colour = BLUE if kept else INK
            ax.errorbar(
                row[measure.name],
                place,
                xerr=row[f"{measure.name}_se"],
                fmt="o",
                ms=7,
                color=colour,
                mfc=colour if kept else "white",
                mew=1.5,
                elinewidth=1.6,
                zorder=3,
            )
            if name == best.name:
                ax.plot(row[measure.name], place, "o", ms=15, mfc="none", mec=BLUE, mew=1.4, zorder=4)
            ax.annotate(
                _violations(row["violations"]),
                (1.015, place),
                xycoords=("axes fraction", "data"),
                va="center",
                fontsize=9,
                color=RED if row["violations"] else INK,
            )
        ax.set_yticks(range(len(gone)), [f"{row.title}" for row in gone.itertuples()])
        for label, name in zip(ax.get_yticklabels(), gone.index, strict=True):
            label.set_fontweight("bold" if name == best.name else "normal")
        ax.annotate(
            "a constant; worse to the right",
            (constant, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            fontsize=9,
            color=GREY,
            annotation_clip=False,
        )
        ax.set_xlabel(f"{measure.title} of people held out (lower is better)")
        self._legend(ax)
        tidy(ax)
        ax.tick_params(axis="y", length=0)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _legend(self, ax: Any) -> None:
        from matplotlib.lines import Line2D

        def point(label: str, **look: Any) -> Any:
            return Line2D([], [], ls="", marker="o", label=label, **look)

        handles = [
            point("keeps the promise", color=BLUE, ms=7),
            point("no promise", color=INK, mfc="white", mew=1.5, ms=7),
            point("recommended", color=BLUE, mfc="none", mew=1.4, ms=11),
        ]
        ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, frameon=False, fontsize=9)


def _violations(count: int) -> str:
    if not count:
        return "no violation"
    return f"{count:,} violation" + ("s" if count > 1 else "")
