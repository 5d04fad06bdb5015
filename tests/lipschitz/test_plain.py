"""The forward pass in NumPy gives what the compiled one gives, to the last bit."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.kernel.evidence import CATEGORY, NULLABLE, NUMBER
from likewise.lipschitz import kernels, plain


def network(rng, sizes):
    kinds = np.array([NUMBER, NULLABLE, CATEGORY, NUMBER], dtype=np.int64)
    starts = np.array([0, 1, 3, 8, 9], dtype=np.int64)  # a category has four levels and a row for others
    weights = [rng.normal(size=shape) for shape in pairwise(sizes)]
    return (
        kinds,
        starts,
        rng.random(4),
        rng.normal(size=(9, sizes[0])),
        np.array(sizes, dtype=np.int64),
        np.concatenate([each.ravel() for each in weights]),
        rng.normal(size=sum(sizes)),
    )


def people(rng, n):
    rows = rng.normal(size=(n, 4))
    rows[rng.random(n) < 0.3, 1] = np.nan
    rows[:, 2] = rng.integers(-1, 4, n)
    return rows


def scores_of(module, rows, parameters, n_outputs):
    out = np.empty((len(rows), n_outputs))
    module.scores(rows, *parameters, out)
    return out


@settings(max_examples=40, deadline=None)
@given(
    n=st.sampled_from([0, 1, 3, 200, 3000]),
    sizes=st.lists(st.integers(1, 13), min_size=2, max_size=4),
    seed=st.integers(0, 2**32 - 1),
)
def test_scores(n, sizes, seed):
    rng = np.random.default_rng(seed)
    parameters, rows = network(rng, sizes), people(rng, n)
    compiled, in_numpy = (scores_of(module, rows, parameters, sizes[-1]) for module in (kernels, plain))
    np.testing.assert_array_equal(compiled.view(np.int64), in_numpy.view(np.int64))


def test_control_a_matrix_product_rounds_differently():
    rng = np.random.default_rng(0)
    h, W = rng.normal(size=(500, 64)), rng.normal(size=(64, 8))
    one_by_one = np.zeros((500, 8))
    for i in range(64):
        one_by_one += h[:, i : i + 1] * W[i]
    np.testing.assert_allclose(h @ W, one_by_one, atol=1e-12)
    assert (h @ W != one_by_one).any()
