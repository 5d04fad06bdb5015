"""People, outcomes and the output range of a command, from a table and a metric file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._typing import FloatArray, IntArray
from likewise.cli.column_kinds import Faults, Kinds, as_kinds, as_ordered, infer_kinds
from likewise.cli.console import Note, no_note
from likewise.cli.seen_people import Unseen
from likewise.cli.sources import PeopleSource
from likewise.cli.table_io import check_columns, named, read_table
from likewise.exceptions import FileError, InvalidInputError
from likewise.kernel.columns import UNSEEN, CategoricalColumn, is_numeric
from likewise.metric_file import MetricFile
from likewise.metrics.table import TableMetric

_FEW_CLASSES, _MOST_CLASSES = 10, 50
_MANY_CATEGORIES, _FEW_PEOPLE = 50, 20  # a column with more categories and fewer people in each identifies people
_MOST_CATEGORIES = 300  # a fit takes time with the cube of them
_RARE = 0.05  # share of people below which classes beyond the first two may be typos

Task = Literal["classification", "regression"]
Range = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Dataset:
    """People and outcomes to learn from. `units` are of columns that were dates; `output_range` of a regression.

    `weights` are how much people count, None for all alike; `unseen` is whom of them the metric has not seen;
    `favourable` is what its file says.
    """

    X: pd.DataFrame
    y: npt.NDArray[Any]
    task: Task
    units: dict[str, str]
    output_range: Range | None = None
    unseen: Unseen = field(default_factory=Unseen)
    favourable: str = ""
    weights: FloatArray | None = None

    @property
    def is_classification(self) -> bool:
        """Whether outcomes are classes."""
        return self.task == "classification"

    def among(self, rows: IntArray) -> Dataset:
        """Those in some rows, of whom the metric has seen nobody less than of all."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, X=self.X.iloc[rows], y=self.y[rows], weights=weights, unseen=self.unseen.among())


def read_dataset(
    source: PeopleSource,
    target: str,
    note: Note = no_note,
    *,
    task: Task | None = None,
    metric: TableMetric | None = None,
    classes: Sequence[Any] | None = None,
    orders: Mapping[str, Sequence[str]] = MappingProxyType({}),
    name_rows: bool = False,
    natural: bool = False,
    weights: str | None = None,
) -> Dataset:
    """Read a table and split off its target; with a metric, only the columns that it names.

    Whether a column is categorical, the metric says; without one, the source and the values. `orders` are ordered
    categories by column. The id column is left out; with `name_rows` it, or the row, becomes the index, as "id 17".
    Outcomes become members of `classes`, if given. With `natural`, categories that are all integers or booleans stay
    so, for a model trained on these.
    """
    where = named(source.table)
    if metric is not None and target in metric.columns:
        raise FileError(f"The metric names the target {target!r} as a column of people. Is it the right --target?")
    others = [target, *([] if weights is None else [weights]), *(name for name in source.drop if name != target)]
    people = PeopleTable.read(source, metric, note, others=others, orders=orders, natural=natural)
    table, X = people.whole, people.X
    if not len(table):
        raise FileError(f"{where} has no rows.")
    if table[target].isna().any():
        rows = np.flatnonzero(table[target].isna())
        raise FileError(
            f"{where}: the target {target!r} is missing in {len(rows):,} of {len(table):,} rows, the first of them row "
            f"{rows[0] + 1}. Drop these first."
        )
    if name_rows:
        X = X.set_axis(people.named_rows)
    if not X.shape[1]:
        raise FileError(f"{where} has no column but the target, so there is nothing to predict it from.")
    outcomes = infer_kinds(table[[target]], source.dialect, note)[0][target]
    if classes is not None:  # outcomes as the classes with the same text, if there are no others
        known = CategoricalColumn.learn(pd.Series(classes, name=outcomes.name))
        codes = known.encode(outcomes)
        if not (codes == UNSEEN).any():
            outcomes = pd.Series(known.decode(codes), index=outcomes.index, name=outcomes.name)
    elif outcomes.nunique() < 2 and not name_rows:
        raise FileError(
            f"{where}: the target {target!r} is {str(outcomes.iloc[0])!r} for everyone, so there is nothing to learn."
        )
    task = infer_task(outcomes, where, task)
    y = outcomes.to_numpy()
    if task == "classification":
        _note_rare_classes(outcomes, note)
    y = y if task == "classification" else y.astype(np.float64)
    counts = None if weights is None else people.scores(weights).to_numpy(np.float64)
    return Dataset(X, y, task, dict.fromkeys(people.dates, "days"), weights=counts)


def _note_rare_classes(outcomes: pd.Series[Any], note: Note) -> None:
    counts = outcomes.value_counts()
    rare = counts.iloc[2:]
    if len(rare) and rare.sum() < _RARE * len(outcomes):
        shown = ", ".join(f"{str(value)!r} ({count:,})" for value, count in counts.iloc[:5].items())
        note(
            f"The target {str(outcomes.name)!r} has {len(counts)} different values: {shown}. If it should have two, "
            "correct the others, or leave these rows out."
        )


