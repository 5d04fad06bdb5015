"""Audits, minimal metrics and fits of Dask DataFrames on a local cluster, up to ten million people."""

import math
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common import peak

PEOPLE = (1_000_000, 3_000_000, 10_000_000)
PER_FILE = 250_000
MANY = 1_000_000_000


def run() -> str:
    return told({(what, n): _measure(what, n) for what in ("audit", "estimate", "fit") for n in PEOPLE})


def told(measured: dict[tuple[str, int], list[float]]) -> str:
    """The section, from wall and processor time and memory by work and number of people."""
    rows, last, ahead = [], {}, {}
    for (what, n), (wall, cpu, *memory) in measured.items():
        power = math.log(cpu / last[what][1]) / math.log(n / last[what][0]) if what in last else math.nan
        growth = "" if math.isnan(power) else f"n^{power:.2f}"
        held = " and ".join(f"{each:.2f}" for each in memory[:2])
        rows.append(f"| {what} | {n:,} | {wall:.0f} s | {cpu:.0f} s | {growth} | {held} GB | {memory[2]:.2f} GB |")
        last[what], ahead[what] = (n, cpu), cpu * (MANY / n) ** max(1.0, power) / 3600
    hours = ", ".join(f"{what} {spent:.1f}" for what, spent in ahead.items())
    return (
        "## Dask DataFrames, on a cluster\n\n"
        "A local Dask cluster of two worker processes with one thread and a limit of 1 GB each; people as for `audit` "
        f"above, in Parquet files of {PER_FILE:,} people. `estimate` is `estimate_minimal_metric` with p = 1, `fit` is "
        "`AdditiveClassifier.fit` with a given penalty. Processor time is that of both workers, and memory "
        "the most that each process ever held. Allowed at ten million: 1 GB per worker.\n\n"
        "| work | people | time | processor time | growth | each worker held | the client held |\n"
        "|---|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n\n"
        f"By the growth from one line to the next, or by that of the people if it is more, {MANY:,} people would take "
        f"these hours of one core: {hours}. That is an extrapolation, not a measurement.\n"
    )


def _measure(what: str, n: int) -> list[float]:
    import subprocess

    command = [sys.executable, "-m", "benchmarks.cluster", what, str(n)]
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ.copy()).stdout
    return [float(part) for part in out.split()]


def write_people(place: Path, n: int) -> None:
    """People of `benchmarks.audit`, with an outcome drawn by their score."""
    import numpy as np
    import pandas as pd

    beta = np.array([1.0, -0.5, 0.3, 0.2, 0.7])
    for i in range(-(-n // PER_FILE)):
        rng = np.random.default_rng(i)
        size = min(PER_FILE, n - i * PER_FILE)
        X = rng.normal(size=(size, 5))
        score = 0.98 / (1 + np.exp(-X @ beta)) + 0.01 + 0.01 * np.sin(X[:, 0])
        table = pd.DataFrame(X, columns=list("abcde")).assign(score=score, outcome=rng.random(size) < score)
        table.to_parquet(place / f"{i:05d}.parquet", index=False)


def measure(what: str, n: int) -> None:
    import numpy as np

    import distributed
    from likewise import AdditiveClassifier, WeightedLp, audit, estimate_minimal_metric

    metric = WeightedLp(dict(zip("abcde", 1.5 * np.abs([1.0, -0.5, 0.3, 0.2, 0.7]) / 4, strict=True)))
    with tempfile.TemporaryDirectory() as place:
        people = Path(place) / "people"
        people.mkdir()
        write_people(people, n)
        with (
            distributed.LocalCluster(
                n_workers=2,
                threads_per_worker=1,
                memory_limit="1GB",
                host="127.0.0.1",
                dashboard_address=None,
                local_directory=place,
            ) as cluster,
            distributed.Client(cluster) as client,  # the active one, on which Dask works
        ):
            before = sum(client.run(time.process_time).values())
            start = time.perf_counter()
            if what == "audit":
                found = audit(None, people, metric, predictions="score")
                print(found.coverage, file=sys.stderr)
            elif what == "estimate":
                found = estimate_minimal_metric(None, people, predictions="score", columns=list("abcde"))
                print(found.metric, found.n_rounds, file=sys.stderr)
            else:
                model = AdditiveClassifier(metric, penalty=1e-3).fit(people, "outcome")
                print(model.guarantee_.statement, file=sys.stderr)
            wall = time.perf_counter() - start
            print(wall, sum(client.run(time.process_time).values()) - before, *client.run(peak).values(), peak())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(sys.argv[1], int(sys.argv[2]))
    else:
        print(run())
