"""Tables of people as numbers and back: names, kinds of columns, categories, missing values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise.metrics import FloatArray

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


@dataclass(frozen=True, eq=False)
class NumericColumn:
    """A column of numbers, or of ordered categories counted from 0."""

    name: str
    levels: Any = None  # the ordered categories, if it has any

    @classmethod
    def learn(cls, column: pd.Series[Any]) -> NumericColumn:
        """Check that distances make sense in this column."""
        name, kind = str(column.name), column.dtype
        if pd.api.types.is_datetime64_any_dtype(kind) or pd.api.types.is_timedelta64_dtype(kind):
            raise ValueError(
                f"Column {name!r} holds dates or times. Turn it into a number first, such as years before a fixed day."
            )
        if pd.api.types.is_bool_dtype(kind):
            raise ValueError(f"Column {name!r} is boolean: list it under categorical, where its two values can differ.")
        if isinstance(kind, pd.CategoricalDtype):
            if not kind.ordered:
                raise ValueError(f"Column {name!r} has categories without an order: list it under categorical.")
            return cls(name, pd.Series(kind.categories))
        return cls(name)

    def encode(self, column: pd.Series[Any]) -> FloatArray:
        """Numbers, NaN where missing."""
        if self.levels is not None:
            codes = pd.Index(self.levels).get_indexer(pd.Index(column)).astype(np.float64)
            unknown = (codes < 0) & column.notna().to_numpy()
            if unknown.any():
                raise ValueError(
                    f"Column {self.name!r} has the value {column[unknown].iloc[0]!r}, which is not among its ordered "
                    f"categories {list(self.levels)}: it has no place in their order."
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
        if self.levels is None:
            return numbers
        nearest = np.clip(np.rint(numbers), 0, len(self.levels) - 1)
        codes = np.where(np.isnan(numbers), -1, nearest).astype(np.intp)
        return pd.Categorical.from_codes(codes, categories=pd.Index(self.levels), ordered=True)


@dataclass(frozen=True, eq=False)
class CategoricalColumn:
    """A column whose values are equal or not. A missing value is a category of its own."""

    name: str
    levels: Any  # the values of the training data, as a pandas Series of the column's own type

    @classmethod
    def learn(cls, column: pd.Series[Any]) -> CategoricalColumn:
        """Remember the values that occur."""
        name, kind = str(column.name), column.dtype
        if pd.api.types.is_datetime64_any_dtype(kind) or pd.api.types.is_timedelta64_dtype(kind):
            raise ValueError(
                f"Column {name!r} holds dates or times. Turn it into a number, or into text such as the month, first."
            )
        try:
            levels = column.drop_duplicates()
            hash(tuple(levels))
        except TypeError:
            raise ValueError(f"Column {name!r} must hold plain values such as text or numbers, not lists.") from None
        if pd.api.types.is_float_dtype(kind) and np.isinf(levels.to_numpy(dtype=np.float64, na_value=np.nan)).any():
            raise ValueError(f"Column {name!r} must be finite; it has an infinity.")
        # Sorted, so that codes do not depend on the order of people; the missing one last.
        return cls(name, levels.sort_values(key=lambda v: v.astype(str), na_position="last").reset_index(drop=True))

    def encode(self, column: pd.Series[Any]) -> FloatArray:
        """Positions among the known values; `UNSEEN` for others."""
        present = self.levels.dropna()
        missing = float(len(present)) if len(present) < len(self.levels) else UNSEEN
        codes = pd.Index(present).get_indexer(pd.Index(column)).astype(np.float64)
        return np.where(column.isna().to_numpy(), missing, codes)

    def decode(self, codes: FloatArray) -> Any:
        """Values of the column's own type."""
        return self.levels.array.take(codes.astype(np.intp))


Column = NumericColumn | CategoricalColumn


@dataclass(frozen=True, eq=False)
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

    def encode(self, X: pd.DataFrame) -> FloatArray:
        """Return the matrix of a table; NaN for missing numbers, `UNSEEN` for unseen categories."""
        _check_names(list(X.columns), self.names, ordered=True)
        return np.column_stack([column.encode(X[column.name]) for column in self.columns])

    def decode(self, rows: FloatArray) -> pd.DataFrame:
        """Return the table of a matrix."""
        return pd.DataFrame(
            {column.name: column.decode(rows[:, i]) for i, column in enumerate(self.columns)}, copy=False
        )


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
