"""Fitting an additive model: Newton's method, with a quadratic program in place of each linear system.

Sums per slot, and per pair of slots, are all that a step needs of the people, so it costs passes over bytes and no
matrix of n rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from likewise._engine import kernel
from likewise._parallel import run_in_threads, single_threaded_blas
from likewise._typing import FloatArray, IntArray
from likewise.additive.binning import Part, blocks_of
from likewise.additive.design_matrix import Layout, constant
from likewise.additive.losses import Loss, PartialLoss
from likewise.additive.qp import Limits, minimise_quadratic
from likewise.exceptions import InvalidInputError

_MOST_VARIABLES = 1000
_MOST_ROUNDS = 100
_TOLERANCE = 1e-8  # of the mean loss, per round
_COARSE_TOLERANCE = 1e-6  # of a start
_FIRST_GAIN = 1e-3  # that the first round is taken to bring after it


def needs_blocks(problem: Objective) -> bool:
    """Whether there are too many variables for one matrix."""
    return problem.loss.n_functions * problem.layout.n_variables > _MOST_VARIABLES


def coarsened(problem: Objective) -> Objective:
    """The same problem, with few enough knots for one matrix."""
    if not needs_blocks(problem):
        return problem
    return problem.coarser(_knots_at_once(problem, _MOST_VARIABLES) + 1)


def _knots_at_once(problem: Objective, n_variables: int) -> int:
    """Rises per column that so many variables leave."""
    layout = problem.layout
    return max(1, (n_variables // problem.loss.n_functions - layout.n_budgets) // max(1, len(layout.parts)))


def solve_in_blocks(
    problem: Objective, start: FloatArray, advance: Callable[[int], None] = lambda steps: None
) -> FloatArray:
    """As `solve`, for any number of columns and classes."""
    n_functions, layout = problem.loss.n_functions, problem.layout
    if not needs_blocks(problem):
        return solve(problem, start, advance)
    if layout.n_budgets:
        raise InvalidInputError("budgets must be given where there are too many variables to solve for at once.")
    # Their limits are the same in every round, so their layouts are kept.
    blocks = [
        (*block, replace(layout, parts=[layout.parts[j] for j in block[1]])) for block in _blocks(layout, n_functions)
    ]
    limits = layout.limits(n_functions)
    x = _coarse_start(problem, start)
    value, gain, of_round = problem.value(x, problem.scores(x)), _FIRST_GAIN, 1.0
    for _ in range(_MOST_ROUNDS):
        # No block need be solved much better than the last round left the others.
        rough = replace(problem, tolerance=max(_TOLERANCE / 10, gain / 100))
        x_before, before = x, value
        for functions, chosen, smaller in blocks:
            x = _improve(rough, x, functions, chosen, smaller, advance)
        if n_functions > 1:
            x[:, 0] -= x[:, 0].mean()  # a softmax does not depend on a common shift
        value, last = problem.value(x, problem.scores(x)), of_round
        of_round = before - value
        # Gains shrink by the same factor in each round, and steps by its root.
        further = _extrapolated(limits, x_before, x, np.sqrt(np.clip(of_round / last, 0.0, 0.98)))
        value_further = problem.value(further, problem.scores(further))
        if value_further < value:
            x, value = further, value_further
        gain = before - value
        if max(gain, rough.tolerance) <= max(_TOLERANCE, problem.tolerance):
            break
    return x


def _coarse_start(problem: Objective, start: FloatArray) -> FloatArray:
    """The optimum with few knots per column: blocks take many rounds to agree on what each column is to explain."""
    layout = problem.layout
    coarse = problem.coarser(_knots_at_once(problem, _MOST_VARIABLES // 3) + 1)
    if needs_blocks(coarse):
        return start
    rough = replace(coarse, tolerance=max(_COARSE_TOLERANCE, problem.tolerance))
    x = solve(rough, constant(coarse.layout, problem.best_constants()))
    return layout.refined(coarse.layout, x)


def _extrapolated(limits: Limits, before: FloatArray, x: FloatArray, ratio: float) -> FloatArray:
    """Where steps that shrink by `ratio` would end, or as far in that direction as the limits allow."""
    step = x - before
    room, rate = limits.highest - limits.rows @ x.ravel(), limits.rows @ step.ravel()
    rises = rate > 0
    longest = 0.99 * float((room[rises] / rate[rises]).min(initial=np.inf))
    return x + max(0.0, min(longest, ratio / (1 - ratio))) * step


def fit_budgets(problem: Objective) -> FloatArray:
    """Budgets of each function, shape (n_functions, n_columns), from a fit with few enough knots for one matrix."""
    coarse = coarsened(problem)
    x = solve(coarse, constant(coarse.layout, problem.best_constants()))
    return np.stack([coarse.layout.found_budgets(line) for line in x])


def _blocks(layout: Layout, n_functions: int) -> list[tuple[list[int], list[int]]]:
    """Functions and parts that are solved for at once; the intercept is in each block."""
    sizes = np.diff(layout.starts).tolist()
    every = list(range(n_functions))
    # A softmax hardly changes if all its scores do: one function at a time, that takes many rounds.
    at_once = [every] if n_functions * (1 + max(sizes[1:])) <= _MOST_VARIABLES else [[k] for k in every]
    # A third of what fits: a block costs its cube.
    most, groups, size = _MOST_VARIABLES // 3 // len(at_once[0]), [[0]], 1
    for j, n in enumerate(sizes[1:], 1):
        if size + n > most and len(groups[-1]) > 1:
            groups.append([0])
            size = 1
        groups[-1].append(j)
        size += n
    return [(functions, chosen) for functions in at_once for chosen in groups]


def _improve(
    problem: Objective,
    x: FloatArray,
    functions: list[int],
    chosen: list[int],
    of_chosen: Layout,
    advance: Callable[[int], None],
) -> FloatArray:
    """Solve for the variables of some functions in some parts, whose layout is `of_chosen`."""
    layout = problem.layout
    variables: IntArray = np.concatenate([np.arange(layout.starts[j], layout.starts[j + 1]) for j in chosen])
    where = np.ix_(np.array(functions), variables)
    held = x.copy()
    held[where] = 0.0
    smaller = problem.subproblem(np.asarray(held @ layout.to_slots.T), functions, chosen)
    smaller = replace(smaller, layout=of_chosen)
    out = x.copy()
    out[where] = solve(smaller, x[where], advance)
    return out


_AT_ONCE = 16_384  # people whose scores one thread adds up
_MOST_STEPS = 100
_ROUGH = 1e-3  # error of a step beside what the step before it brought


@dataclass(frozen=True, eq=False)
class Objective:
    """What is minimised: the loss of people, and the roughness of shapes.

    Attributes
    ----------
    layout : Layout
    loss : Loss
    weights : ndarray of shape (n_samples,)
        Sample weights that add up to 1.
    penalties : ndarray of shape (n_parts,)
        Weight of the roughness of each part; that of the intercept has no effect.
    n_people : float
        Effective number of rows.
    tolerance : float
        Smallest decrease of the objective that is worth another step.
    n_jobs : int or None
    """

    layout: Layout
    loss: Loss
    weights: FloatArray
    penalties: FloatArray
    n_people: float
    tolerance: float = 1e-10
    n_jobs: int | None = None

    def scores(self, x: FloatArray) -> FloatArray:
        """Scores of everyone, shape (n_functions, n_samples), for variables of shape (n_functions, n_variables)."""
        return self.scores_at(np.asarray(x @ self.layout.to_slots.T))

    def value(self, x: FloatArray, scores: FloatArray) -> float:
        """Mean loss and penalty."""
        rough = float(np.einsum("ki,ij,kj->", x, self.roughness, x))
        shift = self.shift * float(x[:, 0].sum()) ** 2
        return self.mean_loss(scores) + rough + shift

    def gradient(self, x: FloatArray, scores: FloatArray) -> FloatArray:
        """First derivatives, shape (n_functions, n_variables)."""
        sums = self.gradient_sums(scores)
        out = np.asarray(sums @ self.layout.to_slots + 2 * (x @ self.roughness))
        out[:, 0] += 2 * self.shift * x[:, 0].sum()
        return out

    def hessian(self, scores: FloatArray) -> FloatArray:
        """Second derivatives, a matrix over the variables of all functions."""
        n, size, layout = self.loss.n_functions, self.layout.n_variables, self.layout
        out = np.empty((n, size, n, size))
        for (k, other), sums in self.hessian_sums(scores).items():
            block = layout.to_variables(layout.to_variables(sums).T)
            if k == other:
                block = block + 2 * self.roughness
            out[k, :, other], out[other, :, k] = block, block.T
        out[:, 0, :, 0] += 2 * self.shift
        return out.reshape(n * size, n * size)

    @cached_property
    def roughness(self) -> FloatArray:
        """Matrix R of the whole penalty ``x'Rx``."""
        layout, out = self.layout, np.zeros((self.layout.n_variables, self.layout.n_variables))
        for j, (matrix, penalty) in enumerate(zip(layout.roughness, self.penalties, strict=True)):
            here = slice(int(layout.starts[j]), int(layout.starts[j + 1]))
            out[here, here] = penalty * matrix
        return out

    def best_constants(self) -> FloatArray:
        """The best scores that are the same for everyone."""
        return self.loss.best_constants(self.mean_target())

    # All that depends on rows; sums are taken by block.

    def scores_at(self, slots: FloatArray) -> FloatArray:
        """Scores of everyone from the values at slots."""
        return sum_parts(self.layout.parts, slots, self.n_jobs)

    def mean_loss(self, scores: FloatArray) -> float:
        """Mean loss, without the penalty."""
        losses = self.loss.values(scores) * self.weights
        return float(sum(losses[people].sum() for people in blocks_of(len(losses))))

    def mean_target(self) -> FloatArray:
        """Mean target."""
        return np.asarray(
            sum(
                (self.loss.target[:, people] * self.weights[people]).sum(axis=1)
                for people in blocks_of(len(self.weights))
            )
        )

    def mean_squared_gradient(self, scores: FloatArray) -> float:
        """Mean of the squared first derivatives, added up over functions."""
        squares = (self.loss.derivative(scores) ** 2).sum(axis=0) * self.weights
        return float(sum(squares[people].sum() for people in blocks_of(len(squares))))

    def gradient_sums(self, scores: FloatArray) -> FloatArray:
        """Sums of first derivatives per slot, shape (n_functions, n_slots)."""
        slopes = self.loss.derivative(scores) * self.weights
        return np.stack([slot_sums(self.layout.parts, line, self.n_jobs) for line in slopes])

    def hessian_sums(self, scores: FloatArray) -> dict[tuple[int, int], FloatArray]:
        """Sums of second derivatives per pair of slots, for each pair of functions once."""
        pairs = [(k, other) for k in range(self.loss.n_functions) for other in range(k + 1)]
        weights = np.stack([self.loss.curvature(scores, *pair) * self.weights for pair in pairs])
        return dict(zip(pairs, cross_sums(self.layout.parts, weights, self.n_jobs), strict=True))

    def subproblem(self, held: FloatArray, functions: list[int], chosen: list[int]) -> Objective:
        """The problem of some functions and parts, with the scores of the values `held` fixed."""
        loss = PartialLoss(self.loss.target[functions], self.loss, self.scores_at(held), functions)
        smaller = replace(self.layout, parts=[self.layout.parts[j] for j in chosen])
        return replace(self, layout=smaller, loss=loss, penalties=self.penalties[chosen])

    def coarser(self, most: int) -> Objective:
        """The same with at most so many knots per column."""
        parts = [part.coarser(most) for part in self.layout.parts]
        return replace(self, layout=replace(self.layout, parts=parts))

    @property
    def shift(self) -> float:
        """Weight of the squared sum of intercepts."""
        # A softmax does not see a shift of all intercepts: of those that are as good, take the one around 0.
        return 1.0 if self.loss.n_functions > 1 else 0.0


