"""The search for violating pairs against the scan of every pair, from ten thousand people to a million."""

import os
import subprocess
import sys

from benchmarks.common import growth, peak, seconds

PEOPLE = (1_000, 10_000, 100_000, 1_000_000)
SCANNED = 50_000


def run() -> str:
    brute, ours = (float(part) for part in _measure("scan").split())
    per_pair = brute / (SCANNED * (SCANNED - 1) / 2)
    rows, last = [], None
    for n in PEOPLE:
        spent, memory, looked = (float(part) for part in _measure("audit", n).split())
        pairs = n * (n - 1) / 2
        rows.append(
            f"| {n:,} | {spent:.3g} s | {looked / pairs:.3%} | {per_pair * pairs:,.3g} s "
            f"| **{per_pair * pairs / spent:.2g}x** | {growth(last, (n, spent))} | {memory:.2f} GB |"
        )
        last = (n, spent)
    return (
        "## All pairs of people (`audit`)\n\n"
        "Synthetic people with 5 normal features and smooth scores (a logistic curve plus a wave), audited against a "
        "metric 1.5 times as large as the curve's own; the result is exactly that of a scan of every pair. "
        f"Brute force is the library's own compiled scan of every pair with all cores, measured on {SCANNED:,} people "
        f"({brute:.1f} s; `audit` in the same process: {ours:.1f} s, **{brute / ours:.0f}x**) and extrapolated by the "
        "number of pairs. Memory is the most that the process ever held, data included. Allowed at a million: 2 GB, "
        "and a ratio of at least 10.\n\n"
        "| people | audit | pairs looked at | brute force | ratio | growth | memory |\n|---|---|---|---|---|---|---|\n"
        + "\n".join(rows)
        + "\n"
    )


def _measure(*what: object) -> str:
    # A process each: what counts is the most memory that a process ever held.
    command = [sys.executable, "-m", "benchmarks.audit", *map(str, what)]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ.copy()).stdout


def people(n):
    import numpy as np

    from likewise import WeightedLp

    rng = np.random.default_rng(0)
    beta = np.array([1.0, -0.5, 0.3, 0.2, 0.7])
    X = rng.normal(size=(n, 5))
    scores = 0.98 / (1 + np.exp(-X @ beta)) + 0.01 + 0.01 * np.sin(X[:, 0])
    return X, scores, WeightedLp(1.5 * np.abs(beta) / 4)


def measure(what: str, n: int) -> None:
    import numpy as np

    from likewise import audit
    from likewise._engine import always_compiled
    from likewise.pairs.kernels import worst_partners
    from likewise.pairs.points import Columns

    X, scores, metric = people(n)
    with always_compiled():  # compiled, or read from the cache
        audit(None, X[:500], metric, predictions=scores[:500])
    if what == "scan":
        columns, outputs = np.ascontiguousarray(X.T), scores[None, :].copy()
        everyone = Columns(columns, np.zeros(len(columns), np.int8), metric.scales, 1.0)
        with always_compiled():
            worst_partners(everyone._replace(X=columns[:, :500].copy()), outputs[:, :500].copy())
        brute = seconds(lambda: worst_partners(everyone, outputs))
        print(brute, seconds(lambda: audit(None, X, metric, predictions=scores)))
        return
    results = []
    spent = seconds(lambda: results.append(audit(None, X, metric, predictions=scores)))
    print(spent, peak(), results[0].n_compared)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else SCANNED)
    else:
        print(run())
