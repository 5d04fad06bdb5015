"""What the page measures: scores of held-out people with standard errors, and all pairs of a sample of people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from likewise._subsample import evenly_spaced
from likewise._typing import FloatArray, IntArray
from likewise.inspection.baselines import proper_losses
from likewise.kernel.metric import BoundMetric

_MAX_PAIRED = 700  # people whose pairs are compared
_OFTEN, _LOOKED_AT = 2, 2000  # how often a person may be in a case; pairs to choose from
TITLES = {"classification": ("Brier score", "AUC"), "regression": ("squared error", "R²")}


def figures(
    predictions: FloatArray,
    constant: FloatArray,
    y: npt.NDArray[Any],
    classes: npt.NDArray[Any] | None,
    folds: npt.NDArray[Any],
) -> dict[str, float | None]:
    """Mean loss and AUC (for a regression R²), each with its standard error; None where it is not defined.

    Parameters
    ----------
    predictions, constant : ndarray
        Of the model, and of the best constant for those trained on, which R² compares it with.
    y : ndarray
    classes : ndarray, or None for a regression
    folds : ndarray of int
        People who were held out together. People are ranked among these, since each fold has a model of its own.
    """
    losses = proper_losses(predictions, y, classes)
    n = len(losses)
    mean, error = float(losses.mean()), float(losses.std(ddof=1) / np.sqrt(n)) if n > 1 else None
    if classes is None:
        second, influence = _r_squared(losses, proper_losses(constant, y, None))
    else:
        second, influence = _auc_of_folds(predictions, np.searchsorted(classes, y), folds)
    if second is None or influence is None:
        return {"loss": mean, "loss_se": error, "second": None, "second_se": None}
    return {"loss": mean, "loss_se": error, "second": second, "second_se": float(np.sqrt((influence**2).sum()))}


def _auc_of_folds(
    predictions: FloatArray, true: npt.NDArray[Any], folds: npt.NDArray[Any]
) -> tuple[float | None, FloatArray | None]:
    """Mean AUC of the folds that have every class, by their sizes."""
    found = [(chosen, *auc_with_influence(predictions[chosen], true[chosen])) for chosen in _members(folds)]
    parts = [(len(chosen), area, influence) for chosen, area, influence in found if area is not None]
    n = sum(size for size, _, _ in parts)
    if not n:
        return None, None
    influences = [size / n * influence for size, _, influence in parts if influence is not None]
    return sum(size / n * area for size, area, _ in parts), np.concatenate(influences)


def _members(folds: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    return [np.flatnonzero(folds == fold) for fold in np.unique(folds)]


def auc_with_influence(predictions: FloatArray, true: npt.NDArray[Any]) -> tuple[float | None, FloatArray | None]:
    """AUC, one class against the rest, averaged; and what each person adds to its error.

    The sum of the squared influences is the variance of DeLong, DeLong and Clarke-Pearson (1988), but for factors
    ``n / (n - 1)``.
    """
    n_classes = predictions.shape[1]
    if len(np.unique(true)) < n_classes:
        return None, None
    chosen = [1] if n_classes == 2 else range(n_classes)
    total, influence = 0.0, np.zeros(len(true))
    for k in chosen:
        positive, scores = true == k, predictions[:, k]
        m, n = int(positive.sum()), int((~positive).sum())
        ranks = rankdata(scores)
        # Share of the other class that is ranked below (for a positive) or above (for a negative).
        placement = np.empty(len(true))
        placement[positive] = (ranks[positive] - rankdata(scores[positive])) / n
        placement[~positive] = 1 - (ranks[~positive] - rankdata(scores[~positive])) / m
        area = float(placement[positive].mean())
        total += area
        influence += np.where(positive, (placement - area) / m, (placement - area) / n)
    return total / len(chosen), influence / len(chosen)


def _r_squared(losses: FloatArray, of_constant: FloatArray) -> tuple[float | None, FloatArray | None]:
    """One minus the ratio of two mean losses; and what each person adds to its error, by the delta method."""
    base = float(of_constant.mean())
    if base == 0:
        return None, None
    ratio = float(losses.mean()) / base
    return 1 - ratio, (losses - ratio * of_constant) / (base * len(losses))


@dataclass(frozen=True, eq=False)
class PairSample:
    """All pairs of an even sample of people.

    Attributes
    ----------
    people : ndarray of shape (n, n_columns)
        Their rows of numbers.
    a, b : ndarray of shape (n_pairs,)
        The rows of each pair, in the table.
    """

    people: FloatArray
    a: IntArray
    b: IntArray

    @classmethod
    def of(cls, rows: FloatArray) -> PairSample:
        """Every two people of the sample."""
        chosen = evenly_spaced(len(rows), _MAX_PAIRED) if len(rows) > 1 else np.arange(len(rows))
        i, j = np.triu_indices(len(chosen), 1)
        return cls(rows[chosen], chosen[i], chosen[j])

    def distances(self, metric: BoundMetric) -> FloatArray:
        """Distances of all pairs."""
        return metric.pairwise(self.people, self.people)[np.triu_indices(len(self.people), 1)]

    def varied(self, ordered: IntArray, n_pairs: int) -> list[int]:
        """The first `n_pairs` of some pairs, nobody in more than two of them."""
        found: list[int] = []
        times: dict[int, int] = {}
        for k in ordered[:_LOOKED_AT].tolist():
            two = int(self.a[k]), int(self.b[k])
            if len(found) < n_pairs and all(times.get(one, 0) < _OFTEN for one in two):
                found.append(k)
                times |= {one: times.get(one, 0) + 1 for one in two}
        return found


def output_gaps(a: FloatArray, b: FloatArray, output_range: tuple[float, float] | None) -> FloatArray:
    """Differences of outputs: in total variation, or as shares of the range, to which predictions are cut."""
    if a.ndim == 2:
        return np.asarray(np.abs(a - b).sum(axis=1) / 2)
    low, high = output_range or (0.0, 1.0)
    return np.asarray(np.abs(np.clip(a, low, high) - np.clip(b, low, high)) / (high - low))
