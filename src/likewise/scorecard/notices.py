"""Notices to people: why a score is not higher, in words, and the smallest change that would be enough."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from html import escape
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd

from likewise._favourable import given_or_stored, the_favourable
from likewise._validation import PATH, check_count, check_positive, list_words, short_repr
from likewise.additive.scorer import AdditiveScorer, level_names
from likewise.exceptions import FileError, InvalidInputError
from likewise.kernel.columns import CategoricalColumn
from likewise.kernel.schema import People
from likewise.scorecard.recourse import Column, Way, changeable_columns, needed_score, smallest_change, written_number
from likewise.scorecard.tables import format_value

_SMALL = 0.05  # share of the total effect: a column with less is not a main reason
_FIXED = {
    *("age", "birth", "born", "children", "date", "dependants", "dependents", "dob", "female", "gender", "male"),
    *("married", "older", "race", "sex", "year"),
}  # words in names of columns that nobody is told to change, unless the policy says so
_SLACKS = (0.0, 1e-13, 1e-11, 1e-9)
_TIE = 1e-9  # of an effect: columns this close are tied


@dataclass(frozen=True)
class Policy:
    """The lender's wording and rules for notices.

    Attributes
    ----------
    outcome : str
        The favourable outcome in words, behind "the chance of".
    names : dict
        Names of columns as people know them, such as "your income".
    reasons : dict
        Approved reason texts by column.
    protected : tuple
        Columns that are never named, nor changed.
    immutable : tuple
        Columns that a person cannot change; they may be reasons, and are marked.
    directions : dict
        Columns that a person can change, and how: "increase", "decrease" or "any". Of all others, only columns that the
        model was fitted to as `monotone` are changed, in the direction that it says, unless their names say that they
        are age, sex, a date or the like.
    steps : dict
        Step in which a column of numbers changes, such as 1 for whole numbers or 100 for dollars. If not given, a power
        of ten of its unit, between a fiftieth and a five-hundredth of the range of the card.
    """

    outcome: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    protected: Sequence[str] = ()
    immutable: Sequence[str] = ()
    directions: Mapping[str, Way] = field(default_factory=dict)
    steps: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, given: Any, names: Sequence[Any]) -> Policy:
        """From a TOML or JSON file, a mapping with the same entries, or None."""
        if given is None:
            return cls()
        entries = dict(given) if isinstance(given, Mapping) else _read_file(given)
        known = tuple(each.name for each in fields(cls))
        wrong = [key for key in entries if key not in known]
        if wrong:
            raise InvalidInputError(f"policy must have the entries {', '.join(known)}; it has {wrong[0]!r}.")
        if not isinstance(entries.get("outcome", ""), str):
            raise InvalidInputError(f"policy outcome must be text; got {short_repr(entries['outcome'])}.")
        for key in known[1:]:
            part, kind = entries.get(key, ()), Sequence if key in ("protected", "immutable") else Mapping
            if part and (not isinstance(part, kind) or isinstance(part, str)):
                form = "a mapping from column to value" if kind is Mapping else "a list of columns"
                raise InvalidInputError(f"policy {key} must be {form}; got {short_repr(part)}.")
            unknown = [name for name in part if name not in {str(each) for each in names}]
            if unknown:
                raise InvalidInputError(f"policy {key} must name columns of X, {list(names)}; it has {unknown[0]!r}.")
        for key in ("names", "reasons"):
            for name, text in entries.get(key, {}).items():
                if not isinstance(text, str) or not text.strip():
                    raise InvalidInputError(f"policy {key} of {name!r} must be text; got {short_repr(text)}.")
        for name, step in entries.get("steps", {}).items():
            check_positive(f"policy step of {name!r}", step)
        for name, way in entries.get("directions", {}).items():
            if way not in get_args(Way):
                raise InvalidInputError(
                    f"policy directions must be increase, decrease or any; {name!r} has {short_repr(way)}."
                )
            if name in (*entries.get("protected", ()), *entries.get("immutable", ())):
                raise InvalidInputError(
                    f"policy directions must not name protected or immutable columns; got {name!r}."
                )
        return cls(**entries)


def _read_file(path: Any) -> dict[str, Any]:
    PATH.check("policy", path)
    try:
        text = Path(path).read_text(encoding="utf-8")
        found = json.loads(text) if Path(path).suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise FileError(f"Cannot read {path}: {error.strerror}.") from None
    except ValueError as error:
        raise FileError(f"{path} is not a TOML or JSON file ({' '.join(str(error).split())}).") from None
    if not isinstance(found, dict):
        raise FileError(f"{path} must hold the entries of a policy; it holds {short_repr(found)}.")
    return found


@dataclass(frozen=True)
class Reason:
    """A column that lowers the chance of the favourable outcome.

    Attributes
    ----------
    column, value : str
    text : str
        The approved text with name and value behind it, or "name: value".
    effect : float
        Points that it takes away, against the average person.
    share : float
        Of all that is taken away.
    can_change : bool
    """

    column: str
    value: str
    text: str
    effect: float
    share: float
    can_change: bool


@dataclass(frozen=True)
class Change:
    """A column that would have to change.

    Attributes
    ----------
    column : str
    name, now, to : str
        In words.
    value : float or str
        What it would have to be.
    """

    column: str
    name: str
    now: str
    to: str
    value: Any


@dataclass(frozen=True)
class Notice:
    """A notice to one person.

    Attributes
    ----------
    person : object
        Label of the row.
    outcome : str
        The favourable outcome in words.
    probability : float
        Its chance.
    threshold : float or None
        What is needed; with a width, the middle of the band.
    width : float
        Of the band in which a draw decides; 0 for none.
    reasons : tuple of Reason
        The strongest first.
    others_count : bool
        Whether columns that are not listed lower the chance as well.
    changes : tuple of Change, or None
        The change of the fewest columns, and of these the smallest, that is enough without a draw; empty if there is
        none, None if not needed or not requested.
    changed_probability : float or None
        The chance after the change.
    considered : tuple of str
        The columns that could change, in words.
    """

    person: Any
    outcome: str
    probability: float
    threshold: float | None
    width: float
    reasons: tuple[Reason, ...]
    others_count: bool
    changes: tuple[Change, ...] | None
    changed_probability: float | None
    considered: tuple[str, ...] = ()

    def to_json(self) -> str:
        """One JSON object."""
        return json.dumps(asdict(self) | {"person": str(self.person)}, indent=2, default=str, ensure_ascii=False)

    def to_text(self) -> str:
        """Plain text."""
        parts = []
        for heading, tag, items, tail in self._sections():
            marks = [f"{k}." if tag == "ol" else "-" for k in range(1, len(items) + 1)]
            lines = [f"{mark} {item}" for mark, item in zip(marks, items, strict=True)]
            parts.append("\n".join([*([heading] if heading else []), *lines, *([tail] if tail else [])]))
        return "\n\n".join(parts)

    def to_html(self) -> str:
        """A complete page, for screen or print; all text is escaped."""
        body = ""
        for heading, tag, items, tail in self._sections():
            body += f"<h2>{escape(heading)}</h2>\n" if heading else ""
            body += f"<{tag}>{''.join(f'<li>{escape(item)}</li>' for item in items)}</{tag}>\n" if items else ""
            body += f"<p>{escape(tail)}</p>\n" if tail else ""
        return _PAGE.format(body=body)

    def _sections(self) -> list[tuple[str, str, list[str], str]]:
        """Heading, list tag, items and closing sentence of each section."""
        found: list[tuple[str, str, list[str], str]] = [("", "", [], self._opening)]
        if self.reasons:
            heading = f"What lowers the chance of {self.outcome} most, compared with the average person:"
            items = [each.text + ("" if each.can_change else ". This cannot be changed.") for each in self.reasons]
            others = "Other facts, which are not listed, lower it as well." if self.others_count else ""
            found.append((heading, "ol", items, others))
        else:
            found.append(("", "", [], "Nothing that can be named lowers it, compared with the average person."))
        enough = "would be enough without a draw" if self.width else "would be enough"
        if self.changes:
            items = [f"{change.name}: {change.to} instead of {change.now}" for change in self.changes]
            named = f"The {'score for' if self.width else 'chance of'} {self.outcome} would then be"
            tail = (
                f"{named} {_percent(self.changed_probability or 0.0)}. Changes to {list_words(self.considered)} were "
                f"considered: none of fewer items {enough}, nor one of as few that is smaller by the model's distance."
            )
            found.append((f"What {enough}, with everything else as it is:", "ul", items, tail))
        elif self.changes is not None and self.considered:
            found.append(("", "", [], f"No change to {list_words(self.considered, 'or')} {enough}."))
        return found

    @property
    def _opening(self) -> str:
        p, threshold = self.probability, self.threshold
        chance = f"The chance of {self.outcome} is {_percent(p, threshold)}"
        if threshold is None:
            return f"{chance}."
        if not self.width:
            return f"{chance}, {'below' if p < threshold else 'at least'} the {_percent(threshold)} that is needed."
        ends = [min(1.0, max(0.0, end)) for end in _band(threshold, self.width)]
        low, high = map(_percent, ends)
        nearest = min(ends, key=lambda end: abs(end - p))
        draw = _favourable_share(p, threshold, self.width)
        score = f"The score for {self.outcome} is {_percent(p, nearest)}"
        if draw >= 1:
            return f"{score}. From {high} on the decision is favourable without a draw."
        band = f"scores between {low} and {high} are decided by a draw, the same one for everybody in a round"
        if draw <= 0:
            return f"{score}. Up to {low} the decision is not favourable; {band}; from {high} on it is favourable."
        return (
            f"{score}; {band}. With this score the draw is favourable {_percent(draw)} of the time. From {high} on the "
            "decision is favourable without a draw."
        )


_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Notice</title>
<style>
body {{ font: 1.0625rem/1.55 system-ui, sans-serif; max-width: 40rem; margin: 2.5rem auto; padding: 0 1.25rem; }}
body {{ color: #1a1a1a; background: #fff; overflow-wrap: anywhere; }}
h1 {{ font-size: 1.4rem; margin: 0 0 1rem; }}
h2 {{ font-size: 1.0625rem; margin: 1.75rem 0 .5rem; }}
ol, ul {{ margin: .5rem 0; padding-left: 1.5rem; }}
li {{ margin: .35rem 0; }}
</style></head>
<body><main><h1>Notice</h1>
{body}</main></body>
</html>
"""


