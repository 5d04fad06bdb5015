"""Columns that should perhaps not be there: ids, names, codes; what tells the outcome, or what is protected."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.tree import DecisionTreeRegressor

from likewise._subsample import evenly_spaced
from likewise.cli.console import Note
from likewise.kernel.columns import is_numeric

if TYPE_CHECKING:
    from likewise.cli.dataset import Dataset

# Words in names of columns that many laws protect; only suggested, never assumed.
_PROTECTED_WORDS = """
age birth birthday born children citizen citizenship color colour dependents disability disabled dob ethnic
ethnicity familial family female foreign foreigner gender immigrant immigration maiden male marital married
nationality native older origin pregnancy pregnant race religion sex spouse surname veteran yob
"""
_OFTEN_PROTECTED = frozenset(_PROTECTED_WORDS.split())
_LONG = 5  # digits that all numbers of an account have
_REPEATED = 20  # pairs expected to be equal: that none is has a chance of e^-20
_LEAST, _MOST = 50, 4000  # people by whom columns are compared
_TELLS_CLASS, _TELLS_NUMBER, _TELLS_PROTECTED = 0.8, 0.95, 0.8  # share of what a constant misses
_FEW_VALUES, _FEW_PEOPLE, _MAX_KINDS, _MAX_SHOWN = 10, 20, 30, 6


def note_doubtful(X: pd.DataFrame, note: Note) -> None:
    """Note columns that look like an id, have very many categories, or may be codes."""
    n, codes = len(X), {}
    for name in map(str, X.columns):
        column = X[name]
        values = np.unique(column.dropna().astype(str)) if not is_numeric(column) else np.unique(column.dropna())
        if n >= _FEW_PEOPLE and len(values) == n and (not is_numeric(column) or _counts_rows(column)):
            note(
                f"Column {name!r} is different for each of the {n:,} people, as an id is: a model learns nothing from "
                f"it that holds for others. Leave it out with --id {name}."
            )
        elif n >= _FEW_PEOPLE and is_numeric(column) and _rises(column):
            note(
                f"Column {name!r} rises or falls with the rows of the table, as a number in sequence does. Leave it "
                f"out with --drop {name}, unless the table was sorted by it."
            )
        elif not is_numeric(column) and len(values) > _MAX_KINDS and (len(values) >= 100 or len(values) > n / 10):
            note(
                f"Column {name!r} has {len(values):,} different values among {n:,} people, each a category of its own. "
                f"Group them first, or leave the column out with --drop {name}."
            )
        elif is_numeric(column) and _may_be_codes(values, n):
            codes[name] = ", ".join(f"{value:g}" for value in values)
    if codes:
        shown = [f"{name} ({values})" for name, values in codes.items()]
        more = [f"{len(shown) - _MAX_SHOWN} more"] if len(shown) > _MAX_SHOWN else []
        options = " ".join(f"--categorical {name}" for name in [*codes][:_MAX_SHOWN])
        note(
            f"Taken as amounts, though they have few different values: {', '.join([*shown[:_MAX_SHOWN], *more])}. For "
            f"codes, say {options}."
        )


def _counts_rows(column: pd.Series[Any]) -> bool:
    """Whether distinct integers are given, not measured: by order, digits or name, or as chance would repeat some."""
    if not bool((column % 1 == 0).all()):
        return False
    named = re.search(r"(?:^|[^a-z])(?:id|key|uuid|nr|no|number)$", str(column.name).lower()) is not None
    digits = column.abs().astype(np.int64).astype(str).str.len()
    same = digits.nunique() == 1 and int(digits.iloc[0]) >= _LONG
    # Of n integers drawn at random from a span, n^2 / (2 span) pairs are equal on average; of others, more.
    repeated = len(column) ** 2 / (2 * (float(column.max()) - float(column.min()) + 1))
    sorted_ = column.is_monotonic_increasing or column.is_monotonic_decreasing
    return bool(named or same or sorted_ or repeated > _REPEATED)


def _rises(column: pd.Series[Any]) -> bool:
    """Whether numbers rise, or fall, from row to row, and most of them are different."""
    complete = column.notna().all() and column.nunique() > len(column) / 2
    return bool(complete) and (column.is_monotonic_increasing or column.is_monotonic_decreasing)


def _may_be_codes(values: npt.NDArray[Any], n: int) -> bool:
    """Whether the distinct values of `n` people may be codes: few integers, and not counts from 0 on."""
    few = 2 <= len(values) <= _FEW_VALUES and n >= 5 * len(values) and bool((values % 1 == 0).all())
    counts = len(values) > 2 and values[0] == 0 and values[-1] == len(values) - 1
    return few and not counts


def protected_candidates(columns: Sequence[str]) -> list[str]:
    """Columns whose names hold a word such as sex, race, age or married.

    Examples
    --------
    >>> protected_candidates(["income", "Race", "marital.status", "average", "older_than_median", "ageBand", "DOB"])
    ['Race', 'marital.status', 'older_than_median', 'ageBand', 'DOB']
    """
    return [
        name
        for name in columns
        if not _OFTEN_PROTECTED.isdisjoint(word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name))
    ]


def tells(column: pd.Series[Any], told: Any, *, classify: bool) -> float:
    """The share of what a constant misses that a column alone explains, for people held out: by a tree on its values.

    Numbers that are told count by their ranks, so that a logarithm tells all of them.

    Examples
    --------
    >>> price = pd.Series(np.arange(1.0, 1001))
    >>> tells(np.log(price), price, classify=False) > 0.99, tells(price % 7, price, classify=False) < 0.5
    (True, True)
    """
    chosen = evenly_spaced(len(column), _MOST)
    values: Any = column.iloc[chosen]
    values = values.to_numpy(np.float64, na_value=np.nan) if is_numeric(values) else pd.factorize(values)[0]
    outcomes = pd.Series(np.asarray(told)[chosen])
    if classify:
        wanted = pd.get_dummies(outcomes, dummy_na=True).to_numpy(np.float64)
    else:
        wanted = outcomes.fillna(outcomes.median()).rank().to_numpy()[:, None]
    rows = np.asarray(values, dtype=np.float64)[:, None]
    tree, halves = DecisionTreeRegressor(min_samples_leaf=5, random_state=0), KFold(2, shuffle=True, random_state=0)
    found = cross_val_predict(tree, rows, wanted, cv=halves).reshape(wanted.shape)
    missed = float(((wanted - wanted.mean(axis=0)) ** 2).sum())
    return 1 - float(((wanted - found) ** 2).sum()) / missed if missed else 0.0


def note_telling(data: Dataset, target: str, protected: Collection[str], note: Note, cure: str) -> list[str]:
    """Name the columns that tell the outcome almost alone, or what is protected; `cure` leaves one out.

    Columns named like what is protected are suggested. Returns those that tell the outcome.
    """
    X, classify = data.X, data.is_classification
    others, leaks = [name for name in X.columns if name not in protected], []
    for name in others if len(X) >= _LEAST else []:
        share = tells(X[name], data.y, classify=classify)
        if share >= (_TELLS_CLASS if classify else _TELLS_NUMBER):
            leaks.append(str(name))
            note(
                f"Column {name!r} alone tells {target!r} almost completely ({share:.1%} of what a constant misses): it "
                f"may be known only after the outcome. {cure.format(name)}"
            )
        for hidden in [each for each in protected if each in X.columns]:
            kinds = not is_numeric(X[hidden]) or X[hidden].nunique() <= _FEW_VALUES
            share = tells(X[name], X[hidden], classify=kinds)
            if share >= _TELLS_PROTECTED:
                note(
                    f"Column {name!r} tells {hidden!r}, which is protected ({share:.0%} of what a constant misses): "
                    f"protect it too, or leave it out. {cure.format(name)}"
                )
    more = [name for name in protected_candidates([*map(str, others)]) if name not in leaks]
    if more and protected:
        note(f"Named like what laws protect, and not protected here: {', '.join(more)}.")
    return leaks
