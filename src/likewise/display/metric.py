"""Plots of a metric: its weights, and what is known of them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from likewise.design.judgements import JudgedMetric
from likewise.display.base import BLUE, GREY, INK, ORANGE, axes, label, legend, patch, tidy
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.kernel.schema import as_frame, labels_of
from likewise.metrics.base import Metric, check_metric
from likewise.metrics.zero_weights import MUST_NOT_MATTER, ZERO_REASONS
from likewise.reveal.empirical import FIXED, FORCED, MetricEstimate


class MetricDisplay:
    """Weights of a metric, one bar per feature, the largest on top.

    Parameters
    ----------
    names : sequence of str
    weights : sequence of float
    mismatch : sequence of bool
        Whether the weight is a distance between different categories, and not per unit.
    p : float
    zero_reasons : mapping from name to str, optional
        Why features have the weight 0, as in `TableMetric`; others of weight 0 must not matter.

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

    ax_: Any
    figure_: Any

    def __init__(self, names: Any, weights: Any, mismatch: Any, p: float, *, zero_reasons: Any = None) -> None:
        self.names = tuple(names)
        self.weights = np.asarray(weights, dtype=np.float64)
        self.mismatch = np.asarray(mismatch, dtype=bool)
        self.p = p
        self.zero_reasons = dict(zero_reasons or {})

    @classmethod
    def from_metric(
        cls,
        metric: Metric | MetricEstimate,
        X: pd.DataFrame | np.ndarray[Any, Any] | None = None,
        *,
        ax: Any = None,
        max_features: int = 20,
    ) -> Self:
        """Plot a metric.

        Parameters
        ----------
        metric : Metric or MetricEstimate
        X : array-like of shape (n_samples, n_features), optional
            People to compare the features on: numeric weights are then per standard deviation in X, so that features
            in different units can be compared (to the power p).
        ax : matplotlib Axes, optional
        max_features : int, default=20
            Features shown, at most.
        """
        idle = metric.not_forced if isinstance(metric, MetricEstimate) else ()
        metric = check_metric(metric.metric if isinstance(metric, MetricEstimate) else metric)
        reasons = {**dict.fromkeys(idle, "not_forced"), **metric.zero_reasons}
        table = metric.describe()
        weights = table["weight"].to_numpy(dtype=np.float64).copy()
        mismatch = np.asarray(table["kind"] == "categorical") if "kind" in table else np.zeros(len(table), dtype=bool)
        if X is not None:
            power = 1.0 if np.isinf(metric.p) else metric.p
            weights[~mismatch] *= _spread(X, metric, list(table["column"][~mismatch])) ** power
        names = [str(name) for name in table["column"]]
        return cls(
            names, weights, mismatch, metric.p, zero_reasons={str(name): each for name, each in reasons.items()}
        ).plot(ax=ax, max_features=max_features, per_spread=X is not None)

    def _label(self, place: int) -> str:
        if self.names[place] in self.zero_reasons:
            return f"0: {ZERO_REASONS[self.zero_reasons[self.names[place]]].meaning}"
        return f"{self.weights[place]:.3g}" if self.weights[place] else f"0: {MUST_NOT_MATTER}"

    def plot(self, *, ax: Any = None, max_features: int = 20, per_spread: bool = False) -> Self:
        """Draw the bars on `ax`, or on a new figure."""
        order = np.argsort(-self.weights, kind="stable")[:max_features][::-1]
        ax = axes(ax, (6.4, 1.2 + 0.32 * len(order)))
        shown = self.weights[order]
        colours = [ORANGE if self.mismatch[i] else BLUE for i in order]
        ax.barh(np.arange(len(order)), shown, color=colours, height=0.66)
        ax.set_yticks(np.arange(len(order)), [self.names[i] for i in order])
        ax.set_xlim(0, max(1e-300, 1.16 * float(shown.max())) if shown.any() else 1.0)
        for place, weight in enumerate(shown):
            words, colour = self._label(int(order[place])), INK if weight else GREY
            label(ax, words, (weight, place), (4, 0), va="center", color=colour)
        unit = "per standard deviation of the feature" if per_spread else "per unit of the feature"
        power = "" if self.p == 1 or np.isinf(self.p) else f" (to the power {self.p:g})"
        ax.set_xlabel(f"Weight {unit}{power}")
        if self.mismatch.any() and not self.mismatch.all():
            handles = [patch(BLUE, unit), patch(ORANGE, "for a different category")]
            ax.legend(handles=handles, loc="lower right", frameon=False, fontsize=9)
            ax.set_xlabel("Weight")
        elif self.mismatch.all():
            ax.set_xlabel("Weight for a different category")
        hidden = len(self.weights) - len(order)
        if hidden:
            ax.set_title(f"{len(order)} largest weights ({hidden} more not shown)", loc="left", fontsize=10)
        tidy(ax)
        ax.tick_params(axis="y", length=0)
        self.ax_, self.figure_ = ax, ax.figure
        return self


