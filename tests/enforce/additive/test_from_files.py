"""Fits to tables in partitions: to the last bit those of the table in memory, here and on a real cluster."""

import numpy as np
import pandas as pd
import pytest

from killing import killed
from likewise import AdditiveClassifier, AdditiveRegressor, FileError, InvalidInputError, TableMetric, WeightedLp
from likewise.enforce.additive import bins, blocks
from likewise.enforce.additive.fitting import slot_sums
from likewise.metrics.coding import ArrayCoding

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


def assert_same(one, other):
    """Equal to the last bit."""
    assert one.penalty_ == other.penalty_
    assert one.coding_ == other.coding_
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
        (
            AdditiveClassifier(TableMetric({"income": 0.2, "age": 0.01}, p=2, missing="category"), penalty=1e-3),
            "binary",
        ),
        (AdditiveRegressor(WeightedLp({"income": 0.2}), penalty=1e-3, random_state=3), "number"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_model_is_that_of_the_table_in_memory(tmp_path, model, target):
    place = write(tmp_path / "people")
    names = [*model.metric.numeric, *model.metric.categorical] if model.metric.takes_tables else ["income"]
    here = model.with_metric(model.metric).fit(X[names], OUTCOMES[target])
    there = model.with_metric(model.metric).fit_partitions(place, target)
    assert_same(here, there)
    np.testing.assert_array_equal(there.predict(X[names][:50]), here.predict(X[names][:50]))
    assert list(tmp_path.iterdir()) == [place]  # nothing is left behind


def test_tables_with_too_many_variables_for_one_matrix(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "_MOST_VARIABLES", 16)
    place = write(tmp_path / "people")
    for p, target in ((1, "three"), (2, "binary")):
        metric = TableMetric({"income": 0.2, "age": 0.01}, {"region": 0.1, "race": 0}, p, missing="category")
        here = AdditiveClassifier(metric, penalty=1e-3, max_knots=6).fit(X, OUTCOMES[target])
        assert_same(here, AdditiveClassifier(metric, penalty=1e-3, max_knots=6).fit_partitions(place, target))


def test_nothing_depends_on_how_the_table_is_cut(tmp_path):
    one = AdditiveClassifier(METRIC, penalty=1e-3).fit_partitions(write(tmp_path / "a"), "binary")
    assert_same(one, AdditiveClassifier(METRIC, penalty=1e-3).fit_partitions(write(tmp_path / "b", [900]), "binary"))


def test_control_sums_over_other_blocks_have_other_bits(monkeypatch):
    rows, weights = X[["income"]].to_numpy(), RNG.random(N)
    part = bins.bin_columns(rows, np.full(N, 1 / N), WeightedLp([0.2]).weights_of(ArrayCoding(1)), 5)
    sums = slot_sums(part, weights, 1)
    np.testing.assert_array_equal(slot_sums(part, weights, 2), sums)
    monkeypatch.setattr(bins, "BLOCK", 170)
    assert (slot_sums(part, weights, 1) != sums).any()
    np.testing.assert_allclose(slot_sums(part, weights, 1), sums, rtol=1e-12)


def test_what_cannot_be_done_is_one_clear_error(tmp_path):
    place = write(tmp_path / "people")
    with pytest.raises(FileError, match="has no column 'approved', the target"):
        AdditiveClassifier(METRIC).fit_partitions(place, "approved")
    with pytest.raises(InvalidInputError, match="metric must be given for a table in partitions"):
        AdditiveClassifier().fit_partitions(place, "binary")
    with pytest.raises(InvalidInputError, match="y must hold one number per person"):
        AdditiveRegressor(METRIC).fit_partitions(place, "three")
    with pytest.raises(InvalidInputError, match="none of them missing"):
        AdditiveRegressor(TableMetric({"income": 0.2})).fit_partitions(place, "age")


def test_a_cluster_gives_the_same_bits_and_survives_a_killed_worker(tmp_path, monkeypatch, cluster):
    monkeypatch.setattr(bins, "BLOCK", 20)
    address, workers, _ = cluster
    place, scratch = write(tmp_path / "people"), tmp_path / "scratch"
    scratch.mkdir()
    here = AdditiveClassifier(METRIC).fit(X, OUTCOMES["binary"])
    with killed(workers[0], scratch, "*/block-*", 10) as left:
        there = AdditiveClassifier(METRIC).fit_partitions(place, "binary", cluster=address, scratch=scratch)
    assert left[0], "the worker must die while there is work left"
    assert_same(here, there)
    assert not list(scratch.iterdir())
