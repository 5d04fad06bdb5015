"""Compiled loops: numba, with a store of compiled code where one can be written, and without one elsewhere."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
from numba.core import event

__all__ = ["njit"]


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit`, for accounts without a home too.

    With ``cache=True`` numba keeps compiled code beside the module or in the user's cache, and raises where neither can
    be written: on a service account, say. There the code is compiled anew in each process. A shared temporary
    directory would be faster, and would run whatever another user has put into it.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(**options)(function)
        except RuntimeError:  # "cannot cache function ...: no locator available"
            if not options.get("cache"):
                raise
            _say_once()
            return numba.njit(**{**options, "cache": False})(function)

    return compiled


@cache
def _say_once() -> None:
    warnings.warn(
        "Compiled code cannot be kept here, so it is compiled anew in each process, which takes half a minute. Set "
        "NUMBA_CACHE_DIR to a directory that only this account can write.",
        RuntimeWarning,
        stacklevel=4,
    )


class _SayCompiling(event.Listener):
    """Says once per process that loops are compiled; loops that the cache holds are not."""

    said = False

    def on_start(self, event: Any) -> None:
        """Called before numba compiles a function."""
        if self.said or not event.data["dispatcher"].py_func.__module__.startswith("likewise."):
            return
        self.said = True
        # Without a handler of its own, Python prints warnings to stderr.
        logging.getLogger("likewise").warning(
            "Compiling loops, once for this installation, which may take half a minute in all. `likewise warm` does it "
            "ahead, say in the build of an image."
        )

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


event.register("numba:compile", _SayCompiling())  # type: ignore[no-untyped-call]
