"""Comparisons with noise: logistic regression with non-negative weights, and its likelihood-ratio sets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import linprog
from scipy.special import expit, log_expit
from scipy.stats import chi2, norm

from likewise._typing import FloatArray
from likewise.design.judgements_polytope import Polytope
from likewise.exceptions import UnsolvedError

Smooth = Callable[[FloatArray], tuple[float, FloatArray, FloatArray]]
"""Value, gradient and Hessian of a convex function; the value is infinite outside its domain."""

_NOISE = (1e-2, 1e5)  # least and most noise of a judge, in points
_LARGEST = 1e4  # points; a weight that can reach it is unbounded
_ACCURACY = 1e-6  # of the ends of ranges, in points, and relative to larger ones
_MAX_STEPS = 2_000
_RIDGE = 1e-6  # picks one of the solutions that comparisons leave open
_RELAXED = 1e-5  # points, so that answers that fix a distance leave an interior


class ComparisonLikelihood:
    """Weights u in a polytope and a noise y, under ``P("a, b more alike than c, d") = sigma((D(c, d) - D(a, b)) / y)``.

    The log-likelihood ``L(u / y)`` is concave in ``u / y``, so ``y (L(u / y) - c)``, its perspective, is concave in
    (u, y), and ``{L >= c}`` is convex: each end of a range is one convex program, solved by a barrier method.

    Parameters
    ----------
    differences : ndarray of shape (n_comparisons, n_weights)
        Features of the pair said to be less alike, minus those of the other.
    polytope : Polytope
        Of the answers in points, which are taken as exact.
    target : ndarray of shape (n_weights,)
        Decides between weights of equal likelihood.

    Attributes
    ----------
    weights : ndarray
        Of maximum likelihood.
    noise : float
        In points: a difference of distances of 1.1 times the noise is seen in 3 of 4 answers.
    log_likelihood : float
    """

    def __init__(self, differences: FloatArray, polytope: Polytope, target: FloatArray) -> None:
        self._differences = differences
        d = differences.shape[1]
        upper = np.minimum(polytope.upper, _LARGEST)
        self._A = np.concatenate([polytope.rows, -np.eye(d), np.eye(d)])
        self._b = np.concatenate([polytope.relaxed_limits + _RELAXED, np.zeros(d), upper])
        self._total = polytope.total
        self._inside = self._interior()
        self._fit(target)

    def _interior(self) -> FloatArray:
        """Weights far from all limits, by linear programming."""
        norms = np.linalg.norm(self._A, axis=1)
        equal = None if self._total is None else np.append(self._total[0], 0.0)[None]
        found = linprog(
            np.append(np.zeros(self._A.shape[1]), -1.0),
            A_ub=np.column_stack([self._A, norms]),
            b_ub=self._b,
            A_eq=equal,
            b_eq=None if self._total is None else [self._total[1]],
            bounds=[(0.0, None)] * self._A.shape[1] + [(0.0, 10.0)],
            method="highs",
        )
        if found.x is None or found.x[-1] <= 0:
            raise UnsolvedError("The answers in points leave no room for the solver. Answer in whole points.")
        return np.asarray(found.x[:-1])

    def _fit(self, target: FloatArray) -> None:
        """Maximum likelihood over ``v = u / y`` and ``k = 1 / y``, where limits are linear: ``A v <= b k``."""
        G, d = self._differences, len(target)
        A, b = _with_range(np.column_stack([self._A, -self._b]), np.zeros(len(self._b)), 1 / _NOISE[1], 1 / _NOISE[0])
        pull = np.column_stack([np.eye(d), -target]) / np.maximum(target, 0.01 * max(1.0, target.max()))[:, None]

        def loss(z: FloatArray) -> tuple[float, FloatArray, FloatArray]:
            q, away = G @ z[:d], pull @ z
            value = -log_expit(q).sum() + _RIDGE * (away @ away)
            gradient = np.append(-G.T @ expit(-q), 0.0) + 2 * _RIDGE * pull.T @ away
            curved = np.zeros((d + 1, d + 1))
            curved[:d, :d] = (G * (expit(q) * expit(-q))[:, None]).T @ G
            return value, gradient, curved + 2 * _RIDGE * pull.T @ pull

        equal = None if self._total is None else np.append(self._total[0], -self._total[1])[None]
        z = np.append(self._inside, 1.0) / 10.0
        z = _barrier(loss, A, b, z, equal, accuracy=1e-7)
        self.weights, self.noise = z[:d] / z[d], float(1 / z[d])
        self.log_likelihood = float(log_expit(G @ z[:d]).sum())

    def least(self, feature: FloatArray, drop: float) -> float:
        """Smallest ``feature @ u`` where the log-likelihood is at most `drop` below its maximum."""
        G, d, least = self._differences, len(feature), self.log_likelihood - drop

        def cost(z: FloatArray) -> tuple[float, FloatArray, FloatArray]:
            return float(feature @ z[:d]), np.append(feature, 0.0), np.zeros((d + 1, d + 1))

        def inside(z: FloatArray) -> tuple[float, FloatArray, FloatArray]:
            y = z[d]
            q = G @ z[:d] / y
            ends = log_expit(q)
            room = ends.sum() - least  # the perspective is y * room
            if not room > 0:
                return np.inf, z, np.empty(0)
            first, second = expit(-q), -expit(q) * expit(-q)
            gradient = np.append(G.T @ first, room - q @ first)
            rows = np.column_stack([G, -q])
            curved = (rows * (second / y)[:, None]).T @ rows
            phi = y * room
            return -np.log(phi), -gradient / phi, np.outer(gradient, gradient) / phi**2 - curved / phi

        A, b = _with_range(np.column_stack([self._A, np.zeros(len(self._A))]), self._b, *_NOISE)
        equal = None if self._total is None else np.append(self._total[0], 0.0)[None]
        z = _barrier(cost, A, b, np.append(self.weights, self.noise), equal, accuracy=_ACCURACY, extra=inside)
        found = float(feature @ z[:d])
        return found - 2 * _ACCURACY * max(1.0, abs(found))  # the solver stays inside: ends are moved outwards

    def bounds(self, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Range of each weight, by a likelihood-ratio test at this confidence for each weight separately."""
        drop = float(chi2.ppf(confidence, 1)) / 2
        low = np.array([self.least(unit, drop) for unit in np.eye(len(self.weights))])
        high = np.array([-self.least(-unit, drop) for unit in np.eye(len(self.weights))])
        return _rounded(low), np.where(high > 0.9 * _LARGEST, np.inf, high)

    def lower_bounds(self, confidence: float) -> FloatArray:
        """Lower ends that hold for all weights at once, by Bonferroni's inequality over one-sided tests."""
        d = len(self.weights)
        drop = float(norm.ppf(1 - (1 - confidence) / d)) ** 2 / 2
        return _rounded(np.array([self.least(unit, drop) for unit in np.eye(d)]))


