"""A scorecard as a picture. Matplotlib is imported when it is drawn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from likewise._extras import need
from likewise.enforce.additive.panels import Panel, height, panels_of
from likewise.enforce.links import LINKS

# Colours that stay apart for colour-blind readers, and in grey.
_BLUE, _ORANGE, _FAN, _GREY, _INK = "#2f6fa7", "#d9730d", "#dfe7ef", "#8a8f98", "#2b2f36"


class ScorecardDisplay:
    """The shape of each column, with the fan of slopes that the metric allows.

    The fan opens at the middle of the people, as steep as the metric allows in both directions: a shape that follows
    its edge is held back by the metric, and drawn in orange there. For categories the band is the widest range allowed.

    Parameters
    ----------
    model : AdditiveClassifier or AdditiveRegressor
        Fitted.
    outcome : label of a class, optional
        Whose points; ``classes_[-1]`` if not given.

    Attributes
    ----------
    axes_, figure_ : array of matplotlib Axes, and Figure, after `plot`

    Examples
    --------
    >>> import matplotlib
    >>> from likewise import AdditiveClassifier, WeightedLp
    >>> matplotlib.use("Agg")
    >>> model = AdditiveClassifier(WeightedLp({"age": 0.02}), penalty=1e-3)
    >>> import pandas as pd
    >>> display = ScorecardDisplay.from_estimator(model.fit(pd.DataFrame({"age": [20, 40, 60, 70]}), [0, 1, 0, 1]))
    >>> display.axes_[0].get_title(loc="left")
    'age'
    """

    axes_: Any
    figure_: Any

    def __init__(self, model: Any, outcome: Any = None) -> None:
        self.model = model
        self.outcome = outcome

    @classmethod
    def from_estimator(cls, model: Any, *, outcome: Any = None, most: int = 12) -> Self:
        """Plot a fitted model.

        Parameters
        ----------
        model : AdditiveClassifier or AdditiveRegressor
        outcome : label of a class, optional
        most : int, default=12
            Columns shown, at most: those whose points range most.
        """
        return cls(model, outcome).plot(most=most)

    def plot(self, *, most: int = 12) -> Self:
        """Draw the shapes on a new figure, the widest first, all in the same units of points."""
        plt = need("matplotlib.pyplot", "A plot")
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        panels = panels_of(self.model, self.outcome, most)
        wide = min(4, max(1, len(panels)))
        tall = max(1, -(-len(panels) // wide))
        figure, axes = plt.subplots(
            tall,
            wide,
            figsize=(3.3 * wide, 2.75 * tall),
            sharey=True,
            squeeze=False,
            layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.1),
        )
        flat = axes.ravel()
        flat[0].set_ylim(*height(panels))
        for ax, panel in zip(flat, panels, strict=False):
            (_draw_categories if panel.knots is None else _draw_numbers)(ax, panel)
            ax.set_title(panel.column, loc="left", fontsize=10, color=_INK)
            _tidy(ax)
        for ax in flat[len(panels) :]:
            ax.set_visible(False)
        figure.supylabel(f"Points ({self._unit()})", fontsize=10, color=_INK)
        figure.legend(handles=_handles(), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
        self.axes_, self.figure_ = flat[: len(panels)], figure
        return self

    def _unit(self) -> str:
        scorer = self.model._scorer()
        if scorer.guarantee.output_range:
            return "units of the output"
        return f"{LINKS[scorer.link].score} of {self.model._outcome(self.outcome)!r}"


def _draw_numbers(ax: Any, panel: Panel) -> None:
    knots, points = panel.knots, panel.points
    assert knots is not None
    ax.fill_between(knots, panel.low, panel.high, color=_FAN, lw=0, zorder=0)
    ax.axhline(0, color=_GREY, lw=0.7, zorder=1)
    ax.plot(knots, points, color=_BLUE, lw=1.9, zorder=2, solid_capstyle="round")
    for k in np.flatnonzero(panel.binds):
        ax.plot(knots[k : k + 2], points[k : k + 2], color=_ORANGE, lw=2.6, zorder=3, solid_capstyle="round")
    first, last = panel.ends
    pad = 0.03 * max(last - first, 1e-300)
    ax.set_xlim(first - pad, last + pad)
    if panel.missing is not None:
        value = panel.missing
        ax.plot([last + 0.5 * pad], [value], marker="D", ms=5, color=_INK, zorder=4, clip_on=False)
        ax.annotate(
            "missing", (last, value), xytext=(-4, 4), textcoords="offset points", ha="right", fontsize=8, color=_INK
        )
    if panel.levels:
        ax.set_xticks(range(len(panel.levels)), panel.levels, rotation=30, ha="right")
    else:
        from matplotlib.ticker import MaxNLocator

        ax.xaxis.set_major_locator(MaxNLocator(4))


def _draw_categories(ax: Any, panel: Panel) -> None:
    places = np.arange(len(panel.levels))
    ax.axhspan(panel.low[0], panel.high[0], color=_FAN, lw=0, zorder=0)
    ax.axhline(0, color=_GREY, lw=0.7, zorder=1)
    colours = [_ORANGE if binds else _BLUE for binds in panel.binds]
    ax.vlines(places, 0, panel.points, color=colours, lw=1.6, zorder=2)
    ax.scatter(places, panel.points, s=26, color=colours, zorder=3)
    ax.set_xticks(places, [_short(level) for level in panel.levels], rotation=35, ha="right", rotation_mode="anchor")
    ax.set_xlim(-0.6, len(places) - 0.4)


def _short(word: str) -> str:
    return word if len(word) <= 18 else word[:17] + "…"


def _handles() -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    return [
        Patch(color=_FAN, label="what the metric allows"),
        Line2D([], [], color=_BLUE, lw=1.9, label="the model"),
        Line2D([], [], color=_ORANGE, lw=2.6, label="held back by the metric"),
    ]


def _tidy(ax: Any) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(_GREY)
    ax.tick_params(colors=_INK, labelsize=8)
