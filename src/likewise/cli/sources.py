"""Tables that commands read, with the options that say how: people for a model, or outcomes to learn from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from likewise.cli import console as options
from likewise.cli.console import Dialect, Note, Output, as_one, next_command
from likewise.exceptions import FileError, InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

    from likewise.cli.category_shapes import GivenShapes
    from likewise.cli.dataset import Dataset, Range, Task
    from likewise.metric_file import MetricFile
    from likewise.metrics.table import TableMetric

# Everything heavy is imported inside the methods: `likewise --help` must answer at once.


# -- people for a model -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PeopleSource:
    """The options of a command that reads people for a model."""

    table: Path
    id_column: str | None
    dialect: Dialect
    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    scores: str | None = None
    categories: Path | None = None

    def load(self, echo: Output, model: Any) -> tuple[pd.DataFrame, pd.Series[Any] | None]:
        """The columns that the model takes, as it takes them; and the names of the people.

        A model that does not know its columns takes all of them but the names, the scores and those to be left out.
        Raises if there are scores that the model does not reproduce.
        """
        from likewise.ask import known_columns
        from likewise.base import ConstrainedEstimator
        from likewise.cli.column_kinds import Faults, Kinds, as_kinds, infer_kinds
        from likewise.cli.model_spelling import SpellingOfModel
        from likewise.cli.table_io import Unseen, check_columns, named, read_table

        kinds = Kinds.of_model(model) if isinstance(model, ConstrainedEstimator) else None
        beside, where = [name for name in (self.id_column, self.scores) if name is not None], named(self.table)
        own = known_columns(model) or list(getattr(model, "feature_names_", []))
        unnamed = len(own) if own == [str(i) for i in range(len(own))] else 0  # CatBoost counts columns without names
        own = [] if unnamed else own

        def taken(names: list[str]) -> list[str]:
            return own or [name for name in names if name not in (*beside, *self.drop)]

        def as_text(names: list[str]) -> list[str]:
            known = SpellingOfModel.of(model, taken(names)).columns if kinds is None else kinds.as_text
            return [*self.categorical, *beside, *known]

        whole = read_table(self.table, self.dialect, echo.note, as_text=as_text, padded=kinds is None)
        check_columns(whole, [*beside, *self.drop], self.table)
        columns = taken(list(whole.columns))
        needed = getattr(model, "required_features_", columns)  # our own models know which columns may be absent
        absent = [name for name in columns if name not in whole.columns and name in needed]
        if absent:
            raise FileError(f"{where} has no column {absent[0]!r}, which the model takes.")
        columns = [name for name in columns if name in whole.columns]
        names = None if self.id_column is None else whole[self.id_column].reset_index(drop=True)
        n_taken = unnamed or (len(columns) if own else getattr(model, "n_features_in_", len(columns)))
        if n_taken != len(columns):
            raise InvalidInputError(
                f"The model takes {n_taken} columns without names; {where} has {len(columns)}: {columns}. "
                + ("Leave out the others with --drop." if n_taken < len(columns) else "Add the missing ones.")
            )
        chosen = whole[columns]
        if kinds is not None:
            faults = Faults(names)
            people = as_kinds(chosen, kinds, self.dialect, faults, echo.note)
            faults.stop(where, echo.note, of_model=True)
            Unseen.check(model, people, where, echo.note)
        else:
            spelling = SpellingOfModel.of(model, columns)
            others = chosen.drop(columns=spelling.columns)
            read, _ = infer_kinds(others, self.dialect, echo.note, categorical=self.categorical)
            people = spelling.applied_to(
                chosen.assign(**{str(name): column for name, column in read.items()}), self.dialect, where, echo.note
            )
            spelling.refuse_unknown_text(people, where)
        if self.scores is not None:
            self._check_scores(echo, model, people, whole[self.scores], names)
        return people, names

    def _check_scores(
        self, echo: Output, model: Any, people: pd.DataFrame, scores: pd.Series[Any], names: pd.Series[Any] | None
    ) -> None:
        """Raise if the model's answers are not the scores in the table, as far as these are written out."""
        from likewise.cli.column_kinds import read_numbers
        from likewise.cli.models import answers_of

        given = read_numbers(scores, self.dialect)
        answers = np.asarray(answers_of(model, people))
        found = answers[:, 0] if answers.ndim == 2 and answers.shape[1] == 1 else answers
        if answers.ndim == 2 and answers.shape[1] == 2:  # scores are of either class: of the one that fits better
            misses = np.abs(answers - np.nan_to_num(given.values)[:, None]).max(axis=0)
            found = answers[:, int(misses[1] <= misses[0])]
        if found.ndim != 1 or found.dtype.kind not in "biuf" or np.isnan(given.values).any():
            raise InvalidInputError(
                f"--scores beside a model must be one number per person; {self.scores!r} has blanks or text, or the "
                "model answers with labels or several classes. Leave --scores out."
            )
        digits = scores.astype(str).str.extract(r"[.,](\d+)$", expand=False).str.len().fillna(0)
        step = 10.0 ** -float(np.quantile(digits, 0.95, method="lower"))  # a few may be sums, with more digits
        tolerance = step / 2 + 1e-6 * max(1.0, float(np.abs(given.values).max()))
        gaps = np.abs(found - given.values)
        worst, n = int(gaps.argmax()), int((gaps > tolerance).sum())
        if n:
            who = f"row {worst + 1}" if names is None else f"{self.id_column} {names[worst]}"
            raise InvalidInputError(
                f"The model does not reproduce --scores {self.scores}: for {n:,} of {len(gaps):,} people its answer is "
                f"off by more than {tolerance:.2g} (half the last digit of the scores, and rounding of the model); "
                f"most for {who}, by {gaps[worst]:.3g}: {found[worst]:.6g} instead of {given.values[worst]:.6g}. It is "
                "another model, or was given other people: look at spellings, units and categories."
            )
        echo(
            f"The model reproduces the scores of all {len(gaps):,} people, up to {tolerance:.2g}.",
            scores_reproduced_within=tolerance,
        )


