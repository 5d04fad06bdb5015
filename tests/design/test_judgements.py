"""Metrics learned from simulated judges: hidden weights are found, conflicts named, and strict metrics strict."""

import numpy as np
import pandas as pd
import pytest

from likewise import AdditiveClassifier, InvalidInputError, TableMetric, WeightedLp, learn_metric
from likewise.design.judgements_table import WeightSpace
from simulated_judges import answers_in_points, comparisons, distances

HIDDEN = np.array([0.02, 0.05, 0.01, 0.03, 0.04])


def population(seed=0, n=150):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, len(HIDDEN))), rng


@pytest.mark.parametrize(("n_questions", "error"), [(10, 0.5), (40, 0.1), (160, 0.03)])
def test_hidden_weights_are_recovered(n_questions, error):
    """Five weights from answers to the whole point: to 50%, 10% and 3% after 10, 40 and 160 questions."""
    for seed in range(5):
        X, rng = population(seed)
        result = learn_metric(answers_in_points(X, HIDDEN, n_questions, rng), X)
        assert result.conflicts.empty
        assert (result.ranges["low"] <= HIDDEN + 1e-9).all()
        assert (result.ranges["high"] + 1e-9 >= HIDDEN).all()
        np.testing.assert_allclose(result.metric.weights, HIDDEN, rtol=error)


def test_control_fewer_questions_do_not_reach_the_error():
    errors = []
    for seed in range(5):
        X, rng = population(seed)
        result = learn_metric(answers_in_points(X, HIDDEN, 10, rng), X)
        errors.append(np.abs(result.metric.weights / HIDDEN - 1).max())
    assert max(errors) > 0.1


def test_ratios_are_recovered_from_exact_comparisons():
    """With the mean distance known, 300 comparisons give the weights to 25%."""
    X, rng = population()
    means = WeightSpace.of(X, WeightedLp(HIDDEN), None).means
    start = WeightedLp(np.full(5, means @ HIDDEN / means.sum()))
    result = learn_metric(comparisons(X, HIDDEN, 300, rng), X, start)
    assert result.conflicts.empty
    assert means @ result.metric.weights == pytest.approx(means @ HIDDEN)
    np.testing.assert_allclose(result.metric.weights, HIDDEN, rtol=0.25)
    assert (result.ranges["low"] <= HIDDEN).all()
    assert (result.ranges["high"] >= HIDDEN).all()


def test_the_strict_metric_is_below_every_metric_that_fits():
    X, rng = population()
    answers = answers_in_points(X, HIDDEN, 12, rng, width=4.0)
    result = learn_metric(answers, X)
    strict = result.strict()
    assert (strict.weights > 0).any()
    assert (strict.weights <= HIDDEN).all()
    np.testing.assert_allclose(strict.weights, result.ranges["low"], rtol=1e-8)
    for start in rng.uniform(0.001, 0.1, size=(20, 5)):
        other = learn_metric(answers, X, WeightedLp(start)).metric
        assert (strict.weights <= other.weights + 1e-9).all()
        assert (strict.pairwise(X[:20]) <= other.pairwise(X[:20]) + 1e-9).all()


def test_a_model_within_the_strict_metric_is_within_the_hidden_one():
    X, rng = population()
    y = (X @ [1, 2, 0.5, 1, 1] + rng.normal(size=len(X)) > 0).astype(int)
    strict = learn_metric(answers_in_points(X, HIDDEN, 40, rng), X).strict()
    scores = AdditiveClassifier(strict, penalty=1e-3).fit(X, y).predict_proba(X)[:, 1]
    gaps = np.abs(scores[:, None] - scores)
    assert gaps.max() > 0.1
    assert (gaps <= WeightedLp(HIDDEN).pairwise(X) + 1e-12).all()


def test_the_result_stays_close_to_the_start_and_keeps_its_zeros():
    X, _ = population()
    one = pd.DataFrame({"kind": ["at_most"], "a": [0], "b": [1], "points": [2.0]})
    start = WeightedLp([0.02, 0.05, 0, 0.03, 0.04])
    result = learn_metric(one, X, start)
    assert result.metric.weights[2] == 0
    assert "feature 2" not in set(result.ranges["column"])
    assert 100 * result.metric(X[0], X[1]) == pytest.approx(2.0, abs=1e-4)
    generous = learn_metric(one.assign(points=100), X, start)
    np.testing.assert_allclose(generous.metric.weights, start.weights, rtol=1e-6)


