"""The search space of `attack`: the values that each column can hold, and the people to start from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from likewise._subsample import evenly_spaced
from likewise._typing import BoolArray, FloatArray
from likewise._validation import check_names, short_repr
from likewise.ask import unseen_value
from likewise.auditing.coordinate_ascent import BLANKS, shares_of_ranges
from likewise.exceptions import InvalidInputError
from likewise.kernel.columns import UNSEEN, CategoricalColumn, NumericColumn
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import Encoder, People, is_table
from likewise.verification.domain import CategoricalDomain, Domain, NumericDomain, frame_of
from likewise.verification.one_hot import OneHot

_MAX_STARTS = 2**16
_MAX_BREAKPOINTS = 4096  # per column
_MARGIN = 0.25  # of the range of the data, on both sides
_MAX_UNIT = 1e6  # ranges of the data
_MIN_STEP = 1e-12  # as a share of the range; the next floating-point number is tried as well


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """The values that each column can hold.

    Attributes
    ----------
    metric : BoundMetric
        Bound to the columns that are searched.
    starts : ndarray of shape (n_starts, n_columns)
        Encoded people from whom a search starts.
    low, high : ndarray of shape (n_columns,)
        Range of the numbers.
    scales : ndarray of shape (n_columns,)
        Distance per unit of a number, or between two categories; 0 for protected columns. For a metric without
        weights, 1 per range of the data.
    p : float
    breakpoints : tuple of ndarray
        Per column of numbers, values at which a model may change, ascending.
    choices : tuple of ndarray
        The codes that each categorical or ordered column can hold; empty for other numbers.
    nullable : ndarray of bool, shape (n_columns,)
        Numbers that may be missing.
    with_tables : bool
        Whether the model takes tables, not arrays of numbers.
    spell : callable, optional
        From encoded people to a table, in the spelling in which people were given; None decodes.
    refused : tuple of str
        Kinds of values that the model refuses.
    """

    metric: BoundMetric
    starts: FloatArray
    low: FloatArray
    high: FloatArray
    scales: FloatArray
    p: float
    breakpoints: tuple[FloatArray, ...]
    choices: tuple[FloatArray, ...]
    nullable: BoolArray
    with_tables: bool
    spell: Callable[[FloatArray], Any] | None = None
    refused: tuple[str, ...] = ()

    @property
    def encoder(self) -> Encoder:
        """Of the columns."""
        return self.metric.schema

    @property
    def continuous(self) -> BoolArray:
        """Columns that hold any number."""
        return np.array([not len(values) for values in self.choices])

    @property
    def hidden(self) -> BoolArray:
        """Columns of weight 0."""
        return np.asarray(self.scales == 0)

    @property
    def swappable(self) -> BoolArray:
        """Columns that can be swapped: categories, numbers that may be missing, and columns of weight 0."""
        return np.asarray(~self.continuous | self.nullable | self.hidden)

    @property
    def span(self) -> FloatArray:
        """Width of the range of the numbers; 1 where there is none."""
        return np.where(self.high > self.low, self.high - self.low, 1.0)

    @property
    def unit(self) -> FloatArray:
        """Change of a number at distance 1; at most `_MAX_UNIT` ranges."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.where(self.hidden, self.span, np.minimum(1 / self.scales, _MAX_UNIT * self.span))

    def table(self, rows: FloatArray) -> Any:
        """People as a model takes them; unseen categories get a value that the encoder does not know."""
        if self.spell is not None:
            return self.spell(rows)
        known = np.where(self.encoder.is_number | (rows != UNSEEN), rows, 0.0)
        table = self.encoder.decode(known)
        for i, column in enumerate(self.encoder.columns):
            unseen = rows[:, i] == UNSEEN
            if isinstance(column, CategoricalColumn) and unseen.any():
                values = table[column.name].astype(object)
                values[unseen] = unseen_value(column)
                table[column.name] = values
        return table

    def people(self, rows: FloatArray) -> People:
        """Encoded people, with a table if the model takes one."""
        return People(rows, self.encoder, self.table(rows) if self.with_tables else None)

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Starting points: half as given, a quarter mixed from several people, a quarter uniform."""
        rows = self.starts[np.resize(rng.permutation(len(self.starts)), n)]
        mixed, uniform = n // 2, n - n // 4
        for i in range(rows.shape[1]):
            own = rng.integers(len(self.starts), size=n - mixed)
            rows[mixed:, i] = self.starts[own, i]
            if len(self.choices[i]):
                rows[uniform:, i] = rng.choice(self.choices[i], n - uniform)
            else:
                margin = _MARGIN * (self.high[i] - self.low[i])
                rows[uniform:, i] = rng.uniform(self.low[i] - margin, self.high[i] + margin, n - uniform)
        return rows

    def spread(self, rng: np.random.Generator, n: int, domain: Domain | None, *, stratified: bool) -> FloatArray:
        """People from everywhere in the ranges of the columns, or of a domain, whoever was given."""
        shares = shares_of_ranges(rng, n, len(self.low), stratified=stratified)
        rows = self.low + shares * (self.high - self.low)
        for i, (name, listed) in enumerate(zip(self.encoder.names, self.choices, strict=True)):
            held = None if domain is None else domain.columns[name]
            if isinstance(held, NumericDomain):
                rows[:, i] = held.at_shares(shares[:, i])
            elif len(listed):
                rows[:, i] = listed[np.floor(shares[:, i] * len(listed)).astype(np.int64)]
            if self.nullable[i]:
                rows[rng.random(n) < BLANKS, i] = np.nan
        return rows

    def lengths(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Step sizes per person and column, log-uniform: of the range of the data, or of a distance of 1."""
        by_range = rng.random((n, 1)) < 0.5
        return np.where(by_range, self.span, self.unit) * 10.0 ** rng.uniform(np.log10(_MIN_STEP), 0.3, (n, 1))

    def moved(self, rng: np.random.Generator, rows: FloatArray, lengths: FloatArray) -> FloatArray:
        """People moved in some columns: numbers by up to their step size, or to the next float; others to any value."""
        n, d = rows.shape
        chosen = rng.random((n, d)) < rng.choice([1 / d, 0.4, 1.0], (n, 1))
        chosen[np.arange(n), rng.integers(d, size=n)] = True
        steps = rng.uniform(-1, 1, (n, d)) * lengths
        away = np.where(rng.random((n, 1)) < 0.05, np.nextafter(rows, rows + np.sign(steps)), rows + steps)
        out = np.where(chosen & self.continuous, away, rows)
        rarely = chosen & (rng.random((n, d)) < rng.choice([0.0, 0.1, 0.5], (n, 1)))
        return self.swapped(rng, out, rarely)

    def swapped(self, rng: np.random.Generator, rows: FloatArray, where: BoolArray) -> FloatArray:
        """People with other values at `where`: any listed one; nullable numbers become missing, or a number."""
        out = rows.copy()
        for i in range(rows.shape[1]):
            here = np.flatnonzero(where[:, i])
            if not len(here):
                continue
            if len(self.choices[i]):
                out[here, i] = rng.choice(self.choices[i], len(here))
            elif self.nullable[i]:
                absent = np.isnan(out[here, i])
                number = rng.uniform(self.low[i], self.high[i], len(here))
                out[here, i] = np.where(absent, number, np.nan)
        return out

    def accepted_by(self, predict: Callable[[People], Any]) -> SearchSpace:
        """Without the values that a model refuses: unseen categories, missing numbers, numbers that are not in X."""
        choices, nullable = list(self.choices), self.nullable.copy()
        refused: list[str] = []

        def refuses(column: int, value: float) -> bool:
            row = self.starts[:1].copy()
            row[0, column] = value
            try:
                predict(self.people(row))
            except Exception:  # other people's models may raise anything
                return True
            return False

        for i, name in enumerate(self.encoder.names):
            if UNSEEN in choices[i] and not self.encoder.is_number[i] and refuses(i, UNSEEN):
                choices[i] = choices[i][choices[i] != UNSEEN]
                refused.append(f"unseen values of {name}")
            if nullable[i] and refuses(i, np.nan):
                nullable[i] = False
                refused.append(f"missing values of {name}")
            odd = float(np.nextafter((self.low[i] + 2 * self.high[i]) / 3, np.inf))
            if not len(choices[i]) and refuses(i, odd):
                present = self.starts[~np.isnan(self.starts[:, i]), i]
                choices[i] = np.unique(present)
                refused.append(f"values of {name} that are not in X")
        return replace(self, choices=tuple(choices), nullable=nullable, refused=tuple(refused))


