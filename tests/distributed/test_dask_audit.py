"""Audits of Dask DataFrames: to the last bit those of the table in memory, in threads and on a real cluster."""

from dataclasses import fields
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from killing import killed_after
from likewise import (
    AdditiveClassifier,
    AdditiveRegressor,
    FileError,
    InvalidInputError,
    InvalidTypeError,
    TableMetric,
    WeightedLp,
    audit,
)
from likewise.distributed import buckets
from likewise.distributed.cluster import connected

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")


def write(table, place, sizes):
    """A directory of Parquet files with these numbers of rows, in row groups of at most 40."""
    place.mkdir()
    start = 0
    for i, size in enumerate(sizes):
        table.iloc[start : start + size].to_parquet(place / f"{i:04d}.parquet", index=False, row_group_size=40)
        start += size
    assert start == len(table)
    return place


def dask_frame(table, sizes, seed=0):
    """A Dask DataFrame with partitions of these sizes, and labels in the index that say nothing."""
    ends = np.cumsum([0, *sizes])
    assert ends[-1] == len(table)
    labels = np.random.default_rng(seed).integers(0, 5, len(table))
    table = table.set_axis(labels, axis=0)
    parts = [dask.delayed(table.iloc[a:b]) for a, b in pairwise(ends)]
    return dd.from_delayed(parts, meta=table.iloc[:0], verify_meta=False)


def halves(table, n_parts):
    return [len(part) for part in np.array_split(np.arange(len(table)), n_parts)]


def assert_same(one, other, *, but=(), rounding=0.0):
    """Equal to the last bit, or up to a rounding."""
    for field in fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if field.name in but:
            continue
        if isinstance(a, pd.DataFrame):
            exactly = {"rtol": rounding, "atol": rounding} if rounding else {"check_exact": True}
            pd.testing.assert_frame_equal(a, b, **exactly)
        elif rounding and isinstance(a, float):
            assert a == pytest.approx(b, rel=rounding, nan_ok=True), field.name
        else:
            assert a == b or (a != a and b != b), field.name


def mixed(n, seed):
    """People with numbers, of which some are missing and many are equal, and categories."""
    rng = np.random.default_rng(seed)
    income = rng.normal(size=n).round(1)
    income[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "income": income,
            "age": rng.integers(20, 60, n),
            "region": rng.choice(["north", "south", None], n),
            "kind": rng.choice([3, 1, 20], n),
            "score": rng.random(n).round(2),
        }
    )


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    strictness=st.sampled_from([0.02, 0.3, 1.0]),
    n=st.integers(2, 400),
    cuts=st.lists(st.floats(0, 1), max_size=5),
    from_files=st.booleans(),
    bucket=st.sampled_from([30, 100, 10_000]),
    n_worst=st.sampled_from([1, 20]),
)
def test_every_number_is_that_of_the_table_in_memory(
    tmp_path_factory, monkeypatch, seed, strictness, n, cuts, from_files, bucket, n_worst
):
    people = mixed(n, seed)
    metric = TableMetric(
        {"income": 0.5 * strictness, "age": 0.02 * strictness},
        {"region": 0.3 * strictness, "kind": 0.0},
        missing={"income": 0.2, "age": 0.5},
    )
    sizes = np.diff([0, *sorted(int(cut * n) for cut in cuts), n])  # some partitions are empty
    table = (
        write(people, tmp_path_factory.mktemp("table") / "people", sizes)
        if from_files
        else dask_frame(people, sizes, seed)
    )
    monkeypatch.setattr(buckets, "BUCKET_SIZE", bucket)
    more = {"n_worst": n_worst, "thresholds": [0.01, 0.4]}
    found = audit(None, table, metric, predictions="score", **more)
    X = people.drop(columns="score")
    assert_same(audit(None, X, metric, predictions=people["score"], **more), found, but=["n_compared"])
    # Brute force, by the metric itself.
    i, j = np.triu_indices(n, 1)
    excess = np.abs(people["score"].to_numpy()[i] - people["score"].to_numpy()[j]) - metric.pairwise(X)[i, j]
    clear = np.abs(excess - 1e-9) > 1e-12
    assert abs(found.n_violations - int((excess > 1e-9).sum())) <= int((~clear).sum())
    assert found.n_above[0.4] == int((excess > 0.4).sum())


