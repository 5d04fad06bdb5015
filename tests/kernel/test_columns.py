"""What a category is: one canonical text, whatever holds the values and whoever else is in the column."""

from decimal import Decimal
from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from likewise import AdditiveClassifier, InvalidInputError, SmoothedClassifier, TableMetric, audit
from likewise.kernel.columns import UNSEEN, CategoricalColumn, NumericColumn, canonical_category
from likewise.kernel.schema import as_frame

SAME = {
    "30": [30, 30.0, np.int64(30), np.float32(30), Decimal("30.00"), "30", "30.0", np.str_("30"), b"30"],
    "030": ["030"],
    "30.00": ["30.00"],  # no float is written like this
    "30.5": [30.5, np.float32(30.5), Decimal("30.5"), "30.5"],
    "0.1": [0.1, np.float32(0.1), Decimal("0.10"), "0.1"],
    "10000000000000000": [10**16, 1e16, "1e+16"],
    "9007199254740993": [2**53 + 1, "9007199254740993", Decimal(2**53 + 1)],
    "-7": [-7, -7.0, "-7.0"],
    "0": [0, 0.0, -0.0, "0.0"],
    "True": [True, np.True_, "True"],
    "1": [1, 1.0, "1"],
    "true": ["true"],
    "1e5": ["1e5"],
    "": [""],
    "nan": ["nan"],
    "v.0": ["v.0"],
}


@pytest.mark.parametrize("text", SAME)
def test_values_that_are_one_category_have_one_text(text):
    assert {canonical_category(value) for value in SAME[text]} == {text}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_and_its_text_in_a_file_are_one_category(number):
    assert canonical_category(repr(number)) == canonical_category(number) == canonical_category(np.float64(number))


def column(values, kind=object):
    return pd.Series(values, dtype=kind, name="code")


LEARNED = {
    "numbers": column([30, 40, 7], np.int64),
    "floats": column([30, 40, 7, np.nan], np.float64)[:3],
    "text": column(["30", "40", "7"]),
    "text of floats": column(["30.0", "40.0", "7.0"]),
    "nullable": column([30, 40, 7], "Int64"),
    "categories": column([30, 40, 7], "category"),
    "mixed": column([30, "40", 7.0]),
}
GIVEN = {
    "numbers": column([30, 40], np.int64),
    "floats with a gap": column([30, 40, None], np.float64)[:2],
    "nullable": column([30, 40, None], "Int64")[:2],
    "text": column(["30", "40"]),
    "text of floats": column(["30.0", "40.0"]),
    "mixed": column([30, "40"]),
    "decimals": column([Decimal(30), Decimal("40.0")]),
    "categories": column(["30", "40"], "category"),
    "arrow": column([30, 40], pd.ArrowDtype(pa.int32())),
}


@pytest.mark.parametrize("learned", LEARNED)
@pytest.mark.parametrize("later", GIVEN)
def test_a_code_is_the_same_however_it_is_held(learned, later):
    known, given_later = CategoricalColumn.learn(LEARNED[learned]), GIVEN[later]
    assert known.encode(given_later).tolist() == [0, 1]
    for company in ("V9", 30.5, True, None):  # whoever else is there
        with_other = pd.concat([given_later.astype(object), column([company])], ignore_index=True)
        assert known.encode(with_other)[:2].tolist() == [0, 1]
    assert [known.encode(given_later[i : i + 1])[0] for i in range(2)] == [0, 1]  # one person at a time


def test_text_stands_for_a_category_that_was_learned_as_a_number_or_a_boolean():
    numbers = CategoricalColumn.learn(column([30, 2**53, 0.5], object))
    assert numbers.encode(column(["030", " 30 ", "3e1", "0.50"])).tolist() == [1, 1, 1, 0]
    assert numbers.encode(column([str(2**53), str(2**53 + 1)])).tolist() == [2, UNSEEN]  # equal as floats
    assert numbers.encode(column(["30x", "1e999999999", "nan", "", "1_0"])).tolist() == [UNSEEN] * 5
    truths = CategoricalColumn.learn(column([True, False], bool))
    assert truths.encode(column(["TRUE", "false", "True", 1, 0.0, "yes"])).tolist() == [1, 0, 1, 1, 0, UNSEEN]
    assert CategoricalColumn.learn(column(["TRUE", "FALSE"])).encode(column([True, False], bool)).tolist() == [1, 0]
    assert CategoricalColumn.learn(column([0, 1], int)).encode(column([True, False, None])).tolist() == [1, 0, UNSEEN]
    text = CategoricalColumn.learn(column(["30", "true", "TRUE"]))
    assert text.encode(column(["030", "True", "true"])).tolist() == [UNSEEN, UNSEEN, 2]  # zeros and cases may matter


def test_one_and_true_are_two_categories_in_any_order():
    for order in permutations([1, True, "x", 1.0, None]):
        values = column(order)
        known = CategoricalColumn.learn(values)
        assert (known.levels, known.has_missing) == (("1", "True", "x"), True)
        expected = [{"1": 0, "True": 1, "x": 2, "None": 3}[canonical_category(value)] for value in order]
        assert known.encode(values).tolist() == expected


