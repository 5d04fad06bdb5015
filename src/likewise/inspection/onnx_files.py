"""Models in ONNX files, run by onnxruntime."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._optional import need
from likewise.exceptions import FileError, InvalidInputError

_TYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(string)": np.object_,
}


@dataclass(frozen=True, eq=False)
class OnnxModel:
    """A model with either one input of all columns, or one input for each column, under its name.

    The answers are its last output: numbers, or probabilities of the classes. Numbers are rounded to the precision of
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
        """Columns that it takes, if it says how many."""
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
        if values.ndim == 2 and values.shape[1] > 1:  # in single precision they add up to 1 but for rounding
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
    except Exception as error:  # of onnxruntime, anything
        raise FileError(f"Cannot read a model from {path}: {' '.join(str(error).split())[:200]}.") from None
    for each in session.get_inputs():
        if each.type not in _TYPES:
            raise FileError(f"{path} takes {each.type} as {each.name!r}; the types known are {', '.join(_TYPES)}.")
    return OnnxModel(session)
