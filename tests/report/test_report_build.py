"""From a fitted model to the data of a report: what was measured, on whom, with the model's own promise."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from likewise import (
    AdditiveClassifier,
    AdditiveRegressor,
    ProjectedClassifier,
    ProjectedRegressor,
    SmoothedClassifier,
    SmoothedRegressor,
    TableMetric,
    ThresholdDecision,
    WeightedLp,
    audit,
    compare,
    design_metric,
)
from likewise.base import ConstrainedClassifier
from likewise.kernel.bounds import Bound
from likewise.kernel.certificate import Estimate
from likewise.report import build, render
from likewise.report.build import build_report, shown_outcome
from likewise.report.tables import groups_of
from likewise.report.view import prepare
from promised import Promised, promise

METRIC = TableMetric({"income": 1e-4, "age": 0.01}, {"region": 0.1, "sex": 0.0}, units={"income": "$"})


def applicants(n):
    rng = np.random.default_rng(3)
    X = pd.DataFrame(
        {
            "income": rng.integers(20, 80, n) * 100,
            "age": rng.integers(20, 70, n),
            "region": rng.choice(["north", "south"], n),
            "sex": rng.choice(["female", "male"], n),
        }
    )
    merit = 0.001 * (X["income"] - 5000) + 1.5 * (X["sex"] == "male") - 0.7
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-merit)), "yes", "no")


@dataclass(frozen=True, eq=False)
class ShareScorer(Promised):
    share: np.ndarray

    def estimate(self, people, *, verbose=False):
        mean = np.tile(self.share, (len(people), 1))
        return Estimate(mean, mean, mean, np.zeros(len(people), dtype=np.int64))

    def visible(self, people):
        return people.rows[:, :0]


class ShareClassifier(ConstrainedClassifier):
    """The shares of the classes for everybody: a model with no other inside."""

    def __init__(self, metric=None):
        self.metric = metric

    def learn(self, data, metric):
        share = np.array([(data.y == label).mean() for label in self.classes_])
        return ShareScorer(promise(metric, Bound(), "exact", "Everybody gets the same."), share)


@pytest.fixture(autouse=True)
def two_scales(monkeypatch):
    """Trade-offs of two scales; `report` is built before, with all."""
    monkeypatch.setattr(build, "_SCALES", (0.5, 1.0))


@pytest.fixture(scope="module")
def smoothed():
    X, y = applicants(160)
    inner = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["region", "sex"]), remainder="passthrough"),
        LogisticRegression(max_iter=5000),
    )
    return SmoothedClassifier(inner, metric=METRIC, vote="soft", n_draws=40, random_state=0).fit(X, y), X, y


@pytest.fixture(scope="module")
def report(smoothed):
    return build_report(*smoothed, outcome="no", cv=2, title="Loans", model_name="a.skops")


def test_the_report_holds_the_objects_of_the_model(smoothed, report):
    model, X, _ = smoothed
    assert report.guarantee is model.guarantee_
    assert report.metric == METRIC
    assert (report.title, report.outcome, report.n_population, report.shown) == ("Loans", "no", 160, 0)
    assert (report.kind, report.model_name) == ("smoothed", "a.skops")
    unseen = X.iloc[report.cost.comparison.folds[0].test]
    np.testing.assert_array_equal(report.after, model.predict_proba(unseen))
    assert report.name(0) == f"row {unseen.index[0] + 1}"  # as in a file, where the first is row 1


def test_there_is_one_unconstrained_model_on_people_it_has_not_seen(smoothed, report):
    _, X, y = smoothed
    comparison = report.cost.comparison
    table, fold = comparison.table, comparison.folds[0]
    free = table[~table["guarantee"]]
    assert set(free.index) == {"unconstrained", "the model inside"}
    again = clone(comparison.estimators["unconstrained"]).fit(X.iloc[fold.train], y[fold.train])
    np.testing.assert_allclose(report.before, again.predict_proba(X.iloc[fold.test]), rtol=1e-12)
    assert not set(report.people.table.index) & {f"row {k + 1}" for k in fold.train}
    assert report.cost.tradeoff.unconstrained is comparison.results["unconstrained"]  # of the charts too
    assert "the unconstrained model" in [row["name"] for row in prepare(report)["cost"]["rows"]]
    words = render(report)
    assert "Without: the unconstrained model" in words
    assert "Figures in grey are of the unconstrained model." in words


def test_searches_before_and_after_leave_room_for_the_error_of_the_promise(smoothed, report):
    model = smoothed[0]
    expected = audit(None, report.people.table, METRIC, predictions=report.before, tolerance=model.guarantee_.epsilon)
    assert model.guarantee_.epsilon > 0
    assert report.scan.n_above["before"] == expected.n_violations > 0
    assert report.scan.n_above["after"] == 0


def test_the_closest_pairs_are_those_of_brute_force(smoothed, report):
    model, X = smoothed[0], report.people.table
    scores, D = model.predict_proba(X)[:, 1], METRIC.pairwise(X)
    used = np.abs(scores[:, None] - scores) / np.minimum(1, D + model.guarantee_.epsilon)
    used[(D < 0.002) | (D >= 1)] = 0
    first = report.scan.closest.iloc[0]
    assert first["difference"] / (first["distance"] + model.guarantee_.epsilon) == pytest.approx(used.max())
    assert D[first["row_a"].astype(int), first["row_b"].astype(int)] == pytest.approx(first["distance"])
    people = report.scan.closest[["row_a", "row_b"]].to_numpy().ravel()
    assert len(set(people)) == len(people)


def test_figures_and_groups_are_of_the_same_people_held_out(smoothed, report):
    _, X, y = smoothed
    table = report.cost.comparison.table
    assert {"constant", "this model", "unconstrained", "the model inside"} <= set(table.index)
    assert table.loc["this model", "people"] == len(y)
    women, men = (group for group in report.groups if group.column == "sex")
    assert (women.group, men.group, women.n + men.n) == ("female", "male", len(y))
    for side, method in (("after", "this model"), ("before", "unconstrained")):
        wrong = (women.n * getattr(women, side).error + men.n * getattr(men, side).error) / len(y)
        assert wrong == pytest.approx(report.cost.people.wrong[method])
        rate = (women.n * getattr(women, side).rate + men.n * getattr(men, side).rate) / len(y)
        assert rate == pytest.approx(report.cost.people.rate)  # to as many as had it
    assert men.actual == pytest.approx((y[X["sex"] == "male"] == "no").mean())


def test_nobody_is_measured_by_a_model_that_has_learned_from_them():
    X, y = applicants(61)
    seen = []

    class Spy(ShareClassifier):
        def learn(self, data, metric):
            seen.append(set(data.people.table.index))
            return super().learn(data, metric)

    data = build_report(Spy(METRIC).fit(X, y), X, y)
    for fold, learned in zip(data.cost.comparison.folds, seen[1:4], strict=True):
        assert learned == {f"row {k + 1}" for k in fold.train}
        assert not learned & {f"row {k + 1}" for k in fold.test}
    assert data.kind == ""
    assert "Everybody gets the same." in render(data)


def test_an_additive_model_brings_its_shapes_and_reasons():
    X, y = applicants(150)
    model = AdditiveClassifier(METRIC, penalty=0.01).fit(X, y)
    data = build_report(model, X, y, outcome="no")
    assert {panel.column for panel in data.panels} == {"income", "age", "region"}
    rows = model.reasons(X, n=3).drop(columns="outcome").iloc[0]
    assert [f"{reason} against the average person" for reason in data.reasons[0]] == [r for r in rows if r]
    page = render(data)
    assert page.count('<figure class="shape">') == 3
    assert data.reasons[0][0].split(":")[0] in page


@pytest.mark.parametrize("method", ["additive", "projection", "smoothing"])
def test_numbers_have_a_report_by_every_method(method):
    X, _ = applicants(120)
    y = 2.0 * X["income"] + 10 * X["age"]
    inner = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["region", "sex"]), remainder="passthrough"), Ridge()
    )
    model = {
        "additive": AdditiveRegressor(METRIC, penalty=0.01),
        "projection": ProjectedRegressor(inner, metric=METRIC, base=float(y.mean())),
        "smoothing": SmoothedRegressor(inner, metric=METRIC, n_draws=40, random_state=0),
    }[method].fit(X, y)
    data = build_report(model, X, y, outcome="wage")
    assert data.output_range == model.output_range_
    assert data.scan.n_above["after"] == 0
    assert {"rmse", "r2"} < set(data.cost.comparison.table)
    assert data.groups[0].after.rate is None
    page = render(data)
    assert "R2" in page
    assert "cut-off" not in page


def test_several_classes_have_a_report():
    X, _ = applicants(150)
    y = np.array(["low", "middle", "high"])[np.digitize(X["income"], [4000, 6000])]
    data = build_report(AdditiveClassifier(METRIC, penalty=0.01).fit(X, y), X, y, outcome="middle")
    assert data.shares["after"].shape == (50, 3)  # of the first of three folds
    assert data.scan.n_above["after"] == 0
    assert "The model knows 3 outcomes" in render(data)


def test_a_model_that_came_ready_made_is_said_to_know_the_people(smoothed):
    model, X, y = smoothed
    frozen = ProjectedClassifier(FrozenEstimator(model.estimator_), metric=METRIC, base=0.5).fit(X, y)
    data = build_report(frozen, X, y)
    assert data.cost.is_prefit
    assert "was given ready-made" in render(data)


def test_too_few_people_leave_the_cost_out():
    X, y = applicants(40)
    model = ShareClassifier(METRIC).fit(X, y)
    for few in (slice(1), np.flatnonzero(y == "no")):
        data = build_report(model, X.iloc[few], y[few])
        assert (data.cost, data.groups, data.before) == (None, (), None)
        render(data)


def test_people_of_a_long_table_keep_their_numbers_and_names():
    X, y = applicants(4000)
    model = ShareClassifier(METRIC).fit(X, y)
    data = build_report(model, X, y)
    held_out = data.cost.comparison.folds[0].test
    assert (len(data.people), data.n_population) == (len(held_out), 4000) == (1334, 4000)
    assert data.name(1333) == f"row {held_out[-1] + 1}"
    page = render(data)
    assert f"{1334 * 1333 // 2:,} pairs of 1,334 people were searched, out of 4,000 people" in page
    assert "Row 1 is the first person of the table." in page
    named = build_report(model, X[:30].set_axis([f"id {7 * i}" for i in range(30)]), y[:30])
    assert named.name(2) == f"id {7 * named.cost.comparison.folds[0].test[2]}"


def test_of_a_longer_table_people_whom_nobody_learned_from_are_searched(monkeypatch):
    monkeypatch.setattr(build, "_LEARNED", 60)
    monkeypatch.setattr(build, "_SEARCHED", 90)
    X, y = applicants(200)
    data = build_report(ShareClassifier(METRIC).fit(X, y), X, y)
    learned = np.unique(np.linspace(0, 199, 60).astype(int))
    assert len(data.people) == 90
    assert not set(data.people.table.index) & {f"row {k + 1}" for k in learned[data.cost.comparison.folds[0].train]}


def test_columns_that_must_not_matter_may_be_absent():
    X, y = applicants(120)
    blind = X.drop(columns="sex")
    model = AdditiveClassifier(METRIC, penalty=1e-3).fit(X, y)
    data, whole = build_report(model, blind, y, cv=2), build_report(model, X, y, cv=2)
    np.testing.assert_array_equal(data.after, whole.after)
    assert data.scan.n_above["after"] == 0
    assert data.cost is not None
    assert {group.column for group in data.groups} == {"region"}  # categories that are there
    assert {group.column for group in whole.groups} == {"sex"}
    assert "Not measured" not in render(data)
    with pytest.raises(ValueError, match="X must have the column 'age', which the model needs; it has "):
        build_report(model, X.drop(columns="age"), y)


def test_a_model_inside_that_was_trained_on_an_absent_column_is_not_trained_anew():
    X, y = applicants(120)
    encode = make_column_transformer((OneHotEncoder(), ["region", "sex"]), remainder="passthrough")
    inner = make_pipeline(encode, LogisticRegression(max_iter=5000))
    model = ProjectedClassifier(inner, metric=METRIC, random_state=0).fit(X, y)
    data = build_report(model, X.drop(columns="sex"), y)
    assert (data.cost, data.before, data.groups, data.missed) == (None, None, (), ("sex",))
    np.testing.assert_array_equal(data.after, model.predict_proba(X))
    assert data.scan.n_above["after"] == 0
    assert "The model inside was trained on sex as well, and this table does not have it" in render(data)


def test_a_designed_metric_is_shown_on_its_frontier():
    X, y = applicants(200)
    frontier = design_metric(X, y, protected=["sex"], n_points=3, cv=2)
    point = frontier.points[1]
    data = build_report(point.card, X, y, frontier=frontier)
    chart = prepare(data)["frontier"]
    assert chart["distance"] == pytest.approx(point.mean_distance, rel=0.2)  # of the people who were searched
    assert chart["chosen"] == pytest.approx(chart["dots"][1][0], abs=20)
    heights = [y for _, y, _, _ in chart["dots"]]
    assert np.argsort(heights).tolist() == np.argsort([-each.loss for each in frontier.points]).tolist()
    assert [row[0][:8] for row in chart["rows"][3:]] == [title[:8] for title in frontier.references]
    assert "How this distance was designed" in render(data)
    assert "How this distance was designed" not in render(replace(data, frontier=None))


def test_numbers_that_must_not_matter_are_groups_in_bands():
    metric = TableMetric({"income": 1e-4, "age": 0.0}, {"sex": 0.0}, units={"age": "years"})
    X, y = applicants(200)
    answers = np.stack([np.linspace(0, 1, 200), 1 - np.linspace(0, 1, 200)], axis=1)
    answers[::10] = np.nan  # not measured
    likely = np.where(np.isnan(answers), np.nan, answers > 0.5)
    found = groups_of(X, metric, y, {"before": None, "after": answers}, {"after": likely}, np.array(["no", "yes"]), 0)
    ages = [group for group in found if group.column == "age"]
    assert sum(group.n for group in ages) == 180
    assert min(group.n for group in ages) > 30
    assert ages[0].group.startswith("up to ")
    assert ages[-1].group.startswith("above ")
    assert found[0].column == "sex"  # categories first
    edge = int(ages[0].group.split()[2])
    young = (X["age"] <= edge).to_numpy() & ~np.isnan(answers[:, 0])
    assert ages[0].n == young.sum()
    assert ages[0].after.mean == pytest.approx(answers[young, 0].mean())
    assert ages[0].after.rate == pytest.approx((answers[young, 0] > 0.5).mean(), abs=0.02)


@pytest.mark.parametrize("most", [3, 200])
def test_missing_numbers_of_nullable_columns_are_a_group(most):
    metric = TableMetric({"income": 1e-4, "children": 0.0}, missing="category")
    X, y = applicants(200)
    X["children"] = pd.Series(np.arange(200) % most, index=X.index, dtype="Int64").mask(np.arange(200) % 5 == 0)
    answers = np.full((200, 2), 0.5)
    found = groups_of(X, metric, y, *2 * [{"before": None, "after": answers}], np.array(["no", "yes"]), 0)
    assert [group.n for group in found if group.group == "missing"] == [40]
    assert sum(group.n for group in found) == 200


def test_what_cannot_be_reported_is_refused_with_the_cure():
    X, y = applicants(30)
    model = ShareClassifier(METRIC).fit(X, y)
    with pytest.raises(ValueError, match="outcome must be one of no, yes; got 'maybe'"):
        build_report(model, X, y, outcome="maybe")
    with pytest.raises(ValueError, match="y must hold classes of the model, no, yes; got 'perhaps'"):
        build_report(model, X, np.full(30, "perhaps"))
    other = compare(X, y, METRIC, ["constant"], cv=2)
    with pytest.raises(
        ValueError, match="comparison must be of these 30 people, with a ShareClassifier among the methods"
    ):
        build_report(model, X, y, comparison=other)
    plain = ShareClassifier(WeightedLp([1.0])).fit(X[["age"]], y)
    with pytest.raises(TypeError, match="metric that takes tables"):
        build_report(plain, X[["age"]], y)


def near_pairs(table, metric, near):
    return np.nonzero(np.triu(metric.pairwise(table) <= near, 1))


def test_two_classes_show_a_soft_threshold_beside_the_plain_one():
    X, y = applicants(600)
    model = AdditiveClassifier(METRIC, penalty=1e-4).fit(X, y)
    data = build_report(model, X, y, outcome="no")
    h, (i, j) = model.predict_proba(data.people.table)[:, 0], near_pairs(data.people.table, METRIC, 0.02)
    t = np.median(h).round(2)
    chance = np.clip((h - t + 0.05) / 0.1, 0, 1)
    plain, soft = data.decisions.table.iloc[0], data.decisions.table.iloc[1]
    assert plain["near_different"] == pytest.approx(((h[i] > t) != (h[j] > t)).mean())
    assert soft["near_different"] > 0
    assert soft["near_different"] == pytest.approx(np.abs(chance[i] - chance[j]).mean())
    assert soft["guarantee"] == pytest.approx(float(model.guarantee_.bound(0.02)) / 0.1)
    assert data.decisions.n_near_pairs == len(i)
    page = render(data)
    assert f"from {100 * t - 5:.4g}% to {100 * t + 5:.4g}%, does not" in page
    assert "From scores to decisions" in page
    assert 'href="#decisions"' in page


def test_a_model_with_a_threshold_of_its_own_is_shown_with_that():
    X, y = applicants(120)
    card = AdditiveClassifier(METRIC.scaled(0.3), penalty=0.01).fit(X, y)
    model = ThresholdDecision.from_model(card, threshold=0.6, width=0.3, favourable="yes")
    data = build_report(model, X, y)
    soft, page = data.decisions.table.iloc[1], render(data)
    assert "A cut-off at 60% jumps" in page
    assert "from 45% to 75%, does not" in page
    assert soft["guarantee"] == pytest.approx(float(model.decision_bound(0.02)))
    assert soft["guarantee"] <= 0.02 * (1 + 1e-12)
    chance, (i, j) = model.predict_proba(data.people.table)[:, 1], near_pairs(data.people.table, METRIC, 0.02)
    assert soft["near_different"] == pytest.approx(np.abs(chance[i] - chance[j]).mean())


def test_several_classes_and_numbers_have_no_threshold():
    X, _ = applicants(60)
    several = build_report(AdditiveClassifier(METRIC, penalty=0.01).fit(X, X["age"] // 20), X, X["age"] // 20)
    assert several.decisions is None
    assert "From scores to decisions" not in render(several)


@pytest.mark.parametrize("seed", [0, 2])
def test_on_pure_noise_a_report_measures_as_compare_does(seed):
    """Penalties chosen with the people held out made a model of noise better than a constant."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(200, 12)), columns=[f"x{i}" for i in range(12)])
    y = rng.integers(0, 2, 200)
    metric = TableMetric(dict.fromkeys(X, 0.3))
    model = AdditiveClassifier(metric).fit(X, y)
    found = build.cost_of(model, X, y)
    honest = compare(X, y, metric, methods=["additive"], cv=3).table["brier"]
    brier = found.comparison.table.loc[found.method, "brier"]
    assert brier == pytest.approx(honest["additive"])
    assert brier > honest["constant"]
    fixed = AdditiveClassifier(metric, penalty=model.penalty_).fit(X, y)  # as a designed card has them
    assert build.cost_of(fixed, X, y).comparison.table.loc[found.method, "brier"] == brier
    chosen = compare(X, y, metric, methods=[("own", fixed)], cv=3).table["brier"]
    assert chosen["own"] < honest["constant"]  # the control: what the people held out had chosen


@pytest.mark.parametrize(
    ("classes", "shown"),
    [
        (["approved", "denied", "referred"], "approved"),  # the favourable one of three
        (["denied", "granted"], "granted"),
        (["approved", "granted", "refused"], "refused"),  # of two good words nobody knows which is shown
        (["high", "low", "middle"], "middle"),
    ],
)
def test_the_outcome_is_the_favourable_one_if_just_one_is_known(classes, shown):
    assert shown_outcome(None, np.array(classes), None) == (classes.index(shown), shown)
