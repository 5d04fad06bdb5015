"""A sum of trees, and the preprocessing in front of it, over the cells of a domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.exceptions import UnprovableError
from likewise.inspection.tree_ensembles import TreeEnsemble, read_tree_ensemble
from likewise.verification.base import InputSpace
from likewise.verification.domain import CategoricalDomain
from likewise.verification.tree_problem import (
    Cells,
    ColumnTests,
    TreeProblem,
    cells_of_categories,
    cells_of_numbers,
)


@dataclass(frozen=True, eq=False)
class TreeModel:
    """Trees over cells.

    Attributes
    ----------
    space : InputSpace
    ensemble : TreeEnsemble
    cells : list of Cells
        Of each column of the people.
    tests : list of ColumnTests
    rows : list of (int, int)
        For each test of the ensemble, its column and its row among the answers there.
    """

    space: InputSpace
    ensemble: TreeEnsemble
    cells: list[Cells]
    tests: list[ColumnTests]
    rows: list[tuple[int, int]]

    @classmethod
    def read(cls, space: InputSpace) -> TreeModel:
        """Read a model, or raise `UnprovableError` with the reason."""
        preprocessing = space.preprocessing()
        ensemble = read_tree_ensemble(preprocessing.last)
        sources = preprocessing.sources
        if ensemble.order is not None:
            sources = [sources[i] for i in ensemble.order]

        def features(rows: FloatArray) -> FloatArray:
            return ensemble.features(preprocessing(space.given(rows)))

        room = 1e-9 + 64 * ensemble.unit + 2 * ensemble.rounding()
        expected = "the function of its trees that was expected"
        space.confirm(lambda rows: ensemble.outputs(features(rows)), expected, relative=64 * ensemble.unit, room=room)
        of_column: list[list[int]] = [[] for _ in space.names]
        rows: list[tuple[int, int]] = []
        for i, test in enumerate(ensemble.tests):
            source = sources[test.feature]
            if source is None:
                raise UnprovableError("a tree tests a feature that comes from no column")
            rows.append((source.column, len(of_column[source.column])))
            of_column[source.column].append(i)
        tests, cells = [], []
        for column, members in enumerate(of_column):
            monotone = [
                (source := sources[ensemble.tests[i].feature]) is not None
                and source.monotone
                and ensemble.tests[i].left is None
                and not ensemble.tests[i].zero_is_blank
                for i in members
            ]
            own = ColumnTests(
                [ensemble.tests[i] for i in members],
                lambda values, column=column: features(space.varied(column, values)),  # type: ignore[misc]
                np.array(monotone, dtype=bool),
            )
            tests.append(own)
            cells.append(_cells(space, column, own))
        return cls(space, ensemble, cells, tests, rows)

    def problem(self, exchanged: Sequence[int]) -> TreeProblem:
        """The largest difference of the outputs; of numbers as a share of their range."""
        ensemble, share = self.ensemble, 1.0
        if not self.space.probable and self.space.output_range is not None:
            share = 1 / float(np.ptp(self.space.output_range))
        trees = [replace(tree, values=tree.values * share) for tree in ensemble.trees]
        rounding = ensemble.rounding() * share
        baseline, link = ensemble.baseline * share, ensemble.link
        return TreeProblem(
            self.cells, list(exchanged), trees, self.rows, baseline, link, rounding, rules=self.space.rules
        )

    def find(self, rows: FloatArray) -> IntArray:
        """Cells of encoded people, shape (n, n_columns)."""
        return np.column_stack(
            [cells.find(rows[:, i], tests) for i, (cells, tests) in enumerate(zip(self.cells, self.tests, strict=True))]
        )

    def values(self, cells: IntArray) -> FloatArray:
        """Encoded people from cells, shape (n, n_columns)."""
        return np.column_stack([held.values[cells[:, i]] for i, held in enumerate(self.cells)])


def _cells(space: InputSpace, column: int, tests: ColumnTests) -> Cells:
    name = space.names[column]
    held, seen = space.held[column], space.rows[:, column]
    if isinstance(held, CategoricalDomain):
        codes = space.codes(column)
        counts = np.array([np.isnan(seen).sum() if np.isnan(code) else (seen == code).sum() for code in codes])
        added = [rule.added(column, codes) for rule in space.rules if column in rule.terms]
        return cells_of_categories(codes, tests, counts.astype(np.float64), added)
    present = seen[~np.isnan(seen)]
    typical = float(np.median(present)) if len(present) else held.low
    return cells_of_numbers(held, tests, typical, name)
