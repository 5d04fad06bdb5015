"""Whether a model's output for a row depends on the other rows of the batch.

A guarantee needs outputs that are a function of the row. Most models comply; some round a row differently by its
position in a matrix product; a few use the other rows. This is tested on some rows, which proves nothing for others.
Batches therefore only have sizes that were tested, padded where needed, since blocking and rounding depend on the size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import ensemble, preprocessing
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer

from likewise._typing import FloatArray, IntArray
from likewise.inspection.baselines import AsNumbers
from likewise.inspection.prediction import Vote
from likewise.inspection.preprocessing import unwrap
from likewise.inspection.trees import FORESTS, SINGLE_TREES

_ROWWISE = SINGLE_TREES | {
    AsNumbers,
    SimpleImputer,
    ensemble.HistGradientBoostingClassifier,
    ensemble.HistGradientBoostingRegressor,
    preprocessing.MaxAbsScaler,
    preprocessing.MinMaxScaler,
    preprocessing.OneHotEncoder,
    preprocessing.OrdinalEncoder,
    preprocessing.RobustScaler,
    preprocessing.StandardScaler,
}
# Their trees are added to the predictions of `init`, if that is a model.
_BOOSTED = {ensemble.GradientBoostingClassifier, ensemble.GradientBoostingRegressor}


def is_rowwise(model: Any) -> bool | None:
    """True if the model is known to process rows independently, bit for bit; False if known not to; else None.

    Examples
    --------
    >>> is_rowwise(preprocessing.MinMaxScaler()), is_rowwise(ensemble.RandomForestClassifier(n_jobs=2)), is_rowwise(len)
    (True, False, None)
    """
    steps, last = unwrap(model)
    if last is not model:
        return _all([*steps, last])
    if model is None or isinstance(model, str):
        return True if model in (None, "drop") else None
    if type(model) is preprocessing.FunctionTransformer:  # a fitted ColumnTransformer has one for each "passthrough"
        return True if model.func is None else None
    if type(model) is ColumnTransformer:
        fitted = getattr(model, "transformers_", model.transformers)
        return _all([step for _, step, _ in fitted])
    if type(model) in FORESTS:  # several threads sum trees in the order in which they finish
        return model.n_jobs in (None, 1)
    if type(model) in _BOOSTED:
        constant = model.init is None or isinstance(model.init, str)  # "zero"
        return True if constant else is_rowwise(getattr(model, "init_", model.init))
    return True if type(model) in _ROWWISE else None


def _all(parts: list[Any]) -> bool | None:
    known = [is_rowwise(part) for part in parts]
    return False if False in known else None if None in known else True


BATCH_SIZES = (128, 512, 2048, 8192, 32_768)
"""Sizes of all batches that models are called with."""

OTHER_SIZES = (1, 3, 17, 129)
N_PROBES = 64


def in_fixed_batches(vote: Vote) -> Vote:
    """Evaluate `vote` in batches of the sizes in `BATCH_SIZES` only.

    Examples
    --------
    >>> sizes = []
    >>> vote = in_fixed_batches(lambda rows: sizes.append(len(rows)) or rows)
    >>> vote(np.zeros((700, 2))).shape, sizes
    ((700, 2), [512, 128, 128])
    """

    def evaluate(rows: FloatArray) -> FloatArray:
        outputs, start = [], 0
        while start < len(rows):
            size = _size_for(len(rows) - start)
            batch = rows[start : start + size]
            n = len(batch)
            if n < size:
                batch = np.concatenate([batch, np.repeat(batch[:1], size - n, axis=0)])
            outputs.append(vote(batch)[:n])
            start += size
        return np.concatenate(outputs)

    return evaluate


def row_by_row(vote: Vote) -> Vote:
    """Evaluate `vote` on one row at a time."""
    return lambda rows: np.concatenate([vote(rows[i : i + 1]) for i in range(len(rows))])


@dataclass(frozen=True)
class Changes:
    """Largest changes of an output, relative for outputs above 1; 0 if all bits agree.

    Attributes
    ----------
    again : float
        Between two identical calls.
    within : float
        By position and other rows, in batches of the sizes in `BATCH_SIZES`.
    beyond : float
        Between these and batches of other sizes, including single rows.
    """

    again: float
    within: float
    beyond: float


def measure_changes(vote: Vote, rows: FloatArray) -> Changes:
    """Evaluate the same few rows repeatedly: shuffled, alone, with others, and in batches of many sizes.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(40, 3))
    >>> measure_changes(lambda rows: rows**2, rows)
    Changes(again=0.0, within=0.0, beyond=0.0)
    >>> measure_changes(lambda rows: rows - rows.mean(axis=0), rows).within > 0.1
    True
    """
    some = rows[:N_PROBES]
    first = np.resize(np.arange(len(some)), BATCH_SIZES[0])
    outputs = vote(some[first])
    known = outputs[: len(some)]

    def change(chosen: IntArray) -> float:
        return _largest_change(vote(some[chosen]), known[chosen])

    again = _largest_change(vote(some[first]), outputs)
    within = max(_largest_change(outputs, known[first]), *map(change, _fixed_batches(len(some))))
    beyond = max(map(change, _others(len(some))))
    return Changes(again, max(again, within), max(again, beyond))


def _size_for(n_rows: int) -> int:
    """The smallest batch that holds the rows, if more than half full; else the largest that they fill."""
    holds = next((size for size in BATCH_SIZES if n_rows <= size), BATCH_SIZES[-1])
    if n_rows > holds / 2 or holds == BATCH_SIZES[0]:
        return holds
    return BATCH_SIZES[BATCH_SIZES.index(holds) - 1]


def _fixed_batches(n: int) -> Iterator[IntArray]:
    """Positions among `n` rows that fill a batch: shuffled, one row repeated, and random subsets."""
    rng = np.random.default_rng(0)
    yield rng.permutation(np.resize(np.arange(n), BATCH_SIZES[0]))
    for one in rng.permutation(n)[:4]:
        yield np.full(BATCH_SIZES[0], one)
    for size in BATCH_SIZES:
        # A shuffled batch has the same mean, so only other subsets reveal a model that uses it.
        subset = rng.permutation(n)[: max(1, n // 2)]
        yield rng.choice(subset, size)


def _others(n: int) -> Iterator[IntArray]:
    """Positions among `n` rows for batches of other sizes."""
    rng = np.random.default_rng(1)
    for size in OTHER_SIZES:
        for _ in range(8 if size == 1 else 2):
            yield rng.integers(n, size=size)


def _largest_change(outputs: FloatArray, known: FloatArray) -> float:
    same = (outputs == known) | (np.isnan(outputs) & np.isnan(known))
    with np.errstate(invalid="ignore"):
        change = np.abs(outputs - known) / np.maximum(1.0, np.abs(known))
    return float(np.where(same, 0.0, np.nan_to_num(change, nan=np.inf)).max())
