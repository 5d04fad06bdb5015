"""How much exchanging columns can change a linear model of products of columns: corners, and boxes of the rest.

The score is a sum of functions of few columns each, linear in every number while the other columns are held fixed. So
for given other columns its extremes over the exchanged ones are at corners: categories, and the ends of numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise._validation import counted
from likewise.exceptions import UnprovableError
from likewise.inspection.additive_scores import Curve, curve_of
from likewise.inspection.linear import IDENTITY, linear_scores_of
from likewise.kernel.proof import Pairs, Proof, Searched, by_boxes
from likewise.verification.base import CodedRule, InputSpace
from likewise.verification.domain import CategoricalDomain
from likewise.verification.outputs import Outputs, softmax_of_rows
from likewise.verification.search import Bounded, Limits, search_boxes

_ENUMERATED, _MOST_VALUES = 64, 1000  # numbers that each have a node of their own, by choice and where they must
_RANGES = 128  # of a column of more numbers
_MOST_CORNERS = 128  # of the exchanged columns
_ROUNDING = 2.0**-50  # of a sum of a few numbers, relative to their size

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
    is_line : bool
        Whether the score is one line through all numbers, so that the ends of a range have its extremes.
    """

    values: FloatArray
    n_numbers: int
    corners: list[int]
    is_line: bool = True

    def part(self, first: int, last: int) -> slice:
        """The nodes of a part of the column among which the extremes are."""
        ends = self.is_line and self.n_numbers > 0 and first < last < self.n_numbers
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
        read = space.preprocessing(products=True)
        coef, intercept, link = linear_scores_of(read.last)
        if len(read.sources) != coef.shape[1]:
            raise UnprovableError("its preprocessing gives another number of columns than expected")
        binary = len(coef) == 2
        coef, intercept = (coef[1:] - coef[:1], intercept[1:] - intercept[:1]) if binary else (coef, intercept)
        groups: dict[tuple[int, ...], list[int]] = {}
        for j, source in enumerate(read.sources):
            groups.setdefault(() if source is None else source.columns, []).append(j)
        linear = [all(s is None or s.is_linear_in(i) for s in read.sources) for i in range(len(space.names))]
        nodes = [_nodes(space, i, linear[i]) for i in range(len(space.names))]
        known = [each.values[each.corners] if each.n_numbers else each.values for each in nodes]

        def features(rows: FloatArray) -> FloatArray:
            return read.numbers(space.given(rows))

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

        def scores(rows: FloatArray) -> FloatArray:
            return features(rows) @ coef.T + intercept

        curve = curve_of(link) if binary else None
        outputs = softmax_of_rows if curve is None else curve.value
        space.confirm(lambda rows: outputs(scores(rows)), "those of its coefficients")
        if curve is not None and link is IDENTITY and space.output_range is not None:
            curve = curve.divided(space.output_range[1] - space.output_range[0])
        found = cls(space, nodes, tables, curve, (coef.shape[1] + 8) * _ROUNDING * size)
        rng = np.random.default_rng(0)
        chosen = np.column_stack([rng.integers(len(each.values), size=200) for each in nodes])
        if not np.allclose(found.scores(chosen), scores(found.people(chosen)), rtol=1e-7, atol=1e-9):
            raise UnprovableError("its scores are not a sum of functions of the columns that its products name")
        return found

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
    if not linear and held.n_values > _MOST_VALUES:
        raise UnprovableError(
            f"the score is not linear in {space.names[column]!r}, which has too many values to try all; give the "
            "column a step in the domain"
        )
    ranges = linear and held.n_values > _ENUMERATED
    values = held.spread(_RANGES + 1) if ranges else held.every()
    n_numbers = len(values)
    corners = [0, n_numbers - 1] if linear else list(range(n_numbers))
    corners += [n_numbers] * held.blank
    return Nodes(space.or_blank(column, values), n_numbers if ranges else 0, corners)