def solve(problem: Objective, start: FloatArray, advance: Callable[[int], None] = lambda steps: None) -> FloatArray:
    """Return the variables with the smallest mean loss and penalty, of shape (n_functions, n_variables)."""
    with single_threaded_blas():
        limits = problem.layout.limits(problem.loss.n_functions)
        return _newton(problem, limits, start, advance)


def _newton(problem: Objective, limits: Limits, x: FloatArray, advance: Callable[[int], None]) -> FloatArray:
    scores = problem.scores(x)
    value, finest = problem.value(x, scores), problem.tolerance / 10
    precision = max(finest, _ROUGH)
    for _ in range(_MOST_STEPS):
        g, H = problem.gradient(x, scores).ravel(), problem.hessian(scores)
        while True:
            # Only what is found with a gain well above its own error is a step.
            target = minimise_quadratic(H, g - H @ x.ravel(), limits, precision, x.ravel())
            step = (target - x.ravel()).reshape(x.shape)
            slope = float(g @ step.ravel())
            if -slope > 10 * precision or precision == finest:
                break
            precision = max(finest, precision * _ROUGH)
        if -slope <= problem.tolerance:
            return x + step  # too small to be seen in the value, and not for nothing in flat directions
        size = 1.0
        while size > 1e-10:
            x_new = x + size * step
            scores_new = problem.scores(x_new)
            value_new = problem.value(x_new, scores_new)
            if value_new <= value + 1e-4 * size * slope:
                break
            size *= 0.5
        else:
            break  # no progress in floating point
        precision = max(finest, min(precision, _ROUGH * (value - value_new)))
        x, scores, value = x_new, scores_new, value_new
        advance(1)
    return x


