"""What the parameters of estimators may be: one table per class, checked when `fit` begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from os import PathLike
from typing import Any

import numpy as np

from likewise.errors import InvalidInputError, InvalidTypeError

LARGEST, SMALLEST = 1e100, 1e-100
"""Numbers of people and weights beyond these sizes are refused: their squares and quotients are no numbers any more."""

MOST = 10**15
"""So many of anything would never end."""


@dataclass(frozen=True)
class Rule:
    """A rule, in words and as a test; its error names the parameter, the rule, what was given, and the cure.

    Attributes
    ----------
    words : str
        What the parameter must be.
    holds : callable
        Whether a value is so.
    cure : str
    error : type
        What is raised.

    Examples
    --------
    >>> (one_of("auto") | whole(1)).check("n_draws", 0)
    Traceback (most recent call last):
    likewise.errors.InvalidInputError: n_draws must be 'auto' or a whole number >= 1; got 0.
    """

    words: str
    holds: Callable[[Any], bool]
    cure: str = ""
    error: type[InvalidInputError] | type[InvalidTypeError] = InvalidInputError

    def __or__(self, other: Rule) -> Rule:
        words = f"{self.words} or {other.words}"
        return replace(other, words=words, holds=lambda value: self.holds(value) or other.holds(value))

    def check(self, name: str, value: Any) -> None:
        """Raise if the parameter `name` may not have this value."""
        if not self.holds(value):
            cure = f" {self.cure}" if self.cure else ""
            raise self.error(f"{name} must be {self.words}; got {in_a_line(value)}.{cure}")
        if _is(Real, value) and value != 0:
            size = abs(value) if _is(Integral, value) else abs(float(value))
            least, most = (1, MOST) if _is(Integral, value) else (SMALLEST, LARGEST)
            if not least <= size <= most:
                raise self.error(f"{name} must be between {least:g} and {most:g} in size; got {value!r}.")


def in_a_line(value: Any, most: int = 200) -> str:
    """The value as it would be typed, in one line that is not too long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= most else text[:most] + "..."


def check_rules(rules: Mapping[str, Rule], owner: Any) -> None:
    """Check the parameters of an estimator."""
    for name, rule in rules.items():
        rule.check(name, getattr(owner, name))


def one_of(*labels: str) -> Rule:
    """One of some words."""
    words = ", ".join(map(repr, labels[:-1])) + " or " + repr(labels[-1]) if len(labels) > 1 else repr(labels[0])
    return Rule(words, lambda value: isinstance(value, str) and value in labels)


def whole(least: int, cure: str = "", *, most: int | None = None) -> Rule:
    """A whole number that is not too small, nor too large."""
    words = f"a whole number >= {least}" if most is None else f"a whole number from {least} to {most}"
    return Rule(words, lambda value: _is(Integral, value) and least <= value <= (most or value), cure)


def positive(cure: str = "", *, below: float = np.inf) -> Rule:
    """A positive number."""
    words = "a positive finite number" if below == np.inf else f"a positive number below {below:g}"
    return Rule(words, lambda value: _is(Real, value) and 0 < value < below, cure)


def _is(kind: Any, value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _gives_folds(value: Any) -> bool:
    return hasattr(value, "split") or hasattr(value, "__iter__")


NOT_NEGATIVE = Rule("a non-negative finite number", lambda value: _is(Real, value) and 0 <= value < np.inf)
PATH = Rule(
    "the name of a file or directory",
    lambda value: isinstance(value, (str, PathLike)) and "\0" not in str(value),
    error=InvalidTypeError,
)
NOTHING = Rule("None", lambda value: value is None)
TRUTH = Rule("True or False", lambda value: isinstance(value, (bool, np.bool_, Integral)))  # 1 is true
THREADS = NOTHING | Rule(
    "a whole number other than 0",
    lambda value: _is(Integral, value) and value != 0,
    "None and -1 use every core, -2 all but one.",
)
WHOLE_SEED = whole(0, most=2**32 - 1)
SEED = (
    NOTHING
    | WHOLE_SEED
    | Rule("a RandomState", lambda value: isinstance(value, np.random.RandomState), "None draws a seed.")
)
FOLDS = NOTHING | Rule(
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
