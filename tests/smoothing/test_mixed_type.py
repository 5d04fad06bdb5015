"""Smoothed models of tables: every pair, brute-force kernels, blindness, missing and unseen values."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from chance import PER_CHECK, too_few, too_many
from likewise import Gaussian, SmoothedClassifier, SmoothedRegressor, TableMetric, WeightedLp

NOISES = ["splitting", "gaussian", "laplace", "uniform"]


def tree_pipeline(X, depth=None):
    """A jagged model of any table: text to numbers, then a deep tree."""
    text = [name for name in X.columns if not pd.api.types.is_numeric_dtype(X[name])]
    encode = OrdinalEncoder(handle_unknown="error", encoded_missing_value=-1)
    return make_pipeline(
        make_column_transformer((encode, text), remainder="passthrough"), DecisionTreeClassifier(max_depth=depth)
    )


def applicants(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 70, n),
            "income": rng.lognormal(8, 0.5, n).round(2),
            "region": rng.choice(["north", "south", "east"], n),
            "owner": rng.random(n) < 0.5,
            "race": rng.choice(["x", "y"], n),
        }
    )


X = applicants()
Y = ((X.age > 40) ^ (X.region == "north") ^ (X.race == "x")).to_numpy().astype(int)
METRIC = TableMetric({"age": 0.02, "income": 1e-4}, {"region": 0.2, "owner": 0.1, "race": 0})


def worst_excess(model, people):
    scores = model.predict_proba(people)
    variation = np.abs(scores[:, None] - scores).sum(axis=2) / 2
    return float((variation - model.guarantee_.bound(model.guarantee_.metric.pairwise(people))).max())


def test_auto_is_a_splitting_for_p_1_and_keeps_whole_numbers_exact():
    whole = X.assign(income=X.income.round())
    model = SmoothedClassifier(
        tree_pipeline(whole),
        metric=TableMetric({"age": 0.02, "income": 0.01}, {"region": 0.2, "owner": 0.1, "race": 0}),
        n_draws=1000,
    ).fit(whole, Y)
    assert (model.guarantee_.level, model.guarantee_.epsilon, model.guarantee_.delta) == ("deterministic", 0.0, 0.0)
    assert worst_excess(model, whole[:100]) <= 1e-12


def test_the_kernel_on_categories_is_exactly_its_weight_apart():
    """Two values of a column of weight w are told apart in floor(K w) of K draws, by the model that just looks."""
    people = pd.DataFrame({"a": ["u", "v", "w"] * 4, "b": [1, 2] * 6})
    for weight, K in itertools.product([0.0, 0.1, 1 / 3, 0.75, 1.0], [10, 997]):
        metric = TableMetric(categorical={"a": weight, "b": 1.0})
        model = SmoothedClassifier(
            lambda rows: (rows["a"] == "u").to_numpy().astype(int), metric=metric, n_draws=K, random_state=0
        ).fit(people, [0, 1] * 6)
        score = model.predict_proba(pd.DataFrame({"a": ["u", "v"], "b": [1, 1]}))[:, 1]
        kept = int(weight * K + 1e-9)
        assert score[0] - score[1] == pytest.approx(kept / K, abs=1e-12)


@pytest.mark.parametrize("noise", ["splitting", "gaussian"])
def test_how_often_a_value_is_kept_is_exactly_its_weight(noise):
    """A category is told from another in a share w of the draws, of scores and of decisions alike."""
    n, weight = 100_000, 0.9
    people = pd.DataFrame({"a": ["u"] * 7 + ["v"], "b": [1, 2] * 4})
    metric = TableMetric(categorical={"a": weight, "b": 1.0})
    model = SmoothedClassifier(
        lambda rows: (rows["a"] == "v").to_numpy().astype(int), metric=metric, noise=noise, n_draws=n, random_state=0
    ).fit(people, [0, 1] * 4)
    v = pd.DataFrame({"a": ["v"], "b": [1]})
    # Kept, or replaced by one of eight training rows of whom one is a v; 1.02 w would be 17 standard deviations away.
    expected = weight + (1 - weight) / 8
    score = model.predict_proba(v)[0, 1]
    decided = int((model.decide(v.iloc[[0] * n], 1) == 1).sum())
    for count in (round(score * n), decided):
        assert not too_many(count, n, expected)
        assert not too_few(count, n, expected)
        assert too_few(count, n, 1.02 * weight + (1 - 1.02 * weight) / 8)


@pytest.mark.parametrize("noise", ["splitting", "gaussian"])
def test_missing_and_unseen_values_reach_the_model_as_what_they_are(noise):
    """A missing number stays missing, and an unseen category is replaced: in scores, and in decisions of their own."""
    people = pd.DataFrame({"n": [1.0, 2.0, 3.0, np.nan] * 5, "a": [*"uuuuv"] * 4})
    metric = TableMetric({"n": 0.1}, {"a": 1.0}, missing="category")
    asked = []

    def look(rows):
        asked.append(rows)
        return rows["n"].isna().to_numpy().astype(int)

    model = SmoothedClassifier(look, metric=metric, noise=noise, n_draws=200, random_state=0).fit(people, [0, 1] * 10)
    hole, whole = (pd.DataFrame({"n": [value], "a": ["w"]}) for value in (np.nan, 2.0))
    asked.clear()
    assert model.predict_proba(hole)[0].tolist() == [0, 1]
    assert model.predict_proba(whole)[0].tolist() == [1, 0]
    in_scores = pd.concat(asked, ignore_index=True)["a"]
    asked.clear()
    assert model.decide(pd.concat([hole, whole] * 200, ignore_index=True), 0).tolist() == [1, 0] * 200
    in_decisions = pd.concat(asked, ignore_index=True)["a"]
    for seen in (in_scores, in_decisions):
        assert set(seen) == {"u", "v"}
        # Those who were not there are like the training people: a fifth of them are v. Draws are shared: there are 200.
        assert not too_few((seen == "v").mean() * 200, 200, 0.2)
        assert not too_many((seen == "v").mean() * 200, 200, 0.2)


@pytest.mark.parametrize("blank", [None, np.nan])
def test_a_missing_category_reaches_the_model_as_it_is_written(blank):
    people = pd.DataFrame({"a": pd.Series(["u", blank, "v"] * 10, dtype=object)})

    def is_none(rows):
        return np.array([value is None for value in rows["a"]], dtype=int)

    model = SmoothedClassifier(is_none, metric=TableMetric({}, {"a": 1.0}), n_draws=50, random_state=0)
    shares = model.fit(people, [0, 1, 0] * 10).predict_proba(people)
    assert shares[:, -1].tolist() == [0, blank is None, 0] * 10


@pytest.mark.parametrize("noise", ["splitting", "gaussian"])
def test_whether_a_number_is_missing_is_told_with_its_weight(noise):
    n, weight = 100_000, 0.3
    people = pd.DataFrame({"n": [1.0, 2.0, 3.0, np.nan]})
    metric = TableMetric({"n": 0.1}, missing={"n": weight})
    model = SmoothedClassifier(
        lambda rows: rows["n"].isna().to_numpy().astype(int), metric=metric, noise=noise, n_draws=n, random_state=0
    ).fit(people, [0, 1, 0, 1])
    there, absent = model.predict_proba(pd.DataFrame({"n": [2.0, np.nan]}))[:, 1]
    # With the same draws, the two differ in those that are kept, and in no other.
    assert not too_many(round((absent - there) * n), n, weight)
    assert not too_few(round((absent - there) * n), n, weight)
    assert (absent - there <= weight) or noise == "gaussian"


def test_a_column_that_must_not_matter_is_not_among_what_is_seen():
    """Neither scores nor keyed decisions, which follow from visible_rows, can depend on it."""
    for noise in ("splitting", "gaussian"):
        model = SmoothedClassifier(tree_pipeline(X), metric=METRIC, noise=noise, n_draws=50, random_state=0).fit(X, Y)
        seen = model.visible_rows(X[:9])
        for race in ("x", "y", "never seen", None):
            np.testing.assert_array_equal(model.visible_rows(X[:9].assign(race=race)), seen)
        assert (model.visible_rows(X[:9].assign(region="east")) != seen).any()  # the control


def test_numbers_and_categories_add_up_in_the_promise():
    """TV of a number's noise and of a category's: both at once can be nearly their sum, which tanh or erf is not."""
    people = pd.DataFrame({"n": [0.0, 1.0] * 4, "a": [*"uuuuvvvv"]})
    for noise in NOISES:
        fit = SmoothedClassifier(lambda rows: (rows["n"] > 0).to_numpy().astype(int), noise=noise, n_draws=50)
        both = clone(fit).set_params(metric=TableMetric({"n": 0.5}, {"a": 0.4})).fit(people, [0, 1] * 4)
        alone = clone(fit).set_params(metric=TableMetric({"n": 0.5}, {"a": 0})).fit(people, [0, 1] * 4)
        excess = both.guarantee_.curve.excess
        assert both.guarantee_.curve.bound(0.7) == pytest.approx(min(1, 0.7 + excess))
        D = np.linspace(0, 2, 21)
        assert np.array_equal(alone.guarantee_.curve.bound(D), alone.noise_.curve.bound(D))


@pytest.mark.parametrize("noise", NOISES)
def test_the_mixed_kernel_against_enumeration(noise):
    """For every set of outcomes on a small table, by the models that read out the perturbed row itself."""
    people = pd.DataFrame(list(itertools.product([0, 1, 2], ["u", "v"], ["k", "l"])), columns=["n", "a", "b"])
    metric = TableMetric({"n": 0.2}, {"a": 0.3, "b": 0.15})
    n_draws = 1000 if noise == "splitting" else 20_000
    D = metric.pairwise(people)
    rng = np.random.default_rng(0)
    for _ in range(4):
        chosen = rng.random((22, 2, 2)) < 0.5  # cells of n, a and b

        def member(rows, chosen=chosen):
            where = np.clip(np.floor(rows["n"]), -9, 12).astype(int) + 9
            return chosen[where, (rows["a"] == "v").astype(int), (rows["b"] == "l").astype(int)].astype(int)

        model = SmoothedClassifier(member, metric=metric, noise=noise, n_draws=n_draws, random_state=0)
        score = model.fit(people, [0, 1] * 6).predict_proba(people)[:, 1]
        # Shared draws: n differences of range 2/n, so P(excess >= e) <= exp(-n e^2 / 2), for 66 pairs both ways.
        margin = 0 if noise == "splitting" else np.sqrt(2 * np.log(132 / PER_CHECK) / n_draws)
        assert (np.abs(score[:, None] - score) <= D + model.guarantee_.epsilon * (noise == "splitting") + margin).all()


@pytest.mark.parametrize("noise", NOISES)
def test_a_column_that_must_not_matter_is_invisible_however_it_changes(noise):
    metric = TableMetric({"age": 0.02, "income": 0}, {"region": 0.2, "owner": 0.1, "race": 0})
    model = SmoothedClassifier(tree_pipeline(X), metric=metric, noise=noise, n_draws=300, random_state=0).fit(X, Y)
    people = X[:30]
    scores = model.predict_proba(people)
    for change in (
        {"race": "y"},
        {"race": "never seen"},
        {"race": None},
        {"income": 1e12},
        {"income": -5.5},
        {"income": np.nan},
    ):
        changed = people.assign(**change)
        np.testing.assert_array_equal(model.predict_proba(changed), scores)
        np.testing.assert_array_equal(model.decide(changed, 0), model.decide(people, 0))
        np.testing.assert_array_equal(model.certify(changed).lower, model.certify(people).lower)


@pytest.mark.parametrize("noise", NOISES)
def test_unseen_categories_keep_the_promise_and_never_reach_the_model(noise):
    model = SmoothedClassifier(tree_pipeline(X), metric=METRIC, noise=noise, n_draws=500, random_state=0).fit(X, Y)
    people = pd.concat([X[:30], X[:30].assign(region="west"), X[:30].assign(region=None)], ignore_index=True)
    assert worst_excess(model, people) <= 0
    scores = model.predict_proba(people)
    np.testing.assert_array_equal(scores[30:60], scores[60:])  # all unseen values are one


def test_missing_numbers_are_refused_unless_asked_for():
    model = SmoothedClassifier(tree_pipeline(X), metric=METRIC, n_draws=50).fit(X, Y)
    with pytest.raises(ValueError, match="Column 'income' has missing numbers, which the metric refuses"):
        model.predict_proba(X.assign(income=np.nan))
    with pytest.raises(ValueError, match="Column 'income' has missing numbers"):
        SmoothedClassifier(tree_pipeline(X), metric=METRIC).fit(X.assign(income=np.nan), Y)


def test_decide_has_the_law_of_the_scores():
    for noise in ("splitting", "gaussian"):
        model = SmoothedClassifier(tree_pipeline(X), metric=METRIC, noise=noise, n_draws=5000, random_state=0).fit(X, Y)
        n = 4000
        share = (model.decide(X.iloc[[0] * n], random_state=1) == 1).mean()
        margin = np.sqrt(np.log(4 / PER_CHECK) / 2) * (n**-0.5 + 5000**-0.5)
        assert abs(share - model.predict_proba(X[:1])[0, 1]) <= margin


def tangled(rows):
    """A model that mixes all columns, so that draws which do not belong together show."""
    n = np.nan_to_num(rows["n"].to_numpy(dtype=float), nan=2.4)
    parts = np.floor(1.7 * n) + np.floor(rows["m"].to_numpy(dtype=float)) + rows["n"].isna()
    return (parts + (rows["a"] == "v") + 2 * (rows["b"] == "y") + (rows["h"] == "z")).to_numpy() % 3


@pytest.mark.parametrize("K", [4, 7])
@pytest.mark.parametrize("weight", [0.3, 1.0])
def test_decide_of_a_mixed_table_is_one_of_the_draws_behind_its_scores(K, weight):
    """Few draws, so that the law is far from that of independent columns: numbers, categories, gaps, unseen, hidden."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "n": np.where(rng.random(60) < 0.2, np.nan, rng.normal(size=60) * 3),
            "m": rng.integers(0, 9, 60).astype(float),
            "a": rng.choice(["u", "v"], 60),
            "b": rng.choice(["x", "y", "w"], 60),
            "h": rng.choice(["z", "q"], 60),
        }
    )
    metric = TableMetric({"n": 0.2, "m": 0.1}, {"a": weight, "b": 0.6, "h": 0}, missing={"n": 0.4})
    model = SmoothedClassifier(tangled, metric=metric, noise="splitting", n_draws=K, batch=True)
    model.fit(people, np.arange(60) % 3)
    some = pd.concat(
        [
            people.head(4),
            pd.DataFrame({"n": [np.nan, 0.3], "m": [2.5, -0.0], "a": ["new", "v"], "b": ["x", "new"], "h": ["z", "q"]}),
        ],
        ignore_index=True,
    )
    n = 6000
    for row, chances in enumerate(model.predict_proba(some)):
        decided = model.decide(some.iloc[[row] * n], random_state=row)
        for k, chance in enumerate(chances):
            count = int((decided == k).sum())
            assert not too_many(count, n, chance)
            assert not too_few(count, n, chance)


