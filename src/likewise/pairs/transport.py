"""How well two groups of people can be told apart by outputs that respect a distance.

The largest ``sum_i mass_i h_i`` over h in [0, 1] with ``h_i - h_j <= D_ij`` is the dual of a transport problem: people
of positive mass (*sources*) send theirs to people of negative mass (*targets*) at the price D, or drop it at the price
1, and targets need not be filled (`docs/theory.md` §10). It is solved on few pairs, those that nearly bind under an h
that a part of the people suggests; pairs that the solution then violates are added until there are none. Importing
this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise._compiling import njit, prange
from likewise._typing import FloatArray, IntArray
from likewise.errors import UnsolvedError
from likewise.pairs.flows import cheapest_transport
from likewise.pairs.points import Kinds
from likewise.pairs.scans import fill_distances

_SMALLEST, _GROWTH, _NEAR, _TOLERANCE = 200, 6, 24, 1e-9


@dataclass(frozen=True, eq=False)
class Potentials:
    """The best h, one per person, how often it was looked for, and how many pairs entered the program."""

    h: FloatArray
    n_rounds: int
    n_constraints: int


def potentials(X: FloatArray, mass: FloatArray, scales: FloatArray, p: float, kinds: Kinds) -> Potentials:
    """Maximise ``sum_i mass_i h_i`` over h in [0, 1] with ``h_i - h_j <= D_ij``.

    Parameters
    ----------
    X : ndarray of shape (n_people, n_columns)
        Without gaps in columns that matter: the distance must obey the triangle inequality.
    mass : ndarray of shape (n_people,)
        Whole numbers, none of them 0.
    """
    used = scales > 0
    X, scales, kinds = X[:, used], np.ascontiguousarray(scales[used]), kinds[used]
    # Sources and targets in a fixed random order (always the same path), in runs of their own.
    order = np.random.default_rng(0).permutation(len(X))
    sources, targets = order[mass[order] > 0], order[mass[order] < 0]
    everyone, certain = np.concatenate([sources, targets]), np.append(np.ones(len(sources)), np.zeros(len(targets)))
    if not len(_violated(np.ascontiguousarray(X[everyone].T), len(sources), certain, kinds, scales, p, 1, 0.0)[0]):
        return Potentials((mass > 0).astype(np.float64), 0, 0)
    sizes = [len(X)]
    while sizes[-1] > _SMALLEST:
        sizes.append(sizes[-1] // _GROWTH)
    known: IntArray = order[:0]
    h = np.zeros(0)
    n_rounds = n_constraints = 0
    for size in reversed(sizes):
        share = size / len(X)
        some = (sources[: max(1, round(share * len(sources)))], targets[: max(1, round(share * len(targets)))])
        chosen, n_sources = np.concatenate(some), len(some[0])
        columns, amount = np.ascontiguousarray(X[chosen].T), np.abs(mass[chosen])
        arguments = (kinds, scales, p)
        h = _suggest(columns, np.ascontiguousarray(X[known].T), mass[known], h, *arguments)
        pairs, prices = _near(columns, n_sources, h, *arguments, _NEAR)
        known_pairs = 0
        while True:  # each round adds a pair, or it ends
            pairs, first = np.unique(pairs, axis=0, return_index=True)
            prices = prices[first]
            if len(pairs) == known_pairs:
                raise UnsolvedError(
                    "The search for the best outputs did not converge: what is left is rounding. Rescale columns whose "
                    "values are extremely large."
                )
            known_pairs = len(pairs)
            h = cheapest_transport(pairs, prices, amount, n_sources, h)
            n_rounds, n_constraints = n_rounds + 1, len(pairs)
            if size < len(X):
                break
            new, new_prices = _violated(columns, n_sources, h, *arguments, _NEAR, _TOLERANCE)
            if not len(new):
                break
            pairs, prices = np.concatenate([pairs, new]), np.append(prices, new_prices)
            h = _suggest(columns, columns, mass[chosen], h, *arguments)
        known = chosen
    result = np.empty(len(X))
    result[known] = h
    return Potentials(result, n_rounds, n_constraints)


@njit(parallel=True, cache=True, error_model="numpy")
def _suggest(columns, known, mass, h, kinds, scales, p):
    """A function within D for everyone, from the best h of those known.

    ``min_j (h_j + D)`` over targets j, and at most 1, is such a function, and as good as h on those known: it is not
    below h at sources, and not above it at targets. So is ``max_i (h_i - D)`` over sources i, and at least 0. In
    between lies the better guess.
    """
    n, m = columns.shape[1], known.shape[1]
    both = np.concatenate((known, columns), axis=1)
    out = np.empty(n)
    for i in prange(n):
        most, least = 1.0, 0.0
        if m:
            distance = np.empty(m)
            fill_distances(both, kinds, scales, p, m + i, 0, m, np.full(m, np.inf), distance)
            for k in range(m):
                if mass[k] < 0:
                    most = min(most, h[k] + distance[k])
                else:
                    least = max(least, h[k] - distance[k])
        out[i] = (most + least) / 2
    return out


@njit(parallel=True, cache=True, error_model="numpy")
def _near(columns, n_sources, h, kinds, scales, p, n_near):
    """For each source and each target, the others with the least ``D - h_i + h_j``: pairs and their distances."""
    n = columns.shape[1]
    pairs, prices = np.empty((n * n_near, 2), np.int64), np.empty(n * n_near)
    size = np.zeros(n, np.int64)
    for i in prange(n):
        first, last = (n_sources, n) if i < n_sources else (0, n_sources)
        distance = np.empty(last - first)
        fill_distances(columns, kinds, scales, p, i, first, last, np.full(last - first, np.inf), distance)
        left = distance + h[first:last] if i < n_sources else distance - h[first:last]
        few = min(n_near, last - first)
        limit = np.partition(left, few - 1)[few - 1]
        for k in range(last - first):
            if left[k] <= limit and size[i] < few:
                place = i * n_near + size[i]
                pairs[place, 0], pairs[place, 1] = min(i, first + k), max(i, first + k)
                prices[place] = distance[k]
                size[i] += 1
    kept = np.zeros(n * n_near, np.bool_)
    for i in range(n):
        kept[i * n_near : i * n_near + size[i]] = True
    return pairs[kept], prices[kept]


@njit(parallel=True, cache=True, error_model="numpy")
def _violated(columns, n_sources, h, kinds, scales, p, most, tolerance):
    """For each source, up to `most` targets with ``h_i - h_j > D`` by more than the tolerance, and their distances."""
    n = columns.shape[1]
    pairs, prices = np.empty((n_sources * most, 2), np.int64), np.empty(n_sources * most)
    kept = np.zeros(n_sources * most, np.bool_)
    for i in prange(n_sources):
        distance = np.empty(n - n_sources)
        needed = h[i] - h[n_sources:]
        fill_distances(columns, kinds, scales, p, i, n_sources, n, needed, distance)
        size = 0
        for k in range(n - n_sources):
            if needed[k] - distance[k] > tolerance and size < most:
                place = i * most + size
                pairs[place, 0], pairs[place, 1], prices[place], kept[place] = i, n_sources + k, distance[k], True
                size += 1
    return pairs[kept], prices[kept]
