"""Whether limits of weights leave a metric at all."""

from __future__ import annotations

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.errors import InvalidInputError
from likewise.pairs.points import CODE, listed
from likewise.reveal.crowds import ROUNDING, SHORTFALL, Crowd, Cuts

_MOST_COLUMNS = 6  # of a pair, in an error


def check_possible(crowd: Crowd, cuts: Cuts, high: FloatArray, p: float) -> None:
    """Raise if some pair exceeds even the largest weights allowed.

    Every weight only helps, so there is a metric if and only if the upper limits themselves explain every pair: those
    that they do not explain differ in bounded features alone.
    """
    bounded = ~np.isinf(high)
    scaled = high[bounded] ** (1 / p) * cuts.gaps[:, bounded]
    largest = scaled.max(axis=1, initial=1e-300)
    farthest = largest * ((scaled / largest[:, None]) ** p).sum(axis=1) ** (1 / p)
    short = farthest < (1 - SHORTFALL) * (cuts.differences - ROUNDING)
    worst = np.flatnonzero(short & ~(cuts.gaps[:, ~bounded] > 0).any(axis=1))
    if len(worst):
        rank = np.lexsort((*cuts.pairs[worst].T[::-1], -cuts.differences[worst]))
        raise InvalidInputError(_impossible(crowd, cuts.pairs[worst[rank]], cuts.differences[worst[rank]]))


def _impossible(crowd: Crowd, pairs: IntArray, differences: FloatArray) -> str:
    shown = pairs[:3]
    points = crowd.points_at(np.unique(shown))
    places = np.searchsorted(np.unique(shown), shown)
    lines = [
        f"rows {a} and {b} (outputs differ by {crowd.unit * gap:.4g}; "
        f"{listed(points.differences(i, j), _MOST_COLUMNS)})"
        for (a, b), (i, j), gap in zip(shown, places, differences, strict=False)
    ]
    cure = "Raise these weights, or audit the model against the metric you have in mind."
    if (crowd.kinds == CODE).any() and crowd.unit > 1:
        cure = "Weights of categories are at most 1: give output_range=(lowest, highest) to have shares of its width."
    return (
        "fixed and upper leave no metric: some pairs differ only in bounded features, and these weights do not explain "
        f"the difference of outputs. Worst of those found ({len(pairs):,}): {'; '.join(lines)}. {cure}"
    )
