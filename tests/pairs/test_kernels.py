import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise import WeightedLp
from likewise.pairs.box_search import search_tree
from likewise.pairs.box_tree import box_tree_of
from likewise.pairs.kernels import worst_partners
from likewise.pairs.points import Columns, groups_of

POWERS = [1.0, 1.5, 2.0, 3.0, np.inf]
TOLERANCE = 1e-9


def numbers(X):
    return np.zeros(X.shape[1], dtype=np.int8)


def by_hand(X, outputs, count, metric, n_worst):
    """All pairs, one after the other, in plain NumPy."""
    i, j = np.triu_indices(len(X), 1)
    distance = metric(X[i], X[j])
    difference = np.abs(outputs[i] - outputs[j]).sum(axis=1)
    excess = difference - distance
    violates = excess > TOLERANCE
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(violates, difference / distance, -np.inf)
    order = np.lexsort((j, i, -excess))
    worst = order[violates[order]][:n_worst]
    return int((count[i] * count[j])[violates].sum()), ratio.max(), np.stack([i, j], axis=1)[worst], excess[worst]


@st.composite
def populations(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d = draw(st.integers(2, 300)), draw(st.integers(1, 4))
    # Rounded features give equal people and ties; weights reach from "must not matter" to "never in the way".
    X = rng.normal(size=(n, d)).round(draw(st.integers(0, 3)))
    weights = rng.choice([0.0, 0.01, 0.1, 1.0, 10.0], size=d)
    kind = draw(st.sampled_from(["smooth", "rough", "coarse", "three classes"]))
    if kind == "smooth":
        outputs = 1 / (1 + np.exp(-X.sum(axis=1, keepdims=True)))
    elif kind == "three classes":
        outputs = rng.dirichlet(np.ones(3), size=n) / 2
    else:
        outputs = rng.random((n, 1))
    if kind == "coarse":
        outputs = outputs.round(1)
    metric = WeightedLp(weights, draw(st.sampled_from(POWERS)))
    return X, outputs, rng.integers(1, 4, size=n), metric, draw(st.sampled_from([1, 5, 40]))


@settings(max_examples=100, deadline=None)
@given(populations())
def test_search_finds_what_numpy_finds(population):
    X, outputs, count, metric, n_worst = population
    found = search_tree(box_tree_of(X, outputs, metric.scales, metric.p, numbers(X), count), TOLERANCE, n_worst)
    n_violations, max_ratio, _, excess = by_hand(X, outputs, count, metric, n_worst)
    assert found.n_violations == n_violations
    np.testing.assert_allclose(found.differences - found.distances, excess, atol=1e-12)
    if n_violations:
        np.testing.assert_allclose(found.max_ratio, max_ratio, rtol=1e-7)
    else:
        assert np.isnan(found.max_ratio)


def test_worst_pairs_are_in_the_order_of_excess_then_of_rows():
    X, outputs = np.zeros((4, 1)), np.array([[0.0], [0.5], [0.5], [0.0]])
    found = search_tree(box_tree_of(X, outputs, np.ones(1), 1.0, numbers(X)), TOLERANCE, 10)
    assert found.pairs.tolist() == [[0, 1], [0, 2], [1, 3], [2, 3]]


def test_search_does_not_look_at_every_pair_of_smooth_scores():
    X = np.random.default_rng(0).normal(size=(5000, 3))
    outputs = 1 / (1 + np.exp(-X.sum(axis=1, keepdims=True)))
    found = search_tree(box_tree_of(X, outputs, np.full(3, 0.3), 1.0, numbers(X)), TOLERANCE, 10)
    assert found.n_violations == 0
    assert found.n_compared < 0.05 * 5000 * 4999 / 2


def test_search_counts_without_looking_where_nearly_all_pairs_exceed():
    X = np.random.default_rng(0).normal(size=(5000, 2))
    outputs = (X[:, :1] > 0) * 0.9 + 0.001 * X[:, 1:]
    scales = np.full(2, 1e-4)
    found = search_tree(box_tree_of(X, outputs, scales, 1.0, numbers(X)), TOLERANCE, 10)
    i, j = np.triu_indices(5000, 1)
    exceeds = np.abs(outputs[i] - outputs[j])[:, 0] - np.abs(X[i] - X[j]) @ scales > TOLERANCE
    assert found.n_violations == exceeds.sum() > 6_000_000
    assert found.n_compared < 0.5 * 5000 * 4999 / 2


def test_rounding_of_large_values_does_not_hide_a_violation():
    # Two people 1 apart, a million away from 0, in features that fill the tree with other people.
    X = np.random.default_rng(0).normal(size=(500, 2)) + 1e6
    outputs = np.full((500, 1), 0.5)
    X[7], X[400] = X[0] + 1, X[0] + 1 + 1e-9
    outputs[400] = 0.6
    found = search_tree(box_tree_of(X, outputs, np.full(2, 0.01), 1.0, numbers(X)), TOLERANCE, 1)
    assert found.pairs.tolist() == [[7, 400]]


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_worst_partner_of_each_person_is_that_of_numpy(p, n_outputs):
    rng = np.random.default_rng(3)
    X, outputs = rng.normal(size=(600, 3)), rng.random((600, n_outputs)) / n_outputs
    metric = WeightedLp([0.3, 0.1, 0.05], p)
    partner, excess, ratio = worst_partners(
        Columns(X.T.copy(), np.zeros(3, np.int8), metric.scales, p), outputs.T.copy()
    )
    difference = np.abs(outputs[:, None] - outputs[None]).sum(axis=2)
    distance = metric.pairwise(X)
    later = np.triu(np.ones((600, 600), dtype=bool), 1)
    gap = np.where(later, difference - distance, 0)
    np.testing.assert_allclose(excess, np.maximum(gap.max(axis=1), 0), atol=1e-12)
    with np.errstate(invalid="ignore"):
        share = np.where(later & (gap > 0), distance / difference, 1)
    np.testing.assert_allclose(ratio, share.min(axis=1), rtol=1e-9)
    some = np.flatnonzero(excess > 0)
    np.testing.assert_array_equal(partner[0, some], gap[some].argmax(axis=1))
    assert (partner[0, excess == 0] == -1).all()


def test_groups_name_the_first_of_equal_rows():
    groups = groups_of(np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0], [-0.0, 0.0], [3.0, 3.0]]))
    assert groups.first.tolist() == [0, 1, 4]
    assert groups.count.tolist() == [2, 2, 1]
    assert groups.of_row.tolist() == [0, 1, 0, 1, 2]
