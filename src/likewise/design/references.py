"""Reference models of a frontier: a constant, the linear model's own metric, and boosting."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise._parallel import threads_for
from likewise._typing import FloatArray
from likewise.ask import answers
from likewise.design.joint import Weights
from likewise.design.problem import DesignProblem, metric_of
from likewise.exceptions import LikewiseError
from likewise.inspection.baselines import table_model
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
    task = "classification" if problem.model._classify else "regression"
    found: dict[str, Reference] = {}

    def held_out(fit: Any, answer: Any) -> Any:
        losses = np.zeros(len(problem.y))
        for fold in folds:
            out = problem.folds == fold
            weights = None if problem.weights is None else problem.weights[~out]
            with warnings.catch_warnings(), threads_for(shown.size):
                warnings.simplefilter("ignore")
                losses[out] = _losses(problem, answer(fit(~out, weights), out), out)
        return problem.summary(losses, counted)

    loss, error = held_out(lambda kept, weights: _mean(problem, kept, weights), _repeat)
    found[CONSTANT] = Reference(loss, error, 0.0)
    try:
        metric = _own_metric(problem, shown, frame, hidden, task)
        card = problem.model.with_metric(metric)

        def fit_card(kept: Any, weights: Any) -> Any:
            return card.with_metric(metric).fit(table[kept], problem.y[kept], weights)

        loss, error = held_out(fit_card, lambda model, out: _answers(model, table[out], task))
        found[OWN_METRIC] = Reference(loss, error, problem.mean_distance(metric))
    except LikewiseError:
        pass  # a linear model without weights, or that cannot be read: the frontier is shown without it
    boosting = table_model(shown, "boosting", task)  # type: ignore[arg-type]
    last = boosting.steps[-1][0]

    def fit_boosting(kept: Any, weights: Any) -> Any:
        return boosting.fit(shown[kept], problem.y[kept], **{f"{last}__sample_weight": weights})

    found[BOOSTING] = Reference(*held_out(fit_boosting, lambda model, out: _answers(model, shown[out], task)))
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


def _mean(problem: DesignProblem, kept: Any, weights: Any) -> FloatArray:
    if not problem.model._classify:
        return np.atleast_1d(np.average(problem.y[kept].astype(np.float64), weights=weights))
    return np.array([np.average(problem.y[kept] == label, weights=weights) for label in problem.model.classes_])


def _repeat(mean: FloatArray, out: Any) -> FloatArray:
    return np.tile(mean, (int(out.sum()), 1)) if len(mean) > 1 else np.full(int(out.sum()), mean[0])


def _answers(model: Any, people: Any, task: str) -> FloatArray:
    return answers(model, people, "predict_proba" if task == "classification" else "predict")


def _losses(problem: DesignProblem, answers: FloatArray, out: Any) -> FloatArray:
    """Brier score or squared error of each person."""
    y = problem.y[out]
    if not problem.model._classify:
        return np.asarray((answers - y) ** 2)
    return np.asarray(((answers - (y[:, None] == problem.model.classes_)) ** 2).sum(axis=1) / 2)
