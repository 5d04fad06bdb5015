"""What every proof shares: encoded people of a domain, limits on the search, and the result."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from likewise._typing import BoolArray, FloatArray
from likewise.ask import Ask, known_columns
from likewise.exceptions import InvalidInputError
from likewise.kernel.columns import UNSEEN, NumericColumn, is_numeric
from likewise.kernel.schema import Encoder, People, TableEncoder, is_table
from likewise.metrics.base import Metric
from likewise.pairs.model_outputs import OutputLabels, asked_outputs
from likewise.verification.domain import CategoricalDomain, Domain, NumericDomain, frame_of


@dataclass(frozen=True, eq=False)
class InputSpace:
    """Encoded people of a domain, and the model that scores them.

    Attributes
    ----------
    ask : Ask
        The model, and the people given.
    domain : Domain
    rows : ndarray of shape (n_samples, n_columns)
        The people given, coded: NaN where missing, positions among the known categories.
    table : DataFrame
        The people given.
    as_array : bool
        Whether they are an array.
    output_range : tuple of float, optional
        Differences of regression outputs are divided by its width.
    """

    ask: Ask
    domain: Domain
    rows: FloatArray
    table: pd.DataFrame
    as_array: bool
    output_range: tuple[float, float] | None

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        metric: Metric | None = None,
        domain: Domain | None = None,
        output_range: tuple[float, float] | None = None,
    ) -> InputSpace:
        """Code people, and learn the domain if none is given."""
        frame = frame_of(X).reset_index(drop=True)
        if not len(frame):
            raise InvalidInputError("X must hold at least one person; got none.")
        known = known_columns(model)
        if is_table(X) and known is not None:
            absent = [name for name in known if name not in frame]
            if absent:
                raise InvalidInputError(f"X must have the column {absent[0]!r}, which the model takes.")
        n_taken = getattr(model, "n_features_in_", len(frame.columns))
        if not is_table(X) and n_taken != len(frame.columns):
            raise InvalidInputError(f"X must have {n_taken} columns, as the model takes; got {len(frame.columns)}.")
        numeric, orders = [name for name in frame if is_numeric(frame[name])], {}
        if metric is not None:
            metric.encode_rows(X)  # raises for unknown columns and refused blanks
            kinds = metric.encoder(X)
            named = frame.columns if kinds.labels is None else kinds.labels
            numeric = [name for name, number in zip(named, kinds.is_number, strict=True) if number]
            orders = {c.name: c.categories for c in kinds.columns if isinstance(c, NumericColumn) and c.categories}
        categories = [name for name in frame if name not in set(numeric)]
        encoder = TableEncoder.learn(frame, numeric, categories, listed=orders)
        if domain is None:
            # Ordered categories are coded as numbers, and take only their own codes.
            listed = [name for name in frame if name in set(categories) or not is_numeric(frame[name])]
            domain = Domain.learn(frame, listed)
        else:
            unknown = [name for name in frame if name not in domain.columns]
            if unknown:
                raise InvalidInputError(f"domain must say what {unknown[0]!r} can hold; it has {list(domain.columns)}.")
        limits = output_range or getattr(getattr(model, "guarantee_", None), "output_range", None)
        whole = [
            name
            for name, held in domain.columns.items()
            if isinstance(held, NumericDomain) and not held.blank and held.step is not None and held.step % 1 == 0
        ]
        ask = Ask.of(model, frame if is_table(X) else frame.to_numpy(), encoder, whole if is_table(X) else ())
        ask.refuse_merged()
        ask.check()
        return cls(ask, domain, encoder.encode(frame), frame, not is_table(X), limits)

    @property
    def model(self) -> Any:
        """The model that is asked."""
        return self.ask.model

    @property
    def encoder(self) -> Encoder:
        """Of the people."""
        return self.ask.encoder

    @property
    def names(self) -> list[Any]:
        """Names of the columns, in the order of the encoded rows."""
        return list(self.encoder.names)

    def given(self, rows: FloatArray) -> Any:
        """Encoded people as the model takes them: only the columns that it has learned from, if it knows these."""
        return self.ask.taken(rows)

    def for_metric(self, metric: Metric, rows: FloatArray) -> People:
        """Encoded people as a metric takes them."""
        table = self.ask.table(rows)
        if self.as_array:
            table = table.to_numpy(dtype=np.float64)
        known = self.table.to_numpy() if self.as_array else self.table
        return People.read(table, metric.encoder(known))

    def outputs(self, rows: FloatArray) -> FloatArray:
        """Outputs of encoded people, in a form whose differences add up to the total variation."""
        return self.answers(rows)[0]

    def answers(self, rows: FloatArray) -> tuple[FloatArray, bool]:
        """Outputs of encoded people, and whether these are probabilities."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a model may warn about people who do not exist
            return asked_outputs(self.ask, self.output_range, rows)

    def labels(self, *, probable: bool) -> OutputLabels:
        """What the outputs describe."""
        return OutputLabels.of(self.model, None, self.output_range, probable=probable)

    def codes(self, column: int) -> FloatArray:
        """Encoded categories of a column, a blank last where it may be missing."""
        return self._codes[column]

    @cached_property
    def _codes(self) -> dict[int, FloatArray]:
        held = self.domain.columns
        return {i: self._encoded(i) for i, name in enumerate(self.names) if isinstance(held[name], CategoricalDomain)}

    def _encoded(self, column: int) -> FloatArray:
        name = self.names[column]
        held = self.domain.columns[name]
        assert isinstance(held, CategoricalDomain)
        values = pd.Series([*held.values, *([None] if held.blank else [])], dtype=object, name=name)
        codes = self.encoder.columns[column].encode(values)
        unseen = codes == UNSEEN
        if unseen.any():
            raise InvalidInputError(
                f"The domain of {name!r} lists {values[unseen.argmax()]!r}, which does not occur in X. Add such a row, "
                "or take it off the list."
            )
        return np.asarray(codes, dtype=np.float64)

    def people(self, rows: FloatArray) -> pd.DataFrame:
        """Encoded people as they are shown: whole numbers without a point."""
        table: pd.DataFrame = self.ask.table(rows)
        for name, held in self.domain.columns.items():
            if getattr(held, "step", None) == 1 and not table[name].isna().any():
                table[name] = table[name].astype(np.int64)
        return table

    def differences(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Differences between the outputs of encoded people a and b, row by row."""
        outputs = self.outputs(np.concatenate([a, b]))
        return np.asarray(np.abs(outputs[: len(a)] - outputs[len(a) :]).sum(axis=1))

    def keeps_rules(self, rows: FloatArray) -> BoolArray:
        """Which encoded people keep the rules of the domain."""
        return self.domain.keeps_rules(rows, self.names)

    def holds(self, rows: FloatArray) -> BoolArray:
        """Which encoded people are in the domain."""
        fine = self.keeps_rules(rows)
        for i, name in enumerate(self.names):
            held = self.domain.columns[name]
            if isinstance(held, CategoricalDomain):
                codes = self.codes(i)
                fine &= (rows[:, i, None] == codes).any(axis=1) | (np.isnan(rows[:, i]) & np.isnan(codes).any())
            else:
                fine &= held.holds(rows[:, i])
        return fine

    def rules(self) -> list[tuple[dict[int, float], float]]:
        """The rules of the domain, by position of the columns, with room for rounding."""
        found = []
        for rule in self.domain.rules:
            size = 0.0
            for name, coefficient in rule.coefficients.items():
                held = self.domain.columns[name]
                assert isinstance(held, NumericDomain)
                size += abs(coefficient) * max(abs(held.low), abs(held.high))
            found.append(({self.names.index(n): c for n, c in rule.coefficients.items()}, rule.room(size)))
        return found


@dataclass(frozen=True)
class Limits:
    """When a search ends.

    Attributes
    ----------
    max_seconds : float or None
        Processor time.
    max_boxes : int or None
    tolerance : float
        The search ends when the values found and proven are this close.
    """

    max_seconds: float | None
    max_boxes: int | None
    tolerance: float

    def shared(self, n: int) -> Limits:
        """The limits of each of n searches."""
        return Limits(
            None if self.max_seconds is None else self.max_seconds / n,
            None if self.max_boxes is None else max(1, self.max_boxes // n),
            self.tolerance,
        )


@dataclass(frozen=True, eq=False)
class Proof:
    """An upper bound, and pairs that came close to it.

    Attributes
    ----------
    proven : float or None
        None if there is no proof.
    how : str
        How it was proven, or why it was not.
    pairs : list of (ndarray, ndarray)
        Encoded people a and b, to be tried.
    n_boxes : int
    history : tuple of (int, float, float)
        Boxes, found and proven as the search went on.
    """

    proven: float | None
    how: str
    pairs: list[tuple[FloatArray, FloatArray]]
    n_boxes: int = 0
    history: tuple[tuple[int, float, float], ...] = ()
