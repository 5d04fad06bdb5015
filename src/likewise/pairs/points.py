"""People as points for the compiled searches: one number per column, and the kind of each column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._frozen import Frozen
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.kernel.distance import CODE, NULLABLE, NUMBER, Kinds
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import People
from likewise.metrics.categories import partitions

RowHashes = npt.NDArray[np.uint64]


GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""The increment of splitmix64."""


def row_hashes(columns: Iterable[FloatArray], seed: int = 0) -> RowHashes:
    """Deterministic 64-bit hashes of rows: equal rows have equal hashes.

    Examples
    --------
    >>> hashes = row_hashes([np.array([1.0, 2.0, 1.0]), np.array([0.0, np.nan, -0.0])])
    >>> bool(hashes[0] == hashes[2]), bool(hashes[0] == hashes[1])
    (True, False)
    """
    hashes = np.array([seed % 2**64], dtype=np.uint64)
    for column in columns:
        # 0 and -0 have the same bits, and so do all NaN.
        bits = np.where(np.isnan(column), np.nan, column + 0.0).view(np.uint64)
        hashes = splitmix64(hashes ^ bits)
    return hashes


def splitmix64(z: RowHashes) -> RowHashes:
    """One step of splitmix64: 64 bits from 64 bits, without collisions."""
    z = z + GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


class Difference(NamedTuple):
    """A column in which two people differ, with both values as they are written."""

    column: str
    first: str
    second: str
    has_weight_0: bool

    def __str__(self) -> str:
        return f"{self.column}: {self.first} / {self.second}"


def listed(differences: Sequence[Difference], most: int | None = None) -> str:
    """Columns in which two people differ, in a line: all of weight 0, and at most `most` others with a count.

    Examples
    --------
    >>> listed([Difference("sex", "f", "m", True), Difference("age", "30", "41", False)])
    'sex: f / m, age: 30 / 41'
    >>> listed([Difference("sex", "f", "m", True), Difference("age", "30", "41", False)], most=0)
    'sex: f / m, 1 more column'
    """
    others = [each for each in differences if not each.has_weight_0]
    kept = others if most is None else others[:most]
    shown = [str(each) for each in differences if each.has_weight_0 or each in kept]
    n_more = len(others) - len(kept)
    if n_more:
        shown.append(f"{n_more} more {'column' if n_more == 1 else 'columns'}")
    return ", ".join(shown) or "nothing"


Splits = list[tuple[int, FloatArray, float]]


class Columns(NamedTuple):
    """People as columns (``X[column, person]``), and what their distance needs of these."""

    X: FloatArray
    kinds: Kinds
    scales: FloatArray
    p: float


@dataclass(frozen=True, eq=False)
class Layout(Frozen):
    """Columns of points: those of the people, then marks of missing numbers, then blocks of categories.

    Marks and blocks are codes. Blocks stand for the codes of a column whose table of distances is a sum of mismatches
    (`splits_of`), and for the states of a number that may be a special code, which is no number here (NaN).

    Attributes
    ----------
    is_number : ndarray of bool, of shape (n_columns,)
    nullable : ndarray of int
        Columns in which numbers are missing for anyone.
    metric : BoundMetric, or None
        The one that the points are made for; None where there is none yet.
    """

    is_number: BoolArray
    nullable: IntArray
    metric: BoundMetric | None

    @cached_property
    def splits(self) -> Splits | None:
        """Those of the metric; None for a function, or a table that is no sum of mismatches."""
        return None if self.metric is None else splits_of(self.metric)

    @cached_property
    def kinds(self) -> Kinds:
        """Kind of each column."""
        kinds = np.where(self.is_number, NUMBER, CODE).astype(np.int8)
        kinds[[*self.nullable, *self.special]] = NULLABLE
        return np.append(kinds, np.full(len(self.nullable) + len(self.splits or ()), CODE, np.int8))

    @cached_property
    def scales(self) -> FloatArray:
        """Scale of each column; of a table that is no sum of mismatches, its largest distance."""
        if self.metric is None:
            raise InvalidTypeError("Points that were made without a metric have no scales.")
        scales = self.metric.scales.copy()
        # The blocks count in place of the codes, and of the marks.
        scales[[i for i, *_ in self.splits or () if not self.is_number[i]]] = 0.0
        marks = np.where(np.isin(self.nullable, [*self.special]), 0.0, self.metric.missing[self.nullable])
        return np.concatenate([scales, marks, [scale for *_, scale in self.splits or ()]])

    @property
    def special(self) -> Mapping[int, Mapping[float, float]]:
        """Special codes of the metric, by column."""
        return {} if self.metric is None else self.metric.special

    @property
    def n_columns(self) -> int:
        """Columns of the people."""
        return len(self.is_number)

    @cached_property
    def column_of(self) -> IntArray:
        """Column of the people that each column here is about."""
        split = np.array([i for i, *_ in self.splits or ()], dtype=np.int64)
        return np.concatenate([np.arange(self.n_columns), self.nullable, split])

    def rows(self, people: People) -> FloatArray:
        """People as rows of points."""
        rows, metric = people.rows, self.metric
        codes = {
            i: rows[:, i] if metric is None or i not in metric.special else metric.states[i].of(rows[:, i])
            for i, *_ in self.splits or ()
        }
        blocks = [block[codes[i].astype(np.int64)] for i, block, _ in self.splits or ()]
        rows = rows if metric is None else metric.numbers(rows)
        return np.column_stack([rows, np.isnan(rows[:, self.nullable]).astype(np.float64), *blocks])