def sum_parts(parts: list[Part], slots: FloatArray, n_jobs: int | None) -> FloatArray:
    """Scores of everyone from the values at slots, shapes (n_functions, n_slots) and (n_functions, n_samples)."""
    n, n_jobs = len(parts[0].index), _threads_for(parts, n_jobs)
    add_categories, add_numbers = _kernels(parts, "add_categories", "add_numbers")
    out = np.zeros((len(slots), n))
    values = np.pad(slots, ((0, 0), (0, 1)))

    def work(first: int) -> None:
        people = slice(first, first + _AT_ONCE)
        for line, row in zip(values, out, strict=True):
            start = 0
            for part in parts:
                if part.fraction is None:
                    add_categories(part.index[people], line[start:], row[people])
                else:
                    add_numbers(part.index[people], part.fraction[people], line[start:], row[people])
                start += part.n_slots

    run_in_threads(work, range(0, n, _AT_ONCE), n_jobs)
    return out


def slot_sums(parts: list[Part], weights: FloatArray, n_jobs: int | None) -> FloatArray:
    """Sums of weights per slot, over all parts."""
    sums: list[Any] = [_empty_slots(part.n_slots) for part in parts]
    sum_categories, sum_numbers = _kernels(parts, "sum_categories", "sum_numbers")

    def work(j: int) -> None:
        for people in blocks_of(len(weights)):
            part, line = parts[j].of(people), _empty_slots(parts[j].n_slots)
            if part.fraction is None:
                sum_categories(part.index, weights[people], line)
            else:
                sum_numbers(part.index, part.fraction, weights[people], line)
            sums[j] += line

    run_in_threads(work, range(len(parts)), _threads_for(parts, n_jobs))
    return np.concatenate([line[:-1] for line in sums])


