"""How much exchanging columns can change the softmax of several additive scores: a search in the space of the scores.

The other columns matter through the differences of the scores alone, of which there is one fewer than classes, however
many columns there are. Boxes of these differences, and of the values of the exchanged columns, are bounded by
`docs/theory.md` §15, and cut until the bound is close.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import softmax

from likewise._typing import FloatArray, IntArray
from likewise.kernel.proof import Searched
from likewise.verification.outputs import largest_variation, sets_of
from likewise.verification.search import Bounded, Limits, search_boxes

_ENUMERATED = 1e6  # pairs of people
_AT_ONCE = 256  # boxes that are cut together


@dataclass(frozen=True, eq=False)
class SoftmaxProblem:
    """The largest total variation of ``softmax(t + v)`` and ``softmax(t + w)``.

    Attributes
    ----------
    rest : list of ndarray of shape (n_values, m)
        What each other column can add to the scores; t is a sum of these, or between such sums.
    parts : list of ndarray of shape (n_parts, 2, m)
        For each exchanged column, both ends of lines, on which the values are that it can add to v and to w.
    base : ndarray of shape (m,)
        Part of t.
    rounding : float
        What rounding may add to a score.
    finite : bool
        Whether these are all the values there are, each exchanged one a point.
    """

    rest: list[FloatArray]
    parts: list[FloatArray]
    base: FloatArray
    rounding: float
    finite: bool

    @property
    def n_pairs(self) -> int:
        """Pairs of parts of the exchanged columns."""
        return int(np.prod([float(len(each)) for each in self.parts]) ** 2)

    def by_enumeration(self) -> float | None:
        """The largest total variation of all there are; None if there are too many."""
        n_sums, n_values = (np.prod([float(len(each)) for each in parts]) for parts in (self.rest, self.parts))
        if not self.finite or n_sums * n_values**2 > _ENUMERATED:
            return None
        t, v = self.base[None], np.zeros((1, len(self.base)))
        for values in self.rest:
            t = (t[:, None] + values).reshape(-1, t.shape[1])
        for values in self.parts:
            v = (v[:, None] + values[:, 0]).reshape(-1, v.shape[1])
        p = softmax(t[:, None] + v, axis=2)
        most = max(float(np.abs(p[:, k, None] - p).sum(axis=2).max()) / 2 for k in range(len(v)))
        return most + 2 * self.rounding

    def largest(self, directions: FloatArray) -> FloatArray:
        """Largest values of linear functions of t, shape (n, m) to (n,)."""
        total = directions @ self.base
        for values in self.rest:
            total = total + (values @ directions.T).max(axis=0)
        return np.asarray(total)


class _ScoreBoxes:
    """Boxes: ranges of ``t_k - t_0``, and of the positions of v and w on lines of each exchanged column."""

    def __init__(self, problem: SoftmaxProblem) -> None:
        self.problem, self.m, self.c = problem, len(problem.base), len(problem.parts)
        m = self.m
        pairs = np.eye(m)[:, None] - np.eye(m)[None]
        self.limits = problem.largest(pairs.reshape(-1, m)).reshape(m, m)
        sets = [np.isin(np.arange(m), each) for each in sets_of(m)]
        self.directions = np.array([each / each.sum() - ~each / (~each).sum() for each in sets])
        self.reach = problem.largest(self.directions)
        self.found, self.n_boxes = -np.inf, 0

    def first(self) -> list[Bounded]:
        single = [range(len(each)) for each in self.problem.parts]
        lines = np.array(list(product(*single, *single)), dtype=np.int64).reshape(-1, 2, self.c)
        n = len(lines)
        low = np.concatenate([np.tile(-self.limits[0, 1:], (n, 1)), np.zeros((n, 2 * self.c))], axis=1)
        high = np.concatenate([np.tile(self.limits[1:, 0], (n, 1)), np.ones((n, 2 * self.c))], axis=1)
        return self.bounded(lines, low, np.maximum(low, high))

    def cut(self, boxes: Sequence[Bounded]) -> list[list[Bounded]]:
        """Each cut in two where it is widest."""
        lines, low, high = (np.array(part) for part in zip(*(box for _, box in boxes), strict=True))
        widest = self.widths(lines, low, high).argmax(axis=1)
        each = np.arange(len(lines))
        middle = (low[each, widest] + high[each, widest]) / 2
        first, second = high.copy(), low.copy()
        first[each, widest] = second[each, widest] = middle
        halves = ((lines, lines), (low, second), (first, high))
        parts = self.bounded(*map(np.concatenate, halves))
        return [[parts[i], parts[len(boxes) + i]] for i in range(len(boxes))]

    def bounded(self, lines: IntArray, low: FloatArray, high: FloatArray) -> list[Bounded]:
        """Boxes with their bounds; their centres are tried."""
        self.n_boxes += len(lines)
        self.found = max(self.found, float(self.values(lines, low, high).max()))
        values = self.bounds(lines, low, high).tolist()
        return list(zip(values, zip(lines, low, high, strict=True), strict=True))

    def ends(self, lines: IntArray, at: FloatArray) -> FloatArray:
        """What v and w are for positions on lines, shape (n, 2, m)."""
        total = np.zeros((len(lines), 2, self.m))
        for j, parts in enumerate(self.problem.parts):
            own = parts[lines[:, :, j]]
            total += own[:, :, 0] + at[:, :, j, None] * (own[:, :, 1] - own[:, :, 0])
        return total

    def bounds(self, lines: IntArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """Upper bounds of boxes; -1 for those without a sum of scores."""
        m, room = self.m, 2 * self.problem.rounding
        t_low, t_high = (np.concatenate([np.zeros((len(low), 1)), each[:, : m - 1]], axis=1) for each in (low, high))
        t = np.minimum(t_high[:, :, None] - t_low[:, None], self.limits)
        for k in range(m):
            t = np.minimum(t, t[:, :, k, None] + t[:, None, k])
        least = t_low @ np.maximum(self.directions, 0).T + t_high @ np.minimum(self.directions, 0).T
        slack = 1e-9 * (1 + np.abs(self.limits).max())
        empty = (least > self.reach + slack).any(axis=1) | (np.einsum("nkk->nk", t) < -slack).any(axis=1)
        most = np.zeros((len(low), 2, m, m))
        for j, parts in enumerate(self.problem.parts):
            own = parts[lines[:, :, j]]
            ends = [
                own[:, :, 0] + at.reshape(len(at), 2, self.c)[:, :, j, None] * (own[:, :, 1] - own[:, :, 0])
                for at in (low[:, m - 1 :], high[:, m - 1 :])
            ]
            gaps = [each[:, :, :, None] - each[:, :, None] for each in ends]
            most += np.maximum(*gaps)
        v, w = most[:, 0], most[:, 1]
        change = w + np.swapaxes(v, 1, 2)
        t = np.maximum(t, -np.swapaxes(t, 1, 2))  # of an empty box only
        found = largest_variation(t + v + room, t + w + room, change + 2 * room)
        return np.where(empty, -1.0, found)

    def values(self, lines: IntArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """Total variation at the centres of boxes that are sums of scores; -1 for others."""
        middle = (low + high) / 2
        t = np.concatenate([np.zeros((len(middle), 1)), middle[:, : self.m - 1]], axis=1)
        inside = (t @ self.directions.T <= self.reach).all(axis=1)
        inside &= (t[:, :, None] - t[:, None] <= self.limits).all(axis=(1, 2))
        scores = t[:, None] + self.ends(lines, middle[:, self.m - 1 :].reshape(len(t), 2, self.c))
        p = softmax(scores, axis=2)
        return np.where(inside, np.abs(p[:, 0] - p[:, 1]).sum(axis=1) / 2, -1.0)

    def widths(self, lines: IntArray, low: FloatArray, high: FloatArray) -> FloatArray:
        """How much the scores differ over each range of a box."""
        scale = np.ones_like(low)
        for j, parts in enumerate(self.problem.parts):
            size = np.ptp(parts[:, 1] - parts[:, 0], axis=1)[lines[:, :, j]]
            scale[:, self.m - 1 + j], scale[:, self.m - 1 + self.c + j] = size[:, 0], size[:, 1]
        return np.asarray((high - low) * scale)


def bound_softmax(problem: SoftmaxProblem, limits: Limits) -> Searched:
    """Upper bound of the total variation, by boxes."""
    return search_boxes(_ScoreBoxes(problem), limits, at_once=_AT_ONCE)
