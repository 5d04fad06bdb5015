"""Bounds are rounded upwards and certified distances downwards: compared with real numbers, in 50 digits."""

from decimal import Decimal, localcontext

import numpy as np

from likewise import Laplace, WeightedLp
from likewise.kernel.bounds import Tanh

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
