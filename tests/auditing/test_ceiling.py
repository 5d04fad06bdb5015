import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from likewise import TableMetric, WeightedLp, ceiling
from likewise.auditing.ceiling import Confidence
from likewise.pairs.points import Points
from oracle import Described, sets_of_classes

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


SIDES = {"north": {"south": 2, "west": 1, "east": 1, "far": 1}, "south": {"west": 1, "east": 1, "far": 1}}
SIDES |= {"west": {"east": 2, "far": 2}, "east": {"far": 2}}  # no sum of mismatches
TABLES = {
    "numbers": TableMetric({"age": 0.02, "pay": 0}, {"region": 0}, missing={"pay": 0.5}),
    "a blank that matters": TableMetric({"age": 0.02, "pay": 0.1}, {"region": 0.1}, missing={"pay": 0.15}),
    "a blank of weight 0 beside it": TableMetric(
        {"age": 0, "pay": 0.3}, {"region": 0}, missing={"age": 1, "pay": 0.05}
    ),
    "groups": TableMetric(
        {"age": 0.01, "pay": 0},
        {"region": 0.4},
        missing={"age": 0.1},
        groups={"region": {"within": 0.25, "groups": [["north", "south"], ["west", "east"]]}},
    ),
    "a matrix": TableMetric(
        {"age": 0.01, "pay": 0}, {"region": 0.4}, missing={"age": 0.1}, distances={"region": SIDES}
    ),
}


def best_of_all_pairs(people, y, metric):
    """The largest mean of h[y], by one program with a row for every two people and every set of classes."""
    described, records = Described(metric, list(people)), people.to_dict("records")
    classes = sorted(set(y))
    n, m = len(y), len(classes)
    A, b = [], []
    for i, j in itertools.permutations(range(n), 2):
        away = float(described.distance(records[i], records[j]))
        for chosen in (each for each in sets_of_classes(m) if away < 1):
            row = np.zeros((n, m))
            row[i, chosen], row[j, chosen] = 1, -1
            A.append(row.ravel())
            b.append(away)
    goal = -np.array([[label == each for each in classes] for label in y], dtype=float).ravel() / n
    return -linprog(goal, A or None, b or None, np.kron(np.eye(n), np.ones(m)), np.ones(n), bounds=(0, 1)).fun


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("name", TABLES)
def test_tables_have_the_value_of_a_program_with_all_pairs(name, m):
    """Equal people among them, blanks, and metrics that break the triangle inequality."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        people = pd.DataFrame(
            {
                "age": rng.choice([20.0, 25.0, 30.0, np.nan], 16),
                "pay": rng.choice([1.0, 2.0, 4.0, np.nan], 16),
                "region": rng.choice(np.array(["north", "south", "west", "east", "far", None], dtype=object), 16),
            }
        )
        if "age" not in TABLES[name].missing:
            people["age"] = people["age"].fillna(50.0)
        y = rng.integers(0, m, 16).tolist()
        assert ceiling(people, y, TABLES[name]).value == pytest.approx(
            best_of_all_pairs(people, y, TABLES[name]), abs=1e-6
        )


def test_several_classes():
    # Three people of three classes, all 0.5 from each other: by symmetry each gives 0.5 + 1/6 to their own class.
    X = np.eye(3) / 2
    result = ceiling(X, ["a", "b", "c"], WeightedLp([0.5, 0.5, 0.5]))
    assert result.value == pytest.approx(2 / 3, abs=1e-6)


def test_no_pair_of_several_classes_is_further_apart_than_the_metric():
    """The solution itself, checked pair by pair: an excess of 1e-7 is the tolerance of the program."""
    rng = np.random.default_rng(0)
    metric = WeightedLp([0.2, 0.3])
    bound, people = metric.read(rng.normal(size=(50, 2)))
    points = Points.of(people, bound)
    program = Confidence(points, np.eye(3)[rng.integers(0, 3, 50)])
    program.solve_with_cuts(500, "")
    variation = np.abs(program.h[:, None] - program.h).sum(axis=2) / 2
    excess = variation - metric.pairwise(points.X)
    assert excess.max() <= 2e-7
    assert (excess > -1e-9).sum() > 100  # many pairs bind
    assert program.h.sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0.0], [np.nan]], [0, 1], "X must be finite"),
        ([[0.0], [1.0]], [0, 1, 1], "X and y must have the same number of rows"),
        ([[0.0, 1.0], [1.0, 1.0]], [0, 1], "X must have 1 columns, one per weight"),
        ([[0.0], [1.0]], [0.5, 1.7], "continuous"),
        (pd.DataFrame({"b": [0.0, 1.0]}), [0, 1], "must have the columns of the metric, "),
    ],
)
def test_bad_input_gives_one_clear_error(X, y, message):
    with pytest.raises(ValueError, match=message):
        ceiling(X, y, WeightedLp({"a": 1.0}))
