"""Where people can be who are not in the data: what each column can hold, and whom to start from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likewise._typing import BoolArray, FloatArray
from likewise.exceptions import InvalidInputError
from likewise.metrics.base import Metric
from likewise.metrics.columns import UNSEEN, CategoricalColumn, NumericColumn
from likewise.metrics.encoders import Encoder, People, spread

_MOST_STARTS = 2**16
_MOST_LANDMARKS = 4096  # per column
_BEYOND = 0.25  # of the range of the data, on both sides
_FARTHEST = 1e6  # ranges of the data
_SMALLEST = 10.0**-12  # move, as a share of the range; the next number of floating point comes besides


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """What each column can hold.

    Attributes
    ----------
    coding : Coding
    starts : ndarray of shape (n_starts, n_columns)
        Coded people from whom a search starts.
    low, high : ndarray of shape (n_columns,)
        Range of the numbers.
    scales : ndarray of shape (n_columns,)
        Distance per unit of a number, or between two categories; 0 for what must not matter. Of a metric without
        weights, 1 for the range of the data.
    p : float
    landmarks : tuple of ndarray
        Per column of numbers, values at which a model may turn, ascending.
    choices : tuple of ndarray
        Per column that holds none but listed values, these: codes of categories, or numbers. Empty for others.
    gappy : ndarray of bool, shape (n_columns,)
        Numbers that may be missing.
    with_tables : bool
        Whether the model is asked about tables, not about numbers.
    refused : tuple of str
        What the model would not answer, in words.
    """

    encoder: Encoder
    starts: FloatArray
    low: FloatArray
    high: FloatArray
    scales: FloatArray
    p: float
    landmarks: tuple[FloatArray, ...]
    choices: tuple[FloatArray, ...]
    gappy: BoolArray
    with_tables: bool
    refused: tuple[str, ...] = ()

    @property
    def free(self) -> BoolArray:
        """Columns that hold any number."""
        return np.array([not len(values) for values in self.choices])

    @property
    def hidden(self) -> BoolArray:
        """Columns that must not matter."""
        return np.asarray(self.scales == 0)

    @property
    def exchangeable(self) -> BoolArray:
        """Columns that can change at once: categories, numbers that may be missing, and what must not matter."""
        return np.asarray(~self.free | self.gappy | self.hidden)

    @property
    def span(self) -> FloatArray:
        """Width of the range of the numbers; 1 where there is none."""
        return np.where(self.high > self.low, self.high - self.low, 1.0)

    @property
    def unit(self) -> FloatArray:
        """How far a number moves at distance 1, within reason."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.where(self.hidden, self.span, np.minimum(1 / self.scales, _FARTHEST * self.span))

    def table(self, rows: FloatArray) -> Any:
        """People as a model takes them; a category that was not seen is a value that does not occur in the coding."""
        columns = getattr(self.encoder, "columns", None)
        if columns is None:
            return self.encoder.decode(rows)
        known = np.where(self.encoder.is_number | (rows != UNSEEN), rows, 0.0)
        table = self.encoder.decode(known)
        for i, column in enumerate(columns):
            unseen = rows[:, i] == UNSEEN
            if isinstance(column, CategoricalColumn) and unseen.any():
                values = table[column.name].astype(object)
                values[unseen] = stranger(column)
                table[column.name] = values
        return table

    def people(self, rows: FloatArray) -> People:
        """Coded people, with the table that a model takes, if it does."""
        return People(rows, self.encoder, self.table(rows) if self.with_tables else None)

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """People to start from: half as they are, a quarter put together from several, a quarter from anywhere."""
        rows = self.starts[np.resize(rng.permutation(len(self.starts)), n)]
        mixed, anywhere = n // 2, n - n // 4
        for i in range(rows.shape[1]):
            own = rng.integers(len(self.starts), size=n - mixed)
            rows[mixed:, i] = self.starts[own, i]
            if len(self.choices[i]):
                rows[anywhere:, i] = rng.choice(self.choices[i], n - anywhere)
            else:
                room = _BEYOND * (self.high[i] - self.low[i])
                rows[anywhere:, i] = rng.uniform(self.low[i] - room, self.high[i] + room, n - anywhere)
        return rows

    def lengths(self, rng: np.random.Generator, n: int) -> FloatArray:
        """How far to move in each column, shape (n, n_columns): at all scales, one for each person.

        A share of the range of the data, or of a distance of 1, whichever is drawn.
        """
        by_range = rng.random((n, 1)) < 0.5
        return np.where(by_range, self.span, self.unit) * 10.0 ** rng.uniform(np.log10(_SMALLEST), 0.3, (n, 1))

    def moved(self, rng: np.random.Generator, rows: FloatArray, lengths: FloatArray) -> FloatArray:
        """People moved in some columns: numbers by up to their length or to the next one, others to anything."""
        n, d = rows.shape
        chosen = rng.random((n, d)) < rng.choice([1 / d, 0.4, 1.0], (n, 1))
        chosen[np.arange(n), rng.integers(d, size=n)] = True
        steps = rng.uniform(-1, 1, (n, d)) * lengths
        away = np.where(rng.random((n, 1)) < 0.05, np.nextafter(rows, rows + np.sign(steps)), rows + steps)
        out = np.where(chosen & self.free, away, rows)
        rarely = chosen & (rng.random((n, d)) < rng.choice([0.0, 0.1, 0.5], (n, 1)))
        return self.exchanged(rng, out, rarely)

    def exchanged(self, rng: np.random.Generator, rows: FloatArray, where: BoolArray) -> FloatArray:
        """People with other values where asked: anything listed; a number that may be missing, there or not."""
        out = rows.copy()
        for i in range(rows.shape[1]):
            here = np.flatnonzero(where[:, i])
            if not len(here):
                continue
            if len(self.choices[i]):
                out[here, i] = rng.choice(self.choices[i], len(here))
            elif self.gappy[i]:
                absent = np.isnan(out[here, i])
                number = rng.uniform(self.low[i], self.high[i], len(here))
                out[here, i] = np.where(absent, number, np.nan)
        return out

    def accepted_by(self, ask: Callable[[People], Any]) -> SearchSpace:
        """Leave out what a model refuses to answer: unseen categories, missing numbers, numbers off a grid."""
        choices, gappy = list(self.choices), self.gappy.copy()
        refused: list[str] = []

        def refuses(column: int, value: float) -> bool:
            row = self.starts[:1].copy()
            row[0, column] = value
            try:
                ask(self.people(row))
            except Exception:  # of somebody else's model, anything
                return True
            return False

        for i, name in enumerate(self.encoder.names):
            if UNSEEN in choices[i] and not self.encoder.is_number[i] and refuses(i, UNSEEN):
                choices[i] = choices[i][choices[i] != UNSEEN]
                refused.append(f"unseen values of {name}")
            if gappy[i] and refuses(i, np.nan):
                gappy[i] = False
                refused.append(f"missing values of {name}")
            odd = float(np.nextafter((self.low[i] + 2 * self.high[i]) / 3, np.inf))
            if not len(choices[i]) and refuses(i, odd):
                present = self.starts[~np.isnan(self.starts[:, i]), i]
                choices[i] = np.unique(present)
                refused.append(f"values of {name} that are not in X")
        return replace(self, choices=tuple(choices), gappy=gappy, refused=tuple(refused))


