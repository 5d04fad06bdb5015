"""Weights in round numbers: "1 point = $5,000", never looser than given and at most 10% stricter."""

from __future__ import annotations

import math

from likewise._validation import SMALLEST

MOST_STRICTER = 0.1
"""Largest relative decrease of a distance by rounding."""

_TOLERANCE = 1e-9  # a number this close to a round one is that number, but for its floating-point representation
# Digits by how readily people say them. Every interval from x to x / 0.9 has a number of two digits.
_DIGITS = (
    (10, 20, 50),
    (25, 15),
    (30, 40, 60, 70, 80, 90),
    tuple(range(35, 100, 10)),
    tuple(range(11, 100)),
)


def round_amount(amount: float) -> float:
    """The amount worth one point, rounded up: a larger amount is a smaller weight.

    Numbers of at most two digits are kept: somebody may have chosen them.

    Examples
    --------
    >>> [round_amount(x) for x in (4873.2, 2.05, 0.126, 5123, 5200)]
    [5000.0, 2.1, 0.13, 5500.0, 5200.0]
    """
    return _nearest_round(amount, amount, amount / (1 - MOST_STRICTER))


def round_points(points: float) -> float:
    """Points per step, or between two categories, rounded down.

    Examples
    --------
    >>> [round_points(x) for x in (8.37, 3.24, 17.9, 0.526, 12)]
    [8.0, 3.0, 17.0, 0.5, 12.0]
    """
    return _nearest_round(points, points * (1 - MOST_STRICTER), points)


def _nearest_round(value: float, low: float, high: float) -> float:
    """The roundest number between two limits, of equally round ones the nearest to `value`, which is one of them."""
    kept = float(f"{value:.1e}")
    if abs(kept - value) <= _TOLERANCE * value:
        return kept
    exponent = math.floor(math.log10(low)) - 1
    for digits in _DIGITS:
        candidates = [float(f"{digit}e{power}") for power in (exponent, exponent + 1) for digit in digits]
        inside = [x for x in candidates if low <= x <= high]
        if inside:
            return min(inside, key=lambda x: abs(x - value))
    raise AssertionError(f"no number of two digits between {low!r} and {high!r}")  # pragma: no cover


def round_scale(scale: float, factor: float = 1.0) -> float:
    """A distance per unit, so that one point is a round amount of ``factor`` times the unit; never larger."""
    return _not_larger(scale, factor / (100 * round_amount(0.01 * factor / scale))) if scale else 0.0


def round_step(scale: float) -> float:
    """A distance per step, in round points; never larger."""
    return _not_larger(scale, round_points(100 * scale) / 100) if scale else 0.0


def round_share(share: float) -> float:
    """A distance between 0 and 1 in round points; never larger. 1, which allows any difference, is kept."""
    return share if share == 1 else round_step(share)


def round_weight(weight: float, scale: float, p: float) -> float:
    """The weight inside the power of a rounded `scale`; never larger, and never 0 for a positive weight."""
    return _not_larger(weight, scale if math.isinf(p) else scale**p)


def _not_larger(given: float, rounded: float) -> float:
    """The smaller one; the given one where they are equal but for rounding, or the other is too small for a metric."""
    same = abs(rounded - given) <= _TOLERANCE * given
    return given if same or rounded < min(given, SMALLEST) else min(given, rounded)
