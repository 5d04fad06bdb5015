"""The command that compares the files of denied and approved people: review, and audit --review."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise._validation import counted, list_words
from likewise.cli import console as options
from likewise.cli.console import Dialect, Output, command, name_people, rows_are
from likewise.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

    from likewise.auditing.file_review import FileReview


@dataclass(frozen=True)
class ReviewOptions:
    """Who is compared with whom.

    Attributes
    ----------
    decisions : str or None
        Column with the decisions.
    approved : str or None
        The favourable decision; None recognises its word.
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

    @property
    def is_given(self) -> bool:
        """Whether a review was asked for."""
        return bool(self.decisions is not None or self.directions or self.within is not None)

    def check(self) -> None:
        """Raise if there is nothing to compare, or nothing to compare by."""
        if self.decisions is None:
            raise InvalidInputError("Give --decisions, the column with the decisions.")
        if not self.directions and self.within is None:
            raise InvalidInputError("Give --higher, --lower or --same, or --metric and --within.")


def reviews(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a review, passed to the function as one `review`."""

    @click.option("--decisions", help="Column with the decisions, of two values.")
    @click.option("--approved", help="The favourable decision; needed unless a known word says it.")
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
@click.option("--groups", help="Column of groups, such as sex: also counts denied women beside approved men.")
@click.option("--worst", type=click.IntRange(1), default=10, show_default=True, help="How many files to list.")
@click.option("--comparators", type=click.IntRange(1), help="Most comparators to write for each file; by default all.")
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
    groups: str | None = None,
    comparators: int | None = None,
) -> None:
    """Review the files of a table, and print what was found."""
    from likewise import read_metric
    from likewise.io import check_output_path

    if out is not None:
        check_output_path(out, table, metric_file, force=force)
    if review.within is not None and metric_file is None:
        raise InvalidInputError("--within needs --metric: a distance is measured by a metric.")
    metric = None if metric_file is None else read_metric(metric_file)
    found, ids = read_review(
        echo, table, review, metric, id_column, dialect, groups=groups, n_comparators=comparators if out else 1
    )
    files, pairs = (
        part if metric is not None else part.drop(columns="distance") for part in (found.files, found.pairs)
    )
    echo(
        f"{found.headline}.\n{found.coverage}",
        n_denied=found.n_denied,
        n_approved=found.n_approved,
        n_files=len(found.files),
        n_pairs=found.n_pairs,
        favourable=str(found.decisions[1]),
        unfavourable=str(found.decisions[0]),
        recognised=found.recognised,
        coverage=found.coverage,
    )
    alone = found.blanks[found.blanks["decision"].eq(found.decisions[0]) & found.blanks["n_comparators"].eq(0)]
    if len(alone):
        who = name_people(alone["row"].head(worst), ids).tolist()
        more = [f"{len(alone) - worst:,} more"] * (len(alone) > worst)
        echo(f"With a blank and no comparator: {id_column or 'row'} {list_words(who + more)}.")
    blanks = found.blanks.assign(row=name_people(found.blanks["row"], ids))
    echo.facts["blanks"] = json.loads(blanks.to_json(orient="records"))
    if found.groups is not None:
        echo("\nDenied people of one group with a comparator among the approved people of another:")
        echo.table(found.groups, "groups")
    if len(files):
        which = "the first of the table" if metric is None else "the closest"
        shown = f"The {worst:,} of {len(files):,} files with most comparators"
        if len(files) <= worst:
            shown = f"All {counted(len(files), 'file')} with a comparator"
        echo(f"\n{shown} ({rows_are(id_column)}), with {which}:")
        echo.table(_by_name(files.head(worst), ids, id_column), "files")
    if out is not None:
        written = _by_name(pairs, ids, id_column).assign(
            decision=found.decisions[0], comparator_decision=found.decisions[1]
        )
        echo.csv(written, out, "review_file")
        echo(f"It has {len(pairs):,} of {counted(found.n_pairs, 'pair')}.", n_written=len(pairs))
    echo.finish()


def _by_name(found: pd.DataFrame, ids: Any, id_column: str | None) -> pd.DataFrame:
    """With names for positions; ids under the name of their column unless that is taken."""
    found = found.assign(row=name_people(found["row"], ids), comparator=name_people(found["comparator"], ids))
    return found if id_column is None or id_column in found else found.rename(columns={"row": id_column})


def read_review(
    echo: Output,
    table: Path,
    review: ReviewOptions,
    metric: Any,
    id_column: str | None,
    dialect: Dialect,
    ignore: Sequence[str] = (),
    groups: str | None = None,
    n_comparators: int | None = 5,
) -> tuple[FileReview, Any]:
    """The review of the files of a table, under its options, and the ids of its rows."""
    from likewise import review_files
    from likewise.cli.column_kinds import infer_kinds, with_blanks
    from likewise.cli.dataset import PeopleTable
    from likewise.cli.table_io import check_columns, read_table

    review.check()
    decisions, within, directions = str(review.decisions), review.within, review.directions
    by = [] if groups is None else [groups]
    texts = [decisions, *review.same, *by]
    if metric is None:
        ids = [] if id_column is None else [id_column]
        whole = read_table(table, dialect, echo.note, as_text=[*texts, *ids], padded=True)
        check_columns(whole, (decisions, *directions, *ids, *by), table)
        people, _ = infer_kinds(whole.drop(columns=[decisions, *ids]), dialect, echo.note, categorical=review.same)
    else:
        others = [decisions, *ignore, *(name for name in by if name not in metric.columns)]
        read = PeopleTable.read(table, metric, dialect, echo.note, id_column=id_column, others=others, as_text=texts)
        whole, people = read.whole, read.X
        check_columns(whole, directions, table)
        unknown = [name for name in directions if name not in metric.columns]
        if unknown:
            raise InvalidInputError(
                f"The metric must name the columns by which files are compared; it has no {unknown[0]!r}. Give it a "
                "weight, 0 if the distance must not count it."
            )
    with echo.busy("Comparing files"):
        found = review_files(
            people,
            with_blanks(whole[decisions]),
            approved=review.approved,
            better=directions or None,
            metric=metric,
            threshold=None if within is None else within / 100,
            groups=None if groups is None else with_blanks(whole[groups]),
            n_comparators=n_comparators,
        )
    return found, None if id_column is None else whole[id_column].to_numpy()
