"""A table of any size, a batch of people at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from likewise._frozen import Frozen
from likewise.app.tables import Dialect, Note, kind_of, no_note, note_repeated, reading, tidy
from likewise.errors import FileError


@dataclass(frozen=True, eq=False)
class Batches(Frozen):
    """The people in a CSV or Parquet file, `rows` at a time.

    Attributes
    ----------
    source : Path
    rows : int
        Memory does not depend on the size of the file.
    dialect : Dialect
    numeric : collection of str
        Columns that must be numbers, however they are written.
    note : callable
        Takes a line on what is not plain.
    """

    source: Path
    rows: int
    dialect: Dialect = field(default_factory=Dialect)
    numeric: Collection[str] = ()
    note: Note = no_note

    def __post_init__(self) -> None:
        if not self.source.is_file():
            raise FileError(f"There is no file {self.source}.")
        kind_of(self.source)

    def __iter__(self) -> Iterator[pd.DataFrame]:
        for batch in self._read():
            yield tidy(batch, self.dialect, self.note, only=self.numeric)

    @property
    def n_people(self) -> int:
        """Rows of the file."""
        return self._survey[0]

    def _read(self) -> Iterator[pd.DataFrame]:
        with reading(self.source, self.dialect):
            if kind_of(self.source) == "parquet":
                with pq.ParquetFile(self.source) as file:
                    for batch in file.iter_batches(batch_size=self.rows):
                        yield batch.to_pandas()
            else:
                kinds = self._survey[1]
                with pd.read_csv(self.source, chunksize=self.rows, dtype=kinds, **self.dialect.options) as reader:
                    yield from reader

    @cached_property
    def _survey(self) -> tuple[int, dict[str, Any]]:
        """How many rows there are and, in CSV, the types of columns.

        Types are those of the whole file, or a column could be text in one batch and numbers in the next.
        """
        with reading(self.source, self.dialect):
            if kind_of(self.source) == "parquet":
                return int(pq.read_metadata(self.source).num_rows), {}
            header = pd.read_csv(self.source, header=None, nrows=1, dtype=str, **self.dialect.options)
            note_repeated(header.iloc[0].tolist(), self.note)
            count, kinds = 0, dict[str, Any]()
            with pd.read_csv(self.source, chunksize=self.rows, **self.dialect.options) as reader:
                for batch in reader:
                    count += len(batch)
                    for name, kind in batch.dtypes.items():
                        kinds[str(name)] = _common(kinds.get(str(name), kind), kind)
            return count, kinds


def _common(known: Any, kind: Any) -> Any:
    """The type that holds the values of both."""
    if known == kind:
        return known
    numbers = pd.api.types.is_numeric_dtype(known) and pd.api.types.is_numeric_dtype(kind)
    booleans = pd.api.types.is_bool_dtype(known) or pd.api.types.is_bool_dtype(kind)
    return np.dtype(np.float64) if numbers and not booleans else np.dtype(object)
