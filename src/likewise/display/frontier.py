"""A plot of the frontier of a designed metric: held-out loss against mean distance."""

from __future__ import annotations

from typing import Any, Self

from likewise.design.frontier import MetricFrontier
from likewise.display.base import BLUE, GREY, INK, ORANGE, ResultDisplay
from likewise.guarantees.guarantee import suppress_guarantee_warnings


class FrontierDisplay(ResultDisplay[MetricFrontier]):
    """Held-out loss against the mean distance of two people, with what it is compared to.

    Bars and bands are one standard error; the circle is `MetricFrontier.best`.

    Parameters
    ----------
    result : MetricFrontier

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after `plot`

    Examples
    --------
    >>> import matplotlib
    >>> import numpy as np
    >>> from likewise import design_metric
    >>> matplotlib.use("Agg")
    >>> X, y = np.linspace(0, 1, 80)[:, None], np.arange(80) // 40
    >>> frontier = design_metric(X, y, n_points=3, cv=2, references=False)
    >>> FrontierDisplay.from_frontier(frontier).ax_.get_xlabel()
    'Mean distance of two people: stricter to the left, looser to the right'
    """

    @classmethod
    def from_frontier(cls, result: MetricFrontier, *, ax: Any = None) -> Self:
        """Plot the result of `design_metric`."""
        return cls._from_result(result, MetricFrontier, "design_metric", ax)

    def _draw(self, ax: Any) -> None:
        frontier = self.result
        with suppress_guarantee_warnings():
            table, best = frontier.table, frontier.best()
        for title, reference in frontier.references.items():
            colour = GREY if reference.mean_distance == 0 else ORANGE
            if reference.mean_distance:
                ax.errorbar(
                    reference.mean_distance, reference.loss, yerr=reference.standard_error, fmt="D", color=colour
                )
                at, words = (reference.mean_distance, reference.loss), dict[str, Any](xytext=(8, 6))
            else:
                low, high = (reference.loss + sign * reference.standard_error for sign in (-1, 1))
                ax.axhspan(low, high, color=colour, alpha=0.14, lw=0)
                ax.axhline(reference.loss, color=colour, lw=1.4, ls=(0, (5, 3)))
                at = (0.99, reference.loss)
                words = {"xytext": (0, 4), "ha": "right", "xycoords": ("axes fraction", "data")}
            ax.annotate(title, at, textcoords="offset points", fontsize=9, color=INK, **words)
        ax.errorbar(
            table["mean_distance"], table["loss"], yerr=table["standard_error"], color=BLUE, marker="o", lw=2, capsize=3
        )
        ax.plot(best.mean_distance, best.loss, "o", ms=12, mfc="none", mec=INK, mew=1.4, zorder=4)
        ax.set_xscale("log")
        ax.set_xlabel("Mean distance of two people: stricter to the left, looser to the right")
        ax.set_ylabel(f"{frontier.loss_name} on held-out people (lower is better)")