@pytest.mark.parametrize("bucket", [40, 10_000])
def test_equal_people_of_different_files_are_one_person_who_counts_each_time(tmp_path, monkeypatch, bucket):
    """Twelve kinds of people, some with a missing number, each in every file and several times in a row group."""
    kinds = mixed(12, 5).assign(score=np.linspace(0, 1, 12))
    kinds.loc[[2, 7], "income"] = np.nan
    times = np.random.default_rng(0).integers(1, 40, 12)
    order = np.random.default_rng(1).permutation(np.repeat(np.arange(12), times))
    people = kinds.iloc[order].reset_index(drop=True)
    metric = TableMetric(
        {"income": 0.1, "age": 0.002}, {"region": 0.05, "kind": 0}, missing={"income": 0.1, "age": 0.1}
    )
    monkeypatch.setattr(buckets, "BUCKET_SIZE", bucket)
    place = write(people, tmp_path / "people", halves(people, 4))
    found = audit(None, place, metric, predictions="score", thresholds=[0.3])
    X = people.drop(columns="score")
    assert_same(audit(None, X, metric, predictions=people["score"], thresholds=[0.3]), found, but=["n_compared"])
    scores = people["score"].to_numpy()
    i, j = np.triu_indices(len(people), 1)
    excess = np.abs(scores[i] - scores[j]) - metric.pairwise(X)[i, j]
    assert found.n_distinct == 12
    assert found.n_violations == (excess > 1e-9).sum() > 1000
    assert found.n_above == {0.3: (excess > 0.3).sum()}
    assert found.violations["n_pairs"].sum() == found.n_violations  # at most 66 kinds of pairs: all are listed
    for pair in found.violations.itertuples():
        a, b = order[pair.row_a], order[pair.row_b]
        assert pair.n_pairs == times[a] * times[b]
        assert [pair.row_a, pair.row_b] == [int(np.argmax(order == a)), int(np.argmax(order == b))]  # first rows
        assert [pair.score_a, pair.score_b] == [kinds["score"][a], kinds["score"][b]]


@pytest.mark.parametrize("p", [1, 2])
def test_models_of_every_kind_are_asked_by_partition(tmp_path, monkeypatch, p):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(600, 3)), columns=list("abc"))
    place = write(X.assign(other="x"), tmp_path / "people", [250, 0, 350])
    monkeypatch.setattr(buckets, "BUCKET_SIZE", 100)
    metric = WeightedLp({"a": 0.05**p, "b": 0.1**p, "c": 0.0}, p)
    three = np.digitize(X["a"] + rng.normal(size=600), [-0.5, 0.5])
    numbers = AdditiveRegressor(WeightedLp({"a": 0.3, "b": 0.1, "c": 0.1}), penalty=1e-3).fit(X, 7 * X["a"])
    models = (
        LogisticRegression().fit(X, three),
        LogisticRegression().fit(X, three > 0),
        LinearSVC().fit(X, three),
        numbers,
        lambda rows: np.sin(rows[:, 0]),
        lambda rows: 1e6 * rows[:, 0],
    )
    for model in models:
        found = audit(model, place, metric)
        # With NumPy 2.0, scikit-learn's own answers depend on whether a batch is laid out by row or by column.
        layout_matters = np.__version__.startswith("2.0.") and isinstance(model, LogisticRegression)
        rounding = 1e-12 if layout_matters else 0.0
        assert_same(audit(model, X, metric), found, but=["n_compared"], rounding=rounding)
        assert found.n_violations > 100


def test_columns_that_must_not_matter_need_not_be_in_the_files(tmp_path):
    X = mixed(300, 3).drop(columns="score")
    metric = TableMetric({"income": 0.05, "age": 0.0}, {"region": 0.05, "kind": 0}, missing={"income": 0.2})
    model = AdditiveClassifier(metric, penalty=1e-3).fit(X, X["kind"] > 1)
    blind = X.drop(columns=["age", "kind"])
    found = audit(model, write(blind, tmp_path / "blind", [150, 150]), metric)
    assert_same(audit(model, blind, metric), found, but=["n_compared"])
    whole = audit(model, write(X, tmp_path / "whole", [300]), metric)
    assert_same(whole, found, but=["n_compared", "n_distinct"])
    place = write(X.drop(columns="region"), tmp_path / "useless", [300])
    with pytest.raises(FileError, match="has no column 'region', which the metric names"):
        audit(model, place, metric)


