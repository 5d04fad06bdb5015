"""Distances between the categories of a column: groups of near categories, or a matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from likewise._frozen import Frozen
from likewise._typing import FloatArray, IntArray
from likewise._validation import short_repr
from likewise.exceptions import InvalidInputError
from likewise.kernel.columns import LevelIndex, canonical_category

_MAX_CATEGORIES = 500  # the triangle inequality is checked for all triples
_PLAIN = (str, bool, int, float)
_TOLERANCE = 1e-12  # of the largest distance: rounding of decimals
_MOST_CUT = 12  # codes, whose 2,047 partitions into two parts are tried
_ROUNDING = 1e-13  # of a sum of shares


@dataclass(frozen=True, eq=False)
class CategoryDistances(Frozen):
    """Distances between categories, as shares of the column's weight.

    A category that is not listed, and a missing value, is at distance 1 from every other.

    Attributes
    ----------
    categories : tuple
    matrix : ndarray of shape (n_categories, n_categories)
        Symmetric, with a diagonal of 0 and the largest entry 1; it satisfies the triangle inequality.
    """

    categories: tuple[Any, ...]
    matrix: FloatArray

    @classmethod
    def from_groups(cls, column: Any, given: Any) -> CategoryDistances:
        """Categories of one group are at distance `within`, others at 1: ``{"within": 0.3, "groups": [...]}``.

        Examples
        --------
        >>> given = {"within": 0.3, "groups": [["clerk", "teacher"], ["farmer"]]}
        >>> CategoryDistances.from_groups("job", given).matrix
        array([[0. , 0.3, 1. ],
               [0.3, 0. , 1. ],
               [1. , 1. , 0. ]])
        """
        if not isinstance(given, Mapping) or {*given} != {"within", "groups"}:
            raise InvalidInputError(
                f"groups must be like {{'within': 0.3, 'groups': [['a', 'b'], ['c']]}}; got {short_repr(given)} for "
                f"{column!r}."
            )
        within, groups = given["within"], given["groups"]
        if isinstance(within, bool) or not isinstance(within, (int, float, np.number)) or not 0 <= within <= 1:
            raise InvalidInputError(
                f"within must be a share of the column's weight, between 0 and 1; got {short_repr(within)} for "
                f"{column!r}. 0 makes the categories of a group equal."
            )
        if not _is_list(groups) or not groups or not all(_is_list(group) and len(group) for group in groups):
            raise InvalidInputError(
                f"groups must be lists of categories, such as [['a', 'b'], ['c']]; got {short_repr(groups)} for "
                f"{column!r}."
            )
        categories = tuple(category for group in groups for category in group)
        _check_distinct(column, categories)
        of = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        matrix = np.where(of[:, None] == of, float(within), 1.0)
        np.fill_diagonal(matrix, 0.0)
        return cls(categories, matrix)

    @classmethod
    def from_matrix(cls, column: Any, given: Any) -> CategoryDistances:
        """Distances as a square DataFrame, or as a mapping of mappings that has each pair once or twice.

        Only ratios count: the largest becomes 1.

        Examples
        --------
        >>> hours = {"north": {"south": 8, "east": 4}, "east": {"south": 6}}
        >>> CategoryDistances.from_matrix("region", hours).matrix
        array([[0.  , 0.5 , 1.  ],
               [0.5 , 0.  , 0.75],
               [1.  , 0.75, 0.  ]])
        """
        if isinstance(given, pd.DataFrame):
            given = given.to_dict(orient="index")
        if not isinstance(given, Mapping) or not all(isinstance(row, Mapping) for row in given.values()):
            raise InvalidInputError(
                f"distances must be a square DataFrame or like {{'a': {{'b': 1, 'c': 2}}, 'b': {{'c': 1}}}}; got "
                f"{short_repr(given)} for {column!r}."
            )
        categories = tuple(dict.fromkeys([*given, *(b for row in given.values() for b in row)]))
        _check_distinct(column, categories)
        matrix = np.full((len(categories), len(categories)), np.nan)
        at = {category: i for i, category in enumerate(categories)}
        for a, row in given.items():
            for b, distance in row.items():
                _check_entry(column, a, b, distance)
                matrix[at[a], at[b]] = distance
        matrix[np.diag_indices_from(matrix)] = 0.0
        matrix = np.where(np.isnan(matrix), matrix.T, matrix)
        for i, j in np.argwhere(np.isnan(matrix))[:1]:
            raise _error(column, "have every pair of categories", f"none for {categories[i]!r} and {categories[j]!r}")
        for i, j in np.argwhere(matrix != matrix.T)[:1]:
            raise _error(
                column,
                "be the same in both directions",
                f"{matrix[i, j]:g} from {categories[i]!r} to {categories[j]!r}, and {matrix[j, i]:g} back",
            )
        if not matrix.any():
            raise _error(column, "have one above 0", "0 for every pair", f"Give {column!r} the weight 0.")
        _check_triangle(column, categories, matrix)
        return cls(categories, matrix / matrix.max())

    @property
    def smallest(self) -> float:
        """Smallest positive share between two categories; 1 if there is none."""
        return float(self.matrix[self.matrix > 0].min(initial=1.0))

    def table(self, levels: Sequence[Any], n_codes: int) -> FloatArray:
        """Distances between the codes of an encoder, whose first `levels` are categories; the last is `UNSEEN`.

        A listed category that the encoder does not know is unseen, so an unseen one is as near as these are.
        """
        index = LevelIndex(self.categories)
        place = np.array([index.find(level) for level in levels], dtype=np.int64).reshape(-1)
        table = 1.0 - np.eye(n_codes + 1)
        known = np.flatnonzero(place >= 0)
        table[np.ix_(known, known)] = self.matrix[np.ix_(place[known], place[known])]
        unknown = np.setdiff1d(np.arange(len(self.categories)), place)
        if len(unknown) and len(known):
            nearest = self.matrix[np.ix_(unknown, place[known])].min(axis=0)
            table[-1, known] = table[known, -1] = nearest
        return table


def partitions(table: FloatArray) -> list[tuple[FloatArray, float]] | None:
    """Partitions of codes, with weights whose sum over those that separate two codes is their distance.

    Ultrametrics, ``d(a, c) <= max(d(a, b), d(b, c))``, such as groups, have nested ones. Of up to `_MOST_CUT` codes,
    all distances have them that are those of points in L1, so lines, trees and the plane do. None if there are none.

    Examples
    --------
    >>> table = np.array([[0, 0.3, 1], [0.3, 0, 1], [1, 1, 0]])
    >>> [(codes.tolist(), round(weight, 1)) for codes, weight in partitions(table)]
    [([0.0, 1.0, 2.0], 0.3), ([0.0, 0.0, 2.0], 0.7)]
    >>> line = np.array([[0, 0.5, 1], [0.5, 0, 0.5], [1, 0.5, 0]])
    >>> [(codes.tolist(), round(weight, 1)) for codes, weight in partitions(line)]
    [([1.0, 0.0, 0.0], 0.5), ([1.0, 1.0, 0.0], 0.5)]
    """
    if any((np.maximum(row[:, None], row) < table).any() for row in table):
        return _cuts(tuple(map(tuple, table.tolist()))) if len(table) <= _MOST_CUT else None
    found, before = [], 0.0
    for height in np.unique(table[table > 0]).tolist():
        # Everybody within the height before is in one block, named by its first code.
        found.append(((table <= before).argmax(axis=1).astype(np.float64), height - before))
        before = height
    return found


@lru_cache(maxsize=32)
def _cuts(rows: tuple[tuple[float, ...], ...]) -> list[tuple[FloatArray, float]] | None:
    """Partitions into two parts; distances that are sums of such are exactly those of points in L1."""
    from scipy.optimize import nnls

    table, n = np.array(rows), len(rows)
    a, b = np.triu_indices(n, 1)
    parts = np.arange(1, 2 ** (n - 1))[:, None] >> np.arange(n) & 1  # the last code is in the other part
    separated = (parts[:, a] != parts[:, b]).T.astype(np.float64)
    try:
        weights = nnls(separated, table[a, b])[0]
    except RuntimeError:  # no convergence
        return None
    weights[weights < _ROUNDING / len(weights)] = 0.0
    if np.abs(separated @ weights - table[a, b]).max() > _ROUNDING:
        return None
    return [(parts[k].astype(np.float64), float(weights[k])) for k in np.flatnonzero(weights).tolist()]


def check_order(column: Any, given: Any) -> tuple[Any, ...]:
    """Categories from the first to the last."""
    if not _is_list(given) or len(given) < 2:
        raise InvalidInputError(
            f"order must list at least two categories, such as ['low', 'middle', 'high']; got {short_repr(given)} for "
            f"{column!r}."
        )
    _check_distinct(column, given, most=None)
    return tuple(given)


def written_order(categories: tuple[Any, ...]) -> tuple[Any, ...]:
    """Categories of a table as an order that can be written down: others than texts and numbers by their text.

    Examples
    --------
    >>> written_order((pd.Interval(0, 1), pd.Interval(1, 2)))
    ('(0, 1]', '(1, 2]')
    """
    return tuple(each if isinstance(each, _PLAIN) else canonical_category(each) for each in categories)


def closure(limits: IntArray | FloatArray) -> Any:
    """Shortest paths: the largest distances below `limits` that satisfy the triangle inequality."""
    shortest = limits.copy()
    for k in range(len(shortest)):
        shortest = np.minimum(shortest, shortest[:, k, None] + shortest[k])
    return shortest


def _is_list(given: Any) -> bool:
    return isinstance(given, (list, tuple))


def _check_distinct(column: Any, categories: Sequence[Any], most: int | None = _MAX_CATEGORIES) -> None:
    """Raise for categories that are not plain values, or are listed twice."""
    texts = set()
    for category in categories:
        if not isinstance(category, (*_PLAIN, np.generic)) or category != category:
            raise InvalidInputError(
                f"categories must be text or numbers; got {short_repr(category)} for {column!r}. A missing value is a "
                "category of its own, as far from every other as the column's weight."
            )
        text = canonical_category(category)
        if text in texts:
            raise InvalidInputError(f"categories must be distinct; {category!r} is listed twice for {column!r}.")
        texts.add(text)
    if len(categories) < 2 or (most is not None and len(categories) > most):
        raise InvalidInputError(
            f"categories must be 2 to {_MAX_CATEGORIES} in number; got {len(categories)} for {column!r}."
        )


def _check_entry(column: Any, a: Any, b: Any, distance: Any) -> None:
    if (
        isinstance(distance, bool)
        or not isinstance(distance, (int, float, np.number))
        or not 0 <= distance <= 1e100
        or 0 < distance < 1e-100
    ):
        raise _error(
            column, "be 0 or more, and finite", f"{short_repr(distance)} between {a!r} and {b!r}", "Correct it."
        )
    if canonical_category(a) == canonical_category(b) and distance != 0:
        raise _error(column, "be 0 between a category and itself", f"{distance:g} for {a!r}", "Set it to 0.")


def _check_triangle(column: Any, categories: Sequence[Any], matrix: FloatArray) -> None:
    room = _TOLERANCE * matrix.max()
    for k in range(len(matrix)):
        detour = matrix[:, k, None] + matrix[k]
        for i, j in np.argwhere(detour + room < matrix)[:1]:
            a, b, c = (repr(categories[each]) for each in (i, j, k))
            raise _error(
                column,
                "obey the triangle inequality",
                f"{matrix[i, j]:g} between {a} and {b}, but {matrix[i, k]:g} from {a} to {c} and {matrix[k, j]:g} "
                f"from {c} to {b}",
                f"Lower the first to at most {detour[i, j]:g}, or raise the others.",
            )


def _error(column: Any, rule: str, got: str, cure: str = "Correct them.") -> InvalidInputError:
    return InvalidInputError(f"The distances between categories of {column!r} must {rule}; got {got}. {cure}")
