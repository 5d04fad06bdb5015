"""`effect` against brute force over all people of small domains, for every kind of model."""

from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from likewise import AdditiveClassifier, AdditiveRegressor, TableMetric, WeightedLp, audit, minimal_metric
from likewise.auditing.effect import effect
from likewise.exceptions import InvalidInputError, UnprovableError
from likewise.inspection.baselines import table_model
from likewise.kernel.proof import Claim, by_formula
from likewise.verification import tree_problem
from likewise.verification.domain import Domain
from small_domain import EVERYBODY, brute_force, one_hot, outputs, people

METRIC = TableMetric({"age": 0.05, "income": 0.2}, {"sex": 0, "region": 0.1})


def ordinal():
    return make_column_transformer(
        (OrdinalEncoder(), ["sex", "region"]), (MinMaxScaler(), ["income"]), remainder="passthrough"
    )


def as_categories(X):
    return X.astype({"sex": "category", "region": "category"})


def boosted(package, name, **options):
    return getattr(pytest.importorskip(package), name)(n_estimators=12, max_depth=3, n_jobs=1, **options)


SKLEARN_TREES = {
    "tree": DecisionTreeClassifier(max_depth=5, random_state=0),
    "forest": RandomForestClassifier(8, max_depth=4, random_state=0),
    "extra trees": ExtraTreesClassifier(8, max_depth=5, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=15, random_state=0),
    "exponential boosting": GradientBoostingClassifier(loss="exponential", n_estimators=10, random_state=0),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=3, random_state=0),
}
REGRESSORS = {
    "tree": DecisionTreeRegressor(max_depth=5, random_state=0),
    "forest": RandomForestRegressor(8, max_depth=4, random_state=0),
    "extra trees": ExtraTreesRegressor(8, max_depth=5, random_state=0),
    "boosting": GradientBoostingRegressor(n_estimators=15, random_state=0),
    "histogram boosting": HistGradientBoostingRegressor(max_iter=10, min_samples_leaf=3, random_state=0),
    "linear": LinearRegression(),
}


def check(model, X, columns, *, exact=True, everybody=EVERYBODY, **options):
    """Found and proven against all people there are; and the pair is what it is said to be."""
    truth = brute_force(model, columns, everybody)
    result = effect(model, X, columns, tolerance=1e-6, **options)
    assert result.found == pytest.approx(truth, abs=2e-6)
    assert result.proven >= truth
    assert result.proven >= result.found
    if exact:
        assert result.meets
        assert result.proven <= truth + 2e-6
    pair = result.pair.iloc[:, :-1]  # without the score
    shown = outputs(model, pair.astype(everybody.dtypes.to_dict()))
    share = 0.5 if shown.shape[1] > 1 else 1.0
    assert share * np.abs(shown[0] - shown[1]).sum() == pytest.approx(result.found, abs=1e-6)
    assert {name for name in pair if not pair[name].iloc[:1].equals(pair[name].iloc[1:].set_axis([0]))} <= {*columns}
    return result


@pytest.mark.parametrize("columns", [["sex"], ["age"], ["income"], ["region", "sex"]], ids=" ".join)
@pytest.mark.parametrize("name", SKLEARN_TREES)
def test_trees_of_scikit_learn(name, columns):
    X, y = people(0)
    check(make_pipeline(one_hot(), SKLEARN_TREES[name]).fit(X, y), X, columns)


@pytest.mark.parametrize("kind", ["forest", "boosting"])
def test_the_baselines_of_the_command_line(kind):
    """Also with an order and blanks, and with a column that holds nothing, which the boosting reads as 0."""
    X, y = people(5)
    check(table_model(X, kind).fit(X, y), X, ["sex"])
    X["grade"] = pd.Categorical(np.where(X["age"] > 22, "old", "young"), ["young", "old"], ordered=True)
    X["income"] = X["income"].where(np.arange(len(X)) % 7 > 0)
    X["nothing"] = np.nan
    given = [X[name].drop_duplicates() for name in X]
    everybody = pd.DataFrame(product(*given), columns=list(X)).astype(X.dtypes.to_dict())
    check(table_model(X, kind).fit(X, y), X, ["sex"], everybody=everybody)


@pytest.mark.parametrize("name", REGRESSORS)
def test_regression(name):
    X, y = people(1, kind="number")
    model = make_pipeline(one_hot(), REGRESSORS[name]).fit(X, y)
    unit = float(np.ptp(outputs(model, EVERYBODY)))
    truth, result = brute_force(model, ["sex"]), effect(model, X, "sex", tolerance=1e-6)
    assert result.found == pytest.approx(truth, abs=2e-6 * unit)
    assert truth <= result.proven <= truth + 2e-6 * unit


