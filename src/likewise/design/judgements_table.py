"""Tables of judgements: their format, and their answers as linear conditions on the weights of a metric."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from likewise._typing import BoolArray, FloatArray, IntArray
from likewise._validation import short_repr
from likewise.exceptions import InvalidInputError
from likewise.kernel.columns import canonical_category
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import ArrayEncoder, People, as_frame
from likewise.metrics.base import Metric, check_metric
from likewise.metrics.table import TableMetric
from likewise.metrics.weighted_lp import WeightedLp
from likewise.reveal.empirical import read_people

AT_MOST, AT_LEAST, CLOSER, SKIP = KINDS = ("at_most", "at_least", "closer", "skip")
COLUMNS = ("judge", "kind", "a", "b", "c", "d", "points", "time", "comment", "hidden")
_PEOPLE = ("a", "b", "c", "d")
_ROUNDS = 8  # pairs per person in means over pairs
_KEPT = ("units", "order", "groups", "distances")  # of a metric to start from
_MIN_SIZE = 0.01  # rare categories do not spoil the scaling of a program


@dataclass(frozen=True, eq=False)
class WeightSpace:
    """The weights that answers can determine, for people and p = 1: a distance is ``features @ weights``.

    The order, groups and distances of categories in `start_metric` are kept: such a column has one weight to learn, and
    its feature is the share of that weight between two categories.

    Attributes
    ----------
    people : People
    labels : tuple
        Names of the people: the index of a table, or row numbers from 0.
    names, kinds : tuple
        Column of each weight, and "numeric", "categorical" or "missing".
    start : ndarray or None
        Weights to stay close to.
    start_metric : Metric or None
    start_weights : BoundMetric or None
    """

    people: People
    labels: tuple[Any, ...]
    names: tuple[Any, ...]
    kinds: tuple[str, ...]
    start: FloatArray | None
    start_metric: Metric | None
    start_weights: BoundMetric | None

    @classmethod
    def of(cls, X: Any, start: Metric | None, categorical: Sequence[Any] | None) -> WeightSpace:
        """Columns that differ between people, except those of weight 0 in `start`."""
        if start is None:
            people = read_people(X, categorical)
            given = None
        else:
            people, given = _read_within(check_metric(start), X)
        if len(people) < 2:
            raise InvalidInputError(f"X must hold at least two people; got {len(people)}.")
        held: list[tuple[Any, str, float]] = []  # column, kind and weight to stay close to
        for i, name in enumerate(people.encoder.names):
            column = people.rows[:, i]
            absent, seen = np.isnan(column), np.unique(column[~np.isnan(column)])
            own, blank = (np.nan, np.nan) if given is None else (given.weights[i], given.missing[i])
            if own != 0 and len(seen) > 1:
                held.append((name, "numeric" if people.encoder.is_number[i] else "categorical", own))
            if own != 0 and absent.any() and len(seen):
                held.append((name, "missing", blank))
        if not held:
            raise InvalidInputError("X must have a column in which people differ, with a positive weight in start.")
        names, kinds, values = zip(*held, strict=True)
        weights = None if given is None else np.array(values, dtype=np.float64)
        labels = tuple(X.index) if isinstance(X, pd.DataFrame) else tuple(range(len(people)))
        return cls(people, labels, names, kinds, weights, start, given)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def upper(self) -> FloatArray:
        """Limits of the weights: 1 for those of categories and blanks."""
        return np.where(np.array(self.kinds) == "numeric", np.inf, 1.0)

    @cached_property
    def means(self) -> FloatArray:
        """Mean of each feature over some pairs of people, with everybody in at least two of them."""
        rng, n = np.random.default_rng(0), len(self.people)
        order = rng.permutation(n)
        shifts = np.unique(rng.integers(1, n, size=_ROUNDS))
        return np.asarray(np.mean([self.features(order, np.roll(order, s)).mean(axis=0) for s in shifts], axis=0))

    @cached_property
    def sizes(self) -> FloatArray:
        """The same, with a least size that keeps programs well scaled."""
        least = np.where(np.isinf(self.upper), 1e-12 * self.means.max(), _MIN_SIZE)
        return np.maximum(self.means, least)

    @property
    def unit(self) -> FloatArray:
        """Points that each weight is worth for people who differ by the mean, per unit of weight."""
        return np.asarray(100 * self.sizes)

    def features(self, a: IntArray, b: IntArray) -> FloatArray:
        """Of pairs of people, by position: gaps of numbers, shares of categories, and 1 where one number is missing."""
        at, given = {name: i for i, name in enumerate(self.people.encoder.names)}, self.start_weights
        out = np.empty((len(a), len(self)))
        for k, (name, kind) in enumerate(zip(self.names, self.kinds, strict=True)):
            x, y = self.people.rows[a, at[name]], self.people.rows[b, at[name]]
            if kind == "numeric":
                out[:, k] = np.nan_to_num(np.abs(x - y))
            elif kind == "categorical":
                out[:, k] = x != y if given is None else given.category_gaps(at[name], x, y)
            else:
                out[:, k] = np.isnan(x) != np.isnan(y)
        return out

    def metric(self, weights: FloatArray) -> Metric:
        """The metric with these weights; other columns have weight 0."""
        given = {(kind, name): float(w) for kind, name, w in zip(self.kinds, self.names, weights, strict=True)}
        encoder = self.people.encoder
        if isinstance(encoder, ArrayEncoder):
            array = [given.get(("numeric", name), 0.0) for name in encoder.names]
            return WeightedLp(array, feature_names=encoder.labels)
        numbers = [name for name, number in zip(encoder.names, encoder.is_number, strict=True) if number]
        others = [name for name in encoder.names if name not in numbers]
        missing = {name: w for (kind, name), w in given.items() if kind == "missing"}
        numeric = {name: given.get(("numeric", name), 0.0) for name in numbers}
        categorical = {name: given.get(("categorical", name), 0.0) for name in others}
        reasons = {name: "not_judged" for name, weight in {**numeric, **categorical}.items() if not weight}
        start = self.start_metric
        if not isinstance(start, TableMetric):
            return TableMetric(numeric, categorical, missing=missing, zero_reasons=reasons)
        reasons = {name: each for name, each in reasons.items() if name not in start.hidden} | dict(start.zero_reasons)
        kept = {"zero_reasons": reasons, **{part: getattr(start, part) for part in _KEPT}}
        kept = {part: {n: each for n, each in of.items() if n in encoder.names} for part, of in kept.items()}
        return TableMetric(numeric, categorical, missing=missing, **kept)


def _read_within(start: Metric, X: Any) -> tuple[People, Any]:
    given, people = start.read(X)
    given.refuse_special("learn_metric")
    if not given.has_parts or people.encoder.mixes_features:
        raise InvalidInputError(f"start must have a weight per column; got {short_repr(start)}.")
    if start.p != 1:
        raise InvalidInputError(
            f"start must have p = 1, where distances are linear in the weights; it has p = {start.p:g}. Use "
            "start.with_params(p=1)."
        )
    return people, given


@dataclass(frozen=True, eq=False)
class Answers:
    """Checked answers, each a condition ``rows @ weights <= limits`` with limits as distances.

    Attributes
    ----------
    table : DataFrame
        The answers as given, in the columns `COLUMNS`, without those that were skipped.
    kinds : ndarray of str
    judges : ndarray of str
    rows : ndarray of shape (n_answers, n_weights)
    limits : ndarray of shape (n_answers,)
    """

    table: pd.DataFrame
    kinds: Any
    judges: Any
    rows: FloatArray
    limits: FloatArray

    def __len__(self) -> int:
        return len(self.limits)

    def take(self, chosen: BoolArray) -> Answers:
        """Some of the answers."""
        return Answers(
            self.table[chosen], self.kinds[chosen], self.judges[chosen], self.rows[chosen], self.limits[chosen]
        )

    @property
    def in_points(self) -> BoolArray:
        """Which answers are in points; the others compare two pairs."""
        return np.asarray(self.kinds != CLOSER)


def empty_judgements() -> pd.DataFrame:
    """A table of judgements without answers."""
    return pd.DataFrame({name: pd.Series(dtype=object) for name in COLUMNS})


def read_answers(judgements: Any, space: WeightSpace, *, repeated: bool = False) -> Answers:
    """Check a table of judgements, and read its answers.

    A judge whose answers on the same pairs exclude one another is refused; with `repeated`, comparisons may differ.
    """
    table = checked_columns(judgements)
    kinds = table["kind"].map(lambda kind: str(kind).strip()).to_numpy(dtype=object)
    for i in np.flatnonzero(~np.isin(kinds, KINDS))[:1]:
        words = f"{', '.join(KINDS[:-1])} or {SKIP}"
        raise InvalidInputError(f"judgements: the kind of row {table.index[i]} must be {words}; got {kinds[i]!r}.")
    table, kinds = table[kinds != SKIP], kinds[kinds != SKIP]
    compares = kinds == CLOSER
    places = _places(table, compares, space.labels)
    points = _points(table, kinds)
    shown = np.array([[str(name) not in hidden for name in space.names] for hidden in map(_hidden, table["hidden"])])
    shown = shown.reshape(len(table), len(space))  # without answers, too
    first = shown * space.features(places[:, 0], places[:, 1])
    second = shown * space.features(np.where(compares, places[:, 2], 0), np.where(compares, places[:, 3], 0))
    signs = np.where(kinds == AT_LEAST, -1.0, 1.0)
    rows = signs[:, None] * first - np.where(compares[:, None], second, 0.0)
    limits = np.where(compares, 0.0, signs * points / 100)
    judges = table["judge"].map(lambda name: "" if pd.isna(name) else str(name)).to_numpy(dtype=object)
    answers = Answers(table, kinds, judges, rows, limits)
    _refuse_contradictions(answers, places, repeated=repeated)
    return answers


def checked_columns(judgements: Any) -> pd.DataFrame:
    """A table of judgements with all its columns, in their order."""
    table = as_frame(judgements, "judgements")
    absent = [name for name in ("kind", "a", "b") if name not in table.columns]
    if absent:
        raise InvalidInputError(
            f"judgements must have the column {absent[0]!r}; it has {list(map(str, table.columns))}. Its columns are "
            f"{', '.join(COLUMNS)}."
        )
    table = table.copy()
    for name in COLUMNS:
        if name not in table.columns:
            table[name] = None
    return table[list(COLUMNS)]


def _hidden(cell: Any) -> set[str]:
    """Columns that were not shown with a question: the answer says nothing of them."""
    if not isinstance(cell, str) or not cell.strip():
        return set()
    try:
        return set(map(str, json.loads(cell)))
    except (TypeError, ValueError):
        raise InvalidInputError(
            f'judgements: hidden must list the columns that were not shown, as in ["race", "sex"]; got {cell!r}.'
        ) from None


def hidden_cell(names: Sequence[Any]) -> str:
    """The columns that are not shown with a question, as a table of judgements has them."""
    return json.dumps([str(name) for name in names]) if names else ""


def canonical_person(name: Any) -> str:
    """The text by which people are found: a number in one file may be text in another."""
    return canonical_category(name.strip() if isinstance(name, str) else name)


def _places(table: pd.DataFrame, compares: BoolArray, labels: Sequence[Any]) -> IntArray:
    """Positions of the people of each answer; -1 where there is none."""
    names = list(map(canonical_person, labels))
    at, times = {name: i for i, name in enumerate(names)}, Counter(names)
    places = np.full((len(table), 4), -1)
    for k, name in enumerate(_PEOPLE):
        for r, (value, blank) in enumerate(zip(table[name], _is_blank(table[name]), strict=True)):
            row, needed = table.index[r], k < 2 or compares[r]
            if blank != (not needed):
                rule = "name a person" if needed else "be empty, as only comparisons have a second pair"
                raise InvalidInputError(f"judgements: {name} of row {row} must {rule}; got {short_repr(value)}.")
            if blank:
                continue
            label = canonical_person(value)
            if times[label] != 1:
                why = "occurs more than once in" if label in times else "is not in"
                raise InvalidInputError(
                    f"judgements: {name} of row {row} is the person {label!r}, who {why} X. People are named by the "
                    "index of X, or by row numbers from 0 without one."
                ).in_commands(
                    f"--judgements: {name} in line {row} is the person {label!r}, who {why} the table. Its people are "
                    "numbered from 1; give --id COLUMN if the answers name them by a column."
                )
            places[r, k] = at[label]
    same = np.flatnonzero((places[:, 0] == places[:, 1]) | ((places[:, 2] == places[:, 3]) & compares))
    if len(same):
        raise InvalidInputError(f"judgements: row {table.index[same[0]]} must be about two people; it names one twice.")
    return places


def _points(table: pd.DataFrame, kinds: Any) -> FloatArray:
    compares, given = kinds == CLOSER, table["points"].astype(object)
    truth = given.map(lambda value: isinstance(value, bool))
    points = pd.to_numeric(given.where(~truth), errors="coerce").to_numpy(np.float64, na_value=np.nan)
    fits = np.where(compares, _is_blank(given), (points >= 0) & (points <= 100))
    for r in np.flatnonzero(~fits)[:1]:
        rule = "be empty, as a comparison has none" if compares[r] else "be a number from 0 to 100"
        raise InvalidInputError(
            f"judgements: points of row {table.index[r]} must {rule}; got {short_repr(given.iloc[r])}."
        )
    return np.where(compares, 0.0, points)


def _is_blank(cells: pd.Series[Any]) -> BoolArray:
    return np.array([pd.isna(cell) or not str(cell).strip() for cell in cells], dtype=bool)


def _refuse_contradictions(answers: Answers, places: IntArray, *, repeated: bool) -> None:
    """Raise if a judge's answers about the same pair, or the same two pairs, exclude each other."""
    seen: dict[Any, int] = {}  # the strictest answer of each judge and kind about a pair, or two of them
    for r, (kind, judge) in enumerate(zip(answers.kinds, answers.judges, strict=True)):
        first, second = tuple(sorted(places[r, :2].tolist())), tuple(sorted(places[r, 2:].tolist()))
        opposite = {AT_LEAST: AT_MOST, AT_MOST: AT_LEAST, CLOSER: CLOSER}[kind]
        pairs, turned = ((first, second), (second, first)) if kind == CLOSER else (first, first)
        other = seen.get((judge, opposite, turned))
        # Limits are t for "at most" and -t for "at least".
        if other is not None and (answers.limits[other] + answers.limits[r] < 0 or (kind == CLOSER and not repeated)):
            _refuse(answers, other, r)
        known = seen.setdefault((judge, kind, pairs), r)
        if answers.limits[r] < answers.limits[known]:
            seen[judge, kind, pairs] = r


def _refuse(answers: Answers, one: int, other: int) -> None:
    raise InvalidInputError(
        f"judgements: {describe_judge(answers.judges[other])} contradicts themselves in rows "
        f"{answers.table.index[one]} and {answers.table.index[other]}: {describe_answer(answers.table.iloc[one])}, and "
        f"{describe_answer(answers.table.iloc[other])}. Ask again, and keep one of them."
    )


def describe_judge(name: str) -> str:
    """A judge in a sentence."""
    return f"judge {name!r}" if name else "the judge"


def describe_answer(answer: Any) -> str:
    """An answer in words."""
    if answer["kind"] == CLOSER:
        return f"{answer['a']} and {answer['b']} are more alike than {answer['c']} and {answer['d']}"
    words = str(answer["kind"]).replace("_", " ")
    return f"{answer['a']} and {answer['b']} are {words} {float(answer['points']):g} points apart"
