"""What the templates and the page's script need beyond the data itself: texts, bars, pictures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise._typing import FloatArray
from likewise.metrics.tabular import split_unit
from likewise.report import pictures, words
from likewise.report.data import ReportData

if TYPE_CHECKING:
    from likewise.auditing.violations import Audit

_WORST_SHOWN = 5  # two of them unfolded


def prepare(data: ReportData) -> dict[str, Any]:
    """Everything the templates need beyond the data itself."""
    sections = [
        ("promise", "The promise", True),
        ("point", "What one point is worth", True),
        ("weights", "Try other weights", True),
        ("compare", "Compare two people", True),
        ("search", "What the search found", bool(data.audits)),
        ("utility", "What it costs", data.utility is not None),
        ("groups", "Groups", bool(data.groups)),
        ("limits", "What is not promised", True),
    ]
    columns = _columns(data)
    return {
        "sections": [(key, title) for key, title, present in sections if present],
        "columns": columns,
        # Up to three numbers that count, for the sentence that explains a point.
        "examples": [(column.name, column.one_point) for column in columns if column.is_number and column.weight][:3],
        "pairs": _pair_pictures(data),
        "worst": {name: _worst(data, columns, audit) for name, audit in data.audits.items()},
        "curves": [] if data.utility is None else pictures.curves(data.utility),
        "chosen": next((point for point in data.utility.points if point.factor == 1), None) if data.utility else None,
        "groups": [(column, list(groups)) for column, groups in groupby(data.groups, lambda group: group.column)],
        "axes": [_axis([x[i] for group in data.groups for x in (group.before, group.after) if x]) for i in (0, 1)],
        # Whether the search found more than is promised; the page must then say so first.
        "broken": data.guarantee is not None
        and data.audit_after is not None
        and data.audit_after.max_excess > data.epsilon + pictures.TOLERANCE,
    }


@dataclass(frozen=True)
class ColumnView:
    """A column for the table of exchange rates, the sliders and the comparer.

    Columns are compared by what a `typical` difference counts, on one linear scale up to `longest`; a slider counts
    `top` at its right end. `scale` and `revealed_scale` are distances per unit, or between two different `options`.
    """

    name: str
    is_number: bool
    unit: str
    weight: float
    missing: float | None
    options: tuple[str, ...]
    typical: float
    scale: float
    revealed_scale: float | None
    longest: float
    top: float

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
        return words.worth(self.scale, self.unit if self.is_number else None)

    @property
    def revealed_worth(self) -> str:
        """The same before people edited the weight."""
        scale = self.revealed_scale
        return "\N{EN DASH}" if scale is None else words.worth(scale, self.unit if self.is_number else None)

    @property
    def one_point(self) -> str:
        """Amount that counts one point."""
        return words.amount(words.figure(0.01 / self.scale), self.unit)

    @property
    def typical_text(self) -> str:
        """A typical difference, as people write it."""
        return words.amount(words.figure(self.typical), self.unit) if self.is_number else "any difference"

    def written(self, value: float) -> str:
        """One person's value, as people write it."""
        if (known := self.known(value)) is None:
            return "missing"
        return words.amount(f"{known:,.6g}", self.unit) if self.is_number else self.options[int(known)]

    def known(self, value: float) -> float | None:
        """A value of the coding, None where it is missing: categories count that as one more."""
        absent = math.isnan(value) if self.is_number else value >= len(self.options)
        return None if absent else float(value)

    def for_browser(self) -> dict[str, Any]:
        """Return what the page's script needs."""
        prefix, suffix = split_unit(self.unit)
        fields = ("name", "is_number", "unit", "weight", "missing", "options", "typical", "longest", "top")
        return {name: getattr(self, name) for name in fields} | {"prefix": prefix, "suffix": suffix}


