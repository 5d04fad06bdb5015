"""Compiled loops: numba, with a store of compiled code where one can be written, and without one elsewhere."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
from numba import prange

__all__ = ["njit", "prange"]


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
