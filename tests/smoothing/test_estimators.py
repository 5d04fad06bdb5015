"""The estimators through their public interface."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from chance import PER_CHECK, too_few, too_many
from contract import run_check
from likewise import (
    Gaussian,
    Laplace,
    SmoothedClassifier,
    SmoothedRegressor,
    Splitting,
    TableMetric,
    Uniform,
    WeightedLp,
    draws_needed,
    linear_metric,
)

NOISES = {"gaussian": Gaussian, "laplace": Laplace, "uniform": Uniform}


@parametrize_with_checks(
    [
        SmoothedClassifier(LogisticRegression(), n_draws=500),
        SmoothedClassifier(LogisticRegression(), vote="soft", noise="laplace", epsilon=0.2),
        SmoothedClassifier(DecisionTreeClassifier(), augment=2, n_draws=500),
        SmoothedRegressor(Ridge(), n_draws=500),
    ]
)
def test_scikit_learn_contract(estimator, check):
    run_check(estimator, check)


@pytest.fixture(scope="module")
def people():
    return make_classification(300, 4, n_informative=3, n_redundant=0, random_state=0)


@pytest.fixture(scope="module")
def three_kinds():
    X, y = make_classification(300, 4, n_informative=4, n_redundant=0, n_classes=3, random_state=1)
    return X, np.array(["high", "low", "middle"])[y]


# -- the promise ------------------------------------------------------------------------------------------------


def half_space(i):
    return lambda rows: (rows[:, i] >= 0).astype(int)


@pytest.mark.parametrize("noise", NOISES)
def test_a_model_cannot_see_features_of_weight_zero(people, noise):
    X, y = people
    metric = WeightedLp([1.0, 0.0, 0.5, 0.0], 2)
    for vote in ("hard", "soft"):
        model = SmoothedClassifier(
            DecisionTreeClassifier(random_state=0), metric=metric, noise=noise, vote=vote, n_draws=300, random_state=0
        ).fit(X, y)
        changed = X[:20].copy()
        changed[:, [1, 3]] = np.random.default_rng(0).normal(size=(20, 2)) * 1e9
        np.testing.assert_array_equal(model.predict_proba(changed), model.predict_proba(X[:20]))
        np.testing.assert_array_equal(model.decide(changed, 0), model.decide(X[:20], 0))


def test_hidden_columns_are_replaced_by_real_combinations():
    one_hot = np.eye(3)[np.random.default_rng(0).integers(3, size=50)]
    X = np.column_stack([np.arange(50.0), one_hot])
    seen = []

    def model(rows):
        seen.append(rows[:, 1:].copy())
        return np.zeros(len(rows), dtype=int)

    metric = WeightedLp([1.0, 0.0, 0.0, 0.0])
    smoothed = SmoothedClassifier(model, metric=metric, n_draws=500, random_state=0).fit(X, np.arange(50) % 2)
    seen.clear()  # in fit, the model was tried out on people as they are
    smoothed.predict_proba(X[:3])
    assert {tuple(row) for row in np.vstack(seen)} == {(1, 0, 0), (0, 1, 0), (0, 0, 1)}


def test_sampled_probabilities_agree_with_the_closed_form():
    rng = np.random.default_rng(0)
    X, beta = rng.normal(size=(30, 3)), np.array([1.0, -2.0, 0.5])
    metric = WeightedLp([4.0, 1.0, 0.25], 2)
    model = SmoothedClassifier(
        lambda rows: (rows @ beta > 0.3).astype(int), metric=metric, noise="gaussian", n_draws=50_000, random_state=0
    ).fit(X, np.arange(30) % 2)
    sigma = np.linalg.norm(beta / metric.scales) / np.sqrt(2 * np.pi)
    exact = ndtr((X @ beta - 0.3) / sigma)
    margin = np.sqrt(np.log(2 * 30 / PER_CHECK) / (2 * 50_000))
    gap = np.abs(model.predict_proba(X)[:, 1] - exact)
    assert gap.max() <= margin
    assert np.abs(model.predict_proba(X)[:, 1] - ndtr((X @ beta - 0.3) / sigma * 2)).max() > margin  # half the noise


def test_decide_has_the_law_of_the_smoothed_model(three_kinds):
    X, y = three_kinds
    for vote in ("hard", "soft"):
        model = SmoothedClassifier(
            LogisticRegression(), metric=WeightedLp(np.ones(4), 2), vote=vote, n_draws=100_000, random_state=0
        ).fit(X, y)
        n = 20_000
        law = model.predict_proba(X[:1])[0]
        decisions = model.decide(np.repeat(X[:1], n, axis=0), random_state=1)
        margin = np.sqrt(np.log(2 / PER_CHECK) / (2 * model.guarantee_.n_draws))  # how far `law` itself may be off
        for share, kind in zip(law, model.classes_, strict=True):
            assert not too_many(int((decisions == kind).sum()), n, min(1, share + margin))
            assert not too_few(int((decisions == kind).sum()), n, max(0, share - margin))


def test_decide_draws_afresh_unless_seeded(people):
    X, y = people
    model = SmoothedClassifier(LogisticRegression(), n_draws=10, random_state=0).fit(X, y)
    assert (model.decide(X, 3) == model.decide(X, 3)).all()
    assert (model.decide(X) != model.decide(X)).any()
    assert not hasattr(SmoothedRegressor(Ridge()), "decide")  # a prediction is no decision


# -- a prediction depends on the row alone ----------------------------------------------------------------------

INNER = {
    "logistic": LogisticRegression(),
    "network": MLPClassifier((8,), max_iter=20, early_stopping=True, random_state=0),
    "forest": RandomForestClassifier(3, random_state=0),
}


@pytest.mark.parametrize("vote", ["hard", "soft"])
@pytest.mark.parametrize("inner", INNER)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_same_scores_in_any_batch_order_and_precision(people, inner, vote):
    X, y = people
    model = SmoothedClassifier(INNER[inner], vote=vote, n_draws=5000, random_state=0).fit(X, y)
    some = X[:12].astype(np.float32)
    scores = model.predict_proba(some)
    order = np.random.default_rng(0).permutation(12)
    np.testing.assert_array_equal(model.predict_proba(some[order]), scores[order])
    np.testing.assert_array_equal(np.vstack([model.predict_proba(row[None]) for row in some]), scores)
    np.testing.assert_array_equal(model.predict_proba(some.astype(np.float64)), scores)
    np.testing.assert_array_equal(model.predict_proba(np.asfortranarray(some)), scores)


def test_same_scores_after_clone_and_refit(people):
    X, y = people
    for inner in (MLPClassifier((8,), max_iter=30), make_pipeline(StandardScaler(), SGDClassifier())):
        model = SmoothedClassifier(inner, augment=1, n_draws=500, random_state=7)
        first = model.fit(X, y).predict_proba(X[:5])
        np.testing.assert_array_equal(clone(model).fit(X, y).predict_proba(X[:5]), first)
        np.testing.assert_array_equal(model.fit(X, y).predict_proba(X[:5]), first)
    other = clone(model).set_params(random_state=8).fit(X, y).predict_proba(X[:5])
    assert (other != first).any()


def test_a_saved_model_holds_the_seed_and_not_the_draws(people):
    X, y = people
    model = SmoothedClassifier(LogisticRegression(), n_draws=1_000_000).fit(X, y)
    assert len(pickle.dumps(model)) < 10_000


def test_memory_is_flat_in_people_and_draws():
    def peak(n_people, n_draws, d=178):
        X = np.random.default_rng(0).normal(size=(n_people, d))
        noise = Uniform.for_metric(WeightedLp(np.ones(d)))
        model = SmoothedClassifier(half_space(0), noise=noise, n_draws=n_draws).fit(X, X[:, 0] > 0)
        tracemalloc.start()
        try:
            model.predict_proba(X)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    small = peak(10, 5000)
    assert small < 50e6
    assert peak(10, 100_000) < 1.2 * small
    assert peak(500, 5000) < 1.2 * small + 500 * 178 * 8 * 2


# -- models, votes, classes -------------------------------------------------------------------------------------


def test_epsilon_and_delta_are_kept_or_follow_from_the_draws(people):
    X, y = people
    auto = SmoothedClassifier(half_space(0), noise="gaussian", epsilon=0.1, delta=0.01).fit(X, y)
    assert (auto.guarantee_.epsilon, auto.guarantee_.delta, auto.guarantee_.level) == (0.1, 0.01, "sampled")
    fixed = SmoothedClassifier(half_space(0), noise="gaussian", n_draws=draws_needed(0.05, 0.01), delta=0.01).fit(X, y)
    assert fixed.guarantee_.epsilon == pytest.approx(0.05, rel=1e-3)


def test_without_a_metric_the_papers_is_derived_on_standardised_features(people):
    X, y = people
    X = X * 50_000  # dollars
    model = SmoothedClassifier(half_space(0), n_draws=10).fit(X, y)
    metric = model.guarantee_.metric
    assert metric == linear_metric(X, y)
    coef = np.abs(LogisticRegression().fit(StandardScaler().fit_transform(X), y).coef_[0])
    np.testing.assert_allclose(metric.weights * X.std(axis=0), coef / coef.mean(), rtol=1e-3)
    in_raw_units = metric.scaled(1 / metric.weights.mean())  # as it was: the dollars alone put all pairs beyond 1
    assert (metric.pairwise(X) < 1).sum() > 2000  # of 90,000, with everyone's distance to themselves
    assert (in_raw_units.pairwise(X) < 1).sum() == 300


def test_auto_noise_is_the_one_that_keeps_most_for_the_metric(people):
    X, y = people
    for p, kind, level in ((1, Splitting, "deterministic"), (2, Gaussian, "sampled"), (np.inf, Gaussian, "sampled")):
        model = SmoothedClassifier(half_space(0), metric=WeightedLp(np.ones(4), p)).fit(X, y)
        assert type(model.noise_) is kind
        assert model.guarantee_.level == level
    assert SmoothedClassifier(LogisticRegression()).fit(X, y).guarantee_.level == "exact"


def test_a_noise_object_brings_its_metric(people):
    X, y = people
    metric = WeightedLp(np.ones(4), 3)
    model = SmoothedClassifier(LogisticRegression(), noise=Laplace.for_metric(metric), n_draws=5).fit(X, y)
    assert model.guarantee_.metric == metric


def test_fitted_models_come_in_frozen(people):
    X, y = people
    fitted = LogisticRegression().fit(X, y)
    before = fitted.coef_.copy()
    model = SmoothedClassifier(FrozenEstimator(fitted), n_draws=5).fit(X[:100], y[:100][::-1])
    np.testing.assert_array_equal(model.estimator_.coef_, before)


def test_a_frozen_model_may_know_classes_that_the_data_do_not_show(three_kinds):
    X, y = three_kinds
    fitted = LogisticRegression().fit(X, y)
    known = y != "middle"
    model = SmoothedClassifier(FrozenEstimator(fitted), n_draws=50).fit(X[known], y[known])
    assert list(model.classes_) == ["high", "low", "middle"]
    assert model.predict_proba(X[:2]).shape == (2, 3)
    with pytest.raises(ValueError, match="y must hold classes of the fitted estimator"):
        SmoothedClassifier(FrozenEstimator(fitted), n_draws=50).fit(X, np.where(known, y, "other"))


def test_functions_may_return_labels_or_scores(three_kinds):
    X, y = three_kinds
    inner = LogisticRegression().fit(X, y)
    kwargs = {"metric": WeightedLp(np.ones(4)), "n_draws": 500, "random_state": 0}
    expected = SmoothedClassifier(FrozenEstimator(inner), **kwargs).fit(X, y).predict_proba(X[:4])
    for function in (inner.predict, inner.predict_proba, lambda rows: inner.predict(rows).tolist()):
        np.testing.assert_array_equal(SmoothedClassifier(function, **kwargs).fit(X, y).predict_proba(X[:4]), expected)
    soft = SmoothedClassifier(FrozenEstimator(inner), vote="soft", **kwargs).fit(X, y).predict_proba(X[:4])
    again = SmoothedClassifier(inner.predict_proba, vote="soft", **kwargs).fit(X, y).predict_proba(X[:4])
    np.testing.assert_array_equal(again, soft)


def test_models_fitted_on_frames_are_given_frames(people):
    X, y = people
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    fitted = make_pipeline(StandardScaler(), LinearSVC()).fit(frame, y)
    model = SmoothedClassifier(FrozenEstimator(fitted), n_draws=20).fit(frame, y)
    assert list(model.feature_names_in_) == ["a", "b", "c", "d"]
    assert model.predict_proba(frame[:3]).shape == (3, 2)
    turned = model.predict_proba(frame[["b", "a", "c", "d"]])
    np.testing.assert_array_equal(turned, model.predict_proba(frame))


# -- training on noisy copies -----------------------------------------------------------------------------------


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers what it was trained on."""

    def fit(self, X, y):
        self.seen_, self.classes_ = [X.copy()], np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


