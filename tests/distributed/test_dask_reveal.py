"""Minimal metrics of Dask DataFrames: to the last bit those of the table in memory, in threads and on a cluster."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from killing import killed_after
from likewise import FileError, InvalidInputError, InvalidTypeError, audit, estimate_minimal_metric
from likewise.distributed import buckets
from likewise.distributed import reveal as dask_reveal
from likewise.distributed.cluster import connected
from likewise.reveal import active_set
from likewise.reveal import linear_program as program

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")


def write(table, place, n_parts):
    """A directory of Parquet files, in row groups of at most 40."""
    place.mkdir()
    for i, rows in enumerate(np.array_split(np.arange(len(table)), n_parts)):
        table.iloc[rows].to_parquet(place / f"{i:04d}.parquet", index=False, row_group_size=40)
    return place


def dask_frame(table, cuts):
    """A Dask DataFrame cut at these shares, whose index says nothing."""
    ends = [0, *sorted(int(cut * len(table)) for cut in cuts), len(table)]
    table = table.set_axis(np.arange(len(table)) % 7, axis=0)
    parts = [dask.delayed(table.iloc[a:b]) for a, b in pairwise(ends)]
    return dd.from_delayed(parts, meta=table.iloc[:0], verify_meta=False)


def people_of(kind, n, seed):
    """People, many of them equal, with a score that follows from what is known of them."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"income": rng.normal(size=n).round(1), "age": rng.integers(20, 60, n)})
    bumps = np.random.default_rng(0).random(40) / 9
    score = 1 / (1 + np.exp(-table["income"])) / 3 + bumps[table["age"] - 20]
    if kind == "table":
        table["income"] = table["income"].where(rng.random(n) > 0.1)
        score = score.where(table["income"].notna(), 0.4)
        table["region"], table["kind"] = rng.choice(["north", "south", None], n), rng.choice([3, 1, 20], n)
        score = score + 0.1 * (table["region"] == "north") + 0.2 * (table["kind"] == 20)
    return table.assign(score=score.clip(0, 1))


def assert_same(one, other):
    """Equal to the last bit."""
    assert one.metric == other.metric
    assert (one.n_pairs, one.n_rounds, one.n_constraints) == (other.n_pairs, other.n_rounds, other.n_constraints)
    pd.testing.assert_frame_equal(one.active_pairs, other.active_pairs, check_exact=True)


@pytest.fixture
def small(monkeypatch):
    """Buckets and samples so small that few people are searched by workers, in several rounds."""

    def shrink(bucket=60, at_once=50, room=64, worst=active_set.N_WORST, weighed=200):
        monkeypatch.setattr(buckets, "BUCKET_SIZE", bucket)
        monkeypatch.setattr(dask_reveal, "MAX_ON_CLIENT", at_once)
        monkeypatch.setattr(active_set, "MIN_PAIRS", room)
        monkeypatch.setattr(active_set, "N_WORST", worst)
        monkeypatch.setattr(program, "_COST_SAMPLE", weighed)

    return shrink


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    kind_and_p=st.sampled_from([("table", 1), ("numbers", 1), ("numbers", 1.5), ("numbers", 2), ("numbers", 3)]),
    n=st.integers(3, 500),
    cuts=st.lists(st.floats(0, 1), max_size=5),
    bucket=st.sampled_from([30, 100, 10_000]),
    at_once=st.sampled_from([0, 40, 10_000]),
    room=st.sampled_from([4, 64, 10_000]),
)
def test_every_number_is_that_of_the_table_in_memory(small, seed, kind_and_p, n, cuts, bucket, at_once, room):
    kind, p = kind_and_p
    people = people_of(kind, n, seed)
    X = people.drop(columns="score")
    if X.drop_duplicates().shape[0] < 2:
        return
    small(bucket, at_once, room, worst=room)
    options = {"categorical": ["region", "kind"]} if kind == "table" else {}
    found = estimate_minimal_metric(None, dask_frame(people, cuts), p, predictions="score", **options)
    assert_same(estimate_minimal_metric(None, X, p, predictions=people["score"], **options), found)
    assert audit(None, X, found.metric, predictions=people["score"]).n_violations == 0


