"""Reading a metric off any model: the search against the scan of every pair, from a thousand people to a million."""

import os
import subprocess
import sys

from benchmarks.audit import people
from benchmarks.common import growth, peak, seconds, section

PEOPLE = (1_000, 10_000, 100_000, 1_000_000)
SCANNED, JUDGED = 30_000, 100_000
POWERS, COMPARED = (1, 1.5, 2, 3, 7), 10_000
SCORES = {
    "smooth": "a logistic curve and a small wave, as above",
    "linear": "linear",
    "inside": "a logistic curve of a line and a wave",
    "wave": "a logistic curve and a large wave",
    "steps": "steps",
    "noisy": "a logistic curve and noise",
}


def run() -> str:
    return growing() + "\n" + kinds_of_scores() + "\n" + exactness()


def growing() -> str:
    scan, ours, apart = (float(part) for part in _measure("scan", SCANNED).split())
    rows, last, times = [], None, {}
    for n in PEOPLE:
        spent, memory, rounds = (float(part) for part in _measure("search", n).split())
        allowed = "120 s, 2 GB" if n == PEOPLE[-1] else ""
        rows.append(
            [f"{n:,}", f"{spent:.3g} s", f"{rounds:.0f}", growth(last, (n, spent)), f"{memory:.2f} GB", allowed]
        )
        last, times[n] = (n, spent), spent
    return section(
        "Growth of `estimate_minimal_metric`",
        ["people", "time", "linear programs", "growth", "memory", "allowed"],
        rows,
        "Synthetic people with 5 normal features and smooth scores, p = 1. Memory is the most that the process ever "
        "held, data included. The previous method, a compiled scan of every pair with all cores after each linear "
        f"program, takes {scan:.1f} s for {SCANNED:,} people, and the search in the same process {ours:.1f} s; their "
        f"weights differ by {apart:.1e} of themselves at most. By the number of pairs it "
        f"would take {scan * (JUDGED / SCANNED) ** 2:.0f} s for {JUDGED:,} people, "
        f"**{scan * (JUDGED / SCANNED) ** 2 / times[JUDGED]:.0f} x** the search (at least 30 x), and "
        f"**{scan * (n / SCANNED) ** 2 / spent:.0f} x** for {n:,}.",
    )


def kinds_of_scores() -> str:
    rows = []
    for kind, words in SCORES.items():
        estimate, audit, rounds, pairs = (float(part) for part in _measure("kinds", JUDGED, kind).split())
        rows.append(
            [
                words,
                f"{estimate:.3g} s",
                f"{audit:.3g} s",
                f"**{estimate / audit:.2g}**",
                f"{rounds:.0f}",
                f"{pairs:,.0f}",
            ]
        )
    return section(
        "`estimate_minimal_metric` on several kinds of scores",
        ["scores", "estimate", "audit", "estimate / audit", "linear programs", "pairs in them"],
        rows,
        f"{JUDGED:,} synthetic people with 5 normal features, p = 1. Processor times of one process; "
        "the audit is of the same scores against 1.5 times the estimated metric. How many audits an "
        "estimate takes depends on the scores.",
    )


def scores_of(kind, n):
    """People with 5 features, and scores between 0 and 1 of some kind."""
    import numpy as np

    X, smooth, _ = people(n)
    a, rng = X @ [1.0, -0.5, 0.3, 0.2, 0.7], np.random.default_rng(1)
    scores = {
        "smooth": smooth,
        "linear": 0.5 + a / (2 * np.abs(a).max()),
        "inside": 1 / (1 + np.exp(-a - 0.5 * np.sin(2 * X[:, 0] + X[:, 1]))),
        "wave": 0.25 + 0.5 / (1 + np.exp(-a)) + 0.2 * np.sin(4 * X[:, 0]),
        "steps": np.round(8 / (1 + np.exp(-a))) / 10 + 0.1 * (X[:, 2] > 0.5),
        "noisy": np.clip(0.1 + 0.8 / (1 + np.exp(-a)) + rng.normal(0, 0.01, n), 0, 1),
    }
    return X, scores[kind]


def exactness() -> str:
    rows = []
    for kind, p in (*(("numbers", p) for p in POWERS), ("table", 1)):
        apart, ours, scan = (float(part) for part in _measure("exact", COMPARED, kind, p).split())
        rows.append([kind, f"{p:g}", f"{ours:.2g} s", f"{scan:.2g} s", f"**{apart:.0e}** (at most 1e-6)"])
    return section(
        "`estimate_minimal_metric` against the scan of every pair",
        ["people", "p", "search", "scan in every round", "largest difference of weights"],
        rows,
        f"{COMPARED:,} people: the numbers above; a table with 4 numbers, one missing for a fifth of the people, "
        "and 2 categories. Differences are relative, beyond 1e-12.",
    )


