"""The least and the greatest that a model within a metric can say, given what it says of some people."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likewise._frozen import Frozen
from likewise._parallel import run_in_threads
from likewise._typing import FloatArray, IntArray
from likewise.metrics.base import ColumnWeights, Metric
from likewise.metrics.encoders import People


def caps(weights: ColumnWeights) -> FloatArray:
    """The most that each column may count, so that missing numbers break no triangle.

    Two people with numbers far apart are each at distance `m` from one who misses it, so the two can be no further
    than ``2 m`` apart for any model that is within the metric. With

    ``D'(x, x') = || min(s_i |x_i - x'_i|, 2 m_i) ||_p`` over the numbers that both have, the rest as in D,

    D' <= D obeys the triangle inequality for every p, and for p = 1 a model is within D if and only if it is within D'
    (`docs/theory.md` §13). There is no limit where the metric refuses missing numbers, nor for categories.

    Examples
    --------
    >>> weights = ColumnWeights(np.array([0.1, 2.0]), np.array([True, True]), np.array([0.2, np.nan]), 1.0)
    >>> caps(weights).tolist()
    [0.4, inf]
    """
    return np.where(weights.is_number & ~np.isnan(weights.missing), 2 * weights.missing, np.inf)


_BLOCK = 512  # people at a time, per thread


class Envelope(Frozen, ABC):
    """Anchors with values v, and the distance D from them.

    ``L(x) = max_j (v_j - D(x, a_j))`` and ``U(x) = min_j (v_j + D(x, a_j))``.
    """

    @abstractmethod
    def narrow(self, people: People, values: FloatArray, lower: FloatArray, upper: FloatArray) -> Narrowed:
        """Return ``max(lower, L)`` and ``min(upper, U)``; the same to the last bit in any batch."""

    @abstractmethod
    def numbers(self) -> Iterator[tuple[int, FloatArray]]:
        """Columns of numbers, with those of the anchors, NaN where missing."""

    def among(self, anchors: People) -> Callable[[FloatArray], Narrowed]:
        """From values of the anchors to the envelopes at the anchors themselves."""
        return lambda values: self.narrow(anchors, values, values, values)


def envelope_of(metric: Metric, anchors: People) -> Envelope:
    """The fastest envelope for a metric."""
    weighted = metric.known_weights(anchors.encoder) is not None
    return BoxEnvelope.of(metric, anchors) if weighted else FunctionEnvelope(metric, anchors)


@dataclass(frozen=True, eq=False)
class Narrowed:
    """The two envelopes for people, the anchors that decided (-1 for none), and how many distances were computed."""

    lower: FloatArray
    upper: FloatArray
    below: IntArray
    above: IntArray
    n_looks: int


@dataclass(frozen=True, eq=False)
class BoxEnvelope(Envelope):
    """Under a metric of columns: compiled, and a tree of boxes spares most anchors.

    Attributes
    ----------
    rows : ndarray of shape (n_anchors, n_columns)
        The anchors, in the columns that matter.
    columns : ndarray of int
        Those columns; numbers first.
    scales, caps : ndarray of shape (n_columns,)
    n_numbers : int
    p : float
    """

    rows: FloatArray
    columns: IntArray
    scales: FloatArray
    caps: FloatArray
    n_numbers: int
    p: float

    @classmethod
    def of(cls, metric: Metric, anchors: People) -> BoxEnvelope:
        """Lay out the anchors; columns that must not matter are left out."""
        weights = metric.weights_of(anchors.encoder)
        used = np.flatnonzero(weights.matters)
        if not used.size:  # one column that separates nobody keeps the kernels simple
            used = np.arange(1)
        used = used[np.argsort(~weights.is_number[used], kind="stable")]
        return cls(
            np.ascontiguousarray(anchors.rows[:, used]),
            used.astype(np.int64),
            weights.scales[used],
            caps(weights)[used],
            int(weights.is_number[used].sum()),
            weights.p,
        )

    def narrow(self, people: People, values: FloatArray, lower: FloatArray, upper: FloatArray) -> Narrowed:
        """Return ``max(lower, L)`` and ``min(upper, U)``."""
        from likewise.pairs.box_tree import ranges
        from likewise.projection.kernels import narrow

        rows = np.ascontiguousarray(people.rows[:, self.columns])
        lower, upper = lower.copy(), upper.copy()
        below, above = np.full((2, len(rows)), -1)
        order, anchors, tree, ranged = self._tree
        in_order = values[order]
        least, greatest = (np.ravel(end) for end in ranges(in_order[None, :], *tree))
        given = anchors, in_order, tree, (*ranged, least, greatest, self.n_numbers), self.scales, self.caps, self.p
        looks: list[int] = []

        def work(start: int) -> None:
            part = slice(start, start + _BLOCK)
            looks.append(narrow(rows[part], *given, lower[part], upper[part], below[part], above[part]))

        run_in_threads(work, range(0, len(rows), _BLOCK), None)
        below, above = (np.where(which < 0, -1, order[which]) for which in (below, above))
        return Narrowed(lower, upper, below, above, sum(looks))

    def numbers(self) -> Iterator[tuple[int, FloatArray]]:
        """Those that matter."""
        return zip(self.columns[: self.n_numbers].tolist(), self.rows.T, strict=False)

    @cached_property
    def _tree(self) -> Any:
        """Order of the anchors, themselves in it, the boxes, and what they hold."""
        from likewise.pairs.box_tree import build, ranges
        from likewise.projection.kernels import LEAF

        columns = np.ascontiguousarray(self.rows.T)
        missing = np.isnan(columns)
        nobody = np.zeros((0, len(self.rows)))
        order, *tree = build(np.where(missing, 0.0, columns), nobody, self.n_numbers, self.scales, LEAF)
        columns, missing = columns.take(order, axis=1), missing.take(order, axis=1)
        low = ranges(np.where(missing, np.inf, columns), *tree)[0]
        high = ranges(np.where(missing, -np.inf, columns), *tree)[1]
        all_missing, some_missing = ranges(missing.astype(np.float64), *tree)
        return order, columns, tuple(tree), (low, high, (all_missing + some_missing).astype(np.int8))


@dataclass(frozen=True, eq=False)
class FunctionEnvelope(Envelope):
    """Under a function of people: every anchor is looked at, for one person after the other.

    Attributes
    ----------
    metric : FunctionMetric
    anchors : People
    """

    metric: Any
    anchors: People

    def narrow(self, people: People, values: FloatArray, lower: FloatArray, upper: FloatArray) -> Narrowed:
        """Return ``max(lower, L)`` and ``min(upper, U)``."""
        # Person by person: a function that adds up many rows at once may round differently with each number of them.
        decided = [
            _narrowed(self.metric.from_person(people.take([i]), self.anchors), values, lower[i], upper[i])
            for i in range(len(people))
        ]
        low, high, below, above = (np.array(part) for part in zip(*decided, strict=True))
        return Narrowed(low, high, below, above, len(people) * len(self.anchors))

    def numbers(self) -> Iterator[tuple[int, FloatArray]]:
        """All of them: the function does not say which matter."""
        return ((int(i), self.anchors.rows[:, i]) for i in np.flatnonzero(self.anchors.encoder.is_number))

    def among(self, anchors: People) -> Callable[[FloatArray], Narrowed]:
        """As in general, but asks the function only once."""
        distances = [self.metric.from_person(anchors.take([i]), self.anchors) for i in range(len(anchors))]

        def narrow(values: FloatArray) -> Narrowed:
            decided = [_narrowed(d, values, v, v) for d, v in zip(distances, values, strict=True)]
            low, high, below, above = (np.array(part) for part in zip(*decided, strict=True))
            return Narrowed(low, high, below, above, len(anchors) ** 2)

        return narrow


def _narrowed(distances: FloatArray, values: FloatArray, low: float, high: float) -> tuple[float, float, int, int]:
    """The envelopes for one person, and the anchors that decided."""
    floor, roof = values - distances, values + distances
    below, above = int(floor.argmax()), int(roof.argmin())
    raised, lowered = floor[below] > low, roof[above] < high
    return (
        float(floor[below]) if raised else low,
        float(roof[above]) if lowered else high,
        below if raised else -1,
        above if lowered else -1,
    )
