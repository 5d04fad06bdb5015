"""McShane-Whitney extension: the lowest and highest score within a metric, given the scores of some people."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from likewise._engine import should_compile
from likewise._frozen import Frozen
from likewise._parallel import run_in_threads
from likewise._typing import FloatArray, IntArray
from likewise.kernel.distance import CODE, Kinds
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import People
from likewise.pairs.points import Columns, Layout, splits_of
from likewise.pairs.scans import cells_of
from likewise.projection import plain

_BLOCK = 512  # people at a time, per thread
_N_ROUNDS = 20  # approximate envelope evaluations per projection


def caps(weights: BoundMetric) -> FloatArray:
    """Largest term of each column for which missing numbers and special codes satisfy the triangle inequality.

    Two people with a number are each at distance ``m`` from one who misses it, so any model within the metric keeps
    them within ``2 m``; with special codes, m is the distance of the nearest of these states. With

    ``D'(x, x') = || min(s_i |x_i - x'_i|, 2 m_i) ||_p`` over the numbers that both have, the rest as in D,

    D' <= D satisfies the triangle inequality for every p, and for p = 1 a model is within D if and only if it is within
    D' (`docs/theory.md` §13). Columns without such states, and categories, have no cap.

    Examples
    --------
    >>> import pandas as pd
    >>> from likewise import TableMetric
    >>> metric = TableMetric({"age": 0.1, "income": 2.0}, missing={"age": 0.2})
    >>> caps(metric.bind(metric.encoder(pd.DataFrame({"age": [30], "income": [1]})))).tolist()
    [0.4, inf]
    """
    found = np.full(len(weights.is_number), np.inf)
    for i, states in weights.states.items():
        found[i] = 2 * states.costs.min()
    return found


class EnvelopeBounds(NamedTuple):
    """Both envelopes, the anchors that attain them (-1: none), and the number of distances computed."""

    lower: FloatArray
    upper: FloatArray
    lower_anchor: IntArray
    upper_anchor: IntArray
    n_distances: int


class Envelope(Frozen, ABC):
    """Anchors a, with ``L(x) = max_j (v_j - D(x, a_j))`` and ``U(x) = min_j (v_j + D(x, a_j))`` for any values v."""

    metric: BoundMetric

    @abstractmethod
    def bounds(self, people: People, values: FloatArray, lower: FloatArray, upper: FloatArray) -> EnvelopeBounds:
        """Return ``max(lower, L)`` and ``min(upper, U)``; the same to the last bit in any batch."""

    @abstractmethod
    def numbers(self) -> Iterator[tuple[int, FloatArray]]:
        """Numeric columns, with the numbers of the anchors, NaN where missing."""

    def at_anchors(self, anchors: People) -> Callable[[FloatArray], EnvelopeBounds]:
        """The envelopes at the anchors themselves, as a function of the values."""
        return lambda values: self.bounds(anchors, values, values, values)


def make_envelope(metric: BoundMetric, anchors: People) -> Envelope:
    """The fastest envelope for a metric."""
    return ScanEnvelope(metric, anchors) if splits_of(metric) is None else BoxEnvelope.of(metric, anchors)


@dataclass(frozen=True, eq=False)
class BoxEnvelope(Envelope):
    """Envelope under a sum over columns: plain for few people, else compiled, with a box tree that skips anchors.

    Attributes
    ----------
    metric : BoundMetric
    rows : ndarray of shape (n_anchors, n_used)
        The anchors as points, in the columns of positive scale, numbers first.
    """

    metric: BoundMetric
    rows: FloatArray

    @classmethod
    def of(cls, metric: BoundMetric, anchors: People) -> BoxEnvelope:
        """Arrange the anchors by column."""
        empty = cls(metric, np.empty((0, 0)))
        return replace(empty, rows=empty.points(anchors))

    @cached_property
    def layout(self) -> Layout:
        """Of points, in which any number may be missing that the metric allows to be."""
        metric = self.metric
        return Layout(metric.is_number, np.flatnonzero(metric.is_number & ~np.isnan(metric.missing)), metric)

    @cached_property
    def used(self) -> IntArray:
        """Columns of positive scale; codes last."""
        used = np.flatnonzero(self.layout.scales > 0)
        if not used.size:  # one column of scale 0 keeps the kernels simple
            used = np.arange(1)
        return used[np.argsort(self.layout.kinds[used] == CODE, kind="stable")]

    @cached_property
    def space(self) -> tuple[Kinds, FloatArray, float]:
        """Kinds and scales of these columns, and the power."""
        return self.layout.kinds[self.used], self.layout.scales[self.used], float(self.metric.p)

    @cached_property
    def caps(self) -> FloatArray:
        """Of these columns; codes have none."""
        codes = np.full(len(self.layout.kinds) - self.layout.n_columns, np.inf)
        return np.append(caps(self.metric), codes)[self.used]

    def points(self, people: People) -> FloatArray:
        """People in these columns."""
        return np.ascontiguousarray(self.layout.rows(people)[:, self.used])

    def bounds(self, people: People, values: FloatArray, lower: FloatArray, upper: FloatArray) -> EnvelopeBounds:
        """Return ``max(lower, L)`` and ``min(upper, U)``."""
        return self._bounds(self.points(people), values, lower, upper, compiled=self._should_compile(len(people)))

    def at_anchors(self, anchors: People) -> Callable[[FloatArray], EnvelopeBounds]:
        """As in `Envelope`; whether loops are compiled is decided once, for all calls."""
        points, compiled = self.points(anchors), self._should_compile(len(anchors), n_times=_N_ROUNDS)
        return lambda values: self._bounds(points, values, values, values, compiled=compiled)

    def _should_compile(self, n_people: int, n_times: int = 1) -> bool:
        cells = n_times * cells_of(n_people * len(self.rows), len(self.used), self.metric.p)
        return should_compile("likewise.projection.kernels.tighten", cells)

    def _bounds(
        self, points: FloatArray, values: FloatArray, lower: FloatArray, upper: FloatArray, *, compiled: bool
    ) -> EnvelopeBounds:
        lower_anchor, upper_anchor = np.full((2, len(points)), -1)
        out = lower.copy(), upper.copy(), lower_anchor, upper_anchor
        tighten = self._search(values, compiled=compiled)
        counts: list[int] = []

        def work(start: int) -> None:
            block = slice(start, start + _BLOCK)
            counts.append(tighten(points[block], tuple(each[block] for each in out)))

        run_in_threads(work, range(0, len(points), _BLOCK), None)
        return EnvelopeBounds(*out, n_distances=sum(counts))

    def _search(self, values: FloatArray, *, compiled: bool) -> Callable[..., int]:
        """Tightens the bounds of people: compiled with the box tree, or plain by a scan of all anchors."""
        if not compiled:
            columns = Columns(np.ascontiguousarray(self.rows.T), *self.space)
            return lambda points, bounds: plain.tighten(points, columns, self.caps, values, bounds)
        from likewise.pairs.box_tree import ranges
        from likewise.projection.kernels import Anchors, tighten

        order, columns, tree, (low, high, reach) = self._tree
        values = values[order]
        least, greatest = (np.ravel(end) for end in ranges(values[None, :], *tree))
        anchors = Anchors(columns, self.caps, values, order, *tree, low, high, reach, least, greatest)
        return lambda points, bounds: tighten(points, anchors, bounds)

    def numbers(self) -> Iterator[tuple[int, FloatArray]]:
        """Numeric columns of positive weight."""
        return zip(self.used[self.space[0] != CODE].tolist(), self.rows.T, strict=False)

    @cached_property
    def _tree(self) -> tuple[IntArray, Columns, tuple[IntArray, IntArray, IntArray], Ranges]:
        """Order of the anchors, their columns in that order, the tree, and the ranges and reach of its boxes."""
        from likewise.pairs.box_tree import build
        from likewise.projection.kernels import LEAF_SIZE

        X, (kinds, scales, _) = np.ascontiguousarray(self.rows.T), self.space
        filled, no_outputs = np.where(np.isnan(X), 0.0, X), np.zeros((0, len(self.rows)))
        order, start, stop, child = build(filled, no_outputs, int((kinds != CODE).sum()), scales, LEAF_SIZE)
        X = X.take(order, axis=1)
        tree = start, stop, child
        return order, Columns(X, *self.space), tree, box_ranges(X, self.caps, scales, *tree)


Ranges = tuple[FloatArray, FloatArray, FloatArray]


def box_ranges(X: FloatArray, caps: FloatArray, scales: FloatArray, *tree: IntArray) -> Ranges:
    """`low`, `high` and `reach` of boxes of anchors, as in `likewise.projection.kernels.Anchors`."""
    from likewise.pairs.box_tree import ranges

    missing = np.isnan(X)
    every, some = (found > 0 for found in ranges(missing.astype(np.float64), *tree))
    low = np.where(every, -np.inf, ranges(np.where(missing, np.inf, X), *tree)[0])
    high = np.where(every, np.inf, ranges(np.where(missing, -np.inf, X), *tree)[1])
    reach = np.divide(caps, scales, out=np.full(len(scales), np.inf), where=scales > 0)
    return low, high, np.where(some, 0.5, 1.0) * reach


@dataclass(frozen=True, eq=False)
class ScanEnvelope(Envelope):
    """Envelope from the distances to all anchors: by a function, or of categories that are no sum of mismatches.

    Attributes
    ----------
    metric : BoundMetric
    anchors : People
    """

    metric: BoundMetric
    anchors: People

    def bounds(self, people: People, values: FloatArray, lower: FloatArray, upper: FloatArray) -> EnvelopeBounds:
        """Return ``max(lower, L)`` and ``min(upper, U)``."""
        return _scan(self._distances(people), values, lower, upper)

    def at_anchors(self, anchors: People) -> Callable[[FloatArray], EnvelopeBounds]:
        """As in `Envelope`, but computes the distance of each pair only once."""
        distances = list(self._distances(anchors))
        return lambda values: _scan(distances, values, values, values)

    def numbers(self) -> Iterator[tuple[int, FloatArray]]:
        """Numeric columns of positive weight; all of them under a function, whose weights are not known."""
        used = self.metric.is_number & self.metric.matters if self.metric.has_parts else self.metric.is_number
        return ((int(i), self.anchors.rows[:, i]) for i in np.flatnonzero(used))

    def _distances(self, people: People) -> Iterator[FloatArray]:
        """For each person, the distances to all anchors."""
        if self.metric.has_parts:
            most = caps(self.metric)
            return (self.metric.distances(row, self.anchors.rows, most) for row in people.rows)
        # Person by person: a function may round differently for another number of rows.
        return (self.metric.between(people.take([i]), self.anchors) for i in range(len(people)))


def _scan(distances: Iterable[FloatArray], values: FloatArray, lower: FloatArray, upper: FloatArray) -> EnvelopeBounds:
    """Envelopes from the distances of each person to all anchors."""
    lower, upper = lower.copy(), upper.copy()
    lower_anchor, upper_anchor = np.full((2, len(lower)), -1)
    for i, distance in enumerate(distances):
        below, above = values - distance, values + distance
        j, k = below.argmax(), above.argmin()
        if below[j] > lower[i]:
            lower[i], lower_anchor[i] = below[j], j
        if above[k] < upper[i]:
            upper[i], upper_anchor[i] = above[k], k
    return EnvelopeBounds(lower, upper, lower_anchor, upper_anchor, len(lower) * len(values))
