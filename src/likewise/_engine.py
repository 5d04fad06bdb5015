"""Compiled loops, or the same in NumPy where compiling would take longer than the work.

Both give the same bits, so the choice shows in the time alone. Plain work is counted per kernel: a process that keeps
scoring compiles in the end, and one that scores a thousand people never does.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

PLAIN_CELLS = 400_000_000
"""Values that NumPy may go through before a kernel is compiled: some seconds, which is what compiling takes."""
PLAIN_CELLS_IF_KEPT = 20_000_000
"""The same where compiled code is kept on disk: reading it, and importing numba, takes half a second."""

_plain_cells: dict[str, float] = defaultdict(float)
_always_compiled = False


def kernel(package: str, name: str, cells: float) -> Any:
    """A function of ``likewise.{package}.kernels``, or its twin in ``likewise.{package}.plain``.

    Parameters
    ----------
    cells : float
        How many values this call goes through.
    """
    module = f"likewise.{package}.kernels"
    if not should_compile(f"{module}.{name}", cells):
        module = f"likewise.{package}.plain"
    return getattr(import_module(module), name)


def should_compile(function: str, cells: float) -> bool:
    """Whether to call a compiled function, given by its full name, for work on `cells` values."""
    if _always_compiled or is_compiled(function):
        return True
    _plain_cells[function] += cells
    if _plain_cells[function] <= PLAIN_CELLS_IF_KEPT:
        return False
    return _plain_cells[function] > PLAIN_CELLS or _is_kept(function, os.environ.get("NUMBA_CACHE_DIR"))


def is_compiled(function: str) -> bool:
    """Whether this process has the compiled code."""
    module, _, name = function.rpartition(".")
    # Another thread may be importing the module, which then has only some of its functions.
    return bool(getattr(getattr(sys.modules.get(module), name, None), "overloads", None))


@contextmanager
def always_compiled() -> Iterator[None]:
    """Compile, however small the work."""
    global _always_compiled
    before, _always_compiled = _always_compiled, True
    try:
        yield
    finally:
        _always_compiled = before


@cache
def _is_kept(function: str, folder: str | None) -> bool:
    """Whether numba's cache has a file for the function; it may be of an older version, and is compiled anew then.

    The disk is asked once: code that another process keeps meanwhile is found by the next process.
    """
    module, _, name = function.rpartition(".")
    stem = module.rpartition(".")[2]
    pattern = f"{stem}.{name}-*.nbi"
    if folder:
        return next(Path(folder).glob(f"*/{pattern}"), None) is not None
    beside = Path(__file__).parent.joinpath(*module.split(".")[1:-1], "__pycache__")
    return next(beside.glob(pattern), None) is not None
