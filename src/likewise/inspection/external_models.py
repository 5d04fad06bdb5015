"""Models of other tools: XGBoost, LightGBM and CatBoost in their own files, ONNX files, and models behind a URL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._optional import need
from likewise.exceptions import FileError, InvalidInputError

BOOSTER_ENDINGS = (".json", ".ubj", ".txt", ".cbm")
"""XGBoost or CatBoost, XGBoost, LightGBM, CatBoost."""
_AT_ONCE = 10_000  # rows of one request
_SECONDS = 60  # seconds to wait for a response
_TYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(string)": np.object_,
}


@dataclass(frozen=True, eq=False)
class LightGBMFile:
    """A LightGBM booster with the methods of its scikit-learn interface.

    Attributes
    ----------
    booster_ : lightgbm.Booster
    """

    booster_: Any

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """Names of the columns."""
        return np.array(self.booster_.feature_name(), dtype=object)

    def predict(self, X: Any) -> Any:
        """Predictions, or probabilities of a classifier."""
        return self.booster_.predict(X)


@dataclass(frozen=True, eq=False)
class LightGBMClassifierFile(LightGBMFile):
    """The same for classes, which are counted from 0."""

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """Classes."""
        return np.arange(max(2, self.booster_.num_model_per_iteration()))

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes."""
        answers = np.asarray(self.booster_.predict(X))
        return np.column_stack([1 - answers, answers]) if answers.ndim == 1 else answers


def load_booster(path: str | Path, categories: Mapping[str, Sequence[Any]] | None = None) -> Any:
    """Load a model from a file of XGBoost (.json, .ubj), LightGBM (.txt) or CatBoost (.cbm, .json).

    These hold numbers and text only. The model has the methods of scikit-learn, and takes tables whose columns of
    categories have the type `category`.

    Parameters
    ----------
    path : str or Path
    categories : mapping from column to list of categories, optional
        For files of XGBoost before 3.1, which hold the codes of categories alone: the categories of each column in the
        order of their codes, as text or whole numbers.
    """
    ending = Path(path).suffix.lower()
    if not Path(path).is_file():
        raise FileError(f"There is no model file {path}.")
    try:
        if categories and ending not in (".json", ".ubj"):
            raise InvalidInputError(f"categories are for models of XGBoost (.json, .ubj); got {path}.")
        if ending == ".txt":
            return _lightgbm(path)
        if ending == ".cbm" or (ending == ".json" and "oblivious_trees" in _keys(path)):
            return _catboost(path)
        if ending in (".json", ".ubj"):
            return _xgboost(path, categories or {})
    except (InvalidInputError, ImportError):
        raise
    except Exception as error:  # three libraries may raise anything
        raise FileError(f"Cannot read a model from {path}: {' '.join(str(error).split())[:200]}.") from None
    raise FileError(
        f"{path} must be a model of XGBoost (.json, .ubj), LightGBM (.txt) or CatBoost (.cbm, .json); got {ending!r}."
    )


def _keys(path: str | Path) -> list[str]:
    try:
        return list(json.loads(Path(path).read_bytes()))
    except ValueError:
        raise FileError(f"{path} is not valid JSON.") from None


def _lightgbm(path: str | Path) -> LightGBMFile:
    booster = need("lightgbm", "A model of LightGBM").Booster(model_file=str(path))
    objective = str(booster.dump_model(num_iteration=1).get("objective", "")).partition(" ")[0]
    classify = objective in ("binary", "multiclass", "multiclassova", "cross_entropy")
    return (LightGBMClassifierFile if classify else LightGBMFile)(booster)


def _xgboost(path: str | Path, categories: Mapping[str, Sequence[Any]]) -> Any:
    xgboost = need("xgboost", "A model of XGBoost")
    booster = xgboost.Booster()
    booster.load_model(str(path))
    objective = json.loads(booster.save_config())["learner"]["objective"]["name"]
    model = xgboost.XGBClassifier() if objective.startswith(("binary:", "multi:")) else xgboost.XGBRegressor()
    model.load_model(_with_categories(booster, categories, path))
    return model


