"""The command line: the same words as the Python interface, on tables in files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise import __version__
from likewise.cli import console as options
from likewise.cli.audit import audit
from likewise.cli.compare import compare, tradeoff
from likewise.cli.console import Output, command
from likewise.cli.enforce import enforce
from likewise.cli.metric import metric, scale
from likewise.cli.score import score
from likewise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from likewise.cli.table_io import Dialect

_DIRECTORY = click.Path(path_type=Path, file_okay=False)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="likewise")
def main() -> None:
    """Individual fairness with guarantees: similar people are treated similarly.

    Reveal the distance between people that a model respects, discuss and edit it, train a model that provably
    respects it, and audit every pair.

    Exit codes: 0 done, 1 a gate failed (audit --max-excess), 2 bad input, 3 a crash, 130 stopped by Ctrl-C.
    """


for _command in (metric, scale, compare, enforce, tradeoff, score, audit):
    main.add_command(_command)


@main.command()
@click.option("--out", type=_DIRECTORY, default=Path("likewise-demo"), show_default=True)
@command
def demo(say: Output, out: Path) -> None:
    """Do the main job on 1,989 mortgage applications from Boston.

    Example: likewise demo --out likewise-demo
    """
    from likewise.cli.demo import run

    run(say, out)


@main.command()
@click.argument("model", type=options.FILE)
@click.argument("table", type=options.FILE)
@options.target
@click.option("--outcome", help="Value of the target whose probability is shown; the last one by default.")
@click.option("--id", "id_column", help="Column that names people; by default the row, counted from 0.")
@click.option("--date", help="Of the data, as it is to be shown; by default none.")
@click.option("--title", default="How alike people are treated", show_default=True)
@click.option("--folds", type=click.IntRange(2, 10), default=3, show_default=True, help="To hold people out.")
@click.option("--out", type=options.FILE, default=Path("report.html"), show_default=True)
@options.force
@command
@options.reads_table
def report(
    say: Output,
    model: Path,
    table: Path,
    target: str,
    outcome: str | None,
    id_column: str | None,
    date: str | None,
    title: str,
    folds: int,
    out: Path,
    force: bool,
    dialect: Dialect,
) -> None:
    """Write an offline page that explains a model to people who are not engineers.

    Pairs are searched with the model as it is. How good it is, is measured on people held out, by models of its kind
    that are trained anew on folds of the table: it may be the table that the model has learned from.

    Example: likewise report model.skops loans.csv --target approved --out report.html
    """
    from likewise._optional import need
    from likewise.cli.table_io import named
    from likewise.cli.workflows import people_and_outcomes, write_report
    from likewise.io import check_free, load_model

    need("jinja2", "A report")  # before the measuring, which takes longest
    check_free(out, model, table, force=force)
    fitted = load_model(model)
    data = people_and_outcomes(
        table,
        target,
        dialect=dialect,
        task="classification" if hasattr(fitted, "classes_") else "regression",
        metric=fitted.guarantee_.metric,
        classes=getattr(fitted, "classes_", None),
        id_column=id_column,
        name_rows=True,
        note=say.note,
    )
    if not data.classify and outcome is not None:
        raise InvalidInputError(f"--outcome is for kinds of outcomes; {model} predicts a number.")
    write_report(
        fitted,
        data.X,
        data.y,
        out,
        outcome=outcome if data.classify else target,
        cv=folds,
        verbose=not say.as_json,
        title=title,
        model_name=model.name,
        source=named(table),
        date=date or "",
    )
    say(f"Wrote {out}", report_file=str(out))
    say.finish(f"open {out} in a browser")
