"""Categories of a table in the type and the spelling in which another system's model knows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise._subsample import evenly_spaced
from likewise.ask import answers
from likewise.cli.column_kinds import read_numbers, with_blanks
from likewise.cli.console import Dialect, Note
from likewise.cli.table_io import refuse_unknown, some_values, unseen_note
from likewise.exceptions import FileError
from likewise.kernel.columns import UNSEEN, LevelIndex, canonical_category
from likewise.known_values import known_values

_BOOSTERS = ("xgboost", "lightgbm", "catboost")
_ASKED = 1000  # people whose outputs are compared under two spellings


@dataclass(frozen=True, eq=False)
class SpellingOfModel:
    """What a model knows of the categories of its columns.

    To an encoder that was fitted on codes 1, 2, 3, the "01", "02", "03" of a file are all unknown, and to most encoders
    all that is unknown is the same: the column would seem not to matter.

    Attributes
    ----------
    model : object
    known : mapping from column to list
        Values that the model's encoders were fitted on.
    """

    model: Any
    known: Mapping[str, Sequence[Any]]

    @classmethod
    def of(cls, model: Any, columns: Sequence[str]) -> SpellingOfModel:
        """Of a model that takes these columns."""
        return cls(model, {name: values for name, values in known_values(model, columns).items() if name in columns})

    @property
    def columns(self) -> list[str]:
        """Columns whose categories the model knows, or takes as text."""
        return [*self.known, *(name for name in self._texts if name not in self.known)]

    def applied_to(self, people: pd.DataFrame, dialect: Dialect, where: str, note: Note) -> pd.DataFrame:
        """People with the values that the model knows, in its spelling and type; `where` they are from is for errors.

        Raises if it knows no value of a column, and notes if it does not know some.
        """
        changed: dict[str, Any] = {}
        for name, known in self.known.items():
            if name not in people.columns:
                continue
            column, unseen = _as_known(people[name], known, dialect)
            n_present = int(column.notna().sum())
            if n_present and int(unseen.sum()) == n_present:
                refuse_unknown(name, where, people[name][unseen], known)
            if unseen.any():
                note(unseen_note(name, people[name][unseen].iloc[0], int(unseen.sum()), len(people), known))
            listed = [*dict.fromkeys(value for value in known if not pd.isna(value))]
            strange = [*dict.fromkeys(column[unseen])]
            changed[name] = pd.Categorical(column, categories=[*listed, *strange]) if self._is_booster else column
        for name in self._texts:
            changed[name] = with_blanks(people[name]).map(canonical_category, na_action="ignore")
        found = people.assign(**changed)
        if not self._is_booster:
            return found
        return found.astype({name: "category" for name in found if found[name].dtype.kind not in "iufb"})

    def refuse_unknown_text(self, people: pd.DataFrame, where: str) -> None:
        """Raise for digits as text that are all unknown to a model which does know them as numbers.

        For models that cannot be looked into. A model is asked about the people as they are, with numbers, and with a
        word that nobody has.
        """
        some = people.iloc[evenly_spaced(len(people), _ASKED)]
        for name in [str(name) for name in people if name not in self.known and people[name].dtype.kind not in "iufb"]:
            texts = some[name].astype(object)
            numbers = pd.to_numeric(texts, errors="coerce")
            if not numbers.notna().any() or (numbers.isna() & texts.notna()).any():
                continue
            kind = people[name].dtype
            word = texts.mask(texts.notna(), "another")
            try:
                given, unknown, read = (
                    answers(self.model, some.assign(**{name: each}))
                    for each in (some[name], word.astype("category") if kind == "category" else word, numbers)
                )
            except Exception:  # the model takes text only, or numbers only
                continue
            if np.array_equal(given, unknown) and not np.array_equal(given, read):
                raise FileError(
                    f"Column {name!r} of {where} is taken as text, such as {some_values(texts)}, and to the model this "
                    "is as unknown as any other word; as numbers it matters. Write the numbers as they were in "
                    f"training, without leading zeros, and leave out --categorical {name}."
                )

    @property
    def _is_booster(self) -> bool:
        return type(self.model).__module__.partition(".")[0] in _BOOSTERS or hasattr(self.model, "booster_")

    @property
    def _texts(self) -> list[str]:
        """Columns of categories of CatBoost, which reads them as text, whole numbers as their digits."""
        if not hasattr(self.model, "get_cat_feature_indices"):
            return []
        return [self.model.feature_names_[i] for i in self.model.get_cat_feature_indices()]


def _as_known(column: pd.Series[Any], known: Sequence[Any], dialect: Dialect) -> tuple[pd.Series[Any], Any]:
    """A column with the values of the model where it knows them; and which ones it does not know."""
    listed = [value for value in known if not pd.isna(value)]
    column = with_blanks(column, listed)
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in listed):
        numbers = read_numbers(column, dialect)
        if not numbers.wrong.any():
            unseen = ~np.isnan(numbers.values) & ~np.isin(numbers.values, listed)
            whole = all(isinstance(value, int) for value in listed) and bool((numbers.values % 1 == 0).all())
            read: Any = numbers.values.astype(np.int64) if whole else numbers.values
            return pd.Series(read, index=column.index), unseen
    index, blank = LevelIndex(listed), next((value for value in known if pd.isna(value)), np.nan)
    where, distinct = pd.factorize(column)
    codes = [index.find(value) for value in distinct]
    texts = [value if code == UNSEEN else listed[int(code)] for value, code in zip(distinct, codes, strict=True)]
    values = pd.Series([*texts, blank], dtype=object).take(where).set_axis(column.index)
    if values.notna().all() and all(isinstance(value, bool) for value in values.unique()):
        values = values.astype(bool)
    return values, np.array([*(code == UNSEEN for code in codes), False], dtype=bool)[where]
