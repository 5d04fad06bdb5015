"""The set of possible people: what each column can hold, and linear rules between columns."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from likewise._typing import BoolArray, FloatArray
from likewise._validation import BOOL, check_numbers, short_repr
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.kernel.columns import CategoricalColumn, NumericColumn, canonical_category, is_numeric
from likewise.kernel.schema import as_frame, is_table
from likewise.verification.one_hot import OneHot, find_one_hot, is_bit

_STEPS = (1.0, 0.5, 0.25, 0.1, 0.05, 0.01, 0.001, 0.0001)
_TERM = re.compile(r"\s*([+-])?\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)\s*(?:\*\s*)?)?(`[^`]+`|[^\W\d]\w*)?\s*")
_MOST_LISTED = 10_000  # numbers that are listed as categories
_CLOSE = 1e-9  # of a step, or of the size of a rule's terms: what rounding may move a number by


@dataclass(frozen=True)
class NumericDomain:
    """Numbers from `low` to `high`, both included.

    Parameters
    ----------
    low, high : float
    step : float or None, default=None
        Only multiples of it; 1 for whole numbers. None for all numbers.
    blank : bool, default=False
        Whether the value may be missing.
    """

    low: float
    high: float
    step: float | None = None
    blank: bool = False

    def __post_init__(self) -> None:
        for name in ("low", "high", *(() if self.step is None else ("step",))):
            object.__setattr__(self, name, _checked_number(name, getattr(self, name)))
        BOOL.check("blank", self.blank)
        if not (np.isfinite(self.low) and np.isfinite(self.high) and self.low <= self.high):
            raise InvalidInputError(f"low must be at most high, both finite; got {self.low:g} and {self.high:g}.")
        if self.step is not None and not 0 < self.step < np.inf:
            raise InvalidInputError(f"step must be positive, or None for all numbers; got {self.step!r}.")
        if self.step is not None and self.first > self.last:
            raise InvalidInputError(
                f"There must be a multiple of step between low and high; got {self.low:g}, {self.high:g} and step "
                f"{self.step:g}."
            )

    @classmethod
    def learn(cls, column: pd.Series[Any]) -> NumericDomain:
        """Range, step and blanks of a column of numbers."""
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        present = np.unique(values[~np.isnan(values)])
        if not len(present):
            return cls(0.0, 0.0, 1.0, True)
        low, high = float(present[0]), float(present[-1])
        step = next((step for step in _STEPS if _on_grid(present, step).all()), None)
        return cls(low, high, step, bool(np.isnan(values).any()))

    @property
    def first(self) -> int:
        """Position of the lowest number: how many steps it is, or its place among floating-point numbers."""
        if self.step is None:
            return int(_to_ordinals(np.array(float(self.low))))
        return int(np.ceil(self.low / self.step - _room(self.low / self.step)))

    @property
    def last(self) -> int:
        """Position of the highest number."""
        if self.step is None:
            return int(_to_ordinals(np.array(float(self.high))))
        return int(np.floor(self.high / self.step + _room(self.high / self.step)))

    @property
    def n_values(self) -> float:
        """How many numbers it holds; infinity without a step."""
        return np.inf if self.step is None else self.last - self.first + 1

    def every(self) -> FloatArray:
        """All numbers."""
        return self.at(np.arange(self.first, self.last + 1))

    def spread(self, n: int) -> FloatArray:
        """Up to `n` numbers all over the range, with both ends."""
        if self.step is None:
            return np.linspace(self.low, self.high, n)
        return self.at(np.unique(np.linspace(self.first, self.last, n).astype(np.int64)))

    def at(self, positions: Any) -> FloatArray:
        """Numbers by their positions, which ascend with them."""
        places = np.asarray(positions, dtype=np.int64)
        if self.step is None:
            return _from_ordinals(places)
        return _multiples(places, self.step)

    def at_shares(self, shares: FloatArray) -> FloatArray:
        """Numbers at shares of the range, from 0 to below 1; with a step, all of them for equal shares."""
        if self.step is None:
            return self.low + shares * (self.high - self.low)
        n = self.last - self.first + 1
        return self.at(self.first + np.minimum(np.floor(shares * n), n - 1).astype(np.int64))

    def nearest(self, values: FloatArray) -> FloatArray:
        """The nearest numbers that it holds; blanks stay, or become the lowest number where there are none."""
        filled = np.clip(np.where(np.isnan(values), self.low, values), self.low, self.high)
        if self.step is not None:
            filled = self.at(np.clip(np.rint(filled / self.step), self.first, self.last).astype(np.int64))
        return np.where(np.isnan(values) & self.blank, np.nan, filled)

    def holds(self, values: FloatArray) -> BoolArray:
        """Which values it holds; NaN is a blank.

        A number next to one of a grid, such as 0.1 + 0.2 next to 0.3, is not held: a model may tell them apart.
        """
        if self.step is None:
            inside = (values >= self.low) & (values <= self.high)
        else:
            with np.errstate(invalid="ignore"):
                places = np.rint(values / self.step)
                inside = (places >= self.first) & (places <= self.last) & _on_grid(values, self.step)
        return np.where(np.isnan(values), self.blank, inside)

    def listed(self) -> CategoricalDomain | None:
        """The same values as categories; None if they are too many to list."""
        if self.n_values > _MOST_LISTED:
            return None
        return CategoricalDomain(tuple(_plain(value) for value in self.every().tolist()), self.blank)

    def __str__(self) -> str:
        kind = "" if self.step is None else "whole numbers, " if self.step == 1 else f"multiples of {self.step:g}, "
        return f"{kind}{self.low:g} to {self.high:g}{', or blank' if self.blank else ''}"


@dataclass(frozen=True)
class CategoricalDomain:
    """Listed values.

    Parameters
    ----------
    values : sequence
    blank : bool, default=False
        Whether the value may be missing.
    blanks : sequence, default=()
        How a missing value is written, such as None or NaN, which models tell apart; none if that is not known.
    """

    values: tuple[Any, ...]
    blank: bool = False
    blanks: tuple[Any, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        BOOL.check("blank", self.blank)
        if not isinstance(self.values, (list, tuple)):
            raise InvalidInputError(f"values must be a list of categories; got {short_repr(self.values)}.")
        object.__setattr__(self, "values", tuple(self.values))
        if any(not pd.api.types.is_scalar(value) or pd.isna(value) for value in self.values):
            raise InvalidInputError("values must be plain categories; pass blank=True to allow a missing one.")
        if not self.values and not self.blank:
            raise InvalidInputError("values must list at least one category; got none.")

    @classmethod
    def learn(cls, column: pd.Series[Any]) -> CategoricalDomain:
        """Values that occur, in the order of their names."""
        present = column.dropna().unique().tolist()
        blanks = {type(value): value for value in column[column.isna()].tolist()}
        return cls(tuple(sorted(present, key=canonical_category)), bool(blanks), tuple(blanks.values()))

    def holds(self, column: pd.Series[Any]) -> BoolArray:
        """Which values it holds."""
        known = {canonical_category(value) for value in self.values}
        answers = [self.blank if pd.isna(value) else canonical_category(value) in known for value in column]
        return np.array(answers, dtype=bool)

    def __str__(self) -> str:
        words = [*map(str, self.values), *(["blank"] if self.blank else [])]
        more = f" and {len(words) - 6} more" if len(words) > 7 else ""
        return ", ".join(words[:6] if more else words) + more


@dataclass(frozen=True)
class Rule:
    """A linear rule: ``sum of coefficients * columns <= bound``, or ``== bound``.

    It ignores rows in which one of its columns is missing. True counts as 1.

    Examples
    --------
    >>> Rule.parse("debt <= 2 * income + 100"), Rule.parse("sex_f + sex_m == 1")
    (Rule(debt - 2 * income <= 100), Rule(sex_f + sex_m == 1))
    """

    coefficients: Mapping[str, float]
    bound: float
    equal: bool = False

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Read a rule such as ``debt <= income`` or ``2 * rent + `other costs` == income - 100``."""
        sides = re.split(r"<=|>=|==", text)
        if len(sides) != 2:
            raise InvalidInputError(f"A rule must have one <=, >= or ==, such as 'debt <= income'; got {text!r}.")
        left, right = (_linear(side, text) for side in sides)
        sign = -1.0 if ">=" in text else 1.0
        names = [name for name in dict.fromkeys((*left, *right)) if name is not None]
        found = {name: sign * (left.get(name, 0.0) - right.get(name, 0.0)) for name in names}
        found = {name: coefficient for name, coefficient in found.items() if coefficient}
        if not found:
            raise InvalidInputError(f"A rule must name a column; got {text!r}.")
        return cls(MappingProxyType(found), sign * (right.get(None, 0.0) - left.get(None, 0.0)), "==" in text)

    @classmethod
    def exactly_one(cls, members: Sequence[Any]) -> Rule:
        """The rule that everybody has a 1 in exactly one of these columns."""
        return cls(MappingProxyType(dict.fromkeys(members, 1.0)), 1.0, True)

    def room(self, size: float) -> float:
        """What rounding may add to a sum of terms of this size."""
        return _CLOSE * max(1.0, abs(self.bound), size)

    def __str__(self) -> str:
        parts: list[str] = []
        for name, coefficient in self.coefficients.items():
            shown = name if re.fullmatch(r"[^\W\d]\w*", str(name)) else f"`{name}`"
            size = "" if abs(coefficient) == 1 else f"{abs(coefficient):.12g} * "
            sign = ("-" if coefficient < 0 else "") if not parts else " - " if coefficient < 0 else " + "
            parts.append(f"{sign}{size}{shown}")
        return f"{''.join(parts)} {'==' if self.equal else '<='} {self.bound:.12g}"

    def __repr__(self) -> str:
        return f"Rule({self})"

    def __hash__(self) -> int:
        return hash((frozenset(self.coefficients.items()), self.bound, self.equal))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rule):
            return NotImplemented
        same = self.bound == other.bound and self.equal == other.equal
        return same and dict(self.coefficients) == dict(other.coefficients)


