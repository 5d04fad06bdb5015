"""What a guarantee means in odds."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit, logit

from likewise import Gaussian, TableMetric, WeightedLp
from likewise.kernel.bounds import Bound, Erf, LoosenedBound, Tanh
from likewise.kernel.certificate import Estimate, certify
from oracle import PROMISES
from promised import promise as promised_guarantee

METRIC = WeightedLp([1.0])
DISTANCES = np.array([0, 1e-9, 0.01, 0.05, 0.3, 2, 50])
CHANCES = np.array([0, 1e-300, 1e-12, 0.03, 0.5, 0.97, 1 - 1e-12, 1])


def of(curve, **more):
    return promised_guarantee(METRIC, curve, "exact", "", **more)


def test_the_odds_ratio_is_exp_4_d():
    np.testing.assert_allclose(of(Tanh()).odds_ratio(DISTANCES), np.exp(4 * DISTANCES), rtol=1e-14)
    assert of(Tanh()).odds_ratio(0) == 1
    assert of(Tanh()).odds_ratio(1e3) == np.inf
    with pytest.raises(ValueError, match="distance must be non-negative"):
        of(Tanh()).odds_ratio(-0.1)


@pytest.mark.parametrize(
    "guarantee",
    [of(Bound()), of(Erf()), of(LoosenedBound(0.01)), of(Tanh(), slack=0.01), of(Tanh(), output_range=(0.0, 9.0))],
    ids=["total variation", "probit", "loosened", "sampled", "regression"],
)
def test_where_odds_are_not_limited_the_ratio_is_infinite_and_nothing_is_said(guarantee):
    assert (guarantee.odds_ratio([0.05, 1]) == np.inf).all()
    assert "odds" not in guarantee.statement


def test_control_the_odds_of_a_probit_model_have_no_limit():
    """At D = 0.1 the odds ratio of a probit pair exceeds exp(0.4) far out: it must not be said to be limited."""
    low = 1e-12
    high = float(Erf().highest(low, 0.1))
    assert high / (1 - high) / (low / (1 - low)) > np.exp(0.4)


@pytest.mark.parametrize("distance", DISTANCES)
def test_ranges_have_their_closed_form(distance):
    low, high = of(Tanh()).range_at(CHANCES, distance).T
    room = 4 * np.finfo(float).eps  # a chance may have been rounded by this much
    above, below = np.minimum(1, CHANCES + room), np.maximum(0, CHANCES - room)
    np.testing.assert_allclose(high, expit(logit(above) + 4 * distance), rtol=1e-12)
    np.testing.assert_allclose(low, expit(logit(below) - 4 * distance), rtol=1e-9, atol=1e-15)


def test_ranges_are_rounded_outwards():
    """Against exact arithmetic, with exp(4 D) = 2 to within its last digits."""
    distance = np.log(2) / 4
    for chance in (0.03, 0.1, 0.5, 0.9, 1 - 2**-40):
        q = Fraction(chance)
        low, high = (Fraction(float(end)) for end in of(Tanh()).range_at(chance, distance))
        assert low <= q / (2 * (1 - q) + q)
        assert high >= 2 * q / (2 * q + 1 - q)


def test_a_chance_of_three_percent():
    low, high = of(Tanh()).range_at(0.03, 0.05)
    assert 0.036 < high < 0.0365
    assert 0.0245 < low < 0.025
    assert "at a chance of 3%, five points of distance are at most 0.65 points of chance" in of(Tanh()).statement
    assert "D = 0.05" in of(Tanh()).describe()
    assert ["3%", "3.12%", "3.65%", "4.42%"] in map(str.split, of(Tanh()).describe().splitlines())


@pytest.mark.parametrize("curve", [Bound(), Erf(), Tanh(), LoosenedBound(0.02), Gaussian(METRIC).curve])
def test_ranges_are_within_the_bound_and_grow_with_the_distance(curve):
    ranges = np.stack([of(curve).range_at(CHANCES, distance) for distance in DISTANCES])
    widest = of(curve).bound(DISTANCES)[:, None] + 1e-12
    assert (ranges[..., 0] >= CHANCES - widest).all()
    assert (ranges[..., 1] <= CHANCES + widest).all()
    for nearer, farther in pairwise(ranges):
        assert (farther[:, 0] <= nearer[:, 0] + 1e-15).all()
        assert (farther[:, 1] >= nearer[:, 1] - 1e-15).all()


@pytest.mark.parametrize("slack", [0.0, 0.03])
@pytest.mark.parametrize("limits", [None, (-5.0, 20.0), (1e9, 1e9 + 1)], ids=str)
@pytest.mark.parametrize("curve", [Bound(), LoosenedBound(0.02), Tanh(), Erf()])
def test_ranges_are_what_the_bound_leaves_with_sampling_error_and_in_the_unit_of_the_output(curve, limits, slack):
    """In exact fractions where the bound is one; certificates start from the ends of an interval."""
    low, high = limits or (0.0, 1.0)
    guarantee, name = of(curve, slack=slack, output_range=limits), type(curve).__name__
    for distance in (0.0, 1e-9, 0.01, 0.3, 2.0):
        promise = PROMISES[{"Tanh": "logistic", "Erf": "probit"}.get(name, "line")](distance)
        curved = min(1, Fraction(promise) + Fraction(curve.excess)) if distance else Fraction(0)
        scores = [low + (high - low) * share for share in (0, 0.03, 0.5, 0.97, 1)]
        room = Fraction(high) - Fraction(low)
        for score, found in zip(scores, guarantee.range_at(scores, distance), strict=True):
            ends = [Fraction(score) + sign * room * min(1, curved + Fraction(slack)) for sign in (-1, 1)]
            ends = [min(max(end, Fraction(low)), Fraction(high)) for end in ends]
            if slack or limits or name not in ("Tanh", "Erf"):
                np.testing.assert_allclose(found, [float(end) for end in ends], rtol=1e-12, atol=1e-12)
            if name not in ("Tanh", "Erf"):
                assert found[0] <= ends[0]
                assert found[1] >= ends[1]
            if name in ("Tanh", "Erf"):
                continue
            # An interval of a tenth of the range: outputs may be rounded by 2^-40 of the largest.
            lower, upper = max(low, score - 0.05 * float(room)), min(high, score + 0.05 * float(room))
            interval = Estimate(*(np.array([[value]]) for value in (score, lower, upper)), np.array([9]))
            if limits is None:
                continue
            certified = [float(end[0, 0]) for end in certify(interval, guarantee).range_at(distance)]
            error = Fraction(1, 2**40) * max(abs(Fraction(low)), abs(Fraction(high)), room)
            least = max(Fraction(low), Fraction(lower) - room * curved - error)
            most = min(Fraction(high), Fraction(upper) + room * curved + error)
            assert least - 2 * error <= certified[0] <= least
            assert most <= certified[1] <= most + 2 * error
    with pytest.raises(ValueError, match="score must be between"):
        guarantee.range_at(high + 1, 0.1)


def test_a_metric_in_odds():
    metric = TableMetric.from_odds({"balance": (0.05, 1000), "age": 0.02}, {"region": 0.2}, missing={"age": 0.1})
    assert metric.numeric["balance"] == pytest.approx(np.log(1.05) / 4 / 1000)
    assert metric.numeric["age"] == pytest.approx(np.log(1.02) / 4)
    assert metric.categorical["region"] == pytest.approx(np.log(1.2) / 4)
    assert metric.missing["age"] == pytest.approx(np.log(1.1) / 4)
    assert of(Tanh()).odds_ratio(1000 * metric.numeric["balance"]) == pytest.approx(1.05)
    assert TableMetric.from_odds({}, {"a": 1e9}).categorical["a"] == 1


@pytest.mark.parametrize("odds", [-0.05, float("nan"), float("inf"), "5%", True, (0.05, 0), (0.05, -1000)])
def test_odds_that_make_no_sense_are_refused_in_a_line(odds):
    with pytest.raises(ValueError, match=r"odds must .* for 'balance'") as error:
        TableMetric.from_odds({"balance": odds})
    assert "\n" not in str(error.value)


def test_a_score_that_is_1_after_rounding_may_fall_at_a_large_distance():
    guarantee = promised_guarantee(WeightedLp([1.0]), Tanh(), "exact", "A basis.")
    almost = 1 - 2.0**-53  # rounded to 1, or as it is
    true = float(expit(logit(almost) - 4 * 8.0))
    assert guarantee.range_at(1.0, 8.0)[0] <= true
    assert guarantee.range_at(0.0, 8.0)[1] >= 1 - true
    assert guarantee.range_at(0.5, 0.05)[0] == pytest.approx(expit(-0.2), rel=1e-9)


def random_pair(rng):
    """Chances of three models for two people, whose odds differ by a factor of at most r, and r."""
    D = rng.uniform(0.01, 0.5)
    scores = rng.normal(0, 3, 3)
    return expit(scores), expit(scores + rng.choice([-1, 1], 3) * rng.uniform(0, 4 * D, 3)), np.exp(4 * D)


@pytest.mark.parametrize(
    ("kept", "change"),
    [
        (True, lambda h: np.minimum(h[0], 0.3)),
        (True, lambda h: np.maximum(h[0], 0.2)),
        (True, lambda h: 0.6 * h[0] + 0.4 * 0.05),
        (True, np.median),
        (True, np.max),
        (True, lambda h: h @ [0.5, 0.3, 0.2]),
        (False, lambda h: np.maximum(h[0] - 0.02, 0)),  # a slope of at most 1, as for those above
        (False, lambda h: np.round(h[0], 2)),
    ],
    ids=[
        "cap",
        "floor",
        "average with a constant",
        "median",
        "largest",
        "average",
        "control shift",
        "control rounding",
    ],
)
def test_what_preserves_a_limit_on_odds(kept, change):
    rng, exceeded = np.random.default_rng(0), False
    for _ in range(3000):
        h, other, ratio = random_pair(rng)
        a, b = change(h), change(other)
        exceeded |= not a * (1 - b) <= ratio * b * (1 - a) * (1 + 1e-12)
    assert exceeded is not kept


def test_a_shift_by_two_points_multiplies_odds():
    """The figures of docs/theory.md §14."""
    high = of(Tanh()).range_at(0.021, 0.05)[1]
    assert high == pytest.approx(0.02553, abs=5e-6)
    assert (high - 0.02) / (1 - (high - 0.02)) / (0.001 / 0.999) == pytest.approx(5.556, abs=1e-3)
