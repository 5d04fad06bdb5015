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


class Scorecard(pd.DataFrame):
    """A table that reads well in a notebook; parts of it are plain tables."""

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def _repr_html_(self) -> str:
        rows, before = [], object()
        for row in self.itertuples(index=False):
            name, span, start, end, allowed, binds = row
            points = f"{start:+.2f}" if start == end else f"{start:+.2f} to {end:+.2f}"
            held = "held back" if binds else ""
            rows.append(("" if name == before else str(name), str(span), points, f"{allowed:.2f}", held))
            before = name
        note = (
            "Points add up to the score. Allowed is the largest change of points that the metric allows over a range, "
            "or between two categories; where the model uses it up, the metric holds it back."
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
    """Largest rise over each gap between knots that a function may have, by its budget."""
    assert shape.knots is not None
    weights = scorer.guarantee.metric.weights_of(coding)
    scale = scorer.unit * weights.scales[shape.column] * scorer.budgets[function, shape.column]
    return np.asarray(scale * np.diff(shape.knots))


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
            yield name, "missing" if level is None else str(level), value, value, allowed, bool(full and end)
        other = float(signs @ shape.other)
        yield name, "any other", other, other, allowed, False
        return
    rises = allowed_rises(scorer, coding, shape, int(np.argmax(np.abs(signs))))
    binds = np.abs(np.diff(points)) >= _NEARLY * rises
    flat = np.abs(np.diff(points)) <= _FLAT * rises
    for first, last in _runs(np.where(binds, np.sign(np.diff(points)), np.where(flat, 0.0, np.nan))):
        ends = (_number(shape.knots[k], levels) for k in (first, last))
        yield (
            name,
            " to ".join(ends),
            float(points[first]),
            float(points[last]),
            float(rises[first:last].sum()),
            bool(binds[first]),
        )
    if shape.other is not None:
        value = float(signs @ shape.other)
        allowed = scorer.unit * float(weights.missing[shape.column])
        yield name, "missing", value, value, allowed, bool(np.abs(points - value).max() >= _NEARLY * allowed)


def _runs(kinds: FloatArray) -> Iterator[tuple[int, int]]:
    """First and last knot of each row: neighbouring gaps of one kind are one, those of no kind (NaN) stand alone."""
    first = 0
    for k in range(1, len(kinds) + 1):
        if k == len(kinds) or kinds[k] != kinds[k - 1]:
            yield first, k
            first = k


def _number(value: float, levels: list[Any] | None) -> str:
    return f"{value:.6g}" if levels is None else str(levels[int(value)])
