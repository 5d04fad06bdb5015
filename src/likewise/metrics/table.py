"""Distances between rows of a table: numbers in natural units, categories by mismatch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._fit_validation import read_training_table
from likewise._typing import FloatArray
from likewise._validation import LARGEST, SMALLEST, short_repr
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.kernel.columns import NumericColumn, canonical_category
from likewise.kernel.metric import BoundMetric, bind
from likewise.kernel.schema import Encoder, People, TableEncoder, as_frame
from likewise.metrics.base import Metric
from likewise.metrics.categories import CategoryDistances, check_order, written_order
from likewise.metrics.odds import scale_of_odds
from likewise.metrics.rounding import round_scale, round_share, round_step, round_weight
from likewise.metrics.units import Unit, in_points
from likewise.metrics.weighted_lp import WeightedLp, check_exponent, shortened, together
from likewise.metrics.zero_weights import MUST_NOT_MATTER, ZERO_REASONS, check_reasons

BLANKS_ONLY = 1e-40
"""Weight of a column where only missingness matters: at weight 0, a missing number would not count either."""

ONLY_BLANKS = "only blanks matter"

_LEAST_SPREAD = 0.005  # half a point

NEGLIGIBLE = 1e-30
"""Scale below which no number makes a difference; `BLANKS_ONLY` is below it, also after the metric was scaled."""


class TableMetric(Metric):
    """A distance between rows of a table, in units that people can discuss.

    ``D(x, x') = sum_i w_i |x_i - x'_i| + sum_c w_c 1[x_c != x'_c]``

    with i over the numeric columns and c over the categorical ones. A weight of 0 means that the column must not
    matter. Categories can be ordered (`order`), or some nearer than others (`groups`, `distances`): the term of such a
    column is ``w_c d_c(x_c, x'_c)``, where d_c is 1 for the two categories that are furthest apart.

    Parameters
    ----------
    numeric : mapping from column to weight
        Per natural unit: 0.004 per 1,000 dollars of income, 0.01 per year of age. Columns of ordered
        categories may stand here; one step of their order is the unit.
    categorical : mapping from column to weight
        Between 0 and 1, for any two different values. 1 allows any difference between them. A missing value is a
        category of its own.
    p : 1
        The distances of columns add up. `WeightedLp` takes every p, for rows of numbers.
    missing : "refuse", "category" or mapping from numeric column to weight, default="refuse"
        Whether missing numbers are refused, or the distance (between 0 and 1) between a person who has the number and
        one who does not. "category" is 1 for every numeric column. In a column of weight 0, a missing number adds
        nothing to the distance; its weight here is kept for when the column's weight is raised. By the triangle
        inequality a column can make a difference of at most twice its missing weight.
    special : mapping from numeric column to ``{code: weight}``, optional
        Values that are no numbers but stand for something, such as -99 for "no file at the bureau", each with the
        distance (above 0, at most 1) between a person who has it and one who has a number. Between two codes, or a code
        and a blank, the distance is the larger of their two. Every other value of the column is a number.
    units : mapping from column to str, optional
        Shown in tables and reports: "$", "$1000 a year", "years", "ratio" (0.01 is a percentage point). Count
        columns use "step", or name one item, such as "1 card", and are described per step.
    order : mapping from numeric column to list of categories, optional
        Ordinal categories, from the first to the last, whatever the dtype of the column; one step is the unit. A value
        that is not listed is an error, and a missing one has its weight in `missing`.
    groups : mapping from categorical column to ``{"within": share, "groups": [[...], [...]]}``, optional
        Groups of near categories. Two categories of one group are at `within` times the column's weight, others at
        the weight.
    distances : mapping from categorical column to DataFrame or mapping of mappings, optional
        Distance matrix between categories, in any unit: only ratios count, and the two that are furthest apart are at
        the column's weight. It must be symmetric, 0 on the diagonal, and obey the triangle inequality. In both `groups`
        and `distances`, a missing value and a category that is not listed are at the column's weight from every other.
    zero_reasons : mapping from column of weight 0 to reason, optional
        Why the weight is 0, for tables and reports: "protected" (people decided it), "not_used" (by the model whose
        metric this is), "not_forced" (by the people it was revealed from) or "not_judged" (no answer says that a
        difference is fine). It has no effect on distances.

    Examples
    --------
    >>> metric = TableMetric(numeric={"income": 0.002, "age": 0.01}, categorical={"region": 0.1, "race": 0},
    ...                      units={"income": "$", "age": "years"})
    >>> a = pd.DataFrame({"income": [4000], "age": [30], "region": ["north"], "race": ["x"]})
    >>> b = pd.DataFrame({"income": [4010], "age": [32], "region": ["south"], "race": ["y"]})
    >>> metric(a, b).round(3)
    array([0.14])
    >>> metric.describe()[["column", "weight", "one point"]]
       column  weight             one point
    0  income   0.002                    $5
    1     age   0.010                1 year
    2  region   0.100  mismatch = 10 points
    3    race   0.000       must not matter

    Ordinal categories, groups of near ones, and a matrix:

    >>> metric = TableMetric(
    ...     {"grade": 0.02}, {"job": 0.1, "region": 0.2},
    ...     order={"grade": ["low", "middle", "high"]},
    ...     groups={"job": {"within": 0.3, "groups": [["clerk", "teacher"], ["farmer"]]}},
    ...     distances={"region": {"north": {"south": 8, "east": 4}, "east": {"south": 6}}},
    ... )
    >>> people = pd.DataFrame(
    ...     [["low", "clerk", "north"], ["high", "clerk", "north"], ["low", "teacher", "east"]],
    ...     columns=["grade", "job", "region"],
    ... )
    >>> metric.pairwise(people)[0].round(3)
    array([0.  , 0.04, 0.13])
    >>> metric.describe()["one point"].tolist()
    ['one step = 2 points', 'mismatch = 3 to 10 points', 'mismatch = 10 to 20 points']
    """

    _n_words = 3

    numeric: Mapping[Any, float]
    categorical: Mapping[Any, float]
    missing: Mapping[Any, float]
    special: Mapping[Any, Mapping[float, float]]
    units: Mapping[Any, str]
    order: Mapping[Any, tuple[Any, ...]]
    groups: Mapping[Any, Any]
    distances: Mapping[Any, Any]
    zero_reasons: Mapping[Any, str]

    def __init__(
        self,
        numeric: Mapping[Any, float] | None = None,
        categorical: Mapping[Any, float] | None = None,
        p: float = 1,
        *,
        missing: Literal["refuse", "category"] | Mapping[Any, float] = "refuse",
        special: Mapping[Any, Mapping[float, float]] | None = None,
        units: Mapping[Any, str] | None = None,
        order: Mapping[Any, Sequence[Any]] | None = None,
        groups: Mapping[Any, Any] | None = None,
        distances: Mapping[Any, Any] | None = None,
        zero_reasons: Mapping[Any, str] | None = None,
    ) -> None:
        numeric, categorical = _mapping("numeric", numeric), _mapping("categorical", categorical)
        absent = [name for name in (*numeric, *categorical) if name is None or name != name]
        if absent:
            raise InvalidInputError(f"A column of a metric must have a name; got {absent[0]!r}. Rename that column.")
        both = set(numeric) & set(categorical)
        if both:
            raise InvalidInputError(f"A column must be numeric or categorical; {next(iter(both))!r} is given as both.")
        if not numeric and not categorical:
            raise InvalidInputError("A metric must name at least one column, under numeric or categorical.")
        if check_exponent(p) != 1:
            raise InvalidInputError(
                f"p must be 1 for a TableMetric, so that the distances of columns add up; got {short_repr(p)}. "
                "WeightedLp keeps every p for smoothing, networks, projection, audits and minimal metrics."
            )
        self.p = 1.0
        # WeightedLp checks the weights; 1 stands in where there are no numeric columns.
        self._numbers = WeightedLp(numeric or {"": 1.0})
        self.numeric = MappingProxyType({name: float(weight) for name, weight in numeric.items()})
        self.categorical = _shares("categorical", categorical)
        self.missing = _shares("missing", self._missing_weights(missing))
        self.special = MappingProxyType({n: _codes(n, each) for n, each in _mapping("special", special).items()})
        self._hidden = tuple(n for n, weight in (*self.numeric.items(), *self.categorical.items()) if not weight)
        units = _mapping("units", units)
        for kind, names in (
            ("missing", [n for n in self.missing if n not in numeric]),
            ("special", [n for n in self.special if n not in numeric]),
            ("units", _others(units, self)),
        ):
            if names:
                raise InvalidInputError(f"{kind} must name columns of the metric; it has no {names[0]!r}.")
        self.units = MappingProxyType({name: str(unit) for name, unit in units.items()})
        self._read_categories(order, groups, distances)
        known = {**dict(zip(self.numeric, self._numbers.scales.tolist(), strict=False)), **self.categorical}
        self.zero_reasons = MappingProxyType(
            check_reasons(_mapping("zero_reasons", zero_reasons), known, least=NEGLIGIBLE)
        )

    def _read_categories(self, order: Any, groups: Any, distances: Any) -> None:
        """Check the order, groups and distances of categories; kept as given, in plain types."""
        given = {
            name: _mapping(name, part)
            for name, part in (("order", order), ("groups", groups), ("distances", distances))
        }
        for kind, columns in (("order", self.numeric), ("groups", self.categorical), ("distances", self.categorical)):
            for name in given[kind]:
                if name not in columns:
                    section = "numeric" if kind == "order" else "categorical"
                    raise InvalidInputError(f"{kind} must name columns under {section}; {name!r} is not among them.")
        both = [name for name in self.special if name in given["order"]]
        if both:
            raise InvalidInputError(f"A column has special codes, or an order of categories; {both[0]!r} has both.")
        both = [name for name in given["groups"] if name in given["distances"]]
        if both:
            raise InvalidInputError(f"A column must have groups or distances; {both[0]!r} is given both.")
        self.order = MappingProxyType({name: check_order(name, listed) for name, listed in given["order"].items()})
        shapes = {name: CategoryDistances.from_groups(name, each) for name, each in given["groups"].items()}
        self.groups = MappingProxyType(
            {
                n: {"within": float(g["within"]), "groups": [[*each] for each in g["groups"]]}
                for n, g in given["groups"].items()
            }
        )
        shapes |= {name: CategoryDistances.from_matrix(name, each) for name, each in given["distances"].items()}
        self.distances = MappingProxyType(
            {name: _upper_triangle(given["distances"][name], shapes[name]) for name in given["distances"]}
        )
        self._shapes = shapes

    @classmethod
    def from_odds(
        cls,
        numeric: Mapping[Any, float | tuple[float, float]] | None = None,
        categorical: Mapping[Any, float] | None = None,
        *,
        missing: Literal["refuse", "category"] | Mapping[Any, float] = "refuse",
        special: Mapping[Any, Mapping[float, float]] | None = None,
        **options: Any,
    ) -> TableMetric:
        """A metric stated in odds: by which share a difference in one column may change them.

        Within the result, additive models, and others whose log-odds are limited (`Guarantee.odds_ratio`), keep to
        this; for other models it is an ordinary metric. A share c of the odds is a distance of ``log(1 + c) / 4``.

        Parameters
        ----------
        numeric : mapping from column to share, or to (share, amount)
            ``{"balance": (0.05, 1000)}`` lets 1,000 units change the odds by 5%; without an amount, one unit.
        categorical : mapping from column to share
            By which any two different values may change the odds, or the two furthest apart by `groups` or `distances`.
        missing, special
            As for `TableMetric`, in shares of odds as well.
        **options
            `units`, `order`, `groups`, `distances` and `zero_reasons`, as for `TableMetric`. One step of an `order` is
            a unit.

        Examples
        --------
        >>> odds = {"region": 0.5, "race": 0}
        >>> metric = TableMetric.from_odds({"balance": (0.05, 1000)}, odds, units={"balance": "$"})
        >>> metric.describe()["one point"].tolist()
        ['$820', 'mismatch = 10.1 points', 'must not matter']
        """
        weights = {}
        for name, given in _mapping("numeric", numeric).items():
            change, per = given if isinstance(given, tuple) and len(given) == 2 else (given, 1)
            weights[name] = scale_of_odds(change, name, per)
        mismatch = {n: _share_of_odds(change, n) for n, change in _mapping("categorical", categorical).items()}
        if not isinstance(missing, str):
            missing = {n: _share_of_odds(change, n) for n, change in _mapping("missing", missing).items()}
        codes = {
            name: {code: _share_of_odds(change, name) for code, change in _mapping(name, given).items()}
            for name, given in _mapping("special", special).items()
        }
        return cls(weights, mismatch, missing=missing, special=codes, **options)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Weights, p, blanks, special codes, units, the order, groups and distances of categories, and reasons of 0."""
        params = {name: _plain(value) for name, value in super().get_params().items()}
        return params | {"missing": params["missing"] or "refuse"}

    @property
    def input_tags(self) -> dict[str, bool]:
        """A table, with missing values and categories where the metric allows them."""
        categories = bool(self.categorical)
        nan = bool(self.missing) or categories or bool(self._hidden)
        return {"two_d_array": False, "allow_nan": nan, "categorical": categories, "string": categories}

    @property
    def columns(self) -> list[Any]:
        """Names of all columns, the numeric ones first."""
        return [*self.numeric, *self.categorical]

    @property
    def by_column(self) -> dict[Any, float]:
        """Weights of the numeric columns, then of the categorical ones."""
        return {**self.numeric, **self.categorical}

    def reweighted(
        self, weights: Mapping[Any, float], missing: Mapping[Any, float] | None = None, reason: str = ""
    ) -> TableMetric:
        """The same with other weights, those of categories and blanks at most 1; columns stay protected."""
        new = {**self.by_column, **weights}
        kept = {name: each for name, each in self.zero_reasons.items() if not reason or each == "protected"}
        absent = self.missing if missing is None else {name: min(1.0, weight) for name, weight in missing.items()}
        return self.with_params(
            numeric={name: new[name] for name in self.numeric},
            categorical={name: min(1.0, new[name]) for name in self.categorical},
            missing=dict(absent) or "refuse",
            zero_reasons={**({name: reason for name, weight in new.items() if reason and not weight}), **kept},
        )

    @property
    def hidden(self) -> list[Any]:
        """Names of the columns of weight 0, which a table may lack."""
        return list(self._hidden)

    @property
    def obeys_triangle(self) -> bool:
        """False if a number of positive weight may be missing, or special: such a state is equally far from all."""
        return not any(self.numeric[name] > 0 for name in (*self.missing, *self.special))

    def encoder(self, *people: Any) -> TableEncoder:
        """Learn names, categories and their order from tables; columns of weight 0 may be absent."""
        frames = [as_frame(table, "X") for table in people]
        frame = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
        absent = set(self._hidden) - set(frame.columns)
        numeric, categorical = ([n for n in kind if n not in absent] for kind in (self.numeric, self.categorical))
        listed = {**self.order, **{name: shape.categories for name, shape in self._shapes.items()}}
        return TableEncoder.learn(frame, numeric, categorical, optional=self.hidden, listed=listed)

    def read_training(self, X: Any, y: Any, estimator: Any, *, numeric: bool) -> tuple[People, npt.NDArray[Any]]:
        """As a table."""
        return read_training_table(X, y, estimator, self.encoder, numeric=numeric)

    def bind(self, schema: Encoder) -> BoundMetric:
        """Weights in the order of the schema's columns."""
        weights, names = {**self.numeric, **self.categorical}, schema.names
        unknown = [name for name in names if name not in weights]
        if unknown:
            raise InvalidInputError(
                f"metric must have a weight for every column of X; it has none for {unknown[0]!r}. Give it one."
            )
        return bind(
            self.learned(schema),
            schema,
            np.array([weights[name] for name in names]),
            p=self.p,
            missing=np.array([self._absence(name) for name in names]),
            tables={i: self._table(name, schema.columns[i]) for i, name in enumerate(names) if self._has_table(name)},
            special={i: self.special[name] for i, name in enumerate(names) if name in self.special and weights[name]},
        )

    def _has_table(self, name: Any) -> bool:
        return name in self._shapes and self.categorical[name] > 0

    def _table(self, name: Any, column: Any) -> FloatArray:
        """Shares between the codes of a column."""
        return self._shapes[name].table(column.levels, len(column.levels) + column.has_missing)

    def _absence(self, name: Any) -> float:
        """Missing weight of a column: 0 if the column's weight is 0, NaN if missing numbers are refused."""
        return 0.0 if self.numeric.get(name) == 0 else self.missing.get(name, np.nan)

    def learned(self, schema: Encoder) -> TableMetric:
        """With the orders of the schema's ordered categories; a single one needs no order."""
        learned = {
            each.name: written_order(each.categories)
            for each in schema.columns
            if isinstance(each, NumericColumn) and each.name not in self.order
            if each.categories is not None and len(each.categories) > 1
        }
        return self.with_params(order={**self.order, **learned}) if learned else self

    def scaled(self, factor: float) -> TableMetric:
        """Return the metric whose distances are `factor` times as large.

        Between any two categories, and between a number and a blank or a special code, the distance is capped at 1.
        """
        numbers = self._numbers.scaled(factor)
        loose = {name: weight * factor for name, weight in self.categorical.items() if weight * factor > 1}
        groups = {
            name: each | {"within": min(1.0, each["within"] * loose.get(name, 1.0))}
            for name, each in self.groups.items()
        }
        distances = {
            name: _capped(rows, loose[name]) if name in loose else rows for name, rows in self.distances.items()
        }
        return self.with_params(
            groups=groups,
            distances=distances,
            numeric=dict(zip(self.numeric, numbers.weights.tolist(), strict=False)) if self.numeric else {},
            categorical={name: min(1.0, weight * factor) for name, weight in self.categorical.items()},
            missing={name: min(1.0, weight * factor) for name, weight in self.missing.items()} or "refuse",
            special=self._each_code(lambda weight: min(1.0, weight * factor)),
        )

    def rounded(self) -> TableMetric:
        """Return the metric in round numbers, such as "1 point = $5,000" or "one step = 8 points".

        Distances are never larger, so the metric is never looser, and at least 90% of those given. Numbers of at most
        two digits, weights of 0, and categories of weight 1 are kept.

        Examples
        --------
        >>> metric = TableMetric({"income": 2.05e-6, "cards": 0.0318}, {"region": 0.114},
        ...                      units={"income": "$", "cards": "1 card"})
        >>> metric.rounded().describe()["one point"].tolist()
        ['$5,000', 'one more card = 3 points', 'mismatch = 11 points']
        """
        numeric = {}
        for (name, weight), scale in zip(self.numeric.items(), self._numbers.scales.tolist(), strict=False):
            unit = Unit.of(self._unit(name))
            rounded = round_step(scale) if unit.one else round_scale(scale, unit.factor)
            numeric[name] = round_weight(weight, rounded, self.p)
        categorical, missing = (
            {name: round_share(weight) for name, weight in part.items()} for part in (self.categorical, self.missing)
        )
        special = self._each_code(round_share)
        return self.with_params(numeric=numeric, categorical=categorical, missing=missing or "refuse", special=special)

    def without_negligible(self, people: pd.DataFrame) -> TableMetric:
        """The same without weights that nobody would discuss, as they hardly separate these people.

        A weight becomes 0 if its column makes less than half a point between the 5th and the 95th percentile (between
        the ends, where these are equal). A blank or a special code weighs nothing where its number does not.

        Examples
        --------
        >>> metric = TableMetric({"age": 0.01, "cards": 0.001}, {"region": 0.004}, missing={"cards": 0.2})
        >>> people = pd.DataFrame({"age": [20, 60], "cards": [0, 4], "region": ["n", "s"]})
        >>> kept = metric.without_negligible(people)
        >>> kept.by_column, dict(kept.missing)
        ({'age': 0.01, 'cards': 0.0, 'region': 0.0}, {'cards': 0.0})
        """
        encoder = self.encoder(people)
        rows, bound = encoder.encode(people, "people"), self.bind(encoder)
        spreads = [_typical_spread(*each) for each in zip(rows.T, encoder.is_number, strict=True)]
        small = np.flatnonzero(bound.matters & (bound.scales * spreads < _LEAST_SPREAD))
        gone = [encoder.names[i] for i in small]
        missing = {name: 0.0 if name in gone else weight for name, weight in self.missing.items()}
        kept = self.reweighted(dict.fromkeys(gone, 0.0), missing)
        return kept.with_params(zero_reasons={**self.zero_reasons, **dict.fromkeys(gone, "not_used")})

    def _each_code(self, change: Callable[[float], float]) -> dict[Any, dict[float, float]]:
        """Special codes with other weights."""
        return {name: {code: change(weight) for code, weight in codes.items()} for name, codes in self.special.items()}

    def describe(self) -> pd.DataFrame:
        """Exchange rates: per column, its weight and the difference worth one percentage point.

        Columns that are counted, and categories, say what one step, or a mismatch, is worth.
        """
        rows = []
        for (name, weight), scale in zip(self.numeric.items(), self._numbers.scales.tolist(), strict=False):
            unit = self._unit(name)
            worth = self._zero(name)
            if 0 < scale < NEGLIGIBLE and self.missing.get(name, 0) > 0:
                worth = f"{worth}, but for blanks" if name in self.zero_reasons else ONLY_BLANKS
            elif weight:
                one = Unit.of(unit)
                worth = one.worth_of_one(scale) if one.one else _amount(0.01 / scale, unit)
            rows.append((name, "numeric", unit, weight, worth))
        for name, weight in self.categorical.items():
            worth = f"mismatch = {self._range(name, weight)}" if weight else self._zero(name)
            rows.append((name, "categorical", self.units.get(name, ""), weight, worth))
        return pd.DataFrame(rows, columns=["column", "kind", "unit", "weight", "one point"])

    def _zero(self, name: Any) -> str:
        """What a weight of 0 means."""
        return ZERO_REASONS[self.zero_reasons[name]].meaning if name in self.zero_reasons else MUST_NOT_MATTER

    def _unit(self, name: Any) -> str:
        """Unit of a numeric column; ordered categories are counted in steps."""
        return self.units.get(name, "step" if name in self.order else "")

    def _range(self, name: Any, weight: float) -> str:
        """What two different categories are worth, from the nearest to the furthest."""
        nearest = self._shapes[name].smallest if name in self._shapes else 1.0
        return in_points(weight) if nearest == 1 else f"{100 * nearest * weight:.3g} to {in_points(weight)}"

    def notes(self) -> str:
        """The exponent, what one point is, and the weights of missing numbers and special codes."""
        absent = ", ".join(f"{name}={weight:.6g}" for name, weight in self._absent.items())
        special = ", ".join(f"{name} {code:g}={weight:.6g}" for name, code, weight in self._codes)
        notes = super().notes() + (f" Between a number and a missing one: {absent}." if absent else "")
        return notes + (f" Between a number and a special code: {special}." if special else "")

    @property
    def _absent(self) -> dict[Any, float]:
        """Weights of missing numbers that count."""
        return {name: weight for name, weight in self.missing.items() if self.numeric[name]}

    @property
    def _codes(self) -> list[tuple[Any, float, float]]:
        """Column, code and weight of the special codes that count."""
        return [
            (n, code, weight) for n, each in self.special.items() if self.numeric[n] for code, weight in each.items()
        ]

    def in_words(self, written: Callable[[float], str] = in_points) -> str:
        """What the distance between two people is, with all columns; `written` shows a distance in its unit.

        Examples
        --------
        >>> TableMetric({"age": 0.01, "debt": 0}, {"job": 0.1}, units={"age": "years"}).in_words()
        '1 point per 1 year of age, plus 10 points between two values of job'
        """
        numbers = []
        for name, scale in zip(self.numeric, self._numbers.scales.tolist(), strict=False):
            if scale >= NEGLIGIBLE:
                one = Unit.of(self._unit(name)).one
                per = (
                    (written(scale), one.removeprefix("one "))
                    if one
                    else (written(0.01), _amount(0.01 / scale, self._unit(name)))
                )
                numbers.append(f"{per[0]} per {per[1]} of {name}")
        parts = [together(numbers, self.p)] if numbers else []
        for name, weight in self.categorical.items():
            if weight:
                most = "at most " if self._has_table(name) else ""
                parts.append(f"{most}{written(weight)} between two values of {name}")
        parts += [f"{written(w)} between a number and a blank in {name}" for name, w in self._absent.items() if w]
        parts += [f"{written(w)} between a number and {code:g} in {name}" for name, code, w in self._codes]
        return ", plus ".join(parts) or "0 for everybody"

    def __repr__(self) -> str:
        weights, mismatch, absent = map(_shown, (self.numeric, self.categorical, self._absent))
        special = shortened([f"{name} {code:g}={weight:.6g}" for name, code, weight in self._codes])
        named: list[tuple[str, str]] = [("numeric", weights), ("mismatch", mismatch), ("missing", absent)]
        named += [("special", special)]
        named += [
            (kind, shortened([str(name) for name in part]))
            for kind, part in (("order", self.order), ("groups", self.groups), ("distances", self.distances))
        ]
        return f"TableMetric({'; '.join(f'{name}: {part}' for name, part in named if part)}; p={self.p:g})"

    def _key(self) -> tuple[Any, ...]:
        absent = {name: weight for name, weight in self.missing.items() if self.numeric[name]}
        weights = (frozenset(m.items()) for m in (self.numeric, self.categorical, absent))
        shapes = frozenset((name, _key_of(shape)) for name, shape in self._shapes.items() if self._has_table(name))
        return (*weights, frozenset(self._codes), self.p, frozenset(self.order.items()), shapes)

    def _missing_weights(self, missing: Any) -> dict[Any, float]:
        if isinstance(missing, str):
            if missing not in ("refuse", "category"):
                raise InvalidInputError(
                    f"missing must be 'refuse', 'category' or a mapping of weights; got {short_repr(missing)}."
                )
            missing = {} if missing == "refuse" else dict.fromkeys(self.numeric, 1.0)
        return _mapping("missing", missing)

    def _both(self, A: Any, B: Any) -> Any:
        a, b, hidden = as_frame(A, "A"), as_frame(B, "B"), set(self._hidden)
        matters = [column for column in self.columns if column not in hidden]
        for frame, name in ((a, "A"), (b, "B")):
            absent = [column for column in matters if column not in frame.columns]
            if absent:
                raise InvalidInputError(f"{name} must have the column {absent[0]!r}, which the metric names.")
        return super()._both(a[matters], b[matters])


def _shown(weights: Mapping[Any, float]) -> str:
    """Weights by name; of many, only the first and the last."""
    return shortened([f"{name}={weight:.6g}" for name, weight in weights.items()])


def _key_of(shape: CategoryDistances) -> frozenset[Any]:
    """Distances by pair of categories, whatever their order."""
    texts = [canonical_category(category) for category in shape.categories]
    return frozenset(
        (frozenset((texts[i], texts[j])), float(shape.matrix[i, j])) for i in range(len(texts)) for j in range(i)
    )


def _capped(rows: Mapping[Any, Mapping[Any, float]], weight: float) -> dict[Any, dict[Any, float]]:
    """Distances of a matrix whose largest is worth `weight`, cut to what is worth 1."""
    most = max(distance for row in rows.values() for distance in row.values()) / weight
    return {a: {b: min(distance, most) for b, distance in row.items()} for a, row in rows.items()}


def _upper_triangle(given: Any, shape: CategoryDistances) -> dict[Any, dict[Any, float]]:
    """The distances as they were given, each pair once."""
    rows = given if isinstance(given, Mapping) else given.to_dict(orient="index")
    names = shape.categories

    def of(a: Any, b: Any) -> float:
        return float(rows[a][b] if b in rows.get(a, {}) else rows[b][a])

    return {a: {b: of(a, b) for b in names[i + 1 :]} for i, a in enumerate(names[:-1])}


def _plain(value: Any) -> Any:
    """A parameter in types that can be written: immutable mappings as dictionaries, tuples as lists."""
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _share_of_odds(change: Any, column: Any) -> float:
    return min(1.0, scale_of_odds(change, column))


def _amount(size: float, unit: str) -> str:
    words = Unit.of(unit)
    size *= words.factor
    return words.difference(f"{size:,.0f}" if size >= 1000 else f"{size:.3g}")


def _mapping(name: str, given: Any) -> dict[Any, Any]:
    if given is None:
        return {}
    if not isinstance(given, (Mapping, pd.Series)):
        raise InvalidTypeError(f"{name} must be a mapping from column to value; got {type(given).__name__}.")
    return dict(given)


def _shares(name: str, weights: dict[Any, Any]) -> Mapping[Any, float]:
    for column, weight in weights.items():
        if (
            isinstance(weight, bool)
            or not isinstance(weight, (int, float, np.number))
            or not (weight == 0 or SMALLEST <= weight <= 1)
        ):
            raise InvalidInputError(
                f"{name} weights must be between 0 and 1 (1 allows any difference between two values); got "
                f"{weight!r} for {column!r}. Use 0 for a column that must not matter."
            )
    return MappingProxyType({column: float(weight) for column, weight in weights.items()})


def _codes(column: Any, codes: Any) -> Mapping[float, float]:
    """Special codes of a column, ascending, with their weights."""
    given: dict[Any, float] = dict(_shares("special", _mapping("special", codes)))
    for code, weight in given.items():
        if isinstance(code, bool) or not isinstance(code, (int, float, np.number)) or not abs(float(code)) <= LARGEST:
            raise InvalidInputError(
                f"special codes must be numbers, such as -99; got {short_repr(code)} for {column!r}."
            )
        if not weight:
            raise InvalidInputError(
                f"special weights must be above 0; got 0 for {code!r} of {column!r}. Give the code a positive distance "
                "from numbers, or the whole column the weight 0."
            )
    return MappingProxyType({float(code): float(weight) for code, weight in sorted(given.items())})


def _others(names: Mapping[Any, Any], metric: TableMetric) -> list[Any]:
    return [name for name in names if name not in metric.numeric and name not in metric.categorical]


def _typical_spread(values: FloatArray, number: bool) -> float:
    """From the 5th to the 95th percentile of the numbers, or between the ends; 1 for categories."""
    if not number:
        return 1.0
    there = values[~np.isnan(values)]
    if not len(there):
        return 0.0
    low, high = np.quantile(there, [0.05, 0.95])
    return float(high - low if high > low else np.ptp(there))