def _band(threshold: float, width: float) -> tuple[float, float]:
    return threshold - width / 2, threshold + width / 2


def _favourable_share(probability: float, threshold: float, width: float) -> float:
    """Share of draws that are favourable, as in `ThresholdDecision`; with no band, 1 from the threshold on."""
    return min(1.0, max(0.0, (probability - threshold) / width + 0.5)) if width else float(probability >= threshold)


def _percent(probability: float, beside: float | None = None) -> str:
    """A percentage with as few decimals as distinguish it from `beside`."""
    for digits in range(5):
        text = f"{probability:.{digits}%}"
        if beside is None or probability == beside or text != f"{beside:.{digits}%}":
            return text
    return text


def notice(
    model: Any,
    X: Any,
    *,
    threshold: float | None = None,
    width: float = 0.0,
    favourable: Any = None,
    policy: Any = None,
    n: int = 4,
) -> list[Notice]:
    """For each person, what lowers the chance of the favourable outcome, and the smallest change that is enough.

    Reasons are the columns that lower the points most, compared with the average person, strongest first; a column
    with less than 5% of the total is not a main reason, and columns tied with the last one are listed as well. The
    change is the one of the fewest columns that reaches the threshold, and of these the smallest, by the sum of
    their distances under the metric: exact among all changes, in steps, of the columns that can change. Those are
    the ones that the policy gives a direction, or that the model was fitted to as `monotone`.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    threshold : float, optional
        Probability of the favourable outcome that is needed. None skips the search for a change.
    width : float, default=0
        Of the band around the threshold in which a draw decides (`ThresholdDecision`, which has a `notice` of its
        own). The change then crosses the whole band: the decision is favourable in every round.
    favourable : label of a class, optional
        Needed unless it is stored with the model (``favourable_``) or known by its word, such as approved.
    policy : path or mapping, optional
        Your own TOML or JSON file, or its entries: ``outcome``, the favourable outcome in words; ``names`` of
        columns as people know them; ``reasons``, approved texts by column; ``protected``, columns that are never
        named; ``immutable``, columns that a person cannot change, marked as such; ``directions``, how others can
        change ("increase", "decrease" or "any"); ``steps`` of columns of numbers, such as 1 or 100.
    n : int, default=4
        Reasons per person, ties aside.

    Returns
    -------
    list of Notice
        With `to_text`, `to_html` and `to_json`.

    Examples
    --------
    >>> from likewise import AdditiveClassifier, WeightedLp
    >>> people = pd.DataFrame({"debt": [10, 20, 30, 40]})
    >>> model = AdditiveClassifier(WeightedLp({"debt": 0.01}), penalty=1e-4).fit(people, [1, 1, 0, 0])
    >>> policy = {"outcome": "being approved", "directions": {"debt": "decrease"}}
    >>> (notice,) = model.notice(people.tail(1), threshold=0.5, favourable=1, policy=policy)
    >>> print(notice.to_text().splitlines()[0])
    The chance of being approved is 35%, below the 50% that is needed.
    >>> notice.reasons[0].text, notice.changes[0].to
    ('debt: 40', '25')
    """
    scorer, encoder = model._scorer(), model.encoder_
    if scorer.guarantee.output_range or len(model._labels()) != 2:
        raise InvalidInputError("notice needs a binary classifier, with one favourable outcome.")
    n, said = check_count("n", n), Policy.read(policy, encoder.names)
    if threshold is not None:
        threshold = check_positive("threshold", threshold, below=1)
    if not isinstance(width, (int, float, np.number)) or width not in (0, 1):
        width = check_positive("width", width, below=1)
    if width and threshold is None:
        raise InvalidInputError(f"width must be 0 without a threshold; got {short_repr(width)}.")
    label = the_favourable(given_or_stored(favourable, model), model._labels())
    position = model._labels().index(label)
    sign = 1.0 if position == scorer.scored_class else -1.0
    ways = _ways(model, said, 1 if position else -1)
    people = model._people(X)
    points = sign * scorer.points(people)[:, :, 0]
    h = scorer.estimate(people).mean[:, position]
    index = X.index if isinstance(X, pd.DataFrame) else range(len(people))
    words = said.outcome or f"the outcome {label!r}"
    found = []
    for row, person in enumerate(index):
        reasons, others = _reasons(scorer, people, row, points[row], said, n)
        changes = after = None
        considered: list[str] = []
        if threshold is not None and _favourable_share(h[row], threshold, width) < 1:
            columns = changeable_columns(scorer, people, row, sign, ways, said.steps)
            considered = [said.names.get(name, name) for name in (str(encoder.names[each.column]) for each in columns)]
            changes, after = _changes(scorer, people, row, sign, position, (threshold, width), columns, said)
        after_all = changes, after, tuple(considered)
        found.append(Notice(person, words, float(h[row]), threshold, width, reasons, others, *after_all))
    return found


