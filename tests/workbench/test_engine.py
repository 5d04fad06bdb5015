"""Live figures are those of the library, computed another way."""

import numpy as np
import pandas as pd
import pytest

from committee import applicants, problem_of
from likewise import AdditiveClassifier, audit
from likewise.exceptions import InvalidInputError
from likewise.workbench.comparing import compare, person
from likewise.workbench.engine import BOOSTING, CONSTANT, GUARANTEED, LINEAR, Engine
from likewise.workbench.figures import auc_with_influence, figures

SET = {
    "numeric": {"income": 0.01, "debt": 0.02},
    "categorical": {"region": 0.2},
    "missing": {"debt": 0.3},
}


@pytest.fixture(scope="module")
def engine():
    X, y = applicants()
    return Engine(problem_of(X, y))


@pytest.fixture
def sheet(engine):
    return engine.empty_sheet(["race"]).with_weights(SET)


def results(engine, sheet):
    found = []
    engine.evaluate(sheet, found.append)
    return found


def test_distances_of_pairs_are_those_of_the_metric(engine, sheet):
    pairs, metric = engine.pairs, sheet.metric
    expected = metric(engine.X.iloc[pairs.a], engine.X.iloc[pairs.b])
    found = pairs.distances(metric.weights_of(engine.encoder))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    # Control: another weight of blanks is another distance.
    other = sheet.with_weights({"missing": {"debt": 0.31}}).metric
    assert not np.allclose(pairs.distances(other.weights_of(engine.encoder)), expected, rtol=1e-12)


def test_mean_distance_is_the_mean_over_all_ordered_pairs(engine, sheet):
    expected = sheet.metric.pairwise(engine.X).mean()
    assert engine.mean_distance(sheet.metric) == pytest.approx(expected, rel=1e-12)