def test_nothing_depends_on_how_the_table_is_cut(tmp_path, monkeypatch):
    people = mixed(500, 1)
    metric = TableMetric({"income": 0.05, "age": 0.002}, {"region": 0.05, "kind": 0}, missing="category")
    monkeypatch.setattr(buckets, "BUCKET_SIZE", 60)
    results = [
        audit(None, write(people, tmp_path / str(i), sizes), metric, predictions="score")
        for i, sizes in enumerate(([500], [1, 499], halves(people, 7)))
    ]
    people.to_parquet(tmp_path / "one.parquet", row_group_size=500)
    results.append(audit(None, tmp_path / "one.parquet", metric, predictions="score"))
    for other in results[1:]:
        assert_same(results[0], other)
        assert other.coverage == results[0].coverage
    assert len(list(tmp_path.iterdir())) == 4  # nothing is left behind


def test_control_a_pair_of_buckets_that_is_not_searched_is_missed(monkeypatch):
    people = mixed(300, 2)
    table = dask_frame(people, [150, 150])
    metric = TableMetric({"income": 0.05, "age": 0.002}, {"region": 0.05, "kind": 0}, missing="category")
    monkeypatch.setattr(buckets, "BUCKET_SIZE", 50)
    whole = audit(None, table, metric, predictions="score")
    original = buckets.BoxedBuckets.crossing_pairs
    within = lambda *given: [(a, b) for a, b in original(*given) if a == b]  # noqa: E731
    monkeypatch.setattr(buckets.BoxedBuckets, "crossing_pairs", within)
    assert audit(None, table, metric, predictions="score").n_violations < whole.n_violations


def test_bounds_leave_out_pairs_of_buckets(monkeypatch):
    rng = np.random.default_rng(3)
    people = pd.DataFrame({"a": rng.random(2000), "score": 0.0})
    people["score"] = 0.5 * people["a"]
    monkeypatch.setattr(buckets, "BUCKET_SIZE", 100)
    searched = []
    original = buckets.BoxedBuckets.crossing_pairs

    def counted(*given):
        searched.extend(original(*given))
        return searched

    monkeypatch.setattr(buckets.BoxedBuckets, "crossing_pairs", counted)
    found = audit(None, dask_frame(people, [1000, 1000]), WeightedLp({"a": 1.0}), predictions="score")
    assert found.n_violations == 0
    n_buckets = sum(a == b for a, b in searched)
    assert n_buckets > 15
    assert len(searched) < n_buckets * 4  # neighbours only


def test_equal_people_share_a_bucket_and_buckets_are_even():
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.normal(size=4000), rng.integers(0, 3, 4000)])
    X[rng.random(4000) < 0.1, 0] = np.nan
    outputs = rng.random((4000, 1)).round(3)
    kinds = np.array([1, 2], dtype=np.int8)
    tree = buckets.BucketTree.fit(X[:1000], outputs[:1000], np.array([1.0, 0.5]), kinds, 8)
    bucket = tree.apply(X, outputs)
    np.testing.assert_array_equal(tree.apply(X[::-1], outputs[::-1]), bucket[::-1])
    sizes = np.bincount(bucket)
    assert len(sizes) == tree.n_buckets >= 6
    assert sizes.max() <= 2 * 4000 / 8


def test_predictions_may_be_a_dask_series_of_the_same_partitions():
    people = mixed(200, 8)
    table = dask_frame(people, [50, 150])
    metric = TableMetric({"income": 0.05, "age": 0.002}, {"region": 0.05, "kind": 0}, missing="category")
    found = audit(None, table.drop(columns="score"), metric, predictions=table["score"] / 2)
    here = audit(None, people.drop(columns="score"), metric, predictions=people["score"] / 2)
    assert_same(here, found, but=["n_compared"])
    with pytest.raises(InvalidInputError, match="predictions must have the partitions of X"):
        audit(None, table, metric, predictions=table.repartition(npartitions=1)["score"])


