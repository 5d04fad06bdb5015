"""Time and memory from a thousand to a million people, for scores and for fits."""

import subprocess
import sys

from benchmarks.common import growth, peak, seconds, section

PEOPLE = (1_000, 10_000, 100_000, 1_000_000)
METHODS = ("formula", "splitting", "additive score", "additive fit")


def run() -> str:
    rows = []
    for method in METHODS:
        last = None
        for n in PEOPLE:
            # A process each: what counts is the most memory that a process ever held.
            out = subprocess.run(
                [sys.executable, "-m", "benchmarks.growth", method, str(n)], check=True, capture_output=True, text=True
            )
            spent, extra = (float(part) for part in out.stdout.split())
            rows.append(
                [
                    method,
                    f"{n:,}",
                    f"{spent:.3g} s",
                    f"{1e6 * spent / n:.3g} µs",
                    growth(last, (n, spent)),
                    f"{extra:.0f} MB",
                ]
            )
            last = (n, spent)
    return section(
        "Growth with the number of people",
        ["method", "people", "time", "per person", "growth", "memory beyond data and result"],
        rows,
        "`formula`: a forest of 10 trees of depth 4. `splitting`: K = 25 through a network of 16 hidden units. "
        "5 features. `additive`: `AdditiveClassifier` of a table with 6 numbers and 4 categories, penalty given; the "
        "memory of a fit is that of its own arrays, in a second fit. Growth is the exponent from one line to the next. "
        "The best of three, up to 100,000 people.",
    )


def measure(method: str, n: int) -> tuple[float, float]:
    turns = 3 if n <= 100_000 else 1
    if method == "additive fit":
        return additive_fit(n, turns)
    if method == "additive score":
        model, people = additive_scores(n)
    else:
        model, people = smoothed(method, n)
    before = peak()
    results = []
    taken = min(seconds(lambda: results.append(model.predict_proba(people))) for _ in range(turns))
    grown = 1024 * (peak() - before)
    return taken, max(0.0, grown - sum(result.nbytes for result in results) / 2**20)


def smoothed(method, n):
    import numpy as np
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.neural_network import MLPClassifier

    from likewise import SmoothedClassifier, WeightedLp

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = (X.sum(axis=1) > 0).astype(int)
    options = {"metric": WeightedLp(np.ones(5)), "random_state": 0}
    if method == "formula":
        model = SmoothedClassifier(RandomForestClassifier(10, max_depth=4), vote="soft", **options)
    else:
        model = SmoothedClassifier(MLPClassifier((16,), max_iter=2000), noise="splitting", n_draws=25, **options)
    model.fit(X, y).predict_proba(rng.normal(size=(20_000, 5)))  # compiles, and fills a block once
    return model, rng.normal(size=(n, 5))


def additive(X):
    from likewise import AdditiveClassifier, TableMetric

    numbers = [name for name in X if "number" in name]
    metric = TableMetric(dict.fromkeys(numbers, 0.3), {name: 0.2 for name in X if name not in numbers})
    return AdditiveClassifier(metric, penalty=1e-4)


def additive_scores(n):
    from benchmarks.additive import large_table

    X, y = large_table(20_000)
    model = additive(X).fit(X, y)
    model.predict_proba(X)
    return model, large_table(n)[0]


def additive_fit(n, turns):
    import tracemalloc

    from benchmarks.additive import large_table

    X, y = large_table(max(n, 2_000))
    additive(X).fit(X[:2_000], y[:2_000])  # compiled, or read from the cache
    X, y = X[:n], y[:n]
    taken = min(seconds(lambda: additive(X).fit(X, y)) for _ in range(turns))
    tracemalloc.start()
    additive(X).fit(X, y)
    return taken, tracemalloc.get_traced_memory()[1] / 2**20


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(*measure(sys.argv[1], int(sys.argv[2])))
    else:
        print(run())
