"""Models of other tools: XGBoost, LightGBM and CatBoost in their own files, ONNX files, and models behind a URL."""

from __future__ import annotations

import json
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


def load_booster(path: str | Path) -> Any:
    """Load a model from a file of XGBoost (.json, .ubj), LightGBM (.txt) or CatBoost (.cbm, .json).

    These hold numbers and text only. The model has the methods of scikit-learn, and takes tables whose columns of
    categories have the type `category`.
    """
    ending = Path(path).suffix.lower()
    if not Path(path).is_file():
        raise FileError(f"There is no model file {path}.")
    try:
        if ending == ".txt":
            return _lightgbm(path)
        if ending == ".cbm" or (ending == ".json" and "oblivious_trees" in _keys(path)):
            return _catboost(path)
        if ending in (".json", ".ubj"):
            return _xgboost(path)
    except (FileError, ImportError):
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


def _xgboost(path: str | Path) -> Any:
    xgboost = need("xgboost", "A model of XGBoost")
    booster = xgboost.Booster()
    booster.load_model(str(path))
    objective = json.loads(booster.save_config())["learner"]["objective"]["name"]
    model = xgboost.XGBClassifier() if objective.startswith(("binary:", "multi:")) else xgboost.XGBRegressor()
    model.load_model(str(path))
    return model


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