def test_regression_as_a_share_of_a_range():
    X, y = people(1, kind="number")
    model = make_pipeline(one_hot(), REGRESSORS["boosting"]).fit(X, y)
    result = effect(model, X, "sex", output_range=(-5, 5), tolerance=1e-6)
    assert result.proven == pytest.approx(brute_force(model, ["sex"]) / 10, abs=2e-6)


@pytest.mark.parametrize("seed", range(3))
def test_ordinal_codes_and_scaled_numbers(seed):
    X, y = people(seed)
    check(make_pipeline(ordinal(), GradientBoostingClassifier(n_estimators=20, random_state=0)).fit(X, y), X, ["sex"])


def test_histogram_boosting_with_categories_of_its_own():
    X, y = people(2)
    X, everybody = as_categories(X), as_categories(EVERYBODY)
    model = HistGradientBoostingClassifier(max_iter=15, min_samples_leaf=3, categorical_features="from_dtype").fit(X, y)
    check(model, X, ["region"], everybody=everybody)


@pytest.mark.parametrize("columns", [["sex"], ["region"], ["age"]], ids=" ".join)
def test_xgboost(columns):
    X, y = people(3)
    X, everybody = as_categories(X), as_categories(EVERYBODY)
    model = boosted("xgboost", "XGBClassifier", enable_categorical=True).fit(X, y == "yes")
    truth, result = brute_force(model, columns, everybody), effect(model, X, columns, tolerance=1e-4)
    assert result.found == pytest.approx(truth, abs=1e-4)
    assert truth <= result.proven <= truth + 2e-4  # single precision is rounded outwards


@pytest.mark.parametrize("columns", [["sex"], ["region"], ["age"]], ids=" ".join)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_lightgbm(columns):
    X, y = people(3)
    X, everybody = as_categories(X), as_categories(EVERYBODY)
    model = boosted("lightgbm", "LGBMClassifier", verbose=-1, min_child_samples=3, min_data_per_group=3, cat_smooth=0)
    check(model.fit(X, y), X, columns, everybody=everybody)


def coded_numbers():
    """Numbers only, of which one is a code, and all people there can be."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 6, 400), "b": rng.integers(-9, 9, 400) / 10, "k": rng.integers(0, 4, 400)})
    X["m"] = rng.integers(0, 2, 400)
    values = [range(6), np.arange(-9, 9) / 10, range(4), range(2)]
    everybody = pd.MultiIndex.from_product(values, names=list(X)).to_frame(index=False)
    return X, ((X["a"] > 2) ^ ((X["m"] == 1) & (X["k"] == 2))).astype(int), everybody


@pytest.mark.parametrize(
    ("package", "name", "options"),
    [
        ("sklearn.ensemble", "HistGradientBoostingClassifier", {"max_iter": 9, "categorical_features": [2]}),
        ("xgboost", "XGBRFClassifier", {"n_estimators": 8, "max_depth": 4, "n_jobs": 1}),
        ("lightgbm", "LGBMClassifier", {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}),
        ("lightgbm", "LGBMClassifier", {"boosting_type": "dart"}),
        ("lightgbm", "LGBMClassifier", {"zero_as_missing": True}),
    ],
)
def test_settings_that_change_how_trees_are_read(package, name, options):
    if package == "lightgbm":
        options = {**options, "n_estimators": 8, "n_jobs": 1, "verbose": -1}
    X, y, everybody = coded_numbers()
    model = getattr(pytest.importorskip(package), name)(**options).fit(X, y)
    truth, result = brute_force(model, ["m"], everybody), effect(model, X, "m")
    assert result.found == pytest.approx(truth, abs=1e-4)
    assert truth <= result.proven <= truth + 3e-4


def test_early_stopping_of_xgboost():
    X, y, everybody = coded_numbers()
    model = boosted("xgboost", "XGBClassifier", early_stopping_rounds=2, learning_rate=1.0)
    model.fit(X, y, eval_set=[(X[:50], 1 - y[:50])], verbose=False)
    assert model.best_iteration < 11
    truth, result = brute_force(model, ["m"], everybody), effect(model, X, "m")
    assert truth <= result.proven <= truth + 3e-4


@pytest.mark.parametrize("kind", ["two", "number"])
def test_explainable_boosting_machines(kind):
    glassbox = pytest.importorskip("interpret.glassbox")
    X, y = people(3, kind=kind)
    made = glassbox.ExplainableBoostingRegressor if kind == "number" else glassbox.ExplainableBoostingClassifier
    check(made(interactions=0, n_jobs=1, outer_bags=2, max_rounds=100).fit(X, y), X, ["sex"])
    crossed = made(interactions=1, n_jobs=1, outer_bags=2, max_rounds=100).fit(X, y)
    assert "interactions" in effect(crossed, X, "sex").how


def test_catboost():
    catboost = pytest.importorskip("catboost")
    X, y = people(4)
    last = catboost.CatBoostClassifier(iterations=12, depth=3, verbose=0, thread_count=1, allow_writing_files=False)
    check(make_pipeline(one_hot(), last).fit(X, y), X, ["sex"])


@pytest.mark.parametrize("name", ["forest", "boosting", "histogram boosting"])
def test_three_classes(name):
    X, y = people(5, kind="three")
    model = make_pipeline(one_hot(), SKLEARN_TREES[name]).fit(X, y)
    check(model, X, ["sex"], exact=name == "forest")


def test_the_bound_of_three_classes_is_the_truth_where_one_column_decides():
    """The figures of docs/theory.md §15: the scores -x, 0 and x, for x between -1 and 1."""
    model = LogisticRegression().fit([[0.0], [1.0], [2.0]], [0, 1, 2])
    model.coef_, model.intercept_ = np.array([[-1.0], [0.0], [1.0]]), np.zeros(3)
    result = effect(model, np.array([[-1.0], [0.3], [1.0]]), "feature 0")
    assert result.found == pytest.approx((np.e - 1 / np.e) / (1 + np.e + 1 / np.e))
    assert result.found <= result.proven <= result.found + 1e-4 < np.tanh(1)


@pytest.mark.parametrize("columns", [["sex"], ["age"], ["region", "income"]], ids=" ".join)
@pytest.mark.parametrize("seed", range(2))
def test_logistic_regression(seed, columns):
    X, y = people(seed)
    check(make_pipeline(one_hot(), LogisticRegression(C=3)).fit(X, y), X, columns)


def test_logistic_regression_in_closed_form():
    """With a column of all numbers the rest reaches every score: the change is that of two symmetric scores."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"income": rng.normal(size=500), "sex": rng.integers(0, 2, 500)})
    model = LogisticRegression().fit(X, X["income"] + X["sex"] + rng.normal(size=500) > 0.5)
    result = effect(model, X, "sex", tolerance=1e-6)
    closed = np.tanh(abs(model.coef_[0, 1]) / 4)
    assert result.meets
    assert result.proof.n_boxes == 0
    assert result.proven == pytest.approx(closed, abs=1e-9)
    # Far from even chances the same log-odds do less: the rest cannot be chosen so that the scores are symmetric.
    narrow = effect(model, X, "sex", domain=Domain.learn(X).with_column("income", low=2.5), tolerance=1e-6)
    odds = model.intercept_[0] + 2.5 * model.coef_[0, 0]
    assert narrow.proven == pytest.approx(expit(odds + model.coef_[0, 1]) - expit(odds), abs=1e-9)
    assert narrow.meets


