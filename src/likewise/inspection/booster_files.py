"""Models of XGBoost, LightGBM and CatBoost in their own files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from likewise._optional import need
from likewise.exceptions import FileError

ENDINGS = (".json", ".ubj", ".txt", ".cbm")
"""XGBoost or CatBoost, XGBoost, LightGBM, CatBoost."""


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
    except Exception as error:  # of three libraries, anything
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
