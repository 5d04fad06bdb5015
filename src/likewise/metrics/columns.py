"""Columns of a table as numbers and back: kinds, categories, missing values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from likewise._checks import check_size
from likewise._frozen import Frozen
from likewise._typing import FloatArray
from likewise.errors import InvalidInputError

UNSEEN = -1.0
"""Code of a category that was not there when the coding was learned."""

_TIMES = ("date", "datetime", "datetime64", "period", "time", "timedelta", "timedelta64")  # as pandas calls them

# Values are kept as plain Python values, so that a saved model holds nothing that a file may not.


@dataclass(frozen=True)
class NumericColumn:
    """A column of numbers, or of ordered categories counted from 0."""

    name: Hashable
    categories: tuple[Any, ...] | None = None

    @classmethod
    def learn(cls, column: pd.Series[Any]) -> NumericColumn:
        """Check that distances make sense in this column."""
        name, kind = column.name, column.dtype
        _refuse_times(column, "Turn it into a number first, such as years before a fixed day.")
        if pd.api.types.is_bool_dtype(kind):
            raise InvalidInputError(
                f"Column {name!r} is boolean: list it under categorical, where its two values can differ."
            )
        _refuse_complex(kind, name)
        if isinstance(kind, pd.CategoricalDtype):
            if not kind.ordered:
                raise InvalidInputError(f"Column {name!r} has categories without an order: list it under categorical.")
            return cls(name, tuple(kind.categories.tolist()))
        return cls(name)

    def encode(self, column: pd.Series[Any]) -> FloatArray:
        """Numbers, NaN where missing."""
        if self.categories is not None:
            places = {category: float(i) for i, category in enumerate(self.categories)}
            codes = _coded(column, places, np.nan)
            unknown = codes == UNSEEN
            if unknown.any():
                raise InvalidInputError(
                    f"Column {self.name!r} has the value {column[unknown].iloc[0]!r}, which is not among its ordered "
                    f"categories {list(self.categories)}: it has no place in their order."
                )
            return codes
        try:
            plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "iuf"
            if plain:
                numbers = column.to_numpy(dtype=np.float64)
            else:
                parsed = pd.to_numeric(column)
                _refuse_complex(parsed.dtype, self.name)
                numbers = parsed.to_numpy(dtype=np.float64, na_value=np.nan)
        except InvalidInputError:
            raise
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"Column {self.name!r} must hold numbers ({error}). List it under categorical, or clean it first."
            ) from None
        check_size(numbers[:, None], [self.name])
        return np.asarray(numbers)

    def decode(self, numbers: FloatArray) -> Any:
        """Numbers as the model expects them; for ordered categories the nearest one."""
        if self.categories is None:
            return numbers
        nearest = np.clip(np.rint(numbers), 0, len(self.categories) - 1)
        codes = np.where(np.isnan(numbers), -1, nearest).astype(np.intp)
        return pd.Categorical.from_codes(codes, categories=pd.Index(self.categories), ordered=True)


@dataclass(frozen=True)
class CategoricalColumn(Frozen):
    """A column whose values are equal or not. A missing value is a category of its own, the last one.

    Attributes
    ----------
    name : hashable
    levels : tuple
        The values of the training data, without the missing one.
    has_missing : bool
        Whether it had a missing one.
    kind : str
        The pandas type of the column.
    categories : tuple, or None
        All categories of the type, if it is categorical.
    """

    name: Hashable
    levels: tuple[Any, ...]
    has_missing: bool
    kind: str
    categories: tuple[Any, ...] | None = None

    @classmethod
    def learn(cls, column: pd.Series[Any]) -> CategoricalColumn:
        """Remember the values that occur."""
        name, kind = column.name, column.dtype
        _refuse_times(column, "Turn it into a number, or into text such as the month, first.")
        try:
            levels = column.dropna().drop_duplicates().tolist()
            hash(tuple(levels))
        except TypeError:
            raise InvalidInputError(
                f"Column {name!r} must hold plain values such as text or numbers, not lists."
            ) from None
        if any(isinstance(value, float) and np.isinf(value) for value in levels):
            raise InvalidInputError(f"Column {name!r} must be finite; it has an infinity.")
        # Sorted, so that codes do not depend on the order of people.
        levels.sort(key=str)
        categories = tuple(kind.categories.tolist()) if isinstance(kind, pd.CategoricalDtype) else None
        return cls(name, tuple(levels), bool(column.isna().any()), str(kind), categories)

    @cached_property
    def _positions(self) -> dict[Any, float]:
        return {level: float(i) for i, level in enumerate(self.levels)}

    def encode(self, column: pd.Series[Any]) -> FloatArray:
        """Positions among the known values; `UNSEEN` for others."""
        missing = float(len(self.levels)) if self.has_missing else UNSEEN
        return _coded(column, self._positions, missing)

    def decode(self, codes: FloatArray) -> Any:
        """Values of the column's own type."""
        values = [*self.levels, None] if self.has_missing else list(self.levels)
        if self.categories is not None:
            return pd.Categorical(values, categories=list(self.categories)).take(codes.astype(np.intp))
        return pd.Series(values, dtype=self.kind).array.take(codes.astype(np.intp))


def _coded(column: pd.Series[Any], places: Mapping[Any, float], missing: float) -> FloatArray:
    """The places of a column's values; `UNSEEN` for those without one."""
    try:
        if len(column) == 1:  # one person: counting categories would take longer than all the rest of an answer
            value: Any = column.iat[0]
            known_as = places.get(value, UNSEEN)
            return np.array([missing if known_as == UNSEEN and pd.isna(value) else known_as])
        where, values = pd.factorize(column)  # -1 where missing
    except TypeError:
        raise InvalidInputError(f"Column {column.name!r} must hold plain values such as text or numbers.") from None
    known = [places.get(value, UNSEEN) for value in values.tolist()]
    return np.array([*known, missing])[where]


def _refuse_complex(kind: Any, name: Hashable) -> None:
    if pd.api.types.is_complex_dtype(kind):
        raise InvalidInputError(f"Column {name!r} holds complex numbers. Take their real part or their size first.")


def _refuse_times(column: pd.Series[Any], cure: str) -> None:
    kind = column.dtype
    if (
        pd.api.types.is_datetime64_any_dtype(kind)
        or pd.api.types.is_timedelta64_dtype(kind)
        or isinstance(kind, pd.PeriodDtype)
        or (pd.api.types.is_object_dtype(kind) and pd.api.types.infer_dtype(column, skipna=True) in _TIMES)
    ):
        raise InvalidInputError(f"Column {column.name!r} holds dates or times. {cure}")
