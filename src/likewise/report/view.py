"""What the templates and the script need beyond the data itself: texts, bars, charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, cast

import numpy as np

from likewise._typing import FloatArray
from likewise.decisions.costs import DecisionCosts
from likewise.design.joint import Costs
from likewise.metric_file import format_shapes
from likewise.metrics.encoders import People
from likewise.metrics.table import NEGLIGIBLE, TableMetric
from likewise.metrics.units import Unit, number
from likewise.metrics.zero_weights import ZERO_REASONS, list_by_reason
from likewise.report import charts
from likewise.report import text as words
from likewise.report.data import ReportData, ReviewedFiles
from likewise.report.pairs import first_pair
from likewise.report.tables import costs, groups

_TOP = 6  # columns whose weights are shown unfolded
_SHAPES, _GROUPS = 6, 2  # and shapes, and columns of groups
_APART = 4  # columns with a weight in which a pair differs


def prepare(data: ReportData) -> dict[str, Any]:
    """Everything the templates need beyond the data itself."""
    promised = data.guarantee is not None
    sections = [
        ("promise", "The promise" if promised else "Summary", True),
        ("point", "One point", True),
        ("frontier", "The design", data.frontier is not None),
        ("shapes", "The model", bool(data.panels)),
        ("compare", "Two people", True),
        ("search", "Pairs", bool(data.audits)),
        ("review", "Files", data.review is not None),
        ("decisions", "Decisions", data.decisions is not None),
        ("cost", "What it costs", data.cost is not None or bool(data.missed)),
        ("groups", "Groups", bool(data.groups)),
        ("limits", "Not promised" if promised else "Not said", True),
    ]
    columns = _columns(data, data.people)
    cost = None if data.cost is None else costs(data.cost)
    return {
        "sections": [(key, title) for key, title, present in sections if present],
        "columns": columns,
        "top": sorted((column for column in columns if column.counts), key=lambda column: -column.counts)[:_TOP],
        "hidden": list_by_reason((column, column.reason) for column in columns if not column.weight),
        # Up to three numbers that count most, for the sentence that explains a point.
        "examples": [
            (column.name, column.one_point)
            for column in sorted(columns, key=lambda column: -column.counts)
            if column.is_number and column.scale >= NEGLIGIBLE and not Unit.of(column.unit).one
        ][:3],
        "frontier": None if data.frontier is None else charts.frontier_chart(data.frontier, _mean_distance(data)),
        "pairs": _pair_charts(data),
        "worst": [] if data.audit_before is None else _cards(data, columns, data.audit_before.violations, "before"),
        "over": [] if data.audit_after is None else _cards(data, columns, data.audit_after.violations, "after"),
        "broken": _is_broken(data),
        "closest": [] if data.closest is None else _cards(data, columns, data.closest, "after"),
        "review": [] if data.review is None else _files(data, data.review),
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
    }


def _mean_distance(data: ReportData) -> float:
    """Mean distance of two people drawn at random, by the report's metric."""
    rows, encoder = data.people.rows, data.people.encoder
    shares = np.full(len(rows), 1 / max(1, len(rows)))
    columns = data.metric.weights_of(encoder)
    return Costs.of(rows, shares, encoder.is_number, columns.tables).mean_distance(columns)


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


