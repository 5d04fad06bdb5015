"""The cost of each weight of a metric for a fitted scorecard, and the worth of each column."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from likewise._fit_validation import TrainingData, check_fitted, check_sample_weight
from likewise._typing import FloatArray
from likewise._validation import check_count, checking
from likewise.additive.design_matrix import Layout, constant
from likewise.additive.fit import Plan
from likewise.additive.qp import solve_quadratic
from likewise.additive.solver import coarsened, solve
from likewise.kernel.metric import BoundMetric
from likewise.metrics.base import Metric
from likewise.pairs.points import row_hashes
from likewise.scorecard.tables import GAIN

_LOOSER = 0.1
COLUMNS = ["column", "weight", GAIN, "cost if it must not matter", "standard error"]


def prices(model: Any, X: Any, y: Any, sample_weight: Any = None, *, cv: int | None = 5) -> pd.DataFrame:
    """What each weight of the metric costs, and what each column is worth.

    Parameters
    ----------
    X, y, sample_weight : as for `fit`
        People with known outcomes, usually those that the model was fitted to.
    cv : int or None, default=5
        Folds for the cost of doing without a column; equal people share one. None leaves this cost out (NaN), which
        takes about as long as one fit.

    Returns
    -------
    DataFrame
        One row per column that matters and per weight of blanks, the largest gain first. ``gain if 10% looser`` is
        what the training objective (mean loss and roughness) would gain, to first order and at most, if this weight
        alone were 10% larger. ``cost if it must not matter`` is the rise of the Brier score (or squared error) of
        people held out if the column had the weight 0, with its ``standard error``.

    Examples
    --------
    >>> import numpy as np
    >>> from likewise import AdditiveClassifier, WeightedLp
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    >>> AdditiveClassifier(WeightedLp([0.2, 0.2])).fit(X, y).prices(X, y)["column"].tolist()
    ['feature 0', 'feature 1']
    """
    check_fitted(model)
    metric: Metric = model.guarantee_.metric
    with checking():
        people, y = clone(model)._read(X, y, metric)
        data = TrainingData(people, y, check_sample_weight(sample_weight, len(people)))
    n_folds = None if cv is None else check_count("cv", cv, min_value=2)
    columns, names, rows = metric.bind(people.encoder), people.encoder.names, []
    gains = weight_gains(model, columns, data)
    matters: list[int] = np.flatnonzero(columns.matters).tolist()
    costs = {} if n_folds is None else _costs(model, data, n_folds, matters)
    for i in matters:
        rows.append((names[i], float(columns.weights[i]), gains[0][i], *costs.get(i, (np.nan, np.nan))))
        if columns.missing[i] > 0:
            rows.append((f"missing {names[i]}", float(columns.missing[i]), gains[1][i], np.nan, np.nan))
    table = pd.DataFrame(rows, columns=COLUMNS)
    return table.sort_values(GAIN, ascending=False, kind="stable", ignore_index=True)


def _costs(model: Any, data: TrainingData, n_folds: int, matters: list[int]) -> dict[int, tuple[float, float]]:
    """Rise of the loss of people held out if a column must not matter, and its standard error, by column."""
    metric: Metric = model.guarantee_.metric
    people = data.people
    folds = row_hashes((*people.rows[:, matters].T, *model.loss_of(data.y, people).target)) % np.uint64(n_folds)
    within = _held_out(model, metric, data, folds)
    found = {}
    for i in matters:
        left = metric.reweighted({people.encoder.names[i]: 0.0}) if len(matters) > 1 else None
        losses = _held_out(model, left, data, folds)
        shares = np.where(np.isnan(within - losses), 0.0, data.counts)
        shares = shares / shares.sum()
        change = np.nan_to_num(losses - within)
        cost = float(shares @ change)
        found[i] = cost, float(np.sqrt(shares**2 @ (change - cost) ** 2))
    return found


def weight_gains(model: Any, metric: BoundMetric, data: TrainingData) -> tuple[FloatArray, FloatArray]:
    """Gain in the training objective if a weight were 10% larger, to first order: of columns, and of blanks.

    The multiplier of a limit is the gain per unit of it. As the optimum is convex in the weights, the true gain of 10%
    is no larger.
    """
    plan = Plan.of(model, metric)
    problem = coarsened(plan.with_penalties(plan.objective(data), model.penalty_))
    x = solve(problem, constant(problem.layout, problem.best_constants()))
    scores = problem.scores(x)
    g, H = problem.gradient(x, scores).ravel(), problem.hessian(scores)
    limits = problem.layout.limits(problem.loss.n_functions)
    _, multipliers = solve_quadratic(H, g - H @ x.ravel(), limits, 1e-12)
    return _by_weight(problem.layout, limits.rows, multipliers, x.ravel())


def _by_weight(layout: Layout, rows: Any, multipliers: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Multipliers times their limits, summed by weight."""
    n = len(layout.weights.scales)
    out = np.zeros(n), np.zeros(n)
    for r in range(rows.shape[0]):
        entries = slice(rows.indptr[r], rows.indptr[r + 1])
        variables, values = rows.indices[entries], rows.data[entries]
        local = variables % layout.n_variables
        j = int(np.searchsorted(layout.starts, local[0], side="right")) - 1
        part = layout.parts[j]
        held = float(values @ x[variables])
        blank = part.knots is not None and part.has_missing and (local == layout.starts[j + 1] - 1).any()
        out[int(blank)][part.column] += _LOOSER * multipliers[r] * max(0.0, held)
    return out


def _held_out(model: Any, metric: Metric | None, data: TrainingData, folds: Any) -> FloatArray:
    """Brier score or squared error of each person, by a card fitted without them; NaN if there is none.

    Without a metric, nothing may matter: the card is a constant.
    """
    losses = np.full(len(data), np.nan)
    for fold in np.unique(folds):
        out = folds == fold
        kept, n_out = data.take(np.flatnonzero(~out)), int(out.sum())
        if model._classify and len(np.unique(kept.y)) < len(model.classes_):
            continue
        if metric is not None:
            card = model.with_metric(metric).set_params(penalty=model.penalty_)
            if not model._classify:
                card.set_params(output_range=model.output_range_)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                card.fit(kept.people.table, kept.y, kept.weights)
            table = data.people.take(np.flatnonzero(out)).table
            answers = card.predict_proba(table) if model._classify else card.predict(table)
        elif model._classify:
            means = [np.average(kept.y == label, weights=kept.weights) for label in model.classes_]
            answers = np.tile(means, (n_out, 1))
        else:
            answers = np.full(n_out, np.average(kept.y.astype(np.float64), weights=kept.weights))
        truth = (data.y[out][:, None] == model.classes_) if model._classify else data.y[out]
        squares = np.asarray((answers - truth) ** 2)
        losses[out] = squares.sum(axis=1) / 2 if model._classify else squares
    return losses
