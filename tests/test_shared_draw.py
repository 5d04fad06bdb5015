"""People who share a draw: closed forms, statistics, and independent draws as the control."""

import hashlib
import math
from fractions import Fraction

import numpy as np
import pytest

from likewise._shared_draw import (
    SharedDraw,
    _round_down,
    key_commitment,
    probability_decided_differently,
)
from likewise.exceptions import InvalidInputError, InvalidTypeError

KEY = b"a key of 21 bytes...!"
ROUNDS = 20_000
# Two-sided Hoeffding bound for a mean of ROUNDS indicators: 2 exp(-2 n e^2) = 1e-6, the suite's rate of false alarms.
MARGIN = math.sqrt(math.log(2e6) / (2 * ROUNDS))

LAWS = [
    ([0.6, 0.4], [0.55, 0.45]),
    ([1.0, 0.0], [0.97, 0.03]),
    ([0.5, 0.3, 0.2], [0.4, 0.3, 0.3]),
    ([0.7, 0.3, 0.0, 0.0], [0.0, 0.1, 0.2, 0.7]),
    ([0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.2, 0.3]),
]


def decided(law, names=None):
    """Positions of the outcomes of people with these probabilities, one row per round."""
    law = np.atleast_2d(law)
    names = np.arange(law.shape[1]) if names is None else names
    return np.array([SharedDraw.from_key(KEY, str(i)).decide(law, names) for i in range(ROUNDS)])


@pytest.mark.parametrize("laws", LAWS, ids=str)
def test_outcomes_have_the_probabilities_and_people_alike_are_decided_alike(laws):
    outcomes = decided(laws)
    for column, law in enumerate(laws):
        shares = [(outcomes[:, column] == k).mean() for k in range(len(law))]
        np.testing.assert_allclose(shares, law, rtol=0, atol=MARGIN)
        assert set(outcomes[:, column]) <= set(np.flatnonzero(law))
    variation = np.abs(np.subtract(*laws)).sum() / 2
    different = (outcomes[:, 0] != outcomes[:, 1]).mean()
    assert different <= probability_decided_differently(variation, len(laws[0])) + MARGIN
    if len(laws[0]) == 2:
        assert abs(different - variation) <= MARGIN


@pytest.mark.parametrize("laws", LAWS[::2], ids=str)
def test_control_independent_draws_differ_more_often(laws):
    rng = np.random.default_rng(0)
    one, other = (rng.choice(len(law), size=ROUNDS, p=law) for law in laws)
    variation = np.abs(np.subtract(*laws)).sum() / 2
    assert (one != other).mean() > probability_decided_differently(variation, len(laws[0])) + MARGIN


def test_the_probability_of_different_decisions_is_that_of_the_closed_form():
    """For clocks, P(same) = sum_k 1 / sum_j max(p_j / p_k, q_j / q_k); it is at least 1 - 2 v / (1 + v)."""
    rng = np.random.default_rng(1)
    for n_classes in (3, 4, 6):
        p, q = rng.dirichlet(np.full(n_classes, 0.7), 2)
        same = sum(1 / np.maximum(p / p[k], q / q[k]).sum() for k in range(n_classes))
        outcomes = decided([p, q])
        assert abs((outcomes[:, 0] == outcomes[:, 1]).mean() - same) <= MARGIN
        assert 1 - same <= probability_decided_differently(np.abs(p - q).sum() / 2, n_classes) + 1e-12


def test_the_bound_for_several_classes_is_reached():
    """Two laws on three classes that share one outcome: P(different) = 2 v / (1 + v)."""
    v = 0.25
    p, q = np.array([1 - v, v, 0.0]), np.array([1 - v, 0.0, v])
    same = 1 / (np.maximum(p, q) / (1 - v)).sum()
    assert 1 - same == pytest.approx(2 * v / (1 + v), abs=1e-15)
    assert probability_decided_differently(v, 3) == pytest.approx(2 * v / (1 + v), abs=1e-15)
    assert probability_decided_differently(v, 3) >= 2 * v / (1 + v)


def test_two_classes_keep_the_order_of_scores():
    h = np.sort(np.random.default_rng(2).random(200))
    for i in range(300):
        outcomes = SharedDraw.from_key(KEY, str(i)).decide(np.column_stack([1 - h, h]), np.array([0, 1]))
        assert (np.diff(outcomes) >= 0).all()


class Largest(SharedDraw):
    """The largest number of all: only a probability of 1 exceeds it."""

    def _bits(self, use):
        return 2**128 - 1


