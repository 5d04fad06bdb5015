"""Which models answer for a row with the same bits wherever the row stands.

Trees compare and look up; matrix products may round differently by position, since their kernels treat the last
rows of a matrix apart. Only types known to be of the first kind are listed; a subclass may do anything. What is not
listed is tried out (`likewise.models.company`).
"""

from __future__ import annotations

from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

from likewise.models.pipelines import AsNumbers
from likewise.models.unwrapping import unwrap

_ROWWISE = {
    AsNumbers,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    SimpleImputer,
    StandardScaler,
}
# Their trees are added to what another model says, if one is given as `init`.
_BOOSTED = {GradientBoostingClassifier, GradientBoostingRegressor}
# With several threads, these add up their trees in the order in which the threads finish.
_FORESTS = {ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor}


def is_rowwise(model: Any) -> bool | None:
    """Whether the model is known to treat each row by itself, to the last bit, or known not to; else None.

    Examples
    --------
    >>> is_rowwise(DecisionTreeClassifier()), is_rowwise(RandomForestClassifier(n_jobs=2)), is_rowwise(len)
    (True, False, None)
    """
    steps, last = unwrap(model)
    if last is not model:
        return _all([*steps, last])
    if model is None or isinstance(model, str):
        return True if model in (None, "drop") else None
    if type(model) is FunctionTransformer:  # a fitted ColumnTransformer has one for each "passthrough"
        return True if model.func is None else None
    if type(model) is ColumnTransformer:
        fitted = getattr(model, "transformers_", model.transformers)
        return _all([step for _, step, _ in fitted])
    if type(model) in _FORESTS:
        return model.n_jobs in (None, 1)
    if type(model) in _BOOSTED:
        constant = model.init is None or isinstance(model.init, str)  # "zero"
        return True if constant else is_rowwise(getattr(model, "init_", model.init))
    return True if type(model) in _ROWWISE else None


def _all(parts: list[Any]) -> bool | None:
    known = [is_rowwise(part) for part in parts]
    return False if False in known else None if None in known else True
