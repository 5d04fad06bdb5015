"""When people stop drawing, and what is counted as often as it counts: by hand."""

import numpy as np
import pytest

from likewise import WeightedLp
from likewise.kernel.links import from_unit_range
from likewise.smoothing.estimators import repeat_by_weight
from likewise.smoothing.sampling import Schedule, adaptive_votes, mean_votes
from likewise.smoothing.scorers import VoteSpec


class Draws:
    """Parts of draws that say nothing but how many they are, cut at every look and in between."""

    def iter_draws(self, looks):
        start = 0
        for look in looks:
            for stop in sorted({start + (look - start) // 2, look}):
                if stop > start:
                    yield stop, range(start, stop)
                    start = stop


class Votes:
    """Person k votes for the second class in a share of k/8 of any run of draws."""

    def sums(self, draws, people):
        second = len(draws) * people[:, 0] / 8
        both = np.column_stack([len(draws) - second, second])
        return both, both


def nobody(steps):
    pass


@pytest.mark.parametrize("epsilon", [0.05, 0.1])
@pytest.mark.parametrize("hard", [True, False])
def test_everyone_stops_at_the_first_look_that_suffices_and_nobody_before(epsilon, hard):
    schedule = Schedule(epsilon, 1e-3, 2, hard=hard)
    people = np.arange(9.0)[:, None]
    found = adaptive_votes(Votes(), people, Draws(), schedule, advance=nobody)
    np.testing.assert_allclose(found.mean[:, 1], people[:, 0] / 8, atol=1e-9)
    looks = schedule.looks
    for person, stopped in zip(people[:, 0], found.n_draws, strict=True):
        mean = np.array([[1 - person / 8, person / 8]])
        enough = [
            n
            for n in looks
            if n == looks[-1] or schedule.suffices(mean, *schedule.interval(mean, mean, n, last=False))[0]
        ]
        assert stopped == enough[0]
    assert found.n_draws[4] == looks[-1]  # votes that are split in half need all of them
    assert found.n_draws[0] == found.n_draws[8] < looks[len(looks) // 2]
    margin = np.maximum(found.upper - found.mean, found.mean - found.lower).max(axis=1)
    assert (margin <= epsilon / 2 + 1e-12).all()


def test_a_fixed_number_of_draws_is_averaged_whole():
    found = mean_votes(Votes(), np.array([[2.0], [8.0]]), Draws(), 640, advance=nobody)
    np.testing.assert_allclose(found, [[0.75, 0.25], [0.0, 1.0]])


def test_people_are_there_as_often_as_they_count():
    people = WeightedLp([1.0]).encode_rows([[0.0], [1.0], [2.0], [3.0]])
    assert repeat_by_weight(people, None) is people
    assert repeat_by_weight(people, np.array([1.0, 0.0, 2.0, 1.0])).rows[:, 0].tolist() == [0.0, 2.0, 2.0, 3.0]
    # Weights that are no whole numbers: as many people as there are, a quarter of the weight each.
    shares = repeat_by_weight(people, np.array([0.125, 0.0, 0.25, 0.125])).rows[:, 0].tolist()
    assert shares == [0.0, 2.0, 2.0, 3.0]
    assert repeat_by_weight(people, np.array([0.7, 0.1, 0.1, 0.1])).rows[:, 0].tolist() == [0.0, 0.0, 0.0, 2.0]


def test_votes_of_numbers_are_shares_of_their_range_and_go_back():
    votes_of = VoteSpec("value", None, (100.0, 300.0))
    votes = votes_of.unit_function(lambda rows: rows[:, 0])(np.array([[50.0], [150.0], [999.0]]))
    assert votes[:, 0].tolist() == [0.0, 0.25, 1.0]
    assert from_unit_range(np.array([0.0, 0.25, 1.0]), votes_of.limits).tolist() == [100.0, 150.0, 300.0]
