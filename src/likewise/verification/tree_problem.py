"""Two people in trees: cells of values that no test distinguishes, and pairs of leaves as boxes of cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.exceptions import UnprovableError
from likewise.inspection.additive_scores import LOGIT
from likewise.inspection.tree_ensembles import Test, Tree
from likewise.verification.base import CodedRule
from likewise.verification.domain import NumericDomain
from likewise.verification.outputs import Outputs

_MOST_PIECES = 2_000_000
_ENUMERATED = 4096  # largest number of values of a column that are enumerated


@dataclass(frozen=True, eq=False)
class ColumnTests:
    """The tests that read one column.

    Attributes
    ----------
    tests : list of Test
    features : callable
        From encoded values of the column to the features that the tests are about, shape (n_values, n_features).
    monotone : ndarray of bool, shape (n_tests,)
        Whether the feature of a test rises or falls with the column.
    """

    tests: list[Test]
    features: Callable[[FloatArray], FloatArray]
    monotone: BoolArray

    def answers(self, values: FloatArray) -> BoolArray:
        """Answers for encoded values, shape (n_tests, n_values)."""
        if not self.tests:
            return np.zeros((0, len(values)), dtype=bool)
        features = self.features(values)
        return np.array([test.goes_left(features[:, test.feature]) for test in self.tests])

    def own_answers(self, which: IntArray, values: FloatArray) -> BoolArray:
        """The answer of each test for its own value."""
        features = self.features(values)
        chosen = [self.tests[i] for i in which]
        found = features[np.arange(len(values)), [test.feature for test in chosen]]
        return np.array([test.goes_left(found[i : i + 1])[0] for i, test in enumerate(chosen)])


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of one column.

    Attributes
    ----------
    values : ndarray of shape (n_cells,)
        An encoded value of each cell; NaN for a missing number.
    low, high : ndarray of shape (n_cells,)
        The lowest and highest number of each cell; NaN for categories and missing numbers.
    answers : ndarray of bool, shape (n_tests, n_cells)
    ordered : bool
        Whether cells are ranges of numbers in ascending order; a missing number comes last.
    """

    values: FloatArray
    low: FloatArray
    high: FloatArray
    answers: BoolArray
    ordered: bool

    def __len__(self) -> int:
        return len(self.values)

    @property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Both ends of each cell; its only value where it is no range of numbers."""
        single = np.isnan(self.low)
        return np.where(single, self.values, self.low), np.where(single, self.values, self.high)

    def find(self, coded: FloatArray, tests: ColumnTests) -> IntArray:
        """The cell of each value, by the answers of the tests and by range."""
        found = np.zeros(len(coded), dtype=np.int64)
        given = tests.answers(coded)
        for k in range(len(self)):
            same = (given == self.answers[:, k : k + 1]).all(axis=0)
            if self.ordered:
                blank = np.isnan(self.values[k])
                same &= np.isnan(coded) if blank else (coded >= self.low[k]) & (coded <= self.high[k])
            found[same] = k
        return found


def cells_of_categories(
    codes: FloatArray, tests: ColumnTests, counts: FloatArray, added: Sequence[FloatArray] = ()
) -> Cells:
    """Group categories by their answers; each group is represented by its most frequent member.

    Parameters
    ----------
    added : sequence of ndarray of shape (n_codes,)
        What each category adds to the rules that read the column, by which it is told apart as well.
    """
    given, told = tests.answers(codes), np.array([*added, np.zeros(len(codes))])
    groups: dict[bytes, list[int]] = {}
    for i in range(len(codes)):
        groups.setdefault(given[:, i].tobytes() + told[:, i].tobytes(), []).append(i)
    chosen = np.array([max(members, key=lambda i: (counts[i], -i)) for members in groups.values()], dtype=np.int64)
    blank = np.full(len(chosen), np.nan)
    return Cells(codes[chosen], blank, blank, given[:, chosen], ordered=False)


def cells_of_numbers(domain: NumericDomain, tests: ColumnTests, typical: float, name: Any) -> Cells:
    """Cut a range of numbers where an answer changes.

    Values are enumerated if they are few. Otherwise each test must be monotone, and bisection finds the two
    neighbouring numbers between which its answer changes.
    """
    start, last, answers = domain.first, domain.last, tests.answers
    if domain.n_values <= _ENUMERATED:
        every = answers(domain.every())
        ends = start + np.flatnonzero((every[:, 1:] != every[:, :-1]).any(axis=0))
    else:
        if not tests.monotone.all():
            raise UnprovableError(
                f"the values of {name!r} have to be enumerated, and there are too many; give the column a "
                "step in the domain"
            )
        ends = _turns(domain, tests)
    first = np.concatenate([[start], ends + 1]).astype(np.int64)
    final = np.concatenate([ends, [last]]).astype(np.int64)
    low, high = domain.at(first), domain.at(final)
    values = np.array([_shown(domain, *each, typical) for each in zip(first, final, low, high, strict=True)])
    given = answers(values)
    if not ((answers(low) == given).all() and (answers(high) == given).all()):
        raise UnprovableError(f"the tests on {name!r} are not monotone in its numbers")
    if domain.blank:
        blank = np.array([np.nan])
        values, low, high = (np.concatenate([part, blank]) for part in (values, low, high))
        given = np.concatenate([given, answers(blank)], axis=1)
    return Cells(values, low, high, given, ordered=True)


def _turns(domain: NumericDomain, tests: ColumnTests) -> IntArray:
    """Positions behind which the answer of a test changes, ascending."""
    at_ends = tests.answers(domain.at(np.array([domain.first, domain.last])))
    turning = np.flatnonzero(at_ends[:, 0] != at_ends[:, 1])
    low, high = (np.full(len(turning), end, dtype=np.int64) for end in (domain.first, domain.last))
    before = at_ends[turning, 0]
    while True:
        middle = (low >> 1) + (high >> 1) + (low & high & 1)  # half of the sum, which may overflow
        apart = middle > low
        if not apart.any():
            break
        same = tests.own_answers(turning, domain.at(middle)) == before
        low, high = np.where(apart & same, middle, low), np.where(apart & ~same, middle, high)
    return np.unique(low)


def _shown(domain: NumericDomain, first: int, final: int, low: float, high: float, typical: float) -> float:
    """A value of a cell that reads well: near the typical one, with few digits."""
    target = min(max(typical, low), high)
    if domain.step is not None:
        guess = int(np.clip(np.rint((target - low) / domain.step), 0, final - first))
        return float(domain.at(first + guess))
    for digits in range(-6, 17):
        rounded = round(target, digits)
        if low <= rounded <= high:
            return float(rounded)
    return float(target)


class Variables(NamedTuple):
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

    def split(self, point: Any) -> tuple[Any, Any]:
        """The values of both people, of each column, from a value for each variable."""
        first, second = (point[np.isin(self.side, (side, 2))] for side in (0, 1))
        return first, second

    def joined(self, first: IntArray, second: IntArray) -> IntArray:
        """A cell for each variable from the cells of both people."""
        return np.where(self.side == 1, second[self.column], first[self.column])


class RuledBoxes:
    """Which boxes may hold two people who keep the rules of a domain."""

    def __init__(self, variables: Variables, cells: Sequence[Cells], rules: Sequence[CodedRule]) -> None:
        self.start = variables.start
        # For each rule and either person, the least that every cell of each variable adds.
        self.least: list[tuple[float, list[tuple[int, FloatArray]]]] = []
        for rule in rules:
            for side in (0, 1):
                lows = []
                for i in rule.terms:
                    ends = np.minimum(*(rule.added(i, end) for end in cells[i].ends))
                    lows.append((variables.find(i, side), np.where(np.isnan(ends), -np.inf, ends)))
                self.least.append((rule.limit, lows))

    def feasible(self, box: BoolArray) -> bool:
        """Whether a box may hold such people, as far as one rule at a time says."""
        start = self.start
        return all(
            sum(float(least[box[start[v] : start[v + 1]]].min()) for v, least in lows) <= limit
            for limit, lows in self.least
        )

    def holds(self, point: IntArray) -> bool:
        """The same of a box with one cell for each variable."""
        box = np.zeros(int(self.start[-1]), dtype=bool)
        box[self.start[:-1] + point] = True
        return self.feasible(box)


class Pieces(NamedTuple):
    """Trees as boxes on which both people get one leaf each (`tree_kernels`).

    Attributes
    ----------
    tree_start : ndarray of shape (n_trees + 1,)
        Where the pieces of each tree begin.
    limits : ndarray of shape (n_pieces, n_limits)
        What each piece adds to the upper limits of a box: of each direction of the outputs the change and, where they
        are used, those of both people; for the logistic link the change, minus the first score, and both scores.
    con_start, con_mask
        The masks that a piece consists of.
    mask_var, mask_start, mask_cells
        Masks: the cells of one variable, as positions in a box.
    """

    tree_start: IntArray
    limits: FloatArray
    con_start: IntArray
    con_mask: IntArray
    mask_var: IntArray
    mask_start: IntArray
    mask_cells: IntArray


@dataclass(frozen=True, eq=False)
class TreeProblem:
    """The largest difference between the outputs of two people who share all columns but the exchanged ones.

    Attributes
    ----------
    cells : list of Cells
        Of each column.
    exchanged : list of int
    trees : list of Tree
    rows : list of (int, int)
        Column and row among its answers of each test.
    baseline : ndarray of shape (n_scores,)
    link : {"identity", "logistic", "softmax"}
    rounding : float
        What rounding may add to a score.
    distances : dict from int to ndarray, optional
        Least distance between the cells of an exchanged column, which is taken off the difference.
    rules : sequence of CodedRule
        Of the domain.
    """

    cells: list[Cells]
    exchanged: list[int]
    trees: list[Tree]
    rows: list[tuple[int, int]]
    baseline: FloatArray
    link: str
    rounding: float
    distances: dict[int, FloatArray] = field(default_factory=dict)
    rules: Sequence[CodedRule] = ()

    @cached_property
    def outputs(self) -> Outputs:
        """From limits of scores to differences of outputs."""
        return Outputs(self.link, len(self.baseline))

    def reads(self, tree: Tree) -> bool:
        """Whether a tree tests an exchanged column; others give both people the same leaf."""
        return any(self.rows[test][0] in self.exchanged for test in tree.test[tree.left >= 0])

    @cached_property
    def counted(self) -> list[Tree]:
        """Trees that matter: those that cancel do only where the output depends on where the scores are."""
        return [tree for tree in self.trees if self.outputs.joint or self.reads(tree)]

    def limits(self, change: FloatArray, low: FloatArray, one: FloatArray, other: FloatArray) -> FloatArray:
        """Limits in the order of `Pieces`, from those of the change, and of both people."""
        if self.link == "logistic":
            return np.concatenate([change, -low, one, other], axis=1)
        return np.concatenate([change, one, other], axis=1) if self.outputs.joint else change

    def largest(self, limits: FloatArray) -> FloatArray:
        """Largest differences of outputs, from limits without the baseline, shape (n, n_limits)."""
        d = self.outputs.directions
        base, room = d @ self.baseline, self.rounding * np.abs(d).sum(axis=1)
        limits = limits + self.limits(*(each[None] for each in (2 * room, base - room, base + room, base + room)))
        if self.link == "logistic":
            change, minus_low, high, top = limits.T
            return LOGIT.rise(change, -minus_low, high, top)
        return self.outputs.largest(*np.split(limits, limits.shape[1] // len(d), axis=1))


def pieces_of(problem: TreeProblem, variables: Variables) -> Pieces:
    """Cut trees into pieces."""
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

    for tree in problem.counted:
        reads = problem.reads(tree)
        for node_a, held_a in leaves(tree, 0, {}):
            pairs = leaves(tree, 1, held_a) if reads else [(node_a, held_a)]
            for node_b, held in pairs:
                a.append(tree.values[node_a])
                b.append(tree.values[node_b])
                con_mask += [masks.setdefault(each, len(masks)) for each in held.items()]
                con_start.append(len(con_mask))
        tree_start.append(len(a))
        if len(a) > _MOST_PIECES:
            raise UnprovableError(f"its trees have more than {_MOST_PIECES:,} pairs of leaves")
    mask_cells = [np.flatnonzero(_unbits(bits)) + variables.start[variable] for variable, bits in masks]
    one, other = (
        np.array(each, dtype=np.float64).reshape(-1, len(problem.baseline)) @ problem.outputs.directions.T
        for each in (a, b)
    )
    return Pieces(
        np.array(tree_start, dtype=np.int64),
        np.ascontiguousarray(problem.limits(other - one, one, one, other)),
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
