"""One thread per core, with single-threaded linear algebra inside."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")


def n_threads(n_jobs: int | None) -> int:
    """`n_jobs`; None and -1 are one thread for each core that this process may use, -2 all but one, and so on."""
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if n_jobs is None else max(1, cores + 1 + n_jobs)


def run_in_threads(work: Callable[[T], None], items: Iterable[T], n_jobs: int | None) -> None:
    """Call `work` on every item; the work must release the GIL to gain, and must not depend on the order."""
    todo = list(items)
    count = min(n_threads(n_jobs), len(todo))
    if count <= 1:
        for item in todo:
            work(item)
        return
    waiting = iter(todo)  # each thread takes the next item; taking one is atomic

    def take() -> None:
        for item in waiting:
            work(item)

    others = [_pool(count - 1, os.getpid()).submit(take) for _ in range(count - 1)]
    take()
    for other in others:
        other.result()


@lru_cache(maxsize=2)
def _pool(count: int, process: int) -> ThreadPoolExecutor:
    # Kept: starting threads, and filling their caches, costs as much as a small product. By process, since threads do
    # not survive a fork.
    return ThreadPoolExecutor(count)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Matrix products in one thread: their last bits then do not depend on the number of cores."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    # Looking for the libraries takes milliseconds, and swallows a Ctrl-C that falls into it: once is enough.
    return ThreadpoolController()
