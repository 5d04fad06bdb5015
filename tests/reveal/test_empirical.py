import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from likewise import TableMetric, UnsolvedError, WeightedLp, audit, estimate_minimal_metric, minimal_metric

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4)) * [1, 10, 0.1, 1] + [0, 50, 3, 0]
Y = X[:, 0] + 0.1 * X[:, 1] - 20 * X[:, 2] + RNG.normal(size=300) + 55
POWERS = [1, 1.5, 2, 3, 6]


def max_excess(model, X, metric):
    result = audit(model, X, metric, tolerance=0.0)
    return result.max_excess


def assert_minimal_on(model, X, metric, unit=1.0):
    assert max_excess(model, X, metric) <= 1e-6 * unit
    is_table = isinstance(metric, TableMetric)
    given = metric.numeric if is_table else dict(enumerate(metric.weights.tolist()))
    for i in [name for name, weight in given.items() if weight]:
        less = {**given, i: 0.99 * given[i]}
        smaller = metric.with_params(numeric=less) if is_table else WeightedLp(list(less.values()), metric.p)
        assert max_excess(model, X, smaller) > 1e-6 * unit


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(max_iter=1000).fit(StandardScaler().fit_transform(X), Y > 0),
        RandomForestClassifier(20, min_samples_leaf=5, random_state=0).fit(X, np.digitize(Y, [-2, 2])),
        DecisionTreeClassifier(max_depth=4).fit(X, np.median(Y) < Y),
    ],
    ids=["logistic", "forest of three classes", "tree"],
)
def test_no_pair_exceeds_and_no_weight_can_be_lowered(model, p):
    rows = StandardScaler().fit_transform(X) if isinstance(model, LogisticRegression) else X
    assert_minimal_on(model, rows, estimate_minimal_metric(model, rows, p, exchange=False).metric)


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_regression_is_in_units_of_the_output(factor):
    model = RandomForestRegressor(10, random_state=0).fit(X, factor * Y)
    metric = estimate_minimal_metric(model, X, exchange=False).metric
    assert_minimal_on(model, X, metric, unit=factor)


@pytest.mark.parametrize("seed", range(5))
def test_linear_models_are_recovered_where_the_needed_pairs_exist(seed):
    rng = np.random.default_rng(seed)
    beta = rng.normal(size=4) * [1, 10, 0.01, 100]
    base = rng.normal(size=(30, 4))
    rows = np.concatenate([base, *(base + step for step in np.eye(4))])  # one step along each axis
    metric = estimate_minimal_metric(lambda rows: rows @ beta, rows).metric
    np.testing.assert_allclose(metric.weights, np.abs(beta), rtol=1e-6)


def test_labels_are_probabilities_of_zero_and_one():
    model = LinearSVC().fit(X[:, :1], Y > 0)
    result = estimate_minimal_metric(model, X[:, :1])
    values, labels = X[:, 0], model.predict(X[:, :1])
    nearest = np.abs(values[labels][:, None] - values[~labels][None]).min()
    assert result.metric.weights[0] == pytest.approx(1 / nearest, rel=1e-6)
    assert result.active_pairs["difference"].tolist() == [1.0]


def test_classes_are_compared_by_total_variation():
    features, classes = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=1000).fit(features, classes)
    estimate, exact = estimate_minimal_metric(model, features, exchange=False).metric, minimal_metric(model)
    assert (estimate.weights <= exact.weights * (1 + 1e-6)).all()  # minimal on some people, against everyone
    assert_minimal_on(model, features, estimate)


def test_a_function_may_return_numbers_or_probabilities():
    def score(rows):
        return 0.5 + 0.01 * rows[:, 0]

    def both(rows):
        return np.stack([1 - score(rows), score(rows)], axis=1)

    rows = np.arange(10.0)[:, None]
    numbers, probabilities, given = (
        estimate_minimal_metric(score, rows),
        estimate_minimal_metric(both, rows),
        estimate_minimal_metric(None, rows, predictions=score(rows)),
    )
    for result in (numbers, probabilities, given):
        assert result.metric.weights[0] == pytest.approx(0.01, rel=1e-6)


