"""What the templates and the script need beyond the data itself: texts, bars, charts."""

from __future__ import annotations

from itertools import groupby
from typing import Any, cast

from likewise.metric_file import format_shapes
from likewise.metrics.table import NEGLIGIBLE, TableMetric
from likewise.metrics.units import Unit, number
from likewise.metrics.zero_weights import list_by_reason
from likewise.report import charts
from likewise.report.cards import file_cards, pair_cards, story
from likewise.report.columns import columns_of
from likewise.report.data import ReportData
from likewise.report.hidden import hidden_columns, not_measured, review_groups
from likewise.report.pairs import BINS
from likewise.report.tables import FEW, SMALL, costs, groups, is_protected

_TOP = 6  # columns whose weights are shown unfolded
_SHAPES = 6  # and shapes
_BOARD = 14  # lines of groups on the sheet for a board


def prepare(data: ReportData) -> dict[str, Any]:
    """Everything the templates need beyond the data itself."""
    promised, scan = data.guarantee is not None, data.scan
    protects = all(data.metric.zero_reasons.get(each.name) == "protected" for each in data.hidden)
    zero_columns = "protected columns" if protects else "columns of weight 0"
    sections = [
        ("picture", "Picture", scan is not None),
        ("story", "Two people", True),
        ("promise", "Promise" if promised else "No promise", True),
        ("hidden", zero_columns[0].upper() + zero_columns[1:], bool(data.hidden)),
        ("review", "Files", data.review is not None),
        ("point", "Distance", True),
        ("cost", "Cost", data.cost is not None or bool(data.missed)),
        ("groups", "Groups", bool(data.groups)),
        ("frontier", "Design", data.frontier is not None),
        ("shapes", "Model", bool(data.panels)),
        ("search", "Pairs", scan is not None),
        ("decisions", "Decisions", data.decisions is not None),
        ("limits", "Not promised" if promised else "Not said", True),
        ("board", "One page", True),
        ("made", "Made", bool(data.made)),
    ]
    columns = columns_of(data, data.people)
    counting = sorted((column for column in columns if column.counts), key=lambda column: -column.counts)
    in_tables = [(column, groups(list(rows))) for column, rows in groupby(data.groups, lambda group: group.column)]
    protected = {str(name) for name in data.metric.columns if is_protected(data.metric, name)}
    first = protected.intersection(column for column, _ in in_tables) or {column for column, _ in in_tables}
    sample, told = data.sample.tolist(), data.story
    return {
        "sections": [(key, title) for key, title, present in sections if present],
        "columns": columns,
        "top": counting[:_TOP],
        "zero_columns": zero_columns,
        "hidden_columns": hidden_columns(data),
        "not_measured": not_measured(data),
        "hidden": list_by_reason((column, column.reason) for column in columns if not column.weight),
        # Up to three numbers that count most, for the sentence that explains a point.
        "examples": [
            (column.name, column.one_point)
            for column in counting
            if column.is_number and column.weight >= NEGLIGIBLE and not Unit.of(column.unit).one
        ][:3],
        "frontier": None
        if data.frontier is None
        else charts.frontier_chart(data.frontier, data.mean_distance, data.output_range),
        "pictures": {} if scan is None else charts.pictures(scan),
        "slack": 0.0 if scan is None else round(min(1.0, data.epsilon / scan.limit) * BINS, 2),
        "bins": BINS,
        "story": story(data, columns),
        **{
            key: pair_cards(data, columns, scan.worst[name], name) if scan and name in scan.worst else []
            for key, name in (("worst", "before"), ("over", "after"))
        },
        "closest": [] if scan is None or data.after is None else pair_cards(data, columns, scan.closest, "after"),
        "broken": promised and scan is not None and scan.n_above.get("after", 0) > 0,
        "review_groups": None if data.review is None else review_groups(data.review.found),
        "review": [] if data.review is None else file_cards(data, data.review),
        "first": [0, min(1, len(sample) - 1)] if told is None else [sample.index(one) for one in told.pair],
        "cost": None if data.cost is None else costs(data.cost),
        "chart": None if data.cost is None else charts.tradeoff_chart(data.cost),
        "shapes": charts.shapes(data.panels, cast("TableMetric", data.metric).units, _SHAPES) if data.panels else None,
        "groups": [entry for entry in in_tables if entry[0] in first],
        "board_groups": _for_board([entry for entry in in_tables if entry[0] in first]),
        "other_groups": [entry for entry in in_tables if entry[0] not in first],
        "small": SMALL,
        "few": FEW,
        "has_before": any(group.before for group in data.groups),
        "range": [number(end) for end in data.output_range or ()],
        "several": next((n for n in (x.shape[1] for x in data.shares.values()) if n > 2), None),
        "statement": "" if data.guarantee is None else data.guarantee.statement,
    }


def _for_board(tables: list[tuple[str, list[dict[str, Any]]]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The first tables without small groups, as many as a sheet has room for."""
    found, room = [], _BOARD
    for column, rows in tables:
        large = [row for row in rows if row["group"].n >= SMALL]
        if 1 < len(large) < room:
            found.append((column, large))
            room -= len(large) + 1
    return found


def for_browser(data: ReportData, view: dict[str, Any]) -> dict[str, Any]:
    """Return what the page's script needs, and no more."""
    columns, shares = view["columns"], data.shares
    n_outputs = next(iter(shares.values())).shape[1] if shares else 1
    return {
        "epsilon": data.epsilon,
        "promised": data.guarantee is not None,
        "plain": "The unconstrained model",
        "first": view["first"],
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
