"""Reading a metric off any model: the search against the scan of every pair, from a thousand people to a million."""

import math
import os
import resource
import subprocess
import sys

from benchmarks.audit import people
from benchmarks.common import seconds, section

PEOPLE = (1_000, 10_000, 100_000, 1_000_000)
SCANNED = 100_000


def run() -> str:
    scan, ours, apart = (float(part) for part in _measure("scan", SCANNED).split())
    rows, last = [], None
    for n in PEOPLE:
        spent, memory, rounds = (float(part) for part in _measure("search", n).split())
        growth = "" if last is None else f"n^{math.log(spent / last[1]) / math.log(n / last[0]):.2f}"
        allowed = "120 s, 2 GB" if n == PEOPLE[-1] else ""
        rows.append([f"{n:,}", f"{spent:.1f} s", f"{rounds:.0f}", growth, f"{memory:.2f} GB", allowed])
        last = (n, spent)
    return section(
        "Growth of `estimate_minimal_metric`",
        ["people", "time", "linear programs", "growth", "memory", "allowed"],
        rows,
        "Synthetic people with 5 normal features and smooth scores, p = 1. Memory is the most that the process ever "
        "held, data included. The compiled scan of every pair in every round, with all cores, takes "
        f"{scan:.0f} s for {SCANNED:,} people and the search in the same process {ours:.1f} s: "
        f"**{scan / ours:.0f} x**, and by the number of pairs **{scan * (n / SCANNED) ** 2 / spent:.0f} x** for "
        f"{n:,}; their weights differ by {apart:.1e} of themselves at most.",
    )


def _measure(*what: object) -> str:
    # A process each: what counts is the most memory that a process ever held.
    command = [sys.executable, "-m", "benchmarks.estimate", *map(str, what)]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ.copy()).stdout


def measure(what: str, n: int) -> None:
    import numpy as np

    from likewise import estimate_minimal_metric
    from likewise.reveal import program, widening

    X, scores, _ = people(n)
    found = []

    def estimate(size):
        found.append(estimate_minimal_metric(None, X[:size], predictions=scores[:size]))

    def scan(size):
        program.WideningSearch = widening.EveryPair
        estimate(size)
        program.WideningSearch = widening.WideningSearch

    estimate(1000)  # compiled, or read from the cache
    spent = seconds(lambda: estimate(n))
    if what == "search":
        print(spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2, found[-1].n_rounds)
        return
    scan(1000)
    scanned = seconds(lambda: scan(n))
    ours, full = found[1].metric.weights, found[-1].metric.weights
    print(scanned, spent, np.abs(ours / full - 1).max())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(sys.argv[1], int(sys.argv[2]))
    else:
        print(run())
