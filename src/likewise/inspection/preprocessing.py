"""Preprocessing column by column: imputers, scalers, splines, bins, one-hot encoders and column transformers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.interpolate import PPoly
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)

from likewise._typing import FloatArray
from likewise.exceptions import UnprovableError


def unwrap(model: Any) -> tuple[list[Any], Any]:
    """The steps in front of a model, and the model itself.

    Frozen estimators are unwrapped, nested pipelines flattened, and passthrough steps dropped. Subclasses are not
    unwrapped, since they may do anything.

    Returns
    -------
    steps : list
    last : object
        None if every step is passthrough.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> unwrap(make_pipeline("passthrough", FrozenEstimator(make_pipeline(MinMaxScaler(), Ridge()))))
    ([MinMaxScaler()], Ridge())
    """
    *steps, last = (*_parts(model),) or (None,)
    return steps, last


def _parts(model: Any) -> Iterator[Any]:
    if type(model) is FrozenEstimator:
        yield from _parts(model.estimator)
    elif type(model) is Pipeline:
        for _, step in model.steps:
            yield from _parts(step)
    elif model is not None and not (isinstance(model, str) and model == "passthrough"):
        yield model


def preprocessed(steps: Sequence[Any], rows: Any) -> Any:
    """Some rows after preprocessing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unknown categories are intended where the domain has them
        for step in steps:
            rows = step.transform(rows)
    return rows.toarray() if hasattr(rows, "toarray") else rows


def last_step(model: Any) -> Any:
    """The model behind any number of scalers (fitted or not), or the model itself."""
    steps, last = unwrap(model)
    return last if all(map(_is_affine, steps)) else model


def affine_map(model: Any, n_features: int) -> tuple[FloatArray, FloatArray]:
    """Factor and shift per feature of the scalers in front of `last_step(model)`.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from sklearn.pipeline import make_pipeline
    >>> model = make_pipeline(MinMaxScaler(), DecisionTreeRegressor()).fit([[10.0], [20.0]], [0, 1])
    >>> affine_map(model, 1)
    (array([0.1]), array([-1.]))
    """
    factor, shift = np.ones(n_features), np.zeros(n_features)
    steps, _ = unwrap(model)
    if all(map(_is_affine, steps)):
        for step in steps:
            a, b = factor_and_shift(step)
            factor, shift = factor * a, shift * a + b
    return factor, shift


SCALERS = (StandardScaler, RobustScaler, MaxAbsScaler, MinMaxScaler)
"""Steps that multiply each column by a factor and add a shift, unless they clip."""


def _is_affine(step: Any) -> bool:
    return type(step) in SCALERS and not getattr(step, "clip", False)


def factor_and_shift(step: Any) -> tuple[Any, Any]:
    """Factor and shift per column of a fitted scaler."""
    if isinstance(step, MinMaxScaler):
        return step.scale_, step.min_
    if isinstance(step, MaxAbsScaler):
        return 1 / step.scale_, 0.0
    if isinstance(step, StandardScaler):
        centre = step.mean_ if step.with_mean else 0.0
        scale = step.scale_ if step.with_std else 1.0
    else:
        centre = step.center_ if step.with_centering else 0.0
        scale = step.scale_ if step.with_scaling else 1.0
    return 1 / scale, -centre / scale


@dataclass(frozen=True, eq=False)
class RawColumn:
    """A preprocessed column as a function of one raw column.

    A number x becomes ``scale * x + shift`` or ``pieces(x)``, and a category one of `levels`.

    Attributes
    ----------
    column : int
        -1 for a constant, which is `shift`.
    scale, shift : float
        ``scale = 0`` for a missing indicator.
    absent : float or object, or None
        What a missing value becomes; None if it is not replaced. Before one-hot encoding it is a value of the raw
        column, not necessarily a number.
    levels : ndarray of shape (n_levels,), or None
        The value of each category, or one value if all are equal; None for numbers.
    names : tuple
        Of the levels; empty if they are not known. The last of more levels than names is that of unseen categories.
    pieces : PPoly or None
        Splines and bins; the outer pieces extrapolate below the first breakpoint and above the last.
    raw : bool
        Whether values other than missing ones are unchanged.
    encoder : object
        The encoder that defines the categories.
    """

    column: int
    scale: float = 1.0
    shift: float = 0.0
    absent: Any = None
    levels: FloatArray | None = None
    names: tuple[Any, ...] = ()
    pieces: PPoly | None = None
    raw: bool = True
    encoder: Any = None

    @classmethod
    def constant(cls, value: float) -> RawColumn:
        """A constant column."""
        return cls(-1, scale=0.0, shift=value, raw=False)

    @property
    def is_constant(self) -> bool:
        """Whether it is constant."""
        return self.column < 0

    def mapped(self, factor: float, shift: float) -> RawColumn:
        """The column times `factor` plus `shift`."""
        return replace(
            self,
            scale=self.scale * factor,
            shift=self.shift * factor + shift,
            absent=None if self.absent is None else self.absent * factor + shift,
            levels=None if self.levels is None else self.levels * factor + shift,
            pieces=None if self.pieces is None else _affine(self.pieces, factor, shift),
            raw=self.raw and factor == 1 and shift == 0,
        )


