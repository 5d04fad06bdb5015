"""What is measured on folds, of models whose figures are known beforehand."""

import itertools

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from likewise import FunctionMetric, WeightedLp, compare
from likewise.base import ConstrainedClassifier
from likewise.inspection.baselines import proper_losses
from likewise.kernel.bounds import Bound
from likewise.kernel.certificate import Estimate
from likewise.selection import cross_validation as holdout
from likewise.selection.cross_validation import compute_scores
from likewise.selection.methods import _task_of
from promised import Promised, promise

X = np.linspace(0, 1, 60)[:, None]
Y = np.arange(60) % 2
METRIC = WeightedLp([1.0])
ORDER = np.random.default_rng(0).permutation(60)
HELD_OUT = [ORDER[:10], ORDER[10:26], ORDER[26:]]  # 10, 16 and 34 people, so 50, 44 and 26 to learn from
FOLDS = [(np.setdiff1d(ORDER, held), held) for held in HELD_OUT]


class SteepScorer(Promised):
    """A line of slope 1 with a jump on top."""

    def estimate(self, people, *, verbose=False):
        x = people.rows[:, 0]
        p = 0.8 * x + 0.05 * (x > 0.5)
        return Estimate.certain(np.stack([1 - p, p], axis=1))

    def visible(self, people):
        return people.rows


class Loose(ConstrainedClassifier):
    """Promises less the more people it has learned from: epsilon 0.05, 0.044 and 0.026 on these folds."""

    def __init__(self, metric=None):
        self.metric = metric

    def learn(self, data, metric):
        n = len(data)
        level = {50: "exact", 44: "sampled", 26: "deterministic"}[n]
        return SteepScorer(promise(metric, Bound(), level, "For a test.", slack=n / 1000, n_draws=n))


def test_a_row_has_the_weakest_promise_the_most_evaluations_and_all_people_of_the_folds():
    row = compare(X, Y, METRIC, [("loose", Loose())], cv=FOLDS).table.loc["loose"]
    assert (row["epsilon"], row["level"], row["evaluations"]) == (0.05, "sampled", 50)
    assert (row["people"], row["pairs"]) == (60, 45 + 120 + 561)
    assert row["guarantee"]


class Elsewhere(ClassifierMixin, BaseEstimator):
    """A constant, with a promise under a metric of its own."""

    def __init__(self, weight):
        self.weight = weight

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.guarantee_ = promise(WeightedLp([self.weight]), Bound(), "exact", "For a test.")
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


@pytest.mark.parametrize(("weight", "level"), [(1.0, "exact"), (9.0, "none")])
def test_a_promise_under_another_metric_is_none(weight, level):
    found = compare(X, Y, METRIC, [("own", Elsewhere(weight))], cv=FOLDS)
    row = found.table.loc["own"]
    assert (row["guarantee"], row["level"]) == (level == "exact", level)
    assert found.results["own"].keeps_guarantee == (level == "exact")
    assert np.isnan(row["epsilon"]) == (level == "none")


def test_means_and_standard_errors_are_over_folds_and_not_over_people():
    result = compare(X, Y, METRIC, [("loose", Loose())], cv=FOLDS)
    p = 0.8 * X[:, 0] + 0.05 * (X[:, 0] > 0.5)
    brier = [((p - Y)[held] ** 2).mean() for held in HELD_OUT]
    row = result.table.loc["loose"]
    assert row["brier"] == pytest.approx(np.mean(brier))
    assert row["brier_se"] == pytest.approx(np.std(brier, ddof=1) / np.sqrt(3))
    found = result.results["loose"]
    np.testing.assert_allclose(found.losses, (p - Y) ** 2)
    np.testing.assert_allclose(found.predictions[:, 1], p)


def test_pairs_may_differ_by_the_distance_and_what_is_promised_beyond_it():
    """The jump is 0.05: less than D + 0.05 for every pair, and more than D + 0.026 for those across it and close."""
    table = compare(X, Y, METRIC, [("loose", Loose())], cv=FOLDS).table
    p, expected = 0.8 * X[:, 0] + 0.05 * (X[:, 0] > 0.5), 0
    for (trained, held), (i, j) in itertools.product(FOLDS, itertools.combinations(range(34), 2)):
        if j < len(held):
            a, b = held[i], held[j]
            expected += abs(p[a] - p[b]) > abs(X[a, 0] - X[b, 0]) + len(trained) / 1000
    assert table.loc["loose", "violations"] == expected > 0
    assert "violates its guarantee" in table.loc["loose", "note"]


def test_seconds_are_per_person_measured_and_per_fold(monkeypatch):
    """By clocks that go on by a second with every look at them; scikit-learn times the fit by its own."""
    for clock in ("perf_counter", "time"):
        monkeypatch.setattr(holdout.time, clock, itertools.count(0.0).__next__)
    slow = compare(X, Y, METRIC, ["smoothing"], cv=FOLDS, n_people=5, n_draws=3).table
    assert slow.loc["smoothing", "microseconds"] == pytest.approx(1e6 / 5)
    assert slow.loc["constant", "microseconds"] == pytest.approx(np.mean([1e6 / len(held) for held in HELD_OUT]))
    assert slow.loc["constant", "fit_seconds"] == 1.0
    assert slow.loc[["smoothing", "constant"], "pairs"].tolist() == [30, 30]
    assert slow.loc[["smoothing", "constant"], "people"].tolist() == [15, 60]


