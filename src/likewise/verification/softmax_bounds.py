"""How much exchanging columns can change the softmax of several additive scores: a search in the space of the scores.

The other columns matter through the differences of the scores alone, of which there is one fewer than classes, however
many columns there are. Boxes of these differences, and of the values of the exchanged columns, are bounded by
`docs/theory.md` §15, and cut until the bound is close.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from scipy.special import softmax

from likewise._typing import FloatArray, IntArray
from likewise.verification.base import Limits

_ENUMERATED = 1e6  # pairs of people
_AT_ONCE = 256  # boxes that are cut together
_MOST_BOXES = 200_000  # that are kept
_OUTWARDS = 1 + 2.0**-40


def largest_variation(one: FloatArray, other: FloatArray, change: FloatArray) -> FloatArray:
    """Upper bounds of the total variation of two softmax outputs, by limits on differences of scores.

    For each set A of classes the log-odds of A are limited for both people, and so is their change: with the shares q
    within A and r outside it, it is ``log sum_k q_k / sum_l r_l exp(change_l - change_k)``.

    Parameters
    ----------
    one, other, change : ndarray of shape (n, m, m)
        ``score_k - score_l`` is at most ``[:, k, l]``, for either person and for the change from one to the other.
    """
    m = one.shape[1]
    best = np.zeros(len(one))
    for size in range(1, m):
        for inside in map(list, combinations(range(m), size)):
            outside = [k for k in range(m) if k not in inside]
            rows, columns = np.ix_(inside, outside)
            own, its, back, rise = (each[:, rows, columns] for each in (one, other, np.swapaxes(one, 1, 2), change))
            least = np.log((1 / np.exp(back).sum(axis=2)).sum(axis=1))
            most = np.log((1 / np.exp(-own).sum(axis=2)).sum(axis=1))
            top = np.log((1 / np.exp(-its).sum(axis=2)).sum(axis=1))
            least_outside = -_most_mean(-np.exp(-rise), one, outside)
            d = np.log(_most_mean(1 / least_outside[:, None], one, inside)[:, 0])
            best = np.maximum(best, _rise(d, least, most, top))
    return best


def _most_mean(values: FloatArray, limits: FloatArray, members: list[int]) -> FloatArray:
    """Largest mean of values (n, n_rows, n_members) over classes, weighted by any shares that they can have."""
    rows, columns = np.ix_(members, members)
    own = limits[:, rows, columns]
    low, high = 1 / np.exp(np.swapaxes(own, 1, 2)).sum(axis=2), 1 / np.exp(-own).sum(axis=2)
    order = np.argsort(-values, axis=2)
    sorted_values = np.take_along_axis(values, order, axis=2)
    floor, room = (np.take_along_axis(np.broadcast_to(each[:, None], values.shape), order, axis=2)
                   for each in (low, high - low))  # fmt: skip
    left = np.maximum(0.0, 1 - low.sum(axis=1))[:, None, None]
    before = np.cumsum(room, axis=2) - room
    return np.asarray(((floor + np.clip(left - before, 0.0, room)) * sorted_values).sum(axis=2))


def _rise(d: FloatArray, low: FloatArray, high: FloatArray, top: FloatArray) -> FloatArray:
    """`Curve.rise` of the logistic link, for many at once."""
    a = np.clip(-d / 2, low, np.maximum(low, high))
    a = np.where(a + d > top, np.maximum(low, top - d), a)
    rise = 1 / (1 + np.exp(-np.minimum(a + d, top))) - 1 / (1 + np.exp(-a))
    return np.where(d > 0, np.maximum(rise, 0.0), 0.0)


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
        return most * _OUTWARDS + 2 * self.rounding + 2.0**-45

    def largest(self, directions: FloatArray) -> FloatArray:
        """Largest values of linear functions of t, shape (n, m) to (n,)."""
        total = directions @ self.base
        for values in self.rest:
            total = total + (values @ directions.T).max(axis=0)
        return np.asarray(total)


class _Search:
    """Boxes: ranges of ``t_k - t_0``, and of the positions of v and w on lines of each exchanged column."""

    def __init__(self, problem: SoftmaxProblem) -> None:
        self.problem, self.m, self.c = problem, len(problem.base), len(problem.parts)
        m = self.m
        pairs = np.eye(m)[:, None] - np.eye(m)[None]
        self.limits = problem.largest(pairs.reshape(-1, m)).reshape(m, m)
        sets = [np.isin(np.arange(m), each) for size in range(1, m) for each in combinations(range(m), size)]
        self.directions = np.array([each / each.sum() - ~each / (~each).sum() for each in sets])
        self.reach = problem.largest(self.directions)
        single = [range(len(each)) for each in problem.parts]
        self.lines = np.array(list(product(*single, *single)), dtype=np.int64).reshape(-1, 2, self.c)
        n = len(self.lines)
        low = np.concatenate([np.tile(-self.limits[0, 1:], (n, 1)), np.zeros((n, 2 * self.c))], axis=1)
        high = np.concatenate([np.tile(self.limits[1:, 0], (n, 1)), np.ones((n, 2 * self.c))], axis=1)
        self.low, self.high = low, np.maximum(low, high)

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


def bound_softmax(problem: SoftmaxProblem, limits: Limits) -> tuple[float, int, bool]:
    """Upper bound, boxes, and whether the limits ended the search."""
    begun, search = time.process_time(), _Search(problem)
    lines, low, high = search.lines, search.low, search.high
    bounds, n_boxes = search.bounds(lines, low, high), len(lines)
    best, done, stopped = float(search.values(lines, low, high).max()), 0.0, False
    while True:
        open_ = bounds > best + limits.tolerance / 2
        done = max(done, float(bounds[~open_].max(initial=0.0)))
        lines, low, high, bounds = lines[open_], low[open_], high[open_], bounds[open_]
        if not len(bounds):
            break
        top = float(bounds.max())
        limits.tell(best, top)
        stopped = limits.max_boxes is not None and n_boxes >= limits.max_boxes
        stopped |= limits.max_seconds is not None and time.process_time() - begun > limits.max_seconds
        stopped |= len(bounds) > _MOST_BOXES
        if stopped:
            return max(top, done) * _OUTWARDS + 2.0**-45, n_boxes, True
        chosen = np.zeros(len(bounds), dtype=bool)
        chosen[np.argsort(-bounds, kind="stable")[:_AT_ONCE]] = True
        parts = _halves(search, lines[chosen], low[chosen], high[chosen])
        value = np.minimum(search.bounds(*parts), np.tile(bounds[chosen], 2))
        best = max(best, float(search.values(*parts).max()))
        n_boxes += len(value)
        lines, low, high = (np.concatenate([a[~chosen], b]) for a, b in zip((lines, low, high), parts, strict=True))
        bounds = np.concatenate([bounds[~chosen], value])
    return done * _OUTWARDS + 2.0**-45, n_boxes, False


def _halves(
    search: _Search, lines: IntArray, low: FloatArray, high: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Boxes cut in two where they are widest."""
    widest = search.widths(lines, low, high).argmax(axis=1)
    each = np.arange(len(lines))
    middle = (low[each, widest] + high[each, widest]) / 2
    first, second = high.copy(), low.copy()
    first[each, widest] = second[each, widest] = middle
    return np.concatenate([lines, lines]), np.concatenate([low, second]), np.concatenate([first, high])
