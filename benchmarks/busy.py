"""`likewise compare` on a busy machine: with the threads that people have, and with one."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.cold import COMPARE, METRIC, arguments_of, fresh_process
from benchmarks.common import section

TITLE = "A busy machine: processor time with threads, over that with one"
_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_WAIT_POLICY")
_SPIN = "while True: pass"


def run() -> str:
    with tempfile.TemporaryDirectory() as folder:
        _make_table(Path(folder))
        fresh_process(arguments_of(METRIC.format("wide")), folder)
        _seconds(folder, threads=None)  # compiles, into a cache that the others read
        rows = []
        for n_others in (0, 2 * (os.cpu_count() or 1)):
            others = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range(n_others)]
            try:
                one, default = _seconds(folder, threads=1), _seconds(folder, threads=None)
            finally:
                for other in others:
                    other.kill()
                    other.wait()
            rows.append([f"{n_others}", f"{one:.1f} s", f"{default:.1f} s", f"{default / one:.2f} (at most 1.5)"])
            print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    return section(
        TITLE,
        ["other busy processes", "one thread", "threads as they are", "ratio"],
        rows,
        "`likewise compare` with its defaults on 1,000 people and 20 columns, in a process of its own. Fits of small "
        "tables take one thread, whatever the machine has: threads that wait for each other spin.",
    )


def _seconds(folder: str, threads: int | None) -> float:
    """Processor time of the command."""
    environment = {name: value for name, value in os.environ.items() if name not in _LIMITS}
    environment |= {"NUMBA_CACHE_DIR": f"{folder}/compiled"}
    if threads is not None:
        environment |= dict.fromkeys(_LIMITS[:2], str(threads))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, *arguments_of(COMPARE)]
    subprocess.run(command, check=True, capture_output=True, cwd=folder, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _make_table(folder: Path) -> None:
    """1,000 people with 15 columns of numbers and 5 of categories."""
    import numpy as np
    import pandas as pd
    from sklearn.datasets import make_classification

    rng = np.random.default_rng(1)
    X, y = make_classification(1000, 15, n_informative=8, random_state=0)
    table = pd.DataFrame(X.round(3), columns=[f"x{i}" for i in range(15)])
    table = table.assign(**{f"c{i}": rng.choice(list("uvwxyz")[: i + 2], 1000) for i in range(5)})
    table.assign(y=y).to_csv(folder / "wide.csv", index=False)
