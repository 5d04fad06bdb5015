"""How much exchanging columns can change a linear model of products of columns: corners, and boxes of the rest.

The score is a sum of functions of few columns each, linear in every number while the other columns are held fixed. So
for given other columns its extremes over the exchanged ones are at corners: categories, and the ends of numbers.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.special import softmax

from likewise._typing import FloatArray, IntArray
from likewise._validation import counted
from likewise.exceptions import UnprovableError
from likewise.inspection.additive_scores import Curve, curve_of
from likewise.inspection.feature_sources import Preprocessing
from likewise.inspection.linear import IDENTITY, linear_scores_of
from likewise.verification.base import InputSpace, Limits, Proof
from likewise.verification.domain import CategoricalDomain

_ENUMERATED, _MOST_VALUES = 64, 1000  # numbers that each have a node of their own, by choice and where they must
_RANGES = 128  # of a column of more numbers
_MOST_CORNERS = 128  # of the exchanged columns
_ROUNDING = 2.0**-50  # of a sum of a few numbers, relative to their size
_OUTWARDS = 1 + 2.0**-40

Box = tuple[tuple[int, int], ...]
"""First and last node of each column."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """Values of a column between which the score is linear.

    Attributes
    ----------
    values : ndarray of shape (n_nodes,)
        Encoded; a blank comes last.
    n_numbers : int
        How many of them bound ranges of numbers; 0 if they are all the values there are.
    corners : list of int
        Nodes among which the extremes are.
    """

    values: FloatArray
    n_numbers: int
    corners: list[int]

    def part(self, first: int, last: int) -> slice:
        """The nodes of a part of the column among which the extremes are."""
        ends = self.n_numbers > 0 and first < last < self.n_numbers
        return slice(first, last + 1, last - first if ends else 1)

    def filled(self, table: FloatArray, axis: int) -> FloatArray:
        """A table that has only the corners on an axis, with all nodes there: lines between the ends."""
        if not self.n_numbers:
            return table
        table = np.moveaxis(table, axis, 0)
        numbers = self.values[: self.n_numbers]
        at = ((numbers - numbers[0]) / (numbers[-1] - numbers[0])).reshape(-1, *[1] * (table.ndim - 1))
        return np.moveaxis(np.concatenate([table[:1] * (1 - at) + table[1:2] * at, table[2:]]), 0, axis)

    def halves(self, first: int, last: int) -> list[tuple[int, int]]:
        """A part of the column cut in two; nothing if it is one value, or one range between neighbouring nodes."""
        if last == self.n_numbers > 0 and first < last:
            return [(first, last - 1), (last, last)]  # a blank is no end of a range
        if last - first < (2 if self.n_numbers else 1):
            return []
        middle = (first + last) // 2
        return [(first, middle), (middle + (not self.n_numbers), last)]


@dataclass(frozen=True, eq=False)
class InteractionModel:
    """Scores that are sums of functions of few columns.

    Attributes
    ----------
    space : InputSpace
    nodes : list of Nodes
        Of each column.
    tables : dict from tuple of int to ndarray
        For some columns, ascending, what they add together at their nodes, shape (*n_nodes, n_scores).
    curve : Curve or None
        Link to the output; None for the softmax of several scores.
    rounding : float
        What rounding may add to a score.
    """

    space: InputSpace
    nodes: list[Nodes]
    tables: dict[tuple[int, ...], FloatArray]
    curve: Curve | None
    rounding: float

    @classmethod
    def read(cls, space: InputSpace) -> InteractionModel:
        """Read a linear model behind products of preprocessed columns, or raise `UnprovableError` with the reason."""
        taken = space.given(space.rows[:1])
        columns = list(taken.columns) if hasattr(taken, "columns") and not space.as_array else space.encoder.names
        where = [space.column_of[space.encoder.names.index(name)] for name in columns]
        read = Preprocessing.of(space.model, len(where), products=True)
        coef, intercept, link = linear_scores_of(read.last)
        if len(read.sources) != coef.shape[1]:
            raise UnprovableError("its preprocessing gives another number of columns than expected")
        binary = len(coef) == 2
        coef, intercept = (coef[1:] - coef[:1], intercept[1:] - intercept[:1]) if binary else (coef, intercept)
        groups: dict[tuple[int, ...], list[int]] = {}
        for j, source in enumerate(read.sources):
            groups.setdefault(() if source is None else tuple(sorted({where[i] for i in source.columns})), []).append(j)
        linear = [
            all(
                source is None or source.is_linear_in(k)
                for source in read.sources
                for k in range(len(where))
                if where[k] == i
            )
            for i in range(len(space.names))
        ]
        nodes = [_nodes(space, i, linear[i]) for i in range(len(space.names))]
        known = [each.values[each.corners] if each.n_numbers else each.values for each in nodes]

        def features(rows: FloatArray) -> FloatArray:
            return np.asarray(read(space.given(rows)), dtype=np.float64)

        tables, size = {}, float(np.abs(intercept).max())
        for group, own in groups.items():
            grid = list(product(*(known[i] for i in group)))
            rows = np.repeat(space.rows[:1], len(grid), axis=0)
            rows[:, list(group)] = grid
            made = features(rows)[:, own]
            size += float((np.abs(made) @ np.abs(coef[:, own]).T).max())
            table = (made @ coef[:, own].T).reshape(*(len(known[i]) for i in group), -1)
            for axis, i in enumerate(group):
                table = nodes[i].filled(table, axis)
            tables[group] = table
        tables[()] = tables.get((), 0.0) + intercept
        curve = curve_of(link) if binary else None
        found = cls(space, nodes, tables, curve, (coef.shape[1] + 8) * _ROUNDING * size)
        found._confirm(lambda rows: features(rows) @ coef.T + intercept, regression=link is IDENTITY)
        if curve is not None and link is IDENTITY and space.output_range is not None:
            curve = curve.divided(space.output_range[1] - space.output_range[0])
        return cls(space, nodes, tables, curve, found.rounding)

    def _confirm(self, scores: Any, *, regression: bool) -> None:
        """Raise if the model's own outputs differ from those of the scores, or these from the sum of the tables."""
        rng = np.random.default_rng(0)
        chosen = np.column_stack([rng.integers(len(each.values), size=200) for each in self.nodes])
        expected = scores(self.people(chosen))
        if not np.allclose(self.scores(chosen), expected, rtol=1e-7, atol=1e-9):
            raise UnprovableError("its scores are not a sum of functions of the columns that its products name")
        rows = self.space.rows[:: max(1, len(self.space.rows) // 500)]
        answers, made = self.space.answers(rows)[0], scores(rows)
        expected = softmax(made, axis=1) / 2 if self.curve is None else self.curve.value(made)
        if regression and self.space.output_range is not None:
            low, high = self.space.output_range
            expected = (expected - low) / (high - low)
        if answers.shape != expected.shape or not np.allclose(answers, expected, rtol=1e-7, atol=1e-9):
            raise UnprovableError(f"the outputs of {type(self.space.model).__name__} are not those of its coefficients")

    def people(self, chosen: IntArray) -> FloatArray:
        """Encoded people from nodes, shape (n, n_columns)."""
        return np.column_stack([each.values[chosen[:, i]] for i, each in enumerate(self.nodes)])

    def scores(self, chosen: IntArray) -> FloatArray:
        """Scores of people given by nodes."""
        return np.asarray(sum(table[tuple(chosen[:, i] for i in group)] for group, table in self.tables.items()))


def _nodes(space: InputSpace, column: int, linear: bool) -> Nodes:
    """All values of a column, or some between which the score is linear."""
    held = space.held[column]
    if isinstance(held, CategoricalDomain):
        codes = space.codes(column)
        return Nodes(codes, 0, list(range(len(codes))))
    many = held.step is None or held.last - held.first >= _ENUMERATED
    if not linear and (held.step is None or held.last - held.first >= _MOST_VALUES):
        raise UnprovableError(
            f"the score is not linear in {space.names[column]!r}, which has too many values to try all; give the "
            "column a step in the domain"
        )
    if not many or not linear:
        values = held.at(np.arange(held.first, held.last + 1))
    elif held.step is None:
        values = np.linspace(held.low, held.high, _RANGES + 1)
    else:
        values = held.at(np.unique(np.linspace(held.first, held.last, _RANGES + 1).astype(np.int64)))
    n_numbers = len(values)
    corners = [0, n_numbers - 1] if linear else list(range(n_numbers))
    if held.blank:
        values, corners = np.append(values, np.nan), [*corners, n_numbers]
    return Nodes(values, n_numbers if many and linear else 0, corners)


class _Search:
    """Pairs of corners of the exchanged columns, and boxes of the others."""

    def __init__(self, model: InteractionModel, exchanged: Sequence[int], weights: FloatArray) -> None:
        self.model = model
        self.corners = np.array(list(product(*(sorted({*model.nodes[i].corners}) for i in exchanged))))
        if len(self.corners) > _MOST_CORNERS:
            raise UnprovableError(f"the exchanged columns have more than {_MOST_CORNERS} combinations of values")
        self.exchanged, self.rest = list(exchanged), [i for i in range(len(model.nodes)) if i not in exchanged]
        # For each group of other columns, what it adds for each corner, and what it adds for all alike.
        self.own: dict[tuple[int, ...], FloatArray] = {}
        self.shared: dict[tuple[int, ...], FloatArray] = {}
        for group, table in model.tables.items():
            values = table @ weights
            inside = [k for k, i in enumerate(group) if i in self.exchanged]
            others = tuple(i for i in group if i not in self.exchanged)
            if not inside:
                self.shared[others] = self.shared.get(others, 0.0) + values
                continue
            values = np.moveaxis(values, inside, range(len(inside)))
            picked = values[tuple(self.corners[:, self.exchanged.index(group[k])] for k in inside)]
            self.own[others] = self.own.get(others, 0.0) + picked
        self.whole: Box = tuple((0, len(each.values) - 1) for each in model.nodes)

    def parts(self, box: Box, group: tuple[int, ...]) -> tuple[slice, ...]:
        """A box in the table of some columns."""
        return tuple(self.model.nodes[i].part(*box[i]) for i in group)

    def rises(self, box: Box) -> FloatArray:
        """Upper bounds of the rise of the score from each corner to each other one, over a box of other columns.

        It is exact where each product has one other column: the rise is then a sum of functions of single columns.
        """
        total = np.zeros((len(self.corners), len(self.corners)))
        for group, values in self.own.items():
            part = values[slice(None), *self.parts(box, group)].reshape(len(self.corners), -1)
            total += (part[None] - part[:, None]).max(axis=2)
        return total

    def bound(self, curve: Curve, pair: tuple[int, int], box: Box) -> float:
        """Upper bound of the change of the output from one corner to another over a box of other columns."""
        d, low, high, top = 0.0, 0.0, 0.0, 0.0
        for group in {**self.own, **self.shared}:
            where = self.parts(box, group)
            shared = self.shared[group][where] if group in self.shared else np.zeros(1)
            if group in self.own:
                a, b = (self.own[group][k][where] for k in pair)
                d += float((b - a).max())
                a, b = a + shared, b + shared
            else:
                a = b = shared
            low, high, top = low + float(np.min(a)), high + float(np.max(a)), top + float(np.max(b))
        room = self.model.rounding
        return curve.rise(d + 2 * room, low - room, high + room, top + room)

    def spread(self, pair: tuple[int, int], box: Box) -> IntArray:
        """Columns that can be cut, those first over which scores and rises vary most."""
        sizes = np.zeros(len(box))
        for group in {**self.own, **self.shared}:
            where, wide = self.parts(box, group), [i for i in group if box[i][0] < box[i][1]]
            if wide and group in self.own:
                a, b = (self.own[group][k][where] for k in pair)
                sizes[wide] += float(np.ptp(b - a)) + float(np.ptp(a))
            if wide and group in self.shared:
                sizes[wide] += float(np.ptp(self.shared[group][where]))
        return np.argsort(-sizes, kind="stable")

    def halves(self, pair: tuple[int, int], box: Box) -> list[Box]:
        """A box cut in two; nothing if no column can be cut."""
        for i in self.spread(pair, box).tolist():
            parts = self.model.nodes[i].halves(*box[i]) if i in self.rest else []
            if parts:
                return [(*box[:i], part, *box[i + 1 :]) for part in parts]
        return []

    def climb(self, curve: Curve, pair: tuple[int, int], start: IntArray) -> tuple[float, FloatArray, FloatArray]:
        """A pair of people with these corners, by changing one other column at a time."""
        moves = [(i, k) for i in self.rest for k in range(len(self.model.nodes[i].values))]
        best, at = -np.inf, start
        while True:
            tried = np.repeat(at[None], len(moves) + 1, axis=0)
            for row, (i, k) in enumerate(moves):
                tried[row, i] = k
            first, second = tried.copy(), tried.copy()
            first[:, self.exchanged], second[:, self.exchanged] = self.corners[pair[0]], self.corners[pair[1]]
            people = self.model.people(first), self.model.people(second)
            low, high = (curve.value(self.model.scores(each)[:, 0]) for each in (first, second))
            fine = self.model.space.holds(people[0]) & self.model.space.holds(people[1])
            gaps = np.where(fine, high - low, -np.inf)
            k = int(gaps.argmax())
            if not gaps[k] > best:
                return best, people[0][-1], people[1][-1]
            best, at = float(gaps[k]), tried[k]


def prove_interactions(model: InteractionModel, exchanged: Sequence[int], limits: Limits) -> Proof:
    """The largest rise over corners and, for one score, a search over boxes of the other columns."""
    names = " for a sum of products of columns, which is linear in each number"
    if model.space.rules:
        names += "; the rules of the domain were not used"
    if model.curve is None:
        n_scores = model.tables[()].shape[-1]
        unit = np.eye(n_scores)
        searches = [_Search(model, exchanged, unit[k] - unit[m]) for k in range(n_scores) for m in range(k)]
        most = max(float(each.rises(each.whole).max()) for each in searches)
        return Proof(float(np.tanh((most + 4 * model.rounding) / 4)) * _OUTWARDS + 2.0**-50, "closed form" + names, [])
    proven, n_boxes, pairs, stopped = _bounded(_Search(model, exchanged, np.ones(1)), model.curve, limits)
    how = f"{counted(n_boxes, 'box', 'boxes')} of people bounded" + names
    return Proof(proven * _OUTWARDS + 2.0**-50, how, pairs, n_boxes, stopped=stopped)


def _bounded(
    search: _Search, curve: Curve, limits: Limits
) -> tuple[float, int, list[tuple[FloatArray, FloatArray]], bool]:
    """Best-first search: upper bound, boxes, the best pair of people, and whether the limits ended it."""
    begun, n_boxes = time.process_time(), 0
    room = 2 * search.model.rounding
    rises = np.asarray(curve.largest(np.maximum(0.0, search.rises(search.whole) + room)))
    np.fill_diagonal(rises, 0.0)
    start = np.array([(first + last) // 2 for first, last in search.whole])
    order = np.dstack(np.unravel_index(np.argsort(-rises, axis=None, kind="stable"), rises.shape))[0]
    heap: list[tuple[float, int, tuple[int, int], Box]] = [
        (-float(rises[i, j]), n, (i, j), search.whole) for n, (i, j) in enumerate(order.tolist())
    ]
    best, a, b = search.climb(curve, heap[0][2], start)
    done, count, stopped = 0.0, len(heap), False
    while heap:
        top = -heap[0][0]
        limits.tell(best, top)
        if top <= max(best, done) + limits.tolerance / 2:
            break
        stopped = limits.max_boxes is not None and n_boxes >= limits.max_boxes
        stopped |= limits.max_seconds is not None and time.process_time() - begun > limits.max_seconds
        if stopped:
            break
        _, number, pair, box = heapq.heappop(heap)
        parts = [box] if number < len(order) else search.halves(pair, box)  # the first bound is of the rise alone
        if not parts:
            done = max(done, top)
            continue
        for part in parts:
            n_boxes += 1
            value = min(top, search.bound(curve, pair, part))
            heapq.heappush(heap, (-value, count, pair, part))
            count += 1
        if n_boxes % 64 < 2:
            middle = np.array([(first + last) // 2 for first, last in parts[-1]])
            better = search.climb(curve, pair, middle)
            best, a, b = max((best, a, b), better, key=lambda each: each[0])
    top = -heap[0][0] if heap else 0.0
    return max(top, done, 0.0), n_boxes, [(a, b)], stopped
