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

_CELLS_AT_ONCE = 2**21  # numbers in the rows of pairs that are held at a time
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
        at_once = max(1, _CELLS_AT_ONCE // (len(first) * d))
        parts = [self._compare(groups[i : i + at_once], first, second, tactic, by) for i in range(0, n, at_once)]
        return np.concatenate(parts)

    def prospects(self, n: int) -> FloatArray:
        """The most promising pairs since the last call, half by share, half by excess; shape (n, 2, n_columns)."""
        by_share = sorted(self._prospects, key=lambda found: -found[0])[: max(1, n // 2)]
        by_excess = sorted(self._prospects, key=lambda found: -found[1])[: max(1, n // 2)]
        pairs = np.stack([rows for _, _, rows in [*by_share, *by_excess]])
        self._prospects = []
        return pairs[np.arange(n) % len(pairs)]

    def _compare(self, groups: FloatArray, first: IntArray, second: IntArray, tactic: str, by: str) -> FloatArray:
        n, m, d = groups.shape
        people = self.terrain.people(groups.reshape(-1, d))
        outputs = self.outputs(people).reshape(n, m, -1)
        difference = np.abs(outputs[:, first] - outputs[:, second]).sum(axis=2)
        distance = self._distances(people, n, first, second)
        bound = self.bound(distance)
        # Equal people say nothing: their excess is 0, which would look worse than that of all others.
        excess = np.where((difference > 0) | (bound > 0), difference - bound, -np.inf)
        share = (difference - _ROUNDING * self.unit) / (bound + _ROUNDING * self.unit)
        self.tried[tactic] += n * len(first)
        self.n_violations += int((excess > self.tolerance).sum())
        large = bound > 1e3 * _ROUNDING * self.unit
        if large.any():
            self.largest_share = max(self.largest_share, float((difference[large] / bound[large]).max()))
        every = np.arange(n)
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

    def _distances(self, people: People, n: int, first: IntArray, second: IntArray) -> FloatArray:
        """Between the first and the second of each pair in each of `n` groups."""
        groups = people.rows.reshape(n, -1, people.rows.shape[1])
        if self.metric.has_weights:  # rows say all; to pick people from a table would take longer than all the rest
            return self.metric.weights_of(people.coding).distances(groups[:, first], groups[:, second])
        members = np.arange(len(people)).reshape(n, -1)
        a, b = (people.take(members[:, which].ravel()) for which in (first, second))
        return self.metric.between(a, b).reshape(n, -1)

    def _remember(self, pairs: FloatArray, share: FloatArray, excess: FloatArray) -> None:
        for values in (share, excess):
            for i in np.argsort(-values, kind="stable")[:_KEPT_PER_BATCH]:
                self._prospects.append((float(share[i]), float(excess[i]), pairs[i].copy()))
        if len(self._prospects) > 8 * _KEPT:
            best = {id(x): x for key in (0, 1) for x in sorted(self._prospects, key=lambda x: -x[key])[:_KEPT]}
            self._prospects = list(best.values())
