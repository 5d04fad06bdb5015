"""Additive models as one function per raw column behind a link: linear pipelines, and boosted step functions (EBM)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.interpolate import PPoly
from scipy.special import expit, ndtr

from likewise._typing import FloatArray
from likewise.exceptions import InvalidInputError, UnprovableError
from likewise.inspection.linear import CLIPPED, IDENTITY, LOGISTIC, LinearModel
from likewise.inspection.preprocessing import sum_of_pieces, unwrap
from likewise.metrics.columns import canonical_category

_MAX_GRID = 100_000  # declared numbers of one column


@dataclass(frozen=True)
class Curve:
    """Link from one score to one output: increasing, with a slope that falls with the distance from `centre`.

    So a given change of the score changes the output most where its middle is as close to the centre as can be.
    """

    value: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]
    centre: float = 0.0


LINE = Curve(lambda a: a, lambda a: np.ones(np.shape(a)))
LOGIT = Curve(expit, lambda a: expit(a) * expit(-a))
PROBIT = Curve(ndtr, lambda a: np.exp(-np.square(a) / 2) / np.sqrt(2 * np.pi))


def clip(low: float, high: float, slope: float = 1.0) -> Curve:
    """A line cut to a range; `slope` times the score between `low` and `high`."""
    return Curve(
        lambda a: slope * np.clip(a, low, high),
        lambda a: np.where((a >= low) & (a <= high), slope, 0.0),
        (low + high) / 2,
    )


@dataclass(frozen=True, eq=False)
class ColumnEffect:
    """What one raw column adds to the score.

    Attributes
    ----------
    pieces : PPoly or None
        Of numbers: a piecewise polynomial whose outer pieces go on. None for a grid, and for categories.
    grid : ndarray or None
        The declared numbers, if they are a grid, increasing.
    values : ndarray or None
        At the numbers of the grid, or for the categories.
    levels : tuple
        Categories of the values, None for a missing one; the last value is for those that are not among them. Empty if
        they are not known by name.
    blank : float or None
        For a missing number; None if it is refused.
    ends : tuple of float, or None
        Smallest and largest number, where they are declared.
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
        Of a regression that is cut to it; None for classes, and for a regression that is not.
    regression : bool
    """

    intercept: float
    effects: Mapping[Any, ColumnEffect]
    curve: Curve
    names: tuple[Any, ...]
    named: bool
    output_range: tuple[float, float] | None = None
    regression: bool = False

    def within(self, domain: Any) -> AdditiveForm:
        """The same for the numbers and categories that a domain declares; effects of numbers become grids."""
        return replace(
            self, effects={name: _within(effect, declared(domain, name), name) for name, effect in self.effects.items()}
        )


def _within(effect: ColumnEffect, held: Any, name: Any) -> ColumnEffect:
    if effect.levels:
        assert effect.values is not None
        at = {canonical_category(level): i for i, level in enumerate(effect.levels) if level is not None}
        chosen = [at.get(canonical_category(value), -1) for value in getattr(held, "values", ())]
        if held.blank:
            chosen.append(effect.levels.index(None) if None in effect.levels else -1)
        return replace(effect, values=effect.values[chosen], levels=())
    if not hasattr(held, "low") or effect.pieces is None:
        return effect
    grid, blank = grid_of(held, name), effect.blank if held.blank else None
    if grid is None:
        return replace(effect, blank=blank, ends=(held.low, held.high))
    return ColumnEffect(None, grid, effect.pieces(grid), blank, (float(grid[0]), float(grid[-1])))


def declared(domain: Any, name: Any) -> Any:
    """What a column of the model can hold, by the domain."""
    if name not in domain.columns:
        raise InvalidInputError(
            f"domain must have the columns of the model; it has no {name!r}. Use Domain.learn(X), and edit it."
        )
    return domain.columns[name]


def grid_of(held: Any, name: Any) -> FloatArray | None:
    """The numbers of a declared grid; None for a range without a step."""
    if held.step is None:
        return None
    if held.last - held.first >= _MAX_GRID:
        raise InvalidInputError(
            f"domain must declare at most {_MAX_GRID:,} numbers per column; {name!r} has "
            f"{held.last - held.first + 1:,}. Declare a larger step, or none for a column without jumps."
        )
    return np.asarray(held.at(np.arange(held.first, held.last + 1)), dtype=np.float64)


# -- linear models behind preprocessing ------------------------------------------------------------------------------


def linear_form(model: Any, linear: LinearModel, domain: Any) -> AdditiveForm:
    """A linear model behind splines, bins, or with a declared domain; two classes or regression."""
    if len(linear.coef) != 2:
        raise UnprovableError(
            f"splines, bins and declared domains are read for two classes and regression, not for {len(linear.coef)} "
            "classes"
        )
    coef, names = linear.coef[1] - linear.coef[0], linear.names
    effects = _read_effects(linear, coef)
    if domain is not None:
        effects = _asked_effects(model, linear, coef, effects, domain)
    curve = {id(IDENTITY): LINE, id(LOGISTIC): LOGIT, id(CLIPPED): clip(-1.0, 1.0, 0.5)}[id(linear.link)]
    intercept = float(linear.intercept[1] - linear.intercept[0])
    return AdditiveForm(intercept, effects, curve, names, linear.named, regression=linear.link is IDENTITY)


def _read_effects(linear: LinearModel, coef: FloatArray) -> dict[Any, ColumnEffect]:
    """Effects for all numbers and categories, from the sources of the features."""
    numbers: dict[int, list[PPoly]] = {}
    levels: dict[int, FloatArray] = {}
    blanks: dict[int, float | None] = {}
    encoders: dict[int, Any] = {}
    for source, factor in zip(linear.sources, coef.tolist(), strict=True):
        if source is None:
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


def _asked_effects(
    model: Any, linear: LinearModel, coef: FloatArray, effects: dict[Any, ColumnEffect], domain: Any
) -> dict[Any, ColumnEffect]:
    """Effects for declared grids and categories, by asking the preprocessing itself: a bin's edge is where it says."""
    held = {name: declared(domain, name) for name in linear.names}
    values: dict[Any, list[Any]] = {}
    for name, each in held.items():
        grid = None if hasattr(each, "values") else grid_of(each, name)
        values[name] = list(each.values) if hasattr(each, "values") else [] if grid is None else grid.tolist()
    base = {name: each[0] if each else held[name].low for name, each in values.items()}
    found = {}
    for i, name in enumerate(linear.names):
        if name not in effects:
            continue
        asked = values[name] + [np.nan] * held[name].blank
        own = np.array([source is not None and source.column == i for source in linear.sources])
        scores = np.empty(0)
        if asked:
            rows = pd.DataFrame({other: asked if other == name else [base[other]] * len(asked) for other in base})
            scores = _preprocessed(model, rows if linear.named else rows.to_numpy(), name)[:, own] @ coef[own]
        if hasattr(held[name], "values"):
            found[name] = ColumnEffect(values=scores)
            continue
        numbers, ends = np.array(values[name]), (held[name].low, held[name].high)
        blank = float(scores[-1]) if held[name].blank else None
        if len(numbers):
            on_grid = scores[: len(numbers)]
            found[name] = ColumnEffect(None, numbers, on_grid, blank, (float(numbers[0]), float(numbers[-1])))
        else:
            found[name] = ColumnEffect(effects[name].pieces, blank=blank, ends=ends)
    return found


