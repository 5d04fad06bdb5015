"""Gaps of groups against the transport problem solved by a general program."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from likewise import AdditiveClassifier, TableMetric, group_gaps
from likewise.exceptions import InvalidInputError

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


def transport(X, inside):
    """The least mean of min(1, D) over all ways to match the groups, by linear programming."""
    costs = np.minimum(1, METRIC.pairwise(X[inside], X[~inside]))
    n, m = costs.shape
    rows = np.zeros((n + m, n * m))
    for i in range(n):
        rows[i, i * m : (i + 1) * m] = 1
    for j in range(m):
        rows[n + j, j::m] = 1
    return linprog(costs.ravel(), A_eq=rows, b_eq=np.append(np.full(n, 1 / n), np.full(m, 1 / m))).fun


@pytest.mark.parametrize("seed", range(4))
def test_the_gap_that_is_allowed_is_the_transport_distance(seed):
    X, scores = drawn(seed)
    found = group_gaps(None, X, METRIC, "sex", predictions=scores).gaps.set_index("value")
    men = (X["sex"] == "m").to_numpy()
    assert found["allowed"]["m"] == pytest.approx(transport(X, men), abs=1e-6)
    assert found["allowed"]["m"] >= transport(X, men) - 1e-12
    assert found["gap"]["m"] == pytest.approx(scores[men].mean() - scores[~men].mean())


def test_a_model_within_the_metric_keeps_to_it_and_its_gap_adds_up():
    X, _ = drawn(9, 300)
    y = X["income"] + 0.02 * X["age"] > 1.2
    model = AdditiveClassifier(METRIC).fit(X, y)
    found = group_gaps(model, X, METRIC, "sex")
    assert (found.gaps["gap"].abs() <= found.gaps["allowed"]).all()
    people = model.encoder_.encode(X)
    scores = np.log(model.predict_proba(X)[:, 1] / model.predict_proba(X)[:, 0])
    men = (X["sex"] == "m").to_numpy()
    assert len(people) == 300
    assert found.contributions["m"].sum() == pytest.approx(scores[men].mean() - scores[~men].mean(), abs=1e-9)
    areas = found.proxies.set_index("column")["auc"]
    assert areas["income"] > 0.6 > areas["region"]  # income goes with sex here, the region does not
    assert areas["all together"] > 0.6


def test_control_a_model_that_ignores_the_metric_exceeds_it():
    X, _ = drawn(3)
    found = group_gaps(None, X, METRIC, "sex", predictions=(X["sex"] == "m") * 0.9)
    assert (found.gaps["gap"].abs() > found.gaps["allowed"]).all()


def test_what_cannot_be_compared_is_refused():
    X, scores = drawn(0)
    with pytest.raises(InvalidInputError, match="column must list"):
        group_gaps(None, X, METRIC, "race", predictions=scores)
    with pytest.raises(InvalidInputError, match="2 to 20 values"):
        group_gaps(None, X, METRIC, "income", predictions=scores)
