"""Scorecards in whole points, as lenders print them, within the metric."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from likewise._typing import FloatArray, IntArray
from likewise._validation import check_count, check_names, check_positive, short_repr
from likewise.additive.binning import locate
from likewise.additive.scorer import AdditiveScorer, PointsScorer, level_names
from likewise.additive.shapes import around_states, lowered
from likewise.exceptions import InvalidInputError, UnprovableError, UnsolvedError
from likewise.kernel.evidence import Shape, SumOfShapes
from likewise.kernel.schema import Encoder
from likewise.verify_card import LN2, NotProvenError, prove

_ROUNDING = 1 / 12  # mean squared error of rounding to whole numbers
_NOBODY = 1e-3  # weight shared equally by all knots, so that those without people follow the shape too
_DIGITS = 6  # most that a cut may have
_MOST_WHOLE = 400  # largest number of whole numbers of a column that are enumerated
_BITS = 50  # of a sum of points
_LARGEST_SCORE = 10_000  # of points that double the odds: beyond, a sum of points has few digits left for the rest


@dataclass(frozen=True)
class _Limits:
    """What the metric allows in one column, in points.

    Attributes
    ----------
    rate : Fraction
        Per unit of a number, or between two categories.
    between : ndarray, or None
        Whole points between any two categories, the last one unseen, where these have distances of their own; of a
        column of numbers, between these (first) and its states.
    """

    rate: Fraction
    between: FloatArray | None = None


def in_points(
    model: Any,
    points_to_double: float = 20,
    base_score: int = 600,
    base_odds: float = 50,
    *,
    outcome: Any = None,
    max_bins: int = 8,
    whole_numbers: Sequence[Any] = (),
) -> Any:
    """The same card in whole points, as lenders print them, within the same metric.

    Points are whole at knots and for categories, and linear between knots: a step in a column of numbers would
    separate people whose values are nearly equal. Rounding keeps every slope and range within the metric, the
    guarantee is computed from the rounded card, and `likewise.verify_card` proves it (`docs/theory.md` §17).

    Parameters
    ----------
    points_to_double : float, default=20
        Points that double the odds of `outcome`.
    base_score, base_odds : default=600 and 50
        A person with `base_score` points, a whole number, has the odds `base_odds`: 50 means 50 to 1.
    outcome : label of a class, optional
        Whose odds rise with points; ``classes_[-1]`` if not given.
    max_bins : int, default=8
        Ranges of a column of numbers, at most. Fewer are used where that adds no more error than rounding does, on
        average over the people the model has learned from. Their ends are round numbers where that adds no more.
    whole_numbers : sequence of str, optional
        Columns of whole numbers, such as dependants, that have whole points for each of them. Their points change
        from one number to the next, in steps that the metric must allow.

    Returns
    -------
    AdditiveClassifier
        A fitted copy. Its `scorecard`, `explain` and exports are in points; `predict_proba`, `certify` and
        ``guarantee_`` are those of the rounded card. It is without columns that are worth less than half a point,
        or in which the metric allows less than one; `rounding_cost` says what that costs.

    Examples
    --------
    >>> from likewise import AdditiveClassifier, TableMetric
    >>> people = pd.DataFrame({"debt": [10, 20, 30, 40, 50, 60], "owner": list("ynynyn")})
    >>> model = AdditiveClassifier(TableMetric({"debt": 0.02}, {"owner": 0.1}), penalty=0.01)
    >>> card = model.fit(people, [1, 1, 1, 0, 1, 0]).in_points()
    >>> print(card.scorecard()[["column", "range", "points"]].tail(3).to_string(index=False))
    column     range  points
     owner         n      -6
     owner         y       5
     owner any other       0
    """
    scorer, encoder = model._scorer(), model.encoder_
    if scorer.guarantee.output_range or scorer.link != "logistic" or len(scorer.model.intercepts) > 1 or scorer.scale:
        raise InvalidInputError(
            "in_points needs a classifier of two classes with the link 'logistic' whose points are log-odds: whole "
            "points count doublings of odds."
        )
    double = check_positive("points_to_double", points_to_double)
    base_odds = check_positive("base_odds", base_odds)
    if isinstance(base_score, bool) or not isinstance(base_score, (int, np.integer)):
        raise InvalidInputError(f"base_score must be a whole number; got {short_repr(base_score)}.")
    if abs(base_score) > _LARGEST_SCORE * double:
        raise InvalidInputError(
            f"base_score must be at most {_LARGEST_SCORE:,} times points_to_double, {double:g}; got {base_score:,}."
        )
    max_bins = check_count("max_bins", max_bins)
    position = model._labels().index(model._outcome(outcome))
    named = set(check_names("whole_numbers", whole_numbers, encoder.names))
    factor = double / math.log(2) * (1 if position else -1)
    limits = _limits(scorer, encoder, double)
    reals = [_in_real_points(shape, encoder, factor, named) for shape in scorer.model.shapes]
    shapes = []
    intercept = np.rint(base_score - abs(factor) * math.log(base_odds) + factor * scorer.model.intercepts)
    for real, limit in zip(reals, limits, strict=True):
        ordered = level_names(encoder, real.column) is not None or encoder.names[real.column] in named
        found = _round_levels(real, limit) if real.knots is None else _round_knots(real, limit, max_bins, ordered)
        if np.ptp(found.all_values) > 0:
            shapes.append(found)
        else:
            intercept += found.values[0, 0]
    if reals and not shapes:
        raise InvalidInputError(
            f"points_to_double must be larger under this metric: with {double:g}, no column is worth a point within it."
        )
    largest = float(np.abs(intercept).max()) + sum(float(np.abs(shape.all_values).max()) for shape in shapes)
    bits = int(_BITS - math.ceil(math.log2(max(1.0, largest))))
    sums = SumOfShapes(scorer.model.metric, intercept, tuple(shapes), bits)
    card = copy.copy(model)
    card.scorer_ = PointsScorer(sums, "logistic", None, double, int(base_score), base_odds, position)
    try:
        prove(json.loads(card.to_json()))
    except (NotProvenError, UnprovableError) as problem:  # excluded by docs/theory.md §17; checked anyway
        raise UnsolvedError(
            f"The points could not be brought within the metric ({problem}). Please report this."
        ) from None
    return card


def _limits(scorer: AdditiveScorer, encoder: Encoder, double: float) -> list[_Limits]:
    """Limits of each shape, rounded down."""
    weights, unit = scorer.model.metric, 4 * Fraction(double) / LN2
    found = []
    for shape in scorer.model.shapes:
        i, between = shape.column, None
        rate = unit * Fraction(float(weights.scales[i]))
        if i in weights.tables or i in weights.states:
            table, one = (weights.tables[i], rate) if i in weights.tables else (weights.states[i].table, unit)
            between = np.array([[math.floor(one * Fraction(each)) for each in row] for row in table.tolist()], float)
        found.append(_Limits(rate, between))
    return found


def _in_real_points(shape: Shape, encoder: Encoder, factor: float, named: set[Any]) -> Shape:
    """A shape in points, with a knot at each of the whole numbers or ordered categories."""
    knots, values, shares = shape.knots, shape.values * factor, shape.shares
    levels, name = level_names(encoder, shape.column), encoder.names[shape.column]
    if knots is not None and (levels is not None or name in named):
        low, high = (0, len(levels) - 1) if levels is not None else (math.floor(knots[0]), math.ceil(knots[-1]))
        if high - low > _MOST_WHOLE:
            raise InvalidInputError(
                f"whole_numbers must name columns of at most {_MOST_WHOLE} whole numbers; {name!r} goes from {low:,} "
                f"to {high:,}. Leave it out: its points then rise along lines between knots."
            )
        grid = np.arange(low, high + 1.0)
        index, fraction = locate(knots, grid)
        if shares is not None:  # of a knot between two grid points, to both
            moved = np.append(np.bincount(index, shares * (1 - fraction), len(grid)), 0.0)
            moved[1:] += np.bincount(index, shares * fraction, len(grid))
            shares = moved[: len(grid)]
        knots, values = grid, np.interp(grid, knots, values[0])[None]
    elif knots is None and name in named:
        raise InvalidInputError(f"whole_numbers must name columns of numbers; {name!r} has categories.")
    return replace(shape, knots=knots, shares=shares).with_values(values, shape.states * factor)


def _round_levels(shape: Shape, limit: _Limits) -> Shape:
    """Whole points of categories, in the window of the allowed width with the smallest squared error."""
    assert shape.other is not None
    real, width = shape.values[0], math.floor(limit.rate)
    starts = math.floor(real.min()) + np.arange(-1, 2)
    windows = [np.clip(np.rint(real), low, low + width) for low in starts]
    best = int(np.argmin([_weights(shape) @ (window - real) ** 2 for window in windows]))
    other = np.clip(np.rint(shape.other), starts[best], starts[best] + width)
    found = Shape(shape.column, None, windows[best][None] + 0.0, other + 0.0)
    return found if limit.between is None else lowered(found, limit.between)


@dataclass(frozen=True)
class _Lines:
    """A few cuts with whole points, linear in between.

    Attributes
    ----------
    cuts, points : ndarray
    error : float
        Mean squared error at the knots of the shape, weighted by people.
    """

    cuts: FloatArray
    points: FloatArray
    error: float


def _round_knots(shape: Shape, limit: _Limits, max_bins: int, whole: bool) -> Shape:
    """A few cuts with whole points whose interpolation is closest to the shape, at round numbers.

    The knots are candidates for cuts. Of the best lines of each number, the fewest that add no more error than rounding
    to whole numbers does. Then each cut moves to the roundest number nearby, as long as all of them add no more error
    than that again. Where values must be whole between knots too, cuts stay.
    """
    if limit.between is not None:
        shape = around_states(shape.with_values(shape.values, np.rint(shape.states)), limit.between)
    assert shape.knots is not None
    most = min(len(shape.knots) - 1, 2 * max_bins - 1 if whole else max_bins)
    found = _best_lines(shape, limit, shape.knots, range(most + 1), whole)
    enough = found.error + _ROUNDING
    for k in range(0 if whole or len(found.cuts) == 1 else len(found.cuts)):
        for number in _rounder(found.cuts, k):
            cuts = found.cuts.copy()
            cuts[k] = number
            tried = _best_lines(shape, limit, cuts, range(len(cuts) - 1, len(cuts)), whole)
            if tried.error <= enough:
                found = tried
                break
    return replace(shape, knots=found.cuts, shares=None).with_values(found.points[None], shape.states + 0.0)


def _rounder(cuts: FloatArray, k: int) -> Iterator[float]:
    """Round numbers beside a cut, not further than half of the way to the next cut, the roundest first."""
    cut, gaps = float(cuts[k]), np.diff(cuts)[max(0, k - 1) : k + 1]
    room = float(gaps.min()) / 2
    power, last = math.floor(math.log10(max(abs(cut), room))), math.nan
    for exponent in range(power + 1, power - _DIGITS, -1):
        for digit in (5, 1):
            number = float(f"{round(cut / (digit * 10.0**exponent)) * digit}e{exponent}")
            if number == cut:
                return
            if abs(number - cut) < room and number != last:
                yield number
            last = number


def _best_lines(shape: Shape, limit: _Limits, cuts: FloatArray, counts: range, whole: bool) -> _Lines:
    """By dynamic programming over cuts and whole points near the shape's own: the path with the smallest error.

    Of the paths with as many lines as `counts` says, the one of the fewest that adds no more error than rounding
    does. Where values must be whole between knots too, lines are flat or lead to the next value. A shape that only
    rises, or only falls, still does.
    """
    assert shape.knots is not None
    real, knots, weights = shape.values[0], shape.knots, _weights(shape)
    n, at_cuts = len(cuts), np.interp(cuts, knots, real)
    choices = np.floor(at_cuts)[:, None] + np.arange(-1, 3)
    if limit.between is not None:
        choices = around_states(replace(shape, values=choices.reshape(1, -1)), limit.between).values.reshape(n, -1)
    places = np.searchsorted(knots, cuts, side="right")  # of the first knot behind each cut
    costs = _line_costs(shape, cuts, places, choices, limit.rate, whole)
    flat = (choices[:, :, None] - real) ** 2 * weights  # of each choice, at each knot: outside the lines
    before = np.array([flat[i, :, : places[i]].sum(axis=1) for i in range(n)])
    after = np.array([flat[i, :, places[i] :].sum(axis=1) for i in range(n)])
    paths, origins = [before.ravel()], []
    for _ in range(counts[-1]):
        sums = paths[-1][:, None] + costs
        origins.append(np.argmin(sums, axis=0))
        paths.append(np.min(sums, axis=0))
    errors = np.array([(path + after.ravel()).min() for path in paths])[counts.start :]
    lines = counts[int(np.flatnonzero(errors <= errors.min() + _ROUNDING)[0])]
    states = [int(np.argmin(paths[lines] + after.ravel()))]
    for origin in reversed(origins[:lines]):
        states.append(int(origin[states[-1]]))
    chosen = np.array([state // choices.shape[1] for state in states[::-1]])
    points = np.array([choices.ravel()[state] for state in states[::-1]]) + 0.0
    return _Lines(cuts[chosen], points, float(errors[lines - counts.start]))


def _weights(shape: Shape) -> FloatArray:
    """Shares of people, which add up to 1; equal ones where they are not known."""
    n = shape.values.shape[1]
    shares = np.ones(n) if shape.shares is None else shape.shares / max(shape.shares.sum(), 1e-300) + _NOBODY / n
    return np.asarray(shares / shares.sum())


def _line_costs(
    shape: Shape, cuts: FloatArray, places: IntArray, choices: FloatArray, rate: Fraction, whole: bool
) -> FloatArray:
    """Squared errors of lines from each cut and choice to each later one; infinite where too steep, or turning."""
    assert shape.knots is not None
    knots, real, weights = shape.knots, shape.values[0], _weights(shape)
    n, m = choices.shape
    costs = np.full((n * m, n * m), np.inf)
    lowest, highest = _directions(real)
    for i in range(n - 1):
        for j in range(i + 1, n):
            rises = choices[j][None, :] - choices[i][:, None]
            allowed = math.floor(rate * (Fraction(cuts[j]) - Fraction(cuts[i])))
            fits = (np.abs(rises) <= allowed) & (rises >= lowest) & (rises <= highest)
            if whole and j > i + 1:
                fits &= rises == 0
            if not fits.any():
                continue
            inside = slice(places[i], places[j])
            shares = (knots[inside] - cuts[i]) / (cuts[j] - cuts[i])
            lines = choices[i][:, None, None] + rises[:, :, None] * shares
            errors = (lines - real[inside]) ** 2 @ weights[inside]
            costs[i * m : (i + 1) * m, j * m : (j + 1) * m] = np.where(fits, errors, np.inf)
    return costs


def _directions(real: FloatArray) -> tuple[float, float]:
    """Limits of rises: a shape that only rises or only falls, as `monotone` may have it, still does."""
    rises = np.diff(real)
    return 0.0 if (rises >= 0).all() else -math.inf, 0.0 if (rises <= 0).all() else math.inf


def rounding_cost(model: Any, card: Any, X: Any, y: Any) -> pd.DataFrame:
    """The cost of whole points: this model compared with its `card` in points, on people with known outcomes.

    Parameters
    ----------
    card : fitted classifier
        From `in_points`.
    X, y : people and their classes
        Held out, for an honest figure.

    Returns
    -------
    DataFrame
        ``Brier score`` and ``log loss`` of ``model`` and ``points``, their difference, ``cost``, and the
        ``largest change`` of a person's probability.
    """
    truth = np.asarray(y) == model.classes_[1]
    if len(truth) != len(X) or not np.isin(np.asarray(y), model.classes_).all():
        raise InvalidInputError(f"y must have one of the classes {model._labels()} for each person in X.")
    rows, both = {}, []
    for name, one in (("model", model), ("points", card)):
        h = one.predict_proba(X)[:, 1]
        likely = np.clip(np.where(truth, h, 1 - h), 1e-15, 1.0)
        rows[name] = [float(((h - truth) ** 2).mean()), float(-np.log(likely).mean())]
        both.append(h)
    table = pd.DataFrame(rows, index=["Brier score", "log loss"]).T
    table.loc["cost"] = table.loc["points"] - table.loc["model"]
    table["largest change"] = [0.0, *[float(np.abs(both[0] - both[1]).max())] * 2]
    return table


def left_out(model: Any, card: Any) -> dict[str, float]:
    """Columns that a card in whole points is without, with how many points they moved a score."""
    kept = {shape.column for shape in card.scorer_.model.shapes}
    factor = card.scorer_.points_to_double / math.log(2)
    return {
        str(model.encoder_.names[shape.column]): factor * float(np.ptp(shape.all_values))
        for shape in model.scorer_.model.shapes
        if shape.column not in kept
    }
