import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn import linear_model
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier, TweedieRegressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVR
from sklearn.utils import all_estimators

from likewise import TableMetric, WeightedLp, minimal_metric
from likewise.exceptions import UnprovableError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3)) * [1, 10, 0.1] + [0, 50, 3]
Y = X @ [1.0, -0.2, 4.0] + RNG.normal(size=200)
BINARY = np.median(Y) < Y
THREE = np.digitize(Y + 2 * X[:, 0] ** 2, np.quantile(Y + 2 * X[:, 0] ** 2, [0.3, 0.7]))
REFUSED = "estimate_minimal_metric"


LINEAR_MODULES = ("sklearn.linear_model", "sklearn.svm", "sklearn.cross_decomposition")
REGRESSORS = [
    name for name, kind in all_estimators(type_filter="regressor") if kind.__module__.startswith(LINEAR_MODULES)
]


@pytest.mark.parametrize("name", REGRESSORS)
def test_every_regressor_with_coef_is_read_exactly_or_refused(name):
    kind = dict(all_estimators(type_filter="regressor"))[name]
    y = np.abs(Y[:60]) + 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence and of deprecation
        model = kind(kernel="linear") if name in ("SVR", "NuSVR") else kind()
        if name.startswith("MultiTask") or name in ("CCA", "PLSCanonical"):
            model = model.set_params(**({"n_components": 1} if "n_components" in model.get_params() else {}))
            y = np.stack([y, y**2], axis=1)
        model.fit(X[:60], y)
    several = y.ndim == 2
    coef = getattr(model, "coef_", None)
    if several or coef is None or "PLS" in name or name in ("GammaRegressor", "PoissonRegressor"):
        with pytest.raises(TypeError, match=REFUSED):
            minimal_metric(model)
    else:
        np.testing.assert_allclose(minimal_metric(model).weights, np.abs(np.ravel(coef)))


def largest_ratio(model, weights, base):
    """Largest share of the distance that outputs use, over small steps along each axis from `base`."""
    ratios = []
    for i, weight in enumerate(weights):
        step = np.zeros(len(weights))
        step[i] = 1e-4 / weight
        pair = model.predict_proba(np.stack([base - step / 2, base + step / 2]))
        ratios.append(np.abs(pair[0] - pair[1]).sum() / 2 / 1e-4)
    return np.array(ratios)


@pytest.mark.parametrize(
    ("model", "slope"),
    [
        (LogisticRegression(), 1 / 4),
        (LogisticRegression(solver="liblinear"), 1 / 4),
        (LinearDiscriminantAnalysis(), 1 / 4),
        (SGDClassifier(loss="log_loss", random_state=0), 1 / 4),
        (SGDClassifier(loss="modified_huber", random_state=0), 1 / 2),
    ],
)
def test_two_classes_have_the_slope_of_their_link_times_the_coefficients(model, slope):
    Z = StandardScaler().fit_transform(X)
    model.fit(Z, BINARY)
    metric = minimal_metric(model)
    np.testing.assert_allclose(metric.weights, slope * np.abs(model.coef_[0]))
    # Reached where the score is 0, and exceeded nowhere.
    base = -model.intercept_[0] * model.coef_[0] / (model.coef_[0] @ model.coef_[0])
    np.testing.assert_allclose(largest_ratio(model, metric.weights, base), 1, atol=1e-6)
    a, b = RNG.normal(size=(2, 20_000, 3)) * 2
    difference = np.abs(model.predict_proba(a)[:, 1] - model.predict_proba(b)[:, 1])
    assert (difference <= metric(a, b) + 1e-12).all()