def cross_sums(parts: list[Part], weights: FloatArray, n_jobs: int | None) -> FloatArray:
    """Sums per pair of slots, a symmetric matrix for each line of `weights`, of shape (n_lines, n_samples)."""
    names = ("cross_categories", "cross_mixed", "cross_numbers")
    cross_categories, cross_mixed, cross_numbers = _kernels(parts, *names, times=2 * len(parts))
    starts = np.concatenate([[0], np.cumsum([part.n_slots for part in parts])])
    out = np.empty((len(weights), starts[-1], starts[-1]))
    blocks = [(people, np.ascontiguousarray(weights[:, people])) for people in blocks_of(weights.shape[1])]

    def work(pair: tuple[int, int]) -> None:
        i, j = pair
        a, b = parts[i], parts[j]
        if a.fraction is None and b.fraction is not None:
            i, j, a, b = j, i, b, a
        total = np.zeros((len(weights), a.n_slots + 1, b.n_slots + 1))
        for people, lines in blocks:
            one, other, sums = a.of(people), b.of(people), np.zeros_like(total)
            if one.fraction is None:
                cross_categories(one.index, other.index, lines, sums)
            elif other.fraction is None:
                cross_mixed(one.index, one.fraction, other.index, lines, sums)
            else:
                cross_numbers(one.index, one.fraction, other.index, other.fraction, lines, sums)
            total += sums
        block = total[:, :-1, :-1]
        out[:, starts[i] : starts[i + 1], starts[j] : starts[j + 1]] = block
        out[:, starts[j] : starts[j + 1], starts[i] : starts[i + 1]] = block.transpose(0, 2, 1)

    pairs = [(i, j) for i in range(len(parts)) for j in range(i + 1)]
    run_in_threads(work, pairs, _threads_for(parts, n_jobs))
    return out


def _kernels(parts: list[Part], *names: str, times: int = 1) -> list[Any]:
    """These loops over the people of all parts, `times` over."""
    cells = times * len(parts) * len(parts[0].index)
    return [kernel("additive", name, cells) for name in names]


def _empty_slots(size: int) -> FloatArray:
    """Zeros for sums, with the slot to spare that loops may touch."""
    return np.zeros(size + 1)


def _threads_for(parts: list[Part], n_jobs: int | None) -> int | None:
    """One thread for few people: handing out the work would take longer than doing it."""
    return 1 if len(parts[0].index) < _AT_ONCE else n_jobs
