"""Scores of models on people held out, and the width of noise, worked out by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from likewise import SmoothedClassifier, WeightedLp
from likewise.cli.training import (
    CONSTANT,
    GUARANTEED,
    format_widths,
    hold_out,
    is_no_better_than_constant,
    noise_widths,
    score_models,
    wider_than_data,
)

X = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0]})


class Says:
    def __init__(self, answers, classes=None):
        self.answers, self.classes_ = np.array(answers), classes

    def predict_proba(self, X):
        return self.answers

    predict = predict_proba


def test_scores_of_classes_are_accuracy_and_half_the_squared_distance():
    """The constant is the share of those learned from: 3/4 and 1/4."""
    y, learned = np.array(["a", "b", "b", "a"]), np.array(["a", "a", "a", "b"])
    model = Says([[0, 0.75, 0.25], [0, 0, 1], [0, 0.5, 0.5], [0, 0.75, 0.25]], np.array(["0", "a", "b"]))  # and a third
    found = score_models({GUARANTEED: model}, X, y, learned, classify=True).set_index("model")
    assert found.loc[GUARANTEED].tolist() == pytest.approx([0.75, (0.0625 + 0 + 0.25 + 0.0625) / 4])
    assert found.loc[CONSTANT].tolist() == pytest.approx([0.5, (0.0625 + 0.5625 + 0.5625 + 0.0625) / 4])


def test_scores_of_numbers_are_r2_and_the_root_of_the_mean_squared_error():
    y = np.array([0.0, 0.0, 4.0, 4.0])  # variance 4
    found = score_models({GUARANTEED: Says([1.0, 1.0, 3.0, 3.0])}, X, y, np.array([3.0, 5.0]), classify=False)
    found = found.set_index("model")
    assert found.loc[GUARANTEED].tolist() == pytest.approx([0.75, 1.0])
    assert found.loc[CONSTANT].tolist() == pytest.approx([1 - 8 / 4, np.sqrt(8)])


@pytest.mark.parametrize("score", ["Brier score", "RMSE"])
def test_a_model_must_beat_the_constant(score):
    for ours, expected in ((0.2, False), (0.25, True), (0.3, True)):
        assert (
            is_no_better_than_constant(pd.DataFrame({"model": [GUARANTEED, CONSTANT], score: [ours, 0.25]})) is expected
        )


def test_as_many_are_held_out_as_asked_for_and_2000_at_most():
    for n, share, expected in ((100, 0.2, 20), (20_000, 0.2, 2000), (20, 0.2, 4)):
        learn, measure = hold_out(np.arange(n) % 2, share, classify=True)
        assert len(measure) == expected
        assert sorted([*learn, *measure]) == list(range(n))
    assert hold_out(np.arange(19) % 2, 0.2, classify=True) is None
    assert hold_out(np.append(np.zeros(99), 1), 0.2, classify=True) is None  # a class of one person


@pytest.mark.parametrize(
    ("noise", "width"), [("gaussian", norm.ppf(0.975) / np.sqrt(2 * np.pi)), ("uniform", 0.475), ("laplace", None)]
)
def test_nineteen_of_twenty_draws_lie_within_the_width_that_is_shown(noise, width):
    people = pd.DataFrame({"a": np.linspace(-3, 7, 30), "b": np.linspace(0, 1, 30)})
    metric = WeightedLp({"a": 0.5, "b": 0.25})
    model = SmoothedClassifier(
        lambda rows: (np.asarray(rows)[:, 0] > 0).astype(int), metric=metric, noise=noise, n_draws=10, random_state=0
    ).fit(people, np.arange(30) % 2)
    found = noise_widths(model, people)
    assert found[["column", "lowest", "highest"]].values.tolist() == [["a", -3.0, 7.0], ["b", 0.0, 1.0]]
    drawn = np.abs(model.noise_.sample(20_000, np.random.default_rng(1)))
    # The share of draws within the 95% quantile of as many others: five standard deviations are 0.011.
    np.testing.assert_allclose((drawn <= found["noise"].to_numpy()).mean(axis=0), 0.95, atol=0.011)
    if width is not None and noise == "uniform":
        np.testing.assert_allclose(found["noise"], [width / 0.5, width / 0.25], rtol=0.02)


def test_noise_is_wider_than_the_data_if_both_sides_together_are():
    widths = pd.DataFrame(
        {"column": ["a", "b"], "lowest": [0.0, 2000.0], "highest": [10.0, 2010.0], "noise": [4.9, 5.1]}
    )
    assert wider_than_data(widths) == ["b"]
    assert format_widths(widths)["noise"].tolist() == ["± 4.9", "± 5.1"]
    assert format_widths(widths)["people"].tolist() == ["0 to 10", "2000 to 2010"]
