"""Fitting: from people and targets to a scorer with its guarantee."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from likewise._progress import progress_bar
from likewise._typing import FloatArray, IntArray
from likewise._validation import short_repr
from likewise.additive.binning import Part, bin_columns, knots_for
from likewise.additive.design_matrix import Layout, constant, read_shapes
from likewise.additive.objective import Loss, Objective
from likewise.additive.scorer import AdditiveScorer
from likewise.additive.shapes import constrain
from likewise.additive.solver import choose_penalties, solve_in_blocks
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.kernel.evidence import Shape
from likewise.kernel.links import LINKS
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import People

Penalty = float | Mapping[Any, float]
"""One for all columns, or one for each by its name."""

_WHOLE = 1e-6  # multiples of a weight, up to rounding
_LABEL_LINKS = ("logistic", "softmax", "probit")  # their losses are log-likelihoods of labels


@dataclass(frozen=True)
class FitOptions:
    """Parameters of the estimator that the fit needs."""

    max_knots: int | Mapping[Any, int]
    penalty: float | Mapping[Any, float] | None
    labels: bool
    n_jobs: int | None
    verbose: bool

    @classmethod
    def read(cls, model: Any) -> FitOptions:
        """Read the parameters of an estimator, which its rules have checked."""
        penalty = None if isinstance(model.penalty, str) else model.penalty
        labels = model.teacher is None and model.link_name in _LABEL_LINKS
        return cls(model.max_knots, penalty, labels, model.n_jobs, bool(model.verbose))

    def knots(self, n_people: float, names: Sequence[Any]) -> IntArray:
        """Knots of each column, at most."""
        given = self.max_knots
        if not isinstance(given, Mapping):
            return np.full(len(names), knots_for(n_people, int(given)))
        _check_columns("max_knots", given, names)
        most = max(given.values(), default=2)
        return np.array([knots_for(n_people, int(given.get(name, most))) for name in names])


def fit_scorer(
    people: People,
    loss: Loss,
    weights: FloatArray | None,
    metric: BoundMetric,
    monotone: Any,
    options: FitOptions,
    *,
    link: str,
    output_range: tuple[float, float] | None = None,
) -> tuple[AdditiveScorer, Penalty]:
    """Return the fitted scorer and the penalties that were used."""
    plan = Plan.of(metric, monotone, link)
    return plan.fit(plan.objective(people, loss, weights, options), options, output_range)


def effective_n_samples(n_rows: int, weights: FloatArray | None) -> float:
    """How many people weights stand for, the same if all of them are multiplied by a number.

    Multiples of the smallest are copies of people; otherwise it is Kish's effective sample size.
    """
    if weights is None:
        return float(n_rows)
    copies = weights / weights[weights > 0].min()
    if np.abs(copies - np.rint(copies)).max() < _WHOLE:
        return float(np.rint(copies).sum())
    shares = weights / weights.max()
    return float(shares.sum() ** 2 / (shares**2).sum())


@dataclass(frozen=True, eq=False)
class Plan:
    """Metric, signs and link of a fit, before any data."""

    metric: BoundMetric
    signs: dict[int, int]
    link: str

    @classmethod
    def of(cls, metric: BoundMetric, monotone: Any, link: str) -> Plan:
        """Check that there is something to fit."""
        if metric.schema.mixes_features:
            raise InvalidInputError(
                "metric must weigh single columns for an additive model, which is a sum over columns; "
                f"{metric.description!r} weighs directions. Use a projected model, a network or smoothing."
            )
        refuse_other_powers(metric)
        if not metric.matters.any():
            raise InvalidInputError(
                "metric must have a positive weight: only a constant model satisfies weights of 0. Give at least one "
                "column a positive weight."
            )
        return cls(metric, check_monotone(monotone, metric), link)

    def objective(self, people: People, loss: Loss, weights: FloatArray | None, options: FitOptions) -> Objective:
        """The objective, without penalties."""
        n, n_effective = len(people), effective_n_samples(len(people), weights)
        shares = np.full(n, 1 / n) if weights is None else weights / weights.sum()
        knots = options.knots(n_effective, self.metric.schema.names)
        parts = bin_columns(people.rows, shares, self.metric, knots, options.n_jobs)
        return Objective(self.layout(parts), loss, shares, np.zeros(len(parts)), n_effective, n_jobs=options.n_jobs)

    def layout(self, parts: list[Part]) -> Layout:
        """The variables."""
        return Layout(parts, self.metric, LINKS[self.link].unit, self.signs)

    def fit(
        self, problem: Objective, options: FitOptions, output_range: tuple[float, float] | None = None
    ) -> tuple[AdditiveScorer, Penalty]:
        """Solve, bring the shapes within the metric, and return the scorer and the penalties that were used."""
        unit = problem.layout.unit
        penalty, penalties = self._penalties(problem, options)
        problem = replace(problem, penalties=penalties)
        with progress_bar("Fitting", None, show=options.verbose) as advance:
            start = constant(problem.layout, problem.best_constants())
            x = solve_in_blocks(problem, start, advance)
        intercepts, shapes = read_shapes(problem.layout, x)
        if output_range is not None:  # from shares of the range to units of the output
            low, high = output_range
            width = high - low
            intercepts, unit = low + width * (0.5 + intercepts), unit * width
            shapes = [_times(shape, width) for shape in shapes]
        model = constrain(intercepts, shapes, self.metric, unit)
        return AdditiveScorer(model, self.link, output_range), penalty

    def with_penalties(self, problem: Objective, penalty: Penalty) -> Objective:
        """The problem with given penalties, by column."""
        return replace(problem, penalties=self._given_penalties(problem, penalty))

    def _penalties(self, problem: Objective, options: FitOptions) -> tuple[Penalty, FloatArray]:
        """Penalties as they are reported, and of each part."""
        given, parts, names = options.penalty, problem.layout.parts, self.metric.schema.names
        if given is None:
            found = choose_penalties(problem, labels=options.labels).penalties
            return {names[part.column]: float(found[j]) for j, part in enumerate(parts) if part.column >= 0}, found
        return given, self._given_penalties(problem, given)

    def _given_penalties(self, problem: Objective, given: Penalty) -> FloatArray:
        parts, names = problem.layout.parts, self.metric.schema.names
        if not isinstance(given, Mapping):
            return np.full(len(parts), float(given))
        _check_columns("penalty", given, names)
        most = max(given.values(), default=1.0)
        return np.array([float(given.get(names[part.column], most)) for part in parts])


def _check_columns(parameter: str, given: Mapping[Any, Any], names: Sequence[Any]) -> None:
    unknown = [name for name in given if name not in names]
    if unknown:
        raise InvalidInputError(f"{parameter} must name columns of X, {names}; got {short_repr(unknown)}.")


def refuse_other_powers(metric: BoundMetric) -> None:
    """Raise for p other than 1: columns would have to share one allowance of slope."""
    if metric.has_parts and metric.p != 1:
        raise InvalidInputError(
            f"metric must have p = 1 for an additive model, so that its columns move the score one by one; it has "
            f"p = {metric.p:g}. WeightedLp keeps every p for networks, projected and smoothed models."
        )


def check_monotone(monotone: Any, metric: BoundMetric) -> dict[int, int]:
    """Signs by position of the column."""
    if monotone is None:
        return {}
    if not isinstance(monotone, Mapping):
        raise InvalidTypeError(f"monotone must be a mapping from column to -1 or +1; got {type(monotone).__name__}.")
    out, names = {}, metric.schema.names
    for name, sign in monotone.items():
        if name not in names:
            raise InvalidInputError(f"monotone must name columns of X, {names}; it has no {name!r}.")
        i = names.index(name)
        if not metric.is_number[i]:
            raise InvalidInputError(f"monotone must name columns of numbers; the categories of {name!r} have no order.")
        if not isinstance(sign, Integral) or sign not in (-1, 1):
            raise InvalidInputError(
                f"monotone must be -1 (falling) or +1 (rising) for {name!r}; got {short_repr(sign)}."
            )
        out[i] = int(sign)
    return out


def _times(shape: Shape, factor: float) -> Shape:
    return shape.with_values(shape.values * factor, shape.states * factor)
