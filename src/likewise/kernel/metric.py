"""A metric bound to a schema: the scales of its numbers, and tables of distances for everything else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likewise._frozen import Frozen
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.exceptions import InvalidInputError, InvalidTypeError, LikewiseError
from likewise.kernel import distance
from likewise.kernel.columns import CategoricalColumn, json_value
from likewise.kernel.schema import Encoder, People, is_amount

Between = Callable[[People, People], FloatArray]

_SEAL = object()


@dataclass(frozen=True, eq=False)
class States(Frozen):
    """What a column of numbers may hold beside numbers: a blank, and special codes such as -99, "no file".

    A state is equally far from every number; of two different states, the one that is further from numbers says how
    far. Then ``D(s, s') <= D(s, x) + D(x, s')``, and the distances are sums of mismatches (nested blocks).

    Attributes
    ----------
    values : ndarray of shape (n_states,)
        NaN, if the number may be blank; then the special codes, ascending.
    costs : ndarray of shape (n_states,)
        Distance between each state and any number.
    """

    values: FloatArray
    costs: FloatArray

    @cached_property
    def table(self) -> FloatArray:
        """Distances between numbers (first) and the states, shape (n_states + 1, n_states + 1)."""
        costs = np.append(0.0, self.costs)
        return np.asarray(np.maximum(costs[:, None], costs) * ~np.eye(len(costs), dtype=bool))

    def of(self, numbers: FloatArray) -> IntArray:
        """0 for numbers, else 1 + the position of the state."""
        found = np.zeros(np.shape(numbers), dtype=np.int64)
        for k, value in enumerate(self.values.tolist(), 1):
            found[np.isnan(numbers) if np.isnan(value) else numbers == value] = k
        return found


@dataclass(frozen=True, eq=False, repr=False)
class BoundMetric(Frozen):
    """What a metric says about the columns of one schema; made by `Metric.bind` alone.

    ``D(a, b) = ||scales * |a - b| ||_p`` over the numbers that both have, plus the distance of their `states` where one
    has no number, plus ``scales`` where two categories differ (times their share in `tables`, if the column has one). A
    function of two people has no such parts: it is called as it is, and asking for its weights raises.

    A file holds the description and the schema; whoever loads it binds them again.

    Attributes
    ----------
    schema : Encoder
    description : Metric
        As people wrote it, with what it left to the table: names of columns, and orders of categories.
    given : ndarray of shape (n_columns,), or None for a function
        For numeric columns inside the power; for categorical ones the distance between two different values.
    missing : ndarray of shape (n_columns,)
        Distance between a number and a missing one; NaN where missing numbers are refused.
    p : float
    tables : mapping from column to ndarray of shape (n_codes + 1, n_codes + 1)
        Share of the weight between any two codes of a categorical column, the last one for unseen categories; 1
        between all that differ in columns without a table.
    special : mapping from column to mapping from special code to its distance from numbers
        Of columns of positive weight.
    function : callable, or None
        Distances between people: row by row, or from one to all.
    """

    schema: Encoder
    description: Any
    given: FloatArray | None
    missing: FloatArray
    p: float
    tables: Mapping[int, FloatArray]
    special: Mapping[int, Mapping[float, float]]
    function: Between | None
    seal: InitVar[object]

    def __post_init__(self, seal: object) -> None:
        if seal is not _SEAL:
            raise InvalidTypeError("A BoundMetric is made by metric.bind(schema) alone.")

    def __getstate__(self) -> dict[str, Any]:
        return {"description": self.description, "schema": self.schema}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state["description"].bind(state["schema"]).__dict__)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same description, of columns with the same names and scales."""
        if not isinstance(other, BoundMetric) or self.description is None:
            return self is other
        same = self.description == other.description and self.schema.names == other.schema.names
        return same and (not self.has_parts or np.array_equal(self.scales, other.scales))

    def __hash__(self) -> int:
        return hash(self.description)

    def __repr__(self) -> str:
        return f"<BoundMetric: {self.description!r}>"

    def is_of(self, metric: Any) -> bool:
        """Whether `metric`, bound to the same schema, is this one."""
        try:
            return bool(metric.learned(self.schema) == self.description)
        except LikewiseError:  # it has other columns
            return False

    def rebound(self, schema: Encoder) -> BoundMetric:
        """The same metric of people who were read with other codes, or with their columns in another order."""
        return self if schema is self.schema else self.description.bind(schema)

    # -- parts ---------------------------------------------------------------------------------------------------------

    @property
    def has_parts(self) -> bool:
        """Whether the distance is a sum over columns; False for a function of whole people."""
        return self.given is not None

    @property
    def weights(self) -> FloatArray:
        """Weights of the columns, as they were given; a function has none."""
        if self.given is None:
            raise InvalidTypeError(
                f"metric must have a weight for each column here; {self.description!r} is a function of whole people. "
                "Use WeightedLp or TableMetric, or enforce it with ProjectedClassifier or ProjectedRegressor."
            )
        return self.given

    @cached_property
    def is_number(self) -> BoolArray:
        """Which columns hold numbers."""
        return self.schema.is_number

    @cached_property
    def scales(self) -> FloatArray:
        """Distance per unit of a numeric column, or between two different categories."""
        return np.where(self.is_number, distance.root(self.weights, self.p), self.weights)

    @property
    def matters(self) -> BoolArray:
        """Which columns have a positive weight."""
        return np.asarray(self.weights > 0)

    @cached_property
    def states(self) -> Mapping[int, States]:
        """States of the columns whose number may be blank, or a special code."""
        found = {}
        for i in np.flatnonzero(self.is_number).tolist():
            known = {} if np.isnan(self.missing[i]) else {np.nan: float(self.missing[i])}
            known |= dict(sorted(self.special.get(i, {}).items()))
            if known:
                found[i] = States(np.array([*known]), np.array([*known.values()]))
        return found

    def codes(self, column: int) -> FloatArray:
        """Special codes of a column, ascending."""
        return np.array(sorted(self.special.get(column, ())), dtype=np.float64)

    def numbers(self, rows: FloatArray) -> FloatArray:
        """Encoded people with NaN for special codes, which are no numbers."""
        if not self.special:
            return rows
        out = rows.copy()
        for i in self.special:
            out[..., i][self.states[i].of(rows[..., i]) > 0] = np.nan
        return out

    @property
    def allows_missing(self) -> bool:
        """Whether numbers may be missing in a column of positive weight."""
        return bool((self.is_number & self.matters & ~np.isnan(self.missing)).any())

    def nearest_categories(self, column: int) -> float:
        """Smallest distance between two different codes of a categorical column."""
        if column not in self.tables:
            return float(self.scales[column])
        table = self.tables[column]
        return float(self.scales[column] * table[~np.eye(len(table), dtype=bool)].min())

    def caps_at(self, factor: float) -> bool:
        """Whether a category or a state, `factor` times as far, would be further than 1, the largest difference."""
        apart = [*np.where(self.is_number, self.missing, np.zeros(1) if self.given is None else self.given)]
        apart += [cost for costs in self.special.values() for cost in costs.values()]
        return bool((np.array(apart) * factor > 1).any())

    def refuse_tables(self, method: str) -> None:
        """Raise if a column of positive weight has distances between its categories, or special codes."""
        self.refuse_special(method)
        for i in self.tables:
            if self.matters[i]:
                raise InvalidInputError(
                    f"metric must have one weight for all pairs of categories for {method}; {self.schema.names[i]!r} "
                    "has groups or distances. Use an additive or projected model, or give it the weight of its nearest "
                    f"categories, {self.nearest_categories(i):.4g}, in their place: that is stricter."
                )

    def refuse_special(self, method: str) -> None:
        """Raise if a column of positive weight has special codes."""
        for i in self.special:
            raise InvalidInputError(
                f"metric must have no special codes for {method}; {self.schema.names[i]!r} has {[*self.special[i]]}. "
                "Use an additive or projected model, or make them blank, with a weight in `missing`."
            )

    def to_dict(self) -> dict[str, Any]:
        """The schema, weights and tables for JSON: all that another reader needs to compute D.

        ``"p"`` may be ``"inf"``, and ``"missing"`` is null where missing numbers are refused. ``"distances"`` are
        shares of the weight between ``"categories"``, in their order, then a missing one (if the column has it), and
        unseen ones last. ``"special"`` are codes with their distance from numbers.

        Examples
        --------
        >>> from likewise import WeightedLp
        >>> metric = WeightedLp({"age": 0.1})
        >>> metric.bind(metric.encoder()).to_dict()
        {'p': 1.0, 'columns': [{'column': 'age', 'kind': 'numeric', 'weight': 0.1, 'missing': None}]}
        """
        columns = []
        for i, (name, column) in enumerate(zip(self.schema.names, self.schema.columns, strict=True)):
            entry: dict[str, Any] = {
                "column": str(name),
                "kind": "numeric" if self.is_number[i] else "categorical",
                "weight": float(self.weights[i]),
                "missing": None if np.isnan(self.missing[i]) else float(self.missing[i]),
            }
            if i in self.tables and isinstance(column, CategoricalColumn):
                entry["distances"] = self.tables[i].tolist()
                entry["categories"] = [json_value(level) for level in column.levels]
            if i in self.special:
                entry["special"] = [{"value": code, "weight": cost} for code, cost in sorted(self.special[i].items())]
            if self.is_number[i] and column.categories is not None:
                entry["order"] = [json_value(level) for level in column.categories]
            columns.append(entry)
        return {"p": "inf" if np.isinf(self.p) else self.p, "columns": columns}

    # -- people --------------------------------------------------------------------------------------------------------

    def read(self, X: Any) -> People:
        """Validate and encode people."""
        people = People.read(X, self.schema)
        self.check_people(people)
        return people

    def check_people(self, people: People) -> None:
        """Raise if a number is missing where the metric refuses missing numbers."""
        for i in people.missing():
            if np.isnan(self.missing[i]):
                name, rows = self.schema.names[i], np.flatnonzero(np.isnan(people.rows[:, i]))
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

    # -- distances -----------------------------------------------------------------------------------------------------

    def between(self, a: People, b: People) -> FloatArray:
        """Distances between people of the schema: row by row, or from one to all."""
        return self.distances(a.rows, b.rows) if self.function is None else self.function(a, b)

    def cross(self, a: People, b: People) -> FloatArray:
        """Distances between every person of `a` and every person of `b`."""
        if self.function is None:
            return self.pairwise(a.rows, b.rows)
        return np.array([self.function(a.take([i]), b) for i in range(len(a))])

    def distances(self, a: FloatArray, b: FloatArray, caps: FloatArray | None = None) -> FloatArray:
        """Distances between encoded people along the last axis, with broadcasting (`likewise.kernel.distance`)."""
        return distance.distances(self, a, b, caps)

    def terms(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """What each column adds to the distance of encoded people, along the last axis."""
        return distance.terms(self, a, b)

    def pairwise(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Distances between every row of `a` and every row of `b`."""
        return distance.pairwise(self, a, b)

    def category_gaps(self, column: int, a: FloatArray, b: FloatArray) -> FloatArray:
        """Share of the weight between codes of a categorical column; 0 where they are equal."""
        return distance.category_gaps(self, column, a, b)


def bind(
    description: Any,
    schema: Encoder,
    weights: FloatArray | None,
    *,
    p: float,
    missing: FloatArray | None = None,
    tables: Mapping[int, FloatArray] | None = None,
    special: Mapping[int, Mapping[float, float]] | None = None,
    function: Between | None = None,
) -> BoundMetric:
    """Bind what a metric says to the columns of a schema; for the `bind` methods of metrics.

    `missing` are NaN where missing numbers are refused, which is the default; a function takes them as they are.
    """
    n, tables, special = len(schema.names), dict(tables or {}), dict(special or {})
    if missing is None:
        missing = np.full(n, np.nan if function is None else 0.0)
    if (weights is None) == (function is None):
        raise InvalidTypeError("A metric has either weights or a function.")
    costs = np.nan_to_num(missing, posinf=np.inf, neginf=-np.inf)
    for name, each in (("weights", weights), ("missing", costs)):
        if each is not None and (each.shape != (n,) or not ((each >= 0) & np.isfinite(each)).all()):
            raise InvalidInputError(f"{name} must be {n} finite numbers, none negative; got {each}.")
    for i, table in tables.items():
        if (table != table.T).any() or np.diag(table).any() or not ((table >= 0) & (table <= 1)).all():
            raise InvalidInputError(
                f"The distances between categories of {schema.names[i]!r} must be symmetric shares between 0 and 1, "
                "and 0 on the diagonal. Correct them."
            )
    for i, codes in special.items():
        column, sizes = schema.columns[i], np.array([[code, cost] for code, cost in codes.items()])
        if not np.isfinite(sizes).all() or (sizes[:, 1] <= 0).any() or not is_amount(column):
            raise InvalidInputError(
                f"The special codes of {schema.names[i]!r} must be finite numbers of a numeric column, with positive "
                f"distances from the others; got {dict(codes)}. Correct them."
            )
    return BoundMetric(schema, description, weights, missing, p, tables, special, function, _SEAL)
