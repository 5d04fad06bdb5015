"""compare and tradeoff fit no model twice to the same people, and find what they would have found."""

from collections import Counter
from contextlib import contextmanager

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from likewise import (
    AdditiveClassifier,
    AdditiveRegressor,
    FunctionMetric,
    SmoothedClassifier,
    TableMetric,
    compare,
    tradeoff,
)
from likewise._fit_validation import TrainingData
from likewise.selection.cross_validation import FoldFits

RNG = np.random.default_rng(0)
N = 120
X = pd.DataFrame({"age": RNG.integers(20, 70, N), "income": RNG.normal(size=N), "job": RNG.choice(list("abc"), N)})
Y = (X["age"] / 25 + X["income"] + RNG.normal(size=N) > 2).to_numpy(int)
METRIC = TableMetric({"age": 0.01, "income": 0.2}, {"job": 0.1})
METHODS = ["additive", "projection", "smoothing", "augmented"]
TIMES = ["microseconds", "fit_seconds"]


@contextmanager
def counted_fits(*estimators, reuse=True):
    """Counts of fits by class, parameters and data."""
    counts = Counter()

    def counting(fit):
        def counted(self, X, *args, **kwargs):
            data = (X.people.rows, X.y) if isinstance(X, TrainingData) else (np.asarray(X), np.asarray(args[0]))
            counts[joblib.hash((type(self).__name__, self.get_params(), *data))] += 1
            return fit(self, X, *args, **kwargs)

        return counted

    with pytest.MonkeyPatch.context() as patch:
        for estimator in estimators:
            name = "learn" if hasattr(estimator, "learn") else "fit"
            patch.setattr(estimator, name, counting(getattr(estimator, name)))
        if not reuse:
            patch.setattr(FoldFits, "find", lambda *args: None)
        yield counts


def most_fits(work, *estimators, reuse=True):
    """The result, and how often the same model was fitted to the same people, at most."""
    with counted_fits(*estimators, reuse=reuse) as counts:
        result = work()
    assert counts
    return result, max(counts.values())


@pytest.mark.parametrize(
    ("y", "estimator"),
    [(Y, AdditiveClassifier), (X["age"] + RNG.normal(size=N), AdditiveRegressor)],
    ids=["classification", "regression"],
)
def test_no_model_is_fitted_twice_to_the_same_people_and_results_are_the_same(y, estimator):
    def work():
        return compare(X, y, METRIC, METHODS, cv=2, n_draws=10).table

    found, most = most_fits(work, estimator)
    alone, most_alone = most_fits(work, estimator, reuse=False)
    assert (most, most_alone) == (1, 2)  # the latter is the control
    pd.testing.assert_frame_equal(found.drop(columns=TIMES), alone.drop(columns=TIMES), check_exact=True)


def test_seconds_of_a_fit_are_as_if_it_were_fitted_alone(monkeypatch):
    table = compare(X, Y, METRIC, ["projection", "additive"], cv=2, n_draws=10).table
    assert table.loc["projection", "fit_seconds"] > table.loc["additive", "fit_seconds"]
    monkeypatch.setattr(FoldFits, "pop_seconds", lambda self: -1000.0)  # the control: they are added
    assert compare(X, Y, METRIC, ["constant"], cv=2).table.loc["constant", "fit_seconds"] < 0


def test_what_a_method_of_ones_own_fits_inside_is_taken_from_the_model_beside_it():
    forest = RandomForestClassifier(5, random_state=0)
    numbers = X[["age", "income"]]

    def work():
        own = [("smoothed", SmoothedClassifier(forest, n_draws=10, random_state=0)), ("forest", forest)]
        return compare(numbers, Y, TableMetric({"age": 0.01, "income": 0.2}), own, cv=2).table

    assert most_fits(work, RandomForestClassifier)[1] == 1
    assert most_fits(work, RandomForestClassifier, reuse=False)[1] == 2


def test_another_seed_or_other_people_are_fitted():
    forests = [("one", RandomForestClassifier(5, random_state=0)), ("other", RandomForestClassifier(5, random_state=1))]
    smoothed = [("smoothed", SmoothedClassifier(RandomForestClassifier(5, random_state=2), n_draws=10, random_state=0))]
    numbers, metric = X[["age", "income"]], TableMetric({"age": 0.01, "income": 0.2})
    with counted_fits(RandomForestClassifier) as counts:
        compare(numbers, Y, metric, forests + smoothed, cv=2)
    assert set(counts.values()) == {1}
    assert len(counts) == 6


def test_a_trade_off_of_smoothing_fits_its_model_once_per_fold():
    def work():
        return tradeoff(X, Y, METRIC, [0.5, 1, 2], method="smoothing", cv=2, n_draws=10).table

    found, most = most_fits(work, HistGradientBoostingClassifier)
    alone, most_alone = most_fits(work, HistGradientBoostingClassifier, reuse=False)
    assert (most, most_alone) == (1, 3)
    pd.testing.assert_frame_equal(found.drop(columns=TIMES), alone.drop(columns=TIMES), check_exact=True)


def test_estimators_that_cannot_be_hashed_are_not_taken_for_each_other():
    numbers, metric = X[["age", "income"]], TableMetric({"age": 0.01, "income": 0.2})

    def chain(factor, **parameters):
        return make_pipeline(FunctionTransformer(lambda rows: rows * factor), Model(**parameters))

    class Model(RandomForestClassifier):
        n_fits = 0

        def fit(self, X, y, sample_weight=None):
            Model.n_fits += 1
            return super().fit(X, y, sample_weight)

    one, other = chain(1, n_estimators=2, random_state=0), chain(2, n_estimators=3, random_state=1)
    compare(numbers, Y, metric, [("one", one), ("smoothed", SmoothedClassifier(other, n_draws=10))], cv=2)
    assert Model.n_fits == 4


def test_a_metric_that_cannot_be_hashed_is_no_obstacle():
    metric = FunctionMetric(lambda a, b: abs(a["age"] - b["age"]) / 100, takes_tables=True)
    table = compare(X, Y, metric, ["projection"], cv=2).table
    assert table.loc["projection", "violations"] == 0
