import re
from dataclasses import replace

import numpy as np
import pytest

from chance import too_many
from likewise import (
    Gaussian,
    Splitting,
    TableMetric,
    Uniform,
    WeightedLp,
    draws_needed,
    error_margin,
    failure_probability,
)
from likewise.kernel.bounds import Bound, LoosenedBound
from promised import promise


def test_the_papers_number():
    delta = failure_probability(100_000, 0.01, n_classes=2, shared=False, method="paper")
    assert f"{delta:.1e}" == "1.8e-04"
    assert delta == pytest.approx(4 * np.exp(-10))


@pytest.mark.parametrize(
    ("n_classes", "shared", "n_people", "expected"),
    [
        (2, False, 2, lambda n, e: 2 * np.exp(-n * e**2)),  # half the paper's
        (2, True, 2, lambda n, e: 2 * np.exp(-n * e**2 / 2)),
        (10, False, 2, lambda n, e: (2**10 - 2) * np.exp(-n * e**2)),
        (10, True, 2, lambda n, e: (2**10 - 2) * np.exp(-n * e**2 / 2)),
        (2, False, 100, lambda n, e: 2 * 4950 * np.exp(-n * e**2)),
        (2, True, 100, lambda n, e: 2 * 100 * np.exp(-n * e**2 / 2)),
    ],
)
def test_closed_forms(n_classes, shared, n_people, expected):
    n, epsilon = 200_000, 0.02
    delta = failure_probability(n, epsilon, n_classes, shared, n_people=n_people)
    assert delta == pytest.approx(expected(n, epsilon), rel=1e-9, abs=0)  # far below what approx lets pass


@pytest.mark.parametrize("n_classes", [2, 3, 10, 40, 5000])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("n_people", [2, 1000])
def test_draws_margin_and_probability_are_inverse_to_each_other(n_classes, shared, n_people):
    n = draws_needed(0.02, 1e-4, n_classes, shared, n_people=n_people)
    assert failure_probability(n, 0.02, n_classes, shared, n_people=n_people) <= 1e-4
    assert n == 1 or failure_probability(n - 1, 0.02, n_classes, shared, n_people=n_people) > 1e-4
    assert error_margin(n, 1e-4, n_classes, shared, n_people=n_people) == pytest.approx(0.02, rel=1e-3)
    assert n <= draws_needed(0.02, 1e-4, n_classes, shared, n_people=n_people, method="paper")


def test_probability_and_margin_never_exceed_one():
    assert failure_probability(1, 1e-9) == 1
    assert error_margin(1, 1e-9) == 1
    assert draws_needed(0.9, 0.9) >= 1


def excess_share(n_draws, epsilon, shared, shrink=1.0, runs=20_000):
    """How often the votes of a half-space differ by more than D + epsilon between two people, and the bound."""
    rng = np.random.default_rng(0)
    noise = Uniform.for_metric(WeightedLp([1.0], 1))
    a, b = np.zeros(1), np.full(1, 0.5)  # h is 1/2 and 1: TV = 1/2 = D
    first = noise.sample(runs * n_draws, rng)[:, 0].reshape(runs, n_draws)
    second = first if shared else noise.sample(runs * n_draws, rng)[:, 0].reshape(runs, n_draws)
    gap = (b[0] + second >= 0).mean(axis=1) - (a[0] + first >= 0).mean(axis=1)
    return int((np.abs(gap) > 0.5 + epsilon * shrink).sum()), runs


@pytest.mark.parametrize("shared", [True, False])
def test_sampling_fails_no_more_often_than_stated(shared):
    n_draws, epsilon = 60, 0.25
    failures, runs = excess_share(n_draws, epsilon, shared)
    stated = failure_probability(n_draws, epsilon, shared=shared)
    assert 0 < stated < 0.5
    assert not too_many(failures, runs, stated)


