"""People as numbers and back: names, kinds of columns, categories, missing values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from likewise._frozen import Frozen
from likewise._typing import BoolArray, FloatArray

UNSEEN = -1.0
"""Code of a category that was not there when the coding was learned."""


def is_table(X: Any) -> bool:
    """Whether `X` is a table with named columns (pandas, polars, pyarrow, ...)."""
    return hasattr(X, "__dataframe__") or hasattr(X, "__arrow_c_stream__")


def as_frame(X: Any, name: str = "X") -> pd.DataFrame:
    """Return a pandas DataFrame of any table that narwhals knows."""
    if isinstance(X, pd.DataFrame):
        frame = X
    elif is_table(X):
        import narwhals.stable.v2 as nw

        frame = nw.from_native(X, eager_only=True).to_pandas()
    else:
        raise TypeError(
            f"{name} must be a table with named columns (pandas, polars or pyarrow); got {type(X).__name__}. "
            f"Use pandas.DataFrame({name}, columns=[...])."
        )
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise ValueError(f"{name} must have distinct column names; {str(repeated[0])!r} stands twice.")
    return frame


# Values are kept as plain Python values, so that a saved model holds nothing that a file may not.


@dataclass(frozen=True)
class NumericColumn:
    """A column of numbers, or of ordered categories counted from 0."""

    name: Hashable
    categories: tuple[Any, ...] | None = None

    @classmethod
    def learn(cls, column: pd.Series[Any]) -> NumericColumn:
        """Check that distances make sense in this column."""
        name, kind = column.name, column.dtype
        _refuse_times(column, "Turn it into a number first, such as years before a fixed day.")
        if pd.api.types.is_bool_dtype(kind):
            raise ValueError(f"Column {name!r} is boolean: list it under categorical, where its two values can differ.")
        if isinstance(kind, pd.CategoricalDtype):
            if not kind.ordered:
                raise ValueError(f"Column {name!r} has categories without an order: list it under categorical.")
            return cls(name, tuple(kind.categories.tolist()))
        return cls(name)

    def encode(self, column: pd.Series[Any]) -> FloatArray:
        """Numbers, NaN where missing."""
        if self.categories is not None:
            codes = pd.Index(self.categories).get_indexer(pd.Index(column)).astype(np.float64)
            unknown = (codes < 0) & column.notna().to_numpy()
            if unknown.any():
                raise ValueError(
                    f"Column {self.name!r} has the value {column[unknown].iloc[0]!r}, which is not among its ordered "
                    f"categories {list(self.categories)}: it has no place in their order."
                )
            return np.where(codes < 0, np.nan, codes)
        try:
            plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "iuf"
            numbers = (column if plain else pd.to_numeric(column)).to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"Column {self.name!r} must hold numbers ({error}). List it under categorical, or clean it first."
            ) from None
        if np.isinf(numbers).any():
            raise ValueError(f"Column {self.name!r} must be finite; it has an infinity. Cap it or mark it as missing.")
        return np.asarray(numbers)

    def decode(self, numbers: FloatArray) -> Any:
        """Numbers as the model expects them; for ordered categories the nearest one."""
        if self.categories is None:
            return numbers
        nearest = np.clip(np.rint(numbers), 0, len(self.categories) - 1)
        codes = np.where(np.isnan(numbers), -1, nearest).astype(np.intp)
        return pd.Categorical.from_codes(codes, categories=pd.Index(self.categories), ordered=True)


@dataclass(frozen=True)
class CategoricalColumn(Frozen):
    """A column whose values are equal or not. A missing value is a category of its own, the last one.

    Attributes
    ----------
    name : hashable
    levels : tuple
        The values of the training data, without the missing one.
    has_missing : bool
        Whether it had a missing one.
    kind : str
        The pandas type of the column.
    categories : tuple, or None
        All categories of the type, if it is categorical.
    """

    name: Hashable
    levels: tuple[Any, ...]
    has_missing: bool
    kind: str
    categories: tuple[Any, ...] | None = None

    @classmethod
    def learn(cls, column: pd.Series[Any]) -> CategoricalColumn:
        """Remember the values that occur."""
        name, kind = column.name, column.dtype
        _refuse_times(column, "Turn it into a number, or into text such as the month, first.")
        try:
            levels = column.dropna().drop_duplicates().tolist()
            hash(tuple(levels))
        except TypeError:
            raise ValueError(f"Column {name!r} must hold plain values such as text or numbers, not lists.") from None
        if any(isinstance(value, float) and np.isinf(value) for value in levels):
            raise ValueError(f"Column {name!r} must be finite; it has an infinity.")
        # Sorted, so that codes do not depend on the order of people.
        levels.sort(key=str)
        categories = tuple(kind.categories.tolist()) if isinstance(kind, pd.CategoricalDtype) else None
        return cls(name, tuple(levels), bool(column.isna().any()), str(kind), categories)

    @cached_property
    def _positions(self) -> dict[Any, float]:
        return {level: float(i) for i, level in enumerate(self.levels)}

    def encode(self, column: pd.Series[Any]) -> FloatArray:
        """Positions among the known values; `UNSEEN` for others."""
        missing = float(len(self.levels)) if self.has_missing else UNSEEN
        try:
            where, values = pd.factorize(column)  # -1 where missing
        except TypeError:
            raise ValueError(f"Column {self.name!r} must hold plain values such as text or numbers.") from None
        known = [self._positions.get(value, UNSEEN) for value in values.tolist()]
        return np.array([*known, missing])[where]

    def decode(self, codes: FloatArray) -> Any:
        """Values of the column's own type."""
        values = [*self.levels, None] if self.has_missing else list(self.levels)
        if self.categories is not None:
            return pd.Categorical(values, categories=list(self.categories)).take(codes.astype(np.intp))
        return pd.Series(values, dtype=self.kind).array.take(codes.astype(np.intp))


