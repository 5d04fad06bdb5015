"""The estimators: what they learn, promise, keep and refuse."""

import builtins
import sys
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification, make_moons
from sklearn.utils.estimator_checks import parametrize_with_checks

from climbing import Climb
from likewise import FunctionMetric, LipschitzClassifier, LipschitzRegressor, TableMetric, WeightedLp, attack
from likewise._guarantee_warnings import VacuousGuaranteeWarning
from likewise.io import load_model, save_model
from promised import falsified

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

pytestmark = pytest.mark.filterwarnings("ignore::likewise.VacuousGuaranteeWarning")

SMALL = {"hidden_layer_sizes": (16, 16), "n_steps": 300, "random_state": 0}
MOONS = make_moons(600, noise=0.1, random_state=0)
METRIC = WeightedLp([2.0, 2.0], p=2)


@parametrize_with_checks(
    [LipschitzClassifier(hidden_layer_sizes=(8,), n_steps=60), LipschitzRegressor(hidden_layer_sizes=(8,), n_steps=60)]
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VacuousGuaranteeWarning)
        check(estimator)


def excess(model, X, Y, bound):
    """Largest difference of outputs minus what is promised, over all pairs."""
    outputs = model.predict_proba if hasattr(model, "classes_") else lambda people: model.predict(people)[:, None]
    h, g = outputs(X), outputs(Y)
    share = 2 if hasattr(model, "classes_") else 1
    gaps = np.abs(h[:, None] - g[None]).sum(axis=-1) / share
    return float((gaps - bound).max())


@pytest.mark.parametrize("p", [1, 1.5, 2, np.inf])
@pytest.mark.parametrize(("link", "loss"), [("logistic", "log"), ("probit", "log"), ("clip", "hinge")])
def test_it_learns_what_is_not_linear_within_every_metric(p, link, loss):
    X, y = MOONS
    metric = WeightedLp([2.0, 2.0], p=p)
    model = LipschitzClassifier(metric, link=link, loss=loss, **SMALL).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.93  # the best line reaches 0.88
    assert model.guarantee_.level == "exact"
    assert model.guarantee_.epsilon == 0
    near = X + np.random.default_rng(0).normal(scale=0.03, size=X.shape)
    assert excess(model, X, near, model.guarantee_.bound(metric.pairwise(X, near))) <= 1e-12


def test_the_promise_is_kept_and_used_up():
    X, y = MOONS
    model = LipschitzClassifier(METRIC, link="clip", loss="hinge", **SMALL).fit(X, y)
    assert attack(model, METRIC, X, n_pairs=50_000, tolerance=1e-12, random_state=0).n_violations == 0
    # Control: a metric that is 5% smaller is broken.
    assert attack(model, METRIC.scaled(0.95), X, n_pairs=50_000, random_state=0).excess > 1e-3


@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_a_million_pairs_that_climb_by_gradients_keep_the_promise(p):
    X, y = MOONS
    metric = WeightedLp([2.0, 2.0], p=p)
    model = LipschitzClassifier(metric, link="clip", loss="hinge", **SMALL).fit(X, y)
    rng = np.random.default_rng(0)
    search = Climb(lambda rows: model.predict_proba(rows)[:, 1], metric, model.guarantee_.bound)
    assert search.most(rng.uniform(-2, 3, size=(10_000, 2)), rng, n_steps=30) <= 1e-12
    assert search.n_pairs > 1_000_000
    # Control: the promise is used up, so a last layer that is 5% too large is found by far fewer.
    layers = model.scorer_.layers
    steeper = replace(layers, weights=(*layers.weights[:-1], 1.05 * layers.weights[-1]))
    model.scorer_ = falsified(model.scorer_, layers=steeper)
    assert steeper.slope() > 1
    assert search.most(rng.uniform(-2, 3, size=(500, 2)), rng, n_steps=10) > 1e-4


def test_a_loose_metric_leaves_the_network_free_and_a_strict_one_binds_it():
    X, y = MOONS
    loose = LipschitzClassifier(METRIC.scaled(1000), **SMALL).fit(X, y)
    strict = LipschitzClassifier(METRIC.scaled(0.01), **SMALL).fit(X, y)
    assert loose.score(X, y) > 0.97
    assert loose.predict_proba(X).max() > 0.99
    assert np.ptp(strict.predict_proba(X)[:, 1]) < 0.1


def table(n=500, seed=0):
    rng = np.random.default_rng(seed)
    people = pd.DataFrame(
        {
            "income": rng.normal(50, 20, n),
            "age": rng.integers(18, 80, n).astype(float),
            "region": rng.choice(["north", "south", "west"], n),
            "race": rng.choice(["x", "y"], n),
            "zip": rng.normal(size=n),
        }
    )
    score = (people["income"] - 50) / 20 + np.where(people["region"] == "north", 1.0, -0.5)
    people.loc[rng.random(n) < 0.15, "income"] = np.nan
    people.loc[rng.random(n) < 0.1, "region"] = None
    return people, (score + 0.5 * rng.normal(size=n) > 0).astype(int)


