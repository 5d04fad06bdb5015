"""People as points for the compiled searches: one number per column, and the kind of each column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.exceptions import InvalidInputError
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


Kinds = npt.NDArray[np.int8]

NUMBER, NULLABLE, CODE = 0, 1, 2
"""Kinds of columns: numbers; numbers with missing values (NaN); codes of categories."""


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


@dataclass(frozen=True, eq=False)
class Points:
    """People as points; their distance is a norm of gaps of numbers plus the scales of codes that differ.

    A gap is 0 where a number is missing. For each nullable column, a column of codes at the end marks missing numbers;
    after these, columns of codes hold the blocks of categories that have a table of distances.

    Attributes
    ----------
    people : People
    X : ndarray of shape (n_samples, n_columns + n_nullable + n_blocks)
    kinds : ndarray of shape (n_columns + n_nullable + n_blocks,)
    nullable : ndarray of int
        Columns in which numbers are missing.
    split : ndarray of int
        Column of each column of blocks.
    """

    people: People
    X: FloatArray
    kinds: Kinds
    nullable: IntArray
    split: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @classmethod
    def of(cls, people: People, weights: BoundMetric | None = None) -> Points:
        """Points of at least two people; `weights` as in `among`."""
        if len(people) < 2:
            raise InvalidInputError(f"X must hold at least two people, since pairs are compared; got {len(people)}.")
        return cls.among(people, np.array(people.missing(), dtype=np.int64), weights)

    @classmethod
    def among(cls, people: People, nullable: IntArray, weights: BoundMetric | None = None) -> Points:
        """Points of some people; `nullable` are the columns in which numbers are missing for anyone.

        `weights` are those of the metric; only its tables of distances between categories are used here.
        """
        rows = people.rows
        kinds = np.where(people.encoder.is_number, NUMBER, CODE).astype(np.int8)
        kinds[nullable] = NULLABLE
        absent = np.isnan(rows[:, nullable]).astype(np.float64)
        splits = [] if weights is None else _splits(people, weights)
        blocks = [codes[rows[:, i].astype(np.int64)] for i, codes, _ in splits]
        kinds = np.append(kinds, np.full(len(nullable) + len(splits), CODE, np.int8))
        split = np.array([i for i, _, _ in splits], dtype=np.int64)
        return cls(people, np.column_stack([rows, absent, *blocks]), kinds, nullable, split)

    def __len__(self) -> int:
        return len(self.X)

    @property
    def n_columns(self) -> int:
        """Columns without those that mark missing numbers or hold blocks."""
        return len(self.kinds) - len(self.nullable) - len(self.split)

    @property
    def column_of(self) -> IntArray:
        """Column of the people that each column here is about."""
        return np.concatenate([np.arange(self.n_columns), self.nullable, self.split])

    def scales(self, weights: BoundMetric) -> FloatArray:
        """Scale of each column under a metric; with tables, it must be the one the points were made for."""
        scales = weights.scales.copy()
        scales[self.split] = 0.0  # the blocks count in place of the codes
        blocks = [scale for *_, scale in splits_of(weights) or ()] if len(self.split) else []
        return np.concatenate([scales, weights.missing[self.nullable], blocks])

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

    def differences(self, a: int, b: int, weights: BoundMetric | None = None) -> list[Difference]:
        """Columns in which two people differ: weight 0 first, then by contribution to the distance.

        Without weights, in the order of the columns.
        """
        if self.people.encoder.mixes_features:
            return self._differing_features(a, b)
        gaps = self.gaps(np.array([a]), np.array([b]))[0]
        column_of = self.column_of
        if weights is None or not weights.has_parts:
            parts, hidden = np.zeros(len(gaps)), np.zeros(self.n_columns, dtype=bool)
        else:
            parts, hidden = np.nan_to_num(self.scales(weights)) * gaps, ~weights.matters
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


Splits = list[tuple[int, FloatArray, float]]


def splits_of(metric: BoundMetric) -> Splits | None:
    """Columns with a table of distances as sums of mismatches: the column, the block of each code, and the scale.

    None for a function, or if a table is not such a sum (`partitions`), so that every pair has to be compared.
    """
    nested = {i: partitions(table) for i, table in metric.tables.items()}
    if None in nested.values() or not metric.has_parts:
        return None
    return [(i, blocks, share * float(metric.scales[i])) for i, each in nested.items() for blocks, share in each or ()]


def _splits(people: People, weights: BoundMetric) -> Splits:
    """Blocks of categories; raises for tables of distances that are not a sum of mismatches."""
    splits = splits_of(weights)
    if splits is None:
        name = people.encoder.names[next(iter(weights.tables))]
        raise InvalidInputError(
            f"metric must have groups in place of distances between the categories of {name!r} for a table in "
            "partitions: these distances are not a sum of mismatches, or of too many categories to find one, so every "
            "pair would have to be compared. Use groups, or take up to 10,000 rows as a pandas DataFrame."
        )
    return splits


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
    hashes = np.broadcast_to(row_hashes(rows.T), len(rows))  # sorting one number per row is faster than sorting rows
    order = np.argsort(hashes, kind="stable")
    new = _differs_from_previous(rows, order)
    if (new[1:] & (hashes[order[1:]] == hashes[order[:-1]])).any():  # different rows with equal hashes
        order = np.lexsort(rows.T[::-1])
        new = _differs_from_previous(rows, order)
    label = np.cumsum(new) - 1
    starts = np.flatnonzero(new)
    first = np.minimum.reduceat(order, starts)
    rank = np.argsort(first)
    position = np.empty_like(rank)
    position[rank] = np.arange(len(rank))
    of_row = np.empty(len(rows), dtype=np.int64)
    of_row[order] = position[label]
    count = np.diff(np.append(starts, len(rows)))[rank]
    return Groups(first[rank].astype(np.int64), count.astype(np.int64), of_row)


def _differs_from_previous(rows: FloatArray, order: IntArray) -> BoolArray:
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
    return new
