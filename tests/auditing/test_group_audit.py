"""Who is favoured: against brute force, with a test whose false alarms are counted."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from chance import too_few, too_many
from likewise import TableMetric, audit_groups
from likewise.auditing import group_audit
from likewise.auditing.intervals import pair_rate_interval
from likewise.exceptions import InvalidInputError
from oracle import Described

METRIC = TableMetric({"age": 0.02}, {"sex": 0})


def drawn(seed, n=60, effect=0.0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.integers(20, 60, n), "sex": rng.choice(["f", "m"], n)})
    scores = np.clip(0.01 * X["age"] + effect * (X["sex"] == "m") + rng.normal(scale=0.1, size=n), 0, 1)
    return X, scores.to_numpy()


def table(seed, n=48):
    """Few values, so that many people are equal; a group of blanks."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.choice([20.0, 24.0, 32.0, np.nan], n),
            "job": rng.choice(["x", "y"], n),
            "race": rng.choice(np.array(["a", "b", "c", None], dtype=object), n),
        }
    )
    return X, rng.integers(0, 17, n) / 16


@pytest.mark.parametrize("at_once", [2**20, 100, 0], ids=["every pair", "in parts", "boxes"])
@pytest.mark.parametrize("scale", [1, 4096])
def test_counts_are_those_of_all_pairs(scale, at_once, monkeypatch):
    """Weights are powers of two: sums are exact, and so is what exceeds by nothing."""
    monkeypatch.setattr(group_audit, "_AT_ONCE", at_once)
    X, scores = table(0)
    metric = TableMetric({"age": scale * 2.0**-6}, {"job": 0.125, "race": 0}, missing={"age": 0.25})
    if scale == 1:
        found = audit_groups(None, X, metric, predictions=scores, n_permutations=1)
    else:  # numbers without a range: rounding is relative to them
        found = audit_groups(lambda X: scale * scores, X, metric, n_permutations=1)
        assert found.tolerance == 1e-9 * scale
    scores, people = scale * scores, X.to_dict("records")
    described, n = Described(metric, list(X)), len(X)
    distances = np.array([[float(described.distance(a, b)) for b in people] for a in people])
    exceeds = np.abs(scores[:, None] - scores) > distances
    higher = scores[None, :] > scores[:, None]
    truth = pd.DataFrame({"row": range(n), "score": scores, "n_comparators": exceeds.sum(axis=1)})
    truth = truth.assign(n_higher=(exceeds & higher).sum(axis=1), n_lower=(exceeds & ~higher).sum(axis=1))
    truth = truth.sort_values(["n_higher", "n_comparators", "row"], ascending=[False, False, True])
    pd.testing.assert_frame_equal(found.people, truth.reset_index(drop=True), check_dtype=False)
    assert found.n_violations == exceeds.sum() // 2 > 0
    race, rows = X["race"].map(str), found.groups.set_index("value")
    assert rows.index.tolist() == sorted(race.unique())
    for value in race.unique():
        across = exceeds & (race == value).to_numpy()[:, None] & (race != value).to_numpy()
        wins, row = int((across & ~higher).sum()), rows.loc[value]
        assert (row["n_people"], row["n_pairs"], row["n_higher"]) == ((race == value).sum(), across.sum(), wins)
        assert row["share"] == wins / across.sum()
    assert found.rate == pytest.approx(exceeds.sum() / (n * (n - 1)))
    assert found.rate_interval == pytest.approx(pair_rate_interval(found.rate, n))


def test_a_sample_is_compared_with_its_own_scores():
    X, scores = drawn(1)
    found = audit_groups(None, X, METRIC, predictions=scores, max_people=20, n_permutations=1)
    chosen = np.sort(found.people["row"])
    np.testing.assert_array_equal(found.people["score"], scores[found.people["row"]])
    again = audit_groups(None, X.iloc[chosen], METRIC, predictions=scores[chosen], n_permutations=1)
    assert 10 < found.n_samples <= 20
    assert found.n_violations == again.n_violations > 0


def test_p_values_are_those_of_all_permutations():
    """Six people, of whom all 720 orders are gone through; the estimate is within Hoeffding's error at 1e-6."""
    X = pd.DataFrame({"sex": list("ffmmmm")})
    scores = np.array([0.1, 0.3, 0.2, 0.6, 0.6, 0.9])
    lead = (scores[:, None] > scores).sum(axis=1) - (scores[:, None] < scores).sum(axis=1)  # nothing is allowed

    def apart(order):
        return abs(lead[list(order[:2])].sum())

    exact = np.mean([apart(order) >= apart(range(6)) for order in itertools.permutations(range(6))])
    n = 20_000
    found = audit_groups(None, X, TableMetric({}, {"sex": 0}), predictions=scores, n_permutations=n)
    assert found.groups["p_value"].to_numpy() == pytest.approx(exact, abs=np.sqrt(np.log(2e6) / (2 * n)))
    ties = np.mean([apart(order) > apart(range(6)) for order in itertools.permutations(range(6))])
    assert exact - ties > 0.05  # the control: those as far apart count, and would be missed


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
    p_values = audit_groups(None, X, METRIC, predictions=scores, n_permutations=999).groups["p_value"]
    assert p_values.tolist() == [1 / 1000] * 2  # never 0: the people as they are is one of the orders


def test_the_interval_covers_the_rate_of_the_population_if_few_people_carry_it():
    """Whoever meets one of 1% of the people; the control is the interval of U-statistics for large samples."""
    truth, held, by_student = 1 - 0.99**2, 0, 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"age": np.full(80, 30)})
        scores = np.where(rng.random(80) < 0.01, rng.random(80) + 0.1, 0.0) / 2
        found = audit_groups(None, X, TableMetric({"age": 0.02}), predictions=scores)
        held += found.rate_interval[0] <= truth <= found.rate_interval[1]
        width = stats.t.ppf(0.975, 79) * 2 * stats.sem(found.people["n_comparators"] / 79)
        by_student += abs(found.rate - truth) <= width
    assert not too_few(held, 200, 0.95)
    assert too_few(by_student, 200, 0.95)


def test_what_cannot_be_said_is_refused():
    X, scores = drawn(0)
    with pytest.raises(InvalidInputError, match="one score per person"):
        audit_groups(None, X, METRIC, predictions=np.column_stack([scores, 1 - scores, 0 * scores]))
    with pytest.raises(InvalidInputError, match="columns must list columns of X"):
        audit_groups(None, X, METRIC, ["race"], predictions=scores)
