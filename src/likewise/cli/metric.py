"""The command that makes a metric file, with those on such files as subcommands."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli import console as options
from likewise.cli.console import Destination, Output, as_one, command, next_command
from likewise.cli.metric_commands import DefaultGroup, check, diff, round_, scale, show
from likewise.cli.sources import DesignSource, makes_metric
from likewise.exceptions import InvalidInputError

if TYPE_CHECKING:
    from likewise.cli.training import Revealed
    from likewise.metric_file import MetricFile
    from likewise.metrics.table import TableMetric

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
    normalize: bool
    orders: dict[str, list[str]]
    groups: dict[str, list[list[str]]]
    domain: bool
    seed: int


@metric.command(hidden=True)
@click.option("--judgements", type=options.FILE, help="Or answers of likewise judge, to learn the distance from.")
@click.option("--strict", is_flag=True, help="With --judgements: the lower end of every range, to enforce.")
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
    echo: Output, source: DesignSource, how: RevealOptions, judgements: Path | None, strict: bool, to: Destination
) -> None:
    """Train a model on a table and reveal the distance between people that it respects.

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

        given = {"--order": how.orders, "--group": how.groups, "--special": source.special}
        for option in [name for name, value in given.items() if value]:
            raise InvalidInputError(
                f"{option} is for a metric revealed from a model or from --scores; got --judgements. Leave it out, or "
                "write it into the file."
            )
        people = source.people if source.target is None else replace(source.people, drop=(*source.drop, source.target))
        metric_from_judgements(echo, people, judgements, how, strict, to)
    elif strict:
        raise InvalidInputError("--strict is for --judgements, answers of likewise judge. Give these, or leave it out.")
    elif (source.target is None) == (how.scores is None):
        raise InvalidInputError(
            "Give one of --target (a column to predict), --scores (a column of scores) and --judgements (answers)."
        )
    else:
        _reveal_file(echo, source, how, to)


def _reveal_file(echo: Output, source: DesignSource, how: RevealOptions, to: Destination) -> None:
    """Reveal a metric from a model or from scores, and write its file."""
    from likewise.cli.category_shapes import GivenShapes
    from likewise.cli.new_metric import Replaced, count_units, echo_distances, echo_weights, write_made
    from likewise.cli.seen_people import origin_of
    from likewise.cli.table_io import hinted
    from likewise.cli.training import reveal_model, reveal_scores, set_to_zero
    from likewise.io import unused_path
    from likewise.metric_file import MetricFile, read_metric_file, today, without_claim
    from likewise.verification.domain import Domain

    out, scores, zero = to.path, how.scores, how.zero
    to.check(source.table, how.start)
    before = Replaced.at(out)
    shaped = before.file if how.start is None else read_metric_file(how.start)
    data = source.load(echo, scores=scores, orders=how.orders)
    limits = data.output_range
    unordered = data.X.drop(columns=[*how.orders])
    shapes = GivenShapes.of(None if shaped is None else shaped.metric, unordered, how.groups)
    named = (
        (*zero, *before.protected) if scores is None else tuple(data.X.columns)
    )  # given scores may depend on any column
    X = source.described(echo, data.X, shapes, named)
    for name, listed in how.groups.items():
        absent = [each for group in listed for each in group if each not in set(X[name].dropna())]
        if absent:
            echo.note(f"--group {name}: nobody in the table has {', '.join(absent)}. Check the spelling.")
    constant, known = [str(name) for name in X.columns if X[name].nunique(dropna=False) == 1], source.without_codes(X)
    for name in constant:
        echo.note(f"Column {name!r} is the same for everyone: nothing can be learned about it, so its weight is 0.")
    if scores is None:
        source.note_telling(echo, replace(data, X=X), zero, out)
        with echo.busy("Training and revealing"):
            revealed = reveal_model(known, data.y, how.kind, how.seed, output_range=limits, shapes=shapes)
    else:
        with echo.busy("Revealing"):
            revealed = reveal_scores(known, data.y, limits, shapes)
    for note in revealed.notes:
        echo.note(note)
    again = revealed.exact and not how.normalize and not constant
    made: dict[str, Any] = {"model": how.kind, "seed": how.seed} if again else {}
    found = MetricFile(  # before any edit
        revealed.metric,
        limits,
        revealed.how,
        not_used=tuple(n for n in revealed.metric.hidden if n not in constant) if revealed.exact else (),
        not_forced=tuple(dict.fromkeys((*revealed.not_forced, *constant))),
        as_written=True,
        source="revealed",
        date=today(),
        **origin_of(X, revealed.metric.columns, **made),
    )
    kept = [name for name in before.protected if name in found.metric.columns and name not in zero]
    protected = (*zero, *kept)
    edited = source.with_codes(set_to_zero(found.metric, (*protected, *constant)))
    factor = _normalizing_factor(edited, X) if how.normalize else 1.0
    # Ordered categories of the numeric columns that hold some.
    edited = edited.with_params(
        order={name: X[name].cat.categories.tolist() for name in edited.numeric if hasattr(X[name], "cat")}
    )
    units = {**count_units(X[list(edited.numeric)]), **data.units, **before.units_in(echo, edited, kept)}
    file = replace(
        found,
        metric=edited.with_params(units=units),
        how=(without_claim(revealed.how) if protected else revealed.how) + source.codes_said,
        protected=protected,
        not_used=tuple(name for name in found.not_used if name not in protected),
        not_forced=tuple(name for name in found.not_forced if name not in protected),
        favourable="" if scores is not None else source.favourable_of(echo, data, before.file),
        domain=Domain.learn(X) if how.domain else None,
    ).scaled(factor)
    write_made(echo, file, out, before.words)
    told = [file.how]
    told += [f"Set to 0: {', '.join(protected)}."] if protected else []
    told += [f"Scaled by {factor:.4g}."] if factor != 1 else []
    echo(" ".join(told), how=" ".join(told), task=data.task, exact=revealed.exact)
    _echo_zeros(echo, found, file, zero, of_scores=scores is not None)
    echo_weights(echo, file)
    _echo_ranges(echo, revealed, factor, limits)
    echo_distances(echo, file, X)
    echo(f"\nWrote {out}", metric_file=str(out))
    if scores is not None:
        following = [next_command("audit", hinted(source.table), "--scores", scores, "--metric", out)]
    else:
        same = [hinted(source.table), "--target", source.target, "--metric", out]
        following = [
            next_command("compare", *same),
            next_command("enforce", *same, "--out", unused_path("model.skops")),
        ]
    echo.finish(f"edit {out}, then", *following)


