"""What a metric makes of columns, and the distance that follows: in NumPy, once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from likewise._typing import BoolArray, FloatArray
from likewise.errors import InvalidInputError

if TYPE_CHECKING:
    from likewise.metrics.people import People

_CELLS_AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class ColumnWeights:
    """What each column of some people counts, in the order of their columns.

    ``D(a, b) = ||scales * |a - b| ||_p`` over the numbers, plus ``missing`` where exactly one number is missing, plus
    ``scales`` where two categories differ.

    Attributes
    ----------
    weights : ndarray of shape (n_columns,)
        Of numbers, inside the power; between two different categories.
    is_number : ndarray of bool, shape (n_columns,)
        Whether a column holds numbers; the others hold categories.
    missing : ndarray of shape (n_columns,)
        Distance between a number that is there and one that is missing; NaN where the metric refuses those.
    p : float
    """

    weights: FloatArray
    is_number: BoolArray
    missing: FloatArray
    p: float

    @cached_property
    def scales(self) -> FloatArray:
        """Distance per unit of a number, or between two different categories."""
        return np.where(self.is_number, root(self.weights, self.p), self.weights)

    @property
    def matters(self) -> BoolArray:
        """Which columns have a positive weight."""
        return np.asarray(self.weights > 0)

    @property
    def allows_missing(self) -> bool:
        """Whether a number that matters may be missing."""
        return bool((self.is_number & self.matters & ~np.isnan(self.missing)).any())

    def check_missing(self, people: People) -> None:
        """Raise if a number is missing in a column for which the metric refuses that."""
        for i in people.missing():
            if np.isnan(self.missing[i]):
                name, rows = people.coding.names[i], np.flatnonzero(np.isnan(people.rows[:, i]))
                problem = (
                    f"Column {name!r} has missing numbers, which the metric refuses: {len(rows):,} of {len(people):,} "
                    f"rows, the first in row {people.name_of(int(rows[0]))}."
                )
                raise InvalidInputError(
                    f"{problem} Impute them, or use TableMetric(..., missing='category')."
                ).in_commands(
                    f"{problem} Fill them in, or leave these rows out. [missing] {name} = 1 in the metric file says "
                    "what a missing number weighs, between 0 and 1."
                )

    def distances(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Distances between coded people, along the last axis; the others are broadcast."""
        numbers = self.is_number
        gap = np.abs(a[..., numbers] - b[..., numbers])
        total = lp_norm(np.nan_to_num(gap) * self.scales[numbers], self.p)
        apart = np.isnan(a[..., numbers]) != np.isnan(b[..., numbers])
        if apart.any():
            total = total + (apart * np.nan_to_num(self.missing[numbers])).sum(axis=-1)
        if not numbers.all():
            total = total + ((a[..., ~numbers] != b[..., ~numbers]) * self.scales[~numbers]).sum(axis=-1)
        return np.asarray(total)

    def pairwise(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Distances between every row of `a` and every row of `b`."""
        out = np.empty((len(a), len(b)))
        at_once = max(1, _CELLS_AT_ONCE // max(1, b.size))
        for start in range(0, len(a), at_once):
            out[start : start + at_once] = self.distances(a[start : start + at_once, None], b[None])
        return out


def root(weights: FloatArray, p: float) -> FloatArray:
    """Scales ``w^(1/p)`` of weights inside the power; ``w`` for ``p = inf``."""
    with np.errstate(under="ignore"):
        return weights if np.isinf(p) else np.asarray(weights ** (1 / p))


def lp_norm(z: FloatArray, p: float) -> FloatArray:
    """Lp norm along the last axis, safe from overflow and underflow in the powers; 0 where there is nothing."""
    z = np.abs(z)
    if p == 1 or not z.shape[-1]:
        return np.asarray(z.sum(axis=-1))
    largest = z.max(axis=-1)
    if np.isinf(p):
        return np.asarray(largest)
    divisor = np.where(largest > 0, largest, 1.0)
    with np.errstate(under="ignore"):
        return np.asarray(largest * ((z / divisor[..., None]) ** p).sum(axis=-1) ** (1 / p))
