"""What a guarantee costs in people: held-out ones who would get another decision, and who would get a wrong one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from likewise._typing import FloatArray
from likewise.report.data import PeopleCost
from likewise.selection.compare import Comparison
from likewise.selection.cross_validation import CVResult, Fold
from likewise.selection.methods import UNCONSTRAINED


def decide(result: CVResult, y: npt.NDArray[Any], classes: npt.NDArray[Any], folds: tuple[Fold, ...]) -> FloatArray:
    """Decisions about held-out people, as chances of the classes; NaN for people who were not measured.

    Of two classes, each goes to as many people of a fold as had it, by their scores; people with equal scores at the
    cut share what is left. Of more classes, the most likely one.

    Examples
    --------
    >>> predictions = np.array([[0.9, 0.1], [0.6, 0.4], [0.6, 0.4], [0.5, 0.5]])
    >>> shown = CVResult({}, np.zeros(4), predictions, True)
    >>> y, fold = np.array([0, 0, 1, 1]), Fold(np.arange(0), np.arange(4), np.arange(4))
    >>> decide(shown, y, np.array([0, 1]), (fold,))[:, 1].tolist()
    [0.0, 0.5, 0.5, 1.0]
    """
    found = np.full(result.predictions.shape, np.nan)
    for fold in folds:
        some = fold.test[~np.isnan(result.losses[fold.test])]
        if len(classes) > 2:
            found[some] = np.eye(len(classes))[result.predictions[some].argmax(axis=1)]
        else:
            second = _highest(result.predictions[some, 1].round(12), int((y[some] == classes[1]).sum()))
            found[some] = np.stack([1 - second, second], axis=1)
    return found


def _highest(scores: FloatArray, n: int) -> FloatArray:
    """1 for the `n` highest scores and 0 for the others; those at the cut share what is left."""
    if n == 0:
        return np.zeros(len(scores))
    cut = np.sort(scores)[-n]
    above, tied = scores > cut, scores == cut
    return np.asarray(above + tied * ((n - above.sum()) / tied.sum()))


def share_misranked(predictions: FloatArray, y: FloatArray) -> float:
    """Share of pairs of people with different outcomes whose predictions are in the other order; ties count half.

    Examples
    --------
    >>> share_misranked(np.array([1.0, 3.0, 2.0]), np.array([10.0, 20.0, 30.0]))
    0.3333333333333333
    """
    wrong, n_pairs = 0.0, 0
    for guess, outcome in zip(predictions, y, strict=True):
        higher = y > outcome
        wrong += (predictions[higher] < guess).sum() + 0.5 * (predictions[higher] == guess).sum()
        n_pairs += int(higher.sum())
    return float(wrong) / n_pairs if n_pairs else np.nan


def people_cost(
    comparison: Comparison, method: str, y: npt.NDArray[Any], classes: npt.NDArray[Any] | None, shown: int
) -> PeopleCost:
    """What a method costs against the unconstrained model, in held-out people; those who were measured by both."""
    folds = comparison.folds
    results = {name: found for name, found in comparison.results.items() if not np.isnan(found.losses).all()}
    if classes is None:
        wrong = {name: _by_fold(result, y, folds) for name, result in results.items()}
        other = rate = None
    else:
        decisions = {name: decide(result, y, classes, folds) for name, result in results.items()}
        true = np.searchsorted(classes, y)
        wrong = {name: 1 - chances[np.arange(len(y)), true] for name, chances in decisions.items()}
        other = float(np.nanmean(np.abs(decisions[method] - decisions[UNCONSTRAINED]).sum(axis=1) / 2))
        rate = float((y == classes[shown]).mean()) if len(classes) == 2 else None
    gap = wrong[method] - wrong[UNCONSTRAINED]
    gap = gap[~np.isnan(gap)]
    error = float(gap.std(ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else np.nan
    return PeopleCost(other, {name: float(np.nanmean(x)) for name, x in wrong.items()}, error, rate)


def _by_fold(result: CVResult, y: FloatArray, folds: tuple[Fold, ...]) -> FloatArray:
    tested = [fold.test[~np.isnan(result.losses[fold.test])] for fold in folds]
    return np.array([share_misranked(result.predictions[some], y[some]) for some in tested])
