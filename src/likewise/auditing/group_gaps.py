"""What a metric says about groups: the gap of their mean scores, the largest that it allows, and proxies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise._favourable import Direction, given_or_stored
from likewise._parallel import threads_for
from likewise._subsample import fixed_sample
from likewise._typing import BoolArray, FloatArray
from likewise._validation import check_names
from likewise.auditing.ceiling import largest_confidence
from likewise.exceptions import InvalidInputError
from likewise.kernel.schema import People
from likewise.metrics.base import Metric, check_metric
from likewise.pairs.model_outputs import OutputLabels, outputs_of
from likewise.pairs.points import Points

_MOST_VALUES = 20
_MOST_MEASURED = 5000  # people on whom proxies are measured
_FOLDS = 5
_SHUFFLES = 3


@dataclass(frozen=True, eq=False, repr=False)
class GroupGaps:
    """Gaps between groups, and the largest that a metric allows.

    Attributes
    ----------
    gaps : DataFrame
        For each value of the column against all others: ``n`` people, the ``mean`` of their outputs, ``others`` that of
        the others, the ``gap`` between them, ``allowed``, the largest gap that any model within the metric has between
        these people, and ``shuffled``, the same after the values are shuffled (mean of three). The last column is
        ``favoured``, the value or ``"others"`` (``higher``, if it is not known which is favourable).
    proxies : DataFrame
        For each other column, and for all together: ``auc``, how well it tells the values of the protected column apart
        (cross-validated area under the ROC curve, 0.5 is not at all; the average over values against others).
    labels : OutputLabels
        What the outputs are: `labels.written` shows a gap in points of a probability, or in the unit of the scores.
    """

    gaps: pd.DataFrame
    proxies: pd.DataFrame
    labels: OutputLabels

    @property
    def headline(self) -> str:
        """What the gap shows that comes closest to its limit, or exceeds it most."""
        row = self.gaps.iloc[int(np.argmax(self.gaps["gap"].abs() - self.gaps["allowed"]))]
        gap, allowed, shuffled = (self.labels.written(abs(row[key]), 3) for key in ("gap", "allowed", "shuffled"))
        text = f"mean outputs of {row['value']} and of all others differ by {gap}, "
        if abs(row["gap"]) > row["allowed"]:
            return f"{text}more than the {allowed} of any model within the metric"
        return (
            f"{text}those of models within the metric by up to {allowed} ({shuffled} if the values are shuffled): this "
            "gap alone shows neither that the model exceeds the metric nor that it keeps to it"
        )

    def __repr__(self) -> str:
        return f"<GroupGaps: {self.headline}>"


def group_gaps(
    model: Any,
    X: Any,
    metric: Metric,
    column: Any,
    *,
    predictions: Any = None,
    output_range: tuple[float, float] | None = None,
    favourable: Any = None,
) -> GroupGaps:
    """Compare the mean outputs of groups with the largest gap that a metric allows.

    If outputs differ by at most ``min(1, D)`` for all pairs, the means of two groups differ by at most the transport
    distance between the groups: the least mean distance over all ways to match one group with the other (Kantorovich
    and Rubinstein). People who are alike under the metric match at no cost, so that a gap beyond it cannot be explained
    by the columns that the metric counts.

    A gap up to it is no evidence that a model keeps to the metric. The limit is about the people given: as no two are
    quite alike, a model within the metric can follow the single people of each group, and its limit is above 0 for
    groups that are drawn by lot. `shuffled` says how much. Where it is nearly as large as `allowed`, groups are no
    further apart than the people within them, and a model that takes as much off everybody of one group stays below
    the limit; `audit_groups` and `effect` find it.

    Parameters
    ----------
    model, X, metric, predictions, output_range
        As for `audit`; outputs that are one number: two classes, or regression with an `output_range`. Numbers that
        matter must not be missing.
    column : column name
        Of `X`; its values are the groups.
    favourable : class label, "high" or "low", optional
        What is better for a person: a class, or an end of the score ("low" for a risk). None is known only if the
        classes are two known words, such as approved and denied; otherwise it
        is said who has the higher mean.

    Returns
    -------
    GroupGaps

    Examples
    --------
    >>> from likewise import TableMetric
    >>> X = pd.DataFrame({"age": [30, 40, 30, 50], "sex": ["f", "f", "m", "m"]})
    >>> found = group_gaps(None, X, TableMetric({"age": 0.01}, {"sex": 0}), "sex", predictions=[0.2, 0.3, 0.3, 0.5])
    >>> found.gaps[["value", "gap", "allowed"]].round(3)
      value   gap  allowed
    0     f -0.15     0.05
    1     m  0.15     0.05
    >>> found.headline
    'mean outputs of f and of all others differ by 15 points, more than the 5 points of any model within the metric'
    """
    metric = check_metric(metric)
    weights, people = metric.read(X)
    given = pd.DataFrame(people.table)
    (name,) = check_names("column", [column], list(given))
    outputs, probable = outputs_of(model, X, people, predictions, output_range)
    own_range = output_range or getattr(getattr(model, "guarantee_", None), "output_range", None)
    if outputs.shape[1] != 1 or not (probable or own_range is not None):
        raise InvalidInputError("group_gaps needs one probability per person, or numbers with an output_range.")
    if not metric.obeys_triangle and np.isnan(people.rows).any():
        raise InvalidInputError("Numbers that matter must not be missing: a blank is at one distance from all of them.")
    where, values = pd.factorize(given[name], use_na_sentinel=False)
    if not 2 <= len(values) <= _MOST_VALUES:
        raise InvalidInputError(f"column must hold 2 to {_MOST_VALUES} values; {name!r} has {len(values)}.")
    labels = OutputLabels.of(model, predictions, output_range, probable=probable)
    direction = Direction.of(given_or_stored(favourable, model), labels.classes)
    rows: list[tuple[Any, ...]] = []
    points = Points.of(people, weights)
    shuffles = [np.random.default_rng(seed).permutation(where) for seed in range(_SHUFFLES)]
    names = ["(blank)" if pd.isna(value) else str(value) for value in values]
    for k in np.argsort(names, kind="stable"):
        inside = where == k
        mean, others = float(outputs[inside].mean()), float(outputs[~inside].mean())
        if len(rows) == 0 or len(values) > 2:  # of two groups, each has the other's limits
            allowed = _largest_gap(points, inside)
            shuffled = float(np.mean([_largest_gap(points, each == k) for each in shuffles]))
        lead = float(direction.gains(np.array([mean - others])))
        ahead = "neither" if lead == 0 else names[k] if lead > 0 else "others"
        rows.append((names[k], int(inside.sum()), mean, others, mean - others, allowed, shuffled, ahead))
    head = ["value", "n", "mean", "others", "gap", "allowed", "shuffled", direction.names[0]]
    return GroupGaps(pd.DataFrame(rows, columns=head), _proxies(people, name, where), labels)


def _largest_gap(points: Points, inside: BoolArray) -> float:
    """Largest ``mean h(a) - mean h(b)`` of functions h in [0, 1] within the metric: the transport distance."""
    n, m = int(inside.sum()), int((~inside).sum())
    groups = points.groups()
    mass = np.bincount(groups.of_row, weights=np.where(inside, float(m), -float(n)), minlength=len(groups.first))
    some = mass != 0  # people who are in both groups alike cancel
    if not some.any():
        return 0.0
    tally = np.maximum(np.stack([-mass[some], mass[some]], axis=1), 0.0)
    total, *_ = largest_confidence(points.take(groups.first[some]), tally)
    # The confidence is that of h on one group and of 1 - h on the other. Rounded upwards: pairs are solved to 1e-9, or
    # to 1e-7 where every pair is compared.
    return float(min(1.0, (total - tally[:, 0].sum()) / (n * m) + (1e-8 if points.splits is not None else 1e-6)))


def _proxies(people: People, name: Any, where: Any) -> pd.DataFrame:
    """How well single columns, and all but one, predict the groups."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    chosen = fixed_sample(len(people), _MOST_MEASURED)
    target, names = where[chosen], list(people.encoder.names)
    kept = np.isin(target, np.flatnonzero(np.bincount(target) >= 2 * _FOLDS))
    rows, target = people.rows[chosen][kept], target[kept]
    found: list[tuple[Any, float]] = []
    if len(np.unique(target)) >= 2:
        others = [i for i, each in enumerate(names) if each != name]
        folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
        for label, used in [*((names[i], [i]) for i in others), ("all together", others)]:
            if not used:
                continue
            codes = [not people.encoder.is_number[i] and rows[:, i].max() < 255 for i in used]
            features: FloatArray = np.where(rows[:, used] < 0, np.nan, rows[:, used]) if any(codes) else rows[:, used]
            model = HistGradientBoostingClassifier(max_iter=30, categorical_features=codes, random_state=0)
            with threads_for(features.size):
                chances = cross_val_predict(model, features, target, cv=folds, method="predict_proba")
            kinds = np.unique(target)
            areas = [roc_auc_score(target == kind, chances[:, i]) for i, kind in enumerate(kinds)]
            found.append((label, float(np.mean(areas))))
    return pd.DataFrame(found, columns=["column", "auc"])
