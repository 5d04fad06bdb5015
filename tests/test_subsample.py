"""Fixed subsets by hand: what they hold, and that they are the same in every run."""

import numpy as np

from likewise._subsample import distinct_rows, evenly_spaced, fixed_sample, random_pairs, some_pairs


def test_even_positions_have_both_ends_and_no_more_than_asked_for():
    assert evenly_spaced(5, 5).tolist() == [0, 1, 2, 3, 4]
    assert evenly_spaced(11, 3).tolist() == [0, 5, 10]
    assert evenly_spaced(6, 5).tolist() == [0, 1, 2, 3, 5]


def test_a_sample_is_sorted_distinct_and_the_same_again():
    found = fixed_sample(1000, 50)
    assert 40 < len(found) <= 50
    assert (np.diff(found) > 0).all()
    assert (found == fixed_sample(1000, 50)).all()
    assert fixed_sample(7, 7).tolist() == list(range(7))


def test_nobody_is_paired_with_themselves():
    a, b = random_pairs(3, 300)
    assert (a != b).all()
    assert {*zip(a.tolist(), b.tolist(), strict=True)} == {(i, j) for i in range(3) for j in range(3) if i != j}


def test_few_pairs_are_all_there_and_many_are_sampled():
    assert np.column_stack(some_pairs(4, 6)).tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    assert [part.tolist() for part in some_pairs(4, 5)] == [part.tolist() for part in random_pairs(4, 5)]


def test_rows_are_distinct_by_their_bytes():
    rows = np.array([[1.0, np.nan], [0.0, 2.0], [1.0, np.nan], [-0.0, 2.0]])
    first, inverse = distinct_rows(rows)
    assert sorted(first) == [0, 1, 3]
    assert (first[inverse] == [0, 1, 0, 3]).all()
