"""What a fit leaves behind: sums of shapes, a link, and the promise read off them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from likewise._threads import run_in_threads
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.enforce.additive.shapes import SumOfShapes
from likewise.enforce.base import PlainScorer
from likewise.enforce.links import LINKS, ScoreLink
from likewise.guarantees.certificate import Estimate
from likewise.guarantees.promise import Guarantee
from likewise.metrics.abstract import Metric
from likewise.metrics.people import People

_BLOCK = 4096  # people at a time


class Packed(NamedTuple):
    """All shapes in a few arrays, as compiled code takes them."""

    columns: IntArray
    is_number: BoolArray
    starts: IntArray
    knots: FloatArray
    values: FloatArray
    others: FloatArray
    bits: int


@dataclass(frozen=True, eq=False, repr=False)
class AdditiveScorer(PlainScorer):
    """Sums of shapes behind a link.

    Attributes
    ----------
    guarantee : Guarantee
    model : SumOfShapes
        For classes in units of the score (log-odds, say); for regression in units of the output.
    link : str
        A key of `LINKS`.
    budgets : ndarray of shape (n_functions, n_columns)
        Share of its scale that each column of numbers was given; 1 where p is 1.
    """

    model: SumOfShapes
    link: str
    budgets: FloatArray

    @property
    def unit(self) -> float:
        """What a score may move at distance 1."""
        low, high = self.guarantee.output_range or (0.0, 1.0)
        return LINKS[self.link].unit * (high - low)

    @property
    def n_outputs(self) -> int:
        """Classes, or 1 for regression."""
        return 1 if self.guarantee.output_range else max(2, len(self.model.intercepts))

    def points(self, people: People) -> FloatArray:
        """What each column adds, shape (n_samples, n_shapes, n_functions)."""
        out = np.empty((len(people), len(self.model.shapes), len(self.model.intercepts)))
        self._in_blocks(people, lambda block, parts: out.__setitem__(block, parts))
        return out

    def scores(self, people: People) -> FloatArray:
        """Sums of the intercepts and what the columns add, shape (n_samples, n_functions)."""
        from likewise.enforce.additive.evaluation import sums

        out = np.empty((len(people), len(self.model.intercepts)))
        self._in_blocks(people, lambda block, parts: sums(parts, self.model.intercepts, out[block]))
        return out

    def estimate(self, people: People, *, verbose: bool = False) -> Estimate:
        """Outputs; there is nothing to estimate, so the intervals have width 0."""
        from likewise.enforce.additive import evaluation

        scores = self.scores(people)
        if self.guarantee.output_range:
            mean = np.clip(scores, *self.guarantee.output_range)
        else:
            mean = np.empty((len(people), self.n_outputs))
            getattr(evaluation, self.link)(scores, mean)
        return Estimate(mean, mean, mean, np.zeros(len(people), dtype=np.int64))

    def visible(self, people: People) -> FloatArray:
        """What each column adds to each score."""
        return self.points(people).reshape(len(people), -1)

    def landmarks(self, n_columns: int) -> list[FloatArray]:
        """The knots."""
        found = super().landmarks(n_columns)
        for shape in self.model.shapes:
            if shape.knots is not None:
                found[shape.column] = shape.knots
        return found

    def distance_to_tie(self, people: People) -> FloatArray | None:
        """By the sums of points."""
        if self.guarantee.output_range:
            return None
        # Between knots, points are rounded to the grid: a column is off by less than two steps of it for each of the
        # two people (`docs/theory.md` §11).
        error = 4 * len(self.model.shapes) * 2.0**-self.model.bits
        return LINKS[self.link].distance_to_tie(self.scores(people), error)

    @cached_property
    def _packed(self) -> Packed:
        shapes, n_functions = self.model.shapes, len(self.model.intercepts)
        sizes = [shape.values.shape[1] for shape in shapes]
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
            self.model.bits,
        )

    def _in_blocks(self, people: People, work: Any) -> None:
        from likewise.enforce.additive.evaluation import points

        packed, shape = self._packed, (len(self.model.shapes), len(self.model.intercepts))

        def one(start: int) -> None:
            block = slice(start, start + _BLOCK)
            rows = people.rows[block]
            parts = np.empty((len(rows), *shape))
            points(rows, *packed, parts)
            work(block, parts)

        run_in_threads(one, range(0, len(people), _BLOCK), None)


def promise(metric: Metric, link: ScoreLink, used: float, output_range: tuple[float, float] | None = None) -> Guarantee:
    """What follows from shapes that use at most a share of 1 of what the metric allows."""
    share = "all" if used > 0.999 else f"{np.ceil(1000 * used) / 10:g}%"
    return Guarantee(
        metric,
        link.curve,
        "exact",
        f"It holds by construction, for all people, seen or not: the {link.score} is a sum of one function per column, "
        f"and these use {share} of the slope the metric allows (and of the range it allows between categories), read "
        f"off the stored numbers and rounded upwards; {link.why}.",
        output_range=output_range,
    )
