"""The one interface of everything that says how similar two people are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any, Self

import numpy as np
import pandas as pd

from likewise._html import grid, panel, words
from likewise._typing import BoolArray, FloatArray
from likewise._validation import in_a_line
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.metrics.encoders import Encoder, People

_CELLS_AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class ColumnWeights:
    """What each column of some people counts, in the order of their columns.

    ``D(a, b) = ||scales * |a - b| ||_p`` over the numbers, plus ``missing`` where exactly one number is missing, plus
    ``scales`` where two categories differ.

    Attributes
    ----------
    weights : ndarray of shape (n_columns,)
        Of numbers, inside the power; between two different categories.
    is_number : ndarray of bool, shape (n_columns,)
        Whether a column holds numbers; the others hold categories.
    missing : ndarray of shape (n_columns,)
        Distance between a number that is there and one that is missing; NaN where the metric refuses those.
    p : float
    """

    weights: FloatArray
    is_number: BoolArray
    missing: FloatArray
    p: float

    @cached_property
    def scales(self) -> FloatArray:
        """Distance per unit of a number, or between two different categories."""
        return np.where(self.is_number, root(self.weights, self.p), self.weights)

    @property
    def matters(self) -> BoolArray:
        """Which columns have a positive weight."""
        return np.asarray(self.weights > 0)

    @property
    def allows_missing(self) -> bool:
        """Whether a number that matters may be missing."""
        return bool((self.is_number & self.matters & ~np.isnan(self.missing)).any())

    def check_missing(self, people: People) -> None:
        """Raise if a number is missing in a column for which the metric refuses that."""
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
                    f"{problem} Fill them in, or leave these rows out. [missing] {name} = 1 in the metric file says "
                    "what a missing number weighs, between 0 and 1."
                )

    def distances(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Distances between coded people, along the last axis; the others are broadcast."""
        numbers = self.is_number
        gap = np.abs(a[..., numbers] - b[..., numbers])
        total = lp_norm(np.nan_to_num(gap) * self.scales[numbers], self.p)
        apart = np.isnan(a[..., numbers]) != np.isnan(b[..., numbers])
        if apart.any():
            total = total + (apart * np.nan_to_num(self.missing[numbers])).sum(axis=-1)
        if not numbers.all():
            total = total + ((a[..., ~numbers] != b[..., ~numbers]) * self.scales[~numbers]).sum(axis=-1)
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
    """Lp norm along the last axis, safe from overflow and underflow in the powers; 0 where there is nothing."""
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

    A subclass says how people become numbers and what each column of them counts; distances follow. A column of weight
    0 must not matter: people who differ only there are at distance 0.

    Attributes
    ----------
    p : float
        Exponent over the numeric columns.
    takes_tables : bool
        Whether people are rows of a table with named columns; otherwise they are rows of an array of numbers.
    has_weights : bool
        Whether distances follow from what each column counts. Otherwise they are all that is known, and `weights_of`
        raises.
    """

    p: float
    takes_tables: bool
    has_weights: bool = True

    @property
    def definition(self) -> str:
        """The distance with all of its columns, where `repr` leaves out some of many."""
        return repr(self)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What the metric was made of, by the names of its parameters; `deep` is there for scikit-learn."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    def with_params(self, **changes: Any) -> Self:
        """Return a metric like this one with other parameters; this one stays what it is.

        An estimator does so for ``set_params(metric__p=2)``, in a grid search, for example.
        """
        params = self.get_params()
        unknown = [name for name in changes if name not in params]
        if unknown:
            raise InvalidInputError(f"{type(self).__name__} has no parameter {unknown[0]!r}. It has {list(params)}.")
        return type(self)(**{**params, **changes})

    def __sklearn_clone__(self) -> Self:
        return self  # nothing can change it

    @property
    def allows_missing(self) -> bool:
        """Whether a value may be missing."""
        return False

    @property
    def has_categories(self) -> bool:
        """Whether columns of text and categories are taken."""
        return False

    @abstractmethod
    def encoder(self, *people: Any) -> Encoder:
        """How people like these become numbers."""

    @abstractmethod
    def weights_of(self, encoder: Encoder) -> ColumnWeights:
        """What each column of such people counts; columns that the metric does not know are refused."""

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """Return the metric whose distances are `factor` times as large."""

    @abstractmethod
    def describe(self) -> pd.DataFrame:
        """Return the exchange rates: per column its weight and the difference worth one percentage point."""

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
            words(self._footnote(), quiet=True),
        )

    _n_words = 1  # columns of `describe` that are words

    def _footnote(self) -> str:
        norm = "" if np.isnan(self.p) else f"p = {self.p:g}. "
        return f"{norm}1 is the largest difference of outputs there is, and a point is 0.01 of it."

    def people(self, X: Any, encoder: Encoder | None = None) -> People:
        """People as numbers, by a coding learned before or by their own."""
        encoder = self.encoder(X) if encoder is None else encoder
        people = People.read(X, encoder)
        self.check_people(people)
        return people

    def check_people(self, people: People) -> None:
        """Raise if these people have columns, or miss numbers, of which the metric says nothing."""
        self.weights_of(people.encoder).check_missing(people)

    def check_axioms(self, people: People) -> None:  # noqa: B027  # most need not look
        """Raise if it is no distance between these people. Weights always make one; a function is tried."""

    def between(self, a: People, b: People) -> FloatArray:
        """Distances between people of one coding, row by row."""
        return self.weights_of(a.encoder).distances(a.rows, b.rows)

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
        """Two sets of people in one coding, and what its columns count."""
        encoder = self.encoder(A, B)
        weights = self.weights_of(encoder)
        a, b = encoder.encode(A, "A"), encoder.encode(B, "B")
        for rows in (a, b):
            weights.check_missing(People(np.atleast_2d(rows), encoder, None))
        return a, b, weights


def check_metric(metric: Any) -> Metric:
    """Return `metric` if it is one."""
    if not isinstance(metric, Metric):
        raise InvalidTypeError(
            f"metric must be a Metric, such as WeightedLp or TableMetric; got {type(metric).__name__} "
            f"({in_a_line(metric)}). Wrap a function of people in FunctionMetric."
        )
    return metric