@dataclass(frozen=True)
class ColumnView:
    """A column for the table of exchange rates, the sliders and the comparer.

    Columns are compared by what a `typical` difference counts, on one linear scale up to `longest`; a slider counts
    `top` at its right end. `scale` and `revealed_scale` are distances per unit, or between two different `options`;
    `shares` are shares of it between any two, None for 1. `reason` says why a weight is 0, if the metric does.
    """

    name: str
    is_number: bool
    unit: str
    weight: float
    missing: float | None
    options: tuple[str, ...]
    shares: list[list[float]] | None
    typical: float
    scale: float
    revealed_scale: float | None
    longest: float
    top: float
    reason: str | None

    @property
    def zero(self) -> str:
        """What is said of a weight of 0."""
        return words.WEIGHT_0 if self.reason is None else ZERO_REASONS[self.reason].short

    @property
    def short_unit(self) -> str:
        """The unit without what a percentage is of, which the column's name says."""
        return "%" if self.unit.startswith("%") else self.unit

    @property
    def counts(self) -> float:
        """Distance of a typical difference."""
        return self.typical * self.scale

    @property
    def bar(self) -> float:
        """Length of its bar, in percent."""
        return _share(self.counts, self.longest)

    @property
    def revealed_bar(self) -> float | None:
        """The same before people edited the weight."""
        return None if self.revealed_scale is None else _share(self.typical * self.revealed_scale, self.longest)

    @property
    def position(self) -> int:
        """Where a slider of 200 steps stands. Its cube is what counts: small weights need the finest steps."""
        return min(200, max(1 if self.counts > 0 else 0, round(200 * math.cbrt(self.counts / self.top))))

    @property
    def worth(self) -> str:
        """Its exchange rate."""
        return self.zero if not self.scale else words.worth(self.scale, self.unit if self.is_number else None)

    @property
    def revealed_worth(self) -> str:
        """The same before people edited the weight."""
        scale = self.revealed_scale
        return "\N{EN DASH}" if scale is None else words.worth(scale, self.unit if self.is_number else None)

    @property
    def one_point(self) -> str:
        """Amount that counts one point."""
        return words.amount(0.01 / self.scale, self.short_unit)

    @property
    def typical_text(self) -> str:
        """A typical difference, as people write it."""
        return words.amount(self.typical, self.unit) if self.is_number else "any difference"

    def written(self, value: float) -> str:
        """One person's value, as people write it."""
        if (known := self.known(value)) is None:
            return "missing"
        return Unit.of(self.short_unit).written(known) if self.is_number else self.options[int(known)]

    def known(self, value: float) -> float | None:
        """A code, or None for a missing value: in a categorical column, missing is one more category."""
        absent = math.isnan(value) if self.is_number else value >= len(self.options)
        return None if absent else float(value)

    def for_browser(self) -> dict[str, Any]:
        """Return what the page's script needs."""
        unit = Unit.of(self.unit)
        fields = (
            "name",
            "is_number",
            "unit",
            "weight",
            "missing",
            "options",
            "shares",
            "typical",
            "longest",
            "top",
            "reason",
            "zero",
        )
        return {name: getattr(self, name) for name in fields} | {
            "factor": unit.factor,
            "prefix": unit.prefix,
            "suffix": unit.after(one=False),
            "suffix_of_one": unit.after(one=True),
            "one": unit.one,
        }


def _columns(data: ReportData, people: People) -> list[ColumnView]:
    encoder: Any = people.encoder
    weights = data.metric.weights_of(encoder)
    rates = data.metric.describe().set_index("column").loc[encoder.names]
    typical = np.where(encoder.is_number, _typical(people.rows), 1.0)
    counts = typical * weights.scales
    revealed = None if data.revealed is None else data.revealed.weights_of(encoder).scales
    longest = max(counts.max(), 0.0 if revealed is None else (typical * revealed).max())
    return [
        ColumnView(
            name=str(column.name),
            is_number=bool(is_number),
            unit=rates["unit"].iloc[i] if is_number else "",
            weight=float(rates["weight"].iloc[i]),
            missing=None if np.isnan(weights.missing[i]) else float(weights.missing[i]),
            options=() if is_number else tuple(str(level) for level in column.levels),
            shares=weights.tables[i][:-1, :-1].tolist() if i in weights.tables else None,
            typical=float(typical[i]),
            scale=float(weights.scales[i]),
            revealed_scale=None if revealed is None else float(revealed[i]),
            longest=float(1.25 * longest or 1.0),  # the longest bar has room to grow
            top=max(1.0, float(2 * counts.max())) if is_number else 1.0,
            reason=data.metric.zero_reasons.get(column.name),
        )
        for i, (column, is_number) in enumerate(zip(encoder.columns, encoder.is_number, strict=True))
    ]


def _typical(rows: FloatArray) -> FloatArray:
    """A typical difference in each column: the standard deviation of the people, or 1."""
    known = [column[~np.isnan(column)] for column in rows.T]
    return np.array([values.std() if len(values) and np.ptp(values) > 0 else 1.0 for values in known])


def _share(x: float, longest: float) -> float:
    return round(min(100.0, 100 * x / longest), 2)


def _pair_charts(data: ReportData) -> dict[str, Any] | None:
    """The sampled pairs before and after; None without two people with scores."""
    if len(data.sample) < 2 or not data.shares:
        return None
    a, b = (data.sample[side] for side in np.triu_indices(len(data.sample), 1))
    distances = data.metric.weights_of(data.people.encoder).distances(data.people.rows[a], data.people.rows[b])
    gaps = {name: data.differences(name, a, b) for name in data.shares}
    limit = charts.axis_limit(max(float(gap.max()) for gap in gaps.values()))
    return {
        "limit": limit,
        "n_pairs": len(distances),
        "models": [(name, charts.density(distances, gap, limit, data.epsilon)) for name, gap in gaps.items()],
    }


