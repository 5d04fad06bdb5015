"""What links promise about single people: closed forms, and certificates compared with real numbers."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from likewise import WeightedLp
from likewise.kernel.bounds import Erf, Tanh
from likewise.kernel.certificate import Estimate, certify
from likewise.kernel.links import LINKS
from promised import promise as promised_guarantee

PROBABILITIES = np.array([1e-9, 0.01, 0.3, 0.5, 0.9, 1 - 1e-6])
DISTANCES = np.array([0.0, 1e-3, 0.05, 0.4, 2.0])
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")


@pytest.mark.parametrize("distance", DISTANCES)
def test_the_largest_probability_at_a_distance(distance):
    odds = PROBABILITIES / (1 - PROBABILITIES) * np.exp(4 * distance)
    np.testing.assert_allclose(Tanh().highest(PROBABILITIES, distance), odds / (1 + odds), rtol=1e-9)
    moved = stats.norm.cdf(stats.norm.ppf(PROBABILITIES) + np.sqrt(2 * np.pi) * distance)
    np.testing.assert_allclose(Erf().highest(PROBABILITIES, distance), moved, rtol=1e-9)
    assert Tanh().highest(0.0, distance) == 0
    assert Tanh().highest(1.0, distance) == Erf().highest(1.0, distance) == 1


def normal(z):
    """The normal distribution function in 60 digits: 1/2 + phi(z) (z + z^3 / 3 + z^5 / 15 + ...)."""
    term, total, k = z, z, 1
    while abs(term) > Decimal("1e-70"):
        k += 2
        term *= z * z / k
        total += term
    return Decimal("0.5") + total * (-z * z / 2).exp() / (2 * PI).sqrt()


def test_ranges_of_probit_models_are_rounded_outwards():
    """Against real numbers: the score of a probability by Newton's method, moved by sqrt(2 pi) D."""
    with localcontext(prec=60):
        for probability in (1e-9, 0.01, 0.3, 0.5, 0.9, 1 - 1e-6):
            z = Decimal(float(stats.norm.ppf(probability)))
            for _ in range(4):
                z -= (normal(z) - Decimal(probability)) * (2 * PI).sqrt() * (z * z / 2).exp()
            for distance in (1e-6, 0.05, 0.4, 1.0):
                ends = [normal(z + sign * (2 * PI).sqrt() * Decimal(distance)) for sign in (-1, 1)]
                low, high = (Decimal(float(end(probability, distance))) for end in (Erf().lowest, Erf().highest))
                assert ends[0] * (1 - Decimal("1e-8")) <= low <= ends[0]
                assert min(Decimal(1), ends[1]) <= high <= ends[1] * (1 + Decimal("1e-8"))


def test_ranges_of_logistic_models_are_rounded_outwards():
    rng = np.random.default_rng(0)
    with localcontext(prec=60):
        for q, d in zip(rng.random(300).tolist(), rng.uniform(0, 1, 300).tolist(), strict=True):
            odds = Decimal(q) / (1 - Decimal(q))
            low, high = (moved / (1 + moved) for moved in (odds * (sign * 4 * Decimal(d)).exp() for sign in (-1, 1)))
            assert Decimal(float(Tanh().lowest(q, d))) <= low
            assert Decimal(float(Tanh().highest(q, d))) >= min(high, Decimal(1))


@pytest.mark.parametrize("curve", [Tanh(), Erf()])
def test_probabilities_of_0_and_1_have_a_finite_distance(curve):
    """No finite score has them: they were rounded."""
    assert 0 < curve.distance_to_tie(1.0, 0.0) < 1000


def test_a_class_catches_up_where_the_two_are_equal():
    """At the certified distance, and not before, the top class can have fallen to what another can have risen to."""
    for curve in (Tanh(), Erf()):
        for top in (0.5001, 0.6, 0.9, 0.999):
            distance = float(curve.distance_to_tie(top, 1 - top))
            assert 1 - curve.highest(1 - top, distance) == pytest.approx(0.5, abs=1e-9)
            assert curve.distance_to_tie(1 - top, top) == 0
    # Three classes: log-odds 4 D apart, so that one falls by a factor of exp(-2 D) while another rises by exp(2 D).
    assert Tanh().distance_to_tie(0.6, 0.2) == pytest.approx(np.log(3) / 4, rel=1e-9)


