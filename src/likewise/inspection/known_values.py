"""Values that encoders inside a model were fitted on, by the column that they encode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline

Names = list[Any]
"""Of the columns that a step is given; None for one whose values are no longer those of a raw column."""


def known_values(model: Any, columns: Sequence[Any]) -> dict[Any, list[Any]]:
    """Distinct values, in the type in which a model knows them, of each column that an encoder inside it reads.

    Steps and inner models of scikit-learn are followed as long as they pass values on unchanged. LightGBM and XGBoost
    keep the categories of tables in their files.

    Parameters
    ----------
    model : object
    columns : sequence of column names
        That the model is given, in this order.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> people = pd.DataFrame({"code": [1, 2, 3, 3]})
    >>> known_values(make_pipeline(OneHotEncoder(), LogisticRegression()).fit(people, [0, 1, 0, 1]), ["code"])
    {'code': [1, 2, 3]}
    """
    found: dict[Any, dict[Any, Any]] = {}
    for name, values in [*_boosted(model), *_encoded(model, list(columns), set())]:
        if name is not None:
            found.setdefault(name, {}).update({(type(value), value): value for value in values})
    return {name: list(values.values()) for name, values in found.items()}


def _encoded(part: Any, names: Names, seen: set[int]) -> Iterator[tuple[Any, list[Any]]]:
    """Columns and their categories in the encoders of a part of a model."""
    if id(part) in seen or not isinstance(part, BaseEstimator):
        return
    seen.add(id(part))
    categories = getattr(part, "categories_", None)
    if isinstance(categories, list):
        if len(categories) == len(names):
            yield from ((name, values.tolist()) for name, values in zip(names, categories, strict=True))
    elif isinstance(part, Pipeline):
        for _, step in part.steps:
            yield from _encoded(step, names, seen)
            names = _after(step, names)
    elif isinstance(part, ColumnTransformer):
        for name, step, _ in getattr(part, "transformers_", ()):
            yield from _encoded(step, _chosen(names, part._transformer_to_input_indices[name]), seen)
    elif isinstance(part, FeatureUnion):
        for _, step in part.transformer_list:
            yield from _encoded(step, names, seen)
    elif hasattr(part, "estimators_features_"):  # a bag of models, each of some columns
        for inner, chosen in zip(part.estimators_, part.estimators_features_, strict=True):
            yield from _encoded(inner, _chosen(names, chosen), seen)
    else:  # searches, ensembles, calibration: inner models are given the same columns
        for value in vars(part).values():
            for inner in value if isinstance(value, (list, tuple)) else [value]:
                yield from _encoded(getattr(inner, "estimator", inner), names, seen)


def _chosen(names: Names, places: Any) -> Names:
    return [names[i] if i < len(names) else None for i in places]


def _after(step: Any, names: Names) -> Names:
    """Names of the columns after a step: kept by imputers, whose blanks alone change, and lost otherwise."""
    if step is None or isinstance(step, str):
        return names
    if type(step) is not SimpleImputer:
        return []
    empty = [fill != fill for fill in step.statistics_.tolist()]
    kept = [name for name, gone in zip(names, empty, strict=False) if not gone or step.keep_empty_features]
    return [*kept, *(None for _ in (step.indicator_.features_ if step.add_indicator else ()))]


def _boosted(model: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Columns and their categories in a model of LightGBM or XGBoost."""
    if hasattr(model, "booster_") and getattr(model.booster_, "pandas_categorical", None):
        infos = model.booster_.dump_model(num_iteration=1)["feature_infos"]
        columns = [name for name in model.booster_.feature_name() if infos.get(name, {}).get("values")]
        if len(columns) == len(model.booster_.pandas_categorical):  # a column that no tree could use has no entry
            yield from zip(columns, model.booster_.pandas_categorical, strict=True)
    elif hasattr(model, "get_booster") and hasattr(model.get_booster(), "get_categories"):
        listed = model.get_booster().get_categories(export_to_arrow=True).to_arrow() or ()
        yield from ((name, values.to_pylist()) for name, values in listed if values is not None)