@pytest.mark.parametrize("model", [LogisticRegression(), LinearDiscriminantAnalysis()])
def test_several_classes_have_a_quarter_of_the_largest_difference_of_coefficients(model):
    Z = StandardScaler().fit_transform(X)
    model.fit(Z, THREE)
    metric = minimal_metric(model)
    np.testing.assert_allclose(metric.weights, np.ptp(model.coef_, axis=0) / 4)
    a, b = RNG.normal(size=(2, 20_000, 3)) * 3
    difference = np.abs(model.predict_proba(a) - model.predict_proba(b)).sum(axis=1) / 2
    assert (difference <= metric(a, b) + 1e-12).all()
    for i in range(3):  # where the two extreme classes share all the probability, the weight is used up
        high, low = model.coef_[:, i].argmax(), model.coef_[:, i].argmin()
        target = np.full(3, -20.0)
        target[[high, low]] = 0.0
        relative = (model.coef_ - model.coef_[low])[[k for k in range(3) if k != low]]
        wanted = (target - target[low] - model.intercept_ + model.intercept_[low])[[k for k in range(3) if k != low]]
        base = np.linalg.pinv(relative) @ wanted
        assert largest_ratio(model, metric.weights, base)[i] == pytest.approx(1, abs=1e-4)


def test_too_few_features_for_the_classes_are_refused():
    # One feature, scores (-x, 0, x): the outer classes never share all the probability, and the slope stays below
    # (max - min) / 4 = 1/2.
    model = LogisticRegression().fit([[-2.0], [-1.0], [0.0], [0.1], [1.0], [2.0]], [0, 0, 1, 1, 2, 2])
    model.coef_, model.intercept_ = np.array([[-1.0], [0.0], [1.0]]), np.zeros(3)
    grid = np.linspace(-20, 20, 100_001)[:, None]
    probabilities = model.predict_proba(grid)
    steepest = np.abs(np.diff(probabilities, axis=0)).sum(axis=1).max() / 2 / (grid[1, 0] - grid[0, 0])
    assert steepest == pytest.approx(0.3507, abs=1e-4)
    with pytest.raises(TypeError, match=r"1 of 2 dimensions.*estimate_minimal_metric"):
        minimal_metric(model)


@pytest.mark.parametrize(
    "scaler", [StandardScaler(), StandardScaler(with_std=False), MinMaxScaler((-1, 3)), MaxAbsScaler(), RobustScaler()]
)
def test_weights_are_per_raw_unit_behind_a_scaler(scaler):
    model = make_pipeline(scaler, "passthrough", LinearRegression()).fit(X, Y)
    expected = np.abs(model.predict(X[:1] + np.eye(3)) - model.predict(X[:1]))
    np.testing.assert_allclose(minimal_metric(model).weights, expected)
    np.testing.assert_allclose(minimal_metric(FrozenEstimator(model)).weights, expected)


def test_scalers_may_follow_each_other():
    model = make_pipeline(StandardScaler(), make_pipeline(RobustScaler(), MinMaxScaler()), LinearRegression()).fit(X, Y)
    expected = np.abs(LinearRegression().fit(X, Y).coef_)
    np.testing.assert_allclose(minimal_metric(model).weights, expected)


def test_names_are_kept():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    assert list(minimal_metric(LinearRegression().fit(frame, Y)).numeric) == ["a", "b", "c"]
    assert minimal_metric(LinearRegression().fit(X, Y)).feature_names is None


def people(n=300):
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": rng.normal(40, 10, n),
            "job": rng.choice(["clerk", "nurse", "pilot"], n),
            "hours": rng.normal(35, 5, n),
            "town": rng.choice(["A", "B"], n),
            "name": "x",
        }
    )


def target(frame):
    return 0.1 * frame["age"] - 2.0 * (frame["job"] == "pilot") + (frame["job"] == "nurse") + (frame["town"] == "A")


def coded(last, **options):
    encoder = OneHotEncoder(**options)
    return make_pipeline(
        make_column_transformer((StandardScaler(), ["age"]), (encoder, ["job", "town"]), ("passthrough", ["hours"])),
        last,
    )


@pytest.mark.parametrize("drop", [None, "first", "if_binary"])
def test_one_hot_columns_get_the_largest_difference_between_categories(drop):
    frame = people()
    model = coded(LinearRegression(), drop=drop).fit(frame, target(frame))
    metric = minimal_metric(model, output_range=(0, 10))
    assert isinstance(metric, TableMetric)
    assert dict(metric.categorical) == pytest.approx({"job": 0.3, "town": 0.1})
    assert dict(metric.numeric) == pytest.approx({"age": 0.01, "hours": 0.0}, abs=1e-9)


