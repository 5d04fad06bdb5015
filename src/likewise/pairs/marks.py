"""Numbers that follow from what is known of people, and look as if they were drawn at random."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from likewise._typing import FloatArray

Marks = npt.NDArray[np.uint64]


def content_marks(columns: Iterable[FloatArray], seed: int = 0) -> Marks:
    """One number from 0 to 2^64 per person: equal people have equal ones, in whatever order they stand.

    Examples
    --------
    >>> marks = content_marks([np.array([1.0, 2.0, 1.0]), np.array([0.0, np.nan, -0.0])])
    >>> bool(marks[0] == marks[2]), bool(marks[0] == marks[1])
    (True, False)
    """
    mixed = np.array([seed % 2**64], dtype=np.uint64)
    for column in columns:
        # One pattern of bits for 0 and one for a missing number.
        bits = np.where(np.isnan(column), np.nan, column + 0.0).view(np.uint64)
        mixed = _mix(mixed ^ bits)
    return mixed


def _mix(z: Marks) -> Marks:
    """The finaliser of splitmix64: every bit of the result depends on every bit."""
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
