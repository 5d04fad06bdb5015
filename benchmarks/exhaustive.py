"""Every pair in every round: the reference for `likewise.reveal.active_set.ActiveSetSearch`, here and in tests."""

import numpy as np

from likewise.pairs.points import Columns
from likewise.pairs.scans import worst_partners
from likewise.reveal.active_set import ROUNDING, SHORTFALL, as_cuts


class ExhaustiveSearch:
    """Compares every pair in every round."""

    def __init__(self, people, p):
        self.people, self.shapes, self.p = people.subsample(1.0), people.shapes, p
        self._columns, self._outputs = (np.ascontiguousarray(lines.T) for lines in self.people[:2])
        self._pairs = np.empty((0, 2), dtype=np.int64)

    def covers(self, scales):
        """Whether no pair violates these scales."""
        kinds = self.shapes.kinds
        partner, _, ratio = worst_partners(Columns(self._columns, kinds, scales, self.p), self._outputs, ROUNDING)
        people = np.arange(len(ratio))
        self._pairs = np.concatenate([np.stack([people, each], axis=1)[each >= 0] for each in partner])
        # Weights are shrunk until a pair is at the shortfall; rounding must not put it beyond.
        return bool(ratio.min() >= 1 - 1.001 * SHORTFALL)

    def next_cuts(self, scales, ratios):
        """For each person the partner with the largest excess, and the one with the smallest ratio."""
        return as_cuts(self.people, self._pairs, self.shapes, complete=False)
