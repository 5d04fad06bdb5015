"""Models whose scores are sums of functions of single columns, read by evaluating what each column adds.

Scorecards of likewise (which read themselves), linear models behind preprocessing, and explainable boosting machines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, ndtr

from likewise._typing import FloatArray
from likewise.ask import answers
from likewise.exceptions import UnprovableError
from likewise.inspection.linear import CLIPPED, IDENTITY, LOGISTIC, LinearModel, Link, read_linear_model
from likewise.inspection.preprocessing import RawColumn, preprocessed, unwrap

_ROUNDING = 2.0**-50  # of a sum of a few numbers, relative to their size


@dataclass(frozen=True)
class Curve:
    """Link from one score to one output: increasing, with a slope that falls with the distance from `centre`.

    So a given change of the score changes the output most where its midpoint is closest to the centre.
    """

    name: str
    value: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]
    centre: float = 0.0

    @property
    def steepest(self) -> float:
        """The slope at the centre."""
        return float(self.slope(np.asarray(self.centre)))

    def largest(self, rises: FloatArray) -> FloatArray:
        """Largest changes of the output for given rises of the score."""
        return np.asarray(self.value(self.centre + rises / 2) - self.value(self.centre - rises / 2))

    def rise(self, d: Any, low: Any, high: Any, top: Any) -> FloatArray:
        """Largest ``value(b) - value(a)`` with ``b - a <= d``, ``low <= a <= high`` and ``b <= top`` (theory, 15.1).

        It is the largest ``value(min(a + d, top)) - value(a)``. Up to ``a = top - d`` this rises until the middle is at
        the centre and falls then; beyond it falls.
        """
        a = np.clip(self.centre - d / 2, low, np.maximum(low, high))
        with np.errstate(invalid="ignore"):  # infinite limits, where nobody is
            a = np.where(a + d > top, np.maximum(low, top - d), a)
            rise = self.value(np.minimum(a + d, top)) - self.value(a)
        return np.where(d > 0, np.maximum(rise, 0.0), 0.0)

    def divided(self, width: float) -> Curve:
        """The output as a share of a width."""
        return Curve(self.name, lambda a: self.value(a) / width, lambda a: self.slope(a) / width, self.centre)


LINE = Curve("identity", np.asarray, lambda a: np.ones(np.shape(a)))
LOGIT = Curve("logistic", expit, lambda a: expit(a) * expit(-a))
PROBIT = Curve("probit", ndtr, lambda a: np.exp(-np.square(a) / 2) / np.sqrt(2 * np.pi))


def clip(low: float, high: float, slope: float = 1.0, shift: float = 0.0) -> Curve:
    """A line cut to a range: `slope` times the score between `low` and `high`, plus `shift`."""
    return Curve(
        "clip",
        lambda a: slope * np.clip(a, low, high) + shift,
        lambda a: np.where((a >= low) & (a <= high), slope, 0.0),
        (low + high) / 2,
    )


def curve_of(link: Link) -> Curve:
    """The curve of a linear model with one score."""
    return {id(IDENTITY): LINE, id(LOGISTIC): LOGIT, id(CLIPPED): clip(-1.0, 1.0, 0.5, 0.5)}[id(link)]


@dataclass(frozen=True, eq=False)
class AdditiveScores:
    """A model with the scores ``baseline_k + sum_i part_ik(x_i)``.

    Attributes
    ----------
    names : tuple
        All columns of the model.
    named : bool
        Whether it was fitted to a table with named columns.
    baseline : ndarray of shape (n_scores,)
    parts : mapping from position of a column to callable
        From rows, as the model takes them, to what the column adds, shape (n_rows, n_scores). Others add nothing.
    knots : mapping from position of a column to ndarray
        Numbers between which the column's part is linear or constant; none for a line.
    curve : Curve or None
        None for the softmax of several scores.
    regression : bool
    error : float
        What rounding may add to a score.
    n_rounded : int
        Operations whose rounding is relative to the size of the score.
    """

    names: tuple[Any, ...]
    named: bool
    baseline: FloatArray
    parts: Mapping[int, Callable[[Any], FloatArray]]
    knots: Mapping[int, FloatArray]
    curve: Curve | None
    regression: bool
    error: float = 0.0
    n_rounded: int = 0

    def rounding(self, size: float) -> float:
        """What rounding may add to a score, if its terms add up to this size at most."""
        return self.error + self.n_rounded * _ROUNDING * size


def additive_scores(model: Any) -> AdditiveScores:
    """Read a scorecard, a boosting machine without interactions or a linear model; `UnprovableError` for others."""
    steps, last = unwrap(model)
    if not steps and is_scorecard(last):
        found: AdditiveScores = last.scorer_.additive_scores(last.encoder_)
        return found
    if not steps and is_boosted_steps(last):
        return boosted_scores(last)
    return linear_scores(model, read_linear_model(model))


def is_scorecard(model: Any) -> bool:
    """Whether it is an additive model of likewise, which provides its own form."""
    return hasattr(getattr(model, "scorer_", None), "additive_scores")


# -- linear models behind preprocessing ------------------------------------------------------------------------------


def linear_scores(model: Any, linear: LinearModel) -> AdditiveScores:
    """A linear model, by evaluating its own preprocessing, which defines the edges of bins."""
    steps, _ = unwrap(model)
    binary = len(linear.coef) == 2
    coef = linear.coef[1:] - linear.coef[:1] if binary else linear.coef
    baseline = linear.intercept[1:] - linear.intercept[:1] if binary else linear.intercept
    constants = np.array([source.shift if source.is_constant else 0.0 for source in linear.sources])
    size = float(np.abs(linear.intercept).max()) + float((np.abs(coef) @ np.abs(constants)).max())
    features: dict[int, list[int]] = {}
    for j, source in enumerate(linear.sources):
        if not source.is_constant:
            features.setdefault(source.column, []).append(j)

    def part_of(own: list[int]) -> Callable[[Any], FloatArray]:
        return lambda rows: np.asarray(preprocessed(steps, rows), dtype=np.float64)[:, own] @ coef[:, own].T

    curve = curve_of(linear.link)
    n_rounded = coef.shape[1] + 8
    return AdditiveScores(
        linear.names,
        linear.named,
        baseline + coef @ constants,
        {i: part_of(own) for i, own in features.items()},
        {i: _numeric_categories([linear.sources[j] for j in own]) for i, own in features.items()},
        curve if binary else None,
        linear.link is IDENTITY,
        n_rounded * _ROUNDING * size,
        n_rounded,
    )


def _numeric_categories(sources: list[RawColumn]) -> FloatArray:
    """Numbers that an encoder treats as categories, over all its columns: each may have its own value."""
    encoders = {id(source.encoder): source.encoder for source in sources if source.encoder is not None}.values()
    listed = [each for encoder in encoders for column in encoder.categories_ for each in column.tolist()]
    return np.unique([float(each) for each in listed if isinstance(each, (int, float))])


# -- explainable boosting machines -----------------------------------------------------------------------------------


def is_boosted_steps(model: Any) -> bool:
    """Whether it is an explainable boosting machine of the package `interpret`, which need not be installed."""
    return type(model).__name__ in ("ExplainableBoostingClassifier", "ExplainableBoostingRegressor") and type(
        model
    ).__module__.startswith("interpret.")


def boosted_scores(model: Any) -> AdditiveScores:
    """An explainable boosting machine without interactions: functions that are constant on bins."""
    kind, regression = type(model).__name__, not hasattr(model, "classes_")
    if any(len(term) > 1 for term in model.term_features_):
        raise UnprovableError(f"{kind} has interactions; fit it with interactions=0")
    if model.link_ not in (("identity",) if regression else ("logit", "mlogit")):
        raise UnprovableError(f"{kind} with the link {model.link_!r} is not read")
    baseline = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    parts, knots = {}, {}
    for (i,), values in zip(model.term_features_, model.term_scores_, strict=True):
        table = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
        parts[i] = _boosted_part(i, table, model.bins_[i][0])
        if not isinstance(model.bins_[i][0], dict):
            knots[i] = np.asarray(model.bins_[i][0], dtype=np.float64)
    curve = LINE if regression else LOGIT if len(baseline) == 1 else None
    names = tuple(model.feature_names_in_)
    scores = AdditiveScores(names, True, baseline, parts, knots, curve, regression, n_rounded=len(names) + 8)
    if curve is not None:
        _confirm_steps(model, scores, curve)
    return scores


def _boosted_part(column: int, table: FloatArray, bins: Any) -> Callable[[Any], FloatArray]:
    """Position 0 of the table is for missing values, the last for unseen ones."""

    def part(rows: Any) -> FloatArray:
        taken = rows.iloc[:, column] if hasattr(rows, "iloc") else rows[:, column]
        if isinstance(bins, dict):
            unseen = len(table) - 1
            return table[[0 if each is None or each != each else bins.get(str(each), unseen) for each in taken]]
        numbers = np.asarray(taken, dtype=np.float64)
        return table[np.where(np.isnan(numbers), 0, np.searchsorted(bins, numbers, side="right") + 1)]

    return part


def _confirm_steps(model: Any, scores: AdditiveScores, curve: Curve) -> None:
    """Raise if the model's own outputs differ from the sum of its step functions: versions vary."""
    rng, n = np.random.default_rng(0), 50
    columns: dict[Any, Any] = {}
    for name, (bins, *_) in zip(scores.names, model.bins_, strict=True):
        if isinstance(bins, dict):
            columns[name] = rng.choice(np.array([*bins, None], dtype=object), n)
        else:
            cuts = np.asarray(bins, dtype=np.float64)
            around = np.concatenate([cuts, cuts - 1, cuts + 1, [0.0]])
            columns[name] = np.where(rng.random(n) < 0.1, np.nan, rng.choice(around, n))
    rows = pd.DataFrame(columns)
    expected = curve.value(scores.baseline + sum(part(rows) for part in scores.parts.values()))[:, 0]
    outputs = answers(model, rows, "predict") if scores.regression else answers(model, rows, "predict_proba")[:, 1]
    if not np.allclose(outputs, expected, rtol=1e-6, atol=1e-9):
        raise UnprovableError(f"the outputs of {type(model).__name__} are not the expected sum of its term_scores_")
