import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

from engines import with_both
from likewise import (
    SmoothedRegressor,
    TableMetric,
    WeightedLp,
    audit,
    estimate_minimal_metric,
    minimal_metric,
)
from oracle import Described, category

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = X @ [1.0, -2.0, 0.5] + RNG.normal(size=400)


def by_hand(outputs, rows, metric, tolerance=1e-9):
    i, j = np.triu_indices(len(rows), 1)
    difference = np.abs(outputs[i] - outputs[j]).sum(axis=1)
    distance = metric(rows[i], rows[j])
    violates = difference - distance > tolerance
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (difference / distance)[violates].max(initial=0)
    return int(violates.sum()), (difference - distance)[violates].max(initial=0), ratio


@pytest.mark.parametrize("p", [1, 1.5, 2, np.inf])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_numbers_are_those_of_all_pairs(p, n_classes):
    rows = np.concatenate([X, X[:50]])  # equal people are counted, each pair of rows once
    model = RandomForestClassifier(10, random_state=0).fit(X, np.digitize(Y, np.linspace(-1, 1, n_classes - 1)))
    metric = WeightedLp([0.2, 0.3, 0.0], p)
    result = audit(model, rows, metric)
    expected = by_hand(model.predict_proba(rows) / 2, rows, metric)
    assert result.n_pairs == 450 * 449 // 2
    assert result.n_distinct == 400
    assert (result.n_violations, result.max_excess) == (expected[0], pytest.approx(expected[1]))
    assert result.max_ratio == pytest.approx(expected[2])
    assert result.n_violations > 100


