"""One plain line on each column that may not be what it seems, with a count and the cure."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise.app.tables import Note
from likewise.metrics.columns import UNSEEN, CategoricalColumn

_FEW_VALUES, _FEW_PEOPLE, _MOST_KINDS, _MOST_SHOWN, _MOST_LEVELS = 10, 20, 30, 6, 3


def note_doubtful(X: pd.DataFrame, note: Note) -> None:
    """One line on each column that looks like an id or has very many categories, and one on all that may be codes."""
    n, codes = len(X), {}
    for name in map(str, X.columns):
        column = X[name]
        values = np.unique(column.dropna().astype(str)) if not _is_numeric(column) else np.unique(column.dropna())
        if n >= _FEW_PEOPLE and len(values) == n and (not _is_numeric(column) or _counts_rows(column)):
            note(
                f"Column {name!r} is different for each of the {n:,} people, as an id is: a model learns nothing from "
                f"it that holds for others. Leave it out with --id {name}."
            )
        elif not _is_numeric(column) and len(values) > _MOST_KINDS and (len(values) >= 100 or len(values) > n / 10):
            note(
                f"Column {name!r} has {len(values):,} different values among {n:,} people, each a category of its own. "
                f"Group them first, or leave the column out with --drop {name}."
            )
        elif _is_numeric(column) and _may_be_codes(values, n):
            codes[name] = ", ".join(f"{value:g}" for value in values)
    if codes:
        shown = [f"{name} ({values})" for name, values in codes.items()]
        more = [f"{len(shown) - _MOST_SHOWN} more"] if len(shown) > _MOST_SHOWN else []
        options = " ".join(f"--categorical {name}" for name in [*codes][:_MOST_SHOWN])
        note(
            f"Taken as amounts, though they have few different values: {', '.join([*shown[:_MOST_SHOWN], *more])}. For "
            f"codes, say {options}."
        )


def _is_numeric(column: pd.Series[Any]) -> bool:
    return pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)


def _counts_rows(column: pd.Series[Any]) -> bool:
    """Whether whole numbers, all different, stand in order or are called an id."""
    if not bool((column % 1 == 0).all()):
        return False
    named = re.search(r"(?:^|[^a-z])(?:id|key|uuid|nr|no|number)$", str(column.name).lower()) is not None
    return named or column.is_monotonic_increasing or column.is_monotonic_decreasing


def _may_be_codes(values: npt.NDArray[Any], n: int) -> bool:
    """Whether the distinct numbers of `n` people may be codes: few whole ones, and no counts from 0 on."""
    few = 2 <= len(values) <= _FEW_VALUES and n >= 5 * len(values) and bool((values % 1 == 0).all())
    counts = len(values) > 2 and values[0] == 0 and values[-1] == len(values) - 1
    return few and not counts


class Unseen:
    """Counts people with categories that a model has not seen, over the batches of a table."""

    def __init__(self, model: Any) -> None:
        columns = getattr(model.coding_, "columns", ())
        hidden = getattr(model.coding_, "optional", ())
        self._columns = [c for c in columns if isinstance(c, CategoricalColumn) and c.name not in hidden]
        self._found: dict[Any, tuple[Any, int]] = {}
        self._n_people = 0

    def look(self, people: pd.DataFrame) -> None:
        """Look at the people of one batch."""
        self._n_people += len(people)
        for column in self._columns:
            places = np.flatnonzero(column.encode(people[column.name]) == UNSEEN)
            if len(places):
                first = people[column.name].iloc[int(places[0])]
                example, count = self._found.get(column.name, (first, 0))
                self._found[column.name] = example, count + len(places)

    def tell(self, note: Note) -> None:
        """One line for each column."""
        levels = {column.name: [repr(str(level)) for level in column.levels] for column in self._columns}
        for name, (first, count) in self._found.items():
            known = levels[name][:_MOST_LEVELS] + ["..."] * (len(levels[name]) > _MOST_LEVELS)
            example = "a blank" if pd.isna(first) else repr(str(first))
            note(
                f"Column {name!r}: {count:,} of {self._n_people:,} people have a category that the model has not "
                f"seen, such as {example}. All of these count as one. It knows {', '.join(known)}: check the spelling."
            )
