"""Scorecards in whole points, as lenders print them, within the metric."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from likewise._typing import FloatArray
from likewise._validation import check_count, check_names, check_positive, short_repr
from likewise.additive.binning import locate
from likewise.additive.scorer import AdditiveScorer, PointsScorer, level_names
from likewise.additive.shapes import lowered
from likewise.exceptions import InvalidInputError, UnprovableError, UnsolvedError
from likewise.kernel.evidence import Shape, SumOfShapes
from likewise.kernel.schema import Encoder
from likewise.verify_card import LN2, NotProvenError, prove

_ROUNDING = 1 / 12  # mean squared error of rounding to whole numbers
_NOBODY = 1e-3  # weight shared equally by all knots, so that those without people follow the shape too
_LEAST = 0.5  # points: a column that changes the score by less is left out
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
    missing : int or None
        Whole points between a number and a missing one.
    between : ndarray of shape (n_levels + 1, n_levels + 1), or None
        Whole points between any two categories, the last one unseen, where these have distances of their own.
    """

    rate: Fraction
    missing: int | None
    between: FloatArray | None = None


def in_points(
    model: Any, points_to_double: float, base_score: int, base_odds: float, outcome: Any, max_bins: int, whole: Any
) -> Any:
    """A copy of a fitted classifier in whole points; `ScorecardMixin.in_points` has the parameters."""
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
    named = set(check_names("whole_numbers", whole, encoder.names))
    factor = double / math.log(2) * (1 if position else -1)
    limits = _limits(scorer, encoder, double)
    reals = [_in_real_points(shape, encoder, factor, named) for shape in scorer.model.shapes]
    _refuse_coarse(reals, limits, encoder, double, named)
    shapes = []
    intercept = np.rint(base_score - abs(factor) * math.log(base_odds) + factor * scorer.model.intercepts)
    for real, limit in zip(reals, limits, strict=True):
        ordered = level_names(encoder, real.column) is not None or encoder.names[real.column] in named
        found = _round_levels(real, limit) if real.knots is None else _round_knots(real, limit, max_bins, ordered)
        if np.ptp(found.all_values) > 0:
            shapes.append(found)
        else:
            intercept += found.values[0, 0]
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
        i, absent = shape.column, None
        rate = unit * Fraction(float(weights.scales[i]))
        if shape.knots is not None and shape.other is not None:
            absent = math.floor(unit * Fraction(float(weights.missing[i])))
        between = None
        if i in weights.tables:
            shares = weights.tables[i]
            between = np.array(
                [[math.floor(rate * Fraction(share)) for share in row] for row in shares.tolist()], float
            )
        found.append(_Limits(rate, absent, between))
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
    return Shape(shape.column, knots, values, None if shape.other is None else shape.other * factor, shares)


def _refuse_coarse(
    shapes: Sequence[Shape], limits: Sequence[_Limits], encoder: Encoder, double: float, named: set[Any]
) -> None:
    """Raise where the metric allows less than one point in a column that is worth half a point or more."""
    worst, where = Fraction(1), ""
    for shape, limit in zip(shapes, limits, strict=True):
        name = encoder.names[shape.column]
        if np.ptp(shape.all_values) < _LEAST:
            continue
        if shape.knots is None:
            most, between = limit.rate, "between two categories"
        elif level_names(encoder, shape.column) is not None or name in named:
            most, between = limit.rate, "from one value to the next"
        else:
            most, between = limit.rate * (Fraction(shape.knots[-1]) - Fraction(shape.knots[0])), "over its whole range"
        if most < worst:
            worst, where = most, f"{float(most):.2g} points {between} of {name!r}"
    if where:
        enough = math.ceil(Fraction(double) / worst) if worst > 0 else math.inf
        raise InvalidInputError(
            f"points_to_double must be at least {enough:,} under this metric: with {double:g} it allows only {where}, "
            f"less than one. Use points_to_double={enough}, or a larger weight."
        )


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


