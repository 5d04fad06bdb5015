"""Geometry of the charts: numbers in, coordinates out; the templates draw them as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.design.frontier import MetricFrontier
from likewise.design.references import Reference
from likewise.metrics.units import Unit
from likewise.report.data import Cost
from likewise.report.pairs import PairScan
from likewise.report.text import Limits, figure, measured
from likewise.report.text import points as points_text
from likewise.scorecard.display import Panel, height
from likewise.selection.cross_validation import SCORES

TIMES = "\N{MULTIPLICATION SIGN}"
SHADES = 5  # of a colour; each means several times as many pairs as the one before
_LABEL_WIDTH = 40.0  # least distance of two ticks


def pictures(scan: PairScan) -> dict[str, list[list[str]]]:
    """Of each model SVG paths of the cells by shade: of pairs within their distance, and of those above it."""
    most = max(int(cells.max()) for cells in scan.cells.values())
    steps = np.geomspace(1, max(most, 2), SHADES + 1)[:-1].round(9)
    return {name: [_shaded(layer, steps) for layer in cells] for name, cells in scan.cells.items()}


def _shaded(counts: IntArray, steps: FloatArray) -> list[str]:
    """One path per shade; neighbours of one shade are one rectangle."""
    shades = np.searchsorted(steps, counts.T[::-1], side="right")  # the largest difference above, as on the page
    paths = []
    for shade in range(1, SHADES + 1):
        ends = np.diff(np.pad(shades == shade, ((0, 0), (1, 1))).astype(int))
        runs = zip(np.argwhere(ends == 1).tolist(), np.argwhere(ends == -1).tolist(), strict=True)
        paths.append("".join(f"M{x} {y}h{end - x}v1h{x - end}z" for (y, x), (_, end) in runs))
    return paths


# -- the trade-off ------------------------------------------------------------------------------------------------

WIDTH, HEIGHT = 460, 250
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 14, 52


@dataclass(frozen=True)
class _Axes:
    """A logarithmic axis to the right, and a linear one with round ticks upwards."""

    places: Sequence[float]
    values: Sequence[float]

    @cached_property
    def upwards(self) -> tuple[float, float, list[float]]:
        """Lowest and highest value of the axis, and its ticks."""
        return round_ticks(self.values)

    def x(self, place: float) -> float:
        low, high = math.log(min(self.places)), math.log(max(self.places))
        share = (math.log(place) - low) / (high - low) if high > low else 0.5
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def x_if_there(self, place: float) -> float | None:
        return self.x(place) if min(self.places) <= place <= max(self.places) else None

    def y(self, value: float) -> float:
        bottom, top, _ = self.upwards
        return round(TOP + (top - value) / (top - bottom) * (HEIGHT - TOP - BOTTOM), 1)

    def dots(self, points: Sequence[tuple[float, float, float]]) -> list[tuple[float, ...]]:
        """Points with the ends of their errors."""
        return [(self.x(place), self.y(v), self.y(v + e), self.y(v - e)) for place, v, e in points]


def tradeoff_chart(cost: Cost) -> dict[str, Any] | None:
    """The error over the scale of the metric."""
    if cost.tradeoff is None:
        return None
    name = "rmse" if cost.tradeoff.task == "regression" else "brier"
    measure = next(measure for measure in SCORES[cost.tradeoff.task] if measure.name == name)
    table, scales = cost.tradeoff.table, [float(scale) for scale in cost.tradeoff.results]
    own = [(s, float(v), float(e)) for s, v, e in zip(scales, table[name], table[f"{name}_se"], strict=True)]
    lines = [
        ("the unconstrained model", float(cost.tradeoff.unconstrained.row[name]), "free"),
        ("a constant", float(cost.tradeoff.constant.row[name]), "base"),
    ]
    axes = _Axes(scales, [v + sign * e for _, v, e in own for sign in (-1, 1)] + [v for _, v, _ in lines])
    ticks = axes.upwards[2]
    return {
        "title": measure.title[0].upper() + measure.title[1:],
        "own": "this model, with its standard error",
        "x_title": "",
        "x_ticks": _spaced([(axes.x(scale), f"{TIMES}{figure(scale)}") for scale in scales]),
        "y_ticks": [(axes.y(tick), measured(measure, tick, ticks[1] - ticks[0])) for tick in ticks],
        "chosen": axes.x_if_there(1.0),
        "lines": [(title, axes.y(value), key) for title, value, key in lines],
        "dots": axes.dots(own),
        "beside": [],
        "measured_on": "",
        "head": ["All distances times", measure.title, "Standard error"],
        "rows": [(figure(s), measured(measure, v), measured(measure, e)) for s, v, e in own],
    }


def frontier_chart(frontier: MetricFrontier, distance: float, limits: Limits = None) -> dict[str, Any]:
    """Held-out loss against mean distance: the designed metrics, and what they are compared with.

    `distance` is that of the report's metric; `limits` are of numbers that are predicted.
    """
    width = 100 if limits is None else limits[1] - limits[0]
    points = [(point.mean_distance, point.loss, point.standard_error) for point in frontier.points]
    beside = {title: one for title, one in frontier.references.items() if one.mean_distance}
    lines = {title: one for title, one in frontier.references.items() if not one.mean_distance}
    distances = [d for d, _, _ in points] + [one.mean_distance for one in beside.values() if one.mean_distance]
    ends = [loss + sign * error for _, loss, error in points for sign in (-1, 1)]
    axes = _Axes(distances, [*ends, *(one.loss for one in frontier.references.values())])
    return {
        "title": frontier.loss_name,
        "own": "designed metrics with their cards, and standard errors",
        "x_title": "mean distance" if limits else "mean distance, points",
        "x_ticks": _spaced([(axes.x(d), f"{width * d:.3g}") for d, _, _ in points]),
        "y_ticks": [(axes.y(tick), figure(tick)) for tick in axes.upwards[2]],
        "chosen": axes.x_if_there(distance),
        "distance": distance,
        "lines": [(title, axes.y(x.loss), "free" if x.mean_distance is None else "base") for title, x in lines.items()],
        "dots": axes.dots(points),
        "beside": [(title, axes.x(float(one.mean_distance or 0)), axes.y(one.loss)) for title, one in beside.items()],
        "head": ["Mean distance", frontier.loss_name, "Standard error"],
        "rows": [
            *((points_text(d, limits), f"{v:.4f}", f"{e:.4f}") for d, v, e in points),
            *(
                (title if not one.mean_distance else f"{title}, {points_text(one.mean_distance, limits)}", *_loss(one))
                for title, one in frontier.references.items()
            ),
        ],
        "measured_on": f"{frontier.n_people:,} people in {frontier.n_folds} folds.",
    }


def _loss(reference: Reference) -> tuple[str, str]:
    return f"{reference.loss:.4f}", f"{reference.standard_error:.4f}"


def round_ticks(values: Sequence[float]) -> tuple[float, float, list[float]]:
    """Axis limits and three to six ticks at round numbers that hold all values."""
    low, high = min(values), max(values)
    span = high - low or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / 3))
    step = next(power * k for k in (1, 2, 5, 10) if span / (power * k) <= 4)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    return first * step, last * step, [k * step for k in range(first, last + 1)]


def _spaced(ticks: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Return the ticks whose labels do not overlap, keeping the scale 1 wherever it is."""
    kept = [tick for tick in ticks if tick[1] == f"{TIMES}1"]
    for tick in ticks:
        if all(abs(tick[0] - other[0]) >= _LABEL_WIDTH for other in kept):
            kept.append(tick)
    return sorted(kept)


