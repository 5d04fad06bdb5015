"""Distances after a linear map: closed forms, enforcement on all pairs, and controls."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from likewise import (
    AdditiveClassifier,
    MahalanobisMetric,
    ProjectedClassifier,
    WeightedLp,
    attack,
    audit,
    audit_groups,
    ceiling,
    effect,
    group_gaps,
    learn_metric,
    review_files,
)
from likewise.exceptions import InvalidInputError


def some_people(n=120, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    return X, X[:, 0] + 0.3 * rng.normal(size=n) > 0


# -- closed forms ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 1.5, 2, np.inf])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_distance_is_the_norm_after_the_map(p, k):
    rng = np.random.default_rng(k)
    A, X = rng.normal(size=(k, 3)), rng.normal(size=(20, 3))
    D = MahalanobisMetric(A, p).pairwise(X)
    expected = np.linalg.norm((X[:, None] - X[None]) @ A.T, ord=p, axis=2)
    np.testing.assert_allclose(D, expected, atol=1e-12)


@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_features_in_units_of_any_size_keep_their_digits(p):
    rng = np.random.default_rng(0)
    A, X = rng.normal(size=(2, 4)), rng.normal(size=(12, 4)) + 3
    units = np.array([1e-15, 1.0, 1e9, 1e-4])
    metric, given = MahalanobisMetric(A * units, p), X / units
    for a, b in zip(given[:6], given[6:], strict=True):
        change = [Fraction(x) - Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        rows = [[Fraction(m) for m in row] for row in metric.components.tolist()]
        parts = [abs(sum(m * x for m, x in zip(row, change, strict=True))) for row in rows]
        expected = {1: sum(parts), 2: math.sqrt(sum(part**2 for part in parts)), np.inf: max(parts)}[p]
        assert metric(a[None], b[None])[0] == pytest.approx(float(expected), rel=1e-12)
    np.testing.assert_allclose(metric.encoder().decode(metric.encoder().encode(given)), given, rtol=1e-12)


def test_a_covariance_gives_the_mahalanobis_distance():
    X, _ = some_people()
    C = np.cov(X.T)
    D = MahalanobisMetric.from_covariance(C, scale=0.2).pairwise(X)
    np.testing.assert_allclose(D, 0.2 * cdist(X, X, "mahalanobis", VI=np.linalg.inv(C)), atol=1e-12)


def test_scales_of_single_features_are_a_weighted_lp():
    X, _ = some_people()
    for p, weights in ((1, [0.1, 0.2, 0.3]), (2, [0.01, 0.04, 0.09]), (np.inf, [0.1, 0.2, 0.3])):
        same = MahalanobisMetric(np.diag([0.1, 0.2, 0.3]), p)
        np.testing.assert_allclose(same.pairwise(X), WeightedLp(weights, p).pairwise(X), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_people_who_differ_along_a_free_direction_are_at_distance_0(seed):
    rng = np.random.default_rng(seed)
    V, scales, X = rng.normal(size=(2, 4)), rng.uniform(0.5, 2, 4), rng.normal(size=(10, 4))
    metric = MahalanobisMetric.from_directions(V, scales=scales)
    moved = X + rng.normal(size=(10, 2)) @ V
    np.testing.assert_allclose(metric(X, moved), 0, atol=1e-12)
    # What is left is the Euclidean distance to the subspace.
    Q = np.linalg.qr((V * scales).T)[0]
    z = (X[0] - X[1]) * scales
    assert metric(X[:1], X[1:2])[0] == pytest.approx(np.linalg.norm(z - Q @ (Q.T @ z)))


def test_what_a_logistic_regression_sees_of_the_group_must_not_matter():
    rng = np.random.default_rng(0)
    group = rng.random(2000) < 0.5
    X = rng.normal(size=(2000, 3)) * [1, 10, 0.1]
    X[:, 1] += 30 * group  # the group is seen in one feature alone
    metric = MahalanobisMetric.from_protected(X, group, scale=0.1)
    unit = np.eye(3)
    scales = metric(unit * X.std(axis=0), np.zeros((1, 3)))
    assert scales[1] < 0.02
    np.testing.assert_allclose(scales[[0, 2]], 0.1, rtol=0.02)
    coefficients = LogisticRegression(max_iter=1000).fit((X - X.mean(axis=0)) / X.std(axis=0), group).coef_
    direction = coefficients * X.std(axis=0)
    assert metric(np.zeros((1, 3)), direction)[0] == pytest.approx(0, abs=1e-9)


def test_a_map_and_back_is_the_same_people_in_any_batch():
    X, _ = some_people(d=4)
    encoder = MahalanobisMetric.from_directions([[1.0, 2, 3, 4]], scales=0.1).encoder(X)
    rows = encoder.encode(X)
    np.testing.assert_allclose(encoder.decode(rows), X, atol=1e-10)
    for i in (0, 17):
        np.testing.assert_array_equal(encoder.encode(X[[i]])[0], rows[i])
        np.testing.assert_array_equal(encoder.encode(X[::-1])[::-1][i], rows[i])


# -- enforced ----------------------------------------------------------------------------------------------------------

METRIC = MahalanobisMetric.from_directions([[1.0, -1.0, 0.0]], scales=0.2)


def test_an_unconstrained_model_is_caught():
    X, y = some_people()
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    found = audit(tree, X, METRIC)
    assert found.n_violations > 0
    h, D = tree.predict_proba(X)[:, 1], METRIC.pairwise(X)
    i, j = np.triu_indices(len(X), 1)
    assert found.n_violations == (np.abs(h[i] - h[j]) > D[i, j] + 1e-9).sum()
    # Along the free direction too, where people are at distance 0.
    linear = LogisticRegression().fit(X, y)
    worst = attack(linear, METRIC, X, n_pairs=10_000, random_state=0)
    assert worst.n_violations > 0
    assert worst.difference > 0.5
    assert found.violations["differs"][0].startswith("feature 0: ")


def test_what_is_measured_under_it_is_that_of_all_pairs():
    X, y = some_people(40)
    scores, D = np.random.default_rng(1).random(40), METRIC.pairwise(X)
    i, j = np.triu_indices(40, 1)
    n_over = (np.abs(scores[i] - scores[j]) > D[i, j] + 1e-9).sum()
    assert n_over > 0
    assert audit_groups(None, X, METRIC, predictions=scores, columns=[], n_permutations=2).n_violations == n_over
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(score=scores)
    dd = pytest.importorskip("dask.dataframe")
    assert audit(None, dd.from_pandas(table, npartitions=3), METRIC, predictions="score").n_violations == n_over
    close = review_files(X, np.where(y, "yes", "no"), approved="yes", metric=METRIC, threshold=0.2)
    assert close.n_pairs == (D[np.ix_(y == 0, y == 1)] <= 0.2).sum() > 0
    rows = np.eye(40)[i] - np.eye(40)[j]
    limits = np.concatenate([D[i, j], D[i, j]])
    solved = linprog(np.where(y, -1.0, 1.0), np.vstack([rows, -rows]), limits, bounds=(0, 1))
    assert ceiling(X, y, METRIC).value == pytest.approx(((y == 0).sum() - solved.fun) / 40, abs=1e-6)
    group = (X[:, 2] > 0).astype(float)
    blind = MahalanobisMetric.from_directions([[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]], scales=0.2)
    both = np.column_stack([X, group])
    mass = np.where(group == 1, 1 / group.sum(), -1 / (1 - group).sum())
    pairs = blind.pairwise(both)[i, j]
    largest = -linprog(-mass, np.vstack([rows, -rows]), np.concatenate([pairs, pairs]), bounds=(0, 1)).fun
    found = group_gaps(None, both, blind, 3, predictions=scores).gaps
    np.testing.assert_allclose(found["allowed"], largest, atol=1e-6)


def test_what_is_about_single_columns_refuses_it_in_one_line():
    X, y = some_people()
    model = LogisticRegression().fit(X, y)
    answers = pd.DataFrame({"kind": ["at_most"], "a": [0], "b": [1], "points": [5]})
    for p in (1, 2):
        metric = METRIC.with_params(p=p)
        with pytest.raises(InvalidInputError, match="weighs directions") as caught:
            effect(model, X, "feature 0", metric=metric)
        assert "\n" not in str(caught.value)
        with pytest.raises(InvalidInputError, match="start must have a weight per column"):
            learn_metric(answers, X, metric)


def test_additive_models_refuse_it_in_one_line():
    X, y = some_people()
    with pytest.raises(InvalidInputError, match="weigh single columns for an additive model") as error:
        AdditiveClassifier(METRIC).fit(X, y)
    assert "\n" not in str(error.value)


def test_tables_with_names():
    X, y = some_people()
    names = ["a", "b", "c"]
    metric = METRIC.with_params(feature_names=names)
    table = pd.DataFrame(X, columns=names)
    np.testing.assert_array_equal(metric.pairwise(table), METRIC.pairwise(X))
    model = ProjectedClassifier(DecisionTreeClassifier(), metric=metric).fit(table, y)
    np.testing.assert_array_equal(model.feature_names_in_, names)
    assert audit(model, table[["c", "a", "b"]], metric).n_violations == 0
    with pytest.raises(InvalidInputError, match="must have the columns of the metric"):
        ProjectedClassifier(DecisionTreeClassifier(), metric=metric).fit(table.rename(columns={"a": "x"}), y)


# -- the metric as an object -------------------------------------------------------------------------------------------


def test_params_scaling_and_rounding():
    X, _ = some_people()
    assert clone(METRIC) == METRIC
    assert MahalanobisMetric(**METRIC.get_params()) == METRIC
    assert METRIC.with_params(p=np.inf) != METRIC
    np.testing.assert_allclose(METRIC.scaled(3).pairwise(X), 3 * METRIC.pairwise(X))
    rounded = METRIC.rounded().pairwise(X)
    assert (rounded <= METRIC.pairwise(X) + 1e-15).all()
    assert (rounded >= 0.9 * METRIC.pairwise(X)).all()
    assert METRIC.describe()["column"].tolist() == ["feature 0", "feature 1", "feature 2"]
    assert "1 of 3 directions must not matter" in METRIC.notes()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MahalanobisMetric([1.0, 2.0]), "matrix of components"),
        (lambda: MahalanobisMetric([[0.0, 0.0]]), "components must be finite"),
        (lambda: MahalanobisMetric([[np.nan, 0.0]]), "components must be finite"),
        (lambda: MahalanobisMetric([[1.0, 0.0], [2.0, 0.0]], 1), "linearly independent"),
        (lambda: MahalanobisMetric([[1.0, 0.0]], feature_names=["a"]), "one name per column of components"),
        (lambda: MahalanobisMetric.from_covariance([[1.0, 1.0], [1.0, 1.0]]), "positive definite"),
        (lambda: MahalanobisMetric.from_covariance([[1.0, 2.0]]), "symmetric"),
        (lambda: MahalanobisMetric.from_directions(np.eye(2)), "leave something that matters"),
        (lambda: MahalanobisMetric.from_directions([[np.inf, 1.0]]), "directions must be finite"),
        (lambda: MahalanobisMetric.from_directions([[1.0, 1.0]], scales=[0, 1]), "scales must be between"),
        (lambda: MahalanobisMetric.from_directions([[1.0, 1.0]], scales=[1, 1, 1]), "scales must be one number"),
        (lambda: MahalanobisMetric.from_protected(3, [0, 1]), "X must be rows of numbers"),
        (lambda: MahalanobisMetric.from_protected(np.ones((4, 2)), [0, 1, 0, 1]), "constant feature"),
        (lambda: MahalanobisMetric.from_protected(np.eye(3), [1, 1, 1]), "at least two groups"),
        (lambda: MahalanobisMetric.from_protected(np.eye(3), [1, 0]), "one row per row of X"),
    ],
)
def test_bad_input_is_refused_in_one_line(make, words):
    with pytest.raises(InvalidInputError, match=words) as error:
        make()
    assert "\n" not in str(error.value)


def test_blanks_are_refused():
    with pytest.raises(InvalidInputError, match="finite"):
        METRIC.pairwise([[np.nan, 0.0, 0.0]])


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 2, 0], [2, 0, 1]])
@pytest.mark.parametrize("p", [1, 2])
def test_a_feature_without_a_weight_has_none_in_any_order(order, p):
    """A rotation of the components rounds zeros, and 1e-17 of a billion is not nothing."""
    components = np.array([[0.04, 0.0, 0.01], [0.0, 0.0, 0.02]])[:, order]
    metric, away = MahalanobisMetric(components, p), 1e9 * (~components.any(axis=0))
    X = np.random.default_rng(0).normal(size=(30, 3))
    encoder = metric.encoder(X)
    seen = slice(None, encoder.n_components)
    assert (encoder.encode(X)[:, seen] == encoder.encode(X + away)[:, seen]).all()
    assert (metric(X, X + away) == 0).all()
