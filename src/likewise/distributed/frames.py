"""Dask DataFrames as likewise reads them: columns, partitions with row positions, and passes over all of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from likewise._optional import is_dask, need
from likewise._typing import IntArray
from likewise._validation import PATH, short_repr
from likewise.distributed.cluster import compute, delayed
from likewise.exceptions import FileError, InvalidInputError, InvalidTypeError
from likewise.kernel.columns import canonical_texts, is_mixed, is_numeric
from likewise.metrics.base import Metric

_BLOCKSIZE = 2**26  # bytes of a Parquet file in one partition, about
_SPILL_SIZE = 2**30  # bytes of Parquet files above which the command line starts workers, which spill to disk
_EXTENSIONS = (".parquet", ".parq", ".pq")
_INDEX = "__index_level_"  # how pandas names an index in a Parquet file


@dataclass(frozen=True, eq=False)
class DaskTable:
    """A Dask DataFrame, and its name in errors.

    Attributes
    ----------
    frame : dask.dataframe.DataFrame
    name : str
        "X", or the path that it was read from.
    """

    frame: Any
    name: str = "X"

    @classmethod
    def of(cls, X: Any) -> DaskTable:
        """From a Dask DataFrame, or the path of a Parquet file or of a directory of them."""
        if isinstance(X, (str, PathLike)):
            return cls(read_parquet(X), str(X))
        return cls(X)

    @property
    def columns(self) -> list[Any]:
        """Names of the columns."""
        return list(self.frame.columns)

    def check_columns(self, wanted: Sequence[Any], why: str) -> None:
        """Raise if a column does not exist; `why` it is needed."""
        absent = [name for name in wanted if name not in self.columns]
        if absent:
            raise FileError(f"{self.name} has no column {short_repr(absent[0])}, {why}; it has {self.columns}.")

    def with_column(self, given: Any, parameter: str) -> tuple[DaskTable, Any]:
        """The table with a Dask Series as one more column, and its name; `given` may be the name of a column."""
        if given is None:
            return self, None
        if isinstance(given, str):
            self.check_columns([given], f"the {parameter}")
            return self, given
        if not is_dask(given, "Series"):
            raise InvalidTypeError(
                f"{parameter} must name a column of X, or be a Dask Series, where X is a Dask DataFrame or a path; got "
                f"{type(given).__name__}. Make it a column of the table first."
            )
        if given.npartitions != self.frame.npartitions:
            raise InvalidInputError(
                f"{parameter} must have the partitions of X ({self.frame.npartitions}); it has {given.npartitions}. "
                "Take it from the same Dask DataFrame."
            )
        name = next(name for name in (f"_{parameter}{'_' * i}" for i in range(99)) if name not in self.columns)
        return replace(self, frame=self.frame.assign(**{name: given})), name

    def values_at(self, column: Any, positions: IntArray) -> pd.Series[Any]:
        """Values of a column at sorted, distinct positions, indexed by these."""
        values: pd.Series[Any] = self.scan([column], [], [column]).rows_at(positions)[column]
        return values

    def scan(
        self,
        columns: Sequence[Any],
        described: Sequence[Any],
        categorical: Collection[Any],
        *,
        by_type: bool = False,
    ) -> Partitions:
        """Count rows and describe the columns `described` in one pass; return the partitions of `columns`.

        With `by_type`, a column must hold the same kind of values in all partitions.
        """
        # All needed columns at once: Dask may merge partitions when few columns are read.
        tables = self.frame[list(columns)].to_delayed()
        look = delayed(partial(_describe, list(described), list(categorical)))
        lengths, kinds, digests = zip(*compute([look(table) for table in tables]), strict=True)
        if by_type:
            _check_kinds(self.name, kinds)
        n_rows = sum(lengths)
        if n_rows < 2:
            raise InvalidInputError(f"{self.name} must hold at least two people; it has {n_rows}.")
        seen = [digest for digest in digests if len(digest)] or [digests[0]]
        digest = describe(joined(seen, categorical), categorical)
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return Partitions(tables, starts, digest, frozenset(categorical))


@dataclass(frozen=True, eq=False)
class Partitions:
    """Delayed tables, each with the position of its first row.

    Attributes
    ----------
    tables : list of Delayed
    starts : ndarray of shape (n_partitions + 1,)
    digest : DataFrame
        Rows with every category, the range of numbers, and a missing value if there is one: an encoder fitted to them
        is that of all rows.
    categorical : frozenset
    """

    tables: list[Any]
    starts: IntArray
    digest: pd.DataFrame
    categorical: frozenset[Any]

    def __len__(self) -> int:
        return int(self.starts[-1])

    def rows_at(self, positions: IntArray, columns: Sequence[Any] | None = None) -> pd.DataFrame:
        """The rows at sorted, distinct positions, indexed by these."""
        cuts = np.searchsorted(positions, self.starts)
        chosen = [
            delayed(_take)(table, positions[a:b] - start, columns)
            for table, start, a, b in zip(self.tables, self.starts[:-1], cuts[:-1], cuts[1:], strict=True)
            if b > a
        ]
        if not chosen:
            chosen = [delayed(_take)(self.tables[0], positions, columns)]
        return joined(compute(chosen), self.categorical).set_axis(positions, axis=0)


def read_parquet(path: Any) -> Any:
    """A Dask DataFrame of a Parquet file, or of the files in a directory, in the natural order of their names."""
    dd = need("dask.dataframe", "A table in partitions")
    import dask

    PATH.check("path", path)
    place = Path(path).resolve()
    if not place.exists():
        raise FileError(f"There is no file or directory {place}.")
    files = [place] if place.is_file() else sorted(file for file in place.rglob("*") if file.suffix in _EXTENSIONS)
    if not files:
        raise FileError(f"{place} holds no .parquet file.")
    _check_schemas(files)
    with dask.config.set({"dataframe.convert-string": False}):  # the dtypes of pandas
        frame = dd.read_parquet([str(file) for file in files], blocksize=_BLOCKSIZE, index=False)
    return frame[[name for name in frame.columns if not str(name).startswith(_INDEX)]]


def metric_columns(table: DaskTable, metric: Metric, aside: Any = None) -> list[Any]:
    """Columns of a metric; all but `aside` if the metric names none."""
    known = metric.columns
    table.check_columns([name for name in known if name not in metric.hidden], "which the metric names")
    return [name for name in table.columns if name != aside and (name in known or not known)]


def categories_under(table: DaskTable, metric: Metric, names: list[Any]) -> list[Any]:
    """Columns that a metric compares as categories."""
    empty = pd.DataFrame({name: pd.Series(dtype=table.frame.dtypes[name]) for name in names})
    numbers = metric.encoder(empty).is_number
    if len(numbers) != len(names):
        raise InvalidInputError(f"metric has {len(numbers)} weights, and the table {len(names)} columns: {names}.")
    return [name for name, number in zip(names, numbers, strict=True) if not number]


def workers_for(path: Path) -> str | None:
    """Return "local" for Parquet files so large that threads, which do not spill to disk, might run out of memory."""
    files = [path] if path.is_file() else path.rglob("*")
    size = sum(file.stat().st_size for file in files if file.suffix in _EXTENSIONS)
    return "local" if size > _SPILL_SIZE else None


# -- one partition ---------------------------------------------------------------------------------------------------


def describe(table: pd.DataFrame, categorical: Collection[Any]) -> pd.DataFrame:
    """Rows with every category, the range of numbers, and missing values if there are any.

    An encoder fitted to this digest is the one fitted to the whole; the digest of digests is that of all.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [30, 41, 35, 38], "region": ["north", "south", "north", "south"]})
    >>> describe(table, ["region"])
       age region
    0   30  north
    1   41  south
    """
    kept = {name: _defining(table[name], name in categorical) for name in table.columns}
    size = max((len(places) for places in kept.values()), default=0)
    return pd.DataFrame(
        {name: table[name].iloc[np.resize(places, size)].reset_index(drop=True) for name, places in kept.items()}
    )


def joined(tables: Sequence[pd.DataFrame], categorical: Collection[Any]) -> pd.DataFrame:
    """Concatenate partitions; categories keep their values if dtypes differ between partitions.

    Examples
    --------
    >>> codes = [pd.DataFrame({"code": [2**53 + 1]}), pd.DataFrame({"code": [7.5]})]
    >>> joined(codes, ["code"])["code"].tolist()
    [9007199254740993, 7.5]
    """
    differ = [
        name
        for name in (tables[0].columns if tables else ())
        if name in categorical and any(table[name].dtype != tables[0][name].dtype for table in tables)
    ]
    kept = [table.astype(dict.fromkeys(differ, object)) if differ else table for table in tables]
    return pd.concat(kept, ignore_index=True)


def _describe(
    described: list[Any], categorical: list[Any], table: pd.DataFrame
) -> tuple[int, dict[Any, str | None], pd.DataFrame]:
    kinds = {name: _kind(table[name]) for name in described}
    return len(table), kinds, describe(table[described], categorical)


def _defining(column: pd.Series[Any], categorical: bool) -> npt.NDArray[np.intp]:
    """Positions of the values that an encoder depends on."""
    if categorical or not is_numeric(column):
        return np.flatnonzero(~(canonical_texts(column) if is_mixed(column) else column).duplicated())
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    absent = np.flatnonzero(np.isnan(values))[:1]
    if len(absent) == len(values) or np.isnan(values).all():
        return absent
    return np.unique([int(np.nanargmin(values)), int(np.nanargmax(values)), *absent])


def _kind(column: pd.Series[Any]) -> str | None:
    """Kind of the values of a column; None if all are missing."""
    if not column.notna().any():
        return None
    kind: Any = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        kind = kind.categories.dtype
    if pd.api.types.is_bool_dtype(kind):
        return "Booleans"
    if pd.api.types.is_numeric_dtype(kind):
        return "numbers"
    return "dates" if pd.api.types.is_datetime64_any_dtype(kind) else "text"


def _check_kinds(name: str, kinds: Sequence[dict[Any, str | None]]) -> None:
    """Raise if a column holds different kinds of values in different partitions."""
    for column in kinds[0] if kinds else ():
        first: tuple[int, str] | None = None
        for i, partition in enumerate(kinds):
            kind = partition[column]
            if kind is not None and first is None:
                first = i, kind
            elif kind is not None and first is not None and kind != first[1]:
                raise InvalidInputError(
                    f"Column {column!r} of {name} must hold the same kind of values in all partitions; it holds "
                    f"{first[1]} in partition {first[0]} and {kind} in partition {i}. Use X[{column!r}].astype first."
                )


def _take(table: pd.DataFrame, positions: IntArray, columns: Sequence[Any] | None) -> pd.DataFrame:
    return (table if columns is None else table[list(columns)]).iloc[positions]


def _check_schemas(files: list[Path]) -> None:
    """Raise if a file is not Parquet, or lacks a column of the first file."""
    first: list[str] | None = None
    for file in files:
        try:
            names = [name for name in pq.read_schema(file).names if not name.startswith(_INDEX)]
        except (pa.ArrowInvalid, OSError) as error:
            raise FileError(f"Cannot read {file} as Parquet ({' '.join(str(error).split())[:120]}).") from None
        first = names if first is None else first
        absent = sorted(set(first) - set(names))
        if absent:
            raise FileError(f"{file} has no column {absent[0]!r}, which {files[0]} has.")
