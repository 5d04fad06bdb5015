"""A plot of a metric: its weights."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from likewise.display.base import BLUE, GREY, INK, ORANGE, axes, patch, tidy
from likewise.exceptions import InvalidTypeError
from likewise.metrics.base import Metric, check_metric
from likewise.metrics.encoders import as_frame, labels_of
from likewise.reveal.empirical import NOT_FORCED, MetricEstimate


class MetricDisplay:
    """Weights of a metric, one bar per feature, the largest on top.

    Parameters
    ----------
    names : sequence of str
    weights : sequence of float
    mismatch : sequence of bool
        Whether the weight is a distance between different categories, and not per unit.
    p : float
    not_forced : sequence of str, optional
        Features to which the people of an estimate give no weight; others of weight 0 must not matter.

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

    def __init__(self, names: Any, weights: Any, mismatch: Any, p: float, *, not_forced: Any = ()) -> None:
        self.names = tuple(names)
        self.weights = np.asarray(weights, dtype=np.float64)
        self.mismatch = np.asarray(mismatch, dtype=bool)
        self.p = p
        self.not_forced = tuple(not_forced)

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
        table = metric.describe()
        weights = table["weight"].to_numpy(dtype=np.float64).copy()
        mismatch = np.asarray(table["kind"] == "categorical") if "kind" in table else np.zeros(len(table), dtype=bool)
        if X is not None:
            power = 1.0 if np.isinf(metric.p) else metric.p
            weights[~mismatch] *= _spread(X, metric, list(table["column"][~mismatch])) ** power
        names = [str(name) for name in table["column"]]
        return cls(names, weights, mismatch, metric.p, not_forced=[str(name) for name in idle]).plot(
            ax=ax, max_features=max_features, per_spread=X is not None
        )

    @classmethod
    def from_estimator(cls, model: Any, X: Any = None, *, ax: Any = None, max_features: int = 20) -> Self:
        """Plot the metric that a fitted model is within; parameters are those of `from_metric`."""
        guarantee = getattr(model, "guarantee_", None)
        if guarantee is None:
            raise InvalidTypeError(
                f"model must be fitted and have a guarantee, as AdditiveClassifier does; got {type(model).__name__}."
            )
        return cls.from_metric(guarantee.metric, X, ax=ax, max_features=max_features)

    def _label(self, place: int) -> str:
        if self.names[place] in self.not_forced:
            return f"0: {NOT_FORCED}"
        return f"{self.weights[place]:.3g}" if self.weights[place] else "0: must not matter"

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
            ax.annotate(
                self._label(int(order[place])),
                (weight, place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
                color=INK if weight else GREY,
            )
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


def _spread(X: Any, metric: Metric, names: list[Any]) -> Any:
    """Standard deviations of numeric columns."""
    if metric.columns and labels_of(X) is not None:  # it may have more columns than the metric names
        frame = as_frame(X)
        X = frame[[name for name in frame.columns if name in metric.columns]]
    encoder = metric.encoder(X)
    spread = np.nanstd(encoder.encode(X)[:, encoder.is_number], axis=0)
    positions = [name for name, number in zip(encoder.names, encoder.is_number, strict=True) if number]
    return spread[[positions.index(name) for name in names]]
