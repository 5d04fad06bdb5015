"""Pairs that may force the weights of a metric, found among more and more people."""

from __future__ import annotations

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.reveal.crowds import ROUNDING, SHORTFALL, Crowd, Cuts, described

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
        from likewise.pairs.scans import worst_partners

        partner, _, ratio = worst_partners(self._columns, self._answers, scales, self.p, ROUNDING, self.kinds)
        people = np.arange(len(ratio))
        self._pairs = np.concatenate([np.stack([people, each], axis=1)[each >= 0] for each in partner])
        # Weights are lowered until a pair is at the shortfall; rounding must not put it beyond.
        return bool(ratio.min() >= 1 - 1.001 * SHORTFALL)

    def look(self, scales: FloatArray, ratios: FloatArray) -> Cuts:
        """Give for each person the partner who exceeds the distance most, by excess and by ratio."""
        return described(self.people, self._pairs, self.kinds, complete=False)
