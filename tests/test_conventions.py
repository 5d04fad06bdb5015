"""Every estimator is a good citizen of scikit-learn: routing, weights, parameters, tags, representations."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import likewise
from likewise import (
    AdditiveClassifier,
    AdditiveRegressor,
    FunctionMetric,
    LikewiseError,
    LipschitzClassifier,
    LipschitzRegressor,
    ProjectedClassifier,
    ProjectedRegressor,
    RecalibratedClassifier,
    SmoothedClassifier,
    SmoothedRegressor,
    TableMetric,
    ThresholdDecision,
    WeightedLp,
)
from likewise._parallel import n_threads
from likewise.dummy import ConstantClassifier, ConstantRegressor

METRIC = WeightedLp([0.4, 0.2])
RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 2))
Y = (X[:, 0] + 0.5 * RNG.normal(size=80) > 0).astype(int)
WEIGHTS = RNG.integers(1, 4, 80).astype(float)

ESTIMATORS = [
    AdditiveClassifier(METRIC),
    AdditiveRegressor(METRIC),
    LipschitzClassifier(METRIC),
    LipschitzRegressor(METRIC),
    ProjectedClassifier(LogisticRegression(), metric=METRIC),
    ProjectedRegressor(Ridge(), metric=METRIC),
    SmoothedClassifier(LogisticRegression(), metric=METRIC),
    SmoothedRegressor(Ridge(), metric=METRIC),
    RecalibratedClassifier(AdditiveClassifier(METRIC)),
    ThresholdDecision(AdditiveClassifier(METRIC)),
    ConstantClassifier(METRIC),
    ConstantRegressor(METRIC),
]
EACH = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)

# Parameters with errors of their own: they depend on one another, or on the people.
CHECKED_ELSEWHERE = {"estimator", "base", "teacher", "monotone", "threshold", "favourable"}


def test_every_public_estimator_is_here():
    public = {value for name in likewise.__all__ if inspect.isclass(value := getattr(likewise, name))}
    assert {kind for kind in public if issubclass(kind, BaseEstimator)} <= {type(one) for one in ESTIMATORS}


# -- weights and routing -------------------------------------------------------------------------------------------


@EACH
def test_weights_can_be_asked_for(estimator):
    assert "sample_weight" in inspect.signature(estimator.fit).parameters
    with config_context(enable_metadata_routing=True):
        asked = clone(estimator).set_fit_request(sample_weight=True).get_metadata_routing()
        assert "sample_weight" in asked.consumes("fit", ["sample_weight"])


@pytest.mark.parametrize("kind", [SmoothedClassifier, ProjectedClassifier])
def test_weights_reach_the_inner_model(kind):
    inner = KeepsWeights()
    kind(inner, metric=METRIC, random_state=0).fit(X, Y, sample_weight=WEIGHTS)
    assert KeepsWeights.seen is not None
    assert set(np.unique(KeepsWeights.seen)) <= set(np.unique(WEIGHTS))


class KeepsWeights(LogisticRegression):
    seen = None

    def fit(self, X, y, sample_weight=None):
        KeepsWeights.seen = sample_weight
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("kind", [SmoothedClassifier, ProjectedClassifier])
def test_an_inner_model_without_weights_is_refused_only_if_there_are_some(kind):
    model = kind(KNeighborsClassifier(), metric=METRIC, random_state=0)
    assert model.fit(X, Y).predict_proba(X).shape == (80, 2)
    with pytest.raises(TypeError, match="sample_weight needs an estimator whose fit takes it"):
        model.fit(X, Y, sample_weight=WEIGHTS)


@pytest.mark.parametrize("kind", [SmoothedClassifier, ProjectedClassifier, RecalibratedClassifier])
def test_with_routing_the_inner_model_says_whether_it_takes_weights(kind):
    inner = AdditiveClassifier(METRIC, penalty=0.01) if kind is RecalibratedClassifier else KeepsWeights()
    options = {} if kind is RecalibratedClassifier else {"metric": METRIC}
    with config_context(enable_metadata_routing=True):
        silent = kind(inner, random_state=0, **options).set_fit_request(sample_weight=True)
        with pytest.raises(UnsetMetadataPassedError):
            silent.fit(X, Y, sample_weight=WEIGHTS)
        for wanted in (True, False):
            KeepsWeights.seen = None
            asked = clone(inner).set_fit_request(sample_weight=wanted)
            model = kind(asked, random_state=0, **options).fit(X, Y, sample_weight=WEIGHTS)
            assert model.predict_proba(X).shape == (80, 2)
            if kind is not RecalibratedClassifier:
                assert (KeepsWeights.seen is not None) == wanted


def test_weights_go_through_a_pipeline_and_a_grid_search():
    """The judged line: routing from a search to the model in a wrapper in a pipeline."""
    with config_context(enable_metadata_routing=True):
        inner = KeepsWeights().set_fit_request(sample_weight=True)
        smoothed = SmoothedClassifier(inner, metric=METRIC, n_draws=50, random_state=0)
        smoothed.set_fit_request(sample_weight=True)
        score = get_scorer("neg_brier_score").set_score_request(sample_weight=False)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), smoothed)
        grid = {"smoothedclassifier__metric__p": [1, 2], "smoothedclassifier__estimator__C": [0.1, 1.0]}
        KeepsWeights.seen = None
        search = GridSearchCV(pipeline, grid, cv=2, scoring=score).fit(X, Y, sample_weight=WEIGHTS)
        np.testing.assert_array_equal(KeepsWeights.seen, WEIGHTS)  # the last fit is on everybody
    best = search.best_estimator_[-1]
    assert best.guarantee_.metric.p == search.best_params_["smoothedclassifier__metric__p"]
    assert METRIC.p == 1  # what was given has not changed


# -- parameters ----------------------------------------------------------------------------------------------------


@EACH
def test_every_parameter_has_a_rule(estimator):
    assert set(estimator.get_params(deep=False)) - CHECKED_ELSEWHERE == set(estimator.rules)


@EACH
def test_a_parameter_that_breaks_its_rule_is_named(estimator):
    for name in estimator.rules:
        with pytest.raises(LikewiseError, match=rf"^{name} must be .*; got <object"):
            clone(estimator).set_params(**{name: object()}).fit(X, Y)
        with pytest.raises(LikewiseError, match=f"^{name} must be .*; got 'nonsense'"):
            clone(estimator).set_params(**{name: "nonsense"}).fit(X, Y)


@pytest.mark.parametrize("n_jobs", [-1, -2, 1, 2, None])
def test_every_number_of_threads_gives_the_same(n_jobs):
    model = AdditiveClassifier(METRIC, penalty=0.01, n_jobs=n_jobs).fit(X, Y)
    np.testing.assert_array_equal(
        model.predict_proba(X), AdditiveClassifier(METRIC, penalty=0.01).fit(X, Y).predict_proba(X)
    )


def test_negative_numbers_of_threads_count_from_above():
    assert n_threads(-1) == n_threads(None)
    assert n_threads(-2) == max(1, n_threads(None) - 1)
    assert n_threads(-1000) == 1
    assert n_threads(3) == 3


# -- metrics as parameters -----------------------------------------------------------------------------------------

TABLE = TableMetric({"age": 0.01, "pay": 0}, {"race": 0, "job": 0.2}, missing={"age": 0.1}, units={"age": "years"})


@pytest.mark.parametrize("metric", [METRIC, TABLE, FunctionMetric(np.subtract, scale=2.0)])
def test_a_metric_is_its_parameters_and_its_own_clone(metric):
    assert type(metric)(**metric.get_params()) == metric
    assert clone(metric) is metric
    assert metric.with_params() == metric
    with pytest.raises(ValueError, match="has no parameter 'q'"):
        metric.with_params(q=3)


def test_a_changed_metric_is_another_one():
    model = AdditiveClassifier(METRIC)
    other = clone(model).set_params(metric__p=2)
    assert (model.metric.p, other.metric.p, METRIC.p) == (1, 2, 1)
    assert other.get_params()["metric__p"] == 2
    changed = model.set_params(metric=TABLE, metric__units={"age": "years"}).metric
    assert changed.units == {"age": "years"}
    with pytest.raises(ValueError, match="metric__p needs a metric"):
        AdditiveClassifier().set_params(metric__p=2)
    inner = RecalibratedClassifier(AdditiveClassifier(METRIC)).set_params(estimator__metric__p=2)
    assert inner.metric.p == 2


def test_scaled_metrics_can_be_searched():
    search = GridSearchCV(
        AdditiveClassifier(METRIC, penalty=0.01), {"metric": [METRIC.scaled(s) for s in (0.01, 1.0)]}, cv=2
    )
    assert search.fit(X, Y).best_params_["metric"] == METRIC.scaled(1.0)


# -- tags ----------------------------------------------------------------------------------------------------------


def test_tags_tell_what_a_metric_takes():
    numbers = get_tags(AdditiveClassifier(METRIC)).input_tags
    assert (numbers.two_d_array, numbers.allow_nan, numbers.categorical, numbers.string) == (True, False, False, False)
    tables = get_tags(AdditiveClassifier(TABLE)).input_tags
    assert (tables.two_d_array, tables.allow_nan, tables.categorical, tables.string) == (False, True, True, True)
    strict = get_tags(RecalibratedClassifier(AdditiveClassifier(TableMetric({"age": 0.1})))).input_tags
    assert (strict.two_d_array, strict.allow_nan, strict.categorical) == (False, False, False)


def test_tags_of_classes():
    assert get_tags(RecalibratedClassifier(AdditiveClassifier(), method="sigmoid")).classifier_tags.multi_class
    assert not get_tags(RecalibratedClassifier(AdditiveClassifier())).classifier_tags.multi_class


# -- representations -----------------------------------------------------------------------------------------------


@EACH
def test_representations_are_short_and_warn_of_nothing(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "<" in estimator._repr_html_()
    assert len(repr(estimator)) < 300


def test_what_was_fitted_has_a_short_representation():
    model = AdditiveClassifier(METRIC, penalty=0.01).fit(X, Y)
    for one in (model.scorer_, model.guarantee_, likewise.audit(model, X, METRIC), METRIC, TABLE):
        assert len(repr(one)) < 200
    wide = TableMetric({f"column {i}": 0.01 for i in range(50)})
    assert "... 41 more ..." in repr(wide)
    assert len(repr(wide)) < 300


# -- columns -------------------------------------------------------------------------------------------------------

PEOPLE = pd.DataFrame({"age": [30.0, 40, 50, 60], "race": list("xyxy"), "job": list("abab"), "pay": [1.0, 2, 3, 4]})


def test_columns_that_must_not_matter_may_be_absent_everywhere():
    y, few = [0, 1, 0, 1], PEOPLE[["age", "job"]]
    model = AdditiveClassifier(TABLE, penalty=0.01).fit(PEOPLE, y)
    assert model.required_features_ == ["age", "job"]
    np.testing.assert_array_equal(model.predict_proba(few), model.predict_proba(PEOPLE))
    blind = AdditiveClassifier(TABLE, penalty=0.01).fit(few, y)  # in fit, too, and then there they are
    np.testing.assert_array_equal(blind.predict_proba(PEOPLE), blind.predict_proba(few))
    np.testing.assert_array_equal(TABLE.pairwise(few), TABLE.pairwise(PEOPLE))
    assert likewise.audit(model, few, TABLE).n_violations == likewise.audit(model, PEOPLE, TABLE).n_violations
    with pytest.raises(ValueError, match="must have the column 'job'"):
        model.predict_proba(PEOPLE[["age", "race"]])


@pytest.mark.parametrize(
    "days",
    [
        pd.period_range("2020-01", periods=4, freq="M"),
        pd.Series(pd.period_range("2020-01", periods=4, freq="M")).astype(object),
        pd.Series(pd.date_range("2020-01-01", periods=4)).dt.date,
    ],
    ids=["periods", "periods as objects", "dates as objects"],
)
@pytest.mark.parametrize("metric", [TableMetric({"day": 0.1}), TableMetric({}, {"day": 0.1})])
def test_dates_and_periods_are_refused_with_advice(days, metric):
    with pytest.raises(ValueError, match=r"'day' holds dates or times\. Turn it into"):
        AdditiveClassifier(metric).fit(pd.DataFrame({"day": days}), [0, 1, 0, 1])


def test_periods_among_numbers_are_refused_with_advice():
    people = pd.DataFrame({"a": [1.0, 2, 3, 4], "day": pd.period_range("2020-01", periods=4, freq="M")})
    with pytest.raises(LikewiseError, match="X must hold numbers only"):
        AdditiveClassifier(METRIC).fit(people, [0, 1, 0, 1])


@pytest.mark.parametrize("metric", [TABLE, METRIC])
def test_a_batch_of_a_table_is_refused_with_advice(metric):
    import pyarrow

    table = PEOPLE if metric is TABLE else PEOPLE[["age", "pay"]]
    (batch,) = pyarrow.Table.from_pandas(table).to_batches()
    with pytest.raises(TypeError, match=r"got a RecordBatch. Use pyarrow.Table.from_batches\(\[X\]\)"):
        AdditiveClassifier(metric, penalty=0.01).fit(batch, [0, 1, 0, 1])
    model = AdditiveClassifier(metric, penalty=0.01).fit(table, [0, 1, 0, 1])
    with pytest.raises(TypeError, match="RecordBatch"):
        model.predict_proba(batch)
