"""What a promise costs: a model's kind trained anew on folds, beside others, under several metrics, and the ceiling."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from likewise._progress import progress_bar
from likewise.auditing.ceilings import ceiling
from likewise.auditing.comparison import Comparison, compare
from likewise.auditing.measures import YARDSTICKS
from likewise.auditing.pricing import Price, price
from likewise.errors import InvalidInputError
from likewise.metrics.people import spread
from likewise.report.data import Cost

OWN, INNER = "this model", "the model inside"
_SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)
_SEARCHED = 500  # people of a fold among whom pairs are searched
_DRAWS, _STEPS = 60, 1000  # at most, of models that are trained anew
_CEILING = {2: 500}  # people on whom the ceiling is computed, by the number of classes
_CEILING_OF_SEVERAL = 120


def cost_of(
    model: Any,
    X: pd.DataFrame,
    y: npt.NDArray[Any],
    *,
    comparison: Comparison | None = None,
    prices: Price | None = None,
    cv: int = 3,
    verbose: bool = False,
) -> Cost | None:
    """Compare and price the kind of model that `model` is, unless both are given; None if there are too few people.

    The penalty of a scorecard, once found, is not searched for again; draws and steps of training are bounded.
    """
    metric, classes = model.guarantee_.metric, getattr(model, "classes_", None)
    fewest = len(y) if classes is None else min(int((y == label).sum()) for label in classes)
    if fewest < max(cv, 2):
        return None
    way, inner = (OWN, _quick(model)), getattr(model, "estimator", None)
    shared: Any = {
        "cv": cv,
        "task": "numbers" if classes is None else "classes",
        "output_range": model.guarantee_.output_range,
        "n_people": _SEARCHED,
        "verbose": verbose,
    }
    if comparison is None:
        beside = [] if inner is None or _is_boosting(inner) else [(INNER, inner)]
        comparison = compare(X, y, metric, ways=[way, *beside, "linear"], **shared)
    if prices is None:
        prices = price(X, y, metric, _SCALES, way=way, **shared)
    own = next((name for name, one in comparison.estimators.items() if type(one) is type(model)), None)
    if own is None or len(comparison.showings[own].losses) != len(y):
        raise InvalidInputError(
            f"comparison must be of these {len(y):,} people, with a {type(model).__name__} among the ways. Leave it "
            "out to have it made."
        )
    is_given = isinstance(inner, FrozenEstimator)
    plain = baseline_of(comparison, INNER if is_given else None)
    # One baseline in the whole report.
    prices = replace(prices, without_promise={plain: comparison.showings[plain]})
    if classes is None:
        return Cost(comparison, own, plain, is_given, prices)
    some = spread(len(X), _CEILING.get(len(classes), _CEILING_OF_SEVERAL))
    ceilings = {}
    with progress_bar("Ceiling", len(prices.showings), show=verbose) as advance:
        for scale in prices.showings:
            ceilings[scale] = float(ceiling(X.iloc[some], y[some], metric.scaled(scale)))
            advance(1)
    return Cost(comparison, own, plain, is_given, prices, ceilings, len(some))


def baseline_of(comparison: Comparison, but: str | None = None) -> str:
    """The best model without a promise, by the proper score on people held out; not one that may know them."""
    measure = YARDSTICKS[comparison.task][0].name
    scores = {
        name: float(showing.row[measure])
        for name, showing in comparison.showings.items()
        if name != but and name in comparison.estimators and not showing.row["promise"] and measure in showing.row
    }
    return min(scores, key=lambda name: scores[name])


def fit_baseline(comparison: Comparison, name: str, X: pd.DataFrame, y: npt.NDArray[Any]) -> Any:
    """Fit a model of a comparison to those of its people whom the first fold does not hold out."""
    trained = comparison.folds[0].trained
    return clone(comparison.estimators[name]).fit(X.iloc[trained], y[trained])


def _is_boosting(model: Any) -> bool:
    """Whether it is what is compared anyway."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    return type(last).__name__.startswith("HistGradientBoosting")


def _quick(model: Any) -> Any:
    """The same kind of model, unfitted, with no search for its penalty and few draws."""
    parameters, changes = model.get_params(deep=False), dict[str, Any]()
    if hasattr(model, "penalty_"):
        changes["penalty"] = model.penalty_
    if "n_draws" in parameters and model.guarantee_.n_draws:
        changes["n_draws"] = int(np.clip(model.guarantee_.n_draws, 1, _DRAWS))
    if isinstance(parameters.get("n_steps"), int):
        changes["n_steps"] = min(_STEPS, parameters["n_steps"])
    if "verbose" in parameters:
        changes["verbose"] = False
    return clone(model).set_params(**changes)