categories = click.option(
    "--categories", type=options.FILE, help="JSON file with the categories that a model's file lacks."
)
reads_people = as_one(
    PeopleSource,
    "source",
    click.argument("table", type=options.TABLE),
    options.id_column,
    options.categorical,
    options.drop,
    click.option(
        "--scores",
        help="Column with the scores of another system, between 0 and 1; beside --model, those that it must reproduce.",
    ),
    categories,
    options.reads_table,
)
"""Add a table and how to read it for a model, passed to the function as one `source`."""


# -- people and outcomes, to learn from within a metric ---------------------------------------------------------------


@dataclass(frozen=True)
class DatasetSource:
    """The options of a command that learns from a table within a metric."""

    table: Path
    target: str
    metric_file: Path
    task: Task | None
    output_range: Range | None
    id_column: str | None
    dialect: Dialect
    keep: tuple[str, ...] = ()

    def load(self, note: Note, *, natural: bool = False, weights: str | None = None) -> tuple[Dataset, TableMetric]:
        """Read the columns that the metric names, and the metric restricted to those that are learned from.

        Left out are empty columns and, unless a given model needs them (`natural`), columns of names.
        """
        from likewise.cli.dataset import drop_empty_columns, drop_names, range_for_dataset, read_dataset, resolve_range
        from likewise.cli.doubtful import note_telling
        from likewise.cli.seen_people import Unseen
        from likewise.cli.table_io import hinted
        from likewise.metric_file import read_metric_file

        file = read_metric_file(self.metric_file)
        categorical = list(file.metric.categorical)
        for name in self.keep:
            if name not in categorical:
                raise InvalidInputError(
                    f"--keep must name categorical columns of the metric, {categorical}; got {name!r}."
                )
        if file.not_forced:
            note(
                f"{', '.join(file.not_forced)}: weight 0 in {self.metric_file}, since the people it was revealed from "
                "do not force one. Nobody has decided that: give a weight, or the model will not use the column."
            )
        people = PeopleSource(self.table, self.id_column, self.dialect)
        how: Any = {"task": self.task, "metric": file.metric, "natural": natural, "weights": weights}
        data = read_dataset(people, self.target, note, **how)
        design = next_command("design", hinted(self.table), "--target", self.target)
        unseen = Unseen.find(file, data.X, self.metric_file, design)
        X = drop_empty_columns(data.X, note)
        if not natural:
            X = drop_names(X, categorical, self.keep, note, option="--keep")
        limits = resolve_range(file, self.output_range, self.metric_file)
        limits = range_for_dataset(data, limits, self.metric_file, note)
        # The metric of some of its columns is nowhere larger, so its guarantee also holds for the whole metric.
        kept = {
            key: {name: value for name, value in part.items() if name in X.columns}
            for key, part in file.metric.get_params().items()
            if isinstance(part, dict)
        }
        data = replace(data, X=X, output_range=limits, unseen=unseen, favourable=file.favourable)
        weighty = X.drop(columns=[name for name in file.metric.hidden if name in X and name not in file.protected])
        cure = f"Give {{}} the weight 0 in {self.metric_file}, or take it out."
        note_telling(replace(data, X=weighty), self.target, file.protected, note, cure)
        return data, file.metric.with_params(**kept)


def reads_dataset(table_type: click.Path) -> Callable[..., Any]:
    """Add a table, its target and a metric file, passed to the function as one `source`."""
    return as_one(
        DatasetSource,
        "source",
        click.argument("table", type=table_type),
        options.target,
        options.task,
        click.option("--metric", "metric_file", type=options.FILE, required=True, help="Metric file (TOML)."),
        options.output_range,
        options.id_column,
        click.option(
            "--keep",
            multiple=True,
            help="Column to learn from though it has more than 300 categories, or more than 50 with fewer than 20 "
            "people each on average, such as names, which are left out otherwise; may be given several times.",
        ),
        options.reads_table,
    )


