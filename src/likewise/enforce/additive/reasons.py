"""What speaks for a person's outcome, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from likewise._checks import check_count
from likewise.enforce.additive.card import level_names
from likewise.enforce.additive.scorers import AdditiveScorer
from likewise.enforce.links import LINKS
from likewise.metrics.columns import UNSEEN
from likewise.metrics.people import People
from likewise.metrics.units import Unit


def reasons_of(
    scorer: AdditiveScorer, people: People, outcomes: Sequence[Any], chosen: int | None, n: int, index: Any
) -> pd.DataFrame:
    """The columns with the most points for an outcome, against 0, the average person's, in words.

    Parameters
    ----------
    scorer : AdditiveScorer
    people : People
    outcomes : sequence
        What can be explained: the classes; or two words for less and more than the average person.
    chosen : int or None
        Position of the outcome to explain; None takes, for each person, the one with the largest gain.
    n : int
        Reasons per person, at most.
    index : index of the result
    """
    n = check_count("n", n)
    points = scorer.points(people)  # of each person, column and function
    if points.shape[2] == 1:
        points = np.concatenate([-points, points], axis=2)
    if chosen is None:
        # Beside the average person's, the log of a probability grows by the sum of points and a term that all outcomes
        # share. The last of equals.
        gains = points.sum(axis=1)
        which = gains.shape[1] - 1 - np.argmax(gains[:, ::-1], axis=1)
    else:
        which = np.full(len(people), chosen)
    speaks = np.take_along_axis(points, which[:, None, None], axis=2)[:, :, 0]
    order = np.argsort(-speaks, axis=1, kind="stable")[:, :n]
    units, numeric = getattr(scorer.guarantee.metric, "units", {}), scorer.guarantee.output_range is not None
    rows = []
    for person, columns in enumerate(order):
        outcome, words = outcomes[which[person]], []
        for j in columns[speaks[person, columns] > 0]:
            column, size = scorer.model.shapes[j].column, speaks[person, j]
            what = _value(people, person, column, units)
            # A prediction that is lower is lower by a negative number.
            size = f"{size if which[person] else -size:+.2f}" if numeric else f"{size:+.2f} {_of(scorer, outcome)}"
            words.append(f"{people.coding.names[column]} is {what}: {size} against the average person")
        rows.append([outcome, *words, *[""] * (n - len(words))])
    return pd.DataFrame(rows, columns=["outcome", *(f"reason {k}" for k in range(1, n + 1))], index=index)


def _of(scorer: AdditiveScorer, outcome: Any) -> str:
    return f"{LINKS[scorer.link].score} of {outcome!r}"


def _value(people: People, person: int, column: int, units: Any) -> str:
    value, levels = people.rows[person, column], level_names(people.coding, column)
    if np.isnan(value):
        return "not known"
    if levels is None:
        unit = units.get(people.coding.names[column], "")
        return Unit.of("" if unit == "category" else unit).written(value)
    level = levels[int(value)] if value != UNSEEN else "of a kind that the model has not seen"
    return "not known" if level is None else str(level)