def _with_categories(booster: Any, given: Mapping[str, Sequence[Any]], path: str | Path) -> Any:
    """What to load a model of XGBoost from: its file, if this has the categories; else a copy with those given.

    To a model without them, the codes are those of the table that it is asked about, whatever they were in training.
    """
    types = booster.feature_types or []
    columns = booster.feature_names or [f"f{i}" for i in range(len(types))]
    coded = [name for name, kind in zip(columns, types, strict=False) if kind == "c"]
    known = booster.get_categories(export_to_arrow=True).to_arrow() if hasattr(booster, "get_categories") else None
    lacking = [name for name in coded if dict(known or ()).get(name) is None]
    strange = [name for name in given if name not in lacking]
    if strange:
        what = f"categories must name columns whose categories {path} lacks, {', '.join(lacking) or 'none'}; got "
        what += f"{strange[0]!r}."
        raise InvalidInputError(what).in_commands(f"--{what}")
    if not lacking:
        return str(path)
    content = json.loads(booster.save_raw("json"))
    part = content["learner"]["gradient_booster"]
    trees = part.get("gbtree", part)["model"]  # of DART, one further down
    n_codes = _count_codes(trees["trees"])
    for name in lacking:
        least, listed = n_codes.get(columns.index(name), 0), list(given.get(name, ()))
        if len(listed) < max(1, least) or len({*listed}) < len(listed):
            why = f"{path} was saved without its categories (XGBoost before 3.1), and codes of a table may differ"
            what = f"must list those of {name!r} in the order of their codes in training, at least {least} of them"
            cure = f"got {listed or 'none'}. Or save the model again with XGBoost 3.1"
            raise InvalidInputError(f"{why}: categories {what}; {cure}.").in_commands(
                f"{why}: --categories FILE.json {what}, as {{{json.dumps(name)}: [...]}}; {cure}."
            )
    if "cats" not in trees:
        raise InvalidInputError("categories needs XGBoost 3.1 or later, in which models hold them.")
    trees["cats"] = _stored([list(given.get(name, ())) for name in columns])
    return bytearray(json.dumps(content).encode())


