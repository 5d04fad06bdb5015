"""What a model says about people in partitions, and how these people become points.

A worker sees one partition. What must be known of all of them, such as categories, is found in a pass before.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from likewise._frozen import Frozen
from likewise._typing import FloatArray, IntArray
from likewise.errors import InvalidInputError, InvalidTypeError
from likewise.metrics.abstract import Metric
from likewise.metrics.coding import Coding
from likewise.pairs.points import Points
from likewise.pairs.population import asked, given
from likewise.partitions.parquet import Partition, StoredTable
from likewise.partitions.surveying import digest, digest_all, fixed_sample
from likewise.partitions.workforce import Workforce


@dataclass(frozen=True, eq=False)
class Known(Frozen):
    """How people of a whole table become points: a coding, and a small table that stands for the whole."""

    metric: Metric
    coding: Coding
    table: pd.DataFrame

    @cached_property
    def gappy(self) -> IntArray:
        """Columns in which numbers are missing for someone."""
        return np.array(self.metric.people(self.table, self.coding).missing(), dtype=np.int64)

    def points(self, table: pd.DataFrame) -> Points:
        """Some people as points."""
        return Points.among(self.metric.people(table, self.coding), self.gappy)


@dataclass(frozen=True, eq=False)
class Interview(Frozen):
    """Reads people of a partition and asks the model about them.

    Attributes
    ----------
    model : object with predict_proba or predict, or callable, or None
    metric : Metric
    names : list of str
        Columns of the metric, in the order of the table.
    asked : list of str
        Columns that the model is given.
    scores : str or None
        Column with predictions, in place of a model.
    output_range : tuple of float, or None
    known : Known, or None
        How people become points, once it is known.
    """

    model: Any
    metric: Metric
    names: list[str]
    asked: list[str]
    scores: str | None
    output_range: tuple[float, float] | None
    known: Known | None = None

    @classmethod
    def of(cls, model: Any, people: StoredTable, metric: Metric, predictions: Any, output_range: Any) -> Interview:
        """Find out which columns are needed, and whether they are there."""
        if predictions is not None and not isinstance(predictions, str):
            raise InvalidTypeError(
                "predictions must name a column of the table, if X is a path; got "
                f"{type(predictions).__name__}. Write them into the table first."
            )
        names = columns_under(people, metric, aside=predictions)
        taken = [] if predictions is not None else columns_for(model, people, names)
        people.check_columns([] if predictions is None else [predictions], "the predictions")
        return cls(model, metric, names, taken, predictions, output_range)

    @property
    def columns(self) -> list[str]:
        """All columns to be read."""
        return list(dict.fromkeys([*self.names, *self.asked, *([] if self.scores is None else [self.scores])]))

    def outputs(self, table: pd.DataFrame) -> tuple[FloatArray, bool]:
        """Outputs of people, and whether they are probabilities."""
        if self.scores is not None:
            return given(table[self.scores], len(table), self.output_range)
        rows: Any = table[self.asked]
        if not self.metric.takes_tables and not hasattr(self.model, "feature_names_in_"):
            rows = rows.to_numpy(dtype=np.float64)
        classes = getattr(self.model, "classes_", None)
        if classes is None:
            return asked(self.model, rows, self.output_range, _NoClasses())
        return asked(self.model, rows, self.output_range, classes)

    def read(self, table: pd.DataFrame) -> tuple[FloatArray, FloatArray, bool]:
        """Points, outputs, and whether these are probabilities."""
        assert self.known is not None
        outputs, probable = self.outputs(table)
        return self.known.points(table[self.names]).X, outputs, probable


def columns_for(model: Any, people: StoredTable, names: list[str]) -> list[str]:
    """Columns of a table that a model is given; one of ours does without those that must not matter."""
    taken = list(getattr(model, "feature_names_in_", names))
    people.check_columns(getattr(model, "needed_columns_", taken), "which the model needs")
    return [name for name in taken if name in people.columns]


def columns_under(people: StoredTable, metric: Metric, aside: str | None) -> list[str]:
    """Columns of a table that a metric is about; all but the one `aside`, if the metric names none."""
    known = list(getattr(metric, "columns", None) or getattr(metric, "feature_names", None) or ())
    hidden = getattr(metric, "hidden", ())
    people.check_columns([name for name in known if name not in hidden], "which the metric names")
    if metric.takes_tables:
        return [name for name in people.columns if name in known]
    return known or [name for name in people.columns if name != aside]


class _NoClasses:
    """Stands for the classes of a model that does not name them: they cannot be gathered batch by batch."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise InvalidInputError(
            "model must have classes_ if it answers with labels, since no worker sees the labels of everyone. Give it "
            "predict_proba, or a function that returns one number per row."
        )


def survey(
    interview: Interview, people: StoredTable, size: int, work: Workforce
) -> tuple[Known, pd.DataFrame, FloatArray]:
    """How people become points; some people (the same always), and what is said about them."""
    metric, head = interview.metric, people.head(interview.names)
    numbers = metric.coding(head).is_number
    categories = [name for name, number in zip(interview.names, numbers, strict=True) if not number]
    shares = people.shares(fixed_sample(len(people), size))
    seen = list(work.map(partial(_look, interview, categories), shares))
    table = digest_all((look.table for look in seen), categories)
    some = pd.concat([look.some for look in seen if len(look.some)], ignore_index=True)
    return Known(metric, metric.coding(table), table), some, np.concatenate([x.outputs for x in seen if len(x.some)])


class _Glance(NamedTuple):
    table: pd.DataFrame
    some: pd.DataFrame
    outputs: FloatArray


def _look(interview: Interview, categories: list[str], task: tuple[Partition, IntArray]) -> _Glance:
    part, chosen = task
    tables, some = [], []
    for start, frame in part.batches(interview.columns):
        tables.append(digest(frame[interview.names], categories))
        here = chosen[(chosen >= start) & (chosen < start + len(frame))] - start
        some.append(frame.iloc[here])
    rows = pd.concat(some, ignore_index=True)
    outputs = interview.outputs(rows)[0] if len(rows) else np.empty((0, 0))
    return _Glance(digest_all(tables, categories), rows[interview.names], outputs)
