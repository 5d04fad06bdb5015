"""Exact weights of additive models: one function per column behind a link (`docs/theory.md` §8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from likewise._typing import FloatArray
from likewise.exceptions import UnprovableError
from likewise.inspection.additive_form import AdditiveForm, ColumnEffect
from likewise.inspection.additive_scores import Curve
from likewise.inspection.linear import CategoryChanges

_MAX_PIECES = 4096  # most intervals of a set of scores; beyond that, the smallest gaps are closed
_MAX_CLOSED = 0.01  # of a score: largest total width of closed gaps
_REACHED = 1e-9
_FAR = 1e300  # stands for infinity in differences
_SHOWN = 3  # jumps named in an error


@dataclass(frozen=True, eq=False)
class ScoreSet:
    """Scores that some columns can add up to: a union of intervals, disjoint and increasing.

    Attributes
    ----------
    low, high : ndarray
    closed : float
        Width of the gaps that were closed to keep the intervals few. The set is then too large, which is sound.
    """

    low: FloatArray
    high: FloatArray
    closed: float = 0.0

    @classmethod
    def of(cls, effect: ColumnEffect) -> ScoreSet:
        """What one column can add."""
        low = high = np.empty(0)
        if effect.pieces is not None:
            ends = np.array([_range(*segment) for segment in effect.segments()])
            low, high = ends[:, 0], ends[:, 1]
        if effect.values is not None:
            low = high = np.asarray(effect.values, dtype=np.float64)
        if effect.blank is not None:
            low, high = np.append(low, effect.blank), np.append(high, effect.blank)
        return _merged(low, high, 0.0)

    def plus(self, other: ScoreSet) -> ScoreSet:
        """The set of sums of one score from each."""
        if not np.isfinite([self.low[0], self.high[-1], other.low[0], other.high[-1]]).all():
            return _merged(np.array([self.low[0] + other.low[0]]), np.array([self.high[-1] + other.high[-1]]), 0.0)
        low = (self.low[:, None] + other.low).ravel()
        high = (self.high[:, None] + other.high).ravel()
        return _merged(low, high, self.closed + other.closed)

    def nearest(self, low: Any, high: Any) -> tuple[FloatArray, FloatArray]:
        """The score and the number from `low` to `high` that are closest to each other."""
        low, high = np.clip(low, -_FAR, _FAR), np.clip(high, -_FAR, _FAR)
        starts, ends = np.clip(self.low, -_FAR, _FAR), np.clip(self.high, -_FAR, _FAR)
        after = np.minimum(np.searchsorted(ends, low), len(ends) - 1)  # the first that ends at low or later
        score = np.minimum(np.maximum(starts[after], low), ends[after])
        other = ends[np.maximum(after - 1, 0)]
        away, other_away = (np.abs(s - np.clip(s, low, high)) for s in (score, other))
        score = np.where(other_away < away, other, score)
        return score, np.clip(score, low, high)


def _merged(low: FloatArray, high: FloatArray, closed: float) -> ScoreSet:
    order = np.argsort(low, kind="stable")
    low, reached = low[order], np.maximum.accumulate(high[order])
    gaps = low[1:] - reached[:-1]
    split = gaps > 0
    if split.sum() >= _MAX_PIECES:
        widest = np.partition(gaps, -_MAX_PIECES)[-_MAX_PIECES]
        split = gaps > widest
        closed += float(widest)
        if closed > _MAX_CLOSED:
            raise UnprovableError("the scores of its columns take too many values that are far apart")
    return ScoreSet(low[np.append(True, split)], reached[np.append(split, True)], closed)


def _range(start: float, end: float, c: FloatArray) -> tuple[float, float]:
    """Smallest and largest value of a piece; infinite if it is unbounded and not constant."""
    if np.isfinite(end - start):
        values = np.polyval(c, [0.0, end - start, *_roots(np.polyder(c), 0.0, end - start)])
        return float(values.min()), float(values.max())
    if np.any(c[:-2]):
        raise UnprovableError("a spline extrapolates with an unbounded slope; declare the range in domain")
    slope, value = float(c[-2]) if len(c) > 1 else 0.0, float(c[-1])
    if not slope:
        return value, value
    falls = np.isinf(start) if slope > 0 else np.isinf(end)  # towards the unbounded end
    rises = np.isinf(end) if slope > 0 else np.isinf(start)
    return -np.inf if falls else value, np.inf if rises else value


def _roots(c: Any, low: float, high: float) -> list[float]:
    found = np.roots(c) if np.any(c) else np.empty(0)
    real = found[np.abs(found.imag) <= 1e-9 * np.maximum(1.0, np.abs(found))].real
    return [float(root) for root in real if low < root < high]


class ExactWeights(NamedTuple):
    """Weights of numbers, of categories, and of missing numbers."""

    numeric: dict[Any, float]
    categorical: dict[Any, float]
    missing: dict[Any, float]


def exact_weights(form: AdditiveForm, seen: Mapping[Any, tuple[float, float] | None]) -> ExactWeights:
    """The smallest weights under which no pair exceeds the distance, for all people with the columns of the form.

    A weight is the largest change of output that its column alone can make, per unit of the column: over all scores
    that the other columns can add up to. That of a missing number is for numbers within the range `seen`, if it is
    given.
    """
    found = ExactWeights({}, {}, {})
    for name, effect, rest in _with_others(form):
        if not effect.is_number:
            own = ScoreSet.of(effect)
            found.categorical[name] = float(_changes(form.curve, rest, own.low[:1], own.high[-1:])[0])
            continue
        found.numeric[name] = (
            _steepest(name, effect, rest, form.curve) if effect.grid is None else _steps(effect, rest, form.curve)
        )
        if effect.blank is not None:
            own = ScoreSet.of(replace(effect, blank=None, ends=seen.get(name) or effect.ends))
            ends = np.array([own.low[0], own.high[-1]])
            found.missing[name] = float(_changes(form.curve, rest, np.full(2, effect.blank), ends).max())
    return found


def category_changes(form: AdditiveForm) -> dict[Any, CategoryChanges]:
    """Largest changes of output between categories of the columns whose categories are known by name."""
    found = {}
    for name, effect, rest in _with_others(form):
        if effect.levels and effect.values is not None:
            one, other = (each.ravel() for each in np.meshgrid(effect.values, effect.values))
            n = len(effect.values)
            found[name] = CategoryChanges(effect.levels, _changes(form.curve, rest, one, other).reshape(n, n))
    return found


def _with_others(form: AdditiveForm) -> Iterator[tuple[Any, ColumnEffect, ScoreSet]]:
    """Each column, and the scores that all others and the intercept can add up to."""
    sets = [ScoreSet.of(effect) for effect in form.effects.values()]
    start = np.array([form.intercept])
    before, after = [ScoreSet(start, start)], [ScoreSet(np.zeros(1), np.zeros(1))]
    for ahead, behind in zip(sets[:-1], sets[:0:-1], strict=True):
        before.append(before[-1].plus(ahead))
        after.append(after[-1].plus(behind))
    for (name, effect), one, other in zip(form.effects.items(), before, after[::-1], strict=False):
        yield name, effect, one.plus(other)


def _changes(curve: Curve, rest: ScoreSet, one: FloatArray, other: FloatArray) -> FloatArray:
    """Largest changes of the output if a column's part of the score changes from `one` to `other`."""
    if not np.isfinite([one, other]).all():
        apart = np.where(one == other, 0.0, np.inf)
        return np.asarray(np.abs(curve.value(apart) - curve.value(-apart)))
    middle = curve.centre - (one + other) / 2
    score, _ = rest.nearest(middle, middle)
    return np.asarray(np.abs(curve.value(score + one) - curve.value(score + other)))