def infer_task(target: pd.Series[Any], where: str, task: Task | None = None) -> Task:
    """The task of a target: as given, or by its values where these leave no doubt."""
    n_values, name = target.nunique(), target.name
    numbers = is_numeric(target)
    if task == "regression" and not numbers:
        raise FileError(f"{where}: the target {name!r} must hold numbers for --task regression; it holds text.")
    if task == "classification" or not numbers:
        if n_values > _MOST_CLASSES:
            raise FileError(
                f"{where}: the target {name!r} has {n_values} different values, too many for classes (at most "
                f"{_MOST_CLASSES}). Is it the right column?"
            )
        return "classification"
    if task == "regression":
        return "regression"
    whole = bool((target % 1 == 0).all())
    if n_values <= _FEW_CLASSES and (whole or n_values <= 2):
        return "classification"
    if n_values > _MOST_CLASSES or not whole:
        return "regression"
    raise FileError(
        f"{where}: the target {name!r} has {n_values} different whole numbers, which could be class labels or "
        "numeric. Say --task classification or --task regression."
    )


@dataclass(frozen=True, eq=False)
class PeopleTable:
    """A table, and its people `X` as a metric reads them, or as their values say; `ids` name the people.

    `dates` are columns of dates, which became days.
    """

    source: PeopleSource
    whole: pd.DataFrame
    X: pd.DataFrame
    ids: pd.Series[Any] | None
    dates: Sequence[str] = ()

    @classmethod
    def read(
        cls,
        source: PeopleSource,
        metric: TableMetric | None,
        note: Note,
        *,
        others: Sequence[str] = (),
        as_text: Sequence[str] = (),
        orders: Mapping[str, Sequence[str]] = MappingProxyType({}),
        of_model: Kinds | None = None,
        natural: bool = False,
    ) -> PeopleTable:
        """Read a table with the columns of a metric, or with all; beside them an id column and `others`.

        Without a metric, the categorical columns of the source and those in `orders` hold categories, and the values
        say it of the rest. The columns `as_text` are read as text. Orders and categories that the metric does not list
        are those `of_model`, a model to be asked as well. With `natural`, categories that are all integers or booleans
        stay so.
        """
        path, dialect, of_model = source.table, source.dialect, of_model or Kinds()
        ids = [] if source.id_column is None else [source.id_column]
        coded = [*source.categorical, *orders] if metric is None else []
        kinds = None if metric is None else Kinds.of_metric(metric)
        texts = coded if kinds is None else [*kinds.as_text, *of_model.as_text]
        whole = read_table(path, dialect, note, as_text=[*texts, *as_text, *ids], padded=kinds is None)
        check_columns(whole, [*others, *coded, *ids], path)
        names = None if source.id_column is None else whole[source.id_column]
        if metric is None or kinds is None:
            X, dates = infer_kinds(whole.drop(columns=[*others, *ids]), dialect, note, categorical=coded)
            X = X.assign(**{name: as_ordered(X[name], listed) for name, listed in orders.items()})
            return cls(source, whole, X, names, dates)
        kinds = replace(kinds, orders={**of_model.orders, **kinds.orders}, known={**kinds.known, **of_model.known})
        faults = Faults(names)
        known, listed = [str(name) for name in whole.columns if name not in (*others, *ids)], metric.columns
        absent = [name for name in listed if name not in known and name not in (*metric.hidden, *others, *ids)]
        if absent:
            raise FileError(
                f"{named(path)} has no column {absent[0]!r}, which the metric names; it has {list(whole.columns)}."
            )
        if unnamed := [name for name in known if name not in listed]:
            it = "it" if len(unnamed) == 1 else "them"
            note(f"Left out, since the metric does not name {it}: {', '.join(unnamed)}.")
        chosen = whole[[name for name in whole.columns if name in listed]]
        X = as_kinds(chosen, kinds, dialect, faults, note, natural=natural)
        faults.stop(named(path), note)
        return cls(source, whole, X, names)

    @property
    def named_rows(self) -> list[str]:
        """What people are called on a page, as in "id 17", or "row 17", the first of the table being row 1."""
        names = range(1, len(self.X) + 1) if self.ids is None else self.ids
        return [f"{self.source.id_column or 'row'} {name}" for name in names]

    def scores(self, name: str) -> pd.Series[Any]:
        """A column of scores, one number per person."""
        faults = Faults(self.ids)
        found = as_kinds(self.whole[[name]], Kinds([name], complete=[name]), self.source.dialect, faults)
        faults.stop(named(self.source.table), of_scores=True)
        return found[name]


