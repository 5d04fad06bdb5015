"""Who does the work: this process, or the workers of a Dask cluster. What is done is the same."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from likewise._extras import need
from likewise._rules import NOTHING, Rule
from likewise.errors import FileError

Task = TypeVar("Task")
Result = TypeVar("Result")

_RETRIES = 2  # of errors, such as a disk that is full; a task whose worker dies is not counted here
CLUSTER = NOTHING | Rule(
    "the address of a Dask scheduler, such as 'tcp://10.0.0.1:8786', or a client",
    lambda value: ":" in value if isinstance(value, str) else hasattr(value, "scheduler_info"),
)


class Workforce:
    """This process. Tasks are done one after the other, each in as many threads as there are cores."""

    n_jobs: int | None = None
    """Threads for one task; None for all cores."""

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Do `function` for each task; yield results in the order of tasks."""
        return map(function, tasks)


class Cluster(Workforce):
    """The workers of a Dask cluster.

    A task is a function of its arguments and of files that every worker can read, and writes files whole or not at all.
    So nothing is lost with a worker: what it was doing is done again by another one. Each task has one thread, since
    Dask gives a worker as many tasks as it has threads.
    """

    n_jobs = 1

    def __init__(self, client: Any) -> None:
        self.client = client

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Do `function` for each task; yield results in the order of tasks: no sum depends on who is fast."""
        threads = sum(worker["nthreads"] for worker in self.client.scheduler_info()["workers"].values())
        waiting: deque[Any] = deque()
        try:
            for task in tasks:
                # What a task needs travels with it: data kept on a worker would be lost with it.
                waiting.append(self.client.submit(function, task, pure=False, retries=_RETRIES))
                if len(waiting) >= 4 * max(1, threads):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            if waiting and self.client.status == "running":
                self.client.cancel(list(waiting))


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A Dask client for a scheduler's address."""
    distributed = need("distributed", "A cluster")
    with _without_its_log():
        try:
            client = distributed.Client(address, timeout="10s")
        except (OSError, TimeoutError, ValueError) as error:
            raise FileError(f"Cannot reach a Dask scheduler at {address} ({error}).") from None
        with client, _one_error(client, address):
            yield client


@contextmanager
def workers_of(cluster: Any) -> Iterator[Workforce]:
    """Those of a cluster, given by the address of its scheduler or a Dask client; None for this process."""
    CLUSTER.check("cluster", cluster)
    if cluster is None:
        yield Workforce()
    elif isinstance(cluster, str):
        with connected(cluster) as client:
            yield Cluster(client)
    else:
        with _one_error(cluster, "the address of this client"):
            yield Cluster(cluster)


@contextmanager
def _one_error(client: Any, address: str) -> Iterator[None]:
    """One error in a sentence, whatever Dask makes of a scheduler that is gone: futures cancelled, streams closed."""
    try:
        yield
    except Exception as error:
        if client.status == "running" and type(error).__name__ != "CommClosedError":
            raise
        raise FileError(
            f"The Dask scheduler at {address} does not answer any more ({type(error).__name__}). Nothing is "
            "half-written: start a scheduler, and the same command again."
        ) from None


@contextmanager
def _without_its_log() -> Iterator[None]:
    """A client that looks for its scheduler writes tracebacks to the log, beside the error that it raises."""
    log = logging.getLogger("distributed.client")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)
