"""Fits of small tables do not start threads that would wait for each other."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from threadpoolctl import threadpool_info, threadpool_limits

from likewise import SmoothedClassifier, WeightedLp, compare
from likewise._parallel import _SMALL, threads_for


def threads():
    """Threads that BLAS and OpenMP would start."""
    return {each["num_threads"] for each in threadpool_info()}


SEEN = set()


class Counting(ClassifierMixin, BaseEstimator):
    """A constant that remembers with how many threads it was fitted."""

    def fit(self, X, y):
        SEEN.update(threads())
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


@pytest.fixture
def two_threads():
    SEEN.clear()
    with threadpool_limits(2):
        assert 2 in threads()  # libraries that were built for one thread keep to it
        yield


def test_one_thread_for_a_small_table_and_those_given_for_a_large_one(two_threads):
    before = threads()
    with threads_for(_SMALL - 1):
        assert threads() == {1}
    with threads_for(_SMALL):
        assert threads() == before
    assert threads() == before


X, Y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2


@pytest.mark.parametrize(
    "fit",
    [
        lambda: compare(X, Y, WeightedLp([0.1, 0.1]), methods=[("counting", Counting())], cv=2),
        lambda: SmoothedClassifier(Counting(), metric=WeightedLp([0.1, 0.1]), n_draws=10).fit(X, Y),
    ],
    ids=["compare", "inner model"],
)
def test_models_are_fitted_with_one_thread(two_threads, fit):
    fit()
    assert {1} == SEEN
