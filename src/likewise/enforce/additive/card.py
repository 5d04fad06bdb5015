"""A scorecard as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from likewise._html import grid, panel, words
from likewise._typing import FloatArray
from likewise.enforce.additive.scorers import AdditiveScorer
from likewise.enforce.additive.shapes import Shape
from likewise.metrics.coding import Coding

COLUMNS = ["column", "range", "points", "points at end", "allowed", "binds"]
_NEARLY = 1 - 1e-4  # a share of a limit that counts as all of it
_FLAT = 1e-6  # and one that counts as nothing
_UNSEEN = 0.05  # of a gap between knots: what rounding may move one by
_MISSING, _OTHER = "missing", "any other"


class Scorecard(pd.DataFrame):
    """A table that reads well in a notebook; parts of it are plain tables."""

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def _repr_html_(self) -> str:
        rows, before = [], object()
        categories = set(self.loc[self["range"] == _OTHER, "column"])
        for row in self.itertuples(index=False):
            name, span, start, end, allowed, binds = row
            points = f"{start:+.2f}" if start == end else f"{start:+.2f} to {end:+.2f}"
            by = " by missing weight" if span == _MISSING and name not in categories else ""
            held = f"held back{by}" if binds else ""
            rows.append(("" if name == before else str(name), str(span), points, f"{allowed:.2f}", held))
            before = name
        note = (
            "Points add up to the score. Allowed is the largest change of points that the metric allows over a range, "
            "between two categories, or from a missing number to any other; where the model uses it up, the metric "
            "holds it back."
        )
        head = ["column", "range", "points", "allowed", ""]
        return panel("Scorecard", grid(head, rows, left=2), words(note, quiet=True))


def card_of(scorer: AdditiveScorer, coding: Coding, signs: FloatArray) -> Scorecard:
    """One row per range of numbers, category and missing number."""
    rows = [row for shape in scorer.model.shapes for row in _rows(scorer, coding, shape, signs)]
    return Scorecard(rows, columns=COLUMNS)


def level_names(coding: Coding, column: int) -> list[Any] | None:
    """Categories by their positions, ordered ones included, None for a missing one; None for plain numbers."""
    kind = getattr(coding, "columns", None)
    if kind is None or isinstance(kind[column], str) or not hasattr(kind[column], "categories"):
        return None
    if not coding.is_number[column]:
        return [*kind[column].levels, *([None] if kind[column].has_missing else [])]
    return None if kind[column].categories is None else list(kind[column].categories)


def allowed_rises(scorer: AdditiveScorer, coding: Coding, shape: Shape, function: int) -> FloatArray:
    """Largest rise over each gap between knots that a function may have, by its budget and by the missing weight."""
    assert shape.knots is not None
    weights = scorer.guarantee.metric.weights_of(coding)
    scale = scorer.unit * weights.scales[shape.column] * scorer.budgets[function, shape.column]
    return np.asarray(np.minimum(scale * np.diff(shape.knots), allowed_range(scorer, coding, shape)))


def allowed_range(scorer: AdditiveScorer, coding: Coding, shape: Shape) -> float:
    """Most that points of two numbers may differ: twice what is allowed from a missing one, which both are close to."""
    if shape.other is None:
        return np.inf
    return 2 * scorer.unit * float(scorer.guarantee.metric.weights_of(coding).missing[shape.column])


def _rows(scorer: AdditiveScorer, coding: Coding, shape: Shape, signs: FloatArray) -> Iterator[tuple[Any, ...]]:
    weights, name = scorer.guarantee.metric.weights_of(coding), coding.names[shape.column]
    levels, points = level_names(coding, shape.column), signs @ shape.values
    if shape.knots is None:
        assert levels is not None
        assert shape.other is not None
        allowed = scorer.unit * float(weights.scales[shape.column])
        full = np.ptp(points) >= _NEARLY * allowed
        at_end = (points == points.max()) | (points == points.min())
        for level, value, end in zip(levels, points.tolist(), at_end, strict=True):
            yield name, _MISSING if level is None else str(level), value, value, allowed, bool(full and end)
        other = float(signs @ shape.other)
        yield name, _OTHER, other, other, allowed, False
        return
    rises = allowed_rises(scorer, coding, shape, int(np.argmax(np.abs(signs))))
    most = allowed_range(scorer, coding, shape)
    binds = np.abs(np.diff(points)) >= _NEARLY * rises
    flat = np.abs(np.diff(points)) <= _FLAT * rises
    names = _names(shape.knots, levels)
    for first, last in _runs(np.where(binds, np.sign(np.diff(points)), np.where(flat, 0.0, np.nan))):
        yield (
            name,
            f"{names[first]} to {names[last]}",
            float(points[first]),
            float(points[last]),
            float(min(rises[first:last].sum(), most)),
            bool(binds[first]),
        )
    if shape.other is not None:
        value = float(signs @ shape.other)
        yield name, _MISSING, value, value, most / 2, bool(np.abs(points - value).max() >= _NEARLY * most / 2)


def _runs(kinds: FloatArray) -> Iterator[tuple[int, int]]:
    """First and last knot of each row: neighbouring gaps of one kind are one, those of no kind (NaN) stand alone."""
    first = 0
    for k in range(1, len(kinds) + 1):
        if k == len(kinds) or kinds[k] != kinds[k - 1]:
            yield first, k
            first = k


def _names(knots: FloatArray, levels: list[Any] | None) -> list[str]:
    """Knots as people write them, with six digits, or as many as show the gaps between them."""
    if levels is not None:
        return [str(levels[int(knot)]) for knot in knots]
    names = [f"{knot:.6g}" for knot in knots]
    off = np.abs(np.array(names, dtype=np.float64) - knots).max()
    if len(knots) < 2 or off <= _UNSEEN * np.diff(knots).min():
        return names
    return [f"{knot:.0f}" if knot == np.rint(knot) and abs(knot) < 1e15 else f"{knot:.15g}" for knot in knots]
