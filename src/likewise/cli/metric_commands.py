"""Commands on a metric file: show, scale, round, diff, check. What people wrote is kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli import console as options
from likewise.cli.console import Destination, Output, command
from likewise.cli.sources import PeopleSource
from likewise.exceptions import FileError, InvalidInputError

if TYPE_CHECKING:
    from likewise.cli.dataset import Dataset
    from likewise.metric_file import MetricFile
    from likewise.metrics.table import TableMetric

_METRIC = click.argument("metric_file", metavar="METRIC", type=options.FILE)
_MOST_PEOPLE = 5000  # by whom the cost of round numbers is measured
_WRITES = options.writes("Metric file to write.", required=True)


class DefaultGroup(click.Group):
    """A group whose default command runs where no other one is named: `likewise metric TABLE` reveals a metric."""

    default = "reveal"
    command_class = options.SectionedCommand

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Name the default command, unless another one or help is asked for."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Help of the default command, and the others."""
        self.commands[self.default].format_help(ctx, formatter)
        self.format_commands(ctx, formatter)


def in_round_numbers(echo: Output, file: MetricFile, data: Dataset) -> MetricFile:
    """A designed metric in round numbers; prints what they cost, in distances and to scorecards on people held out."""
    from likewise._subsample import evenly_spaced
    from likewise.cli.training import build_estimator, hold_out, score_models

    rounded, some = file.rounded(data.X), evenly_spaced(len(data.y), _MOST_PEOPLE)
    if rounded.metric == file.metric:
        return file
    X, y = data.X.iloc[some], data.y[some]
    a, b = X.iloc[:-1], X.iloc[1:]
    before, after = (float(each.metric(a, b).mean()) for each in (file, rounded))
    text = f"distances are {1 - after / before:.1%} smaller on average" if before else "no distance is above 0"
    parts = hold_out(y, 0.2, classify=data.is_classification)
    if parts is not None:
        train, test = parts
        cards = {
            title: build_estimator("additive", data, metric, None, seed=None, smoothing={}).fit(X.iloc[train], y[train])
            for title, metric in (("before", file.metric), ("after", rounded.metric))
        }
        scores = score_models(cards, X.iloc[test], y[test], y[train], classify=data.is_classification)
        name = "Brier score" if data.is_classification else "RMSE"
        errors = scores.set_index("model")[name]
        cost = float(errors["after"] - errors["before"])
        was = f"{errors['before']:.4g} before"
        text += f", and the {name} of a scorecard, on {len(test):,} people held out of it, {cost:+.2g} ({was})"
        echo.facts["rounding_cost"] = cost
    gone = [name for name in rounded.not_used if name not in file.not_used]
    small = f", without weights of less than half a point in most people ({', '.join(gone)})" if gone else ""
    echo(f"In round numbers{small}: {text}. --exact keeps the weights as they were found.")
    return rounded


@options.new_command()
@_METRIC
@command
def show(echo: Output, metric_file: Path) -> None:
    """Show what a metric file says: weights, blanks, the output range, and where they came from.

    Example: likewise metric show metric.toml
    """
    from likewise.cli.new_metric import echo_point, echo_weights
    from likewise.metric_file import read_metric_file
    from likewise.metrics.zero_weights import ZERO_REASONS

    file = read_metric_file(metric_file)
    echo_weights(echo, file)
    if file.metric.missing:
        known = {name: weight for name, weight in file.metric.missing.items() if weight}
        shown = ", ".join(f"{name} {100 * weight:.3g} points" for name, weight in known.items()) or "0 points"
        echo(f"\nBetween a person with the number and one without: {shown}.", missing=dict(file.metric.missing))
    for name, codes in file.metric.special.items():
        shown = ", ".join(f"{code:g} {100 * weight:.3g} points" for code, weight in codes.items())
        echo(f"\nBetween a person with a number and one with a special code of {name}: {shown}.")
    echo_point(echo, file)
    if file.favourable:
        echo(f"\nFavourable: '{file.favourable}'.", favourable=file.favourable)
    for key, reason in ZERO_REASONS.items():
        names = list(getattr(file, key))
        echo.facts[key] = names
        if names:
            echo(f"{reason.title}: {', '.join(names)}.")
    echo(f"\nSource: {file.origin()}.", source=file.source or "by hand", date=file.date and file.date.isoformat())
    echo(file.how or "The file does not say more about where its weights came from.", how=file.how)
    if file.people:
        apart = f"; {file.kept_apart:.0%} of the table were kept apart from them" if file.kept_apart else ""
        echo(
            f"Made from the rows of {file.people:,} people{apart}. A command that is given the same people says so.",
            people=file.people,
            kept_apart=file.kept_apart,
            rows=file.rows,
        )
    if file.scaled_by != 1:
        echo(f"Scaled by {file.scaled_by:g} since.")
    echo.facts |= {"p": file.metric.p, "scaled_by": file.scaled_by, "as_written": file.as_written}
    echo.finish()


