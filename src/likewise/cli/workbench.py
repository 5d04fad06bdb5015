"""The command that opens a page on which a committee makes a metric: workbench."""

from __future__ import annotations

import secrets
import shlex
import warnings
import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli import console as options
from likewise.cli.console import Output, command, next_command
from likewise.cli.models import class_named, load_any_model
from likewise.cli.sources import DatasetSource, DesignSource, PeopleSource, categories, makes_metric
from likewise.exceptions import FileError, InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

    from likewise.cli.dataset import Dataset
    from likewise.metrics.table import TableMetric
    from likewise.workbench.engine import Engine, Problem
    from likewise.workbench.exports import Tools
    from likewise.workbench.state import Session

# Everything heavy is imported inside the commands: `likewise --help` must answer at once.

_DEMO_TABLE, _DEMO_TARGET = Path("mortgages.csv"), "decision"


@options.new_command()
@click.option("--demo", is_flag=True, help="Open it on 1,989 mortgage applications from Boston, with a tour.")
@click.option(
    "--protected",
    multiple=True,
    help="Columns to lock at 0, separated by commas; may be given several times.",
)
@click.option("--metric", "metric_file", type=options.FILE, help="Metric file to start from.")
@click.option(
    "--model", "model_file", type=options.FILE, help="Model in use: of likewise, scikit-learn, a booster, or ONNX."
)
@categories
@click.option("--scores", help="Or a column of the table with the scores of a model in use.")
@click.option("--outcome", help="Class whose probability is shown; by default a known word, or the last.")
@click.option("--state", type=options.FILE, help="File of the session; by default the table, but .likewise.json.")
@click.option("--out", type=options.FILE, help="Folder for exports; by default the state without .json.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="By default a free one.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@command
@makes_metric(needs_target=False, needs_table=False, codes=False)
def workbench(
    echo: Output,
    source: DesignSource,
    demo: bool,
    protected: tuple[str, ...],
    metric_file: Path | None,
    model_file: Path | None,
    categories: Path | None,
    scores: str | None,
    outcome: str | None,
    state: Path | None,
    out: Path | None,
    port: int,
    no_browser: bool,
) -> None:
    """Open a page on this machine where a committee makes a metric.

    Move weights and see at once what the model becomes and what it costs; judge pairs of people; keep a record of who
    decided what and why; leave with a metric, a model and minutes. Every change is written to one file, which opens
    again where it was. The page is served to this machine only, and the table never leaves it. End it with Ctrl-C.

    Example: likewise workbench loans.csv --target approved --protected race,sex
    """
    import numpy as np

    from likewise._guarantee_warnings import IneffectiveWeightWarning, VacuousGuaranteeWarning
    from likewise._optional import need

    need("starlette", "The workbench")
    need("uvicorn", "The workbench")
    from likewise.workbench.engine import Engine
    from likewise.workbench.hub import Hub
    from likewise.workbench.server import HOST, bind, make_server

    units: dict[str, str] = {}
    if demo:
        if source.table is not None or source.target is not None:
            raise InvalidInputError("--demo brings its own table. Leave TABLE and --target out.")
        _write_demo(echo)
        source, units = replace(source, table=_DEMO_TABLE, target=_DEMO_TARGET), _demo_units()
        outcome = outcome or "approved"
    if source.table is None or source.target is None:
        raise InvalidInputError("Give a TABLE and its --target, or --demo.")
    if model_file is not None and scores is not None:
        raise InvalidInputError("Give either --model or --scores, the model in use.")
    problem, tools = _load(echo, replace(source, drop=(*source.drop, *([scores] if scores else []))))
    if outcome is not None and problem.task == "regression":
        raise InvalidInputError(f"--outcome is for a classification; {problem.target!r} is a regression.")
    shown = class_named(outcome, np.unique(problem.y), "--outcome")
    problem = replace(problem, units={**problem.units, **units}, outcome=shown)
    model: Any = None if model_file is None else load_any_model(str(model_file), categories)
    problem = _with_scores(echo, problem, source, model, scores)
    problem = problem if model_file is None else replace(problem, scores_title=model_file.name)
    for kind in (VacuousGuaranteeWarning, IneffectiveWeightWarning):  # the page shows both in its figures
        warnings.simplefilter("ignore", kind)
    engine = Engine(problem)
    if engine.is_sample:
        echo.note(
            f"Live figures are of {len(engine.X):,} people, an even sample of the {engine.n_table:,} in the table."
        )
    state, names = state or source.table.with_suffix(".likewise.json"), ",".join(protected).split(",")
    locked = [name.strip() for name in names if name.strip()]
    session = _session(echo, engine, problem, locked, metric_file, state)
    hub = Hub(session, engine, tools, out or state.with_suffix(""), tour=demo)
    token, bound = secrets.token_urlsafe(24), bind(port)
    address = f"http://{HOST}:{bound.getsockname()[1]}/?token={token}"
    server = make_server(hub, token, bound)
    echo(f"Workbench: {address}\nThe record is kept in {state}. End it with Ctrl-C.", address=address, state=str(state))
    echo.finish()
    if not no_browser:
        webbrowser.open(address)
    try:
        server.run(sockets=[bound])
    finally:
        hub.close()


def _session(
    echo: Output, engine: Engine, problem: Problem, protected: list[str], metric_file: Path | None, state: Path
) -> Session:
    """Open the session of a file, or make one that starts from a metric file."""
    from likewise.metric_file import read_metric_file
    from likewise.workbench.starts import from_file
    from likewise.workbench.state import Session

    table = {"name": problem.table, "target": problem.target, "fingerprint": problem.fingerprint}
    sheet = engine.empty_sheet(protected)
    if metric_file is not None:
        file = read_metric_file(metric_file)
        found = from_file(engine, file, str(metric_file))
        locked = dict.fromkeys([*protected, *(name for name in file.protected if name in engine.names)])
        sheet = replace(engine.empty_sheet(list(locked)), units={**sheet.units, **file.metric.units})
        sheet = sheet.with_weights(found["set"], found["how"])
    session = Session(state, table, sheet, engine.ranges)
    if session.reopened:
        echo(f"Opened {state} where it was, after {session.last} events.")
        if protected or metric_file:
            echo.note("--protected and --metric are for a new session, and left out here.")
    return session


def _write_demo(echo: Output) -> None:
    """Write the bundled mortgages to the working directory, unless they are there."""
    from likewise._writing import atomic_write, write_csv
    from likewise.datasets import load_mortgages

    if not _DEMO_TABLE.exists():
        bunch = load_mortgages()
        people = bunch.data.assign(**{_DEMO_TARGET: bunch.target.map({0: "denied", 1: "approved"})})
        with atomic_write(_DEMO_TABLE) as temporary:
            write_csv(people, temporary, index=False)
        echo(f"Wrote {_DEMO_TABLE}")


def _demo_units() -> dict[str, str]:
    from likewise.datasets import load_mortgages

    return {name: unit for name, unit in load_mortgages().units.items() if unit != "category"}


def _load(echo: Output, source: DesignSource) -> tuple[Problem, Tools]:
    """Read people and outcomes; and what other commands do for the workbench."""
    from likewise.cli.seen_people import origin_of
    from likewise.cli.table_io import named, read_table
    from likewise.cli.training import build_estimator, reveal_model, reveal_scores
    from likewise.workbench.engine import Problem
    from likewise.workbench.exports import Tools

    table, target, id_column, dialect = source.table, str(source.target), source.id_column, source.dialect
    data: Dataset = source.load(echo)
    ids = range(1, len(data.X) + 1) if id_column is None else read_table(table, dialect, as_text=[id_column])[id_column]
    problem = Problem(
        data.X.set_axis(list(ids)).rename(columns=str),
        data.y,
        data.task,
        named(table),
        target,
        data.output_range,
        {str(name): unit for name, unit in data.units.items()},
    )

    def reveal(known: Problem) -> tuple[TableMetric, str]:
        if known.scores is not None and known.scores.ndim == 1:
            found = reveal_scores(known.X, known.scores, known.output_range)
        else:
            found = reveal_model(known.X, known.y, "logistic", seed=0, output_range=known.output_range)
        return found.metric, found.how

    def train(metric_file: Path) -> tuple[Any, pd.DataFrame, Any]:
        known, metric = DatasetSource(table, target, metric_file, data.task, None, id_column, dialect).load(echo.note)
        model = build_estimator("additive", known, metric, None, seed=None, smoothing={})
        return model.fit(known.X, known.y), known.X, known.y

    words = {name: next_command(name) for name in ("enforce", "report", "audit", "verify-card")}

    def line(name: str, *more: object) -> str:
        start = f"likewise {name}"
        return words[name].replace(start, f"{start} {shlex.join(map(str, more))}", 1)

    return problem, Tools(reveal, train, line, lambda columns: origin_of(problem.X, columns), str(table))


def _with_scores(echo: Output, problem: Problem, source: DesignSource, model: Any, scores: str | None) -> Problem:
    """The problem with the scores of a model in use, from a column or a model file."""
    import numpy as np

    from likewise.ask import answers
    from likewise.cli.dataset import PeopleTable

    table = source.table
    if scores is not None:
        numbers = PeopleTable.read(source.people, None, echo.note).scores(scores).to_numpy(dtype=np.float64)
        low, high = problem.output_range or (0.0, 1.0)
        wrong = np.flatnonzero(~((numbers >= low) & (numbers <= high)))
        if len(wrong):
            raise FileError(
                f"{table}: scores must be numbers from {low:g} to {high:g}; row {wrong[0] + 1} of {scores!r} has "
                f"{numbers[wrong[0]]:g}."
            )
        if problem.task == "classification" and len(np.unique(problem.y)) != 2:
            raise InvalidInputError("--scores is for two classes or a regression. Give --model for several classes.")
        return replace(problem, scores=numbers, scores_title=f"scores in {scores}")
    if model is None:
        return problem
    taken = PeopleSource(table, source.id_column, source.dialect, source.categorical, (*source.drop, problem.target))
    people, _ = taken.load(echo, model)
    if problem.task == "regression":
        low, high = problem.output_range or (0.0, 1.0)
        outputs = np.clip(answers(model, people, "predict").astype(np.float64), low, high)
    else:
        outputs = answers(model, people, "predict_proba").astype(np.float64)
        if list(map(str, model.classes_)) != list(map(str, np.unique(problem.y))):
            raise InvalidInputError(f"--model must have the classes of the table; it has {list(model.classes_)}.")
    return replace(problem, scores=outputs)
