"""Bounds of ReLU networks inside every layer and box, and which networks have none; `test_small_domains` has more."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from likewise.auditing.effect import effect
from likewise.verification.base import InputSpace
from likewise.verification.network_bounds import _NetworkBoxes
from likewise.verification.network_model import NetworkModel
from small_domain import EVERYBODY, brute_force, one_hot, outputs, people


def network(*sizes, kind="two", seed=0, **options):
    X, y = people(seed, kind=kind)
    last = (MLPRegressor if kind == "number" else MLPClassifier)(
        hidden_layer_sizes=sizes, max_iter=150, random_state=seed, tol=0, **options
    )
    return make_pipeline(one_hot(), last).fit(X, y), X


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_the_worst_pair_is_found():
    model, X = network(5, 5)
    truth, result = brute_force(model, ["sex"]), effect(model, X, "sex", max_seconds=None, max_boxes=500)
    assert result.found == pytest.approx(truth, abs=1e-9)
    assert truth <= result.proven <= truth + 0.15


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("blank", [True, False])
def test_numbers_that_are_coded_one_by_one_are_looked_at_one_by_one(blank):
    rng = np.random.default_rng(0)
    for n_values, is_read in ((20, True), (80, False)):
        X = pd.DataFrame({"number": np.arange(400.0) % n_values, "other": rng.normal(size=400)})
        y = X["number"] == 3
        X.loc[:5, "number"] = np.nan if blank else 0.0
        coded = make_column_transformer(
            (make_pipeline(SimpleImputer(), OneHotEncoder()), ["number"]), remainder="passthrough"
        )
        model = make_pipeline(coded, MLPClassifier((4,), max_iter=100, random_state=0)).fit(X, y)
        result = effect(model, X, "number", max_boxes=200)
        assert (result.proven is not None) == is_read
        assert is_read or "are coded one by one" in result.how
        if is_read:
            everybody = pd.DataFrame({"number": np.tile(np.arange(20.0), 41), "other": np.repeat(X["other"][:41], 20)})
            assert brute_force(model, ["number"], everybody) <= result.proven


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_a_number_and_its_clipped_copy_do_not_add_up_to_a_line():
    X = pd.DataFrame({"number": np.linspace(0, 1, 500)})
    clipped = make_pipeline(MinMaxScaler(clip=True))
    coded = make_column_transformer(("passthrough", ["number"]), (clipped, ["number"]))
    model = make_pipeline(coded, MLPClassifier((4,), max_iter=50, random_state=0)).fit(X, X["number"] > 0.5)
    assert "are coded one by one" in effect(model, X, "number").how
    alone = make_pipeline(clipped, MLPClassifier((4,), max_iter=50, random_state=0)).fit(X, X["number"] > 0.5)
    assert effect(alone, X, "number").proven is not None


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("seed", range(4))
def test_every_box_has_a_bound_that_holds(seed):
    """Random boxes, each against all of its people."""
    model, X = network(7, 7, seed=seed)
    read = NetworkModel.read(InputSpace.of(model, X))
    bounder = _NetworkBoxes(read, [1])
    rng, scores = np.random.default_rng(seed), outputs(model, EVERYBODY)[:, 1]
    codes = np.column_stack(
        [EVERYBODY[name].map({v: i for i, v in enumerate(sorted(EVERYBODY[name].unique()))}) for name in EVERYBODY]
    )
    for _ in range(60):
        box = rng.random(int(bounder.start[-1])) < 0.6
        for a, b in zip(bounder.start[:-1], bounder.start[1:], strict=True):
            box[rng.integers(a, b)] = True
        names = list(zip(bounder.variables.column, bounder.variables.side, strict=True))
        sets = {
            each: set(np.flatnonzero(box[a:b]))
            for each, a, b in zip(names, bounder.start[:-1], bounder.start[1:], strict=True)
        }
        inside = np.array([all(row[c] in sets[c, 2] for c in (0, 2, 3)) for row in codes])
        worst = -1.0
        for i in np.flatnonzero(inside):
            same = inside & (codes[:, [0, 2, 3]] == codes[i, [0, 2, 3]]).all(axis=1)
            for j in np.flatnonzero(same):
                if codes[i, 1] in sets[1, 0] and codes[j, 1] in sets[1, 1]:
                    worst = max(worst, scores[j] - scores[i])
        assert bounder.bound(box)[0] >= worst


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_control_a_bound_that_forgets_a_unit_is_found_out():
    model, X = network(8, 8)
    truth = brute_force(model, ["sex"])
    read = NetworkModel.read(InputSpace.of(model, X))
    assert _NetworkBoxes(read, [1]).bound(np.ones(16, dtype=bool))[0] >= truth
    for weights in read.weights:
        weights[:4] = 0
    assert _NetworkBoxes(read, [1]).bound(np.ones(16, dtype=bool))[0] < truth


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_more_boxes_bring_the_bound_down():
    model, X = network(8, 8)
    few, many = (effect(model, X, "sex", max_seconds=None, max_boxes=n).proven for n in (1, 500))
    assert many < few
    again = effect(model, X, "sex", max_seconds=None, max_boxes=500)
    assert again.proven == many


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_other_activations_have_no_bound():
    model, X = network(4, activation="tanh")
    result = effect(model, X, "sex")
    assert result.proven is None
    assert "tanh" in result.how


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_a_bound_below_what_was_found_is_no_proof(monkeypatch):
    model, X = network(6)
    assert effect(model, X, "sex", max_boxes=100).proven is not None
    bound = _NetworkBoxes.bound
    monkeypatch.setattr(_NetworkBoxes, "bound", lambda self, box: (bound(self, box)[0] / 10, np.ones(6)))
    result = effect(model, X, "sex", max_boxes=100)
    assert result.proven is None
    assert "exceed what follows from its parts" in result.how
