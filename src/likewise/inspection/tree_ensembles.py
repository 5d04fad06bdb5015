"""Trees, forests and boosting of several libraries as one kind of object: tests, leaves and a link."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, softmax
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from likewise._typing import BoolArray, FloatArray, IntArray
from likewise.exceptions import UnprovableError
from likewise.inspection.external_models import LightGBMClassifierFile, LightGBMFile
from likewise.inspection.trees import FORESTS, SINGLE_TREES

_ZERO = 1e-35  # what LightGBM takes for 0
_DOUBLE, SINGLE = 2.0**-53, 2.0**-24  # relative error of one operation


@dataclass(frozen=True)
class Test:
    """The test of a node on one feature.

    Attributes
    ----------
    feature : int
    threshold : float
        Numbers up to it go left, or only those below it if `strict`.
    strict : bool
    blank_left : bool
        Whether a missing value goes left.
    left, known : frozenset of int, or None
        Categories that go left, of those that are known; others go where a missing value goes. None for numbers.
    single : bool
        Whether numbers are rounded to single precision first.
    blank_is_zero, zero_is_blank : bool
        LightGBM's treatments of missing values.
    """

    __test__ = False  # not for pytest to collect

    feature: int
    threshold: float = np.nan
    strict: bool = False
    blank_left: bool = False
    left: frozenset[int] | None = None
    known: frozenset[int] | None = None
    single: bool = False
    blank_is_zero: bool = False
    zero_is_blank: bool = False

    def goes_left(self, values: FloatArray) -> BoolArray:
        """The answer for each value of the feature."""
        blank = np.isnan(values)
        if self.left is not None:
            codes = np.where(blank, -1, values).astype(np.int64)
            found = np.isin(codes, list(self.left))
            if self.known is not None:
                blank = ~np.isin(codes, list(self.known))
            return np.where(blank, self.blank_left, found)
        if self.blank_is_zero:
            values, blank = np.where(blank, 0.0, values), np.zeros_like(blank)
        if self.zero_is_blank:
            blank = blank | (np.abs(values) <= _ZERO)
        if self.single:
            with np.errstate(over="ignore", invalid="ignore"):
                values = values.astype(np.float32).astype(np.float64)
        with np.errstate(invalid="ignore"):
            below = values < self.threshold if self.strict else values <= self.threshold
        return np.where(blank, self.blank_left, below)


@dataclass(frozen=True, eq=False)
class Tree:
    """One tree; a leaf has left = -1. `test` holds positions among the ensemble's tests."""

    left: IntArray
    right: IntArray
    test: IntArray
    values: FloatArray  # (n_nodes, n_scores); those of leaves count


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """``scores(x) = baseline + sum over trees of a leaf``, behind a link.

    Attributes
    ----------
    trees : list of Tree
    tests : list of Test
    baseline : ndarray of shape (n_scores,)
    link : {"identity", "logistic", "softmax"}
        With "identity", one score is a prediction, or the probability of the second class; several are probabilities
        of classes.
    features : callable
        From what the model takes to the numbers that the tests are about.
    order : list of int, or None
        Column of the model's input that each feature is; None for the same order.
    codes : frozenset of int
        Features that are codes of categories, not the numbers themselves.
    unit : float
        Relative error of one operation of the model's own sums.
    """

    trees: list[Tree]
    tests: list[Test]
    baseline: FloatArray
    link: str
    features: Callable[[Any], FloatArray]
    order: list[int] | None = None
    codes: frozenset[int] = frozenset()
    unit: float = _DOUBLE

    def scores(self, features: FloatArray) -> FloatArray:
        """Sums of leaves, shape (n_samples, n_scores)."""
        answers = [test.goes_left(features[:, test.feature]) for test in self.tests]
        table = np.array(answers).reshape(len(self.tests), len(features))
        total = np.tile(self.baseline, (len(features), 1)).astype(np.float64)
        everyone = np.arange(len(features))
        for tree in self.trees:
            node = np.zeros(len(features), dtype=np.int64)
            while (inner := tree.left[node] >= 0).any():
                at = node[inner]
                node[inner] = np.where(table[tree.test[at], everyone[inner]], tree.left[at], tree.right[at])
            total += tree.values[node]
        return total

    def outputs(self, features: FloatArray) -> FloatArray:
        """Predictions, or probabilities of the classes."""
        scores = self.scores(features)
        if self.link == "softmax":
            return np.asarray(softmax(scores, axis=1))
        if self.link == "logistic":
            return np.column_stack([expit(-scores[:, 0]), expit(scores[:, 0])])
        return scores

    def rounding(self) -> float:
        """Bound of what rounding adds to a score: n operations on numbers below the sum of the largest leaves."""
        sizes = [float(np.abs(tree.values[tree.left < 0]).max(initial=0.0)) for tree in self.trees]
        total = float(np.abs(self.baseline).max()) + sum(sizes)
        return (len(self.trees) + 4) * (self.unit + _DOUBLE) * total


