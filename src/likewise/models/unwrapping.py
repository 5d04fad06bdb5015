"""Scalers in front of a model, folded into one affine map."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from likewise._typing import FloatArray


def last_step(model: Any) -> Any:
    """The model behind any number of scalers (fitted or not), or the model itself."""
    while True:
        if type(model) is FrozenEstimator:
            model = model.estimator
        elif type(model) is Pipeline and all(_is_affine(step) for _, step in model.steps[:-1]):
            model = model.steps[-1][1]
        else:
            return model


def affine_map(model: Any, n_features: int) -> tuple[FloatArray, FloatArray]:
    """Factor and shift per feature of what happens to a row before it reaches `last_step(model)`.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from sklearn.pipeline import make_pipeline
    >>> model = make_pipeline(MinMaxScaler(), DecisionTreeRegressor()).fit([[10.0], [20.0]], [0, 1])
    >>> affine_map(model, 1)
    (array([0.1]), array([-1.]))
    """
    factor, shift = np.ones(n_features), np.zeros(n_features)
    while True:
        if type(model) is FrozenEstimator:
            model = model.estimator
        elif type(model) is Pipeline and all(_is_affine(step) for _, step in model.steps[:-1]):
            for _, step in model.steps[:-1]:
                a, b = _factor_and_shift(step)
                factor, shift = factor * a, shift * a + b
            model = model.steps[-1][1]
        else:
            return factor, shift


def _is_affine(step: Any) -> bool:
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return True
    if type(step) is MinMaxScaler:
        return not step.clip
    return type(step) in (StandardScaler, RobustScaler, MaxAbsScaler)


def _factor_and_shift(step: Any) -> tuple[Any, Any]:
    if step is None or isinstance(step, str):
        return 1.0, 0.0
    if isinstance(step, MinMaxScaler):
        return step.scale_, step.min_
    if isinstance(step, MaxAbsScaler):
        return 1 / step.scale_, 0.0
    if isinstance(step, StandardScaler):
        centre = step.mean_ if step.with_mean else 0.0
        scale = step.scale_ if step.with_std else 1.0
    else:
        centre = step.center_ if step.with_centering else 0.0
        scale = step.scale_ if step.with_scaling else 1.0
    return 1 / scale, -centre / scale
