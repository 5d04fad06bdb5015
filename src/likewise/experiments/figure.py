"""The paper's figure: what every method keeps, per data set and metric; same input, same bytes."""

from __future__ import annotations

import os
from typing import Any

import pandas as pd

from likewise._optional import need
from likewise.experiments.summary import data_name
from likewise.experiments.trials import (
    ADDITIVE,
    CEILING,
    CONSTANT,
    EXPONENTS,
    HINGE_LIPSCHITZ,
    LINEAR,
    LOG_LIPSCHITZ,
    NETWORK,
    SMOOTHED,
)

# Colours that stay apart for colour-blind readers, with a marker each for readers in grey.
_STYLES = {
    (SMOOTHED, "laplace"): ("#d98a2b", "s", "smoothed, Laplace"),
    (SMOOTHED, "gaussian"): ("#2f6fa7", "o", "smoothed, Gaussian"),
    (SMOOTHED, "uniform"): ("#3b8f6b", "^", "smoothed, Uniform"),
    (SMOOTHED, "splitting"): ("#8e5aa8", "D", "smoothed, Splitting"),
    (ADDITIVE, ""): ("#111111", "P", "additive"),
    (LOG_LIPSCHITZ, ""): ("#b3243b", "v", "1-Lipschitz, log loss"),
    (HINGE_LIPSCHITZ, ""): ("#e0719a", "X", "1-Lipschitz, hinge loss"),
}
_INK, _GREY, _FAINT = "#2b2f36", "#8a8f98", "#e6e8eb"
_MEASURES = {"accuracy": ("Accuracy, %", 100), "confidence": ("Mean confidence, %", 100), "brier": ("Brier score", 1)}
_LINES: Any = {
    LINEAR: (_INK, (0, (5, 3)), "logistic regression, no promise"),
    NETWORK: (_GREY, "-", "network, no promise"),
    CONSTANT: (_GREY, (0, (1, 2)), "constant"),
}
_STEP = 0.13  # between the methods under one metric
_RC: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that the picture is the same everywhere
    "font.size": 9.0,
    "svg.hashsalt": "likewise",
    "axes.edgecolor": _GREY,
    "axes.labelcolor": _INK,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
}


def draw(summary: pd.DataFrame, *paths: str | os.PathLike[str]) -> None:
    """Draw a summary (`likewise.experiments.summarise`) into files, SVG or PNG by their suffix.

    One column per data set and split, with accuracy, mean confidence and Brier score. Marks are models within the
    metric, with a thin line from the smallest to the largest of the seeds; the dashed line is the logistic regression,
    the solid one the network before smoothing, the dotted one a constant, and the bars are ceilings: the most
    confidence that any model fair under the metric could have on the test people.
    """
    mpl = need("matplotlib", "The figure")
    from matplotlib.figure import Figure

    parts = list(summary.groupby(["dataset", "split"], sort=False))
    with mpl.rc_context(_RC):
        figure = Figure(figsize=(1.0 + 2.45 * max(2, len(parts)), 8.0), dpi=160)
        grid = figure.subplots(len(_MEASURES), len(parts), squeeze=False, sharex=True)
        for column, ((dataset, split), part) in enumerate(parts):
            for axes, measure in zip(grid[:, column], _MEASURES, strict=True):
                _panel(axes, part, measure)
            grid[0, column].set_title(data_name(str(dataset), str(split)), fontsize=10, fontweight="bold", pad=8)
        for axes, (label, _) in zip(grid[:, 0], _MEASURES.values(), strict=True):
            axes.set_ylabel(label)
        figure.tight_layout(
            rect=(0, 0.08 if len(parts) > 3 else 0.13 if len(parts) > 1 else 0.18, 1, 1), h_pad=1.2, w_pad=1.0
        )
        columns = 5 if len(parts) > 3 else 3 if len(parts) > 1 else 2
        figure.legend(handles=_legend(), loc="lower center", ncols=columns, frameon=False, fontsize=8.5)
        for path in paths:
            # Neither a date nor a version: the same results are the same file.
            is_svg = str(os.fspath(path)).endswith(".svg")
            figure.savefig(path, metadata={"Date": None, "Creator": None} if is_svg else {"Software": None})


def _panel(axes: Any, part: pd.DataFrame, measure: str) -> None:
    unit = _MEASURES[measure][1]
    for model, (colour, line, _) in _LINES.items():
        for value in part.loc[part["model"] == model, measure]:
            axes.axhline(unit * value, color=colour, linestyle=line, linewidth=1.2, zorder=1)
    for where, p in enumerate(EXPONENTS):
        here = part[part["p"] == p]
        rows = {(row["model"], row["noise"]): row for row in here.to_dict("records")}
        methods = [method for method in _STYLES if method in rows]
        for k, method in enumerate(methods):
            x = where + _STEP * (k - (len(methods) - 1) / 2)
            colour, marker, _ = _STYLES[method]
            low, high = unit * rows[method][f"{measure}_low"], unit * rows[method][f"{measure}_high"]
            axes.plot([x, x], [low, high], color=colour, linewidth=1.2, alpha=0.6, zorder=2, solid_capstyle="butt")
            height = unit * rows[method][measure]
            axes.plot(x, height, marker, color=colour, markersize=6, markeredgecolor="white", zorder=3)
        if measure == "confidence":
            for value in here.loc[here["model"] == CEILING, measure]:
                axes.plot([where - 0.38, where + 0.38], [100 * value] * 2, color=_INK, linewidth=2.4, zorder=1)
    axes.set_xlim(-0.5, len(EXPONENTS) - 0.5)
    axes.set_xticks(range(len(EXPONENTS)), [rf"$L_{{{p}}}$".replace("inf", r"\infty") for p in EXPONENTS], fontsize=11)
    axes.tick_params(length=0)
    axes.grid(axis="y", color=_FAINT, linewidth=0.8, zorder=0)
    axes.margins(y=0.12)
    axes.yaxis.get_major_locator().set_params(nbins=6, steps=[1, 2, 5, 10])
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _legend() -> list[Any]:
    from matplotlib.lines import Line2D

    marks: list[Any] = [
        Line2D([], [], color=colour, marker=marker, linestyle="", markersize=6, markeredgecolor="white", label=name)
        for colour, marker, name in _STYLES.values()
    ]
    lines = [
        *(
            Line2D([], [], color=colour, linewidth=1.2, linestyle=line, label=name)
            for colour, line, name in _LINES.values()
        ),
        Line2D([], [], color=_INK, linewidth=2.4, label="ceiling of the metric"),
        Line2D([], [], color=_GREY, linestyle="", marker="|", markersize=11, label="smallest to largest of the seeds"),
    ]
    return marks + lines
