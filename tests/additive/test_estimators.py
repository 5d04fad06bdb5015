"""The estimators through their public interface."""

import re
import signal

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, ndtr
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from contract import run_check
from likewise import AdditiveClassifier, AdditiveRegressor, TableMetric, WeightedLp


@pytest.mark.filterwarnings("ignore::likewise.VacuousGuaranteeWarning")
@parametrize_with_checks([AdditiveRegressor(max_knots=8), AdditiveClassifier(penalty=0.01, link="probit")])
def test_scikit_learn_contract(estimator, check):
    run_check(estimator, check)


@pytest.mark.slow
@parametrize_with_checks([AdditiveClassifier(max_knots=8)])
def test_scikit_learn_contract_where_the_penalty_is_chosen(estimator, check):
    run_check(estimator, check)


def additive_people(n, seed=0):
    """People with log-odds 2 sin(x0) - x1 that lie within the metric below; x2 matters in truth and may not."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-3, 3, n), rng.uniform(-2, 2, n), rng.normal(size=n)])
    return X, (rng.random(n) < expit(2 * np.sin(X[:, 0]) - X[:, 1])).astype(int)


METRIC = WeightedLp([0.55, 0.27, 0.0])


@pytest.fixture(scope="module")
def data():
    return additive_people(2000)


@pytest.fixture(scope="module")
def model(data):
    return AdditiveClassifier(METRIC, penalty=1e-4).fit(*data)


def test_shapes_of_an_additive_truth_are_recovered():
    """With 40,000 people the mean error of each shape is below 0.06 log-odds, where shapes range over 4."""
    model = AdditiveClassifier(METRIC).fit(*additive_people(40_000))
    grid = np.linspace(-1.9, 1.9, 100)
    rows = np.column_stack([grid, np.zeros(100), np.zeros(100)])
    table = model.explain(rows)
    truth = 2 * np.sin(grid)
    assert np.abs(table["feature 0"] - truth - (table["feature 0"] - truth).mean()).mean() < 0.06
    lines = model.explain(np.column_stack([np.zeros(100), grid, np.zeros(100)]))["feature 1"]
    assert np.abs(lines + grid - (lines + grid).mean()).mean() < 0.06


def test_control_a_metric_that_forbids_the_truth_is_obeyed(data):
    model = AdditiveClassifier(WeightedLp([0.05, 0.27, 0.0]), penalty=1e-4).fit(*data)
    card = model.scorecard()
    assert card[card["column"] == "feature 0"]["binds"].any()


def test_the_promise_is_exact_and_says_why(model):
    promise = model.guarantee_
    assert (promise.level, promise.epsilon, promise.delta, promise.n_draws) == ("exact", 0, 0, 0)
    assert promise.bound(0.3) == pytest.approx(np.tanh(0.3))
    assert "It holds by construction" in promise.statement
    assert "log-odds that move by at most 4 D" in promise.statement


@pytest.mark.parametrize(
    ("link", "curve"), [("probit", lambda d: 2 * ndtr(np.sqrt(np.pi / 2) * d) - 1), ("clip", lambda d: d)]
)
def test_other_links_have_their_own_curves(data, link, curve):
    model = AdditiveClassifier(METRIC, penalty=1e-4, link=link).fit(*data)
    assert model.guarantee_.bound(0.3) == pytest.approx(curve(0.3))
    X, y = data
    h = model.predict_proba(X)
    assert log_loss(y, np.clip(h[:, 1], 1e-3, 1 - 1e-3)) < 0.56
    assert (
        np.abs(h[:1000] - h[1000:]).sum(axis=1) / 2 <= model.guarantee_.bound(METRIC(X[:1000], X[1000:])) + 1e-12
    ).all()


def test_certificates_use_the_log_odds(model, data):
    X = data[0][:50]
    certificate, scores = model.certify(X), model.explain(X)["log-odds"].to_numpy()
    np.testing.assert_allclose(certificate.distance, np.abs(scores) / 4, rtol=1e-9)
    low, high = certificate.range_at(0.1)
    np.testing.assert_allclose(high[:, 1], expit(scores + 0.4), rtol=1e-9)
    np.testing.assert_allclose(low[:, 1], expit(scores - 0.4), rtol=1e-9)
    np.testing.assert_array_equal(certificate.lower, certificate.upper)


def test_certificates_of_sure_people_are_finite():
    X = np.array([[0.0], [0.0], [100.0], [100.0]])
    model = AdditiveClassifier(WeightedLp([10.0]), penalty=1e-12).fit(X, [0, 0, 1, 1])
    assert np.isfinite(model.certify(X).distance).all()


def test_the_same_bits_in_any_fit(data):
    fits = [AdditiveClassifier(METRIC, n_jobs=n).fit(*data) for n in (1, 2)]
    assert fits[0].predict_proba(data[0]).tobytes() == fits[1].predict_proba(data[0]).tobytes()
    assert fits[0].penalty_ == fits[1].penalty_


def table(data):
    X, y = data
    region = np.where(X[:, 2] > 0, "north", "south")
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "region": region, "race": region}), y


TABLE_METRIC = TableMetric({"a": 0.5, "b": 0.3}, {"region": 0.1, "race": 0.0}, missing={"a": 0.3})


def test_unseen_categories_and_missing_numbers_lie_between_what_was_seen(data):
    X, y = table(data)
    X.loc[::9, "a"] = np.nan
    model = AdditiveClassifier(TABLE_METRIC, penalty=1e-3).fit(X, y)
    odd = model.explain(X.head(2).assign(region=["abroad", None], a=np.nan))
    levels = model.explain(X)["region"]
    assert odd["region"].between(levels.min(), levels.max()).all()
    assert np.ptp(model.explain(X)["a"]) <= 2 * 4 * 0.3
    assert (model.explain(X)["a"] - odd["a"].iloc[0]).abs().max() <= 4 * 0.3


def test_ordered_categories_are_counted():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, 1000)
    names = ["none", "primary", "secondary", "university"]
    X = pd.DataFrame({"school": pd.Categorical.from_codes(codes, names, ordered=True)})
    y = rng.random(1000) < expit(codes - 1.5)
    model = AdditiveClassifier(TableMetric({"school": 0.1}), monotone={"school": 1}, penalty=1e-6).fit(X, y)
    points = model.explain(X)["school"].groupby(codes).first().to_numpy()
    np.testing.assert_allclose(np.diff(points), 0.4, atol=1e-6)  # the truth is 1 per step; the metric allows 0.4


def test_a_teacher_is_copied_as_closely_as_the_metric_allows(data):
    X, y = data
    teacher = HistGradientBoostingClassifier(random_state=0).fit(X, y)
    model = AdditiveClassifier(METRIC, penalty=1e-9, teacher=teacher).fit(X, y)
    from_labels = AdditiveClassifier(METRIC, penalty=1e-9).fit(X, y)
    taught = teacher.predict_proba(X)[:, 1]

    def far(other):
        return -np.mean(taught * np.log(other) + (1 - taught) * np.log(1 - other))

    assert far(model.predict_proba(X)[:, 1]) < far(from_labels.predict_proba(X)[:, 1])
    function = AdditiveClassifier(METRIC, penalty=1e-9, teacher=lambda rows: teacher.predict_proba(rows)[:, 1]).fit(
        X, y
    )
    np.testing.assert_allclose(function.predict_proba(X), model.predict_proba(X), atol=1e-6)


def test_a_teacher_within_the_metric_is_met(data):
    """A logistic model with smaller slopes than the metric allows is itself the closest scorecard."""
    X, y = data
    teacher = LogisticRegression(C=0.01).fit(X[:, :2], y)
    model = AdditiveClassifier(METRIC, penalty=1e-9, teacher=lambda rows: teacher.predict_proba(rows[:, :2])).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), teacher.predict_proba(X[:, :2]), atol=1e-4)
    numbers = LinearRegression().fit(X[:, :2], X[:, 0] / 10)
    copy = AdditiveRegressor(
        METRIC, penalty=1e-9, teacher=lambda rows: numbers.predict(rows[:, :2]), output_range=(-1, 1)
    )
    np.testing.assert_allclose(copy.fit(X, y).predict(X), numbers.predict(X[:, :2]), atol=1e-6)


@pytest.mark.parametrize("p", [1.5, 2, np.inf])
def test_other_exponents_are_refused(data, p):
    with pytest.raises(ValueError, match=rf"metric must have p = 1 for an additive model, .* p = {p:g}"):
        AdditiveClassifier(WeightedLp([0.7, 0.4, 0.0], p)).fit(*data)


def test_wide_tables_are_fitted_block_after_block(monkeypatch):
    monkeypatch.setattr("likewise.additive.solver._MOST_VARIABLES", 100)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 20))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    model = AdditiveClassifier(WeightedLp(np.full(20, 0.05)), penalty=1e-2, max_knots=12).fit(X, y)
    assert model.score(X, y) > 0.8


def test_regression_is_cut_to_its_range(data):
    X, _ = data
    model = AdditiveRegressor(METRIC, penalty=1e-5, output_range=(-0.5, 0.5)).fit(X, X[:, 0])
    predictions = model.predict(X)
    assert (predictions.min(), predictions.max()) == (-0.5, 0.5)
    gap = np.abs(predictions[:1000] - predictions[1000:])
    assert (gap <= model.guarantee_.bound(METRIC(X[:1000], X[1000:])) + 1e-12).all()


def test_huge_and_tiny_units_change_nothing(data):
    X, y = data
    expected = AdditiveClassifier(METRIC, penalty=1e-3).fit(X, y).predict_proba(X)
    for factor in (2.0**-300, 2.0**300):
        other = AdditiveClassifier(WeightedLp(METRIC.weights / factor), penalty=1e-3).fit(X * factor, y)
        np.testing.assert_allclose(other.predict_proba(X * factor), expected, atol=1e-9)


BAD = [
    ({"metric": WeightedLp([0.0, 0.0, 0.0])}, "metric must have a positive weight"),
    ({"monotone": {"height": 1}}, "monotone must name columns of X"),
    ({"monotone": {"feature 0": 2}}, r"monotone must be -1 \(falling\) or \+1"),
    ({"link": "cauchit"}, "link must be 'logistic', 'probit' or 'clip'; got 'cauchit'"),
    (
        {"penalty": -1},
        "penalty must be 'auto' or a mapping from column to a positive finite number or a positive finite number",
    ),
    (
        {"penalty": "none"},
        "penalty must be 'auto' or a mapping from column to a positive finite number or a positive finite number",
    ),
    ({"max_knots": 1}, "max_knots must be a whole number >= 2"),
    ({"teacher": lambda rows: np.full(len(rows), 2.0)}, "teacher must give probabilities"),
    ({"teacher": lambda rows: np.full((len(rows), 3), 0.5)}, "one probability per class"),
    ({"teacher": lambda rows: np.full(len(rows), np.nan)}, "teacher must give finite scores"),
]


@pytest.mark.parametrize(("wrong", "message"), BAD, ids=range(len(BAD)))
def test_bad_input_has_one_clear_error(data, wrong, message):
    model = AdditiveClassifier(**{"metric": METRIC, "penalty": 1e-3} | wrong)
    with pytest.raises(ValueError, match=message):
        model.fit(*data)
    assert not hasattr(model, "scorer_")


def test_other_bad_input(data):
    X, y = data
    model = AdditiveClassifier(METRIC, penalty=1e-3)
    with pytest.raises(ValueError, match="sample_weight must be non-negative"):
        model.fit(X, y, sample_weight=np.where(y, -1, 1))
    with pytest.raises(ValueError, match="sample_weight must be positive for at least one row per class"):
        model.fit(X, y, sample_weight=y)
    with pytest.raises(ValueError, match="y must hold at least two classes"):
        model.fit(X, np.zeros(len(X)))
    with pytest.raises(TypeError, match="teacher must have predict_proba, or be a function of rows; got LinearSVC"):
        clone(model).set_params(teacher=LinearSVC().fit(X, y)).fit(X, y)
    with pytest.raises(TypeError, match="monotone must be a mapping"):
        clone(model).set_params(monotone=["a"]).fit(X, y)
    with pytest.raises(ValueError, match="monotone must be None for more than two classes"):
        clone(model).set_params(monotone={"feature 0": 1}).fit(X, y + (X[:, 1] > 1))
    with pytest.raises(ValueError, match="link must be 'logistic' for more than two classes"):
        clone(model).set_params(link="probit").fit(X, y + (X[:, 1] > 1))
    frame, _ = table(data)
    with pytest.raises(ValueError, match="the categories of 'region' have no order"):
        AdditiveClassifier(TABLE_METRIC, monotone={"region": 1}).fit(frame, y)


@pytest.fixture
def deadline():
    """End a fit that does not end by itself."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def stop(*_):
        raise TimeoutError("The fit did not end.")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("missing", [1e-3, 1e-6, 1e-13])
