"""The next question to a judge: the pair of people whose distance the answers so far determine least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise._subsample import fixed_sample
from likewise._typing import FloatArray, IntArray
from likewise._validation import check_count, check_positive
from likewise.design.judgements import settled_polytope
from likewise.design.judgements_table import (
    CLOSER,
    WeightSpace,
    canonical_person,
    checked_columns,
    empty_judgements,
    read_answers,
)
from likewise.metrics.base import Metric

_MAX_PEOPLE = 300  # people whose pairs are considered
_MAX_PROGRAMS = 50


@dataclass(frozen=True, eq=False)
class Question:
    """A pair of people to ask a judge about.

    Attributes
    ----------
    a, b : hashable
        Index labels of the two people in X, or their rows.
    low, high : float
        Smallest and largest distance that the answers so far allow, in points; at most 100.
    differences : DataFrame
        What the two have in the columns where they differ: ``column``, ``a`` and ``b``.
    """

    a: Any
    b: Any
    low: float
    high: float
    differences: pd.DataFrame


def next_question(
    judgements: Any,
    X: Any,
    start: Metric | None = None,
    *,
    categorical: Sequence[Any] | None = None,
    max_columns: int = 3,
    precision: float = 1.0,
) -> Question | None:
    """Choose the pair of people whose distance is least determined by a judge's answers.

    Among pairs of people in `X` who differ in few columns, the one with the largest difference between the largest and
    the smallest distance, cut at 100 points, over all metrics that satisfy the answers. Answers in conflict with others
    are left out of this. Pairs already asked about are not repeated.

    Parameters
    ----------
    judgements : DataFrame or None
        Answers so far, as in `learn_metric`; None or an empty table for the first question.
    X, start, categorical
        As in `learn_metric`. Of more than 300 people, a fixed random sample is considered.
    max_columns : int, default=3
        Columns in which the two people may differ; more only if all pairs differ in more.
    precision : float, default=1.0
        In points.

    Returns
    -------
    Question or None
        None if every such distance is determined up to `precision`, or was asked about.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [30, 40, 30], "job": ["x", "x", "y"]})
    >>> answers = pd.DataFrame({"kind": ["at_least", "at_most"], "a": 0, "b": 1, "points": [4, 6]})
    >>> question = next_question(answers, people)
    >>> question.a, question.b, round(question.low), round(question.high)
    (0, 2, 0, 100)
    >>> question.differences
      column  a  b
    0    job  x  y
    """
    check_count("max_columns", max_columns)
    check_positive("precision", precision)
    table = empty_judgements() if judgements is None else judgements
    space = WeightSpace.of(X, start, categorical)
    answers = read_answers(table, space)
    polytope = settled_polytope(answers, space)
    low, high = polytope.bounds()
    pairs = _new_pairs(space, _asked(table), max_columns)
    features = space.features(pairs[:, 0], pairs[:, 1]) / space.sizes
    with np.errstate(invalid="ignore"):
        most = np.nan_to_num(features * high, nan=0.0, posinf=np.inf).sum(axis=1)
    # The box of the ranges contains the polytope, so no pair is less determined than this.
    widest = _width(features @ low, most)
    best: tuple[float, float, int] | None = None
    order = np.lexsort((np.abs(features - 1).sum(axis=1), (features > 0).sum(axis=1), -widest.round(6)))
    for k in order[:_MAX_PROGRAMS]:
        if widest[k] <= precision or (best is not None and widest[k] <= best[1] - best[0] + 1e-6):
            break
        least, largest = (min(100.0, end) for end in polytope.extent(features[k]))
        if largest - least > precision and (best is None or largest - least > best[1] - best[0] + 1e-6):
            best = least, largest, int(k)
    if best is None:
        return None
    a, b = pairs[best[2]].tolist()
    return Question(space.labels[a], space.labels[b], best[0], best[1], _differences(space, a, b))


def _width(low: FloatArray, high: FloatArray) -> FloatArray:
    return np.asarray(np.minimum(high, 100.0) - np.minimum(low, 100.0))


def _asked(table: Any) -> set[frozenset[str]]:
    """Pairs that were answered or skipped."""
    rows = checked_columns(table)
    rows = rows[rows["kind"] != CLOSER]
    return {frozenset(map(canonical_person, pair)) for pair in zip(rows["a"], rows["b"], strict=True)}


def _new_pairs(space: WeightSpace, asked: set[frozenset[str]], max_columns: int) -> IntArray:
    """Pairs of different people who differ in few columns, without those asked about."""
    chosen = fixed_sample(len(space.people), _MAX_PEOPLE)
    i, j = np.triu_indices(len(chosen), k=1)
    pairs = np.column_stack([chosen[i], chosen[j]])
    if asked:
        names = {p: canonical_person(space.labels[p]) for p in chosen.tolist()}
        new = [frozenset((names[a], names[b])) not in asked for a, b in pairs.tolist()]
        pairs = pairs[np.array(new, dtype=bool)]
    count = (space.features(pairs[:, 0], pairs[:, 1]) > 0).sum(axis=1)
    pairs, count = pairs[count > 0], count[count > 0]
    return np.asarray(pairs[count <= max(max_columns, count.min(initial=len(space)))])


def _differences(space: WeightSpace, a: int, b: int) -> pd.DataFrame:
    """What two people have in the columns where they differ."""
    different = space.features(np.array([a]), np.array([b]))[0] > 0
    names = list(dict.fromkeys(name for name, differs in zip(space.names, different, strict=True) if differs))
    shown = space.people.table
    if not isinstance(shown, pd.DataFrame):
        shown = pd.DataFrame(shown, columns=space.people.encoder.names)
    return pd.DataFrame({"column": names, "a": list(shown.iloc[a][names]), "b": list(shown.iloc[b][names])})
