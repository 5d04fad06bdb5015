"""The record in words: lines for the page, minutes as Markdown, and comments for the metric file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from likewise.metric_file import MetricComments, as_rate
from likewise.metrics.units import in_points
from likewise.metrics.zero_weights import MUST_NOT_MATTER
from likewise.workbench.judging import describe
from likewise.workbench.state import SECTIONS, Event, Log, Session, Sheet

_MAX_NAMED = 6


_SAID = {
    "lock": "locked {column}: it must not matter",
    "unlock": "unlocked {column}",
    "undo": "took back no. {of}",
    "redo": "repeated no. {of}",
    "version": "saved the version “{title}”",
    "withdraw": "withdrew answer no. {of}",
    "explain": "on no. {of}: {text}",
    "note": "noted: {text}",
    "frontier": "designed metrics from strict to loose, from {n_people:,} people",
}


def describe_event(event: Event, before: Sheet) -> str:
    """What was done, in words; `before` has the weights until then."""
    match event["kind"]:
        case "weights":
            return str(event.get("what") or f"set {_named(event, before)}")
        case "start":
            return f"started anew: {str(event['how']).rstrip('.')}"
        case "unit":
            return f"said that {event['column']} is in {event['unit'] or 'no unit'}"
        case "answer":
            return "said: " + " and ".join(describe(row) for row in event["rows"])
        case "exported":
            return f"wrote {', '.join(event['files'])} to {event['folder']}"
        case kind:
            return _SAID[kind].format_map(event)


def _named(event: Event, before: Sheet) -> str:
    after = before.with_weights(event["set"])
    numeric, categorical, missing = (event["set"].get(section, {}) for section in SECTIONS)
    words = [f"{name} to “{meaning(after, name)}”" for name in [*numeric, *categorical]]
    words += [f"blanks of {name} to {in_points(weight)}" for name, weight in missing.items() if name not in numeric]
    more = len(words) - _MAX_NAMED
    return ", ".join(words[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def meaning(sheet: Sheet, name: str) -> str:
    """What a weight is worth: "1 point = $5", "one step = 8 points"; or 0, where only a lock is a decision."""
    if not sheet.weights["numeric"].get(name, sheet.weights["categorical"].get(name)):
        return MUST_NOT_MATTER if name in sheet.locked else "not used"
    return as_rate(str(sheet.metric.describe().set_index("column")["one point"][name]))


def record(session: Session) -> list[dict[str, Any]]:
    """All events in words, with their times, names and reasons."""
    log, found = Log([session.start]), []
    for event in session.events:
        text = describe_event(event, log.sheet)
        log.apply(event)
        reasons = [event["reason"]] if event["reason"] else []
        reasons += [f"{each['name']}: {each['text']}" for each in session.log.reasons.get(event["n"], ())]
        if event["kind"] != "explain":
            known = {name: event[name] for name in ("n", "time", "name", "kind")}
            found.append(known | {"text": text, "reasons": reasons})
    return found


def minutes(session: Session, facts: Mapping[str, Any] | None = None) -> str:
    """The minutes as Markdown.

    Parameters
    ----------
    session : Session
    facts : mapping, optional
        Figures of the present weights, by title.
    """
    sheet, lines = session.sheet, record(session)
    names = list(dict.fromkeys(line["name"] for line in lines))
    out = [
        f"# Minutes: a metric for {_cell(session.table['name'])}",
        "",
        f"Outcome: {_cell(session.table['target'])}. Present: {', '.join(map(_cell, names)) or 'nobody'}.",
        "",
        "## The weights",
        "",
        "| column | weight |",
        "|---|---|",
    ]
    for name in sheet.metric.columns:
        locked = " (locked)" if name in sheet.locked else ""
        out.append(f"| {_cell(name)} | {_cell(meaning(sheet, name))}{locked} |")
    for name, weight in sheet.weights["missing"].items():
        if sheet.weights["numeric"][name]:
            out.append(f"| {_cell(name)}, not known | {in_points(weight)} |")
    if facts:
        out += ["", "## What they do", "", *(f"- {_cell(title)}: {_cell(value)}" for title, value in facts.items())]
    if session.log.versions:
        out += ["", "## Versions", "", *(f"- {_cell(title)}" for title in session.log.versions)]
    out += ["", "## The record", ""]
    for line in lines:
        when = line["time"].replace("T", " ").removesuffix("+00:00")
        out.append(f"{line['n']}. {when} UTC, {_cell(line['name'])}: {_cell(line['text'])}.")
        out += [f"   - {_cell(reason)}" for reason in line["reasons"]]
    out += [
        "",
        "That a model satisfies these weights does not show that the weights are right: that is for the people named "
        "above to answer for.",
        "",
    ]
    return "\n".join(out)


def comments(session: Session) -> MetricComments:
    """The minutes as comments of a metric file: the record at the top, reasons beside the weights they are about."""
    above: dict[Any, tuple[str, ...]] = {}
    top = ["Minutes of the workbench:"]
    for line in record(session):
        reasons = f" ({'; '.join(line['reasons'])})" if line["reasons"] else ""
        top.append(f"{line['n']}. {line['time'][:10]} {line['name']}: {line['text']}{reasons}")
    # TOML allows no control characters in comments; names of columns may have some.
    above[None, None] = tuple("".join(sign for sign in line if sign.isprintable()) for line in top)
    return MetricComments(dict(session.sheet.units), above)


def _cell(text: Any) -> str:
    """Text with Markdown escaped."""
    safe = " ".join(str(text).split())
    for sign in "\\`*_[]|<>#":
        safe = safe.replace(sign, f"\\{sign}")
    return safe
