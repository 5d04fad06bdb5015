"""What stands in front of a model: pipelines and frozen estimators opened, scalers folded into one affine map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from likewise._typing import FloatArray


def unwrap(model: Any) -> tuple[list[Any], Any]:
    """The steps in front of a model, and the model itself.

    Frozen estimators are opened, pipelines inside pipelines laid out flat, and steps that do nothing left out. A
    subclass of either may do anything, and is left closed.

    Returns
    -------
    steps : list
    last : object
        None if every step does nothing.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> unwrap(make_pipeline("passthrough", FrozenEstimator(make_pipeline(MinMaxScaler(), Ridge()))))
    ([MinMaxScaler()], Ridge())
    """
    *steps, last = (*_parts(model),) or (None,)
    return steps, last


def _parts(model: Any) -> Iterator[Any]:
    if type(model) is FrozenEstimator:
        yield from _parts(model.estimator)
    elif type(model) is Pipeline:
        for _, step in model.steps:
            yield from _parts(step)
    elif model is not None and not (isinstance(model, str) and model == "passthrough"):
        yield model


def last_step(model: Any) -> Any:
    """The model behind any number of scalers (fitted or not), or the model itself."""
    steps, last = unwrap(model)
    return last if all(map(_is_affine, steps)) else model


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
    steps, _ = unwrap(model)
    if all(map(_is_affine, steps)):
        for step in steps:
            a, b = factor_and_shift(step)
            factor, shift = factor * a, shift * a + b
    return factor, shift


def is_scaler(step: Any) -> bool:
    """Whether a step multiplies each column by a factor and adds a shift, unless it clips."""
    return type(step) in (StandardScaler, RobustScaler, MaxAbsScaler, MinMaxScaler)


def _is_affine(step: Any) -> bool:
    return is_scaler(step) and not getattr(step, "clip", False)


def factor_and_shift(step: Any) -> tuple[Any, Any]:
    """Factor and shift per column of a fitted scaler."""
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
