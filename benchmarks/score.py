"""`likewise score`: a million distinct people through a smoothed 2x128 network."""

import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common import peak, section

PEOPLE, DRAWS = 1_000_000, 200
COLUMNS = ["age", "income", "debt", "years", "lines"]


def run() -> str:
    from likewise import SmoothedClassifier, TableMetric
    from likewise.inspection.baselines import table_model
    from likewise.io import save_model

    rng = np.random.default_rng(0)
    people = pd.DataFrame(rng.normal(size=(PEOPLE, 5)), columns=COLUMNS)
    few = people[:3000]
    metric = TableMetric(dict.fromkeys(COLUMNS, 0.5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it need not converge to be timed
        model = SmoothedClassifier(table_model(few, "network"), metric=metric, noise="splitting", n_draws=DRAWS)
        model.fit(few, (few.sum(axis=1) > 0).astype(int))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        save_model(model, place / "model.skops")
        people.to_parquet(place / "people.parquet", index=False)
        command = [sys.executable, "-m", "benchmarks.score", str(place), "score", "model.skops", "people.parquet"]
        start = time.perf_counter()
        memory = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])
        taken = time.perf_counter() - start
    return section(
        "`likewise score` on a large table",
        ["people", "draws each", "time", "allowed", "memory", "allowed"],
        [[f"{PEOPLE:,}", str(DRAWS), f"{taken:.0f} s", "600 s", f"{memory:.2f} GB", "1.5 GB"]],
        "Distinct people with 5 numeric columns, Splitting, two hidden layers of 128 units; Parquet in and out, with "
        "the start of the program.",
    )


def watched(place: str, *words: str) -> None:
    """Run a command of ours in a directory, and say how much memory it held."""
    from likewise.cli.main import main

    os.chdir(place)
    try:
        main(list(words))
    finally:
        print(peak())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        watched(*sys.argv[1:])
    else:
        print(run())
