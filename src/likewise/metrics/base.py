"""The interface of all metrics, and distances from column weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import signature
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._fit_validation import read_training_array
from likewise._frozen import Frozen
from likewise._html import grid, panel, words
from likewise._typing import BoolArray, FloatArray
from likewise._validation import short_repr
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.kernel.schema import ArrayEncoder, Encoder, People, labels_of
from likewise.metrics.categories import partitions

_CELLS_AT_ONCE = 2**22  # bounds the memory of `pairwise`


@dataclass(frozen=True, eq=False)
class ColumnWeights(Frozen):
    """Weights in the order of an encoder's columns.

    ``D(a, b) = ||scales * |a - b| ||_p`` over the numeric columns, plus ``missing`` where exactly one number is
    missing, plus ``scales`` where two categories differ (times their share in `tables`, if the column has one).

    Attributes
    ----------
    weights : ndarray of shape (n_columns,)
        For numeric columns inside the power; for categorical ones the distance between two different values.
    is_number : ndarray of bool, shape (n_columns,)
    missing : ndarray of shape (n_columns,)
        Distance between a number and a missing one; NaN where missing numbers are refused.
    p : float
    tables : mapping from column to ndarray of shape (n_codes + 1, n_codes + 1)
        Share of the weight between any two codes of a categorical column, the last one for unseen categories; 1
        between all that differ in columns without a table.
    """

    weights: FloatArray
    is_number: BoolArray
    missing: FloatArray
    p: float
    tables: Mapping[int, FloatArray] = field(default_factory=dict)

    @cached_property
    def scales(self) -> FloatArray:
        """Distance per unit of a numeric column, or between two different categories."""
        return np.where(self.is_number, root(self.weights, self.p), self.weights)

    @property
    def matters(self) -> BoolArray:
        """Which columns have a positive weight."""
        return np.asarray(self.weights > 0)

    @property
    def allows_missing(self) -> bool:
        """Whether numbers may be missing in a column of positive weight."""
        return bool((self.is_number & self.matters & ~np.isnan(self.missing)).any())

    def check_missing(self, people: People) -> None:
        """Raise if a number is missing where the metric refuses missing numbers."""
        for i in people.missing():
            if np.isnan(self.missing[i]):
                name, rows = people.encoder.names[i], np.flatnonzero(np.isnan(people.rows[:, i]))
                problem = (
                    f"Column {name!r} has missing numbers, which the metric refuses: {len(rows):,} of {len(people):,} "
                    f"rows, the first in row {people.name_of(int(rows[0]))}."
                )
                raise InvalidInputError(
                    f"{problem} Impute them, or use TableMetric(..., missing='category')."
                ).in_commands(
                    f"{problem} Fill them in, drop these rows, or give them a weight between 0 and 1: [missing] "
                    f"{name} = 1 in the metric file."
                )

    @cached_property
    def splits(self) -> list[tuple[int, FloatArray, float]] | None:
        """Columns with a table as sums of mismatches: the column, the block of each code, and the scale.

        None if a table is not such a sum (`partitions`), so that every pair has to be compared.
        """
        nested = {i: partitions(table) for i, table in self.tables.items()}
        if None in nested.values():
            return None
        return [
            (i, blocks, share * float(self.scales[i])) for i, each in nested.items() for blocks, share in each or ()
        ]

    def refuse_tables(self, names: list[Any], method: str) -> None:
        """Raise if a column of positive weight has distances between its categories."""
        for i in self.tables:
            if self.matters[i]:
                raise InvalidInputError(
                    f"metric must have one weight for all pairs of categories for {method}; {names[i]!r} has groups "
                    "or distances. Use an additive or projected model, or give it the weight of its nearest "
                    f"categories, {self.nearest_categories(i):.4g}, in their place: that is stricter."
                )

    def category_gaps(self, column: int, a: FloatArray, b: FloatArray) -> FloatArray:
        """Share of the weight between codes of a categorical column; 0 where they are equal."""
        if column not in self.tables:
            return np.asarray(a != b, dtype=np.float64)
        # `UNSEEN` is -1, the last entry.
        return np.asarray(self.tables[column][a.astype(np.int64), b.astype(np.int64)])

    def nearest_categories(self, column: int) -> float:
        """Smallest distance between two different codes of a categorical column."""
        if column not in self.tables:
            return float(self.scales[column])
        table = self.tables[column]
        return float(self.scales[column] * table[~np.eye(len(table), dtype=bool)].min())

    def distances(self, a: FloatArray, b: FloatArray, caps: FloatArray | None = None) -> FloatArray:
        """Distances between encoded people along the last axis, with broadcasting.

        `caps` are the largest terms of single columns of numbers, in the order of the columns.
        """
        numbers = self.is_number
        gap = np.abs(a[..., numbers] - b[..., numbers])
        terms = np.nan_to_num(gap) * self.scales[numbers]
        total = lp_norm(terms if caps is None else np.minimum(terms, caps[numbers]), self.p)
        apart = np.isnan(a[..., numbers]) != np.isnan(b[..., numbers])
        if apart.any():
            total = total + (apart * np.nan_to_num(self.missing[numbers])).sum(axis=-1)
        plain = ~numbers
        plain[list(self.tables)] = False
        if plain.any():
            total = total + ((a[..., plain] != b[..., plain]) * self.scales[plain]).sum(axis=-1)
        for i in self.tables:
            total = total + self.category_gaps(i, a[..., i], b[..., i]) * self.scales[i]
        return np.asarray(total)

    def pairwise(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Distances between every row of `a` and every row of `b`."""
        out = np.empty((len(a), len(b)))
        at_once = max(1, _CELLS_AT_ONCE // max(1, b.size))
        for start in range(0, len(a), at_once):
            out[start : start + at_once] = self.distances(a[start : start + at_once, None], b[None])
        return out


def root(weights: FloatArray, p: float) -> FloatArray:
    """Scales ``w^(1/p)`` of weights inside the power; ``w`` for ``p = inf``."""
    with np.errstate(under="ignore"):
        return weights if np.isinf(p) else np.asarray(weights ** (1 / p))


def dual(p: float) -> float:
    """Exponent q with ``1/p + 1/q = 1``."""
    return 1.0 if np.isinf(p) else np.inf if p == 1 else p / (p - 1)


def lp_norm(z: FloatArray, p: float) -> FloatArray:
    """Lp norm along the last axis, without overflow or underflow in the powers; 0 for an empty axis."""
    z = np.abs(z)
    if p == 1 or not z.shape[-1]:
        return np.asarray(z.sum(axis=-1))
    largest = z.max(axis=-1)
    if np.isinf(p):
        return np.asarray(largest)
    divisor = np.where(largest > 0, largest, 1.0)
    with np.errstate(under="ignore"):
        return np.asarray(largest * ((z / divisor[..., None]) ** p).sum(axis=-1) ** (1 / p))


class Metric(ABC):
    """A distance between people.

    Subclasses define an encoder and the weight of each encoded column. A column of weight 0 must not matter: people
    who differ only there are at distance 0.

    Attributes
    ----------
    p : float
        Exponent over the numeric columns.
    assumption : str
        What the metric takes for granted and cannot prove, as a sentence for guarantees; empty if nothing.
    zero_reasons : mapping from column to str
        Why columns have the weight 0, where that is known.
    """

    p: float
    assumption: str = ""
    zero_reasons: Mapping[Any, str] = MappingProxyType({})

    @property
    def columns(self) -> list[Any]:
        """Names of the columns, if the metric names them; else empty."""
        return []

    @property
    def hidden(self) -> list[Any]:
        """Names of the columns of weight 0 that a table may lack."""
        return []

    @property
    def input_tags(self) -> dict[str, bool]:
        """Fields of scikit-learn's `InputTags`."""
        return {}

    @property
    def definition(self) -> str:
        """The distance with all columns; `repr` abbreviates."""
        return self._written(most=None)

    def __repr__(self) -> str:
        return self._written(most=10)

    @abstractmethod
    def _written(self, most: int | None) -> str:
        """The distance with at most `most` columns."""

    @abstractmethod
    def _key(self) -> tuple[Any, ...]:
        """What equal metrics have in common; hashable."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Metric) and type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Constructor parameters; `deep` is for scikit-learn."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def with_params(self, **changes: Any) -> Self:
        """Return a copy with other parameters, as ``estimator.set_params(metric__p=2)`` does."""
        params = self.get_params()
        unknown = [name for name in changes if name not in params]
        if unknown:
            raise InvalidInputError(f"{type(self).__name__} has no parameter {unknown[0]!r}. It has {list(params)}.")
        return type(self)(**{**params, **changes})

    def __sklearn_clone__(self) -> Self:
        return self  # immutable

    @abstractmethod
    def encoder(self, *people: Any) -> Encoder:
        """Learn an encoder from people."""

    def read_training(self, X: Any, y: Any, estimator: Any, *, numeric: bool) -> tuple[People, npt.NDArray[Any]]:
        """Validated training data of an estimator, whose `n_features_in_` and `feature_names_in_` are set.

        As an array; columns without names have those of the metric, if it has as many.
        """
        people, y = read_training_array(X, y, estimator, numeric=numeric)
        if people.encoder.labels is None and len(self.columns) == people.rows.shape[1]:
            people = replace(people, encoder=ArrayEncoder(len(self.columns), tuple(self.columns)))
        return people, y

    @abstractmethod
    def weights_of(self, encoder: Encoder) -> ColumnWeights:
        """Weights of an encoder's columns; raises for columns that the metric does not know, or without weights."""

    def as_learned(self, encoder: Encoder) -> Self:
        """The same metric, with what it left to the training data: names of columns, and orders of categories."""
        return self.named(encoder.raw_labels)

    def named(self, labels: tuple[Any, ...] | None) -> Self:
        """The same metric of columns in the order of `labels`; a metric without names takes these."""
        return self

    def is_learned_as(self, learned: Metric) -> bool:
        """Whether `learned` is this metric, with what `as_learned` may have added."""
        if type(self) is not type(learned):
            return False
        if not self.columns or not learned.columns:
            return self.with_params(feature_names=None) == learned.with_params(feature_names=None)
        return {*self.columns} == {*learned.columns} and self.named(tuple(learned.columns)) == learned

    def known_weights(self, encoder: Encoder) -> ColumnWeights | None:
        """As `weights_of`; None for a metric that has no weights per column."""
        return self.weights_of(encoder)

    def caps_at(self, factor: float) -> bool:
        """Whether ``scaled(factor)`` caps what a column can add at 1, so that distances of 1 and more fall short."""
        return False

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """Return the metric whose distances are `factor` times as large, except where weights are capped.

        The weights of categories and of missing numbers are at most 1. One that would exceed it stays at 1, and
        distances within groups of that column are shares of 1.
        """

    @abstractmethod
    def rounded(self) -> Self:
        """Return the metric in round numbers; distances are never larger, and at least 90% of those given."""

    @abstractmethod
    def describe(self) -> pd.DataFrame:
        """Exchange rates: per column, its weight and the difference worth one percentage point."""

    @property
    @abstractmethod
    def obeys_triangle(self) -> bool:
        """Whether ``D(x, z) <= D(x, y) + D(y, z)`` for all people."""

    def _repr_html_(self) -> str:
        table = self.describe()
        cells = [[f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row] for row in table.to_numpy()]
        return panel(
            f"{type(self).__name__} of {len(table)} columns",
            grid(list(table.columns), cells, left=self._n_words),
            words(self.notes(), quiet=True),
        )

    _n_words = 1  # columns of `describe` that hold text

    def notes(self) -> str:
        """What the table of weights leaves out: the exponent, and what one point is."""
        norm = "" if np.isnan(self.p) else f"p = {self.p:g}. "
        return f"{norm}1 is the largest possible difference of outputs; a point is 0.01."

    def encode_rows(self, X: Any, encoder: Encoder | None = None) -> People:
        """Validate and encode people, with a given encoder or one learned from them."""
        encoder = self.encoder(X) if encoder is None else encoder
        people = People.read(X, encoder)
        self.check_people(people)
        return people

    def check_people(self, people: People) -> None:
        """Raise if people have columns, or missing numbers, that the metric does not cover."""
        self.weights_of(people.encoder).check_missing(people)

    def check_axioms(self, people: People) -> None:  # noqa: B027  # weights always define a distance
        """Raise if the axioms of a distance fail on these people; for functions."""

    def between(self, a: People, b: People) -> FloatArray:
        """Distances between people of one encoder, row by row."""
        return self.weights_of(a.encoder).distances(a.rows, b.rows)

    def from_person(self, person: People, others: People) -> FloatArray:
        """Distances from one person to each of the others."""
        return self.between(person, others)

    def __call__(self, A: Any, B: Any) -> FloatArray:
        """Distances between the people in `A` and those in `B`, row by row (or one against all).

        Returns
        -------
        ndarray of shape (n_samples,), or a scalar for two single rows of numbers
        """
        a, b, weights = self._both(A, B)
        if a.ndim == b.ndim == 2 and len(a) != len(b) and 1 not in (len(a), len(b)):
            raise InvalidInputError(
                f"A and B must have the same number of rows, or one of them one; got {len(a)} and {len(b)}."
            )
        return weights.distances(a, b)

    def pairwise(self, A: Any, B: Any = None) -> FloatArray:
        """Distances between every person in `A` and every person in `B` (or `A` itself).

        Returns
        -------
        ndarray of shape (n_samples_A, n_samples_B)
        """
        a, b, weights = self._both(A, A if B is None else B)
        return weights.pairwise(np.atleast_2d(a), np.atleast_2d(b))

    def _both(self, A: Any, B: Any) -> tuple[FloatArray, FloatArray, ColumnWeights]:
        """Two sets of people encoded alike, and the weights of the columns."""
        encoder = self.encoder(A, B)
        weights = self.weights_of(encoder)
        a, b = encoder.encode(A, "A"), encoder.encode(B, "B")
        for rows in (a, b):
            weights.check_missing(People(np.atleast_2d(rows), encoder, None))
        return a, b, weights


def order_by_name(own: tuple[Any, ...] | None, labels: tuple[Any, ...] | None) -> list[int] | None:
    """Positions in a metric of the columns `labels`; None where they are in its order, or one of both has no names."""
    if own is None or labels is None or own == labels:
        return None
    if {*own} != {*labels}:
        raise InvalidInputError(f"X must have the columns of the metric, {list(own)}; got {list(labels)}.")
    return [own.index(name) for name in labels]


def first_labels(people: tuple[Any, ...], n_columns: int) -> tuple[Any, ...] | None:
    """Column names of the first table among sets of people, if it has `n_columns`: the others are arranged like it."""
    found = next((labels for labels in map(labels_of, people) if labels is not None), None)
    return found if found is None or len(found) == n_columns else None


def check_metric(metric: Any) -> Metric:
    """Return `metric` if it is one."""
    if not isinstance(metric, Metric):
        raise InvalidTypeError(
            f"metric must be a Metric, such as WeightedLp or TableMetric; got {type(metric).__name__} "
            f"({short_repr(metric)}). Wrap a custom distance function in FunctionMetric."
        )
    return metric
