"""Plots of a scorecard. Matplotlib is imported when one is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from likewise._optional import need
from likewise._typing import BoolArray, FloatArray
from likewise.additive.scorecard_mixin import ScorecardMixin
from likewise.additive.scorer import level_names
from likewise.exceptions import InvalidTypeError
from likewise.kernel.evidence import Shape
from likewise.scorecard.tables import allowed_range, allowed_rises, binding_levels, states_of

_MOST_LEVELS = 12
_NEARLY = 1 - 1e-4  # a share of a limit that counts as all of it
_TAIL = 0.02  # of a column's range of points: the most that an undrawn tail may change


@dataclass(frozen=True, eq=False)
class Panel:
    """One column of a scorecard.

    Attributes
    ----------
    column : str
    knots : ndarray of shape (n_knots,), or None
        None for categories.
    points : ndarray of shape (n_knots or n_levels,)
    low, high : ndarray of the same shape
        What the metric allows: a fan that opens at the middle of the people, or the widest range of categories.
    binds : ndarray of bool
        Whether the metric holds the model back: for each gap between knots, or for each category.
    levels : tuple of str
        Categories in the order of their points, the ends if there are many; those of an order; or none.
    states : list of (str, float)
        Names and points of what is no number: missing ones, and special codes.
    """

    column: str
    knots: FloatArray | None
    points: FloatArray
    low: FloatArray
    high: FloatArray
    binds: BoolArray
    levels: tuple[str, ...]
    states: list[tuple[str, float]]

    @property
    def ends(self) -> tuple[float, float]:
        """First and last knot to draw: a long tail beyond the outer quantiles is cut where points hardly change."""
        assert self.knots is not None
        first, last = float(self.knots[0]), float(self.knots[-1])
        if len(self.knots) < 8:
            return first, last
        inner_low, inner_high = float(self.knots[1]), float(self.knots[-2])
        width, little = inner_high - inner_low, _TAIL * float(np.ptp(self.points))
        low, high = max(first, inner_low - 0.5 * width), min(last, inner_high + 0.5 * width)
        at_low, at_high = np.interp([low, high], self.knots, self.points)
        return (
            low if abs(self.points[0] - at_low) <= little else first,
            high if abs(self.points[-1] - at_high) <= little else last,
        )


def panels_of(model: Any, outcome: Any = None, max_features: int | None = None) -> list[Panel]:
    """Columns of a fitted additive model with the widest range of points, numbers before categories.

    Examples
    --------
    >>> import pandas as pd
    >>> from likewise import AdditiveClassifier, WeightedLp
    >>> model = AdditiveClassifier(WeightedLp({"age": 0.02}), penalty=1e-3)
    >>> (panel,) = panels_of(model.fit(pd.DataFrame({"age": [20, 40, 60, 70]}), [0, 1, 0, 1]))
    >>> panel.column, panel.ends
    ('age', (20.0, 70.0))
    """
    if not isinstance(model, ScorecardMixin):
        raise InvalidTypeError(
            f"model must be a fitted AdditiveClassifier or AdditiveRegressor; got {type(model).__name__}."
        )
    signs, shapes = model._signs(outcome), model._scorer().model.shapes
    spans = np.array([np.ptp(signs @ shape.values) for shape in shapes])
    order = np.argsort(-spans, kind="stable")[:max_features].tolist()
    order.sort(key=lambda j: shapes[j].knots is None)  # panels of the same kind are next to each other
    return [(_categories if shapes[j].knots is None else _numbers)(model, shapes[j], signs) for j in order]


def height(panels: list[Panel]) -> tuple[float, float]:
    """Limits of the points axis, shared by all panels: they include every point of every column, and 0."""
    values = [np.append(panel.points, [value for _, value in panel.states]) for panel in panels]
    if not values:
        return -1.0, 1.0
    low, high = min(0.0, *(float(line.min()) for line in values)), max(0.0, *(float(line.max()) for line in values))
    margin = 0.08 * ((high - low) or 1.0)
    return low - margin, high + margin


def _numbers(model: Any, shape: Shape, signs: FloatArray) -> Panel:
    assert shape.knots is not None
    points = signs @ shape.values
    scorer = model._scorer()
    states = states_of(scorer.model.metric, shape.column)
    rises = allowed_rises(scorer, shape)
    # Knots stand at quantiles, so the middle one is where the middle of the people is.
    at = len(shape.knots) // 2
    reach = np.concatenate([[0.0], np.cumsum(rises)])
    fan = np.minimum(np.abs(reach - reach[at]), allowed_range(scorer, shape))
    levels = level_names(model.encoder_, shape.column)
    return Panel(
        str(model.encoder_.names[shape.column]),
        shape.knots,
        points,
        points[at] - fan,
        points[at] + fan,
        np.abs(np.diff(points)) >= _NEARLY * rises,
        () if levels is None else tuple(str(level) for level in levels),
        [(state, value) for (state, _), value in zip(states, (signs @ shape.states).tolist(), strict=True)],
    )


def _categories(model: Any, shape: Shape, signs: FloatArray) -> Panel:
    scorer, points = model._scorer(), signs @ shape.values
    weights = scorer.model.metric
    allowed = scorer.unit * float(weights.scales[shape.column])
    binds = binding_levels(points, allowed, weights.tables.get(shape.column))
    order = np.argsort(points, kind="stable")
    if len(order) > _MOST_LEVELS:  # the extremes matter most
        half = _MOST_LEVELS // 2
        order = np.concatenate([order[:half], order[-half:]])
    names: Any = level_names(model.encoder_, shape.column)
    middle = np.full(len(order), (points.max() + points.min()) / 2)
    return Panel(
        str(model.encoder_.names[shape.column]),
        None,
        points[order],
        middle - allowed / 2,
        middle + allowed / 2,
        binds[order],
        tuple("missing" if names[i] is None else str(names[i]) for i in order),
        [],
    )


# Colours that colour-blind readers can tell apart, also in grey.
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
    def from_estimator(cls, model: Any, *, outcome: Any = None, max_features: int = 12) -> Self:
        """Plot a fitted model.

        Parameters
        ----------
        model : AdditiveClassifier or AdditiveRegressor
        outcome : label of a class, optional
        max_features : int, default=12
            Largest number of columns shown: those with the widest range of points.
        """
        return cls(model, outcome).plot(max_features=max_features)

    def plot(self, *, max_features: int = 12) -> Self:
        """Draw the shapes on a new figure, the widest first, all in the same units of points."""
        plt = need("matplotlib.pyplot", "A plot")
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        panels = panels_of(self.model, self.outcome, max_features)
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
        return f"{scorer.score_name} of {self.model._outcome(self.outcome)!r}"


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
    for state, value in panel.states:
        ax.plot([last + 0.5 * pad], [value], marker="D", ms=5, color=_INK, zorder=4, clip_on=False)
        ax.annotate(
            state, (last, value), xytext=(-4, 4), textcoords="offset points", ha="right", fontsize=8, color=_INK
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