class IncrementalRecorder(Recorder):
    def __init__(self, max_iter=3):
        self.max_iter = max_iter

    def partial_fit(self, X, y, classes=None):
        self.n_features_in_ = X.shape[1]
        self.seen_, self.classes_ = [*getattr(self, "seen_", []), X.copy()], classes
        return self


def test_augment_trains_on_noisy_copies(people):
    X, y = people
    noise = Uniform.for_metric(WeightedLp(np.ones(4)))
    (seen,) = SmoothedClassifier(Recorder(), noise=noise, augment=3).fit(X, y).estimator_.seen_
    assert seen.shape == (900, 4)
    noise = seen - np.tile(X, (3, 1))
    assert np.abs(noise).max() <= 0.5
    assert len(np.unique(noise)) == noise.size


def test_with_partial_fit_the_noise_is_fresh_in_each_epoch(people):
    X, y = people
    noise = Uniform.for_metric(WeightedLp(np.ones(4)))
    model = SmoothedClassifier(IncrementalRecorder(max_iter=3), noise=noise, augment=2).fit(X, y)
    seen = model.estimator_.seen_
    assert len(seen) == 6
    assert len(np.unique(np.concatenate(seen) - np.tile(X, (6, 1)))) == 6 * X.size


def test_training_on_noisy_copies_helps_under_noise():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = (X[:, 0] + rng.normal(size=2000) * 0.01 > 0).astype(int)
    X = np.column_stack([X[:, 0] * 0.02, X[:, 0] + X[:, 1]])  # one feature is precise but will drown in noise
    X = np.column_stack([X, y + rng.normal(size=2000) * 0.6])
    kwargs = {"metric": WeightedLp([1.0, 1.0, 2.0]), "n_draws": 300, "random_state": 0}
    plain, trained = (
        SmoothedClassifier(DecisionTreeClassifier(max_depth=6), augment=k, **kwargs).fit(X, y) for k in (0, 5)
    )
    confidence = [m.predict_proba(X[:200])[np.arange(200), y[:200]].mean() for m in (plain, trained)]
    assert confidence[1] > confidence[0] + 0.1