def _ways(model: Any, said: Policy, sign: int) -> dict[str, Way]:
    """How columns can change: as the policy says, else as the model is monotone, towards the favourable class."""
    encoder, names = model.encoder_, [str(name) for name in model.encoder_.names]
    for name, way in said.directions.items():
        if way != "any" and isinstance(encoder.columns[names.index(name)], CategoricalColumn):
            raise InvalidInputError(f"policy directions of {name!r} must be any: its categories have no order.")
    rising = {str(name): direction * sign for name, direction in (model.monotone or {}).items()}
    found: dict[str, Way] = {name: "increase" if way > 0 else "decrease" for name, way in rising.items()}
    fixed = {*said.protected, *said.immutable, *filter(_is_fixed, names)}
    return {name: way for name, way in found.items() if name not in fixed} | dict(said.directions)


def _is_fixed(name: str) -> bool:
    """Whether the name of a column says that nobody can change it."""
    return not _FIXED.isdisjoint(word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name))


def _reasons(
    scorer: AdditiveScorer, people: People, row: int, points: Any, said: Policy, n: int
) -> tuple[tuple[Reason, ...], bool]:
    """The columns that lower a score most; and whether others do, too."""
    names = [str(people.encoder.names[shape.column]) for shape in scorer.model.shapes]
    lowered = np.maximum(0.0, -points)
    total = float(lowered.sum())
    order = [j for j in np.argsort(-lowered, kind="stable").tolist() if lowered[j] > 0]
    listed = [j for j in order if names[j] not in said.protected and lowered[j] >= _SMALL * total]
    if len(listed) > n:  # those tied with the last one are listed as well
        listed = [j for j in listed if lowered[j] >= (1 - _TIE) * lowered[listed[n - 1]]]
    reasons = []
    for j in listed:
        value = format_value(people, row, scorer.model.shapes[j].column, scorer.guarantee.metric)
        reasons.append(
            Reason(
                names[j],
                value,
                _reason_text(said, names[j], value),
                float(lowered[j]),
                float(lowered[j]) / total,
                names[j] not in said.immutable and (names[j] in said.directions or not _is_fixed(names[j])),
            )
        )
    return tuple(reasons), len(listed) < len(order)


