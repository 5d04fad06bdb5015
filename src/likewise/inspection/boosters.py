"""The trees of XGBoost, LightGBM and CatBoost, from what these libraries save."""

from __future__ import annotations

import json
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from likewise._typing import FloatArray
from likewise.exceptions import UnprovableError
from likewise.inspection.tree_ensembles import SINGLE, Test, TreeBuilder, TreeEnsemble, as_numbers


def read_xgboost(model: Any) -> TreeEnsemble:
    """Trees of an `XGBClassifier` or `XGBRegressor`."""
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
    kinds, builder = learner.get("feature_types", []), TreeBuilder()
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
    return builder.ensemble(base, link, lambda rows: _coded(rows, levels, codes), codes=codes, unit=SINGLE)


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
        return as_numbers(rows)
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


def read_lightgbm(model: Any) -> TreeEnsemble:
    """Trees of an `LGBMClassifier`, an `LGBMRegressor` or a LightGBM file."""
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
    builder, share = TreeBuilder(), 1.0
    if dump.get("average_output"):
        share = n_scores / max(1, len(dump["tree_info"]))
    for i, tree in enumerate(dump["tree_info"]):
        nodes, left, right = [tree["tree_structure"]], [], []
        for node in nodes:  # to which the children are added on the way
            is_leaf = "split_feature" not in node
            left.append(-1 if is_leaf else len(nodes))
            right.append(-1 if is_leaf else len(nodes) + 1)
            nodes += [] if is_leaf else [node["left_child"], node["right_child"]]
        if any("leaf_coeff" in node for node in nodes):
            raise UnprovableError("LightGBM with linear_tree=True has no constant leaves")
        values = np.zeros((len(nodes), n_scores))
        values[:, i % n_scores] = np.array([float(node.get("leaf_value", 0.0)) for node in nodes]) * share * scale
        builder.add(left, right, [_lightgbm_test(node) for node in nodes], values)
    categories = dump.get("pandas_categorical") or []
    infos, names = dump["feature_infos"], dump["feature_names"]
    codes = frozenset(j for j, name in enumerate(names) if infos.get(name, {}).get("values"))

    def features(rows: Any) -> FloatArray:
        if not categories or not isinstance(rows, pd.DataFrame):
            return as_numbers(rows)
        places = [j for j, name in enumerate(rows) if isinstance(rows[name].dtype, pd.CategoricalDtype)]
        return _coded(rows, dict(zip(places, categories, strict=True)), frozenset(places))

    return builder.ensemble(np.zeros(n_scores), link, features, codes=codes)


def _lightgbm_test(node: dict[str, Any]) -> Test | None:
    """The test of a node; None for a leaf."""
    if "split_feature" not in node:
        return None
    feature, missing = int(node["split_feature"]), node["missing_type"]
    if node["decision_type"] == "==":
        members = frozenset(int(part) for part in str(node["threshold"]).split("||"))
        return Test(feature, blank_left=False, left=members)
    return Test(
        feature,
        float(node["threshold"]),
        blank_left=bool(node["default_left"]),
        blank_is_zero=missing != "NaN",
        zero_is_blank=missing == "Zero",
    )


def read_catboost(model: Any) -> TreeEnsemble:
    """Trees of a `CatBoostClassifier` or `CatBoostRegressor`."""
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
    n_scores, builder = len(np.atleast_1d(bias)), TreeBuilder()
    for tree in dump["oblivious_trees"]:
        splits = tree.get("splits") or []
        if any(split["split_type"] != "FloatFeature" for split in splits):
            raise UnprovableError("CatBoost codes categories by statistics of the target; code them as numbers first")
        tests: list[Test] = []
        for split in splits:
            feature = info[split["float_feature_index"]]
            # Right is "above the border"; a missing value counts as below all numbers, or as above all.
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
        values[n_inner:] = leaves[[int(f"{i:0{depth}b}"[::-1], 2) for i in range(2**depth)]]
        builder.add(left, right, [*(tests[level] for level in levels), *([None] * 2**depth)], values)
    return builder.ensemble(np.atleast_1d(bias), links[loss], as_numbers)
