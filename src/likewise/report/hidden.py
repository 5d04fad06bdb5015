"""Whether columns of weight 0 matter to another system: what is measured of them, and its tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from likewise._typing import FloatArray
from likewise.auditing.effect import Effect, effect
from likewise.auditing.file_review import FileReview
from likewise.auditing.group_audit import GroupAudit, audit_groups
from likewise.auditing.group_gaps import GroupGaps, group_gaps
from likewise.exceptions import InvalidInputError
from likewise.metrics.base import Metric
from likewise.metrics.zero_weights import ZERO_REASONS
from likewise.report import text as words
from likewise.report.data import HiddenColumn, ReportData
from likewise.report.tables import protected_first
from likewise.verification.domain import Domain
from likewise.verification.one_hot import find_one_hot

_COLUMNS = 3  # each takes seconds
_BOXES = 1000  # and not seconds, so that the page is the same on every machine
_QUERIES = 20_000
_GROUPED = ["denied", "approved", "n_denied", "n_approved", "n_files", "share", "n_pairs"]
_DASH = "\N{EN DASH}"
_VALUES = 20  # most groups by one column
_FROM_SCORES = (
    "There are scores and no model here. What exchanging {} alone would change cannot be measured from scores alone."
)
_NOT_TAKEN = (
    "The model does not take {0}: exchanging {0} alone changes none of its scores. Other columns may stand in for it."
)


def _shown(metric: Metric, table: pd.DataFrame) -> list[Any]:
    """The columns of weight 0 that are measured, in the order of `protected_first`."""
    return sorted((name for name in metric.hidden if name in table), key=protected_first(metric))[:_COLUMNS]


def _can_group(values: pd.Series[Any]) -> bool:
    return 2 <= values.nunique(dropna=False) <= _VALUES


def measure_hidden(
    model: Any,
    asked: pd.DataFrame | None,
    domain: Domain | None,
    table: pd.DataFrame,
    scores: FloatArray,
    metric: Metric,
    output_range: tuple[float, float] | None,
    favourable: Any,
    end: str | None,
) -> tuple[HiddenColumn, ...]:
    """The effect of each column on a model (None without one), and gaps of groups in `scores` of the people `table`.

    `favourable` is what is better of the model's outputs, `end` the better end of the scores.
    """
    found: list[HiddenColumn] = []
    for name in _shown(metric, table):
        done = [each.effect for each in found if each.effect is not None and name in each.effect.columns]
        try:
            changed, why = (done[0], "") if done else _effect(model, asked, name, domain, output_range, favourable)
        except InvalidInputError as error:
            changed, why = None, f"The effect of exchanging {name} was not measured: {error}"
        gaps, none = None, ""
        if scores.ndim > 1:
            none = "Of several outcomes, the scores of groups are not compared."
        elif not _can_group(table[name]):
            none = f"Groups by {name} are not compared: it must hold 2 to {_VALUES} different values."
        else:
            try:
                gaps = group_gaps(
                    None, table, metric, name, predictions=scores, output_range=output_range, favourable=end
                )
            except InvalidInputError as error:
                none = f"Gaps of groups by {name} are not compared: {error}"
        found.append(HiddenColumn(str(name), changed, why, gaps, none))
    return tuple(found)


def _effect(
    model: Any,
    asked: pd.DataFrame | None,
    name: Any,
    domain: Domain | None,
    output_range: tuple[float, float] | None,
    favourable: Any,
) -> tuple[Effect | None, str]:
    """The effect of exchanging a column, or why there is none."""
    if model is None or asked is None:
        return None, _FROM_SCORES.format(name)
    if name not in asked and name not in {each.name for each in find_one_hot(asked)}:
        return None, _NOT_TAKEN.format(name)
    limits: Any = {"max_seconds": None, "max_boxes": _BOXES, "n_queries": _QUERIES}
    return effect(model, asked, name, domain=domain, output_range=output_range, favourable=favourable, **limits), ""


def audit_hidden(
    table: pd.DataFrame,
    scores: FloatArray,
    metric: Metric,
    output_range: tuple[float, float] | None,
    favourable: str | None,
) -> GroupAudit | None:
    """Who gets the higher score by these columns; None where groups are not compared."""
    columns = [name for name in _shown(metric, table) if _can_group(table[name])]
    if scores.ndim > 1 or not columns:
        return None
    return audit_groups(
        None, table, metric, columns, predictions=scores, output_range=output_range, favourable=favourable
    )


def hidden_columns(data: ReportData) -> list[dict[str, Any]]:
    """The section's texts and tables, by column."""
    reasons = data.metric.zero_reasons
    return [
        {
            "name": each.name,
            "zero": ZERO_REASONS[reasons[each.name]].short if each.name in reasons else words.WEIGHT_0,
            "effect": None if each.effect is None else _told_effect(each.effect),
            "no_effect": each.no_effect,
            "groups": None if data.group_audit is None else _told_groups(data.group_audit, each.name),
            "gaps": None if each.gaps is None else _told_gaps(each.gaps),
            "no_gaps": each.no_gaps,
        }
        for each in data.hidden
    ]


