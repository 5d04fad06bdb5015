"""The fitted model: a sum of shapes behind a link, in the score's own units or in whole points."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from likewise._engine import kernel
from likewise._parallel import run_in_threads
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.base import PlainScorer
from likewise.exceptions import UnprovableError
from likewise.inspection.additive_form import AdditiveForm, ColumnEffect
from likewise.inspection.additive_scores import LOGIT, PROBIT, AdditiveScores, clip
from likewise.kernel import rules
from likewise.kernel.certificate import Estimate
from likewise.kernel.columns import CategoricalColumn, NumericColumn
from likewise.kernel.evidence import SumOfShapes
from likewise.kernel.guarantee import Guarantee
from likewise.kernel.links import LINKS
from likewise.kernel.schema import Encoder, People

_BLOCK = 4096  # people at a time
_CURVES = {"logistic": LOGIT, "probit": PROBIT, "clip": clip(-0.5, 0.5, shift=0.5)}  # of two classes
_POINT_CELLS = 12  # work of a column of one person, in values
_POINTS_ERROR = 1e-12  # of log-odds, from points


class Packed(NamedTuple):
    """All shapes in a few arrays, as compiled code takes them."""

    columns: IntArray
    is_number: BoolArray
    starts: IntArray
    knots: FloatArray
    values: FloatArray
    others: FloatArray
    codes: FloatArray
    code_starts: IntArray
    code_values: FloatArray
    bits: int


@dataclass(frozen=True, eq=False, repr=False)
class AdditiveScorer(PlainScorer):
    """Sums of shapes behind a link.

    Attributes
    ----------
    model : SumOfShapes
        For classes in units of the score (log-odds, say); for regression in units of the output.
    link : str
        A key of `LINKS`.
    output_range : tuple of float, or None for classes
    """

    model: SumOfShapes
    link: str
    output_range: tuple[float, float] | None

    def prove(self) -> Guarantee:
        """The shapes use no more than the metric allows."""
        return rules.shapes(self.model, self.link, self.output_range)

    @property
    def unit(self) -> float:
        """Largest change of a score at distance 1."""
        low, high = self.output_range or (0.0, 1.0)
        return LINKS[self.link].unit * (high - low)

    @property
    def score_name(self) -> str:
        """Name of the sum of points."""
        return "prediction" if self.output_range else LINKS[self.link].score

    @property
    def scored_class(self) -> int:
        """Which of two classes the score counts towards."""
        return 1

    @property
    def scale(self) -> dict[str, Any] | None:
        """How whole points count; None where points are those of the score itself."""
        return None

    @property
    def n_outputs(self) -> int:
        """Classes, or 1 for regression."""
        return 1 if self.output_range else max(2, len(self.model.intercepts))

    def points(self, people: People) -> FloatArray:
        """What each column adds, shape (n_samples, n_shapes, n_functions)."""
        out = np.empty((len(people), len(self.model.shapes), len(self.model.intercepts)))
        self._in_blocks(people, lambda block, parts: out.__setitem__(block, parts))
        return out

    def scores(self, people: People) -> FloatArray:
        """Sums of the intercepts and what the columns add, shape (n_samples, n_functions)."""
        intercepts = self.model.intercepts
        out = np.empty((len(people), len(intercepts)))
        self._in_blocks(people, lambda block, parts: np.add(intercepts, parts.sum(axis=1), out=out[block]))
        return out

    def estimate(self, people: People, *, verbose: bool = False) -> Estimate:
        """Outputs; there is nothing to estimate, so the intervals have width 0."""
        scores = self.scores(people)
        return Estimate.certain(
            np.clip(scores, *self.output_range) if self.output_range else LINKS[self.link].outputs(scores)
        )

    def visible(self, people: People) -> FloatArray:
        """What each column adds to each score."""
        return self.points(people).reshape(len(people), -1)

    def breakpoints(self, n_columns: int) -> list[FloatArray]:
        """The knots."""
        found = super().breakpoints(n_columns)
        for shape in self.model.shapes:
            if shape.knots is not None:
                found[shape.column] = self._breaks(shape.column, shape.knots)
        return found

    def _breaks(self, column: int, knots: FloatArray) -> FloatArray:
        """Knots, and special codes, at which a shape jumps."""
        return np.union1d(knots, self.model.metric.codes(column))

    def distance_to_tie(self, people: People) -> FloatArray | None:
        """By the sums of points."""
        if self.output_range:
            return None
        # Between knots, points are rounded to the grid: a column is off by less than two steps of it for each of the
        # two people (`docs/theory.md` §11).
        error = 4 * len(self.model.shapes) * 2.0**-self.model.bits
        return LINKS[self.link].distance_to_tie(self.scores(people), error)

    @property
    def from_points(self) -> tuple[float, float]:
        """Factor and shift from sums of points to the score that the link takes."""
        return 1.0, 0.0

    def additive_form(self, encoder: Encoder) -> AdditiveForm:
        """The functions and their link, for `minimal_metric`; two classes or regression."""
        scores, limits, effects = self.additive_scores(encoder), self.output_range, {}
        if scores.curve is None:
            raise UnprovableError(f"cards are read for two classes and regression, not for {self.n_outputs} classes")
        if self.model.metric.special:
            raise UnprovableError("cards are not read where numbers have special codes")
        factor, _ = self.from_points
        for shape in self.model.shapes:
            values, levels = factor * shape.values[0], level_names(encoder, shape.column)
            other = None if shape.other is None else factor * float(shape.other[0])
            if shape.knots is None:
                effect = ColumnEffect(values=factor * shape.all_values[0], levels=tuple(levels or ()))
            elif levels is not None:  # ordered categories
                grid = np.arange(float(len(levels)))
                effect = ColumnEffect(grid=grid, values=np.interp(grid, shape.knots, values), blank=other)
            else:
                effect = ColumnEffect.of_knots(shape.knots, values, other)
            effects[encoder.names[shape.column]] = effect
        baseline = float(scores.baseline[0])
        order = {
            each.name: each.categories
            for each in encoder.columns
            if isinstance(each, NumericColumn) and each.categories
        }
        return AdditiveForm(
            baseline, effects, scores.curve, scores.names, scores.named, limits, limits is not None, order
        )

    def additive_scores(self, encoder: Encoder) -> AdditiveScores:
        """What each column adds, read from its points."""
        factor, shift = self.from_points
        limits, shapes = self.output_range, self.model.shapes

        def part_of(j: int) -> Callable[[Any], FloatArray]:
            return lambda rows: factor * self.points(People.read(rows, encoder))[:, j]

        # Points between knots are rounded to the grid, by less than two of its steps.
        error = 4 * (len(shapes) + 1) * 2.0**-self.model.bits * abs(factor)
        return AdditiveScores(
            tuple(encoder.names),
            encoder.labels is not None,
            factor * self.model.intercepts + shift,
            {shape.column: part_of(j) for j, shape in enumerate(shapes)},
            {each.column: self._breaks(each.column, each.knots) for each in shapes if each.knots is not None},
            clip(*limits) if limits else _CURVES.get(self.link),
            limits is not None,
            error + (_POINTS_ERROR * (1 + len(shapes)) if self.scale else 0.0),
        )

    @cached_property
    def _packed(self) -> Packed:
        shapes, n_functions = self.model.shapes, len(self.model.intercepts)
        sizes = [shape.values.shape[1] for shape in shapes]
        codes = [self.model.metric.codes(shape.column) for shape in shapes]
        return Packed(
            np.array([shape.column for shape in shapes], dtype=np.int64),
            np.array([shape.knots is not None for shape in shapes], dtype=bool),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.concatenate(
                [
                    np.empty(0),
                    *(np.zeros(n) if s.knots is None else s.knots for s, n in zip(shapes, sizes, strict=True)),
                ]
            ),
            np.concatenate([np.empty((n_functions, 0)), *(shape.values for shape in shapes)], axis=1),
            np.array([np.full(n_functions, np.nan) if s.other is None else s.other for s in shapes]).reshape(
                -1, n_functions
            ),
            np.concatenate([np.empty(0), *codes]),
            np.concatenate([[0], np.cumsum([len(each) for each in codes])]).astype(np.int64),
            np.concatenate([np.empty((n_functions, 0)), *(s.special for s in shapes if s.special is not None)], axis=1),
            self.model.bits,
        )

    def _in_blocks(self, people: People, work: Any) -> None:
        packed, shape = self._packed, (len(self.model.shapes), len(self.model.intercepts))
        points = kernel("additive", "points", _POINT_CELLS * len(people) * shape[0] * shape[1])

        def one(start: int) -> None:
            block = slice(start, start + _BLOCK)
            rows = people.rows[block]
            parts = np.empty((len(rows), *shape))
            points(rows, *packed, parts)
            work(block, parts)

        run_in_threads(one, range(0, len(people), _BLOCK), None)


@dataclass(frozen=True, eq=False, repr=False)
class PointsScorer(AdditiveScorer):
    """Sums of whole points, on a scale of log-odds.

    Attributes
    ----------
    model, link, output_range
        As for `AdditiveScorer`; `model` is in points, whole ones at knots and for categories.
    points_to_double : float
        Points that double the odds.
    base_score, base_odds : float
        A person with `base_score` points has the odds `base_odds`.
    position : int
        Class whose odds rise with points, 0 or 1.
    """

    points_to_double: float
    base_score: float
    base_odds: float
    position: int

    def prove(self) -> Guarantee:
        """The points use no more than the metric allows, where so many of them double the odds."""
        return rules.shapes(self.model, self.link, self.output_range, self.points_to_double)

    @property
    def unit(self) -> float:
        """Largest change of points at distance 1: the points of 4 in log-odds."""
        return 4 * self.points_to_double / math.log(2)

    @property
    def score_name(self) -> str:
        """Points."""
        return "points"

    @property
    def scale(self) -> dict[str, Any] | None:
        """How points count."""
        return {
            "points_to_double": self.points_to_double,
            "base_score": self.base_score,
            "base_odds": self.base_odds,
        }

    @property
    def scored_class(self) -> int:
        """Class that points count for."""
        return self.position

    @property
    def from_points(self) -> tuple[float, float]:
        """To the log-odds of the last class."""
        factor = math.log(2) / self.points_to_double * (1 if self.position else -1)
        return factor, math.copysign(1.0, factor) * math.log(self.base_odds) - factor * self.base_score

    def log_odds(self, people: People) -> FloatArray:
        """Log-odds of the last class, shape (n_samples, 1)."""
        points = self.scores(people) - self.base_score
        odds = math.log(self.base_odds) + points * (math.log(2) / self.points_to_double)
        return np.asarray(odds if self.position else -odds)

    def estimate(self, people: People, *, verbose: bool = False) -> Estimate:
        """Probabilities; there is nothing to estimate, so the intervals have width 0."""
        return Estimate.certain(LINKS[self.link].outputs(self.log_odds(people)))

    def distance_to_tie(self, people: People) -> FloatArray | None:
        """By the log-odds."""
        return LINKS[self.link].distance_to_tie(self.log_odds(people), _POINTS_ERROR * (1 + len(self.model.shapes)))


def level_names(encoder: Encoder, column: int) -> list[Any] | None:
    """Categories by their positions, ordered ones included, None for a missing one; None for plain numbers."""
    kind = encoder.columns[column]
    if isinstance(kind, CategoricalColumn):
        return [*kind.levels, *([None] if kind.has_missing else [])]
    return None if kind.categories is None else list(kind.categories)