Sources = list[RawColumn]
"""One per preprocessed column."""


def sources_after(step: Any, sources: Sources) -> Sources:
    """Sources of the columns after a preprocessing step, or `UnprovableError`."""
    return after_step(step, sources, _RULES, RawColumn.constant(0.0))


def after_step(step: Any, features: list[Any], rules: Mapping[type, Callable[..., list[Any]]], empty: Any) -> list[Any]:
    """What is known of each feature after a preprocessing step, from what is known of each before it.

    Parameters
    ----------
    rules : mapping from type of a step to callable
        From the step and the features before it to those after it; exact types, since a subclass may do anything.
    empty : object
        A feature that nothing is known of.
    """
    steps, last = unwrap(step)
    if last is not step:
        for part in (*steps, last):
            features = after_step(part, features, rules, empty)
        return features
    kind = type(step)
    if step is None or (kind is FunctionTransformer and step.func is None):
        return features
    if kind in rules:
        return rules[kind](step, features)
    if kind is not ColumnTransformer:
        public = [each for each in rules if each not in SCALERS and each.__module__.startswith("sklearn.")]
        names = ", ".join(each.__name__ for each in public)
        raise UnprovableError(f"the step {kind.__name__} is not a scaler, {names} or ColumnTransformer")
    result = [empty] * max((part.stop for part in step.output_indices_.values()), default=0)
    for name, part, _ in step.transformers_:
        if isinstance(part, str) and part == "drop":
            continue
        chosen = [features[i] for i in step._transformer_to_input_indices[name]]
        made = after_step(part, chosen, rules, empty) if chosen else []
        place, factor = step.output_indices_[name], (step.transformer_weights or {}).get(name, 1.0)
        if place.stop - place.start != len(made):
            raise UnprovableError(f"the step {type(part).__name__} gives another number of columns than expected")
        result[place] = made if factor == 1 else [feature and feature.mapped(factor, 0.0) for feature in made]
    return result


def _scaled(step: Any, sources: Sources) -> Sources:
    if getattr(step, "clip", False):
        raise UnprovableError(f"{type(step).__name__} with clip=True is not linear")
    factors, shifts = (np.broadcast_to(part, len(sources)).tolist() for part in factor_and_shift(step))
    return [source.mapped(*by) for source, *by in zip(sources, factors, shifts, strict=True)]


# -- imputers --------------------------------------------------------------------------------------------------------


def refuse_markers(step: SimpleImputer, *, none: bool = False) -> None:
    """Raise if an imputer replaces other values than NaN, or None where that may be."""
    marker = step.missing_values
    if not (isinstance(marker, float) and math.isnan(marker)) and not (none and marker is None):
        raise UnprovableError(f"SimpleImputer with missing_values={marker!r} changes values that are not missing")


def _imputed(step: SimpleImputer, sources: Sources) -> Sources:
    refuse_markers(step)
    are_numbers = all(
        isinstance(fill, (int, float)) and not isinstance(fill, bool) for fill in step.statistics_.tolist()
    )
    return _imputed_numbers(step, sources) if are_numbers else _imputed_categories(step, sources)


def _imputed_numbers(step: SimpleImputer, sources: Sources) -> Sources:
    """Read off the imputer's own outputs for 0, 1 and a blank in each column."""
    n = len(sources)
    rows = np.vstack([np.zeros((1, n)), np.eye(n), np.where(np.eye(n) > 0, np.nan, 0.0)])
    coded = _transformed(step, pd.DataFrame(rows))
    result = [RawColumn.constant(at_zero) for at_zero in coded[0].tolist()]
    for k, (at_zero, *others) in enumerate(coded.T.tolist()):
        for i, source in enumerate(sources):
            factor, absent = others[i] - at_zero, others[n + i]
            if factor == 0 and absent == at_zero:
                continue
            made = source.mapped(factor, at_zero)
            result[k] = replace(made, absent=absent) if source.absent is None else made
    return result