# -- the shapes of a scorecard --------------------------------------------------------------------------------------

PANEL_WIDTH, PANEL_HEIGHT = 240, 100


def shapes(panels: Sequence[Panel], units: Any, first: int) -> dict[str, Any]:
    """All panels on one scale of points: paths of the fan, of the shape, and of where the metric holds it back.

    The `first` few are those that move the score most.
    """
    ordered = sorted(panels, key=lambda panel: -float(np.ptp(panel.points)))
    ordered = [p for some in (ordered[:first], ordered[first:]) for p in sorted(some, key=lambda p: p.knots is None)]
    low, high = height(list(panels))

    def y(value: float) -> float:
        inside = min(max(value, low - (high - low)), high + (high - low))  # far outside it is clipped anyway
        return round(PANEL_HEIGHT * (high - inside) / (high - low), 1)

    drawn = [
        (_drawn_categories(panel, y) if panel.knots is None else _drawn_numbers(panel, y, units.get(panel.column, "")))
        | {"name": panel.column, "id": k}
        for k, panel in enumerate(ordered)
    ]
    ticks = [tick for tick in round_ticks([low, high])[2] if low <= tick <= high]
    return {
        "first": drawn[:first],
        "others": drawn[first:],
        "ticks": [(y(tick), _signed(tick)) for tick in ticks],
        "zero": y(0.0),
    }


