"""The problem whose optima are a frontier: people, limits of weights, and folds."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import softmax

from likewise._fit_validation import check_sample_weight
from likewise._guarantee_warnings import VacuousGuaranteeWarning
from likewise._subsample import some_pairs
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise._validation import NON_NEGATIVE, checking, short_repr
from likewise.additive.binning import bin_columns, knots_for
from likewise.additive.design_matrix import Layout
from likewise.additive.fit import check_monotone, effective_n_samples
from likewise.additive.objective import Objective
from likewise.additive.solver import choose_penalties
from likewise.design.joint import Costs, JointProblem, WeightBounds, Weights
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.inspection.baselines import proper_losses
from likewise.kernel.links import LINKS
from likewise.kernel.schema import People
from likewise.metrics.base import Metric
from likewise.metrics.table import BLANKS_ONLY, TableMetric
from likewise.metrics.weighted_lp import WeightedLp
from likewise.pairs.points import row_hashes
from likewise.reveal.linear import ends_of, least_missing_weight

_MAX_VARIABLES = 1000  # of one quadratic program
_KNOTS_EACH, _MIN_KNOTS = 8, 16  # for each variable that the data determine, and in a column
_UNSEEN = 1e-3  # a weight that makes less distance than this between any two people is 0


@dataclass(frozen=True, eq=False)
class DesignProblem:
    """The convex problem, with people in an order that depends on their content alone."""

    model: Any
    people: People
    y: npt.NDArray[Any]
    weights: FloatArray | None
    folds: IntArray
    joint: JointProblem

    @classmethod
    def read(
        cls, model: Any, people: People, y: Any, sample_weight: Any, bounds: WeightBounds, n_folds: int
    ) -> DesignProblem:
        """Check, sort and bin."""
        metric: Metric = model.metric
        with checking():
            people, y = model._read(people.table, y, metric)
            weights = check_sample_weight(sample_weight, len(people))
            model._check_target(y)
        if model._classify and len(model.classes_) < 2:
            raise InvalidInputError(f"y must hold at least two classes; got only {short_repr(model.classes_[0])}.")
        if model._classify and weights is not None and len(np.unique(y[weights > 0])) < 2:
            raise InvalidInputError("sample_weight must leave people of two classes; all but one have the weight 0.")
        columns = metric.bind(people.encoder)
        columns.check_people(people)
        columns.refuse_special("design_metric")
        target = model.loss_of(y, people).target
        counts = np.ones(len(people)) if weights is None else weights
        order = np.lexsort((counts, *target, *people.rows[:, columns.matters].T))
        people, y, counts = people.take(order), y[order], counts[order]
        loss, shares = model.loss_of(y, people), counts / counts.sum()
        # By all columns, protected ones too, and never by the outcome: to hold out all equal people with one outcome
        # would teach the other.
        folds = (row_hashes(people.rows.T) % np.uint64(n_folds)).astype(np.int64)
        n_effective = effective_n_samples(len(people), None if weights is None else counts)
        signs = check_monotone(model.monotone, columns)
        knots, unit = knots_for(n_effective, model.max_knots), LINKS[model.link_name].unit

        def objective_with(knots: int | IntArray) -> Objective:
            parts = bin_columns(people.rows, shares, columns, knots, model.n_jobs)
            layout = Layout(parts, columns, unit, signs)
            return Objective(layout, loss, shares, np.zeros(len(parts)), n_effective, n_jobs=model.n_jobs)

        objective = objective_with(knots)
        enough = _enough_knots(objective, knots, labels=model._classify)
        objective = objective_with(enough)
        model.set_params(max_knots=dict(zip(people.encoder.names, enough.tolist(), strict=True)))
        joint = JointProblem(objective, Costs.of(people.rows, shares, columns.is_number, columns.tables), bounds)
        return cls(model, people, y, None if weights is None else counts, folds, joint)

    def without(self, fold: int | None) -> JointProblem:
        """The problem of everybody, or of those outside a fold, with penalties chosen by them."""
        objective = self.joint.objective
        if fold is not None:
            kept = np.where(self.folds == fold, 0.0, objective.weights)
            left = float(kept.sum())
            objective = replace(objective, weights=kept / left, n_people=left * objective.n_people, n_jobs=1)
        penalties = choose_penalties(objective, labels=self.model._classify).penalties
        return replace(self.joint, objective=replace(objective, penalties=penalties))

    def usable_folds(self, n_folds: int) -> list[int]:
        """Non-empty folds whose training parts have every class."""
        shares, out = self.joint.objective.weights, []
        for fold in range(n_folds):
            kept = np.where(self.folds == fold, 0.0, shares)
            means = self.joint.objective.loss.target @ kept
            enough = kept.sum() > 0 and (not self.model._classify or ((means > 0) & (means < kept.sum())).all())
            if enough and shares[self.folds == fold].sum() > 0:
                out.append(fold)
        if not out:
            raise InvalidInputError(
                f"cv must leave every class outside of each fold; {n_folds} folds of {len(self.y):,} people do not. "
                "Give more people, or fewer folds."
            )
        return out

    def losses(self, scores: FloatArray) -> FloatArray:
        """Brier score or squared error of each person, from scores of shape (n_functions, n_samples)."""
        if not self.model._classify:
            low, high = self.model.output_range_
            return proper_losses(low + (high - low) * np.clip(0.5 + scores[0], 0, 1), self.y, None)
        if len(scores) == 1:  # log-odds of the second class
            scores = np.concatenate([np.zeros_like(scores), scores])
        return proper_losses(softmax(scores, axis=0).T, self.y, self.model.classes_)

    def summary(self, losses: FloatArray, counted: npt.NDArray[np.bool_]) -> tuple[float, float]:
        """Mean of held-out losses, and its standard error."""
        shares = np.where(counted, self.joint.objective.weights, 0.0)
        shares = shares / shares.sum()
        mean = float(shares @ losses)
        return mean, float(np.sqrt(shares**2 @ (losses - mean) ** 2))

    def metric(self, weights: Weights) -> Metric:
        """Designed weights as a metric, those that make no difference at 0.

        In a table with blanks, a column without any gets the smallest weight of a blank that does not limit it.
        """
        columns, missing = weights.columns.copy(), weights.missing.copy()
        rows, bounds = self.people.rows, self.joint.bounds
        gaps = bool(np.isnan(rows).any())
        for i, number in enumerate(self.people.encoder.is_number):
            ends = (ends_of(rows[:, i]) or (0.0, 0.0)) if number else (0.0, 1.0)
            if columns[i] * (ends[1] - ends[0]) < _UNSEEN:
                columns[i] = 0.0
            columns[i] = np.clip(columns[i], bounds.lower[i], bounds.upper[i])
            if columns[i] == 0 and missing[i] >= _UNSEEN:
                columns[i] = BLANKS_ONLY
            elif columns[i] == 0 and not np.isnan(missing[i]):
                missing[i] = 0.0
            elif number and gaps and np.isnan(missing[i]):
                missing[i] = least_missing_weight(float(columns[i]), *ends)
        return metric_of(self.people, Weights(columns, missing), self.model.metric)

    def pair_distances(self, metric: Metric, size: int) -> FloatArray:
        """Of up to so many pairs of people, weighted people as often as they count."""
        bound, rows = metric.bind(self.people.encoder), self.people.rows
        if self.weights is None:
            a, b = some_pairs(len(rows), size)
        else:
            shares = self.weights / self.weights.sum()
            a, b = np.random.default_rng(0).choice(len(rows), (2, size), p=shares)
        return bound.distances(rows[a], rows[b])

    def mean_distance(self, metric: Metric) -> float:
        """Of two people drawn at random."""
        columns = metric.bind(self.people.encoder)
        costs = Costs.of(self.people.rows, self.joint.objective.weights, columns.is_number, columns.tables)
        return costs.mean_distance(columns)

    def fit(self, metric: Metric, penalties: Mapping[Any, float]) -> Any:
        """The card within a metric."""
        card = self.model.with_metric(metric).set_params(penalty=dict(penalties))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VacuousGuaranteeWarning)  # a frontier shows loose metrics as well
            return card.fit(self.people.table, self.y, self.weights)


def _enough_knots(problem: Objective, max_knots: int, *, labels: bool) -> IntArray:
    """Knots of each column: several for each variable that the data determine, and few enough for one matrix."""
    layout, n_functions = problem.layout, problem.loss.n_functions
    found = np.full(len(layout.weights.scales), max_knots)
    for part, count in zip(layout.parts, choose_penalties(problem, labels=labels).counts.tolist(), strict=True):
        if part.knots is not None:
            found[part.column] = min(max_knots, max(_MIN_KNOTS, int(np.ceil(_KNOTS_EACH * count / n_functions))))
    sizes = np.array([part.n_slots for part in layout.parts if part.knots is None])
    room = _MAX_VARIABLES // n_functions - int(sizes.sum())
    numbers = [part.column for part in layout.parts if part.knots is not None]
    while found[numbers].sum() > room and (found[numbers] > 2).any():
        found[numbers] = np.maximum(2, (0.8 * found[numbers]).astype(int))
    return found


def widest_metric(people: People, bounds: WeightBounds, hidden: list[Any], shapes: dict[str, Any]) -> Metric:
    """A metric loose enough for any shape, with a weight for every column that may matter."""
    free = bounds.upper > 0
    if not free.any():
        raise InvalidInputError(
            "protected must leave a column that may matter: with all of them protected or fixed at 0, only a constant "
            "satisfies the metric."
        )
    ranges = np.fmax.reduce(people.rows, axis=0) - np.fmin.reduce(people.rows, axis=0)  # NaN without any number
    wide = np.where(people.encoder.is_number, 1e6 / np.where(ranges > 0, ranges, 1.0), 1.0)
    missing = np.where(np.isnan(people.rows).any(axis=0), 1.0, np.nan)
    weights = Weights(np.where(free, wide, 0.0), missing)
    if not isinstance(people.table, pd.DataFrame):
        if any(each is not None for each in shapes.values()):
            raise InvalidInputError("groups and distances must name columns of categories; an array has none.")
        return metric_of(people, weights, WeightedLp(np.ones(len(wide)), feature_names=people.encoder.labels))
    kinds = dict(zip(people.encoder.names, people.encoder.is_number, strict=True))
    numeric, categorical = ({name: 0 for name, number in kinds.items() if number == kind} for kind in (True, False))
    reasons = dict.fromkeys(hidden, "protected")
    return metric_of(people, weights, TableMetric(numeric, categorical, zero_reasons=reasons, **shapes))


def metric_of(people: People, weights: Weights, like: Metric) -> Metric:
    """Weights as a metric for people like these; all else is as in `like`."""
    encoder = people.encoder
    columns = dict(zip(encoder.names, weights.columns.tolist(), strict=True))
    blanks = zip(encoder.names, encoder.is_number, weights.missing.tolist(), strict=True)
    missing = {name: blank for name, number, blank in blanks if number and blank == blank}
    return like.reweighted(columns, missing, "not_used")


def read_bounds(
    names: Sequence[Any],
    is_number: BoolArray,
    protected: Sequence[Any],
    fixed: Mapping[Any, float] | None,
    lower: Mapping[Any, float] | None,
    upper: Mapping[Any, float] | None,
) -> WeightBounds:
    """Limits of the weight of each column; contradictions raise.

    Examples
    --------
    >>> bounds = read_bounds(["age", "race"], np.array([True, False]), ["race"], None, {"age": 0.1}, None)
    >>> bounds.lower, bounds.upper
    (array([0.1, 0. ]), array([inf,  0.]))
    """
    low = _read("lower", lower, names, np.zeros(len(names)))
    high = _read("upper", upper, names, np.where(is_number, np.inf, 1.0))
    set_to = _read("fixed", fixed, names, np.full(len(names), np.nan))
    for name, number, least, most, given in zip(names, is_number, low, high, set_to, strict=True):
        largest = np.fmax(least, given)
        if not number and largest > 1:
            raise InvalidInputError(f"A mismatch weight must be at most 1; got {largest:g} for {name!r}.")
        if least > most:
            raise InvalidInputError(
                f"lower must not exceed upper; got {least:g} and {most:g} for {name!r}. Change one of them."
            )
        if given < least or given > most:
            raise InvalidInputError(
                f"fixed must be within lower and upper; got {given:g} for {name!r}, which is limited to "
                f"{least:g} to {most:g}."
            )
        if name in protected and largest > 0:
            raise InvalidInputError(
                f"A protected column has the weight 0; {name!r} is protected and has a positive weight in fixed or "
                "lower. Leave it out of one of them."
            )
    high = np.where(is_number, high, np.minimum(high, 1.0))
    low, high = (np.where(np.isnan(set_to), bound, set_to) for bound in (low, high))
    hidden = np.array([name in protected for name in names])
    return WeightBounds(np.where(hidden, 0.0, low), np.where(hidden, 0.0, high))


def _read(kind: str, given: Mapping[Any, float] | None, names: Sequence[Any], default: FloatArray) -> FloatArray:
    if given is None:
        return default
    if not isinstance(given, (Mapping, pd.Series)):
        raise InvalidTypeError(f"{kind} must be a mapping from column to weight; got {type(given).__name__}.")
    out = default.copy()
    for name, weight in dict(given).items():
        if name not in names:
            raise InvalidInputError(f"{kind} must name columns of X, {list(names)}; it has no {short_repr(name)}.")
        NON_NEGATIVE.check(f"{kind} of {name!r}", weight)
        out[list(names).index(name)] = float(weight)
    return out
