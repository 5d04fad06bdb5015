"""What encoders inside a model know of the values of its columns.

To an encoder that accepts unknown categories, codes 1, 2, 3 that are written "01", "02", "03" are all unknown, and to
most models all that is unknown is the same: the column changes no output. `known_values` lists what is known, and
`check_known` refuses people of whom nothing is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline

from likewise._subsample import evenly_spaced
from likewise.exceptions import InvalidInputError
from likewise.kernel.schema import is_table

_FIRST = 1000  # people among whom an encoder nearly always knows somebody
_SHOWN = 3  # values in an error


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
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> people = pd.DataFrame({"code": [1, 2, 3, 3]})
    >>> known_values(make_pipeline(OneHotEncoder(), LogisticRegression()).fit(people, [0, 1, 0, 1]), ["code"])
    {'code': [1, 2, 3]}
    """
    found: dict[Any, dict[Any, Any]] = {}
    encoded = (
        (name, categories.tolist())
        for encoder, given in _encoders(model, _Given(list(columns)), set())
        if len(given.names) == len(encoder.categories_)
        for name, categories in zip(given.names, encoder.categories_, strict=True)
    )
    for name, values in [*_boosted(model), *encoded]:
        if name is not None:
            found.setdefault(name, {}).update({(type(value), value): value for value in values})
    return {name: list(values.values()) for name, values in found.items()}


def check_known(model: Any, people: Any) -> None:
    """Raise if a model knows no value of a column that it encodes; `people` are as the model takes them.

    What a transformer of scikit-learn refuses, the model refuses by itself.
    """
    if is_table(people) and len(people):
        first = people.iloc[evenly_spaced(len(people), _FIRST)]
        if any(True for _ in _strange(model, first)):
            for encoder, name, known, given in _strange(model, people):
                raise InvalidInputError(
                    f"Column {name!r} must hold values that the model knows; its {encoder} was fitted on {known}, and "
                    f"knows none of {given}: to the model all of them are the same. Write them as they were in "
                    "training, with the same type."
                )


def _strange(model: Any, people: pd.DataFrame) -> Iterator[tuple[str, Any, str, str]]:
    """Encoder and column, with what it knows and what it is given, where it knows none of the latter."""
    read = [(type(model).__name__, name, values, people[name]) for name, values in _boosted(model) if name in people]
    for encoder, given in _encoders(model, _Given(list(people.columns), people), set()):
        columns = given.rows if isinstance(given.rows, pd.DataFrame) else pd.DataFrame(np.asarray(given.rows))
        if columns.shape[1] == len(encoder.categories_):
            for (name, column), categories in zip(columns.items(), encoder.categories_, strict=True):
                read.append((type(encoder).__name__, name, categories.tolist(), column))
    for reader, name, known, column in read:
        own, values = {value for value in known if value == value}, column.dropna().unique().tolist()
        if values and own and not own.intersection(values):
            yield reader, name, _some([*own]), _some(values)


def _some(values: list[Any]) -> str:
    shown = sorted(map(repr, values))
    return ", ".join(shown[:_SHOWN]) + (f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else "")


# -- encoders inside a model -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Given:
    """What a part of a model is given.

    Attributes
    ----------
    names : list
        Of columns; None for one whose values are no longer those of a raw column. Empty if nothing is known.
    rows : DataFrame or ndarray, optional
        People in these columns, if there are any.
    """

    names: list[Any]
    rows: Any = None

    def chosen(self, places: Any) -> _Given:
        """Some of the columns."""
        names, rows = [self.names[i] if i < len(self.names) else None for i in places], self.rows
        if rows is None or max(places, default=0) >= np.shape(rows)[1]:
            return _Given(names)
        return _Given(names, rows.iloc[:, places] if hasattr(rows, "iloc") else rows[:, places])

    def after(self, step: Any) -> _Given:
        """What follows a step: its names are kept by imputers, whose blanks alone change, and lost otherwise."""
        if step is None or isinstance(step, str):
            return self
        rows = None
        if self.rows is not None and hasattr(step, "transform"):
            with suppress(Exception):  # the model itself will say why
                rows = step.transform(self.rows)
        if type(step) is not SimpleImputer or not hasattr(step, "statistics_"):  # of no columns: it was not fitted
            return _Given([], rows)
        empty = [fill != fill for fill in step.statistics_.tolist()]
        kept = [name for name, gone in zip(self.names, empty, strict=False) if not gone or step.keep_empty_features]
        return _Given([*kept, *(None for _ in (step.indicator_.features_ if step.add_indicator else ()))], rows)


def _encoders(part: Any, given: _Given, seen: set[int]) -> Iterator[tuple[Any, _Given]]:
    """Encoders of categories inside a model, each with what it is given."""
    if id(part) in seen or not isinstance(part, BaseEstimator) or hasattr(part, "encoder_"):
        return  # a model of likewise asks its inner models about the values that these were fitted on
    seen.add(id(part))
    if isinstance(getattr(part, "categories_", None), list):
        yield part, given
    elif isinstance(part, Pipeline):
        for _, step in part.steps:
            yield from _encoders(step, given, seen)
            given = given.after(step)
    elif isinstance(part, ColumnTransformer):
        for name, step, _ in getattr(part, "transformers_", ()):
            yield from _encoders(step, given.chosen(part._transformer_to_input_indices[name]), seen)
    elif isinstance(part, FeatureUnion):
        for _, step in part.transformer_list:
            yield from _encoders(step, given, seen)
    elif hasattr(part, "estimators_features_"):  # a bag of models, each of some columns
        for inner, places in zip(part.estimators_, part.estimators_features_, strict=True):
            yield from _encoders(inner, given.chosen(places), seen)
    else:  # searches, ensembles, calibration: inner models are given the same columns
        for name, value in vars(part).items():
            # What a transformer keeps for itself, such as the encoder of bins, is given something else.
            shared = not name.startswith("_") or name == "_preprocessor"  # of boosting, for its categories
            for inner in (value if isinstance(value, (list, tuple)) else [value]) if shared else []:
                yield from _encoders(getattr(inner, "estimator", inner), given, seen)


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
