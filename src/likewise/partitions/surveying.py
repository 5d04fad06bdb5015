"""What a whole table is like, from a small table that has all there is to know about its columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._typing import IntArray
from likewise.metrics.columns import canonical_texts, is_mixed
from likewise.partitions.parquet import Partition, StoredTable, joined
from likewise.partitions.workforce import Workforce


def survey(
    people: StoredTable,
    columns: Sequence[str],
    categories: Collection[str],
    chosen: IntArray,
    work: Workforce,
    *,
    beside: Sequence[str] = (),
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A digest of some columns, and those columns and others `beside` them of the people at the positions `chosen`."""
    seen = list(work.map(partial(_look, columns, categories, beside), people.shares(chosen)))
    table = digest_all((table for table, _ in seen), categories)
    return table, joined([some for _, some in seen if len(some)], categories)


def fetch(people: StoredTable, columns: Sequence[str], positions: IntArray, work: Workforce) -> pd.DataFrame:
    """The people at some positions, increasing and distinct."""
    shares = [(part, here) for part, here in people.shares(positions) if len(here)]
    frames = list(work.map(partial(_rows, columns), shares))
    return joined(frames, columns) if frames else people.head(columns).iloc[:0]


def _rows(columns: Sequence[str], task: tuple[Partition, IntArray]) -> pd.DataFrame:
    return task[0].rows(columns, task[1])


def _look(
    columns: Sequence[str], categories: Collection[str], beside: Sequence[str], task: tuple[Partition, IntArray]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    part, chosen = task
    tables, some = [], []
    for start, frame in part.batches(list(dict.fromkeys([*columns, *beside]))):
        tables.append(digest(frame[list(columns)], categories))
        some.append(frame.iloc[chosen[(chosen >= start) & (chosen < start + len(frame))] - start])
    return digest_all(tables, categories), joined(some, categories)


def digest(table: pd.DataFrame, categories: Collection[str]) -> pd.DataFrame:
    """A few rows with the same columns: every category, the ends of numbers, and missing values where there are any.

    A coding learned from it is the one learned from the whole; the digest of digests is that of all together.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [30, 41, 35, 38], "region": ["north", "south", "north", "south"]})
    >>> digest(table, ["region"])
       age region
    0   30  north
    1   41  south
    """
    kept = {name: _telling(table[name], name in categories) for name in table.columns}
    size = max((len(places) for places in kept.values()), default=0)
    return pd.DataFrame(
        {name: table[name].iloc[np.resize(places, size)].reset_index(drop=True) for name, places in kept.items()}
    )


def digest_all(tables: Iterable[pd.DataFrame], categories: Collection[str]) -> pd.DataFrame:
    """The digest of many tables with the same columns."""
    return digest(joined(list(tables), categories), categories)


def _telling(column: pd.Series[Any], category: bool) -> npt.NDArray[np.intp]:
    """Positions of the values that tell what there is."""
    if category or not pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        return np.flatnonzero(~(canonical_texts(column) if is_mixed(column) else column).duplicated())
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    absent = np.flatnonzero(np.isnan(values))[:1]
    if len(absent) and np.isnan(values).all():
        return absent
    return np.unique([int(np.nanargmin(values)), int(np.nanargmax(values)), *absent])


def fixed_sample(n_people: int, size: int) -> IntArray:
    """Positions of some people, the same always; everyone, if there are few."""
    if n_people <= size:
        return np.arange(n_people)
    return np.unique(np.random.default_rng(1).integers(n_people, size=size))