def _signed(tick: float) -> str:
    sign = "\N{MINUS SIGN}" if tick < 0 else "+"
    return "0" if abs(tick) < 1e-9 else sign + figure(abs(tick))


def round_ends(first: float, last: float) -> tuple[float, float]:
    """Ends of an axis, rounded to at most a two-hundredth of its width.

    Examples
    --------
    >>> round_ends(2003.0, 2009.0), round_ends(0.12345, 98.7654), round_ends(7.0, 7.0)
    ((2003.0, 2009.0), (0.1, 98.8), (7.0, 7.0))
    """
    width = last - first
    if not 0 < width < math.inf:
        return first, last
    digits = 2 - math.floor(math.log10(width))
    return round(first, digits) + 0.0, round(last, digits) + 0.0  # not -0


def _drawn_numbers(panel: Panel, y: Callable[[float], float], unit: str) -> dict[str, Any]:
    assert panel.knots is not None
    first, last = panel.ends
    width = last - first or 1.0

    def x(value: float) -> float:
        return round(PANEL_WIDTH * min(max((value - first) / width, -1.0), 2.0), 1)

    at = [x(knot) for knot in panel.knots]
    line = [f"{a} {y(b)}" for a, b in zip(at, panel.points, strict=True)]
    upper = [f"{a} {y(b)}" for a, b in zip(at, panel.high, strict=True)]
    lower = [f"{a} {y(b)}" for a, b in zip(at, panel.low, strict=True)]
    held = "".join(f"M{line[k]}L{line[k + 1]}" for k in np.flatnonzero(panel.binds))
    if panel.levels:
        names = [panel.levels[int(first)], panel.levels[int(last)]]
    else:
        names = [Unit.of("%" if unit.startswith("%") else unit).written(end) for end in round_ends(first, last)]
    return {
        "fan": f"M{'L'.join(upper)}L{'L'.join(reversed(lower))}z",
        "line": "M" + "L".join(line),
        "held": held,
        "ends": names,
        "states": [(name, y(value), _signed(value)) for name, value in panel.states],
        "levels": (),
        "unit": unit if unit.startswith("%") and len(unit) > 1 else "",
    }


def _drawn_categories(panel: Panel, y: Callable[[float], float]) -> dict[str, Any]:
    step = PANEL_WIDTH / len(panel.levels)
    return {
        "band": (y(float(panel.high[0])), y(float(panel.low[0]))),
        "stems": [
            (round((k + 0.5) * step, 1), y(float(value)), bool(binds))
            for k, (value, binds) in enumerate(zip(panel.points, panel.binds, strict=True))
        ],
        "levels": panel.levels,
        "fan": "",
        "unit": "",
    }
