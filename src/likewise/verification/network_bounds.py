"""How much exchanging columns can change a ReLU network: linear bounds of the difference of two copies, by boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from likewise._typing import BoolArray, FloatArray
from likewise._validation import counted
from likewise.inspection.additive_scores import LOGIT
from likewise.kernel.proof import Proof, by_boxes
from likewise.verification.network_model import NetworkModel
from likewise.verification.outputs import Outputs
from likewise.verification.search import Bounded, Limits, search_boxes
from likewise.verification.tree_problem import RuledBoxes, Variables

_ROUNDING = 2.0**-40  # of the sum of all absolute values on the way: far more than what rounding adds


class _NetworkBoxes:
    """Boxes of ranges of all columns, two for exchanged ones, with bounds of the difference of two copies."""

    def __init__(self, model: NetworkModel, exchanged: Sequence[int], found: float = -np.inf) -> None:
        self.model, self.found, self.n_boxes = model, found, 0
        self.variables = Variables.of(model.ranges, exchanged)
        self.start = self.variables.start
        self.rules = RuledBoxes(self.variables, model.ranges, model.space.rules)
        self.ends = [
            np.concatenate([part[i] for i in self.variables.column]) for part in (model.first_low, model.first_high)
        ]
        self.least, self.most = np.minimum(*self.ends), np.maximum(*self.ends)
        # The last layer as the directions that the outputs depend on; numbers as shares of their range.
        self.outputs = Outputs(model.link, model.weights[-1].shape[1])
        width = 1.0
        if not model.space.probable and model.space.output_range is not None:
            width = float(np.ptp(model.space.output_range))
        last = self.outputs.directions.T / width
        self.weights = [*model.weights[:-1], model.weights[-1] @ last]
        self.biases = [*model.biases[:-1], model.biases[-1] @ last]
        self.of_side = [np.isin(self.variables.side, (side, 2)) for side in (0, 1)]
        self.own = [self.variables.side == side for side in (0, 1)]
        largest = np.maximum.reduceat(np.maximum(np.abs(self.least), np.abs(self.most)), self.start[:-1], axis=0)
        size = np.abs(model.bias) + largest.sum(axis=0)  # of any sum computed for any input
        self.rooms = [_ROUNDING * (1 + size)]
        for W, b in zip(self.weights, self.biases, strict=True):
            size = size @ np.abs(W) + np.abs(b)
            self.rooms.append(_ROUNDING * (1 + size))

    def first(self) -> list[Bounded]:
        return [self._bounded(np.ones(int(self.start[-1]), dtype=bool))]

    def cut(self, boxes: Sequence[Bounded]) -> list[list[Bounded]]:
        return [[self._bounded(half) for half in self.halves(*box)] for _, box in boxes]

    def _bounded(self, cells: BoolArray) -> Bounded:
        self.n_boxes += 1
        if not self.rules.feasible(cells):
            return -np.inf, None
        value, unit_open = self.bound(cells)
        return value, (cells, unit_open)

    def bound(self, box: BoolArray) -> tuple[float, FloatArray]:
        """Upper bound on the difference of the outputs, and the uncertainty due to each unit of the first layer."""
        which = np.flatnonzero(box)
        variable = np.searchsorted(self.start, which, side="right") - 1
        offsets = np.searchsorted(variable, np.arange(len(self.start) - 1))
        low_parts = np.minimum.reduceat(self.least[which], offsets, axis=0)
        high_parts = np.maximum.reduceat(self.most[which], offsets, axis=0)
        room, bias = self.rooms[0], self.model.bias
        first = [
            (bias + low_parts[side].sum(axis=0) - room, bias + high_parts[side].sum(axis=0) + room)
            for side in self.of_side
        ]
        # First layer: the difference of the copies, by the columns that are exchanged.
        own, other = self.own
        gap = (
            low_parts[other].sum(axis=0) - high_parts[own].sum(axis=0) - room,
            high_parts[other].sum(axis=0) - low_parts[own].sum(axis=0) + room,
        )

        def largest(side: int, functions: FloatArray) -> FloatArray:
            """Largest values of linear functions of the first layer, without its bias, over one copy's box."""
            values = np.maximum(self.ends[0][which] @ functions, self.ends[1][which] @ functions)
            return np.asarray(np.maximum.reduceat(values, offsets, axis=0)[self.of_side[side]].sum(axis=0))

        limits = [self._layers(first[side], partial(largest, side)) for side in (0, 1)]
        lines: list[Lines] = []
        changes: list[Range] = []
        for layer, W in enumerate(self.weights):
            a, b = limits[0][layer], limits[1][layer]
            high = np.minimum(gap[1], b[1] - a[0])
            gap = np.minimum(np.maximum(gap[0], b[0] - a[1]), high), high
            changes.append(_relu_difference(a, b, gap))
            lines.append(_difference_lines(a, b, gap, changes[-1]))
            low, high = self._back(lines, W, changes[0], changes[-1])
            gap = low - self.rooms[layer + 1], high + self.rooms[layer + 1]
        (a_low, a_high), (_, b_high) = limits[0][-1], limits[1][-1]
        room = 4 * self.rooms[-1]
        change = np.minimum(gap[1], b_high - a_low) + room
        if self.model.link == "logistic":
            value = LOGIT.rise(change, a_low - room, a_high + room, b_high + room)
        else:
            value = self.outputs.largest(change[None], (a_high + room)[None], (b_high + room)[None])
        influence = np.abs(self.weights[0]) @ np.ones(self.weights[0].shape[1])
        return float(value[0]), (changes[0][1] - changes[0][0]) * influence

    def halves(self, box: BoolArray, unit_open: FloatArray) -> list[BoolArray]:
        """A box cut in the variable that leaves most open; exchanged ones come first, as they matter most."""
        start, sides = self.start, self.variables.side
        best, chosen = -1.0, -1
        for v in range(len(start) - 1):
            cells = np.flatnonzero(box[start[v] : start[v + 1]]) + start[v]
            if len(cells) < 2:
                continue
            spread = self.most[cells].max(axis=0) - self.least[cells].min(axis=0)
            score = float(spread @ (unit_open + 1e-9)) * (100.0 if sides[v] != 2 else 1.0)
            if score > best:
                best, chosen = score, v
        if chosen < 0:
            return []
        cells = np.flatnonzero(box[start[chosen] : start[chosen + 1]]) + start[chosen]
        if not self.model.ranges[int(self.variables.column[chosen])].ordered:
            middle = (self.ends[0][cells] + self.ends[1][cells]) / 2
            centred = (middle - middle.mean(axis=0)) * np.sqrt(unit_open + 1e-9)
            direction = np.linalg.svd(centred, full_matrices=False)[2][0]
            cells = cells[np.argsort(centred @ direction, kind="stable")]
        halves = box.copy(), box.copy()
        halves[0][cells[len(cells) // 2 :]] = False
        halves[1][cells[: len(cells) // 2]] = False
        return list(halves)

    def _back(self, lines: list[Lines], W: FloatArray, first: Range, last: Range) -> Range:
        """Bounds of ``W' (differences behind the last layer)``: by intervals, and by lines back to the first layer."""
        upper, lower = _largest(W, last), -_largest(-W, last)
        if len(lines) > 1:
            ends = []
            for sign in (1.0, -1.0):
                function, constant = sign * W, np.zeros(W.shape[1])
                for layer in range(len(lines) - 1, 0, -1):
                    function, added = _through(lines[layer], function)
                    constant = constant + added
                    function = self.weights[layer - 1] @ function  # the biases of both copies cancel
                ends.append(_largest(function, first) + constant)
            upper, lower = np.minimum(upper, ends[0]), np.maximum(lower, -ends[1])
        return np.minimum(lower, upper), upper

    def _layers(self, first: Range, largest: Callable[[FloatArray], FloatArray]) -> list[Range]:
        """Ranges of the inputs of all units of one copy, and of its score."""
        found, lines = [first], []
        for layer, (W, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            lines.append(_unit_lines(found[-1]))
            ends = []
            for sign in (1.0, -1.0):
                function, constant = sign * W, sign * bias
                for back in range(layer, -1, -1):
                    function, added = _through(lines[back], function)
                    constant = constant + added
                    if back > 0:
                        constant = constant + self.biases[back - 1] @ function
                        function = self.weights[back - 1] @ function
                ends.append(constant + self.model.bias @ function + largest(function))
            low, high, room = -ends[1], ends[0], self.rooms[layer + 1]
            found.append((np.minimum(low, high) - room, np.maximum(low, high) + room))
        return found


Range = tuple[FloatArray, FloatArray]
"""Lowest and highest values."""


class Lines(NamedTuple):
    """Lines above and below a function of one number: slope and constant of each."""

    above: FloatArray
    above_at_0: FloatArray
    below: FloatArray
    below_at_0: FloatArray


def _largest(functions: FloatArray, values: Range) -> FloatArray:
    """Largest values of linear functions (columns) of values within ranges."""
    return values[1] @ np.maximum(functions, 0) + values[0] @ np.minimum(functions, 0)


def _through(lines: Lines, functions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Linear functions of what units give, as larger ones of what they are given, and constants."""
    plus, minus = np.maximum(functions, 0), np.minimum(functions, 0)
    slopes = lines.above[:, None] * plus + lines.below[:, None] * minus
    return slopes, lines.above_at_0 @ plus + lines.below_at_0 @ minus


def _unit_lines(z: Range) -> Lines:
    """Lines above and below ``relu(z)``."""
    low, high = z
    on, off = low >= 0, high <= 0
    with np.errstate(divide="ignore", invalid="ignore"):
        steep = np.where(on, 1.0, np.where(off, 0.0, high / (high - low)))
    flat = np.where(on, 1.0, np.where(off, 0.0, (high > -low).astype(np.float64)))
    return Lines(steep, np.where(on | off, 0.0, -steep * low), flat, np.zeros(len(low)))


def _relu_difference(a: Range, b: Range, d: Range) -> Range:
    """Range of ``relu(a + d) - relu(a)``: it rises with d, and with a where d > 0, and falls with a where d < 0."""

    def at(a: FloatArray, d: FloatArray) -> FloatArray:
        return np.maximum(a + d, 0) - np.maximum(a, 0)

    (a_low, a_high), (d_low, d_high) = a, d
    high = at(np.where(d_high >= 0, a_high, a_low), d_high)
    low = at(np.where(d_low >= 0, a_low, a_high), d_low)
    return (
        np.maximum(low, np.maximum(b[0], 0) - np.maximum(a_high, 0)),
        np.minimum(high, np.maximum(b[1], 0) - np.maximum(a_low, 0)),
    )


def _difference_lines(a: Range, b: Range, d: Range, h: Range) -> Lines:
    """Lines above and below ``relu(a + d) - relu(a)``, which is within h, as a function of d.

    It lies between min(0, d) and max(0, d).
    """
    low, high = d
    on, off = (a[0] >= 0) & (b[0] >= 0), (a[1] <= 0) & (b[1] <= 0)
    width, crosses = np.where(high > low, high - low, 1.0), (low < 0) & (high > 0)
    above = np.where(low >= 0, 1.0, np.where(high <= 0, 0.0, high / width))
    below = np.where(high <= 0, 1.0, np.where(low >= 0, 0.0, -low / width))
    above_at_0 = np.where(crosses, -high * low / width, 0.0)
    below_at_0 = np.where(crosses, low * high / width, 0.0)
    # A constant line is better where the range of the unit says more than the range of d.
    flat_above, flat_below = h[1] < np.maximum(high, 0), h[0] > np.minimum(low, 0)
    above, above_at_0 = np.where(flat_above, 0.0, above), np.where(flat_above, h[1], above_at_0)
    below, below_at_0 = np.where(flat_below, 0.0, below), np.where(flat_below, h[0], below_at_0)
    slopes = (np.where(on, 1.0, np.where(off, 0.0, each)) for each in (above, below))
    constants = (np.where(on | off, 0.0, each) for each in (above_at_0, below_at_0))
    return Lines(*(part for both in zip(slopes, constants, strict=True) for part in both))


def prove_network(model: NetworkModel, exchanged: Sequence[int], limits: Limits, found: float) -> Proof:
    """Search over boxes; `found` is a difference of the model's own answers: boxes below it are not cut."""
    searched = search_boxes(_NetworkBoxes(model, exchanged, found), limits)
    how = (
        f"{counted(searched.n_boxes, 'box', 'boxes')} of people bounded, by linear bounds of the difference of two "
        "copies of the network"
    )
    return by_boxes(model.space.claim(exchanged), searched, how)
