"""A scorecard as a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from likewise._html import grid, panel, words
from likewise._links import LINKS, ScoreLink
from likewise._parallel import run_in_threads
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.additive.shapes import Shape, SumOfShapes
from likewise.base import PlainScorer
from likewise.exceptions import UnprovableError
from likewise.guarantees.certificate import Estimate
from likewise.guarantees.guarantee import Guarantee
from likewise.inspection.additive_form import LOGIT, PROBIT, AdditiveForm, ColumnEffect, clip
from likewise.metrics.base import Metric
from likewise.metrics.encoders import Encoder, People

_BLOCK = 4096  # people at a time
_CURVES = {"logistic": LOGIT, "probit": PROBIT, "clip": clip(-0.5, 0.5)}  # of two classes


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
    def score_name(self) -> str:
        """Name of the sum of points."""
        return "prediction" if self.guarantee.output_range else LINKS[self.link].score

    @property
    def counts_for(self) -> int:
        """Which of two classes the score is of."""
        return 1

    @property
    def scale(self) -> dict[str, Any] | None:
        """How whole points count; None where points are those of the score itself."""
        return None

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
        from likewise.additive.kernels import sums

        out = np.empty((len(people), len(self.model.intercepts)))
        self._in_blocks(people, lambda block, parts: sums(parts, self.model.intercepts, out[block]))
        return out

    def estimate(self, people: People, *, verbose: bool = False) -> Estimate:
        """Outputs; there is nothing to estimate, so the intervals have width 0."""
        from likewise.additive import kernels as evaluation

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

    @property
    def from_points(self) -> tuple[float, float]:
        """Factor and shift from sums of points to the score that the link takes."""
        return 1.0, 0.0

    def additive_form(self, encoder: Encoder) -> AdditiveForm:
        """The functions and their link, for `minimal_metric`; two classes or regression."""
        if len(self.model.intercepts) > 1:
            raise UnprovableError(f"cards are read for two classes and regression, not for {self.n_outputs} classes")
        limits = self.guarantee.output_range
        curve = clip(*limits) if limits else _CURVES[self.link]
        factor, shift = self.from_points
        effects = {}
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
        intercept = factor * float(self.model.intercepts[0]) + shift
        named = encoder.labels is not None
        return AdditiveForm(intercept, effects, curve, tuple(encoder.names), named, limits, limits is not None)

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
        from likewise.additive.kernels import points

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


COLUMNS = ["column", "range", "points", "points at end", "allowed", "binds"]
_NEARLY = 1 - 1e-4  # a share of a limit that counts as all of it
_FLAT = 1e-6  # and one that counts as nothing
_UNSEEN = 0.05  # of a gap between knots: what rounding may move one by
_MISSING, _OTHER = "missing", "any other"


class Scorecard(pd.DataFrame):
    """A table that reads well in a notebook; parts of it are plain tables."""

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def _repr_html_(self) -> str:
        rows, before = [], object()
        categories = set(self.loc[self["range"] == _OTHER, "column"])
        for row in self.itertuples(index=False):
            name, span, start, end, allowed, binds = row
            points = _signed(start) if start == end else f"{_signed(start)} to {_signed(end)}"
            by = " by missing weight" if span == _MISSING and name not in categories else ""
            held = f"held back{by}" if binds else ""
            most = "" if np.isinf(allowed) else f"{allowed:.2f}"
            rows.append(("" if name == before else str(name), str(span), points, most, held))
            before = name
        note = (
            "Points add up to the score. Allowed is the largest change of points that the metric allows over a range, "
            "between two categories, or from a missing number to any other; where the model uses it up, the metric "
            "holds it back."
        )
        head = ["column", "range", "points", "allowed", ""]
        return panel("Scorecard", grid(head, rows, left=2), words(note, quiet=True))


def _signed(points: float) -> str:
    """Points with their sign; whole ones without decimals."""
    return f"{points:+d}" if isinstance(points, (int, np.integer)) else f"{points:+.2f}"


def card_of(scorer: AdditiveScorer, encoder: Encoder, signs: FloatArray) -> Scorecard:
    """One row per range of numbers, category and missing number."""
    rows = [row for shape in scorer.model.shapes for row in _rows(scorer, encoder, shape, signs)]
    return Scorecard(rows, columns=COLUMNS)


def level_names(encoder: Encoder, column: int) -> list[Any] | None:
    """Categories by their positions, ordered ones included, None for a missing one; None for plain numbers."""
    kind = getattr(encoder, "columns", None)
    if kind is None or isinstance(kind[column], str) or not hasattr(kind[column], "categories"):
        return None
    if not encoder.is_number[column]:
        return [*kind[column].levels, *([None] if kind[column].has_missing else [])]
    return None if kind[column].categories is None else list(kind[column].categories)


def allowed_rises(scorer: AdditiveScorer, encoder: Encoder, shape: Shape, function: int) -> FloatArray:
    """Largest rise over each gap between knots that a function may have, by its budget and by the missing weight."""
    assert shape.knots is not None
    weights = scorer.guarantee.metric.weights_of(encoder)
    scale = scorer.unit * weights.scales[shape.column] * scorer.budgets[function, shape.column]
    return np.asarray(np.minimum(scale * np.diff(shape.knots), allowed_range(scorer, encoder, shape)))


def allowed_range(scorer: AdditiveScorer, encoder: Encoder, shape: Shape) -> float:
    """Most that points of two numbers may differ: twice what is allowed from a missing one, which both are close to."""
    if shape.other is None:
        return np.inf
    return 2 * scorer.unit * float(scorer.guarantee.metric.weights_of(encoder).missing[shape.column])


def _rows(scorer: AdditiveScorer, encoder: Encoder, shape: Shape, signs: FloatArray) -> Iterator[tuple[Any, ...]]:
    weights, name = scorer.guarantee.metric.weights_of(encoder), encoder.names[shape.column]
    levels, points = level_names(encoder, shape.column), signs @ shape.values
    if shape.knots is None:
        assert levels is not None
        assert shape.other is not None
        allowed = scorer.unit * float(weights.scales[shape.column])
        full = np.ptp(points) >= _NEARLY * allowed
        near = (1 - _NEARLY) * allowed
        at_end = (points >= points.max() - near) | (points <= points.min() + near)
        for level, value, end in zip(levels, points.tolist(), at_end, strict=True):
            yield name, _MISSING if level is None else str(level), value, value, allowed, bool(full and end)
        other = float(signs @ shape.other)
        yield name, _OTHER, other, other, allowed, False
        return
    rises = allowed_rises(scorer, encoder, shape, int(np.argmax(np.abs(signs))))
    most = allowed_range(scorer, encoder, shape)
    binds = np.abs(np.diff(points)) >= _NEARLY * rises
    flat = np.abs(np.diff(points)) <= _FLAT * rises
    names = _names(shape.knots, levels)
    for first, last in _runs(np.where(binds, np.sign(np.diff(points)), np.where(flat, 0.0, np.nan))):
        yield (
            name,
            f"{names[first]} to {names[last]}",
            float(points[first]),
            float(points[last]),
            float(min(rises[first:last].sum(), most)),
            bool(binds[first]),
        )
    if shape.other is not None:
        value = float(signs @ shape.other)
        yield name, _MISSING, value, value, most / 2, bool(np.abs(points - value).max() >= _NEARLY * most / 2)


def _runs(kinds: FloatArray) -> Iterator[tuple[int, int]]:
    """First and last knot of each row: neighbouring gaps of one kind are one, those of no kind (NaN) stand alone."""
    first = 0
    for k in range(1, len(kinds) + 1):
        if k == len(kinds) or kinds[k] != kinds[k - 1]:
            yield first, k
            first = k


def _names(knots: FloatArray, levels: list[Any] | None) -> list[str]:
    """Knots as people write them, with six digits, or as many as show the gaps between them."""
    if levels is not None:
        return [str(levels[int(knot)]) for knot in knots]
    names = [f"{knot:.6g}" for knot in knots]
    off = np.abs(np.array(names, dtype=np.float64) - knots).max()
    if len(knots) < 2 or off <= _UNSEEN * np.diff(knots).min():
        return names
    return [f"{knot:.0f}" if knot == np.rint(knot) and abs(knot) < 1e15 else f"{knot:.15g}" for knot in knots]
