"""Values of parameters that once ended in a traceback, in a warning, or nowhere; now each is one sentence."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import likewise
from fuzz.parameters import NOT_FUZZED, calls, odd, people
from likewise import LikewiseError, TableMetric

X, ROWS, Y, _ = people()

REFUSED = [
    ("WeightedLp", "weights", 10**400, "weights"),
    ("WeightedLp", "p", 1e308, "p must be at most 1e\\+100, or infinity; got 1e\\+308"),
    ("WeightedLp", "p", X, "p must be a number >= 1 or infinity; got age income job"),
    ("WeightedLp", "feature_names", 3, "feature_names must have one name per weight"),
    ("WeightedLp", "feature_names", [[1], [2]], "feature_names must be names"),
    ("WeightedLp.scaled", "factor", 10**400, "factor must be between 1 and 1e\\+15 in size"),
    ("TableMetric", "numeric", {"age": 1 + 2j}, "weights must hold numbers only"),
    ("TableMetric.pairwise", "A", X["age"], "must be a table with named columns"),
    ("WeightedLp.pairwise", "A", TableMetric, "must be a table or an array; got the class TableMetric"),
    (
        "FunctionMetric",
        "function",
        LogisticRegression,
        "of two sets of people; got the class LogisticRegression",
    ),
    ("FunctionMetric", "scale", 2**70, "scale must be between 1 and 1e\\+15 in size"),
    ("FunctionMetric", "pairwise", "x", "pairwise must be True or False; got 'x'"),
    ("Splitting", "excess", -1, "excess must be a non-negative finite number; got -1"),
    ("Splitting", "excess", ["age"], "excess must be a non-negative finite number"),
    ("AdditiveClassifier", "max_knots", 2**70, "max_knots must be between 1 and 1e\\+15 in size"),
    ("AdditiveClassifier", "teacher", TableMetric, "teacher must be an instance, not a class"),
    ("AdditiveRegressor", "output_range", np.array(1.0), "output_range must be .*two finite numbers"),
    ("AdditiveRegressor", "output_range", (-1e308, 1e308), "output_range must be .*two finite numbers"),
    ("AdditiveClassifier.fit", "X", np.zeros((24, 0)), "X"),
    ("AdditiveClassifier.fit", "X", pd.DataFrame(), "X"),
    ("AdditiveClassifier.fit", "y", Y[:-1], r"X and y must have the same number of rows; got \[24, 23\]"),
    ("AdditiveClassifier.fit", "y", Y * np.nan, "y must hold one outcome per person, none of them missing"),
    ("AdditiveClassifier.explain", "outcome", X, r"outcome must be one of the classes, \[0, 1\]; got age income"),
    ("AdditiveClassifier.to_csv", "path", 3, "path must be the name of a file or directory; got 3"),
    ("AdditiveClassifier.to_json", "path", "\x00", "path must be the name of a file or directory"),
    ("AdditiveClassifier.fit of files", "X", "nowhere", "There is no file or directory"),
    ("AdditiveClassifier.fit of files", "X", "\0", "path must be the name of a file or directory"),
    ("AdditiveClassifier.fit of files", "y", 3, "target must name a column of X, or be a Dask Series"),
    ("audit of files", "predictions", 3, "predictions must name a column of X, or be a Dask Series"),
    ("ProjectedClassifier", "estimator", TableMetric({"age": 1}), "estimator must have predict, or be a function"),
    ("ProjectedClassifier", "base", 2**70, "base"),
    ("SmoothedClassifier", "estimator", LogisticRegression, "estimator must be an instance, not a class"),
    ("RecalibratedClassifier", "cv", [None], "cv must be"),
    ("Guarantee.bound", "distance", ROWS.astype(complex), "distance must hold numbers only"),
    ("Guarantee.bound", "distance", "x", "distance must hold numbers only"),
    ("audit", "predictions", "x", "predictions"),
    ("audit", "tolerance", -1, "tolerance must be .*a non-negative finite number; got -1"),
    ("audit", "output_range", ["age"], "output_range must be .*two finite numbers"),
    ("ceiling", "y", "x", "y must hold one label per person"),
    ("estimate_minimal_metric", "categorical", "job", "categorical must list columns of X"),
    ("estimate_minimal_metric", "upper", 3, "upper must map features to weights"),
    ("estimate_minimal_metric", "fixed", {"age": -1}, "fixed\\['age'\\] must be a non-negative finite number; got -1"),
    ("linear_metric", "p", 10**400, "p must be at most"),
    ("draws_needed", "method", 3, "method must be 'sharpest' or 'paper'; got 3"),
    ("draws_needed", "n_classes", 2**70, "n_classes must be between 1 and 1e\\+15 in size"),
    ("error_margin", "delta", Decimal("0.1"), "delta must be a positive number below 1"),
    ("failure_probability", "shared", "x", "shared must be True or False; got 'x'"),
    ("attack", "X", X[:0], "X"),
    ("attack", "model", "model.skops", "model must have predict_proba or predict, or be a function of rows; got str.$"),
    ("attack", "verbose", "x", "verbose must be True or False; got 'x'"),
    ("compare", "random_state", 2**70, "random_state must be a whole number from 0 to 4294967295"),
    ("compare", "cv", [None], "cv must be"),
    ("tradeoff", "scales", [[1]], "scales"),
]


@pytest.mark.parametrize(("call", "parameter", "value", "words"), REFUSED)
def test_a_value_that_makes_no_sense_is_refused_in_one_sentence(call, parameter, value, words):
    with pytest.raises(LikewiseError, match=words) as refused:
        calls()[call].with_one(parameter, value)
    assert len(str(refused.value)) < 700
    assert "\n" not in str(refused.value)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """What is written is written where it is swept away."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", calls())
def test_control_what_is_given_works(name):
    call = calls()[name]
    assert call.parameters()
    call.then(call.function(**call.given))


def test_everything_public_is_tried():
    excused = {name for names in NOT_FUZZED for name in names.split(", ")}
    tried = {name.split(".")[0].split(" ")[0] for name in calls()}
    errors = {name for name in likewise.__all__ if name.endswith(("Error", "Warning"))}
    assert {*likewise.__all__} <= tried | excused | errors
    assert not tried & (excused - {"Guarantee"})
    assert len(odd()) > 100
