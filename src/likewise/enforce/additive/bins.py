"""Columns as bins: where each person stands between which knots, in a byte or two, and no basis of n x knots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from likewise._threads import run_in_threads
from likewise._typing import FloatArray
from likewise.metrics.distance import ColumnWeights

_FARTHEST = 1e300  # knots beyond it would have gaps that overflow


@dataclass(frozen=True, eq=False)
class Part:
    """One column of an additive model, in slots: one per knot or category, and one for a missing number.

    Attributes
    ----------
    column : int
        Position among the people's columns; -1 for the intercept, which is a column of one category.
    knots : ndarray of shape (n_knots,), or None
        Increasing; None for categories.
    n_slots : int
    has_missing : bool
        Whether the last slot stands for a missing number.
    index : ndarray of small whole numbers, shape (n_samples,)
        Slot at or below each person.
    fraction : ndarray of shape (n_samples,), or None
        How far each person is on the way to the next slot, between 0 and 1; None for categories.
    share : ndarray of shape (n_slots,)
        Weight of the people at each slot; it adds up to 1.
    spread : float
        Standard deviation of the numbers.
    """

    column: int
    knots: FloatArray | None
    n_slots: int
    has_missing: bool
    index: npt.NDArray[Any]
    fraction: FloatArray | None
    share: FloatArray
    spread: float = 1.0

    @property
    def n_knots(self) -> int:
        """Number of knots; 0 for categories."""
        return 0 if self.knots is None else len(self.knots)


def intercept(n_samples: int) -> Part:
    """The part that is the same for everyone."""
    return Part(-1, None, 1, False, np.zeros(n_samples, dtype=np.uint8), None, np.ones(1))


def bin_columns(
    rows: FloatArray, weights: FloatArray, metric: ColumnWeights, max_knots: int, n_jobs: int | None = None
) -> list[Part]:
    """The intercept, and one part for each column that matters and varies.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_columns)
        People as numbers.
    weights : ndarray of shape (n_samples,)
        Sample weights that add up to 1. People of weight 0 place no knot.
    metric : ColumnWeights
        Columns of weight 0 are not looked at.
    max_knots : int
    """
    columns = np.flatnonzero(metric.matters).tolist()
    found: dict[int, Part | None] = {}

    def read(i: int) -> None:
        values = np.ascontiguousarray(rows[:, i])
        if metric.is_number[i]:
            found[i] = _numbers(i, values, weights, max_knots, bool(metric.missing[i] >= 0))
        else:
            found[i] = _categories(i, values, weights)

    run_in_threads(read, columns, n_jobs)
    parts = (found[i] for i in columns)
    return [intercept(len(rows)), *(part for part in parts if part is not None)]


def choose_knots(values: FloatArray, weights: FloatArray, max_knots: int) -> FloatArray:
    """All distinct values if they are few, else the extremes and quantiles between them.

    Weights count as repetitions would.

    Examples
    --------
    >>> choose_knots(np.arange(101.0), np.ones(101), 5)
    array([  0.,  25.,  50.,  75., 100.])
    """
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    first = np.flatnonzero(np.diff(values, prepend=-np.inf) > 0)
    distinct = values[first]
    if len(distinct) > max_knots:
        reached = np.cumsum(np.add.reduceat(weights, first))
        # A share just short of a level because of rounding has reached it.
        levels = np.linspace(0, 1, max_knots) * reached[-1] * (1 - 1e-12)
        chosen = np.minimum(np.searchsorted(reached, levels), len(distinct) - 1)
        chosen[0], chosen[-1] = 0, len(distinct) - 1
        distinct = distinct[np.unique(chosen)]
    return np.asarray(np.unique(np.clip(distinct, -_FARTHEST, _FARTHEST)))


def locate(values: FloatArray, knots: FloatArray) -> tuple[npt.NDArray[Any], FloatArray]:
    """Knot at or below each value, and how far it is on the way to the next; values outside stand at the ends."""
    if len(knots) == 1:
        return np.zeros(len(values), dtype=np.intp), np.zeros(len(values))
    index = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, len(knots) - 2)
    low = knots[index]
    fraction = (np.clip(values, knots[0], knots[-1]) - low) / (knots[index + 1] - low)
    return index, fraction


def _numbers(column: int, values: FloatArray, weights: FloatArray, max_knots: int, may_miss: bool) -> Part | None:
    known = ~np.isnan(values)
    counted = known & (weights > 0)
    if not counted.any():
        return None
    knots = choose_knots(values[counted], weights[counted], max_knots)
    has_missing = may_miss
    if len(knots) == 1 and not (has_missing and (~known & (weights > 0)).any()):
        return None
    index = np.full(len(values), len(knots), dtype=_smallest(len(knots)))
    fraction = np.zeros(len(values))
    index[known], fraction[known] = locate(values[known], knots)
    n_slots = len(knots) + has_missing
    # Counted in units of the largest size, so that squares of huge numbers do not overflow.
    size = max(abs(knots[0]), abs(knots[-1])) or 1.0
    scaled = np.clip(values[counted], -_FARTHEST, _FARTHEST) / size
    mean = np.average(scaled, weights=weights[counted])
    spread = float(np.sqrt(np.average((scaled - mean) ** 2, weights=weights[counted]))) * size
    share: Any = np.bincount(index, weights * (1 - fraction), n_slots)[:n_slots]
    share[1:] += np.bincount(index, weights * fraction, n_slots)[: n_slots - 1]
    return Part(column, knots, n_slots, has_missing, index, fraction, share, spread)


def _categories(column: int, codes: FloatArray, weights: FloatArray) -> Part | None:
    n_levels = int(codes.max()) + 1
    if n_levels < 2:
        return None
    index = codes.astype(_smallest(n_levels))
    share: Any = np.bincount(index, weights, n_levels)
    return Part(column, None, n_levels, False, index, None, share)


def _smallest(most: int) -> Any:
    return np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.uint32
