"""Calibration that keeps the promise, through the public interface."""

import numpy as np
import pytest
from scipy.special import expit, logit, ndtr
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from chance import too_many
from contract import run_check
from likewise import (
    AdditiveClassifier,
    AdditiveRegressor,
    ProjectedClassifier,
    RecalibratedClassifier,
    SmoothedClassifier,
    WeightedLp,
    audit,
)


@parametrize_with_checks([RecalibratedClassifier(AdditiveClassifier(max_knots=4, penalty=0.01))])
def test_scikit_learn_contract(estimator, check):
    run_check(estimator, check)


@pytest.mark.slow
@parametrize_with_checks([RecalibratedClassifier(AdditiveClassifier(max_knots=4, penalty=0.01), method="sigmoid")])
def test_scikit_learn_contract_of_a_sigmoid(estimator, check):
    run_check(estimator, check)


def two_kinds(n, seed=0):
    """People whose log-odds are ``3 x_0``; x_1 is the price of having been sampled (see `oversampled`)."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, (rng.random(n) < expit(3 * X[:, 0] - 1.5)).astype(int)


METRIC = WeightedLp([1.0, 0.1])


@pytest.fixture(scope="module")
def balanced():
    """A model of a sample in which both outcomes are as frequent: its probabilities are too high for everybody else."""
    X, y = two_kinds(6000)
    weights = np.where(y == 1, 0.5 / y.mean(), 0.5 / (1 - y.mean()))
    return AdditiveClassifier(METRIC, penalty=0.001).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("method", ["isotonic", "sigmoid"])
def test_it_corrects_what_can_be_corrected_and_every_pair_stays_within_the_metric(balanced, method):
    model = RecalibratedClassifier(FrozenEstimator(balanced), method=method).fit(*two_kinds(6000, 1))
    X, y = two_kinds(3000, 2)
    before, after = (brier_score_loss(y, m.predict_proba(X)[:, 1]) for m in (balanced, model))
    truth = brier_score_loss(y, expit(3 * X[:, 0] - 1.5))
    assert after < before - 0.02
    assert after < truth + 0.005
    assert audit(model, X, METRIC).n_violations == 0
    assert (model.guarantee_.level, model.guarantee_.epsilon) == ("exact", 0.0)
    pairs = np.random.default_rng(3).uniform(-1.5, 1.5, (2, 1_000_000, 2))
    pairs[1, ::2] = pairs[0, ::2] + np.random.default_rng(4).normal(0, 1e-3, (500_000, 2))  # half of them very close
    a, b, D = model.predict_proba(pairs[0])[:, 1], model.predict_proba(pairs[1])[:, 1], METRIC(pairs[0], pairs[1])
    assert (np.abs(a - b) <= model.guarantee_.bound(D) + 1e-12).all()
    within = a * (1 - b) <= np.exp(4 * D) * b * (1 - a) + 1e-12  # the odds of a, in those of b
    if method == "sigmoid":
        assert within.all()
        assert model.guarantee_.odds_ratio(0.1) == pytest.approx(np.exp(0.4))
    else:  # a slope of 1 limits no odds, and these are beyond what the inner model's are within
        assert not within.all()
        assert model.guarantee_.odds_ratio(0.1) == np.inf


def test_control_an_ordinary_calibrator_breaks_the_promise_and_a_steeper_map_is_found(balanced):
    X, _ = two_kinds(3000, 2)
    ordinary = CalibratedClassifierCV(FrozenEstimator(balanced), method="isotonic").fit(*two_kinds(6000, 1))
    assert audit(ordinary, X, METRIC).n_violations > 1000
    flat = AdditiveClassifier(WeightedLp([0.2, 0.1]), penalty=0.001).fit(*two_kinds(6000))  # much too timid
    model = RecalibratedClassifier(FrozenEstimator(flat)).fit(*two_kinds(6000, 1))
    z = logit(flat.predict_proba(X)[:, 1]) / 4
    steeper = np.clip(0.5 + 1.01 * (model.predict_proba(X)[:, 1] - 0.5), 0, 1)
    order = np.argsort(z)
    assert (np.diff(model.predict_proba(X)[order, 1]) <= np.diff(z[order]) + 1e-12).all()
    assert (np.diff(steeper[order]) > np.diff(z[order]) + 1e-12).any()


def test_a_timid_model_stays_timid():
    """What would make it bolder is a slope above 1."""
    X, y = two_kinds(4000)
    flat = AdditiveClassifier(WeightedLp([0.2, 0.1]), penalty=0.001).fit(X, y)
    model = RecalibratedClassifier(FrozenEstimator(flat), method="sigmoid").fit(*two_kinds(4000, 1))
    assert model.map_.slope == 1.0


def test_it_is_fitted_on_people_held_out():
    """A tree that knows its training people by heart would look perfect on them."""
    rng = np.random.default_rng(0)
    X, y = rng.random((300, 1)) * 300, rng.integers(0, 2, 300)
    inner = SmoothedClassifier(DecisionTreeClassifier(), metric=WeightedLp([50.0]), noise="splitting", n_draws=20)
    honest = RecalibratedClassifier(inner, random_state=0).fit(X, y)
    assert np.ptp(honest.predict_proba(X)[:, 1]) < 0.3
    flattered = RecalibratedClassifier(FrozenEstimator(inner.fit(X, y))).fit(X, y)  # control: on people it knows
    assert np.ptp(flattered.predict_proba(X)[:, 1]) > 0.9


def half_space(rows):
    return (rows[:, 0] > 0.1).astype(int)


def sampled_model(seed, delta=0.1, n_draws=60):
    X = np.linspace(-0.5, 0.5, 40)[:, None]
    inner = SmoothedClassifier(
        half_space, metric=WeightedLp([1.0], 2), noise="gaussian", n_draws=n_draws, delta=delta, random_state=seed,
        batch=True,
    ).fit(X, np.arange(40) % 2)  # fmt: skip
    return RecalibratedClassifier(FrozenEstimator(inner)).fit(X, (X[:, 0] > 0).astype(int))


def test_a_sampled_model_hands_its_delta_and_its_error_on():
    model = sampled_model(0, delta=0.07)
    inner, promise = model.estimator_.guarantee_, model.guarantee_
    assert (promise.level, promise.delta, promise.n_draws) == ("sampled", 0.07, 60)
    # decide draws from the sampled probabilities, so that their error is part of the curve, not beside it.
    assert (promise.slack, promise.curve.excess) == (0.0, inner.slack)
    assert promise.epsilon == inner.epsilon > 0.1
    assert float(promise.bound(0.2)) == pytest.approx(0.2 + inner.epsilon)
    assert model.certify([[0.3]]).delta == 0.07
    assert "without sampling error" not in promise.statement


def test_the_ends_of_an_interval_are_the_images_of_its_ends():
    model, X = sampled_model(0), np.linspace(-0.6, 0.6, 25)[:, None]
    inner, outer = model.estimator_.certify(X), model.certify(X)

    def image(probability):
        return np.interp(probability - 0.5, model.map_.knots, model.map_.values)

    for end in ("lower", "estimate", "upper"):
        np.testing.assert_allclose(getattr(outer, end)[:, 1], image(getattr(inner, end)[:, 1]), rtol=0, atol=1e-12)
    np.testing.assert_allclose(outer.lower[:, 0], 1 - outer.upper[:, 1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(outer.upper[:, 0], 1 - outer.lower[:, 1], rtol=0, atol=1e-12)
    assert (outer.upper - outer.lower).max() > 0.02
    # A class is certain only where the intervals are apart, and its distance leaves room for the excess.
    lead = np.abs(outer.lower - outer.upper[:, ::-1]).max(axis=1)
    assert (outer.distance <= lead / 2).all()


def test_intervals_of_recalibrated_models_cover_at_their_rate():
    """How often the image of the true probability is outside a recalibrated interval, over seeds of the draws."""
    truth, places = ndtr((0.15 - 0.1) * np.sqrt(2 * np.pi)), []
    for seed in range(200):
        model = sampled_model(seed)
        found = model.certify([[0.15]])
        image = np.interp(truth - 0.5, model.map_.knots, model.map_.values)
        middle, half = (found.lower + found.upper)[0, 1] / 2, (found.upper - found.lower)[0, 1] / 2
        places.append((abs(image - middle) - 1e-12) / half)
    assert not too_many((np.array(places) > 1).sum(), 200, 0.1)
    assert too_many((np.array(places) > 0.2).sum(), 200, 0.1)  # the control


def test_probabilities_are_stretched_where_the_log_odds_allow_it(balanced):
    """On the scale of probabilities alone, a slope of 1 could not follow a change of the base rate."""
    model = RecalibratedClassifier(FrozenEstimator(balanced)).fit(*two_kinds(6000, 1))
    X, _ = two_kinds(3000, 2)
    inner, outer = balanced.predict_proba(X)[:, 1], model.predict_proba(X)[:, 1]
    order = np.argsort(inner)[-600::200]  # where the model is sure
    assert (np.diff(outer[order]) / np.diff(inner[order])).max() > 1.2


def test_a_fitted_model_that_is_not_frozen_is_fitted_anew_for_out_of_fold_scores():
    """A tree that knows everybody by heart: its scores are certain on its own people, and noise on others."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    inner = SmoothedClassifier(
        DecisionTreeClassifier(random_state=0), metric=WeightedLp([30.0, 30.0]), n_draws=50, random_state=0
    )
    fitted = clone(inner).fit(X, y)

    def spread(estimator):
        return np.ptp(RecalibratedClassifier(estimator, random_state=0).fit(X, y).predict_proba(X)[:, 1])

    assert spread(inner) < 0.3  # there is nothing to know
    assert spread(fitted) == spread(inner)
    assert spread(FrozenEstimator(fitted)) > 0.6  # the control: the people that it was trained on
    twice = RecalibratedClassifier(fitted, random_state=0).with_metric(inner.metric).fit(X, y)
    assert np.ptp(twice.predict_proba(X)[:, 1]) == spread(inner)


