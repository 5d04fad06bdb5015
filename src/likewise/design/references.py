"""Reference models of a frontier: the linear model, with and without its own metric, and boosting."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

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
    """Losses on the same people held out, by title; everything is learned from the others."""
    names, table = list(problem.people.encoder.names), problem.people.table
    frame = table if isinstance(table, pd.DataFrame) else pd.DataFrame(problem.people.rows, columns=names)
    shown = frame[[name for name in names if name not in hidden]]
    task: Task = "classification" if problem.model._classify else "regression"
    kind = "logistic" if problem.model._classify else "linear"

    def fitted(kind: str, kept: Any, weights: Any) -> Any:
        model = table_model(shown, kind, task)
        return model.fit(shown[kept], problem.y[kept], **{f"{model.steps[-1][0]}__sample_weight": weights})

    def within_own_metric(kept: Any, weights: Any) -> Any:
        metric = _own_metric(problem, fitted(kind, kept, weights), shown[kept])
        return problem.model.with_metric(metric).fit(table[kept], problem.y[kept], weights)

    def held_out(fit: Any, people: Any) -> tuple[float, float]:
        losses = np.zeros(len(problem.y))
        for fold in folds:
            out = problem.folds == fold
            weights = None if problem.weights is None else problem.weights[~out]
            with warnings.catch_warnings(), threads_for(shown.size):
                warnings.simplefilter("ignore")
                model = fit(~out, weights)
                given = answers(model, people[out], "predict_proba" if task == "classification" else "predict")
            losses[out] = proper_losses(given, problem.y[out], getattr(model, "classes_", None))
        return problem.summary(losses, counted)

    found = {f"{kind} regression, no guarantee": Reference(*held_out(partial(fitted, kind), shown))}
    try:
        metric = _own_metric(problem, fitted(kind, slice(None), problem.weights), shown)
        found[OWN_METRIC] = Reference(*held_out(within_own_metric, table), problem.mean_distance(metric))
    except LikewiseError:
        pass  # a linear model without weights, or that cannot be read: the frontier is shown without it
    found[BOOSTING] = Reference(*held_out(partial(fitted, "boosting"), shown))
    return found


def _own_metric(problem: DesignProblem, linear: Any, shown: pd.DataFrame) -> Metric:
    """The metric of a linear model of the people shown, read exactly; hidden columns at 0."""
    limits = None if problem.model._classify else problem.model.output_range_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read: Any = minimal_metric(linear, shown, output_range=limits)
    weights = {**read.numeric, **read.categorical}
    blanks = dict.fromkeys(shown.columns[shown.isna().any()], 1.0) | dict(read.missing)
    names = problem.people.encoder.names
    columns, missing = [weights.get(name, 0.0) for name in names], [blanks.get(name, np.nan) for name in names]
    like = problem.model.metric
    if isinstance(like, TableMetric):  # the linear model has one weight for all categories of a column
        like = like.with_params(groups={}, distances={})
    return metric_of(problem.people, Weights(np.array(columns), np.array(missing)), like)
