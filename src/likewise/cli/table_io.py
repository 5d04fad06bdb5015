"""Read tables from CSV and Parquet files, whole or in batches, and note columns that may not be what they seem."""

from __future__ import annotations

import io
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import click
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from likewise._frozen import Frozen
from likewise.cli.column_kinds import BLANKS, Faults, Kinds, as_kinds
from likewise.cli.console import Dialect, Note, no_note
from likewise.exceptions import FileError
from likewise.kernel.columns import UNSEEN, CategoricalColumn, is_numeric
from likewise.kernel.schema import is_amount
from likewise.metrics.units import number

_ORDINALS = {2: "second", 3: "third"}
_ROWS = 100_000  # read at a time, to look for leading zeros
_PADDED = r"-?0\d+"
_INTEGERS = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype()}


def is_standard(path: str | Path) -> bool:
    """Whether a path is "-": standard input or output."""
    return str(path) == "-"


def named(path: str | Path) -> str:
    """A path for a message."""
    return "standard input" if is_standard(path) else str(path)


def hinted(path: str | Path) -> str:
    """A path for a suggested command; standard input cannot be read twice."""
    return "TABLE.csv" if is_standard(path) else str(path)


def kind_of(path: str | Path) -> str:
    """ "parquet" or "csv", by the ending of a path; standard input is CSV."""
    name = Path(path).name.lower()
    if name.endswith(".parquet"):
        return "parquet"
    if is_standard(path) or name.endswith((".csv", ".csv.gz")):
        return "csv"
    raise FileError(f"{path} must be a .csv, .csv.gz or .parquet file, or - for CSV on standard input.")


def in_partitions(table: Path, cluster: str | None) -> bool:
    """Whether a table is to be read in partitions: a directory, or whatever a cluster works on."""
    if table.is_dir():
        return True
    if cluster is not None and kind_of(table) != "parquet":
        raise FileError(f"--cluster needs a table in Parquet files, which are read in partitions; got {table}.")
    return cluster is not None


def read_table(
    path: str | Path,
    dialect: Dialect | None = None,
    note: Note = no_note,
    *,
    as_text: Collection[str] | Callable[[list[str]], Collection[str]] = (),
    padded: bool = False,
) -> pd.DataFrame:
    """Read a CSV or Parquet file, or CSV from standard input for "-".

    In a CSV file, the columns `as_text` (or a function of all names) are read as they are written, blanks included,
    and with `padded` columns with leading zeros as text.
    """
    dialect = dialect or Dialect()
    if not is_standard(path) and not Path(path).is_file():
        raise FileError(f"There is no file {path}.")
    kind = kind_of(path)
    with reading(path, dialect):
        if kind == "parquet":
            table = pd.read_parquet(path)
        else:
            content = _standard_input() if is_standard(path) else None

            def source() -> Any:
                return path if content is None else io.BytesIO(content)

            note_repeated(header_of(source(), dialect), note)
            names = [str(name) for name in pd.read_csv(source(), nrows=0, **dialect.options).columns]
            texts = as_text(names) if callable(as_text) else as_text
            table = pd.read_csv(source(), **_options(dialect, names, texts))
            if padded:
                table = _with_leading_zeros(table, source, dialect)
    table = without_words(table, dialect)
    table.columns = pd.Index([str(name) for name in table.columns])
    repeated = table.columns[table.columns.duplicated()]
    if len(repeated):
        raise FileError(f"{named(path)} has the column {repeated[0]!r} twice. Rename one of them.")
    if len(table.columns) == 1 and any(sign in table.columns[0] for sign in ";\t|"):
        raise FileError(
            f"{named(path)} has one column only, {table.columns[0]!r}. Give the column separator as --delimiter."
        )
    return table


def without_words(table: pd.DataFrame, dialect: Dialect) -> pd.DataFrame:
    """The table without the words that stand for no value."""
    if not dialect.blank:
        return table
    texts = [i for i, kind in enumerate(table.dtypes) if not is_numeric(kind)]
    said = table.iloc[:, texts].map(lambda value: isinstance(value, str) and value.strip() in dialect.blank)
    return table.assign(
        **{str(table.columns[i]): table.iloc[:, i].mask(said.iloc[:, k].to_numpy()) for k, i in enumerate(texts)}
    )


