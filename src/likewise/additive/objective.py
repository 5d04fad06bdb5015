"""The objective of a fit: a convex loss of the scores plus the roughness of shapes.

Its derivatives need only sums per slot and per pair of slots, so they take passes over the slot indices, and no matrix
of n rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, log_ndtr, logit, logsumexp, ndtri, softmax

from likewise._engine import kernel
from likewise._parallel import run_in_threads
from likewise._typing import FloatArray
from likewise.additive.binning import Part, blocks_of
from likewise.additive.design_matrix import Layout

_AT_ONCE = 16_384  # rows whose scores one thread adds up


@dataclass(frozen=True, eq=False)
class Loss(ABC):
    """A loss of scores, person by person.

    Attributes
    ----------
    target : ndarray of shape (n_functions, n_samples)
        Targets: probabilities of the classes, or values around 0.
    """

    target: FloatArray

    @property
    def n_functions(self) -> int:
        """Number of additive functions that are fitted."""
        return len(self.target)

    @abstractmethod
    def best_constants(self, means: FloatArray) -> FloatArray:
        """Constant scores with the smallest loss, from the means of targets."""

    @abstractmethod
    def values(self, scores: FloatArray) -> FloatArray:
        """Loss of each person, from scores of shape (n_functions, n_samples)."""

    @abstractmethod
    def derivative(self, scores: FloatArray) -> FloatArray:
        """First derivatives, shape (n_functions, n_samples)."""

    @abstractmethod
    def curvature(self, scores: FloatArray, k: int, other: int) -> FloatArray:
        """Second derivatives by the scores k and `other`."""


class LogLoss(Loss):
    """``-q log sigma(a) - (1 - q) log sigma(-a)``, with q the target probability."""

    def best_constants(self, means: FloatArray) -> FloatArray:
        """Log-odds of the mean."""
        return np.asarray(logit(means))

    def values(self, scores: FloatArray) -> FloatArray:
        """Loss of each person."""
        a = scores[0]
        return np.asarray(np.logaddexp(0.0, a) - self.target[0] * a)

    def derivative(self, scores: FloatArray) -> FloatArray:
        """``sigma(a) - q``."""
        return np.asarray(expit(scores) - self.target)

    def curvature(self, scores: FloatArray, k: int, other: int) -> FloatArray:
        """``sigma (1 - sigma)``."""
        return np.asarray(expit(scores[0]) * expit(-scores[0]))


class SoftmaxLoss(Loss):
    """``logsumexp(a) - sum_k q_k a_k``, with q the target probabilities."""

    def best_constants(self, means: FloatArray) -> FloatArray:
        """Logarithms of the means, around 0."""
        logs = np.log(means)
        return np.asarray(logs - logs.mean())

    def values(self, scores: FloatArray) -> FloatArray:
        """Loss of each person."""
        return np.asarray(logsumexp(scores, axis=0) - (self.target * scores).sum(axis=0))

    def derivative(self, scores: FloatArray) -> FloatArray:
        """``softmax(a) - q``."""
        return np.asarray(softmax(scores, axis=0) - self.target)

    def curvature(self, scores: FloatArray, k: int, other: int) -> FloatArray:
        """``h_k (1[k = l] - h_l)``."""
        h = softmax(scores, axis=0)
        return np.asarray(h[k] * ((1.0 if k == other else 0.0) - h[other]))


class ProbitLoss(Loss):
    """``-q log Phi(a) - (1 - q) log Phi(-a)``."""

    def best_constants(self, means: FloatArray) -> FloatArray:
        """``Phi^-1`` of the mean."""
        return np.asarray(ndtri(means))

    def values(self, scores: FloatArray) -> FloatArray:
        """Loss of each person."""
        q, a = self.target[0], scores[0]
        return np.asarray(-q * log_ndtr(a) - (1 - q) * log_ndtr(-a))

    def derivative(self, scores: FloatArray) -> FloatArray:
        """``(1 - q) r(-a) - q r(a)``, with ``r = phi / Phi``."""
        return np.asarray((1 - self.target) * _mills(-scores) - self.target * _mills(scores))

    def curvature(self, scores: FloatArray, k: int, other: int) -> FloatArray:
        """``q r(a) (r(a) + a) + (1 - q) r(-a) (r(-a) - a)``, never negative."""
        q, a = self.target[0], scores[0]
        up, down = _mills(a), _mills(-a)
        return np.asarray(np.maximum(0.0, q * up * (up + a) + (1 - q) * down * (down - a)))


class SquaredLoss(Loss):
    """``(a - t)^2``."""

    def best_constants(self, means: FloatArray) -> FloatArray:
        """The mean."""
        return means

    def values(self, scores: FloatArray) -> FloatArray:
        """Loss of each person."""
        return np.asarray((scores[0] - self.target[0]) ** 2)

    def derivative(self, scores: FloatArray) -> FloatArray:
        """``2 (a - t)``."""
        return 2 * (scores - self.target)

    def curvature(self, scores: FloatArray, k: int, other: int) -> FloatArray:
        """2."""
        return np.full(scores.shape[1], 2.0)


@dataclass(frozen=True, eq=False)
class PartialLoss(Loss):
    """The loss of some functions' scores, which are added to the scores `held` of all of them."""

    whole: Loss
    held: FloatArray
    functions: list[int]

    def best_constants(self, means: FloatArray) -> FloatArray:
        """Constant scores of these functions alone."""
        return self.whole.best_constants(means)[self.functions]

    def _all(self, scores: FloatArray) -> FloatArray:
        out = self.held.copy()
        out[self.functions] += scores
        return out

    def values(self, scores: FloatArray) -> FloatArray:
        """Loss of each person."""
        return self.whole.values(self._all(scores))

    def derivative(self, scores: FloatArray) -> FloatArray:
        """First derivatives."""
        return self.whole.derivative(self._all(scores))[self.functions]

    def curvature(self, scores: FloatArray, k: int, other: int) -> FloatArray:
        """Second derivatives."""
        return self.whole.curvature(self._all(scores), self.functions[k], self.functions[other])


