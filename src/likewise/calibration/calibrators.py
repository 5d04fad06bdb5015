"""Calibrators, from scores to probabilities, with bounded slopes.

Scores u have one column per class, and every difference ``u_k - u_l`` changes by at most ``4 D`` between two people
(`Bound.scores`). The calibrated probabilities change by at most D (proofs: `docs/theory.md` §14).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from likewise._typing import FloatArray, IntArray


def bounded_isotonic_fit(targets: FloatArray, weights: FloatArray, most: FloatArray) -> FloatArray:
    """``min sum_i w_i (c_i - t_i)^2`` under ``0 <= c_(i+1) - c_i <= most_i``; exact, by dynamic programming.

    Let ``f_i(c)`` be the minimal cost of the first i values if the i-th is c. Its derivative is piecewise linear and
    increasing. Allowing the next value to be up to ``most_i`` larger inserts a flat piece of that length at the root of
    the derivative and shifts everything above it; then the derivative of the next term is added. The root is the best
    last value. Backwards, each value is its own root, clipped to the limits set by its successor.

    Parameters
    ----------
    targets, weights : ndarray of shape (n,)
        Weights are positive.
    most : ndarray of shape (n - 1,)
        Positive.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> bounded_isotonic_fit(np.array([0.0, 1.0, 0.0]), np.ones(3), np.array([0.3, 5.0]))
    array([0.13333333, 0.43333333, 0.43333333])
    """
    places, slopes = np.array([targets[0]]), np.array([0.0])  # the derivative at its breakpoints
    outer = 2 * weights[0]  # its slope beyond them
    best = np.empty(len(targets))
    best[0] = targets[0]
    for i in range(1, len(targets)):
        low = int(np.searchsorted(slopes, 0.0))
        places = np.concatenate([places[:low], [best[i - 1], best[i - 1] + most[i - 1]], places[low:] + most[i - 1]])
        slopes = np.concatenate([slopes[:low], [0.0, 0.0], slopes[low:]])
        slopes = slopes + 2 * weights[i] * (places - targets[i])
        outer += 2 * weights[i]
        best[i] = _root(places, slopes, outer)
    values = best.copy()
    for i in range(len(targets) - 2, -1, -1):
        values[i] = min(max(best[i], values[i + 1] - most[i]), values[i + 1])
    return values


def _root(places: FloatArray, slopes: FloatArray, outer: float) -> float:
    """Root of an increasing piecewise linear function."""
    k = int(np.searchsorted(slopes, 0.0))
    if k == 0:
        return float(places[0] - slopes[0] / outer)
    if k == len(places):
        return float(places[-1] - slopes[-1] / outer)
    share = slopes[k] / (slopes[k] - slopes[k - 1])
    return float(places[k] - share * (places[k] - places[k - 1]))


_MAX_KNOTS = 500
_SAME = 1e-9  # scores closer than this are merged


class Calibrator(ABC):
    """From scores of shape (n_samples, n_classes) to probabilities."""

    kind: str
    """The theorem that it falls under (`likewise.kernel.rules.calibrated`)."""

    @property
    @abstractmethod
    def numbers(self) -> tuple[FloatArray, FloatArray]:
        """All that it consists of: knots and values, or slope and shifts."""

    @abstractmethod
    def __call__(self, scores: FloatArray) -> FloatArray:
        """Probabilities of shape (n_samples, n_classes)."""


@dataclass(frozen=True, eq=False)
class PlattCalibrator(Calibrator):
    """``softmax(slope * u + shifts)``, ``0 <= slope <= 1``: for two classes ``sigma(slope * (u_1 - u_0) + shift)``.

    Attributes
    ----------
    slope : float
    shifts : ndarray of shape (n_classes,)
    """

    slope: float
    shifts: FloatArray

    kind = "sigmoid"

    @property
    def numbers(self) -> tuple[FloatArray, FloatArray]:
        """Slope and shifts."""
        return np.array([self.slope]), self.shifts

    @classmethod
    def fit(cls, scores: FloatArray, codes: IntArray, weights: FloatArray) -> PlattCalibrator:
        """Maximum likelihood: a convex problem with one bound."""
        m = scores.shape[1]
        outcomes, shares = np.eye(m)[codes], weights / weights.sum()

        def loss(x: FloatArray) -> tuple[float, FloatArray]:
            logits = x[0] * scores + np.array([0.0, *x[1:]])
            errors = shares[:, None] * (softmax(logits, axis=1) - outcomes)
            value = shares @ (logsumexp(logits, axis=1) - (logits * outcomes).sum(axis=1))
            return float(value), np.array([(errors * scores).sum(), *errors.sum(axis=0)[1:]])

        found = minimize(
            loss,
            np.array([1.0, *np.zeros(m - 1)]),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, 1.0)] + [(None, None)] * (m - 1),
            options={"ftol": 1e-14, "gtol": 1e-9},
        )
        return cls(float(np.clip(found.x[0], 0.0, 1.0)), np.array([0.0, *found.x[1:]]))

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Probabilities of every class."""
        return np.asarray(softmax(self.slope * scores + self.shifts, axis=1))


@dataclass(frozen=True, eq=False)
class IsotonicCalibrator(Calibrator):
    """Increasing and piecewise linear in ``z = (u_1 - u_0) / 4``, with slopes of at most 1; constant outside the knots.

    Attributes
    ----------
    knots, values : ndarray of shape (n_knots,)
    """

    knots: FloatArray
    values: FloatArray

    kind = "isotonic"

    @property
    def numbers(self) -> tuple[FloatArray, FloatArray]:
        """Knots and values."""
        return self.knots, self.values

    @classmethod
    def fit(cls, scores: FloatArray, codes: IntArray, weights: FloatArray) -> IsotonicCalibrator:
        """Least squares."""
        z = _score_of_second(scores)
        groups = _groups(z, weights)
        totals = np.bincount(groups, weights).astype(np.float64)
        knots = np.bincount(groups, weights * z) / totals
        means = np.bincount(groups, weights * codes) / totals
        return cls(knots, below_slope_one(knots, bounded_isotonic_fit(means, totals, np.diff(knots))))

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Probabilities of both classes."""
        second = np.interp(_score_of_second(scores), self.knots, self.values)
        return np.column_stack([1 - second, second])


MAPS: dict[str, type[PlattCalibrator] | type[IsotonicCalibrator]] = {
    "isotonic": IsotonicCalibrator,
    "sigmoid": PlattCalibrator,
}


def below_slope_one(knots: FloatArray, values: FloatArray) -> FloatArray:
    """Clip every slope to 1: the guarantee holds for the stored values, however they were found."""
    rises = np.clip(np.diff(values), 0.0, np.diff(knots) * (1 - 1e-12))  # a margin above the rounding error
    return np.asarray(np.clip(values[0] + np.concatenate([[0.0], np.cumsum(rises)]), 0.0, 1.0))


def _score_of_second(scores: FloatArray) -> FloatArray:
    return np.asarray((scores[:, 1] - scores[:, 0]) / 4)


def _groups(z: FloatArray, weights: FloatArray) -> IntArray:
    """Group index per person, by (nearly) equal score; at most `_MAX_KNOTS` groups of similar weight."""
    levels, where = np.unique(np.rint(z / _SAME), return_inverse=True)
    if len(levels) > _MAX_KNOTS:
        before = np.cumsum(np.bincount(where, weights)) / weights.sum()
        where = (before * (_MAX_KNOTS - 1)).astype(np.int64)[where]
    return np.asarray(np.unique(where, return_inverse=True)[1], dtype=np.int64)
