"""Cross-validation of one method: its scores, violations, guarantee and costs on held-out people."""

from __future__ import annotations

import pickle
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold

from likewise._guarantee_warnings import VacuousGuaranteeWarning
from likewise._inner_estimator import positions_by, reuse_fits
from likewise._parallel import threads_for
from likewise._progress import progress_bar
from likewise._subsample import evenly_spaced
from likewise._typing import FloatArray, IntArray
from likewise._validation import check_count
from likewise.ask import Recorded, method_of
from likewise.auditing.audit import audit, tolerance_under
from likewise.base import ConstrainedEstimator
from likewise.exceptions import InvalidInputError, LikewiseError
from likewise.inspection.baselines import Task, proper_losses
from likewise.metrics.base import Metric, check_metric
from likewise.selection.methods import METHODS, LearningProblem, Method

_LEAST_PROBABILITY = 1e-15  # in log loss, as in scikit-learn
_LEVELS = ("exact", "deterministic", "sampled")  # of a guarantee, the strongest first


@dataclass(frozen=True)
class Score:
    """A score of a model.

    Attributes
    ----------
    name : str
        Column of a table.
    title : str
    higher_is_better : bool
    percent : bool
        Whether it is shown as a percentage.
    digits : int or None
        Decimals; None for a score in units of the outcome.
    """

    name: str
    title: str
    higher_is_better: bool
    percent: bool = False
    digits: int | None = None

    def format(self, value: float) -> str:
        """A value for a sentence."""
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


# The first score of each task is proper (its mean is smallest at the true probabilities or means); it selects a method.
SCORES: dict[Task, tuple[Score, ...]] = {
    "classification": (
        Score("brier", "Brier score", False, digits=4),
        Score("auc", "AUC", True, digits=3),
        Score("accuracy", "accuracy", True, percent=True),
        Score("log_loss", "log loss", False, digits=3),
        Score("confidence", "mean confidence", True, percent=True),
    ),
    "regression": (
        Score("squared_error", "squared error", False),
        Score("r2", "R2", True, digits=3),
        Score("rmse", "RMSE", False),
    ),
}


def compute_scores(predictions: FloatArray, y: npt.NDArray[Any], classes: npt.NDArray[Any] | None) -> dict[str, float]:
    """All scores of `SCORES`, by name."""
    loss = float(proper_losses(predictions, y, classes).mean())
    if classes is None:
        variance = float(np.var(y))
        return {"squared_error": loss, "r2": 1 - loss / variance if variance else np.nan, "rmse": float(np.sqrt(loss))}
    true = np.searchsorted(classes, y)
    of_true = predictions[np.arange(len(predictions)), true]
    return {
        "brier": loss,
        "auc": _roc_auc(predictions, true),
        "accuracy": float((predictions.argmax(axis=1) == true).mean()),
        "log_loss": float(-np.log(np.maximum(of_true, _LEAST_PROBABILITY)).mean()),
        "confidence": float(of_true.mean()),
    }


def _roc_auc(predictions: FloatArray, true: npt.NDArray[Any]) -> float:
    """Area under the ROC curve, one class against the rest, averaged; NaN where a class is absent."""
    from sklearn.metrics import roc_auc_score

    n_classes = predictions.shape[1]
    if len(np.unique(true)) < n_classes:
        return np.nan
    positive = [1] if n_classes == 2 else range(n_classes)
    return float(np.mean([roc_auc_score(true == k, predictions[:, k]) for k in positive]))


@dataclass(frozen=True, eq=False)
class Fold:
    """Positions of people.

    Attributes
    ----------
    train, test : ndarray of int
    sample : ndarray of int
        Positions within `test` of the people whose pairs are searched, and on whom slow methods are measured.
    metric : Metric, optional
        Made from those in `train` alone; None if there is one metric for all folds.
    """

    train: IntArray
    test: IntArray
    sample: IntArray
    metric: Metric | None = None


