"""Additive models with one score, as one function per raw column behind a link."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.interpolate import PPoly

from likewise._typing import FloatArray
from likewise.exceptions import InvalidInputError, UnprovableError
from likewise.inspection.additive_scores import (
    AdditiveScores,
    Curve,
    boosted_scores,
    is_boosted_steps,
    is_scorecard,
    linear_scores,
)
from likewise.inspection.linear import LinearModel, read_linear_model, refuse_merged
from likewise.inspection.preprocessing import sum_of_pieces, unwrap

_MAX_GRID = 100_000  # declared numbers of one column


@dataclass(frozen=True, eq=False)
class ColumnEffect:
    """What one raw column adds to the score.

    Attributes
    ----------
    pieces : PPoly or None
        For numbers: a piecewise polynomial whose outer pieces extrapolate. None for a grid, and for categories.
    grid : ndarray or None
        The declared numbers, if they are a grid, increasing.
    values : ndarray or None
        At the numbers of the grid, or for the categories.
    blank : float or None
        For a missing number; None if it is refused.
    ends : tuple of float, or None
        Smallest and largest number, where they are declared.
    levels : tuple
        Of the categories with a value, None for a missing one; empty if they are not known. The last of more values
        than levels is for unseen categories.
    """

    pieces: PPoly | None = None
    grid: FloatArray | None = None
    values: FloatArray | None = None
    blank: float | None = None
    ends: tuple[float, float] | None = None
    levels: tuple[Any, ...] = ()

    @classmethod
    def of_knots(cls, knots: FloatArray, values: FloatArray, blank: float | None) -> ColumnEffect:
        """Linear between knots and constant outside."""
        beyond = 1 + np.abs(knots[[0, -1]])
        x = np.concatenate([[knots[0] - beyond[0]], knots, [knots[-1] + beyond[1]]])
        slopes = np.concatenate([[0.0], np.diff(values) / np.diff(knots), [0.0]])
        return cls(pieces=PPoly(np.array([slopes, np.append(values[0], values)]), x), blank=blank)

    @property
    def is_number(self) -> bool:
        """Whether the column holds numbers."""
        return self.pieces is not None or self.grid is not None

    def segments(self) -> Iterator[tuple[float, float, FloatArray]]:
        """Start, end and coefficients (about the start, highest power first) of each piece within the ends.

        The outer ones are unbounded unless the ends are declared; the first is then about its end.
        """
        assert self.pieces is not None
        low, high = self.ends or (-np.inf, np.inf)
        x, c = self.pieces.x, self.pieces.c
        starts, ends = np.append(-np.inf, x[1:-1]), np.append(x[1:-1], np.inf)
        for k, (start, end) in enumerate(zip(starts, ends, strict=True)):
            a, b = max(start, low), min(end, high)
            if a < b or (a == b == low == high and start <= a < end):
                origin = a if np.isfinite(a) else b if np.isfinite(b) else x[k]
                yield a, b, _shifted(c[:, k], origin - x[k])

    def jumps(self) -> list[tuple[float, float, float]]:
        """Where pieces do not meet, within the ends: the number, and the values before it and from it on."""
        if self.pieces is None:
            return []
        low, high = self.ends or (-np.inf, np.inf)
        x, c = self.pieces.x, self.pieces.c
        inner = np.flatnonzero((x > low) & (x <= high))
        inner = inner[(inner > 0) & (inner < len(x) - 1)]
        size = max(1.0, float(np.abs(self.pieces(x)).max()))
        found = []
        for k in inner.tolist():
            before, after = float(np.polyval(c[:, k - 1], x[k] - x[k - 1])), float(c[-1, k])
            if abs(after - before) > 1e-9 * size:
                found.append((float(x[k]), before, after))
        return found


def _shifted(c: FloatArray, by: float) -> FloatArray:
    """Coefficients of a polynomial about another origin."""
    moved = np.poly1d(c)(np.poly1d([1.0, by])).coeffs
    return np.concatenate([np.zeros(len(c) - len(moved)), moved])


@dataclass(frozen=True, eq=False)
class AdditiveForm:
    """A model whose output is ``curve(intercept + sum_i effect_i(x_i))``.

    Attributes
    ----------
    intercept : float
    effects : dict from column to ColumnEffect
        Columns that the model does not use have none.
    curve : Curve
    names : tuple
        All columns of the model.
    named : bool
        Whether it was fitted to a table with named columns.
    output_range : tuple of float, or None
        For a regression that is clipped to it; None for classification and other regressions.
    regression : bool
    order : mapping from column to tuple
        Ordered categories, whose effects are of their ranks.
    """

    intercept: float
    effects: Mapping[Any, ColumnEffect]
    curve: Curve
    names: tuple[Any, ...]
    named: bool
    output_range: tuple[float, float] | None = None
    regression: bool = False
    order: Mapping[Any, tuple[Any, ...]] = field(default_factory=dict)


def additive_form(model: Any, domain: Any = None) -> AdditiveForm | None:
    """The functions of an additive model; None for one that is linear in raw numbers, without a domain."""
    steps, last = unwrap(model)
    if not steps and is_scorecard(last):
        form: AdditiveForm = last.scorer_.additive_form(last.encoder_)
        scores: AdditiveScores = last.scorer_.additive_scores(last.encoder_)
    elif not steps and is_boosted_steps(last):
        scores = boosted_scores(last)
        form = _boosted_form(last, scores)
        for name, effect in form.effects.items() if domain is None else ():
            if effect.values is not None:
                refuse_merged(name, effect.levels, effect.values)
    else:
        linear = read_linear_model(model, in_pieces=True)
        if domain is None:
            linear.refuse_merged()
        if domain is None and all(source.pieces is None for source in linear.sources):
            return None
        scores = linear_scores(model, linear)
        form = linear_form(linear, scores)
    return form if domain is None else _within(form, scores, domain)


def _within(form: AdditiveForm, scores: AdditiveScores, domain: Any) -> AdditiveForm:
    """The same for the numbers and categories that a domain declares, by evaluating the model's parts there."""
    declared_columns = {name: declared(domain, name) for name in form.effects}
    held_by = {name: domain.columns[name] for name in form.names if name in domain.columns}
    kinds = {name: object for name, held in held_by.items() if hasattr(held, "values")}
    anyone = {name: (*held.values, None)[0] if name in kinds else held.low for name, held in held_by.items()}
    effects = dict(form.effects)
    for i, name in enumerate(form.names):
        if name not in effects or effects[name].grid is not None:  # ordered categories are declared by the model
            continue
        held = declared_columns[name]
        values = _declared_values(held, name)
        # A missing category may be None or NaN, which encoders tell apart.
        blanks = list(held.blanks) or [np.nan, None] if hasattr(held, "values") else [np.nan]
        asked, added = values + blanks * held.blank, np.empty(0)
        if asked:
            rows = pd.DataFrame(
                {
                    other: pd.Series([anyone.get(other, np.nan)] * len(asked), dtype=kinds.get(other))
                    for other in form.names
                }
            )
            rows[name] = pd.Series(asked, dtype=object) if hasattr(held, "values") else asked
            try:
                added = scores.parts[i](rows if form.named else rows.to_numpy())[:, 0]
            except (TypeError, ValueError) as problem:
                raise UnprovableError(f"the model refuses what domain declares for {name!r} ({problem})") from None
        blank = float(added[len(values)]) if held.blank else None
        if hasattr(held, "values"):
            refuse_merged(name, asked, added)
            effects[name] = ColumnEffect(values=added)
        elif values:
            ends = float(values[0]), float(values[-1])
            effects[name] = ColumnEffect(None, np.array(values), added[: len(values)], blank, ends)
        elif effects[name].pieces is None:
            raise UnprovableError(f"{name!r} has numbers as categories; declare a step for it in domain")
        else:
            effects[name] = ColumnEffect(effects[name].pieces, blank=blank, ends=(held.low, held.high))
    return replace(form, effects=effects)


