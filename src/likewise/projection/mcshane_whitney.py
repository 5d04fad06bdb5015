"""McShane-Whitney extension: the lowest and highest score within a metric, given the scores of some people."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from likewise._engine import should_compile
from likewise._frozen import Frozen
from likewise._parallel import run_in_threads
from likewise._typing import FloatArray, IntArray
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import People
from likewise.metrics.base import Metric
from likewise.pairs import plain as pairs_plain
from likewise.pairs.scans import cells_of
from likewise.projection import plain

_BLOCK = 512  # people at a time, per thread
_N_ROUNDS = 20  # approximate envelope evaluations per projection


def caps(weights: BoundMetric) -> FloatArray:
    """Largest term of each column for which missing numbers satisfy the triangle inequality.

    Two people with a number are each at distance ``m`` from one who misses it, so any model within the metric keeps
    them within ``2 m``. With

    ``D'(x, x') = || min(s_i |x_i - x'_i|, 2 m_i) ||_p`` over the numbers that both have, the rest as in D,

    D' <= D satisfies the triangle inequality for every p, and for p = 1 a model is within D if and only if it is within
    D' (`docs/theory.md` §13). Columns without missing numbers, and categories, have no cap.

    Examples
    --------
    >>> import pandas as pd
    >>> from likewise import TableMetric
    >>> metric = TableMetric({"age": 0.1, "income": 2.0}, missing={"age": 0.2})
    >>> caps(metric.bind(metric.encoder(pd.DataFrame({"age": [30], "income": [1]})))).tolist()
    [0.4, inf]
    """
    return np.where(weights.is_number & ~np.isnan(weights.missing), 2 * weights.missing, np.inf)


@dataclass(frozen=True, eq=False)
class EnvelopeBounds:
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


def make_envelope(metric: Metric, anchors: People) -> Envelope:
    """The fastest envelope for a metric."""
    bound = metric.bind(anchors.encoder)
    if not bound.has_parts:
        return FunctionEnvelope(bound, anchors)
    return ScanEnvelope(bound, anchors.rows) if bound.tables else BoxEnvelope.from_anchors(bound, anchors)


@dataclass(frozen=True, eq=False)
class BoxEnvelope(Envelope):
    """Envelope under a metric with weights: plain for few people, else compiled, with a box tree that skips anchors.

    Attributes
    ----------
    metric : BoundMetric
    rows : ndarray of shape (n_anchors, n_columns)
        The anchors, in the columns of positive weight, numbers first.
    """

    metric: BoundMetric
    rows: FloatArray

    @classmethod
    def from_anchors(cls, metric: BoundMetric, anchors: People) -> BoxEnvelope:
        """Arrange the anchors by column."""
        found = cls(metric, anchors.rows)
        return replace(found, rows=np.ascontiguousarray(anchors.rows[:, found.columns]))

    @cached_property
    def columns(self) -> IntArray:
        """Columns of positive weight; numbers first."""
        used = np.flatnonzero(self.metric.matters)
        if not used.size:  # one column of weight 0 keeps the kernels simple
            used = np.arange(1)
        return used[np.argsort(~self.metric.is_number[used], kind="stable")].astype(np.int64)

    @cached_property
    def scales(self) -> FloatArray:
        """Of these columns."""
        return self.metric.scales[self.columns]

    @cached_property
    def caps(self) -> FloatArray:
        """Of these columns."""
        return caps(self.metric)[self.columns]

    @cached_property
    def n_numbers(self) -> int:
        """How many of these hold numbers."""
        return int(self.metric.is_number[self.columns].sum())

    def bounds(self, people: People, values: FloatArray, lower: FloatArray, upper: FloatArray) -> EnvelopeBounds:
        """Return ``max(lower, L)`` and ``min(upper, U)``."""
        return self._bounds(people, values, lower, upper, compiled=self._should_compile(len(people)))

    def at_anchors(self, anchors: People) -> Callable[[FloatArray], EnvelopeBounds]:
        """As in `Envelope`; whether loops are compiled is decided once, for all calls."""
        compiled = self._should_compile(len(anchors), n_times=_N_ROUNDS)
        return lambda values: self._bounds(anchors, values, values, values, compiled=compiled)

    def _should_compile(self, n_people: int, n_times: int = 1) -> bool:
        cells = n_times * cells_of(n_people * len(self.rows), len(self.columns), self.metric.p)
        return should_compile("likewise.projection.kernels.tighten", cells)

    def _bounds(
        self, people: People, values: FloatArray, lower: FloatArray, upper: FloatArray, *, compiled: bool
    ) -> EnvelopeBounds:
        rows = np.ascontiguousarray(people.rows[:, self.columns])
        lower, upper = lower.copy(), upper.copy()
        lower_anchor, upper_anchor = np.full((2, len(rows)), -1)
        tighten = self._search(values, compiled=compiled)
        counts: list[int] = []

        def work(start: int) -> None:
            block = slice(start, start + _BLOCK)
            out = (each[block] for each in (lower, upper, lower_anchor, upper_anchor))
            counts.append(tighten(rows[block], *out))

        run_in_threads(work, range(0, len(rows), _BLOCK), None)
        return EnvelopeBounds(lower, upper, lower_anchor, upper_anchor, sum(counts))

    def _search(self, values: FloatArray, *, compiled: bool) -> Callable[..., int]:
        """Tightens the bounds of people: compiled with the box tree, or plain by a scan of all anchors."""
        weights = self.scales, self.caps, self.metric.p
        if not compiled:
            columns = np.ascontiguousarray(self.rows.T)
            return lambda rows, *out: plain.tighten(rows, columns, values, self.n_numbers, *weights, *out)
        from likewise.projection.kernels import tighten

        order, anchors, tree, boxes = self._tree
        values = values[order]
        least, greatest = (np.ravel(end) for end in _ranges(values[None, :], *tree))
        search = anchors, values, order, tree, (*boxes, least, greatest, self.n_numbers), *weights
        return lambda rows, *out: tighten(rows, *search, *out)

    def numbers(self) -> Iterator[tuple[int, FloatArray]]:
        """Numeric columns of positive weight."""
        return zip(self.columns[: self.n_numbers].tolist(), self.rows.T, strict=False)

    @cached_property
    def _tree(self) -> Any:
        """Order of the anchors, the anchors in that order, the tree, and the ranges of its boxes."""
        from likewise.projection.kernels import LEAF_SIZE

        columns = np.ascontiguousarray(self.rows.T)
        missing = np.isnan(columns)
        no_outputs = np.zeros((0, len(self.rows)))
        build = _tree_function("build", columns)
        order, *tree = build(np.where(missing, 0.0, columns), no_outputs, self.n_numbers, self.scales, LEAF_SIZE)
        columns, missing = columns.take(order, axis=1), missing.take(order, axis=1)
        low = _ranges(np.where(missing, np.inf, columns), *tree)[0]
        high = _ranges(np.where(missing, -np.inf, columns), *tree)[1]
        all_missing, some_missing = _ranges(missing.astype(np.float64), *tree)
        return order, columns, tuple(tree), (low, high, (all_missing + some_missing).astype(np.int8))


def _ranges(rows: FloatArray, *tree: IntArray) -> tuple[FloatArray, FloatArray]:
    found: tuple[FloatArray, FloatArray] = _tree_function("ranges", rows)(rows, *tree)
    return found


def _tree_function(name: str, columns: FloatArray) -> Any:
    """A function of `likewise.pairs.box_tree`, or its twin in `likewise.pairs.plain`.

    They may place equal values differently: the bounds do not depend on the tree.
    """
    function = f"likewise.pairs.box_tree.{name}"
    cells = columns.size * np.log2(1 + columns.shape[1])
    return getattr(import_module("likewise.pairs.box_tree") if should_compile(function, cells) else pairs_plain, name)


class _ScannedEnvelope(Envelope):
    """Envelope from the distances to all anchors."""

    @abstractmethod
    def _distances(self, people: People) -> Iterator[FloatArray]:
        """For each person, the distances to all anchors."""

    def bounds(self, people: People, values: FloatArray, lower: FloatArray, upper: FloatArray) -> EnvelopeBounds:
        """Return ``max(lower, L)`` and ``min(upper, U)``."""
        return _scan(self._distances(people), values, lower, upper)

    def at_anchors(self, anchors: People) -> Callable[[FloatArray], EnvelopeBounds]:
        """As in `Envelope`, but computes the distance of each pair only once."""
        distances = list(self._distances(anchors))
        return lambda values: _scan(distances, values, values, values)


@dataclass(frozen=True, eq=False)
class ScanEnvelope(_ScannedEnvelope):
    """Envelope under weights with tables of distances between categories: a scan of all anchors.

    Attributes
    ----------
    metric : BoundMetric
    rows : ndarray of shape (n_anchors, n_columns)
    """

    metric: BoundMetric
    rows: FloatArray

    def numbers(self) -> Iterator[tuple[int, FloatArray]]:
        """Numeric columns of positive weight."""
        return ((int(i), self.rows[:, i]) for i in np.flatnonzero(self.metric.is_number & self.metric.matters))

    def _distances(self, people: People) -> Iterator[FloatArray]:
        most = caps(self.metric)
        return (self.metric.distances(row, self.rows, most) for row in people.rows)


@dataclass(frozen=True, eq=False)
class FunctionEnvelope(_ScannedEnvelope):
    """Envelope under a `FunctionMetric`: a scan of all anchors."""

    metric: BoundMetric
    anchors: People

    def numbers(self) -> Iterator[tuple[int, FloatArray]]:
        """All numeric columns: the weights of a function are not known."""
        return ((int(i), self.anchors.rows[:, i]) for i in np.flatnonzero(self.anchors.encoder.is_number))

    def _distances(self, people: People) -> Iterator[FloatArray]:
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
