"""Trees and sums of trees, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

from likewise._typing import FloatArray, IntArray
from likewise.exceptions import InvalidTypeError
from likewise.inspection.preprocessing import last_step

SINGLE_TREES = {DecisionTreeClassifier, ExtraTreeClassifier, DecisionTreeRegressor, ExtraTreeRegressor}
FORESTS = {RandomForestClassifier, ExtraTreesClassifier, RandomForestRegressor, ExtraTreesRegressor}
BOOSTED = {GradientBoostingRegressor, HistGradientBoostingRegressor}


@dataclass(eq=False)
class TreeNodes:
    """One tree as arrays; a leaf has left = -1.

    A row goes left if, rounded to `dtype`, it is at most `threshold`: if it is at most `border`, ties aside.
    """

    left: IntArray
    right: IntArray
    feature: IntArray
    threshold: FloatArray
    border: FloatArray
    values: FloatArray
    dtype: type[np.floating[Any]]


def output_limits(model: Any) -> tuple[float, float]:
    """Limits of the output of a regression tree, forest or boosted sum of trees, for any input.

    Sums of the smallest and of the largest leaves. A sum of trees can be smoothed exactly if `output_range` contains
    them.

    Examples
    --------
    >>> model = GradientBoostingRegressor(n_estimators=2).fit([[0], [1], [2]], [0, 1, 2])
    >>> [round(limit, 2) for limit in output_limits(model)]
    [0.81, 1.19]
    """
    trees = read_trees(last_step(model), "soft")
    if trees is None:
        raise InvalidTypeError(f"model must be a fitted sum of regression trees; got {type(model).__name__}.")
    return leaf_range(*trees)


def leaf_range(nodes: list[TreeNodes], baseline: FloatArray) -> tuple[float, float]:
    """Sums of the smallest and of the largest leaves."""
    leaves = [tree.values[tree.left < 0] for tree in nodes]
    least = float(baseline[0]) + sum(float(leaf.min()) for leaf in leaves)
    most = float(baseline[0]) + sum(float(leaf.max()) for leaf in leaves)
    return least, most


def read_trees(model: Any, vote: str) -> tuple[list[TreeNodes], FloatArray] | None:
    """Trees whose sum, plus a baseline, is the model's vote; None for other models."""
    kind = type(model)
    if getattr(model, "n_outputs_", 1) != 1:
        return None
    if kind in SINGLE_TREES:
        return [_from_sklearn(model.tree_, 1.0, vote, classify=hasattr(model, "classes_"))], np.zeros(1)
    if kind in FORESTS:
        if vote == "hard" and hasattr(model, "classes_"):
            return None
        share = 1 / len(model.estimators_)
        classify = hasattr(model, "classes_")
        return [_from_sklearn(tree.tree_, share, vote, classify=classify) for tree in model.estimators_], np.zeros(1)
    if kind is GradientBoostingRegressor:
        if type(model.init_) is DummyRegressor:
            baseline = np.ravel(model.init_.constant_).astype(np.float64)
        elif isinstance(model.init_, str):  # "zero"
            baseline = np.zeros(1)
        else:
            return None
        trees = [tree.tree_ for tree in model.estimators_.ravel()]
        return [_from_sklearn(tree, model.learning_rate, "soft", classify=False) for tree in trees], baseline
    if kind is HistGradientBoostingRegressor:
        if model.loss not in ("squared_error", "absolute_error", "quantile"):  # others have a link function
            return None
        if model.is_categorical_ is not None and np.any(model.is_categorical_):
            return None
        trees = [_from_histogram(stage[0].nodes) for stage in model._predictors]
        return trees, np.ravel(model._baseline_prediction).astype(np.float64)
    return None


def _from_sklearn(tree: Any, factor: float, vote: str, *, classify: bool) -> TreeNodes:
    values = np.array(tree.value[:, 0, :], dtype=np.float64)
    if classify and vote in ("hard", "trees"):
        values = np.eye(values.shape[1])[values.argmax(axis=1)]
    elif classify:
        values /= values.sum(axis=1, keepdims=True)
    # Rows are rounded to float32: the result is at most the threshold if and only if the row is at most the middle
    # between the largest float32 up to the threshold, and the next float32.
    last = tree.threshold.astype(np.float32)
    last = np.where(last > tree.threshold, np.nextafter(last, np.float32(-np.inf)), last)
    middle = (last.astype(np.float64) + np.nextafter(last, np.float32(np.inf)).astype(np.float64)) / 2
    return TreeNodes(
        tree.children_left.astype(np.int64),
        tree.children_right.astype(np.int64),
        tree.feature.astype(np.int64),
        tree.threshold,
        middle,
        values * factor,
        np.float32,
    )


def _from_histogram(nodes: Any) -> TreeNodes:
    leaf = nodes["is_leaf"].astype(bool)
    return TreeNodes(
        np.where(leaf, -1, nodes["left"].astype(np.int64)),
        np.where(leaf, -1, nodes["right"].astype(np.int64)),
        nodes["feature_idx"].astype(np.int64),
        nodes["num_threshold"].astype(np.float64),
        nodes["num_threshold"].astype(np.float64),
        nodes["value"].astype(np.float64)[:, None],
        np.float64,
    )