def _declared_values(held: Any, name: Any) -> list[Any]:
    """Categories, or the numbers of a grid; none of a range without a step."""
    if hasattr(held, "values"):
        return list(held.values)
    if held.step is None:
        return []
    if held.n_values > _MAX_GRID:
        raise InvalidInputError(
            f"domain must declare at most {_MAX_GRID:,} numbers per column; {name!r} has {held.n_values:,}. Declare a "
            "larger step, or none for a column without jumps."
        )
    found: list[Any] = held.every().tolist()
    return found


def declared(domain: Any, name: Any) -> Any:
    """What a column of the model can hold, by the domain."""
    if name not in domain.columns:
        raise InvalidInputError(
            f"domain must have the columns of the model; it has no {name!r}. Use Domain.learn(X), and edit it."
        )
    return domain.columns[name]


def linear_form(linear: LinearModel, scores: AdditiveScores) -> AdditiveForm:
    """A linear model behind splines, bins, or with a declared domain; two classes or regression."""
    if scores.curve is None:
        raise UnprovableError(
            f"splines, bins and declared domains are read for two classes and regression, not for {len(linear.coef)} "
            "classes"
        )
    effects = _linear_effects(linear, linear.coef[1] - linear.coef[0])
    baseline = float(scores.baseline[0])
    return AdditiveForm(baseline, effects, scores.curve, linear.names, linear.named, regression=scores.regression)