def test_mismatch_weights_above_one_ask_for_the_range_of_outputs():
    frame = people()
    model = coded(LinearRegression()).fit(frame, target(frame))
    with pytest.raises(ValueError, match=r"between 0 and 1; got 3 for 'job'.*Give output_range"):
        minimal_metric(model)
    with pytest.raises(ValueError, match="output_range must not be given for a classifier"):
        minimal_metric(LogisticRegression().fit(X, BINARY), output_range=(0, 1))


def test_scaling_after_coding_changes_nothing():
    frame = people()
    columns = make_column_transformer((OneHotEncoder(sparse_output=False), ["job"]), ("passthrough", ["age"]))
    model = make_pipeline(columns, StandardScaler(), LinearRegression()).fit(frame, target(frame))
    plain = make_pipeline(columns, LinearRegression()).fit(frame, target(frame))
    expected, found = (minimal_metric(each, output_range=(0, 10)) for each in (plain, model))
    assert dict(found.categorical) == pytest.approx(dict(expected.categorical))
    assert dict(found.numeric) == pytest.approx(dict(expected.numeric))


def test_logistic_mismatch_weight_is_the_largest_change_it_can_make():
    frame = people()
    y = target(frame) + np.random.default_rng(2).logistic(size=len(frame)) > 4
    model = coded(LogisticRegression()).fit(frame, y)
    metric = minimal_metric(model)
    # Walk through all ages: the largest change of probability between jobs is the weight, which is below L |beta|.
    base = frame.iloc[[0] * 20_001].assign(age=np.linspace(-1000, 1000, 20_001))
    change = [model.predict_proba(base.assign(job=job))[:, 1] for job in ("clerk", "nurse", "pilot")]
    assert metric.categorical["job"] == pytest.approx(np.ptp(change, axis=0).max(), abs=1e-5)
    effects = model[-1].coef_[0][1:4]
    assert metric.categorical["job"] == pytest.approx(np.tanh(np.ptp(effects) / 4))
    # No pair of people exceeds the sum over columns, whatever they mix.
    rng = np.random.default_rng(3)
    mixed = frame.sample(5000, replace=True, random_state=0).assign(age=rng.normal(40, 40, 5000)).reset_index(drop=True)
    a, b = mixed[:2500].reset_index(drop=True), mixed[2500:].reset_index(drop=True)
    difference = np.abs(model.predict_proba(a)[:, 1] - model.predict_proba(b)[:, 1])
    assert (difference <= metric(a, b) + 1e-12).all()


def test_mismatch_weight_of_several_classes_is_exact():
    # In softmax, levels that move the scores by v change the law by at most tanh((max v - min v) / 4).
    rng = np.random.default_rng(0)
    v = np.array([0.7, -1.1, 0.2])
    scores = rng.normal(size=(20_000, 3)) * 6
    change = np.abs(softmax(scores + v, axis=1) - softmax(scores, axis=1)).sum(axis=1) / 2
    assert 0.98 * np.tanh(np.ptp(v) / 4) < change.max() <= np.tanh(np.ptp(v) / 4)
    frame = people()
    y = np.digitize(target(frame) + rng.normal(size=len(frame)) + frame["hours"] / 20, [4.5, 6.5])
    model = coded(LogisticRegression(solver="newton-cholesky")).fit(frame, y)
    effects = model[-1].coef_[:, 1:4].T
    spreads = [np.ptp(effects[i] - effects[j]) for i in range(3) for j in range(i)]
    assert minimal_metric(model).categorical["job"] == pytest.approx(np.tanh(max(spreads) / 4))