def test_closed_forms_are_milliseconds():
    """No search over boxes where the closed form is reached."""
    X, y = people(1)
    X = X.assign(income=X["income"] + np.random.default_rng(0).normal(size=len(X)) / 7)
    assert effect(make_pipeline(one_hot(), LogisticRegression(C=3)).fit(X, y), X, "region").proof.n_boxes == 0


def test_three_classes_of_a_linear_model():
    X, y = people(6, kind="three")
    check(make_pipeline(one_hot(), LogisticRegression()).fit(X, y), X, ["sex"], exact=False)


def test_a_linear_model_with_a_clipped_link():
    X, y = people(6)
    model = make_pipeline(one_hot(), SGDClassifier(loss="modified_huber", random_state=0, alpha=0.01)).fit(X, y)
    truth, result = brute_force(model, ["sex"]), effect(model, X, "sex", tolerance=1e-6)
    assert result.found == pytest.approx(truth, abs=1e-6)
    assert truth <= result.proven <= truth + 0.1


def test_scorecards():
    X, y = people(7)
    loose = TableMetric({"age": 0.3, "income": 1.0}, {"sex": 0.4, "region": 0.5})
    model = AdditiveClassifier(loose).fit(X, y)
    truth, result = brute_force(model, ["region"]), effect(model, X, "region", tolerance=1e-6)
    assert result.found == pytest.approx(truth, abs=1e-6)
    assert truth <= result.proven <= truth + 1e-6
    assert effect(AdditiveClassifier(METRIC).fit(X, y), X, "sex").proven < 1e-9
    X, y = people(7, kind="number")
    model = AdditiveRegressor(loose, output_range=(-4, 4)).fit(X, y)
    truth, result = brute_force(model, ["region"]) / 8, effect(model, X, "region", tolerance=1e-6)
    assert result.found == pytest.approx(truth, abs=1e-6)
    assert truth <= result.proven <= truth + 1e-6


