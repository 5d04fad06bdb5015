"""The command that searches all pairs of people: audit."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from likewise._validation import counted
from likewise.cli import console as options
from likewise.cli.console import Destination, Output, command, facts_of, name_people, rows_are
from likewise.cli.models import Examined, answers_of, direction_of, examines
from likewise.cli.sources import PeopleSource, reads_people
from likewise.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

    from likewise.auditing.audit import Audit
    from likewise.metric_file import MetricFile
    from likewise.pairs.model_outputs import OutputLabels


@options.new_command()
@examines(needs_model=False)
@click.option("--worst", type=click.IntRange(1), default=10, show_default=True, help="How many pairs to list.")
@click.option(
    "--max-excess",
    type=float,
    help="Exit 1 if a pair exceeds its distance by more than this: percentage points, at least 0 and below 100, or in "
    "the unit of other scores.",
)
@click.option("--groups", is_flag=True, help="Also say who has the better scores, in the columns of weight 0.")
@options.writes("Write the worst pairs as CSV.")
@options.cluster
@command
@reads_people
def audit(
    echo: Output,
    source: PeopleSource,
    examined: Examined,
    worst: int,
    max_excess: float | None,
    groups: bool,
    to: Destination,
    cluster: str | None,
) -> None:
    """Search all pairs of people for scores that differ by more than the distance.

    A directory of Parquet files is read in partitions, so it need not fit into memory; with --cluster, other machines
    do the search.

    Example: likewise audit loans.csv --metric metric.toml --scores score --id id --max-excess 0.5
    """
    from likewise import audit as search_pairs
    from likewise.base import ConstrainedEstimator
    from likewise.cli.column_kinds import Kinds
    from likewise.cli.dataset import PeopleTable
    from likewise.cli.table_io import in_partitions
    from likewise.pairs.model_outputs import OutputLabels

    scores, model_name = source.scores, examined.model_name
    if model_name is None and scores is None:
        raise InvalidInputError("Give --model or --scores (a column of the table), or both.")
    if model_name is None and examined.metric_file is None:
        raise InvalidInputError("Give --metric as well: a column of scores has no metric.")
    loaded, file, given = examined.load(source, to)
    model: Any = loaded if isinstance(loaded, ConstrainedEstimator) else None  # with a metric and a range of its own
    favourable = direction_of(examined.favourable, loaded, file)
    partitioned, id_column = in_partitions(source.table, cluster), source.id_column
    if partitioned and (groups or loaded is not model or (loaded is not None and scores is not None)):
        what = "--groups" if groups else "--model of another system, or beside --scores,"
        raise InvalidInputError(f"{what} is for tables that are read whole. Give a single file.")
    asked: Any = None if loaded is None or partitioned else source.load(echo, loaded)[0]
    metric, output_range = _metric_and_range(echo, model, examined, file, given)
    guaranteed = model is not None and model.guarantee_.bound_metric.is_of(metric)
    own_range = output_range if model is None else model.guarantee_.output_range
    labels, epsilon = OutputLabels.of_range(own_range), model.guarantee_.epsilon if guaranteed else 0.0
    gate = _gate(labels, max_excess)
    thresholds = [each for each in (epsilon or None, gate) if each is not None]
    chosen: Any = {"thresholds": thresholds, "n_worst": worst, "favourable": favourable}
    search: Any = partial(search_pairs, metric=metric, **chosen)
    if partitioned:
        with echo.busy("Searching all pairs, bucket by bucket"):
            found, names = _of_partitions(search, model, source, output_range, cluster)
    else:
        predictions = None if loaded is None else answers_of(loaded, asked)
        scored = scores if loaded is None else None
        people = PeopleTable.read(
            source,
            metric,
            echo.note,
            others=[] if scored is None else [scored],
            of_model=None if model is None else Kinds.of_model(model),
        )
        predictions = predictions if scored is None else people.scores(scored)
        with echo.busy("Searching all pairs"):
            found = search(None, people.X, predictions=predictions, output_range=own_range)
        if groups:
            _echo_groups(echo, people.X, metric, predictions, own_range, favourable)
        names = None if people.ids is None else people.ids.reset_index(drop=True)
    echo(
        found.coverage,
        **facts_of(found, "coverage", "n_pairs", "n_violations", "max_excess"),
        max_ratio=None if found.max_ratio != found.max_ratio else min(found.max_ratio, 1e308),
    )
    if found.n_violations:
        echo(f"\nThe worst pairs ({rows_are(id_column)}):")
        shown = _pairs_of(labels, found.violations if echo.as_json else found.abridged(), id_column, names)
        echo.table(shown.drop(columns=["n_pairs"]), "worst")
        if labels.are_probabilities:
            echo("Of difference, distance and excess, 0.01 is one percentage point.")
    echo.unit(labels)
    if to.out is not None:
        echo.csv(_pairs_of(labels, found.violations, id_column, names), to.out, "worst_file")
    passed = _echo_limits(echo, found, labels, epsilon, gate)
    echo.finish()
    if not passed:
        sys.exit(1)


def _metric_and_range(
    echo: Output, model: Any, examined: Examined, file: MetricFile | None, given: Any
) -> tuple[Any, Any]:
    """The metric to audit against, and the output range; `model` is one of likewise, or None."""
    if model is not None and given is not None:
        raise InvalidInputError("--range is for scores and models of other systems: this model has its own range.")
    if file is None:
        if model is None:
            raise InvalidInputError("Give --metric as well: only models of likewise have one.")
        echo(f"Against the metric in {examined.model_name}.")
        return model.guarantee_.metric, None
    own = None if model is None else model.guarantee_.output_range
    if model is not None and file.output_range is not None and file.output_range != own:
        low, high = file.output_range
        raise InvalidInputError(
            f"The weights of {examined.metric_file} are shares of the range {low:g} to {high:g}; the range of "
            f"{examined.model_name} is {own or (0, 1)}, so a point differs between them. Use the metric that the model "
            "was trained with, or train the model again."
        )
    return file.metric, given


def _gate(labels: OutputLabels, max_excess: float | None) -> float | None:
    """--max-excess as a share of 1; it is in points, or in the unit of the scores."""
    if max_excess is None:
        return None
    most = labels.factor
    if not 0 <= max_excess < most:
        unit = ", in percentage points" if labels.are_probabilities else ", the width of the range"
        raise InvalidInputError(
            f"--max-excess must be at least 0 and below {most:g}{unit}; got {max_excess:g}. No pair exceeds its "
            f"distance by {most:g}, so that gate could not fail."
        )
    return max_excess / most


def _echo_limits(echo: Output, found: Audit, labels: OutputLabels, epsilon: float, gate: float | None) -> bool:
    """Print how many pairs exceed the distance, the guarantee and the gate; return whether the gate passed."""
    worst = f"{counted(found.n_violations, 'pair')}, the worst by {labels.written(found.max_excess, 3)}"
    echo(f"\nAbove the distance D: {worst if found.n_violations else 'no pair was found'}.")
    allowed = labels.written(epsilon, 3)
    if epsilon > 0:
        n = found.n_above[epsilon]
        text = f"Above D + {allowed}, the epsilon of the guarantee: {counted(n, 'pair')}."
        echo(text, epsilon=epsilon, n_above_epsilon=n)
    if gate is None:
        return True
    n, most = found.n_above[gate], labels.written(gate, 3)
    text = f"Above D + {most}, the gate: {counted(n, 'pair')}. The gate {'failed' if n else 'passed'}."
    echo(text, gate=gate, n_above_gate=n, passed=not n)
    if epsilon > gate:
        echo.note(
            f"The gate, --max-excess {gate * labels.factor:g}, is below the {allowed} by which the guarantee of this "
            "model lets pairs exceed their distance."
        )
    return not n


def _of_partitions(
    search: Callable[..., Audit], model: Any, source: PeopleSource, output_range: Any, cluster: str | None
) -> tuple[Audit, Any]:
    """Audit a table in partitions, here or on a cluster; and the ids of the worst pairs."""
    import numpy as np

    from likewise.distributed.cluster import connected
    from likewise.distributed.frames import DaskTable, workers_for

    table, id_column = source.table, source.id_column
    people = DaskTable.of(table)
    if id_column is not None:
        people.check_columns([id_column], "the --id")
    with connected(cluster or workers_for(table)):
        found = search(model, table, predictions=source.scores, output_range=output_range)
        if id_column is None:
            return found, None
        rows = np.unique(found.violations[["row_a", "row_b"]].to_numpy())
        return found, people.values_at(id_column, rows)


def _echo_groups(
    echo: Output, X: pd.DataFrame, metric: Any, predictions: Any, output_range: Any, favourable: Any
) -> None:
    """Print who is favoured in the pairs that exceed the metric, and how many there are in the population."""
    from likewise import audit_groups
    from likewise._favourable import Direction
    from likewise.auditing.group_audit import MOST_GROUPS

    text = ""
    if getattr(predictions, "ndim", 1) == 2 and predictions.shape[1] == 2:
        direction = Direction.of(favourable, list(predictions.columns))
        favourable, text, predictions = direction.end, direction.text, predictions.iloc[:, -1]
    columns = [name for name in metric.hidden if name in X and X[name].nunique(dropna=False) <= MOST_GROUPS]
    many = [str(name) for name in metric.hidden if name in X and name not in columns]
    if many:
        echo.note(f"Groups by {', '.join(many)} are not compared: more than {MOST_GROUPS} different values.")
    if not columns:
        echo.note("No column of weight 0 has groups to compare.")
    found = audit_groups(
        None, X, metric, columns, predictions=predictions, output_range=output_range, favourable=favourable
    )
    text, (low, high) = text or found.favourable, found.rate_interval
    echo(
        f"Of the pairs of {found.n_samples:,} people, {found.rate:.3%} exceed the distance; {low:.3%} to "
        f"{high:.3%} in the population, at 95%.",
        rate=found.rate,
        rate_interval=list(found.rate_interval),
    )
    if len(found.groups):
        who = f"Who is favoured (favourable: {text})" if text else "Who has the higher score"
        echo(f"\n{who}, in pairs that exceed the distance and differ in a column of weight 0:", favourable=text or None)
        echo.table(found.groups, "groups")
        echo(
            "share: of all these pairs; other columns may explain it. n_alike, share_alike: people are matched "
            "with one other who is alike in the columns that count; of these pairs, those that exceed the distance "
            "and differ in the value. p_value: of a share_alike this far from what is expected if the value counts "
            "for nothing beyond these columns, as far as a logistic regression and a small tree tell how it goes "
            "with them; adjusted for the number of values (Holm).\n"
        )


def _pairs_of(labels: OutputLabels, pairs: pd.DataFrame, id_column: str | None, names: pd.Series[Any]) -> pd.DataFrame:
    """Pairs with people by id, or by rows from 1; without the outcome, if it has no name."""
    pairs = labels.in_units(pairs, "difference", "distance", "excess")
    found = pairs if pairs["outcome"].notna().any() else pairs.drop(columns="outcome")
    found = found.drop(columns=["row_a", "row_b"])
    for position, side in enumerate("ab"):
        rows = pairs[f"row_{side}"]
        shown = name_people(rows, None) if id_column is None else names.loc[rows].to_numpy()
        found.insert(position, f"{id_column or 'row'}_{side}", shown)
    return found
