"""The command that designs a metric together with its scorecard: design."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from likewise.cli import console as options
from likewise.cli.console import Destination, Output, command, next_command
from likewise.cli.sources import DesignSource, makes_metric
from likewise.exceptions import FileError

if TYPE_CHECKING:
    from likewise.design.frontier import FrontierPoint, MetricFrontier
    from likewise.design.references import Reference
    from likewise.metric_file import MetricFile

# Everything heavy is imported inside the commands: `likewise --help` must answer at once.

CHOSEN = "chosen"


@options.new_command()
@click.option(
    "--protected",
    multiple=True,
    help="Columns that must not matter, separated by commas; may be given several times. '' for none.",
)
@click.option(
    "--mean-distance",
    type=float,
    help="Of the metric to write; by default the strictest within one standard error of the smallest loss.",
)
@click.option("--points", type=click.IntRange(2), default=10, show_default=True, help="Metrics to design.")
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True)
@click.option(
    "--holdout",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    help="Share of the people to keep apart: later commands find them again, and measure costs on them.",
)
@click.option("--exact", is_flag=True, help="Keep weights as they were found, not in round numbers.")
@click.option("--report", "with_report", is_flag=True, help="Write a page on the scorecard too: --out, but .html.")
@options.writes(default="metric.toml")
@command
@makes_metric(needs_target=True)
def design(
    echo: Output,
    source: DesignSource,
    protected: tuple[str, ...],
    mean_distance: float | None,
    points: int,
    folds: int,
    holdout: float,
    exact: bool,
    with_report: bool,
    to: Destination,
) -> None:
    """Design a metric together with the scorecard within it.

    Metrics from strict to loose are designed, and each is measured on held-out people, beside a constant, the linear
    model's own metric and a model without a guarantee. One of them is written; it is a proposal to discuss and edit.

    Commands that measure costs on these people afterwards make the metric again without those whom they measure. Of a
    metric that was edited since, they understate costs. With --holdout 0.25, a quarter of the people are kept apart by
    their rows: compare, tradeoff and enforce find them by the metric file and measure on them alone.

    Without --protected, a person at a terminal is asked which columns are protected by law.

    With --force, the protected columns, units, comments, and the order, groups and distances of categories of the
    replaced file are kept; the old file is kept as a .bak, and the lines that changed are printed.

    Example: likewise design loans.csv --target approved --protected race,sex --out metric.toml
    """
    from likewise import design_metric
    from likewise._optional import need
    from likewise.cli.category_shapes import GivenShapes
    from likewise.cli.metric_commands import in_round_numbers
    from likewise.cli.new_metric import Replaced, count_units, echo_distances, echo_weights, write_made
    from likewise.cli.report import write_report
    from likewise.cli.seen_people import Unseen, check_apart, kept_apart, origin_of
    from likewise.cli.table_io import hinted, named
    from likewise.inspection.baselines import categorical_columns
    from likewise.io import unused_path

    out = to.path
    page = out.with_suffix(".html") if with_report else None
    to.check(source.table)
    if page is not None:
        need("jinja2", "A report")  # before the design, which takes longest
        replace(to, out=page).check(source.table, out)
    before = Replaced.at(out)
    data = source.load(echo)
    shapes = GivenShapes.of(None if before.file is None else before.file.metric, data.X, {})
    X = source.described(echo, data.X, shapes, (*protected, *before.protected))
    data = replace(data, X=X)
    kept = [name for name in before.protected if name in X.columns]
    unseen = kept_apart(X, holdout)
    if holdout:
        check_apart(data.y, unseen, holdout, classify=data.is_classification)
    seen = replace(data, X=X[~unseen], y=data.y[~unseen])
    hidden, asked = _protected_columns(echo, list(map(str, X.columns)), protected, kept)
    source.note_telling(echo, seen, hidden, out)
    frontier = design_metric(
        source.without_codes(seen.X),
        seen.y,
        protected=hidden,
        output_range=data.output_range,
        categorical=categorical_columns(X),
        groups=shapes.groups,
        distances=shapes.distances,
        task=data.task,
        n_points=points,
        cv=folds,
        verbose=not echo.as_json,
    )
    point = frontier.best() if mean_distance is None else frontier.at(mean_distance=mean_distance)
    designed: Any = point.metric.with_params(order=shapes.order)
    metric = source.with_codes(designed)
    kept_units = before.units_in(echo, metric, [name for name in kept if name in hidden])
    units = {**count_units(X[list(metric.numeric)]), **data.units, **kept_units}
    file = designed_file(
        frontier, point, units, asked + source.codes_said, data.output_range, chosen=mean_distance is None
    )
    made = {"n_points": points, "cv": folds, "mean_distance": mean_distance}
    file = replace(file, metric=metric.with_params(units=units), **origin_of(seen.X, metric.columns, holdout, **made))
    file = replace(file, favourable=source.favourable_of(echo, data, before.file))
    if not exact:
        file = in_round_numbers(echo, file, seen)
    write_made(echo, file, out, before.words)
    echo(file.how, how=file.how, task=data.task, protected=hidden, output_range=data.output_range)
    echo_frontier(echo, frontier, point)
    echo("")
    echo_weights(echo, file)
    echo_distances(echo, file, X)
    echo(
        "\nThat a model satisfies a metric that was designed with it does not show that the weights are right. "
        f"Discuss them and edit {out}."
    )
    n_apart = int(unseen.sum())
    echo(
        f"{n_apart:,} people were kept apart: compare, tradeoff and enforce measure on them alone."
        if n_apart
        else "The metric has now seen everybody: compare, tradeoff, enforce and report make it again without those "
        "whom they measure. Once it is edited they cannot, and costs are understated: --holdout 0.25 keeps a quarter "
        "of the people apart.",
        n_kept_apart=n_apart,
    )
    echo(f"\nWrote {out}", metric_file=str(out))
    if page is not None:  # of the people kept apart, if there are any
        data = replace(data, X=source.without_codes(X))  # the card was designed with blanks for special codes
        about = replace(data, X=data.X[unseen], y=data.y[unseen]) if holdout else data
        made_by = Unseen.find(file, about.X, out, "likewise design").made_by
        write_report(
            replace(point, metric=file.metric).card,
            about.X,
            about.y,
            page,
            frontier=frontier,
            seen=not holdout,
            made_by=made_by,
            outcome=None if data.is_classification else source.target,
            verbose=not echo.as_json,
            model_name="the designed scorecard",
            source=named(source.table),
        )
        echo(f"Wrote {page}", report_file=str(page))
    same = [hinted(source.table), "--target", source.target, "--metric", out]
    echo.finish(
        f"edit {out}, then",
        next_command("enforce", *same, "--method", "additive", "--out", unused_path("model.skops")),
        next_command("compare", *same),
    )


# -- which columns are protected --------------------------------------------------------------------------------------


def _protected_columns(
    echo: Output, columns: list[str], given: Sequence[str], kept: Sequence[str]
) -> tuple[list[str], str]:
    """Protected columns, and a sentence on who named them: --protected, the replaced file, or an answer."""
    from likewise.cli.doubtful import protected_candidates

    if given:
        hidden = list(dict.fromkeys([*_split(",".join(given), columns, "--protected"), *kept]))
        return hidden, f"Named as protected: {', '.join(hidden) or 'none'}."
    if kept:
        return list(kept), f"Protected in the replaced file: {', '.join(kept)}."
    candidates = ", ".join(protected_candidates(columns))
    if echo.as_json or not options.is_terminal():
        hint = f" Candidates by their names: {candidates}." if candidates else ""
        echo.note(f"No column is protected, since --protected was not given.{hint}")
        return [], "Nobody was asked which columns are protected by law; none is."
    hint = f" (candidates by their names: {candidates})" if candidates else ""
    answer = click.prompt(
        f"Which columns are protected by law, and must not matter{hint}? Separate them by commas; Enter for none",
        default="",
        show_default=False,
        err=True,
    )
    hidden = _split(answer, columns, "The answer")
    return hidden, f"Asked which columns are protected by law, a person named: {', '.join(hidden) or 'none'}."


def _split(text: str, columns: Sequence[str], what: str) -> list[str]:
    """Names separated by commas; a name that contains a comma itself may stand alone."""
    if text in columns:
        return [text]
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if name not in columns:
            raise FileError(f"{what} must name columns of the table; there is no {name!r} among {', '.join(columns)}.")
    return names


# -- what was found ---------------------------------------------------------------------------------------------------


def designed_file(
    frontier: MetricFrontier,
    point: FrontierPoint,
    units: dict[str, str],
    asked: str,
    output_range: tuple[float, float] | None = None,
    *,
    chosen: bool = True,
) -> MetricFile:
    """The metric of a point with where it comes from, and with columns of weight 0 as protected or not used."""
    from likewise.metric_file import MetricFile, today

    metric: Any = point.metric
    why = "the strictest within one standard error of the smallest loss" if chosen else "the mean distance was given"
    return MetricFile(
        metric.with_params(units=units),
        output_range,
        f"Designed together with a scorecard, from {frontier.n_people:,} people: mean distance "
        f"{point.mean_distance:.3g}, {frontier.loss_name} {point.loss:.4g} ± {point.standard_error:.2g} on held-out "
        f"people ({why}). {asked}",
        protected=frontier.protected,
        not_used=tuple(name for name in metric.hidden if name not in frontier.protected),
        as_written=True,
        source="designed",
        date=today(),
    )


def echo_frontier(echo: Output, frontier: MetricFrontier, point: FrontierPoint) -> None:
    """Print the frontier from strict to loose, and what it is compared with."""
    points = sorted({*frontier.points, point}, key=lambda each: each.mean_distance)
    beside = frontier.references
    lines = [f"mean distance  {frontier.loss_name}, held out"]
    lines += [_line(each, CHOSEN if each is point else "") for each in points]
    lines += [_line(each, title) for title, each in beside.items()]

    def facts(each: FrontierPoint | Reference) -> dict[str, float | None]:
        return {name: getattr(each, name) for name in ("mean_distance", "loss", "standard_error")}

    echo(
        "\n" + "\n".join(lines),
        frontier=[{**facts(each), CHOSEN: each is point} for each in points],
        references=[{"title": title, **facts(each)} for title, each in beside.items()],
    )


def _line(point: FrontierPoint | Reference, title: str) -> str:
    distance = "" if point.mean_distance is None else f"{point.mean_distance:.3f}"
    return f"{distance:>13}  {point.loss:.4g} ± {point.standard_error:<8.2g} {title}".rstrip()
