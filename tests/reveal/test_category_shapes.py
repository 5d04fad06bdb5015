"""Weights of categories with groups or distances, against a linear program over all pairs."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from likewise import (
    AdditiveClassifier,
    RangesDisplay,
    TableMetric,
    attack,
    audit,
    estimate_minimal_metric,
    minimal_metric,
)
from likewise.reveal import active_set, shapes

JOBS = [["clerk", "teacher", "nurse"], ["farmer", "smith"]]
HOURS = {"north": {"south": 8, "east": 4, "west": 5}, "east": {"south": 6, "west": 3}, "south": {"west": 7}}
ORDER = ["low", "middle", "high"]


def table(n, seed, blanks=True):
    rng = np.random.default_rng(seed)
    people = pd.DataFrame(
        {
            "age": rng.integers(20, 60, n).astype(float),
            "job": rng.choice([*JOBS[0], *JOBS[1], "poet"], n),
            "region": rng.choice([*HOURS, "west"], n),
            "grade": rng.choice(ORDER, n),
        }
    )
    if blanks:
        people.loc[rng.random(n) < 0.1, "job"] = None
    return people


def model(seed):
    rng = np.random.default_rng(seed)
    job = dict(zip([*JOBS[0], *JOBS[1], "poet"], rng.random(6) * 0.05 + [0, 0, 0, 0.3, 0.3, 0.1], strict=True))
    region = dict(zip(["north", "south", "east", "west"], rng.random(4) * 0.1, strict=True))

    def predict(X):
        own = X["job"].map(job).fillna(0.2) + X["region"].map(region) + X["grade"].map(ORDER.index) * 0.02
        # The region matters more to the old, so that no distance is read off one pair.
        return (0.1 + own + 0.002 * X["age"] + 0.001 * X["age"] * (X["region"] == "north")).to_numpy(dtype=float)

    return predict


def gaps(people, kind):
    """What each pair makes of each weight, in loops over pairs and plain Python comparisons."""
    group_of = {job: k for k, group in enumerate(JOBS) for job in group}
    hours = {(a, b): d for a, row in HOURS.items() for b, d in row.items()}
    rows = []
    records = people.to_dict("records")
    for i, a in enumerate(records):
        for b in records[i + 1 :]:
            same = (a["job"] == b["job"]) or (pd.isna(a["job"]) and pd.isna(b["job"]))
            near = not same and group_of.get(a["job"], -1) == group_of.get(b["job"], -2)
            apart = not same and not near
            away = hours.get((a["region"], b["region"]), hours.get((b["region"], a["region"]), 0)) / 8
            steps = abs(ORDER.index(a["grade"]) - ORDER.index(b["grade"]))
            plain = [abs(a["age"] - b["age"])]
            if kind == "free":
                rows.append([*plain, apart, a["region"] != b["region"], a["grade"] != b["grade"], near])
            elif kind == "groups":
                rows.append([*plain, apart + 0.3 * near, a["region"] != b["region"], a["grade"] != b["grade"]])
            else:
                rows.append([*plain, apart, away, steps, near])
    return np.array(rows, dtype=float)


GIVEN = {
    "free": {"groups": {"job": JOBS}},
    "groups": {"groups": {"job": {"within": 0.3, "groups": JOBS}}},
    "matrix": {"groups": {"job": JOBS}, "distances": {"region": HOURS}, "order": {"grade": ORDER}},
}


def brute_force(people, scores, kind, tolerance=0.01):
    """Optimum, costs and range of each weight, by SciPy over all pairs."""
    values = gaps(people, kind)
    a, b = np.triu_indices(len(people), 1)
    needed = np.abs(scores[a] - scores[b])
    spread = np.ones(values.shape[1])
    spread[0] = people["age"].std(ddof=0)
    if kind == "matrix":
        spread[3] = people["grade"].map(ORDER.index).std(ddof=0)
    cost = values.mean(axis=0) / spread
    cost = np.clip(cost / cost[cost > 0].min(), 1, 1e8) * spread
    limits = [(0, None)] * len(cost)
    rows, sides = -values, -needed
    if kind != "groups":  # two of one group are no further apart than others
        rows, sides = np.vstack([rows, [0, -1, 0, 0, 1]]), np.append(sides, 0)
    best = linprog(cost, A_ub=rows, b_ub=sides, bounds=limits, method="highs")
    short = np.append(-np.maximum(needed - tolerance * np.ptp(scores), 0), sides[len(needed) :])
    wide = {"A_ub": np.vstack([rows, cost]), "b_ub": np.append(short, (1 + tolerance) * best.fun), "bounds": limits}
    ends = [
        [linprog(sign * unit, **wide, method="highs").x[i] for sign in (1, -1)]
        for i, unit in enumerate(np.eye(len(cost)))
    ]
    return best.fun, cost, np.array(ends)


@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.parametrize("seed", range(3))
def test_weights_and_ranges_are_those_of_all_pairs(kind, seed):
    people = table(60, seed).drop_duplicates(ignore_index=True)
    scores = model(seed)(people)
    found = estimate_minimal_metric(None, people, predictions=scores, **GIVEN[kind])
    value, cost, ends = brute_force(people, scores, kind)
    assert found.weights["kind"].tolist() == ["weight"] * 4 + ["within"] * (kind != "groups")
    assert cost @ found.weights["estimate"] == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(found.weights["low"], np.where(ends[:, 0] > 1e-9, ends[:, 0], 0), rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(found.weights["high"], ends[:, 1], rtol=1e-4, atol=1e-7)
    assert audit(None, people, found.metric, predictions=scores, tolerance=1e-8).n_violations == 0
    for row in found.weights[found.weights["status"] == "forced"].itertuples():
        assert people[row.column].iloc[row.row_a] != people[row.column].iloc[row.row_b]
    # Negative control: nothing smaller fits.
    smaller = found.metric.scaled(0.99)
    assert audit(None, people, smaller, predictions=scores, tolerance=1e-8).n_violations > 0


@pytest.mark.parametrize(("kind", "in_sums"), [*((kind, True) for kind in GIVEN), ("matrix", False)])
def test_the_search_among_more_and_more_people_finds_the_same(kind, in_sums, monkeypatch):
    monkeypatch.setattr(active_set, "MIN_PAIRS", 64)
    if not in_sums:  # every pair is compared, as for a matrix that no sum of groups can express
        monkeypatch.setattr(shapes, "partitions", lambda table: None)
    people = table(150, 1).drop_duplicates(ignore_index=True)
    scores = model(1)(people)
    found = estimate_minimal_metric(None, people, predictions=scores, **GIVEN[kind])
    assert found.n_constraints < len(people) * (len(people) - 1) / 4
    value, cost, _ = brute_force(people, scores, kind)
    assert cost @ found.weights["estimate"] == pytest.approx(value, rel=1e-6)
    assert audit(None, people, found.metric, predictions=scores, tolerance=1e-8).n_violations == 0


@pytest.mark.parametrize("kind", GIVEN)
def test_exchanged_people_limit_each_weight(kind):
    people, predict = table(40, 2, blanks=False), model(2)
    found = estimate_minimal_metric(predict, people, **GIVEN[kind])
    weights = found.weights.set_index(["column", "kind"])
    group_of = {job: k for k, group in enumerate(JOBS) for job in group}
    most = {"weight": 0.0, "within": 0.0}
    for job in people["job"].unique():
        change = np.abs(predict(people.assign(job=job)) - predict(people))
        near = people["job"].map(group_of) == group_of.get(job, -1)
        near &= people["job"] != job
        most["weight"] = max(most["weight"], change[~near & (people["job"] != job)].max(initial=0.0))
        most["within"] = max(most["within"], change[near].max(initial=0.0))
    if kind == "groups":
        assert weights.loc[("job", "weight"), "low"] >= max(most["weight"], most["within"] / 0.3) * (1 - 1e-6)
    else:
        for each, least in most.items():
            assert weights.loc[("job", each), "low"] >= least * (1 - 1e-6)
    assert (weights["status"] == "forced").all()
    assert weights["exchanged"].any()
    for (column, part), row in weights[weights["exchanged"]].iterrows():
        one = people.iloc[[row["row_a"]]]
        other = one.assign(**{column: people[column].iloc[row["row_b"]]})
        assert predict(one)[0] != predict(other)[0]
        assert abs(predict(one)[0] - predict(other)[0]) <= found.metric(one, other)[0] * (1 + 1e-9), part
    without = estimate_minimal_metric(predict, people, exchange=False, **GIVEN[kind])
    assert (without.weights["estimate"] < found.weights["estimate"] * (1 - 1e-6)).any()  # control: exchanging matters


def test_what_is_within_a_group_can_be_not_forced_or_fixed():
    people = pd.DataFrame({"age": [20.0, 30.0, 50.0], "job": ["clerk", "clerk", "smith"]})
    found = estimate_minimal_metric(None, people, predictions=[0.1, 0.2, 0.7], groups={"job": JOBS})
    within = found.weights.iloc[-1]
    assert (within["kind"], within["status"], within["estimate"]) == ("within", "not forced by these people", 0)
    assert found.notes == (
        "Categories of one group of 'job' are at distance 0: these people do not force more. Others may.",
    )
    held = estimate_minimal_metric(None, people, predictions=[0.1, 0.2, 0.7], groups={"job": JOBS}, fixed={"job": 0})
    assert held.weights["status"].tolist() == ["forced", "fixed", "fixed"]
    asked = estimate_minimal_metric(lambda X: 0.1 + 0.2 * (X["job"] == "clerk"), people, groups={"job": JOBS})
    assert asked.metric.categorical["job"] == pytest.approx(0.2)


def test_everybody_may_be_of_one_group():
    people = pd.DataFrame({"job": ["clerk", "teacher", "nurse"]})
    found = estimate_minimal_metric(None, people, predictions=[0.1, 0.2, 0.4], groups={"job": JOBS})
    assert found.metric.categorical["job"] == pytest.approx(0.3)
    assert found.metric.groups["job"]["within"] == pytest.approx(1)


def test_the_result_is_a_metric_with_these_shapes():
    people = table(40, 3)
    found = estimate_minimal_metric(None, people, predictions=model(3)(people), **GIVEN["matrix"])
    metric = found.metric
    assert metric.groups["job"]["groups"] == JOBS
    assert metric.order == {"grade": tuple(ORDER)}
    assert TableMetric(**metric.get_params()) == metric
    assert {"low", "high", "status"} <= {*found.describe().columns}
    names = RangesDisplay.from_result(found, people).names
    assert "job, within a group" in names


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"groups": {"trade": JOBS}}, "groups must name columns of X, .* got 'trade'"),
        ({"groups": JOBS}, "groups must be a mapping from column to value; got list"),
        ({"groups": {"job": {"within": 2, "groups": JOBS}}}, "within must be a share .* got 2 for 'job'"),
        ({"groups": {"job": ["clerk"]}}, "groups must be lists of categories"),
        ({"order": {"job": ["clerk", "smith"]}}, "not among its ordered categories"),
        (
            {"distances": {"region": {"north": {"south": 9, "east": 1}, "east": {"south": 1}}}},
            "must obey the triangle inequality; got 9 between 'north' and 'south'.* Lower the first to at most 2",
        ),
        ({"groups": {"job": JOBS}, "distances": {"job": HOURS}}, "job"),
        ({"groups": {"age": JOBS}, "p": 2}, "p must be 1"),
    ],
)
def test_bad_shapes_are_refused_in_one_line(given, words):
    people = table(20, 0)
    with pytest.raises((ValueError, TypeError), match=words) as refused:
        estimate_minimal_metric(None, people, predictions=model(0)(people), **given)
    assert "\n" not in str(refused.value)


def test_shapes_need_a_table():
    with pytest.raises(TypeError, match="order, groups and distances name columns, so X must be a table; got list"):
        estimate_minimal_metric(None, [[1.0], [2.0]], predictions=[0.1, 0.2], groups={"job": JOBS})


def test_categories_declared_equal_must_be_treated_equally():
    people, predict = table(40, 2, blanks=False), model(2)
    equal = {"job": {"within": 0, "groups": JOBS}}
    with pytest.raises(ValueError, match=r"groups and distances leave no metric: .* of 'job' are at distance 0"):
        estimate_minimal_metric(predict, people, groups=equal)
    pair = pd.DataFrame({"job": ["clerk", "teacher"], "age": [30.0, 40.0]})
    held = estimate_minimal_metric(lambda X: 0.2 * (X["job"] == "clerk"), pair, groups=equal, fixed={"job": 0})
    assert held.metric.numeric["age"] == pytest.approx(0.02)  # a fixed column is not exchanged
    pair["age"] = 30.0
    with pytest.raises(ValueError, match="fixed, upper and the shapes of categories leave no metric"):
        estimate_minimal_metric(None, pair, predictions=[0.1, 0.3], groups=equal)
    with pytest.raises(ValueError, match=r"needs the weight \d+\.\d+, above .* declare these categories"):
        estimate_minimal_metric(predict, people, groups={"job": {"within": 0.01, "groups": JOBS}})


def test_distances_that_are_no_nested_groups_compare_every_pair_of_some_people_only(monkeypatch):
    monkeypatch.setattr("likewise.reveal.empirical.MOST_COMPARED", 30)
    people = table(40, 0)
    scores = model(0)(people)
    places = people.assign(region=np.random.default_rng(0).choice(list("abcde"), 40))
    # Two places, each as far from three others: no sum of groups has these distances.
    far = {"a": {"b": 2, "c": 1, "d": 1, "e": 1}, "b": {"c": 1, "d": 1, "e": 1}, "c": {"d": 2, "e": 2}, "d": {"e": 2}}
    with pytest.raises(ValueError, match="at most 30 distinct people for distances that are not"):
        estimate_minimal_metric(None, places, predictions=scores, distances={"region": far})
    nested = {"north": {"south": 1, "east": 0.5, "west": 1}, "south": {"east": 1, "west": 0.5}, "east": {"west": 1}}
    estimate_minimal_metric(None, people, predictions=scores, distances={"region": nested})
    assert shapes.MOST_COMPARED == 10_000


# -- exact metrics ----------------------------------------------------------------------------------------------------


def fitted(kind, seed=0):
    people = table(400, seed)[["age", "job", "region"]]
    score = model(seed)(people.assign(grade="low"))
    yes = np.random.default_rng(seed).random(400) < 1.5 * score
    if kind == "card":
        metric = TableMetric({"age": 0.01}, {"job": 0.9, "region": 0.9})
        return people, AdditiveClassifier(metric, penalty=1e-4).fit(people, yes)
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["job", "region"]), remainder=StandardScaler()
    )
    if kind == "linear":
        return people, make_pipeline(encode, Ridge()).fit(people, score)
    return people, make_pipeline(encode, LogisticRegression()).fit(people, yes)


def largest_changes(kind, fit, people, job, other):
    """Largest change between two jobs over many people, of all ages that matter."""
    some = people.drop_duplicates(["region"]).loc[lambda X: X.index.repeat(4001)]
    some = some.assign(age=np.tile(np.linspace(-3000, 3000, 4001), len(some) // 4001))
    answer = fit.predict if kind == "linear" else fit.predict_proba
    a, b = (np.asarray(answer(some.assign(job=each))) for each in (job, other))
    return float(np.abs(a - b).max() if kind == "linear" else np.abs(a - b).sum(axis=1).max() / 2)


@pytest.mark.parametrize("kind", ["linear", "logistic", "card"])
def test_exact_weights_of_groups_are_the_largest_changes_within_and_across(kind):
    people, fit = fitted(kind)
    jobs = [*JOBS[0], *JOBS[1], "poet", None, "never seen"]
    group_of = {job: k for k, group in enumerate(JOBS) for job in group}
    most = {True: 0.0, False: 0.0}
    scaled = 0.0
    for i, a in enumerate(jobs):
        for b in jobs[:i]:
            near = group_of.get(a, -1) == group_of.get(b, -2)
            change = largest_changes(kind, fit, people, a, b)
            most[near] = max(most[near], change)
            scaled = max(scaled, change / (0.3 if near else 1.0))
    metric = minimal_metric(fit, groups={"job": JOBS})
    assert metric.categorical["job"] == pytest.approx(max(most.values()), rel=1e-3)
    assert metric.groups["job"]["within"] * metric.categorical["job"] == pytest.approx(most[True], rel=1e-3)
    declared = minimal_metric(fit, groups={"job": {"within": 0.3, "groups": JOBS}})
    assert declared.categorical["job"] == pytest.approx(scaled, rel=1e-3)
    plain = minimal_metric(fit)
    assert declared.numeric == plain.numeric
    assert declared.categorical == {**plain.categorical, "job": declared.categorical["job"]}
    if kind != "linear":
        for each in (metric, declared):
            assert audit(fit, people, each, tolerance=1e-9).n_violations == 0
            assert attack(fit, each, people, n_pairs=20_000, random_state=0).excess < 1e-9
        # Negative control: attack finds pairs outside a metric that is a little smaller.
        smaller = metric.with_params(categorical={**metric.categorical, "job": 0.8 * metric.categorical["job"]})
        assert attack(fit, smaller, people, n_pairs=20_000, random_state=0).excess > 0


def test_exact_weights_of_a_matrix_cover_unseen_and_unlisted_categories():
    _, fit = fitted("logistic")
    island = {"north": 6, "south": 8, "east": 4, "west": 1}
    metric = minimal_metric(fit, distances={"region": HOURS | {"island": island}})
    jobs, step = (each.tolist() for each in fit[0].named_transformers_["onehotencoder"].categories_)
    beta = dict(zip(step, fit[-1].coef_[0][len(jobs) :], strict=False))
    hours = {frozenset((a, b)): d / 8 for a, row in HOURS.items() for b, d in row.items()}
    pairs = [(np.tanh(abs(beta[a] - beta[b]) / 4), hours[frozenset((a, b))]) for a in step for b in step if a < b]
    pairs += [(np.tanh(abs(beta[a]) / 4), island[a] / 8) for a in step]  # the model does not know the island
    assert metric.categorical["region"] == pytest.approx(max(change / share for change, share in pairs), rel=1e-9)


def test_what_the_exact_reader_refuses():
    _, fit = fitted("logistic")
    with pytest.raises(
        ValueError, match=r"leave no metric: .* of 'job' are at distance 0, and outputs differ by up to"
    ):
        minimal_metric(fit, groups={"job": {"within": 0, "groups": JOBS}})
    with pytest.raises(ValueError, match=r"between 0 and 1; got \d+\.?\d* for 'job'. Declare its categories further"):
        minimal_metric(fit, groups={"job": {"within": 0.001, "groups": JOBS}})
    with pytest.raises(ValueError, match="groups must name columns of X"):
        minimal_metric(fit, groups={"trade": JOBS})
    with pytest.raises(TypeError, match="the categories of 'age' are not known by name"):
        minimal_metric(fit, groups={"age": JOBS})
