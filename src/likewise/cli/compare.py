"""Commands that help to choose: which method to enforce a metric, and how strict a metric one can afford."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli import console as options
from likewise.cli.console import Output, command, then

if TYPE_CHECKING:
    import pandas as pd

    from likewise.cli.table_io import Dialect
    from likewise.cli.workflows import Task

_METHODS = ("additive", "network", "projection", "smoothing", "augmented")


def _measuring(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what both commands share: people and a metric to measure with, folds, and a file for the table.

    The function gets what `likewise.compare` and `likewise.tradeoff` take, and returns what these do, facts about it,
    and a function that, from the table, the target and the metric file, makes the commands to run next.
    """

    @click.argument("table", type=options.FILE)
    @options.target
    @options.task
    @options.metric
    @options.output_range
    @options.id_aside
    @click.option("--folds", type=click.IntRange(2), default=5, show_default=True)
    @click.option("--draws", type=click.IntRange(1), default=100, show_default=True, help="For smoothing.")
    @click.option("--out", type=options.FILE, help="Write the table as CSV.")
    @options.force
    @command
    @options.reads_table
    @functools.wraps(function)
    def wrapped(
        say: Output,
        table: Path,
        target: str,
        task: Task | None,
        metric_file: Path,
        output_range: tuple[float, float] | None,
        id_column: str | None,
        folds: int,
        draws: int,
        out: Path | None,
        force: bool,
        dialect: Dialect,
        **asked: Any,
    ) -> None:
        from likewise.cli.table_io import hinted
        from likewise.cli.workflows import load_dataset
        from likewise.io import check_free

        if out is not None:
            check_free(out, table, metric_file, force=force)
        data, metric = load_dataset(
            table,
            target,
            metric_file,
            dialect=dialect,
            task=task,
            note=say.note,
            output_range=output_range,
            id_column=id_column,
        )
        shared: dict[str, Any] = {"cv": folds, "task": data.kind, "n_draws": draws, "verbose": not say.as_json}
        shared["output_range"] = data.output_range
        found, facts, following = function(data.X, data.y, metric, **asked, **shared)
        say(str(found), **facts)
        _write(say, found.table, out)
        say.finish(*following(hinted(table), target, metric_file))

    return wrapped


@click.command()
@click.option(
    "--method", "methods", multiple=True, type=click.Choice(_METHODS), help="Only these; may be given several times."
)
@_measuring
def compare(X: Any, y: Any, metric: Any, methods: tuple[str, ...], **shared: Any) -> Any:
    """Compare the methods to enforce a metric on people held out, beside a constant and models without a promise.

    Example: likewise compare loans.csv --target approved --metric metric.toml --method additive
    """
    from likewise import compare as fit_all

    result = fit_all(X, y, metric, methods=[*methods, "linear"] if methods else "auto", **shared)
    best = result.best()
    facts = {"best": best.name, "reason": best.reason, "measured_on": result.measured_on}

    def following(table: str, target: str, metric_file: Path) -> list[str]:
        return [_enforcing(table, target, metric_file, best.name, best.estimator)]

    return result, facts, following


@click.command()
@click.option("--method", type=click.Choice(_METHODS), default="additive", show_default=True)
@click.option(
    "--scale", "scales", multiple=True, type=float, help="Factor on all distances; may be given several times."
)
@_measuring
def tradeoff(X: Any, y: Any, metric: Any, method: str, scales: tuple[float, ...], **shared: Any) -> Any:
    """Say what a stricter or looser metric costs: the same scores for distances of other sizes.

    Example: likewise tradeoff loans.csv --target approved --metric metric.toml --scale 0.5 --scale 1 --scale 2
    """
    from likewise import tradeoff as measure_all
    from likewise.io import free_name
    from likewise.selection.cross_validation import SCORES

    curve = measure_all(X, y, metric, list(scales) or [0.25, 0.5, 1, 2, 4], method=method, **shared)
    measure = SCORES[curve.task][0].name
    chosen = curve.table[measure].idxmin() if curve.matching_scale is None else curve.matching_scale

    def following(table: str, target: str, metric_file: Path) -> list[str]:
        scaled = metric_file
        if chosen != 1:
            scaled = free_name(metric_file.with_name(f"{metric_file.stem}-x{chosen:g}{metric_file.suffix}"))
        enforcing = _enforcing(table, target, scaled, method, None)
        return (
            [enforcing]
            if chosen == 1
            else [then("scale", metric_file, "--by", f"{chosen:g}", "--out", scaled), enforcing]
        )

    return curve, {"matching_scale": curve.matching_scale}, following


def _enforcing(table: str, target: str, metric_file: Path, method: str, estimator: Any) -> str:
    """The command that enforces a metric by a method as it was measured."""
    from likewise.io import free_name

    method = {"augmented": "smoothing"}.get(method, method if method in _METHODS else "auto")
    options: list[Any] = ["--target", target, "--metric", metric_file, "--method", method]
    if method == "smoothing":
        parameters = {} if estimator is None else estimator.get_params(deep=False)
        for name, flag in (("n_draws", "--draws"), ("vote", "--vote"), ("augment", "--augment")):
            if parameters.get(name):
                options += [flag, parameters[name]]
    return then("enforce", table, *options, "--out", free_name("model.skops"))


def _write(say: Output, table: pd.DataFrame, out: Path | None) -> None:
    from likewise._writing import atomic_write, write_csv

    say.facts["table"] = table.reset_index().astype(object).where(table.reset_index().notna(), None).to_dict("records")
    if out is not None:
        with atomic_write(out) as temporary:
            write_csv(table, temporary)
        say(f"\nWrote {out}", table_file=str(out))
