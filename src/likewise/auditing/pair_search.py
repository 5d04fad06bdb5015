"""Strategies of `attack`: each makes groups of people, whose pairs a `PairEvaluator` compares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import NamedTuple

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.auditing.search_space import Restriction, SearchSpace
from likewise.kernel.distance import dual
from likewise.kernel.schema import People
from likewise.pairs.points import Points
from likewise.pairs.scans import within_groups

_PAIRS_PER_BATCH = 2**15
_ROUNDING = 1e-9  # in units of the outputs: shares of a smaller bound reflect rounding
_KEPT_PER_BATCH, _KEPT = 16, 128


class Pair(NamedTuple):
    """Two people, and their difference, distance and bound in units of the outputs."""

    rows: FloatArray
    difference: float
    distance: float
    bound: float

    @property
    def excess(self) -> float:
        """``difference - bound``."""
        return self.difference - self.bound


@dataclass(eq=False)
class PairEvaluator:
    """Compares all pairs within groups of people, and keeps the worst.

    Attributes
    ----------
    restriction : Restriction
        Moves groups of people to where they may be in the space that is searched.
    outputs : callable
        From people to outputs, of which ``sum_k |outputs[a, k] - outputs[b, k]|`` is the difference.
    bound : callable
        From distances to the differences allowed.
    unit : float
        Of the outputs.
    tolerance : float
        Excess to ignore.
    """

    restriction: Restriction
    outputs: Callable[[People], FloatArray]
    bound: Callable[[FloatArray], FloatArray]
    unit: float
    tolerance: float

    def __post_init__(self) -> None:
        self.space = self.restriction.space
        self.tried: Counter[str] = Counter()
        self.n_violations = 0
        self.worst: Pair | None = None
        self.largest_share = 0.0
        self._candidates: list[tuple[float, float, FloatArray]] = []

    def compare(self, groups: FloatArray, strategy: str, *, by: str = "share") -> FloatArray:
        """Compare all pairs within each group; return the worst pair of each, shape (n_groups, 2, n_columns).

        Parameters
        ----------
        groups : ndarray of shape (n_groups, n_members, n_columns)
        strategy : str
            Name under which the pairs are counted.
        by : {"share", "excess"}
            What makes a pair the worst of its group: the share of the bound that it uses, or the excess over it.
        """
        groups = self.restriction(groups)
        n, m, d = groups.shape
        n_pairs = n_pairs_among(m)
        people = self.space.people(groups.reshape(-1, d))
        outputs = self.outputs(people)
        parts, at_once = [], max(1, _PAIRS_PER_BATCH // n_pairs)
        for start in range(0, n, at_once):
            here = slice(start * m, (start + at_once) * m)
            # Picking people from a table is slow, and only a function reads it.
            some = People(people.rows[here], people.encoder, None) if self.space.metric.has_parts else people.take(here)
            parts.append(self._record(groups[start : start + at_once], *self._measured(some, outputs[here], m), by))
        self.tried[strategy] += n * n_pairs
        return np.concatenate(parts)

    def candidates(self, n: int) -> FloatArray:
        """The worst pairs since the last call, half by share, half by excess; shape (n, 2, n_columns)."""
        pairs = np.stack([rows for _, _, rows in self._best(max(1, n // 2))])
        self._candidates = []
        return pairs[np.arange(n) % len(pairs)]

    def _record(self, groups: FloatArray, difference: FloatArray, distance: FloatArray, by: str) -> FloatArray:
        """Count violations, keep the worst pairs, and return the worst pair of each group."""
        first, second = np.triu_indices(groups.shape[1], 1)
        bound = self.bound(distance)
        # Of people with equal outputs the closest would look worst: one person twice.
        least = min(self.tolerance, _ROUNDING * self.unit)
        excess = np.where(difference > least, difference - bound, -np.inf)
        share = (difference - _ROUNDING * self.unit) / (bound + _ROUNDING * self.unit)
        self.n_violations += int((excess > self.tolerance).sum())
        large = bound > 1e3 * _ROUNDING * self.unit
        if large.any():
            self.largest_share = max(self.largest_share, float((difference[large] / bound[large]).max()))
        every = np.arange(len(groups))
        worst = excess.argmax(axis=1)
        at = int(excess[every, worst].argmax())
        k = worst[at]
        if excess[at, k] > (-np.inf if self.worst is None else self.worst.excess):
            rows = groups[at, [first[k], second[k]]].copy()
            self.worst = Pair(rows, float(difference[at, k]), float(distance[at, k]), float(bound[at, k]))
        chosen = share.argmax(axis=1) if by == "share" else worst
        pairs: FloatArray = groups[every[:, None], np.stack([first[chosen], second[chosen]], axis=1)]
        self._keep_candidates(pairs, share[every, chosen], excess[every, chosen])
        return np.asarray(pairs)

    def _measured(self, people: People, outputs: FloatArray, m: int) -> tuple[FloatArray, FloatArray]:
        """Differences and distances of all pairs in each group of `m`; shape (n_groups, n_pairs) each."""
        metric = self.space.metric
        if metric.tables or metric.special or not metric.has_parts:
            members = np.arange(len(outputs)).reshape(-1, m)
            a, b = (members[:, which].ravel() for which in np.triu_indices(m, 1))
            difference = np.abs(outputs[a] - outputs[b]).sum(axis=1)
            if metric.has_parts:  # people of a search have no table
                distance = metric.distances(people.rows[a], people.rows[b])
            else:
                distance = metric.between(people.take(a), people.take(b))
            return difference.reshape(len(members), -1), distance.reshape(len(members), -1)
        columns = Points.among(people, np.array(people.missing(), dtype=np.int64), metric).columns_in(1.0)
        columns = columns._replace(scales=np.nan_to_num(columns.scales))
        return within_groups(columns, np.ascontiguousarray(outputs.T), m)

    def _keep_candidates(self, pairs: FloatArray, share: FloatArray, excess: FloatArray) -> None:
        for values in (share, excess):
            for i in np.argsort(-values, kind="stable")[:_KEPT_PER_BATCH]:
                self._candidates.append((float(share[i]), float(excess[i]), pairs[i].copy()))
        if len(self._candidates) > 8 * _KEPT:
            self._candidates = list({id(kept): kept for kept in self._best(_KEPT)}.values())

    def _best(self, n: int) -> list[tuple[float, float, FloatArray]]:
        """The `n` candidates with the largest shares, and those with the largest excesses."""
        return [kept for key in (0, 1) for kept in sorted(self._candidates, key=lambda each: -each[key])[:n]]


_SMALLEST_GROUP, _LARGEST_GROUP = 8, 64  # members of a group
_MIN_GROUPS = 2000  # before groups grow: with few pairs, more groups find more than larger groups
_CLIMBING_GROUP = 16  # members: many steps find more than many proposals per step
_PEOPLE_PER_BATCH = 8192
_SHORTEST_SEGMENT = 2e-7  # share of a line at which zooming stops
_N_CLIMBING = 128
_MOST_DRAWN = 60_000  # pairs from everywhere in the ranges: ten thousand people, of whom 0.1% of the domain holds ten

Strategy = Callable[[PairEvaluator, np.random.Generator, int], None]


def over_the_ranges(evaluator: PairEvaluator, rng: np.random.Generator, n: int) -> None:
    """People from everywhere in the ranges, whoever is in the file, with other values in one column or in several."""
    space, m, (domain, only) = evaluator.space, 4, (evaluator.restriction.domain, evaluator.restriction.only)
    columns = np.arange(len(space.scales))
    free = np.isin(columns, columns if only is None else only)
    for name in ("uniform", "stratified"):
        left = max(1, min(n, _MOST_DRAWN) // (2 * n_pairs_among(m)))
        while left > 0:
            size = min(left, _PEOPLE_PER_BATCH // m)
            left -= size
            base = space.spread(rng, size, domain, stratified=name == "stratified")
            groups = np.repeat(base[:, None], m, axis=1)
            one = rng.choice(np.flatnonzero(free), size)[:, None] == columns
            for k, chosen in enumerate((one, space.hidden & free, space.swappable & free), start=1):
                other = space.spread(rng, size, domain, stratified=False)
                groups[:, k] = np.where(chosen if np.any(chosen) else free, other, base)
            evaluator.compare(groups, name)


def random_pairs(evaluator: PairEvaluator, rng: np.random.Generator, n: int) -> None:
    """People around a person, at distances of every order of magnitude, different in one, some or all columns."""
    space = evaluator.space
    for m, size in _groups(n):
        groups = np.repeat(space.draw(rng, size)[:, None], m, axis=1)
        lengths = np.repeat(space.lengths(rng, size), m - 1, axis=0)
        others = groups[:, 1:].reshape(-1, groups.shape[2])
        groups[:, 1:] = space.moved(rng, others, lengths).reshape(size, m - 1, -1)
        evaluator.compare(groups, "random")


def around_breakpoints(evaluator: PairEvaluator, rng: np.random.Generator, n: int) -> None:
    """People at a at (a value at which the model may change), just below and above it, at all scales."""
    space = evaluator.space
    columns = _columns_with_breakpoints(space)
    for m, size in _groups(n):
        groups = np.repeat(space.draw(rng, size)[:, None], m, axis=1)
        lengths = space.lengths(rng, size)
        further = space.lengths(rng, size * (m - 8)).reshape(size, m - 8, groups.shape[2])
        further *= rng.choice([-1.0, 1.0], (size, m - 8, 1))
        own = rng.choice(columns, size)
        for i in np.unique(own):
            here, breakpoints = np.flatnonzero(own == i), space.breakpoints[i]
            k = rng.integers(len(breakpoints), size=len(here))
            at, after = breakpoints[k], breakpoints[np.minimum(k + 1, len(breakpoints) - 1)]
            off = lengths[here, i]
            groups[here, :8, i] = np.stack(
                [at, np.nextafter(at, -np.inf), np.nextafter(at, np.inf), at - off,
                 at + off, (at + after) / 2, after, breakpoints[np.maximum(k - 1, 0)]], axis=1,
            )  # fmt: skip
            groups[here, 8:, i] = at[:, None] + further[here, :, i]
        evaluator.compare(groups, "borders")


def _columns_with_breakpoints(space: SearchSpace) -> IntArray:
    return np.array([i for i in np.flatnonzero(space.continuous) if len(space.breakpoints[i])], dtype=np.intp)


def category_swaps(evaluator: PairEvaluator, rng: np.random.Generator, n: int) -> None:
    """People who differ only in categories, missing values, and columns of weight 0."""
    space = evaluator.space
    d, columns = len(space.scales), np.flatnonzero(space.swappable)
    for m, size in _groups(n):
        groups = np.repeat(space.draw(rng, size)[:, None], m, axis=1).reshape(-1, d)
        where = space.swappable & (rng.random(groups.shape) < rng.choice([0.0, 0.3, 1.0], (len(groups), 1)))
        where[np.arange(len(where)), rng.choice(columns, len(where))] = True
        where[::m] = False
        groups = space.swapped(rng, groups, where)
        others = space.draw(rng, len(groups))
        groups = np.where(where & space.hidden, others, groups)
        evaluator.compare(groups.reshape(size, m, d), "categories")


def along_lines(evaluator: PairEvaluator, rng: np.random.Generator, n: int) -> None:
    """Points between two people, or along one column; zooms in where the outputs change most."""
    space = evaluator.space
    for m, size in _groups(n, cost=lambda m: n_pairs_among(m) * _zooms(m)):
        steps = np.linspace(0.0, 1.0, m)[:, None]
        start = space.draw(rng, size)
        end = rng.permutation(space.draw(rng, size))
        own = rng.random((size, 1)) < 0.5, rng.integers(start.shape[1], size=(size, 1))
        single = own[0] & (own[1] != np.arange(start.shape[1]))
        fixed = single | ~space.continuous | np.isnan(start) | np.isnan(end)
        ends = np.stack([start, np.where(fixed, start, end)], axis=1)
        for _ in range(_zooms(m)):
            groups = ends[:, :1] + steps * (ends[:, 1:] - ends[:, :1])
            groups[:, -1] = ends[:, 1]
            ends = evaluator.compare(groups, "lines")


def along_gradients(evaluator: PairEvaluator, rng: np.random.Generator, n: int) -> None:
    """Steps of all sizes along the direction of steepest change per unit of distance, by finite differences.

    For a gradient g in units of the metric, the direction is ``sign(g) |g|^(q - 1)``, with ``1/p + 1/q = 1``.
    """
    space = evaluator.space
    columns = np.flatnonzero(space.continuous & ~space.hidden)
    k, unit, q = len(columns), space.unit[columns], dual(space.p)
    for m, size in _groups(n, cost=lambda m: n_pairs_among(m) + n_pairs_among(k + 1)):
        a = space.draw(rng, size)
        step = 10.0 ** rng.uniform(-7, -1, (size, 1))
        ahead = np.repeat(a[:, None], k + 1, axis=1)
        ahead[:, 1 + np.arange(k), columns] += step * unit
        evaluator.compare(ahead, "slopes")
        outputs = evaluator.outputs(space.people(ahead.reshape(-1, a.shape[1]))).reshape(size, k + 1, -1)
        which = rng.integers(outputs.shape[2], size=size)
        chosen = outputs[np.arange(size), :, which]
        g = (chosen[:, 1:] - chosen[:, :1]) / step
        steep = np.abs(g) / np.maximum(np.abs(g).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        direction = np.sign(g) * (steep == 1 if np.isinf(q) else steep ** (q - 1))
        groups = np.repeat(a[:, None], m, axis=1)
        sizes = 10.0 ** rng.uniform(-6, 0.5, (size, m - 1, 1)) * rng.choice([-1.0, 1.0], (size, m - 1, 1))
        groups[:, 1:, columns] += sizes * (direction * unit)[:, None]
        evaluator.compare(groups, "slopes")


def hill_climbing(evaluator: PairEvaluator, rng: np.random.Generator, n: int) -> None:
    """The worst pairs so far, moved as long as they become worse.

    They are moved together, separately, towards and away from each other; first by the share of the bound, which finds
    where the model is steepest, then by the excess, which finds how far that goes.
    """
    space, m = evaluator.space, min(largest_group(n // 8), _CLIMBING_GROUP) // 2 * 2
    size = min(_N_CLIMBING, 8 + n // (32 * n_pairs_among(m)))
    rounds = max(1, n // (n_pairs_among(m) * size))
    pairs = evaluator.candidates(size)
    d = pairs.shape[2]
    for i in range(rounds):
        both = np.repeat(pairs[:, None], m // 2, axis=1)  # the first stays unchanged
        for k in range(1, m // 2):
            both[:, k] = _MOVES[(k - 1) % len(_MOVES)](space, rng, pairs, space.lengths(rng, size))
        pairs = evaluator.compare(both.reshape(size, m, d), "climbing", by="share" if i < rounds // 2 else "excess")


def _together(space: SearchSpace, rng: np.random.Generator, pairs: FloatArray, lengths: FloatArray) -> FloatArray:
    """Both people moved by the same amount."""
    n, d = lengths.shape
    chosen = rng.random((n, d)) < rng.choice([1 / d, 0.4], (n, 1))
    return pairs + np.where(chosen & space.continuous, rng.uniform(-1, 1, (n, d)) * lengths, 0.0)[:, None]


def _apart(space: SearchSpace, rng: np.random.Generator, pairs: FloatArray, lengths: FloatArray) -> FloatArray:
    """Each person moved separately; some columns made equal, which shortens the distance."""
    n, d = lengths.shape
    lengths = np.repeat(lengths, 2, axis=0)
    moved = space.moved(rng, pairs.reshape(-1, d), lengths).reshape(n, 2, d)
    alike = rng.random((n, d)) < rng.choice([0.0, 1 / d, 0.4], (n, 1))
    moved[:, 1] = np.where(alike, moved[:, 0], moved[:, 1])
    return moved


def _stretched(space: SearchSpace, rng: np.random.Generator, pairs: FloatArray, lengths: FloatArray) -> FloatArray:
    """Further apart or closer together, on the line through both."""
    n = len(lengths)
    stretch = rng.uniform(-0.9, 1.0, (n, 1)) * 10.0 ** rng.uniform(-4, 0, (n, 1))
    gap = np.nan_to_num(np.where(space.continuous, pairs[:, 1] - pairs[:, 0], 0.0)) * stretch
    return pairs + np.stack([-gap, gap], axis=1)


_MOVES = (_together, _apart, _stretched)


def strategies_for(space: SearchSpace) -> dict[Strategy, float]:
    """The strategies that apply, with each one's share of the pairs."""
    moving = space.continuous
    shares: dict[Strategy, float] = {
        over_the_ranges: 0.1,
        random_pairs: 0.25,
        around_breakpoints: 0.2 * bool(len(_columns_with_breakpoints(space))),
        category_swaps: 0.1 * bool(space.swappable.any()),
        along_lines: 0.2 * bool(moving.any()),
        along_gradients: 0.1 * bool((moving & ~space.hidden).any()),
        hill_climbing: 0.25,  # the last one: it starts from what the others found
    }
    return {strategy: share / sum(shares.values()) for strategy, share in shares.items() if share}