@dataclass
class TreeBuilder:
    """Trees with tests that are kept once."""

    trees: list[Tree] = field(default_factory=list)
    places: dict[Test, int] = field(default_factory=dict)

    def add(self, left: Any, right: Any, tests: list[Test | None], values: FloatArray) -> None:
        """Add a tree, with a test or None for each node."""
        positions = [-1 if test is None else self.places.setdefault(test, len(self.places)) for test in tests]
        self.trees.append(
            Tree(
                np.asarray(left, dtype=np.int64),
                np.asarray(right, dtype=np.int64),
                np.array(positions, dtype=np.int64),
                np.asarray(values, dtype=np.float64),
            )
        )

    def ensemble(self, baseline: Any, link: str, features: Callable[[Any], FloatArray], **more: Any) -> TreeEnsemble:
        """The trees added so far as a model."""
        base = np.atleast_1d(np.asarray(baseline, dtype=np.float64))
        return TreeEnsemble(self.trees, list(self.places), base, link, features, **more)


def read_tree_ensemble(model: Any) -> TreeEnsemble:
    """Read the trees of a fitted model without preprocessing, or raise `UnprovableError` with the reason.

    Decision trees, forests, `GradientBoosting` and `HistGradientBoosting` of scikit-learn, and the scikit-learn
    interfaces of XGBoost, LightGBM and CatBoost. Exact classes: a subclass may predict differently.
    """
    from likewise.inspection.boosters import read_catboost, read_lightgbm, read_xgboost

    kind = type(model)
    name, package = kind.__name__, kind.__module__.partition(".")[0]
    if kind in SINGLE_TREES or kind in FORESTS:
        return _read_forest(model)
    if kind in (LightGBMFile, LightGBMClassifierFile):
        return read_lightgbm(model)
    if kind in (GradientBoostingClassifier, GradientBoostingRegressor):
        return _read_gradient_boosting(model)
    if kind in (HistGradientBoostingClassifier, HistGradientBoostingRegressor):
        return _read_histogram_boosting(model)
    if package == "xgboost" and name in ("XGBClassifier", "XGBRegressor", "XGBRFClassifier", "XGBRFRegressor"):
        return read_xgboost(model)
    if package == "lightgbm" and name in ("LGBMClassifier", "LGBMRegressor"):
        return read_lightgbm(model)
    if package == "catboost" and name in ("CatBoostClassifier", "CatBoostRegressor"):
        return read_catboost(model)
    raise UnprovableError(f"{name} is not among the sums of trees that can be read")


def looks_like_trees(model: Any) -> bool:
    """Whether a model is a sum of trees by its name, so that `read_tree_ensemble` says why if it cannot be read."""
    name, package = type(model).__name__, type(model).__module__.partition(".")[0]
    words = ("DecisionTree", "ExtraTree", "RandomForest", "GradientBoosting", "LightGBM")
    return package in ("xgboost", "lightgbm", "catboost") or any(word in name for word in words)


def as_numbers(rows: Any) -> FloatArray:
    """Rows of numbers as tests see them."""
    if isinstance(rows, pd.DataFrame):
        return rows.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(rows, dtype=np.float64)


# -- scikit-learn ----------------------------------------------------------------------------------------------------


def _add_sklearn_tree(builder: TreeBuilder, tree: Any, values: FloatArray) -> None:
    blank_left = getattr(tree, "missing_go_to_left", np.zeros(len(tree.feature)))
    tests = [
        None if leaf else Test(feature, threshold, blank_left=bool(blank), single=True)
        for leaf, feature, threshold, blank in zip(
            tree.children_left < 0, tree.feature.tolist(), tree.threshold.tolist(), blank_left, strict=True
        )
    ]
    builder.add(tree.children_left, tree.children_right, tests, values)


