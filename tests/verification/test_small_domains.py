"""What is proven about everybody of a domain, against everybody: random domains of up to some hundred people.

The largest difference and the largest excess over a metric are computed from the model's own outputs for all pairs, and
the distance from its description (`oracle`). Domains have blanks, steps, negative numbers and rules, and outcomes are
drawn at random, so that models use every corner. The proofs are asked for directly: `effect` would withdraw one that
a pair contradicts.
"""

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, PolynomialFeatures
from sklearn.tree import DecisionTreeClassifier

from likewise import TableMetric, effect
from likewise.verification.base import InputSpace
from likewise.verification.domain import CategoricalDomain, Domain, NumericDomain
from likewise.verification.search import Limits
from likewise.verification.upper_bound import prove_excess, upper_bound
from oracle import Described, variation

RANGE = (-2.0, 3.0)  # of regressions: neither from 0 nor of width 1
TOLERANCE = 1e-6
LIMITS = Limits(None, 3000, TOLERANCE)
NOBODY = (np.empty((0, 4)), np.empty((0, 4)))

PRODUCTS = make_pipeline(PolynomialFeatures(2, interaction_only=True), LogisticRegression(C=100, max_iter=3000))

# Last step, number of classes (0: a number), and whether the bound is the truth and not only above it.
MODELS = {
    "tree": (DecisionTreeClassifier(max_depth=5, random_state=0), 2, True),
    "forest of four": (RandomForestClassifier(4, max_depth=4, random_state=0), 4, True),
    "boosting": (GradientBoostingClassifier(n_estimators=6, learning_rate=0.7, random_state=0), 2, True),
    "boosting of three": (GradientBoostingClassifier(n_estimators=3, random_state=0), 3, True),
    "boosted number": (GradientBoostingRegressor(n_estimators=6, learning_rate=0.7, random_state=0), 0, True),
    "blanks in trees": (HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=2, learning_rate=1), 2, True),
    "logistic": (LogisticRegression(C=100), 2, True),
    "logistic of three": (LogisticRegression(C=100), 3, False),
    "line": (LinearRegression(), 0, True),
    "products": (PRODUCTS, 2, True),
    "products of three": (PRODUCTS, 3, True),
    "network": (MLPClassifier((6,), solver="lbfgs", max_iter=60, random_state=0), 2, False),
    "deep network of three": (MLPClassifier((4, 4), solver="lbfgs", max_iter=60, random_state=0), 3, False),
    "network of a number": (
        MLPRegressor(hidden_layer_sizes=(5, 4), solver="lbfgs", max_iter=60, random_state=0),
        0,
        False,
    ),
}