def _options(dialect: Dialect, names: Iterable[str], texts: Collection[str]) -> dict[str, Any]:
    """Options of `pandas.read_csv` by which the columns `texts` are read as written; others may have blanks."""
    absent = {name: [*BLANKS] for name in names if name not in texts}
    return dialect.options | {"dtype": dict.fromkeys(texts, str), "keep_default_na": False, "na_values": absent}


def _with_leading_zeros(table: pd.DataFrame, source: Callable[[], Any], dialect: Dialect) -> pd.DataFrame:
    """The table with its columns of digits as text where any value, in any row, has a leading zero.

    All rows are searched: by the first ones alone, the same people in another order would be read otherwise.
    """
    unknown = [i for i, kind in enumerate(table.dtypes) if is_numeric(kind)]
    texts: Any = {**dialect.options, "dtype": str}
    found: list[int] = []
    with pd.read_csv(source(), usecols=unknown, chunksize=_ROWS, **texts) as reader:
        for batch in reader:
            padded = [pd.Series(column.unique()).str.fullmatch(_PADDED).any() for _, column in batch.items()]
            found += [i for i, yes in zip(unknown, padded, strict=True) if yes and i not in found]
    if not found:
        return table
    read = pd.read_csv(source(), usecols=found, **texts)
    return table.assign(
        **{str(table.columns[i]): column for i, (_, column) in zip(sorted(found), read.items(), strict=True)}
    )


def check_columns(table: pd.DataFrame, names: Iterable[str], path: str | Path) -> None:
    """Raise if the table has no column of one of these names."""
    for name in names:
        if name not in table.columns:
            raise FileError(f"{named(path)} has no column {name!r}; it has {', '.join(map(repr, table.columns))}.")


@contextmanager
def reading(path: str | Path, dialect: Dialect) -> Iterator[None]:
    """Turn errors of readers into a `FileError` of one line."""
    try:
        yield
    except FileError:
        raise
    except UnicodeDecodeError as error:
        raise FileError(
            f"Cannot read {named(path)} as {dialect.encoding} ({error.reason}). Give --encoding, such as latin-1."
        ) from None
    except pd.errors.EmptyDataError:
        raise FileError(
            f"Cannot read {named(path)}: it is empty. A table begins with the names of its columns."
        ) from None
    except Exception as error:  # pandas and pyarrow raise many types
        raise FileError(f"Cannot read {named(path)}: {' '.join(str(error).split())[:200]}.") from None


def header_of(source: Any, dialect: Dialect) -> list[Any]:
    """Names of the columns of a CSV file, duplicates included."""
    first = pd.read_csv(source, header=None, nrows=1, dtype=str, **dialect.options)
    return list(first.iloc[0])


def note_repeated(header: list[Any], note: Note) -> None:
    """Note how columns with duplicate names are renamed."""
    for name, count in Counter(header).items():
        for i in range(2, count + 1):
            which = _ORDINALS.get(i, f"{i}th")
            note(f"The column {name!r} occurs {count} times; the {which} is named '{name}.{i - 1}'.")


def _standard_input() -> bytes:
    """What a command is given on standard input, however often it reads its table."""
    context = click.get_current_context(silent=True)
    kept: dict[str, Any] = {} if context is None else context.meta
    if __name__ not in kept:
        kept[__name__] = sys.stdin.buffer.read()
    return bytes(kept[__name__])


_MAX_LEVELS = 3


