"""Linear programs with a constraint per pair of people, solved by adding violated constraints (cutting planes)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from likewise._typing import FloatArray, IntArray
from likewise.exceptions import UnsolvedError
from likewise.kernel.distance import CODE, Kinds

_MAX_POWER = 16  # larger powers are extrapolated from this one


def mean_powers(X: FloatArray, p: float, kinds: Kinds) -> FloatArray:
    """Mean over all pairs of ``gap_i^p`` per column, in O(n log n); `X` has shape (n_columns, n_people).

    Exact for codes and for whole p up to 16. Between whole numbers the logarithm of the mean is interpolated, and
    beyond 16 the norm ``mean(gap^16)^(1/16)`` stands for that of p. The result is positive where a column varies.
    """
    n = X.shape[1]
    return np.array([_of_codes(x) if kind == CODE else _of_numbers(x, p, n) for x, kind in zip(X, kinds, strict=True)])


def _of_codes(x: FloatArray) -> float:
    """Share of pairs with different codes."""
    n = len(x)
    count = np.unique(x, return_counts=True)[1].astype(np.float64)
    return float(1 - (count * (count - 1)).sum() / (n * (n - 1)))


def _of_numbers(x: FloatArray, p: float, n: int) -> float:
    """Mean of ``gap^p``; gaps are 0 where a number is missing."""
    x = np.sort(x[~np.isnan(x)])
    if not len(x) or x[0] == x[-1]:
        return 0.0
    x = x - x.mean()
    size = np.abs(x).max()
    below = min(int(p), _MAX_POWER)
    mean = _whole_power(x / size, below, n)
    if p > _MAX_POWER:  # by logarithms: powers of a large p leave the floating point
        return float(np.exp(np.clip(p * (np.log(mean) / _MAX_POWER + np.log(size)), -690, 690)))
    if p > below:
        mean = mean ** (below + 1 - p) * _whole_power(x / size, below + 1, n) ** (p - below)
    with np.errstate(over="ignore"):
        return float(min(mean * size**p, 1e300))


def _whole_power(x: FloatArray, k: int, n: int) -> float:
    """Sum over pairs of sorted numbers of ``(x_j - x_i)^k``, by the binomial theorem and running sums over i < j."""
    total = np.zeros(len(x))
    for m in range(k + 1):
        before = np.cumsum(x**m) - x**m
        total += comb(k, m) * (-1) ** m * x ** (k - m) * before
    return float(total.sum() / (n * (n - 1) / 2))


# Solver options to try in turn if a solve fails for rounding: name, value, and default.
_SOLVER_OPTIONS: tuple[tuple[str, Any, Any], ...] = (
    ("", None, None),
    ("presolve", "off", "choose"),
    ("simplex_strategy", 4, 1),  # primal in place of dual
    ("solver", "ipm", "choose"),
)


class IncrementalProgram:
    """``min cost.v`` under rows that are added between solves; each solve is warm-started from the last basis.

    Parameters
    ----------
    cost, low, high : ndarray of shape (n_variables,)
        Costs and limits of the variables.
    tolerance : float
        Largest violation of a row that is accepted.
    """

    def __init__(self, cost: FloatArray, low: FloatArray, high: FloatArray, *, tolerance: float = 1e-7) -> None:
        import highspy

        self.n_rows = 0
        self._solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._solver.silent()
        for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self._solver.setOptionValue(name, tolerance)
        self._solver.setOptionValue("small_matrix_value", 1e-12)
        self._solver.addVars(len(cost), low, high)
        self.set_cost(cost)

    def set_cost(self, cost: FloatArray) -> None:
        """Minimise another cost in the next solve."""
        self._solver.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), cost)

    def set_limits(self, low: FloatArray, high: FloatArray) -> None:
        """Replace the limits of the variables."""
        self._solver.changeColsBounds(len(low), np.arange(len(low), dtype=np.int32), low, high)

    def add_rows(self, columns: npt.NDArray[Any], values: FloatArray, low: Any, high: Any = np.inf) -> None:
        """Add ``low <= sum_k values[r, k] v[columns[r, k]] <= high`` for each row r."""
        n, used = len(values), values != 0
        starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))[:-1]]).astype(np.int32)
        self._solver.addRows(
            n,
            np.broadcast_to(low, n).astype(np.float64),
            np.broadcast_to(high, n).astype(np.float64),
            int(used.sum()),
            starts,
            np.broadcast_to(columns, values.shape)[used].astype(np.int32),
            values[used],
        )
        self.n_rows += n

    def set_lower_limits(self, low: FloatArray, first: int = 0) -> None:
        """Replace the lower limits of the rows from `first` on."""
        for row, limit in enumerate(low.tolist(), start=first):
            self._solver.changeRowBounds(row, limit, np.inf)

    def solve(self) -> FloatArray:
        """Return the values of the variables."""
        import highspy

        for name, value, default in _SOLVER_OPTIONS:
            if name:
                self._solver.clearSolver()
                self._solver.setOptionValue(name, value)
            self._solver.run()
            status = self._solver.getModelStatus()
            if name:
                self._solver.setOptionValue(name, default)
            if status == highspy.HighsModelStatus.kOptimal:
                return np.array(self._solver.getSolution().col_value)
        raise UnsolvedError(f"the linear program could not be solved ({status.name})")

    def binding(self) -> IntArray:
        """Rows that define the solution by their lower limits: the non-basic ones of the simplex."""
        import highspy

        status = self._solver.getBasis().row_status
        return np.flatnonzero([each == highspy.HighsBasisStatus.kLower for each in status])


class PairProgram(ABC):
    """A linear program with a constraint for every pair of people.

    The program with some of the pairs is a relaxation; when its solution violates no pair at all, it solves the whole.
    """

    @abstractmethod
    def violated(self) -> IntArray:
        """Some pairs that the current solution violates, shape (n, 2); empty only if it violates none."""

    @abstractmethod
    def add(self, pairs: IntArray) -> int:
        """Add the constraints of pairs; return how many were new."""

    @abstractmethod
    def solve(self) -> None:
        """Solve under the constraints added so far."""

    def solve_with_cuts(self, max_rounds: int, hint: str) -> int:
        """Solve and add violated pairs until there are none; return the number of solves."""
        n_rounds = 0
        while len(pairs := self.violated()):
            if n_rounds == max_rounds or self.add(pairs) == 0:
                raise UnsolvedError(f"The linear program did not converge after {n_rounds} rounds. {hint}")
            try:
                self.solve()
            except RuntimeError as error:
                raise UnsolvedError(f"After {n_rounds} rounds, {error}. {hint}") from None
            n_rounds += 1
        return n_rounds