def test_result_says_who_forces_the_weights():
    frame = pd.DataFrame({"age": [20.0, 30, 20, 20], "height": [1.0, 1, 2, 1], "same": 7.0})
    result = estimate_minimal_metric(None, frame, predictions=[0.1, 0.3, 0.6, 0.1])
    assert dict(result.metric.numeric) == pytest.approx({"age": 0.02, "height": 0.5, "same": 0.0})
    assert result.not_forced == ("same",)
    assert result.n_pairs == 3  # row 3 is row 0 again
    pairs = result.active_pairs
    assert pairs[["row_a", "row_b"]].to_numpy().tolist() == [[0, 2], [0, 1]]
    assert pairs["forces"].tolist() == ["height", "age"]
    np.testing.assert_allclose(pairs["difference"], pairs["distance"], atol=1e-8)
    assert result.n_rounds >= 1
    assert result.n_constraints >= 2


@pytest.mark.parametrize("p", POWERS)
def test_a_constant_model_has_an_all_zero_metric(p):
    result = estimate_minimal_metric(lambda rows: np.full(len(rows), 0.3), X, p)
    assert result.metric == WeightedLp(np.zeros(4), p)
    assert result.active_pairs.empty


def test_weights_can_be_bounded_or_fixed():
    model = LogisticRegression().fit(X, Y > 0)
    free = estimate_minimal_metric(model, X, exchange=False).metric.weights
    low = estimate_minimal_metric(model, X, upper={0: free[0] / 2}, exchange=False).metric
    assert low.weights[0] <= free[0] / 2
    assert max_excess(model, X, low) <= 1e-6
    fixed = estimate_minimal_metric(model, X, fixed={0: 0.0, 3: 5.0}, exchange=False).metric
    assert fixed.weights[[0, 3]].tolist() == [0.0, 5.0]
    assert max_excess(model, X, fixed) <= 1e-6


def test_weights_can_be_fixed_to_exactly_what_is_needed():
    beta = np.array([0.3, 2.0])
    rows = np.array([[0.0, 0], [1, 0], [0, 1], [3, 1]])
    metric = estimate_minimal_metric(lambda x: x @ beta, rows, fixed={0: 0.3, 1: 2.0}).metric
    assert metric.weights.tolist() == [0.3, 2.0]


def test_impossible_weights_name_the_pairs_that_make_them_so():
    frame = pd.DataFrame({"race": [0, 1, 0, 1], "age": [30, 30, 40, 41]})
    predictions = [0.2, 0.7, 0.3, 0.3]
    with pytest.raises(ValueError, match=r"rows 0 and 1 \(outputs differ by 0.5; race: 0 / 1\)") as caught:
        estimate_minimal_metric(None, frame, predictions=predictions, fixed={"race": 0})
    assert "rows 2 and 3" not in str(caught.value)
    with pytest.raises(ValueError, match="rows 0 and 1"):
        estimate_minimal_metric(None, frame, predictions=predictions, upper={"race": 0.49})
    assert (
        estimate_minimal_metric(None, frame, predictions=predictions, upper={"race": 0.51}).metric.numeric["race"]
        > 0.49
    )


def test_equal_people_with_different_outputs_are_named():
    with pytest.raises(ValueError, match=r"rows 0 and 2 of X are equal and their outputs differ by 0.3"):
        estimate_minimal_metric(None, [[1.0], [2.0], [1.0]], predictions=[0.1, 0.1, 0.4])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": [[1.0, 2.0], [1.0, 2.0]], "predictions": [0.1, 0.1]}, "at least two distinct rows"),
        ({"X": [[1.0, 2.0]], "predictions": [0.1]}, "at least two people"),
        ({"X": [[1.0, np.nan], [1.0, 2.0]]}, "X must be finite; got nan in row 0, 'feature 1'"),
        ({"X": [["a", "b"], ["c", "d"]]}, "X must hold numbers only"),
        ({"X": [1.0, 2.0]}, "X must be a table"),
        ({"predictions": [0.1, 0.2, 0.3]}, r"one entry per row of X \(2\); got an array of shape \(3,\)"),
        ({"predictions": [0.1, 1.2]}, r"within \[0, 1\]; got 1.2"),
        ({"predictions": [0.1, np.nan]}, r"within \[0, 1\]; got nan"),
        ({"predictions": [[0.1, 0.2], [0.5, 0.5]]}, "sum to 1"),
        ({"p": np.inf}, r"p must be finite; got inf. With p = inf, D is a maximum over features"),
        ({"p": 0.5}, "p must be a number >= 1 or infinity; got 0.5"),
        ({"fixed": {"age": 1.0}}, "fixed must name features of X, positions 0 to 1; got 'age'"),
        ({"fixed": {0: -1.0}}, r"fixed\[0\] must be a non-negative finite number; got -1.0"),
        ({"upper": {0: np.inf}}, r"upper\[0\] must be a non-negative finite number; got inf"),
        ({"upper": {0: 1.0}, "fixed": {0: 1.0}}, "must not both name"),
    ],
)
def test_bad_input_gives_one_clear_error(change, message):
    arguments = {"X": [[1.0, 2.0], [3.0, 4.0]], "predictions": [0.1, 0.2]} | change
    with pytest.raises(ValueError, match=message):
        estimate_minimal_metric(None, **arguments)


