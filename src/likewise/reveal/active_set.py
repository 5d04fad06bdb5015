"""Pairs that may force the weights of a metric, found among more and more people."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from likewise._engine import should_compile
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.pairs.model_outputs import ModelOutputs
from likewise.pairs.plain import blocks_after
from likewise.pairs.points import Columns, Points, RowHashes, row_hashes
from likewise.pairs.scans import N_WORST, NO_PAIRS, Blocks, cells_of, gather_blocks
from likewise.reveal.shapes import CategoryShapes

SHORTFALL = 2e-10
"""Accepted relative shortfall of a distance, slightly above the solver's error."""

ROUNDING = 1e-11
"""As a share of the range of outputs: smaller differences are rounding errors, which need no weight."""


TOLERANCE = (1 - SHORTFALL) * ROUNDING
"""By how much differences of `shrunk` outputs may exceed the distance."""


class Subset(NamedTuple):
    """Some people, in the order of their rows in X; `rows` are these positions."""

    X: FloatArray
    outputs: FloatArray
    rows: IntArray

    def take(self, kept: Any) -> Subset:
        """Some of these people."""
        return Subset(self.X[kept], self.outputs[kept], self.rows[kept])


class Cuts(NamedTuple):
    """Pairs that violate a metric, as rows of X, with their coefficient of each weight and their differences.

    If not `complete`, there were too many, and these are the worst.
    """

    pairs: IntArray
    gaps: FloatArray
    differences: FloatArray
    complete: bool


class DistinctPeople(ABC):
    """Distinct people of X, in memory or on workers, with subsamples that depend on the people alone.

    Attributes
    ----------
    n_people : int
    shapes : CategoryShapes
        Of the columns that are compared.
    varies : ndarray of bool, of shape (n_weights,)
        Weights that affect some distance: those of columns in which people differ.
    unit : float
        Of outputs, as in `ModelOutputs`.
    template : Points
        Rows with the range of every column.
    n_rows : int
        Rows of X.
    largest_gap : float
        Largest difference of outputs, in units, between equal people: those in the rows `equal_rows`.
    """

    n_people: int
    shapes: CategoryShapes
    varies: BoolArray
    unit: float
    template: Points
    n_rows: int
    largest_gap: float
    equal_rows: tuple[int, int]

    @abstractmethod
    def subsample(self, share: float) -> Subset:
        """About this share of the people; smaller subsamples are contained in larger ones."""

    @abstractmethod
    def violated_pairs(self, share: float, scales: FloatArray, p: float, max_pairs: int, n_worst: int) -> Cuts:
        """Pairs of a subsample with ``D < (1 - SHORTFALL) (difference - ROUNDING)``.

        If there are more than `max_pairs`, the `n_worst` worst; 0 skips the search for these.
        """

    @abstractmethod
    def points_at(self, rows: IntArray) -> Points:
        """The people in some rows of X, increasing and distinct."""


class PeopleInMemory(DistinctPeople):
    """People in memory; `everyone.rows` are the first rows of the distinct ones."""

    def __init__(self, model_outputs: ModelOutputs, shapes: CategoryShapes) -> None:
        self.template, self.unit, self.shapes = model_outputs.points, model_outputs.unit, shapes
        groups, outputs, self.n_rows = self.template.groups(), model_outputs.outputs, len(self.template)
        first, own = groups.first, groups.first[groups.of_row]
        gap = np.abs(outputs - outputs[own]).sum(axis=1)
        worst = int(gap.argmax())
        self.largest_gap, self.equal_rows = float(gap[worst]), (int(own[worst]), worst)
        X = self.template.X[first]
        self.everyone = Subset(shapes.with_blocks(X), outputs[first], first)
        self.n_people, self.varies = len(first), shapes.varies(X, varying(X))
        self.hashes = row_hashes(X.T)

    def subsample(self, share: float) -> Subset:
        """About this share of the people."""
        return subsample(self.everyone, self.hashes, share)

    def violated_pairs(self, share: float, scales: FloatArray, p: float, max_pairs: int, n_worst: int) -> Cuts:
        """Pairs of a subsample that violate a metric."""
        return cuts_in_memory(self.subsample(share), scales, p, self.shapes, max_pairs, n_worst)

    def points_at(self, rows: IntArray) -> Points:
        """The people in some rows."""
        return Points.among(self.template.people.take(rows), self.template.nullable)


def varying(X: FloatArray) -> BoolArray:
    """Columns in which people differ."""
    return np.asarray(np.fmax.reduce(X, axis=0) > np.fmin.reduce(X, axis=0))


def subsample(people: Subset, hashes: RowHashes, share: float) -> Subset:
    """The people with the lowest share of all possible hashes."""
    return people if share >= 1 else people.take(hashes < np.uint64(int(share * 2**64)))