def _normalizing_factor(metric: TableMetric, X: Any) -> float:
    """The factor under which half of the pairs are closer than 0.5."""
    from likewise.auditing.coverage import measure_coverage

    median = measure_coverage(metric, X).median
    if median == 0:
        raise InvalidInputError(
            "--normalize needs a metric under which people differ; half of the pairs are at distance 0."
        )
    return 0.5 / median


def _echo_zeros(echo: Output, found: MetricFile, file: MetricFile, zero: tuple[str, ...], *, of_scores: bool) -> None:
    """Print what the columns set to 0 had as `found`; record why others have the weight 0 in the `file`."""
    from likewise.metric_file import as_rate

    meanings = found.meanings()
    where = "In the smallest metric of the scores" if of_scores else "In the model"
    for name in zero:
        weight = as_rate(meanings[name])
        if name in found.not_used:
            weight = "not used"
        elif name in found.not_forced:
            weight = f"no weight needed for these people ({meanings[name]})"
        echo(f"{name}: set to 0. {where}: {weight}.")
    echo.facts |= {
        "before": {name: meanings[name] for name in zero},
        "protected": list(file.protected),
        "not_used": list(file.not_used),
        "not_forced": list(file.not_forced),
        "output_range": file.output_range,
    }


def _echo_ranges(echo: Output, revealed: Revealed, scale: float, limits: tuple[float, float] | None) -> None:
    """Print the range of each estimated weight, before anything was set to 0, and whether it is needed."""
    from likewise.report.text import points

    if revealed.weights is None:
        return
    table = revealed.weights.rename(columns={"exchanged": "by exchange"})
    for name in ("estimate", "low", "high", "least", "cost_of_0"):
        table[name] = [float(f"{weight:.3g}") for weight in scale * table[name]]
    echo("\nWeights that explain these people equally well, within 1%:")
    shown = table[["column", "kind", "estimate", "low", "high", "status"]]
    written = shown[["estimate", "low", "high"]].map("{:g}".format)
    echo.table(table.drop(columns=["row_a", "row_b"]), "ranges", shown.assign(**written))
    for status, meaning in _MEANINGS.items():
        chosen = table[(table["status"] == status) & (table["kind"] == "weight")]
        if len(chosen):
            costs = [f" ({points(cost, limits)})" if cost > 0 else "" for cost in chosen["cost_of_0"]]
            named = ", ".join(f"{name}{cost}" for name, cost in zip(chosen["column"], costs, strict=True))
            echo(f"{status[0].upper()}{status[1:]}{meaning.format(named)}")