def _steps(effect: ColumnEffect, rest: ScoreSet, curve: Curve) -> float:
    """Largest change per unit on a grid. Neighbours suffice: other changes are sums of theirs."""
    assert effect.grid is not None
    assert effect.values is not None
    changes = _changes(curve, rest, effect.values[:-1], effect.values[1:])
    return float((changes / np.diff(effect.grid)).max(initial=0.0))


def _steepest(name: Any, effect: ColumnEffect, rest: ScoreSet, curve: Curve) -> float:
    """Largest slope of the output."""
    if effect.jumps():
        raise UnprovableError(_said_jumps(name, effect, rest, curve))
    largest, reached = 0.0, 0.0
    for start, end, c in effect.segments():
        low, high = _range(start, end, c)
        if len(c) < 3 or not np.any(c[:-2]):  # a line: the slope of the link decides
            slope = abs(float(c[-2])) if len(c) > 1 else 0.0
            score, target = rest.nearest(curve.centre - high, curve.centre - low)
            reached = max(reached, slope * float(curve.slope(score - target + curve.centre)))
            continue
        slopes = np.polyder(c)
        places = np.array([0.0, end - start, *_roots(np.polyder(slopes), 0.0, end - start)])
        steep = np.abs(np.polyval(slopes, places))
        largest = max(largest, curve.steepest * float(steep.max()))
        middle = curve.centre - np.polyval(c, places)
        score, _ = rest.nearest(middle, middle)
        reached = max(reached, float((curve.slope(score - middle + curve.centre) * steep).max()))
    if largest > reached * (1 + _REACHED):
        raise UnprovableError(
            f"no score reaches the steepest point of the link where {name!r} is steepest, so that its largest slope "
            "has no closed form; declare its grid in domain"
        )
    return reached


def _said_jumps(name: Any, effect: ColumnEffect, rest: ScoreSet, curve: Curve) -> str:
    """An error message: where a step function jumps, and how to make its weight finite."""
    jumps = _sized_jumps(effect, rest, curve)
    largest = sorted(jumps, key=lambda jump: -jump[2])[:_SHOWN]
    shown = ", ".join(f"by up to {change:.3g} at {at:g}" for at, _, change in largest)
    more = f" and {len(jumps) - len(largest)} smaller jumps" if len(jumps) > len(largest) else ""
    return (
        f"outputs jump with {name!r}, {shown}{more}, and no weight per unit covers people on opposite sides of a jump. "
        f"On a grid it is finite, {largest[0][2]:.3g} divided by the step: declare one, such as domain=Domain.learn(X)"
    )


def _sized_jumps(effect: ColumnEffect, rest: ScoreSet, curve: Curve) -> list[tuple[float, float, float]]:
    """Where an effect jumps, by how much, and the largest change of output."""
    found = np.array(effect.jumps()).reshape(-1, 3)
    changes = _changes(curve, rest, found[:, 1], found[:, 2])
    return list(zip(found[:, 0].tolist(), (found[:, 2] - found[:, 1]).tolist(), changes.tolist(), strict=True))


def jumps_table(form: AdditiveForm | None) -> pd.DataFrame:
    """Jumps of all columns; none without a form, of a linear model."""
    rows: list[tuple[Any, ...]] = []
    if form is not None:
        for name, effect, rest in _with_others(form):
            rows += [(name, *jump) for jump in _sized_jumps(effect, rest, form.curve)]
    return pd.DataFrame(rows, columns=["column", "at", "jump", "change"])
