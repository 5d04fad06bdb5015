"""Additive models are read exactly: splines, bins and cards, against all people of small grids."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    SplineTransformer,
    StandardScaler,
)

from likewise import (
    AdditiveClassifier,
    AdditiveRegressor,
    Domain,
    TableMetric,
    WeightedLp,
    audit,
    find_jumps,
    minimal_metric,
)
from likewise.exceptions import InvalidInputError, UnprovableError
from likewise.reveal import additive as exact
from likewise.reveal.additive import ScoreSet, exact_weights
from likewise.verification.domain import CategoricalDomain, NumericDomain

pytestmark = pytest.mark.filterwarnings("ignore:Found unknown categories", "ignore:Bins whose width")
DOMAIN = (
    Domain.learn(pd.DataFrame({"age": [20, 60], "income": [0, 5], "region": ["north", "south"]}))
    .with_column("age", step=4)
    .with_column("income", step=0.5, blank=True)
    .with_column("region", values=("east", "north", "south"))
)


def people(seed, n=300):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(5, 16, n) * 4.0,
            "income": rng.integers(0, 11, n) / 2,
            "region": rng.choice(["north", "south", "east"], n).astype(object),
        }
    )
    score = np.sin(table.age / 8) - 0.4 * (table.income - 2) ** 2 + 1.5 * (table.region == "south") + 1
    outcome = (score + rng.logistic(size=n) > 0).to_numpy()
    table.loc[rng.random(n) < 0.1, "income"] = np.nan
    return table, outcome


def everyone(domain=DOMAIN):
    """All people of a domain."""
    values = []
    for held in domain.columns.values():
        own = list(held.values) if hasattr(held, "values") else held.at(np.arange(held.first, held.last + 1)).tolist()
        values.append(own + [np.nan] * held.blank)
    return pd.DataFrame(list(itertools.product(*values)), columns=list(domain.columns))


def outputs_of(model, X):
    return np.asarray(model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X))


def largest_effects(model, domain=DOMAIN):
    """By brute force over all pairs that differ in one column: weights of numbers, categories and missing numbers."""
    X = everyone(domain)
    values = [X[name].drop_duplicates().to_numpy() for name in X]
    outputs, found = outputs_of(model, X).reshape([len(each) for each in values]), {"missing": {}}
    for i, (name, own) in enumerate(zip(X, values, strict=True)):
        h = np.moveaxis(outputs, i, 0).reshape(len(own), -1)
        changes = np.abs(h[:, None] - h[None]).max(axis=2)
        if own.dtype.kind != "f":
            found[name] = changes.max()
            continue
        gaps, one = np.abs(own[:, None] - own), np.isnan(own)[:, None] != np.isnan(own)
        found[name] = (changes[gaps > 0] / gaps[gaps > 0]).max()
        found["missing"][name] = changes[one].max(initial=0)
    return found


def pipeline(rng, last):
    """A random nested pipeline in front of a model."""
    numbers = (
        SplineTransformer(int(rng.integers(2, 6)), int(rng.integers(1, 4)), include_bias=bool(rng.integers(2))),
        SplineTransformer(4, 3, extrapolation=("linear", "continue", "periodic", "error")[rng.integers(4)]),
        KBinsDiscretizer(int(rng.integers(2, 6)), encode=("onehot", "onehot-dense", "ordinal")[rng.integers(3)]),
        "passthrough",
    )
    fill = SimpleImputer(strategy=("mean", "median")[rng.integers(2)], add_indicator=False)
    scaler = (StandardScaler(), MinMaxScaler(), FunctionTransformer(), "passthrough")[rng.integers(4)]
    after = (StandardScaler(with_mean=False), "passthrough")[rng.integers(2)]
    parts = [
        (make_pipeline(scaler, numbers[rng.integers(4)], after), ["age"]),
        (make_pipeline(make_pipeline(fill, scaler), numbers[rng.integers(4)]), ["income"]),
        (OneHotEncoder(), ["region"]),
    ]
    columns = make_column_transformer(*(parts[k] for k in rng.permutation(3)))
    return make_pipeline(columns, last)


@pytest.mark.parametrize("seed", range(24))
def test_on_a_declared_grid_weights_are_those_of_all_people(seed):
    rng = np.random.default_rng(seed)
    X, y = people(seed)
    last = (LogisticRegression(C=10.0 ** rng.integers(-1, 3), max_iter=5000), Ridge())[seed % 4 == 3]
    model = pipeline(rng, last).fit(X, y)
    if rng.integers(2):
        model = FrozenEstimator(model)
    limits = None if hasattr(model, "predict_proba") else (-4.0, 5.0)
    metric = minimal_metric(model, domain=DOMAIN, output_range=limits)
    expected = largest_effects(model)
    width = 1.0 if limits is None else 9.0
    for name in ("age", "income"):
        assert metric.numeric[name] == pytest.approx(expected[name] / width, rel=1e-9, abs=1e-12)
    assert metric.categorical["region"] == pytest.approx(expected["region"] / width, rel=1e-9)
    least = min(1.0, metric.numeric["income"] * 5 / 2)
    assert metric.missing["income"] == pytest.approx(max(least, expected["missing"]["income"] / width), rel=1e-9)
    assert audit(model, everyone(), metric, output_range=limits).n_violations == 0


@pytest.mark.parametrize("shift", [-3.0, 0.0, 3.0])
def test_a_feature_that_is_the_same_for_everyone_moves_the_score(shift):
    X, y = people(0)
    X, domain = X.assign(country="here")[["age", "country"]], DOMAIN.columns["age"]
    coded = make_column_transformer((OneHotEncoder(), ["country"]), (KBinsDiscretizer(3), ["age"]))
    model = make_pipeline(coded, LogisticRegression(fit_intercept=False)).fit(X, y)
    model[-1].coef_ += shift * (np.arange(4) == 0)  # the first feature is 1 for everyone
    domain = Domain({"age": domain, "country": CategoricalDomain(("here",))})
    found = minimal_metric(model, domain=domain)
    assert found.numeric["age"] == pytest.approx(largest_effects(model, domain)["age"], rel=1e-9)


def test_numbers_that_are_categories_need_a_step_in_the_domain():
    X, y = people(0)
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()).fit(X[["age"]], y)
    held = DOMAIN.columns["age"]
    found = minimal_metric(model, domain=Domain({"age": held}))
    assert found.numeric["age"] == pytest.approx(largest_effects(model, Domain({"age": held}))["age"], rel=1e-9)
    with pytest.raises(UnprovableError, match="'age' has numbers as categories; declare a step"):
        minimal_metric(model, domain=Domain({"age": NumericDomain(held.low, held.high, None)}))


def test_control_a_weight_that_is_one_percent_smaller_is_exceeded():
    X, y = people(1)
    model = pipeline(np.random.default_rng(1), LogisticRegression()).fit(X, y)
    metric = minimal_metric(model, domain=DOMAIN)
    assert audit(model, everyone(), metric).n_violations == 0
    for section in ("numeric", "categorical"):
        for name, weight in getattr(metric, section).items():
            smaller = metric.with_params(**{section: {**getattr(metric, section), name: 0.99 * weight}})
            assert audit(model, everyone(), smaller).n_violations > 0, name


@pytest.mark.parametrize("extrapolation", ["constant", "linear", "periodic", "error"])
@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_splines_have_their_largest_slope(degree, extrapolation):
    rng = np.random.default_rng(degree)
    X = rng.uniform(0, 10, size=(400, 2))
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1]
    spline = SplineTransformer(6, degree, extrapolation=extrapolation)
    model = make_pipeline(StandardScaler(), spline, LinearRegression()).fit(X, y)
    if (degree, extrapolation) == (1, "linear"):  # rounding decides which piece's slope scikit-learn goes on with
        with pytest.raises(UnprovableError, match="not the expected function of its columns"):
            minimal_metric(model)
        return
    metric = minimal_metric(model)
    assert isinstance(metric, WeightedLp)
    inside = np.linspace(X.min(axis=0), X.max(axis=0), 20_001)
    for i, weight in enumerate(metric.weights):
        rows = np.repeat(X[:1], len(inside), axis=0)
        rows[:, i] = inside[:, i]
        seen = np.abs(np.diff(model.predict(rows)) / np.diff(inside[:, i])).max()
        assert seen <= weight * (1 + 1e-6)  # differences of floats are rounded
        assert seen == pytest.approx(weight, rel=2e-3)


@pytest.mark.parametrize("extrapolation", ["constant", "linear", "continue", "periodic", "error"])
def test_splines_of_degree_0_are_steps_and_have_no_weight(extrapolation):
    X = np.random.default_rng(0).uniform(0, 10, size=(100, 1))
    model = make_pipeline(SplineTransformer(4, 0, extrapolation=extrapolation), LinearRegression()).fit(X, X[:, 0])
    with pytest.raises(UnprovableError, match=r"outputs jump with 'x0'|not the expected function of its columns"):
        minimal_metric(model)
    goes_on = make_pipeline(SplineTransformer(4, 2, extrapolation="continue"), LinearRegression()).fit(X, X[:, 0] ** 3)
    with pytest.raises(UnprovableError, match="extrapolates with an unbounded slope"):
        minimal_metric(goes_on)


def test_splines_that_are_not_what_they_should_be_are_refused():
    X = np.random.default_rng(0).uniform(0, 10, size=(100, 2))
    model = make_pipeline(SplineTransformer(4, 2), LinearRegression()).fit(X, X[:, 0])
    minimal_metric(model)
    own = model[0].transform
    model[0].transform = lambda rows: 2 * own(rows)
    with pytest.raises(UnprovableError, match="not the expected function of its columns"):
        minimal_metric(model)


def test_a_probability_behind_splines_is_read_where_its_scores_reach_even_chances():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.uniform(0, 10, 500), "b": rng.normal(size=500)})
    y = np.sin(X.a) + X.b + rng.logistic(size=500) > 0
    splines = make_column_transformer((SplineTransformer(6), ["a"]), remainder="passthrough")
    model = make_pipeline(splines, LogisticRegression()).fit(X, y)
    metric = minimal_metric(model)
    assert isinstance(metric, TableMetric)
    assert metric.numeric["b"] == pytest.approx(abs(model[-1].coef_[0, -1]) / 4)
    a = np.linspace(X.a.min(), X.a.max(), 20_001)
    spline = (
        model[0].named_transformers_["splinetransformer"].transform(pd.DataFrame({"a": a})) @ model[-1].coef_[0, :-1]
    )
    assert metric.numeric["a"] == pytest.approx(np.abs(np.diff(spline) / np.diff(a)).max() / 4, rel=1e-3)


@pytest.mark.parametrize("intercept", [30.0, -30.0])
def test_a_spline_that_goes_on_reaches_even_chances_on_either_side(intercept):
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"a": rng.normal(size=200), "b": rng.choice(["x", "y"], 200)})
    splines = (SplineTransformer(3, 1, extrapolation="linear"), ["a"])
    model = make_pipeline(make_column_transformer(splines, (OneHotEncoder(), ["b"])), LogisticRegression())
    model.fit(X, X["a"] + (X["b"] == "x") + rng.normal(size=200) > 0)
    model[-1].intercept_[:] = intercept  # even chances are far below, or above, what these people have
    assert minimal_metric(model).categorical["b"] == pytest.approx(np.tanh(np.ptp(model[-1].coef_[0, -2:]) / 4))


def test_splines_without_a_closed_form_are_refused_and_read_on_a_grid():
    X = np.random.default_rng(0).uniform(0, 10, size=(300, 1))
    model = make_pipeline(SplineTransformer(5), LogisticRegression()).fit(X, X[:, 0] > 5)
    model[-1].intercept_ = model[-1].intercept_ - 30  # nobody comes near even chances
    with pytest.raises(UnprovableError, match="no closed form; declare its grid in domain"):
        minimal_metric(model)
    domain = Domain.learn(pd.DataFrame({"x0": [0, 10]}))
    exactly = minimal_metric(model, domain=domain)
    changes = np.abs(np.diff(model.predict_proba(np.arange(11.0)[:, None])[:, 1]))
    assert exactly.weights[0] == pytest.approx(changes.max(), rel=1e-9)
    unbounded = make_pipeline(SplineTransformer(5, extrapolation="continue"), LinearRegression()).fit(X, X[:, 0] ** 2)
    with pytest.raises(UnprovableError, match="unbounded slope; declare the range in domain"):
        minimal_metric(unbounded)
    assert minimal_metric(unbounded, domain=domain.with_column("x0", step=None)).weights[0] == pytest.approx(20, 1e-3)


def test_bins_are_said_as_jumps_and_have_a_weight_on_a_grid():
    X, y = people(0)
    numbers = X[["age"]]
    model = make_pipeline(KBinsDiscretizer(3), LogisticRegression()).fit(numbers, y)
    with pytest.raises(UnprovableError, match=r"outputs jump with 'age', by up to .* at .*On a grid it is finite"):
        minimal_metric(model)
    jumps = find_jumps(model)
    edges = model[0].bin_edges_[0][1:-1]
    assert jumps["at"].tolist() == pytest.approx(edges.tolist())
    below, above = (outputs_of(model, pd.DataFrame({"age": each})) for each in (edges - 1e-9, edges))
    assert jumps["change"].tolist() == pytest.approx(np.abs(above - below).tolist())
    metric = minimal_metric(model, domain=DOMAIN)
    assert metric.numeric["age"] == pytest.approx(jumps["change"].max() / 4)
    assert find_jumps(model, domain=DOMAIN).empty


# -- our own cards ---------------------------------------------------------------------------------------------------

CARD_METRIC = TableMetric({"age": 0.02, "income": 0.1}, {"region": 0.3}, missing={"income": 0.5})


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["logistic", "probit", "clip", "points", "regression"])
def test_cards_have_the_weights_of_all_people(kind, seed):
    X, y = people(seed)
    if kind == "regression":
        target = np.nan_to_num(X["income"]) * 3 + 0.2 * X["age"] + y
        model = AdditiveRegressor(CARD_METRIC, output_range=(8.0, 20.0), penalty=1e-4, max_knots=6).fit(X, target)
    else:
        link = "logistic" if kind == "points" else kind
        model = AdditiveClassifier(CARD_METRIC, penalty=1e-4, max_knots=6, link=link).fit(X, y)
    if kind == "points":
        model = model.in_points(points_to_double=100)
    metric = minimal_metric(model, domain=DOMAIN)
    expected = largest_effects(model)
    width = 12.0 if kind == "regression" else 1.0
    for name in ("age", "income"):
        assert metric.numeric[name] == pytest.approx(expected[name] / width, rel=1e-8, abs=1e-10)
    # A category that was not seen is one more, between the others.
    assert metric.categorical["region"] == pytest.approx(expected["region"] / width, rel=1e-8)
    missing = max(min(1, metric.numeric["income"] * 2.5), expected["missing"]["income"] / width)
    assert metric.missing["income"] == pytest.approx(missing, rel=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_a_card_uses_at_most_its_own_metric(seed):
    X, y = people(seed)
    model = AdditiveClassifier(CARD_METRIC, penalty=1e-4).fit(X, y)
    metric = minimal_metric(model)
    assert all(metric.numeric[name] <= CARD_METRIC.numeric[name] * (1 + 1e-9) for name in metric.numeric)
    assert metric.categorical["region"] <= 0.3 + 1e-9
    assert metric.numeric["age"] > 0
    assert audit(model, everyone(), metric).n_violations == 0
    numbers = AdditiveClassifier(WeightedLp([0.02]), penalty=1e-4).fit(X[["age"]].to_numpy(), y)
    assert isinstance(minimal_metric(numbers), WeightedLp)


def test_cards_with_several_classes_are_refused_in_a_line():
    X, y = people(0)
    model = AdditiveClassifier(CARD_METRIC, penalty=0.1, max_knots=4).fit(X, y.astype(int) + (X["age"] > 40))
    with pytest.raises(UnprovableError, match="cards are read for two classes and regression, not for 3 classes"):
        minimal_metric(model)


@pytest.mark.parametrize(
    ("domain", "message"),
    [
        (3, "domain must be a Domain"),
        (Domain.learn(pd.DataFrame({"age": [1, 2]})), "it has no 'income'"),
        (DOMAIN.with_column("age", step=1e-5), "at most 100,000 numbers"),
    ],
)
def test_a_domain_that_does_not_fit_is_refused(domain, message):
    X, y = people(0)
    model = pipeline(np.random.default_rng(0), LogisticRegression()).fit(X, y)
    with pytest.raises(InvalidInputError, match=message):
        minimal_metric(model, domain=domain)


# -- sets of scores --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_sums_of_scores_are_those_of_brute_force(seed):
    rng = np.random.default_rng(seed)
    parts = [np.sort(rng.normal(size=rng.integers(1, 6)).round(1)) for _ in range(3)]
    total = ScoreSet(np.zeros(1), np.zeros(1))
    for part in parts:
        total = total.plus(exact._merged(part, part + 0.0, 0.0))
    sums = np.unique(np.add.outer(np.add.outer(*parts[:2]), parts[2]).ravel())
    for target in rng.normal(size=20) * 3:
        found, _ = total.nearest(target, target)
        assert abs(found - target) == pytest.approx(np.abs(sums - target).min(), abs=1e-12)


def test_too_many_scores_close_the_smallest_gaps_only(monkeypatch):
    monkeypatch.setattr(exact, "_MAX_PIECES", 8)
    points = np.array([0, 1e-3, 1, 1.001, 2, 3, 4, 5, 6, 7.0])
    found = exact._merged(points, points, 0.0)
    assert found.closed == pytest.approx(1e-3)
    assert len(found.low) == 8
    with pytest.raises(UnprovableError, match="far apart"):
        exact._merged(np.arange(20.0), np.arange(20.0), 0.0)


def test_control_weights_of_a_form_with_another_intercept_differ():
    X, y = people(0)
    model = AdditiveClassifier(CARD_METRIC, penalty=1e-4).fit(X, y)
    form = model.scorer_.additive_form(model.encoder_)
    far = type(form)(form.intercept - 9, form.effects, form.curve, form.names, form.named)
    assert exact_weights(far, {}).numeric["age"] < 0.1 * exact_weights(form, {}).numeric["age"]


# -- explainable boosting machines -----------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["classes", "regression"])
def boosted(request):
    glassbox = pytest.importorskip("interpret.glassbox")
    X, y = people(3)
    given = {"interactions": 0, "n_jobs": 1, "outer_bags": 2, "max_rounds": 60, "random_state": 0}
    kind = "Classifier" if request.param == "classes" else "Regressor"
    model = getattr(glassbox, f"ExplainableBoosting{kind}")(**given)
    with pytest.warns(UserWarning, match="Missing values detected"):
        return model.fit(X, y if request.param == "classes" else X["age"] / 60 + y)


def test_boosted_step_functions_have_the_weights_of_all_people(boosted):
    limits = None if hasattr(boosted, "classes_") else (-2.0, 4.0)
    metric = minimal_metric(boosted, domain=DOMAIN, output_range=limits)
    expected = largest_effects(boosted)
    width = 1.0 if limits is None else 6.0
    for name in ("age", "income"):
        assert metric.numeric[name] == pytest.approx(expected[name] / width, rel=1e-9)
    assert metric.categorical["region"] == pytest.approx(expected["region"] / width, rel=1e-9)
    assert audit(boosted, everyone(), metric, output_range=limits).n_violations == 0


def test_boosted_step_functions_are_said_as_jumps(boosted):
    with pytest.raises(UnprovableError, match=r"jump with 'age', by up to [\d.]+ at [\d.]+.*divided by the step"):
        minimal_metric(boosted)
    jumps = find_jumps(boosted)
    first = jumps[jumps["column"] == "age"].iloc[0]
    rows = pd.DataFrame({"age": [first["at"] - 1e-6, first["at"]], "income": 1.0, "region": "north"})
    if not hasattr(boosted, "classes_"):
        assert np.diff(boosted.predict(rows))[0] == pytest.approx(first["jump"])


def test_interactions_are_refused(boosted):
    boosted.term_features_[0] = (0, 1)
    try:
        with pytest.raises(UnprovableError, match="has interactions; fit it with interactions=0"):
            minimal_metric(boosted)
    finally:
        boosted.term_features_[0] = (0,)


@pytest.mark.parametrize("order", [[0.0, 0.1, 0.2], [1, 3, 2], ["low", "middle", "high"]], ids=str)
@pytest.mark.parametrize("given", [(), ("X",), ("domain",)], ids=str)
def test_the_metric_of_a_card_with_ordered_categories_has_their_order(order, given):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"grade": rng.choice(np.array(order, dtype=object), 200), "age": rng.integers(0, 5, 200)})
    X["grade"] = X["grade"].infer_objects()
    ranks = X["grade"].map(order.index).to_numpy()
    metric = TableMetric({"grade": 0.3, "age": 0.1}, order={"grade": order})
    model = AdditiveClassifier(metric, penalty=1e-6).fit(X, ranks + 0.3 * X["age"] + rng.normal(size=200) > 1.5)
    chosen = {"X": X, "domain": Domain.learn(X, ["grade"])}
    found = minimal_metric(model, **{name: chosen[name] for name in given})
    assert found.order == {"grade": tuple(order)}
    assert audit(model, X, found, tolerance=1e-9).n_violations == 0
    assert audit(model, X, found.scaled(0.9), tolerance=1e-9).n_violations > 0  # the control
