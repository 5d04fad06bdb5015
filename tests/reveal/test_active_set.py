"""Weights found among more and more people are those of the program with all pairs."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.ensemble import RandomForestClassifier

from benchmarks.exhaustive import ExhaustiveSearch
from likewise import WeightedLp, audit, estimate_minimal_metric
from likewise.exceptions import UnsolvedError
from likewise.pairs.cutting_planes import mean_powers
from likewise.pairs.model_outputs import ModelOutputs
from likewise.pairs.points import Points
from likewise.reveal import active_set
from likewise.reveal import linear_program as program
from likewise.reveal.active_set import ROUNDING, PeopleInMemory
from likewise.reveal.shapes import CategoryShapes


def weights(metric):
    if hasattr(metric, "weights"):
        return metric.weights
    return np.array([*metric.numeric.values(), *metric.categorical.values(), *metric.missing.values()])


def make_people(rng, n):
    X = rng.normal(size=(n, 4)) * [1, 10, 0.1, 1] + [0, 50, 3, 0]
    scores = 1 / (1 + np.exp(-(X - X.mean(axis=0)) @ [1, 0.1, -5, 0.3])) + 0.01 * np.sin(X[:, 0])
    return X, scores.clip(0, 1)


def make_table(rng, n):
    X, _ = make_people(rng, n)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    frame["c"] = frame["c"].where(rng.random(n) > 0.2)
    frame["job"], frame["town"] = rng.choice([*"xyz"], n), rng.choice([*"uv"], n)
    effect = frame["job"].map({"x": 0.0, "y": 0.3, "z": 0.9}) + frame["c"].isna()
    return frame, 1 / (1 + np.exp(-X @ [1, 0.1, 0, 0.3] - effect.to_numpy() + 5))


# The scan of every pair takes long for powers other than 1 and 2; `benchmarks/estimate.py` compares them for 10,000.
SIZES = {("table", 1): 5000, ("smooth", 1): 5000, ("forest", 1): 5000, ("smooth", 2): 5000}


@pytest.mark.parametrize(
    ("kind", "p"), [("table", 1), *((kind, p) for kind in ("smooth", "forest") for p in (1, 1.5, 2, 3, 7))]
)
def test_weights_are_those_of_a_scan_of_every_pair(kind, p, monkeypatch):
    rng = np.random.default_rng(0)
    X, scores = (make_table if kind == "table" else make_people)(rng, SIZES.get((kind, p), 3000))
    if kind == "forest":
        scores = RandomForestClassifier(20, min_samples_leaf=5, random_state=0).fit(X, scores > 0.5).predict_proba(X)
    found = estimate_minimal_metric(None, X, p, predictions=scores)
    monkeypatch.setattr(program, "ActiveSetSearch", ExhaustiveSearch)
    full = estimate_minimal_metric(None, X, p, predictions=scores)
    np.testing.assert_allclose(weights(found.metric), weights(full.metric), rtol=1e-6, atol=1e-12)
    pd.testing.assert_frame_equal(found.active_pairs[["row_a", "row_b"]], full.active_pairs[["row_a", "row_b"]])
    assert found.n_constraints < 20_000


def all_pairs_program(X, scores, p):
    """The optimum of the program with all pairs, and its costs."""
    i, j = np.triu_indices(len(X), 1)
    spread = X.std(axis=0)
    gaps = (np.abs(X[i] - X[j]) / spread) ** p
    needed = np.maximum(np.abs(scores[i] - scores[j]) - ROUNDING, 0) ** p
    cost = mean_powers((X / spread).T, p, np.zeros(X.shape[1], dtype=np.int8))
    solved = linprog(cost, -gaps[needed > 0], -needed[needed > 0], bounds=(0, None))
    return solved.fun, cost * spread**p


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(3, 150), st.sampled_from([1, 2, 3]), st.sampled_from([2, 8, 64, 10_000]))
def test_the_optimum_is_that_of_the_program_with_all_pairs_whatever_room_there_is(seed, n, p, room):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(2)
    scores = rng.random(n) if seed % 2 else 1 / (1 + np.exp(-X.sum(axis=1)))
    _, first, same = np.unique(X, axis=0, return_index=True, return_inverse=True)
    if len(first) < 2:
        return
    scores = scores[first][same.ravel()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(active_set, "MIN_PAIRS", room)
        found = estimate_minimal_metric(None, X, p, predictions=scores)
    optimum, cost = all_pairs_program(X[first], scores[first], p)
    assert cost @ found.metric.weights == pytest.approx(optimum, rel=1e-6)
    assert audit(None, X, found.metric, predictions=scores, tolerance=1e-9).n_violations == 0


def test_a_linear_model_whose_pairs_are_all_tight_needs_one_look_at_everyone():
    X = np.random.default_rng(0).normal(size=(40_000, 3))
    beta = np.array([0.03, -0.02, 0.01])
    result = estimate_minimal_metric(None, X, predictions=0.5 + X @ beta)
    assert (result.metric.weights <= np.abs(beta) * (1 + 1e-6)).all()
    np.testing.assert_allclose(result.metric.weights, np.abs(beta), rtol=1e-3)


def test_pairs_left_out_are_found_missing():
    """The control: a search that forgets pairs gives weights that an audit refutes."""
    X, scores = make_people(np.random.default_rng(0), 3000)

    class Forgetful(active_set.ActiveSetSearch):
        def next_cuts(self, scales, ratios):
            cuts = super().next_cuts(scales, ratios)
            half = len(cuts.pairs) // 2
            return cuts._replace(pairs=cuts.pairs[:half], gaps=cuts.gaps[:half], differences=cuts.differences[:half])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program, "ActiveSetSearch", Forgetful)
        found = estimate_minimal_metric(None, X, predictions=scores)
    assert audit(None, X, found.metric, predictions=scores).n_violations > 0


def test_a_search_that_gives_nothing_new_ends_in_one_clear_error():
    X, scores = make_people(np.random.default_rng(0), 300)

    class Stuck(active_set.ActiveSetSearch):
        def next_cuts(self, scales, ratios):
            cuts = super().next_cuts(scales, ratios)
            return cuts._replace(
                pairs=cuts.pairs[:0], gaps=cuts.gaps[:0], differences=cuts.differences[:0], complete=False
            )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program, "ActiveSetSearch", Stuck)
        with pytest.raises(UnsolvedError, match=r"did not converge.*Round the predictions"):
            estimate_minimal_metric(None, X, predictions=scores)


@pytest.mark.parametrize("p", [1, 2])
def test_every_pair_is_explained_to_a_billionth(p):
    rng = np.random.default_rng(0)
    X, scores = rng.normal(size=(80, 3)), rng.random(80)
    metric = estimate_minimal_metric(None, X, p, predictions=scores).metric
    i, j = np.triu_indices(80, 1)
    assert (metric(X[i], X[j]) / np.abs(scores[i] - scores[j])).min() >= 1 - 1e-9


def some_search(monkeypatch, room):
    monkeypatch.setattr(active_set, "MIN_PAIRS", room)
    X, scores = make_people(np.random.default_rng(0), 400)
    points = Points.of(WeightedLp(np.ones(4)).encode_rows(X))
    outputs, shapes = ModelOutputs(points, scores[:, None], 1.0), CategoryShapes(points.kinds)
    return active_set.ActiveSetSearch(PeopleInMemory(outputs, shapes), 1.0)


def test_only_a_search_of_everyone_covers_and_only_what_is_as_large(monkeypatch):
    search = some_search(monkeypatch, 64)
    scales = np.array([0.3, 0.03, 1.5, 0.12])
    looks = 0
    while search._share < 1:
        assert not search.covers(np.full(4, 1e9))  # some people were not looked at
        search.next_cuts(scales if looks else np.zeros(4), np.full(1, np.inf))
        looks += 1
    assert looks > 1
    assert search.covers(scales)
    for smaller in range(4):
        assert not search.covers(scales * np.where(np.arange(4) == smaller, 0.5, 2.0))


def test_a_search_without_room_for_all_pairs_covers_nothing(monkeypatch):
    search = some_search(monkeypatch, 2)
    search._share = 1.0
    search._search(np.full(4, 1e-9))  # nearly all pairs are unexplained
    assert not search.covers(np.full(4, 1e9))
    search._search(np.full(4, 10.0))  # the control: none is
    assert search.covers(np.full(4, 10.0))


def test_if_there_are_too_many_pairs_near_the_metric_a_closer_reference_is_tried(monkeypatch):
    search = some_search(monkeypatch, 64)
    scales, searched = np.array([0.3, 0.03, 1.5, 0.12]), []
    search._share, search._shares, search._reference = 1.0, [], scales

    def too_many_unless_above(limit):
        def violated_pairs(people, share, reference, p, max_pairs, n_worst):
            searched.append((float((1 - reference / scales).max()), n_worst))
            found = active_set.as_cuts(people.everyone, active_set.NO_PAIRS, people.shapes, complete=True)
            return found._replace(complete=bool((reference >= limit * scales).all()))

        monkeypatch.setattr(PeopleInMemory, "violated_pairs", violated_pairs)

    too_many_unless_above(0.99)
    assert search.next_cuts(scales, np.full(9, 2.0)).complete
    assert [n_worst for _, n_worst in searched] == [0, 0]  # the worst pairs are not searched for
    np.testing.assert_allclose([decrease for decrease, _ in searched], [0.25 / 8, 0.25 / 64])
    assert search.covers(0.997 * scales)
    assert not search.covers(0.995 * scales)

    searched.clear()
    too_many_unless_above(2.0)
    assert not search.next_cuts(scales, np.full(9, 2.0)).complete
    assert searched[-1] == (0.0, active_set.N_WORST)
    assert not search.covers(scales)
