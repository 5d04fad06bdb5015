"""Bounds of the softmax of additive scores: formulas against draws, and proofs against everybody of small domains."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from likewise import AdditiveClassifier, TableMetric
from likewise.auditing.effect import effect
from likewise.verification import softmax_bounds
from likewise.verification.additive_bounds import AdditiveModel, largest_softmax, softmax_problem
from likewise.verification.base import InputSpace
from likewise.verification.outputs import largest_variation
from likewise.verification.search import Limits
from likewise.verification.softmax_bounds import SoftmaxProblem, bound_softmax
from small_domain import brute_force, one_hot, people

LIMITS = Limits(None, 20_000, 1e-4)
COLUMNS = (["sex"], ["age"], ["region", "sex"])


def variation(s, t):
    return np.abs(softmax(s, axis=-1) - softmax(t, axis=-1)).sum(axis=-1) / 2


def gaps(scores):
    return scores[..., :, None] - scores[..., None, :]


def too_low(change=lambda limits: limits):
    """How often the formula is below the truth, for limits around random people."""
    rng, n = np.random.default_rng(0), 0
    for m in (2, 3, 4, 5):
        s, d = rng.normal(size=(400, m)) * 2, rng.normal(size=(400, m)) * rng.choice([0.1, 1, 3], (400, 1))
        room = rng.choice([0.0, 0.05, 1.0], (400, 1, 1)) * rng.random((3, 400, m, m))
        limits = [gaps(each) + more * (1 - np.eye(m)) for each, more in zip((s, s + d, d), room, strict=True)]
        bounds, truth = largest_variation(*limits[:2], change(limits[2])), variation(s, s + d)
        n += int((bounds < truth - 1e-12).sum())
    return n


def test_a_total_variation_is_within_the_formula_and_control():
    assert too_low() == 0
    assert too_low(lambda limits: 0.9 * limits) > 0


def test_the_formula_is_the_truth_where_everything_is_known():
    rng = np.random.default_rng(1)
    s, d = rng.normal(size=(300, 4)) * 2, rng.normal(size=(300, 4))
    np.testing.assert_allclose(largest_variation(gaps(s), gaps(s + d), gaps(d)), variation(s, s + d), atol=1e-12)


@pytest.mark.parametrize("columns", COLUMNS, ids=" ".join)
@pytest.mark.parametrize("C", [0.05, 10])
def test_logistic_regression_of_three_classes(C, columns, monkeypatch):
    """Exact where everybody can be tried; by boxes, above the truth, and closer than without the other columns."""
    X, y = people(1, kind="three")
    model = make_pipeline(one_hot(), LogisticRegression(C=C, max_iter=3000)).fit(X, y)
    truth, result = brute_force(model, columns), effect(model, X, columns)
    assert truth <= result.proven <= truth + 1e-9
    read = AdditiveModel.read(InputSpace.of(model, X))
    places = [list(X).index(name) for name in columns]
    searched = bound_softmax(softmax_problem(read, places), LIMITS)
    proven = searched.bound + 1e-12
    assert not searched.stopped
    assert truth <= proven < largest_softmax(read, places)[0]
    assert proven <= truth + 0.05
    monkeypatch.setattr(softmax_bounds, "_ENUMERATED", 0)
    assert effect(model, X, columns).proven == pytest.approx(min(1, proven), abs=1e-3)


def test_scores_that_only_the_column_decides():
    """Scores (-x, 0, x) for x from -1 to 1, as in docs/theory.md §15."""
    lines = np.array([[[1.0, 0, -1], [-1, 0, 1]]])
    proven = bound_softmax(SoftmaxProblem([], [lines], np.zeros(3), 0.0, False), LIMITS).bound + 1e-12
    truth = (np.e - 1 / np.e) / (1 + np.e + 1 / np.e)
    assert truth <= proven <= truth + 1e-4


def test_all_people_of_a_small_domain_are_tried_with_room_for_rounding():
    values = np.log([[0.4, 0.4, 0.1, 0.1], [0.1, 0.1, 0.4, 0.4]])
    for rounding in (0.0, 0.05):
        problem = SoftmaxProblem([], [np.stack([values, values], axis=1)], np.zeros(4), rounding, True)
        assert problem.by_enumeration() == pytest.approx(0.6 + 2 * rounding)


def random_problem(rng):
    """Few classes and columns; values of exchanged ones on lines."""
    m = int(rng.integers(3, 5))
    rest = [rng.normal(size=(int(rng.integers(1, 4)), m)) for _ in range(int(rng.integers(0, 4)))]
    parts = [rng.normal(size=(int(rng.integers(1, 3)), 2, m)) for _ in range(int(rng.integers(1, 3)))]
    return SoftmaxProblem(rest, parts, rng.normal(size=m), 0.0, False)


def largest_of_draws(problem, rng, n=4000):
    """People whose other columns have sums between those there are."""
    t = problem.base + sum(
        np.einsum("nk,km->nm", rng.dirichlet(np.full(len(each), 0.3), n), each) for each in problem.rest
    )
    v, w = np.zeros((2, n, len(problem.base)))
    for each in problem.parts:
        for total in (v, w):
            at = rng.choice([0.0, 1.0, 0.5, rng.random()], (n, 1))
            line = each[rng.integers(len(each), size=n)]
            total += line[:, 0] * (1 - at) + line[:, 1] * at
    return float(variation(t + v, t + w).max())


@pytest.mark.parametrize("seed", range(8))
def test_boxes_are_never_below_anybody_and_control(seed):
    rng, fewer = np.random.default_rng(seed), 0
    for _ in range(6):
        problem = random_problem(rng)
        most = largest_of_draws(problem, rng)
        short, proven = (bound_softmax(problem, Limits(None, n, 1e-3)).bound + 1e-12 for n in (1, 4000))
        assert most <= proven <= short + 1e-12
        half = replace(problem, parts=[0.5 * each for each in problem.parts])
        fewer += bound_softmax(half, Limits(None, 4000, 1e-3)).bound < most
    assert fewer > 0


def test_a_scorecard_of_three_classes_with_numbers_without_a_step():
    X, y = people(3, kind="three")
    X["income"] = X["income"] + np.random.default_rng(0).normal(size=len(X))
    metric = TableMetric({"age": 0.2, "income": 0.5}, {"sex": 0.5, "region": 0.5})
    model = AdditiveClassifier(metric, penalty=1e-3).fit(X, y)
    result, rng = effect(model, X, "income", max_boxes=5000), np.random.default_rng(1)
    many = X.sample(3000, replace=True, random_state=0)
    ends = rng.uniform(X["income"].min(), X["income"].max(), (2, len(many)))
    one, other = (model.predict_proba(many.assign(income=end)) for end in ends)
    assert (np.abs(one - other).sum(axis=1) / 2).max() <= result.proven <= result.found + 0.05
