"""Checks of single parameters; each error names the parameter, the rule, what was given, and the cure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from likewise.errors import InvalidInputError, InvalidTypeError, LikewiseError


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


LARGEST, SMALLEST = 1e100, 1e-100
"""Numbers of people and weights beyond these sizes are refused: their squares and quotients are no numbers any more."""


def check_size(rows: npt.NDArray[np.float64], names: Sequence[Any]) -> None:
    """Raise if one of the numbers, with a column per name, is infinite or beyond all measure; NaN is let through."""
    wrong = np.abs(rows) > LARGEST
    if wrong.any():
        *row, column = np.argwhere(wrong)[0]
        number = rows[(*row, column)]
        rule = "finite; it has an infinity" if np.isinf(number) else f"within +-{LARGEST:g}; it has {number:g}"
        cure = "Cap it, mark it as missing, or use a larger unit."
        raise InvalidInputError(f"Column {names[column]!r} must be {rule}. {cure}")


@contextmanager
def checking() -> Iterator[None]:
    """What scikit-learn's validation raises is raised as ours, with a clearer word on text."""
    try:
        yield
    except LikewiseError:
        raise
    except ValueError as error:
        if "could not convert string to float" in str(error):
            raise InvalidInputError(
                f"X must hold numbers only ({error}). Encode text columns first, or give a table with a TableMetric."
            ) from None
        raise InvalidInputError(str(error)) from error
    except TypeError as error:
        if "float() argument" in str(error):  # dates, periods and other objects
            raise InvalidTypeError(
                f"X must hold numbers only ({error}). Turn dates and periods into numbers first, such as years before "
                "a fixed day."
            ) from None
        raise InvalidTypeError(str(error)) from error


def check_random(random_state: Any) -> np.random.RandomState:
    """Where random numbers come from; raise if it is no seed."""
    from sklearn.utils import check_random_state

    try:
        return check_random_state(random_state)  # type: ignore[no-any-return]
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"random_state must be a whole number from 0 to 2^32 - 1, a RandomState or None; got {random_state!r}. "
            "None draws afresh."
        ) from None


def check_labels(y: npt.NDArray[Any]) -> None:
    """Raise if these cannot be the labels of classes: numbers with fractions, or values without an order."""
    from sklearn.utils.multiclass import check_classification_targets

    try:
        np.unique(y)
    except (TypeError, ArithmeticError):  # decimals that are no numbers have no order
        kinds = ", ".join(sorted({type(label).__name__ for label in y.tolist()}))
        raise InvalidInputError(
            f"y must hold labels of one kind, such as text or whole numbers; got {kinds}. Convert them first, with "
            "astype(str), say."
        ) from None
    with checking():
        check_classification_targets(y)


def _message(name: str, rule: str, value: Any, cure: str) -> str:
    return f"{name} must be {rule}; got {value!r}." + (f" {cure}" if cure else "")
