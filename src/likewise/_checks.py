"""Checks of single parameters; each error names the parameter, the rule, what was given, and the cure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from likewise._rules import LARGEST, LIMITS, in_a_line, positive, whole
from likewise.errors import InvalidInputError, InvalidTypeError, LikewiseError


def check_count(name: str, value: Any, *, least: int = 1, cure: str = "") -> int:
    """Return `value` as an int if it is a whole number >= `least`."""
    whole(least, cure).check(name, value)
    return int(value)


def check_positive(name: str, value: Any, *, below: float = np.inf, cure: str = "") -> float:
    """Return `value` as a float if it is a positive number below a limit."""
    positive(cure, below=below).check(name, value)
    return float(value)


def check_numbers(name: str, values: Any, cure: str = "") -> npt.NDArray[np.float64]:
    """Return `values` as an array of numbers."""
    try:
        if not np.iscomplexobj(values):
            return np.asarray(values, dtype=np.float64)
        why = "complex numbers have no order"
    except (TypeError, ValueError, OverflowError) as error:
        why = str(error)
    raise InvalidInputError(f"{name} must hold numbers only ({why})." + (f" {cure}" if cure else ""))


def check_names(name: str, values: Any, known: Sequence[Any]) -> list[Any]:
    """Return `values` as a list if all of them are names of columns."""
    try:
        names = list(values)
        fit = not isinstance(values, str) and set(names) <= set(known)
    except TypeError:  # no list, or of what cannot be names
        fit = False
    if not fit:
        raise InvalidInputError(f"{name} must list columns of X, {list(known)}; got {in_a_line(values)}.")
    return names


def check_output_range(output_range: Any) -> tuple[float, float]:
    """Return the limits if they are two finite numbers, the lowest first."""
    LIMITS.check("output_range", output_range)
    low, high = (float(limit) for limit in output_range)
    return low, high


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
        with np.errstate(invalid="ignore"):  # both infinities at once; they are refused
            yield
    except LikewiseError:
        raise
    except ValueError as error:
        words = " ".join(str(error).split())
        if "inconsistent numbers of samples" in words:
            raise InvalidInputError(
                f"X and y must have as many rows as each other; got {words.split(':')[-1].strip()}."
            ) from None
        if "at least one array or dtype is required" in words:  # of a table without columns
            raise InvalidInputError("X must have at least one column; got a table without any.") from None
        if "could not convert string to float" in words:
            raise InvalidInputError(
                f"X must hold numbers only ({error}). Encode text columns first, or give a table with a TableMetric."
            ) from None
        raise InvalidInputError(words if words.endswith((".", ")")) else f"{words}.") from error
    except OverflowError as error:
        raise InvalidInputError(f"Numbers must be within +-{LARGEST:g} ({error}).") from None
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
            "random_state must be a whole number from 0 to 2^32 - 1, a RandomState or None; got "
            f"{in_a_line(random_state)}. None draws afresh."
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
    if y.dtype.kind == "f" and not (np.abs(y) <= 2.0**53).all():  # NaN fails every comparison
        wrong = y[~(np.abs(y) <= 2.0**53)][0]
        raise InvalidInputError(
            f"y must hold labels, such as text or whole numbers; got {wrong:g}. Convert them first."
        )
    with checking():
        check_classification_targets(y)
