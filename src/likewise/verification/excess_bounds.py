"""Upper bounds of ``TV - D`` over all pairs of a domain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from likewise._typing import FloatArray
from likewise.exceptions import UnprovableError
from likewise.metrics.base import Metric
from likewise.verification.additive_bounds import AdditiveModel, largest_excess
from likewise.verification.base import Limits, Proof
from likewise.verification.input_space import InputSpace
from likewise.verification.tree_bounds import bound_trees
from likewise.verification.tree_model import TreeModel
from likewise.verification.upper_bound import kind_of


def prove_excess(space: InputSpace, metric: Metric, limits: Limits) -> Proof:
    """The upper bound by whatever method fits the model and the metric."""
    try:
        encoder = space.for_metric(metric, space.rows[:1]).encoder
        weights = metric.known_weights(encoder)
        if weights is None:
            raise UnprovableError("the metric is a function, of which nothing is known between people")
        if encoder.labels is not None and list(encoder.labels) != space.names:
            raise UnprovableError("the columns of the metric are not those of X, in this order")
        n_numbers = max(1, int((weights.is_number & weights.matters).sum()))
        # ||z||_p >= n^(1/p - 1) ||z||_1 over n numbers.
        shrink = 1.0 if weights.p == 1 else n_numbers ** (-1.0 if np.isinf(weights.p) else 1 / weights.p - 1)
        shrink *= 1 - 2.0**-40

        def apart(i: int, a: FloatArray, b: FloatArray) -> FloatArray:
            """The least that two encoded values add to the distance."""
            scale = float(weights.scales[i])
            if not weights.is_number[i]:
                return np.where(a == b, 0.0, weights.nearest_categories(i))
            blank = float(np.nan_to_num(weights.missing[i]))
            one = np.isnan(a) != np.isnan(b)
            return np.where(one, blank, np.nan_to_num(shrink * scale * np.abs(a - b)))

        kind = kind_of(space.model)
        if kind == "additive":
            proven = largest_excess(AdditiveModel.read(space), apart)
            return Proof(proven, "Lagrange bound, as the score is a sum of functions of single columns", [])
        if kind != "trees":
            raise UnprovableError("the excess over a metric is not bounded for networks")
        model = TreeModel.read(space)
        if len(model.ensemble.baseline) > 1:
            raise UnprovableError("the excess over a metric is bounded for two classes and for regression only")
        return _prove_tree_excess(model, apart, weights.is_number, limits)
    except UnprovableError as error:
        return Proof(None, str(error), [])


def _prove_tree_excess(model: TreeModel, apart: Any, is_number: Any, limits: Limits) -> Proof:
    space, ensemble = model.space, model.ensemble
    everything = list(range(len(space.names)))
    low, high = space.output_range or (0.0, 1.0)
    share = 1.0 if ensemble.link == "logistic" else high - low
    distances: dict[int, FloatArray] = {}
    for i, cells in enumerate(model.cells):
        if cells.ordered and is_number[i]:
            # The nearest numbers of two cells; 0 within one.
            a = np.where(cells.low[:, None] > cells.high[None, :], cells.low[:, None], np.inf)
            below = np.where(np.isfinite(a), cells.high[None, :], np.nan)
            above = np.where(cells.high[:, None] < cells.low[None, :], cells.low[None, :], np.nan)
            nearest = np.where(
                ~np.isnan(below),
                apart(i, cells.low[:, None], below),
                np.where(~np.isnan(above), apart(i, cells.high[:, None], above), 0.0),
            )
            blank = np.isnan(cells.values)
            one = blank[:, None] != blank[None, :]
            if one.any():
                nearest = np.where(one, apart(i, np.array([0.0]), np.array([np.nan])), nearest)
            distances[i] = share * nearest
        else:
            each = np.arange(len(cells))
            different = each[:, None] != each[None, :]
            values = cells.values
            # Ordered categories that get the same answers are one cell, shown by one of them: nothing is known.
            least = 0.0 if is_number[i] else apart(i, values[:, None], values[None, :])
            distances[i] = share * np.where(different, least, 0.0)
    link = "logistic" if ensemble.link == "logistic" else "identity"
    problem = replace(model.problem(everything, np.ones(1), link), distances=distances)
    result = bound_trees(
        problem,
        tolerance=limits.tolerance * share,
        max_boxes=limits.max_boxes,
        max_seconds=limits.max_seconds,
    )
    proven = max(0.0, result.proven / share) + 8 * ensemble.unit * max(1.0, abs(result.proven / share))
    pair = (model.values(result.cells_a[None])[0], model.values(result.cells_b[None])[0])
    return Proof(proven, f"{result.n_boxes:,} boxes of pairs of people were bounded", [pair], result.n_boxes)
