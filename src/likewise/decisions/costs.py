"""How much randomisation a guarantee about decisions needs, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from likewise._favourable import column_of, given_or_stored
from likewise._frozen import Frozen
from likewise._subsample import evenly_spaced
from likewise._typing import BoolArray, FloatArray
from likewise._validation import check_numbers, integer, positive, short_repr
from likewise.ask import answers, as_taken
from likewise.base import ConstrainedClassifier
from likewise.decisions.threshold import chance_above
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.kernel.guarantee import Guarantee
from likewise.metrics.base import Metric, check_metric

WIDTHS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_BLOCK = 256  # people whose distances to all others are held at a time


@dataclass(frozen=True, eq=False, repr=False)
class DecisionCosts(Frozen):
    """What `decision_costs` returns.

    Attributes
    ----------
    table : DataFrame, one row per width
        ``in_band``: share of people whose decision depends on the draw. ``against_threshold``: expected share decided
        otherwise than by the plain threshold. With outcomes: expected ``accuracy``, ``false_positive_rate`` and
        ``false_negative_rate``, and ``profit`` per person if asked for. ``near_different``: expected share of near
        pairs decided differently by one shared cut-off; ``near_largest``: the largest probability of that for one of
        them; ``near_different_independent``: the expected share if each person had a cut-off of their own.
        ``guarantee``: the largest probability of that for any two people at distance `near`, seen or not; 1 for a
        width of 0.
    threshold, near : float
    n_near_pairs : int
        Pairs of people at distance of at most `near`.
    n_people : int
        People among whom pairs were counted.
    """

    table: pd.DataFrame
    threshold: float
    near: float
    n_near_pairs: int
    n_people: int

    def __repr__(self) -> str:
        return f"<DecisionCosts: {len(self.table)} widths at the threshold {self.threshold:g}>"

    def __str__(self) -> str:
        shares = self.table.map(lambda value: "" if np.isnan(value) else f"{value:.1%}")
        shares["guarantee"] = self.table["guarantee"].map(percentage_upwards)
        if "profit" in self.table:
            shares["profit"] = self.table["profit"].map("{:.4g}".format)
        return (
            f"{shares.to_string()}\n"
            f"Near pairs are the {self.n_near_pairs:,} pairs at a distance of at most {self.near:g} among "
            f"{self.n_people:,} people. Width 0 is the plain threshold at {self.threshold:g}."
        )


def decision_costs(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    threshold: float = 0.5,
    widths: Sequence[float] = WIDTHS,
    near: float = 0.05,
    favourable: Any = None,
    profit: Any = None,
    metric: Metric | None = None,
    n_people: int = 2000,
) -> DecisionCosts:
    """Measure decisions by soft thresholds of several widths, beside the plain threshold.

    Parameters
    ----------
    model : fitted classifier of two classes
        With `predict_proba`. Without a guarantee (`guarantee_`) the column ``guarantee`` is absent.
    X : array-like of shape (n_samples, n_features)
        People the model has not learned from.
    y : array-like of shape (n_samples,), optional
        Their outcomes.
    threshold : float, default=0.5
    widths : sequence of float, default=(0, 0.02, 0.05, 0.1, 0.2, 0.5, 1)
    near : float, default=0.05
        Two people are near if their distance is at most this.
    favourable : class label, default=None
        The class whose probability is compared; None takes the one that is stored with the model or known by its
        word, such as approved, or else the positive class of scikit-learn, the last one.
    profit : array-like of shape (2, 2), optional
        What a decision brings: rows are the true outcome (unfavourable, favourable), columns the decision.
    metric : Metric, optional
        By default that of the model's guarantee.
    n_people : int, default=2000
        People among whom near pairs are counted: an even sample of `X`.

    Returns
    -------
    DecisionCosts

    Examples
    --------
    >>> from likewise import AdditiveClassifier, WeightedLp
    >>> X = np.linspace(-1, 1, 100)[:, None]
    >>> card = AdditiveClassifier(WeightedLp([0.4]), penalty=0.01).fit(X, X[:, 0] > 0)
    >>> costs = decision_costs(card, X, X[:, 0] > 0, widths=[0, 0.2])
    >>> costs.table["near_largest"].round(3).tolist()
    [1.0, 0.242]
    """
    metric, guarantee = _metric_of(model, metric)
    positive(below=1.0).check("threshold", threshold)
    positive().check("near", near)
    integer(2).check("n_people", n_people)
    asked = check_numbers("widths", widths)
    if asked.ndim != 1 or not len(asked) or not ((asked >= 0) & (asked <= 1)).all():
        raise InvalidInputError(f"widths must be numbers from 0 to 1; got {short_repr(asked.tolist())}.")
    column = _column_of(model, favourable)
    score = answers(model, as_taken(model, X), "predict_proba")[:, column].astype(np.float64)
    good = None if y is None else _outcomes(y, model.classes_[column], len(score))
    value = None if profit is None else _profit(profit, good)
    return costs_of_scores(
        score, X, metric, guarantee, float(threshold), asked, float(near), good=good, value=value, n_people=n_people
    )


def costs_of_scores(
    score: FloatArray,
    X: Any,
    metric: Metric,
    guarantee: Guarantee | None,
    threshold: float,
    widths: FloatArray,
    near: float,
    *,
    good: BoolArray | None = None,
    value: FloatArray | None = None,
    n_people: int = 2000,
) -> DecisionCosts:
    """`decision_costs` from the probabilities of the favourable class and validated arguments."""
    some = evenly_spaced(len(score), n_people)
    a, b = _near_pairs(metric, X, some, near)
    rows = []
    for width in widths:
        chance = chance_above(score, threshold, float(width))
        row = {
            "in_band": float(((chance > 0) & (chance < 1)).mean()),
            "against_threshold": float(np.abs(chance - (score > threshold)).mean()),
        }
        if good is not None:
            row |= _errors(chance, good)
        if good is not None and value is not None:
            gain = np.where(good, value[1, 0], value[0, 0]), np.where(good, value[1, 1], value[0, 1])
            row["profit"] = float((gain[0] * (1 - chance) + gain[1] * chance).mean())
        p, q = chance[a], chance[b]
        row["near_different"] = float(np.abs(p - q).mean()) if len(a) else np.nan
        row["near_largest"] = float(np.abs(p - q).max()) if len(a) else np.nan
        row["near_different_independent"] = float((p * (1 - q) + q * (1 - p)).mean()) if len(a) else np.nan
        if guarantee is not None:
            row["guarantee"] = min(1.0, float(guarantee.bound(near)) / width) if width else 1.0
        rows.append(row)
    table = pd.DataFrame(rows, index=pd.Index(widths, name="width"))
    return DecisionCosts(table, threshold, near, len(a), len(some))


def _errors(chance: FloatArray, good: BoolArray) -> dict[str, float]:
    return {
        "accuracy": float(np.where(good, chance, 1 - chance).mean()),
        "false_positive_rate": float(chance[~good].mean()) if (~good).any() else np.nan,
        "false_negative_rate": float(1 - chance[good].mean()) if good.any() else np.nan,
    }


def _near_pairs(metric: Metric, X: Any, some: npt.NDArray[np.intp], near: float) -> tuple[Any, Any]:
    """Positions in `X` of the pairs of these people at a distance of at most `near`."""
    bound, people = metric.read(X)
    people = people.take(some)
    first, second = [], []
    for start in range(0, len(some), _BLOCK):
        block = people.take(slice(start, start + _BLOCK))
        i, j = np.nonzero(near >= bound.cross(block, people))
        keep = start + i < j
        first.append(some[start + i[keep]])
        second.append(some[j[keep]])
    return np.concatenate(first), np.concatenate(second)


def _metric_of(model: Any, metric: Metric | None) -> tuple[Metric, Any]:
    if not hasattr(model, "predict_proba") or not hasattr(model, "classes_"):
        raise InvalidTypeError(f"model must be a fitted classifier with predict_proba; got {type(model).__name__}.")
    guarantee = model.guarantee_ if isinstance(model, ConstrainedClassifier) else None
    if metric is not None:
        check_metric(metric)
        known = guarantee is not None and guarantee.bound_metric.is_of(metric)
        return metric, guarantee if known else None
    if guarantee is None:
        raise InvalidInputError(f"metric must be given for {type(model).__name__}, which has none of its own.")
    return guarantee.metric, guarantee


def _column_of(model: Any, favourable: Any) -> int:
    if len(model.classes_) != 2:
        raise InvalidInputError(f"model must be for two classes; got {len(model.classes_)}.")
    return column_of(given_or_stored(favourable, model), model.classes_)


def _outcomes(y: Any, favourable: Any, n: int) -> BoolArray:
    try:
        outcomes = np.asarray(y)
    except ValueError:  # lists of different lengths
        outcomes = np.empty(0)
    if outcomes.shape != (n,):
        raise InvalidInputError(f"y must hold one outcome per row of X ({n}); got shape {outcomes.shape}.")
    return np.asarray(outcomes == favourable)


def _profit(profit: Any, good: BoolArray | None) -> FloatArray:
    value = check_numbers("profit", profit)
    if value.shape != (2, 2):
        raise InvalidInputError(f"profit must be a matrix of 2 outcomes by 2 decisions; got shape {value.shape}.")
    if good is None:
        raise InvalidInputError("profit needs y, the outcomes.")
    return value


def percentage_upwards(share: float) -> str:
    """A bound as a percentage, rounded up."""
    return "" if np.isnan(share) else f"{np.ceil(1000 * share - 1e-9) / 10:.1f}%"
