"""Subsets of rows and of pairs of rows that are the same in every run, and distinct rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from likewise._typing import IntArray


def evenly_spaced(n: int, size: int) -> IntArray:
    """At most `size` positions, evenly spaced over `n`.

    Examples
    --------
    >>> evenly_spaced(3, 5), evenly_spaced(9, 3)
    (array([0, 1, 2]), array([0, 4, 8]))
    """
    return np.arange(n) if n <= size else np.linspace(0, n - 1, size).astype(np.int64)


def fixed_sample(n: int, size: int) -> IntArray:
    """Positions of a fixed random sample of about `size` of `n` rows, or all."""
    if n <= size:
        return np.arange(n)
    return np.unique(np.random.default_rng(1).integers(n, size=size))


def random_pairs(n: int, size: int) -> tuple[IntArray, IntArray]:
    """A fixed random sample of about `size` pairs of `n` rows; pairs may recur."""
    a, b = np.random.default_rng(0).integers(n, size=(2, size))
    return a[a != b], b[a != b]


def some_pairs(n: int, size: int) -> tuple[IntArray, IntArray]:
    """All pairs of `n` rows, or `random_pairs` if there are more than `size`.

    Examples
    --------
    >>> some_pairs(3, 5)
    (array([0, 0, 1]), array([1, 2, 2]))
    """
    if n * (n - 1) // 2 > size:
        return random_pairs(n, size)
    a, b = np.triu_indices(n, 1)
    return a, b


def distinct_rows(rows: npt.NDArray[Any]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Positions of the distinct rows, and for each row the index among them; rows are compared by their bytes."""
    rows = np.ascontiguousarray(rows)
    keys: npt.NDArray[np.void] = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return first, inverse
