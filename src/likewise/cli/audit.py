"""The command that searches all pairs of people: audit."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli import console as options
from likewise.cli.console import Output, command
from likewise.cli.models import file_of, load_any_model, read_people, reads_model
from likewise.cli.review import ReviewOptions, compare_files, reviews
from likewise.exceptions import FileError, InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

    from likewise.auditing.audit import Audit
    from likewise.cli.table_io import Dialect


@click.command()
@click.argument("table", type=options.TABLE)
@click.option("--metric", "metric_file", type=options.FILE, help="Metric file; by default the model's metric.")
@reads_model(required=False)
@click.option("--scores", help="Or a column of the table with the scores of any other system, between 0 and 1.")
@click.option(
    "--range",
    "output_range",
    type=float,
    nargs=2,
    help="Lowest and highest score, if not 0 and 1; by default those in the metric file.",
)
@click.option("--worst", type=click.IntRange(1), default=10, show_default=True, help="How many pairs to list.")
@click.option(
    "--max-excess",
    type=float,
    help="Exit 1 if a pair exceeds its distance by more than this many percentage points (for a regression, hundredths "
    "of the range). At least 0 and below 100.",
)
@click.option("--groups", is_flag=True, help="Also say who is favoured, in the columns of weight 0.")
@click.option("--review", "is_review", is_flag=True, help="Compare the files of denied and approved people instead.")
@reviews
@click.option("--out", type=options.FILE, help="Write the worst pairs, or all files with their comparators, as CSV.")
@options.force
@options.cluster
@command
@options.reads_table
def audit(
    echo: Output,
    table: Path,
    metric_file: Path | None,
    model_name: str | None,
    scores: str | None,
    output_range: tuple[float, float] | None,
    id_column: str | None,
    worst: int,
    max_excess: float | None,
    groups: bool,
    categorical: tuple[str, ...],
    drop: tuple[str, ...],
    is_review: bool,
    review: ReviewOptions,
    out: Path | None,
    force: bool,
    cluster: str | None,
    dialect: Dialect,
) -> None:
    """Search all pairs of people for scores that differ by more than the distance.

    A directory of Parquet files is read in partitions, so it need not fit into memory; with --cluster, other machines
    do the search.

    Example: likewise audit loans.csv --metric metric.toml --scores score --id id --max-excess 0.5
    """
    from likewise._writing import atomic_write, write_csv
    from likewise.base import ConstrainedEstimator
    from likewise.cli.dataset import resolve_range
    from likewise.cli.partitions import in_partitions
    from likewise.io import check_output_path
    from likewise.metric_file import read_metric_file

    if is_review:
        if model_name is not None or scores is not None:
            raise InvalidInputError("--review compares decisions, not scores: leave out --model and --scores.")
        compare_files(echo, table, review, metric_file, id_column, worst, out, force, dialect)
        return
    if review.decisions is not None:
        raise InvalidInputError("--decisions comes with --review. To audit scores, name their column with --scores.")
    if (model_name is None) == (scores is None):
        raise InvalidInputError("Give either --model or --scores (a column of the table).")
    if scores is not None and metric_file is None:
        raise InvalidInputError("Give --metric as well: a column of scores has no metric.")
    if max_excess is not None and not 0 <= max_excess < 100:
        raise InvalidInputError(
            f"--max-excess must be at least 0 and below 100, in percentage points; got {max_excess:g}. 0.5 is half a "
            "point; no pair exceeds its distance by 100, so that gate could not fail."
        )
    if out is not None:
        check_output_path(out, table, metric_file, file_of(model_name), force=force)
    loaded: Any = None if model_name is None else load_any_model(model_name)
    model: Any = loaded if isinstance(loaded, ConstrainedEstimator) else None  # with a metric and a range of its own
    if model is not None and output_range is not None:
        raise InvalidInputError("--range is for scores and models of other systems: this model has its own range.")
    if metric_file is None:
        if model is None:
            raise InvalidInputError("Give --metric as well: only models of likewise have one.")
        chosen = model.guarantee_.metric
        echo(f"Against the metric in {model_name}.")
    else:
        file = read_metric_file(metric_file)
        chosen, agreed = file.metric, resolve_range(file, output_range, metric_file)
        if model is None:
            output_range = agreed
        elif agreed is not None and agreed != model.guarantee_.output_range:
            raise InvalidInputError(
                f"The weights of {metric_file} are shares of the range {agreed[0]:g} to {agreed[1]:g}; the range of "
                f"{model_name} is {model.guarantee_.output_range or (0, 1)}, so a point differs between them. Use "
                "the metric that the model was trained with, or train the model again."
            )
    guaranteed = model is not None and model.guarantee_.metric == chosen
    limits = _Thresholds(model.guarantee_.epsilon if guaranteed else 0.0, max_excess)
    job = _AuditJob(model, chosen, scores, output_range, limits.thresholds, worst, id_column)
    if in_partitions(table, cluster) and (groups or loaded is not model):
        what = "--groups" if groups else "--model of another system"
        raise InvalidInputError(f"{what} is for tables that are read whole. Give a single file.")
    if loaded is not model:
        people, _ = read_people(echo, table, dialect, loaded, categorical=categorical, id_column=id_column, drop=drop)
        job = replace(job, predictions=answers_of(loaded, people))
    if in_partitions(table, cluster):
        with echo.busy("Searching all pairs, bucket by bucket"):
            found, names = job.of_partitions(table, cluster)
    else:
        found, names = job.of_file(echo, table, dialect, groups=groups)
    echo(
        found.coverage,
        coverage=found.coverage,
        n_pairs=found.n_pairs,
        n_violations=found.n_violations,
        max_excess=found.max_excess,
        max_ratio=None if found.max_ratio != found.max_ratio else min(found.max_ratio, 1e308),
    )
    if found.n_violations:
        which = "row_a and row_b count rows of the table from 0" if id_column is None else f"by {id_column}"
        echo(f"\nThe worst pairs ({which}):")
        shown = _pairs_of(found.violations if echo.as_json else found.abridged(), id_column, names)
        echo.table(shown.drop(columns=["n_pairs"]), "worst")
        echo("Of difference, distance and excess, 0.01 is one percentage point.")
    if out is not None:
        with atomic_write(out) as temporary:
            write_csv(_pairs_of(found.violations, id_column, names), temporary, index=False)
        echo(f"\nWrote {out}", worst_file=str(out))
    passed = _echo_limits(echo, found, limits)
    echo.finish()
    if not passed:
        sys.exit(1)


@dataclass(frozen=True)
class _Thresholds:
    """Excesses to count: the epsilon of a guarantee, and --max-excess in percentage points."""

    epsilon: float
    max_excess: float | None

    @property
    def gate(self) -> float | None:
        """--max-excess as a share of 1."""
        return None if self.max_excess is None else self.max_excess / 100

    @property
    def thresholds(self) -> list[float]:
        """Excesses above which pairs are counted."""
        return [*([self.epsilon] if self.epsilon > 0 else []), *([] if self.gate is None else [self.gate])]


def _echo_limits(echo: Output, found: Audit, limits: _Thresholds) -> bool:
    """Print how many pairs exceed the distance, the guarantee and the gate; return whether the gate passed."""
    worst = f"{_count(found.n_violations)}, the worst by {_points(found.max_excess)}"
    echo(f"\nAbove the distance D: {worst if found.n_violations else 'no pair was found'}.")
    if limits.epsilon > 0:
        n = found.n_above[limits.epsilon]
        echo(
            f"Above D + {_points(limits.epsilon)}, the epsilon of the guarantee: {_count(n)}.",
            epsilon=limits.epsilon,
            n_above_epsilon=n,
        )
    if limits.gate is None:
        return True
    n = found.n_above[limits.gate]
    echo(
        f"Above D + {_points(limits.gate)}, the gate: {_count(n)}. The gate {'failed' if n else 'passed'}.",
        gate=limits.gate,
        n_above_gate=n,
        passed=not n,
    )
    if limits.epsilon > limits.gate:
        echo.note(
            f"The gate, --max-excess {limits.max_excess:g}, is below the {_points(limits.epsilon)} by which the "
            "guarantee of this model lets pairs exceed their distance."
        )
    return not n


@dataclass(frozen=True, eq=False)
class _AuditJob:
    """A model, a column of scores or the answers of another system; a metric, and the options of an audit."""

    model: Any
    metric: Any
    scores: str | None
    output_range: tuple[float, float] | None
    thresholds: list[float]
    n_worst: int
    id_column: str | None
    predictions: Any = None

    def of_file(self, echo: Output, table: Path, dialect: Dialect, *, groups: bool) -> tuple[Audit, Any]:
        """Audit a table that fits into memory; and the ids of its rows."""
        from likewise import audit as search
        from likewise.cli.column_kinds import Faults, Kinds, as_kinds
        from likewise.cli.dataset import select_columns
        from likewise.cli.table_io import Unseen, named, read_table

        kinds = Kinds.of_metric(self.metric)
        of_model = Kinds() if self.model is None else Kinds.of_model(self.model)
        others = [name for name in (self.scores, self.id_column) if name is not None]
        texts = [*kinds.as_text, *of_model.as_text, *([] if self.id_column is None else [self.id_column])]
        whole = read_table(table, dialect, echo.note, as_text=texts)
        for name in others:
            if name not in whole.columns:
                raise InvalidInputError(f"{named(table)} has no column {name!r}; it has {list(whole.columns)}.")
        ids = None if self.id_column is None else whole[self.id_column]
        chosen = select_columns(whole, self.metric, table, echo.note, ignore=others)
        faults = Faults(ids)
        X = as_kinds(chosen, replace(kinds, orders={**of_model.orders, **kinds.orders}), dialect, faults, echo.note)
        faults.stop(named(table))
        faults = Faults(ids)
        if self.scores is not None:
            numbers = Kinds([self.scores], complete=[self.scores])
            predictions: Any = as_kinds(whole[[self.scores]], numbers, dialect, faults)[self.scores]
            faults.stop(named(table), of_scores=True)
            output_range = self.output_range
        elif self.predictions is not None:
            predictions, output_range = self.predictions, self.output_range
        else:
            people = as_kinds(whole, of_model, dialect, faults, echo.note)
            faults.stop(named(table), of_model=True)
            predictions, output_range = _predictions(self.model, people, table)
            unseen = Unseen(self.model)
            unseen.look(people)
            unseen.tell(echo.note)
        with echo.busy("Searching all pairs"):
            found = search(
                None,
                X,
                self.metric,
                predictions=predictions,
                output_range=output_range,
                thresholds=self.thresholds,
                n_worst=self.n_worst,
            )
        if groups:
            _echo_groups(echo, X, self.metric, predictions, output_range)
        return found, None if ids is None else ids.reset_index(drop=True)

    def of_partitions(self, table: Path, cluster: str | None) -> tuple[Audit, Any]:
        """Audit a table in partitions, here or on a cluster; and the ids of the worst pairs."""
        import numpy as np

        from likewise import audit as search
        from likewise.distributed.cluster import connected
        from likewise.distributed.frames import DaskTable, workers_for

        people = DaskTable.of(table)
        if self.id_column is not None:
            people.check_columns([self.id_column], "the --id")
        with connected(cluster or workers_for(table)):
            found = search(
                self.model,
                table,
                self.metric,
                predictions=self.scores,
                output_range=self.output_range,
                thresholds=self.thresholds,
                n_worst=self.n_worst,
            )
            if self.id_column is None:
                return found, None
            rows = np.unique(found.violations[["row_a", "row_b"]].to_numpy())
            return found, people.values_at(self.id_column, rows)


def _echo_groups(echo: Output, X: pd.DataFrame, metric: Any, predictions: Any, output_range: Any) -> None:
    """Print who is favoured in the pairs that exceed the metric, and how many there are in the population."""
    from likewise import audit_groups

    two_classes = getattr(predictions, "ndim", 1) == 2 and predictions.shape[1] == 2
    scores = predictions.iloc[:, -1] if two_classes else predictions
    found = audit_groups(None, X, metric, predictions=scores, output_range=output_range)
    low, high = found.rate_interval
    echo(
        f"Of the pairs of {found.n_samples:,} people, {found.rate:.3%} exceed the distance; {low:.3%} to {high:.3%} in "
        "the population, at 95%.",
        rate=found.rate,
        rate_interval=list(found.rate_interval),
    )
    if len(found.groups):
        echo("\nWho is favoured, in pairs that exceed the distance and differ in a column of weight 0:")
        echo.table(found.groups, "groups")
        echo("p_value: of a share this far from one half, if the values were shuffled among the people.\n")


def _predictions(model: Any, people: pd.DataFrame, table: Path) -> tuple[Any, tuple[float, float] | None]:
    """Predictions of a model for the people, and its output range."""
    import pandas as pd

    from likewise._fit_validation import model_columns
    from likewise.cli.table_io import named

    absent = [name for name in model.required_features_ if name not in people.columns]
    if absent:
        raise FileError(f"{named(table)} has no column {absent[0]!r}, which the model needs.")
    X, guarantee = people[model_columns(model, people)], model.guarantee_
    if guarantee.output_range is None:
        return pd.DataFrame(model.predict_proba(X), columns=model.classes_), None
    # A mean may leave the range by a rounding error.
    return model.predict(X).clip(*guarantee.output_range), guarantee.output_range


def answers_of(model: Any, people: pd.DataFrame) -> Any:
    """What a model of another system answers for the people."""
    import numpy as np
    import pandas as pd

    if hasattr(model, "predict_proba"):
        return pd.DataFrame(model.predict_proba(people), columns=getattr(model, "classes_", None))
    return np.asarray(model.predict(people) if hasattr(model, "predict") else model(people))


def _pairs_of(pairs: pd.DataFrame, id_column: str | None, names: pd.Series[Any]) -> pd.DataFrame:
    """Pairs with people by id, if there is an id column; without the outcome, if it has no name."""
    found = pairs if pairs["outcome"].notna().any() else pairs.drop(columns="outcome")
    if id_column is None:
        return found
    found = found.drop(columns=["row_a", "row_b"])
    for position, side in enumerate("ab"):
        found.insert(position, f"{id_column}_{side}", names.loc[pairs[f"row_{side}"]].to_numpy())
    return found


def _points(share: float) -> str:
    """A share of 1 in percentage points."""
    return f"{100 * share:.3g} {'point' if share == 0.01 else 'points'}"


def _count(n: int) -> str:
    return f"{n:,} {'pair' if n == 1 else 'pairs'}"
