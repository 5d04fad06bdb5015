"""Reading the minimal metric off a linear model, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise._validation import check_output_range
from likewise.exceptions import InvalidInputError, UnprovableError
from likewise.inspection.linear import IDENTITY, BlankEffect, Link, read_linear_model
from likewise.metrics.columns import NumericColumn
from likewise.metrics.encoders import as_frame
from likewise.metrics.table import BLANKS_ONLY, TableMetric
from likewise.metrics.weighted_lp import WeightedLp


def least_missing_weight(scale: float, low: float, high: float) -> float:
    """Least weight of a missing value that leaves a column with numbers from `low` to `high` its full effect.

    Two people who have the number are both within m of a person who does not, so the column can make a difference of
    ``2 m`` at most (`docs/theory.md` §13): m must be at least half of ``scale * (high - low)``; 1 is always enough.
    """
    return min(1.0, scale * (high - low) / 2)


def minimal_metric(
    model: Any, X: Any = None, *, output_range: tuple[float, float] | None = None
) -> WeightedLp | TableMetric:
    """Smallest weighted L1 metric under which a linear model treats all people alike, exactly.

    ``w_i = L |beta_i|`` per unit of the raw feature, where L is the largest slope of the model's link: 1 for linear
    regression and 1/4 for logistic regression. With several classes, ``|beta_i|`` is the largest difference between the
    coefficients of two classes. A column behind one-hot coding has a mismatch weight: ``|beta|`` is then the largest
    difference between two categories, and the weight is the largest change of output it can make,
    ``tanh(|beta| / 4)`` for logistic regression. A number behind an imputer may be missing: what a blank weighs is the
    largest change of output between it and a number of the column, or half of what the column itself can make if that
    is more, since less would cut the column.

    Parameters
    ----------
    model : fitted estimator
        Linear regressors of scikit-learn; `LogisticRegression`, `LinearDiscriminantAnalysis` and `SGDClassifier` with
        probabilities; also at the end of a `Pipeline` of scalers, `SimpleImputer`, one-hot coding and
        `ColumnTransformer`, and inside a `FrozenEstimator`.
    X : DataFrame, optional
        People (any kind of table), whose numbers say how far from a blank a number can be, where the model imputes
        missing ones. None takes 1, the largest difference of outputs, for every blank.
    output_range : tuple of float, optional
        Limits ``(a, b)`` of what a regressor predicts. Weights are then shares of ``b - a``, as `SmoothedRegressor` and
        `audit` take them; otherwise they are in the unit of the output.

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
        If the weight of a mismatch or a blank is above 1, which tables do not have: give `output_range`.

    Notes
    -----
    All people in R^d (and all categories), not only those seen: no pair exceeds the metric, and with any smaller
    weight of a number or category some pair does. Two people of whom one has a number and the other a blank are covered
    if the number is within the range of the column in `X`, and without `X` always. With two classes, or in regression,
    no weighted Lp metric is smaller, for any p; with more classes this holds within p = 1 (`docs/theory.md` §8 has the
    proofs). It holds for predicted values and probabilities, not for predicted classes.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = [[0, 0], [1, 0], [0, 1]], [1, 3, 0]
    >>> minimal_metric(LinearRegression().fit(X, y))
    WeightedLp([2, 1], p=1)
    """
    try:
        linear = read_linear_model(model)
        width = 1.0 if output_range is None else _width(linear.link is IDENTITY, output_range)
        found = linear.weights()
    except UnprovableError as reason:
        raise UnprovableError(
            f"minimal_metric cannot give an exact metric: {reason}. Use estimate_minimal_metric(model, X), which works "
            "for any model, on the people in X."
        ) from None
    numeric, categorical = ({name: w / width for name, w in part.items()} for part in found[:2])
    if not linear.named and not categorical:
        return WeightedLp(list(numeric.values()), p=1)
    missing = {}
    for name, blank in found.blanks.items():
        ends = _ends(X, name)
        missing[name] = _absence(blank, linear.link, ends, width, bounded=output_range is not None)
        if ends is not None:
            missing[name] = max(missing[name], least_missing_weight(numeric[name], *ends))
        if numeric[name] == 0 and np.ptp(blank.offset) > 0:  # only its absence counts
            numeric[name] = BLANKS_ONLY
    for kind, weights in (("Mismatch weights", categorical), ("Weights of missing numbers", missing)):
        largest = max(weights, key=weights.__getitem__, default=None)
        if largest is not None and weights[largest] > 1 + 1e-9:
            raise InvalidInputError(
                f"{kind} of a table lie between 0 and 1; got {weights[largest]:.4g} for {largest!r}, in "
                "the unit of the output. Give output_range=(lowest, highest) to have shares of its width."
            )
    categorical, missing = ({name: min(1.0, w) for name, w in part.items()} for part in (categorical, missing))
    return TableMetric(numeric, categorical, missing=missing or "refuse")


def _absence(blank: BlankEffect, link: Link, ends: tuple[float, float] | None, width: float, *, bounded: bool) -> float:
    """Largest change of output between a blank and a number; `bounded` outputs differ by 1 at most."""
    if ends is None:
        return 1.0 if bounded or link is not IDENTITY else np.inf
    change = float(link.change(np.asarray(blank.largest(*ends)))) / width
    return min(1.0, change) if bounded else change


def _ends(X: Any, name: str) -> tuple[float, float] | None:
    """Smallest and largest number of a column; None where nothing is known of it."""
    if X is None:
        return None
    frame = as_frame(X)
    if name not in frame.columns:
        raise InvalidInputError(f"X must have the columns of the model; it has no {name!r}.")
    values = NumericColumn.learn(frame[name]).encode(frame[name])
    return None if np.isnan(values).all() else (float(np.nanmin(values)), float(np.nanmax(values)))


def _width(regression: bool, output_range: Any) -> float:
    low, high = check_output_range(output_range)
    if not regression:
        raise InvalidInputError("output_range must not be given for a classifier: probabilities have the range (0, 1).")
    return high - low
