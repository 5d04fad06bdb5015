"""A scorecard as a table, in the score's own units or in whole points, and reasons for single people."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._html import grid, panel, words
from likewise._typing import BoolArray, FloatArray
from likewise._validation import check_count, short_repr
from likewise.additive.scorer import AdditiveScorer, PointsScorer, level_names
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.kernel.columns import UNSEEN
from likewise.kernel.evidence import Shape
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import People
from likewise.metrics.units import Unit
from likewise.metrics.zero_weights import list_by_reason

BASE = "base points"
COLUMNS = ["column", "range", "points", "points at end", "allowed", "binds"]
GAIN = "gain if 10% looser"  # of a weight, a column of `prices`
_NEARLY = 1 - 1e-4  # a share of a limit that counts as all of it
_FLAT = 1e-6  # and one that counts as nothing
_UNSEEN = 0.05  # of a gap between knots: the most that rounding may move a knot
_MISSING, _OTHER = "missing", "any other"
_ABSENT = "absent"  # columns of weight 0, by the reason


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
            points = _signed(start) if start == end else f"{_signed(start)} to {_signed(end)}"
            by = " by missing weight" if span == _MISSING and name not in categories else ""
            held = f"held back{by}" if binds else ""
            most = "" if np.isinf(allowed) else f"{allowed:.2f}"
            rows.append(("" if name == before else str(name), str(span), points, most, held))
            before = name
        note = (
            "Points add up to the score. Allowed is the largest change of points that the metric allows over a range, "
            "between two categories, or from a missing number or a special code to any other; where the model uses it "
            "up, the metric holds it back."
        )
        note += "".join(
            f" {title}: {', '.join(map(str, names))}." for title, names in self.attrs.get(_ABSENT, {}).items()
        )
        head = ["column", "range", "points", "allowed", ""]
        return panel("Scorecard", grid(head, rows, left=2), words(note, quiet=True))


def _signed(points: float) -> str:
    """Points with their sign; whole ones without decimals."""
    return f"{points:+d}" if isinstance(points, (int, np.integer)) else f"{points:+.2f}"


def scorecard(model: Any, outcome: Any = None, *, prices: pd.DataFrame | None = None) -> pd.DataFrame:
    """The model as a table.

    Parameters
    ----------
    outcome : label of a class, optional
        Whose points; ``classes_[-1]`` if not given.
    prices : DataFrame, optional
        What `prices` returned. The table then has a last column ``gain if 10% looser``, of the weight that limits
        the row.

    Returns
    -------
    DataFrame
        ``column``; ``range`` of numbers, or the category; ``points`` at the start of the range and ``points at
        end``; ``allowed``, the largest change of points that the metric allows over this range, between two
        categories, or from a missing number to any other; and ``binds``, whether the model uses it up: there the
        metric holds it back. Where a ``missing`` number binds, its weight holds the whole column back. Outside
        the ranges points stay what they are at the ends. In whole points (`in_points`), also the points that
        everybody has, and the ranges outside the first and last knot.
    """
    scorer, signs = model._scorer(), model._signs(outcome)
    if isinstance(scorer, PointsScorer):
        card = _points_table(scorer)
    else:
        card = _card([row for shape in scorer.model.shapes for row in _rows(scorer, shape, signs)], scorer)
    return card if prices is None else _with_gains(card, prices)


def _with_gains(card: pd.DataFrame, prices: pd.DataFrame) -> pd.DataFrame:
    """A card with the gain from loosening the weight behind each row."""
    if not isinstance(prices, pd.DataFrame) or not {"column", GAIN} <= {*prices.columns}:
        raise InvalidTypeError(f"prices must be the table that prices returned; got {type(prices).__name__}.")
    gains = dict(zip(prices["column"], prices[GAIN], strict=True))

    def of(column: Any, place: Any) -> float:
        blank = f"missing {column}"
        return float(gains.get(blank if place == _MISSING and blank in gains else column, np.nan))

    return card.assign(**{GAIN: [of(*row) for row in zip(card["column"], card["range"], strict=True)]})


def _card(rows: list[tuple[Any, ...]], scorer: AdditiveScorer) -> Scorecard:
    card, metric = Scorecard(rows, columns=COLUMNS), scorer.guarantee.metric
    card.attrs[_ABSENT] = list_by_reason((name, metric.zero_reasons.get(name)) for name in metric.hidden)
    return card


def allowed_rises(scorer: AdditiveScorer, shape: Shape) -> FloatArray:
    """Largest rise over each gap between knots that a shape may have, by its own weight and by the missing weight."""
    assert shape.knots is not None
    scale = scorer.unit * scorer.model.metric.scales[shape.column]
    return np.asarray(np.minimum(scale * np.diff(shape.knots), allowed_range(scorer, shape)))


def allowed_range(scorer: AdditiveScorer, shape: Shape) -> float:
    """Largest difference of points between two numbers: twice that allowed between a number and its nearest state."""
    states = scorer.model.metric.states.get(shape.column)
    return np.inf if states is None else 2 * scorer.unit * float(states.costs.min())


def states_of(metric: BoundMetric, column: int) -> Iterator[tuple[str, float]]:
    """Names of the states of a column of numbers, with their distance from numbers."""
    if column in metric.states:
        states = metric.states[column]
        for code, cost in zip(states.values.tolist(), states.costs.tolist(), strict=True):
            yield _MISSING if np.isnan(code) else f"{code:g}", cost


def _rows(scorer: AdditiveScorer, shape: Shape, signs: FloatArray) -> Iterator[tuple[Any, ...]]:
    metric = scorer.model.metric
    name, levels, points = (
        metric.schema.names[shape.column],
        level_names(metric.schema, shape.column),
        signs @ shape.values,
    )
    if shape.knots is None:
        assert levels is not None
        assert shape.other is not None
        allowed = scorer.unit * float(metric.scales[shape.column])
        binds = binding_levels(points, allowed, metric.tables.get(shape.column))
        for level, value, held in zip(levels, points.tolist(), binds.tolist(), strict=True):
            yield name, _MISSING if level is None else str(level), value, value, allowed, held
        other = float(signs @ shape.other)
        yield name, _OTHER, other, other, allowed, False
        return
    rises, most = allowed_rises(scorer, shape), allowed_range(scorer, shape)
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
    for (state, cost), value in zip(states_of(metric, shape.column), (signs @ shape.states).tolist(), strict=True):
        allowed = scorer.unit * cost
        yield name, state, value, value, allowed, bool(np.abs(points - value).max() >= _NEARLY * allowed)


def binding_levels(points: FloatArray, allowed: float, shares: FloatArray | None) -> BoolArray:
    """Whether each level is as far from another as the metric allows; `shares` scales the limit of each pair."""
    limits = np.ones((len(points), len(points))) if shares is None else shares[: len(points), : len(points)]
    gaps = np.abs(points[:, None] - points)
    return np.asarray(((gaps >= _NEARLY * allowed * limits) & ~np.eye(len(points), dtype=bool)).any(axis=1))


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


def _points_table(scorer: PointsScorer) -> Scorecard:
    """The card as a lender prints it: one row per line between knots, category and missing number."""
    weights, encoder = scorer.model.metric, scorer.model.metric.schema
    rows: list[tuple[Any, ...]] = [
        (BASE, "everybody", int(scorer.model.intercepts[0]), int(scorer.model.intercepts[0]), 0.0, False)
    ]
    for shape in scorer.model.shapes:
        name, i = encoder.names[shape.column], shape.column
        levels, values = level_names(encoder, i), shape.values[0].astype(int).tolist()
        scale = scorer.unit * float(weights.scales[i])
        other = None if shape.other is None else int(shape.other[0])
        if shape.knots is None:
            assert levels is not None
            assert other is not None
            full = np.ptp(shape.all_values) + 1 > scale
            ends = {min(*values, other), max(*values, other)}
            cells = [("missing" if level is None else str(level), v) for level, v in zip(levels, values, strict=True)]
            rows += [(name, text, v, v, scale, bool(full and v in ends)) for text, v in [*cells, ("any other", other)]]
            continue
        texts = [_all_digits(float(knot)) if levels is None else str(levels[int(knot)]) for knot in shape.knots]
        rows.append((name, f"up to {texts[0]}", values[0], values[0], np.inf, False))
        for k in range(len(values) - 1):
            most = scale * float(shape.knots[k + 1] - shape.knots[k])
            rise = abs(values[k + 1] - values[k])
            rows.append((name, f"{texts[k]} to {texts[k + 1]}", values[k], values[k + 1], most, 0 < most < rise + 1))
        rows.append((name, f"{texts[-1]} and more", values[-1], values[-1], np.inf, False))
        for (state, cost), value in zip(states_of(weights, i), shape.states[0].astype(int).tolist(), strict=True):
            far, most = int(np.abs(shape.values[0] - value).max()), scorer.unit * cost
            rows.append((name, state, value, value, most, bool(far + 1 > most)))
    return _card(rows, scorer)


def _all_digits(number: float) -> str:
    """A number with all its digits; no separators below 10,000, where it may be a year."""
    digits = Decimal(repr(number)).normalize()
    return f"{digits:,f}" if abs(number) >= 10_000 else f"{digits:f}"


def explain(model: Any, X: Any, outcome: Any = None) -> pd.DataFrame:
    """Points per person and column; a row adds up to the person's score, exactly and in any order.

    Exactly: points are multiples of a power of two, chosen so that no sum of them is rounded. The outputs of the
    model are computed from these sums.

    Returns
    -------
    DataFrame
        One row per person: ``intercept``, one column per column that matters, and the sum. For classes this is the
        log-odds of the outcome (the logit, where there are several), for regression the prediction before it is cut
        to the output range.
    """
    people, scorer, signs = model._people(X), model._scorer(), model._signs(outcome)
    names = [people.encoder.names[shape.column] for shape in scorer.model.shapes]
    table = pd.DataFrame(scorer.points(people) @ signs, columns=names, index=_index(people))
    table.insert(0, "intercept", scorer.model.intercepts @ signs, allow_duplicates=True)
    table.insert(table.shape[1], scorer.score_name, scorer.scores(people) @ signs, allow_duplicates=True)
    return table


def reasons(model: Any, X: Any, n: int = 4, outcome: Any = None) -> pd.DataFrame:
    """The main reasons for each person's outcome, in words, as notices of adverse action need.

    The reference is the average person: points are centred, so that each column's mean over the people the model
    has learned from is 0. Columns that raise the outcome are named in the order of how much they do.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    n : int, default=4
        Reasons per person, at most.
    outcome : label of a class, optional
        What is explained; for regression "higher" or "lower" than the average person. None explains, for each
        person, the outcome that is more likely than for the average person; where there are several, the one whose
        probability is the largest multiple of the average person's.

    Returns
    -------
    DataFrame
        One row per person: ``outcome``, what is explained; and ``reason 1`` to ``reason n``, with empty text where
        fewer columns raise it.

    Examples
    --------
    >>> from likewise import AdditiveClassifier, WeightedLp
    >>> people = pd.DataFrame({"debt": [1, 2, 3, 4]})
    >>> model = AdditiveClassifier(WeightedLp({"debt": 0.1}), penalty=0.01).fit(people, list("ynyn"))
    >>> model.reasons(people.head(1), n=1).iloc[0].tolist()
    ['y', "debt is 1: +0.25 log-odds of 'y' against the average person"]
    >>> model.reasons(people.head(1), n=1, outcome="n").iloc[0].tolist()
    ['n', '']
    """
    people, scorer = model._people(X), model._scorer()
    numeric = scorer.guarantee.output_range is not None
    outcomes = ["lower", "higher"] if numeric else model._labels()
    if outcome is not None and numeric and not is_one_of(outcome, outcomes):
        raise InvalidInputError(f"outcome must be 'higher', 'lower' or None for regression; got {short_repr(outcome)}.")
    if outcome is not None and not numeric:
        outcome = model._outcome(outcome)
    n = check_count("n", n)
    points = scorer.points(people)  # of each person, column and function
    if points.shape[2] == 1:
        points = np.concatenate([-points, points] if scorer.scored_class else [points, -points], axis=2)
    if outcome is None:
        # Beside the average person's, the log of a probability grows by the sum of points and a term that all outcomes
        # share. The last of equals.
        gains = points.sum(axis=1)
        which = gains.shape[1] - 1 - np.argmax(gains[:, ::-1], axis=1)
    else:
        which = np.full(len(people), outcomes.index(outcome))
    speaks = np.take_along_axis(points, which[:, None, None], axis=2)[:, :, 0]
    order = np.argsort(-speaks, axis=1, kind="stable")[:, :n]
    rows = []
    for person, columns in enumerate(order):
        outcome, words = outcomes[which[person]], []
        for j in columns[speaks[person, columns] > 0]:
            column, size = scorer.model.shapes[j].column, speaks[person, j]
            what = format_value(people, person, column, scorer.guarantee.metric)
            # A prediction that is lower is lower by a negative number.
            size = f"{size if which[person] else -size:+.2f}" if numeric else f"{size:+.2f} {_of(scorer, outcome)}"
            words.append(f"{people.encoder.names[column]} is {what}: {size} against the average person")
        rows.append([outcome, *words, *[""] * (n - len(words))])
    return pd.DataFrame(rows, columns=["outcome", *(f"reason {k}" for k in range(1, n + 1))], index=_index(people))


def is_one_of(outcome: Any, outcomes: list[Any]) -> bool:
    """Whether `outcome`, of any type, is one of the labels."""
    try:
        return outcome in outcomes
    except (TypeError, ValueError):  # arrays and NA values, whose comparison has no truth value
        return False


def _index(people: People) -> npt.NDArray[Any] | pd.Index[Any]:
    index = getattr(people.table, "index", None)
    return index if isinstance(index, pd.Index) else np.arange(len(people))


def _of(scorer: AdditiveScorer, outcome: Any) -> str:
    return f"{scorer.score_name} of {outcome!r}"


def format_value(people: People, person: int, column: int, metric: Any) -> str:
    """A person's value of a column, in words."""
    value, levels, name = people.rows[person, column], level_names(people.encoder, column), people.encoder.names[column]
    if np.isnan(value):
        return "not known"
    if value in getattr(metric, "special", {}).get(name, ()):
        return f"the code {value:g}"
    if levels is None:
        return unit_of(metric, name).written(value)
    level = levels[int(value)] if value != UNSEEN else "a category that the model has not seen"
    return "not known" if level is None else str(level)


def unit_of(metric: Any, name: Any) -> Unit:
    """The unit that a column of numbers is written in."""
    unit = getattr(metric, "units", {}).get(name, "")
    return Unit.of("" if unit == "category" else unit)
