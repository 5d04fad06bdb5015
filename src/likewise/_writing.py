"""Files that are written whole or not at all, and tables that no spreadsheet takes for formulas."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise._validation import PATH
from likewise.exceptions import FileError

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = re.compile(r"[=+\-@\t\r]")  # what spreadsheets take for the start of a formula (OWASP, CSV injection)
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_NUMBERS = re.compile(rf"{_NUMBER}(?: to {_NUMBER})?")


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Give a temporary path in the same directory; it takes the place of `path` only if nothing fails."""
    PATH.check("path", path)
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    except OSError as error:
        raise FileError(f"Cannot write {path}: {error.strerror}.") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        raise FileError(f"Cannot write {path}: {error.strerror or error}.") from None
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_csv(table: pd.DataFrame, target: Any, **options: Any) -> None:
    """Write a table as CSV for people, who may open it in a spreadsheet: no text of it becomes a formula.

    Text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return gets a single quote in front, names of
    columns included. Numbers stay what they are, also where they are text.
    """
    import pandas as pd

    quiet = table.copy()
    for place, kind in enumerate(table.dtypes):
        if not (pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_datetime64_any_dtype(kind)):
            cells = table.iloc[:, place]
            quiet.isetitem(place, cells.astype(object).map(quoted, na_action="ignore").to_numpy())
    quiet.columns = quiet.columns.map(quoted)
    if not isinstance(quiet.index, pd.MultiIndex):
        quiet.index = quiet.index.map(quoted).rename(quoted(quiet.index.name))
    quiet.to_csv(target, **options)


def quoted(cell: Any) -> Any:
    """Text with a single quote in front if a spreadsheet might run it; anything else as it is.

    Examples
    --------
    >>> quoted("=1+1"), quoted("-5"), quoted("-5 to 3"), quoted("a-b"), quoted(-5)
    ("'=1+1", '-5', '-5 to 3', 'a-b', -5)
    """
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBERS.fullmatch(cell) else cell
