"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from likewise._rules import PATH
from likewise.errors import FileError


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