def _cards(data: ReportData, columns: list[ColumnView], pairs: Any, name: str) -> list[dict[str, Any]]:
    """Pairs of people, with their scores and what sets them apart.

    Columns that must not matter come first, and all of them; then what counts most.
    """
    cards = []
    for pair in pairs.to_dict("records"):
        both, difference = [pair["row_a"], pair["row_b"]], pair["difference"]
        allowed = min(1.0, pair["distance"] + data.epsilon)
        cards.append(
            {
                "names": [data.name(position) for position in both],
                "scores": _scores(data, data.shares[name][both]) if name in data.shares else "",
                **_apart(data, data.people, columns, both),
                "allowed": allowed,
                "difference": difference,
                "allowed_bar": _share(allowed, max(allowed, difference)),
                "difference_bar": _share(difference, max(allowed, difference)),
            }
        )
    return cards


def _files(data: ReportData, review: ReviewedFiles) -> list[dict[str, Any]]:
    """Denied people, each with the closest comparator."""
    people = review.people
    if people is None:
        return []
    columns, files = _columns(data, people), review.found.files
    shares = None if review.outputs is None else data.shares_of(review.outputs)
    cards = []
    for i in range(len(people) // 2):
        both = [2 * i, 2 * i + 1]
        cards.append(
            {
                "names": [data.name(position, people) for position in both],
                "scores": "" if shares is None else _scores(data, shares[both]),
                "n_comparators": int(files["n_comparators"].iloc[i]),
                "distance": float(files["distance"].iloc[i]),
                **_apart(data, people, columns, both, first=[str(name) for name in review.found.better]),
            }
        )
    return cards


def _apart(
    data: ReportData, people: People, columns: list[ColumnView], both: list[int], first: Sequence[str] = ()
) -> dict[str, Any]:
    """Columns in which two people differ: all that must not matter, all those named `first`, then what counts most."""
    weights = data.metric.weights_of(people.encoder)
    one, other = people.rows[both]
    gaps = np.where(weights.is_number, np.abs(one - other), one != other)
    for i in weights.tables:
        gaps[i] = weights.category_gaps(i, one[i], other[i])
    parts = np.where(np.isnan(gaps), weights.missing, gaps * weights.scales)  # a number that one of them lacks
    order = np.lexsort((-parts, weights.matters))
    apart = [(columns[i], one[i], other[i]) for i in order]
    apart = [(column, a, b) for column, a, b in apart if column.known(a) != column.known(b)]
    leading = [entry for entry in apart if not entry[0].weight]
    leading += [entry for entry in apart if entry[0].weight and entry[0].name in first]
    others = [entry for entry in apart if entry[0].weight and entry[0].name not in first]
    return {
        "apart": [(column, column.written(a), column.written(b)) for column, a, b in leading + others[:_APART]],
        "n_more": len(others[_APART:]),
        "n_equal": len(columns) - len(apart),
    }


def _scores(data: ReportData, shares: FloatArray) -> str:
    """Two scores in words; of several outcomes, of the one in which they differ most."""
    if shares.shape[1] == 1:
        low, high = data.output_range or (0.0, 1.0)
        a, b = (low + (high - low) * shares[:, 0]).tolist()
        return f"Predictions: {number(a)} and {number(b)}." if data.output_range else f"Scores: {_both(a, b)}."
    largest = int(np.abs(shares[0] - shares[1]).argmax())
    what = data.classes[largest] if data.classes else f"outcome {largest}"
    return (
        f"Scores for \N{LEFT DOUBLE QUOTATION MARK}{what}\N{RIGHT DOUBLE QUOTATION MARK}: {_both(*shares[:, largest])}."
    )


def _both(a: float, b: float) -> str:
    return f"{words.percent(a)} and {words.percent(b)}"


def for_browser(data: ReportData, view: dict[str, Any]) -> dict[str, Any]:
    """Return what the page's script needs, and no more."""
    columns, shares = view["columns"], data.shares
    n_outputs = next(iter(shares.values())).shape[1] if shares else 1
    return {
        "p": "inf" if math.isinf(data.metric.p) else data.metric.p,
        "epsilon": data.epsilon,
        "promised": data.guarantee is not None,
        "plain": data.baseline[:1].upper() + data.baseline[1:],
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
