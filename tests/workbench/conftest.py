"""A workbench that is served in a thread, and ends with the test."""

from contextlib import ExitStack
from functools import partial

import pytest

from committee import Client, problem_of, serving, session_of, tools_of
from likewise.workbench.engine import Engine
from likewise.workbench.hub import Hub


def served(folder, opened, X, y, task="classification", locked=(), **more):
    """A client of a table that is served until `opened` is closed."""
    path = folder / "people.likewise.json"
    engine = Engine(problem_of(X, y, task, **more))
    hub = Hub(session_of(engine, path, locked), engine, tools_of(X, y, more.get("output_range")), path.with_suffix(""))
    return opened.enter_context(Client(opened.enter_context(serving(hub))))


@pytest.fixture
def serve(tmp_path):
    """Serve a table; returns a client. Everything ends with the test."""
    with ExitStack() as opened:
        yield partial(served, tmp_path, opened)


@pytest.fixture(scope="module")
def serve_all(tmp_path_factory):
    """The same for all tests of a module."""
    with ExitStack() as opened:
        yield partial(served, tmp_path_factory.mktemp("workbench"), opened)
