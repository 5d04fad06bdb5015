"""The command that designs a metric together with its scorecard: design."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from likewise.cli import console as options
from likewise.cli.console import Destination, Output, command, next_command
from likewise.cli.sources import DesignSource, makes_metric
from likewise.exceptions import FileError, InvalidInputError

if TYPE_CHECKING:
    from likewise.design.frontier import FrontierPoint, MetricFrontier
    from likewise.design.references import Reference
    from likewise.metric_file import MetricFile

# Everything heavy is imported inside the commands: `likewise --help` must answer at once.

CHOSEN = "chosen"
DEFAULT_CHOICE = {"keep": 0.95}


@options.new_command()
@click.option(
    "--protected",
    multiple=True,
    help="Columns that must not matter, separated by commas; may be given several times. '' for none.",
)
@click.option(
    "--keep",
    type=float,
    help="Write the strictest metric that keeps this share of the best skill on held-out people; by default 0.95. The "
    "skill is 1 - loss / loss of a constant.",
)
@click.option("--bind", type=float, help="Or the loosest under which this share of pairs is closer than 1.")
@click.option("--mean-distance", type=float, help="Or the one with this mean distance.")
@click.option(
    "--loose",
    is_flag=True,
    help="Write it even if it binds fewer than one pair in ten, or nothing is better than a constant.",
)
@click.option("--points", type=click.IntRange(2), default=10, show_default=True, help="Metrics to design.")
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True)
@click.option(
    "--holdout",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    help="Share of the people to keep apart: later commands find them again, and measure costs on them.",
)
@options.orders
@options.weights
@options.rises
@options.falls
@click.option("--exact", is_flag=True, help="Keep weights as they were found, not in round numbers.")
@click.option("--report", "with_report", is_flag=True, help="Write a page on the scorecard too: --out, but .html.")
@options.writes(default="metric.toml")
@command
@makes_metric(needs_target=True)
def design(
    echo: Output,
    source: DesignSource,
    protected: tuple[str, ...],
    keep: float | None,
    bind: float | None,
    mean_distance: float | None,
    loose: bool,
    points: int,
    folds: int,
    holdout: float,
    orders: dict[str, list[str]],
    weights: str | None,
    rises: tuple[str, ...],
    falls: tuple[str, ...],
    exact: bool,
    with_report: bool,
    to: Destination,
) -> None:
    """Design a metric together with the scorecard within it.

    Metrics from strict to loose are designed, and each is measured on held-out people, beside a constant, the linear
    model with and without its own metric, and boosting. The strictest that keeps 95% of the best skill is written; it
    is a proposal to discuss and edit. If it binds fewer than one pair of people in ten, or nothing is better than a
    constant, nothing is written (exit 2).

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
    from likewise.cli.training import directions
    from likewise.inspection.baselines import categorical_columns
    from likewise.io import unused_path

    given = {"keep": keep, "bind": bind, "mean_distance": mean_distance}
    choice = {name: value for name, value in given.items() if value is not None} or DEFAULT_CHOICE
    if len(choice) > 1:
        raise InvalidInputError("Give at most one of --keep, --bind and --mean-distance.")
    out = to.path
    page = out.with_suffix(".html") if with_report else None
    to.check(source.table)
    if page is not None:
        need("jinja2", "A report")  # before the design, which takes longest
        replace(to, out=page).check(source.table, out)
    before = Replaced.at(out)
    data = source.load(echo, orders=orders, weights=weights)
    others = data.X.drop(columns=[*orders])
    shapes = GivenShapes.of(None if before.file is None else before.file.metric, others, {})
    shapes = replace(shapes, order={**shapes.order, **orders})
    X = source.described(echo, data.X, shapes, (*protected, *before.protected))
    data = replace(data, X=X)
    kept = [name for name in before.protected if name in X.columns]
    unseen = kept_apart(X, holdout)
    if holdout:
        check_apart(data.y, unseen, holdout, classify=data.is_classification)
    counts = None if data.weights is None else data.weights[~unseen]
    seen = replace(data, X=X[~unseen], y=data.y[~unseen], weights=counts)
    hidden, asked = _protected_columns(echo, list(map(str, X.columns)), protected, kept)
    source.note_telling(echo, seen, hidden, out)
    favourable = source.favourable_of(echo, data, before.file)
    frontier = design_metric(
        source.without_codes(seen.X),
        seen.y,
        protected=hidden,
        output_range=data.output_range,
        categorical=categorical_columns(X),
        groups=shapes.groups,
        distances=shapes.distances,
        monotone=directions(rises, falls, seen.X, seen.y, favourable, classify=data.is_classification),
        task=data.task,
        sample_weight=counts,
        n_points=points,
        cv=folds,
        verbose=not echo.as_json,
    )
    if not loose and not frontier.has_skill:
        echo_frontier(echo, frontier)
        raise InvalidInputError(_why_no_skill(frontier, str(source.target)))
    point = frontier.at(**choice)
    if not loose and point.binds_little:
        echo_frontier(echo, frontier, point)
        raise InvalidInputError(_why_loose(frontier, point))
    designed: Any = point.metric.with_params(order=shapes.order)
    metric = source.with_codes(designed)
    kept_units = before.units_in(echo, metric, [name for name in kept if name in hidden])
    units = {**count_units(X[list(metric.numeric)]), **data.units, **kept_units}
    file = designed_file(frontier, point, units, asked + source.codes_said, data.output_range, choice=choice)
    made: dict[str, Any] = {"n_points": points, "cv": folds, **choice}
    made |= {"rises": list(rises) or None, "falls": list(falls) or None, "weights": weights}
    file = replace(file, metric=metric.with_params(units=units), **origin_of(seen.X, metric.columns, holdout, **made))
    file = replace(file, favourable=favourable)
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


