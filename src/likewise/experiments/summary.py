"""Results averaged over seeds, as tables to read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pandas as pd

from likewise.experiments.trials import ADDITIVE, CEILING, HINGE_LIPSCHITZ, LOG_LIPSCHITZ, PROMISING

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
    """Read a ``results.csv`` with empty words as words and empty numbers as NaN."""
    words = ["dataset", "split", "model", "p", "noise", "level"]
    return pd.read_csv(path, dtype=dict.fromkeys(words, str)).fillna(dict.fromkeys(words, ""))


def data_name(dataset: str, split: str) -> str:
    """Name of a data set for readers; synthetic data are called so, and a split that is not by rows is named."""
    return _NAMES.get(dataset, dataset) + (f", by {split}" if split != "rows" else "")


def model_name(model: str, p: str, noise: str) -> str:
    """Name of a model for readers.

    Examples
    --------
    >>> model_name("smoothed network", "inf", "gaussian"), model_name("network", "", "")
    ('L∞ Gaussian', 'network')
    """
    return f"{metric_name(p)} {noise.capitalize() or _BUILT[model]}" if p else model


def metric_name(p: str) -> str:
    """Name of a metric for readers."""
    return f"L{p.replace('inf', '∞')}"


def readable(summary: pd.DataFrame) -> pd.DataFrame:
    """Make a table of words, one row per model: scores, violations of how many pairs, and what a person costs."""
    words = pd.DataFrame(index=summary.index)
    words["data"] = [data_name(*names) for names in zip(summary["dataset"], summary["split"], strict=True)]
    words["model"] = [
        model_name(*names) for names in zip(summary["model"], summary["p"], summary["noise"], strict=True)
    ]
    for column in ("accuracy", "confidence"):
        words[f"{column}, %"] = _format(summary[column] * 100, "{:.1f}")
    words["Brier"] = _format(summary["brier"], "{:.4f}")
    words["above D + ε"] = _format(summary["n_violations"].where(summary["model"].isin(PROMISING)), "{:,.0f}")
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
