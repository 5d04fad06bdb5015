"""Comparative file review: denied people for whom an approved person is no better qualified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from likewise._typing import BoolArray, FloatArray, IntArray
from likewise._validation import NON_NEGATIVE, check_count, short_repr
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.kernel.columns import is_numeric
from likewise.kernel.schema import People
from likewise.metrics.base import Metric, check_metric
from likewise.pairs.points import CODE, Points
from likewise.verification.domain import frame_of

_AT_ONCE = 2**20  # pairs that are compared at once, without a search
_DIRECTIONS = ("higher", "lower", "same")


@dataclass(frozen=True, eq=False, repr=False)
class FileReview:
    """Denied people with comparators: approved people who are no better qualified.

    Attributes
    ----------
    files : DataFrame
        One row per denied person with a comparator, those with most of them first: ``row`` (position in X),
        ``n_comparators``, ``comparator`` (the closest one; without a metric, the first of the table) and ``distance``
        to it, NaN without a metric.
    pairs : DataFrame
        The closest comparators of each: ``row``, ``comparator``, ``distance``, and ``differs``, all columns in which
        the two differ, those of weight 0 first.
    n_denied, n_approved : int
        People who were decided each way.
    n_pairs : int
        All pairs of a denied person and a comparator.
    rule : str
        What makes an approved person a comparator.
    better : mapping from column to "higher", "lower" or "same"
        The directions that were given.
    decisions : tuple
        The unfavourable and the favourable decision.
    """

    files: pd.DataFrame
    pairs: pd.DataFrame
    n_denied: int
    n_approved: int
    n_pairs: int
    rule: str
    better: Mapping[Any, str]
    decisions: tuple[Any, Any]

    @property
    def headline(self) -> str:
        """What was found, in a line."""
        return (
            f"{len(self.files):,} of {self.n_denied:,} denied people have a comparator, an approved person {self.rule};"
            f" {self.n_pairs:,} pairs in all"
        )

    def __repr__(self) -> str:
        return f"<FileReview: {self.headline}>"


def review_files(
    X: Any,
    decisions: Any,
    *,
    approved: Any = None,
    better: Mapping[Any, str] | None = None,
    metric: Metric | None = None,
    threshold: float | None = None,
    n_comparators: int = 5,
) -> FileReview:
    """Find denied people for whom an approved person exists who is no better qualified.

    As examiners of fair lending compare files by hand. A comparator of a denied person is an approved person who

    - is no better in any column of `better` (dominance), and
    - is within `threshold` of them under `metric`,

    whichever is given, or both. The result is that of comparing all pairs of a denied and an approved person; a tree of
    boxes makes it fast, unless the metric is a function.

    Parameters
    ----------
    X : DataFrame or array-like of shape (n_samples, n_features)
    decisions : array-like of shape (n_samples,)
        Two values.
    approved : object, optional
        The value of `decisions` that is the favourable one; the larger of the two if not given.
    better : mapping from column to "higher", "lower" or "same", optional
        Which values of a column qualify better. Under "same" only equal values compare. Missing values compare with
        nothing.
    metric : Metric, optional
        Also orders comparators: the closest comes first.
    threshold : float, optional
        Largest distance; needs `metric`.
    n_comparators : int, default=5
        How many comparators to list for each person.

    Returns
    -------
    FileReview

    Examples
    --------
    >>> X = pd.DataFrame({"income": [50, 40, 60], "debt": [10, 12, 5]})
    >>> found = review_files(X, ["denied", "granted", "granted"], better={"income": "higher", "debt": "lower"})
    >>> found.files[["row", "n_comparators", "comparator"]]
       row  n_comparators  comparator
    0    0              1           1
    """
    frame = frame_of(X)
    if better is not None and not isinstance(better, Mapping):
        raise InvalidTypeError(
            f"better must map columns to 'higher', 'lower' or 'same', such as {{'income': 'higher'}}; got "
            f"{short_repr(better)}."
        )
    if threshold is not None:
        NON_NEGATIVE.check("threshold", threshold)
    denied, granted, both = _sides(decisions, approved, len(frame))
    if better is None and threshold is None:
        raise InvalidInputError("Give better, the directions in which columns qualify, or metric and threshold.")
    if threshold is not None and metric is None:
        raise InvalidInputError(f"threshold must come with a metric; got {float(threshold):g} alone.")
    n_comparators = check_count("n_comparators", n_comparators)
    n_denied, n_granted = len(denied), len(granted)
    limits = _Limits.of(frame, better or {})
    denied, granted = denied[limits.complete[denied]], granted[limits.complete[granted]]
    metric = None if metric is None else check_metric(metric)
    found = _comparators(metric, X, limits, denied, granted, np.inf if threshold is None else threshold, n_comparators)
    order = np.lexsort((denied, found.distances[:, 0], -found.counts))
    order = order[found.counts[order] > 0]
    rows = denied[order]
    files = pd.DataFrame(
        {
            "row": rows,
            "n_comparators": found.counts[order],
            "comparator": granted[found.nearest[order, 0]],
            "distance": found.distances[order, 0],
        }
    )
    listed = found.nearest[order] >= 0
    pairs = pd.DataFrame(
        {
            "row": np.repeat(rows, listed.sum(axis=1)),
            "comparator": granted[found.nearest[order][listed]],
            "distance": found.distances[order][listed],
        }
    )
    hidden = [] if metric is None else metric.hidden
    if metric is None:
        files["distance"] = pairs["distance"] = np.nan
    pairs["differs"] = _differs(frame, pairs["row"], pairs["comparator"], hidden)
    n_pairs, rule = int(found.counts.sum()), _rule(better or {}, threshold)
    return FileReview(files, pairs, n_denied, n_granted, n_pairs, rule, dict(better or {}), both)


def _rule(better: Mapping[Any, str], threshold: float | None) -> str:
    """What makes an approved person a comparator, in words."""
    ordered = ", ".join(str(name) for name, direction in better.items() if direction != "same")
    equal = ", ".join(str(name) for name, direction in better.items() if direction == "same")
    parts = [f"no better in {ordered}"] * bool(ordered) + [f"the same in {equal}"] * bool(equal)
    parts += [] if threshold is None else [f"within a distance of {threshold:g}"]
    return "who is " + " and ".join(parts)


def _sides(decisions: Any, approved: Any, n: int) -> tuple[Any, Any, tuple[Any, Any]]:
    """Positions of denied and of approved people, and the two decisions."""
    try:
        values = pd.Series(decisions).reset_index(drop=True)
        values.map(hash)
    except (TypeError, ValueError):
        raise InvalidTypeError(f"decisions must be one value for each person; got {short_repr(decisions)}.") from None
    kinds = sorted(values.dropna().unique().tolist(), key=lambda value: (str(type(value)), value))
    if len(values) != n or values.isna().any() or len(kinds) != 2:
        raise InvalidInputError(
            f"decisions must be one of two values for each of {n:,} people, none missing; got {len(values):,} with "
            f"{short_repr(kinds[:5])}."
        )
    wanted = kinds[-1] if approved is None else approved
    if not pd.api.types.is_scalar(wanted) or wanted is pd.NA or wanted not in kinds:
        raise InvalidInputError(f"approved must be one of the decisions, {kinds}; got {short_repr(approved)}.")
    yes = (values == wanted).to_numpy()
    other = next(kind for kind in kinds if kind != wanted)
    return np.flatnonzero(~yes), np.flatnonzero(yes), (other, wanted)


@dataclass(frozen=True, eq=False)
class _Limits:
    """What a comparator must not exceed: numbers, of which less is no better; and codes that must be equal.

    `complete` are the people of whom all of it is known.
    """

    numbers: FloatArray
    codes: FloatArray
    complete: BoolArray

    @classmethod
    def of(cls, frame: pd.DataFrame, better: Mapping[Any, str]) -> _Limits:
        numbers, codes = [], []
        for name, direction in better.items():
            if name not in frame or not isinstance(direction, str) or direction not in _DIRECTIONS:
                raise InvalidInputError(
                    f"better must map columns of X, {short_repr(list(frame))}, to one of {_DIRECTIONS}; got "
                    f"{short_repr(direction)} for {name!r}."
                )
            column = frame[name]
            if direction == "same":
                found = pd.factorize(column)[0].astype(np.float64)
                codes.append(np.where(found < 0, np.nan, found))
                continue
            if not is_numeric(column):
                raise InvalidInputError(f"{name!r} must hold numbers to be higher or lower. Use 'same' for categories.")
            values: FloatArray = column.to_numpy(np.float64, na_value=np.nan)
            numbers.append(values if direction == "higher" else -values)
        both = [np.column_stack([np.empty((len(frame), 0)), *parts]) for parts in (numbers, codes)]
        return cls(both[0], both[1], ~np.isnan(np.column_stack(both)).any(axis=1))

    def no_better(self, a: Any, b: Any) -> BoolArray:
        """Whether b are no better than a, shape (n_a, n_b)."""
        lower = (self.numbers[b][None] <= self.numbers[a][:, None]).all(axis=2)
        return np.asarray(lower & (self.codes[b][None] == self.codes[a][:, None]).all(axis=2))


class _Found(NamedTuple):
    """Comparators of each denied person: how many, the closest as positions among the approved, and their distances."""

    counts: IntArray
    nearest: IntArray
    distances: FloatArray


def _comparators(
    metric: Metric | None, X: Any, limits: _Limits, denied: Any, granted: Any, threshold: float, n: int
) -> _Found:
    """Approved people who are close to each denied person and no better."""
    from likewise.pairs.comparators import Qualifications, find_comparators

    people = None if metric is None else metric.encode_rows(X)
    weights = None if people is None or metric is None else metric.known_weights(people.encoder)
    scanned = metric is not None and (weights is None or weights.splits is None)
    if len(denied) * len(granted) <= _AT_ONCE or scanned:
        return _every_pair(metric, people, limits, denied, granted, threshold, n)
    points, kinds, scales, p = np.empty((len(limits.complete), 0)), np.empty(0, np.int8), np.empty(0), 1.0
    if people is not None and weights is not None:
        held = Points.among(people, np.array(people.missing(), dtype=np.int64), weights)
        scales, p = held.scales(weights), weights.p
        used = np.flatnonzero(scales > 0)
        used = used[np.argsort(held.kinds[used] == CODE, kind="stable")]
        points, kinds, scales = held.X[:, used], held.kinds[used], scales[used]
    everybody = Qualifications(np.ascontiguousarray(points), limits.numbers, limits.codes)
    return _Found(*find_comparators(everybody.take(denied), everybody.take(granted), kinds, scales, p, threshold, n))


def _every_pair(
    metric: Metric | None, people: People | None, limits: _Limits, denied: Any, granted: Any, threshold: float, n: int
) -> _Found:
    """The same for few pairs, a function, or a matrix of categories without `splits`: every pair is compared."""
    counts = np.zeros(len(denied), np.int64)
    nearest, kept = np.full((len(denied), n), -1), np.full((len(denied), n), np.inf)
    size = max(1, _AT_ONCE // max(1, len(granted)))
    for start in range(0, len(denied), size):
        block = denied[start : start + size]
        fine = limits.no_better(block, granted)
        distances = np.zeros(fine.shape)
        if metric is not None and people is not None:
            a, b = np.repeat(block, len(granted)), np.tile(granted, len(block))
            distances = metric.between(people.take(a), people.take(b)).reshape(fine.shape)
        fine &= distances <= threshold
        counts[start : start + size] = fine.sum(axis=1)
        for i in np.flatnonzero(fine.any(axis=1)):
            order = np.flatnonzero(fine[i])
            order = order[np.argsort(distances[i, order], kind="stable")][:n]
            nearest[start + i, : len(order)], kept[start + i, : len(order)] = order, distances[i, order]
    return _Found(counts, nearest, kept)


def _differs(frame: pd.DataFrame, rows: Any, others: Any, hidden: Sequence[Any]) -> list[str]:
    """All columns in which two people differ, with both values; those that must not matter first."""
    parts: list[list[str]] = [[] for _ in range(len(rows))]
    for name in [*(name for name in hidden if name in frame), *(name for name in frame if name not in set(hidden))]:
        values, blank = frame[name].to_numpy(dtype=object), frame[name].isna().to_numpy()
        a, b = values[rows], values[others]
        for i in np.flatnonzero((a != b) & ~(blank[rows] & blank[others])):
            parts[i].append(f"{name}: {a[i]} / {b[i]}")
    return [", ".join(each) for each in parts]