class Case:
    """Everybody of a random domain, a model fitted to some of them, and a metric."""

    def __init__(self, kind, seed):
        rng = np.random.default_rng([seed, len(kind)])
        last, self.n_classes, self.exact = MODELS[kind]
        # The features of a case vary between seeds, and between models at a seed.
        self.blank, self.ruled = bool((seed + len(kind)) % 2), bool((seed + len(kind)) // 2 % 2)
        low, step = int(rng.integers(-2, 1)), float(rng.choice([0.1, 0.25, 1.5]))
        columns = {
            "a": NumericDomain(low, low + int(rng.integers(2, 4)), 1.0),
            "b": NumericDomain(-step, step * int(rng.integers(1, 3)), step, blank=self.blank),
            "c": CategoricalDomain(("x", "y", "z")[: int(rng.integers(2, 4))], blank=self.blank),
            "d": NumericDomain(0.0, 1.0, 1.0),
        }
        domain = Domain(columns)
        # Decimals as they are read from a file, which is what a grid must give.
        values = {
            "a": [float(k) for k in range(low, int(columns["a"].high) + 1)],
            "b": [float(f"{k * step:.12g}") for k in range(-1, round(columns["b"].high / step) + 1)]
            + [None] * self.blank,
            "c": [*columns["c"].values] + [None] * self.blank,
            "d": [0.0, 1.0],
        }
        self.people = [dict(zip(values, each, strict=True)) for each in itertools.product(*values.values())]
        if self.ruled:
            domain = domain.with_rules("a - 1 <= 2 * b + d")
            self.people = [
                each
                for each in self.people
                if each["b"] is None or Fraction(each["a"]) - 1 <= 2 * Fraction(each["b"]) + Fraction(each["d"])
            ]
        self.domain = domain
        self.table = pd.DataFrame(self.people).astype({"a": float, "b": float, "c": object, "d": float})
        self.table["c"] = self.table["c"].where(self.table["c"].notna(), None)
        some = self.table.iloc[np.sort(rng.choice(len(self.table), int(0.7 * len(self.table)), replace=False))]
        firsts = [self.table[self.table["c"].map(lambda v, c=c: v is c or v == c)].index[0] for c in values["c"]]
        self.X = pd.concat([some, self.table.loc[firsts]], ignore_index=True)
        coded = make_column_transformer(
            (OneHotEncoder(sparse_output=False), ["c"]),
            ("passthrough" if kind == "blanks in trees" else SimpleImputer(add_indicator=True), ["b", "d", "a"]),
        )
        y = rng.normal(size=len(self.X)) if self.n_classes == 0 else np.arange(len(self.X)) * 7 % 11 % self.n_classes
        self.model = make_pipeline(coded, last).fit(self.X, y)
        self.outputs = (
            self.model.predict_proba(self.table)
            if self.n_classes
            else (self.model.predict(self.table)[:, None] - RANGE[0]) / (RANGE[1] - RANGE[0])
        )
        self.metric = TableMetric(
            {"a": 0.07, "b": 0.11, "d": 0.05},
            {"c": 0.13},
            missing={"b": 0.04} if self.blank else {},
        )

    def space(self, metric=None):
        return InputSpace.of(self.model, self.X, metric, self.domain, None if self.n_classes else RANGE)

    def largest(self, columns):
        """The largest difference between two people who share all other columns."""
        gaps = variation(self.outputs)
        others = [[each[name] for name in each if name not in columns] for each in self.people]
        alike = np.array([[p == q for q in others] for p in others])
        return float(gaps[alike].max())

    def excess(self):
        distances = Described(self.metric, list(self.table)).matrix(self.people)
        return float((variation(self.outputs) - distances).max())


@pytest.mark.filterwarnings("ignore:lbfgs failed")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", MODELS)
def test_no_two_people_of_a_domain_differ_by_more_than_is_proven(kind, seed):
    case = Case(kind, seed)
    space, columns = case.space(), (["c"], ["b"], ["a", "d"])[(seed + len(kind)) % 3]
    assert case.domain.holds(case.table).all()
    truth = case.largest(columns)
    proof = upper_bound(space, [space.names.index(name) for name in columns], LIMITS, NOBODY)
    assert proof.proven is not None, proof.how
    assert proof.proven >= truth
    if case.exact:  # and a pair of the domain reaches it
        assert proof.proven <= truth + 2 * TOLERANCE
        a, b = map(np.stack, zip(*proof.pairs, strict=True))
        inside = space.holds(a) & space.holds(b)
        assert space.differences(a[inside], b[inside]).max() >= truth - 2 * TOLERANCE


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["tree", "boosting", "boosted number", "blanks in trees", "logistic", "line"])
def test_no_two_people_of_a_domain_exceed_their_distance_by_more_than_is_proven(kind, seed):
    case = Case(kind, seed)
    space = case.space(case.metric)
    truth, proof = case.excess(), prove_excess(space, space.bind(case.metric), LIMITS)
    assert proof.proven is not None, proof.how
    assert proof.proven >= truth
    if kind not in ("logistic", "line") and not case.ruled:
        assert proof.proven <= truth + 2 * TOLERANCE


def test_control_a_proof_for_fewer_people_is_too_low():
    """Without blanks, or under a metric twice as strict, the bounds above would be noticed."""
    case = Case("boosting", 1)
    smaller = Case("boosting", 1)
    smaller.domain = case.domain.with_column("b", blank=False).with_column("c", blank=False)
    column = [case.space().names.index("b")]
    assert upper_bound(smaller.space(), column, LIMITS, NOBODY).proven < case.largest(["b"])
    looser = case.metric.scaled(2)
    space = case.space(looser)
    assert prove_excess(space, space.bind(looser), LIMITS).proven < case.excess()


