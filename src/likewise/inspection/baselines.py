"""Models for tables without a guarantee: what the command line trains, and the unconstrained model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if

from likewise._typing import FloatArray
from likewise._validation import short_repr
from likewise.exceptions import InvalidInputError
from likewise.kernel.schema import as_frame

Task = Literal["classification", "regression"]

_MODELS: dict[str, Any] = {
    "logistic": lambda: LogisticRegression(max_iter=2000),
    "forest": lambda: RandomForestClassifier(100, min_samples_leaf=10),
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=100, max_leaf_nodes=15),
    "network": lambda: MLPClassifier((128, 128), early_stopping=True, max_iter=200),
}
_REGRESSORS: dict[str, Any] = {
    "linear": LinearRegression,
    "forest": lambda: RandomForestRegressor(100, min_samples_leaf=10),
    "boosting": lambda: HistGradientBoostingRegressor(max_iter=100, max_leaf_nodes=15),
    "network": lambda: TransformedTargetRegressor(
        MLPRegressor(hidden_layer_sizes=(128, 128), early_stopping=True, max_iter=200), transformer=StandardScaler()
    ),
}
MODELS = tuple(_MODELS)
_FOLDS = 3  # in which the unconstrained model is chosen


def categorical_columns(X: pd.DataFrame) -> list[Any]:
    """Columns of text, booleans and unordered categories."""
    return [
        name
        for name in X.columns
        if pd.api.types.is_bool_dtype(X[name])
        or not (pd.api.types.is_numeric_dtype(X[name]) or getattr(X[name].dtype, "ordered", False))
    ]


def table_model(
    X: pd.DataFrame,
    kind: str,
    task: Task = "classification",
    *,
    columns: Sequence[Any] | None = None,
    categorical: Sequence[Any] | None = None,
) -> Pipeline:
    """Return an unfitted pipeline for tables like `X`.

    Numbers are standardised (and imputed if some are missing), ordered categories are encoded by rank, and others are
    one-hot encoded; boosting takes numbers as they are, and codes for categories.

    Parameters
    ----------
    X : DataFrame
    kind : str
        "logistic" (classification), "linear" (regression), "forest", "boosting" or "network".
    task : {"classification", "regression"}, default="classification"
    columns : sequence of column names, optional
        Columns the model may read; None for all.
    categorical : sequence of column names, optional
        Categorical columns; None decides by dtype.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [30, 41], "region": ["north", "south"]})
    >>> table_model(people, "logistic").fit(people, [0, 1]).predict(people).tolist()
    [0, 1]
    """
    models = _MODELS if task == "classification" else _REGRESSORS
    if kind not in models:
        raise InvalidInputError(f"model must be one of {', '.join(models)}; got {short_repr(kind)}.")
    X = as_frame(X)
    read = X if columns is None else X[list(columns)]
    known = categorical_columns(read) if categorical is None else categorical
    categorical = [name for name in read.columns if name in known]
    ordered = [n for n in read.columns if getattr(X[n].dtype, "ordered", False) and n not in categorical]
    numeric = [name for name in read.columns if name not in [*categorical, *ordered]]
    options = {"handle_unknown": "use_encoded_value", "dtype": np.float64}
    if kind == "boosting":
        encode: Any = OrdinalEncoder(**options, unknown_value=-1, encoded_missing_value=-1)
        scale: Any = AsNumbers()
    else:
        encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        scale = StandardScaler()
        if X[[*numeric, *ordered]].isna().any(axis=None):
            scale = make_pipeline(SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True), scale)
    if len(numeric) == len(X.columns) and kind != "boosting":
        return make_pipeline(scale, models[kind]())  # a network behind a scaler has a fast forward pass
    categories = [list(X[name].cat.categories) for name in ordered]
    rank = make_pipeline(OrdinalEncoder(categories=categories, **options, unknown_value=np.nan), scale)
    steps = [("categories", encode, categorical), ("orders", rank, ordered), ("numbers", scale, numeric)]
    chosen = [(step, transform, _column_keys(X, names)) for step, transform, names in steps if names]
    return make_pipeline(ColumnTransformer(chosen), models[kind]())


def unconstrained_model(
    X: pd.DataFrame,
    task: Task = "classification",
    *,
    protected: Sequence[Any] = (),
    categorical: Sequence[Any] | None = None,
    seed: int = 0,
) -> UnconstrainedModel:
    """Return the unfitted unconstrained model of tables like `X`, to which the cost of a guarantee is compared.

    It is the better of a logistic (or linear) regression and boosting. Both read all columns but the protected ones, as
    those that a metric gives no weight for other reasons are part of what the metric costs.

    Parameters
    ----------
    X : DataFrame
    task : {"classification", "regression"}, default="classification"
    protected : sequence of column names, optional
        Columns the model must not read. Without any other, it is a constant.
    categorical : sequence of column names, optional
        Categorical columns; None decides by dtype.
    seed : int, default=0
    """
    columns = [name for name in X.columns if name not in protected]
    if not columns:
        return UnconstrainedModel([DummyClassifier() if task == "classification" else DummyRegressor()], seed=seed)
    kinds = ("logistic" if task == "classification" else "linear", "boosting")
    linear, boosting = (table_model(X, kind, task, columns=columns, categorical=categorical) for kind in kinds)
    boosting.set_params(**{f"{boosting.steps[-1][0]}__random_state": seed})
    return UnconstrainedModel([linear, boosting], seed=seed)


def proper_losses(predictions: FloatArray, y: npt.NDArray[Any], classes: npt.NDArray[Any] | None) -> FloatArray:
    """Loss per person: ``sum_k (p_k - 1[y = k])^2 / 2`` for classes, ``(prediction - y)^2`` for a regression.

    For two classes, the former is ``(p - y)^2``.

    Examples
    --------
    >>> proper_losses(np.array([[0.8, 0.2], [0.5, 0.5]]), np.array(["a", "b"]), np.array(["a", "b"])).round(2)
    array([0.04, 0.25])
    """
    if classes is None:
        return np.asarray((predictions - y) ** 2)
    return 0.5 * np.asarray(((predictions - (y[:, None] == classes)) ** 2).sum(axis=1))


class UnconstrainedModel(BaseEstimator):
    """The model with the smallest proper loss, chosen by cross-validation within the people it is fitted to.

    Nobody who is scored later has a say in the choice.

    Parameters
    ----------
    models : list of unfitted classifiers or regressors
        The first is taken if there are too few people to choose.
    seed : int, default=0
        Of the folds.

    Attributes
    ----------
    model_ : fitted model
        The best, fitted to all people.
    classes_ : ndarray of classes, of classifiers only

    Examples
    --------
    >>> people = pd.DataFrame({"age": np.arange(600.0) / 10})
    >>> steps = (people["age"] // 10 % 2).astype(int)  # which no line can tell
    >>> model = unconstrained_model(people).fit(people, steps)
    >>> type(model.model_.steps[-1][1]).__name__
    'HistGradientBoostingClassifier'
    """

    def __init__(self, models: Sequence[Any], *, seed: int = 0) -> None:
        self.models = models
        self.seed = seed

    def fit(self, X: pd.DataFrame, y: Any) -> Self:
        """Choose a model, and fit it to everybody."""
        y = np.asarray(y)
        fold = self._folds(y)
        losses = [0.0]
        if fold is not None and len(self.models) > 1:
            losses = [sum(self._loss(model, X, y, fold == k) for k in range(_FOLDS)) for model in self.models]
        self.model_ = clone(self.models[int(np.argmin(losses))]).fit(X, y)
        if hasattr(self.model_, "classes_"):
            self.classes_ = self.model_.classes_
        return self

    def _folds(self, y: npt.NDArray[Any]) -> npt.NDArray[np.intp] | None:
        """The fold of each person, evenly over the outcomes; None if too few share an outcome to learn it."""
        counts = np.unique(y, return_counts=True)[1] if hasattr(self.models[0], "predict_proba") else [len(y)]
        if min(counts) < _FOLDS:
            return None
        order = np.random.default_rng(self.seed).permutation(len(y))
        fold = np.empty(len(y), dtype=np.intp)
        fold[order[np.argsort(y[order], kind="stable")]] = np.arange(len(y)) % _FOLDS
        return fold

    @staticmethod
    def _loss(model: Any, X: pd.DataFrame, y: npt.NDArray[Any], out: npt.NDArray[np.bool_]) -> float:
        """Sum of the Brier scores, or squared errors, of those held out."""
        fitted = clone(model).fit(X[~out], y[~out])
        classes = getattr(fitted, "classes_", None)
        answers = fitted.predict(X[out]) if classes is None else fitted.predict_proba(X[out])
        return float(proper_losses(answers, y[out], classes).sum())

    @available_if(lambda self: hasattr(self.models[0], "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: pd.DataFrame) -> FloatArray:
        """Probabilities of the classes."""
        return np.asarray(self.model_.predict_proba(X))

    def predict(self, X: pd.DataFrame) -> npt.NDArray[Any]:
        """Classes or numbers."""
        return np.asarray(self.model_.predict(X))


class AsNumbers(TransformerMixin, BaseEstimator):
    """Converts columns to floats, NaN where missing; columns without values become 0, since boosting fails on those."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the columns without values."""
        self.is_empty_ = np.isnan(self._numbers(X)).all(axis=0)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Convert."""
        return np.where(self.is_empty_, 0.0, self._numbers(X))

    def _numbers(self, X: Any) -> FloatArray:
        return np.asarray(check_array(X, dtype=np.float64, ensure_all_finite="allow-nan"))


def _column_keys(X: pd.DataFrame, names: list[Any]) -> list[Any]:
    """Text names, else positions, which is how scikit-learn reads integers."""
    return [name if isinstance(name, str) else list(X.columns).index(name) for name in names]
