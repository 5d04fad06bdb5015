"""From a fitted model and a table of people to what the report shows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils import check_consistent_length

from likewise._typing import FloatArray
from likewise.auditing.ceilings import ceiling
from likewise.auditing.violations import audit
from likewise.errors import InvalidInputError
from likewise.guarantees.promise import VacuousGuaranteeWarning
from likewise.metrics.abstract import Metric
from likewise.metrics.coding import as_frame
from likewise.metrics.people import People, spread
from likewise.models.votes import hard_votes, soft_votes
from likewise.report.data import GroupScores, ReportData, Utility, UtilityPoint, check_takes_tables

_AUDITED = 3000  # people among whom all pairs are searched
_MEASURED = 600  # people on whom the curve of strictness is measured
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
_WORST = 8
_MOST_GROUPS = 8


def build_report(
    model: Any,
    X: pd.DataFrame,
    y: Any,
    *,
    outcome: Any = None,
    revealed: Metric | None = None,
    title: str = "How alike people are treated",
    subtitle: str = "",
) -> ReportData:
    """Measure a model on people with known outcomes.

    "Before" is the model inside, where there is one. Large tables are sampled evenly; the report says how many people
    each part is about.

    Parameters
    ----------
    model : classifier of likewise
        Fitted with a metric of tables, such as `TableMetric`.
    X, y : table and labels
        People to measure on; better not those it was trained on.
    outcome : label, optional
        Whose probability is shown; by default the last class.
    revealed : Metric, optional
        The metric before it was edited.
    """
    metric = model.guarantee_.metric
    check_takes_tables(metric)
    check_consistent_length(X, y)
    names = [str(label) for label in model.classes_]
    if outcome is not None and str(outcome) not in names:
        raise InvalidInputError(f"outcome must be one of {', '.join(names)}; got {outcome!r}.")
    shown = -1 if outcome is None else names.index(str(outcome))
    table = as_frame(X)[list(model.feature_names_in_)].set_axis(range(1, len(X) + 1))  # from "Person 1" on
    rows = spread(len(table), _AUDITED)
    people, labels = metric.people(table.iloc[rows]), np.asarray(y)[rows]
    unknown = labels[~np.isin(labels, model.classes_)]
    if len(unknown):
        raise InvalidInputError(f"y must hold classes of the model, {', '.join(names)}; got {unknown.tolist()[0]!r}.")
    answers = {"before": _inner_scores(model, people), "after": model.predict_proba(people.table)}
    tolerance = max(model.guarantee_.epsilon, 1e-9)
    audits = {
        name: audit(None, people.table, metric, predictions=scores, tolerance=tolerance, n_worst=_WORST)
        for name, scores in answers.items()
        if scores is not None and len(people) > 1
    }
    return ReportData(
        title=title,
        subtitle=subtitle,
        outcome=names[shown],
        metric=metric,
        people=people,
        guarantee=model.guarantee_,
        revealed=revealed,
        before=None if answers["before"] is None else answers["before"][:, shown],
        after=answers["after"][:, shown],
        audit_before=audits.get("before"),
        audit_after=audits.get("after"),
        utility=_utility(model, people, labels, **answers),
        groups=_groups(people.table, metric, model.classes_, labels, answers, shown),
        n_population=len(table),
        n_outcomes=len(names),
    )


def _inner_scores(model: Any, people: People) -> FloatArray | None:
    inner = getattr(model, "estimator_", None)
    if inner is None:
        return None
    votes = soft_votes if hasattr(inner, "predict_proba") else hard_votes
    return votes(inner, model.classes_)(people.table)


def _utility(
    model: Any, people: People, labels: npt.NDArray[Any], before: FloatArray | None, after: FloatArray
) -> Utility | None:
    """Accuracy and confidence under stricter and looser metrics: of the same inner model, or of models trained anew.

    None if there are too few people to train anew.
    """
    if len(people) < 2:
        return None
    measured, trained = spread(len(people), _MEASURED), np.arange(len(people))
    if before is None:  # who is measured must not be among those trained on, at every factor alike
        measured, trained = trained[1::2][spread(len(people) // 2, _MEASURED)], trained[::2]
        if len(np.unique(labels[trained])) < len(model.classes_):
            return None
    few, truth = people.table.iloc[measured], labels[measured]
    two = len(model.classes_) == len(np.unique(truth)) == 2
    points = []
    for factor in _FACTORS:
        metric = model.guarantee_.metric.scaled(factor)
        if factor == 1 and before is not None:
            scores = after[measured]
        else:
            with warnings.catch_warnings():  # the loosest of these promises may well be empty
                warnings.simplefilter("ignore", VacuousGuaranteeWarning)
                again = model.with_metric(metric).fit(people.table.iloc[trained], labels[trained])
            scores = again.predict_proba(few)
        best = float(ceiling(few, truth, metric)) if two else None
        points.append(UtilityPoint(factor, *_quality(scores, truth, model.classes_), best))
    on = f"{len(few):,} people of the table"
    return Utility(
        tuple(points),
        None if before is None else UtilityPoint(np.inf, *_quality(before[measured], truth, model.classes_)),
        on if before is not None else f"{on}, by models trained on {len(trained):,} others",
    )


def _quality(scores: FloatArray, labels: npt.NDArray[Any], classes: npt.NDArray[Any]) -> tuple[float, float]:
    """Accuracy, and the mean probability of the true class."""
    true = np.searchsorted(classes, labels)
    return float((scores.argmax(axis=1) == true).mean()), float(scores[np.arange(len(scores)), true].mean())


def _groups(
    table: pd.DataFrame,
    metric: Metric,
    classes: npt.NDArray[Any],
    labels: npt.NDArray[Any],
    answers: dict[str, FloatArray | None],
    shown: int,
) -> tuple[GroupScores, ...]:
    """Accuracy and mean score by group, for categories that must not matter, or else for all of them."""
    rates = metric.describe().query("kind == 'categorical'")
    hidden = rates["column"][rates["weight"] == 0]
    groups = []
    for column in hidden if len(hidden) else rates["column"]:
        if table[column].nunique() > _MOST_GROUPS:
            continue
        for value in sorted(table[column].dropna().unique(), key=str):
            members = (table[column] == value).to_numpy()
            measured = {
                name: (_quality(scores[members], labels[members], classes)[0], float(scores[members, shown].mean()))
                for name, scores in answers.items()
                if scores is not None
            }
            groups.append(GroupScores(str(column), str(value), int(members.sum()), **measured))
    return tuple(groups)
