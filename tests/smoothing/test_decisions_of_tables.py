"""`decide` of tables: each decision is the model's answer to one draw, with the law that `predict_proba` gives."""

import itertools

import numpy as np
import pandas as pd
import pytest

from chance import too_few, too_many
from likewise import SmoothedClassifier, TableMetric

N = 4000
METRIC = TableMetric({"x": 0.5}, {"c": 0.25, "d": 0.5, "hidden": 0.0}, missing={"x": 0.5})
# Whatever replaces a value comes from one of these four: of hidden, each is a value of its own.
PEOPLE = pd.DataFrame(
    {"x": [0.0, 0.0, 1.0, 1.0], "c": [*"aabb"], "d": [*"uvuv"], "hidden": ["first", "second", "third", "fourth"]}
)
Y = np.array([0, 1, 0, 1])


def fitted(rule, noise, n_draws):
    def answer(table):
        return np.asarray(rule(table)).astype(int)

    model = SmoothedClassifier(answer, metric=METRIC, noise=noise, n_draws=n_draws, batch=True, random_state=0)
    return model.fit(PEOPLE, Y)


def share(model, person):
    many = pd.concat([person] * N, ignore_index=True)
    return int((model.decide(many, random_state=1) == 1).sum())


@pytest.mark.parametrize("noise", ["splitting", "gaussian"])
@pytest.mark.parametrize("row", range(4))
def test_what_replaces_a_hidden_value_is_that_of_every_training_row_alike(noise, row):
    wanted = PEOPLE["hidden"][row]
    model = fitted(lambda table: table["hidden"] == wanted, noise, 64)
    count = share(model, PEOPLE.iloc[[0]])
    assert not too_many(count, N, 0.25)
    assert not too_few(count, N, 0.25)


@pytest.mark.parametrize("noise", ["splitting", "gaussian"])
@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        # The row that replaces has a in c twice of four times, and u in d likewise. Person 0 has a and u.
        (lambda t: t["c"] == "a", 0.25 + 0.75 * 0.5),
        (lambda t: t["d"] == "u", 0.5 + 0.5 * 0.5),
        # Kept or not, each by itself; one row replaces both: a and u stand together in one row of four.
        (
            lambda t: (t["c"] == "a") & (t["d"] == "u"),
            0.25 * 0.5 + 0.25 * 0.5 * 0.5 + 0.75 * 0.5 * 0.5 + 0.75 * 0.5 * 0.25,
        ),
        (lambda t: (t["c"] == "a") != (t["d"] == "u"), 0.625 + 0.75 - 2 * 0.46875),
    ],
)
def test_categories_are_kept_with_their_weights_each_by_itself(noise, rule, expected):
    model = fitted(rule, noise, 1024)
    if noise == "splitting":
        np.testing.assert_allclose(model.predict_proba(PEOPLE[:1])[0, 1], expected, atol=0.03)
        expected = model.predict_proba(PEOPLE[:1])[0, 1]
    count = share(model, PEOPLE.iloc[[0]])
    assert not too_many(count, N, expected)
    assert not too_few(count, N, expected)


@pytest.mark.parametrize("person", range(4))
@pytest.mark.parametrize("rule", [*itertools.product("ab", "uv")])
def test_numbers_and_categories_of_a_decision_are_of_the_same_draw(person, rule):
    """With few draws, the law of both together is not that of each times the other."""
    c, d = rule
    model = fitted(lambda t: (t["x"] > 0.4) & (t["c"] == c) & (t["d"] == d), "splitting", 8)
    expected = model.predict_proba(PEOPLE.iloc[[person]])[0, 1]
    count = share(model, PEOPLE.iloc[[person]])
    assert not too_many(count, N, expected)
    assert not too_few(count, N, expected)


@pytest.mark.parametrize("noise", ["splitting", "gaussian"])
def test_a_missing_number_is_told_with_its_weight_in_decisions_too(noise):
    """Kept as missing with probability 1/2, and replaced by a number that is there otherwise."""
    model = fitted(lambda t: t["x"].isna(), noise, 64)
    for x, expected in ((np.nan, 0.5), (0.0, 0.0)):
        count = share(model, PEOPLE.iloc[[0]].assign(x=x))
        assert not too_many(count, N, expected)
        assert not too_few(count, N, expected)
