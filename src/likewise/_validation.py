"""Validation of parameters. Errors name the parameter, the rule, the value given, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Integral, Real
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from likewise.exceptions import InvalidInputError, InvalidTypeError, LikewiseError

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"  # as text

LARGEST, SMALLEST = 1e100, 1e-100
"""Limits of values and weights, so that their squares and quotients stay finite."""

MAX_COUNT = 10**15
"""Largest count accepted."""

_MAX_REPR = 200  # characters of a value in an error


@dataclass(frozen=True)
class Rule:
    """A validation rule: a predicate with a description for errors.

    Attributes
    ----------
    words : str
        What the parameter must be.
    holds : callable
        Whether a value is valid.
    hint : str
        What to do instead.
    error : type
        Exception raised.

    Examples
    --------
    >>> (one_of("auto") | integer(1)).check("n_draws", 0)
    Traceback (most recent call last):
    likewise.exceptions.InvalidInputError: n_draws must be 'auto' or a whole number >= 1; got 0.
    """

    words: str
    holds: Callable[[Any], bool]
    hint: str = ""
    error: type[InvalidInputError] | type[InvalidTypeError] = InvalidInputError

    def __or__(self, other: Rule) -> Rule:
        words = f"{self.words} or {other.words}"
        return replace(other, words=words, holds=lambda value: self.holds(value) or other.holds(value))

    def check(self, name: str, value: Any) -> None:
        """Raise if `value` is not valid for the parameter `name`."""
        if not self.holds(value):
            hint = f" {self.hint}" if self.hint else ""
            raise self.error(f"{name} must be {self.words}; got {short_repr(value)}.{hint}")
        if _is(Real, value) and value != 0:
            size = abs(value) if _is(Integral, value) else abs(float(value))
            low, high = (1, MAX_COUNT) if _is(Integral, value) else (SMALLEST, LARGEST)
            if not low <= size <= high:
                raise self.error(f"{name} must be between {low:g} and {high:g} in size; got {value!r}.")


def short_repr(value: Any) -> str:
    """`repr` in one line, truncated."""
    text = " ".join(repr(value).split())
    return text if len(text) <= _MAX_REPR else text[:_MAX_REPR] + "..."


def counted(n: int, one: str, several: str = "") -> str:
    """A number of things in words.

    Examples
    --------
    >>> counted(1, "pair"), counted(1204, "pair"), counted(0, "person", "people")
    ('1 pair', '1,204 pairs', '0 people')
    """
    return f"{n:,} {one if n == 1 else several or one + 's'}"


def plain(value: Any) -> Any:
    """A value as people write it: whole numbers without a decimal point.

    Examples
    --------
    >>> plain(24.0), plain(0.5), plain("24.0")
    (24, 0.5, '24.0')
    """
    return int(value) if isinstance(value, float) and value.is_integer() else value


def list_words(words: Sequence[Any], last: str = "and") -> str:
    """A list as in a sentence.

    Examples
    --------
    >>> list_words(["age", "debt", "income"]), list_words(["age", "debt"], "or"), list_words(["age"])
    ('age, debt and income', 'age or debt', 'age')
    """
    first, end = [str(word) for word in words[:-1]], [str(word) for word in words[-1:]]
    return f" {last} ".join(([", ".join(first)] if first else []) + end)


def check_rules(rules: Mapping[str, Rule], owner: Any) -> None:
    """Check the parameters of an estimator."""
    for name, rule in rules.items():
        rule.check(name, getattr(owner, name))


def one_of(*labels: str) -> Rule:
    """One of the given strings."""
    words = ", ".join(map(repr, labels[:-1])) + " or " + repr(labels[-1]) if len(labels) > 1 else repr(labels[0])
    return Rule(words, lambda value: isinstance(value, str) and value in labels)


def integer(min_value: int, hint: str = "", *, max_value: int | None = None) -> Rule:
    """A whole number within limits."""
    words = f"a whole number >= {min_value}" if max_value is None else f"a whole number from {min_value} to {max_value}"
    return Rule(words, lambda value: _is(Integral, value) and min_value <= value <= (max_value or value), hint)


def positive(hint: str = "", *, below: float = np.inf) -> Rule:
    """A positive number."""
    words = "a positive finite number" if below == np.inf else f"a positive number below {below:g}"
    return Rule(words, lambda value: _is(Real, value) and 0 < value < below, hint)


def _is(kind: Any, value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _gives_folds(value: Any) -> bool:
    return hasattr(value, "split") or hasattr(value, "__iter__")


NON_NEGATIVE = Rule("a non-negative finite number", lambda value: _is(Real, value) and 0 <= value < np.inf)
PATH = Rule(
    "the name of a file or directory",
    lambda value: isinstance(value, (str, PathLike)) and "\0" not in str(value),
    error=InvalidTypeError,
)
NONE = Rule("None", lambda value: value is None)
BOOL = Rule("True or False", lambda value: isinstance(value, (bool, np.bool_, Integral)))  # 1 is true
THREADS = NONE | Rule(
    "a whole number other than 0",
    lambda value: _is(Integral, value) and value != 0,
    "None and -1 use every core, -2 all but one.",
)
INTEGER_SEED = integer(0, max_value=2**32 - 1)
SEED = (
    NONE
    | INTEGER_SEED
    | Rule("a RandomState", lambda value: isinstance(value, np.random.RandomState), "None draws a seed.")
)
FOLDS = NONE | Rule(
    "a number of folds >= 2, a splitter or pairs of (train, test)",
    lambda value: value >= 2 if _is(Integral, value) else not isinstance(value, str) and _gives_folds(value),
    "None takes 5 folds, shuffled.",
)
LIMITS = Rule(
    "two finite numbers, the lowest first",
    lambda value: (
        isinstance(value, (tuple, list, np.ndarray))
        and len(np.atleast_1d(np.asarray(value, dtype=object))) == 2
        and all(_is(Real, limit) and abs(limit) <= LARGEST for limit in value)
        and value[0] < value[1]
    ),
)


def check_count(name: str, value: Any, *, min_value: int = 1, hint: str = "") -> int:
    """Return `value` as an int >= `min_value`."""
    integer(min_value, hint).check(name, value)
    return int(value)


def check_positive(name: str, value: Any, *, below: float = np.inf, hint: str = "") -> float:
    """Return `value` as a positive float below a limit."""
    positive(hint, below=below).check(name, value)
    return float(value)


def check_numbers(name: str, values: Any, hint: str = "") -> npt.NDArray[np.float64]:
    """Return `values` as a float array."""
    try:
        if not np.iscomplexobj(values):
            return np.asarray(values, dtype=np.float64)
        why = "complex numbers have no order"
    except (TypeError, ValueError, OverflowError) as error:
        why = str(error)
    raise InvalidInputError(f"{name} must hold numbers only ({why})." + (f" {hint}" if hint else ""))


def check_names(name: str, values: Any, known: Sequence[Any]) -> list[Any]:
    """Return `values` as a list of column names."""
    try:
        names = list(values)
        fit = not isinstance(values, str) and set(names) <= set(known)
    except TypeError:  # not iterable, or not hashable
        fit = False
    if not fit:
        raise InvalidInputError(f"{name} must list columns of X, {list(known)}; got {short_repr(values)}.")
    return names


def check_output_range(output_range: Any) -> tuple[float, float]:
    """Return the limits as two floats."""
    LIMITS.check("output_range", output_range)
    low, high = (float(limit) for limit in output_range)
    return low, high


def check_size(rows: npt.NDArray[np.float64], names: Sequence[Any]) -> None:
    """Raise if a number exceeds `LARGEST`; NaN passes."""
    wrong = np.abs(rows) > LARGEST
    if wrong.any():
        *row, column = np.argwhere(wrong)[0]
        number = rows[(*row, column)]
        rule = "finite; it has an infinity" if np.isinf(number) else f"within +-{LARGEST:g}; it has {number:g}"
        hint = "Cap it, mark it as missing, or use a larger unit."
        raise InvalidInputError(f"Column {names[column]!r} must be {rule}. {hint}")


@contextmanager
def checking() -> Iterator[None]:
    """Convert the errors of scikit-learn's validation to `LikewiseError`."""
    try:
        with np.errstate(invalid="ignore"):  # inf - inf, before infinities are refused
            yield
    except LikewiseError:
        raise
    except ValueError as error:
        words = " ".join(str(error).split())
        if "inconsistent numbers of samples" in words:
            raise InvalidInputError(
                f"X and y must have the same number of rows; got {words.split(':')[-1].strip()}."
            ) from None
        if "at least one array or dtype is required" in words:
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
    """Validate `random_state`."""
    from sklearn.utils import check_random_state

    try:
        return check_random_state(random_state)  # type: ignore[no-any-return]
    except (TypeError, ValueError):
        raise InvalidInputError(
            "random_state must be a whole number from 0 to 2^32 - 1, a RandomState or None; got "
            f"{short_repr(random_state)}. None draws afresh."
        ) from None
