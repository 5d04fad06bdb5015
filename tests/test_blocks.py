"""People are answered in blocks and batches; no answer depends on where in them a person stands."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from likewise import (
    AdditiveClassifier,
    AdditiveRegressor,
    ProjectedClassifier,
    ProjectedRegressor,
    RecalibratedClassifier,
    SmoothedClassifier,
    SmoothedRegressor,
    TableMetric,
    ThresholdDecision,
    WeightedLp,
    base,
)
from likewise.additive import scorer as scorers
from likewise.projection import mcshane_whitney as envelopes
from likewise.projection import scorer as projected
from likewise.smoothing import scorers as smoothed

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = (X[:, 0] + 0.3 * RNG.normal(size=40) > 0).astype(int)
METRIC = WeightedLp([0.4, 0.2])
BLOCK = 4


def jump(rows):
    return (rows[:, 0] > rows[:, 1]).astype(int)


MODELS = {
    "additive": AdditiveClassifier(METRIC, penalty=0.01),
    "additive numbers": AdditiveRegressor(METRIC, penalty=0.01),
    "projection": ProjectedClassifier(LogisticRegression(), metric=METRIC, base=0.5),
    "projection of numbers": ProjectedRegressor(LinearRegression(), metric=METRIC, base=0.0),
    "formula": SmoothedClassifier(LogisticRegression(), metric=METRIC),
    "formula of a tree": SmoothedClassifier(DecisionTreeClassifier(max_depth=3), metric=METRIC),
    "splitting": SmoothedClassifier(jump, metric=METRIC, noise="splitting", n_draws=20, random_state=0),
    "draws": SmoothedClassifier(jump, metric=METRIC, noise="laplace", n_draws=20, random_state=0),
    "numbers": SmoothedRegressor(jump, metric=METRIC, noise="uniform", n_draws=20, random_state=0),
    "threshold": ThresholdDecision(AdditiveClassifier(METRIC, penalty=0.01)),
    "recalibrated": RecalibratedClassifier(AdditiveClassifier(METRIC, penalty=0.01), cv=2, random_state=0),
}


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(base, "BLOCK", BLOCK)
    monkeypatch.setattr(smoothed, "BLOCK", BLOCK)
    for module in (scorers, envelopes):
        monkeypatch.setattr(module, "_BLOCK", BLOCK)
    monkeypatch.setattr(projected, "BLOCK", 2 * BLOCK + 1)  # these are cut into those of the envelopes


@pytest.mark.parametrize("name", MODELS)
def test_every_person_of_every_block_has_the_answer_that_he_has_alone(name, small_blocks):
    model = MODELS[name].fit(X, Y)
    answer = model.predict_proba if hasattr(model, "classes_") else model.predict
    alone = np.concatenate([answer(X[[i]]) for i in range(3 * BLOCK)])
    for n in (BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 1, 2 * BLOCK + 2):
        np.testing.assert_allclose(answer(X[:n]), alone[:n], rtol=0, atol=1e-12)
        certificate = model.certify(X[:n])
        np.testing.assert_allclose(certificate.estimate, alone[:n].reshape(n, -1), rtol=0, atol=1e-12)
        if hasattr(model, "classes_"):
            assert model.decide(X[:n], random_state=0).shape == (n,)
            together = model.decide(X[:3], round="r", key=bytes(16))
            assert [*together] == [model.decide(X[[i]], round="r", key=bytes(16))[0] for i in range(3)]


def test_decisions_of_a_whole_block_and_one_more_have_their_law(small_blocks):
    """The one more is sure of another outcome than all the others."""
    model = SmoothedClassifier(jump, metric=METRIC, noise="uniform", n_draws=20, random_state=0).fit(X, Y)
    people = np.tile([-50.0, 50.0], (2 * BLOCK + 1, 1))
    people[-1] = 50.0, -50.0
    assert model.decide(people, random_state=0).tolist() == [0] * 2 * BLOCK + [1]


ZEROS = {
    **{name: model for name, model in MODELS.items() if "numbers" not in name},
    "table": SmoothedClassifier(
        lambda table: (table["a"] > table["b"]).to_numpy().astype(int),
        metric=TableMetric({"a": 0.4, "b": 0.2}, {"job": 0.1}, missing="category"),
        noise="gaussian",
        n_draws=20,
        random_state=0,
    ),
}


@pytest.mark.parametrize("name", ZEROS)
def test_zero_and_minus_zero_are_the_same_to_a_keyed_decision(name):
    """Its draw is a hash of the bytes of what the model may see."""
    people = np.array([[0.0, 0.0], [-0.0, -0.0], [0.0, -0.0], [0.5, 0.0]])
    if name == "table":
        fitted = ZEROS[name].fit(pd.DataFrame(X, columns=["a", "b"]).assign(job="x"), Y)
        seen = fitted.visible_rows(pd.DataFrame(people, columns=["a", "b"]).assign(job="x"))
    else:
        seen = ZEROS[name].fit(X, Y).visible_rows(people)
    rows = [row.tobytes() for row in np.ascontiguousarray(seen)]
    assert rows[0] == rows[1] == rows[2]
    assert rows[0] != rows[3]  # the control: another person is another row
