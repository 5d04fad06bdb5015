import itertools
import math
import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from likewise import InvalidInputError, SmoothedClassifier, TableMetric, audit
from likewise.inspection.baselines import table_model
from likewise.kernel.columns import UNSEEN
from likewise.kernel.schema import TableEncoder
from likewise.metrics.table import BLANKS_ONLY
from oracle import Described

PEOPLE = pd.DataFrame(
    {
        "age": [30, 41, 55, 30],
        "income": [1500.5, np.nan, 900.0, 1500.5],
        "grade": pd.Categorical(["low", "high", "middle", "low"], categories=["low", "middle", "high"], ordered=True),
        "region": ["north", None, "south", "north"],
        "citizen": [True, False, True, True],
    }
)


def metric(missing="category"):
    return TableMetric(
        numeric={"age": 0.01, "income": 0.0001, "grade": 0.2},
        categorical={"region": 0.3, "citizen": 0.1},
        missing=missing,
    )


def test_distance_follows_the_definition():
    D = metric().pairwise(PEOPLE)
    numbers = 0.01 * 25 + 0.0001 * 600.5 + 0.2 * 1
    assert D[0, 2] == pytest.approx(numbers + 0.3)  # age, income and grade differ, and so does the region
    assert D[0, 3] == 0
    np.testing.assert_allclose(metric()(PEOPLE, PEOPLE.iloc[[0]]), D[:, 0])
    np.testing.assert_allclose(D, D.T)


def test_a_missing_number_is_a_category_of_its_own():
    two = PEOPLE.iloc[[0, 0]].copy()
    two["income"] = [np.nan, 1500.5]
    assert metric()(two[:1], two[1:]).tolist() == [1.0]
    assert metric(missing={"income": 0.4})(two[:1], two[1:]).tolist() == [0.4]
    assert metric()(two[:1], two[:1]).tolist() == [0.0]
    with pytest.raises(
        ValueError, match=r"Column 'income' has missing numbers, which the metric refuses: 1 of 1 rows, .* Impute"
    ):
        metric(missing="refuse")(two[:1], two[1:])


def test_a_column_that_must_not_matter_may_be_missing():
    blind = TableMetric(numeric={"age": 0.1, "income": 0})
    rows = pd.DataFrame({"age": [1, 1], "income": [np.nan, 5.0]})
    assert blind.pairwise(rows).tolist() == [[0, 0], [0, 0]]
    for missing in ("category", {"income": 0.3}):  # not even where a weight is given for its absence
        again = TableMetric(numeric={"age": 0.1, "income": 0}, missing=missing)
        assert again.pairwise(rows).tolist() == [[0, 0], [0, 0]]
        assert again.bind(again.encoder(rows)).missing[1] == 0  # what models and audits go by
        assert audit(None, rows, again, predictions=[0.2, 0.9]).max_excess == pytest.approx(0.7)


def test_a_weight_that_is_raised_from_0_has_the_missing_weight_that_was_given():
    hidden = TableMetric({"age": 0.1, "income": 0}, missing={"income": 0.3})
    rows = pd.DataFrame({"age": [1, 1], "income": [np.nan, 5.0]})
    assert hidden.with_params(numeric={"age": 0.1, "income": 0.01}).pairwise(rows)[0, 1] == 0.3
    estimator = SmoothedClassifier(table_model(rows, "boosting"), metric=hidden)
    estimator.set_params(metric__numeric={"age": 0.1, "income": 0.01})
    assert estimator.metric.pairwise(rows)[0, 1] == 0.3
    again = pickle.loads(pickle.dumps(hidden.scaled(2))).with_params(numeric={"age": 0.1, "income": 0.01})
    assert again.pairwise(rows)[0, 1] == 0.6
    refusing = TableMetric({"age": 0.1, "income": 0}).with_params(numeric={"age": 0.1, "income": 0.01})
    with pytest.raises(ValueError, match="'income' has missing numbers, which the metric refuses"):
        refusing.pairwise(rows)  # nobody has said what a blank weighs


