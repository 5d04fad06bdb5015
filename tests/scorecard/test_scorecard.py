"""What a scorecard says about itself, and its copies in other systems."""

import contextlib
import json
import sqlite3
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from likewise import AdditiveClassifier, AdditiveRegressor, ScorecardDisplay, TableMetric, WeightedLp
from likewise.exceptions import InvalidInputError

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
    assert model.explain(X).drop(columns=["intercept", "log-odds"]).mean().abs().max() < 1e-11


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


def test_reasons_name_what_speaks_for_an_outcome_in_order(model, others):
    for outcome in (0, 1):
        reasons = model.reasons(others, n=3, outcome=outcome)
        points = model.explain(others, outcome=outcome).drop(columns=["intercept", "log-odds"])
        assert list(reasons.columns) == ["outcome", "reason 1", "reason 2", "reason 3"]
        assert list(reasons.index) == list(others.index)
        assert (reasons["outcome"] == outcome).all()
        for place in range(20):
            raising = points.iloc[place][points.iloc[place] > 0].sort_values(ascending=False, kind="stable")[:3]
            texts = [reasons.iloc[place][f"reason {k}"] for k in (1, 2, 3)]
            assert [text for text in texts if text] == texts[: len(raising)]  # nothing is made up
            for text, (name, size) in zip(texts, raising.items(), strict=False):
                assert text.startswith(f"{name} is ")
                assert text.endswith(f": {size:+.2f} log-odds of {outcome} against the average person")


def test_without_an_outcome_that_is_explained_which_is_likelier_than_for_the_average_person(model, others):
    """Of the riskiest person, what speaks against them; of the safest, what speaks for them."""
    chosen, h = model.reasons(others)["outcome"], model.predict_proba(others)
    average = 1 / (1 + np.exp(-model.scorer_.model.intercepts[0]))
    assert (chosen == np.where(h[:, 1] >= average, 1, 0)).all()
    assert set(chosen) == {0, 1}
    riskiest = others.iloc[[int(h[:, 1].argmin())]]
    (outcome, first), points = model.reasons(riskiest, n=1).iloc[0], model.explain(riskiest).iloc[0, 1:-1]
    assert outcome == 0
    assert first.startswith(f"{points.idxmin()} is ")
    assert "+" in first
    assert "log-odds of 0" in first


def test_of_outcomes_that_are_equally_likely_the_last_one_is_explained():
    X = pd.DataFrame({"region": ["north", "south"] * 20})
    model = AdditiveClassifier(TableMetric({}, {"region": 0.2}), penalty=0.1).fit(X, ["no", "yes"] * 20)
    stranger = pd.DataFrame({"region": ["abroad"]})  # gets the mean effect, which is 0
    assert model.explain(stranger)["region"].tolist() == [0.0]
    assert model.reasons(stranger)["outcome"].tolist() == ["yes"]


def test_of_several_classes_the_one_with_the_largest_gain_is_explained(others):
    X, y = people()
    labels = np.array(["low", "middle", "high"])[y + (X["age"] > 50)]
    model = AdditiveClassifier(METRIC, penalty=1e-2).fit(X, labels)
    found, h = model.reasons(others, n=2), model.predict_proba(others)
    average = np.exp(model.scorer_.model.intercepts) / np.exp(model.scorer_.model.intercepts).sum()
    assert (found["outcome"] == model.classes_[np.argmax(h / average, axis=1)]).all()
    assert set(found["outcome"]) == {"low", "middle", "high"}
    for label in model.classes_.tolist():
        chosen = model.reasons(others, n=1, outcome=label)
        points = model.explain(others, outcome=label).drop(columns=["intercept", "logit"])
        best = points.idxmax(axis=1)
        assert all(t.startswith(f"{c} is ") for t, c in zip(chosen["reason 1"], best, strict=True) if t)
        assert all(f"logit of {label!r}" in text for text in chosen["reason 1"] if text)


