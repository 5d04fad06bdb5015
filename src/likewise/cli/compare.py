"""Commands that help to choose: which method enforces a metric best (compare), and what strictness costs (tradeoff)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli import console as options
from likewise.cli.console import Destination, Output, command, echo_unseen, next_command
from likewise.cli.sources import DatasetSource, reads_dataset

if TYPE_CHECKING:
    import pandas as pd


_METHODS = (*options.METHODS, "augmented")
_DRAWS = (
    "Budget of smoothing: evaluations of its model per person, for at most 1,000 people of each fold. More would lower "
    "its epsilon."
)


def _cross_validates(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add what both commands share: a dataset and a metric, folds, and a file for the table.

    The function gets the parameters of `likewise.compare` and `likewise.tradeoff`. It returns their result, facts about
    it, and a function from the `DatasetSource` to the commands to run next.
    """

    @reads_dataset(options.FILE)
    @click.option("--folds", type=click.IntRange(2), default=5, show_default=True)
    @click.option("--draws", type=click.IntRange(1), default=100, show_default=True, help=_DRAWS)
    @options.writes("Write the table as CSV.")
    @functools.wraps(function)
    def wrapped(
        echo: Output, source: DatasetSource, folds: int, draws: int, to: Destination, **parameters: Any
    ) -> None:
        to.check(source.table, source.metric_file)
        data, metric = source.load(echo.note)
        cv = data.unseen.folds(data.y, folds, classify=data.is_classification)
        parameters |= {"cv": cv, "task": data.task, "n_draws": draws, "output_range": data.output_range}
        parameters |= {"made_by": data.unseen.made_by}
        result, facts, next_commands = function(data.X, data.y, metric, verbose=not echo.as_json, **parameters)
        echo(str(replace(result, caveat="")), **facts)
        echo_unseen(echo, data.unseen)
        _write_table(echo, result.table, to.out)
        echo.finish(*next_commands(source))

    return command(wrapped)


@options.new_command()
@click.option(
    "--method", "methods", multiple=True, type=click.Choice(_METHODS), help="Only these; may be given several times."
)
@_cross_validates
def compare(X: Any, y: Any, metric: Any, methods: tuple[str, ...], **parameters: Any) -> Any:
    """Compare the methods that enforce a metric, a constant and the unconstrained model on held-out people.

    A metric that was designed or revealed on these people is made again in each fold, without those who are measured.

    Example: likewise compare loans.csv --target approved --metric metric.toml --method additive
    """
    from likewise import compare as cross_validate_all

    result = cross_validate_all(X, y, metric, methods=[*methods] or "auto", **parameters)
    best = result.best()
    facts = {"best": best.name, "reason": best.reason, "cost": result.cost, "measured_on": result.measured_on}

    def next_commands(source: DatasetSource) -> list[str]:
        return [_enforce_command(source, source.metric_file, best.name, best.estimator)]

    return result, facts, next_commands


@options.new_command()
@click.option("--method", type=click.Choice(_METHODS), default="additive", show_default=True)
@click.option(
    "--scale",
    "scales",
    multiple=True,
    type=float,
    help="Factor on distances (weights of categories are capped at 1); may be given several times.",
)
@_cross_validates
def tradeoff(X: Any, y: Any, metric: Any, method: str, scales: tuple[float, ...], **parameters: Any) -> Any:
    """Measure what a stricter or looser metric costs: the scores of one method under scaled metrics.

    A metric that was designed or revealed on these people is made again in each fold, without those who are measured.

    Example: likewise tradeoff loans.csv --target approved --metric metric.toml --scale 0.5 --scale 1 --scale 2
    """
    from likewise import tradeoff as measure_scales
    from likewise.io import unused_path
    from likewise.selection.cross_validation import SCORES

    curve = measure_scales(X, y, metric, list(scales) or [0.25, 0.5, 1, 2, 4], method=method, **parameters)
    best_scale = curve.table[SCORES[curve.task][0].name].idxmin()
    scale = best_scale if curve.matching_scale is None else curve.matching_scale

    def next_commands(source: DatasetSource) -> list[str]:
        file = source.metric_file
        if scale == 1:
            return [_enforce_command(source, file, method)]
        scaled = unused_path(file.with_name(f"{file.stem}-x{scale:g}{file.suffix}"))
        scaling = next_command("metric", "scale", file, "--by", f"{scale:g}", "--out", scaled)
        return [scaling, _enforce_command(source, scaled, method)]

    return curve, {"matching_scale": curve.matching_scale}, next_commands


def _enforce_command(source: DatasetSource, metric_file: Path, method: str, estimator: Any = None) -> str:
    """The command that trains a model by a method as it was measured."""
    from likewise.cli.table_io import hinted
    from likewise.io import unused_path

    method = {"augmented": "smoothing"}.get(method, method if method in _METHODS else "auto")
    words: list[Any] = ["--target", source.target, "--metric", metric_file, "--method", method]
    if method == "smoothing":
        parameters = {} if estimator is None else estimator.get_params(deep=False)
        for name, flag in (("n_draws", "--draws"), ("vote", "--vote"), ("augment", "--augment")):
            if parameters.get(name):
                words += [flag, parameters[name]]
    return next_command("enforce", hinted(source.table), *words, "--out", unused_path("model.skops"))


def _write_table(echo: Output, table: pd.DataFrame, out: Path | None) -> None:
    rows = table.reset_index()
    echo.facts["table"] = rows.astype(object).where(rows.notna(), None).to_dict("records")
    if out is not None:
        echo.csv(table, out, "table_file", index=True)
