"""Tables of the report: the compared models with a verdict, and groups with their ratios."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._typing import BoolArray, FloatArray
from likewise.kernel.columns import is_numeric
from likewise.metrics.base import Metric
from likewise.metrics.units import Unit
from likewise.report import text as words
from likewise.report.data import Cost, GroupFigures, GroupScores, PeopleCost
from likewise.selection.compare import beats_constant
from likewise.selection.cross_validation import SCORES, Score
from likewise.selection.methods import CONSTANT, UNCONSTRAINED

FEW = 10  # people who get a decision: who they are is chance
SMALL = 30  # people: rates of fewer are chance, and no other group is compared with them
_MAX_GROUPS = 8
_BANDS = 4
_RACE_AND_SEX = ({"race", "ethnic", "ethnicity"}, {"sex", "gender"})


def groups_of(
    table: pd.DataFrame,
    metric: Metric,
    y: npt.NDArray[Any],
    answers: Mapping[str, FloatArray | None],
    decided: Mapping[str, FloatArray | None],
    classes: npt.NDArray[Any] | None,
    shown: int,
) -> tuple[GroupScores, ...]:
    """Scores of groups by the columns of weight 0, as `protected_first` sorts them; without any, by categories.

    Parameters
    ----------
    table, y : people and their outcomes
    answers : dict with ``before`` and ``after``
        Cross-validated: probabilities of shape (n_samples, n_classes), or predictions; NaN for people not measured.
    decided : dict likewise
        What `decide` makes of them; for numbers they themselves.
    classes : ndarray, or None for numbers
    shown : int
        Position of the outcome among the classes.
    """
    rates = metric.describe()
    rates = rates[rates["column"].isin(table.columns)]
    hidden = rates["column"][rates["weight"] == 0]
    shown_columns = hidden if len(hidden) else rates["column"][rates["kind"] == "categorical"]
    units = rates.set_index("column")["unit"]
    known = _measured(answers["after"], len(table))
    groups = []
    for column in sorted(shown_columns, key=protected_first(metric)):
        for name, members in _split(table[column], str(units[column])):
            chosen = members & known
            if not chosen.any():
                continue
            outcomes = y[chosen]
            actual = outcomes.mean() if classes is None else (outcomes == classes[shown]).mean()
            figures = {
                key: _figures(outputs[chosen], np.asarray(decided[key])[chosen], outcomes, classes, shown)
                for key, outputs in answers.items()
                if outputs is not None and _measured(outputs, len(table))[chosen].all()
            }
            groups.append(GroupScores(str(column), name, int(chosen.sum()), float(actual), **figures))
    return tuple(groups)


def _measured(answers: FloatArray | None, n: int) -> BoolArray:
    return np.ones(n, dtype=bool) if answers is None else np.asarray(~np.isnan(answers.reshape(n, -1)).any(axis=1))


def is_protected(metric: Metric, name: Any) -> bool:
    """Whether people set its weight to 0; also where the metric does not say who did."""
    return name in metric.hidden and metric.zero_reasons.get(name, "protected") == "protected"


def protected_first(metric: Metric) -> Callable[[Any], tuple[Any, ...]]:
    """The key that sorts protected columns to the front: race and sex, then the others as the metric lists them."""
    listed = list(metric.zero_reasons)

    def key(name: Any) -> tuple[Any, ...]:
        said = re.findall("[a-z]+", str(name).lower())
        rank = next((k for k, words in enumerate(_RACE_AND_SEX) if not words.isdisjoint(said)), len(_RACE_AND_SEX))
        return not is_protected(metric, name), rank, listed.index(name) if name in listed else len(listed)

    return key


def _figures(
    answers: FloatArray,
    decided: FloatArray,
    outcomes: npt.NDArray[Any],
    classes: npt.NDArray[Any] | None,
    shown: int,
) -> GroupFigures:
    if classes is None:
        return GroupFigures(float(answers.mean()), None, float(np.sqrt(((answers - outcomes) ** 2).mean())))
    right = decided[np.arange(len(decided)), np.searchsorted(classes, outcomes)]
    return GroupFigures(float(answers[:, shown].mean()), float(decided[:, shown].mean()), float(1 - right.mean()))


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
    ends = [Unit.of(unit).written(cut) for cut in cuts]
    names = [f"up to {ends[0]}", *map(" to ".join, pairwise(ends)), f"above {ends[-1]}"] if ends else ["all"]
    for name, low, high in zip(names, [-np.inf, *cuts], [*cuts, np.inf], strict=True):
        yield name, (values > low) & (values <= high)


_SHOWN = {"classification": ("brier", "auc"), "regression": ("rmse", "r2")}


def costs(cost: Cost) -> dict[str, Any]:
    """The compared models, the best first, and the verdict."""
    comparison = cost.comparison
    measures = [_measure(comparison.task, name) for name in _SHOWN[comparison.task]]
    table = comparison.table
    measured = table[table["evaluations"].notna()].sort_values(measures[0].name, kind="stable")
    rows = [
        {
            "name": _title(str(name), str(row["title"]), cost),
            "is_own": name == cost.method,
            "guarantee": bool(row["guarantee"]),
            "figures": [words.measured(measure, float(row[measure.name])) for measure in measures],
            "error": words.measured(measures[0], float(row[f"{measures[0].name}_se"])),
            "wrong": None if cost.people is None else words.of_1000(cost.people.wrong[str(name)]),
        }
        for name, row in measured.iterrows()
    ]
    results = comparison.results
    return {
        "rows": rows,
        "measures": measures,
        "people": None if cost.people is None else _in_people(cost, cost.people),
        "is_seen": beats_constant(results[UNCONSTRAINED], results[CONSTANT]),
        "is_better": beats_constant(results[cost.method], results[CONSTANT]),
        "measured_on": comparison.measured_on.partition(". All pairs")[0],
    }


def _measure(task: Any, name: str) -> Score:
    return next(measure for measure in SCORES[task] if measure.name == name)


def _title(name: str, title: str, cost: Cost) -> str:
    if name == cost.method:
        return "this model"
    return {CONSTANT: "a constant", UNCONSTRAINED: "the unconstrained model"}.get(name, title)


def _in_people(cost: Cost, found: PeopleCost) -> dict[str, Any]:
    """The cost in people, each figure of 1,000."""
    own, free, constant = (found.wrong[name] for name in (cost.method, UNCONSTRAINED, CONSTANT))
    return {
        "rate": None if found.rate is None else words.of_1000(found.rate),
        "other": None if found.other is None else words.of_1000(found.other),
        "own": words.of_1000(own),
        "free": words.of_1000(free),
        "constant": words.of_1000(constant),
        "more": words.of_1000(abs(own - free)),
        "is_more": own > free,
        "error": words.of_1000(found.error),
        "is_told": abs(own - free) > 2 * found.error,
    }


def groups(rows: list[GroupScores]) -> list[dict[str, Any]]:
    """Groups of one column, with the ratio of each rate to the highest; small groups have none beside larger ones."""
    found, large = [], [row for row in rows if row.n >= SMALL] or rows
    for row in rows:
        entry: dict[str, Any] = {"group": row}
        for side in ("before", "after"):
            figures = getattr(row, side)
            rates = [getattr(other, side).rate for other in large if getattr(other, side) is not None]
            highest = max((rate for rate in rates if rate is not None), default=0.0)
            n_getting = sum(
                (getattr(each, side).rate or 0) * each.n for each in large if getattr(each, side) is not None
            )
            known = row in large and figures is not None and figures.rate is not None and n_getting >= FEW
            entry[f"{side}_ratio"] = figures.rate / highest if known else None
        found.append(entry)
    return found
