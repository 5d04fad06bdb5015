"""Additive models within distances between categories: all pairs of levels, and controls that must be caught."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from likewise import (
    AdditiveClassifier,
    LipschitzClassifier,
    SmoothedClassifier,
    TableMetric,
)
from likewise.additive.shapes import constrain
from likewise.exceptions import InvalidInputError
from likewise.kernel.evidence import Shape, SumOfShapes
from likewise.metrics.categories import closure
from likewise.scorecard.recourse import Column, smallest_change
from likewise.verify_card import NotProvenError, prove
from parts import of_parts

JOBS = ["clerk", "teacher", "farmer", "smith"]
GROUPS = {"job": {"within": 0.25, "groups": [JOBS[:2], JOBS[2:], ["pilot"]]}}
LINE = {"job": {a: {b: abs(i - j) for j, b in enumerate(JOBS)} for i, a in enumerate(JOBS)}}


def strong_effects(n=600, seed=0):
    """Categories whose effects exceed every limit."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.uniform(20, 60, n).round(), "job": rng.choice([*JOBS, None], n)})
    effect = X["job"].map(dict(zip(JOBS, [-3.0, 3.0, -2.0, 2.0], strict=True))).fillna(0.0)
    y = rng.random(n) < 1 / (1 + np.exp(-(effect + 0.03 * (X["age"] - 40))))
    return X, np.where(y, "yes", "no")


def levels_of(model):
    (shape,) = [shape for shape in model.scorer_.model.shapes if shape.knots is None]
    return shape.all_values[0]


@pytest.mark.parametrize(
    "shape", [{"groups": GROUPS}, {"distances": LINE}, {"groups": {"job": {**GROUPS["job"], "within": 0}}}]
)
def test_no_two_levels_differ_by_more_than_their_distance(shape):
    X, y = strong_effects()
    metric = TableMetric({"age": 0.01}, {"job": 0.3}, **shape)
    model = AdditiveClassifier(metric).fit(X, y)
    weights = metric.bind(model.encoder_)
    levels, table = levels_of(model), weights.tables[1]
    allowed = 4 * 0.3 * table
    gaps = np.abs(np.subtract.outer(levels, levels))
    assert (gaps <= allowed).all()
    if table[table > 0].min() < 1:  # effects are strong within groups, and cancel between them
        assert (gaps[allowed > 0] / allowed[allowed > 0]).max() > 0.99


def test_a_category_that_nobody_had_is_near_its_group():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"job": rng.choice(["clerk", "farmer"], 400)})
    y = np.where(rng.random(400) < np.where(X["job"] == "clerk", 0.95, 0.05), 1, 0)
    metric = TableMetric({}, {"job": 0.5}, groups=GROUPS)
    model = AdditiveClassifier(metric).fit(X, y)
    world = pd.DataFrame({"job": [*JOBS, "pilot", "stranger", None]})
    h, D = model.predict_proba(world)[:, 1], metric.pairwise(world)
    assert (np.abs(np.subtract.outer(h, h)) <= np.tanh(D) + 1e-12).all()
    assert h[0] - h[2] > 0.2  # and the absent ones cost the others nothing


@pytest.mark.parametrize("seed", range(30))
def test_whatever_an_optimiser_found_is_brought_within_the_distances(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 7))
    table = rng.uniform(0, 1, (k + 1, k + 1))
    table = (table + table.T) / 2
    np.fill_diagonal(table, 0.0)
    table = closure(np.where(rng.random(table.shape) < 0.1, 0.0, table)) if seed % 3 else closure(table)
    table = np.minimum(table, table.T)
    weights = of_parts(
        np.array([float(10.0 ** rng.uniform(-6, 0))]), np.array([False]), np.array([np.nan]), 1.0, {0: table}
    )
    wild = Shape(0, None, rng.normal(0, 10.0 ** rng.uniform(-6, 3), (2, k)), rng.normal(0, 1, 2))
    sums = constrain(rng.normal(0, 1, 2), [wild], weights, 4.0)
    levels = sums.shapes[0].all_values
    allowed = 4.0 * weights.scales[0] * table
    assert (np.abs(levels[:, :, None] - levels[:, None, :]) <= allowed).all()
    assert (sums.used(4.0) <= 1).all()


