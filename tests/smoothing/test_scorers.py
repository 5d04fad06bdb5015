"""The way that is taken for a model and a noise, and that results depend on the person alone."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from likewise import Gaussian, SmoothedClassifier, SmoothedRegressor, Splitting, Uniform, WeightedLp
from likewise.inspection.batch_invariance import is_rowwise
from likewise.kernel.concentration import clopper_pearson, error_margin, hoeffding
from likewise.smoothing.sampling import SharedDraws, Shift

X, Y = make_classification(240, 5, n_redundant=0, random_state=0)


@pytest.mark.parametrize(
    ("estimator", "options", "noise", "level"),
    [
        (LogisticRegression(), {}, Gaussian, "exact"),
        (make_pipeline(StandardScaler(), LogisticRegression()), {}, Gaussian, "exact"),
        (DecisionTreeClassifier(), {}, Uniform, "exact"),
        (DecisionTreeClassifier(), {"metric": WeightedLp(np.ones(5), p=2)}, Gaussian, "exact"),
        (RandomForestClassifier(5), {"vote": "soft"}, Uniform, "exact"),
        (RandomForestClassifier(5), {"vote": "trees"}, Uniform, "exact"),
        (RandomForestClassifier(5), {}, Splitting, "deterministic"),
        (HistGradientBoostingClassifier(max_iter=5), {}, Splitting, "deterministic"),
        (LogisticRegression(), {"vote": "soft"}, Splitting, "deterministic"),
        (SVC(), {}, Splitting, "deterministic"),
        (SVC(), {"metric": WeightedLp(np.ones(5), p=2), "epsilon": 0.3}, Gaussian, "sampled"),
        (LogisticRegression(), {"n_draws": 50}, Splitting, "deterministic"),
        (LogisticRegression(), {"noise": "uniform", "epsilon": 0.3}, Uniform, "sampled"),
    ],
)
def test_the_fastest_sound_way_is_taken(estimator, options, noise, level):
    model = SmoothedClassifier(estimator, random_state=0, **options).fit(X, Y)
    assert (type(model.noise_), model.guarantee_.level) == (noise, level)
    assert (level == "sampled") == (model.guarantee_.delta > 0)
    h = model.predict_proba(X[:30])
    np.testing.assert_allclose(h.sum(axis=1), 1, atol=1e-9)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(h, again.predict_proba(X[:30]))
    assert set(model.decide(X, random_state=0)) <= {0, 1}


def test_a_sum_of_trees_that_may_leave_the_range_is_split_instead():
    y = X[:, 0] + 0.1 * X[:, 1]
    model = SmoothedRegressor(HistGradientBoostingRegressor(max_iter=5), random_state=0).fit(X, y)
    assert model.guarantee_.level in ("exact", "deterministic")
    strict = SmoothedRegressor(
        HistGradientBoostingRegressor(max_iter=20), output_range=(-0.5, 0.5), random_state=0
    ).fit(X, y)
    assert (type(strict.noise_), strict.guarantee_.level) == (Splitting, "deterministic")
    assert SmoothedRegressor(DecisionTreeRegressor(), random_state=0).fit(X, y).guarantee_.level == "exact"
    assert SmoothedRegressor(Ridge(), random_state=0).fit(X, y).guarantee_.level == "deterministic"


MODELS = [
    LogisticRegression(),
    KNeighborsClassifier(),
    SVC(),
    MLPClassifier((8,), max_iter=2000, random_state=0),
    RandomForestClassifier(5, random_state=0),
    HistGradientBoostingClassifier(max_iter=10),
    GradientBoostingClassifier(n_estimators=5),
    make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=4)),
]


@pytest.mark.parametrize("noise", ["gaussian", "splitting"])
@pytest.mark.parametrize("estimator", MODELS, ids=lambda e: type(e).__name__)
def test_bits_do_not_depend_on_batch_order_or_threads(estimator, noise):
    vote = "soft" if hasattr(estimator, "predict_proba") else "hard"
    options = {"noise": noise, "vote": vote, "random_state": 0, "n_draws": 300}
    model = SmoothedClassifier(estimator, n_jobs=1, **options).fit(X, Y)
    h = model.predict_proba(X)
    np.testing.assert_array_equal(h, model.set_params(n_jobs=2).predict_proba(X))
    for size in (1, 3):
        parts = [model.predict_proba(X[a : a + size]) for a in range(0, 12, size)]
        np.testing.assert_array_equal(h[:12], np.concatenate(parts))
    np.testing.assert_array_equal(h[::-1], model.predict_proba(np.asfortranarray(X[::-1])))


def test_equal_people_are_scored_once():
    rows = []

    def model(batch):
        rows.append(len(batch))
        return (batch[:, 0] > 0).astype(int)

    for noise in ("gaussian", "splitting"):
        smooth = SmoothedClassifier(model, metric=WeightedLp(np.r_[np.ones(4), 0.0]), noise=noise, n_draws=100)
        smooth.fit(X, Y)
        rows.clear()
        people = np.repeat(X[:3], 50, axis=0)
        people[:, 4] = np.arange(150)  # a column that must not matter
        smooth.predict_proba(people)
        assert sum(rows) == 512  # 3 * 100, filled up


def test_many_people_share_a_call_where_rows_are_known_to_stand_alone():
    calls = []

    class Counting(DecisionTreeClassifier):
        def predict(self, X, check_input=True):
            calls.append(len(X))
            return super().predict(X, check_input)

    options = {"noise": "gaussian", "n_draws": 100, "random_state": 0}
    model = SmoothedClassifier(make_pipeline(StandardScaler(), DecisionTreeClassifier()), **options).fit(X, Y)
    inner = model.estimator_.steps[-1][1]
    predict = type(inner).predict
    inner.predict = lambda rows: calls.append(len(rows)) or predict(inner, rows)
    model.predict_proba(X)
    assert calls == [240 * 100]
    model = SmoothedClassifier(Counting(), **options).fit(X, Y)
    calls.clear()
    model.predict_proba(X)
    assert calls == [32_768]  # a subclass may do anything; this one was tried out, and is called in the sizes tried


def test_what_is_known_to_treat_rows_one_by_one():
    table = make_column_transformer((OneHotEncoder(), [0]), remainder="passthrough")
    assert is_rowwise(make_pipeline(table, HistGradientBoostingClassifier()))
    assert is_rowwise(RandomForestClassifier())
    assert not is_rowwise(RandomForestClassifier(n_jobs=2))
    assert not is_rowwise(make_pipeline(StandardScaler(), LogisticRegression()))
    assert not is_rowwise(make_pipeline(make_column_transformer((SVC(), [0])), DecisionTreeClassifier()))


def test_kept_values_can_differ_between_draws():
    """What tables need: a value that is kept in some draws and replaced in others."""
    draws = Shift(np.array([[True, False], [False, True]]), np.array([[0.0, 7.0], [8.0, 0.5]]))
    np.testing.assert_array_equal(draws.apply(np.array([1.0, 2.0])), [[1.0, 7.0], [8.0, 2.5]])
    hidden = Shift(np.array([True, False]), np.array([[1.0, 3.0]]))
    np.testing.assert_array_equal(hidden.apply(np.array([1.0, np.inf])), [[2.0, 3.0]])


def test_a_prefix_of_the_draws_is_stable_however_they_are_cut():
    shared = SharedDraws.from_training_data(Gaussian.for_metric(WeightedLp([1.0, 0.0, 2.0])), np.eye(3), seed=5)
    whole = np.concatenate([draws.apply(np.zeros(3)) for _, draws in shared.iter_draws([9000])])
    ends, cut = zip(*shared.iter_draws([100, 4096, 5000, 9000]), strict=True)
    assert ends == (100, 4096, 5000, 8192, 9000)
    np.testing.assert_array_equal(whole, np.concatenate([draws.apply(np.zeros(3)) for draws in cut]))


def test_importing_the_package_does_not_load_the_compiler():
    code = "import sys, likewise; assert not {'numba', 'torch', 'matplotlib'} & set(sys.modules), 'heavy'"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_intervals_of_all_classes_hold_at_once(n_classes):
    """Two classes have one free probability; more of them share delta, and epsilon is that of all sets of classes."""
    rows, labels = X[:30], np.arange(30) % n_classes
    options = {"metric": WeightedLp(np.ones(5)), "noise": "gaussian", "n_draws": 400, "delta": 0.01, "random_state": 0}
    share = 0.01 if n_classes == 2 else 0.01 / n_classes

    def band(z):
        return (np.floor(3 * z[:, 0]).astype(int) % n_classes).astype(labels.dtype)

    hard = SmoothedClassifier(band, **options).fit(rows, labels)
    soft = SmoothedClassifier(lambda z: np.eye(n_classes)[band(z)], vote="soft", **options).fit(rows, labels)
    for model, interval in ((hard, clopper_pearson), (soft, hoeffding)):
        found = model.certify(rows[:5])
        expected = interval(found.estimate, 400, share)
        np.testing.assert_allclose((found.lower, found.upper), expected, rtol=0, atol=1e-12)
        assert model.guarantee_.epsilon == error_margin(400, 0.01, n_classes)
