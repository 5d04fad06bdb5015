"""Certified distances and ranges against models whose truth is known in closed form: near 0, near 1, and saturated."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import expit, ndtr
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from likewise import (
    AdditiveClassifier,
    Gaussian,
    Laplace,
    ProjectedClassifier,
    RecalibratedClassifier,
    SmoothedClassifier,
    SmoothedRegressor,
    ThresholdDecision,
    WeightedLp,
)
from likewise.kernel.bounds import BandBound, Bound, Erf, GaussianBound, LaplaceBound, LoosenedBound, Tanh
from likewise.kernel.certificate import Estimate, certify
from likewise.kernel.links import LINKS
from promised import promise

pytestmark = pytest.mark.filterwarnings("ignore::likewise.VacuousGuaranteeWarning")

ONE = WeightedLp([1.0], 1)
CLASSES = np.array(["no", "yes"])


def clipped(z):
    return np.clip(0.5 + z, 0.0, 1.0)


def half_laplace(z):
    return np.where(z < 0, 0.5 * np.exp(-2 * np.abs(z)), 1 - 0.5 * np.exp(-2 * np.abs(z)))


# The model that uses all of each curve on a line: h(z) at distance |z| from the tie, and |z - z'| from each other.
TRUTHS = {
    Bound: (Bound(), clipped),
    LoosenedBound: (LoosenedBound(0.01), lambda z: clipped(z + np.sign(z) * 0.005)),
    BandBound: (BandBound(Bound(), 0.5, 0.01), lambda z: clipped(z + np.sign(z) * 0.01)),
    Tanh: (Tanh(), lambda z: expit(4 * z)),
    Erf: (Erf(), lambda z: ndtr(np.sqrt(2 * np.pi) * z)),
    GaussianBound: (Gaussian.for_metric(ONE).curve, lambda z: ndtr(np.sqrt(2 * np.pi) * z)),
    LaplaceBound: (Laplace.for_metric(ONE).curve, half_laplace),
}
every_curve = pytest.mark.parametrize(("curve", "h"), TRUTHS.values(), ids=[kind.__name__ for kind in TRUTHS])


def kinds_of(kind):
    return {kind}.union(*(kinds_of(each) for each in kind.__subclasses__()))


def test_every_curve_has_a_truth_here():
    own = {kind for kind in kinds_of(Bound) if kind.__module__.startswith("likewise.")}
    assert own == set(TRUTHS)


def certificate_of(curve, h, z, *, complement=True):
    """As a scorer computes it: both probabilities with what digits they have, or one of them as 1 minus the other."""
    second = np.asarray(h(np.asarray(z, dtype=float)), dtype=float)
    first = 1 - second if complement else np.asarray(h(-np.asarray(z, dtype=float)), dtype=float)
    return certify(Estimate.certain(np.column_stack([first, second])), promise(ONE, curve, "exact", ""), CLASSES)


far = st.floats(-60, 60) | st.floats(-1, 1) | st.sampled_from([3.3, 3.5, -3.5, 9.2, 40.0, 0.0, 1e-9, -1e-12, 1e300])


@every_curve
@given(z=far, complement=st.booleans())
def test_a_certified_distance_is_never_above_the_true_one(curve, h, z, complement):
    distance = float(certificate_of(curve, h, [z], complement=complement).distance[0])
    assert 0 <= distance <= abs(z)
    assert np.isfinite(distance)


@every_curve
@given(z=far, move=st.floats(0, 20), complement=st.booleans())
def test_a_range_at_a_distance_holds_everyone_there(curve, h, z, move, complement):
    low, high = certificate_of(curve, h, [z], complement=complement).range_at(move)
    assert ((low >= 0) & (low <= high) & (high <= 1)).all()
    for there in (z - move, z + move):
        if abs(there - z) > move:
            continue  # rounded away from here
        second, first = float(h(np.array(there))), float(h(np.array(-there)))  # each with all its digits
        assert low[0, 1] <= second * (1 + 1e-12)
        assert high[0, 1] >= second * (1 - 1e-12)
        assert low[0, 0] <= first * (1 + 1e-12)
        assert high[0, 0] >= first * (1 - 1e-12)


@every_curve
def test_little_is_given_away_where_probabilities_have_digits(curve, h):
    z = np.linspace(-0.4, 0.4, 81)
    found = certificate_of(curve, h, z).distance
    if isinstance(curve, LaplaceBound):  # the curve knows less than the half-space: both classes move by bound(D)
        expected = -np.log1p(-(np.abs(2 * h(z) - 1)) / 2)
    else:
        expected = np.maximum(0, np.abs(z) - curve.excess / 2)  # a jump of the excess may be at the tie, or elsewhere
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


def test_control_without_paying_for_rounding_a_saturated_probability_certifies_too_much():
    """What a stored 1 would certify if it were taken at its word."""
    z = np.array([3.5, 4.0, 6.0])
    second = ndtr(np.sqrt(2 * np.pi) * z)
    assert (Erf().distance_to_tie(second, 1 - second) > z).any()
    assert (1 - Erf().highest(1 - second, z) > 0.6).any()  # at the tie itself, where it is 1/2


# -- linear models under Gaussian noise: the distance to a hyperplane ----------------------------------------------


def linear(beta, intercept):
    model = LogisticRegression()
    model.coef_, model.intercept_ = np.array([beta], dtype=float), np.array([float(intercept)])
    model.classes_, model.n_features_in_ = np.array([0, 1]), len(beta)
    return model


def smoothed(beta, intercept, metric, hidden=None):
    rows = np.zeros((2, len(beta))) if hidden is None else np.asarray(hidden, dtype=float)
    rows = np.vstack([rows, rows[:1]])  # people and outcomes do not matter to a frozen model
    y = np.arange(len(rows)) % 2
    return SmoothedClassifier(FrozenEstimator(linear(beta, intercept)), metric=metric, noise="gaussian").fit(rows, y)


def true_distance(x, beta, intercept, weights, p):
    """``|beta . x + intercept| / ||beta / s||_q``, in 60 digits."""
    with localcontext(prec=60):
        x, beta, weights = ([Decimal(float(v)) for v in values] for values in (x, beta, weights))
        margin = abs(sum(b * v for b, v in zip(beta, x, strict=True)) + Decimal(float(intercept)))
        if p == 1:
            slope = max(abs(b) / w for b, w in zip(beta, weights, strict=True))
        elif p == 2:
            slope = sum(b * b / w for b, w in zip(beta, weights, strict=True)).sqrt()
        else:  # infinite
            slope = sum(abs(b) / w for b, w in zip(beta, weights, strict=True))
        return margin / slope


numbers = st.floats(-1e4, 1e4) | st.floats(-5, 5)
slopes = st.floats(0.01, 100) | st.floats(-100, -0.01)


@pytest.mark.parametrize("p", [1, 2, np.inf])
@settings(deadline=None)
@given(
    x=st.tuples(numbers, numbers, numbers),
    beta=st.tuples(slopes, slopes, slopes),
    intercept=numbers,
    weights=st.tuples(*[st.floats(0.05, 20)] * 3),
)
def test_a_linear_model_is_certified_up_to_its_hyperplane_and_not_beyond(p, x, beta, intercept, weights):
    model = smoothed(beta, intercept, WeightedLp(weights, p))
    found = float(model.certify(np.array([x])).distance[0])
    truth = true_distance(x, beta, intercept, weights, p)
    assert Decimal(found) <= truth
    assert found == pytest.approx(float(truth), rel=1e-9, abs=1e-6)  # products of 1e4 and 1e2 cancel


def test_products_that_cancel_certify_no_more_than_their_digits():
    """Sums of products of 1e9: what is left of them is wrong in the seventh digit behind the point."""
    rng = np.random.default_rng(0)
    beta, weights = (0.7, -1.3, 0.9), (1.0, 2.0, 0.5)
    x = rng.normal(size=(300, 3)) * 1e9
    x[:, 2] = -(x[:, 0] * 0.7 - x[:, 1] * 1.3) / 0.9 + rng.normal(size=300)
    found = smoothed(beta, 0.1, WeightedLp(weights, 2)).certify(x).distance
    truth = [true_distance(row, beta, 0.1, weights, 2) for row in x]
    assert not any(Decimal(float(d)) > t for d, t in zip(found, truth, strict=True))
    np.testing.assert_allclose(found, [float(t) for t in truth], rtol=0, atol=1e-4)
    # The control: the sum as it is would certify too much for many of them.
    taken = np.abs((x * beta).sum(axis=1) + 0.1) / np.sqrt(sum(b * b / w for b, w in zip(beta, weights, strict=True)))
    assert sum(Decimal(float(d)) > t for d, t in zip(taken, truth, strict=True)) > 50


def test_a_class_that_changes_at_three_and_a_half_is_certified_up_to_there():
    """x = 3.5 under unit weights and p = 2: the class changes at 3.5, where it used to be certified for ever."""
    x = np.array([[3.5], [-3.5], [0.5], [40.0], [0.0]])
    certificate = smoothed([1.0], 0.0, WeightedLp([1.0], 2)).certify(x)
    np.testing.assert_allclose(certificate.distance, np.abs(x[:, 0]), rtol=1e-9, atol=1e-11)
    assert (certificate.distance <= np.abs(x[:, 0])).all()
    assert certificate.outcome.tolist() == [1, 0, 1, 1, 0]


@settings(deadline=None, max_examples=50)
@given(x=st.floats(-30, 30), offsets=st.lists(st.floats(-6, 6), min_size=1, max_size=5))
def test_hidden_columns_move_the_tie_and_it_is_found(x, offsets):
    """``h = mean_b Phi(x + b)`` is 1/2 somewhere; on the way there the class of the smoothed model is the same."""
    hidden = np.column_stack([np.zeros(len(offsets)), offsets])
    model = smoothed([1.0, 1.0], 0.0, WeightedLp([1.0, 0.0], 2), hidden)
    offsets = np.append(offsets, offsets[0])
    certificate = model.certify(np.array([[x, 0.0]]))
    distance = float(certificate.distance[0])
    assert np.isfinite(distance)
    unit = np.sqrt(2 * np.pi)
    side = 1 if certificate.outcome[0] == 1 else -1
    there = x - side * np.linspace(0, distance, 50)
    lead = side * (ndtr(unit * (there[:, None] + offsets)) - ndtr(-unit * (there[:, None] + offsets))).mean(axis=1)
    assert (lead >= -1e-15).all()
    # Nor is much given away: a little further, the other class has caught up, unless h is flat there.
    beyond = x - side * (distance + 1e-3)
    slope = unit * np.exp(-((unit * (beyond + offsets)) ** 2) / 2).mean() / unit
    assume(slope > 1e-3)
    assert side * (ndtr(unit * (beyond + offsets)) - 0.5).mean() < 0


def test_a_model_that_sees_nothing_never_changes_its_class():
    model = smoothed([0.0, 1.0], 0.0, WeightedLp([1.0, 0.0], 2), [[0.0, 1.0], [0.0, 2.0]])
    assert model.certify([[5.0, -9.0]]).distance.tolist() == [np.inf]


# -- every other model: trees under every noise, scorecards, projections, recalibrated models ------------------------


def stump(classify=True):
    tree = DecisionTreeClassifier(max_depth=1) if classify else DecisionTreeRegressor(max_depth=1)
    return tree.fit([[-1.0], [1.0]], [0, 1])


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("noise", ["gaussian", "laplace", "uniform", "splitting"])
@pytest.mark.parametrize("weight", [0.25, 1.0, 7.0])
def test_a_tree_is_not_certified_beyond_its_threshold(noise, p, weight):
    metric = WeightedLp([weight], p)
    x = np.concatenate([np.linspace(-6, 6, 241), [-100, 3.5, 1e9]]) / metric.scales[0]
    rows = np.array([[-1.0], [1.0]])
    model = SmoothedClassifier(FrozenEstimator(stump()), metric=metric, noise=noise).fit(rows, [0, 1])
    found = model.certify(x[:, None])
    truth = np.abs(x) * metric.scales[0]
    reach = 1 / model.guarantee_.n_draws if noise == "splitting" else 0.0  # cells have a width
    assert (found.distance <= truth + reach).all()
    assert np.isfinite(found.distance).all()
    for move in (0.5, 3.0):
        low, high = found.range_at(move)
        step = move / metric.scales[0]
        for there in (x - step, x + step):
            h = model.predict_proba(there[:, None])
            assert (low <= h + 2.0**-40).all()
            assert (h <= high + 2.0**-40).all()


def test_the_range_of_a_regressor_far_from_zero_is_rounded_outwards():
    """Predictions near a million have 10 digits left behind the point; the range must not pretend to have more."""
    limits = (1e6, 1e6 + 1)
    tree = DecisionTreeRegressor(max_depth=1).fit([[-1.0], [1.0]], list(limits))
    model = SmoothedRegressor(FrozenEstimator(tree), metric=WeightedLp([1.0], 2), noise="gaussian", output_range=limits)
    x = np.linspace(-5, 5, 101)
    found = model.fit([[-1.0], [1.0]], list(limits)).certify(x[:, None])
    for move in (0.1, 1.0, 4.0):
        low, high = found.range_at(move)
        true_low, true_high = (ndtr(np.sqrt(2 * np.pi) * (x + step)) for step in (-move, move))
        assert (low[:, 0] - limits[0] <= true_low).all()
        assert (high[:, 0] - limits[0] >= true_high).all()
        assert ((low >= limits[0]) & (high <= limits[1])).all()


@pytest.mark.parametrize("link", ["logistic", "probit", "clip"])
def test_a_scorecard_is_certified_by_its_points(link):
    """The steepest card allowed, on a line: the score is `unit` times the distance from the tie."""
    unit = LINKS[link].unit
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-9, 9, 600), np.linspace(-9, 9, 50)])
    model = AdditiveClassifier(WeightedLp({"a": 1.0}), link=link, penalty=1e-12).fit(x[:, None], x > 0.1)
    found = model.certify(x[:, None])
    score = model.scorer_.scores(model._people(x[:, None]))[:, 0]
    if link != "clip":
        assert np.abs(score).max() > 2.5 * unit  # saturated
    with localcontext(prec=60):
        units = {"logistic": Decimal(4), "probit": (2 * Decimal("3.14159265358979323846264338327950288")).sqrt()}
        truth = [abs(Decimal(float(s))) / units.get(link, Decimal(1)) for s in score]
        assert not any(Decimal(float(d)) > t for d, t in zip(found.distance, truth, strict=True))
    np.testing.assert_allclose(found.distance, np.abs(score) / unit, rtol=1e-9, atol=1e-9)
    # And nobody is closer to a person of the other class than that.
    apart = np.abs(x[:, None] - x[None, :])
    other = found.outcome[:, None] != found.outcome[None, :]
    assert (found.distance <= np.where(other, apart, np.inf).min(axis=1)).all()


def test_several_classes_of_a_scorecard_are_certified_by_their_points():
    rng = np.random.default_rng(1)
    x = rng.uniform(-9, 9, 500)
    model = AdditiveClassifier(WeightedLp({"a": 1.0}), penalty=1e-9).fit(x[:, None], np.digitize(x, [-3, 3]))
    found = model.certify(x[:, None])
    score = np.sort(model.scorer_.scores(model._people(x[:, None])), axis=1)
    np.testing.assert_allclose(found.distance, (score[:, -1] - score[:, -2]) / 4, rtol=1e-9, atol=1e-9)
    apart = np.abs(x[:, None] - x[None, :])
    other = found.outcome[:, None] != found.outcome[None, :]
    assert (found.distance <= np.where(other, apart, np.inf).min(axis=1)).all()


def some_models():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + 0.3 * rng.normal(size=300) > 0).astype(int)
    metric = WeightedLp([3.0, 0.5])
    card = AdditiveClassifier(metric, penalty=0.01)
    yield ProjectedClassifier(DecisionTreeClassifier(max_depth=4), metric=metric, random_state=0), X, y
    yield RecalibratedClassifier(card, method="sigmoid", random_state=0), X, y
    yield RecalibratedClassifier(card, random_state=0), X, y
    tree = SmoothedClassifier(DecisionTreeClassifier(max_depth=4), metric=metric, random_state=0)
    yield RecalibratedClassifier(tree, random_state=0), X, y
    yield tree, X, y
    yield ThresholdDecision(card, threshold=0.4, width=0.3), X, y
    yield tree.__class__(DecisionTreeClassifier(max_depth=4), metric=metric, noise="gaussian", random_state=0), X, y
    yield tree.__class__(DecisionTreeClassifier(max_depth=4), metric=metric, noise="splitting"), X, y


@pytest.mark.parametrize("case", range(8))
def test_nobody_within_the_certified_distance_has_another_class(case):
    model, X, y = list(some_models())[case]
    model.fit(X, y)
    rng = np.random.default_rng(3)
    X = np.vstack([X, 20 * X[:50]])
    found = model.certify(X)
    assert np.isfinite(found.distance).all()
    for share in (0.5, 0.999999):
        towards = rng.uniform(-1, 1, (len(X), 2))
        towards /= (np.abs(towards) * model.guarantee_.metric.scales).sum(axis=1)[:, None]
        there = X + share * found.distance[:, None] * towards
        assert (model.predict(there)[found.distance > 0] == found.outcome[found.distance > 0]).all()
        low, high = found.range_at(0.3)
        h = model.predict_proba(X + 0.3 * share * towards)
        assert ((low - 1e-12 <= h) & (h <= high + 1e-12)).all()


def test_a_regression_is_within_the_range_at_a_distance():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 2))
    model = SmoothedRegressor(
        DecisionTreeRegressor(max_depth=4), metric=WeightedLp([1.0, 0.3]), output_range=(-50.0, 70.0)
    ).fit(X, Ridge().fit(X, 40 * X[:, 0]).predict(X))
    found = model.certify(X)
    low, high = found.range_at(0.2)
    assert found.distance is None
    h = model.predict(X + np.array([0.1, 0.3]))
    assert ((low[:, 0] <= h) & (h <= high[:, 0])).all()
