"""Certificates hold for everything within the intervals, in closed form."""

import numpy as np
import pytest

from likewise import WeightedLp
from likewise.kernel.bounds import Bound
from likewise.kernel.certificate import Estimate, certify
from promised import promise

METRIC = WeightedLp([1.0])
CLASSES = np.array(["no", "perhaps", "yes"])


def promised(**options):
    return promise(METRIC, Bound(), "sampled", "", 0.01, 1e-3, 1000, **options)


def estimate(mean, half):
    mean = np.asarray(mean, dtype=float)
    return Estimate(mean, np.clip(mean - half, 0, 1), np.clip(mean + half, 0, 1), np.full(len(mean), 1000))


def test_the_distance_is_half_the_lead_that_the_intervals_leave():
    # 0.6 may be 0.55, and 0.3 may be 0.35: they meet after 0.1. Without intervals, 0.15.
    found = certify(estimate([[0.3, 0.1, 0.6]], 0.05), promised(), CLASSES)
    assert found.outcome.tolist() == ["yes"]
    assert found.distance[0] == pytest.approx(0.1, rel=1e-12)
    assert certify(estimate([[0.3, 0.1, 0.6]], 0.0), promised(), CLASSES).distance[0] == pytest.approx(0.15, rel=1e-12)


def test_others_have_no_more_than_what_the_top_leaves():
    # 0.8 may be 0.75, so that nobody else has more than 0.25, whatever their own interval says.
    found = certify(estimate([[0.2, 0.8]], 0.1), promised(), CLASSES[:2])
    assert found.distance[0] == pytest.approx((0.7 - 0.3) / 2, rel=1e-12)


def test_intervals_that_overlap_certify_nothing():
    assert certify(estimate([[0.45, 0.05, 0.5]], 0.05), promised(), CLASSES).distance[0] == 0


def test_the_range_at_a_distance_starts_from_the_ends_of_the_interval():
    low, high = certify(estimate([[0.3, 0.7]], 0.05), promised(), CLASSES[:2]).range_at(0.1)
    np.testing.assert_allclose(low, [[0.15, 0.55]], atol=1e-12)
    np.testing.assert_allclose(high, [[0.45, 0.85]], atol=1e-12)
