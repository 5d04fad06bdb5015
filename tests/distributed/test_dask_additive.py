"""Fits and scores of Dask DataFrames: to the last bit those of the table in memory, in threads and on a cluster."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from killing import killed_after
from likewise import (
    AdditiveClassifier,
    AdditiveRegressor,
    FileError,
    InvalidInputError,
    InvalidTypeError,
    TableMetric,
    WeightedLp,
)
from likewise.additive import binning as bins
from likewise.additive import solver as blocks
from likewise.additive.objective import slot_sums
from likewise.distributed.cluster import connected
from likewise.kernel.schema import ArrayEncoder

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

N = 900
RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "income": RNG.normal(size=N),
        "age": RNG.integers(20, 60, N).astype(float),
        "region": RNG.choice(["north", "south", "west"], N),
        "race": RNG.choice(["x", "y"], N),
    }
)
X.loc[RNG.random(N) < 0.1, "age"] = np.nan
SCORE = 1.5 * X["income"] + 0.05 * X["age"].fillna(50) - 2 + (X["region"] == "west")
OUTCOMES = pd.DataFrame(
    {
        "binary": RNG.random(N) < 1 / (1 + np.exp(-SCORE)),
        "three": np.array(["no", "perhaps", "yes"])[np.digitize(SCORE + RNG.normal(size=N), [0, 1.5])],
        "number": 10 * SCORE + RNG.normal(size=N),
    }
)
METRIC = TableMetric({"income": 0.2, "age": 0.01}, {"region": 0.1, "race": 0}, missing={"age": 0.1})


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(bins, "BLOCK", 250)
    monkeypatch.setattr(bins, "MOST_VALUES", 400)


def write(place, sizes=(100, 0, 333, 467)):
    place.mkdir()
    table, start = X.join(OUTCOMES), 0
    for i, size in enumerate(sizes):
        table.iloc[start : start + size].to_parquet(place / f"{i:04d}.parquet", index=False, row_group_size=150)
        start += size
    assert start == N
    return place


def dask_frame(sizes=(100, 0, 333, 467)):
    """The same people as a Dask DataFrame, whose index says nothing."""
    table, ends = X.join(OUTCOMES).set_axis(np.arange(N) % 7, axis=0), np.cumsum([0, *sizes])
    assert ends[-1] == N
    parts = [dask.delayed(table.iloc[a:b]) for a, b in pairwise(ends)]
    return dd.from_delayed(parts, meta=table.iloc[:0], verify_meta=False)


def assert_same(one, other):
    """Equal to the last bit."""
    assert one.penalty_ == other.penalty_
    np.testing.assert_array_equal(one.ranges_, other.ranges_)
    assert one.encoder_ == other.encoder_
    assert one.guarantee_.statement == other.guarantee_.statement
    a, b = one.scorer_.model, other.scorer_.model
    np.testing.assert_array_equal(a.intercepts, b.intercepts)
    assert len(a.shapes) == len(b.shapes) > 0
    for shape, twin in zip(a.shapes, b.shapes, strict=True):
        assert shape.column == twin.column
        for name in ("knots", "values", "other"):
            np.testing.assert_array_equal(getattr(shape, name), getattr(twin, name))


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (AdditiveClassifier(METRIC), "binary"),
        (AdditiveClassifier(METRIC, penalty=1e-3, monotone={"income": 1}, link="probit"), "binary"),
        (AdditiveClassifier(METRIC, penalty=1e-3), "three"),
        (AdditiveRegressor(METRIC, penalty=1e-3), "number"),
        (AdditiveRegressor(WeightedLp({"income": 0.2}), penalty=1e-3), "number"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_model_is_that_of_the_table_in_memory(model, target):
    table = dask_frame()
    names = [*model.metric.numeric, *model.metric.categorical] if isinstance(model.metric, TableMetric) else ["income"]
    here = model.with_metric(model.metric).fit(X[names], OUTCOMES[target])
    there = model.with_metric(model.metric).fit(table, table[target])
    assert_same(here, there)
    np.testing.assert_array_equal(there.predict(table).compute(), here.predict(X[names]))
    if target != "number":
        scores = there.predict_proba(table).compute()
        assert list(scores.columns) == list(here.classes_)
        np.testing.assert_array_equal(scores, here.predict_proba(X[names]))


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(cuts=st.lists(st.integers(0, N), max_size=5), block=st.sampled_from([170, 250, 1000]))
def test_nothing_depends_on_partitions(monkeypatch, cuts, block):
    monkeypatch.setattr(bins, "BLOCK", block)
    table = dask_frame(np.diff([0, *sorted(cuts), N]))
    here = AdditiveClassifier(METRIC, penalty=1e-3).fit(X, OUTCOMES["binary"])
    there = AdditiveClassifier(METRIC, penalty=1e-3).fit(table.drop(columns="binary"), table["binary"])
    assert_same(here, there)
    scores = there.predict_proba(table)
    assert isinstance(scores, dd.DataFrame)
    np.testing.assert_array_equal(scores.compute(), here.predict_proba(X))


def test_tables_with_too_many_variables_for_one_matrix(monkeypatch):
    monkeypatch.setattr(blocks, "_MOST_VARIABLES", 16)
    table = dask_frame()
    metric = TableMetric({"income": 0.2, "age": 0.01}, {"region": 0.1, "race": 0}, missing="category")
    here = AdditiveClassifier(metric, penalty=1e-3, max_knots=6).fit(X, OUTCOMES["three"])
    assert_same(here, AdditiveClassifier(metric, penalty=1e-3, max_knots=6).fit(table, table["three"]))


def test_files_are_read_by_their_path_and_the_outcome_by_its_name(tmp_path):
    place = write(tmp_path / "people")
    here = AdditiveClassifier(METRIC, penalty=1e-3).fit(X, OUTCOMES["binary"])
    assert_same(here, AdditiveClassifier(METRIC, penalty=1e-3).fit(place, "binary"))
    assert_same(here, AdditiveClassifier(METRIC, penalty=1e-3).fit(write(tmp_path / "one", [900]), "binary"))


def test_control_sums_over_other_blocks_have_other_bits(monkeypatch):
    rows, weights = X[["income"]].to_numpy(), RNG.random(N)
    part = bins.bin_columns(rows, np.full(N, 1 / N), WeightedLp([0.2]).bind(ArrayEncoder(1)), 5)
    sums = slot_sums(part, weights, 1)
    np.testing.assert_array_equal(slot_sums(part, weights, 2), sums)
    monkeypatch.setattr(bins, "BLOCK", 170)
    assert (slot_sums(part, weights, 1) != sums).any()
    np.testing.assert_allclose(slot_sums(part, weights, 1), sums, rtol=1e-12)


def test_what_cannot_be_done_is_one_clear_error(tmp_path):
    table = dask_frame()
    with pytest.raises(FileError, match="has no column 'approved', the target"):
        AdditiveClassifier(METRIC).fit(write(tmp_path / "people"), "approved")
    with pytest.raises(InvalidTypeError, match="target must name a column of X, or be a Dask Series"):
        AdditiveClassifier(METRIC).fit(table, OUTCOMES["binary"])
    with pytest.raises(InvalidInputError, match="metric must be given for a Dask DataFrame"):
        AdditiveClassifier().fit(table, table["binary"])
    with pytest.raises(InvalidInputError, match="sample_weight must be None for a Dask DataFrame"):
        AdditiveClassifier(METRIC).fit(table, table["binary"], table["income"])
    with pytest.raises(InvalidInputError, match="y must hold one number per person"):
        AdditiveRegressor(METRIC).fit(table, table["three"])
    with pytest.raises(InvalidInputError, match="none of them missing"):
        AdditiveRegressor(TableMetric({"income": 0.2})).fit(table, table["age"])
    with pytest.raises(FileError, match="X has no column 'income', which the metric names"):
        AdditiveClassifier(METRIC).fit(table.drop(columns="income"), table["binary"])
    model = AdditiveClassifier(METRIC, penalty=1e-3)
    with pytest.raises(FileError, match="X has no column 'income', which the model needs"):
        model.fit(X, OUTCOMES["binary"]).predict(table.drop(columns="income"))
    blind = table.drop(columns="race")  # of weight 0
    np.testing.assert_array_equal(model.predict_proba(blind).compute(), model.predict_proba(X))
    model = AdditiveClassifier(METRIC)
    with pytest.raises(NotFittedError, match="is not fitted"):
        model.predict_proba(table)


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["_bin", "_evaluate"])
def test_a_cluster_gives_the_same_bits_and_survives_a_killed_worker(tmp_path, monkeypatch, cluster, stage):
    monkeypatch.setattr(bins, "BLOCK", 100)
    place = write(tmp_path / "people")
    here = AdditiveClassifier(METRIC, penalty=1e-3).fit(X, OUTCOMES["binary"])
    with connected(cluster.address) as client, killed_after(client, cluster.workers[0], stage) as left:
        there = AdditiveClassifier(METRIC, penalty=1e-3).fit(place, "binary")
    assert left[0], "the worker must die while there is work left"
    assert_same(here, there)
