"""Geometry of the page's pictures: numbers in, coordinates out; the templates draw them as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise._typing import FloatArray
from likewise.report.data import Utility
from likewise.report.words import figure

TIMES = "\N{MULTIPLICATION SIGN}"
BINS = 40
SHADES = (1, 3, 10, 30, 100)  # pairs in a cell from which the next darker shade is used
TOLERANCE = 1e-9  # a difference above the distance by less than this is a rounding error


def axis_limit(largest: float) -> float:
    """Return the smallest round number that is at least `largest`, up to 1."""
    return next((round_ for round_ in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75) if largest <= round_), 1.0)


@dataclass(frozen=True)
class Density:
    """How many pairs lie where, by distance (to the right) and difference of scores (upwards), in cells.

    `within` and `above` hold one SVG path per shade, of the pairs that keep to the distance and of the others.
    """

    within: tuple[str, ...]
    above: tuple[str, ...]
    n_pairs: int
    n_above: int
    n_above_epsilon: int


def density(distances: FloatArray, gaps: FloatArray, limit: float, epsilon: float) -> Density:
    """Sort pairs into cells. Pairs further apart than `limit` are counted, but are outside of the picture."""
    above = gaps > distances + TOLERANCE
    shown = distances <= limit
    layers = []
    for layer in (~above, above):
        chosen = layer & shown
        column = np.minimum(BINS - 1, (distances[chosen] / limit * BINS).astype(int))
        row = np.minimum(BINS - 1, (gaps[chosen] / limit * BINS).astype(int))
        counts = np.bincount(column * BINS + row, minlength=BINS * BINS)
        layers.append(_shaded(counts))
    return Density(
        layers[0], layers[1], len(gaps), int(above.sum()), int((gaps > distances + epsilon + TOLERANCE).sum())
    )


def _shaded(counts: Any) -> tuple[str, ...]:
    shades = np.searchsorted(SHADES, counts, side="right")
    return tuple(
        "".join(f"M{cell // BINS} {BINS - 1 - cell % BINS}h1v1h-1z" for cell in np.flatnonzero(shades == shade))
        for shade in range(1, len(SHADES) + 1)
    )


WIDTH, HEIGHT = 400, 270
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 16, 48


def curves(utility: Utility) -> list[dict[str, Any]]:
    """Two charts over the factor on the metric: accuracy; and mean confidence, with the ceiling."""
    points = sorted(utility.points, key=lambda point: point.factor)
    accuracy = [(point.factor, point.accuracy) for point in points]
    confidence = [(point.factor, point.confidence) for point in points]
    ceilings = [(point.factor, point.ceiling) for point in points if point.ceiling is not None]
    sharpness = [("This model", "after", confidence)]
    if ceilings:
        sharpness.append(("Ceiling: the best any model can do under this distance", "ceiling", ceilings))
    before = utility.before
    return [
        _chart(
            "Accuracy",
            "share of people whose most likely outcome is the true one",
            [("This model", "after", accuracy)],
            None if before is None else before.accuracy,
        ),
        _chart(
            "Mean confidence",
            "mean probability given to the true outcome",
            sharpness,
            None if before is None else before.confidence,
        ),
    ]


def _chart(
    title: str, subtitle: str, series: Sequence[tuple[str, str, Sequence[tuple[float, float]]]], baseline: float | None
) -> dict[str, Any]:
    factors = [factor for factor, _ in series[0][2]]
    low, high = math.log(min(factors)), math.log(max(factors))
    if high == low:
        low, high = low - 1, high + 1
    values = [y for _, _, line in series for _, y in line] + ([] if baseline is None else [baseline])
    bottom, top, ticks = _ticks(min(values), max(values))

    def x(factor: float) -> float:
        return round(LEFT + (math.log(factor) - low) / (high - low) * (WIDTH - LEFT - RIGHT), 1)

    def y(value: float) -> float:
        return round(TOP + (top - value) / (top - bottom) * (HEIGHT - TOP - BOTTOM), 1)

    return {
        "title": title,
        "subtitle": subtitle,
        "x_ticks": _spaced([(x(factor), f"{TIMES}{figure(factor)}") for factor in factors]),
        "y_ticks": [(y(tick), f"{100 * tick:.0f} %") for tick in ticks],
        "chosen": x(1.0) if min(factors) <= 1 <= max(factors) else None,
        "baseline": None if baseline is None else y(baseline),
        "series": [
            {"name": name, "class": kind, "dots": [(x(a), y(b)) for a, b in line]} for name, kind, line in series
        ],
    }


def _ticks(low: float, high: float) -> tuple[float, float, list[float]]:
    """Axis limits and ticks at round shares that hold `low` and `high`."""
    step = next((step for step in (0.02, 0.05, 0.1) if high - low <= 4 * step), 0.2)
    first, last = math.floor(low / step - 0.2), math.ceil(high / step + 0.2)
    first, last = max(0, first), min(round(1 / step), max(last, first + 2))
    return first * step, last * step, [k * step for k in range(first, last + 1)]


def _spaced(ticks: Sequence[tuple[float, str]], room: float = 40.0) -> list[tuple[float, str]]:
    """Return the ticks whose labels do not overlap, keeping the factor 1 wherever it is."""
    kept = [tick for tick in ticks if tick[1] == f"{TIMES}1"]
    for tick in ticks:
        if all(abs(tick[0] - other[0]) >= room for other in kept):
            kept.append(tick)
    return sorted(kept)
