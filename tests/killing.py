"""Processes that are killed while others count on them."""

import os
import signal
import threading
import time
from contextlib import contextmanager


@contextmanager
def killed(process, place, files, at_least):
    """Kill a process as soon as there are so many files; yield a list that then holds how many there were."""
    with _killed_when(process, lambda: len(list(place.glob(files))), at_least) as left:
        yield left


@contextmanager
def killed_after(client, process, stage, at_least=1):
    """Kill a process of a Dask cluster as soon as so many tasks of a function are done; yield how many there were."""

    def count(dask_scheduler):  # in here, so that the scheduler need not import this module
        tasks = dask_scheduler.tasks.items()
        return sum(task.state == "memory" for key, task in tasks if stage in str(key))

    def done():
        try:
            return client.run_on_scheduler(count)
        except (OSError, ValueError):  # the work is over, and the client closed
            return 0

    with _killed_when(process, done, at_least) as left:
        yield left


@contextmanager
def _killed_when(process, count, at_least):
    left, over = [], threading.Event()

    def wait_and_kill():
        deadline = time.monotonic() + 120
        while (there := count()) < at_least and time.monotonic() < deadline and not over.is_set():
            time.sleep(0.005)
        left.append(there)
        os.kill(process.pid, signal.SIGKILL)

    thread = threading.Thread(target=wait_and_kill)
    thread.start()
    try:
        yield left
    finally:
        over.set()
        thread.join(timeout=120)
