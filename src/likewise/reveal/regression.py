"""Deriving a metric from data by the paper's recipe: the coefficients of a linear model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_X_y

from likewise._parallel import threads_for
from likewise._typing import FloatArray
from likewise._validation import check_size, checking
from likewise.exceptions import InvalidInputError
from likewise.kernel.schema import labels_of
from likewise.metrics.weighted_lp import WeightedLp


def linear_metric(X: Any, y: Any, p: float = 1) -> WeightedLp:
    """Derive a metric from data by the paper's recipe: the coefficients of a linear model.

    ``w_i = v_i / sd_i^p`` per unit of `X`, where ``v_i`` is ``|coef_i|`` of a logistic regression (a ridge regression
    if `y` is continuous) on standardised features, scaled to mean 1, and ``sd_i`` the standard deviation of the
    feature (not raised to a power for ``p = inf``). With several classes, ``|coef_i|`` is the largest difference of the
    coefficients between classes. A feature that never varies gets 0.

    So the distances are those of the paper, which standardises features first, in units that people can discuss. The
    mean of 1 is the paper's convention, not a choice of how strict to be: `WeightedLp.scaled` sets the strictness.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    p : float, default=1

    Examples
    --------
    >>> X = [[0, 5, 1], [1000, 5, 2], [2000, 5, 1], [3000, 5, 2]]  # dollars, a constant, a small number
    >>> metric = linear_metric(X, [0, 0, 1, 1])
    >>> metric.weights.round(5)
    array([0.00223, 0.     , 1.0116 ])
    >>> float(np.mean(metric.weights * np.std(X, axis=0)).round(9))
    1.0
    """
    names = labels_of(X)
    with checking():
        X, y = check_X_y(X, y, dtype=np.float64)
    check_size(X, names or range(X.shape[1]))
    if len(np.unique(y)) < 2:
        raise InvalidInputError(f"y must hold at least two different outcomes; got only {y[0]!r}.")
    shape = WeightedLp(np.ones(X.shape[1]), p, feature_names=names)  # checks p
    power = 1.0 if np.isinf(shape.p) else shape.p
    with np.errstate(
        over="ignore", invalid="ignore", divide="ignore"
    ):  # non-numeric weights raise an error that names the parameter
        weights = linear_weights(X, y, classify=type_of_target(y) != "continuous", power=power)
    return WeightedLp(weights, shape.p, feature_names=names)


def linear_weights(
    X: FloatArray,
    y: npt.NDArray[Any],
    *,
    classify: bool,
    power: float = 1.0,
    sample_weight: FloatArray | None = None,
) -> FloatArray:
    """Weights of `linear_metric` per unit of `X` to the given power; not all of them are 0."""
    scaler = StandardScaler().fit(X, sample_weight=sample_weight)
    model = LogisticRegression(max_iter=10_000) if classify else Ridge()
    with threads_for(X.size):
        coef = np.atleast_2d(model.fit(scaler.transform(X), y, sample_weight=sample_weight).coef_)
    spread = np.abs(coef[0]) if len(coef) == 1 else coef.max(axis=0) - coef.min(axis=0)
    # A feature that never varies gets a coefficient of rounding noise.
    standard = np.where(scaler.var_ > 0, spread, 0.0)
    if not standard.any():
        raise InvalidInputError("y does not vary with any feature of X, so no metric can be derived. Give a metric.")
    standard /= standard.max()  # tiny coefficients would be lost in their mean
    return np.asarray(standard / standard.mean() / scaler.scale_**power)
