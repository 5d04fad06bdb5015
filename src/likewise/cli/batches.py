"""Read a table of any size in batches."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pyarrow.parquet as pq

from likewise._frozen import Frozen
from likewise.cli.column_kinds import Faults, Kinds, as_kinds
from likewise.cli.table_io import Dialect, Note, header_of, kind_of, no_note, note_repeated, reading
from likewise.exceptions import FileError


class ReadBatch(NamedTuple):
    """A batch: converted columns, and columns to copy to the output, as text."""

    people: pd.DataFrame
    beside: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Batches(Frozen):
    """The people in a CSV or Parquet file, `rows` at a time.

    `kinds` say how to read each column, so no batch depends on the rest of the file.

    Attributes
    ----------
    source : Path
    rows : int
        Memory does not depend on the size of the file.
    dialect : Dialect
    kinds : Kinds
    beside : collection of str
        Columns to copy to the output, as text.
    id_column : str or None
        Names people in errors.
    note : callable
        Called with one line for each oddity of the file.
    """

    source: Path
    rows: int
    dialect: Dialect = field(default_factory=Dialect)
    kinds: Kinds = field(default_factory=Kinds)
    beside: Collection[str] = ()
    id_column: str | None = None
    note: Note = no_note

    def __post_init__(self) -> None:
        if not self.source.is_file():
            raise FileError(f"There is no file {self.source}.")
        kind_of(self.source)

    def __iter__(self) -> Iterator[ReadBatch]:
        """Raises at the end, with counts over the whole file, if values are not the numbers that they must be."""
        faults, noted = Faults(self.id_column), set[str]()

        def once(line: str) -> None:
            column = line.split("'")[1]
            if column not in noted:
                noted.add(column)
                self.note(line)

        for table in self._read():
            people = as_kinds(table, self.kinds, self.dialect, faults, once)
            if not faults:
                yield ReadBatch(people, table[[name for name in self.beside if name in table.columns]])
        faults.stop(str(self.source), of_model=True)

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns."""
        with reading(self.source, self.dialect):
            if kind_of(self.source) == "parquet":
                return [str(name) for name in pq.read_schema(self.source).names]
            return [str(name) for name in pd.read_csv(self.source, nrows=0, **self.dialect.options).columns]

    @cached_property
    def n_people(self) -> int:
        """Rows of the file."""
        with reading(self.source, self.dialect):
            if kind_of(self.source) == "parquet":
                return int(pq.read_metadata(self.source).num_rows)
            note_repeated(header_of(self.source, self.dialect), self.note)
            options = self.dialect.options | {"usecols": [0], "dtype": str, "chunksize": self.rows}
            with pd.read_csv(self.source, **options) as reader:
                return sum(len(batch) for batch in reader)

    def _read(self) -> Iterator[pd.DataFrame]:
        wanted = {*self.kinds.numeric, *self.kinds.as_text, *self.beside} | {self.id_column}
        needed = [name for name in self.columns if name in wanted]
        with reading(self.source, self.dialect):
            if kind_of(self.source) == "parquet":
                with pq.ParquetFile(self.source) as file:
                    for batch in file.iter_batches(batch_size=self.rows, columns=needed):
                        yield batch.to_pandas()
            else:
                # What is repeated is text, too: it stays as it is written, in every batch.
                texts = [name for name in needed if name not in self.kinds.numeric or name in self.beside]
                options = self.dialect.options | {"usecols": needed.__contains__, "dtype": dict.fromkeys(texts, str)}
                with pd.read_csv(self.source, chunksize=self.rows, **options) as reader:
                    yield from reader
