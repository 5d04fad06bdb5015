"""Fitting: from people and targets to a scorer with its guarantee."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from likewise._fit_validation import TrainingData
from likewise._progress import progress_bar
from likewise._typing import FloatArray, IntArray
from likewise._validation import short_repr
from likewise.additive.binning import Part, bin_columns, knots_for
from likewise.additive.design_matrix import Layout, constant, read_shapes
from likewise.additive.objective import Objective
from likewise.additive.scorer import AdditiveScorer
from likewise.additive.shapes import constrain
from likewise.additive.solver import choose_penalties, solve_in_blocks
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.kernel.links import LINKS
from likewise.kernel.metric import BoundMetric

Penalty = float | Mapping[Any, float]
"""One for all columns, or one for each by its name."""

_WHOLE = 1e-6  # multiples of a weight, up to rounding
_LABEL_LINKS = ("logistic", "softmax", "probit")  # their losses are log-likelihoods of labels


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
    """A fit before any data.

    Attributes
    ----------
    model : AdditiveClassifier or AdditiveRegressor
        Its parameters, which its rules have checked, its link, and its loss.
    metric : BoundMetric
    signs : mapping from column to -1 or +1
    """

    model: Any
    metric: BoundMetric
    signs: dict[int, int]

    @classmethod
    def of(cls, model: Any, metric: BoundMetric) -> Plan:
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
        return cls(model, metric, check_monotone(model.monotone, metric))

    def objective(self, data: TrainingData) -> Objective:
        """The objective, without penalties."""
        n_jobs, loss = self.model.n_jobs, self.model.loss_of(data.y, data.people)
        n_effective, shares = effective_n_samples(len(data), data.weights), data.counts / data.counts.sum()
        parts = bin_columns(data.people.rows, shares, self.metric, self.knots(n_effective), n_jobs)
        return Objective(self.layout(parts), loss, shares, np.zeros(len(parts)), n_effective, n_jobs=n_jobs)

    def knots(self, n_people: float) -> IntArray:
        """Knots of each column, at most."""
        given, names = self.model.max_knots, self.metric.schema.names
        if not isinstance(given, Mapping):
            return np.full(len(names), knots_for(n_people, int(given)))
        _check_columns("max_knots", given, names)
        most = max(given.values(), default=2)
        return np.array([knots_for(n_people, int(given.get(name, most))) for name in names])

    def layout(self, parts: list[Part]) -> Layout:
        """The variables."""
        return Layout(parts, self.metric, LINKS[self.model.link_name].unit, self.signs)

    def fit(self, problem: Objective) -> tuple[AdditiveScorer, Penalty]:
        """Solve, bring the shapes within the metric, and return the scorer and the penalties that were used."""
        unit, output_range = problem.layout.unit, getattr(self.model, "output_range_", None)
        penalty, penalties = self._penalties(problem)
        problem = replace(problem, penalties=penalties)
        with progress_bar("Fitting", None, show=bool(self.model.verbose)) as advance:
            start = constant(problem.layout, problem.best_constants())
            x = solve_in_blocks(problem, start, advance)
        intercepts, shapes = read_shapes(problem.layout, x)
        if output_range is not None:  # from shares of the range to units of the output
            low, high = output_range
            width = high - low
            intercepts, unit = low + width * (0.5 + intercepts), unit * width
            shapes = [shape.with_values(shape.values * width, shape.states * width) for shape in shapes]
        model = constrain(intercepts, shapes, self.metric, unit)
        return AdditiveScorer(model, self.model.link_name, output_range), penalty

    def with_penalties(self, problem: Objective, penalty: Penalty) -> Objective:
        """The problem with given penalties, by column."""
        return replace(problem, penalties=self._given_penalties(problem, penalty))

    def _penalties(self, problem: Objective) -> tuple[Penalty, FloatArray]:
        """Penalties as they are reported, and of each part."""
        given, parts, names = self.model.penalty, problem.layout.parts, self.metric.schema.names
        if isinstance(given, str):
            labels = self.model.teacher is None and self.model.link_name in _LABEL_LINKS
            found = choose_penalties(problem, labels=labels).penalties
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