_OF_KIND = {"missing": ", missing", "within": ", within a group"}
_OTHER_CATEGORY = {"missing": "with and without", "within": "another of the group"}


class RangesDisplay:
    """Weights with the range that people, or answers, leave to each: a dot on a line, the largest on top.

    A weight that could be 0 is not known: other columns can stand in for it. It is drawn open.

    Parameters
    ----------
    names : sequence of str
    points : ndarray of shape (n, 3)
        Lower end, estimate and upper end in percentage points, for a typical difference; the upper end may be infinite.
    notes : sequence of str
        What a line stands for: one per name.
    known : sequence of bool
        Whether a weight is above 0 in every metric of the people or the answers.

    Attributes
    ----------
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

    ax_: Any
    figure_: Any

    def __init__(self, names: Any, points: Any, notes: Any, known: Any) -> None:
        self.names, self.notes, self.known = tuple(names), tuple(notes), np.asarray(known, dtype=bool)
        self.points = np.asarray(points, dtype=np.float64).reshape(-1, 3)

    @classmethod
    def from_result(
        cls, result: MetricEstimate | JudgedMetric, X: pd.DataFrame, *, ax: Any = None, most: int = 20
    ) -> Self:
        """Plot the ranges of an estimate, or of a metric learned from judgements; p must be 1.

        Parameters
        ----------
        result : MetricEstimate or JudgedMetric
        X : DataFrame
            The people. A typical difference is one standard deviation of a number, and any two different categories.
        ax : matplotlib Axes, optional
        most : int, default=20
            Weights shown, at most.
        """
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
        frame, steps, names, points, notes = as_frame(X), getattr(result.metric, "order", ()), [], [], []
        rows: Any = table.itertuples(index=False)
        for row in rows:
            number = row.kind not in _OF_KIND and pd.api.types.is_numeric_dtype(frame[row.column])
            unit = float(np.nanstd(frame[row.column].to_numpy(dtype=np.float64, na_value=np.nan))) if number else 1.0
            names.append(f"{row.column}{_OF_KIND.get(row.kind, '')}")
            points.append([100 * unit * value for value in (row.low, getattr(row, middle), row.high)])
            other = "one step" if row.column in steps else _OTHER_CATEGORY.get(row.kind, "another category")
            notes.append(f"{unit:.3g} apart" if number else other)
        return cls(names, points, notes, known).plot(ax=ax, most=most)

    def plot(self, *, ax: Any = None, most: int = 20) -> Self:
        """Draw the ranges on `ax`, or on a new figure."""
        low, middle, high = self.points.T
        order = np.argsort(-np.where(np.isfinite(high), high, middle), kind="stable")[:most][::-1]
        ax = axes(ax, (7.2, 1.5 + 0.42 * len(order)))
        finite = self.points[order][np.isfinite(self.points[order])]
        end = 1.05 * max(float(finite.max(initial=0.0)), 1e-9)
        for place, i in enumerate(order):
            colour = BLUE if self.known[i] else ORANGE
            ax.plot([low[i], min(high[i], end)], [place, place], color=colour, lw=5, alpha=0.35, solid_capstyle="butt")
            if np.isinf(high[i]):
                label(ax, "no limit", (end, place), (4, 0), va="center", fontsize=8)
            face = colour if self.known[i] else "white"
            ax.plot(middle[i], place, "o", ms=8, mec=colour, mfc=face, mew=1.8, zorder=3, clip_on=False)
        ax.set_yticks(range(len(order)), [f"{self.names[i]}\n{self.notes[i]}" for i in order])
        ax.set_ylim(-0.6, len(order) - 0.4)
        ax.set_xlim(0, end)
        ax.set_xlabel("Percentage points that a typical difference is worth")
        handles = [patch(BLUE, "known to be above 0"), patch(ORANGE, "could be 0: not known")]
        legend(ax, handles=handles, ncols=2, borderpad=0)
        hidden = len(self.names) - len(order)
        if hidden:
            ax.set_title(f"{hidden} more not shown", loc="right", fontsize=9, color=GREY)
        ax.grid(axis="x", color=GREY, alpha=0.25, lw=0.6)
        ax.set_axisbelow(True)
        tidy(ax)
        ax.tick_params(axis="y", length=0, pad=9)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _spread(X: Any, metric: Metric, names: list[Any]) -> Any:
    """Standard deviations of numeric columns."""
    if metric.columns and labels_of(X) is not None:  # it may have more columns than the metric names
        frame = as_frame(X)
        X = frame[[name for name in frame.columns if name in metric.columns]]
    encoder = metric.encoder(X)
    spread = np.nanstd(encoder.encode(X)[:, encoder.is_number], axis=0)
    positions = [name for name, number in zip(encoder.names, encoder.is_number, strict=True) if number]
    return spread[[positions.index(name) for name in names]]
