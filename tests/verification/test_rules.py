"""Bounds under rules between columns, against everybody of a small domain who keeps them, for every kind of model."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures

from likewise.verification.base import InputSpace
from likewise.verification.domain import CategoricalDomain, Domain, NumericDomain
from likewise.verification.search import Limits
from likewise.verification.upper_bound import upper_bound
from oracle import variation

LIMITS = Limits(None, 6000, 1e-6)
PRODUCTS = make_pipeline(PolynomialFeatures(2, interaction_only=True), LogisticRegression(max_iter=3000))

# Last step, number of classes (0: a number), and whether the bound is the truth and not only above it.
MODELS = {
    "boosting": (GradientBoostingClassifier(n_estimators=5, learning_rate=0.8, random_state=0), 2, True),
    "boosting of three": (GradientBoostingClassifier(n_estimators=3, learning_rate=0.8, random_state=0), 3, True),
    "logistic": (LogisticRegression(max_iter=3000), 2, True),
    "logistic of three": (LogisticRegression(max_iter=3000), 3, True),
    "line": (LinearRegression(), 0, True),
    "products": (PRODUCTS, 2, True),
    "products of three": (PRODUCTS, 3, True),
    "network": (MLPClassifier((4,), alpha=1.0, solver="lbfgs", max_iter=80, random_state=0), 2, False),
    "network of three": (MLPClassifier((4,), alpha=1.0, solver="lbfgs", max_iter=80, random_state=0), 3, False),
}
RULES = {"equal": ("a + b == both",), "order": ("b <= a",), "two": ("a + b == both", "a - 2 * b <= 1")}
COLUMNS = (["c"], ["a", "both"], ["b", "both"], ["a", "b", "c"])


def everybody(kind):
    people = [
        (a, b, both, c)
        for a, b, both, c in itertools.product(range(4), range(3), range(6), "xy")
        if (kind == "order" or a + b == both) and (kind != "order" or b <= a) and (kind != "two" or a - 2 * b <= 1)
    ]
    return pd.DataFrame(people, columns=["a", "b", "both", "c"]).astype(dict.fromkeys(("a", "b", "both"), float))


def space_of(kind, name, *, ruled=True):
    table, (last, n_classes, _) = everybody(kind), MODELS[name]
    rng = np.random.default_rng(len(table))
    y = np.arange(len(table)) * 7 % 11 % n_classes if n_classes else rng.normal(size=len(table))
    coded = make_column_transformer((OneHotEncoder(sparse_output=False), ["c"]), remainder="passthrough")
    model = make_pipeline(coded, last).fit(table, y)
    numbers = {each: NumericDomain(0, high, 1.0) for each, high in (("a", 3), ("b", 2), ("both", 5))}
    domain = Domain({**numbers, "c": CategoricalDomain(("x", "y"))}).with_rules(*(RULES[kind] if ruled else ()))
    return InputSpace.of(model, table, None, domain), table


def largest(space, table, columns):
    """The largest difference of two people who share all other columns."""
    outputs = space.outputs(space.rows)
    gaps = variation(2 * outputs if outputs.shape[1] > 1 else outputs)
    others = table.drop(columns=columns).to_numpy(dtype=str)
    return float(gaps[(others[:, None] == others[None]).all(axis=2)].max())


def proven(space, columns, limits=LIMITS):
    nobody = np.empty((0, len(space.names)))
    return upper_bound(space, [space.names.index(name) for name in columns], limits, (nobody, nobody))


@pytest.mark.filterwarnings("ignore:lbfgs failed")
@pytest.mark.parametrize("columns", COLUMNS, ids=" ".join)
@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize("name", MODELS)
def test_no_two_people_who_keep_the_rules_differ_by_more_than_is_proven(name, kind, columns):
    space, table = space_of(kind, name)
    truth, proof = largest(space, table, columns), proven(space, columns)
    assert proof.proven is not None, proof.how
    assert proof.proven >= truth
    assert "not used" not in proof.how
    if MODELS[name][2] and not (name.startswith("boosting") and kind == "two"):  # a cell keeps one rule at a time
        assert proof.proven <= truth + 2e-6


@pytest.mark.parametrize("name", ["logistic", "logistic of three", "products"])
@pytest.mark.parametrize("columns", [["c"], ["debt"]], ids=" ".join)
def test_rules_count_for_numbers_without_a_step(name, columns):
    """Income is debt and more, in total: draws of people who keep the rules are within the bound, and close to it."""
    rng, n = np.random.default_rng(0), 4000
    debt, more = rng.random((2, n)) * 10
    X = pd.DataFrame({"debt": debt, "more": more, "income": debt + more, "c": np.resize(["x", "y"], n)})
    last, n_classes, _ = MODELS[name]
    y = np.digitize(X["income"] + 3 * (X["c"] == "x") * (n_classes == 3) + rng.normal(size=n), [5, 12][: n_classes - 1])
    coded = make_column_transformer((OneHotEncoder(sparse_output=False), ["c"]), remainder="passthrough")
    model = make_pipeline(coded, last).fit(X, y)
    numbers = {each: NumericDomain(0, high) for each, high in (("debt", 10), ("more", 10), ("income", 20))}
    free = Domain({**numbers, "c": CategoricalDomain(("x", "y"))})
    ruled = free.with_rules("debt + more == income", "debt <= more")
    found = []
    for domain in (free, ruled):
        space = InputSpace.of(model, X[:300].query("debt <= more"), None, domain)
        found.append(proven(space, columns, Limits(None, 2000, 1e-3)).proven)
    inside = X[X["debt"] <= X["more"]]
    if columns == ["c"]:
        one, other = (model.predict_proba(inside.assign(c=c)) for c in "xy")
        truth = float(np.abs(one - other).sum(axis=1).max() / 2)
        assert found[1] <= truth + 0.05
    else:  # debt cannot differ alone
        truth = 0.0
    assert truth <= found[1] <= found[0] + 1e-9


@pytest.mark.filterwarnings("ignore:lbfgs failed")
@pytest.mark.parametrize("name", MODELS)
def test_control_rules_exclude_the_worst_pair_there_would_be_without_them(name):
    space, table = space_of("two", name)
    free, _ = space_of("two", name, ruled=False)
    columns = ["a", "b", "c"]
    assert proven(space, columns).proven < proven(free, columns).proven - 0.001
    assert proven(free, columns).proven >= largest(space, table, columns)
