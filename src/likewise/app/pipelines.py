"""Ready-made models of tables, for the command line."""

from __future__ import annotations

from typing import Any

import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

_MODELS: dict[str, Any] = {
    "logistic": lambda: LogisticRegression(max_iter=2000),
    "forest": lambda: RandomForestClassifier(100, min_samples_leaf=10),
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=100, max_leaf_nodes=15),
    "network": lambda: MLPClassifier((128, 128), early_stopping=True, max_iter=200),
}
MODELS = tuple(_MODELS)


def categorical_columns(X: pd.DataFrame) -> list[str]:
    """Columns whose values are names rather than amounts: text, booleans and unordered categories."""
    return [
        str(name)
        for name in X.columns
        if pd.api.types.is_bool_dtype(X[name])
        or not (pd.api.types.is_numeric_dtype(X[name]) or getattr(X[name].dtype, "ordered", False))
    ]


def table_model(X: pd.DataFrame, kind: str) -> Pipeline:
    """Return an unfitted pipeline of the given kind that takes tables like `X`.

    Numbers are standardised (imputed first, where some are missing) and categories one-hot coded; boosting takes both
    as they are.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [30, 41], "region": ["north", "south"]})
    >>> table_model(people, "logistic").fit(people, [0, 1]).predict(people).tolist()
    [0, 1]
    """
    if kind not in MODELS:
        raise ValueError(f"model must be one of {', '.join(MODELS)}; got {kind!r}.")
    categorical = categorical_columns(X)
    numeric = [str(name) for name in X.columns if name not in categorical]
    if kind == "boosting":
        encode: Any = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1)
        scale: Any = "passthrough"
    else:
        encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        scale = StandardScaler()
        if X[numeric].isna().any(axis=None):
            scale = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), scale)
    if not categorical and scale != "passthrough":
        return make_pipeline(scale, _MODELS[kind]())  # a network behind a plain scaler has a fast forward pass
    steps = [("categories", encode, categorical), ("numbers", scale, numeric)]
    return make_pipeline(ColumnTransformer([step for step in steps if step[2]]), _MODELS[kind]())
