"""Scans over all pairs of people, compiled or in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from likewise._engine import should_compile
from likewise._typing import FloatArray, IntArray
from likewise.pairs import plain
from likewise.pairs.points import Columns

_POWER_CELLS = 10  # work of a power, in values: powers are not vectorised


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Result of `search`; pairs are positions among the people given, worst first.

    Worst means the largest excess; among equals, the smallest positions. `times` says how many pairs of equal people
    each pair stands for. `max_ratio` is nan if there is no violation.
    """

    n_violations: int
    max_ratio: float
    n_compared: int
    pairs: IntArray
    times: IntArray
    differences: FloatArray
    distances: FloatArray

    @property
    def max_excess(self) -> float:
        """Largest excess; 0 without violations."""
        return float(self.differences[0] - self.distances[0]) if self.n_violations else 0.0


def cells_of(n_pairs: float, n_columns: int, p: float) -> float:
    """Work of a plain scan of pairs, in values."""
    return n_pairs * 2 * (1 + n_columns) * (1 if p in (1.0, 2.0, np.inf) else _POWER_CELLS)


Blocks = Iterable[tuple[int, FloatArray, FloatArray]]
"""First person, differences and distances of blocks of pairs, as `likewise.pairs.plain.blocks_after` gives them."""


def person_by_person(
    distances_after: Callable[[int], FloatArray], outputs: FloatArray
) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """All pairs for any distance; ``distances_after(i)`` gives the distances from person i to ``i + 1, i + 2, ...``."""
    answers = outputs.T
    for i in range(len(outputs) - 1):
        yield i, plain.differences(answers[:, i, None], answers[:, i + 1 :])[None], distances_after(i)[None]


def search_every_pair(
    blocks: Blocks, count: IntArray, tolerance: float, n_worst: int, thresholds: Sequence[float] = ()
) -> tuple[SearchResult, list[int]]:
    """As `likewise.pairs.box_search.search_tree`, by comparing every pair; and how many pairs exceed each threshold.

    Parameters
    ----------
    count, tolerance, n_worst
        As for `box_tree_of` and `search_tree`.
    thresholds : sequence of float
        At least `tolerance` each.
    """
    n, counts = len(count), [0] * len(thresholds)
    result = SearchResult(0, np.nan, 0, np.empty((0, 2), np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))
    for first, differences, distances in blocks:
        excesses = differences - distances
        rows, others = np.nonzero(excesses > tolerance)
        excess, difference, distance = (each[rows, others] for each in (excesses, differences, distances))
        pairs = np.column_stack([first + rows, first + 1 + others]).astype(np.int64)
        times = count[pairs[:, 0]] * count[pairs[:, 1]]
        counts = [
            n_above + int(times[excess > threshold].sum())
            for n_above, threshold in zip(counts, thresholds, strict=True)
        ]
        with np.errstate(divide="ignore", over="ignore"):
            ratio = float((difference / distance).max(initial=0.0))
        n_compared = len(differences) * (n - 1 - first) - len(differences) * (len(differences) - 1) // 2
        kept = np.arange(len(excess))
        if len(excess) > n_worst:  # with all that tie with the last one
            kept = np.flatnonzero(excess >= np.partition(excess, len(excess) - n_worst)[len(excess) - n_worst])
        part = SearchResult(
            int(times.sum()), ratio, n_compared, pairs[kept], times[kept], difference[kept], distance[kept]
        )
        result = merge([result, part], n_worst)
    return result, counts


def merge(parts: list[SearchResult], n_worst: int) -> SearchResult:
    """Results of the parts of a search as one."""
    pairs, times, differences, distances = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("pairs", "times", "differences", "distances")
    )
    worst = np.lexsort((pairs[:, 1], pairs[:, 0], -(differences - distances)))[:n_worst]
    return SearchResult(
        n_violations=sum(part.n_violations for part in parts),
        max_ratio=max((part.max_ratio for part in parts if part.n_violations), default=np.nan),
        n_compared=sum(part.n_compared for part in parts),
        pairs=pairs[worst],
        times=times[worst],
        differences=differences[worst],
        distances=distances[worst],
    )


N_WORST = 2**14
"""How many pairs are returned if there are more than `max_pairs`."""

NO_PAIRS: IntArray = np.empty((0, 2), dtype=np.int64)


class Gathered(NamedTuple):
    """Pairs as positions among the people given, shape (n, 2), in no special order.

    If not `complete`, there were more than `max_pairs`, and these are the worst.
    """

    pairs: IntArray
    complete: bool


def gather_blocks(
    blocks: Callable[[], Blocks], n_people: int, tolerance: float, max_pairs: int, n_worst: int
) -> Gathered:
    """As `likewise.pairs.gather.gather`, from blocks of every pair, which may be gone through twice."""
    parts, size, n_worst = [NO_PAIRS], 0, min(max_pairs, n_worst)
    for first, differences, distances in blocks():
        rows, others = np.nonzero(differences - distances > tolerance)
        size += len(rows)
        if size > max_pairs:
            if n_worst == 0:
                return Gathered(NO_PAIRS, False)
            result, _ = search_every_pair(blocks(), np.ones(n_people, dtype=np.int64), tolerance, n_worst)
            return Gathered(result.pairs, False)
        parts.append(np.column_stack([first + rows, first + 1 + others]).astype(np.int64))
    return Gathered(np.concatenate(parts), True)


def within_groups(columns: Columns, outputs: FloatArray, m: int) -> tuple[FloatArray, FloatArray]:
    """Differences and distances of all pairs within consecutive groups of `m` people.

    Parameters
    ----------
    columns : Columns
        Of ``n_groups * m`` people.
    outputs : ndarray of shape (n_outputs, n_groups * m)
    m : int
        People per group.

    Returns
    -------
    differences, distances : ndarray of shape (n_groups, m * (m - 1) // 2)
        In the order of ``np.triu_indices(m, 1)``.
    """
    X, _, _, p = columns
    shape = (X.shape[1] // m, m * (m - 1) // 2)
    if not should_compile("likewise.pairs.kernels.within_groups", cells_of(shape[0] * shape[1], len(X), p)):
        return plain.within_groups(columns, outputs, m)
    from likewise.pairs.kernels import within_groups as compiled

    differences, distances = np.empty(shape), np.empty(shape)
    compiled(columns, outputs, m, differences, distances)
    return differences, distances
