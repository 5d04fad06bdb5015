"""Bounds are rounded upwards and certified distances downwards: compared with real numbers, in 50 digits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from likewise import Laplace, WeightedLp
from likewise.kernel.bounds import BandBound, Bound, Erf, GaussianBound, LaplaceBound, LoosenedBound, Tanh

BOUND = Laplace.for_metric(WeightedLp([1.0])).curve  # exp and log are at hand in any number of digits
RNG = np.random.default_rng(0)
DISTANCES = np.concatenate([10.0 ** RNG.uniform(-9, 0.5, 2000), np.linspace(0.01, 5, 500)])
LEADS = RNG.uniform(0, 1, 2000)


def below(values, reals):
    """How many of the values are below the real numbers that they bound."""
    return sum(Decimal(float(value)) < real for value, real in zip(values, reals, strict=True))


def test_bounds_are_never_below_the_real_curve():
    with localcontext(prec=50):
        laplace = [1 - (-Decimal(float(d))).exp() for d in DISTANCES]
        tanh = [(1 - (-2 * Decimal(float(d))).exp()) / (1 + (-2 * Decimal(float(d))).exp()) for d in DISTANCES]
        assert below(BOUND.bound(DISTANCES), laplace) == 0
        assert below(Tanh().bound(DISTANCES), tanh) == 0
        # The control: the nearest floating-point number is below as often as above.
        assert below(-np.expm1(-DISTANCES), laplace) > 100
        # And nothing is given away: the bound is the curve, but for its last digits.
        assert below(BOUND.bound(DISTANCES) * (1 - 1e-14), laplace) == len(DISTANCES)


def test_distances_to_a_tie_are_never_above_the_real_ones():
    top, other = 0.5 + LEADS / 2, 0.5 - LEADS / 2
    with localcontext(prec=50):
        leads = [Decimal(float(a)) - Decimal(float(b)) for a, b in zip(top, other, strict=True)]
        real = [-(1 - lead / 2).ln() for lead in leads]
        found = BOUND.distance_to_tie(top, other)
        assert below(-found, [-each for each in real]) == 0
        assert below(found * (1 + 1e-14), real) == 0
        assert below(np.log1p(-(top - other) / 2), [-each for each in real]) > 100  # the control


INNER = [Bound(), LoosenedBound(0.03), Tanh(), Erf(), GaussianBound(), LaplaceBound()]
BANDS = [
    BandBound(inner, 0.25, slack, capped) for inner in INNER[:2] for slack in (0.0, 0.02) for capped in (False, True)
]


def name_of(curve):
    if not isinstance(curve, BandBound):
        return type(curve).__name__
    return f"{name_of(curve.inner)}-slack {curve.slack}{'-capped' if curve.capped else ''}"


@pytest.mark.parametrize("curve", [*INNER, *BANDS], ids=name_of)
def test_below_the_distance_to_a_tie_nobody_ties(curve):
    """One outcome loses what the bound allows, and the other gains as much; a little further it may be enough."""
    top, other = 0.5 + LEADS / 2, 0.5 - LEADS / 2
    distance = curve.distance_to_tie(top, other)
    sure = distance > 0
    assert sure.any()
    near, far = distance * (1 - 1e-9), (distance + 1e-6) * (1 + 1e-6)
    assert (curve.lowest(top, near) >= curve.highest(other, near) - 1e-12)[sure].all()
    assert (curve.lowest(top, far) <= curve.highest(other, far)).all()