TABLE = TableMetric(
    {"income": 0.02, "age": 0.005, "zip": 0}, {"region": 0.4, "race": 0}, missing={"income": 0.2}, units={"income": "$"}
)


def test_columns_of_weight_0_are_never_read_nor_needed():
    people, y = table()
    model = LipschitzClassifier(TABLE, **SMALL).fit(people, y)
    scores = model.predict_proba(people)
    other = people.assign(race="z", zip=np.nan)
    assert np.array_equal(model.predict_proba(other), scores)
    assert np.array_equal(model.predict_proba(people.drop(columns=["race", "zip"])), scores)
    assert model.visible_rows(people).tobytes() == model.visible_rows(other).tobytes()
    # Nor in training.
    again = LipschitzClassifier(TABLE, **SMALL).fit(people.assign(zip=0.0, race="x"), y)
    assert np.array_equal(again.predict_proba(people), scores)


def test_an_unseen_category_lies_between_the_seen_ones():
    metric = TableMetric({}, {"region": 0.5})
    people = pd.DataFrame({"region": ["n", "s"] * 50})
    model = LipschitzClassifier(metric, **SMALL).fit(people, [0, 1] * 50)
    n, s, other = model.predict_proba(pd.DataFrame({"region": ["n", "s", "e"]}))[:, 1]
    assert s - n > 0.9 * np.tanh(0.5)
    assert n < other < s


def test_a_missing_number_keeps_its_distance():
    metric = TableMetric({"income": 1.0}, missing={"income": 0.1})
    people = pd.DataFrame({"income": np.linspace(-1, 1, 200)})
    people.loc[::4, "income"] = np.nan
    model = LipschitzClassifier(metric, **SMALL).fit(people, (people["income"] > 0).astype(int))
    h = model.predict_proba(pd.DataFrame({"income": [-1.0, np.nan, 1.0]}))[:, 1]
    # As far as is allowed, and no further: values on both sides, each within tanh(0.1) of the missing one.
    assert np.abs(h - h[1]).max() <= np.tanh(0.1) + 1e-12
    assert h[2] - h[0] > 1.8 * np.tanh(0.1)


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_several_classes(loss):
    X, y = make_classification(600, 4, n_informative=4, n_redundant=0, n_classes=3, class_sep=2, random_state=0)
    labels = np.array(["a", "b", "c"])[y]
    metric = WeightedLp(np.full(4, 0.5), p=2)
    model = LipschitzClassifier(metric, loss=loss, **SMALL).fit(X, labels)
    assert model.score(X, labels) > 0.8
    assert list(model.classes_) == ["a", "b", "c"]
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1)
    near = X + np.random.default_rng(0).normal(scale=0.1, size=X.shape)
    assert excess(model, X, near, np.tanh(metric.pairwise(X, near))) <= 1e-12


def test_regression_has_the_slope_that_the_metric_allows():
    X = np.linspace(0, 1, 300)[:, None]
    model = LipschitzRegressor(WeightedLp([0.5]), **SMALL).fit(X, 10 * X[:, 0])
    low, high = model.predict([[0.0], [1.0]])
    assert (low, high) == pytest.approx((2.5, 7.5), abs=0.1)  # half the slope of the data
    metric = model.guarantee_.metric
    assert excess(model, X, X, model.guarantee_.bound(metric.pairwise(X))) <= 1e-12
    assert model.guarantee_.output_range == (0.0, 10.0)


def test_predictions_stay_in_the_range_that_was_asked_for():
    X, y = MOONS
    model = LipschitzRegressor(METRIC.scaled(100), output_range=(0.25, 0.75), **SMALL).fit(X, y.astype(float))
    found = model.predict(X)
    assert found.min() == 0.25
    assert found.max() == 0.75


@pytest.mark.parametrize("model", [LipschitzClassifier(METRIC, **SMALL), LipschitzRegressor(METRIC, **SMALL)])
def test_the_same_seed_gives_the_same_bits_and_leaves_torch_as_it_was(model):
    X, y = MOONS
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    first = model.fit(X, y).predict(X)
    assert torch.rand(1) == expected
    assert not torch.are_deterministic_algorithms_enabled()
    assert np.array_equal(model.fit(X, y).predict(X), first)
    assert not np.array_equal(model.set_params(random_state=1).fit(X, y).certify(X).estimate, first)
    model.set_params(random_state=0)


def test_order_repetition_and_weight_are_the_same():
    X, y = MOONS
    model = LipschitzClassifier(METRIC, **SMALL)
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = model.fit(X, y, sample_weight=weights).predict_proba(X)
    repeated = model.fit(np.repeat(X, weights, axis=0)[::-1], np.repeat(y, weights)[::-1]).predict_proba(X)
    assert np.array_equal(weighted, repeated)
    assert not np.array_equal(model.fit(X, y).predict_proba(X), weighted)


