"""The state of a workbench: an append-only log of events in one file, and what follows from it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from likewise._writing import atomic_write
from likewise.design.judgements_table import COLUMNS, KINDS, hidden_cell
from likewise.exceptions import FileError, InvalidInputError
from likewise.metrics.table import TableMetric
from likewise.reveal.linear import least_missing_weight

FORMAT = "likewise workbench 1"
EDITED = "Edited since."
SECTIONS = ("numeric", "categorical", "missing")
_MAX_TEXT = 2000

Event = dict[str, Any]
Weights = dict[str, dict[str, float]]


class ConflictError(InvalidInputError):
    """Another browser has changed what this one wanted to change."""


@dataclass(frozen=True)
class Sheet:
    """Weights with their units, the columns that are locked at 0, and where the weights came from.

    `weights` has the sections of a metric file: numeric, categorical and missing.
    """

    weights: Weights
    units: dict[str, str]
    locked: tuple[str, ...]
    how: str = ""

    @property
    def metric(self) -> TableMetric:
        """The weights as a metric."""
        numeric, categorical, missing = (self.weights[section] for section in SECTIONS)
        return TableMetric(numeric, categorical, missing=missing, units=self.units)

    def with_weights(self, given: Mapping[str, Mapping[str, float]], how: str | None = None) -> Sheet:
        """The same with some other weights; those of locked columns stay 0."""
        weights = deepcopy(self.weights)
        for section in SECTIONS:
            for name, weight in given.get(section, {}).items():
                if name in weights[section]:
                    weights[section][name] = 0.0 if name in self.locked and section != "missing" else float(weight)
        return replace(self, weights=weights, how=self.how if how is None else how)


@dataclass
class Log:
    """What follows from the events so far."""

    sheets: list[Sheet]
    sources: list[int] = field(default_factory=lambda: [0])  # event that made each sheet
    position: int = 0
    versions: dict[str, Sheet] = field(default_factory=dict)
    answers: dict[int, Event] = field(default_factory=dict)
    reasons: dict[int, list[Event]] = field(default_factory=dict)
    frontier: Event | None = None

    @property
    def sheet(self) -> Sheet:
        """The present weights."""
        return self.sheets[self.position]

    def push(self, sheet: Sheet, event: int) -> None:
        """Append a sheet; what was undone cannot be redone."""
        del self.sheets[self.position + 1 :], self.sources[self.position + 1 :]
        self.sheets.append(sheet)
        self.sources.append(event)
        self.position += 1

    def apply(self, event: Event) -> None:
        """Apply an event."""
        sheet, kind = self.sheet, event["kind"]
        if kind == "start":
            self.push(sheet.with_weights(event["set"], event["how"]), event["n"])
        elif kind == "weights":
            how = f"{sheet.how} {EDITED}" if sheet.how and not sheet.how.endswith(EDITED) else sheet.how
            self.push(sheet.with_weights(event["set"], how), event["n"])
        elif kind == "lock":
            zero = {event["column"]: 0.0}
            locked = replace(sheet, locked=(*sheet.locked, event["column"]))
            self.push(locked.with_weights({"numeric": zero, "categorical": zero}), event["n"])
        elif kind == "unlock":
            locked_still = tuple(name for name in sheet.locked if name != event["column"])
            self.push(replace(sheet, locked=locked_still), event["n"])
        elif kind == "unit":
            units = {**sheet.units, event["column"]: event["unit"]}
            self.push(replace(sheet, units={name: unit for name, unit in units.items() if unit}), event["n"])
        elif kind in ("undo", "redo"):
            self.position += -1 if kind == "undo" else 1
        elif kind == "version":
            self.versions[event["title"]] = sheet
        elif kind == "answer":
            self.answers[event["n"]] = event
        elif kind == "withdraw":
            self.answers.pop(event["of"])
        elif kind == "explain":
            self.reasons.setdefault(event["of"], []).append(event)
        elif kind == "frontier":
            self.frontier = event


class Session:
    """The log of a workbench, written whole after each event.

    Parameters
    ----------
    path : Path
        Opened if it exists, and made otherwise.
    table : dict
        What identifies the table: ``name``, ``target`` and ``fingerprint``. A file of another table is refused.
    start : Sheet
        All columns, for a new file.
    ranges : mapping from numeric column to (low, high)
        Of the people, for weights of blanks.
    """

    def __init__(
        self, path: Path, table: Mapping[str, Any], start: Sheet, ranges: Mapping[str, tuple[float, float]]
    ) -> None:
        self.path, self.table, self.ranges = path, dict(table), dict(ranges)
        self.events: list[Event] = []
        self._written: tuple[int, int] | None = None
        self.reopened = path.exists()
        if self.reopened:
            start = self._open()
            self._written = self._stamp()
        self.start = start
        self.log = self._replayed()
        if not self.reopened:
            self._write()

    # -- the file ------------------------------------------------------------------------------------------------

    def _open(self) -> Sheet:
        try:
            given = json.loads(self.path.read_text(encoding="utf-8"))
            if given["format"] != FORMAT:
                raise ValueError
            self.events, start = given["events"], given["start"]
            sheet = Sheet(start["weights"], start["units"], tuple(start["locked"]), start["how"])
            found = given["table"]
        except OSError as error:
            raise FileError(f"Cannot read {self.path}: {error.strerror}.") from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise FileError(
                f"{self.path} is not a workbench file of this version of likewise. Give another --state."
            ) from None
        if found.get("fingerprint") != self.table["fingerprint"]:
            raise FileError(
                f"{self.path} was made with another table or target ({found.get('name')}, {found.get('target')}), or "
                "the table has changed since. Give another --state to start afresh."
            )
        return sheet

    def _write(self) -> None:
        if self._stamp() != self._written:
            raise FileError(
                f"{self.path} was changed by another process, so it is not replaced. Stop the other workbench, and "
                "open this one again."
            )
        document = {"format": FORMAT, "table": self.table, "start": asdict(self.start), "events": self.events}
        with atomic_write(self.path) as temporary, temporary.open("w", encoding="utf-8") as file:
            json.dump(document, file, indent=1, ensure_ascii=False, allow_nan=False)
            file.flush()
            os.fsync(file.fileno())
        self._written = self._stamp()

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size

    # -- events --------------------------------------------------------------------------------------------------

    def _replayed(self) -> Log:
        log = Log([self.start])
        for event in self.events:
            log.apply(event)
        return log

    @property
    def sheet(self) -> Sheet:
        """The present weights."""
        return self.log.sheet

    @property
    def last(self) -> int:
        """Number of the last event."""
        return len(self.events)

    @property
    def last_change(self) -> int:
        """Number of the last event that changed weights, locks or units; 0 if none has."""
        return next((event["n"] for event in reversed(self.events) if _changes_sheet(event)), 0)

    def act(self, kind: str, name: str, *, seen: int | None = None, browser: str = "", **data: Any) -> Event:
        """Append an event, on disk when this returns; all or nothing.

        Parameters
        ----------
        kind : str
            A key of `KINDS_OF_EVENTS`.
        name : str
            Who does it.
        seen : int, optional
            The last event that this person's browser has shown. Undo and redo are refused if another browser has
            changed weights since.
        browser : str
            Tells browsers apart.
        data : of the event
        """
        check = KINDS_OF_EVENTS.get(kind)
        if check is None:
            raise InvalidInputError(f"kind must be one of {', '.join(KINDS_OF_EVENTS)}; got {str(kind)[:40]!r}.")
        event: Event = {
            "n": self.last + 1,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "name": _text("name", name, needed="Enter your name: the record names who decided what."),
            "browser": str(browser)[:40],
            "kind": kind,
            "reason": _text("reason", data.pop("reason", "")),
        }
        event |= check(self, data, event, seen)
        self.events.append(event)
        try:
            self.log.apply(event)
            self._write()
        except BaseException:
            self.events.pop()
            self.log = self._replayed()
            raise
        return event

    def overrode(self, event: Event, seen: int | None) -> list[Event]:
        """Changes of the same weights by other browsers that the author of `event` had not seen."""
        names = set(_named(event))
        since = self.events[event["n"] - 1 if seen is None else seen : event["n"] - 1]
        return [each for each in since if each["browser"] != event["browser"] and names & set(_named(each))]

    def judgements(self) -> list[dict[str, Any]]:
        """The answers that stand, as rows of a table of judgements; ``comment`` has the number of their event."""
        rows = []
        for event in self.log.answers.values():
            known = {"judge": event["name"], "time": event["time"], "comment": str(event["n"])}
            rows += [{name: row.get(name) for name in COLUMNS} | known for row in event["rows"]]
        return rows


# -- checks of events: each returns the data to keep ------------------------------------------------------------------


def _text(what: str, value: Any, *, needed: str = "", max_length: int = _MAX_TEXT) -> str:
    text = " ".join(str(value if value is not None else "").split())
    text = "".join(sign for sign in text if sign.isprintable())
    if needed and not text:
        raise InvalidInputError(needed)
    if len(text) > max_length:
        raise InvalidInputError(f"{what} must have at most {max_length:,} characters; got {len(text):,}.")
    return text


def _column(session: Session, data: dict[str, Any]) -> str:
    weights, name = session.sheet.weights, data.get("column")
    if not isinstance(name, str) or (name not in weights["numeric"] and name not in weights["categorical"]):
        raise InvalidInputError(f"column must be a column of the metric; got {str(name)[:80]!r}.")
    return name


def _weights(session: Session, data: dict[str, Any], event: Event, seen: int | None) -> Event:
    given, sheet = data.get("set"), session.sheet
    if not isinstance(given, dict) or not any(given.values()):
        raise InvalidInputError("set must be weights by section and column; got none.")
    kept: Weights = {}
    for section, part in given.items():
        if section not in SECTIONS or not isinstance(part, dict):
            raise InvalidInputError(f"set must have the sections {', '.join(SECTIONS)}; got {str(section)[:40]!r}.")
        for name, weight in part.items():
            if name not in sheet.weights[section]:
                raise InvalidInputError(f"set must name columns of the metric; got {str(name)[:80]!r} in {section}.")
            if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not math.isfinite(weight):
                raise InvalidInputError(f"The weight of {name!r} must be a number, at least 0; got {str(weight)[:40]}.")
            if weight and name in sheet.locked and section != "missing":
                if event["kind"] == "start":
                    continue  # the other weights are taken, and this one stays 0
                raise InvalidInputError(f"{name} is locked at 0: it must not matter. Unlock it first, and say why.")
            kept.setdefault(section, {})[name] = float(weight)
    _add_blanks(session, kept)
    sheet.with_weights(kept).metric  # noqa: B018 (the metric checks its weights)
    found: Event = {"set": kept}
    if data.get("what"):
        found["what"] = _text("what", data["what"], max_length=200)
    if event["kind"] == "start":
        found["how"] = _text("how", data.get("how", ""))
    return found


def _add_blanks(session: Session, kept: Weights) -> None:
    """A column that begins to matter gets the least weight of blanks that leaves it its full effect."""
    sheet = session.sheet
    for name, weight in kept.get("numeric", {}).items():
        known = sheet.weights["missing"].get(name)
        if weight and known == 0 and name not in kept.get("missing", {}) and name in session.ranges:
            kept.setdefault("missing", {})[name] = least_missing_weight(weight, *session.ranges[name])


def _lock(session: Session, data: dict[str, Any], event: Event, seen: int | None) -> Event:
    name = _column(session, data)
    if (name in session.sheet.locked) == (event["kind"] == "lock"):
        raise InvalidInputError(f"{name} is {'already' if event['kind'] == 'lock' else 'not'} locked.")
    if event["kind"] == "unlock" and not event["reason"]:
        raise InvalidInputError(f"Say why {name} may matter: unlocking it needs a reason for the record.")
    return {"column": name}


def _unit(session: Session, data: dict[str, Any], event: Event, seen: int | None) -> Event:
    return {"column": _column(session, data), "unit": _text("unit", data.get("unit", ""), max_length=60)}


def _step(session: Session, data: dict[str, Any], event: Event, seen: int | None) -> Event:
    log = session.log
    if seen is not None:
        for each in session.events[seen:]:
            if each["browser"] != event["browser"] and _changes_sheet(each):
                raise ConflictError(f"{each['name']} has changed the weights since. Look first, then {event['kind']}.")
    forward = event["kind"] == "redo"
    if not 0 <= log.position + (1 if forward else -1) < len(log.sheets):
        raise InvalidInputError(f"There is nothing to {event['kind']}.")
    return {"of": log.sources[log.position + (1 if forward else 0)]}


def _version(session: Session, data: dict[str, Any], event: Event, seen: int | None) -> Event:
    title = _text("title", data.get("title"), needed="Give the version a name.", max_length=80)
    if title in session.log.versions:
        raise InvalidInputError(f"There is a version {title!r} already. Give this one another name.")
    return {"title": title}


def _answer(session: Session, data: dict[str, Any], event: Event, seen: int | None) -> Event:
    rows = data.get("rows")
    if not isinstance(rows, list) or not 1 <= len(rows) <= 2:
        raise InvalidInputError("rows must hold one or two answers.")
    kept = []
    for row in rows:
        if not isinstance(row, dict) or row.get("kind") not in KINDS:
            raise InvalidInputError(f"The kind of an answer must be one of {', '.join(KINDS)}.")
        points = row.get("points")
        if row["kind"] in ("at_most", "at_least"):
            if isinstance(points, bool) or not isinstance(points, (int, float)) or not 0 <= points <= 100:
                raise InvalidInputError(f"points must be a number from 0 to 100; got {str(points)[:40]}.")
        else:
            points = None
        people = {side: row[side] for side in "abcd" if row.get(side) is not None}
        if not {"a", "b"} <= set(people) or (row["kind"] == "closer") != ({"c", "d"} <= set(people)):
            raise InvalidInputError("An answer must name two people, and a comparison four.")
        if not all(isinstance(label, (str, int)) and not isinstance(label, bool) for label in people.values()):
            raise InvalidInputError("People must be named by their number or id.")
        kept.append({"kind": row["kind"], **people, "points": points, "hidden": hidden_cell(session.sheet.locked)})
    return {"rows": kept}


def _of_answer(session: Session, data: dict[str, Any], event: Event, seen: int | None) -> Event:
    if data.get("of") not in session.log.answers:
        raise InvalidInputError("of must be the number of an answer that stands.")
    return {"of": data["of"]}


def _explain(session: Session, data: dict[str, Any], event: Event, seen: int | None) -> Event:
    of = data.get("of")
    if not isinstance(of, int) or isinstance(of, bool) or not 1 <= of < event["n"]:
        raise InvalidInputError("of must be the number of an event in the record.")
    return {"of": of, "text": _text("text", data.get("text"), needed="Say why.")}


def _note(session: Session, data: dict[str, Any], event: Event, seen: int | None) -> Event:
    return {"text": _text("text", data.get("text"), needed="Write something first.")}


def _frontier(session: Session, data: dict[str, Any], event: Event, seen: int | None) -> Event:
    return {name: data[name] for name in ("points", "locked", "loss_name", "n_people", "n_folds")}


def _exported(session: Session, data: dict[str, Any], event: Event, seen: int | None) -> Event:
    return {"folder": str(data["folder"]), "files": [str(name) for name in data["files"]]}


KINDS_OF_EVENTS = {
    "weights": _weights,
    "start": _weights,
    "lock": _lock,
    "unlock": _lock,
    "unit": _unit,
    "undo": _step,
    "redo": _step,
    "version": _version,
    "answer": _answer,
    "withdraw": _of_answer,
    "explain": _explain,
    "note": _note,
    "frontier": _frontier,
    "exported": _exported,
}


def _changes_sheet(event: Event) -> bool:
    return event["kind"] in ("weights", "start", "lock", "unlock", "unit", "undo", "redo")


def _named(event: Event) -> list[str]:
    """Columns that an event is about."""
    if event["kind"] in ("weights", "start"):
        return [name for part in event["set"].values() for name in part]
    return [event["column"]] if "column" in event else []
