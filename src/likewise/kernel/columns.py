"""Encoding of single columns: numbers, ordered and unordered categories, missing values."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from decimal import Decimal
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._frozen import Frozen
from likewise._typing import FloatArray
from likewise._validation import NUMBER, check_size
from likewise.exceptions import InvalidInputError, LikewiseError

UNSEEN = -1.0
"""Code of a category that was not in the training data."""

_NUMBER = re.compile(NUMBER, re.ASCII)
_MIXED = ("mixed", "mixed-integer")  # pandas' names for columns of several types
_MOST_DIGITS = 400  # before the decimal point; floats have fewer
_WHOLE = re.compile(r"-?\d{1,300}", re.ASCII)
_SPACE = " \t\n\r\x0b\x0c"
_DIGITS = {"true": "1", "false": "0"}
_TIMES = ("date", "datetime", "datetime64", "period", "time", "timedelta", "timedelta64")  # pandas' names

_WITH_TEXT = (
    *(str, bytes, bool, int, float, Decimal, np.generic, date, time, timedelta, type(None)),
    *(pd.Interval, pd.Period, pd.Timestamp, pd.Timedelta),
)

_INTO_A_NUMBER = "Turn it into a number first, such as years before a fixed day."

# Levels are plain Python values, which model files may hold.


def is_numeric(column: Any) -> bool:
    """Whether a column, or its dtype, is of numbers; Booleans are categories."""
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def canonical_category(value: Any) -> str:
    """The text by which categories are compared.

    It depends on the value alone, so that a code is the same category in a column of numbers, text or both. Whole
    numbers become their digits, also if they are floats or the text of a float, as in a column with blanks; other text
    is unchanged, leading zeros included.

    Examples
    --------
    >>> [canonical_category(value) for value in (30, 30.0, "30.0", "030", 0.5, True)]
    ['30', '30', '30', '030', '0.5', 'True']
    """
    if isinstance(value, str):
        return str(int(float(value))) if _is_written_float(value) else str(value)
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        # The shortest decimals in the number's own precision, as in a file.
        return str(int(value)) if value.is_integer() else repr(float(str(value)))
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() < _MOST_DIGITS:
        return str(int(value)) if value == value.to_integral_value() else repr(float(value))
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _is_written_float(text: str) -> bool:
    """Whether `text` is the repr of a float that is a whole number."""
    if not (text.endswith(".0") or "e+" in text) or not _NUMBER.fullmatch(text):
        return False
    return repr(float(text)) == text


class LevelIndex:
    """Indices of known categories, looked up by canonical text.

    Text that is not a category itself matches a number or boolean that it parses to: "030" matches 30, "TRUE" and 1
    match True.

    Examples
    --------
    >>> levels = LevelIndex([30, True, "x"])
    >>> [levels.find(value) for value in (30.0, "030", "true", "X")]
    [0.0, 0.0, 1.0, -1.0]
    """

    def __init__(self, levels: Sequence[Any]) -> None:
        self._known = {canonical_category(level): float(i) for i, level in enumerate(levels)}
        self._numbers = {
            canonical_category(level): float(i)
            for i, level in enumerate(levels)
            if isinstance(level, (int, float)) and not isinstance(level, bool)
        }
        words = [(text.lower(), place) for text, place in self._known.items() if text.lower() in _DIGITS]
        # A boolean spelt in several ways is several categories, and ambiguous.
        self._truths = {word: place for word, place in words if [other for other, _ in words].count(word) == 1}
        if not words:
            self._truths = {word: self._numbers[digit] for word, digit in _DIGITS.items() if digit in self._numbers}
        booleans = [(str(level).lower(), i) for i, level in enumerate(levels) if isinstance(level, bool)]
        self._digits = {_DIGITS[word]: float(i) for word, i in booleans}

    def find(self, value: Any) -> float:
        """Index of a value that is not missing; `UNSEEN` if it is unknown."""
        text = canonical_category(value)
        known = self._known.get(text)
        return self._read_as(text) if known is None else known

    def _read_as(self, text: str) -> float:
        """Index of the number or boolean that a text parses to."""
        if text.lower() in _DIGITS:
            return self._truths.get(text.lower(), UNSEEN)
        bare = text.strip(_SPACE)
        if not (self._numbers or self._digits) or not _NUMBER.fullmatch(bare):
            return UNSEEN
        number = canonical_category(Decimal(bare))  # exact for any number of digits
        return self._numbers.get(number, self._digits.get(number, UNSEEN))

    def texts(self) -> dict[str, int]:
        """Every text that is a category, or the same as one, with its index: what an export has to know.

        Numbers and booleans as text are left out but for the plainest, since these can be written in any number of
        ways.

        Examples
        --------
        >>> LevelIndex(["2", "b"]).texts()
        {'2': 0, '2.0': 0, 'b': 1}
        """
        candidates = [*self._known]
        # "2.0" is "2", and "-0.0" is "0".
        candidates += [repr(sign * float(text)) for text in self._known if _WHOLE.fullmatch(text) for sign in (1, -1)]
        if self._truths:
            candidates += ["".join(each) for word in _DIGITS for each in product(*zip(word, word.upper(), strict=True))]
        found = {text: int(self.find(text)) for text in sorted([*candidates, *self._digits])}
        return {text: place for text, place in found.items() if place != UNSEEN}


@dataclass(frozen=True)
class NumericColumn(Frozen):
    """A column of numbers, or of ordered categories encoded by rank."""

    name: Hashable
    categories: tuple[Any, ...] | None = None

    @classmethod
    def learn(cls, column: pd.Series[Any], order: tuple[Any, ...] = ()) -> NumericColumn:
        """Check that the column is numeric or ordered; a given `order` of categories replaces its own."""
        name, kind = column.name, column.dtype
        if order:
            return cls(name, _as_in(kind, order))
        _refuse_times(column, _INTO_A_NUMBER)
        if pd.api.types.is_bool_dtype(kind):
            raise InvalidInputError(
                f"Column {name!r} is boolean: list it under categorical, where its two values can differ."
            ).in_commands(f"Column {name!r} is boolean: give it a weight under [categorical] in the metric file.")
        _refuse_complex(kind, name)
        if isinstance(kind, pd.CategoricalDtype):
            if not kind.ordered:
                raise InvalidInputError(f"Column {name!r} has categories without an order: list it under categorical.")
            categories = tuple(kind.categories.tolist())
            for each in categories:
                _refuse_without_text(each, name)
            return cls(name, categories)
        return cls(name)

    @cached_property
    def _index(self) -> LevelIndex:
        return LevelIndex(self.categories or ())

    def encode(self, column: pd.Series[Any]) -> FloatArray:
        """Numbers, NaN where missing."""
        if self.categories is not None:
            codes = _coded(column, self._index, np.nan)
            unknown = codes == UNSEEN
            if unknown.any():
                raise InvalidInputError(
                    f"Column {self.name!r} has the value {column[unknown].iloc[0]!r}, which is not among its ordered "
                    f"categories {list(self.categories)}."
                )
            return codes
        numbers = self._numbers(column)
        check_size(numbers[:, None], [self.name])
        return np.asarray(numbers)

    def _numbers(self, column: pd.Series[Any]) -> FloatArray:
        kind = column.dtype
        if isinstance(kind, np.dtype) and kind.kind in "iuf":
            return column.to_numpy(dtype=np.float64)
        _refuse_times(column, _INTO_A_NUMBER)
        try:
            if pd.api.types.is_object_dtype(kind) or pd.api.types.is_string_dtype(kind):
                column = _with_read_text(column)
            parsed = pd.to_numeric(column)
            _refuse_complex(parsed.dtype, self.name)
            return np.asarray(parsed.to_numpy(dtype=np.float64, na_value=np.nan))
        except LikewiseError:
            raise
        except (TypeError, ValueError) as error:
            raise _not_numeric(self.name, str(error)) from None

    def decode(self, numbers: FloatArray) -> Any:
        """Numbers, or the nearest of the ordered categories."""
        if self.categories is None:
            return numbers
        nearest = np.clip(np.rint(numbers), 0, len(self.categories) - 1)
        codes = np.where(np.isnan(numbers), -1, nearest).astype(np.intp)
        return pd.Categorical.from_codes(codes, categories=pd.Index(self.categories), ordered=True)


@dataclass(frozen=True)
class CategoricalColumn(Frozen):
    """A column of unordered categories. A missing value is one more category, the last one.

    Attributes
    ----------
    name : hashable
    levels : tuple
        The values of the training data, sorted, without missing ones.
    has_missing : bool
        Whether values were missing in training.
    kind : str
        The pandas dtype.
    categories : tuple, or None
        All categories of a categorical dtype.
    blank : None or float
        A missing value as it was in training, None or NaN: encoders of other libraries tell them apart.
    """

    name: Hashable
    levels: tuple[Any, ...]
    has_missing: bool
    kind: str
    categories: tuple[Any, ...] | None = None
    blank: float | None = None

    @classmethod
    def learn(cls, column: pd.Series[Any], listed: Sequence[Any] = ()) -> CategoricalColumn:
        """Learn the levels; those in `listed` are levels whether or not the column holds them."""
        name, kind = column.name, column.dtype
        _refuse_times(column, "Turn it into a number, or into text such as the month, first.")
        _, values = _distinct(column)
        if any(isinstance(value, float) and np.isinf(value) for value in values):
            raise InvalidInputError(f"Column {name!r} must be finite; it has an infinity.")
        # Sorted, so that codes depend neither on the order of rows nor on the dtype.
        levels = {canonical_category(value): _plain(value) for value in sorted(values, key=str, reverse=True)}
        known, dtype = LevelIndex(list(levels.values())), str(kind)
        further = [_like(value, levels.values()) for value in listed if known.find(value) == UNSEEN]
        levels |= {canonical_category(value): value for value in further}
        levels = dict(sorted(levels.items()))
        categories = None
        if isinstance(kind, pd.CategoricalDtype):
            categories = tuple(dict.fromkeys([*kind.categories.tolist(), *further]))
        elif further and any(isinstance(value, str) for value in further):
            dtype = "object"
        absent = column[column.isna()]
        blank = np.nan if len(absent) and isinstance(absent.iat[0], float) else None
        return cls(name, tuple(levels.values()), bool(len(absent)), dtype, categories, blank)

    @cached_property
    def _index(self) -> LevelIndex:
        return LevelIndex(self.levels)

    def encode(self, column: pd.Series[Any]) -> FloatArray:
        """Indices among the levels; `UNSEEN` for other values."""
        missing = float(len(self.levels)) if self.has_missing else UNSEEN
        return _coded(column, self._index, missing)

    def spelled_as(self, column: pd.Series[Any]) -> CategoricalColumn:
        """The same categories as the first people who have them write them; as text, several types are no longer."""
        if not is_mixed(column):
            return self
        written = dict(zip(self.encode(column[::-1]), column[::-1], strict=True))
        return replace(self, levels=tuple(written.get(code, level) for code, level in enumerate(self.levels)))

    def decode(self, codes: FloatArray) -> Any:
        """Values of the column's dtype."""
        values = [*self.levels, self.blank] if self.has_missing else list(self.levels)
        if self.categories is not None:
            return pd.Categorical(values, categories=list(self.categories)).take(codes.astype(np.intp))
        # A Series keeps its dtype in a table, where pandas may read an array of objects as text.
        return pd.Series(values, dtype=self.kind).take(codes.astype(np.intp)).reset_index(drop=True)


