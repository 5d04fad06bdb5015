"""The linear program behind minimal metrics."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.exceptions import InvalidInputError, UnsolvedError
from likewise.kernel.distance import CODE
from likewise.pairs.cutting_planes import IncrementalProgram, PairProgram, mean_powers
from likewise.pairs.points import listed
from likewise.reveal.active_set import ROUNDING, SHORTFALL, ActiveSetSearch, Cuts, DistinctPeople

_COLUMNS_SHOWN = 6  # of a pair, in an error


def check_possible(people: DistinctPeople, cuts: Cuts, high: FloatArray, p: float) -> None:
    """Raise if some pair violates even the largest weights allowed.

    Distances increase with every weight, so a metric exists if and only if no pair violates the upper limits; a pair
    that does differs in bounded features alone.
    """
    bounded = ~np.isinf(high)
    scaled = high[bounded] ** (1 / p) * cuts.gaps[:, bounded]
    largest = scaled.max(axis=1, initial=1e-300)
    farthest = largest * ((scaled / largest[:, None]) ** p).sum(axis=1) ** (1 / p)
    short = farthest < (1 - SHORTFALL) * (cuts.differences - ROUNDING)
    worst = np.flatnonzero(short & ~(cuts.gaps[:, ~bounded] > 0).any(axis=1))
    if len(worst):
        rank = np.lexsort((*cuts.pairs[worst].T[::-1], -cuts.differences[worst]))
        raise InvalidInputError(_impossible(people, cuts.pairs[worst[rank]], cuts.differences[worst[rank]]))


def _impossible(people: DistinctPeople, pairs: IntArray, differences: FloatArray) -> str:
    rows = np.unique(pairs[:3])
    points, places = people.points_at(rows), np.searchsorted(rows, pairs[:3])
    lines = [
        f"rows {a} and {b} (outputs differ by {people.unit * gap:.4g}; "
        f"{listed(points.differences(i, j), _COLUMNS_SHOWN)})"
        for (a, b), (i, j), gap in zip(pairs, places, differences, strict=False)
    ]
    hint = "Raise these weights, or audit the model against the metric you have in mind."
    if people.shapes.columns:
        hint = "Raise these weights, or declare the categories further apart."
    if (people.shapes.kinds == CODE).any() and people.unit > 1:
        hint = "Weights of categories are at most 1: give output_range=(lowest, highest) to have shares of its width."
    limits = "fixed, upper and the shapes of categories" if people.shapes.columns else "fixed and upper"
    return (
        f"{limits} leave no metric: some pairs differ only in bounded features, whose weights are too small for "
        f"the difference of outputs. Worst of those found ({len(pairs):,}): {'; '.join(lines)}. {hint}"
    )


_PER_ROUND = 500
_COST_SAMPLE = 2**17  # most people used to compute the cost of a weight


MAX_ROUNDS = 200
NO_PAIR: IntArray = np.array([-1, -1])


class LeftOut(NamedTuple):
    """What becomes of a metric if one weight is to be 0.

    Attributes
    ----------
    cost : float
        By how much the mean of ``D^p`` rises; infinite if no metric has the weight at 0, and NaN if it is not known.
    least : float
        Smallest weight that `pair` allows in any metric: its rows differ in no other column that could account for
        their difference of outputs.
    pair : ndarray of shape (2,)
        Rows; -1 if there are none.
    """

    cost: float
    least: float
    pair: IntArray


class MinimalWeights(PairProgram):
    """``min c.w`` under ``sum_i w_i gap_i^p >= difference^p`` per pair.

    Variables are ``u_i = w_i scale_i^p``, and each pair's row is divided by its right-hand side, so that features in
    any unit and differences of any size look alike to the solver. Pairs that may matter are kept in a pool; those that
    the current weights violate enter the program.
    """

    def __init__(self, people: DistinctPeople, low: FloatArray, high: FloatArray, p: float) -> None:
        self.people, self.p, self.low, self.high = people, p, low, high
        self.search, self.shapes = ActiveSetSearch(people, p), people.shapes
        some = people.subsample(min(1.0, _COST_SAMPLE / people.n_people))
        self._largest = float(np.ptp(some.outputs, axis=0).sum()) if len(some.outputs) else 0.0
        kinds = self.shapes.point_kinds
        columns = np.ascontiguousarray(some.X[:, : len(kinds)].T)
        self.scale = np.ones(len(low))
        self.scale[: len(kinds)] = [1.0 if kind == CODE else _spread(x) for x, kind in zip(columns, kinds, strict=True)]
        own = mean_powers(columns / self.scale[: len(kinds), None], p, kinds)
        cost = self.shapes.mean_gaps(own, some.X)
        self._unit_cost = float(cost[cost > 0].min(initial=np.inf))
        # Any positive costs give a minimal metric; beyond this range, only for large p, the solver loses digits.
        with np.errstate(over="ignore", under="ignore"):
            cost = np.clip(cost / self._unit_cost, 1.0, 1e8)
            power = self.scale**p
        self.weights = low.copy()
        if not ((power > 0) & (power < np.inf)).all():
            raise InvalidInputError(
                f"p must be smaller for columns of this size: their powers overflow; got {p:g}. Use "
                "p below 50, or other units."
            )
        lower, upper = self._limits_of_u()
        self._program = IncrementalProgram(cost, lower, upper, tolerance=1e-10)
        for within, across in self.shapes.within.items():
            self._program.add_rows(np.array([across, within]), np.array([[1.0, -1.0]]), 0.0)
        self._n_first = self._program.n_rows  # rows that are not pairs
        self._u, self._cost = lower, cost
        self._rows: list[int] = []  # positions in the pool
        self._enlarged: list[float] = []  # factors on these rows
        self._shortfall = 0.0  # accepted shortfall of distances
        self._holders: list[int] = []  # positions in the pool that limited `_lower`
        self._pool: IntArray = np.empty((0, 2), dtype=np.int64)
        self._values = np.empty((0, len(cost)))
        self._differences = np.empty(0)

    @property
    def n_constraints(self) -> int:
        """Pairs in the program."""
        return len(self._rows)

    def violated(self) -> IntArray:
        """The worst pairs by excess and by ratio, at most one of each per person, as positions in the pool."""
        while True:
            ratios = (self._values @ self._u) ** (1 / self.p)
            short = np.flatnonzero(ratios < 1 - SHORTFALL)
            if len(short):
                excess = (1 - ratios[short]) * self._differences[short]
                return np.union1d(self._worst(short, -excess), self._worst(short, ratios[short]))
            self._lower()
            scales = self.shapes.scales(self.weights) ** (1 / self.p)
            if self.search.covers(scales):
                return short
            known = len(self._pool)
            cuts = self.search.next_cuts(scales, ratios)
            self._extend(cuts)
            if len(self._pool) == known and not cuts.complete:
                raise UnsolvedError(
                    "The search for pairs did not converge because of rounding. Round the predictions, "
                    "or rescale features whose values are extremely large."
                )

    def _worst(self, positions: IntArray, order_by: FloatArray) -> IntArray:
        ranked = positions[np.argsort(order_by, kind="stable")]
        once = np.unique(self._pool[ranked, 0], return_index=True)[1]
        return ranked[np.sort(once)[:_PER_ROUND]]

    def _extend(self, cuts: Cuts) -> None:
        """Add new pairs to the pool."""
        base = 1 + max(cuts.pairs.max(initial=0), self._pool.max(initial=0))
        keys, first = np.unique(cuts.pairs @ [base, 1], return_index=True)
        new = first[~np.isin(keys, self._pool @ [base, 1])]
        cuts = Cuts(cuts.pairs[new], cuts.gaps[new], cuts.differences[new], cuts.complete)
        needed = cuts.differences - ROUNDING
        with np.errstate(over="ignore", under="ignore"):
            values = np.minimum((cuts.gaps / self.scale / needed[:, None]) ** self.p, 1e200)
        self._pool = np.concatenate([self._pool, cuts.pairs])
        self._values = np.concatenate([self._values, values])
        self._differences = np.concatenate([self._differences, cuts.differences])
        check_possible(self.people, cuts, self.high, self.p)
        if not values.any(axis=1).all():
            raise UnsolvedError(
                "Two people with different predictions differ by too little, compared to the spread of their columns. "
                "Round the columns, or rescale those whose values are extremely large."
            )

    def add(self, positions: IntArray) -> int:
        """Add pairs that are not yet in the program; return how many."""
        new = np.setdiff1d(positions, self._rows)
        if len(new):
            # Beyond 1e10 the smallest weight suffices; the cap errs towards larger weights.
            values = np.minimum(self._values[new], 1e10)
            enlarge = 1 / np.minimum(values.max(axis=1), 1.0)  # the solver drops tiny coefficients
            limits = enlarge * self._limits(new)
            self._program.add_rows(np.arange(len(self.scale)), values * enlarge[:, None], limits)
            self._rows += new.tolist()
            self._enlarged += enlarge.tolist()
        return len(new)

    def solve(self) -> None:
        """Solve for the weights."""
        self._set(np.maximum(self._program.solve(), 0.0))

    def _set(self, u: FloatArray) -> None:
        self._u = u
        self.weights = np.clip(u / self.scale**self.p, self.low, self.high)

    def _lower(self) -> None:
        """Lower each weight in turn as far as the pool allows.

        This has no effect if the solver was exact. For large p, a weight may be below the solver's tolerance.
        """
        u, least = self._u.copy(), self.low * self.scale**self.p
        self._holders = []
        for i in np.flatnonzero(u > least) if len(self._pool) else ():
            own, others = self._values[:, i], np.where(np.arange(len(u)) == i, 0.0, u)
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                needed = np.where(own > 0, ((1 - SHORTFALL) ** self.p - self._values @ others) / own, 0.0)
            most = int(needed.argmax())
            allowed = max(
                float(least[i]), float(needed[most]), *(u[k] for k, w in self.shapes.within.items() if w == i)
            )
            if allowed < u[i] * (1 - 1e-7):
                u[i] = allowed
                self._holders.append(most)
        if self._holders:
            self._set(u)

    def _limits(self, positions: Any) -> FloatArray:
        """Right-hand sides of pairs, as shares of ``difference^p``."""
        needed = self._differences[positions] - ROUNDING
        return np.asarray((np.maximum(needed - self._shortfall, 0.0) / needed) ** self.p)

    def leave_out(self, i: int, *, keep: bool = False) -> LeftOut:
        """Solve for the smallest metric with a weight at 0; it becomes the solution if there is one, and if `keep`.

        Those of two categories of one group are 0 with those of two groups. No metric has the weight at 0 if, and only
        if, some pair violates the upper limits of all others, since distances increase with every weight.
        """
        before, cost = (self.high, self._u, self.weights), float(self._cost @ self._u)
        zeroed = [i, *(within for within, across in self.shapes.within.items() if across == i)]
        self.high = self.high.copy()
        self.high[zeroed] = 0.0
        self._program.set_limits(*self._limits_of_u())
        known = True
        try:
            if not self._needed(zeroed)[0]:
                self.solve()
                self.solve_with_cuts(MAX_ROUNDS, "")
        except InvalidInputError:  # a pair that the search has found forbids it
            pass
        except UnsolvedError:  # for large p
            known = False
        least, pair = self._needed(zeroed) if known else (0.0, NO_PAIR)
        rise = max(0.0, self._unit_cost * (float(self._cost @ self._u) - cost)) if known else np.nan
        if not (keep and known and least == 0):
            self.high, self._u, self.weights = before
            self._program.set_limits(*self._limits_of_u())
        return LeftOut(np.inf if least else rise, least, pair)

    def _needed(self, zeroed: list[int]) -> tuple[float, IntArray]:
        """Smallest weight that some pair allows, whatever others weigh, and the worst such pair; 0 if there is none."""
        bounded = ~np.isinf(self.high)
        reached = self._values[:, bounded] @ (self.high * self.scale**self.p)[bounded]
        own = self._values[:, zeroed].sum(axis=1)
        alone = (reached < (1 - SHORTFALL) ** self.p) & (own > 0) & ~(self._values[:, ~bounded] > 0).any(axis=1)
        if not alone.any():
            return 0.0, NO_PAIR
        needed = np.where(alone, 1 - reached, 0.0) / np.where(alone, own, 1.0)
        worst = int(needed.argmax())
        return float(needed[worst] / self.scale[zeroed[0]] ** self.p), self._pool[worst]

    def _limits_of_u(self) -> tuple[FloatArray, FloatArray]:
        power = self.scale**self.p
        lower, upper = self.low * power, self.high * power
        upper[~self.people.varies] = lower[~self.people.varies]  # no pair differs here
        return lower, upper

    def ranges(self, tolerance: float) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest value of each weight over all solutions that are as good within a tolerance.

        They cost at most ``1 + tolerance`` times the optimum, and no pair is short by more than this share of the
        largest difference of outputs. Two linear programs per weight, under all pairs of the pool; other pairs could
        only narrow a range. Call it last.
        """
        power, weights, optimum = self.scale**self.p, self.weights, float(self._cost @ self._u)
        if optimum == 0:
            return weights, weights
        self._shortfall = tolerance * self._largest
        limits = np.array(self._enlarged) * self._limits(np.array(self._rows, dtype=np.int64))
        self._program.set_lower_limits(limits, self._n_first)
        columns = np.arange(len(power))
        self._program.add_rows(columns, (self._cost / optimum)[None], -np.inf, 1 + tolerance)
        ends = np.stack([weights, weights])
        for i in np.flatnonzero(self.people.varies & (self.low < self.high)):
            for side, sign in enumerate((1.0, -1.0)):
                try:
                    ends[side, i] = self._extreme(sign * (columns == i))[i] / power[i]
                except UnsolvedError:  # for large p; the range is then unknown
                    ends[side, i] = (self.low[i], self.high[i])[side]
        low, high = np.minimum(ends[0], weights), np.maximum(ends[1], weights)
        return np.maximum(low, self.low), np.minimum(high, self.high)

    def _extreme(self, goal: FloatArray) -> FloatArray:
        """The solution, as good as the optimum, that minimises a goal under all pairs of the pool."""
        self._program.set_cost(goal)
        limits = self._limits(np.arange(len(self._pool)))
        while True:
            u = np.maximum(self._program.solve(), 0.0)
            reached = self._values @ u
            short = np.flatnonzero(reached < limits - 1e-7)
            if not len(short) or self.add(self._worst(short, reached[short] - limits[short])) == 0:
                return u

    def active(self) -> tuple[IntArray, FloatArray]:
        """Pairs whose constraints define the solution, as rows of X, and their differences in units."""
        binding = self._program.binding() - self._n_first
        rows = np.array(self._rows, dtype=np.int64)[binding[binding >= 0]]
        rows = np.union1d(rows, np.array(self._holders, dtype=np.int64))
        tight: IntArray = rows[self._values[rows] @ self._u < (1 + 1e-6) ** self.p]
        return self._pool[tight], self._differences[tight]


def _spread(values: FloatArray) -> float:
    """Standard deviation of a column; 1 if it does not vary, or by less than 1e-200."""
    values = values[~np.isnan(values)]
    spread = float(values.std()) if len(values) and np.ptp(values) > 0 else 1.0
    return spread if spread > 1e-200 else 1.0
