"""Distances between rows of a table with numbers and categories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from likewise.metrics import FloatArray, WeightedLp


class TableMetric:
    """A distance between rows of a table: numbers by weighted Lp, categories by whether they are the same.

    ``D(x, x') = (sum_i w_i |x_i - x'_i|^p)^(1/p) + sum_c w_c 1[x_c != x'_c]``, i over numeric and c over categorical
    columns.

    Parameters
    ----------
    numeric : mapping from column name to weight
        Non-negative, per unit of the column (to the power p), as in `WeightedLp`.
    categorical : mapping from column name to weight
        Non-negative distance between two people whose categories differ. Probabilities differ by at most 1, so for them
        every weight above 1 allows the same as 1. Missing values are a category of their own.
    p : float, default=1
        Any number >= 1, or ``np.inf``.

    Attributes
    ----------
    numeric, categorical : dict
    p : float
    columns : tuple of str
        Numeric columns, then categorical ones. Tables may have others: they do not matter.

    Examples
    --------
    >>> metric = TableMetric({"age": 0.01}, {"job": 0.2})
    >>> metric
    TableMetric(age=0.01, job=0.2 [mismatch], p=1)
    >>> people = pd.DataFrame({"age": [30, 40], "job": ["nurse", "clerk"]})
    >>> metric.pairwise(people).round(6).tolist()
    [[0.0, 0.3], [0.3, 0.0]]
    """

    numeric: dict[str, float]
    categorical: dict[str, float]
    p: float
    columns: tuple[str, ...]

    def __init__(self, numeric: Mapping[str, float], categorical: Mapping[str, float], p: float = 1) -> None:
        if not numeric and not categorical:
            raise ValueError("numeric and categorical must not both be empty: a metric needs at least one column.")
        # WeightedLp checks weights and p; a metric without numeric columns still has a p.
        numbers = WeightedLp(numeric or [0.0], p)
        mismatches = WeightedLp(categorical or [0.0])
        self.numeric = dict(zip(numbers.feature_names or (), numbers.weights.tolist(), strict=True)) if numeric else {}
        self.categorical = (
            dict(zip(mismatches.feature_names or (), mismatches.weights.tolist(), strict=True)) if categorical else {}
        )
        both = [name for name in self.numeric if name in self.categorical]
        if both:
            raise ValueError(f"numeric and categorical must not share columns; got {both[0]!r} in both.")
        self.p = numbers.p
        self.columns = (*self.numeric, *self.categorical)
        self._numbers = numbers

    def __call__(self, A: pd.DataFrame, B: pd.DataFrame) -> FloatArray:
        """Distances between the people in `A` and those in `B`, row by row.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        a, b = self._check(A, "A"), self._check(B, "B")
        if len(a) != len(b):
            raise ValueError(f"A and B must have as many rows as each other; got {len(a)} and {len(b)}. Use pairwise.")
        total = np.zeros(len(a))
        if self.numeric:
            total += self._numbers(self._values(a, "A"), self._values(b, "B"))
        for name, weight in self.categorical.items():
            codes_a, codes_b = _codes(a[name], b[name])
            total += weight * (codes_a != codes_b)
        return total

    def pairwise(self, A: pd.DataFrame, B: pd.DataFrame | None = None) -> FloatArray:
        """Distances between every person in `A` and every person in `B` (or `A` itself).

        Returns
        -------
        ndarray of shape (n_samples_A, n_samples_B)
        """
        a = self._check(A, "A")
        b = a if B is None else self._check(B, "B")
        total = np.zeros((len(a), len(b)))
        if self.numeric:
            total += self._numbers.pairwise(self._values(a, "A"), self._values(b, "B"))
        for name, weight in self.categorical.items():
            codes_a, codes_b = _codes(a[name], b[name])
            total += weight * (codes_a[:, None] != codes_b[None, :])
        return total

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TableMetric):
            return NotImplemented
        return (self.p, self.numeric, self.categorical) == (other.p, other.numeric, other.categorical)

    def __hash__(self) -> int:
        return hash((self.p, frozenset(self.numeric.items()), frozenset(self.categorical.items())))

    def __repr__(self) -> str:
        parts = [f"{name}={weight:.6g}" for name, weight in self.numeric.items()]
        parts += [f"{name}={weight:.6g} [mismatch]" for name, weight in self.categorical.items()]
        return f"TableMetric({', '.join(parts)}, p={self.p:g})"

    def _check(self, X: Any, name: str) -> pd.DataFrame:
        if not isinstance(X, pd.DataFrame):
            raise TypeError(f"{name} must be a DataFrame, since the metric names columns; got {type(X).__name__}.")
        missing = [column for column in self.columns if column not in X.columns]
        if missing:
            raise ValueError(f"{name} must have the columns of the metric; {missing} are missing.")
        return X

    def _values(self, X: pd.DataFrame, name: str) -> FloatArray:
        try:
            return X[list(self.numeric)].to_numpy(dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must hold numbers in the numeric columns ({error}).") from None


def _codes(a: pd.Series, b: pd.Series) -> tuple[Any, Any]:
    """Categories of two columns as numbers, the same for the same category; missing values are equal."""
    codes, _ = pd.factorize(np.concatenate([a.to_numpy(dtype=object), b.to_numpy(dtype=object)]))
    return codes[: len(a)], codes[len(a) :]
