"""What a model says about people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import is_classifier

from likewise._checks import check_output_range
from likewise._typing import FloatArray, IntArray
from likewise.errors import InvalidInputError, InvalidTypeError
from likewise.metrics.people import People
from likewise.pairs.points import Points


@dataclass(frozen=True, eq=False)
class Population:
    """People, with a model's outputs in a form that is cheap to compare.

    Attributes
    ----------
    points : Points
    outputs : ndarray of shape (n_samples, n_outputs)
        ``unit * sum_k |outputs[a, k] - outputs[b, k]|`` is the difference between the people a and b: total
        variation of class probabilities, or absolute difference of predictions. The sum is at most 1.
    unit : float
        A power of two, so that leaving it out and putting it back costs no digit. 1 for probabilities.
    """

    points: Points
    outputs: FloatArray
    unit: float

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        points: Points,
        predictions: Any = None,
        output_range: tuple[float, float] | None = None,
    ) -> Population:
        """Ask `model` about `X`, or take `predictions`; differences are in units of the width of `output_range`."""
        if predictions is None:
            answers, probable = ask(model, X, points.people)
            guarantee = getattr(model, "guarantee_", None)
            output_range = output_range or getattr(guarantee, "output_range", None)
        else:
            answers, probable = _given(predictions, len(points), output_range)
        if probable:
            return cls(points, probability_outputs(answers), 1.0)
        if output_range is not None:
            low, high = check_output_range(output_range)
            answers = (answers - low) / (high - low)
        spread = float(np.ptp(answers))
        unit = float(np.exp2(np.ceil(np.log2(spread)))) if spread > 0 else 1.0
        return cls(points, (answers / unit)[:, None], unit)

    def differences(self, a: IntArray, b: IntArray) -> FloatArray:
        """Differences of outputs between the people a and b."""
        return np.asarray(self.unit * np.abs(self.outputs[a] - self.outputs[b]).sum(axis=1))


def ask(model: Any, X: Any, people: People) -> tuple[FloatArray, bool]:
    """The model's answers about people, and whether they are class probabilities; `X` is how they were given."""
    method = getattr(model, "predict_proba", None) or getattr(model, "predict", None)
    if method is None and not callable(model):
        raise InvalidTypeError(
            "model must have predict_proba or predict, or be a function of rows; "
            f"got {type(model).__name__}. Pass predictions= for a system that cannot be called."
        )
    rows = people.table
    known = getattr(model, "feature_names_in_", None)
    if known is not None and isinstance(rows, np.ndarray):  # scikit-learn checks names, or warns
        rows = X if hasattr(X, "columns") else pd.DataFrame(rows, columns=known)
    answer = np.asarray(model(rows) if method is None else method(rows))
    probable = hasattr(model, "predict_proba")
    if not probable and (is_classifier_like(model) or answer.dtype.kind not in "biuf"):
        labels = np.unique(answer)
        answer, probable = (answer[:, None] == labels).astype(np.float64), True
    answers = np.asarray(answer, dtype=np.float64)
    if answers.ndim == 2 and answers.shape[1] == 1:
        answers = answers[:, 0]  # probabilities of one class, or numbers
    probable = probable or answers.ndim == 2
    if answers.ndim not in (1, 2) or len(answers) != len(people):
        raise InvalidInputError(
            f"The model must answer once per row: {len(people)} rows gave an array of shape {answers.shape}."
        )
    if probable:
        _check_probabilities(answers, "The model's answers", "Let it return one number per row for other scores.")
    elif not np.isfinite(answers).all():
        raise InvalidInputError("The model predicted NaN or infinity; its predictions must be finite numbers.")
    return answers, probable


def is_classifier_like(model: Any) -> bool:
    """Whether scikit-learn holds the model for a classifier; False for functions and foreign objects."""
    return hasattr(model, "__sklearn_tags__") and is_classifier(model)


def _given(predictions: Any, n_samples: int, output_range: Any) -> tuple[FloatArray, bool]:
    try:
        answers = np.asarray(predictions, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"predictions must be numbers ({error}).") from None
    if answers.ndim == 2 and answers.shape[1] == 1:
        answers = answers[:, 0]
    if answers.ndim not in (1, 2) or len(answers) != n_samples:
        raise InvalidInputError(
            f"predictions must have one entry per row of X ({n_samples}); got an array of shape {answers.shape}."
        )
    if output_range is not None:
        low, high = check_output_range(output_range)
        wrong = ~((answers >= low) & (answers <= high))
        if answers.ndim != 1 or wrong.any():
            example = f"{answers[wrong][0]:g}" if wrong.any() else f"shape {answers.shape}"
            raise InvalidInputError(
                f"predictions must be one number per row in output_range, {output_range}; got {example}."
            )
        return answers, False
    _check_probabilities(answers, "predictions", "For predictions of another kind give output_range=(lowest, highest).")
    return answers, True


def _check_probabilities(answers: FloatArray, what: str, cure: str) -> None:
    wrong = ~((answers >= 0) & (answers <= 1))
    if wrong.any():
        raise InvalidInputError(f"{what} must be probabilities within [0, 1]; got {answers[wrong][0]:g}. {cure}")
    if answers.ndim == 2:
        sums = answers.sum(axis=1)
        off = np.flatnonzero(np.abs(sums - 1) > 1e-5)
        if off.size:
            raise InvalidInputError(
                f"{what} must sum to 1 over the classes in each row; row {off[0]} sums to {sums[off[0]]:g}. {cure}"
            )


def probability_outputs(answers: FloatArray) -> FloatArray:
    """Numbers whose absolute differences add up to the total variation between probabilities."""
    if answers.ndim == 1:
        return answers[:, None]
    if answers.shape[1] == 2:  # |p - p'| is the same for both classes
        return answers[:, 1:]
    return answers / 2  # TV = 1/2 sum_k |p_k - p'_k|
