"""The smallest change to a person's values that gains a given number of points on a card, exactly."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise._typing import FloatArray
from likewise.additive.scorer import AdditiveScorer, PointsScorer, level_names
from likewise.exceptions import InvalidInputError
from likewise.kernel.schema import People

_MOST_STEPS = 100_000  # of a column that changes in steps; all of them are compared
_NOISE = 1e-14  # of points: rounding of sums
_DIGITS = 6  # of a number between knots, rounded away from the present value


@dataclass(frozen=True, eq=False)
class Column:
    """A column that a person can change.

    Attributes
    ----------
    column : int
    now : float
        Number, rank or index of a category; NaN where missing.
    knots : ndarray or None
    values : ndarray
        Points at knots, or of categories, for the favourable outcome.
    other : float or None
        Points of a missing number, or of an unseen category.
    scale : float
        Distance of one unit, or between two categories.
    missing : float
        Distance from a missing number.
    step : float
        Numbers change to multiples of it; 0 for any number.
    levels : list of int
        Categories to choose from.
    shares : ndarray or None
        Share of the scale from the present category to each other; 1 if None.
    """

    column: int
    now: float
    knots: FloatArray | None
    values: FloatArray
    other: float | None
    scale: float
    missing: float
    step: float
    levels: list[int]
    shares: FloatArray | None = None

    def at(self, x: Any) -> Any:
        """Points of numbers."""
        assert self.knots is not None
        return np.interp(x, self.knots, self.values)

    @property
    def points(self) -> float:
        """Points of the present value."""
        if self.knots is None:
            known = 0 <= self.now < len(self.values)
            return float(self.values[int(self.now)]) if known else float(self.other or 0.0)
        return float(self.other or 0.0) if math.isnan(self.now) else float(self.at(self.now))

    @property
    def is_free(self) -> bool:
        """Whether it may become any number."""
        return self.knots is not None and self.step == 0 and not math.isnan(self.now)

    def options(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Candidate values with their distances and gains, no change first; for a free number, the knots."""
        if self.knots is None:
            values = np.array([k for k in self.levels if k != self.now], dtype=float)
            shares = 1.0 if self.shares is None else self.shares[values.astype(int)]
            distances, points = self.scale * shares * np.ones(len(values)), self.values[values.astype(int)]
        else:
            values = self.knots
            if self.step:
                # Beyond the outermost knots points stay the same: one multiple on either side stands for all.
                low, high = math.floor(self.knots[0] / self.step), math.ceil(self.knots[-1] / self.step)
                values = np.arange(low, high + 1) * self.step
            absent = math.isnan(self.now)
            distances = np.full(len(values), self.missing) if absent else self.scale * np.abs(values - self.now)
            points = self.at(values)
        return _front(np.append(0.0, distances), np.append(0.0, points - self.points), np.append(self.now, values))

    def nearest(self, gain: float) -> tuple[float, float] | None:
        """Distance and value of the nearest number that gains at least `gain`."""
        assert self.knots is not None
        best: tuple[float, float] | None = None
        target = self.points + gain
        for direction in (1, -1):
            beyond = self.knots[self.knots > self.now] if direction > 0 else self.knots[self.knots < self.now][::-1]
            path = np.append(self.now, beyond)
            points = self.at(path)
            reached = np.flatnonzero(points >= target)
            if not len(reached) or reached[0] == 0:
                continue
            k = int(reached[0])
            share = (target - points[k - 1]) / (points[k] - points[k - 1])
            value = float(path[k - 1] + share * (path[k] - path[k - 1]))
            short = _rounded(value)
            if self.at(short) < target - _NOISE * (1 + abs(target)):
                short = _outward(value, direction, float(path[k]))
            value = short
            distance = self.scale * abs(value - self.now)
            if best is None or distance < best[0]:
                best = distance, value
        return best


def _rounded(value: float) -> float:
    """The nearest number with few digits."""
    return float(f"{value:.{_DIGITS}g}")


