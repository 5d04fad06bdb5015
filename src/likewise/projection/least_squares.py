"""Anchors, and the values within a metric that are closest to the model's scores of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise._engine import kernel
from likewise._fit_validation import TrainingData
from likewise._progress import progress_bar
from likewise._typing import FloatArray, IntArray
from likewise.exceptions import InvalidInputError
from likewise.kernel.metric import BoundMetric
from likewise.pairs.points import groups_of, splits_of
from likewise.projection.mcshane_whitney import EnvelopeBounds

_MAX_ANCHORS = 5_000
_MAX_ANCHORS_OF_FUNCTION = 2_000  # each person is compared with every anchor

_TOLERANCE = 1e-9
_ROUGH = 0.01  # error of a round's solution, relative to its initial violation: the next round changes it anyway
_MAX_ROUNDS = 200
_MAX_SWEEPS = 20_000
_SWEEPS_AT_ONCE = 50  # sweeps between checks whether to switch to compiled code
_CONSTRAINT_CELLS = 500  # work of a constraint, in values: constraints are visited one by one


@dataclass(frozen=True, eq=False)
class Anchors:
    """Distinct people, each representing all who are equal in the columns of positive weight.

    Attributes
    ----------
    first : ndarray of int, shape (n_anchors,)
        Row of each anchor.
    of_row : ndarray of int, shape (n_people,)
        Anchor of each row; -1 for none.
    weights : ndarray of shape (n_anchors,)
        Total sample weight of the rows of each anchor.
    """

    first: IntArray
    of_row: IntArray
    weights: FloatArray

    @classmethod
    def choose(cls, data: TrainingData, metric: BoundMetric, n_anchors: Any, rng: np.random.Generator) -> Anchors:
        """Take all distinct people of positive weight, or `n_anchors` of them at random, whatever the order of rows."""
        rows, counts = data.people.rows, data.counts
        if metric.has_parts:
            rows = rows[:, metric.matters]
        rows = np.where(np.isnan(rows), np.inf, rows)
        used = np.flatnonzero(counts > 0)
        groups = groups_of(rows[used])
        n = len(groups.first)
        chosen = np.lexsort(rows[used[groups.first]].T[::-1]) if rows.shape[1] else np.arange(n)
        n_chosen = min(n, _MAX_ANCHORS_OF_FUNCTION if splits_of(metric) is None else _MAX_ANCHORS)
        if n_anchors != "auto":
            n_chosen = int(n_anchors)
            if n_chosen > n:
                raise InvalidInputError(
                    f"n_anchors must be at most the number of distinct people in X, {n}; got {n_anchors}. "
                    "'auto' takes all of them, up to 5,000."
                )
        chosen = chosen[np.sort(rng.permutation(n)[:n_chosen])]
        anchor = np.full(n, -1)
        anchor[chosen] = np.arange(n_chosen)
        of_row = np.full(len(rows), -1)
        of_row[used] = anchor[groups.of_row]
        return cls(used[groups.first[chosen]], of_row, _sums(of_row, counts, n_chosen))

    def __len__(self) -> int:
        return len(self.first)

    @property
    def rows(self) -> IntArray:
        """Rows that have an anchor."""
        return np.flatnonzero(self.of_row >= 0)

    def mean(self, values: FloatArray, data: TrainingData) -> FloatArray:
        """Weighted mean per anchor of the values of `rows`."""
        rows = self.rows
        return _sums(self.of_row[rows], data.counts[rows] * values, len(self)) / self.weights


def _sums(of_row: IntArray, amounts: FloatArray, n: int) -> FloatArray:
    there = of_row >= 0
    return np.bincount(of_row[there], weights=amounts[there], minlength=n).astype(np.float64)


def closest_values(
    targets: FloatArray, weights: FloatArray, bounds: Callable[[FloatArray], EnvelopeBounds], *, verbose: bool = False
) -> FloatArray:
    """Minimise ``sum_i weights_i (v_i - targets_i)^2`` under ``|v_i - v_j| <= D_ij`` for all pairs.

    Each round adds the constraints that each value violates the most, until none is violated; constraints that no
    longer bind are dropped (`docs/theory.md` §13). The solution is unique.

    Parameters
    ----------
    targets : ndarray of shape (n_anchors,)
    weights : ndarray of shape (n_anchors,)
        Positive.
    bounds : callable
        From values to their envelopes at the same anchors (`Envelope.at_anchors`).
    verbose : bool, default=False
        Show progress.

    Examples
    --------
    Two people at distance 0.2, with scores of 0.1 and 0.9:

    >>> from likewise.projection.mcshane_whitney import make_envelope
    >>> from likewise.metrics.weighted_lp import WeightedLp
    >>> metric, people = WeightedLp([0.1]).read([[0.0], [2.0]])
    >>> bounds = make_envelope(metric, people).at_anchors(people)
    >>> closest_values(np.array([0.1, 0.9]), np.ones(2), bounds).round(6)
    array([0.4, 0.6])
    """
    n = len(targets)
    weights = weights / weights.max()
    values, duals, distances = targets.copy(), np.empty(0), np.empty(0)
    pairs = np.empty(0, dtype=np.int64)  # i * n + j for the constraint v_i - v_j <= D_ij
    found = bounds(values)
    with progress_bar("Projecting", None, show=verbose) as advance:
        for _ in range(_MAX_ROUNDS):
            violation = float(max((values - found.upper).max(), (found.lower - values).max()))
            if violation <= _TOLERANCE:
                break
            high, low = np.flatnonzero(found.upper_anchor >= 0), np.flatnonzero(found.lower_anchor >= 0)
            above, below = found.upper_anchor[high], found.lower_anchor[low]
            violated = np.concatenate([high * n + above, below * n + low])
            gaps = np.concatenate([found.upper[high] - values[above], values[below] - found.lower[low]])
            violated, first = np.unique(violated, return_index=True)
            new = ~np.isin(violated, pairs)
            pairs, distances = np.append(pairs, violated[new]), np.append(distances, gaps[first][new])
            duals = np.append(duals, np.zeros(int(new.sum())))
            tolerance = max(0.1 * _TOLERANCE, _ROUGH * violation)
            _solve(values, weights, pairs // n, pairs % n, distances, duals, tolerance)
            # Dropping constraints with zero duals leaves the dual objective unchanged, so it never falls.
            held = duals > 0.0
            pairs, distances, duals = pairs[held], distances[held], duals[held]
            found = bounds(values)
            advance(1)
    # Remove violations within the tolerance: both envelopes of the values are within the metric, and so is their mean.
    return np.asarray((found.lower + found.upper) / 2)


def _solve(values: FloatArray, weights: FloatArray, *program: Any) -> None:
    """Hildreth's method, in place; `program` is both ends of the constraints, distances, duals and tolerance."""
    for _ in range(0, _MAX_SWEEPS, _SWEEPS_AT_ONCE):
        hildreth = kernel("projection", "hildreth", _CONSTRAINT_CELLS * _SWEEPS_AT_ONCE * len(program[0]))
        if hildreth(values, weights, *program, _SWEEPS_AT_ONCE):
            return
