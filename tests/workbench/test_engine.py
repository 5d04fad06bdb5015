"""Live figures are those of the library, computed another way."""

import itertools

import numpy as np
import pandas as pd
import pytest

from committee import applicants, problem_of
from likewise import AdditiveClassifier, TableMetric, audit
from likewise.exceptions import InvalidInputError
from likewise.workbench.comparing import compare, person
from likewise.workbench.engine import BOOSTING, CONSTANT, GUARANTEED, LINEAR, Engine
from likewise.workbench.figures import figures
from oracle import Described

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


def test_figures_say_that_these_people_were_looked_at(engine, sheet):
    assert "understated" in results(engine, sheet)[-1]["figures"]["caveat"]


def test_mean_distance_is_the_mean_over_all_ordered_pairs(engine, sheet):
    expected = sheet.metric.pairwise(engine.X).mean()
    assert engine.costs.mean_distance(engine.bound(sheet)) == pytest.approx(expected, rel=1e-12)


GIVEN = {
    "yes": {},
    "no": {"outcome": "no"},
    "three": {},
    "amount": {"task": "regression", "output_range": (50.0, 250.0)},
}


def given(kind, n=120):
    """A table with the scores of a model in use, as `audit` takes them too."""
    rng = np.random.default_rng(1)
    X, y = applicants(n)
    if kind == "three":
        return X, rng.choice(["a", "b", "c"], n), rng.dirichlet([1, 1, 1], n)
    if kind == "amount":
        return X, rng.uniform(50, 250, n), rng.uniform(50, 250, n)
    return X, y, rng.random(n)


