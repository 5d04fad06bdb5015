"""The linear program behind minimal metrics."""

from __future__ import annotations

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.pairs.cuts import LiveProgram, PairProgram
from likewise.pairs.points import CODE, Points

ROUNDING = 1e-11
"""As a share of the range of outputs. Below it lie differences of rounding, which no metric should have to explain."""

SHORTFALL = 2e-10
"""A pair counts as explained at this relative shortfall, a little above what the solver leaves."""

_PER_ROUND = 500


class MinimalWeights(PairProgram):
    """``min c.w`` under ``sum_i w_i gap_i^p >= difference^p`` per pair.

    Variables are ``u_i = w_i scale_i^p``, and each pair's row is divided by its right-hand side, so that features in
    any unit and differences of any size are alike to the solver.
    """

    def __init__(self, points: Points, outputs: FloatArray, low: FloatArray, high: FloatArray, p: float) -> None:
        from likewise.pairs.scans import mean_powers

        self.points, self.outputs, self.p, self.low, self.high = points, outputs, p, low, high
        self._columns, self._answers = np.ascontiguousarray(points.X.T), np.ascontiguousarray(outputs.T)
        present = [column[~np.isnan(column)] for column in self._columns]
        varies = np.array([len(values) > 0 and np.ptp(values) > 0 for values in present])
        apart = varies & (points.kinds != CODE)
        self.scale = np.array([values.std() if own else 1.0 for values, own in zip(present, apart, strict=True)])
        cost = mean_powers(self._columns / self.scale[:, None], p, points.kinds)
        # Any positive costs give a minimal metric; beyond this range, met for large p only, the solver loses digits.
        cost = np.clip(cost / cost[cost > 0].min(), 1.0, 1e8)
        self.weights = low.copy()
        self.pairs: dict[tuple[int, int], None] = {}  # an ordered set
        lower, upper = low * self.scale**p, high * self.scale**p
        upper[~varies] = lower[~varies]  # nothing to explain
        self._program = LiveProgram(cost, lower, upper, tolerance=1e-10)

    def violated(self) -> IntArray:
        """The worst pairs by excess and by ratio, at most one of each per person."""
        from likewise.pairs.scans import worst_partners

        scales = self.weights ** (1 / self.p)
        partner, excess, ratio = worst_partners(
            self._columns, self._answers, scales, self.p, ROUNDING, self.points.kinds
        )
        if ratio.min() >= 1 - SHORTFALL:
            return np.empty((0, 2), dtype=np.int64)
        by_excess = np.argsort(-excess, kind="stable")[:_PER_ROUND]
        by_ratio = np.argsort(ratio, kind="stable")[:_PER_ROUND]
        pairs = np.concatenate(
            [np.stack([by_excess, partner[0, by_excess]], axis=1), np.stack([by_ratio, partner[1, by_ratio]], axis=1)]
        )
        return np.unique(pairs[pairs[:, 1] >= 0], axis=0)

    def add(self, pairs: IntArray) -> int:
        """Add those pairs that are not yet in the program; return how many."""
        new = [pair for pair in map(tuple, pairs.tolist()) if pair not in self.pairs]
        if not new:
            return 0
        self.pairs |= dict.fromkeys(new)
        a, b = np.array(new).T
        needed = np.abs(self.outputs[a] - self.outputs[b]).sum(axis=1) - ROUNDING
        with np.errstate(over="ignore", under="ignore"):
            # Beyond 1e10 the smallest weight explains the pair; the cap errs towards larger weights.
            values = np.minimum((self.points.gaps(a, b) / self.scale / needed[:, None]) ** self.p, 1e10)
        enlarge = 1 / np.minimum(values.max(axis=1), 1.0)  # the solver drops tiny coefficients
        self._program.add_rows(np.arange(len(self.scale)), values * enlarge[:, None], enlarge)
        return len(new)

    def solve(self) -> None:
        """Find the weights."""
        u = self._program.solve()
        self.weights = np.clip(np.maximum(u, 0.0) / self.scale**self.p, self.low, self.high)

    def active(self) -> IntArray:
        """Pairs whose constraints define the solution; shape (n, 2)."""
        pairs: IntArray = np.array(list(self.pairs), dtype=np.int64).reshape(-1, 2)
        return pairs[self._program.binding()]
