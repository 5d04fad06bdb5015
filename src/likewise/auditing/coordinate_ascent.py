"""A search for the worst pair of a domain by coordinate ascent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise._typing import FloatArray
from likewise.auditing.exchange import spread_numbers
from likewise.verification.base import InputSpace
from likewise.verification.domain import CategoricalDomain

_CANDIDATES = 12  # numbers of a column that a search tries
BLANKS = 0.05  # share of blanks among people who are drawn from a domain
_MIXED = 48  # pairs put together from several people, from which a search starts as well
_BATCH = 50_000  # pairs that a model is asked about at once
_DRAWN = 0.2  # share of the pairs of a search that are drawn from the domain before it climbs

Objective = Callable[[FloatArray, FloatArray], FloatArray]
"""From encoded people a and b to what is maximised."""


@dataclass
class PairSearch:
    """A search of a domain for the pair of people with the largest value, by draws and coordinate ascent.

    Attributes
    ----------
    space : InputSpace
    exchanged : sequence of int
        Columns in which the two people may differ.
    objective : callable
    n_queries : int
        Pairs that may still be compared.
    rng : Generator
    """

    space: InputSpace
    exchanged: Sequence[int]
    objective: Objective
    n_queries: int
    rng: np.random.Generator

    def worst_pair(
        self, starts: tuple[FloatArray, FloatArray], n_kept: int
    ) -> tuple[float, FloatArray, FloatArray, str]:
        """The worst pair that is found, its value, and what was searched; -inf if the domain is empty.

        It climbs from `starts`, from the `n_kept` worst of the pairs that are drawn from all over the domain, and from
        people put together from several.
        """
        n_drawn = int(_DRAWN * self.n_queries)
        drawn_a, drawn_b, searched = self._drawn(n_drawn)
        parts = [
            self.objective(drawn_a[i : i + _BATCH], drawn_b[i : i + _BATCH]) for i in range(0, len(drawn_a), _BATCH)
        ]
        worst = np.argsort(-np.concatenate([np.empty(0), *parts]), kind="stable")[:n_kept]
        self.n_queries -= n_drawn
        before, drawn = self.n_queries, (drawn_a[worst], drawn_b[worst])
        value, p, q = self._climb(*map(np.concatenate, zip(starts, drawn, self._mixed(), strict=True)))
        return value, p, q, f"{searched}, and {before - self.n_queries:,} by climbing from the worst"

    def _drawn(self, n: int) -> tuple[FloatArray, FloatArray, str]:
        """Pairs from all over the domain, half uniform and half stratified; and counts."""
        pairs, counts, columns, rng = [], [], self.exchanged, self.rng
        for stratified in (False, True):
            a, other = (drawn_people(self.space, rng, n // 2, stratified=each) for each in (stratified, False))
            differs = np.zeros(a.shape, dtype=bool)
            shares = rng.random((len(a), len(columns)))
            differs[:, columns] = shares < rng.choice([1 / len(columns), 0.4, 1.0], (len(a), 1))
            differs[np.arange(len(a)), rng.choice(columns, len(a))] = True
            for i in columns:  # categories differ for sure
                if isinstance(self.space.held[i], CategoricalDomain):
                    other[:, i] = _another(self.space.codes(i), a[:, i], rng)
            pairs.append(self._inside(a, np.where(differs, other, a)))
            counts.append(len(pairs[-1][0]))
        a, b = (np.concatenate(part) for part in zip(*pairs, strict=True))
        uniform, sliced = counts
        return a, b, f"{uniform:,} pairs drawn uniformly from the domain, {sliced:,} from equal slices of every column"

    def _mixed(self) -> tuple[FloatArray, FloatArray]:
        """Pairs put together from the values of several people."""
        rows, n = self.space.rows, _MIXED
        a = np.column_stack([rows[self.rng.integers(len(rows), size=n), i] for i in range(rows.shape[1])])
        b = a.copy()
        for column in self.exchanged:
            b[:, column] = rows[self.rng.integers(len(rows), size=n), column]
        return self._inside(a, b)

    def _inside(self, a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
        fine = self.space.holds(a) & self.space.holds(b)
        return a[fine], b[fine]

    def _climb(self, a: FloatArray, b: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """The best pair that is found from some pairs; the first of them, if nothing is better.

        From all of them at once: each step changes one column of one or both people.
        """
        inside = self.space.keeps_rules(a) & self.space.keeps_rules(b)
        a, b = a[inside].copy(), b[inside].copy()
        if not len(a):
            return -np.inf, np.empty(0), np.empty(0)
        values = self._ask(a, b)
        order = np.argsort(-values, kind="stable")
        a, b, values = a[order], b[order], values[order]
        for width in (None, 0.1, 0.01, 0.001):  # all over the range first, then closer and closer
            a, b, values = self._ascend(a, b, values, width)
        best = int(values.argmax())
        return float(values[best]), a[best], b[best]

    def _ask(self, a: FloatArray, b: FloatArray) -> FloatArray:
        self.n_queries -= len(a)
        return self.objective(a, b)

    def _ascend(
        self, a: FloatArray, b: FloatArray, values: FloatArray, width: float | None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        moving = np.ones(len(a), dtype=bool)
        while moving.any() and self.n_queries > 0:
            owners, new_a, new_b = self._moves(a, b, np.flatnonzero(moving), width)
            if not len(owners):
                break
            found = self._ask(new_a, new_b)
            before = values.copy()
            for i in np.argsort(found, kind="stable"):
                owner = owners[i]
                if found[i] > values[owner]:
                    values[owner], a[owner], b[owner] = found[i], new_a[i], new_b[i]
            moving = values > before
        return a, b, values

    def _moves(self, a: FloatArray, b: FloatArray, who: Any, width: float | None) -> tuple[Any, FloatArray, FloatArray]:
        """All single changes of some pairs."""
        owners: list[int] = []
        moved: list[FloatArray] = []
        for i in who:
            for column in range(a.shape[1]):
                sides = ([0], [1]) if column in self.exchanged else ([0, 1],)
                for value in self._candidates(column, width, a[i], b[i]):
                    for side in sides:
                        pair = np.array([a[i], b[i]])
                        pair[side, column] = value
                        owners.append(i)
                        moved.append(pair)
        new_a, new_b = np.array(moved).reshape(-1, 2, a.shape[1]).swapaxes(0, 1)
        fine = self.space.keeps_rules(new_a) & self.space.keeps_rules(new_b)
        return np.array(owners, dtype=np.int64)[fine], new_a[fine], new_b[fine]

    def _candidates(self, column: int, width: float | None, a: FloatArray, b: FloatArray) -> FloatArray:
        """Values to try: over the whole range without a width, and otherwise near those of the pair."""
        held = self.space.held[column]
        if isinstance(held, CategoricalDomain):
            return self.space.codes(column) if width is None else np.empty(0)
        if width is None:
            return spread_numbers(self.space, column, _CANDIDATES)
        reach = width * (held.high - held.low)
        near = np.concatenate([row[column] + reach * self.rng.uniform(-1, 1, 2) for row in (a, b)])
        near = np.clip(near[~np.isnan(near)], held.low, held.high)
        return np.unique(held.nearest(near))


def shares_of_ranges(rng: np.random.Generator, n: int, n_columns: int, *, stratified: bool) -> FloatArray:
    """Places within the ranges of columns: uniform, or one in each of `n` equal slices of every column."""
    shares = rng.random((n, n_columns))
    if stratified:
        slices = np.tile(np.arange(n)[:, None], (1, n_columns))
        shares = (rng.permuted(slices, axis=0) + shares) / n
    return np.minimum(shares, np.nextafter(1.0, 0.0))


def drawn_people(space: InputSpace, rng: np.random.Generator, n: int, *, stratified: bool) -> FloatArray:
    """Encoded people from all over the domain; they may break its rules."""
    shares = shares_of_ranges(rng, n, len(space.held), stratified=stratified)
    rows = np.empty_like(shares)
    for i, held in enumerate(space.held):
        if isinstance(held, CategoricalDomain):
            codes = space.codes(i)
            rows[:, i] = codes[np.floor(shares[:, i] * len(codes)).astype(np.int64)]
        else:
            rows[:, i] = held.at_shares(shares[:, i])
            if held.blank:
                rows[rng.random(n) < BLANKS, i] = np.nan
    return rows


def _another(codes: FloatArray, own: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Another of the codes for everybody, a blank among them; the same where there is only one."""
    same = (own[:, None] == codes) | (np.isnan(own)[:, None] & np.isnan(codes))
    steps = rng.integers(1, len(codes), len(own)) if len(codes) > 1 else 0
    return np.asarray(codes[(same.argmax(axis=1) + steps) % len(codes)])