@pytest.mark.parametrize("intercept", [-4.0, -0.5, 0.0, 4.0])
def test_a_score_that_stays_on_one_side_is_bounded_there(intercept):
    """A logistic curve is steepest at one half, which these people may be far from."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.random(200), "b": rng.random(200)})
    model = LogisticRegression().fit(X, rng.random(200) < 0.5)
    model.coef_, model.intercept_ = np.array([[1.0, 0.5]]), np.array([intercept])
    low, high = X["a"].min(), X["a"].max()
    rest = intercept + 0.5 * np.linspace(X["b"].min(), X["b"].max(), 10_001)
    truth = (expit(rest + high) - expit(rest + low)).max()
    domain = Domain.learn(X).with_column("a", step=None).with_column("b", step=None)
    found = effect(model, X, "a", domain=domain)
    assert truth <= found.proven + 1e-12
    assert found.proven <= truth + 1e-7


@pytest.mark.parametrize("outcome", [0, 1])
def test_a_card_in_whole_points(outcome):
    X, y = people(7)
    model = AdditiveClassifier(TableMetric({"age": 0.3, "income": 1.0}, {"sex": 0.4, "region": 0.5})).fit(X, y)
    card = model.in_points(base_odds=7, outcome=model.classes_[outcome])
    truth, result = brute_force(card, ["region"]), effect(card, X, "region", tolerance=1e-6)
    assert result.found == pytest.approx(truth, abs=1e-6)
    assert truth <= result.proven <= truth + 1e-6


@pytest.mark.parametrize("columns", [["age"], ["income"]])
def test_numbers_that_are_categories_may_have_their_largest_effect_between_the_ends(columns):
    X, _ = people(8)
    y = X["age"].to_numpy() == np.sort(X["age"].unique())[1]
    coded = make_column_transformer((OneHotEncoder(), ["age"]), remainder="passthrough")
    model = make_pipeline(coded, LogisticRegression(C=10)).fit(X[["age", "income"]], y)
    everybody = EVERYBODY[["age", "income"]].drop_duplicates(ignore_index=True)
    result = effect(model, X[["age", "income"]], columns, tolerance=1e-6)
    truth = brute_force(model, columns, everybody)
    assert truth <= result.proven <= truth + 1e-4


def excess_by_brute_force(model, metric):
    scores = outputs(model, EVERYBODY)
    share = 0.5 if scores.shape[1] > 1 else 1.0
    gaps = share * np.abs(scores[:, None] - scores[None]).sum(axis=2)
    return float((gaps - metric.pairwise(EVERYBODY)).max())


@pytest.mark.parametrize("name", ["tree", "boosting", "forest"])
def test_the_excess_of_trees_over_a_metric(name):
    X, y = people(20)
    metric = TableMetric(METRIC.numeric, METRIC.categorical)
    model = make_pipeline(one_hot(), SKLEARN_TREES[name]).fit(X, y)
    truth, excess = excess_by_brute_force(model, metric), effect(model, X, "sex", metric, max_seconds=20).excess
    assert excess.found == pytest.approx(truth, abs=1e-4)
    assert truth <= excess.proven <= truth + 1e-3
    assert excess.difference - excess.distance == pytest.approx(excess.found)


def test_the_excess_of_additive_models_over_a_metric():
    X, y = people(21)
    model = make_pipeline(one_hot(), LogisticRegression(C=3)).fit(X, y)
    truth, excess = excess_by_brute_force(model, METRIC), effect(model, X, "sex", METRIC).excess
    assert excess.found == pytest.approx(truth, abs=1e-6)
    assert truth <= excess.proven <= truth + 0.05
    within = effect(AdditiveClassifier(METRIC).fit(X, y), X, "sex", METRIC).excess
    assert within.found < 1e-9
    assert within.proven < 1e-9


def test_the_excess_of_other_models_is_found_only():
    X, y = people(22)
    model = make_pipeline(one_hot(), LogisticRegression()).fit(X, y)
    excess = effect(lambda table: model.predict_proba(table)[:, 1], X, "sex", METRIC).excess
    assert excess.proven is None
    assert excess.found == pytest.approx(excess_by_brute_force(model, METRIC), abs=1e-6)


def test_blanks_are_in_the_domain_if_people_have_them():
    X, y = people(8)
    X["income"] = X["income"].where(np.arange(len(X)) % 5 > 0)
    blank = EVERYBODY.drop_duplicates(["age", "sex", "region"]).assign(income=np.nan)
    everybody = pd.concat([EVERYBODY, blank], ignore_index=True)
    imputed = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["sex", "region"]),
        (SimpleImputer(add_indicator=True), ["income"]),
        remainder="passthrough",
    )
    for last in (GradientBoostingClassifier(n_estimators=15, random_state=0), LogisticRegression()):
        model = make_pipeline(imputed, last).fit(X, y)
        truth, result = _with_blanks(model, everybody), effect(model, X, "income", tolerance=1e-6)
        assert result.found == pytest.approx(truth, abs=1e-6)
        assert truth <= result.proven <= truth + 2e-6


def _with_blanks(model, everybody):
    scores, worst = outputs(model, everybody)[:, 1], 0.0
    for members in everybody.groupby(["age", "sex", "region"]).indices.values():
        worst = max(worst, float(np.ptp(scores[members])))
    return worst


def test_rules_take_people_out():
    X, y = people(9)
    X["income"] = X["income"] * 2 + 19  # 19 to 22, beside ages of 20 to 24
    everybody = EVERYBODY.assign(income=EVERYBODY["income"] * 2 + 19)
    model = make_pipeline(one_hot(), GradientBoostingClassifier(n_estimators=25, random_state=0)).fit(X, y)
    allowed = everybody[everybody["age"] <= everybody["income"]].reset_index(drop=True)
    inside = X["age"] <= X["income"]
    X = X[inside].reset_index(drop=True)
    domain = Domain.learn(EVERYBODY.assign(income=everybody["income"])).with_rules("age <= income")
    truth, result = brute_force(model, ["sex"], allowed), effect(model, X, "sex", domain=domain, tolerance=1e-6)
    assert truth < brute_force(model, ["sex"], everybody)  # the rule matters
    assert result.found == pytest.approx(truth, abs=2e-6)
    assert truth <= result.proven <= truth + 2e-6
    assert (result.pair["age"] <= result.pair["income"]).all()


def test_a_narrower_domain_has_a_smaller_effect():
    X, y = people(10)
    model = make_pipeline(one_hot(), GradientBoostingClassifier(n_estimators=25, random_state=0)).fit(X, y)
    domain = Domain.learn(X).with_column("region", values=["north", "south"])
    narrow = brute_force(model, ["sex"], EVERYBODY[EVERYBODY["region"] != "west"].reset_index(drop=True))
    result = effect(model, X, "sex", domain=domain, tolerance=1e-6)
    assert result.proven == pytest.approx(narrow, abs=2e-6)
    assert narrow < brute_force(model, ["sex"])


def test_numbers_without_a_step_are_cut_at_thresholds():
    rng = np.random.default_rng(11)
    X = pd.DataFrame({"a": rng.normal(size=400), "b": rng.normal(size=400) * 1e6, "s": rng.integers(0, 2, 400)})
    y = (X["a"] + 1.5 * X["s"] * (X["b"] > 1e6) > 0.3).astype(int)
    model = make_pipeline(StandardScaler(), GradientBoostingClassifier(n_estimators=20, random_state=0)).fit(X, y)
    result = effect(model, X, "s", tolerance=1e-6)
    low, high = X.min(), X.max()
    many = pd.DataFrame({name: rng.uniform(low[name], high[name], 50_000) for name in X}).assign(s=0)
    gaps = np.abs(outputs(model, many)[:, 1] - outputs(model, many.assign(s=1))[:, 1])
    assert result.meets
    assert gaps.max() <= result.proven
    assert result.found >= gaps.max() - 1e-9


def test_a_corner_that_nobody_is_in_is_found():
    rng = np.random.default_rng(12)
    X = pd.DataFrame(
        {"age": rng.integers(18, 80, 3000), "income": rng.integers(0, 200, 3000), "sex": rng.integers(0, 2, 3000)}
    )
    y = ((X["income"] > 100) ^ ((X["sex"] == 1) & (X["age"] > 70) & (X["income"] > 180))).astype(int)
    model = DecisionTreeClassifier().fit(X, y)
    elsewhere = X[(X["age"] < 60) & (X["income"] < 150)]
    domain = Domain.learn(X)
    result = effect(model, elsewhere, "sex", domain=domain)
    assert result.on_people["effect"].max() == 0
    assert result.found == 1.0
    assert result.meets
    assert (result.pair["age"] > 65).all()
    assert (result.pair["income"] > 170).all()


def test_other_models_have_a_lower_bound_only_and_say_so():
    X, y = people(13)
    inner = make_pipeline(one_hot(), GradientBoostingClassifier(n_estimators=15, random_state=0)).fit(X, y)

    class Vendor:
        classes_ = np.array(["no", "yes"])

        def predict_proba(self, table):
            return inner.predict_proba(table)

    result = effect(Vendor(), X, "sex")
    assert result.found == pytest.approx(brute_force(inner, ["sex"]), abs=1e-9)
    assert result.proven is None
    assert not result.meets
    assert "no upper bound is proven" in result.headline
    assert "No proof" in result.coverage
    same = effect(lambda table: inner.predict_proba(table)[:, 1], X, "sex")
    assert same.found == pytest.approx(result.found)


def test_it_is_said_how_far_the_proof_came(monkeypatch):
    """Closed, not closed within the limit, a bound that need not be attained, or no bound and why."""
    X, y = people(13)
    model = make_pipeline(one_hot(), GradientBoostingClassifier(n_estimators=80, random_state=0)).fit(X, y)
    truth = brute_force(model, ["sex"])
    closed, short = effect(model, X, "sex"), effect(model, X, "age", max_boxes=1, max_seconds=None, tolerance=1e-9)
    assert closed.meets
    assert closed.standing.startswith("Proof: ")
    assert short.proof.stopped
    assert brute_force(model, ["age"]) < short.proven < 1
    assert short.standing.startswith("Not closed within 1 box: the worst case is between")
    X, y = people(13, kind="three")
    three = effect(make_pipeline(one_hot(), LogisticRegression(max_iter=1000)).fit(X, y), X, "sex")
    assert three.standing.endswith("and more time does not change that") != three.meets
    none = effect(lambda table: model.predict_proba(table)[:, 1], X, "sex")
    assert none.standing.startswith("No proof: this model cannot be bounded, as it is only asked, not read")
    none = effect(make_pipeline(one_hot(), GaussianNB()).fit(X, y), X, "sex")
    assert "as GaussianNB is none of those that are read: linear and additive models, trees" in none.standing
    # Trees of too many pairs of leaves have a bound without a search.
    monkeypatch.setattr(tree_problem, "_MOST_PIECES", 3)
    wide = effect(model, X, "sex")
    assert truth <= wide.proven < 1
    assert "by the smallest and largest leaf of each tree" in wide.standing


def test_what_is_found_and_proven_so_far_is_shown(monkeypatch):
    said = []

    @contextmanager
    def bar(title, total, *, show):
        said.append((title, total, show))
        yield lambda steps, text: said.append(text)

    monkeypatch.setattr("likewise.auditing.effect.progress_bar", bar)
    monkeypatch.setattr("likewise.auditing.effect._SHOWN_AFTER", 0.0)
    X, y = people(13)
    model = make_pipeline(one_hot(), GradientBoostingClassifier(n_estimators=80, random_state=0)).fit(X, y)
    result = effect(model, X, "sex", max_seconds=7, verbose=True)
    assert said[0] == ("Bounding, 7 s of processor time at most", 7, True)
    assert said[-1].startswith(f"Found {100 * result.found:.4g} points, proven ")


def by_age(table):
    """Scores that do not depend on sex."""
    return expit((table["age"] - 40) / 10).to_numpy()


def test_a_constant_model_has_no_effect():
    X, y = people(14)
    result = effect(DummyClassifier().fit(X, y), X, "sex")
    assert (result.found, result.pair) == (0, None)


@pytest.mark.parametrize(
    "model", [LogisticRegression(), DecisionTreeClassifier(max_depth=3), AdditiveClassifier(METRIC)],
    ids=["linear", "tree", "scorecard"],
)  # fmt: skip
def test_of_a_column_that_does_not_matter_there_is_no_pair_and_a_proof_of_0(model):
    X, y = people(14)
    if not isinstance(model, AdditiveClassifier):
        reads = make_column_transformer(("passthrough", ["age", "income"]))
        model = make_pipeline(reads, model)
    result = effect(model.fit(X, y), X, "sex", METRIC if isinstance(model, AdditiveClassifier) else None)
    assert result.found <= 1e-12
    assert result.proven <= 1e-12
    assert result.pair is None
    assert "no two people of the domain who differ in sex alone get different outputs (proven)" in result.headline
    assert result.headline[0].upper() + result.headline[1:] in result._repr_html_()
    assert "<table" not in result._repr_html_()
    if result.excess is not None:
        assert (result.excess.found, result.excess.pair) == (0, None)


def test_finding_no_pair_without_a_proof_is_said_not_to_be_one():
    X, _ = people(14)
    result = effect(by_age, X, "sex", n_queries=500)
    assert (result.found, result.proven, result.pair) == (0, None, None)
    assert "no two people of the domain who differ in sex alone were found to get different outputs" in result.headline
    assert "no upper bound is proven, and finding none does not prove that there is none" in result.headline
    # A column that matters has a pair, and the same words do not appear.
    other = effect(by_age, X, "age", n_queries=500)
    assert other.pair["age"].nunique() == 2
    assert "were found" not in other.headline


def test_a_bound_is_not_said_to_be_lower_than_it_is():
    """Found and proven meet within the tolerance: the words give the proven number, rounded up."""
    X, y = people(0)
    model = make_pipeline(one_hot(), GradientBoostingClassifier(n_estimators=40, random_state=0)).fit(X, y)
    result = effect(model, X, "sex", tolerance=0.05)
    assert result.meets
    assert result.proven > result.found + 1e-6
    told = float(result.headline.split("by no more than ")[1].split()[0])
    assert 100 * result.proven <= told <= 100 * result.proven * 1.001


def test_words_are_within_rounding_whatever_the_tolerance():
    X, y = people(0)
    made = effect(DecisionTreeClassifier(max_depth=2).fit(X[["age"]], y), X[["age"]], "age")
    claim = Claim(SimpleNamespace(), (0,), shares=True)
    proofs = [by_formula(claim, size, "a formula") for size in (0.20029, 0.2 + 1e-10, 0.0005 - 1e-9, 1e-10)]
    result = replace(made, found=0.2, proof=proofs[0], tolerance=0.001, rounding=1e-9)
    assert result.meets
    assert result.headline.endswith("and by no more than 20.03 points for anybody in the domain")
    assert replace(result, proof=proofs[1]).headline.endswith("and by no more for anybody in the domain")
    nothing = replace(result, found=0.0, pair=None, proof=proofs[2])
    assert not nothing.proves_none
    assert nothing.headline.endswith("they differ by no more than 0.05 points")
    assert replace(nothing, proof=proofs[3]).headline.endswith("get different outputs (proven)")


def test_a_result_takes_no_forged_proof_and_none_that_a_pair_contradicts():
    X, y = people(0)
    made = effect(DecisionTreeClassifier(max_depth=2).fit(X[["age"]], y), X[["age"]], "age")
    forged = SimpleNamespace(proven=0.01, how="trust me", pairs=(), n_boxes=1, history=(), stopped=False)
    with pytest.raises(UnprovableError, match="cannot be held against"):
        replace(made, proof=forged)
    with pytest.raises(UnprovableError, match="more than what is proven"):
        replace(made, found=made.proven + 0.01)


def test_a_model_that_is_not_what_it_looks_like_has_no_proof():
    X, y = people(15)

    class Twisted(GradientBoostingClassifier):
        def predict_proba(self, Z):
            return super().predict_proba(Z)[:, ::-1]

    twisted = Twisted(n_estimators=5).fit(one_hot().fit_transform(X), y)
    assert effect(twisted, one_hot().fit_transform(X), "feature 0").proven is None
    model = make_pipeline(one_hot(), GradientBoostingClassifier(n_estimators=5)).fit(X, y)
    model[-1].learning_rate = 0.5  # the trees are read with it, and so does the model predict
    assert effect(model, X, "sex").proven is not None
    model[-1].predict_proba = lambda Z: np.tile([0.3, 0.7], (len(Z), 1))
    result = effect(model, X, "sex")
    assert result.proven is None
    assert "not the function of its trees" in result.how


def test_arrays_are_people_too():
    rng = np.random.default_rng(16)
    X = rng.integers(0, 3, (300, 3)).astype(float)
    y = (X[:, 0] + X[:, 1] * (X[:, 2] > 1) > 2).astype(int)
    model = DecisionTreeClassifier(max_depth=4).fit(X, y)
    result = effect(model, X, "feature 1")
    everybody = pd.DataFrame(np.stack(np.meshgrid(*[range(3)] * 3), -1).reshape(-1, 3).astype(float))
    truth = brute_force(
        type("M", (), {"predict_proba": lambda _, Z: model.predict_proba(np.asarray(Z))})(), [1], everybody
    )
    assert result.found == pytest.approx(truth)
    assert result.meets


def test_the_same_number_of_boxes_gives_the_same_result():
    X, y = people(18)
    model = make_pipeline(one_hot(), GradientBoostingClassifier(n_estimators=40, random_state=0)).fit(X, y)
    first, second = (effect(model, X, "sex", max_boxes=30, max_seconds=None, tolerance=1e-9) for _ in range(2))
    assert (first.found, first.proven, first.proof.n_boxes) == (second.found, second.proven, second.proof.n_boxes)


def test_a_column_that_is_not_there_is_refused():
    X, y = people(19)
    model = make_pipeline(one_hot(), LogisticRegression()).fit(X, y)
    with pytest.raises(InvalidInputError, match="column must list columns of X"):
        effect(model, X, "gender")
    with pytest.raises(InvalidInputError, match="does not occur in X"):
        effect(model, X, "sex", domain=Domain.learn(X).with_column("sex", values=["f", "m", "x"]))


@pytest.mark.parametrize("blank", [None, np.nan])
@pytest.mark.parametrize("values", [["a", "b"], [True, False], [1, 2]], ids=["text", "truth", "numbers"])
@pytest.mark.parametrize("last", [DecisionTreeClassifier(max_depth=3, random_state=0), LogisticRegression()])
def test_a_blank_is_asked_about_as_it_stands_in_the_table(last, values, blank):
    """Encoders tell None and NaN apart, and take the other one for an unknown category."""
    rng = np.random.default_rng(0)
    held = [*values, blank]
    kinds = pd.Series([held[k] for k in rng.integers(0, 3, 300)], dtype=object)
    X = pd.DataFrame({"kind": kinds, "number": rng.integers(0, 4, 300)})
    y = X["kind"].isna() * 3 + X["number"] + rng.normal(size=300) > 2.5
    coded = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["kind"]), remainder="passthrough")
    model = make_pipeline(coded, clone(last)).fit(X, y)
    everybody = pd.DataFrame({"kind": pd.Series(held * 4, dtype=object), "number": np.repeat(range(4), 3)})
    chances = model.predict_proba(everybody)[:, 1].reshape(4, 3)
    truth = float(np.ptp(chances, axis=1).max())
    result = effect(model, X, "kind")
    assert truth > 0.3
    assert result.found == pytest.approx(truth, abs=1e-9)
    assert truth <= result.proven + 1e-12
    if isinstance(last, LogisticRegression):
        metric = minimal_metric(model, X, domain=Domain.learn(X, ["kind"]))
        assert audit(model, X, metric, tolerance=1e-9).n_violations == 0
        assert metric.categorical["kind"] == pytest.approx(truth, abs=1e-9)  # and is minimal


def test_two_kinds_of_blanks_in_one_column_are_refused():
    X = pd.DataFrame({"kind": pd.Series(["a", None, np.nan, "b"] * 20, dtype=object), "number": np.arange(80) % 4})
    coded = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["kind"]), remainder="passthrough")
    model = make_pipeline(coded, LogisticRegression()).fit(X, X["number"] > 1)
    with pytest.raises(InvalidInputError, match="one kind of blank per column"):
        effect(model, X, "kind")


def test_a_bound_over_a_metric_counts_the_steps_of_its_order():
    """Grades are 1, 2, 3 and 4 steps to the metric, and the numbers 1, 2, 5 and 10 to the model."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"grade": rng.choice([1, 2, 5, 10], 200), "number": rng.normal(size=200).round(1)})
    model = LogisticRegression().fit(X, X["grade"] + X["number"] > 3)
    metric = TableMetric({"grade": 0.1, "number": 0.1}, order={"grade": [1, 2, 5, 10]})
    result = effect(model, X, "number", metric=metric, domain=Domain.learn(X, ["grade"]), n_queries=1)
    numbers = np.arange(X["number"].min(), X["number"].max() + 0.05, 0.1)
    everybody = pd.DataFrame(product([1, 2, 5, 10], numbers), columns=["grade", "number"])
    chances, steps = model.predict_proba(everybody)[:, 1], everybody["grade"].map({1: 0, 2: 1, 5: 2, 10: 3}).to_numpy()
    at = everybody["number"].to_numpy()
    D = 0.1 * np.abs(steps[:, None] - steps) + 0.1 * np.abs(at[:, None] - at)
    truth = (np.abs(chances[:, None] - chances) - D).max()
    assert result.excess.found - 1e-9 <= truth <= result.excess.proven + 1e-9


