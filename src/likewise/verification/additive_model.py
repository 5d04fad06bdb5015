"""Models whose score is a sum of functions of single columns: scorecards, linear models, EBM without interactions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from likewise._typing import FloatArray, IntArray
from likewise.additive.scorer import AdditiveScorer
from likewise.additive.shapes import Shape
from likewise.base import ConstrainedEstimator
from likewise.exceptions import UnprovableError
from likewise.inspection import linear
from likewise.inspection.feature_sources import Preprocessing
from likewise.verification.domain import CategoricalDomain, NumericDomain
from likewise.verification.input_space import InputSpace


@dataclass(frozen=True, eq=False)
class MonotoneLink:
    """From one score to an output: symmetric about its centre, and flattest far from it.

    ``G(r + high) - G(r + low)`` is then largest where ``r + (high + low) / 2`` is as close to the centre as it can be.
    """

    name: str
    apply: Callable[[FloatArray], FloatArray]
    centre: float
    largest: Callable[[float], float]
    slope: float


def logistic_link() -> MonotoneLink:
    """``sigma(r)``, for log-odds."""
    return MonotoneLink("logistic", expit, 0.0, lambda d: float(np.tanh(d / 4)), 0.25)


def probit_link() -> MonotoneLink:
    """``Phi(r)``."""
    return MonotoneLink("probit", ndtr, 0.0, lambda d: float(2 * ndtr(d / 2) - 1), float(1 / np.sqrt(2 * np.pi)))


def clip_link(low: float, high: float, share: float) -> MonotoneLink:
    """``clip(r, low, high)``, in units of `share`."""
    return MonotoneLink(
        "clip",
        lambda r: np.clip(r, low, high) / share,
        (low + high) / 2,
        lambda d: min(d, high - low) / share,
        1 / share,
    )


def identity_link(share: float) -> MonotoneLink:
    """The score itself, in units of `share`."""
    return MonotoneLink("identity", lambda r: np.asarray(r) / share, 0.0, lambda d: d / share, 1 / share)


@dataclass(frozen=True, eq=False)
class Term:
    """What one column adds to the scores.

    Attributes
    ----------
    candidates : ndarray of shape (n_candidates,)
        Encoded values between which the function is linear or constant: its extremes are among them.
    values : ndarray of shape (n_candidates, n_scores)
    """

    candidates: FloatArray
    values: FloatArray


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """``score_k(x) = baseline_k + sum over columns of f_ik(x_i)``.

    Attributes
    ----------
    space : InputSpace
    baseline : ndarray of shape (n_scores,)
    terms : list of Term
        One for each column.
    evaluate : callable
        From a column and encoded values to what the column adds, shape (n_values, n_scores).
    link : MonotoneLink or None
        None for the softmax of several scores.
    rounding : float
        What rounding may add to a score.
    """

    space: InputSpace
    baseline: FloatArray
    terms: list[Term]
    evaluate: Callable[[int, FloatArray], FloatArray]
    link: MonotoneLink | None
    rounding: float

    @classmethod
    def read(cls, space: InputSpace) -> AdditiveModel:
        """Read a scorecard, a linear model or an EBM without interactions; `UnprovableError` for others."""
        model = space.model
        if isinstance(model, ConstrainedEstimator):
            found = _read_scorecard(space)
        elif hasattr(model, "term_scores_") and hasattr(model, "term_features_"):
            found = _read_boosting_machine(space)
        else:
            found = _read_linear(space)
        found._confirm()
        return found

    def _confirm(self) -> None:
        """Raise if the model's own answers differ from what was read off it."""
        rows = self.space.rows[:: max(1, len(self.space.rows) // 500)]
        answers, _ = self.space.answers(rows)
        if self.link is None:
            scores = self.scores(rows)
            e = np.exp(scores - scores.max(axis=1, keepdims=True))
            expected = e / e.sum(axis=1, keepdims=True) / 2
        else:
            expected = self.link.apply(self.scores(rows))[:, -1:]
            if self.space.output_range is not None:
                expected = expected - self.space.output_range[0] / np.diff(self.space.output_range)
        if answers.shape != expected.shape or not np.allclose(answers, expected, rtol=1e-7, atol=1e-9):
            raise UnprovableError(
                f"the answers of {type(self.space.model).__name__} are not the sum of functions that was expected"
            )

    def scores(self, rows: FloatArray) -> FloatArray:
        """Scores of encoded people."""
        total = np.tile(self.baseline, (len(rows), 1)).astype(np.float64)
        for i in range(rows.shape[1]):
            total += self.evaluate(i, rows[:, i])
        return total


def _terms(
    space: InputSpace, evaluate: Callable[[int, FloatArray], FloatArray], knots: dict[int, FloatArray]
) -> list[Term]:
    """Candidates of every column: categories, or the ends of the domain and both sides of each knot."""
    terms = []
    for i, name in enumerate(space.names):
        held = space.domain.columns[name]
        if isinstance(held, CategoricalDomain):
            candidates = space.codes(i)
        else:
            candidates = _around(held, knots.get(i, np.empty(0)))
            candidates = np.append(candidates, np.nan) if held.blank else candidates
        terms.append(Term(candidates, evaluate(i, candidates)))
    return terms


def _around(held: NumericDomain, knots: FloatArray) -> FloatArray:
    """Numbers of a domain next to knots, on both sides, and its ends."""
    inside = knots[(knots >= held.low) & (knots <= held.high)]
    if held.step is None:
        near = np.concatenate([np.nextafter(inside, -np.inf), inside, np.nextafter(inside, np.inf)])
        near = np.append(near, [held.low, held.high])
        return np.unique(np.clip(near, held.low, held.high))
    place = inside / held.step
    places = np.concatenate([np.floor(place) - 1, np.floor(place), np.ceil(place), np.ceil(place) + 1])
    places = np.append(places, [held.first, held.last])
    return held.at(np.unique(np.clip(places, held.first, held.last)).astype(np.int64))


def _of_column(space: InputSpace, column: int, values: FloatArray) -> Any:
    """One person with other values in one column, as the model takes people."""
    rows = np.repeat(space.rows[:1], len(values), axis=0)
    rows[:, column] = values
    return space.given(rows)


def _read_scorecard(space: InputSpace) -> AdditiveModel:
    model = space.model
    scorer = getattr(model, "scorer_", None)
    if type(scorer) is not AdditiveScorer:
        raise UnprovableError(f"{type(model).__name__} is no sum of functions of single columns")
    shapes: dict[int, Shape] = {}
    for shape in scorer.model.shapes:
        shapes[space.names.index(model.encoder_.names[shape.column])] = shape
    n_scores = len(scorer.model.intercepts)

    def evaluate(column: int, values: FloatArray) -> FloatArray:
        shape = shapes.get(column)
        if shape is None:
            return np.zeros((len(values), n_scores))
        coded = model.encoder_.encode(_of_column(space, column, values))[:, shape.column]
        return _shape_values(shape, coded)

    knots = {i: shape.knots for i, shape in shapes.items() if shape.knots is not None}
    limits = scorer.guarantee.output_range
    link = {
        "logistic": logistic_link(),
        "probit": probit_link(),
        "softmax": None,
        "clip": None if limits is None else clip_link(*limits, limits[1] - limits[0]),
    }[scorer.link]
    # Points between knots are rounded to the grid, by less than two of its steps.
    rounding = 4 * (len(shapes) + 1) * 2.0**-scorer.model.bits
    return AdditiveModel(space, scorer.model.intercepts, _terms(space, evaluate, knots), evaluate, link, rounding)


def _shape_values(shape: Shape, coded: FloatArray) -> FloatArray:
    blank = np.isnan(coded)
    other = np.full(len(shape.values), np.nan) if shape.other is None else shape.other
    if shape.knots is None:
        known = ~blank & (coded >= 0)
        return np.where(known[:, None], shape.values[:, np.where(known, coded, 0).astype(np.int64)].T, other)
    filled = np.where(blank, shape.knots[0], coded)
    values = np.column_stack([np.interp(filled, shape.knots, row) for row in shape.values])
    return np.where(blank[:, None], other, values)


def _read_linear(space: InputSpace) -> AdditiveModel:
    linear.read_linear_model(space.model)  # raises unless all of it is linear, and its answers are as expected
    columns = list(space.given(space.rows[:1]).columns) if not space.as_array else space.names
    where = [space.names.index(name) for name in columns]
    preprocessing = Preprocessing.of(space.model, len(where))
    coef, intercept, link = linear._scores(preprocessing.last)
    features_of: dict[int, IntArray] = {
        i: np.array(
            [j for j, s in enumerate(preprocessing.sources) if s is not None and where[s.column] == i], dtype=np.int64
        )
        for i in range(len(space.names))
    }
    constant = [j for j, s in enumerate(preprocessing.sources) if s is None]
    binary = len(coef) == 2
    weights = coef[1:] - coef[:1] if binary else coef

    def features(rows: Any) -> FloatArray:
        return np.asarray(preprocessing(rows), dtype=np.float64)

    def evaluate(column: int, values: FloatArray) -> FloatArray:
        chosen = features_of[column]
        if not len(chosen):
            return np.zeros((len(values), len(weights)))
        return features(_of_column(space, column, values))[:, chosen] @ weights[:, chosen].T

    base = intercept[1:] - intercept[:1] if binary else intercept
    if constant:
        base = base + features(space.given(space.rows[:1]))[0, constant] @ weights[:, constant].T
    if link is linear.IDENTITY:
        low, high = space.output_range or (0.0, 1.0)
        monotone: MonotoneLink | None = identity_link(high - low)
    elif link is linear.CLIPPED:
        monotone = MonotoneLink("clip", lambda r: (np.clip(r, -1, 1) + 1) / 2, 0.0, lambda d: min(1.0, d / 2), 0.5)
    else:
        monotone = logistic_link() if binary else None
    terms = _terms(space, evaluate, {})
    size = float(np.abs(base).max()) + sum(float(np.abs(term.values).max(initial=0.0)) for term in terms)
    size += float(np.abs(intercept).max()) + float(sum(np.abs(weights[:, j]).max() for j in constant))
    return AdditiveModel(space, base, terms, evaluate, monotone, (coef.shape[1] + 8) * 2.0**-50 * size)


def _read_boosting_machine(space: InputSpace) -> AdditiveModel:
    """Read an explainable boosting machine by its attributes: functions that are constant on bins."""
    model = space.model
    if any(len(term) > 1 for term in model.term_features_):
        raise UnprovableError(f"{type(model).__name__} has interactions")
    names = list(model.feature_names_in_)
    where = [i if space.as_array else space.names.index(names[i]) for i in range(len(names))]
    scores = {
        where[term[0]]: np.asarray(values)
        for term, values in zip(model.term_features_, model.term_scores_, strict=True)
    }
    bins = {where[i]: model.bins_[i][0] for i in range(len(names))}
    n_scores = 1 if np.ndim(next(iter(scores.values()))) == 1 else next(iter(scores.values())).shape[1]

    def evaluate(column: int, values: FloatArray) -> FloatArray:
        if column not in scores:
            return np.zeros((len(values), n_scores))
        table, cuts = scores[column].reshape(len(scores[column]), n_scores), bins[column]
        given = _of_column(space, column, values)
        taken = given.iloc[:, where.index(column)] if hasattr(given, "iloc") else given[:, where.index(column)]
        if isinstance(cuts, dict):
            unknown = len(table) - 1
            places = [0 if value != value or value is None else cuts.get(str(value), unknown) for value in taken]
            return table[places]
        numbers = np.asarray(taken, dtype=np.float64)
        place = np.searchsorted(cuts, numbers, side="right") + 1
        return table[np.where(np.isnan(numbers), 0, place)]

    knots = {i: np.asarray(cuts, dtype=np.float64) for i, cuts in bins.items() if not isinstance(cuts, dict)}
    base = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    classify = hasattr(model, "classes_")
    kind = str(getattr(model, "link_", "logit" if classify else "identity"))
    if kind not in ("logit", "mlogit", "identity"):
        raise UnprovableError(f"{type(model).__name__} with link={kind!r} is not read")
    link: MonotoneLink | None = logistic_link()
    if kind == "identity":
        low, high = space.output_range or (0.0, 1.0)
        link = identity_link(high - low)
    elif n_scores > 1:
        link = None
    terms = _terms(space, evaluate, knots)
    size = float(np.abs(base).max()) + sum(float(np.abs(term.values).max(initial=0.0)) for term in terms)
    return AdditiveModel(space, base, terms, evaluate, link, (len(terms) + 8) * 2.0**-50 * size)
