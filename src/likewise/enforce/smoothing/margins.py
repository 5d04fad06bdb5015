"""Linear classifiers under Gaussian noise, in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr
from sklearn import linear_model
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.svm import LinearSVC

from likewise._typing import BoolArray, FloatArray
from likewise.enforce.smoothing.bank import Bank
from likewise.enforce.smoothing.noises import Gaussian
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


@dataclass(frozen=True, eq=False)
class LinearVotes:
    """``h(x)[1] = E_b Phi((beta . x + intercept + b) / ||beta * sigma||)``.

    The margin of ``x + t`` is Gaussian. b is what the columns of weight 0 add, over the training rows.
    """

    visible: BoolArray
    beta: FloatArray
    sigma: float
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
        offset = float(coef @ shift) + float(np.ravel(linear.intercept_)[0])
        hidden = bank.background @ beta[~visible]
        offsets, counts = np.unique(hidden, return_counts=True)
        return cls(visible, beta[visible], sigma, offset + offsets, counts / counts.sum())

    def mean_votes(self, X: FloatArray, n_jobs: int | None = None) -> FloatArray:
        """Probabilities of both classes, shape (n_samples, 2)."""
        upper = np.empty(len(X))
        rows = max(1, _PRODUCTS_AT_ONCE // len(self.offsets))
        for start in range(0, len(X), rows):
            # A sum over the features of each row by itself: a matrix product may round differently by position.
            margin = (X[start : start + rows, self.visible] * self.beta).sum(axis=1)[:, None] + self.offsets
            share = ndtr(margin / self.sigma) if self.sigma > 0 else (margin > 0).astype(np.float64)
            upper[start : start + rows] = (share * self.weights).sum(axis=1)
        upper = np.clip(upper, 0.0, 1.0)
        return np.stack([1 - upper, upper], axis=1)
