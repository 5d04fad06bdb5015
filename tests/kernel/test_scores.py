"""Scores of probabilities on the widest scale that a promise allows, in closed form."""

import numpy as np
import pytest
from scipy.special import ndtri

from likewise.kernel.bounds import Bound, Erf, Tanh
from likewise.kernel.links import LINKS

P = np.array([[0.5, 0.5], [0.25, 0.75], [1e-9, 1 - 1e-9], [1 - 1e-30, 1e-30]])


def test_log_odds_keep_the_digits_of_small_probabilities():
    scores = Tanh().scores(P)
    np.testing.assert_allclose(scores, np.log(P), rtol=1e-12, atol=1e-15)
    assert np.diff(scores)[3, 0] == pytest.approx(np.log(1e-30))
    assert np.isfinite(Tanh().scores(np.array([[0.0, 1.0]]))).all()


def test_probit_scores_are_four_times_the_score_that_moves_by_the_distance():
    z = np.array([0.0, ndtri(0.75), -ndtri(1e-9), ndtri(1e-30)]) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(Erf().scores(P), np.column_stack([-2 * z, 2 * z]), rtol=1e-9, atol=1e-12)


def test_other_probabilities_are_their_own_scores_twice():
    np.testing.assert_array_equal(Bound().scores(P), 2 * P)


@pytest.mark.parametrize("curve", [Bound(), Tanh(), Erf()])
def test_a_lead_that_the_curve_can_close_is_the_distance_to_a_tie(curve):
    """At that distance the one may have fallen, and the other risen, to a half."""
    for lead in (0.1, 0.4, 0.9):
        top, other = 0.5 + lead / 2, 0.5 - lead / 2
        distance = float(curve.distance_to_tie(top, other))
        assert float(curve.highest(other, distance)) == pytest.approx(0.5, abs=1e-9)
        assert float(curve.bound(distance)) >= lead / 2 - 1e-9


def test_units_of_links_are_the_steepest_slopes():
    """What moves by the unit at distance 1 moves a probability by at most 1 per distance, where it is steepest."""
    for name, slope in (("logistic", 0.25), ("probit", 1 / np.sqrt(2 * np.pi)), ("clip", 1.0)):
        assert LINKS[name].unit * slope == pytest.approx(1.0)
    assert 2 * LINKS["softmax"].unit == LINKS["logistic"].unit
