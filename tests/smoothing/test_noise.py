"""Soundness and tightness of the noises, with controls that show the tests can fail."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import ndtr

from chance import PER_CHECK, fits, too_few, too_many
from likewise import Gaussian, Laplace, Uniform, WeightedLp

NOISES = [Gaussian, Laplace, Uniform]
EXPONENTS = [1, 1.5, 2, 3, np.inf]
WEIGHTS = np.array([4.0, 0.25, 1.0, 0.6])  # unequal, above and below 1
N = 400_000

every_noise = pytest.mark.parametrize("kind", NOISES)
every_p = pytest.mark.parametrize("p", EXPONENTS)


def is_tight(kind, p):
    return (kind is Gaussian and p <= 2) or (kind in (Laplace, Uniform) and p == 1)


def half_space_votes(sample, i, half_gap):
    """How often ``1[x_i >= 0]`` differs between people at -half_gap and half_gap on axis i, under the same noise.

    That is n (h(half_gap) - h(-half_gap)); as half_gap shrinks it is the slope of h at 0.
    """
    return int(((sample[:, i] >= -half_gap) & (sample[:, i] < half_gap)).sum())


@every_p
@every_noise
def test_half_spaces_never_exceed_the_metric_and_reach_it_where_the_noise_is_tight(kind, p):
    metric = WeightedLp(WEIGHTS, p)
    noise = kind.for_metric(metric)
    sample = noise.sample(N, np.random.default_rng(0))
    for i, scale in enumerate(metric.scales):
        for distance in (0.05, 0.3):
            votes = half_space_votes(sample, i, distance / scale / 2)
            assert not too_many(votes, N, distance)  # the slope is at most s_i
            assert not too_many(votes, N, float(noise.curve.bound(distance)))
            if is_tight(kind, p):
                assert not too_few(votes, N, float(noise.curve.bound(distance)))


@every_p
@every_noise
def test_control_too_little_noise_is_caught(kind, p):
    metric = WeightedLp(WEIGHTS, p)
    shrink = 2 if is_tight(kind, p) else 20
    sample = kind.for_metric(metric).sample(N, np.random.default_rng(0)) / shrink
    assert any(too_many(half_space_votes(sample, i, 0.05 / s / 2), N, 0.05) for i, s in enumerate(metric.scales))


def test_control_the_paper_read_literally_gaussian_for_l1():
    """Variance 1 / (2 pi w) for a weighted L1 metric with w = 0.25: TV = 0.0499 at D = 0.025."""
    w, gap = 0.25, 0.1
    literal = np.random.default_rng(0).normal(0, np.sqrt(1 / (2 * np.pi * w)), (N, 1))
    distance = float(WeightedLp([w], 1)([0], [gap]))
    assert distance == pytest.approx(0.025)
    votes = half_space_votes(literal, 0, gap / 2)
    assert too_many(votes, N, distance)
    assert votes / N == pytest.approx(0.0499, abs=0.002)
    sound = Gaussian.for_metric(WeightedLp([w], 1)).sample(N, np.random.default_rng(0))
    assert not too_many(half_space_votes(sound, 0, gap / 2), N, distance)


def test_control_the_paper_read_literally_algorithm_2_for_l2():
    """Noise divided by w instead of sqrt(w), for L2 with w = 4: a slope above the 2.0 that the metric allows."""
    metric = WeightedLp([4.0], 2)
    assert metric.scales[0] == 2.0
    rng = np.random.default_rng(0)
    for kind in (Laplace, Gaussian):
        standard = kind.for_metric(WeightedLp([1.0], 2)).sample(N, rng)
        assert too_many(half_space_votes(standard / 4.0, 0, 0.01), N, 2.0 * 0.02)
        assert not too_many(half_space_votes(kind.for_metric(metric).sample(N, rng), 0, 0.01), N, 2.0 * 0.02)


def checkerboard(rng, d):
    period = rng.uniform(0.2, 2.0, d)
    return lambda z: np.floor(z / period).sum(axis=1) % 2 == 0


def stripes(rng, d):
    direction = rng.normal(size=d) * rng.uniform(1, 6)
    return lambda z: np.sin(z @ direction) > 0


def network(rng, d):
    first, second = rng.normal(size=(d, 16)) * 3, rng.normal(size=16)
    return lambda z: np.maximum(z @ first, 0) @ second > 0


@every_p
@every_noise
def test_no_model_exceeds_the_curve(kind, p):
    metric = WeightedLp(WEIGHTS, p)
    noise = kind.for_metric(metric)
    rng = np.random.default_rng(1)
    n, excess = 50_000, []
    for make in (checkerboard, stripes, network):
        for _ in range(8):
            model = make(rng, 4)
            x = rng.normal(size=4)
            step = rng.normal(size=4) * (rng.random(4) < 0.5) + np.eye(4)[rng.integers(4)]
            y = x + step / metric(step, np.zeros(4)) * rng.choice([0.05, 0.3, 0.8])
            shares = [model(z + noise.sample(n, rng)).mean() for z in (x, y)]
            excess.append(abs(shares[0] - shares[1]) - noise.curve.bound(metric(x, y)))
    # Hoeffding for 2n independent terms of range 1/n: P(excess >= e) <= 2 exp(-n e^2).
    assert max(excess) <= np.sqrt(np.log(2 / PER_CHECK) / n)


# -- samplers ---------------------------------------------------------------------------------------------------


@every_p
def test_gaussian_sampler(p):
    metric = WeightedLp(WEIGHTS, p)
    sample = Gaussian.for_metric(metric).sample(20_000, np.random.default_rng(2))
    spread = 4 ** max(0, 1 / 2 - 1 / p) / np.sqrt(2 * np.pi) / metric.scales
    for i in range(4):
        assert fits(sample[:, i], stats.norm(0, spread[i]))
        assert not fits(sample[:, i], stats.norm(0, spread[i] / 2))


@every_p
def test_uniform_sampler(p):
    metric = WeightedLp(WEIGHTS, p)
    sample = Uniform.for_metric(metric).sample(20_000, np.random.default_rng(3))
    width = 4 ** (1 - 1 / p) / metric.scales
    for i in range(4):
        assert fits(sample[:, i], stats.uniform(-width[i] / 2, width[i]))


@pytest.mark.parametrize("p", [*EXPONENTS, 1000])
def test_laplace_sampler(p):
    metric = WeightedLp(WEIGHTS, p)
    sample = Laplace.for_metric(metric).sample(20_000, np.random.default_rng(4)) * metric.scales
    largest = np.abs(sample).max(axis=1)
    shares = np.abs(sample) / largest[:, None]
    radius = largest if p == np.inf else largest * (shares**p).sum(axis=1) ** (1 / p)
    assert fits(radius, stats.gamma(4, scale=1 / 2))
    direction = sample / radius[:, None]
    for i in range(4):
        assert not too_many(int((sample[:, i] > 0).sum()), 20_000, 0.5)
        assert not too_few(int((sample[:, i] > 0).sum()), 20_000, 0.5)
        if p < 1000:  # cone measure: |direction_i|^p is Beta(1/p, (d - 1)/p)
            assert fits(np.abs(direction[:, i]) ** p, stats.beta(1 / p, 3 / p))
        elif p == np.inf:  # one coordinate is at the maximum, the others uniform below it
            top = shares.argmax(axis=1)
            assert fits(direction[top != i, i], stats.uniform(-1, 2))
            assert not too_few(int((top == i).sum()), 20_000, 1 / 4)


def test_laplace_for_p_1_has_independent_laplace_coordinates():
    sample = Laplace.for_metric(WeightedLp(WEIGHTS, 1)).sample(20_000, np.random.default_rng(5)) * WEIGHTS
    for i in range(4):
        assert fits(sample[:, i], stats.laplace(scale=1 / 2))
        assert not fits(sample[:, i], stats.laplace(scale=1 / 4))
    signs = (sample[:, 0] > 0) == (np.abs(sample[:, 1]) > np.log(2) / 2)  # two independent fair coins
    assert not too_many(int(signs.sum()), 20_000, 0.5)
    assert not too_few(int(signs.sum()), 20_000, 0.5)


def plausible_scale(kind, p, sample):
    """Whether the width of a sample, with weights `WEIGHTS`, is that of its law, by a statistic whose law is known.

    With 150,000 draws in 4 dimensions, 1% too little (or too much) is 7 standard deviations or more.
    """
    (n, d), scales = sample.shape, WeightedLp(WEIGHTS, p).scales
    if kind is Gaussian:  # the sum of squares is chi-square
        z = sample * scales * np.sqrt(2 * np.pi) / d ** max(0, 1 / 2 - 1 / p)
        statistic, law = float((z**2).sum()), stats.chi2(n * d)
    elif kind is Laplace:  # the sum of radii is gamma
        statistic, law = (
            float(WeightedLp(np.ones(d), p)(sample * scales, np.zeros(d)).sum()),
            stats.gamma(n * d, scale=0.5),
        )
    else:  # the largest number is a power of a uniform one
        statistic, law = float(np.abs(sample * scales).max()) * 2 / d ** (1 - 1 / p), stats.beta(n * d, 1)
    return min(law.cdf(statistic), law.sf(statistic)) >= PER_CHECK


@every_p
@every_noise
def test_the_width_of_noise_is_right_to_one_percent(kind, p):
    sample = kind.for_metric(WeightedLp(WEIGHTS, p)).sample(300_000, np.random.default_rng(7))
    assert plausible_scale(kind, p, sample)
    assert not plausible_scale(kind, p, 0.99 * sample)
    assert not plausible_scale(kind, p, 1.01 * sample)


# -- curves -----------------------------------------------------------------------------------------------------


@every_noise
@every_p
@given(distance=st.floats(0, 1e6))
def test_the_curve_is_a_map_from_distance_to_variation(kind, p, distance):
    noise = kind.for_metric(WeightedLp(WEIGHTS, p))
    bound = float(noise.curve.bound(distance))
    assert 0 <= bound <= min(1, distance)
    assert bound <= noise.curve.bound(distance * 1.001 + 1e-9)
    assert noise.curve.bound(0) == 0


@every_noise
def test_negative_distances_are_refused(kind):
    with pytest.raises(ValueError, match="non-negative"):
        kind.for_metric(WeightedLp([1.0])).curve.bound([0.1, -0.1])


@pytest.mark.parametrize("shift", [0.01, 0.4, 1.0, 2.5])
def test_curves_are_the_exact_variation_on_one_axis(shift):
    laws = {
        Gaussian: stats.norm(0, 1 / np.sqrt(2 * np.pi)),
        Laplace: stats.laplace(scale=1 / 2),
        Uniform: stats.uniform(-0.5, 1),
    }
    for kind, law in laws.items():
        grid = sorted({-20, -0.5, 0, 0.5, shift / 2, shift - 0.5, shift, shift + 0.5, 20})
        variation = sum(
            integrate.quad(lambda t, law=law: abs(law.pdf(t) - law.pdf(t - shift)) / 2, a, b)[0]
            for a, b in pairwise(grid)
        )
        assert float(kind.for_metric(WeightedLp([1.0], 1)).curve.bound(shift)) == pytest.approx(variation, abs=1e-6)


def laplace_variation(step, p, n, rng):
    """Total variation of Laplace(p) noise and its translate by `step`, E[(1 - g(t - e) / g(t))+], by sampling."""
    d = len(step)
    metric = WeightedLp(np.ones(d), p)
    t = Laplace.for_metric(metric).sample(n, rng)
    ratio = np.exp(-2 * (metric(t, step) - metric(t, np.zeros(d))))
    return np.maximum(0, 1 - ratio).mean()


@every_p
def test_laplace_translates_stay_below_the_curve_in_every_norm(p):
    rng, n = np.random.default_rng(6), 100_000
    margin = np.sqrt(np.log(1 / PER_CHECK) / (2 * n))  # Hoeffding, terms in [0, 1]
    for d in (2, 15):
        metric = WeightedLp(np.ones(d), p)
        for step in (np.eye(d)[0], np.ones(d), np.r_[0.5, 0.5, np.zeros(d - 2)], rng.normal(size=d)):
            step = step / metric(step, np.zeros(d))
            assert laplace_variation(step, p, n, rng) <= Laplace.for_metric(metric).curve.bound(1) + margin
    assert (
        laplace_variation(np.ones(1), p, n, rng) >= Laplace.for_metric(metric).curve.bound(1) - margin
    )  # d = 1: exact


# -- certificates -----------------------------------------------------------------------------------------------


def test_gaussian_range_is_that_of_a_half_space():
    noise = Gaussian.for_metric(WeightedLp([1.0], 2))
    position = np.linspace(-1, 1, 9)
    share = ndtr(position * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(noise.curve.highest(share, 0.3), ndtr((position + 0.3) * np.sqrt(2 * np.pi)))
    np.testing.assert_allclose(noise.curve.distance_to_tie(share, 1 - share), np.maximum(position, 0), atol=1e-12)


@every_noise
@every_p
@given(top=st.floats(0, 1), other=st.floats(0, 1))
def test_below_the_distance_to_a_tie_the_order_holds(kind, p, top, other):
    noise = kind.for_metric(WeightedLp(WEIGHTS, p))
    distance = float(noise.curve.distance_to_tie(top, min(other, 1 - top)))
    assert 0 <= distance < np.inf
    if distance > 0:
        inside = 0.999 * distance
        lowest_top = 1 - noise.curve.highest(1 - top, inside)
        assert lowest_top >= noise.curve.highest(min(other, 1 - top), inside) - 1e-9


# -- zero weights and errors ------------------------------------------------------------------------------------


@every_noise
@every_p
def test_features_of_weight_zero_get_no_noise_and_do_not_count(kind, p):
    with_zero = kind.for_metric(WeightedLp([1.0, 0.0, 2.0], p)).sample(10, np.random.default_rng(0))
    without = kind.for_metric(WeightedLp([1.0, 2.0], p)).sample(10, np.random.default_rng(0))
    assert not with_zero[:, 1].any()
    np.testing.assert_array_equal(with_zero[:, [0, 2]], without)


@every_noise
def test_noise_for_a_bad_metric_is_refused(kind):
    with pytest.raises(ValueError, match="weights are all 0"):
        kind.for_metric(WeightedLp([0.0, 0.0]))
    with pytest.raises(ValueError, match="Use 0 for a feature that must not matter"):
        kind.for_metric(WeightedLp([1e-300, 1.0]))
    with pytest.raises(TypeError, match="metric must be a WeightedLp; got list"):
        kind.for_metric([1.0])


def test_repr_says_what_the_noise_is_for():
    assert repr(Uniform.for_metric(WeightedLp([1, 2]))) == "Uniform.for_metric(WeightedLp([1, 2], p=1))"
