"""Groups and distances of categories in the linear program: their weights, and the coefficients of pairs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.inspection.linear import CategoryChanges
from likewise.kernel.distance import CODE, Kinds
from likewise.kernel.schema import Encoder
from likewise.metrics.categories import CategoryDistances, partitions
from likewise.metrics.table import TableMetric
from likewise.pairs.points import gaps_between

MOST_COMPARED = 10_000
"""Most distinct people for distances that are not nested groups, as these need a scan of all pairs."""

_PLACEHOLDER = 0.5  # for a share `within` that is to be found


class ColumnShape(NamedTuple):
    """A categorical column with groups or distances.

    Attributes
    ----------
    column : int
    places : tuple of int
        Of its weights in the linear program: that of the column, and that of two categories of one group, if it is to
        be found.
    shares : tuple of ndarray of shape (n_codes + 1, n_codes + 1)
        Per weight, its share in the distance between two codes; the distance is the sum of weights times shares.
    blocks : tuple of ndarray of shape (n_codes + 1,)
        Partitions of the codes whose mismatches add up to the distance; empty if it is not such a sum.
    mixing : ndarray of shape (n_blocks, n_weights)
        Weights of these mismatches, from those of the column.
    """

    column: int
    places: tuple[int, ...]
    shares: tuple[FloatArray, ...]
    blocks: tuple[FloatArray, ...]
    mixing: FloatArray

    @classmethod
    def declared(cls, column: int, table: FloatArray) -> ColumnShape:
        """A column with one weight, whose shares are in `table`."""
        nested = partitions(table) or []
        mixing = np.array([share for _, share in nested]).reshape(-1, 1)
        return cls(column, (column,), (table,), tuple(blocks for blocks, _ in nested), mixing)

    @classmethod
    def with_free_groups(cls, column: int, near: BoolArray, place: int) -> ColumnShape:
        """A column with one weight for categories of the same group (`near`), and one for others.

        ``w [groups differ] + v [same group, codes differ] = v [codes differ] + (w - v) [groups differ]``
        """
        codes = np.arange(len(near), dtype=np.float64)
        groups = near.argmax(axis=1).astype(np.float64)
        shares = np.asarray(~near, dtype=np.float64), near - np.eye(len(near))
        return cls(column, (column, place), shares, (codes, groups), np.array([[0.0, 1.0], [1.0, -1.0]]))


@dataclass(frozen=True, eq=False)
class CategoryShapes:
    """How distances depend on the weights of a linear program.

    There is a weight for each column of the points, and further ones for two categories of one group. The search
    compares the columns of the points, and blocks of categories in further columns.

    Attributes
    ----------
    point_kinds : ndarray
        Kinds of the columns of the points.
    columns : tuple of ColumnShape
    """

    point_kinds: Kinds
    columns: tuple[ColumnShape, ...] = ()

    @classmethod
    def of(cls, metric: TableMetric | None, free: Collection[Any], encoder: Encoder, kinds: Kinds) -> CategoryShapes:
        """The shapes of a metric; those of the columns `free` are groups whose share `within` is to be found."""
        if metric is None:
            return cls(kinds)
        found: list[ColumnShape] = []
        place = len(kinds)
        for i, table in metric.bind(encoder).tables.items():
            if encoder.names[i] in free:
                found.append(ColumnShape.with_free_groups(i, table < 1, place))
                place += 1
            else:
                found.append(ColumnShape.declared(i, table))
        return cls(kinds, tuple(found))

    @property
    def _shares(self) -> list[tuple[int, int, FloatArray]]:
        """Column, place and share in the distance of each weight of a shape."""
        return [(each.column, *own) for each in self.columns for own in zip(each.places, each.shares, strict=True)]

    @property
    def n_weights(self) -> int:
        """Weights of the linear program."""
        return len(self.point_kinds) + len(self.within)

    @property
    def within(self) -> dict[int, int]:
        """Weights of two categories of one group, and the weight of the column, which is at least as large."""
        return {shape.places[1]: shape.column for shape in self.columns if len(shape.places) > 1}

    @property
    def kinds(self) -> Kinds:
        """Kinds of the columns that the search compares."""
        return np.append(self.point_kinds, np.full(sum(len(each.blocks) for each in self.columns), CODE, np.int8))

    @property
    def tables(self) -> dict[int, FloatArray]:
        """Shares of the weight for columns whose every pair of people must be compared."""
        return {shape.column: shape.shares[0] for shape in self.columns if not shape.blocks}

    def with_blocks(self, X: FloatArray) -> FloatArray:
        """Points with the blocks of their categories."""
        if not self.columns:
            return X
        return np.column_stack([X, *(block[_codes(X, each.column)] for each in self.columns for block in each.blocks)])

    def scales(self, weights: FloatArray) -> FloatArray:
        """Weights of the columns that the search compares."""
        if not self.columns:
            return weights
        own = weights[: len(self.point_kinds)].copy()
        parts = [own]
        for shape in self.columns:
            if shape.blocks:
                own[shape.column] = 0.0
                parts.append(np.maximum(shape.mixing @ weights[list(shape.places)], 0.0))
        return np.concatenate(parts)

    def gaps(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """Coefficients of each weight in the distances between the people of two arrays, row by row."""
        n = len(self.point_kinds)
        own = gaps_between(A[:, :n], B[:, :n], self.point_kinds)
        if not self.columns:
            return own
        found = np.column_stack([own, np.zeros((len(A), len(self.within)))])
        for column, place, share in self._shares:
            found[:, place] = share[_codes(A, column), _codes(B, column)]
        return found

    def mean_gaps(self, own: FloatArray, X: FloatArray) -> FloatArray:
        """Mean coefficient of each weight over all pairs; `own` are those of the columns of the points."""
        found = np.append(own[: len(self.point_kinds)], np.zeros(len(self.within)))
        for column, place, share in self._shares:
            codes, count = np.unique(_codes(X, column), return_counts=True)
            found[place] = count @ share[np.ix_(codes, codes)] @ count / (len(X) * (len(X) - 1))
        return found

    def varies(self, X: FloatArray, own: BoolArray) -> BoolArray:
        """Whether each weight has a non-zero coefficient for some pair; `own` for the columns of the points."""
        found = np.append(own[: len(self.point_kinds)], np.zeros(len(self.within), dtype=bool))
        for column, place, share in self._shares:
            codes = np.unique(_codes(X, column))
            found[place] = share[np.ix_(codes, codes)].any()
        for within, column in self.within.items():  # which is at least as large
            found[column] |= found[within]
        return found

    def with_tables(self, blocks: Iterable[Any], X: FloatArray, scales: FloatArray) -> Iterable[Any]:
        """Blocks of pairs, as `likewise.pairs.plain.blocks_after` gives them, with distances between categories."""
        codes = {column: _codes(X, column) for column in self.tables}
        for first, differences, distances in blocks:
            for column, table in self.tables.items():
                own, later = codes[column][first : first + len(differences)], codes[column][first + 1 :]
                distances += scales[column] * table[np.ix_(own, later)]
            yield first, differences, distances


def _codes(X: FloatArray, column: int) -> IntArray:
    return X[:, column].astype(np.int64)


def shaped_weights(
    column: Any, shape: CategoryDistances, changes: CategoryChanges, *, free: bool
) -> tuple[float, float | None]:
    """Smallest weight with which distances of a shape cover the changes of output between categories.

    With `free` groups, the second number is the smallest distance within them as a share of the weight.
    """
    known = [level for level in changes.levels if not pd.isna(level)]
    place = [known.index(level) if not pd.isna(level) else len(known) for level in changes.levels]
    place += [-1] * (len(changes.matrix) - len(place))  # unseen
    table = shape.table(known, len(known) + (len(known) < len(changes.levels)))[np.ix_(place, place)]
    if free:
        within = float(changes.matrix[table < 1].max(initial=0.0))
        weight = float(changes.matrix.max(initial=0.0))
        return weight, within / weight if weight else 1.0
    equal = (table == 0) & (changes.matrix > 1e-12)
    for i, j in np.argwhere(equal)[:1]:
        a, b = (repr(changes.levels[k]) if k < len(changes.levels) else "an unseen category" for k in (i, j))
        raise InvalidInputError(
            f"groups and distances leave no metric: {a} and {b} of {column!r} are at distance 0, and outputs differ by "
            f"up to {changes.matrix[i, j]:.3g}. Declare them further apart."
        )
    return float(np.divide(changes.matrix, table, out=np.zeros(table.shape), where=table > 0).max(initial=0.0)), None


def declared_shapes(
    names: Collection[Any], categorical: Collection[Any], order: Any, groups: Any, distances: Any
) -> tuple[TableMetric, list[Any]]:
    """A metric of weight 1 with the given shapes, and the columns of groups whose share `within` is to be found.

    Columns with an order become numeric, and those with groups or distances categorical.
    """
    for parameter, given in (("order", order), ("groups", groups), ("distances", distances)):
        if not (given is None or isinstance(given, Mapping)):
            raise InvalidTypeError(f"{parameter} must be a mapping from column to value; got {type(given).__name__}.")
        for column in given or ():
            if column not in names:
                raise InvalidInputError(f"{parameter} must name columns of X, {[*names]}; got {column!r}.")
    order, groups, distances = order or {}, groups or {}, distances or {}
    free = [name for name, given in groups.items() if isinstance(given, (list, tuple))]
    numeric = [n for n in names if n in order or n not in (*categorical, *groups, *distances)]
    metric = TableMetric(
        dict.fromkeys(numeric, 1.0),
        {name: 1.0 for name in names if name not in numeric},
        order=order,
        groups={n: {"within": _PLACEHOLDER, "groups": given} if n in free else given for n, given in groups.items()},
        distances=distances,
    )
    return metric, free
