"""Comparisons as tables: for programs, for a terminal, and for a notebook."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd

from likewise._html import grid, panel, words
from likewise.auditing.measures import YARDSTICKS, Yardstick
from likewise.models.pipelines import Task

_AFTER = [
    "people",
    "violations",
    "pairs",
    "promise",
    "level",
    "epsilon",
    "evaluations",
    "microseconds",
    "fit_seconds",
    "note",
]
_WHOLE = ["people", "violations", "pairs", "evaluations"]
_WIDTH = 120


def as_table(rows: dict[Any, dict[str, Any]], task: Task, index: str = "way") -> pd.DataFrame:
    """One row per entry of `rows`, the same columns for all."""
    figures = [column for one in YARDSTICKS[task] for column in (one.name, f"{one.name}_se")]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=None).reindex(columns=["title", *figures, *_AFTER])
    table = table.astype({**dict.fromkeys(_WHOLE, "Int64"), "promise": bool})
    table[["level", "note"]] = table[["level", "note"]].fillna("")
    return table.rename_axis(index)


def as_text(table: pd.DataFrame, task: Task, measured_on: str, conclusion: str) -> str:
    """For a terminal: how good each way is, what it promises and costs, notes, on whom, and what follows."""
    gone = table["evaluations"].notna()
    blocks = [_aligned(cells[gone]) for cells in (_figures(table, task), _costs(table))]
    notes = [
        fill(f"{row.title}: {str(row.note).rstrip('.')}.", _WIDTH, subsequent_indent="  ")
        for row in table[table["note"] != ""].itertuples()
    ]
    words = [fill(measured_on, _WIDTH), fill(conclusion, _WIDTH)]
    return "\n\n".join([*blocks, *(["\n".join(notes)] if notes else []), *words])


def as_html(table: pd.DataFrame, task: Task, title: str, measured_on: str, conclusion: str, best: str = "") -> str:
    """For a notebook: the same as one table, in which the row of the title `best` stands out."""
    cells = pd.concat([_figures(table, task), _costs(table).iloc[:, 1:], table[["note"]]], axis=1)
    last = cells.shape[1] - 1
    body = grid([str(name) for name in cells.columns], cells.to_numpy().tolist(), left=[0, last], strong=best)
    return panel(title, words(conclusion), body, words(measured_on, quiet=True))


def _aligned(cells: pd.DataFrame) -> str:
    """Columns of text, the first to the left and the others to the right."""
    widths = [max(len(name), *cells[name].str.len()) for name in cells.columns]

    def line(entries: Any) -> str:
        first, *others = entries
        return "  ".join([first.ljust(widths[0]), *(e.rjust(w) for e, w in zip(others, widths[1:], strict=True))])

    return "\n".join([line(cells.columns), line("-" * width for width in widths), *map(line, cells.to_numpy())])


def _figures(table: pd.DataFrame, task: Task) -> pd.DataFrame:
    """Figures with their standard errors, as text; empty where nothing was measured."""
    cells = {str(table.index.name): table["title"].tolist()}
    for one in YARDSTICKS[task]:
        pairs = zip(table[one.name], table[f"{one.name}_se"], strict=True)
        cells[one.title] = [_figure(one, *pair) for pair in pairs]
    return pd.DataFrame(cells, index=table.index)


def _costs(table: pd.DataFrame) -> pd.DataFrame:
    """Promise, violations and costs, as text; empty where nothing was measured."""
    cells = {
        str(table.index.name): table["title"],
        "promise": table["level"],
        "epsilon": table["epsilon"].map(lambda epsilon: "" if np.isnan(epsilon) else f"{epsilon:.2g}"),
        "violations": table["violations"].map("{:,}".format),
        "of pairs": table["pairs"].map("{:,}".format),
        "evaluations": table["evaluations"].map("{:,}".format),
        "µs a person": table["microseconds"].map(_amount),
        "seconds to fit": table["fit_seconds"].map(_amount),
    }
    return pd.DataFrame(cells).where(table["evaluations"].notna(), "").assign(**{str(table.index.name): table["title"]})


def _amount(size: float) -> str:
    return f"{size:,.0f}" if size >= 100 else f"{size:.2g}"


def _figure(one: Yardstick, value: float, error: float) -> str:
    """A figure and its standard error, to the same digits."""
    if np.isnan(value):
        return ""
    if one.percent:
        return f"{100 * value:.1f}% ± {100 * error:.1f}"
    digits = one.digits
    if digits is None:  # in units of the outcome: two digits of the error say enough
        digits = int(np.clip(1 - np.floor(np.log10(error or 1.0)), 0, 6))
    return f"{value:,.{digits}f} ± {error:,.{digits}f}"
