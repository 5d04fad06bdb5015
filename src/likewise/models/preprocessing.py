"""Preprocessing that keeps columns apart: scalers, one-hot coding, and transformers of some columns."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from likewise._typing import FloatArray
from likewise.errors import UnprovableError
from likewise.models.unwrapping import unwrap


@dataclass(frozen=True, eq=False)
class RawColumn:
    """Where a coded column comes from: ``scale * raw + constant``, or one value per category of the raw column.

    `raw` says that nothing has been done to it yet, and `coder` which encoder defines the categories.
    """

    column: int
    scale: float = 1.0
    levels: FloatArray | None = None
    raw: bool = True
    coder: Any = None

    def scaled(self, factor: float) -> RawColumn:
        """Return the source of the column times `factor`."""
        levels = None if self.levels is None else self.levels * factor
        return replace(self, scale=self.scale * factor, levels=levels, raw=False)


Sources = list[RawColumn | None]
"""One per coded column; None for a column that is constant."""

_FACTORS: dict[type, Callable[[Any], Any]] = {
    StandardScaler: lambda step: 1.0 if step.scale_ is None else 1 / step.scale_,
    MinMaxScaler: lambda step: step.scale_,
    MaxAbsScaler: lambda step: 1 / step.scale_,
    RobustScaler: lambda step: 1 / step.scale_ if step.with_scaling else 1.0,
}


def sources_after(step: Any, sources: Sources) -> Sources:
    """Sources of the columns after a preprocessing step, or `UnprovableError`."""
    steps, last = unwrap(step)
    if last is not step:
        for part in (*steps, last):
            sources = sources_after(part, sources)
        return sources
    kind = type(step)
    if step is None or (kind is FunctionTransformer and step.func is None):
        return sources
    if kind in _FACTORS:
        if getattr(step, "clip", False):
            raise UnprovableError(f"{kind.__name__} with clip=True is not linear")
        factors = np.broadcast_to(_FACTORS[kind](step), len(sources))
        return [source and source.scaled(float(f)) for source, f in zip(sources, factors, strict=True)]
    if kind is OneHotEncoder:
        return _one_hot(step, sources)
    if kind is ColumnTransformer:
        return _column_transformer(step, sources)
    raise UnprovableError(f"the step {kind.__name__} is not a scaler, OneHotEncoder or ColumnTransformer")


def _column_transformer(step: ColumnTransformer, sources: Sources) -> Sources:
    n_columns = max((part.stop for part in step.output_indices_.values()), default=0)
    result: Sources = [None] * n_columns
    weights = step.transformer_weights or {}
    for name, part, _ in step.transformers_:
        if isinstance(part, str) and part == "drop":
            continue
        chosen = [sources[i] for i in step._transformer_to_input_indices[name]]
        made = sources_after(part, chosen) if chosen else []
        factor = weights.get(name, 1.0)
        result[step.output_indices_[name]] = [
            source and (source.scaled(factor) if factor != 1 else source) for source in made
        ]
    return result


def _one_hot(step: OneHotEncoder, sources: Sources) -> Sources:
    """Value of every coded column for every category, asked of the encoder itself: it knows what is dropped or rare."""
    result: Sources | None = None
    for j, source in enumerate(sources):
        if source is None or not source.raw:
            raise UnprovableError("OneHotEncoder comes after a step that changes its columns")
        codes = _codes(step, j)
        if result is None:
            result = [None] * codes.shape[1]
        for k in np.flatnonzero(np.ptp(codes, axis=0) > 0):
            result[k] = RawColumn(source.column, levels=codes[:, k], raw=False, coder=step)
    return result or []


def _codes(step: OneHotEncoder, j: int) -> FloatArray:
    """Coded rows for each category of column j, the other columns being held fixed; shape (n_levels, n_coded)."""
    own = list(step.categories_[j])
    if step.handle_unknown != "error":
        own += _unknown(step.categories_[j])
    columns = {
        i: pd.Series(own if i == j else [values[0]] * len(own), dtype=object)
        for i, values in enumerate(step.categories_)
    }
    rows: Any = pd.DataFrame(columns)
    if hasattr(step, "feature_names_in_"):
        rows.columns = step.feature_names_in_
    else:
        rows = rows.to_numpy(dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unknown categories are meant here
        codes = step.transform(rows)
    if hasattr(codes, "toarray"):
        codes = codes.toarray()
    return np.asarray(codes, dtype=np.float64)


def _unknown(categories: Any) -> list[Any]:
    """A category that the encoder has not seen."""
    if categories.dtype.kind in "iuf":
        return [float(np.nanmax(categories)) + 1 if not np.isnan(categories.astype(float)).all() else 0.0]
    if categories.dtype.kind == "b":
        return [not categories[0]] if len(categories) == 1 else []
    return ["\\0 a category that does not occur"]
