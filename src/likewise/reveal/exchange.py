"""The effect of single columns on the outputs of a model, by exchanging their values between people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.ask import Ask
from likewise.exceptions import InvalidInputError
from likewise.pairs.model_outputs import asked_outputs
from likewise.pairs.points import Points, row_hashes
from likewise.reveal.active_set import ROUNDING, PeopleInMemory

MAX_EXCHANGED = 2000
"""People whose values are exchanged."""

_MAX_VALUES = 16  # largest number of distinct values of a column that are all tried
_QUANTILES = np.linspace(0, 1, 7)
_LEAST_GAP = 0.5  # standard deviations between a number and the one it is exchanged for


@dataclass(frozen=True)
class Exchanges:
    """The smallest weights that explain exchanged people, and the rows that need them.

    Attributes
    ----------
    weights : ndarray of shape (n_weights,)
        In units of the outputs, as in the linear program; 0 where exchanging the column changes nothing.
    rows : ndarray of shape (n_weights, 2)
        A person, and the person whose value is taken; -1 where there are none.
    names : list of str
        Column of each weight.
    n_tried : ndarray of shape (n_weights,)
        How many people with an exchanged value each weight was looked for in.
    n_asked, n_people : int
        People whose values were exchanged, and distinct people.
    """

    weights: FloatArray
    rows: IntArray
    names: list[str]
    n_tried: IntArray
    n_asked: int
    n_people: int

    def notes(self) -> list[str]:
        """Notes on columns whose exchange changed nothing, and on effects that may have been missed on other people."""
        unused = np.flatnonzero((self.n_tried > 0) & (self.weights == 0))
        tried = ", ".join(f"{self.names[i]!r} ({self.n_tried[i]:,} exchanges)" for i in unused)
        found = [f"Exchanging a value between people changed no output: {tried}."] if len(unused) else []
        if self.n_asked == self.n_people:
            return found
        return [
            *found,
            f"Columns were exchanged for {self.n_asked:,} of {self.n_people:,} distinct people: effects "
            "on the others may have been missed.",
        ]


def exchange_columns(
    model: Any, X: Any, everybody: PeopleInMemory, p: float, output_range: Any, columns: Iterable[int]
) -> Exchanges:
    """Exchange each of some columns of people for values of others, and compare them with themselves.

    Such a pair differs in one column, so it is a lower limit on one weight: ``w_i >= (difference / gap)^p``.
    Categories, and numbers with few distinct values, are exchanged for all of them; other numbers for quantiles at
    least half a standard deviation away, since a jump of the model over a tiny gap would need a huge weight; and
    numbers for missing ones, if there are any.
    """
    points, first, shapes, unit = everybody.template, everybody.everyone.rows, everybody.shapes, everybody.unit
    ask = Ask.of(model, X, points.people.encoder)
    hashes = np.broadcast_to(row_hashes(points.X[first].T), len(first))
    chosen = first[np.argsort(hashes, kind="stable")[:MAX_EXCHANGED]]
    weights = np.zeros(shapes.n_weights)
    rows, n_tried = np.full((len(weights), 2), -1, dtype=np.int64), np.zeros(len(weights), dtype=np.int64)
    for i in columns:
        # The metric takes spellings of a category for one; the model may not.
        spelled = np.array([row for rows in ask.merged(i) for row in rows], dtype=np.int64)
        donors = np.append(_donors(points, i, first), spelled)
        people, given = np.repeat(chosen, len(donors)), np.tile(donors, len(chosen))
        differs = _far_apart(points, i, people, given) | np.isin(given, spelled)
        people, given = people[differs], given[differs]
        if not len(people):
            continue
        needed = _differences(ask, i, people, given, output_range, unit) - ROUNDING
        moved = points.X[people].copy()
        moved[:, points.column_of == i] = points.X[given][:, points.column_of == i]
        gaps = shapes.gaps(points.X[people], moved)
        _check_covered(points, i, people, given, gaps, needed, unit)
        for place in np.flatnonzero(gaps.any(axis=0)):
            gap = gaps[:, place]
            slopes = np.divide(needed, gap, out=np.zeros(len(gap)), where=(gap > 0) & (needed > 0))
            worst, n_tried[place] = int(slopes.argmax()), np.count_nonzero(gap > 0)
            if slopes[worst] > 0:
                weights[place], rows[place] = slopes[worst] ** p, (people[worst], given[worst])
    for within, across in shapes.within.items():
        if weights[across] < weights[within]:
            weights[across], rows[across] = weights[within], rows[within]
    names = [points.name(i) for i in (*range(len(points.kinds)), *shapes.within.values())]
    return Exchanges(weights, rows, names, n_tried, len(chosen), len(first))


def _check_covered(
    points: Points, i: int, people: IntArray, given: IntArray, gaps: FloatArray, needed: FloatArray, unit: float
) -> None:
    """Raise if outputs differ between categories that are declared to be equal."""
    equal = np.flatnonzero(~gaps.any(axis=1) & (needed > 1e-9))
    if len(equal):
        a, b = (points.people.table.iloc[int(rows[equal[0]]), i] for rows in (people, given))
        declared = points.people.rows[people[equal[0]], i] != points.people.rows[given[equal[0]], i]
        which, cure = "spellings of one category leave", "Write them in one way, and fit the model to that"
        if declared:
            which, cure = "groups and distances leave", "Declare them further apart"
        raise InvalidInputError(
            f"{which} no metric: {a!r} and {b!r} of {points.name(i)!r} are at distance 0, and "
            f"outputs differ by {unit * needed[equal[0]]:.3g} between row {people[equal[0]]} and the same with {b!r}. "
            f"{cure}, or pass exchange=False to compare the given people only."
        )


def _donors(points: Points, i: int, first: IntArray) -> IntArray:
    """Rows whose values of a column are taken."""
    values = points.people.rows[first, i]
    distinct, where, count = np.unique(values, return_index=True, return_counts=True, equal_nan=True)
    if len(distinct) > _MAX_VALUES:
        if points.people.encoder.is_number[i]:
            known = np.flatnonzero(~np.isnan(distinct))
            kept = known[np.rint(_QUANTILES * (len(known) - 1)).astype(int)]
            kept = np.append(kept, np.flatnonzero(np.isnan(distinct)))
        else:
            kept = np.argsort(-count, kind="stable")[:_MAX_VALUES]
        where = where[np.sort(kept)]
    return np.asarray(first[where])


def _far_apart(points: Points, i: int, people: IntArray, given: IntArray) -> Any:
    """Which people have another value than the one given: of many numbers, one at least `_LEAST_GAP` away."""
    values = points.people.rows[:, i]
    a, b, least = values[people], values[given], 0.0
    if points.people.encoder.is_number[i] and len(np.unique(values)) > _MAX_VALUES:
        least = _LEAST_GAP * float(np.nanstd(values))
    return (np.isnan(a) != np.isnan(b)) | ((a != b) & (np.abs(a - b) >= least))  # comparisons with NaN are false


def _differences(ask: Ask, i: int, rows: IntArray, given: IntArray, output_range: Any, unit: float) -> FloatArray:
    """Differences of outputs between people and their copies with a column exchanged, in units of the outputs."""
    distinct, place = np.unique(rows, return_inverse=True)
    taken, donors = np.append(distinct, rows), np.append(distinct, given)  # the people themselves keep their values
    outputs, _ = asked_outputs(ask, output_range, exchanged=(i, taken, donors))
    outputs = outputs / unit
    return np.asarray(np.abs(outputs[len(distinct) :] - outputs[: len(distinct)][place]).sum(axis=1))
