"""Linear programs over pairs of people, of which only those that matter enter the program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from likewise._typing import FloatArray, IntArray
from likewise.errors import UnsolvedError

# How to solve, and what to try if that fails for rounding: an option, its value, and its usual value.
_WAYS: tuple[tuple[str, Any, Any], ...] = (
    ("", None, None),
    ("presolve", "off", "choose"),
    ("simplex_strategy", 4, 1),  # primal in place of dual
    ("solver", "ipm", "choose"),
)


class LiveProgram:
    """``min cost.v`` under rows that are added between solves; each solve starts from the last basis.

    Parameters
    ----------
    cost, low, high : ndarray of shape (n_variables,)
        Costs and limits of the variables.
    tolerance : float
        By how much a solution may miss a row.
    """

    def __init__(self, cost: FloatArray, low: FloatArray, high: FloatArray, *, tolerance: float = 1e-7) -> None:
        import highspy

        self.n_rows = 0
        self._solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self._solver.silent()
        for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self._solver.setOptionValue(name, tolerance)
        self._solver.setOptionValue("small_matrix_value", 1e-12)
        n = len(cost)
        self._solver.addVars(n, low, high)
        self._solver.changeColsCost(n, np.arange(n, dtype=np.int32), cost)

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

    def solve(self) -> FloatArray:
        """Return the values of the variables."""
        import highspy

        for name, value, usual in _WAYS:
            if name:
                self._solver.clearSolver()
                self._solver.setOptionValue(name, value)
            self._solver.run()
            status = self._solver.getModelStatus()
            if name:
                self._solver.setOptionValue(name, usual)
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
        """Pairs that the present solution violates, not necessarily all; none only if there are none. Shape (n, 2)."""

    @abstractmethod
    def add(self, pairs: IntArray) -> int:
        """Add the constraints of pairs; return how many were new."""

    @abstractmethod
    def solve(self) -> None:
        """Find the best solution under the constraints added so far."""

    def solve_with_cuts(self, most_rounds: int, cure: str) -> int:
        """Solve, add violated pairs, and start over until there are none; return how often it was solved."""
        n_rounds = 0
        while len(pairs := self.violated()):
            if n_rounds == most_rounds or self.add(pairs) == 0:
                raise UnsolvedError(f"The linear program did not converge after {n_rounds} rounds. {cure}")
            try:
                self.solve()
            except RuntimeError as error:
                raise UnsolvedError(f"After {n_rounds} rounds, {error}. {cure}") from None
            n_rounds += 1
        return n_rounds
