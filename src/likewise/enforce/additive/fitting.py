"""Fitting an additive model: Newton's method, with a quadratic program in place of each linear system.

Sums per slot, and per pair of slots, are all that a step needs of the people, so it costs passes over bytes and no
matrix of n rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise._threads import run_in_threads, single_threaded_blas
from likewise._typing import FloatArray
from likewise.enforce.additive.bins import Part
from likewise.enforce.additive.layout import Layout
from likewise.enforce.additive.losses import Loss
from likewise.enforce.additive.quadratic import Limits, minimise_quadratic

_BLOCK = 16_384  # people at a time
_MOST_STEPS = 100


@dataclass(frozen=True, eq=False)
class Objective:
    """What is minimised: the loss of people, and the roughness of shapes.

    Attributes
    ----------
    layout : Layout
    loss : Loss
    weights : ndarray of shape (n_samples,)
        Sample weights that add up to 1.
    penalty : float
        Weight of the roughness.
    tolerance : float
        What a step must bring of the mean loss to be worth another one.
    n_jobs : int or None
    """

    layout: Layout
    loss: Loss
    weights: FloatArray
    penalty: float
    tolerance: float = 1e-14
    n_jobs: int | None = None

    def scores(self, x: FloatArray) -> FloatArray:
        """Scores of everyone, shape (n_functions, n_samples), for variables of shape (n_functions, n_variables)."""
        return add_up(self.layout.parts, x @ self.layout.to_slots.T, self.n_jobs)

    def value(self, x: FloatArray, scores: FloatArray) -> float:
        """Mean loss and penalty."""
        rough = float(np.einsum("ki,ij,kj->", x, self.layout.roughness, x))
        shift = self._shift * float(x[:, 0].sum()) ** 2
        return float(self.weights @ self.loss.values(scores)) + self.penalty * rough + shift

    def gradient(self, x: FloatArray, scores: FloatArray) -> FloatArray:
        """First derivatives, shape (n_functions, n_variables)."""
        slopes = self.loss.derivative(scores) * self.weights
        sums = np.stack([slot_sums(self.layout.parts, line, self.n_jobs) for line in slopes])
        out = np.asarray(sums @ self.layout.to_slots + 2 * self.penalty * (x @ self.layout.roughness))
        out[:, 0] += 2 * self._shift * x[:, 0].sum()
        return out

    def hessian(self, scores: FloatArray) -> FloatArray:
        """Second derivatives, a matrix over the variables of all functions."""
        n, size, T = self.loss.n_functions, self.layout.n_variables, self.layout.to_slots
        out = np.empty((n, size, n, size))
        for k in range(n):
            for other in range(k + 1):
                bends = self.loss.curvature(scores, k, other) * self.weights
                block = T.T @ (T.T @ cross_sums(self.layout.parts, bends, self.n_jobs)).T
                if k == other:
                    block = block + 2 * self.penalty * self.layout.roughness
                out[k, :, other], out[other, :, k] = block, block.T
        out[:, 0, :, 0] += 2 * self._shift
        return out.reshape(n * size, n * size)

    @property
    def _shift(self) -> float:
        # A softmax does not see a shift of all intercepts: of those that are as good, take the one around 0.
        return 1.0 if self.loss.n_functions > 1 else 0.0


def solve(problem: Objective, start: FloatArray, advance: Callable[[int], None] = lambda steps: None) -> FloatArray:
    """Return the variables with the smallest mean loss and penalty, of shape (n_functions, n_variables)."""
    with single_threaded_blas():
        limits = problem.layout.limits(problem.loss.n_functions)
        return _newton(problem, limits, start, advance)


def _newton(problem: Objective, limits: Limits, x: FloatArray, advance: Callable[[int], None]) -> FloatArray:
    scores = problem.scores(x)
    value = problem.value(x, scores)
    for _ in range(_MOST_STEPS):
        g, H = problem.gradient(x, scores).ravel(), problem.hessian(scores)
        target = minimise_quadratic(H, g - H @ x.ravel(), limits, problem.tolerance / 100)
        step = (target - x.ravel()).reshape(x.shape)
        slope = float(g @ step.ravel())
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
        x, scores, value = x_new, scores_new, value_new
        advance(1)
    return x


def add_up(parts: list[Part], slots: FloatArray, n_jobs: int | None) -> FloatArray:
    """Scores of everyone from the values at slots, shapes (n_functions, n_slots) and (n_functions, n_samples)."""
    from likewise.enforce.additive.histograms import add_categories, add_numbers

    n, n_jobs = len(parts[0].index), _threads_for(parts, n_jobs)
    out = np.zeros((len(slots), n))
    values = np.pad(slots, ((0, 0), (0, 1)))

    def work(first: int) -> None:
        people = slice(first, first + _BLOCK)
        for line, row in zip(values, out, strict=True):
            start = 0
            for part in parts:
                if part.fraction is None:
                    add_categories(part.index[people], line[start:], row[people])
                else:
                    add_numbers(part.index[people], part.fraction[people], line[start:], row[people])
                start += part.n_slots

    run_in_threads(work, range(0, n, _BLOCK), n_jobs)
    return out


def slot_sums(parts: list[Part], weights: FloatArray, n_jobs: int | None) -> FloatArray:
    """Sums of weights per slot, over all parts."""
    from likewise.enforce.additive.histograms import empty_slots, sum_categories, sum_numbers

    sums: list[Any] = [empty_slots(part.n_slots) for part in parts]

    def work(j: int) -> None:
        part = parts[j]
        if part.fraction is None:
            sum_categories(part.index, weights, sums[j])
        else:
            sum_numbers(part.index, part.fraction, weights, sums[j])

    run_in_threads(work, range(len(parts)), _threads_for(parts, n_jobs))
    return np.concatenate([line[:-1] for line in sums])


def cross_sums(parts: list[Part], weights: FloatArray, n_jobs: int | None) -> FloatArray:
    """Sums of weights per pair of slots, a symmetric matrix."""
    from likewise.enforce.additive.histograms import cross_categories, cross_mixed, cross_numbers, empty_slots

    starts = np.concatenate([[0], np.cumsum([part.n_slots for part in parts])])
    out = np.empty((starts[-1], starts[-1]))

    def work(pair: tuple[int, int]) -> None:
        i, j = pair
        a, b = parts[i], parts[j]
        if a.fraction is None and b.fraction is not None:
            i, j, a, b = j, i, b, a
        sums = empty_slots(a.n_slots, b.n_slots)
        if a.fraction is None:
            cross_categories(a.index, b.index, weights, sums)
        elif b.fraction is None:
            cross_mixed(a.index, a.fraction, b.index, weights, sums)
        else:
            cross_numbers(a.index, a.fraction, b.index, b.fraction, weights, sums)
        block = sums[:-1, :-1]
        out[starts[i] : starts[i + 1], starts[j] : starts[j + 1]] = block
        out[starts[j] : starts[j + 1], starts[i] : starts[i + 1]] = block.T

    pairs = [(i, j) for i in range(len(parts)) for j in range(i + 1)]
    run_in_threads(work, pairs, _threads_for(parts, n_jobs))
    return out


def _threads_for(parts: list[Part], n_jobs: int | None) -> int | None:
    """One thread for few people: handing out the work would take longer than doing it."""
    return 1 if len(parts[0].index) < _BLOCK else n_jobs
