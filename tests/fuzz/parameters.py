"""Every parameter of what is public, given values that nobody would expect there.

What can be called is a table: what it is, and parameters with which it works. The names of the others are read from its
signature, so that new ones are tried without being named here.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeClassifier

import likewise
from fuzz.places import place
from likewise import TableMetric, WeightedLp
from likewise.exceptions import InvalidInputError

METRIC = TableMetric({"age": 0.02, "income": 0.1}, {"job": 0.3})
NUMBERS = WeightedLp([0.02, 0.1])
ANSWERS = pd.DataFrame(
    {"judge": ["ann", "bob"], "kind": ["at_most", "at_least"], "a": [0, 2], "b": [1, 3], "points": [20.0, 1.0]}
)
NOT_FUZZED = {
    "Attack, Audit, Ceiling, Certificate, Comparison, Guarantee, MetricEstimate, Tradeoff": "results, which we make",
    "DecisionCosts, Effect, Excess, FileReview, FrontierPoint, GroupAudit, GroupGaps": "results, too",
    "JudgedMetric, MetricFrontier, Question": "and these",
    "AuditDisplay, ComparisonDisplay, MetricDisplay, TradeoffDisplay, ScorecardDisplay": "pictures of results",
    "DecisionDisplay, EffectDisplay, FrontierDisplay, RangesDisplay": "pictures, too",
    "LipschitzClassifier, LipschitzRegressor": "training needs an extra, and takes seconds",
    "Metric": "abstract",
    "load_model, read_metric, save_model, write_metric": "files, which have targets of their own",
}


@dataclass(frozen=True)
class Call:
    """Something to call, parameters with which that works, and what is done with the result."""

    function: Callable[..., Any]
    given: dict[str, Any]
    then: Callable[[Any], Any] = lambda result: result

    def parameters(self):
        """Names of all parameters."""
        named = inspect.signature(self.function).parameters.items()
        return [name for name, each in named if name != "self" and each.kind != each.VAR_KEYWORD]

    def with_one(self, parameter, value):
        """The result with another value of one parameter."""
        return self.then(self.function(**{**self.given, parameter: value}))


@dataclass(frozen=True)
class Chosen:
    """A call, one of its parameters, and a value for it."""

    call: str
    parameter: str
    value: Any


@cache
def people():
    """A table, its numbers, two classes, and amounts."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"age": rng.integers(2, 7, 24) * 10.0, "income": rng.normal(3, 1, 24), "job": list("abc") * 8},
    )
    return X, X[["age", "income"]].to_numpy(), np.arange(24) % 2, rng.normal(size=24)


