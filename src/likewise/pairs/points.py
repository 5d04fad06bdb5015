"""People as numbers, and how two of them are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._typing import FloatArray, IntArray
from likewise.metrics.coding import TableCoding, as_frame
from likewise.metrics.lp import WeightedLp, lp_norm
from likewise.metrics.tabular import TableMetric

Kinds = npt.NDArray[np.int8]

NUMBER, GAPPY, CODE = 0, 1, 2
"""Kinds of columns: numbers; numbers of which some are missing (NaN); codes, which are equal or not."""


@dataclass(frozen=True, eq=False)
class People:
    """A matrix of people, with the kind of each of its columns.

    The distance between two of them is ``||scales * gap||_p`` over the numbers plus the sum of the scales of the codes
    in which they differ. A gap is 0 where a number is missing; a last column of codes per gappy column says for whom.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_columns)
    kinds : ndarray of shape (n_columns,)
    names : tuple of str, or None
        Of the columns; that of a gappy column stands twice.
    table : DataFrame, or None
        The people as they were given, if that was a table.
    """

    X: FloatArray
    kinds: Kinds
    names: tuple[str, ...] | None
    table: pd.DataFrame | None = None

    @classmethod
    def of_array(cls, X: Any) -> People:
        """Check that `X` is a matrix of at least two people in finite numbers."""
        columns = getattr(X, "columns", None)
        names = None if columns is None else tuple(str(name) for name in columns)
        try:
            people = np.ascontiguousarray(X, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X must hold numbers only ({error}). Encode text columns first.") from None
        if people.ndim != 2 or people.shape[1] == 0:
            raise ValueError(f"X must be a table of people and features, (n_samples, n_features); got {people.shape}.")
        _check_two(people)
        wrong = np.argwhere(~np.isfinite(people))
        if len(wrong):
            row, column = wrong[0]
            where = f"column {column}" if names is None else repr(names[column])
            raise ValueError(
                f"X must be finite; got {people[row, column]} in row {row}, {where}. Impute or drop these rows first."
            )
        return cls(people, np.full(people.shape[1], NUMBER, dtype=np.int8), names)

    @classmethod
    def of_table(cls, X: Any, numeric: Sequence[str], categorical: Sequence[str]) -> People:
        """Code a table, whose columns must be the ones named, in any order."""
        frame = as_frame(X)
        coding = TableCoding.learn(frame, numeric, categorical)
        people = coding.encode(frame)
        _check_two(people)
        absent = np.isnan(people)
        gappy = np.flatnonzero(absent.any(axis=0))
        kinds = np.where(coding.is_numeric, NUMBER, CODE).astype(np.int8)
        kinds[gappy] = GAPPY
        return cls(
            np.column_stack([people, absent[:, gappy].astype(np.float64)]),
            np.append(kinds, np.full(len(gappy), CODE, dtype=np.int8)),
            (*coding.names, *(coding.names[i] for i in gappy)),
            frame,
        )

    @classmethod
    def under(cls, metric: WeightedLp | TableMetric, X: Any) -> People:
        """People as the metric compares them: a table for a `TableMetric`, otherwise a matrix."""
        if isinstance(metric, TableMetric):
            people = cls.of_table(X, list(metric.numeric), list(metric.categorical))
            metric.check_missing(people.gappy)
            return people
        people = cls.of_array(X)
        if people.X.shape[1] != metric.n_features:
            raise ValueError(
                f"metric must have one weight per feature of X ({people.X.shape[1]}); it has {metric.n_features}."
            )
        if None not in (people.names, metric.feature_names) and people.names != metric.feature_names:
            raise ValueError(
                f"X must have the columns of the metric in its order, {list(metric.feature_names or ())}; "
                f"got {list(people.names or ())}. Select them with X[list(metric.feature_names)]."
            )
        return cls(people.X, people.kinds, people.names or metric.feature_names)

    def __len__(self) -> int:
        return len(self.X)

    @property
    def gappy(self) -> list[str]:
        """Names of the columns in which numbers are missing."""
        return [self.name(int(i)) for i in np.flatnonzero(self.kinds == GAPPY)]

    def scales(self, metric: WeightedLp | TableMetric) -> FloatArray:
        """What the metric makes of each column."""
        if isinstance(metric, WeightedLp):
            return metric.scales
        numbers = metric.numeric_metric
        known = {} if numbers is None else dict(zip(metric.numeric, numbers.scales.tolist(), strict=True))
        known |= metric.categorical
        n_named = len(self.kinds) - len(self.gappy)
        own = [known[self.name(i)] for i in range(n_named)]
        return np.array([*own, *(metric.missing[name] for name in self.gappy)])

    def gaps(self, a: IntArray, b: IntArray) -> FloatArray:
        """Differences per column between the people a and b; 1 for different codes."""
        gap = np.abs(self.X[a] - self.X[b])
        codes = self.kinds == CODE
        gap[:, codes] = gap[:, codes] != 0
        gappy = self.kinds == GAPPY
        gap[:, gappy] = np.nan_to_num(gap[:, gappy])
        return gap

    def distances(self, scales: FloatArray, p: float, a: IntArray, b: IntArray) -> FloatArray:
        """Distances between the people a and b."""
        gap, codes = self.gaps(a, b) * scales, self.kinds == CODE
        numbers = lp_norm(gap[:, ~codes], p) if not codes.all() else np.zeros(len(gap))
        return np.asarray(numbers + gap[:, codes].sum(axis=1))

    def groups(self, extra: FloatArray | None = None, *, among: npt.NDArray[np.bool_] | None = None) -> Groups:
        """Collapse people with equal rows (in the columns `among`), and equal rows of `extra`."""
        # Infinity is equal to itself and to no other value, which is what missing means here.
        rows = np.nan_to_num(self.X if among is None else self.X[:, among], nan=np.inf)
        return groups_of(rows if extra is None else np.column_stack([rows, extra]))

    def name(self, column: int) -> str:
        """Name of a column, or a word for its position."""
        return f"feature {column}" if self.names is None else self.names[column]

    def differing(self, a: int, b: int, order: npt.ArrayLike, most: int = 6) -> str:
        """List the columns in which two people differ, with both values, in the given order of columns."""
        differs = self.gaps(np.array([a]), np.array([b]))[0] > 0
        parts = list(
            dict.fromkeys(
                f"{self.name(i)}: {self._value(a, i)} / {self._value(b, i)}" for i in np.asarray(order) if differs[i]
            )
        )
        if len(parts) > most:
            parts = [*parts[:most], f"{len(parts) - most} more"]
        return ", ".join(parts) or "nothing"

    def _value(self, person: int, column: int) -> str:
        """A value as it was written."""
        value = self.X[person, column] if self.table is None else self.table[self.name(column)].iloc[person]
        if pd.isna(value):
            return "missing"
        return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)


@dataclass(frozen=True, eq=False)
class Groups:
    """Equal rows, each kind once: where it first occurs, how often, and the group of every row."""

    first: IntArray
    count: IntArray
    of_row: IntArray


def groups_of(rows: FloatArray) -> Groups:
    """Collapse equal rows; groups are in the order of their first row."""
    order = np.lexsort(rows.T[::-1]) if rows.shape[1] else np.arange(len(rows))
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
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


def _check_two(people: FloatArray) -> None:
    if len(people) < 2:
        raise ValueError(f"X must hold at least two people, since pairs are compared; got {len(people)}.")
