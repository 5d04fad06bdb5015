import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from every_pair import gather_every_pair
from likewise.pairs.gather import gather
from likewise.pairs.kernels import fill_differences, fill_distances

POWERS = [1.0, 1.5, 2.0, 3.0, 7.0, np.inf]
TOLERANCE = 1e-11


def by_hand(X, outputs, scales, p, kinds):
    """All pairs, one after the other, with their excess."""
    columns, answers = np.ascontiguousarray(X.T), np.ascontiguousarray(outputs.T)
    n = len(X)
    pairs, difference, distance = {}, np.empty(n), np.empty(n)
    for i in range(n):
        fill_differences(answers, i, i + 1, n, difference)
        fill_distances(columns, kinds, scales, p, i, i + 1, n, difference, distance)
        excess = difference[: n - i - 1] - distance[: n - i - 1]
        pairs |= {(i, i + 1 + int(j)): excess[j] for j in np.flatnonzero(excess > TOLERANCE)}
    return pairs


@st.composite
def populations(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(2, 300))
    numbers = rng.normal(size=(n, 3)).round(draw(st.integers(0, 3)))
    codes = rng.integers(0, 3, size=(n, 2)).astype(float)
    holes = draw(st.sampled_from([0, 0.3, 1]))
    numbers[rng.random(n) < holes, 2] = np.nan
    kinds = np.array([0, 2, 0, 1, 2, 2], dtype=np.int8)
    X = np.column_stack([numbers[:, 0], codes[:, 0], numbers[:, 1:], codes[:, 1], np.isnan(numbers[:, 2])])
    scales = rng.choice([0.0, 0.01, 0.1, 1.0], size=6)
    kind = draw(st.sampled_from(["smooth", "linear", "rough", "coarse", "three classes"]))
    total = np.nan_to_num(numbers).sum(axis=1, keepdims=True) + codes[:, :1]
    outputs = {
        "smooth": 1 / (1 + np.exp(-total)),
        "linear": total / 100,
        "rough": rng.random((n, 1)),
        "coarse": rng.random((n, 1)).round(1),
        "three classes": rng.dirichlet(np.ones(3), size=n) / 2,
    }[kind]
    return X, outputs, scales, draw(st.sampled_from(POWERS)), kinds


@settings(max_examples=200, deadline=None)
@given(populations())
def test_gathered_pairs_are_those_of_a_scan_of_all_pairs(population):
    X, outputs, scales, p, kinds = population
    found = gather(X, outputs, scales, p, tolerance=TOLERANCE, max_pairs=100_000, kinds=kinds)
    expected = by_hand(X, outputs, scales, p, kinds)
    assert found.complete
    assert len(found.pairs) == len(expected)
    assert set(map(tuple, found.pairs.tolist())) == set(expected)


@settings(max_examples=50, deadline=None)
@given(populations(), st.sampled_from([1, 10, 100]))
def test_without_room_for_all_the_worst_are_given_and_it_is_said(population, most):
    X, outputs, scales, p, kinds = population
    found = gather(X, outputs, scales, p, tolerance=TOLERANCE, max_pairs=most, kinds=kinds)
    expected = by_hand(X, outputs, scales, p, kinds)
    assert found.complete == (len(expected) <= most)
    worst = sorted(expected, key=lambda pair: (-expected[pair], *pair))[:most]
    assert sorted(map(tuple, found.pairs.tolist())) == sorted(worst)


def test_without_room_for_all_no_pair_is_searched_for_if_none_is_wanted(monkeypatch):
    X, outputs, scales = np.arange(40.0)[:, None], np.arange(40.0)[:, None], np.full(1, 0.5)
    limits = {"tolerance": TOLERANCE, "n_worst": 0, "kinds": np.zeros(1, dtype=np.int8)}
    monkeypatch.setattr("likewise.pairs.gather.search_tree", None)
    monkeypatch.setattr("likewise.pairs.scans.search_every_pair", None)
    for each in (gather, gather_every_pair):
        assert len(each(X, outputs, scales, 1.0, max_pairs=780, **limits).pairs) == 780
        found = each(X, outputs, scales, 1.0, max_pairs=779, **limits)
        assert (len(found.pairs), found.complete) == (0, False)


def test_a_pair_just_above_the_tolerance_is_gathered():
    X, kinds = np.zeros((2, 1)), np.zeros(1, dtype=np.int8)
    options = {"tolerance": TOLERANCE, "max_pairs": 10, "kinds": kinds}
    for difference, n_pairs in ((1.1 * TOLERANCE, 1), (0.9 * TOLERANCE, 0)):
        found = gather(X, np.array([[0.0], [difference]]), np.ones(1), 1.0, **options)
        assert (len(found.pairs), found.complete) == (n_pairs, True)