def not_measured(data: ReportData) -> list[str]:
    """The columns of weight 0 that were left out, as there are too many."""
    measured = {each.name for each in data.hidden}
    return [str(name) for name in data.metric.hidden if str(name) not in measured and name in data.people.table]


def review_groups(found: FileReview) -> dict[str, Any] | None:
    """Denied people of each group with a comparator in each, as a table; None without groups."""
    if found.groups is None:
        return None
    rows = (
        (denied, approved, words.whole(n_denied), words.whole(n_files), _share(share), words.whole(n_pairs))
        for denied, approved, n_denied, _, n_files, share, n_pairs in found.groups[_GROUPED].itertuples(index=False)
    )
    head = [found.decisions[0], f"beside {found.decisions[1]}", "People", "With a comparator there", "Share", "Pairs"]
    return _table("Comparators by group", list(map(str, head)), rows)


def _table(title: str, head: list[str], rows: Iterable[Iterable[Any]]) -> dict[str, Any] | None:
    """A table for the template; None without rows."""
    found = [[f"{value:.10g}" if isinstance(value, float) else str(value) for value in row] for row in rows]
    return {"title": title, "head": head, "rows": found} if found else None


def _told_effect(found: Effect) -> dict[str, Any]:
    told, pair = found.labels.written, None
    if found.pair is not None:
        rows = found.pair.astype(object).T.reset_index().to_numpy().tolist()
        pair = _table("Two people who differ in the column alone", ["Column", "One", "The other"], rows)
    title = f"Who gains (favourable: {found.favourable})" if found.favourable else "Who gets the higher score"
    moved = found.directions[found.directions["largest"] > 0]
    directions = (
        (first, other, told(mean), found.labels.between(low, high) if low == low else "", words.percent(share))
        for first, other, mean, low, high, share, *_ in moved.to_numpy().tolist()
    )
    ends = ["Value", "Instead of", "On average", "In the population, at 95%", "Share of people"]
    return {
        "headline": found.headline[0].upper() + found.headline[1:],
        "coverage": found.coverage[len(found.headline) + 2 :],
        "unit": found.labels.statement,
        "only_asked": found.proven is None,
        "directions": _table(title, ends, directions),
        "pair": pair,
    }


def _told_groups(found: GroupAudit, name: str) -> dict[str, Any] | None:
    more = "n_favoured" if found.favourable else "n_higher"
    head = ["Value", "Pairs", "Favoured in" if found.favourable else "Higher in", "Share"]
    groups = found.groups[found.groups["column"].astype(str) == name]
    columns = groups[["value", "n_pairs", more, "share", "n_alike", "share_alike", "p_value"]]
    rows = (
        (
            value,
            f"{n:,}",
            f"{ahead:,}",
            _share(share),
            f"{alike:,}",
            _share(of_alike),
            _DASH if np.isnan(p) else f"{p:.4f}",
        )
        for value, n, ahead, share, alike, of_alike, p in columns.itertuples(index=False)
    )
    who = f"Who is favoured ({found.favourable})" if found.favourable else "Who has the higher score"
    return _table(f"{who}, in pairs above their distance", [*head, "Alike", "Share of alike", "p-value"], rows)


def _told_gaps(found: GroupGaps) -> dict[str, Any]:
    gaps = (
        (
            row["value"],
            words.whole(row["n"]),
            *(found.labels.written(row[key]) for key in ("gap", "allowed", "shuffled")),
        )
        for row in found.gaps.to_dict("records")
    )
    head = ["Value", "People", "Gap to the others", "Largest within the metric", "The same, shuffled"]
    proxies = ((column, f"{auc:.3f}") for column, auc in found.proxies.to_numpy().tolist())
    return {
        "headline": found.headline[0].upper() + found.headline[1:],
        "table": _table("Gaps of mean scores", head, gaps),
        "proxies": _table("Area under the curve", ["Column", "AUC"], proxies),
    }


def _share(value: float) -> str:
    return _DASH if np.isnan(value) else words.percent(value)
