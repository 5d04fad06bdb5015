"""What the templates and the script need beyond the data itself: texts, bars, charts."""

from __future__ import annotations

import math
from itertools import groupby
from typing import Any, cast

import numpy as np

from likewise.decisions.costs import DecisionCosts
from likewise.design.joint import Costs
from likewise.metric_file import format_shapes
from likewise.metrics.table import NEGLIGIBLE, TableMetric
from likewise.metrics.units import Unit, number
from likewise.metrics.zero_weights import list_by_reason
from likewise.report import charts
from likewise.report import text as words
from likewise.report.cards import file_cards, pair_cards
from likewise.report.columns import columns_of
from likewise.report.data import ReportData
from likewise.report.hidden import hidden_columns, not_measured, review_groups
from likewise.report.pairs import first_pair
from likewise.report.tables import costs, groups

_TOP = 6  # columns whose weights are shown unfolded
_SHAPES, _GROUPS = 6, 2  # and shapes, and columns of groups


def prepare(data: ReportData) -> dict[str, Any]:
    """Everything the templates need beyond the data itself."""
    promised = data.guarantee is not None
    sections = [
        ("promise", "The promise" if promised else "Summary", True),
        ("point", "Exchange rates" if data.output_range else "One point", True),
        ("frontier", "The design", data.frontier is not None),
        ("shapes", "The model", bool(data.panels)),
        ("compare", "Two people", True),
        ("search", "Pairs", bool(data.audits)),
        ("hidden", "Protected", bool(data.hidden)),
        ("review", "Files", data.review is not None),
        ("decisions", "Decisions", data.decisions is not None),
        ("cost", "What it costs", data.cost is not None or bool(data.missed)),
        ("groups", "Groups", bool(data.groups)),
        ("limits", "Not promised" if promised else "Not said", True),
        ("made", "How it was made", bool(data.made)),
    ]
    columns = columns_of(data, data.people)
    cost = None if data.cost is None else costs(data.cost)
    return {
        "sections": [(key, title) for key, title, present in sections if present],
        "columns": columns,
        "top": sorted((column for column in columns if column.counts), key=lambda column: -column.counts)[:_TOP],
        "hidden_columns": hidden_columns(data),
        "not_measured": not_measured(data),
        "hidden": list_by_reason((column, column.reason) for column in columns if not column.weight),
        # Up to three numbers that count most, for the sentence that explains a point.
        "examples": [
            (column.name, column.one_point)
            for column in sorted(columns, key=lambda column: -column.counts)
            if column.is_number and column.scale >= NEGLIGIBLE and not Unit.of(column.unit).one
        ][:3],
        "frontier": None
        if data.frontier is None
        else charts.frontier_chart(data.frontier, _mean_distance(data), data.output_range),
        "pairs": _pair_charts(data),
        "worst": [] if data.audit_before is None else pair_cards(data, columns, data.audit_before.violations, "before"),
        "over": [] if data.audit_after is None else pair_cards(data, columns, data.audit_after.violations, "after"),
        "broken": _is_broken(data),
        "closest": [] if data.closest is None else pair_cards(data, columns, data.closest, "after"),
        "review_groups": None if data.review is None else review_groups(data.review.found),
        "review": [] if data.review is None else file_cards(data, data.review),
        "first": first_pair(data),
        "decisions": None if data.decisions is None else _decisions(data.decisions),
        "cost": cost,
        "charts": [] if data.cost is None else charts.tradeoff_charts(data.cost),
        "shapes": charts.shapes(data.panels, getattr(data.metric, "units", {}), data.prices, _SHAPES)
        if data.panels
        else None,
        "groups": [(column, groups(list(rows))) for column, rows in groupby(data.groups, lambda group: group.column)],
        "n_groups": _GROUPS,
        "has_before": any(group.before for group in data.groups),
        "range": [number(end) for end in data.output_range or ()],
        "several": next((n for n in (x.shape[1] for x in data.shares.values()) if n > 2), None),
        "statement": _statement(data),
        "rows": _rows(data),
    }


