"""Ways to look for a pair whose outputs differ by too much; each makes groups of people, whose pairs are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import NamedTuple

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.auditing.domain import SearchSpace
from likewise.metrics.base import Metric, dual
from likewise.metrics.encoders import People
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
class PairEvaluator:
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

    terrain: SearchSpace
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
            if self.metric.known_weights(people.encoder) is not None:  # selecting from tables is slow
                found = self._by_weights(People(people.rows[here], people.encoder, None), outputs[here], m)
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
        from likewise.pairs.kernels import within_groups

        weights = self.metric.weights_of(people.encoder)
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


_FEWEST, _MOST = 8, 64  # members of a group
_PLACES = 2000  # groups, before they grow: as long as pairs are few, more places say more than more people in each
_MOST_CLIMBING = 16  # members: who climbs needs many steps more than many proposals for each
_PEOPLE_AT_ONCE = 8192
_FINEST = 2e-7  # share of a line to which it is cut, again and again, where the outputs move most
_CLIMBERS = 128

Strategy = Callable[[PairEvaluator, np.random.Generator, int], None]


def random_pairs(judge: PairEvaluator, rng: np.random.Generator, n: int) -> None:
    """People around one, at a distance of any order of magnitude, different in one, some or all columns."""
    terrain = judge.terrain
    for m, size in _groups(n):
        groups = np.repeat(terrain.draw(rng, size)[:, None], m, axis=1)
        lengths = np.repeat(terrain.lengths(rng, size), m - 1, axis=0)
        others = groups[:, 1:].reshape(-1, groups.shape[2])
        groups[:, 1:] = terrain.moved(rng, others, lengths).reshape(size, m - 1, -1)
        judge.compare(groups, "random")


def straddling(judge: PairEvaluator, rng: np.random.Generator, n: int) -> None:
    """People on a value at which the model may turn, just below and above, at all scales, and at its neighbours."""
    terrain = judge.terrain
    columns = _with_landmarks(terrain)
    for m, size in _groups(n):
        groups = np.repeat(terrain.draw(rng, size)[:, None], m, axis=1)
        lengths = terrain.lengths(rng, size)
        further = terrain.lengths(rng, size * (m - 8)).reshape(size, m - 8, groups.shape[2])
        further *= rng.choice([-1.0, 1.0], (size, m - 8, 1))
        own = rng.choice(columns, size)
        for i in np.unique(own):
            here, marks = np.flatnonzero(own == i), terrain.landmarks[i]
            k = rng.integers(len(marks), size=len(here))
            mark, after = marks[k], marks[np.minimum(k + 1, len(marks) - 1)]
            off = lengths[here, i]
            groups[here, :8, i] = np.stack(
                [mark, np.nextafter(mark, -np.inf), np.nextafter(mark, np.inf), mark - off, mark + off,
                 (mark + after) / 2, after, marks[np.maximum(k - 1, 0)]], axis=1,
            )  # fmt: skip
            groups[here, 8:, i] = mark[:, None] + further[here, :, i]
        judge.compare(groups, "borders")


def _with_landmarks(terrain: SearchSpace) -> IntArray:
    return np.array([i for i in np.flatnonzero(terrain.free) if len(terrain.landmarks[i])], dtype=np.intp)


def exchanging(judge: PairEvaluator, rng: np.random.Generator, n: int) -> None:
    """People who are the same but for categories, what is missing, and columns that must not matter."""
    terrain = judge.terrain
    d, columns = len(terrain.scales), np.flatnonzero(terrain.exchangeable)
    for m, size in _groups(n):
        groups = np.repeat(terrain.draw(rng, size)[:, None], m, axis=1).reshape(-1, d)
        where = terrain.exchangeable & (rng.random(groups.shape) < rng.choice([0.0, 0.3, 1.0], (len(groups), 1)))
        where[np.arange(len(where)), rng.choice(columns, len(where))] = True
        where[::m] = False
        groups = terrain.exchanged(rng, groups, where)
        others = terrain.draw(rng, len(groups))
        groups = np.where(where & terrain.hidden, others, groups)
        judge.compare(groups.reshape(size, m, d), "categories")


def along_lines(judge: PairEvaluator, rng: np.random.Generator, n: int) -> None:
    """Points between two people, or along one column; again and again on the part where the outputs move most."""
    terrain = judge.terrain
    for m, size in _groups(n, cost=lambda m: pairs_of(m) * _zooms(m)):
        steps = np.linspace(0.0, 1.0, m)[:, None]
        start = terrain.draw(rng, size)
        end = rng.permutation(terrain.draw(rng, size))
        single = (rng.random((size, 1)) < 0.5) & (
            rng.integers(start.shape[1], size=(size, 1)) != np.arange(start.shape[1])
        )
        fixed = single | ~terrain.free | np.isnan(start) | np.isnan(end)
        ends = np.stack([start, np.where(fixed, start, end)], axis=1)
        for _ in range(_zooms(m)):
            groups = ends[:, :1] + steps * (ends[:, 1:] - ends[:, :1])
            groups[:, -1] = ends[:, 1]
            ends = judge.compare(groups, "lines")


def along_slopes(judge: PairEvaluator, rng: np.random.Generator, n: int) -> None:
    """From a person along the steepest way per unit of distance, as finite differences have it, by steps of all sizes.

    Where the gradient in units of the metric is g, that way is ``sign(g) |g|^(q - 1)``, with ``1/p + 1/q = 1``.
    """
    terrain = judge.terrain
    columns = np.flatnonzero(terrain.free & ~terrain.hidden)
    k, unit, q = len(columns), terrain.unit[columns], dual(terrain.p)
    for m, size in _groups(n, cost=lambda m: pairs_of(m) + pairs_of(k + 1)):
        a = terrain.draw(rng, size)
        step = 10.0 ** rng.uniform(-7, -1, (size, 1))
        ahead = np.repeat(a[:, None], k + 1, axis=1)
        ahead[:, 1 + np.arange(k), columns] += step * unit
        judge.compare(ahead, "slopes")
        outputs = judge.outputs(terrain.people(ahead.reshape(-1, a.shape[1]))).reshape(size, k + 1, -1)
        which = rng.integers(outputs.shape[2], size=size)
        chosen = outputs[np.arange(size), :, which]
        g = (chosen[:, 1:] - chosen[:, :1]) / step
        steep = np.abs(g) / np.maximum(np.abs(g).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        way = np.sign(g) * (steep == 1 if np.isinf(q) else steep ** (q - 1))
        groups = np.repeat(a[:, None], m, axis=1)
        sizes = 10.0 ** rng.uniform(-6, 0.5, (size, m - 1, 1)) * rng.choice([-1.0, 1.0], (size, m - 1, 1))
        groups[:, 1:, columns] += sizes * (way * unit)[:, None]
        judge.compare(groups, "slopes")


def climbing(judge: PairEvaluator, rng: np.random.Generator, n: int) -> None:
    """The most promising pairs so far, moved in one or more columns as long as they become worse.

    Moved together, apart, towards and away from each other; first by the share of the bound that they use, which finds
    where the model is steepest, then by the excess, which finds how far that goes.
    """
    terrain, m = judge.terrain, min(most_members(n // 8), _MOST_CLIMBING) // 2 * 2
    size = min(_CLIMBERS, 8 + n // (32 * pairs_of(m)))
    rounds = max(1, n // (pairs_of(m) * size))
    pairs = judge.prospects(size)
    d = pairs.shape[2]
    for i in range(rounds):
        both = np.repeat(pairs[:, None], m // 2, axis=1)  # the first stays as it is
        for k in range(1, m // 2):
            both[:, k] = _MOVES[(k - 1) % len(_MOVES)](terrain, rng, pairs, terrain.lengths(rng, size))
        pairs = judge.compare(both.reshape(size, m, d), "climbing", by="share" if i < rounds // 2 else "excess")


def _together(terrain: SearchSpace, rng: np.random.Generator, pairs: FloatArray, lengths: FloatArray) -> FloatArray:
    """Both moved alike."""
    n, d = lengths.shape
    chosen = rng.random((n, d)) < rng.choice([1 / d, 0.4], (n, 1))
    return pairs + np.where(chosen & terrain.free, rng.uniform(-1, 1, (n, d)) * lengths, 0.0)[:, None]


def _apart(terrain: SearchSpace, rng: np.random.Generator, pairs: FloatArray, lengths: FloatArray) -> FloatArray:
    """Each moved on its own; some columns made alike: what makes no difference should make none to the distance."""
    n, d = lengths.shape
    lengths = np.repeat(lengths, 2, axis=0)
    moved = terrain.moved(rng, pairs.reshape(-1, d), lengths).reshape(n, 2, d)
    alike = rng.random((n, d)) < rng.choice([0.0, 1 / d, 0.4], (n, 1))
    moved[:, 1] = np.where(alike, moved[:, 0], moved[:, 1])
    return moved


def _stretched(terrain: SearchSpace, rng: np.random.Generator, pairs: FloatArray, lengths: FloatArray) -> FloatArray:
    """Further apart or closer to one another, on the line through both."""
    n = len(lengths)
    stretch = rng.uniform(-0.9, 1.0, (n, 1)) * 10.0 ** rng.uniform(-4, 0, (n, 1))
    gap = np.nan_to_num(np.where(terrain.free, pairs[:, 1] - pairs[:, 0], 0.0)) * stretch
    return pairs + np.stack([-gap, gap], axis=1)


_MOVES = (_together, _apart, _stretched)


def strategies_for(terrain: SearchSpace) -> dict[Strategy, float]:
    """What can be tried there, with the share of all pairs that each is given."""
    shares: dict[Strategy, float] = {random_pairs: 0.25, climbing: 0.25}
    if terrain.free.any():
        shares |= {along_lines: 0.2}
        if len(_with_landmarks(terrain)):
            shares |= {straddling: 0.2}
        if (terrain.free & ~terrain.hidden).any():
            shares |= {along_slopes: 0.1}
    if terrain.exchangeable.any():
        shares |= {exchanging: 0.1}
    total = sum(shares.values())
    order = [random_pairs, straddling, exchanging, along_lines, along_slopes, climbing]  # who climbs comes last
    return {tactic: shares[tactic] / total for tactic in order if tactic in shares}


def most_members(n: int) -> int:
    """Members of the largest groups, for `n` pairs: they grow once there are `_PLACES` of them.

    Examples
    --------
    >>> most_members(10_000), most_members(1_000_000), most_members(100_000_000)
    (8, 31, 64)
    """
    return int(min(max(sqrt(2 * n / _PLACES), _FEWEST), _MOST))


def pairs_of(m: int) -> int:
    """Pairs among `m` people."""
    return m * (m - 1) // 2


def _zooms(m: int) -> int:
    """How often a line of `m` points is cut to the part between two of them."""
    return ceil(log(_FINEST) / log(1 / (m - 1)))


def _groups(n: int, cost: Callable[[int], int] = pairs_of) -> Iterator[tuple[int, int]]:
    """Members of a group and number of groups, as many as are made at a time, for `n` pairs at `cost` pairs a group.

    A pair in a large group is cheap, since each member is asked about once for all; but pairs around one place are no
    independent draws, and what shows in one place alone takes many places to find. So about half of all people are in
    small groups, and half in large ones.
    """
    most = most_members(n)
    small = (_FEWEST - 1) / (most + _FEWEST - 2)  # of all pairs; m people have m - 1 pairs for every two of them
    for m, share in ((_FEWEST, small), (most, 1 - small)):
        left, at_once = max(1, int(n * share) // cost(m)), max(1, _PEOPLE_AT_ONCE // m)
        while left > 0:
            yield m, min(left, at_once)
            left -= at_once