def test_two_numbers_missing_at_once_weigh_both():
    rows = pd.DataFrame({"age": [30.0, np.nan, 30.0], "income": [5.0, np.nan, np.nan], "grade": [1.0, 1.0, 3.0]})
    some = TableMetric({"age": 0.1, "income": 0.01, "grade": 0.25}, missing={"age": 0.3, "income": 0.125})
    expected = [[0, 0.425, 0.625], [0.425, 0, 0.8], [0.625, 0.8, 0]]
    np.testing.assert_allclose(some.pairwise(rows), expected)
    np.testing.assert_allclose(some(rows, rows.iloc[[1, 2, 0]]), [0.425, 0.8, 0.625])


@pytest.mark.parametrize("blank", [None, np.nan, pd.NA])
def test_a_single_person_with_a_missing_category_is_like_one_among_many(blank):
    region = TableMetric(categorical={"region": 0.3})
    everyone = pd.DataFrame({"region": ["north", None, "south"]})
    one = pd.DataFrame({"region": pd.Series([blank], dtype=object)})
    encoder = region.encoder(everyone)
    assert encoder.encode(one).tolist() == [encoder.encode(everyone)[1].tolist()] == [[2.0]]
    assert region.pairwise(one, everyone).tolist() == [[0.3, 0, 0.3]]
    never = region.encoder(everyone.iloc[[0, 2]])  # learned where none was missing: as any value that was not there
    assert never.encode(one).tolist() == never.encode(everyone.iloc[[1, 1]])[:1].tolist() == [[UNSEEN]]


def test_missing_categories_are_equal_to_each_other_only():
    D = TableMetric(categorical={"region": 0.3}).pairwise(pd.DataFrame({"region": ["a", None, np.nan]}))
    np.testing.assert_allclose(D, [[0, 0.3, 0.3], [0.3, 0, 0], [0.3, 0, 0]])


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas])
def test_other_tables_are_accepted(convert):
    plain = PEOPLE.drop(columns="grade")
    some = TableMetric({"age": 0.1, "income": 0.001}, {"region": 0.3, "citizen": 0.1}, missing="category")
    np.testing.assert_allclose(some.pairwise(convert(plain)), some.pairwise(plain))


def test_sparse_columns_are_like_any_other():
    sparse = PEOPLE.assign(age=pd.arrays.SparseArray(PEOPLE["age"].to_numpy(dtype=float)))
    np.testing.assert_array_equal(metric().pairwise(sparse), metric().pairwise(PEOPLE))


def test_scaled_scales_distances_up_to_mismatches_of_one():
    half = metric().scaled(0.5)
    np.testing.assert_allclose(half.pairwise(PEOPLE), metric().pairwise(PEOPLE) / 2)
    assert metric().scaled(100).categorical == {"region": 1.0, "citizen": 1.0}


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0, 20.0])
@pytest.mark.parametrize(
    "shape",
    [
        {"groups": {"job": {"within": 0.3, "groups": [["a", "b"], ["c"]]}}},
        {"distances": {"job": {"a": {"b": 2, "c": 8}, "b": {"c": 7}}}},
    ],
    ids=["groups", "matrix"],
)
def test_scaled_caps_each_pair_of_categories_at_one(shape, factor):
    jobs = pd.DataFrame({"job": ["a", "b", "c", "other", None]})
    plain = TableMetric(categorical={"job": 0.6}, **shape)
    expected = np.minimum(1.0, factor * plain.pairwise(jobs))
    np.testing.assert_allclose(plain.scaled(factor).pairwise(jobs), expected, rtol=1e-15)
    assert plain.bind(plain.encoder(jobs)).caps_at(factor) == (factor > 1)


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize(("mismatch", "blank"), [(0.3, 0.1), (0.1, 0.3), (0.5, 0.5), (0.1, 0)])
def test_a_factor_caps_exactly_where_a_distance_is_not_multiplied(mismatch, blank, factor):
    metric = TableMetric({"age": 0.01}, {"job": mismatch}, missing={"age": blank})
    people = pd.DataFrame({"age": [20.0, np.nan, 20.0], "job": ["x", "x", "y"]})
    before, after = metric.pairwise(people), metric.scaled(factor).pairwise(people)
    singly = [(0, 1), (0, 2)]  # who differ in one thing
    kept = all(after[pair] == pytest.approx(factor * before[pair]) for pair in singly)
    assert metric.bind(metric.encoder(people)).caps_at(factor) is not kept
    assert [after[pair] for pair in singly] == pytest.approx([min(1, factor * before[pair]) for pair in singly])


