"""The cards of two people: pairs that the search found, and denied people with their comparators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likewise._typing import FloatArray
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import People
from likewise.metrics.units import number
from likewise.report import text as words
from likewise.report.columns import ColumnView, bar_length, columns_of
from likewise.report.data import ReportData, ReviewedFiles

_APART = 4  # columns with a weight in which a pair differs


def pair_cards(data: ReportData, columns: list[ColumnView], pairs: Any, name: str) -> list[dict[str, Any]]:
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
                **_apart(data.people, data.bound, columns, both),
                "allowed": allowed,
                "difference": difference,
                "allowed_bar": bar_length(allowed, max(allowed, difference)),
                "difference_bar": bar_length(difference, max(allowed, difference)),
            }
        )
    return cards


def file_cards(data: ReportData, review: ReviewedFiles) -> list[dict[str, Any]]:
    """Denied people, each with the closest comparator."""
    people = review.people
    if people is None:
        return []
    columns, bound, files = columns_of(data, people), data.bound_for(people), review.found.files
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
                **_apart(people, bound, columns, both, first=[str(name) for name in review.found.better]),
            }
        )
    return cards


def _apart(
    people: People, bound: BoundMetric, columns: list[ColumnView], both: list[int], first: Sequence[str] = ()
) -> dict[str, Any]:
    """Columns in which two people differ: all that must not matter, all those named `first`, then what counts most."""
    one, other = people.rows[both]
    order = np.lexsort((-bound.terms(one, other), bound.matters))
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
