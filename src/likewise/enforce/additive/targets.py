"""What a fit aims at: outcomes, or the scores of another model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from likewise._checks import check_numbers
from likewise._typing import FloatArray
from likewise.errors import InvalidInputError
from likewise.metrics.people import People
from likewise.models.asking import is_plain_function

_SURE = 1e-6


def class_targets(y: npt.NDArray[Any], classes: npt.NDArray[Any], teacher: Any, people: People) -> FloatArray:
    """Probabilities to aim at, shape (n_classes, n_samples)."""
    if teacher is None:
        return np.asarray((classes[:, None] == y[None]).astype(np.float64))
    scores = _scores(teacher, people, "predict_proba")
    if scores.ndim == 1 and len(classes) == 2:
        scores = np.column_stack([1 - scores, scores])
    if scores.shape != (len(people), len(classes)):
        raise InvalidInputError(
            f"teacher must give one probability per class ({len(classes)}) and person ({len(people)}); got an array of "
            f"shape {scores.shape}. y must hold the teacher's classes."
        )
    known = getattr(teacher, "classes_", None)
    if known is not None and list(known) != classes.tolist():
        raise InvalidInputError(f"teacher must have the classes of y, {classes.tolist()}; it has {list(known)}.")
    total = scores.sum(axis=1, keepdims=True)
    if not ((scores >= 0).all() and (np.abs(total - 1) < 1e-3).all()):
        raise InvalidInputError("teacher must give probabilities: between 0 and 1, and adding up to 1 for each person.")
    # The log-odds of 0 and 1 have no limit, and no scorecard reaches them.
    return np.asarray(np.clip(scores / total, _SURE, 1 - _SURE).T)


def number_targets(y: npt.NDArray[Any], output_range: tuple[float, float], teacher: Any, people: People) -> FloatArray:
    """Numbers to aim at, as shares of the range around its middle, shape (1, n_samples)."""
    if teacher is not None:
        y = _scores(teacher, people, "predict").reshape(-1)
        if len(y) != len(people):
            raise InvalidInputError(f"teacher must give one number per person ({len(people)}); got {len(y)}.")
    low, high = output_range
    return np.asarray((np.clip(y, low, high) - low)[None] / (high - low) - 0.5)


def _scores(teacher: Any, people: People, method: str) -> FloatArray:
    ask = teacher if is_plain_function("teacher", teacher, (method,)) else getattr(teacher, method)
    scores = check_numbers("The teacher's answers", ask(people.table))
    if not np.isfinite(scores).all():
        raise InvalidInputError("teacher must give finite scores; got NaN or infinity.")
    return scores