def _outward(value: float, direction: int, end: float) -> float:
    """Round away from the present value to `_DIGITS` digits, but not beyond the knot at which the line ends."""
    size = 10.0 ** (math.floor(math.log10(max(abs(value), 1e-300))) - _DIGITS + 1)
    rounded = _rounded((math.ceil(value / size) if direction > 0 else math.floor(value / size)) * size)
    return min(rounded, end) if direction > 0 else max(rounded, end)


def _front(distances: FloatArray, gains: FloatArray, *others: Any) -> tuple[Any, ...]:
    """Keep the Pareto front: drop candidates that gain no more than another at most as far away."""
    order = np.lexsort((-gains, distances))
    before = np.append(-np.inf, np.maximum.accumulate(gains[order])[:-1])
    kept = order[gains[order] > before]
    return distances[kept], gains[kept], *(other[kept] for other in others)


def smallest_change(columns: list[Column], gain: float) -> dict[int, float] | None:
    """Values by column with the smallest sum of distances that gain at least `gain`; None if none do.

    Exact: of two free numbers between knots, one can move to a knot, against the other, without making the sum larger,
    as gain and distance are linear there. So in some smallest change at most one of them is between knots. For each
    choice of that one, the best of all others are combined, column by column, keeping the Pareto front.
    """
    options = [column.options() for column in columns]
    best, chosen = np.inf, None
    for free in [None, *(j for j, column in enumerate(columns) if column.is_free)]:
        fixed = [j for j in range(len(columns)) if j != free]
        distances, gains, history = np.zeros(1), np.zeros(1), []
        for j in fixed:
            d = (distances[:, None] + options[j][0]).ravel()
            g = np.minimum(gain, (gains[:, None] + options[j][1]).ravel())
            place = np.arange(len(d))
            place = place[d < best] if np.isfinite(best) else place
            distances, gains, place = _front(d[place], g[place], place)
            history.append((place // len(options[j][0]), place % len(options[j][0])))
        for k in range(len(distances)):
            own, value = 0.0, np.nan
            if gains[k] < gain:
                found = None if free is None else columns[free].nearest(gain - float(gains[k]))
                if found is None:
                    continue
                own, value = found
            if distances[k] + own < best:
                best = float(distances[k] + own)
                chosen = _traced(columns, options, fixed, history, k)
                if own:
                    assert free is not None
                    chosen[columns[free].column] = float(value)
    return chosen


def _traced(columns: list[Column], options: Any, fixed: list[int], history: Any, k: int) -> dict[int, float]:
    """The values behind a combination."""
    found = {}
    for j, (before, choice) in zip(reversed(fixed), reversed(history), strict=True):
        option = int(choice[k])
        k = int(before[k])
        if options[j][0][option] > 0 or options[j][1][option] > 0:
            found[columns[j].column] = float(options[j][2][option])
    return dict(sorted(found.items()))


def changeable_columns(
    scorer: AdditiveScorer,
    people: People,
    row: int,
    sign: float,
    fixed: Collection[str],
    steps: Mapping[str, float],
) -> list[Column]:
    """The columns of a card that a person can change, with points for the class that `sign` turns them to."""
    weights, found = scorer.model.metric, []
    for shape in scorer.model.shapes:
        i, name, levels = (
            shape.column,
            str(people.encoder.names[shape.column]),
            level_names(people.encoder, shape.column),
        )
        if name in fixed:
            continue
        step = 1.0 if levels is not None else float(steps.get(name, 0.0))
        if shape.knots is not None and float(np.ptp(shape.knots)) > _MOST_STEPS * step > 0:
            raise InvalidInputError(
                f"policy step of {name!r} must be at least {float(np.ptp(shape.knots)) / _MOST_STEPS:g}, so that there "
                f"are at most {_MOST_STEPS:,} numbers to compare; got {step:g}. Use a larger step."
            )
        found.append(
            Column(
                i,
                float(people.rows[row, i]),
                shape.knots,
                sign * shape.values[0],
                None if shape.other is None else sign * float(shape.other[0]),
                float(weights.scales[i]),
                float(weights.missing[i]),
                step,
                [] if levels is None else [k for k, level in enumerate(levels) if level is not None],
                weights.tables[i][int(people.rows[row, i])] if i in weights.tables else None,
            )
        )
    return found


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