def _imputed_categories(step: SimpleImputer, sources: Sources) -> Sources:
    """Categories are unchanged, missing ones replaced; indicators come last, as in `SimpleImputer`."""
    fills = step.statistics_.tolist()
    flagged = step.indicator_.features_.tolist() if step.add_indicator else []
    if any(pd.isna(fill) for fill in fills):
        raise UnprovableError("SimpleImputer was fitted on a column without values")
    if not all(source.raw for source in sources):
        raise UnprovableError("SimpleImputer of categories comes after a step that changes its columns")
    kept = [replace(s, absent=fill) if s.absent is None else s for s, fill in zip(sources, fills, strict=True)]
    flags = [replace(s, scale=0.0, absent=1.0, raw=False) for s in sources]
    return [*kept, *(flags[i] for i in flagged)]


# -- splines and bins ------------------------------------------------------------------------------------------------


def _affine(pieces: PPoly, factor: float, shift: float) -> PPoly:
    """Pieces times `factor` plus `shift`."""
    made = PPoly(pieces.c * factor, pieces.x)
    made.c[-1] += shift
    return made


def _in_pieces(step: Any, sources: Sources) -> Sources:
    """Outputs of splines and bins as piecewise polynomials, compared with the step's own."""
    name, result = type(step).__name__, Sources()
    for j, source in enumerate(sources):
        if source.levels is not None or source.pieces is not None or source.scale <= 0:
            raise UnprovableError(f"{name} comes after a step that does not keep numbers in their order")
        made = _spline_pieces(step, j) if isinstance(step, SplineTransformer) else _bin_pieces(step, j)
        _confirm_pieces(step, j, made, len(result))
        absent = _outputs_at(step, j, [np.nan if source.absent is None else source.absent])
        for k, pieces in enumerate(made, start=len(result)):
            own = PPoly(
                pieces.c * source.scale ** np.arange(len(pieces.c) - 1, -1, -1)[:, None],
                (pieces.x - source.shift) / source.scale,
            )
            missing = None if absent is None else float(absent[0, k])
            result.append(RawColumn(source.column, absent=missing, pieces=own, raw=False))
    return result


def _spline_pieces(step: SplineTransformer, j: int) -> list[PPoly]:
    """The functions of column j. Periodic ones are read for one period, with constants beyond."""
    spline, made = step.bsplines_[j], []
    low, high = spline.t[spline.k], spline.t[-spline.k - 1]
    breaks = np.unique(spline.t[(spline.t >= low) & (spline.t <= high)])
    for c in spline.c.T[: spline.c.shape[1] - (not step.include_bias)]:
        whole = PPoly.from_spline((spline.t, c, spline.k))
        inside = PPoly(_expanded([whole], breaks), breaks)
        if step.extrapolation != "continue":
            # Of degree 1, the slope at the upper end is that of the next piece, as in scikit-learn.
            slopes = whole.derivative()([low, high]) if step.extrapolation == "linear" else np.zeros(2)
            starts = inside([low, high]) - [slopes[0] * (high - low), 0]  # one more piece on each side
            ends = np.zeros((max(2, len(inside.c)), 2))
            ends[-2:] = slopes, starts
            padded = np.vstack([np.zeros((len(ends) - len(inside.c), len(breaks) - 1)), inside.c])
            inside = PPoly(
                np.column_stack([ends[:, 0], padded, ends[:, 1]]), [low - (high - low), *breaks, high + (high - low)]
            )
        made.append(inside)
    return made


def _bin_pieces(step: KBinsDiscretizer, j: int) -> list[PPoly]:
    """A column of bin numbers, or one of 0 and 1 per bin. A bin includes its lower edge."""
    edges = np.asarray(step.bin_edges_[j], dtype=np.float64)
    n = len(edges) - 1
    rows = np.arange(n)[None] if step.encode == "ordinal" else np.eye(n)
    return [PPoly(row[None].astype(np.float64), edges) for row in rows]


def _expanded(parts: list[PPoly], breaks: FloatArray) -> FloatArray:
    """Coefficients of a sum of piecewise polynomials on finer pieces, which begin at `breaks[:-1]`."""
    degree = max(len(part.c) for part in parts) - 1
    derivatives = [sum(part.derivative(m)(breaks[:-1]) for part in parts) for m in range(degree + 1)]
    return np.array([derivatives[m] / math.factorial(m) for m in range(degree, -1, -1)])


def sum_of_pieces(parts: list[PPoly]) -> PPoly:
    """The sum of piecewise polynomials, whose outer pieces extrapolate."""
    inner = np.unique(np.concatenate([part.x[1:-1] for part in parts]))
    outer = [min(part.x[0] for part in parts), max(part.x[-1] for part in parts)]
    breaks = np.unique(np.concatenate([inner, outer]))
    return PPoly(_expanded(parts, breaks), breaks)


