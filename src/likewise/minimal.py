"""Reading a metric off a model or off data."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_X_y

from likewise.metrics import FloatArray, WeightedLp


def linear_metric(X: Any, y: Any, p: float = 1) -> WeightedLp:
    """Derive a metric from data by the paper's recipe: the coefficients of a linear model.

    Weights are ``|coef|`` of a logistic regression (a ridge regression if `y` is continuous), scaled to mean 1.
    With several classes, the weight of a feature is the largest difference of its coefficients between classes.

    The linear model sees standardised features, and its coefficients are turned back into units of `X`. The
    mean of 1 is a convention, not a choice of how strict to be: pass standardised features as in the paper, or
    use `WeightedLp.scaled` to set the strictness.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    p : float, default=1

    Examples
    --------
    >>> X = [[0, 5, 1], [1, 5, 2], [2, 5, 1], [3, 5, 2]]
    >>> linear_metric(X, [0, 0, 1, 1]).weights.round(1)
    array([2.1, 0. , 0.9])
    """
    names = list(X.columns) if hasattr(X, "columns") else None
    X, y = check_X_y(X, y, dtype=np.float64)
    weights = linear_weights(X, y, classify=type_of_target(y) != "continuous")
    return WeightedLp(weights, p, feature_names=names).normalized()


def linear_weights(X: FloatArray, y: npt.NDArray[Any], *, classify: bool) -> FloatArray:
    """Absolute coefficients of a linear model per unit of `X`, not all of them 0."""
    scaler = StandardScaler().fit(X)
    model = LogisticRegression(max_iter=10_000) if classify else Ridge()
    coef = np.atleast_2d(model.fit(scaler.transform(X), y).coef_)
    spread = np.abs(coef[0]) if len(coef) == 1 else coef.max(axis=0) - coef.min(axis=0)
    # A feature that never varies gets a coefficient of rounding noise.
    weights = np.where(scaler.var_ > 0, spread / scaler.scale_, 0.0)
    if not weights.any():
        raise ValueError("y does not vary with any feature of X, so no metric can be derived. Give a metric.")
    return weights
