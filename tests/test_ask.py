"""People are asked about as they were given, and models that cannot be asked so are refused."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    TargetEncoder,
)

import likewise as lw
from likewise.ask import Ask, answers, as_taken, unseen_value
from likewise.kernel.columns import CategoricalColumn
from likewise.kernel.schema import TableEncoder
from likewise.known_values import check_known, known_values

RNG = np.random.default_rng(0)
PEOPLE = pd.DataFrame({"code": RNG.integers(1, 4, 90), "age": RNG.integers(20, 60, 90)})
OUTCOMES = (PEOPLE["code"] * 20 + PEOPLE["age"] > 80).astype(int)
WRITTEN = PEOPLE.assign(code=PEOPLE["code"].map("{:02d}".format).astype(object))


def one_hot():
    coder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["code"]), remainder="passthrough")
    return make_pipeline(coder, LogisticRegression(max_iter=1000))


def ordinal():
    coder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return make_pipeline(make_column_transformer((coder, ["code"]), remainder="passthrough"), LogisticRegression())


MODELS = {
    "one-hot": one_hot,
    "ordinal": ordinal,
    "target": lambda: make_pipeline(
        make_column_transformer((TargetEncoder(), ["code"]), remainder="passthrough"),
        LogisticRegression(),
    ),
    "in a search": lambda: GridSearchCV(one_hot(), {"logisticregression__C": [1.0]}, cv=2),
    "calibrated": lambda: CalibratedClassifierCV(one_hot(), cv=2),
    "in a vote": lambda: VotingClassifier([("one", one_hot()), ("other", one_hot())], voting="soft"),
    "beside imputed columns, of which there are none": lambda: make_pipeline(
        make_column_transformer(
            (make_pipeline(SimpleImputer(), Binarizer()), []), (OneHotEncoder(handle_unknown="ignore"), ["code"])
        ),
        LogisticRegression(),
    ),
    "frozen": lambda: FrozenEstimator(one_hot()),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_column_of_which_an_encoder_knows_no_value_is_refused(name):
    model = MODELS[name]()
    (model.estimator if isinstance(model, FrozenEstimator) else model).fit(PEOPLE, OUTCOMES)
    check_known(model, PEOPLE)
    check_known(model, PEOPLE.assign(code=9).assign(code=lambda people: people["code"].where(people.index > 0, 1)))
    with pytest.raises(lw.InvalidInputError, match=r"Column 'code' must hold values that the model knows.*'01'"):
        check_known(model, WRITTEN)


def test_boosting_with_a_category_dtype_is_followed():
    people = PEOPLE.astype({"code": "category"})
    model = HistGradientBoostingClassifier(categorical_features="from_dtype").fit(people, OUTCOMES)
    check_known(model, people)
    with pytest.raises(lw.InvalidInputError, match="knows none of"):
        check_known(model, WRITTEN.astype({"code": "category"}))


METRIC = lw.TableMetric({"age": 0.01}, {"code": 0.1})


@pytest.mark.parametrize(
    "finding",
    [
        lambda model, X: lw.audit(model, X, METRIC),
        lambda model, X: lw.audit_groups(model, X, METRIC, ["code"]),
        lambda model, X: lw.group_gaps(model, X, METRIC, "code"),
        lambda model, X: lw.attack(model, METRIC, X, n_pairs=1000),
        lambda model, X: lw.effect(model, X, "code"),
        lambda model, X: lw.estimate_minimal_metric(model, X),
    ],
    ids=["audit", "audit_groups", "group_gaps", "attack", "effect", "estimate"],
)
def test_every_finding_refuses_it(finding):
    with pytest.raises(lw.InvalidInputError, match="knows none of"):
        finding(one_hot().fit(PEOPLE, OUTCOMES), WRITTEN)


def ask_about(model, X, numeric=("age",)):
    return Ask.of(model, X, TableEncoder.learn(X, list(numeric), [name for name in X if name not in numeric]))


KINDS = {
    "text": ["b", "a", "b"],
    "integers": [7, 2, 7],
    "floats": [7.0, 2.0, 7.0],
    "Booleans": [True, False, True],
    "objects": pd.Series([True, None, False], dtype=object),
    "NaN": pd.Series(["x", np.nan, "y"], dtype=object),
    "several types": pd.Series([1, "a", True], dtype=object),
    "category": pd.Categorical(["b", "a", "b"], categories=["c", "b", "a"]),
    "ordered": pd.Categorical(["b", "a", "b"], categories=["c", "b", "a"], ordered=True),
    "intervals": pd.cut(pd.Series([1, 5, 9]), [0, 4, 8, 12]),
    "nullable": pd.array([1, None, 2], dtype="Int64"),
    "string": pd.array(["1.0", "a", "2"], dtype="string"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_made_up_people_are_written_as_those_given(kind):
    X = pd.DataFrame({"age": [30.5, 40, 50], "kind": KINDS[kind]})
    ask = ask_about(lambda rows: np.arange(len(rows)), X)
    pd.testing.assert_frame_equal(ask.taken(ask.encoder.encode(X)), X)


def test_columns_are_those_of_the_model():
    X = pd.DataFrame({"b": [1.0, 2.0], "a": [3.0, 4.0]})
    model = LogisticRegression().fit(X[["a", "b"]], [0, 1])
    assert list(as_taken(model, X).columns) == ["a", "b"]
    assert list(as_taken(model, X.assign(c=0)).columns) == ["a", "b"]
    assert list(as_taken(model, X.to_numpy()).columns) == ["a", "b"]
    with pytest.raises(lw.InvalidInputError, match="X must have the column 'a', which the model takes"):
        as_taken(model, X[["b"]])
    with pytest.raises(lw.InvalidInputError, match="the 2 columns of the model"):
        as_taken(model, np.ones((2, 3)))
    # A function, and a model of arrays, have the order in which people are given.
    assert as_taken(sum, X, as_array=True).tolist() == [[1.0, 3.0], [2.0, 4.0]]


def test_nobody_is_asked_otherwise_because_of_who_else_is_asked():
    """People with a category that nobody has may need another dtype, which is no reason to change that of others."""
    X = pd.DataFrame({"age": [30.0, 40.0], "kind": pd.Categorical(["a", "b"])})
    seen = []
    ask = ask_about(lambda rows: seen.append(rows["kind"].dtype) or rows["age"].to_numpy(), X)
    assert ask.about(np.array([[1.0, 0.0], [2.0, -1.0], [3.0, 1.0]])).tolist() == [1.0, 2.0, 3.0]
    assert seen == [X["kind"].dtype, np.dtype(object)]


@pytest.mark.parametrize(
    "levels",
    [
        [1, 2, 3],
        [2, 3, 4],
        [0.5, 4.0],
        [-3, -1],
        [True],
        [True, False],
        [1, True],
        ["a"],
        ["another", "another?"],
        [3, "3?"],
    ],
)
def test_a_category_that_nobody_has_is_none_of_those_known(levels):
    column = CategoricalColumn.learn(pd.Series(levels, dtype=object, name="kind"))
    value = unseen_value(column)
    assert column.encode(pd.Series([value], dtype=object))[0] == -1
    assert value is None or str(value) not in map(str, levels)


def test_people_whose_answers_change_as_they_are_read_are_refused():
    """Numbers as text: this model takes "030" for another value than "30"."""
    X = pd.DataFrame({"age": pd.Series(["030", "31"], dtype=object)})
    ask = ask_about(lambda rows: np.array([len(str(value)) / 10 for value in rows["age"]]), X)
    with pytest.raises(lw.InvalidInputError, match=r"row 0 of X gets 0\.3 and 0\.4"):
        ask.check()
    ask_about(lambda rows: np.array([float(value) / 100 for value in rows["age"]]), X).check()


@pytest.mark.parametrize(("one", "other"), [("1", "1.0"), (None, np.nan), (1, "1"), (True, "True"), (2, 2.0)])
def test_two_spellings_of_one_value_are_refused_where_people_are_made_up(one, other):
    X = pd.DataFrame({"age": [30.0, 40.0, 50.0], "kind": pd.Series([one, other, "x"], dtype=object)})
    with pytest.raises(lw.InvalidInputError, match="per column, as encoders tell"):
        lw.effect(lambda rows: np.full(len(rows), 0.5), X, "age")
    with pytest.raises(lw.InvalidInputError, match="per column, as encoders tell"):
        lw.attack(lambda rows: np.full(len(rows), 0.5), lw.TableMetric({"age": 1}, {"kind": 1}), X, n_pairs=1000)


def test_an_estimate_asks_about_every_spelling():
    """Nobody is the same but for the spelling, so only exchanging values can show that the model tells them apart."""
    X = pd.DataFrame({"age": [30.0, 40.0, 50.0, 60.0], "kind": pd.Series(["1", "1.0", "1", "2"], dtype=object)})

    def model(rows):
        return rows["age"].to_numpy() / 100 + 0.2 * (rows["kind"] == "1.0").to_numpy()

    with pytest.raises(lw.InvalidInputError, match=r"spellings of one category leave no metric: '1\.0' and '1'"):
        lw.estimate_minimal_metric(model, X)
    same = lw.estimate_minimal_metric(lambda rows: rows["age"].to_numpy() / 100, X).metric
    assert same.numeric["age"] == pytest.approx(0.01)


def test_answers_prefer_probabilities():
    model = LogisticRegression().fit(PEOPLE, OUTCOMES)
    assert answers(model, PEOPLE).shape == (90, 2)
    assert answers(model, PEOPLE, "predict").shape == (90,)
    assert answers(lambda rows: rows["age"], PEOPLE).tolist() == PEOPLE["age"].tolist()


def test_the_bins_of_a_column_are_no_values_of_it():
    """One-hot coded bins are counted from 0; the ages 0 to 3 are not what the model knows."""
    ages = PEOPLE[["age"]]
    model = make_pipeline(KBinsDiscretizer(4, encode="onehot-dense"), LogisticRegression()).fit(ages, OUTCOMES)
    assert known_values(model, ["age"]) == {}
    check_known(model, ages + 100)


def test_known_values_are_followed_to_where_they_change():
    model = one_hot().fit(PEOPLE, OUTCOMES)
    assert known_values(FrozenEstimator(model), list(PEOPLE)) == {"code": [1, 2, 3]}
    filled = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(), LogisticRegression())
    assert known_values(filled.fit(PEOPLE[["code"]], OUTCOMES), ["code"]) == {"code": [1, 2, 3]}
    halved = make_pipeline(FunctionTransformer(lambda rows: rows // 2), OneHotEncoder(), LogisticRegression())
    halved.fit(PEOPLE[["code"]], OUTCOMES)
    assert known_values(halved, ["code"]) == {}
    check_known(halved, PEOPLE[["code"]])
    with pytest.raises(lw.InvalidInputError, match="knows none of 50, 51"):
        check_known(halved, PEOPLE[["code"]] + 100)


def test_the_categories_of_a_booster_are_known():
    lightgbm = pytest.importorskip("lightgbm")
    people = PEOPLE.astype({"code": "category"})
    model = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1).fit(people, OUTCOMES)
    check_known(model, people)
    with pytest.raises(lw.InvalidInputError, match=r"Column 'code'.*LGBMClassifier was fitted on 1, 2, 3"):
        check_known(model, WRITTEN.astype({"code": "category"}))


# -- models around a frozen one ---------------------------------------------------------------------------------------

MIXED = pd.DataFrame({"age": RNG.integers(20, 60, 60), "code": pd.Series([7, "V9", 30] * 20, dtype=object)})
AROUND = {
    "smoothed": lambda inner: lw.SmoothedClassifier(inner, metric=METRIC, n_draws=60, random_state=0),
    "projected": lambda inner: lw.ProjectedClassifier(inner, metric=METRIC, random_state=0),
    "taught": lambda inner: lw.AdditiveClassifier(METRIC, teacher=inner),
}


class KnowsTypes(ClassifierMixin, BaseEstimator):
    """Whether a code is a number: as text, all of them would be the same."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, X):
        share = np.where(X["code"].map(lambda value: isinstance(value, int)), 0.9, 0.1)
        return np.column_stack([1 - share, share])

    def predict(self, X):
        return self.predict_proba(X).argmax(axis=1)


