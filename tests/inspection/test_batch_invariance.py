import numpy as np
import pytest

from likewise.inspection.batch_invariance import BATCH_SIZES, in_fixed_batches, measure_changes, row_by_row

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(64, 3))


def squares(rows):
    return np.hstack([rows**2, rows.sum(axis=1, keepdims=True)])


@pytest.mark.parametrize("n", [1, 2, 127, 128, 129, 300, 511, 700, 5_000, 40_000])
def test_tiles_give_the_same_votes_in_calls_of_fixed_sizes(n):
    sizes = []

    def vote(rows):
        sizes.append(len(rows))
        return squares(rows)

    rows = RNG.normal(size=(n, 3))
    np.testing.assert_array_equal(in_fixed_batches(vote)(rows), squares(rows))
    assert set(sizes) <= set(BATCH_SIZES)
    assert sum(sizes) <= max(BATCH_SIZES[0], 2 * n)  # filled up by no more than as many rows again


def test_row_by_row_asks_for_one_row_at_a_time():
    sizes = []
    rows = RNG.normal(size=(5, 3))
    answers = row_by_row(lambda rows: sizes.append(len(rows)) or squares(rows))(rows)
    np.testing.assert_array_equal(answers, squares(rows))
    assert sizes == [1] * 5


@pytest.mark.parametrize("n", [1, 2, 10, 64])
def test_what_answers_for_each_row_by_itself_never_changes(n):
    found = measure_changes(squares, ROWS[:n])
    assert (found.again, found.within, found.beyond) == (0, 0, 0)


# Each looks at something other than the row itself.
LOOKS_ELSEWHERE = {
    "mean of the call": lambda rows: rows - rows.mean(axis=0),
    "spread of the call": lambda rows: rows / (1 + rows.std(axis=0)),
    "largest of the call": lambda rows: rows / np.abs(rows).max(axis=0),
    "rank in the call": lambda rows: rows.argsort(axis=0).argsort(axis=0) / len(rows),
    "row before": lambda rows: rows + np.roll(rows, 1, axis=0),
    "first row": lambda rows: rows - rows[0],
    "last row": lambda rows: rows - rows[-1],
    "place": lambda rows: rows + np.arange(len(rows))[:, None] % 64,
    "place in the largest calls": lambda rows: rows + (np.arange(len(rows)) == 30_000)[:, None],
    "size of large calls": lambda rows: rows + (len(rows) > 10_000),
}


@pytest.mark.parametrize("look", LOOKS_ELSEWHERE.values(), ids=LOOKS_ELSEWHERE)
def test_what_looks_elsewhere_is_found(look):
    found = measure_changes(look, ROWS)
    assert found.again == 0
    assert found.within > 1e-3


def test_what_looks_at_the_size_of_small_calls_is_found_beyond_the_tiles():
    found = measure_changes(lambda rows: rows + (len(rows) < 100), ROWS)
    assert found.within == 0
    assert found.beyond > 0.1


def test_answers_at_random_are_found():
    rng = np.random.default_rng(0)
    assert measure_changes(lambda rows: rows + rng.random(rows.shape), ROWS).again > 0.1


def test_the_last_bit_counts():
    found = measure_changes(lambda rows: np.nextafter(rows, np.inf) if len(rows) > 1000 else rows, ROWS)
    assert 0 < found.within < 1e-14


def test_a_number_that_goes_missing_is_a_change():
    found = measure_changes(lambda rows: np.full_like(rows, np.nan) if len(rows) > 1000 else rows, ROWS)
    assert found.within == np.inf
    assert measure_changes(lambda rows: np.full_like(rows, np.nan), ROWS).within == 0