@pytest.mark.parametrize("inner", [GaussianNB(), SGDClassifier(), MLPClassifier((8,), learning_rate_init=0.02)])
def test_augment_works_for_models_with_partial_fit(people, inner):
    X, y = people
    model = SmoothedClassifier(inner, augment=2, n_draws=300, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.65  # a logistic regression reaches 0.71


# -- certificates -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def intervals():
    """Certificates of a half-space under Gaussian noise over many seeds: truth, which is known, lower and upper."""
    X, found = np.linspace(-1, 1, 9)[:, None], []
    for seed in range(200):
        model = SmoothedClassifier(
            half_space(0), metric=WeightedLp([1.0], 2), n_draws=100, delta=0.1, random_state=seed
        ).fit(X, np.arange(9) % 2)
        c = model.certify(X[[seed % 9]])
        found.append((ndtr(X[seed % 9, 0] * np.sqrt(2 * np.pi)), c.lower[0, 1], c.upper[0, 1]))
    return np.array(found).T


def interval_misses(intervals, shrink):
    truth, lower, upper = intervals
    return int((np.abs(truth - (lower + upper) / 2) > shrink * (upper - lower) / 2).sum())


def test_intervals_cover_at_their_rate(intervals):
    assert not too_many(interval_misses(intervals, 1.0), 200, 0.1)


def test_control_narrow_intervals_are_caught(intervals):
    assert too_many(interval_misses(intervals, 0.3), 200, 0.1)


def test_the_certified_distance_is_that_to_the_boundary():
    X = np.array([[0.05, 3.0], [0.4, -1.0], [-0.7, 0.0], [0.0, 0.0]])
    model = SmoothedClassifier(half_space(0), metric=WeightedLp([4.0, 1.0], 2), n_draws=200_000, random_state=0).fit(
        X, [0, 1, 0, 1]
    )
    certificate = model.certify(X)
    to_boundary = np.abs(X[:, 0]) * 2
    assert (certificate.distance <= to_boundary).all()
    np.testing.assert_allclose(certificate.distance[:2], to_boundary[:2], atol=0.05)
    assert certificate.distance[3] == 0
    assert certificate.outcome[:3].tolist() == [1, 1, 0]
    low, high = certificate.range_at(0.2)
    exact = [ndtr((X[:, 0] * 2 + step) * np.sqrt(2 * np.pi)) for step in (-0.2, 0.2)]
    assert (low[:, 1] <= exact[0]).all()
    assert (high[:, 1] >= exact[1]).all()
    np.testing.assert_allclose(high[:, 1], exact[1], atol=0.02)


def test_certificates_as_tables(three_kinds):
    X, y = three_kinds
    frame = SmoothedClassifier(LogisticRegression(), n_draws=50).fit(X, y).certify(X[:3]).to_frame()
    assert list(frame.columns)[:3] == ["high", "high lower", "high upper"]
    assert list(frame.columns)[-2:] == ["outcome", "distance"]
    assert (frame["low lower"] <= frame["low"]).all()
    certificate = SmoothedRegressor(Ridge(), n_draws=50).fit(X, X[:, 0]).certify(X[:3])
    assert list(certificate.to_frame().columns) == ["prediction", "prediction lower", "prediction upper"]
    low, high = certificate.range_at(0.1)
    assert (low <= certificate.lower).all()
    assert (high >= certificate.upper).all()


# -- what goes wrong --------------------------------------------------------------------------------------------


class NoPredict(BaseEstimator):
    def fit(self, X, y):
        return self


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"metric": WeightedLp(np.zeros(4))}, "weights are all 0"),
        ({"metric": WeightedLp([1.0])}, r"metric must have one weight per feature of X \(4\); it has 1"),
        (
            {"metric": [1, 1, 1, 1]},
            "metric must be None or a Metric, such as WeightedLp or TableMetric; got .1, 1, 1, 1",
        ),
        ({"noise": "cauchy"}, "noise must be 'auto', 'gaussian', .*; got 'cauchy'"),
        (
            {"noise": Gaussian.for_metric(WeightedLp(np.ones(4))), "metric": WeightedLp(np.ones(4), 2)},
            "noise and metric must match",
        ),
        ({"noise": Gaussian.for_metric(WeightedLp([1.0]))}, "one weight per feature"),
        ({"vote": "loud"}, "vote must be 'hard', 'soft' or 'trees'; got 'loud'"),
        ({"epsilon": 0}, "epsilon must be a positive"),
        ({"epsilon": 1.5}, "epsilon must be a positive number below 1; got 1.5"),
        ({"delta": 0}, "delta must be a positive number below 1"),
        ({"delta": 1}, "delta must be"),
        ({"n_draws": 0}, "n_draws must be 'auto' or a whole number >= 1; got 0"),
        ({"n_draws": 10.5}, "n_draws must be"),
        ({"n_draws": "many"}, "n_draws must be"),
        ({"augment": -1}, "augment must be a whole number >= 0"),
        ({"estimator": NoPredict()}, "estimator must have predict, or be a function of rows; got NoPredict"),
        ({"estimator": "logistic"}, "estimator must have predict, or be a function of rows; got str"),
        ({"estimator": LogisticRegression}, "must be an instance, not a class"),
        ({"estimator": LinearSVC(), "vote": "soft"}, "must have predict_proba for vote='soft'; LinearSVC"),
        ({"estimator": half_space(0), "augment": 1}, "augment must be 0 for a plain function"),
        ({"estimator": FrozenEstimator(LogisticRegression()), "augment": 1}, "augment must be 0 for a Frozen"),
    ],
)
def test_bad_parameters_are_refused_and_change_nothing(people, params, message):
    X, y = people
    model = SmoothedClassifier(**({"estimator": LogisticRegression(), "n_draws": 50} | params))
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1, np.nan], [2, 3]], [0, 1], "NaN"),
        ([[1, np.inf], [2, 3]], [0, 1], "infinity"),
        ([[1, "x"], [2, "y"]], [0, 1], "X must hold numbers only .*'x'.*Encode text columns"),
        ([[1, 2], [2, 3]], [1, 1], "at least two classes; got only one class"),
        ([[1, 2], [2, 3]], [0.5, 1.7], "continuous"),
        ([[1, 2], [2, 3]], [0], "X and y must have the same number of rows; got"),
    ],
)
def test_bad_data_are_refused_and_change_nothing(people, X, y, message):
    model = SmoothedClassifier(LogisticRegression(), n_draws=50, random_state=0).fit(*people)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.fit(np.array(X, dtype=object) if "x" in np.ravel(X) else X, y)
    assert vars(model) == before


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1, 2, 3]], "X has 3 features, but SmoothedClassifier is expecting 4"),
        ([[1, 2, 3, np.nan]], "NaN"),
        (np.array([[1, 2, 3, "x"]], dtype=object), "numbers only"),
        ([1, 2, 3, 4], "2D array"),
    ],
)
@pytest.mark.parametrize("method", ["predict_proba", "predict", "decide", "certify"])
def test_bad_rows_are_refused(people, rows, message, method):
    model = SmoothedClassifier(LogisticRegression(), n_draws=50).fit(*people)
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(rows)


