"""Two people in one tree: the pairs of leaves that they can be in together, as boxes of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.exceptions import UnprovableError
from likewise.inspection.tree_ensembles import Tree
from likewise.verification.cells import Cells

_MOST_PIECES = 2_000_000


@dataclass(frozen=True, eq=False)
class Variables:
    """What a box has a set of cells for: each shared column, and each exchanged column twice.

    Attributes
    ----------
    column : ndarray of shape (n_variables,)
        Position among the columns.
    side : ndarray of shape (n_variables,)
        0 for the first person alone, 1 for the second, 2 for both.
    start : ndarray of shape (n_variables + 1,)
        Where the cells of each variable begin among all.
    """

    column: IntArray
    side: IntArray
    start: IntArray

    @classmethod
    def of(cls, cells: Sequence[Cells], exchanged: Sequence[int]) -> Variables:
        """One variable for each shared column, and two for each exchanged one."""
        column, side = [], []
        for i in range(len(cells)):
            column += [i, i] if i in exchanged else [i]
            side += [0, 1] if i in exchanged else [2]
        sizes = [len(cells[i]) for i in column]
        return cls(np.array(column), np.array(side), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))

    def find(self, column: int, side: int) -> int:
        """The variable of one person in one column."""
        return int(np.flatnonzero((self.column == column) & ((self.side == side) | (self.side == 2)))[0])


@dataclass(frozen=True, eq=False)
class Pieces:
    """Trees as boxes on which both people get one leaf each (`tree_kernels`)."""

    tree_start: IntArray
    a: FloatArray
    b: FloatArray
    con_start: IntArray
    con_mask: IntArray
    mask_var: IntArray
    mask_start: IntArray
    mask_cells: IntArray


@dataclass(frozen=True, eq=False)
class TreeProblem:
    """The largest ``output(b) - output(a)`` of two people who share all columns but the exchanged ones.

    Attributes
    ----------
    cells : list of Cells
        Of each column.
    exchanged : list of int
        Columns in which the two may differ.
    trees : list of Tree
        With one score.
    rows : list of (int, int)
        Column and row among its answers of each test.
    baseline : float
    link : {"identity", "logistic", "tanh"}
        "tanh" for scores whose difference moves the odds of some set of classes.
    rounding : float
        What rounding may add to a score.
    distances : dict from int to ndarray, optional
        Least distance between the cells of an exchanged column, which is taken off the difference.
    rules : sequence of (dict from int to float, float)
        Coefficients by column and upper limit, for both people.
    """

    cells: list[Cells]
    exchanged: list[int]
    trees: list[Tree]
    rows: list[tuple[int, int]]
    baseline: float
    link: str
    rounding: float
    distances: dict[int, FloatArray] = field(default_factory=dict)
    rules: Sequence[tuple[dict[int, float], float]] = ()


def pieces_of(problem: TreeProblem, variables: Variables) -> Pieces:
    """Cut trees into pieces. Trees that read no exchanged column give both people the same leaf: they cancel."""
    exchanged = set(problem.exchanged)
    masks: dict[tuple[int, int], int] = {}
    sets = [[_bits(row) for row in cells.answers] for cells in problem.cells]
    everything = [(1 << len(cells)) - 1 for cells in problem.cells]
    sides = [{i: variables.find(i, side) for i in range(len(problem.cells))} for side in (0, 1)]
    tree_start, a, b, con_start, con_mask = [0], [], [], [0], []

    def leaves(tree: Tree, side: int, given: dict[int, int]) -> Any:
        """Leaves that a person can reach, with the cells of each variable on the way."""
        stack = [(0, given)]
        while stack:
            node, held = stack.pop()
            if tree.left[node] < 0:
                yield node, held
                continue
            column, row = problem.rows[tree.test[node]]
            variable = sides[side][column]
            before = held.get(variable, everything[column])
            for child, part in (
                (tree.right[node], before & ~sets[column][row]),
                (tree.left[node], before & sets[column][row]),
            ):
                if part:
                    stack.append((int(child), held if part == before else {**held, variable: part}))

    for tree in problem.trees:
        inner = tree.test[tree.left >= 0]
        reads = any(problem.rows[test][0] in exchanged for test in inner)
        if not reads and problem.link != "logistic":
            continue
        for node_a, held_a in leaves(tree, 0, {}):
            pairs = leaves(tree, 1, held_a) if reads else [(node_a, held_a)]
            for node_b, held in pairs:
                a.append(float(tree.values[node_a, 0]))
                b.append(float(tree.values[node_b, 0]))
                con_mask += [masks.setdefault(each, len(masks)) for each in held.items()]
                con_start.append(len(con_mask))
        tree_start.append(len(a))
        if len(a) > _MOST_PIECES:
            raise UnprovableError(f"its trees have more than {_MOST_PIECES:,} pairs of leaves")
    mask_cells = [np.flatnonzero(_unbits(bits)) + variables.start[variable] for variable, bits in masks]
    return Pieces(
        np.array(tree_start, dtype=np.int64),
        np.array(a, dtype=np.float64),
        np.array(b, dtype=np.float64),
        np.array(con_start, dtype=np.int64),
        np.array(con_mask, dtype=np.int64),
        np.array([variable for variable, _ in masks], dtype=np.int64),
        np.concatenate([[0], np.cumsum([len(each) for each in mask_cells])]).astype(np.int64),
        np.concatenate([np.empty(0, dtype=np.int64), *mask_cells]).astype(np.int64),
    )


def _bits(row: BoolArray) -> int:
    return sum(1 << i for i in np.flatnonzero(row).tolist())


def _unbits(bits: int) -> BoolArray:
    return np.array([digit == "1" for digit in reversed(f"{bits:b}")])