class Smallest(SharedDraw):
    """Zero: every positive probability exceeds it."""

    def _bits(self, use):
        return 0


@pytest.mark.parametrize("kind", [Largest, Smallest])
def test_extreme_draws(kind):
    draw = kind("x", bytes(32))
    assert 0 <= draw.uniform < 1
    laws = np.array([[1.0, 0.0], [0.0, 1.0], [1 - 5e-324, 5e-324], [2.0**-60, 1 - 2.0**-60]])
    outcomes = draw.decide(laws, np.array([0, 1]))
    assert outcomes.tolist() == ([0, 1, 0, 1] if kind is Largest else [0, 1, 1, 1])
    # An outcome of probability 0 is never given, even where rounding takes something from the other, nor such a grade.
    short = 1 - 2.0**-53
    assert draw.decide(np.array([[0.0, short], [short, 0.0]]), np.array([0, 1])).tolist() == [1, 0]
    assert draw.grade(np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])).tolist() == [2, 0]
    several = draw.decide(np.array([[0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]), np.arange(3))
    assert several[0] in (1, 2)
    assert several[1] == 2


@pytest.mark.parametrize("bits", [0, 1, 2**75 + 1, 2**127, 2**128 - 1, (2**53 - 1) << 75, ((2**53 - 1) << 75) + 1])
def test_comparisons_with_the_rounded_number_are_exact(bits):
    rounded, exact = _round_down(bits), Fraction(bits, 2**128)
    assert Fraction(rounded) <= exact < Fraction(math.nextafter(rounded, 2.0))


def test_the_order_of_classes_and_of_people_does_not_matter():
    law = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    names = np.array(["a", "b", "c"])
    order = [2, 0, 1]
    for i in range(50):
        draw = SharedDraw.from_key(KEY, str(i))
        assert draw.decide(law, names).tolist() == draw.decide(law[:, order], names[order]).tolist()
        assert draw.decide(law, names).tolist()[::-1] == draw.decide(law[::-1], names).tolist()


def test_grades_by_one_draw_do_not_skip_and_have_the_probabilities():
    at_least = np.array([[0.9, 0.2], [1.0, 0.0]])
    grades = np.array([SharedDraw.from_key(KEY, str(i)).grade(at_least) for i in range(ROUNDS)])
    assert (grades[:, 1] == 1).all()
    np.testing.assert_allclose([(grades[:, 0] >= k).mean() for k in (1, 2)], [0.9, 0.2], rtol=0, atol=MARGIN)


def test_rounds_and_keys_have_draws_of_their_own_and_the_same_one_each_time():
    one = SharedDraw.from_key(KEY, "2026-11-17")
    assert one == SharedDraw.from_key(bytearray(KEY), "2026-11-17")
    others = [SharedDraw.from_key(KEY, "2026-11-18"), SharedDraw.from_key(KEY + b"x", "2026-11-17")]
    assert len({one.uniform, *(other.uniform for other in others)}) == 3


def test_a_commitment_fixes_round_and_draw_and_an_opening_shows_it():
    draw = SharedDraw.from_key(KEY, "2026-11-17")
    text = b"likewise commitment\0" + b"2026-11-17\0" + draw.opening
    assert draw.commitment == hashlib.sha256(text).hexdigest()
    assert SharedDraw.from_opening("2026-11-17", draw.opening.hex(), draw.commitment) == draw
    for round, opening in (("2026-11-18", draw.opening), ("2026-11-17", bytes(32))):
        with pytest.raises(InvalidInputError, match="must be the one committed to"):
            SharedDraw.from_opening(round, opening.hex(), draw.commitment)
    with pytest.raises(InvalidInputError, match="opening must be hexadecimal digits; got 'xyz'"):
        SharedDraw.from_opening("2026-11-17", "xyz", draw.commitment)
    assert key_commitment(KEY) != key_commitment(KEY + b"x")


@pytest.mark.parametrize(
    ("key", "round", "error", "message"),
    [
        ("text of 16 chars", "r", InvalidTypeError, r"key must be bytes; got str\. secrets"),
        (b"short", "r", InvalidInputError, "key must have 16 bytes or more.*; got 5"),
        (KEY, "", InvalidInputError, "round must be the name of a round, such as '2026-11-17'; got ''"),
        (KEY, 3, InvalidInputError, "round must be the name of a round.*; got 3"),
    ],
)
def test_bad_input_is_refused(key, round, error, message):
    with pytest.raises(error, match=message):
        SharedDraw.from_key(key, round)
