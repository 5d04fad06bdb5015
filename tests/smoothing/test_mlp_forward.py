"""The fast forward pass: the network it was read from, to float32, and the same bits in any batch."""

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from chance import PER_CHECK
from likewise import SmoothedClassifier, SmoothedRegressor, WeightedLp
from likewise.smoothing import mlp_forward
from likewise.smoothing.mlp_forward import TILE, Network, NetworkVotes

X, Y = make_classification(300, 6, n_informative=4, n_redundant=0, random_state=0)
METRIC = WeightedLp([1.0, 0.5, 0.0, 1.0, 2.0, 1.0])


def trained(model, y=Y, data=X):
    with pytest.warns(ConvergenceWarning):
        return model.fit(data, y)


def smoothed(model, noise, vote="hard", n_draws=2 * TILE + 100, n_jobs=None, y=Y):
    return SmoothedClassifier(
        model, metric=METRIC, noise=noise, vote=vote, n_draws=n_draws, random_state=0, n_jobs=n_jobs
    ).fit(X, y)


@pytest.mark.parametrize("noise", ["gaussian", "splitting"])
@pytest.mark.parametrize("vote", ["hard", "soft"])
@pytest.mark.parametrize("hidden", [(16,), (32, 16), (16, 24, 8)])
@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic", "identity"])
def test_mlp_votes_are_those_of_the_model(activation, hidden, vote, noise):
    net = trained(MLPClassifier(hidden, activation=activation, max_iter=15, random_state=0))
    fast = smoothed(FrozenEstimator(net), noise, vote).predict_proba(X[:20])
    plain = net.predict if vote == "hard" else net.predict_proba
    slow = smoothed(lambda rows: plain(rows), noise, vote).predict_proba(X[:20])
    # Rounding to float32 can turn a vote only where the classes tie to 1e-6: none of 20,000 here.
    np.testing.assert_allclose(fast, slow, atol=0 if vote == "hard" else 1e-5)


@pytest.mark.parametrize("vote", ["hard", "soft"])
def test_several_classes_behind_a_scaler(vote):
    A, b = make_classification(300, 6, n_informative=4, n_classes=4, random_state=0)
    net = make_pipeline(StandardScaler(), MLPClassifier((16, 16), max_iter=15, random_state=0))
    with pytest.warns(ConvergenceWarning):
        net.fit(1e6 + 10 * A, b)
    metric = WeightedLp(np.ones(6) / 10)
    options = {"metric": metric, "noise": "gaussian", "vote": vote, "n_draws": 1000, "random_state": 0}
    fast = SmoothedClassifier(FrozenEstimator(net), **options).fit(1e6 + 10 * A, b).predict_proba(1e6 + 10 * A[:20])
    plain = net.predict if vote == "hard" else net.predict_proba
    slow = SmoothedClassifier(lambda r: plain(r), **options).fit(1e6 + 10 * A, b).predict_proba(1e6 + 10 * A[:20])
    np.testing.assert_allclose(fast, slow, atol=1.5e-3 if vote == "hard" else 1e-5)


def test_hard_votes_of_one_unit_change_where_its_score_is_0():
    """The last layer alone, compiled: a score above 0 is a vote for the second class, however small it is."""
    from likewise.smoothing.kernels import HARD, IDENTITY, output_votes

    for score, expected in ((1e-3, [0, 1]), (0.04, [0, 1]), (0.0, [1, 0]), (-1e-3, [1, 0])):
        total, squares = np.zeros(2), np.zeros(2)
        z, one, none = np.full((1, 1), score, np.float32), np.ones((1, 1), np.float32), np.zeros(1, np.float32)
        output_votes(z, none, IDENTITY, one, none, HARD, 0.0, 1.0, total, squares)
        assert total.tolist() == squares.tolist() == expected


