"""A search for violations: it finds what is planted, outdoes an audit, and finds nothing where a guarantee holds."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from attacked.cases import (
    NETWORK,
    applicants,
    cases,
    checkered,
    claiming,
    controls,
    jump,
    numbers,
    tabular,
    tree_of_tables,
    weighted,
)
from likewise import (
    AdditiveClassifier,
    AdditiveRegressor,
    InvalidInputError,
    LipschitzClassifier,
    ProjectedClassifier,
    RecalibratedClassifier,
    SmoothedClassifier,
    Splitting,
    TableMetric,
    WeightedLp,
    attack,
    audit,
)
from likewise.additive.shapes import on_grid
from likewise.datasets import load_mortgages
from likewise.dummy import ConstantClassifier
from promised import falsified

ROUNDING = 1e-12
CASES = cases()
CONTROL_PAIRS = 50_000
PAIRS = 2**20 // len(CASES) + 6000  # each; a million over all


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_pair_exceeds_the_guarantee(case):
    if case.method == "network":
        pytest.importorskip("torch")
    model, people = case.make()
    metric = model.guarantee_.metric
    found = attack(model, metric, people, n_pairs=max(1000, PAIRS // case.thinned), tolerance=ROUNDING, random_state=0)
    assert found.n_violations == 0, found.coverage
    assert found.n_pairs * case.thinned >= 2**20 / len(CASES)
    # The worst pair is what it is said to be, through the front door.
    outputs = model.predict_proba(found.pair) if hasattr(model, "classes_") else model.predict(found.pair)[:, None]
    low, high = model.guarantee_.output_range or (0.0, 2.0)
    assert found.difference == pytest.approx(np.abs(np.subtract(*outputs)).sum() / (high - low), abs=ROUNDING)
    assert found.distance == pytest.approx(metric(found.pair[:1], found.pair[1:])[0], rel=ROUNDING)


def recalibrated(inner):
    people, score = applicants()
    return RecalibratedClassifier(inner, cv=2, random_state=0).fit(people, score > 0), people


@pytest.mark.parametrize(
    "inner",
    [
        AdditiveClassifier(tabular(), penalty=0.001),
        ProjectedClassifier(tree_of_tables(), metric=tabular(), random_state=0),
        SmoothedClassifier(tree_of_tables(), metric=tabular(), noise="splitting", n_draws=50),
        ConstantClassifier(tabular()),
    ],
    ids=lambda inner: type(inner).__name__,
)
def test_recalibrated_models_of_tables_can_be_attacked_and_hold(inner):
    model, people = recalibrated(inner)
    metric = tabular()
    for given in (people, people.head(20)):
        found = attack(model, metric, given, n_pairs=3000, tolerance=ROUNDING, random_state=0)
        assert found.n_violations == 0, found.coverage
        assert found.refused == ()
    assert (found.pair is None) == isinstance(inner, ConstantClassifier)
    if found.pair is not None:
        difference = np.abs(np.subtract(*model.predict_proba(found.pair))).sum() / 2
        assert found.difference == pytest.approx(difference, abs=ROUNDING)


def test_control_a_recalibrated_model_of_tables_that_is_too_steep_is_found_out():
    model, people = recalibrated(AdditiveClassifier(tabular(), penalty=0.001))
    knots, values = model.map_.knots, model.map_.values
    steeper = replace(model.map_, knots=0.5 * (knots + knots.mean()), values=values)
    model.scorer_ = falsified(model.scorer_, map=steeper)
    assert attack(model, tabular(), people, n_pairs=20_000, tolerance=ROUNDING, random_state=0).n_violations > 0


def test_a_recalibrated_model_knows_the_breakpoints_of_the_one_inside():
    model, _ = recalibrated(AdditiveClassifier(tabular(), penalty=0.001))
    n = len(model.encoder_.names)
    for own, inner in zip(model.scorer_.breakpoints(n), model.estimator_.scorer_.breakpoints(n), strict=True):
        np.testing.assert_array_equal(own, inner)
    assert max(map(len, model.scorer_.breakpoints(n))) > 1
    assert [len(each) for each in model.scorer_.breakpoints(n + 1)] == [0] * (n + 1)


@pytest.mark.parametrize("case", controls(), ids=lambda case: case.name)
def test_control_an_allowance_of_one_percent_too_much_is_found_in_every_method(case):
    if case.method == "network":
        pytest.importorskip("torch")
    model, people = case.make()
    metric, n = model.guarantee_.metric, CONTROL_PAIRS // case.thinned
    found = attack(model, metric, people, n_pairs=n, tolerance=ROUNDING, random_state=0)
    assert found.n_violations > 0
    assert found.excess_over_bound > 1e-4
    assert found.guarantee is not None
    assert "exceed it" in found.coverage
    # What it was really allowed, it keeps.
    wide = metric.scaled(1.01)
    assert attack(claiming(model, wide), wide, people, n_pairs=n, tolerance=ROUNDING, random_state=0).n_violations == 0


def test_control_a_short_stretch_of_slope_one_percent_too_steep_is_found():
    X, _ = numbers()

    def model(rows):
        return 0.2 * rows[:, 0] + 0.002 * np.clip(rows[:, 0] - 1.2, 0.0, 0.3)

    found = attack(model, weighted(1), X, n_pairs=100_000, random_state=0)
    assert 0.0005 < found.excess <= 0.002 * 0.3 + ROUNDING
    assert attack(lambda rows: 0.2 * rows[:, 0], weighted(1), X, n_pairs=100_000, random_state=0).n_violations == 0


def test_control_levels_one_percent_too_far_apart_are_found():
    X, score = applicants()
    model = AdditiveClassifier(tabular(), penalty=1e-4).fit(X, score > 0)
    right = model.scorer_.model
    column = list(X.columns).index("region")
    shapes = [replace(shape, values=1.01 * shape.values) if shape.column == column else shape for shape in right.shapes]
    model.scorer_ = falsified(model.scorer_, model=on_grid(right.metric, right.intercepts, shapes))
    found = attack(model, tabular(), X, n_pairs=50_000, tolerance=ROUNDING, random_state=0)
    assert found.excess_over_bound > 1e-4
    regions = found.pair["region"]
    assert regions.iloc[0] != regions.iloc[1]


def test_control_a_category_counted_half_is_found():
    X, score = applicants()
    metric = tabular()
    half = TableMetric(
        metric.numeric, {**metric.categorical, "region": metric.categorical["region"] / 2}, missing={"income": 0.1}
    )
    model = claiming(AdditiveClassifier(metric, penalty=1e-4).fit(X, score > 0), half)
    found = attack(model, half, X, n_pairs=50_000, random_state=0)
    assert found.excess_over_bound > 0.05
    assert found.pair["region"].iloc[0] != found.pair["region"].iloc[1]


@pytest.mark.parametrize("column", ["zip", "race"])
def test_control_a_column_that_must_not_matter_is_found_to(column):
    X, _ = applicants()

    def model(people):
        return 0.3 + 1e-6 * (people[column].eq("x") if column == "race" else people[column] > 2.0)

    found = attack(model, tabular(), X, n_pairs=20_000, random_state=0)
    assert found.excess == pytest.approx(1e-6)
    assert found.distance == 0


@pytest.mark.parametrize("what", ["missing", "unseen"])
def test_control_a_missing_number_and_an_unseen_category_are_tried(what):
    X, _ = applicants()

    def model(people):
        odd = people["income"].isna() if what == "missing" else people["region"].eq("another")
        return 0.3 + 0.2 * odd

    found = attack(model, tabular(), X, n_pairs=20_000, random_state=0)
    allowed = 0.1 if what == "missing" else 0.12
    assert found.excess == pytest.approx(0.2 - allowed)


def test_control_one_anchor_of_a_projection_moved_is_found():
    X, score = numbers()
    model = ProjectedClassifier(checkered, metric=weighted(1), base=0.5).fit(X, score > 0)

    def moved(rows):
        return model.predict_proba(rows)[:, 1] + 0.01 * (rows == X[17]).all(axis=1)

    found = attack(moved, weighted(1), X, n_pairs=100_000, random_state=0)
    assert found.excess == pytest.approx(0.01, abs=1e-6)
    assert (found.pair == X[17]).all(axis=1).any()


@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_control_a_weight_of_one_percent_too_much_in_a_network_is_found(p):
    pytest.importorskip("torch")
    X, score = numbers()
    model = LipschitzClassifier(
        weighted(p), hidden_layer_sizes=(2, 2), link="clip", loss="hinge", n_steps=1, random_state=0
    )
    model.fit(X, score > 0)
    layers = model.scorer_.layers

    def with_weight(weight):
        """A network whose score is the first number, in units of the metric, times a weight."""
        first = np.zeros_like(layers.first)
        first[0] = weight
        weights, biases = (np.eye(2), np.full((2, 1), 0.5)), (np.zeros(2), np.zeros(2), np.zeros(1))
        planted = replace(layers, first=first, weights=weights, biases=biases)
        model.scorer_ = falsified(model.scorer_, layers=planted)
        return attack(model, weighted(p), X, n_pairs=30_000, tolerance=ROUNDING, random_state=0)

    assert with_weight(1.0).n_violations == 0
    assert with_weight(1.0).largest_share == pytest.approx(1)
    assert with_weight(1.01).excess_over_bound > 1e-3


# -- models without a guarantee ---------------------------------------------------------------------------------------


def test_boosting_has_worse_pairs_than_those_among_the_people_of_an_audit():
    mortgages = load_mortgages()
    X = mortgages.data[["income", "obligations", "loan_to_price", "consumer_credit", "race"]]
    text = ["consumer_credit", "race"]
    model = make_pipeline(
        make_column_transformer(
            (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), text),
            remainder=SimpleImputer(strategy="median"),
        ),
        GradientBoostingClassifier(random_state=0),
    ).fit(X, mortgages.target)
    metric = TableMetric(
        {"income": 0.002, "obligations": 0.01, "loan_to_price": 0.5},
        {"consumer_credit": 0.2, "race": 0},
        missing="category",
    )
    among_people = audit(model, X, metric).max_excess
    found = attack(model, metric, X, random_state=0)
    assert found.excess > among_people + 0.05
    answers = model.predict_proba(found.pair)
    assert np.abs(answers[0] - answers[1]).sum() / 2 == pytest.approx(found.difference)
    assert metric(found.pair[:1], found.pair[1:])[0] == pytest.approx(found.distance)
    assert list(found.pair.columns) == list(X.columns)
    assert found.guarantee is None
    assert "Finding no violation does not prove" in found.coverage


def test_a_straight_line_uses_all_of_its_own_metric_and_no_more():
    X, score = numbers()
    model = LinearRegression().fit(X, score)
    metric = WeightedLp(np.abs(model.coef_))
    found = attack(model, metric, X, n_pairs=20_000, random_state=0)
    assert found.n_violations == 0
    assert found.largest_share == pytest.approx(1, abs=1e-6)
    assert attack(model, metric.scaled(0.99), X, n_pairs=20_000, random_state=0).n_violations > 0


def test_what_a_model_refuses_is_left_out_and_said():
    X, score = applicants()
    text = ["region", "owner", "code", "race"]
    model = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="error"), text), (SimpleImputer(), ["income"]), remainder="drop"
        ),
        LogisticRegression(),
    ).fit(X, score > 0)
    found = attack(model, tabular(), X, n_pairs=10_000, random_state=0)
    assert "unseen values of region" in found.refused
    assert "Not tried, since the model refuses them: unseen values of region" in found.coverage
    assert not found.pair["region"].eq("another").any()


def test_values_off_a_declared_grid_are_left_out():
    X = np.random.default_rng(0).integers(0, 20, size=(100, 2)).astype(float)
    metric = WeightedLp([0.05, 0.05])
    noise = Splitting(metric, steps=(1.0, 1.0))
    model = SmoothedClassifier(jump, metric=metric, noise=noise, n_draws=20).fit(X, X[:, 0] > 10)
    found = attack(model, metric, X, n_pairs=5_000, tolerance=ROUNDING, random_state=0)
    assert found.n_violations == 0
    assert (found.pair == np.rint(found.pair)).all()
    assert len(found.refused) == 2


# -- the same answer always, and what it takes ------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_pair_whatever_the_threads(monkeypatch):
    pytest.importorskip("torch")
    X, score = numbers()
    model = LipschitzClassifier(weighted(2), hidden_layer_sizes=(8, 8), n_steps=20, random_state=0).fit(X, score > 0)
    results = []
    for threads in (1, 3):
        monkeypatch.setattr("likewise._parallel.n_threads", lambda n_jobs, threads=threads: threads)
        results.append(attack(model, weighted(2), X, n_pairs=10_000, random_state=5))
    one, other = results
    assert np.array_equal(one.pair, other.pair)
    assert (one.difference, one.largest_share, dict(one.tried)) == (
        other.difference,
        other.largest_share,
        dict(other.tried),
    )
    assert not np.array_equal(one.pair, attack(model, weighted(2), X, n_pairs=10_000, random_state=6).pair)


def test_memory_does_not_grow_with_the_number_of_pairs():
    X, _ = numbers()

    def peak(n):
        tracemalloc.start()
        attack(checkered, weighted(1), X, n_pairs=n, random_state=0)
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(1000)
    assert peak(1_600_000) < 1.2 * peak(400_000)


@pytest.mark.parametrize("method", ["additive", "network", "projection"])
def test_models_that_know_their_columns_need_no_people(method):
    if method == "network":
        pytest.importorskip("torch")
    X, score = applicants()
    model = {
        "additive": AdditiveClassifier(tabular(), penalty=1e-4),
        "network": LipschitzClassifier(tabular(), **NETWORK),
        "projection": ProjectedClassifier(jump, metric=tabular(), base=0.5),
    }[method].fit(X, score > 0)
    found = attack(model, tabular(), n_pairs=10_000, tolerance=ROUNDING, random_state=0)
    assert found.n_violations == 0
    assert list(found.pair.columns) == list(X.columns)
    narrow = tabular().scaled(0.9)
    assert attack(claiming(model, narrow), narrow, n_pairs=10_000, random_state=0).n_violations > 0


def test_what_is_missing_is_asked_for():
    X, score = numbers()
    with pytest.raises(InvalidInputError, match="X must be given for a model that is not one of likewise"):
        attack(checkered, weighted(1))
    model = SmoothedClassifier(LogisticRegression(), metric=weighted(2)).fit(X, score > 0)
    with pytest.raises(InvalidInputError, match="does not say where the numbers of 'feature 0' lie"):
        attack(model, weighted(2))
    with pytest.raises(InvalidInputError, match="n_pairs must be a whole number >= 1000"):
        attack(model, weighted(2), X, n_pairs=10)
    with pytest.raises(InvalidInputError, match="tolerance must be"):
        attack(model, weighted(2), X, tolerance=-1)


def test_a_guarantee_about_another_metric_is_not_the_limit():
    X, score = numbers()
    model = AdditiveClassifier(weighted(1), penalty=1e-4).fit(X, score > 0)
    strict = weighted(1).scaled(0.5)
    found = attack(model, strict, X, n_pairs=10_000, random_state=0)
    assert found.guarantee is None
    assert found.bound == found.distance
    assert found.excess > 0.05


def test_a_sampled_guarantee_is_said_to_be_one():
    X, score = numbers()
    model = SmoothedClassifier(checkered, metric=weighted(2), noise="gaussian", n_draws=50, random_state=0)
    found = attack(model.fit(X, score > 0), weighted(2), X, n_pairs=2_000, random_state=0)
    assert "The guarantee is sampled" in found.coverage


def test_tables_of_numbers_keep_their_names():
    X = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [5.0, 3.0, 4.0, 1.0]})
    model = LogisticRegression().fit(X, [0, 1, 0, 1])
    found = attack(model, WeightedLp({"a": 0.01, "b": 0.01}), X, n_pairs=5_000, random_state=0)
    assert list(found.pair.columns) == ["a", "b"]
    assert found.n_violations > 0


@pytest.fixture(scope="module")
def salaries():
    """A scorecard of numbers between 20,000 and 70,000, which uses all of the slope that it may."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"age": rng.uniform(20, 60, 200), "kind": rng.choice(["a", "b"], 200)})
    metric = TableMetric({"age": 0.01}, {"kind": 0.2})
    salary = np.clip(20_000 + 2_000 * (people["age"] - 20) + 20_000 * (people["kind"] == "b"), 20_000, 70_000)
    model = AdditiveRegressor(metric, penalty=1e-6, output_range=(20_000, 70_000)).fit(people, salary)
    return model, metric, people


