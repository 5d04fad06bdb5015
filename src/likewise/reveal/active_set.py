"""Pairs that may force the weights of a metric, found among more and more people."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.pairs.model_outputs import ModelOutputs
from likewise.pairs.points import Kinds, Points, RowHashes, gaps_between, row_hashes

SHORTFALL = 2e-10
"""A pair counts as explained at this relative shortfall, a little above what the solver leaves."""

ROUNDING = 1e-11
"""As a share of the range of outputs. Below it lie differences of rounding, which no metric should have to explain."""


TOLERANCE = (1 - SHORTFALL) * ROUNDING
"""By how much differences of `lowered` outputs may exceed the distance."""


class Some(NamedTuple):
    """Some people, in the order of their rows in the population."""

    X: FloatArray
    outputs: FloatArray
    rows: IntArray

    def take(self, kept: Any) -> Some:
        """Some of these."""
        return Some(self.X[kept], self.outputs[kept], self.rows[kept])


class Cuts(NamedTuple):
    """Pairs that a metric does not explain, as rows of the population, with what a linear program needs of them.

    If they are not `complete`, there was no room for all, and these are the worst.
    """

    pairs: IntArray
    gaps: FloatArray
    differences: FloatArray
    complete: bool


class Crowd(ABC):
    """Distinct people, of whom a share can be asked for: always the same, by what is known of them.

    Attributes
    ----------
    n_people : int
    kinds : ndarray of shape (n_columns,)
    varies : ndarray of bool, of shape (n_columns,)
        Columns in which people differ.
    unit : float
        Of outputs, as in `ModelOutputs`.
    """

    n_people: int
    kinds: Kinds
    varies: BoolArray
    unit: float

    @abstractmethod
    def some(self, share: float) -> Some:
        """About this share of the people; those of a smaller share are among them."""

    @abstractmethod
    def unexplained(self, share: float, scales: FloatArray, p: float, most: int) -> Cuts:
        """Pairs of a share of the people with ``D < (1 - SHORTFALL) (difference - ROUNDING)``; room for `most`."""

    @abstractmethod
    def points_at(self, rows: IntArray) -> Points:
        """The people in some rows of the population, increasing and distinct."""


class Present(Crowd):
    """People in memory; `first` are the rows of the distinct ones."""

    def __init__(self, population: ModelOutputs, first: IntArray) -> None:
        self.population, self.unit, self.kinds = population, population.unit, population.points.kinds
        self.people = Some(population.points.X[first], population.outputs[first], first)
        self.n_people, self.varies = len(first), varying(self.people.X)
        self.marks = row_hashes(self.people.X.T)

    def some(self, share: float) -> Some:
        """About this share of the people."""
        return chosen(self.people, self.marks, share)

    def unexplained(self, share: float, scales: FloatArray, p: float, most: int) -> Cuts:
        """Pairs of a share of the people that a metric does not explain."""
        return cuts_among(self.some(share), scales, p, self.kinds, most)

    def points_at(self, rows: IntArray) -> Points:
        """The people in some rows."""
        points = self.population.points
        return Points.among(points.people.take(rows), points.gappy)


def varying(X: FloatArray) -> BoolArray:
    """Columns in which people differ."""
    return np.asarray(np.fmax.reduce(X, axis=0) > np.fmin.reduce(X, axis=0))


def chosen(people: Some, marks: RowHashes, share: float) -> Some:
    """Those people whose marks are in the lowest share of all marks."""
    if share >= 1:
        return people
    return people.take(marks < np.uint64(int(share * 2**64)))


def cuts_among(people: Some, scales: FloatArray, p: float, kinds: Kinds, most: int) -> Cuts:
    """Pairs that a metric does not explain, among people in memory."""
    from likewise.pairs.gather import gather

    if len(people.X) < 2:
        return described(people, np.empty((0, 2), dtype=np.int64), kinds, complete=True)
    found = gather(people.X, lowered(people.outputs), scales, p, tolerance=TOLERANCE, most=most, kinds=kinds)
    return described(people, found.pairs, kinds, complete=found.complete)


def lowered(outputs: FloatArray) -> FloatArray:
    """Outputs whose differences are smaller by the shortfall."""
    return (1 - SHORTFALL) * outputs


def described(people: Some, pairs: IntArray, kinds: Kinds, *, complete: bool) -> Cuts:
    """Pairs of positions among some people as cuts."""
    a, b = np.sort(pairs, axis=1).T
    differences = np.abs(people.outputs[a] - people.outputs[b]).sum(axis=1)
    rows = np.stack([people.rows[a], people.rows[b]], axis=1)
    return Cuts(rows, gaps_between(people.X[a], people.X[b], kinds), differences, complete)


LEAST_ROOM = 2**16
_GROWTH = 8
_MOST_LOWER = 0.25


class WideningSearch:
    """All pairs that a metric a little smaller than the present one does not explain, among more and more people.

    First all pairs of a few people are given, chosen by what is known of them as if at random; then those pairs of
    eight times as many that the weights found for the few do not explain, and so on (`docs/theory.md` §8). Searching
    with a metric that is a little smaller than those weights, the `reference`, gives more pairs than needed; in return
    every metric that is at least as large as the reference is known to explain all other pairs, and often one search of
    everyone is enough.
    """

    def __init__(self, crowd: Crowd, p: float) -> None:
        self.crowd, self.p = crowd, p
        n, n_columns = crowd.n_people, len(crowd.kinds)
        wanted = np.clip(n // 4, LEAST_ROOM, 4 * LEAST_ROOM)
        self._room = max(1, min(int(wanted), 2**23 // n_columns))  # pairs wanted from one search
        self._share, self._shares = 0.0, [1.0]  # of the people: searched, and to be searched
        while (n * self._shares[-1]) ** 2 > 2 * self._room and n * self._shares[-1] > 2 * _GROWTH:
            self._shares.append(self._shares[-1] / _GROWTH)
        self._reference: FloatArray | None = None  # None: some pairs are not explained and were not given

    def covers(self, scales: FloatArray) -> bool:
        """Whether every pair that these scales do not explain has been given."""
        everyone = self._share == 1
        return everyone and self._reference is not None and bool((scales >= self._reference).all())

    def look(self, scales: FloatArray, ratios: FloatArray) -> Cuts:
        """Give the next pairs, near these scales.

        `ratios` are ``D / difference`` of the pairs given so far: how many of them are just above 1 tells how much
        smaller the reference may be.
        """
        before = self._share
        if before == 0:
            self._share = self._shares.pop()
            return self._search(np.zeros_like(scales))
        if self._reference is not None and self._shares:
            self._share = self._shares.pop()
        lower = self._lower(ratios, (self._share / before) ** 2)
        cuts = self._search((1 - lower) * scales)
        return self._search(scales) if lower and not cuts.complete else cuts

    def _lower(self, ratios: FloatArray, growth: float) -> float:
        """By how much the reference may be smaller for as many pairs as there is room for."""
        if self._reference is None or not len(ratios):
            return 0.0
        rank = min(len(ratios) - 1, int(self._room / growth))
        lower = 1 - 1 / max(1.0, float(np.partition(ratios, rank)[rank]))
        return min(lower, _MOST_LOWER) if lower > 1e-6 else 0.0

    def _search(self, reference: FloatArray) -> Cuts:
        cuts = self.crowd.unexplained(self._share, reference, self.p, 4 * self._room)
        self._reference = reference if cuts.complete else None
        return cuts


class EveryPair:
    """Looks at every pair in every round: what `WideningSearch` is tested and measured against."""

    def __init__(self, crowd: Crowd, p: float) -> None:
        self.people, self.kinds, self.p = crowd.some(1.0), crowd.kinds, p
        self._columns, self._answers = (np.ascontiguousarray(lines.T) for lines in self.people[:2])
        self._pairs: IntArray = np.empty((0, 2), dtype=np.int64)

    def covers(self, scales: FloatArray) -> bool:
        """Whether these scales explain every pair."""
        from likewise.pairs.kernels import worst_partners

        partner, _, ratio = worst_partners(self._columns, self._answers, scales, self.p, ROUNDING, self.kinds)
        people = np.arange(len(ratio))
        self._pairs = np.concatenate([np.stack([people, each], axis=1)[each >= 0] for each in partner])
        # Weights are lowered until a pair is at the shortfall; rounding must not put it beyond.
        return bool(ratio.min() >= 1 - 1.001 * SHORTFALL)

    def look(self, scales: FloatArray, ratios: FloatArray) -> Cuts:
        """Give for each person the partner who exceeds the distance most, by excess and by ratio."""
        return described(self.people, self._pairs, self.kinds, complete=False)
