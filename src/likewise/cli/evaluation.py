"""How wide the noise of a smoothed model is, beside the people it is added to."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.model_selection import train_test_split

from likewise._typing import FloatArray, IntArray
from likewise.exceptions import InvalidInputError
from likewise.metrics.units import number

_LEAST_PEOPLE = 20
_MOST_MEASURED = 2000
PROMISED, CONSTANT = "with the promise", "a constant"


def hold_out(y: npt.NDArray[Any], share: float, *, classify: bool) -> tuple[IntArray, IntArray] | None:
    """Positions of people to learn from and of people to measure on; None if there are too few."""
    if not 0 <= share < 1:
        raise InvalidInputError(f"--holdout must be a share of the people, at least 0 and below 1; got {share:g}.")
    n_measured = min(int(share * len(y)), _MOST_MEASURED)
    if len(y) < _LEAST_PEOPLE or not n_measured:
        return None
    counts = np.unique(y, return_counts=True)[1] if classify else np.array([len(y)])
    if counts.min() < 2:
        return None
    kinds = y if classify and n_measured >= len(counts) else None
    learn, measure = train_test_split(np.arange(len(y)), test_size=n_measured, random_state=0, stratify=kinds)
    return learn, measure


def measure_models(
    models: dict[str, Any], X: pd.DataFrame, y: npt.NDArray[Any], y_learned: npt.NDArray[Any], *, classify: bool
) -> pd.DataFrame:
    """Scores of fitted models on the people in `X`, and of the best constant that could be learned.

    Classes: accuracy, and the Brier score ``mean(sum_k (p_k - 1[y = k])^2) / 2`` (0 is best). Numbers: R2, and the root
    of the mean squared error.
    """
    rows = []
    if classify:
        classes, counts = np.unique(y_learned, return_counts=True)
        truth = (y[:, None] == classes).astype(np.float64)
        answers = {name: _aligned(model, X, classes) for name, model in models.items()}
        answers[CONSTANT] = np.broadcast_to(counts / counts.sum(), truth.shape)
        for name, p in answers.items():
            right = float((classes[p.argmax(axis=1)] == y).mean())
            rows.append((name, right, float(((p - truth) ** 2).sum(axis=1).mean() / 2)))
        return pd.DataFrame(rows, columns=["model", "accuracy", "Brier score"])
    predictions = {name: np.asarray(model.predict(X), dtype=np.float64) for name, model in models.items()}
    predictions[CONSTANT] = np.full(len(y), y_learned.mean())
    for name, predicted in predictions.items():
        error = float(np.mean((predicted - y) ** 2))
        rows.append((name, 1 - error / float(np.var(y)) if np.ptp(y) else np.nan, float(np.sqrt(error))))
    return pd.DataFrame(rows, columns=["model", "R2", "RMSE"])


def is_no_better_than_constant(scores: pd.DataFrame) -> bool:
    """Whether the constant has as good a proper score as the model with the promise."""
    error = scores.set_index("model")["Brier score" if "Brier score" in scores else "RMSE"]
    return bool(error[PROMISED] >= error[CONSTANT])


def _aligned(model: Any, X: pd.DataFrame, classes: npt.NDArray[Any]) -> FloatArray:
    return np.asarray(model.predict_proba(X), dtype=np.float64)[:, np.searchsorted(model.classes_, classes)]


_DRAWS = 20_000
_SHARE = 0.95


def noise_widths(model: Any, X: pd.DataFrame) -> pd.DataFrame | None:
    """Per numeric column that matters: lowest and highest value, and ``noise``, within which 19 of 20 draws lie.

    None for a model without noise.
    """
    noise = getattr(model, "noise_", None)
    if noise is None:
        return None
    drawn = noise.sample(_DRAWS, np.random.default_rng(0))
    widths = np.quantile(np.abs(drawn), _SHARE, axis=0)
    names = noise.metric.feature_names or model.encoder_.names
    rows = [
        (name, float(X[name].min()), float(X[name].max()), float(width))
        for name, width in zip(names, widths, strict=True)
        if width > 0 and pd.api.types.is_numeric_dtype(X[name].dtype)
    ]
    return pd.DataFrame(rows, columns=["column", "lowest", "highest", "noise"])


def wider_than_data(widths: pd.DataFrame) -> list[str]:
    """Columns in which the noise reaches further than from the lowest value to the highest."""
    return widths["column"][2 * widths["noise"] > widths["highest"] - widths["lowest"]].tolist()


def shown_widths(widths: pd.DataFrame) -> pd.DataFrame:
    """The same as text: years read 2004, and large amounts 120,000."""
    return pd.DataFrame(
        {
            "column": widths["column"],
            "people": [
                f"{number(a, 4)} to {number(b, 4)}" for a, b in zip(widths["lowest"], widths["highest"], strict=True)
            ],
            "noise": [f"± {number(float(f'{width:.3g}'))}" for width in widths["noise"]],
        }
    )