def _outputs_at(step: Any, j: int, values: list[float]) -> FloatArray | None:
    """Outputs of a step for values of column j, the others at a value inside; None if it refuses them."""
    edges = step.bsplines_ if isinstance(step, SplineTransformer) else step.bin_edges_
    inside = [float(np.mean(each.t if hasattr(each, "t") else each)) for each in edges]
    rows = pd.DataFrame({i: values if i == j else [x] * len(values) for i, x in enumerate(inside)}, dtype=np.float64)
    try:
        return _transformed(step, rows)
    except ValueError:
        return None


def _confirm_pieces(step: Any, j: int, made: list[PPoly], first: int) -> None:
    """Raise if the step's own outputs differ from the pieces, away from their breakpoints."""
    x = made[0].x
    probes = (x[1:] + 2 * x[:-1]) / 3
    if getattr(step, "extrapolation", "") in ("error", "periodic"):  # what lies outside is refused, or repeats
        probes = probes[1:-1]
    else:
        probes = np.concatenate([probes, [x[0] - np.ptp(x), x[-1] + np.ptp(x)]])
    outputs = _outputs_at(step, j, probes.tolist())
    expected = np.column_stack([pieces(probes) for pieces in made])
    if outputs is None or not np.allclose(outputs[:, first : first + len(made)], expected, rtol=1e-6, atol=1e-9):
        raise UnprovableError(f"the outputs of {type(step).__name__} are not the expected function of its columns")


# -- one-hot encoders ------------------------------------------------------------------------------------------------


def _one_hot(step: OneHotEncoder, sources: Sources) -> Sources:
    """Read off the encoder's own outputs for every category, since it may drop or merge some."""
    result: Sources | None = None
    for j, source in enumerate(sources):
        if source.is_constant or not (source.raw or source.scale == 0):
            raise UnprovableError("OneHotEncoder comes after a step that changes its columns")
        present = _codes(step, j, [source.shift] if source.scale == 0 else _levels(step, j))
        absent = present[:0] if source.absent is None else _codes(step, j, [source.absent])
        if result is None:
            result = [RawColumn.constant(value) for value in present[0].tolist()] if len(present) else []
        absent = absent.reshape(-1, present.shape[1])
        for k in np.flatnonzero(np.ptp(np.vstack([present, absent]), axis=0) > 0):
            missing = float(absent[0, k]) if len(absent) else None
            names = () if source.scale == 0 else tuple(step.categories_[j].tolist())
            result[k] = RawColumn(source.column, 1, 0, missing, present[:, k], names, raw=False, encoder=step)
    return result or []


def _levels(step: OneHotEncoder, j: int) -> list[Any]:
    """The categories of column j, and an unseen one if the encoder accepts those."""
    own = list(step.categories_[j])
    return own if step.handle_unknown == "error" else own + _unknown(step.categories_[j])


def _codes(step: OneHotEncoder, j: int, levels: list[Any]) -> FloatArray:
    """Encoded rows for some values of column j, the others held fixed; shape (n_levels, n_encoded).

    Empty if the encoder refuses the values, such as an imputed one.
    """
    columns = {
        i: pd.Series(levels if i == j else [values[0]] * len(levels), dtype=object)
        for i, values in enumerate(step.categories_)
    }
    try:
        return _transformed(step, pd.DataFrame(columns))
    except ValueError:
        return np.empty((0, 0))


def _transformed(step: Any, rows: pd.DataFrame) -> FloatArray:
    """Output of a step for some rows."""
    given: Any = rows.to_numpy()
    if hasattr(step, "feature_names_in_"):
        given = rows.set_axis(step.feature_names_in_, axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unknown categories and empty columns are intended
        made = step.transform(given)
    return np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=np.float64)


def _unknown(categories: Any) -> list[Any]:
    """A category the encoder was not fitted on, if there can be one."""
    if categories.dtype.kind in "iuf":
        return [float(np.nanmax(categories)) + 1 if not np.isnan(categories.astype(float)).all() else 0.0]
    if categories.dtype.kind == "b":
        return [not categories[0]] if len(categories) == 1 else []
    return ["\\0 a category that does not occur"]


_RULES: dict[type, Callable[[Any, Sources], Sources]] = {
    **dict.fromkeys(SCALERS, _scaled),
    SimpleImputer: _imputed,
    SplineTransformer: _in_pieces,
    KBinsDiscretizer: _in_pieces,
    OneHotEncoder: _one_hot,
}