def drop_empty_columns(X: pd.DataFrame, note: Note) -> pd.DataFrame:
    """Drop columns without a single value, from which nothing can be learned."""
    empty = [str(name) for name in X.columns if X[name].isna().all()]
    for name in empty:
        note(f"Column {name!r} is entirely empty and left out.")
    if len(empty) == X.shape[1]:
        raise FileError("Every column but the target is entirely empty, so there is nothing to predict it from.")
    return X.drop(columns=empty)


def drop_names(
    X: pd.DataFrame, columns: Sequence[str], keep: Collection[str], note: Note, *, option: str
) -> pd.DataFrame:
    """Drop categorical columns of more than 300 categories, or of more than 50 with fewer than 20 people each.

    A model would memorise people by them. Columns in `keep`, which the `option` names, stay.
    """
    names = []
    for name in [name for name in columns if name in X.columns and name not in keep]:
        n_categories, n_people = X[name].nunique(), int(X[name].notna().sum())
        few_each = n_categories > _MANY_CATEGORIES and n_people < _FEW_PEOPLE * n_categories
        if few_each or n_categories > _MOST_CATEGORIES:
            names.append(name)
            note(
                f"Column {name!r} is left out: it has {n_categories:,} categories for {n_people:,} people. {option} "
                f"{name} learns from it anyway; or group its categories first."
            )
    if len(names) == X.shape[1]:
        raise FileError(
            f"Every column nearly identifies individuals, so there is nothing to learn from: pass {option} {names[0]}."
        )
    return X.drop(columns=names)


# -- the range of which the weights of a regression are shares --------------------------------------------------------


def resolve_range(file: MetricFile, option: Range | None, metric_file: str | Path) -> Range | None:
    """The output range of a metric file, or --range, which must not contradict the file."""
    _check_order(option)
    if None not in (option, file.output_range) and option != file.output_range:
        raise InvalidInputError(
            f"--range {_between(option)} contradicts {metric_file}, whose weights are shares of the range "
            f"{_between(file.output_range)}. Leave --range out, or change [output] range in the file."
        )
    return file.output_range if option is None else option


def range_for_dataset(data: Dataset, limits: Range | None, metric_file: str | Path, note: Note) -> Range | None:
    """The output range of a dataset: as resolved, or for a regression that of the table."""
    if data.is_classification:
        if limits is not None:
            raise InvalidInputError(
                f"The range {_between(limits)} is for a regression; this target has classes. Leave --range out, take "
                f"[output] out of {metric_file}, or say --task regression."
            )
        return None
    if limits is None:
        low, high = float(data.y.min()), float(data.y.max())
        note(
            f"{metric_file} has no output range, so its weights are taken as shares of the range in this table, "
            f"{_between((low, high))}. Say --range {low:g} {high:g}, or write it into the file: [output] range."
        )
        return low, high
    outside = int(((data.y < limits[0]) | (data.y > limits[1])).sum())
    if outside:
        note(f"{outside:,} outcomes lie outside the range {_between(limits)}: predictions are clipped to it.")
    return limits


def range_for_metric(data: Dataset, option: Range | None) -> Range | None:
    """The output range of a new metric: --range, or that of the outcomes, rounded outwards."""
    if option is None:
        return None if data.is_classification else rounded_range(data.y)
    if data.is_classification:
        raise InvalidInputError("--range is for a regression; this target has classes. Leave it out.")
    _check_order(option)
    return option


def range_of_scores(data: Dataset, option: Range | None) -> Range | None:
    """The range of given scores: --range, or None for probabilities."""
    low, high = data.y.min(), data.y.max()
    if option is None and (low < 0 or high > 1):
        raise InvalidInputError(
            f"--scores must be probabilities, between 0 and 1; got {low:g} to {high:g}. For other scores give --range "
            "LOWEST HIGHEST."
        )
    return option


def _check_order(option: Range | None) -> None:
    if option is not None and not option[0] < option[1]:
        raise InvalidInputError(f"--range must be two numbers, the lowest first; got {option[0]:g} {option[1]:g}.")


def rounded_range(y: npt.NDArray[Any]) -> Range:
    """The range of some numbers, rounded outwards to two digits of its width.

    Examples
    --------
    >>> rounded_range(np.array([12.34, 297.8])), rounded_range(np.array([0.113, 0.87]))
    ((10.0, 300.0), (0.11, 0.87))
    """
    low, high = float(y.min()), float(y.max())
    if low == high:
        raise InvalidInputError(f"The target is {low:g} for everyone, so there is nothing to predict. Say --range.")
    digits = 1 - int(np.floor(np.log10(high - low)))
    step = 10.0**-digits
    return round(float(np.floor(low / step)) * step, digits), round(float(np.ceil(high / step)) * step, digits)


def _between(limits: Range | None) -> str:
    low, high = limits or (0.0, 1.0)
    return f"{low:g} to {high:g}"