def test_reasons_of_a_prediction_say_higher_or_lower(others):
    X, y = people()
    model = AdditiveRegressor(METRIC, penalty=1e-3).fit(X, 10.0 * y + X["income"])
    found, table = model.reasons(others, n=1), model.explain(others)
    points = table.drop(columns=["intercept", "prediction"])
    higher = table["prediction"] >= model.scorer_.model.intercepts[0]
    assert (found["outcome"] == np.where(higher, "higher", "lower")).all()
    for outcome, pick, sign in (("higher", "idxmax", "+"), ("lower", "idxmin", "-")):
        text = model.reasons(others, n=1, outcome=outcome).iloc[0]["reason 1"]
        name = getattr(points.iloc[0], pick)()
        assert text.startswith(f"{name} is ")
        assert text.endswith(f": {points.iloc[0][name]:+.2f} against the average person")
        assert text.split(": ")[1].startswith(sign)
    with pytest.raises(ValueError, match="outcome must be 'higher', 'lower' or None for regression"):
        model.reasons(others, outcome=1)


def test_reasons_say_units_missing_numbers_and_unseen_categories(model):
    X = people()[0].head(1).assign(income=1.0, debt=np.nan, region="abroad")
    words = " ".join(model.reasons(X, n=6, outcome=0).iloc[0].astype(str))
    assert "income is $1,000:" in words
    assert "debt is not known:" in words
    assert "abroad" not in words


def test_allowed_from_a_missing_number_is_what_its_weight_allows():
    """4 times the missing weight in log-odds; the width of the range times it for regression."""
    X, y = people()
    for metric, weight in ((METRIC, 0.2), (METRIC.with_params(missing={"debt": 0.05}), 0.05)):
        for model, unit in (
            (AdditiveClassifier(metric, penalty=1e-4).fit(X, y), 4.0),
            (AdditiveRegressor(metric, penalty=1e-4, output_range=(0, 50)).fit(X, 10.0 * y), 50.0),
        ):
            card = model.scorecard()
            debt = card[card["column"] == "debt"]
            assert debt[debt["range"] == "missing"]["allowed"].tolist() == [pytest.approx(unit * weight)]
            assert (debt[debt["range"] != "missing"]["allowed"] <= 2 * unit * weight + 1e-12).all()
            region = card[card["column"] == "region"]
            np.testing.assert_allclose(region["allowed"], unit * 0.1)
            income = card[card["column"] == "income"]
            widths = [float(b) - float(a) for a, b in income["range"].str.split(" to ")]
            np.testing.assert_allclose(income["allowed"], unit * 0.02 * np.array(widths), rtol=1e-4)


def test_a_missing_weight_that_holds_a_column_back_is_said():
    X, y = people()
    strict = METRIC.with_params(missing={"debt": 0.01})
    card = AdditiveClassifier(strict, penalty=1e-4).fit(X, y).scorecard()
    missing = card[(card["column"] == "debt") & (card["range"] == "missing")]
    assert missing["binds"].tolist() == [True]
    assert card._repr_html_().count("held back by missing weight") == 1
    loose = AdditiveClassifier(METRIC.with_params(missing={"debt": 1.0}), penalty=1e-4).fit(X, y).scorecard()
    assert not loose[(loose["column"] == "debt") & (loose["range"] == "missing")]["binds"].any()
    assert "held back by missing weight" not in loose._repr_html_()


