"""Which raw columns each feature of a model is computed from: one, or those of a product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures

from likewise._typing import FloatArray
from likewise.exceptions import UnprovableError
from likewise.inspection.baselines import AsNumbers
from likewise.inspection.preprocessing import SCALERS, after_step, preprocessed, refuse_markers, unwrap


class Source(NamedTuple):
    """The raw column behind a feature, or the columns behind a product.

    Attributes
    ----------
    column : int
        Position among the columns that the whole model takes; -1 for a product.
    monotone : bool
        Whether the feature rises or falls with the number in that column, in floating point too. Otherwise every value
        has to be evaluated.
    linear : bool
        Whether it is a factor times the number, or the product, plus a constant. Sums of such features are, too.
    factors : tuple of Source
        Of a product of several columns.
    """

    column: int
    monotone: bool = True
    linear: bool = True
    factors: tuple[Any, ...] = ()

    @property
    def recoded(self) -> Source:
        """A feature that may depend on the column in any way."""
        return self._replace(monotone=False, linear=False)

    @property
    def columns(self) -> tuple[int, ...]:
        """All columns behind the feature, ascending."""
        return tuple(sorted({each.column for each in self.factors or (self,)}))

    def mapped(self, factor: float, shift: float) -> Source:
        """The feature times `factor` plus `shift`."""
        return self

    def is_linear_in(self, column: int) -> bool:
        """Whether it is a factor times the number in a column plus a constant, all other columns held fixed."""
        own = [each.linear for each in self.factors or (self,) if each.column == column]
        return not own or (self.linear and own == [True])


Sources = list[Source | None]
"""One per feature; None for a feature that is constant."""


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """The steps in front of a model, and where its features come from.

    Attributes
    ----------
    steps : list
        Fitted transformers.
    last : object
        The model behind them.
    sources : list of Source or None
        One per feature of `last`.
    """

    steps: list[Any]
    last: Any
    sources: Sources

    @classmethod
    def of(cls, model: Any, columns: Sequence[int], *, products: bool = False) -> Preprocessing:
        """Take a fitted model apart, or raise `UnprovableError` with the reason; products only where they are read.

        Parameters
        ----------
        columns : sequence of int
            What the columns that the model takes are called in the sources.
        """
        steps, last = unwrap(model)
        sources: Sources = [Source(i) for i in columns]
        for step in steps:
            sources = after_step(step, sources, _RULES, None)
        if not products and any(source and source.factors for source in sources):
            raise UnprovableError(
                f"products of columns are read in front of linear models only, not {type(last).__name__}"
            )
        return cls(steps, last, sources)

    def __call__(self, rows: Any) -> Any:
        """The input of `last` for some rows."""
        return preprocessed(self.steps, rows)

    def numbers(self, rows: Any) -> FloatArray:
        """The same as an array."""
        return np.asarray(self(rows), dtype=np.float64)


def _scaled(step: Any, sources: Sources) -> Sources:
    if not getattr(step, "clip", False):
        return sources
    return [source and source._replace(linear=False) for source in sources]


def _products(step: PolynomialFeatures, sources: Sources) -> Sources:
    return [_product(sources, powers) for powers in step.powers_.tolist()]


def _product(sources: Sources, powers: list[int]) -> Source | None:
    """The source of a product of powers of features."""
    used = [source for source, power in zip(sources, powers, strict=True) for _ in range(power) if source is not None]
    factors: tuple[Source, ...] = tuple(each for source in used for each in source.factors or (source,))
    if len(used) < 2:
        return used[0] if used else None
    if len({each.column for each in factors}) == 1:
        return factors[0].recoded
    return Source(-1, monotone=False, linear=all(each.linear for each in used if each.factors), factors=factors)


def _imputed(step: SimpleImputer, sources: Sources) -> Sources:
    refuse_markers(step, none=True)
    empty = np.array([fill != fill for fill in step.statistics_.tolist()])
    kept = [source for source, gone in zip(sources, empty, strict=True) if not gone or step.keep_empty_features]
    flagged = step.indicator_.features_.tolist() if step.add_indicator else []
    return [*kept, *(sources[i] for i in flagged)]  # an indicator is the same for all numbers


def _one_hot(step: OneHotEncoder, sources: Sources) -> Sources:
    sizes = list(step._n_features_outs)
    if len(sizes) != len(sources):
        raise UnprovableError("OneHotEncoder takes another number of columns than it is given")
    return [source and source.recoded for source, size in zip(sources, sizes, strict=True) for _ in range(size)]


def _kept(step: AsNumbers, sources: Sources) -> Sources:
    return sources


def _coded(step: OrdinalEncoder, sources: Sources) -> Sources:
    return [source and source.recoded for source in sources]


_RULES: dict[type, Callable[[Any, Sources], Sources]] = {
    **dict.fromkeys(SCALERS, _scaled),
    AsNumbers: _kept,
    SimpleImputer: _imputed,
    OneHotEncoder: _one_hot,
    OrdinalEncoder: _coded,
    PolynomialFeatures: _products,
}
