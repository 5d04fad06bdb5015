"""Plots of metrics and audits. Matplotlib is imported when a plot is drawn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from likewise.auditing.violations import Audit
from likewise.metrics.abstract import Metric, check_metric
from likewise.metrics.coding import as_frame
from likewise.reveal.estimated import MetricEstimate

# Colours that stay apart for colour-blind readers, and in grey.
_BLUE, _ORANGE, _RED, _GREY, _INK = "#2f6fa7", "#d98a2b", "#c0392b", "#8a8f98", "#2b2f36"


class MetricDisplay:
    """Weights of a metric, one bar per feature, the largest on top.

    Parameters
    ----------
    names : sequence of str
    weights : sequence of float
    mismatch : sequence of bool
        Whether the weight is a distance between different categories, and not per unit.
    p : float

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

    def __init__(self, names: Any, weights: Any, mismatch: Any, p: float) -> None:
        self.names = tuple(names)
        self.weights = np.asarray(weights, dtype=np.float64)
        self.mismatch = np.asarray(mismatch, dtype=bool)
        self.p = p

    @classmethod
    def from_metric(
        cls,
        metric: Metric | MetricEstimate,
        X: pd.DataFrame | np.ndarray[Any, Any] | None = None,
        *,
        ax: Any = None,
        most: int = 20,
    ) -> Self:
        """Plot a metric.

        Parameters
        ----------
        metric : Metric or MetricEstimate
        X : array-like of shape (n_samples, n_features), optional
            People to compare the features on: numeric weights are then per standard deviation in X, so that features
            in different units can be compared (to the power p).
        ax : matplotlib Axes, optional
        most : int, default=20
            Features shown, at most.
        """
        metric = check_metric(metric.metric if isinstance(metric, MetricEstimate) else metric)
        table = metric.describe()
        weights = table["weight"].to_numpy(dtype=np.float64).copy()
        mismatch = np.asarray(table["kind"] == "categorical") if "kind" in table else np.zeros(len(table), dtype=bool)
        if X is not None:
            power = 1.0 if np.isinf(metric.p) else metric.p
            weights[~mismatch] *= _spread(X, metric, list(table["column"][~mismatch])) ** power
        names = [str(name) for name in table["column"]]
        return cls(names, weights, mismatch, metric.p).plot(ax=ax, most=most, per_spread=X is not None)

    def plot(self, *, ax: Any = None, most: int = 20, per_spread: bool = False) -> Self:
        """Draw the bars on `ax`, or on a new figure."""
        order = np.argsort(-self.weights, kind="stable")[:most][::-1]
        ax = _axes(ax, (6.4, 1.2 + 0.32 * len(order)))
        shown = self.weights[order]
        colours = [_ORANGE if self.mismatch[i] else _BLUE for i in order]
        ax.barh(np.arange(len(order)), shown, color=colours, height=0.66)
        ax.set_yticks(np.arange(len(order)), [self.names[i] for i in order])
        ax.set_xlim(0, max(1e-300, 1.16 * float(shown.max())) if shown.any() else 1.0)
        for place, weight in enumerate(shown):
            ax.annotate(
                f"{weight:.3g}" if weight else "0: must not matter",
                (weight, place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
                color=_INK if weight else _GREY,
            )
        unit = "per standard deviation of the feature" if per_spread else "per unit of the feature"
        power = "" if self.p == 1 or np.isinf(self.p) else f" (to the power {self.p:g})"
        ax.set_xlabel(f"Weight {unit}{power}")
        if self.mismatch.any() and not self.mismatch.all():
            handles = [_patch(_BLUE, unit), _patch(_ORANGE, "for a different category")]
            ax.legend(handles=handles, loc="lower right", frameon=False, fontsize=9)
            ax.set_xlabel("Weight")
        elif self.mismatch.all():
            ax.set_xlabel("Weight for a different category")
        hidden = len(self.weights) - len(order)
        if hidden:
            ax.set_title(f"{len(order)} largest weights ({hidden} more not shown)", loc="left", fontsize=10)
        _tidy(ax)
        ax.tick_params(axis="y", length=0)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class AuditDisplay:
    """Excess of the worst pairs, and of random pairs, against their distance.

    The shaded region is what the metric allows: an excess of at most the tolerance.

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

    ax_: Any
    figure_: Any

    def __init__(self, result: Audit) -> None:
        self.result = result

    @classmethod
    def from_audit(cls, result: Audit, *, ax: Any = None) -> Self:
        """Plot the result of `audit`."""
        if not isinstance(result, Audit):
            raise TypeError(f"result must be what audit returned; got {type(result).__name__}.")
        return cls(result).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the pairs on `ax`, or on a new figure."""
        result, ax = self.result, _axes(ax, (6.4, 4.2))
        # Far pairs are allowed everything: the interest is where a difference of outputs can exceed D.
        largest = max(result.sample["difference"].max(), result.violations["difference"].max(), 0.0, 1e-12)
        limit = 1.25 * max(float(np.nan_to_num(largest)), 1e-12)
        near = result.sample[result.sample["distance"] <= limit]
        excess = near["difference"] - near["distance"]
        bottom = -limit
        top = 1.15 * max(result.max_excess, result.tolerance, 0.25 * limit)
        ax.axhspan(bottom, result.tolerance, color=_BLUE, alpha=0.09, lw=0)
        ax.axhline(result.tolerance, color=_BLUE, lw=1.2)
        colours = np.where(excess > result.tolerance, _RED, _GREY)
        ax.scatter(near["distance"], excess, s=7, c=colours, alpha=0.55, lw=0, label=f"{len(near):,} random pairs")
        worst = result.violations
        if len(worst):
            ax.scatter(
                worst["distance"],
                worst["excess"],
                s=22,
                color=_RED,
                edgecolor="white",
                lw=0.5,
                zorder=3,
                label=f"the worst {len(worst):,} of {result.n_violations:,} violations",
            )
        right = max(limit, float(worst["distance"].max()) * 1.05 if len(worst) else 0.0)
        ax.set_xlim(-0.02 * right, right)
        ax.set_ylim(bottom, top)
        ax.annotate(
            "allowed by the metric",
            (0.02, 0.03),  # an excess is never below -D, so this corner is empty
            xycoords="axes fraction",
            ha="left",
            va="bottom",
            color=_BLUE,
            fontsize=9,
        )
        ax.set_xlabel("Distance D between two people")
        ax.set_ylabel("Excess: difference of outputs - D")
        ax.set_title(
            f"{result.n_violations:,} of {result.n_pairs:,} pairs exceed the metric",
            loc="left",
            fontsize=10,
            color=_INK,
        )
        ax.legend(loc="upper right", frameon=False, fontsize=9)
        _tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _spread(X: Any, metric: Metric, names: list[Any]) -> Any:
    """Standard deviations of numeric columns."""
    if metric.takes_tables:  # it may have columns of which the metric says nothing
        frame, known = as_frame(X), set(metric.describe()["column"])
        X = frame[[name for name in frame.columns if name in known]]
    coding = metric.coding(X)
    spread = np.nanstd(coding.encode(X)[:, coding.is_number], axis=0)
    positions = [name for name, number in zip(coding.names, coding.is_number, strict=True) if number]
    return spread[[positions.index(name) for name in names]]


def _axes(ax: Any, size: tuple[float, float]) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def _patch(colour: str, label: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(color=colour, label=label)


def _tidy(ax: Any) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(_GREY)
    ax.tick_params(colors=_INK, labelsize=9)