@pytest.mark.parametrize("worst", [5, 10_000])
def test_with_and_without_room_for_all_pairs(tmp_path, small, monkeypatch, worst):
    people = people_of("numbers", 900, 1)
    place = write(people, tmp_path / "people", 4)
    incomplete = []
    original = dask_reveal.DaskPeople._worst
    monkeypatch.setattr(
        dask_reveal.DaskPeople, "_worst", lambda self, *given: incomplete.append(1) or original(self, *given)
    )
    small(room=2 if worst == 5 else 10_000, worst=worst, at_once=20)
    found = estimate_minimal_metric(None, place, predictions="score")
    assert bool(incomplete) == (worst == 5)
    assert_same(estimate_minimal_metric(None, people.drop(columns="score"), predictions=people["score"]), found)


def test_models_limits_and_columns(tmp_path, small):
    people = people_of("numbers", 700, 2).assign(other="x")
    place = write(people, tmp_path / "people", 3)
    X = people[["income", "age"]]
    model = LogisticRegression().fit(X, people["score"] > people["score"].median())
    small()
    assert_same(estimate_minimal_metric(model, X, 2, exchange=False), estimate_minimal_metric(model, place, 2))
    options = {"upper": {"income": 0.2}}
    here = estimate_minimal_metric(None, X, predictions=people["score"], **options)
    there = estimate_minimal_metric(None, place, predictions="score", columns=["income", "age"], **options)
    assert_same(here, there)

    def numbers(rows):
        return 1e6 * rows[:, 0] + rows[:, 1]

    there = estimate_minimal_metric(numbers, place, columns=["income", "age"])
    assert_same(estimate_minimal_metric(numbers, X, exchange=False), there)
    with pytest.raises(InvalidInputError, match="fixed and upper leave no metric") as words:
        estimate_minimal_metric(None, X, predictions=people["score"], fixed={"age": 0})
    with pytest.raises(InvalidInputError) as same_words:
        estimate_minimal_metric(None, place, predictions="score", columns=["income", "age"], fixed={"age": 0})
    assert str(words.value) == str(same_words.value)


def test_the_order_of_people_changes_no_weight(small):
    people = people_of("numbers", 800, 3)
    small()
    one = estimate_minimal_metric(None, people[["income", "age"]], 2, predictions=people["score"]).metric
    mixed = people.sample(frac=1, random_state=0)
    other = estimate_minimal_metric(None, mixed[["income", "age"]], 2, predictions=mixed["score"]).metric
    assert one.columns == other.columns
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-9)


def test_control_a_pair_of_buckets_that_is_not_searched_is_missed(tmp_path, small, monkeypatch):
    near = np.random.default_rng(4).random(900)
    people = pd.DataFrame({"a": np.where(np.arange(900) % 2, near, 10 + near)})
    people["score"] = np.where(people["a"] < 5, 0.1, 0.9)  # only pairs across force a weight
    place = write(people, tmp_path / "people", 2)
    small(room=10)
    right = estimate_minimal_metric(None, place, predictions="score")
    assert audit(None, people[["a"]], right.metric, predictions=people["score"]).n_violations == 0
    original = buckets.BoxedBuckets.crossing_pairs
    within = lambda *given: [(a, b) for a, b in original(*given) if a == b]  # noqa: E731
    monkeypatch.setattr(buckets.BoxedBuckets, "crossing_pairs", within)
    found = estimate_minimal_metric(None, place, predictions="score")
    assert audit(None, people[["a"]], found.metric, predictions=people["score"]).n_violations > 0


