"""The smallest e with ``TV <= D + e`` for all people of a domain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from likewise._typing import FloatArray
from likewise.auditing.additive_bounds import AdditiveModel
from likewise.auditing.exchange import PairSearch, differences, in_domain, random_pairs, shown_pair
from likewise.auditing.people_space import PeopleSpace
from likewise.auditing.proofs import Limits, Proof
from likewise.auditing.prove import kind_of
from likewise.auditing.tree_bounds import bound_trees
from likewise.auditing.tree_model import TreeModel
from likewise.exceptions import UnprovableError
from likewise.metrics.base import Metric

_N_STARTS = 48  # pairs from which a search starts


@dataclass(frozen=True, eq=False)
class Excess:
    """The smallest e with ``TV <= D + e`` for all people of a domain, between two numbers.

    Attributes
    ----------
    found : float
        ``difference - distance`` of `pair`; at least 0, as everybody is at distance 0 from themselves.
    pair : DataFrame of two rows
    difference, distance : float
        Of the pair.
    proven : float or None
        ``TV <= D + proven`` for all people of the domain; None if there is no proof.
    how : str
    """

    found: float
    pair: pd.DataFrame
    difference: float
    distance: float
    proven: float | None
    how: str


def smallest_excess(
    space: PeopleSpace, metric: Metric, limits: Limits, n_queries: int, rng: np.random.Generator
) -> Excess:
    """The smallest e with ``TV <= D + e`` for all people of the domain."""
    everything = list(range(len(space.names)))

    def distance(a: FloatArray, b: FloatArray) -> FloatArray:
        return metric.between(space.for_metric(metric, a), space.for_metric(metric, b))

    def objective(a: FloatArray, b: FloatArray) -> FloatArray:
        return differences(space, a, b) - distance(a, b)

    proof = _prove_excess(space, metric, limits)
    a, b = random_pairs(space, everything, rng, _N_STARTS)
    for p, q in proof.pairs:
        if (in_domain(space, p[None]) & in_domain(space, q[None])).all():
            a, b = np.vstack([p, a]), np.vstack([q, b])
    value, p, q = PairSearch(space, everything, objective, n_queries, rng).run(a, b)
    if not value > 0:
        inside = np.flatnonzero(in_domain(space, space.rows))
        p = q = space.rows[inside[0] if len(inside) else 0]
    found = float(objective(p[None], q[None])[0])
    proven, how = proof.proven, proof.how
    if proven is not None and found > proven:
        proven, how = None, "the model's own answers exceed what follows from its parts; please report this"
    shown = shown_pair(space, p, q)
    gap, away = float(differences(space, p[None], q[None])[0]), float(distance(p[None], q[None])[0])
    return Excess(max(0.0, found), shown, gap, away, proven, how)


def _prove_excess(space: PeopleSpace, metric: Metric, limits: Limits) -> Proof:
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
            proven = AdditiveModel.read(space).largest_excess(apart)
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
