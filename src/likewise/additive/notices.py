"""Notices to people: why a score is not higher, in words, and the smallest change that would do."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from likewise._validation import PATH, check_count, check_positive, in_a_line
from likewise.additive.changes import Column, smallest_change
from likewise.additive.points import PointsScorer
from likewise.additive.scorer import AdditiveScorer, level_names
from likewise.exceptions import FileError, InvalidInputError
from likewise.metrics.encoders import People
from likewise.metrics.units import Unit

_SMALL = 0.05  # of all that lowers a chance: a column with less is no main reason
_SLACKS = (0.0, 1e-13, 1e-11, 1e-9)
_TIE = 1e-9  # of an effect: columns this close are tied


@dataclass(frozen=True)
class Policy:
    """What a lender says in notices.

    Attributes
    ----------
    outcome : str
        The favourable outcome in words, behind "the chance of".
    reasons : dict
        Approved reason texts by column.
    protected : tuple
        Columns that are never named, nor changed.
    immutable : tuple
        Columns that a person cannot change; they may be reasons, and are marked.
    steps : dict
        Smallest step in which a column of numbers changes, such as 1 for whole numbers or 100 for dollars.
    """

    outcome: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)
    protected: Sequence[str] = ()
    immutable: Sequence[str] = ()
    steps: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, given: Any, names: Sequence[Any]) -> Policy:
        """From a TOML or JSON file, a mapping with the same entries, or None."""
        if given is None:
            return cls()
        entries = dict(given) if isinstance(given, Mapping) else _read_file(given)
        known = ("outcome", "reasons", "protected", "immutable", "steps")
        wrong = [key for key in entries if key not in known]
        if wrong:
            raise InvalidInputError(f"policy must have the entries {', '.join(known)}; it has {wrong[0]!r}.")
        if not isinstance(entries.get("outcome", ""), str):
            raise InvalidInputError(f"policy outcome must be text; got {in_a_line(entries['outcome'])}.")
        for key in known[1:]:
            part, kind = entries.get(key, ()), Mapping if key in ("reasons", "steps") else Sequence
            if part and (not isinstance(part, kind) or isinstance(part, str)):
                form = "a mapping from column to value" if kind is Mapping else "a list of columns"
                raise InvalidInputError(f"policy {key} must be {form}; got {in_a_line(part)}.")
            unknown = [name for name in part if name not in {str(each) for each in names}]
            if unknown:
                raise InvalidInputError(f"policy {key} must name columns of X, {list(names)}; it has {unknown[0]!r}.")
        for name, step in entries.get("steps", {}).items():
            check_positive(f"policy step of {name!r}", step)
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
        raise FileError(f"{path} must hold the entries of a policy; it holds {in_a_line(found)}.")
    return found


@dataclass(frozen=True)
class Reason:
    """A column that lowers the chance of the favourable outcome.

    Attributes
    ----------
    column, value : str
    text : str
        The approved text, or "column is value".
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
    column, now, to : str
        In words.
    value : float or str
        What it would have to be.
    """

    column: str
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
        What is needed.
    reasons : tuple of Reason
        The strongest first.
    others_count : bool
        Whether columns that are not listed lower the chance as well.
    changes : tuple of Change, or None
        The smallest change that reaches the threshold; empty where none does, None where none is needed or asked for.
    changed_probability : float or None
        The chance after the change.
    """

    person: Any
    outcome: str
    probability: float
    threshold: float | None
    reasons: tuple[Reason, ...]
    others_count: bool
    changes: tuple[Change, ...] | None
    changed_probability: float | None

    def to_json(self) -> str:
        """One JSON object."""
        return json.dumps(asdict(self) | {"person": str(self.person)}, indent=2, default=str, ensure_ascii=False)

    def to_text(self) -> str:
        """Plain text."""
        return "\n".join(
            [self._opening, "", *self._reason_lines(), *(["", *self._change_lines()] if self._change_lines() else [])]
        )

    def to_html(self) -> str:
        """A page of its own; every text is escaped."""
        reasons = "".join(f"<li>{escape(self._reason(reason))}</li>" for reason in self.reasons)
        head, *rest = self._reason_lines()
        after = "" if not self.others_count else f"<p>{escape(rest[-1])}</p>"
        change = "".join(f"<p>{escape(line)}</p>" for line in self._change_lines())
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Notice</title></head>\n'
            f"<body><p>{escape(self._opening)}</p>\n<p>{escape(head)}</p><ol>{reasons}</ol>{after}\n{change}</body></html>\n"
        )

    @property
    def _opening(self) -> str:
        chance = f"The chance of {self.outcome} is {_percent(self.probability, self.threshold)}"
        if self.threshold is None:
            return f"{chance}."
        side = "at least" if self.probability >= self.threshold else "below"
        return f"{chance}, {side} the {_percent(self.threshold)} that is needed."

    def _reason(self, reason: Reason) -> str:
        fixed = "" if reason.can_change else " It cannot be changed."
        plain = f"{reason.column} is {reason.value}"
        named = reason.text if reason.text == plain else f"{reason.text} ({plain})"
        return f"{named}: lowers the chance of {self.outcome}.{fixed}"

    def _reason_lines(self) -> list[str]:
        if not self.reasons:
            return ["No column lowers the chance against that of the average person."]
        lines = [f"{k}. {self._reason(reason)}" for k, reason in enumerate(self.reasons, 1)]
        more = ["Columns that are not listed lower it as well."] if self.others_count else []
        return ["Main reasons, the strongest first, against the average person:", *lines, *more]

    def _change_lines(self) -> list[str]:
        if self.changes is None:
            return []
        if not self.changes:
            return ["No change of the columns that can be changed reaches what is needed."]
        parts = [f"{change.column} from {change.now} to {change.to}" for change in self.changes]
        return [
            f"The smallest change that reaches it: {'; '.join(parts)}. With everything else as it is, the chance of "
            f"{self.outcome} is then {_percent(self.changed_probability or 0.0)}."
        ]