def _with_range(A: FloatArray, b: FloatArray, low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """The limits ``A z <= b``, and the last variable from `low` to `high`."""
    last = np.eye(A.shape[1])[-1]
    return np.concatenate([A, [last, -last]]), np.concatenate([b, [high, -low]])


def _rounded(low: FloatArray) -> FloatArray:
    """Lower ends, 0 where they differ from it by the accuracy of the solver only."""
    return np.where(low < 1e-4, 0.0, low)


def _barrier(
    cost: Smooth,
    A: FloatArray,
    b: FloatArray,
    z: FloatArray,
    equal: FloatArray | None,
    *,
    accuracy: float,
    extra: Smooth | None = None,
) -> FloatArray:
    """Minimise a convex cost under ``A z <= b`` and a barrier `extra`, from a point inside; `equal @ z` is kept."""
    basis = np.eye(len(z)) if equal is None else null_space(equal)
    steepness, n_limits = 1 / _LARGEST, len(b) + 1  # from the centre of all that is allowed
    while True:
        z = _newton(partial(_centred, cost=cost, steepness=steepness, A=A, b=b, extra=extra), z, basis)
        if n_limits / steepness < accuracy * max(1.0, abs(cost(z)[0])):
            return z
        steepness *= 20


def _centred(
    z: FloatArray, cost: Smooth, steepness: float, A: FloatArray, b: FloatArray, extra: Smooth | None
) -> tuple[float, FloatArray, FloatArray]:
    room = b - A @ z
    if not (room > 0).all():
        return np.inf, z, np.empty(0)
    value, gradient, curved = cost(z)
    value, gradient, curved = steepness * value, steepness * gradient, steepness * curved
    if extra is not None:
        more, slope, bend = extra(z)
        if more == np.inf:
            return np.inf, z, np.empty(0)
        value, gradient, curved = value + more, gradient + slope, curved + bend
    scaled = A / room[:, None]
    return value - np.log(room).sum(), gradient + scaled.sum(axis=0), curved + scaled.T @ scaled


def _newton(function: Smooth, z: FloatArray, basis: FloatArray) -> FloatArray:
    """Minimise by Newton's method with halved steps."""
    value, gradient, curved = function(z)
    for _ in range(_MAX_STEPS):
        slope, bend = basis.T @ gradient, basis.T @ curved @ basis
        size = 1 / np.sqrt(np.maximum(np.diag(bend), 1e-300))
        step = basis @ (size * np.linalg.lstsq(bend * size * size[:, None], -size * slope, rcond=1e-14)[0])
        decrease = -float(gradient @ step)
        if decrease < 1e-5:
            return z
        length = 1.0
        while length > 1e-12:
            there = function(z + length * step)
            if there[0] <= value - 0.1 * length * decrease:
                break
            length /= 2
        else:
            if decrease < 1e-2:  # to the accuracy of floating point
                return z
            break
        z = z + length * step
        value, gradient, curved = there
    raise UnsolvedError("The solver failed on the comparisons. Rescale columns whose values are extremely large.")
