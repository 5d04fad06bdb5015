"""Maps from scores to probabilities that are nowhere steeper than the promise allows.

Scores u have one column per class, and every difference ``u_k - u_l`` moves by at most ``4 D`` between two people
(`Curve.scores`). What a map makes of them moves by at most D: `docs/theory.md` §14 has the proofs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from likewise._typing import FloatArray, IntArray
from likewise.enforce.links import Tanh
from likewise.enforce.recalibration.chain import closest_rises
from likewise.guarantees.curves import Curve

_MOST_KNOTS = 500
_SAME = 1e-9  # scores that are closer are one


class GentleMap(ABC):
    """From scores of shape (n_samples, n_classes) to probabilities."""

    curve: Curve
    """What is promised of the probabilities, if the scores move by at most 4 D."""

    @abstractmethod
    def __call__(self, scores: FloatArray) -> FloatArray:
        """Probabilities of shape (n_samples, n_classes)."""


@dataclass(frozen=True, eq=False)
class PlattMap(GentleMap):
    """``softmax(slope * u + shifts)``, ``0 <= slope <= 1``: for two classes ``sigma(slope * (u_1 - u_0) + shift)``.

    Attributes
    ----------
    slope : float
    shifts : ndarray of shape (n_classes,)
    """

    slope: float
    shifts: FloatArray

    curve = Tanh()

    @classmethod
    def fit(cls, scores: FloatArray, codes: IntArray, weights: FloatArray) -> PlattMap:
        """The most likely one; a convex problem with one limit."""
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
class RisingMap(GentleMap):
    """Piecewise linear in ``z = (u_1 - u_0) / 4``, rising, with slopes of at most 1; constant outside its knots.

    Attributes
    ----------
    knots, values : ndarray of shape (n_knots,)
    """

    knots: FloatArray
    values: FloatArray

    curve = Curve()

    @classmethod
    def fit(cls, scores: FloatArray, codes: IntArray, weights: FloatArray) -> RisingMap:
        """The one with the smallest squared error."""
        z = _halfway(scores)
        groups = _groups(z, weights)
        totals = np.bincount(groups, weights).astype(np.float64)
        knots = np.bincount(groups, weights * z) / totals
        means = np.bincount(groups, weights * codes) / totals
        return cls(knots, below_slope_one(knots, closest_rises(means, totals, np.diff(knots))))

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Probabilities of both classes."""
        second = np.interp(_halfway(scores), self.knots, self.values)
        return np.column_stack([1 - second, second])


MAPS: dict[str, type[PlattMap] | type[RisingMap]] = {"isotonic": RisingMap, "sigmoid": PlattMap}


def below_slope_one(knots: FloatArray, values: FloatArray) -> FloatArray:
    """The values with every rise cut to its gap: the promise holds for what is stored, however it was found."""
    rises = np.clip(np.diff(values), 0.0, np.diff(knots) * (1 - 1e-12))  # what rounding adds is less than this
    return np.asarray(np.clip(values[0] + np.concatenate([[0.0], np.cumsum(rises)]), 0.0, 1.0))


def _halfway(scores: FloatArray) -> FloatArray:
    return np.asarray((scores[:, 1] - scores[:, 0]) / 4)


def _groups(z: FloatArray, weights: FloatArray) -> IntArray:
    """A number for each person: who has nearly the same score is together, and there are `_MOST_KNOTS` at most."""
    levels, where = np.unique(np.rint(z / _SAME), return_inverse=True)
    if len(levels) > _MOST_KNOTS:
        before = np.cumsum(np.bincount(where, weights)) / weights.sum()
        where = (before * (_MOST_KNOTS - 1)).astype(np.int64)[where]
    return np.asarray(np.unique(where, return_inverse=True)[1], dtype=np.int64)
