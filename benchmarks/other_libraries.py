"""The same jobs in other libraries, each in a fresh process with nothing compiled, in processor time.

`python -m benchmarks.other_libraries` prints the table; words choose jobs; `--write` puts it into
`docs/performance.md`. The libraries: the Adversarial Robustness
Toolbox (ART), InterpretML (EBM), inFairness, AIF360. What is not installed is left out, and the table says so.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from benchmarks.cold import fresh_process, make_people
from benchmarks.common import print_or_write, section

TITLE = "The same jobs in other libraries, from the first second"
PACKAGES = {  # what is imported, and installed
    "ART": ("art", "adversarial-robustness-toolbox"),
    "EBM": ("interpret", "interpret"),
    "inFairness": ("inFairness", "inFairness"),
    "AIF360": ("aif360", "aif360"),
}

FIT = """
import pandas as pd
from likewise import AdditiveClassifier, TableMetric
people = pd.read_csv("people.csv")
metric = TableMetric({"age": 0.005, "income": 0.01}, {"job": 0.1})
def work():
    AdditiveClassifier(metric=metric).fit(people[["age", "income", "job"]], people["repaid"])
"""
EBM_FIT = """
import pandas as pd
from interpret.glassbox import ExplainableBoostingClassifier
people = pd.read_csv("people.csv")
def work():
    model = ExplainableBoostingClassifier(interactions=0, n_jobs=1, random_state=0)
    return model.fit(people[["age", "income", "job"]], people["repaid"])
"""
SCORE = """
import pandas as pd
from likewise import load_model
people = pd.read_csv("people.csv")[["age", "income", "job"]]
def work():
    model = load_model("card.skops")
    model.predict_proba(people[:1]), model.predict_proba(people[:1000])
"""
EBM_SCORE = """
import joblib
import pandas as pd
people = pd.read_csv("people.csv")[["age", "income", "job"]]
def work():
    model = joblib.load("ebm.joblib")
    model.predict_proba(people[:1]), model.predict_proba(people[:1000])
"""
AUDIT = """
import pandas as pd
from likewise import TableMetric, audit
people = pd.read_csv("people.csv")
metric = TableMetric({"age": 0.005, "income": 0.01}, {"job": 0.1})
def work():
    audit(None, people[["age", "income", "job"]], metric, predictions=people["score"])
"""
# Numbers for libraries that take no tables: each column in units of the metric above.
NUMBERS = """
import numpy as np
import pandas as pd
people = pd.read_csv("people.csv")
jobs = pd.get_dummies(people["job"]).to_numpy(float) * 0.05
X = np.column_stack([people["age"] * 0.005, people["income"] * 0.01, jobs])
score = people["score"].to_numpy()
"""
CONSISTENCY = f"""{NUMBERS}
from aif360.sklearn.metrics import consistency_score
def work():
    consistency_score(X, score)
