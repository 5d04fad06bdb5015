"""The one place that asks a model.

Models of other people are called here and nowhere else, which `tests/test_architecture.py` sees to. What is compared,
proven or smoothed elsewhere is about people as a metric reads them; a model is asked about people as they were given,
in its own columns and their order, with their dtypes and spellings.

What it offers:

- `answers(model, rows)`: what a model says about rows in the form it takes; `method_of` is what is called.
  `steady_answers` asks about some of them again, and refuses a model whose answers are random.
- `as_taken(model, people)`: a table or an array in the columns of the model, in their order, unchanged otherwise.
- `Ask.of(model, X, encoder)`: all of this for people `X`, and for people who are made up from their encoded rows, who
  are spelled as those of `X` are. `check` refuses if encoding changes the answers about `X`, and `refuse_merged` if
  values that the encoder takes for one ("1" and "1.0", None and NaN) are spelled in several ways.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._subsample import evenly_spaced
from likewise._typing import BoolArray, FloatArray, IntArray
from likewise._validation import check_numbers, short_repr
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.kernel.columns import CategoricalColumn, NumericColumn
from likewise.kernel.schema import Encoder, TableEncoder, as_frame, is_table
from likewise.known_values import check_known
from likewise.metrics.base import Metric

_ASKED_AGAIN = 200  # people about whom a model is asked a second time
_ROUNDING = (
    1e-5  # of answers up to 1, and relative above: in single precision, batches of other sizes change the last digits
)
_MOST_CHECKED = 2**16  # people for whom answers before and after encoding are compared


def is_plain_function(name: str, model: Any, methods: tuple[str, ...] = ("predict",), hint: str = "") -> bool:
    """Whether the parameter `name` is a plain function of rows; raise if it is neither that nor an estimator."""
    if isinstance(model, type):
        raise InvalidTypeError(f"{name} must be an instance, not a class; use {model.__name__}().")
    if any(hasattr(model, method) for method in methods):
        return False
    if isinstance(model, Metric) or not callable(model) or hasattr(model, "fit"):
        raise InvalidTypeError(
            f"{name} must have {' or '.join(methods)}, or be a function of rows; got {type(model).__name__}."
            + (f" {hint}" if hint else "")
        )
    return True


def method_of(model: Any, *methods: str) -> Callable[[Any], Any]:
    """The first of these methods that the model has; the model itself if it has none."""
    found: Callable[[Any], Any] = next((getattr(model, name) for name in methods if hasattr(model, name)), model)
    return found


def answers(model: Any, rows: Any, *methods: str) -> npt.NDArray[Any]:
    """What a model says about rows: by the first of `methods` that it has, or probabilities before predictions."""
    return np.asarray(method_of(model, *(methods or ("predict_proba", "predict")))(rows))


@dataclass(frozen=True, eq=False)
class Recorded:
    """Answers that a model has given about some people, as a function of these people alone."""

    given: npt.NDArray[Any]

    def __call__(self, rows: Any) -> npt.NDArray[Any]:
        """The answers, whichever rows."""
        return self.given


def steady_answers(model: Any, rows: Any) -> npt.NDArray[Any]:
    """What a model says about rows; raises if it says something else about some of them when it is asked again.

    Every difference between two answers would hold the noise of both, and a search would end where it is largest. This
    costs one more call, with at most 200 rows; models of likewise are deterministic.
    """
    found = answers(model, rows)
    if not hasattr(model, "guarantee_") and not isinstance(model, Recorded) and len(found) == len(rows):
        _refuse_unsteady(model, rows, found)
    return found


def _refuse_unsteady(model: Any, rows: Any, found: npt.NDArray[Any]) -> None:
    chosen = evenly_spaced(len(found), _ASKED_AGAIN)
    some = rows.iloc[chosen] if isinstance(rows, pd.DataFrame) else np.asarray(rows)[chosen]
    again = answers(model, some)
    if again.shape != found[chosen].shape:
        raise InvalidInputError(
            f"The model must return one output per row: {len(chosen)} rows gave an array of shape {again.shape}."
        )
    if not _changes(found[chosen], again).any():
        return
    twice = answers(model, some)
    changed = _changes(again, twice)
    n, of = int(changed.sum()), f"{len(chosen):,} people"
    if not n:
        raise InvalidInputError(
            f"The model must answer for each person alone; answers about {of} changed when it was asked about them "
            "without the others. It may compare people with one another, or scale them together. Let it use what it "
            "learned in training."
        )
    noise = "their labels change"
    if again.dtype.kind in "biuf":
        gaps = np.abs(twice - again.astype(np.float64))
        spread = float(np.sqrt(np.mean(gaps**2) / 2))  # of a difference, twice the variance of an answer
        noise = f"noise of standard deviation {spread:.2g}, with changes of up to {float(gaps.max()):.2g}"
    what = (
        f"The model must answer alike when it is asked again; of {of} who were asked about twice, {n:,} got other "
        f"answers: {noise}. Every difference of outputs would hold it, and a search would end where it is largest. Fix "
        "the model's seed, or average its answers until they no longer change"
    )
    raise InvalidInputError(f"{what}; or pass predictions=, one answer for each person.").in_commands(
        f"{what}; or write one answer for each person into the table, for --scores."
    )


def _changes(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> BoolArray:
    """Rows whose answers differ by more than rounding, which may depend on the size of a batch."""
    numeric = one.dtype.kind in "biuf" and other.dtype.kind in "biuf"
    same = np.isclose(one, other, rtol=_ROUNDING, atol=_ROUNDING, equal_nan=True) if numeric else one == other
    return np.asarray(~same.reshape(len(one), -1).all(axis=1))


def known_columns(model: Any) -> list[Any] | None:
    """Names of the columns that a model takes, as plain text; None if it does not know them."""
    known = getattr(model, "feature_names_in_", None)
    return None if known is None else np.asarray(known).tolist()


def as_taken(model: Any, people: Any, *, as_array: bool = False) -> Any:
    """People in the columns that the model takes, in their order.

    A model that does not know its columns gets those that were given, in the order given: of a table as one, or
    `as_array` of numbers.
    """
    known = known_columns(model)
    if not is_table(people):
        if known is None:
            return people
        if np.ndim(people) != 2 or len(people[0]) != len(known):
            raise InvalidInputError(f"X must have the {len(known)} columns of the model; got {np.shape(people)}.")
        return pd.DataFrame(people, columns=list(known))  # scikit-learn warns about an array
    frame = as_frame(people)
    if known is None:
        return check_numbers("X", frame, "Encode text columns first.") if as_array else frame
    absent = [name for name in known if name not in frame.columns]
    if absent and len(absent) < len(known) and not hasattr(model, "required_features_"):
        raise InvalidInputError(f"X must have the column {absent[0]!r}, which the model takes; it has {list(frame)}.")
    # A model of likewise may miss columns, and other names for all of them are the model's to refuse.
    return frame if absent or list(known) == list(frame.columns) else frame[list(known)]


# -- people as given, and people made up -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Spelling:
    """The values of a column of categories by their codes, as they were given.

    Attributes
    ----------
    given : Series
        One value per code, in the dtype of the column; the last is for unseen categories.
    wide : Series
        The same with values for codes that nobody has, in a dtype that holds them.
    occurs : ndarray of bool
    """

    given: pd.Series[Any]
    wide: pd.Series[Any]
    occurs: BoolArray

    @property
    def widens(self) -> bool:
        """Whether a code that nobody has takes another dtype."""
        return bool(self.wide.dtype != self.given.dtype)

    @classmethod
    def of(cls, column: CategoricalColumn | NumericColumn, given: pd.Series[Any]) -> Spelling:
        """How people spell the categories of a column."""
        if isinstance(column, CategoricalColumn):
            others = [*column.levels, *([column.blank] if column.has_missing else []), unseen_value(column)]
        else:
            others = [*(column.categories or ()), np.nan]
        codes, first = np.unique(_places(column, column.encode(given)), return_index=True)
        occurs = np.zeros(len(others), dtype=bool)
        where = np.full(len(others), first[0] if len(first) else 0)
        occurs[codes], where[codes] = True, first
        values = [given.iat[row] if own else other for row, own, other in zip(where, occurs, others, strict=True)]
        wide = pd.Series(values, dtype=object)
        return cls(given.iloc[where].reset_index(drop=True), _as_kind(wide, given.dtype), occurs)


def _places(column: CategoricalColumn | NumericColumn, codes: FloatArray) -> npt.NDArray[np.intp]:
    """Codes as positions among the values of a column; the last is a blank of ordered categories, or unseen."""
    if isinstance(column, NumericColumn):
        n = len(column.categories or ())
        codes = np.where(np.isnan(codes), n, np.clip(np.rint(codes), 0, n - 1))
        return codes.astype(np.intp)
    n = len(column.levels) + column.has_missing
    return np.where(codes < 0, n, codes).astype(np.intp)


def _as_kind(values: pd.Series[Any], kind: Any) -> pd.Series[Any]:
    """Values in a dtype, if it can hold all of them."""
    present = values.notna()
    if isinstance(kind, pd.CategoricalDtype) and not values[present].isin(kind.categories).all():
        return values
    try:
        made = values.astype(kind)
    except (TypeError, ValueError):
        return values
    fits = (made.notna() == present).all() and (made[present].astype(object) == values[present]).all()
    return made if fits else values


def unseen_value(column: CategoricalColumn) -> Any:
    """A value that a categorical column did not hold when its encoder was fitted; None if a Boolean held both.

    Examples
    --------
    >>> import pandas as pd
    >>> unseen_value(CategoricalColumn.learn(pd.Series(["north", "south"], name="region")))
    'another'
    >>> unseen_value(CategoricalColumn.learn(pd.Series([1, 2], name="code")))
    3
    """
    levels = {*column.levels, *(column.categories or ())}
    if levels <= {True, False}:
        return next((value for value in (True, False) if value not in levels), None)
    if all(isinstance(value, (int, float)) for value in levels):
        return max(levels, default=0) + 1
    name = "another"
    while name in levels:
        name += "?"
    return name


@dataclass(frozen=True, eq=False)
class Ask:
    """A model, and people as they were given to be asked about.

    Attributes
    ----------
    model : object with predict_proba or predict, or callable
    people : DataFrame or ndarray
        As given: columns, order, dtypes, spellings.
    encoder : Encoder
        Encodes `people`, and people made up from them.
    whole : collection of column names
        Columns whose numbers are whole, so that those of made-up people can be integers if those given are.
    """

    model: Any
    people: Any
    encoder: Encoder
    whole: Any = ()

    @classmethod
    def of(cls, model: Any, X: Any, encoder: Encoder, whole: Any = ()) -> Ask:
        """People for a model; raises if an encoder inside the model knows no value of a column."""
        hint = "Pass predictions= for a system that cannot be called."
        is_plain_function("model", model, ("predict_proba", "predict"), hint)  # raises if it is not a model
        people = as_frame(X) if is_table(X) else check_numbers("X", X, "Text needs a table with named columns.")
        if not len(people):
            raise InvalidInputError("X must hold at least one person; got a table without rows.")
        ask = cls(model, people, encoder, whole)
        check_known(model, ask.given)
        return ask

    @property
    def given(self) -> Any:
        """People as given, in the columns of the model."""
        return self._taken(self.people)

    def answers(self) -> npt.NDArray[Any]:
        """What the model says about the people as given; raises if its answers are random."""
        return steady_answers(self.model, self.given)

    def about(self, rows: FloatArray) -> npt.NDArray[Any]:
        """What the model says about encoded people.

        Codes that nobody has may need another dtype: those who have them are asked about apart, so that nobody's answer
        depends on who else is asked about.
        """
        rare = self._rare(rows)
        if not rare.any() or rare.all():
            return answers(self.model, self.taken(rows))
        parts = [answers(self.model, self.taken(rows[which])) for which in (~rare, rare)]
        both = np.empty((len(rows), *parts[0].shape[1:]), dtype=np.result_type(*parts))
        both[~rare], both[rare] = parts
        return both

    def taken(self, rows: FloatArray) -> Any:
        """Encoded people as the model takes them."""
        table = self.table(rows)
        if isinstance(self.people, pd.DataFrame) and not isinstance(table, pd.DataFrame):
            # The encoder may have another order than people were given in; without names it has theirs.
            table = pd.DataFrame(table, columns=list(self.encoder.raw_labels or self.people.columns))
            table = table[[name for name in self.people.columns if name in table.columns]]
        if isinstance(table, pd.DataFrame) and not isinstance(self.people, pd.DataFrame):
            table = table.to_numpy(dtype=np.float64)
        return self._taken(table)

    def table(self, rows: FloatArray) -> Any:
        """Encoded people in the columns of the encoder, spelled as they were given."""
        if not isinstance(self.encoder, TableEncoder):
            return self.encoder.decode(rows)
        wide, columns = bool(self._rare(rows).any()), {}
        for i, column in enumerate(self.encoder.columns):
            if i in self._spellings:
                spelling = self._spellings[i]
                values = spelling.wide if wide or not spelling.widens else spelling.given
                columns[column.name] = values.take(_places(column, rows[:, i])).reset_index(drop=True)
            else:
                columns[column.name] = self._numbers(column.name, rows[:, i])
        return pd.DataFrame(columns, copy=False)

    def check(self, decode: Callable[[FloatArray], Any] | None = None) -> None:
        """Raise if the model's answers about people change as they are encoded and decoded.

        Decoded as they are spelled, or by what will decode the people that are made up.
        """
        if self.encoder.mixes_features:  # a product of matrices is rounded, and has no spellings
            return
        chosen = evenly_spaced(len(self.people), _MOST_CHECKED)
        people = self.people.iloc[chosen] if isinstance(self.people, pd.DataFrame) else self.people[chosen]
        taken, rows = self._taken(people), self._encoded(people)
        own = answers(self.model, taken)
        again = self.about(rows) if decode is None else answers(self.model, self._taken(decode(rows)))
        numeric = own.dtype.kind in "biuf" and again.dtype.kind in "biuf"
        same = np.isclose(own, again, rtol=1e-6, atol=1e-9, equal_nan=True) if numeric else own == again
        wrong = np.flatnonzero(~same.reshape(len(own), -1).all(axis=1))
        if len(wrong):
            _refuse_unsteady(self.model, taken, own)
            row = int(wrong[0])
            raise InvalidInputError(
                f"The model must answer alike for people as given and as they are read; row {chosen[row]} of X gets "
                f"{short_repr(own[row].tolist())} and {short_repr(again[row].tolist())}. Either its answers are "
                "random, or X writes values in a way that is not kept, such as numbers as text, or one category in two "
                "ways. Write numbers as numbers and a category in one way, and fit the model to that."
            )

    def refuse_merged(self) -> None:
        """Raise if people write one category, or a blank, in several ways: a model may tell them apart."""
        for i in self._spellings:
            column = self.encoder.columns[i]
            for rows in self.merged(i)[:1]:
                one, other = self.people[column.name].iloc[rows[:2]].tolist()
                what = "one kind of blank" if pd.isna(one) else "one spelling of each category"
                raise InvalidInputError(
                    f"X must have {what} per column, as encoders tell {one!r} and {other!r} apart; {column.name!r} has "
                    "both. Replace one by the other, and fit the model to that."
                )

    def merged(self, column: int) -> list[list[int]]:
        """Rows with the spellings of each category of a column of the encoder that has several."""
        if column not in self._spellings:
            return []
        read = self.encoder.columns[column]
        return [rows for rows in _spelled(read, self.people[read.name]).values() if len(rows) > 1]

    def exchanged(self, column: int, rows: IntArray, donors: IntArray) -> npt.NDArray[Any]:
        """What the model says about rows of the people, with the donors' values in a column of the encoder."""
        if isinstance(self.people, pd.DataFrame):
            name = (self.encoder.raw_labels or self.people.columns)[column]
            people = self.people.take(rows).reset_index(drop=True)
            people[name] = self.people[name].take(donors).reset_index(drop=True)
        else:
            people = self.people[rows]
            people[:, column] = self.people[donors, column]
        return answers(self.model, self._taken(people))

    def _taken(self, people: Any) -> Any:
        of_table = isinstance(self.encoder, TableEncoder)
        fitted_to_array = hasattr(self.model, "n_features_in_") and self.encoder.is_plain
        return as_taken(self.model, people, as_array=fitted_to_array or not of_table)

    def _encoded(self, people: Any) -> FloatArray:
        if isinstance(self.encoder, TableEncoder) and not isinstance(people, pd.DataFrame):
            people = pd.DataFrame(people, columns=self.encoder.names)
        return self.encoder.encode(people)

    def _numbers(self, name: Any, numbers: FloatArray) -> Any:
        kind = self.people[name].dtype if name in self.whole else None
        are_whole = isinstance(kind, np.dtype) and kind.kind in "iu" and (numbers == np.rint(numbers)).all()
        return numbers.astype(kind) if are_whole else numbers

    def _rare(self, rows: FloatArray) -> BoolArray:
        """Who has a category that none of the people has, and that their dtype does not hold."""
        rare = np.zeros(len(rows), dtype=bool)
        for i, spelling in self._spellings.items():
            if spelling.widens:
                rare |= ~spelling.occurs[_places(self.encoder.columns[i], rows[:, i])]
        return rare

    @cached_property
    def _spellings(self) -> dict[int, Spelling]:
        """Of the columns of categories, ordered or not."""
        columns = self.encoder.columns if isinstance(self.encoder, TableEncoder) else ()
        return {
            i: Spelling.of(column, self.people[column.name])
            for i, column in enumerate(columns)
            if isinstance(column, CategoricalColumn) or column.categories is not None
        }


def _spelled(column: CategoricalColumn | NumericColumn, given: pd.Series[Any]) -> dict[int, list[int]]:
    """Rows with the distinct spellings of each code; unseen values are no spellings of one another."""
    rows = np.arange(len(given)) if given.dtype == np.dtype(object) else np.flatnonzero(~given.duplicated())
    unseen = len(column.levels) + column.has_missing if isinstance(column, CategoricalColumn) else -1
    codes = _places(column, column.encode(given.iloc[rows])).tolist()
    found: dict[int, dict[Any, int]] = {}
    for row, code, value in zip(rows.tolist(), codes, given.iloc[rows].tolist(), strict=True):
        if code != unseen:
            found.setdefault(code, {}).setdefault((type(value), None if pd.isna(value) else value), row)
    return {code: list(ways.values()) for code, ways in found.items()}
