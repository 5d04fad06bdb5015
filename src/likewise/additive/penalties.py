"""How smooth each column should be, from the data: one penalty per column, by restricted maximum likelihood.

A penalty ``lambda x'Rx`` beside the mean loss of n people is a normal prior of ``x`` with precision
``2 n lambda R / phi``, phi the dispersion (1 for outcomes that are labels). The penalties with the largest marginal
likelihood, Laplace's approximation to it, satisfy for every column j with r_j variables

    2 lambda_j x'R_j x = phi (r_j - 2 lambda_j tr(V R_j)) / n,      V = (H + 2 sum_j lambda_j R_j)^-1,

which is iterated (Fellner and Schall; Wood & Fasiolo 2017). The right-hand side counts how many of the variables the
data determine. The metric's limits are left out: they say what a shape may do, not how rough the truth is, and a
penalty that does not depend on them is the same for every metric with the same columns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotri

from likewise._parallel import single_threaded_blas
from likewise._typing import FloatArray
from likewise.additive.design_matrix import Layout
from likewise.additive.qp import factorised, solve_factorised
from likewise.additive.solver import Objective, coarsened

_SMALLEST, _LARGEST = 1e-9, 10.0  # penalties: below, rises are unpenalised; above, a column is constant
_MOST_STEPS = 12
_MOST_UPDATES = 5  # of penalties, for one quadratic approximation
_DIGITS = 2


class Smoothness(NamedTuple):
    """Penalties of each part, and how many of its variables the data determine under them."""

    penalties: FloatArray
    counts: FloatArray


def choose_penalties(problem: Objective, *, labels: bool) -> Smoothness:
    """Penalties of each part, to two digits, and the variables that the data determine.

    Parameters
    ----------
    problem : Objective
        Its penalties and limits are not looked at.
    labels : bool
        Whether outcomes are labels of classes, whose dispersion is 1; otherwise it is estimated.
    """
    layout = problem.layout
    free = replace(problem, layout=replace(layout, budgets=np.ones(len(layout.weights.scales))))
    with single_threaded_blas():
        found, counts = _alternate(coarsened(free), labels=labels)
    return Smoothness(np.array([float(f"{penalty:.{_DIGITS}g}") for penalty in found]), counts)


def _alternate(problem: Objective, *, labels: bool) -> Smoothness:
    """Newton steps of the variables, with updates of the penalties in between."""
    layout, n = problem.layout, problem.n_people
    x = np.zeros((problem.loss.n_functions, layout.n_variables))
    x[:, 0] = problem.best_constants()
    plain = replace(problem, penalties=np.zeros(len(layout.parts)))
    penalties = np.full(len(layout.parts), np.clip(0.5 / n, _SMALLEST, _LARGEST))
    counts = np.zeros(len(penalties))
    for _ in range(_MOST_STEPS):
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
            found[j] = np.clip(noise * counts[j] / max(2 * rough, 1e-300), _SMALLEST, _LARGEST)
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
    """Squared first derivatives beside second ones: 1 where the model is right and its loss is a log-likelihood."""
    intercepts = slice(None, None, plain.layout.n_variables)
    left = max(1.0, plain.n_people - determined)
    curvature = float(np.diag(H)[intercepts].sum()) - 2 * plain.shift * plain.loss.n_functions
    return max(1e-12, plain.mean_squared_gradient(scores) / curvature) * plain.n_people / left


def _damped(problem: Objective, x: FloatArray, target: FloatArray) -> FloatArray:
    """The first point on the way back from the target that is better than where one stands."""
    value, size = problem.value(x, problem.scores(x)), 1.0
    while size > 1e-6:
        new = x + size * (target - x)
        if problem.value(new, problem.scores(new)) <= value:
            return new
        size /= 2
    return x
