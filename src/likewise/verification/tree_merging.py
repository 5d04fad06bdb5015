"""A tighter bound on a sum of trees over a box: trees are merged in pairs into lists of compatible leaves.

The largest sum of two trees over leaves that share a cell in every variable is at most, and often much less than, the
sum of the largest of each. Merged trees are merged again. Each list keeps only its largest sums; one more entry, which
is compatible with everything, stands for all that were dropped, so the bound holds however few are kept.
Imported inside functions, as it imports numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise._numba import njit
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.verification.tree_problem import Pieces

_compiled: Any = njit(nogil=True, cache=True, error_model="numpy")
_ALL = np.uint64(2**64 - 1)


class TreeMerger:
    """Bounds of the sum of the changes of all trees over boxes, in one direction of the scores.

    Attributes
    ----------
    kept : int
        Entries of a merged list.
    tried : int
        Largest number of sums considered for it.
    """

    def __init__(
        self, pieces: Pieces, start: IntArray, n_directions: int = 1, *, kept: int = 2000, tried: int = 40_000
    ) -> None:
        self.kept, self.tried = kept, tried
        self.start = start
        self.changes = pieces.limits[:, :n_directions]
        # Sets of cells as bits: each variable begins with a word of its own.
        n_words = (np.diff(start) + 63) // 64
        self.words = np.concatenate([[0], np.cumsum(n_words)]).astype(np.int64)
        self.sets = np.full((len(self.changes), self.words[-1]), _ALL)
        masks = []
        for i, variable in enumerate(pieces.mask_var):
            cells = pieces.mask_cells[pieces.mask_start[i] : pieces.mask_start[i + 1]]
            masks.append(self._bits(cells, int(variable)))
        for q in range(len(self.changes)):
            for mask in pieces.con_mask[pieces.con_start[q] : pieces.con_start[q + 1]]:
                variable = pieces.mask_var[mask]
                self.sets[q, self.words[variable] : self.words[variable + 1]] &= masks[mask]
        ends = zip(pieces.tree_start[:-1], pieces.tree_start[1:], strict=True)
        # Trees that give both people the same leaf everywhere add nothing.
        self.trees = [np.arange(a, b) for a, b in ends if np.any(self.changes[a:b])]

    def _bits(self, cells: IntArray, variable: int) -> Any:
        found = np.zeros(int(self.words[variable + 1] - self.words[variable]), dtype=np.uint64)
        for place in (cells - self.start[variable]).tolist():
            found[place // 64] |= np.uint64(1) << np.uint64(place % 64)
        return found

    def bound(self, box: BoolArray, direction: int = 0) -> float:
        """Upper bound of the sum over a box, but for rounding."""
        changes = self.changes[:, direction]
        parts = zip(self.start[:-1], self.start[1:], strict=True)
        inside = [self._bits(np.flatnonzero(box[a:b]) + a, v) for v, (a, b) in enumerate(parts)]
        held = self.sets & np.concatenate(inside)
        there = _are_possible(held, self.words)
        lists: list[tuple[Any, FloatArray]] = []
        for tree in self.trees:
            chosen = tree[there[tree]]
            chosen = chosen[np.argsort(-changes[chosen], kind="stable")]
            lists.append((held[chosen], changes[chosen]))
        if any(not len(values) for _, values in lists):
            return -np.inf  # the box is empty
        while len(lists) > 1:
            lists = self._merged(lists)
        return float(lists[0][1][0]) if lists else 0.0

    def _merged(self, lists: list[tuple[Any, FloatArray]]) -> list[tuple[Any, FloatArray]]:
        """Merge in pairs, those that gain most first."""
        n = len(lists)
        gain = np.full((n, n), -np.inf)
        for i in range(n):
            for j in range(i):
                (a, x), (b, y) = lists[i], lists[j]
                gain[i, j] = x[0] + y[0] - _largest_sum(a, x, b, y, self.words)
        found, used = [], np.zeros(n, dtype=bool)
        for place in np.argsort(-gain, axis=None, kind="stable").tolist():
            i, j = divmod(place, n)
            if j < i and not used[i] and not used[j]:
                used[[i, j]] = True
                found.append(_merge(*lists[i], *lists[j], self.words, self.kept, self.tried))
        return found + [lists[i] for i in np.flatnonzero(~used)]


@_compiled
def _are_possible(sets, words):  # type: ignore[no-untyped-def]
    """Which of some sets have a cell in every variable."""
    found = np.ones(len(sets), dtype=np.bool_)
    for q in range(len(sets)):
        found[q] = _meet(sets[q], sets[q], words)
    return found


@_compiled
def _meet(a, b, words):  # type: ignore[no-untyped-def]
    """Whether two sets share a cell in every variable."""
    for v in range(len(words) - 1):
        shared = False
        for w in range(words[v], words[v + 1]):
            if a[w] & b[w]:
                shared = True
                break
        if not shared:
            return False
    return True


@_compiled
def _largest_sum(a, x, b, y, words):  # type: ignore[no-untyped-def]
    """Largest sum of two entries that meet, of two lists in descending order; -inf if none do."""
    best = -np.inf
    for i in range(len(x)):
        if x[i] + y[0] <= best:
            break
        for j in range(len(y)):
            if x[i] + y[j] <= best:
                break
            if _meet(a[i], b[j], words):
                best = x[i] + y[j]
                break
    return best


@_compiled
def _merge(a, x, b, y, words, kept, tried):  # type: ignore[no-untyped-def]
    """The largest sums of two entries that meet, descending; the last stands for all that are left out."""
    sets, values = np.empty((kept + 1, a.shape[1]), np.uint64), np.empty(kept + 1)
    # A heap of the next sum of each row i of x: rows enter one after the other, as their first sums descend.
    heap, row, place = np.empty(len(x)), np.empty(len(x), np.int64), np.zeros(len(x), np.int64)
    heap[0], row[0] = x[0] + y[0], 0
    size, n, n_tried = 1, 0, 0
    while size > 0:
        if n == kept or n_tried == tried:
            sets[n] = np.uint64(0xFFFFFFFFFFFFFFFF)
            values[n] = heap[0]
            n += 1
            break
        n_tried += 1
        i = row[0]
        j = place[i]
        if _meet(a[i], b[j], words):
            sets[n], values[n] = a[i] & b[j], heap[0]
            n += 1
        place[i] = j + 1
        if j + 1 < len(y):
            heap[0] = x[i] + y[j + 1]
        else:
            size -= 1
            heap[0], row[0] = heap[size], row[size]
        k = 0
        while 2 * k + 1 < size:
            down = 2 * k + 1
            if down + 1 < size and heap[down + 1] > heap[down]:
                down += 1
            if heap[down] <= heap[k]:
                break
            heap[down], heap[k] = heap[k], heap[down]
            row[down], row[k] = row[k], row[down]
            k = down
        if j == 0 and i + 1 < len(x):
            k = size
            heap[k], row[k] = x[i + 1] + y[0], i + 1
            size += 1
            while k > 0 and heap[(k - 1) // 2] < heap[k]:
                up = (k - 1) // 2
                heap[up], heap[k] = heap[k], heap[up]
                row[up], row[k] = row[k], row[up]
                k = up
    return sets[:n], values[:n]
