"""What workers hold: Dask knows its size, spills it, and no piece of it grows with the table."""

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest

from likewise import AdditiveClassifier, TableMetric, audit, estimate_minimal_metric
from likewise.additive import binning as bins
from likewise.distributed import buckets
from likewise.distributed import reveal as dask_reveal
from likewise.reveal import active_set

dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

METRIC = TableMetric({"a": 0.1, "b": 0.1}, {"c": 0.1})


def people(n):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "c": rng.choice(["x", "y"], n)})
    score = 1 / (1 + np.exp(-table["a"] - 0.3 * table["b"]))
    return table.assign(score=score, outcome=rng.random(n) < score)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(buckets, "BUCKET_SIZE", 500)
    monkeypatch.setattr(bins, "BLOCK", 500)
    monkeypatch.setattr(bins, "MOST_VALUES", 500)
    monkeypatch.setattr(dask_reveal, "MAX_ON_CLIENT", 100)
    monkeypatch.setattr(active_set, "MIN_PAIRS", 1000)


def client(**options):
    """A worker in this process: what it does is the same, and it starts at once."""
    cluster = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": ":0"}
    return distributed.Client(**cluster, **options)


def results(table):
    X = table[["a", "b", "c"]]
    found = audit(None, table, METRIC, predictions="score")
    revealed = estimate_minimal_metric(None, table, predictions="score", columns=["a", "b", "c"])
    model = AdditiveClassifier(METRIC, penalty=1e-3, max_knots=16).fit(X, table["outcome"])
    return found.n_violations, found.violations, revealed.metric, model.predict_proba(people(200)[["a", "b", "c"]])


def test_what_is_spilled_to_disk_comes_back_the_same(small, tmp_path):
    dask = pytest.importorskip("dask")
    table = dd.from_pandas(people(3000), npartitions=6)
    here = results(table)
    limits = {f"distributed.worker.memory.{name}": False for name in ("spill", "pause", "terminate")}
    # A hundred kilobytes of results in memory, and the rest on disk.
    with (
        dask.config.set({**limits, "distributed.worker.memory.target": 1e-4}),
        client(memory_limit="1GB", local_directory=str(tmp_path)) as active,
    ):
        there = results(table)
        (worker,) = active.cluster.workers.values()
        assert worker.data.cumulative_metrics["disk-write", "bytes"] > 1e6
    assert here[0] == there[0] > 0
    pd.testing.assert_frame_equal(here[1], there[1], check_exact=True)
    assert here[2] == there[2]
    np.testing.assert_array_equal(here[3], there[3])


class Largest(distributed.SchedulerPlugin):
    """Size of the largest result of each function that any worker held."""

    name = "largest"

    def __init__(self, scheduler):
        self.scheduler, self.sizes = scheduler, {}

    def transition(self, key, start, finish, *args, **kwargs):
        if finish == "memory":
            function = str(key[0] if isinstance(key, tuple) else key).partition("-")[0]
            size = self.scheduler.tasks[key].get_nbytes()
            self.sizes[function] = max(self.sizes.get(function, 0), size)


def test_no_piece_of_the_work_grows_with_the_table(small):
    def largest(n):
        with client(memory_limit=0) as active:
            plugin = Largest(active.cluster.scheduler)
            active.cluster.scheduler.add_plugin(plugin)
            results(dd.from_pandas(people(n), chunksize=500))
        return plugin.sizes

    few, many = largest(2000), largest(6000)
    assert {"_box", "_bin", "_distinct"} <= set(many)
    for function in ("_box", "_bin", "_distinct", "_search", "_evaluate"):
        assert many[function] < 2 * few[function], function  # buckets are even within a factor of 2


def test_dask_knows_the_size_of_what_workers_keep():
    from dask.sizeof import sizeof

    from likewise.distributed.additive import Block
    from likewise.pairs.box_tree import box_tree_of

    X, outputs = np.random.default_rng(0).random((3000, 2)), np.zeros((3000, 1))
    boxed = buckets.BoxedBucket(box_tree_of(X, outputs, np.ones(2), 1.0, np.zeros(2, np.int8)))
    assert sizeof(boxed) > 3000 * 8 * (2 + 1 + 5 + 2)  # columns, outputs, residuals, order and counts
    line = np.zeros(1000)
    block = Block([line], [line], line[None], [])
    assert {field.name for field in fields(block)} == {"index", "fraction", "target", "shares"}
    assert sizeof(block) >= 24_000
