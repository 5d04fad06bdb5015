"""What a model says of people it has not seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, StratifiedKFold

from likewise._progress import progress_bar
from likewise._typing import FloatArray, IntArray
from likewise.enforce.wrapping import fit_weighted
from likewise.errors import InvalidInputError
from likewise.metrics.people import People
from likewise.models.asking import is_plain_function
from likewise.models.folds import positions_by
from likewise.models.votes import clipped_predictions, hard_votes, soft_votes

_FOLDS = 5


def scores_of(
    model: Any, people: People, classes: npt.NDArray[Any] | None, limits: tuple[float, float] = (0.0, 1.0)
) -> FloatArray:
    """What a fitted model or a function says of people, between 0 and 1.

    The probability of the second of two classes (0 or 1 if the model has labels only), or a prediction as a share of
    its limits.
    """
    if classes is None:
        low, high = limits
        return np.clip((clipped_predictions(model, limits)(people.table)[:, 0] - low) / (high - low), 0.0, 1.0)
    if hasattr(model, "predict_proba"):
        return soft_votes(model, classes)(people.table)[:, 1]
    if hasattr(model, "predict"):
        return hard_votes(model, classes)(people.table)[:, 1]
    answer = np.asarray(model(people.table))
    if answer.ndim == 1 and answer.dtype.kind not in "biuf":
        return hard_votes(lambda _: answer, classes)(people.table)[:, 1]
    # One number per person is the probability of the second class.
    return soft_votes(lambda _: answer[:, None] if answer.ndim == 1 else answer, classes)(people.table)[:, 1]


def out_of_fold_scores(
    estimator: Any,
    people: People,
    y: npt.NDArray[Any],
    weights: FloatArray | None,
    classes: npt.NDArray[Any] | None,
    limits: tuple[float, float],
    *,
    cv: Any,
    seed: int,
    verbose: bool = False,
) -> FloatArray:
    """Scores of each person by a model that was fitted without that person; a frozen model or a function as it is."""
    if not is_trained_here(estimator):
        return scores_of(estimator, people, classes, limits)
    scores = np.full(len(people), np.nan)
    folds = folds_for(people, y, classes, cv, seed)
    with progress_bar("Fitting", len(folds), show=verbose) as advance:
        for train, test in folds:
            model = fit_weighted(
                estimator, people.take(train).table, y[train], None if weights is None else weights[train]
            )
            scores[test] = scores_of(model, people.take(test), classes, limits)
            advance(1)
    if np.isnan(scores).any():
        raise InvalidInputError(f"cv must hold out every person once; row {int(np.isnan(scores).argmax())} never is.")
    return scores


def is_trained_here(estimator: Any) -> bool:
    """Whether there is something to train: not for a frozen model, nor for a plain function."""
    return not is_plain_function("estimator", estimator) and not isinstance(estimator, FrozenEstimator)


def folds_for(
    people: People, y: npt.NDArray[Any], classes: npt.NDArray[Any] | None, cv: Any, seed: int
) -> list[tuple[IntArray, IntArray]]:
    """Who trains and who is held out, in turn; without `cv`, in five shuffled folds."""
    if cv is None:
        least = len(y) if classes is None else int(np.unique(y, return_counts=True)[1].min())
        if least < 2:
            raise InvalidInputError(
                "y must hold each class at least twice: a model is fitted without each person in turn."
            )
        cv = (KFold if classes is None else StratifiedKFold)(min(_FOLDS, least), shuffle=True, random_state=seed)
    return positions_by(cv, people.rows, y, classify=classes is not None)
