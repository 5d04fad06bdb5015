"""Questions about pairs of people, and what the answers of several people say together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from likewise.design.judgements import JudgedMetric, learn_metric
from likewise.design.judgements_table import (
    CLOSER,
    SKIP,
    WeightSpace,
    canonical_person,
    describe_answer,
    empty_judgements,
    read_answers,
)
from likewise.design.questions import Question, next_question
from likewise.exceptions import InvalidInputError
from likewise.kernel.columns import canonical_category
from likewise.metrics.units import Unit
from likewise.workbench.engine import Engine
from likewise.workbench.state import Session

_MAX_COLUMNS = 40  # with more of them, pairs differ in too many to judge


class Judging:
    """Questions and answers about the people of a table; locked columns are neither shown nor learned."""

    def __init__(self, engine: Engine, session: Session) -> None:
        self.engine, self.session = engine, session

    def question(self, judge: str, *, compare: bool = False) -> dict[str, Any] | None:
        """The pair that would settle most for a judge, or two pairs to compare; None if nothing is left to ask."""
        X, answers = self._people(), self._answers(judge)
        if compare:
            return self._comparison(X, answers, judge)
        first = self._next(answers, X)
        return None if first is None else self.pair(first.a, first.b)

    def _comparison(self, X: pd.DataFrame, answers: list[dict[str, Any]], judge: str) -> dict[str, Any] | None:
        """Two pairs that were not compared before; the second differs in a column in which the first does not."""

        def skipped(a: Any, b: Any) -> dict[str, Any]:
            return {"judge": judge, "kind": SKIP, "a": a, "b": b}

        compared = [row for row in answers if row["kind"] == CLOSER]
        asked = [skipped(row[a], row[b]) for row in compared for a, b in (("a", "b"), ("c", "d"))]
        first = self._next([*answers, *asked], X)
        if first is None:
            return None
        one = self.pair(first.a, first.b)
        differing = {line["column"] for line in one["differences"]}
        rest = X[[name for name in X.columns if str(name) not in differing]]
        second = self._next([*asked, skipped(first.a, first.b)], rest)
        if second is None:
            return None
        two = self.pair(second.a, second.b)
        return {**one, "c": two["a"], "d": two["b"], "others": two["differences"]}

    def pair(self, a: Any, b: Any) -> dict[str, Any]:
        """Two people, only where they differ."""
        frame = self._people()
        rows = [frame.iloc[self.engine.row_of(side)] for side in (a, b)]
        if str(a) == str(b):
            raise InvalidInputError("Choose two different people.")
        units = {str(name): Unit.of(unit) for name, unit in self.session.sheet.units.items()}

        def written(name: str, row: Any) -> str:
            value: Any = row[name]
            number = shown(value) and isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
            return units[name].written(float(value)) if name in units and number else shown(value)

        differences = [
            {"column": str(name), "a": written(str(name), rows[0]), "b": written(str(name), rows[1])}
            for name in frame.columns
            if shown(rows[0][name]) != shown(rows[1][name])
        ]
        return {"a": str(a), "b": str(b), "differences": differences, "n_same": frame.shape[1] - len(differences)}

    def learn(self, *, near: bool = False) -> JudgedMetric | None:
        """What all answers say; None without any. With `near`, the metric closest to the present weights."""
        rows = self._rows()
        if not rows:
            return None
        X, sheet = self._people(), self.session.sheet
        start = sheet.metric if near else None
        if near and not self.engine.bound(sheet).matters.any():
            raise InvalidInputError("No column has a weight yet to stay close to. Take the middle of the ranges.")
        if start is None and all(row["kind"] == CLOSER for row in rows):
            raise InvalidInputError("Comparisons alone fix ratios of weights, not their size. Answer one in points.")
        people = self.engine.X if near else X
        return learn_metric(pd.DataFrame(rows), people, start, categorical=None if near else self._categorical(X))

    def answers(self) -> list[dict[str, Any]]:
        """The answers that stand, in words."""
        return [
            {"n": event["n"], "name": event["name"], "texts": [describe(row) for row in event["rows"]]}
            for event in self.session.log.answers.values()
        ]

    def summary(self) -> dict[str, Any]:
        """Ranges of weights, and what to discuss: answers that cannot all hold, and different ones to one question."""
        rows = self._rows()

        def said(chosen: Iterable[int]) -> list[dict[str, Any]]:
            each = [rows[i] for i in chosen]
            return [{"n": int(row["comment"]), "name": row["judge"], "text": describe(row)} for row in each]

        found: dict[str, Any] = {"ranges": [], "conflicts": [], "disagreements": [], "error": ""}
        different = [said(group) for group in _different_answers(rows)]
        try:
            learned = self.learn()
        except InvalidInputError as error:
            return found | {"disagreements": different, "error": str(error)}
        if learned is None:
            return found
        found["conflicts"] = [said(part["answer"]) for _, part in learned.conflicts.groupby("conflict")]
        shown_already = [{each["n"] for each in group} for group in found["conflicts"]]
        found["disagreements"] = [
            group for group in different if not any({each["n"] for each in group} <= known for known in shown_already)
        ]
        asked = self.n_asked()
        for row in learned.ranges.to_dict("records"):
            if n_answers := asked.get((row["kind"], str(row["column"]))):
                high = float(row["high"])
                found["ranges"].append(
                    {
                        "column": str(row["column"]),
                        "kind": row["kind"],
                        "low": float(row["low"]),
                        "high": high if np.isfinite(high) else None,
                        "weight": float(row["weight"]),
                        "n_answers": n_answers,
                    }
                )
        return found

    @property
    def n_answers(self) -> int:
        """Answers that stand, without those that were skipped; one with both ends is one answer."""
        return len({row["comment"] for row in self._rows()})

    def n_asked(self) -> dict[tuple[str, str], int]:
        """How many answers are about people who differ in what a weight is of, by section and column."""
        X = self._people()
        space = WeightSpace.of(X, None, self._categorical(X))
        once = {row["comment"]: row for row in self._rows()}  # both ends of an answer are about the same two people
        rows = read_answers(pd.DataFrame(list(once.values())), space).rows
        names = zip(space.kinds, map(str, space.names), strict=True)
        return dict(zip(names, np.count_nonzero(rows, axis=0).tolist(), strict=True))

    def _rows(self) -> list[dict[str, Any]]:
        return [row for row in self.session.judgements() if row["kind"] != SKIP]

    def _people(self) -> pd.DataFrame:
        hidden = self.session.sheet.locked
        return self.engine.X[[name for name in self.engine.X.columns if name not in hidden]]

    def _categorical(self, X: pd.DataFrame) -> list[Any]:
        return [name for name in self.engine.categorical if name in X.columns]

    def _answers(self, judge: str) -> list[dict[str, Any]]:
        return [row for row in self.session.judgements() if row["judge"] == judge]

    def _next(self, answers: Sequence[dict[str, Any]], X: pd.DataFrame) -> Question | None:
        table = pd.DataFrame(list(answers)) if answers else empty_judgements()
        if not X.shape[1]:
            return None
        return next_question(table, X.iloc[:, :_MAX_COLUMNS], categorical=self._categorical(X.iloc[:, :_MAX_COLUMNS]))


def _different_answers(rows: Sequence[dict[str, Any]]) -> list[list[int]]:
    """Answers to the same question that are not the same, by their positions.

    They need not be a conflict: "at most 20" and "at most 60" both hold at 20, and of two pairs, each can be no further
    apart than the other.
    """
    asked: dict[Any, dict[int, Any]] = {}
    for i, row in enumerate(rows):
        sides = ("ab", "cd") if row["kind"] == CLOSER else ("ab",)
        pairs = [frozenset(canonical_person(row[one]) for one in side) for side in sides]
        said = pairs[0] if row["kind"] == CLOSER else row["points"]
        asked.setdefault((row["kind"], frozenset(pairs)), {})[i] = said
    return [list(group) for group in asked.values() if len(set(group.values())) > 1]


def describe(row: dict[str, Any]) -> str:
    """An answer in words."""
    return f"no answer about {row['a']} and {row['b']}" if row["kind"] == SKIP else describe_answer(row)


def shown(value: Any) -> str:
    """A value as text; empty where it is missing."""
    if pd.isna(value):
        return ""
    return f"{value:.10g}" if isinstance(value, (float, np.floating)) else canonical_category(value)
