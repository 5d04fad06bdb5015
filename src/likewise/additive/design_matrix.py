"""The variables of a fit: rises between knots and levels of categories, with their limits and roughness penalty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import block_diag, csr_array

from likewise._frozen import Frozen
from likewise._typing import FloatArray, IntArray
from likewise.additive.binning import Part
from likewise.additive.qp import Limits
from likewise.kernel.evidence import Shape
from likewise.kernel.metric import BoundMetric

_SMALLEST = 1e-12  # a rise with a smaller limit is left out
_NEAREST = 1e-6  # share of the weight between categories at distance 0: the limits have an interior
_SHIFT = 1e-3  # penalty of a common shift of levels, relative to that of their differences
_LARGEST = 16.0  # distances: no gap needs more, as outputs that far out are the same to the last bit


@dataclass(frozen=True, eq=False)
class Layout(Frozen):
    """Variables of one additive function: of each part its rises and levels.

    A column of numbers has one variable for each gap between knots, the rise of its shape over the gap; the shape is 0
    at the first knot, and the intercept takes up the rest. A blank, a special code, and each category has a level.

    Attributes
    ----------
    parts : list of Part
    weights : BoundMetric
        What the metric allows: a slope of `unit` times the scale, a range of `unit` times the mismatch weight, and
        differences of `unit` times the distance between categories that have a table.
    unit : float
        What the score may move at distance 1.
    signs : mapping from column to -1 or +1
        Columns whose shape may only fall or rise.
    """

    parts: list[Part]
    weights: BoundMetric
    unit: float
    signs: Mapping[int, int]

    @cached_property
    def allowed(self) -> list[FloatArray]:
        """Largest rise over each gap of each part of numbers."""
        out = []
        for part in self.parts:
            scale = 0.0 if part.knots is None else self.weights.scales[part.column]
            if (self._costs(part) == 0).any():
                scale = 0.0  # at distance 0 from a missing number: the column must be constant
            with np.errstate(over="ignore"):
                gaps = np.diff(part.knots) if part.knots is not None else np.empty(0)
                out.append(np.minimum(self.unit * scale * gaps, _LARGEST * self.unit))
        return out

    @cached_property
    def starts(self) -> IntArray:
        """First variable of each part, and the end of the last."""
        sizes = [
            part.n_slots if part.knots is None else int((rises > _SMALLEST).sum()) + len(self._levels(part))
            for part, rises in zip(self.parts, self.allowed, strict=True)
        ]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @cached_property
    def slot_starts(self) -> IntArray:
        """First slot of each part, and the end of the last."""
        return np.concatenate([[0], np.cumsum([part.n_slots for part in self.parts])]).astype(np.int64)

    @property
    def n_variables(self) -> int:
        """Variables of one function."""
        return int(self.starts[-1])

    @cached_property
    def to_slots(self) -> csr_array:
        """Matrix from variables to values at slots: running sums of rises, and levels."""
        blocks = []
        for part, rises in zip(self.parts, self.allowed, strict=True):
            if part.knots is None:
                blocks.append(np.eye(part.n_slots))
                continue
            free = np.flatnonzero(rises > _SMALLEST)
            levels = self._levels(part)
            block = np.zeros((part.n_slots, len(free) + len(levels)))
            for place, k in enumerate(free):
                block[k + 1 : part.n_knots, place] = 1.0
            block[part.n_knots + levels, len(free) + np.arange(len(levels))] = 1.0
            blocks.append(block)
        return csr_array(block_diag(blocks, format="csr"))

    def to_variables(self, sums: FloatArray) -> FloatArray:
        """Sums per variable from sums per slot, along the first axis: `to_slots` transposed, by running sums."""
        out = np.zeros((self.n_variables, *sums.shape[1:]))
        for j, (part, rises) in enumerate(zip(self.parts, self.allowed, strict=True)):
            slots = sums[int(self.slot_starts[j]) : int(self.slot_starts[j + 1])]
            here = out[int(self.starts[j]) : int(self.starts[j + 1])]
            if part.knots is None:
                here[:] = slots
                continue
            rising, free = np.cumsum(slots[part.n_knots - 1 : 0 : -1], axis=0)[::-1], np.flatnonzero(rises > _SMALLEST)
            here[: len(free)] = rising if len(free) == len(rises) else rising[free]
            here[len(free) :] = slots[part.n_knots + self._levels(part)]
        return out

    def refined(self, coarse: Layout, x: FloatArray) -> FloatArray:
        """Variables of the shapes of a layout with fewer knots, interpolated linearly."""
        slots, out = x @ coarse.to_slots.T, np.zeros((len(x), self.n_variables))
        for j, (part, rough) in enumerate(zip(self.parts, coarse.parts, strict=True)):
            values = slots[:, coarse.slot_starts[j] : coarse.slot_starts[j + 1]]
            here = out[:, self.starts[j] : self.starts[j + 1]]
            if part.knots is None or rough.knots is None:
                here[:] = values
                continue
            free = self.allowed[j] > _SMALLEST
            for line, known in zip(here, values, strict=True):
                line[: free.sum()] = np.diff(np.interp(part.knots, rough.knots, known[: rough.n_knots]))[free]
            here[:, free.sum() :] = values[:, rough.n_knots + self._levels(part)]
        return out

    @cached_property
    def roughness(self) -> list[FloatArray]:
        """Matrix R of the penalty ``x'Rx`` of each part, over its own variables.

        Per column of numbers with the standard deviation s, ``s`` times the integral of the squared slope, which is the
        sum of ``s rise^2 / gap`` and does not depend on how many knots there are; per category, the squared difference
        of its level from the mean of levels; per state, that of its level from the mean of the shape.
        """
        return [self._roughness_of(j) for j in range(len(self.parts))]

    def _roughness_of(self, j: int) -> FloatArray:
        part, rises = self.parts[j], self.allowed[j]
        if part.column < 0:
            return np.zeros((1, 1))
        if part.knots is None:
            # Around their mean, so that levels can be shifted to the middle of what they may be; the intercept makes
            # up for it.
            n = part.n_slots
            return np.eye(n) - (1 - _SHIFT) * np.full((n, n), 1 / n)
        free = rises > _SMALLEST
        gaps = np.diff(part.knots)[free]
        diagonal = part.spread / gaps
        levels = self._levels(part)
        if not len(levels):
            return np.diag(diagonal)
        here = slice(int(self.starts[j]), int(self.starts[j + 1]))
        slots = slice(int(self.slot_starts[j]), int(self.slot_starts[j + 1]))
        mean = part.share[: part.n_knots] / part.share[: part.n_knots].sum()
        to_slots = self.to_slots[slots].toarray()[:, here]
        lines = to_slots[part.n_knots + levels] - mean @ to_slots[: part.n_knots]
        return np.asarray(np.diag(np.append(diagonal, np.zeros(len(levels)))) + lines.T @ lines)

    def limits(self, n_functions: int) -> Limits:
        """Limits of the variables of all functions, concatenated."""
        if n_functions not in self._limits:
            self._limits[n_functions] = self._make_limits(n_functions)
        return self._limits[n_functions]

    @cached_property
    def _limits(self) -> dict[int, Limits]:
        return {}

    def _make_limits(self, n_functions: int) -> Limits:
        rows, highest, inside = self._limits_of_one
        return Limits(
            csr_array(block_diag([rows] * n_functions, format="csr")),
            np.tile(highest, n_functions),
            np.tile(inside, n_functions),
        )

    @cached_property
    def _limits_of_one(self) -> tuple[csr_array, FloatArray, FloatArray]:
        inside = np.zeros(self.n_variables)
        lines: list[tuple[list[int], list[float], float]] = []
        for part, rises, first in zip(self.parts, self.allowed, self.starts[:-1], strict=True):
            if part.column < 0:
                continue
            start = int(first)
            if part.knots is None:
                half = self.unit * self.weights.scales[part.column] / 2
                for at in range(start, start + part.n_slots):
                    lines += [([at], [1.0], half), ([at], [-1.0], half)]
                for a, b, share in self.near_categories(part):
                    for way in (1.0, -1.0):
                        lines.append(([start + a, start + b], [way, -way], 2 * half * share))
                continue
            rises = rises[rises > _SMALLEST]
            sign = self.signs.get(part.column, 0)
            for at, rise in enumerate(rises.tolist(), start):
                for way in (1, -1):
                    lines.append(([at], [float(way)], 0.0 if way == -sign else rise))
            start_rise = 0.1 * rises
            levels, costs = self._levels(part), self.unit * self._costs(part)
            for at, k in enumerate(levels.tolist(), start + len(rises)):
                for n in range(len(rises) + 1):
                    before = list(range(start, start + n))
                    lines.append(([*before, at], [*[1.0] * n, -1.0], costs[k]))
                    lines.append(([*before, at], [*[-1.0] * n, 1.0], costs[k]))
                for other, m in enumerate(levels[levels < k].tolist(), start + len(rises)):
                    for way in (1.0, -1.0):
                        lines.append(([other, at], [way, -way], max(costs[k], costs[m])))
            if len(levels):
                width = costs[levels].min()
                start_rise *= min(1.0, width / max(width, start_rise.sum() * 2))
            inside[start : start + len(rises)] = sign * start_rise
        matrix = csr_array(
            (
                np.array([v for line in lines for v in line[1]]),
                np.array([c for line in lines for c in line[0]], dtype=np.int64),
                np.concatenate([[0], np.cumsum([len(line[0]) for line in lines])]).astype(np.int64),
            ),
            shape=(len(lines), self.n_variables),
        )
        return matrix, np.array([line[2] for line in lines]), inside

    def near_categories(self, part: Part) -> list[tuple[int, int, float]]:
        """Categories nearer to each other than the weight of their column, with the share of it between them."""
        if part.knots is not None or part.column not in self.weights.tables:
            return []
        table = self.weights.tables[part.column][: part.n_slots, : part.n_slots]
        return [(a, b, max(float(table[a, b]), _NEAREST)) for a, b in np.argwhere(np.triu(table < 1, 1)).tolist()]

    def _costs(self, part: Part) -> FloatArray:
        """Distance of each state of a part from its numbers."""
        return np.empty(0) if part.states is None else self.weights.states[part.column].costs

    def _levels(self, part: Part) -> IntArray:
        """States of a part with a level of their own: at distance 0 they have that of the numbers."""
        return np.flatnonzero(self._costs(part) > 0)


def constant(layout: Layout, scores: Any) -> FloatArray:
    """Variables of constant functions, or nearly constant ones where a shape must be monotone."""
    out = np.tile(layout.limits(1).inside, (len(scores), 1))
    out[:, 0] = scores
    return out


def read_shapes(layout: Layout, x: FloatArray) -> tuple[FloatArray, list[Shape]]:
    """Intercepts and shapes from variables; each shape has a mean of 0 over the people."""
    slots = x @ layout.to_slots.T
    intercepts, shapes = slots[:, 0].copy(), []
    for part, start, stop in zip(layout.parts[1:], layout.slot_starts[1:-1], layout.slot_starts[2:], strict=True):
        values = slots[:, start:stop]
        mean = values @ part.share
        intercepts += mean
        values = values - mean[:, None]
        if part.knots is None:
            # A category of weight 0 was not seen, so it gets the mean. With a table of distances it keeps its solution,
            # which may have to be near that of another category.
            if part.column not in layout.weights.tables:
                values = np.where(part.share > 0, values, np.clip(0.0, *_ends(values[:, part.share > 0])))
            shapes.append(Shape(part.column, None, values, np.zeros(len(values)), part.share))
        else:
            n, split = part.n_knots, part.n_knots + (part.states is not None and bool(np.isnan(part.states.values[0])))
            other, special = values[:, n] if split > n else None, values[:, split:] if split < part.n_slots else None
            shapes.append(Shape(part.column, part.knots, values[:, :n], other, part.share[:n], special))
    return intercepts, shapes


def _ends(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    return values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)
