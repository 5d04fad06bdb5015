"""Tables in the compiled scans: every pair by hand, pruned searches, audits, ceilings."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from likewise import SmoothedClassifier, TableMetric, WeightedLp, audit, ceiling
from likewise.pairs.box_search import search_tree
from likewise.pairs.box_tree import box_tree_of
from likewise.pairs.kernels import worst_partners
from likewise.pairs.points import Points

POWERS = [1.0, 1.5, 2.0, 3.0, np.inf]
TOLERANCE = 1e-9


def make_table(rng, n, n_levels=4, holes=0.2):
    numbers = rng.normal(size=(n, 2)).round(1)
    numbers[rng.random((n, 2)) < [0, holes]] = np.nan
    return pd.DataFrame(
        {
            "age": numbers[:, 0],
            "region": rng.choice(
                [*"nsew"][:n_levels], n, p=np.array([8, 4, 2, 1])[:n_levels] / 15 if n_levels == 4 else None
            ),
            "income": numbers[:, 1],
            "owner": pd.Series(rng.choice([True, False], n)),
            "job": pd.Categorical(rng.choice([*"abc", None], n)),
        }
    )


def laid_out(X, metric):
    bound, people = metric.read(X)
    points = Points.of(people, bound)
    return points, points.scales


@st.composite
def populations(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = make_table(rng, draw(st.integers(2, 300)), holes=draw(st.sampled_from([0, 0.2, 1])))
    numeric = dict(zip(["age", "income"], rng.choice([0.0, 0.01, 0.1, 1.0], 2), strict=True))
    mismatch = dict(zip(["region", "owner", "job"], rng.choice([0.0, 0.05, 0.3, 1.0], 3), strict=True))
    missing = {"income": float(rng.choice([0.0, 0.1, 1.0]))}
    metric = TableMetric(numeric, mismatch, missing=missing)
    kind = draw(st.sampled_from(["smooth", "rough", "coarse", "three classes"]))
    outputs = rng.random((len(X), 1))
    if kind == "smooth":
        outputs = 1 / (
            1 + np.exp(-X[["age", "income"]].fillna(0).sum(axis=1).to_numpy()[:, None] - (X[["region"]] == "n"))
        )
    elif kind == "three classes":
        outputs = rng.dirichlet(np.ones(3), size=len(X)) / 2
    elif kind == "coarse":
        outputs = outputs.round(1)
    return X, np.asarray(outputs), metric, draw(st.sampled_from([1, 5, 40]))


@settings(max_examples=100, deadline=None)
@given(populations())
def test_audit_agrees_with_the_distances_of_the_metric(population):
    X, outputs, metric, n_worst = population
    scores = outputs[:, 0] if outputs.shape[1] == 1 else 2 * outputs
    result = audit(None, X, metric, predictions=scores, tolerance=TOLERANCE, n_worst=n_worst)
    i, j = np.triu_indices(len(X), 1)
    distance = metric.pairwise(X)[i, j]
    excess = np.abs(outputs[i] - outputs[j]).sum(axis=1) - distance
    # Pairs within rounding of the limit may count either way.
    assert (excess > TOLERANCE + 1e-12).sum() <= result.n_violations <= (excess > TOLERANCE - 1e-12).sum()
    assert result.max_excess == pytest.approx(max(excess.max(), 0) if result.n_violations else 0, abs=1e-12)
    listed = result.violations
    if len(listed):
        a, b = X.iloc[listed["row_a"].astype(int)], X.iloc[listed["row_b"].astype(int)]
        np.testing.assert_allclose(listed["distance"], metric(a, b), rtol=0, atol=1e-12)


def test_worst_partner_of_each_person_is_that_of_the_metric():
    rng = np.random.default_rng(3)
    X, outputs = make_table(rng, 500), rng.random((500, 1))
    metric = TableMetric(
        {"age": 0.2, "income": 0.1}, {"region": 0.1, "owner": 0.05, "job": 0.2}, missing={"income": 0.3}
    )
    points, _ = laid_out(X, metric)
    _, excess, _ = worst_partners(points.columns_in(1.0), outputs.T.copy())
    gap = np.abs(outputs - outputs.T) - metric.pairwise(X)
    np.testing.assert_allclose(excess, np.maximum(np.triu(gap, 1).max(axis=1), 0), atol=1e-12)


def test_search_does_not_look_at_every_pair_of_a_table():
    rng = np.random.default_rng(0)
    n = 20_000
    codes = rng.integers(0, 5, size=(n, 2))
    x = rng.normal(size=n)
    scores = 1 / (1 + np.exp(-x)) * 0.6 + 0.05 * codes.sum(axis=1)
    rows = np.column_stack([x, codes])
    kinds = np.array([0, 2, 2], dtype=np.int8)
    found = search_tree(box_tree_of(rows, scores[:, None], np.array([0.4, 0.3, 0.3]), 1.0, kinds), TOLERANCE, 10)
    assert found.n_violations == 0
    assert found.n_compared < 0.1 * n * (n - 1) / 2


X = pd.DataFrame({"age": [30, 30, 60], "income": [10.5, None, 10.5], "race": pd.Categorical(["x", "y", "x"])})
METRIC = TableMetric({"age": 0.01, "income": 0.1}, {"race": 0}, missing={"income": 0.2})


def test_violations_show_both_values_as_people_wrote_them():
    result = audit(None, X, METRIC, predictions=[0.1, 0.9, 0.1])
    assert result.n_violations == 2
    worst = result.violations.iloc[0]
    assert worst["differs"] == "race: x / y, income: 10.5 / missing"
    assert (worst["distance"], worst["excess"]) == (pytest.approx(0.2), pytest.approx(0.6))
    assert "20 points between a number and a blank in income" in result.coverage


def test_equal_people_with_missing_numbers_are_one():
    twice = pd.concat([X, X], ignore_index=True)
    result = audit(None, twice, METRIC, predictions=[0.1, 0.9, 0.1] * 2)
    assert result.n_distinct == 3
    assert result.n_violations == 8


def test_values_that_look_alike_after_coding_stay_apart():
    """A missing number is not 0, and a missing category is not another one."""
    people = pd.DataFrame({"n": [0.0, None], "c": [None, "a"]})
    metric = TableMetric({"n": 1.0}, {"c": 0.25}, missing={"n": 0.5})
    result = audit(None, people, metric, predictions=[0.0, 1.0])
    assert result.violations["distance"].tolist() == [0.75]


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas, lambda X: X[X.columns[::-1]]])
def test_other_tables_and_other_orders_give_the_same(convert):
    expected = audit(None, X, METRIC, predictions=[0.1, 0.9, 0.3])
    result = audit(None, convert(X), METRIC, predictions=[0.1, 0.9, 0.3])
    numbers = ["row_a", "row_b", "difference", "distance"]
    np.testing.assert_allclose(result.violations[numbers], expected.violations[numbers])


def test_models_are_given_the_table_itself():
    table = make_table(np.random.default_rng(0), 400, holes=0)
    y = (table.age > 0) ^ (table.region == "n")
    encode = make_column_transformer((OrdinalEncoder(), ["region", "job"]), remainder="passthrough")
    model = make_pipeline(encode, RandomForestClassifier(10, random_state=0)).fit(table, y)
    metric = TableMetric({"age": 0.1, "income": 0.1}, {"region": 0.2, "owner": 0.1, "job": 0})
    before = audit(model, table, metric)
    gap = np.abs(np.subtract.outer(*[model.predict_proba(table)[:, 1]] * 2)) - metric.pairwise(table)
    assert before.max_excess == pytest.approx(gap.max())
    assert before.n_violations > 1000
    polars = audit(model, pl.from_pandas(table), metric)
    assert polars.n_violations == before.n_violations
    by_function = audit(lambda rows: (rows["region"] == "n").astype(float).to_numpy(), table, metric)
    assert by_function.max_ratio == pytest.approx(1 / 0.2) or by_function.max_ratio == np.inf
    smoothed = SmoothedClassifier(model, metric=metric, n_draws=500, random_state=0).fit(table, y)
    after = audit(smoothed, table, metric, tolerance=smoothed.guarantee_.epsilon)
    assert (after.n_violations, before.n_violations > 0) == (0, True)
    half = TableMetric({"age": 0.02, "income": 0.02}, {"region": 0.05, "owner": 0.02, "job": 0})
    assert audit(smoothed, table, half, tolerance=smoothed.guarantee_.epsilon).n_violations > 0  # the control


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": X.drop(columns="age")}, "X must have the column 'age'"),
        ({"X": X.assign(extra=1)}, "X has the column 'extra', which the metric does not name"),
        ({"X": X.to_numpy()}, "X must be a table with named columns"),
        ({"X": X[:1]}, "at least two people"),
        (
            {"metric": TableMetric({"age": 1, "income": 1}, {"race": 0})},
            "'income' has missing numbers, which the metric",
        ),
        ({"predictions": [0.1, 0.2]}, "one entry per row"),
    ],
)
def test_bad_input_gives_one_clear_error(change, message):
    arguments = {"X": X, "metric": METRIC, "predictions": [0.1, 0.2, 0.3]} | change
    with pytest.raises((TypeError, ValueError), match=message):
        audit(None, **arguments)


# -- the ceiling ------------------------------------------------------------------------------------------------


def full_program(X, y, metric):
    """The linear program for two classes with all pairs in it."""
    n = len(X)
    i, j = np.triu_indices(n, 1)
    rows, k = np.zeros((2 * len(i), n)), np.arange(len(i))
    rows[k, i], rows[k, j] = 1, -1
    rows[len(i) :] = -rows[: len(i)]
    solved = linprog(np.where(y, -1.0, 1.0), rows, np.tile(metric.pairwise(X)[i, j], 2), bounds=(0, 1))
    return ((~y).sum() - solved.fun) / n


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_ceiling_of_a_table_is_that_of_the_program_with_all_pairs(missing):
    rng = np.random.default_rng(0)
    table = make_table(rng, 40)
    y = rng.random(40) < 0.5
    metric = TableMetric(
        {"age": 0.05, "income": 0.05}, {"region": 0.1, "owner": 0, "job": 0.05}, missing={"income": missing}
    )
    assert ceiling(table, y, metric).value == pytest.approx(full_program(table, y, metric), abs=1e-6)


def test_ceiling_of_people_who_differ_where_it_must_not_matter_is_shared():
    people = pd.DataFrame({"race": ["x", "y", "y", "x"]})
    assert ceiling(people, [1, 1, 0, 1], TableMetric(categorical={"race": 0})).value == pytest.approx(0.75)
    assert ceiling(people, [1, 0, 0, 1], TableMetric(categorical={"race": 1})).value == 1
    with pytest.raises(TypeError, match="metric must be a Metric, such as WeightedLp or TableMetric"):
        ceiling(people, [1, 1, 0, 1], {"race": 0})


def test_a_table_of_numbers_is_audited_like_an_array():
    numbers = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=["a", "b"])
    scores = np.random.default_rng(1).random(300)
    weights = {"a": 0.2, "b": 0.1}
    table, array = (audit(None, numbers, kind(weights), predictions=scores) for kind in (TableMetric, WeightedLp))
    assert table.n_violations == array.n_violations
    pd.testing.assert_frame_equal(table.violations, array.violations)
