"""A scorecard as a picture. Matplotlib is imported when it is drawn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from likewise._extras import need
from likewise._typing import FloatArray
from likewise.enforce.additive.card import allowed_rises, level_names
from likewise.enforce.additive.reading import Readable
from likewise.enforce.additive.shapes import Shape
from likewise.enforce.links import LINKS
from likewise.errors import InvalidTypeError

# Colours that stay apart for colour-blind readers, and in grey.
_BLUE, _ORANGE, _FAN, _GREY, _INK = "#2f6fa7", "#d9730d", "#dfe7ef", "#8a8f98", "#2b2f36"
_MOST_LEVELS = 12


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
        if not isinstance(model, Readable):
            raise InvalidTypeError(
                f"model must be a fitted AdditiveClassifier or AdditiveRegressor; got {type(model).__name__}."
            )
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

        scorer, signs = self.model._scorer(), self.model._signs(self.outcome)
        shapes = scorer.model.shapes
        spans = np.array([np.ptp(signs @ shape.values) for shape in shapes])
        order = np.argsort(-spans, kind="stable")[:most].tolist()
        order.sort(key=lambda j: shapes[j].knots is None)  # numbers first: panels of a kind stand together
        wide = min(4, max(1, len(order)))
        tall = max(1, -(-len(order) // wide))
        figure, axes = plt.subplots(
            tall,
            wide,
            figsize=(3.3 * wide, 2.75 * tall),
            sharey=True,
            squeeze=False,
            layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.1),
        )
        flat = axes.ravel()
        flat[0].set_ylim(*_height([signs @ shapes[j].all_values for j in order]))
        for ax, j in zip(flat, order, strict=False):
            shape = shapes[j]
            (self._categories if shape.knots is None else self._numbers)(ax, shape, signs)
            ax.set_title(str(self.model.coding_.names[shape.column]), loc="left", fontsize=10, color=_INK)
            _tidy(ax)
        for ax in flat[len(order) :]:
            ax.set_visible(False)
        figure.supylabel(f"Points ({self._unit()})", fontsize=10, color=_INK)
        figure.legend(handles=_handles(), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
        self.axes_, self.figure_ = flat[: len(order)], figure
        return self

    def _unit(self) -> str:
        scorer = self.model._scorer()
        if scorer.guarantee.output_range:
            return "units of the output"
        return f"{LINKS[scorer.link].score} of {self.model._outcome(self.outcome)!r}"

    def _numbers(self, ax: Any, shape: Shape, signs: FloatArray) -> None:
        scorer, coding = self.model._scorer(), self.model.coding_
        assert shape.knots is not None
        knots, points = shape.knots, signs @ shape.values
        rises = allowed_rises(scorer, coding, shape, int(np.argmax(np.abs(signs))))
        # Knots stand at quantiles, so the middle one is where the middle of the people is; and where the tails are far,
        # only what lies between the outer knots is shown.
        at = len(knots) // 2
        reach = np.concatenate([[0.0], np.cumsum(rises)])
        fan = np.abs(reach - reach[at])
        ax.fill_between(knots, points[at] - fan, points[at] + fan, color=_FAN, lw=0, zorder=0)
        ax.axhline(0, color=_GREY, lw=0.7, zorder=1)
        ax.plot(knots, points, color=_BLUE, lw=1.9, zorder=2, solid_capstyle="round")
        binds = np.abs(np.diff(points)) >= (1 - 1e-4) * rises
        for k in np.flatnonzero(binds):
            ax.plot(knots[k : k + 2], points[k : k + 2], color=_ORANGE, lw=2.6, zorder=3, solid_capstyle="round")
        first, last = _shown(knots)
        pad = 0.03 * max(last - first, 1e-300)
        ax.set_xlim(first - pad, last + pad)
        if shape.other is not None:
            value = float(signs @ shape.other)
            ax.plot([last + 0.5 * pad], [value], marker="D", ms=5, color=_INK, zorder=4, clip_on=False)
            ax.annotate(
                "missing", (last, value), xytext=(-4, 4), textcoords="offset points", ha="right", fontsize=8, color=_INK
            )
        levels = level_names(coding, shape.column)
        if levels is not None:
            ax.set_xticks(range(len(levels)), [str(level) for level in levels], rotation=30, ha="right")
        else:
            from matplotlib.ticker import MaxNLocator

            ax.xaxis.set_major_locator(MaxNLocator(4))

    def _categories(self, ax: Any, shape: Shape, signs: FloatArray) -> None:
        scorer, coding = self.model._scorer(), self.model.coding_
        points = signs @ shape.values
        allowed = scorer.unit * float(scorer.guarantee.metric.weights_of(coding).scales[shape.column])
        middle = (points.max() + points.min()) / 2
        order = np.argsort(points, kind="stable")
        if len(order) > _MOST_LEVELS:  # the ends say most
            half = _MOST_LEVELS // 2
            order = np.concatenate([order[:half], order[-half:]])
        names = [level_names(coding, shape.column)[i] for i in order]  # type: ignore[index]
        binds = np.ptp(points) >= (1 - 1e-4) * allowed
        ends = (points == points.max()) | (points == points.min())
        places = np.arange(len(order))
        ax.axhspan(middle - allowed / 2, middle + allowed / 2, color=_FAN, lw=0, zorder=0)
        ax.axhline(0, color=_GREY, lw=0.7, zorder=1)
        colours = [_ORANGE if binds and ends[i] else _BLUE for i in order]
        ax.vlines(places, 0, points[order], color=colours, lw=1.6, zorder=2)
        ax.scatter(places, points[order], s=26, color=colours, zorder=3)
        words = ["missing" if name is None else _short(str(name)) for name in names]
        ax.set_xticks(places, words, rotation=35, ha="right", rotation_mode="anchor")
        ax.set_xlim(-0.6, len(order) - 0.4)


def _height(values: list[FloatArray]) -> tuple[float, float]:
    """Ends of the points shown: one column that towers above all others is cut."""
    if not values:
        return -1.0, 1.0
    sizes = sorted(float(np.abs(line).max()) for line in values)
    most = 2.0 * sizes[-2] if len(sizes) > 1 and sizes[-2] > 0 else sizes[-1]
    low = max(-most, min(float(line.min()) for line in values))
    high = min(most, max(float(line.max()) for line in values))
    margin = 0.08 * max(high - low, 1e-9)
    return low - margin, high + margin


def _shown(knots: FloatArray) -> tuple[float, float]:
    """Ends of the picture: a far tail beyond the outer quantiles is cut."""
    if len(knots) < 8:
        return float(knots[0]), float(knots[-1])
    inner_low, inner_high = float(knots[1]), float(knots[-2])
    width = inner_high - inner_low
    return max(float(knots[0]), inner_low - 0.5 * width), min(float(knots[-1]), inner_high + 0.5 * width)


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
