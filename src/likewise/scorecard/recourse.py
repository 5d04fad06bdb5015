"""The change of the fewest columns, and then the smallest, that gains a given number of points on a card, exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import numpy as np

from likewise._typing import FloatArray
from likewise.additive.scorer import AdditiveScorer, PointsScorer, level_names
from likewise.exceptions import InvalidInputError
from likewise.kernel.evidence import Shape
from likewise.kernel.schema import People
from likewise.scorecard.tables import unit_of

_Front = tuple[FloatArray, FloatArray, list[dict[int, float]]]  # distances and gains of changes, and the changes
Way = Literal["increase", "decrease", "any"]
_MOST_STEPS = 100_000  # of a column; all of them are compared
_FEWEST_STEPS = 50  # of a column whose step nobody has stated: the step is the largest power of ten with so many
_DIGITS = 12  # of a number in a notice
_UNKNOWN = {
    *("", "-", "--", ".", "?", "n.a.", "n/a", "na", "nan", "not available", "not applicable", "not known"),
    *("not provided", "not reported", "not stated", "null", "missing", "unknown", "unspecified"),
}  # a category of this name is no advice


@dataclass(frozen=True, eq=False)
class Column:
    """The values that a column of a person can change to, without those that gain no more than a nearer one.

    Attributes
    ----------
    column : int
    values : ndarray
        Numbers, ranks or indices of categories, the nearest first.
    distances, gains : ndarray
        Their distances from the present value, and what they gain in points; both increase.
    """

    column: int
    values: FloatArray
    distances: FloatArray
    gains: FloatArray

    @classmethod
    def of(cls, column: int, values: FloatArray, distances: FloatArray, gains: FloatArray) -> Column:
        """From values in any order."""
        better = np.flatnonzero(gains > 0)
        kept = better[_front(distances[better], gains[better])]
        return cls(column, values[kept], distances[kept], gains[kept])


def _front(distances: FloatArray, gains: FloatArray) -> Any:
    """Positions of the Pareto front: those that gain more than all others at most as far away, the nearest first."""
    order = np.lexsort((-gains, distances))
    before = np.append(-np.inf, np.maximum.accumulate(gains[order])[:-1])
    return order[gains[order] > before]


def smallest_change(columns: list[Column], gain: float) -> dict[int, float] | None:
    """Values of the fewest columns that gain at least `gain`, with the smallest sum of distances; None if none do."""
    columns = [column for column in columns if len(column.gains)]
    for size in range(len(columns) + 1):
        found = _nearest(columns, gain, size)
        if found is not None:
            return dict(sorted(found.items()))
    return None


def _nearest(columns: list[Column], gain: float, size: int) -> dict[int, float] | None:
    """The smallest change of `size` columns, where no fewer are enough.

    Column by column, the Pareto front of the changes of each smaller size is kept: of two of one size, one that is
    no nearer and gains no more cannot be part of a better one. Nor can one that the best of the later columns do not
    complete. The last column of a change takes the nearest value that is enough.
    """
    if size == 0:
        return {} if gain <= 0 else None
    best, chosen = np.inf, None
    fronts: list[_Front] = [(np.zeros(1), np.zeros(1), [{}])]
    fronts += [(np.empty(0), np.empty(0), []) for _ in range(size - 1)]
    for j, column in enumerate(columns):
        later = sorted((float(other.gains[-1]) for other in columns[j + 1 :]), reverse=True)
        distances, gains, picks = fronts[size - 1]
        last = np.searchsorted(column.gains, gain - gains)
        for k in np.flatnonzero(last < len(column.gains)).tolist():
            distance = float(distances[k] + column.distances[last[k]])
            if distance < best:
                best, chosen = distance, picks[k] | {column.column: float(column.values[last[k]])}
        for n in range(size - 1, 0, -1):
            before, after = fronts[n - 1], fronts[n]
            d = np.append(after[0], before[0][:, None] + column.distances)
            g = np.append(after[1], before[1][:, None] + column.gains)
            room = sum(later[: size - n]) * (1 + 1e-9) + 1e-9  # rounding must not lose what is just enough
            kept = np.flatnonzero((g + room >= gain) & (d < best))
            kept = kept[_front(d[kept], g[kept])]
            both = []
            for place in kept.tolist():
                state, option = divmod(place - len(after[0]), len(column.gains))
                more = {column.column: float(column.values[option])}
                both.append(after[2][place] if place < len(after[0]) else before[2][state] | more)
            fronts[n] = d[kept], g[kept], both
    return chosen


def changeable_columns(
    scorer: AdditiveScorer, people: People, row: int, sign: float, ways: Mapping[str, Way], steps: Mapping[str, float]
) -> list[Column]:
    """The columns that a person can change, with points for the class that `sign` turns them to.

    What is not known of a person (a blank, or a special code) is no fact that could change, and nobody is told to
    become unknown.
    """
    weights, found = scorer.model.metric, []
    for shape in scorer.model.shapes:
        i, name, now = shape.column, str(people.encoder.names[shape.column]), float(people.rows[row, shape.column])
        levels = level_names(people.encoder, i)
        codes = weights.codes(i)
        unknown = math.isnan(now) or now in codes or (levels is not None and not _is_known(levels, now))
        if name not in ways or unknown:
            continue
        scale, unit = float(weights.scales[i]), unit_of(scorer.guarantee.metric, people.encoder.names[i])
        if levels is None:
            values = np.setdiff1d(_steps(shape, name, steps.get(name), unit.factor), codes)
        else:
            values = np.array([k for k in range(len(levels)) if k != now and _is_known(levels, k)], float)
        if ways[name] != "any":
            values = values[values > now] if ways[name] == "increase" else values[values < now]
        if shape.knots is None:
            points, present = shape.values[0][values.astype(int)], shape.values[0][int(now)]
            distances = np.full(len(values), scale)
            if i in weights.tables:
                distances = distances * weights.tables[i][int(now)][values.astype(int)]
        else:
            points = np.interp(values, shape.knots, shape.values[0])
            present = float(np.interp(now, shape.knots, shape.values[0]))
            distances = scale * np.abs(values - now)
        found.append(Column.of(i, values, distances, sign * (points - present)))
    return found


def _is_known(levels: list[Any], value: float) -> bool:
    """Whether a category was seen, and says something."""
    if not 0 <= value < len(levels) or levels[int(value)] is None:
        return False
    return str(levels[int(value)]).strip().casefold() not in _UNKNOWN


def _steps(shape: Shape, name: str, step: float | None, factor: float) -> FloatArray:
    """Multiples of a step over the range of a card, each the number that its text says; one more at either end.

    Beyond the outermost knots points stay the same. A step that nobody has stated is a power of ten in the unit that
    people read, and at least 1 where the card knows whole numbers only.
    """
    assert shape.knots is not None
    low, high = float(shape.knots[0]) * factor, float(shape.knots[-1]) * factor
    if step is None:
        size = 10.0 ** math.floor(math.log10((high - low or 1.0) / _FEWEST_STEPS))
        size = max(size, factor) if (shape.knots == np.rint(shape.knots)).all() else size
    else:
        size = step * factor
    if high - low > _MOST_STEPS * size:
        least = (high - low) / factor / _MOST_STEPS
        raise InvalidInputError(
            f"policy step of {name!r} must be at least {least:g}, so that there are at most {_MOST_STEPS:,} numbers to "
            f"compare; got {step:g}. Use a larger step."
        )
    count = range(math.floor(low / size), math.ceil(high / size) + 1)
    return np.array([float(f"{k * size:.{_DIGITS}g}") / factor for k in count])


def written_number(scorer: AdditiveScorer, column: int, value: float) -> str:
    """A number of `changeable_columns` in its unit, with all digits: what is read is enough."""
    unit = unit_of(scorer.guarantee.metric, scorer.model.metric.schema.names[column])
    digits = Decimal(f"{value * unit.factor:.{_DIGITS}g}")
    return f"{unit.prefixed(f'{digits:,f}')}{unit.suffix}"


def needed_score(scorer: AdditiveScorer, threshold: float, sign: float) -> float:
    """The score of the favourable outcome at a probability."""
    if scorer.link == "clip":
        score = threshold - 0.5
    elif scorer.link == "probit":
        from scipy.special import ndtri

        score = float(ndtri(threshold))
    else:
        score = math.log(threshold / (1 - threshold))
    if isinstance(scorer, PointsScorer):
        base, odds = scorer.base_score, math.log(scorer.base_odds)
        score = sign * base + (score - sign * odds) * scorer.points_to_double / math.log(2)
    return score