def test_control_a_bound_that_is_too_small_is_caught():
    failures, runs = excess_share(60, 0.25, shared=True, shrink=0.2)
    assert too_many(failures, runs, failure_probability(60, 0.25, shared=False))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0}, "epsilon must be a positive finite number; got 0. No finite number of draws"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": np.nan}, "epsilon"),
        ({"delta": 0}, "delta must be a positive number below 1; got 0"),
        ({"delta": 1}, "delta"),
        ({"n_classes": 1}, "n_classes must be a whole number >= 2; got 1"),
        ({"n_classes": 2.5}, "n_classes"),
        ({"n_people": 1}, "n_people must be a whole number >= 2"),
        ({"method": "best"}, "method must be 'sharpest' or 'paper'; got 'best'"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        draws_needed(**({"epsilon": 0.01, "delta": 1e-3} | arguments))


METRIC = WeightedLp({"age": 0.1, "income": 0.002}, p=2)


def test_the_bound_adds_epsilon_to_the_curve_and_stays_below_one():
    guarantee = promise(METRIC, Gaussian.for_metric(METRIC).curve, "sampled", "", 0.01, 1e-3, 1000)
    np.testing.assert_allclose(guarantee.bound([0, 0.1]), guarantee.curve.bound([0, 0.1]) + 0.01)
    assert guarantee.epsilon == 0.01
    assert guarantee.bound(50) == 1
    assert guarantee.metric is METRIC


def test_for_regression_the_bound_is_in_units_of_the_output():
    guarantee = promise(METRIC, Uniform.for_metric(METRIC).curve, "sampled", "", 0.01, 1e-3, 1000, (100.0, 300.0))
    assert guarantee.bound(1e9) == pytest.approx(200)
    assert guarantee.bound(0) == pytest.approx(2)


def test_the_statement_says_what_is_promised_to_whom_and_what_is_not():
    why = "This holds because of the noise."
    statement = promise(METRIC, Gaussian.for_metric(METRIC).curve, "sampled", why, 0.01, 1e-3, 152_018).statement
    for fact in (
        "D(x, x') + 0.01",
        why,
        "predict_proba",
        "decide",
        "Not covered",
        "predict (",
        "groups",
    ):
        assert fact in statement
    assert "fair" not in statement
    assert len(statement.splitlines()) == 3


def test_a_promise_without_error_is_the_distance_itself():
    guarantee = promise(METRIC, Gaussian.for_metric(METRIC).curve, "exact", "")
    assert "at most D(x, x') in total variation" in guarantee.statement
    assert (guarantee.epsilon, guarantee.delta, guarantee.n_draws) == (0, 0, 0)


def test_what_a_grid_adds_is_part_of_the_curve():
    """`bound` is always a bound, and `decide`, which follows the curve alone, is told the right number."""
    curve = replace(Splitting.for_metric(METRIC), excess=0.05).curve
    guarantee = promise(METRIC, curve, "deterministic", "", n_draws=100)
    assert guarantee.epsilon == 0.05
    np.testing.assert_allclose(curve.bound([0, 0.1, 0.97, 3]), [0, 0.15, 1, 1])
    np.testing.assert_allclose(guarantee.bound([0.1]), [0.15])
    assert curve.distance_to_tie(0.8, 0.2) == pytest.approx(0.25)
    assert curve.highest(0.5, 0.1) == pytest.approx(0.65)


@pytest.mark.parametrize("kind", ["table", "array"])
def test_the_description_has_every_weight_and_the_statement_stays_short(kind):
    names = [f"column {i}" for i in range(30)]
    weights = {name: 0.001 * (i + 1) for i, name in enumerate(names)}
    metric = TableMetric(weights, missing=dict.fromkeys(names, 0.5)) if kind == "table" else WeightedLp(weights)
    guarantee = promise(metric, Bound(), "exact", "Because.")
    lines = guarantee.describe().splitlines()
    assert "\n".join(lines[:3]) == guarantee.statement
    for name, weight in weights.items():
        assert any(name in line and f"{weight:.3f}" in line for line in lines[3:])
    assert "\n".join(lines).count("=0.5") == (30 if kind == "table" else 0)
    assert all(len(line) < 200 for line in guarantee.statement.splitlines())
    assert "column" not in guarantee.statement


@pytest.mark.parametrize("epsilon", [1 / 300, 0.0123449, 0.01])
def test_what_is_printed_is_never_below_what_holds(epsilon):
    guarantee = promise(WeightedLp([1.0]), LoosenedBound(epsilon), "deterministic", "A basis.")
    printed = float(re.search(r"D\(x, x'\) \+ ([\d.]+)", repr(guarantee))[1])
    assert guarantee.epsilon <= printed <= 1.01 * guarantee.epsilon
    assert f"D(x, x') + {printed:g}" in guarantee.statement