def test_augmented_training_and_regression_on_tables():
    model = SmoothedClassifier(tree_pipeline(X, 4), metric=METRIC, augment=2, n_draws=300, random_state=0).fit(X, Y)
    assert worst_excess(model, X[:50]) <= 0
    numbers = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["region", "race"]), remainder=StandardScaler()),
        RandomForestRegressor(5, random_state=0),
    )
    regressor = SmoothedRegressor(numbers, metric=METRIC, n_draws=1000, random_state=0).fit(X, X.income)
    gap = np.abs(regressor.predict(X[:50])[:, None] - regressor.predict(X[:50]))
    assert (gap <= regressor.guarantee_.bound(METRIC.pairwise(X[:50])) + 1e-9).all()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda X: X.to_numpy(), TypeError, "X must be a table with named columns"),
        (lambda X: X.drop(columns="age"), ValueError, "X must have the column 'age'"),
        (lambda X: X.assign(extra=1), ValueError, "X has the column 'extra', which the metric does not name"),
        (lambda X: X.assign(age="old"), ValueError, "Column 'age' must hold numbers"),
        (lambda X: X[:0], ValueError, "X must hold at least one person"),
    ],
)
def test_the_columns_are_checked(change, error, message):
    model = SmoothedClassifier(tree_pipeline(X), metric=METRIC, n_draws=50).fit(X, Y)
    with pytest.raises(error, match=message):
        model.predict_proba(change(X))