def _mills(a: FloatArray) -> FloatArray:
    """``phi(a) / Phi(a)``, in logarithms, so that it does not become 0 / 0 for very negative `a`."""
    return np.asarray(np.exp(-a * a / 2 - np.log(2 * np.pi) / 2 - log_ndtr(a)))


@dataclass(frozen=True, eq=False)
class Objective:
    """The function to minimise: mean loss plus the roughness of shapes.

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
        """Scores of all rows, shape (n_functions, n_samples), for variables of shape (n_functions, n_variables)."""
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
        """The best constant scores."""
        return self.loss.best_constants(self.mean_target())

    # Methods that depend on rows; sums are taken by block.

    def scores_at(self, slots: FloatArray) -> FloatArray:
        """Scores of all rows from the values at slots."""
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
        """Mean of the squared first derivatives, summed over functions."""
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
        """The same with at most `most` knots per column."""
        parts = [part.coarser(most) for part in self.layout.parts]
        return replace(self, layout=replace(self.layout, parts=parts))

    @property
    def shift(self) -> float:
        """Weight of the squared sum of intercepts."""
        # A softmax is invariant to a shift of all intercepts; this picks the solution centred at 0.
        return 1.0 if self.loss.n_functions > 1 else 0.0


def sum_parts(parts: list[Part], slots: FloatArray, n_jobs: int | None) -> FloatArray:
    """Scores of all rows from the values at slots, shapes (n_functions, n_slots) and (n_functions, n_samples)."""
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
    """These loops, compiled or plain, for `times` passes over the rows of all parts."""
    cells = times * len(parts) * len(parts[0].index)
    return [kernel("additive", name, cells) for name in names]


def _empty_slots(size: int) -> FloatArray:
    """Zeros for sums, with one extra slot that the loops may write to."""
    return np.zeros(size + 1)


def _threads_for(parts: list[Part], n_jobs: int | None) -> int | None:
    """One thread for few rows: starting threads would take longer than the work."""
    return 1 if len(parts[0].index) < _AT_ONCE else n_jobs