@pytest.mark.parametrize("noise", ["uniform", "splitting"])
def test_regression(noise):
    net = trained(MLPRegressor(hidden_layer_sizes=(16, 16), max_iter=15, random_state=0), y=X[:, 0] * 100)
    options = {"metric": METRIC, "noise": noise, "n_draws": 1000, "random_state": 0, "output_range": (-20, 20)}
    fast = SmoothedRegressor(FrozenEstimator(net), **options).fit(X, Y.astype(float)).predict(X[:20])
    slow = SmoothedRegressor(lambda r: net.predict(r), **options).fit(X, Y.astype(float)).predict(X[:20])
    np.testing.assert_allclose(fast, slow, atol=1e-4)


@pytest.mark.parametrize("noise", ["gaussian", "splitting"])
@pytest.mark.parametrize("vote", ["hard", "soft"])
def test_bits_depend_on_the_person_alone(noise, vote):
    net = FrozenEstimator(trained(MLPClassifier((32, 32), max_iter=5, random_state=0)))
    one_thread = smoothed(net, noise, vote, n_jobs=1)
    h = one_thread.predict_proba(X)
    np.testing.assert_array_equal(h, smoothed(net, noise, vote, n_jobs=4).predict_proba(X))
    for size in (1, 2, 7):
        parts = [one_thread.predict_proba(X[a : a + size]) for a in range(0, 42, size)]
        np.testing.assert_array_equal(h[:42], np.concatenate(parts))
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_array_equal(h[order], one_thread.predict_proba(X[order]))


def test_under_splitting_people_in_the_same_cells_get_the_same_bits():
    net = FrozenEstimator(trained(MLPClassifier((32, 32), max_iter=5, random_state=0)))
    model = smoothed(net, "splitting", "soft")
    h = model.predict_proba(X)[:, 1]
    cells = model.scorer_.perturbation
    K, D = cells.n_draws, METRIC.pairwise(X)
    n_diff = (X[:, None] != X)[..., cells.noise.visible].sum(axis=2)
    assert (np.abs(h[:, None] - h) <= D + n_diff / K + 1e-12).all()
    moved = X + np.where(METRIC.weights > 0, 1e-13, 5.0)  # within the same cells, but for one in 10^10
    same = (cells.prepare(moved) == cells.prepare(X)).all(axis=1)
    assert same.mean() > 0.9
    np.testing.assert_array_equal(h[same], model.predict_proba(moved)[same, 1])


def test_noise_small_next_to_the_value_is_not_lost():
    """At 1e8, float32 has steps of 8: noise of 0.01 must still reach the network."""
    data = np.array([[1e8 - 0.5], [1e8 + 0.5]] * 20)
    net = Network(
        [np.array([[1.0, -1.0]]), np.array([[1.0], [-1.0]])], [np.array([-1e8, 1e8]), np.zeros(1)], "relu", "hard", 2
    )
    mlp = trained(MLPClassifier((2,), max_iter=1, random_state=0), y=[0, 1] * 20, data=data)
    mlp.coefs_, mlp.intercepts_ = net.weights, net.biases
    model = SmoothedClassifier(
        FrozenEstimator(mlp), metric=WeightedLp([10.0]), noise="gaussian", n_draws=4000, random_state=0
    ).fit(data, [0, 1] * 20)
    h = model.predict_proba([[1e8 - 0.02], [1e8], [1e8 + 0.02]])[:, 1]
    assert h[0] < h[1] < h[2]
    assert abs(h[1] - 0.5) < 0.05


def test_the_wrong_number_of_outputs_is_named():
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 5))
    with pytest.raises(ValueError, match="one output per class"):
        smoothed(net, "gaussian")
    strange = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2))
    with pytest.raises(TypeError, match="BatchNorm1d"):
        smoothed(strange, "gaussian")


