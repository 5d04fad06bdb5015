"""The command that makes a metric file, with those on such files as subcommands."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from likewise.cli import console as options
from likewise.cli.console import Destination, Output, as_one, command, echo_coverage, next_command
from likewise.cli.metric_commands import (
    DefaultGroup,
    check,
    check_factor,
    diff,
    echo_weights,
    replacing,
    round_,
    scale,
    show,
)
from likewise.cli.sources import DesignSource, makes_metric
from likewise.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

    from likewise.cli.training import Revealed
    from likewise.metric_file import MetricComments, MetricFile
    from likewise.metrics.table import TableMetric

_MOST_STEPS = 20  # between the smallest and the largest value of a column that is counted in steps

_MEANINGS = {  # of a status: what it says of columns
    "forced": ", since every metric that fits these people has it above 0: {}.",
    "could be 0": ", so not known: {}. Others would then weigh more: in brackets, by how much the mean distance "
    "between two people would rise. The model may use them.",
    "not forced by these people": ", so not known: {}. The model may use them.",
    "not used, as far as asked": ", and left out: {}. Nothing is known of people who were not asked about.",
}

# Everything heavy is imported inside the commands: `likewise --help` must answer at once.


@click.group(cls=DefaultGroup)
def metric() -> None:
    """Reveal a metric from a table, or work on a metric file."""


for _command in (show, scale, round_, diff, check):
    metric.add_command(_command)


@dataclass(frozen=True)
class RevealOptions:
    """From what a metric is revealed, and what is done with it."""

    scores: str | None
    start: Path | None
    kind: str
    zero: tuple[str, ...]
    scale: float
    normalize: bool
    orders: dict[str, list[str]]
    groups: dict[str, list[list[str]]]
    domain: bool
    seed: int

    def check_other(self, other: str) -> None:
        """Raise for what is for a metric revealed from a model or from scores; got another way, an option."""
        for flag, section, given in (("--order", "order", self.orders), ("--group", "groups", self.groups)):
            if given:
                raise InvalidInputError(
                    f"{flag} is for a metric revealed from a model or from --scores; got {other}. Leave it out, or "
                    f"write it under [{section}] in the file."
                )


@metric.command(hidden=True)
@click.option("--judgements", type=options.FILE, help="Or answers of likewise judge, to learn the distance from.")
@click.option("--strict", is_flag=True, help="With --judgements: the lower end of every range, to enforce.")
@click.option(
    "--by",
    type=click.Choice(["model", "design"]),
    default="model",
    show_default=True,
    help="Reveal it from a model, or design it, as likewise design does.",
)
@as_one(
    RevealOptions,
    "how",
    click.option("--scores", help="Or a column with the scores of any other system, whose metric is to be revealed."),
    click.option(
        "--start",
        type=options.FILE,
        help="A metric file whose order, groups and distances of categories are used; with --judgements, one to stay "
        "close to.",
    ),
    click.option("--model", "kind", type=click.Choice(options.MODELS), default="logistic", show_default=True),
    click.option("--zero", multiple=True, help="Column that must not matter; may be given several times."),
    click.option("--scale", type=float, default=1.0, help="Multiply every weight: below 1 is stricter."),
    click.option("--normalize", is_flag=True, help="Scale the weights so that half of the pairs are closer than 0.5."),
    options.orders,
    options.groups,
    click.option("--domain", is_flag=True, help="Also write what each column can hold, for likewise effect."),
    click.option("--seed", type=int, default=0, show_default=True),
)
@options.writes(default="metric.toml")
@command
@makes_metric(needs_target=False)
def reveal(
    echo: Output,
    source: DesignSource,
    how: RevealOptions,
    judgements: Path | None,
    strict: bool,
    by: str,
    to: Destination,
) -> None:
    """Train a model on a table and reveal the distance between people that it respects, or design one.

    Exact for logistic and linear models; otherwise the smallest distance that fits the people in the table. For a
    regression, weights are shares of the output range in the file: --range, or that of the table, rounded outwards.

    With --judgements, no model is trained: the distance is learned from people's answers, with the range that these
    leave to each weight, and conflicts by name. With --start, it stays as close to another file as the answers allow,
    and keeps that file's comments, units and columns of weight 0.

    With --scores, the smallest distance that fits the given scores (probabilities, or within --range). Then a weight
    may not be known: the range of each is shown.

    Categories of a --group have a weight between them and another to the rest; both are revealed. A file given by
    --start, or replaced with --force, can have groups, a matrix of distances and orders: their scale is revealed.

    With --force, the protected columns, units and comments of the replaced file are kept; the old file is kept as a
    .bak, and the lines that changed are printed.

    Example: likewise metric loans.csv --target approved --zero race --id id --out metric.toml
    """
    if judgements is not None:
        from likewise.cli.judge import metric_from_judgements

        how.check_other("--judgements")
        if source.special:
            raise InvalidInputError("--special is for metrics that are revealed or designed; got --judgements.")
        people = source.people if source.target is None else replace(source.people, drop=(*source.drop, source.target))
        metric_from_judgements(echo, people, judgements, start=how.start, strict=strict, zero=how.zero, to=to)
    elif strict:
        raise InvalidInputError("--strict is for --judgements, answers of likewise judge. Give these, or leave it out.")
    elif (source.target is None) == (how.scores is None):
        raise InvalidInputError(
            "Give one of --target (a column to predict), --scores (a column of scores) and --judgements (answers)."
        )
    elif by == "design":
        from likewise.cli.design import design_file

        how.check_other("--by design")
        _check_for_design()
        if source.target is None:
            raise InvalidInputError("--by design needs --target, the column to predict.")
        design_file(echo, source, to, protected=how.zero)
    else:
        _reveal_file(echo, source, how, to)


def _reveal_file(echo: Output, source: DesignSource, how: RevealOptions, to: Destination) -> None:
    """Reveal a metric from a model or from scores, and write its file."""
    from likewise.cli.category_shapes import GivenShapes
    from likewise.cli.dataset import drop_empty_columns, drop_names, range_for_metric, read_dataset
    from likewise.cli.doubtful import note_doubtful
    from likewise.cli.seen_people import origin_of
    from likewise.cli.table_io import hinted
    from likewise.cli.training import reveal_model, reveal_scores, set_to_zero
    from likewise.inspection.baselines import categorical_columns
    from likewise.io import unused_path
    from likewise.metric_edits import metric_at, read_comments
    from likewise.metric_file import read_metric_file, without_claim, write_metric
    from likewise.verification.domain import Domain

    out, scores, zero, groups, scale = to.path, how.scores, how.zero, how.groups, how.scale
    to.check(source.table, how.start)
    before = metric_at(out)
    shaped = before if how.start is None else read_metric_file(how.start)
    check_factor("--scale", scale)
    task = source.task if scores is None else "regression"
    data = read_dataset(source.people, str(source.target or scores), echo.note, task=task, orders=how.orders)
    limits = source.output_range
    limits = range_for_metric(data, limits) if scores is None else _range_of_scores(data.y, limits)
    X = drop_empty_columns(data.X, echo.note)
    shapes = GivenShapes.of(None if shaped is None else shaped.metric, X.drop(columns=[*how.orders]), groups)
    X = shapes.applied_to(X)
    for name, listed in groups.items():
        absent = [each for group in listed for each in group if each not in set(X[name].dropna())]
        if absent:
            echo.note(f"--group {name}: nobody in the table has {', '.join(absent)}. Check the spelling.")
    if scores is None:  # given scores may depend on any column
        named = (*source.categorical, *zero, *shapes.columns, *(() if before is None else before.protected))
        X = drop_names(X, categorical_columns(X), named, echo.note, option="--categorical")
    note_doubtful(X, echo.note)
    constant, known = _constant_columns(echo, X), source.without_codes(X)
    if scores is None:
        source.note_telling(echo, replace(data, X=X), zero, out)
    if scores is None:
        with echo.busy("Training and revealing"):
            revealed = reveal_model(known, data.y, how.kind, how.seed, output_range=limits, shapes=shapes)
    else:
        with echo.busy("Revealing"):
            revealed = reveal_scores(known, data.y, limits, shapes)
    for note in revealed.notes:
        echo.note(note)
    again = revealed.exact and not how.normalize and not constant
    made: dict[str, Any] = {"model": how.kind, "seed": how.seed} if again else {}
    found = replace(_revealed_file(revealed, limits, constant), **origin_of(X, revealed.metric.columns, **made))
    kept = [] if before is None else [n for n in before.protected if n in found.metric.columns and n not in zero]
    protected = (*zero, *kept)
    edited = source.with_codes(set_to_zero(found.metric, (*protected, *constant)))
    if how.normalize:
        scale *= _normalizing_factor(edited, X)
    words = None if before is None else read_comments(out)
    edited = edited.with_params(order=_orders(X, edited))
    units = {**count_units(X[list(edited.numeric)]), **data.units, **echo_kept(echo, out, edited, kept, words)}
    file = replace(
        found,
        metric=edited.with_params(units=units),
        how=(without_claim(revealed.how) if protected else revealed.how) + source.codes_said,
        protected=protected,
        not_used=tuple(name for name in found.not_used if name not in protected),
        not_forced=tuple(name for name in found.not_forced if name not in protected),
    ).scaled(scale)
    if scores is None:
        file = replace(file, favourable=source.favourable_of(echo, data, before))
    if how.domain:
        file = replace(file, domain=Domain.learn(X))
    with replacing(echo, out):
        write_metric(file, out, words=words)
    told = [file.how]
    told += [f"Set to 0: {', '.join(protected)}."] if protected else []
    told += [f"Scaled by {scale:.4g}."] if scale != 1 else []
    echo(" ".join(told), how=" ".join(told), task=data.task, exact=revealed.exact)
    _echo_zeros(echo, found, file, zero, of_scores=scores is not None)
    echo_weights(echo, file)
    _echo_ranges(echo, revealed, scale, limits)
    echo_distances(echo, file, X)
    echo(f"\nWrote {out}", metric_file=str(out))
    if scores is not None:
        echo.finish(
            f"edit {out}, then", next_command("audit", hinted(source.table), "--scores", scores, "--metric", out)
        )
        return
    same = [hinted(source.table), "--target", source.target, "--metric", out]
    echo.finish(
        f"edit {out}, then",
        next_command("compare", *same),
        next_command("enforce", *same, "--out", unused_path("model.skops")),
    )


def _check_for_design() -> None:
    context = click.get_current_context()
    for name, flag in (("kind", "--model"), ("scale", "--scale"), ("normalize", "--normalize"), ("seed", "--seed")):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise InvalidInputError(f"{flag} is for --by model; got --by design. Leave it out, or use likewise design.")


def _constant_columns(echo: Output, X: Any) -> list[str]:
    found = [str(name) for name in X.columns if X[name].nunique(dropna=False) == 1]
    for name in found:
        echo.note(f"Column {name!r} is the same for everyone: nothing can be learned about it, so its weight is 0.")
    return found


def count_units(X: pd.DataFrame) -> dict[str, str]:
    """The unit "step" for columns of few whole numbers, such as a count of cards, and of ordered categories."""
    found = {}
    for name, column in X.items():
        values = column.cat.codes if hasattr(column, "cat") else column.dropna()
        if values.nunique() > 1 and (values % 1 == 0).all() and values.max() - values.min() <= _MOST_STEPS:
            found[str(name)] = "step"
    return found


def _normalizing_factor(metric: TableMetric, X: pd.DataFrame) -> float:
    """The factor under which half of the pairs are closer than 0.5."""
    from likewise.auditing.coverage import measure_coverage

    median = measure_coverage(metric, X).median
    if median == 0:
        raise InvalidInputError(
            "--normalize needs a metric under which people differ; half of the pairs are at distance 0."
        )
    return 0.5 / median


def _orders(X: pd.DataFrame, metric: TableMetric) -> dict[Any, list[Any]]:
    """Ordered categories of the numeric columns that hold some."""
    return {name: X[name].cat.categories.tolist() for name in metric.numeric if hasattr(X[name], "cat")}


def _revealed_file(revealed: Revealed, limits: tuple[float, float] | None, constant: list[str]) -> MetricFile:
    """The revealed metric before any edit, with the reason for each weight of 0."""
    from likewise.metric_file import MetricFile, today

    not_used: list[str] = []
    not_forced = (*revealed.not_forced, *constant)
    if revealed.exact:
        not_used = [name for name in revealed.metric.hidden if name not in constant]
        not_forced = tuple(constant)
    return MetricFile(
        revealed.metric,
        limits,
        revealed.how,
        not_used=tuple(not_used),
        not_forced=tuple(dict.fromkeys(not_forced)),
        as_written=True,
        source="revealed",
        date=today(),
    )


def _echo_zeros(echo: Output, found: MetricFile, file: MetricFile, zero: tuple[str, ...], *, of_scores: bool) -> None:
    """Print what the columns set to 0 had as `found`; record why others have the weight 0 in the `file`."""
    meanings = found.meanings()
    where = "In the smallest metric of the scores" if of_scores else "In the model"
    for name in zero:
        echo(f"{name}: set to 0. {where}: {_weight_before(found, name, meanings)}.")
    echo.facts |= {
        "before": {name: meanings[name] for name in zero},
        "protected": list(file.protected),
        "not_used": list(file.not_used),
        "not_forced": list(file.not_forced),
        "output_range": file.output_range,
    }


def _weight_before(found: MetricFile, name: str, meanings: dict[Any, str]) -> str:
    """The weight of a column before it was set to 0."""
    from likewise.metrics.table import ONLY_BLANKS

    if name in found.not_used:
        return "not used"
    if name in found.not_forced:
        return f"no weight needed for these people ({meanings[name]})"
    told = " = " in meanings[name] or meanings[name] == ONLY_BLANKS
    return meanings[name] if told else f"1 point per {meanings[name]}"


def _range_of_scores(scores: Any, output_range: tuple[float, float] | None) -> tuple[float, float] | None:
    if output_range is None and (scores.min() < 0 or scores.max() > 1):
        raise InvalidInputError(
            f"--scores must be probabilities, between 0 and 1; got {scores.min():g} to {scores.max():g}. For other "
            "scores give --range LOWEST HIGHEST."
        )
    return output_range


def _echo_ranges(echo: Output, revealed: Revealed, scale: float, limits: tuple[float, float] | None) -> None:
    """Print the range of each estimated weight, before anything was set to 0, and whether it is needed."""
    from likewise.report.text import points

    if revealed.weights is None:
        return
    table = revealed.weights.rename(columns={"exchanged": "by exchange"})
    for name in ("estimate", "low", "high", "least", "cost_of_0"):
        table[name] = [float(f"{weight:.3g}") for weight in scale * table[name]]
    echo("\nWeights that explain these people equally well, within 1%:")
    echo.table(table.drop(columns=["row_a", "row_b"]), "ranges")
    for status, meaning in _MEANINGS.items():
        chosen = table[(table["status"] == status) & (table["kind"] == "weight")]
        if len(chosen):
            costs = [f" ({points(cost, limits)})" if cost > 0 else "" for cost in chosen["cost_of_0"]]
            named = ", ".join(f"{name}{cost}" for name, cost in zip(chosen["column"], costs, strict=True))
            echo(f"{status[0].upper()}{status[1:]}{meaning.format(named)}")


def echo_distances(echo: Output, file: MetricFile, X: pd.DataFrame) -> None:
    """Print the weights of missing numbers, for columns of `X` that have some, what a point is, and the coverage."""
    from likewise.auditing.coverage import measure_coverage

    metric = file.metric
    blanks = [name for name in metric.numeric if X[name].isna().any() and name not in metric.hidden]
    if blanks:
        weights = ", ".join(f"{name} {100 * metric.missing[name]:.3g} points" for name in blanks)
        echo(f"\nDistance between a person with the number and one without: {weights}.")
    if file.output_range is not None:
        low, high = file.output_range
        echo(f"\nA point is a hundredth of the output range, {low:g} to {high:g}.")
    echo_coverage(echo, measure_coverage(metric, X))


def echo_kept(
    echo: Output, out: Path, metric: TableMetric, kept: list[str], words: MetricComments | None
) -> dict[str, str]:
    """Print what is kept of the replaced file, and which shapes of categories are not; return its units."""
    from likewise.metric_edits import metric_at
    from likewise.metric_file import CATEGORY_SECTIONS

    old = metric_at(out)
    listed = {s: [n for n in getattr(old and old.metric, s, ()) if n in metric.columns] for s in CATEGORY_SECTIONS}
    lost = {s: [n for n in names if n not in getattr(metric, s)] for s, names in listed.items()}
    units = {} if words is None else {name: unit for name, unit in words.units.items() if name in metric.columns}
    n_comments = 0 if words is None else words.n_comments
    parts = [f"{', '.join(kept)} at 0"] if kept else []
    parts += [f"the units of {', '.join(units)}"] if units else []
    parts += [f"the {s} of {', '.join(names)}" for s, names in listed.items() if names and not lost[s]]
    parts += [f"{n_comments} comment{'s' * (n_comments > 1)}"] if n_comments else []
    if parts:
        text = f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]
        facts = {"protected": kept, "units": units, "n_comments": n_comments}
        echo(f"Kept of the old {out}: {text}.", kept=facts)
    for section, names in lost.items():
        if names:
            echo.note(
                f"Not kept of the old {out}: the {section} of {', '.join(names)}. One weight was found for all their "
                f"values; put [{section}] back to be stricter, and audit the model again."
            )
    return units
