"""Who is favoured: against brute force, with a test whose false alarms are counted."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.ensemble import GradientBoostingClassifier

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


def p_value(found):
    return float(found.groups["p_value"].min())


def correlated(seed, n=200, dock=0.0, kind="linear"):
    """Men have higher incomes, which are paid for beyond the metric; nobody looks at sex unless women are docked."""
    rng = np.random.default_rng(seed)
    men = rng.random(n) < 0.6
    X = pd.DataFrame({name: rng.normal(size=n) + shift * men for name, shift in SHIFTS.items()})
    X["job"] = np.where(rng.random(n) < 0.3 + 0.4 * men, "x", "y")
    scores = 1 / (1 + np.exp(-(X["income"] + 0.5 * X["age"] + 0.5 * (X["job"] == "x") - 1)))
    if kind == "noisy":
        scores = scores + rng.normal(scale=0.1, size=n)
    elif kind == "learned":
        outcomes = rng.random(n) < scores
        features = X[["income", "age", "debt"]].assign(job=X["job"] == "x")
        scores = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(features, outcomes)
        scores = scores.predict_proba(features)[:, 1]
    X["sex"] = np.where(men, "m", "f")
    return X, np.asarray(scores - dock * ~men)


SHIFTS = {"income": 0.8, "age": 0.4, "debt": 0.0}
CORRELATED = TableMetric(dict.fromkeys(SHIFTS, 0.03), {"job": 0.03, "sex": 0})


def shuffled(found, X, rng, n=199):
    """The control: a test that shuffles sex among all people."""
    people = found.people.sort_values("row")
    lead = (people["n_lower"] - people["n_higher"]).to_numpy()
    men = (X["sex"] == "m").to_numpy()
    lead = lead - lead.mean()
    return (1 + sum(abs(lead[rng.permutation(men)].sum()) >= abs(lead[men].sum()) for _ in range(n))) / (1 + n)


def alarms(n_tables, n=200, **how):
    """Of how many tables each test says that p <= 0.05: matched people, and the control."""
    by_match = by_shuffle = 0
    for seed in range(n_tables):
        X, scores = correlated(seed, n, **how)
        words = {"predictions": scores, "output_range": (-1, 2), "n_permutations": 199, "random_state": seed}
        found = audit_groups(None, X, CORRELATED, **words)
        by_match += p_value(found) <= 0.05
        by_shuffle += shuffled(found, X, np.random.default_rng(seed)) <= 0.05
    return by_match, by_shuffle


def test_an_innocent_model_is_not_accused_of_what_goes_with_sex():
    by_match, by_shuffle = alarms(60)
    assert not too_many(by_match, 60, 0.05)
    assert too_many(by_shuffle, 60, 0.05)


@pytest.mark.slow  # the test above is the same for one kind of model and fewer tables
@pytest.mark.parametrize("n", [100, 400])
@pytest.mark.parametrize("kind", ["linear", "noisy", "learned"])
def test_innocent_models_are_not_accused_in_400_tables(kind, n):
    by_match, by_shuffle = alarms(400, n, kind=kind)
    assert not too_many(by_match, 400, 0.05)
    assert too_many(by_shuffle, 400, 0.05)
    print(f"alarms of innocent models, {kind}, n = {n}: {by_match} matched, {by_shuffle} shuffled, of 400")


@pytest.mark.parametrize("kind", ["linear", "noisy"])
def test_a_model_that_docks_women_is_found(kind):
    X, scores = correlated(0, 400, dock=0.1, kind=kind)
    found = audit_groups(None, X, CORRELATED, predictions=scores, output_range=(-1, 2), n_permutations=999)
    rows = found.groups.set_index("value")
    assert rows["p_value"].tolist() == [1 / 1000] * 2  # never 0: the people as they are count as one exchange
    assert rows.loc["m", "share_alike"] > 0.7
    assert rows.loc["f", "share_alike"] == pytest.approx(1 - rows.loc["m", "share_alike"])
    assert rows["n_alike"].nunique() == 1


def test_p_values_are_adjusted_for_several_groups():
    """By hand, from the tests of single columns: of two values one test, of three values three."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"race": rng.choice(list("abc"), 300), "sex": rng.choice(["f", "m"], 300)})
    scores = 0.5 + 0.02 * (X["race"] == "a") + 0.05 * rng.random(300)
    metric = TableMetric({}, {"race": 0, "sex": 0})
    words = {"predictions": scores, "n_permutations": 1999}
    both = audit_groups(None, X, metric, ["sex", "race"], **words).groups
    sex = audit_groups(None, X, metric, ["sex"], **words).groups["p_value"]
    assert sex.nunique() == 1
    smallest = both.loc[both["value"] == "a", "p_value"].item()
    assert smallest == pytest.approx(4 / 2000)  # four tests; each p-value is at least 1 / 2000
    assert both["p_value"][0] == both["p_value"][1] >= sex[0]  # found first, and sure to be less clear


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
