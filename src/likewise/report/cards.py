"""Two people: the pair of which the page tells, pairs that the search found, denied people with their comparators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likewise._typing import FloatArray
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import People
from likewise.report import text as words
from likewise.report.columns import ColumnView, columns_of
from likewise.report.data import ReportData, ReviewedFiles
from likewise.report.pairs import differences

_APART = 4  # columns with a weight in which a pair differs


def pair_cards(data: ReportData, columns: list[ColumnView], pairs: Any, name: str) -> list[dict[str, Any]]:
    """Pairs of people, with their scores and what sets them apart."""
    cards = []
    for pair in pairs.to_dict("records"):
        both = [pair["row_a"], pair["row_b"]]
        cards.append(
            {
                "names": [data.name(position) for position in both],
                "scores": scores_of(data, data.shares[name][both]) if name in data.shares else [],
                **_apart(data.people, data.bound, columns, both),
                "allowed": min(1.0, pair["distance"] + data.epsilon),
                "distance": pair["distance"],
                "difference": pair["difference"],
            }
        )
    return cards


def story(data: ReportData, columns: list[ColumnView]) -> dict[str, Any] | None:
    """The pair of which the page tells first: what sets the two apart, and their scores by each model."""
    told = data.story
    if told is None:
        return None
    both = list(told.pair)
    outputs = {name: shares[both] for name, shares in data.shares.items()}
    gaps = np.abs(np.diff(next(iter(outputs.values())), axis=0))[0]
    shown = data.shown % len(gaps)
    if gaps[shown] < gaps.max() / 2:  # of several outcomes, the two differ in others
        shown = int(gaps.argmax())
    models = [
        {
            "name": name,
            "scores": scores_of(data, shares),
            "ends": (100 * shares[:, shown]).round(2).tolist(),
            "difference": float(differences(shares, np.array([0]), np.array([1]))[0]),
        }
        for name, shares in outputs.items()
    ]
    return {
        "names": [data.name(position) for position in both],
        "distance": told.distance,
        "allowed": min(1.0, told.distance + data.epsilon),
        "within": told.within,
        "models": models,
        "shown": shown,
        **_apart(data.people, data.bound, columns, both),
    }


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
                "scores": [] if shares is None else scores_of(data, shares[both]),
                "n_comparators": int(files["n_comparators"].iloc[i]),
                "distance": float(files["distance"].iloc[i]),
                **_apart(people, bound, columns, both, first=[str(name) for name in review.found.better]),
            }
        )
    return cards


def _apart(
    people: People, bound: BoundMetric, columns: list[ColumnView], both: list[int], first: Sequence[str] = ()
) -> dict[str, Any]:
    """Columns in which two people differ: all that people protect, all those named `first`, then what counts most.

    ``aside`` are columns of weight 0 for another reason, by its words.
    """
    one, other = people.rows[both]
    order = np.lexsort((-bound.terms(one, other), bound.matters))
    found = [(columns[i], one[i], other[i]) for i in order]
    found = [(column, a, b) for column, a, b in found if column.known(a) != column.known(b)]
    apart = [(column, column.written(a), column.written(b)) for column, a, b in found]
    hidden = [entry for entry in apart if not entry[0].weight]
    named = [entry for entry in apart if entry[0].weight and entry[0].name in first]
    others = [entry for entry in apart if entry[0].weight and entry[0].name not in first]
    aside: dict[str, list[str]] = {}
    for column, _, _ in hidden:
        if not column.is_protected:
            aside.setdefault(column.zero, []).append(column.name)
    return {
        "protected": [entry for entry in hidden if entry[0].is_protected],
        "apart": named + others[:_APART],
        "aside": aside,
        "n_more": len(others[_APART:]),
        "n_equal": len(columns) - len(apart),
    }


def scores_of(data: ReportData, shares: FloatArray) -> list[tuple[str, str, str]]:
    """Two people's scores for each outcome, with its name; those of one that is not named alone have none.

    Probabilities are rounded so that they add up to 100%, and what they differ by to the difference on the page.
    """
    if data.output_range:
        low, high = data.output_range
        a, b = (low + (high - low) * shares[:, 0]).tolist()
        return [("", words.figure(a), words.figure(b))]
    if shares.shape[1] == 1:
        return [("", *_rounded(np.hstack([shares, 1 - shares]))[0])]
    names = data.classes or [f"outcome {k}" for k in range(shares.shape[1])]
    return [(name, *both) for name, both in zip(names, _rounded(shares), strict=True)]


def _rounded(shares: FloatArray) -> list[tuple[str, str]]:
    """Two distributions in percent, that differ on paper by what their rounded difference is.

    Examples
    --------
    >>> _rounded(np.array([[0.33333, 0.33333, 0.33334], [0.16664, 0.41668, 0.41668]]))
    [('33.3%', '16.6%'), ('33.3%', '41.7%'), ('33.4%', '41.7%')]
    """
    change = shares[1] - shares[0]
    digits = 1 if np.abs(change).sum() >= 0.02 else 2
    unit = 100 * 10**digits
    first = _apportion(shares[0] * unit, unit)
    moved = round(float(np.abs(change).sum()) / 2 * unit)
    second = first + _apportion(np.maximum(change, 0) * unit, moved)
    second -= _apportion(np.maximum(-change, 0) * unit, moved, most=first)
    return [
        (f"{a / 10**digits:.{digits}f}%", f"{b / 10**digits:.{digits}f}%") for a, b in zip(first, second, strict=True)
    ]


def _apportion(parts: FloatArray, total: int, most: Any = np.inf) -> FloatArray:
    """Whole numbers close to the parts, at most `most`, that add up to the total: the largest remainders go up."""
    whole = np.floor(parts + 1e-9)
    order = np.argsort(whole - parts + (whole >= most), kind="stable")
    whole[order[: max(0, total - int(whole.sum()))]] += 1
    return whole
