"""Files that tasks leave for one another: written whole or not at all, and gone at the end."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from likewise._rules import NOTHING, PATH
from likewise.errors import FileError


def write_whole(file: Path, content: Any) -> None:
    """Write an array, or several, whole or not at all: a task may be done twice."""
    with tempfile.NamedTemporaryFile(dir=file.parent, suffix=file.suffix, delete=False) as temporary:
        if isinstance(content, dict):
            np.savez(temporary, **content)
        else:
            np.save(temporary, content)
    os.replace(temporary.name, file)


@contextmanager
def working_room(path: Path, scratch: Any) -> Iterator[Path]:
    """A directory to work in, beside the table unless another is given; it is gone at the end."""
    (NOTHING | PATH).check("scratch", scratch)
    place = path.parent if scratch is None else Path(scratch).resolve()
    try:
        room = tempfile.TemporaryDirectory(prefix="likewise-", dir=place, ignore_cleanup_errors=True)
    except OSError as error:
        raise FileError(
            f"Cannot work in {place} ({error.strerror}). Give scratch, a directory that can be written."
        ) from None
    with room as name:
        yield Path(name)