def _columns(data: ReportData) -> list[ColumnView]:
    coding: Any = data.people.coding
    weights = data.metric.weights_of(coding)
    rates = data.metric.describe().set_index("column").loc[coding.names]
    typical = np.where(coding.is_number, _typical(data.people.rows), 1.0)
    counts = typical * weights.scales
    revealed = None if data.revealed is None else data.revealed.weights_of(coding).scales
    longest = max(counts.max(), 0.0 if revealed is None else (typical * revealed).max())
    return [
        ColumnView(
            name=str(column.name),
            is_number=bool(is_number),
            unit=rates["unit"].iloc[i] if is_number else "",
            weight=float(rates["weight"].iloc[i]),
            missing=None if np.isnan(weights.missing[i]) else float(weights.missing[i]),
            options=() if is_number else tuple(str(level) for level in column.levels),
            typical=float(typical[i]),
            scale=float(weights.scales[i]),
            revealed_scale=None if revealed is None else float(revealed[i]),
            longest=float(1.25 * longest or 1.0),  # the longest bar has room to grow
            top=max(1.0, float(2 * counts.max())) if is_number else 1.0,
        )
        for i, (column, is_number) in enumerate(zip(coding.columns, coding.is_number, strict=True))
    ]


def _typical(rows: FloatArray) -> FloatArray:
    """A usual difference in each column: the standard deviation among the people, or 1."""
    known = [column[~np.isnan(column)] for column in rows.T]
    return np.array([values.std() if len(values) and np.ptp(values) > 0 else 1.0 for values in known])


def _share(x: float, longest: float) -> float:
    return round(min(100.0, 100 * x / longest), 2)


def _pair_pictures(data: ReportData) -> dict[str, Any] | None:
    """The sampled pairs before and after; None without two people with scores."""
    sample = data.people.take(data.sample)
    if len(sample) < 2 or not data.scores:
        return None
    pairs = np.triu_indices(len(sample), 1)
    distances = data.metric.weights_of(sample.coding).pairwise(sample.rows, sample.rows)[pairs]
    gaps = {name: np.abs(np.subtract.outer(s, s))[pairs] for name, x in data.scores.items() for s in [x[data.sample]]}
    limit = pictures.axis_limit(max(float(gap.max()) for gap in gaps.values()))
    return {
        "limit": limit,
        "n_pairs": len(distances),
        "models": [(name, pictures.density(distances, gap, limit, data.epsilon)) for name, gap in gaps.items()],
    }


def _worst(data: ReportData, columns: list[ColumnView], audit: Audit) -> list[dict[str, Any]]:
    """The worst pairs that a search found, with what sets them apart."""
    cards = []
    for pair in audit.violations.head(_WORST_SHOWN).to_dict("records"):
        both, difference = [pair["row_a"], pair["row_b"]], pair["difference"]
        allowed = min(1.0, pair["distance"] + audit.tolerance)
        apart = [
            (column, column.written(a), column.written(b))
            for column, a, b in zip(columns, *data.people.rows[both], strict=True)
            if column.known(a) != column.known(b)
        ]
        cards.append(
            {
                "names": [data.name(position) for position in both],
                "apart": apart,
                "n_equal": len(columns) - len(apart),
                "allowed": allowed,
                "difference": difference,
                "allowed_bar": _share(allowed, max(allowed, difference)),
                "difference_bar": _share(difference, max(allowed, difference)),
            }
        )
    return cards


def _axis(measured: list[float]) -> dict[str, Any]:
    """Round limits around what was measured in all groups, in steps of 5 %."""
    known = measured or [0.0, 1.0]
    low, high = math.floor(min(known) * 20) / 20, math.ceil(max(known) * 20) / 20
    low = low if low < high else max(0.0, low - 0.05)
    high = high if low < high else low + 0.05
    return {"low": low, "high": high, "text": f"{100 * low:.0f} to {100 * high:.0f} %"}


def for_browser(data: ReportData, view: dict[str, Any]) -> dict[str, Any]:
    """Return what the page's script needs, and no more."""
    columns, scores = view["columns"], data.scores
    return {
        "p": "inf" if math.isinf(data.metric.p) else data.metric.p,
        "epsilon": data.epsilon,
        "promised": data.guarantee is not None,
        "limit": 1 if view["pairs"] is None else view["pairs"]["limit"],
        "columns": [column.for_browser() for column in columns],
        "people": [
            {
                "values": [column.known(x) for column, x in zip(columns, data.people.rows[i], strict=True)],
                "before": float(scores["before"][i]) if "before" in scores else None,
                "after": float(scores["after"][i]) if "after" in scores else None,
            }
            for i in data.sample
        ],
    }
