"""Shapes and weights as variables of one convex problem.

    minimise over x and w     loss(x) + roughness(x) + price * sum_i c_i w_i
    subject to                |rise of f_i over a gap d| <= u w_i d,   |f_i - f_i(missing)| <= u m_i,
                              rise of f_i >= 0 (or <= 0) where f_i is monotone,
                              |g_c(a) - g_c(b)| <= u w_c d_c(a, b),   lower <= w <= upper

with u the unit of the link, ``d_c`` the share of the weight between two categories (1 without groups or distances),
``c_i`` the mean difference of two people in column i, and ``m_i`` the weight of a blank,
which is an ordinary weight. The sum is the mean distance of two people. `docs/theory.md` §11 has the proofs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from likewise._parallel import single_threaded_blas
from likewise._typing import BoolArray, FloatArray
from likewise.additive.binning import Part
from likewise.additive.design_matrix import Layout
from likewise.additive.objective import Objective
from likewise.additive.qp import Limits, minimise_quadratic
from likewise.kernel.metric import BoundMetric

_MAX_STEPS = 100
_RARE = 0.02  # least mean distance due to the blanks of a column at a weight of 1
_GENTLE = 1e-3  # share of its weight that a monotone shape uses at the start, so that its blank can be near all of it
_ROUGH = 1e-3  # error of a step, relative to the gain of the step before it


@dataclass(frozen=True, eq=False)
class Costs:
    """What a unit of each weight adds to the mean distance of two people.

    Attributes
    ----------
    weights : ndarray of shape (n_columns,)
        Mean difference of two people who have the number, counted 0 for others; mean share of the weight between their
        categories, which is the probability of two different ones where all are equally far apart.
    missing : ndarray of shape (n_columns,)
        Probability that exactly one of two people has the number.
    """

    weights: FloatArray
    missing: FloatArray

    @classmethod
    def of(
        cls, rows: FloatArray, shares: FloatArray, is_number: BoolArray, tables: Mapping[int, FloatArray] | None = None
    ) -> Costs:
        """From coded people and what they count, which adds up to 1; `tables` are those of `BoundMetric`.

        Examples
        --------
        >>> rows = np.array([[0.0, 0.0], [2.0, 1.0], [np.nan, 1.0], [4.0, 2.0]])
        >>> costs = Costs.of(rows, np.full(4, 0.25), np.array([True, False]))
        >>> costs.weights, costs.missing  # |0 - 2|, |0 - 4| and |2 - 4|, each for two of 16 pairs
        (array([1.   , 0.625]), array([0.375, 0.   ]))
        """
        found, missing = np.zeros(len(is_number)), np.zeros(len(is_number))
        for i, number in enumerate(is_number):
            values = rows[:, i]
            if not number:
                held = np.bincount(values.astype(np.int64), shares)
                found[i] = 1 - (held**2).sum()
                if tables and i in tables:
                    found[i] = held @ tables[i][: len(held), : len(held)] @ held
                continue
            there = ~np.isnan(values)
            order = np.argsort(values[there], kind="stable")
            sorted_values, below = values[there][order], np.cumsum(shares[there][order])
            present = float(below[-1]) if len(below) else 0.0
            # The probability that a gap lies between two people is twice the product of the shares below and above it.
            found[i] = 2 * float((below[:-1] * (present - below[:-1]) * np.diff(sorted_values)).sum())
            missing[i] = 2 * present * (1 - present) if present < 1 - 1e-12 else 0.0
        return cls(found, missing)

    def mean_distance(self, columns: BoundMetric) -> float:
        """Of two people drawn at random, under weights with p = 1."""
        return float(columns.scales @ self.weights + np.nan_to_num(columns.missing) @ self.missing)


@dataclass(frozen=True, eq=False)
class WeightBounds:
    """What weights may be: ``lower <= w <= upper``; equal ones are fixed.

    Attributes
    ----------
    lower, upper : ndarray of shape (n_columns,)
    """

    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, eq=False)
class Weights:
    """A designed metric: weights of columns, and of blanks where a column has any."""

    columns: FloatArray
    missing: FloatArray


@dataclass(frozen=True, eq=False)
class Solution:
    """An optimum: variables of the shapes, weights, and the objective without the price of the weights."""

    x: FloatArray
    v: FloatArray
    value: float


@dataclass(frozen=True, eq=False)
class JointProblem:
    """The problem above, for any price.

    Weights are scaled by their mean distance, ``v = c w``, so that all are of similar magnitude.

    Attributes
    ----------
    objective : Objective
        Loss and roughness of the shapes; the limits of its layout are not used.
    costs : Costs
    bounds : WeightBounds
    """

    objective: Objective
    costs: Costs
    bounds: WeightBounds

    @property
    def layout(self) -> Layout:
        """Variables of the shapes."""
        return self.objective.layout

    @cached_property
    def weighted(self) -> list[tuple[int, bool]]:
        """Part, and whether it is the weight of its blanks, for each weight."""
        out = []
        for j, part in enumerate(self.layout.parts):
            if part.column >= 0:
                out += [(j, False)] + ([(j, True)] if part.has_missing else [])
        return out

    @cached_property
    def cost(self) -> FloatArray:
        """Mean distance per unit of each weight."""
        costs = (self.costs.weights, self.costs.missing)
        return np.array([max(costs[blank][self._column(j)], 1e-300) for j, blank in self.weighted])

    def weights(self, v: FloatArray) -> Weights:
        """Weights by column; 0 where a column has no part."""
        n = len(self.costs.weights)
        out = np.zeros(n), np.full(n, np.nan)
        for (j, blank), weight in zip(self.weighted, v / self.cost, strict=True):
            out[blank][self._column(j)] = weight
        return Weights(*out)

    def largest_price(self) -> float:
        """Price above which every weight that may be 0 is 0: its first unit gains less than it costs.

        Blanks so rare that they add less than 0.02 to the mean distance at a weight of 1 are ignored: their small gain
        would set a high price.
        """
        n_functions, layout = self.objective.loss.n_functions, self.layout
        x = np.zeros((n_functions, layout.n_variables))
        x[:, 0] = self.objective.best_constants()
        slopes = np.abs(self.objective.gradient(x, self.objective.scores(x))).sum(axis=0)
        gains = [0.0]
        for (j, blank), cost in zip(self.weighted, self.cost, strict=True):
            here = slice(int(layout.starts[j]), int(layout.starts[j + 1]))
            if not blank:
                gains.append(float(slopes[here] @ self._reach(layout.parts[j])) / cost)
            elif cost > _RARE:
                gains.append(float(slopes[here][-1]) * layout.unit / cost)
        return max(gains)

    def solve(self, price: float, start: Solution | None = None, tolerance: float = 1e-10) -> Solution:
        """The optimum at a price, by Newton's method with a quadratic program per step."""
        with single_threaded_blas():
            return self._newton(price, start or self.start, tolerance)

    @cached_property
    def start(self) -> Solution:
        """The best constant, with weights inside their bounds."""
        x = self.limits.inside[: self._n_shapes].reshape(self.objective.loss.n_functions, -1).copy()
        return Solution(x, self.limits.inside[self._n_shapes :].copy(), np.inf)

    def _newton(self, price: float, start: Solution, tolerance: float) -> Solution:
        problem, n = self.objective, self._n_shapes
        x, v = start.x, start.v
        scores = problem.scores(x)
        loss, finest = problem.value(x, scores), tolerance / 10
        precision = max(finest, _ROUGH)
        size = n + len(v)
        for _ in range(_MAX_STEPS):
            H, g = np.zeros((size, size)), np.full(size, price)
            H[:n, :n] = problem.hessian(scores)
            gradient = problem.gradient(x, scores).ravel()
            g[:n] = gradient - H[:n, :n] @ x.ravel()
            while True:
                target = minimise_quadratic(H, g, self.limits, precision, np.concatenate([x.ravel(), v]))
                step, turn = (target[:n] - x.ravel()).reshape(x.shape), target[n:] - v
                slope = float(gradient @ step.ravel() + price * turn.sum())
                if -slope > 10 * precision or precision == finest:
                    break
                precision = max(finest, precision * _ROUGH)
            if -slope <= tolerance:
                return self._at(x + step, v + turn)
            length, value = 1.0, loss + price * v.sum()
            while length > 1e-10:
                x_new, v_new = x + length * step, v + length * turn
                scores_new = problem.scores(x_new)
                loss_new = problem.value(x_new, scores_new)
                gain = value - loss_new - price * float(v_new.sum())
                if gain >= -1e-4 * length * slope:
                    break
                length *= 0.5
            else:
                break  # no progress in floating point
            precision = max(finest, min(precision, _ROUGH * gain))
            x, v, scores, loss = x_new, v_new, scores_new, loss_new
        return self._at(x, v)

    def _at(self, x: FloatArray, v: FloatArray) -> Solution:
        return Solution(x, v, self.objective.value(x, self.objective.scores(x)))

    @cached_property
    def limits(self) -> Limits:
        """Joint limits of shapes and weights."""
        layout, unit, n_functions = self.layout, self.layout.unit, self.objective.loss.n_functions
        lines = _Lines()
        inside = np.zeros(self._n_shapes + len(self.weighted))
        inside[: self._n_shapes].reshape(n_functions, -1)[:, 0] = self.objective.best_constants()
        for place, ((j, blank), cost) in enumerate(zip(self.weighted, self.cost, strict=True)):
            at, part = self._n_shapes + place, layout.parts[j]
            low, high = self._bounds_of(j, blank)
            low, high = low * cost, high * cost
            lines.add([at], [-1.0], -low)
            if np.isfinite(high):
                lines.add([at], [1.0], high)
            inside[at] = min(low + 0.1, (low + high) / 2) if np.isfinite(high) else low + 0.1
            sign = 0 if blank else layout.signs.get(part.column, 0)
            for k in range(n_functions):
                first = k * layout.n_variables + int(layout.starts[j])
                if blank:
                    rises = list(range(first, first + part.n_knots - 1))
                    level = first + len(rises)
                    for way in (1.0, -1.0):
                        for n in range(len(rises) + 1):
                            lines.add([*rises[:n], level, at], [*[way] * n, -way, -unit / cost], 0.0)
                    continue
                for variable, reach in enumerate(self._reach(part)):
                    if reach:
                        lines.add([first + variable, at], [1 / reach, -1 / cost], 0.0)
                        lines.add([first + variable, at], [-1 / reach, -1 / cost], 0.0)
                    if reach and sign:
                        lines.add([first + variable], [-sign / reach], 0.0)
                        inside[first + variable] = sign * _GENTLE * reach * inside[at] / cost / part.n_slots
                for a, b, share in layout.near_categories(part):
                    for way in (1.0, -1.0):
                        lines.add([first + a, first + b, at], [way, -way, -unit * share / cost], 0.0)
        return Limits(lines.matrix(len(inside)), np.array(lines.highest), inside)

    @property
    def _n_shapes(self) -> int:
        return self.objective.loss.n_functions * self.layout.n_variables

    def _column(self, j: int) -> int:
        return self.layout.parts[j].column

    def _bounds_of(self, j: int, blank: bool) -> tuple[float, float]:
        """Bounds with an interior; weights of blanks are between 0 and 1."""
        if blank:
            return 0.0, 1.0
        low, high = float(self.bounds.lower[self._column(j)]), float(self.bounds.upper[self._column(j)])
        room = 1e-6 * max(high, 1e-12) if high <= low * (1 + 1e-6) else 0.0  # a fixed weight gets a tiny interval
        return max(0.0, low - room), high

    def _reach(self, part: Part) -> FloatArray:
        """Largest rise or level of each variable for a weight of 1; 0 for the level of a blank."""
        if part.knots is None:
            return np.full(part.n_slots, self.layout.unit / 2)
        return np.append(self.layout.unit * np.diff(part.knots), np.zeros(int(part.has_missing)))


class _Lines:
    """Rows of a sparse matrix, and their upper limits."""

    def __init__(self) -> None:
        self.entries: list[tuple[float, int, int]] = []  # value, row, column
        self.highest: list[float] = []

    def add(self, columns: list[int], values: list[float], highest: float) -> None:
        """Add one row."""
        row = len(self.highest)
        self.entries += [(value, row, column) for column, value in zip(columns, values, strict=True)]
        self.highest.append(highest)

    def matrix(self, size: int) -> csr_array:
        """The rows."""
        values, rows, columns = zip(*self.entries, strict=True)
        return csr_array((values, (rows, columns)), shape=(len(self.highest), size))
