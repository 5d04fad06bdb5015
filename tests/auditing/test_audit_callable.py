"""Audits under a distance that is a function: every pair, with the same result as where boxes decide most of them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import manhattan_distances

from likewise import FunctionMetric, InvalidInputError, WeightedLp, audit
from likewise.auditing import audit as violations

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(200, 3)), RNG.normal(size=(20, 3)).repeat(2, axis=0)])
Y = (X @ [1.0, -2.0, 0.5] > 0).astype(int)
SCALES = np.array([0.2, 0.3, 0.1])


def l1(A, B):
    return (np.abs(np.asarray(A) - np.asarray(B)) * SCALES).sum(axis=1)


def all_l1(A, B):
    return manhattan_distances(np.asarray(A) * SCALES, np.asarray(B) * SCALES)


METRICS = [FunctionMetric(l1), FunctionMetric(all_l1, pairwise=True), FunctionMetric(l1, scale=0.5)]


@pytest.mark.parametrize("metric", METRICS, ids=["by row", "pairwise", "scaled"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_function_is_audited_as_the_weights_that_it_stands_for(metric, n_classes):
    model = LogisticRegression().fit(X, np.digitize(X[:, 0], np.linspace(-0.5, 0.5, n_classes - 1)))
    own, expected = audit(model, X, metric), audit(model, X, WeightedLp(SCALES * metric.scale))
    for name in ("n_pairs", "n_violations", "n_samples", "n_distinct", "tolerance"):
        assert getattr(own, name) == getattr(expected, name), name
    assert own.n_violations > 100
    assert own.max_excess == pytest.approx(expected.max_excess, rel=1e-12)
    assert own.max_ratio == pytest.approx(expected.max_ratio, rel=1e-9)
    assert own.n_compared == own.n_distinct * (own.n_distinct - 1) // 2
    for column in ("row_a", "row_b", "n_pairs"):
        assert own.violations[column].tolist() == expected.violations[column].tolist()
    for column in ("difference", "distance", "excess", "ratio"):
        np.testing.assert_allclose(own.violations[column], expected.violations[column], rtol=1e-9)
    np.testing.assert_allclose(own.sample, expected.sample, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("limits", [None, (-3.0, 5.0)])
def test_numbers_and_equal_people_with_different_answers(limits):
    rows = np.concatenate([X[:150], X[:2]])  # few enough to be asked about again together
    answers = rows[:, 0] + np.append(np.zeros(150), [0.5, 0.0])
    model = (lambda rows: answers) if limits is None else None
    options = {} if limits is None else {"predictions": np.clip(answers, *limits), "output_range": limits}
    own = audit(model, rows, FunctionMetric(l1), **options)
    expected = audit(model, rows, WeightedLp(SCALES), **options)
    assert own.n_violations == expected.n_violations > 0
    assert own.max_excess == pytest.approx(expected.max_excess, rel=1e-12)
    assert own.max_ratio == expected.max_ratio == np.inf
    assert own.violations["n_pairs"].tolist() == expected.violations["n_pairs"].tolist()


def unlike(A, B):
    """Years, and 0.2 for another town."""
    return 0.01 * np.abs(A["age"] - B["age"]) + 0.2 * (A["town"].map(str) != B["town"].map(str))


def test_tables_are_audited_by_functions_of_tables():
    people = pd.DataFrame({"age": [30, 31, 30, 50], "town": ["a", "a", "b", None]})
    metric = FunctionMetric(unlike, takes_tables=True)
    found = audit(None, people, metric, predictions=[0.2, 0.3, 0.5, 0.9], tolerance=1e-6)
    # Differences less distances, by hand; 1 and 2 are 0.2 apart at a distance of 0.21.
    expected = {(0, 3): 0.7 - 0.4, (1, 3): 0.6 - 0.39, (0, 2): 0.3 - 0.2, (0, 1): 0.1 - 0.01}
    listed = {(a, b): e for a, b, e in found.violations[["row_a", "row_b", "excess"]].itertuples(index=False)}
    assert listed == {pair: pytest.approx(excess) for pair, excess in expected.items()}
    assert list(listed) == list(expected)
    assert found.n_violations == 4
    assert found.violations["differs"][0] == "age: 30 / 50, town: a / missing"


def test_what_cannot_be_asked_about_every_pair_says_what_to_do(monkeypatch, tmp_path):
    pd.DataFrame(X).rename(columns=str).to_parquet(tmp_path / "people.parquet")
    with pytest.raises(
        InvalidInputError, match=r"X must be a table in memory for FunctionMetric.*got a path.*as a pandas"
    ):
        audit(None, tmp_path / "people.parquet", FunctionMetric(l1), predictions="0")
    monkeypatch.setattr(violations, "_MAX_COMPARED", 219)
    with pytest.raises(InvalidInputError, match=r"at most 219 distinct people for FunctionMetric.*got 220.*Draw some"):
        audit(None, X, FunctionMetric(l1), predictions=Y.astype(float))
    monkeypatch.setattr(violations, "_MAX_COMPARED", 220)
    audit(None, X, FunctionMetric(l1), predictions=Y.astype(float))


def test_what_is_no_distance_is_not_audited_by():
    with pytest.raises(InvalidInputError, match="be the same in both directions"):
        audit(None, X, FunctionMetric(lambda A, B: np.maximum(0, A[:, 0] - B[:, 0])), predictions=Y.astype(float))
