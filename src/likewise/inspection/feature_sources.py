"""Which raw columns each feature of a model is computed from: one, or those of a product."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, PolynomialFeatures

from likewise.exceptions import UnprovableError
from likewise.inspection.baselines import AsNumbers
from likewise.inspection.preprocessing import is_scaler, unwrap


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
    def of(cls, model: Any, n_columns: int, *, products: bool = False) -> Preprocessing:
        """Take a fitted model apart, or raise `UnprovableError` with the reason; products only where they are read."""
        steps, last = unwrap(model)
        sources: Sources = [Source(i) for i in range(n_columns)]
        for step in steps:
            sources = _after(step, sources)
        if not products and any(source and source.factors for source in sources):
            raise UnprovableError(
                f"products of columns are read in front of linear models only, not {type(last).__name__}"
            )
        return cls(steps, last, sources)

    def __call__(self, rows: Any) -> Any:
        """The input of `last` for some rows."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unknown categories are intended where the domain has them
            for step in self.steps:
                rows = step.transform(rows)
        return rows.toarray() if hasattr(rows, "toarray") else rows


def _after(step: Any, sources: Sources) -> Sources:
    """Sources of the features after a step."""
    steps, last = unwrap(step)
    if last is not step:
        for part in (*steps, *([] if last is None else [last])):
            sources = _after(part, sources)
        return sources
    kind = type(step)
    if is_scaler(step):
        return [
            source and source._replace(linear=source.linear and not getattr(step, "clip", False)) for source in sources
        ]
    if step is None or kind is AsNumbers or (kind is FunctionTransformer and step.func is None):
        return sources
    if kind is SimpleImputer:
        return _after_imputer(step, sources)
    if kind is OrdinalEncoder:
        return [source and source.recoded for source in sources]
    if kind is OneHotEncoder:
        return _after_one_hot(step, sources)
    if kind is PolynomialFeatures:
        return [_product(sources, powers) for powers in step.powers_.tolist()]
    if kind is ColumnTransformer:
        return _after_columns(step, sources)
    raise UnprovableError(
        f"the step {kind.__name__} is not a scaler, SimpleImputer, OneHotEncoder, OrdinalEncoder, PolynomialFeatures "
        "or ColumnTransformer"
    )


def _product(sources: Sources, powers: list[int]) -> Source | None:
    """The source of a product of powers of features."""
    used = [source for source, power in zip(sources, powers, strict=True) for _ in range(power) if source is not None]
    factors: tuple[Source, ...] = tuple(each for source in used for each in source.factors or (source,))
    if len(used) < 2:
        return used[0] if used else None
    if len({each.column for each in factors}) == 1:
        return factors[0].recoded
    return Source(-1, monotone=False, linear=all(each.linear for each in used if each.factors), factors=factors)


def _after_imputer(step: SimpleImputer, sources: Sources) -> Sources:
    marker = step.missing_values
    if not (marker is None or (isinstance(marker, float) and np.isnan(marker))):
        raise UnprovableError(f"SimpleImputer with missing_values={marker!r} changes values that are not missing")
    empty = np.array([fill != fill for fill in step.statistics_.tolist()])
    kept = [source for source, gone in zip(sources, empty, strict=True) if not gone or step.keep_empty_features]
    flagged = step.indicator_.features_.tolist() if step.add_indicator else []
    return [*kept, *(sources[i] for i in flagged)]  # an indicator is the same for all numbers


def _after_one_hot(step: OneHotEncoder, sources: Sources) -> Sources:
    sizes = list(step._n_features_outs)
    if len(sizes) != len(sources):
        raise UnprovableError("OneHotEncoder takes another number of columns than it is given")
    return [source and source.recoded for source, size in zip(sources, sizes, strict=True) for _ in range(size)]


def _after_columns(step: ColumnTransformer, sources: Sources) -> Sources:
    n_features = max((part.stop for part in step.output_indices_.values()), default=0)
    result: Sources = [None] * n_features
    for name, part, _ in step.transformers_:
        if isinstance(part, str) and part == "drop":
            continue
        chosen = [sources[i] for i in step._transformer_to_input_indices[name]]
        made = _after(part, chosen) if chosen else []
        place = step.output_indices_[name]
        if place.stop - place.start != len(made):
            raise UnprovableError(f"the step {type(part).__name__} gives another number of columns than expected")
        result[place] = made
    return result