def test_missing_is_missing():
    known = CategoricalColumn.learn(column(["a", None]))
    for gap in (None, np.nan, pd.NA, pd.NaT):
        assert known.encode(column([gap])).tolist() == [1]
        assert known.encode(column(["a", gap])).tolist() == [0, 1]
    assert CategoricalColumn.learn(column(["a"])).encode(column([None, "a"])).tolist() == [UNSEEN, 0]


def test_ordered_categories_are_found_by_their_text_too():
    steps = NumericColumn.learn(column([1, 2, 3], pd.CategoricalDtype([1, 2, 3], ordered=True)))
    for later in (column(["1", "3"]), column([1.0, 3.0]), column([1, "3"]), column(["01", "3.0"])):
        assert steps.encode(later).tolist() == [0, 2]
    with pytest.raises(InvalidInputError, match="has the value '4', which is not among its ordered"):
        steps.encode(column(["1", "4"]))


def test_numbers_as_text_are_read_exactly_and_by_themselves():
    amounts = NumericColumn("code")
    texts = ["0.1", "1e3", " 7", "", None, "123456789.123456789", "2.2250738585072011e-308"]
    expected = [0.1, 1000, 7, np.nan, np.nan, 123456789.123456789, 2.2250738585072011e-308]
    np.testing.assert_array_equal(amounts.encode(column(texts)), expected)
    np.testing.assert_array_equal(amounts.encode(column([*texts, 5])), [*expected, 5])
    with pytest.raises(InvalidInputError, match=r"must hold numbers \(it has 'unknown' in row 3\)"):
        NumericColumn("age").encode(pd.Series([30, 31.5, "32", "unknown"], dtype=object))
    with pytest.raises(InvalidInputError, match=r"must hold numbers \(it has 'unknown' in row 1, and 1 more\)"):
        amounts.encode(column(["3", "unknown", "4", "unknown"]))
    with pytest.raises(InvalidInputError, match="holds dates or times"):
        amounts.encode(pd.Series(pd.to_datetime(["2020-01-01"]), name="code"))


# -- models and audits ------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
N = 240
CODES = RNG.choice([7, 30, 40], N)
PEOPLE = pd.DataFrame({"age": RNG.integers(20, 60, N), "code": CODES, "member": RNG.random(N) < 0.5})
Y = ((PEOPLE.age > 40) ^ (CODES == 30)).astype(int)
METRIC = TableMetric({"age": 0.02}, {"code": 0.3, "member": 0.1})
MODELS = {
    "additive": AdditiveClassifier(METRIC),
    "smoothed": SmoothedClassifier(
        make_pipeline(
            make_column_transformer((OneHotEncoder(), ["code", "member"]), remainder="passthrough"),
            LogisticRegression(max_iter=1000),
        ),
        metric=METRIC,
        n_draws=50,
        random_state=0,
    ),
}


def test_an_inner_model_gets_values_of_the_type_it_was_trained_on():
    asked = []

    class Recording(OneHotEncoder):
        def transform(self, X):
            asked.append({type(value) for value in np.asarray(X, dtype=object).ravel()})
            return super().transform(X)

    inner = make_pipeline(make_column_transformer((Recording(), ["code"]), remainder="drop"), LogisticRegression())
    metric = TableMetric({"age": 0.02}, {"code": 0.3})
    X = PEOPLE.drop(columns="member")
    model = SmoothedClassifier(inner, metric=metric, n_draws=20, random_state=0).fit(X, Y)
    model.predict_proba(X.astype({"code": str}))
    assert set().union(*asked) <= {int, np.int64}


def test_distances_and_audits_compare_canonical_texts():
    a, b = PEOPLE.astype({"code": str, "member": str}), PEOPLE.astype({"code": float})
    assert METRIC(a, b).tolist() == [0] * N
    assert METRIC(a, b.assign(code=b.code + 1)).tolist() == [0.3] * N
    half = pd.concat([PEOPLE[: N // 2].astype(object), a[N // 2 :].astype(object)])
    scores = RNG.random(N)
    expected = audit(None, PEOPLE, METRIC, predictions=scores)
    assert expected.n_violations > 0
    for held in (a, b, half, as_frame(pl.from_pandas(PEOPLE))):
        assert audit(None, held, METRIC, predictions=scores).n_violations == expected.n_violations
    told_apart = half.assign(code=[str(value) + "!" * (i % 2) for i, value in enumerate(half.code)])
    assert audit(None, told_apart, METRIC, predictions=scores).n_violations != expected.n_violations  # the control


def test_a_number_between_two_ordered_categories_is_the_nearer_one():
    order = NumericColumn("grade", ("low", "middle", "high"))
    noisy = np.array([-0.7, 0.4, 0.6, 1.49, 1.51, 2.8, np.nan])
    expected = ["low", "low", "middle", "middle", "high", "high", None]
    assert pd.Series(order.decode(noisy)).astype(object).where(~np.isnan(noisy), None).tolist() == expected
