"""How long it takes to read a metric off a model, compilation included."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COLUMNS = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]


def run() -> str:
    title = "## The minimal metric of a model (`estimate_minimal_metric`)\n\n"
    if "LIKEWISE_DATA" not in os.environ:
        return title + "Not run: set `LIKEWISE_DATA` to the folder with the real data.\n"
    with tempfile.TemporaryDirectory() as cache:  # an empty cache: everything is compiled anew
        command = [sys.executable, "-m", "benchmarks.minimal", "measure"]
        out = subprocess.run(
            command, env=os.environ | {"NUMBA_CACHE_DIR": cache}, check=True, capture_output=True, text=True
        )
    lines = out.stdout.strip().splitlines()
    return (
        title + "All pairs of the distinct rows of the Adult test set, 5 numeric features; the first call compiles.\n\n"
        "| model | p | call | pairs | rounds | time | allowed |\n|---|---|---|---|---|---|---|\n"
        + "\n".join(lines)
        + "\n"
    )


def measure() -> None:
    import pandas as pd
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from likewise import estimate_minimal_metric

    train, test = (
        pd.read_csv(Path(os.environ["LIKEWISE_DATA"]) / f"adult_{part}.csv.gz") for part in ("train", "test")
    )
    y = train["income"] == ">50K"
    logistic = make_pipeline(StandardScaler(), LogisticRegression()).fit(train[COLUMNS], y)
    forest = RandomForestClassifier(50, min_samples_leaf=20, random_state=0).fit(train[COLUMNS], y)
    calls = (
        ("logistic regression", logistic, 1, "first", "10 s"),
        ("logistic regression", logistic, 1, "second", "4 s"),
        ("forest of 50 trees", forest, 1, "later", ""),
        ("forest of 50 trees", forest, 2, "later", ""),
        ("forest of 50 trees", forest, 3, "later", ""),
    )
    for name, model, p, call, allowed in calls:
        start = time.perf_counter()
        result = estimate_minimal_metric(model, test[COLUMNS], p)
        spent = time.perf_counter() - start
        print(f"| {name} | {p} | {call} | {result.n_pairs:,} | {result.n_rounds} | {spent:.1f} s | {allowed} |")


if __name__ == "__main__":
    measure() if sys.argv[1:] == ["measure"] else print(run())
