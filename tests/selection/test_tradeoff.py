"""tradeoff: the same scores under other metrics, and where they meet the model without a promise."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from likewise import SmoothedClassifier, WeightedLp, compare, tradeoff
from likewise.dummy import ConstantClassifier
from likewise.selection.cross_validation import CVResult
from likewise.selection.tradeoff import Tradeoff

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 2))
Y = (X[:, 0] > 0).astype(int)
METRIC = WeightedLp([0.4, 0.0])
METHOD = ("stump", SmoothedClassifier(DecisionTreeClassifier(max_depth=1), vote="hard", random_state=0))


def test_at_scale_one_it_is_what_compare_measures():
    one = tradeoff(X, Y, METRIC, [1.0], method=METHOD, cv=3).table.loc[1.0]
    other = compare(X, Y, METRIC, [METHOD], cv=3).table.loc["stump"]
    assert one[["brier", "brier_se", "auc", "pairs"]].tolist() == other[["brier", "brier_se", "auc", "pairs"]].tolist()


def test_each_scale_is_within_its_own_metric_and_looser_is_better():
    result = tradeoff(X, Y, METRIC, [4, 0.25, 1], method=METHOD, cv=3)
    assert result.table.index.tolist() == [0.25, 1.0, 4.0]
    assert result.table["violations"].tolist() == [0, 0, 0]
    assert result.table["brier"].is_monotonic_decreasing
    assert result.beside.index.tolist() == ["constant", "linear", "boosting"]
    assert result.beside["title"].tolist() == [
        "constant (base rate)",
        "logistic without column 1",
        "boosting with column 1",
    ]
    assert result.table.loc[0.25, "brier"] < result.constant.row["brier"]


def test_a_strict_model_is_not_within_a_stricter_metric():
    """The control: violations are counted against the scaled metric, not against the given one."""
    loose = SmoothedClassifier(DecisionTreeClassifier(max_depth=1), metric=METRIC.scaled(4), random_state=0).fit(X, Y)
    from likewise import audit

    assert audit(loose, X, METRIC).n_violations > 0


def showing(title, brier):
    return CVResult({"title": title, "brier": brier}, np.empty(0), np.empty(0), True)


@pytest.mark.parametrize(
    ("scores", "expected", "words"),
    [
        ([0.4, 0.2, 0.1, 0.1], 2.0, "x 2 is the strictest of these metrics under which the Brier score is as good"),
        ([0.4, 0.3, 0.2, 0.18], None, "Under none of these metrics is the Brier score as good as that of the best"),
        ([0.1, 0.3, 0.2, 0.18], 0.5, "Already under the strictest of these metrics, x 0.5, the Brier score is as good"),
        ([0.2, 0.15, 0.1, 0.1], 1.0, "x 1 is the strictest of these metrics"),
    ],
)
def test_the_scale_that_is_as_good_is_one_that_was_measured_against_the_best_without_a_promise(scores, expected, words):
    scales = {s: showing("method", score) for s, score in zip((0.5, 1.0, 2.0, 4.0), scores, strict=True)}
    free = {"linear": showing("logistic without race", 0.15), "boosting": showing("boosting with race", 0.35)}
    curve = Tradeoff("method", scales, showing("constant", 0.5), free, (), "classification", METRIC)
    assert curve.reference is free["linear"]
    assert curve.meets == expected
    assert curve.conclusion.startswith(words)
    assert "of the best model without a promise, logistic without race (0.15; a constant has 0.5)." in curve.conclusion


def test_words_say_where_they_meet_or_that_they_never_do():
    never = tradeoff(X, Y, METRIC, [0.5], method=METHOD, cv=3)
    assert never.meets is None
    assert never.conclusion.startswith("Under none of these metrics is the Brier score as good as that of the best")
    noise = np.random.default_rng(2).integers(2, size=120)  # the constant is better than every model
    at_once = tradeoff(X, noise, METRIC, [0.5, 1], method=("same", ConstantClassifier()), cv=3)
    assert at_once.meets == 0.5
    assert "Already under the strictest of these metrics, x 0.5," in str(at_once)


def test_what_compare_recommends_can_be_priced():
    best = compare(X, Y, METRIC, [METHOD], cv=3).best()
    assert best.name == "stump"
    result = tradeoff(X, Y, METRIC, [0.5, 1], method=best, cv=3)
    assert result.title == "stump"
    assert "stump, x 0.5" in str(result)
    assert "stump, x 0.5" in result._repr_html_()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scales": []}, "scales must be a list of positive numbers; got"),
        ({"scales": 2.0}, "scales must be a list of positive numbers; got 2.0"),
        ({"scales": [1, 0]}, "scales must be a positive finite number; got 0. 1 is the metric itself"),
        ({"method": "constant"}, "method must not be the constant: it costs the same under every metric"),
        ({"method": "linear"}, "method must be one that enforces a metric; 'linear' promises nothing"),
        ({"method": "magic"}, "A method must be one of constant, additive"),
        ({"method": 3}, "method must be a name, what best\\(\\) returned, or a pair"),
    ],
)
def test_bad_input_is_refused_with_one_clear_error(options, message):
    with pytest.raises(ValueError, match=message):
        tradeoff(**({"X": X, "y": Y, "metric": METRIC, "method": METHOD} | options))


def test_a_method_that_cannot_be_gone_is_an_error():
    with pytest.raises(ValueError, match="method cannot be 'projection': "):
        tradeoff(X, np.digitize(X[:, 0], [-0.5, 0.5]), METRIC, method="projection")
