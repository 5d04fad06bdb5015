"""Smoothing in NumPy is the compiled one, to the last bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from engines import with_both
from likewise import SmoothedClassifier, WeightedLp
from likewise.smoothing.kernels import cell_centres as compiled
from likewise.smoothing.plain import cell_centres as plain

few = settings(max_examples=60, deadline=None)


def cells(rng, n_draws, n_columns):
    """Positions on both sides of 0, some on borders of cells, and columns among others."""
    K = int(rng.integers(1, 200))
    shifts = rng.integers(0, K, (n_draws, n_columns)).astype(np.int32)
    position = rng.choice([rng.integers(-5 * K, 5 * K, n_columns), K * rng.integers(-3, 4, n_columns)])
    middle = rng.choice([(K - 1) / 2, K / 2], n_columns)
    columns = rng.permutation(n_columns + 2)[:n_columns]
    return shifts, position, K, middle, rng.random(n_columns), rng.normal(size=n_columns), columns


def written(fill, given, n_columns):
    rows = np.zeros((len(given[0]), n_columns + 2))
    fill(*given, rows)
    return rows.tobytes()


@few
@given(n_draws=st.sampled_from([1, 2, 100]), n_columns=st.integers(1, 5), seed=st.integers(0, 2**32 - 1))
def test_cells(n_draws, n_columns, seed):
    given = cells(np.random.default_rng(seed), n_draws, n_columns)
    assert written(plain, given, n_columns) == written(compiled, given, n_columns)
    repeated = (given[0], np.tile(given[1], (n_draws, 1)), *given[2:])  # one person under each draw
    assert written(plain, repeated, n_columns) == written(plain, given, n_columns)


@pytest.mark.parametrize("fill", [plain, compiled], ids=["plain", "compiled"])
def test_a_shift_on_the_border_stays_in_its_cell(fill):
    """A cell begins at the last number up to the position that leaves the shift as its remainder."""
    K = 5
    shifts = np.arange(K, dtype=np.int32)[:, None]
    for position in range(-7, 8):
        rows = np.zeros((K, 1))
        fill(shifts, np.array([position]), K, np.zeros(1), np.ones(1), np.zeros(1), np.array([0]), rows)
        expected = [max(at for at in range(position - K + 1, position + 1) if at % K == shift) for shift in range(K)]
        np.testing.assert_array_equal(rows[:, 0], expected)


def test_the_comparison_sees_a_shift_on_the_border():
    """Control: a position that a shift just reaches is in another cell than the one before it."""
    shifts, rest = np.array([[3]], np.int32), (np.array([3]), 10, np.zeros(1), np.ones(1), np.zeros(1), np.array([0]))
    assert written(plain, (shifts, *rest), 1) != written(compiled, (shifts + np.int32(1), *rest), 1)


def test_scores_of_a_smoothed_model():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)).round(1), rng.integers(0, 2, 200)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    options = {"vote": "hard", "n_draws": 64, "augment": 2, "random_state": 0}
    model = SmoothedClassifier(tree, metric=WeightedLp([0.2, 0.1, 0.3]), **options)
    one, other = with_both(lambda: model.fit(X, y).predict_proba(X))
    assert one.tobytes() == other.tobytes()
