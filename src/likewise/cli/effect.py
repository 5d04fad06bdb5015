"""The command that bounds how much columns can matter: effect."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.cli import console as options
from likewise.cli.console import Output, command
from likewise.cli.models import check_taken, file_of, load_any_model, read_people, reads_model

if TYPE_CHECKING:
    from likewise.auditing.effect import Effect
    from likewise.cli.table_io import Dialect


@click.command()
@click.argument("table", type=options.TABLE)
@reads_model(required=True)
@click.option("--column", "columns", multiple=True, required=True, help="Column to exchange; repeat it for several.")
@click.option("--metric", "metric_file", type=options.FILE, help="Metric file, for its domain and the smallest excess.")
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), default=60.0, show_default=True, help="Time for the proof."
)
@click.option("--boxes", type=click.IntRange(1), help="Boxes to bound at most, in place of a time.")
@click.option(
    "--max-effect",
    type=click.FloatRange(0, 100),
    help="Exit 1 unless the effect is proven to be at most this many percentage points.",
)
@click.option("--out", type=options.FILE, help="Write what exchanging the column does to each person as CSV.")
@options.force
@command
@options.reads_table
def effect(
    echo: Output,
    table: Path,
    model_name: str,
    id_column: str | None,
    columns: tuple[str, ...],
    metric_file: Path | None,
    seconds: float,
    boxes: int | None,
    categorical: tuple[str, ...],
    drop: tuple[str, ...],
    max_effect: float | None,
    out: Path | None,
    force: bool,
    dialect: Dialect,
) -> None:
    """Find how much a column can matter: for these people, for the worst pair there can be, and at most.

    Example: likewise effect loans.csv --model model.skops --column sex --out effect.csv
    """
    import sys

    from likewise import effect as find_effect
    from likewise._writing import atomic_write, write_csv
    from likewise.io import check_output_path
    from likewise.metric_file import read_metric_file

    if out is not None:
        check_output_path(out, table, metric_file, file_of(model_name), force=force)
    file = None if metric_file is None else read_metric_file(metric_file)
    model = load_any_model(model_name)
    X, ids = read_people(echo, table, dialect, model, categorical=categorical, id_column=id_column, drop=drop)
    check_taken("--column", columns, X)
    with echo.busy("Bounding"):
        found = find_effect(
            model,
            X,
            list(columns),
            None if file is None else file.metric,
            domain=None if file is None else file.domain_for(X),
            max_seconds=None if boxes is not None else seconds,
            max_boxes=boxes,
        )
    _tell(echo, found)
    if out is not None:
        with atomic_write(out) as temporary:
            people = found.on_people if ids is None else found.on_people.rename(columns={"row": id_column})
            write_csv(people if ids is None else people.assign(**{str(id_column): ids}), temporary, index=False)
        echo(f"\nWrote {out}", people_file=str(out))
    passed = max_effect is None or (found.proven is not None and 100 * found.proven <= max_effect)
    if max_effect is not None:
        echo(
            f"\nThe gate, at most {max_effect:g} points for anybody in the domain, {'passed' if passed else 'failed'}.",
            gate=max_effect / 100,
            passed=passed,
        )
    echo.finish()
    if not passed:
        sys.exit(1)


def points(share: float) -> str:
    """A share of 1 in percentage points."""
    return f"{100 * share:.4g}"


def _tell(echo: Output, found: Effect) -> None:
    """The answers in the order of an examination: people, the worst pair, the proof."""
    from likewise.auditing.effect import rounded_up

    names = " and ".join(map(str, found.columns))
    largest = float(found.on_people["effect"].max())
    low, high = found.mean_interval
    echo(
        f"For these {len(found.on_people):,} people: exchanging {names} alone changes the output by "
        f"{points(found.mean)} points on average ({points(low)} to {points(high)} in the population, at 95%), and by "
        f"{points(largest)} at most.",
        n_people=len(found.on_people),
        mean=found.mean,
        mean_interval=list(found.mean_interval),
        largest_on_people=largest,
    )
    if len(found.directions) and largest > 0:
        echo("\nWho gains:")
        echo.table(found.directions, "directions")
    if len(found.groups) and largest > 0:
        echo("\nBy the people's own value:")
        echo.table(found.groups, "groups")
    pairs = f"no two people of the domain who differ in {names} alone"
    if found.pair is None:
        worst = f"No pair was found: {pairs} were found to get different outputs."
    else:
        worst = f"The worst pair found in the domain differs by {points(found.found)} points:"
    echo(f"\n{worst}", found=found.found)
    echo.pair(found.pair)
    if found.proves_none:
        text = f"Proven: {pairs} get different outputs, but for rounding ({found.how})."
    elif found.proven is not None:
        more = "" if found.proven - found.found <= found.rounding else f" than {rounded_up(found.proven, 100)} points"
        text = f"Proven: {pairs} differ by more{more} ({found.how})."
        if not found.meets:
            text += " Between the two, the answer is open: more --seconds may close it."
    else:
        text = f"No upper bound is proven: {found.how}."
        if found.pair is None:
            text += " Finding no pair does not prove that there is none."
    echo(f"\n{text}", proven=found.proven, meets=found.meets, how=found.how, n_boxes=found.n_boxes)
    if found.excess is not None:
        worst = "no pair was found whose outputs exceed the metric"
        if found.excess.pair is not None:
            worst = f"outputs exceed the metric by {points(found.excess.found)} points in the worst pair found"
        limit = f"no upper bound is proven: {found.excess.how}"
        if found.excess.proven is not None and found.excess.proven <= found.rounding:
            limit = "proven: none does, but for rounding"
        elif found.excess.proven is not None:
            limit = f"proven: by at most {rounded_up(found.excess.proven, 100)} points"
        echo(
            f"\nOver all pairs of the domain, {worst}; {limit}.",
            excess_found=found.excess.found,
            excess_proven=found.excess.proven,
        )
    echo("\nThe domain, what each column can hold:")
    echo.table(found.domain.describe(), "domain")
