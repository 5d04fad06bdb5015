"""What a metric costs at least: the best mean confidence that any model fair under it could reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets

from likewise._typing import FloatArray, IntArray
from likewise.metrics.lp import WeightedLp
from likewise.metrics.tabular import TableMetric
from likewise.pairs.points import People

_TOLERANCE = 1e-7
_MAX_ROUNDS = 500


@dataclass(frozen=True)
class Ceiling:
    """A limit on the mean probability of the true class.

    Attributes
    ----------
    value : float
        No model with ``TV(h(x), h(x')) <= D(x, x')`` on these people has a larger mean of ``h(x)[y]``. Some
        function reaches it, up to the tolerance of the linear program (an excess of 1e-7 per pair).
    n_pairs : int
        Pairs of distinct people, all of them scanned in every round.
    n_rounds, n_constraints : int
        Linear programs solved, and constraints that entered them.
    """

    value: float
    n_pairs: int
    n_rounds: int
    n_constraints: int

    def __float__(self) -> float:
        return self.value


def ceiling(X: Any, y: Any, metric: WeightedLp | TableMetric) -> Ceiling:
    """Best mean confidence that any model fair under `metric` could reach on (`X`, `y`).

    The optimum of ``max mean_i h_i[y_i]`` over class probabilities h with ``TV(h_i, h_j) <= D(x_i, x_j)`` for all
    pairs: a linear program, solved by adding constraints as they are found to be violated. It separates what the
    metric costs from what a model loses on top (`docs/theory.md` §10).

    Covers / does not cover
    -----------------------
    A limit for these people and labels. It is reached by hindsight, knowing the labels: no model need come close.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        For a `TableMetric` a table with the metric's columns.
    y : array-like of shape (n_samples,)
    metric : WeightedLp or TableMetric

    Returns
    -------
    Ceiling
        ``float(result)`` is its value.

    Examples
    --------
    Two people at distance 0.5, of different classes: one of them gets 0.75 at best if the other gets 0.75.

    >>> from likewise import WeightedLp
    >>> ceiling([[0.0], [1.0]], ["no", "yes"], WeightedLp([0.5])).value
    0.75
    """
    from likewise.pairs.scans import worst_partners

    if not isinstance(metric, (WeightedLp, TableMetric)):
        raise TypeError(f"metric must be a WeightedLp or a TableMetric; got {type(metric).__name__}.")
    people = People.under(metric, X)
    scales = people.scales(metric)
    labels = np.asarray(y)
    if labels.shape != (len(people),):
        raise ValueError(f"y must have one label per row of X ({len(people)}); got an array of shape {labels.shape}.")
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    # People at distance 0 have the same probabilities under any fair model: they are one person with many labels.
    groups = people.groups(among=scales > 0)
    tally = np.zeros((len(groups.first), len(classes)))
    np.add.at(tally, (groups.of_row, codes), 1.0)
    columns = np.ascontiguousarray(people.X[groups.first].T)
    n = len(groups.first)

    program = _Program(tally)
    n_rounds = 0
    while True:
        h = program.h
        outputs = np.ascontiguousarray((h[:, 1:] if len(classes) == 2 else h / 2).T)
        partner, excess, _ = worst_partners(columns, outputs, scales, metric.p, 0.0, people.kinds)
        if excess.max() <= _TOLERANCE:
            break
        if n_rounds == _MAX_ROUNDS:
            raise RuntimeError(f"The linear program did not converge in {n_rounds} rounds. Take fewer people.")
        chosen = [np.stack([np.arange(n), each], axis=1)[(each >= 0) & (excess > _TOLERANCE)] for each in partner]
        pairs = np.unique(np.concatenate(chosen), axis=0)
        program.add(pairs, people.distances(scales, metric.p, *groups.first[pairs].T))
        program.solve()
        n_rounds += 1
    value = float((tally * program.h).sum() / len(people))
    return Ceiling(min(1.0, value), n * (n - 1) // 2, n_rounds, program.n_constraints)


class _Program:
    """Probabilities h, one row per person, kept alive in HiGHS while constraints are added."""

    def __init__(self, tally: FloatArray) -> None:
        import highspy

        self.n, self.m = tally.shape
        self.n_constraints = 0
        self.h: FloatArray = np.eye(self.m)[tally.argmax(axis=1)]  # the optimum without constraints
        self.solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self.solver.silent()
        n_columns = self.n * self.m
        self.solver.addVars(n_columns, np.zeros(n_columns), np.ones(n_columns))
        self.solver.changeColsCost(n_columns, np.arange(n_columns, dtype=np.int32), -tally.ravel())
        self._add_rows(np.arange(n_columns).reshape(self.n, self.m), np.ones((self.n, self.m)), 1.0, 1.0)

    def add(self, pairs: IntArray, distances: FloatArray) -> None:
        """Add, for each pair, the set A of classes on which it exceeds: ``h_a(A) - h_b(A) <= D``."""
        a, b = pairs.T
        rises = self.h[a] > self.h[b]  # TV = h_a(A) - h_b(A) for this A
        columns = np.concatenate(
            [a[:, None] * self.m + np.arange(self.m), b[:, None] * self.m + np.arange(self.m)], axis=1
        )
        values = np.concatenate([rises, -1.0 * rises], axis=1)
        self._add_rows(columns, values, -np.inf, distances)
        self.n_constraints += len(pairs)

    def solve(self) -> None:
        """Re-solve from the last basis."""
        import highspy

        self.solver.run()
        status = self.solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"The linear program could not be solved ({status.name}).")
        self.h = np.array(self.solver.getSolution().col_value).reshape(self.n, self.m)

    def _add_rows(self, columns: npt.NDArray[Any], values: npt.NDArray[Any], low: Any, high: Any) -> None:
        n = len(columns)
        used = values != 0
        starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))[:-1]]).astype(np.int32)
        self.solver.addRows(
            n,
            np.broadcast_to(low, n).astype(np.float64),
            np.broadcast_to(high, n).astype(np.float64),
            int(used.sum()),
            starts,
            columns[used].astype(np.int32),
            values[used].astype(np.float64),
        )
