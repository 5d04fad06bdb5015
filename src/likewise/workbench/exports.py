"""What a committee leaves with: metric, model, card, report, minutes, answers; and the commands that do the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from likewise._optional import need
from likewise._writing import atomic_write, write_csv
from likewise.exceptions import InvalidInputError
from likewise.io import save_model, unused_path
from likewise.metric_file import MetricFile, format_metric, today
from likewise.metrics.table import TableMetric
from likewise.workbench.engine import Problem
from likewise.workbench.minutes import comments, minutes
from likewise.workbench.state import Session, Sheet

MODEL, REPORT = ("model.skops", "card.csv", "card.json"), ("report.html",)
FILES = ("metric.toml", *MODEL, *REPORT, "minutes.md", "answers.csv")


@dataclass(frozen=True)
class Tools:
    """What the command line does for a workbench.

    Attributes
    ----------
    reveal : callable
        From a problem to the metric of a model or of given scores, and where it came from.
    train : callable
        From a metric file to a model fitted to the whole table, as ``likewise enforce --method additive`` fits it, and
        the people and outcomes it was fitted to.
    command : callable
        From the name of a command and its words to a line for a shell.
    origin : callable
        From the columns of a metric to the people it was made from, as fields of a metric file.
    table : str
        As the command line has it.
    """

    reveal: Callable[[Problem], tuple[TableMetric, str]]
    train: Callable[[Path], tuple[Any, pd.DataFrame, Any]]
    command: Callable[..., str]
    origin: Callable[[Sequence[Any]], dict[str, Any]]
    table: str


_SOURCES = {"Designed": "designed", "Revealed": "revealed", "Learned": "judged"}  # by the first word of where from


def metric_file(sheet: Sheet, output_range: tuple[float, float] | None, origin: Mapping[str, Any]) -> MetricFile:
    """The weights as a metric file: locked columns are protected, other columns at 0 are not used.

    Whatever the weights began with, they were settled on with figures of these people in view, whom `origin` says.
    """
    metric = sheet.metric
    others = tuple(name for name in metric.hidden if name not in sheet.locked)
    return MetricFile(
        metric,
        output_range,
        sheet.how or "Set by hand in the workbench.",
        protected=sheet.locked,
        not_used=others,
        as_written=True,
        source=_SOURCES.get(sheet.how.partition(" ")[0], "by hand"),
        date=today(),
        **origin,
    )


def write_texts(
    session: Session, problem: Problem, folder: Path, facts: Mapping[str, Any], origin: Mapping[str, Any]
) -> list[str]:
    """Write metric, minutes and answers as they are now, and return their names; files of earlier exports go."""
    sheet = session.sheet
    if not any(sheet.weights["numeric"].values()) and not any(sheet.weights["categorical"].values()):
        raise InvalidInputError(
            "Give at least one column a weight first: within weights of 0 there is only a constant."
        )
    folder.mkdir(parents=True, exist_ok=True)
    earlier = [event for event in session.events if event["kind"] == "exported" and event["folder"] == str(folder)]
    for name in {name for event in earlier for name in event["files"] if name in FILES}:
        (folder / name).unlink(missing_ok=True)  # a report of another model beside this one would mislead
    file = metric_file(sheet, problem.output_range, origin)
    _write(folder / "metric.toml", format_metric(file, words=comments(session)))
    _write(folder / "minutes.md", minutes(session, facts))
    answers = session.judgements()
    if not answers:
        return ["metric.toml", "minutes.md"]
    with atomic_write(folder / "answers.csv") as temporary:
        write_csv(pd.DataFrame(answers), temporary, index=False)
    return ["metric.toml", "minutes.md", "answers.csv"]


def write_model(model: Any, folder: Path) -> None:
    """Write a model and its card."""
    save_model(model, folder / "model.skops")
    model.to_csv(folder / "card.csv")
    model.to_json(folder / "card.json")


def write_report(model: Any, X: pd.DataFrame, y: Any, problem: Problem, folder: Path) -> None:
    """Write the report, for which models are fitted anew: it takes longest."""
    need("jinja2", "A report")
    from likewise.report import render
    from likewise.report.build import build_report

    outcome = problem.outcome if problem.task == "classification" else problem.target
    data = build_report(model, X, y, outcome=outcome, seen=True, model_name="model.skops", source=problem.table)
    _write(folder / "report.html", render(data))


def commands(tools: Tools, target: str, folder: str) -> list[str]:
    """The lines that make the same files without the page, from the metric; they replace nothing that is there."""
    metric, model, report = f"{folder}/metric.toml", *(unused_path(f"{folder}/{name}") for name in (MODEL[0], *REPORT))
    return [
        tools.command(
            "enforce", tools.table, "--target", target, "--metric", metric, "--method", "additive", "--out", model
        ),
        tools.command("report", model, tools.table, "--target", target, "--out", report),
        tools.command("audit", tools.table, "--metric", metric, "--model", model),
        tools.command("verify-card", f"{folder}/card.json"),
    ]


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as temporary:
        temporary.write_bytes(text.encode())
