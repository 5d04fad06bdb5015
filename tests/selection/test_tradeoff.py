"""tradeoff: the same scores under other metrics, and where they match the model without a guarantee."""

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.tree import DecisionTreeClassifier

from likewise import SmoothedClassifier, WeightedLp, compare, tradeoff
from likewise.dummy import ConstantClassifier
from likewise.selection.cross_validation import CVResult, Fold
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
    assert (result.constant.row["title"], result.unconstrained.row["title"]) == (
        "constant (base rate)",
        "unconstrained model",
    )
    assert result.table.loc[0.25, "brier"] < result.constant.row["brier"]


def test_a_strict_model_is_not_within_a_stricter_metric():
    """The control: violations are counted against the scaled metric, not against the given one."""
    loose = SmoothedClassifier(DecisionTreeClassifier(max_depth=1), metric=METRIC.scaled(4), random_state=0).fit(X, Y)
    from likewise import audit

    assert audit(loose, X, METRIC).n_violations > 0


def result_of(title, brier):
    return CVResult({"title": title, "brier": brier}, np.full(4, brier), np.empty(0), True)


FOLDS = tuple(Fold(np.empty(0, int), np.arange(2 * k, 2 * k + 2), np.arange(2)) for k in range(2))


@pytest.mark.parametrize(
    ("scores", "expected", "words"),
    [
        ([0.4, 0.2, 0.1, 0.1], 2.0, "x 2 is the strictest of these metrics under which the Brier score is as good"),
        ([0.4, 0.3, 0.2, 0.18], None, "Under none of these metrics is the Brier score as good as that of the"),
        ([0.1, 0.3, 0.2, 0.18], 0.5, "Already under the strictest of these metrics, x 0.5, the Brier score is as good"),
        ([0.2, 0.15, 0.1, 0.1], 1.0, "x 1 is the strictest of these metrics"),
    ],
)
def test_the_scale_that_is_as_good_is_one_that_was_measured_against_the_unconstrained_model(scores, expected, words):
    scales = {s: result_of("method", score) for s, score in zip((0.5, 1.0, 2.0, 4.0), scores, strict=True)}
    free = result_of("unconstrained model", 0.15)
    curve = Tradeoff("method", scales, result_of("constant", 0.5), free, FOLDS, "classification", METRIC)
    assert curve.matching_scale == expected
    assert curve.conclusion.startswith(words)
    assert "of the unconstrained model (0.15; a constant has 0.5)." in curve.conclusion


def test_the_conclusion_names_the_matching_scale_or_says_that_there_is_none():
    never = tradeoff(X, Y, METRIC, [0.5], method=METHOD, cv=3)
    assert never.matching_scale is None
    assert never.conclusion.startswith("Under none of these metrics is the Brier score as good as that of the")
    noise = np.random.default_rng(2).integers(2, size=120)  # the constant is better than every model
    at_once = tradeoff(X, noise, METRIC, [0.5, 1], method=("same", ConstantClassifier()), cv=3)
    assert at_once.matching_scale is None
    assert "is not measurably better than a constant" in at_once.conclusion
    assert at_once.conclusion.endswith("these people cannot show what a stricter metric costs.")
    assert "as good as" not in at_once.conclusion


def test_what_compare_recommends_can_be_measured():
    best = compare(X, Y, METRIC, [METHOD], cv=3).best()
    assert best.name == "stump"
    result = tradeoff(X, Y, METRIC, [0.5, 1], method=best, cv=3)
    assert result.title == "stump"
    assert "stump, x 0.5" in str(result)
    assert "stump, x 0.5" in result._repr_html_()


class Counted(SmoothedClassifier):
    n_fits = 0

    def fit(self, X, y):
        type(self).n_fits += 1
        return super().fit(X, y)


def test_what_a_comparison_has_measured_is_not_fitted_again():
    method = ("counted", Counted(DecisionTreeClassifier(max_depth=1), vote="hard", random_state=0))
    known = compare(X, Y, METRIC, [method], cv=3)
    again = tradeoff(X, Y, METRIC, [0.5, 1], method=("counted", known.estimators["counted"]), comparison=known)
    assert Counted.n_fits == 6  # 3 folds at x 1 in compare, 3 at x 0.5 here
    assert again.results[1.0] is known.results["counted"]
    assert again.unconstrained is known.results["unconstrained"]
    assert (again.constant, again.folds) == (known.results["constant"], known.folds)
    anew = tradeoff(X, Y, METRIC, [0.5, 1], method=method, cv=3)
    assert Counted.n_fits == 12  # the control
    times = ["microseconds", "fit_seconds"]
    pd.testing.assert_frame_equal(again.table.drop(columns=times), anew.table.drop(columns=times), check_exact=True)


def test_another_estimator_of_the_same_name_is_fitted():
    known = compare(X, Y, METRIC, [METHOD], cv=3)
    other = ("stump", SmoothedClassifier(DummyClassifier(), vote="hard", random_state=0))
    result = tradeoff(X, Y, METRIC, [1], method=other, comparison=known)
    assert result.table.loc[1.0, "brier"] != known.table.loc["stump", "brier"]


@pytest.mark.parametrize("other", [WeightedLp([0.4, 0.1]), None])
def test_a_comparison_of_another_metric_or_other_people_is_refused(other):
    known = compare(X, Y, METRIC, ["constant"], cv=3)
    n = 120 if other else 119
    with pytest.raises(ValueError, match=f"comparison must be what compare returned for these {n} people"):
        tradeoff(X[:n], Y[:n], other or METRIC, method=METHOD, comparison=known)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scales": []}, "scales must be a list of positive numbers; got"),
        ({"scales": 2.0}, "scales must be a list of positive numbers; got 2.0"),
        ({"scales": [1, 0]}, "scales must be a positive finite number; got 0. 1 is the metric itself"),
        ({"method": "constant"}, "method must not be the constant, which costs the same under every metric"),
        ({"method": "unconstrained"}, "method must be one that enforces a metric; 'unconstrained' has no guarantee"),
        ({"method": "magic"}, "method must be one of constant, additive"),
        ({"method": 3}, "method must be a name, what Comparison.best returned, or a pair"),
    ],
)
def test_bad_input_is_refused_with_one_clear_error(options, message):
    with pytest.raises(ValueError, match=message):
        tradeoff(**({"X": X, "y": Y, "metric": METRIC, "method": METHOD} | options))


def test_a_method_that_does_not_apply_is_an_error():
    with pytest.raises(ValueError, match="method cannot be 'projection': "):
        tradeoff(X, np.digitize(X[:, 0], [-0.5, 0.5]), METRIC, method="projection")