def drawn(kind, n=60):
    """People with few values, so that many are equal, and outputs of a kind: arguments of `audit`, and the outputs."""
    rng = np.random.default_rng(3)
    people = pd.DataFrame(
        {
            "age": rng.choice([20.0, 24.0, 40.0, np.nan], n),
            "region": rng.choice(np.array(["north", "south", None], dtype=object), n),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    few = rng.integers(0, 9, n) / 8
    three = rng.multinomial(8, [0.2, 0.3, 0.5], n) / 8
    numbers = 4096 * few - 1000
    return people, {
        "chances": ({"model": None, "predictions": few}, few[:, None], 1.0),
        "classes": ({"model": None, "predictions": three}, three / 2, 1.0),
        "numbers": ({"model": lambda rows: numbers}, numbers[:, None], 4096.0),
        "shares": ({"model": None, "predictions": numbers, "output_range": (-1000, 7192)}, few[:, None] / 2, 1.0),
    }[kind]


@pytest.mark.parametrize("tolerance", [None, 0.125])
@pytest.mark.parametrize("kind", ["chances", "classes", "numbers", "shares"])
def test_every_figure_is_that_of_every_pair(kind, tolerance):
    """In fractions: weights are powers of two, so that excesses of exactly the tolerance occur."""
    people, (given, outputs, unit) = drawn(kind)
    metric = TableMetric({"age": unit * 2.0**-6}, {"region": 0.125, "sex": 0}, missing={"age": 0.25})
    given |= {"tolerance": None if tolerance is None else unit * tolerance, "thresholds": [0, 0.25 * unit, 0.5 * unit]}
    described, records = Described(metric, list(people)), people.to_dict("records")
    limit = Fraction(unit) * Fraction(tolerance or 1e-9)
    rows = [(*map(category, record.values()), *output) for record, output in zip(records, outputs, strict=True)]
    excesses, listed = [], {}
    for i, j in itertools.combinations(range(len(rows)), 2):
        difference = sum(abs(Fraction(x) - Fraction(y)) for x, y in zip(outputs[i], outputs[j], strict=True))
        distance = described.distance(records[i], records[j])
        excesses.append(difference - distance)
        if excesses[-1] > limit:
            pair = tuple(sorted((rows.index(rows[i]), rows.index(rows[j]))))  # the first of each who are equal
            times = listed[pair][0] if pair in listed else 0
            listed[pair] = times + 1, difference, distance
    worst = sorted(listed, key=lambda pair: (listed[pair][2] - listed[pair][1], pair))[:40]
    for result in with_both(lambda: audit(X=people, metric=metric, n_worst=40, **given)):
        assert result.n_pairs == len(excesses)
        assert result.n_violations == sum(each > limit for each in excesses) > 40
        assert result.n_above == {t: sum(e > max(limit, t) for e in excesses) for t in given["thresholds"]}
        assert result.max_excess == max(excesses)
        ratios = [difference / distance if distance else np.inf for _, difference, distance in listed.values()]
        assert result.max_ratio == pytest.approx(float(max(ratios)))
        assert result.n_distinct == len(set(rows))
        found = result.violations
        assert [*zip(found["row_a"], found["row_b"], strict=True)] == worst
        assert found[["n_pairs", "difference", "distance"]].to_numpy().tolist() == [[*listed[pair]] for pair in worst]
        assert found["excess"].tolist() == [listed[pair][1] - listed[pair][2] for pair in worst]


def test_close_to_p_1_the_dual_norm_does_not_overflow():
    """Its exponent is a billion there; slopes above 1 to that power leave the floating point."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    outputs = np.clip(0.5 + X @ [0.2, 0.1, 0.05] + 0.01 * rng.normal(size=300), 0, 1)
    metric = WeightedLp([0.15, 0.1, 0.05], 1 + 1e-9)
    found = audit(None, X, metric, predictions=outputs)
    differences, distances = np.abs(outputs[:, None] - outputs), metric.pairwise(X)
    expected = (differences - distances > found.tolerance)[np.triu_indices(300, 1)].sum()
    assert found.n_violations == expected > 0
    assert found.max_excess == pytest.approx((differences - distances).max())


def test_the_exact_metric_of_a_model_has_no_violation_and_a_smaller_one_has():
    model = LogisticRegression().fit(X, Y > 0)
    metric = minimal_metric(model)
    assert audit(model, X, metric).n_violations == 0
    assert audit(model, X, metric.scaled(0.9)).n_violations > 0  # the control


def test_without_violations_nothing_is_claimed():
    result = audit(None, [[0.0], [1.0]], WeightedLp([1.0]), predictions=[0.2, 0.3])
    assert (result.n_violations, result.max_excess) == (0, 0.0)
    assert np.isnan(result.max_ratio)
    assert result.violations.empty
    assert "No pair was found to exceed it" in result.coverage
    assert "Not searched: people who are not in the table" in result.coverage
    assert "fair" not in result.coverage


def test_planted_violators_among_many_are_found_at_rank_one():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(100_000, 4))
    beta = np.array([0.5, -0.3, 0.2, 0.1])
    scores = 1 / (1 + np.exp(-rows @ beta))
    rows[77_777] = rows[123] + 1e-6
    scores[123], scores[77_777] = 0.1, 0.9
    result = audit(None, rows, WeightedLp(np.abs(beta)), predictions=scores)
    worst = result.violations.iloc[0]
    assert (worst["row_a"], worst["row_b"]) == (123, 77_777)
    assert worst["excess"] == pytest.approx(0.8, abs=1e-5)
    assert result.max_excess == worst["excess"]


def test_equal_people_with_different_scores_have_an_infinite_ratio():
    result = audit(None, [[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]], WeightedLp([1.0, 1.0]), predictions=[0.1, 0.2, 0.4])
    assert result.n_violations == 1
    assert result.max_ratio == np.inf
    assert result.violations[["row_a", "row_b", "differs"]].to_numpy().tolist() == [[0, 2, "nothing"]]


def test_people_who_differ_only_where_it_must_not_matter_are_at_distance_zero():
    frame = pd.DataFrame({"age": [30, 30], "race": [0, 1]})
    result = audit(None, frame, WeightedLp({"age": 0.1, "race": 0.0}), predictions=[0.5, 0.6])
    assert result.max_ratio == np.inf
    assert result.violations["differs"].tolist() == ["race: 0 / 1"]


def test_table_lists_the_features_that_differ_most_important_first():
    frame = pd.DataFrame({"age": [30, 31.5], "hours": [40, 20], "height": [1.8, 1.8]})
    metric = WeightedLp({"age": 0.01, "hours": 0.01, "height": 1.0})
    result = audit(None, frame, metric, predictions=[0.0, 1.0])
    row = result.violations.iloc[0]
    assert row["differs"] == "hours: 40 / 20, age: 30 / 31.5"
    assert row["distance"] == pytest.approx(0.215)
    assert row["excess"] == pytest.approx(0.785)
    assert row["ratio"] == pytest.approx(1 / 0.215)


def test_columns_that_must_not_matter_come_first_and_nothing_is_cut():
    """Ten columns contribute to the distance; sex and race, of weight 0, contribute nothing and are the point."""
    names = [f"x{k}" for k in range(10)]
    people = pd.DataFrame({name: [0, 1 + k] for k, name in enumerate(names)})
    people = people.assign(sex=["f", "m"], race=["x", "x"])
    metric = TableMetric(dict.fromkeys(names, 0.001), {"sex": 0, "race": 0})
    result = audit(None, people, metric, predictions=[0.2, 0.9])
    everything = ["sex: f / m", *(f"x{k}: 0 / {1 + k}" for k in range(9, -1, -1))]
    assert result.violations["differs"].tolist() == [", ".join(everything)]
    assert result.abridged()["differs"].tolist() == [", ".join([*everything[:7], "4 more columns"])]
    assert result.abridged(9)["differs"][0].endswith(", 1 more column")
    assert "sex: f / m" in result._repr_html_()
    assert "4 more columns" in result._repr_html_()


def test_a_protected_number_that_one_of_them_misses_is_shown_once_and_first():
    people = pd.DataFrame({"income": [10.0, 20.0], "age": [30.0, np.nan]})
    metric = TableMetric({"income": 0.001, "age": 0}, missing={"income": 0.1, "age": 0})
    result = audit(None, people, metric, predictions=[0.2, 0.9])
    assert result.violations["differs"].tolist() == ["age: 30 / missing, income: 10 / 20"]


def test_both_scores_are_shown_and_of_several_classes_those_that_differ_most():
    rows, metric = [[0.0], [1.0]], WeightedLp([0.1])
    shown = ["score_a", "score_b", "outcome"]
    of_one = audit(None, rows, metric, predictions=[0.25, 0.75]).violations
    assert of_one[shown].to_numpy().tolist() == [[0.25, 0.75, None]]
    of_two = audit(None, rows, metric, predictions=pd.DataFrame({"no": [0.75, 0.25], "yes": [0.25, 0.75]})).violations
    assert of_two[shown].to_numpy().tolist() == [[0.25, 0.75, "yes"]]
    three = np.array([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]])
    assert audit(None, rows, metric, predictions=three).violations[shown].to_numpy().tolist() == [[0.5, 0.0, 0]]
    named = audit(None, rows, metric, predictions=pd.DataFrame(three, columns=["low", "mid", "high"])).violations
    assert named[shown].to_numpy().tolist() == [[0.5, 0.0, "low"]]
    numbers = audit(None, rows, metric, predictions=[300.0, 500.0], output_range=(100, 1100)).violations
    assert numbers[shown].to_numpy().tolist() == [[pytest.approx(300), pytest.approx(500), None]]
    model = LogisticRegression().fit(X, np.where(Y > 0, "yes", "no"))
    asked = audit(model, X, minimal_metric(model).scaled(0.5)).violations
    assert set(asked["outcome"]) == {"yes"}
    np.testing.assert_allclose(asked["score_a"], model.predict_proba(X)[asked["row_a"], 1])
    np.testing.assert_allclose((asked["score_a"] - asked["score_b"]).abs(), asked["difference"])
    assert asked["higher"].tolist() == np.where(asked["score_a"] > asked["score_b"], "a", "b").tolist()
    assert [of_one["higher"][0], named["higher"][0]] == ["b", "a"]


@pytest.mark.parametrize("p", [1, 1.5, 2])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_pairs_above_larger_excesses_are_counted_beside_those_above_the_distance(p, n_classes):
    rows = np.concatenate([X, X[:50]])
    model = RandomForestClassifier(10, random_state=0).fit(X, np.digitize(Y, np.linspace(-1, 1, n_classes - 1)))
    metric = WeightedLp([0.2, 0.3, 0.0], p)
    thresholds = [0.0, 0.05, 0.2, 0.999]
    result = audit(model, rows, metric, thresholds=thresholds)
    expected = [by_hand(model.predict_proba(rows) / 2, rows, metric, max(t, 1e-9))[0] for t in thresholds]
    assert result.n_above == dict(zip(thresholds, expected, strict=True))
    assert result.n_violations == expected[0] > expected[1] > expected[2] > expected[3] == 0
    assert f"{expected[1]:,} by more than 5 points" in result.coverage


def test_all_kinds_of_models_can_be_audited():
    metric = WeightedLp([0.1, 0.1, 0.1])
    labels = LinearSVC().fit(X, Y > 0)
    assert audit(labels, X, metric).violations["difference"].max() == 1.0
    assert audit(lambda rows: rows[:, 0], X, WeightedLp([1.0, 0, 0])).n_violations == 0
    assert audit(lambda rows: 2 * rows[:, 0], X, WeightedLp([1.0, 0, 0])).n_violations == 400 * 399 // 2
    words = audit(lambda rows: np.where(rows[:, 0] > 0, "yes", "no"), X, metric)
    assert words.violations["difference"].max() == 1.0


def test_regression_is_in_units_of_the_output():
    model = LinearRegression().fit(X, 1e6 * Y)
    metric = minimal_metric(model)
    assert audit(model, X, metric).n_violations == 0
    result = audit(model, X, metric.scaled(0.5))
    assert result.max_excess > 1e5
    assert result.max_ratio == pytest.approx(2, rel=0.2)


def test_a_smoothed_regressor_is_measured_in_its_own_range():
    metric = WeightedLp([0.4, 0.4, 0.4])
    model = SmoothedRegressor(LinearRegression(), metric=metric, n_draws=2000, random_state=0).fit(X, 1000 * Y)
    result = audit(model, X, metric, tolerance=model.guarantee_.epsilon)
    assert result.n_violations == 0
    assert result.sample["difference"].max() <= 1


def test_an_estimated_metric_has_no_violation_at_the_default_tolerance():
    model, people = RandomForestClassifier(10, random_state=0).fit(X, Y > 0), X[:150]
    for p in (1, 2, 3):
        metric = estimate_minimal_metric(model, people, p).metric
        assert audit(model, people, metric).n_violations == 0


def test_columns_are_matched_by_name():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = LogisticRegression().fit(frame, Y > 0)
    assert audit(model, X, WeightedLp(minimal_metric(model).numeric)).n_violations == 0  # an array, for named columns
    turned, metric = frame[["c", "b", "a"]], WeightedLp({"a": 0.1, "b": 0.2, "c": 0})
    expected = audit(model, frame, metric)
    assert expected.n_violations > 0
    table = TableMetric(dict(zip("abc", metric.weights, strict=True)))
    for under, asked in (
        (metric, model),
        (table, model),
        (metric, lambda rows: model.predict_proba(pd.DataFrame(rows, columns=[*"cba"])[[*"abc"]])),
    ):
        found = audit(asked, turned, under)
        assert (found.n_violations, found.max_excess) == (expected.n_violations, expected.max_excess)
    with pytest.raises(ValueError, match=r"X must have the columns of the metric, \['a', 'b', 'c'\]; got \['a', 'b'\]"):
        audit(model, frame[["a", "b"]], metric)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": [[1.0, np.nan], [1.0, 2.0]]}, "X must be finite"),
        ({"X": [[1.0, 2.0]]}, "at least two people"),
        ({"predictions": [0.1]}, "one entry per row"),
        ({"predictions": [0.1, -0.2]}, r"within \[0, 1\]; got -0.2"),
        ({"predictions": ["a", "b"]}, "predictions must hold numbers only"),
        ({"predictions": [5.0, 12.0], "output_range": (0, 10)}, r"output_range, \(0, 10\); got 12"),
        ({"output_range": (1, 0)}, "output_range must be two finite numbers, the lowest first"),
        ({"metric": WeightedLp([1.0])}, r"X must have 1 columns, one per weight; got an array of shape \(2, 2\)"),
        ({"tolerance": -1.0}, "tolerance must be a non-negative finite number; got -1.0"),
        ({"tolerance": 1.0}, "tolerance must be below 1, since these outputs never differ by more; got 1. 0.01 is one"),
        ({"tolerance": 1, "predictions": [5, 9], "output_range": (0, 10)}, "tolerance must be below 1"),
        ({"thresholds": [0.1, -1.0]}, "thresholds must be a non-negative finite number; got -1.0"),
        ({"thresholds": 0.1}, "thresholds must be a list of non-negative numbers; got 0.1"),
        ({"n_worst": 0}, "n_worst must be a whole number >= 1; got 0"),
    ],
)
def test_bad_input_gives_one_clear_error(change, message):
    arguments = {"X": [[1.0, 2.0], [3.0, 4.0]], "metric": WeightedLp([1.0, 1.0]), "predictions": [0.1, 0.2]} | change
    with pytest.raises(ValueError, match=message):
        audit(None, **arguments)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda rows: np.array([0.5]), "one output per row"),
        (lambda rows: np.full(len(rows), np.nan), "NaN or infinity"),
        (lambda rows: np.full((len(rows), 2), 0.7), "sum to 1"),
        (lambda rows: np.tile([-0.5, 1.5], (len(rows), 1)), r"within \[0, 1\]; got -0.5"),
    ],
)
def test_models_with_impossible_answers_are_refused(answer, message):
    with pytest.raises(ValueError, match=message):
        audit(answer, X, WeightedLp([1.0, 1.0, 1.0]))


def test_metric_must_be_a_metric():
    with pytest.raises(TypeError, match="metric must be a Metric, such as WeightedLp or TableMetric; got"):
        audit(None, X, [1, 1, 1], predictions=np.zeros(400))


class Sigmoid:
    """Returns one column of probabilities, as networks with a sigmoid output do."""

    def predict_proba(self, rows):
        return 1 / (1 + np.exp(-9 * np.asarray(rows)[:, :1]))


def test_a_single_column_of_probabilities_is_not_a_constant():
    X = np.random.default_rng(0).normal(size=(80, 2))
    metric = WeightedLp([0.1, 0.1])
    column, numbers = audit(Sigmoid(), X, metric), audit(lambda rows: Sigmoid().predict_proba(rows)[:, 0], X, metric)
    assert column.n_violations == numbers.n_violations > 1000


@pytest.mark.parametrize(
    ("scores", "words"), [([0, 0, 0.9], "2 of 3 pairs exceed the"), ([0, 0.5, 0.5], "1 of 3 pairs exceeds the")]
)
def test_one_pair_exceeds_and_two_exceed(scores, words):
    assert words in audit(None, [[0.0], [1.0], [2.0]], WeightedLp([0.4]), predictions=scores, tolerance=0.01).headline
