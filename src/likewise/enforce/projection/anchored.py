"""Which people hold a projected model in place, and what was said of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.errors import InvalidInputError
from likewise.metrics.abstract import Metric
from likewise.metrics.people import People
from likewise.pairs.points import groups_of

_MOST = 5_000
_MOST_OF_A_FUNCTION = 2_000  # each person is compared with every anchor


@dataclass(frozen=True, eq=False)
class Anchors:
    """Distinct people, each of whom stands for all that are equal in what matters.

    Attributes
    ----------
    first : ndarray of int, shape (n_anchors,)
        Where each one stands among all people.
    of_row : ndarray of int, shape (n_people,)
        The anchor that each person is; -1 for none.
    weights : ndarray of shape (n_anchors,)
        Total weight of those that each one stands for.
    """

    first: IntArray
    of_row: IntArray
    weights: FloatArray

    @classmethod
    def choose(
        cls, people: People, weights: FloatArray | None, metric: Metric, n_anchors: Any, rng: np.random.Generator
    ) -> Anchors:
        """All distinct people who count, or as many as asked for, drawn by `rng`; the order of rows does not matter."""
        rows = people.rows
        if metric.has_weights:
            rows = rows[:, metric.weights_of(people.coding).matters]
        rows = np.where(np.isnan(rows), np.inf, rows)
        counted = np.arange(len(rows)) if weights is None else np.flatnonzero(weights > 0)
        groups = groups_of(rows[counted])
        n = len(groups.first)
        chosen = np.lexsort(rows[counted[groups.first]].T[::-1]) if rows.shape[1] else np.arange(n)
        wanted = min(n, _MOST if metric.has_weights else _MOST_OF_A_FUNCTION)
        if n_anchors != "auto":
            wanted = int(n_anchors)
            if wanted > n:
                raise InvalidInputError(
                    f"n_anchors must be at most the number of distinct people in X, {n}; got {n_anchors}. "
                    "'auto' takes all of them, up to 5,000."
                )
        chosen = chosen[np.sort(rng.permutation(n)[:wanted])]
        anchor = np.full(n, -1)
        anchor[chosen] = np.arange(wanted)
        of_row = np.full(len(rows), -1)
        of_row[counted] = anchor[groups.of_row]
        weight = np.ones(len(rows)) if weights is None else weights
        return cls(counted[groups.first[chosen]], of_row, _sums(of_row, weight, wanted))

    def __len__(self) -> int:
        return len(self.first)

    @property
    def rows(self) -> IntArray:
        """All people for whom the anchors stand."""
        return np.flatnonzero(self.of_row >= 0)

    def mean(self, values: FloatArray, weights: FloatArray | None) -> FloatArray:
        """Per anchor, the weighted mean over `rows` of `values`, which belong to those."""
        weight = np.ones(len(self.of_row)) if weights is None else weights
        rows = self.rows
        return _sums(self.of_row[rows], weight[rows] * values, len(self)) / self.weights


def _sums(of_row: IntArray, amounts: FloatArray, n: int) -> FloatArray:
    there = of_row >= 0
    return np.bincount(of_row[there], weights=amounts[there], minlength=n).astype(np.float64)