def _read_forest(model: Any) -> TreeEnsemble:
    if getattr(model, "n_outputs_", 1) != 1:
        raise UnprovableError(f"{type(model).__name__} has {model.n_outputs_} outputs")
    trees = model.estimators_ if hasattr(model, "estimators_") else [model]
    builder, classify, n_scores = TreeBuilder(), hasattr(model, "classes_"), 1
    for tree in trees:
        values = np.array(tree.tree_.value[:, 0, :], dtype=np.float64)
        if classify:
            values /= values.sum(axis=1, keepdims=True)
            values = values[:, 1:] if values.shape[1] == 2 else values
            n_scores = values.shape[1]
        _add_sklearn_tree(builder, tree.tree_, values / len(trees))
    return builder.ensemble(np.zeros(n_scores), "identity", as_numbers)


def _read_gradient_boosting(model: Any) -> TreeEnsemble:
    classify = hasattr(model, "classes_")
    if type(model.init_) not in (DummyClassifier, DummyRegressor) and not isinstance(model.init_, str):
        raise UnprovableError(f"{type(model).__name__} starts from another model (init={type(model.init_).__name__})")
    if classify and model.loss not in ("log_loss", "exponential"):
        raise UnprovableError(f"{type(model).__name__} with loss={model.loss!r} has no known link")
    factor = 2.0 if classify and model.loss == "exponential" else 1.0  # its probabilities are expit(2 score)
    n_scores = model.estimators_.shape[1]
    start = model._raw_predict_init(np.zeros((1, model.n_features_in_)))[0]
    builder = TreeBuilder()
    for stage in model.estimators_:
        for k, tree in enumerate(stage):
            values = np.zeros((tree.tree_.node_count, n_scores))
            values[:, k] = factor * model.learning_rate * tree.tree_.value[:, 0, 0]
            _add_sklearn_tree(builder, tree.tree_, values)
    link = "identity" if not classify else "logistic" if n_scores == 1 else "softmax"
    return builder.ensemble(factor * start, link, as_numbers)


def _read_histogram_boosting(model: Any) -> TreeEnsemble:
    classify = hasattr(model, "classes_")
    if not classify and model.loss not in ("squared_error", "absolute_error", "quantile"):
        raise UnprovableError(f"{type(model).__name__} with loss={model.loss!r} has a log link")
    n_scores, builder = model.n_trees_per_iteration_, TreeBuilder()
    bitsets, place = model._bin_mapper.make_known_categories_bitsets()
    categorical = model._is_categorical_remapped if model.is_categorical_ is not None else []
    known = {j: _members(bitsets[place[j]]) for j, is_code in enumerate(categorical) if is_code}
    for stage in model._predictors:
        for k, tree in enumerate(stage):
            nodes, leaf = tree.nodes, tree.nodes["is_leaf"].astype(bool)
            tests: list[Test | None] = []
            for i in range(len(nodes)):
                node = nodes[i]
                blank, feature = bool(node["missing_go_to_left"]), int(node["feature_idx"])
                if leaf[i]:
                    tests.append(None)
                elif node["is_categorical"]:
                    left = _members(tree.raw_left_cat_bitsets[node["bitset_idx"]])
                    tests.append(Test(feature, blank_left=blank, left=left, known=known[feature]))
                else:
                    tests.append(Test(feature, float(node["num_threshold"]), blank_left=blank))
            values = np.zeros((len(nodes), n_scores))
            values[:, k] = nodes["value"]
            left_nodes = np.where(leaf, -1, nodes["left"].astype(np.int64))
            builder.add(left_nodes, np.where(leaf, -1, nodes["right"].astype(np.int64)), tests, values)
    link = "identity" if not classify else "logistic" if n_scores == 1 else "softmax"
    first = getattr(model, "_preprocessor", None)
    if first is None:
        return builder.ensemble(np.ravel(model._baseline_prediction), link, as_numbers, codes=frozenset(known))
    codes = np.flatnonzero(model.is_categorical_).tolist()
    order = [*codes, *(i for i in range(model.n_features_in_) if i not in set(codes))]
    return builder.ensemble(
        np.ravel(model._baseline_prediction),
        link,
        lambda rows: as_numbers(first.transform(rows)),
        order=order,
        codes=frozenset(known),
    )


def _members(words: Any) -> frozenset[int]:
    """Positions of the bits that are set in 32-bit words."""
    return frozenset(
        32 * i + bit for i, word in enumerate(np.asarray(words).tolist()) for bit in range(32) if word >> bit & 1
    )
