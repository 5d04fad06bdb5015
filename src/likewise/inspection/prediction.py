"""Predictions of models as votes: arrays of numbers that can be averaged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from likewise._typing import FloatArray
from likewise._validation import check_numbers
from likewise.ask import as_taken, method_of
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.inspection.preprocessing import unwrap

Decode = Callable[[FloatArray], Any]
"""From encoded rows to what the model takes."""

Vote = Callable[[FloatArray], FloatArray]
"""From rows (n_rows, n_features) to votes (n_rows, n_outputs), within known limits."""


def hard_votes(model: Any, classes: npt.NDArray[Any], decode: Decode | None = None) -> Vote:
    """One-hot predicted classes."""
    predict = _method(model, "predict", decode)

    def vote(rows: FloatArray) -> FloatArray:
        answer = np.asarray(predict(rows))
        if answer.ndim == 2 and answer.shape[1] == 1 and answer.dtype.kind != "f":
            answer = answer[:, 0]  # a column of labels
        scores = answer.ndim == 2 and answer.dtype.kind in "biuf"
        chosen = _two_columns(answer, classes).argmax(axis=1) if scores else _class_index(answer, classes)
        _check_length(chosen, rows)
        return np.eye(len(classes))[chosen]

    return vote


def soft_votes(model: Any, classes: npt.NDArray[Any], decode: Decode | None = None) -> Vote:
    """The model's own class probabilities."""
    predict_proba = _method(model, "predict_proba", decode)

    def vote(rows: FloatArray) -> FloatArray:
        answer = check_numbers("The estimator's probabilities", predict_proba(rows))
        answer = _two_columns(answer, classes) if answer.ndim == 2 else answer
        if answer.shape != (len(rows), len(classes)):
            raise InvalidInputError(
                f"With vote='soft' the estimator must return one probability per class, shape "
                f"({len(rows)}, {len(classes)}); got {answer.shape}. Use vote='hard' for labels."
            )
        # The guarantee rests on votes being probabilities; NaN fails every comparison.
        if not ((answer >= 0).all() and (np.abs(answer.sum(axis=1) - 1) <= 1e-5).all()):
            raise InvalidInputError(
                "With vote='soft' the estimator must return probabilities: non-negative, with sum 1 in each row. "
                "Use vote='hard' for other scores."
            )
        return np.asarray(answer / answer.sum(axis=1, keepdims=True))

    return vote


def tree_votes(model: Any, classes: npt.NDArray[Any]) -> Vote:
    """The share of a forest's trees that predict each class."""
    steps, forest = unwrap(model)
    trees = None if steps else getattr(forest, "estimators_", None)
    # A subclass of a tree may use other rows, and trees on subsets of columns would be given all of them.
    plain = trees is not None and all(type(tree) in (DecisionTreeClassifier, ExtraTreeClassifier) for tree in trees)
    if not plain or hasattr(forest, "estimators_features_"):
        raise InvalidTypeError(
            f"With vote='trees' the estimator must be a forest of classification trees; got {type(model).__name__}. "
            "Use vote='hard' or vote='soft'."
        )
    # Inside a forest, trees predict class indices.
    indices = np.arange(len(classes))
    single = [hard_votes(tree, indices) for tree in forest.estimators_]

    def vote(rows: FloatArray) -> FloatArray:
        total = single[0](rows)
        for tree in single[1:]:
            total += tree(rows)
        return total / len(single)

    return vote


def clipped_predictions(model: Any, output_range: tuple[float, float], decode: Decode | None = None) -> Vote:
    """The model's predictions, clipped to the output range."""
    predict = _method(model, "predict", decode)

    def vote(rows: FloatArray) -> FloatArray:
        answer = check_numbers("The estimator's predictions", predict(rows))
        if answer.ndim == 2 and answer.shape[1] == 1:
            answer = answer[:, 0]
        _check_length(answer, rows)
        if np.isnan(answer).any():
            raise InvalidInputError("The estimator predicted NaN; its predictions must be numbers.")
        return np.clip(answer, *output_range)[:, None]

    return vote


def scores_behind(model: Any, decode: Decode | None = None) -> Vote | None:
    """A classifier's probabilities or decision function, if it has any."""
    methods = ("predict_proba", "decision_function") if hasattr(model, "predict") else ("__call__",)
    name = next((name for name in methods if hasattr(model, name)), None)
    if name is None:
        return None
    method = _method(model, name, decode)

    def scores(rows: FloatArray) -> FloatArray:
        answer = np.asarray(method(rows))
        answer = answer if answer.dtype.kind in "biuf" else np.empty((len(rows), 0))  # text labels
        return answer.reshape(len(rows), -1).astype(np.float64)

    return scores


def _method(model: Any, name: str, decode: Decode | None) -> Callable[[FloatArray], Any]:
    """The model's method, or the model itself if it is a function, for encoded rows."""
    method = method_of(model, name)
    if decode is not None:
        return lambda rows: method(decode(rows))
    if getattr(model, "feature_names_in_", None) is None:
        return method
    return lambda rows: method(as_taken(model, rows))


def _two_columns(answer: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """One column per class; a single column is the probability of the second of two classes."""
    if answer.shape[1] == 1 and len(classes) == 2:
        # NaN fails every comparison.
        if not ((answer >= 0) & (answer <= 1)).all():
            raise InvalidInputError(
                f"The estimator's single column must hold probabilities of class {classes[1]!s}, between 0 and 1; got "
                f"{answer[~((answer >= 0) & (answer <= 1))][0]:g}. Return labels, or one score per class."
            )
        return np.concatenate([1 - answer, answer], axis=1)
    if answer.shape[1] != len(classes):
        raise InvalidInputError(
            f"The estimator must return labels, or one score per class, in the order {list(classes)}; got "
            f"{answer.shape[1]} columns for {len(classes)} classes."
        )
    return answer


def _class_index(labels: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    index = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    unknown = classes[index] != labels
    if unknown.any():
        raise InvalidInputError(
            f"The estimator predicted {labels[unknown][0]!r}, which is not among the classes {list(classes)}."
        )
    return index


def _check_length(answer: npt.NDArray[Any], rows: FloatArray) -> None:
    if answer.shape != (len(rows),):
        raise InvalidInputError(
            f"The estimator must return one value per row: {len(rows)} rows gave an array of shape {answer.shape}."
        )