@dataclass(frozen=True)
class Domain:
    """The set of possible people: what each column can hold, and rules between columns.

    Learned from people, shown by `describe`, and edited with `with_column` and `with_rules`. Sets of 0/1 columns of
    which everybody has exactly one 1 are rules too, such as ``sex_f + sex_m == 1``; they are learned.

    Parameters
    ----------
    columns : mapping from column to NumericDomain or CategoricalDomain
    rules : sequence of Rule, default=()

    Examples
    --------
    >>> people = pd.DataFrame({"age": [19, 64], "debt": [100.5, 20.25], "sex": ["f", "m"]})
    >>> domain = Domain.learn(people).with_column("age", low=18, high=99).with_rules("debt <= 10 * age")
    >>> domain.describe()
      column                           can hold
    0    age            whole numbers, 18 to 99
    1   debt  multiples of 0.25, 20.25 to 100.5
    2    sex                               f, m
    3   rule               debt - 10 * age <= 0
    """

    columns: Mapping[Any, NumericDomain | CategoricalDomain]
    rules: tuple[Rule, ...] = field(default=())

    def __post_init__(self) -> None:
        kinds = (NumericDomain, CategoricalDomain)
        if not isinstance(self.columns, Mapping) or not all(isinstance(held, kinds) for held in self.columns.values()):
            raise InvalidTypeError(
                f"columns must map columns to what they can hold, see Domain.learn and Domain.from_entries; got "
                f"{short_repr(self.columns)}."
            )
        if not isinstance(self.rules, (list, tuple)) or not all(isinstance(rule, Rule) for rule in self.rules):
            raise InvalidTypeError(f"rules must be a sequence of Rule, see with_rules; got {short_repr(self.rules)}.")
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        object.__setattr__(self, "rules", tuple(self.rules))
        for rule in self.rules:
            for name in rule.coefficients:
                held = self.columns.get(name)
                if not (isinstance(held, NumericDomain) or (held is not None and all(map(is_bit, held.values)))):
                    raise InvalidInputError(
                        f"A rule must name columns of numbers, or of 0 and 1; got {name!r} in {str(rule)!r}."
                    )

    @classmethod
    def learn(cls, X: Any, categorical: Sequence[Any] = ()) -> Domain:
        """Learn ranges, steps, categories, blanks, and sets of 0/1 columns with exactly one 1 from people.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_features)
        categorical : sequence of column names, default=()
            Columns of categories that look like numbers.
        """
        frame = frame_of(X)
        if not isinstance(categorical, (list, tuple)) or not all(isinstance(n, Hashable) for n in categorical):
            raise InvalidInputError(f"categorical must list columns of X; got {short_repr(categorical)}.")
        kinds = {name: is_numeric(frame[name]) and name not in set(categorical) for name in frame}
        columns = {name: (NumericDomain if kinds[name] else CategoricalDomain).learn(frame[name]) for name in frame}
        return cls(columns).with_one_hot(frame)

    def listing(self, coded: Iterable[NumericColumn | CategoricalColumn]) -> Domain:
        """Return a domain that lists the values of columns of categories, ordered or not: their codes are no values."""
        columns = dict(self.columns)
        for name in (c.name for c in coded if isinstance(c, CategoricalColumn) or c.categories is not None):
            held = columns.get(name)
            if isinstance(held, NumericDomain):
                listed = held.listed()
                if listed is None:
                    raise InvalidInputError(
                        f"domain must list the values of {name!r}, which the metric takes as categories; it has "
                        f"{held}. Use Domain.learn(X, categorical=[{name!r}])."
                    )
                columns[name] = listed
        return replace(self, columns=columns)

    def with_one_hot(self, X: Any) -> Domain:
        """Return a domain with rules for the sets of 0/1 columns of which everybody in `X` has exactly one 1.

        Columns that a rule of the domain relates already are left to it: ``a + b <= 2`` says that `a` and `b` may both
        be 1.
        """
        frame = frame_of(X)
        sets = find_one_hot(frame[[name for name, held in self.columns.items() if name in frame and _of_bits(held)]])
        related = [set(rule.coefficients) for rule in self.rules]
        new = [each for each in sets if not any(len(names & set(each.members)) > 1 for names in related)]
        return self.with_rules(*(Rule.exactly_one(each.members) for each in new))

    @property
    def one_hot(self) -> list[OneHot]:
        """The sets of 0/1 columns of which a rule says that exactly one is 1."""
        return [
            OneHot.of(rule.coefficients)
            for rule in self.rules
            if len(rule.coefficients) > 1
            and rule == Rule.exactly_one(list(rule.coefficients))
            and all(_of_bits(self.columns[name]) for name in rule.coefficients)
        ]

    def with_column(self, name: Any, **changes: Any) -> Domain:
        """Return a domain with another range, step or list for one column: ``with_column("age", low=18)``."""
        if name not in self.columns:
            raise InvalidInputError(f"The domain has no column {name!r}; it has {list(self.columns)}.")
        try:
            changed = replace(self.columns[name], **changes)
        except TypeError:
            kind = self.columns[name]
            raise InvalidTypeError(
                f"{type(kind).__name__} of {name!r} takes {list(kind.__dataclass_fields__)}; got {list(changes)}."
            ) from None
        return replace(self, columns={**self.columns, name: changed})

    def with_rules(self, *rules: str | Rule) -> Domain:
        """Return a domain with more rules, such as ``"debt <= income"``."""
        more = tuple(rule if isinstance(rule, Rule) else Rule.parse(rule) for rule in rules)
        return replace(self, rules=(*self.rules, *(rule for rule in more if rule not in self.rules)))

    def without_rules(self) -> Domain:
        """Return the same domain without rules."""
        return replace(self, rules=())

    def orders(self, X: Any) -> list[Rule]:
        """Rules ``a <= b`` between two columns that hold for everybody in `X`, and are not obvious from their ranges.

        They are suggestions: a rule that holds for every row of a table need not hold for everybody.
        """
        frame = frame_of(X)
        numeric = [name for name, held in self.columns.items() if isinstance(held, NumericDomain)]
        found = []
        for a in numeric:
            for b in numeric:
                both = frame[[a, b]].dropna()
                overlap = self.columns[a].high > self.columns[b].low  # type: ignore[union-attr]
                if a != b and overlap and len(both) and (both[a] <= both[b]).all() and (both[a] != both[b]).any():
                    found.append(Rule(MappingProxyType({a: 1.0, b: -1.0}), 0.0))
        return found

    def holds(self, X: Any) -> BoolArray:
        """Which people are in the domain."""
        frame = frame_of(X)
        inside = np.ones(len(frame), dtype=bool)
        for name, held in self.columns.items():
            if name not in frame:
                raise InvalidInputError(f"X must have the column {name!r} of the domain; it has {list(frame)}.")
            if isinstance(held, CategoricalDomain):
                inside &= held.holds(frame[name])
                continue
            if not is_numeric(frame[name]):
                raise InvalidInputError(f"Column {name!r} must hold numbers, as the domain says; it holds text.")
            inside &= held.holds(frame[name].to_numpy(np.float64, na_value=np.nan))
        named = list(dict.fromkeys(name for rule in self.rules for name in rule.coefficients))
        return inside & self.keeps_rules(frame[named].to_numpy(np.float64, na_value=np.nan), named)

    def keeps_rules(self, rows: FloatArray, names: Sequence[Any]) -> BoolArray:
        """Which rows of numbers, whose columns have these names, keep the rules."""
        fine = np.ones(len(rows), dtype=bool)
        for rule in self.rules:
            terms = np.column_stack([c * rows[:, list(names).index(name)] for name, c in rule.coefficients.items()])
            known = ~np.isnan(terms).any(axis=1)
            room = np.array([rule.room(size) for size in np.nansum(np.abs(terms), axis=1)])
            over = np.nansum(terms, axis=1) - rule.bound
            fine &= ~known | ((np.abs(over) if rule.equal else over) <= room)
        return fine

    def entries(self) -> dict[str, dict[str, Any]]:
        """What each column can hold as plain values, for a file; without what is the default."""
        found: dict[str, dict[str, Any]] = {}
        for name, held in self.columns.items():
            if isinstance(held, NumericDomain):
                numbers = {"low": held.low, "high": held.high, **({} if held.step is None else {"step": held.step})}
                entry: dict[str, Any] = {key: _plain(number) for key, number in numbers.items()}
            else:
                entry = {
                    "values": [value if isinstance(value, (bool, int, float)) else str(value) for value in held.values]
                }
            found[str(name)] = {**entry, **({"blank": True} if held.blank else {})}
        return found

    @classmethod
    def from_entries(cls, entries: Mapping[Any, Mapping[str, Any]], rules: Sequence[str] = ()) -> Domain:
        """The domain that `entries` and rules in words describe; errors name the column."""
        if not isinstance(entries, Mapping) or not all(isinstance(entry, Mapping) for entry in entries.values()):
            raise InvalidTypeError(
                f"entries must map columns to what they can hold, such as {{'low': 0, 'high': 9}}; got "
                f"{short_repr(entries)}."
            )
        if not isinstance(rules, (list, tuple)) or not all(isinstance(rule, str) for rule in rules):
            raise InvalidTypeError(f"rules must be a list of texts such as 'debt <= income'; got {short_repr(rules)}.")
        columns: dict[Any, NumericDomain | CategoricalDomain] = {}
        for name, entry in entries.items():
            kind = CategoricalDomain if "values" in entry else NumericDomain
            try:
                columns[name] = kind(**entry)
            except (TypeError, ValueError) as error:
                raise InvalidInputError(
                    f"{name!r} must have low and high, or values; step and blank are optional. {error}"
                ) from None
        return cls(columns).with_rules(*rules)

    def describe(self) -> pd.DataFrame:
        """What each column can hold, and the rules, in words."""
        rows = [(str(name), str(held)) for name, held in self.columns.items()]
        rows += [("rule", str(rule)) for rule in self.rules]
        return pd.DataFrame(rows, columns=["column", "can hold"])