def test_three_classes_by_temperature():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (900, 2))
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.3 * rng.normal(size=900), [-0.3, 0.3])]
    inner = AdditiveClassifier(METRIC, penalty=0.01, max_knots=8)
    model = RecalibratedClassifier(inner, method="sigmoid", cv=2, random_state=0).fit(X, y)
    assert model.predict_proba(X).shape == (900, 3)
    assert audit(model, X, METRIC).n_violations == 0
    assert 0 <= model.map_.slope <= 1


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (RecalibratedClassifier(LogisticRegression()), [0, 1], "estimator must be a classifier that enforces a metric"),
        (RecalibratedClassifier(AdditiveRegressor()), [0, 1], "enforces a metric"),
        (RecalibratedClassifier(AdditiveClassifier), [0, 1], r"such as AdditiveClassifier\(\)"),
        (RecalibratedClassifier(AdditiveClassifier(METRIC), method="beta"), [0, 1], "method must be"),
        (RecalibratedClassifier(AdditiveClassifier(METRIC)), [0, 1, 2], "method must be 'sigmoid' for more than two"),
        (
            RecalibratedClassifier(ProjectedClassifier(LogisticRegression(), metric=METRIC), method="sigmoid"),
            [0, 1],
            "method must be 'isotonic' for a model whose log-odds are not within the metric",
        ),
        (
            RecalibratedClassifier(AdditiveClassifier(METRIC, penalty=0.1), cv=[([0, 1, 4, 5], [2, 3])]),
            [0, 1],
            "cv must hold out every",
        ),
    ],
)
def test_what_cannot_keep_the_promise_is_refused(model, y, message):
    X, _ = two_kinds(60)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, np.resize(y, 60))
