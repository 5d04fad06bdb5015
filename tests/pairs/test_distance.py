"""The distance, which stands in NumPy and in compiled code, is the same in both."""

import numpy as np
import pandas as pd
import pytest

from likewise import TableMetric, WeightedLp
from likewise.kernel.distance import CODE
from likewise.pairs.box_bounds import norm
from likewise.pairs.kernels import fill_distances
from likewise.pairs.points import Points
from likewise.pairs.scans import within_groups

POWERS = [1, 1.5, 2, 3, 7, 40, np.inf]
ROUNDING = 1e-12  # relative


def make_table(rng, n):
    numbers = rng.normal(size=(n, 4)) * [1, 1e4, 1e-3, 1]
    numbers[:, 2:][rng.random((n, 2)) < 0.3] = np.nan
    table = pd.DataFrame(numbers, columns=["age", "income", "rate", "hidden"])
    return table.assign(region=rng.choice([*"nsew"], n), job=pd.Categorical(rng.choice([*"ab", None], n)), race="x")


def table_metric():
    return TableMetric(
        {"age": 0.3, "income": 2e-5, "rate": 150.0, "hidden": 0.0},
        {"region": 0.2, "job": 0.05, "race": 0.0},
        missing={"rate": 0.1},
    )


def compiled(points, scales, p):
    """Distances between all people by the scan, which leaves out powers only where outputs differ by less."""
    n = len(points)
    columns, far = np.ascontiguousarray(points.X.T), np.full(n, np.inf)
    out = np.empty((n, n))
    for i in range(n):
        fill_distances(columns, points.kinds, scales, float(p), i, 0, n, far, out[i])
    return out


def cases(p):
    rng = np.random.default_rng(0)
    X = make_table(rng, 60)
    if p == 1:
        yield X, table_metric()
    yield X[["age", "income"]].to_numpy(), WeightedLp([0.3, 2e-5], p)
    yield rng.normal(size=(60, 3)).round(), WeightedLp([1.0, 0.0, 1e-12], p)


@pytest.mark.parametrize("p", POWERS)
def test_numpy_and_compiled_distances_agree(p):
    for X, metric in cases(p):
        weights, people = metric.read(X)
        points = Points.of(people, weights)
        scales = points.scales
        expected = weights.pairwise(points.people.rows, points.people.rows)
        np.testing.assert_allclose(compiled(points, scales, p), expected, rtol=ROUNDING, atol=0)
        # The norm of boxes, of which a person is the smallest; it wants codes last.
        order = np.argsort(points.kinds == CODE, kind="stable")
        n_numbers = int((points.kinds != CODE).sum())
        i, j = np.triu_indices(len(points), 1)
        gaps = points.gaps(i, j)[:, order]
        boxed = [norm(gap, n_numbers, scales[order], float(p)) for gap in gaps]
        np.testing.assert_allclose(boxed, expected[i, j], rtol=ROUNDING, atol=0)
        # The control: a scale that is off by more than the rounding shows.
        wrong = compiled(points, scales * (1 + 5 * ROUNDING), p)
        assert not np.allclose(wrong, expected, rtol=ROUNDING, atol=0)


@pytest.mark.parametrize("p", POWERS)
def test_rows_and_tables_of_distances_agree(p):
    for X, metric in cases(p):
        i, j = np.triu_indices(len(X), 1)
        a, b = (X.iloc[k].reset_index(drop=True) if hasattr(X, "iloc") else X[k] for k in (i, j))
        pairwise = metric.pairwise(X)[i, j]
        np.testing.assert_allclose(pairwise, metric(a, b), rtol=ROUNDING, atol=0)
        assert np.isfinite(pairwise).all()
        assert (pairwise > 0).any()


def test_large_powers_neither_overflow_nor_vanish():
    X = pd.DataFrame({"income": [0.0, 1e9, 1e-9]})
    np.testing.assert_allclose(WeightedLp({"income": 1.0}, p=40).pairwise(X)[0], [0, 1e9, 1e-9], rtol=ROUNDING)


@pytest.mark.parametrize("p", POWERS)
def test_pairs_within_groups_are_those_of_numpy(p):
    m = 12
    for X, metric in cases(p):
        weights, people = metric.read(X)
        points = Points.of(people, weights)
        outputs = np.random.default_rng(1).random((len(points), 3))
        differences, distances = within_groups(points.columns_in(1.0), np.ascontiguousarray(outputs.T), m)
        assert differences.shape == distances.shape == (len(points) // m, m * (m - 1) // 2)
        first, second = np.triu_indices(m, 1)
        for k in range(len(points) // m):
            a, b = k * m + first, k * m + second
            rows = points.people.rows
            np.testing.assert_allclose(distances[k], weights.distances(rows[a], rows[b]), rtol=ROUNDING, atol=0)
            np.testing.assert_allclose(differences[k], np.abs(outputs[a] - outputs[b]).sum(axis=1), rtol=ROUNDING)
