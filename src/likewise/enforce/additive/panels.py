"""What there is to draw of a scorecard: the shape of each column, and what the metric allows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise._typing import BoolArray, FloatArray
from likewise.enforce.additive.card import allowed_range, allowed_rises, level_names
from likewise.enforce.additive.reading import Readable
from likewise.enforce.additive.shapes import Shape
from likewise.errors import InvalidTypeError

_MOST_LEVELS = 12
_NEARLY = 1 - 1e-4  # a share of a limit that counts as all of it
_TAIL = 0.02  # of a column's range of points: what a tail that is not drawn may move


@dataclass(frozen=True, eq=False)
class Panel:
    """One column of a scorecard.

    Attributes
    ----------
    column : str
    knots : ndarray of shape (n_knots,), or None
        None for categories.
    points : ndarray of shape (n_knots or n_levels,)
    low, high : ndarray of the same shape
        What the metric allows: a fan that opens at the middle of the people, or the widest range of categories.
    binds : ndarray of bool
        Whether the metric holds the model back: for each gap between knots, or for each category.
    levels : tuple of str
        Categories in the order of their points, the ends if there are many; those of an order; or none.
    missing : float or None
        Points of a missing number.
    """

    column: str
    knots: FloatArray | None
    points: FloatArray
    low: FloatArray
    high: FloatArray
    binds: BoolArray
    levels: tuple[str, ...]
    missing: float | None

    @property
    def ends(self) -> tuple[float, float]:
        """Of the knots to draw: a far tail beyond the outer quantiles is cut where points hardly move."""
        assert self.knots is not None
        first, last = float(self.knots[0]), float(self.knots[-1])
        if len(self.knots) < 8:
            return first, last
        inner_low, inner_high = float(self.knots[1]), float(self.knots[-2])
        width, little = inner_high - inner_low, _TAIL * float(np.ptp(self.points))
        low, high = max(first, inner_low - 0.5 * width), min(last, inner_high + 0.5 * width)
        at_low, at_high = np.interp([low, high], self.knots, self.points)
        return (
            low if abs(self.points[0] - at_low) <= little else first,
            high if abs(self.points[-1] - at_high) <= little else last,
        )


def panels_of(model: Any, outcome: Any = None, most: int | None = None) -> list[Panel]:
    """Columns of a fitted additive model, those whose points range most, numbers before categories.

    Examples
    --------
    >>> import pandas as pd
    >>> from likewise import AdditiveClassifier, WeightedLp
    >>> model = AdditiveClassifier(WeightedLp({"age": 0.02}), penalty=1e-3)
    >>> (panel,) = panels_of(model.fit(pd.DataFrame({"age": [20, 40, 60, 70]}), [0, 1, 0, 1]))
    >>> panel.column, panel.ends
    ('age', (20.0, 70.0))
    """
    if not isinstance(model, Readable):
        raise InvalidTypeError(
            f"model must be a fitted AdditiveClassifier or AdditiveRegressor; got {type(model).__name__}."
        )
    signs, shapes = model._signs(outcome), model._scorer().model.shapes
    spans = np.array([np.ptp(signs @ shape.values) for shape in shapes])
    order = np.argsort(-spans, kind="stable")[:most].tolist()
    order.sort(key=lambda j: shapes[j].knots is None)  # panels of a kind stand together
    return [(_categories if shapes[j].knots is None else _numbers)(model, shapes[j], signs) for j in order]


def height(panels: list[Panel]) -> tuple[float, float]:
    """Ends of the points to draw, the same for all: every point of every column, and 0, is in the picture."""
    values = [np.append(panel.points, [] if panel.missing is None else panel.missing) for panel in panels]
    if not values:
        return -1.0, 1.0
    low, high = min(0.0, *(float(line.min()) for line in values)), max(0.0, *(float(line.max()) for line in values))
    margin = 0.08 * ((high - low) or 1.0)
    return low - margin, high + margin


def _numbers(model: Any, shape: Shape, signs: FloatArray) -> Panel:
    assert shape.knots is not None
    points = signs @ shape.values
    rises = allowed_rises(model._scorer(), model.coding_, shape, int(np.argmax(np.abs(signs))))
    # Knots stand at quantiles, so the middle one is where the middle of the people is.
    at = len(shape.knots) // 2
    reach = np.concatenate([[0.0], np.cumsum(rises)])
    fan = np.minimum(np.abs(reach - reach[at]), allowed_range(model._scorer(), model.coding_, shape))
    levels = level_names(model.coding_, shape.column)
    return Panel(
        str(model.coding_.names[shape.column]),
        shape.knots,
        points,
        points[at] - fan,
        points[at] + fan,
        np.abs(np.diff(points)) >= _NEARLY * rises,
        () if levels is None else tuple(str(level) for level in levels),
        None if shape.other is None else float(signs @ shape.other),
    )


def _categories(model: Any, shape: Shape, signs: FloatArray) -> Panel:
    scorer, points = model._scorer(), signs @ shape.values
    allowed = scorer.unit * float(scorer.guarantee.metric.weights_of(model.coding_).scales[shape.column])
    ends = (points == points.max()) | (points == points.min())
    order = np.argsort(points, kind="stable")
    if len(order) > _MOST_LEVELS:  # the ends say most
        half = _MOST_LEVELS // 2
        order = np.concatenate([order[:half], order[-half:]])
    names: Any = level_names(model.coding_, shape.column)
    middle = np.full(len(order), (points.max() + points.min()) / 2)
    return Panel(
        str(model.coding_.names[shape.column]),
        None,
        points[order],
        middle - allowed / 2,
        middle + allowed / 2,
        ends[order] & (np.ptp(points) >= _NEARLY * allowed),
        tuple("missing" if names[i] is None else str(names[i]) for i in order),
        None,
    )
