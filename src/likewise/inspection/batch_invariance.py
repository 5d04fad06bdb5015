"""Whether a model's answer to a row depends on the rows that it shares a call with.

A promise about people rests on answers that are a function of a row. Most models have such answers; some round a row
differently by its place in a matrix product; a few look at the other rows. What a model does is tried out on some rows.
Trials prove nothing for other rows, so calls are afterwards made in the tried sizes only, filled up where needed: then
at least the size of a call, on which blocking and rounding depend, is never one that was not tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

from likewise._typing import FloatArray, IntArray
from likewise.inspection.baselines import AsNumbers
from likewise.inspection.prediction import Vote
from likewise.inspection.preprocessing import unwrap

_ROWWISE = {
    AsNumbers,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    SimpleImputer,
    StandardScaler,
}
# Their trees are added to what another model says, if one is given as `init`.
_BOOSTED = {GradientBoostingClassifier, GradientBoostingRegressor}
# With several threads, these add up their trees in the order in which the threads finish.
_FORESTS = {ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor}


def is_rowwise(model: Any) -> bool | None:
    """Whether the model is known to treat each row by itself, to the last bit, or known not to; else None.

    Examples
    --------
    >>> is_rowwise(DecisionTreeClassifier()), is_rowwise(RandomForestClassifier(n_jobs=2)), is_rowwise(len)
    (True, False, None)
    """
    steps, last = unwrap(model)
    if last is not model:
        return _all([*steps, last])
    if model is None or isinstance(model, str):
        return True if model in (None, "drop") else None
    if type(model) is FunctionTransformer:  # a fitted ColumnTransformer has one for each "passthrough"
        return True if model.func is None else None
    if type(model) is ColumnTransformer:
        fitted = getattr(model, "transformers_", model.transformers)
        return _all([step for _, step, _ in fitted])
    if type(model) in _FORESTS:
        return model.n_jobs in (None, 1)
    if type(model) in _BOOSTED:
        constant = model.init is None or isinstance(model.init, str)  # "zero"
        return True if constant else is_rowwise(getattr(model, "init_", model.init))
    return True if type(model) in _ROWWISE else None


def _all(parts: list[Any]) -> bool | None:
    known = [is_rowwise(part) for part in parts]
    return False if False in known else None if None in known else True


TILES = (128, 512, 2048, 8192, 32_768)
"""Sizes of calls that rows of several people share."""

OTHER_SIZES = (1, 3, 17, 129)
N_PROBES = 64


def in_tiles(vote: Vote) -> Vote:
    """The same votes, asked for in calls of the sizes in `TILES` only.

    Examples
    --------
    >>> sizes = []
    >>> vote = in_tiles(lambda rows: sizes.append(len(rows)) or rows)
    >>> vote(np.zeros((700, 2))).shape, sizes
    ((700, 2), [512, 128, 128])
    """

    def ask(rows: FloatArray) -> FloatArray:
        answers, start = [], 0
        while start < len(rows):
            size = _size_for(len(rows) - start)
            tile = rows[start : start + size]
            n = len(tile)
            if n < size:
                tile = np.concatenate([tile, np.repeat(tile[:1], size - n, axis=0)])
            answers.append(vote(tile)[:n])
            start += size
        return np.concatenate(answers)

    return ask


def row_by_row(vote: Vote) -> Vote:
    """The same votes, asked for in calls of one row."""
    return lambda rows: np.concatenate([vote(rows[i : i + 1]) for i in range(len(rows))])


@dataclass(frozen=True)
class Changes:
    """Largest changes of an answer, relative to answers above 1; 0 if not a bit has changed.

    Attributes
    ----------
    again : float
        Between two calls with the same rows.
    within : float
        By place and company, in calls of the sizes in `TILES`.
    beyond : float
        Between these and calls of other sizes, single rows among them.
    """

    again: float
    within: float
    beyond: float


def try_out(ask: Vote, rows: FloatArray) -> Changes:
    """Ask about the same few rows again, shuffled, alone and in company, in calls of many sizes.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(40, 3))
    >>> try_out(lambda rows: rows**2, rows)
    Changes(again=0.0, within=0.0, beyond=0.0)
    >>> try_out(lambda rows: rows - rows.mean(axis=0), rows).within > 0.1
    True
    """
    some = rows[:N_PROBES]
    first = np.resize(np.arange(len(some)), TILES[0])
    answers = ask(some[first])
    known = answers[: len(some)]

    def change(chosen: IntArray) -> float:
        return _gap(ask(some[chosen]), known[chosen])

    again = _gap(ask(some[first]), answers)
    within = max(_gap(answers, known[first]), *map(change, _tiles(len(some))))
    beyond = max(map(change, _others(len(some))))
    return Changes(again, max(again, within), max(again, beyond))


def _size_for(n_rows: int) -> int:
    """The tile that holds all these rows if it is more than half full, else the largest that they fill."""
    holds = next((size for size in TILES if n_rows <= size), TILES[-1])
    if n_rows > holds / 2 or holds == TILES[0]:
        return holds
    return TILES[TILES.index(holds) - 1]


def _tiles(n: int) -> Iterator[IntArray]:
    """Positions among `n` rows that fill a tile: shuffled, with nobody else, and in changing company."""
    rng = np.random.default_rng(0)
    yield rng.permutation(np.resize(np.arange(n), TILES[0]))
    for one in rng.permutation(n)[:4]:
        yield np.full(TILES[0], one)
    for size in TILES:
        # A call of the same people, shuffled, has the same mean: who looks at that is found in other company only.
        company = rng.permutation(n)[: max(1, n // 2)]
        yield rng.choice(company, size)


def _others(n: int) -> Iterator[IntArray]:
    """Positions among `n` rows for calls of other sizes."""
    rng = np.random.default_rng(1)
    for size in OTHER_SIZES:
        for _ in range(8 if size == 1 else 2):
            yield rng.integers(n, size=size)


def _gap(answers: FloatArray, known: FloatArray) -> float:
    same = (answers == known) | (np.isnan(answers) & np.isnan(known))
    with np.errstate(invalid="ignore"):
        change = np.abs(answers - known) / np.maximum(1.0, np.abs(known))
    return float(np.where(same, 0.0, np.nan_to_num(change, nan=np.inf)).max())
