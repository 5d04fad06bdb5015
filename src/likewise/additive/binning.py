"""Binned columns: for each row the knot below it and the fraction of the way to the next one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from likewise._parallel import run_in_threads
from likewise._subsample import fixed_sample
from likewise._typing import FloatArray, IntArray
from likewise.kernel.metric import BoundMetric, States

BLOCK = 2**18
"""Rows per block. Sums of blocks are added in row order, so results do not depend on threads or workers."""

MOST_VALUES = 2**18
"""Maximum rows used to place knots; a larger table is subsampled, always with the same rows."""

_FARTHEST = 1e300  # knots beyond it would have gaps that overflow


@dataclass(frozen=True, eq=False)
class Part:
    """One column of an additive model, in slots: one per knot or category, and one per state beside numbers.

    Attributes
    ----------
    column : int
        Position among the people's columns; -1 for the intercept, which is a column of one category.
    knots : ndarray of shape (n_knots,), or None
        Increasing; None for categories.
    n_slots : int
    states : States, or None
        What the last slots stand for: a blank, and special codes; None for categories, and where all are numbers.
    index : ndarray of small whole numbers, shape (n_samples,)
        Slot at or below each person.
    fraction : ndarray of shape (n_samples,), or None
        Position between that slot and the next, from 0 to 1; None for categories.
    share : ndarray of shape (n_slots,)
        Weight of the people at each slot; it adds up to 1.
    spread : float
        Standard deviation of the numbers.
    """

    column: int
    knots: FloatArray | None
    n_slots: int
    states: States | None
    index: npt.NDArray[Any]
    fraction: FloatArray | None
    share: FloatArray
    spread: float = 1.0

    @property
    def n_knots(self) -> int:
        """Number of knots; 0 for categories."""
        return 0 if self.knots is None else len(self.knots)

    @property
    def has_missing(self) -> bool:
        """Whether there are slots of states."""
        return self.states is not None

    def of(self, people: slice) -> Part:
        """The part restricted to some of its rows."""
        if people.start == 0 and people.stop == len(self.index):
            return self  # most tables are one block, and copies of all pairs of columns add up
        return replace(
            self, index=self.index[people], fraction=None if self.fraction is None else self.fraction[people]
        )

    def coarser(self, most: int) -> Part:
        """The same column with at most `most` knots."""
        if self.knots is None or self.n_knots <= most or self.fraction is None:
            return self
        knots = self.knots[np.unique(np.linspace(0, self.n_knots - 1, max(2, most)).astype(int))]
        known = self.index < self.n_knots
        low = np.minimum(self.index[known], self.n_knots - 2)
        values = self.knots[low] + self.fraction[known] * (self.knots[low + 1] - self.knots[low])
        index, fraction = (
            (self.index.astype(np.int64) + len(knots) - self.n_knots).clip(0),
            np.zeros_like(self.fraction),
        )
        index[known], fraction[known] = locate(values, knots)
        share = np.append(np.full(len(knots), 1 / len(knots)), self.share[self.n_knots :])
        return replace(
            self,
            knots=knots,
            n_slots=len(share),
            index=index.astype(self.index.dtype),
            fraction=fraction,
            share=share,
        )


def intercept(n_samples: int) -> Part:
    """The intercept, a part of one slot."""
    return Part(-1, None, 1, None, np.zeros(n_samples, dtype=np.uint8), None, np.ones(1))


def bin_columns(
    rows: FloatArray, weights: FloatArray, metric: BoundMetric, max_knots: int | IntArray, n_jobs: int | None = None
) -> list[Part]:
    """The intercept, and one part for each column that matters and varies.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_columns)
        People as numbers.
    weights : ndarray of shape (n_samples,)
        Sample weights that add up to 1. Rows of weight 0 are not used to place knots.
    metric : BoundMetric
        Columns of weight 0 are skipped.
    max_knots : int, or ndarray of shape (n_columns,)
    """
    some, counted = knot_sample(len(rows)), weights > 0
    most = np.broadcast_to(max_knots, rows.shape[1])
    found: dict[int, Part | None] = {}

    def read(i: int) -> None:
        values = np.ascontiguousarray(rows[:, i])
        observed = values[counted] if metric.is_number[i] else values
        plan = plan_column(i, values[some], weights[some], observed, metric, int(most[i]))
        found[i] = None if plan is None else _filled(plan, values, weights)

    columns = np.flatnonzero(metric.matters).tolist()
    run_in_threads(read, columns, n_jobs)
    parts = (found[i] for i in columns)
    return [intercept(len(rows)), *(part for part in parts if part is not None)]


def plan_column(
    column: int, values: FloatArray, weights: FloatArray, observed: FloatArray, metric: BoundMetric, max_knots: int
) -> Part | None:
    """The part of a column, with no rows yet; None if the column is constant.

    Parameters
    ----------
    column : int
    values, weights : ndarray of shape (n_some,)
        Sample from which knots are chosen.
    observed : ndarray
        Values that include the minimum and maximum of all rows, and a missing one if there is any.
    metric : BoundMetric
    max_knots : int
    """
    no_rows = np.empty(0, dtype=np.uint8)
    if not metric.is_number[column]:
        n_levels = int(observed.max()) + 1
        if n_levels >= 2 and column in metric.tables:  # unseen ones have distances too
            n_levels = len(metric.tables[column]) - 1
        return None if n_levels < 2 else Part(column, None, n_levels, None, no_rows, None, np.zeros(n_levels))
    states = metric.states.get(column)
    is_state = _codes(states, observed) > 0
    present, counted = observed[~is_state], (_codes(states, values) == 0) & (weights > 0)
    if not len(present) or not counted.any():
        return None
    # Add the overall minimum and maximum with zero weight.
    ends = np.array([present.min(), present.max()])
    knots = choose_knots(np.append(values[counted], ends), np.append(weights[counted], [0.0, 0.0]), max_knots)
    if len(knots) == 1 and not is_state.any():
        return None
    # Scaled by the largest magnitude, so that squares of huge numbers do not overflow.
    size = max(abs(knots[0]), abs(knots[-1])) or 1.0
    scaled = np.clip(values[counted], -_FARTHEST, _FARTHEST) / size
    mean = np.average(scaled, weights=weights[counted])
    spread = float(np.sqrt(np.average((scaled - mean) ** 2, weights=weights[counted]))) * size
    n_slots = len(knots) + (0 if states is None else len(states.values))
    return Part(column, knots, n_slots, states, no_rows, np.empty(0), np.zeros(n_slots), spread)


def fill(plan: Part, values: FloatArray) -> Part:
    """The part with rows filled in."""
    if plan.knots is None:
        return replace(plan, index=values.astype(_smallest(plan.n_slots)))
    codes, fraction = _codes(plan.states, values), np.zeros(len(values))
    index, known = (plan.n_knots - 1 + codes).astype(_smallest(plan.n_slots)), codes == 0
    index[known], fraction[known] = locate(values[known], plan.knots)
    return replace(plan, index=index, fraction=fraction)


def _codes(states: States | None, values: FloatArray) -> IntArray:
    """0 for numbers, else 1 + the position of the state."""
    return np.zeros(len(values), dtype=np.int64) if states is None else states.of(values)


def slot_shares(part: Part, weights: FloatArray) -> FloatArray:
    """Sum of weights at each slot."""
    if part.fraction is None:
        return np.asarray(np.bincount(part.index, weights, part.n_slots))
    share: Any = np.bincount(part.index, weights * (1 - part.fraction), part.n_slots)[: part.n_slots]
    share[1:] += np.bincount(part.index, weights * part.fraction, part.n_slots)[: part.n_slots - 1]
    return np.asarray(share)


def _filled(plan: Part, values: FloatArray, weights: FloatArray) -> Part:
    part = fill(plan, values)
    share = np.zeros(part.n_slots)
    for people in blocks_of(len(values)):
        share += slot_shares(part.of(people), weights[people])
    return replace(part, share=share)


def knot_sample(n_people: int) -> IntArray:
    """Positions of the rows from which knots are chosen."""
    return fixed_sample(n_people, MOST_VALUES)


def knots_for(n_people: float, max_knots: int) -> int:
    """Knots that `n_people` can support, ``4 n^(1/3)``: more cost time and change no shape."""
    return min(max_knots, max(8, round(4 * float(np.cbrt(n_people)))))


def blocks_of(n_people: int) -> list[slice]:
    """Slices of all rows, one per block."""
    return [slice(start, min(start + BLOCK, n_people)) for start in range(0, n_people, BLOCK)]


def choose_knots(values: FloatArray, weights: FloatArray, max_knots: int) -> FloatArray:
    """All distinct values if they are few, else the extremes and quantiles between them.

    Quantiles are of a distribution with half its mass on rows and half on distinct values: quantiles of rows alone
    would give a column that is 0 in nearly all rows one knot, and its tail none. A weight of 2 counts as two rows.

    Examples
    --------
    >>> choose_knots(np.arange(101.0), np.ones(101), 5)
    array([  0.,  25.,  50.,  75., 100.])
    >>> choose_knots(np.concatenate([np.zeros(900), np.arange(1, 101)]), np.ones(1000), 6)
    array([  0.,  20.,  40.,  60.,  80., 100.])
    """
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    first = np.flatnonzero(np.diff(values, prepend=-np.inf) > 0)
    distinct = values[first]
    if len(distinct) > max_knots:
        people = np.add.reduceat(weights, first)
        mass = people / people.sum() + 1 / len(distinct)
        taken = np.zeros(len(distinct), dtype=bool)
        taken[[0, -1]] = True
        # A value with more than one knot's mass gets a knot, and the others share what is left.
        while (heavy := ~taken & (mass * (max_knots - taken.sum() + 1) > mass[~taken].sum())).any():
            if taken.sum() + heavy.sum() > max_knots:
                break
            taken |= heavy
        rest = np.flatnonzero(~taken)
        reached = np.cumsum(mass[rest])
        # Allow for rounding: a share just short of a level has reached it.
        levels = np.linspace(0, 1, max_knots - taken.sum() + 2)[1:-1] * reached[-1] * (1 - 1e-12)
        taken[rest[np.minimum(np.searchsorted(reached, levels), len(rest) - 1)]] = True
        distinct = distinct[taken]
    return np.asarray(np.unique(np.clip(distinct, -_FARTHEST, _FARTHEST)))


def locate(values: FloatArray, knots: FloatArray) -> tuple[npt.NDArray[Any], FloatArray]:
    """Knot at or below each value, and the fraction of the way to the next; values outside are moved to the ends."""
    if len(knots) == 1:
        return np.zeros(len(values), dtype=np.intp), np.zeros(len(values))
    index = np.clip(np.searchsorted(knots, values, side="right") - 1, 0, len(knots) - 2)
    low = knots[index]
    fraction = (np.clip(values, knots[0], knots[-1]) - low) / (knots[index + 1] - low)
    return index, fraction


def _smallest(most: int) -> Any:
    return np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.uint32
