"""What a scorecard says about itself, and its copies in other systems."""

import contextlib
import json
import sqlite3
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from likewise import AdditiveClassifier, AdditiveRegressor, ScorecardDisplay, TableMetric, WeightedLp

METRIC = TableMetric(
    {"income": 0.02, "age": 0.01, "school": 0.05, "debt": 0.01, "shoe size": 0.0},
    {"region": 0.1, "owner's": 0.05, "race": 0.0},
    missing={"debt": 0.2},
    units={"income": "$1000", "age": "years"},
)


def people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    school = pd.Categorical.from_codes(rng.integers(0, 3, n), ["primary", "secondary", "university"], ordered=True)
    table = pd.DataFrame(
        {
            "income": rng.gamma(3, 15, n).round(),
            "age": rng.uniform(18, 80, n),
            "school": school,
            "debt": np.where(rng.random(n) < 0.2, np.nan, rng.gamma(2, 10, n)),
            "shoe size": rng.normal(40, 3, n),
            "region": rng.choice(["north", "south", "o'west"], n),
            "owner's": rng.random(n) < 0.5,
            "race": rng.choice(["x", "y"], n),
        },
        index=[f"person {i}" for i in range(n)],
    )
    south = table["region"] == "south"
    table.loc[south, "region"] = np.where(rng.random(south.sum()) < 0.1, None, "south")
    score = 0.08 * (table["income"] - 45) + school.codes - 1 - (table["region"] == "o'west")
    score -= 0.03 * table["debt"].fillna(40)
    return table, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int).to_numpy()


@pytest.fixture(scope="module")
def model():
    return AdditiveClassifier(METRIC, penalty=1e-4, monotone={"income": 1}).fit(*people())


@pytest.fixture(scope="module")
def others():
    return people(400, seed=1)[0]


def test_scorecard_lists_what_matters_and_where_the_metric_holds_back(model):
    card = model.scorecard()
    assert list(card.columns) == ["column", "range", "points", "points at end", "allowed", "binds"]
    assert list(card["column"].unique()) == ["income", "age", "school", "debt", "region", "owner's"]
    income = card[card["column"] == "income"]
    assert income["binds"].any()  # the truth is steeper than 4 * 0.02
    assert (income["points at end"] >= income["points"]).all()
    change = (card["points at end"] - card["points"]).abs()
    assert (change <= card["allowed"]).all()
    region = card[card["column"] == "region"]
    assert region["range"].tolist() == ["north", "o'west", "south", "missing", "any other"]
    assert np.ptp(region["points"]) <= region["allowed"].iloc[0] == pytest.approx(0.4)
    assert card[card["column"] == "school"]["range"].tolist()[0].startswith("primary to ")


def test_points_are_centred_on_the_training_people(model):
    X, _ = people()
    assert model.explain(X).drop(columns=["intercept", "log-odds"]).mean().abs().max() < 1e-12


def test_points_add_up_exactly_and_to_the_log_odds(model, others):
    table = model.explain(others)
    assert list(table.index) == list(others.index)
    for order in (1, -1):
        total = np.zeros(len(table))
        for name in table.columns[:-1][::order]:
            total = total + table[name].to_numpy()
        assert (total == table["log-odds"]).all()
    h = model.predict_proba(others)
    np.testing.assert_allclose(table["log-odds"], np.log(h[:, 1] / h[:, 0]), rtol=0, atol=1e-12)
    assert (model.explain(others, outcome=0) == -table).all(axis=None)


def test_points_of_several_classes_are_logits(others):
    X, y = people()
    kinds = y + (X["age"] > 50)
    model = AdditiveClassifier(METRIC, penalty=1e-2).fit(X, kinds)
    logits = np.column_stack([model.explain(others, outcome=k)["logit"] for k in (0, 1, 2)])
    h = model.predict_proba(others)
    np.testing.assert_allclose(np.diff(logits), np.diff(np.log(h)), atol=1e-12)
    assert model.scorecard(outcome=2)["points"].iloc[0] == model.scorer_.model.shapes[0].values[2, 0]


def test_reasons_name_what_lowers_the_score_most_in_order(model, others):
    reasons, points = model.reasons(others, n=3), model.explain(others).drop(columns=["intercept", "log-odds"])
    person = points.iloc[0]
    lowering = person[person < 0].sort_values(kind="stable")
    for k, name in enumerate(lowering.index[:3], 1):
        text = reasons.iloc[0][f"reason {k}"]
        assert text.startswith(f"{name} is ")
        assert f"{lowering[name]:+.2f} log-odds against the average person" in text
    best = model.reasons(others, n=6).iloc[int(points.min(axis=1).argmax())]
    assert (best == "").any()  # where less than n columns lower a score, nothing is made up


def test_reasons_say_units_missing_numbers_and_unseen_categories(model):
    X = people()[0].head(1).assign(income=1.0, debt=np.nan, region="abroad")
    words = " ".join(model.reasons(X, n=6).iloc[0])
    assert "income is $1,000:" in words
    assert "debt is not known:" in words
    assert "region is of a kind that the model has not seen:" not in words or "abroad" not in words