class Coding(ABC):
    """How people become rows of numbers, and rows become what a model takes."""

    @property
    @abstractmethod
    def labels(self) -> tuple[Any, ...] | None:
        """Names of the columns, if they have any."""

    @property
    def names(self) -> list[Any]:
        """Names of the columns, or words for their positions."""
        return [f"feature {i}" for i in range(len(self.is_number))] if self.labels is None else list(self.labels)

    @property
    @abstractmethod
    def is_number(self) -> BoolArray:
        """Which columns hold numbers; the others hold categories."""

    @property
    @abstractmethod
    def is_plain(self) -> bool:
        """Whether the rows say all that the people do, so that a model may be given either."""

    @abstractmethod
    def as_table(self, X: Any, name: str = "X") -> Any:
        """People in the form that a model takes."""

    @abstractmethod
    def encode(self, X: Any, name: str = "X") -> FloatArray:
        """People as numbers: NaN where missing, `UNSEEN` for unseen categories."""

    @abstractmethod
    def decode(self, rows: FloatArray) -> Any:
        """What a model takes, from rows of numbers."""


@dataclass(frozen=True)
class ArrayCoding(Coding):
    """Rows of finite numbers, which stay what they are; named if they come from a table."""

    n_columns: int
    labels: tuple[Any, ...] | None = None

    @property
    def is_number(self) -> BoolArray:
        """All of them."""
        return np.ones(self.n_columns, dtype=bool)

    @property
    def is_plain(self) -> bool:
        """They do."""
        return True

    def as_table(self, X: Any, name: str = "X") -> Any:
        """The numbers, if columns are in their order."""
        given = getattr(X, "columns", None)
        if given is not None and self.labels is not None and tuple(given) != self.labels:
            raise ValueError(
                f"{name} must have the columns of the metric in its order, {list(self.labels)}; got {list(given)}. "
                f"Select them with {name}[list(metric.feature_names)]."
            )
        try:
            return np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must hold numbers only ({error}). Encode text columns first.") from None

    def encode(self, X: Any, name: str = "X") -> FloatArray:
        """The numbers, if they are finite."""
        rows = np.ascontiguousarray(self.as_table(X, name))
        if rows.ndim not in (1, 2) or rows.shape[-1] != self.n_columns:
            raise ValueError(
                f"{name} must have {self.n_columns} columns, one per weight; got an array of shape {rows.shape}."
            )
        if not np.isfinite(rows).all():
            *row, column = np.argwhere(~np.isfinite(rows))[0]
            where = f" in row {row[0]}" if row else ""
            raise ValueError(
                f"{name} must be finite; got {rows[(*row, column)]}{where}, {self.names[column]!r}. Impute or drop "
                "these rows first."
            )
        return rows

    def decode(self, rows: FloatArray) -> FloatArray:
        """The rows themselves."""
        return rows