def make_folds(
    problem: LearningProblem, cv: Any, n_people: Any, made_by: Callable[[Any, Any], Metric] | None, *, verbose: bool
) -> tuple[Fold, ...]:
    """Folds shared by all methods, with the metrics that `made_by` makes from those who are trained on in each.

    An integer `cv` is shuffled and, for classes, stratified.
    """
    n_people = check_count("n_people", n_people, min_value=2, hint="Pairs are searched among them.")
    if isinstance(cv, int) and not isinstance(cv, bool):
        check_count("cv", cv, min_value=2, hint="Someone must be held out.")
        _check_enough(problem, cv)
        splitter = KFold if problem.classes is None else StratifiedKFold
        cv = splitter(cv, shuffle=True, random_state=problem.seed)
    splits = positions_by(cv, problem.people.table, problem.y, classify=problem.classes is not None)
    if len(splits) < 2:
        raise InvalidInputError(f"cv must give at least two folds, for standard errors; got {len(splits)}.")
    folds = [Fold(train, test, _even_sample(problem.y[test], n_people)) for train, test in splits]
    if made_by is None:
        return tuple(folds)
    with progress_bar(f"Making the metric on {len(folds)} folds", len(folds), show=verbose) as advance:
        for i, fold in enumerate(folds):
            metric = check_metric(made_by(problem.people.take(fold.train).table, problem.y[fold.train]))
            folds[i] = replace(fold, metric=metric)
            advance(1)
    return tuple(folds)


def _check_enough(problem: LearningProblem, n_folds: int) -> None:
    if problem.classes is None:
        fewest, who = len(problem.y), "people"
    else:
        labels, counts = np.unique(problem.y, return_counts=True)
        fewest, who = int(counts.min()), f"people of class {labels.tolist()[counts.argmin()]!r}"
    if fewest < n_folds:
        raise InvalidInputError(f"cv must not be above the number of {who} ({fewest}); got {n_folds}. Use fewer folds.")


def _even_sample(y: npt.NDArray[Any], size: int) -> IntArray:
    """Positions of at most `size` people, evenly over the sorted outcomes, in the order of the table."""
    order = np.argsort(y, kind="stable")
    return np.sort(order[evenly_spaced(len(order), size)])


@dataclass(frozen=True, eq=False)
class CVResult:
    """A method as measured on held-out people.

    Attributes
    ----------
    row : dict
        Of a table: scores with their standard errors, violations, guarantee and costs.
    losses : ndarray of shape (n_samples,)
        `proper_losses` of each person when held out; NaN for people who were not measured.
    predictions : ndarray of shape (n_samples, n_classes), or (n_samples,) for a regression
        Outputs for each person when held out; NaN likewise.
    keeps_guarantee : bool
        Whether it guarantees this metric, and no violating pair was found.
    model : fitted model, or None
        Of the first fold.
    """

    row: dict[str, Any]
    losses: FloatArray
    predictions: FloatArray
    keeps_guarantee: bool
    model: Any = None