class Unseen:
    """Counts people whom a model was not trained for, over the batches of a table: other categories, far numbers.

    A number is far if it is further beyond the smallest or largest learned from than these two are apart.
    """

    def __init__(self, model: Any) -> None:
        encoder = model.encoder_
        self._columns = [
            c for c in encoder.columns if isinstance(c, CategoricalColumn) and c.name not in encoder.optional
        ]
        self._found: dict[Any, tuple[Any, int]] = {}
        self._n_known: Counter[Any] = Counter()
        self._n_people = 0
        self._far: dict[Any, tuple[float, int, int]] = {}  # the furthest number, its row, and how many are far
        metric, ranges = model.guarantee_.bound_metric, getattr(model, "ranges_", ())  # which older models have not
        self._ranges = {
            column.name: (low, high, metric.codes(i))
            for i, (column, (low, high)) in enumerate(zip(encoder.columns, ranges, strict=False))
            if is_amount(column) and column.name not in encoder.optional and high > low
        }

    @classmethod
    def check(cls, model: Any, people: pd.DataFrame, where: str, note: Note) -> None:
        """Count those of a whole table; raise, or note, as `stop` and `tell` do."""
        unseen = cls(model)
        unseen.look(people)
        unseen.stop(where)
        unseen.tell(note)

    def look(self, people: pd.DataFrame) -> None:
        """Count those of one batch."""
        for name, (low, high, codes) in self._ranges.items():
            values = people[name].to_numpy(dtype=np.float64, na_value=np.nan)
            beyond = np.where(np.isin(values, codes), np.nan, np.maximum(low - values, values - high))
            n_far = int((beyond > high - low).sum())
            if n_far:
                row = int(np.nanargmax(beyond))
                furthest, at, count = self._far.get(name, (low, 0, 0))
                if beyond[row] > max(low - furthest, furthest - high):
                    furthest, at = float(values[row]), self._n_people + row + 1
                self._far[name] = furthest, at, count + n_far
        self._n_people += len(people)
        for column in self._columns:
            unseen = column.encode(people[column.name]) == UNSEEN
            self._n_known[column.name] += int((people[column.name].notna() & ~unseen).sum())
            places = np.flatnonzero(unseen)
            if len(places):
                first = people[column.name].iloc[int(places[0])]
                example, count = self._found.get(column.name, (first, 0))
                self._found[column.name] = example, count + len(places)

    def stop(self, where: str) -> None:
        """Raise if all values of a column are such: to the model all people would be the same in it."""
        for column in self._columns:
            example, _ = self._found.get(column.name, (None, 0))
            if not pd.isna(example) and not self._n_known[column.name]:
                refuse_unknown(column.name, where, [example], column.levels)

    def tell(self, note: Note) -> None:
        """Note each column with such people."""
        levels = {column.name: column.levels for column in self._columns}
        for name, (first, count) in self._found.items():
            note(unseen_note(name, first, count, self._n_people, levels[name]))
        for name, (furthest, row, count) in self._far.items():
            low, high, _ = self._ranges[name]
            note(
                f"Column {name!r}: {count:,} of {self._n_people:,} people are far outside the {number(low)} to "
                f"{number(high)} that the model has learned from, the furthest {number(furthest)} in row {row:,}. They "
                "were given outputs, of which nothing is known: check these numbers."
            )


def refuse_unknown(name: Any, where: str, values: Iterable[Any], known: Iterable[Any]) -> NoReturn:
    """Raise for a column of which the model, fitted on other values, knows none."""
    raise FileError(
        f"Column {name!r} of {where} has {some_values(values)}, and the model was fitted on {some_values(known)}: it "
        "knows none of the people's values, and to it all of them are the same. Write them as they were in training."
    )


def unseen_note(name: Any, first: Any, count: int, n_people: int, known: Iterable[Any]) -> str:
    """The note about people with categories that a model was not trained on, of which `first` is one."""
    example = "a blank" if pd.isna(first) else repr(str(first))
    return (
        f"Column {name!r}: {count:,} of {n_people:,} people have a category that the model has not seen, such as "
        f"{example}. All of these count as one. It knows {some_values(map(str, known))}: check the spelling."
    )


def some_values(values: Iterable[Any]) -> str:
    """The first distinct ones of some values, in the type that they have."""
    known = [*dict.fromkeys(value for value in values if not pd.isna(value))]
    return ", ".join([*map(repr, known[:_MAX_LEVELS]), *["..."] * (len(known) > _MAX_LEVELS)])


# -- tables of any size ------------------------------------------------------------------------------------------------


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
            people = as_kinds(without_words(table, self.dialect), self.kinds, self.dialect, faults, once)
            if not faults.are_grave:
                yield ReadBatch(people, table[[name for name in self.beside if name in table.columns]])
        faults.stop(str(self.source), self.note, of_model=True)

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
                        kept = as_it_is(batch.select([name for name in needed if name in self.beside]))
                        yield batch.to_pandas().assign(**{str(name): column for name, column in kept.items()})
            else:
                # What is repeated is text, too: it stays as it is written, in every batch.
                texts = [name for name in needed if name not in self.kinds.numeric or name in self.beside]
                options: Any = _options(self.dialect, needed, texts) | {"usecols": needed.__contains__}
                with pd.read_csv(self.source, chunksize=self.rows, **options) as reader:
                    yield from reader


def as_it_is(table: pa.Table | pa.RecordBatch) -> pd.DataFrame:
    """A table in pandas, in which integers beside blanks stay such: as floats, ids above 2^53 would be others."""
    found: pd.DataFrame = table.to_pandas(types_mapper=_INTEGERS.get)
    return found
