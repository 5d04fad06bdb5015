"""How good answers are: figures of a fold, and the loss of each person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from likewise._typing import FloatArray
from likewise.models.pipelines import Task

_LEAST = 1e-15  # log loss of a probability of 0 is that of this one, as in scikit-learn


@dataclass(frozen=True)
class Yardstick:
    """A figure of a model.

    Attributes
    ----------
    name : str
        Column of a table.
    title : str
    higher_is_better : bool
    percent : bool
        Whether it reads best as a percentage.
    digits : int or None
        After the point; None for a figure in units of the outcome.
    """

    name: str
    title: str
    higher_is_better: bool
    percent: bool = False
    digits: int | None = None

    def in_words(self, value: float) -> str:
        """A value for a sentence."""
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


# The first of each is the proper score by which ways are chosen: its mean is smallest for true probabilities, or means.
YARDSTICKS: dict[Task, tuple[Yardstick, ...]] = {
    "classes": (
        Yardstick("brier", "Brier score", False, digits=4),
        Yardstick("auc", "AUC", True, digits=3),
        Yardstick("accuracy", "accuracy", True, percent=True),
        Yardstick("log_loss", "log loss", False, digits=3),
        Yardstick("confidence", "mean confidence", True, percent=True),
    ),
    "numbers": (
        Yardstick("squared_error", "squared error", False),
        Yardstick("r2", "R2", True, digits=3),
        Yardstick("rmse", "RMSE", False),
    ),
}


def losses_of(answers: FloatArray, outcomes: npt.NDArray[Any], classes: npt.NDArray[Any] | None) -> FloatArray:
    """The proper score of each person: half the squared distance of probabilities from the outcome, or squared error.

    For two classes, the first is ``(p - y)^2``.

    Examples
    --------
    >>> losses_of(np.array([[0.8, 0.2], [0.5, 0.5]]), np.array(["a", "b"]), np.array(["a", "b"])).round(2)
    array([0.04, 0.25])
    """
    if classes is None:
        return np.asarray((answers - outcomes) ** 2)
    return 0.5 * np.asarray(((answers - (outcomes[:, None] == classes)) ** 2).sum(axis=1))


def figures_of(answers: FloatArray, outcomes: npt.NDArray[Any], classes: npt.NDArray[Any] | None) -> dict[str, float]:
    """Figures of people with known outcomes, by the names of `YARDSTICKS`."""
    loss = float(losses_of(answers, outcomes, classes).mean())
    if classes is None:
        spread = float(np.var(outcomes))
        return {"squared_error": loss, "r2": 1 - loss / spread if spread else np.nan, "rmse": float(np.sqrt(loss))}
    true = np.searchsorted(classes, outcomes)
    given = answers[np.arange(len(answers)), true]
    return {
        "brier": loss,
        "auc": _area(answers, true),
        "accuracy": float((answers.argmax(axis=1) == true).mean()),
        "log_loss": float(-np.log(np.maximum(given, _LEAST)).mean()),
        "confidence": float(given.mean()),
    }


def _area(answers: FloatArray, true: npt.NDArray[Any]) -> float:
    """Area under the ROC curve; of several classes the mean of each against the others. NaN where one is absent."""
    from sklearn.metrics import roc_auc_score

    n_classes = answers.shape[1]
    if len(np.unique(true)) < n_classes:
        return np.nan
    of = [1] if n_classes == 2 else range(n_classes)
    return float(np.mean([roc_auc_score(true == k, answers[:, k]) for k in of]))