def _as_in(kind: Any, order: tuple[Any, ...]) -> tuple[Any, ...]:
    """A listed order in the values of a categorical dtype, where it has them: models are asked with these."""
    if not isinstance(kind, pd.CategoricalDtype):
        return order
    own = {canonical_category(each): each for each in kind.categories.tolist()}
    return tuple(own.get(canonical_category(each), each) for each in order)


def _refuse_without_text(category: Any, name: Hashable) -> None:
    """Raise for an ordered category whose text may not say what it is: orders are compared and kept as text."""
    if isinstance(category, tuple):
        for each in category:
            _refuse_without_text(each, name)
    elif not isinstance(category, _WITH_TEXT):
        raise InvalidInputError(
            f"Column {name!r} must have ordered categories that are text, numbers, dates or intervals; got "
            f"{type(category).__name__}. Rename them, such as X[{name!r}].cat.rename_categories(str)."
        )


def _coded(column: pd.Series[Any], levels: LevelIndex, missing: float) -> FloatArray:
    """Codes of a column's values."""
    if len(column) == 1:  # one person: `factorize` would dominate the time
        value: Any = column.iat[0]
        if pd.api.types.is_scalar(value):
            return np.array([missing if pd.isna(value) else levels.find(value)])
    where, values = _distinct(column)
    return np.array([*map(levels.find, values), missing])[where]


