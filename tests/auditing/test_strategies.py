"""How many people are asked about for how many pairs, and where."""

import numpy as np
import pytest

from attacked.cases import applicants, tabular
from likewise.auditing import pair_search as strategies
from likewise.auditing.pair_search import PairEvaluator, _groups, largest_group, n_pairs_among, strategies_for
from likewise.auditing.search_space import Restriction, build_search_space


@pytest.mark.parametrize("n", [10_000, 1_000_000, 30_000_000])
def test_half_of_the_people_are_in_small_groups_and_all_pairs_are_made(n):
    people, pairs = {}, 0
    for m, size in _groups(n):
        assert m * size <= max(m, strategies._PEOPLE_PER_BATCH)
        people[m] = people.get(m, 0) + m * size
        pairs += size * n_pairs_among(m)
    assert pairs == pytest.approx(n, rel=0.01)
    assert set(people) == {8, largest_group(n)}
    if len(people) == 2:
        assert people[8] == pytest.approx(people[largest_group(n)], rel=0.01)


def test_groups_do_not_grow_before_there_are_many_places():
    sizes = [(n, largest_group(n)) for n in (1000, 50_000, 500_000, 5_000_000, 10**9)]
    assert [m for _, m in sizes] == sorted(m for _, m in sizes)
    assert sizes[0][1] == 8
    assert sizes[-1][1] == 64
    assert all(n / n_pairs_among(m) >= strategies._MIN_GROUPS for n, m in sizes if m > 8)


@pytest.mark.parametrize("places", [10, 10**9], ids=["large groups", "small groups"])
def test_every_tactic_makes_the_pairs_it_is_asked_for_and_asks_about_fewer_people(places, monkeypatch):
    monkeypatch.setattr(strategies, "_MIN_GROUPS", places)
    X, _ = applicants()
    metric = tabular()
    bound, people = metric.read(X)
    asked = []

    def outputs(some):
        asked.append(len(some))
        return some.rows[:, :1] / 100

    space = build_search_space(bound, people.rows, [np.empty(0)] * len(people.encoder.names), with_tables=False)
    evaluator = PairEvaluator(Restriction(space), outputs, lambda distance: distance, 1.0, 1e-9)
    for drawn in (60_000, 10**6):  # the draws come first, and are few of many pairs
        evaluator.tried.clear()
        strategies.over_the_ranges(evaluator, np.random.default_rng(0), drawn)
        assert dict(evaluator.tried) == {"uniform": 30_000, "stratified": 30_000}
    assert next(iter(strategies_for(space))) is strategies.over_the_ranges
    evaluator.tried.clear()
    asked.clear()
    for strategy in list(strategies_for(space))[1:]:
        strategy(evaluator, np.random.default_rng(0), 60_000)
    assert set(evaluator.tried) == {"random", "borders", "categories", "lines", "slopes", "climbing"}
    for name, tried in evaluator.tried.items():
        assert tried == pytest.approx(60_000, rel=0.1), name
    share = sum(asked) / sum(evaluator.tried.values())
    assert share < 0.11 if places == 10 else 0.25 < share < 0.4
