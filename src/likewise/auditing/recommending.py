"""Which way to take: the best proper score among those that keep the promise, and the simplest of equals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from likewise.auditing.holdout import Fold, Showing
from likewise.auditing.measures import YARDSTICKS
from likewise.auditing.ways import CONSTANT
from likewise.models.pipelines import Task


@dataclass(frozen=True, eq=False)
class Recommendation:
    """A way that keeps the promise.

    Attributes
    ----------
    name : str
        Of the way.
    estimator : estimator
        Not yet fitted.
    reason : str
        Why this one, in words.
    constant_is_as_good : bool
        Whether nothing that keeps the promise is better than a constant; the constant is then what is recommended.
    """

    name: str
    estimator: Any
    reason: str
    constant_is_as_good: bool

    def fit(self, X: Any, y: Any) -> Any:
        """Fit a copy of the estimator on all of these people, and return it."""
        return clone(self.estimator).fit(X, y)

    def __str__(self) -> str:
        return self.reason


def recommend(
    showings: dict[str, Showing], estimators: dict[str, Any], folds: tuple[Fold, ...], task: Task
) -> Recommendation:
    """Choose among ways in the order of simplicity.

    The best mean loss decides, and of those within one standard error of it the simplest is taken.
    """
    kept = [name for name, showing in showings.items() if showing.keeps_promise]
    measure = YARDSTICKS[task][0]
    title, score = measure.title, measure.name
    best = min(kept, key=lambda name: showings[name].row[score])
    for chosen in kept:
        gap, error = difference(showings[chosen], showings[best], folds)
        if gap <= error or chosen == best:
            break

    score_of = {name: measure.in_words(showings[name].row[score]) for name in kept}
    title_of = {name: showings[name].row["title"] for name in kept}
    beside = f"A constant has {score_of[CONSTANT]}."
    if best == CONSTANT:
        reason = (
            f"A constant is as good: no way that keeps the promise has a better {title} than its {score_of[CONSTANT]}."
        )
    elif chosen == CONSTANT:
        reason = (
            f"A constant is as good: the best {title} of the ways that keep the promise, {score_of[best]} "
            f"({title_of[best]}), is within one standard error ({error:.2g}) of its {score_of[CONSTANT]}."
        )
    elif chosen == best:
        reason = (
            f"Best: {title_of[best]}. Its {title}, {score_of[best]}, is the lowest of the ways that keep the promise. "
            f"{beside}"
        )
    else:
        reason = (
            f"Best: {title_of[chosen]}. Its {title}, {score_of[chosen]}, is within one standard error ({error:.2g}) of "
            f"the lowest of the ways that keep the promise, {score_of[best]} ({title_of[best]}), which is less simple. "
            f"{beside}"
        )
    return Recommendation(chosen, estimators[chosen], reason, chosen == CONSTANT)


def difference(first: Showing, second: Showing, folds: tuple[Fold, ...]) -> tuple[float, float]:
    """By how much the losses of `first` are larger, on people on whom both were measured, with its standard error.

    Folds are compared one by one: what makes a fold hard for both does not blur the difference.
    """
    gap = first.losses - second.losses
    means = np.array([np.nanmean(gap[fold.held_out]) for fold in folds])
    return float(means.mean()), float(means.std(ddof=1) / np.sqrt(len(means)))
