"""What the page measures: scores of held-out people with standard errors, and all pairs of a sample of people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._subsample import evenly_spaced
from likewise._typing import FloatArray, IntArray
from likewise.kernel.metric import BoundMetric
from likewise.selection.cross_validation import SCORES, Score, compute_scores

_MAX_PAIRED = 700  # people whose pairs are compared
_OFTEN, _LOOKED_AT = 2, 2000  # how often a person may be in a case; pairs to choose from


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
