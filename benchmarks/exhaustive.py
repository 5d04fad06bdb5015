"""Every pair in every round: the reference for `likewise.reveal.active_set.ActiveSetSearch`, here and in tests."""

import numpy as np

from likewise.pairs.plain import blocks_after
from likewise.pairs.points import Columns
from likewise.reveal.active_set import ROUNDING, SHORTFALL, as_cuts


class ExhaustiveSearch:
    """Compares every pair in every round."""

    def __init__(self, people, p):
        self.people, self.shapes, self.p = people.subsample(1.0), people.shapes, p
        self._columns, self._outputs = (np.ascontiguousarray(lines.T) for lines in self.people[:2])
        self._pairs = np.empty((0, 2), dtype=np.int64)

    def covers(self, scales):
        """Whether no pair violates these scales."""
        columns = Columns(self._columns, self.shapes.kinds, scales, self.p)
        pairs, least = [np.empty((0, 2), dtype=np.int64)], 1.0
        for first, gaps, distances in blocks_after(columns, self._outputs):
            gaps = gaps - ROUNDING
            above = gaps > distances
            ratio = np.where(above, distances / np.where(above, gaps, 1.0), 1.0)
            people, least = np.flatnonzero(above.any(axis=1)), min(least, ratio.min())
            for partner in (np.where(above, gaps - distances, 0.0).argmax(axis=1), ratio.argmin(axis=1)):
                pairs.append(np.stack([first + people, first + 1 + partner[people]], axis=1))
        self._pairs = np.concatenate(pairs)
        # Weights are shrunk until a pair is at the shortfall; rounding must not put it beyond.
        return bool(least >= 1 - 1.001 * SHORTFALL)

    def next_cuts(self, scales, ratios):
        """For each person the partner with the largest excess, and the one with the smallest ratio."""
        return as_cuts(self.people, self._pairs, self.shapes, complete=False)
