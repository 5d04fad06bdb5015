"""The command that explains a model to people who are not engineers: report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli import console as options
from likewise.cli.console import Output, command
from likewise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from likewise.cli.table_io import Dialect


@click.command()
@click.argument("model", type=options.FILE)
@click.argument("table", type=options.FILE)
@options.target
@click.option("--outcome", help="Class whose probability is shown; the last one by default.")
@click.option("--id", "id_column", help="Column that names people; by default the row, counted from 0.")
@click.option("--date", help="Date of the data, shown as given; by default none.")
@click.option("--title", default="How alike people are treated", show_default=True)
@click.option("--folds", type=click.IntRange(2, 10), default=3, show_default=True, help="Of the cross-validation.")
@click.option("--out", type=options.FILE, default=Path("report.html"), show_default=True)
@options.force
@command
@options.reads_table
def report(
    echo: Output,
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

    Pairs are searched with the model itself. Its scores are cross-validated: models of its kind are trained on folds
    of the table, so it may be the table that the model was trained on.

    Example: likewise report model.skops loans.csv --target approved --out report.html
    """
    from likewise._optional import need
    from likewise.cli.dataset import read_dataset
    from likewise.cli.table_io import named
    from likewise.io import check_output_path, load_model

    need("jinja2", "A report")  # before the measuring, which takes longest
    check_output_path(out, model, table, force=force)
    fitted = load_model(model)
    data = read_dataset(
        table,
        target,
        dialect=dialect,
        task="classification" if hasattr(fitted, "classes_") else "regression",
        metric=fitted.guarantee_.metric,
        classes=getattr(fitted, "classes_", None),
        id_column=id_column,
        name_rows=True,
        note=echo.note,
    )
    if not data.is_classification and outcome is not None:
        raise InvalidInputError(f"--outcome is for a classification; {model} is a regression.")
    write_report(
        fitted,
        data.X,
        data.y,
        out,
        outcome=outcome if data.is_classification else target,
        cv=folds,
        verbose=not echo.as_json,
        title=title,
        model_name=model.name,
        source=named(table),
        date=date or "",
    )
    echo(f"Wrote {out}", report_file=str(out))
    echo.finish(f"open {out} in a browser")


def write_report(model: Any, X: Any, y: Any, path: Path, **parameters: Any) -> None:
    """Measure a model on people with known outcomes, and write the page; `parameters` are those of `build_report`."""
    from likewise._writing import atomic_write
    from likewise.report import render
    from likewise.report.build import build_report

    page = render(build_report(model, X, y, **parameters))
    with atomic_write(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
