"""compare: the same folds for all, exact figures, true counts of violations, and constants that must be beaten."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier

from likewise import FunctionMetric, InvalidInputError, SmoothedClassifier, TableMetric, WeightedLp, compare, tradeoff
from likewise.base import ConstrainedClassifier
from likewise.dummy import ConstantClassifier, ConstantRegressor
from likewise.inspection.baselines import UnconstrainedModel, table_model, unconstrained_model
from likewise.kernel.bounds import Bound
from likewise.kernel.certificate import Estimate
from likewise.selection.compare import _aligned, difference, recommend
from likewise.selection.cross_validation import CVResult, Fold
from likewise.selection.methods import METHODS, UNCONSTRAINED, build_method, check_problem
from promised import Promised
from promised import promise as promised_guarantee

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 2))
Y = (X[:, 0] + 0.3 * RNG.normal(size=90) > 0).astype(int)
METRIC = WeightedLp([0.3, 0.0])
TIMES = ["microseconds", "fit_seconds"]


class Oracle(ClassifierMixin, BaseEstimator):
    """Knows the sign of the first column, and remembers whom it was fitted on."""

    seen = []  # noqa: RUF012

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        Oracle.seen.append(X[:, 0])
        return self

    def predict_proba(self, X):
        p = np.where(X[:, 0] > 0, 0.9, 0.1)
        return np.stack([1 - p, p], axis=1)


class StepScorer(Promised):
    """A jump, which no metric with a weight allows."""

    def estimate(self, people, *, verbose=False):
        p = np.where(people.rows[:, 0] > 0, 0.9, 0.1)
        return Estimate.certain(np.stack([1 - p, p], axis=1))

    def visible(self, people):
        return people.rows[:, :1]


class Liar(ConstrainedClassifier):
    """Guarantees a metric and violates it."""

    def __init__(self, metric=None):
        self.metric = metric

    def learn(self, data, metric):
        return StepScorer(promised_guarantee(metric, Bound(), "exact", "It does not hold."))


def test_a_method_that_is_a_constant_scores_like_the_constant():
    table = compare(X, Y, METRIC, [("again", ConstantClassifier())], cv=3).table
    different = ["title", *TIMES]
    pd.testing.assert_series_equal(
        table.loc["again"].drop(different), table.loc["constant"].drop(different), check_names=False
    )


def test_figures_of_the_constant_are_those_by_hand():
    row = compare(X, Y, METRIC, ["constant"], cv=3).table.loc["constant"]
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, Y))
    rates = [Y[trained].mean() for trained, _ in folds]
    brier = [((rate - Y[held]) ** 2).mean() for rate, (_, held) in zip(rates, folds, strict=True)]
    confidence = [np.where(Y[held], rate, 1 - rate).mean() for rate, (_, held) in zip(rates, folds, strict=True)]
    assert row["brier"] == pytest.approx(np.mean(brier))
    assert row["brier_se"] == pytest.approx(np.std(brier, ddof=1) / np.sqrt(3))
    assert row["confidence"] == pytest.approx(np.mean(confidence))
    assert (row["auc"], row["violations"], row["level"], row["epsilon"]) == (0.5, 0, "exact", 0.0)


def test_figures_of_several_classes_are_those_of_scikit_learn():
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss, roc_auc_score

    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    row = compare(X, y, METRIC, [("ours", LogisticRegression())], cv=folds).table.loc["ours"]
    expected = []
    for trained, held in folds:
        p = LogisticRegression().fit(X[trained], y[trained]).predict_proba(X[held])
        brier = 0.5 * ((p - (y[held, None] == ["a", "b", "c"])) ** 2).sum(axis=1).mean()
        expected.append([brier, roc_auc_score(y[held], p, multi_class="ovr"), log_loss(y[held], p)])
    np.testing.assert_allclose(row[["brier", "auc", "log_loss"]].astype(float), np.mean(expected, axis=0))


def test_figures_of_numbers_are_those_of_scikit_learn():
    from sklearn.linear_model import LinearRegression
    from sklearn.metrics import r2_score, root_mean_squared_error

    y = X @ [1.0, 2.0] + RNG.normal(size=90)
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    result = compare(X, y, METRIC, [("ours", LinearRegression())], cv=3)
    expected = []
    for trained, held in folds:
        answers = LinearRegression().fit(X[trained], y[trained]).predict(X[held])
        expected.append([r2_score(y[held], answers), root_mean_squared_error(y[held], answers)])
    np.testing.assert_allclose(result.table.loc["ours", ["r2", "rmse"]].astype(float), np.mean(expected, axis=0))
    assert result.task == "regression"
    assert result.table.loc["constant", "level"] == "exact"


def test_every_method_sees_the_same_folds():
    Oracle.seen.clear()
    compare(X, Y, METRIC, [("one", Oracle()), ("two", Oracle())], cv=4)
    assert len(Oracle.seen) == 8
    for one, two in zip(Oracle.seen[:4], Oracle.seen[4:], strict=True):
        np.testing.assert_array_equal(one, two)
    assert len({tuple(seen) for seen in Oracle.seen[:4]}) == 4


def test_violations_are_those_of_all_pairs_of_people_held_out():
    table = compare(X, Y, METRIC, [("jump", Oracle()), ("liar", Liar())], cv=3).table
    expected, pairs = 0, 0
    for _, held in StratifiedKFold(3, shuffle=True, random_state=0).split(X, Y):
        i, j = np.triu_indices(len(held), 1)
        jumps = (X[held[i], 0] > 0) != (X[held[j], 0] > 0)
        expected += int((0.8 * jumps > METRIC(X[held[i]], X[held[j]]) + 1e-9).sum())
        pairs += len(i)
    assert expected > 100
    assert table.loc[["jump", "liar"], "violations"].tolist() == [expected, expected]
    assert set(table["pairs"]) == {pairs}
    assert table["level"].to_dict() == {"constant": "exact", "jump": "none", "liar": "exact", "unconstrained": "none"}


def test_a_method_that_violates_its_guarantee_is_never_recommended_however_good():
    result = compare(X, Y, METRIC, [("liar", Liar())], cv=3)
    assert result.table["brier"]["liar"] < result.table["brier"]["constant"]
    assert result.table.loc["liar", "note"] == "violates its guarantee"
    assert result.best().name == "constant"


def test_what_a_metric_allows_is_recommended_with_words_and_can_be_fitted():
    metric = WeightedLp([50.0, 0.0])  # the control of the test above: here the jump is mostly allowed
    result = compare(X[np.abs(X[:, 0]) > 0.02], Y[np.abs(X[:, 0]) > 0.02], metric, [("step", Liar())], cv=3)
    best = result.best()
    assert (best.name, best.constant_is_as_good) == ("step", False)
    assert best.reason.startswith("Best: step. Its Brier score, ")
    assert best.reason in str(result)
    model = best.fit(X, Y)
    assert model.guarantee_.metric == metric
    assert not hasattr(best.estimator, "scorer_")


def test_where_a_constant_is_as_good_it_is_recommended_and_said():
    noise = np.random.default_rng(1).integers(2, size=90)
    result = compare(X, noise, METRIC, [("step", Liar()), ("again", ConstantClassifier())], cv=3)
    best = result.best()
    assert (best.name, best.constant_is_as_good) == ("constant", True)
    assert best.reason.startswith("A constant is as good")
    assert best.fit(X, noise).predict_proba(X[:1])[0, 1] == pytest.approx(noise.mean())


def test_within_one_standard_error_the_simpler_method_wins():
    # A step that is hardly better than a constant in one fold, and no better in the others.
    result = compare(X, Y, WeightedLp([50.0, 0.0]), [("step", Liar())], cv=3)
    losses = result.results["constant"].losses.copy()
    someone = result.folds[0].test[0]
    losses[someone] -= 1e-3
    close = replace(
        result,
        results=result.results
        | {
            "step": replace(
                result.results["step"],
                losses=losses,
                row=result.results["step"].row | {"brier": result.table.loc["constant", "brier"] - 1e-5},
                keeps_guarantee=True,
            )
        },
    )
    best = close.best()
    assert (best.name, best.constant_is_as_good) == ("constant", True)
    assert "within one standard error" in best.reason


def shown(losses, *, promise=True, keeps=True):
    losses = np.asarray(losses, dtype=float)
    row = {"title": "some method", "brier": float(losses.mean()), "guarantee": promise}
    return CVResult(row, losses, losses, keeps)


@pytest.mark.parametrize(("times", "expected"), [(0.99, "additive"), (1.01, "smoothing")])
def test_the_rule_of_one_standard_error_is_that_of_the_difference_fold_by_fold(times, expected):
    """Four folds of two people. Folds are hard and easy for both, which blurs the means but not the difference."""
    folds = tuple(Fold(np.array([], dtype=int), np.array([2 * k, 2 * k + 1]), np.array([0, 1])) for k in range(4))
    hard = np.repeat([0.1, 0.5, 0.2, 0.9], 2) + np.tile([-0.05, 0.05], 4)
    noise = np.array([1.0, -2.0, 0.5, 0.5])  # of the difference, with mean 0
    error = np.std(noise, ddof=1) / np.sqrt(4)
    additive = hard + np.repeat(noise + times * error, 2)
    results = {"constant": shown(hard + 99), "additive": shown(additive), "smoothing": shown(hard)}
    gap, found = difference(results["additive"], results["smoothing"], folds)
    assert (gap, found) == (pytest.approx(times * error), pytest.approx(error))
    best = recommend(results, {name: name for name in results}, folds, "classification")
    assert (best.name, best.estimator) == (expected, expected)
    assert ("within one standard error" in best.reason) == (expected == "additive")
    assert not best.constant_is_as_good


def test_a_difference_is_of_the_people_on_whom_both_were_measured():
    folds = tuple(Fold(np.array([], dtype=int), np.array([2 * k, 2 * k + 1]), np.array([0])) for k in range(2))
    one, other = shown([0.3, 0.9, 0.5, 0.9]), shown([0.1, np.nan, 0.2, np.nan])
    gap, error = difference(one, other, folds)
    assert gap == pytest.approx(0.25)
    assert error == pytest.approx(np.std([0.2, 0.3], ddof=1) / np.sqrt(2))


def test_methods_without_a_guarantee_or_in_violation_of_it_are_not_recommended():
    folds = tuple(Fold(np.array([], dtype=int), np.array([2 * k, 2 * k + 1]), np.array([0, 1])) for k in range(2))
    results = {
        "constant": shown([0.5] * 4),
        "additive": shown([0.3, 0.31, 0.3, 0.29]),
        "liar": shown([0.0] * 4, keeps=False),
        "unconstrained": shown([0.1] * 4, promise=False, keeps=False),
    }
    assert recommend(results, dict.fromkeys(results), folds, "classification").name == "additive"


class Growing(ConstrainedClassifier):
    """A guarantee whose epsilon and draws differ from fold to fold: the largest in the second."""

    fitted = []  # noqa: RUF012

    def __init__(self, metric=None):
        self.metric = metric

    def learn(self, data, metric):
        promises = [(0.1, 0.0, 20, "deterministic"), (0.4, 0.1, 30, "sampled"), (0.0, 0.0, 0, "exact")]
        slack, delta, n_draws, level = promises[len(Growing.fitted)]
        Growing.fitted.append(level)
        return StepScorer(
            promised_guarantee(metric, Bound(), level, "Some.", slack=slack, delta=delta, n_draws=n_draws)
        )


def test_the_reported_guarantee_is_the_weakest_over_the_folds():
    Growing.fitted.clear()
    row = compare(X, Y, METRIC, [("growing", Growing())], cv=3).table.loc["growing"]
    assert (row["epsilon"], row["level"], row["evaluations"]) == (pytest.approx(0.4), "sampled", 30)


PROTECTED = {"race": "protected"}


def people_with_a_signal(n=300, seed=0):
    """Outcomes that go with a column of steps, which no line can tell, and with race, which says it all."""
    rng = np.random.default_rng(seed)
    steps = rng.integers(0, 8, n)
    y = (rng.random(n) < np.where(steps % 2, 0.85, 0.15)).astype(int)
    return pd.DataFrame({"age": rng.normal(size=n), "steps": steps, "race": np.where(y, "x", "y")}), y


@pytest.mark.parametrize("reason", ["not_used", "not_forced", "not_judged"])
def test_the_unconstrained_model_reads_what_is_not_protected_and_what_it_gains_is_part_of_the_cost(reason):
    people, y = people_with_a_signal()
    metric = TableMetric({"age": 0.1, "steps": 0}, {"race": 0}, zero_reasons=PROTECTED | {"steps": reason})
    result = compare(people, y, metric, ["additive"], cv=3)
    assert 0.8 < result.table.loc["unconstrained", "auc"] < 0.95  # with race it would be 1
    assert result.table.loc["unconstrained", "note"] == "reads all columns but the protected: race"
    brier = result.table["brier"]
    gap, error = re.search(r"Cost of the guarantee: \+([0-9.]+) ± ([0-9.]+) of Brier score", result.cost).groups()
    assert float(gap) == pytest.approx(brier[result.best().name] - brier["unconstrained"], abs=float(error))
    assert float(gap) > 0.05


@pytest.mark.parametrize("reasons", [PROTECTED | {"steps": "protected"}, {}])
def test_the_unconstrained_model_does_not_read_what_people_have_set_to_0(reasons):
    """The control: where people have set steps to 0, with or without the word, nothing but age is left."""
    people, y = people_with_a_signal()
    metric = TableMetric({"age": 0.1, "steps": 0}, {"race": 0}, zero_reasons=reasons)
    result = compare(people, y, metric, ["additive"], cv=3)
    assert result.table.loc["unconstrained", "auc"] < 0.65
    assert result.table.loc["unconstrained", "note"] == "reads all columns but the protected: steps and race"


@pytest.mark.parametrize("seed", range(8))
def test_on_pure_noise_nothing_says_that_the_guarantee_costs_nothing_or_gains(seed):
    rng = np.random.default_rng(seed)
    people = pd.DataFrame(rng.normal(size=(150, 3)), columns=list("abc"))
    metric, y = TableMetric({"a": 0.1, "b": 0.1, "c": 0.0}), rng.integers(0, 2, 150)
    result = compare(people, y, metric, ["additive"], cv=3)
    curve = tradeoff(people, y, metric, [0.5, 1], cv=3, comparison=result)
    for words in (" ".join(text.split()) for text in (str(result), str(curve))):
        assert "is not measurably better than a constant" in words
        assert "Cost of the guarantee" not in words
        assert "as good as that" not in words
    assert curve.matching_scale is None


def test_all_columns_protected_leave_a_constant():
    result = compare(X, np.digitize(X[:, 0], [-0.5, 0.5]), WeightedLp([0.0, 0.0]), ["constant"], cv=3)
    assert result.table.loc["unconstrained", "brier"] == pytest.approx(result.table.loc["constant", "brier"])
    assert "is not measurably better than a constant" in result.cost


class FirstOnly(ClassifierMixin, BaseEstimator):
    """Right about those it was fitted to, and about nobody else."""

    def fit(self, X, y):
        self.classes_, self.known_ = np.unique(y), dict(zip(X["age"], y, strict=True))
        return self

    def predict_proba(self, X):
        p = np.array([self.known_.get(age, 0.5) for age in X["age"]])
        return np.stack([1 - p, p], axis=1)


def test_the_unconstrained_model_is_chosen_on_people_it_was_not_fitted_to_and_not_on_those_scored():
    people, y = people_with_a_signal()
    logistic = table_model(people, "logistic", columns=["age"])
    by_heart = UnconstrainedModel([FirstOnly(), table_model(people, "boosting", columns=["steps"])]).fit(people, y)
    assert isinstance(by_heart.model_, Pipeline)
    line = (people["age"] + np.random.default_rng(1).normal(size=len(y)) > 0).astype(int)
    assert "logisticregression" in unconstrained_model(people, protected=["race"]).fit(people, line).model_.named_steps
    assert "logisticregression" in UnconstrainedModel([logistic, FirstOnly()]).fit(people, line).model_.named_steps


@pytest.mark.parametrize(
    ("smoothing", "message"),
    [
        ({"draws": 3}, "smoothing must be a dictionary with parameters of smoothed models, noise, vote.*; got 'draws'"),
        (3, "smoothing must be a dictionary"),
        ({"vote": "loud"}, "vote must be"),
        ({"noise": "pink"}, "noise must be"),
    ],
)
def test_what_smoothing_cannot_do_is_refused(smoothing, message):
    with pytest.raises(ValueError, match=message):
        compare(X, Y, METRIC, ["smoothing"], cv=2, smoothing=smoothing)


def test_the_same_call_gives_the_same_table():
    tree = SmoothedClassifier(Stump(), n_draws=20, random_state=0)
    first, second = (compare(X, Y, METRIC, [("stump", tree)], cv=3).table for _ in range(2))
    pd.testing.assert_frame_equal(first.drop(columns=TIMES), second.drop(columns=TIMES))
    other = compare(X, Y, METRIC, ["constant"], cv=3, random_state=1).table
    assert other.loc["unconstrained", "brier"] != first.loc["unconstrained", "brier"]


class Stump(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0).astype(int)]


def test_slow_methods_and_pairs_are_measured_on_an_even_sample_that_is_stated():
    tree = SmoothedClassifier(Stump(), n_draws=20, random_state=0)
    result = compare(X, Y, METRIC, [("stump", tree)], cv=3, n_people=10)
    assert result.table["people"].to_dict() == {"constant": 90, "stump": 30, "unconstrained": 90}
    assert set(result.table["pairs"]) == {3 * 45}
    assert result.table.loc["stump", "note"] == (
        "measured on an even sample of 30 of 90 people held out; "
        "budget of 20 evaluations per person (more would lower epsilon)"
    )
    assert "All pairs of an even sample of 10 of them were searched." in result.measured_on
    for fold in result.folds:
        assert abs(Y[fold.test[fold.sample]].mean() - Y[fold.test].mean()) < 0.1
    assert result.table.loc["stump", ["level", "evaluations"]].tolist() == ["deterministic", 20]


def test_codes_are_categories_for_the_unconstrained_model_if_the_metric_says_so():
    people = pd.DataFrame({"age": X[:, 0], "code": RNG.choice([1, 2, 3], 90)})

    def columns_of(metric):
        linear, _ = build_method(check_problem(people, Y, metric, "auto", None, 1, 0), UNCONSTRAINED).estimator.models
        return {name: columns for name, _, columns in linear.named_steps["columntransformer"].transformers}

    coded = columns_of(TableMetric({"age": 0.2}, {"code": 0.1}))
    assert coded == {"categories": ["code"], "numbers": ["age"]}


def test_the_model_of_the_first_fold_is_kept():
    result = compare(X, Y, METRIC, ["constant"], cv=3)
    fold, found = result.folds[0], result.results["unconstrained"]
    np.testing.assert_array_equal(found.model.predict_proba(X[fold.test]), found.predictions[fold.test])
    assert not np.array_equal(found.model.predict_proba(X), found.predictions)  # the control: others are of other folds


def test_ordered_nullable_sparse_and_empty_columns_are_for_every_method(recwarn):
    order = pd.Categorical.from_codes(RNG.integers(-1, 3, 400), ["low", "mid", "high"], ordered=True)
    people = pd.DataFrame(
        {
            "school": order,
            "children": pd.Series(RNG.integers(0, 3, 400), dtype="Int64").mask(RNG.random(400) < 0.2),
            "owner": pd.arrays.SparseArray(RNG.integers(0, 2, 400) * 1.0),
            "unasked": np.nan,
        }
    )
    metric = TableMetric(dict.fromkeys(people, 0.2), missing="category")
    methods = ["additive", "projection", "smoothing"]
    table = compare(people, order.codes == 2, metric, methods, cv=2, n_draws=20).table
    assert not table["note"].str.contains("skipped").any()
    assert (table["auc"].drop("constant") > 0.9).all()
    assert not recwarn.list


def test_a_model_of_ours_that_cannot_take_a_table_says_so():
    people = pd.DataFrame({"age": X[:, 0], "code": X[:, 1] + 1j})
    with pytest.raises(InvalidInputError, match="The model 'unconstrained model' cannot take these people"):
        compare(people, Y, TableMetric({"age": 0.2}, {"code": 0.1}), ["constant"], cv=3)


def test_methods_that_do_not_apply_are_listed_with_the_reason():
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    result = compare(X, y, WeightedLp([0.0, 0.0]), ["projection"], cv=3)
    assert result.table.loc["projection", "note"] == "skipped: projection is for two classes, or a regression"
    assert np.isnan(result.table.loc["projection", "brier"])
    assert "skipped: projection is for two classes" in str(result)
    assert result.best().name == "constant"


def test_a_vacuous_guarantee_is_noted_and_does_not_warn(recwarn):
    result = compare(X, Y, WeightedLp([1e6, 1e6]), ["constant"], cv=3)
    assert "guarantees almost nothing" in result.table.loc["constant", "note"]
    assert not len(recwarn)


def test_names_are_never_markup():
    html = compare(X, Y, METRIC, [("<b>", Oracle())], cv=3)._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html


def test_the_order_is_that_of_simplicity_and_the_table_has_a_row_for_each():
    assert METHODS == ("constant", "additive", "network", "projection", "smoothing", "augmented", "unconstrained")
    result = compare(X, Y, METRIC, ["additive", ("mine", Oracle())], cv=2)
    assert list(result.table.index) == ["constant", "additive", "mine", "unconstrained"]
    assert list(result.estimators) == list(result.table.index)


def test_a_regression_has_one_output_range_for_all_folds():
    y = 100 * X[:, 0]
    result = compare(X, y, METRIC, [("same", ConstantRegressor(output_range=(0, 1)))], cv=3, output_range=(-500, 500))
    assert result.best().fit(X, y).guarantee_.output_range == (-500, 500)
    assert result.table.loc["same", "squared_error"] == result.table.loc["constant", "squared_error"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"metric": [1, 2]}, TypeError, "metric must be a Metric"),
        ({"metric": WeightedLp([1.0])}, ValueError, "X must have 1 columns, one per weight"),
        ({"y": Y[:-1]}, ValueError, "X and y must have the same number of rows; got"),
        ({"y": np.where(Y, np.nan, 0.0)}, ValueError, "y must hold one outcome per person, none of them missing"),
        ({"y": np.zeros(90, int)}, ValueError, "y must hold at least two classes; got only"),
        ({"y": np.eye(90)[0].astype(int)}, ValueError, r"number of people of class 1 \(1\); got 5"),
        (
            {"y": np.array(["a", "b"] * 45), "task": "regression"},
            ValueError,
            "y must hold one number per person",
        ),
        ({"y": np.where(Y, np.inf, 0.5)}, ValueError, "y must hold one label per person .*infinity"),
        ({"task": "ranks"}, ValueError, "task must be 'auto', 'classification' or 'regression'; got 'ranks'"),
        ({"output_range": (0, 1)}, ValueError, "output_range must be None for classes"),
        ({"methods": "additive"}, ValueError, r"methods must be 'auto' or a list; got 'additive'. Use \['additive'\]"),
        ({"methods": []}, ValueError, "methods must be 'auto', or a list of names and pairs"),
        ({"methods": [3]}, ValueError, "methods must be 'auto', or a list of names and pairs"),
        ({"methods": ["magic"]}, ValueError, "method must be one of constant, additive, .*; got 'magic'"),
        (
            {"methods": [("additive", Oracle())]},
            ValueError,
            "methods must have distinct names, none of them built in; got 'additive'",
        ),
        (
            {"methods": [("a", Oracle()), ("a", Oracle())]},
            ValueError,
            "methods must have distinct names, none of them built in; got 'a'",
        ),
        ({"methods": [("a", Oracle)]}, TypeError, "'a' must be an unfitted classifier"),
        ({"methods": [("a", ConstantRegressor())]}, TypeError, "'a' must be an unfitted classifier"),
        ({"cv": 1}, ValueError, "cv must be a whole number >= 2; got 1"),
        ({"n_people": 1}, ValueError, "n_people must be a whole number >= 2; got 1"),
        ({"n_draws": 0}, ValueError, "n_draws must be a whole number >= 1; got 0"),
        ({"random_state": -1}, ValueError, "random_state must be a whole number from 0 to 4294967295; got -1"),
    ],
)
def test_bad_input_is_refused_with_one_clear_error(options, error, message):
    given = {"X": X, "y": Y, "metric": METRIC, "methods": ["constant"]} | options
    with pytest.raises(error, match=message):
        compare(**given)


def test_an_error_in_an_estimator_of_ones_own_is_an_error():
    class Broken(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            raise ValueError("no")

    with pytest.raises(ValueError, match=r"^no$"):
        compare(X, X[:, 0], METRIC, [("broken", Broken())], cv=3)


def test_a_function_of_ones_own_is_a_metric_too():
    def distance(A, B):
        return 0.3 * np.abs(A[:, 0] - B[:, 0])

    by_weights = compare(X, Y, METRIC, [("jump", Oracle())], cv=3)
    result = compare(X, Y, FunctionMetric(distance), ["additive", "projection", ("jump", Oracle())], cv=3)
    assert result.table.loc["jump", "violations"] == by_weights.table.loc["jump", "violations"] > 100
    assert result.table.loc["additive", "note"].startswith("skipped: metric must have a weight for each column")
    assert result.table.loc["projection", ["level", "violations"]].tolist() == ["exact", 0]
    assert result.best().name == "projection"


@pytest.mark.parametrize("method", ["additive", "projection"])
def test_the_methods_keep_their_guarantee_and_beat_a_constant(method):
    result = compare(X, Y, METRIC, [method], cv=3)
    assert result.table.loc[method, ["level", "epsilon", "violations"]].tolist() == ["exact", 0.0, 0]
    assert result.table.loc["unconstrained", "violations"] > 0  # the control
    assert result.best().name == method


def test_every_method_fits_a_regression():
    y = 3 * X[:, 0] + RNG.normal(size=90)
    table = compare(X, y, METRIC, ["additive", "projection", "smoothing"], cv=2, n_draws=20).table
    assert table["note"].drop(["smoothing", "unconstrained"]).eq("").all()
    assert table["violations"][table["guarantee"]].eq(0).all()
    assert table.loc["additive", "r2"] > 0.8


def test_without_pytorch_the_network_is_left_out_with_the_cure(monkeypatch):
    monkeypatch.setattr("likewise.selection.methods.find_spec", lambda name: None)
    table = compare(X, Y, METRIC, ["network"], cv=2).table
    assert table.loc["network", "note"] == "skipped: needs PyTorch: pip install 'likewise[torch]'"


def test_where_nobody_watches_there_is_no_progress_bar(capfd):
    compare(X, Y, METRIC, ["constant"], cv=2, verbose=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert [line.split(":")[0] for line in err.splitlines()] == ["constant (base rate)", "unconstrained model"]
    assert "(1 left, next: unconstrained model)\n" in err
    assert err.endswith("violations (the last)\n")
    compare(X, Y, METRIC, ["constant"], cv=2)
    assert capfd.readouterr() == ("", "")


def test_a_model_that_has_seen_who_is_held_out_is_trained_again():
    """A tree that knows everybody by heart would be right about the people whom it was trained on."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), rng.integers(0, 2, 120)
    inner = DecisionTreeClassifier(random_state=0)
    smoothed = SmoothedClassifier(inner, metric=WeightedLp([30.0, 30.0]), n_draws=50, random_state=0)
    fitted = clone(smoothed).fit(X, y)
    methods = [("unfitted", smoothed), ("fitted", fitted)]
    table = compare(X, y, smoothed.metric, methods=methods, cv=2, task="classification").table
    assert table.loc["fitted", "brier"] == table.loc["unfitted", "brier"] > 0.2
    assert np.mean((fitted.predict_proba(X)[:, 1] - y) ** 2) < 0.1  # the control


def test_a_table_that_is_wider_than_the_terminal_is_printed_in_several():
    cells = pd.DataFrame({"method": ["additive", "none"], "score": ["0.1 ± 0.2", "1"], "AUC": ["0.5", "0.123"]})
    (whole,) = _aligned(cells, 120)
    assert whole == (
        "method        score    AUC\n--------  ---------  -----\nadditive  0.1 ± 0.2    0.5\nnone              1  0.123"
    )
    blocks = _aligned(cells, 20)
    assert [block.splitlines()[2] for block in blocks] == ["additive  0.1 ± 0.2", "additive    0.5"]
    assert len(_aligned(cells, 1)) == 2  # a column that fits nowhere stands beside the names
