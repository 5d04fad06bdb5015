"""Atomic file writes, and CSV files without formulas."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise._validation import NUMBER, PATH
from likewise.exceptions import FileError

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = re.compile(r"[=+\-@\t\r]")  # start of a formula in a spreadsheet (OWASP, CSV injection)
_NUMBERS = re.compile(rf"{NUMBER}(?: to {NUMBER})?")


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path in the same directory, which replaces `path` on success."""
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


def write_text(path: str | Path, text: str) -> None:
    """Write a text file atomically, with the line ends of the text."""
    with atomic_write(path) as temporary:
        temporary.write_bytes(text.encode())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_csv(table: pd.DataFrame, target: Any, **options: Any) -> None:
    """Write a CSV file that is safe to open in a spreadsheet.

    Text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return is prefixed with a single quote, column
    names included. Numbers are unchanged, as text too.
    """
    import pandas as pd

    safe = table.copy()
    for i, kind in enumerate(table.dtypes):
        if not (pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_datetime64_any_dtype(kind)):
            cells = table.iloc[:, i]
            safe.isetitem(i, cells.astype(object).map(quoted, na_action="ignore").to_numpy())
    safe.columns = safe.columns.map(quoted)
    if not isinstance(safe.index, pd.MultiIndex):
        safe.index = safe.index.map(quoted).rename(quoted(safe.index.name))
    safe.to_csv(target, **options)


def quoted(cell: Any) -> Any:
    """Prefix text with a single quote if a spreadsheet might evaluate it.

    Examples
    --------
    >>> quoted("=1+1"), quoted("-5"), quoted("-5 to 3"), quoted("a-b"), quoted(-5)
    ("'=1+1", '-5', '-5 to 3', 'a-b', -5)
    """
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBERS.fullmatch(cell) else cell
