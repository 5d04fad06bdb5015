"""Metric files that commands make: what is kept of the file that is replaced, and what is printed of the new one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pandas as pd

from likewise._validation import list_words
from likewise._writing import atomic_write, write_text
from likewise.auditing.coverage import measure_coverage
from likewise.cli.console import Output, echo_coverage
from likewise.io import unused_path
from likewise.metric_edits import metric_at, read_comments
from likewise.metric_file import CATEGORY_SECTIONS, MetricComments, MetricFile, as_rate, format_metric
from likewise.metrics.table import TableMetric

_MOST_STEPS = 20  # between the smallest and the largest value of a column that is counted in steps


@dataclass(frozen=True)
class Replaced:
    """The metric file that a command replaces: its content, None if there is none that can be read, and its words."""

    path: Path
    file: MetricFile | None
    words: MetricComments

    @classmethod
    def at(cls, path: Path) -> Replaced:
        """The file at a path."""
        file = metric_at(path)
        return cls(path, file, MetricComments() if file is None else read_comments(path))

    @property
    def protected(self) -> tuple[str, ...]:
        """Its protected columns."""
        return () if self.file is None else self.file.protected

    def units_in(self, echo: Output, metric: TableMetric, protected: Sequence[str] = ()) -> dict[str, str]:
        """Its units of the columns of a new metric; prints what is kept of it, and which shapes of categories are not.

        `protected` are its columns that the new metric has at 0 for its sake.
        """
        if self.file is None:
            return {}
        units = {name: unit for name, unit in self.words.units.items() if name in metric.columns}
        parts = [f"{', '.join(protected)} at 0"] if protected else []
        parts += [f"the units of {', '.join(units)}"] if units else []
        lost: dict[str, list[str]] = {}
        for section in CATEGORY_SECTIONS:
            names = [name for name in getattr(self.file.metric, section) if name in metric.columns]
            gone = [name for name in names if name not in getattr(metric, section)]
            lost |= {section: gone} if gone else {}
            parts += [f"the {section} of {', '.join(names)}"] if names and not gone else []
        n_comments = self.words.n_comments
        parts += [f"{n_comments} comment{'s' * (n_comments > 1)}"] if n_comments else []
        if parts:
            facts = {"protected": list(protected), "units": units, "n_comments": n_comments}
            echo(f"Kept of the old {self.path}: {list_words(parts)}.", kept=facts)
        for section, gone in lost.items():
            echo.note(
                f"Not kept of the old {self.path}: the {section} of {', '.join(gone)}. One weight was found for all "
                f"their values; put [{section}] back to be stricter, and audit the model again."
            )
        return units


def write_new(echo: Output, text: str, path: Path) -> None:
    """Write a metric file; of one that is replaced a copy is kept, and the lines that changed are printed."""
    copy = unused_path(path.with_name(f"{path.name}.bak")) if path.exists() else None
    if copy is not None:
        with atomic_write(copy) as temporary:
            temporary.write_bytes(path.read_bytes())
    write_text(path, text)
    if copy is not None:
        echo(f"The old {path} is kept as {copy}. What changed:", backup=str(copy))
        echo_changes(echo, copy, path)


def write_made(echo: Output, file: MetricFile, path: Path, words: MetricComments) -> None:
    """Write what a command has made, with the words that people wrote into an earlier file."""
    write_new(echo, format_metric(file, words=words), path)


def echo_changes(echo: Output, before: Path, after: Path) -> None:
    """Print the lines in which two files differ."""
    old, new = (path.read_bytes().decode("utf-8", errors="replace").splitlines() for path in (before, after))
    lines = list(unified_diff(old, new, str(before), str(after), lineterm="", n=0))
    echo("\n".join(lines) if lines else "No line differs.", changed_lines=lines)


def echo_weights(echo: Output, file: MetricFile) -> None:
    """Print what the weights mean; they themselves are in the file."""
    table, meanings = file.metric.describe(), file.meanings()
    table["one point"] = [meanings[name] for name in table["column"]]
    rates = [
        as_rate(worth) if weight else worth for weight, worth in zip(table["weight"], table["one point"], strict=True)
    ]
    echo.table(table, "metric", table[["column"]].assign(weight=rates))


def echo_distances(echo: Output, file: MetricFile, X: pd.DataFrame) -> None:
    """Print the weights of missing numbers, for columns of `X` that have some, what a point is, and the coverage."""
    metric = file.metric
    blanks = [name for name in metric.numeric if X[name].isna().any() and name not in metric.hidden]
    if blanks:
        weights = ", ".join(f"{name} {100 * metric.missing[name]:.3g} points" for name in blanks)
        echo(f"\nDistance between a person with the number and one without: {weights}.")
    echo_point(echo, file)
    echo_coverage(echo, measure_coverage(metric, X))


def echo_point(echo: Output, file: MetricFile) -> None:
    """Print what a point of a regression is."""
    if file.output_range is not None:
        low, high = file.output_range
        echo(f"\nA point is a hundredth of the output range, {low:g} to {high:g}.", output_range=file.output_range)


def count_units(X: pd.DataFrame) -> dict[str, str]:
    """The unit "step" for columns of few whole numbers, such as a count of cards, and of ordered categories."""
    found = {}
    for name, column in X.items():
        values: Any = column.cat.codes if hasattr(column, "cat") else column.dropna()
        if values.nunique() > 1 and (values % 1 == 0).all() and values.max() - values.min() <= _MOST_STEPS:
            found[str(name)] = "step"
    return found
