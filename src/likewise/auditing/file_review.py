"""Comparative file review: denied people for whom an approved person is no better qualified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise._typing import BoolArray, FloatArray
from likewise._validation import NON_NEGATIVE, check_count, short_repr
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.metrics.base import Metric, check_metric
from likewise.metrics.columns import is_numeric
from likewise.verification.domain import frame_of

_AT_ONCE = 2**20  # pairs that are compared at once
_DIRECTIONS = ("higher", "lower", "same")


@dataclass(frozen=True, eq=False, repr=False)
class FileReview:
    """Denied people with comparators: approved people who are no better qualified.

    Attributes
    ----------
    files : DataFrame
        One row per denied person with a comparator, those with most of them first: ``row`` (position in X),
        ``n_comparators``, ``comparator`` (the closest one) and ``distance`` to it.
    pairs : DataFrame
        The closest comparators of each: ``row``, ``comparator``, ``distance``, and ``differs``, all columns in which
        the two differ.
    n_denied, n_approved : int
        People who were decided each way.
    n_pairs : int
        All pairs of a denied person and a comparator.
    rule : str
        What makes an approved person a comparator.
    """

    files: pd.DataFrame
    pairs: pd.DataFrame
    n_denied: int
    n_approved: int
    n_pairs: int
    rule: str

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

    whichever is given, or both. All pairs of a denied and an approved person are compared.

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
    denied, granted = _sides(decisions, approved, len(frame))
    if better is None and threshold is None:
        raise InvalidInputError("Give better, the directions in which columns qualify, or metric and threshold.")
    if threshold is not None and metric is None:
        raise InvalidInputError(f"threshold must come with a metric; got {float(threshold):g} alone.")
    n_comparators = check_count("n_comparators", n_comparators)
    people = None if metric is None else check_metric(metric).encode_rows(X)
    size = max(1, _AT_ONCE // max(1, len(granted)))
    counts, nearest = np.zeros(len(denied), dtype=np.int64), []
    for start in range(0, len(denied), size):
        block = denied[start : start + size]
        fine = np.ones((len(block), len(granted)), dtype=bool)
        if better is not None:
            fine &= _no_better(frame, better, block, granted)
        distances = np.zeros(fine.shape)
        if people is not None and metric is not None:
            a, b = np.repeat(block, len(granted)), np.tile(granted, len(block))
            distances = metric.between(people.take(a), people.take(b)).reshape(fine.shape)
            fine &= distances <= (np.inf if threshold is None else threshold)
        counts[start : start + size] = fine.sum(axis=1)
        for i in np.flatnonzero(fine.any(axis=1)):
            order = np.flatnonzero(fine[i])
            order = order[np.argsort(distances[i, order], kind="stable")][:n_comparators]
            nearest.append(
                (int(block[i]), int(counts[start + i]), granted[order].tolist(), distances[i, order].tolist())
            )
    nearest.sort(key=lambda each: (-each[1], each[3][0], each[0]))
    files = pd.DataFrame(
        [(row, n, others[0], distances[0]) for row, n, others, distances in nearest],
        columns=["row", "n_comparators", "comparator", "distance"],
    )
    pairs = pd.DataFrame(
        [
            (row, other, distance, _differs(frame, row, other))
            for row, _, others, distances in nearest
            for other, distance in zip(others, distances, strict=True)
        ],
        columns=["row", "comparator", "distance", "differs"],
    )
    rule = [] if better is None else ["who is no better in " + ", ".join(map(str, better))]
    rule += [] if threshold is None else [f"within a distance of {threshold:g}"]
    return FileReview(files, pairs, len(denied), len(granted), int(counts.sum()), " and ".join(rule))


def _sides(decisions: Any, approved: Any, n: int) -> tuple[Any, Any]:
    """Positions of denied and of approved people."""
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
    return np.flatnonzero(~yes), np.flatnonzero(yes)


def _no_better(frame: pd.DataFrame, better: Mapping[Any, str], denied: Any, granted: Any) -> BoolArray:
    """Whether approved people are no better than denied ones, shape (n_denied, n_granted)."""
    fine = np.ones((len(denied), len(granted)), dtype=bool)
    for name, direction in better.items():
        if name not in frame or not isinstance(direction, str) or direction not in _DIRECTIONS:
            raise InvalidInputError(
                f"better must map columns of X, {short_repr(list(frame))}, to one of {_DIRECTIONS}; got "
                f"{short_repr(direction)} for {name!r}."
            )
        column = frame[name]
        if direction == "same":
            codes = pd.factorize(column)[0]
            a, b = codes[denied][:, None], codes[granted][None]
            fine &= (a == b) & (a >= 0)
            continue
        if not is_numeric(column):
            raise InvalidInputError(f"{name!r} must hold numbers to be higher or lower. Use 'same' for categories.")
        values: FloatArray = column.to_numpy(np.float64, na_value=np.nan)
        a, b = values[denied][:, None], values[granted][None]
        fine &= b <= a if direction == "higher" else b >= a  # False where one is missing
    return fine


def _differs(frame: pd.DataFrame, row: int, other: int) -> str:
    """All columns in which two people differ, with both values."""
    parts = []
    for name in frame:
        a, b = frame[name].iloc[row], frame[name].iloc[other]
        if a != b and not (pd.isna(a) and pd.isna(b)):
            parts.append(f"{name}: {a} / {b}")
    return ", ".join(parts)
