"""Metrics read off models of tables."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from likewise import AdditiveClassifier, TableMetric, WeightedLp, audit, estimate_minimal_metric, minimal_metric
from likewise.datasets import load_mortgages


def make_table(n=300, seed=0, holes=0.0):
    rng = np.random.default_rng(seed)
    income = rng.lognormal(8, 0.5, n).round(2)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 70, n),
            "region": rng.choice(["north", "south", "east"], n),
            "income": np.where(rng.random(n) < holes, np.nan, income),
            "owner": rng.random(n) < 0.5,
            "race": pd.Categorical(rng.choice(["x", "y"], n)),
        }
    )


X = make_table()
Y = (X.age > 40) ^ (X.region == "north") ^ (X.race == "x")


def boosted(X, y):
    encode = make_column_transformer((OrdinalEncoder(), ["region", "race"]), remainder="passthrough")
    return make_pipeline(encode, HistGradientBoostingClassifier(max_iter=20, random_state=0)).fit(X, y)


def shrunk(metric):
    """The metric, once per positive weight, with that weight a little lower."""
    for part in ("numeric", "categorical", "missing"):
        for name, weight in getattr(metric, part).items():
            if weight > 1e-8:
                parts = {k: dict(getattr(metric, k)) for k in ("numeric", "categorical", "missing")}
                parts[part][name] = 0.99 * weight
                parts["missing"] = parts["missing"] or "refuse"
                yield TableMetric(**parts)


@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_no_pair_exceeds_and_no_weight_can_be_lowered(holes):
    people = make_table(holes=holes)
    model = boosted(people, Y)
    metric = estimate_minimal_metric(model, people, exchange=False).metric
    assert list(metric.numeric) == ["age", "income"]
    assert list(metric.categorical) == ["region", "owner", "race"]
    assert list(metric.missing) == (["income"] if holes else [])
    assert audit(model, people, metric).n_violations == 0
    smaller = list(shrunk(metric))
    assert len(smaller) >= 4
    half = metric.numeric["income"] * np.ptp(people["income"].dropna()) / 2
    for less in smaller:  # a blank weighs no less than half of what its column can make
        cut = less.missing.get("income", 1.0) < min(1.0, half)
        assert cut or audit(model, people, less).n_violations > 0


def with_needed_pairs(model, people, free):
    """People around a score of 0, who differ in one column each: those who force the exact weights.

    The column `free` is used to move scores.
    """
    probability = model.predict_proba(people)[:, 1]
    step = people.assign(**{free: people[free] + 1})
    slope = float(np.median(logit(model, step) - np.log(probability / (1 - probability))))
    pairs = []
    for name in people.columns:
        numeric = pd.api.types.is_float_dtype(people[name])
        base = people.iloc[[0]]
        values = [base[name].iloc[0]] if numeric else list(people[name].unique())
        rows = pd.concat([base.assign(**{name: value}) for value in values], ignore_index=True)
        scores = logit(model, rows)
        lo, hi = rows.iloc[[scores.argmin()]], rows.iloc[[scores.argmax()]]
        if numeric:
            effect = float((logit(model, base.assign(**{name: base[name] + 1})) - logit(model, base))[0])
            hi = base.assign(**{name: base[name] + 0.05 / effect})
        centre = (logit(model, lo) + logit(model, hi))[0] / 2 / slope
        pairs += [row.assign(**{free: row[free] - centre}) for row in (lo, hi)]
    return pd.concat([people, *pairs], ignore_index=True).astype(people.dtypes)


def logit(model, people):
    p = model.predict_proba(people)
    return np.log(p[:, 1] / p[:, 0])


def test_a_logistic_pipeline_has_its_exact_metric_where_the_needed_people_are_there():
    bunch = load_mortgages()
    whole = bunch.data.notna().all(axis=1)
    people, y = bunch.data[whole][::3].reset_index(drop=True), bunch.target[whole][::3]
    text = list(people.select_dtypes("category").columns)
    encode = make_column_transformer((OneHotEncoder(drop="if_binary"), text), remainder=StandardScaler())
    model = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(people, y)
    exact = minimal_metric(model)
    metric = estimate_minimal_metric(model, with_needed_pairs(model, people, "obligations")).metric
    assert isinstance(metric, TableMetric)
    for part in ("numeric", "categorical"):
        expected, found = getattr(exact, part), getattr(metric, part)
        assert set(expected) == set(found)
        assert {name: found[name] for name in expected} == pytest.approx(dict(expected), rel=0.01)
    without = estimate_minimal_metric(model, people, exchange=False).metric  # control: smaller weights
    assert sum(without.categorical.values()) < 0.99 * sum(exact.categorical.values())


def test_kinds_of_columns_follow_their_types_or_are_given():
    people = pd.DataFrame({"code": [1, 2, 3], "word": ["a", "b", "a"], "n": [0.0, 0.0, 1.0]})
    assert list(estimate_minimal_metric(None, people, predictions=[0, 0.1, 0.3]).metric.categorical) == ["word"]
    given = estimate_minimal_metric(None, people, predictions=[0, 0.1, 0.3], categorical=["code", "word"]).metric
    assert (list(given.numeric), list(given.categorical)) == (["n"], ["code", "word"])
    numbers = people[["code", "n"]]
    assert list(estimate_minimal_metric(None, numbers, predictions=[0, 0.1, 0.3]).metric.numeric) == ["code", "n"]
    assert isinstance(
        estimate_minimal_metric(None, numbers, predictions=[0, 0.1, 0.3], categorical=[]).metric, TableMetric
    )


def test_other_tables_give_the_same():
    model = boosted(X, Y)
    assert estimate_minimal_metric(model, pl.from_pandas(X)).metric == estimate_minimal_metric(model, X).metric


def test_names_of_columns_are_kept_as_given():
    people = pd.DataFrame({1: [30, 30, 40], 0: ["x", "y", "y"], "job": ["a", "a", "a"]})
    scores = [0.1, 0.3, 0.8]
    result = estimate_minimal_metric(None, people, predictions=scores)
    assert dict(result.metric.numeric) == {1: pytest.approx(0.05)}
    assert dict(result.metric.categorical) == {0: pytest.approx(0.2), "job": 0}
    assert audit(None, people, result.metric, predictions=scores).n_violations == 0
    assert result.active_pairs["forces"].tolist() == ["1", "0"]
    # A number that is a name is that column, and not the one at this position.
    fixed = estimate_minimal_metric(None, people, predictions=scores, fixed={0: 0.25}).metric
    assert fixed.categorical[0] == 0.25
    numbers = estimate_minimal_metric(None, people[[1]][1:], predictions=scores[1:]).metric
    assert list(numbers.numeric) == [1]


def test_weights_can_be_fixed_by_name_and_impossible_ones_name_the_pairs():
    people = pd.DataFrame({"age": [30, 30, 40], "race": ["x", "y", "y"], "job": ["a", "a", "b"]})
    with pytest.raises(ValueError, match=r"rows 0 and 1 \(outputs differ by 0.4; race: x / y\)"):
        estimate_minimal_metric(None, people, predictions=[0.1, 0.5, 0.5], fixed={"race": 0})
    fixed = estimate_minimal_metric(None, people, predictions=[0.1, 0.1, 0.5], fixed={"race": 0, "age": 0.0}).metric
    assert dict(fixed.categorical) == {"race": 0, "job": pytest.approx(0.4)}
    bounded = estimate_minimal_metric(
        None, people, predictions=[0.1, 0.1, 0.5], upper={"age": 0.03}, fixed={"race": 0}
    ).metric
    assert bounded.numeric["age"] <= 0.03
    assert 10 * bounded.numeric["age"] + bounded.categorical["job"] == pytest.approx(0.4)


def test_absence_alone_can_force_a_weight_and_zero_forbids_it():
    people = pd.DataFrame({"income": [1.0, 2.0, None], "job": ["a", "a", "a"]})
    metric = estimate_minimal_metric(None, people, predictions=[0.2, 0.2, 0.5]).metric
    assert metric.missing == {"income": pytest.approx(0.3)}
    assert 0 < metric.numeric["income"] <= 1e-9  # a weight of 0 would silence its absence too
    assert audit(None, people, metric, predictions=[0.2, 0.2, 0.5]).n_violations == 0
    with pytest.raises(ValueError, match="income: 1 / missing"):
        estimate_minimal_metric(None, people, predictions=[0.2, 0.2, 0.5], fixed={"income": 0})


def test_regressors_of_tables_need_a_range():
    encode = make_column_transformer((OneHotEncoder(), ["region", "race"]), remainder="passthrough")
    model = make_pipeline(encode, RandomForestRegressor(5, random_state=0)).fit(X, 1000 * Y)
    with pytest.raises(ValueError, match="give output_range="):
        estimate_minimal_metric(lambda rows: 1000.0 * (rows["race"] == "x"), X[["race", "owner"]])
    metric = estimate_minimal_metric(model, X, output_range=(0, 1000)).metric
    assert audit(model, X, metric, output_range=(0, 1000)).n_violations == 0


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"p": 2}, ValueError, "p must be 1 for a table with categories, ordered or not, or missing numbers; got 2"),
        ({"categorical": ["town"]}, ValueError, r"categorical must list columns of X, .*; got \['town'\]"),
        ({"categorical": "race"}, ValueError, "categorical must list columns of X"),
        ({"X": np.zeros((3, 2)), "categorical": [0]}, TypeError, "X must be a table; got ndarray"),
        ({"fixed": {"race": 2}}, ValueError, "fixed must be at most 1 for categories; got 2 for 'race'"),
        ({"fixed": {"town": 0}}, ValueError, "fixed must name features of X"),
        (
            {"X": pd.DataFrame({"day": pd.to_datetime(["2020", "2021", "2022"]), "race": "x"})},
            ValueError,
            "'day' holds",
        ),
    ],
)
def test_bad_input_gives_one_clear_error(change, error, message):
    people = pd.DataFrame({"age": [30, 30, 40], "race": ["x", "y", "y"]})
    with pytest.raises(error, match=message):
        estimate_minimal_metric(None, **{"X": people, "predictions": [0.1, 0.2, 0.3]} | change)


BLANKS = np.random.default_rng(5).random(300) < 0.01


def credit():
    """People with blanks in 1% of their income, and scores that hardly tell a blank from the average income."""
    rng = np.random.default_rng(4)
    people = pd.DataFrame({"income": rng.uniform(0, 100, 300).round(), "age": rng.uniform(20, 70, 300).round()})
    people["income"] = people["income"].where(~BLANKS)
    score = 0.003 * people["income"].fillna(50) + 0.004 * people["age"]
    return people, score.to_numpy()


def test_a_blank_weighs_at_least_half_of_what_its_column_can_make():
    people, scores = credit()
    found = estimate_minimal_metric(None, people, predictions=scores)
    own = found.metric.numeric["income"] * np.ptp(people["income"].dropna())
    assert found.metric.missing["income"] >= own / 2 > 0.1
    assert audit(None, people, found.metric, predictions=scores).n_violations == 0
    some = found.active_pairs
    np.testing.assert_allclose(some["difference"], some["distance"], atol=1e-6)
    # Where the people force less, it is said.
    alike = people.assign(income=people["income"].where(people["income"].between(49, 51) | ~BLANKS))
    quiet = alike.drop_duplicates("age").assign(age=50.0).drop_duplicates("income")
    flat = estimate_minimal_metric(None, quiet, predictions=0.003 * quiet["income"].fillna(50).to_numpy())
    assert flat.metric.missing["income"] == pytest.approx(0.0015 * np.ptp(quiet["income"].dropna()), rel=0.2)


def test_that_a_blank_was_given_more_than_these_people_force_is_said():
    # Two people with the number and one without, whose score is that of one of them: nothing forces the blank.
    people = pd.DataFrame({"income": [0.0, 100.0, np.nan], "age": [30.0, 30.0, 60.0]})
    found = estimate_minimal_metric(None, people, predictions=[0.1, 0.5, 0.3])
    assert found.metric.numeric["income"] == pytest.approx(0.004)
    assert found.metric.missing["income"] == pytest.approx(0.2)
    assert found.notes == (
        "A blank in 'income' weighs 0.2, half the column's largest distance here. The data require only 0, which would "
        "cap the column's effect at 0.",
    )
    jump = pd.DataFrame({"income": [0.0, 1.0, np.nan, 100.0], "age": [30.0, 30.0, 60.0, 30.0]})
    steep = estimate_minimal_metric(None, jump, predictions=[0.1, 0.5, 0.3, 0.3])
    assert "A blank in 'income' weighs 1, the maximum. The data require only 0, " in steep.notes[0]
    alike = people.assign(age=30.0)  # whose absence has to explain a difference
    assert estimate_minimal_metric(None, alike, predictions=[0.1, 0.2, 0.9]).notes == ()


def test_a_card_keeps_the_points_of_a_column_with_blanks():
    """Control: with the weight that the people force, the card may not use the column."""
    rng = np.random.default_rng(6)
    people = pd.DataFrame({"income": rng.uniform(0, 100, 1500).round(), "age": rng.uniform(20, 70, 1500).round()})
    chance = 1 / (1 + np.exp(-0.1 * (people["income"] - 50)))
    outcome = rng.random(1500) < chance
    people["income"] = people["income"].where(rng.random(1500) > 0.01)
    found = estimate_minimal_metric(
        None, people[:400], predictions=np.where(people["income"].isna(), 0.5, chance)[:400]
    )
    for metric, points in ((found.metric, 1.0), (found.metric.with_params(missing={"income": 0.0}), 0.0)):
        card = AdditiveClassifier(metric, penalty=1e-4).fit(people, outcome)
        ends = pd.DataFrame({"income": [0.0, 100.0], "age": [40.0, 40.0]})
        low, high = card.predict_proba(ends)[:, 1]
        assert (high - low > 0.9) == bool(points)
        assert (high == low) == (not points)


def test_a_column_of_weight_0_keeps_a_weight_for_its_blanks():
    people, scores = credit()
    found = estimate_minimal_metric(None, people, predictions=0.0 * scores + 0.01 * people["age"])
    assert found.metric.numeric["income"] == 0
    assert found.not_forced == ("income",)
    raised = found.metric.with_params(numeric={**found.metric.numeric, "income": 0.01})
    assert raised.missing["income"] == 1.0


def test_a_weight_of_0_is_not_called_unused():
    """Being foreign goes with few years and makes up for them: no pair needs it, and exchanging it moves scores."""
    rng = np.random.default_rng(7)
    foreign = rng.random(200) < 0.3
    people = pd.DataFrame({"foreign": np.where(foreign, "yes", "no"), "years": np.where(foreign, 2.0, 9.0)})
    people["years"] += rng.integers(0, 3, 200)
    model = lambda X: 0.2 + 0.22 * (X["foreign"] == "yes") + 0.03 * X["years"]  # noqa: E731
    found = estimate_minimal_metric(model, people, exchange=False)
    assert found.metric.categorical["foreign"] == 0
    exchanged = people.assign(foreign=people["foreign"].map({"yes": "no", "no": "yes"}))
    assert np.abs(model(people) - model(exchanged)).min() == pytest.approx(0.22)
    assert found.not_forced == ("foreign",)
    assert found.describe().set_index("column")["one point"]["foreign"] == "not forced by these people"
    assert "not forced by these people: foreign" in repr(found)
    struck = estimate_minimal_metric(model, people, fixed={"foreign": 0})
    asked = estimate_minimal_metric(model, people)
    assert asked.metric.categorical["foreign"] == pytest.approx(0.22)
    assert asked.not_forced == ()
    assert struck.not_forced == ()  # somebody has decided that it must not matter
    assert struck.describe().set_index("column")["one point"]["foreign"] == "must not matter"


def test_that_a_column_can_be_struck_out_does_not_show_that_the_model_ignores_it():
    """`fixed={"race": 0}` succeeds where another column goes with race."""
    people = pd.DataFrame({"race": ["x", "x", "y", "y"], "zip": [1.0, 1.5, 9.0, 9.5]})
    model = lambda X: 0.3 + 0.4 * (X["race"] == "x")  # noqa: E731
    found = estimate_minimal_metric(model, people, fixed={"race": 0})
    assert audit(model, people, found.metric).n_violations == 0
    exchanged = people.assign(race=["y", "y", "x", "x"])
    assert np.abs(model(people) - model(exchanged)).min() == pytest.approx(0.4)


def test_more_people_can_lower_a_weight():
    people = pd.DataFrame({"a": [0.0, 1.0, 0.0, 0.0], "b": [0.0, 1.0, 5.0, 1.0]})
    scores = np.array([0.0, 0.4, 0.0, 0.4])
    few, everyone = (estimate_minimal_metric(None, people[:n], predictions=scores[:n]).metric for n in (3, 4))
    assert dict(few.numeric) == pytest.approx({"a": 0.4, "b": 0.0})
    assert dict(everyone.numeric) == pytest.approx({"a": 0.0, "b": 0.4})  # the last one forces b, which explains all


def test_a_table_of_numbers_has_a_table_metric():
    """For p = 1; for another p, a `WeightedLp` with the names of the columns."""
    people = pd.DataFrame({"a": [0.0, 1.0, 3.0], "b": [0.0, 1.0, 0.0]})
    for p, kind in ((1, TableMetric), (2, WeightedLp)):
        metric = estimate_minimal_metric(None, people, p, predictions=[0.1, 0.3, 0.2]).metric
        assert isinstance(metric, kind)
        assert (list(metric.columns), metric.p) == (["a", "b"], p)
    assert isinstance(estimate_minimal_metric(None, people.to_numpy(), predictions=[0.1, 0.3, 0.2]).metric, WeightedLp)


def test_a_column_that_is_blank_everywhere_is_not_forced():
    X = pd.DataFrame({"income": [1.0, 2.0, 4.0], "bonus": [np.nan] * 3})
    found = estimate_minimal_metric(None, X, predictions=[0.1, 0.2, 0.4])
    assert found.metric.numeric == {"income": pytest.approx(0.1), "bonus": 0.0}
    assert found.not_forced == ("bonus",)