def test_each_part_of_a_metric_in_odds_is_a_quarter_of_the_logarithm():
    metric = TableMetric.from_odds(
        {"pay": (0.05, 1000), "grade": 0.2},
        {"job": 0.5, "race": 0, "town": 1e9},
        missing={"pay": 0.3},
        order={"grade": ["low", "mid", "high"]},
    )
    one = {"pay": 2000.0, "grade": "low", "job": "x", "race": "a", "town": "t"}
    changes = [({"pay": 3000.0}, 0.05), ({"grade": "mid"}, 0.2), ({"job": "y"}, 0.5), ({"pay": None}, 0.3)]
    for change, share in changes:
        away = Described(metric, list(one)).distance(one, one | change)
        assert float(away) == pytest.approx(math.log1p(share) / 4, rel=1e-9)
    assert Described(metric, list(one)).distance(one, one | {"race": "b"}) == 0
    assert Described(metric, list(one)).distance(one, one | {"town": "u"}) == 1  # nothing is further apart


def test_describe_gives_exchange_rates_in_natural_units():
    rates = TableMetric(
        numeric={
            "income": 0.01 / 4300,
            "wealth": 0.01 / 42.5,
            "loan to price": 0.01 / 0.228,
            "age": 0.01 / 2.1,
            "zip": 0,
        },
        categorical={"race": 0, "region": 0.25},
        units={"income": "$", "wealth": "$1000", "loan to price": "ratio", "age": "years"},
    ).describe()
    assert rates["one point"].tolist() == [
        "$4,300",
        "$42,500",
        "22.8 percentage points",
        "2.1 years",
        "must not matter",
        "must not matter",
        "mismatch = 25 points",
    ]


def test_what_a_point_is_worth_follows_from_distances():
    numeric, units = {"income": 2e-7, "age": 0.0004}, {"income": "$", "age": "years"}
    some = TableMetric(numeric, units=units)
    worth = dict(zip(some.describe()["column"], some.describe()["one point"], strict=True))
    for name, unit in units.items():
        size = float(worth[name].strip("$ years").replace(",", ""))
        rows = pd.DataFrame({"income": [0.0, 0.0], "age": [0.0, 0.0]}).assign(**{name: [0.0, size]})
        assert some.pairwise(rows)[0, 1] == pytest.approx(0.01, rel=5e-3), (name, unit)


def test_metrics_are_values():
    again = pickle.loads(pickle.dumps(metric({"income": 0.4})))
    assert again == metric({"income": 0.4})
    assert hash(again) == hash(metric({"income": 0.4}))
    assert metric() != metric({"income": 0.4})


@pytest.mark.parametrize("p", [2, 1.5, np.inf])
def test_other_exponents_are_refused(p):
    """Distances of a table add up; `WeightedLp` takes every p."""
    with pytest.raises(ValueError, match=r"p must be 1 for a TableMetric, .* WeightedLp keeps every p"):
        TableMetric({"age": 0.1}, p=p)
    with pytest.raises(ValueError, match="p must be 1"):
        metric().with_params(p=p)
    assert metric().with_params(p=1) == metric()


