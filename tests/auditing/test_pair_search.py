"""Pairs within groups are judged as one would by hand, one at a time."""

import itertools

import numpy as np
import pytest

from likewise import FunctionMetric, WeightedLp
from likewise.auditing import pair_search as pair_search
from likewise.auditing.pair_search import PairEvaluator
from likewise.auditing.search_space import Restriction, build_search_space

METRIC = WeightedLp([0.5, 0.2], 3)
GROUPS = np.random.default_rng(0).normal(size=(7, 9, 2))


def steep(people):
    """Outputs that move by more than the distance here and there."""
    return np.column_stack([np.sin(3 * people.rows[:, 0]) / 3, people.rows[:, 1] / 10])


def evaluator_of(metric, tolerance=0.01):
    bound, people = metric.read(GROUPS.reshape(-1, 2))
    space = build_search_space(bound, people.rows, [np.empty(0)] * 2)
    return PairEvaluator(Restriction(space), steep, lambda distance: 0.9 * distance, 1.0, tolerance)


def by_hand(group, tolerance=0.01):
    """Of each pair: difference, bound; and how many exceed."""
    found = {}
    for i, j in itertools.combinations(range(len(group)), 2):
        a, b = group[i], group[j]
        one, other = ([np.sin(3 * x[0]) / 3, x[1] / 10] for x in (a, b))
        difference = abs(one[0] - other[0]) + abs(one[1] - other[1])
        found[i, j] = difference, 0.9 * float(METRIC(a[None], b[None])[0])
    return found, sum(difference - bound > tolerance for difference, bound in found.values())


@pytest.mark.parametrize("at_once", [1, 2**15])
@pytest.mark.parametrize(
    "metric", [METRIC, FunctionMetric(lambda A, B: METRIC(np.asarray(A), np.asarray(B)))], ids=["weights", "function"]
)
def test_pairs_of_groups_are_counted_and_judged_as_by_hand(metric, at_once, monkeypatch):
    monkeypatch.setattr(pair_search, "_PAIRS_PER_BATCH", at_once)
    evaluator = evaluator_of(metric)
    expected = [by_hand(group) for group in GROUPS]
    worst = evaluator.compare(GROUPS, "random", by="excess")
    for group, pair, (found, _) in zip(GROUPS, worst, expected, strict=True):
        i, j = max(found, key=lambda key: found[key][0] - found[key][1])
        np.testing.assert_array_equal(pair, group[[i, j]])
    assert dict(evaluator.tried) == {"random": 7 * 36}
    assert evaluator.n_violations == sum(count for _, count in expected) > 0
    every = [pair for found, _ in expected for pair in found.values()]
    assert evaluator.worst.excess == pytest.approx(max(difference - bound for difference, bound in every))
    assert evaluator.largest_share == pytest.approx(max(difference / bound for difference, bound in every))
    # What was found before is not forgotten over groups in which nothing is.
    evaluator.compare(np.repeat(GROUPS[:, :1], 9, axis=1), "lines")
    assert evaluator.n_violations == sum(count for _, count in expected)
    assert evaluator.tried["lines"] == 7 * 36


def test_equal_people_are_not_the_worst_pair():
    evaluator = evaluator_of(METRIC)
    group = np.zeros((1, 3, 2))
    group[0, 2, 1] = 5.0  # far away, and well within what is allowed
    evaluator.compare(group, "random")
    assert evaluator.worst.distance > 0
    assert evaluator.worst.excess < 0


def test_people_with_equal_outputs_are_never_the_worst_pair():
    """Neither with a bound above 0 at distance 0, nor if outputs differ by rounding, nor if the two are apart."""
    evaluator = evaluator_of(METRIC)
    evaluator.bound = lambda distance: distance + 0.1
    evaluator.compare(np.zeros((1, 3, 2)), "random")
    assert evaluator.worst is None
    evaluator.bound = lambda distance: distance
    evaluator.outputs = lambda people: 1e-16 * np.arange(len(people.rows))[:, None]
    evaluator.compare(np.zeros((1, 3, 2)), "random")
    assert evaluator.worst is None
    evaluator.compare(GROUPS, "random")
    assert evaluator.worst is None
    evaluator.outputs = lambda people: 1e-6 * np.arange(len(people.rows))[:, None]
    evaluator.compare(GROUPS, "random")
    assert evaluator.worst is not None
