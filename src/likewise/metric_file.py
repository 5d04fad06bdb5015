"""Metric files: TOML with weights, their meaning, units, and comments that are kept."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from likewise._validation import PATH, check_output_range, short_repr
from likewise._writing import write_text
from likewise.exceptions import FileError, InvalidInputError, InvalidTypeError
from likewise.metrics.odds import phrase_of_scale, scale_of_phrase, unit_of_phrase
from likewise.metrics.table import NEGLIGIBLE, ONLY_BLANKS, TableMetric
from likewise.metrics.zero_weights import MUST_NOT_MATTER, ZERO_REASONS
from likewise.verification.domain import Domain

if TYPE_CHECKING:
    import pandas as pd

HEADING = (
    "A distance between people. Two people at distance 0.05 may be treated differently by 5 percentage points.",
    "Edit the weights, then use this file with likewise compare, enforce or audit. 0: see the comment beside it.",
)
SECTION_NOTES = {
    "numeric": "The difference that is worth one percentage point; or a weight per unit of the column, as a number.",
    "categorical": "What any two different values are worth, in points; or a weight between 0 and 1, as a number.",
    "missing": "The same between a person who has the number and one who has not.",
    "special": "Values that are no numbers, such as -99 for no file: what one and any number are worth.",
    "order": "Ordered categories of a column under [numeric], from the first to the last; its weight is per step.",
    "groups": "Groups of near categories: within is the share of the weight between two of one group.",
    "distances": "Distances between categories, in any unit: the two furthest apart are at the column's weight.",
    "units": "What one unit of a column is; shown in reports.",
    "domain": "What each column can hold: low, high and step (1: whole numbers), or values; blank if it may be absent.",
    "rules": "Linear rules between columns of numbers that everybody keeps, such as debt <= income.",
    "output": "Which outcome is favourable; of a regression, the range of which a percentage point is a hundredth.",
    "origin": "Where the weights came from, and why some are 0.",
}
SOURCES = ("revealed", "designed", "judged", "by hand")
ORIGIN_NOTES = {
    "source": "",
    "date": "",
    "how": "",
    "people": "whose rows these weights were made from",
    "rows": "digest of these rows, in any order; commands recognise them by it",
    "kept_apart": "share of people whom these weights have not seen, by their rows",
    "made_with": "how: where they measure what it costs, commands make it again so from other people",
    "scaled_by": "all distances, since then",
    **{key: reason.note for key, reason in ZERO_REASONS.items()},
    "written": "changes with the weights, and shows whether people have edited them",
}
_TEXT = (lambda value: isinstance(value, str), "text")
_COLUMNS = (lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value), "a list of columns")
_ORIGIN_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {  # but for the date; true and false are no numbers
    "source": (lambda value: value in SOURCES, f"one of {', '.join(SOURCES)}"),
    "scaled_by": (lambda value: type(value) in (int, float) and 0 < value < float("inf"), "a positive number"),
    "people": (lambda value: type(value) is int and value >= 1, "a number of people, at least 1"),
    "kept_apart": (lambda value: type(value) is float and 0 < value < 1, "a share between 0 and 1"),
    "made_with": (lambda value: isinstance(value, dict), "a table, such as {n_points = 10}"),
    **dict.fromkeys(("how", "rows", "written"), _TEXT),
    **dict.fromkeys(ZERO_REASONS, _COLUMNS),
}
WEIGHT_SECTIONS = ("numeric", "categorical", "missing")
CATEGORY_SECTIONS = ("special", "order", "groups", "distances")
_CLAIM = "no smaller distance"

Place = tuple[str | None, str | None]  # section and key


@dataclass(frozen=True)
class MetricFile:
    """The content of a metric file.

    Attributes
    ----------
    metric : TableMetric
    output_range : tuple of float, or None
        Limits of the predictions of a regression; None for classification.
    source : str
        Where the weights came from: one of `SOURCES`, or empty if it is not known.
    date : date, or None
        When they were made.
    how : str
        The same in words.
    people : int
        How many people they were made from; 0 if it is not known.
    rows : str
        Digest of these people's rows.
    kept_apart : float
        Share of the table's people who were kept apart from them; 0 if nobody was.
    made_with : mapping
        What made them from these people, to be made again from others: parameters of `design_metric` and of the choice
        of a point, or the kind of model they were revealed from; and whether they were rounded. Empty if it is not
        known.
    scaled_by : float
        Factor on all distances since then.
    protected : tuple of str
        Columns that people have set to 0.
    not_used : tuple of str
        Columns of weight 0 that the model, whose metric this is, does not use.
    not_forced : tuple of str
        Columns that need no weight for the people of the table, though the model may use them.
    not_judged : tuple of str
        Columns of weight 0 since no answer says that a difference is fine.
    as_written : bool
        Whether the weights are those that likewise wrote, unedited.
    domain : Domain, or None
        What each column can hold.
    favourable : str
        What is better for a person: a class, as text, or the high or low end of a score; empty if nobody has said it.
    """

    metric: TableMetric
    output_range: tuple[float, float] | None = None
    how: str = ""
    scaled_by: float = 1.0
    protected: tuple[str, ...] = ()
    not_used: tuple[str, ...] = ()
    not_forced: tuple[str, ...] = ()
    as_written: bool = False
    domain: Domain | None = None
    source: str = ""
    date: date | None = None
    not_judged: tuple[str, ...] = ()
    people: int = 0
    rows: str = ""
    kept_apart: float = 0.0
    favourable: str = ""
    made_with: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """The lists and the metric give the same reasons; where they do not, the lists are right."""
        columns = set(self.metric.columns)
        listed = {name: key for key in ZERO_REASONS for name in getattr(self, key)}
        reasons = {**self.metric.zero_reasons, **{name: key for name, key in listed.items() if name in columns}}
        if reasons != self.metric.zero_reasons:
            object.__setattr__(self, "metric", self.metric.with_params(zero_reasons=reasons))
        for key in ZERO_REASONS:
            more = [name for name, reason in reasons.items() if reason == key and name not in listed]
            object.__setattr__(self, key, (*getattr(self, key), *more))

    def domain_for(self, X: Any) -> Domain | None:
        """The domain in the file; columns that it does not have are learned from `X`. None if it has no domain."""
        if self.domain is None:
            return None
        learned = Domain.learn(X, [name for name in self.metric.categorical if name in X])
        columns = {name: self.domain.columns.get(name, held) for name, held in learned.columns.items()}
        kept = [rule for rule in self.domain.rules if all(name in columns for name in rule.coefficients)]
        return Domain(columns, tuple(kept))

    def meanings(self) -> dict[Any, str]:
        """Meaning of each weight: the difference worth one point, or why it is 0."""
        shown = self.metric.describe()
        worth = dict(zip(shown["column"], shown["one point"], strict=True))
        # Protected columns are listed under [origin].
        return worth | dict.fromkeys((name for name in self.protected if name in worth), MUST_NOT_MATTER)

    def origin(self) -> str:
        """Where the weights came from, in a line: "revealed, 2026-03-01, edited by hand since"."""
        edited = "edited by hand since" if self.source not in ("", "by hand") and not self.as_written else ""
        when = "" if self.date is None else self.date.isoformat()
        return ", ".join(part for part in (self.source or "by hand", when, edited) if part)

    def rounded(self, people: pd.DataFrame | None = None) -> MetricFile:
        """The same in round numbers; with `people`, without weights that hardly separate these."""
        kept = self.metric if people is None else self.metric.without_negligible(people)
        metric = kept.rounded()
        made = {**self.made_with, "rounded": True} if self.made_with else {}
        how = self.how if metric == self.metric else without_claim(self.how)
        gone = tuple(name for name in metric.hidden if name not in self.metric.hidden)
        return replace(self, metric=metric, how=how, made_with=made, not_used=(*self.not_used, *gone))

    def scaled(self, factor: float) -> MetricFile:
        """The same with distances `factor` times as large."""
        how = without_claim(self.how) if factor != 1 else self.how
        return replace(self, metric=self.metric.scaled(factor), how=how, scaled_by=self.scaled_by * factor)


def today() -> date:
    """The day of a file that is written now."""
    return datetime.now(UTC).date()


def as_rate(worth: str) -> str:
    """What a weight is worth as an equation: "1 point = $5", "one step = 8 points"."""
    return worth if " = " in worth or worth == ONLY_BLANKS else f"1 point = {worth}"


def without_claim(how: str) -> str:
    """The origin of an edited metric, without the claim that no smaller distance fits."""
    if _CLAIM not in how:
        return how
    return f"{how.split(':')[0]}, and edited since: the model itself may exceed this distance."


@dataclass(frozen=True)
class MetricComments:
    """Units and comments that people have written into a metric file."""

    units: Mapping[str, str] = field(default_factory=dict)
    above: Mapping[Place, tuple[str, ...]] = field(default_factory=dict)
    beside: Mapping[Place, str] = field(default_factory=dict)

    @property
    def n_comments(self) -> int:
        """Number of comments."""
        return sum(map(len, self.above.values())) + len(self.beside)


# -- writing ---------------------------------------------------------------------------------------------------------


def write_metric(metric: TableMetric | MetricFile, path: str | Path, *, words: MetricComments | None = None) -> None:
    """Write a metric as TOML, with the meaning of each weight as a comment."""
    if not isinstance(metric, (TableMetric, MetricFile)):
        raise InvalidTypeError(
            f"metric must be a TableMetric, since a file needs column names; got {short_repr(metric)}."
        )
    write_text(path, format_metric(metric, words=words))


def format_metric(metric: TableMetric | MetricFile, *, words: MetricComments | None = None) -> str:
    """Return the text of a metric file."""
    file = metric if isinstance(metric, MetricFile) else MetricFile(metric)
    words, entries = words or MetricComments(), entries_of(file)
    placed: set[Place] = {(None, None), (None, "p")} | {(section, None) for section in entries}
    placed |= {(section, key) for section, values in entries.items() for key in values}
    # Comments on removed columns, and those at the end of the file, are moved to the top.
    stray = [line for place, lines in words.above.items() if place not in placed for line in lines]
    stray += [f"{place[1]}: {text}" for place, text in words.beside.items() if place not in placed]
    lines = [f"# {line}" for line in (*HEADING, *words.above.get((None, None), ()), *stray)]
    lines += _lines(None, "p", _number(file.metric.p), "", words)
    return "\n".join([*lines, *_sections(entries, words)]) + "\n"


def format_shapes(metric: TableMetric, output_range: tuple[float, float] | None) -> str:
    """The order, groups and distances of categories, and the output range, as sections of a metric file."""
    entries = entries_of(MetricFile(metric, output_range))
    kept = {section: entries[section] for section in (*CATEGORY_SECTIONS, "output") if section in entries}
    return "".join(f"{line}\n" for line in _sections(kept, MetricComments()))


def _sections(entries: dict[str, dict[str, tuple[Any, str]]], words: MetricComments) -> Iterator[str]:
    for section, values in entries.items():
        yield from ("", f"[{section}]")
        yield from (f"# {line}" for line in (SECTION_NOTES[section], *words.above.get((section, None), ())))
        for key, (value, comment) in values.items():
            yield from _lines(section, key, value, comment, words)


def entries_of(file: MetricFile) -> dict[str, dict[str, tuple[Any, str]]]:
    """Values and generated comments by section and key, without empty sections."""
    metric, worth = file.metric, file.meanings()
    said = {name: worth[name] for name in {*metric.hidden, *metric.zero_reasons}}
    units = {name: metric.units.get(name, "step" if name in metric.order else "") for name in metric.numeric}
    numeric = {
        name: weight_in_words(weight, said.get(name, as_rate(worth[name])), units[name])
        for name, weight in metric.numeric.items()
    }
    categories = metric.categorical
    given: dict[str, dict[Any, tuple[Any, str]]] = {
        "numeric": numeric,
        "categorical": {
            name: weight_in_words(weight, worth[name], step="mismatch") for name, weight in categories.items()
        },
        "missing": {name: weight_in_words(weight, step=" ") for name, weight in metric.missing.items()},
        "special": {
            name: ({f"{code:.17g}": weight_in_words(weight, step=" ")[0] for code, weight in codes.items()}, "")
            for name, codes in metric.special.items()
        },
        "order": {name: (list(listed), "") for name, listed in metric.order.items()},
        "groups": {name: (given | {"within": _number(given["within"])}, "") for name, given in metric.groups.items()},
        "distances": {name: (_distances(given), "") for name, given in metric.distances.items()},
        "units": {name: (unit, "") for name, unit in metric.units.items()},
        "domain": {} if file.domain is None else {name: (each, "") for name, each in file.domain.entries().items()},
        "rules": {"linear": (list(map(str, file.domain.rules)), "")} if file.domain and file.domain.rules else {},
        "output": {} if file.output_range is None else {"range": ([_number(end) for end in file.output_range], "")},
    }
    given["output"] |= {"favourable": (file.favourable, "")} if file.favourable else {}
    origin: dict[str, Any] = {key: getattr(file, key) for key in ORIGIN_NOTES if key != "written"}
    origin |= {key: list(map(str, origin[key])) for key in ZERO_REASONS}
    origin["made_with"] = dict(file.made_with)
    origin["scaled_by"] = 0 if file.scaled_by == 1 else _number(float(f"{file.scaled_by:.6g}"))
    origin["written"] = _checksum(metric, file.output_range) if file.as_written else ""
    given["origin"] = {key: (value, ORIGIN_NOTES[key]) for key, value in origin.items() if value}
    return {section: {str(key): entry for key, entry in part.items()} for section, part in given.items() if part}


def _lines(section: str | None, key: str, value: Any, comment: str, words: MetricComments) -> Iterator[str]:
    import tomlkit

    yield from (f"# {line}" for line in words.above.get((section, key), ()))
    comment = "; ".join(part for part in (comment, words.beside.get((section, key), "")) if part)
    beside = f" # {' '.join(comment.split())}" if comment else ""
    yield f"{tomlkit.key(key).as_string()} = {toml_item(value).as_string()}{beside}"


def toml_item(value: Any) -> Any:
    """A value in TOML; tables are in one line."""
    import tomlkit

    if not isinstance(value, dict):
        return tomlkit.item(value)
    table = tomlkit.inline_table()
    table.update({key: toml_item(each) for key, each in value.items()})
    return table


def _distances(given: Mapping[Any, Mapping[Any, float]]) -> dict[str, dict[str, int | float]]:
    """Distances between categories, with keys as TOML has them."""
    return {str(a): {str(b): _number(distance) for b, distance in row.items()} for a, row in given.items()}


def _number(value: float) -> int | float:
    return int(value) if float(value).is_integer() and abs(value) < 1e15 else float(value)


def weight_in_words(weight: float, meaning: str = "", unit: str = "", *, step: str = "") -> tuple[Any, str]:
    """A weight as people say it, if that is exactly the number; or else the number, with its meaning as a comment."""
    words = None if not weight > NEGLIGIBLE or " to " in meaning else phrase_of_scale(weight, unit, step=step)
    return (_number(weight), meaning) if words is None else (words.removeprefix("  = "), "")


def _checksum(metric: TableMetric, output_range: tuple[float, float] | None) -> str:
    """Checksum of the weights, exponent and output range, and of the order, groups and distances of categories."""
    weights: list[Any] = [sorted(getattr(metric, part).items()) for part in WEIGHT_SECTIONS]
    shapes = [sorted(getattr(metric, part).items()) for part in CATEGORY_SECTIONS[1:]]
    weights += shapes if any(shapes) else []
    weights += [sorted((name, *codes.items()) for name, codes in metric.special.items())] if metric.special else []
    return sha256(repr((metric.p, weights, output_range)).encode()).hexdigest()[:16]


# -- reading ---------------------------------------------------------------------------------------------------------


def read_metric(path: str | Path) -> TableMetric:
    """Read the metric of a metric file; errors name the line."""
    return read_metric_file(path).metric


def read_metric_file(path: str | Path) -> MetricFile:
    """Read a metric file; errors name the line."""
    PATH.check("path", path)
    return parse_metric_file(read_text(path), path)


def parse_metric_file(text: str, path: str | Path) -> MetricFile:
    """The content of a metric file; `path` is for errors."""
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r" \(at line (\d+), .*\)| \(at end of document\)", str(error))
        where = f", line {found[1]}" if found and found[1] else ""
        raise FileError(
            f"{path}{where}: not valid TOML ({str(error).removesuffix(found[0] if found else '')})."
        ) from None
    reader = _Sections(path, text)
    known = {"p": None, **SECTION_NOTES}
    for key, value in given.items():
        if key not in known:
            reader.refuse(None, key, f"unknown entry {key!r}; use {', '.join(known)}.")
        if key != "p" and not isinstance(value, dict):
            reader.refuse(None, key, f"[{key}] must be a section with columns.")
    metric = reader.metric(
        {key: given[key] for key in ("p", "units", *WEIGHT_SECTIONS, *CATEGORY_SECTIONS) if key in given}
    )
    output_range, favourable = reader.output(given.get("output", {}))
    origin = reader.origin(given.get("origin", {}), metric)
    domain = reader.domain(given.get("domain", {}), given.get("rules", {}))
    as_written = origin.pop("written", "") == _checksum(metric, output_range)
    if not as_written:  # a weight may have been raised since
        for key in set(ZERO_REASONS) - {"protected"}:
            origin[key] = tuple(name for name in origin.get(key, ()) if name in set(metric.hidden))
    listed = {name for key in ZERO_REASONS for name in origin.get(key, ())}
    by_hand = [name for name in metric.hidden if name not in listed]
    origin["protected"] = (*origin.get("protected", ()), *by_hand)
    return MetricFile(metric, output_range, **origin, as_written=as_written, domain=domain, favourable=favourable)


@dataclass(frozen=True)
class _Sections:
    """Validation of the sections of a metric file; errors name the line."""

    path: str | Path
    text: str

    def refuse(self, section: str | None, key: str, why: str) -> NoReturn:
        raise FileError(f"{self.path}, line {_line(self.text, section, key)}: {why}") from None

    def metric(self, given: dict[str, Any]) -> TableMetric:
        weighted = {*given.get("numeric", {}), *given.get("categorical", {})}
        for section, columns in (("missing", given.get("numeric", {})), ("units", weighted)):
            for column in given.get(section, {}):
                if column not in columns:
                    self.refuse(section, column, f"{column!r} has no weight in this metric.")
        given = self._in_numbers(given)
        given["special"] = {name: self._codes(name, codes) for name, codes in given.get("special", {}).items()}
        p = given.pop("p", 1)
        if p != 1 or isinstance(p, bool):
            self.refuse(
                None,
                "p",
                f"p must be 1, so that the distances of columns add up; got {p!r}. Write p = 1, and review the weights "
                "under [numeric]: with another p they stood inside a power.",
            )
        try:
            return TableMetric(**given | {"missing": given.get("missing") or "refuse"})
        except (TypeError, ValueError) as error:
            self._find_bad_column(given)
            self.refuse(None, "p", str(error))

    def _codes(self, column: str, codes: Any) -> dict[float, Any]:
        """Special codes, which are keys of TOML and so text, with their weights as numbers."""
        try:
            return {
                float(code): min(1.0, scale_of_phrase(weight, column, "")) if isinstance(weight, str) else weight
                for code, weight in codes.items()
            }
        except (AttributeError, TypeError, ValueError) as error:
            why = f"{column!r} must be numbers with weights, like {{-99 = 0.3}}; got {codes!r}"
            self.refuse("special", column, f"{why} ({error}).")

    def _in_numbers(self, given: dict[str, Any]) -> dict[str, Any]:
        """The same with numbers in place of words, such as "1 point = $500"; a unit in them is that of the column."""
        units, order = given.get("units", {}), given.get("order", {})
        for section in WEIGHT_SECTIONS:
            for column, value in given.get(section, {}).items():
                if isinstance(value, str):
                    given = {**given, section: dict(given[section])}
                    unit = str(units.get(column, "step" if column in order else ""))
                    try:
                        scale = scale_of_phrase(value, column, unit)
                        said = unit_of_phrase(value)
                    except (TypeError, ValueError) as error:
                        self.refuse(section, column, str(error))
                    given[section][column] = scale if section == "numeric" or "odds" not in value else min(1.0, scale)
                    if said and not unit:
                        given["units"] = {**given.get("units", {}), column: said}
        return given

    def _find_bad_column(self, given: dict[str, Any]) -> None:
        """Validate one column at a time, so that the error can name its line."""
        weighted: dict[str, Any] = {part: given.get(part, {}) for part in ("numeric", "categorical")}
        for section in (*WEIGHT_SECTIONS, *CATEGORY_SECTIONS):
            for column, value in given.get(section, {}).items():
                known = weighted
                if section in WEIGHT_SECTIONS:
                    known = {} if section == "categorical" else {"numeric": {column: 1.0}}
                try:
                    TableMetric(**known | {section: {column: value}})
                except (TypeError, ValueError) as error:
                    self.refuse(section, column, str(error))

    def output(self, given: dict[str, Any]) -> tuple[tuple[float, float] | None, str]:
        """The output range of a regression, and what is favourable."""
        for key in given:
            if key not in ("range", "favourable"):
                self.refuse("output", key, f"unknown entry {key!r}; use range and favourable.")
        favourable = given.get("favourable", "")
        if isinstance(favourable, (list, dict)):
            self.refuse("output", "favourable", f"favourable must be a class, or high or low; got {favourable!r}.")
        try:
            return check_output_range(given["range"]) if "range" in given else None, str(favourable)
        except (TypeError, ValueError):
            self.refuse("output", "range", f"range must be two numbers, the lowest first; got {given['range']!r}.")

    def domain(self, given: dict[str, Any], rules: dict[str, Any]) -> Domain | None:
        for name, entry in given.items():
            if not isinstance(entry, dict):
                self.refuse("domain", name, f"{name!r} must be like {{low = 0, high = 9, step = 1}}; got {entry!r}.")
            try:
                Domain.from_entries({name: entry})
            except InvalidInputError as error:
                self.refuse("domain", name, str(error))
        for key in rules:
            if key != "linear":
                self.refuse("rules", key, f"unknown entry {key!r}; use linear.")
        try:
            return Domain.from_entries(given, rules.get("linear", [])) if given or rules else None
        except InvalidInputError as error:
            self.refuse("rules", "linear", str(error))

    def origin(self, given: dict[str, Any], metric: TableMetric) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in given.items():
            if key not in ORIGIN_NOTES:
                self.refuse("origin", key, f"unknown entry {key!r}; use {', '.join(ORIGIN_NOTES)}.")
            if key == "date":
                found[key] = self._date(value)
                continue
            holds, what = _ORIGIN_RULES[key]
            if not holds(value):
                self.refuse("origin", key, f"{key} must be {what}; got {value!r}.")
            found[key] = tuple(value) if isinstance(value, list) else value
        weights, hidden = {**metric.numeric, **metric.categorical}, set(metric.hidden)
        for name in found.get("protected", ()):
            if name in weights and name not in hidden:
                self.refuse(
                    "origin",
                    "protected",
                    f"{name!r} is protected, and its weight is {weights[name]:g}. Set the weight to 0, or take the "
                    "column off this list.",
                )
        return found

    def _date(self, value: Any) -> date:
        """A TOML date, or the same as text."""
        try:
            return date.fromisoformat(value) if isinstance(value, str) else date(value.year, value.month, value.day)
        except (AttributeError, ValueError):
            self.refuse("origin", "date", f"date must be a day such as 2026-03-01; got {value!r}.")


def _line(text: str, section: str | None, key: str) -> int:
    """Line of an entry; 1 if it is not found."""
    import tomlkit

    where, names = None, (key, tomlkit.key(key).as_string(), tomlkit.string(key).as_string(), f"'{key}'")
    for number, line in enumerate(text.splitlines(), start=1):
        bare = line.strip()
        if bare.startswith("["):
            where = bare.split("]")[0].strip("[ \t")
            if section is None and where == key:
                return number
        elif where == section and any(re.match(rf"{re.escape(name)}\s*=", bare) for name in names):
            return number
    return 1


def read_text(path: str | Path) -> str:
    """Read a text file, or raise `FileError`."""
    try:
        return Path(path).read_bytes().decode("utf-8")  # line ends stay as they are
    except FileNotFoundError:
        raise FileError(f"There is no file {path}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"Cannot read {path}: {error}.") from None