@pytest.mark.parametrize("method", ["predict_proba", "predict", "decide", "certify"])
def test_nothing_works_before_fit(method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(SmoothedClassifier(LogisticRegression()), method)([[1, 2]])


@pytest.mark.parametrize(
    ("output_range", "message"),
    [
        ((1, 1), r"got \(1, 1\)"),
        ((0, np.inf), r"got \(0, inf\)"),
        (3, "got 3"),
        ((1, 2, 3), r"got \(1, 2, 3\)"),
    ],
)
def test_bad_output_ranges_are_refused(output_range, message):
    with pytest.raises(
        ValueError, match=f"output_range must be None or two finite numbers, the lowest first; {message}"
    ):
        SmoothedRegressor(Ridge(), output_range=output_range).fit([[1], [2]], [1, 2])


def test_a_constant_target_needs_an_output_range():
    with pytest.raises(ValueError, match=r"y is constant .* Give output_range"):
        SmoothedRegressor(Ridge(), metric=WeightedLp([1])).fit([[1], [2]], [3, 3])


@pytest.mark.parametrize(
    ("function", "vote", "message"),
    [
        (lambda rows: np.zeros((len(rows), 2)) + 3, "soft", "must return probabilities"),
        (lambda rows: np.full((len(rows), 2), np.nan), "soft", "must return probabilities"),
        (lambda rows: np.zeros(len(rows)), "soft", "one probability per class"),
        (lambda rows: np.full(len(rows), 7), "hard", "predicted .*7.*, which is not among the classes"),
        (lambda rows: np.zeros(3), "hard", "one value per row"),
    ],
)
def test_models_that_answer_wrongly_are_refused(people, function, vote, message):
    X, y = people
    model = SmoothedClassifier(function, vote=vote, n_draws=50)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    model.set_params(batch=True).fit(X, y)  # not tried out
    with pytest.raises(ValueError, match=message):
        model.predict_proba(X[:2])


def test_a_metric_with_other_columns_than_the_table_is_refused(people):
    X, y = people
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    metric = WeightedLp({"a": 1, "c": 1, "b": 1, "e": 1})
    with pytest.raises(ValueError, match=r"X must have the columns of the metric, \['a', 'c'"):
        SmoothedClassifier(LogisticRegression(), metric=metric, n_draws=5).fit(frame, y)


# -- progress ---------------------------------------------------------------------------------------------------


def test_progress_is_silent_by_default_and_away_from_a_terminal(people, capfd):
    X, y = people
    for verbose in (False, True):
        SmoothedClassifier(LogisticRegression(), n_draws=50, verbose=verbose).fit(X, y).predict_proba(X[:2])
    assert capfd.readouterr() == ("", "")


def test_progress_shows_at_a_terminal(people, capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # how rich is told that this is a terminal
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    X, y = people
    SmoothedClassifier(LogisticRegression(), n_draws=50, verbose=True).fit(X, y).predict_proba(X[:2])
    assert "Smoothing" in capfd.readouterr().err


def test_changing_parameters_after_fit_does_not_touch_the_promise(people):
    X, y = people
    model = SmoothedClassifier(half_space(0), noise="gaussian", epsilon=0.05, random_state=0).fit(X, y)
    before = model.predict_proba(X[:5])
    model.set_params(epsilon=0.9, delta=0.5, n_draws=1)
    np.testing.assert_array_equal(model.predict_proba(X[:5]), before)


def test_a_model_kept_for_another_metric_is_asked_about_its_own_columns():
    """It was fitted to arrays, which do not show the order of their columns; its second column alone decides."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=80), "b": rng.normal(size=80)})
    y = (X["b"] > 0).astype(int)
    metric = WeightedLp({"a": 50.0, "b": 50.0})
    first = SmoothedClassifier(DecisionTreeClassifier(max_depth=1), metric=metric, random_state=0).fit(X, y)
    again = first.with_metric(metric.scaled(0.9)).fit(X[["b", "a"]], y)
    assert (again.predict(X) == y).mean() > 0.95
    assert (again.with_metric(metric).fit(X, y).predict(X[["b", "a"]]) == y).mean() > 0.95


def test_a_model_kept_for_another_metric_is_asked_about_values_as_it_learned_them():
    """Codes of several types were text to it, and stay so."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(20, 60, 60), "code": pd.Series([7, "V9"] * 30, dtype=object)})
    y = np.arange(60) % 2
    coder = make_column_transformer((OneHotEncoder(), ["code"]), remainder="passthrough")
    metric = TableMetric({"age": 0.01}, {"code": 1.0})
    model = SmoothedClassifier(make_pipeline(coder, LogisticRegression()), metric=metric, n_draws=60, random_state=0)
    again = model.fit(X, y).with_metric(metric.scaled(0.9)).fit(X, y)
    assert (again.predict(X) == y).all()
