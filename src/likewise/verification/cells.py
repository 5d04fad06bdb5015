"""Cells of columns: sets of values that none of a model's tests can tell apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.exceptions import UnprovableError
from likewise.inspection.tree_ensembles import Test
from likewise.verification.domain import CategoricalDomain, NumericDomain

_ENUMERATED = 4096  # values of a column that are looked at one by one


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
        """The answer of each of some tests for a value of its own."""
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


def cells_of_categories(codes: FloatArray, tests: ColumnTests, counts: FloatArray) -> Cells:
    """Group categories by the answers they get; each group is shown by its most frequent member."""
    given = tests.answers(codes)
    groups: dict[bytes, list[int]] = {}
    for i in range(len(codes)):
        groups.setdefault(given[:, i].tobytes(), []).append(i)
    chosen = np.array([max(members, key=lambda i: (counts[i], -i)) for members in groups.values()], dtype=np.int64)
    blank = np.full(len(chosen), np.nan)
    return Cells(codes[chosen], blank, blank, given[:, chosen], ordered=False)


def cells_of_numbers(domain: NumericDomain, tests: ColumnTests, typical: float, name: Any) -> Cells:
    """Cut a range of numbers where an answer changes.

    Values are looked at one by one if they are few. Otherwise each test must be monotone, and bisection finds the two
    neighbouring numbers between which its answer changes.
    """
    start, last, answers = domain.first, domain.last, tests.answers
    if last - start < _ENUMERATED and domain.step is not None:
        every = answers(domain.at(np.arange(start, last + 1)))
        ends = start + np.flatnonzero((every[:, 1:] != every[:, :-1]).any(axis=0))
    else:
        if not tests.monotone.all():
            raise UnprovableError(
                f"the values of {name!r} have to be looked at one by one, and there are too many; give the column a "
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
        middle = (low >> 1) + (high >> 1) + (low & high & 1)  # half of the sum, which may be too large to hold
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


def cells_of(
    domain: NumericDomain | CategoricalDomain,
    codes: FloatArray,
    counts: FloatArray,
    tests: ColumnTests,
    typical: float,
    name: Any,
) -> Cells:
    """Cells of a column; `codes` and `counts` are those of the categories, if it holds categories."""
    if isinstance(domain, CategoricalDomain):
        return cells_of_categories(codes, tests, counts)
    return cells_of_numbers(domain, tests, typical, name)
