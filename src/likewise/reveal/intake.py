"""People of any table, whose columns are told apart by type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from likewise._checks import check_names, checking
from likewise.errors import InvalidInputError, InvalidTypeError
from likewise.metrics.coding import ArrayCoding, TableCoding, as_frame, is_table
from likewise.metrics.people import People


def read_people(X: Any, categorical: Sequence[Any] | None) -> People:
    """A matrix of numbers where that says all; otherwise a table, whose columns are told apart by type."""
    if not is_table(X):
        if categorical is not None:
            raise InvalidTypeError(f"categorical names columns, so X must be a table; got {type(X).__name__}.")
        return _numbers(X, None)
    frame = as_frame(X)
    names = list(frame.columns)
    if categorical is None:
        chosen = [name for name in names if _is_categorical(frame[name])]
        if not chosen and not frame.isna().any(axis=None):
            return _numbers(frame, tuple(names))
    else:
        chosen = check_names("categorical", categorical, names)
    return People.read(frame, TableCoding.learn(frame, [name for name in names if name not in chosen], chosen))


def _numbers(X: Any, names: tuple[Any, ...] | None) -> People:
    with checking():
        shape = np.shape(X)
    if len(shape) != 2 or shape[1] == 0:
        raise InvalidInputError(f"X must be a table of people and features, (n_samples, n_features); got {shape}.")
    return People.read(X, ArrayCoding(shape[1], names))


def _is_categorical(column: pd.Series[Any]) -> bool:
    kind = column.dtype
    return bool(
        isinstance(kind, pd.CategoricalDtype)
        or pd.api.types.is_bool_dtype(kind)
        or pd.api.types.is_object_dtype(kind)
        or pd.api.types.is_string_dtype(kind)
    )
