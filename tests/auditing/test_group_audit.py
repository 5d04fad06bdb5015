"""Who is favoured: against brute force, with a test whose false alarms are counted."""

import numpy as np
import pandas as pd
import pytest

from chance import too_few, too_many
from likewise import TableMetric, audit, audit_groups
from likewise.exceptions import InvalidInputError

METRIC = TableMetric({"age": 0.02}, {"sex": 0})


def drawn(seed, n=60, effect=0.0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.integers(20, 60, n), "sex": rng.choice(["f", "m"], n)})
    scores = np.clip(0.01 * X["age"] + effect * (X["sex"] == "m") + rng.normal(scale=0.1, size=n), 0, 1)
    return X, scores.to_numpy()


def test_counts_are_those_of_all_pairs():
    X, scores = drawn(0, effect=0.1)
    found = audit_groups(None, X, METRIC, predictions=scores)
    gap = scores[:, None] - scores[None]
    exceeds = np.abs(gap) - METRIC.pairwise(X) > found.tolerance
    people = found.people.sort_values("row")
    np.testing.assert_array_equal(people["n_comparators"], exceeds.sum(axis=1))
    np.testing.assert_array_equal(people["n_favoured"], (exceeds & (gap < 0)).sum(axis=1))
    assert found.n_violations == exceeds.sum() // 2 == audit(None, X, METRIC, predictions=scores).n_violations
    assert found.rate == pytest.approx(exceeds.sum() / (60 * 59))
    men = (X["sex"] == "m").to_numpy()
    across = exceeds[np.ix_(men, ~men)]
    row = found.groups.set_index("value").loc["m"]
    assert row["n_pairs"] == across.sum()
    assert row["n_favoured"] == (across & (gap[np.ix_(men, ~men)] > 0)).sum()


def test_p_values_are_uniform_if_sex_is_a_coin_and_small_if_it_counts():
    """300 tables without an effect: P(p <= 0.1) is at most 0.1, and not much less."""
    below = sum(
        audit_groups(None, X, METRIC, predictions=scores, n_permutations=199, random_state=seed).groups["p_value"].min()
        <= 0.1
        for seed, (X, scores) in ((seed, drawn(seed, 40)) for seed in range(300))
    )
    assert not too_many(below, 300, 0.1 + 1e-9)
    assert not too_few(below, 300, 0.03)
    X, scores = drawn(1, 200, effect=0.15)  # the control: an effect is seen
    assert audit_groups(None, X, METRIC, predictions=scores).groups["p_value"].max() < 0.001


def test_the_interval_covers_the_rate_of_the_population():
    X, scores = drawn(5, 3000, effect=0.1)
    truth = audit_groups(None, X, METRIC, predictions=scores, n_permutations=1).rate
    rng, covered = np.random.default_rng(0), 0
    for _ in range(200):
        chosen = rng.integers(len(X), size=80)
        found = audit_groups(None, X.iloc[chosen], METRIC, predictions=scores[chosen], n_permutations=1)
        covered += found.rate_interval[0] <= truth <= found.rate_interval[1]
    assert not too_few(covered, 200, 0.93)
    assert covered < 200  # it is no interval of 100%


def test_what_cannot_be_said_is_refused():
    X, scores = drawn(0)
    with pytest.raises(InvalidInputError, match="one score per person"):
        audit_groups(None, X, METRIC, predictions=np.column_stack([scores, 1 - scores, 0 * scores]))
    with pytest.raises(InvalidInputError, match="columns must list columns of X"):
        audit_groups(None, X, METRIC, ["race"], predictions=scores)
