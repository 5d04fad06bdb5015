"""The least that a metric costs: the best mean confidence of any model that respects it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length

from likewise._fit_validation import check_labels, check_outcomes
from likewise._typing import FloatArray, IntArray
from likewise._validation import checking
from likewise.exceptions import InvalidInputError
from likewise.kernel.distance import NULLABLE
from likewise.metrics.base import Metric, check_metric
from likewise.pairs.cutting_planes import IncrementalProgram, PairProgram
from likewise.pairs.points import Points

_TOLERANCE = 1e-7
_MAX_ROUNDS = 500
_MOST_SCANNED = 2000  # people, whose distances fit into a matrix


@dataclass(frozen=True)
class Ceiling:
    """Result of `ceiling`: a limit on the mean probability of the true class.

    Attributes
    ----------
    value : float
        No model with ``TV(h(x), h(x')) <= D(x, x')`` on these people has a larger mean of ``h(x)[y]``. Some
        function reaches it, up to the tolerance of the linear program (an excess of 1e-7 per pair).
    n_pairs : int
        Pairs of distinct people; no pair of them violates the solution.
    n_rounds, n_constraints : int
        Programs solved, those for parts of the people included, and constraints in the last one.
    """

    value: float
    n_pairs: int
    n_rounds: int
    n_constraints: int

    def __float__(self) -> float:
        return self.value


def ceiling(X: Any, y: Any, metric: Metric) -> Ceiling:
    """Best mean confidence that any model within `metric` could reach on (`X`, `y`).

    The optimum of ``max mean_i h_i[y_i]`` over class probabilities h with ``TV(h_i, h_j) <= D(x_i, x_j)`` for all
    pairs: a linear program, solved by adding constraints as they are found to be violated; for two classes it is the
    dual of a transport problem, which is much faster unless numbers are missing. It separates what the metric costs
    from what a model loses on top (`docs/theory.md` §10).

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        For a metric of tables a table with the metric's columns.
    y : array-like of shape (n_samples,)
    metric : Metric

    Returns
    -------
    Ceiling
        ``float(result)`` is its value.

    Notes
    -----
    A limit for these people and labels, reached only by knowing the labels: models may stay far below.

    Examples
    --------
    Two people at distance 0.5, of different classes: one of them gets 0.75 at best if the other gets 0.75.

    >>> from likewise import WeightedLp
    >>> ceiling([[0.0], [1.0]], ["no", "yes"], WeightedLp([0.5])).value
    0.75
    """
    metric = check_metric(metric)
    weights, people = metric.read(X)
    points = Points.of(people, weights)
    labels = check_outcomes(y, numeric=False)
    with checking():
        check_consistent_length(people.rows, labels)
    check_labels(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    # People at distance 0 have the same probabilities: they are one person with many labels.
    groups = points.groups(among=points.scales > 0)
    tally = np.zeros((len(groups.first), len(classes)))
    np.add.at(tally, (groups.of_row, codes), 1.0)
    distinct = points.take(groups.first)

    # Only numbers that may be blank, or special codes, break the inequality.
    triangle = not (weights.scales[points.kinds[: points.n_columns] == NULLABLE] > 0).any()
    total, n_rounds, n_constraints = largest_confidence(distinct, tally, triangle=triangle)
    n = len(distinct)
    return Ceiling(min(1.0, total / len(points)), n * (n - 1) // 2, n_rounds, n_constraints)


def _two_classes(points: Points, tally: FloatArray) -> tuple[float, int, int]:
    """Largest ``sum_i tally_i0 (1 - h_i) + tally_i1 h_i``; where both counts are equal, h_i does not matter."""
    from likewise.pairs.transport import potentials

    mass = tally[:, 1] - tally[:, 0]
    some = mass != 0
    best = potentials(points.take(np.flatnonzero(some)).columns_in(1.0), mass[some])
    return float(tally[:, 0].sum() + mass[some] @ best.h), best.n_rounds, best.n_constraints


def largest_confidence(points: Points, tally: FloatArray, *, triangle: bool = True) -> tuple[float, int, int]:
    """Largest sum of ``tally * h`` over probabilities within the metric, and the rounds and constraints it took.

    No pair exceeds the metric by more than 1e-7. Of two classes it is a transport problem, if the distances obey the
    triangle inequality; then by no more than 1e-9.
    """
    if tally.shape[1] == 2 and triangle and points.splits is not None:
        return _two_classes(points, tally)
    if points.splits is None and len(points) > _MOST_SCANNED:
        raise InvalidInputError(
            f"X must hold at most {_MOST_SCANNED:,} distinct people here; got {len(points):,}. The metric's distances "
            "between categories are not a sum of mismatches, or of too many categories to find one, so every pair has "
            "to be compared. Draw some of the rows, or use groups."
        )
    program = Confidence(points, tally)
    n_rounds = program.solve_with_cuts(_MAX_ROUNDS, "Take fewer people.")
    return float((tally * program.h).sum()), n_rounds, program.n_constraints


class Confidence(PairProgram):
    """Probabilities h, one row per person, with the largest sum of ``tally * h``."""

    def __init__(self, points: Points, tally: FloatArray) -> None:
        self.n, self.m = tally.shape
        metric: Any = points.metric
        self.metric, self.rows, self.n_constraints = metric, points.people.rows, 0
        self.h: FloatArray = np.eye(self.m)[tally.argmax(axis=1)]  # the optimum without constraints
        self._columns: Any = None if points.splits is None else points.columns_in(1.0)
        self._distances = metric.pairwise(self.rows, self.rows) if self._columns is None else None
        self._program = IncrementalProgram(-tally.ravel(), np.zeros(tally.size), np.ones(tally.size))
        self._program.add_rows(np.arange(tally.size).reshape(tally.shape), np.ones(tally.shape), 1.0, 1.0)

    def violated(self) -> IntArray:
        """For each person, the partners with the largest excess and with the smallest ratio."""
        outputs = np.ascontiguousarray((self.h[:, 1:] if self.m == 2 else self.h / 2).T)
        if self._distances is not None:
            return _worst_pairs(outputs, self._distances)
        from likewise.pairs.kernels import worst_partners

        partner, excess, _ = worst_partners(self._columns, outputs)
        everyone = np.arange(self.n)
        chosen = [np.stack([everyone, each], axis=1)[(each >= 0) & (excess > _TOLERANCE)] for each in partner]
        return np.unique(np.concatenate(chosen), axis=0)

    def add(self, pairs: IntArray) -> int:
        """Add, for each pair, the set A of classes on which it exceeds: ``h_a(A) - h_b(A) <= D``."""
        a, b = pairs.T
        rises = self.h[a] > self.h[b]  # TV = h_a(A) - h_b(A) for this A
        classes = np.arange(self.m)
        columns = np.concatenate([a[:, None] * self.m + classes, b[:, None] * self.m + classes], axis=1)
        distances = self.metric.distances(self.rows[a], self.rows[b])
        self._program.add_rows(columns, np.concatenate([rises, -1.0 * rises], axis=1), -np.inf, distances)
        self.n_constraints += len(pairs)
        return len(pairs)

    def solve(self) -> None:
        """Solve for the probabilities."""
        self.h = self._program.solve().reshape(self.n, self.m)


def _worst_pairs(outputs: FloatArray, distances: FloatArray) -> IntArray:
    """For each person, the partner with the largest excess, if it is above the tolerance."""
    excess = -distances
    for output in outputs:
        excess += np.abs(output[:, None] - output)
    partner, everyone = excess.argmax(axis=1), np.arange(len(excess))
    pairs = np.stack([everyone, partner], axis=1)
    return np.unique(pairs[excess[everyone, partner] > _TOLERANCE], axis=0)
