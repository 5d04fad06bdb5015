"""Projection within groups and matrices of categories: the envelope against brute force, all pairs, and an attack."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from likewise import TableMetric
from likewise.projection.mcshane_whitney import BoxEnvelope, ScanEnvelope, make_envelope

JOBS = ["clerk", "teacher", "farmer", "smith", "nurse"]
GROUPS = {"groups": {"job": {"within": 0.25, "groups": [JOBS[:2], JOBS[2:]]}}}
LINE = {"distances": {"job": {a: {b: abs(i - j) for j, b in enumerate(JOBS)} for i, a in enumerate(JOBS)}}}
SIDES = dict(zip(JOBS, "aabbb", strict=True))
# The graph K(2, 3), whose distances are no sum of mismatches.
NO_SUM = {"distances": {"job": {a: {b: 2 * (a != b) - (SIDES[a] != SIDES[b]) for b in JOBS} for a in JOBS}}}


def some_people(n, seed=0):
    rng = np.random.default_rng(seed)
    age = np.where(rng.random(n) < 0.1, np.nan, rng.integers(20, 60, n))
    return pd.DataFrame({"age": age, "job": rng.choice([*JOBS, None], n)}), rng


def metric_with(shape):
    return TableMetric({"age": 0.01}, {"job": 0.2}, missing={"age": 0.05}, **shape)


def capped_distance(metric, table, shape):
    """D of `docs/theory.md` §13 by hand: two numbers are at most twice the missing weight apart."""
    apart = metric.with_params(numeric={"age": 0.0}, missing="refuse").pairwise(table)
    age = table["age"].to_numpy()
    gaps = np.minimum(0.01 * np.abs(np.subtract.outer(age, age)), 0.1)
    blank = np.isnan(age)
    return apart + np.where(blank[:, None] != blank, 0.05, np.nan_to_num(gaps))


@pytest.mark.parametrize("shape", [GROUPS, LINE, NO_SUM])
def test_the_envelope_is_that_of_brute_force(shape):
    table, rng = some_people(40)
    metric = metric_with(shape)
    people = metric.encode_rows(table)
    anchors, values = people.take(np.arange(25)), rng.random(25)
    envelope = make_envelope(metric.bind(anchors.encoder), anchors)
    assert isinstance(envelope, ScanEnvelope if shape is NO_SUM else BoxEnvelope)
    found = envelope.bounds(people, values, np.zeros(40), np.ones(40))
    D = capped_distance(metric, table, shape)[:, :25]
    np.testing.assert_allclose(found.lower, np.maximum(0, (values - D).max(axis=1)), atol=1e-12)
    np.testing.assert_allclose(found.upper, np.minimum(1, (values + D).min(axis=1)), atol=1e-12)
