"""Weights stated in odds: "5% of odds per $1,000"."""

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
    """Distance per unit of a column from "5% of odds per $1,000", or between categories from "20% of odds".

    Examples
    --------
    >>> scale_of_phrase("5% of odds per $1,000", "balance", "$1000") == scale_of_odds(0.05, "balance")
    True
    """
    found = _PHRASE.fullmatch(phrase.strip())
    if found is None:
        raise InvalidInputError(
            f"a weight must be a number, or odds such as '5% of odds per 1,000' ('20% of odds' between categories), "
            f"with a decimal point as in 1.5%; got {phrase!r} for {column!r}."
        )
    change = float(found[1]) / 100
    if found[2] is None:
        return scale_of_odds(change, column)
    amounts = _AMOUNT.fullmatch(found[2].strip())
    if amounts is None:
        raise InvalidInputError(
            f"odds must be per an amount such as 0.5 or 1,000, with a decimal point and commas between thousands; got "
            f"{found[2]!r} for {column!r}."
        )
    sign, size, words = amounts.groups()
    known = Unit.of(unit)
    if (sign and unit and sign != known.prefix) or (words and unit and words not in _names(known)):
        raise InvalidInputError(
            f"odds must be per an amount in the unit of the column, {unit!r}; got {found[2]!r} for {column!r}."
        )
    amount = float(size.replace(",", "")) if size else 1.0
    return scale_of_odds(change, column, amount / known.factor)


def _names(unit: Unit) -> set[str]:
    """Words that may follow an amount."""
    named = {unit.suffix, unit.after(one=True), unit.after(one=False)}
    return {name.strip() for name in named} | ({unit.one.removeprefix("one ")} if unit.one else set())


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and hasattr(value, "__float__") and float(value) == float(value)
