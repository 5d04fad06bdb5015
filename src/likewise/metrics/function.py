"""A distance defined by a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._fit_validation import read_training_table
from likewise._typing import FloatArray
from likewise._validation import BOOL, LARGEST, check_positive, checking, short_repr
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.kernel.columns import is_numeric
from likewise.kernel.metric import BoundMetric, bind
from likewise.kernel.schema import (
    ArrayEncoder,
    Encoder,
    People,
    TableEncoder,
    as_frame,
    labels_of,
)
from likewise.metrics.base import Metric, first_labels, order_by_name
from likewise.metrics.rounding import round_scale
from likewise.metrics.units import in_points
from likewise.metrics.weighted_lp import check_feature_names

_SAMPLE = 100  # people on whom the axioms are tested, in all pairs and triples
_TOLERANCE = 1e-9


class FunctionMetric(Metric):
    """A distance between people defined by a function.

    ``D(x, x') = scale * function(x, x')``

    It must be a distance: non-negative, 0 between equal people, symmetric, and
    ``D(x, z) <= D(x, y) + D(y, z)``. `ProjectedClassifier` and `ProjectedRegressor` enforce it, after testing these
    axioms on a sample of the training data. `audit` evaluates it on every pair of up to 10,000 people, and `attack`
    searches under it. The other methods, `ceiling`, and audits of files need column weights and refuse it.

    Parameters
    ----------
    function : callable
        ``function(A, B)`` for two arrays of shape (n, n_features), or two tables of n rows, returns n distances, row by
        row. Each may depend only on its two rows.
    pairwise : bool, default=False
        ``function(A, B)`` returns the distances between all rows of A and all rows of B, shape (n_A, n_B), like those
        of `sklearn.metrics.pairwise`. Scoring is much faster.
    takes_tables : bool, default=False
        The function takes pandas DataFrames (with a default index) instead of arrays of numbers.
    scale : float, default=1
        Distances are compared with probabilities, or with fractions of the output range: 1 is the largest difference.
    feature_names : sequence, optional
        Names of the columns in the order in which the function takes them; tables are given to it in this order. A
        model fitted to a table learns them (``guarantee_.metric``).

    Examples
    --------
    >>> from sklearn.metrics.pairwise import haversine_distances
    >>> metric = FunctionMetric(haversine_distances, pairwise=True, scale=0.5)
    >>> metric.pairwise([[0.0, 0.0], [0.0, 0.4]]).round(3)
    array([[0. , 0.2],
           [0.2, 0. ]])
    """

    p = np.nan
    weighs_columns = False
    assumption = "It assumes that the function is symmetric and obeys the triangle inequality, as tested on a sample."

    def __init__(
        self,
        function: Callable[[Any, Any], Any],
        *,
        pairwise: bool = False,
        takes_tables: bool = False,
        scale: float = 1.0,
        feature_names: Sequence[Any] | None = None,
    ) -> None:
        if isinstance(function, type) or not callable(function):
            got = f"the class {function.__name__}" if isinstance(function, type) else type(function).__name__
            raise InvalidTypeError(f"function must be a callable of two sets of people; got {got}.")
        BOOL.check("pairwise", pairwise)
        BOOL.check("takes_tables", takes_tables)
        self.function = function
        self.takes_tables = bool(takes_tables)
        self.scale = check_positive("scale", scale)
        self._all_pairs = bool(pairwise)
        if feature_names is not None:
            if not hasattr(feature_names, "__len__"):
                raise InvalidInputError(f"feature_names must list names of columns; got {short_repr(feature_names)}.")
            check_feature_names(feature_names, len(feature_names), "column")
        self.feature_names = None if feature_names is None else tuple(feature_names)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The function, and how it is called."""
        return {
            "function": self.function,
            "pairwise": self._all_pairs,
            "takes_tables": self.takes_tables,
            "scale": self.scale,
            "feature_names": self.feature_names,
        }

    @property
    def input_tags(self) -> dict[str, bool]:
        """A table may hold whatever the function takes."""
        if not self.takes_tables:
            return {}
        return {"two_d_array": False, "allow_nan": True, "categorical": True, "string": True}

    def encoder(self, *people: Any) -> Encoder:
        """Rows of numbers as they are; in a table, columns that are not numeric are categorical."""
        if not self.takes_tables:
            with checking():
                shape = np.shape(people[0])
            if len(shape) != 2:
                raise InvalidInputError(f"People must be rows of numbers, (n_samples, n_features); got shape {shape}.")
            return ArrayEncoder(shape[1], self.feature_names or first_labels(people, shape[1]))
        frame = pd.concat([as_frame(table) for table in people], ignore_index=True)
        order = order_by_name(tuple(frame.columns), self.feature_names)
        frame = frame if order is None else frame.iloc[:, order]
        numeric = [name for name, dtype in frame.dtypes.items() if is_numeric(dtype)]
        return TableEncoder.learn(frame, numeric, [name for name in frame.columns if name not in numeric])

    def read_training(self, X: Any, y: Any, estimator: Any, *, numeric: bool) -> tuple[People, npt.NDArray[Any]]:
        """As a table or an array, whichever the function takes; its own names must be in the order of the columns."""
        given = labels_of(X)
        if given is not None and self.feature_names not in (None, given):
            raise InvalidInputError(
                f"X must have the columns that the function takes, {self.columns}, in this order; got {list(given)}. "
                f"Use X[{self.columns}]."
            )
        if self.takes_tables:
            return read_training_table(X, y, estimator, self.encoder, numeric=numeric)
        return super().read_training(X, y, estimator, numeric=numeric)

    def named(self, labels: tuple[Any, ...] | None) -> FunctionMetric:
        """With the names of the columns that the function takes; its own are kept."""
        return self.with_params(feature_names=labels and (self.feature_names or labels))

    def bind(self, schema: Encoder) -> BoundMetric:
        """The function itself; missing values are up to it."""
        learned = self.learned(schema)
        return bind(learned, schema, None, p=self.p, function=learned._between)

    def check_axioms(self, people: People) -> None:
        """Test the axioms on all pairs and triples of up to 100 people, a fixed sample.

        Raises
        ------
        ValueError
            Naming the people for whom an axiom fails.
        """
        chosen = np.sort(np.random.default_rng(0).permutation(len(people))[:_SAMPLE])
        some = people.take(chosen)
        D = np.array([self._between(some.take([i]), some) for i in range(len(some))])
        near = _TOLERANCE * max(1.0, float(D.max()))
        names = [f"row {row}" for row in chosen]
        for j in (0, len(some) - 1):
            alone = float(self._between(some.take([0]), some.take([j]))[0])
            if abs(alone - D[0, j]) > near:
                raise self._error(
                    "depend on the two people alone",
                    f"{alone:g} between {names[0]} and {names[j]}, but {D[0, j]:g} in a call with more people",
                )
        for i in np.flatnonzero(np.diag(D) > near)[:1]:
            raise self._error("be 0 between a person and the same person", f"{D[i, i]:g} for {names[i]}")
        for i, j in np.argwhere(np.abs(D - D.T) > near)[:1]:
            raise self._error(
                "be the same in both directions",
                f"{D[i, j]:g} from {names[i]} to {names[j]}, and {D[j, i]:g} back",
            )
        for j in range(len(D)):
            direct = np.argwhere(D[:, j, None] + D[j] + near < D)
            for i, k in direct[:1]:
                raise self._error(
                    "obey the triangle inequality",
                    f"{D[i, k]:g} between {names[i]} and {names[k]}, but {D[i, j]:g} and {D[j, k]:g} by way of "
                    f"{names[j]}",
                )

    def _between(self, a: People, b: People) -> FloatArray:
        """Distances row by row, or from one person to all."""
        if not self._all_pairs:
            a = a.take(np.zeros(len(b), dtype=np.intp)) if len(a) == 1 else a
            return self._evaluate(a, b, (len(b),))
        if len(a) == 1:
            return np.asarray(self._evaluate(a, b, (1, len(b)))[0])
        return np.array([self._evaluate(a.take([i]), b.take([i]), (1, 1))[0, 0] for i in range(len(a))])

    def __call__(self, A: Any, B: Any) -> FloatArray:
        """Distances between the people in `A` and those in `B`, row by row."""
        a, b = self._two(A, B)
        if len(a) != len(b):
            raise InvalidInputError(f"A and B must have the same number of rows; got {len(a)} and {len(b)}.")
        return self._between(a, b)

    def pairwise(self, A: Any, B: Any = None) -> FloatArray:
        """Distances between every person in `A` and every person in `B` (or `A` itself)."""
        a, b = self._two(A, A if B is None else B)
        return self.bind(a.encoder).cross(a, b)

    def scaled(self, factor: float) -> FunctionMetric:
        """Return the metric whose distances are `factor` times as large."""
        return self.with_params(scale=self.scale * check_positive("factor", factor))

    def rounded(self) -> FunctionMetric:
        """Return the metric whose point is a round distance of the function."""
        return self.with_params(scale=round_scale(self.scale))

    def describe(self) -> pd.DataFrame:
        """One row, since a function has no column weights."""
        return pd.DataFrame(
            {"column": ["all columns"], "weight": [self.scale], "one point": [f"{0.01 / self.scale:.3g}"]}
        )

    @property
    def _formula(self) -> str:
        name = getattr(self.function, "__name__", None) or repr(self.function)
        return name if self.scale == 1 else f"{self.scale:g} * {name}"

    def in_words(self, written: Callable[[float], str] = in_points) -> str:
        """What the distance is: the function by its name."""
        return f"what the function {self._formula} gives"

    def __repr__(self) -> str:
        return f"FunctionMetric({self._formula})"

    def _key(self) -> tuple[Any, ...]:
        return self.function, self._all_pairs, self.takes_tables, self.scale, self.feature_names

    def _two(self, A: Any, B: Any) -> tuple[People, People]:
        encoder = self.encoder(A, B)
        return People.read(A, encoder, "A"), People.read(B, encoder, "B")

    def _evaluate(self, a: People, b: People, shape: tuple[int, ...]) -> FloatArray:
        answer = self.function(*(_numbered(people.arranged(self.feature_names).table) for people in (a, b)))
        try:
            distances = np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise self._error("return numbers", str(error)) from None
        if distances.shape != shape:
            hint = "" if self._all_pairs else " Set pairwise=True if it compares all rows of A with all rows of B."
            raise self._error(f"return an array of shape {shape}", f"shape {distances.shape}", hint)
        wrong = ~((distances >= 0) & (distances <= LARGEST))  # NaN fails every comparison
        if wrong.any():
            at = np.argwhere(wrong)[0]
            pair = [_describe_row(who, int(at[min(k, len(at) - 1)])) for k, who in enumerate((a, b))]
            raise self._error(
                f"be between 0 and {LARGEST:g}", f"{distances[tuple(at)]:g} between {pair[0]} and {pair[1]}"
            )
        return self.scale * distances

    def _error(self, rule: str, got: str, hint: str = " Correct the function.") -> InvalidInputError:
        return InvalidInputError(f"The distances of {self!r} must {rule}; got {got}.{hint}")


def _numbered(table: Any) -> Any:
    """Reset the index: pandas aligns two tables by their index labels."""
    return table.reset_index(drop=True) if isinstance(table, pd.DataFrame) else table


def _describe_row(people: People, row: int) -> str:
    table = people.table
    if isinstance(table, pd.DataFrame):
        return str(table.iloc[row].to_dict())
    return str(np.asarray(table[row]).tolist())
