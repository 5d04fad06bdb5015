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
_ISO_DATE = r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
_OTHER_DATE = r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}"


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
        return {"sep": self.delimiter, "encoding": self.encoding, "decimal": self.decimal}

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


def read_table(path: str | Path, dialect: Dialect | None = None, note: Note = no_note) -> pd.DataFrame:
    """Read a CSV or Parquet file, or CSV from standard input for "-"."""
    dialect = dialect or Dialect()
    if not is_standard(path) and not Path(path).is_file():
        raise FileError(f"There is no file {path}.")
    kind = kind_of(path)
    with reading(path, dialect):
        if kind == "parquet":
            table = pd.read_parquet(path)
        else:
            content = sys.stdin.buffer.read() if is_standard(path) else None
            header = pd.read_csv(_source(path, content), header=None, nrows=1, dtype=str, **dialect.options)
            table = pd.read_csv(_source(path, content), **dialect.options)
            note_repeated(header.iloc[0].tolist(), note)
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


def note_repeated(header: list[Any], note: Note) -> None:
    """Say how columns are called whose names stand twice in a header."""
    for name, count in Counter(header).items():
        for i in range(2, count + 1):
            which = _ORDINALS.get(i, f"{i}th")
            note(f"The column {name!r} stands {count} times; the {which} is called '{name}.{i - 1}'.")


def tidy(
    table: pd.DataFrame,
    dialect: Dialect | None = None,
    note: Note = no_note,
    *,
    categorical: Collection[str] = (),
    only: Collection[str | None] | None = None,
) -> pd.DataFrame:
    """Read text as the numbers that it stands for: thousands with separators, and dates as days since 1970-01-01.

    Each value is read by itself, so that batches of a table agree. Columns in `categorical`, and all but `only`, stay
    as they are.
    """
    dialect, changed = dialect or Dialect(), {}
    for name in table.columns:
        column = table[name]
        if name in categorical or (only is not None and name not in only):
            continue
        if pd.api.types.is_datetime64_any_dtype(column.dtype):
            changed[name] = _days(column)
            note(f"Column {name!r} holds dates: read as days since 1970-01-01.")
        elif pd.api.types.is_object_dtype(column.dtype) or isinstance(column.dtype, pd.StringDtype):
            numbers = _from_text(column, str(name), dialect, note)
            if numbers is not None:
                changed[name] = numbers
    return table.assign(**changed) if changed else table


def date_columns(before: pd.DataFrame, after: pd.DataFrame) -> list[str]:
    """Columns that `tidy` has turned from dates into days."""
    return [
        name
        for name in after.columns
        if after[name].dtype != before[name].dtype
        and (
            pd.api.types.is_datetime64_any_dtype(before[name].dtype)
            or before[name].dropna().astype(str).str.strip().str.fullmatch(_ISO_DATE).all()
        )
    ]


def _from_text(column: pd.Series[Any], name: str, dialect: Dialect, note: Note) -> pd.Series[Any] | None:
    present = column.dropna()
    if present.empty or not present.map(lambda value: isinstance(value, str)).all():
        return None
    text = present.str.strip()
    if text.str.fullmatch(dialect.grouped_number).all():
        group = "," if dialect.decimal == "." else "."
        plain = text.str.replace(f"[{group}$€£]", "", regex=True).str.replace(dialect.decimal, ".", regex=False)
        shown = next((value for value in text if not value.isdecimal()), text.iloc[0])
        note(f"Column {name!r} has numbers written like {shown!r}: read as numbers.")
        return plain.astype(float).reindex(column.index)
    if text.str.fullmatch(_ISO_DATE).all():
        days = _days(pd.to_datetime(text, utc=True, format="ISO8601", errors="coerce"))
        if days.notna().all():
            note(f"Column {name!r} holds dates: read as days since 1970-01-01.")
            return days.reindex(column.index)
    if text.str.fullmatch(_OTHER_DATE).all():
        note(
            f"Column {name!r} looks like dates, such as {text.iloc[0]!r}; each is a category of its own. Write them as "
            "YYYY-MM-DD to have them read as days."
        )
    return None


def _days(moments: pd.Series[Any]) -> pd.Series[Any]:
    moments = pd.to_datetime(moments, utc=True)
    days = (moments - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
    return pd.Series(days.astype(float))


def _source(path: str | Path, content: bytes | None) -> Any:
    return path if content is None else io.BytesIO(content)
