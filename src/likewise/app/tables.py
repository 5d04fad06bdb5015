"""Tables as people have them: CSV of any dialect, Parquet or standard input; one line on whatever is not plain."""

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

import pandas as pd

from likewise.errors import FileError, InvalidInputError

Note = Callable[[str], None]
"""Takes one plain line for the person who runs a command."""

_ORDINALS = {2: "second", 3: "third"}
_TABS = ("\\t", "tab")
_SAMPLE = 1000  # rows that are looked at for leading zeros
_PADDED = r"-?0\d+"
# Older versions of pandas read decimals to all but the last digit unless told otherwise.
_EXACT: dict[str, Any] = (
    {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else {"float_precision": "round_trip"}
)


def no_note(text: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written.

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
    """A path in words."""
    return "standard input" if is_standard(path) else str(path)


def hinted(path: str | Path) -> str:
    """A path as it stands in a command to run next; standard input is not there a second time."""
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

    Of CSV, the columns `as_text` are read as text and, with `padded`, those in which numbers have leading zeros.
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
            f"{named(path)} has one column only, {table.columns[0]!r}. Is it divided by another sign? Try --delimiter."
        )
    return table


@contextmanager
def reading(path: str | Path, dialect: Dialect) -> Iterator[None]:
    """Whatever cannot be read ends in one line."""
    try:
        yield
    except FileError:
        raise
    except UnicodeDecodeError as error:
        raise FileError(
            f"Cannot read {named(path)} as {dialect.encoding} ({error.reason}). Give --encoding, such as latin-1."
        ) from None
    except Exception as error:  # pandas and pyarrow raise many kinds
        raise FileError(f"Cannot read {named(path)}: {' '.join(str(error).split())[:200]}.") from None


def header_of(source: Any, dialect: Dialect) -> list[Any]:
    """Names of the columns of a CSV file, as they are written."""
    first = pd.read_csv(source, header=None, nrows=1, dtype=str, **dialect.options)
    return list(first.iloc[0])


def note_repeated(header: list[Any], note: Note) -> None:
    """Say how columns are called whose names stand twice in a header."""
    for name, count in Counter(header).items():
        for i in range(2, count + 1):
            which = _ORDINALS.get(i, f"{i}th")
            note(f"The column {name!r} stands {count} times; the {which} is called '{name}.{i - 1}'.")


def _source(path: str | Path, content: bytes | None) -> Any:
    return path if content is None else io.BytesIO(content)