@pytest.mark.parametrize("offset", [2005.0, 1e9])
@pytest.mark.parametrize("seed", [30, 36])
def test_a_fit_with_blanks_ends_within_the_metric(deadline, missing, offset, seed):
    """Years from 1990 to 2020: beside an intercept of 2005 the grid is coarse, and a level may be rounded outwards."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(50, 10, 300).round(), "b": rng.normal(size=300)})
    X.loc[rng.random(300) < 0.03, "a"] = np.nan
    years = (offset + np.clip(0.6 * (X["a"].fillna(50) - 50) + rng.normal(0, 3, 300), -15, 15)).round()
    metric = TableMetric({"a": 0.02, "b": 0.01}, missing={"a": missing})
    regressor = AdditiveRegressor(metric, penalty=1e-3, output_range=(offset - 15, offset + 15)).fit(X, years)
    classifier = AdditiveClassifier(metric, penalty=1e-3).fit(X, years > offset)
    for model in (regressor, classifier):
        scorer = model.scorer_
        assert scorer.model.used(scorer.unit).max() <= 1
        known, blank = model.scorer_.model.shapes[0].values, model.scorer_.model.shapes[0].other
        assert np.abs(known - blank).max() <= scorer.unit * missing


def test_the_promise_says_how_much_of_the_metric_is_used():
    X = np.linspace(0, 1, 60)[:, None]
    steep = AdditiveRegressor(WeightedLp([0.5]), penalty=1e-6).fit(X, 10 * X[:, 0])
    assert "these use all of the slope the metric allows" in steep.guarantee_.statement
    flat = AdditiveRegressor(WeightedLp([2.0]), penalty=1e-6, output_range=(0, 10)).fit(X, 10 * X[:, 0])
    used = flat.scorer_.model.used(flat.scorer_.unit)[0]
    share = float(re.search(r"these use ([\d.]+)% of the slope the metric allows", flat.guarantee_.statement)[1])
    assert used <= share / 100 < used + 0.001  # never less than what is used