def _rows(data: ReportData) -> str:
    """How rows are counted, unless people have names."""
    label = data.people.table.index[0] if len(data.people) else ""
    if not isinstance(label, str):
        return "Rows of the table are counted from 0. "
    return "Row 1 is the first person of the table. " if label.startswith("row ") else ""


def _mean_distance(data: ReportData) -> float:
    """Mean distance of two people drawn at random, by the report's metric."""
    rows, columns = data.people.rows, data.bound
    shares = np.full(len(rows), 1 / max(1, len(rows)))
    return Costs.of(rows, shares, columns.is_number, columns.tables).mean_distance(columns)


def _decisions(costs: DecisionCosts) -> dict[str, Any]:
    """A plain threshold beside a soft one."""
    plain, soft = costs.table.iloc[0], costs.table.iloc[1]
    half = float(costs.table.index[1]) / 2
    low, high = max(0.0, costs.threshold - half), min(1.0, costs.threshold + half)
    return {
        "threshold": f"{100 * costs.threshold:.4g}%",
        "band": f"{100 * low:.4g}% to {100 * high:.4g}%",
        "plain": float(plain["near_different"]),
        "soft": float(soft["near_different"]),
        "independent": float(soft["near_different_independent"]),
        "guarantee": float(soft["guarantee"]),
        "in_band": float(soft["in_band"]),
        "near": words.points(costs.near),
        "n_pairs": costs.n_near_pairs,
        "n_people": costs.n_people,
    }


def _is_broken(data: ReportData) -> bool:
    """Whether the search found a violation of the guarantee; the page must then say so first."""
    return (
        data.guarantee is not None
        and data.audit_after is not None
        and data.audit_after.max_excess > data.epsilon + charts.TOLERANCE
    )


def _statement(data: ReportData) -> str:
    """The statement of the guarantee; the page shows the distance elsewhere."""
    return "" if data.guarantee is None else data.guarantee.statement


def _pair_charts(data: ReportData) -> dict[str, Any] | None:
    """The sampled pairs before and after; None without two people with scores."""
    if len(data.sample) < 2 or not data.shares:
        return None
    a, b = (data.sample[side] for side in np.triu_indices(len(data.sample), 1))
    distances = data.bound.distances(data.people.rows[a], data.people.rows[b])
    gaps = {name: data.differences(name, a, b) for name in data.shares}
    limit = charts.axis_limit(max(float(gap.max()) for gap in gaps.values()))
    return {
        "limit": limit,
        "n_pairs": len(distances),
        "models": [(name, charts.density(distances, gap, limit, data.epsilon)) for name, gap in gaps.items()],
    }


def for_browser(data: ReportData, view: dict[str, Any]) -> dict[str, Any]:
    """Return what the page's script needs, and no more."""
    columns, shares = view["columns"], data.shares
    n_outputs = next(iter(shares.values())).shape[1] if shares else 1
    return {
        "p": "inf" if math.isinf(data.metric.p) else data.metric.p,
        "epsilon": data.epsilon,
        "promised": data.guarantee is not None,
        "plain": "The unconstrained model",
        "first": view["first"]["pair"],
        "limit": 1 if view["pairs"] is None else view["pairs"]["limit"],
        "shown": 0 if n_outputs == 1 else data.shown % n_outputs,
        "range": data.output_range,
        "columns": [column.for_browser() for column in columns],
        "shapes": format_shapes(cast("TableMetric", data.metric), data.output_range),
        "people": [
            {
                "values": [column.known(x) for column, x in zip(columns, data.people.rows[i], strict=True)],
                "before": [round(x, 12) for x in shares["before"][i].tolist()] if "before" in shares else None,
                "after": [round(x, 12) for x in shares["after"][i].tolist()] if "after" in shares else None,
                "reasons": data.reasons[i] if data.reasons else [],
            }
            for i in data.sample
        ],
    }