def build_search_space(
    metric: BoundMetric,
    rows: FloatArray | None,
    known: list[FloatArray],
    *,
    with_tables: bool = True,
    spell: Callable[[FloatArray], Any] | None = None,
) -> SearchSpace:
    """Build the search space from a metric, and people or breakpoints.

    Parameters
    ----------
    metric : BoundMetric
    rows : ndarray of shape (n_samples, n_columns), or None
        Encoded people.
    known : list of ndarray
        Landmarks that the model itself knows, per column; without people, they give the range of the columns.
    with_tables : bool
        Whether the model takes tables.
    spell : callable, optional
        As in `SearchSpace`.
    """
    if rows is not None and not len(rows):
        raise InvalidInputError("X must hold at least one person to start from; got none.")
    encoder, numbers, d = metric.schema, metric.is_number, len(metric.schema.names)
    choices = tuple(_codes(encoder, i) for i in range(d))
    breakpoints = tuple(_breakpoints(known[i], None if rows is None else rows[:, i]) for i in range(d))
    low, high = np.zeros(d), np.ones(d)
    for i in np.flatnonzero(numbers):
        present = breakpoints[i] if rows is None else rows[~np.isnan(rows[:, i]), i]
        if len(present):
            low[i], high[i] = present.min(), present.max()
        elif rows is None and not len(choices[i]) and (not metric.has_parts or metric.matters[i]):
            raise InvalidInputError(
                f"X must be given: the model does not say where the numbers of {encoder.names[i]!r} lie. Pass people "
                "like those it was fitted on."
            )
    if metric.has_parts:
        scales, nullable, p = metric.scales, numbers & ~np.isnan(metric.missing), metric.p
    else:
        scales, p = 1 / np.where(high > low, high - low, 1.0), 2.0
        nullable = numbers & (rows is not None and np.isnan(rows).any(axis=0))
    nullable &= np.array([not len(values) for values in choices])
    starts = np.zeros((1, d))
    space = SearchSpace(metric, starts, low, high, scales, p, breakpoints, choices, nullable, with_tables, spell)
    starts = _synthetic_rows(space) if rows is None else rows[evenly_spaced(len(rows), _MAX_STARTS)]
    return replace(space, starts=starts)


