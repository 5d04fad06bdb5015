"""Metric files that people have edited: their comments are kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from likewise.exceptions import FileError, InvalidInputError
from likewise.metric_file import (
    CATEGORY_SECTIONS,
    HEADING,
    ORIGIN_NOTES,
    SECTION_NOTES,
    WEIGHT_SECTIONS,
    MetricComments,
    MetricFile,
    Place,
    as_rate,
    entries_of,
    read_metric,
    read_metric_file,
    read_text,
    toml_item,
)
from likewise.metrics.odds import scale_of_phrase
from likewise.metrics.table import NEGLIGIBLE
from likewise.metrics.units import Unit
from likewise.metrics.zero_weights import MUST_NOT_MATTER, ZERO_REASONS

_ROUNDED = 0.01  # relative difference between a weight and a comment of three digits, at most
_OLD_NOTES = (  # generated before
    *("Revealed ", "Set to 0", "Scaled by ", "Edit the weights, then use this file with "),
    "Lowest and highest prediction. A percentage point is a hundredth of what lies between.",
    "Weight per unit of the column, and the difference that is worth one percentage point.",
    "Weight of any two different values, between 0 and 1.",
    "Weight between a person who has the number and one who has not, between 0 and 1.",
)


def metric_at(path: str | Path) -> MetricFile | None:
    """The content of a metric file; None if there is none, or it cannot be read."""
    try:
        return read_metric_file(path)
    except FileError:
        return None


def read_comments(path: str | Path) -> MetricComments:
    """Read the units and comments of a metric file, without generated comments."""
    text, metric = read_text(path), read_metric(path)
    units = {str(name): unit for name, unit in metric.units.items()}
    above: dict[Place, tuple[str, ...]] = {}
    beside: dict[Place, str] = {}
    waiting = list[str]()
    for _, section, key, comment in _lines_of(text):
        if key == "#":
            if comment and comment not in (*HEADING, *SECTION_NOTES.values()) and not comment.startswith(_OLD_NOTES):
                waiting.append(comment)
            continue
        if waiting:
            above[section, key] = (*above.get((section, key), ()), *waiting)
            waiting = []
        if key is not None and (kept := _split_comment(comment, units.get(key, ""))[1]):
            beside[section, key] = kept
    if waiting:
        above[None, None] = tuple(waiting)
    return MetricComments(units, above, beside)


def _lines_of(text: str) -> Iterator[tuple[int, str | None, str | None, str]]:
    """Number, section, key ("#" of a comment by itself, None of a section's head) and comment of the lines."""
    section = None
    for number, line in enumerate(map(str.strip, text.splitlines()), start=1):
        if line.startswith("#"):
            yield number, section, "#", line.lstrip("# ")
        elif line.startswith("["):
            section = line.split("]")[0].strip("[ \t\"'")
            yield number, section, None, ""
        elif line and (entry := _entry(line)) is not None:
            yield number, section, *entry


def stale_comments(path: str | Path) -> list[str]:
    """What comments beside weights say that the weights do not, such as the points of an earlier weight."""
    file, text, found = read_metric_file(path), read_text(path), list[str]()
    worth, units = file.meanings(), file.metric.units
    weights = {section: getattr(file.metric, section) for section in WEIGHT_SECTIONS[:2]}
    for number, section, key, comment in _lines_of(text):
        if section not in weights or key not in weights[section]:
            continue
        said, _ = _split_comment(comment, unit := units.get(key, "step" if key in file.metric.order else ""))
        weight = weights[section][key]
        try:
            wrong = abs(scale_of_phrase(said, key, unit) - weight) > _ROUNDED * weight if " to " not in said else False
        except InvalidInputError:  # why a weight is 0, or no comment
            wrong = bool(said) and weight > NEGLIGIBLE and key not in file.metric.zero_reasons
        if wrong:
            true = as_rate(worth[key])
            found.append(f"{path}, line {number}: the comment says {said!r}, and the weight of {key!r} {true!r}")
    return found


def _entry(line: str) -> tuple[str, str] | None:
    """Key and comment of a line."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(line)
    except TOMLKitError:
        return None  # part of a multi-line value
    key = next(iter(document), None)
    item: Any = None if key is None else document.item(key)
    return None if item is None else (str(key), item.trivia.comment.lstrip("# "))


def _split_comment(comment: str, unit: str) -> tuple[str, str]:
    """The generated part of a comment, and the rest."""
    after = "|".join(re.escape(Unit.of(unit).after(one=one)) for one in (False, True))
    zeros = [f"{reason.meaning}{more}" for reason in ZERO_REASONS.values() for more in (", but for blanks", "")]
    fixed = "|".join(map(re.escape, (*filter(None, ORIGIN_NOTES.values()), *zeros, MUST_NOT_MATTER)))
    one = re.escape(Unit.of(unit).one or "one step")
    worth = rf"1 point = [$€£]?[\d.,e+-]*\d(?:{after})?|(?:mismatch|{one}) = \S+(?: to \S+)? points?"
    found = re.match(rf"({worth}|{fixed})(?:[;,]\s*|\s*$)", comment)
    return (found[1], comment[found.end() :]) if found else ("", comment)


def scale_text(path: str | Path, factor: float) -> tuple[str, MetricFile]:
    """The text of a metric file with all distances multiplied by `factor`.

    Weights of categories and blanks are capped at 1.
    """
    return edit_text(path, lambda file: file.scaled(factor))


def round_text(path: str | Path) -> tuple[str, MetricFile]:
    """The text of a metric file with its weights in round numbers."""
    return edit_text(path, lambda file: file.rounded())


def edit_text(path: str | Path, change: Callable[[MetricFile], MetricFile]) -> tuple[str, MetricFile]:
    """The text of a metric file with other weights, and its content. Everything else in the file is kept.

    Generated comments are updated. The text is unchanged if the content is.
    """
    import tomlkit

    old, text = read_metric_file(path), read_text(path)
    new = change(old)
    before, entries = entries_of(old), entries_of(new)
    if entries == before:
        return text, new
    document = tomlkit.parse(text)
    units = {str(name): unit for name, unit in new.metric.units.items()}
    for section in (*WEIGHT_SECTIONS, *CATEGORY_SECTIONS):
        for key in document.get(section, ()):
            # Numbers become words, whether they change or not; shapes of categories change where they are capped.
            if section in WEIGHT_SECTIONS or entries[section][key] != before[section][key]:
                _put(document[section], key, *entries[section][key], units.get(key, ""))
    if "origin" not in document:
        document.add(tomlkit.nl())
        document.add("origin", tomlkit.table())
    origin: Any = document["origin"]
    for key in ("how", "scaled_by", "written"):
        if key in entries.get("origin", {}):
            _put(origin, key, *entries["origin"][key], "")
        elif key in origin:
            del origin[key]
    return tomlkit.dumps(document), new


def _put(table: Any, key: str, value: Any, worth: str, unit: str) -> None:
    """Replace the value of an entry, and the generated part of its comment."""
    item = toml_item(value)
    if key in table:
        before = table.item(key).trivia
        ours, theirs = _split_comment(before.comment.lstrip("# "), unit)
        if isinstance(table[key], str) and "odds" in table[key] and key not in ORIGIN_NOTES:  # kept as a comment
            ours, theirs = worth, "; ".join(part for part in (f"was {table[key]}", theirs) if part)
        told = "; ".join(part for part in (worth if ours else "", theirs) if part)
        if told:
            item.comment(told)
            item.trivia.comment_ws = before.comment_ws or " "
        table[key] = item
        if not told:
            table.item(key).trivia.comment = table.item(key).trivia.comment_ws = ""
        return
    if worth:
        item.comment(worth)
    table.add(key, item)
