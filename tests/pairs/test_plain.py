"""Scans in NumPy give what the compiled searches give, to the last bit: violations, ties and counts."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines import with_both
from every_pair import gather_every_pair
from likewise import TableMetric, audit, ceiling, estimate_minimal_metric
from likewise.kernel.distance import CODE, NULLABLE, NUMBER
from likewise.pairs.box_search import search_tree
from likewise.pairs.box_tree import box_tree_of
from likewise.pairs.gather import gather
from likewise.pairs.plain import blocks_after
from likewise.pairs.points import Columns
from likewise.pairs.scans import search_every_pair, within_groups

POWERS = st.sampled_from([1.0, 2.0, np.inf, 1.5, 3.0])
SIZES = st.sampled_from([2, 3, 40, 257, 900])
SEEDS = st.integers(0, 2**32 - 1)
few = settings(max_examples=40, deadline=None)


def people(rng, n, n_outputs=1):
    """Few values per column, so that there are ties, and some of them missing."""
    kinds = rng.choice([NUMBER, NULLABLE, CODE], size=4).astype(np.int8)
    X = np.where(rng.random(4) < 0.5, rng.integers(0, 4, (n, 4)).astype(float), rng.normal(size=(n, 4)))
    X[:, kinds == CODE] = rng.integers(0, 3, (n, int((kinds == CODE).sum())))
    X[(rng.random((n, 4)) < 0.2) & (kinds == NULLABLE)] = np.nan
    scales = rng.choice([0.0, 0.05, 0.1, rng.random()], size=4)
    outputs = np.round(rng.random((n, n_outputs)), 2)
    if n_outputs > 1:  # halved probabilities
        outputs = (outputs + 0.01) / (outputs + 0.01).sum(axis=1, keepdims=True) / 2
    return X, outputs, kinds, scales


def columns(X, outputs, *space):
    return Columns(np.ascontiguousarray(X.T), *space), np.ascontiguousarray(outputs.T)


def fields(result):
    names = ("n_violations", "max_ratio", "pairs", "times", "differences", "distances")
    return {name: np.asarray(getattr(result, name)).tobytes() for name in names}


@few
@given(n=SIZES, seed=SEEDS, p=POWERS, n_outputs=st.integers(1, 3), n_worst=st.sampled_from([1, 7, 100]))
def test_every_pair_in_numpy_finds_what_the_boxes_find(n, seed, p, n_outputs, n_worst):
    rng = np.random.default_rng(seed)
    X, outputs, kinds, scales = people(rng, n, n_outputs)
    count = rng.integers(1, 4, n)
    tree = box_tree_of(X, outputs, scales, p, kinds, count)
    expected = search_tree(tree, 1e-9, n_worst)
    blocks = blocks_after(*columns(X, outputs, kinds, scales, p))
    found, counts = search_every_pair(blocks, count, 1e-9, n_worst, [0.2])
    assert fields(found) == fields(expected)
    assert counts == [search_tree(tree, 0.2, 1).n_violations]
    assert found.n_compared == n * (n - 1) // 2


@few
@given(n=SIZES, seed=SEEDS, p=POWERS, max_pairs=st.sampled_from([5, 100_000]))
def test_the_same_pairs_are_gathered(n, seed, p, max_pairs):
    X, outputs, kinds, scales = people(np.random.default_rng(seed), n)
    options = {"tolerance": 1e-9, "max_pairs": max_pairs, "kinds": kinds}
    expected, found = (each(X, outputs, scales, p, **options) for each in (gather, gather_every_pair))
    assert found.complete == expected.complete
    assert sorted(map(tuple, found.pairs)) == sorted(map(tuple, expected.pairs))


@few
@given(n_groups=st.integers(1, 30), m=st.integers(2, 20), seed=SEEDS, p=POWERS)
def test_pairs_within_groups(n_groups, m, seed, p):
    X, outputs, kinds, scales = people(np.random.default_rng(seed), n_groups * m, 2)
    compiled, plain = with_both(lambda: within_groups(*columns(X, outputs, kinds, scales, p), m))
    assert [each.tobytes() for each in plain] == [each.tobytes() for each in compiled]


def test_control_sums_in_another_order_of_columns_have_other_bits():
    X, outputs, _, _ = people(np.random.default_rng(0), 300)
    X, kinds, scales = np.random.default_rng(0).random((300, 4)), np.zeros(4, dtype=np.int8), np.full(4, 0.1)
    one = next(blocks_after(*columns(X, outputs, kinds, scales, 1.0)))[2]
    other = next(blocks_after(*columns(X[:, ::-1], outputs, kinds, scales, 1.0)))[2]
    np.testing.assert_allclose(one, other)
    assert (one != other).any()


@pytest.mark.parametrize("n", [300, 2000])
def test_audit_estimate_and_ceiling_do_not_depend_on_the_engine(n):
    rng = np.random.default_rng(n)
    X = pd.DataFrame({"age": rng.integers(18, 60, n), "job": rng.choice(list("abc"), n)})
    X["income"] = np.where(rng.random(n) < 0.1, np.nan, rng.normal(50, 15, n).round())
    score = (np.tanh(X["age"] / 40) + 0.05 * rng.random(n)).to_numpy() / 2
    metric = TableMetric({"age": 0.005, "income": 0.01}, {"job": 0.05}, missing="category")
    compiled, plain = with_both(lambda: audit(None, X, metric, predictions=score, thresholds=[0.01]))
    pd.testing.assert_frame_equal(plain.violations, compiled.violations, check_exact=True)
    assert (plain.n_violations, plain.max_ratio, plain.n_above) == (
        compiled.n_violations,
        compiled.max_ratio,
        compiled.n_above,
    )
    assert plain.coverage == compiled.coverage
    few = X[:300]
    smooth = np.tanh(few["age"] / 40) / 2 + few["income"].fillna(0) / 1000
    one, other = with_both(lambda: estimate_minimal_metric(None, few, predictions=smooth, exchange=False))
    pd.testing.assert_frame_equal(one.weights, other.weights, check_exact=True)
    one, other = with_both(lambda: ceiling(few, score[:300] > 0.3, metric))
    assert one == other
