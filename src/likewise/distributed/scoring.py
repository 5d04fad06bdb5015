"""Methods of a fitted model on each partition of a Dask DataFrame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from likewise._fit_validation import model_columns
from likewise.distributed.frames import DaskTable


def predict_partitions(model: Any, method: Callable[[Any], Any], X: Any, empty: pd.DataFrame | pd.Series[Any]) -> Any:
    """Apply a method of a fitted model to each partition; the result has the type and columns of `empty`."""
    if hasattr(model, "feature_names_in_"):
        DaskTable(X).check_columns(model.required_features_, "which the model needs")
        X = X[model_columns(model, X)]
    return X.map_partitions(_apply, method, empty, meta=empty)


def _apply(table: pd.DataFrame, method: Callable[[Any], Any], empty: Any) -> Any:
    if not len(table):
        return empty.set_axis(table.index, axis=0)
    values = method(table)
    if isinstance(empty, pd.Series):
        return pd.Series(values, index=table.index, name=empty.name)
    return pd.DataFrame(values, index=table.index, columns=empty.columns)
