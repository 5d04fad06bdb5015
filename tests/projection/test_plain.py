"""Projection in NumPy is the compiled one, to the last bit: bounds, the anchors that attain them, and fitted values."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines import with_both
from likewise import ProjectedClassifier, TableMetric
from likewise.inspection.baselines import table_model
from likewise.projection import kernels
from likewise.projection import plain as ours
from likewise.projection.least_squares import closest_values
from likewise.projection.mcshane_whitney import make_envelope

POWERS = st.sampled_from([1.0, 2.0, np.inf, 1.5, 3.0])
SIZES = st.sampled_from([1, 2, 64, 65, 200, 700])  # a box holds 64
SEEDS = st.integers(0, 2**32 - 1)
few = settings(max_examples=40, deadline=None)


def table(rng, n):
    """Few values per column, so that there are ties, and some of them missing."""
    numbers = {name: rng.integers(0, 6, n).astype(float) if rng.random() < 0.6 else rng.normal(size=n) for name in "ab"}
    numbers["b"] = np.where(rng.random(n) < 0.2, np.nan, numbers["b"])
    return pd.DataFrame(numbers | {"job": rng.choice(list("uvwxyz"), n)})


def metric_of(rng):
    weights = {name: float(rng.choice([0.01, 0.1, rng.random()])) for name in "ab"}
    return TableMetric(weights, {"job": float(rng.choice([0.0, 0.05, 0.25]))}, missing={"b": 0.125})


def as_bytes(found):
    return [each.tobytes() for each in (found.lower, found.upper, found.lower_anchor, found.upper_anchor)]


@few
@given(n=SIZES, n_people=SIZES, seed=SEEDS)
def test_bounds_and_the_anchors_that_attain_them(n, n_people, seed):
    rng = np.random.default_rng(seed)
    metric, values = metric_of(rng), np.round(rng.random(n), int(rng.integers(1, 4)))
    anchors = metric.encode_rows(table(rng, n))
    people = metric.encode_rows(table(rng, n_people))
    compiled, plain = with_both(
        lambda: make_envelope(metric, anchors).bounds(people, values, np.zeros(n_people), np.ones(n_people))
    )
    assert as_bytes(plain) == as_bytes(compiled)


@settings(max_examples=15, deadline=None)
@given(n=st.sampled_from([1, 2, 20, 65]), seed=SEEDS)
def test_the_closest_values(n, seed):
    rng = np.random.default_rng(seed)
    metric, targets, weights = metric_of(rng), np.round(rng.random(n), 2), rng.integers(1, 4, n).astype(float)
    people = metric.encode_rows(table(rng, n))
    compiled, plain = with_both(
        lambda: closest_values(targets, weights, make_envelope(metric, people).at_anchors(people))
    )
    assert plain.tobytes() == compiled.tobytes()


@few
@given(n=st.integers(2, 40), n_constraints=st.integers(1, 200), seed=SEEDS, max_sweeps=st.sampled_from([1, 3, 50]))
def test_sweeps_over_constraints(n, n_constraints, seed, max_sweeps):
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, n, (2, n_constraints))
    program = rng.random(n) + 0.1, first, second, rng.random(n_constraints) / 4
    start = rng.random(n), np.zeros(n_constraints)
    found = []
    for module in (kernels, ours):
        values, duals = (each.copy() for each in start)
        ended = [module.hildreth(values, *program, duals, 1e-3, max_sweeps) for _ in range(2)]  # the second goes on
        found.append((values.tobytes(), duals.tobytes(), ended))
    assert found[0] == found[1]


@pytest.mark.parametrize("seed", [1, 2])
def test_scores_of_a_projected_model(seed):
    rng = np.random.default_rng(seed)
    people, others, metric = table(rng, 100), table(rng, 50), metric_of(rng)
    y = rng.integers(0, 2, 100)
    make = ProjectedClassifier(table_model(people, "forest", "classification"), metric=metric, random_state=0)
    compiled, plain = with_both(lambda: make.fit(people, y).predict_proba(others))
    assert plain.tobytes() == compiled.tobytes()


def test_the_comparison_sees_one_bit(monkeypatch):
    """Control: a distance that is one unit in the last place further is not the same."""
    exact = ours.column_distances
    monkeypatch.setattr(ours, "column_distances", lambda *given: np.nextafter(exact(*given), np.inf))
    metric = TableMetric({"a": 0.1})
    people = metric.encode_rows(pd.DataFrame({"a": np.arange(50.0)}))
    values = np.random.default_rng(0).random(50)
    compiled, plain = with_both(lambda: make_envelope(metric, people).bounds(people, values, np.zeros(50), np.ones(50)))
    assert as_bytes(plain) != as_bytes(compiled)
