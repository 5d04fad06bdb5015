"""Gaps of groups against the transport problem solved by a general program."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from likewise import AdditiveClassifier, TableMetric, group_gaps
from likewise.exceptions import InvalidInputError
from oracle import Described

METRIC = TableMetric({"age": 0.02, "income": 0.1}, {"sex": 0, "region": 0.15})


def drawn(seed, n=40):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    X = pd.DataFrame(
        {
            "age": rng.integers(20, 60, n),
            "income": rng.normal(size=n) + 0.8 * (sex == "m"),
            "region": rng.choice(["n", "s"], n),
            "sex": sex,
        }
    )
    return X, rng.random(n)


SIDES = {"n": {"s": 2, "w": 1, "e": 1, "f": 1}, "s": {"w": 1, "e": 1, "f": 1}, "w": {"e": 2, "f": 2}, "e": {"f": 2}}
METRICS = {
    "mismatch": METRIC,
    "groups": METRIC.with_params(groups={"region": {"within": 0.2, "groups": [["n", "s"], ["w", "e"]]}}),
    "no sum of mismatches": METRIC.with_params(distances={"region": SIDES}),
    "blanks of a column that must not matter": METRIC.with_params(
        numeric={"age": 0, "income": 0.1}, missing={"age": 0.5}
    ),
}


def transport(X, inside, metric):
    """The least mean of min(1, D) over all ways to match the groups, by linear programming."""
    described, people = Described(metric, list(X)), X.to_dict("records")
    first, second = (
        [person for person, chosen in zip(people, side, strict=True) if chosen] for side in (inside, ~inside)
    )
    costs = np.array([[min(1, described.distance(a, b)) for b in second] for a in first], dtype=float)
    n, m = costs.shape
    rows = np.zeros((n + m, n * m))
    for i in range(n):
        rows[i, i * m : (i + 1) * m] = 1
    for j in range(m):
        rows[n + j, j::m] = 1
    return linprog(costs.ravel(), A_eq=rows, b_eq=np.append(np.full(n, 1 / n), np.full(m, 1 / m))).fun


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", METRICS)
def test_the_gap_that_is_allowed_is_the_transport_distance(name, seed):
    """Of each group against all others: three of different sizes, one of them blank."""
    X, scores = drawn(seed)
    rng = np.random.default_rng(seed)
    X["sex"] = X["sex"].where(rng.random(40) < 0.8, None)
    X["region"] = rng.choice(list("nswef"), 40)
    X["age"] = X["age"].where((rng.random(40) < 0.8) | (METRICS[name].numeric["age"] > 0))
    amounts = 1000 * scores - 200
    found = group_gaps(None, X, METRICS[name], "sex", predictions=amounts, output_range=(-200, 1800)).gaps
    groups = X["sex"].where(X["sex"].notna(), "(blank)")
    assert found["value"].tolist() == sorted(groups.unique())
    for row in found.to_dict("records"):
        inside = (groups == row["value"]).to_numpy()
        exact = transport(X, inside, METRICS[name])
        assert row["allowed"] == pytest.approx(exact, abs=2e-6)
        assert row["allowed"] >= exact - 1e-12
        assert row["n"] == inside.sum()
        lots = [
            np.random.default_rng(i).permutation(pd.factorize(X["sex"], use_na_sentinel=False)[0]) for i in range(3)
        ]
        code = pd.factorize(X["sex"], use_na_sentinel=False)[0][inside.argmax()]
        shuffled = np.mean([transport(X, each == code, METRICS[name]) for each in lots])
        assert row["shuffled"] == pytest.approx(shuffled, abs=2e-6)
        assert (row["mean"], row["others"]) == pytest.approx((scores[inside].mean() / 2, scores[~inside].mean() / 2))
        assert row["gap"] == pytest.approx((scores[inside].mean() - scores[~inside].mean()) / 2)


def test_a_model_within_the_metric_keeps_to_it_and_proxies_are_found():
    X, _ = drawn(9, 300)
    y = X["income"] + 0.02 * X["age"] > 1.2
    model = AdditiveClassifier(METRIC).fit(X, y)
    found = group_gaps(model, X, METRIC, "sex")
    assert (found.gaps["gap"].abs() <= found.gaps["allowed"]).all()
    areas = found.proxies.set_index("column")["auc"]
    assert areas["income"] > 0.6 > areas["region"]  # income goes with sex here, the region does not
    assert areas["all together"] > 0.6


def test_control_a_model_that_ignores_the_metric_exceeds_it():
    X, _ = drawn(3)
    found = group_gaps(None, X, METRIC, "sex", predictions=(X["sex"] == "m") * 0.9)
    assert (found.gaps["gap"].abs() > found.gaps["allowed"]).all()


def test_a_vendor_who_docks_every_woman_is_not_said_to_keep_to_the_metric():
    """People in four dimensions: even groups drawn by lot are further apart than the dock of 10 points."""
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(150, 4)), columns=list("abcd"))
    X["sex"] = np.random.default_rng(1).choice(["f", "m"], 150)
    metric = TableMetric(dict.fromkeys("abcd", 0.15), {"sex": 0})
    scores = 0.5 + 0.02 * X["a"] - 0.1 * (X["sex"] == "f")
    found = group_gaps(None, X, metric, "sex", predictions=scores)
    row = found.gaps.iloc[0]
    assert 0.07 < abs(row["gap"]) < row["allowed"]  # the limit alone would pass for an acquittal
    assert row["shuffled"] == pytest.approx(row["allowed"], rel=0.15)  # it is what lots give
    assert "neither that the model exceeds the metric nor that it keeps to it" in found.headline
    apart = group_gaps(None, X.assign(a=X["a"] + 2 * (X["sex"] == "m")), metric, "sex", predictions=scores).gaps
    assert apart["allowed"][0] > apart["shuffled"][0] + 0.1  # the control: groups that differ are told from lots
    docked = group_gaps(None, X, metric.scaled(0.1), "sex", predictions=scores)
    assert "of any model within the metric" in docked.headline


@pytest.mark.parametrize("side", [1, -1])
def test_the_headline_is_about_the_group_that_is_furthest_beyond_its_limit(side):
    """Above the others or below them."""
    X = pd.DataFrame({"a": np.arange(90) % 9 / 9.0, "team": np.array(["x", "y", "z"])[np.arange(90) % 3]})
    scores = 0.5 + side * np.where(X["team"] == "y", 0.3, np.where(X["team"] == "z", -0.1, 0.0))
    found = group_gaps(None, X, TableMetric({"a": 0.01}, {"team": 0}), "team", predictions=scores)
    row = found.gaps.set_index("value").loc["y"]
    assert np.sign(row["gap"]) == side
    assert abs(row["gap"]) - row["allowed"] == (found.gaps["gap"].abs() - found.gaps["allowed"]).max()
    assert found.headline.startswith("mean outputs of y and of all others differ by")


def test_what_cannot_be_compared_is_refused():
    X, scores = drawn(0)
    with pytest.raises(InvalidInputError, match="column must list"):
        group_gaps(None, X, METRIC, "race", predictions=scores)
    with pytest.raises(InvalidInputError, match="2 to 20 values"):
        group_gaps(None, X, METRIC, "income", predictions=scores)


def test_a_blank_is_told_from_the_category_nan():
    X = pd.DataFrame({"age": [30, 40, 30, 50, 35, 45], "state": pd.Series(["nan", None, "x"] * 2, dtype=object)})
    found = group_gaps(None, X, TableMetric({"age": 0.01}, {"state": 0}), "state", predictions=[0.2, 0.3, 0.4] * 2)
    assert found.gaps.set_index("value")["gap"].round(3).to_dict() == {"(blank)": 0.0, "nan": -0.15, "x": 0.15}