def test_the_words_of_a_metric_have_its_missing_weights():
    numbers, rest = (
        "TableMetric(numeric: age=0.01, income=0.0001, grade=0.2; mismatch: region=0.3, citizen=0.1",
        "; p=1)",
    )
    assert repr(metric(missing="refuse")) == numbers + rest
    assert repr(metric(missing={"income": 0.4})) == f"{numbers}; missing: income=0.4{rest}"
    assert "missing" not in repr(TableMetric({"age": 0.1, "zip": 0}))  # what must not matter is not promised by absence


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"numeric": {"age": -0.2}}, "weights must be non-negative and finite; got -0.2 for 'age'"),
        ({"categorical": {"race": 1.2}}, "categorical weights must be between 0 and 1 .*; got 1.2 for 'race'"),
        ({"categorical": {"race": np.nan}}, "categorical weights must be between 0 and 1"),
        ({"numeric": {"a": 1}, "categorical": {"a": 1}}, "numeric or categorical; 'a' is given as both"),
        ({}, "at least one column"),
        ({"numeric": {"a": 1}, "p": 0.5}, "p must be a number >= 1"),
        ({"numeric": {"a": 1}, "missing": "ignore"}, "missing must be 'refuse', 'category' or a mapping"),
        ({"numeric": {"a": 1}, "missing": {"b": 1}}, "missing must name columns of the metric; it has no 'b'"),
        ({"numeric": {"a": 1}, "missing": {"a": 2}}, "missing weights must be between 0 and 1"),
        ({"numeric": {"a": 1}, "units": {"b": "$"}}, "units must name columns of the metric; it has no 'b'"),
    ],
)
def test_bad_metrics_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        TableMetric(**arguments)


def test_a_list_of_weights_is_refused():
    with pytest.raises(TypeError, match="numeric must be a mapping from column to value; got list"):
        TableMetric(numeric=[1, 2])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"age": ["x", "y", "z", "w"]}, "Column 'age' must hold numbers .*List it under categorical"),
        ({"age": [1, 2, 3, np.inf]}, "Column 'age' must be finite"),
        ({"age": pd.to_datetime(["2020-01-01"] * 4)}, "Column 'age' holds dates or times. Turn it into a number"),
        ({"region": pd.to_datetime(["2020-01-01"] * 4)}, "Column 'region' holds dates or times"),
        ({"age": [True, False, True, True]}, "Column 'age' is boolean: list it under categorical"),
        ({"age": pd.Categorical(list("abca"))}, "Column 'age' has categories without an order: list it under categ"),
        ({"region": [[1], [2], [3], [4]]}, "Column 'region' must hold plain values"),
    ],
)
def test_columns_of_the_wrong_kind_are_refused_with_advice(change, message):
    with pytest.raises(ValueError, match=message):
        metric().pairwise(PEOPLE.assign(**change))


def test_tables_must_have_the_columns():
    with pytest.raises(ValueError, match="A must have the column 'age'"):
        metric().pairwise(PEOPLE.drop(columns="age"))
    with pytest.raises(TypeError, match=r"A must be a table with named columns .*; got ndarray"):
        metric().pairwise(np.zeros((2, 5)))
    with pytest.raises(ValueError, match="'age' occurs twice"):
        metric().pairwise(pd.concat([PEOPLE, PEOPLE[["age"]]], axis=1))
    with pytest.raises(ValueError, match="same number of rows"):
        metric()(PEOPLE[:2], PEOPLE[:3])


# -- coding -----------------------------------------------------------------------------------------------------

CODING = TableEncoder.learn(PEOPLE, ["age", "income", "grade"], ["region", "citizen"])


def test_decode_undoes_encode_with_the_types_of_the_columns():
    back = CODING.decode(CODING.encode(PEOPLE))
    pd.testing.assert_frame_equal(back, PEOPLE.astype({"age": float}))


def test_perturbed_positions_become_the_nearest_ordered_category():
    rows = CODING.encode(PEOPLE)[:2]
    rows[:, 2] = [-3.0, 1.4]
    assert list(CODING.decode(rows)["grade"]) == ["low", "middle"]


def test_unseen_categories_have_one_code_and_unseen_steps_are_refused():
    others = PEOPLE.assign(region=["east", "north", "west", None])
    assert CODING.encode(others)[:, 3].tolist() == [UNSEEN, 0, UNSEEN, 2]
    with pytest.raises(ValueError, match="'grade' has the value 'top', which is not among its ordered categories"):
        CODING.encode(PEOPLE.assign(grade=["low", "top", "low", "low"]))


