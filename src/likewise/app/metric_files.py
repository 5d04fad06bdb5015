"""Metrics as files that people read and edit: weights with what they mean, units, and comments that are kept."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from likewise._writing import atomic_write
from likewise.errors import FileError
from likewise.metrics.tabular import TableMetric
from likewise.metrics.units import Unit

_HEAD = (
    "A distance between people. Two people at distance 0.05 may be treated differently by 5 percentage points.",
    "Edit the weights, then use this file with likewise compare, enforce or audit. 0 means: must not matter.",
)
_MEANINGS = {
    "numeric": "Weight per unit of the column, and the difference that is worth one percentage point.",
    "categorical": "Weight of any two different values, between 0 and 1.",
    "missing": "Weight between a person who has the number and one who has not, between 0 and 1.",
    "units": "What one unit of a column is; shown in reports.",
}
_OWN_NOTES = ("Revealed ", "Set to 0", "Scaled by ")
NOT_USED = "not used by this model"

_Place = tuple[str | None, str | None]  # section and key


@dataclass(frozen=True)
class Words:
    """What people have written into a metric file: units, and comments by their place."""

    units: Mapping[str, str] = field(default_factory=dict)
    above: Mapping[_Place, tuple[str, ...]] = field(default_factory=dict)
    beside: Mapping[_Place, str] = field(default_factory=dict)

    @property
    def n_comments(self) -> int:
        """How many comments there are."""
        return sum(map(len, self.above.values())) + len(self.beside)


def write_metric(
    metric: TableMetric,
    path: str | Path,
    *,
    note: str = "",
    words: Words | None = None,
    unused: Collection[str] = (),
) -> None:
    """Write a metric as TOML that people can edit, with what each weight means as a comment."""
    with atomic_write(path) as temporary:
        temporary.write_text(format_metric(metric, note=note, words=words, unused=unused), encoding="utf-8")


def format_metric(
    metric: TableMetric, *, note: str = "", words: Words | None = None, unused: Collection[str] = ()
) -> str:
    """Return the text of a metric file; `unused` are columns of weight 0 that nobody has set to 0."""
    import tomlkit

    words, worth = words or Words(), meanings(metric, unused)
    document = tomlkit.document()
    placed: set[_Place] = {(None, None), (None, "p")} | {(name, None) for name in _MEANINGS}
    placed |= {(section, str(column)) for section in _MEANINGS for column in getattr(metric, section)}
    # What was written about a column that is gone, and what stood at the end, comes first: it is not lost.
    stray = [line for place, lines in words.above.items() if place not in placed for line in lines]
    stray += [f"{place[1]}: {text}" for place, text in words.beside.items() if place not in placed]
    for line in (*_HEAD, *note.splitlines(), *words.above.get((None, None), ()), *stray):
        document.add(tomlkit.comment(line))
    _add(document, None, "p", _number(metric.p), words)
    for section, meaning in _MEANINGS.items():
        values: Mapping[Any, Any] = getattr(metric, section)
        if not values:
            continue
        table = tomlkit.table()
        for line in (meaning, *words.above.get((section, None), ())):
            table.add(tomlkit.comment(line))
        for column, value in values.items():
            given = value if isinstance(value, str) else _number(value)
            comment = worth[column] if section in ("numeric", "categorical") else ""
            if section == "numeric" and value:
                comment = f"1 point = {comment}"
            _add(table, section, column, given, words, comment)
        document.add(tomlkit.nl())
        document.add(section, table)
    return tomlkit.dumps(document)


def meanings(metric: TableMetric, unused: Collection[str] = ()) -> dict[str, str]:
    """What each weight means: the difference worth one point, or that the column must not matter."""
    shown = metric.describe()
    worth = dict(zip(shown["column"], shown["one point"], strict=True))
    return worth | {name: NOT_USED for name in unused if name in worth}


def _add(where: Any, section: str | None, key: str, value: Any, words: Words, comment: str = "") -> None:
    import tomlkit

    for line in words.above.get((section, key), ()):
        where.add(tomlkit.comment(line))
    item = tomlkit.item(value)
    comment = "; ".join(part for part in (comment, words.beside.get((section, key), "")) if part)
    if comment:
        item.comment(" ".join(comment.split()))
    where.add(key, item)


def read_words(path: str | Path) -> Words:
    """Read the units and comments of a metric file; what likewise wrote itself is left out."""
    text, metric = _read_text(path), read_metric(path)
    units = {str(name): unit for name, unit in metric.units.items()}
    above: dict[_Place, tuple[str, ...]] = {}
    beside: dict[_Place, str] = {}
    section, waiting = None, list[str]()
    for line in map(str.strip, text.splitlines()):
        if line.startswith("#"):
            comment = line.lstrip("# ")
            if comment and comment not in (*_HEAD, *_MEANINGS.values()) and not comment.startswith(_OWN_NOTES):
                waiting.append(comment)
            continue
        key, comment = None, ""
        if line.startswith("["):
            section = line.split("]")[0].strip("[ \t\"'")
        elif not line or (entry := _entry(line)) is None:
            continue
        else:
            key, comment = entry
            comment = _by_people(comment, units.get(key, ""))
        if waiting:
            above[section, key] = (*above.get((section, key), ()), *waiting)
            waiting = []
        if comment:
            beside[section, str(key)] = comment
    if waiting:
        above[None, None] = tuple(waiting)
    return Words(units, above, beside)


def _entry(line: str) -> tuple[str, str] | None:
    """Key and comment of a line."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(line)
    except TOMLKitError:
        return None  # a part of something longer
    key = next(iter(document), None)
    item: Any = None if key is None else document.item(key)
    return None if item is None else (str(key), item.trivia.comment.lstrip("# "))


