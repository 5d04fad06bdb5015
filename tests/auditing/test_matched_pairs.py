"""The test of matched pairs: against the binomial test, and against exchanges at known odds."""

import numpy as np
import pytest
from scipy import stats

from chance import too_few, too_many
from likewise.auditing.matched_pairs import holm, matched_pairs


def winners(scores):
    return lambda a, b: np.sign(scores[a] - scores[b]).astype(np.int64)


@pytest.mark.parametrize("gap", [0.0, 0.4])
def test_without_features_it_is_the_sign_test(gap):
    """Exchanges are at even odds: the exact p-value is that of the binomial test. Hoeffding's error at 1e-6."""
    rng, n = np.random.default_rng(0), 20_000
    sex = rng.integers(0, 2, 60)
    scores = rng.random(60) + gap * sex
    found = matched_pairs(sex, 2, np.zeros((60, 1)), winners(scores), n, rng)
    exact = stats.binomtest(int(found.n_favoured[1]), int(found.n_pairs[1])).pvalue
    assert found.p_values == pytest.approx(exact, abs=np.sqrt(np.log(2e6) / (2 * n)))
    assert found.n_favoured.sum() == found.n_pairs[0] == found.n_pairs[1] > 5


def test_values_are_exchanged_at_the_odds_of_the_features():
    """Older people are men more often and score higher: in half of the pairs sex is then no coin."""
    alarms = evens = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        age = rng.normal(size=120)
        sex = (rng.random(120) < 1 / (1 + np.exp(-2 * age))).astype(int)
        found = matched_pairs(sex, 2, age[:, None], winners(np.exp(age)), 199, rng)
        alarms += found.p_values[0] <= 0.05
        order = rng.permutation(120)  # the control: random pairs at even odds
        a, b = order[:60], order[60:]
        apart = sex[a] != sex[b]
        men_win = (np.sign(age[a] - age[b]) == np.sign(sex[a] - sex[b]))[apart]
        evens += stats.binomtest(int(men_win.sum()), len(men_win)).pvalue <= 0.05
    assert not too_many(alarms, 200, 0.05)
    assert too_many(evens, 200, 0.05)


def test_p_values_are_uniform_if_the_group_is_a_coin():
    small = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        features, group = rng.normal(size=(80, 2)), rng.integers(0, 3, 80)
        found = matched_pairs(group, 3, features, winners(features[:, 0] + rng.normal(size=80)), 99, rng)
        small += found.p_values[0] <= 0.1
    assert not too_many(small, 300, 0.1)
    assert not too_few(small, 300, 0.03)  # nor is it a test that never says anything


def test_groups_that_nobody_is_in_or_everybody_have_no_pairs():
    found = matched_pairs(
        np.ones(20, dtype=int), 2, np.zeros((20, 1)), winners(np.arange(20)), 9, np.random.default_rng(0)
    )
    assert found.p_values.tolist() == [1, 1]
    assert found.n_pairs.tolist() == [0, 0]


def test_holm_by_hand():
    assert holm(np.array([0.01, 0.02, 0.03, 0.9])).tolist() == pytest.approx([0.04, 0.06, 0.06, 0.9])
    assert holm(np.array([0.5, 0.6])).tolist() == [1, 1]
