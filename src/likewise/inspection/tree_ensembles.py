"""Trees, forests and boosting of several libraries as one kind of object: tests, leaves and a link."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
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
from likewise.inspection.booster_files import LightGBMClassifierFile, LightGBMFile
from likewise.inspection.trees import FORESTS, SINGLE_TREES

_ZERO = 1e-35  # what LightGBM takes for 0
_DOUBLE, _SINGLE = 2.0**-53, 2.0**-24  # relative error of one operation


@dataclass(frozen=True)
class Test:
    """A question that a node asks of one feature.

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
        LightGBM's ways with missing values.
    """

    __test__ = False  # no test of pytest's

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
class _Builder:
    """Trees with tests that are kept once."""

    trees: list[Tree] = field(default_factory=list)
    places: dict[Test, int] = field(default_factory=dict)

    def place(self, test: Test) -> int:
        return self.places.setdefault(test, len(self.places))

    def add(self, left: Any, right: Any, tests: list[Test | None], values: FloatArray) -> None:
        positions = [-1 if test is None else self.place(test) for test in tests]
        self.trees.append(
            Tree(
                np.asarray(left, dtype=np.int64),
                np.asarray(right, dtype=np.int64),
                np.array(positions, dtype=np.int64),
                np.asarray(values, dtype=np.float64),
            )
        )

    def ensemble(self, baseline: Any, link: str, features: Callable[[Any], FloatArray], **more: Any) -> TreeEnsemble:
        base = np.atleast_1d(np.asarray(baseline, dtype=np.float64))
        return TreeEnsemble(self.trees, list(self.places), base, link, features, **more)


def read_tree_ensemble(model: Any) -> TreeEnsemble:
    """Read the trees of a fitted model without preprocessing, or raise `UnprovableError` with the reason.

    Decision trees, forests, `GradientBoosting` and `HistGradientBoosting` of scikit-learn, and the scikit-learn
    interfaces of XGBoost, LightGBM and CatBoost. Exact classes: a subclass may predict differently.
    """
    kind = type(model)
    name, package = kind.__name__, kind.__module__.partition(".")[0]
    if kind in SINGLE_TREES or kind in FORESTS:
        return _read_forest(model)
    if kind in (LightGBMFile, LightGBMClassifierFile):
        return _read_lightgbm(model)
    if kind in (GradientBoostingClassifier, GradientBoostingRegressor):
        return _read_gradient_boosting(model)
    if kind in (HistGradientBoostingClassifier, HistGradientBoostingRegressor):
        return _read_histogram_boosting(model)
    if package == "xgboost" and name in ("XGBClassifier", "XGBRegressor", "XGBRFClassifier", "XGBRFRegressor"):
        return _read_xgboost(model)
    if package == "lightgbm" and name in ("LGBMClassifier", "LGBMRegressor"):
        return _read_lightgbm(model)
    if package == "catboost" and name in ("CatBoostClassifier", "CatBoostRegressor"):
        return _read_catboost(model)
    raise UnprovableError(f"{name} is not among the sums of trees that can be read")


def looks_like_trees(model: Any) -> bool:
    """Whether a model is a sum of trees by its name, so that `read_tree_ensemble` says why if it cannot be read."""
    name, package = type(model).__name__, type(model).__module__.partition(".")[0]
    words = ("DecisionTree", "ExtraTree", "RandomForest", "GradientBoosting", "LightGBM")
    return package in ("xgboost", "lightgbm", "catboost") or any(word in name for word in words)


def _numbers(rows: Any) -> FloatArray:
    """Rows of numbers as tests see them."""
    if isinstance(rows, pd.DataFrame):
        return rows.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(rows, dtype=np.float64)


# -- scikit-learn ----------------------------------------------------------------------------------------------------


def _add_sklearn_tree(builder: _Builder, tree: Any, values: FloatArray) -> None:
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
    builder, classify, n_scores = _Builder(), hasattr(model, "classes_"), 1
    for tree in trees:
        values = np.array(tree.tree_.value[:, 0, :], dtype=np.float64)
        if classify:
            values /= values.sum(axis=1, keepdims=True)
            values = values[:, 1:] if values.shape[1] == 2 else values
            n_scores = values.shape[1]
        _add_sklearn_tree(builder, tree.tree_, values / len(trees))
    return builder.ensemble(np.zeros(n_scores), "identity", _numbers)


def _read_gradient_boosting(model: Any) -> TreeEnsemble:
    classify = hasattr(model, "classes_")
    if type(model.init_) not in (DummyClassifier, DummyRegressor) and not isinstance(model.init_, str):
        raise UnprovableError(f"{type(model).__name__} starts from another model (init={type(model.init_).__name__})")
    if classify and model.loss not in ("log_loss", "exponential"):
        raise UnprovableError(f"{type(model).__name__} with loss={model.loss!r} has no known link")
    factor = 2.0 if classify and model.loss == "exponential" else 1.0  # its probabilities are expit(2 score)
    n_scores = model.estimators_.shape[1]
    start = model._raw_predict_init(np.zeros((1, model.n_features_in_)))[0]
    builder = _Builder()
    for stage in model.estimators_:
        for k, tree in enumerate(stage):
            values = np.zeros((tree.tree_.node_count, n_scores))
            values[:, k] = factor * model.learning_rate * tree.tree_.value[:, 0, 0]
            _add_sklearn_tree(builder, tree.tree_, values)
    link = "identity" if not classify else "logistic" if n_scores == 1 else "softmax"
    return builder.ensemble(factor * start, link, _numbers)


def _read_histogram_boosting(model: Any) -> TreeEnsemble:
    classify = hasattr(model, "classes_")
    if not classify and model.loss not in ("squared_error", "absolute_error", "quantile"):
        raise UnprovableError(f"{type(model).__name__} with loss={model.loss!r} has a log link")
    n_scores, builder = model.n_trees_per_iteration_, _Builder()
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
        return builder.ensemble(np.ravel(model._baseline_prediction), link, _numbers, codes=frozenset(known))
    codes = np.flatnonzero(model.is_categorical_).tolist()
    order = [*codes, *(i for i in range(model.n_features_in_) if i not in set(codes))]
    return builder.ensemble(
        np.ravel(model._baseline_prediction),
        link,
        lambda rows: _numbers(first.transform(rows)),
        order=order,
        codes=frozenset(known),
    )


def _members(words: Any) -> frozenset[int]:
    """Positions of the bits that are set in 32-bit words."""
    return frozenset(
        32 * i + bit for i, word in enumerate(np.asarray(words).tolist()) for bit in range(32) if word >> bit & 1
    )


# -- XGBoost ---------------------------------------------------------------------------------------------------------


def _read_xgboost(model: Any) -> TreeEnsemble:
    learner = json.loads(bytes(model.get_booster().save_raw("json")))["learner"]
    booster, objective = learner["gradient_booster"], learner["objective"]["name"]
    links = {
        "binary:logistic": "logistic",
        "multi:softprob": "softmax",
        "multi:softmax": "softmax",
        **dict.fromkeys(("reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror"), "identity"),
    }
    if objective not in links or booster["name"] != "gbtree":
        raise UnprovableError(f"XGBoost with objective={objective!r} and booster={booster['name']!r} is not read")
    if model.missing is None or not np.isnan(model.missing):
        raise UnprovableError(f"XGBoost with missing={model.missing!r} changes values that are not missing")
    n_scores = max(1, int(learner["learner_model_param"]["num_class"]))
    if int(learner["learner_model_param"].get("num_target", 1)) > 1:
        raise UnprovableError("XGBoost has several outputs")
    link, parts = links[objective], booster["model"]
    base = np.array(json.loads(learner["learner_model_param"]["base_score"]), dtype=np.float64).ravel()
    base = np.broadcast_to(np.log(base / (1 - base)) if link == "logistic" else base, n_scores)
    rounds = len(parts["trees"])
    best = getattr(model, "best_iteration", None) if "best_iteration" in learner.get("attributes", {}) else None
    if best is not None:
        rounds = parts["iteration_indptr"][int(best) + 1]
    kinds, builder = learner.get("feature_types", []), _Builder()
    for tree, k in zip(parts["trees"][:rounds], parts["tree_info"][:rounds], strict=True):
        if int(tree["tree_param"]["size_leaf_vector"]) > 1:
            raise UnprovableError("XGBoost has several outputs per leaf")
        right_sets = {
            node: frozenset(tree["categories"][start : start + size])
            for node, start, size in zip(
                tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True
            )
        }
        conditions = np.array(tree["split_conditions"], dtype=np.float32).astype(np.float64)
        tests: list[Test | None] = []
        for node, (feature, blank) in enumerate(zip(tree["split_indices"], tree["default_left"], strict=True)):
            if tree["left_children"][node] < 0:
                tests.append(None)
            elif tree["split_type"][node]:
                every = frozenset(range(1 + max(1024, *right_sets[node])))
                tests.append(Test(feature, blank_left=bool(blank), left=every - right_sets[node], known=every))
            else:
                tests.append(Test(feature, float(conditions[node]), True, bool(blank), single=True))
        values = np.zeros((len(conditions), n_scores))
        values[:, k] = conditions
        builder.add(tree["left_children"], tree["right_children"], tests, values)
    codes = frozenset(j for j, each in enumerate(kinds) if each == "c")
    levels = _xgboost_levels(parts.get("cats") or {})
    return builder.ensemble(base, link, lambda rows: _coded(rows, levels, codes), codes=codes, unit=_SINGLE)


def _xgboost_levels(cats: dict[str, Any]) -> dict[int, list[Any]]:
    """Categories of each column, in the order of their codes; versions before 3.1 do not keep them."""
    found: dict[int, list[Any]] = {}
    for j, coded in enumerate(cats.get("enc", [])):
        ends = coded.get("offsets")
        if ends is None and coded.get("values"):
            found[j] = list(coded["values"])
        elif ends:
            text = bytes(value % 256 for value in coded["values"])
            found[j] = [text[a:b].decode() for a, b in pairwise(ends)]
    return found


def _coded(rows: Any, levels: dict[int, list[Any]], codes: frozenset[int]) -> FloatArray:
    """Numbers, with categories as positions among the known ones; NaN for missing and unknown ones."""
    if not isinstance(rows, pd.DataFrame) or not codes:
        return _numbers(rows)
    columns = []
    for j, name in enumerate(rows.columns):
        column = rows[name]
        if j in codes and isinstance(column.dtype, pd.CategoricalDtype):
            known = pd.Index(levels.get(j, column.cat.categories))
            place = known.get_indexer(column.astype(object))
            columns.append(np.where(place < 0, np.nan, place.astype(np.float64)))
        else:
            columns.append(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.column_stack(columns)


# -- LightGBM --------------------------------------------------------------------------------------------------------


def _read_lightgbm(model: Any) -> TreeEnsemble:
    dump = model.booster_.dump_model()
    objective, *settings = dump.get("objective", "").split()
    n_scores = int(dump["num_tree_per_iteration"])
    scale = 1.0
    if objective == "binary":
        link, scale = "logistic", float(dict(part.split(":") for part in settings).get("sigmoid", 1.0))
    elif objective == "multiclass":
        link = "softmax"
    elif objective in ("regression", "regression_l1", "huber", "fair", "quantile", "mape") and not settings:
        link = "identity"
    else:
        raise UnprovableError(f"LightGBM with objective={dump.get('objective')!r} is not read")
    builder, share = _Builder(), 1.0
    if dump.get("average_output"):
        share = n_scores / max(1, len(dump["tree_info"]))
    for i, tree in enumerate(dump["tree_info"]):
        left: list[int] = []
        right: list[int] = []
        tests: list[Test | None] = []
        leaves: list[float] = []
        _walk_lightgbm(tree["tree_structure"], left, right, tests, leaves)
        values = np.zeros((len(left), n_scores))
        values[:, i % n_scores] = np.array(leaves) * share * scale
        builder.add(left, right, tests, values)
    categories = dump.get("pandas_categorical") or []
    infos, names = dump["feature_infos"], dump["feature_names"]
    codes = frozenset(j for j, name in enumerate(names) if infos.get(name, {}).get("values"))

    def features(rows: Any) -> FloatArray:
        if not categories or not isinstance(rows, pd.DataFrame):
            return _numbers(rows)
        places = [j for j, name in enumerate(rows) if isinstance(rows[name].dtype, pd.CategoricalDtype)]
        return _coded(rows, dict(zip(places, categories, strict=True)), frozenset(places))

    return builder.ensemble(np.zeros(n_scores), link, features, codes=codes)


def _walk_lightgbm(
    node: dict[str, Any], left: list[int], right: list[int], tests: list[Test | None], leaves: list[float]
) -> int:
    """Append a node and all below it; return its position."""
    here = len(left)
    for part in (left, right):
        part.append(-1)
    tests.append(None)
    leaves.append(float(node.get("leaf_value", 0.0)))
    if "leaf_coeff" in node:
        raise UnprovableError("LightGBM with linear_tree=True has no constant leaves")
    if "split_feature" not in node:
        return here
    feature, missing = int(node["split_feature"]), node["missing_type"]
    if node["decision_type"] == "==":
        members = frozenset(int(part) for part in str(node["threshold"]).split("||"))
        tests[here] = Test(feature, blank_left=False, left=members)
    else:
        tests[here] = Test(
            feature,
            float(node["threshold"]),
            blank_left=bool(node["default_left"]),
            blank_is_zero=missing != "NaN",
            zero_is_blank=missing == "Zero",
        )
    left[here] = _walk_lightgbm(node["left_child"], left, right, tests, leaves)
    right[here] = _walk_lightgbm(node["right_child"], left, right, tests, leaves)
    return here


# -- CatBoost --------------------------------------------------------------------------------------------------------


def _read_catboost(model: Any) -> TreeEnsemble:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.json"
        model.save_model(str(path), format="json")
        dump = json.loads(path.read_text(encoding="utf-8"))
    loss = str(model.get_all_params().get("loss_function")).partition(":")[0]
    links = {"Logloss": "logistic", "CrossEntropy": "logistic", "MultiClass": "softmax"}
    links |= dict.fromkeys(("RMSE", "MAE", "Quantile"), "identity")
    if loss not in links:
        raise UnprovableError(f"CatBoost with loss_function={loss!r} is not read")
    if "oblivious_trees" not in dump:
        raise UnprovableError("CatBoost with another grow_policy than SymmetricTree is not read")
    scale, bias = dump["scale_and_bias"]
    info = {each["feature_index"]: each for each in dump["features_info"].get("float_features", [])}
    n_scores, builder = len(np.atleast_1d(bias)), _Builder()
    for tree in dump["oblivious_trees"]:
        splits = tree.get("splits") or []
        if any(split["split_type"] != "FloatFeature" for split in splits):
            raise UnprovableError("CatBoost codes categories by statistics of the target; code them as numbers first")
        tests: list[Test] = []
        for split in splits:
            feature = info[split["float_feature_index"]]
            # Right is "above the border"; a missing value is below all numbers, above all, or no number.
            tests.append(
                Test(
                    int(feature["flat_feature_index"]),
                    float(split["border"]),
                    blank_left=feature["nan_value_treatment"] != "AsTrue",
                    single=True,
                )
            )
        depth = len(tests)
        leaves = scale * np.array(tree["leaf_values"], dtype=np.float64).reshape(2**depth, n_scores)
        # A complete binary tree in the order of a heap; the first split is the lowest bit of a leaf's number.
        n_inner = 2**depth - 1
        left = [2 * i + 1 if i < n_inner else -1 for i in range(2 * n_inner + 1)]
        right = [2 * i + 2 if i < n_inner else -1 for i in range(2 * n_inner + 1)]
        levels = [int(np.log2(i + 1)) for i in range(n_inner)]
        values = np.zeros((2 * n_inner + 1, n_scores))
        for i in range(2**depth):
            turns = [(i >> (depth - 1 - level)) & 1 for level in range(depth)]
            values[n_inner + i] = leaves[sum(turn << level for level, turn in enumerate(turns))]
        builder.add(left, right, [*(tests[level] for level in levels), *([None] * 2**depth)], values)
    return builder.ensemble(np.atleast_1d(bias), links[loss], _numbers)
