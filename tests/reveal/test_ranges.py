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
    assert (exactly[forced, 0] > 0).all()  # what is said to be forced is positive in every solution as good
    # Not much wider either: the cost of a weight is limited by 1.01 times the optimum.
    widened, _, _ = brute_force(people, scores)
    assert (found["high"] <= widened[:, 1] * 1.05 + 1e-9).all()


def test_when_not_all_people_are_asked_about_a_note_says_so(monkeypatch):
    people, _ = table(n=60)

    def model(X):
        return 0.004 * X["age"]

    assert estimate_minimal_metric(model, people).notes == ()
    monkeypatch.setattr(exchange, "MAX_EXCHANGED", 50)
    assert "for 50 of 60 distinct people" in estimate_minimal_metric(model, people).notes[0]
    assert estimate_minimal_metric(model, people, exchange=False).notes == ()


def test_of_two_nearly_identical_columns_neither_is_said_not_to_matter():
    rng = np.random.default_rng(0)
    debt = rng.normal(20, 5, 300)
    people = pd.DataFrame({"debt": debt, "loans": debt + rng.normal(0, 1e-3, 300), "age": rng.normal(40, 9, 300)})
    found = estimate_minimal_metric(None, people, predictions=0.3 + 0.01 * debt + 0.002 * people["age"])
    rows = found.weights.set_index("column")
    for name in ("debt", "loans"):
        assert rows.loc[name, "status"] == "not forced by these people"
        assert rows.loc[name, "low"] == 0
        assert rows.loc[name, "high"] == pytest.approx(0.01, rel=0.1)
        assert rows.loc[name, "row_a"] == -1
    assert rows.loc["age", "status"] == "forced"
    assert "must not matter" not in found.describe().to_string()
    # Asked, the model says which of the two it uses.
    asked = estimate_minimal_metric(lambda X: 0.3 + 0.01 * X[:, 0] + 0.002 * X[:, 2], people).weights
    asked = asked.set_index("column")
    assert asked.loc["debt", "status"] == "forced"
    assert asked.loc["debt", "exchanged"]
    assert asked.loc["debt", "low"] == pytest.approx(0.01, rel=1e-3)
    assert asked.loc["loans", "status"] == "not forced by these people"


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
        if weights.loc[name, "exchanged"]:
            assert weights.loc[name, "estimate"] == pytest.approx(most, rel=1e-6)
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