def largest_group(n: int) -> int:
    """Size of the largest groups for `n` pairs: it grows once there are `_MIN_GROUPS` groups.

    Examples
    --------
    >>> largest_group(10_000), largest_group(1_000_000), largest_group(100_000_000)
    (8, 31, 64)
    """
    return int(min(max(sqrt(2 * n / _MIN_GROUPS), _SMALLEST_GROUP), _LARGEST_GROUP))


def n_pairs_among(m: int) -> int:
    """Number of pairs among `m` people."""
    return m * (m - 1) // 2


def _zooms(m: int) -> int:
    """How often to zoom in on a line of `m` points."""
    return ceil(log(_SHORTEST_SEGMENT) / log(1 / (m - 1)))


def _groups(n: int, cost: Callable[[int], int] = n_pairs_among) -> Iterator[tuple[int, int]]:
    """Group size and number of groups, batch by batch, for `n` pairs at `cost` pairs a group.

    Pairs of a large group are cheap, since each member is evaluated once; but they are near one another, and a local
    violation takes many groups to find. So about half of all people are in small groups, and half in large ones.
    """
    largest = largest_group(n)
    # Share of all pairs: m people have m - 1 pairs for every two of them.
    small = (_SMALLEST_GROUP - 1) / (largest + _SMALLEST_GROUP - 2)
    for m, share in ((_SMALLEST_GROUP, small), (largest, 1 - small)):
        left, at_once = max(1, int(n * share) // cost(m)), max(1, _PEOPLE_PER_BATCH // m)
        while left > 0:
            yield m, min(left, at_once)
            left -= at_once
