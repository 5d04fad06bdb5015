"""Probabilities must add up, wherever they come from."""

import numpy as np
import pandas as pd
import pytest

from likewise import AdditiveClassifier, InvalidInputError, SmoothedClassifier, WeightedLp, audit
from likewise.pairs.model_outputs import given_outputs, power_of_two_unit, probability_outputs

X = np.linspace(0, 1, 8)[:, None]
Y = np.arange(8) % 2
METRIC = WeightedLp([5.0])


def answers(total):
    return np.tile([0.25, total - 0.25], (8, 1))


def by_audit(p):
    audit(None, X, METRIC, predictions=p)


def by_model(p):
    audit(lambda rows: p, X, METRIC)


def by_votes(p):
    SmoothedClassifier(lambda rows: p[: len(rows)], metric=METRIC, vote="soft", batch=False, n_draws=8).fit(
        X, Y
    ).predict_proba(X[:1])


def by_teacher(p):
    AdditiveClassifier(METRIC, teacher=lambda rows: p, penalty=0.1).fit(X, Y)


@pytest.mark.parametrize("use", [by_audit, by_model, by_votes, by_teacher])
@pytest.mark.parametrize("total", [0.75, 0.99, 1.01, 1.125])
def test_probabilities_that_add_up_to_less_or_more_than_one_are_refused(use, total):
    with pytest.raises(InvalidInputError, match=r"sum|adding up|add up"):
        use(answers(total))
    use(answers(1.0))  # the control
    use(answers(1 + 5e-6))  # rounding, of single precision for example


def test_one_row_that_does_not_add_up_is_named():
    p = answers(1.0)
    p[5] = 0.25, 0.5
    with pytest.raises(InvalidInputError, match=r"row 5 sums to 0\.75"):
        by_audit(p)


def test_votes_and_targets_that_nearly_add_up_are_made_to():
    """Of two or of three classes, whatever single precision has left over."""
    rough = np.array([[0.2, 0.3, 0.5 + 8e-6]])
    model = SmoothedClassifier(
        lambda rows: np.repeat(rough, len(rows), axis=0), metric=METRIC, vote="soft", batch=True, n_draws=8
    ).fit(X, np.arange(8) % 3)
    np.testing.assert_allclose(model.predict_proba(X), np.repeat(rough / rough.sum(), 8, axis=0), rtol=0, atol=1e-12)
    low = np.array([[0.4, 0.5996]])  # within what a teacher may be off by
    student = AdditiveClassifier(METRIC, teacher=lambda rows: np.repeat(low, len(rows), axis=0), penalty=0.1)
    np.testing.assert_allclose(student.fit(X, Y).predict_proba(X)[:, 1], 0.5996 / 0.9996, rtol=0, atol=1e-6)


def test_differences_add_up_to_the_total_variation():
    p = np.random.default_rng(0).dirichlet(np.ones(4), 6)
    for k in (2, 3, 4):
        some = p[:, :k] / p[:, :k].sum(axis=1, keepdims=True)
        outputs = probability_outputs(some)
        difference = np.abs(outputs[:, None] - outputs).sum(axis=2)
        np.testing.assert_allclose(difference, np.abs(some[:, None] - some).sum(axis=2) / 2, rtol=0, atol=1e-15)


def test_numbers_are_shares_of_their_range_and_units_powers_of_two():
    outputs, probable = given_outputs(np.array([100.0, 150.0, 300.0]), 3, (100, 300))
    assert (outputs[:, 0].tolist(), probable) == ([0.0, 0.25, 1.0], False)
    assert [power_of_two_unit(spread) for spread in (0.0, 0.3, 1.0, 1.1, 300.0)] == [1.0, 0.5, 1.0, 2.0, 512.0]
    found = audit(
        None, pd.DataFrame({"x": [0.0, 0.01]}), WeightedLp({"x": 1.0}), predictions=[150, 300], output_range=(100, 300)
    )
    assert found.violations["difference"][0] == pytest.approx(0.75)
    assert found.max_excess == pytest.approx(0.74)