def test_what_cannot_be_done_is_one_clear_error(tmp_path):
    people = mixed(50, 5)
    place = write(people, tmp_path / "people", [50])
    metric = TableMetric({"income": 0.05, "age": 0.002}, {"region": 0.05, "kind": 0})
    with pytest.raises(FileError, match="There is no file or directory"):
        audit(None, tmp_path / "nowhere", metric, predictions="score")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match=r"holds no .parquet file"):
        audit(None, tmp_path / "empty", metric, predictions="score")
    with pytest.raises(FileError, match="has no column 'height', which the metric names"):
        audit(None, place, TableMetric({"height": 1.0}), predictions="score")
    with pytest.raises(FileError, match="X has no column 'points', the predictions"):
        audit(None, dask_frame(people, [20, 30]), metric, predictions="points")
    with pytest.raises(InvalidTypeError, match="predictions must name a column of X, or be a Dask Series"):
        audit(None, place, metric, predictions=people["score"])
    with pytest.raises(InvalidInputError, match="has missing numbers, which the metric refuses"):
        audit(None, place, metric, predictions="score")
    with pytest.raises(InvalidInputError, match="must hold at least two people; it has 1"):
        audit(None, dask_frame(people[:1], [0, 1]), metric, predictions="score")
    with pytest.raises(InvalidInputError, match="model must have classes_"):
        audit(lambda rows: np.where(rows["age"] > 40, "a", "b"), place, TableMetric({"age": 0.1}))
    (place / "0001.parquet").write_bytes(b"not a table")
    with pytest.raises(FileError, match=r"Cannot read .*0001.parquet as Parquet"):
        audit(None, place, metric, predictions="score")


def typed(parts):
    """A Dask DataFrame of partitions whose types differ."""
    return dd.from_delayed([dask.delayed(part) for part in parts], meta=parts[0][:0], verify_meta=False)


def test_what_a_column_is_comes_from_the_metric_in_partitions_of_several_types():
    """Codes are whole numbers, floats, text and categories, and one number is written as text."""
    people = mixed(120, 9).dropna()
    parts = [people.iloc[rows] for rows in np.array_split(np.arange(len(people)), 4)]
    changed = [
        parts[0],
        parts[1].astype({"kind": float, "age": str}),
        parts[2].astype({"kind": str}),
        parts[3].astype({"kind": "category"}),
    ]
    metric = TableMetric({"income": 0.05, "age": 0.002}, {"region": 0.05, "kind": 0.1})
    found = audit(None, typed(changed), metric, predictions="score", thresholds=[0.3])
    here = audit(None, people.drop(columns="score"), metric, predictions=people["score"], thresholds=[0.3])
    assert (found.n_violations, found.n_above, found.n_distinct) == (here.n_violations, here.n_above, here.n_distinct)
    columns = ["row_a", "row_b", "score_a", "score_b", "difference", "distance"]
    pd.testing.assert_frame_equal(found.violations[columns], here.violations[columns], check_exact=True)
    wrong = [parts[0], parts[1].assign(age="many")]
    with pytest.raises(InvalidInputError, match=r"Column 'age' must hold numbers \(it has 'many'"):
        audit(None, typed(wrong), metric, predictions="score")


@pytest.mark.parametrize("lengths", [(20, 30), (5000, 6000)])
def test_a_blank_that_is_refused_is_named_by_its_row(lengths):
    people = pd.DataFrame({"age": np.arange(sum(lengths)) % 50, "score": 0.5}).astype({"age": float})
    people.loc[0, "score"] = 0.6
    row = lengths[0] + 7
    people.loc[row, "age"] = np.nan
    with pytest.raises(InvalidInputError, match=f"the first in row {row}"):
        audit(None, dask_frame(people, lengths), TableMetric({"age": 0.1}), predictions="score")
    with pytest.raises(InvalidInputError, match=f"the first in row {row}"):
        AdditiveRegressor(TableMetric({"age": 0.1})).fit(dask_frame(people, lengths), "score")


@pytest.mark.parametrize(
    ("first", "change"),
    [
        (False, lambda people: people.assign(age=people["age"] + 0.5)),
        (True, lambda people: people.assign(age=people["age"] + 0.5)),
        (False, lambda people: people.assign(age=people["age"].where(people["age"] > 30))),
        (False, lambda people: people.assign(age=np.nan)),
        (True, lambda people: people.assign(region=None)),
        (False, lambda people: people.assign(region="west").astype({"region": "category"})),
        (False, lambda people: people[people.columns[::-1]].assign(more=1)),
        (True, lambda people: people.sample(frac=1, random_state=0)),  # an index is no column
    ],
)
def test_files_need_not_be_written_alike(tmp_path, first, change):
    people = mixed(60, 10)
    parts = [change(people), people] if first else [people, change(people)]
    (tmp_path / "people").mkdir()
    for i, part in enumerate(parts):
        part.to_parquet(tmp_path / "people" / f"{i}.parquet")
    metric = TableMetric({"income": 0.05, "age": 0.002}, {"region": 0.05, "kind": 0}, missing="category")
    whole = pd.concat(parts, ignore_index=True)[people.columns]
    here = audit(None, whole.drop(columns="score"), metric, predictions=whole["score"])
    found = audit(None, tmp_path / "people", metric, predictions="score")
    assert (found.n_violations, found.max_excess) == (here.n_violations, here.max_excess)
    columns = ["row_a", "row_b", "difference", "distance"]
    pd.testing.assert_frame_equal(found.violations[columns], here.violations[columns], check_exact=True)


