"""What a model says about people in partitions, and how these people become points.

A worker sees one partition. What must be known of all of them, such as categories, is found in a pass before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from likewise._frozen import Frozen
from likewise._typing import FloatArray, IntArray
from likewise.errors import InvalidInputError, InvalidTypeError
from likewise.metrics.abstract import Metric
from likewise.metrics.coding import Coding
from likewise.metrics.people import People
from likewise.pairs.points import Points
from likewise.pairs.population import asked, given
from likewise.partitions.parquet import BATCH, StoredTable
from likewise.partitions.surveying import fixed_sample, survey
from likewise.partitions.workforce import Workforce


@dataclass(frozen=True, eq=False)
class Known(Frozen):
    """How people of a whole table become points.

    Attributes
    ----------
    coding : Coding
    table : DataFrame
        A digest, which stands for the whole.
    metric : Metric, optional
        Raises where it says nothing of people.
    """

    coding: Coding
    table: pd.DataFrame
    metric: Metric | None = None

    @cached_property
    def gappy(self) -> IntArray:
        """Columns in which numbers are missing for someone."""
        return np.array(self._read(self.table).missing(), dtype=np.int64)

    def points(self, table: pd.DataFrame) -> Points:
        """Some people as points."""
        return Points.among(self._read(table), self.gappy)

    def _read(self, table: pd.DataFrame) -> People:
        return People.read(table, self.coding) if self.metric is None else self.metric.people(table, self.coding)


@dataclass(frozen=True, eq=False)
class Interview(Frozen):
    """Reads people of a partition and asks the model about them.

    Attributes
    ----------
    model : object with predict_proba or predict, or callable, or None
    names : list of str
        Columns that distances are about, in the order of the table.
    asked : list of str
        Columns that the model is given.
    scores : str or None
        Column with predictions, in place of a model.
    output_range : tuple of float, or None
    tables : bool
        Whether a model that names no columns is given tables; otherwise it is given numbers.
    known : Known, or None
        How people become points, once it is known.
    """

    model: Any
    names: list[str]
    asked: list[str]
    scores: str | None
    output_range: tuple[float, float] | None
    tables: bool = True
    known: Known | None = None

    @classmethod
    def of(
        cls, model: Any, people: StoredTable, names: list[str], predictions: str | None, output_range: Any
    ) -> Interview:
        """Find out which columns are needed, and whether they are there."""
        taken = [] if predictions is not None else columns_for(model, people, names)
        people.check_columns([] if predictions is None else [predictions], "the predictions")
        return cls(model, names, taken, predictions, output_range)

    @property
    def columns(self) -> list[str]:
        """All columns to be read."""
        return list(dict.fromkeys([*self.names, *self.asked, *([] if self.scores is None else [self.scores])]))

    def outputs(self, table: pd.DataFrame) -> tuple[FloatArray, bool]:
        """Outputs of people, and whether they are probabilities."""
        if self.scores is not None:
            return given(table[self.scores], len(table), self.output_range)
        rows: Any = table[self.asked]
        if not self.tables and not hasattr(self.model, "feature_names_in_"):
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


def check_named(predictions: Any) -> None:
    """Raise unless predictions are a column of a table in files."""
    if predictions is not None and not isinstance(predictions, str):
        raise InvalidTypeError(
            "predictions must name a column of the table, if X is a path; got "
            f"{type(predictions).__name__}. Write them into the table first."
        )


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


def take_stock(
    interview: Interview, metric: Metric, people: StoredTable, size: int, work: Workforce
) -> tuple[Interview, pd.DataFrame, FloatArray]:
    """The interview with what must be known of all people; some people (the same always), and what is said of them."""
    numbers = metric.coding(people.head(interview.names)).is_number
    categories = [name for name, number in zip(interview.names, numbers, strict=True) if not number]
    chosen = fixed_sample(len(people), size)
    table, some = survey(people, interview.names, categories, chosen, work, beside=interview.columns)
    informed = replace(interview, tables=metric.takes_tables, known=Known(metric.coding(table), table, metric))
    parts = [informed.outputs(some[i : i + BATCH])[0] for i in range(0, len(some), BATCH)]
    return informed, some[interview.names], np.concatenate(parts)
