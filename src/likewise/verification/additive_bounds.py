"""How much exchanging columns can change a sum of functions of single columns: closed forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise._typing import FloatArray
from likewise.exceptions import UnprovableError
from likewise.inspection.additive_scores import Curve, additive_scores
from likewise.verification.base import InputSpace
from likewise.verification.domain import CategoricalDomain, NumericDomain
from likewise.verification.interaction_bounds import InteractionModel, Nodes
from likewise.verification.outputs import softmax_of_rows
from likewise.verification.softmax_bounds import SoftmaxProblem

_MOST_EXCHANGED = 100  # values of a column that are enumerated
_MOST_CLASSES, _MOST_PAIRS = 6, 20_000  # classes whose sets are tried, and pairs of values of the exchanged columns
_LARGEST_SCORE = 300.0  # differences of scores whose exponentials are finite
_MANY = 512  # values between two candidates that are tried for a pair
_CUTS = 129  # values at which a column of many numbers can be cut


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
    """The additive scores of a model on the encoded people of a domain.

    Attributes
    ----------
    space : InputSpace
    baseline : ndarray of shape (n_scores,)
    terms : list of Term
        One for each column.
    evaluate : callable
        From a column and encoded values to what the column adds, shape (n_values, n_scores).
    curve : Curve or None
        Link to the output, as a share of the output range if there is one; None for the softmax of several scores.
    rounding : float
        What rounding may add to a score.
    """

    space: InputSpace
    baseline: FloatArray
    terms: list[Term]
    evaluate: Callable[[int, FloatArray], FloatArray]
    curve: Curve | None
    rounding: float

    @classmethod
    def read(cls, space: InputSpace) -> AdditiveModel:
        """Read the model of a space, or raise `UnprovableError`."""
        scores = additive_scores(space.model)
        by_name = scores.named and not space.as_array
        parts_of: list[list[int]] = [[] for _ in space.names]
        for i in scores.parts:
            parts_of[space.column_of[space.encoder.names.index(scores.names[i]) if by_name else i]].append(i)

        def evaluate(column: int, values: FloatArray) -> FloatArray:
            total, given = np.zeros((len(values), len(scores.baseline))), space.given(space.varied(column, values))
            for i in parts_of[column]:
                total = total + scores.parts[i](given)
            return total

        terms = []
        for i in range(len(space.names)):
            knots = [scores.knots[part] for part in parts_of[i] if part in scores.knots]
            candidates = _candidates(space, i, np.concatenate([np.empty(0), *knots]))
            terms.append(Term(candidates, evaluate(i, candidates)))
        size = float(np.abs(scores.baseline).max()) + sum(float(np.abs(each.values).max(initial=0.0)) for each in terms)
        curve = scores.curve
        if curve is not None and scores.regression and space.output_range is not None:
            curve = curve.divided(space.output_range[1] - space.output_range[0])
        found = cls(space, scores.baseline, terms, evaluate, curve, scores.rounding(size))
        link = softmax_of_rows if scores.curve is None else scores.curve.value
        space.confirm(lambda rows: link(found.scores(rows)), "the sum of functions that was expected")
        return found

    def scores(self, rows: FloatArray) -> FloatArray:
        """Scores of encoded people."""
        total = np.tile(self.baseline, (len(rows), 1)).astype(np.float64)
        for i in range(rows.shape[1]):
            total += self.evaluate(i, rows[:, i])
        return total


def _candidates(space: InputSpace, column: int, knots: FloatArray) -> FloatArray:
    """Categories, or the ends of the domain and both sides of each knot; a blank where there may be one."""
    held = space.held[column]
    if isinstance(held, CategoricalDomain):
        return space.codes(column)
    return space.or_blank(column, _around(held, knots))


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


def largest_change(model: AdditiveModel, columns: Sequence[int]) -> tuple[float, FloatArray, FloatArray]:
    """Upper bound on the effect of exchanging some columns, and a pair that comes close to it.

    With one score the bound is tight, except for gaps between the sums that the other columns can take.
    """
    assert model.curve is not None
    low = np.array([term.values[:, 0].min() for term in model.terms])
    high = np.array([term.values[:, 0].max() for term in model.terms])
    chosen = np.isin(np.arange(len(low)), list(columns))
    rise = float(high[chosen].sum() - low[chosen].sum()) + 2 * model.rounding
    rest_low = float(model.baseline[0] + low.sum()) - model.rounding
    rest_high = float(model.baseline[0] + high[~chosen].sum() + low[chosen].sum()) + model.rounding
    at = min(max(model.curve.centre - rise / 2, rest_low), rest_high)
    proven = float(model.curve.rise(rise, rest_low, rest_high, np.inf))
    a = np.array([term.candidates[term.values[:, 0].argmin()] for term in model.terms])
    b = a.copy()
    b[chosen] = [term.candidates[term.values[:, 0].argmax()] for i, term in enumerate(model.terms) if chosen[i]]
    rest = _reach(model, a, ~chosen, at)
    a[~chosen], b[~chosen] = rest[~chosen], rest[~chosen]
    return proven, a, b


def as_tables(model: AdditiveModel, columns: Sequence[int]) -> InteractionModel | None:
    """The same scores for a search over boxes of people; None if their columns have too many values.

    The closed form assumes that the other columns can take any sum within their range. Columns of few values, and rules
    of the domain, may exclude some.
    """
    ruled = {i for rule in model.space.rules for i in rule.terms}
    nodes, tables = [], dict[tuple[int, ...], FloatArray]({(): model.baseline})
    for i, (held, term) in enumerate(zip(model.space.held, model.terms, strict=True)):
        values = model.space.few_values(i, _MOST_EXCHANGED)
        few = values is not None
        if values is None:
            if isinstance(held, CategoricalDomain) or not model.space.rules:
                return None
            values = np.unique(np.concatenate([term.candidates, held.spread(_CUTS)]))  # a blank comes last
        tables[(i,)] = model.evaluate(i, values)
        corners = list(range(len(values)))
        if model.curve is not None and (i not in ruled or not few):  # the link rises
            corners = [int(tables[(i,)].argmin()), int(tables[(i,)].argmax())]
        elif not few and i in columns:
            return None
        nodes.append(Nodes(values, 0 if few else int((~np.isnan(values)).sum()), corners, is_line=False))
    return InteractionModel(model.space, nodes, tables, model.curve, model.rounding)


def largest_excess(model: AdditiveModel, distance: Callable[[int, FloatArray, FloatArray], FloatArray]) -> float:
    """Upper bound of ``difference - D`` over all pairs of the domain, for one score.

    For every ``m >= 0``, with d the rise of the score and G its link,
    ``G(a + d) - G(a) - D <= max_d (largest(d) - m d) + sum_i max over two values of (m rise_i - D_i)``,
    since ``D >= sum_i D_i``. The smallest over m is taken; each of them is a bound.

    Parameters
    ----------
    distance : callable
        From a column and two arrays of encoded values to the least that they add to the distance.
    """
    if model.curve is None:
        raise UnprovableError("the excess over a metric is bounded for two classes and for regression only")
    rises = []
    for i, term in enumerate(model.terms):
        z = term.candidates
        rises.append((term.values[None, :, 0] - term.values[:, None, 0], distance(i, z[:, None], z[None, :])))
    most = sum(float(rise.max()) for rise, _ in rises) + 2 * model.rounding
    grid = np.linspace(0.0, most, 4097)
    best = np.inf
    curve = model.curve.largest(grid)
    for m in np.concatenate([[0.0], model.curve.steepest * np.linspace(0.01, 1.0, 100)]):
        # Between two points of the grid the curve rises by no more than to the next of them. It is concave, with
        # this slope at 0, so the gain is 0 at the last m.
        gain = float((curve[1:] - m * grid[:-1]).max()) if most and m < model.curve.steepest else 0.0
        apart = sum(float((m * rise - away).max()) for rise, away in rises)
        best = min(best, max(gain, 0.0) + apart)
    return max(0.0, best)


def softmax_problem(model: AdditiveModel, columns: Sequence[int]) -> SoftmaxProblem | None:
    """The same problem in the space of several scores; None if there are too many of them, or of values.

    Columns of few values have a point for each, others the lines between candidates.
    """
    rest, parts, finite = [], [], True
    for i, term in enumerate(model.terms):
        every = model.space.few_values(i, _MOST_EXCHANGED)
        finite &= every is not None
        values = term.values if every is None else model.evaluate(i, every)
        if i not in columns:
            rest.append(values)
        elif every is not None:
            parts.append(np.stack([values, values], axis=1))
        else:
            numbers, blank = (values[np.isnan(term.candidates) == which] for which in (False, True))
            ends = np.concatenate([numbers[:-1], blank]), np.concatenate([numbers[1:], blank])
            parts.append(np.stack(ends, axis=1))
    problem = SoftmaxProblem(rest, parts, model.baseline, model.rounding, finite)
    size = sum(float(np.ptp(each.reshape(-1, each.shape[-1]), axis=1).max()) for each in [*rest, *parts])
    few = len(model.baseline) <= _MOST_CLASSES and problem.n_pairs <= _MOST_PAIRS
    return problem if few and size + float(np.ptp(model.baseline)) <= _LARGEST_SCORE else None


def largest_softmax(model: AdditiveModel, columns: Sequence[int]) -> tuple[float, FloatArray, FloatArray]:
    """``tanh(spread / 4)``: the odds of any set of classes move by the largest difference of two logits at most."""
    n_scores, best, pair = len(model.baseline), -1.0, (0, 1)
    for k in range(n_scores):
        for m in range(k):
            spread = sum(float(np.ptp(model.terms[i].values[:, k] - model.terms[i].values[:, m])) for i in columns)
            if spread > best:
                best, pair = spread, (k, m)
    a = model.space.rows[0].copy()
    b = a.copy()
    for i in columns:
        gap = model.terms[i].values[:, pair[0]] - model.terms[i].values[:, pair[1]]
        a[i], b[i] = model.terms[i].candidates[gap.argmin()], model.terms[i].candidates[gap.argmax()]
    for i in range(len(a)):  # any row in the domain
        if i not in columns and not np.isin(a[i], model.terms[i].candidates):
            a[i] = b[i] = model.terms[i].candidates[0]
    return float(np.tanh((best + 4 * model.rounding) / 4)), a, b


def _reach(model: AdditiveModel, row: FloatArray, free: Any, target: float) -> FloatArray:
    """Change the free columns of a person so that the score comes close to a target; all are at their lowest."""
    row = row.copy()
    missing = target - float(model.scores(row[None])[0, 0])
    spans = [float(np.ptp(term.values[:, 0])) if free[i] else 0.0 for i, term in enumerate(model.terms)]
    # The widest first; columns of numbers last, since they can be adjusted.
    order = sorted(range(len(spans)), key=lambda i: (len(_between(model, i)) > 0, -spans[i]))
    for i in order:
        if not free[i] or missing <= 0:
            continue
        values = model.terms[i].values[:, 0] - model.evaluate(i, row[i : i + 1])[0, 0]
        fits = np.where(values <= missing + 1e-15, values, -np.inf)
        best = int(fits.argmax())
        candidates, sizes = model.terms[i].candidates, values
        if values.max() > missing and len(between := _between(model, i)):
            candidates = np.concatenate([candidates, between])
            sizes = np.concatenate([values, model.evaluate(i, between)[:, 0] - model.evaluate(i, row[i : i + 1])[0, 0]])
            best = int(np.abs(sizes - missing).argmin())
        if sizes[best] > 0:
            row[i] = candidates[best]
            missing -= float(sizes[best])
    return row


def _between(model: AdditiveModel, column: int) -> FloatArray:
    """Values between the candidates of a column of numbers, spread over its range."""
    held = model.space.held[column]
    return np.empty(0) if isinstance(held, CategoricalDomain) else held.spread(_MANY)
