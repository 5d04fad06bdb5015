"""From a smoothed model and a table of people to what the report shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise import __version__
from likewise._typing import FloatArray
from likewise.auditing.ceilings import ceiling
from likewise.auditing.violations import audit
from likewise.metrics.tabular import TableMetric, split_unit
from likewise.report.data import (
    Audit,
    Claim,
    Column,
    Group,
    Metric,
    Person,
    ReportData,
    Utility,
    UtilityPoint,
    Value,
    WorstPair,
)

_PEOPLE = 200  # shown for comparison
_AUDITED = 3000  # people among whom all pairs are searched
_MEASURED = 600  # people on whom the curve of strictness is measured
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
_WORST = 8
_DRAWS = 200
_MOST_GROUPS = 8


def build_report(
    model: Any,
    X: pd.DataFrame,
    y: Any,
    *,
    outcome: Any = None,
    revealed: TableMetric | None = None,
    title: str = "How alike people are treated",
    subtitle: str = "",
) -> ReportData:
    """Measure a fitted `SmoothedClassifier` of tables on people with known outcomes.

    "Before" is the inner model, "after" the smoothed one. Large tables are sampled evenly; the report says how many
    people each part is about.

    Parameters
    ----------
    model : SmoothedClassifier
        Fitted with a `TableMetric`.
    X, y : table and labels
        People to measure on; better not those it was trained on.
    outcome : label, optional
        Whose probability is shown; by default the last class.
    revealed : TableMetric, optional
        The metric before it was edited.
    """
    metric = model.guarantee_.metric
    if not isinstance(metric, TableMetric):
        raise TypeError(f"A report needs a model of tables, fitted with a TableMetric; this one has {metric!r}.")
    y = np.asarray(y)
    X = X[list(model.feature_names_in_)].reset_index(drop=True)
    classes = list(model.classes_)
    shown = classes.index(outcome) if outcome is not None else len(classes) - 1
    rows = _spread(len(X), _AUDITED)
    people, labels = X.iloc[rows].reset_index(drop=True), y[rows]
    before = np.asarray(_inner_scores(model, people))
    after = model.predict_proba(people)
    sample = _spread(len(people), _PEOPLE)
    slack = model.guarantee_.epsilon
    return ReportData(
        title=title,
        subtitle=subtitle,
        outcome=str(classes[shown]),
        version=__version__,
        metric=_metric(metric, revealed, model, X),
        claim=_claim(model),
        people=tuple(
            Person(
                values=_values(people.iloc[i], metric, model),
                before=float(before[i, shown]),
                after=float(after[i, shown]),
                name=f"Person {rows[i] + 1}",
                label=str(labels[i]),
            )
            for i in sample
        ),
        n_population=len(X),
        audit_before=_audit(people, before, metric, model, rows, slack),
        audit_after=_audit(people, after, metric, model, rows, slack),
        utility=_utility(model, people, labels, before, after),
        groups=_groups(people, labels, before, after, metric, shown, classes),
    )


def _inner_scores(model: Any, people: pd.DataFrame) -> FloatArray:
    inner = model.estimator_
    if hasattr(inner, "predict_proba"):
        return np.asarray(inner.predict_proba(people))
    return np.asarray(np.asarray(inner.predict(people))[:, None] == model.classes_, dtype=np.float64)


def _claim(model: Any) -> Claim:
    guarantee = model.guarantee_
    numbers = guarantee.noise.numbers
    return Claim(
        level=guarantee.level,
        noise="Splitting" if guarantee.noise.is_splitting else type(numbers).__name__,
        statement=guarantee.statement,
        epsilon=float(guarantee.epsilon),
        delta=float(guarantee.delta),
        n_draws=int(guarantee.n_draws),
        n_outcomes=len(model.classes_),
    )


def _metric(metric: TableMetric, revealed: TableMetric | None, model: Any, X: pd.DataFrame) -> Metric:
    columns = []
    for name in model.coding_.names:
        number = name in metric.numeric
        old = None
        if revealed is not None:
            old = revealed.numeric.get(name, revealed.categorical.get(name))
        prefix, unit = split_unit(metric.units.get(name, ""))
        codes = model.coding_.encode(X[model.coding_.names])[:, model.coding_.names.index(name)] if number else None
        spread = float(np.nanstd(codes)) if codes is not None and np.isfinite(codes).any() else 0.0
        columns.append(
            Column(
                name=name,
                kind="numeric" if number else "categorical",
                weight=metric.numeric[name] if number else metric.categorical[name],
                unit=unit if number else "",
                prefix=prefix if number else "",
                revealed_weight=old,
                missing_weight=metric.missing.get(name) if number else None,
                categories=() if number else tuple(_words(model, name)),
                typical_difference=spread if number and spread > 0 else None,
            )
        )
    return Metric(columns=tuple(columns), p=float(metric.p))


def _words(model: Any, name: str) -> list[str]:
    column = next(column for column in model.coding_.columns if column.name == name)
    return [str(level) for level in column.levels]


def _values(person: pd.Series[Any], metric: TableMetric, model: Any) -> tuple[Value, ...]:
    values: list[Value] = []
    for name in model.coding_.names:
        value = person[name]
        if pd.isna(value):
            values.append(None)
        elif name in metric.categorical:
            values.append(str(value))
        else:
            column = next(column for column in model.coding_.columns if column.name == name)
            values.append(float(value) if column.categories is None else float(column.categories.index(value)))
    return tuple(values)


def _audit(
    people: pd.DataFrame,
    scores: FloatArray,
    metric: TableMetric,
    model: Any,
    rows: npt.NDArray[np.intp],
    slack: float,
) -> Audit | None:
    if len(people) < 2:
        return None
    found = audit(None, people, metric, predictions=scores, tolerance=max(slack, 1e-9), n_worst=_WORST)
    worst = tuple(
        WorstPair(
            first=_values(people.iloc[pair["row_a"]], metric, model),
            second=_values(people.iloc[pair["row_b"]], metric, model),
            distance=float(pair["distance"]),
            allowed=float(min(1.0, pair["distance"] + slack)),
            actual=float(pair["difference"]),
            names=(f"Person {rows[pair['row_a']] + 1}", f"Person {rows[pair['row_b']] + 1}"),
        )
        for pair in found.violations.to_dict("records")
    )
    return Audit(
        n_people=found.n_samples,
        n_pairs=found.n_pairs,
        n_violations=found.n_violations,
        max_excess=float(found.max_excess),
        max_ratio=0.0 if np.isnan(found.max_ratio) else float(found.max_ratio),
        coverage=found.coverage,
        worst=worst,
    )


def _utility(
    model: Any, people: pd.DataFrame, labels: npt.NDArray[Any], before: FloatArray, after: FloatArray
) -> Utility:
    """Accuracy and confidence of the same inner model, smoothed more and less strictly."""
    from sklearn.frozen import FrozenEstimator

    rows = _spread(len(people), _MEASURED)
    few, truth = people.iloc[rows].reset_index(drop=True), labels[rows]
    known = np.searchsorted(model.classes_, truth)
    metric = model.guarantee_.metric
    points = []
    for factor in _FACTORS:
        scaled = metric.scaled(factor)
        if factor == 1.0:
            scores = after[rows]
        else:
            again = model.__class__(
                FrozenEstimator(model.estimator_), metric=scaled, vote=model.vote, n_draws=_DRAWS, random_state=0
            )
            scores = again.fit(people, labels).predict_proba(few)
        best = float(ceiling(few, truth, scaled).value) if len(model.classes_) == 2 and len(set(truth)) == 2 else None
        points.append(
            UtilityPoint(
                factor=factor,
                accuracy=float((model.classes_[scores.argmax(axis=1)] == truth).mean()),
                confidence=float(scores[np.arange(len(few)), known].mean()),
                ceiling=best,
            )
        )
    return Utility(
        points=tuple(points),
        baseline_accuracy=float((model.classes_[before[rows].argmax(axis=1)] == truth).mean()),
        baseline_confidence=float(before[rows][np.arange(len(few)), known].mean()),
        measured_on=f"{len(few)} people of the table, with {_DRAWS} draws each away from the vertical line",
    )


def _groups(
    people: pd.DataFrame,
    labels: npt.NDArray[Any],
    before: FloatArray,
    after: FloatArray,
    metric: TableMetric,
    shown: int,
    classes: list[Any],
) -> tuple[Group, ...]:
    """Accuracy and mean score by group, for categories that must not matter, or else for all of them."""
    hidden = [name for name, weight in metric.categorical.items() if weight == 0]
    known = np.array(classes)
    groups = []
    for column in hidden or list(metric.categorical):
        if people[column].nunique() > _MOST_GROUPS:
            continue
        for value in sorted(people[column].dropna().unique(), key=str):
            members = (people[column] == value).to_numpy()
            right_before, right_after = (
                float((known[scores[members].argmax(axis=1)] == labels[members]).mean()) for scores in (before, after)
            )
            groups.append(
                Group(
                    column=column,
                    group=str(value),
                    n=int(members.sum()),
                    accuracy_before=right_before,
                    accuracy_after=right_after,
                    score_before=float(before[members, shown].mean()),
                    score_after=float(after[members, shown].mean()),
                )
            )
    return tuple(groups)


def _spread(n: int, most: int) -> npt.NDArray[np.intp]:
    """Row numbers spread evenly over a table: all of them, if there are few."""
    return np.arange(n) if n <= most else np.unique(np.linspace(0, n - 1, most).astype(np.intp))