def test_planted_conflicts_are_found_with_their_judges():
    """Bob's one answer is 20 points off; every conflict holds it, and without it all agree."""
    X, rng = population()
    good = answers_in_points(X, HIDDEN, 60, rng, width=2.0)
    a, b = 3, 4
    wrong = {"judge": "Bob", "kind": "at_least", "a": a, "b": b, "points": distances(X, HIDDEN, [a], [b])[0] + 20}
    answers = pd.concat([good, pd.DataFrame([wrong])], ignore_index=True)
    result = learn_metric(answers, X)
    assert result.conflicts["conflict"].nunique() == 1
    blamed = result.conflicts.set_index("answer")
    assert blamed.loc[len(good), "judge"] == "Bob"
    assert blamed.loc[len(good), "slack"] > 10
    assert set(blamed["judge"]) == {"Ann", "Bob"}
    np.testing.assert_allclose(result.metric.weights, HIDDEN, rtol=0.3)
    assert learn_metric(good, X).conflicts.empty


def test_ranges_in_a_conflict_are_those_without_the_answers_in_it():
    people = pd.DataFrame({"age": [30, 40], "pay": [1, 1]}, dtype=float)
    answers = pd.DataFrame({"judge": ["Ann", "Bob"], "kind": ["at_most", "at_least"], "a": 0, "b": 1, "points": [5, 8]})
    result = learn_metric(answers, people)
    assert result.conflicts["points"].tolist() == [5, 8]
    assert result.ranges[["low", "high"]].to_numpy().tolist() == [[0, np.inf]]
    assert 100 * result.metric([30, 1], [40, 1]) <= 8 + 1e-4
    assert result.strict().weights.tolist() == [0, 0]


def test_everybody_whose_answer_is_missed_is_in_a_conflict():
    """Ann's pair differs by 2 in each of two columns, Bob's by 1 in the first and Cem's by 1 in the second."""
    X = np.array([[0.0, 0.0], [2.0, 2.0], [1.0, 0.0], [0.0, 1.0]])
    answers = pd.DataFrame({"judge": ["Ann", "Bob", "Cem"], "kind": ["at_most", "at_least", "at_least"]})
    answers = answers.assign(a=0, b=[1, 2, 3], points=[2, 5, 5])
    found = learn_metric(answers, X).conflicts
    assert {frozenset(part["judge"]) for _, part in found.groupby("conflict")} == {
        frozenset({"Ann", "Bob"}),
        frozenset({"Ann", "Cem"}),
    }
    # Ann's answer holds, with one point for the two others: they miss 9 of their 10.
    assert found.groupby("judge")["slack"].max().sum() == pytest.approx(9, abs=1e-4)
    assert (found.loc[found["judge"] == "Ann", "slack"] == 0).all()


@pytest.mark.parametrize("most", [0, 2])
def test_an_upper_limit_holds_under_the_strict_metric_against_answers_that_no_conflict_names(most):
    """Bob excludes Ann and Cem alike. Only one of them is in the conflict, and the other's answer limits a range."""
    X = np.array([[0.0], [1.0], [0.0], [1.0]])
    answers = pd.DataFrame({"judge": ["Ann", "Bob", "Cem"], "kind": ["at_least", "at_most", "at_least"]})
    answers = answers.assign(a=[0, 0, 2], b=[1, 1, 3], points=[5, most, 5])
    result = learn_metric(answers, X)
    assert len(result.conflicts) == 2
    assert result.ranges["low"].tolist() == pytest.approx([0.05])
    assert 0 <= 100 * result.strict().weights[0] <= most


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_every_upper_limit_holds_under_the_strict_metric_whatever_conflicts(seed):
    X, rng = population(seed)
    noisy = answers_in_points(X, HIDDEN, 25, rng)
    noisy["points"] = np.clip(noisy["points"] + rng.normal(scale=3, size=len(noisy)).round(), 0, 100)
    noisy = noisy.assign(judge=[f"judge {k}" for k in range(len(noisy))])
    result = learn_metric(noisy, X)
    assert not result.conflicts.empty
    most = noisy[noisy["kind"] == "at_most"]
    strict = 100 * result.strict()(X[most["a"]], X[most["b"]])
    assert (strict <= most["points"] + 1e-6).all()
    plain = 100 * result.metric(X[most["a"]], X[most["b"]])
    assert (plain > most["points"] + 1e-6).any()  # control: the compromise misses some