@pytest.mark.parametrize("around", AROUND)
def test_a_frozen_model_inside_another_is_asked_about_people_as_they_were_given(around):
    asked = []

    class Inner(KnowsTypes):
        def predict_proba(self, X):
            asked.extend({type(value) for value in X["code"]})
            return super().predict_proba(X)

    y = np.arange(60) % 2
    fitted = AROUND[around](FrozenEstimator(Inner().fit(MIXED, y))).fit(MIXED, y)
    one, other, third = fitted.predict_proba(MIXED.iloc[:3].assign(age=40))[:, 1]
    assert {*asked} == {int, str}
    assert one == pytest.approx(third)
    assert abs(one - other) > 0.09


@pytest.mark.parametrize("around", AROUND)
def test_control_as_text_its_codes_are_the_same_to_a_frozen_model(around):
    y = np.arange(60) % 2
    text = MIXED.astype({"code": str})
    fitted = AROUND[around](FrozenEstimator(KnowsTypes().fit(text, y))).fit(text, y)
    one, other, third = fitted.predict_proba(text.iloc[:3].assign(age=40))[:, 1]
    assert max(abs(one - other), abs(one - third)) < 0.05  # what else the codes tell


@pytest.mark.parametrize("around", AROUND)
def test_a_frozen_model_that_knows_no_value_of_a_column_is_refused(around):
    inner = FrozenEstimator(one_hot().fit(PEOPLE, OUTCOMES))
    AROUND[around](inner).fit(PEOPLE, OUTCOMES)
    with pytest.raises(lw.InvalidInputError, match=r"Column 'code' must hold values that the model knows.*'01'"):
        AROUND[around](inner).fit(WRITTEN, OUTCOMES)


