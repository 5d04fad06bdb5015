"""A method fitted and measured on the same folds as every other, one model at a time."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold

from likewise._inner_estimator import positions_by
from likewise._typing import FloatArray, IntArray
from likewise._validation import check_count
from likewise.auditing.audit import audit, tolerance_under
from likewise.exceptions import InvalidInputError, LikewiseError
from likewise.guarantees.guarantee import Guarantee, VacuousGuaranteeWarning
from likewise.inspection.baselines import Task
from likewise.metrics.base import Metric
from likewise.metrics.encoders import People, spread
from likewise.selection.methods import METHODS, LearningTask, Method

_LEAST = 1e-15  # log loss of a probability of 0 is that of this one, as in scikit-learn


@dataclass(frozen=True)
class Score:
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


# The first of each is the proper score that chooses a method: its mean is smallest at the true probabilities or means.
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
    """Figures of people with known outcomes, by the names of `SCORES`."""
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


_LEVELS = ("exact", "deterministic", "sampled")


@dataclass(frozen=True, eq=False)
class Fold:
    """Who is trained on and who is held out, as positions.

    Attributes
    ----------
    trained, held_out : ndarray of int
    sample : ndarray of int
        Positions within `held_out` of the people among whom pairs are searched, and on whom slow methods are measured.
    """

    trained: IntArray
    held_out: IntArray
    sample: IntArray


def make_folds(given: LearningTask, cv: Any, n_people: Any) -> tuple[Fold, ...]:
    """Folds for everything that is compared; a whole number of them is shuffled, and stratified by class."""
    n_people = check_count("n_people", n_people, least=2, cure="Pairs are searched among them.")
    if isinstance(cv, int) and not isinstance(cv, bool):
        check_count("cv", cv, least=2, cure="Someone must be held out.")
        kind = KFold if given.classes is None else StratifiedKFold
        _check_enough(given, cv)
        cv = kind(cv, shuffle=True, random_state=given.seed)
    folds = [
        Fold(trained, held_out, _even_sample(given.outcomes[held_out], n_people))
        for trained, held_out in positions_by(
            cv, given.people.table, given.outcomes, classify=given.classes is not None
        )
    ]
    if len(folds) < 2:
        raise InvalidInputError(f"cv must give at least two folds, for standard errors; got {len(folds)}.")
    return tuple(folds)


def _check_enough(given: LearningTask, n_folds: int) -> None:
    if given.classes is None:
        fewest, who = len(given.outcomes), "people"
    else:
        labels, counts = np.unique(given.outcomes, return_counts=True)
        fewest, who = int(counts.min()), f"people of class {labels.tolist()[counts.argmin()]!r}"
    if fewest < n_folds:
        raise InvalidInputError(f"cv must not be above the number of {who} ({fewest}); got {n_folds}. Use fewer folds.")


def _even_sample(outcomes: npt.NDArray[Any], most: int) -> IntArray:
    """Positions of at most `most` people, spread evenly over the sorted outcomes, in the order of the table."""
    order = np.argsort(outcomes, kind="stable")
    return np.sort(order[spread(len(order), most)])


@dataclass(frozen=True, eq=False)
class CVResult:
    """What a method showed on people who were held out.

    Attributes
    ----------
    row : dict
        Of a table: figures with their standard errors, violations, promise and costs.
    losses : ndarray of shape (n_samples,)
        The proper score of each person when held out; NaN for those who were not measured.
    answers : ndarray of shape (n_samples, n_classes), or (n_samples,) for numbers
        What it answered for each person when held out; NaN likewise.
    keeps_promise : bool
        Whether it promises this metric, and no pair of people was found to say otherwise.
    """

    row: dict[str, Any]
    losses: FloatArray
    answers: FloatArray
    keeps_promise: bool


def skipped(method: Method, given: LearningTask, reason: str) -> CVResult:
    """What is shown of a method that does not apply."""
    row = {"title": method.title, "promise": False, "note": f"skipped: {reason}"}
    return CVResult(row, *_nothing(given), False)


def _nothing(given: LearningTask) -> tuple[FloatArray, FloatArray]:
    """Losses and answers before anyone is measured."""
    shape = (len(given.outcomes),) if given.classes is None else (len(given.outcomes), len(given.classes))
    return np.full(shape[:1], np.nan), np.full(shape, np.nan)


def show(method: Method, given: LearningTask, folds: tuple[Fold, ...], advance: Callable[[int], None]) -> CVResult:
    """Fit and measure a method on each fold; of each model, only figures are kept."""
    if method.estimator is None:
        advance(len(folds))
        return skipped(method, given, method.why_not)
    losses, everyone = _nothing(given)
    parts: list[dict[str, Any]] = []
    empty: list[str] = []
    for i, fold in enumerate(folds):
        try:
            with _heard(empty):
                parts.append(_measure(method, given, fold, losses, everyone))
        except (TypeError, ValueError) as error:
            if not method.may_fail:
                if isinstance(error, LikewiseError) or method.name not in METHODS:  # of a user's own model, as it is
                    raise
                words = " ".join(str(error).split())
                raise InvalidInputError(f"The model {method.title!r} cannot take these people ({words}).") from error
            advance(len(folds) - i)
            return skipped(method, given, str(error))
        advance(1)
    row = _summary(method, given, folds, pd.DataFrame(parts))
    if empty:
        row["note"] = "; ".join(filter(None, [row["note"], "promises next to nothing: " + empty[0]]))
    return CVResult(row, losses, everyone, bool(row["promise"]) and row["violations"] == 0)


@contextmanager
def _heard(empty: list[str]) -> Iterator[None]:
    """Put what is said of empty promises into the list, for the note of the method; other warnings pass."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", VacuousGuaranteeWarning)
        yield
    for one in {(one.category, str(one.message)): one for one in caught}.values():  # each once, not once per fold
        if issubclass(one.category, VacuousGuaranteeWarning):
            empty.append(str(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def _measure(
    method: Method, given: LearningTask, fold: Fold, losses: FloatArray, everyone: FloatArray
) -> dict[str, Any]:
    """Fit on one fold; return what was measured on its held-out people, and put losses and answers in their places."""
    people = given.people
    start = time.perf_counter()
    model = clone(method.estimator).fit(people.take(fold.trained).table, given.outcomes[fold.trained])
    fitted = time.perf_counter() - start

    measured = fold.held_out[fold.sample] if method.is_slow else fold.held_out
    table = people.take(measured).table
    ask = model.predict if given.classes is None else model.predict_proba
    ask(table[:2])  # compiled, or read from the cache
    start = time.perf_counter()
    answers = np.asarray(ask(table), dtype=np.float64)
    seconds = time.perf_counter() - start

    if given.classes is not None:
        answers = _in_order(answers, model.classes_, given.classes)
    outcomes = given.outcomes[measured]
    losses[measured], everyone[measured] = losses_of(answers, outcomes, given.classes), answers
    promise = _promise_of(model, given.metric)
    searched = answers if method.is_slow else answers[fold.sample]
    n_violations = _violations(given, people.take(fold.held_out[fold.sample]), searched, tolerance_under(promise))
    return {
        **figures_of(answers, outcomes, given.classes),
        "people": len(measured),
        "violations": n_violations,
        "pairs": len(searched) * (len(searched) - 1) // 2,
        "level": promise.level if promise else "",
        "epsilon": promise.epsilon if promise else np.nan,
        "evaluations": (promise.n_draws or 1) if promise else 1,
        "microseconds": 1e6 * seconds / len(measured),
        "fit_seconds": fitted,
    }


def _violations(given: LearningTask, people: People, answers: FloatArray, tolerance: float) -> int:
    """Pairs of these people whose answers differ by more than their distance and the tolerance."""
    options: Any = {"output_range": given.output_range, "tolerance": tolerance, "n_worst": 1}
    return audit(lambda rows: answers, people.table, given.metric, **options).n_violations


def _in_order(answers: FloatArray, known: npt.NDArray[Any], classes: npt.NDArray[Any]) -> FloatArray:
    """Probabilities in the order of all classes; 0 for one that a fold did not have."""
    if len(known) == len(classes):
        return answers
    whole = np.zeros((len(answers), len(classes)))
    whole[:, np.searchsorted(classes, known)] = answers
    return whole


def _promise_of(model: Any, metric: Metric) -> Guarantee | None:
    """The model's promise, if it is about this metric."""
    guarantee = getattr(model, "guarantee_", None)
    return guarantee if guarantee is not None and guarantee.metric == metric else None


def _summary(method: Method, given: LearningTask, folds: tuple[Fold, ...], parts: pd.DataFrame) -> dict[str, Any]:
    """One row of the table: means and standard errors over folds, sums of counts, and the weakest promise."""
    row: dict[str, Any] = {"title": method.title}
    for yardstick in SCORES[given.task]:
        values = parts[yardstick.name]
        row[yardstick.name] = float(values.mean())
        row[f"{yardstick.name}_se"] = float(values.std(ddof=1) / np.sqrt(len(values)))
    promised = bool((parts["level"] != "").all())
    row |= {name: int(parts[name].sum()) for name in ("people", "violations", "pairs")}
    row["promise"] = promised
    row["level"] = max(parts["level"], key=_LEVELS.index) if promised else "none"
    row["epsilon"] = float(parts["epsilon"].max()) if promised else np.nan
    row["evaluations"] = int(parts["evaluations"].max())
    row |= {name: float(parts[name].mean()) for name in ("microseconds", "fit_seconds")}
    notes = []
    total = sum(len(fold.held_out) for fold in folds)
    if row["people"] < total:
        notes.append(f"measured on an even sample of {row['people']:,} of {total:,} people held out")
    if promised and row["violations"]:
        notes.append("breaks its promise")
    row["note"] = "; ".join(notes)
    return row