def survey(
    metric: Metric, encoder: Encoder, rows: FloatArray | None, known: list[FloatArray], *, with_tables: bool = True
) -> SearchSpace:
    """Find out what columns can hold.

    Parameters
    ----------
    metric : Metric
    coding : Coding
    rows : ndarray of shape (n_samples, n_columns), or None
        Coded people.
    known : list of ndarray
        Numbers at which the model may turn, per column; without people, their range is that of the columns.
    with_tables : bool
        Whether the model is asked about tables.
    """
    if rows is not None and not len(rows):
        raise InvalidInputError("X must hold at least one person to start from; got none.")
    numbers, d = encoder.is_number, len(encoder.names)
    weights = metric.known_weights(encoder)
    choices = tuple(_listed(encoder, i) for i in range(d))
    landmarks = tuple(_places(known[i], None if rows is None else rows[:, i]) for i in range(d))
    low, high = np.zeros(d), np.ones(d)
    for i in np.flatnonzero(numbers):
        present = landmarks[i] if rows is None else rows[~np.isnan(rows[:, i]), i]
        if len(present):
            low[i], high[i] = present.min(), present.max()
        elif rows is None and not len(choices[i]) and (weights is None or weights.matters[i]):
            raise InvalidInputError(
                f"X must be given: the model does not say where the numbers of {encoder.names[i]!r} lie. Pass people "
                "like those it was fitted on."
            )
    span = np.where(high > low, high - low, 1.0)
    if weights is None:
        scales, gappy, p = 1 / span, np.zeros(d, dtype=bool), 2.0
        if rows is not None:
            gappy = numbers & np.isnan(rows).any(axis=0)
    else:
        scales, gappy, p = weights.scales, numbers & ~np.isnan(weights.missing), weights.p
    free = np.array([not len(values) for values in choices])
    found = SearchSpace(encoder, np.zeros((1, d)), low, high, scales, p, landmarks, choices, gappy & free, with_tables)
    if rows is None:
        rows = _strangers(found)
    return replace(found, starts=rows[spread(len(rows), _MOST_STARTS)])