def test_codes_do_not_depend_on_the_order_of_people():
    for order in itertools.permutations(range(len(PEOPLE))):
        shuffled = TableEncoder.learn(PEOPLE.iloc[list(order)], ["age", "income", "grade"], ["region", "citizen"])
        np.testing.assert_array_equal(shuffled.encode(PEOPLE), CODING.encode(PEOPLE))


def test_the_columns_of_later_tables_are_checked():
    with pytest.raises(ValueError, match="X must have the column 'income'"):
        CODING.encode(PEOPLE.drop(columns="income"))
    with pytest.raises(ValueError, match=r"X has the column 'extra', which the metric does not name. Give it a weight"):
        CODING.encode(PEOPLE.assign(extra=1))


def test_columns_are_matched_by_name():
    turned = PEOPLE[PEOPLE.columns[::-1]]
    np.testing.assert_array_equal(CODING.encode(turned), CODING.encode(PEOPLE))
    pd.testing.assert_frame_equal(CODING.as_table(turned), PEOPLE)
    np.testing.assert_array_equal(metric()(turned, PEOPLE), np.zeros(len(PEOPLE)))


def test_equal_weights_are_equal_whatever_the_order_of_keys_and_the_words_for_units():
    metric = TableMetric({"a": 1, "b": 2}, {"c": 0.5, "d": 0}, missing={"a": 0.1, "b": 0.2})
    other = TableMetric({"b": 2, "a": 1}, {"d": 0, "c": 0.5}, missing={"b": 0.2, "a": 0.1}, units={"a": "$"})
    assert metric == other
    assert hash(metric) == hash(other)
    assert metric != TableMetric({"a": 1, "b": 2}, {"c": 0.5, "d": 0}, missing={"a": 0.1, "b": 0.3})


@pytest.mark.parametrize("make", [Decimal, lambda value: 10**25 + int(value), str])
def test_numbers_that_pandas_holds_as_objects_are_numbers_to_the_model_too(make):
    """A model that took them as categories at fit could not be asked about noisy ones."""
    values = [make(value) for value in range(30)]
    X = pd.DataFrame({"a": pd.Series(values, dtype=object), "b": np.arange(30.0), "c": ["x", "y", None] * 10})
    metric = TableMetric({"a": 1e-25, "b": 0.1}, {"c": 0.1})
    people = metric.encode_rows(X)
    assert people.table.dtypes["a"] == np.float64
    np.testing.assert_array_equal(people.table["a"], [float(value) for value in values])
    assert X.dtypes["a"] == np.dtype(object)  # what was given is left as it was
    y = np.arange(30) % 2
    model = SmoothedClassifier(table_model(X, "logistic"), metric=metric, n_draws=20, random_state=0).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_complex_numbers_among_others_are_refused():
    metric = TableMetric({"a": 1.0})
    for values in ([1 + 2j, 2 + 0j], [1 + 2j, None, 3], [1, 2j, False]):
        with pytest.raises(InvalidInputError, match="Column 'a' holds complex numbers"):
            metric.encode_rows(pd.DataFrame({"a": pd.Series(values, dtype=object)}))
    assert (
        len(metric.encode_rows(pd.DataFrame({"a": pd.Series([1, None, 2.5], dtype=object).astype(float).fillna(0)})))
        == 3
    )


def test_a_column_of_which_only_blanks_matter_is_described_so():
    metric = TableMetric({"a": BLANKS_ONLY, "b": 0.1}, missing={"a": 0.3, "b": 0.5})
    people = pd.DataFrame({"a": [1.0, 1e6, np.nan], "b": 0.0})
    assert metric.describe()["one point"].tolist() == ["only blanks matter", "0.1"]
    assert metric.scaled(1e-3).describe()["one point"][0] == "only blanks matter"
    assert metric(people.iloc[[0, 0]], people.iloc[[1, 2]]).tolist() == pytest.approx([0, 0.3], abs=1e-30)
    assert TableMetric({"a": 0.1}, missing={"a": 0.3}).describe()["one point"][0] == "0.1"  # control
