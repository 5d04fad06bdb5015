"""Groups of people compared pair by pair with what a metric, or a promise, allows; the worst are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.auditing.terrain import Terrain
from likewise.metrics.abstract import Metric
from likewise.metrics.people import People
from likewise.pairs.points import Points

_PAIRS_AT_ONCE = 2**15
_ROUNDING = 1e-9  # of the outputs' unit: shares of a smaller bound say more about rounding than about the model
_KEPT_PER_BATCH, _KEPT = 16, 128


class Pair(NamedTuple):
    """Two people, and what was found between them; in units of the outputs."""

    rows: FloatArray
    difference: float
    distance: float
    bound: float

    @property
    def excess(self) -> float:
        """What the difference exceeds the bound by."""
        return self.difference - self.bound


@dataclass(eq=False)
class Judge:
    """Compares groups of people, and remembers the worst pairs.

    Attributes
    ----------
    terrain : Terrain
    outputs : callable
        From people to outputs, of which ``sum_k |outputs[a, k] - outputs[b, k]|`` is the difference.
    metric : Metric
    bound : callable
        From distances to the differences allowed.
    unit : float
        Of the outputs.
    tolerance : float
        Excess that does not count.
    """

    terrain: Terrain
    outputs: Callable[[People], FloatArray]
    metric: Metric
    bound: Callable[[FloatArray], FloatArray]
    unit: float
    tolerance: float

    def __post_init__(self) -> None:
        self.tried: Counter[str] = Counter()
        self.n_violations = 0
        self.worst: Pair | None = None
        self.largest_share = 0.0
        self._prospects: list[tuple[float, float, FloatArray]] = []

    def compare(self, groups: FloatArray, tactic: str, *, by: str = "share") -> FloatArray:
        """Compare all pairs within each group; return the worst pair of each, shape (n_groups, 2, n_columns).

        Parameters
        ----------
        groups : ndarray of shape (n_groups, n_members, n_columns)
        tactic : str
            Who is asking, for the record.
        by : {"share", "excess"}
            What the worst pair of a group is worst by: the share of the bound that it uses, whatever its distance, or
            the excess over the bound.
        """
        n, m, d = groups.shape
        first, second = np.triu_indices(m, 1)
        people = self.terrain.people(groups.reshape(-1, d))
        outputs = self.outputs(people)
        parts, at_once = [], max(1, _PAIRS_AT_ONCE // len(first))
        for start in range(0, n, at_once):
            here = slice(start * m, (start + at_once) * m)
            if self.metric.has_weights:  # rows say all; to pick people from a table would take longer than all the rest
                found = self._by_weights(People(people.rows[here], people.coding, None), outputs[here], m)
            else:
                found = self._by_function(people.take(here), outputs[here], first, second)
            parts.append(self._judged(groups[start : start + at_once], *found, by))
        self.tried[tactic] += n * len(first)
        return np.concatenate(parts)

    def prospects(self, n: int) -> FloatArray:
        """The most promising pairs since the last call, half by share, half by excess; shape (n, 2, n_columns)."""
        by_share = sorted(self._prospects, key=lambda found: -found[0])[: max(1, n // 2)]
        by_excess = sorted(self._prospects, key=lambda found: -found[1])[: max(1, n // 2)]
        pairs = np.stack([rows for _, _, rows in [*by_share, *by_excess]])
        self._prospects = []
        return pairs[np.arange(n) % len(pairs)]

    def _judged(self, groups: FloatArray, difference: FloatArray, distance: FloatArray, by: str) -> FloatArray:
        """The worst pair of each group; the worst of all, and the most promising, are kept."""
        first, second = np.triu_indices(groups.shape[1], 1)
        bound = self.bound(distance)
        # Equal people say nothing: their excess is 0, which would look worse than that of all others.
        excess = np.where((difference > 0) | (bound > 0), difference - bound, -np.inf)
        share = (difference - _ROUNDING * self.unit) / (bound + _ROUNDING * self.unit)
        self.n_violations += int((excess > self.tolerance).sum())
        large = bound > 1e3 * _ROUNDING * self.unit
        if large.any():
            self.largest_share = max(self.largest_share, float((difference[large] / bound[large]).max()))
        every = np.arange(len(groups))
        worst = excess.argmax(axis=1)
        at = int(excess[every, worst].argmax())
        if self.worst is None or excess[at, worst[at]] > self.worst.excess:
            k = worst[at]
            rows = groups[at, [first[k], second[k]]].copy()
            self.worst = Pair(rows, float(difference[at, k]), float(distance[at, k]), float(bound[at, k]))
        chosen = share.argmax(axis=1) if by == "share" else worst
        found: FloatArray = groups[every[:, None], np.stack([first[chosen], second[chosen]], axis=1)]
        self._remember(found, share[every, chosen], excess[every, chosen])
        return np.asarray(found)

    def _by_weights(self, people: People, outputs: FloatArray, m: int) -> tuple[FloatArray, FloatArray]:
        """Differences and distances of all pairs in each group of `m`; shape (n_groups, n_pairs) each."""
        from likewise.pairs.scans import within_groups

        weights = self.metric.weights_of(people.coding)
        points = Points.among(people, np.array(people.missing(), dtype=np.int64))
        return within_groups(
            np.ascontiguousarray(points.X.T), np.ascontiguousarray(outputs.T), points.kinds,
            np.nan_to_num(points.scales(weights)), weights.p, m,
        )  # fmt: skip

    def _by_function(
        self, people: People, outputs: FloatArray, first: IntArray, second: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """The same for a metric that has no weights: its function is asked about every pair."""
        members = np.arange(len(people)).reshape(-1, second[-1] + 1)
        a, b = (members[:, which].ravel() for which in (first, second))
        difference = np.abs(outputs[a] - outputs[b]).sum(axis=1)
        distance = self.metric.between(people.take(a), people.take(b))
        return difference.reshape(len(members), -1), distance.reshape(len(members), -1)

    def _remember(self, pairs: FloatArray, share: FloatArray, excess: FloatArray) -> None:
        for values in (share, excess):
            for i in np.argsort(-values, kind="stable")[:_KEPT_PER_BATCH]:
                self._prospects.append((float(share[i]), float(excess[i]), pairs[i].copy()))
        if len(self._prospects) > 8 * _KEPT:
            best = {id(x): x for key in (0, 1) for x in sorted(self._prospects, key=lambda x: -x[key])[:_KEPT]}
            self._prospects = list(best.values())
