import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from likewise import WeightedLp, ceiling
from likewise.auditing.ceiling import Confidence
from likewise.pairs.points import Points

RNG = np.random.default_rng(0)


def full_program(X, y, metric):
    """The linear program for two classes with all pairs in it."""
    n = len(X)
    i, j = np.triu_indices(n, 1)
    rows = np.zeros((2 * len(i), n))
    k = np.arange(len(i))
    rows[k, i], rows[k, j] = 1, -1
    rows[len(i) :] = -rows[: len(i)]
    solved = linprog(np.where(y, -1.0, 1.0), rows, np.tile(metric(X[i], X[j]), 2), bounds=(0, 1))
    return ((~y).sum() - solved.fun) / n


@pytest.mark.parametrize("p", [1, 2, np.inf])
@pytest.mark.parametrize("factor", [0.05, 0.3, 2.0])
def test_value_is_that_of_the_program_with_all_pairs(p, factor):
    X = RNG.normal(size=(40, 2)).round(1)
    y = X[:, 0] + RNG.normal(size=40) > 0
    metric = WeightedLp([factor, factor / 2], p)
    result = ceiling(X, y, metric)
    assert result.value == pytest.approx(full_program(X, y, metric), abs=1e-6)
    assert float(result) == result.value
    assert result.n_pairs == len(np.unique(X, axis=0)) * (len(np.unique(X, axis=0)) - 1) // 2


def test_a_metric_that_never_binds_allows_certainty():
    result = ceiling([[0.0], [1.0], [2.0]], [0, 1, 0], WeightedLp([5.0]))
    assert (result.value, result.n_rounds) == (1.0, 0)


def test_a_metric_of_zero_leaves_the_share_of_the_largest_class():
    assert ceiling(RNG.normal(size=(10, 2)), ["a"] * 7 + ["b"] * 3, WeightedLp([0.0, 0.0])).value == pytest.approx(0.7)


def test_equal_people_with_different_labels_share_one_answer():
    assert ceiling([[0.0], [0.0], [9.0]], [1, 0, 1], WeightedLp([1.0])).value == pytest.approx(2 / 3)


def test_several_classes():
    # Three people of three classes, all 0.5 from each other: by symmetry each gives 0.5 + 1/6 to their own class.
    X = np.eye(3) / 2
    result = ceiling(X, ["a", "b", "c"], WeightedLp([0.5, 0.5, 0.5]))
    assert result.value == pytest.approx(2 / 3, abs=1e-6)


def test_no_pair_of_several_classes_is_further_apart_than_the_metric():
    """The solution itself, checked pair by pair: an excess of 1e-7 is the tolerance of the program."""
    rng = np.random.default_rng(0)
    metric = WeightedLp([0.2, 0.3])
    points = Points.of(metric.encode_rows(rng.normal(size=(50, 2))))
    program = Confidence(points, metric.weights_of(points.people.encoder), np.eye(3)[rng.integers(0, 3, 50)])
    program.solve_with_cuts(500, "")
    variation = np.abs(program.h[:, None] - program.h).sum(axis=2) / 2
    excess = variation - metric.pairwise(points.X)
    assert excess.max() <= 2e-7
    assert (excess > -1e-9).sum() > 100  # many pairs bind
    assert program.h.sum(axis=1) == pytest.approx(1)


def test_several_classes_agree_with_two_where_the_third_never_occurs_nearby():
    X = np.concatenate([RNG.normal(size=(30, 2)), [[100.0, 100.0]]])
    y = np.append((X[:-1, 0] > RNG.normal(size=30)).astype(int), 2)
    metric = WeightedLp([0.3, 0.3])
    two = ceiling(X[:-1], y[:-1], metric).value
    assert ceiling(X, y, metric).value == pytest.approx((30 * two + 1) / 31, abs=1e-6)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0.0], [np.nan]], [0, 1], "X must be finite"),
        ([[0.0], [1.0]], [0, 1, 1], r"one label per row of X \(2\)"),
        ([[0.0, 1.0], [1.0, 1.0]], [0, 1], "X must have 1 columns, one per weight"),
        ([[0.0], [1.0]], [0.5, 1.7], "continuous"),
        (pd.DataFrame({"b": [0.0, 1.0]}), [0, 1], "must have the columns of the metric, "),
    ],
)
def test_bad_input_gives_one_clear_error(X, y, message):
    with pytest.raises(ValueError, match=message):
        ceiling(X, y, WeightedLp({"a": 1.0}))