def _round_knots(shape: Shape, limit: _Limits, max_bins: int, whole: bool) -> Shape:
    """A few knots with whole points whose interpolation is closest to the shape.

    By dynamic programming over knots and whole points near the shape's own: the path with the smallest squared error at
    the knots, weighted by people, for every number of lines. Of these, the one with the fewest lines that adds no more
    error than rounding to whole numbers does. Where values must be whole between knots too, lines are flat or lead to
    the next value. A shape that only rises, or only falls, still does.
    """
    assert shape.knots is not None
    real, knots = shape.values[0], shape.knots
    n, other = len(knots), None if shape.other is None else float(np.rint(shape.other[0]))
    choices = np.floor(real)[:, None] + np.arange(-1, 3)
    if other is not None and limit.missing is not None:
        choices = np.clip(choices, other - limit.missing, other + limit.missing)
    weights = _weights(shape)
    costs = _line_costs(shape, choices, limit.rate, whole)
    flat = (choices[:, :, None] - real) ** 2 * weights  # of each choice, at each knot: outside the lines
    before = np.array([flat[i, :, : i + 1].sum(axis=1) for i in range(n)])
    after = np.array([flat[i, :, i + 1 :].sum(axis=1) for i in range(n)])
    paths, origins = [before.ravel()], []
    for _ in range(min(n - 1, 2 * max_bins - 1 if whole else max_bins)):
        sums = paths[-1][:, None] + costs
        origins.append(np.argmin(sums, axis=0))
        paths.append(np.min(sums, axis=0))
    errors = np.array([(path + after.ravel()).min() for path in paths])
    lines = int(np.flatnonzero(errors <= errors.min() + _ROUNDING)[0])
    state = int(np.argmin(paths[lines] + after.ravel()))
    states = [state]
    for origin in reversed(origins[:lines]):
        states.append(int(origin[states[-1]]))
    states = states[::-1]
    chosen = np.array([s // choices.shape[1] for s in states])
    values = np.array([choices.ravel()[s] for s in states]) + 0.0
    return Shape(shape.column, knots[chosen], values[None], None if other is None else np.array([other + 0.0]))


def _weights(shape: Shape) -> FloatArray:
    """Shares of people, which add up to 1; equal ones where they are not known."""
    n = shape.values.shape[1]
    shares = np.ones(n) if shape.shares is None else shape.shares / max(shape.shares.sum(), 1e-300) + _NOBODY / n
    return np.asarray(shares / shares.sum())


def _line_costs(shape: Shape, choices: FloatArray, rate: Fraction, whole: bool) -> FloatArray:
    """Squared errors of lines from each knot and choice to each later one; infinite where too steep, or turning."""
    assert shape.knots is not None
    knots, real, weights = shape.knots, shape.values[0], _weights(shape)
    n, m = choices.shape
    costs = np.full((n * m, n * m), np.inf)
    lowest, highest = _directions(real)
    for i in range(n - 1):
        for j in range(i + 1, n):
            rises = choices[j][None, :] - choices[i][:, None]
            allowed = math.floor(rate * (Fraction(knots[j]) - Fraction(knots[i])))
            fits = (np.abs(rises) <= allowed) & (rises >= lowest) & (rises <= highest)
            if whole and j > i + 1:
                fits &= rises == 0
            if not fits.any():
                continue
            shares = (knots[i + 1 : j + 1] - knots[i]) / (knots[j] - knots[i])
            lines = choices[i][:, None, None] + rises[:, :, None] * shares
            errors = (lines - real[i + 1 : j + 1]) ** 2 @ weights[i + 1 : j + 1]
            costs[i * m : (i + 1) * m, j * m : (j + 1) * m] = np.where(fits, errors, np.inf)
    return costs


def _directions(real: FloatArray) -> tuple[float, float]:
    """Limits of rises: a shape that only rises or only falls, as `monotone` may have it, still does."""
    rises = np.diff(real)
    return 0.0 if (rises >= 0).all() else -math.inf, 0.0 if (rises <= 0).all() else math.inf


def rounding_cost(model: Any, card: Any, X: Any, y: Any) -> pd.DataFrame:
    """Brier score and log loss of a model and its card in points; `ScorecardMixin.rounding_cost` has the parameters."""
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
