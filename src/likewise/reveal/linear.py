"""The exact minimal metric of a linear or additive model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from likewise._typing import FloatArray
from likewise._validation import check_output_range, short_repr
from likewise.exceptions import InvalidInputError, UnprovableError
from likewise.inspection.additive_form import AdditiveForm, additive_form
from likewise.inspection.linear import IDENTITY, BlankEffect, CategoryChanges, LinearModel, Link, read_linear_model
from likewise.kernel.columns import NumericColumn
from likewise.kernel.schema import as_frame
from likewise.metrics.categories import CategoryDistances
from likewise.metrics.table import BLANKS_ONLY, TableMetric
from likewise.metrics.weighted_lp import WeightedLp
from likewise.reveal.additive import ExactWeights, category_changes, exact_weights, jumps_table
from likewise.reveal.shapes import declared_shapes, shaped_weights


def least_missing_weight(scale: float, low: float, high: float) -> float:
    """Least weight of a missing value that leaves a column with numbers from `low` to `high` its full effect.

    Two people who have the number are both within m of a person who does not, so the column can make a difference of
    ``2 m`` at most (`docs/theory.md` §13): m must be at least half of ``scale * (high - low)``; 1 is always enough.
    """
    return min(1.0, scale * (high - low) / 2)


def ends_of(values: FloatArray) -> tuple[float, float] | None:
    """Smallest and largest of some numbers; None if all are missing."""
    return None if np.isnan(values).all() else (float(np.nanmin(values)), float(np.nanmax(values)))


def minimal_metric(
    model: Any,
    X: Any = None,
    *,
    output_range: tuple[float, float] | None = None,
    domain: Any = None,
    groups: Mapping[Any, Any] | None = None,
    distances: Mapping[Any, Any] | None = None,
) -> WeightedLp | TableMetric:
    """Smallest weighted L1 metric under which a linear or additive model treats all people alike, exactly.

    ``w_i = L |beta_i|`` per unit of the raw feature, where L is the largest slope of the model's link: 1 for linear
    regression and 1/4 for logistic regression. With several classes, ``|beta_i|`` is the largest difference between the
    coefficients of two classes. A column behind one-hot coding has a mismatch weight: ``|beta|`` is then the largest
    difference between two categories, and the weight is the largest change of output it can make,
    ``tanh(|beta| / 4)`` for logistic regression. A number behind an imputer may be missing: the weight of a blank is
    the largest change of output between it and a number of the column, or half the largest change due to the column if
    that is more, since less would limit the column.

    If the score is a sum of other functions of single columns, the weight of a column is the largest change of output
    that this column alone can make, per unit: the largest slope of a spline or of a scorecard, the largest change from
    one number of a grid to the next.

    Parameters
    ----------
    model : fitted estimator
        Linear regressors of scikit-learn; `LogisticRegression`, `LinearDiscriminantAnalysis` and `SGDClassifier` with
        probabilities; also at the end of a `Pipeline` of scalers, `SimpleImputer`, one-hot coding and
        `ColumnTransformer`, and inside a `FrozenEstimator`. For two classes and regression also: these behind
        `SplineTransformer` and `KBinsDiscretizer`; `AdditiveClassifier`, whole points included, and
        `AdditiveRegressor`; and explainable boosting machines (package `interpret`) without interactions.
    X : DataFrame, optional
        People (any kind of table), for the range of each column where the model imputes missing numbers. None takes 1,
        the largest difference of outputs, for every blank.
    output_range : tuple of float, optional
        Limits ``(a, b)`` of what a regressor predicts. Weights are then shares of ``b - a``, as `SmoothedRegressor` and
        `audit` take them; otherwise they are in the unit of the output (`AdditiveRegressor`: its own range).
    domain : Domain, optional
        What each column can hold, such as ``Domain.learn(X)``; its rules are not used. The metric is then for these
        people. A step function has a weight only on a grid, a column with a ``step``: between two arbitrarily close
        numbers, no weight per unit covers a jump. `find_jumps` lists them.
    groups, distances : mapping from column to groups or distances of categories, optional
        As for `estimate_minimal_metric`: the weight is then the smallest with which the shape covers every two
        categories, known to the model or not; for groups without a share ``within``, that share as well.

    Returns
    -------
    TableMetric
        If the model was fitted to a table with named columns, or codes categories.
    WeightedLp
        If it was fitted to an array of numbers. Rows with missing numbers are then refused.

    Raises
    ------
    UnprovableError
        A `TypeError`, for any other model and where the constant cannot be proven: use `estimate_minimal_metric`.
    ValueError
        If the weight of a mismatch or a blank is above 1, which tables do not allow: give `output_range`.

    Notes
    -----
    All people in R^d (and all categories), not only those seen: no pair exceeds the metric, and with any smaller
    weight of a number or category some pair does. A pair of a number and a blank is covered if the number is within the
    range of the column in `X`, and always without `X`. With two classes, or in regression,
    no weighted Lp metric is smaller, for any p; with more classes, and for other functions than lines, this holds
    within p = 1 (`docs/theory.md` §8 has the proofs). It holds for predicted values and probabilities, not for
    predicted classes.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = [[0, 0], [1, 0], [0, 1]], [1, 3, 0]
    >>> minimal_metric(LinearRegression().fit(X, y))
    WeightedLp([2, 1], p=1)
    """
    try:
        form = _read_form(model, domain)
        if form is None:
            linear = read_linear_model(model)
            found, named, width = _linear_weights(linear, X, output_range)
        else:
            found, named, width = _additive_weights(form, X, output_range)
        shapes: dict[str, Any] = {}
        if groups is not None or distances is not None:
            changes = linear.weights().changes if form is None else category_changes(form)
            shapes = _fit_shapes(found, changes, groups, distances)
    except UnprovableError as reason:
        raise UnprovableError(
            f"minimal_metric cannot give an exact metric: {reason}. Use estimate_minimal_metric(model, X), which works "
            "for any model, on the people in X."
        ) from None
    numeric, categorical, missing = ({name: w / width for name, w in part.items()} for part in found)
    if not named and not categorical:
        return WeightedLp(list(numeric.values()), p=1)
    for kind, weights in (("Mismatch weights", categorical), ("Weights of missing numbers", missing)):
        largest = max(weights, key=weights.__getitem__, default=None)
        if largest is not None and weights[largest] > 1 + 1e-9:
            cure = ", in the unit of the output. Give output_range=(lowest, highest) to have shares of its width."
            if any(largest in part for part in shapes.values()):
                cure = ". Declare its categories further apart, in groups or distances."
            raise InvalidInputError(
                f"{kind} of a table lie between 0 and 1; got {weights[largest]:.4g} for {largest!r}{cure}"
            )
    categorical, missing = ({name: min(1.0, w) for name, w in part.items()} for part in (categorical, missing))
    zeros = dict.fromkeys((name for name, w in {**numeric, **categorical}.items() if not w), "not_used")
    order = {} if form is None else {name: listed for name, listed in form.order.items() if name in numeric}
    return TableMetric(numeric, categorical, missing=missing or "refuse", zero_reasons=zeros, order=order, **shapes)


def find_jumps(model: Any, *, domain: Any = None) -> pd.DataFrame:
    """Where the outputs of an additive model jump: a step function has no weight per unit.

    Two people on opposite sides of a jump may be arbitrarily close. On a grid of numbers, declared in the `domain` of
    `minimal_metric`, the weight that a jump needs is its ``change`` divided by the step of the grid.

    Parameters
    ----------
    model : fitted estimator
        As for `minimal_metric`, such as linear models behind `KBinsDiscretizer`, and explainable boosting machines
        without interactions.
    domain : Domain, optional
        Only jumps between its numbers; columns with a grid have none.

    Returns
    -------
    DataFrame
        Per jump the ``column``, the number it is ``at`` (people with this number are above it), the ``jump`` of the
        score (log-odds, for probabilities), and the largest ``change`` of the output.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import KBinsDiscretizer
    >>> bins = KBinsDiscretizer(2, strategy="uniform", encode="ordinal")
    >>> find_jumps(make_pipeline(bins, LinearRegression()).fit([[0], [1], [3], [4]], [0, 0, 5, 5])).round(3)
      column   at  jump  change
    0     x0  2.0   5.0     5.0
    """
    try:
        return jumps_table(_read_form(model, domain))
    except UnprovableError as reason:
        raise UnprovableError(f"find_jumps cannot read the model: {reason}.") from None


def _read_form(model: Any, domain: Any) -> AdditiveForm | None:
    if domain is not None and not isinstance(getattr(domain, "columns", None), Mapping):
        raise InvalidInputError(f"domain must be a Domain, such as Domain.learn(X); got {short_repr(domain)}.")
    return additive_form(model, domain)


def _fit_shapes(
    found: ExactWeights, changes: Mapping[Any, CategoryChanges], groups: Any, distances: Any
) -> dict[str, Any]:
    """Groups and distances of the metric; the weights of their columns are changed in place."""
    names = [*found.numeric, *found.categorical]
    declared, free = declared_shapes(names, found.categorical, None, groups, distances)
    shapes: dict[str, dict[Any, Any]] = {"groups": dict(declared.groups), "distances": dict(declared.distances)}
    for kind, read in (("groups", CategoryDistances.from_groups), ("distances", CategoryDistances.from_matrix)):
        for name, given in shapes[kind].items():
            if name not in changes:
                raise UnprovableError(f"the categories of {name!r} are not known by name")
            weight, within = shaped_weights(name, read(name, given), changes[name], free=name in free)
            found.categorical[name] = weight
            if within is not None:
                shapes[kind][name] = given | {"within": within}
    return shapes


def _linear_weights(linear: LinearModel, X: Any, output_range: Any) -> tuple[ExactWeights, bool, float]:
    """Weights for all people, and what to divide them by."""
    width = 1.0 if output_range is None else _width(linear.link is IDENTITY, output_range)
    found = linear.weights()
    missing = {}
    for name, blank in found.blanks.items() if linear.named or found.categorical else ():  # arrays have no blanks
        ends = _ends(X, name)
        missing[name] = _absence(blank, linear.link, ends, width, bounded=output_range is not None)
        if ends is not None:
            missing[name] = max(missing[name], width * least_missing_weight(found.numeric[name] / width, *ends))
        if found.numeric[name] == 0 and np.ptp(blank.offset) > 0:  # only its absence counts
            found.numeric[name] = width * BLANKS_ONLY
    return ExactWeights(found.numeric, found.categorical, missing), linear.named, width


def _additive_weights(form: AdditiveForm, X: Any, output_range: Any) -> tuple[ExactWeights, bool, float]:
    """The same for people within the domain, if there is one."""
    limits = form.output_range if output_range is None else output_range
    width = 1.0 if limits is None else _width(form.regression, limits)
    blanks = [name for name, effect in form.effects.items() if effect.blank is not None and effect.ends is None]
    seen = {name: _ends(X, name) for name in blanks if form.named and name not in form.order}
    found = exact_weights(form, seen)
    for name, weight in found.missing.items():
        ends = form.effects[name].ends or seen.get(name)
        weight = weight if limits is None else min(width, weight)
        least = 0.0 if ends is None else width * least_missing_weight(found.numeric[name] / width, *ends)
        found.missing[name] = max(weight, least)
        if found.numeric[name] == 0 and found.missing[name] > 0:
            found.numeric[name] = width * BLANKS_ONLY
    # With categories, an unused column may be text: it is left out, which means weight 0.
    unused = set() if form.named and found.categorical else set(form.names) - set(form.effects)
    numeric = {name: found.numeric.get(name, 0.0) for name in form.names if name in found.numeric or name in unused}
    return found._replace(numeric=numeric), form.named, width


def _absence(blank: BlankEffect, link: Link, ends: tuple[float, float] | None, width: float, *, bounded: bool) -> float:
    """Largest change of output between a blank and a number; `bounded` outputs differ by `width` at most."""
    if ends is None:
        return width if bounded or link is not IDENTITY else np.inf
    change = float(link.change(np.asarray(blank.largest(*ends))))
    return min(width, change) if bounded else change


def _ends(X: Any, name: str) -> tuple[float, float] | None:
    """Smallest and largest number of a column; None if unknown."""
    if X is None:
        return None
    frame = as_frame(X)
    if name not in frame.columns:
        raise InvalidInputError(f"X must have the columns of the model; it has no {name!r}.")
    return ends_of(NumericColumn.learn(frame[name]).encode(frame[name]))


def _width(regression: bool, output_range: Any) -> float:
    low, high = check_output_range(output_range)
    if not regression:
        raise InvalidInputError("output_range must not be given for a classifier: probabilities have the range (0, 1).")
    return high - low
