"""Training on noisy copies: fresh noise, early stopping, pipelines, and what it is good for."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from likewise import Gaussian, SmoothedClassifier, WeightedLp
from likewise._fit_validation import TrainingData
from likewise.kernel.schema import ArrayEncoder, People
from likewise.smoothing.augmentation import fit_on_noisy_copies
from likewise.smoothing.sampling import SharedDraws


class Recorder(ClassifierMixin, BaseEstimator):
    """Remembers what it was shown; its scores are given in advance."""

    def __init__(self, max_iter=3, n_iter_no_change=100, early_stopping=False, validation_fraction=0.2, scores=(0.5,)):
        self.max_iter = max_iter
        self.n_iter_no_change = n_iter_no_change
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.scores = scores

    def partial_fit(self, X, y, classes=None):
        assert not self.early_stopping  # scikit-learn's networks refuse it too
        self.classes_ = classes
        self.seen_ = [*getattr(self, "seen_", []), X.copy()]
        self.labels_ = [*getattr(self, "labels_", []), y.copy()]
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])

    def score(self, X, y):
        epoch = len(self.seen_) - 1
        JUDGED.append((X.copy(), y.copy()))
        return self.scores[min(epoch, len(self.scores) - 1)]


JUDGED = []


@pytest.fixture(autouse=True)
def _nothing_judged():
    JUDGED.clear()


def bank_for(X, weight=1.0):
    noise = Gaussian.for_metric(WeightedLp(np.full(X.shape[1], weight), p=2))
    return SharedDraws.from_training_data(noise, X, seed=0)


def train(estimator, X, y, n_copies=1, seed=0, weight=1.0, classes=(0, 1)):
    people = People(X, ArrayEncoder(X.shape[1]), X)
    return fit_on_noisy_copies(
        estimator,
        TrainingData(people, y),
        bank_for(X, weight),
        n_copies,
        np.random.default_rng(seed),
        classes=classes if classes is None else np.unique(y),
    )


@pytest.fixture
def people():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 3))
    return X, (X[:, 0] > 0).astype(int)


def test_noise_is_fresh_in_each_pass(people):
    X, y = people
    model = train(Recorder(max_iter=3), X, y, n_copies=2)
    assert len(model.seen_) == 6
    added = [copy - X for copy in model.seen_]
    for i in range(6):
        assert 0.3 < added[i].std() < 0.5  # 1 / sqrt(2 pi) = 0.399
        for j in range(i):
            assert not np.isclose(added[i], added[j]).any()


def test_training_stops_when_the_score_stalls_and_returns_the_best_epoch(people):
    model = train(Recorder(max_iter=20, n_iter_no_change=2, scores=(0.5, 0.7, 0.6, 0.65, 0.9)), *people)
    assert len(JUDGED) == 4
    assert len(model.seen_) == 2


def test_training_runs_for_max_iter_epochs_if_the_score_rises(people):
    model = train(Recorder(max_iter=5, n_iter_no_change=1, scores=(0.5, 0.6, 0.7, 0.8, 0.9)), *people)
    assert len(model.seen_) == 5


def test_early_stopping_returns_the_model_of_the_best_epoch(people):
    scores = (0.5, 0.9, 0.6, 0.7, 0.8)
    model = train(Recorder(max_iter=20, n_iter_no_change=3, early_stopping=True, scores=scores), *people)
    assert len(model.seen_) == 2
    assert len(JUDGED) == 5
    assert model.early_stopping is True


def test_early_stopping_judges_by_people_who_are_not_trained_on(people):
    X, y = people
    model = train(Recorder(early_stopping=True, scores=(0.1, 0.2, 0.3)), X, y, weight=1e12)  # noise of 4e-7
    trained = {tuple(row) for copy in model.seen_ for row in copy.round(3)}
    judged = {tuple(row) for row in JUDGED[0][0].round(3)}
    assert (len(trained), len(judged)) == (40, 10)
    assert trained | judged == {tuple(row) for row in X.round(3)}
    for copy, labels in [*zip(model.seen_, model.labels_, strict=True), *JUDGED]:
        np.testing.assert_array_equal(labels, copy[:, 0] > 0)


def test_epochs_are_judged_under_the_same_noise(people):
    train(Recorder(early_stopping=True), *people)
    for judged, _ in JUDGED[1:]:
        np.testing.assert_array_equal(judged, JUDGED[0][0])


def test_one_epoch_for_a_model_without_max_iter(people):
    model = train(GaussianNB(), *people, n_copies=4)
    assert model.class_count_.sum() == 4 * 50


def test_a_model_without_partial_fit_gets_all_copies_at_once(people):
    X, y = people
    seen = []

    class Once(LogisticRegression):
        def fit(self, X, y):
            seen.append(X)
            return super().fit(X, y)

    train(Once(), X, y, n_copies=4)
    assert [copies.shape for copies in seen] == [(200, 3)]
    assert len(np.unique(seen[0][:, 0])) == 200


def test_the_last_step_of_a_pipeline_gets_fresh_noise(people):
    X, y = people
    model = train(make_pipeline(StandardScaler(), Recorder(max_iter=3)), X, y)
    scaler, recorder = model[0], model[-1]
    assert len(recorder.seen_) == 3
    copies = [scaler.inverse_transform(copy) - X for copy in recorder.seen_]
    assert not np.isclose(copies[0], copies[1]).any()
    # The scaler knows the noise as well: its variances are the sum of both.
    np.testing.assert_allclose(scaler.var_, X.var(axis=0) + 1 / (2 * np.pi), rtol=0.6)
    assert (scaler.var_ != X.var(axis=0)).all()


def test_a_pipeline_keeps_the_best_epoch_of_its_last_step(people):
    steps = StandardScaler(), Recorder(max_iter=9, n_iter_no_change=2, early_stopping=True, scores=(0.9, 0.1, 0.2))
    assert len(train(make_pipeline(*steps), *people)[-1].seen_) == 1


def test_a_pipeline_of_one_step_is_trained_by_epochs(people):
    assert len(train(make_pipeline(Recorder(max_iter=3)), *people)[-1].seen_) == 3


@pytest.mark.parametrize(
    "estimator",
    [
        MLPClassifier((8,), max_iter=5, early_stopping=True, random_state=0),
        MLPClassifier((8,), max_iter=5, random_state=0),
        SGDClassifier(max_iter=5, early_stopping=True, random_state=0),
        make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=5, early_stopping=True, random_state=0)),
    ],
    ids=["early stopping", "no early stopping", "linear", "pipeline"],
)
def test_training_is_determined_by_the_seeds(people, estimator):
    X, y = people
    first, same, other = (train(clone(estimator), X, y, seed=seed) for seed in (0, 0, 1))

    def weights(model):
        last = model[-1] if hasattr(model, "steps") else model
        return last.coefs_[0] if hasattr(last, "coefs_") else last.coef_

    np.testing.assert_array_equal(weights(first), weights(same))
    assert not np.array_equal(weights(first), weights(other))


def test_a_regressor_is_trained_by_epochs_too(people):
    X, _ = people
    model = MLPRegressor(hidden_layer_sizes=(8,), max_iter=4, early_stopping=True, random_state=0)
    fitted = train(model, X, X[:, 0], classes=None)
    assert fitted.predict(X).shape == (50,)


# What it is good for. The first feature tells the classes apart without error, by a gap of 2 * `margin`; the second
# one less surely. Under noise of 0.4 a small gap is of no use, which only training under noise can find out.


def gain_of_noisy_copies(margin):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=1500)
    sign = 2 * y - 1
    X = np.column_stack([margin * sign, sign + rng.normal(scale=0.7, size=len(y))])
    network = MLPClassifier((32,), learning_rate_init=0.01, max_iter=40, early_stopping=True, random_state=0)

    def confidence(augment):
        model = SmoothedClassifier(
            make_pipeline(StandardScaler(), network),
            metric=WeightedLp([1.0, 1.0], p=2),
            noise="gaussian",
            n_draws=300,
            augment=augment,
            random_state=0,
        ).fit(X[:1000], y[:1000])
        return model.predict_proba(X[1000:])[np.arange(500), y[1000:]].mean()

    return confidence(1) - confidence(0)


def test_training_on_noisy_copies_gains_confidence_under_noise():
    assert gain_of_noisy_copies(margin=0.05) > 0.2


def test_training_on_noisy_copies_gains_little_where_noise_hides_nothing():
    assert abs(gain_of_noisy_copies(margin=4.0)) < 0.05
