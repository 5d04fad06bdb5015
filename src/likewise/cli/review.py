"""The command that compares the files of denied and approved people: review."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise._validation import counted, list_words
from likewise.cli import console as options
from likewise.cli.console import Destination, Output, as_one, command, facts_of, name_people, rows_are
from likewise.cli.sources import PeopleSource
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
        Largest distance, in percentage points, or in the unit of other scores.
    group_column : str or None
        Column of groups, which are counted.
    """

    decisions: str | None
    approved: str | None
    higher: tuple[str, ...]
    lower: tuple[str, ...]
    same: tuple[str, ...]
    within: float | None
    group_column: str | None = None

    @property
    def directions(self) -> dict[str, str]:
        """Columns with "higher", "lower" or "same"."""
        named = (("higher", self.higher), ("lower", self.lower), ("same", self.same))
        return {name: direction for direction, names in named for name in names}

    @property
    def is_given(self) -> bool:
        """Whether a review was asked for."""
        return self != ReviewOptions(None, None, (), (), (), None)

    def check(self) -> None:
        """Raise if there is nothing to compare, or nothing to compare by."""
        if self.decisions is None:
            raise InvalidInputError("Give --decisions, the column with the decisions.")
        if not self.directions and self.within is None:
            raise InvalidInputError("Give --higher, --lower or --same, or --metric and --within.")


reviews = as_one(
    ReviewOptions,
    "review",
    click.option("--decisions", help="Column with the decisions, of two values."),
    click.option("--approved", help="The favourable decision; needed unless a known word says it."),
    click.option("--higher", multiple=True, help="Column of which more is better; may be given several times."),
    click.option("--lower", multiple=True, help="Column of which less is better; may be given several times."),
    click.option("--same", multiple=True, help="Column in which only equals compare; may be given several times."),
    click.option(
        "--within",
        type=float,
        help="Largest distance of a comparator: percentage points, or in the unit of other scores; needs --metric.",
    ),
    click.option(
        "--groups",
        "group_column",
        help="Column of groups, such as sex: also counts denied women beside approved men.",
    ),
)
"""Add the options of a review, passed to the function as one `review`."""


@options.new_command("review")
@reviews
@click.option("--metric", "metric_file", type=options.FILE, help="Metric file, to order comparators and for --within.")
@click.option("--worst", type=click.IntRange(1), default=10, show_default=True, help="How many files to list.")
@click.option("--comparators", type=click.IntRange(1), help="Most comparators to write for each file; by default all.")
@options.writes("Write all files with their comparators as CSV.")
@command
@as_one(PeopleSource, "source", click.argument("table", type=options.TABLE), options.id_column, options.reads_table)
def review_command(
    echo: Output,
    source: PeopleSource,
    review: ReviewOptions,
    metric_file: Path | None,
    worst: int,
    comparators: int | None,
    to: Destination,
) -> None:
    """Find denied people for whom an approved person is no better qualified.

    Example: likewise review loans.csv --decisions approved --higher income --lower debt --id id --out review.csv
    """
    from likewise.metric_file import read_metric_file
    from likewise.pairs.model_outputs import OutputLabels

    to.check(source.table, metric_file)
    if review.within is not None and metric_file is None:
        raise InvalidInputError("--within needs --metric: a distance is measured by a metric.")
    file, id_column = None if metric_file is None else read_metric_file(metric_file), source.id_column
    metric, limits = (None, None) if file is None else (file.metric, file.output_range)
    found, ids = read_review(echo, source, review, metric, limits, n_comparators=comparators if to.out else 1)
    labels = OutputLabels.of_range(limits)
    files, pairs = (
        labels.in_units(part, "distance") if metric is not None else part.drop(columns="distance")
        for part in (found.files, found.pairs)
    )
    echo(
        f"{found.headline}.\n{found.coverage}",
        **facts_of(found, "n_denied", "n_approved", "n_pairs", "recognised", "coverage"),
        n_files=len(found.files),
        favourable=str(found.decisions[1]),
        unfavourable=str(found.decisions[0]),
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
        if metric is not None:
            echo("Of distance, 0.01 is one percentage point." if labels.are_probabilities else labels.statement)
    if to.out is not None:
        written = _by_name(pairs, ids, id_column).assign(
            decision=found.decisions[0], comparator_decision=found.decisions[1]
        )
        echo.csv(written, to.out, "review_file")
        echo(f"It has {len(pairs):,} of {counted(found.n_pairs, 'pair')}.", n_written=len(pairs))
    echo.finish()


def _by_name(found: pd.DataFrame, ids: Any, id_column: str | None) -> pd.DataFrame:
    """With names for positions; ids under the name of their column unless that is taken."""
    found = found.assign(row=name_people(found["row"], ids), comparator=name_people(found["comparator"], ids))
    return found if id_column is None or id_column in found else found.rename(columns={"row": id_column})


def read_review(
    echo: Output,
    source: PeopleSource,
    review: ReviewOptions,
    metric: Any,
    output_range: tuple[float, float] | None,
    *,
    ignore: Sequence[str] = (),
    n_comparators: int | None = 5,
) -> tuple[FileReview, Any]:
    """The review of the files of a table, under its options, and the ids of its rows.

    `output_range` is that of the metric; columns to `ignore` are no people's, such as scores.
    """
    from likewise import review_files
    from likewise.cli.column_kinds import with_blanks
    from likewise.cli.dataset import PeopleTable
    from likewise.cli.table_io import check_columns
    from likewise.pairs.model_outputs import OutputLabels

    review.check()
    decisions, directions, group_column = str(review.decisions), review.directions, review.group_column
    groups = [] if group_column is None else [group_column]
    read = PeopleTable.read(
        replace(source, categorical=review.same),
        metric,
        echo.note,
        others=[decisions, *ignore, *(name for name in groups if metric is not None and name not in metric.columns)],
        as_text=[decisions, *review.same, *groups],
    )
    check_columns(read.whole, (*directions, *groups), source.table)
    unknown = [name for name in directions if metric is not None and name not in metric.columns]
    if unknown:
        raise InvalidInputError(
            f"The metric must name the columns by which files are compared; it has no {unknown[0]!r}. Give it a "
            "weight, 0 if the distance must not count it."
        )
    with echo.busy("Comparing files"):
        found = review_files(
            read.X,
            with_blanks(read.whole[decisions]),
            approved=review.approved,
            better=directions or None,
            metric=metric,
            threshold=None if review.within is None else review.within / OutputLabels.of_range(output_range).factor,
            groups=None if group_column is None else with_blanks(read.whole[group_column]),
            n_comparators=n_comparators,
            output_range=output_range,
        )
    return found, None if read.ids is None else read.ids.to_numpy()
