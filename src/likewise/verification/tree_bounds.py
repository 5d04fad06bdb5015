"""How much exchanging columns can change a sum of trees: boxes of cells, with a bound for each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.kernel.proof import Searched
from likewise.verification.search import Bounded, Limits, search_boxes
from likewise.verification.tree_problem import RuledBoxes, TreeProblem, Variables, pieces_of

if TYPE_CHECKING:
    from likewise.verification.tree_merging import TreeMerger

_MERGE_AFTER = 2000  # boxes after which trees are merged where a bound is more than twice the best value found
_CUTS = 4  # of a box that are compared


class Costs(NamedTuple):
    """Least distances between the cells of both people in exchanged columns.

    Attributes
    ----------
    table : ndarray
        The distances of one column after the other; `start` has where each begins.
    variables : ndarray of shape (n_columns, 2)
        Those of both people.
    """

    table: FloatArray
    start: IntArray
    variables: IntArray

    @classmethod
    def of(cls, problem: TreeProblem, variables: Variables) -> Costs:
        """Those of a problem."""
        columns = [i for i in problem.exchanged if i in problem.distances]
        pairs = [(variables.find(i, 0), variables.find(i, 1)) for i in columns]
        tables = [problem.distances[i].ravel() for i in columns]
        ends = np.concatenate([[0], np.cumsum([len(each) for each in tables])])
        return cls(
            np.concatenate([np.empty(0), *tables]),
            ends.astype(np.int64),
            np.array(pairs, dtype=np.int64).reshape(-1, 2),
        )


class FlatTrees(NamedTuple):
    """All trees that count, in a few arrays: of nodes, the answers of each test for each cell, and the roots."""

    left: IntArray
    right: IntArray
    test: IntArray
    column: IntArray
    answers: BoolArray
    values: FloatArray
    roots: IntArray

    @classmethod
    def of(cls, problem: TreeProblem) -> FlatTrees:
        """Those of a problem."""
        rows, trees = problem.rows, problem.counted
        answers = np.zeros((len(rows), max((len(cells) for cells in problem.cells), default=1)), dtype=bool)
        for i, (where, row) in enumerate(rows):
            given = problem.cells[where].answers[row]
            answers[i, : len(given)] = given
        columns = np.array([where for where, _ in rows] + [-1], dtype=np.int64)  # of a leaf, whose test is -1
        offsets = np.cumsum([0, *(len(tree.left) for tree in trees)])
        none = np.empty(0, dtype=np.int64)

        def shifted(parts: Sequence[IntArray]) -> IntArray:
            """Children by their places among the nodes of all trees."""
            moved = [np.where(part < 0, -1, part + offset) for part, offset in zip(parts, offsets, strict=False)]
            return np.concatenate([none, *moved])

        test = np.concatenate([none, *(tree.test for tree in trees)]).astype(np.int64)
        values = np.concatenate([np.empty((0, len(problem.baseline))), *(tree.values for tree in trees)])
        left, right = shifted([tree.left for tree in trees]), shifted([tree.right for tree in trees])
        return cls(left, right, test, columns[test], answers, values, offsets[:-1].astype(np.int64))


class TreeBound(NamedTuple):
    """What a search came to, and the cells of the two people at the best point it found, of each column."""

    searched: Searched
    cells_a: IntArray
    cells_b: IntArray


class Box(NamedTuple):
    """Cells of all variables, the bounds of single ones, and whether trees were merged over it."""

    cells: BoolArray
    cell_bound: FloatArray
    merged: bool = False


class _TreeBoxes:
    """Boxes of cells: one set for each column that both people share, and one for either person for the others."""

    def __init__(self, problem: TreeProblem, gap: float, merge_after: int) -> None:
        self.problem, self.gap, self.merge_after = problem, gap, merge_after
        self.variables = Variables.of(problem.cells, problem.exchanged)
        self.start = self.variables.start
        self.pieces = pieces_of(problem, self.variables)
        self.costs, self.trees = Costs.of(problem, self.variables), FlatTrees.of(problem)
        self.rules = RuledBoxes(self.variables, problem.cells, problem.rules)
        self.point = np.zeros(len(self.start) - 1, dtype=np.int64)
        self.found, self.n_boxes, self.n_kept = -np.inf, 0, 0
        self.everything = np.ones(int(self.start[-1]), dtype=bool)

    def first(self) -> list[Bounded]:
        self.climb(np.zeros(len(self.start) - 1, dtype=np.int64))
        return self.bound(self.everything.copy())

    def cut(self, boxes: Sequence[Bounded]) -> list[list[Bounded]]:
        return [self._cut(bound, box) for bound, box in boxes]

    def _cut(self, most: float, box: Box) -> list[Bounded]:
        if self.n_boxes >= self.merge_after and self.found < most / 2 and not box.merged:
            # Merging takes as long as cutting dozens of boxes, and pays where cutting left the bounds far apart.
            self.n_boxes += 1
            tighter = self.merged_bound(box.cells)
            if tighter < most:
                return [(tighter, box._replace(merged=True))]
        if self.n_kept < 64 or self.n_kept % 16 == 0 or int(box.cells.sum()) == len(self.start) - 1:
            self.climb(self.top(box.cell_bound))
        best: list[Bounded] = []  # none for a single point: the bound is its value, but for rounding
        best_key = (np.inf, np.inf)
        for halves in self.splits(box)[:_CUTS]:
            parts = [each for half in halves for each in self.bound(half)]
            values = [min(value, most) for value, part in parts if part is not None]
            key = max(values, default=-np.inf), sum(max(each, self.found) for each in values)
            if not best or key < best_key:
                best_key, best = key, parts
        self.n_kept += sum(part is not None and value > self.found + self.gap for value, part in best)
        return best

    def bound(self, cells: BoolArray) -> list[Bounded]:
        """A box without cells that cannot improve on the best point, and the bound of these."""
        from likewise.verification.tree_kernels import box_bound, box_limits

        cell_bound, left_out = np.empty(len(cells)), -np.inf
        while True:
            self.n_boxes += 1
            if not self.rules.feasible(cells):
                return [(-np.inf, None), (left_out, None)]
            values = self.problem.largest(box_limits(cells, self.start, self.pieces).T)
            bound = float(box_bound(cells, self.start, values, self.costs, cell_bound))
            weak = cells & (cell_bound <= self.found + self.gap)
            if bound <= self.found + self.gap or not weak.any():
                break
            left_out = max(left_out, float(cell_bound[weak].max()))
            cells &= ~weak
            # Pruning a few cells hardly changes the bound; pruning a tenth of them may.
            if weak.sum() < 0.1 * cells.sum():
                cell_bound = np.where(cells, cell_bound, -np.inf)
                break
        return [(bound, Box(cells, cell_bound)), (left_out, None)]

    def merged_bound(self, cells: BoolArray) -> float:
        """A tighter bound by merging trees; infinite if a distance is subtracted, or there is little to gain."""
        if len(self.costs.variables) or len(self.merger.trees) < 2:
            return np.inf
        n = len(self.problem.outputs.directions)
        change = np.array([[self.merger.bound(cells, k) for k in range(n)]])
        change += 2 * self.problem.rounding * np.abs(self.problem.outputs.directions).sum(axis=1)
        # Without limits on the scores, the link is taken where it is steepest.
        return float(self.problem.outputs.largest(change)[0])

    @cached_property
    def merger(self) -> TreeMerger:
        """The trees as sets of bits."""
        from likewise.verification.tree_merging import TreeMerger

        return TreeMerger(self.pieces, self.start, len(self.problem.outputs.directions))

    def climb(self, point: IntArray) -> None:
        """Search for a better point from a given one; climbing may break the rules."""
        from likewise.verification.tree_kernels import climb

        for allowed in [self.everything, ~self.everything][: 1 + bool(self.problem.rules)]:
            at, is_identity = point.copy(), self.problem.link == "identity"
            shape = self.problem.baseline, self.costs, len(self.problem.cells)
            found = climb(at, allowed, self.variables, self.trees, is_identity, *shape)
            if found > self.found and self.rules.holds(at):
                self.found, self.point = float(found), at

    def top(self, cell_bound: FloatArray) -> IntArray:
        """The cell of each variable with the largest bound."""
        return np.array(
            [int(cell_bound[a:b].argmax()) for a, b in zip(self.start[:-1], self.start[1:], strict=True)],
            dtype=np.int64,
        )

    def splits(self, box: Box) -> list[tuple[BoolArray, BoolArray]]:
        """Ways to split a box by the cells of one variable, the most promising first."""
        cells, cell_bound, _ = box
        found: list[tuple[float, int, tuple[BoolArray, BoolArray]]] = []
        limit = self.found + self.gap if np.isfinite(self.found) else float(cell_bound[cells].min())
        for v in range(len(self.start) - 1):
            a, b = int(self.start[v]), int(self.start[v + 1])
            inside = np.flatnonzero(cells[a:b])
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
            halves = cells.copy(), cells.copy()
            for half, gone in zip(halves, (order[i + 1 :], order[: i + 1]), strict=True):
                half[a + inside[gone]] = False
            found.append((float(work[i] - whole - (u.max() - u.mean()) * len(u)), v, halves))
        found.sort(key=lambda each: each[:2])
        return [halves for _, _, halves in found]


def bound_trees(
    problem: TreeProblem, limits: Limits, starts: Sequence[IntArray] = (), *, merge_after: int = _MERGE_AFTER
) -> TreeBound:
    """Search for the largest difference, and bound everybody's.

    Parameters
    ----------
    problem : TreeProblem
    limits : Limits
    starts : sequence of ndarray of shape (n_variables,)
        Points to start from, one cell for each variable.
    merge_after : int
        Boxes after which trees are merged (`tree_merging`).
    """
    boxes = _TreeBoxes(problem, limits.gap, merge_after)
    for point in starts:
        boxes.climb(np.array(point, dtype=np.int64))
    return TreeBound(search_boxes(boxes, limits), *boxes.variables.split(boxes.point))


def interval_bound(problem: TreeProblem) -> float:
    """A bound without a search: the sum of the spreads of all trees that read an exchanged column."""
    d = problem.outputs.directions
    change, low, high = np.zeros((3, 1, len(d)))
    for tree in problem.counted:
        leaves = tree.values[tree.left < 0] @ d.T
        low, high = low + leaves.min(axis=0), high + leaves.max(axis=0)
        change = change + problem.reads(tree) * np.ptp(leaves, axis=0)
    return float(problem.largest(problem.limits(change, low, high, high))[0])
