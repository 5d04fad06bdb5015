"""Numbers and facts in plain words. `metric.js` repeats `figure`, `points` and `worth`; the tests compare them."""

from __future__ import annotations

import math

from likewise.auditing.coverage import Coverage
from likewise.metrics.table import NEGLIGIBLE, ONLY_BLANKS
from likewise.metrics.units import Unit
from likewise.selection.cross_validation import Score

WEIGHT_0 = "weight 0"  # a model does not know why


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


Limits = tuple[float, float] | None
"""Lowest and highest of numbers that are predicted; None for probabilities."""


def points(x: float, limits: Limits = None) -> str:
    """Return a difference or a distance: in points of a probability, to one decimal, two below one point.

    Of numbers within `limits`, in their unit.

    Examples
    --------
    >>> [points(x) for x in (0.01, 0.123456, 0.00456, 0, 2.5)]
    ['1 point', '12.3 points', '0.46 points', '0 points', '250 points']
    >>> points(0.08, (300, 850))
    '44'
    """
    text = point_figure(x, limits)
    return text if limits else f"{text} point" if text == "1" else f"{text} points"


def point_figure(x: float, limits: Limits = None) -> str:
    """Return the number in `points`; never "0" for what is not 0, and infinity as a sign."""
    if limits is not None:
        return figure(x * (limits[1] - limits[0]))
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
    return "\N{EN DASH}" if x is None else f"{100 * x:.1f}%"


def of_1000(share: float) -> str:
    """Return how many of 1,000 a share is."""
    return f"{1000 * share:,.0f}"


def whole(n: int) -> str:
    """Return a count with thousands separated."""
    return f"{n:,}"


def worth(scale: float, unit: str | None, limits: Limits = None) -> str:
    """Say what a column counts, from its distance per `unit` (None: between two categories); `limits` as in `points`.

    Examples
    --------
    >>> worth(0.005, "years"), worth(0.4, "ratio"), worth(0.03, None)
    ('1 point = 2 years', '1 point = 2.5 percentage points', 'any difference = 3 points')
    >>> worth(0.03, "1 card")
    'one more card = 3 points'
    >>> worth(0.005, "years", (300, 850))
    '2 years = 5.5'
    """
    if scale == 0:
        return WEIGHT_0
    if unit is None:
        return f"any difference = {points(scale, limits)}"
    if scale < NEGLIGIBLE:
        return ONLY_BLANKS
    one = Unit.of(unit).one
    if one:
        return f"{one} = {points(scale, limits)}"
    size = amount(0.01 / scale, unit)
    return f"1 point = {size}" if limits is None else f"{size} = {points(0.01, limits)}"


def amount(size: float, unit: str) -> str:
    """Return a difference with its unit.

    Examples
    --------
    >>> amount(4321.0, "$ a month"), amount(42.5, "$1000")
    ('$4,320 a month', '$42,500')
    """
    words = Unit.of(unit)
    return words.difference(figure(size * words.factor))


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


KINDS = {
    "additive": "scorecard",
    "lipschitz": "1-Lipschitz network",
    "projected": "projected model",
    "smoothed": "smoothed model",
    "threshold": "soft threshold",
    "constant": "constant",
}
"""What a model is called, by how the name of its class begins."""


def measured(measure: Score, value: float, step: float | None = None) -> str:
    """Write a figure of a model: in percent where that reads best; a tick to the digits of its `step`.

    Examples
    --------
    >>> from likewise.selection.cross_validation import SCORES
    >>> brier, auc, accuracy, *_ = SCORES["classification"]
    >>> measured(brier, 0.08764), measured(accuracy, 0.886), measured(accuracy, 0.8, 0.05), measured(brier, 0.1, 0.02)
    ('0.0876', '88.6%', '80%', '0.10')
    """
    if value != value:
        return "\N{EN DASH}"
    if measure.percent:
        digits = 1 if step is None else max(0, -math.floor(math.log10(100 * step) + 1e-9))
        return f"{100 * value:.{digits}f}%"
    if step is not None:
        text = f"{value:,.{max(0, -math.floor(math.log10(step) + 1e-9))}f}"
    else:
        text = figure(value) if measure.digits is None else f"{value:.{measure.digits}f}"
    return text.replace("-", "\N{MINUS SIGN}")


def reach(found: Coverage, limits: Limits = None) -> str:
    """Say how many pairs a metric constrains; `limits` as in `points`.

    Examples
    --------
    >>> reach(Coverage(1.0, 0.041, 0.5))
    'The distance binds 100% of all pairs. The nearest other person is typically 4.1 points away.'
    """
    share = f"{100 * found.bound_share:.{0 if found.bound_share >= 0.1 else 1}f}%"
    rest = f"; the others are {points(1, limits)} apart or more" if found.bound_share < 1 else ""
    near = f"The nearest other person is typically {points(found.nearest, limits)} away."
    return f"The distance binds {share} of all pairs{rest}. {near}"
