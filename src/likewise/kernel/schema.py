"""Encoders from tables and arrays to rows of numbers, and the encoded rows themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from likewise._typing import BoolArray, FloatArray
from likewise._validation import check_numbers, check_size, checking
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.kernel.columns import UNSEEN, CategoricalColumn, NumericColumn, canonical_texts, is_mixed


def is_table(X: Any) -> bool:
    """Whether `X` is a table with named columns (pandas, polars, pyarrow)."""
    return hasattr(X, "__dataframe__") or hasattr(X, "__arrow_c_stream__")


def as_frame(X: Any, name: str = "X") -> pd.DataFrame:
    """Convert any table that narwhals supports to pandas."""
    refuse_batch(X, name)
    if isinstance(X, pd.DataFrame):
        frame = X
    else:
        import narwhals.stable.v2 as nw

        try:
            frame = nw.from_native(X, eager_only=True).to_pandas()
        except TypeError:
            raise InvalidTypeError(
                f"{name} must be a table with named columns (pandas, polars or pyarrow); got {type(X).__name__}. "
                f"Use pandas.DataFrame({name}, columns=[...])."
            ) from None
    if not frame.columns.is_unique:
        repeated = frame.columns[frame.columns.duplicated()]
        raise InvalidInputError(f"{name} must have distinct column names; {str(repeated[0])!r} occurs twice.")
    return frame


def not_a_table(name: str, shape: tuple[int, ...]) -> InvalidInputError:
    """The error for an array of another shape."""
    return InvalidInputError(f"{name} must be a table of people and features, (n_samples, n_features); got {shape}.")


def without_sparse(X: Any) -> Any:
    """Replace sparse columns of a DataFrame, about which scikit-learn warns, by dense ones."""
    kinds = X.dtypes.items() if isinstance(X, pd.DataFrame) and X.columns.is_unique else ()
    sparse = {column: kind.subtype for column, kind in kinds if isinstance(kind, pd.SparseDtype)}
    return X.astype(sparse) if sparse else X


def refuse_batch(X: Any, name: str = "X") -> None:
    """Raise for a pyarrow RecordBatch, which pandas and NumPy do not read as a table."""
    if type(X).__name__ == "RecordBatch":
        raise InvalidTypeError(
            f"{name} must be a whole table; got a RecordBatch. Use pyarrow.Table.from_batches([{name}])."
        )


def labels_of(X: Any, name: str = "X") -> tuple[Any, ...] | None:
    """Column names of a table, of any type; None for an array."""
    refuse_batch(X, name)
    if isinstance(X, type):
        raise InvalidTypeError(f"{name} must be a table or an array; got the class {X.__name__}.")
    labels = getattr(X, "column_names", None) or getattr(X, "columns", None)  # pyarrow; pandas and polars
    if labels is not None and len({*labels}) < len(labels):
        raise InvalidInputError(f"{name} must have distinct column names; got {list(labels)}.")
    return None if labels is None else tuple(labels)


class Encoder(ABC):
    """Encodes people as rows of numbers, and decodes rows to what a model takes.

    An array is a table whose columns are numeric and may have no names (`ArrayEncoder`).
    """

    optional: tuple[Any, ...] = ()
    """Names of columns that may be absent at prediction."""

    columns: tuple[NumericColumn | CategoricalColumn, ...]
    """In the order of the encoded rows."""

    mixes_features: bool = False
    """Whether encoded columns are functions of several columns that a model takes."""

    @property
    def labels(self) -> tuple[Any, ...] | None:
        """Column names; None for an array without names."""
        return tuple(column.name for column in self.columns)

    @property
    def raw_labels(self) -> tuple[Any, ...] | None:
        """Names of the columns that a model takes; None for an array without names."""
        return self.labels

    @property
    def names(self) -> list[Any]:
        """Column names, or "feature 0" and so on."""
        return [f"feature {i}" for i in range(len(self.is_number))] if self.labels is None else list(self.labels)

    @property
    def is_number(self) -> BoolArray:
        """Which columns hold numbers or ordered categories; the others are categorical."""
        return np.array([isinstance(column, NumericColumn) for column in self.columns], dtype=bool)

    @property
    def is_plain(self) -> bool:
        """Whether encoding loses nothing, as all columns are numbers: a model may be given the rows or the table."""
        return all(is_amount(column) for column in self.columns)

    @abstractmethod
    def as_table(self, X: Any, name: str = "X") -> Any:
        """`X` in the form that a model takes."""

    @abstractmethod
    def encode(self, X: Any, name: str = "X") -> FloatArray:
        """Rows of numbers: NaN where missing, `UNSEEN` for unseen categories."""

    @abstractmethod
    def decode(self, rows: FloatArray) -> Any:
        """The inverse of `encode`, in the form that a model takes."""

    @abstractmethod
    def read_for_predict(self, X: Any, numbers: Callable[[Any], FloatArray]) -> People:
        """Validate and encode `X` at prediction; `numbers` validates rows of numbers."""

    @abstractmethod
    def recode(self, people: People) -> People:
        """People read by another encoder, encoded by this one; columns are matched by name."""

    @abstractmethod
    def reordered(self, order: list[int]) -> Encoder:
        """The same encoder of the columns of `raw_labels` in another order."""


@dataclass(frozen=True)
class ArrayEncoder(Encoder):
    """Rows of finite numbers, passed through; columns have names if they come from a table."""

    n_columns: int
    labels: tuple[Any, ...] | None = None

    @property
    def columns(self) -> tuple[NumericColumn, ...]:  # type: ignore[override]
        """Numeric columns."""
        return tuple(NumericColumn(name) for name in self.names)

    @property
    def is_number(self) -> BoolArray:
        """True for every column."""
        return np.ones(self.n_columns, dtype=bool)

    def as_table(self, X: Any, name: str = "X") -> Any:
        """An array of numbers, with columns in this order."""
        return check_numbers(name, self.arranged(X, name), "Encode text columns first.")

    def arranged(self, X: Any, name: str = "X") -> Any:
        """A table with its columns in this order; an array, or any `X` if no names are known here, unchanged."""
        given = labels_of(X, name)
        if given is None or self.labels is None or given == self.labels:
            return X
        if {*given} != {*self.labels}:
            raise InvalidInputError(
                f"{name} must have the columns of the metric, {list(self.labels)}; got {list(given)}."
            )
        return as_frame(X, name)[list(self.labels)]

    def encode(self, X: Any, name: str = "X") -> FloatArray:
        """The numbers, checked to be finite."""
        rows = np.ascontiguousarray(self.as_table(X, name))
        if rows.ndim not in (1, 2) or rows.shape[-1] != self.n_columns:
            raise InvalidInputError(
                f"{name} must have {self.n_columns} columns, one per weight; got an array of shape {rows.shape}."
            )
        if not np.isfinite(rows).all():
            *row, column = np.argwhere(~np.isfinite(rows))[0]
            where = f" in row {row[0]}" if row else ""
            raise InvalidInputError(
                f"{name} must be finite; got {rows[(*row, column)]}{where}, {self.names[column]!r}. Impute or drop "
                "these rows first."
            )
        check_size(rows, self.names)
        return rows

    def decode(self, rows: FloatArray) -> FloatArray:
        """The rows themselves."""
        return rows

    def read_for_predict(self, X: Any, numbers: Callable[[Any], FloatArray]) -> People:
        """Validate and encode `X`."""
        given = self.arranged(X)
        with checking():
            rows = numbers(given)
        check_size(rows, self.names)
        return People(rows, self, rows)

    def recode(self, people: People) -> People:
        """The same rows, with columns in this order."""
        rows = people.arranged(self.labels).rows
        return People(rows, self, rows)

    def reordered(self, order: list[int]) -> ArrayEncoder:
        """With other labels."""
        return self if self.labels is None else replace(self, labels=tuple(self.labels[i] for i in order))


@dataclass(frozen=True)
class TableEncoder(Encoder):
    """Encodes a table as a matrix of numbers, one per column.

    Numbers stay as they are, ordered categories become ranks from 0, other categories become indices of the known
    levels.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [30, 41], "region": ["north", "south"]})
    >>> encoder = TableEncoder.learn(people, numeric=["age"], categorical=["region"])
    >>> encoder.encode(people)
    array([[30.,  0.],
           [41.,  1.]])
    """

    columns: tuple[NumericColumn | CategoricalColumn, ...]
    optional: tuple[Any, ...] = ()

    @classmethod
    def learn(
        cls,
        X: pd.DataFrame,
        numeric: Sequence[Any],
        categorical: Sequence[Any],
        *,
        optional: Sequence[Any] = (),
        listed: Mapping[Any, tuple[Any, ...]] = MappingProxyType({}),
    ) -> TableEncoder:
        """Learn the columns of `X`, in their order; `numeric` and `categorical` together must name them all.

        Columns in `optional` may be absent at prediction; their values are then missing. `listed` are categories by
        column: the order of those of a numeric column, and further levels of a categorical one.
        """
        _check_names(list(X.columns), [*numeric, *categorical])
        kinds = dict.fromkeys(numeric, NumericColumn) | dict.fromkeys(categorical, CategoricalColumn)
        columns = (kinds[name].learn(X[name], listed.get(name, ())) for name in X.columns)
        return cls(tuple(columns), tuple(optional))

    def as_table(self, X: Any, name: str = "X") -> pd.DataFrame:
        """A DataFrame with the learned columns, in their order.

        Optional columns that were absent in training are dropped. Numbers of object dtype, such as decimals, become
        floats, and categories of several types become text.
        """
        frame = self._without_surplus(X, name)
        given, names = frame.columns.tolist(), self.names
        if given != names and {*given} <= {*names}:
            frame = frame[[column for column in names if column in given]]
        kinds: dict[Any, Any] = dict(zip(frame.columns, frame.dtypes.array, strict=True))
        boxed = [column for column in self.columns if kinds.get(column.name) == np.dtype(object)]
        plain: dict[Any, Any] = {
            column.name: column.encode(frame[column.name]) for column in boxed if is_amount(column)
        }
        plain |= {
            column.name: canonical_texts(frame[column.name])
            for column in boxed
            if isinstance(column, CategoricalColumn) and is_mixed(frame[column.name])
        }
        if plain:
            frame = frame.copy(deep=False)
            for column_name, values in plain.items():
                frame[column_name] = values
        return frame

    def _without_surplus(self, X: Any, name: str) -> pd.DataFrame:
        frame = as_frame(X, name)
        surplus = [column for column in frame.columns if column in self.optional and column not in self.names]
        return frame.drop(columns=surplus) if surplus else frame

    def encode(self, X: Any, name: str = "X") -> FloatArray:
        """Rows of numbers: NaN where missing, `UNSEEN` for unseen categories."""
        frame = self._without_surplus(X, name)
        values = dict(frame.items())  # column lookups one by one would double the time of scoring one person
        if list(values) != self.names:
            absent = [column for column in self.optional if column not in values]
            _check_names(list(values), [column for column in self.names if column not in absent], name)
        rows = np.empty((len(frame), len(self.columns)))
        for i, column in enumerate(self.columns):
            if column.name in values:
                rows[:, i] = column.encode(values[column.name])
            else:
                rows[:, i] = np.nan if isinstance(column, NumericColumn) else UNSEEN
        return rows

    def decode(self, rows: FloatArray) -> pd.DataFrame:
        """A table of the decoded columns."""
        return pd.DataFrame(
            {column.name: column.decode(rows[:, i]) for i, column in enumerate(self.columns)}, copy=False
        )

    def read_for_predict(self, X: Any, numbers: Callable[[Any], FloatArray]) -> People:
        """As `People.read`, for at least one person."""
        people = People.read(X, self)
        if not len(people):
            raise InvalidInputError("X must hold at least one person; got a table without rows.")
        return people

    def recode(self, people: People) -> People:
        """Read the table again."""
        return People.read(people.table, self)

    def reordered(self, order: list[int]) -> TableEncoder:
        """With the columns in another order."""
        return replace(self, columns=tuple(self.columns[i] for i in order))

    def spelled_as(self, X: pd.DataFrame) -> TableEncoder:
        """Decodes categories as they are written in `X`, also in a column of several types."""
        columns = (c.spelled_as(X[c.name]) if isinstance(c, CategoricalColumn) else c for c in self.columns)
        return replace(self, columns=tuple(columns))


def is_amount(column: NumericColumn | CategoricalColumn) -> bool:
    """Whether a column holds numbers rather than (ordered) categories."""
    return isinstance(column, NumericColumn) and column.categories is None


def _check_names(given: list[Any], expected: list[Any], name: str = "X") -> None:
    absent = [column for column in expected if column not in given]
    if absent:
        raise InvalidInputError(f"{name} must have the column {absent[0]!r}, which the metric names; it has {given}.")
    extra = [column for column in given if column not in expected]
    if extra:
        raise InvalidInputError(
            f"{name} has the column {extra[0]!r}, which the metric does not name. Give it a weight (0 if it must not "
            "matter), or drop it."
        )


@dataclass(frozen=True, eq=False)
class People:
    """Encoded people.

    Attributes
    ----------
    rows : ndarray of shape (n_samples, n_columns)
        Numbers, NaN where missing; categories by their index among the levels of `encoder`, else `UNSEEN`.
    encoder : Encoder
    table : DataFrame or ndarray
        The same people in the form that a model takes.
    given : DataFrame, optional
        All people of a fit as they were given, for models that were fitted elsewhere.
    """

    rows: FloatArray
    encoder: Encoder
    table: Any
    given: pd.DataFrame | None = None

    @classmethod
    def read(cls, X: Any, encoder: Encoder, name: str = "X") -> People:
        """Validate and encode `X`."""
        table = encoder.as_table(X, name)
        rows = encoder.encode(table, name)
        if rows.ndim != 2:
            raise not_a_table(name, rows.shape)
        return cls(rows, encoder, table)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: Any) -> People:
        """A subset of the people, by a slice or positions."""
        table = self.table.iloc[chosen] if hasattr(self.table, "iloc") else self.table[chosen]
        return People(self.rows[chosen], self.encoder, table)

    def arranged(self, labels: tuple[Any, ...] | None) -> People:
        """The same people with the columns that a model takes in the order of `labels`; as they are without names."""
        given = self.encoder.raw_labels
        if labels is None or given is None or given == labels:
            return self
        if {*given} != {*labels}:
            raise InvalidInputError(f"X must have the columns of the estimator, {list(labels)}; got {list(given)}.")
        order = [given.index(name) for name in labels]
        rows = self.rows if self.encoder.mixes_features else np.ascontiguousarray(self.rows[:, order])
        if isinstance(self.table, pd.DataFrame):
            table: Any = self.table[[name for name in labels if name in self.table.columns]]
        else:
            table = np.ascontiguousarray(self.table[:, order])
        return People(rows, self.encoder.reordered(order), table, self.given)

    def named_table(self) -> Any:
        """People for an estimator of likewise inside another: as they were given, with names if columns have them."""
        if self.given is not None:
            return self.given
        names = self.encoder.raw_labels
        return self.table if names is None else pd.DataFrame(self.table, columns=list(names), copy=False)

    def name_of(self, row: int) -> Any:
        """Index label of a row, or its position."""
        index = getattr(self.table, "index", None)
        return row if index is None or len(index) != len(self) else index[row]

    def missing(self) -> list[int]:
        """Positions of columns with missing numbers."""
        return np.flatnonzero(np.isnan(self.rows).any(axis=0)).tolist()
