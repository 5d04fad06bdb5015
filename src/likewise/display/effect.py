"""A plot of an effect: people, the worst pair, and the proven bound."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from likewise.auditing.effect import Effect
from likewise.display.base import BLUE, GREY, INK, RED, ResultDisplay, legend


class EffectDisplay(ResultDisplay[Effect]):
    """What exchanging columns does to people, the worst pair found, and what is proven to be impossible.

    Parameters
    ----------
    result : Effect

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after `plot`

    Examples
    --------
    >>> import matplotlib
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from likewise import effect
    >>> matplotlib.use("Agg")
    >>> X = np.random.default_rng(0).integers(0, 5, (50, 2))
    >>> result = effect(LogisticRegression().fit(X, X.sum(axis=1) > 4), X, "feature 0")
    >>> EffectDisplay.from_effect(result).ax_.get_ylabel()
    'People'
    """

    @classmethod
    def from_effect(cls, result: Effect, *, ax: Any = None) -> Self:
        """Plot the result of `effect`."""
        return cls._from_result(result, Effect, "effect", ax)

    def _draw(self, ax: Any) -> None:
        result, labels = self.result, self.result.labels
        shown, told = labels.factor, labels.written  # the axis is in the unit of what is said
        sizes = shown * result.on_people["effect"].to_numpy()
        largest = float(result.on_people["effect"].max())
        right = 1.15 * shown * max(result.found, result.proven or 0.0, largest, 1e-12)
        ax.hist(sizes, bins=np.linspace(0, right, 60).tolist(), color=GREY, alpha=0.7)
        if result.mean_interval is not None:
            low, high = (shown * end for end in result.mean_interval)
            ax.axvspan(low, min(right, high), color=INK, alpha=0.25, lw=0)
        mean = f"mean of these {len(sizes):,} people: {told(result.mean, 3)}"
        ax.axvline(shown * result.mean, color=INK, lw=1, label=mean)
        ax.axvline(shown * largest, color=INK, lw=1, ls=":", label=f"largest of them: {told(largest, 3)}")
        none = "no pair found whose outputs differ"
        found = none if result.pair is None else f"worst pair found: {told(result.found)}"
        ax.axvline(shown * result.found, color=RED, lw=1.6, label=found)
        if result.proven is not None:
            ax.axvspan(shown * result.proven, right, color=BLUE, alpha=0.12, lw=0)
            words = "nobody in the domain is beyond" if result.meets else "proven: nobody in the domain is beyond"
            limit = f"{words} {labels.at_most(result.proven)}"
            ax.axvline(shown * result.proven, color=BLUE, lw=1.6, ls="--", label=limit)
        ax.set_xlim(0, right)
        ax.set_yscale("symlog", linthresh=1)  # few people are far out, and these matter
        ax.set_ylim(bottom=0)
        ax.yaxis.set_major_formatter("{x:,.0f}")
        unit = " (percentage points)" if labels.are_probabilities else ""
        ax.set_xlabel(f"Change of the output if {' and '.join(map(str, result.columns))} alone is exchanged{unit}")
        ax.set_ylabel("People")
        legend(ax)