@pytest.mark.parametrize("kind", GIVEN)
def test_given_scores_are_measured_as_by_an_audit_and_by_hand(kind, sheet):
    X, y, scores = given(kind)
    engine = Engine(problem_of(X, y, scores=scores, scores_title="vendor", **GIVEN[kind]))
    engine.references(sheet.locked)
    last = results(engine, sheet)[-1]
    today = last["today"]
    expected = audit(None, X, sheet.metric, predictions=scores, output_range=GIVEN[kind].get("output_range"), n_worst=1)
    assert (today["title"], today["violations"], today["n_pairs"]) == ("vendor", expected.n_violations, 120 * 119 // 2)
    worst = today["worst"][0]
    assert worst["gap"] - worst["distance"] == pytest.approx(expected.max_excess, abs=1e-12)
    assert expected.n_violations > 0
    distances = sheet.metric.pairwise(X)[np.triu_indices(120, 1)]
    assert last["bound_share"] == (distances < 1).mean()
    # Proper losses, fold by fold, and those of the constant that was learned from the other folds.
    if kind == "amount":
        losses, constant = (scores - y) ** 2, np.array([(y[engine.folds != k].mean()) for k in engine.folds])
        of_constant = (constant - y) ** 2
    else:
        classes = np.unique(y)
        true = (y[:, None] == classes).astype(float)
        chances = {
            "yes": lambda: np.column_stack([1 - scores, scores]),
            "no": lambda: np.column_stack([scores, 1 - scores]),
        }
        losses = ((chances.get(kind, lambda: scores)() - true) ** 2).sum(axis=1) / 2
        constant = np.array([true[engine.folds != k].mean(axis=0) for k in engine.folds])
        of_constant = ((constant - true) ** 2).sum(axis=1) / 2
    rows = {row["title"]: row for row in last["figures"]["rows"]}
    for title, each in (("vendor", losses), (CONSTANT, of_constant)):
        assert rows[title]["loss"] == pytest.approx(pd.Series(each).groupby(engine.folds).mean().mean(), rel=1e-12)


def test_a_metric_that_refuses_blanks_gives_them_the_most(engine):
    """Nobody is nearer than the metric says: of a blank that it does not know, it says nothing."""
    found = engine.weights_from(TableMetric({"income": 0.01, "debt": 0.02}, {"region": 0.3}))
    assert found["missing"] == {"debt": 1.0}
    assert found["categorical"] == {"region": 0.3, "race": 0.0}
    assert engine.weights_from(TableMetric({"income": 0.01, "debt": 0}))["missing"] == {"debt": 0.0}
    known = engine.weights_from(TableMetric({"debt": 0.02}, missing={"debt": 0.25}))
    assert (known["missing"], known["numeric"]) == ({"debt": 0.25}, {"income": 0.0, "debt": 0.02})


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
    by_fold = pd.Series(losses).groupby(engine.folds).mean()
    assert (row["loss"], row["loss_se"]) == pytest.approx((by_fold.mean(), by_fold.sem()), rel=1e-12)


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


def test_figures_are_means_over_folds_with_their_errors():
    """Of folds of different sizes, in each of which people are ranked among themselves."""
    rng = np.random.default_rng(3)
    true, scores = (rng.random(90) < 0.4).astype(int), rng.integers(0, 12, 90) / 12
    folds = np.repeat([0, 1], [60, 30])
    areas, losses = [], []
    for k in (0, 1):
        one, other = scores[(folds == k) & (true == 1)], scores[(folds == k) & (true == 0)]
        areas.append(np.mean([[(a > b) + 0.5 * (a == b) for b in other] for a in one]))
        losses.append(((scores - true) ** 2)[folds == k].mean())
    found = figures(np.column_stack([1 - scores, scores]), true, np.array([0, 1]), folds)
    assert (found["loss"], found["second"]) == pytest.approx((np.mean(losses), np.mean(areas)), rel=1e-12)
    # Of two numbers, the standard error of the mean is half of what they differ by.
    errors = abs(losses[0] - losses[1]) / 2, abs(areas[0] - areas[1]) / 2
    assert (found["loss_se"], found["second_se"]) == pytest.approx(errors, rel=1e-9)
    alone = figures(scores, true, None, np.zeros(90))
    assert alone["second"] == pytest.approx(1 - alone["loss"] / true.var(), rel=1e-12)
    assert np.isnan(alone["loss_se"])


PEOPLE = [
    {"income": "50", "debt": "4", "region": "north", "race": "x"},
    {"income": "55.5", "debt": "", "region": "south", "race": "y"},
    {"income": "40", "debt": "12", "region": "", "race": "x"},
    {"income": "40", "debt": "", "region": "nowhere", "race": ""},
]


@pytest.mark.parametrize("kind", GIVEN)
def test_two_typed_people_have_the_distance_and_the_scores_of_the_definition(kind, sheet):
    X, y, _ = given(kind, 300)
    problem = problem_of(X, y, **GIVEN[kind])
    engine = Engine(problem)
    model, described = engine.fit(engine.bound(sheet)), Described(sheet.metric, list(X))
    rows = pd.DataFrame(
        [{k: float(v or "nan") if k in ("income", "debt") else v or None for k, v in p.items()} for p in PEOPLE]
    )
    if kind == "amount":
        scores = (model.predict(rows) - 50) / 200
        outputs = scores[:, None]
        rate = (y.mean() - 50) / 200
    else:
        shown = {"no": "no", "yes": "yes", "three": "c"}[kind]
        outputs = model.predict_proba(rows)
        scores, outputs = outputs[:, list(model.classes_).index(shown)], outputs / 2  # total variation
        rate = (y == shown).mean()
    for i, j in itertools.combinations(range(len(PEOPLE)), 2):
        found = compare(engine, sheet, model, PEOPLE[i], PEOPLE[j])
        exact = described.distance(*(rows.iloc[k].to_dict() for k in (i, j)))
        assert found["distance"] == pytest.approx(float(exact), rel=1e-12)
        alone = [
            float(described.distance(rows.iloc[i].to_dict(), {**rows.iloc[i], part["column"]: rows[part["column"]][j]}))
            for part in found["parts"]
        ]
        assert [part["points"] for part in found["parts"]] == pytest.approx(alone, rel=1e-12)
        assert found["scores"][0]["values"] == pytest.approx([scores[i], scores[j]], rel=1e-12)
        gap = found["scores"][0]["gap"]
        assert gap == pytest.approx(np.abs(outputs[i] - outputs[j]).sum(), abs=1e-12)
        assert gap <= found["distance"] + 1e-12
    nothing = compare(engine, engine.empty_sheet(), None, *PEOPLE[:2])
    assert (nothing["distance"], nothing["scores"][0]["gap"]) == (0, 0)
    assert nothing["scores"][0]["values"] == pytest.approx([rate, rate], rel=1e-12)


def test_people_of_the_table_and_what_is_no_person(engine, sheet):
    model, a = engine.fit(engine.bound(sheet)), person(engine, 3)
    found = compare(engine, sheet, model, a, person(engine, "5"))
    assert found["scores"][0]["values"] == pytest.approx(model.predict_proba(engine.X.loc[[3, 5]])[:, 1])
    with pytest.raises(InvalidInputError, match=r"'income' must hold numbers \(it has 'much'"):
        compare(engine, sheet, model, a, {**a, "income": "much"})
    with pytest.raises(InvalidInputError, match="income must be given for both"):
        compare(engine, sheet, model, a, {**a, "income": ""})
    with pytest.raises(InvalidInputError, match="no person"):
        person(engine, "nobody")


@pytest.mark.parametrize("kind", ["two classes", "several classes", "regression"])
def test_a_case_and_the_same_two_people_compared_have_the_same_figure(kind):
    X, y, task, more = strange(kind)
    if kind == "regression":  # boosting leaves the range, to which predictions are cut
        more = {"output_range": (45.0, 55.0)}
    engine = Engine(problem_of(X, y, task, **more))
    sheet = engine.empty_sheet(["race"]).with_weights({"numeric": {"income": 0.001}})
    engine.references(sheet.locked)
    today = results(engine, sheet)[-1]["today"]
    assert (today["title"], today["n_pairs"]) == (engine.fitted, 200 * 199 // 2)
    for case in today["worst"]:
        found = compare(engine, sheet, None, person(engine, case["a"]), person(engine, case["b"]))
        own, other = found["scores"]
        assert (other["title"], other["gap"]) == (engine.fitted, pytest.approx(case["gap"], abs=1e-12))
        assert found["distance"] == pytest.approx(case["distance"], abs=1e-12)
        assert own["gap"] == 0
    # Control: held out, the two are scored by other models, and these figures are others.
    held_out = engine.references(sheet.locked)[BOOSTING].predictions
    a, b = (held_out[[engine.labels[case[side]] for case in today["worst"]]] for side in "ab")
    gaps = np.abs(engine.shares(a) - engine.shares(b)).sum(axis=1) / (1 if kind == "regression" else 2)
    assert not np.allclose(gaps, [case["gap"] for case in today["worst"]], atol=1e-3)


def test_a_weight_that_a_blank_holds_down_is_not_free(engine):
    given = {"numeric": {"income": 0.01, "debt": 0.1}, "missing": {"debt": 0.02}}
    sheet = engine.empty_sheet().with_weights(given)

    def capped(sheet):
        return {column["name"]: column["capped_at"] for column in engine.columns(sheet)}

    assert capped(sheet) == {"income": None, "debt": 0.04, "region": None, "race": None}
    # People who differ in their debt alone are no further apart, whatever it weighs.
    model = engine.fit(engine.bound(sheet))
    people = pd.concat([engine.X.iloc[[0]]] * 50, ignore_index=True).assign(debt=np.linspace(0, 40, 50))
    assert np.ptp(model.predict_proba(people)[:, 1]) <= 0.04 + 1e-12
    assert capped(sheet.with_weights({"missing": {"debt": 0.0}}))["debt"] == 0
    low, high = engine.ranges["debt"]
    for missing, cap in ((0.1 * (high - low) / 2, None), (1.0, None)):
        assert capped(sheet.with_weights({"missing": {"debt": min(1.0, missing)}}))["debt"] is cap
    assert capped(sheet.with_weights({"numeric": {"debt": 0.0}}))["debt"] is None


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
    found = compare(engine, sheet, engine.fit(engine.bound(sheet)), a, b)
    assert found["scores"][0]["gap"] <= found["distance"] + 1e-12