def test_ranges_of_large_numbers_are_told_apart():
    X = pd.DataFrame({"when": 1e9 + np.arange(60.0)})
    model = AdditiveClassifier(WeightedLp({"when": 0.01}), penalty=1e-3, max_knots=4).fit(X, np.arange(60) // 30)
    ranges = model.scorecard()["range"]
    assert ranges.iloc[0].startswith("1000000000 to ")
    assert ranges.iloc[-1].endswith(" to 1000000059")


@pytest.mark.parametrize(
    ("categories", "words"),
    [
        ([b"a", b"b"], "to_sql needs categories that are text"),
        (["a", "b\0"], "has a zero byte"),
        ([0.1, 0.2], "numbers that are exact in single precision"),
        ([2**53 + 1, 1], "numbers that are exact in single precision"),
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
            known = {level["value"]: level["points"] for level in entry["categories"]}
            total += [known.get(None if pd.isna(v) else v, entry["unseen"]) for v in column.astype(object)]
    np.testing.assert_allclose(1 / (1 + np.exp(-total)), model.predict_proba(others)[:, 1], rtol=0, atol=1e-12)
    assert model.guarantee_.statement.startswith(card["guarantee"]["statement"])
    assert card["guarantee"]["statement"].endswith("differ by at most D(x, x') in total variation.")
    weights = {column["column"]: column["weight"] for column in card["metric"]["columns"]}
    assert weights == {**model.metric.numeric, **model.metric.categorical}
    assert card["outcome"] == 1
    other = json.loads(model.to_json(outcome=0))
    assert other["outcome"] == 0
    assert other["intercept"] == -card["intercept"]
    for one, opposite in zip(card["columns"], other["columns"], strict=True):
        if "knots" in one:
            assert opposite["points"] == [-p for p in one["points"]]
            assert opposite["missing"] == (None if one["missing"] is None else -one["missing"])
        else:
            assert [level["points"] for level in opposite["categories"]] == [-c["points"] for c in one["categories"]]
            assert opposite["unseen"] == -one["unseen"]


def test_json_of_several_classes_has_the_points_of_the_class_asked_for(others):
    X, y = people()
    model = AdditiveClassifier(METRIC, penalty=1e-2).fit(X, y + (X["age"] > 50))
    for k in (0, 1, 2):
        card = json.loads(model.to_json(outcome=k))
        assert card["outcome"] == k
        assert card["intercept"] == model.scorer_.model.intercepts[k]
        assert card["columns"][0]["points"] == model.scorer_.model.shapes[0].values[k].tolist()


def test_json_and_explanations_tell_all_categories_apart_that_the_model_does():
    """1 and "1" are two categories, or one that both belong to: the JSON says what the model does."""
    values = np.empty(90, dtype=object)
    values[:] = [1, "1", True, None, 2.5, "b"] * 15
    X = pd.DataFrame({"code": pd.Series(values, dtype=object)})
    model = AdditiveClassifier(TableMetric({}, {"code": 0.5}), penalty=0.1).fit(X, np.arange(90) % 5 % 2)
    entry = json.loads(model.to_json())["columns"][0]
    listed = [(type(level["value"]).__name__, level["value"]) for level in entry["categories"]]
    assert len(set(listed)) == len(listed) == model.scorer_.model.shapes[0].values.shape[1]
    points = [level["points"] for level in entry["categories"]]
    assert set(points) == set(model.explain(X)["code"])


def test_decimals_are_numbers_in_json():
    values = np.empty(60, dtype=object)
    values[:] = [Decimal("1.5"), Decimal(2)] * 30
    X = pd.DataFrame({"code": pd.Series(values, dtype=object)})
    model = AdditiveClassifier(TableMetric({}, {"code": 0.5}), penalty=0.1).fit(X, np.arange(60) % 2)
    levels = json.loads(model.to_json())["columns"][0]["categories"]
    assert {level["value"] for level in levels} == {1.5, 2}


@pytest.mark.parametrize("kind", ["number", "code", "refused"])
def test_duckdb_takes_nan_for_missing(kind):
    duckdb = pytest.importorskip("duckdb")
    rng = np.random.default_rng(0)
    x = rng.normal(size=200) if kind != "code" else rng.integers(0, 3, 200).astype(float)
    y = (x > 0.5).astype(int)
    x[::10] = np.nan
    y[::10] = np.arange(20) % 10 == 0
    X = pd.DataFrame({"x": x})
    metric = TableMetric({"x": 0.5}, missing={"x": 0.5}) if kind == "number" else TableMetric({}, {"x": 0.5})
    if kind == "refused":
        X, y, metric = X.dropna(), y[~np.isnan(x)], TableMetric({"x": 0.5})
    model = AdditiveClassifier(metric, penalty=1e-3).fit(X, y)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE people (place INTEGER, x DOUBLE)")
        rows = [[0, float("nan")], [1, None], *([2 + i, v] for i, v in enumerate([-9.0, 0.0, 1.0, 2.0, 9.0]))]
        connection.executemany("INSERT INTO people VALUES (?, ?)", rows)
        assert connection.execute("SELECT COUNT(*) FROM people WHERE x IS NULL").fetchone() == (1,)  # NaN is none
        found = [v for (v,) in connection.execute(f"SELECT {model.to_sql()} FROM people ORDER BY place").fetchall()]
    if kind == "refused":
        assert found[:2] == [None, None]
        assert None not in found[2:]
        return
    expected = model.predict_proba(pd.DataFrame({"x": [row[1] for row in rows]}, dtype=float))[:, 1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    assert abs(found[0] - found[-1]) > 0.01  # the control: a missing number is not the largest


def test_csv_is_the_scorecard(model, tmp_path):
    model.to_csv(tmp_path / "card.csv")
    pd.testing.assert_frame_equal(
        pd.read_csv(tmp_path / "card.csv"), model.scorecard(), check_dtype=False, check_frame_type=False
    )


def test_a_spreadsheet_takes_no_category_for_a_formula(tmp_path):
    values = ["=HYPERLINK(1)", "+1+1", "-2+3", "@SUM(A1)", "plain", "-5"] * 10
    X = pd.DataFrame({"=code": values, "x": np.linspace(-3, -1, 60)})
    model = AdditiveClassifier(TableMetric({"x": 0.1}, {"=code": 0.5}), penalty=0.1).fit(X, np.arange(60) % 2)
    model.to_csv(tmp_path / "card.csv")
    text = pd.read_csv(tmp_path / "card.csv", dtype=str)
    assert {"'=HYPERLINK(1)", "'+1+1", "'-2+3", "'@SUM(A1)", "plain", "-5"} <= set(text["range"])
    assert set(text["column"]) == {"'=code", "x"}
    assert text["range"].str.startswith("-3 to ").any()  # a range of numbers is no formula
    pd.testing.assert_series_equal(text["points"].astype(float), model.scorecard()["points"])


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
    X = np.arange(40.0)[:, None]
    display = ScorecardDisplay.from_estimator(AdditiveRegressor(WeightedLp([0.01])).fit(X, X[:, 0]))
    assert "units of the output" in display.figure_.get_supylabel()
    plt.close(display.figure_)
    with pytest.raises(TypeError, match="must be a fitted AdditiveClassifier"):
        ScorecardDisplay.from_estimator(METRIC)


def test_arrays_have_scorecards_too():
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = AdditiveRegressor(WeightedLp([0.1, 0.2]), penalty=1e-3).fit(X, X.sum(axis=1))
    assert set(model.scorecard()["column"]) == {"feature 0", "feature 1"}
    table = model.explain(X)
    np.testing.assert_array_equal(np.clip(table["prediction"], *model.output_range_), model.predict(X))
    assert model.reasons(X, n=1).iloc[int(X[:, 1].argmin())]["reason 1"].startswith("feature 1 is -")


def test_bad_questions_are_refused(model, others):
    with pytest.raises(ValueError, match="outcome must be one of the classes"):
        model.explain(others, outcome="yes")
    with pytest.raises(ValueError, match="n must be a whole number"):
        model.reasons(others, n=0)


def test_names_that_differ_in_case_alone_are_refused_in_sql():
    """A database would take both for the first: quotes do not tell them apart in SQLite, DuckDB or MySQL."""
    X = pd.DataFrame({"Age": np.arange(40.0), "age": np.arange(40.0)[::-1] % 7, "other": np.arange(40.0) % 3})

    def fitted(table):
        return AdditiveClassifier(WeightedLp(dict.fromkeys(table, 0.02))).fit(table, np.arange(40) % 2)

    with pytest.raises(
        InvalidInputError, match=r"differ in more than upper and lower case; got \['Age', 'age', 'other"
    ):
        fitted(X).to_sql()
    assert '"years"' in fitted(X.rename(columns={"age": "years"})).to_sql()
