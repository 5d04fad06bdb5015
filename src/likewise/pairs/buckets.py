"""Which bucket each person belongs to, by a few splits that everyone can follow without knowing the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from likewise._typing import FloatArray, IntArray
from likewise.pairs.points import CODE, Kinds


@dataclass(frozen=True, eq=False)
class Splits:
    """A tree of thresholds over columns and outputs; its leaves are buckets.

    Equal people are in one bucket, whoever reads them. Node k sends people whose value on `axis[k]` is below
    `threshold[k]` to the node `child[k]`, and the others to the next one; a leaf has child -1 and a bucket.
    """

    axis: IntArray
    threshold: FloatArray
    child: IntArray
    bucket: IntArray

    @property
    def n_buckets(self) -> int:
        """How many buckets there are."""
        return int(self.bucket.max()) + 1

    def place(self, X: FloatArray, outputs: FloatArray) -> IntArray:
        """The bucket of each person."""
        rows = _side_by_side(X, outputs)
        out = np.empty(len(rows), dtype=np.int64)
        waiting = [(0, np.arange(len(rows)))]
        while waiting:
            node, people = waiting.pop()
            if self.child[node] < 0:
                out[people] = self.bucket[node]
                continue
            below = rows[people, self.axis[node]] < self.threshold[node]
            waiting += [(int(self.child[node]), people[below]), (int(self.child[node]) + 1, people[~below])]
        return out


def choose_splits(X: FloatArray, outputs: FloatArray, scales: FloatArray, kinds: Kinds, n_buckets: int) -> Splits:
    """Split some people along the widest of the scaled columns and the outputs, until each part is a bucket's share.

    Examples
    --------
    >>> ages = np.array([[20.0], [30.0], [40.0], [50.0]])
    >>> splits = choose_splits(ages, np.zeros((4, 1)), np.ones(1), np.zeros(1, dtype=np.int8), 2)
    >>> splits.place(np.array([[35.0], [41.0], [20.0]]), np.zeros((3, 1)))
    array([0, 1, 0])
    """
    rows = _side_by_side(X, outputs)
    scales = np.append(scales, np.ones(outputs.shape[1]))
    codes = np.append(kinds == CODE, np.zeros(outputs.shape[1], dtype=bool))
    most = max(1.0, len(rows) / n_buckets * 1.5)
    axis, threshold, child = [0], [0.0], [-1]
    parts: list[npt.NDArray[np.int64]] = [np.arange(len(rows))]
    node = 0
    while node < len(parts):
        here = rows[parts[node]]
        widths = np.ptp(here, axis=0) if len(here) else np.zeros(len(scales))
        widths = scales * np.where(codes, np.minimum(widths, 1.0), widths)
        widest = int(widths.argmax())
        if len(here) > most and widths[widest] > 0:
            values = np.sort(here[:, widest])
            middle = values[len(values) // 2]
            at = middle if middle > values[0] else values[values > middle][0]
            axis[node], threshold[node], child[node] = widest, float(at), len(parts)
            below = here[:, widest] < at
            parts += [parts[node][below], parts[node][~below]]
            axis, threshold, child = [*axis, 0, 0], [*threshold, 0.0, 0.0], [*child, -1, -1]
        node += 1
    leaf = np.array(child) < 0
    return Splits(np.array(axis), np.array(threshold), np.array(child), np.where(leaf, np.cumsum(leaf) - 1, -1))


def _side_by_side(X: FloatArray, outputs: FloatArray) -> FloatArray:
    """Columns and outputs; what is missing stands at 0, as in trees of boxes."""
    return np.column_stack([np.where(np.isnan(X), 0.0, X), outputs])