@pytest.mark.parametrize("curve", [Tanh(), Erf()])
def test_ties_and_those_behind_are_certified_nothing(curve):
    assert curve.distance_to_tie(0.5, 0.5) == 0
    assert curve.distance_to_tie(0.2, 0.6) == 0


@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_certified_distances_are_never_above_the_real_ones(link):
    """A score of exactly z is z / unit away from the tie; outputs are rounded, and that must not help."""
    scores = np.random.default_rng(0).uniform(-30 if link == "logistic" else -8, 30 if link == "logistic" else 8, 4000)
    h = LINKS[link].outputs(scores[:, None])
    promise = promised_guarantee(WeightedLp([1.0]), LINKS[link].curve, "exact", "")
    found = certify(Estimate.certain(h), promise, np.array([0, 1])).distance
    units = {"logistic": Decimal(4), "probit": (2 * Decimal("3.14159265358979323846264338327950288")).sqrt()}
    real = [abs(Decimal(float(z))) / units[link] for z in scores]
    above = [Decimal(float(d)) > r for d, r in zip(found, real, strict=True)]
    assert sum(above) == 0
    # Nor is much given away, as long as the probabilities themselves have digits left.
    some = np.abs(scores) < 4
    np.testing.assert_allclose(found[some], np.abs(scores[some]) / float(units[link]), rtol=0, atol=1e-8)


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
@pytest.mark.parametrize("n", [1, 3])
def test_distances_from_scores_allow_for_their_error(link, n):
    """Of two classes the score may be nearer to 0 by its error; of several, the two largest nearer to each other."""
    scores, error = np.random.default_rng(0).normal(size=(200, n)), 0.1
    found = link.distance_to_tie(scores, error)
    for row, distance in zip(scores.tolist(), found, strict=True):
        second, first = (-abs(Fraction(row[0])), abs(Fraction(row[0]))) if n == 1 else map(Fraction, sorted(row)[-2:])
        exact = max(Fraction(0), (first - second) / 2 - Fraction(error)) / Fraction(link.unit)
        assert exact - Fraction(1, 10**13) <= Fraction(distance) <= exact
    assert 0 < (found == 0).sum() < 100


def test_units_are_those_of_the_curves():
    """Two people whose scores are as far apart as the unit allows, on either side of the middle, reach the curve.

    Of two logits, each moves by its unit, in opposite directions.
    """
    distance = 0.3
    for name, link in LINKS.items():
        scores = link.unit * distance / 2 * np.array([[-1.0, 1.0], [1.0, -1.0]])
        h = link.outputs(scores if name == "softmax" else scores[:, :1])
        assert abs(h[0, 1] - h[1, 1]) == pytest.approx(float(link.curve.bound(distance)), rel=1e-12), name


@pytest.mark.parametrize("name", LINKS)
def test_outputs_are_probabilities_and_depend_on_the_person_alone(name):
    """To the last bit: in any batch, at any place in memory, and both tails to their last digits."""
    scores = np.random.default_rng(0).normal(scale=8, size=(5000, 3 if name == "softmax" else 1))
    outputs = LINKS[name].outputs
    h = outputs(scores)
    np.testing.assert_allclose(h.sum(axis=1), 1, rtol=1e-15, atol=4e-16)
    for rows in (slice(0, 1), slice(3, 10), slice(7, 4000), slice(None, None, -3)):
        assert outputs(scores[rows]).tobytes() == h[rows].tobytes()
    if name == "logistic":
        a = np.abs(scores[:, 0])
        np.testing.assert_allclose(h.min(axis=1), np.exp(-a) / (1 + np.exp(-a)), rtol=1e-14)
