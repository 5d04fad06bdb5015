"""The linear program behind minimal metrics."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.pairs.points import CODE, People

ROUNDING = 1e-11
"""As a share of the range of outputs. Below it lie differences of rounding, which no metric should have to explain."""


class Program:
    """``min c.w`` under ``sum_i w_i gap_i^p >= difference^p`` per pair, kept alive in HiGHS while pairs are added.

    Variables are ``u_i = w_i scale_i^p``, and each pair's row is divided by its right-hand side, so that features in
    any unit and differences of any size are alike to the solver.
    """

    def __init__(self, people: People, outputs: FloatArray, low: FloatArray, high: FloatArray, p: float) -> None:
        import highspy

        from likewise.pairs.scans import mean_powers

        self.people, self.outputs, self.p, self.low, self.high = people, outputs, p, low, high
        present = [column[~np.isnan(column)] for column in people.X.T]
        self.varies = np.array([len(values) > 0 and np.ptp(values) > 0 for values in present])
        apart = self.varies & (people.kinds != CODE)
        self.scale = np.array([values.std() if own else 1.0 for values, own in zip(present, apart, strict=True)])
        cost = mean_powers(np.ascontiguousarray((people.X / self.scale).T), p, people.kinds)
        # Any positive costs give a minimal metric; beyond this range, met for large p only, the solver loses digits.
        cost = np.clip(cost / cost[cost > 0].min(), 1.0, 1e8)
        self.weights = low.copy()
        self.pairs: dict[tuple[int, int], None] = {}  # an ordered set
        lower, upper = low * self.scale**p, high * self.scale**p
        upper[~self.varies] = lower[~self.varies]  # nothing to explain
        self.solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self.solver.silent()
        for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self.solver.setOptionValue(name, 1e-10)
        self.solver.setOptionValue("small_matrix_value", 1e-12)
        for each, least, most in zip(cost, lower, upper, strict=True):
            self.solver.addCol(each, least, most, 0, [], [])

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
            values = np.minimum((self.people.gaps(a, b) / self.scale / needed[:, None]) ** self.p, 1e10)
        n, d = len(new), len(self.scale)
        enlarge = 1 / np.minimum(values.max(axis=1), 1.0)  # the solver drops tiny coefficients
        values *= enlarge[:, None]
        self.solver.addRows(
            n,
            enlarge,
            np.full(n, np.inf),
            n * d,
            np.arange(n, dtype=np.int32) * d,
            np.tile(np.arange(d, dtype=np.int32), n),
            values.ravel(),
        )
        return n

    def solve(self) -> None:
        """Re-solve from the last basis."""
        import highspy

        self.solver.run()
        status = self.solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"The linear program could not be solved ({status.name}). Lower p, or rescale X.")
        u = np.array(self.solver.getSolution().col_value)
        self.weights = np.clip(np.maximum(u, 0.0) / self.scale**self.p, self.low, self.high)

    def active(self) -> IntArray:
        """Pairs whose constraints define the solution (the non-basic rows of the simplex); shape (n, 2)."""
        import highspy

        tight = [status == highspy.HighsBasisStatus.kLower for status in self.solver.getBasis().row_status]
        pairs: IntArray = np.array(list(self.pairs), dtype=np.int64).reshape(-1, 2)
        return pairs[np.flatnonzero(tight)]
