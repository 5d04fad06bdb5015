"""Who is favoured, or has the higher score, in the pairs that exceed a metric: per person, group and population."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise._favourable import Direction, given_or_stored
from likewise._fit_validation import seed_from
from likewise._subsample import fixed_sample
from likewise._typing import FloatArray, IntArray
from likewise._validation import check_count, check_names
from likewise.auditing.audit import check_tolerance
from likewise.auditing.intervals import pair_rate_interval
from likewise.auditing.matched_pairs import MatchedPairs, features_of, holm, matched_pairs
from likewise.exceptions import InvalidInputError
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import People
from likewise.metrics.base import Metric, check_metric
from likewise.pairs.model_outputs import OutputLabels, outputs_of, power_of_two_unit
from likewise.pairs.points import Points, splits_of

_AT_ONCE = 2**20  # pairs that are compared at once, without a search

MOST_GROUPS = 50  # values of a column by which people are compared


@dataclass(frozen=True, eq=False, repr=False)
class GroupAudit:
    """Who is favoured, or has the higher score, in the pairs that exceed a metric.

    If it is not known which score is favourable, ``n_favoured`` and ``n_disfavoured`` are called ``n_higher`` and
    ``n_lower``, and count higher and lower scores.

    Attributes
    ----------
    people : DataFrame
        One row per person: ``row`` (position in X), ``score``, ``n_comparators`` (people whose score differs from
        theirs by more than the distance), and of these ``n_favoured`` with a better score and ``n_disfavoured`` with a
        worse one. Those with most favoured comparators come first.
    groups : DataFrame
        For each column and value: of the violating pairs between this value and any other, ``n_pairs``, in how many the
        person with this value has the better score (``n_favoured``), and the ``share``, which other columns may
        explain. So everybody is also matched with one other person who is alike in the columns that count:
        ``n_alike`` of these pairs exceed the metric and differ in the value, with a ``share_alike``. ``p_value`` is
        the chance of one at least as far from what is expected if scores had nothing to do with the value but for
        these columns, adjusted for the number of values and columns (Holm).
    rate : float
        Share of pairs of people that exceed the metric.
    rate_interval : tuple of float
        95% confidence interval of that share in the population that X was drawn from. It holds for every number of
        people, also where a few of them carry all pairs.
    n_samples : int
        People who were compared, with all others of them.
    n_violations : int
    tolerance : float
    metric : Metric
    favourable : str
        What is favourable, in words; empty if it is not known.
    """

    people: pd.DataFrame
    groups: pd.DataFrame
    rate: float
    rate_interval: tuple[float, float]
    n_samples: int
    n_violations: int
    tolerance: float
    metric: Metric
    favourable: str

    def __repr__(self) -> str:
        low, high = self.rate_interval
        return (
            f"<GroupAudit: {self.rate:.3%} of pairs exceed the metric ({low:.3%} to {high:.3%} in the population), "
            f"{len(self.groups)} groups>"
        )


def audit_groups(
    model: Any,
    X: Any,
    metric: Metric,
    columns: Sequence[Any] | None = None,
    *,
    predictions: Any = None,
    output_range: tuple[float, float] | None = None,
    tolerance: float | None = None,
    favourable: Any = None,
    max_people: int = 20_000,
    n_permutations: int = 9999,
    random_state: Any = 0,
) -> GroupAudit:
    """Find who has the better scores in the pairs of people whose outputs differ by more than their distance.

    The test is about people who are alike. Whoever goes by income, which goes with sex, favours men in most pairs and
    need not look at sex. So each person is matched with one other by the columns of positive weight, and in the matched
    pairs that exceed the metric the values of the two are exchanged at the odds that these columns leave
    (`docs/theory.md` §15). These odds are estimated: a model that jumps where the groups part, in a way that
    neither a logistic regression nor a small tree finds, can still have small p-values without looking at the column.
    Columns of weight 0 explain nothing. `effect` exchanges the column and nothing else.

    Parameters
    ----------
    model, X, metric, predictions, output_range, tolerance
        As for `audit`; `X` in memory, and outputs that are one number: two classes, or regression.
    columns : sequence of column names, optional
        Columns of `X` whose values are compared; those of weight 0 if not given.
    favourable : class label, "high" or "low", optional
        What is better for a person: a class, or an end of the score ("low" for a risk). None is known only if the
        classes are two known words, such as approved and denied; otherwise it
        is said who has the higher score.
    max_people : int, default=20_000
        Of more people, a fixed sample is compared, and the figures are about the sample.
    n_permutations : int, default=9999
        Random exchanges of the test; no p-value is below 1 / (1 + n_permutations).
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    GroupAudit

    Examples
    --------
    >>> from likewise import TableMetric
    >>> X = pd.DataFrame({"age": [30, 30, 31, 31], "sex": ["f", "m", "f", "m"]})
    >>> metric, risks = TableMetric({"age": 0.01}, {"sex": 0}), [0.2, 0.6, 0.2, 0.6]
    >>> found = audit_groups(None, X, metric, predictions=risks, favourable="low")
    >>> found.groups[["column", "value", "n_pairs", "n_favoured"]]
      column value  n_pairs  n_favoured
    0    sex     f        4           4
    1    sex     m        4           0
    """
    metric = check_metric(metric)
    n_permutations = check_count("n_permutations", n_permutations)
    rng = np.random.default_rng(seed_from(random_state))
    bound, people = metric.read(X)
    if len(people) < 2:
        raise InvalidInputError(f"X must hold at least two people; got {len(people)}.")
    outputs, probable = outputs_of(model, X, people, predictions, output_range)
    if outputs.shape[1] != 1:
        raise InvalidInputError(
            f"audit_groups needs one score per person to say who is favoured; got {outputs.shape[1]} classes. Pass "
            "predictions= with the probability of one class."
        )
    chosen = fixed_sample(len(people), check_count("max_people", max_people, min_value=2))
    classes = OutputLabels.of(model, predictions, output_range, probable=probable).classes
    direction = Direction.of(given_or_stored(favourable, model), classes)
    people, scores = people.take(chosen), direction.gains(outputs[chosen])
    unit = 1.0 if probable or output_range is not None else float(np.ptp(scores)) or 1.0
    room = check_tolerance(tolerance, unit)
    below, above = _comparators(bound, people, scores, room)
    n, (better, worse) = len(scores), (f"n_{name}" for name in direction.names)
    counts = below + above
    columns_of_people = {"row": chosen, "score": outputs[chosen, 0], "n_comparators": counts}
    table = pd.DataFrame({**columns_of_people, better: above, worse: below})
    rate = float(counts.sum()) / (n * (n - 1))
    given = pd.DataFrame(people.table)
    names = metric.hidden if columns is None else check_names("columns", columns, list(given))

    def favoured(a: IntArray, b: IntArray) -> IntArray:
        gap = scores[a] - scores[b]
        exceeds = np.abs(gap) - bound.between(people.take(a), people.take(b)) > room
        return np.asarray(np.sign(gap) * exceeds, dtype=np.int64)

    counted = bound.matters if bound.has_parts else np.ones(people.rows.shape[1], dtype=bool)
    rows: list[tuple[Any, ...]] = []
    for name in [name for name in names if name in given]:
        where, values = pd.factorize(given[name], use_na_sentinel=False)
        if len(values) > MOST_GROUPS:
            raise InvalidInputError(f"columns must hold up to {MOST_GROUPS} values; {name!r} has {len(values)}.")
        known = list(people.encoder.names)
        known = known if name in known or len(known) != given.shape[1] else list(given)  # an array has no names
        features = features_of(people, counted & np.array([each != name for each in known]))
        matched = matched_pairs(where, len(values), features, favoured, n_permutations, rng)
        rows += _groups(name, where, values, bound, people, scores, room, (below, above), matched)
    head = ["column", "value", "n_people", "n_pairs", better, "share", "n_alike", "share_alike", "p_value"]
    return GroupAudit(
        table.sort_values([better, "n_comparators"], ascending=False, kind="stable", ignore_index=True),
        _adjusted(pd.DataFrame(rows, columns=head)),
        rate,
        pair_rate_interval(rate, n),
        n,
        int(counts.sum()) // 2,
        room,
        metric,
        direction.text,
    )


def _comparators(
    metric: BoundMetric, people: People, scores: FloatArray, tolerance: float
) -> tuple[IntArray, IntArray]:
    """For everybody, how many people exceed the distance with a lower and with a higher score."""
    from likewise.pairs.box_tree import box_tree_of
    from likewise.pairs.comparators import count_exceeding

    if len(people) ** 2 <= _AT_ONCE or splits_of(metric) is None:
        return _every_pair(metric, people, scores, tolerance)
    points = Points.of(people, metric)
    groups, unit = points.groups(scores[:, None]), power_of_two_unit(float(np.ptp(scores)))
    _, kinds, scales, p = points.columns_in(unit)
    outputs = scores[groups.first, None] / unit
    tree = box_tree_of(points.X[groups.first], outputs, scales, p, kinds, groups.count)
    below, above = count_exceeding(tree, tolerance / unit)
    return below[groups.of_row], above[groups.of_row]


def _every_pair(metric: BoundMetric, people: People, scores: FloatArray, tolerance: float) -> tuple[IntArray, IntArray]:
    """The same for few people, a function, or a matrix of categories without `splits`: every pair is compared."""
    n = len(people)
    below, above = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    size = max(1, _AT_ONCE // max(1, n))
    for start in range(0, n, size):
        block = np.arange(start, min(n, start + size))
        distances = metric.cross(people.take(block), people)
        gap = scores[None, :] - scores[block, None]
        exceeds = np.abs(gap) - distances > tolerance
        below[block], above[block] = (exceeds & (gap < 0)).sum(axis=1), (exceeds & (gap > 0)).sum(axis=1)
    return below, above


def _groups(
    name: Any,
    where: Any,
    values: Any,
    metric: BoundMetric,
    people: People,
    scores: FloatArray,
    tolerance: float,
    counts: tuple[IntArray, IntArray],
    matched: MatchedPairs,
) -> list[tuple[Any, ...]]:
    """Pairs between each value and all others, and who is favoured in them.

    Within a group every pair that one member wins another loses. So the wins of a group against all others are those of
    its members against everybody, but for the pairs within.
    """
    below, above = counts
    rows = []
    for k in np.argsort([str(value) for value in values], kind="stable"):
        inside = where == k
        within = _comparators(metric, people.take(np.flatnonzero(inside)), scores[inside], tolerance)[0].sum()
        wins, losses = int(below[inside].sum() - within), int(above[inside].sum() - within)
        n_pairs, n_alike = wins + losses, int(matched.n_pairs[k])
        share = wins / n_pairs if n_pairs else np.nan
        share_alike = matched.n_favoured[k] / n_alike if n_alike else np.nan
        row = (name, str(values[k]), int(inside.sum()), n_pairs, wins, share, n_alike, share_alike)
        rows.append((*row, matched.p_values[k]))
    return rows


def _adjusted(table: pd.DataFrame) -> pd.DataFrame:
    """P-values adjusted for their number. Of two values each is favoured where the other is not: that is one test."""
    sizes = table.groupby("column", sort=False)["value"].transform("size")
    repeated = (sizes == 2) & table.duplicated("column")
    p_values = pd.Series(np.nan, table.index)
    p_values[~repeated] = holm(table.loc[~repeated, "p_value"].to_numpy())
    return table.assign(p_value=p_values.ffill())
