"""How much exchanging columns can change a model whose score is a sum of functions of single columns: closed forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from likewise._typing import FloatArray, IntArray
from likewise.additive.scorer import AdditiveScorer, Shape
from likewise.auditing.cells import Cells
from likewise.auditing.domain import CategoricalDomain, NumericDomain
from likewise.auditing.people_space import PeopleSpace, rules_of
from likewise.auditing.tree_bounds import TreeProblem
from likewise.base import ConstrainedEstimator
from likewise.exceptions import UnprovableError
from likewise.inspection import linear
from likewise.inspection.feature_sources import Preprocessing
from likewise.inspection.tree_ensembles import Tree

_OUTWARDS = 1 + 2.0**-40
_MOST_VALUES, _MOST_EXCHANGED = 1000, 100  # of all columns and of an exchanged one, where all are looked at
_MANY = 512  # values between two candidates that are tried for a pair


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
    space : PeopleSpace
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

    space: PeopleSpace
    baseline: FloatArray
    terms: list[Term]
    evaluate: Callable[[int, FloatArray], FloatArray]
    link: MonotoneLink | None
    rounding: float

    @classmethod
    def read(cls, space: PeopleSpace) -> AdditiveModel:
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

    def largest(self, columns: Sequence[int]) -> tuple[float, FloatArray, FloatArray]:
        """Upper bound of what exchanging some columns can do, and a pair that comes close to it.

        With one score the bound is reached, but for gaps between the values that the other columns can add up to.
        """
        if self.link is None:
            return self._largest_softmax(columns)
        low = np.array([term.values[:, 0].min() for term in self.terms])
        high = np.array([term.values[:, 0].max() for term in self.terms])
        chosen = np.isin(np.arange(len(low)), list(columns))
        rise = float(high[chosen].sum() - low[chosen].sum()) + 2 * self.rounding
        rest_low = float(self.baseline[0] + low.sum()) - self.rounding
        rest_high = float(self.baseline[0] + high[~chosen].sum() + low[chosen].sum()) + self.rounding
        at = min(max(self.link.centre - rise / 2, rest_low), rest_high)
        proven = float(self.link.apply(np.array(at + rise)) - self.link.apply(np.array(at)))
        a = np.array([term.candidates[term.values[:, 0].argmin()] for term in self.terms])
        b = a.copy()
        b[chosen] = [term.candidates[term.values[:, 0].argmax()] for i, term in enumerate(self.terms) if chosen[i]]
        rest = self._reach(a, ~chosen, at)
        a[~chosen], b[~chosen] = rest[~chosen], rest[~chosen]
        return proven * _OUTWARDS + 2.0**-50, a, b

    def finite_problem(self, columns: Sequence[int]) -> tuple[TreeProblem, list[FloatArray]] | None:
        """The same question about finitely many people, as trees with a leaf for every value of a column.

        The closed form lets the other columns add up to anything within their range. Where they hold few values, they
        may not, and rules of the domain forbid some. None if the columns hold too many values, or the link is another.

        Returns
        -------
        problem : TreeProblem
        values : list of ndarray
            Encoded values of each column, in the order of its cells.
        """
        names, held = self.space.names, self.space.domain.columns
        if self.link is None or self.link.name not in ("logistic", "identity"):
            return None
        sizes = [_size(held[name]) for name in names]
        if sum(sizes) > _MOST_VALUES or any(sizes[i] > _MOST_EXCHANGED for i in columns):
            return None
        values = [_every_value(self.space, i) for i in range(len(names))]
        cells, trees = [], []
        rows: list[tuple[int, int]] = []
        for i, each in enumerate(values):
            n, number = len(each), isinstance(held[names[i]], NumericDomain)
            ends = each if number else np.full(n, np.nan)
            cells.append(Cells(each, ends, ends, np.eye(n, dtype=bool)[: n - 1], ordered=False))
            trees.append(_chain(self.evaluate(i, each)[:, 0], len(rows)))
            rows += [(i, row) for row in range(n - 1)]
        share = 1.0 if self.link.name == "logistic" else self.link.slope
        trees = [replace(tree, values=tree.values * share) for tree in trees]
        rounding = self.rounding * share
        problem = TreeProblem(
            cells,
            list(columns),
            trees,
            rows,
            float(self.baseline[0]) * share,
            self.link.name,
            rounding,
            rules=rules_of(self.space),
        )
        return problem, values

    def _reach(self, row: FloatArray, free: Any, target: float) -> FloatArray:
        """Change the free columns of a person so that the score comes close to a target; all are at their lowest."""
        row = row.copy()
        missing = target - float(self.scores(row[None])[0, 0])
        spans = [float(np.ptp(term.values[:, 0])) if free[i] else 0.0 for i, term in enumerate(self.terms)]
        # The widest first; columns of numbers last, since they can be adjusted.
        order = sorted(range(len(spans)), key=lambda i: (len(self._between(i)) > 0, -spans[i]))
        for i in order:
            if not free[i] or missing <= 0:
                continue
            values = self.terms[i].values[:, 0] - self.evaluate(i, row[i : i + 1])[0, 0]
            fits = np.where(values <= missing + 1e-15, values, -np.inf)
            best = int(fits.argmax())
            candidates, sizes = self.terms[i].candidates, values
            if values.max() > missing and len(between := self._between(i)):
                candidates = np.concatenate([candidates, between])
                sizes = np.concatenate(
                    [values, self.evaluate(i, between)[:, 0] - self.evaluate(i, row[i : i + 1])[0, 0]]
                )
                best = int(np.abs(sizes - missing).argmin())
            if sizes[best] > 0:
                row[i] = candidates[best]
                missing -= float(sizes[best])
        return row

    def _between(self, column: int) -> FloatArray:
        """Values between the candidates of a column of numbers, spread over its range."""
        held = self.space.domain.columns[self.space.names[column]]
        if isinstance(held, CategoricalDomain):
            return np.empty(0)
        if held.step is None:
            return np.linspace(held.low, held.high, _MANY)
        places = np.unique(np.linspace(held.first, held.last, _MANY).astype(np.int64))
        return held.at(places)

    def _largest_softmax(self, columns: Sequence[int]) -> tuple[float, FloatArray, FloatArray]:
        """``tanh(spread / 4)``: the odds of any set of classes move by the largest difference of two logits at most."""
        n_scores, best, pair = len(self.baseline), -1.0, (0, 1)
        for k in range(n_scores):
            for m in range(k):
                spread = sum(float(np.ptp(self.terms[i].values[:, k] - self.terms[i].values[:, m])) for i in columns)
                if spread > best:
                    best, pair = spread, (k, m)
        a = self.space.rows[0].copy()
        b = a.copy()
        for i in columns:
            gap = self.terms[i].values[:, pair[0]] - self.terms[i].values[:, pair[1]]
            a[i], b[i] = self.terms[i].candidates[gap.argmin()], self.terms[i].candidates[gap.argmax()]
        for i in range(len(a)):  # somebody in the domain
            if i not in columns and not np.isin(a[i], self.terms[i].candidates):
                a[i] = b[i] = self.terms[i].candidates[0]
        return float(np.tanh((best + 4 * self.rounding) / 4)) * _OUTWARDS + 2.0**-50, a, b

    def largest_excess(self, distance: Callable[[int, FloatArray, FloatArray], FloatArray]) -> float:
        """Upper bound of ``difference - D`` over all pairs of the domain, for one score.

        For every ``m >= 0``, with d the rise of the score and G its link,
        ``G(a + d) - G(a) - D <= max_d (largest(d) - m d) + sum_i max over two values of (m rise_i - D_i)``,
        since ``D >= sum_i D_i``. The smallest over m is taken; each of them is a bound.

        Parameters
        ----------
        distance : callable
            From a column and two arrays of encoded values to the least that they add to the distance.
        """
        if self.link is None:
            raise UnprovableError("the excess over a metric is bounded for two classes and for regression only")
        rises = []
        for i, term in enumerate(self.terms):
            z = term.candidates
            rises.append((term.values[None, :, 0] - term.values[:, None, 0], distance(i, z[:, None], z[None, :])))
        most = sum(float(rise.max()) for rise, _ in rises) + 2 * self.rounding
        grid = np.linspace(0.0, most, 4097)
        best = np.inf
        curve = np.array([self.link.largest(d) for d in grid])
        for m in np.concatenate([[0.0], self.link.slope * np.linspace(0.01, 1.0, 100)]):
            # Between two points of the grid the curve rises by no more than to the next of them. It is concave, with
            # this slope at 0: at the last m nothing is gained.
            gain = float((curve[1:] - m * grid[:-1]).max()) if most and m < self.link.slope else 0.0
            apart = sum(float((m * rise - away).max()) for rise, away in rises)
            best = min(best, max(gain, 0.0) + apart)
        return max(0.0, best) * _OUTWARDS + 2.0**-50


def _terms(
    space: PeopleSpace, evaluate: Callable[[int, FloatArray], FloatArray], knots: dict[int, FloatArray]
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


def _size(held: NumericDomain | CategoricalDomain) -> int:
    """How many values there are; far too many if there is no step."""
    if isinstance(held, CategoricalDomain):
        return len(held.values) + held.blank
    return _MOST_VALUES + 1 if held.step is None else held.last - held.first + 1 + held.blank


def _every_value(space: PeopleSpace, column: int) -> FloatArray:
    """All encoded values of a column."""
    held = space.domain.columns[space.names[column]]
    if isinstance(held, CategoricalDomain):
        return space.codes(column)
    values = held.at(np.arange(held.first, held.last + 1))
    return np.append(values, np.nan) if held.blank else values


def _chain(leaves: FloatArray, first: int) -> Tree:
    """A tree that asks for one cell after the other, with a leaf for each."""
    n = len(leaves) - 1
    inner = np.arange(n)
    left = np.concatenate([inner + n + 1, np.full(n + 1, -1)])
    right = np.concatenate([inner + 1, np.full(n + 1, -1)])
    test = np.concatenate([inner + first, np.full(n + 1, -1)])
    # The last inner node's right child is the leaf of the last cell, which stands where the next one would.
    values = np.concatenate([np.zeros(n), [leaves[-1]], leaves[:-1]])
    return Tree(left.astype(np.int64), right.astype(np.int64), test.astype(np.int64), values[:, None])


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


def _of_column(space: PeopleSpace, column: int, values: FloatArray) -> Any:
    """One person with other values in one column, as the model takes people."""
    rows = np.repeat(space.rows[:1], len(values), axis=0)
    rows[:, column] = values
    return space.given(rows)


def _read_scorecard(space: PeopleSpace) -> AdditiveModel:
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


def _read_linear(space: PeopleSpace) -> AdditiveModel:
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


def _read_boosting_machine(space: PeopleSpace) -> AdditiveModel:
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