def test_unknown_categories_are_a_level_of_their_own():
    frame = people()
    y = target(frame) + 5 * (frame["town"] == "A") + 5 * (frame["town"] == "B")
    models = (coded(LinearRegression(fit_intercept=False), handle_unknown=how) for how in ("error", "ignore"))
    strict, lenient = (minimal_metric(model.fit(frame, y), output_range=(0, 20)) for model in models)
    assert strict.categorical["town"] == pytest.approx(1 / 20)
    assert lenient.categorical["town"] > 2 / 20  # a new town has no coefficient at all


def test_rare_categories_share_a_level():
    frame = people().assign(job=["rare1", "rare2", *["clerk"] * 149, *["nurse"] * 149])
    model = coded(LinearRegression(), min_frequency=10).fit(frame, target(frame))
    names = list(model[0].get_feature_names_out())
    effects = [model[-1].coef_[i] for i, name in enumerate(names) if "job" in name]
    assert len(effects) == 3
    assert minimal_metric(model, output_range=(0, 10)).categorical["job"] == pytest.approx(np.ptp(effects) / 10)


def test_transformer_weights_and_repeated_columns_add_up():
    columns = make_column_transformer((StandardScaler(), [0]), ("passthrough", [0, 1, 2]))
    columns.set_params(transformer_weights={"standardscaler": 3.0})
    model = make_pipeline(columns, linear_model.Ridge()).fit(X, Y)
    expected = np.abs(model.predict(X[:1] + np.eye(3)) - model.predict(X[:1]))
    np.testing.assert_allclose(minimal_metric(model).weights, expected)


def test_a_constant_model_has_an_all_zero_metric():
    model = LogisticRegression().fit(X, BINARY)
    model.coef_ = np.zeros_like(model.coef_)
    assert minimal_metric(model) == WeightedLp([0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(n_estimators=2).fit(X, BINARY),
        OneVsRestClassifier(LogisticRegression()).fit(X, THREE),
        SGDClassifier(loss="log_loss").fit(X, THREE),
        SGDClassifier(loss="hinge").fit(X, BINARY),
        SVR(kernel="rbf").fit(X, Y),
        TweedieRegressor(power=1).fit(X, np.abs(Y)),
        LinearRegression().fit(X, np.stack([Y, Y], axis=1)),
        make_pipeline(PolynomialFeatures(), LinearRegression()).fit(X, Y),
        make_pipeline(MinMaxScaler(clip=True), LinearRegression()).fit(X, Y),
        LinearRegression(),
        lambda rows: rows[:, 0],
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_models_are_refused_with_the_next_function(model):
    with pytest.raises(UnprovableError, match=REFUSED):
        minimal_metric(model)


def test_other_errors_are_not_taken_for_a_missing_proof():
    model = LinearRegression().fit(X, Y)
    model.intercept_ = object()
    with pytest.raises(TypeError, match="float") as caught:
        minimal_metric(model)
    assert not isinstance(caught.value, UnprovableError)


def test_categories_alone_are_refused_for_probabilities():
    # With no number among the features the scores take few values, and the steepest point of the link may not occur.
    frame = people()[["job", "town"]]
    y = frame["job"] == "pilot"
    with pytest.raises(TypeError, match=REFUSED):
        minimal_metric(make_pipeline(OneHotEncoder(), LogisticRegression()).fit(frame, y))


def test_a_column_in_two_codings_is_refused():
    frame = pd.DataFrame({"grade": [1, 2, 3, 1, 2, 3.0], "age": [3.0, 1, 2, 5, 4, 6]})
    columns = make_column_transformer((OneHotEncoder(), ["grade"]), ("passthrough", ["grade", "age"]))
    model = make_pipeline(columns, linear_model.Ridge()).fit(frame, [1, 2, 3, 4, 5, 6])
    with pytest.raises(TypeError, match=r"'grade' is encoded in two ways.*estimate_minimal_metric"):
        minimal_metric(model)


def test_a_subclass_that_predicts_differently_is_refused():
    class Squared(LinearRegression):
        def predict(self, X):
            return super().predict(X) ** 2

    with pytest.raises(TypeError, match=REFUSED):
        minimal_metric(Squared().fit(X, Y))
