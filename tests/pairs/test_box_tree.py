"""What boxes say about the pairs between them, against all those pairs; and that rounding hides none."""

import numpy as np
import pytest

from likewise.kernel.distance import NULLABLE, NUMBER
from likewise.pairs.box_bounds import Space, all_exceed, linear_excess_bound, max_difference
from likewise.pairs.box_search import search_tree
from likewise.pairs.box_tree import LEAF_SIZE, box_tree_of
from likewise.pairs.plain import blocks_after
from likewise.pairs.points import Columns
from likewise.pairs.scans import search_every_pair

SCALES = np.array([0.4, 0.1, 0.3])  # two numbers and a code
GAP = np.empty(3)


def boxes(seed):
    """Two sets of people, apart along the numbers, and a slope that their outputs follow but for a little noise."""
    rng = np.random.default_rng(seed)
    apart = rng.uniform(-2, 2, 3) * [1, 1, 0]
    a, b = (rng.uniform(-0.1, 0.1, (5, 3)) + side * apart for side in (0.5, -0.5))
    for people in (a, b):
        people[:, 2] = rng.integers(0, 3, 5)
    slope = rng.uniform(-1, 1, 3) * SCALES * [1, 1, 0]
    outputs = [people @ slope + rng.uniform(-0.01, 0.01, 5) for people in (a, b)]
    return a, b, slope, outputs


def space(scales, n_numbers, slopes, steepness):
    return Space(np.zeros(len(scales), np.int8), n_numbers, scales, 1.0, slopes, steepness, 0.0)


def ends(values):
    return values.min(axis=0), values.max(axis=0)


@pytest.mark.parametrize("seed", range(40))
def test_no_pair_exceeds_by_more_than_its_boxes_allow(seed):
    a, b, slope, (out_a, out_b) = boxes(seed)
    gaps = np.abs(a[:, None] - b)
    gaps[..., 2] = gaps[..., 2] > 0
    worst = (np.abs(out_a[:, None] - out_b) - gaps @ SCALES).max()
    slopes = np.stack([np.zeros(3), slope])
    residual_a, residual_b = (ends(out[:, None] - people @ slopes.T) for out, people in ((out_a, a), (out_b, b)))
    steepness = np.abs(slopes / SCALES).max(axis=1)
    corners = [*zip(ends(a), residual_a, strict=True), *zip(ends(b), residual_b, strict=True)]
    both = [np.concatenate(each) for each in corners]
    bound = linear_excess_bound(*both, space(SCALES, 2, slopes, steepness), GAP)
    assert worst <= bound + 1e-12
    # Not by far: outputs follow the slope to 0.02, and a box is 0.2 wide in each of two numbers.
    assert bound <= worst + 0.04 + 0.4 * 2 * SCALES[:2].sum() + SCALES[2]


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_two_people_differ_by_what_their_boxes_say(n_classes):
    rng = np.random.default_rng(0)
    for _ in range(200):
        p, q = rng.dirichlet(np.ones(n_classes), 2) / 2  # halved, as everywhere in the search
        bound = max_difference(p, p, q, q, 0, n_classes)
        assert np.abs(p - q).sum() <= bound + 1e-15
        assert bound <= np.abs(p - q).sum() + 2e-5


def test_a_box_in_which_someone_misses_a_number_has_no_limits_there():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    X[rng.random(300) < 0.02, 1] = np.nan
    kinds = np.array([NUMBER, NULLABLE], dtype=np.int8)
    outputs = rng.random((300, 1))
    tree = box_tree_of(X, outputs, np.ones(2), 1.0, kinds)
    missing = np.isnan(tree.points[1])
    some = [bool(missing[a:b].any()) for a, b in zip(tree.start, tree.stop, strict=True)]
    assert 0 < sum(some) < len(some)
    np.testing.assert_array_equal(np.isneginf(tree.low[:, 1]), some)
    np.testing.assert_array_equal(np.isposinf(tree.high[:, 1]), some)
    assert np.isfinite(tree.low[:, 0]).all()


def boxes_exceed(outputs, gap, tolerance, largest):
    """For two boxes of numbers from 0 to 0.1 and from `gap` to ``gap + 0.1``, with a scale of 1."""
    corners = [np.array(each) for each in zip((0.0, 0.1, gap, gap + 0.1), outputs, strict=True)]
    return all_exceed(*corners, space(np.ones(1), 1, np.empty((0, 1)), np.empty(0)), tolerance, largest, np.empty(1))


def test_whole_boxes_are_counted_only_if_the_farthest_pair_exceeds():
    # Outputs differ by 0.5 at least; the nearest pair is 0.2 apart and the farthest 0.4.
    assert boxes_exceed((0.0, 0.1, 0.6, 0.7), 0.3, 0.05, np.inf)
    assert not boxes_exceed((0.0, 0.1, 0.6, 0.7), 0.3, 0.15, np.inf)


def test_whole_boxes_are_counted_only_if_no_ratio_there_is_larger_than_the_largest():
    # A difference of 0.7 at a distance of 0.2: a ratio of 3.5.
    assert not boxes_exceed((0.0, 0.1, 0.6, 0.7), 0.3, 0.05, 3.4)
    assert boxes_exceed((0.0, 0.1, 0.6, 0.7), 0.3, 0.05, 3.6)


def linear():
    """Outputs that follow the metric exactly, so that what is left of any pair's excess is rounding.

    Each leaf is filled by one person and their equals, so that its bounds are those of pairs.
    """
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(64, 3)) * 100, LEAF_SIZE, axis=0)
    return X, np.array([0.001, 0.0005, 0.0007]), (X @ [0.001, 0.0005, 0.0007])[:, None]


def test_rounding_of_bounds_hides_no_pair():
    X, scales, outputs = linear()
    tree = box_tree_of(X, outputs, scales, 1.0, np.zeros(3, np.int8))
    columns = Columns(np.ascontiguousarray(X.T), np.zeros(3, np.int8), scales, 1.0)
    blocks = blocks_after(columns, np.ascontiguousarray(outputs.T))
    pruned, (full, _) = search_tree(tree, 0.0, 10), search_every_pair(blocks, np.ones(len(X), np.int64), 0.0, 10)
    assert full.n_violations > 100
    assert pruned.n_violations == full.n_violations
    assert pruned.n_compared < full.n_compared


def tied():
    outputs = np.array([[0.0], [0.5], [0.5], [0.0]])
    return box_tree_of(np.zeros((4, 1)), outputs, np.ones(1), 1.0, np.zeros(1, np.int8))


def test_pairs_as_bad_as_the_least_bad_that_is_listed_are_listed_by_position():
    assert search_tree(tied(), 1e-9, 2).pairs.tolist() == [[0, 1], [0, 2]]
    assert search_tree(tied(), 1e-9, 3).pairs.tolist() == [[0, 1], [0, 2], [1, 3]]


def test_a_pair_at_the_tolerance_does_not_exceed():
    assert search_tree(tied(), 0.5, 3).n_violations == 0
    assert search_tree(tied(), np.nextafter(0.5, 0), 3).n_violations == 4
