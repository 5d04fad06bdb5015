"""Models beside each other, what the promise cost in words, and groups with their ratios."""

from __future__ import annotations

from typing import Any

from likewise.auditing.measures import YARDSTICKS, Yardstick
from likewise.auditing.recommending import difference
from likewise.auditing.ways import CONSTANT
from likewise.report import pictures, words
from likewise.report.data import Cost, GroupScores

_SHOWN = {"classes": ("brier", "auc", "accuracy"), "numbers": ("rmse", "r2")}


def costs(cost: Cost) -> dict[str, Any]:
    """The models that were compared, the best first, and what the promise cost in words."""
    comparison = cost.comparison
    measures = [_measure(comparison.task, name) for name in _SHOWN[comparison.task]]
    table = comparison.table
    gone = table[table["evaluations"].notna()].sort_values(measures[0].name, kind="stable")
    places = pictures.dots(gone[measures[0].name].tolist(), gone[f"{measures[0].name}_se"].tolist())
    rows = [
        {
            "name": _title(str(name), str(row["title"]), cost),
            "is_own": name == cost.own,
            "is_constant": name == CONSTANT,
            "is_baseline": name == cost.plain,
            "promise": bool(row["promise"]),
            "figures": [words.measured(measure, float(row[measure.name])) for measure in measures],
            "error": words.measured(measures[0], float(row[f"{measures[0].name}_se"])),
            "place": place,
            "violations": int(row["violations"]),
            "pairs": int(row["pairs"]),
        }
        for (name, row), place in zip(gone.iterrows(), places, strict=True)
    ]
    own = next(row for row in rows if row["is_own"])
    return {
        "rows": rows,
        "measures": measures,
        "own": own,
        "constant": next(row for row in rows if row["is_constant"]),
        "baseline": _baseline(rows),
        "verdict": _verdict(cost, rows, measures[0]),
        "measured_on": comparison.measured_on,
    }


def _measure(task: Any, name: str) -> Yardstick:
    return next(measure for measure in YARDSTICKS[task] if measure.name == name)


def _title(name: str, title: str, cost: Cost) -> str:
    if name == cost.own:
        return "this model"
    return "a constant" if name == CONSTANT else title


def _baseline(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return next(row for row in rows if row["is_baseline"])


def _verdict(cost: Cost, rows: list[dict[str, Any]], measure: Yardstick) -> str:
    """What the promise cost, against the baseline and against a constant."""
    showings, folds = cost.comparison.showings, cost.comparison.folds
    own, free = next(row for row in rows if row["is_own"]), _baseline(rows)
    gap, error = difference(showings[cost.own], showings[cost.plain], folds)
    beyond, noise = difference(showings[cost.own], showings[CONSTANT], folds)
    constant = next(row for row in rows if row["is_constant"])["figures"][0]
    if beyond >= -noise:
        found = "This model is not measurably better than giving everybody the same score"
    elif gap <= -error:
        found = "The promise cost nothing"
    elif gap <= error:
        found = "The promise cost nothing that could be measured"
    else:
        found = "The promise has a price"
    return (
        f"{found}: the {measure.title}, of which less is better, is {own['figures'][0]}; that of the baseline "
        f"({free['name']}) is {free['figures'][0]}, of a constant {constant}, on people held out."
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
