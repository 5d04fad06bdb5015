"""The best separation of two groups of people by outputs that respect a distance.

The largest ``sum_i mass_i h_i`` over h in [0, 1] with ``h_i - h_j <= D_ij`` is the dual of a transport problem: people
of positive mass (*sources*) send theirs to people of negative mass (*targets*) at cost D, or drop it at cost 1,
and targets need not be filled (`docs/theory.md` §10). It is solved on few pairs, those that nearly bind under an h
found on a subsample; pairs that the solution then violates are added until there are none. Importing
this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from likewise._numba import njit
from likewise._parallel import run_in_threads
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.exceptions import UnsolvedError
from likewise.pairs.kernels import fill_distances
from likewise.pairs.points import Columns


def min_cost_transport(
    pairs: IntArray, costs: FloatArray, amount: FloatArray, n_sources: int, h: FloatArray
) -> FloatArray:
    """Potentials of the cheapest transport: the h in [0, 1] with the largest sum over sources minus that over targets.

    Parameters
    ----------
    pairs : ndarray of shape (n_pairs, 2)
        Sources and targets between which ``h_i - h_j <= cost``, sorted.
    amount : ndarray of shape (n_people,)
        How much each source has and each target takes; sources come first. Whole numbers.
    h : ndarray of shape (n_people,)
        Values to start from, which respect all costs.
    """
    n = len(amount)
    start = np.searchsorted(pairs[:, 0], np.arange(n_sources + 1))
    back = np.argsort(pairs[:, 1], kind="stable")
    back_start = np.searchsorted(pairs[back, 1], np.arange(n + 1))
    result: FloatArray = _shortest_paths(pairs, costs, start, back, back_start, amount, n_sources, h)
    return result


@njit(cache=True, error_model="numpy")
def _push(keys, nodes, size, key, node):
    """Put a node in a heap whose root has the smallest key; return its new size."""
    hole = size
    while hole > 0 and keys[(hole - 1) // 2] > key:
        keys[hole], nodes[hole] = keys[(hole - 1) // 2], nodes[(hole - 1) // 2]
        hole = (hole - 1) // 2
    keys[hole], nodes[hole] = key, node
    return size + 1


@njit(cache=True, error_model="numpy")
def _pop(keys, nodes, size):
    """Take the root out of a heap; return the new size."""
    size -= 1
    key, node, hole = keys[size], nodes[size], 0
    while 2 * hole + 1 < size:
        down = 2 * hole + 1
        if down + 1 < size and keys[down + 1] < keys[down]:
            down += 1
        if key <= keys[down]:
            break
        keys[hole], nodes[hole] = keys[down], nodes[down]
        hole = down
    keys[hole], nodes[hole] = key, node
    return size


@njit(cache=True, error_model="numpy")
def _shortest_paths(pairs, costs, start, back, back_start, amount, n_sources, h):
    n = len(amount)
    sink = n  # where sources drop mass, at cost 1, and targets send theirs, at cost 0
    potential = np.append(h, 0.0)
    # Invariant: potentials satisfy the optimality conditions along every arc with flow or free capacity; only the
    # balance is missing. An arc from x to y has reduced cost cost - potential[x] + potential[y] >= 0.
    flow, to_sink, balance = np.zeros(len(pairs)), np.zeros(n), np.zeros(n + 1)
    for i in range(n):
        if i < n_sources:
            to_sink[i] = amount[i] if potential[i] >= 1.0 else 0.0
            balance[i] = amount[i] - to_sink[i]
        else:
            to_sink[i] = amount[i] if potential[i] > 0.0 else 0.0
            balance[i] = -to_sink[i]
    balance[sink] = -balance[:n].sum()
    length, parent, arc = np.full(n + 1, np.inf), np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    done, touched = np.zeros(n + 1, np.bool_), np.empty(n + 1, np.int64)
    room = 2 * len(pairs) + 4 * n + 4
    keys, nodes = np.empty(room), np.empty(room, np.int64)
    for turn in range(n_sources + 1):
        origin = turn if turn < n_sources else sink
        while balance[origin] > 0:
            # Dijkstra's algorithm, to the nearest node that lacks mass.
            length[origin], parent[origin], touched[0], n_touched = 0.0, -1, origin, 1
            size = _push(keys, nodes, 0, 0.0, origin)
            while True:
                nearest, node = keys[0], nodes[0]
                size = _pop(keys, nodes, size)
                if done[node]:
                    continue
                if balance[node] < 0:
                    break
                done[node] = True
                base = nearest - potential[node]
                if node == sink:
                    for k in range(n):  # take back what was sent
                        if to_sink[k] > 0 and not done[k]:
                            length_via = max(nearest, base + potential[k] - (1.0 if k < n_sources else 0.0))
                            if length_via < length[k]:
                                if length[k] == np.inf:
                                    touched[n_touched] = k
                                    n_touched += 1
                                length[k], parent[k] = length_via, sink
                                size = _push(keys, nodes, size, length_via, k)
                    continue
                down = node < n_sources
                low, high = (start[node], start[node + 1]) if down else (back_start[node], back_start[node + 1])
                for e in range(low, high):
                    one = e if down else back[e]
                    if not down and flow[one] == 0:
                        continue
                    other = pairs[one, 1] if down else pairs[one, 0]
                    length_via = max(nearest, base + costs[one] + potential[other]) if down else nearest
                    if not done[other] and length_via < length[other]:
                        if length[other] == np.inf:
                            touched[n_touched] = other
                            n_touched += 1
                        length[other], parent[other], arc[other] = length_via, node, one
                        size = _push(keys, nodes, size, length_via, other)
                if not done[sink] and (down or to_sink[node] < amount[node]):
                    length_via = max(nearest, base + potential[sink] + (1.0 if down else 0.0))
                    if length_via < length[sink]:
                        if length[sink] == np.inf:
                            touched[n_touched] = sink
                            n_touched += 1
                        length[sink], parent[sink] = length_via, node
                        size = _push(keys, nodes, size, length_via, sink)
            for k in range(n_touched):  # potentials at which the path has reduced cost 0
                if done[touched[k]]:
                    potential[touched[k]] += nearest - length[touched[k]]
            most, k = min(balance[origin], -balance[node]), node
            while parent[k] >= 0:
                up = parent[k]
                if up == sink:
                    most = min(most, to_sink[k])
                elif k == sink and up >= n_sources:
                    most = min(most, amount[up] - to_sink[up])
                elif k < n_sources:
                    most = min(most, flow[arc[k]])
                k = up
            balance[origin] -= most
            balance[node] += most
            k = node
            while parent[k] >= 0:
                up = parent[k]
                if up == sink:
                    to_sink[k] -= most
                elif k == sink:
                    to_sink[up] += most
                else:
                    flow[arc[k]] += -most if k < n_sources else most
                k = up
            for k in range(n_touched):
                length[touched[k]], done[touched[k]] = np.inf, False
    return np.minimum(1.0, np.maximum(0.0, potential[:n] - potential[sink]))


_SMALLEST, _GROWTH, _NEAR, _TOLERANCE = 200, 6, 24, 1e-9
_AT_ONCE = 64  # people per thread


@dataclass(frozen=True, eq=False)
class Potentials:
    """The best h, one per person, the number of solves, and the number of pairs in the program."""

    h: FloatArray
    n_rounds: int
    n_constraints: int


def potentials(columns: Columns, mass: FloatArray) -> Potentials:
    """Maximise ``sum_i mass_i h_i`` over h in [0, 1] with ``h_i - h_j <= D_ij``.

    Parameters
    ----------
    columns : Columns
        Without gaps in columns that matter: the distance must obey the triangle inequality.
    mass : ndarray of shape (n_people,)
        Whole numbers, none of them 0.
    """
    used = columns.scales > 0
    X, space = columns.X[used], (columns.kinds[used], np.ascontiguousarray(columns.scales[used]), columns.p)
    n = X.shape[1]

    def those(people: IntArray) -> Columns:
        return Columns(np.ascontiguousarray(X[:, people]), *space)

    # Sources and targets in a fixed random order (always the same path), in runs of their own.
    order = np.random.default_rng(0).permutation(n)
    sources, targets = order[mass[order] > 0], order[mass[order] < 0]
    certain = np.append(np.ones(len(sources)), np.zeros(len(targets)))
    if not len(_violated(those(np.concatenate([sources, targets])), len(sources), certain, 1, 0.0)[0]):
        return Potentials((mass > 0).astype(np.float64), 0, 0)
    sizes = [n]
    while sizes[-1] > _SMALLEST:
        sizes.append(sizes[-1] // _GROWTH)
    known: IntArray = order[:0]
    h = np.zeros(0)
    n_rounds = n_constraints = 0
    for size in reversed(sizes):
        share = size / n
        some = (sources[: max(1, round(share * len(sources)))], targets[: max(1, round(share * len(targets)))])
        chosen, n_sources = np.concatenate(some), len(some[0])
        here, amount = those(chosen), np.abs(mass[chosen])
        h = _suggest(here, those(known), mass[known], h)
        pairs, costs = _near(here, n_sources, h, _NEAR)
        known_pairs = 0
        while True:  # each round adds a pair, or it ends
            pairs, first = np.unique(pairs, axis=0, return_index=True)
            costs = costs[first]
            if len(pairs) == known_pairs:
                raise UnsolvedError(
                    "The search for the best outputs did not converge because of rounding. Rescale columns whose "
                    "values are extremely large."
                )
            known_pairs = len(pairs)
            h = min_cost_transport(pairs, costs, amount, n_sources, h)
            n_rounds, n_constraints = n_rounds + 1, len(pairs)
            if size < n:
                break
            new, new_costs = _violated(here, n_sources, h, _NEAR, _TOLERANCE)
            if not len(new):
                break
            pairs, costs = np.concatenate([pairs, new]), np.append(costs, new_costs)
            h = _suggest(here, here, mass[chosen], h)
        known = chosen
    result = np.empty(n)
    result[known] = h
    return Potentials(result, n_rounds, n_constraints)


class FoundPairs(NamedTuple):
    """Room for pairs and their distances, and which of it is used."""

    pairs: IntArray
    costs: FloatArray
    kept: BoolArray

    @classmethod
    def none_of(cls, room: int) -> FoundPairs:
        """Without a pair yet."""
        return cls(np.empty((room, 2), np.int64), np.empty(room), np.zeros(room, np.bool_))

    def used(self) -> tuple[IntArray, FloatArray]:
        """Pairs and their distances."""
        return self.pairs[self.kept], self.costs[self.kept]


def _suggest(columns: Columns, known: Columns, mass: FloatArray, h: FloatArray) -> FloatArray:
    """Extend the best h of a subsample to everyone, within D.

    ``min(1, min_j (h_j + D))`` over targets j is within D, and as good as h on the subsample: it is not below h at
    sources, and not above it at targets. So is ``max(0, max_i (h_i - D))`` over sources i. Their mean is the guess.
    """
    both = columns._replace(X=np.concatenate([known.X, columns.X], axis=1))
    out = np.full(columns.X.shape[1], 0.5)
    if len(h):
        _in_threads(_fill_guess, len(out), both, mass, h, out)
    return out


def _near(columns: Columns, n_sources: int, h: FloatArray, n_near: int) -> tuple[IntArray, FloatArray]:
    """For each source and each target, the others with the least ``D - h_i + h_j``: pairs and their distances."""
    n = columns.X.shape[1]
    found = FoundPairs.none_of(n * n_near)
    _in_threads(_fill_near, n, columns, h, n_sources, n_near, found)
    return found.used()


def _violated(
    columns: Columns, n_sources: int, h: FloatArray, most: int, tolerance: float
) -> tuple[IntArray, FloatArray]:
    """For each source, up to `most` targets with ``h_i - h_j > D`` by more than the tolerance, and their distances."""
    found = FoundPairs.none_of(n_sources * most)
    _in_threads(_fill_violated, n_sources, columns, h, n_sources, most, tolerance, found)
    return found.used()


def _in_threads(fill: Callable[..., None], n: int, *given: Any) -> None:
    """Call a compiled function on runs of people, in threads."""
    run_in_threads(lambda first: fill(first, min(n, first + _AT_ONCE), *given), range(0, n, _AT_ONCE), None)


@njit(cache=True, error_model="numpy", nogil=True)
def _fill_guess(first, last, both, mass, h, out):
    """Fill the results of `_suggest` for some people."""
    X, kinds, scales, p = both
    m = len(h)
    distance, every = np.empty(m), np.full(m, np.inf)
    for i in range(first, last):
        fill_distances(X, kinds, scales, p, m + i, 0, m, every, distance)
        most, least = 1.0, 0.0
        for k in range(m):
            if mass[k] < 0:
                most = min(most, h[k] + distance[k])
            else:
                least = max(least, h[k] - distance[k])
        out[i] = (most + least) / 2


@njit(cache=True, error_model="numpy", nogil=True)
def _fill_near(first, last, columns, h, n_sources, n_near, found):
    """Fill the results of `_near` for some people."""
    X, kinds, scales, p = columns
    pairs, costs, kept = found
    n, least = X.shape[1], np.empty(n_near)
    for i in range(first, last):
        low, high = (n_sources, n) if i < n_sources else (0, n_sources)
        distance = np.empty(high - low)
        fill_distances(X, kinds, scales, p, i, low, high, np.full(high - low, np.inf), distance)
        left = distance + h[low:high] if i < n_sources else distance - h[low:high]
        few, size = min(n_near, high - low), 0
        least[:few] = np.inf  # in increasing order; `np.partition` takes seconds to compile
        for value in left:
            if value < least[few - 1]:
                k = few - 1
                while k > 0 and least[k - 1] > value:
                    least[k] = least[k - 1]
                    k -= 1
                least[k] = value
        for k in range(high - low):
            if left[k] <= least[few - 1] and size < few:
                place = i * n_near + size
                pairs[place, 0], pairs[place, 1] = min(i, low + k), max(i, low + k)
                costs[place], kept[place] = distance[k], True
                size += 1


@njit(cache=True, error_model="numpy", nogil=True)
def _fill_violated(first, last, columns, h, n_sources, most, tolerance, found):
    """Fill the results of `_violated` for some sources."""
    X, kinds, scales, p = columns
    pairs, costs, kept = found
    n = X.shape[1]
    distance = np.empty(n - n_sources)
    for i in range(first, last):
        needed = h[i] - h[n_sources:]
        fill_distances(X, kinds, scales, p, i, n_sources, n, needed, distance)
        size = 0
        for k in range(n - n_sources):
            if needed[k] - distance[k] > tolerance and size < most:
                place = i * most + size
                pairs[place, 0], pairs[place, 1], costs[place], kept[place] = i, n_sources + k, distance[k], True
                size += 1