def test_violations_of_given_scores_are_those_of_an_audit(sheet):
    X, y = applicants(120)
    scores = np.random.default_rng(1).random(120)
    engine = Engine(problem_of(X, y, scores=scores, scores_title="vendor"))
    today = results(engine, sheet)[-1]["today"]
    expected = audit(None, X, sheet.metric, predictions=scores, n_worst=1)
    assert (today["title"], today["violations"], today["n_pairs"]) == ("vendor", expected.n_violations, 120 * 119 // 2)
    worst = today["worst"][0]
    assert worst["gap"] - worst["distance"] == pytest.approx(expected.max_excess, abs=1e-12)
    assert expected.n_violations > 0


def test_figures_are_of_people_held_out_each_once(engine, sheet):
    first, last = results(engine, sheet)
    assert not first["done"]
    assert first["figures"]["n"] == (engine.folds == 0).sum()
    assert last["done"]
    assert last["figures"]["n"] == len(engine.X)
    penalty = engine.penalties(["income"])
    losses = np.zeros(len(engine.X))
    for fold in range(5):
        out = engine.folds == fold
        model = AdditiveClassifier(sheet.metric, penalty=penalty, max_knots=engine.max_knots)
        model.fit(engine.X[~out], engine.problem.y[~out])
        losses[out] = (model.predict_proba(engine.X[out])[:, 1] - (engine.problem.y[out] == "yes")) ** 2
    row = next(row for row in last["figures"]["rows"] if row["title"] == GUARANTEED)
    assert row["loss"] == pytest.approx(losses.mean(), rel=1e-12)
    assert row["loss_se"] == pytest.approx(losses.std(ddof=1) / np.sqrt(len(losses)), rel=1e-12)


def test_references_do_not_see_locked_columns_and_are_measured_once(engine, sheet):
    found = engine.references(sheet.locked)
    assert list(found) == [CONSTANT, LINEAR, BOOSTING]
    assert "race" not in found[BOOSTING].model.feature_names_in_
    assert engine.references(sheet.locked) is found
    rows = {row["title"]: row for row in results(engine, sheet)[-1]["figures"]["rows"]}
    assert rows[CONSTANT]["second"] == 0.5
    assert rows[GUARANTEED]["second"] > 0.6


def test_references_know_nothing_of_the_people_held_out():
    X, _ = applicants(250)
    noise = np.random.default_rng(99).normal(size=250)  # another seed than that of the people
    engine = Engine(problem_of(X, 2 * X["income"].to_numpy() + noise, "regression", output_range=(0.0, 200.0)))
    losses = (engine.references([])[LINEAR].predictions - engine.problem.y) ** 2
    # No model can do better than the noise, whose squares have mean 1 and variance 2: at 1e-6, 4.75 errors.
    assert losses.mean() > 1 - 4.75 * np.sqrt(2 / 250)
    # Control: noise that is known from the people, as a leak would make it, is seen.
    known = 2 * X["income"].to_numpy() + (X["income"].to_numpy() - 50) / 10
    engine = Engine(problem_of(X, known, "regression", output_range=(0.0, 200.0)))
    assert ((engine.references([])[LINEAR].predictions - known) ** 2).mean() < 1e-9


def test_prices_and_shapes_are_those_of_the_fitted_card(engine, sheet):
    result = results(engine, sheet)[-1]
    expected = result["model"].prices(engine.X, engine.problem.y, cv=None).set_index("column")["gain if 10% looser"]
    assert result["prices"] == {name: pytest.approx(gain) for name, gain in expected.items()}
    assert {shape["name"] for shape in result["shapes"]["first"]} == {"income", "debt", "region"}


def test_without_weights_there_is_a_constant(engine):
    result = results(engine, engine.empty_sheet())[-1]
    assert result["constant"]
    assert (result["mean_distance"], result["bound_share"]) == (0.0, 1.0)
    rows = {row["title"]: row for row in result["figures"]["rows"]}
    if CONSTANT in rows:
        assert rows[GUARANTEED]["loss"] == rows[CONSTANT]["loss"]


def test_the_newest_request_stops_the_others(engine, sheet):
    seen = []
    engine.evaluate(sheet, seen.append, lambda: False)
    assert [result["done"] for result in seen] == [False]


def test_large_tables_are_sampled_evenly(monkeypatch):
    monkeypatch.setattr("likewise.workbench.engine.MAX_PEOPLE", 100)
    X, y = applicants(1000)
    engine = Engine(problem_of(X, y))
    assert engine.is_sample
    assert (engine.n_table, len(engine.X)) == (1000, 100)
    assert np.ptp(np.diff(engine.X.index)) <= 1


def test_auc_and_its_error_against_brute_force():
    rng = np.random.default_rng(3)
    true, scores = (rng.random(60) < 0.4).astype(int), rng.integers(0, 12, 60) / 12
    wins = [(a > b) + 0.5 * (a == b) for a in scores[true == 1] for b in scores[true == 0]]
    area, influence = auc_with_influence(np.column_stack([1 - scores, scores]), true)
    assert area == pytest.approx(np.mean(wins), rel=1e-12)
    # DeLong's variance, from the means of wins by person.
    table = np.reshape(wins, (int(true.sum()), -1))
    m, n = table.shape
    expected = table.mean(axis=1).var() / m + table.mean(axis=0).var() / n
    assert (influence**2).sum() == pytest.approx(expected, rel=1e-9)


def test_figures_of_a_regression():
    y = np.array([1.0, 2.0, 3.0, 4.0])
    found = figures(y + 0.5, np.full(4, 2.5), y, None, np.zeros(4))
    assert (found["loss"], found["loss_se"], found["second"]) == (0.25, 0.0, pytest.approx(1 - 0.25 / 1.25))


def test_two_people_add_up_and_keep_the_guarantee(engine, sheet):
    model = engine.fit(sheet.metric)
    a, b = person(engine, 3), person(engine, "5")
    found = compare(engine, sheet, model, a, b)
    expected = float(sheet.metric(engine.X.loc[[3]], engine.X.loc[[5]])[0])
    assert found["distance"] == pytest.approx(expected, rel=1e-12)
    assert found["scores"][0]["values"] == pytest.approx(model.predict_proba(engine.X.loc[[3, 5]])[:, 1])
    assert found["gap"] <= found["distance"]
    typed = compare(
        engine, sheet, model, a, {**a, "income": "", "region": "<script>", "debt": "7"} | {"income": a["income"]}
    )
    assert {part["column"]: part["points"] for part in typed["parts"]}["region"] == 0.2
    with pytest.raises(InvalidInputError, match="income must be a number; got 'much'"):
        compare(engine, sheet, model, a, {**a, "income": "much"})
    with pytest.raises(InvalidInputError, match="income must be given for both"):
        compare(engine, sheet, model, a, {**a, "income": ""})
    with pytest.raises(InvalidInputError, match="no person"):
        person(engine, "nobody")


def strange(kind):
    rng = np.random.default_rng(0)
    n = 200
    X, y = applicants(n)
    if kind == "blanks":
        return X.mask(rng.random(X.shape) < 0.5), y, "classification", {}
    if kind == "500 categories":
        return X.assign(code=[f"c{i % 500}" for i in range(n)]), y, "classification", {}
    if kind == "one column":
        return X[["income"]], y, "classification", {}
    if kind == "200 columns":
        wide = pd.DataFrame(rng.normal(size=(n, 200)), index=X.index).add_prefix("f")
        return wide, y, "classification", {}
    if kind == "several classes":
        return X, rng.choice(["a", "b", "c"], n), "classification", {}
    if kind == "regression":
        return X, X["income"].to_numpy() + rng.normal(size=n), "regression", {"output_range": (0.0, 100.0)}
    if kind == "few people":
        return X.iloc[:6], np.array(list("ababab")), "classification", {}
    if kind == "constant columns":
        return X.assign(same=1.0, word="w"), y, "classification", {}
    return X.assign(**{"<script>alert(1)</script>": rng.normal(size=n)}), y, "classification", {}


@pytest.mark.parametrize(
    "kind",
    [
        *("blanks", "500 categories", "one column", "200 columns", "several classes", "regression", "few people"),
        *("constant columns", "script"),
    ],
)
def test_strange_tables_have_figures(kind):
    X, y, task, more = strange(kind)
    engine = Engine(problem_of(X, y, task, **more))
    empty = engine.empty_sheet()
    spans = engine.ranges
    given = {
        # The first 20: a fit with 200 columns takes several seconds.
        "numeric": {name: 0.2 / ((spans[name][1] - spans[name][0]) or 1) for name in list(spans)[:20]},
        "categorical": dict.fromkeys(empty.weights["categorical"], 0.05),
        "missing": dict.fromkeys(empty.weights["missing"], 0.1),
    }
    sheet = empty.with_weights(given)
    for each in (empty, sheet):
        last = results(engine, each)[-1]
        assert last["done"]
        assert last["figures"] is None or last["figures"]["rows"][0]["loss"] >= 0
    assert len(engine.columns(sheet)) == X.shape[1]
    a, b = (person(engine, label) for label in X.index[:2])
    found = compare(engine, sheet, engine.fit(sheet.metric), a, b)
    assert found["gap"] <= found["distance"] + 1e-12