# -- people and outcomes, to make a metric from -----------------------------------------------------------------------


@dataclass(frozen=True)
class DesignSource:
    """The options of a command that makes a metric from a table."""

    table: Path
    target: str | None
    task: Task | None
    output_range: Range | None
    drop: tuple[str, ...]
    categorical: tuple[str, ...]
    id_column: str | None
    dialect: Dialect
    favourable: str | None = None
    special: Mapping[str, list[float]] = field(default_factory=dict)

    def without_codes(self, X: pd.DataFrame) -> pd.DataFrame:
        """People to learn from: special codes as blanks."""
        from likewise.kernel.columns import is_numeric

        wrong = [name for name in self.special if name not in X or not is_numeric(X[name])]
        if wrong:
            raise InvalidInputError(f"--special must name columns of numbers of the table; {wrong[0]!r} is none.")
        blank = {name: X[name].astype(float).mask(X[name].isin(codes)) for name, codes in self.special.items()}
        return X.assign(**blank)

    @property
    def codes_said(self) -> str:
        """How special codes were read, for the origin of a metric."""
        names = ", ".join(self.special)
        return f" Special codes of {names} were learned from as blanks, and cost what a blank does." if names else ""

    def with_codes(self, metric: TableMetric) -> TableMetric:
        """The metric with the special codes, each at the weight of a blank."""
        known = {name: codes for name, codes in self.special.items() if name in metric.numeric}
        special = {name: dict.fromkeys(codes, metric.missing.get(name) or 1.0) for name, codes in known.items()}
        return metric.with_params(special=special)

    @property
    def people(self) -> PeopleSource:
        """The table, without the target."""
        return PeopleSource(self.table, self.id_column, self.dialect, self.categorical, self.drop)

    def load(
        self,
        echo: Output,
        *,
        scores: str | None = None,
        orders: Mapping[str, Sequence[str]] = MappingProxyType({}),
        weights: str | None = None,
    ) -> Dataset:
        """Read people and outcomes, or else a column of scores, and the range of a regression."""
        from likewise.cli.dataset import drop_empty_columns, range_for_metric, range_of_scores, read_dataset

        task = self.task if scores is None else "regression"
        how: Any = {"task": task, "orders": orders, "weights": weights}
        data = read_dataset(self.people, scores or str(self.target), echo.note, **how)
        find_range = range_for_metric if scores is None else range_of_scores
        return replace(data, X=drop_empty_columns(data.X, echo.note), output_range=find_range(data, self.output_range))

    def described(self, echo: Output, X: pd.DataFrame, shapes: GivenShapes, named: Sequence[str]) -> pd.DataFrame:
        """People with the shapes of categories; without columns of names, but for those `named` somewhere."""
        from likewise.cli.dataset import drop_names
        from likewise.cli.doubtful import note_doubtful
        from likewise.inspection.baselines import categorical_columns

        X, named = shapes.applied_to(X), (*self.categorical, *shapes.columns, *named)
        X = drop_names(X, categorical_columns(X), named, echo.note, option="--categorical")
        note_doubtful(X, echo.note)
        return X

    def note_telling(self, echo: Output, data: Dataset, protected: Sequence[str], out: Path) -> None:
        """Name columns that tell the outcome or what is protected, and the command that leaves them out."""
        from likewise.cli.doubtful import note_telling
        from likewise.io import unused_path

        leaks = note_telling(data, str(self.target), protected, echo.note, "Without it: --drop {}.")
        if leaks:
            drops = [word for name in leaks for word in ("--drop", name)]
            other = unused_path(out.with_name(f"{out.stem}-2{out.suffix}"))
            echo(f"The same without {', '.join(leaks)}: {options.command_as_run(*drops, '--out', other)}", leaks=leaks)

    def favourable_of(self, echo: Output, data: Dataset, before: MetricFile | None) -> str:
        """What is favourable, for a metric file: as in the replaced one, given, known, or asked; empty if unknown."""
        from likewise.cli.models import settle_favourable

        stored = "" if before is None or self.favourable is not None else before.favourable
        found = settle_favourable(echo, self.favourable, replace(data, favourable=stored), str(self.target))
        return "" if found is None else str(found)


def makes_metric(*, needs_target: bool, needs_table: bool = True, codes: bool = True) -> Callable[..., Any]:
    """Add a table, its target and how to read them (special `codes`, too), passed to the function as one `source`."""
    target = options.target if needs_target else click.option("--target", help="Column with the outcome to predict.")
    return as_one(
        DesignSource,
        "source",
        click.argument("table", type=options.FILE, required=needs_table),
        target,
        options.task,
        options.output_range,
        options.drop,
        options.categorical,
        options.id_column,
        options.favourable,
        *([options.special] if codes else []),
        options.reads_table,
    )
