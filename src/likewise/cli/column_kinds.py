"""Kinds of columns, numeric or categorical: from a model, a metric, or all values of a table; and their conversion.

With a model or a metric, each value is converted by itself, whatever else is in the file.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._typing import BoolArray, FloatArray
from likewise.cli.console import Dialect, Note, no_note
from likewise.exceptions import FileError
from likewise.kernel.columns import CategoricalColumn, NumericColumn, canonical_category, canonical_texts
from likewise.metrics.categories import check_order

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?")
_OTHER_DATE = r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}"
_PADDED = r"0\d+"
_TRUTHS = {"true": 1.0, "false": 0.0}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PER_DAY = {"s": 86_400, "ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
_SHOWN_ROWS = 3
_MANY_NUMBERS = 4  # per other value: the column is nearly numeric
_FEW_TEXTS = 0.01  # share of the cells of a numeric column that may hold text, which is read as blanks
_FEW_VALUES = 10
_BLANK_WORDS = "#N/A #NA -1.#IND -1.#QNAN -NaN -nan 1.#IND 1.#QNAN <NA> N/A NA NULL NaN None n/a nan null"
BLANKS = frozenset(["", "#N/A N/A", *_BLANK_WORDS.split(" ")])
"""Text that stands for a missing value, as in pandas, unless a model or a metric knows it as a category."""


@dataclass(frozen=True)
class Kinds:
    """Which columns are numeric, and which are categorical.

    Attributes
    ----------
    numeric : collection of str
    categorical : collection of str
    orders : mapping from str to NumericColumn
        Ordered categories that a model or a metric reads as numbers.
    complete : collection of str
        Numeric columns without missing values.
    known : mapping from str to collection
        Categories that a model or a metric lists, of which one may be written like a blank, such as NA for Namibia.
    """

    numeric: Collection[str] = ()
    categorical: Collection[str] = ()
    orders: Mapping[str, NumericColumn] = field(default_factory=dict)
    complete: Collection[str] = ()
    known: Mapping[str, Collection[Any]] = field(default_factory=dict)

    @classmethod
    def of_metric(cls, metric: Any) -> Kinds:
        """From a metric."""
        numeric = [name for name in metric.numeric if name not in metric.hidden]
        complete = [name for name in numeric if name not in metric.missing]
        orders = {name: NumericColumn(name, listed) for name, listed in metric.order.items()}
        known = {name: [each for group in groups for each in group] for name, groups in metric.groups.items()}
        known |= {name: [*rows, *(c for row in rows.values() for c in row)] for name, rows in metric.distances.items()}
        return cls(tuple(metric.numeric), tuple(metric.categorical), orders, tuple(complete), known)

    @classmethod
    def of_model(cls, model: Any) -> Kinds:
        """From a fitted model."""
        encoder, absent = model.encoder_, model.guarantee_.bound_metric.missing
        complete = [name for name, weight in zip(encoder.names, absent, strict=True) if np.isnan(weight)]
        columns = encoder.columns
        orders = {str(c.name): c for c in columns if isinstance(c, NumericColumn) and c.categories is not None}
        numeric = [str(c.name) for c in columns if isinstance(c, NumericColumn) and c.name not in orders]
        categorical = [str(c.name) for c in columns if isinstance(c, CategoricalColumn)]
        kept = tuple(name for name in complete if name in numeric or name in orders)
        known = {str(c.name): c.levels for c in columns if isinstance(c, CategoricalColumn)}
        return cls(tuple(numeric), tuple(categorical), orders, kept, known)

    @property
    def as_text(self) -> list[str]:
        """Columns of a CSV file to read as text."""
        return [*self.categorical, *self.orders]

    def blanked(self, column: pd.Series[Any]) -> pd.Series[Any]:
        """A column with text that stands for a missing value replaced by one."""
        name = str(column.name)
        order = self.orders.get(name)
        return with_blanks(column, self.known.get(name, ()) if order is None else order.categories or ())


def with_blanks(column: pd.Series[Any], known: Collection[Any] = ()) -> pd.Series[Any]:
    """A column with text that stands for a missing value replaced by one, unless it is a `known` category.

    Examples
    --------
    >>> with_blanks(pd.Series(["NA", "", "FR"])).isna().tolist(), with_blanks(pd.Series(["NA", ""]), ["NA"]).tolist()
    ([True, True, False], ['NA', nan])
    """
    if _kind_of_objects(column) is None:
        return column
    absent = column.isin(BLANKS.difference(map(canonical_category, known)))
    return column.astype(object).mask(absent, np.nan) if absent.any() else column


@dataclass(frozen=True, eq=False)
class Numbers:
    """Values converted to numbers, each by itself.

    Attributes
    ----------
    values : ndarray
        NaN where missing.
    wrong : ndarray of bool
        Values that are not numbers.
    dates : ndarray of bool
        Values that are dates: days since 1970-01-01.
    grouped : str
        An example like 1,234; empty if there is none.
    """

    values: FloatArray
    wrong: BoolArray
    dates: BoolArray
    grouped: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether all values are numbers, or all are dates."""
        there = ~np.isnan(self.values)
        return bool(there.any() and not self.wrong.any() and (not self.dates.any() or self.dates[there].all()))


