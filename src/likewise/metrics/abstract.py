"""The one interface of everything that says how similar two people are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from inspect import signature
from typing import Any, Self

import numpy as np
import pandas as pd

from likewise._html import grid, panel, words
from likewise._rules import in_a_line
from likewise._typing import FloatArray
from likewise.errors import InvalidInputError, InvalidTypeError
from likewise.metrics.coding import Coding
from likewise.metrics.distance import ColumnWeights
from likewise.metrics.people import People


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
    def coding(self, *people: Any) -> Coding:
        """How people like these become numbers."""

    @abstractmethod
    def weights_of(self, coding: Coding) -> ColumnWeights:
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

    def people(self, X: Any, coding: Coding | None = None) -> People:
        """People as numbers, by a coding learned before or by their own."""
        coding = self.coding(X) if coding is None else coding
        people = People.read(X, coding)
        self.check_people(people)
        return people

    def check_people(self, people: People) -> None:
        """Raise if these people have columns, or miss numbers, of which the metric says nothing."""
        self.weights_of(people.coding).check_missing(people)

    def check_axioms(self, people: People) -> None:  # noqa: B027  # most need not look
        """Raise if it is no distance between these people. Weights always make one; a function is tried."""

    def between(self, a: People, b: People) -> FloatArray:
        """Distances between people of one coding, row by row."""
        return self.weights_of(a.coding).distances(a.rows, b.rows)

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
        coding = self.coding(A, B)
        weights = self.weights_of(coding)
        a, b = coding.encode(A, "A"), coding.encode(B, "B")
        for rows in (a, b):
            weights.check_missing(People(np.atleast_2d(rows), coding, None))
        return a, b, weights


def check_metric(metric: Any) -> Metric:
    """Return `metric` if it is one."""
    if not isinstance(metric, Metric):
        raise InvalidTypeError(
            f"metric must be a Metric, such as WeightedLp or TableMetric; got {type(metric).__name__} "
            f"({in_a_line(metric)}). Wrap a function of people in FunctionMetric."
        )
    return metric
