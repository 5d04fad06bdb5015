"""Sets of 0/1 columns with exactly one 1: found, and bounded, searched and shown as one, against brute force."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from likewise import Domain, TableMetric, attack, effect
from likewise.exceptions import InvalidInputError
from likewise.verification.domain import CategoricalDomain, Rule
from likewise.verification.one_hot import find_one_hot
from small_domain import brute_force

SEXES, JOBS = ("sex_female", "sex_male"), ("job_a", "job_b", "job_c")
COLUMNS = ["age", *SEXES, *JOBS, "rent"]


def everybody(kind=int):
    """All possible people."""
    made = []
    for age, sex, job, rent in itertools.product(range(20, 24), SEXES, JOBS, (0.0, 0.5, 1.0)):
        bits = {name: kind(name in (sex, job)) for name in (*SEXES, *JOBS)}
        made.append({"age": age, **bits, "rent": rent})
    return pd.DataFrame(made)[COLUMNS]


def people(seed=0, n=400, kind=int):
    rng = np.random.default_rng(seed)
    whole = everybody(kind)
    X = whole.iloc[rng.integers(len(whole), size=n)].reset_index(drop=True)
    score = X["rent"] - 0.3 * (X["age"] - 21) + 1.5 * X["sex_female"].astype(int) * (X["job_c"].astype(int) + 0.5)
    return X, (score + rng.normal(scale=0.6, size=n) > 0.6).astype(int)


MODELS = {
    "boosting": (GradientBoostingClassifier(n_estimators=10, random_state=0), 1e-4),
    "histogram boosting": (HistGradientBoostingClassifier(max_iter=10), 1e-4),
    "forest": (RandomForestClassifier(5, max_depth=4, random_state=0), 1e-4),
    "logistic": (LogisticRegression(C=100), 1e-4),
    "network": (MLPClassifier((3,), solver="lbfgs", alpha=1.0, max_iter=2000, random_state=0), 0.3),
}


@pytest.mark.parametrize("reads", [["age", "sex_female", *JOBS, "rent"], COLUMNS], ids=["one of two", "both"])
@pytest.mark.parametrize("kind", [int, bool])
@pytest.mark.parametrize("name", MODELS)
def test_a_member_stands_for_its_set(name, kind, reads):
    last, room = MODELS[name]
    X, y = people(kind=kind)
    model = last.fit(X[reads], y)
    truth = brute_force(_on(model, reads), list(SEXES), everybody(kind))
    assert truth > 0.3
    for column in ("sex_male", "sex_female", "sex", ["sex_male", "sex_female"]):
        found = effect(model, X, column, max_seconds=5)
        assert found.columns == list(SEXES)
        assert found.found == pytest.approx(truth, abs=1e-3)
        assert truth - 1e-9 <= found.proven <= truth + room
        assert (found.pair[list(SEXES)].sum(axis=1) == 1).all()
        assert (found.pair[list(JOBS)].sum(axis=1) == 1).all()
    assert [str(each) for each in found.sets] == ["sex_female, sex_male", "job_a, job_b, job_c"]


def _on(model, reads):
    class Narrow:
        @staticmethod
        def predict_proba(X):
            return model.predict_proba(X[reads])

    return Narrow


def test_the_control_without_sets_proves_next_to_nothing_of_a_column_that_is_hardly_read():
    X, y = people()
    model = LogisticRegression(C=100).fit(X, y)
    model.coef_[0, COLUMNS.index("sex_male")] = 1e-4
    apart = Domain.learn(X).without_rules().with_rules("sex_female + sex_male <= 2")
    found = effect(model, X, "sex_male", domain=apart)
    assert found.columns == ["sex_male"]
    assert found.proven < 1e-3
    assert effect(model, X, "sex_male").proven > 0.3


@pytest.mark.parametrize("column", [list(SEXES), "job"])
def test_sets_of_three_and_combinations(column):
    X, y = people(1)
    model = GradientBoostingClassifier(n_estimators=10, random_state=0).fit(X, y)
    members = list(JOBS) if column == "job" else column
    truth = brute_force(_on(model, COLUMNS), members, everybody())
    found = effect(model, X, column)
    assert found.found == pytest.approx(truth, abs=1e-4)
    assert truth - 1e-9 <= found.proven <= truth + 1e-4
    assert set(found.directions["higher"]) <= set(members)
    assert set(found.on_people["lowest if"]) <= set(members)


def test_people_are_exchanged_between_the_members():
    X, y = people()
    model = GradientBoostingClassifier(n_estimators=10, random_state=0).fit(X, y)
    found = effect(model, X, "sex_male")
    scores = np.stack([model.predict_proba(X.assign(sex_female=1 - m, sex_male=m))[:, 1] for m in (0, 1)])
    np.testing.assert_allclose(found.on_people["effect"], np.abs(scores[0] - scores[1]), atol=1e-12)
    assert found.directions["mean"].tolist() == [pytest.approx(abs((scores[0] - scores[1]).mean()))]
    assert found.directions["higher"].tolist() == ["sex_female"]
    assert found.groups["group"].tolist() == ["sex_female", "sex_male"]


@pytest.mark.parametrize("name", ["boosting", "logistic"])
def test_the_excess_over_a_metric_is_that_of_possible_people(name):
    X, y = people()
    model = MODELS[name][0].fit(X, y)
    weights = {"age": 0.05, "rent": 0.2, "job_a": 0.05} | dict.fromkeys((*SEXES, "job_b", "job_c"), 0.01)
    found = effect(model, X, "sex", TableMetric(weights), max_seconds=20)
    whole = everybody()
    scores, rows = model.predict_proba(whole)[:, 1], whole.to_numpy(float) * [weights[name] for name in COLUMNS]
    gap = np.abs(scores[:, None] - scores) - np.abs(rows[:, None] - rows).sum(axis=2)
    assert found.excess.found == pytest.approx(gap.max(), abs=1e-3)
    assert gap.max() - 1e-9 <= found.excess.proven <= gap.max() + (1e-3 if name == "boosting" else 0.1)


def test_rules_that_name_members_hold_for_the_people_shown():
    X, y = people()
    model = GradientBoostingClassifier(n_estimators=10, random_state=0).fit(X, y)
    domain = Domain.learn(X).with_rules("2 * job_c + sex_female <= 2", "rent + job_b <= 1.5")
    whole = everybody()
    fine = whole[(2 * whole["job_c"] + whole["sex_female"] <= 2) & (whole["rent"] + whole["job_b"] <= 1.5)]
    truth = brute_force(_on(model, COLUMNS), list(SEXES), fine)
    found = effect(model, X, "sex", domain=domain)
    assert found.found == pytest.approx(truth, abs=1e-4)
    assert truth - 1e-9 <= found.proven <= truth + 1e-4
    assert domain.holds(found.pair).all()
    # The control: without these rules the effect is larger.
    assert effect(model, X, "sex").found > truth + 0.05


def test_members_that_the_model_takes_for_one_are_told_apart_by_a_rule():
    """Most people have the job in which nobody can be a woman, and the model reads no job."""
    X, y = people()
    X[["job_a", "job_b", "job_c"]] = np.eye(3)[np.where(np.arange(len(X)) % 5, 2, np.arange(len(X)) % 2)]
    model = GradientBoostingClassifier(n_estimators=10, random_state=0)
    model.fit(X.assign(job_a=0.0, job_b=0.0, job_c=0.0), y)
    domain = Domain.learn(X).with_rules("2 * job_c + sex_female <= 2")
    whole = everybody()
    fine = whole[2 * whole["job_c"] + whole["sex_female"] <= 2]
    truth = brute_force(_on(model, COLUMNS), list(SEXES), fine)
    found = effect(model, X, "sex", domain=domain)
    assert truth > 0.05
    assert found.proven >= truth - 1e-9


def test_sums_that_must_be_equal():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 4, 300), "b": rng.integers(0, 4, 300)}).astype(float)
    X["both"] = X["a"] + X["b"]
    y = (X["a"] + 0.5 * X["both"] + rng.normal(size=300) > 3).astype(int)
    model = GradientBoostingClassifier(n_estimators=8, random_state=0).fit(X, y)
    domain = Domain.learn(X).with_rules("a + b == both")
    made = itertools.product(range(4), range(4), range(7))
    whole = pd.DataFrame(list(made), columns=["a", "b", "both"]).astype(float)
    whole = whole[whole["a"] + whole["b"] == whole["both"]]
    assert domain.holds(whole).all()
    assert not domain.holds(whole.assign(both=whole["both"] + 1)).any()
    for columns in (["a", "b"], ["a", "both"]):
        truth = brute_force(_on(model, list(X)), columns, whole)
        found = effect(model, X, columns, domain=domain)
        assert found.found == pytest.approx(truth, abs=1e-4)
        assert truth - 1e-9 <= found.proven <= truth + 1e-4
        assert domain.holds(found.pair).all()
    with pytest.raises(InvalidInputError, match="nobody can differ in a alone"):
        effect(model, X, "a", domain=domain)


def test_a_set_whose_members_may_be_blank_is_a_rule_and_no_set():
    bits = {"a": CategoricalDomain((0, 1)), "b": CategoricalDomain((0, 1))}
    assert [each.members for each in Domain(bits, (Rule.exactly_one(["a", "b"]),)).one_hot] == [("a", "b")]
    blank = bits | {"b": CategoricalDomain((0, 1), blank=True)}
    assert Domain(blank, (Rule.exactly_one(["a", "b"]),)).one_hot == []


def test_people_who_break_a_given_set_are_refused():
    X, y = people()
    model = LogisticRegression().fit(X, y)
    domain = Domain.learn(X)
    odd = X.copy()
    odd.loc[3, list(SEXES)] = 1
    with pytest.raises(InvalidInputError, match="exactly one 1 in sex_female, sex_male"):
        effect(model, odd, "sex_male", domain=domain)


def test_sets_are_told_from_columns_that_happen_to_be_opposites():
    X, _ = people()
    assert [each.name for each in find_one_hot(X)] == ["sex", "job"]
    renamed = X.head(30).rename(columns={"sex_male": "man"})
    assert [each.name for each in find_one_hot(renamed)] == ["job", "sex_female / man"]
    assert [each.name for each in find_one_hot(X.head(15).rename(columns={"sex_male": "man"}))] == ["job"]
    off = X.copy()
    off.loc[0, "sex_male"] = 1 - off.loc[0, "sex_male"]
    assert [each.name for each in find_one_hot(off)] == ["job"]
    rng = np.random.default_rng(0)
    flags = pd.DataFrame(rng.integers(0, 2, (200, 12)), columns=[f"has_{k}" for k in "abcdefghijkl"])
    assert not find_one_hot(flags.assign(always=1))


@pytest.mark.parametrize("kind", [int, bool])
@pytest.mark.parametrize("options", [{}, {"only": "sex"}, {"only": ["sex_male"]}], ids=["all", "prefix", "member"])
def test_an_attack_tries_possible_people_only(options, kind):
    X, _ = people(kind=kind)
    bits, numbers = dict.fromkeys((*SEXES, *JOBS), 0.0), {"age": 0.05, "rent": 0.2}
    metric = TableMetric(numbers, bits) if kind is bool else TableMetric(numbers | bits)

    def model(people):
        ones = (people[[*SEXES, *JOBS]] == 1).astype(float)
        possible = (ones[list(SEXES)].sum(axis=1) == 1) & (ones[list(JOBS)].sum(axis=1) == 1)
        return np.where(possible, 0.4 + 0.1 * ones["sex_female"], 1.0)

    found = attack(model, metric, X, n_pairs=20_000, random_state=0, **options)
    assert found.excess == pytest.approx(0.1)
    assert sorted(found.pair["sex_female"].astype(int)) == [0, 1]
    assert (found.pair[list(SEXES)].astype(int).sum(axis=1) == 1).all()
    assert "sex_female, sex_male; job_a, job_b, job_c" in found.coverage
    # The control: among people who do not show the sets, impossible ones are tried.
    odd = X.copy()
    odd.loc[0, [*SEXES, *JOBS]] = kind(1)
    if "sex" not in options.values():
        assert attack(model, metric, odd, n_pairs=20_000, random_state=0, **options).excess > 0.5