def read_numbers(column: pd.Series[Any], dialect: Dialect) -> Numbers:
    """Convert numbers, with or without thousands separators, booleans (1 and 0) and dates (days since 1970-01-01)."""
    kind = column.dtype
    none = np.zeros(len(column), dtype=bool)
    if pd.api.types.is_datetime64_any_dtype(kind):
        return Numbers(_days(column), none, column.notna().to_numpy())
    objects = _kind_of_objects(column)
    if objects is None:
        return Numbers(column.to_numpy(dtype=np.float64, na_value=np.nan), none, none)
    if objects != "string":  # such as dates or decimals
        column, dialect = canonical_texts(column), Dialect()
    where, values = pd.factorize(column)
    read = [_number_in(value, dialect) for value in values.tolist()]
    numbers = np.array([*(number for number, _ in read), np.nan])[where]
    forms = np.array([*(form for _, form in read), "blank"])[where]
    grouped = next((str(value) for value, (_, form) in zip(values, read, strict=True) if form == "grouped"), "")
    return Numbers(numbers, np.isnan(numbers) & (forms != "blank"), forms == "date", grouped)


def _number_in(value: str, dialect: Dialect) -> tuple[float, str]:
    """The number that a text stands for, NaN if none, and its form: plain, grouped, date, blank or text."""
    text = value.strip()
    bare = text.removesuffix("%").rstrip()
    if re.fullmatch(dialect.plain_number, bare):
        return float(bare.replace(dialect.decimal, ".")), "plain" if bare == text else "grouped"
    if re.fullmatch(dialect.grouped_number, text):
        group = "," if dialect.decimal == "." else "."
        return float(re.sub(f"[{group}$€£]", "", text).replace(dialect.decimal, ".")), "grouped"
    if text.casefold() in _TRUTHS:
        return _TRUTHS[text.casefold()], "plain"
    if _ISO_DATE.fullmatch(text):
        try:
            return _days_of(datetime.fromisoformat(text)), "date"
        except ValueError:  # such as a 13th month
            return np.nan, "text"
    return np.nan, "blank" if text in BLANKS else "text"


def _days_of(moment: datetime) -> float:
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = moment - _EPOCH
    return since.days + (since.seconds * 1_000_000 + since.microseconds) / 86_400_000_000


def _days(moments: pd.Series[Any]) -> FloatArray:
    """Days since 1970-01-01 in any century: nanoseconds would only cover 1677 to 2262."""
    plain = moments if moments.dt.tz is None else moments.dt.tz_convert("UTC").dt.tz_localize(None)
    counted = plain.to_numpy()
    per_day = _PER_DAY[np.datetime_data(counted.dtype)[0]]
    whole, rest = np.divmod(counted.astype(np.int64), per_day)
    return np.where(np.isnat(counted), np.nan, whole + rest / per_day)


