"""Penalties against the restricted likelihood itself, which has a closed form for squared loss."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from likewise import AdditiveClassifier, AdditiveRegressor, TableMetric, WeightedLp
from likewise.additive.binning import bin_columns, knots_for
from likewise.additive.design_matrix import Layout
from likewise.additive.fit import effective_n_samples
from likewise.additive.objective import LogLoss, Objective, SquaredLoss
from likewise.additive.solver import choose_penalties
from parts import of_parts


def problem_of(rows, loss, numbers):
    n, columns = rows.shape
    weights = of_parts(np.full(columns, 100.0), np.array(numbers), np.full(columns, np.nan), 1.0)
    parts = bin_columns(rows, np.full(n, 1 / n), weights, 12)
    layout = Layout(parts, weights, 1.0, {})
    return Objective(layout, loss, np.full(n, 1 / n), np.zeros(len(parts)), n)


def restricted_likelihood(problem, penalties):
    """``log p(t | penalties)`` up to a constant, the dispersion and the intercept integrated or maximised out."""
    n, layout = len(problem.weights), problem.layout
    basis = np.zeros((n, layout.to_slots.shape[0]))
    for part, start in zip(layout.parts, layout.slot_starts, strict=False):
        fraction = np.zeros(n) if part.fraction is None else part.fraction
        basis[np.arange(n), start + part.index] += 1 - fraction
        basis[fraction > 0, start + part.index[fraction > 0].astype(int) + 1] += fraction[fraction > 0]
    Z = (basis @ layout.to_slots.toarray())[:, 1:]
    R = replace(problem, penalties=np.asarray(penalties)).roughness[1:, 1:]
    # Loss (a - t)^2 / n and x'Rx: noise of variance phi / 2, effects of covariance phi (2 n R)^-1.
    V = np.eye(n) + Z @ np.linalg.inv(n * R) @ Z.T
    inverse, ones, t = np.linalg.inv(V), np.ones((n, 1)), problem.loss.target[0]
    precision = float((ones.T @ inverse @ ones)[0, 0])
    left = t - float((ones.T @ inverse @ t)[0]) / precision
    return -0.5 * (np.linalg.slogdet(V)[1] + np.log(precision) + (n - 1) * np.log(left @ inverse @ left))


def test_the_restricted_likelihood_is_largest_there():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.uniform(size=300), rng.uniform(size=300), rng.integers(0, 8, 300)])
    t = np.sin(7 * rows[:, 0]) + 0.5 * rng.normal(size=8)[rows[:, 2].astype(int)] + 0.4 * rng.normal(size=300)
    problem = problem_of(rows, SquaredLoss(t[None]), [True, True, False])
    found = choose_penalties(problem, labels=False).penalties
    best = restricted_likelihood(problem, found)
    for j in (1, 3):
        for factor in (1 / 3, 3):
            other = found.copy()
            other[j] *= factor
            assert restricted_likelihood(problem, other) < best - 0.05  # control: it can tell penalties apart
    assert found[2] > 100 * found[1]  # nothing depends on the second column


def test_a_column_without_effect_is_flat_and_a_rough_one_is_not():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(
        {"smooth": rng.uniform(size=4000), "rough": rng.integers(0, 40, 4000), "none": rng.normal(size=4000)}
    )
    steps = 1.5 * rng.normal(size=40)
    y = (rng.random(4000) < expit(2 * X["smooth"] - 1 + steps[X["rough"]])).astype(int)
    model = AdditiveClassifier(TableMetric({"smooth": 5, "rough": 5, "none": 5}, missing="refuse")).fit(X, y)
    ranges = {shape.column: np.ptp(shape.values) for shape in model.scorer_.model.shapes}
    assert ranges[2] < 0.3 < 1.5 < ranges[0] < 2.5
    rough = next(shape for shape in model.scorer_.model.shapes if shape.column == 1)
    assert np.corrcoef(rough.values[0], steps)[0, 1] > 0.95
    assert model.penalty_["none"] > 100 * model.penalty_["rough"]


def test_penalties_do_not_depend_on_the_metric_nor_on_the_order_of_people():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 2))
    y = (rng.random(500) < expit(2 * np.sin(2 * X[:, 0]))).astype(int)
    first = AdditiveClassifier(WeightedLp([0.5, 0.3])).fit(X, y).penalty_
    order = rng.permutation(500)
    assert AdditiveClassifier(WeightedLp([0.1, 5.0])).fit(X[order], y[order]).penalty_ == first


def test_penalties_that_were_found_can_be_given():
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"a": rng.normal(size=400), "b": rng.normal(size=400)})
    y = (rng.random(400) < expit(X["a"])).astype(int)
    metric = TableMetric({"a": 0.4, "b": 0.2}, missing="refuse")
    found = AdditiveClassifier(metric).fit(X, y)
    again = AdditiveClassifier(metric, penalty=found.penalty_).fit(X, y)
    assert again.penalty_ == found.penalty_
    assert again.predict_proba(X).tobytes() == found.predict_proba(X).tobytes()
    named = AdditiveClassifier(metric, penalty={"a": 1e-3}).fit(X, y)  # the other gets the largest that is named
    assert (
        named.predict_proba(X).tobytes()
        == AdditiveClassifier(metric, penalty=1e-3).fit(X, y).predict_proba(X).tobytes()
    )
    three, of_three = X.assign(c=rng.normal(size=400)), TableMetric({"a": 0.4, "b": 0.2, "c": 0.3})
    two = AdditiveClassifier(of_three, penalty={"a": 1e-3, "b": 0.1}).fit(three, y)
    all_three = AdditiveClassifier(of_three, penalty={"a": 1e-3, "b": 0.1, "c": 0.1}).fit(three, y)
    assert two.predict_proba(three).tobytes() == all_three.predict_proba(three).tobytes()
    with pytest.raises(ValueError, match="penalty must name columns of X"):
        AdditiveClassifier(metric, penalty={"c": 1e-3}).fit(X, y)
    with pytest.raises(ValueError, match="penalty must be 'auto' or a mapping"):
        AdditiveClassifier(metric, penalty={"a": -1.0}).fit(X, y)


def test_a_teacher_is_followed_more_closely_than_labels():
    """Its probabilities have no noise, so the dispersion is estimated and not taken as 1."""
    rng = np.random.default_rng(4)
    X = rng.uniform(size=(600, 1))
    chances = expit(3 * np.sin(9 * X[:, 0]))
    y = (rng.random(600) < chances).astype(int)
    metric = WeightedLp([50.0])
    taught = AdditiveClassifier(metric, teacher=lambda people: expit(3 * np.sin(9 * people[:, 0]))).fit(X, y)
    assert np.abs(taught.predict_proba(X)[:, 1] - chances).max() < 0.02
    assert taught.penalty_["feature 0"] < AdditiveClassifier(metric).fit(X, y).penalty_["feature 0"] / 10


def test_regression_without_noise_and_classes_that_part_have_penalties_too():
    X = np.linspace(0, 1, 60)[:, None]
    exact = AdditiveRegressor(WeightedLp([2.0])).fit(X, 10 * X[:, 0])
    assert np.abs(exact.predict(X) - 10 * X[:, 0]).max() < 0.05
    parted = AdditiveClassifier(WeightedLp([100.0])).fit(X, (X[:, 0] > 0.5).astype(int))
    assert np.isfinite(list(parted.penalty_.values())).all()
    assert parted.score(X, X[:, 0] > 0.5) == 1


def test_multiples_of_a_weight_are_copies_and_others_give_the_effective_number():
    assert effective_n_samples(7, None) == 7
    assert effective_n_samples(3, np.array([1.0, 0.0, 5.0])) == 6
    assert effective_n_samples(3, np.array([0.5, 0.5, 0.0])) == pytest.approx(2)
    for factor in (5, 0.1, 1e-9):
        for weights in ([1.0, 0.0, 5.0], [2.0, 3.0, 0.0], [0.1, 0.25, 0.4]):
            alike = [effective_n_samples(3, times * np.array(weights)) for times in (1, factor)]
            assert alike[0] == pytest.approx(alike[1])
    assert effective_n_samples(2, np.array([1e-200, 0.0])) == pytest.approx(1)
    assert effective_n_samples(3, np.array([0.1, 0.25, 0.4])) == pytest.approx(0.75**2 / 0.2325)
    rng = np.random.default_rng(5)
    X, times = rng.normal(size=(80, 2)), rng.integers(0, 4, 80)
    y = (rng.random(80) < expit(X[:, 0])).astype(int)
    metric = WeightedLp([0.3, 0.2])
    weighted = AdditiveClassifier(metric).fit(X, y, sample_weight=times)
    repeated = AdditiveClassifier(metric).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.penalty_ == repeated.penalty_
    five_times = AdditiveClassifier(metric).fit(X, y, sample_weight=5 * times)
    assert five_times.penalty_ == weighted.penalty_
    np.testing.assert_allclose(five_times.predict_proba(X), weighted.predict_proba(X), atol=1e-9)


def test_more_people_support_more_knots():
    assert [knots_for(n, 128) for n in (1, 1000, 30_000, 10**7)] == [8, 40, 124, 128]
    assert knots_for(10**7, 5) == 5


def test_knots_by_column():
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"a": rng.normal(size=400), "b": rng.normal(size=400)})
    y = (X["a"] + rng.normal(size=400) > 0).astype(int)
    metric = TableMetric({"a": 0.3, "b": 0.3})
    model = AdditiveClassifier(metric, max_knots={"a": 5}).fit(X, y)
    assert [len(shape.knots) for shape in model.scorer_.model.shapes] == [5, 5]  # the largest for those not named
    model = AdditiveClassifier(metric, max_knots={"a": 5, "b": 9}).fit(X, y)
    assert [len(shape.knots) for shape in model.scorer_.model.shapes] == [5, 9]
    with pytest.raises(ValueError, match=r"max_knots must name columns of X, .* got "):
        AdditiveClassifier(metric, max_knots={"c": 5}).fit(X, y)
    with pytest.raises(ValueError, match="max_knots must be a whole number >= 2 or a mapping from column to such"):
        AdditiveClassifier(metric, max_knots={"a": 1}).fit(X, y)


def test_labels_have_the_dispersion_of_their_likelihood():
    rng = np.random.default_rng(6)
    rows = rng.uniform(size=(2000, 1))
    y = (rng.random(2000) < expit(2 * np.sin(6 * rows[:, 0]))).astype(float)
    problem = problem_of(rows, LogLoss(y[None]), [True])
    known, estimated = (choose_penalties(problem, labels=labels).penalties[1] for labels in (True, False))
    assert estimated == pytest.approx(known, rel=0.3)  # the model is right, so the estimate is close to 1
