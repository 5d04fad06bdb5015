"""How much exchanging columns can change a sum of trees: best-first search over boxes, with a bound for each."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.verification.tree_problem import TreeProblem, Variables, pieces_of

if TYPE_CHECKING:
    from likewise.verification.tree_merging import TreeMerger

_LINKS = {"identity": 0, "logistic": 1, "tanh": 2}
_OUTWARDS = 1 + 2.0**-40  # more than the relative rounding errors of sums and links


@dataclass(frozen=True, eq=False)
class TreeBound:
    """The result of a search.

    Attributes
    ----------
    found : float
        The largest difference found at a point, by the trees as read.
    cells_a, cells_b : ndarray of shape (n_columns,)
        That point.
    proven : float
        No point has a larger difference.
    n_boxes : int
        Boxes that were bounded.
    seconds : float
        Processor time.
    history : list of (int, float, float)
        Boxes, found and proven, each time one of them improved.
    stopped : bool
        Whether the limits ended the search.
    """

    found: float
    cells_a: IntArray
    cells_b: IntArray
    proven: float
    n_boxes: int
    seconds: float
    history: list[tuple[int, float, float]]
    stopped: bool


class _Search:
    """Best-first search over boxes."""

    def __init__(self, problem: TreeProblem, tolerance: float) -> None:
        self.problem, self.tolerance = problem, tolerance
        self.variables = Variables.of(problem.cells, problem.exchanged)
        self.pieces = pieces_of(problem, self.variables)
        self.link = _LINKS[problem.link]
        self.start = self.variables.start
        n_cells = int(self.start[-1])
        columns = [i for i in problem.exchanged if i in problem.distances]
        pairs = [(self.variables.find(i, 0), self.variables.find(i, 1)) for i in columns]
        self.cost_vars = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        tables = [problem.distances[i].ravel() for i in columns]
        self.costs = np.concatenate([np.empty(0), *tables])
        self.cost_start = np.concatenate([[0], np.cumsum([len(each) for each in tables])]).astype(np.int64)
        self.rules = [self._rule(*rule) for rule in problem.rules]
        self.nodes = self._flat_trees()
        self.best, self.point = -np.inf, np.zeros(len(self.start) - 1, dtype=np.int64)
        self.pruned = -np.inf
        self.n_boxes = 0
        self.everything = np.ones(n_cells, dtype=bool)

    def _flat_trees(self) -> tuple[Any, ...]:
        """All trees that count, in a few arrays."""
        exchanged = set(self.problem.exchanged)
        left, right, test, column, values, roots = [], [], [], [], [], []
        rows = self.problem.rows
        width = max((len(cells) for cells in self.problem.cells), default=1)
        answers = np.zeros((len(rows), width), dtype=bool)
        for i, (where, row) in enumerate(rows):
            given = self.problem.cells[where].answers[row]
            answers[i, : len(given)] = given
        offset = 0
        for tree in self.problem.trees:
            reads = any(rows[each][0] in exchanged for each in tree.test[tree.left >= 0])
            if not reads and self.problem.link != "logistic":
                continue
            leaf = tree.left < 0
            left.append(np.where(leaf, -1, tree.left + offset))
            right.append(np.where(leaf, -1, tree.right + offset))
            test.append(tree.test)
            column.append(np.array([-1 if each < 0 else rows[each][0] for each in tree.test]))
            values.append(tree.values[:, 0])
            roots.append(offset)
            offset += len(leaf)
        flat = [
            np.concatenate([np.empty(0, dtype=np.int64), *part]).astype(np.int64)
            for part in (left, right, test, column)
        ]
        return (
            *flat,
            answers,
            np.concatenate([np.empty(0), *values]),
            np.array(roots, dtype=np.int64),
        )

    def _rule(self, columns: list[int], added: Callable[[int, FloatArray], FloatArray], limit: float) -> Any:
        """The smallest contribution of every cell to a rule, for either person."""
        parts = []
        for side in (0, 1):
            lows = []
            for i in columns:
                variable, cells = self.variables.find(i, side), self.problem.cells[i]
                ends = np.minimum(added(i, cells.low), added(i, cells.high))
                ends = np.where(np.isnan(cells.low), added(i, cells.values), ends)
                lows.append((variable, np.where(np.isnan(ends), -np.inf, ends)))  # a rule does not apply to blanks
            parts.append(lows)
        return parts, limit

    def feasible(self, box: BoolArray) -> bool:
        """Whether the box may contain two people who satisfy the rules."""
        for parts, limit in self.rules:
            for lows in parts:
                least = 0.0
                for variable, ends in lows:
                    least += ends[box[self.start[variable] : self.start[variable + 1]]].min()
                if least > limit:
                    return False
        return True

    def bound(self, box: BoolArray) -> tuple[float, FloatArray]:
        """Bound of a box after pruning cells that cannot improve on the best point; the box is changed in place."""
        from likewise.verification.tree_kernels import bound_box

        pieces, start = self.pieces, self.start
        cell_bound = np.empty(len(box))
        while True:
            self.n_boxes += 1
            if self.rules and not self.feasible(box):
                return -np.inf, cell_bound
            bound = bound_box(
                box,
                start,
                pieces.tree_start,
                pieces.a,
                pieces.b,
                pieces.con_start,
                pieces.con_mask,
                pieces.mask_var,
                pieces.mask_start,
                pieces.mask_cells,
                self.link,
                self.problem.rounding,
                self.problem.baseline,
                self.costs,
                self.cost_start,
                self.cost_vars,
                cell_bound,
            )
            weak = box & (cell_bound <= self.best + self.tolerance)
            if bound <= self.best + self.tolerance or not weak.any():
                return float(bound), cell_bound
            self.pruned = max(self.pruned, float(cell_bound[weak].max()))
            box &= ~weak
            # Pruning a few cells hardly changes the bound; pruning a tenth of them may.
            if weak.sum() < 0.1 * box.sum():
                return float(bound), np.where(box, cell_bound, -np.inf)

    def merged_bound(self, box: BoolArray) -> float:
        """A tighter bound by merging trees; infinite if a distance is subtracted, or there is little to gain."""
        from likewise.verification.tree_kernels import largest_difference

        if len(self.cost_vars) or len(self.merger.trees) < 2:
            return np.inf
        d = self.merger.bound(box) + 2.0 * self.problem.rounding
        # Without limits on the scores, the logistic link is taken where it is steepest.
        return float(largest_difference(self.link, d, -np.inf, np.inf, np.inf)) if np.isfinite(d) else d

    @cached_property
    def merger(self) -> TreeMerger:
        """The trees as sets of bits."""
        from likewise.verification.tree_merging import TreeMerger

        return TreeMerger(self.pieces, self.start)

    def climb(self, point: IntArray) -> None:
        """Search for a better point from a given one; climbing may break the rules."""
        self._climb(point.copy(), self.everything)
        if self.rules:
            self._climb(point.copy(), ~self.everything)

    def _climb(self, point: IntArray, allowed: BoolArray) -> None:
        from likewise.verification.tree_kernels import climb

        left, right, test, column, answers, values, roots = self.nodes
        found = climb(
            point,
            allowed,
            self.start,
            self.variables.column,
            self.variables.side,
            left,
            right,
            test,
            column,
            answers,
            values,
            roots,
            self.link,
            self.problem.baseline,
            self.costs,
            self.cost_start,
            self.cost_vars,
            len(self.problem.cells),
        )
        if found > self.best and self.keeps_rules(point):
            self.best, self.point = float(found), point

    def keeps_rules(self, point: IntArray) -> bool:
        if not self.rules:
            return True
        box = np.zeros(len(self.everything), dtype=bool)
        box[self.start[:-1] + point] = True
        return self.feasible(box)

    def top(self, cell_bound: FloatArray) -> IntArray:
        """The cell of each variable with the largest bound."""
        return np.array(
            [int(cell_bound[a:b].argmax()) for a, b in zip(self.start[:-1], self.start[1:], strict=True)],
            dtype=np.int64,
        )

    def is_point(self, box: BoolArray) -> bool:
        """Whether a box holds one cell of each variable."""
        return int(box.sum()) == len(self.start) - 1

    def splits(self, box: BoolArray, cell_bound: FloatArray) -> list[tuple[BoolArray, BoolArray]]:
        """Ways to split a box by the cells of one variable, the most promising first."""
        found: list[tuple[float, int, tuple[BoolArray, BoolArray]]] = []
        limit = self.best + self.tolerance if np.isfinite(self.best) else float(cell_bound[box].min())
        for v in range(len(self.start) - 1):
            a, b = int(self.start[v]), int(self.start[v + 1])
            inside = np.flatnonzero(box[a:b])
            if len(inside) < 2:
                continue
            u = cell_bound[a:b][inside]
            ordered = self.problem.cells[int(self.variables.column[v])].ordered
            order = np.arange(len(inside)) if ordered else np.argsort(u, kind="stable")
            u = u[order]
            left, right = np.maximum.accumulate(u)[:-1], np.maximum.accumulate(u[::-1])[::-1][1:]
            n = np.arange(1, len(u))
            # Work left after a split: how far the bound of each half is above the best value found, by its size.
            work = (left - limit) * np.log2(1 + n) + (right - limit) * np.log2(1 + len(u) - n)
            whole = (u.max() - limit) * np.log2(1 + len(u))
            i = int(work.argmin())
            halves = box.copy(), box.copy()
            for half, gone in zip(halves, (order[i + 1 :], order[: i + 1]), strict=True):
                half[a + inside[gone]] = False
            found.append((float(work[i] - whole - (u.max() - u.mean()) * len(u)), v, halves))
        found.sort(key=lambda each: each[:2])
        return [halves for _, _, halves in found]


def bound_trees(
    problem: TreeProblem,
    *,
    starts: Sequence[IntArray] = (),
    tolerance: float = 1e-4,
    max_boxes: int | None = None,
    max_seconds: float | None = None,
    n_tried: int = 4,
    merge_after: int = 2000,
    tell: Callable[[float, float], None] | None = None,
) -> TreeBound:
    """Search for the largest difference, and prove that there is no larger one.

    Parameters
    ----------
    problem : TreeProblem
    starts : sequence of ndarray of shape (n_variables,)
        Points to start from, one cell for each variable.
    tolerance : float
        The search ends when found and proven are this close.
    max_boxes : int, optional
        Boxes to bound at most; the result is the same on every machine.
    max_seconds : float, optional
        Processor time to use at most.
    n_tried : int
        Cuts of a box that are compared.
    merge_after : int
        Boxes after which trees are merged (`tree_merging`) where a bound is more than twice the best value found.
    tell : callable, optional
        Called with the values found and proven as the search goes on.
    """
    begun = time.process_time()
    search = _Search(problem, tolerance)
    history: list[tuple[int, float, float]] = []
    box = search.everything.copy()
    for point in starts:
        search.climb(np.array(point, dtype=np.int64))
    search.climb(np.zeros(len(search.start) - 1, dtype=np.int64))
    bound, cell_bound = search.bound(box)
    heap: list[tuple[float, int, BoolArray, FloatArray]] = [(-bound, 0, box, cell_bound)]
    count, proven, stopped = 1, bound, False
    merged: set[int] = set()
    while heap:
        top = -heap[0][0]
        now = max(top, search.best, search.pruned)
        if not history or now < history[-1][2] or search.best > history[-1][1]:
            history.append((search.n_boxes, search.best, now))
        proven = now
        if tell is not None:
            tell(search.best, now)
        if top <= search.best + tolerance:
            break
        stopped = max_boxes is not None and search.n_boxes >= max_boxes
        stopped |= max_seconds is not None and time.process_time() - begun > max_seconds
        if stopped:
            break
        bound, number, box, cell_bound = heapq.heappop(heap)
        if search.n_boxes >= merge_after and search.best < -bound / 2 and number not in merged:
            # Merging takes as long as cutting dozens of boxes, and pays where cutting left the bounds far apart.
            merged.add(number)
            search.n_boxes += 1
            tighter = search.merged_bound(box)
            if tighter < -bound:
                heapq.heappush(heap, (-tighter, number, box, cell_bound))
                continue
        merged.discard(number)
        if count < 64 or count % 16 == 0 or search.is_point(box):
            search.climb(search.top(cell_bound))
        best_children: list[tuple[float, BoolArray, FloatArray]] | None = None
        best_key: tuple[float, float] | None = None
        for halves in search.splits(box, cell_bound)[:n_tried]:
            children = []
            for part in halves:
                value, bounds = search.bound(part)
                children.append((min(value, -bound), part, bounds))
            key = (max(each[0] for each in children), sum(max(each[0], search.best) for each in children))
            if best_key is None or key < best_key:
                best_key, best_children = key, children
        if best_children is None:  # a single point: the bound is its value, but for rounding
            search.pruned = max(search.pruned, -bound)
            continue
        for value, part, bounds in best_children:
            if value <= search.best + tolerance:
                search.pruned = max(search.pruned, value)
            else:
                heapq.heappush(heap, (-value, count, part, bounds))
                count += 1
    else:
        proven = max(search.best, search.pruned)
    variables = search.variables
    first, second = (
        np.array([search.point[variables.find(i, side)] for i in range(len(problem.cells))], dtype=np.int64)
        for side in (0, 1)
    )
    proven = proven * _OUTWARDS + 2.0**-50 if np.isfinite(proven) else proven
    history.append((search.n_boxes, search.best, proven))
    seconds = time.process_time() - begun
    return TreeBound(search.best, first, second, proven, search.n_boxes, seconds, history, stopped)


def interval_bound(problem: TreeProblem) -> float:
    """A bound without a search: the sum of the spreads of all trees that read an exchanged column."""
    from likewise.verification.tree_kernels import largest_difference

    exchanged, room = set(problem.exchanged), problem.rounding
    d, low, high = 2 * room, problem.baseline - room, problem.baseline + room
    for tree in problem.trees:
        leaves = tree.values[tree.left < 0, 0]
        low, high = low + float(leaves.min()), high + float(leaves.max())
        if any(problem.rows[test][0] in exchanged for test in tree.test[tree.left >= 0]):
            d += float(np.ptp(leaves))
    return float(largest_difference(_LINKS[problem.link], d, low, high, high)) * _OUTWARDS + 2.0**-50