def _linear_effects(linear: LinearModel, coef: FloatArray) -> dict[Any, ColumnEffect]:
    """Effects for all numbers and categories, from the sources of the features."""
    numbers: dict[int, list[PPoly]] = {}
    levels: dict[int, FloatArray] = {}
    blanks: dict[int, float | None] = {}
    encoders: dict[int, Any] = {}
    for source, factor in zip(linear.sources, coef.tolist(), strict=True):
        if source.is_constant:
            continue
        i = source.column
        if encoders.setdefault(i, source.encoder) is not source.encoder:
            raise UnprovableError(f"the column {linear.names[i]!r} is encoded in two ways")
        if source.levels is not None:
            levels[i] = levels.get(i, 0.0) + factor * source.levels
        else:
            line = PPoly(np.array([[source.scale], [source.shift]]), [0.0, 1.0])
            pieces = line if source.pieces is None else source.pieces
            numbers.setdefault(i, []).append(PPoly(factor * pieces.c, pieces.x))
        before = blanks.get(i, 0.0)
        blanks[i] = None if source.absent is None or before is None else before + factor * float(source.absent)
    found: dict[Any, ColumnEffect] = {}
    for i, name in enumerate(linear.names):
        if i in levels:
            own = np.append(levels[i], [] if blanks[i] is None else [blanks[i]])
            found[name] = ColumnEffect(values=own)
        elif i in numbers:
            found[name] = ColumnEffect(pieces=sum_of_pieces(numbers[i]), blank=blanks[i])
    return found


def _boosted_form(model: Any, scores: AdditiveScores) -> AdditiveForm:
    """A step function per column."""
    if scores.curve is None:
        raise UnprovableError(f"{type(model).__name__} is read for two classes and regression only")
    effects = {}
    for (i,), values in zip(model.term_features_, model.term_scores_, strict=True):
        if i not in scores.knots:
            bins = model.bins_[i][0]
            levels = (None, *sorted(bins, key=bins.__getitem__))
            effects[scores.names[i]] = ColumnEffect(values=np.asarray(values, dtype=np.float64), levels=levels)
            continue
        cuts = scores.knots[i]
        low, high = (cuts[0], cuts[-1]) if len(cuts) else (0.0, 0.0)
        x = np.concatenate([[low - 1 - abs(low)], cuts, [high + 1 + abs(high)]])
        effects[scores.names[i]] = ColumnEffect(
            pieces=PPoly(np.asarray(values, dtype=np.float64)[None, 1:-1], x), blank=float(values[0])
        )
    baseline = float(scores.baseline[0])
    return AdditiveForm(baseline, effects, scores.curve, scores.names, True, regression=scores.regression)
