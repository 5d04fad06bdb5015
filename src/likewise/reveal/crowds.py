"""The distinct people among whom weights are looked for, wherever they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.pairs.marks import Marks, content_marks
from likewise.pairs.points import Kinds, Points, gaps_between
from likewise.pairs.population import Population

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
        Of outputs, as in `Population`.
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

    def __init__(self, population: Population, first: IntArray) -> None:
        self.population, self.unit, self.kinds = population, population.unit, population.points.kinds
        self.people = Some(population.points.X[first], population.outputs[first], first)
        self.n_people, self.varies = len(first), varying(self.people.X)
        self.marks = content_marks(self.people.X.T)

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


def chosen(people: Some, marks: Marks, share: float) -> Some:
    """Those people whose marks are in the lowest share of all marks."""
    if share >= 1:
        return people
    return people.take(marks < np.uint64(int(share * 2**64)))


def cuts_among(people: Some, scales: FloatArray, p: float, kinds: Kinds, most: int) -> Cuts:
    """Pairs that a metric does not explain, among people in memory."""
    from likewise.pairs.gathering import gather

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
