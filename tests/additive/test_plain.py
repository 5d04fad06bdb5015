"""The loops in NumPy give what the compiled ones give, to the last bit."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.additive import kernels, plain

SIZES = st.sampled_from([0, 1, 2, 7, 300, 5000])
SEEDS = st.integers(0, 2**32 - 1)
few = settings(max_examples=40, deadline=None)


def assert_same_bits(one, other):
    assert one.dtype == other.dtype
    np.testing.assert_array_equal(one.view(np.int64), other.view(np.int64))


def both(name, out, *arguments):
    """What the two write to arrays that start alike."""
    results = []
    for module in (kernels, plain):
        written = out.copy()
        getattr(module, name)(*arguments, written)
        results.append(written)
    return results


KNOWN = [1e300, 0.0, -99.0]


def packed_card(rng, n_functions):
    """Shapes of numbers with 1 to 40 knots and up to two special codes, and of 0 to 5 categories."""
    is_number = rng.random(6) < 0.6
    sizes = [rng.integers(1, 40) if number else rng.integers(0, 6) for number in is_number]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    knots = np.concatenate([np.empty(0), *(np.sort(rng.normal(size=size)) for size in sizes)])
    bits = 30
    values = np.rint(rng.normal(size=(n_functions, starts[-1])) * 2**bits) / 2**bits
    codes = rng.integers(0, 3, 6) * is_number
    code_starts = np.concatenate([[0], np.cumsum(codes)]).astype(np.int64)
    special = (rng.choice(KNOWN, code_starts[-1]), code_starts, rng.normal(size=(n_functions, code_starts[-1])))
    return np.arange(6), is_number, starts, knots, values, rng.normal(size=(6, n_functions)), *special, bits


def people_of(rng, n, is_number, knots):
    """Numbers on and between the knots, far outside, and missing; codes seen and unseen."""
    numbers = rng.choice(np.concatenate([knots, rng.normal(size=50) * 3, [np.nan, -1e300, *KNOWN]]), (n, 6))
    return np.where(is_number, numbers, rng.integers(-1, 7, (n, 6)).astype(float))


@few
@given(n=SIZES, seed=SEEDS, n_functions=st.integers(1, 4))
def test_points(n, seed, n_functions):
    rng = np.random.default_rng(seed)
    card = packed_card(rng, n_functions)
    rows = people_of(rng, n, card[1], card[3])
    parts = both("points", np.empty((n, 6, n_functions)), rows, *card)
    assert_same_bits(*parts)


@few
@given(n=SIZES, seed=SEEDS, kind=st.sampled_from([np.uint8, np.uint16, np.int64]))
def test_sums_of_a_fit(n, seed, kind):
    rng = np.random.default_rng(seed)
    n_slots = 255 if kind == np.uint8 else 300
    a, b = rng.integers(0, n_slots, (2, n)).astype(kind)
    f, g = rng.random((2, n))
    w, values = rng.normal(size=n), rng.normal(size=n_slots + 1)
    slots, people = np.zeros(n_slots + 1), rng.normal(size=n)
    lines, pairs = rng.normal(size=(2, n)), np.zeros((2, n_slots + 1, n_slots + 1))
    assert_same_bits(*both("add_numbers", people, a, f, values))
    assert_same_bits(*both("add_categories", people, a, values))
    assert_same_bits(*both("sum_numbers", slots, a, f, w))
    assert_same_bits(*both("sum_categories", slots, a, w))
    assert_same_bits(*both("cross_numbers", pairs, a, f, b, g, lines))
    assert_same_bits(*both("cross_mixed", pairs, a, f, b, lines))
    assert_same_bits(*both("cross_categories", pairs, a, b, lines))


def test_control_another_order_of_additions_has_other_bits():
    rng = np.random.default_rng(0)
    index, weights = rng.integers(0, 3, 5000), rng.normal(size=5000)
    forwards, backwards = np.zeros(4), np.zeros(4)
    plain.sum_categories(index, weights, forwards)
    plain.sum_categories(index[::-1], weights[::-1], backwards)
    np.testing.assert_allclose(forwards, backwards)
    assert (forwards != backwards).any()
