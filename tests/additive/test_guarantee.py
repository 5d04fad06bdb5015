"""No pair exceeds the promise, whatever the shapes; and pairs that reach it exist."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise import WeightedLp
from likewise.additive.scorer import AdditiveScorer
from likewise.additive.shapes import constrain, on_grid
from likewise.kernel.evidence import Shape, SumOfShapes
from likewise.kernel.links import LINKS
from likewise.kernel.schema import People
from parts import of_parts
from promised import unchecked

PAIRS = 25_000  # per example; with 40 examples: a million
ROUNDING = 1e-12


def columns(rng):
    """Three numbers, one that may be missing, two categories, and one of each that must not matter."""
    scales = np.array([*10.0 ** rng.uniform(-3, 1, 4), *rng.uniform(0.05, 1, 2), 0.0, 0.0])
    is_number = np.array([True, True, True, True, False, False, True, False])
    missing = np.where(np.arange(8) == 3, rng.uniform(0.05, 1), np.where(np.arange(8) == 6, 0.0, np.nan))
    return of_parts(scales, is_number, missing, 1.0)


def random_shapes(rng, weights, unit, n_functions):
    """Shapes far beyond all limits, or within them, in places."""
    shapes = []
    for i in np.flatnonzero(weights.matters):
        strength = 10.0 ** rng.uniform(-1, 1.5) * unit
        if not weights.is_number[i]:
            levels = rng.normal(size=(n_functions, 4)) * strength
            shapes.append(Shape(int(i), None, levels, levels.mean(axis=1)))
            continue
        knots = np.unique(rng.normal(size=int(rng.integers(2, 12))) / weights.scales[i])
        values = np.cumsum(rng.normal(size=(n_functions, len(knots))) * strength, axis=1)
        shapes.append(Shape(int(i), knots, values, values.mean(axis=1) if i == 3 else None))
    return shapes


def scorer_of(model, link):
    """No rule has seen it: what the guarantee says is to be found out here."""
    scorer = AdditiveScorer(model, link, None)
    return unchecked(scorer, WeightedLp([1.0]), curve=LINKS[link].curve)


def outputs(scorer, rows):
    return scorer.estimate(People(rows, None, None)).mean


def random_rows(rng, weights, n):
    rows = np.empty((n, 8))
    for i in range(8):
        if weights.is_number[i]:
            rows[:, i] = rng.normal(size=n) * 2 / max(weights.scales[i], 1e-3)
        else:
            rows[:, i] = rng.integers(-1, 4, n)
    rows[rng.random(n) < 0.3, 3] = np.nan
    return rows


def random_pairs(rng, weights, n):
    """Far apart, close by, one step of floating point away, or different in a single column."""
    a, b = random_rows(rng, weights, n), random_rows(rng, weights, n)
    kind = rng.integers(0, 4, n)
    near = a + (b - a) * 10.0 ** rng.uniform(-12, 0, (n, 1))
    codes = ~weights.is_number
    near[:, codes] = a[:, codes]
    b = np.where((kind == 1)[:, None], near, b)
    step = np.where(codes, a, np.nextafter(a, np.inf))
    b = np.where((kind == 2)[:, None], step, b)
    single = rng.integers(0, 8, n)[:, None] == np.arange(8)
    b = np.where((kind == 3)[:, None] & ~single, a, b)
    return a, b


def steepest_pairs(model, weights, n):
    """Pairs along the column whose shape is steepest for its weight, around a person with a score in the middle."""
    middle, direction = np.zeros(8), np.zeros(8)
    middle[weights.is_number] = 0.0
    slopes = {}
    for shape in model.shapes:
        if shape.knots is None:
            continue
        rises = np.diff(shape.values[0]) / np.diff(shape.knots)
        k = int(np.argmax(np.abs(rises)))
        middle[shape.column] = (shape.knots[k] + shape.knots[k + 1]) / 2
        slopes[shape.column] = (rises[k], (shape.knots[k + 1] - shape.knots[k]) / 2)
    steepest = max(slopes, key=lambda i: abs(slopes[i][0]) / weights.scales[i])
    slope, half = slopes[steepest]
    direction[steepest] = np.sign(slope)
    sizes = half * np.linspace(0.01, 1, n)[:, None]
    return middle - sizes * direction, middle + sizes * direction, middle


def excess(scorer, weights, a, b):
    differences = np.abs(outputs(scorer, a) - outputs(scorer, b)).sum(axis=1) / 2
    return differences - scorer.guarantee.curve.bound(weights.distances(a, b))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), link=st.sampled_from(["logistic", "softmax", "probit", "clip"]))
def test_no_pair_exceeds_the_promise(seed, link):
    rng = np.random.default_rng(seed)
    weights, unit = columns(rng), LINKS[link].unit
    n_functions = 3 if link == "softmax" else 1
    shapes = random_shapes(rng, weights, unit, n_functions)
    model = constrain(rng.normal(size=n_functions), shapes, weights, unit)
    assert (model.used(unit) <= 1).all()
    scorer = scorer_of(model, link)
    assert excess(scorer, weights, *random_pairs(rng, weights, PAIRS)).max() <= ROUNDING
    assert excess(scorer, weights, *steepest_pairs(model, weights, 100)[:2]).max() <= ROUNDING


def at_its_limits(rng, weights, unit):
    """A finished model that uses all that its metric allows, with a score of 0 where all shapes are steepest."""
    shapes = [s for s in random_shapes(rng, weights, 30 * unit, 1) if s.knots is not None and s.other is None]
    model = constrain(np.zeros(1), shapes, weights, unit)
    return centred(model, weights)


def centred(model, weights):
    middle = steepest_pairs(model, weights, 1)[2]
    score = scorer_of(model, "logistic").scores(People(middle[None], None, None))
    return SumOfShapes(weights, model.intercepts - score[0], model.shapes, model.bits)


def test_a_model_at_its_limits_reaches_the_bound():
    rng = np.random.default_rng(1)
    weights = columns(rng)
    model = at_its_limits(rng, weights, 4.0)
    assert model.used(4.0)[0] == pytest.approx(1, abs=1e-9)
    found = excess(scorer_of(model, "logistic"), weights, *steepest_pairs(model, weights, 100)[:2])
    assert found.max() == pytest.approx(0, abs=1e-9)


def test_control_slopes_one_percent_above_the_limit_are_found():
    rng = np.random.default_rng(2)
    weights = columns(rng)
    model = at_its_limits(rng, weights, 4.0)
    steeper = on_grid(
        weights, model.intercepts, [Shape(s.column, s.knots, 1.01 * s.values, None) for s in model.shapes]
    )
    steeper = centred(steeper, weights)
    assert steeper.used(4.0)[0] > 1
    found = excess(scorer_of(steeper, "logistic"), weights, *steepest_pairs(steeper, weights, 100)[:2])
    assert found.max() > 1e-4


def test_control_levels_one_percent_too_far_apart_are_found():
    rng = np.random.default_rng(3)
    weights = columns(rng)
    half = 2.02 * weights.scales[4]
    model = on_grid(weights, np.zeros(1), [Shape(4, None, np.array([[-half, half]]), np.zeros(1))])
    a, b = np.zeros((1, 8)), np.zeros((1, 8))
    b[0, 4] = 1
    assert excess(scorer_of(model, "logistic"), weights, a, b)[0] > 1e-5
    tame = constrain(model.intercepts, model.shapes, weights, 4.0)
    assert excess(scorer_of(tame, "logistic"), weights, a, b)[0] <= ROUNDING
