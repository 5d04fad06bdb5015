"""Commands that help to choose: which way to enforce a metric, and how strict a metric one can afford."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from likewise.app import options
from likewise.app.console import Say, command

if TYPE_CHECKING:
    import pandas as pd

    from likewise.app.commands import Task
    from likewise.app.tables import Dialect

_BY = ("additive", "network", "projection", "smoothing", "augmented")
_folds = click.option("--folds", type=click.IntRange(2), default=5, show_default=True)
_draws = click.option("--draws", type=click.IntRange(1), default=100, show_default=True, help="For smoothing.")
_out = click.option("--out", type=options.FILE, help="Write the table as CSV.")


@click.command()
@click.argument("table", type=options.FILE)
@options.target
@options.task
@options.metric
@click.option("--way", "ways", multiple=True, type=click.Choice(_BY), help="Only these; may be given several times.")
@_folds
@_draws
@_out
@options.force
@command
@options.reads_table
def compare(
    say: Say,
    table: Path,
    target: str,
    task: Task | None,
    metric_file: Path,
    ways: tuple[str, ...],
    folds: int,
    draws: int,
    out: Path | None,
    force: bool,
    dialect: Dialect,
) -> None:
    """Compare the ways to enforce a metric on people held out, beside a constant and models without a promise.

    Example: likewise compare loans.csv --target approved --metric metric.toml --way additive
    """
    from likewise import compare as fit_all
    from likewise.app.commands import learnable_under
    from likewise.app.files import check_free
    from likewise.app.tables import hinted

    if out is not None:
        check_free(out, table, metric_file, force=force)
    data, chosen = learnable_under(table, target, metric_file, dialect=dialect, task=task, note=say.note)
    result = fit_all(
        data.X,
        data.y,
        chosen,
        ways=[*ways, "linear"] if ways else "auto",
        cv=folds,
        task=data.kind,
        n_draws=draws,
        verbose=not say.as_json,
    )
    best = result.best()
    say(str(result), best=best.name, reason=best.reason, measured_on=result.measured_on)
    _write(say, result.table, out)
    by = best.name if best.name in _BY[:-1] else "auto"
    say.finish(f"likewise enforce {hinted(table)} --target {target} --metric {metric_file} --by {by}")


@click.command()
@click.argument("table", type=options.FILE)
@options.target
@options.task
@options.metric
@click.option("--by", type=click.Choice(_BY), default="additive", show_default=True)
@click.option(
    "--scale", "scales", multiple=True, type=float, help="Factor on all distances; may be given several times."
)
@_folds
@_draws
@_out
@options.force
@command
@options.reads_table
def price(
    say: Say,
    table: Path,
    target: str,
    task: Task | None,
    metric_file: Path,
    by: str,
    scales: tuple[float, ...],
    folds: int,
    draws: int,
    out: Path | None,
    force: bool,
    dialect: Dialect,
) -> None:
    """Say what a stricter or looser metric costs: the same scores for distances of other sizes.

    Example: likewise price loans.csv --target approved --metric metric.toml --scale 0.5 --scale 1 --scale 2
    """
    from likewise import price as measure_all
    from likewise.app.commands import learnable_under
    from likewise.app.files import check_free

    if out is not None:
        check_free(out, table, metric_file, force=force)
    data, chosen = learnable_under(table, target, metric_file, dialect=dialect, task=task, note=say.note)
    curve = measure_all(
        data.X,
        data.y,
        chosen,
        list(scales) or [0.25, 0.5, 1, 2, 4],
        way=by,
        cv=folds,
        task=data.kind,
        n_draws=draws,
        verbose=not say.as_json,
    )
    say(str(curve), meets=curve.meets)
    _write(say, curve.table, out)
    say.finish(f"likewise metric {table} --target {target} --scale FACTOR --out {metric_file} --force")


def _write(say: Say, table: pd.DataFrame, out: Path | None) -> None:
    from likewise.app.files import atomic_write

    say.facts["table"] = table.reset_index().astype(object).where(table.reset_index().notna(), None).to_dict("records")
    if out is not None:
        with atomic_write(out) as temporary:
            table.to_csv(temporary)
        say(f"\nWrote {out}", table_file=str(out))
