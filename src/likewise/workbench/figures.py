"""What the page measures: scores of held-out people, with standard errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._typing import FloatArray
from likewise.selection.cross_validation import SCORES, Score, compute_scores


def figures(
    predictions: FloatArray, y: npt.NDArray[Any], classes: npt.NDArray[Any] | None, folds: npt.NDArray[Any]
) -> dict[str, float]:
    """The first two scores of `SCORES` with their standard errors, over folds as in `compare`; NaN for one fold.

    Parameters
    ----------
    predictions, y : ndarray
    classes : ndarray, or None for a regression
    folds : ndarray of int
        People who were held out together: each fold has a model of its own, so people are ranked within it.
    """
    members = (folds == fold for fold in np.unique(folds))
    parts = pd.DataFrame([compute_scores(predictions[each], y[each], classes) for each in members])
    first, second = (score.name for score in shown_scores(classes))
    means, errors = parts.mean(), parts.sem()
    return {
        "loss": float(means[first]),
        "loss_se": float(errors[first]),
        "second": float(means[second]),
        "second_se": float(errors[second]),
    }


def shown_scores(classes: npt.NDArray[Any] | None) -> tuple[Score, ...]:
    """The two scores that are shown."""
    return SCORES["regression" if classes is None else "classification"][:2]