def stranger(column: CategoricalColumn) -> Any:
    """A value that a column of categories did not hold when its coding was learned; None (missing) if it held both.

    Examples
    --------
    >>> import pandas as pd
    >>> stranger(CategoricalColumn.learn(pd.Series(["north", "south"], name="region")))
    'another'
    >>> stranger(CategoricalColumn.learn(pd.Series([1, 2], name="code")))
    3
    """
    levels = {*column.levels, *(column.categories or ())}
    if levels <= {True, False}:
        return next((value for value in (True, False) if value not in levels), None)
    if all(isinstance(value, (int, float)) for value in levels):
        return max(levels, default=0) + 1
    name = "another"
    while name in levels:
        name += "?"
    return name


def _strangers(terrain: SearchSpace) -> FloatArray:
    """People for a search without any: at landmarks and between them; the same in every search."""
    rng, n = np.random.default_rng(0), 1024
    rows = rng.uniform(terrain.low, terrain.high, (n, len(terrain.low)))
    for i, (listed, marks) in enumerate(zip(terrain.choices, terrain.landmarks, strict=True)):
        if len(listed):
            rows[:, i] = rng.choice(listed, n)
        elif len(marks):
            rows[: n // 2, i] = rng.choice(marks, n // 2)
    return rng.permuted(rows, axis=0)


def _listed(encoder: Encoder, i: int) -> FloatArray:
    """Codes that a column can hold; none for plain numbers."""
    columns = getattr(encoder, "columns", None)
    if columns is None:
        return np.empty(0)
    column = columns[i]
    if isinstance(column, NumericColumn):
        return np.empty(0) if column.categories is None else np.arange(float(len(column.categories)))
    return np.append(np.arange(float(len(column.levels) + column.has_missing)), UNSEEN)


def _places(known: FloatArray, values: FloatArray | None) -> FloatArray:
    """What the model says, and the values of people with the middles between them: thresholds of trees lie there."""
    if values is None:
        return np.unique(known)[spread(len(np.unique(known)), _MOST_LANDMARKS)]
    present = np.unique(values[~np.isnan(values)])
    own = np.concatenate([present, (present[1:] + present[:-1]) / 2])
    own = np.sort(own)[spread(len(own), _MOST_LANDMARKS // 2)]
    known = np.unique(known)[spread(len(np.unique(known)), _MOST_LANDMARKS // 2)]
    return np.unique(np.concatenate([own, known]))
