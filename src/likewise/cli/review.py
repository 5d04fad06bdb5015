"""The command that compares the files of denied and approved people: review, and audit --review."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

from likewise.cli import console as options
from likewise.cli.console import Dialect, Output, command
from likewise.exceptions import InvalidInputError


@dataclass(frozen=True)
class ReviewOptions:
    """Who is compared with whom.

    Attributes
    ----------
    decisions : str or None
        Column with the decisions.
    approved : str or None
        The favourable decision.
    higher, lower, same : tuple of str
        Columns by what qualifies better.
    within : float or None
        Largest distance, in percentage points.
    """

    decisions: str | None
    approved: str | None
    higher: tuple[str, ...]
    lower: tuple[str, ...]
    same: tuple[str, ...]
    within: float | None

    @property
    def directions(self) -> dict[str, str]:
        """Columns with "higher", "lower" or "same"."""
        named = (("higher", self.higher), ("lower", self.lower), ("same", self.same))
        return {name: direction for direction, names in named for name in names}


def reviews(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a review, passed to the function as one `review`."""

    @click.option("--decisions", help="Column with the decisions, of two values.")
    @click.option("--approved", help="The favourable decision; by default the one that sorts last.")
    @click.option("--higher", multiple=True, help="Column of which more is better; may be given several times.")
    @click.option("--lower", multiple=True, help="Column of which less is better; may be given several times.")
    @click.option(
        "--same", multiple=True, help="Column in which only equal values compare; may be given several times."
    )
    @click.option(
        "--within", type=float, help="Largest distance of a comparator, in percentage points; needs --metric."
    )
    @functools.wraps(function)
    def wrapped(*args: Any, **given: Any) -> Any:
        chosen = ReviewOptions(**{field.name: given.pop(field.name) for field in fields(ReviewOptions)})
        return function(*args, review=chosen, **given)

    return wrapped


@click.command("review")
@click.argument("table", type=options.TABLE)
@reviews
@click.option("--metric", "metric_file", type=options.FILE, help="Metric file, to order comparators and for --within.")
@options.id_column
@click.option("--worst", type=click.IntRange(1), default=10, show_default=True, help="How many files to list.")
@click.option("--out", type=options.FILE, help="Write all files with their comparators as CSV.")
@options.force
@command
@options.reads_table
def review_command(echo: Output, **given: Any) -> None:
    """Find denied people for whom an approved person is no better qualified; the same as audit --review.

    Example: likewise review loans.csv --decisions approved --higher income --lower debt --id id --out review.csv
    """
    compare_files(echo, **given)


def compare_files(
    echo: Output,
    table: Path,
    review: ReviewOptions,
    metric_file: Path | None,
    id_column: str | None,
    worst: int,
    out: Path | None,
    force: bool,
    dialect: Dialect,
) -> None:
    """Review the files of a table, and print what was found."""
    from likewise import read_metric, review_files
    from likewise.cli.column_kinds import infer_kinds
    from likewise.cli.dataset import PeopleTable
    from likewise.cli.table_io import check_columns, read_table
    from likewise.io import check_output_path

    if out is not None:
        check_output_path(out, table, metric_file, force=force)
    decisions, within, directions = review.decisions, review.within, review.directions
    if decisions is None:
        raise InvalidInputError("Give --decisions, the column with the decisions.")
    if within is not None and metric_file is None:
        raise InvalidInputError("--within needs --metric: a distance is measured by a metric.")
    if not directions and within is None:
        raise InvalidInputError("Give --higher, --lower or --same, or --metric and --within.")
    metric: Any = None if metric_file is None else read_metric(metric_file)
    ids = [] if id_column is None else [id_column]
    if metric is None:
        whole = read_table(table, dialect, echo.note, as_text=[decisions, *review.same, *ids])
        check_columns(whole, (decisions, *directions, *ids), table)
        people, _ = infer_kinds(whole.drop(columns=[decisions, *ids]), dialect, echo.note, categorical=review.same)
    else:
        texts = [decisions, *review.same]
        read = PeopleTable.read(
            table, metric, dialect, echo.note, id_column=id_column, others=[decisions], as_text=texts
        )
        whole, people = read.whole, read.X
        check_columns(whole, directions, table)
    with echo.busy("Comparing files"):
        found = review_files(
            people,
            whole[decisions],
            approved=review.approved,
            better=directions or None,
            metric=metric,
            threshold=None if within is None else within / 100,
        )
    files, pairs = found.files, found.pairs
    if id_column is not None:
        named_by = whole[id_column].to_numpy()
        files, pairs = (
            part.assign(row=named_by[part["row"]], comparator=named_by[part["comparator"]]) for part in (files, pairs)
        )
    echo(
        f"{found.headline}.",
        n_denied=found.n_denied,
        n_approved=found.n_approved,
        n_files=len(found.files),
        n_pairs=found.n_pairs,
    )
    if len(files):
        who = "row and comparator count rows of the table from 0" if id_column is None else f"by {id_column}"
        echo(f"\nThe files with most comparators ({who}), each with the closest:")
        echo.table(files.head(worst), "files")
    if out is not None:
        echo.csv(pairs, out, "review_file")
    echo.finish()
