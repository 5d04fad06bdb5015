"""The linear program behind minimal metrics."""

from __future__ import annotations

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.errors import InvalidInputError
from likewise.pairs.cuts import LiveProgram, PairProgram
from likewise.pairs.means import mean_powers
from likewise.pairs.points import CODE, Points
from likewise.reveal.widening import ROUNDING, SHORTFALL, WideningSearch

_PER_ROUND = 500


class MinimalWeights(PairProgram):
    """``min c.w`` under ``sum_i w_i gap_i^p >= difference^p`` per pair.

    Variables are ``u_i = w_i scale_i^p``, and each pair's row is divided by its right-hand side, so that features in
    any unit and differences of any size are alike to the solver. Pairs that may matter wait in a pool; those of the
    pool that the present weights do not explain enter the program.
    """

    def __init__(self, points: Points, outputs: FloatArray, low: FloatArray, high: FloatArray, p: float) -> None:
        self.points, self.outputs, self.p, self.low, self.high = points, outputs, p, low, high
        self.search = WideningSearch(points, outputs, p)
        columns = np.ascontiguousarray(points.X.T)
        present = [column[~np.isnan(column)] for column in columns]
        varies = np.array([len(values) > 0 and np.ptp(values) > 0 for values in present])
        apart = varies & (points.kinds != CODE)
        self.scale = np.array([values.std() if own else 1.0 for values, own in zip(present, apart, strict=True)])
        cost = mean_powers(columns / self.scale[:, None], p, points.kinds)
        # Any positive costs give a minimal metric; beyond this range, met for large p only, the solver loses digits.
        cost = np.clip(cost / cost[cost > 0].min(), 1.0, 1e8)
        self.weights = low.copy()
        with np.errstate(over="ignore", under="ignore"):
            power = self.scale**p
        if not ((power > 0) & (power < np.inf)).all():
            raise InvalidInputError(
                f"p must be smaller for columns of this size: their powers leave the floating point; got {p:g}. Use "
                "p below 50, or other units."
            )
        lower, upper = low * power, high * power
        upper[~varies] = lower[~varies]  # nothing to explain
        self._program = LiveProgram(cost, lower, upper, tolerance=1e-10)
        self._u = lower
        self._rows: list[int] = []  # positions in the pool
        self._holders: list[int] = []  # those that stopped the lowering of a weight
        self._pool: IntArray = np.empty((0, 2), dtype=np.int64)
        self._values = np.empty((0, len(cost)))
        self._needed = np.empty(0)

    @property
    def n_constraints(self) -> int:
        """Pairs that entered the program."""
        return len(self._rows)

    def violated(self) -> IntArray:
        """The worst pairs by excess and by ratio, at most one of each per person, as positions in the pool."""
        while True:
            ratios = (self._values @ self._u) ** (1 / self.p)
            short = np.flatnonzero(ratios < 1 - SHORTFALL)
            if len(short):
                excess = (1 - ratios[short]) * self._needed[short]
                return np.union1d(self._worst(short, -excess), self._worst(short, ratios[short]))
            self._lower()
            scales = self.weights ** (1 / self.p)
            if self.search.covers(scales):
                return short
            self._extend(self.search.look(scales, ratios))

    def _worst(self, positions: IntArray, order_by: FloatArray) -> IntArray:
        ranked = positions[np.argsort(order_by, kind="stable")]
        once = np.unique(self._pool[ranked, 0], return_index=True)[1]
        return ranked[np.sort(once)[:_PER_ROUND]]

    def _extend(self, pairs: IntArray) -> None:
        """Put new pairs in the pool."""
        n = len(self.points)
        keys, first = np.unique(pairs[:, 0] * n + pairs[:, 1], return_index=True)
        known = np.isin(keys, self._pool[:, 0] * n + self._pool[:, 1])
        a, b = pairs[first[~known]].T
        needed = np.abs(self.outputs[a] - self.outputs[b]).sum(axis=1) - ROUNDING
        with np.errstate(over="ignore", under="ignore"):
            values = np.minimum((self.points.gaps(a, b) / self.scale / needed[:, None]) ** self.p, 1e200)
        self._pool = np.concatenate([self._pool, np.stack([a, b], axis=1)])
        self._values = np.concatenate([self._values, values])
        self._needed = np.concatenate([self._needed, needed])

    def add(self, positions: IntArray) -> int:
        """Add those pairs that are not yet in the program; return how many."""
        new = np.setdiff1d(positions, self._rows)
        if len(new):
            # Beyond 1e10 the smallest weight explains the pair; the cap errs towards larger weights.
            values = np.minimum(self._values[new], 1e10)
            enlarge = 1 / np.minimum(values.max(axis=1), 1.0)  # the solver drops tiny coefficients
            self._program.add_rows(np.arange(len(self.scale)), values * enlarge[:, None], enlarge)
            self._rows += new.tolist()
        return len(new)

    def solve(self) -> None:
        """Find the weights."""
        self._set(np.maximum(self._program.solve(), 0.0))

    def _set(self, u: FloatArray) -> None:
        self._u = u
        self.weights = np.clip(u / self.scale**self.p, self.low, self.high)

    def _lower(self) -> None:
        """Lower each weight, one after the other, as far as the pool allows.

        It does nothing where the solver was exact. For large p, a weight may be far below what the solver can see.
        """
        u, least = self._u.copy(), self.low * self.scale**self.p
        self._holders = []
        for i in np.flatnonzero(u > least) if len(self._pool) else ():
            own, others = self._values[:, i], np.where(np.arange(len(u)) == i, 0.0, u)
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                needed = np.where(own > 0, ((1 - SHORTFALL) ** self.p - self._values @ others) / own, 0.0)
            most = int(needed.argmax())
            allowed = max(float(least[i]), float(needed[most]))
            if allowed < u[i] * (1 - 1e-7):
                u[i] = allowed
                self._holders.append(most)
        if self._holders:
            self._set(u)

    def active(self) -> IntArray:
        """Pairs whose constraints define the solution; shape (n, 2)."""
        rows = np.array(self._rows, dtype=np.int64)[self._program.binding()]
        rows = np.union1d(rows, np.array(self._holders, dtype=np.int64))
        tight: IntArray = rows[self._values[rows] @ self._u < (1 + 1e-6) ** self.p]
        return self._pool[tight]