# -- a table whose kinds are known ------------------------------------------------------------------------------------


class Faults:
    """Faults of numeric columns: values that are not numbers, and missing ones where these are not allowed.

    Counted over all batches of a file, and named by row, counted from 1, or by `ids`: a column of the whole table, or
    the name of a column of each batch. Text in few cells is no grave fault: these are blanks, where they may be.
    """

    def __init__(self, ids: pd.Series[Any] | str | None = None) -> None:
        self._ids = ids
        self.n_rows = 0
        self._wrong: dict[str, _FaultyRows] = {}
        self._absent: dict[str, _FaultyRows] = {}
        self.are_grave = False

    def look(self, table: pd.DataFrame, read: Mapping[str, Numbers], complete: Collection[str]) -> None:
        """Count the faults of one batch; `table` is unconverted."""
        before, self.n_rows = self.n_rows, self.n_rows + len(table)
        for name, numbers in read.items():
            self._count(self._wrong, table, name, numbers.wrong, before)
            if name in complete:
                self._count(self._absent, table, name, np.isnan(numbers.values) & ~numbers.wrong, before)
        many = {name for name, found in self._wrong.items() if found.count > _FEW_TEXTS * self.n_rows}
        self.are_grave |= bool(self._absent or many or set(self._wrong).intersection(complete))

    def stop(self, where: str, note: Note = no_note, *, of_model: bool = False, of_scores: bool = False) -> None:
        """Raise if there is a grave fault, with what to do for a metric file, a model, or scores; note others."""
        if not self.are_grave:
            for name, found in self._wrong.items():
                note(f"Column {name!r} has text such as {found.example!r} in {self._rows(found)}: read as blanks.")
            return
        if of_scores:
            for name, found in [*self._wrong.items(), *self._absent.items()]:
                example = "a blank" if pd.isna(found.example) else repr(found.example)
                raise FileError(
                    f"Scores must be numbers, one per person; column {name!r} has {example} in {self._rows(found)} of "
                    f"{where}. Give another column as --scores, or correct it."
                )
        for name, found in self._wrong.items():
            hint = "Correct the table."
            if not of_model:
                hint = "Correct it, leave it blank where the number is not known, or give the column a weight under "
                hint += "[categorical] in the metric file."
            elif "," in str(found.example):
                hint = "Correct the table; if the sign in it is a decimal comma, say --decimal ','."
            raise FileError(
                f"Column {name!r} must hold numbers; it has {found.example!r} in {self._rows(found)} of {where}"
                f"{_others(self._wrong)}. {hint}"
            )
        for name, found in self._absent.items():
            again = ", for a model that is trained again" if of_model else ""
            raise FileError(
                f"Column {name!r} has missing numbers, which the metric refuses: {self._rows(found)} of {where}"
                f"{_others(self._absent)}. Fill them in, or leave these rows out. [missing] {name} = 1 in the metric "
                f"file sets the distance to a missing number, between 0 and 1{again}."
            )

    def _count(self, faults: dict[str, _FaultyRows], table: pd.DataFrame, name: str, which: BoolArray, n: int) -> None:
        places = np.flatnonzero(which)
        if not len(places):
            return
        found = faults.setdefault(name, _FaultyRows(table[name].iloc[int(places[0])]))
        found.count += len(places)
        for i in places[: _SHOWN_ROWS - len(found.rows)]:
            ids = table[self._ids] if isinstance(self._ids, str) else self._ids
            found.rows.append(str(n + int(i) + 1 if ids is None else ids.iloc[int(i)]))

    def _rows(self, found: _FaultyRows) -> str:
        name = self._ids.name if isinstance(self._ids, pd.Series) else self._ids
        what = name or ("row" if found.count == 1 else "rows")
        more = f" and {found.count - len(found.rows):,} more" if found.count > len(found.rows) else ""
        return f"{what} {', '.join(found.rows)}{more} ({found.count:,} of {self.n_rows:,} rows)"