@pytest.mark.parametrize("database", ["duckdb", "sqlite"])
@pytest.mark.parametrize("kind", ["two", "three", "clip", "numbers"])
def test_a_database_computes_the_same_scores(database, kind, others):
    X, y = people()
    rows = others.copy()
    rows.iloc[3, rows.columns.get_loc("region")] = "abroad"
    if kind == "numbers":
        fitted = AdditiveRegressor(METRIC, penalty=1e-3).fit(X, 10.0 * y + X["income"])
        expected = {None: fitted.predict(rows)}
    else:
        labels = y + (X["age"] > 50) if kind == "three" else y
        fitted = AdditiveClassifier(METRIC, penalty=1e-3, link="clip" if kind == "clip" else "logistic").fit(X, labels)
        expected = dict(zip(fitted.classes_.tolist(), fitted.predict_proba(rows).T, strict=True))
    table = rows.astype({"school": object, "region": object}).reset_index(drop=True)
    table["place"] = np.arange(len(table))
    for outcome, values in expected.items():
        query = f"SELECT {fitted.to_sql(outcome)} AS score FROM people ORDER BY place"
        if database == "duckdb":
            duckdb = pytest.importorskip("duckdb")
            with duckdb.connect() as connection:
                connection.register("people", table)
                found = connection.execute(query).fetchnumpy()["score"]
        else:
            with sqlite3.connect(":memory:") as connection:
                table.to_sql("people", connection)
                found = np.array(connection.execute(query).fetchall(), dtype=float)[:, 0]
            connection.close()
        scale = 1 if outcome is not None else np.ptp(fitted.output_range_)
        np.testing.assert_allclose(found / scale, values / scale, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("categories", "words"),
    [
        ([b"a", b"b"], "b'a' has no form in plain SQL"),
        ([(1, 2), (3, 4)], "has no form in plain SQL"),
        (["a", "b\0"], "has no form in plain SQL"),
        ([True, 2], "to_sql needs categories that a database tells apart"),
    ],
)
def test_categories_that_no_database_holds_are_refused_in_sql(categories, words):
    values = np.empty(60, dtype=object)
    values[:] = [categories[i % len(categories)] for i in range(60)]
    X = pd.DataFrame({"code": pd.Series(values, dtype=object)})
    model = AdditiveClassifier(TableMetric({}, {"code": 0.5}), penalty=0.1).fit(X, np.arange(60) % 2)
    with pytest.raises(ValueError, match=words):
        model.to_sql()


@pytest.mark.parametrize("categories", [[Decimal(1), Decimal("2.5")], [np.int8(1), np.int8(2)], [0.0, 1.0]])
def test_categories_that_are_numbers_are_numbers_in_sql(categories):
    values = np.empty(60, dtype=object)
    values[:] = [categories[i % 2] for i in range(60)]
    X = pd.DataFrame({"code": pd.Series(values, dtype=object)})
    model = AdditiveClassifier(TableMetric({}, {"code": 0.5}), penalty=0.1).fit(X, np.arange(60) % 2)
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        X.astype(float).assign(place=range(60)).to_sql("people", connection)
        query = f"SELECT {model.to_sql()} FROM people ORDER BY place"
        found = np.array(connection.execute(query).fetchall(), dtype=float)[:, 0]
    np.testing.assert_allclose(found, model.predict_proba(X)[:, 1], rtol=0, atol=1e-12)
    assert np.ptp(found) > 0.1


def test_sql_without_a_normal_distribution_is_refused():
    model = AdditiveClassifier(METRIC, penalty=1e-2, link="probit").fit(*people())
    with pytest.raises(ValueError, match="to_sql needs the link 'logistic' or 'clip'"):
        model.to_sql()


def test_json_holds_the_whole_model(model, others, tmp_path):
    text = model.to_json(tmp_path / "card.json")
    assert (tmp_path / "card.json").read_text() == text + "\n"
    card = json.loads(text)
    total = np.full(len(others), card["intercept"])
    for entry in card["columns"]:
        column = others[entry["column"]]
        if "knots" in entry:
            numbers = column.cat.codes if "order" in entry else column
            points = np.interp(numbers, entry["knots"], entry["points"])
            total += points if entry["missing"] is None else np.where(column.isna(), entry["missing"], points)
        else:
            known = dict(zip(entry["categories"], entry["points"], strict=True))
            total += [known.get(None if pd.isna(v) else str(v), entry["unseen"]) for v in column.astype(object)]
    np.testing.assert_allclose(1 / (1 + np.exp(-total)), model.predict_proba(others)[:, 1], rtol=0, atol=1e-12)
    assert card["promise"] == model.guarantee_.statement


def test_csv_is_the_scorecard(model, tmp_path):
    model.to_csv(tmp_path / "card.csv")
    pd.testing.assert_frame_equal(
        pd.read_csv(tmp_path / "card.csv"), model.scorecard(), check_dtype=False, check_frame_type=False
    )


def test_display_draws_each_column_that_matters(model):
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    display = ScorecardDisplay.from_estimator(model)
    assert {ax.get_title(loc="left") for ax in display.axes_} == {
        "income",
        "age",
        "school",
        "debt",
        "region",
        "owner's",
    }
    assert "log-odds of 1" in display.figure_.get_supylabel()
    plt.close(display.figure_)
    with pytest.raises(TypeError, match="must be a fitted AdditiveClassifier"):
        ScorecardDisplay.from_estimator(METRIC)


def test_arrays_have_scorecards_too():
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = AdditiveRegressor(WeightedLp([0.1, 0.2]), penalty=1e-3).fit(X, X.sum(axis=1))
    assert set(model.scorecard()["column"]) == {"feature 0", "feature 1"}
    table = model.explain(X)
    np.testing.assert_array_equal(np.clip(table["prediction"], *model.output_range_), model.predict(X))
    assert model.reasons(X, n=1).iloc[int(X[:, 1].argmin()), 0].startswith("feature 1 is -")


def test_bad_questions_are_refused(model, others):
    with pytest.raises(ValueError, match="outcome must be one of the classes"):
        model.explain(others, outcome="yes")
    with pytest.raises(ValueError, match="n must be a whole number"):
        model.reasons(others, n=0)