def test_a_column_called_score_is_shown_as_it_is():
    X, y = people(4)
    X["score"] = np.arange(len(X)) % 5
    model = make_pipeline(make_column_transformer((OneHotEncoder(), ["sex"]), ("passthrough", ["score"])),
                          LogisticRegression()).fit(X, y)  # fmt: skip
    pair = effect(model, X, "sex").pair
    assert set(pair["score"]) <= set(range(5))
    np.testing.assert_allclose(pair["model's score"], model.predict_proba(pair)[:, 1])


def test_an_excess_above_what_was_proven_takes_the_proof_back(monkeypatch):
    X = np.arange(5.0)[:, None]
    model = LinearRegression().fit(X, 0.2 * X[:, 0])
    low = lambda space, *_: by_formula(space.claim([0]), 0.01, "a formula")  # noqa: E731
    monkeypatch.setattr("likewise.auditing.excess.prove_excess", low)
    found = effect(model, X, "feature 0", WeightedLp([0.1]), domain=Domain.learn(X)).excess
    assert found.found == pytest.approx(0.4)
    assert found.proven is None


def test_the_excess_over_a_distance_with_exponent_2_is_never_below_the_truth():
    """At most 0.64 apart at a distance of 0.4 sqrt(2); the norm is bounded from below by a sum of its terms."""
    X = np.array(list(product(range(5), repeat=2)), dtype=float)
    model = LinearRegression().fit(X, 0.08 * X.sum(axis=1))
    found = effect(model, X, "feature 0", WeightedLp([0.01, 0.01], p=2), domain=Domain.learn(X)).excess
    assert found.found == pytest.approx(0.64 - 0.4 * np.sqrt(2), abs=1e-6)
    assert found.found <= found.proven < 0.1


def test_models_that_are_no_estimators_of_scikit_learn_are_searched_under_a_metric():
    class Other:
        classes_ = np.array([0, 1])

        def fit(self, X, y):
            return self

        def predict_proba(self, X):
            chance = 0.3 + 0.01 * np.asarray(X["a"], dtype=float)
            return np.c_[1 - chance, chance]

    people = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [0.0, 1.0, 0.0, 1.0]})
    found = effect(Other(), people, "a", TableMetric({"a": 0.02, "b": 0.1}))
    assert found.proven is None
    assert found.found == pytest.approx(0.03)
