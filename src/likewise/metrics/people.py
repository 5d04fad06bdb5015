"""People as numbers, with what the numbers mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.errors import InvalidInputError
from likewise.metrics.coding import Coding


@dataclass(frozen=True, eq=False)
class People:
    """People as rows of numbers.

    Attributes
    ----------
    rows : ndarray of shape (n_samples, n_columns)
        Numbers, NaN where missing; for categories their position among those of `coding`, and `UNSEEN` for others.
    coding : Coding
        What the columns are, and how rows become again what a model takes.
    table : DataFrame or ndarray
        The people as a model takes them.
    """

    rows: FloatArray
    coding: Coding
    table: Any

    @classmethod
    def read(cls, X: Any, coding: Coding, name: str = "X") -> People:
        """Check and code the people in `X`."""
        table = coding.as_table(X, name)
        rows = coding.encode(table, name)
        if rows.ndim != 2:
            raise InvalidInputError(
                f"{name} must be a table of people and features, (n_samples, n_features); got {rows.shape}."
            )
        return cls(rows, coding, table)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: Any) -> People:
        """Some of these people: a slice, or positions."""
        table = self.table.iloc[chosen] if hasattr(self.table, "iloc") else self.table[chosen]
        return People(self.rows[chosen], self.coding, table)

    def name_of(self, row: int) -> Any:
        """What a row is called: by the index of its table, or else by its position."""
        index = getattr(self.table, "index", None)
        return row if index is None or len(index) != len(self) else index[row]

    def missing(self) -> list[int]:
        """Columns in which a number is missing for someone."""
        return np.flatnonzero(np.isnan(self.rows).any(axis=0)).tolist()


def spread(n: int, most: int) -> IntArray:
    """Positions spread evenly over `n`: all of them, if there are few.

    Examples
    --------
    >>> spread(3, 5), spread(9, 3)
    (array([0, 1, 2]), array([0, 4, 8]))
    """
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.int64)


def fixed_sample(n: int, size: int) -> IntArray:
    """Positions of about `size` of `n` rows, always the same; all of them, if there are few."""
    if n <= size:
        return np.arange(n)
    return np.unique(np.random.default_rng(1).integers(n, size=size))