@dataclass(frozen=True)
class TableCoding(Coding):
    """How a table becomes a matrix of numbers, one column each, and how perturbed rows become a table again.

    Numbers stay numbers, ordered categories are counted from 0, categories become positions among the known ones.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [30, 41], "region": ["north", "south"]})
    >>> coding = TableCoding.learn(people, numeric=["age"], categorical=["region"])
    >>> coding.encode(people)
    array([[30.,  0.],
           [41.,  1.]])
    """

    columns: tuple[NumericColumn | CategoricalColumn, ...]
    optional: tuple[Any, ...] = ()

    @classmethod
    def learn(
        cls, X: pd.DataFrame, numeric: Sequence[Any], categorical: Sequence[Any], *, optional: Sequence[Any] = ()
    ) -> TableCoding:
        """Learn the columns of `X`, in their order; `numeric` and `categorical` together must name them all.

        Those in `optional` may be absent later on: their values are then missing.
        """
        _check_names(list(X.columns), [*numeric, *categorical])
        kinds = dict.fromkeys(numeric, NumericColumn) | dict.fromkeys(categorical, CategoricalColumn)
        return cls(tuple(kinds[name].learn(X[name]) for name in X.columns), tuple(optional))

    @property
    def labels(self) -> tuple[Any, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def is_number(self) -> BoolArray:
        """Which columns hold numbers, or ordered categories."""
        return np.array([isinstance(column, NumericColumn) for column in self.columns])

    @property
    def is_plain(self) -> bool:
        """Whether all columns are numbers."""
        return all(isinstance(column, NumericColumn) and column.categories is None for column in self.columns)

    def as_table(self, X: Any, name: str = "X") -> pd.DataFrame:
        """Any kind of table, as pandas has it."""
        return as_frame(X, name)

    def encode(self, X: Any, name: str = "X") -> FloatArray:
        """People as numbers: NaN for missing ones, `UNSEEN` for unseen categories."""
        frame = as_frame(X, name)
        given = list(frame.columns)
        if given != self.names:
            absent = [column for column in self.optional if column not in frame.columns]
            expected = [column for column in self.names if column not in absent]
            _check_names(given, expected, name)
            if given != expected:
                raise ValueError(
                    f"{name} must have its columns in the order of fit, {expected}; got {given}. Use X[{expected}]."
                )
        rows = np.empty((len(frame), len(self.columns)))
        for i, column in enumerate(self.columns):
            if column.name in frame.columns:
                rows[:, i] = column.encode(frame[column.name])
            else:
                rows[:, i] = np.nan if isinstance(column, NumericColumn) else UNSEEN
        return rows

    def decode(self, rows: FloatArray) -> pd.DataFrame:
        """Return the table of a matrix."""
        return pd.DataFrame(
            {column.name: column.decode(rows[:, i]) for i, column in enumerate(self.columns)}, copy=False
        )


def _refuse_times(column: pd.Series[Any], cure: str) -> None:
    kind = column.dtype
    if pd.api.types.is_datetime64_any_dtype(kind) or pd.api.types.is_timedelta64_dtype(kind):
        raise ValueError(f"Column {column.name!r} holds dates or times. {cure}")


def _check_names(given: list[Any], expected: list[Any], name: str = "X") -> None:
    absent = [column for column in expected if column not in given]
    if absent:
        raise ValueError(f"{name} must have the column {absent[0]!r}, which the metric names; it has {given}.")
    extra = [column for column in given if column not in expected]
    if extra:
        raise ValueError(
            f"{name} has the column {extra[0]!r}, of which the metric says nothing. Give it a weight (0 if it must not "
            "matter), or drop it."
        )
