"""Fitting an additive model: Newton's method, with a quadratic program in place of each linear system.

Penalties are chosen by restricted maximum likelihood. A penalty ``lambda x'Rx`` added to the mean loss of n people is a
normal prior of ``x`` with precision ``2 n lambda R / phi``, phi the dispersion (1 for outcomes that are labels). The
penalties with the largest marginal likelihood, Laplace's approximation to it, satisfy for every column j with r_j
variables

    2 lambda_j x'R_j x = phi (r_j - 2 lambda_j tr(V R_j)) / n,      V = (H + 2 sum_j lambda_j R_j)^-1,

which is iterated (Fellner and Schall; Wood & Fasiolo 2017). The right-hand side counts how many of the variables the
data determine. The metric's limits are left out: they say what a shape may do, not how rough the truth is, and a
penalty that does not depend on them is the same for every metric with the same columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotri

from likewise._parallel import single_threaded_blas
from likewise._typing import FloatArray, IntArray
from likewise.additive.design_matrix import Layout, constant
from likewise.additive.objective import Objective
from likewise.additive.qp import Limits, factorised, minimise_quadratic, solve_factorised

_MOST_VARIABLES = 1000
_MOST_ROUNDS = 100
_TOLERANCE = 1e-8  # of the mean loss, per round
_COARSE_TOLERANCE = 1e-6  # of a start
_FIRST_GAIN = 1e-3  # assumed before the first round
_MOST_STEPS = 100
_ROUGH = 1e-3  # error of a step, relative to the gain of the step before it
_LEAST_PENALTY, _LARGEST_PENALTY = 1e-9, 10.0  # below, rises are unpenalised; above, a column is constant
_MOST_ALTERNATIONS = 12
_MOST_UPDATES = 5  # of penalties, for one quadratic approximation
_DIGITS = 2  # of penalties


@single_threaded_blas()
def solve(problem: Objective, start: FloatArray, advance: Callable[[int], None] = lambda steps: None) -> FloatArray:
    """Return the variables with the smallest mean loss and penalty, of shape (n_functions, n_variables)."""
    x, limits = start, problem.layout.limits(problem.loss.n_functions)
    scores = problem.scores(x)
    value, finest = problem.value(x, scores), problem.tolerance / 10
    precision = max(finest, _ROUGH)
    for _ in range(_MOST_STEPS):
        g, H = problem.gradient(x, scores).ravel(), problem.hessian(scores)
        while True:
            # Accept a step only if its gain is well above its own error.
            target = minimise_quadratic(H, g - H @ x.ravel(), limits, precision, x.ravel())
            step = (target - x.ravel()).reshape(x.shape)
            slope = float(g @ step.ravel())
            if -slope > 10 * precision or precision == finest:
                break
            precision = max(finest, precision * _ROUGH)
        if -slope <= problem.tolerance:
            return x + step  # too small to change the value, but still worth taking along flat directions
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


def needs_blocks(problem: Objective) -> bool:
    """Whether there are too many variables for one matrix."""
    return problem.loss.n_functions * problem.layout.n_variables > _MOST_VARIABLES


def coarsened(problem: Objective) -> Objective:
    """The same problem, with few enough knots for one matrix."""
    if not needs_blocks(problem):
        return problem
    return problem.coarser(_knots_at_once(problem, _MOST_VARIABLES) + 1)


def _knots_at_once(problem: Objective, n_variables: int) -> int:
    """Rises per column, if `n_variables` are shared among columns and functions."""
    return max(1, n_variables // problem.loss.n_functions // max(1, len(problem.layout.parts)))


def solve_in_blocks(
    problem: Objective, start: FloatArray, advance: Callable[[int], None] = lambda steps: None
) -> FloatArray:
    """As `solve`, for any number of columns and classes."""
    n_functions, layout = problem.loss.n_functions, problem.layout
    if not needs_blocks(problem):
        return solve(problem, start, advance)
    # Their limits are the same in every round, so their layouts are kept.
    blocks = [
        (*block, replace(layout, parts=[layout.parts[j] for j in block[1]])) for block in _blocks(layout, n_functions)
    ]
    limits = layout.limits(n_functions)
    x = _coarse_start(problem, start)
    value, gain, of_round = problem.value(x, problem.scores(x)), _FIRST_GAIN, 1.0
    for _ in range(_MOST_ROUNDS):
        # Solve blocks only as accurately as the last round's gain calls for.
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


def _blocks(layout: Layout, n_functions: int) -> list[tuple[list[int], list[int]]]:
    """Functions and parts that are solved for at once; the intercept is in each block."""
    sizes = np.diff(layout.starts).tolist()
    every = list(range(n_functions))
    # A softmax is shift-invariant, so updates of one class at a time converge slowly.
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


class Smoothness(NamedTuple):
    """Penalties of each part, and how many of its variables the data determine under them."""

    penalties: FloatArray
    counts: FloatArray


def choose_penalties(problem: Objective, *, labels: bool) -> Smoothness:
    """Penalties of each part, to two digits, and the variables that the data determine.

    Parameters
    ----------
    problem : Objective
        Its penalties and limits are not used.
    labels : bool
        Whether outcomes are labels of classes, whose dispersion is 1; otherwise it is estimated.
    """
    with single_threaded_blas():
        found, counts = _alternate(coarsened(problem), labels=labels)
    return Smoothness(np.array([float(f"{penalty:.{_DIGITS}g}") for penalty in found]), counts)


def _alternate(problem: Objective, *, labels: bool) -> Smoothness:
    """Newton steps of the variables, with updates of the penalties in between."""
    layout, n = problem.layout, problem.n_people
    x = np.zeros((problem.loss.n_functions, layout.n_variables))
    x[:, 0] = problem.best_constants()
    plain = replace(problem, penalties=np.zeros(len(layout.parts)))
    penalties = np.full(len(layout.parts), np.clip(0.5 / n, _LEAST_PENALTY, _LARGEST_PENALTY))
    counts = np.zeros(len(penalties))
    for _ in range(_MOST_ALTERNATIONS):
        scores = plain.scores(x)
        g, H = plain.gradient(x, scores).ravel(), plain.hessian(scores)
        phi = 1.0 if labels else _dispersion(plain, scores, H, float(counts.sum()))
        quadratic = _Quadratic(layout, H, g - H @ x.ravel())
        before, (target, penalties, counts) = counts, quadratic.maximise_likelihood(x, penalties, phi / n)
        if converged(counts, before):
            break
        x = _damped(replace(problem, penalties=penalties), x, target)
    return Smoothness(penalties, counts)


def converged(counts: FloatArray, before: FloatArray) -> bool:
    """Whether what the data determine, in variables, has changed too little for another step."""
    return bool((np.abs(counts - before) <= 0.05 + 0.05 * counts).all())


class _Quadratic(NamedTuple):
    """``x'Hx / 2 + g'x`` over the variables of all functions, one after the other."""

    layout: Layout
    H: FloatArray
    g: FloatArray

    def maximise_likelihood(
        self, x: FloatArray, penalties: FloatArray, noise: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Minimiser, penalties that suit it, and how many variables of each part the data determine."""
        counts = np.full(len(penalties), np.inf)
        for _ in range(_MOST_UPDATES):
            factor, target = self._solve(penalties, x.shape)
            inverse = dpotri(factor, lower=True, overwrite_c=True)[0]  # its lower half
            before, (penalties, counts) = counts, self._update(target, inverse, penalties, noise)
            if converged(counts, before):
                break
        return self._solve(penalties, x.shape)[1], penalties, counts

    def _solve(self, penalties: FloatArray, shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
        system, size = self.H.copy(), shape[1]
        for first in range(0, len(system), size):
            for here, matrix, penalty in self._terms(penalties):
                block = slice(first + here.start, first + here.stop)
                system[block, block] += 2 * penalty * matrix
        factor = factorised(system)
        return factor, -solve_factorised(factor, self.g).reshape(shape)

    def _update(
        self, x: FloatArray, inverse: FloatArray, penalties: FloatArray, noise: float
    ) -> tuple[FloatArray, FloatArray]:
        size, found, counts = x.shape[1], penalties.copy(), np.zeros(len(penalties))
        for j, (here, matrix, penalty) in enumerate(self._terms(penalties)):
            if self.layout.parts[j].column < 0 or not matrix.size:
                continue
            blocks = [slice(first + here.start, first + here.stop) for first in range(0, len(inverse), size)]
            # Of symmetric matrices: twice the lower halves, and the diagonals once.
            doubled = 2 * np.tril(matrix) - np.diag(np.diag(matrix))
            trace = sum(float((inverse[block, block] * doubled).sum()) for block in blocks)
            counts[j] = max(1e-8, len(x) * len(matrix) - 2 * penalty * trace)
            rough = float(np.einsum("ki,ij,kj->", x[:, here], matrix, x[:, here]))
            found[j] = np.clip(noise * counts[j] / max(2 * rough, 1e-300), _LEAST_PENALTY, _LARGEST_PENALTY)
        return found, counts

    def _terms(self, penalties: FloatArray) -> list[tuple[slice, FloatArray, float]]:
        starts = self.layout.starts.tolist()
        return [
            (slice(start, stop), matrix, float(penalty))
            for start, stop, matrix, penalty in zip(
                starts[:-1], starts[1:], self.layout.roughness, penalties, strict=True
            )
        ]


def _dispersion(plain: Objective, scores: FloatArray, H: FloatArray, determined: float) -> float:
    """Ratio of squared first to second derivatives: 1 if the model is correct and its loss is a log-likelihood."""
    intercepts = slice(None, None, plain.layout.n_variables)
    left = max(1.0, plain.n_people - determined)
    curvature = float(np.diag(H)[intercepts].sum()) - 2 * plain.shift * plain.loss.n_functions
    return max(1e-12, plain.mean_squared_gradient(scores) / curvature) * plain.n_people / left


def _damped(problem: Objective, x: FloatArray, target: FloatArray) -> FloatArray:
    """Backtrack from the target until the objective does not increase."""
    value, size = problem.value(x, problem.scores(x)), 1.0
    while size > 1e-6:
        new = x + size * (target - x)
        if problem.value(new, problem.scores(new)) <= value:
            return new
        size /= 2
    return x
