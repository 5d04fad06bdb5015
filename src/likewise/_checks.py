"""Checks of single parameters; each error names the parameter, the rule, what was given, and the cure."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from likewise.errors import InvalidInputError


def check_count(name: str, value: Any, *, least: int = 1, cure: str = "") -> int:
    """Return `value` as an int if it is a whole number >= `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InvalidInputError(_message(name, f"a whole number >= {least}", value, cure))
    return int(value)


def check_positive(name: str, value: Any, *, cure: str = "") -> float:
    """Return `value` as a float if it is a positive finite number."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise InvalidInputError(_message(name, "a positive finite number", value, cure))
    return float(value)


def check_probability(name: str, value: Any, *, cure: str = "") -> float:
    """Return `value` as a float if it is strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise InvalidInputError(_message(name, "a number strictly between 0 and 1", value, cure))
    return float(value)


def check_output_range(output_range: Any) -> tuple[float, float]:
    """Return the limits if they are two finite numbers, the lowest first."""
    try:
        low, high = (float(limit) for limit in output_range)
    except (TypeError, ValueError):
        raise InvalidInputError(f"output_range must be two numbers (lowest, highest); got {output_range!r}.") from None
    if not (np.isfinite([low, high]).all() and low < high):
        raise InvalidInputError(f"output_range must be finite, the lowest first; got {output_range!r}.")
    return low, high


def _message(name: str, rule: str, value: Any, cure: str) -> str:
    return f"{name} must be {rule}; got {value!r}." + (f" {cure}" if cure else "")