@dataclass
class _FaultyRows:
    example: Any
    count: int = 0
    rows: list[str] = field(default_factory=list)


def _others(faults: Mapping[str, Any]) -> str:
    names = [repr(name) for name in faults][1:]
    return f" (and so have {', '.join(names)})" if len(names) > 1 else f" (and so has {names[0]})" if names else ""


def as_kinds(
    table: pd.DataFrame, kinds: Kinds, dialect: Dialect, faults: Faults, note: Note = no_note, *, natural: bool = False
) -> pd.DataFrame:
    """Convert the columns of a table to their kinds; others stay as they are.

    Values that are not numbers go to `faults`. Categories become text, or with `natural` integers and booleans where
    all values of a column are such, for a model that was trained on these.
    """
    numbers = [str(name) for name in table.columns if name in kinds.numeric and name not in kinds.orders]
    # Ordered categories stay as they are.
    numbers = [name for name in numbers if not getattr(table[name].dtype, "ordered", False)]
    read = {name: read_numbers(table[name], dialect) for name in numbers}
    faults.look(table, read, kinds.complete)
    changed: dict[str, Any] = {}
    for name, found in read.items():
        _note_reading(name, found, note)
        changed[name] = _whole_where_possible(found.values)
    for name, order in kinds.orders.items():
        if name in table.columns:
            changed[name] = order.decode(order.encode(kinds.blanked(table[name])))
    for name in kinds.categorical:
        if name in table.columns:
            column = kinds.blanked(table[name])
            changed[name] = as_naturally_typed(column) if natural else canonical_texts(column)
    return table.assign(**changed) if changed else table


def as_ordered(column: pd.Series[Any], listed: Collection[str]) -> Any:
    """A column as ordered categories; raises for values that are not listed."""
    order = NumericColumn(str(column.name), check_order(str(column.name), [*listed]))
    return order.decode(order.encode(column))


def as_naturally_typed(column: pd.Series[Any]) -> pd.Series[Any]:
    """Text as integers or booleans if all values are, without leading zeros; otherwise unchanged."""
    if _kind_of_objects(column) is None:
        return column
    texts = canonical_texts(column)
    present = texts.dropna()
    if len(present) and present.isin(["True", "False"]).all():
        return texts.map({"True": True, "False": False}).astype(object if len(present) < len(texts) else bool)
    if len(present) and present.str.fullmatch(r"-?(?:0|[1-9]\d{0,14})").all():
        return texts.astype(float if len(present) < len(texts) else np.int64)
    return texts


def _whole_where_possible(numbers: FloatArray) -> npt.NDArray[Any]:
    """As integers, which are shown without decimals, if all are whole."""
    whole = bool(len(numbers)) and bool((np.abs(numbers) <= 2.0**53).all()) and bool((numbers % 1 == 0).all())
    return numbers.astype(np.int64) if whole else numbers


def _note_reading(name: str, read: Numbers, note: Note) -> None:
    if read.dates.any():
        note(f"Column {name!r} holds dates: read as days since 1970-01-01.")
    elif read.grouped:
        note(f"Column {name!r} has numbers written like {read.grouped!r}: read as numbers.")


# -- a table whose kinds are not known --------------------------------------------------------------------------------


def infer_kinds(
    table: pd.DataFrame, dialect: Dialect, note: Note = no_note, *, categorical: Collection[str] = ()
) -> tuple[pd.DataFrame, list[str]]:
    """Convert columns whose values are all numbers or dates; also return the names of the latter.

    Columns in `categorical` become text; numbers with leading zeros stay text.
    """
    changed: dict[str, Any] = {}
    dates: list[str] = []
    for name in map(str, table.columns):
        column = with_blanks(table[name])
        if column is not table[name]:
            changed[name] = column
        if name in categorical:
            changed[name] = canonical_texts(column)
        elif _is_padded(column):
            note(f"Column {name!r} has numbers with leading zeros, so it is taken as categories.")
        elif pd.api.types.is_datetime64_any_dtype(column.dtype) or _may_be_numbers(column):
            read = read_numbers(column, dialect)
            if not read.is_plain and not _is_almost_numeric(name, column, read, dialect, note):
                continue
            _note_reading(name, read, note)
            changed[name] = read.values
            dates += [name] if read.dates.any() else []
    return (table.assign(**changed) if changed else table), dates