class FoldFits:
    """Models fitted on folds, for methods that fit an equal one inside: a card, or boosting.

    Attributes
    ----------
    problem : LearningProblem
        Its people and outcomes are those of the folds.
    folds : tuple of Fold
    """

    def __init__(self, problem: LearningProblem, folds: tuple[Fold, ...]) -> None:
        self.problem, self.folds = problem, folds
        self._fits: dict[tuple[str, int], tuple[Any, float]] = {}
        self._seconds = 0.0

    def add(self, estimator: Any, fold: int, model: Any, seconds: float) -> None:
        """Keep what a clone of `estimator` became on a fold, and how long that took."""
        key = _hash(clone(estimator))
        if key is not None:
            self._fits[key, fold] = model, seconds

    def find(self, estimator: Any, table: Any, y: npt.NDArray[Any]) -> Any:
        """A model fitted to these people, now or before; None if they are not those of a fold."""
        key = _hash(estimator)
        if key is None:
            return None
        for i, fold in enumerate(self.folds):
            is_same = np.array_equal(y, self.problem.y[fold.train])
            if is_same and _equal_rows(table, self.problem.people.take(fold.train).table):
                if (key, i) in self._fits:
                    model, seconds = self._fits[key, i]
                    self._seconds += seconds
                else:
                    start = time.perf_counter()
                    model = estimator.fit(table, y)
                    self._fits[key, i] = model, time.perf_counter() - start
                return model
        return None

    def pop_seconds(self) -> float:
        """How long the fits took that were found since the last call."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds


def _hash(estimator: Any) -> str | None:
    """The same for unfitted estimators of equal parameters; None where these cannot be hashed."""
    try:
        return str(joblib.hash(estimator))
    except (AttributeError, TypeError, pickle.PicklingError):  # such as a function without a name
        return None


def _equal_rows(one: Any, other: Any) -> bool:
    return bool(pd.DataFrame(one).reset_index(drop=True).equals(pd.DataFrame(other).reset_index(drop=True)))


def cross_validate_method(method: Method, problem: LearningProblem, fits: FoldFits, *, title: str = "") -> CVResult:
    """Fit a method on each fold and measure it there; a method that does not apply is skipped, with the reason.

    With a `title`, a progress bar is shown.
    """
    if method.estimator is None:
        return _skipped(method, problem, method.why_not)
    fits.pop_seconds()
    losses, predictions = _unmeasured(problem)
    vacuous, folds, measured, first = list[str](), fits.folds, list[dict[str, float]](), None
    try:
        with (
            progress_bar(title, len(folds), show=bool(title)) as advance,
            threads_for(problem.people.rows.size),
            reuse_fits(fits.find),
            _collect_vacuous(vacuous),
        ):
            for i, fold in enumerate(folds):
                own = problem.in_fold(fold.metric)
                estimator = clone(method.estimator)
                if fold.metric is not None and isinstance(estimator, ConstrainedEstimator):
                    estimator = estimator.with_metric(own.metric)
                start = time.perf_counter()
                model = clone(estimator).fit(problem.people.take(fold.train).table, problem.y[fold.train])
                seconds = time.perf_counter() - start
                fits.add(estimator, i, model, seconds)
                tested = fold.test[fold.sample] if method.is_slow else fold.test
                predictions[tested], found = _measure(model, own, fold, tested)
                losses[tested] = proper_losses(predictions[tested], problem.y[tested], problem.classes)
                measured.append(found | {"fit_time": seconds, "reused_seconds": fits.pop_seconds()})
                first = model if first is None else first
                advance(1)
    except (TypeError, ValueError) as error:
        if not method.may_fail:
            if isinstance(error, LikewiseError) or method.name not in METHODS:  # a user's model raises its own error
                raise
            words = " ".join(str(error).split())
            raise InvalidInputError(f"The model {method.title!r} cannot take these people ({words}).") from error
        return _skipped(method, problem, str(error))
    row = _summary(method, problem, folds, pd.DataFrame(measured))
    if vacuous:
        row["note"] = "; ".join(filter(None, [row["note"], "guarantees almost nothing: " + vacuous[0]]))
    kept = bool(row["guarantee"]) and row["violations"] == 0
    return CVResult(row, losses, predictions, kept, first)


def _skipped(method: Method, problem: LearningProblem, reason: str) -> CVResult:
    row = {"title": method.title, "guarantee": False, "note": f"skipped: {reason}"}
    return CVResult(row, *_unmeasured(problem), False)


def _unmeasured(problem: LearningProblem) -> tuple[FloatArray, FloatArray]:
    """Losses and predictions before anyone is measured."""
    n = len(problem.y)
    return np.full(n, np.nan), np.full(n if problem.classes is None else (n, len(problem.classes)), np.nan)


@contextmanager
def _collect_vacuous(messages: list[str]) -> Iterator[None]:
    """Collect warnings of vacuous guarantees, for a note; issue other warnings once, not once per fold."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", VacuousGuaranteeWarning)
        yield
    for one in {(one.category, str(one.message)): one for one in caught}.values():
        if issubclass(one.category, VacuousGuaranteeWarning):
            messages.append(str(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def _measure(
    model: Any, problem: LearningProblem, fold: Fold, tested: IntArray
) -> tuple[npt.NDArray[np.float64], dict[str, float]]:
    """Predictions for those who are tested, and all numbers of the fold."""
    table = problem.people.take(tested).table
    predict = method_of(model, "predict" if problem.classes is None else "predict_proba")
    predict(table[:2])  # compiled, or read from the cache, before the clock starts
    start = time.perf_counter()
    predictions = np.asarray(predict(table), dtype=np.float64)
    seconds = time.perf_counter() - start
    if problem.classes is not None:
        predictions = align_classes(predictions, model.classes_, problem.classes)
    guarantee = getattr(model, "guarantee_", None)
    if guarantee is not None and not guarantee.bound_metric.is_of(problem.metric):
        guarantee = None
    searched = predictions if len(tested) == len(fold.sample) else predictions[fold.sample]
    found = audit(
        Recorded(searched),
        problem.people.take(fold.test[fold.sample]).table,
        problem.metric,
        output_range=problem.output_range,
        tolerance=tolerance_under(guarantee),
        n_worst=1,
    )
    return predictions, {
        **compute_scores(predictions, problem.y[tested], problem.classes),
        "people": len(tested),
        "violations": found.n_violations,
        "pairs": len(searched) * (len(searched) - 1) // 2,
        "level": _LEVELS.index(guarantee.level) if guarantee else -1,
        "epsilon": guarantee.epsilon if guarantee else np.nan,
        "evaluations": (guarantee.n_draws or 1) if guarantee else 1,
        "microseconds": 1e6 * seconds / len(tested),
    }


def align_classes(predictions: FloatArray, known: npt.NDArray[Any], classes: npt.NDArray[Any]) -> FloatArray:
    """Probabilities of all `classes`, from those of the `known` ones; 0 for a class that the model has not seen."""
    if np.array_equal(known, classes):
        return predictions
    aligned, shared = np.zeros((len(predictions), len(classes))), np.isin(known, classes)
    aligned[:, np.searchsorted(classes, known[shared])] = predictions[:, shared]
    return aligned


def _summary(method: Method, problem: LearningProblem, folds: tuple[Fold, ...], parts: pd.DataFrame) -> dict[str, Any]:
    """A row of the table: means and standard errors over folds, sums of counts, and the weakest guarantee."""
    row: dict[str, Any] = {"title": method.title}
    for score in SCORES[problem.task]:
        values = parts[score.name]
        row[score.name] = float(values.mean())
        row[f"{score.name}_se"] = float(values.std(ddof=1) / np.sqrt(len(values)))
    guaranteed = bool((parts["level"] >= 0).all())
    row |= {name: int(parts[name].sum()) for name in ("people", "violations", "pairs")}
    row["guarantee"] = guaranteed
    row["level"] = _LEVELS[int(parts["level"].max())] if guaranteed else "none"
    row["epsilon"] = float(parts["epsilon"].max()) if guaranteed else np.nan
    row["evaluations"] = int(parts["evaluations"].max())
    row["microseconds"] = float(parts["microseconds"].mean())
    row["fit_seconds"] = float((parts["fit_time"] + parts["reused_seconds"]).mean())  # as if fitted alone
    notes = [method.note] if method.note else []
    total = sum(len(fold.test) for fold in folds)
    if row["people"] < total:
        notes.append(f"measured on an even sample of {row['people']:,} of {total:,} people held out")
    if row["evaluations"] > 1:
        notes.append(f"budget of {row['evaluations']:,} evaluations per person (more would lower epsilon)")
    if guaranteed and row["violations"]:
        notes.append("violates its guarantee")
    row["note"] = "; ".join(notes)
    return row
