"""What the parameters of estimators may be: one table per class, checked when `fit` begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from likewise.errors import InvalidInputError, InvalidTypeError


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
            raise self.error(f"{name} must be {self.words}; got {value!r}." + (f" {self.cure}" if self.cure else ""))


def check_rules(rules: Mapping[str, Rule], owner: Any) -> None:
    """Check the parameters of an estimator."""
    for name, rule in rules.items():
        rule.check(name, getattr(owner, name))


def one_of(*labels: str) -> Rule:
    """One of some words."""
    words = ", ".join(map(repr, labels[:-1])) + " or " + repr(labels[-1]) if len(labels) > 1 else repr(labels[0])
    return Rule(words, lambda value: isinstance(value, str) and value in labels)


def whole(least: int, cure: str = "") -> Rule:
    """A whole number that is not too small."""
    return Rule(f"a whole number >= {least}", lambda value: _is(Integral, value) and value >= least, cure)


def positive(cure: str = "", *, below: float = np.inf) -> Rule:
    """A positive number."""
    words = "a positive finite number" if below == np.inf else f"a positive number below {below:g}"
    return Rule(words, lambda value: _is(Real, value) and 0 < float(value) < below, cure)


def _is(kind: Any, value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _gives_folds(value: Any) -> bool:
    return hasattr(value, "split") or hasattr(value, "__iter__")


NOTHING = Rule("None", lambda value: value is None)
TRUTH = Rule("True or False", lambda value: isinstance(value, (bool, np.bool_, Integral)))  # 1 is true
THREADS = NOTHING | Rule(
    "a whole number other than 0",
    lambda value: _is(Integral, value) and value != 0,
    "None and -1 use every core, -2 all but one.",
)
SEED = NOTHING | Rule(
    "a whole number from 0 to 4294967295, or a RandomState",
    lambda value: (_is(Integral, value) and 0 <= value < 2**32) or isinstance(value, np.random.RandomState),
    "None draws a seed.",
)
FOLDS = NOTHING | Rule(
    "a number of folds >= 2, a splitter or pairs of (train, test)",
    lambda value: value >= 2 if _is(Integral, value) else not isinstance(value, str) and _gives_folds(value),
    "None takes 5 folds, shuffled.",
)
LIMITS = NOTHING | Rule(
    "two finite numbers, the lowest first",
    lambda value: (
        isinstance(value, (tuple, list, np.ndarray))
        and len(value) == 2
        and all(_is(Real, limit) for limit in value)
        and -np.inf < value[0] < value[1] < np.inf
    ),
)
