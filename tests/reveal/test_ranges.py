"""Ranges of revealed weights, and people with one column exchanged."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.ensemble import HistGradientBoostingClassifier

from likewise import estimate_minimal_metric
from likewise.pairs.cutting_planes import mean_powers
from likewise.pairs.points import Points
from likewise.reveal import exchange
from likewise.reveal.empirical import read_people


def brute_force(people, scores, tolerance=0.01, low=0.0, *, widened=True):
    """Smallest and largest weight per column over all solutions as good within 1%, by SciPy, over all pairs."""
    points = Points.of(read_people(people, None))
    a, b = np.triu_indices(len(points), 1)
    gaps, needed = points.gaps(a, b), np.abs(scores[a] - scores[b])
    spread = np.array([1.0 if kind == 2 else np.nanstd(x) for x, kind in zip(points.X.T, points.kinds, strict=True)])
    cost = mean_powers(np.ascontiguousarray(points.X.T) / spread[:, None], 1, points.kinds)
    cost = np.clip(cost / cost[cost > 0].min(), 1, 1e8) * spread
    limits = [(low, 1.0 if kind == 2 else None) for kind in points.kinds]
    solve = {"A_ub": -gaps, "b_ub": -needed, "bounds": limits, "method": "highs"}
    best = linprog(cost, **solve)
    reached = np.maximum(needed - tolerance * np.ptp(scores), 0) if widened else needed
    solve |= {"A_ub": np.vstack([-gaps, cost]), "b_ub": np.append(-reached, (1 + tolerance) * best.fun)}
    ends = [[linprog(sign * unit, **solve).x[i] for sign in (1, -1)] for i, unit in enumerate(np.eye(len(cost)))]
    return np.array(ends), best.fun, cost


def table(n=40, seed=0, holes=False):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 60, n).astype(float),
            "income": rng.normal(50, 10, n).round(1),
            "region": rng.choice(["n", "s", "e"], n),
        }
    )
    if holes:
        frame.loc[rng.random(n) < 0.2, "income"] = np.nan
    known = frame["income"].fillna(40)
    scores = 0.2 + 0.004 * frame["age"] + 0.003 * known + 0.1 * (frame["region"] == "n") + 0.02 * rng.random(n)
    return frame, scores.to_numpy()


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_ranges_from_scores_are_those_of_brute_force(seed, holes):
    people, scores = table(seed=seed, holes=holes)
    found = estimate_minimal_metric(None, people, predictions=scores).weights
    expected, value, cost = brute_force(people, scores)
    assert cost @ found["estimate"] == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(found["low"], np.where(expected[:, 0] > 1e-9, expected[:, 0], 0), rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(found["high"], expected[:, 1], rtol=1e-4, atol=1e-7)
    assert ((found["low"] <= found["estimate"] * (1 + 1e-9)) & (found["estimate"] <= found["high"] * (1 + 1e-9))).all()
    for _, row in found[found["status"] == "forced"].iterrows():
        assert row["low"] > 0
        a, b = people.iloc[row["row_a"]], people.iloc[row["row_b"]]
        assert a[row["column"]] != b[row["column"]]
        assert not row["exchanged"]


@pytest.mark.parametrize("seed", range(4))
def test_ranges_contain_those_of_solutions_that_explain_every_pair(seed):
    """min and max of each weight over {feasible, cost <= 1.01 optimum}, where no pair may be short of anything."""
    people, scores = table(seed=seed, n=60 if seed else 400)  # of many people, not all pairs are in the program
    people["income"] += np.arange(len(people)) / 1e4  # no two are equal
    found = estimate_minimal_metric(None, people, predictions=scores).weights
    exactly, _, _ = brute_force(people, scores, widened=False)
    assert (found["low"] <= exactly[:, 0] * (1 + 1e-6) + 1e-9).all()
    assert (found["high"] >= exactly[:, 1] * (1 - 1e-6) - 1e-9).all()
    forced = found["status"] == "forced"
    assert (exactly[forced, 0] >= found["least"][forced] * (1 - 1e-6)).all()
    # Not much wider either: the cost of a weight is limited by 1.01 times the optimum.
    widened, _, _ = brute_force(people, scores)
    assert (found["high"] <= widened[:, 1] * 1.05 + 1e-9).all()


def test_when_not_all_people_are_asked_about_a_note_says_so(monkeypatch):
    people, _ = table(n=60)

    def model(X):
        return 0.004 * X["age"]

    unused = "Exchanging a value between people changed no output: 'income' (323 exchanges), 'region' (120 exchanges)."
    assert estimate_minimal_metric(model, people).notes == (unused,)
    monkeypatch.setattr(exchange, "MAX_EXCHANGED", 50)
    assert "for 50 of 60 distinct people" in estimate_minimal_metric(model, people).notes[1]
    assert estimate_minimal_metric(model, people, exchange=False).notes == ()


def test_of_two_nearly_identical_columns_neither_is_said_not_to_matter():
    rng = np.random.default_rng(0)
    debt = rng.normal(20, 5, 300)
    people = pd.DataFrame({"debt": debt, "loans": debt + rng.normal(0, 1e-3, 300), "age": rng.normal(40, 9, 300)})
    found = estimate_minimal_metric(None, people, predictions=0.3 + 0.01 * debt + 0.002 * people["age"])
    rows = found.weights.set_index("column")
    for name in ("debt", "loans"):
        assert rows.loc[name, "status"] in ("could be 0", "not forced by these people")
        assert rows.loc[name, "cost_of_0"] < 0.002
        assert rows.loc[name, "low"] == 0
        assert rows.loc[name, "high"] == pytest.approx(0.01, rel=0.1)
        assert rows.loc[name, "row_a"] == -1
    assert rows.loc["age", "cost_of_0"] > 0.01  # no two people differ in age alone, but others would weigh far more
    assert "must not matter" not in found.describe().to_string()
    # Asked, the model says which of the two it uses.
    asked = estimate_minimal_metric(lambda X: 0.3 + 0.01 * X[:, 0] + 0.002 * X[:, 2], people).weights
    asked = asked.set_index("column")
    assert asked.loc["debt", "status"] == "forced"
    assert asked.loc["debt", "exchanged"]
    assert asked.loc["debt", "low"] == pytest.approx(0.01, rel=1e-3)
    assert asked.loc["loans", "status"] == "not used, as far as asked"


def test_exchanged_people_against_brute_force():
    """Few distinct values: every person with every value of every column."""
    rng = np.random.default_rng(1)
    people = pd.DataFrame(
        {
            "cards": rng.integers(0, 5, 60),
            "home": rng.choice(["own", "rent", "other"], 60),
            "kids": rng.integers(0, 3, 60),
        }
    )
    values = rng.random((5, 3, 3)) / 2

    def model(X):
        home = X["home"].map({"own": 0, "rent": 1, "other": 2})
        return values[X["cards"].astype(int), home, X["kids"].astype(int)]

    weights = estimate_minimal_metric(model, people).weights.set_index("column")
    for name in people:
        most = 0.0
        for value in people[name].unique():
            other = people.assign(**{name: value})
            gap = np.abs(people[name] - value) if name != "home" else (people[name] != value).astype(float)
            slopes = np.abs(model(people) - model(other))[gap > 0] / gap[gap > 0]
            most = max(most, slopes.max())
        assert weights.loc[name, "low"] >= most * (1 - 1e-6)
        assert weights.loc[name, "status"] == "forced"
        if weights.loc[name, "exchanged"]:
            assert weights.loc[name, "least"] == pytest.approx(most, rel=1e-6)
            a, b = weights.loc[name, ["row_a", "row_b"]]
            moved = people.iloc[[a]].assign(**{name: people[name].iloc[b]})
            gap = 1 if name == "home" else abs(people[name].iloc[a] - people[name].iloc[b])
            assert abs(model(moved)[0] - model(people.iloc[[a]])[0]) / gap == pytest.approx(most, rel=1e-6)
    assert weights["exchanged"].any()


def test_blanks_are_exchanged_too():
    people, _ = table(n=60, holes=True)

    def model(X):
        return 0.2 + 0.3 * X["income"].isna() + 0.001 * X["age"]

    weights = estimate_minimal_metric(model, people).weights
    blank = weights[weights["kind"] == "missing"].iloc[0]
    assert (blank["column"], blank["status"]) == ("income", "forced")
    assert blank["low"] == pytest.approx(0.3, rel=1e-6)
    assert estimate_minimal_metric(model, people).metric.missing["income"] >= 0.3 * (1 - 1e-9)


def test_a_column_that_a_model_uses_never_has_the_weight_0():
    people, scores = table(n=200)
    X = people.assign(region=people["region"].astype("category"), noise=np.random.default_rng(0).normal(size=200))
    model = HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(X, scores > np.median(scores))
    found = estimate_minimal_metric(model, X)
    base = model.predict_proba(X)[:, 1]
    for name in X:
        moves = 0.0
        for end in (0, 100, 199):  # the values of some people
            other = X.assign(**{name: X[name].sort_values().take([end] * 200).to_numpy()}).astype(X.dtypes)
            moves = max(moves, np.abs(model.predict_proba(other)[:, 1] - base).max())
        weight = {**found.metric.numeric, **found.metric.categorical}[name]
        assert (weight > 0) or moves < 1e-9
    assert found.not_forced == ()


def test_fixed_weights_are_said_to_be_fixed_and_are_not_exchanged():
    people, _ = table()
    found = estimate_minimal_metric(lambda X: 0.1 + 0.005 * X["age"], people, fixed={"region": 0, "income": 0.5})
    status = found.weights.set_index("column")["status"]
    assert status.to_dict() == {"age": "forced", "income": "fixed", "region": "fixed"}
    with pytest.raises(ValueError, match="upper leaves no metric: 'age' of row"):
        estimate_minimal_metric(lambda X: 0.1 + 0.005 * X["age"], people, upper={"age": 0.001})


def test_results_do_not_depend_on_the_order_of_people():
    people, _ = table(n=120)
    model = lambda X: 0.1 + 0.005 * X["age"] + 0.002 * X["income"] * (X["region"] == "n")  # noqa: E731
    one = estimate_minimal_metric(model, people).weights
    two = estimate_minimal_metric(model, people.iloc[::-1].reset_index(drop=True)).weights
    np.testing.assert_allclose(one[["estimate", "low", "high"]], two[["estimate", "low", "high"]], rtol=1e-9)


# -- forced, or not ----------------------------------------------------------------------------------------------------


def everything(people, scores):
    """Gaps and differences of all pairs, costs, and limits of the weights, for SciPy."""
    points = Points.of(read_people(people, None))
    a, b = np.triu_indices(len(points), 1)
    cost = mean_powers(np.ascontiguousarray(points.X.T), 1, points.kinds)
    return points.gaps(a, b), np.abs(scores[a] - scores[b]), cost, [1.0 if kind == 2 else None for kind in points.kinds]


def smallest(gaps, needed, cost, most, goal=None):
    """The smallest metric by SciPy, under all pairs: None if there is none."""
    limits = [(0, each) for each in most]
    solved = linprog(cost if goal is None else goal, A_ub=-gaps, b_ub=-needed, bounds=limits, method="highs")
    assert solved.status in (0, 2)
    return solved if solved.status == 0 else None


def blind_vendor(seed, n=300):
    """People, and scores that depend on neither sex nor a coin, and are not linear in the rest."""
    rng = np.random.default_rng(seed)
    people = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "income": rng.lognormal(3.5, 0.5, n).round(1),
            "sex": rng.choice(["m", "f"], n),
            "coin": rng.choice(["head", "tail"], n),
        }
    )
    return people.drop_duplicates(ignore_index=True)


def blind(people):
    z = 0.05 * (people["age"] - 45) + 1.5 * np.log(people["income"] / 33) + (people["income"] > 40) * 0.5
    return 1 / (1 + np.exp(-z))


def test_a_column_in_which_nobody_differs_is_not_said_to_be_unused():
    people = pd.DataFrame({"age": [20.0, 40, 60], "coin": [*"hth"], "country": "here"})
    found = estimate_minimal_metric(lambda X: X["age"] / 100, people)
    status = found.weights.set_index("column")["status"]
    assert status[["coin", "country"]].tolist() == ["not used, as far as asked", "not forced by these people"]
    assert "'coin'" in "".join(found.notes)
    assert "'country'" not in "".join(found.notes)


@pytest.mark.parametrize("seed", range(6))
def test_what_a_vendor_never_saw_is_never_forced(seed):
    people = blind_vendor(seed)
    weights = estimate_minimal_metric(None, people, predictions=blind(people)).weights.set_index("column")
    for name in ("sex", "coin"):
        assert weights.loc[name, "status"] in ("could be 0", "not forced by these people")
        assert estimate_minimal_metric(None, people, predictions=blind(people), fixed={name: 0}) is not None
    # Asked, the model shows that it uses neither; and the number of exchanges is said.
    asked = estimate_minimal_metric(blind, people)
    assert asked.metric.categorical == {"sex": 0, "coin": 0}
    assert (
        asked.weights.set_index("column").loc[["sex", "coin"], "status"].tolist() == ["not used, as far as asked"] * 2
    )
    n = len(people)
    assert asked.notes == (
        f"Exchanging a value between people changed no output: 'sex' ({n} exchanges), 'coin' ({n} exchanges).",
    )
    # Control: a vendor who sees it.
    seen = estimate_minimal_metric(lambda X: 0.8 * blind(X) + 0.1 * (X["sex"] == "m"), people)
    row = seen.weights.set_index("column").loc["sex"]
    assert (row["status"], row["exchanged"], row["least"]) == ("forced", True, pytest.approx(0.1))
    assert "sex" not in "".join(seen.notes)


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_forced_and_what_0_costs_by_brute_force(seed, holes):
    """A weight is forced if and only if no weights at all explain every pair with it at 0."""
    people, scores = table(n=80, seed=seed, holes=holes)
    people["age"] = (people["age"] / 5).round()  # so that some people differ in one column alone
    people["income"] = (people["income"] / 8).round()
    people = people.drop_duplicates(ignore_index=True)
    people["coin"] = np.random.default_rng(seed).choice(["head", "tail"], len(people))
    scores = scores[: len(people)]
    found = estimate_minimal_metric(None, people, predictions=scores).weights
    gaps, needed, cost, most = everything(people, scores)
    best = smallest(gaps, needed, cost, most).fun
    statuses = set()
    for i, row in found.iterrows():
        without = smallest(gaps, needed, cost, [0.0 if k == i else each for k, each in enumerate(most)])
        assert (row["status"] == "forced") == (without is None)
        statuses.add(row["status"])
        if without is None:
            least = smallest(gaps, needed, cost, most, goal=np.eye(len(most))[i]).fun
            assert 0 < row["least"] <= least * (1 + 1e-6)
            assert np.isnan(row["cost_of_0"])
            a, b = people.iloc[row["row_a"]], people.iloc[row["row_b"]]
            assert a[row["column"]] != b[row["column"]]
        else:
            assert row["cost_of_0"] == pytest.approx(without.fun - best, rel=1e-5, abs=1e-9)
            assert (row["row_a"], row["least"]) == (-1, 0)
    assert {"forced", "could be 0"} <= statuses or holes


def test_two_people_who_differ_in_nothing_else_force_a_weight():
    people = blind_vendor(0).drop(columns="coin")
    pair = people.iloc[[0, 0]].assign(sex=["m", "f"])
    people = pd.concat([people.iloc[1:], pair], ignore_index=True).drop_duplicates(ignore_index=True)
    scores = blind(people).to_numpy().copy()
    a, b = len(people) - 2, len(people) - 1
    scores[b] += 0.05
    row = estimate_minimal_metric(None, people, predictions=scores).weights.set_index("column").loc["sex"]
    assert (row["status"], row["row_a"], row["row_b"]) == ("forced", a, b)
    assert row["least"] == pytest.approx(0.05)
    scores[b] -= 0.05  # control
    assert estimate_minimal_metric(None, people, predictions=scores).weights["status"].iloc[2] != "forced"


def test_other_columns_cannot_stand_in_beyond_their_limits():
    people = pd.DataFrame({"x": [0.0, 0, 1], "a": ["p", "q", "p"], "b": ["p", "q", "q"]})
    scores = np.array([0.0, 0.9, 0.2])  # the first two differ in both categories
    for upper, status, least in (
        ({"a": 0.5, "b": 0.6}, {"forced"}, [0.3, 0.4]),
        ({"a": 0.5}, {"forced", "could be 0", "not forced by these people"}, [0, 0.4]),
        ({}, {"could be 0", "not forced by these people"}, [0, 0]),
    ):
        found = estimate_minimal_metric(None, people, predictions=scores, upper=upper).weights.set_index("column")
        assert set(found["status"][["a", "b"]]) <= status
        np.testing.assert_allclose(found["least"][["a", "b"]], least)


def test_what_exchanges_miss_is_left_in_if_people_need_it(monkeypatch):
    """Sex counts at 70 alone, and only others have a column exchanged."""
    people = pd.DataFrame({"age": [70.0, 70, 20, 30, 40, 50, 60, 90], "sex": list("mfmfmfmf")})
    monkeypatch.setattr(exchange, "MAX_EXCHANGED", 2)

    def model(X):
        return 0.005 * X["age"] + 0.2 * ((X["age"] == 70) & (X["sex"] == "m"))

    found = estimate_minimal_metric(model, people)
    row = found.weights.set_index("column").loc["sex"]
    assert "'sex' (2 exchanges)" in found.notes[0]
    assert (row["status"], row["exchanged"], row["row_a"], row["row_b"]) == ("forced", False, 0, 1)
    assert found.metric.categorical["sex"] == pytest.approx(0.2)


def test_what_0_costs_does_not_depend_on_the_search():
    """Of 3,000 people, few of the pairs are in the program: the metric without the column satisfies all of them."""
    people = blind_vendor(1, 3000)
    scores = blind(people)
    found = estimate_minimal_metric(None, people, predictions=scores).weights.set_index("column")
    for name in ("sex", "coin"):
        points = Points.of(read_people(people, None))
        cost = mean_powers(np.ascontiguousarray(points.X.T), 1, points.kinds)
        without = estimate_minimal_metric(None, people, predictions=scores, fixed={name: 0}).weights["estimate"]
        rise = cost @ (without - found["estimate"].to_numpy())
        assert found.loc[name, "cost_of_0"] == pytest.approx(rise, rel=1e-5, abs=1e-8)
