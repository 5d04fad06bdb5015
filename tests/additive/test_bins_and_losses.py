"""The pieces of a fit by hand: knots, where people stand between them, and derivatives of losses."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import norm

from likewise import AdditiveClassifier, AdditiveRegressor, TableMetric, WeightedLp
from likewise.additive.binning import bin_columns, choose_knots, locate, slot_shares
from likewise.additive.objective import LogLoss, PartialLoss, ProbitLoss, SoftmaxLoss, SquaredLoss
from parts import of_parts

RNG = np.random.default_rng(0)
SCORES = RNG.normal(size=(3, 20))
SHARES = RNG.dirichlet(np.ones(3), 20).T
LOSSES = {
    "log": (LogLoss(SHARES[:1]), SCORES[:1]),
    "probit": (ProbitLoss(SHARES[:1]), SCORES[:1]),
    "squared": (SquaredLoss(SCORES[1:2]), SCORES[:1]),
    "softmax": (SoftmaxLoss(SHARES), SCORES),
    "one function": (PartialLoss(SHARES[:1], SoftmaxLoss(SHARES), SCORES, [1]), SCORES[:1]),
    "two functions": (PartialLoss(SHARES[1:3], SoftmaxLoss(SHARES), SCORES, [1, 2]), SCORES[:2]),
}


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_are_those_of_small_steps(name):
    loss, scores = LOSSES[name]
    for k in range(len(scores)):
        step = np.zeros_like(scores)
        step[k] = 1e-5
        slope = (loss.values(scores + step) - loss.values(scores - step)) / 2e-5
        np.testing.assert_allclose(loss.derivative(scores)[k], slope, rtol=0, atol=1e-9)
        for other in range(k + 1):
            bend = (loss.derivative(scores + step) - loss.derivative(scores - step))[other] / 2e-5
            np.testing.assert_allclose(loss.curvature(scores, k, other), bend, rtol=0, atol=1e-9)


def test_losses_by_hand():
    scores = np.array([[0.5]])
    assert LogLoss(np.array([[0.25]])).values(scores) == pytest.approx(
        -0.25 * np.log(expit(0.5)) - 0.75 * np.log(1 - expit(0.5))
    )
    assert ProbitLoss(np.array([[0.25]])).values(scores) == pytest.approx(
        -0.25 * norm.logcdf(0.5) - 0.75 * norm.logcdf(-0.5)
    )
    assert SquaredLoss(np.array([[2.0]])).values(scores) == pytest.approx(2.25)


@pytest.mark.parametrize("name", ["log", "probit", "squared", "softmax"])
def test_the_best_constant_has_no_slope(name):
    loss, scores = LOSSES[name]
    best = loss.best_constants(loss.target.mean(axis=1))
    everyone = np.repeat(np.reshape(best, (-1, 1)), scores.shape[1], axis=1)
    np.testing.assert_allclose(loss.derivative(everyone).mean(axis=1), 0, atol=1e-12)


def test_knots_are_all_values_if_they_are_few_and_weighted_quantiles_otherwise():
    assert choose_knots(np.array([3.0, 1.0, 1.0, 2.0]), np.ones(4), 3).tolist() == [1.0, 2.0, 3.0]
    values = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    assert choose_knots(values, np.ones(5), 3).tolist() == [0.0, 2.0, 4.0]
    assert choose_knots(values, np.array([1.0, 1.0, 1.0, 9.0, 1.0]), 3).tolist() == [0.0, 3.0, 4.0]
    assert choose_knots(values[::-1], np.array([1.0, 9.0, 1.0, 1.0, 1.0]), 3).tolist() == [0.0, 3.0, 4.0]
    assert choose_knots(values, np.array([0.0, 1.0, 1.0, 1.0, 0.0]), 2).tolist() == [0.0, 4.0]  # the ends, always


def test_people_stand_between_knots_and_beyond_them_at_the_ends():
    index, fraction = locate(np.array([-9.0, 0.0, 1.0, 2.0, 5.0, 6.0, 99.0]), np.array([0.0, 2.0, 6.0]))
    np.testing.assert_allclose(index + fraction, [0.0, 0.0, 0.5, 1.0, 1.75, 2.0, 2.0])
    assert locate(np.array([7.0]), np.array([3.0]))[1].tolist() == [0.0]


def binned(rows, weights, missing=np.nan, numbers=(True, True, False)):
    n = rows.shape[1]
    metric = of_parts(np.ones(n), np.array(numbers[:n]), np.array([np.nan, missing, np.nan][:n]), 1.0)
    return bin_columns(rows, weights / weights.sum(), metric, 8)


def test_slots_have_the_weight_of_the_people_at_them():
    """Values 0, 1 and 4 are knots; the second column is missing for the third person, who counts twice."""
    rows = np.array([[0.0, 5.0, 1.0], [1.0, 7.0, 0.0], [4.0, np.nan, 1.0]])
    intercept, first, second, third = binned(rows, np.array([1.0, 1.0, 2.0]), missing=0.5)
    assert intercept.share.tolist() == [1.0]
    assert first.share.tolist() == [0.25, 0.25, 0.5]
    assert (second.share.tolist(), second.has_missing, second.knots.tolist()) == ([0.25, 0.25, 0.5], True, [5.0, 7.0])
    assert third.share.tolist() == [0.25, 0.75]
    assert first.spread == pytest.approx(np.sqrt(np.average((rows[:, 0] - 2.25) ** 2, weights=[1, 1, 2])))
    assert second.spread == 1.0
    np.testing.assert_allclose(slot_shares(first, np.array([1.0, 10.0, 100.0])), [1.0, 10.0, 100.0])


def test_a_column_that_is_the_same_for_everyone_is_left_out_unless_it_is_missing_for_some():
    same = np.array([[2.0, 3.0, 0.0], [2.0, 3.0, 0.0]])
    assert [part.column for part in binned(same, np.ones(2), missing=0.5)] == [-1]
    same[0, 1] = np.nan
    assert [part.column for part in binned(same, np.ones(2), missing=0.5)] == [-1, 1]
    weightless = binned(np.array([[1.0], [2.0], [9.0]]), np.array([1.0, 1.0, 0.0]))
    assert weightless[1].knots.tolist() == [1.0, 2.0]


def test_fewer_knots_leave_people_where_they_are():
    rows = np.append(np.arange(8.0), np.nan)[:, None]
    part = binned(np.column_stack([rows, rows])[:, ::-1], np.ones(9), missing=0.5)[2]
    coarse = part.coarser(3)
    assert (part.n_knots, coarse.knots.tolist(), coarse.n_slots) == (8, [0.0, 3.0, 7.0], 4)
    at = np.interp(coarse.index + coarse.fraction, [0, 1, 2], coarse.knots)
    np.testing.assert_allclose(at[:8], np.arange(8.0))
    assert coarse.index[8] == 3  # the slot of what is missing


def test_weights_count_as_repetitions_in_the_whole_fit():
    X = RNG.normal(size=(40, 2))
    y = (X[:, 0] + RNG.normal(size=40) > 0).astype(int)
    times = RNG.integers(1, 4, 40)
    metric = WeightedLp([0.3, 0.2])
    for model, outcome in ((AdditiveClassifier, y), (AdditiveRegressor, X @ [1.0, 2.0])):
        weighted, repeated = (model(metric, penalty=1e-3, max_knots=5) for _ in range(2))
        weighted.fit(X, outcome, sample_weight=times)
        repeated.fit(np.repeat(X, times, axis=0), np.repeat(outcome, times))
        answer = "predict_proba" if model is AdditiveClassifier else "predict"
        np.testing.assert_allclose(getattr(weighted, answer)(X), getattr(repeated, answer)(X), rtol=0, atol=1e-6)


def test_unseen_and_weightless_categories_get_the_mean():
    people = pd.DataFrame({"job": [*"aaabbbc"]})
    y = np.array([0, 0, 1, 1, 1, 0, 1])
    metric = TableMetric({}, {"job": 0.2})
    model = AdditiveClassifier(metric, penalty=1e-3).fit(people, y, sample_weight=[1, 1, 1, 1, 1, 1, 0])
    card = model.scorecard().set_index("range")["points"]
    assert card["c"] == card["any other"] == 0.0
    assert card["a"] == pytest.approx(-card["b"])


@pytest.mark.parametrize("limits", [(0, 1), (100, 300), (-5, -1)])
def test_a_line_that_the_metric_just_allows_is_found_whatever_the_range(limits):
    low, high = limits
    X = np.linspace(0, 100, 21)[:, None]
    line = low + (high - low) * X[:, 0] / 100
    model = AdditiveRegressor(WeightedLp([0.01]), penalty=1e-6, output_range=limits).fit(X, line)
    np.testing.assert_allclose(model.predict(X), line, rtol=0, atol=1e-3 * (high - low))
