"""Linear classifiers under Gaussian noise, in closed form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtr
from sklearn import linear_model
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.svm import LinearSVC

from likewise._frozen import Frozen
from likewise._typing import BoolArray, FloatArray
from likewise.enforce.additive.shapes import dual
from likewise.enforce.smoothing.bank import Bank
from likewise.enforce.smoothing.noises import Gaussian
from likewise.guarantees.curves import round_down
from likewise.metrics.distance import lp_norm
from likewise.models.unwrapping import affine_map, last_step

# Their `predict` is the sign of `coef_ @ x + intercept_`; a subclass may do anything.
_NAMES = (
    "LogisticRegression",
    "LogisticRegressionCV",
    "Perceptron",
    "RidgeClassifier",
    "RidgeClassifierCV",
    "SGDClassifier",
)
LINEAR_CLASSIFIERS = {LinearDiscriminantAnalysis, LinearSVC, *(getattr(linear_model, name) for name in _NAMES)}

_PRODUCTS_AT_ONCE = 2**22
_ROUNDING = 2.0**-40  # more than the errors of a norm, and of an average of probabilities
_HALVINGS = 200


@dataclass(frozen=True, eq=False)
class LinearVotes(Frozen):
    """``h(x)[1] = E_b Phi((beta . x + intercept + b) / ||beta * sigma||)``.

    The margin of ``x + t`` is Gaussian. b is what the columns of weight 0 add, over the training rows.

    Attributes
    ----------
    visible : ndarray of bool, shape (n_features,)
    beta : ndarray of shape (n_visible,)
    sigma : float
        Standard deviation of the margin under the noise.
    slope : float
        Most that ``beta . x`` moves per unit of distance, rounded upwards.
    offsets, weights : ndarray of shape (n_offsets,)
        Different values of ``intercept + b``, and their shares.
    """

    visible: BoolArray
    beta: FloatArray
    sigma: float
    slope: float
    offsets: FloatArray
    weights: FloatArray

    @classmethod
    def from_model(cls, model: Any, bank: Bank) -> LinearVotes | None:
        """Read the model; None if it has not two classes, or its noise is not Gaussian."""
        linear, noise = last_step(model), bank.noise
        if type(linear) not in LINEAR_CLASSIFIERS or type(noise) is not Gaussian or len(linear.classes_) != 2:
            return None
        factor, shift = affine_map(model, noise.metric.n_features)
        coef = np.asarray(linear.coef_, dtype=np.float64).ravel()
        beta, visible = coef * factor, noise.visible
        sigma = float(np.linalg.norm(beta * noise.widths * Gaussian.SIGMA))
        # sum |beta_i| |x_i - x'_i| <= ||beta / s||_q ||s (x - x')||_p, by Hölder's inequality.
        slope = float(lp_norm(beta[visible] / noise.metric.scales[visible], dual(noise.metric.p))) * (1 + _ROUNDING)
        offset = float(coef @ shift) + float(np.ravel(linear.intercept_)[0])
        hidden = bank.background @ beta[~visible]
        offsets, counts = np.unique(hidden, return_counts=True)
        return cls(visible, beta[visible], sigma, slope, offset + offsets, counts / counts.sum())

    def mean_votes(self, X: FloatArray, n_jobs: int | None = None) -> FloatArray:
        """Probabilities of both classes, shape (n_samples, 2)."""
        upper = np.empty(len(X))
        rows = max(1, _PRODUCTS_AT_ONCE // len(self.offsets))
        for start in range(0, len(X), rows):
            upper[start : start + rows] = self._share(self._parts(X[start : start + rows]).sum(axis=1))
        upper = np.clip(upper, 0.0, 1.0)
        return np.stack([1 - upper, upper], axis=1)

    def distance_to_tie(self, X: FloatArray) -> FloatArray:
        """Distance of each person from the nearest one for whom both classes are equally likely, rounded down.

        h rises with ``beta . x`` alone, so a tie is at one value of that. `docs/theory.md` §10.
        """
        low, high = self._tie
        parts = self._parts(X)
        products, size = parts.sum(axis=1), np.abs(parts).sum(axis=1)
        # A sum of d products is off by less than d + 1 units in the last place of their sizes; some more is left.
        error = 4 * (self.beta.size + 1) * np.finfo(np.float64).eps * (size + max(abs(low), abs(high)))
        gap = np.maximum(0.0, np.maximum(products - high, low - products) - error)
        if self.slope == 0:  # nobody is told from anybody
            return np.full(len(X), np.inf)
        return round_down(gap / self.slope)

    @cached_property
    def _tie(self) -> tuple[float, float]:
        """Two values of ``beta . x``: h is below 1/2 up to the first, and above from the second on."""
        room = 1 + 40 * self.sigma + _ROUNDING * float(np.abs(self.offsets).max())
        ends = -float(self.offsets.max()) - room, -float(self.offsets.min()) + room
        return (
            _last_below(lambda m: self._share(m) <= 0.5 - _ROUNDING, *ends),
            -_last_below(lambda m: self._share(-m) >= 0.5 + _ROUNDING, -ends[1], -ends[0]),
        )

    def _parts(self, X: FloatArray) -> FloatArray:
        # Added up by row: a matrix product may round differently by position.
        return np.asarray(X[:, self.visible] * self.beta)

    def _share(self, products: FloatArray) -> FloatArray:
        """Probability of the second class, for values of ``beta . x``."""
        margin = products[:, None] + self.offsets
        share = ndtr(margin / self.sigma) if self.sigma > 0 else (margin > 0).astype(np.float64)
        return np.asarray((share * self.weights).sum(axis=1))


def _last_below(holds: Callable[[FloatArray], Any], low: float, high: float) -> float:
    """About the largest number up to which a condition holds: it holds at `low`, where it is true to begin with."""
    for _ in range(_HALVINGS):
        middle = low + (high - low) / 2
        if holds(np.array([middle]))[0]:
            low = middle
        else:
            high = middle
    return low
