"""The first seconds: fresh processes with nothing compiled, in processor time.

`python -m benchmarks.cold` prints the table; words choose rows: `python -m benchmarks.cold audit card`. `--write` puts
it into `docs/performance.md`.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.common import print_or_write, section

TITLE = "From the first second, nothing compiled"
IMPORTS = "import sklearn, pandas"

AUDIT = """
import pandas as pd
from likewise import TableMetric, audit
people = pd.read_csv("people.csv")
metric = TableMetric({"age": 0.005, "income": 0.01}, {"job": 0.1})
print(audit(None, people[["age", "income", "job"]], metric, predictions=people["score"]).n_violations)
"""
FIT = """
import pandas as pd
from likewise import AdditiveClassifier, TableMetric
people = pd.read_csv("people.csv")
metric = TableMetric({"age": 0.005, "income": 0.01}, {"job": 0.1})
AdditiveClassifier(metric=metric).fit(people[["age", "income", "job"]], people["repaid"])
"""
SCORE = """
import pandas as pd
from likewise import load_model
people, model = pd.read_csv("people.csv"), load_model("card.skops")
people = people[["age", "income", "job"]]
model.predict_proba(people[:1]), model.predict_proba(people[:1000])
"""
ESTIMATE = """
import numpy as np
import pandas as pd
from likewise import estimate_minimal_metric
people = pd.read_csv("people.csv")[["age", "income", "job"]]
model = lambda rows: 1 / (1 + np.exp(2 - rows["age"] / 40 - rows["income"] / 50 + (rows["job"] == "a")))
estimate_minimal_metric(model, people)
"""
METRIC = "metric {0}.csv --target y --out {0}.toml"
COMPARE = "compare wide.csv --target y --metric wide.toml"
REPORT = "report {0}.skops {0}.csv --target y --out {0}.html --force"
ENFORCE = "enforce text.csv --target y --metric text.toml --out text.skops --force"
# What is measured, how it is run, and the limit in seconds of processor time; `+` is above the imports.
ROWS = {
    "card": ("load a card, score 1 person and 1,000", SCORE, "+1"),
    "audit": ("first `audit`, 2,000 people, 3 columns", AUDIT, "2"),
    "fit": ("first fit of a card, 2,000 people", FIT, "+1"),
    "estimate": ("first `estimate_minimal_metric`, 2,000 people", ESTIMATE, "3"),
    "compare": ("`likewise compare`, 1,000 people, 20 columns", COMPARE, "45"),
    "report": ("`likewise report`, the same", REPORT.format("wide"), "15"),
    "classes": ("`likewise report`, three classes, 1,200 people", REPORT.format("three"), "30"),
    "enforce": ("`likewise enforce`, a text column of 1,000 values", ENFORCE, "10"),
    "demo": ("`likewise demo`", "demo --out demo", "20"),
}


def run(only: tuple[str, ...] = ()) -> str:
    with tempfile.TemporaryDirectory() as folder:
        make_files(Path(folder))
        imports = min(processor_seconds(["-c", IMPORTS], folder) for _ in range(3))
        rows = [[f"`{IMPORTS}`", f"{imports:.2f} s", "", ""]]
        for name, (title, what, limit) in ROWS.items():
            if only and name not in only:
                continue
            spent = processor_seconds(arguments_of(what), folder)
            allowed = f"{limit[1:]} s above the imports" if limit[0] == "+" else f"{limit} s"
            rows.append([title, f"{spent:.2f} s", f"{spent - imports:.2f} s", allowed])
            print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    return section(
        TITLE,
        ["what", "processor time", "above the imports", "allowed"],
        rows,
        "Each in a process of its own with an empty `NUMBA_CACHE_DIR` and one thread, from start to end.",
    )


def arguments_of(what: str) -> list[str]:
    return ["-c", what] if "\n" in what else ["-m", "likewise", *what.split()]


def fresh_process(arguments: list[str], folder: str) -> tuple[float, str]:
    """Processor time of a Python process that finds no compiled code, and what it prints."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, *arguments]
        done = subprocess.run(command, check=True, capture_output=True, cwd=folder, env=environment, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def processor_seconds(arguments: list[str], folder: str) -> float:
    """Processor time of a Python process that finds no compiled code."""
    return fresh_process(arguments, folder)[0]


def make_files(folder: Path) -> None:
    """Tables, metrics and models that the rows read."""
    import numpy as np
    import pandas as pd
    from sklearn.datasets import make_classification

    from likewise import AdditiveClassifier, TableMetric, read_metric, save_model, write_metric
    from likewise._guarantee_warnings import suppress_guarantee_warnings

    make_people(folder)
    rng = np.random.default_rng(1)
    for name, n_people, n_classes in (("wide", 1000, 2), ("three", 1200, 3)):
        X, y = make_classification(n_people, 15, n_informative=8, n_classes=n_classes, random_state=0)
        table = pd.DataFrame(X.round(3), columns=[f"x{i}" for i in range(15)])
        table = table.assign(**{f"c{i}": rng.choice(list("uvwxyz")[: i + 2], n_people) for i in range(5)})
        table.assign(y=y).to_csv(folder / f"{name}.csv", index=False)
        # The metric of the command that suggests these.
        fresh_process(arguments_of(METRIC.format(name)), str(folder))
        with suppress_guarantee_warnings():
            card = AdditiveClassifier(metric=read_metric(folder / f"{name}.toml")).fit(table, y)
        save_model(card, folder / f"{name}.skops")
    n = 3000
    text = pd.DataFrame({"age": rng.integers(18, 80, n), "income": rng.normal(50, 15, n).round(1)})
    text["employer"] = [f"employer {i}" for i in rng.permutation(n) % 1000]
    score = text["age"] / 40 + text["income"] / 50 - 2 + rng.normal(0, 0.3, n)
    text.assign(y=(rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)).to_csv(folder / "text.csv", index=False)
    write_metric(TableMetric({"age": 0.005, "income": 0.01}, {"employer": 0.1}), folder / "text.toml")


def make_people(folder: Path) -> None:
    """A table of 2,000 people with three columns, scores and outcomes, and a card of it."""
    import numpy as np
    import pandas as pd

    from likewise import AdditiveClassifier, TableMetric, save_model

    rng = np.random.default_rng(0)
    n = 2000
    people = pd.DataFrame(
        {"age": rng.integers(18, 80, n), "income": rng.normal(50, 15, n).round(1), "job": rng.choice(list("abcde"), n)}
    )
    people["score"] = 1 / (1 + np.exp(-(people["age"] / 40 + people["income"] / 50 - 2 + rng.normal(0, 0.3, n))))
    people["repaid"] = (rng.random(n) < people["score"]).astype(int)
    people.to_csv(folder / "people.csv", index=False)
    metric = TableMetric({"age": 0.005, "income": 0.01}, {"job": 0.1})
    card = AdditiveClassifier(metric=metric).fit(people[["age", "income", "job"]], people["repaid"])
    save_model(card, folder / "card.skops")


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--write"]
    print_or_write(run(tuple(words)), write="--write" in sys.argv)