def _preprocessed(model: Any, rows: Any, name: Any) -> FloatArray:
    """What the last step of a model is given."""
    steps, _ = unwrap(model)
    try:
        for step in steps:
            rows = step.transform(rows)
    except ValueError as problem:
        raise UnprovableError(f"the preprocessing refuses what domain declares for {name!r} ({problem})") from None
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)


# -- explainable boosting machines -----------------------------------------------------------------------------------


def is_boosted_steps(model: Any) -> bool:
    """Whether it is an explainable boosting machine of the package `interpret`, which need not be installed."""
    return type(model).__name__ in ("ExplainableBoostingClassifier", "ExplainableBoostingRegressor") and type(
        model
    ).__module__.startswith("interpret.")


def boosted_steps_form(model: Any) -> AdditiveForm:
    """An explainable boosting machine without interactions: a step function per column."""
    kind = type(model).__name__
    if any(len(term) > 1 for term in model.term_features_):
        raise UnprovableError(f"{kind} has interactions; fit it with interactions=0")
    regression = not hasattr(model, "classes_")
    if model.link_ != ("identity" if regression else "logit"):
        raise UnprovableError(f"{kind} with the link {model.link_!r} and {len(model.intercept_)} outputs is not read")
    names, effects = tuple(model.feature_names_in_), {}
    for (i,), scores in zip(model.term_features_, model.term_scores_, strict=True):
        bins = model.bins_[i][0]  # position 0 is for missing values, the last for unseen ones
        if isinstance(bins, dict):
            levels = (None, *sorted(bins, key=bins.__getitem__))
            effects[names[i]] = ColumnEffect(values=np.asarray(scores, dtype=np.float64), levels=levels)
            continue
        cuts = np.asarray(bins, dtype=np.float64)
        low, high = (cuts[0], cuts[-1]) if len(cuts) else (0.0, 0.0)
        x = np.concatenate([[low - 1 - abs(low)], cuts, [high + 1 + abs(high)]])
        effects[names[i]] = ColumnEffect(
            pieces=PPoly(np.asarray(scores, dtype=np.float64)[None, 1:-1], x), blank=float(scores[0])
        )
    intercept = float(np.ravel(model.intercept_)[0])
    form = AdditiveForm(intercept, effects, LINE if regression else LOGIT, names, True, regression=regression)
    _confirm_steps(model, form)
    return form


def _confirm_steps(model: Any, form: AdditiveForm) -> None:
    """Raise if the model's own outputs differ from the sum of its step functions: versions vary."""
    rng, n = np.random.default_rng(0), 50
    columns: dict[Any, Any] = {}
    scores = np.full(n, form.intercept)
    for name, bins in zip(form.names, (each[0] for each in model.bins_), strict=True):
        effect: Any = form.effects.get(name, ColumnEffect())
        if isinstance(bins, dict):
            columns[name] = rng.choice(np.array([*bins, None], dtype=object), n)
            if effect.values is not None:
                scores += effect.values[[bins.get(value, 0) for value in columns[name]]]
        else:
            x = np.zeros(1) if effect.pieces is None else effect.pieces.x
            columns[name] = np.where(rng.random(n) < 0.1, np.nan, rng.choice(x, n))
            if effect.pieces is not None:
                scores += np.where(np.isnan(columns[name]), effect.blank, effect.pieces(columns[name]))
    rows = pd.DataFrame(columns)
    outputs = np.asarray(model.predict(rows) if form.regression else model.predict_proba(rows)[:, 1])
    if not np.allclose(outputs, form.curve.value(scores), rtol=1e-6, atol=1e-9):
        raise UnprovableError(f"the outputs of {type(model).__name__} are not the expected sum of its term_scores_")