def _distinct(column: pd.Series[Any]) -> tuple[npt.NDArray[np.intp], list[Any]]:
    """For each value its index among the distinct ones, -1 where missing; and the distinct values.

    Columns of several types are compared as text, since pandas treats 1 and True as equal.
    """
    try:
        if is_mixed(column):
            column = canonical_texts(column)
        where, values = pd.factorize(column)
    except TypeError:
        raise InvalidInputError(
            f"Column {column.name!r} must hold plain values such as text or numbers, not lists."
        ) from None
    if str(values.dtype).lower() in ("float16", "float32"):  # keep their precision
        return where, list(values.to_numpy(dtype=str(values.dtype).lower()))
    return where, values.tolist()


def is_mixed(column: pd.Series[Any]) -> bool:
    """Whether a column holds values of several types."""
    return column.dtype == np.dtype(object) and pd.api.types.infer_dtype(column, skipna=True) in _MIXED


def canonical_texts(column: pd.Series[Any]) -> pd.Series[Any]:
    """The canonical text of each value; None where it is missing."""
    column.map(hash)  # raises for lists, as in columns of one type
    return column.map(canonical_category, na_action="ignore").astype(object)


def _plain(value: Any) -> Any:
    """A category as a plain Python value."""
    if isinstance(value, (Decimal, np.floating)):
        return int(value) if value == value // 1 else float(str(value))
    return value


