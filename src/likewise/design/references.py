"""Reference models of a frontier: a constant, the linear model's own metric, and boosting."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier, DummyRegressor

from likewise._parallel import threads_for
from likewise.ask import answers
from likewise.design.joint import Weights
from likewise.design.problem import DesignProblem, metric_of
from likewise.exceptions import LikewiseError
from likewise.inspection.baselines import Task, proper_losses, table_model
from likewise.metrics.base import Metric
from likewise.metrics.table import TableMetric
from likewise.reveal.linear import minimal_metric

CONSTANT, OWN_METRIC, BOOSTING = "constant", "linear model's own metric", "boosting, no guarantee"


@dataclass(frozen=True)
class Reference:
    """A reference on the same people: its loss, and the mean distance of its metric if it has one."""

    loss: float
    standard_error: float
    mean_distance: float | None = None


def measure_references(
    problem: DesignProblem, folds: list[int], counted: Any, hidden: list[Any]
) -> dict[str, Reference]:
    """Losses on the same people held out, by title."""
    names = list(problem.people.encoder.names)
    table = problem.people.table
    frame = table if isinstance(table, pd.DataFrame) else pd.DataFrame(problem.people.rows, columns=names)
    shown = frame[[name for name in names if name not in hidden]]
    task: Task = "classification" if problem.model._classify else "regression"
    found: dict[str, Reference] = {}

    def held_out(fit: Any, people: Any) -> tuple[float, float]:
        losses = np.zeros(len(problem.y))
        for fold in folds:
            out = problem.folds == fold
            weights = None if problem.weights is None else problem.weights[~out]
            with warnings.catch_warnings(), threads_for(shown.size):
                warnings.simplefilter("ignore")
                model = fit(~out, weights)
                found = answers(model, people[out], "predict_proba" if task == "classification" else "predict")
            losses[out] = proper_losses(found, problem.y[out], getattr(model, "classes_", None))
        return problem.summary(losses, counted)

    def fit_constant(kept: Any, weights: Any) -> Any:
        constant = DummyClassifier() if task == "classification" else DummyRegressor()
        return constant.fit(shown[kept], problem.y[kept], weights)

    found[CONSTANT] = Reference(*held_out(fit_constant, shown), 0.0)
    try:
        metric = _own_metric(problem, shown, frame, hidden, task)
        card = problem.model.with_metric(metric)

        def fit_card(kept: Any, weights: Any) -> Any:
            return card.with_metric(metric).fit(table[kept], problem.y[kept], weights)

        found[OWN_METRIC] = Reference(*held_out(fit_card, table), problem.mean_distance(metric))
    except LikewiseError:
        pass  # a linear model without weights, or that cannot be read: the frontier is shown without it
    boosting = table_model(shown, "boosting", task)
    last = boosting.steps[-1][0]

    def fit_boosting(kept: Any, weights: Any) -> Any:
        return boosting.fit(shown[kept], problem.y[kept], **{f"{last}__sample_weight": weights})

    found[BOOSTING] = Reference(*held_out(fit_boosting, shown))
    return found


def _own_metric(
    problem: DesignProblem, shown: pd.DataFrame, frame: pd.DataFrame, hidden: list[Any], task: Any
) -> Metric:
    """The linear model's metric, read exactly, the hidden columns at 0."""
    linear = table_model(shown, "logistic" if task == "classification" else "linear", task)
    limits = None if problem.model._classify else problem.model.output_range_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read: Any = minimal_metric(linear.fit(shown, problem.y), shown, output_range=limits)
    weights = {**read.numeric, **read.categorical} | dict.fromkeys(hidden, 0.0)
    blanks = dict.fromkeys(frame.columns[frame.isna().any()], 1.0) | dict(read.missing)
    names = problem.people.encoder.names
    columns, missing = [weights[name] for name in names], [blanks.get(name, np.nan) for name in names]
    like = problem.model.metric
    if isinstance(like, TableMetric):  # the linear model has one weight for all categories of a column
        like = like.with_params(groups={}, distances={})
    return metric_of(problem.people, Weights(np.array(columns), np.array(missing)), like)