@pytest.fixture
def many_tasks(tmp_path, monkeypatch):
    """A table whose audit has many tasks, and a metric."""
    people = mixed(3000, 6)
    place = write(people, tmp_path / "people", halves(people, 20))
    metric = TableMetric({"income": 0.05, "age": 0.002}, {"region": 0.05, "kind": 0}, missing="category")
    monkeypatch.setattr(buckets, "BUCKET_SIZE", 250)
    return place, metric


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["shuffle-transfer", "_box", "_search"])
def test_a_cluster_gives_the_same_bits_and_survives_a_killed_worker(many_tasks, cluster, stage):
    place, metric = many_tasks
    here = audit(None, place, metric, predictions="score")
    with connected(cluster.address) as client, killed_after(client, cluster.workers[0], stage) as left:
        there = audit(None, place, metric, predictions="score")
    assert left[0], "the worker must die while there is work left"
    assert_same(here, there)
    assert there.n_violations > 1000


@pytest.mark.slow
def test_a_killed_scheduler_is_one_clear_error_and_the_next_audit_is_whole(many_tasks, cluster):
    place, metric = many_tasks
    with (
        pytest.raises(FileError, match=r"scheduler at tcp://.* stopped responding .* start a scheduler"),
        connected(cluster.address) as client,
        killed_after(client, cluster.scheduler, "shuffle-transfer") as left,
    ):
        audit(None, place, metric, predictions="score")
    assert left[0], "the scheduler must die while there is work left"
    assert audit(None, place, metric, predictions="score").n_violations > 1000


@pytest.mark.usefixtures("impatient")
def test_an_unreachable_cluster_is_one_clear_error():
    with (
        pytest.raises(FileError, match=r"Cannot reach a Dask scheduler at tcp://127.0.0.1:1"),
        connected("tcp://127.0.0.1:1"),
    ):
        pass
    for wrong in (True, "x"):
        with (
            pytest.raises(InvalidInputError, match="cluster must be 'local' or the address of a Dask scheduler"),
            connected(wrong),
        ):
            pass


@pytest.mark.parametrize(
    "shape",
    [
        {"groups": {"job": {"within": 0.25, "groups": [["a", "b"], ["c", "d", "nobody"]]}}},
        {"distances": {"job": {"a": {"b": 1, "c": 2, "d": 3}, "b": {"c": 1, "d": 2}, "c": {"d": 1}}}},
        {"distances": {"job": {"a": {"b": 5, "c": 3, "d": 4}, "b": {"c": 4, "d": 3}, "c": {"d": 2}}}},
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_shapes_of_categories_are_audited_as_in_memory(shape, seed):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"age": rng.integers(20, 60, 300), "job": rng.choice(list("abcd"), 300)})
    scores = rng.random(300)
    metric = TableMetric({"age": 0.01}, {"job": 0.5}, **shape)
    whole = audit(None, table, metric, predictions=scores)
    parts = audit(None, dd.from_pandas(table.assign(s=scores), npartitions=3), metric, predictions="s")
    assert_same(parts, whole, but=("n_compared",))
    i, j = np.triu_indices(300, 1)
    excess = np.abs(scores[i] - scores[j]) - metric.pairwise(table)[i, j]
    assert parts.n_violations == (excess > 1e-9).sum()
    plain = audit(None, table, TableMetric({"age": 0.01}, {"job": 0.5}), predictions=scores)
    assert plain.n_violations < whole.n_violations  # control: the shape counts


def test_distances_that_are_no_sum_of_mismatches_are_refused_in_partitions():
    graph = {x: {y: 2 if (x in "ab") == (y in "ab") else 1 for y in "abcde" if y != x} for x in "abcde"}
    metric = TableMetric({}, {"job": 0.5}, distances={"job": graph})
    table = pd.DataFrame({"job": [*"abcde"], "s": 0.5})
    with pytest.raises(InvalidInputError, match=r"'job' for a table in partitions.* Use groups, or take up") as error:
        audit(None, dd.from_pandas(table, npartitions=2), metric, predictions="s")
    assert "\n" not in str(error.value)