def frame_of(X: Any) -> pd.DataFrame:
    """People as a DataFrame; the columns of an array are called by their positions."""
    if is_table(X):
        return as_frame(X)
    array = check_numbers("X", X, "Text needs a table with named columns.")
    if array.ndim != 2:
        raise InvalidInputError(
            f"X must be a table of people and features, (n_samples, n_features); got {array.shape}."
        )
    return pd.DataFrame(array, columns=[f"feature {i}" for i in range(array.shape[1])])


def _of_bits(held: NumericDomain | CategoricalDomain) -> bool:
    """Whether a column holds 0 and 1 alone, and no blanks."""
    if isinstance(held, NumericDomain):
        return held.low in (0, 1) and held.high in (0, 1) and held.step == 1 and not held.blank
    return not held.blank and sorted(held.values, key=bool) in ([False, True], [False], [True])


def _checked_number(name: str, value: Any) -> float:
    """A finite number."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InvalidInputError(f"{name} must be a number; got {short_repr(value)}.")
    try:
        return float(value)
    except OverflowError:
        raise InvalidInputError(f"{name} must be a finite number; got {short_repr(value)}.") from None


def _plain(number: float) -> int | float:
    return int(number) if float(number).is_integer() and abs(number) < 1e15 else float(number)


def _linear(side: str, text: str) -> dict[str | None, float]:
    """Coefficients of one side of a rule; None is the constant."""
    found: dict[str | None, float] = {}
    place = 0
    while place < len(side):
        match = _TERM.match(side, place)
        sign, number, name = match.groups() if match else (None, None, None)
        if match is None or match.end() == place or (number is None and name is None) or (place and sign is None):
            raise InvalidInputError(
                f"A rule must be linear, such as 'debt <= 2 * income + 100' (put `backticks` around names with "
                f"spaces); got {text!r}."
            )
        key = None if name is None else name.strip("`")
        size = 1.0 if number is None else float(number)
        found[key] = found.get(key, 0.0) + (-size if sign == "-" else size)
        place = match.end()
    if not found:
        raise InvalidInputError(f"A rule must have two non-empty sides; got {text!r}.")
    return found


def _on_grid(values: FloatArray, step: float) -> BoolArray:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(_multiples(np.rint(values / step), step) == values)


def _multiples(counts: Any, step: float) -> FloatArray:
    """Multiples of a step, as the floats that their decimals are read as: 7 / 100, not 7 * 0.01."""
    exact = Fraction(repr(step))
    return np.asarray(counts * float(exact.numerator) / float(exact.denominator))


def _room(count: Any) -> Any:
    """What rounding may move a number of steps by."""
    return np.minimum(_CLOSE + 4 * np.finfo(np.float64).eps * np.abs(count), 0.25)


def _to_ordinals(values: FloatArray) -> Any:
    """Floating-point numbers counted in their order."""
    bits = (values + 0.0).view(np.int64)  # -0.0 + 0.0 is 0.0
    return np.where(bits >= 0, bits, -(bits & np.int64(2**63 - 1)))


def _from_ordinals(places: Any) -> FloatArray:
    sign = np.where(places < 0, np.int64(-(2**63)), np.int64(0))
    return np.asarray((np.abs(places) | sign).view(np.float64))
