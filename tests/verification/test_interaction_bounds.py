"""Bounds of linear models of products of columns, against everybody of a small domain and draws of a large one."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from likewise.auditing.effect import effect
from likewise.verification.base import InputSpace
from likewise.verification.interaction_bounds import InteractionModel, prove_interactions
from likewise.verification.search import Limits
from small_domain import EVERYBODY, brute_force, one_hot, outputs, people

LIMITS = Limits(None, 2000, 1e-6)
COLUMNS = (["sex"], ["age"], ["income"], ["region", "sex"])


def of_products(seed, degree=2, kind="two", **options):
    X, y = people(seed, kind=kind)
    last = LinearRegression() if kind == "number" else LogisticRegression(C=10, max_iter=3000)
    products = PolynomialFeatures(degree, **{"interaction_only": True, **options})
    return make_pipeline(one_hot(), products, StandardScaler(), last).fit(X, y), X


@pytest.mark.parametrize("columns", COLUMNS, ids=" ".join)
@pytest.mark.parametrize("kind", ["two", "number"])
@pytest.mark.parametrize("options", [{}, {"degree": 3}, {"interaction_only": False}], ids=str)
def test_the_bound_is_the_worst_pair_there_is(columns, kind, options):
    model, X = of_products(1, kind=kind, **options)
    truth, result = brute_force(model, columns), effect(model, X, columns, tolerance=1e-6)
    assert result.found == pytest.approx(truth, abs=1e-6)
    assert truth <= result.proven <= truth + 2e-6
    assert "sum of products of columns" in result.how


@pytest.mark.parametrize("columns", COLUMNS, ids=" ".join)
def test_three_classes_have_a_bound(columns):
    model, X = of_products(0, kind="three")
    truth, result = brute_force(model, columns), effect(model, X, columns)
    assert truth <= result.proven < 1
    assert result.found == pytest.approx(truth, abs=1e-6)


def test_a_search_that_is_cut_short_has_a_bound_that_holds():
    model, X = of_products(2)
    read, truth = InteractionModel.read(InputSpace.of(model, X)), brute_force(model, ["region", "sex"])
    proven = [prove_interactions(read, [1, 2], Limits(None, n, 1e-6)).proven for n in (1, 10, 20, 2000)]
    assert proven == sorted(proven, reverse=True)
    assert truth <= proven[-1] < proven[0]


def test_control_a_bound_without_an_interaction_is_found_out():
    model, X = of_products(2)
    read, truth = InteractionModel.read(InputSpace.of(model, X)), brute_force(model, ["sex"])
    assert prove_interactions(read, [1], LIMITS).proven >= truth
    fewer = {group: 0 * table if group == (1, 2) else table for group, table in read.tables.items()}
    assert prove_interactions(replace(read, tables=fewer), [1], LIMITS).proven < truth


@pytest.mark.parametrize("blank", [False, True])
def test_ranges_of_numbers_are_cut_until_the_bound_is_close(blank):
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(400, 3)) * [1, 10, 1e4], columns=["a", "b", "c"]).assign(
        s=rng.integers(0, 2, 400)
    )
    y = X["a"] + X["b"] / 10 * X["s"] - X["c"] / 1e4 * X["a"] + rng.normal(size=400) > 0
    if blank:
        X.loc[::9, "a"] = np.nan
    steps = SimpleImputer(), StandardScaler(), PolynomialFeatures(2, interaction_only=True), LogisticRegression()
    model = make_pipeline(*steps).fit(X, y)
    low, high = X.min(), X.max()
    many = pd.DataFrame({name: rng.uniform(low[name], high[name], 20_000) for name in X})
    many.loc[::7, "a"] = np.nan if blank else 0.0
    for column, ends in (("s", (0, 1)), ("c", (low["c"], high["c"])), ("a", (low["a"], high["a"]))):
        one, other = (outputs(model, many.assign(**{column: end}))[:, 1] for end in ends)
        result = effect(model, X, column, tolerance=1e-3, max_boxes=3000)
        assert np.abs(one - other).max() <= result.proven <= result.found + 0.005


def test_an_order_in_front_of_a_linear_model_is_read():
    X, y = people(5)
    coded = make_column_transformer((OrdinalEncoder(), ["sex", "region"]), remainder="passthrough")
    model = make_pipeline(coded, LogisticRegression(max_iter=1000)).fit(X, y)
    truth, result = brute_force(model, ["region"]), effect(model, X, "region", tolerance=1e-6)
    assert truth <= result.proven <= truth + 2e-6


def test_what_is_not_read_says_why():
    X, y = people(6)
    squares = make_pipeline(one_hot(), PolynomialFeatures(2), LogisticRegression(max_iter=1000)).fit(X, y)
    assert effect(squares, X, "sex").proven is not None
    X["income"] += np.random.default_rng(0).normal(size=len(X))
    assert "the score is not linear in 'income'" in effect(squares, X, "sex").how
    trees = make_pipeline(one_hot(), PolynomialFeatures(2), DecisionTreeClassifier()).fit(X, y)
    assert "in front of linear models only, not DecisionTreeClassifier" in effect(trees, X, "sex").how


def test_one_hot_columns_of_the_table_are_one_column():
    """A model of products of 0/1 columns that sum to 1: everybody has exactly one of them."""
    X, y = people(7)
    bits = pd.get_dummies(EVERYBODY, columns=["sex", "region"], dtype=float)
    X = pd.get_dummies(X, columns=["sex", "region"], dtype=float)
    model = make_pipeline(PolynomialFeatures(2, interaction_only=True), LogisticRegression(C=10, max_iter=3000)).fit(
        X, y
    )
    columns = ["sex_f", "sex_m"]
    truth, result = brute_force(model, columns, bits), effect(model, X, "sex_f", tolerance=1e-6)
    assert result.columns == columns
    assert truth <= result.proven <= truth + 2e-6


@pytest.mark.parametrize("n_values", [5, 201])
def test_a_worst_pair_of_three_classes_between_the_corners_is_within_the_bound_and_control(n_values):
    """Probabilities (.5, .5, 0) and (0, .5, .5) at the ends of x, (0, 1, 0) between, and (.5, 0, .5) if z is 1."""
    x = np.linspace(0, 1, n_values).round(3)
    X = pd.DataFrame({"x": np.resize(x, 402), "z": np.arange(402) // 201.0})
    model = make_pipeline(PolynomialFeatures(2, interaction_only=True), LogisticRegression()).fit(X, np.arange(402) % 3)
    # Features: 1, x, z, x z.
    coef = [[0, -20, 0, 20], [0, 0, -20, 0], [0, 20, 20, -20]]
    model[-1].coef_, model[-1].intercept_ = np.array(coef, dtype=float), np.array([0.0, 0.0, -20.0])
    everybody = pd.DataFrame([(a, b) for a in x for b in (0.0, 1.0)], columns=["x", "z"])
    corners = everybody[everybody["x"].isin([0.0, 1.0])]

    def largest(table):
        p = model.predict_proba(table)
        return float(np.abs(p[:, None] - p[None]).sum(axis=2).max() / 2)

    for columns, truth in (["x", "z"], largest(everybody)), (["x"], brute_force(model, ["x"], everybody)):
        result = effect(model, X, columns, max_boxes=3000)
        assert truth <= result.proven
        assert n_values > 5 or result.proven <= truth + 1e-4
    assert largest(corners) < 0.6 < 0.99 < largest(everybody)
    # Of one number, the ends are the worst (docs/theory.md §15).
    assert truth == pytest.approx(brute_force(model, ["x"], corners), abs=1e-12)
    assert result.proven <= truth + 1e-4