def test_what_cannot_be_done_is_one_clear_error(tmp_path, small):
    small()
    people = people_of("table", 300, 5)
    place = write(people, tmp_path / "people", 3)
    with pytest.raises(FileError, match="There is no file or directory"):
        estimate_minimal_metric(None, tmp_path / "nowhere", predictions="score")
    with pytest.raises(InvalidInputError, match=r"columns must list columns of X, .*; got \['height'\]"):
        estimate_minimal_metric(None, place, predictions="score", columns=["height"])
    with pytest.raises(InvalidInputError, match=r"columns must list columns of X, .*; got 'age'"):
        estimate_minimal_metric(None, place, predictions="score", columns="age")
    for nothing in ([], ["score"]):
        with pytest.raises(InvalidInputError, match="columns must name at least one column besides the predictions"):
            estimate_minimal_metric(None, place, predictions="score", columns=nothing)
    with pytest.raises(InvalidTypeError, match="predictions must name a column of X, or be a Dask Series"):
        estimate_minimal_metric(None, place, predictions=people["score"])
    with pytest.raises(InvalidInputError, match="p must be 1 for a table with categories"):
        estimate_minimal_metric(None, place, 2, predictions="score")
    with pytest.raises(InvalidInputError, match=r"groups must be None for a Dask DataFrame or a path; got"):
        estimate_minimal_metric(None, place, predictions="score", groups={"region": [["a", "b"]]})
    with pytest.raises(InvalidInputError, match="columns is for a Dask DataFrame or a path"):
        estimate_minimal_metric(None, people, predictions=people["score"], columns=["age"])
    people.loc[299, ["income", "age", "region", "kind"]] = people.loc[0, ["income", "age", "region", "kind"]]
    people.loc[299, "score"] = people.loc[0, "score"] / 2
    place = write(people, tmp_path / "changed", 3)
    with pytest.raises(InvalidInputError, match="Equal people must have equal outputs") as words:
        estimate_minimal_metric(None, place, predictions="score")
    with pytest.raises(InvalidInputError) as same_words:
        estimate_minimal_metric(None, people.drop(columns="score"), predictions=people["score"])
    assert str(words.value) == str(same_words.value)
    assert len(list(tmp_path.iterdir())) == 2  # nothing is left behind


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["shuffle-transfer", "_gather"])
def test_a_cluster_gives_the_same_bits_and_survives_a_killed_worker(tmp_path, small, cluster, stage):
    people = people_of("table", 2000, 6)
    place = write(people, tmp_path / "people", 20)
    small(bucket=200, room=2000)
    here = estimate_minimal_metric(None, place, predictions="score")
    with connected(cluster.address) as client, killed_after(client, cluster.workers[0], stage) as left:
        there = estimate_minimal_metric(None, place, predictions="score")
    assert left[0], "the worker must die while there is work left"
    assert_same(here, there)


@pytest.mark.parametrize("column", ["a", "region"])
def test_columns_told_apart_by_type_have_one_type_in_all_partitions(column):
    people = pd.DataFrame({"a": [0.0, 1.0, 2.0], "region": ["n", "s", "n"], "score": [0.1, 0.2, 0.3]})
    changed = people.assign(**{column: "many" if column == "a" else 3})
    parts = [dask.delayed(people), dask.delayed(changed)]
    table = dd.from_delayed(parts, meta=people[:0], verify_meta=False)
    with pytest.raises(InvalidInputError, match=rf"Column '{column}' of X must hold the same kind .* in partition 1"):
        estimate_minimal_metric(None, table, predictions="score")


def test_blanks_weigh_as_in_memory_and_what_is_not_forced_is_said():
    rng = np.random.default_rng(3)
    people = pd.DataFrame(
        {"a": rng.normal(size=300).round(1), "b": rng.normal(size=300).round(1), "c": rng.choice([0.0, 1.0], 300)}
    )
    people["score"] = 0.4 + 0.08 * people["a"]
    people.loc[::17, "a"] = np.nan
    people["score"] = people["score"].where(people["a"].notna(), 0.4)
    people = people[people["a"].abs().fillna(0) < 2.5].reset_index(drop=True)
    here = estimate_minimal_metric(None, people[["a", "b", "c"]], predictions=people["score"])
    there = estimate_minimal_metric(None, dd.from_pandas(people, npartitions=3), predictions="score")
    assert (there.metric, there.not_forced, there.notes) == (here.metric, here.not_forced, here.notes)
    assert here.metric.missing["a"] > 0
    pd.testing.assert_frame_equal(there.active_pairs, here.active_pairs, check_exact=True)
