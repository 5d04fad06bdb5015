"""Shared by the benchmarks: real data, the 2x128 network, the paper's loop, and timing."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from likewise import linear_metric

PAGE = Path("docs/performance.md")
EPSILON, DELTA, N_DRAWS, BATCH = 0.01, 1.8e-4, 100_000, 1_000  # the paper's numbers


class DataMissingError(Exception):
    """The real data are not available."""


def read(name):
    folder = os.environ.get("LIKEWISE_DATA")
    if not folder or not (Path(folder) / name).exists():
        raise DataMissingError("Not run: set `LIKEWISE_DATA` to the folder with the real data.")
    return pd.read_csv(Path(folder) / name)


def adult():
    """Training and test people of Adult: standardised numeric columns and two indicators, and training labels."""
    columns = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]

    def numbers(table):
        extra = {"woman": table["sex"] == "Female", "married": table["marital-status"] == "Married-civ-spouse"}
        return table[columns].assign(**extra).to_numpy(dtype=float)

    train, test = read("adult_train.csv.gz"), read("adult_test.csv.gz")
    scaler = StandardScaler().fit(numbers(train))
    return scaler.transform(numbers(train)), (train["income"] == ">50K").to_numpy(int), scaler.transform(numbers(test))


def seizure():
    """Training and test people of Seizure, standardised, and training labels."""
    table = read("seizure_rebuilt.csv.gz").sample(frac=1, random_state=0)
    X = StandardScaler().fit_transform(table[[c for c in table if c.startswith("X")]].to_numpy(dtype=float))
    y = (table["y"] == 1).to_numpy(int)
    return X[:9000], y[:9000], X[9000:]


def network(X, y, n_epochs=15):
    """The paper's network: two hidden layers of 128."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it need not converge to be timed
        return MLPClassifier((128, 128), max_iter=n_epochs, random_state=0).fit(X, y)


def metric_for(X, y, p=1):
    return linear_metric(X, y, p=p)


def papers_loop(net, noise, person, rng):
    """The paper's method: 100,000 fresh draws for one person, 1,000 at a time, through the model's own `predict`."""
    votes = 0
    for _ in range(N_DRAWS // BATCH):
        votes += int(net.predict(person + noise.sample(BATCH, rng)).sum())
    return votes / N_DRAWS


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peak() -> float:
    """The most memory that this process ever held, in GB; `getrusage` begins with what its parent held."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024**2


def growth(before, after) -> str:
    """The exponent between two measurements of people and time."""
    return "" if before is None else f"n^{math.log(after[1] / before[1]) / math.log(after[0] / before[0]):.2f}"


def section(title: str, columns: list[str], rows: list[list[str]], note: str = "") -> str:
    lines = [f"## {title}", "", "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*lines, "", note] if note else lines) + "\n"


def print_or_write(text: str, *, write: bool) -> None:
    """Print a section, or put it into the page in place of the one with its title."""
    if not write:
        print(text)
        return
    page, title = PAGE.read_text(encoding="utf-8"), text.partition("\n")[0]
    before, found, rest = page.partition(f"{title}\n")
    _, further, after = rest.partition("\n## ") if found else ("", "", "")
    parts = (before.strip(), text.strip(), (further + after).strip())
    PAGE.write_text("\n\n".join(filter(None, parts)) + "\n", encoding="utf-8")
    print(f"Wrote {title!r} into {PAGE}")


def skipped(title: str, why: DataMissingError) -> str:
    return f"## {title}\n\n{why}\n"
