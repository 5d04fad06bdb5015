"""How much exchanging columns can change a ReLU network: linear bounds of the difference of two copies, by boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
        room = self.rooms[0]
        first = [
            (
                self.model.bias + low_parts[side].sum(axis=0) - room,
                self.model.bias + high_parts[side].sum(axis=0) + room,
            )
            for side in self.of_side
        ]
        # First layer: the difference of the copies, by the columns that are exchanged.
        d_low = low_parts[self.own[1]].sum(axis=0) - high_parts[self.own[0]].sum(axis=0) - room
        d_high = high_parts[self.own[1]].sum(axis=0) - low_parts[self.own[0]].sum(axis=0) + room

        def largest(functions: FloatArray, side: int) -> FloatArray:
            """Largest values of linear functions of the first layer, without its bias, over one copy's box."""
            values = np.maximum(self.ends[0][which] @ functions, self.ends[1][which] @ functions)
            return np.asarray(np.maximum.reduceat(values, offsets, axis=0)[self.of_side[side]].sum(axis=0))

        limits = [self._layers(first[side], lambda f, side=side: largest(f, side)) for side in (0, 1)]
        gap_low, gap_high = d_low, d_high
        open_ = np.zeros(len(d_low))
        slopes: list[tuple[FloatArray, FloatArray, FloatArray, FloatArray]] = []
        for layer in range(len(self.weights)):
            (a_low, a_high), (b_low, b_high) = limits[0][layer], limits[1][layer]
            gap_low, gap_high = np.maximum(gap_low, b_low - a_high), np.minimum(gap_high, b_high - a_low)
            gap_low = np.minimum(gap_low, gap_high)
            h_low, h_high = _relu_difference(a_low, a_high, b_low, b_high, gap_low, gap_high)
            slopes.append(_lines(a_low, a_high, b_low, b_high, gap_low, gap_high, h_low, h_high))
            if layer == 0:
                first_low, first_high = h_low, h_high
                open_ = h_high - h_low
            W = self.weights[layer]
            gap_low, gap_high = self._back(slopes, W, first_low, first_high, h_low, h_high)
            gap_low, gap_high = gap_low - self.rooms[layer + 1], gap_high + self.rooms[layer + 1]
        (a_low, a_high), (b_low, b_high) = limits[0][-1], limits[1][-1]
        room = 4 * self.rooms[-1]
        change = np.minimum(gap_high, b_high - a_low) + room
        if self.model.link == "logistic":
            value = LOGIT.rise(*(float(each[0]) for each in (change, a_low - room, a_high + room, b_high + room)))
        else:
            value = float(self.outputs.largest(change[None], (a_high + room)[None], (b_high + room)[None])[0])
        influence = np.abs(self.weights[0]) @ np.ones(self.weights[0].shape[1])
        return value, open_ * influence

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

    def _back(
        self,
        slopes: Any,
        W: FloatArray,
        first_low: FloatArray,
        first_high: FloatArray,
        h_low: FloatArray,
        h_high: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds of ``W' (differences behind the last layer)``: by intervals, and by lines back to the first layer."""
        plus, minus = np.maximum(W, 0), np.minimum(W, 0)
        upper, lower = h_high @ plus + h_low @ minus, h_low @ plus + h_high @ minus
        if len(slopes) > 1:
            for sign in (1.0, -1.0):
                function, constant = sign * W, np.zeros(W.shape[1])
                for layer in range(len(slopes) - 1, 0, -1):
                    up_k, up_c, low_k, low_c = slopes[layer]
                    pos, neg = np.maximum(function, 0), np.minimum(function, 0)
                    constant = constant + up_c @ pos + low_c @ neg
                    # The biases of both copies cancel.
                    function = self.weights[layer - 1] @ (up_k[:, None] * pos + low_k[:, None] * neg)
                best = first_high @ np.maximum(function, 0) + first_low @ np.minimum(function, 0) + constant
                if sign > 0:
                    upper = np.minimum(upper, best)
                else:
                    lower = np.maximum(lower, -best)
        return np.minimum(lower, upper), upper

    def _layers(self, first: tuple[FloatArray, FloatArray], largest: Any) -> list[tuple[FloatArray, FloatArray]]:
        """Ranges of the inputs of all units of one copy, and of its score."""
        found = [first]
        for layer in range(len(self.weights)):
            ends = []
            for sign in (1.0, -1.0):
                function, constant = sign * self.weights[layer], sign * self.biases[layer]
                for back in range(layer, -1, -1):
                    low, high = found[back]
                    on, off = low >= 0, high <= 0
                    with np.errstate(divide="ignore", invalid="ignore"):
                        steep = np.where(on, 1.0, np.where(off, 0.0, high / (high - low)))
                    shift = np.where(on | off, 0.0, -steep * low)
                    flat = np.where(on, 1.0, np.where(off, 0.0, (high > -low).astype(np.float64)))
                    pos, neg = np.maximum(function, 0), np.minimum(function, 0)
                    constant = constant + shift @ pos
                    function = steep[:, None] * pos + flat[:, None] * neg
                    if back > 0:
                        constant = constant + self.biases[back - 1] @ function
                        function = self.weights[back - 1] @ function
                constant = constant + self.model.bias @ function
                ends.append(constant + largest(function))
            low_next, high_next = -ends[1], ends[0]
            room = self.rooms[layer + 1]
            found.append((np.minimum(low_next, high_next) - room, np.maximum(low_next, high_next) + room))
        return found


def _relu_difference(
    a_low: FloatArray, a_high: FloatArray, b_low: FloatArray, b_high: FloatArray, d_low: FloatArray, d_high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Range of ``relu(a + d) - relu(a)``: it rises with d, and with a where d > 0, and falls with a where d < 0."""

    def at(a: FloatArray, d: FloatArray) -> FloatArray:
        return np.maximum(a + d, 0) - np.maximum(a, 0)

    high = at(np.where(d_high >= 0, a_high, a_low), d_high)
    low = at(np.where(d_low >= 0, a_low, a_high), d_low)
    return np.maximum(low, np.maximum(b_low, 0) - np.maximum(a_high, 0)), np.minimum(
        high, np.maximum(b_high, 0) - np.maximum(a_low, 0)
    )


def _lines(
    a_low: FloatArray,
    a_high: FloatArray,
    b_low: FloatArray,
    b_high: FloatArray,
    d_low: FloatArray,
    d_high: FloatArray,
    h_low: FloatArray,
    h_high: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Lines above and below ``relu(a + d) - relu(a)`` as a function of d: slope and constant of each.

    It lies between min(0, d) and max(0, d).
    """
    on = (a_low >= 0) & (b_low >= 0)
    off = (a_high <= 0) & (b_high <= 0)
    width = np.where(d_high > d_low, d_high - d_low, 1.0)
    up_k = np.where(d_low >= 0, 1.0, np.where(d_high <= 0, 0.0, d_high / width))
    up_c = np.where((d_low < 0) & (d_high > 0), -d_high * d_low / width, 0.0)
    low_k = np.where(d_high <= 0, 1.0, np.where(d_low >= 0, 0.0, -d_low / width))
    low_c = np.where((d_low < 0) & (d_high > 0), d_low * d_high / width, 0.0)
    # A constant line is better where the range of the unit says more than the range of d.
    flat_up = ~on & ~off & (h_high < np.maximum(d_high, 0))
    flat_low = ~on & ~off & (h_low > np.minimum(d_low, 0))
    up_k, up_c = np.where(flat_up, 0.0, up_k), np.where(flat_up, h_high, up_c)
    low_k, low_c = np.where(flat_low, 0.0, low_k), np.where(flat_low, h_low, low_c)
    one, zero = np.ones_like(d_low), np.zeros_like(d_low)
    up_k, low_k = (np.where(on, one, np.where(off, zero, part)) for part in (up_k, low_k))
    up_c, low_c = (np.where(on | off, zero, part) for part in (up_c, low_c))
    return up_k, up_c, low_k, low_c


def prove_network(model: NetworkModel, exchanged: Sequence[int], limits: Limits, found: float) -> Proof:
    """Search over boxes; `found` is a difference of the model's own answers: boxes below it are not cut."""
    searched = search_boxes(_NetworkBoxes(model, exchanged, found), limits)
    how = (
        f"{counted(searched.n_boxes, 'box', 'boxes')} of people bounded, by linear bounds of the difference of two "
        "copies of the network"
    )
    return by_boxes(model.space.claim(exchanged), searched, how)