def cuts_in_memory(
    people: Subset, scales: FloatArray, p: float, shapes: CategoryShapes, max_pairs: int, n_worst: int
) -> Cuts:
    """Pairs that violate a metric, among people in memory."""
    if len(people.X) < 2:
        return as_cuts(people, NO_PAIRS, shapes, complete=True)
    outputs, kinds, (n, n_columns) = shrunk(people.outputs), shapes.kinds, people.X.shape
    if not shapes.tables and should_compile("likewise.pairs.gather._gather", cells_of(n * n / 2, n_columns, p)):
        from likewise.pairs.gather import gather

        limits: Any = {"tolerance": TOLERANCE, "max_pairs": max_pairs, "n_worst": n_worst}
        pairs, complete = gather(people.X, outputs, scales, p, kinds=kinds, **limits)
    else:
        plain = scales.copy()
        plain[list(shapes.tables)] = 0.0
        columns, answers = Columns(np.ascontiguousarray(people.X.T), kinds, plain, p), np.ascontiguousarray(outputs.T)

        def blocks() -> Blocks:
            return shapes.with_tables(blocks_after(columns, answers), people.X, scales)

        pairs, complete = gather_blocks(blocks, n, TOLERANCE, max_pairs, n_worst)
    return as_cuts(people, pairs, shapes, complete=complete)


def shrunk(outputs: FloatArray) -> FloatArray:
    """Outputs whose differences are smaller by the shortfall."""
    return (1 - SHORTFALL) * outputs


def as_cuts(people: Subset, pairs: IntArray, shapes: CategoryShapes, *, complete: bool) -> Cuts:
    """Cuts from pairs of positions among some people, sorted: the linear program must not depend on the search."""
    a, b = np.sort(pairs, axis=1).T
    order = np.argsort(a * len(people.rows) + b)
    a, b = a[order], b[order]
    differences = np.abs(people.outputs[a] - people.outputs[b]).sum(axis=1)
    rows = np.stack([people.rows[a], people.rows[b]], axis=1)
    return Cuts(rows, shapes.gaps(people.X[a], people.X[b]), differences, complete)


MIN_PAIRS = 2**16
_GROWTH = 8
_MIN_DECREASE, _MAX_DECREASE = 1e-6, 0.25


class ActiveSetSearch:
    """All pairs that violate a metric a little smaller than the current one, among more and more people.

    First all pairs of a small subsample are returned; then the pairs of eight times as many people that violate the
    weights found for the few, and so on (`docs/theory.md` §8). Searching with a metric a little smaller than those
    weights, the `reference`, returns more pairs than needed; in return no other pair violates any metric that is at
    least as large as the reference, and often one search of everyone is enough.
    """

    def __init__(self, people: DistinctPeople, p: float) -> None:
        self.people, self.p = people, p
        n, n_columns = people.n_people, people.shapes.n_weights
        wanted = np.clip(n // 4, MIN_PAIRS, 4 * MIN_PAIRS)
        self._n_pairs = max(1, min(int(wanted), 2**23 // n_columns))  # aimed at in one search
        self._share, self._shares = 0.0, [1.0]  # of the people: searched, and still to be searched
        while (n * self._shares[-1]) ** 2 > 2 * self._n_pairs and n * self._shares[-1] > 2 * _GROWTH:
            self._shares.append(self._shares[-1] / _GROWTH)
        self._reference: FloatArray | None = None  # None: not all violating pairs were returned

    def covers(self, scales: FloatArray) -> bool:
        """Whether every pair that violates these scales has been returned."""
        everyone = self._share == 1
        return everyone and self._reference is not None and bool((scales >= self._reference).all())

    def next_cuts(self, scales: FloatArray, ratios: FloatArray) -> Cuts:
        """The next pairs, near these scales.

        `ratios` are ``D / difference`` of the pairs returned so far: how many of them are just above 1 determines how
        much smaller the reference may be.
        """
        before = self._share
        if before == 0:
            self._share = self._shares.pop()
            return self._search(np.zeros_like(scales))
        if self._reference is not None and self._shares:
            self._share = self._shares.pop()
        decrease = self._decrease(ratios, (self._share / before) ** 2)
        if self._share == before:  # those pairs were near other weights, and say less about these
            decrease /= _GROWTH
        while decrease > _MIN_DECREASE:
            cuts = self._search((1 - decrease) * scales, worst=False)
            if cuts.complete:
                return cuts
            decrease /= _GROWTH  # too high an estimate: pairs that no search has returned are near too
        return self._search(scales)

    def _decrease(self, ratios: FloatArray, growth: float) -> float:
        """Relative decrease of the reference that returns about as many pairs as are aimed at."""
        if self._reference is None or not len(ratios):
            return 0.0
        rank = min(len(ratios) - 1, int(self._n_pairs / growth))
        decrease = 1 - 1 / max(1.0, float(np.partition(ratios, rank)[rank]))
        return min(decrease, _MAX_DECREASE)

    def _search(self, reference: FloatArray, *, worst: bool = True) -> Cuts:
        n_worst = N_WORST if worst else 0
        cuts = self.people.violated_pairs(self._share, reference, self.p, 4 * self._n_pairs, n_worst)
        self._reference = reference if cuts.complete else None
        return cuts
