"""Weights in words: "1 point = $500", "one step = 3 points", "5% of odds per $1,000"."""

from __future__ import annotations

import math
import re
from typing import Any

from likewise._validation import short_repr
from likewise.exceptions import InvalidInputError
from likewise.metrics.units import AMOUNT, Unit

LOG_ODDS_PER_DISTANCE = 4.0
"""Models within a metric D whose log-odds are limited change them by at most 4 D (`docs/theory.md` §11)."""

_PHRASE = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))\s*% of (?:the )?odds(?: per (.+))?", re.ASCII)
_POINTS = re.compile(rf"({AMOUNT}) points?", re.ASCII)
_MOST_DIGITS = 6  # of an amount that people read
_AMOUNT = re.compile(rf"([$€£]?)\s*({AMOUNT})?(?![\d.,])\s*(.*)", re.ASCII)


def scale_of_odds(change: Any, column: Any, per: Any = 1) -> float:
    """Distance per unit at which `per` units may change the odds by the share `change`: ``log(1 + change) / (4 per)``.

    Examples
    --------
    >>> round(scale_of_odds(0.05, "balance", 1000) * 1000, 5)
    0.0122
    """
    if not _is_number(change) or not 0 <= change < math.inf:
        raise InvalidInputError(
            f"odds must not be below 0: the share by which odds may change, such as 0.05 for 5%; got "
            f"{short_repr(change)} for {column!r}. Use 0 for a column that must not matter."
        )
    if not _is_number(per) or not 0 < per < math.inf:
        raise InvalidInputError(
            f"odds must be per a positive amount, as in (0.05, 1000); got {short_repr(per)} for {column!r}."
        )
    return math.log1p(change) / LOG_ODDS_PER_DISTANCE / float(per)


def scale_of_phrase(phrase: str, column: Any, unit: str) -> float:
    """Distance per unit of a column, or between categories, from a weight in words.

    Examples
    --------
    >>> scale_of_phrase("1 point = $500", "balance", "$1000"), scale_of_phrase("mismatch = 8 points", "job", "")
    (0.02, 0.08)
    >>> scale_of_phrase("5% of odds per $1,000", "balance", "$1000") == scale_of_odds(0.05, "balance")
    True
    """
    odds, left, right = _PHRASE.fullmatch(phrase.strip()), *map(str.strip, phrase.rpartition("=")[::2])
    points, worth, known = _POINTS.fullmatch(left), _POINTS.fullmatch(right), Unit.of(unit)
    if odds is not None:
        amount = known.factor if odds[2] is None else _amount_of(odds[2].strip(), column, unit, "odds must be per")
        return scale_of_odds(float(odds[1]) / 100, column, amount / known.factor)
    if worth is not None and (left in ("", "mismatch") or left.startswith("one ")):
        return float(worth[1].replace(",", "")) / 100
    if points is None:
        raise InvalidInputError(
            f"a weight must be a number, or odds such as '5% of odds per 1,000' ('20% of odds' between categories), or "
            f"points such as '1 point = $500' ('8 points' between categories), with a decimal point as in 1.5%; got "
            f"{phrase!r} for {column!r}."
        )
    amount = _amount_of(right, column, unit, "points must be")
    if not amount:
        raise InvalidInputError(f"points must be worth a positive amount; got {phrase!r} for {column!r}.")
    return float(points[1].replace(",", "")) * known.factor / (100 * amount)


def _amount_of(text: str, column: Any, unit: str, what: str) -> float:
    """An amount in words: the number in them, as in $500 of a column in $1000."""
    amounts, known = _AMOUNT.fullmatch(text), Unit.of(unit)
    if amounts is None or not any(amounts.groups()):
        raise InvalidInputError(
            f"{what} an amount such as 0.5 or 1,000, with a decimal point and commas between thousands; got {text!r} "
            f"for {column!r}."
        )
    sign, size, words = amounts.groups()
    if (sign and unit and sign != known.prefix) or (words and unit and words not in _names(known)):
        raise InvalidInputError(f"{what} an amount in the unit of the column, {unit!r}; got {text!r} for {column!r}.")
    if words.startswith("percentage point") and not unit:
        raise InvalidInputError(
            f"{what} in the unit of the column, as [units] says it: 'share' for 0.05, '% of' something for 5; got "
            f"{text!r} for {column!r}, which has none."
        )
    return float(size.replace(",", "")) if size else 1.0


def unit_of_phrase(phrase: str) -> str:
    """The unit in which a weight is said, of a column that has no other: "years" of "1 point = 5 years"."""
    left, right = map(str.strip, phrase.rpartition("=")[::2])
    amounts = _AMOUNT.fullmatch(right) if _POINTS.fullmatch(left) else None
    return "" if amounts is None else f"{amounts[1]} {amounts[3]}".strip()


def phrase_of_scale(scale: float, unit: str, *, step: str = "") -> str | None:
    """A weight in words that are read as exactly this number; None if these would have many digits.

    `step` is what a difference is called that is worth points, as "mismatch"; otherwise points are worth an amount.

    Examples
    --------
    >>> phrase_of_scale(2e-5, "$"), phrase_of_scale(0.03, "1 card"), phrase_of_scale(0.08, "", step="mismatch")
    ('1 point = $500', 'one more card = 3 points', 'mismatch = 8 points')
    >>> phrase_of_scale(0.00123456789, "$") is None
    True
    """
    known = Unit.of(unit)
    step = step or known.one
    size = 100 * scale if step else 0.01 * known.factor / scale
    for digits in range(1, _MOST_DIGITS + 1):
        text = f"{float(f'{size:.{digits}g}'):,.9f}".rstrip("0").rstrip(".")
        phrase = f"{step} = {text} {'point' if text == '1' else 'points'}"
        phrase = phrase if step else f"1 point = {known.difference(text)}"
        if text != "0" and scale_of_phrase(phrase, "", unit) == scale:
            return phrase
    return None


def _names(unit: Unit) -> set[str]:
    """Words that may follow an amount."""
    named = {unit.suffix, unit.after(one=True), unit.after(one=False)}
    return {name.strip() for name in named} | ({unit.one.removeprefix("one ")} if unit.one else set())


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and hasattr(value, "__float__") and float(value) == float(value)