GRADES = ["low", "middle", "high", "top"]  # not the order of the alphabet


def ordered(seed, last):
    """Everybody of a domain with an ordered column, given as text or as categories, a model, and a metric."""
    rng, blank = np.random.default_rng(seed), seed % 2 == 1
    values = list(itertools.product([*GRADES, *[None] * blank], ["x", "y"], [0.0, 1.0, 2.0]))
    table = pd.DataFrame(values, columns=["grade", "kind", "a"]).astype({"grade": object})
    table["grade"] = table["grade"].where(table["grade"].notna(), None)
    if seed >= 2:
        table["grade"] = pd.Categorical(table["grade"], GRADES, ordered=True)
    encoder = OneHotEncoder(sparse_output=False) if seed % 4 else OrdinalEncoder()
    coded = make_column_transformer((encoder, ["grade", "kind"]), remainder="passthrough")
    model = make_pipeline(coded, last).fit(table, rng.normal(size=len(table)) > 0)
    weights = {"grade": 0.09, "a": 0.05}, {"kind": 0.13}
    metric = TableMetric(*weights, order={"grade": GRADES}, missing={"grade": 0.17} if blank else {})
    held = CategoricalDomain(tuple(GRADES), blank=blank)
    domain = Domain({"grade": held, "kind": CategoricalDomain(("x", "y")), "a": NumericDomain(0, 2, 1.0)})
    people = [dict(zip(table, each, strict=True)) for each in values]
    return table, model, metric, domain, people


def excess_where(people, model, table, steps):
    """The largest excess where two grades that are `k` apart in their order count `steps(k)`."""
    rank = np.array([np.nan if each["grade"] is None else GRADES.index(each["grade"]) for each in people])
    apart = np.abs(rank[:, None] - rank)
    grades = np.where(np.isnan(apart), 0.17 * (np.isnan(rank)[:, None] != np.isnan(rank)), 0.09 * steps(apart))
    others = [np.array([each[name] for each in people]) for name in ("kind", "a")]
    D = grades + 0.13 * (others[0][:, None] != others[0]) + 0.05 * np.abs(others[1][:, None] - others[1])
    return float((variation(model.predict_proba(table)) - D).max())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("last", ["tree", "forest of four", "boosting"])
def test_ordered_categories_count_their_steps_in_the_excess(last, seed):
    table, model, metric, domain, people = ordered(seed, MODELS[last][0])
    truth = excess_where(people, model, table, lambda k: k)
    found = effect(model, table, "kind", metric=metric, domain=domain, n_queries=4000, random_state=0).excess
    assert found.found == pytest.approx(truth, abs=1e-9)
    assert truth <= found.proven <= truth + 1e-3 + TOLERANCE


@pytest.mark.parametrize("steps", [np.sign, lambda k: 0 * k], ids=["plain mismatches", "nothing"])
def test_control_grades_that_count_otherwise_have_another_excess(steps):
    table, model, _, _, people = ordered(2, MODELS["forest of four"][0])
    right, other = (excess_where(people, model, table, count) for count in (lambda k: k, steps))
    assert other > right + 0.01


def test_a_score_that_is_far_from_the_middle_is_bounded_by_what_it_can_be():
    """All people have low scores, as the column that is exchanged is never small."""
    X = pd.DataFrame({"x": np.linspace(5, 6, 11).round(1)})
    model = LogisticRegression().fit(X, np.arange(11) % 2)
    model.coef_, model.intercept_ = np.array([[1.0]]), np.array([-8.0])
    proof = upper_bound(InputSpace.of(model, X), [0], LIMITS, (np.empty((0, 1)), np.empty((0, 1))))
    truth = 1 / (1 + np.exp(2)) - 1 / (1 + np.exp(3))
    assert truth <= proof.proven <= truth + 1e-9
