"""What tests of several rooms share."""

import importlib
import json
import os
import shutil
import subprocess
import sys
import time
from subprocess import Popen
from typing import NamedTuple

import pytest

from likewise import _engine

if os.environ.get("LIKEWISE_EVERY_PACKAGE"):  # CI has them all: a test without its package fails, and is not skipped
    pytest.importorskip = lambda name, *args, **options: importlib.import_module(name)


@pytest.fixture(autouse=True, scope="session")
def compiled_loops():
    """Tests of small work run the loops that large work runs; `engines.with_both` compares them with NumPy."""
    with _engine.always_compiled():
        yield


@pytest.fixture(scope="module")
def browser():
    """A Chromium without a window, which sends nothing of its own."""
    sync_api = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no browser is installed: apt-get install chromium")
    flags = ["headless", "no-sandbox", "disable-gpu", "disable-background-networking"]
    flags += ["disable-component-update", "disable-sync", "no-first-run"]
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[f"--{flag}" for flag in flags])
        yield browser
        browser.close()


class Processes(NamedTuple):
    """A Dask cluster, each part of which can be killed."""

    address: str
    workers: list[Popen]
    scheduler: Popen


@pytest.fixture
def threads():
    """The address of a Dask scheduler whose workers are threads of this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def impatient(monkeypatch):
    """Clients that give up an unreachable scheduler after a moment, not after ten seconds."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(
        distributed, "Client", lambda address, timeout, whole=distributed.Client: whole(address, timeout="0.1s")
    )


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and two workers, each a process of its own on loopback."""
    distributed = pytest.importorskip("distributed")
    info = tmp_path / "scheduler.json"
    environment = {**os.environ, "DASK_DISTRIBUTED__DASHBOARD__LINK": ""}
    run = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment, "cwd": tmp_path}
    processes = [
        subprocess.Popen(
            [*run, "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(info)], **quiet
        )
    ]
    try:
        deadline = time.monotonic() + 60
        while not info.exists() or not info.read_text().strip():
            assert time.monotonic() < deadline, "the scheduler did not start"
            time.sleep(0.1)
        address = json.loads(info.read_text())["address"]
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--host", "127.0.0.1", "--no-nanny"]
        workers = [
            subprocess.Popen(
                [*worker, "--nthreads", "1", "--no-dashboard", "--local-directory", str(tmp_path)], **quiet
            )
            for _ in range(2)
        ]
        processes += workers
        with distributed.Client(address, timeout="60s") as client:
            client.wait_for_workers(2, timeout=60)
        yield Processes(address, workers, processes[0])
    finally:
        for process in processes:
            process.kill()
            process.wait(timeout=30)