def _by_people(comment: str, unit: str) -> str:
    """A comment without what likewise writes itself."""
    after = "|".join(re.escape(Unit.of(unit).after(one=one)) for one in (False, True))
    own = rf"(?:1 point = [$€£]?[\d.,e+-]*\d(?:{after})?|mismatch = \S+ points|must not matter|{NOT_USED})"
    return re.sub(rf"^{own}(?:[;,]\s*|\s*$)", "", comment)


def read_metric(path: str | Path) -> TableMetric:
    """Read a metric file; errors name the line."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    text = _read_text(path)
    try:
        given = tomlkit.parse(text).unwrap()
    except TOMLKitError as error:
        where = f", line {error.line}" if hasattr(error, "line") else ""
        raise FileError(f"{path}{where}: not valid TOML ({error}).") from None
    known = ("p", "numeric", "categorical", "missing", "units")
    for key in given:
        if key not in known:
            raise FileError(f"{path}, line {_line(text, None, key)}: unknown entry {key!r}; use {', '.join(known)}.")
    for section in known[1:]:
        if not isinstance(given.get(section, {}), dict):
            raise FileError(f"{path}, line {_line(text, None, section)}: [{section}] must be a section with columns.")
        for column, value in given.get(section, {}).items():
            weighted = [*given.get("numeric", {}), *(given.get("categorical", {}) if section == "units" else {})]
            if section in ("missing", "units") and column not in weighted:
                raise FileError(
                    f"{path}, line {_line(text, section, column)}: {column!r} has no weight in this metric."
                )
            # One column at a time, so that an error is about a line.
            sample: dict[str, Any] = {"numeric": {column: 1.0}, section: {column: value}}
            if section == "categorical":
                sample.pop("numeric")
            _try(lambda sample=sample: TableMetric(**sample), path, _line(text, section, column))
    missing: Any = given.pop("missing", None) or "refuse"
    metric: TableMetric = _try(lambda: TableMetric(**given, missing=missing), path, _line(text, None, "p"))
    return metric


def _try(make: Any, path: str | Path, line: int) -> Any:
    try:
        return make()
    except (TypeError, ValueError) as error:
        raise FileError(f"{path}, line {line}: {error}") from None


def _line(text: str, section: str | None, key: str) -> int:
    """Line of an entry; 1 if it is written in a way that is not found."""
    import tomlkit

    where = None
    for number, line in enumerate(text.splitlines(), start=1):
        bare = line.strip()
        if bare.startswith("["):
            where = bare.strip("[] \t")
            if section is None and where == key:
                return number
        elif where == section and "=" in bare:
            name = bare.split("=")[0].strip()
            if name in (key, tomlkit.string(key).as_string(), f"'{key}'"):
                return number
    return 1


def _number(value: float) -> int | float:
    return int(value) if float(value).is_integer() and abs(value) < 1e15 else float(value)


def _read_text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileError(f"There is no file {path}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"Cannot read {path}: {error}.") from None