def _count_codes(trees: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """By the position of a column, one more than the largest code that a tree mentions."""
    found: dict[int, int] = {}
    for tree in trees:
        for node, start, size in zip(
            tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True
        ):
            column, codes = tree["split_indices"][node], tree["categories"][start : start + size]
            found[column] = max([found.get(column, 0), *(int(code) + 1 for code in codes)])
    return found


def _stored(categories: list[list[Any]]) -> dict[str, Any]:
    """Categories of all columns in the form in which XGBoost stores them; 15 is its number for 64-bit integers."""
    encoded, order = [], []
    for listed in categories:
        keys: list[Any] = listed
        if listed and all(type(value) is int for value in listed):
            encoded.append({"type": 15, "values": listed})
        else:
            keys = [np.frombuffer(str(value).encode(), dtype=np.int8).tolist() for value in listed]
            offsets = np.cumsum([0, *map(len, keys)]).tolist() if listed else []
            encoded.append({"offsets": offsets, "values": [byte for key in keys for byte in key]})
        order += sorted(range(len(keys)), key=keys.__getitem__)
    return {
        "enc": encoded,
        "feature_segments": np.cumsum([0, *map(len, categories)]).tolist(),
        "sorted_idx": order,
    }


def _catboost(path: str | Path) -> Any:
    catboost = need("catboost", "A model of CatBoost")
    kind = "json" if str(path).lower().endswith(".json") else "cbm"
    model = catboost.CatBoost().load_model(str(path), format=kind)
    loss = str(model.get_all_params().get("loss_function", "")).partition(":")[0]
    classify = loss in ("Logloss", "CrossEntropy", "MultiClass", "MultiClassOneVsAll")
    found = (catboost.CatBoostClassifier if classify else catboost.CatBoostRegressor)()
    found.load_model(str(path), format=kind)
    return found


@dataclass(frozen=True, eq=False)
class OnnxModel:
    """A model with either one input of all columns, or one input for each column, under its name.

    Predictions are its last output: numbers, or probabilities of the classes. Numbers are rounded to the precision of
    the inputs, usually single.
    """

    session: Any

    @cached_property
    def _inputs(self) -> list[Any]:
        return list(self.session.get_inputs())

    @cached_property
    def _is_one_input(self) -> bool:
        shape = self._inputs[0].shape
        return len(self._inputs) == 1 and len(shape) == 2 and shape[1] != 1

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """Names of the inputs, if each is a column."""
        if self._is_one_input:
            raise AttributeError("feature_names_in_")
        return np.array([each.name for each in self._inputs], dtype=object)

    @property
    def n_features_in_(self) -> int:
        """Number of columns that it takes, if declared."""
        if not self._is_one_input:
            return len(self._inputs)
        width = self._inputs[0].shape[1]
        if not isinstance(width, int):
            raise AttributeError("n_features_in_")
        return width

    def __call__(self, X: Any) -> Any:
        """The model's last output for every row."""
        table = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
        fed = {}
        for position, each in enumerate(self._inputs):
            part: Any = table if self._is_one_input else table.iloc[:, [position]]
            kind = _TYPES[each.type]
            try:
                fed[each.name] = part.astype(str).to_numpy(kind) if kind is np.object_ else part.to_numpy(kind)
            except (TypeError, ValueError):
                raise InvalidInputError(
                    f"The input {each.name!r} of the ONNX model must hold numbers; a column given to it holds text."
                ) from None
        answers = self.session.run([self.session.get_outputs()[-1].name], fed)[0]
        if isinstance(answers, list) and answers and isinstance(answers[0], dict):  # a map from class to probability
            return pd.DataFrame(answers).to_numpy(np.float64)
        values = np.asarray(answers, dtype=np.float64)
        if values.ndim == 2 and values.shape[1] > 1:  # in single precision they add up to 1 only up to rounding
            values = values / values.sum(axis=1, keepdims=True)
        return values


def load_onnx(path: str | Path) -> OnnxModel:
    """Load a model from an ONNX file, which holds a graph of known operations and no other code."""
    runtime = need("onnxruntime", "A model in an ONNX file")
    if not Path(path).is_file():
        raise FileError(f"There is no model file {path}.")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # the last bits must not depend on threads
    try:
        session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime may raise anything
        raise FileError(f"Cannot read a model from {path}: {' '.join(str(error).split())[:200]}.") from None
    for each in session.get_inputs():
        if each.type not in _TYPES:
            raise FileError(f"{path} takes {each.type} as {each.name!r}; supported types are {', '.join(_TYPES)}.")
    return OnnxModel(session)


@dataclass(frozen=True)
class Endpoint:
    """A model that answers ``POST {"dataframe_split": {"columns": ..., "data": ...}}`` with ``{"predictions": ...}``.

    This is the protocol of MLflow's scoring server (``/invocations``). One number or one list of class probabilities is
    expected per row.
    """

    url: str

    def __call__(self, X: Any) -> Any:
        """Predictions for every row."""
        table = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
        parts = [self._ask(table.iloc[start : start + _AT_ONCE]) for start in range(0, len(table), _AT_ONCE)]
        return np.concatenate(parts)

    def _ask(self, rows: pd.DataFrame) -> Any:
        from urllib.request import Request, urlopen  # ssl and http take a while to import

        content = rows.to_json(orient="split", index=False, double_precision=15)
        body = f'{{"dataframe_split": {content}}}'.encode()
        request = Request(self.url, body, {"Content-Type": "application/json"})
        try:
            with urlopen(request, timeout=_SECONDS) as answer:
                found = json.loads(answer.read())
        except OSError as error:
            raise InvalidInputError(f"{self.url} must answer requests; it gave: {error}.") from None
        except ValueError:
            raise InvalidInputError(f"{self.url} must answer with JSON.") from None
        answers = found.get("predictions") if isinstance(found, dict) else found
        if not isinstance(answers, list) or len(answers) != len(rows):
            raise InvalidInputError(
                f'{self.url} must answer {len(rows):,} rows with {{"predictions": [...]}} of as many entries.'
            )
        return np.asarray(answers)
