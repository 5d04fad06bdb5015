"""Processes that are killed while others count on them."""

import os
import signal
import threading
import time
from contextlib import contextmanager


@contextmanager
def killed(process, place, files, at_least):
    """Kill a process as soon as there are so many files; yield a list that then holds how many there were."""
    left = []

    def wait_and_kill():
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and len(list(place.glob(files))) < at_least:
            time.sleep(0.005)
        left.append(len(list(place.glob(files))))
        os.kill(process.pid, signal.SIGKILL)

    thread = threading.Thread(target=wait_and_kill)
    thread.start()
    try:
        yield left
    finally:
        thread.join(timeout=120)