@cache
def calls():
    """What is public, by name; what comes last takes long, and is tried seldom."""
    X, rows, y, amounts = people()
    table = {"X": X, "y": y}
    additive = {"metric": METRIC, "penalty": 0.1, "max_knots": 4}
    smoothed = {"metric": NUMBERS, "n_draws": 10, "random_state": 0}
    projected = {"estimator": _score, "metric": METRIC, "base": 0.5, "random_state": 0}
    logistic, linear = LogisticRegression(max_iter=10_000).fit(rows, y), LinearRegression().fit(rows, amounts)
    fitted = likewise.AdditiveClassifier(**additive).fit(X, y)
    split = likewise.SmoothedClassifier(logistic, metric=NUMBERS, noise="splitting", n_draws=10).fit(rows, y)

    stored = place() / "people.parquet"
    X.assign(y=y).to_parquet(stored)

    def fit(X, y):
        return lambda model: model.fit(X, y).predict(X[:3])

    def distances(metric):
        return metric.pairwise(X if isinstance(metric, TableMetric) else rows)

    def with_noise(noise):
        return fit(rows, y)(likewise.SmoothedClassifier(logistic, **{**smoothed, "noise": noise}))

    made = {
        "WeightedLp": Call(WeightedLp, {"weights": [0.1, 0.2]}, distances),
        "TableMetric": Call(TableMetric, {"numeric": {"age": 0.1}, "categorical": {"job": 1}}, distances),
        "FunctionMetric": Call(likewise.FunctionMetric, {"function": _apart}, distances),
        "MahalanobisMetric": Call(likewise.MahalanobisMetric, {"components": [[0.1, 0.2]]}, distances),
        "MahalanobisMetric.from_covariance": Call(
            likewise.MahalanobisMetric.from_covariance, {"covariance": [[1.0, 0.5], [0.5, 1.0]]}, distances
        ),
        "MahalanobisMetric.from_directions": Call(
            likewise.MahalanobisMetric.from_directions, {"directions": [[1.0, 1.0]]}, distances
        ),
        "MahalanobisMetric.from_protected": Call(
            likewise.MahalanobisMetric.from_protected, {"X": rows, "protected": y}, distances
        ),
        "WeightedLp.scaled": Call(NUMBERS.scaled, {"factor": 2}, distances),
        "TableMetric.from_odds": Call(
            TableMetric.from_odds, {"numeric": {"age": 0.1}, "categorical": {"job": 1}}, distances
        ),
        "TableMetric.scaled": Call(METRIC.scaled, {"factor": 2}, distances),
        "TableMetric.pairwise": Call(METRIC.pairwise, {"A": X, "B": X}),
        "WeightedLp.pairwise": Call(NUMBERS.pairwise, {"A": rows, "B": rows}),
        **{
            name: Call(getattr(likewise, name), {"metric": NUMBERS}, with_noise)
            for name in ("Gaussian", "Laplace", "Splitting", "Uniform")
        },
        "AdditiveClassifier": Call(likewise.AdditiveClassifier, additive, fit(X, y)),
        "AdditiveRegressor": Call(likewise.AdditiveRegressor, additive, fit(X, amounts)),
        "AdditiveClassifier.fit": Call(likewise.AdditiveClassifier(**additive).fit, table),
        "AdditiveClassifier.fit of files": Call(likewise.AdditiveClassifier(**additive).fit, {"X": stored, "y": "y"}),
        "ProjectedClassifier": Call(likewise.ProjectedClassifier, projected, fit(X, y)),
        "ProjectedRegressor": Call(likewise.ProjectedRegressor, projected | {"base": None}, fit(X, amounts)),
        "ProjectedClassifier.fit": Call(likewise.ProjectedClassifier(**projected).fit, table),
        "SmoothedClassifier": Call(likewise.SmoothedClassifier, {"estimator": logistic, **smoothed}, fit(rows, y)),
        "SmoothedRegressor": Call(likewise.SmoothedRegressor, {"estimator": linear, **smoothed}, fit(rows, amounts)),
        "SmoothedClassifier.fit": Call(
            likewise.SmoothedClassifier(logistic, **smoothed).fit,
            {"X": rows, "y": y},
            lambda model: model.predict(rows),
        ),
        "ThresholdDecision": Call(
            likewise.ThresholdDecision, {"estimator": likewise.AdditiveClassifier(**additive)}, fit(X, y)
        ),
        "decision_costs": Call(likewise.decision_costs, {"model": fitted, **table}),
        "RecalibratedClassifier": Call(
            likewise.RecalibratedClassifier, {"estimator": likewise.AdditiveClassifier(**additive), "cv": 2}, fit(X, y)
        ),
        **{
            f"AdditiveClassifier.{name}": Call(getattr(fitted, name), given)
            for name, given in {
                "predict": {"X": X},
                "predict_proba": {"X": X},
                "certify": {"X": X},
                "decide": {"X": X},
                "decision_bound": {"distance": [0.1, 0.2]},
                "explain": {"X": X},
                "notice": {
                    "X": X,
                    "threshold": 0.6,
                    "width": 0.1,
                    "favourable": 1,
                    "policy": {"outcome": "approval", "directions": {"income": "increase"}},
                },
                "reasons": {"X": X},
                "scorecard": {},
                "to_csv": {"path": "card.csv"},
                "to_json": {},
                "from_json": {"card": fitted.to_json()},
                "to_sql": {},
                "with_metric": {"metric": METRIC},
            }.items()
        },
        "SmoothedClassifier.predict_proba": Call(split.predict_proba, {"X": rows}),
        "SmoothedClassifier.certify": Call(split.certify, {"X": rows}),
        "Guarantee.bound": Call(fitted.guarantee_.bound, {"distance": [0.1, 0.2]}),
        "audit": Call(likewise.audit, {"model": None, "X": X, "metric": METRIC, "predictions": amounts % 1}),
        "audit of files": Call(likewise.audit, {"model": None, "X": stored, "metric": METRIC, "predictions": "y"}),
        "ceiling": Call(likewise.ceiling, {**table, "metric": METRIC}),
        "estimate_minimal_metric": Call(
            likewise.estimate_minimal_metric,
            {"model": None, "X": X, "predictions": amounts % 1, "categorical": ["job"]},
        ),
        "estimate of files": Call(
            likewise.estimate_minimal_metric,
            {"model": None, "X": stored, "predictions": "y", "columns": ["age", "income"]},
        ),
        "minimal_metric": Call(likewise.minimal_metric, {"model": logistic}),
        "minimal_metric of a card": Call(likewise.minimal_metric, {"model": fitted, "X": X}),
        "find_jumps": Call(likewise.find_jumps, {"model": logistic}),
        "linear_metric": Call(likewise.linear_metric, {"X": rows, "y": y}),
        "draws_needed": Call(likewise.draws_needed, {"epsilon": 0.1, "delta": 0.1}),
        "error_margin": Call(likewise.error_margin, {"n_draws": 100, "delta": 0.1}),
        "failure_probability": Call(likewise.failure_probability, {"n_draws": 100, "epsilon": 0.1}),
        "effect": Call(
            likewise.effect,
            {"model": _score, "X": X, "column": "job", "n_queries": 50, "max_boxes": 5, "random_state": 0},
        ),
        "effect of trees": Call(
            likewise.effect,
            {
                "model": DecisionTreeClassifier(max_depth=2).fit(rows, y),
                "X": rows,
                "column": "feature 0",
                "max_boxes": 5,
            },
        ),
        "audit_groups": Call(
            likewise.audit_groups,
            {"model": None, "X": X, "metric": METRIC, "predictions": amounts % 1, "n_permutations": 9},
        ),
        "group_gaps": Call(
            likewise.group_gaps,
            {"model": None, "X": X, "metric": METRIC, "column": "job", "predictions": amounts % 1},
        ),
        "review_files": Call(likewise.review_files, {"X": X, "decisions": y, "better": {"age": "higher"}}),
        "learn_metric": Call(likewise.learn_metric, {"judgements": ANSWERS, "X": X}),
        "next_question": Call(likewise.next_question, {"judgements": ANSWERS, "X": X}),
        "Domain": Call(likewise.Domain, {"columns": {}}, lambda made: made.describe()),
        "Domain.from_entries": Call(likewise.Domain.from_entries, {"entries": {"age": {"low": 0, "high": 9}}}),
        "Domain.learn": Call(likewise.Domain.learn, {"X": X}, lambda made: made.holds(X)),
        "attack": Call(
            likewise.attack, {"model": _score, "metric": METRIC, "X": X, "n_pairs": 1000, "random_state": 0}
        ),
        "attack of one column": Call(
            likewise.attack,
            {"model": _score, "metric": METRIC, "X": X, "only": "job", "n_pairs": 1000, "random_state": 0},
        ),
    }
    slow = {
        "compare": Call(likewise.compare, {**table, "metric": METRIC, "methods": ["constant"], "cv": 2}),
        "design_metric": Call(likewise.design_metric, {**table, "n_points": 2, "cv": 2, "references": False}),
        "tradeoff": Call(likewise.tradeoff, {**table, "metric": METRIC, "scales": [1], "cv": 2}),
    }
    return made | slow


