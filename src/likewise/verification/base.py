"""What every proof shares: the encoded people of a domain, and the model that scores them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from likewise._typing import BoolArray, FloatArray
from likewise._validation import check_names
from likewise.ask import Ask, known_columns
from likewise.exceptions import InvalidInputError, UnprovableError
from likewise.inspection.feature_sources import Preprocessing
from likewise.kernel.columns import UNSEEN, NumericColumn, is_numeric
from likewise.kernel.metric import BoundMetric
from likewise.kernel.proof import Claim, Pairs
from likewise.kernel.schema import Encoder, People, TableEncoder, is_table
from likewise.metrics.base import Metric
from likewise.pairs.model_outputs import OutputLabels, asked_outputs
from likewise.verification.domain import CategoricalDomain, Domain, NumericDomain, Rule, frame_of
from likewise.verification.one_hot import OneHot, is_bit

_CHECKED = 2000  # people for whom a model's outputs are compared with those of its parts as read


@dataclass(frozen=True, eq=False)
class InputSpace:
    """Encoded people of a domain, and the model that scores them.

    A set of 0/1 columns of which everybody has exactly one is one column here: its categories are the members.

    Attributes
    ----------
    ask : Ask
        The model, and the people given, all columns apart.
    domain : Domain
    sets : tuple of OneHot
    rows : ndarray of shape (n_samples, n_columns)
        The people given, coded: NaN where missing, positions among the known categories or members.
    table : DataFrame
        The people given.
    as_array : bool
        Whether they are an array.
    output_range : tuple of float, optional
        Differences of regression outputs are divided by its width.
    """

    ask: Ask
    domain: Domain
    sets: tuple[OneHot, ...]
    rows: FloatArray
    table: pd.DataFrame
    as_array: bool
    output_range: tuple[float, float] | None

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        metric: Metric | None = None,
        domain: Domain | None = None,
        output_range: tuple[float, float] | None = None,
    ) -> InputSpace:
        """Code people, and learn the domain if none is given."""
        frame = frame_of(X).reset_index(drop=True)
        if not len(frame):
            raise InvalidInputError("X must hold at least one person; got none.")
        known = known_columns(model)
        if is_table(X) and known is not None:
            absent = [name for name in known if name not in frame]
            if absent:
                raise InvalidInputError(f"X must have the column {absent[0]!r}, which the model takes.")
        n_taken = getattr(model, "n_features_in_", len(frame.columns))
        if not is_table(X) and n_taken != len(frame.columns):
            raise InvalidInputError(f"X must have {n_taken} columns, as the model takes; got {len(frame.columns)}.")
        numeric, orders = [name for name in frame if is_numeric(frame[name])], {}
        if metric is not None:
            kinds = metric.read(X)[0].schema  # raises for unknown columns and refused blanks
            named = frame.columns if kinds.labels is None else kinds.labels
            numeric = [name for name, number in zip(named, kinds.is_number, strict=True) if number]
            orders = {c.name: c.categories for c in kinds.columns if isinstance(c, NumericColumn) and c.categories}
        categories = [name for name in frame if name not in set(numeric)]
        encoder = TableEncoder.learn(frame, numeric, categories, listed=orders)
        if domain is None:
            # Ordered categories are coded as numbers, and take only their own codes.
            listed = [name for name in frame if name in set(categories) or not is_numeric(frame[name])]
            domain = Domain.learn(frame, listed)
        else:
            unknown = [name for name in frame if name not in domain.columns]
            if unknown:
                raise InvalidInputError(f"domain must say what {unknown[0]!r} can hold; it has {list(domain.columns)}.")
            domain = domain.with_one_hot(frame).listing(encoder.columns)
        limits = output_range or getattr(getattr(model, "guarantee_", None), "output_range", None)
        whole = [
            name
            for name, held in domain.columns.items()
            if isinstance(held, NumericDomain) and not held.blank and held.step is not None and held.step % 1 == 0
        ]
        ask = Ask.of(model, frame if is_table(X) else frame.to_numpy(), encoder, whole if is_table(X) else ())
        ask.refuse_merged()
        ask.check()
        sets = tuple(each for each in domain.one_hot if set(each.members) <= set(frame))
        for each in sets:
            wrong = np.flatnonzero(frame[list(each.members)].to_numpy(np.float64, na_value=np.nan).sum(axis=1) != 1)
            if len(wrong):
                raise InvalidInputError(
                    f"X must have exactly one 1 in {each}, as a rule of the domain says; {len(wrong):,} rows have not, "
                    f"the first of them row {wrong[0]}. Correct them, or take the rule out of the domain."
                )
        space = cls(ask, domain, sets, np.empty((0, 0)), frame, not is_table(X), limits)
        return replace(space, rows=space.merged(encoder.encode(frame)))

    @property
    def model(self) -> Any:
        """The model that is asked."""
        return self.ask.model

    @property
    def encoder(self) -> Encoder:
        """Of the people."""
        return self.ask.encoder

    @cached_property
    def names(self) -> list[Any]:
        """Names of the columns, in the order of the encoded rows; a set of 0/1 columns has its own."""
        taken = set(self.encoder.names)
        found = []
        for places in self.places:
            name = self.encoder.names[places[0]]
            if len(places) > 1:
                (own,) = (each for each in self.sets if name in each.members)
                name = own.name if own.name not in taken else " / ".join(map(str, own.members))
                taken.add(name)
            found.append(name)
        return found

    @cached_property
    def places(self) -> list[list[int]]:
        """The columns of the people that each column stands for: one, or the members of a set."""
        names = list(self.encoder.names)
        set_of = {name: each for each in self.sets for name in each.members}
        found = []
        for i, name in enumerate(names):
            if name not in set_of:
                found.append([i])
            elif name == next(other for other in names if other in set_of[name].members):
                found.append([names.index(member) for member in set_of[name].members])
        return found

    @cached_property
    def column_of(self) -> list[int]:
        """For each column of the people, the one that stands for it."""
        found = {place: i for i, places in enumerate(self.places) for place in places}
        return [found[place] for place in range(len(found))]

    @cached_property
    def held(self) -> list[NumericDomain | CategoricalDomain]:
        """What each column can hold: of a set, the members that may be the one."""
        names, found = self.encoder.names, []
        for places in self.places:
            members = [self.domain.columns[names[place]] for place in places]
            if len(members) == 1:
                found.append(members[0])
                continue
            can = {bit: [_holds_bit(member, bit) for member in members] for bit in (0, 1)}
            fine = [can[1][k] and all(can[0][:k] + can[0][k + 1 :]) for k in range(len(members))]
            chosen = [names[place] for place, one in zip(places, fine, strict=True) if one]
            if not chosen:
                listed = ", ".join(str(names[place]) for place in places)
                raise InvalidInputError(f"domain must not be empty; nobody in it has exactly one 1 in {listed}.")
            found.append(CategoricalDomain(tuple(chosen)))
        return found

    def positions(self, parameter: str, wanted: Sequence[Any]) -> list[int]:
        """Columns by name: a member of a set, or the name of the set, stands for all of it."""
        known = {name: self.column_of[place] for place, name in enumerate(self.encoder.names)}
        known = {name: i for i, name in enumerate(self.names)} | known
        found = list(dict.fromkeys(known[name] for name in check_names(parameter, wanted, list(known))))
        for rule in self.domain.rules:
            tied = {known[name] for name in rule.coefficients if name in known}
            if rule.equal and len(tied) > 1 and len(tied & set(found)) == 1:
                one = self.names[(tied & set(found)).pop()]
                others = ", ".join(str(self.names[i]) for i in sorted(tied - set(found)))
                raise InvalidInputError(
                    f"{parameter} must name another column of the rule {str(rule)!r}: nobody can differ in {one} "
                    f"alone. Add one or more of {others}."
                )
        return found

    def members(self, columns: Sequence[int]) -> list[Any]:
        """Names of the columns of the people that some columns stand for."""
        return [self.encoder.names[place] for i in columns for place in self.places[i]]

    def merged(self, rows: FloatArray) -> FloatArray:
        """Encoded people, sets of 0/1 columns as one column each, from people encoded with all columns apart."""
        parts = []
        for places in self.places:
            part = rows[:, places]
            parts.append(part[:, 0] if len(places) == 1 else self.bits(places, part).argmax(axis=1))
        return np.column_stack(parts).astype(np.float64)

    def apart(self, rows: FloatArray) -> FloatArray:
        """Encoded people with all columns apart."""
        if not self.sets:
            return rows
        found = np.empty((len(rows), len(self.column_of)))
        for i, places in enumerate(self.places):
            found[:, places] = self.parts(i, rows[:, i])
        return found

    def parts(self, column: int, values: FloatArray) -> FloatArray:
        """Values of one column as those of the columns of the people that it stands for, shape (n, n_columns)."""
        places = self.places[column]
        if len(places) == 1:
            return values[:, None]
        bits = values[:, None] == np.arange(len(places))
        codes = np.array([self._codes_of_bits[place] for place in places])
        return np.where(bits, codes[:, 1], codes[:, 0])

    def bits(self, places: Sequence[int], rows: FloatArray) -> FloatArray:
        """0/1 columns as numbers."""
        ones = np.array([self._codes_of_bits[place][1] for place in places])
        return np.asarray(np.where(np.isnan(rows), np.nan, rows == ones))

    @cached_property
    def _codes_of_bits(self) -> dict[int, tuple[float, float]]:
        """How 0 and 1 are encoded in the columns of 0 and 1; one that is unknown is NaN."""
        found = {}
        for place, column in enumerate(self.encoder.columns):
            held = self.domain.columns[self.encoder.names[place]]
            if isinstance(held, NumericDomain):
                found[place] = (0.0, 1.0)
            elif held.values and all(map(is_bit, held.values)):
                seen = self.table[self.encoder.names[place]].dropna()
                known = {int(value): value for value in [*held.values, *seen.unique().tolist()] if is_bit(value)}
                both = pd.Series([known.get(0), known.get(1)], dtype=object, name=column.name)
                found[place] = tuple(column.encode(both).tolist())
        return found

    def given(self, rows: FloatArray) -> Any:
        """Encoded people as the model takes them: only the columns that it has learned from, if it knows these."""
        return self.ask.taken(self.apart(rows))

    def varied(self, column: int, values: FloatArray) -> FloatArray:
        """Encoded people: the first of those given, with other values in one column."""
        rows = np.repeat(self.rows[:1], len(values), axis=0)
        rows[:, column] = values
        return rows

    def preprocessing(self, *, products: bool = False) -> Preprocessing:
        """The steps in front of the model, whose features come from the columns here."""
        taken = self.given(self.rows[:1])
        is_table = hasattr(taken, "columns") and not self.as_array
        names = list(taken.columns) if is_table else self.encoder.names
        columns = [self.column_of[self.encoder.names.index(name)] for name in names]
        return Preprocessing.of(self.model, columns, products=products)

    def bind(self, metric: Metric) -> BoundMetric:
        """A metric bound to the columns of the people."""
        return metric.bind(metric.encoder(self.table.to_numpy() if self.as_array else self.table))

    def for_metric(self, metric: BoundMetric, rows: FloatArray) -> People:
        """Encoded people as a metric takes them."""
        table = self.ask.table(self.apart(rows))
        return People.read(table.to_numpy(dtype=np.float64) if self.as_array else table, metric.schema)

    def outputs(self, rows: FloatArray) -> FloatArray:
        """Outputs of encoded people, in a form whose differences add up to the total variation."""
        return self.answers(rows)[0]

    def answers(self, rows: FloatArray) -> tuple[FloatArray, bool]:
        """Outputs of encoded people, and whether these are probabilities."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a model may warn about people who do not exist
            return asked_outputs(self.ask, self.output_range, self.apart(rows))

    @cached_property
    def probable(self) -> bool:
        """Whether the outputs are probabilities."""
        return self.answers(self.rows[:1])[1]

    def claim(self, columns: Sequence[int], unit: float = 0.0) -> Claim:
        """What is to be proven: by how much people of the domain who differ in some columns alone can be apart."""
        return Claim(self, tuple(columns), self.probable, unit)

    def possible(self, pairs: Pairs) -> Pairs:
        """Those pairs of which both people are of the domain."""
        return [(a, b) for a, b in pairs if len(a) and self.holds(np.stack([a, b])).all()]

    def confirm(
        self, expected: Callable[[FloatArray], FloatArray], what: str, *, relative: float = 1e-7, room: float = 1e-9
    ) -> None:
        """Raise if the model's own answers differ from those that follow from its parts: settings and versions vary.

        Parameters
        ----------
        expected : callable
            From encoded people to probabilities of the classes, or of the second of two, or to numbers.
        """
        rows = self.rows[:: max(1, len(self.rows) // _CHECKED)]
        (answers, probable), made = self.answers(rows), expected(rows)
        if probable:
            made = made[:, -1:] if made.shape[1] <= 2 else made / 2
        elif self.output_range is not None:
            made = (made - self.output_range[0]) / np.diff(self.output_range)
        if answers.shape != made.shape or not np.allclose(answers, made, rtol=relative, atol=room):
            raise UnprovableError(f"the outputs of {type(self.model).__name__} are not {what}")

    def labels(self, *, probable: bool) -> OutputLabels:
        """What the outputs describe."""
        return OutputLabels.of(self.model, None, self.output_range, probable=probable)

    def codes(self, column: int) -> FloatArray:
        """Encoded categories of a column, a blank last where it may be missing."""
        return self._codes[column]

    def few_values(self, column: int, most: int) -> FloatArray | None:
        """All encoded values of a column, a blank last; None if it has more numbers than `most`."""
        held = self.held[column]
        if isinstance(held, CategoricalDomain):
            return self.codes(column)
        return self.or_blank(column, held.every()) if held.n_values <= most else None

    def or_blank(self, column: int, numbers: FloatArray) -> FloatArray:
        """Numbers of a column, and a blank where there may be one."""
        return np.append(numbers, np.nan) if self.held[column].blank else numbers

    @cached_property
    def _codes(self) -> dict[int, FloatArray]:
        return {i: self._encoded(i) for i, held in enumerate(self.held) if isinstance(held, CategoricalDomain)}

    def _encoded(self, column: int) -> FloatArray:
        name, places, held = self.names[column], self.places[column], self.held[column]
        assert isinstance(held, CategoricalDomain)
        if len(places) > 1:
            members = [self.encoder.names[place] for place in places]
            return np.array([members.index(value) for value in held.values], dtype=np.float64)
        values = pd.Series([*held.values, *([None] if held.blank else [])], dtype=object, name=name)
        codes = self.encoder.columns[places[0]].encode(values)
        unseen = codes == UNSEEN
        if unseen.any():
            raise InvalidInputError(
                f"The domain of {name!r} lists {values[unseen.argmax()]!r}, which does not occur in X. Add such a row, "
                f"or take it off the list, as Domain.learn(X, categorical=[{name!r}]) does."
            )
        return np.asarray(codes, dtype=np.float64)

    def people(self, rows: FloatArray) -> pd.DataFrame:
        """Encoded people as they are shown: all columns apart, whole numbers without a point."""
        table: pd.DataFrame = self.ask.table(self.apart(rows))
        for name, held in self.domain.columns.items():
            if name in table and getattr(held, "step", None) == 1 and not table[name].isna().any():
                table[name] = table[name].astype(np.int64)
        return table

    def words(self, table: pd.DataFrame, rows: FloatArray, columns: Sequence[int]) -> pd.DataFrame:
        """Values of some columns in a table of people, who are encoded as `rows`; of a set, the member that is 1."""
        found: dict[Any, Any] = {}
        for i in columns:
            members = [self.encoder.names[place] for place in self.places[i]]
            own = table[members[0]].astype(object) if len(members) == 1 else [members[int(k)] for k in rows[:, i]]
            found[self.names[i]] = own
        return pd.DataFrame(found, dtype=object)

    def differences(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Differences between the outputs of encoded people a and b, row by row."""
        outputs = self.outputs(np.concatenate([a, b]))
        return np.asarray(np.abs(outputs[: len(a)] - outputs[len(a) :]).sum(axis=1))

    def keeps_rules(self, rows: FloatArray) -> BoolArray:
        """Which encoded people keep the rules of the domain."""
        fine = np.ones(len(rows), dtype=bool)
        for rule in self.rules:
            terms = np.column_stack([rule.added(i, rows[:, i]) for i in rule.terms])
            fine &= np.isnan(terms).any(axis=1) | (np.nansum(terms, axis=1) <= rule.limit)
        return fine

    def holds(self, rows: FloatArray) -> BoolArray:
        """Which encoded people are in the domain."""
        fine = self.keeps_rules(rows)
        for i, held in enumerate(self.held):
            if isinstance(held, CategoricalDomain):
                codes = self.codes(i)
                fine &= (rows[:, i, None] == codes).any(axis=1) | (np.isnan(rows[:, i]) & np.isnan(codes).any())
            else:
                fine &= held.holds(rows[:, i])
        return fine

    @cached_property
    def rules(self) -> list[CodedRule]:
        """The rules of the domain on encoded people, but for those that make the sets; two for an equality."""
        found = []
        of_sets = {Rule.exactly_one(each.members) for each in self.sets}
        for rule in self.domain.rules:
            if rule in of_sets or not set(rule.coefficients) <= set(self.encoder.names):
                continue
            terms: dict[int, dict[int, float]] = {}
            size = 0.0
            for name, coefficient in rule.coefficients.items():
                place, held = self.encoder.names.index(name), self.domain.columns[name]
                terms.setdefault(self.column_of[place], {})[place] = coefficient
                ends = (held.low, held.high) if isinstance(held, NumericDomain) else (0.0, 1.0)
                size += abs(coefficient) * max(map(abs, ends))
            for sign in (1.0, -1.0) if rule.equal else (1.0,):
                found.append(CodedRule(self, terms, sign, sign * rule.bound + rule.room(size)))
        return found


def _holds_bit(held: NumericDomain | CategoricalDomain, bit: int) -> bool:
    """Whether a column may hold 0, or 1."""
    return bool(held.low <= bit <= held.high) if isinstance(held, NumericDomain) else bit in held.values


@dataclass(frozen=True, eq=False)
class CodedRule:
    """A linear rule on encoded people: what their columns add is at most `limit`.

    Attributes
    ----------
    space : InputSpace
    terms : dict of int to dict of int to float
        For each column, the coefficients of the columns of the people that it stands for.
    sign : float
        That multiplies them.
    limit : float
        With room for rounding.
    """

    space: InputSpace
    terms: dict[int, dict[int, float]]
    sign: float
    limit: float

    def added(self, column: int, values: FloatArray) -> FloatArray:
        """What encoded values of a column add; NaN for a blank, to which no rule applies."""
        parts, places = self.space.parts(column, values), self.space.places[column]
        total = np.zeros(len(values))
        for place, coefficient in self.terms[column].items():
            part = parts[:, [places.index(place)]]
            is_number = isinstance(self.space.domain.columns[self.space.encoder.names[place]], NumericDomain)
            total += self.sign * coefficient * (part if is_number else self.space.bits([place], part))[:, 0]
        return total