def test_weights_move_the_model():
    X, y = MOONS
    mean = [
        LipschitzClassifier(METRIC, **SMALL).fit(X, y, np.where(y == 1, weight, 1.0)).predict_proba(X)[:, 1].mean()
        for weight in (0.1, 10.0)
    ]
    assert mean[1] - mean[0] > 0.2


def test_training_stops_where_people_held_out_do_not_gain(monkeypatch):
    # Outcomes are coin tosses: whatever is learned from some people is wrong for others.
    from likewise.lipschitz import training

    steps = []
    monkeypatch.setattr(
        training.Parameters, "project", lambda self, inner=training.Parameters.project: (steps.append(1), inner(self))
    )
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 5)), rng.integers(0, 2, 400)
    model = LipschitzClassifier(
        WeightedLp(np.full(5, 5.0)), hidden_layer_sizes=(64, 64), n_steps=600, random_state=0
    ).fit(X, y)
    assert len(steps) < 500
    assert np.abs(model.predict_proba(X)[:, 1] - 0.5).mean() < 0.25  # all the way, it would be sure of everyone


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_saved_model_scores_without_torch(tmp_path, monkeypatch, n_classes):
    people, y = table()
    y = y + (people["age"].to_numpy() > 60) if n_classes == 3 else y
    model = LipschitzClassifier(TABLE, **SMALL).fit(people, y)
    save_model(model, tmp_path / "model.skops")
    without_torch(monkeypatch)
    loaded = load_model(tmp_path / "model.skops")
    assert np.array_equal(loaded.predict_proba(people), model.predict_proba(people))
    assert loaded.guarantee_.statement == model.guarantee_.statement
    assert np.array_equal(loaded.decide(people, random_state=0), model.decide(people, random_state=0))


def without_torch(monkeypatch):
    inner = builtins.__import__

    def no_torch(name, *args, **kwargs):
        if name.split(".")[0] == "torch":
            raise ImportError(name)
        return inner(name, *args, **kwargs)

    for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", no_torch)


@pytest.mark.parametrize("estimator", [LipschitzClassifier, LipschitzRegressor])
def test_without_torch_training_says_what_to_install(monkeypatch, estimator):
    without_torch(monkeypatch)
    with pytest.raises(ImportError, match=r"pip install 'likewise\[torch\]'"):
        estimator(METRIC).fit(*MOONS)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"hidden_layer_sizes": (0,)}, "hidden_layer_sizes must be a tuple of one or more sizes"),
        ({"hidden_layer_sizes": (16, 2.5)}, "hidden_layer_sizes must be a tuple of one or more sizes"),
        ({"hidden_layer_sizes": ()}, "hidden_layer_sizes must be a tuple of one or more sizes"),
        ({"hidden_layer_sizes": 128}, "hidden_layer_sizes must be a tuple of one or more sizes"),
        ({"link": "tanh"}, "link must be 'logistic', 'probit' or 'clip'; got 'tanh'"),
        ({"loss": "squared"}, "loss must be 'log' or 'hinge'; got 'squared'"),
        ({"link": "clip"}, "loss must be 'hinge' for link='clip'"),
        ({"n_steps": 0}, "n_steps must be a whole number >= 1; got 0"),
    ],
)
def test_wrong_parameters_are_named_and_leave_nothing_behind(wrong, message):
    model = LipschitzClassifier(METRIC, **{**SMALL, **wrong})
    with pytest.raises(ValueError, match=message):
        model.fit(*MOONS)
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("link", ["probit", "clip"])
def test_several_classes_need_the_logistic_link(link):
    X, _ = MOONS
    with pytest.raises(ValueError, match="link must be 'logistic' for more than two classes"):
        LipschitzClassifier(METRIC, link=link, loss="hinge").fit(X, np.arange(len(X)) % 3)


def test_a_distance_without_weights_is_refused():
    X, y = MOONS
    metric = FunctionMetric(lambda a, b: np.abs(a - b).sum(axis=1))
    with pytest.raises(TypeError, match="metric must have a weight for each column"):
        LipschitzClassifier(metric).fit(X, y)


def test_a_metric_under_which_nothing_matters_gives_everyone_the_same():
    X, y = MOONS
    model = LipschitzClassifier(WeightedLp([0.0, 0.0]), **SMALL).fit(X, y)
    assert len(np.unique(model.predict_proba(X)[:, 1])) == 1
    assert model.predict_proba(X)[0, 1] == pytest.approx(y.mean(), abs=0.05)


@pytest.mark.parametrize("hidden", [(1,), (3,), (5, 3, 7)])
def test_odd_and_tiny_layers_work(hidden):
    X, y = MOONS
    model = LipschitzClassifier(METRIC, hidden_layer_sizes=hidden, n_steps=200, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.7
    assert excess(model, X, X, model.guarantee_.bound(METRIC.pairwise(X))) <= 1e-12
