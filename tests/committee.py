"""A committee without a page: a workbench served in a thread, and clients of it."""

import os
import re
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import httpx
import numpy as np
import pandas as pd

from likewise import AdditiveClassifier, AdditiveRegressor
from likewise.workbench.engine import Problem
from likewise.workbench.exports import Tools
from likewise.workbench.server import HOST, bind, make_server
from likewise.workbench.state import Session

TOKEN = "a-token-for-tests"
DEADLINE = 120.0  # seconds; nothing here waits longer


def applicants(n=300, seed=0):
    """Two numbers, one with blanks, two categories; only income and region matter for the outcome."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "income": rng.normal(50, 10, n).round(1),
            "debt": np.where(rng.random(n) < 0.1, np.nan, rng.exponential(5, n).round(1)),
            "region": rng.choice(["north", "south", "west"], n),
            "race": rng.choice(["x", "y"], n),
        },
        index=range(1, n + 1),
    )
    z = (X["income"] - 50) / 10 + (X["region"] == "south")
    y = np.where(z + rng.normal(size=n) > 0.3, "yes", "no")
    return X, y


def problem_of(X, y, task="classification", **more):
    return Problem(X, y, task, "people.csv", "outcome", **more)


def session_of(engine, path, locked=()):
    problem = engine.problem
    table = {"name": problem.table, "target": problem.target, "fingerprint": problem.fingerprint}
    return Session(path, table, engine.empty_sheet(locked), engine.ranges)


def tools_of(X, y, output_range=None):
    from likewise.cli.training import reveal_model
    from likewise.metric_file import read_metric

    def reveal(problem):
        found = reveal_model(problem.X, problem.y, "logistic", 0, output_range=problem.output_range)
        return found.metric, found.how

    def train(path):
        metric = read_metric(path)
        made = (
            AdditiveClassifier(metric) if output_range is None else AdditiveRegressor(metric, output_range=output_range)
        )
        return made.fit(X, y), X, y

    return Tools(
        reveal,
        train,
        lambda name, *words: f"likewise {name} {' '.join(map(str, words))}",
        lambda columns: {},
        "people.csv",
    )


@contextmanager
def command(place, *words):
    """A workbench started at a prompt: its address with the token, and its process, which ends with the block."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "likewise", "workbench", *words, "--no-browser"],
        cwd=place,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        said = []
        for line in process.stdout:
            said.append(line)
            if found := re.search(r"http://\S+", line):
                break
        else:
            raise AssertionError("".join(said))
        yield found[0], process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(20)
        process.stdout.close()


class Client:
    """A browser without a page."""

    def __init__(self, address, browser="first", name="Ann"):
        base, _, token = address.partition("/?token=")
        self.http = httpx.Client(base_url=base, timeout=60, headers={"Origin": base})
        self.http.get("/", params={"token": token or TOKEN})
        self.browser, self.name = browser, name

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.close()

    def post(self, route, status=200, **given):
        given = {"name": self.name, "browser": self.browser} | given
        answer = self.http.post(f"/api/{route}", json=given)
        assert answer.status_code == status, answer.text
        return answer.json()

    def act(self, kind, status=200, **given):
        return self.post("act", status, kind=kind, **given)

    def state(self):
        return self.http.get("/api/state").json()

    def wait(self, condition):
        """The first state that fulfils a condition."""
        until = time.monotonic() + DEADLINE
        while time.monotonic() < until:
            state = self.state()
            if condition(state):
                return state
            time.sleep(0.05)
        raise AssertionError(f"waited {DEADLINE} s; trouble: {state['trouble']}, job: {state['job']}")

    def settled(self):
        """The state once no job runs and the figures are those of the present weights."""

        def is_settled(state):
            result, last = state["result"], max((e["n"] for e in state["record"] if e["kind"] in CHANGES), default=0)
            ready = result is not None and result["event"] == last and result["done"]
            return state["job"] is None and ready and not (result["figures"] or {}).get("pending")

        return self.wait(is_settled)


CHANGES = ("weights", "start", "lock", "unlock", "unit", "undo", "redo")


@contextmanager
def serving(hub):
    """The address of a workbench that runs in a thread of its own."""
    bound = bind(0)
    server = make_server(hub, TOKEN, bound)
    thread = threading.Thread(target=lambda: server.run(sockets=[bound]), daemon=True)
    thread.start()
    until = time.monotonic() + DEADLINE
    while not server.started and time.monotonic() < until:
        time.sleep(0.01)
    try:
        yield f"http://{HOST}:{bound.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()
