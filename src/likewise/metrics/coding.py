"""Tables of people as numbers and back: names, kinds of columns, categories, missing values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._typing import FloatArray

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

    name: str
    categories: tuple[Any, ...] | None = None

    @classmethod
    def learn(cls, column: pd.Series[Any]) -> NumericColumn:
        """Check that distances make sense in this column."""
        name, kind = str(column.name), column.dtype
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
            numbers = pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)
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
class CategoricalColumn:
    """A column whose values are equal or not. A missing value is a category of its own, the last one.

    Attributes
    ----------
    name : str
    levels : tuple
        The values of the training data, without the missing one.
    has_missing : bool
        Whether it had a missing one.
    kind : str
        The pandas type of the column.
    categories : tuple, or None
        All categories of the type, if it is categorical.
    """

    name: str
    levels: tuple[Any, ...]
    has_missing: bool
    kind: str
    categories: tuple[Any, ...] | None = None

    @classmethod
    def learn(cls, column: pd.Series[Any]) -> CategoricalColumn:
        """Remember the values that occur."""
        name, kind = str(column.name), column.dtype
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

    def encode(self, column: pd.Series[Any]) -> FloatArray:
        """Positions among the known values; `UNSEEN` for others."""
        missing = float(len(self.levels)) if self.has_missing else UNSEEN
        codes = pd.Index(self.levels, dtype=self._level_kind).get_indexer(pd.Index(column)).astype(np.float64)
        return np.where(column.isna().to_numpy(), missing, codes)

    def decode(self, codes: FloatArray) -> Any:
        """Values of the column's own type."""
        values = [*self.levels, None] if self.has_missing else list(self.levels)
        if self.categories is not None:
            return pd.Categorical(values, categories=list(self.categories)).take(codes.astype(np.intp))
        return pd.Series(values, dtype=self.kind).array.take(codes.astype(np.intp))

    @property
    def _level_kind(self) -> Any:
        return None if self.categories is not None else self.kind


Column = NumericColumn | CategoricalColumn


@dataclass(frozen=True)
class TableCoding:
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

    columns: tuple[Column, ...]

    @classmethod
    def learn(cls, X: pd.DataFrame, numeric: Sequence[str], categorical: Sequence[str]) -> TableCoding:
        """Learn the columns of `X`, in their order; `numeric` and `categorical` together must name them all."""
        _check_names(list(X.columns), [*numeric, *categorical], ordered=False)
        kinds = dict.fromkeys(numeric, NumericColumn) | dict.fromkeys(categorical, CategoricalColumn)
        return cls(tuple(kinds[name].learn(X[name]) for name in X.columns))

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    @property
    def is_numeric(self) -> npt.NDArray[np.bool_]:
        """Which columns are numeric."""
        return np.array([isinstance(column, NumericColumn) for column in self.columns])

    @property
    def is_plain(self) -> bool:
        """Whether all columns are numbers, so that the matrix says all that the table does."""
        return all(isinstance(column, NumericColumn) and column.categories is None for column in self.columns)

    def encode(self, X: pd.DataFrame) -> FloatArray:
        """Return the matrix of a table; NaN for missing numbers, `UNSEEN` for unseen categories."""
        _check_names(list(X.columns), self.names, ordered=True)
        return np.column_stack([column.encode(X[column.name]) for column in self.columns])

    def decode(self, rows: FloatArray) -> pd.DataFrame:
        """Return the table of a matrix."""
        return pd.DataFrame(
            {column.name: column.decode(rows[:, i]) for i, column in enumerate(self.columns)}, copy=False
        )


def _refuse_times(column: pd.Series[Any], cure: str) -> None:
    kind = column.dtype
    if pd.api.types.is_datetime64_any_dtype(kind) or pd.api.types.is_timedelta64_dtype(kind):
        raise ValueError(f"Column {str(column.name)!r} holds dates or times. {cure}")


def _check_names(given: list[str], expected: list[str], *, ordered: bool) -> None:
    absent = [name for name in expected if name not in given]
    if absent:
        raise ValueError(f"X must have the column {absent[0]!r}, which the metric names; it has {given}.")
    extra = [name for name in given if name not in expected]
    if extra:
        raise ValueError(
            f"X has the column {extra[0]!r}, of which the metric says nothing. Give it a weight (0 if it must not "
            "matter), or drop it."
        )
    if ordered and given != expected:
        raise ValueError(f"X must have its columns in the order of fit, {expected}; got {given}. Use X[{expected}].")