@dataclass(frozen=True, eq=False)
class Points(Layout):
    """People as points; their distance is a norm of gaps of numbers plus the scales of codes that differ.

    A gap is 0 where a number is missing.

    Attributes
    ----------
    people : People
    X : ndarray of shape (n_samples, n_columns + n_nullable + n_blocks)
    """

    people: People
    X: FloatArray

    @classmethod
    def of(cls, people: People, metric: BoundMetric | None = None) -> Points:
        """Points of at least two people."""
        if len(people) < 2:
            raise InvalidInputError(f"X must hold at least two people, since pairs are compared; got {len(people)}.")
        return cls.among(people, np.array(people.missing(), dtype=np.int64), metric)

    @classmethod
    def among(cls, people: People, nullable: IntArray, metric: BoundMetric | None = None) -> Points:
        """Points of some people; `nullable` are the columns in which numbers are missing for anyone."""
        layout = Layout(people.encoder.is_number, nullable, metric)
        return cls(layout.is_number, nullable, metric, people, layout.rows(people))

    def __len__(self) -> int:
        return len(self.X)

    def take(self, rows: IntArray) -> Points:
        """Some of the people."""
        return replace(self, people=self.people.take(rows), X=self.X[rows])

    def columns_in(self, unit: float) -> Columns:
        """For searches of pairs, with distances in units of the outputs."""
        if self.metric is None or self.splits is None:
            raise InvalidTypeError("Points must be made for a metric that is a sum over columns to be searched.")
        return Columns(np.ascontiguousarray(self.X.T), self.kinds, self.scales / unit, float(self.metric.p))

    def gaps(self, a: IntArray, b: IntArray) -> FloatArray:
        """Differences per column between the people a and b; 1 for different codes."""
        return gaps_between(self.X[a], self.X[b], self.kinds)

    def groups(self, extra: FloatArray | None = None, *, among: BoolArray | None = None) -> Groups:
        """Group people with equal rows (in the columns `among`) and equal rows of `extra`."""
        # NaN differs from itself; infinity stands for missing, since values are finite.
        rows = np.nan_to_num(self.X if among is None else self.X[:, among], nan=np.inf)
        return groups_of(rows if extra is None else np.column_stack([rows, extra]))

    def name(self, column: int) -> str:
        """Name of a column; a column that marks missing numbers has the name of these."""
        return str(self.people.encoder.names[self.column_of[column]])

    def differences(self, a: int, b: int) -> list[Difference]:
        """Columns in which two people differ: weight 0 first, then by contribution to the distance.

        Without weights, in the order of the columns.
        """
        if self.people.encoder.mixes_features:
            return self._differing_features(a, b)
        gaps = self.gaps(np.array([a]), np.array([b]))[0]
        column_of = self.column_of
        if self.metric is None or not self.metric.has_parts:
            parts, hidden = np.zeros(len(gaps)), np.zeros(self.n_columns, dtype=bool)
        else:
            parts, hidden = np.nan_to_num(self.scales) * gaps, ~self.metric.matters
        order = np.lexsort((-parts, ~hidden[column_of]))
        columns = dict.fromkeys(int(column_of[i]) for i in order if gaps[i] > 0)
        return [Difference(self.name(i), self._value(a, i), self._value(b, i), bool(hidden[i])) for i in columns]

    def _differing_features(self, a: int, b: int) -> list[Difference]:
        """Features in which two people differ, where the columns are functions of several features."""
        table: Any = self.people.table
        names = self.people.encoder.raw_labels or [f"feature {i}" for i in range(table.shape[1])]
        differ = np.flatnonzero(np.asarray(table)[a] != np.asarray(table)[b]).tolist()
        return [Difference(str(names[i]), self._value(a, i), self._value(b, i), has_weight_0=False) for i in differ]

    def _value(self, person: int, column: int) -> str:
        """A value as text."""
        table = self.people.table
        value: Any = table.iat[person, column] if isinstance(table, pd.DataFrame) else table[person, column]
        if pd.isna(value):
            return "missing"
        return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)


def splits_of(metric: BoundMetric) -> Splits | None:
    """Columns with a table of distances as sums of mismatches: the column, the block of each code, and the scale.

    None for a function, or if a table is not such a sum (`partitions`), so that every pair has to be compared.
    """
    if not metric.has_parts:
        return None
    tables = [(i, table, float(metric.scales[i])) for i, table in metric.tables.items()]
    tables += [(i, metric.states[i].table, 1.0) for i in metric.special]
    nested = [(i, partitions(table), scale) for i, table, scale in tables]
    if any(blocks is None for _, blocks, _ in nested):
        return None
    return [(i, blocks, share * scale) for i, each, scale in nested for blocks, share in each or ()]


def gaps_between(A: FloatArray, B: FloatArray, kinds: Kinds) -> FloatArray:
    """Differences per column between the people of two arrays, row by row; 1 for different codes."""
    gap = np.abs(A - B)
    codes = kinds == CODE
    gap[:, codes] = gap[:, codes] != 0
    return np.nan_to_num(gap)


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of equal rows: first row and size of each group, and the group of every row."""

    first: IntArray
    count: IntArray
    of_row: IntArray


def groups_of(rows: FloatArray) -> Groups:
    """Group equal rows; groups are in the order of their first row."""
    if not rows.shape[1]:
        return Groups(np.zeros(1, np.int64), np.array([len(rows)], np.int64), np.zeros(len(rows), np.int64))
    same = pd.DataFrame(rows).groupby(list(range(rows.shape[1])), sort=False, dropna=False)
    of_row = np.asarray(same.ngroup(), dtype=np.int64)
    _, first, count = np.unique(of_row, return_index=True, return_counts=True)
    return Groups(first.astype(np.int64), count.astype(np.int64), of_row)