def test_a_frozen_model_whose_answers_change_with_noise_of_spelling_is_not_smoothed():
    """To this model "1" and "1.0" are two categories, to the metric they are one, so that its draws would be of one."""
    X = MIXED.assign(code=["1", "1.0", "2"] * 20)
    inner = FrozenEstimator(one_hot().fit(X, X["code"] == "1.0"))
    with pytest.raises(lw.InvalidInputError, match="one category in two ways"):
        lw.SmoothedClassifier(inner, metric=METRIC, n_draws=60).fit(X, X["code"] == "1.0")
    same = X.assign(code=X["code"].str.removesuffix(".0"))
    lw.SmoothedClassifier(inner, metric=METRIC, n_draws=60).fit(same, X["code"] == "1.0")


def test_dask_audits_and_estimates_refuse_a_table_of_which_an_encoder_knows_nothing():
    dd = pytest.importorskip("dask.dataframe")
    model = one_hot().fit(PEOPLE, OUTCOMES)
    known, unknown = (dd.from_pandas(each, npartitions=2) for each in (PEOPLE, WRITTEN))
    assert lw.audit(model, known, METRIC).n_pairs
    with pytest.raises(lw.InvalidInputError, match="knows none of"):
        lw.audit(model, unknown, METRIC)
    with pytest.raises(lw.InvalidInputError, match="knows none of"):
        lw.estimate_minimal_metric(model, unknown)