def _measure(*what: object) -> str:
    # A process each: what counts is the most memory that a process ever held.
    command = [sys.executable, "-m", "benchmarks.estimate", *map(str, what)]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ.copy()).stdout


def scan_per_program():
    """The previous method: one scan for mean distances, and one per linear program for the 1,000 worst pairs."""
    import numpy as np
    from numba import njit, prange

    from benchmarks.exhaustive import ExhaustiveSearch
    from likewise.reveal.active_set import Cuts

    @njit(parallel=True, error_model="numpy")
    def mean_gaps(columns):
        d, n = columns.shape
        totals = np.zeros((n, d))
        for turn in prange(n):
            i = turn // 2 if turn % 2 == 0 else n - 1 - turn // 2  # threads get equal shares
            for f in range(d):
                own, total = columns[f, i], 0.0
                for j in range(i + 1, n):
                    total += abs(own - columns[f, j])
                totals[i, f] = total
        return totals

    class ScanPerProgram(ExhaustiveSearch):
        def __init__(self, people, p):
            super().__init__(people, p)
            mean_gaps(self._columns)

        def next_cuts(self, scales, ratios):
            cuts = super().next_cuts(scales, ratios)
            distance = cuts.gaps @ scales  # p is 1
            by_excess = np.argsort(distance - cuts.differences)[:500]
            worst = np.union1d(by_excess, np.argsort(distance / cuts.differences)[:500])
            return Cuts(cuts.pairs[worst], cuts.gaps[worst], cuts.differences[worst], cuts.complete)

    return ScanPerProgram


def table(n):
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=[*"abcd"])
    X["c"] = X["c"].where(rng.random(n) > 0.2)
    X["job"], X["town"] = rng.choice([*"xyz"], n), rng.choice([*"uv"], n)
    effect = X["job"].map({"x": 0.0, "y": 0.3, "z": 0.9}) + X["c"].isna()
    return X, (1 / (1 + np.exp(-X["a"] - 0.3 * X["b"] - effect))).to_numpy()


def weights(metric):
    import numpy as np

    parts = (metric.numeric, metric.categorical, metric.missing)
    return np.array([weight for part in parts for weight in part.values()])


def measure_kind(n: int, kind: str) -> None:
    import time

    from likewise import audit, estimate_minimal_metric

    X, scores = scores_of(kind, n)
    marks = []
    for size in (1000, n):  # the first to compile, or to read from the cache
        marks = [time.process_time()]
        found = estimate_minimal_metric(None, X[:size], predictions=scores[:size])
        marks.append(time.process_time())
        audit(None, X[:size], found.metric.scaled(1.5), predictions=scores[:size])
        marks.append(time.process_time())
    print(marks[1] - marks[0], marks[2] - marks[1], found.n_rounds, found.n_constraints)


def measure(what: str, n: int, kind: str = "numbers", p: float = 1.0) -> None:
    import numpy as np

    from benchmarks.exhaustive import ExhaustiveSearch
    from likewise import TableMetric, estimate_minimal_metric
    from likewise.reveal import active_set
    from likewise.reveal import linear_program as program

    if what == "kinds":
        measure_kind(n, kind)
        return
    X, scores = people(n)[:2] if kind == "numbers" else table(n)
    found = []

    def estimate(size):
        found.append(estimate_minimal_metric(None, X[:size], p, predictions=scores[:size]))

    def scan(size):
        program.ActiveSetSearch = full
        estimate(size)
        program.ActiveSetSearch = active_set.ActiveSetSearch

    estimate(1000)  # compiled, or read from the cache
    spent = seconds(lambda: estimate(n))
    if what == "search":
        print(spent, peak(), found[-1].n_rounds)
        return

    full = ExhaustiveSearch if what == "exact" else scan_per_program()
    scan(1000)
    scanned = seconds(lambda: scan(n))
    ours, full = (
        weights(result.metric) if isinstance(result.metric, TableMetric) else result.metric.weights
        for result in (found[1], found[-1])
    )
    apart = np.max((np.abs(ours - full) - 1e-12).clip(0) / np.maximum(full, 1e-12))
    print(*((apart, spent, scanned) if what == "exact" else (scanned, spent, apart)))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(sys.argv[1], int(sys.argv[2]), *sys.argv[3:4], *map(float, sys.argv[4:]))
    else:
        print(run())