def _score(rows):
    """A model that is a function of a table."""
    try:
        return (np.asarray(rows["age"], dtype=float) % 7) / 7
    except Exception as error:  # its own objections to a table are its own
        raise InvalidInputError(f"The model refuses the table ({type(error).__name__}).") from None


def _apart(a, b):
    """Distances between people of two arrays, one by one."""
    return np.abs(a - b).sum(axis=1)


@cache
def odd():
    """Values of every sort, made once."""
    X, rows, y, _ = people()
    return [
        *[None, True, False, 0, 1, 2, -1, 7, 0.5, 1.5, 0.1, -0.5, np.nan, np.inf, -np.inf, 1e308, 5e-324, 1e-9],
        *[
            2**70,
            -(2**70),
            10**400,
            1 + 2j,
            Decimal("0.1"),
            Fraction(1, 3),
            np.float32(0.1),
            np.int64(3),
            np.bool_(True),
        ],
        *["", "x", "age", "job", "auto", "hard", "refuse", "category", "classification", "é", "\x00", "1", b"a", ...],
        *[(), [], {}, set(), (1,), (0, 1), (1, 0), [1, 2], [np.nan, 1], [0.1, np.inf], ["age"], ["no"], [None], [[1]]],
        *[("a", "b"), ["age", "age"], [True, False], range(3), {"age"}, {"age": 1}, {"age": -1}, {"age": "x"}],
        *[{"age": 0.1, "income": 0}, {"job": 0.5}, {"no": 1}, {1: 2}, {"age": None}, {"age": np.nan}, {None: 1}],
        *[np.array(1.0), np.array([]), np.array([0.1, 0.2]), np.array(["a", "b"]), np.array([[1.0, 2.0]])],
        *[np.full((2, 2), np.nan), np.zeros((24, 0)), np.zeros((0, 2)), np.zeros((2, 2, 2)), rows, rows * 1e200, y],
        *[y[:-1], y.astype(str), y * np.nan, rows.astype(complex), rows.astype(object), rows[:, 0], rows.tolist()],
        *[X, X[:0], X[["age"]], X["age"], X.assign(age="x"), X.assign(age=np.nan), X.assign(age=np.inf), X[:1]],
        *[X.assign(job=7), X.rename(columns={"age": 3}), X.astype({"age": "Int64"}), pd.DataFrame(), pd.Series(y)],
        *[pd.NA, pd.NaT, date(2004, 1, 1), np.datetime64("2004-01-01"), pd.Timestamp("2004-01-01")],
        *[LogisticRegression, METRIC, NUMBERS, TableMetric, WeightedLp({"age": 0.1}), TableMetric({"no": 1})],
        *[KFold(2), KFold(30), np.random.RandomState(0), ["constant"], "constant", "additive", ["no"], "absent.csv"],
    ]


def _choose(drawn):
    name, where, which = drawn
    parameters = calls()[name].parameters()
    return Chosen(name, parameters[where % len(parameters)], odd()[which % len(odd())])


def _names():
    return [name for name in calls() for _ in range(1 if name in ("compare", "design_metric", "tradeoff") else 8)]


chosen = st.deferred(
    lambda: st.tuples(st.sampled_from(_names()), st.integers(0, 10**4), st.integers(0, 10**4)).map(_choose)
)
"""A call with a value of one parameter."""
