"""Numbers and facts in plain words. `metric.js` repeats `figure`, `points` and `worth`; the tests compare them."""

from __future__ import annotations

import math

from likewise.metrics.tabular import split_unit

MUST_NOT_MATTER = "must not matter"


def figure(x: float) -> str:
    """Return a number to three digits, without an exponent unless it would be unreadable.

    Examples
    --------
    >>> [figure(x) for x in (0, 4321.7, 0.012345, 1 / 3, 2e-9, 1234567)]
    ['0', '4,320', '0.0123', '0.333', '2e-9', '1,230,000']
    """
    if x == 0:
        return "0"
    if not math.isfinite(x):
        return "∞"
    rounded = float(f"{x:.2e}")
    if not 1e-6 <= abs(rounded) < 1e12:
        mantissa, exponent = f"{rounded:.2e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    text = f"{rounded:,.{max(0, 2 - math.floor(math.log10(abs(rounded))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def points(x: float) -> str:
    """Return a probability or a distance in percentage points, to one decimal, two below one point.

    Examples
    --------
    >>> [points(x) for x in (0.01, 0.123456, 0.00456, 0, 2.5)]
    ['1 point', '12.3 points', '0.46 points', '0 points', '250 points']
    """
    text = point_figure(x)
    return f"{text} point" if text == "1" else f"{text} points"


def point_figure(x: float) -> str:
    """Return the number in `points`; never "0" for what is not 0, and infinity as a sign."""
    if not math.isfinite(x):
        return "∞"
    value = 100 * x
    if 0 < abs(value) < 0.005:
        return "under 0.01" if value > 0 else "0"
    text = f"{value:,.{1 if abs(value) >= 1 else 2}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def percent(x: float | None) -> str:
    """Return a share in percent, to one decimal."""
    return "\N{EN DASH}" if x is None else f"{100 * x:.1f}\N{NO-BREAK SPACE}%"


def whole(n: int) -> str:
    """Return a count with thousands separated."""
    return f"{n:,}"


def amount(text: str, unit: str) -> str:
    """Return a number with its unit.

    Examples
    --------
    >>> amount("4,300", "$ a month")
    '$4,300 a month'
    """
    prefix, suffix = split_unit(unit)
    return f"{prefix}{text}{' ' if suffix else ''}{suffix}"


def worth(scale: float, unit: str | None) -> str:
    """Say what a column counts, from its distance per `unit` (None: between two categories).

    Examples
    --------
    >>> worth(0.005, "years"), worth(0.03, None)
    ('1 point = 2 years', 'any difference = 3 points')
    """
    if scale == 0:
        return MUST_NOT_MATTER
    return f"any difference = {points(scale)}" if unit is None else f"1 point = {amount(figure(0.01 / scale), unit)}"


def odds(delta: float) -> str:
    """Return a small probability as "1 in ...", rounded towards the larger probability.

    Examples
    --------
    >>> odds(0.001), odds(1.8e-4)
    ('1 in 1,000', '1 in 5,550')
    """
    n = math.floor(1 / delta * (1 + 1e-12))
    digits = max(0, len(str(n)) - 3)
    return f"1 in {n // 10**digits * 10**digits:,}"


LEVELS = {
    "exact": "Proved and computed without sampling. It holds with certainty for all pairs of people, in these data or "
    "not.",
    "deterministic": "Proved, with no randomness left in the model. It holds with certainty for all pairs of people, "
    "in these data or not.",
    "sampled": "Proved, with scores computed from random draws. It holds for each pair of people with the stated "
    "probability over the draws, if the pair was chosen without looking at them.",
}
"""How firm a promise is, for each level of a `Guarantee`."""
