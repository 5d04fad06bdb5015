"""Plots of a metric: its weights, and what is known of them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from likewise.design.judgements import JudgedMetric
from likewise.display.base import BLUE, GREY, INK, ORANGE, Display, label, legend, patch
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.kernel.schema import as_frame, labels_of
from likewise.metrics.base import Metric, check_metric
from likewise.metrics.zero_weights import MUST_NOT_MATTER, ZERO_REASONS
from likewise.reveal.empirical import FIXED, FORCED, MetricEstimate


class MetricDisplay(Display):
    """Weights of a metric, one bar per feature, the largest on top.

    Parameters
    ----------
    metric : Metric or MetricEstimate
    X : array-like of shape (n_samples, n_features), optional
        People to compare the features on: numeric weights are then per standard deviation in X, so that features
        in different units can be compared (to the power p).
    max_features : int, default=20
        Features shown, at most.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after `plot`

    Examples
    --------
    >>> from likewise import WeightedLp
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> display = MetricDisplay.from_metric(WeightedLp({"age": 0.01, "hours": 0.02}))
    >>> display.ax_.get_xlabel()
    'Weight per unit of the feature'
    """

    def __init__(self, metric: Metric | MetricEstimate, X: Any = None, max_features: int = 20) -> None:
        idle = metric.not_forced if isinstance(metric, MetricEstimate) else ()
        metric = check_metric(metric.metric if isinstance(metric, MetricEstimate) else metric)
        table, self.p = metric.describe(), metric.p
        self.names = [str(name) for name in table["column"]]
        self.weights = table["weight"].to_numpy(dtype=np.float64).copy()
        self.mismatch = np.asarray(table["kind"] == "categorical" if "kind" in table else [False] * len(table))
        self.unit = "per unit of the feature"
        if X is not None:
            power = 1.0 if np.isinf(metric.p) else metric.p
            self.weights[~self.mismatch] *= _spread(X, metric, list(table["column"][~self.mismatch])) ** power
            self.unit = "per standard deviation of the feature"
        reasons = {**dict.fromkeys(idle, "not_forced"), **metric.zero_reasons}
        self.why_0 = {str(name): ZERO_REASONS[reason].meaning for name, reason in reasons.items()}
        self.order = np.argsort(-self.weights, kind="stable")[:max_features][::-1]

    @classmethod
    def from_metric(
        cls, metric: Metric | MetricEstimate, X: Any = None, *, ax: Any = None, max_features: int = 20
    ) -> Self:
        """Plot a metric on `ax`, or on a new figure."""
        return cls(metric, X, max_features).plot(ax=ax)

    def _figure_size(self) -> tuple[float, float]:
        return 6.4, 1.2 + 0.32 * len(self.order)

    def _draw(self, ax: Any) -> None:
        shown = self.weights[self.order]
        colours = [ORANGE if self.mismatch[i] else BLUE for i in self.order]
        ax.barh(np.arange(len(shown)), shown, color=colours, height=0.66)
        ax.set_yticks(np.arange(len(shown)), [self.names[i] for i in self.order])
        ax.set_xlim(0, max(1e-300, 1.16 * float(shown.max())) if shown.any() else 1.0)
        for place, i in enumerate(self.order):
            weight, name = self.weights[i], self.names[i]
            words = f"0: {self.why_0.get(name, MUST_NOT_MATTER)}"
            if weight and name not in self.why_0:
                words = f"{weight:.3g}"
            label(ax, words, (weight, place), (4, 0), va="center", color=INK if weight else GREY)
        power = "" if self.p == 1 or np.isinf(self.p) else f" (to the power {self.p:g})"
        ax.set_xlabel(f"Weight {self.unit}{power}")
        if self.mismatch.any() and not self.mismatch.all():
            handles = [patch(BLUE, self.unit), patch(ORANGE, "for a different category")]
            ax.legend(handles=handles, loc="lower right", frameon=False, fontsize=9)
            ax.set_xlabel("Weight")
        elif self.mismatch.all():
            ax.set_xlabel("Weight for a different category")
        hidden = len(self.weights) - len(shown)
        if hidden:
            ax.set_title(f"{len(shown)} largest weights ({hidden} more not shown)", loc="left", fontsize=10)
        ax.tick_params(axis="y", length=0)


_OF_KIND = {"missing": ", missing", "within": ", within a group"}
_OTHER_CATEGORY = {"missing": "with and without", "within": "another of the group"}


class RangesDisplay(Display):
    """Weights with the range that people, or answers, leave to each: a dot on a line, the largest on top.

    A weight that could be 0 is not known: other columns can stand in for it. It is drawn open.

    Parameters
    ----------
    result : MetricEstimate or JudgedMetric
        With p = 1.
    X : DataFrame
        The people. A typical difference is one standard deviation of a number, and any two different categories.
    most : int, default=20
        Weights shown, at most.

    Attributes
    ----------
    points : ndarray of shape (n, 3)
        Lower end, estimate and upper end in percentage points, for a typical difference; the upper end may be infinite.
    ax_, figure_ : matplotlib Axes and Figure, after `plot`

    Examples
    --------
    >>> from likewise import estimate_minimal_metric
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> people = pd.DataFrame({"age": [30, 40, 60], "hours": [20, 40, 30]})
    >>> found = estimate_minimal_metric(None, people, predictions=[0.1, 0.3, 0.6])
    >>> RangesDisplay.from_result(found, people).ax_.get_xlabel()
    'Percentage points that a typical difference is worth'
    """

    def __init__(self, result: MetricEstimate | JudgedMetric, X: Any, most: int = 20) -> None:
        if isinstance(result, MetricEstimate):
            table, middle = result.weights, "estimate"
            known = table["status"].isin([FORCED, FIXED]) & (table["low"] > 0)
        elif isinstance(result, JudgedMetric):
            table, middle = result.ranges, "weight"
            known = table["low"] > 0
        else:
            raise InvalidTypeError(
                f"result must be that of estimate_minimal_metric or learn_metric; got {type(result).__name__}."
            )
        if result.metric.p != 1:
            raise InvalidInputError(
                f"result must have p = 1 for a plot of ranges in points; it has {result.metric.p:g}."
            )
        frame, steps = as_frame(X), getattr(result.metric, "order", ())
        self.names, self.notes, points, self.known = [], [], [], known.to_numpy()
        rows: Any = table.itertuples(index=False)
        for row in rows:
            number = row.kind not in _OF_KIND and pd.api.types.is_numeric_dtype(frame[row.column])
            unit = float(np.nanstd(frame[row.column].to_numpy(dtype=np.float64, na_value=np.nan))) if number else 1.0
            self.names.append(f"{row.column}{_OF_KIND.get(row.kind, '')}")
            points.append([100 * unit * value for value in (row.low, getattr(row, middle), row.high)])
            other = "one step" if row.column in steps else _OTHER_CATEGORY.get(row.kind, "another category")
            self.notes.append(f"{unit:.3g} apart" if number else other)
        self.points = np.array(points, dtype=np.float64).reshape(-1, 3)
        _, middles, highs = self.points.T
        self.order = np.argsort(-np.where(np.isfinite(highs), highs, middles), kind="stable")[:most][::-1]

    @classmethod
    def from_result(cls, result: MetricEstimate | JudgedMetric, X: Any, *, ax: Any = None, most: int = 20) -> Self:
        """Plot the ranges of an estimate, or of a metric learned from judgements, on `ax` or on a new figure."""
        return cls(result, X, most).plot(ax=ax)

    def _figure_size(self) -> tuple[float, float]:
        return 7.2, 1.5 + 0.42 * len(self.order)

    def _draw(self, ax: Any) -> None:
        shown = self.points[self.order]
        end = 1.05 * max(float(shown[np.isfinite(shown)].max(initial=0.0)), 1e-9)
        for place, (i, (low, middle, high)) in enumerate(zip(self.order, shown, strict=True)):
            colour = BLUE if self.known[i] else ORANGE
            ax.plot([low, min(high, end)], [place, place], color=colour, lw=5, alpha=0.35, solid_capstyle="butt")
            if np.isinf(high):
                label(ax, "no limit", (end, place), (4, 0), va="center", fontsize=8)
            face = colour if self.known[i] else "white"
            ax.plot(middle, place, "o", ms=8, mec=colour, mfc=face, mew=1.8, zorder=3, clip_on=False)
        ax.set_yticks(range(len(shown)), [f"{self.names[i]}\n{self.notes[i]}" for i in self.order])
        ax.set_ylim(-0.6, len(shown) - 0.4)
        ax.set_xlim(0, end)
        ax.set_xlabel("Percentage points that a typical difference is worth")
        handles = [patch(BLUE, "known to be above 0"), patch(ORANGE, "could be 0: not known")]
        legend(ax, handles=handles, ncols=2, borderpad=0)
        hidden = len(self.names) - len(shown)
        if hidden:
            ax.set_title(f"{hidden} more not shown", loc="right", fontsize=9, color=GREY)
        ax.grid(axis="x", color=GREY, alpha=0.25, lw=0.6)
        ax.set_axisbelow(True)
        ax.tick_params(axis="y", length=0, pad=9)


def _spread(X: Any, metric: Metric, names: list[Any]) -> Any:
    """Standard deviations of numeric columns."""
    if metric.columns and labels_of(X) is not None:  # it may have more columns than the metric names
        frame = as_frame(X)
        X = frame[[name for name in frame.columns if name in metric.columns]]
    encoder = metric.encoder(X)
    spread = np.nanstd(encoder.encode(X)[:, encoder.is_number], axis=0)
    positions = [name for name, number in zip(encoder.names, encoder.is_number, strict=True) if number]
    return spread[[positions.index(name) for name in names]]