class Jagged(ClassifierMixin, BaseEstimator):
    def __init__(self, n_classes):
        self.n_classes = n_classes

    def fit(self, X, y):
        self.classes_ = np.arange(self.n_classes)
        return self

    def predict_proba(self, X):
        p = np.stack([1 + np.sin((k + 2) * 5 * X[:, 0]) for k in range(self.n_classes)], axis=1) + 0.1
        return p / p.sum(axis=1, keepdims=True)


class Line(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        return self

    def predict(self, X):
        return 100 + 300 * np.sin(9 * X[:, 0])


def absolute(A, B):
    return np.abs(np.asarray(A) - np.asarray(B)).sum(axis=1)


@pytest.mark.parametrize(
    ("model", "y"), [(Jagged(2), Y), (Jagged(3), np.arange(60) % 3), (Line(), np.linspace(-200, 400, 60))]
)
def test_a_metric_without_weights_has_the_violations_of_the_same_one_with_them(model, y):
    cv = [(np.arange(60), np.arange(30)), (np.arange(60), np.arange(30, 60))]
    counts = [
        compare(X, y, metric, [("ours", model)], cv=cv).table.loc["ours", "violations"]
        for metric in (METRIC, FunctionMetric(absolute))
    ]
    if not hasattr(model, "n_classes"):  # in units of the range, which is 600 wide
        answers = model.predict(X) / 600
        difference = np.abs(answers[:, None] - answers)
    else:
        p = model.fit(X, y).predict_proba(X)
        difference = np.abs(p[:, None] - p).sum(axis=2) / 2
    exceeds = np.triu(difference > np.abs(X - X.T) + 1e-9, 1)
    assert counts == [exceeds[:30, :30].sum() + exceeds[30:, 30:].sum()] * 2
    assert 0 < counts[0] < 2 * 435


def test_the_sample_of_a_fold_is_spread_over_the_outcomes():
    outcomes = np.array([5.0, 1.0, 3.0, 2.0, 4.0, 0.0])
    assert holdout._even_sample(outcomes, 3).tolist() == [0, 3, 5]  # 0, 2 and 5: the ends and about the middle
    assert holdout._even_sample(outcomes, 9).tolist() == [0, 1, 2, 3, 4, 5]


def test_a_class_that_a_fold_did_not_have_gets_no_probability():
    found = holdout.align_classes(np.array([[0.25, 0.75]]), np.array(["a", "c"]), np.array(["a", "b", "c"]))
    assert found.tolist() == [[0.25, 0.0, 0.75]]


def test_figures_of_two_and_three_classes_by_hand():
    two = np.array([[0.75, 0.25], [0.5, 0.5], [0.25, 0.75], [0.9, 0.1]])
    y, ab = np.array([*"abba"]), np.array(["a", "b"])
    np.testing.assert_allclose(proper_losses(two, y, ab), [0.0625, 0.25, 0.0625, 0.01])
    found = compute_scores(two, y, ab)
    assert found["brier"] == pytest.approx(0.385 / 4)
    assert found["accuracy"] == 0.75  # of equal probabilities the first is taken
    assert found["confidence"] == pytest.approx((0.75 + 0.5 + 0.75 + 0.9) / 4)
    assert found["log_loss"] == pytest.approx(-np.log([0.75, 0.5, 0.75, 0.9]).mean())
    assert found["auc"] == 1.0
    three = np.array([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5], [0.0, 1.0, 0.0]])
    y, abc = np.array([*"abc"]), np.array([*"abc"])
    np.testing.assert_allclose(proper_losses(three, y, abc), [0.1875, 0.4375, 1.0])
    found = compute_scores(three, y, abc)
    assert found["log_loss"] == pytest.approx(-np.log([0.5, 0.25, 1e-15]).mean())
    # a: above both others; b: ties with one and is below the other; c: below both others
    assert found["auc"] == pytest.approx((1.0 + 0.25 + 0.0) / 3)
    assert np.isnan(compute_scores(two[:1], np.array(["a"]), ab)["auc"])


def test_figures_of_numbers_by_hand():
    found = compute_scores(np.array([1.0, 2.0, 6.0]), np.array([2.0, 2.0, 5.0]), None)
    assert found == pytest.approx({"squared_error": 2 / 3, "rmse": np.sqrt(2 / 3), "r2": 1 - (2 / 3) / 2})
    assert np.isnan(compute_scores(np.array([1.0]), np.array([1.0]), None)["r2"])


@pytest.mark.parametrize(
    ("outcomes", "task"),
    [
        (np.arange(20), "classification"),
        (np.arange(21), "regression"),
        (np.arange(20.0), "classification"),
        (np.array([0.5, 1.0]), "regression"),
        (np.array(["a", "b"]), "classification"),
        (np.array([True, False]), "classification"),
    ],
)
def test_up_to_twenty_whole_numbers_are_classes(outcomes, task):
    assert _task_of(outcomes) == task
