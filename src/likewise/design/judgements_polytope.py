"""The metrics that satisfy answers: a polytope of weights, its extent, its nearest point, and conflicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import linprog, nnls

from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.exceptions import UnsolvedError

_TOLERANCE = 1e-9  # of the solver, in points
_ACCURACIES = ("primal_feasibility_tolerance", "dual_feasibility_tolerance")  # its options
_SLACK_WIDTH = 1e3  # slack costs almost nothing in a projection
AGREED = 1e-6  # total slack, in points, below which answers agree
_INFEASIBLE, _UNBOUNDED = 2, 3


class Polytope:
    """Weights ``u >= 0`` with ``rows @ u <= limits + slack`` and ``u <= upper``, for the least total slack.

    Parameters
    ----------
    rows : ndarray of shape (n_answers, n_weights)
    limits : ndarray of shape (n_answers,)
        In points.
    upper : ndarray of shape (n_weights,)
    total : tuple of (ndarray, float), optional
        Coefficients and value of a sum of weights that is given: the mean distance, where no answer is in points.
    hard : ndarray of bool, optional
        Answers that have no slack.

    Attributes
    ----------
    slack : ndarray of shape (n_answers,)
        By how many points each answer is missed, with the smallest sum. All 0 if the answers agree.
    multipliers : ndarray of shape (n_answers,)
        Of the linear program: answers with positive ones cannot all hold.
    """

    def __init__(
        self,
        rows: FloatArray,
        limits: FloatArray,
        upper: FloatArray,
        *,
        total: tuple[FloatArray, float] | None = None,
        hard: BoolArray | None = None,
    ) -> None:
        self.rows, self.limits, self.upper, self.total = rows, limits, upper, total
        n, d = rows.shape
        self._soft = np.ones(n, dtype=bool) if hard is None else ~hard
        self.slack, self.multipliers = np.zeros(n), np.zeros(n)
        self._total_slack: float | None = None
        found = self._solve(np.concatenate([np.zeros(d), np.ones(n)]), slack=True) if n else None
        if found is not None and found.fun > AGREED:
            self.slack, self.multipliers = found.x[d:], -found.ineqlin.marginals
            self._total_slack = float(found.fun) + AGREED
        elif found is not None:  # limits that conflict only by rounding are moved apart by as much
            self.limits = limits + np.where(found.x[d:] > 0, 2 * found.x[d:] + _TOLERANCE, 0.0)

    @property
    def agrees(self) -> bool:
        """Whether all answers hold for some weights."""
        return self._total_slack is None

    @property
    def relaxed_limits(self) -> FloatArray:
        """Limits that can be met together."""
        return np.asarray(self.limits + self.slack)

    def extent(self, feature: FloatArray) -> tuple[float, float]:
        """Smallest and largest ``feature @ u``."""
        cost = np.concatenate([feature, np.zeros(0 if self.agrees else len(self.limits))])
        ends = []
        for sign in (1.0, -1.0):
            found = self._solve(sign * cost, slack=not self.agrees)
            ends.append(-np.inf if found is None else float(found.fun))
        return max(0.0, ends[0]), -ends[1]

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest value of each weight."""
        ends = [self.extent(unit) for unit in np.eye(len(self.upper))]
        low, high = np.array(ends).T
        return np.where(low < 10 * _TOLERANCE, 0.0, low), np.maximum(low, high)

    def nearest(self, target: FloatArray) -> FloatArray:
        """Weights closest to a target in relative changes: ``min sum_i ((u_i - target_i) / target_i)^2``.

        Projection on a polyhedron by non-negative least squares (Lawson & Hanson, "Solving Least Squares Problems",
        ch. 23). Of conflicting answers, any division of the least total slack is allowed.
        """
        d = len(target)
        width = np.maximum(target, 0.01 * max(1.0, float(target.max())))
        free = np.flatnonzero(self._soft & (not self.agrees))
        k = len(free)
        target, width = np.append(target, np.zeros(k)), np.append(width, np.full(k, _SLACK_WIDTH))
        A, b = self._sides(free)
        A, b = A * width, b + AGREED / 10 - A @ target
        norms = np.linalg.norm(A, axis=1)
        A, b = A[norms > 0] / norms[norms > 0, None], b[norms > 0] / norms[norms > 0]
        system, goal = np.concatenate([-A.T, -b[None]]), np.append(np.zeros(d + k), 1.0)
        y, _ = nnls(system, goal, maxiter=100 * len(b))
        residual = system @ y - goal
        if not residual[-1] < 0:
            raise UnsolvedError("The solver failed to find weights close to start. Give other starting weights.")
        found = target - width * residual[:-1] / residual[-1]
        return np.asarray(np.clip(found[:d], 0.0, self.upper))

    def _sides(self, free: IntArray) -> tuple[FloatArray, FloatArray]:
        """All conditions on weights and the slack of some answers, as ``A (u, s) <= b``."""
        n, d = self.rows.shape
        k, finite = len(free), ~np.isinf(self.upper)
        sides = [np.hstack([self.rows, -np.eye(n)[:, free]]), -np.eye(d + k), np.eye(d + k)[:d][finite]]
        ends = [self.limits, np.zeros(d + k), self.upper[finite]]
        if self._total_slack is not None:
            sides.append(np.append(np.zeros(d), np.ones(k))[None])
            ends.append(np.array([self._total_slack]))
        if self.total is not None:
            sides += [sign * np.append(self.total[0], np.zeros(k))[None] for sign in (1, -1)]
            ends += [np.array([sign * self.total[1]]) for sign in (1, -1)]
        return np.concatenate(sides), np.concatenate(ends)

    def _solve(self, cost: FloatArray, *, slack: bool) -> Any:
        """A linear program over the weights and, with `slack`, one slack per answer; None if it is unbounded."""
        n, d = self.rows.shape
        bounds = [(0.0, None if np.isinf(most) else most) for most in self.upper]
        A, b = self.rows, self.limits
        E, total = (None, None) if self.total is None else (self.total[0][None], [self.total[1]])
        if slack:
            A, bounds = np.hstack([A, -np.eye(n)]), bounds + [(0.0, None if soft else 0.0) for soft in self._soft]
            E = None if E is None else np.hstack([E, np.zeros((1, n))])
            if self._total_slack is not None:
                A = np.concatenate([A, np.concatenate([np.zeros(d), np.ones(n)])[None]])
                b = np.append(b, self._total_slack)
        # Unbounded programs, and limits that only just agree, may look infeasible to the solver: it tries again without
        # presolve, and with limits moved apart, which widens ranges.
        for more in (0.0, AGREED):
            options: Any = {"presolve": more == 0, **dict.fromkeys(_ACCURACIES, _TOLERANCE)}
            limits: Any = {"A_ub": A, "b_ub": b + more} if len(A) else {}
            found = linprog(cost, **limits, A_eq=E, b_eq=total, bounds=bounds, method="highs", options=options)
            if found.status != _INFEASIBLE:
                break
        if found.status == _UNBOUNDED:
            return None
        if found.status:
            raise UnsolvedError(f"The solver failed on the answers: {found.message}")
        return found


def find_conflicts(polytope: Polytope) -> Iterator[IntArray]:
    """Sets of answers that cannot all hold, none of which can be left out: without any one, the others agree.

    By duality the answers with positive multipliers cannot all hold. They are reduced to a minimal set by leaving out
    one after the other; then the answers of the set that are missed are set aside, and the search goes on without them.
    """
    kept = np.ones(len(polytope.limits), dtype=bool)
    while True:
        present = np.flatnonzero(kept)
        part = _part(polytope, present)
        if part.agrees:
            return
        chosen = present[part.multipliers > 1e-7]
        if _part(polytope, chosen).agrees:  # lost to rounding
            chosen = present
        for answer in chosen.tolist():
            fewer = chosen[chosen != answer]
            if not _part(polytope, fewer).agrees:
                chosen = fewer
        yield chosen
        missed = part.slack[np.searchsorted(present, chosen)]
        kept[chosen[missed >= min(AGREED, missed.max())]] = False


def _part(polytope: Polytope, chosen: IntArray) -> Polytope:
    return Polytope(polytope.rows[chosen], polytope.limits[chosen], polytope.upper, total=polytope.total)
