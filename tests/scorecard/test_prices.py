"""Prices of weights: gains against refits with another weight, and costs against cross-validation written out."""

import numpy as np
import pandas as pd
import pytest

from likewise import AdditiveClassifier, AdditiveRegressor, TableMetric, WeightedLp
from likewise._fit_validation import TrainingData
from likewise.additive.design_matrix import constant
from likewise.additive.fit import Plan
from likewise.additive.solver import coarsened, solve
from likewise.pairs.points import row_hashes

GAIN, COST, ERROR = "gain if 10% looser", "cost if it must not matter", "standard error"


def people(n=160, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "income": rng.gamma(3, 15, n).round(1),
            "debt": np.where(rng.random(n) < 0.3, np.nan, rng.gamma(2, 10, n).round(1)),
            "region": rng.choice(["north", "south", "west"], n),
        }
    )
    score = 0.1 * (X["income"] - 45) - 2 * (X["region"] == "south") - 0.15 * X["debt"].fillna(5) + 2
    return X, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int).to_numpy(), rng.integers(1, 4, n).astype(float)


def metric_of(income=0.01, debt=0.01, region=0.05, missing=0.05):
    return TableMetric({"income": income, "debt": debt}, {"region": region}, missing={"debt": missing})


def optimum(model, metric, X, y, weights):
    """The smallest value of the training objective under a metric."""
    bound = metric.bind(model.encoder_)
    plan = Plan.of(model, bound)
    problem = plan.objective(TrainingData(bound.read(X), y, weights))
    problem = coarsened(plan.with_penalties(problem, model.penalty_))
    x = solve(problem, constant(problem.layout, problem.best_constants()))
    return problem.value(x, problem.scores(x))


def test_gains_are_the_slopes_of_the_best_objective():
    X, y, weights = people()
    given = {"income": 0.01, "debt": 0.01, "region": 0.05, "missing": 0.05}
    model = AdditiveClassifier(metric_of(**given), penalty=1e-3, max_knots=6).fit(X, y, weights)
    table = model.prices(X, y, weights, cv=None).set_index("column")
    assert table[GAIN].is_monotonic_decreasing
    for name, weight in given.items():
        ends = [
            optimum(model, metric_of(**{**given, name: weight * (1 + step)}), X, y, weights) for step in (-1e-3, 1e-3)
        ]
        row = "missing debt" if name == "missing" else name
        assert table.loc[row, "weight"] == weight
        assert table.loc[row, GAIN] == pytest.approx((ends[0] - ends[1]) / 2e-3 * 0.1, rel=0.02, abs=1e-7), row
    assert (table[GAIN] > 1e-5).sum() >= 3  # the metric holds back: there was something to compare


@pytest.mark.parametrize("kind", ["classes", "number", "one column"])
def test_costs_are_those_of_cross_validation_written_out(kind):
    X, y, weights = people()
    if kind == "number":
        y = 10.0 * y + X["income"].to_numpy()
        model = AdditiveRegressor(metric_of(), penalty=1e-2, max_knots=4, output_range=(0, 120))
    elif kind == "one column":
        X = X[["income"]]
        model = AdditiveClassifier(WeightedLp({"income": 0.01}), penalty=1e-2, max_knots=4)
    else:
        model = AdditiveClassifier(metric_of(), penalty=1e-2, max_knots=4)
    model.fit(X, y, weights)
    table = model.prices(X, y, weights, cv=3).set_index("column")
    rows = model.guarantee_.metric.bind(model.encoder_).read(X).rows
    target = model.loss_of(y, model.guarantee_.metric.bind(model.encoder_).read(X)).target
    folds = row_hashes((*rows.T, *target)) % np.uint64(3)

    def losses(without):
        found = np.empty(len(X))
        for fold in range(3):
            out = folds == fold
            if without == "income" and kind == "one column":  # nothing is left but the mean
                answers = np.full(out.sum(), np.average(y[~out], weights=weights[~out]))
            else:
                changed = {"income": 0.01, "debt": 0.01, "region": 0.05} | ({} if without is None else {without: 0.0})
                metric = model.metric if kind == "one column" else metric_of(**changed)
                card = model.with_metric(metric).fit(X[~out], y[~out], weights[~out])
                answers = card.predict(X[out]) if kind == "number" else card.predict_proba(X[out])[:, 1]
            found[out] = (answers - y[out]) ** 2
        return found

    within, shares = losses(None), weights / weights.sum()
    for name in X:
        change = losses(name) - within
        cost = shares @ change
        assert table.loc[name, COST] == pytest.approx(cost, rel=1e-6)
        assert table.loc[name, ERROR] == pytest.approx(np.sqrt(np.sum((shares * (change - cost)) ** 2)), rel=1e-6)


def test_a_card_shows_the_gain_of_the_weight_behind_each_row():
    X, y, _ = people()
    card = AdditiveClassifier(metric_of(), penalty=1e-3, max_knots=6).fit(X, y)
    prices = card.prices(X, y, cv=None)
    gains, rows = prices.set_index("column")[GAIN], card.scorecard(prices=prices)
    for row in rows.to_dict("records"):
        assert row[GAIN] == gains["missing debt" if row["range"] == "missing" else row["column"]]
    assert rows.drop(columns=GAIN).equals(card.scorecard())
    with pytest.raises(TypeError, match="prices must be the table that prices returned"):
        card.scorecard(prices=3)