def test_the_minimum_over_judges_satisfies_all_their_upper_limits():
    X, rng = population()
    panel = {"Ann": HIDDEN, "Bob": HIDDEN[::-1], "Cem": HIDDEN * 0.7}
    parts = [answers_in_points(X, w, 20, rng, judge=name) for name, w in panel.items()]
    answers = pd.concat(parts, ignore_index=True)
    result = learn_metric(answers, X)
    assert list(result.judges) == list(panel)
    most = answers[answers["kind"] == "at_most"]
    minimum = result.minimum_over_judges()
    assert (100 * minimum(X[most["a"]], X[most["b"]]) <= most["points"] + 1e-4).all()
    assert (100 * result.metric(X[most["a"]], X[most["b"]]) > most["points"] + 1).any()  # control
    for name, w in panel.items():
        alone = result.judges[name]
        assert alone.conflicts.empty
        assert (minimum.weights <= alone.metric.weights + 1e-12).all()
        np.testing.assert_allclose(alone.metric.weights, w, rtol=0.6)
    alone = learn_metric(parts[0], X)
    assert alone.judges == {}
    assert alone.minimum_over_judges() == alone.metric


def test_categories_and_blanks_have_weights_of_their_own():
    people = pd.DataFrame({"age": [30.0, 40, np.nan, 30], "job": ["x", "x", "x", None]})
    answers = pd.DataFrame(
        {"kind": ["at_most", "at_least"] * 3, "a": 0, "b": [1, 1, 2, 2, 3, 3], "points": [6, 4, 3, 2, 9, 7]}
    )
    result = learn_metric(answers, people)
    expected = {"numeric": [0.004, 0.005, 0.006], "missing": [0.02, 0.025, 0.03], "categorical": [0.07, 0.08, 0.09]}
    for kind, (low, weight, high) in expected.items():
        row = result.ranges.set_index("kind").loc[kind]
        np.testing.assert_allclose([row["low"], row["weight"], row["high"]], [low, weight, high], rtol=1e-5)
    assert result.strict().missing["age"] == pytest.approx(0.02)
    assert isinstance(result.metric, TableMetric)
    assert (result.ranges["n_answers"] == 2).all()


def test_mismatch_weights_are_at_most_1():
    people = pd.DataFrame({"job": ["x", "y"], "age": [30.0, 30]})
    result = learn_metric(pd.DataFrame({"kind": ["at_least"], "a": 0, "b": 1, "points": 40}), people)
    assert result.ranges["high"].tolist() == [1.0]
    assert result.metric.numeric["age"] == 0


def test_results_do_not_depend_on_units():
    X, rng = population()
    answers = answers_in_points(X, HIDDEN, 15, rng)
    scales = np.array([1e6, 1e-6, 1.0, 1e3, 1.0])
    one, other = learn_metric(answers, X), learn_metric(answers, X * scales)
    np.testing.assert_allclose(other.metric.weights * scales, one.metric.weights, rtol=1e-4)
    np.testing.assert_allclose(other.ranges["high"] * scales, one.ranges["high"], rtol=1e-6)


def test_parameters_are_checked():
    answers = pd.DataFrame({"kind": ["at_most"], "a": [0], "b": [1], "points": [2.0]})
    for options, message in (
        ({"comparisons": "maybe"}, "comparisons must be"),
        ({"confidence": 1.5}, "confidence must"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            learn_metric(answers, [[0.0], [1.0]], **options)


def test_the_representation_is_short():
    X, rng = population()
    result = learn_metric(answers_in_points(X, HIDDEN, 15, rng), X)
    assert repr(result).startswith("JudgedMetric(WeightedLp(")
    assert "n_answers=30, n_conflicts=0" in repr(result)
