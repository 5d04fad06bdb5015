"""The interface of all metrics: what people write, and what is bound to the columns of a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from inspect import signature
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._fit_validation import read_training_array
from likewise._html import grid, panel, words
from likewise._typing import FloatArray
from likewise._validation import Rule
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import ArrayEncoder, Encoder, People, labels_of
from likewise.metrics.units import in_points


class Metric(ABC):
    """A distance between people.

    Subclasses define an encoder and the weight of each encoded column. A column of weight 0 must not matter: people
    who differ only there are at distance 0.

    Attributes
    ----------
    p : float
        Exponent over the numeric columns.
    feature_names : tuple, or None
        Names of the columns by their position, of metrics of arrays.
    weighs_columns : bool
        Whether the distance is a sum over columns; False for a function of whole people.
    assumption : str
        What the metric takes for granted and cannot prove, as a sentence for guarantees; empty if nothing.
    zero_reasons : mapping from column to str
        Why columns have the weight 0, where that is known.
    missing : mapping from column to weight
        Distance between a number and a missing one, where these may be missing.
    """

    p: float
    feature_names: tuple[Any, ...] | None = None
    weighs_columns: bool = True
    assumption: str = ""
    zero_reasons: Mapping[Any, str] = MappingProxyType({})
    missing: Mapping[Any, float] = MappingProxyType({})

    @property
    def columns(self) -> list[Any]:
        """Names of the columns, if the metric names them; else empty."""
        return list(self.feature_names or ())

    @property
    def hidden(self) -> list[Any]:
        """Names of the columns of weight 0 that a table may lack."""
        return []

    @property
    def by_column(self) -> dict[Any, float]:
        """Weights of single columns by their names; none if the distance is no sum over columns."""
        return {}

    def reweighted(
        self, weights: Mapping[Any, float], missing: Mapping[Any, float] | None = None, reason: str = ""
    ) -> Self:
        """The same metric with other weights of some columns, and of blanks; `reason` is why weights are 0."""
        raise InvalidTypeError(
            f"metric must have a weight for each column here; {self!r} has none. Use WeightedLp or TableMetric."
        )

    @property
    def input_tags(self) -> dict[str, bool]:
        """Fields of scikit-learn's `InputTags`."""
        return {}

    @abstractmethod
    def in_words(self, written: Callable[[float], str] = in_points) -> str:
        """What the distance between two people is, with all columns; `written` shows a distance in its unit."""

    @abstractmethod
    def __repr__(self) -> str:
        """The distance with at most 10 columns."""

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

    def __getstate__(self) -> dict[str, Any]:
        return self.get_params()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

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
    def bind(self, schema: Encoder) -> BoundMetric:
        """This metric of the columns of a schema; raises for columns that it does not know."""

    def learned(self, schema: Encoder) -> Self:
        """The same metric, with what it left to the training data: names of columns, and orders of categories."""
        return self.named(schema.raw_labels)

    def named(self, labels: tuple[Any, ...] | None) -> Self:
        """The same metric of columns in the order of `labels`, with these names; None forgets its names."""
        return self

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
    def obeys_triangle(self) -> bool:
        """Whether ``D(x, z) <= D(x, y) + D(y, z)`` for all people; of a function this is assumed (`check_axioms`)."""
        return True

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

    def read(self, X: Any) -> tuple[BoundMetric, People]:
        """Bind this metric to a table, and read the people in it."""
        bound = self.bind(self.encoder(X))
        return bound, bound.read(X)

    def encode_rows(self, X: Any) -> People:
        """Validate and encode people, with an encoder learned from them."""
        return self.read(X)[1]

    def check_axioms(self, people: People) -> None:  # noqa: B027  # weights always define a distance
        """Raise if the axioms of a distance fail on these people; for functions."""

    def __call__(self, A: Any, B: Any) -> FloatArray:
        """Distances between the people in `A` and those in `B`, row by row (or one against all).

        Returns
        -------
        ndarray of shape (n_samples,), or a scalar for two single rows of numbers
        """
        bound, a, b = self._both(A, B)
        if a.ndim == b.ndim == 2 and len(a) != len(b) and 1 not in (len(a), len(b)):
            raise InvalidInputError(
                f"A and B must have the same number of rows, or one of them one; got {len(a)} and {len(b)}."
            )
        return bound.distances(a, b)

    def pairwise(self, A: Any, B: Any = None) -> FloatArray:
        """Distances between every person in `A` and every person in `B` (or `A` itself).

        Returns
        -------
        ndarray of shape (n_samples_A, n_samples_B)
        """
        bound, a, b = self._both(A, A if B is None else B)
        return bound.pairwise(np.atleast_2d(a), np.atleast_2d(b))

    def _both(self, A: Any, B: Any) -> tuple[BoundMetric, FloatArray, FloatArray]:
        """The metric bound to two sets of people, and these."""
        encoder = self.encoder(A, B)
        bound = self.bind(encoder)
        a, b = encoder.encode(A, "A"), encoder.encode(B, "B")
        for rows in (a, b):
            bound.check_people(People(np.atleast_2d(rows), encoder, None))
        return bound, a, b


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


METRIC = Rule(
    "a Metric, such as WeightedLp or TableMetric",
    lambda value: isinstance(value, Metric),
    "Wrap a custom distance function in FunctionMetric.",
    InvalidTypeError,
)


def check_metric(metric: Any) -> Metric:
    """Return `metric` if it is one."""
    METRIC.check("metric", metric)
    return metric  # type: ignore[no-any-return]