class _CornerBoxes:
    """Pairs of corners of the exchanged columns, and boxes of the others."""

    def __init__(self, model: InteractionModel, exchanged: Sequence[int]) -> None:
        self.model, self.found, self.n_boxes = model, -np.inf, 0
        self.exchanged, self.rest = list(exchanged), [i for i in range(len(model.nodes)) if i not in exchanged]
        self.outputs = Outputs("identity" if model.curve else "softmax", model.tables[()].shape[-1])
        self.corners = self._corners()
        # For each group of other columns, what it adds to all directions for each corner, and for all alike.
        self.own: dict[tuple[int, ...], FloatArray] = {}
        self.shared: dict[tuple[int, ...], FloatArray] = {}
        for group, table in model.tables.items():
            values = table @ self.outputs.directions.T
            inside = [k for k, i in enumerate(group) if i in self.exchanged]
            others = tuple(i for i in group if i not in self.exchanged)
            if not inside:
                self.shared[others] = self.shared.get(others, 0.0) + values
                continue
            values = np.moveaxis(values, inside, range(len(inside)))
            picked = values[tuple(self.corners[:, self.exchanged.index(group[k])] for k in inside)]
            self.own[others] = self.own.get(others, 0.0) + picked
        self.groups = list({**self.own, **self.shared})
        self.whole: Box = tuple((0, len(each.values) - 1) for each in model.nodes)
        self.pair = np.empty(0), np.empty(0)
        self.rules = [(rule.limit, {i: self._least(rule, i) for i in rule.terms}) for rule in model.space.rules]

    def _corners(self) -> IntArray:
        """Nodes of the exchanged columns, one row for each corner.

        Under a rule a corner may be impossible where a value between corners is not, and with several classes the worst
        pair need not be at corners: all values are taken, if they are few enough.
        """
        nodes = [self.model.nodes[i] for i in self.exchanged]
        ruled = {i for rule in self.model.space.rules for i in rule.terms}
        every = [
            range(len(each.values)) if (i in ruled or self.model.curve is None) and not each.n_numbers else each.corners
            for i, each in zip(self.exchanged, nodes, strict=True)
        ]
        for listed in (every, [each.corners for each in nodes]):
            self.inside = [len({*own}) < len(each.values) for own, each in zip(listed, nodes, strict=True)]
            if math.prod(len({*each}) for each in listed) <= _MOST_CORNERS:
                return np.array(list(product(*(sorted({*each}) for each in listed))))
        raise UnprovableError(f"the exchanged columns have more than {_MOST_CORNERS} combinations of values")

    def _least(self, rule: CodedRule, column: int) -> FloatArray:
        """The least that each node adds to a rule or, where a corner stands for the numbers between, any of them."""
        added = rule.added(column, self.model.nodes[column].values)
        least = np.where(np.isnan(added), -np.inf, added)  # a rule does not apply to blanks
        if column in self.exchanged and self.inside[self.exchanged.index(column)]:
            return np.where(np.isnan(added), -np.inf, np.nanmin(added))
        return least

    def feasible(self, pair: tuple[int, int], box: Box) -> bool:
        """Whether two people may keep the rules, as far as one rule at a time says."""
        for limit, terms in self.rules:
            for corner in pair:
                at = dict(zip(self.exchanged, self.corners[corner].tolist(), strict=True))
                least = (each[at[i]] if i in at else each[box[i][0] : box[i][1] + 1].min() for i, each in terms.items())
                if sum(least) > limit:
                    return False
        return True

    def first(self) -> list[Bounded]:
        """All pairs of corners, bounded by the change of the scores alone."""
        self.n_boxes += 1
        room = 2 * self.model.rounding
        change = self.rises(self.whole) + room * np.abs(self.outputs.directions).sum(axis=1)
        if self.model.curve is None:
            most = self.outputs.largest(change.reshape(-1, change.shape[-1])).reshape(change.shape[:2])
        else:
            most = np.asarray(self.model.curve.largest(np.maximum(0.0, change[..., 0])))
        np.fill_diagonal(most, 0.0)
        order = np.dstack(np.unravel_index(np.argsort(-most, axis=None, kind="stable"), most.shape))[0].tolist()
        self.climb(tuple(order[0]), self.whole)
        return [(float(most[i, j]), ((i, j), self.whole, False)) for i, j in order]

    def cut(self, boxes: Sequence[Bounded]) -> list[list[Bounded]]:
        return [self._cut(*box) for _, box in boxes]

    def _cut(self, pair: tuple[int, int], box: Box, bounded: bool) -> list[Bounded]:
        parts = self.halves(pair, box) if bounded else [box]
        self.n_boxes += len(parts)
        if not parts or self.n_boxes % 64 < 2:
            self.climb(pair, [box, *parts][-1])
        return [
            (self.bound(pair, part), (pair, part, True)) if self.feasible(pair, part) else (-np.inf, None)
            for part in parts
        ]

    def parts(self, box: Box, group: tuple[int, ...]) -> tuple[slice, ...]:
        """A box in the table of some columns."""
        return tuple(self.model.nodes[i].part(*box[i]) for i in group)

    def rises(self, box: Box) -> FloatArray:
        """Upper bounds of the rise in all directions from each corner to each other one, over a box of other columns.

        It is exact where each product has one other column: the rise is then a sum of functions of single columns.
        """
        n, n_directions = len(self.corners), len(self.outputs.directions)
        total = np.zeros((n, n, n_directions))
        for group, values in self.own.items():
            part = values[slice(None), *self.parts(box, group)].reshape(n, -1, n_directions)
            for k in range(n_directions):
                total[..., k] += (part[None, :, :, k] - part[:, None, :, k]).max(axis=2)
        return total

    def bound(self, pair: tuple[int, int], box: Box) -> float:
        """Upper bound of the change of the output from one corner to another over a box of other columns."""
        d, low, high, top = np.zeros((4, len(self.outputs.directions)))
        for group in self.groups:
            where = self.parts(box, group)
            shared = self.shared[group][where] if group in self.shared else np.zeros(1)
            axes = tuple(range(len(group)))
            if group in self.own:
                a, b = (self.own[group][k][where] for k in pair)
                d += (b - a).max(axis=axes)
                a, b = a + shared, b + shared
            else:
                a = b = shared
            low, high, top = low + a.min(axis=axes), high + a.max(axis=axes), top + b.max(axis=axes)
        room = self.model.rounding * np.abs(self.outputs.directions).sum(axis=1)
        d, low, high, top = d + 2 * room, low - room, high + room, top + room
        if self.model.curve is None:
            # Between corners the scores of the two people are others, but no two of them change by more. (The ends of
            # a line of scores are the furthest apart, so that those of one number are enough.)
            line = len(self.exchanged) == 1 and np.isfinite(self.model.nodes[self.exchanged[0]].values).all()
            both = () if any(self.inside) and not line else (high[None], top[None])
            return float(self.outputs.largest(d[None], *both)[0])
        return float(self.model.curve.rise(d, low, high, top)[0])

    def spread(self, pair: tuple[int, int], box: Box) -> IntArray:
        """Columns that can be cut, those first over which scores and rises vary most."""
        sizes = np.zeros(len(box))
        for group in self.groups:
            where, wide = self.parts(box, group), [i for i in group if box[i][0] < box[i][1]]
            axes = tuple(range(len(group)))
            if wide and group in self.own:
                a, b = (self.own[group][k][where] for k in pair)
                sizes[wide] += float((np.ptp(b - a, axis=axes) + np.ptp(a, axis=axes)).max())
            if wide and group in self.shared:
                sizes[wide] += float(np.ptp(self.shared[group][where], axis=axes).max())
        return np.argsort(-sizes, kind="stable")

    def halves(self, pair: tuple[int, int], box: Box) -> list[Box]:
        """A box cut in two; nothing if no column can be cut."""
        for i in self.spread(pair, box).tolist():
            parts = self.model.nodes[i].halves(*box[i]) if i in self.rest else []
            if parts:
                return [(*box[:i], part, *box[i + 1 :]) for part in parts]
        return []

    def climb(self, pair: tuple[int, int], box: Box) -> None:
        """A pair of people with these corners, from the middle of a box, by changing one other column at a time."""
        moves = [(i, k) for i in self.rest for k in range(len(self.model.nodes[i].values))]
        best, at = -np.inf, np.array([(first + last) // 2 for first, last in box])
        while True:
            tried = np.repeat(at[None], len(moves) + 1, axis=0)
            for row, (i, k) in enumerate(moves):
                tried[row, i] = k
            first, second = tried.copy(), tried.copy()
            first[:, self.exchanged], second[:, self.exchanged] = self.corners[pair[0]], self.corners[pair[1]]
            people = self.model.people(first), self.model.people(second)
            fine = self.model.space.holds(people[0]) & self.model.space.holds(people[1])
            gaps = np.where(fine, self.differences(first, second), -np.inf)
            k = int(gaps.argmax())
            if not gaps[k] > best:
                return
            best, at = float(gaps[k]), tried[k]
            if best > self.found:
                self.found, self.pair = best, (people[0][k], people[1][k])

    def differences(self, first: IntArray, second: IntArray) -> FloatArray:
        """How much the outputs of people given by nodes rise, or their total variations."""
        low, high = self.model.scores(first), self.model.scores(second)
        if self.model.curve is None:
            return np.asarray(np.abs(softmax_of_rows(high) - softmax_of_rows(low)).sum(axis=1) / 2)
        return np.asarray((self.model.curve.value(high) - self.model.curve.value(low))[:, 0])


def search_corners(model: InteractionModel, exchanged: Sequence[int], limits: Limits) -> tuple[Searched, Pairs]:
    """A search over pairs of corners, and boxes of the other columns, with the best pair it found."""
    boxes = _CornerBoxes(model, exchanged)
    return search_boxes(boxes, limits), model.space.possible([boxes.pair])


def prove_interactions(model: InteractionModel, exchanged: Sequence[int], limits: Limits) -> Proof:
    """The bound of a linear model of products."""
    searched, pairs = search_corners(model, exchanged, limits)
    how = (
        f"{counted(searched.n_boxes, 'box', 'boxes')} of people bounded for a sum of products of columns, which is "
        "linear in each number"
    )
    return by_boxes(model.space.claim(exchanged), searched, how, pairs)
