"""Directories of Parquet files through the command line: workers for large ones, and what it needs."""

import sys

import pandas as pd
import pytest

from likewise.distributed import cluster, frames
from shell import run

pytest.importorskip("dask.dataframe")


@pytest.fixture
def place(tmp_path):
    (tmp_path / "people").mkdir()
    for i in range(2):
        part = pd.DataFrame({"age": [30.0 + i, 50.0 + i], "score": [0.2, 0.3]})
        part.to_parquet(tmp_path / "people" / f"{i}.parquet", index=False)
    (tmp_path / "metric.toml").write_text("[numeric]\nage = 0.01\n", encoding="utf-8")
    return tmp_path


AUDIT = "audit people --metric metric.toml --scores score"


def test_workers_are_started_for_large_files_only(place, monkeypatch):
    assert frames.workers_for(place / "people") is None
    size = sum(file.stat().st_size for file in (place / "people").iterdir())
    monkeypatch.setattr(frames, "_SPILL_SIZE", size)
    assert frames.workers_for(place / "people") is None
    (place / "people" / "notes.txt").write_text("of no account", encoding="utf-8")
    assert frames.workers_for(place / "people") is None
    monkeypatch.setattr(frames, "_SPILL_SIZE", size - 1)
    assert frames.workers_for(place / "people") == "local"
    assert frames.workers_for(place / "people" / "0.parquet") is None


def test_an_audit_of_large_files_runs_on_workers_with_the_same_result(place, monkeypatch, threads):
    here = run(place, AUDIT)
    assert here.exit_code == 0, here.output
    addresses, original = [], cluster.connected
    monkeypatch.setattr(frames, "_SPILL_SIZE", 0)
    monkeypatch.setattr(cluster, "connected", lambda address: addresses.append(address) or original(threads))
    there = run(place, AUDIT)
    assert addresses == ["local"]
    assert (there.exit_code, there.stdout) == (here.exit_code, here.stdout)


def test_without_dask_one_line_says_what_to_install(place, monkeypatch):
    for name in ("dask", "dask.dataframe"):
        monkeypatch.setitem(sys.modules, name, None)
    done = run(place, AUDIT)
    assert done.exit_code == 2
    (line,) = done.stderr.strip().splitlines()
    assert "needs dask, which is not installed: pip install 'likewise[cluster]'" in line