def _why_no_skill(frontier: MetricFrontier, target: str) -> str:
    """Why no metric is written where none is better than a constant."""
    gain, error = frontier.gain
    return (
        f"No metric is better than a constant on held-out people: the best gains {gain:.2g} ± {error:.2g} of the "
        f"{frontier.loss_name}. {target!r} varies with no column that may matter, as far as {frontier.n_people:,} "
        "people show. Nothing was written; --bind 0.5 --loose writes a metric all the same."
    )


def _why_loose(frontier: MetricFrontier, point: FrontierPoint) -> str:
    """Why a metric that binds too few pairs is not written, and what others would cost."""
    stricter = frontier.at(bind=0.5) if frontier.points[0].bound_share >= 0.5 else frontier.points[0]
    return (
        f"The metric binds {point.bound_share:.1%} of the pairs of these people; of all others its guarantee says "
        f"nothing. Nothing was written. One that binds {stricter.bound_share:.0%} keeps {stricter.kept:.0%} ± "
        f"{100 * stricter.kept_error:.0f} of the skill: --bind {stricter.bound_share:.2g}. A smaller --keep binds "
        "more; --loose writes this one all the same."
    )


def designed_file(
    frontier: MetricFrontier,
    point: FrontierPoint,
    units: dict[str, str],
    asked: str,
    output_range: tuple[float, float] | None = None,
    *,
    choice: dict[str, float] = DEFAULT_CHOICE,
) -> MetricFile:
    """The metric of a point with where it comes from, and with columns of weight 0 as protected or not used."""
    from likewise.metric_file import MetricFile, today

    metric: Any = point.metric
    ((name, value),) = choice.items()
    why = {
        "keep": f"the strictest that keeps {value:.0%} of the best skill",
        "bind": f"the loosest that binds {value:.0%} of the pairs",
        "mean_distance": "the mean distance was given",
    }[name]
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


def echo_frontier(echo: Output, frontier: MetricFrontier, point: FrontierPoint | None = None) -> None:
    """Print the frontier from strict to loose, and what it is compared with."""
    points = sorted({*frontier.points, *([] if point is None else [point])}, key=lambda each: each.mean_distance)
    beside = frontier.references
    lines = [f"mean distance  {frontier.loss_name + ', held out':<24} pairs bound  skill kept"]
    for each in points:
        kept = f"  {each.kept:6.0%} ± {100 * each.kept_error:.0f}" if frontier.has_skill else ""
        lines.append(f"{_line(each):<39} {each.bound_share:11.0%}{kept}{'  ' + CHOSEN if each is point else ''}")
    lines += [f"{_line(each)} {title}" for title, each in beside.items()]
    lines.append(
        f"The skill is 1 - {frontier.loss_name} / that of a constant. A pair is bound if its distance is below 1; of "
        "others, a guarantee says nothing."
    )

    def facts(each: Any, *more: str) -> dict[str, float | None]:
        return {name: getattr(each, name) for name in ("mean_distance", "loss", "standard_error", *more)}

    echo(
        "\n" + "\n".join(lines),
        frontier=[{**facts(each, "bound_share", "kept", "kept_error"), CHOSEN: each is point} for each in points],
        references=[{"title": title, **facts(each)} for title, each in beside.items()],
    )


def _line(point: FrontierPoint | Reference) -> str:
    distance = "" if point.mean_distance is None else f"{point.mean_distance:.3f}"
    return f"{distance:>13}  {point.loss:.4g} ± {point.standard_error:<8.2g}"