def _percent(probability: float, beside: float | None = None) -> str:
    """A percentage with as few decimals as tell it from the other one."""
    for digits in range(5):
        text = f"{probability:.{digits}%}"
        if beside is None or probability == beside or text != f"{beside:.{digits}%}":
            return text
    return text


def notices(model: Any, X: Any, threshold: float | None, favourable: Any, policy: Any, n: int) -> list[Notice]:
    """One notice per person; `ScorecardMixin.notice` has the parameters."""
    scorer, encoder = model._scorer(), model.encoder_
    if scorer.guarantee.output_range or len(model._labels()) != 2:
        raise InvalidInputError("notice needs a classifier of two classes: a favourable outcome, and another.")
    n, said = check_count("n", n), Policy.read(policy, encoder.names)
    if threshold is not None:
        threshold = check_positive("threshold", threshold, below=1)
    label = model._outcome(favourable)
    position = model._labels().index(label)
    sign = 1.0 if position == scorer.counts_for else -1.0
    people = model._people(X)
    points = sign * scorer.points(people)[:, :, 0]
    h = scorer.estimate(people).mean[:, position]
    index = X.index if isinstance(X, pd.DataFrame) else range(len(people))
    words = said.outcome or f"the outcome {label!r}"
    found = []
    for row, person in enumerate(index):
        reasons, others = _reasons(scorer, people, row, points[row], said, n)
        changes = after = None
        if threshold is not None and h[row] < threshold:
            changes, after = _changes(scorer, people, row, sign, position, threshold, said)
        found.append(Notice(person, words, float(h[row]), threshold, reasons, others, changes, after))
    return found


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
        value = value_text(people, row, scorer.model.shapes[j].column, scorer)
        reasons.append(
            Reason(
                names[j],
                value,
                said.reasons.get(names[j], f"{names[j]} is {value}"),
                float(lowered[j]),
                float(lowered[j]) / total,
                names[j] not in said.immutable,
            )
        )
    return tuple(reasons), len(listed) < len(order)


def value_text(people: People, row: int, column: int, scorer: AdditiveScorer) -> str:
    """A person's value in words."""
    from likewise.additive.scorecard import written_value

    return written_value(people, row, column, getattr(scorer.guarantee.metric, "units", {}))


def _changes(
    scorer: AdditiveScorer, people: People, row: int, sign: float, position: int, threshold: float, said: Policy
) -> tuple[tuple[Change, ...], float | None]:
    """The smallest change that reaches the threshold, checked with the model itself."""
    weights, encoder = scorer.guarantee.metric.weights_of(people.encoder), people.encoder
    columns = []
    for shape in scorer.model.shapes:
        name, i = str(encoder.names[shape.column]), shape.column
        if name in said.protected or name in said.immutable:
            continue
        levels = level_names(encoder, i)
        columns.append(
            Column(
                i,
                float(people.rows[row, i]),
                shape.knots,
                sign * shape.values[0],
                None if shape.other is None else sign * float(shape.other[0]),
                float(weights.scales[i]),
                float(weights.missing[i]),
                1.0 if levels is not None else float(said.steps.get(name, 0.0)),
                [] if levels is None else [k for k, level in enumerate(levels) if level is not None],
                weights.tables[i][int(people.rows[row, i])] if i in weights.tables else None,
            )
        )
    score = sign * float(scorer.scores(people.take([row]))[0, 0])
    need = _needed(scorer, threshold, sign)
    for slack in _SLACKS:  # of the rounding of scores: what is found must do with the model itself
        smallest = smallest_change(columns, need - score + slack * (1 + abs(need)))
        if smallest is None:
            return (), None
        found = smallest
        changed = people.rows[row : row + 1].copy()
        for column, value in found.items():
            changed[0, column] = value
        after = float(scorer.estimate(People(changed, encoder, None)).mean[0, position])
        if after >= threshold:
            break
    changes = []
    for column, value in found.items():
        levels, name = level_names(encoder, column), str(encoder.names[column])
        unit = getattr(scorer.guarantee.metric, "units", {}).get(encoder.names[column], "")
        to = str(levels[int(value)]) if levels is not None else _all_digits(value, Unit.of(unit))
        now = value_text(people, row, column, scorer)
        changes.append(Change(name, now, to, value if levels is None else to))
    return tuple(changes), after


def _all_digits(value: float, unit: Unit) -> str:
    """A number with its unit, not rounded: a rounded one may not do."""
    digits = f"{value * unit.factor:,.9f}".rstrip("0").rstrip(".")
    return f"{unit.prefix}{digits}{unit.suffix}"


def _needed(scorer: AdditiveScorer, threshold: float, sign: float) -> float:
    """The score of the favourable outcome at a threshold."""
    if scorer.link == "clip":
        score = threshold - 0.5
    elif scorer.link == "probit":
        from scipy.special import ndtri

        score = float(ndtri(threshold))
    else:
        score = math.log(threshold / (1 - threshold))
    if isinstance(scorer, PointsScorer):
        base, odds = scorer.base_score, math.log(scorer.base_odds)
        score = sign * base + (score - sign * odds) * scorer.points_to_double / math.log(2)
    return score
