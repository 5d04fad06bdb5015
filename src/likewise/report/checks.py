"""Checks of a report's values where they enter, so that rendering cannot fail halfway."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def choice(name: str, given: str, allowed: Sequence[str]) -> None:
    """Refuse a word that is not among those `allowed`."""
    if given not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {given!r}.")


def number(name: str, given: Any, low: float | None = None, high: float | None = None) -> None:
    """Refuse anything but a finite Python number within the limits."""
    if not _is_number(given) or not math.isfinite(given):
        raise ValueError(f"{name} must be a finite number, as a Python float or int; got {given!r}.")
    if (low is not None and given < low) or (high is not None and given > high):
        limits = f"at least {low:g}" if high is None else f"between {low:g} and {high:g}"
        raise ValueError(f"{name} must be {limits}; got {given!r}.")


def count(name: str, given: Any) -> None:
    """Refuse anything but a Python integer that can count something."""
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise ValueError(f"{name} must be a Python int, 0 or more; got {given!r}.")


def row(name: str, values: Sequence[Any], columns: Sequence[tuple[str, str]]) -> None:
    """Refuse a row that does not fit the columns, given as (name, kind)."""
    if len(values) != len(columns):
        raise ValueError(f"{name} must have one value per column ({len(columns)}); got {len(values)}.")
    for value, (column, kind) in zip(values, columns, strict=True):
        if value is None:
            continue
        if kind == "numeric" and not (_is_number(value) and math.isfinite(value)):
            raise ValueError(f"{name}: {column!r} must be a finite Python number or None if missing; got {value!r}.")
        if kind == "categorical" and not isinstance(value, str):
            raise ValueError(f"{name}: {column!r} must be a text or None if missing; got {value!r}. Use str().")


def _is_number(given: Any) -> bool:
    # np.float64 is a float and prints as one; np.int64 and bool would not survive the way through JSON unchanged.
    return isinstance(given, (int, float)) and not isinstance(given, bool)
