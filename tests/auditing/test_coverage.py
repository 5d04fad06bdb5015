import numpy as np
import pandas as pd
import pytest

from likewise import TableMetric, WeightedLp
from likewise.auditing.coverage import measure_coverage


def test_small_tables_are_measured_exactly():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(20, 60, 50), "job": rng.choice(["a", "b"], 50)})
    metric = TableMetric({"age": 0.1}, {"job": 0.3})
    D = metric.pairwise(X)
    found = measure_coverage(metric, X)
    assert found.bound_share == pytest.approx((D[np.triu_indices(50, 1)] < 1).mean())
    assert found.nearest == pytest.approx(np.median((D + np.diag(np.full(50, np.inf))).min(axis=1)))


def test_large_tables_are_sampled_the_same_method_each_time():
    X = np.random.default_rng(0).random((20_000, 1))
    found = measure_coverage(WeightedLp([2.0]), X)
    # P(|a - b| < 1/2) = 3/4 for uniform a and b; Hoeffding at 1e-6 for 20,000 pairs.
    assert abs(found.bound_share - 0.75) < np.sqrt(np.log(2e6) / (2 * 19_000))
    assert found == measure_coverage(WeightedLp([2.0]), X)


def test_people_further_apart_than_1_are_measured_too():
    found = measure_coverage(WeightedLp([1.0]), np.array([[0.0], [1.25], [2.5]]))
    assert (found.bound_share, found.nearest) == (0.0, 1.25)


def test_less_than_a_tenth_is_little():
    X = np.arange(100.0)[:, None]
    assert measure_coverage(WeightedLp([0.5]), X).is_little
    assert not measure_coverage(WeightedLp([0.05]), X).is_little