def _reason_text(said: Policy, column: str, value: str) -> str:
    fact = f"{said.names.get(column, column)}: {value}"
    return f"{said.reasons[column]} ({fact})" if column in said.reasons else fact


def _changes(
    scorer: AdditiveScorer,
    people: People,
    row: int,
    sign: float,
    position: int,
    band: tuple[float, float],
    columns: list[Column],
    said: Policy,
) -> tuple[tuple[Change, ...], float | None]:
    """The smallest change that crosses the threshold and its band, checked with the model itself."""
    encoder = people.encoder
    score = sign * float(scorer.scores(people.take([row]))[0, 0])
    end = _band(*band)[1]
    if end > 1 or (end == 1 and scorer.link != "clip"):  # no decision is certain
        return (), None
    need = needed_score(scorer, end, sign)
    for slack in _SLACKS:  # for the rounding of scores: the change must be enough for the model itself
        smallest = smallest_change(columns, need - score + slack * (1 + abs(need)))
        if smallest is None:
            return (), None
        found = smallest
        changed = people.rows[row : row + 1].copy()
        for column, value in found.items():
            changed[0, column] = value
        after = float(scorer.estimate(People(changed, encoder, None)).mean[0, position])
        if _favourable_share(after, *band) >= 1:
            break
    else:
        return (), None
    changes = []
    for column, value in found.items():
        levels, name = level_names(encoder, column), str(encoder.names[column])
        to = written_number(scorer, column, value) if levels is None else str(levels[int(value)])
        now = format_value(people, row, column, scorer.guarantee.metric)
        changes.append(Change(name, said.names.get(name, name), now, to, value if levels is None else to))
    return tuple(changes), after
