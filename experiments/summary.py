"""Results averaged over seeds, as a printed table and as the figure."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pandas as pd

from experiments.trials import (
    ADDITIVE,
    CEILING,
    CONSTANT,
    EXPONENTS,
    GUARANTEED,
    HINGE_LIPSCHITZ,
    LINEAR,
    LOG_LIPSCHITZ,
    NETWORK,
    SMOOTHED,
)
from likewise._optional import need

if TYPE_CHECKING:
    from rich.console import Console

_KEY = ["dataset", "split", "model", "p", "noise"]
_MEASURES = ("accuracy", "confidence", "brier")
_BUILT = {
    ADDITIVE: "additive",
    LOG_LIPSCHITZ: "1-Lipschitz, log loss",
    HINGE_LIPSCHITZ: "1-Lipschitz, hinge loss",
    CEILING: "ceiling",
}
_NAMES = {"adult": "Adult", "compas": "COMPAS", "ssl": "SSL", "ssl-synthetic": "SSL (synthetic)", "seizure": "Seizure"}


def summarise(results: pd.DataFrame) -> pd.DataFrame:
    """Average the cells over seeds.

    Parameters
    ----------
    results : DataFrame
        One row per cell, as returned by `reproduce` or read from its ``results.csv`` (`read_results`).

    Returns
    -------
    DataFrame
        One row per data set, split and model: means of ``accuracy``, ``confidence`` and ``brier`` over seeds with the
        smallest and the largest (``accuracy_low``, ...); ``n_pairs`` and ``n_violations`` summed and
        ``largest_excess`` at its worst; means of ``evaluations``, ``train_cpu_seconds``, ``seconds`` and
        ``cpu_seconds``, and the best of ``microseconds``; ``n_people`` summed; ``n_seeds``; and ``accuracy_all``, ...,
        means on the whole test set where models are evaluated once.
    """
    spread = {
        f"{measure}{ending}": (measure, how)
        for measure in _MEASURES
        for ending, how in (("", "mean"), ("_low", "min"), ("_high", "max"))
    }
    return (
        results.groupby(_KEY, sort=False, dropna=False)
        .agg(
            **spread,
            n_people=("n_people", "sum"),
            **{f"{measure}_all": (f"{measure}_all", "mean") for measure in _MEASURES},
            n_pairs=("n_pairs", "sum"),
            n_violations=("n_violations", "sum"),
            largest_excess=("largest_excess", "max"),
            evaluations=("evaluations", "mean"),
            microseconds=("microseconds", "min"),
            train_cpu_seconds=("train_cpu_seconds", "mean"),
            seconds=("seconds", "mean"),
            cpu_seconds=("cpu_seconds", "mean"),
            n_seeds=("seed", "nunique"),
        )
        .reset_index()
    )


def read_results(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a ``results.csv``; empty text columns are empty strings, empty numbers NaN."""
    words = ["dataset", "split", "model", "p", "noise", "level"]
    return pd.read_csv(path, dtype=dict.fromkeys(words, str)).fillna(dict.fromkeys(words, ""))


def data_name(dataset: str, split: str) -> str:
    """Display name of a data set, with "synthetic" and the split (unless by rows) in it."""
    return _NAMES.get(dataset, dataset) + (f", by {split}" if split != "rows" else "")


def model_name(model: str, p: str, noise: str) -> str:
    """Display name of a model.

    Examples
    --------
    >>> model_name("smoothed network", "inf", "gaussian"), model_name("network", "", "")
    ('L∞ Gaussian', 'network')
    """
    return f"{metric_name(p)} {noise.capitalize() or _BUILT[model]}" if p else model


def metric_name(p: str) -> str:
    """Display name of a metric."""
    return f"L{p.replace('inf', '∞')}"


def readable(summary: pd.DataFrame) -> pd.DataFrame:
    """Format a summary as text, one row per model: scores, violations, and cost per person."""
    words = pd.DataFrame(index=summary.index)
    words["data"] = [data_name(*names) for names in zip(summary["dataset"], summary["split"], strict=True)]
    words["model"] = [
        model_name(*names) for names in zip(summary["model"], summary["p"], summary["noise"], strict=True)
    ]
    for column in ("accuracy", "confidence"):
        words[f"{column}, %"] = _format(summary[column] * 100, "{:.1f}")
    words["Brier"] = _format(summary["brier"], "{:.4f}")
    words["above D + ε"] = _format(summary["n_violations"].where(summary["model"].isin(GUARANTEED)), "{:,.0f}")
    words["times evaluated"] = _format(summary["evaluations"], "{:,.0f}")
    words["µs"] = _format(summary["microseconds"], "{:,.1f}")
    return words