def test_a_level_beyond_its_distance_is_seen():
    table = np.array([[0, 0.2, 1], [0.2, 0, 1], [1, 1, 0.0]])
    weights = of_parts(np.array([0.5]), np.array([False]), np.array([np.nan]), 1.0, {0: table})
    inside = SumOfShapes(weights, np.zeros(1), (Shape(0, None, np.array([[0.0, 0.39]]), np.zeros(1)),), 40)
    assert inside.used(4.0)[0] <= 1
    beyond = SumOfShapes(weights, np.zeros(1), (Shape(0, None, np.array([[0.0, 0.41]]), np.zeros(1)),), 40)
    assert beyond.used(4.0)[0] > 1  # 0.41 > 4 * 0.5 * 0.2
    none = of_parts(np.array([0.5]), np.array([False]), np.array([np.nan]), 1.0, {0: table * (table != 0.2)})
    equal = SumOfShapes(none, np.zeros(1), (Shape(0, None, np.array([[0.0, 1e-9]]), np.zeros(1)),), 40)
    assert equal.used(4.0)[0] > 1


@pytest.mark.parametrize("kind", ["a network", "smoothing"])
def test_methods_with_one_weight_per_column_refuse_distances(kind):
    if kind == "a network":
        pytest.importorskip("torch")
    X, y = strong_effects(60)
    metric = TableMetric({"age": 0.01}, {"job": 0.3}, groups=GROUPS)
    model = (
        LipschitzClassifier(metric)
        if kind == "a network"
        else SmoothedClassifier(DecisionTreeClassifier(), metric=metric)
    )
    with pytest.raises(InvalidInputError, match=f"one weight for all pairs of categories for {kind}; 'job'") as error:
        model.fit(X, y)
    assert "\n" not in str(error.value)


# -- cards -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [{"groups": GROUPS}, {"distances": LINE}])
def test_cards_prove_the_distances_and_see_a_level_beyond_them(shape):
    X, y = strong_effects()
    metric = TableMetric({"age": 0.01}, {"job": 0.3}, **shape)
    model = AdditiveClassifier(metric).fit(X, y)
    for card in (model, model.in_points(points_to_double=200)):
        document = json.loads(card.to_json())
        prove(document)
        (entry,) = [column for column in document["columns"] if "categories" in column]
        (level,) = [level for level in entry["categories"] if level["value"] == "teacher"]
        level["points"] += 0.4 if document["scale"] is None else 120
        with pytest.raises(NotProvenError, match="between two categories"):
            prove(document)
    points = model.in_points(points_to_double=200)
    world = pd.DataFrame({"age": 40.0, "job": [*JOBS, "pilot", "stranger", None]})
    h, D = points.predict_proba(world)[:, 1], metric.pairwise(world)
    assert (np.abs(np.subtract.outer(h, h)) <= np.tanh(D) + 1e-12).all()


def test_a_scorecard_says_which_levels_are_held_back():
    X, y = strong_effects()
    card = AdditiveClassifier(TableMetric({"age": 0.01}, {"job": 0.3}, groups=GROUPS)).fit(X, y).scorecard()
    held = card[card["column"] == "job"].set_index("range")["binds"]
    assert held[JOBS].all()  # each from the other of its group
    assert not held["any other"]


def test_the_nearest_of_two_equal_gains_is_the_smallest_change():
    values, gains = np.array([1.0, 2.0]), np.ones(2)
    assert smallest_change([Column.of(0, values, np.array([0.4, 0.2]), gains)], 1.0) == {0: 2.0}
    assert smallest_change([Column.of(0, values, np.array([0.2, 0.4]), gains)], 1.0) == {0: 1.0}
