"""From a fitted model to the data of a report: what was measured, on whom, with the model's own promise."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from likewise import SmoothedClassifier, TableMetric, WeightedLp, audit
from likewise.enforce.base import EnforcedClassifier, Scorer
from likewise.guarantees.certificate import Estimate
from likewise.guarantees.curves import Curve
from likewise.guarantees.promise import Guarantee
from likewise.report import render
from likewise.report.build import build_report

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
class ShareScorer(Scorer):
    share: np.ndarray

    def estimate(self, people, *, verbose=False):
        mean = np.tile(self.share, (len(people), 1))
        return Estimate(mean, mean, mean, np.zeros(len(people), dtype=np.int64))

    def visible(self, people):
        return people.rows[:, :0]


class ShareClassifier(EnforcedClassifier):
    """The shares of the classes for everybody: a model with no other inside."""

    def __init__(self, metric=None, seen=None):
        self.metric, self.seen = metric, seen

    def learn(self, people, y, weights, metric):
        if self.seen is not None:
            self.seen.append(set(people.table.index))
        share = np.array([(y == label).mean() for label in self.classes_])
        return ShareScorer(Guarantee(metric, Curve(), "exact", "Everybody gets the same."), share)


@pytest.fixture(scope="module")
def smoothed():
    X, y = applicants(160)
    inner = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["region", "sex"]), remainder="passthrough"),
        LogisticRegression(max_iter=5000),
    )
    model = SmoothedClassifier(inner, metric=METRIC, vote="soft", n_draws=40, random_state=0).fit(X[:80], y[:80])
    return model, X[80:], y[80:]


def test_the_report_holds_the_objects_of_the_model(smoothed):
    model, X, y = smoothed
    data = build_report(model, X, y, outcome="no", revealed=METRIC.scaled(2), title="Loans")
    assert data.guarantee is model.guarantee_
    assert (data.metric, data.revealed) == (METRIC, METRIC.scaled(2))
    assert (data.title, data.outcome, data.n_population, data.n_outcomes) == ("Loans", "no", 80, 2)
    np.testing.assert_array_equal(data.after, model.predict_proba(X)[:, 0])
    np.testing.assert_allclose(data.before, model.estimator_.predict_proba(X)[:, 0], rtol=1e-12)
    assert data.name(0) == "Person 1"


def test_audits_before_and_after_leave_room_for_the_error_of_the_promise(smoothed):
    model, X, y = smoothed
    data = build_report(model, X, y)
    expected = audit(model.estimator_, X, METRIC, tolerance=model.guarantee_.epsilon)
    assert model.guarantee_.epsilon > 0
    assert data.audit_before.n_violations == expected.n_violations > 0
    assert data.audit_after.n_violations == 0


def test_the_cost_is_measured_on_the_same_inner_model(smoothed):
    model, X, y = smoothed
    utility = build_report(model, X, y).utility
    assert [point.factor for point in utility.points] == [0.25, 0.5, 1, 2, 4]
    chosen = utility.points[2]
    assert chosen.accuracy == model.score(X, y)
    assert utility.before.accuracy == model.estimator_.score(X, y)
    # A looser metric needs less noise, and no model beats the ceiling.
    assert utility.points[0].confidence < chosen.confidence < utility.points[-1].confidence < utility.before.confidence
    assert all(point.confidence < point.ceiling for point in utility.points)


def test_groups_are_of_the_columns_that_must_not_matter(smoothed):
    model, X, y = smoothed
    groups = build_report(model, X, y).groups
    assert [(group.column, group.group) for group in groups] == [("sex", "female"), ("sex", "male")]
    men = (X["sex"] == "male").to_numpy()
    assert groups[1].n == men.sum()
    assert groups[1].after[0] == pytest.approx(model.score(X[men], y[men]))
    assert groups[1].before[1] == pytest.approx(model.estimator_.predict_proba(X[men])[:, 1].mean())


def test_a_model_with_no_other_inside_has_no_before():
    X, y = applicants(60)
    data = build_report(ShareClassifier(METRIC).fit(X, y), X, y)
    assert (data.before, data.audit_before, data.utility.before) == (None, None, None)
    assert all(group.before is None for group in data.groups)
    assert "Everybody gets the same." in render(data)


def test_who_is_measured_is_not_among_those_trained_on_anew():
    X, y = applicants(61)
    seen = []
    model = ShareClassifier(METRIC, seen).fit(X, y)
    # clone copies a list, so that the sets of the refitted models arrive only if it is shared.
    model.with_metric = lambda metric: ShareClassifier(metric, seen)
    utility = build_report(model, X, y).utility
    assert seen[1:] == [set(range(1, 62, 2))] * 5
    others = y[1::2]
    share = (y[::2] == "yes").mean()
    assert utility.points[0].accuracy == (others == ("yes" if share > 0.5 else "no")).mean()
    assert "30 people" in utility.measured_on
    assert "31 others" in utility.measured_on


def test_too_few_people_leave_the_cost_out(smoothed):
    X, y = applicants(40)
    model = ShareClassifier(METRIC).fit(X, y)
    for one in (model, smoothed[0]):
        assert build_report(one, X[:1], y[:1]).utility is None
    assert build_report(model, X[y == "no"], y[y == "no"]).utility is None


def test_people_of_a_long_table_keep_their_numbers():
    X, y = applicants(4000)
    data = build_report(ShareClassifier(METRIC).fit(X, y), X, y)
    assert (len(data.people), data.n_population) == (3000, 4000)
    assert data.name(2999) == "Person 4000"


def test_what_cannot_be_reported_is_refused_with_the_cure():
    X, y = applicants(30)
    model = ShareClassifier(METRIC).fit(X, y)
    with pytest.raises(ValueError, match="outcome must be one of no, yes; got 'maybe'"):
        build_report(model, X, y, outcome="maybe")
    with pytest.raises(ValueError, match="y must hold classes of the model, no, yes; got 'perhaps'"):
        build_report(model, X, np.full(30, "perhaps"))
    plain = ShareClassifier(WeightedLp([1.0])).fit(X[["age"]], y)
    with pytest.raises(TypeError, match="metric that takes tables"):
        build_report(plain, X[["age"]], y)