def _like(value: Any, levels: Collection[Any]) -> Any:
    """A listed category as a whole number if all levels are whole numbers, else as text."""
    text = canonical_category(value)
    whole = levels and all(isinstance(level, int) and not isinstance(level, bool) for level in levels)
    return int(text) if whole and re.fullmatch(r"-?\d{1,18}", text) else text


def _with_read_text(column: pd.Series[Any]) -> pd.Series[Any]:
    """Parse numbers written as text, exactly; pandas may err in the last digit."""
    is_text = column.map(lambda value: isinstance(value, str)).to_numpy(dtype=bool)
    if not is_text.any():
        return column
    where, texts = pd.factorize(column[is_text])
    wrong = [i for i, text in enumerate(texts) if text.strip() and not _NUMBER.fullmatch(text.strip())]
    if wrong:
        rows = np.flatnonzero(is_text)[where == wrong[0]]
        more = f", and {len(rows) - 1:,} more" if len(rows) > 1 else ""
        raise _not_numeric(column.name, f"it has {texts[wrong[0]]!r} in row {rows[0]}{more}")
    read = column.astype(object)
    read[is_text] = np.array([float(text) if text.strip() else np.nan for text in texts])[where]
    return read


def _not_numeric(name: Hashable, why: str) -> InvalidInputError:
    problem = f"Column {name!r} must hold numbers ({why})."
    return InvalidInputError(f"{problem} List it under categorical, or clean it first.").in_commands(
        f"{problem} Correct the table, or give the column a weight under [categorical] in the metric file."
    )


def _refuse_complex(kind: Any, name: Hashable) -> None:
    if pd.api.types.is_complex_dtype(kind):
        raise InvalidInputError(f"Column {name!r} holds complex numbers. Take their real part or absolute value first.")


def _refuse_times(column: pd.Series[Any], hint: str) -> None:
    kind = column.dtype
    if (
        pd.api.types.is_datetime64_any_dtype(kind)
        or pd.api.types.is_timedelta64_dtype(kind)
        or isinstance(kind, pd.PeriodDtype)
        or (pd.api.types.is_object_dtype(kind) and pd.api.types.infer_dtype(column, skipna=True) in _TIMES)
    ):
        raise InvalidInputError(f"Column {column.name!r} holds dates or times. {hint}")


def json_value(level: Any) -> dict[str, Any]:
    """A value in JSON, and the name of its type if it is written as text.

    Examples
    --------
    >>> from decimal import Decimal
    >>> json_value(1), json_value("1"), json_value(Decimal("1.50"))
    ({'value': 1}, {'value': '1'}, {'value': '1.50', 'type': 'Decimal'})
    """
    level = level.item() if isinstance(level, np.generic) else level
    if isinstance(level, (bool, int, str)) or (isinstance(level, float) and np.isfinite(level)):
        return {"value": level}
    return {"value": str(level), "type": type(level).__name__}
