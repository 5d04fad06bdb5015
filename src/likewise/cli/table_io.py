"""Read tables from CSV and Parquet files, and note columns that may not be what they seem."""

from __future__ import annotations

import codecs
import io
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise.exceptions import FileError, InvalidInputError
from likewise.metrics.columns import UNSEEN, CategoricalColumn, is_numeric

Note = Callable[[str], None]
"""Called with one line for the user of a command."""

_ORDINALS = {2: "second", 3: "third"}
_TABS = ("\\t", "tab")
_SAMPLE = 1000  # rows searched for leading zeros
_PADDED = r"-?0\d+"
# Older versions of pandas read decimals to all but the last digit unless told otherwise.
_EXACT: dict[str, Any] = (
    {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else {"float_precision": "round_trip"}
)


def no_note(text: str) -> None:
    """Ignore the note."""


@dataclass(frozen=True)
class Dialect:
    """Format of a CSV file.

    Attributes
    ----------
    delimiter : str
        Between columns; "tab" or "\\t" for a tab.
    encoding : str
    decimal : {".", ","}
        The other one may group thousands.
    """

    delimiter: str = ","
    encoding: str = "utf-8"
    decimal: str = "."

    def __post_init__(self) -> None:
        if self.delimiter in _TABS:
            object.__setattr__(self, "delimiter", "\t")
        if len(self.delimiter) != 1:
            raise InvalidInputError(f"--delimiter must be one character, or 'tab'; got {self.delimiter!r}.")
        if self.decimal not in (".", ","):
            raise InvalidInputError(f"--decimal must be '.' or ','; got {self.decimal!r}.")
        if self.decimal == self.delimiter:
            raise InvalidInputError(f"--decimal {self.decimal!r} needs another --delimiter, such as ';'.")
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise InvalidInputError(f"--encoding {self.encoding!r} is unknown; try utf-8, latin-1 or cp1252.") from None

    @property
    def options(self) -> dict[str, Any]:
        """For `pandas.read_csv`."""
        plain = {"sep": self.delimiter, "encoding": self.encoding, "decimal": self.decimal}
        # A column is read as a whole: in parts, it could be numbers in one and text in the next.
        return plain | _EXACT | {"low_memory": False}

    @property
    def plain_number(self) -> str:
        """Pattern of a number."""
        point = re.escape(self.decimal)
        return rf"[-+]?(?:\d+(?:{point}\d*)?|{point}\d+)(?:[eE][-+]?\d+)?"

    @property
    def grouped_number(self) -> str:
        """Pattern of a number whose thousands may be grouped, with or without a currency sign."""
        group = re.escape("," if self.decimal == "." else ".")
        return rf"[-+]?[$€£]?(?:\d{{1,3}}(?:{group}\d{{3}})+|\d+)(?:{re.escape(self.decimal)}\d+)?"


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


def read_table(
    path: str | Path,
    dialect: Dialect | None = None,
    note: Note = no_note,
    *,
    as_text: Collection[str] = (),
    padded: bool = False,
) -> pd.DataFrame:
    """Read a CSV or Parquet file, or CSV from standard input for "-".

    In a CSV file, the columns `as_text` are read as text and, with `padded`, those with leading zeros.
    """
    dialect = dialect or Dialect()
    if not is_standard(path) and not Path(path).is_file():
        raise FileError(f"There is no file {path}.")
    kind = kind_of(path)
    with reading(path, dialect):
        if kind == "parquet":
            table = pd.read_parquet(path)
        else:
            content = sys.stdin.buffer.read() if is_standard(path) else None
            note_repeated(header_of(_source(path, content), dialect), note)
            texts = dict.fromkeys(as_text, str)
            if padded:
                some = pd.read_csv(_source(path, content), nrows=_SAMPLE, dtype=str, **dialect.options)
                texts |= {name: str for name in some.columns if some[name].str.fullmatch(_PADDED).any()}
            table = pd.read_csv(_source(path, content), dtype=texts, **dialect.options)
    table.columns = pd.Index([str(name) for name in table.columns])
    repeated = table.columns[table.columns.duplicated()]
    if len(repeated):
        raise FileError(f"{named(path)} has the column {repeated[0]!r} twice. Rename one of them.")
    if len(table.columns) == 1 and any(sign in table.columns[0] for sign in ";\t|"):
        raise FileError(
            f"{named(path)} has one column only, {table.columns[0]!r}. Give the column separator as --delimiter."
        )
    return table


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


def _source(path: str | Path, content: bytes | None) -> Any:
    return path if content is None else io.BytesIO(content)


_FEW_VALUES, _FEW_PEOPLE, _MOST_KINDS, _MOST_SHOWN, _MOST_LEVELS = 10, 20, 30, 6, 3


def note_doubtful(X: pd.DataFrame, note: Note) -> None:
    """Note columns that look like an id, have very many categories, or may be codes."""
    n, codes = len(X), {}
    for name in map(str, X.columns):
        column = X[name]
        values = np.unique(column.dropna().astype(str)) if not is_numeric(column) else np.unique(column.dropna())
        if n >= _FEW_PEOPLE and len(values) == n and (not is_numeric(column) or _counts_rows(column)):
            note(
                f"Column {name!r} is different for each of the {n:,} people, as an id is: a model learns nothing from "
                f"it that holds for others. Leave it out with --id {name}."
            )
        elif not is_numeric(column) and len(values) > _MOST_KINDS and (len(values) >= 100 or len(values) > n / 10):
            note(
                f"Column {name!r} has {len(values):,} different values among {n:,} people, each a category of its own. "
                f"Group them first, or leave the column out with --drop {name}."
            )
        elif is_numeric(column) and _may_be_codes(values, n):
            codes[name] = ", ".join(f"{value:g}" for value in values)
    if codes:
        shown = [f"{name} ({values})" for name, values in codes.items()]
        more = [f"{len(shown) - _MOST_SHOWN} more"] if len(shown) > _MOST_SHOWN else []
        options = " ".join(f"--categorical {name}" for name in [*codes][:_MOST_SHOWN])
        note(
            f"Taken as amounts, though they have few different values: {', '.join([*shown[:_MOST_SHOWN], *more])}. For "
            f"codes, say {options}."
        )


def _counts_rows(column: pd.Series[Any]) -> bool:
    """Whether distinct integers are sorted, or the column is named like an id."""
    if not bool((column % 1 == 0).all()):
        return False
    named = re.search(r"(?:^|[^a-z])(?:id|key|uuid|nr|no|number)$", str(column.name).lower()) is not None
    return named or column.is_monotonic_increasing or column.is_monotonic_decreasing


def _may_be_codes(values: npt.NDArray[Any], n: int) -> bool:
    """Whether the distinct values of `n` people may be codes: few integers, and not counts from 0 on."""
    few = 2 <= len(values) <= _FEW_VALUES and n >= 5 * len(values) and bool((values % 1 == 0).all())
    counts = len(values) > 2 and values[0] == 0 and values[-1] == len(values) - 1
    return few and not counts


class Unseen:
    """Counts people with categories that a model was not trained on, over the batches of a table."""

    def __init__(self, model: Any) -> None:
        encoder = model.encoder_
        self._columns = [
            c for c in encoder.columns if isinstance(c, CategoricalColumn) and c.name not in encoder.optional
        ]
        self._found: dict[Any, tuple[Any, int]] = {}
        self._n_people = 0

    def look(self, people: pd.DataFrame) -> None:
        """Count those of one batch."""
        self._n_people += len(people)
        for column in self._columns:
            places = np.flatnonzero(column.encode(people[column.name]) == UNSEEN)
            if len(places):
                first = people[column.name].iloc[int(places[0])]
                example, count = self._found.get(column.name, (first, 0))
                self._found[column.name] = example, count + len(places)

    def tell(self, note: Note) -> None:
        """Note each column with such people."""
        levels = {column.name: [repr(str(level)) for level in column.levels] for column in self._columns}
        for name, (first, count) in self._found.items():
            known = levels[name][:_MOST_LEVELS] + ["..."] * (len(levels[name]) > _MOST_LEVELS)
            example = "a blank" if pd.isna(first) else repr(str(first))
            note(
                f"Column {name!r}: {count:,} of {self._n_people:,} people have a category that the model has not "
                f"seen, such as {example}. All of these count as one. It knows {', '.join(known)}: check the spelling."
            )