@options.new_command()
@_METRIC
@click.option("--by", "factor", type=float, required=True, help="Factor on all distances: below 1 is stricter.")
@_WRITES
@command
def scale(echo: Output, metric_file: Path, factor: float, to: Destination) -> None:
    """Multiply all distances of a metric file, and keep everything else in it.

    Weights of 0 stay 0, and comments, units, the output range and the list of protected columns stay as they are.

    Example: likewise metric scale metric.toml --by 0.5 --out stricter.toml
    """
    from likewise.metric_edits import scale_text

    if not 0 < factor < float("inf"):
        raise InvalidInputError(f"--by must be a positive number; got {factor:g}.")
    to.check(metric_file)
    text, file = scale_text(metric_file, factor)
    echo(f"All distances of {metric_file} times {factor:.4g}.", factor=factor, scaled_by=file.scaled_by)
    capped = [name for part in (file.metric.categorical, file.metric.missing) for name, w in part.items() if w == 1]
    if factor > 1 and capped:
        echo.note(
            f"Weights of categories and blanks are at most 1, which constrains nothing: {', '.join(map(str, capped))}."
        )
    _write(echo, text, file, to.path)


@options.new_command("round")
@_METRIC
@_WRITES
@command
def round_(echo: Output, metric_file: Path, to: Destination) -> None:
    """Write a metric file in round numbers, such as 1 point = $5,000, and keep everything else in it.

    Distances are never larger, and at least 90% of those before. Numbers of at most two digits are kept.

    Example: likewise metric round metric.toml --out round.toml
    """
    from likewise.metric_edits import round_text

    to.check(metric_file)
    text, file = round_text(metric_file)
    echo(f"The weights of {metric_file} in round numbers.")
    _write(echo, text, file, to.path)


@options.new_command()
@click.argument("before", type=options.FILE)
@click.argument("after", type=options.FILE)
@command
def diff(echo: Output, before: Path, after: Path) -> None:
    """Compare two metric files: their weights, and every line that differs.

    Example: likewise metric diff metric.toml stricter.toml
    """
    import pandas as pd

    from likewise.cli.new_metric import echo_changes
    from likewise.metric_file import read_metric_file
    from likewise.metrics.zero_weights import ZERO_REASONS

    one, other = read_metric_file(before), read_metric_file(after)
    rows: list[tuple[Any, ...]] = []
    weights, others = _by_section(one.metric), _by_section(other.metric)
    for section in weights:
        old, new = weights[section], others[section]
        for name in {**old, **new}:
            a, b = old.get(name), new.get(name)
            if a != b:
                rows.append((section, name, a, b, b / a if a and b is not None else None))
    table = pd.DataFrame(rows, columns=["section", "column", "before", "after", "ratio"])
    if len(table):
        echo.table(table, "weights")
    else:
        echo("The weights are the same.", weights=[])
    for key, title in (
        *(("p", "p"), ("output_range", "Output range"), ("source", "Source"), ("date", "Date")),
        ("favourable", "Favourable"),
        *((key, reason.short.capitalize()) for key, reason in ZERO_REASONS.items()),
    ):
        old, new = (getattr(file.metric if key == "p" else file, key) for file in (one, other))
        if old != new:
            facts = [_plain(each) if key in ("source", "date") else each for each in (old, new)]
            echo(f"{title}: {_plain(old)} before, {_plain(new)} after.", **{key: facts})
    echo("")
    echo_changes(echo, before, after)
    echo.finish()


def _by_section(metric: TableMetric) -> dict[str, Mapping[str, float]]:
    """The weights of each section of a file; those of special codes by column and code."""
    from likewise.metric_file import WEIGHT_SECTIONS

    codes = {f"{name} {code:g}": weight for name, each in metric.special.items() for code, weight in each.items()}
    return {section: getattr(metric, section) for section in WEIGHT_SECTIONS} | {"special": codes}


@options.new_command()
@_METRIC
@click.argument("table", required=False, type=options.FILE)
@command
@options.reads_table
def check(echo: Output, metric_file: Path, table: Path | None, dialect: Any) -> None:
    """Check that a metric file can be used, for the people of a table if one is given.

    Refuses a comment that says something else than the weight beside it.

    Example: likewise metric check metric.toml loans.csv
    """
    from likewise._guarantee_warnings import warn_if_ineffective
    from likewise.auditing.coverage import measure_coverage
    from likewise.cli.dataset import PeopleTable
    from likewise.cli.table_io import named
    from likewise.metric_edits import stale_comments
    from likewise.metric_file import read_metric_file

    file = read_metric_file(metric_file)
    n, n_hidden = len(file.metric.columns), len(file.metric.hidden)
    echo(f"{metric_file} can be read: {n} columns, {n_hidden} of them of weight 0.", n_columns=n, n_hidden=n_hidden)
    if stale := stale_comments(metric_file):
        raise FileError(
            f"{'. '.join(stale)}. Correct the one that is wrong, or take the comment out; or write the weight in "
            'words, as in "1 point = $500".'
        )
    if n == n_hidden:
        raise FileError(f"{metric_file} gives every column the weight 0, so only a constant is within it.")
    if table is not None:
        X = PeopleTable.read(PeopleSource(table, None, dialect), file.metric, echo.note).X
        warn_if_ineffective(*file.metric.read(X))
        echo(f"It covers the {len(X):,} people of {named(table)}.", n_people=len(X))
        options.echo_coverage(echo, measure_coverage(file.metric, X))
    echo.finish()


def _write(echo: Output, text: str, file: MetricFile, out: Path) -> None:
    from likewise.cli.new_metric import echo_weights, write_new

    write_new(echo, text, out)
    echo_weights(echo, file)
    echo(f"\nWrote {out}", metric_file=str(out))
    echo.finish(f"pass it to compare, tradeoff, enforce or audit as --metric {out}")


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value or "not given")
