"""Work that is killed, full disks, read-only directories, two runs on one output, clocks that jump."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import likewise
from likewise import AdditiveClassifier, TableMetric
from likewise.cli.batch_scoring import ScoringJob, score_file
from likewise.exceptions import FileError
from likewise.io import save_model
from likewise.metric_file import write_metric

HERE = Path(__file__).parents[1]
METRIC = TableMetric({"age": 0.01}, {"job": 0.1})


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.fixture
def place(tmp_path):
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"id": range(30), "age": rng.integers(20, 70, 30), "job": rng.choice(["a", "b"], 30)})
    people["approved"] = np.where(people["age"] + rng.normal(0, 9, 30) > 45, "yes", "no")
    people.to_csv(tmp_path / "people.csv", index=False)
    X = people[["age", "job"]]
    save_model(AdditiveClassifier(METRIC, penalty=0.01).fit(X, people["approved"]), tmp_path / "model.skops")
    write_metric(METRIC, tmp_path / "given.toml")
    return tmp_path


def crashes(name, place, trouble):
    """Run `crashes.py`, which forks and so needs a process of its own."""
    source = Path(likewise.__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, HERE / "crashes.py", name, place, trouble]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow  # the fast tests have a full disk, a read-only directory and Ctrl-C, each at some of these places
@pytest.mark.parametrize(("name", "moments"), [("score", 20), ("metric", 4), ("enforce", 4)])
def test_killed_at_every_file_operation_nothing_is_lost_doubled_or_half_written(place, name, moments):
    found = crashes(name, place, "crash")
    assert found["moments"] >= moments, "too few moments were found for this to be a test"
    assert found["wrong"] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["score", "metric", "metric over another", "enforce"])
def test_killed_at_any_time_nothing_is_lost_doubled_or_half_written(place, name):
    (place / "older.toml").write_text("# an older file\n")
    found = crashes(name, place, "time")
    assert found["killed"] >= 3, "too few were killed for this to be a test"
    assert found["wrong"] == []


@pytest.mark.parametrize("name", [slow("score"), "metric", slow("enforce")])
def test_a_full_disk_is_one_clear_error_and_leaves_nothing(place, name):
    found = crashes(name, place, "full")
    assert set(found["ended"]) == {2}
    assert found["stayed"] == []
    assert found["recovers"]


@pytest.mark.parametrize("name", [slow("score"), "metric", slow("enforce")])
def test_a_read_only_directory_is_one_clear_error(place, name):
    found = crashes(name, place, "read-only")
    assert set(found["ended"]) == {2}
    assert found["stayed"] == []
    assert found["recovers"]


def order(place):
    return ScoringJob((place / "model.skops").read_bytes())


def unfinished(place, monkeypatch, after=3):
    """A run that stops after some batches."""
    calls = []

    def tired(self, batch, whole=ScoringJob.__call__):
        calls.append(1)
        if len(calls) > after:
            raise MemoryError("no more")
        return whole(self, batch)

    with monkeypatch.context() as patch:
        patch.setattr(ScoringJob, "__call__", tired)
        with pytest.raises(MemoryError):
            score_file(order(place), place / "people.csv", place / "scores.csv", batch_rows=4)
    return place / "scores.csv.parts"


def test_what_a_killed_run_left_unfinished_is_not_taken_for_scores(place, monkeypatch):
    score_file(order(place), place / "people.csv", place / "whole.csv", batch_rows=4)
    parts = unfinished(place, monkeypatch)
    done = sorted(parts.glob("0*.parquet"))
    # Killed while writing: half a file; killed before it got its name: a whole one, which will be written again.
    (parts / ".00000004.parquet.abc.parquet").write_bytes(done[0].read_bytes()[:100])
    (parts / ".00000005.parquet.abc.parquet").write_bytes(done[0].read_bytes())
    score_file(order(place), place / "people.csv", place / "scores.csv", batch_rows=4)
    assert (place / "scores.csv").read_text() == (place / "whole.csv").read_text()


def test_two_runs_on_one_output_do_not_mix(place):
    script = (
        "import sys, time; from likewise.cli.batch_scoring import ScoringJob, score_file\n"
        "from pathlib import Path\n"
        "def slow(self, batch, whole=ScoringJob.__call__):\n"
        "    print('started', flush=True); time.sleep(60); return whole(self, batch)\n"
        "ScoringJob.__call__ = slow\n"
        "score_file(ScoringJob(Path('model.skops').read_bytes()), 'people.csv', 'scores.csv', batch_rows=4)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(likewise.__file__).parents[1])}
    first = subprocess.Popen([sys.executable, "-c", script], cwd=place, stdout=subprocess.PIPE, env=environment)
    try:
        assert first.stdout.readline()
        with pytest.raises(FileError, match="another run is writing"):
            score_file(order(place), place / "people.csv", place / "scores.csv", batch_rows=4)
    finally:
        first.kill()
        first.communicate(timeout=60)
    # With its process, the hold of the first run is gone: the next one goes on from there.
    assert score_file(order(place), place / "people.csv", place / "scores.csv", batch_rows=4) == 30


@pytest.mark.slow
def test_a_killed_scheduler_is_one_clear_line_and_the_next_run_completes_what_is_there(place, cluster):
    """From the command line; not even the log of the client is to be seen."""
    pd.concat([pd.read_csv(place / "people.csv")] * 20).to_csv(place / "many.csv", index=False)
    score_file(order(place), place / "many.csv", place / "whole.csv", batch_rows=3)
    command = f"score model.skops many.csv --out scores.csv --batch 3 --cluster {cluster.address}".split()
    environment = os.environ | {"PYTHONPATH": str(Path(likewise.__file__).parents[1])}
    run = subprocess.Popen(
        [sys.executable, "-m", "likewise", *command],
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        deadline, parts = time.monotonic() + 120, place / "scores.csv.parts"
        while time.monotonic() < deadline and len(list(parts.glob("0*.parquet"))) < 5 and run.poll() is None:
            time.sleep(0.01)
        cluster.scheduler.kill()
        said, _ = run.communicate(timeout=240)
    finally:
        run.kill()
        run.communicate(timeout=60)
    assert run.returncode == 2
    assert said.startswith("Error: The Dask scheduler at tcp://127.0.0.1")
    assert len(said.strip().splitlines()) == 1
    done = len(list(parts.glob("0*.parquet")))
    assert 5 <= done < 200, "the scheduler must die while there is work left"
    assert not (place / "scores.csv").exists()
    assert score_file(order(place), place / "many.csv", place / "scores.csv", batch_rows=3) == 600
    assert (place / "scores.csv").read_text() == (place / "whole.csv").read_text()


def test_a_clock_that_jumps_changes_nothing(place, monkeypatch):
    score_file(order(place), place / "people.csv", place / "whole.csv", batch_rows=4)
    parts = unfinished(place, monkeypatch)
    for path in parts.iterdir():
        os.utime(path, (2**33, 2**33))  # the year 2242
    monkeypatch.setattr(time, "time", lambda: 0.0)
    score_file(order(place), place / "people.csv", place / "scores.csv", batch_rows=4)
    assert (place / "scores.csv").read_text() == (place / "whole.csv").read_text()


def test_control_a_table_that_was_changed_in_between_is_noticed(place, monkeypatch):
    unfinished(place, monkeypatch)
    people = pd.read_csv(place / "people.csv")
    people.iloc[::-1].to_csv(place / "people.csv", index=False)
    with pytest.raises(FileError, match="unfinished run with another model, table or options"):
        score_file(order(place), place / "people.csv", place / "scores.csv", batch_rows=4)
