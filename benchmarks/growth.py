"""Time and memory from a thousand to a million people."""

import resource
import subprocess
import sys
import time

from benchmarks.common import section

PEOPLE = (1_000, 10_000, 100_000, 1_000_000)


def run() -> str:
    rows = []
    for way in ("formula", "splitting"):
        for n in PEOPLE:
            # A process each: what counts is the most memory that a process ever held.
            out = subprocess.run(
                [sys.executable, "-m", "benchmarks.growth", way, str(n)], check=True, capture_output=True, text=True
            )
            seconds, extra = (float(part) for part in out.stdout.split())
            rows.append([way, f"{n:,}", f"{seconds:.2f} s", f"{1e6 * seconds / n:.1f} µs", f"{extra:.0f} MB"])
    return section(
        "Growth with the number of people",
        ["way", "people", "time", "per person", "memory beyond data and result"],
        rows,
        "`formula`: a forest of 10 trees of depth 4. `splitting`: K = 25 through a network of 16 hidden units. "
        "5 features.",
    )


def measure(way: str, n: int) -> tuple[float, float]:
    import numpy as np
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.neural_network import MLPClassifier

    from likewise import SmoothedClassifier, WeightedLp

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = (X.sum(axis=1) > 0).astype(int)
    options = {"metric": WeightedLp(np.ones(5)), "random_state": 0}
    if way == "formula":
        model = SmoothedClassifier(RandomForestClassifier(10, max_depth=4), vote="soft", **options)
    else:
        model = SmoothedClassifier(MLPClassifier((16,), max_iter=2000), noise="splitting", n_draws=25, **options)
    model.fit(X, y).predict_proba(rng.normal(size=(20_000, 5)))  # compiles, and fills a block once
    people = rng.normal(size=(n, 5))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    result = model.predict_proba(people)
    taken = time.perf_counter() - start
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return taken, max(0.0, grown - result.nbytes / 2**20)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(*measure(sys.argv[1], int(sys.argv[2])))
    else:
        print(run())
