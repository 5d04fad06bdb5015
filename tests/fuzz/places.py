"""Where cases write."""

import os
import shutil
import tempfile
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path


@cache
def place():
    """A directory of this process, gone at its end."""
    # In memory, where there is such a place: thousands of small files would wait for the disk.
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    made = Path(tempfile.mkdtemp(prefix="likewise-fuzz-", dir=memory))
    Finalize(None, shutil.rmtree, (made, True), exitpriority=0)  # at the end of a worker too, unlike atexit
    return made