def test_parameters_that_do_not_fit_tables_are_refused():
    other = Gaussian.for_metric(WeightedLp([1.0]))
    with pytest.raises(ValueError, match="weights are all 0"):
        SmoothedClassifier(tree_pipeline(X), metric=METRIC_OF_ZEROS).fit(X, Y)
    with pytest.raises(ValueError, match="noise and metric must match"):
        SmoothedClassifier(tree_pipeline(X), metric=METRIC, noise=other).fit(X, Y)
    with pytest.raises(ValueError, match="at least two people"):
        SmoothedClassifier(tree_pipeline(X), metric=METRIC).fit(X[:1], Y[:1])
    with pytest.raises(ValueError, match="X and y must have the same number of rows; got"):
        SmoothedClassifier(tree_pipeline(X), metric=METRIC).fit(X, Y[:-1])


METRIC_OF_ZEROS = TableMetric({"age": 0, "income": 0}, {"region": 0, "owner": 0, "race": 0})


# -- real tables ------------------------------------------------------------------------------------------------


def test_a_logistic_pipeline_of_a_table_stays_useful():
    encode = make_column_transformer((OneHotEncoder(), ["region", "race"]), remainder=StandardScaler())
    y = (X.age > 40).astype(int)
    metric = TableMetric({"age": 0.2, "income": 1e-3}, {"region": 0.2, "owner": 0.1, "race": 0})
    model = SmoothedClassifier(make_pipeline(encode, LogisticRegression()), metric=metric, n_draws=300).fit(X, y)
    assert model.score(X, y) > 0.9


def test_a_table_of_numbers_has_formulas_and_may_miss_what_does_not_matter():
    numbers = X[["age", "income"]]
    metric = TableMetric({"age": 0.02, "income": 0})
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    model = SmoothedClassifier(pipeline, metric=metric).fit(numbers, Y)
    assert model.guarantee_.level == "exact"
    np.testing.assert_array_equal(
        model.predict_proba(numbers.assign(income=np.nan)), model.predict_proba(numbers.assign(income=3.0))
    )
    metric = TableMetric({"age": 0.02, "income": 1e-4})
    model = SmoothedClassifier(pipeline, metric=metric).fit(numbers, Y)
    assert (model.guarantee_.level, model.guarantee_.metric) == ("exact", metric)
    assert worst_excess(model, numbers) <= 1e-12


def test_a_function_of_numbers_is_still_given_a_table():
    numbers = X[["age", "income"]]
    model = SmoothedClassifier(
        lambda rows: (rows["age"] > 40).to_numpy().astype(int), metric=TableMetric({"age": 0.02, "income": 1e-4})
    ).fit(numbers, Y)
    assert worst_excess(model, numbers) <= 0
