"""The columns of a report's metric, for the table of exchange rates, the sliders and the cards."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise._typing import FloatArray
from likewise.kernel.schema import People
from likewise.metrics.units import Unit, number
from likewise.metrics.zero_weights import ZERO_REASONS
from likewise.report import text as words
from likewise.report.data import ReportData


@dataclass(frozen=True)
class ColumnView:
    """A column for the table of exchange rates, the sliders and the comparer.

    Columns are compared by what a `typical` difference counts, on one linear scale up to `longest`; a slider counts
    `top` at its right end.

    Attributes
    ----------
    entry : dict
        What `BoundMetric.to_dict` says of the column, by which the page's script computes distances.
    unit : str
    options : tuple of str
        Categories, by their codes.
    typical, longest, top : float
    reason : str or None
        Why a weight is 0, if the metric says it.
    limits : tuple of float, or None
        Of numbers that are predicted.
    """

    entry: dict[str, Any]
    unit: str
    options: tuple[str, ...]
    typical: float
    longest: float
    top: float
    reason: str | None
    limits: words.Limits = None

    @property
    def name(self) -> str:
        """Name of the column."""
        return str(self.entry["column"])

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers."""
        return bool(self.entry["kind"] == "numeric")

    @property
    def weight(self) -> float:
        """Distance per unit, or between two categories that are furthest apart."""
        return float(self.entry["weight"])

    @property
    def missing(self) -> float | None:
        """Distance between a number and a missing one; None where missing numbers are refused."""
        return self.entry["missing"]  # type: ignore[no-any-return]

    @property
    def zero(self) -> str:
        """What is said of a weight of 0."""
        return words.WEIGHT_0 if self.reason is None else ZERO_REASONS[self.reason].short

    @property
    def is_protected(self) -> bool:
        """Whether people set the weight to 0; also where the metric does not say who did."""
        return not self.weight and self.reason in (None, "protected")

    @property
    def short_unit(self) -> str:
        """The unit without what a percentage is of, which the column's name says."""
        return "%" if self.unit.startswith("%") else self.unit

    @property
    def counts(self) -> float:
        """Distance of a typical difference."""
        return self.typical * self.weight

    @property
    def bar(self) -> float:
        """Length of its bar, in percent."""
        return round(min(100.0, 100 * self.counts / self.longest), 2)

    @property
    def position(self) -> int:
        """Where a slider of 200 steps stands. Its cube is what counts: small weights need the finest steps."""
        return min(200, max(1 if self.counts > 0 else 0, round(200 * math.cbrt(self.counts / self.top))))

    @property
    def worth(self) -> str:
        """Its exchange rate."""
        unit = self.unit if self.is_number else None
        return words.worth(self.weight, unit, self.limits) if self.weight else self.zero

    @property
    def one_point(self) -> str:
        """Amount that counts one point."""
        return words.amount(0.01 / self.weight, self.short_unit)

    @property
    def typical_text(self) -> str:
        """A typical difference, as people write it."""
        return words.amount(self.typical, self.unit) if self.is_number else "any difference"

    def written(self, value: float) -> str:
        """One person's value, as people write it."""
        if (known := self.known(value)) is None:
            return "missing"
        if not self.is_number:
            return self.options[int(known)]
        is_code = any(known == code["value"] for code in self.entry.get("special", ()))
        return number(known) if is_code else Unit.of(self.short_unit).written(known)

    def known(self, value: float) -> float | None:
        """A code, or None for a missing value: in a categorical column, missing is one more category."""
        absent = math.isnan(value) if self.is_number else value >= len(self.options)
        return None if absent else float(value)

    def for_browser(self) -> dict[str, Any]:
        """Return what the page's script needs."""
        unit = Unit.of(self.unit)
        return self.entry | {
            "unit": self.unit,
            "typical": self.typical,
            "longest": self.longest,
            "top": self.top,
            "reason": self.reason,
            "zero": self.zero,
            "factor": unit.factor,
            "prefix": unit.prefix,
            "suffix": unit.after(one=False),
            "suffix_of_one": unit.after(one=True),
            "one": unit.one,
        }


def columns_of(data: ReportData, people: People) -> list[ColumnView]:
    """The columns of the report's metric, as some people are encoded."""
    encoder: Any = people.encoder
    bound = data.bound_for(people)
    rates = data.metric.describe().set_index("column").loc[encoder.names]
    typical = np.where(encoder.is_number, _typical(bound.numbers(people.rows)), 1.0)
    counts = typical * bound.weights
    return [
        ColumnView(
            entry,
            unit=rates["unit"].iloc[i] if encoder.is_number[i] else "",
            options=() if encoder.is_number[i] else tuple(str(level) for level in encoder.columns[i].levels),
            typical=float(typical[i]),
            longest=float(1.25 * counts.max() or 1.0),  # the longest bar has room to grow
            top=max(1.0, float(2 * counts.max())) if encoder.is_number[i] else 1.0,
            reason=data.metric.zero_reasons.get(encoder.names[i]),
            limits=data.output_range,
        )
        for i, entry in enumerate(bound.to_dict()["columns"])
    ]


def _typical(rows: FloatArray) -> FloatArray:
    """A typical difference in each column: the standard deviation of the people, or 1."""
    known = [column[~np.isnan(column)] for column in rows.T]
    return np.array([values.std() if len(values) and np.ptp(values) > 0 else 1.0 for values in known])