@pytest.mark.parametrize("n_units", [1, 2])
@pytest.mark.parametrize("noise", ["gaussian", "splitting"])
def test_torch_sequential(n_units, noise):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, n_units)
    )

    def by_torch(rows):
        with torch.no_grad():
            z = net.double()(torch.as_tensor(rows)).numpy()
        return (z[:, 0] > 0).astype(int) if n_units == 1 else z.argmax(axis=1)

    fast = smoothed(net, noise)
    slow = smoothed(by_torch, noise)
    np.testing.assert_array_equal(fast.predict_proba(X[:20]), slow.predict_proba(X[:20]))
    np.testing.assert_array_equal(fast.decide(X, random_state=0), slow.decide(X, random_state=0))
    soft = smoothed(net, noise, "soft").predict_proba(X[:5])
    np.testing.assert_allclose(soft.sum(axis=1), 1)


def test_a_torch_regressor():
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    model = SmoothedRegressor(net, metric=METRIC, n_draws=500, output_range=(-1, 1)).fit(X, Y.astype(float))
    assert np.abs(model.predict(X[:5])).max() <= 1


FAR_APART = {  # weights into two hidden units, and out of them: the score is 2^-k relu(2^k x) + relu(x) / 2 - 1.5
    f"2^{k}": ([[2.0**k, 1.0]], [[2.0**-k], [0.5]]) for k in (70, 100, 200)
}


def network_far_apart(name):
    X = np.linspace(-3, 3, 60)[:, None]
    net = trained(MLPClassifier((2,), max_iter=1, random_state=0), (X[:, 0] > 0).astype(int), X)
    net.coefs_ = [np.array(part) for part in FAR_APART[name]]
    net.intercepts_ = [np.zeros(2), np.array([-1.5])]
    model = SmoothedClassifier(
        FrozenEstimator(net), metric=WeightedLp([1.0]), noise="gaussian", random_state=0, n_draws=20_000
    )
    return model.fit(X, (X[:, 0] > 0).astype(int))


def error_far_apart(model, x):
    # The score, 1.5 x - 1.5 above 0, is positive where x + t > 1, so h = Phi((x - 1) / sigma).
    exact = ndtr((x - 1) * np.sqrt(2 * np.pi))
    drawn = model.decide(np.repeat(x, 20_000)[:, None], random_state=1).reshape(len(x), -1).mean(axis=1)
    return np.abs(model.predict_proba(x[:, None])[:, 1] - exact).max(), np.abs(drawn - exact).max()


# Hoeffding for 20,000 draws, at the suite's rate of false alarms per check.
FAR_MARGIN = np.sqrt(np.log(2 / PER_CHECK) / 2 / 20_000)


@pytest.mark.parametrize("name", FAR_APART)
def test_hidden_units_of_any_size_have_the_votes_of_the_model_and_so_have_its_decisions(name):
    x = np.array([-1.0, 0.7, 1.0, 1.5])
    assert max(error_far_apart(network_far_apart(name), x)) <= FAR_MARGIN


def test_control_weights_that_are_lost_beside_huge_units_are_found_out(monkeypatch):
    monkeypatch.setattr(mlp_forward, "with_outputs_of_one_size", lambda net: net)
    monkeypatch.setattr(mlp_forward, "_single", lambda W: np.where(np.abs(W) < 2.0**-60, 0, W).astype(np.float32))
    assert error_far_apart(network_far_apart("2^70"), np.array([1.0, 1.5]))[0] > 0.3


@pytest.mark.parametrize("kind", ["soft", "hard"])
@pytest.mark.parametrize("activation", ["relu", "identity", "tanh", "logistic"])
def test_rows_that_overflow_float32_have_votes(activation, kind):
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=shape) * 1e3 for shape in [(2, 8), (8, 8), (8, 3)]]
    net = Network(weights, [rng.normal(size=n) for n in (8, 8, 3)], activation, kind, 3)
    rows = rng.normal(size=(50, 2)) * 10.0 ** rng.integers(0, 100, (50, 1))
    votes = NetworkVotes(net).vote(rows)
    np.testing.assert_allclose(votes.sum(axis=1), 1, rtol=0, atol=1e-12)
    moderate = np.abs(rows).max(axis=1) < 1e10
    np.testing.assert_allclose(votes[moderate], net.vote(rows)[moderate], rtol=0, atol=1e-4)
