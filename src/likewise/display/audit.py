"""A plot of an audit: the pairs that exceed a metric."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from likewise.auditing.audit import Audit
from likewise.display.base import BLUE, GREY, INK, RED, ResultDisplay, legend


class AuditDisplay(ResultDisplay[Audit]):
    """Difference of the scores of pairs against their distance, for random pairs and the worst.

    The shaded region is what the metric allows: a difference of at most the distance, plus the tolerance.

    Parameters
    ----------
    result : Audit

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after `plot`

    Examples
    --------
    >>> from likewise import WeightedLp, audit
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> result = audit(None, [[0.0], [0.1], [3.0]], WeightedLp([0.1]), predictions=[0.1, 0.9, 0.2])
    >>> AuditDisplay.from_audit(result).ax_.get_xlabel()
    'Distance D between two people'
    """

    @classmethod
    def from_audit(cls, result: Audit, *, ax: Any = None) -> Self:
        """Plot the result of `audit`."""
        return cls._from_result(result, Audit, "audit", ax)

    def _draw(self, ax: Any) -> None:
        result, random, worst = self.result, self.result.sample, self.result.violations
        # Far pairs may differ by any amount: the interest is where the difference of outputs can exceed D.
        largest = max(random["difference"].max(), worst["difference"].max(), 0.0, 1e-12)
        limit = 1.1 * max(float(np.nan_to_num(largest)), 1e-12)
        ends = np.array([0.0, 100 * limit])  # for axes that are made longer
        ax.fill_between(ends, ends + result.tolerance, color=BLUE, alpha=0.09, lw=0)
        ax.plot(ends, ends + result.tolerance, color=BLUE, lw=1.4)
        above = random["difference"] > random["distance"] + result.tolerance
        colours = np.where(above, RED, GREY)
        label = f"{len(random):,} random pairs"
        ax.scatter(
            random["distance"], random["difference"], s=np.where(above, 14, 7), c=colours, alpha=0.55, lw=0, label=label
        )
        if len(worst):
            look = {"s": 22, "color": RED, "edgecolor": "white", "lw": 0.5, "zorder": 3}
            label = f"the worst {len(worst):,} violations"
            ax.scatter(worst["distance"], worst["difference"], label=label, **look)
        ax.set_xlim(0, limit)
        ax.set_ylim(0, limit)
        corner = {"transform": ax.transAxes, "ha": "right", "va": "bottom"}
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5}
        ax.text(0.98, 0.03, "allowed by the metric", color=BLUE, fontsize=9, bbox=box, **corner)
        ax.set_xlabel("Distance D between two people")
        ax.set_ylabel("Difference of their outputs")
        title = f"{result.n_violations:,} of {result.n_pairs:,} pairs exceed the metric"
        # The legend stands between title and axes: violations may fill the upper left corner.
        ax.set_title(title, loc="left", fontsize=10, color=INK, pad=24)
        legend(ax, borderaxespad=0.1, ncols=2)
