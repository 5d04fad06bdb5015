"""Pairs that may force the weights of a metric, found among more and more people."""

from __future__ import annotations

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.pairs.points import Points

ROUNDING = 1e-11
"""As a share of the range of outputs. Below it lie differences of rounding, which no metric should have to explain."""

SHORTFALL = 2e-10
"""A pair counts as explained at this relative shortfall, a little above what the solver leaves."""

LEAST_ROOM = 2**16
_GROWTH = 8
_MOST_LOWER = 0.25


class WideningSearch:
    """All pairs that a metric a little smaller than the present one does not explain, among more and more people.

    People come in a fixed random order. First all pairs of a few are given, then those pairs of eight times as many
    that the weights found for the few do not explain, and so on (`docs/theory.md` §8). Searching with a metric that is
    a little smaller than those weights, the `reference`, gives more pairs than needed; in return every metric that is
    at least as large as the reference is known to explain all other pairs, and often one search of everyone is enough.
    """

    def __init__(self, points: Points, outputs: FloatArray, p: float) -> None:
        self.points, self.outputs, self.p = points, outputs, p
        self._order = np.random.default_rng(0).permutation(len(points))  # a fixed seed: the same people, the same pairs
        wanted = np.clip(len(points) // 4, LEAST_ROOM, 4 * LEAST_ROOM)
        self._room = max(1, min(int(wanted), 2**23 // len(points.kinds)))  # pairs wanted from one search
        self._size, self._sizes = 0, [len(points)]  # people searched, and to be searched
        while self._sizes[-1] ** 2 > 2 * self._room and self._sizes[-1] > 2 * _GROWTH:
            self._sizes.append(self._sizes[-1] // _GROWTH)
        self._reference: FloatArray | None = None  # None: some pairs are not explained and were not given

    def covers(self, scales: FloatArray) -> bool:
        """Whether every pair that these scales do not explain has been given."""
        everyone = self._size == len(self._order)
        return everyone and self._reference is not None and bool((scales >= self._reference).all())

    def look(self, scales: FloatArray, ratios: FloatArray) -> IntArray:
        """Give the next pairs, near these scales; shape (n, 2).

        `ratios` are ``D / difference`` of the pairs given so far: how many of them are just above 1 tells how much
        smaller the reference may be.
        """
        before = self._size
        if before == 0:
            self._size = self._sizes.pop()
            return self._gather(np.zeros_like(scales))
        if self._reference is not None and self._sizes:
            self._size = self._sizes.pop()
        lower = self._lower(ratios, (self._size / before) ** 2)
        pairs = self._gather((1 - lower) * scales)
        return self._gather(scales) if lower and self._reference is None else pairs

    def _lower(self, ratios: FloatArray, growth: float) -> float:
        """By how much the reference may be smaller for as many pairs as there is room for."""
        if self._reference is None or not len(ratios):
            return 0.0
        rank = min(len(ratios) - 1, int(self._room / growth))
        lower = 1 - 1 / max(1.0, float(np.partition(ratios, rank)[rank]))
        return min(lower, _MOST_LOWER) if lower > 1e-6 else 0.0

    def _gather(self, reference: FloatArray) -> IntArray:
        from likewise.pairs.gathering import gather

        people = self._order[: self._size]
        found = gather(
            self.points.X[people],
            self.outputs[people],
            reference,
            self.p,
            tolerance=ROUNDING,
            shortfall=SHORTFALL,
            most=4 * self._room,
            kinds=self.points.kinds,
        )
        self._reference = reference if found.complete else None
        return np.sort(people[found.pairs], axis=1)


class EveryPair:
    """Looks at every pair in every round: what `WideningSearch` is tested and measured against."""

    def __init__(self, points: Points, outputs: FloatArray, p: float) -> None:
        self.kinds, self.p = points.kinds, p
        self._columns, self._answers = np.ascontiguousarray(points.X.T), np.ascontiguousarray(outputs.T)
        self._pairs: IntArray = np.empty((0, 2), dtype=np.int64)

    def covers(self, scales: FloatArray) -> bool:
        """Whether these scales explain every pair."""
        from likewise.pairs.scans import worst_partners

        partner, _, ratio = worst_partners(self._columns, self._answers, scales, self.p, ROUNDING, self.kinds)
        people = np.arange(len(ratio))
        self._pairs = np.concatenate([np.stack([people, each], axis=1)[each >= 0] for each in partner])
        # Weights are lowered until a pair is at the shortfall; rounding must not put it beyond.
        return bool(ratio.min() >= 1 - 1.001 * SHORTFALL)

    def look(self, scales: FloatArray, ratios: FloatArray) -> IntArray:
        """Give for each person the partner who exceeds the distance most, by excess and by ratio."""
        return self._pairs
