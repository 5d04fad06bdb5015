"""What is said where no anchor is near: a base that is itself within the metric."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy.typing as npt
from sklearn.frozen import FrozenEstimator

from likewise._rules import in_a_line
from likewise._typing import FloatArray
from likewise.enforce.base import Enforced
from likewise.errors import InvalidInputError, InvalidTypeError
from likewise.guarantees.vacuity import said_once
from likewise.metrics.abstract import Metric
from likewise.metrics.people import People

_MOST_VARIABLES = 900


def default_base(metric: Metric, n_columns: int, *, classify: bool) -> Any:
    """An additive model; None for a metric without weights, for which there is none."""
    if not metric.has_weights:
        return None
    from likewise.enforce.additive.additive_models import AdditiveClassifier, AdditiveRegressor

    knots = max(2, min(32, _MOST_VARIABLES // n_columns))  # it is fitted several times: wide tables get coarser shapes
    return (AdditiveClassifier if classify else AdditiveRegressor)(metric, max_knots=knots)


def fitted_base(
    base: Any,
    people: People,
    y: npt.NDArray[Any],
    weights: FloatArray | None,
    metric: Metric,
    limits: tuple[float, float],
) -> Any:
    """A number as a share of the limits, or an estimator that is within the metric, fitted; others are refused.

    A `FrozenEstimator` is taken as it is. Another estimator is fitted for the metric, and for the limits if it predicts
    numbers.
    """
    if isinstance(base, Real) and not isinstance(base, bool):
        number: Any = base
        low, high = limits
        if not low <= number <= high:
            raise InvalidInputError(f"base must lie within the outputs, {low:g} to {high:g}; got {in_a_line(base)}.")
        return (float(number) - low) / (high - low)
    if isinstance(base, FrozenEstimator):
        model: Any = base.estimator
    elif isinstance(base, Enforced):
        if base.metric is not None and base.metric != metric:
            raise InvalidInputError(
                f"base must have the same metric, {metric!r}; it has {base.metric!r}. Leave it out there."
            )
        model = base.with_metric(metric)
        if "output_range" in model.get_params():
            model.set_params(output_range=limits)
        with said_once():
            model = model.fit(people.table, y) if weights is None else model.fit(people.table, y, sample_weight=weights)
    else:
        raise InvalidTypeError(
            "base must be None, a number, or an estimator that is within the metric, such as AdditiveClassifier; got "
            f"{type(base).__name__}. Wrap a fitted one in FrozenEstimator."
        )
    _check_promise(model, metric, limits)
    return model


def _check_promise(model: Any, metric: Metric, limits: tuple[float, float]) -> None:
    """Raise unless the outputs move by at most D, in units of the limits, with certainty."""
    guarantee = getattr(model, "guarantee_", None)
    if guarantee is None:
        raise InvalidTypeError(
            f"base must make a promise (guarantee_), as AdditiveClassifier does; {type(model).__name__} does not."
        )
    if guarantee.metric != metric:
        raise InvalidInputError(f"base must have the same metric, {metric!r}; it has {guarantee.metric!r}.")
    if guarantee.epsilon > 0 or guarantee.delta > 0:
        raise InvalidInputError(
            f"base must be within the metric exactly; its outputs may differ by D + {guarantee.epsilon:.3g}. Use one "
            "that is so by construction, such as AdditiveClassifier."
        )
    if (guarantee.output_range or (0.0, 1.0)) != limits:
        raise InvalidInputError(f"base must have the same output_range, {limits}; it has {guarantee.output_range}.")
