"""Amounts with units: "$42,500 per year", "80%", "2.3 percentage points"."""

from __future__ import annotations

import re
from dataclasses import dataclass

AMOUNT = r"(?:[1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+"
"""Pattern of an amount with a decimal point, its thousands grouped by commas or not; no group begins with 0."""
_MONEY = re.compile(r"([$€£])([1-9]\d{0,2}(?:,\d{3})+|[1-9]\d*)?(?![\d.,])(.*)", re.ASCII)
_SHARES = ("ratio", "share", "fraction")
_STEP = re.compile(r"steps?")
_ONE = re.compile(r"(?:1|one) (\S.*)")
_COUNTED = re.compile(r"^( percentage)?( (?:point|step|year|month|week|day|hour|minute|second))s?\b")


@dataclass(frozen=True)
class Unit:
    """Formatting of amounts in the unit of a column.

    Attributes
    ----------
    factor : float
        Multiplies values before formatting: 1000 for "$1000" and "$1,000", 100 for "ratio".
    prefix : str
        Before the number.
    suffix, difference_suffix : str
        After a value, and after a difference: 80%, but 3 percentage points.
    one : str
        One step of a column that is counted, "one step" for the unit "step" and "one more card" for "1 card"; else
        empty. What such a column is worth is said per step.

    Examples
    --------
    >>> Unit.of("$1000 per year").written(42.5), Unit.of("ratio").written(0.8), Unit.of("").written(2004)
    ('$42,500 per year', '80%', '2004')
    >>> Unit.of("ratio").difference("2.3"), Unit.of("% of income").difference("0.9"), Unit.of("years").difference("5")
    ('2.3 percentage points', '0.9 percentage points of income', '5 years')
    """

    factor: float
    prefix: str
    suffix: str
    difference_suffix: str
    one: str = ""

    @classmethod
    def of(cls, unit: str) -> Unit:
        """Parse a unit."""
        if money := _MONEY.fullmatch(unit):
            sign, size, rest = money.groups()
            return cls(float(size.replace(",", "")) if size else 1.0, sign, _spaced(rest), _spaced(rest))
        if unit in _SHARES:
            return cls(100.0, "", "%", " percentage points")
        if unit.startswith("%"):
            return cls(1.0, "", f"%{_spaced(unit[1:])}", f" percentage points{_spaced(unit[1:])}")
        if counted := _ONE.fullmatch(unit.strip()):
            several = _spaced(_plural(counted[1]))
            return cls(1.0, "", several, several, f"one more {counted[1]}")
        if _STEP.fullmatch(unit.strip()):  # of a difference only: a value is the number itself
            return cls(1.0, "", "", " steps", "one step")
        return cls(1.0, "", _spaced(unit), _spaced(unit))

    def written(self, value: float) -> str:
        """Format a value of the column."""
        amount = value * self.factor
        digits = 4 if self.suffix.startswith("%") else 6
        text = number(amount, digits) if not self.prefix or abs(amount) < 1000 else f"{amount:,.0f}"
        return self.prefixed(text) + (self._single if self.one and self.suffix and amount == 1 else self.suffix)

    def prefixed(self, text: str) -> str:
        """A number with the prefix, after its sign.

        Examples
        --------
        >>> Unit.of("$").prefixed("-1,000"), Unit.of("years").prefixed("-1")
        ('-$1,000', '-1')
        """
        return f"-{self.prefix}{text[1:]}" if text.startswith("-") else f"{self.prefix}{text}"

    def difference(self, size: str) -> str:
        """Format a difference, given as text that is multiplied by the factor already."""
        return f"{self.prefix}{size}{self.after(one=size == '1')}"

    def after(self, *, one: bool) -> str:
        """Suffix of a difference, singular or plural: "1 step", "0.333 steps".

        Examples
        --------
        >>> Unit.of("step").difference("0.333"), Unit.of("years").difference("1"), Unit.of("$ per year").difference("9")
        ('0.333 steps', '1 year', '$9 per year')
        """
        if self.one and one:
            return self._single
        return _COUNTED.sub(rf"\1\2{'' if one else 's'}", self.difference_suffix)

    @property
    def _single(self) -> str:
        return f" {self.one.removeprefix('one ').removeprefix('more ')}"

    def worth_of_one(self, scale: float) -> str:
        """What one step is worth, at a distance of `scale` per step.

        Examples
        --------
        >>> Unit.of("1 card").worth_of_one(0.03), Unit.of("step").worth_of_one(0.01)
        ('one more card = 3 points', 'one step = 1 point')
        """
        return f"{self.one} = {in_points(scale)}"


def in_points(share: float) -> str:
    """A share of 1 in percentage points."""
    text = f"{100 * share:.3g}"
    return f"{text} {'point' if text == '1' else 'points'}"


def number(value: float, digits: int = 6) -> str:
    """Format a number; no separators below 10,000, where it may be a year.

    Examples
    --------
    >>> number(2004.0), number(0.123456789), number(123456.0)
    ('2004', '0.123457', '123,456')
    """
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.{digits}g}"


def _plural(noun: str) -> str:
    if re.search(r"[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if re.search(r"(s|x|ch|sh)$", noun) else f"{noun}s"


def _spaced(words: str) -> str:
    words = words.strip()
    return f" {words}" if words else ""
