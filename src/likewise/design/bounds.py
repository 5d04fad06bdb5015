"""What people have said about weights before any is designed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from likewise._typing import BoolArray, FloatArray
from likewise._validation import NON_NEGATIVE, short_repr
from likewise.design.joint import WeightBounds
from likewise.exceptions import InvalidInputError, InvalidTypeError


def read_bounds(
    names: Sequence[Any],
    is_number: BoolArray,
    protected: Sequence[Any],
    fixed: Mapping[Any, float] | None,
    lower: Mapping[Any, float] | None,
    upper: Mapping[Any, float] | None,
) -> WeightBounds:
    """Limits of the weight of each column; contradictions raise.

    Examples
    --------
    >>> bounds = read_bounds(["age", "race"], np.array([True, False]), ["race"], None, {"age": 0.1}, None)
    >>> bounds.lower, bounds.upper
    (array([0.1, 0. ]), array([inf,  0.]))
    """
    low = _read("lower", lower, names, np.zeros(len(names)))
    high = _read("upper", upper, names, np.where(is_number, np.inf, 1.0))
    set_to = _read("fixed", fixed, names, np.full(len(names), np.nan))
    for i, name in enumerate(names):
        if not is_number[i] and max(low[i], np.nan_to_num(set_to[i])) > 1:
            raise InvalidInputError(
                f"A mismatch weight must be at most 1; got {max(low[i], set_to[i]):g} for {name!r}."
            )
        if low[i] > high[i]:
            raise InvalidInputError(
                f"lower must not exceed upper; got {low[i]:g} and {high[i]:g} for {name!r}. Change one of them."
            )
        if not np.isnan(set_to[i]) and not low[i] <= set_to[i] <= high[i]:
            raise InvalidInputError(
                f"fixed must be within lower and upper; got {set_to[i]:g} for {name!r}, which is limited to "
                f"{low[i]:g} to {high[i]:g}."
            )
        if name in protected and (low[i] > 0 or np.nan_to_num(set_to[i]) > 0):
            raise InvalidInputError(
                f"A protected column has the weight 0; {name!r} is protected and has a positive weight in fixed or "
                "lower. Leave it out of one of them."
            )
    high = np.where(is_number, high, np.minimum(high, 1.0))
    low, high = (np.where(np.isnan(set_to), bound, set_to) for bound in (low, high))
    hidden = np.array([name in protected for name in names])
    return WeightBounds(np.where(hidden, 0.0, low), np.where(hidden, 0.0, high))


def _read(kind: str, given: Mapping[Any, float] | None, names: Sequence[Any], default: FloatArray) -> FloatArray:
    if given is None:
        return default
    if not isinstance(given, (Mapping, pd.Series)):
        raise InvalidTypeError(f"{kind} must be a mapping from column to weight; got {type(given).__name__}.")
    out = default.copy()
    for name, weight in dict(given).items():
        if name not in names:
            raise InvalidInputError(f"{kind} must name columns of X, {list(names)}; it has no {short_repr(name)}.")
        NON_NEGATIVE.check(f"{kind} of {name!r}", weight)
        out[list(names).index(name)] = float(weight)
    return out