@dataclass(frozen=True, eq=False)
class Restriction:
    """Moves groups of people to where they may be, and makes the members of a group differ in some columns alone.

    Attributes
    ----------
    space : SearchSpace
    domain : Domain or None
        What each column can hold; None for anything.
    only : list of int, or None
        Columns in which the members of a group may differ; None for all.
    sets : list of OneHot
        Columns of which everybody has exactly one 1.
    """

    space: SearchSpace
    domain: Domain | None = None
    only: list[int] | None = None
    sets: Sequence[OneHot] = ()

    def __call__(self, groups: FloatArray) -> FloatArray:
        """The groups, shape (n_groups, n_members, n_columns), with everybody where they may be."""
        groups = groups.copy()
        if self.only is not None:
            shared = np.setdiff1d(np.arange(groups.shape[2]), self.only)
            groups[:, :, shared] = groups[:, :1, shared]
        for i, held in enumerate(self._held):
            values = groups[:, :, i]
            if isinstance(held, NumericDomain):
                groups[:, :, i] = held.nearest(values)
            else:
                known = (values[..., None] == held).any(axis=-1) | (np.isnan(values) & np.isnan(held).any())
                groups[:, :, i] = np.where(known, values, held[0])
        for places, codes in self._sets:
            groups[:, :, places] = _one_each(groups[:, :, places], codes)
        if self.domain is not None and self.domain.rules:
            groups = self._within_rules(groups)
        return groups

    @cached_property
    def _sets(self) -> list[tuple[list[int], FloatArray]]:
        """Columns of each set, and how 0 and 1 are encoded in them."""
        names, found = list(self.space.encoder.names), []
        for each in self.sets:
            places = [names.index(member) for member in each.members]
            columns = [self.space.encoder.columns[place] for place in places]
            codes = [
                [0.0, 1.0]
                if isinstance(column, NumericColumn) and column.categories is None
                else column.encode(pd.Series([0, 1], dtype=object, name=column.name)).tolist()
                for column in columns
            ]
            found.append((places, np.array(codes)))
        return found

    def _numbers(self, rows: FloatArray) -> FloatArray:
        """Encoded people, members of sets as 0 and 1, for the rules."""
        rows = rows.copy()
        for places, codes in self._sets:
            rows[:, places] = rows[:, places] == codes[:, 1]
        return rows

    def _within_rules(self, groups: FloatArray) -> FloatArray:
        """Members who break a rule become the first of their group; groups whose first does, somebody who is there."""
        assert self.domain is not None
        names = list(self.space.encoder.names)
        rows = self._numbers(groups.reshape(-1, groups.shape[2]))
        fine = self.domain.keeps_rules(rows, names).reshape(groups.shape[:2])
        groups = np.where(fine[..., None], groups, groups[:, :1])
        groups[~fine[:, 0]] = self._insider
        return groups

    @cached_property
    def _insider(self) -> FloatArray:
        assert self.domain is not None
        starts = self.space.starts
        moved = replace(self, domain=self.domain.without_rules(), only=None)(starts[:, None])[:, 0]
        inside = np.flatnonzero(self.domain.keeps_rules(self._numbers(moved), list(self.space.encoder.names)))
        if not len(inside):
            raise InvalidInputError("domain must not be empty; no row of X satisfies its rules.")
        return np.asarray(moved[inside[0]])

    @cached_property
    def _held(self) -> list[NumericDomain | FloatArray]:
        """What each column can hold: numbers, or the codes of categories."""
        found: list[NumericDomain | FloatArray] = []
        for column in self.space.encoder.columns if self.domain is not None else ():
            held = self.domain.columns[column.name]  # type: ignore[union-attr]
            if isinstance(held, CategoricalDomain):
                values = [*held.values, *([None] if held.blank else [])]
                held = np.asarray(column.encode(pd.Series(values, dtype=object, name=column.name)), dtype=np.float64)
            found.append(held)
        return found