def _format(values: pd.Series[float], pattern: str) -> list[str]:
    return ["" if pd.isna(value) else pattern.format(value) for value in values]


def print_table(summary: pd.DataFrame, console: Console | None = None) -> None:
    """Print one table per data set and split."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = console or Console()
    words = readable(summary)
    for name, part in words.groupby("data", sort=False):
        seeds = summary.loc[part.index, "n_seeds"].max()
        people = int(summary.loc[part.index, "n_people"].max())
        title = f"{name}: {people:,} test people in {seeds} seed{'s' if seeds > 1 else ''}"
        table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
        for column in part.columns[1:]:
            table.add_column(column, justify="left" if column == "model" else "right", no_wrap=column == "model")
        for values in part.iloc[:, 1:].itertuples(index=False):
            table.add_row(*values)
        console.print(table)
    console.print("above D + ε: pairs of test people whose outputs differ by more than their distance plus epsilon.")
    console.print("times evaluated and µs: evaluations of the model and processor time per person.")


# Colours that colour-blind readers can tell apart, each with its own marker for grey prints.
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
_AXES = {"accuracy": ("Accuracy, %", 100), "confidence": ("Mean confidence, %", 100), "brier": ("Brier score", 1)}
_LINES: Any = {
    LINEAR: (_INK, (0, (5, 3)), "logistic regression, no guarantee"),
    NETWORK: (_GREY, "-", "network, no guarantee"),
    CONSTANT: (_GREY, (0, (1, 2)), "constant"),
}
_STEP = 0.13  # horizontal distance between methods under one metric
_RC: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so the figure is the same everywhere
    "font.size": 9.0,
    "svg.hashsalt": "likewise",
    "axes.edgecolor": _GREY,
    "axes.labelcolor": _INK,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
}


def draw(summary: pd.DataFrame, *paths: str | os.PathLike[str]) -> None:
    """Draw a summary (`experiments.summarise`) into files, SVG or PNG by their suffix.

    One column per data set and split, with accuracy, mean confidence and Brier score. Markers are models within
    the metric, with a thin line from the lowest to the highest seed; the dashed line is the logistic regression, the
    solid one the network before smoothing, the dotted one a constant, and the bars are ceilings: the highest mean
    confidence that any model within the metric could reach on the test people.
    """
    mpl = need("matplotlib", "The figure")
    from matplotlib.figure import Figure

    parts = list(summary.groupby(["dataset", "split"], sort=False))
    with mpl.rc_context(_RC):
        figure = Figure(figsize=(1.0 + 2.45 * max(2, len(parts)), 8.0), dpi=160)
        grid = figure.subplots(len(_AXES), len(parts), squeeze=False, sharex=True)
        for column, ((dataset, split), part) in enumerate(parts):
            for axes, measure in zip(grid[:, column], _AXES, strict=True):
                _panel(axes, part, measure)
            grid[0, column].set_title(data_name(str(dataset), str(split)), fontsize=10, fontweight="bold", pad=8)
        for axes, (label, _) in zip(grid[:, 0], _AXES.values(), strict=True):
            axes.set_ylabel(label)
        figure.tight_layout(
            rect=(0, 0.08 if len(parts) > 3 else 0.13 if len(parts) > 1 else 0.18, 1, 1), h_pad=1.2, w_pad=1.0
        )
        columns = 5 if len(parts) > 3 else 3 if len(parts) > 1 else 2
        figure.legend(handles=_legend(), loc="lower center", ncols=columns, frameon=False, fontsize=8.5)
        for path in paths:
            # No date or version in the metadata: the same results give the same bytes.
            is_svg = str(os.fspath(path)).endswith(".svg")
            figure.savefig(path, metadata={"Date": None, "Creator": None} if is_svg else {"Software": None})


def _panel(axes: Any, part: pd.DataFrame, measure: str) -> None:
    unit = _AXES[measure][1]
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
