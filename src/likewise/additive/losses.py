"""What fitting minimises: a convex loss of the score, with its first and second derivatives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, log_ndtr, logit, logsumexp, ndtri, softmax

from likewise._typing import FloatArray


@dataclass(frozen=True, eq=False)
class Loss(ABC):
    """A loss of scores, person by person.

    Attributes
    ----------
    target : ndarray of shape (n_functions, n_samples)
        Targets: probabilities of the classes, or values around 0.
    """

    target: FloatArray

    of_classes: ClassVar[bool] = True

    @property
    def n_functions(self) -> int:
        """How many additive functions are fitted."""
        return len(self.target)

    @abstractmethod
    def best_constants(self, means: FloatArray) -> FloatArray:
        """Scores with the smallest loss among those that are the same for everyone, from the means of targets."""

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

    of_classes: ClassVar[bool] = False

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
        """Those of these functions, among the whole's."""
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
    """``phi(a) / Phi(a)``, in logarithms, so that it does not become 0 / 0 far out."""
    return np.asarray(np.exp(-a * a / 2 - np.log(2 * np.pi) / 2 - log_ndtr(a)))