def _one_each(values: FloatArray, codes: FloatArray) -> FloatArray:
    """0/1 columns of groups with exactly one 1: that of the column whose value is largest, or that is no longer 0.

    Parameters
    ----------
    values : ndarray of shape (n_groups, n_members, n_columns)
    codes : ndarray of shape (n_columns, 2)
        How 0 and 1 are encoded.
    """
    sizes = np.nan_to_num((values - codes[:, 0]) / (codes[:, 1] - codes[:, 0]), nan=0.0)
    places = np.arange(len(codes))
    first = sizes[:, :1].argmax(axis=2)[..., None] == places
    # Whoever was moved from the first of the group goes where they were moved to.
    chosen = (sizes - 0.5 * first).argmax(axis=2)[..., None] == places
    return np.where(chosen, codes[:, 1], codes[:, 0])


def restriction_of(space: SearchSpace, X: Any, domain: Domain | None, only: Any, *, possible: bool) -> Restriction:
    """What `domain` and `only` of `attack` ask for. With `only`, the domain is learned from `X`.

    `possible` keeps sets of 0/1 columns with exactly one 1 for everybody in `X` as they are.
    """
    if not isinstance(domain, Domain | None):
        raise InvalidInputError(
            f"domain must be None or a likewise.Domain, such as Domain.learn(X); got {short_repr(domain)}."
        )
    possible = possible and X is not None and not space.encoder.mixes_features
    if domain is None and only is None and not possible:
        return Restriction(space)
    names, frame = list(space.encoder.names), frame_of(space.table(space.starts) if X is None else X)
    frame = frame.set_axis(names, axis=1) if len(frame.columns) == len(names) and not is_table(X) else frame
    given = domain is not None
    if domain is None:
        categories = [n for n, number in zip(names, space.encoder.is_number, strict=True) if not number]
        domain = Domain.learn(frame, [name for name in categories if name in frame])
    else:
        domain = domain.with_one_hot(frame).listing(space.encoder.columns)
    absent = [name for name in names if name not in domain.columns]
    if absent:
        raise InvalidInputError(f"domain must say what {absent[0]!r} can hold; it has {list(domain.columns)}.")
    sets = [each for each in domain.one_hot if set(each.members) <= set(names)]
    columns = None
    if only is not None:
        known = {name: [name] for name in names}
        known |= {each.name: list(each.members) for each in sets if each.name not in known}
        known |= {member: list(each.members) for each in sets for member in each.members}
        wanted = check_names("only", [only] if isinstance(only, str) else only, list(known))
        if not wanted:
            raise InvalidInputError(f"only must name at least one column of X, {names}; got {short_repr(only)}.")
        columns = sorted({names.index(member) for name in wanted for member in known[name]})
    if given or only is not None:
        return Restriction(space, domain, columns, sets)
    return Restriction(space, None, None, sets if possible else ())


def _synthetic_rows(space: SearchSpace) -> FloatArray:
    """Starting points without people: at breakpoints and between them; the same in every search."""
    rng, n = np.random.default_rng(0), 1024
    rows = rng.uniform(space.low, space.high, (n, len(space.low)))
    for i, (listed, breakpoints) in enumerate(zip(space.choices, space.breakpoints, strict=True)):
        if len(listed):
            rows[:, i] = rng.choice(listed, n)
        elif len(breakpoints):
            rows[: n // 2, i] = rng.choice(breakpoints, n // 2)
    return rng.permuted(rows, axis=0)


def _codes(encoder: Encoder, i: int) -> FloatArray:
    """Codes that a column can hold; empty for numbers."""
    column = encoder.columns[i]
    if isinstance(column, NumericColumn):
        return np.empty(0) if column.categories is None else np.arange(float(len(column.categories)))
    return np.append(np.arange(float(len(column.levels) + column.has_missing)), UNSEEN)


def _breakpoints(known: FloatArray, values: FloatArray | None) -> FloatArray:
    """Known breakpoints, the values of people, and the midpoints between these, where trees split."""
    known, own = np.unique(known), np.empty(0)
    if values is not None:
        present = np.unique(values[~np.isnan(values)])
        own = np.sort(np.concatenate([present, (present[1:] + present[:-1]) / 2]))
    most = _MAX_BREAKPOINTS if values is None else _MAX_BREAKPOINTS // 2
    return np.unique(np.concatenate([each[evenly_spaced(len(each), most)] for each in (own, known)]))
