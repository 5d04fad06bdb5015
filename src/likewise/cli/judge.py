"""The command that asks a judge about pairs of people, and metric files from the answers."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli import console as options
from likewise.cli.console import Destination, Output, as_one, command, next_command
from likewise.cli.sources import PeopleSource
from likewise.exceptions import FileError, InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

    from likewise.cli.metric import RevealOptions
    from likewise.design.judgements import JudgedMetric
    from likewise.design.questions import Question
    from likewise.metrics.table import TableMetric

_HELP = (
    "How many points apart may the chances of these two be, at most, if nothing else differs?\n"
    "  5     at most 5 points\n"
    "  3-5   3 points are fine, and at most 5\n"
    "  3+    3 points are fine\n"
    "  Enter skips the question, q stops. Every answer is saved at once."
)
_ANSWER = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(?:(\+)|-\s*(\d+(?:\.\d*)?|\.\d+))?\s*%?\s*", re.ASCII)


@options.new_command()
@click.option("--out", type=options.FILE, required=True, help="CSV file of answers; new answers are appended.")
@click.option("--judge", "name", required=True, help="Name of the person who answers.")
@click.option("--metric", "metric_file", type=options.FILE, help="Metric file; its columns of weight 0 are not shown.")
@click.option(
    "--questions",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Most questions to ask in this session.",
)
@command
@as_one(
    PeopleSource,
    "source",
    click.argument("table", type=options.FILE),
    click.option("--drop", multiple=True, help="Column to leave out, such as the outcome; may be given several times."),
    options.categorical,
    options.id_column,
    options.reads_table,
)
def judge(echo: Output, source: PeopleSource, out: Path, name: str, metric_file: Path | None, questions: int) -> None:
    """Ask a person how far apart pairs of people may be treated, and save the answers.

    Shows two people of the table side by side, only where they differ, and asks about the pair whose distance is least
    determined by the answers so far. Can be stopped at any time and continued with the same command. Answers are
    appended to the file, and none is ever replaced. Without --id, people are numbered from 1. Columns of weight 0 in
    --metric and those of --drop are not shown: the file lists them, and no answer counts towards their weights.

    Example: likewise judge loans.csv --drop approved --out answers.csv --judge Ann
    """
    from likewise.design.judgements_table import hidden_cell
    from likewise.design.questions import next_question
    from likewise.io import check_output_path, unused_path
    from likewise.metric_file import read_metric_file

    check_output_path(out, source.table, metric_file, force=True)
    if not name.strip():
        raise InvalidInputError("--judge must be a name; got only spaces.")
    file = None if metric_file is None else read_metric_file(metric_file)
    start = None if file is None else file.metric
    X = read_people_table(echo, source, start)
    hidden = hidden_cell([*source.drop, *(() if start is None else start.hidden)])
    n_new = 0
    try:
        for _ in range(questions):
            before = read_judgements(out)
            own = before[before["judge"] == name]
            question = next_question(own, X, start)
            if question is None:
                echo("Every distance is known to a point, or was asked about.")
                break
            _show(question, echo)
            rows = _ask(echo)
            if rows is None:
                break
            about = {"judge": name, "a": question.a, "b": question.b, "hidden": hidden}
            append_judgements(out, [about | row for row in rows])
            n_new += rows[0]["kind"] != "skip"
    except click.Abort:
        echo("")
    own = read_judgements(out)
    n_all = int(((own["judge"] == name) & (own["kind"] != "skip")).sum())
    echo(f"{n_new} new answers; {out} has {n_all} of {name}.", n_new=n_new, n_answers=n_all, answers=str(out))
    same = [source.table, *(word for column in source.drop for word in ("--drop", column))]
    same += [] if metric_file is None else ["--start", metric_file]  # what was not shown stays as it was
    echo.finish(next_command("metric", *same, "--judgements", out, "--out", unused_path("metric.toml")))


def _show(question: Question, echo: Output) -> None:
    """Show two people side by side, only where they differ. What is known so far would sway the judge."""
    shown = question.differences.set_axis(["", f"#{question.a}", f"#{question.b}"], axis=1)
    cells = shown.map(lambda cell: f"{cell:g}" if isinstance(cell, float) else str(cell))
    click.echo("\n" + cells.where(shown.notna(), "(blank)").to_string(index=False), err=echo.as_json)


def _ask(echo: Output) -> list[dict[str, Any]] | None:
    """Ask until an answer can be read; None to stop."""
    while True:
        text = click.prompt("Points (? for help)", default="", show_default=False, err=echo.as_json).strip()
        if text.lower() in ("q", "quit"):
            return None
        if not text:
            return [{"kind": "skip"}]
        answer = parse_answer(text)
        if answer is not None:
            return answer
        click.echo(_HELP, err=echo.as_json)


def parse_answer(text: str) -> list[dict[str, Any]] | None:
    """Kinds and points of a typed answer; None if it cannot be read.

    Examples
    --------
    >>> parse_answer("3-5")
    [{'kind': 'at_least', 'points': 3.0}, {'kind': 'at_most', 'points': 5.0}]
    >>> parse_answer("5-3") is None
    True
    """
    found = _ANSWER.fullmatch(text)
    if found is None:
        return None
    first, plus, second = found.groups()
    low, high = float(first), float(second or first)
    if not 0 <= low <= high <= 100:
        return None
    if plus:
        return [{"kind": "at_least", "points": low}]
    most = {"kind": "at_most", "points": high}
    return [{"kind": "at_least", "points": low}, most] if second else [most]


def read_judgements(path: str | Path) -> pd.DataFrame:
    """Read a CSV file of judgements, as text; an absent file holds none."""
    import pandas as pd

    from likewise.cli.console import Dialect
    from likewise.cli.table_io import reading
    from likewise.design.judgements_table import empty_judgements

    if not Path(path).exists():
        return empty_judgements()
    with reading(path, Dialect()):
        table = pd.read_csv(path, dtype=str, keep_default_na=False, na_values=[""])
    absent = [name for name in ("judge", "kind", "a", "b") if name not in table.columns]
    if absent:
        raise FileError(f"{path} is not a file of judgements: it has no column {absent[0]!r}.")
    return table.set_axis(range(2, len(table) + 2))  # rows as a spreadsheet counts them


def append_judgements(path: str | Path, rows: Sequence[dict[str, Any]]) -> None:
    """Append answers to a CSV file and flush it to disk."""
    from likewise.design.judgements_table import COLUMNS

    now = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        with Path(path).open("a+", encoding="utf-8", newline="") as file:
            file.seek(0)
            text = file.read()
            names = next(csv.reader([text.splitlines()[0]])) if text.strip() else []
            if names and "hidden" not in names and any(row.get("hidden") for row in rows):
                raise FileError(
                    f"{path} has no column 'hidden', in which columns that are not shown are listed. Add ',hidden' to "
                    "its first line, or give a new file as --out."
                )
            writer = csv.DictWriter(file, names or COLUMNS, extrasaction="ignore", lineterminator="\n")
            if not names:
                writer.writeheader()
            elif not text.endswith("\n"):
                file.write("\n")
            writer.writerows({"time": now, **row} for row in rows)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise FileError(f"Cannot write {path}: {error.strerror}.") from None


def read_people_table(echo: Output, source: PeopleSource, metric: TableMetric | None = None) -> pd.DataFrame:
    """People of a table without outcomes, named by the id column or by row numbers from 1."""
    from likewise.cli.dataset import PeopleTable, drop_empty_columns

    drop = source.drop
    weighty = [] if metric is None else [n for n in drop if n in metric.columns and n not in metric.hidden]
    if weighty:
        raise InvalidInputError(f"--drop must name columns without a weight in the metric; {weighty[0]!r} has one.")
    read = PeopleTable.read(source, metric, echo.note, others=drop)
    people, names = read.X.drop(columns=list(drop), errors="ignore"), read.ids
    labels = range(1, len(people) + 1) if names is None else names
    return drop_empty_columns(people, echo.note).set_axis(list(labels))


def metric_from_judgements(
    echo: Output, source: PeopleSource, answers: Path, how: RevealOptions, strict: bool, to: Destination
) -> None:
    """Learn a metric from a file of judgements, and write it."""
    from likewise.cli.new_metric import Replaced, write_made
    from likewise.cli.seen_people import origin_of
    from likewise.cli.training import set_to_zero
    from likewise.design.judgements import learn_metric
    from likewise.metric_file import MetricFile, read_metric_file, today

    out, start, zero = to.path, how.start, how.zero
    to.check(source.table, answers, start)
    if not answers.exists():
        raise FileError(f"There is no file {answers}.")
    begun = None if start is None else read_metric_file(start)
    metric = None if begun is None else begun.metric
    X = read_people_table(echo, source, metric)
    absent = [name for name in zero if name not in X.columns]
    if absent:
        raise InvalidInputError(f"--zero names the column {absent[0]!r}, which is not in {source.table}.")
    judgements = read_judgements(answers)
    if metric is None:
        result = learn_metric(judgements, X.drop(columns=list(zero)))
    else:
        result = learn_metric(judgements, X, set_to_zero(metric, tuple(zero)))
    full = _for_file(result, X, metric, strict=strict)
    before = Replaced.at(start or out)
    judges = sorted({*judgements["judge"].dropna()})
    protected = tuple(dict.fromkeys((*zero, *(() if begun is None else begun.protected))))
    unjudged = tuple(name for name in full.hidden if name not in (*protected, *full.zero_reasons))
    file = MetricFile(
        full.with_params(units=before.units_in(echo, full)),
        output_range=None if begun is None else begun.output_range,
        how=_how(result, judges, start, strict=strict),
        protected=protected,
        not_judged=unjudged,
        as_written=True,
        domain=None if begun is None else begun.domain,
        favourable="" if begun is None else begun.favourable,
        source="judged",
        date=today(),
        **origin_of(X, full.columns),  # nobody was kept apart from the judges, whatever metric they began with
    )
    write_made(echo, file, out, before.words)
    echo(file.how, how=file.how, judges=judges, n_answers=result.n_answers, protected=list(file.protected))
    echo.table(result.ranges.round(6), "ranges")
    _echo_conflicts(echo, result)
    if unjudged:
        echo.note(f"Weight 0, as no answer says that a difference is fine: {', '.join(unjudged)}.")
    echo(f"\nWrote {out}", metric_file=str(out))
    echo.finish(f"edit {out}, then use it as --metric {out} in compare, enforce and audit")


def _how(result: JudgedMetric, judges: Sequence[str], start: Path | None, *, strict: bool) -> str:
    """Where the weights came from, in words."""
    middle = "close to the middle of the ranges that" if start is None else f"as close to {start} as"
    which = "the lower end of every range that" if strict else middle
    whose = f"{len(judges)} judges" if len(judges) != 1 else f"judge {judges[0]}"
    verb = "leave" if strict or start is None else "allow"
    return f"Learned from {result.n_answers} answers of {whose}: {which} the answers {verb}."


def _echo_conflicts(echo: Output, result: JudgedMetric) -> None:
    from likewise.design.judgements_table import describe_answer, describe_judge

    for number, part in result.conflicts.groupby("conflict"):
        alone = "this answer cannot hold, as the two do not differ in a column with a weight."
        echo(f"\nConflict {number}: {alone if len(part) == 1 else 'these answers cannot all hold.'}")
        for _, answer in part.iterrows():
            echo(f"  row {answer['answer']}, {describe_judge(answer['judge'])}: {describe_answer(answer)}")
    echo.facts["n_conflicts"] = int(result.conflicts["conflict"].nunique())


def _for_file(result: JudgedMetric, X: pd.DataFrame, start: TableMetric | None, *, strict: bool) -> TableMetric:
    """The learned metric with all columns of a table, or of `start`; those that it does not know have weight 0."""
    from likewise.inspection.baselines import categorical_columns
    from likewise.metrics.table import TableMetric

    metric = result.strict() if strict else result.metric
    weights = metric.describe().set_index("column")["weight"]
    missing = dict(metric.missing)
    if start is None:
        texts = categorical_columns(X)
        start = TableMetric({name: 0 for name in X if name not in texts}, dict.fromkeys(texts, 0))
    numeric, categorical = (
        {name: float(weights.get(name, 0.0)) for name in part} for part in (start.numeric, start.categorical)
    )
    return start.with_params(numeric=numeric, categorical=categorical, missing={**start.missing, **missing})
