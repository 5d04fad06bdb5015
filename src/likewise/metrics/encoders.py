"""People as numbers, with what the numbers mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise._typing import BoolArray, FloatArray, IntArray
from likewise._validation import check_numbers, check_size
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.metrics.columns import UNSEEN, CategoricalColumn, NumericColumn, canonical_texts, is_mixed


def is_table(X: Any) -> bool:
    """Whether `X` is a table with named columns (pandas, polars, pyarrow, ...)."""
    return hasattr(X, "__dataframe__") or hasattr(X, "__arrow_c_stream__")


def as_frame(X: Any, name: str = "X") -> pd.DataFrame:
    """Return a pandas DataFrame of any table that narwhals knows."""
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
        raise InvalidInputError(f"{name} must have distinct column names; {str(repeated[0])!r} stands twice.")
    return frame


def without_sparse(X: Any) -> Any:
    """The same table with plain columns for sparse ones, of which scikit-learn warns; anything else as it is."""
    kinds = X.dtypes.items() if isinstance(X, pd.DataFrame) and X.columns.is_unique else ()
    sparse = {column: kind.subtype for column, kind in kinds if isinstance(kind, pd.SparseDtype)}
    return X.astype(sparse) if sparse else X


def refuse_batch(X: Any, name: str = "X") -> None:
    """Raise if `X` is one batch of a pyarrow table: it looks like a table, and is not one to pandas or NumPy."""
    if type(X).__name__ == "RecordBatch":
        raise InvalidTypeError(
            f"{name} must be a whole table; got a RecordBatch. Use pyarrow.Table.from_batches([{name}])."
        )


def labels_of(X: Any, name: str = "X") -> tuple[Any, ...] | None:
    """Names of the columns of a table, of whatever type they are; None for an array."""
    refuse_batch(X, name)
    if isinstance(X, type):
        raise InvalidTypeError(f"{name} must be a table or an array; got the class {X.__name__}.")
    labels = getattr(X, "column_names", None) or getattr(X, "columns", None)  # pyarrow; pandas and polars
    if labels is not None and len({*labels}) < len(labels):
        raise InvalidInputError(f"{name} must have distinct column names; got {list(labels)}.")
    return None if labels is None else tuple(labels)


class Encoder(ABC):
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
class ArrayEncoder(Encoder):
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
        """The numbers, with columns in this order."""
        return check_numbers(name, self.arranged(X, name), "Encode text columns first.")

    def arranged(self, X: Any, name: str = "X") -> Any:
        """The same table with its columns in this order; an array, or a table without names here, as it is."""
        given = labels_of(X, name)
        if given is None or self.labels is None or given == self.labels:
            return X
        if {*given} != {*self.labels}:
            raise InvalidInputError(
                f"{name} must have the columns of the metric, {list(self.labels)}; got {list(given)}."
            )
        return as_frame(X, name)[list(self.labels)]

    def encode(self, X: Any, name: str = "X") -> FloatArray:
        """The numbers, if they are finite."""
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


@dataclass(frozen=True)
class TableEncoder(Encoder):
    """How a table becomes a matrix of numbers, one column each, and how perturbed rows become a table again.

    Numbers stay numbers, ordered categories are counted from 0, categories become positions among the known ones.

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
        cls, X: pd.DataFrame, numeric: Sequence[Any], categorical: Sequence[Any], *, optional: Sequence[Any] = ()
    ) -> TableEncoder:
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
        return np.array([isinstance(column, NumericColumn) for column in self.columns], dtype=bool)

    @property
    def is_plain(self) -> bool:
        """Whether all columns are numbers."""
        return all(_is_amount(column) for column in self.columns)

    def as_table(self, X: Any, name: str = "X") -> pd.DataFrame:
        """Any kind of table, as pandas has it, with columns in the order of those that were learned.

        What must not matter and was not there then is left out. Numbers that pandas holds as objects, such as decimals,
        become floating point, as they are after noise, and categories of several types become text.
        """
        frame = self._without_surplus(X, name)
        given, names = frame.columns.tolist(), self.names
        if given != names and {*given} <= {*names}:
            frame = frame[[column for column in names if column in given]]
        kinds: dict[Any, Any] = dict(zip(frame.columns, frame.dtypes.array, strict=True))
        boxed = [column for column in self.columns if kinds.get(column.name) == np.dtype(object)]
        plain: dict[Any, Any] = {
            column.name: column.encode(frame[column.name]) for column in boxed if _is_amount(column)
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
        """People as numbers: NaN for missing ones, `UNSEEN` for unseen categories."""
        frame = self._without_surplus(X, name)
        values = dict(frame.items())  # looking columns up one by one takes as long as the rest of a single answer
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
        """Return the table of a matrix."""
        return pd.DataFrame(
            {column.name: column.decode(rows[:, i]) for i, column in enumerate(self.columns)}, copy=False
        )


def _is_amount(column: NumericColumn | CategoricalColumn) -> bool:
    """Whether a column holds numbers, rather than categories with or without an order."""
    return isinstance(column, NumericColumn) and column.categories is None


def _check_names(given: list[Any], expected: list[Any], name: str = "X") -> None:
    absent = [column for column in expected if column not in given]
    if absent:
        raise InvalidInputError(f"{name} must have the column {absent[0]!r}, which the metric names; it has {given}.")
    extra = [column for column in given if column not in expected]
    if extra:
        raise InvalidInputError(
            f"{name} has the column {extra[0]!r}, of which the metric says nothing. Give it a weight (0 if it must not "
            "matter), or drop it."
        )


@dataclass(frozen=True, eq=False)
class People:
    """People as rows of numbers.

    Attributes
    ----------
    rows : ndarray of shape (n_samples, n_columns)
        Numbers, NaN where missing; for categories their position among those of `encoder`, and `UNSEEN` for others.
    coding : Coding
        What the columns are, and how rows become again what a model takes.
    table : DataFrame or ndarray
        The people as a model takes them.
    """

    rows: FloatArray
    encoder: Encoder
    table: Any

    @classmethod
    def read(cls, X: Any, encoder: Encoder, name: str = "X") -> People:
        """Check and code the people in `X`."""
        table = encoder.as_table(X, name)
        rows = encoder.encode(table, name)
        if rows.ndim != 2:
            raise InvalidInputError(
                f"{name} must be a table of people and features, (n_samples, n_features); got {rows.shape}."
            )
        return cls(rows, encoder, table)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: Any) -> People:
        """Some of these people: a slice, or positions."""
        table = self.table.iloc[chosen] if hasattr(self.table, "iloc") else self.table[chosen]
        return People(self.rows[chosen], self.encoder, table)

    def name_of(self, row: int) -> Any:
        """What a row is called: by the index of its table, or else by its position."""
        index = getattr(self.table, "index", None)
        return row if index is None or len(index) != len(self) else index[row]

    def missing(self) -> list[int]:
        """Columns in which a number is missing for someone."""
        return np.flatnonzero(np.isnan(self.rows).any(axis=0)).tolist()


def spread(n: int, most: int) -> IntArray:
    """Positions spread evenly over `n`: all of them, if there are few.

    Examples
    --------
    >>> spread(3, 5), spread(9, 3)
    (array([0, 1, 2]), array([0, 4, 8]))
    """
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.int64)


def fixed_sample(n: int, size: int) -> IntArray:
    """Positions of about `size` of `n` rows, always the same; all of them, if there are few."""
    if n <= size:
        return np.arange(n)
    return np.unique(np.random.default_rng(1).integers(n, size=size))