def test_people_who_are_too_close_beside_the_others_are_refused_with_the_cure():
    X = [[0.0], [5e-324], [1e16], [9e15], [2.0], [2004.0]]
    with pytest.raises(UnsolvedError, match=r"differ by too little.*Round the columns"):
        estimate_minimal_metric(None, X, predictions=[0.1, 0.9, 0.5, 0.2, 0.3, 0.4])
    X[1] = [0.5]  # the control
    found = estimate_minimal_metric(None, X, predictions=[0.1, 0.9, 0.5, 0.2, 0.3, 0.4])
    assert found.metric.weights[0] == pytest.approx(1.6)


def test_a_model_that_cannot_be_asked_is_refused():
    with pytest.raises(TypeError, match=r"model must have predict_proba or predict.*Pass predictions="):
        estimate_minimal_metric("model.pkl", X)


@pytest.fixture(scope="module")
def adult():
    folder = os.environ.get("LIKEWISE_DATA")
    if folder is None:
        pytest.skip("LIKEWISE_DATA does not say where the real data are")
    columns = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    train, test = (pd.read_csv(Path(folder) / f"adult_{part}.csv.gz") for part in ("train", "test"))
    return train[columns].astype(float), train["income"].str.startswith(">50K"), test[columns].astype(float)


def test_adult_logistic_regression_agrees_with_the_exact_metric(adult):
    train, y, people = adult
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(train, y)
    result = estimate_minimal_metric(model, people, exchange=False)
    assert result.n_pairs == 6825 * 6824 // 2
    exact = minimal_metric(model)
    assert dict(result.metric.numeric) == pytest.approx(dict(exact.numeric), rel=0.01)
    assert_minimal_on(model, people, result.metric)


@pytest.mark.parametrize("p", [1, 2])
def test_adult_forest_has_a_minimal_metric(adult, p):
    train, y, people = adult
    model = RandomForestClassifier(20, min_samples_leaf=20, random_state=0).fit(train, y)
    assert_minimal_on(model, people, estimate_minimal_metric(model, people, p, exchange=False).metric)


@pytest.mark.parametrize("p", [8, 12, 20, 40])
@pytest.mark.parametrize("smooth", [True, False], ids=["smooth", "forest"])
def test_large_powers_have_minimal_metrics_too(p, smooth):
    rows = np.random.default_rng(0).normal(size=(300, 4))
    scores = 1 / (1 + np.exp(-rows @ [1.0, -0.5, 0.3, 0.7]))
    if not smooth:
        scores = (
            RandomForestClassifier(20, min_samples_leaf=5, random_state=0).fit(rows, scores > 0.5).predict_proba(rows)
        )
    scales = estimate_minimal_metric(None, rows, p, predictions=scores).metric.scales
    assert audit(None, rows, WeightedLp(scales**p, p), predictions=scores).n_violations == 0
    for i in np.flatnonzero(scales):
        less = scales * np.where(np.arange(4) == i, 0.99, 1.0)
        assert audit(None, rows, WeightedLp(less**p, p), predictions=scores).n_violations > 0


def test_linear_regression_on_all_people_is_below_the_exact_metric():
    model = LinearRegression().fit(X, Y)
    estimate = estimate_minimal_metric(model, X, exchange=False).metric
    assert (estimate.weights <= minimal_metric(model).weights * (1 + 1e-9)).all()
