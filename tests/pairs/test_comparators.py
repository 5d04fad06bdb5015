"""Searches over boxes find the comparators that comparing every pair finds."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from likewise import FunctionMetric, TableMetric, WeightedLp, audit_groups, review_files
from likewise.auditing import file_review, group_audit


def drawn(seed, n=400, *, blanks=True):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "income": rng.integers(10, 90, n).astype(float),
            "debt": rng.integers(0, 160, n) / 4,
            "region": rng.choice(["north", "south", "west"], n),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    if blanks:
        X.loc[rng.random(n) < 0.1, "income"] = np.nan
    scores = np.clip(0.3 + 0.004 * X["income"].fillna(50) + 0.05 * (X["sex"] == "m") + rng.normal(0, 0.1, n), 0, 1)
    return X, scores.round(3).to_numpy()


def metric_of(size):
    """Weights are powers of two and values few bits long: sums are exact, and equal distances are equal."""
    numbers = {"income": size * 2.0**-6, "debt": size * 2.0**-5}
    return TableMetric(numbers, {"region": 2.0**-3, "sex": 0}, missing={"income": 0.25})


def by_boxes(monkeypatch, module):
    monkeypatch.setattr(module, "_AT_ONCE", 0)


@pytest.mark.parametrize("size", [0.125, 1.0, 4.0])
def test_people_who_exceed_are_counted_as_by_every_pair(size, monkeypatch):
    X, scores = drawn(int(10 * size))
    every = audit_groups(None, X, metric_of(size), predictions=scores, n_permutations=19)
    by_boxes(monkeypatch, group_audit)
    found = audit_groups(None, X, metric_of(size), predictions=scores, n_permutations=19)
    pd.testing.assert_frame_equal(found.people, every.people)
    pd.testing.assert_frame_equal(found.groups, every.groups)
    assert found.n_violations == every.n_violations > 0 or size == 4.0
    assert found.rate_interval == every.rate_interval


def test_boxes_that_exceed_as_a_whole_are_counted_for_both_sides(monkeypatch):
    X, scores = drawn(8, blanks=False)  # the range of a box with blanks is unlimited
    scores = np.where(X["debt"] > 20, 0.1, 0.8) + 0.1 * scores
    every = audit_groups(None, X, metric_of(0.01), predictions=scores, n_permutations=19)
    by_boxes(monkeypatch, group_audit)
    found = audit_groups(None, X, metric_of(0.01), predictions=scores, n_permutations=19)
    pd.testing.assert_frame_equal(found.people, every.people)


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.8), (0.8, 0.1)])
def test_boxes_split_along_a_column_are_counted_whichever_has_the_higher_scores(low, high, monkeypatch):
    # The column is wider than the scores, so boxes are split along it, and the second box may have the lower scores.
    X, scores = drawn(9, blanks=False)
    scores = np.where(X["debt"] > 20, high, low) + 0.01 * scores
    metric = TableMetric({"income": 2.0**-20, "debt": 2.0**-5}, {"region": 0, "sex": 0})
    every = audit_groups(None, X, metric, predictions=scores, n_permutations=19)
    by_boxes(monkeypatch, group_audit)
    found = audit_groups(None, X, metric, predictions=scores, n_permutations=19)
    pd.testing.assert_frame_equal(found.people, every.people)
    assert every.n_violations > 0


QUESTIONS = {
    "distance": (None, 1.0),
    "dominance": ({"income": "higher", "debt": "lower"}, None),
    "same": ({"income": "higher", "region": "same"}, None),
    "both": ({"debt": "lower", "region": "same"}, 0.5),
}


@pytest.mark.parametrize(("size", "question"), [*product([0.5, 2.0], QUESTIONS)])
@pytest.mark.parametrize("n", [1, 7])
def test_comparators_are_those_of_every_pair(size, question, n, monkeypatch):
    X, scores = drawn(3)
    better, threshold = QUESTIONS[question]
    given = {"better": better, "metric": metric_of(size), "n_comparators": n}
    given["threshold"] = None if threshold is None else 0.25 * threshold
    every = review_files(X, scores > 0.5, **given)
    by_boxes(monkeypatch, file_review)
    found = review_files(X, scores > 0.5, **given)
    pd.testing.assert_frame_equal(found.files, every.files)
    pd.testing.assert_frame_equal(found.pairs, every.pairs)
    assert found.n_pairs == every.n_pairs > 0


def test_a_distance_that_is_a_function_is_the_metric_that_it_is(monkeypatch):
    X, scores = drawn(5, 60, blanks=False)
    rows = X[["income", "debt"]].to_numpy()
    plain = FunctionMetric(lambda a, b: np.abs(a - b) @ [0.01, 0.02])
    known = WeightedLp([0.01, 0.02])
    by_boxes(monkeypatch, file_review)
    found, expected = (review_files(rows, scores > 0.5, metric=each, threshold=0.2) for each in (plain, known))
    pd.testing.assert_frame_equal(found.files, expected.files)


def test_nobody_to_compare_with_is_no_error():
    X, _ = drawn(6, 20)
    X["income"] = np.where(np.arange(20) > 9, 1.0, np.nan)  # a blank compares with a blank only
    found = review_files(X, np.arange(20) > 9, better={"income": "higher"})
    assert len(found.files) == len(found.pairs) == found.n_pairs == 0