def _may_be_numbers(column: pd.Series[Any]) -> bool:
    """Whether objects may be numbers: text, dates or decimals, but not booleans."""
    kind = _kind_of_objects(column)
    if kind == "string":
        return not column.dropna().str.strip().str.casefold().isin(list(_TRUTHS)).any()
    return kind in ("date", "datetime", "decimal", "integer", "floating", "mixed-integer-float")


def _is_padded(column: pd.Series[Any]) -> bool:
    """Whether text is digits throughout, some with leading zeros."""
    if _kind_of_objects(column) != "string":
        return False
    texts = column.dropna().str.strip()
    return bool(texts.str.fullmatch(r"\d+").all() and texts.str.fullmatch(_PADDED).any())


def _kind_of_objects(column: pd.Series[Any]) -> str | None:
    """The dtype that pandas infers for a column of objects or text; None for others."""
    if not (pd.api.types.is_object_dtype(column.dtype) or pd.api.types.is_string_dtype(column.dtype)):
        return None
    return pd.api.types.infer_dtype(column, skipna=True)


def _is_almost_numeric(name: str, column: pd.Series[Any], read: Numbers, dialect: Dialect, note: Note) -> bool:
    """Whether all but few cells are numbers, which is noted, as is text that often is, and dates in another format.

    Raises for decimals with the other sign.
    """
    _refuse_other_decimals(name, column, dialect)
    places = np.flatnonzero(read.wrong)
    n_numbers = int(column.notna().sum()) - len(places)
    if len(places) and n_numbers >= _MANY_NUMBERS * len(places) and len(np.unique(read.values)) > _FEW_VALUES:
        words = ",".join([*dict.fromkeys(str(column.iloc[i]).strip() for i in places)][:_FEW_VALUES])
        rows = ", ".join(str(i + 1) for i in places[:_SHOWN_ROWS]) + ", ..." * (len(places) > _SHOWN_ROWS)
        few = len(places) <= _FEW_TEXTS * len(column) and not read.dates.any()
        note(
            f"Column {name!r} has {n_numbers:,} numbers and {len(places):,} other value{'s' * (len(places) > 1)}, such "
            f"as {column.iloc[int(places[0])]!r} (row{'s' * (len(places) > 1)} {rows}), so "
            + (
                f"these are read as blanks. Say --categorical {name} if it holds codes."
                if few
                else f"it is taken as categories. Say --blank {shlex.quote(words)} to have numbers; "
                f"--categorical {name} if it holds codes."
            )
        )
        return few
    texts = column.dropna().astype(str).str.strip()
    if len(texts) and texts.str.fullmatch(_OTHER_DATE).all():
        note(
            f"Column {name!r} looks like dates, such as {texts.iloc[0]!r}; each is a category of its own. Write them "
            "as YYYY-MM-DD to have them read as days."
        )
    return False


def _refuse_other_decimals(name: str, column: pd.Series[Any], dialect: Dialect) -> None:
    """Raise if all values are numbers, and some have decimals, by the other decimal sign only."""
    sign = "," if dialect.decimal == "." else "."
    other = Dialect(";", decimal=sign)
    texts = pd.Series(column.dropna().unique()).astype(str).str.strip()
    decimals = texts[~texts.str.fullmatch(dialect.plain_number) & ~texts.str.fullmatch(dialect.grouped_number)]
    if len(decimals) and (texts.str.fullmatch(other.plain_number) | texts.str.fullmatch(other.grouped_number)).all():
        raise FileError(
            f"Column {name!r} has numbers such as {decimals.iloc[0]!r}. Say --decimal {sign} if {sign!r} is their "
            f"decimal sign, or --categorical {name} if they are codes."
        )
