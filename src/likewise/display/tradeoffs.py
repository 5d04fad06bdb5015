"""Plots of what a guarantee costs: of `compare`, `tradeoff`, `design_metric` and `decision_costs`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from likewise._guarantee_warnings import suppress_guarantee_warnings
from likewise._validation import counted
from likewise.decisions.costs import DecisionCosts
from likewise.design.frontier import MetricFrontier
from likewise.display.base import BLUE, GREY, INK, ORANGE, RED, ResultDisplay, label
from likewise.inspection.baselines import Task
from likewise.selection.compare import Comparison
from likewise.selection.cross_validation import SCORES
from likewise.selection.methods import CONSTANT
from likewise.selection.tradeoff import Tradeoff

_DASHED = (0, (4, 3))


class ComparisonDisplay(ResultDisplay[Comparison]):
    """Proper scores of all methods with their standard errors, the simplest method on top.

    Filled points keep their guarantee; hollow ones have none, or violate it. The shaded region is worse than a
    constant. A ring marks the recommended method.

    Parameters
    ----------
    result : Comparison

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after `plot`

    Examples
    --------
    >>> import matplotlib
    >>> import numpy as np
    >>> from likewise import WeightedLp, compare
    >>> matplotlib.use("Agg")
    >>> result = compare(np.linspace(0, 1, 60)[:, None], np.arange(60) // 30, WeightedLp([0.8]), ["constant"], cv=3)
    >>> ComparisonDisplay.from_comparison(result).ax_.get_xlabel()
    'Brier score on held-out people (lower is better)'
    """

    @classmethod
    def from_comparison(cls, result: Comparison, *, ax: Any = None) -> Self:
        """Plot the result of `compare`."""
        return cls._from_result(result, Comparison, "compare", ax)

    def _draw(self, ax: Any) -> None:
        score, best, table = SCORES[self.result.task][0].name, self.result.best(), self._measured()
        values, errors = table[score], table[f"{score}_se"]
        constant = float(values[CONSTANT])
        low, high = float((values - errors).min()), float((values + errors).max())
        margin = 0.06 * (high - low or 1.0)
        ax.set_xlim(low - margin, high + margin)
        ax.set_ylim(len(table) - 0.4, -0.6)
        ax.axvspan(constant, high + margin, color=GREY, alpha=0.13, lw=0)
        ax.axvline(constant, color=GREY, lw=1.2, ls=_DASHED)
        for place, (name, row) in enumerate(table.iterrows()):
            kept = self.result.results[str(name)].keeps_guarantee
            colour = BLUE if kept else INK
            point = {"fmt": "o", "ms": 7, "mew": 1.5, "elinewidth": 1.6, "color": colour, "zorder": 3}
            ax.errorbar(row[score], place, xerr=row[f"{score}_se"], mfc=colour if kept else "white", **point)
            if name == best.name:
                ax.plot(row[score], place, "o", ms=15, mfc="none", mec=BLUE, mew=1.4, zorder=4)
            count = row["violations"]
            words = counted(count, "violation") if count else "no violation"
            colour = RED if count else INK
            label(ax, words, (1.015, place), (0, 0), xycoords=("axes fraction", "data"), va="center", color=colour)
        ax.set_yticks(range(len(table)), table["title"].tolist())
        for tick, name in zip(ax.get_yticklabels(), table.index, strict=True):
            tick.set_fontweight("bold" if name == best.name else "normal")
        on_top = {"xycoords": ("data", "axes fraction"), "ha": "center", "color": GREY, "annotation_clip": False}
        label(ax, "a constant; worse to the right", (constant, 1.0), (0, 3), **on_top)
        ax.set_xlabel(_axis_title(self.result.task))
        _add_legend(ax)
        ax.tick_params(axis="y", length=0)

    def _measured(self) -> pd.DataFrame:
        table = self.result.table
        return table[table["evaluations"].notna()]

    def _figure_size(self) -> tuple[float, float]:
        return 7.6, 1.3 + 0.42 * len(self._measured())


class TradeoffDisplay(ResultDisplay[Tradeoff]):
    """Proper score against the scale of the metric, between a constant and the unconstrained model.

    Bands and bars are one standard error.

    Parameters
    ----------
    result : Tradeoff

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after `plot`

    Examples
    --------
    >>> import matplotlib
    >>> import numpy as np
    >>> from likewise import SmoothedClassifier, WeightedLp, tradeoff
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> matplotlib.use("Agg")
    >>> X, y = np.linspace(0, 1, 60)[:, None], np.arange(60) // 30
    >>> method = ("smoothed tree", SmoothedClassifier(DecisionTreeClassifier(max_depth=1), random_state=0))
    >>> result = tradeoff(X, y, WeightedLp([0.8]), [0.5, 1], method=method, cv=3)
    >>> TradeoffDisplay.from_tradeoff(result).ax_.get_ylabel()
    'Brier score on held-out people (lower is better)'
    """

    @classmethod
    def from_tradeoff(cls, result: Tradeoff, *, ax: Any = None) -> Self:
        """Plot the result of `tradeoff`."""
        return cls._from_result(result, Tradeoff, "tradeoff", ax)

    def _draw(self, ax: Any) -> None:
        result = self.result
        score, table = SCORES[result.task][0].name, result.table
        scales = np.array(table.index, dtype=np.float64)
        for line, colour, text, above in (
            (result.constant, GREY, "a constant", 4),
            (result.unconstrained, ORANGE, "the unconstrained model", -4),
        ):
            _level(ax, text, line.row[score], line.row[f"{score}_se"], colour, above)
        ax.set_xscale("log", base=2)
        curve = {"color": BLUE, "marker": "o", "ms": 6, "lw": 2, "elinewidth": 1.4, "capsize": 3, "zorder": 3}
        ax.errorbar(scales, table[score], yerr=table[f"{score}_se"], **curve)
        start = (scales[0], table[score].iloc[0])
        label(ax, f"{result.title}, within the metric", start, (9, 7), fontweight="bold", color=BLUE)
        matching = result.matching_scale
        if matching is not None and matching > scales[0]:
            value = result.results[matching].row[score]
            ax.plot(matching, value, "o", ms=12, mfc="none", mec=INK, mew=1.4, zorder=4)
            label(ax, f"as good at x {matching:g}", (matching, value), (10, 12), color=INK)
        ax.set_xticks(scales, [f"x {scale:g}" for scale in scales])
        ax.minorticks_off()
        ax.set_xlabel("Scale of the metric: stricter to the left, looser to the right")
        ax.set_ylabel(_axis_title(result.task))
        ax.margins(y=0.12)


class FrontierDisplay(ResultDisplay[MetricFrontier]):
    """Held-out loss against the mean distance of two people, with what it is compared to.

    Bars and bands are one standard error; the circle is `MetricFrontier.best`, if any is better than a constant.

    Parameters
    ----------
    result : MetricFrontier

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after `plot`

    Examples
    --------
    >>> import matplotlib
    >>> import numpy as np
    >>> from likewise import design_metric
    >>> matplotlib.use("Agg")
    >>> X, y = np.linspace(0, 1, 80)[:, None], np.arange(80) // 40
    >>> frontier = design_metric(X, y, n_points=3, cv=2, references=False)
    >>> FrontierDisplay.from_frontier(frontier).ax_.get_xlabel()
    'Mean distance of two people: stricter to the left, looser to the right'
    """

    @classmethod
    def from_frontier(cls, result: MetricFrontier, *, ax: Any = None) -> Self:
        """Plot the result of `design_metric`."""
        return cls._from_result(result, MetricFrontier, "design_metric", ax)

    def _draw(self, ax: Any) -> None:
        frontier = self.result
        table = frontier.table
        for title, reference in frontier.references.items():
            colour = GREY if reference.mean_distance == 0 else ORANGE
            loss, error = reference.loss, reference.standard_error
            if reference.mean_distance:
                ax.errorbar(reference.mean_distance, loss, yerr=error, fmt="D", color=colour)
                label(ax, title, (reference.mean_distance, loss), (8, 6), color=INK)
            else:
                _level(ax, title, loss, error, colour)
        look = {"color": BLUE, "marker": "o", "lw": 2, "capsize": 3}
        ax.errorbar(table["mean_distance"], table["loss"], yerr=table["standard_error"], **look)
        if frontier.gain[0] > 0:
            with suppress_guarantee_warnings():
                best = frontier.best()
            ax.plot(best.mean_distance, best.loss, "o", ms=12, mfc="none", mec=INK, mew=1.4, zorder=4)
        ax.set_xscale("log")
        ax.set_xlabel("Mean distance of two people: stricter to the left, looser to the right")
        ax.set_ylabel(f"{frontier.loss_name} on held-out people (lower is better)")


class DecisionDisplay(ResultDisplay[DecisionCosts]):
    """What soft thresholds of several widths guarantee, and what they cost, in percent.

    The guarantee is the largest probability that any two people at distance `near` are decided differently. Below it
    is the largest found among near pairs. The cost is the share of decisions that contradict the plain threshold, and
    with outcomes the accuracy that is lost.

    Parameters
    ----------
    result : DecisionCosts

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure, after `plot`

    Examples
    --------
    >>> import matplotlib
    >>> from likewise import AdditiveClassifier, WeightedLp, decision_costs
    >>> matplotlib.use("Agg")
    >>> X = np.linspace(-1, 1, 100)[:, None]
    >>> card = AdditiveClassifier(WeightedLp([0.4]), penalty=0.01).fit(X, X[:, 0] > 0)
    >>> DecisionDisplay.from_costs(decision_costs(card, X)).ax_.get_xlabel()
    'Width of the band around the threshold 0.5'
    """

    @classmethod
    def from_costs(cls, result: DecisionCosts, *, ax: Any = None) -> Self:
        """Plot the result of `decision_costs`."""
        return cls._from_result(result, DecisionCosts, "decision_costs", ax)

    def _draw(self, ax: Any) -> None:
        table = self.result.table.sort_index()
        places = np.arange(len(table))  # widths span two orders of magnitude, and 0
        near = f"distance {self.result.near:g}"
        curves: list[tuple[Any, str, dict[str, Any]]] = [
            (table["near_largest"], f"largest found among near pairs ({near})", {"color": BLUE, "ls": "--"}),
            (table["against_threshold"], "decisions against the plain threshold", {"color": ORANGE}),
        ]
        if "guarantee" in table:
            curves.insert(0, (table["guarantee"], f"guaranteed for any two people at {near}", {"color": BLUE}))
        if "accuracy" in table:
            lost = table["accuracy"].iloc[0] - table["accuracy"]
            curves.append((lost, f"accuracy lost against width {table.index[0]:g}", {"color": GREY}))
        for values, words, look in curves:
            ax.plot(places, 100 * values, marker="o", ms=5, lw=2, label=words, **look)
        ax.set_xticks(places, [f"{width:g}" for width in table.index])
        ax.set_xlabel(f"Width of the band around the threshold {self.result.threshold:g}")
        ax.set_ylabel("Percent: decided differently, or lost")
        ax.axhline(0, color=GREY, lw=0.8)
        ax.legend(frameon=False, fontsize=9, labelcolor=INK)


def _axis_title(task: Task) -> str:
    return f"{SCORES[task][0].title} on held-out people (lower is better)"


def _level(ax: Any, title: str, value: float, error: float, colour: str, above: float = 4) -> None:
    """A score that is the same everywhere, with a band of one standard error, and its title so many points above."""
    ax.axhspan(value - error, value + error, color=colour, alpha=0.14, lw=0)
    ax.axhline(value, color=colour, lw=1.4, ls=_DASHED)
    place = {"xycoords": ("axes fraction", "data"), "ha": "right", "va": "bottom" if above > 0 else "top"}
    label(ax, title, (0.99, value), (0, above), color=INK, **place)


def _add_legend(ax: Any) -> None:
    from matplotlib.lines import Line2D

    looks: dict[str, dict[str, Any]] = {
        "keeps its guarantee": {"color": BLUE, "ms": 7},
        "no guarantee": {"color": INK, "mfc": "white", "mew": 1.5, "ms": 7},
        "recommended": {"color": BLUE, "mfc": "none", "mew": 1.4, "ms": 11},
    }
    handles = [Line2D([], [], ls="", marker="o", label=words, **look) for words, look in looks.items()]
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, frameon=False, fontsize=9)
