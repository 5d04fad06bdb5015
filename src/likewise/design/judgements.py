"""Metrics learned from judgements about pairs of people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from likewise._typing import BoolArray, FloatArray, IntArray
from likewise._validation import one_of, positive
from likewise.design.judgements_likelihood import ComparisonLikelihood
from likewise.design.judgements_polytope import AGREED, Polytope, find_conflicts
from likewise.design.judgements_table import AT_MOST, Answers, WeightSpace, read_answers
from likewise.exceptions import InvalidInputError
from likewise.metrics.base import Metric

_CLOSE = 1e-9  # strict weights are this much smaller, for rounding


@dataclass(frozen=True, eq=False, repr=False)
class JudgedMetric:
    """Result of `learn_metric`.

    Attributes
    ----------
    metric : WeightedLp or TableMetric
        Of the metrics that fit the answers, the one closest to `start`, or to the middle of the ranges (the lower end
        of those that no answer limits); with noisy comparisons, the most likely one.
    ranges : DataFrame
        One row per weight: ``column``, ``kind`` (numeric, categorical, missing), ``weight``, ``low`` and ``high``, and
        ``n_answers``, the answers about people who differ there. What no answer limits reaches from 0 to infinity, or
        to 1 for categories and missing values.
    conflicts : DataFrame
        Answers that cannot all hold, with their judges. Within each ``conflict``, leaving out any one answer makes the
        others agree. ``slack`` is by how many points `metric` has to miss an answer. Empty if all answers agree.
    judges : dict from str to JudgedMetric
        What each judge's answers say by themselves, if there are several judges.
    noise : float or None
        Of the comparisons, in points, for ``comparisons="logistic"``: a difference of distances of this size is judged
        correctly in 73 of 100 answers.
    """

    metric: Metric
    ranges: pd.DataFrame
    conflicts: pd.DataFrame
    n_answers: int
    noise: float | None = None
    judges: Mapping[str, JudgedMetric] = field(default_factory=dict)
    _space: Any = None
    _strict: FloatArray | None = None

    def strict(self) -> Metric:
        """The metric of the lower end of every range, to enforce.

        It is nowhere larger than any metric that fits the answers, so a model within it is within all of these. Every
        answer "at most" holds, also those in conflict with others. With noisy comparisons the ends are lower
        than in `ranges`: with the given confidence, all of them hold at once (for many answers; `docs/theory.md` §18).
        A column for which no answer allows a difference gets the weight 0.
        """
        return self._space.metric(self._strict)  # type: ignore[no-any-return]

    def minimum_over_judges(self) -> Metric:
        """The smallest weight of all judges' metrics, column by column: it satisfies every judge's upper limits.

        A judge's metric satisfies that judge's answers "at most", except those in conflict with other answers of the
        same judge.
        """
        if not self.judges:
            return self.metric
        weights = np.min([judged.ranges["weight"].to_numpy() for judged in self.judges.values()], axis=0)
        return self._space.metric(weights)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        n = 0 if self.conflicts.empty else self.conflicts["conflict"].nunique()
        return f"JudgedMetric({self.metric!r}, n_answers={self.n_answers}, n_conflicts={n})"


def learn_metric(
    judgements: Any,
    X: Any,
    start: Metric | None = None,
    *,
    categorical: Sequence[Any] | None = None,
    comparisons: Literal["exact", "logistic"] = "exact",
    confidence: float = 0.95,
) -> JudgedMetric:
    """Learn a metric with p = 1 from judgements about pairs of people.

    With p = 1, ``D(a, b) = sum_i w_i |a_i - b_i|`` is linear in the weights, so each answer is a half-space, and the
    metrics that satisfy all answers form a polytope (`docs/theory.md` §18).

    Parameters
    ----------
    judgements : DataFrame
        One answer per row, in the columns ``judge``, ``kind``, ``a``, ``b``, ``c``, ``d``, ``points``, ``time``,
        ``comment`` and ``hidden``; only ``kind``, ``a`` and ``b`` are always needed. An answer says nothing of columns
        that were not shown, which ``hidden`` lists, as in ``["race", "sex"]``. People are named by the index of `X`, or
        by row numbers from 0. Kinds are ``at_most`` and ``at_least`` (outputs of a and b may differ by at most, or
        should be allowed to differ by at least, ``points`` hundredths of the output range), ``closer`` (a and b are
        more alike than c and d), and ``skip``.
    X : DataFrame or array-like of shape (n_samples, n_features)
        The people that the answers are about.
    start : WeightedLp or TableMetric with p = 1, optional
        Columns of weight 0 stay at 0, and the order, groups and distances of categories are kept: one weight is learned
        for a column with any of them. Where answers leave a choice, the result is as close to it as possible, in
        relative changes. Without any answer in points it also gives the mean distance, as comparisons fix ratios only.
    categorical : sequence of column names, optional
        Without `start`, columns that are categories; by default those that do not hold numbers.
    comparisons : {"exact", "logistic"}, default="exact"
        Whether comparisons are conditions, as answers in points are, or noisy: right with a probability of
        ``1 / (1 + exp(-(D(c, d) - D(a, b)) / noise))``, with one noise for the panel.
    confidence : float, default=0.95
        Of the ranges, for noisy comparisons.

    Returns
    -------
    JudgedMetric

    Examples
    --------
    >>> people = pd.DataFrame({"age": [30, 40, 30], "job": ["x", "x", "y"]})
    >>> answers = pd.DataFrame({"kind": ["at_least", "at_most", "at_most"], "a": 0, "b": [1, 1, 2]})
    >>> answers["points"] = [4, 6, 8]
    >>> result = learn_metric(answers, people)
    >>> result.metric
    TableMetric(numeric: age=0.005; mismatch: job=0.04; p=1)
    >>> result.ranges[["column", "low", "high"]].round(4)
      column    low   high
    0    age  0.004  0.006
    1    job  0.000  0.080
    >>> result.strict()
    TableMetric(numeric: age=0.004; mismatch: job=0; p=1)
    """
    one_of("exact", "logistic").check("comparisons", comparisons)
    positive(below=1.0).check("confidence", confidence)
    space = WeightSpace.of(X, start, categorical)
    answers = read_answers(judgements, space, repeated=comparisons == "logistic")
    if not len(answers):
        raise InvalidInputError("judgements must hold at least one answer; got none.")
    panel = _learn(answers, space, space.start, None, comparisons, confidence)
    names = list(dict.fromkeys(answers.judges))
    if len(names) < 2:
        return panel
    weights = panel.ranges["weight"].to_numpy()
    mean = float(space.means @ weights)
    judges = {
        name: _learn(answers.take(answers.judges == name), space, weights, mean, comparisons, confidence)
        for name in names
    }
    return JudgedMetric(**{**vars(panel), "judges": judges})


def _learn(
    answers: Answers,
    space: WeightSpace,
    start: FloatArray | None,
    mean: float | None,
    comparisons: str,
    confidence: float,
) -> JudgedMetric:
    """The metric of some answers; `mean` is the mean distance if these are all comparisons."""
    exact = answers if comparisons == "exact" else answers.take(answers.in_points)
    mean_points = None
    if not answers.in_points.any():
        if start is None:
            raise InvalidInputError(
                "judgements must hold an answer in points, at_most or at_least, or start must be given: comparisons "
                "alone fix ratios of weights, not their scale."
            )
        mean_points = 100 * (float(space.means @ start) if mean is None else mean)
    polytope = _polytope(exact, space, mean_points)
    groups = list(find_conflicts(polytope))
    settled = _settled(polytope, groups)
    sure = _polytope(exact.take(settled), space, mean_points)
    low, high = sure.bounds()
    unlimited = np.isinf(high) | ~(answers.rows != 0).any(axis=0)  # what no answer is about has no middle either
    target = np.where(unlimited, low, (low + high) / 2) if start is None else start * space.unit
    noise, strict = None, low
    if comparisons == "logistic" and len(exact) < len(answers):
        noisy = answers.take(~answers.in_points)
        fitted = ComparisonLikelihood(-noisy.rows / space.sizes, sure, target)
        low, high = fitted.bounds(confidence)
        weights, noise, strict = fitted.weights, fitted.noise, fitted.lower_bounds(confidence)
    else:
        weights = np.clip(polytope.nearest(target), low, high)
    if groups:
        limited = exact.take(settled | (exact.kinds == AT_MOST))
        strict = np.minimum(strict, _polytope(limited, space, mean_points, hard=True).bounds()[0])
    weights, low, high, strict = (u / space.unit for u in (weights, low, high, strict * (1 - _CLOSE)))
    most = exact.take((exact.kinds == AT_MOST) & (exact.limits > 0))
    strict = strict * (most.limits / np.maximum(most.rows @ strict, 1e-300)).min(initial=1.0)  # against rounding
    ranges = pd.DataFrame(
        {
            "column": list(space.names),
            "kind": list(space.kinds),
            "weight": weights,
            "low": low,
            "high": high,
            "n_answers": (answers.rows != 0).sum(axis=0),
        }
    )
    return JudgedMetric(
        space.metric(weights), ranges, _conflicts(groups, polytope.slack, exact), len(answers), noise, {}, space, strict
    )


def _settled(polytope: Polytope, groups: list[IntArray]) -> BoolArray:
    """Answers without conflicts; those in conflict limit no range until people have settled it."""
    settled = polytope.slack <= AGREED
    for group in groups:
        settled[group] = False
    return settled


def settled_polytope(answers: Answers, space: WeightSpace) -> Polytope:
    """The metrics that satisfy all answers but those in conflict, in points per mean difference."""
    polytope = _polytope(answers, space, None)
    return _polytope(answers.take(_settled(polytope, list(find_conflicts(polytope)))), space, None)


def _polytope(answers: Answers, space: WeightSpace, mean_points: float | None, *, hard: bool = False) -> Polytope:
    """The weights that satisfy answers, in points per mean difference; with `hard`, every "at most" holds."""
    return Polytope(
        answers.rows / space.sizes,
        100 * answers.limits,
        space.upper * space.unit,
        total=None if mean_points is None else (space.means / space.sizes, mean_points),
        hard=np.asarray(answers.kinds == AT_MOST) if hard else None,
    )


def _conflicts(groups: list[IntArray], slack: FloatArray, answers: Answers) -> pd.DataFrame:
    """The answers of each conflict, by their row in the table of judgements."""
    parts = [answers.table.iloc[:0].assign(conflict=[], answer=[], slack=[])]
    for number, chosen in enumerate(groups, start=1):
        part = answers.table.iloc[chosen]
        parts.append(part.assign(conflict=number, answer=part.index, slack=slack[chosen].round(6)))
    names = ["conflict", "answer", "judge", "kind", "a", "b", "c", "d", "points", "hidden", "slack"]
    return pd.concat(parts[1:] or parts, ignore_index=True)[names]