def test_numbers_are_attacked_in_shares_of_their_range(salaries):
    model, metric, people = salaries
    found = attack(model, metric, people, n_pairs=20_000, random_state=0)
    outputs = model.predict(found.pair)
    assert found.n_violations == 0
    assert found.difference == pytest.approx(abs(outputs[0] - outputs[1]) / 50_000)
    assert found.bound == pytest.approx(float(model.guarantee_.bound(found.distance)) / 50_000)
    assert found.bound == pytest.approx(found.distance, rel=1e-6)
    assert 0.99 < found.largest_share <= 1 + 1e-6  # so a factor of the range, or of two, would be seen
    # Another metric than that of the guarantee: the distance itself is the limit.
    strict = metric.scaled(0.9)
    control = attack(model, strict, people, n_pairs=20_000, random_state=0)
    assert control.n_violations > 0
    assert control.bound == control.distance
    assert control.excess > 0.005


def test_numbers_of_a_plain_function_are_attacked_in_the_range_given_or_in_their_own_unit(salaries):
    X = salaries[2][["age"]]
    rule = WeightedLp({"age": 0.01})

    def salary(rows):
        return 20_000 + 550.0 * (np.asarray(rows)[:, 0] - 20)  # 1.1 points of 50,000 a year

    found = attack(salary, rule, X, n_pairs=5_000, output_range=(20_000, 70_000), random_state=0)
    assert found.n_violations > 0
    assert found.difference / found.distance == pytest.approx(1.1)
    wide = attack(salary, rule.scaled(1.11), X, n_pairs=5_000, output_range=(20_000, 70_000), random_state=0)
    assert wide.n_violations == 0
    unit = attack(salary, WeightedLp({"age": 551.0}), X, n_pairs=5_000, random_state=0)
    assert unit.n_violations == 0
    assert attack(salary, WeightedLp({"age": 549.0}), X, n_pairs=5_000, random_state=0).n_violations > 0


@pytest.mark.parametrize("only", ["race", "income"])
@pytest.mark.parametrize("weight", [0, 0.1])
def test_people_with_equal_outputs_are_not_shown_as_a_pair(only, weight):
    """What the model ignores, whether the metric does or not: of incomes, two of one person's would be the closest."""
    X = pd.DataFrame({"age": np.arange(20, 60.0), "race": ["a", "b"] * 20, "income": np.arange(40.0)})
    metric = TableMetric({"age": 0.01, "income": weight}, {"race": weight})

    def by_age(table):
        return table["age"].to_numpy() / 200

    found = attack(by_age, metric, X, only=only, n_pairs=5000, random_state=0)
    assert found.pair is None
    assert (found.difference, found.distance, found.excess_over_bound, found.n_violations) == (0, 0, 0, 0)
    assert "All pairs tried have equal outputs" in found.coverage
    assert "Finding no violation does not prove there is none" in found.coverage
    # The same search shows a pair if race matters, however little.
    size = weight + 1e-6
    other = attack(lambda table: size * (table["race"] == "b").to_numpy(), metric, X, only="race", n_pairs=5000)
    assert sorted(other.pair["race"]) == ["a", "b"]
    assert other.n_violations > 0
