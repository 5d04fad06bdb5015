"""The distance of a report's metric, in the arithmetic that the page repeats in the browser."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from likewise._typing import FloatArray
from likewise.metrics.lp import lp_norm
from likewise.report.data import Column, Metric, Value

Rows = Sequence[Sequence[Value]]


def scale(column: Column, p: float, weight: float | None = None) -> float:
    """Distance per unit of a column: ``w^(1/p)`` if numeric (``w`` for p = inf), the mismatch weight if not.

    Examples
    --------
    >>> scale(Column("age", "numeric", 0.04), p=2)
    0.2
    """
    w = column.weight if weight is None else weight
    return w if column.kind == "categorical" or math.isinf(p) else w ** (1 / p)


def distances(metric: Metric, A: Rows, B: Rows) -> FloatArray:
    """Distances between the rows of `A` and those of `B`, one by one; NaN where a missing number leaves it undefined.

    Examples
    --------
    >>> metric = Metric((Column("age", "numeric", 0.01), Column("region", "categorical", 0.2)))
    >>> distances(metric, [(30, "north"), (30, None)], [(40, "south"), (None, None)]).round(6)
    array([0.3, nan])
    """
    numeric = []
    mismatch = np.zeros(len(A))
    for i, column in enumerate(metric.columns):
        a, b = [row[i] for row in A], [row[i] for row in B]
        if column.kind == "categorical":
            mismatch += column.weight * np.array([x != y for x, y in zip(a, b, strict=True)], dtype=float)
            continue
        x, y = np.array(a, dtype=float), np.array(b, dtype=float)  # None becomes NaN
        gap = scale(column, metric.p) * np.abs(x - y)
        gap[np.isnan(x) & np.isnan(y)] = 0.0
        one_missing = np.isnan(x) != np.isnan(y)
        if column.missing_weight is not None:
            mismatch += column.missing_weight * one_missing
            gap[one_missing] = 0.0
        elif column.weight == 0:
            gap[one_missing] = 0.0
        numeric.append(gap)
    return mismatch + (lp_norm(np.column_stack(numeric), metric.p) if numeric else 0.0)


def pair_distances(metric: Metric, rows: Rows) -> FloatArray:
    """Distances of all pairs of rows, in the order (0, 1), (0, 2), ..., (1, 2), ..."""
    pairs = list(itertools.combinations(rows, 2))
    return distances(metric, [first for first, _ in pairs], [second for _, second in pairs])


def typical_difference(column: Column, values: Sequence[Value]) -> float:
    """Return a usual difference in a column: as given, or the mean over pairs of values that are there, or 1."""
    if column.kind == "categorical":
        return 1.0
    if column.typical_difference:
        return column.typical_difference
    present = np.sort([v for v in values if isinstance(v, (int, float))])
    n = len(present)
    if n < 2:
        return 1.0
    # The sum of |a - b| over pairs is sum_k (2k - n + 1) x_k, for x sorted and k counted from 0.
    centred = present - present.mean()
    mean = float((centred * (2 * np.arange(n) - n + 1)).sum() / (n * (n - 1) / 2))
    return mean if mean > 0 else 1.0
