"""What the templates and the page's script need beyond the data itself: texts, bars, pictures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.report import pictures, words
from likewise.report.data import Audit, Column, Group, ReportData, UtilityPoint, WorstPair
from likewise.report.distance import pair_distances, scale, typical_difference

WORST_SHOWN = 5  # two of them unfolded


def prepare(data: ReportData) -> dict[str, Any]:
    """Everything the templates need beyond the data itself."""
    search = data.audit_before is not None or data.audit_after is not None
    sections = [
        ("promise", "The promise", True),
        ("point", "What one point is worth", True),
        ("weights", "Try other weights", True),
        ("compare", "Compare two people", True),
        ("search", "What the search found", search),
        ("utility", "What it costs", data.utility is not None and bool(data.utility.points)),
        ("groups", "Groups", bool(data.groups)),
        ("limits", "What is not promised", bool(data.not_promised)),
    ]
    return {
        "sections": [(key, title) for key, title, present in sections if present],
        "columns": _columns(data),
        "examples": _examples(data),
        "pairs": _pair_pictures(data),
        "audits": [_audit(data, *audit) for audit in (("before", data.audit_before), ("after", data.audit_after))],
        "coverage": _coverage(data),
        "curves": [] if data.utility is None else pictures.curves(data.utility),
        "chosen": _chosen(data),
        "groups": _groups(data),
        "group_axes": {name: _axis(data, name) for name in ("accuracy", "score")},
        "broken": _contradicted(data),
    }


@dataclass(frozen=True)
class ColumnView:
    """A column for the table of exchange rates, the sliders and the comparer.

    `counts` is the distance of a typical difference, `revealed` the same with the weight before editing; bars are
    percentages of `longest`, one linear scale for all columns so that they can be compared. `top` is what a slider
    counts at its right end.
    """

    column: Column
    typical: float
    typical_text: str
    counts: float
    revealed: float | None
    worth: str
    revealed_worth: str
    options: tuple[str, ...]
    longest: float
    bar: float
    revealed_bar: float | None
    top: float
    position: int


def _columns(data: ReportData) -> list[ColumnView]:
    columns, p = data.metric.columns, data.metric.p
    typical = [typical_difference(c, [person.values[i] for person in data.people]) for i, c in enumerate(columns)]
    counts = [usual * scale(c, p) for usual, c in zip(typical, columns, strict=True)]
    revealed = [
        None if c.revealed_weight is None else usual * scale(c, p, c.revealed_weight)
        for usual, c in zip(typical, columns, strict=True)
    ]
    longest = max(counts + [known or 0.0 for known in revealed]) * 1.25 or 1.0  # the longest bar has room to grow
    views = []
    for i, column in enumerate(columns):
        known, top = revealed[i], 1.0 if column.kind == "categorical" else max(1.0, 2 * max(counts))
        views.append(
            ColumnView(
                column=column,
                typical=typical[i],
                typical_text="any difference" if column.kind == "categorical" else words.amount(column, typical[i]),
                counts=counts[i],
                revealed=known,
                worth=words.worth(column, p),
                revealed_worth="" if known is None else words.worth(column, p, column.revealed_weight),
                options=_options(data, i),
                longest=longest,
                bar=_share(counts[i], longest),
                revealed_bar=None if known is None else _share(known, longest),
                top=top,
                position=slider_position(counts[i], top),
            )
        )
    return views


def slider_position(counts: float, top: float) -> int:
    """Where a slider of 200 steps stands. Its cube is what counts: small weights need the finest steps."""
    return min(200, max(1 if counts > 0 else 0, round(200 * math.cbrt(counts / top))))


def _share(x: float, longest: float) -> float:
    return round(min(100.0, 100 * x / longest), 2)


def _options(data: ReportData, i: int) -> tuple[str, ...]:
    column = data.metric.columns[i]
    if column.kind == "numeric":
        return ()
    seen = {person.values[i] for person in data.people}
    return (*column.categories, *sorted(v for v in seen if isinstance(v, str) and v not in column.categories))


def _examples(data: ReportData) -> list[tuple[str, str]]:
    """Up to three numeric columns that count, for the sentence that explains a point."""
    return [
        (column.name, words.amount(column, 0.01 / scale(column, data.metric.p)))
        for column in data.metric.columns
        if column.kind == "numeric" and column.weight > 0
    ][:3]


def _pair_pictures(data: ReportData) -> dict[str, Any] | None:
    """The sampled pairs before and after; None without two people with scores."""
    models = [
        name for name in ("before", "after") if len(data.people) > 1 and getattr(data.people[0], name) is not None
    ]
    if not models:
        return None
    distances = pair_distances(data.metric, [person.values for person in data.people])
    first, second = np.triu_indices(len(data.people), 1)
    gaps = {}
    for name in models:
        scores = np.array([getattr(person, name) for person in data.people])
        gaps[name] = np.abs(scores[first] - scores[second])
    limit = pictures.axis_limit(max(float(gap.max()) for gap in gaps.values()))
    epsilon = 0.0 if data.claim is None else data.claim.epsilon
    return {
        "limit": limit,
        "n_pairs": len(distances),
        "n_undefined": int(np.isnan(distances).sum()),
        "models": [(name, pictures.density(distances, gaps[name], limit, epsilon)) for name in models],
        "bins": pictures.BINS,
    }


def _audit(data: ReportData, name: str, audit: Audit | None) -> dict[str, Any]:
    worst = [] if audit is None else [_worst(data, pair) for pair in audit.worst[:WORST_SHOWN]]
    return {"name": name, "audit": audit, "worst": worst}


def _coverage(data: ReportData) -> list[str]:
    """What was searched, said once if it is the same before and after."""
    said = {
        name: audit.coverage
        for name, audit in (("Before", data.audit_before), ("After", data.audit_after))
        if audit is not None and audit.coverage
    }
    if len(set(said.values())) == 1:
        return [f"What was searched: {next(iter(said.values()))}"]
    return [f"What was searched {name.lower()} smoothing: {text}" for name, text in said.items()]


def _worst(data: ReportData, pair: WorstPair) -> dict[str, Any]:
    rows = [
        (column, words.value(column, a), words.value(column, b))
        for column, a, b in zip(data.metric.columns, pair.first, pair.second, strict=True)
        if a != b
    ]
    widest = max(pair.actual, min(1.0, pair.allowed), 1e-12)
    return {
        "pair": pair,
        "rows": rows,
        "n_equal": len(data.metric.columns) - len(rows),
        "excess": pair.actual - pair.allowed,
        "allowed_bar": _share(min(1.0, pair.allowed), widest),
        "actual_bar": _share(pair.actual, widest),
    }


def _chosen(data: ReportData) -> UtilityPoint | None:
    """Return the utility at the metric of the report itself, if it was measured."""
    points = data.utility.points if data.utility else ()
    return next((point for point in points if point.factor == 1), None)


def _groups(data: ReportData) -> list[tuple[str, list[Group]]]:
    gathered: dict[str, list[Group]] = {}
    for group in data.groups:
        gathered.setdefault(group.column, []).append(group)
    return list(gathered.items())


def _axis(data: ReportData, measure: str) -> dict[str, Any]:
    """Round limits around what was measured in all groups, in steps of 5 %."""
    names = (f"{measure}_before", f"{measure}_after")
    known = [x for group in data.groups for name in names if (x := getattr(group, name)) is not None] or [0.0, 1.0]
    low, high = math.floor(min(known) * 20) / 20, math.ceil(max(known) * 20) / 20
    low = low if low < high else max(0.0, low - 0.05)
    high = high if low < high else low + 0.05
    return {"low": low, "high": high, "text": f"{100 * low:.0f} to {100 * high:.0f} %"}


def _contradicted(data: ReportData) -> bool:
    """Whether the search found more than is promised; the page must then say so first."""
    if data.claim is None or data.audit_after is None:
        return False
    return data.audit_after.max_excess > data.claim.epsilon + pictures.TOLERANCE


def for_browser(data: ReportData, view: dict[str, Any]) -> dict[str, Any]:
    """Return what the page's script needs, and no more."""
    pairs = view["pairs"]
    return {
        "p": "inf" if math.isinf(data.metric.p) else data.metric.p,
        "epsilon": 0 if data.claim is None else data.claim.epsilon,
        "promised": data.claim is not None,
        "limit": 1 if pairs is None else pairs["limit"],
        "columns": [
            {
                "name": entry.column.name,
                "kind": entry.column.kind,
                "unit": entry.column.unit,
                "prefix": entry.column.prefix,
                "weight": entry.column.weight,
                "missing": entry.column.missing_weight,
                "typical": entry.typical,
                "longest": entry.longest,
                "top": entry.top,
                "options": entry.options,
            }
            for entry in view["columns"]
        ],
        "people": [{"values": person.values, "before": person.before, "after": person.after} for person in data.people],
    }
