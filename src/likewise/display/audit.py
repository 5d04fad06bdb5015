"""A plot of an audit: the pairs that exceed a metric."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from likewise.auditing.audit import Audit, audit
from likewise.display.base import BLUE, GREY, INK, RED, ResultDisplay
from likewise.exceptions import InvalidInputError
from likewise.metrics.base import Metric


class AuditDisplay(ResultDisplay[Audit]):
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

    @classmethod
    def from_audit(cls, result: Audit, *, ax: Any = None) -> Self:
        """Plot the result of `audit`."""
        return cls._from_result(result, Audit, "audit", ax)

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, metric: Metric | None = None, *, tolerance: float | None = None, ax: Any = None
    ) -> Self:
        """Audit a model on people and plot what was found.

        Parameters
        ----------
        model : fitted model or callable
            As for `audit`.
        X : array-like of shape (n_samples, n_features)
        metric : Metric, optional
            None takes the model's own, ``model.guarantee_.metric``, and leaves room for its epsilon.
        tolerance : float, optional
            As for `audit`.
        ax : matplotlib Axes, optional
        """
        if metric is None:
            guarantee = getattr(model, "guarantee_", None)
            if guarantee is None:
                raise InvalidInputError(
                    f"metric must be given for a model without a guarantee; got {type(model).__name__}."
                )
            metric = guarantee.metric
            if tolerance is None and guarantee.epsilon:
                tolerance = guarantee.epsilon
        return cls.from_audit(audit(model, X, metric, tolerance=tolerance), ax=ax)

    @classmethod
    def from_predictions(
        cls,
        predictions: Any,
        X: Any,
        metric: Metric,
        *,
        output_range: tuple[float, float] | None = None,
        tolerance: float | None = None,
        ax: Any = None,
    ) -> Self:
        """Audit outputs of any outside system and plot what was found; parameters are those of `audit`."""
        found = audit(None, X, metric, predictions=predictions, output_range=output_range, tolerance=tolerance)
        return cls.from_audit(found, ax=ax)

    def _draw(self, ax: Any) -> None:
        result = self.result
        # Far pairs are allowed everything: the interest is where a difference of outputs can exceed D.
        largest = max(result.sample["difference"].max(), result.violations["difference"].max(), 0.0, 1e-12)
        limit = 1.25 * max(float(np.nan_to_num(largest)), 1e-12)
        near = result.sample[result.sample["distance"] <= limit]
        excess = near["difference"] - near["distance"]
        bottom = -limit
        top = 1.15 * max(result.max_excess, result.tolerance, 0.25 * limit)
        ax.axhspan(bottom, result.tolerance, color=BLUE, alpha=0.09, lw=0)
        ax.axhline(result.tolerance, color=BLUE, lw=1.2)
        colours = np.where(excess > result.tolerance, RED, GREY)
        ax.scatter(near["distance"], excess, s=7, c=colours, alpha=0.55, lw=0, label=f"{len(near):,} random pairs")
        worst = result.violations
        if len(worst):
            ax.scatter(
                worst["distance"],
                worst["excess"],
                s=22,
                color=RED,
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
            color=BLUE,
            fontsize=9,
        )
        ax.set_xlabel("Distance D between two people")
        ax.set_ylabel("Excess: difference of outputs - D")
        ax.set_title(
            f"{result.n_violations:,} of {result.n_pairs:,} pairs exceed the metric",
            loc="left",
            fontsize=10,
            color=INK,
        )
        ax.legend(loc="upper right", frameon=False, fontsize=9)
