"""Linear models behind imputers are read exactly, blanks included."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.compose import make_column_transformer
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, RobustScaler, StandardScaler

from likewise import AdditiveClassifier, TableMetric, WeightedLp, audit, minimal_metric
from likewise.exceptions import UnprovableError

pytestmark = pytest.mark.filterwarnings("ignore:Found unknown categories", "ignore:Skipping features without")
N = 400
BLANK = 0.15


def people(seed=0, n=N):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n).round(),
            "income": rng.lognormal(3, 0.7, n).round(1),
            "region": rng.choice(["north", "south", "east"], n).astype(object),
        }
    )
    score = 0.08 * (table.age - 40) - 0.06 * (table.income - 20) + (table.region == "south")
    outcome = score + rng.logistic(size=n) > 0
    for name in table:
        table.loc[rng.random(n) < BLANK, name] = np.nan
    return table, outcome.to_numpy()


def pipeline(rng, last):
    """A random pipeline of imputers, scalers and one-hot coding in front of a linear model."""
    scaler = (StandardScaler(), MinMaxScaler(), RobustScaler(), "passthrough")[rng.integers(4)]
    strategy = ("mean", "median", "most_frequent", "constant")[rng.integers(4)]
    fill = {"fill_value": float(rng.normal(0, 30))} if strategy == "constant" else {}
    numbers = [SimpleImputer(strategy=strategy, add_indicator=bool(rng.integers(2)), **fill), scaler]
    if rng.integers(2):
        numbers = [RobustScaler(), *numbers]
    categories = [OneHotEncoder(handle_unknown="ignore", drop=(None, "first")[rng.integers(2)])]
    if rng.integers(2):
        filled = {"strategy": "most_frequent"} if rng.integers(2) else {"strategy": "constant", "fill_value": "none"}
        categories = [SimpleImputer(**filled, add_indicator=bool(rng.integers(2))), *categories]
    parts = [(make_pipeline(*numbers), ["age", "income"]), (make_pipeline(*categories), ["region"])]
    return make_pipeline(make_column_transformer(*parts[:: (1, -1)[rng.integers(2)]]), last)


def everyone(table, rng, n):
    """People who mix the values of the table, its blanks and its ends."""
    mixed = {}
    for name in table:
        values = table[name].dropna()
        pool = [*values, np.nan, np.nan, np.nan, "never seen"] if name == "region" else values
        mixed[name] = rng.choice(np.asarray(pool, dtype=object), n)
        if name != "region":
            blank, low, high = (rng.random(n) < share for share in (0.3, 0.1, 0.1))
            numbers = np.where(low, values.min(), np.where(high, values.max(), mixed[name].astype(float)))
            mixed[name] = np.where(blank, np.nan, numbers)
    return pd.DataFrame(mixed)


def excess(model, metric, table, rng, n=6000):
    """By how much the worst of many random pairs exceeds its distance."""
    a, b = everyone(table, rng, n), everyone(table, rng, n)
    for i, name in enumerate(table):  # a third each differ in one column only
        own = np.arange(n) % 6 == i
        b.loc[own, [other for other in table if other != name]] = a.loc[own, [c for c in table if c != name]]
    ask = (
        (lambda X: model.predict_proba(X) / 2)
        if hasattr(model, "predict_proba")
        else lambda X: model.predict(X)[:, None]
    )
    difference = np.abs(ask(a) - ask(b)).sum(axis=1)
    return float((difference - metric(a, b)).max())


@pytest.mark.parametrize("seed", range(24))
def test_no_pair_exceeds_the_metric_of_a_model_behind_imputers(seed):
    rng = np.random.default_rng(seed)
    table, y = people(seed)
    model = pipeline(rng, LogisticRegression(C=10.0 ** rng.integers(-1, 3), max_iter=5000)).fit(table, y)
    metric = minimal_metric(model, table)
    assert set(metric.missing) == {"age", "income"}
    assert excess(model, metric, table, rng) <= 1e-12


@pytest.mark.parametrize("seed", range(8))
def test_nor_with_three_classes_or_numbers(seed):
    rng = np.random.default_rng(100 + seed)
    table, y = people(seed)
    three = y + (table["income"].fillna(5) > 15)
    model = pipeline(rng, LogisticRegression(C=10.0, max_iter=5000)).fit(table, three)
    assert excess(model, minimal_metric(model, table), table, rng) <= 1e-12
    numbers = 5.0 * y + table["age"].fillna(0)
    model = pipeline(rng, LinearRegression()).fit(table, numbers)
    metric, width = minimal_metric(model, table, output_range=(-1000.0, 1000.0)), 2000.0
    shares = make_pipeline(*[step for _, step in model.steps[:-1]], LinearRegression())
    shares[-1].coef_, shares[-1].intercept_ = model[-1].coef_ / width, 0.0
    shares[-1].n_features_in_ = len(model[-1].coef_)
    assert excess(shares, metric, table, rng) <= 1e-12


def test_control_smaller_weights_are_exceeded():
    """Each of the weights is needed: a fifth less of it, and pairs exceed the metric."""
    exceeded = {"numeric": 0, "categorical": 0, "missing": 0}
    for seed in range(8):
        rng = np.random.default_rng(seed)
        table, y = people(seed)
        model = pipeline(rng, LogisticRegression(C=10.0, max_iter=5000)).fit(table, y)
        metric = minimal_metric(model, table)
        for part in exceeded:
            less = {name: 0.8 * weight for name, weight in getattr(metric, part).items()}
            exceeded[part] += excess(model, metric.with_params(**{part: less}), table, rng) > 1e-6
    assert min(exceeded.values()) >= 2, exceeded


@pytest.mark.parametrize("indicator", [False, True])
def test_weights_follow_the_formula(indicator):
    # A coefficient of 0.2 per year, ages 20 to 60, 30 for a blank, and 0.5 more for its absence.
    table = pd.DataFrame({"age": [20.0, 60.0, np.nan, 30.0, 30.0, 30.0], "hours": [1.0, 2, 3, 4, 5, 6]})
    imputer = SimpleImputer(strategy="most_frequent", add_indicator=indicator)
    model = make_pipeline(imputer, LogisticRegression()).fit(table, [0, 1, 0, 1, 0, 1])
    model[-1].coef_ = np.array([[0.2, 0.0, 0.5][: 2 + indicator]])
    metric = minimal_metric(model, table)
    assert dict(metric.numeric) == pytest.approx({"age": 0.05, "hours": 0.0})
    farthest = 0.2 * 30 - 0.5 * indicator if indicator else 0.2 * 30  # from 60 to a blank, which counts as 30
    # tanh(6 / 4) = 0.905; half of what the column can make is 0.05 * 40 / 2 = 1.
    assert metric.missing["age"] == 1.0
    model[-1].coef_ *= 0.1
    metric = minimal_metric(model, table)
    assert metric.missing["age"] == pytest.approx(max(np.tanh(farthest / 40), 0.005 * 20))
    probabilities = expit(np.array([-0.3, 0.3]) * (1 if not indicator else 5.5 / 6))
    assert np.tanh(farthest / 40) == pytest.approx(np.ptp(probabilities))  # reached about a score of 0


def test_without_people_nothing_is_known_of_how_far_a_blank_is():
    table, y = people()
    numbers = table[["age", "income"]]
    model = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()).fit(numbers, y)
    assert minimal_metric(model).missing == {"age": 1.0, "income": 1.0}
    some = minimal_metric(model, numbers[:1].assign(income=np.nan))
    assert some.missing["income"] == 1.0
    assert some.missing["age"] < 1
    assert minimal_metric(model, numbers).numeric == minimal_metric(model).numeric


def test_numbers_of_regressions_are_shares_of_the_range():
    table, _ = people()
    numbers = table[["age", "income"]]
    y = 2 * numbers.fillna(30).sum(axis=1).to_numpy()
    model = make_pipeline(SimpleImputer(strategy="constant", fill_value=30), LinearRegression()).fit(numbers, y)
    wide = (0.0, 2 * (y.max() - y.min()))
    metric = minimal_metric(model, numbers, output_range=wide)
    farthest = np.abs(2 * (numbers - 30)).max() / wide[1]
    assert dict(metric.missing) == pytest.approx(dict(farthest))
    assert minimal_metric(model, output_range=wide).missing == {"age": 1.0, "income": 1.0}
    for given in (None, numbers):
        with pytest.raises(ValueError, match=r"missing.* Give output_range"):
            minimal_metric(model, given)


def test_a_blank_alone_may_matter():
    table = pd.DataFrame({"age": [20.0, 60.0, np.nan, 30.0], "hours": [1.0, 2, 3, 4]})
    model = make_pipeline(SimpleImputer(add_indicator=True), LogisticRegression()).fit(table, [0, 1, 0, 1])
    model[-1].coef_ = np.array([[0.0, 0.1, 2.0]])
    metric = minimal_metric(model, table)
    assert metric(table.iloc[[0]], table.iloc[[0]].assign(age=np.nan))[0] == pytest.approx(np.tanh(2 / 4))
    assert metric(table.iloc[[0]], table.iloc[[0]].assign(age=60))[0] <= 1e-9  # as good as nothing


def test_a_missing_category_is_one_more_level():
    table = pd.DataFrame({"job": ["a", "b", np.nan, "a"], "age": [20.0, 60.0, 30.0, 40.0]})
    coded = make_pipeline(SimpleImputer(strategy="most_frequent", add_indicator=True), OneHotEncoder(drop="first"))
    columns = make_column_transformer((coded, ["job"]), ("passthrough", ["age"]))
    model = make_pipeline(columns, LogisticRegression()).fit(table, [0, 1, 0, 1])
    for job, flag, largest in ((0.5, 2.0, 2.0), (0.5, -2.0, 2.5), (3.0, 2.0, 3.0)):  # "a" is 0, and fills the blank
        model[-1].coef_ = np.array([[job, flag, 0.1]])
        metric = minimal_metric(model, table)
        assert metric.categorical["job"] == pytest.approx(np.tanh(largest / 4))
        assert not metric.missing  # age has no imputer


def test_what_cannot_be_read_behind_an_imputer_is_refused():
    table, y = people()
    numbers = table[["age", "income"]]
    for step in (KNNImputer(), SimpleImputer(missing_values=0), SimpleImputer(missing_values=40.0)):
        given = numbers.fillna(1.0)
        with pytest.raises(UnprovableError, match="estimate_minimal_metric"):
            minimal_metric(make_pipeline(step, LogisticRegression()).fit(given, y))


def test_arrays_have_weights_only_and_their_blanks_are_refused():
    table, y = people()
    rows = table[["age", "income"]].to_numpy()
    model = make_pipeline(SimpleImputer(), LogisticRegression()).fit(rows, y)
    metric = minimal_metric(model, rows)
    assert isinstance(metric, WeightedLp)
    with pytest.raises(ValueError, match="must be finite"):
        metric(rows, rows[:1])


def test_an_empty_column_is_imputed_as_the_imputer_does():
    table, y = people()
    numbers = table[["age", "income"]].assign(empty=np.nan)
    for keep in (False, True):
        imputer = SimpleImputer(keep_empty_features=keep, add_indicator=True)
        model = make_pipeline(imputer, StandardScaler(), LogisticRegression()).fit(numbers, y)
        metric = minimal_metric(model, numbers)
        assert metric.numeric["empty"] == 0
        assert audit(model, numbers, metric).n_violations == 0


def test_a_table_has_a_table_metric():
    table, y = people()
    numbers = table[["age", "income"]].fillna(1.0)
    metric = minimal_metric(LogisticRegression().fit(numbers, y))
    assert isinstance(metric, TableMetric)
    assert list(metric.numeric) == ["age", "income"]
    assert not metric.missing
    assert isinstance(minimal_metric(LogisticRegression().fit(numbers.to_numpy(), y)), WeightedLp)


def test_a_card_within_the_metric_uses_columns_that_have_blanks():
    table, y = people(n=2000)
    numbers = table[["age", "income"]]
    model = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler(), LogisticRegression()).fit(numbers, y)
    metric = minimal_metric(model, numbers)
    card = AdditiveClassifier(metric, penalty=1e-4).fit(numbers, y)
    logistic = model.predict_proba(numbers)[:, 1]
    assert np.corrcoef(card.predict_proba(numbers)[:, 1], logistic)[0, 1] > 0.95
