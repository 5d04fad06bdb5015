"""Reading the minimal metric off a linear model, exactly."""

from __future__ import annotations

from typing import Any

from likewise._checks import check_output_range
from likewise.errors import InvalidInputError, UnprovableError
from likewise.metrics.lp import WeightedLp
from likewise.metrics.tabular import TableMetric
from likewise.models.linear import IDENTITY, read_linear_model


def minimal_metric(model: Any, *, output_range: tuple[float, float] | None = None) -> WeightedLp | TableMetric:
    """Smallest weighted L1 metric under which a linear model treats all people alike, exactly.

    ``w_i = L |beta_i|`` per unit of the raw feature, where L is the largest slope of the model's link: 1 for linear
    regression and 1/4 for logistic regression. With several classes, ``|beta_i|`` is the largest difference between the
    coefficients of two classes. A column behind one-hot coding has a mismatch weight: ``|beta|`` is then the largest
    difference between two categories, and the weight is the largest change of output it can make,
    ``tanh(|beta| / 4)`` for logistic regression.

    Parameters
    ----------
    model : fitted estimator
        Linear regressors of scikit-learn; `LogisticRegression`, `LinearDiscriminantAnalysis` and `SGDClassifier` with
        probabilities; also at the end of a `Pipeline` of scalers, one-hot coding and `ColumnTransformer`, and
        inside a `FrozenEstimator`.
    output_range : tuple of float, optional
        Limits ``(a, b)`` of what a regressor predicts. Weights are then shares of ``b - a``, as `SmoothedRegressor` and
        `audit` take them; otherwise they are in the unit of the output.

    Returns
    -------
    WeightedLp, or TableMetric if there are one-hot coded columns

    Raises
    ------
    UnprovableError
        A `TypeError`, for any other model and where the constant cannot be proven: use `estimate_minimal_metric`.
    ValueError
        If a mismatch weight is above 1, which tables do not have: give `output_range`.

    Notes
    -----
    All people in R^d (and all categories), not only those seen: no pair exceeds the metric, and with any smaller
    weight some pair does. With two classes, or in regression, no weighted Lp metric is smaller, for any p; with more
    classes this holds within p = 1 (`docs/theory.md` §8 has the proofs). It holds for predicted values and
    probabilities, not for predicted classes.

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
        numeric, categorical = ({name: w / width for name, w in part.items()} for part in linear.weights())
    except UnprovableError as reason:
        raise UnprovableError(
            f"minimal_metric cannot give an exact metric: {reason}. Use estimate_minimal_metric(model, X), which works "
            "for any model, on the people in X."
        ) from None
    if categorical:
        largest = max(categorical, key=categorical.__getitem__)
        if categorical[largest] > 1 + 1e-9:
            raise InvalidInputError(
                f"Mismatch weights of a table lie between 0 and 1; got {categorical[largest]:.4g} for {largest!r}, in "
                "the unit of the output. Give output_range=(lowest, highest) to have shares of its width."
            )
        return TableMetric(numeric, {name: min(1.0, weight) for name, weight in categorical.items()})  # rounding
    return WeightedLp(list(numeric.values()), p=1, feature_names=list(numeric) if linear.named else None)


def _width(regression: bool, output_range: Any) -> float:
    low, high = check_output_range(output_range)
    if not regression:
        raise InvalidInputError("output_range must not be given for a classifier: probabilities have the range (0, 1).")
    return high - low
