"""All pairs of a sample of people, whose distances change with the weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from likewise._subsample import evenly_spaced
from likewise._typing import FloatArray, IntArray
from likewise.metrics.base import ColumnWeights

_MOST_PAIRED, _MOST_CELLS = 700, 8_000_000  # people whose pairs are looked at, and numbers that are kept for it
_OFTEN, _LOOKED_AT = 2, 2000  # how often a person may be in a case; pairs to choose from


@dataclass(frozen=True, eq=False)
class PairSample:
    """All pairs of an even sample of people. With p = 1 their distances are linear in the weights.

    Attributes
    ----------
    n : int
        People.
    a, b : ndarray of shape (n_pairs,)
        Their rows.
    gaps_of_columns : ndarray of shape (n_pairs, n_columns)
        Differences of numbers, 0 where one is missing; 1 for different categories.
    apart : ndarray of shape (n_pairs, n_blank)
        Whether exactly one of the two has the number, for columns in which somebody has none.
    blank : ndarray of shape (n_blank,)
        These columns.
    """

    n: int
    a: IntArray
    b: IntArray
    gaps_of_columns: FloatArray
    apart: FloatArray
    blank: IntArray

    @classmethod
    def of(cls, rows: FloatArray, is_number: npt.NDArray[np.bool_]) -> PairSample:
        """Differences of every two people of the sample."""
        most = int(np.sqrt(2 * _MOST_CELLS / max(1, rows.shape[1])))
        chosen = evenly_spaced(len(rows), min(_MOST_PAIRED, most)) if len(rows) > 1 else np.arange(len(rows))
        i, j = np.triu_indices(len(chosen), 1)
        a, b = chosen[i], chosen[j]
        gaps = np.empty((len(a), rows.shape[1]))
        for column, number in enumerate(is_number):
            x, y = rows[a, column], rows[b, column]
            gaps[:, column] = np.nan_to_num(np.abs(x - y)) if number else x != y
        blank = np.flatnonzero(np.isnan(rows).any(axis=0) & is_number)
        apart = (np.isnan(rows[a][:, blank]) != np.isnan(rows[b][:, blank])).astype(np.float64)
        return cls(len(chosen), a, b, gaps, apart, blank)

    def distances(self, columns: ColumnWeights) -> FloatArray:
        """Distances of all pairs."""
        missing = np.nan_to_num(columns.missing[self.blank])
        return np.asarray(self.gaps_of_columns @ columns.scales + self.apart @ missing)

    def varied(self, ordered: IntArray, most: int) -> list[int]:
        """The first of some pairs, nobody in more than two of them."""
        found: list[int] = []
        times: dict[int, int] = {}
        for k in ordered[:_LOOKED_AT].tolist():
            two = int(self.a[k]), int(self.b[k])
            if len(found) < most and all(times.get(one, 0) < _OFTEN for one in two):
                found.append(k)
                times |= {one: times.get(one, 0) + 1 for one in two}
        return found

    def gaps(self, outputs: FloatArray, output_range: tuple[float, float] | None) -> FloatArray:
        """Differences of outputs: in total variation, or as shares of the range."""
        if outputs.ndim == 2:
            return np.asarray(np.abs(outputs[self.a] - outputs[self.b]).sum(axis=1) / 2)
        low, high = output_range or (0.0, 1.0)
        return np.asarray(np.abs(outputs[self.a] - outputs[self.b]) / (high - low))