# -- models whose answers are random -----------------------------------------------------------------------------------


class Noisy:
    """A function with noise, that counts the people whom it is asked about."""

    def __init__(self, sd):
        self.sd, self.rng, self.calls = sd, np.random.default_rng(0), []

    def __call__(self, X):
        self.calls.append(len(X))
        return 0.3 + 0.005 * X["age"] + 0.1 * (X["code"] == 2) + self.sd * self.rng.standard_normal(len(X))


METRIC = lw.TableMetric({"age": 0.01}, {"code": 0.1})
ASKED = {
    "audit": lambda model, X: lw.audit(model, X, METRIC),
    "reveal": lambda model, X: lw.estimate_minimal_metric(model, X, categorical=["code"]),
    "effect": lambda model, X: lw.effect(model, X, "code", max_seconds=1),
    "attack": lambda model, X: lw.attack(model, METRIC, X, n_pairs=1000),
    "groups": lambda model, X: lw.audit_groups(model, X, METRIC),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_model_with_noise_is_refused_with_its_size(name):
    people = pd.concat([PEOPLE] * 4, ignore_index=True).drop_duplicates(ignore_index=True)
    people["age"] = people["age"] + np.arange(len(people)) / 1000  # no two are equal
    with pytest.raises(lw.InvalidInputError, match=r"got other answers: noise of standard deviation 0\.0\d+") as error:
        ASKED[name](Noisy(0.01), people)
    pattern = r"of (\d+) people who were asked about twice, (\d+) got .* deviation (\S+), with changes of up to (\S+)\."
    said = re.search(pattern, str(error.value))
    of, n, spread, most = map(float, said.groups())
    assert of == n == len(people)
    # The estimate from n differences has a relative standard error of 1 / sqrt(2 n): 5 of these.
    assert spread == pytest.approx(0.01, rel=5 / np.sqrt(2 * n))
    assert spread < most < 10 * spread
    assert ASKED[name](Noisy(0.0), people) is not None  # control: without noise


def test_a_deterministic_model_is_asked_about_at_most_200_people_again():
    people = pd.DataFrame({"age": np.arange(1000) / 10, "code": 1})
    steady = Noisy(0.0)
    lw.audit(steady, people, METRIC)
    assert steady.calls == [1000, 200]


def test_rounding_is_no_noise():
    people = pd.DataFrame({"age": np.arange(300) / 10, "code": 1})
    lw.audit(Noisy(1e-7), people, METRIC)
    with pytest.raises(lw.InvalidInputError, match=r"noise of standard deviation (9|1)\.?\d*e-05|0\.0001"):
        lw.audit(Noisy(1e-4), people, METRIC)


def test_random_labels_and_answers_that_depend_on_the_others_are_refused():
    people = pd.DataFrame({"age": np.arange(300) / 10, "code": 1})
    rng = np.random.default_rng(0)
    with pytest.raises(lw.InvalidInputError, match="got other answers: their labels change"):
        lw.audit(lambda X: np.where(rng.random(len(X)) < 0.5, "yes", "no"), people, METRIC)
    with pytest.raises(lw.InvalidInputError, match="for each person alone"):
        lw.audit(lambda X: (X["age"] / X["age"].sum()).to_numpy(), people, METRIC)
    assert lw.audit(lambda X: np.where(X["age"] < 50, "yes", "no"), people, METRIC).n_violations >= 0  # control
