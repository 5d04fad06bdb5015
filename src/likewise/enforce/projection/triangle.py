"""The largest distance below a metric of columns that obeys the triangle inequality."""

from __future__ import annotations

import numpy as np

from likewise._typing import FloatArray
from likewise.metrics.distance import ColumnWeights


def caps(weights: ColumnWeights) -> FloatArray:
    """The most that each column may count, so that missing numbers break no triangle.

    Two people with numbers far apart are each at distance `m` from one who misses it, so the two can be no further
    than ``2 m`` apart for any model that is within the metric. With

    ``D'(x, x') = || min(s_i |x_i - x'_i|, 2 m_i) ||_p`` over the numbers that both have, the rest as in D,

    D' <= D obeys the triangle inequality for every p, and for p = 1 a model is within D if and only if it is within D'
    (`docs/theory.md` §13). There is no limit where the metric refuses missing numbers, nor for categories.

    Examples
    --------
    >>> weights = ColumnWeights(np.array([0.1, 2.0]), np.array([True, True]), np.array([0.2, np.nan]), 1.0)
    >>> caps(weights).tolist()
    [0.4, inf]
    """
    return np.where(weights.is_number & ~np.isnan(weights.missing), 2 * weights.missing, np.inf)
