"""Sets of 0/1 columns of which everybody has exactly one 1: a category written in several columns.

Nobody can have two of them, or none: sex_male and sex_female are exchanged together, and searched and bounded as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise._typing import FloatArray

_FEW = 20  # people among whom columns without a common prefix may be opposites by chance
_MOST_STEPS = 20_000  # of a search for sets among columns


@dataclass(frozen=True)
class OneHot:
    """A set of 0/1 columns of which everybody has exactly one 1.

    Attributes
    ----------
    name : str
        What the columns share, "sex" of sex_female and sex_male; all of them if that is nothing.
    members : tuple of column names
    """

    name: str
    members: tuple[Any, ...]

    @classmethod
    def of(cls, members: Iterable[Any]) -> OneHot:
        """The set of these columns.

        Examples
        --------
        >>> OneHot.of(["sex_female", "sex_male"]).name, OneHot.of(["woman", "man"]).name
        ('sex', 'woman / man')
        """
        listed = tuple(members)
        return cls(_shared(listed) or " / ".join(map(str, listed)), listed)

    def __str__(self) -> str:
        return ", ".join(map(str, self.members))


def find_one_hot(frame: pd.DataFrame) -> list[OneHot]:
    """The disjoint sets among the columns of people of which everybody has exactly one 1.

    Columns with a common prefix are looked at first, then all others. The latter must be opposites for twenty people
    at least.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [30, 40], "sex_f": [0, 1], "sex_m": [1, 0]})
    >>> [each.members for each in find_one_hot(people)]
    [('sex_f', 'sex_m')]
    """
    numbers = {name: as_bits(frame[name]) for name in frame}
    bits = {name: own for name, own in numbers.items() if own is not None and 0 < own.sum() < len(own)}
    if len(bits) < 2:
        return []
    distinct = pd.DataFrame(bits).drop_duplicates().to_numpy(dtype=bool)
    masks = {name: int.from_bytes(np.packbits(distinct[:, i]).tobytes(), "little") for i, name in enumerate(bits)}
    everybody = int.from_bytes(np.packbits(np.ones(len(distinct), dtype=bool)).tobytes(), "little")
    by_prefix: dict[str, list[Any]] = {}
    for name in bits:
        by_prefix.setdefault(re.split(r"[\W_]", str(name), maxsplit=1)[0], []).append(name)
    found: list[OneHot] = []
    for names in (*by_prefix.values(), list(bits)):
        left = [name for name in names if not any(name in each.members for each in found)]
        for members in _covers([masks[name] for name in left], everybody):
            chosen = [left[k] for k in sorted(members)]
            taken = any(name in each.members for name in chosen for each in found)
            if not taken and (len(frame) >= _FEW or _shared(chosen)):
                found.append(OneHot.of(chosen))
    return found


def told(sets: Iterable[OneHot]) -> str:
    """The members of sets, in words."""
    return "; ".join(map(str, sets))


def as_bits(column: pd.Series[Any]) -> FloatArray | None:
    """The values of a column of 0 and 1, or of booleans, as numbers; None for any other column."""
    if len(column) and is_bit(column.iloc[0]) and all(map(is_bit, column.unique().tolist())):
        return column.to_numpy(dtype=np.float64)
    return None


def is_bit(value: Any) -> bool:
    """Whether a value is 0, 1 or a boolean."""
    return isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)) and value in (0, 1)


def _shared(names: Sequence[Any]) -> str:
    """What comes before the last sign that separates words in all names; nothing if they are only numbered."""
    first, last = min(map(str, names)), max(map(str, names))
    n = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    cut = re.match(r"(.*\w)[\W_]", first[:n])
    if cut is None or all(str(name)[len(cut[0]) :].isdigit() for name in names):
        return ""
    return cut[1].rstrip("_")


def _covers(masks: Sequence[int], everybody: int) -> Iterator[tuple[int, ...]]:
    """Positions of columns that together cover everybody exactly once; depth first, by the first who is not covered."""
    stack: list[tuple[tuple[int, ...], int]] = [((), 0)]
    for _ in range(_MOST_STEPS):
        if not stack:
            return
        chosen, covered = stack.pop()
        left = everybody & ~covered
        if not left:
            yield chosen
            continue
        first = left & -left
        for k in reversed(range(len(masks))):
            if masks[k] & first and not masks[k] & covered:
                stack.append(((*chosen, k), covered | masks[k]))
