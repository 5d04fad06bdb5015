"""What a committee leaves with: metric, model, card, report, minutes, answers; and the commands that do the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from likewise._optional import need
from likewise._writing import atomic_write, write_csv
from likewise.exceptions import InvalidInputError
from likewise.io import save_model
from likewise.metric_file import MetricFile, format_metric
from likewise.metrics.table import TableMetric
from likewise.workbench.engine import Problem
from likewise.workbench.minutes import comments, minutes
from likewise.workbench.state import Session, Sheet

FILES = ("metric.toml", "model.skops", "card.csv", "card.json", "report.html", "minutes.md", "answers.csv")


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
    table : str
        As the command line has it.
    """

    reveal: Callable[[Problem], tuple[TableMetric, str]]
    train: Callable[[Path], tuple[Any, pd.DataFrame, Any]]
    command: Callable[..., str]
    table: str


def metric_file(sheet: Sheet, output_range: tuple[float, float] | None) -> MetricFile:
    """The weights as a metric file: locked columns are protected, other columns at 0 are not used."""
    metric = sheet.metric
    others = tuple(name for name in metric.hidden if name not in sheet.locked)
    return MetricFile(
        metric,
        output_range,
        sheet.how or "Set by hand in the workbench.",
        protected=sheet.locked,
        not_used=others,
        as_written=True,
    )


def write_all(
    session: Session,
    problem: Problem,
    tools: Tools,
    folder: Path,
    facts: Mapping[str, Any],
    progress: Callable[[str], None],
    *,
    with_report: bool,
) -> list[str]:
    """Write every file into a folder, and return their names. Only the report may take a minute."""
    sheet = session.sheet
    if not any(sheet.weights["numeric"].values()) and not any(sheet.weights["categorical"].values()):
        raise InvalidInputError(
            "Give at least one column a weight first: within weights of 0 there is only a constant."
        )
    folder.mkdir(parents=True, exist_ok=True)
    progress("metric.toml and minutes.md")
    _write(folder / "metric.toml", format_metric(metric_file(sheet, problem.output_range), words=comments(session)))
    _write(folder / "minutes.md", minutes(session, facts))
    done = ["metric.toml", "minutes.md"]
    answers = session.judgements()
    if answers:
        with atomic_write(folder / "answers.csv") as temporary:
            write_csv(pd.DataFrame(answers), temporary, index=False)
        done.append("answers.csv")
    progress("model.skops, fitted to the whole table")
    model, X, y = tools.train(folder / "metric.toml")
    save_model(model, folder / "model.skops")
    model.to_csv(folder / "card.csv")
    model.to_json(folder / "card.json")
    done += ["model.skops", "card.csv", "card.json"]
    if with_report:
        progress("report.html, which takes longest")
        _write_report(model, X, y, problem, folder / "report.html")
        done.append("report.html")
    return sorted(done, key=FILES.index)


def _write_report(model: Any, X: pd.DataFrame, y: Any, problem: Problem, path: Path) -> None:
    need("jinja2", "A report")
    from likewise.report import render
    from likewise.report.build import build_report

    outcome = problem.outcome if problem.task == "classification" else problem.target
    data = build_report(model, X, y, outcome=outcome, cv=3, model_name="model.skops", source=problem.table)
    _write(path, render(data))


def commands(tools: Tools, target: str, folder: str) -> list[str]:
    """The lines that make the same files without the page, from the metric."""
    metric, model = f"{folder}/metric.toml", f"{folder}/model.skops"
    return [
        tools.command(
            "enforce", tools.table, "--target", target, "--metric", metric, "--method", "additive", "--out", model
        ),
        tools.command("report", model, tools.table, "--target", target, "--out", f"{folder}/report.html"),
        tools.command("audit", tools.table, "--metric", metric, "--model", model),
        tools.command("verify-card", f"{folder}/card.json"),
    ]


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as temporary:
        temporary.write_bytes(text.encode())
