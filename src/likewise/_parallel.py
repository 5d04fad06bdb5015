"""Thread pools, and limits of those that BLAS and OpenMP start."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")

_SMALL = 2_000_000  # values of a table that one thread fits in about a second


def n_threads(n_jobs: int | None) -> int:
    """Number of threads for `n_jobs`: None and -1 use every available core, -2 all but one, and so on."""
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if n_jobs is None else max(1, cores + 1 + n_jobs)


def run_in_threads(work: Callable[[T], None], items: Iterable[T], n_jobs: int | None) -> None:
    """Call `work` on every item, in any order; it should release the GIL."""
    todo = list(items)
    count = min(n_threads(n_jobs), len(todo))
    if count <= 1:
        for item in todo:
            work(item)
        return
    remaining = iter(todo)  # shared by the threads; `next` is atomic

    def take() -> None:
        for item in remaining:
            work(item)

    others = [_pool(count - 1, os.getpid()).submit(take) for _ in range(count - 1)]
    take()
    for other in others:
        other.result()


@lru_cache(maxsize=2)
def _pool(count: int, process: int) -> ThreadPoolExecutor:
    # Cached: starting threads costs as much as a small matrix product. Per process: threads do not survive a fork.
    return ThreadPoolExecutor(count)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread, so that results do not depend on the number of cores."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


def threads_for(n_cells: int) -> AbstractContextManager[Any]:
    """Limit BLAS and OpenMP to one thread while a model is fitted to a small table of `n_cells` values.

    Their threads spin while they wait for each other. On a busy machine boosting of 1,000 people takes five times the
    processor time on two threads, and on a quiet one two are no faster.
    """
    # Not `_controller()`: libraries that were imported since are limited as well.
    return ThreadpoolController().limit(limits=1) if n_cells < _SMALL else nullcontext()


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    # Cached: finding the libraries takes milliseconds, during which Ctrl-C is swallowed.
    return ThreadpoolController()
