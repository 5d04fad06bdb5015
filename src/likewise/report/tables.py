"""Tables of the report: the compared models with a verdict, and groups with their ratios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._typing import BoolArray, FloatArray
from likewise.kernel.columns import is_numeric
from likewise.metrics.base import Metric
from likewise.metrics.units import Unit
from likewise.report import charts
from likewise.report import text as words
from likewise.report.data import Cost, GroupFigures, GroupScores
from likewise.selection.compare import beats_constant, difference
from likewise.selection.cross_validation import SCORES, Score
from likewise.selection.methods import CONSTANT, UNCONSTRAINED

_MAX_GROUPS = 8
_BANDS = 4


def groups_of(
    table: pd.DataFrame,
    metric: Metric,
    y: npt.NDArray[Any],
    answers: Mapping[str, FloatArray | None],
    classes: npt.NDArray[Any] | None,
    shown: int,
) -> tuple[GroupScores, ...]:
    """Scores of groups, by the columns that must not matter; if the table has none, by all categorical columns.

    Parameters
    ----------
    table, y : people and their outcomes
    answers : dict with ``before`` and ``after``
        Cross-validated: probabilities of shape (n_samples, n_classes), or predictions; NaN for people not measured.
    classes : ndarray, or None for numbers
    shown : int
        Position of the outcome among the classes.
    """
    rates = metric.describe()
    rates = rates[rates["column"].isin(table.columns)]
    hidden = rates["column"][rates["weight"] == 0]
    shown_columns = hidden if len(hidden) else rates["column"][rates["kind"] == "categorical"]
    numeric = set(rates["column"][rates["kind"] == "numeric"])
    units = rates.set_index("column")["unit"]
    known = _measured(answers["after"], len(table))
    groups = []
    for column in sorted(shown_columns, key=numeric.__contains__):  # categories first
        for name, members in _split(table[column], str(units[column])):
            chosen = members & known
            if not chosen.any():
                continue
            outcomes = y[chosen]
            actual = outcomes.mean() if classes is None else (outcomes == classes[shown]).mean()
            figures = {
                key: _figures(outputs[chosen], outcomes, classes, shown)
                for key, outputs in answers.items()
                if outputs is not None and _measured(outputs, len(table))[chosen].all()
            }
            groups.append(GroupScores(str(column), name, int(chosen.sum()), float(actual), **figures))
    return tuple(groups)


def _measured(answers: FloatArray | None, n: int) -> BoolArray:
    return np.ones(n, dtype=bool) if answers is None else np.asarray(~np.isnan(answers.reshape(n, -1)).any(axis=1))


def _figures(
    answers: FloatArray, outcomes: npt.NDArray[Any], classes: npt.NDArray[Any] | None, shown: int
) -> GroupFigures:
    if classes is None:
        return GroupFigures(float(answers.mean()), None, float(np.sqrt(((answers - outcomes) ** 2).mean())))
    likely = classes[answers.argmax(axis=1)]
    return GroupFigures(
        float(answers[:, shown].mean()), float((likely == classes[shown]).mean()), float((likely == outcomes).mean())
    )


def _split(values: pd.Series[Any], unit: str) -> Iterator[tuple[str, BoolArray]]:
    """Names and members of groups; none if a categorical column has too many values."""
    absent = values.isna().to_numpy()
    distinct = values.dropna().unique()
    numbers = is_numeric(values)
    if len(distinct) <= _MAX_GROUPS:
        for value in sorted(distinct) if numbers else sorted(distinct, key=str):
            members = (values == value).to_numpy(dtype=np.bool_, na_value=False)
            yield (Unit.of(unit).written(value) if numbers else str(value)), members
    elif numbers:
        yield from _bands(values.to_numpy(dtype=np.float64, na_value=np.nan), unit)
    else:
        return
    if absent.any():
        yield "missing", absent


def _bands(values: FloatArray, unit: str) -> Iterator[tuple[str, BoolArray]]:
    """Bands of about equal size, between values that occur."""
    known = values[~np.isnan(values)]
    cuts = np.unique(np.quantile(known, np.arange(1, _BANDS) / _BANDS, method="lower"))
    cuts = cuts[cuts < known.max()]
    words = [Unit.of(unit).written(cut) for cut in cuts]
    for k in range(len(cuts) + 1):
        low, high = (cuts[k - 1] if k else -np.inf), (cuts[k] if k < len(cuts) else np.inf)
        name = (
            f"up to {words[0]}"
            if k == 0
            else f"above {words[-1]}"
            if k == len(cuts)
            else f"{words[k - 1]} to {words[k]}"
        )
        yield name, (values > low) & (values <= high)


_CAVEATS = {
    False: "",
    True: " But the metric was designed on these people, so the price is understated; likewise design --holdout 0.25 "
    "keeps people apart on whom it can be measured.",
    None: " If the metric was designed on these people, the price is understated; likewise design --holdout 0.25 keeps "
    "people apart on whom it can be measured.",
}
_SHOWN = {"classification": ("brier", "auc", "accuracy"), "regression": ("rmse", "r2")}


def costs(cost: Cost) -> dict[str, Any]:
    """The compared models, the best first, and the verdict."""
    comparison = cost.comparison
    measures = [_measure(comparison.task, name) for name in _SHOWN[comparison.task]]
    table = comparison.table
    measured = table[table["evaluations"].notna()].sort_values(measures[0].name, kind="stable")
    places = charts.dots(measured[measures[0].name].tolist(), measured[f"{measures[0].name}_se"].tolist())
    rows = [
        {
            "name": _title(str(name), str(row["title"]), cost),
            "is_own": name == cost.method,
            "is_constant": name == CONSTANT,
            "is_unconstrained": name == UNCONSTRAINED,
            "guarantee": bool(row["guarantee"]),
            "figures": [words.measured(measure, float(row[measure.name])) for measure in measures],
            "error": words.measured(measures[0], float(row[f"{measures[0].name}_se"])),
            "place": place,
            "violations": int(row["violations"]),
            "pairs": int(row["pairs"]),
        }
        for (name, row), place in zip(measured.iterrows(), places, strict=True)
    ]
    return {
        "rows": rows,
        "measures": measures,
        "own": _only(rows, "is_own"),
        "constant": _only(rows, "is_constant"),
        "unconstrained": _only(rows, "is_unconstrained"),
        "verdict": _verdict(cost, rows, measures[0]),
        "measured_on": comparison.measured_on,
    }


def _measure(task: Any, name: str) -> Score:
    return next(measure for measure in SCORES[task] if measure.name == name)


def _title(name: str, title: str, cost: Cost) -> str:
    if name == cost.method:
        return "this model"
    return {CONSTANT: "a constant", UNCONSTRAINED: "the unconstrained model"}.get(name, title)


def _only(rows: list[dict[str, Any]], key: str) -> dict[str, Any]:
    return next(row for row in rows if row[key])


def _verdict(cost: Cost, rows: list[dict[str, Any]], measure: Score) -> str:
    """What the guarantee cost, against the unconstrained model and a constant; for a lay reader."""
    results, folds = cost.comparison.results, cost.comparison.folds
    own, free, constant = (_only(rows, key)["figures"][0] for key in ("is_own", "is_unconstrained", "is_constant"))
    gap, error = difference(results[cost.method], results[UNCONSTRAINED], folds)
    beyond, noise = difference(results[cost.method], results[CONSTANT], folds)
    if not beats_constant(results[UNCONSTRAINED], results[CONSTANT]):
        found = "These people cannot show the price of the promise, as without it, too, nobody can be told from another"
    elif beyond >= -noise:
        found = "This model is not measurably better than giving everybody the same score"
    elif gap <= error:
        found = "The price of the promise is too small to be measured on these people"
    else:
        found = "The promise has a price"
    return (
        f"{found}: the {measure.title}, of which less is better, is {own}; that of the unconstrained model is {free}, "
        f"of a constant {constant}, on held-out people.{_CAVEATS[cost.metric_saw]}"
    )


def groups(rows: list[GroupScores]) -> list[dict[str, Any]]:
    """Groups of one column, with the ratio of each rate to the highest."""
    found = []
    for row in rows:
        entry: dict[str, Any] = {"group": row}
        for side in ("before", "after"):
            figures = getattr(row, side)
            rates = [getattr(other, side).rate for other in rows if getattr(other, side) is not None]
            highest = max((rate for rate in rates if rate is not None), default=0.0)
            known = figures is not None and figures.rate is not None and highest > 0
            entry[f"{side}_ratio"] = figures.rate / highest if known else None
        found.append(entry)
    return found
