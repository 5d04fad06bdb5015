"""A table in Parquet files, a batch of people at a time, in a fixed order."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from likewise._frozen import Frozen
from likewise._rules import PATH, in_a_line
from likewise._typing import IntArray
from likewise.errors import FileError

BATCH = 2**17
"""People at a time: what a worker holds does not depend on the size of the table, nor of its partitions."""


@dataclass(frozen=True)
class Partition:
    """Some people of a table: one row group of one file; `start` counts the people before them."""

    file: str
    group: int
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, pd.DataFrame]]:
        """Some of the columns, in the order given, in batches that each know the position of their first person."""
        position = self.start
        with _as_file_errors(self.file), pq.ParquetFile(self.file) as file:
            for batch in file.iter_batches(batch_size=BATCH, row_groups=[self.group], columns=list(columns)):
                frame = batch.to_pandas()
                frame.index = pd.RangeIndex(position, position + len(frame))  # names people in errors
                yield position, frame[list(columns)]
                position += len(frame)

    def rows(self, columns: Sequence[str], positions: IntArray) -> pd.DataFrame:
        """The people at some positions, increasing, all of them in this partition."""
        found = []
        for start, frame in self.batches(columns):
            here = positions[(positions >= start) & (positions < start + len(frame))]
            if len(here):
                found.append(frame.iloc[here - start])
        return pd.concat(found, ignore_index=True)


@dataclass(frozen=True, eq=False)
class StoredTable(Frozen):
    """The people in a Parquet file, or in all Parquet files of a directory, in the order of their names.

    Attributes
    ----------
    path : Path
        Every worker must be able to read it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     for i in range(2):
    ...         pd.DataFrame({"age": [30 + i, 40 + i]}).to_parquet(f"{place}/{i}.parquet")
    ...     people = StoredTable(Path(place))
    ...     len(people), people.columns, [len(part) for part in people.parts]
    (4, ['age'], [2, 2])
    """

    path: Path

    def __post_init__(self) -> None:
        PATH.check("path", self.path)
        object.__setattr__(self, "path", Path(self.path).resolve())

    @cached_property
    def files(self) -> list[Path]:
        """The files, in the order of their names."""
        if self.path.is_file():
            return [self.path]
        if not self.path.is_dir():
            raise FileError(f"There is no file or directory {self.path}.")
        found = sorted(self.path.rglob("*.parquet"))
        if not found:
            raise FileError(f"{self.path} holds no .parquet file.")
        return found

    @cached_property
    def parts(self) -> list[Partition]:
        """Row groups that hold someone."""
        found, start = [], 0
        for file in self.files:
            with _as_file_errors(file):
                metadata = pq.read_metadata(file)
            for group in range(metadata.num_row_groups):
                stop = start + metadata.row_group(group).num_rows
                if stop > start:
                    found.append(Partition(str(file), group, start, stop))
                start = stop
        return found

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns; all files must have them."""
        names: list[str] | None = None
        for file in self.files:
            with _as_file_errors(file):
                here = [name for name in pq.read_schema(file).names if not name.startswith("__index_level_")]
            names = here if names is None else names
            if set(names) - set(here):
                raise FileError(f"{file} has no column {min(set(names) - set(here))!r}, which {self.files[0]} has.")
        return names or []

    def check_columns(self, wanted: Sequence[str], why: str) -> None:
        """Raise if a column is not there."""
        absent = [name for name in wanted if not isinstance(name, str) or name not in self.columns]
        if absent:
            raise FileError(f"{self.path} has no column {in_a_line(absent[0])}, {why}; it has {self.columns}.")

    def __len__(self) -> int:
        return self.parts[-1].stop if self.parts else 0

    def head(self, columns: Sequence[str]) -> pd.DataFrame:
        """The first few people."""
        first = self.parts[0]
        return first.rows(columns, np.arange(min(len(first), 100)))

    def shares(self, positions: IntArray) -> list[tuple[Partition, IntArray]]:
        """Each partition, and which of some positions it holds, each once and increasing."""
        wanted = np.unique(positions)
        cuts = np.searchsorted(wanted, [part.start for part in self.parts] + [len(self)])
        return [(part, wanted[a:b]) for part, a, b in zip(self.parts, cuts[:-1], cuts[1:], strict=True)]


def joined(frames: Sequence[pd.DataFrame], categories: Collection[Any]) -> pd.DataFrame:
    """People of several files in one table. Categories that these hold in several types keep their values.

    Examples
    --------
    >>> codes = [pd.DataFrame({"code": [2**53 + 1]}), pd.DataFrame({"code": [7.5]})]
    >>> joined(codes, ["code"])["code"].tolist()
    [9007199254740993, 7.5]
    """
    differ = [
        name
        for name in (frames[0].columns if frames else ())
        if name in categories and any(frame[name].dtype != frames[0][name].dtype for frame in frames)
    ]
    kept = [frame.astype(dict.fromkeys(differ, object)) if differ else frame for frame in frames]
    return pd.concat(kept, ignore_index=True)


class _as_file_errors:  # noqa: N801  # a context manager, used as a word
    """What Arrow raises on a damaged file, as an error that names it."""

    def __init__(self, file: str | Path) -> None:
        self.file = file

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, (pa.ArrowInvalid, OSError)):
            raise FileError(f"Cannot read {self.file} as Parquet ({' '.join(str(error).split())[:120]}).") from None