"""
SENSR = f"""{NUMBERS}
import torch
from inFairness.auditor import SenSRAuditor
from inFairness.distances import EuclideanDistance
torch.manual_seed(0)
network = torch.nn.Sequential(torch.nn.Linear(7, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
rows, labels = torch.tensor(X, dtype=torch.float32), torch.tensor(people["repaid"].to_numpy())
loss = torch.nn.functional.cross_entropy
def work():
    auditor = SenSRAuditor(loss, EuclideanDistance(), num_steps=100, lr=0.01)
    auditor.audit(network, rows, labels, audit_threshold=1.25, lambda_param=torch.tensor(1.0))
"""
PROJECT = """
import numpy as np
import pandas as pd
from likewise import ProjectedClassifier, TableMetric
people = pd.read_csv("people.csv")
metric = TableMetric({"age": 0.005, "income": 0.01}, {"job": 0.1})
scores = lambda rows: 1 / (1 + np.exp(2 - rows["age"] / 40 - rows["income"] / 50))
def work():
    X = people[["age", "income", "job"]]
    ProjectedClassifier(scores, metric=metric, base=0.5).fit(X, people["repaid"]).predict_proba(X)
"""
LAPLACIAN = f"""{NUMBERS}
import torch
from inFairness.distances import EuclideanDistance
from inFairness.postprocessing import GraphLaplacianIF
rows = torch.tensor(X, dtype=torch.float32)
probabilities = torch.tensor(np.stack([1 - score, score], axis=1), dtype=torch.float32)
def work():
    model = GraphLaplacianIF(EuclideanDistance(), is_output_probas=True)
    model.add_datapoints(rows, probabilities)
    model.postprocess("exact", lambda_param=10.0, scale=1.0, threshold=0.2)
"""
NETWORK = """
import joblib
import numpy as np
from likewise import Gaussian, WeightedLp
X, net = np.load("rows.npy"), joblib.load("network.joblib")
metric = WeightedLp(np.full(5, 0.2), p=2)
"""
SMOOTH = f"""{NETWORK}
from sklearn.frozen import FrozenEstimator
from likewise import SmoothedClassifier
model = SmoothedClassifier(FrozenEstimator(net), metric=metric, noise="gaussian", epsilon=0.01, delta=1.8e-4)
model.set_params(random_state=0)
def work():
    model.fit(X, net.predict(X)).predict_proba(X[:10])
"""
CERTIFY = f"""{NETWORK}
import sys
sys.path.append({str(Path(__file__).parents[1])!r})
from benchmarks.rivals import art_certify
def work():
    certify = art_certify(net, Gaussian.for_metric(metric))
    for person in X[:10]:
        certify(person)
"""
# Job: libraries, what they run, what comes out.
JOBS = {
    "additive": (
        "fit an additive model, 2,000 people, 3 columns",
        {
            "likewise": (FIT, "shapes within the metric for all pairs"),
            "EBM": (EBM_FIT, "shapes of 14 bags of boosted trees; no guarantee"),
        },
    ),
    "score": (
        "load it, score 1 person and 1,000",
        {
            "likewise": (SCORE, "a skops file, read with an allow-list"),
            "EBM": (EBM_SCORE, "a pickle, which runs what it holds"),
        },
    ),
    "audit": (
        "are similar people scored alike? 2,000 people",
        {
            "likewise": (AUDIT, "all 1,999,000 pairs against the metric"),
            "AIF360": (CONSISTENCY, "another question: a mean over each person's 5 nearest neighbours"),
            "inFairness": (SENSR, "another question: a test of the mean loss ratio under 100 gradient steps"),
        },
    ),
    "scores": (
        "make 2,000 scores of another model alike for similar people",
        {
            "likewise": (PROJECT, "within the metric for all pairs, of anybody"),
            "inFairness": (LAPLACIAN, "not the same: smoothed over a graph of these people; no pair is bounded"),
        },
    ),
    "smoothing": (
        "smooth a 2x128 network over Gaussian noise, 10 people",
        {
            "likewise": (SMOOTH, "probabilities within 0.01 except with probability 1.8e-4, draws as needed"),
            "ART": (CERTIFY, "100,000 draws each: the predicted class and a radius"),
        },
    ),
}
CALLS_TWICE = """
import time
work()
start = time.process_time()
work()
print("again", time.process_time() - start)
"""


def run(only: tuple[str, ...] = ()) -> str:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        make_files(Path(folder))
        for name, (job, libraries) in JOBS.items():
            if only and name not in only:
                continue
            ours = None
            for library, (code, result) in libraries.items():
                if library in PACKAGES and find_spec(PACKAGES[library][0]) is None:
                    rows.append([job, library, "not installed", "", "", result])
                    continue
                spent, printed = fresh_process(["-c", code + CALLS_TWICE], folder)
                again = float(printed.rpartition("again")[2])
                ours = ours or spent - again
                first = spent - again
                rows.append([job, library, f"{first:.2f} s", f"{again:.2f} s", f"{first / ours:.1f}", result])
                print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    return section(
        TITLE,
        ["job", "library", "fresh process", "second call", "times likewise", "what comes out"],
        rows,
        "Processor time of one thread. A fresh process: from its start, with imports, to the end of the first call, "
        "with an empty `NUMBA_CACHE_DIR`; the second call is in the same process. Where the libraries answer different "
        f"questions, the last column says so, and the ratio compares waiting, not work. {versions()}",
    )


def versions() -> str:
    found = [f"{name} {version(package)}" for name, (module, package) in PACKAGES.items() if find_spec(module)]
    return f"Versions: {', '.join(found)}." if found else "No other library is installed."


def make_files(folder: Path) -> None:
    """People, models and a network that the jobs read."""
    import joblib
    import numpy as np

    from benchmarks.common import network

    make_people(folder)
    if find_spec("interpret"):
        code = EBM_FIT + 'import joblib\njoblib.dump(work(), "ebm.joblib")'
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=folder)
    X = np.random.default_rng(0).normal(size=(500, 5))
    np.save(folder / "rows.npy", X)
    joblib.dump(network(X, (X.sum(axis=1) > 0).astype(int)), folder / "network.joblib")


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--write"]
    print_or_write(run(tuple(words)), write="--write" in sys.argv)
