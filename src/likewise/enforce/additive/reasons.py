"""What lowers a person's score, in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from likewise._checks import check_count
from likewise._typing import FloatArray
from likewise.enforce.additive.card import level_names
from likewise.enforce.additive.scorers import AdditiveScorer
from likewise.enforce.links import LINKS
from likewise.metrics.columns import UNSEEN
from likewise.metrics.people import People
from likewise.metrics.units import Unit


def reasons_of(scorer: AdditiveScorer, people: People, signs: FloatArray, n: int, index: Any) -> pd.DataFrame:
    """The columns with the fewest points below 0, the average person's, in words."""
    n = check_count("n", n)
    points = scorer.points(people) @ signs
    order = np.argsort(points, axis=1, kind="stable")[:, :n]
    score = "" if scorer.guarantee.output_range else f" {LINKS[scorer.link].score}"
    units = getattr(scorer.guarantee.metric, "units", {})
    rows = []
    for person, chosen in enumerate(order):
        words = []
        for j in chosen:
            column = scorer.model.shapes[j].column
            lost = points[person, j]
            if lost < 0:
                what = _value(people, person, column, units)
                words.append(f"{people.coding.names[column]} is {what}: {lost:+.2f}{score} against the average person")
        rows.append(words + [""] * (n - len(words)))
    return pd.DataFrame(rows, columns=[f"reason {k}" for k in range(1, n + 1)], index=index)


def _value(people: People, person: int, column: int, units: Any) -> str:
    value, levels = people.rows[person, column], level_names(people.coding, column)
    if np.isnan(value):
        return "not known"
    if levels is None:
        unit = units.get(people.coding.names[column], "")
        return Unit.of("" if unit == "category" else unit).written(value)
    level = levels[int(value)] if value != UNSEEN else "of a kind that the model has not seen"
    return "not known" if level is None else str(level)
