"""Ways to look for a pair whose outputs differ by too much; each makes groups of people, whose pairs are compared."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from likewise._typing import FloatArray
from likewise.auditing.terrain import Terrain
from likewise.auditing.verdicts import Judge
from likewise.enforce.additive.shapes import dual

MEMBERS = 8  # of a group
PAIRS = MEMBERS * (MEMBERS - 1) // 2
_GROUPS_AT_ONCE = 1024
_ZOOMS = 8  # times that a line is cut to the part where the outputs move most
_CLIMBERS = 128

Tactic = Callable[[Judge, np.random.Generator, int], None]


def random_pairs(judge: Judge, rng: np.random.Generator, n: int) -> None:
    """People around one, at a distance of any order of magnitude, different in one, some or all columns."""
    terrain = judge.terrain
    for size in _sizes(n, PAIRS):
        groups = np.repeat(terrain.draw(rng, size)[:, None], MEMBERS, axis=1)
        lengths = np.repeat(terrain.lengths(rng, size), MEMBERS - 1, axis=0)
        others = groups[:, 1:].reshape(-1, groups.shape[2])
        groups[:, 1:] = terrain.moved(rng, others, lengths).reshape(size, MEMBERS - 1, -1)
        judge.compare(groups, "random")


def straddling(judge: Judge, rng: np.random.Generator, n: int) -> None:
    """People on, just below and just above a value at which the model may turn, and at its neighbours."""
    terrain = judge.terrain
    columns = np.array([i for i in np.flatnonzero(terrain.free) if len(terrain.landmarks[i])])
    for size in _sizes(n, PAIRS):
        groups = np.repeat(terrain.draw(rng, size)[:, None], MEMBERS, axis=1)
        lengths = terrain.lengths(rng, size)
        own = rng.choice(columns, size)
        for i in np.unique(own):
            here, marks = np.flatnonzero(own == i), terrain.landmarks[i]
            k = rng.integers(len(marks), size=len(here))
            mark, after = marks[k], marks[np.minimum(k + 1, len(marks) - 1)]
            off = lengths[here, i]
            groups[here, :, i] = np.stack(
                [mark, np.nextafter(mark, -np.inf), np.nextafter(mark, np.inf), mark - off, mark + off,
                 (mark + after) / 2, after, marks[np.maximum(k - 1, 0)]], axis=1,
            )  # fmt: skip
        judge.compare(groups, "borders")


def exchanging(judge: Judge, rng: np.random.Generator, n: int) -> None:
    """People who are the same but for categories, what is missing, and columns that must not matter."""
    terrain = judge.terrain
    d, columns = len(terrain.scales), np.flatnonzero(terrain.exchangeable)
    for size in _sizes(n, PAIRS):
        groups = np.repeat(terrain.draw(rng, size)[:, None], MEMBERS, axis=1).reshape(-1, d)
        where = terrain.exchangeable & (rng.random(groups.shape) < rng.choice([0.0, 0.3, 1.0], (len(groups), 1)))
        where[np.arange(len(where)), rng.choice(columns, len(where))] = True
        where[::MEMBERS] = False
        groups = terrain.exchanged(rng, groups, where)
        others = terrain.draw(rng, len(groups))
        groups = np.where(where & terrain.hidden, others, groups)
        judge.compare(groups.reshape(size, MEMBERS, d), "categories")


def along_lines(judge: Judge, rng: np.random.Generator, n: int) -> None:
    """Points between two people, or along one column; again and again on the part where the outputs move most."""
    terrain = judge.terrain
    steps = np.linspace(0.0, 1.0, MEMBERS)[:, None]
    for size in _sizes(n, PAIRS * _ZOOMS):
        start = terrain.draw(rng, size)
        end = rng.permutation(terrain.draw(rng, size))
        single = (rng.random((size, 1)) < 0.5) & (
            rng.integers(start.shape[1], size=(size, 1)) != np.arange(start.shape[1])
        )
        fixed = single | ~terrain.free | np.isnan(start) | np.isnan(end)
        ends = np.stack([start, np.where(fixed, start, end)], axis=1)
        for _ in range(_ZOOMS):
            groups = ends[:, :1] + steps * (ends[:, 1:] - ends[:, :1])
            groups[:, -1] = ends[:, 1]
            ends = judge.compare(groups, "lines")


def along_slopes(judge: Judge, rng: np.random.Generator, n: int) -> None:
    """From a person along the steepest way per unit of distance, as finite differences have it, by steps of all sizes.

    Where the gradient in units of the metric is g, that way is ``sign(g) |g|^(q - 1)``, with ``1/p + 1/q = 1``.
    """
    terrain = judge.terrain
    columns = np.flatnonzero(terrain.free & ~terrain.hidden)
    k, unit, q = len(columns), terrain.unit[columns], dual(terrain.p)
    for size in _sizes(n, PAIRS + k * (k + 1) // 2):
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
        groups = np.repeat(a[:, None], MEMBERS, axis=1)
        sizes = 10.0 ** rng.uniform(-6, 0.5, (size, MEMBERS - 1, 1)) * rng.choice([-1.0, 1.0], (size, MEMBERS - 1, 1))
        groups[:, 1:, columns] += sizes * (way * unit)[:, None]
        judge.compare(groups, "slopes")


def climbing(judge: Judge, rng: np.random.Generator, n: int) -> None:
    """The most promising pairs so far, moved in one or more columns as long as they become worse.

    Moved together, apart, towards and away from each other; first by the share of the bound that they use, which finds
    where the model is steepest, then by the excess, which finds how far that goes.
    """
    terrain = judge.terrain
    size = min(_CLIMBERS, 8 + n // (32 * PAIRS))
    rounds = max(1, n // (PAIRS * size))
    pairs = judge.prospects(size)
    d = pairs.shape[2]
    for i in range(rounds):
        lengths = terrain.lengths(rng, size)
        both = np.repeat(pairs[:, None], MEMBERS // 2, axis=1)  # (size, 4, 2, d)
        together = _shift(terrain, rng, lengths)
        both[:, 1] += together[:, None]
        moved = terrain.moved(rng, pairs.reshape(-1, d), np.repeat(lengths, 2, axis=0))
        both[:, 2] = moved.reshape(size, 2, d)
        # What makes no difference to the outputs should make none to the distance.
        alike = rng.random((size, d)) < rng.choice([0.0, 1 / d, 0.4], (size, 1))
        both[:, 2, 1] = np.where(alike, both[:, 2, 0], both[:, 2, 1])
        # Further apart or closer to one another, on the line through both.
        stretch = rng.uniform(-0.9, 1.0, (size, 1)) * 10.0 ** rng.uniform(-4, 0, (size, 1))
        gap = np.where(terrain.free, pairs[:, 1] - pairs[:, 0], 0.0)
        gap = np.nan_to_num(gap) * stretch
        both[:, 3] += np.stack([-gap, gap], axis=1)
        pairs = judge.compare(both.reshape(size, MEMBERS, d), "climbing", by="share" if i < rounds // 2 else "excess")


def tactics_for(terrain: Terrain) -> dict[Tactic, float]:
    """What can be tried there, with the share of all pairs that each is given."""
    shares: dict[Tactic, float] = {random_pairs: 0.25, climbing: 0.25}
    if terrain.free.any():
        shares |= {along_lines: 0.2}
        if any(len(marks) for marks in terrain.landmarks):
            shares |= {straddling: 0.2}
        if (terrain.free & ~terrain.hidden).any():
            shares |= {along_slopes: 0.1}
    if terrain.exchangeable.any():
        shares |= {exchanging: 0.1}
    total = sum(shares.values())
    order = [random_pairs, straddling, exchanging, along_lines, along_slopes, climbing]  # who climbs comes last
    return {tactic: shares[tactic] / total for tactic in order if tactic in shares}


def _shift(terrain: Terrain, rng: np.random.Generator, lengths: FloatArray) -> FloatArray:
    """A move of numbers, in one column or several."""
    n, d = lengths.shape
    chosen = rng.random((n, d)) < rng.choice([1 / d, 0.4], (n, 1))
    return np.where(chosen & terrain.free, rng.uniform(-1, 1, (n, d)) * lengths, 0.0)


def _sizes(n: int, cost: int) -> list[int]:
    """Groups at a time, for about `n` pairs at `cost` pairs a group."""
    groups = max(1, n // cost)
    return [min(_GROUPS_AT_ONCE, groups - start) for start in range(0, groups, _GROUPS_AT_ONCE)]
