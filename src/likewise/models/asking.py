"""What can be asked as a model: an estimator, or a plain function of rows."""

from __future__ import annotations

from typing import Any

from likewise.errors import InvalidTypeError
from likewise.metrics.abstract import Metric


def is_plain_function(name: str, model: Any, methods: tuple[str, ...] = ("predict",), cure: str = "") -> bool:
    """Whether the parameter `name` is a function of rows, and not an estimator; raise if it is neither."""
    if isinstance(model, type):
        raise InvalidTypeError(f"{name} must be an instance, not a class; use {model.__name__}().")
    if any(hasattr(model, method) for method in methods):
        return False
    if isinstance(model, Metric) or not callable(model) or hasattr(model, "fit"):
        raise InvalidTypeError(
            f"{name} must have {' or '.join(methods)}, or be a function of rows; got {type(model).__name__}."
            + (f" {cure}" if cure else "")
        )
    return True
